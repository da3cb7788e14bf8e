"""Products of matrices and linear algebra: `rs.linalg.solve`, `rs.linalg.qr`, … The products are also in `rscan` itself."""

from typing import TYPE_CHECKING

from .._instead import public
from . import products
from .arrays import cross, diagonal, tensorinv, tensorsolve, vecdot
from .factors import block_diag, eigh, eigvalsh, expm, lstsq, matrix_rank, multi_dot, pinv, qr, svd, svdvals
from .norms import cond, matrix_norm, norm, vector_norm
from .products import batched_dot, dot, inner, kron, matmul, outer, tensordot, vdot
from .systems import cho_solve, cholesky, det, inv, matrix_power, matrix_transpose, slogdet, solve, solve_triangular, trace

#: The products, which `rscan` exports itself.
PRODUCTS: list[str] = products.__all__

__all__ = [
    "batched_dot", "block_diag", "cho_solve", "cholesky", "cond", "cross", "det", "diagonal", "dot", "eigh", "eigvalsh", "expm",
    "inner", "inv", "kron", "lstsq", "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm",
    "outer", "pinv", "qr", "slogdet", "solve", "solve_triangular", "svd", "svdvals", "tensordot", "tensorinv", "tensorsolve", "trace",
    "vdot", "vecdot", "vector_norm",
]  # fmt: skip

if not TYPE_CHECKING:  # for whom a name that is misspelt must stay a mistake
    __getattr__, __dir__ = public(__name__, __all__)
