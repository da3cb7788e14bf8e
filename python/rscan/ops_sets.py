"""Distinct elements, membership, partial sorting, positions of what is not 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._args import at_least, one_axis, whole
from ._spans import here
from .errors import RscanTypeError, RscanValueError
from .indexing import nonzero, take, take_along_axis
from .ops_control import assert_
from .ops_create import arange, zeros
from .ops_elementwise import cast, clip, where
from .ops_reduce import all as _all
from .ops_reduce import argsort, cumsum, prod, sort, sort_kind
from .ops_reduce import sum as _sum
from .ops_search import searchsorted, sums_at
from .ops_shape import broadcast_like, broadcast_to, concatenate, expand_dims, moveaxis, ravel, reshape, stack, transpose
from .variable import Variable, as_variable, elementwise, extent, operands

__all__ = [
    "allclose", "argpartition", "argwhere", "array_equal", "array_equiv", "flatnonzero", "intersect1d", "isin", "lexsort", "partition",
    "ravel_multi_index", "setdiff1d", "setxor1d", "union1d", "unique", "unique_all", "unique_counts", "unique_inverse",
    "unique_values", "unravel_index",
]  # fmt: skip


def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Variable:
    """True where all elements are close, as `isclose` says.

    errors: `RscanTypeError` (E0805) for what is no number or array; `ShapeError` (E0201) where shapes do not broadcast.

    >>> rs.allclose([1.0, 2.0], [1.0, 2.0 + 1e-9]).eval()
    array(True)
    """
    from .ops_elementwise import isclose

    return _all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Variable:
    """True where shapes and all elements are equal; NaN equals itself if `equal_nan`.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.array_equal([1, 2], [1, 2]).eval()
    array(True)
    """
    a, b = operands((a1, a2))
    if a.ndim != b.ndim or any(None not in (m, n) and m != n for m, n in zip(a.static_shape, b.static_shape, strict=True)):
        return as_variable(False)
    fits = as_variable(True)
    if not all(a._v.same_dim(k, b._v, k) for k in range(a.ndim)):
        for m, n in zip(a.shape, b.shape, strict=True):
            fits = elementwise("logical_and", fits, elementwise("eq", m, n))
        a, b = ravel(a), ravel(b)
        common = elementwise("minimum", a.shape[0], b.shape[0])
        a, b = a[:common], b[:common]
    same = elementwise("eq", a, b)
    if equal_nan and a.dtype.startswith("float"):
        same = elementwise("logical_or", same, elementwise("logical_and", elementwise("isnan", a), elementwise("isnan", b)))
    return elementwise("logical_and", fits, _all(same))


def array_equiv(a1: Any, a2: Any) -> Variable:
    """True where all elements are equal, broadcast to one shape.

    errors: `RscanTypeError` (E0805) for what is no number or array; `ShapeError` (E0201) where shapes do not broadcast.

    >>> rs.array_equiv([1, 1], [[1], [1]]).eval()
    array(True)
    """
    return _all(elementwise("eq", *operands((a1, a2))))


def flatnonzero(a: Any) -> Variable:
    """The positions of elements that are not 0, in the flattened array.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.flatnonzero([0, 3, 0, 4]).eval()
    array([1, 3])
    """
    return nonzero(ravel(as_variable(a)))[0]


def argwhere(a: Any) -> Variable:
    """The positions of elements that are not 0: a row for each.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.argwhere([0, 3, 0, 4]).eval()
    array([[1],
           [3]])
    """
    v = as_variable(a)
    found = stack(nonzero(v), 1)
    return found if v.ndim else found[:, :0]


def _in_order(order: str) -> bool:
    """True where the last axis runs fastest, "C"; False where the first one does, "F"."""
    if order not in ("C", "F"):
        raise RscanValueError(f"order is 'C' or 'F', not {order!r}", code="E0809", labels=[(here(), "")])
    return order == "C"


def _checked(places: Variable, n: Any, what: str) -> Variable:
    """Positions from 0 to n − 1; others are an error when the function runs."""
    fits = elementwise("logical_and", elementwise("le", 0, places), elementwise("lt", places, n))
    return assert_(places, fits, message=f"{what}: a position lies outside the array")


def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Variable, ...]:
    """The positions along each axis of positions in the flattened array of a shape: in rows, or with `order="F"` in columns. Those outside
    are an error when the function runs.

    errors: `RscanTypeError` (E0805) for what is no number or array; `ShapeError` (E0201) where shapes do not broadcast.

    >>> rs.eval(rs.unravel_index([5, 1], (2, 3)))
    [array([1, 0]), array([2, 1])]
    """
    rows, extents = _in_order(order), list(shape) if isinstance(shape, (tuple, list)) else [shape]
    total: Any = 1
    for n in extents:
        total = total * n
    left, found = _checked(as_variable(indices), total, "unravel_index"), []
    for n in reversed(extents) if rows else extents:
        found.append(left % n)
        left = left // n
    return tuple(reversed(found)) if rows else tuple(found)


def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Variable:
    """The positions in the flattened array of a shape, given those along each axis: in rows, or with `order="F"` in columns.

    Those outside are an error when the function runs, or as `mode` says, one for all axes or one for each: they "wrap", or "clip".

    errors: `RscanValueError` (E0809) for `multi_index` or `dims` out of range; `ShapeError` (E0201) where shapes do not broadcast.

    >>> rs.ravel_multi_index(([1, 0], [2, 1]), (2, 3)).eval()
    array([5, 1])
    """
    items, extents = list(multi_index), list(dims)
    if len(items) != len(extents):
        raise RscanValueError(f"{len(items)} positions for {len(extents)} axes", code="E0809", labels=[(here(), "")])
    modes = list(mode) if isinstance(mode, (tuple, list)) else [mode] * len(items)
    fitted = [_fitted(as_variable(place), n, m) for place, n, m in zip(items, extents, modes, strict=True)]
    pairs = list(zip(fitted, extents, strict=True))
    pairs = pairs if _in_order(order) else pairs[::-1]
    out = pairs[0][0]
    for place, n in pairs[1:]:
        out = out * n + place
    return out


def _fitted(place: Variable, n: Any, mode: str) -> Variable:
    """Positions on an axis of n elements."""
    if mode not in ("raise", "wrap", "clip"):
        raise RscanValueError(f"the modes of positions are raise, wrap and clip, not {mode!r}", code="E0809", labels=[(here(), "")])
    if mode == "wrap":
        return place % n
    return clip(place, 0, n - 1) if mode == "clip" else _checked(place, n, "ravel_multi_index")


# Partial orders. A whole sort is one: elements on either side of a place are sorted, too.


def _places(kth: Any, kind: Any, order: Any) -> None:
    sort_kind(kind, order, ("introselect",))
    for k in kth if isinstance(kth, (tuple, list)) else [kth]:
        if not isinstance(k, Variable):
            whole(k, "kth")


def partition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: None = None) -> Variable:
    """What is smaller than the k-th smallest element before it, what is larger behind it, along an axis: in fact all is sorted.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `kth` or `axis` of another kind; `AxisError` (E0810) for an
    axis that is not there.

    >>> rs.partition([3.0, 1.0, 2.0], 1).eval()[1]
    np.float64(2.0)
    """
    _places(kth, kind, order)
    return sort(a, axis)


def argpartition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: None = None) -> Variable:
    """The positions (int64) that partition along an axis, as `partition` does.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `kth` or `axis` of another kind; `AxisError` (E0810) for an
    axis that is not there.

    >>> rs.argpartition([3.0, 1.0, 2.0], 0).eval()[0]
    np.int64(1)
    """
    _places(kth, kind, order)
    return argsort(a, axis)


def lexsort(keys: Any, axis: int = -1) -> Variable:
    """The positions (int64) that sort by several keys: the last one first, the others where those behind them are equal.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `keys` or `axis` of another kind; `AxisError` (E0810) for
    an axis that is not there.

    >>> rs.lexsort(([1, 0, 0], [2, 2, 1])).eval()
    array([2, 1, 0])
    """
    if isinstance(keys, Variable) and keys.ndim and keys.static_shape[0] is None:
        text = f"lexsort takes keys whose number is known, got {keys!r}"
        raise RscanTypeError(text, code="E0809", labels=[(here(), "")], helps=["give the keys as a tuple, rs.lexsort((a, b))"])
    items = list(keys)
    if not items:
        raise RscanTypeError("lexsort takes a key or more", code="E0809", labels=[(here(), "")])
    first = at_least(items[0], 1, "lexsort")
    at = one_axis(axis, first.ndim)
    order = argsort(first, at)
    for key in items[1:]:
        v = as_variable(key)
        order = take_along_axis(order, argsort(take_along_axis(v, order, at), at), at)
    return order


# Sets.


def isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: str | None = None) -> Variable:
    """True for elements that are among others. (`assume_unique` and `kind` choose NumPy's algorithm; here is one.)

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.isin([1, 2, 3], [2, 4]).eval()
    array([False,  True, False])
    """
    v, others = operands((element, test_elements))
    table = sort(ravel(others))
    missing = elementwise("eq", extent(table, 0), 0)
    # A last element that nothing finds lets the search look behind the end.
    table = concatenate([table, zeros([1], table.dtype)])
    place = searchsorted(table[:-1], v, "left")
    found = elementwise("logical_and", elementwise("eq", take(table, place), v), elementwise("lt", place, extent(table, 0) - 1))
    found = elementwise("logical_and", found, elementwise("logical_not", missing))
    return elementwise("logical_not", found) if invert else found


def _runs(x: Variable, equal_nan: bool = True) -> tuple[Variable, Variable]:
    """A sorted array's first element (row) of each run of equal ones, as truth values."""
    same = elementwise("eq", x[1:], x[:-1])
    if x.ndim > 1:
        same = _all(same, tuple(range(1, x.ndim)))
    elif equal_nan and x.dtype.startswith("float"):
        same = elementwise("logical_or", same, elementwise("logical_and", elementwise("isnan", x[1:]), elementwise("isnan", x[:-1])))
    first = elementwise("eq", arange(extent(x, 0)), 0)
    return concatenate([first[:1], elementwise("logical_not", same)]), first


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
    size: Any = None,
    fill_value: Any = None,
) -> Any:
    """The distinct elements, sorted whatever `sorted` says; of slices along an axis in the order of their first elements that differ.

    NaN equal each other if `equal_nan`; slices with NaN differ from all others, as for NumPy. On request also the position of the first of
    each, the number of the distinct one that each element is, and how often each occurs.

    How many there are depends on values. With `size` there are that many: more are cut off, and where there are fewer, `fill_value` (the
    smallest element) stands behind them, which occurs 0 times. With a size it can be used under `vmap` and as the state of a loop.

        values, counts = rs.unique(x, return_counts=True)

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` or `size` of another kind; `RscanValueError` (E0809)
    for `size` out of range; `AxisError` (E0810) for an axis that is not there; `ShapeError` (E0201) where shapes do not broadcast.

    >>> rs.unique([3, 1, 3], size=3, fill_value=-1).eval()
    array([ 1,  3, -1])
    >>> rs.unique([[2, 1], [1, 5], [2, 1]], axis=0).eval()
    array([[1, 5],
           [2, 1]])
    """
    given = as_variable(ar)
    at = None if axis is None else one_axis(axis, given.ndim)
    v = ravel(given) if at is None else moveaxis(given, at, 0)
    order = argsort(v) if at is None else _order_of_rows(v)
    ordered = take(v, order, axis=0)
    starts, _ = _runs(ordered, equal_nan)
    number = cumsum(cast(starts, "int64")) - 1
    if size is None:
        places = nonzero(starts)[0]
        values, index, count = take(ordered, places, axis=0), take(order, places), extent(places, 0)
    else:
        places, values, index = _padded(ordered, order, starts, number, size, fill_value)
        count = size
    out = [values if at is None else moveaxis(values, 0, at)]
    if return_index:
        out.append(index)
    if return_inverse:
        back = zeros([extent(v, 0)], "int64").at[order].set(number)
        back = back if size is None else elementwise("minimum", back, as_variable(count) - 1)
        out.append(reshape(back, given.shape) if at is None else back)
    if return_counts:
        kept = number if size is None else elementwise("minimum", number, count)
        counts = sums_at(broadcast_like(as_variable(1), kept), kept, count if size is None else as_variable(count) + 1)
        out.append(counts if size is None else counts[:-1])
    return out[0] if len(out) == 1 else tuple(out)


