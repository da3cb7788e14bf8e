"""Arrays from nothing, and from other arrays' shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._args import at_least, whole
from ._spans import here
from .config import config
from .errors import RscanTypeError
from .ops_control import assert_
from .ops_elementwise import cast, where
from .ops_shape import broadcast_like, broadcast_to, expand_dims, moveaxis
from .variable import Variable, apply, as_variable, dtype_name, elementwise, extents, operands, static_value

__all__ = [
    "alloc", "arange", "diag", "empty", "empty_like", "eye", "fill", "full", "full_like", "identity", "linspace",
    "ones", "ones_like", "tri", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Variable:
    """An array of one value.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `shape` of another kind, (E0806) for a dtype that is not
    there; `ShapeError` (E0201) where shapes do not broadcast; `RscanValueError` (E0222) for a negative extent.

    >>> rs.full((2, 2), 7).eval()
    array([[7, 7],
           [7, 7]])
    """
    return broadcast_to(as_variable(fill_value, dtype), shape)


def zeros(shape: Any, dtype: Any = None) -> Variable:
    """An array of zeros, of `config.floatX` (float64) by default: `dtype=x.dtype`, or `zeros_like`, in a float32 model.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `shape` of another kind, (E0806) for a dtype that is not
    there; `RscanValueError` (E0222) for extents that are negative or no scalars.

    >>> rs.empty((2, 3)).eval().shape
    (2, 3)
    """
    return full(shape, 0, dtype_name(dtype, config.floatX))


def ones(shape: Any, dtype: Any = None) -> Variable:
    """An array of ones, of `config.floatX` by default.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `shape` of another kind, (E0806) for a dtype that is not
    there; `RscanValueError` (E0222) for extents that are negative or no scalars.

    >>> rs.ones(3, dtype="int32").eval()
    array([1, 1, 1], dtype=int32)
    """
    return full(shape, 1, dtype_name(dtype, config.floatX))


def full_like(x: Any, fill_value: Any, dtype: Any = None, *, shape: Any = None) -> Variable:
    """An array of one value, with the shape of x and, unless told otherwise, its dtype.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0806) for a dtype that is not there; `ShapeError` (E0201) where
    shapes do not broadcast.

    >>> rs.full_like([1.0, 2.0], 3).eval()
    array([3., 3.])
    """
    like = as_variable(x)
    value = as_variable(fill_value, dtype_name(dtype, like.dtype))
    return broadcast_like(value, like) if shape is None else broadcast_to(value, shape)


def zeros_like(x: Any, dtype: Any = None, *, shape: Any = None) -> Variable:
    """Zeros with the shape and dtype of x, unless told otherwise.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0806) for a dtype that is not there.

    >>> rs.empty_like(np.zeros(2, "float32")).eval().dtype
    dtype('float32')
    """
    return full_like(x, 0, dtype, shape=shape)


def ones_like(x: Any, dtype: Any = None, *, shape: Any = None) -> Variable:
    """Ones with the shape and dtype of x, unless told otherwise.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0806) for a dtype that is not there.

    >>> rs.ones_like([1.5, 2.5]).eval()
    array([1., 1.])
    """
    return full_like(x, 1, dtype, shape=shape)


empty = zeros
empty_like = zeros_like


def fill(like: Any, value: Any) -> Variable:
    """`value` broadcast to the shape of `like`, in its own dtype.

    errors: `RscanTypeError` (E0805) for what is no number or array; `ShapeError` (E0201) where shapes do not broadcast.

    >>> rs.fill(np.zeros(3), 2.0).eval()
    array([2., 2., 2.])
    """
    return broadcast_like(as_variable(value), like)


def alloc(value: Any, *shape: Any) -> Variable:
    """`value` broadcast to a shape.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `shape` of another kind; `ShapeError` (E0201) where shapes
    do not broadcast; `RscanValueError` (E0222) for extents that are negative or no scalars.

    >>> rs.alloc(1.0, 2, 3).eval()
    array([[1., 1., 1.],
           [1., 1., 1.]])
    """
    return broadcast_to(as_variable(value), shape)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Variable:
    """start, start + step, … up to but without stop. Integers give int64.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0222) for extents that are negative or no scalars, (E0806) for a
    dtype that is not there.

    >>> rs.arange(1, 10, 3).eval()
    array([1, 4, 7])
    """
    if stop is None:
        start, stop = 0, start
    parts = operands((start, stop, step))
    if dtype is None:
        common = np.result_type(*(v.dtype for v in parts)).name
        dtype = common if common.startswith("float") else "int64"
    return apply("arange", {}, *[cast(v, dtype) for v in parts])


def linspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None, axis: int = 0
) -> Any:
    """`num` evenly spaced numbers from start to stop, which is the last one unless `endpoint` is False.

    `num` is a number or an integer variable. Of arrays: along a new axis. Integers are the largest ones below. With
    `retstep` a pair with the distance of two neighbours.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `num` or `axis` of another kind, (E0806) for a dtype that
    is not there; `AxisError` (E0810) for an axis that is not there.

    >>> rs.linspace(0, 1, 5).eval()
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    first, last = operands((start, stop))
    if first.dtype[0] != "f":
        first, last = cast(first, "float64"), cast(last, "float64")
    count = _count(num, "linspace")
    steps = elementwise("maximum", count - 1 if endpoint else count, 1)
    width = (last - first) / cast(steps, first.dtype)
    numbers = expand_dims(arange(count), tuple(range(1, width.ndim + 1)))
    out = first + cast(numbers, first.dtype) * width
    if endpoint:
        ends = elementwise("logical_and", elementwise("gt", numbers, 0), elementwise("eq", numbers, count - 1))
        out = where(ends, last, out)
    if dtype is not None:
        out = cast(elementwise("floor", out) if dtype_name(dtype)[0] in "iu" else out, dtype)
    out = moveaxis(out, 0, axis)
    if not retstep:
        return out
    alone = elementwise("le", count - 1 if endpoint else count, 0)
    return out, where(alone, np.nan, width).astype(width.dtype)


