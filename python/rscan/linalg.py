"""Products of matrices and linear algebra: `rs.linalg.solve`, `rs.linalg.cholesky`, … The products are also in `rscan` itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._args import at_least, axes_of, one_axis
from ._spans import here
from .errors import RscanTypeError, RscanValueError, ShapeError, UnsupportedError
from .ops_create import diag, eye
from .ops_elementwise import cast
from .ops_reduce import max as _max
from .ops_reduce import min as _min
from .ops_reduce import sum as _sum
from .ops_shape import expand_dims, ravel, reshape, swapaxes, transpose
from .variable import Variable, apply, apply_all, as_variable, elementwise, family_of

__all__ = [
    "cholesky", "det", "inv", "matrix_norm", "matrix_power", "matrix_transpose", "norm", "slogdet", "solve",
    "solve_triangular", "trace", "vector_norm",
]  # fmt: skip

#: The products, which `rscan` exports itself.
PRODUCTS: list[str] = ["batched_dot", "dot", "inner", "kron", "matmul", "outer", "tensordot", "vdot"]


def _pair(a: Any, b: Any) -> tuple[Variable, Variable]:
    family = family_of((a, b))
    a, b = as_variable(a, family=family), as_variable(b, family=family)  # no weak numbers: NumPy's products are no ufuncs
    dtype = np.result_type(a.dtype, b.dtype).name
    return cast(a, dtype), cast(b, dtype)


def matmul(a: Any, b: Any) -> Variable:
    """The matrix product, as `numpy.matmul`: vectors are rows or columns, leading axes broadcast."""
    a, b = _pair(a, b)
    if a.ndim == 0 or b.ndim == 0:
        raise RscanTypeError(
            f"`@` takes vectors and matrices, got {a!r} and {b!r}",
            code="E0809",
            labels=[(here(), "")],
            helps=["`*` scales by a number"],
        )
    return apply("matmul", {}, a, b)


def dot(a: Any, b: Any) -> Variable:
    """The product as `numpy.dot`: scalars scale; else the last axis of a meets the last but one of b."""
    a, b = _pair(a, b)
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    if b.ndim <= 2:
        return apply("matmul", {}, a, b)
    return tensordot(a, b, axes=([a.ndim - 1], [b.ndim - 2]))


def tensordot(a: Any, b: Any, axes: Any = 2) -> Variable:
    """The sum of products over axes of a and b: so many last and first ones, or a pair of lists of axes."""
    a, b = _pair(a, b)
    over_a, over_b = _contracted(a, b, axes)
    free_a = [i for i in range(a.ndim) if i not in over_a]
    free_b = [i for i in range(b.ndim) if i not in over_b]
    rows, columns = [a.shape[i] for i in free_a], [b.shape[i] for i in free_b]
    inner = _product([a.shape[i] for i in over_a])
    left = reshape(transpose(a, free_a + over_a), (_product(rows), inner))
    right = reshape(transpose(b, over_b + free_b), (inner, _product(columns)))
    return reshape(apply("matmul", {}, left, right), [*rows, *columns])


def _contracted(a: Variable, b: Variable, axes: Any) -> tuple[list[int], list[int]]:
    if isinstance(axes, (int, np.integer)):
        if not 0 <= axes <= min(a.ndim, b.ndim):
            raise RscanValueError(f"tensordot over {axes} axes of {a!r} and {b!r}", code="E0809", labels=[(here(), "")])
        return list(range(a.ndim - axes, a.ndim)), list(range(axes))
    first, second = ([x] if isinstance(x, (int, np.integer)) else list(x) for x in axes)
    if len(first) != len(second):
        raise RscanValueError(f"tensordot over {len(first)} and {len(second)} axes", code="E0809", labels=[(here(), "")])
    over_a, over_b = [one_axis(i, a.ndim) for i in first], [one_axis(i, b.ndim) for i in second]
    for i, j in zip(over_a, over_b, strict=True):
        m, n = a.static_shape[i], b.static_shape[j]
        if None not in (m, n) and m != n:
            raise ShapeError(f"tensordot over extents {m} and {n}", code="E0812", labels=[(here(), "")])
    return over_a, over_b


def _product(extents: list[Any]) -> Any:
    out: Any = 1
    for n in extents:
        out = out * n
    return out


def batched_dot(a: Any, b: Any) -> Variable:
    """The product of each pair of items of a and b along their first axes."""
    a, b = _pair(at_least(a, 1, "batched_dot"), at_least(b, 1, "batched_dot"))
    if a.ndim == 1 or b.ndim == 1:
        wide = max(a.ndim, b.ndim)
        grow = lambda v: expand_dims(v, tuple(range(1, 1 + wide - v.ndim))) if v.ndim == 1 else v
        return grow(a) * grow(b)
    left = expand_dims(a, 1) if a.ndim == 2 else a
    right = expand_dims(b, 2) if b.ndim == 2 else b
    out = apply("matmul", {}, left, right)
    drop = [axis for axis, v in ((1, a), (out.ndim - 1, b)) if v.ndim == 2]
    return apply("squeeze", {"axes": drop}, out) if drop else out


def outer(a: Any, b: Any) -> Variable:
    """The products of each element of a with each of b, both flattened."""
    return expand_dims(ravel(a), 1) * expand_dims(ravel(b), 0)


def inner(a: Any, b: Any) -> Variable:
    """The sum of products over the last axes."""
    a, b = _pair(a, b)
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    return tensordot(a, b, axes=([a.ndim - 1], [b.ndim - 1]))


def vdot(a: Any, b: Any) -> Variable:
    """The sum of products of all elements."""
    a, b = _pair(a, b)
    return apply("matmul", {}, ravel(a), ravel(b))


def kron(a: Any, b: Any) -> Variable:
    """Every element of matrix a times the matrix b."""
    a, b = _pair(at_least(a, 2, "kron"), at_least(b, 2, "kron"))
    wide = expand_dims(a, (1, 3)) * expand_dims(b, (0, 2))
    return reshape(wide, [m * n for m, n in zip(a.shape, b.shape, strict=True)])


def _square(a: Any, what: str) -> Variable:
    v = at_least(a, 2, what)
    return v if v.dtype.startswith("float") else cast(v, "float64")


def solve(a: Any, b: Any, assume: str = "general") -> Variable:
    """x with a·x = b. `assume`: 'general', 'lower', 'upper', or 'positive' (definite, symmetric)."""
    if assume not in ("general", "lower", "upper", "positive"):
        raise RscanValueError(
            f"solve can assume 'general', 'lower', 'upper' or 'positive', not {assume!r}",
            code="E0809",
            labels=[(here(), "")],
        )
    left, right = _pair(_square(a, "solve"), at_least(b, 1, "solve"))
    return apply("solve", {"kind": assume}, left, right)


def solve_triangular(a: Any, b: Any, lower: bool = False, trans: Any = 0) -> Variable:
    """x with a·x = b for a triangular a, of which the other half is not read. `trans` takes the transpose of a."""
    if not (isinstance(trans, (int, str)) and trans in (0, 1, 2, "N", "T", "C")):
        raise RscanValueError(f"trans is 0, 1, 2, 'N', 'T' or 'C', not {trans!r}", code="E0809", labels=[(here(), "")])
    if trans not in (0, "N"):
        a, lower = swapaxes(a, -1, -2), not lower
    return solve(a, b, "lower" if lower else "upper")


def cholesky(a: Any) -> Variable:
    """The lower triangular l with l·lᵀ = a; only the lower half of a is read."""
    return apply("cholesky", {}, _square(a, "cholesky"))


def inv(a: Any) -> Variable:
    """The inverse matrix."""
    return apply("inverse", {}, _square(a, "inv"))


def slogdet(a: Any) -> tuple[Variable, Variable]:
    """Sign and log of the absolute value of the determinant."""
    sign, log = apply_all("slogdet", {}, [_square(a, "slogdet")])
    return sign, log


def det(a: Any) -> Variable:
    """The determinant. Its gradient is there for singular matrices, too."""
    return apply("det", {}, _square(a, "det"))


def matrix_transpose(a: Any) -> Variable:
    """With the last two axes exchanged."""
    return swapaxes(a, -1, -2)


def trace(a: Any, offset: int = 0) -> Variable:
    """The sum of a diagonal of a matrix."""
    v = at_least(a, 2, "trace")
    if v.ndim > 2:
        raise UnsupportedError("trace takes a matrix", code="E0813", labels=[(here(), "")])
    return _sum(diag(v, offset))


def matrix_power(a: Any, n: int) -> Variable:
    """A square matrix times itself; negative powers of the inverse."""
    v = _square(a, "matrix_power") if n < 0 else at_least(a, 2, "matrix_power")
    base, out = (inv(v) if n < 0 else v), None
    for bit in bin(abs(n))[:1:-1]:
        if bit == "1":
            out = base if out is None else out @ base
        base = base @ base
    return eye(v.shape[-1], dtype=v.dtype) if out is None else out


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Variable:
    """A norm of a vector or matrix along axes, as `numpy.linalg.norm`; the root of the sum of squares by default."""
    v = as_variable(x)
    v = v if v.dtype.startswith("float") else cast(v, "float64")
    axes = axes_of(axis, v.ndim)
    if ord is None or (not isinstance(ord, Variable) and ((ord == "fro" and len(axes) == 2) or (ord == 2 and len(axes) == 1))):
        return elementwise("sqrt", _sum(v * v, axis, keepdims=keepdims))
    if len(axes) == 1:
        return vector_norm(v, ord, axes[0], keepdims)
    if len(axes) == 2:
        first, second = (one_axis(a, v.ndim) for a in axis) if axis is not None else (0, 1)
        return _matrix_norm(v, ord, first, second, keepdims)
    raise RscanValueError(f"norm {ord!r} over {len(axes)} axes", code="E0809", labels=[(here(), "")])


def vector_norm(x: Any, ord: Any = 2, axis: Any = None, keepdims: bool = False) -> Variable:
    """The norm (Σ|x|^ord)^(1/ord) along axes, with its limits at ±inf and 0."""
    v = as_variable(x)
    size = elementwise("abs", v if v.dtype.startswith("float") else cast(v, "float64"))
    if not isinstance(ord, (int, float, np.number)):
        raise RscanValueError(f"there is no vector norm {ord!r}", code="E0809", labels=[(here(), "")])
    if ord == np.inf:
        return _max(size, axis, keepdims=keepdims)
    if ord == -np.inf:
        return _min(size, axis, keepdims=keepdims)
    if ord == 0:
        return _sum(cast(elementwise("ne", size, 0), size.dtype), axis, keepdims=keepdims)
    if ord == 1:
        return _sum(size, axis, keepdims=keepdims)
    return _sum(size**ord, axis, keepdims=keepdims) ** (1.0 / ord)


def matrix_norm(x: Any, ord: Any = "fro", keepdims: bool = False) -> Variable:
    """A norm of the matrices in the last two axes: 'fro', 1, −1, inf or −inf."""
    return norm(x, ord, (-2, -1), keepdims)


def _matrix_norm(v: Variable, ord: Any, rows: int, columns: int, keepdims: bool) -> Variable:
    over = {1: (rows, columns), -1: (rows, columns), np.inf: (columns, rows), -np.inf: (columns, rows)}
    if ord not in over:
        raise UnsupportedError(f"matrix norm {ord!r} is not supported", code="E0813", labels=[(here(), "")])
    summed, extreme = over[ord]
    totals = _sum(elementwise("abs", v), summed, keepdims=True)
    best = (_max if ord > 0 else _min)(totals, extreme, keepdims=True)
    return best if keepdims else apply("squeeze", {"axes": sorted((rows, columns))}, best)
