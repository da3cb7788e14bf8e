"""`theano.tensor.slinalg`."""

from .linalg import cholesky, expm, kron, solve, solve_lower_triangular, solve_upper_triangular

__all__ = ["cholesky", "expm", "kron", "solve", "solve_lower_triangular", "solve_upper_triangular"]