def _order_of_rows(x: Variable) -> Variable:
    """Positions of the slices along the first axis in the order of their first elements that differ: sorted by each element, the last one
    first, in the order of before where they are equal."""
    from .loop import loop

    n = extent(x, 0)
    columns = transpose(reshape(x, [x.shape[0], prod(as_variable(x.shape[1:])) if x.ndim > 1 else 1]))
    sorted_by = lambda column, order: take(order, argsort(take(column, order), stable=True))
    return loop(sorted_by, over=columns, init=arange(n), reverse=True).last


def _padded(
    ordered: Variable, order: Variable, starts: Variable, number: Variable, size: Any, fill_value: Any
) -> tuple[Variable, Variable, Variable]:
    """So many first elements of runs: their places, values and positions."""
    if not isinstance(size, Variable) and whole(size, "size") < 0:
        raise RscanValueError(f"size is not negative, got {size}", code="E0809", labels=[(here(), "")])
    n = extent(ordered, 0)
    keep = elementwise("logical_and", starts, elementwise("lt", number, size))
    # What is not kept is written to a place that is cut off.
    to = where(keep, number, size)
    places = zeros([as_variable(size) + 1], "int64").at[to].set(arange(n))[: size if isinstance(size, Variable) else int(size)]
    there = elementwise("lt", arange(size), _sum(cast(starts, "int64")))
    rows = ordered.shape[1:]
    if fill_value is None:
        ordered = assert_(ordered, elementwise("gt", n, 0), message="unique: nothing to fill with; give a fill_value")
        filler = ordered[0]
    else:
        filler = broadcast_to(cast(fill_value, ordered.dtype), rows)
    safe = where(there, places, 0)
    empty_safe = concatenate([ordered, filler[None]])
    values = where(expand_dims(there, tuple(range(1, ordered.ndim))), take(empty_safe, safe, axis=0), filler)
    return places, values, where(there, take(concatenate([order, zeros([1], "int64")]), safe), 0)


