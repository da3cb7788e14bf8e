"""Linear algebra under Theano's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import indexing, linalg, ops
from ..._args import at_least
from ...variable import Variable, elementwise
from ..absent import absent_in
from ..variable import as_tensor_variable
from .arrays import dot
from .create import diag, eye


def matrix_inverse(a: Any) -> Variable:
    """The inverse."""
    return linalg.inv(as_tensor_variable(a))


def matrix_dot(*args: Any) -> Variable:
    """The product of several matrices."""
    out = as_tensor_variable(args[0])
    for item in args[1:]:
        out = dot(out, item)
    return out


def matrix_power(m: Any, n: int) -> Variable:
    """A matrix multiplied by itself."""
    return linalg.matrix_power(as_tensor_variable(m), n)


def trace(x: Any) -> Variable:
    """The sum of the diagonal."""
    return ops.sum(diag(x))


def det(a: Any) -> Variable:
    """The determinant."""
    return linalg.det(as_tensor_variable(a))


def solve(a: Any, b: Any, *_: Any, **__: Any) -> Variable:
    """x with a x = b."""
    return linalg.solve(as_tensor_variable(a), as_tensor_variable(b))


def solve_lower_triangular(a: Any, b: Any, *_: Any, **__: Any) -> Variable:
    """x with a x = b, of a lower triangular a."""
    return linalg.solve_triangular(as_tensor_variable(a), as_tensor_variable(b), lower=True)


def solve_upper_triangular(a: Any, b: Any, *_: Any, **__: Any) -> Variable:
    """x with a x = b, of an upper triangular a."""
    return linalg.solve_triangular(as_tensor_variable(a), as_tensor_variable(b), lower=False)


def cholesky(a: Any, lower: bool = True, **_: Any) -> Variable:
    """The Cholesky factor."""
    out = linalg.cholesky(as_tensor_variable(a))
    return out if lower else out.T


def kron(a: Any, b: Any) -> Variable:
    """The Kronecker product."""
    return linalg.kron(*(at_least(as_tensor_variable(v), 2, "kron") for v in (a, b)))


def alloc_diag(x: Any) -> Variable:
    """The matrix with a vector on its diagonal."""
    return diag(x)


extract_diag = alloc_diag


def norm(x: Any, ord: Any = None) -> Variable:
    """A norm of a vector or matrix."""
    v = as_tensor_variable(x)
    if ord in ("inf", "-inf"):
        ord = float(ord)
    if ord == 0 and v.ndim == 1:
        return ops.sum(elementwise("ne", v, as_tensor_variable(0)))
    return elementwise("sqrt", ops.sum(v * v)) if ord in (None, "fro") else linalg.norm(v, ord)


def fill_diagonal(a: Any, value: Any) -> Variable:
    """a with a value on its diagonal."""
    v = as_tensor_variable(a)
    mask = ops.cast(eye(v.shape[0], v.shape[1], dtype="int8"), "bool")
    return ops.where(mask, ops.cast(as_tensor_variable(value), v.dtype), v)


def fill_diagonal_offset(a: Any, value: Any, offset: Any) -> Variable:
    """a with a value on the diagonal of an offset."""
    v = as_tensor_variable(a)
    mask = ops.cast(eye(v.shape[0], v.shape[1], offset, dtype="int8"), "bool")
    return ops.where(mask, ops.cast(as_tensor_variable(value), v.dtype), v)


def searchsorted(x: Any, v: Any, side: str = "left", sorter: Any = None) -> Variable:
    """Where each number would be inserted into a sorted vector."""
    sorted_x, values = as_tensor_variable(x), as_tensor_variable(v)
    if sorter is not None:
        sorted_x = indexing.take(sorted_x, sorter)
    row = ops.expand_dims(values, values.ndim)
    before = elementwise("lt" if side == "left" else "le", sorted_x, row)
    return ops.sum(before, axis=-1)


def unique_values(x: Any) -> Variable:
    """The different elements of an array, sorted."""
    v = ops.sort(ops.ravel(as_tensor_variable(x)))
    first = ops.concatenate([as_tensor_variable(np.ones(1, bool)), elementwise("ne", v[1:], v[:-1])])
    return v[first[: v.shape[0]]]


def qr(a: Any, mode: str = "reduced") -> Any:
    """The factors q and r of a matrix, or r alone."""
    found = linalg.qr(as_tensor_variable(a), mode)
    return found if mode == "r" else list(found)


def svd(a: Any, full_matrices: Any = 1, compute_uv: Any = 1) -> Any:
    """u, the singular values, and v transposed. What `full_matrices` adds has no gradient."""
    found = linalg.svd(as_tensor_variable(a), bool(full_matrices), bool(compute_uv))
    return list(found) if compute_uv else found


def eigh(a: Any, UPLO: str = "L") -> list[Variable]:
    """The eigenvalues and eigenvectors of a symmetric matrix."""
    return list(linalg.eigh(as_tensor_variable(a), UPLO))


def expm(a: Any) -> Variable:
    """The exponential of a matrix."""
    return linalg.expm(as_tensor_variable(a))


def pinv(a: Any) -> Variable:
    """The pseudo-inverse."""
    return linalg.pinv(as_tensor_variable(a))


def lstsq(x: Any, y: Any, rcond: Any = None) -> list[Variable]:
    """The solution of least squares, the sums of squared residuals, the rank, and the singular values."""
    return list(linalg.lstsq(as_tensor_variable(x), as_tensor_variable(y), rcond))


eig: Callable[..., Any]
(eig,) = absent_in("tensor.linalg").values()
