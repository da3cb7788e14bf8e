"""`theano.tensor.nlinalg`."""

from .linalg import (
    alloc_diag,
    det,
    diag,
    eig,
    eigh,
    extract_diag,
    lstsq,
    matrix_dot,
    matrix_inverse,
    matrix_power,
    norm,
    pinv,
    qr,
    svd,
    trace,
)

__all__ = [
    "alloc_diag",
    "det",
    "diag",
    "eig",
    "eigh",
    "extract_diag",
    "lstsq",
    "matrix_dot",
    "matrix_inverse",
    "matrix_power",
    "norm",
    "pinv",
    "qr",
    "svd",
    "trace",
]
