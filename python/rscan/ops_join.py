"""Joining and cutting arrays, and arrays with elements put in, left out or repeated."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from ._args import at_least, axes_of, one_axis, whole
from ._spans import here
from .errors import RscanTypeError, RscanValueError, ShapeError
from .indexing import nonzero, take, write
from .ops_control import assert_
from .ops_create import arange, zeros
from .ops_elementwise import cast
from .ops_pieces import split
from .ops_reduce import any as _any
from .ops_reduce import argsort, cumsum
from .ops_reduce import sum as _sum
from .ops_shape import atleast_1d, broadcast_to, concatenate, each, expand_dims, moveaxis, ravel, reshape
from .variable import Variable, apply, as_variable, elementwise, extent, extents, operands, result_dtype, static_value

__all__ = [
    "append", "atleast_3d", "block", "column_stack", "concat", "delete", "dsplit", "dstack", "hsplit", "insert", "repeat", "resize",
    "rollaxis", "trim_zeros", "unstack", "vsplit",
]  # fmt: skip


def concat(arrays: Any, axis: int | None = 0, *, dtype: Any = None, casting: str = "same_kind") -> Variable:
    """`concatenate` under the array API's name.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `arrays` or `axis` of another kind; `AxisError` (E0810) for
    an axis that is not there.

    >>> rs.concat([[1], [2, 3]]).eval()
    array([1, 2, 3])
    """
    return concatenate(arrays, axis, dtype=dtype, casting=casting)


def atleast_3d(*arrays: Any) -> Any:
    """With new axes until there are three: a vector becomes 1 × n × 1, a matrix m × n × 1. Of several arrays a tuple.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.atleast_3d([1.0, 2.0]).eval().shape
    (1, 2, 1)
    """
    return each(lambda v: expand_dims(v, {0: (0, 1, 2), 1: (0, 2), 2: (2,)}.get(v.ndim, ())), arrays)


def column_stack(tup: Any) -> Variable:
    """Vectors as columns, and matrices, side by side.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `tup` of another kind.

    >>> rs.column_stack([[1, 2], [3, 4]]).eval()
    array([[1, 3],
           [2, 4]])
    """
    items = [as_variable(v) for v in tup]
    return concatenate([expand_dims(atleast_1d(v), 1) if v.ndim < 2 else v for v in items], 1)


def dstack(tup: Any) -> Variable:
    """Joined along the third axis.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `tup` of another kind.

    >>> rs.dstack([[1, 2], [3, 4]]).eval().shape
    (1, 2, 2)
    """
    return concatenate([atleast_3d(v) for v in tup], 2)


def unstack(x: Any, *, axis: int = 0) -> tuple[Variable, ...]:
    """The parts of an array along an axis, whose extent is known.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `x` or `axis` of another kind; `AxisError` (E0810) for an
    axis that is not there.

    >>> rs.eval(list(rs.unstack([[1, 2], [3, 4]])))
    [array([1, 2]), array([3, 4])]
    """
    v = moveaxis(at_least(x, 1, "unstack"), axis, 0)
    return tuple(v)


def _split_at(x: Any, where: Any, axis: int, ndim: int, what: str) -> list[Variable]:
    return split(at_least(x, ndim, what), where, axis)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Variable]:
    """`split` along the first axis.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `ary` of another kind; `RscanValueError` (E0809) for
    `indices_or_sections` out of range; `RscanIndexError` (E0803) for what is no index; `ShapeError` (E0812) for pieces that do not fit.

    >>> rs.eval(rs.vsplit([[1, 2], [3, 4]], 2))
    [array([[1, 2]]), array([[3, 4]])]
    """
    return _split_at(ary, indices_or_sections, 0, 2, "vsplit")


def hsplit(ary: Any, indices_or_sections: Any) -> list[Variable]:
    """`split` along the second axis, of vectors along the first.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `ary` of another kind; `RscanValueError` (E0809) for
    `indices_or_sections` out of range; `RscanIndexError` (E0803) for what is no index; `ShapeError` (E0812) for pieces that do not fit.

    >>> rs.eval(rs.hsplit([[1, 2], [3, 4]], 2))
    [array([[1],
           [3]]), array([[2],
           [4]])]
    """
    v = at_least(ary, 1, "hsplit")
    return split(v, indices_or_sections, 0 if v.ndim == 1 else 1)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Variable]:
    """`split` along the third axis.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `ary` of another kind; `RscanValueError` (E0809) for
    `indices_or_sections` out of range; `RscanIndexError` (E0803) for what is no index; `ShapeError` (E0812) for pieces that do not fit.

    >>> len(rs.dsplit(np.zeros((1, 1, 4)), 2))
    2
    """
    return _split_at(ary, indices_or_sections, 2, 3, "dsplit")


def block(arrays: Any) -> Variable:
    """An array of blocks, given as nested lists: the innermost ones are joined along the last axis, those around them along the one before.

    rs.block([[a, b], [c, d]])

    errors: `RscanTypeError` (E0805) for what is no number or array; `RscanValueError` (E0809) for `arrays` out of range.

    >>> rs.block([[np.eye(2), np.zeros((2, 1))]]).eval()
    array([[1., 0., 0.],
           [0., 1., 0.]])
    """
    depth = _depth(arrays)
    ndim = builtins.max(depth, _most_axes(arrays))
    dtype = result_dtype(*_leaves(arrays))
    return _block(arrays, depth, ndim, dtype)


def _depth(item: Any) -> int:
    if not isinstance(item, list):
        return 0
    if not item:
        raise RscanValueError("a list of blocks is empty", code="E0809", labels=[(here(), "")])
    depths = {_depth(i) for i in item}
    if len(depths) > 1:
        raise RscanValueError("lists of blocks are nested equally deep", code="E0809", labels=[(here(), "")])
    return depths.pop() + 1


def _leaves(item: Any) -> list[Variable]:
    return [v for i in item for v in _leaves(i)] if isinstance(item, list) else [as_variable(item)]


def _most_axes(item: Any) -> int:
    return builtins.max(v.ndim for v in _leaves(item))


def _block(item: Any, depth: int, ndim: int, dtype: str) -> Variable:
    if not isinstance(item, list):
        v = cast(item, dtype)
        return expand_dims(v, tuple(range(ndim - v.ndim)))
    return concatenate([_block(i, depth - 1, ndim, dtype) for i in item], ndim - depth)


def append(arr: Any, values: Any, axis: int | None = None) -> Variable:
    """`values` behind an array along an axis; flattened without one.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `AxisError` (E0810) for an axis
    that is not there.

    >>> rs.append([1, 2], [3]).eval()
    array([1, 2, 3])
    """
    return concatenate([as_variable(arr), as_variable(values)], axis)


def _flat(arr: Any, axis: int | None) -> tuple[Variable, int]:
    v = as_variable(arr)
    if axis is None:
        return ravel(v), 0
    return v, one_axis(axis, v.ndim)


def delete(arr: Any, obj: Any, axis: int | None = None) -> Variable:
    """Without the elements (or slices along an axis) at these positions: a number, a slice, several positions, or truth values.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `obj` or `axis` of another kind; `RscanValueError` (E0809)
    for `arr` or `obj` out of range; `AxisError` (E0810) for an axis that is not there; `RscanIndexError` (E0202), when it runs, for an
    index outside its axis.

    >>> rs.delete([1, 2, 3], 1).eval()
    array([1, 3])
    """
    v, at = _flat(arr, axis)
    n = extent(v, at)
    before = (slice(None),) * at
    if isinstance(obj, slice):
        obj = arange(n)[obj]
    key = as_variable(obj) if not (isinstance(obj, (list, tuple)) and not obj) else as_variable(np.zeros(0, np.int64))
    if key.ndim > 1 or key.dtype.startswith("float"):
        raise RscanTypeError(f"delete takes positions, not {key!r}", code="E0809", labels=[(here(), "")])
    if key.ndim == 0:
        if key.dtype == "bool":
            raise RscanTypeError("delete takes positions, not a truth value", code="E0809", labels=[(here(), "")])
        place = _inside(key, n)
        # As many elements as there are, less one: positions behind the one that goes move on.
        kept = arange(n - 1)
        return v[(*before, kept + cast(elementwise("ge", kept, place), "int64"))]
    keep = elementwise("logical_not", key) if key.dtype == "bool" else broadcast_to(as_variable(True), [n]).at[key].set(False)
    return v[(*before, keep)]


def _inside(place: Variable, n: Any) -> Variable:
    known, size = static_value(place), n if isinstance(n, int) else None
    if known is not None and size is not None and not -size <= int(known) < size:
        raise RscanValueError(f"position {int(known)} of {size} elements", code="E0809", labels=[(here(), "")])
    from .ops_control import assert_
    from .ops_elementwise import where

    fine = elementwise("logical_and", elementwise("ge", place, 0 - as_variable(n)), elementwise("lt", place, n))
    place = assert_(cast(place, "int64"), fine, message="delete: a position outside the array")
    return where(elementwise("lt", place, 0), place + n, place)


def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Variable:
    """With values put in before these positions of the array as it was: a number, a slice, or several positions, from −n to n
    (others are E0301 when it runs).

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `obj` or `axis` of another kind; `AxisError` (E0810) for an
    axis that is not there; `ShapeError` (E0201) where shapes do not broadcast; `AssertionFailedError` (E0301), when it runs, for a position
    outside the axis.

    >>> rs.insert([1, 2], 1, 9).eval()
    array([1, 9, 2])
    """
    v, at = _flat(arr, axis)
    n = extent(v, at)
    if isinstance(obj, slice):
        obj = arange(n)[obj]
    key = as_variable(obj)
    if key.dtype == "bool":
        key = nonzero(key)[0]
    if key.ndim > 1 or key.dtype.startswith("float"):
        raise RscanTypeError(f"insert takes positions, not {key!r}", code="E0809", labels=[(here(), "")])
    given = cast(values, v.dtype)
    before = (slice(None),) * at
    shape = list(v.shape)
    if key.ndim == 0 or key.static_shape == (1,):
        place = key if key.ndim == 0 else key[0]
        place = _insertable(place, n)
        # As NumPy: the values of a single number lie along the axis, those of positions in its place.
        if key.ndim == 0 and given.ndim:
            given = moveaxis(expand_dims(given, tuple(range(v.ndim - given.ndim))) if given.ndim < v.ndim else given, 0, at)
        if given.ndim < v.ndim:
            given = expand_dims(given, tuple(range(v.ndim - given.ndim)))
        width = extent(given, at)
        shape[at] = width
        parts = [v[(*before, slice(None, place))], broadcast_to(given, shape), v[(*before, slice(place, None))]]
        return concatenate(parts, at)
    key = _insertable(key, n)
    shape[at] = extent(key, 0)
    joined = concatenate([broadcast_to(given, shape), v], at)
    # Values come before what has their position, in the order in which they were given.
    return take(joined, argsort(concatenate([cast(key, "int64"), arange(n)])), axis=at)


def _insertable(place: Variable, n: Any) -> Variable:
    """Positions from 0 to n, of such or of those from −n on; others are an error (E0301)."""
    place = cast(place, "int64")
    found = elementwise("add", place, cast(elementwise("lt", place, 0), "int64") * n)
    fits = elementwise("logical_and", elementwise("le", 0, found), elementwise("le", found, n))
    return assert_(found, fits, message="insert: a position lies outside the axis")


def resize(a: Any, new_shape: Any) -> Variable:
    """An array of another shape: the elements in order, from the beginning again where they do not suffice.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `new_shape` of another kind; `ShapeError` (E0204) where the
    numbers of elements differ.

    >>> rs.resize([1, 2], (2, 3)).eval()
    array([[1, 2, 1],
           [2, 1, 2]])
    """
    v = ravel(as_variable(a))
    shape = extents(new_shape)
    total: Any = as_variable(1)
    for n in shape:
        total = total * cast(n, "int64")
    return reshape(take(v, arange(total) % extent(v, 0)), shape) if v.static_shape != (0,) else zeros(shape, v.dtype)


def repeat(x: Any, repeats: Any, axis: int | None = None) -> Variable:
    """Each element so often in a row, along an axis or flattened; an array gives a number per element.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `AxisError` (E0810) for an axis
    that is not there; `ShapeError` (E0812) for another number of `repeats`.

    >>> rs.repeat([1, 2], 2).eval()
    array([1, 1, 2, 2])
    """
    v = as_variable(x)
    if axis is None:
        v, axis = ravel(v), 0
    at = one_axis(axis, v.ndim)
    count = as_variable(repeats)
    if count.ndim == 1 and count.static_shape != (1,):
        return _repeat_each(v, count, at)
    if count.ndim == 1:
        repeats = count = count[0]
    n = v.shape
    value = static_value(repeats)
    times = int(value) if value is not None else count
    wide = broadcast_to(expand_dims(v, at + 1), [*n[: at + 1], times, *n[at + 1 :]])
    return reshape(wide, [*n[:at], n[at] * times, *n[at + 1 :]])


def _repeat_each(v: Variable, count: Variable, axis: int) -> Variable:
    numbers = static_value(count)
    if numbers is None:
        return v[(slice(None),) * axis + (_places(count, v.shape[axis]),)]
    if v.static_shape[axis] not in (None, len(numbers)):
        text = f"{len(numbers)} numbers of repeats for an extent of {v.static_shape[axis]}"
        raise ShapeError(text, code="E0812", labels=[(here(), "")])
    return v[(slice(None),) * axis + (np.repeat(np.arange(len(numbers)), numbers),)]


def _places(count: Variable, n: Any) -> Variable:
    """Each of n positions i as often as `count[i]` says: one more wherever the next one begins."""
    checked = assert_(cast(count, "int64"), elementwise("eq", count.shape[0], n), message="repeat: a number per element")
    checked = assert_(checked, elementwise("ge", checked, 0), message="repeat: a number of repeats is negative")
    ends = cumsum(checked)
    begun = write(zeros([_sum(checked) + 1], "int64"), ends[:-1], as_variable(1), "inc")
    return cumsum(begun)[:-1]


def rollaxis(a: Any, axis: int, start: int = 0) -> Variable:
    """With an axis moved before another.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` or `start` of another kind; `AxisError` (E0810) for
    an axis that is not there; `ShapeError` (E0812) for pieces that do not fit.

    >>> rs.rollaxis(np.zeros((2, 3, 4)), 2).eval().shape
    (4, 2, 3)
    """
    v = as_variable(a)
    at = one_axis(axis, v.ndim)
    to = whole(start, "start")
    to = to + v.ndim if to < 0 else to
    if not 0 <= to <= v.ndim:
        raise ShapeError(f"start {start} of {v.ndim} axes", code="E0812", labels=[(here(), "")])
    return moveaxis(v, at, to - 1 if at < to else to)


def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Variable:
    """A vector without the zeros in front ("f"), behind ("b"), or both; an array without such slices along axes, all by default.

    errors: `RscanTypeError` (E0805) for what is no number or array; `RscanValueError` (E0809) for `filt` or `trim` out of range.

    >>> rs.trim_zeros([0, 1, 2, 0]).eval()
    array([1, 2])
    """
    v = at_least(filt, 1, "trim_zeros")
    if not isinstance(trim, str) or set(trim.lower()) - set("fb"):
        raise RscanValueError("trim_zeros takes an array, and 'f', 'b' or 'fb'", code="E0809", labels=[(here(), "")])
    bounds = [slice(None)] * v.ndim
    for at in axes_of(axis, v.ndim):
        others = tuple(k for k in range(v.ndim) if k != at)
        bounds[at] = _occupied(_any(elementwise("ne", v, 0), others) if others else elementwise("ne", v, 0), trim.lower())
    return v[tuple(bounds)]


def _occupied(some: Variable, trim: str) -> slice:
    """The part of an axis that is left without what is false in front, or behind."""
    n, end = extent(some, 0), as_variable(np.array([True]))
    count = lambda v: apply("argreduce", {"kind": "max", "axis": 0}, cast(concatenate([v, end]), "int8"))
    low, high = operands((count(some) if "f" in trim else 0, n - count(apply("flip", {"axis": 0}, some)) if "b" in trim else n))
    return slice(low, elementwise("maximum", low, high))