def unique_values(x: Any) -> Variable:
    """The distinct elements, sorted.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.unique_values([3, 1, 3]).eval()
    array([1, 3])
    """
    return unique(x)


def unique_counts(x: Any) -> tuple[Variable, Variable]:
    """The distinct elements, sorted, and how often each occurs.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.eval(list(rs.unique_counts([3, 1, 3])))
    [array([1, 3]), array([1, 2])]
    """
    values, counts = unique(x, return_counts=True)
    return values, counts


def unique_inverse(x: Any) -> tuple[Variable, Variable]:
    """The distinct elements, sorted, and the number of the one that each element is.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.eval(list(rs.unique_inverse([3, 1, 3])))
    [array([1, 3]), array([1, 0, 1])]
    """
    values, inverse = unique(x, return_inverse=True)
    return values, inverse


def unique_all(x: Any) -> tuple[Variable, Variable, Variable, Variable]:
    """The distinct elements, sorted, where each is first, the number of the one that each element is, and how often each is there.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.eval(list(rs.unique_all([3, 1, 3])))
    [array([1, 3]), array([1, 0]), array([1, 0, 1]), array([1, 2])]
    """
    values, first, inverse, counts = unique(x, return_index=True, return_inverse=True, return_counts=True)
    return values, first, inverse, counts


