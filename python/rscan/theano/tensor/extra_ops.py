"""`theano.tensor.extra_ops`."""

from .arrays import bincount, cumprod, cumsum, diff, repeat, squeeze, to_one_hot
from .linalg import fill_diagonal, fill_diagonal_offset, searchsorted, unique_values

__all__ = [
    "bincount",
    "cumprod",
    "cumsum",
    "diff",
    "fill_diagonal",
    "fill_diagonal_offset",
    "repeat",
    "searchsorted",
    "squeeze",
    "to_one_hot",
    "unique_values",
]