def _count(num: Any, what: str) -> Variable:
    """A number of points, which is not negative."""
    count = as_variable(num)
    if count.ndim or count.dtype[0] not in "iu" or (isinstance(num, (int, np.integer)) and num < 0):
        raise RscanTypeError(f"{what} takes a number of points, an integer, got {num!r}", code="E0809", labels=[(here(), "")])
    count = cast(count, "int64")
    if static_value(count) is not None:
        return count
    return assert_(count, elementwise("le", 0, count), message=f"{what}: the number of points is negative")


def eye(N: Any, M: Any = None, k: Any = 0, dtype: Any = None) -> Variable:
    """A matrix with ones where column − row = k.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `n`, `m` or `k` of another kind, (E0806) for a dtype that
    is not there; `RscanValueError` (E0222) for extents that are negative or no scalars.

    >>> rs.eye(2, 3).eval()
    array([[1., 0., 0.],
           [0., 1., 0.]])
    """
    return apply("eye", {"dtype": dtype_name(dtype, config.floatX)}, *extents([N, N if M is None else M, k]))


def identity(n: Any, dtype: Any = None) -> Variable:
    """The square matrix with ones on its diagonal.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `n` of another kind, (E0806) for a dtype that is not there;
    `RscanValueError` (E0222) for extents that are negative or no scalars.

    >>> rs.identity(2).eval()
    array([[1., 0.],
           [0., 1.]])
    """
    return eye(n, dtype=dtype)


def diag(x: Any, k: int = 0) -> Variable:
    """The k-th diagonal of a matrix, or the square matrix with a vector on it.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `x` or `k` of another kind.

    >>> rs.diag([1.0, 2.0]).eval()
    array([[1., 0.],
           [0., 2.]])
    """
    v = at_least(x, 1, "diag")
    if v.ndim > 2:
        raise RscanTypeError(f"diag takes a vector or a matrix, got {v!r}", code="E0809", labels=[(here(), "")])
    return apply("diag", {"k": whole(k, "k")}, v)


def tril(x: Any, k: int = 0) -> Variable:
    """With zeros above the k-th diagonal.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `x` or `k` of another kind.

    >>> rs.tril([[1, 2], [3, 4]]).eval()
    array([[1, 0],
           [3, 4]])
    """
    return apply("tri", {"lower": True, "k": whole(k, "k")}, at_least(x, 2, "tril"))


def triu(x: Any, k: int = 0) -> Variable:
    """With zeros below the k-th diagonal.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `x` or `k` of another kind.

    >>> rs.triu([[1, 2], [3, 4]]).eval()
    array([[1, 2],
           [0, 4]])
    """
    return apply("tri", {"lower": False, "k": whole(k, "k")}, at_least(x, 2, "triu"))


def tri(N: Any, M: Any = None, k: int = 0, dtype: Any = None) -> Variable:
    """A matrix with ones at and below the k-th diagonal.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `n`, `k` or `m` of another kind, (E0806) for a dtype that
    is not there; `RscanValueError` (E0222) for extents that are negative or no scalars.

    >>> rs.tri(3).eval()
    array([[1., 0., 0.],
           [1., 1., 0.],
           [1., 1., 1.]])
    """
    return tril(ones((N, N if M is None else M), dtype), k)