def union1d(ar1: Any, ar2: Any) -> Variable:
    """What is in one of two arrays, sorted, each once.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.union1d([1, 2], [2, 3]).eval()
    array([1, 2, 3])
    """
    return unique(concatenate([ravel(as_variable(ar1)), ravel(as_variable(ar2))]))


def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """What is in both arrays, sorted, each once; with `return_indices` also where it is first in the one array and in the other.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.intersect1d([1, 2, 3], [2, 3, 4]).eval()
    array([2, 3])
    """
    a, b = operands((ar1, ar2))
    common = np.result_type(a.dtype, b.dtype).name
    if not return_indices:
        values = unique(cast(a, common))
        return values[isin(values, b)]
    (values, first), (others, second) = (unique(cast(v, common), return_index=True) for v in (a, b))
    both = isin(values, others)
    values = values[both]
    return values, first[both], second[searchsorted(others, values)]


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Variable:
    """What is in the first array and not in the second, sorted, each once.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.setdiff1d([1, 2, 3], [2]).eval()
    array([1, 3])
    """
    values = unique(ar1)
    return values[isin(values, ar2, invert=True)]


def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Variable:
    """What is in one of two arrays and not in the other, sorted, each once.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.setxor1d([1, 2], [2, 3]).eval()
    array([1, 3])
    """
    return sort(concatenate([setdiff1d(ar1, ar2), setdiff1d(ar2, ar1)]))
