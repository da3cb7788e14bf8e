"""Norms of vectors and matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._args import at_least, axes_of, one_axis
from .._spans import here
from ..errors import RscanValueError
from ..ops_elementwise import cast
from ..ops_reduce import max as _max
from ..ops_reduce import min as _min
from ..ops_reduce import sum as _sum
from ..ops_shape import expand_dims, moveaxis
from ..variable import Variable, apply, as_variable, elementwise
from .factors import svdvals
from .systems import inv

__all__ = ["cond", "matrix_norm", "norm", "vector_norm"]


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Variable:
    """A norm of a vector or matrix along axes, as `numpy.linalg.norm`; the root of the sum of squares by default.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `RscanValueError` (E0809) for `ord`
    out of range; `AxisError` (E0810) for an axis that is not there.

    >>> rs.linalg.norm([3.0, 4.0]).eval()
    array(5.)
    """
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
    """The norm (Σ|x|^ord)^(1/ord) along axes, with its limits at ±inf and 0.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `RscanValueError` (E0809) for `ord`
    out of range; `AxisError` (E0810) for an axis that is not there.

    >>> rs.linalg.vector_norm([[3.0, 4.0], [6.0, 8.0]], axis=1).eval()
    array([ 5., 10.])
    """
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
    """A norm of the matrices in the last two axes: 'fro', 'nuc', 1, −1, 2, −2, inf or −inf.

    errors: `RscanTypeError` (E0805) for what is no number or array; `RscanValueError` (E0809) for `ord` out of range; `AxisError` (E0810)
    for an axis that is not there.

    >>> rs.linalg.matrix_norm([[3.0, 0.0], [0.0, 4.0]]).eval()
    array(5.)
    """
    return norm(x, ord, (-2, -1), keepdims)


def _of_singular_values(v: Variable, ord: Any) -> Variable:
    s = svdvals(v)
    return _sum(s, -1) if ord == "nuc" else s[..., 0] if ord == 2 else s[..., -1]


def _matrix_norm(v: Variable, ord: Any, rows: int, columns: int, keepdims: bool) -> Variable:
    if isinstance(ord, (str, int, float)) and ord in ("nuc", 2, -2):
        found = _of_singular_values(moveaxis(v, (rows, columns), (-2, -1)), ord)
        return expand_dims(found, tuple(sorted((rows, columns)))) if keepdims else found
    over = {1: (rows, columns), -1: (rows, columns), np.inf: (columns, rows), -np.inf: (columns, rows)}
    if isinstance(ord, Variable) or ord not in over:
        raise RscanValueError(f"there is no matrix norm {ord!r}", code="E0809", labels=[(here(), "")])
    summed, extreme = over[ord]
    totals = _sum(elementwise("abs", v), summed, keepdims=True)
    best = (_max if ord > 0 else _min)(totals, extreme, keepdims=True)
    return best if keepdims else apply("squeeze", {"axes": sorted((rows, columns))}, best)


def cond(x: Any, p: Any = None) -> Variable:
    """How much relative errors of a right side may grow in the solution: the norm of a matrix times that of its inverse.

    By default, with 2, the largest singular value over the smallest; -2 is the reverse. Others are norms of `norm`.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `x` of another kind; `RscanValueError` (E0809) for `p` out
    of range.

    >>> rs.linalg.cond([[2.0, 0.0], [0.0, 1.0]]).eval()
    array(2.)
    """
    v = at_least(x, 2, "cond")
    v = v if v.dtype.startswith("float") else cast(v, "float64")
    if p is None or (not isinstance(p, Variable) and p in (2, -2)):
        s = svdvals(v)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    return norm(v, p, (-2, -1)) * norm(inv(v), p, (-2, -1))
