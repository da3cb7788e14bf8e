"""How the pseudo-inverse moves where singular values that are not 0 count as 0."""

from __future__ import annotations

from ..ops_control import stop_gradient
from ..ops_create import zeros
from ..ops_elementwise import cast, where
from ..ops_reduce import max as _max
from ..ops_shape import concatenate, expand_dims, swapaxes
from ..variable import Variable, apply, apply_all, elementwise
from .products import matmul

__all__: list[str] = []

#: Each step adds a derivative that is exact.
_STEPS = 3


def moving(a: Variable, rcond: float | Variable) -> Variable:
    """The pseudo-inverse of what is left of a matrix without its singular values up to `rcond` of the largest, a number or one per matrix.

    If the columns of W are a basis of the space of the right singular vectors that stay, it is W·pinv(a·W), and a·W has the same rank
    wherever a is nearby. The op's own slope takes what it is given for what is left; so it is not of a.
    """
    basis = _kept_basis(a, rcond)
    return matmul(basis, apply("pinv", {"rcond": -1.0 if isinstance(rcond, Variable) else rcond / 2}, matmul(a, basis)))


def _kept_basis(a: Variable, rcond: float | Variable) -> Variable:
    """A basis of the right singular vectors that stay, as columns, which moves with the matrix; columns of zeros for the others.

    It is what solves aᵀa·W = W·T. The vectors as they are solve it, and as a moves each step takes back what is left over, R, by the parts
    of R along vectors that do not stay: divided by the distance of the eigenvalues, which is never small where the one stays and the
    other does not.
    """
    _, s, vh = (stop_gradient(v) for v in apply_all("svd", {}, [a]))
    v, least = swapaxes(vh, -1, -2), concatenate([s, zeros([*s.shape[:-1], 1], s.dtype)], -1)
    share = expand_dims(stop_gradient(rcond), -1) if isinstance(rcond, Variable) and rcond.ndim else rcond
    stays = elementwise("gt", s, _max(least, -1, keepdims=True) * share)
    kept, square = expand_dims(cast(stays, a.dtype), -2), expand_dims(s * s, -2)
    other = swapaxes(square, -1, -2)
    apart = kept * (1 - swapaxes(kept, -1, -2))
    along = apart / where(apart > 0, square - other, 1.0)
    beyond = kept / where(kept > 0, square, 1.0)
    basis = v * kept
    for _ in range(_STEPS):
        moved = matmul(swapaxes(a, -1, -2), matmul(a, basis))
        rest = moved - matmul(basis, kept * matmul(vh, moved) * swapaxes(kept, -1, -2))
        parts = matmul(vh, rest)
        basis = basis + matmul(v, along * parts) + beyond * (rest - matmul(v, parts))
    return basis
