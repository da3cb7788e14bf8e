"""Products of vectors, matrices and stacks of them. `rscan` exports them itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._args import at_least, one_axis
from .._spans import here
from ..errors import RscanTypeError, RscanValueError, ShapeError
from ..ops_elementwise import cast
from ..ops_shape import expand_dims, ravel, reshape, transpose
from ..variable import Variable, apply, as_variable, family_of

__all__ = ["batched_dot", "dot", "inner", "kron", "matmul", "outer", "tensordot", "vdot"]


def pair(a: Any, b: Any) -> tuple[Variable, Variable]:
    """Both in their common dtype."""
    family = family_of((a, b))
    a, b = as_variable(a, family=family), as_variable(b, family=family)  # no weak numbers: NumPy's products are no ufuncs
    dtype = np.result_type(a.dtype, b.dtype).name
    return cast(a, dtype), cast(b, dtype)


def matmul(a: Any, b: Any) -> Variable:
    """The matrix product, as `numpy.matmul`: vectors are rows or columns, leading axes broadcast.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `a` or `b` of another kind; `ShapeError` (E0208) where
    extents of a product differ.

    >>> rs.matmul([[1.0, 2.0], [3.0, 4.0]], [1.0, 1.0]).eval()
    array([3., 7.])
    """
    a, b = pair(a, b)
    if a.ndim == 0 or b.ndim == 0:
        raise RscanTypeError(
            f"`@` takes vectors and matrices, got {a!r} and {b!r}",
            code="E0809",
            labels=[(here(), "")],
            helps=["`*` scales by a number"],
        )
    return apply("matmul", {}, a, b)


def dot(a: Any, b: Any) -> Variable:
    """The product as `numpy.dot`: scalars scale; else the last axis of a meets the last but one of b.

    errors: `RscanTypeError` (E0805) for what is no number or array; `ShapeError` (E0208) where extents of a product differ, (E0812) for
    pieces that do not fit.

    >>> rs.dot([1.0, 2.0], [3.0, 4.0]).eval()
    array(11.)
    """
    a, b = pair(a, b)
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    if b.ndim <= 2:
        return apply("matmul", {}, a, b)
    return tensordot(a, b, axes=([a.ndim - 1], [b.ndim - 2]))


def tensordot(a: Any, b: Any, axes: Any = 2) -> Variable:
    """The sum of products over axes of a and b: so many last and first ones, or a pair of lists of axes.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axes` of another kind; `RscanValueError` (E0809) for `a`,
    `b` or `axes` out of range; `ShapeError` (E0204) where the numbers of elements differ.

    >>> rs.tensordot(np.ones((2, 3)), np.ones((3, 4)), axes=1).eval().shape
    (2, 4)
    """
    a, b = pair(a, b)
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
    """The product of each pair of items of a and b along their first axes.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `a` or `b` of another kind; `ShapeError` (E0201) where
    shapes do not broadcast, (E0208) where extents of a product differ.

    >>> rs.batched_dot(np.ones((4, 2, 3)), np.ones((4, 3))).eval().shape
    (4, 2)
    """
    a, b = pair(at_least(a, 1, "batched_dot"), at_least(b, 1, "batched_dot"))
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
    """The products of each element of a with each of b, both flattened.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.outer([1, 2], [3, 4]).eval()
    array([[3, 4],
           [6, 8]])
    """
    return expand_dims(ravel(a), 1) * expand_dims(ravel(b), 0)


def inner(a: Any, b: Any) -> Variable:
    """The sum of products over the last axes.

    errors: `RscanTypeError` (E0805) for what is no number or array; `ShapeError` (E0812) for pieces that do not fit.

    >>> rs.inner([1.0, 2.0], [3.0, 4.0]).eval()
    array(11.)
    """
    a, b = pair(a, b)
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    return tensordot(a, b, axes=([a.ndim - 1], [b.ndim - 1]))


def vdot(a: Any, b: Any) -> Variable:
    """The sum of products of all elements.

    errors: `RscanTypeError` (E0805) for what is no number or array; `ShapeError` (E0208) where extents of a product differ.

    >>> rs.vdot([[1.0, 2.0]], [[3.0, 4.0]]).eval()
    array(11.)
    """
    a, b = pair(a, b)
    return apply("matmul", {}, ravel(a), ravel(b))


def kron(a: Any, b: Any) -> Variable:
    """Every element of a times the array b; the one with fewer axes gets more of extent 1 in front.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.kron([[1, 10]], [[1], [2]]).eval()
    array([[ 1, 10],
           [ 2, 20]])
    """
    a, b = pair(a, b)
    rank = max(a.ndim, b.ndim)
    a, b = (expand_dims(v, tuple(range(rank - v.ndim))) for v in (a, b))
    wide = expand_dims(a, tuple(range(1, 2 * rank, 2))) * expand_dims(b, tuple(range(0, 2 * rank, 2)))
    return reshape(wide, [m * n for m, n in zip(a.shape, b.shape, strict=True)])
