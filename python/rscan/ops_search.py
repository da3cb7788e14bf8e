"""Functions that look for positions or are made of them: searches, the largest elements, counts, interpolation, padding."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._args import at_least, one_axis, whole
from ._spans import here
from .config import config
from .errors import RscanTypeError, RscanValueError
from .indexing import take, take_along_axis, write
from .ops_control import assert_
from .ops_create import arange, full, zeros
from .ops_elementwise import cast, where
from .ops_reduce import _along, argsort, max
from .ops_shape import concatenate, expand_dims, flip
from .variable import Variable, apply, as_variable, dtype_name, elementwise, extent, operands, static_value

__all__ = [
    "bincount", "cummax", "cummin", "digitize", "interp", "one_hot", "searchsorted", "segment_max", "segment_min",
    "segment_prod", "segment_sum", "top_k",
]  # fmt: skip


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Variable:
    """The positions (int64) in the sorted vector `a` before which the elements of `v` belong.

    With `side="left"` a position is the number of elements of `a` that are smaller, with `"right"` of those that are not larger. NaN is
    above everything. `sorter` holds the positions that sort `a`. The positions have no gradient.

        rs.searchsorted(rs.cumsum(weights), u)          # draws by their probabilities

    errors: `RscanTypeError` (E0805) for what is no number or array; `RscanValueError` (E0809) for `side` out of range; `RscanIndexError`
    (E0803) for what is no index; `RscanIndexError` (E0202), when it runs, for an index outside its axis.

    >>> rs.searchsorted([1.0, 2.0, 4.0], [2.0, 3.0]).eval()
    array([1, 2])
    """
    if side not in ("left", "right"):
        raise RscanValueError(f"side is 'left' or 'right', not {side!r}", code="E0809", labels=[(here(), "")])
    table, values = operands((a, v))
    if sorter is not None:
        table = take(table, sorter)
    return apply("searchsorted", {"right": side == "right"}, table, values)


def digitize(x: Any, bins: Any, right: bool = False) -> Variable:
    """The number (int64) of the bin that each element is in: i where `bins[i-1] <= x < bins[i]`.

    With `right` it is i where `bins[i-1] < x <= bins[i]`. Bins ascend or descend.

        rs.digitize(x, [0.0, 1.0, 10.0])                # 0 below 0, 3 from 10 on

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `bins` of another kind.

    >>> rs.digitize([0.2, 6.4, 3.0], [0.0, 1.0, 2.5, 4.0]).eval()
    array([1, 4, 3])
    """
    values, edges = operands((x, bins))
    at_least(edges, 1, "digitize")
    known = static_value(edges)
    if known is not None and len(known) and not (np.all(np.diff(known) >= 0) or np.all(np.diff(known) <= 0)):
        raise RscanValueError("bins must ascend or descend", code="E0809", labels=[(here(), "")])
    side = "left" if right else "right"
    descends = elementwise("lt", edges[-1:], edges[:1])
    if known is not None:
        descending = bool(len(known) and known[-1] < known[0])
        return extent(edges, 0) - searchsorted(flip(edges), values, side) if descending else searchsorted(edges, values, side)
    found = searchsorted(where(descends, flip(edges), edges), values, side)
    turned = apply("reduce", {"kind": "any", "axes": [0], "keepdims": False}, descends)
    return where(turned, extent(edges, 0) - found, found)


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Variable:
    """The piecewise linear function through the points (xp, fp), at x. The positions xp ascend.

    Before the first point it is `left` (`fp[0]` unless told otherwise), behind the last one `right` (`fp[-1]`); with a `period`, positions
    are taken modulo it. There are gradients to x, xp and fp.

        rs.interp(t, [0.0, 1.0, 3.0], [0.0, 2.0, -1.0])

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `xp` or `fp` of another kind; `ShapeError` (E0201) where
    shapes do not broadcast; `RscanIndexError` (E0202) for an index outside its axis.

    >>> rs.interp([1.5, 4.0], [1.0, 2.0, 3.0], [10.0, 20.0, 30.0]).eval()
    array([15., 30.])
    """
    at, places, values = as_variable(x), as_variable(xp), as_variable(fp)
    if places.ndim != 1 or values.ndim != 1:
        raise RscanTypeError(f"interp takes vectors of points, got {places!r} and {values!r}", code="E0809", labels=[(here(), "")])
    if period is not None:
        at, places = at % period, places % period
        order = argsort(places)
        places, values = places[order], values[order]
        places = concatenate([places[-1:] - period, places, places[:1] + period])
        values = concatenate([values[-1:], values, values[:1]])
    n = extent(places, 0)
    found = searchsorted(places, at, "right")
    high = elementwise("minimum", elementwise("maximum", found, 1), n - 1)
    low = high - 1
    out = _on_line(at, take(places, low), take(values, low), take(places, high), take(values, high))
    if period is not None:
        return out
    first, last = (values[0] if left is None else left), (values[-1] if right is None else right)
    return where(elementwise("lt", at, places[0]), first, where(elementwise("lt", places[-1], at), last, out))


def _on_line(at: Variable, x0: Variable, y0: Variable, x1: Variable, y1: Variable) -> Variable:
    """The line through two points at a place between them; at a point its own value, though the other's be NaN or infinite."""
    width = x1 - x0
    flat = elementwise("eq", width, 0)
    slope = (y1 - y0) / where(flat, 1, width)
    last = elementwise("eq", at, x1)
    line = where(last, slope * (at - x1) + y1, slope * (at - x0) + y0)
    # From the other point where this one's value is infinite, as NumPy does.
    line = where(elementwise("isnan", line), slope * (at - x1) + y1, line)
    exact = where(elementwise("eq", at, x0), y0, where(last, y1, where(elementwise("eq", y0, y1), y0, line)))
    return where(flat, y0 + 0 * at, where(elementwise("isnan", line), exact, line))


def cummax(x: Any, axis: int | None = None) -> Variable:
    """The largest of the elements up to each one, along an axis or flattened; NaN from the first NaN on.

    The gradient goes to the first of equal elements.

        rs.cummax([1, 3, 2, 5])                         # 1, 3, 3, 5

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `AxisError` (E0810) for an axis
    that is not there.

    >>> rs.cummax([1.0, 3.0, 2.0]).eval()
    array([1., 3., 3.])
    """
    return _along("cumextreme", x, axis, {"kind": "max"})


def cummin(x: Any, axis: int | None = None) -> Variable:
    """The smallest of the elements up to each one, along an axis or flattened; NaN from the first NaN on.

    The gradient goes to the first of equal elements.

        rs.cummin([3, 1, 2, 0])                         # 3, 1, 1, 0

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `AxisError` (E0810) for an axis
    that is not there.

    >>> rs.cummin([3.0, 1.0, 2.0]).eval()
    array([3., 1., 1.])
    """
    return _along("cumextreme", x, axis, {"kind": "min"})


def top_k(x: Any, k: int, axis: int = -1) -> tuple[Variable, Variable]:
    """The k largest elements along an axis, the largest first, and their positions (int64).

    NaN comes first; equal elements keep their order. The values have a gradient.

        values, positions = rs.top_k(scores, 3)

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `x`, `k` or `axis` of another kind; `RscanValueError`
    (E0809) for `x` or `k` out of range; `AxisError` (E0810) for an axis that is not there.

    >>> rs.eval(rs.top_k([1.0, 4.0, 3.0], 2))
    [array([4., 3.]), array([1, 2])]
    """
    v = at_least(x, 1, "top_k")
    at, most = one_axis(axis, v.ndim), whole(k, "k")
    n = extent(v, at)
    if most < 0 or (isinstance(n, int) and most > n):
        raise RscanValueError(f"top_k of {most} elements of {n}", code="E0809", labels=[(here(), "")])
    if not isinstance(n, int):
        v = assert_(v, elementwise("le", most, n), message=f"top_k: there are fewer than {most} elements")
    descending = flip(argsort(flip(v, at), at), at)
    positions = (n - 1) - descending[(slice(None),) * at + (slice(None, most),)]
    return take_along_axis(v, positions, at), positions


def one_hot(x: Any, num_classes: Any, dtype: Any = None, axis: int = -1) -> Variable:
    """A one where a new axis counts to each element of x, else zeros: `config.floatX` by default. Numbers outside the classes have no one.

        rs.one_hot([0, 2], 3)                           # [[1, 0, 0], [0, 0, 1]]

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind, (E0806) for a dtype that is not
    there; `AxisError` (E0810) for an axis that is not there.

    >>> rs.one_hot([0, 2], 3).eval()
    array([[1., 0., 0.],
           [0., 0., 1.]])
    """
    v = as_variable(x)
    at = one_axis(axis, v.ndim + 1)
    numbers = expand_dims(arange(num_classes), tuple(i for i in range(v.ndim + 1) if i != at))
    return cast(elementwise("eq", expand_dims(v, at), numbers), dtype_name(dtype, config.floatX))


def bincount(x: Any, weights: Any = None, minlength: Any = 0, *, length: Any = None) -> Variable:
    """How often each number from 0 to the largest occurs in a vector of integers that are not negative, or the sum of its weights.

    There are `minlength` results at least; with `length` so many, and a larger number is an error when it runs (E0202). In steps of loops
    `length` makes kernels of it: otherwise the extent depends on values.

        rs.bincount([0, 2, 2])                          # 1, 0, 2

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `x`, `minlength`, `length` or `weights` of another kind;
    `ShapeError` (E0201) where shapes do not broadcast; `RscanIndexError` (E0202), when it runs, for a number beyond `length`.

    >>> rs.bincount([0, 1, 1, 3], minlength=5).eval()
    array([1, 2, 0, 1, 0])
    """
    v = as_variable(x)
    if v.ndim != 1 or v.dtype[0] == "f":
        raise RscanTypeError(f"bincount takes a vector of integers, got {v!r}", code="E0809", labels=[(here(), "")])
    v = cast(v, "int64")
    v = assert_(v, elementwise("le", 0, v), message="bincount: a number is negative")
    if length is None:
        length = elementwise("maximum", max(concatenate([v, as_variable(np.array([-1]))])) + 1, minlength)
    if weights is None:
        return sums_at(apply("broadcast_like", {}, as_variable(1), v), v, length)
    return sums_at(at_least(cast(weights, "float64"), 1, "bincount"), v, length)


def _segments(data: Any, segment_ids: Any, num_segments: Any, what: str) -> tuple[Variable, Variable, list[Any]]:
    """Rows, their numbers, which are not negative, and the shape of the result."""
    rows, ids = at_least(data, 1, what), as_variable(segment_ids)
    if ids.ndim != 1 or ids.dtype[0] not in "iu":
        raise RscanTypeError(f"{what} takes an integer per row, got {ids!r}", code="E0809", labels=[(here(), "")])
    ids = assert_(ids, elementwise("le", 0, ids), message=f"{what}: a number of a segment is negative")
    return rows, ids, [num_segments, *rows.shape[1:]]


def segment_sum(data: Any, segment_ids: Any, num_segments: Any) -> Variable:
    """The sums of the rows of `data` that have the same number, one row per number from 0 on: row i is added to row `segment_ids[i]`.

    A number outside 0 … num_segments − 1 is an error when it runs (E0301, E0202).

        rs.segment_sum([1.0, 2.0, 4.0], [0, 1, 0], 2)   # 5, 2

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `data`, `segment_ids` or `num_segments` of another kind;
    `ShapeError` (E0201) where shapes do not broadcast; `RscanIndexError` (E0202), when it runs, for an index outside its axis.

    >>> rs.segment_sum([1.0, 2.0, 3.0], [0, 1, 0], 2).eval()
    array([4., 2.])
    """
    rows, ids, _ = _segments(data, segment_ids, num_segments, "segment_sum")
    return sums_at(rows, ids, num_segments)


def sums_at(rows: Variable, ids: Variable, length: Any) -> Variable:
    """`segment_sum` of numbers that are known not to be negative."""
    return write(zeros([length, *rows.shape[1:]], rows.dtype), ids, rows, "inc")


def segment_prod(data: Any, segment_ids: Any, num_segments: Any) -> Variable:
    """The products of rows with the same number, as `segment_sum`; 1 where there are none.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `data`, `segment_ids` or `num_segments` of another kind;
    `ShapeError` (E0201) where shapes do not broadcast; `RscanIndexError` (E0202), when it runs, for an index outside its axis.

    >>> rs.segment_prod([2.0, 3.0, 4.0], [0, 2, 0], 3).eval()
    array([8., 1., 3.])
    """
    rows, ids, shape = _segments(data, segment_ids, num_segments, "segment_prod")
    return full(shape, 1, rows.dtype).at[ids].multiply(rows)


def segment_max(data: Any, segment_ids: Any, num_segments: Any) -> Variable:
    """The largest of rows with the same number, as `segment_sum`, element by element; the dtype's smallest number where there are none.

    NaN is larger than all. The gradient goes to the row that gave the element, of equal ones as with `rs.maximum`.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `data`, `segment_ids` or `num_segments` of another kind;
    `ShapeError` (E0201) where shapes do not broadcast; `RscanIndexError` (E0202), when it runs, for an index outside its axis.

    >>> rs.segment_max([2.0, 3.0, 4.0], [0, 2, 0], 3).eval()
    array([  4., -inf,   3.])
    """
    rows, ids, shape = _segments(data, segment_ids, num_segments, "segment_max")
    return full(shape, _extreme(rows.dtype, -1), rows.dtype).at[ids].max(rows)


def segment_min(data: Any, segment_ids: Any, num_segments: Any) -> Variable:
    """The smallest of rows with the same number, as `segment_max`; where there are none the largest number of the dtype.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `data`, `segment_ids` or `num_segments` of another kind;
    `ShapeError` (E0201) where shapes do not broadcast; `RscanIndexError` (E0202), when it runs, for an index outside its axis.

    >>> rs.segment_min([2, 3, 4], [0, 1, 0], 2).eval()
    array([2, 3])
    """
    rows, ids, shape = _segments(data, segment_ids, num_segments, "segment_min")
    return full(shape, _extreme(rows.dtype, 1), rows.dtype).at[ids].min(rows)


def _extreme(dtype: str, sign: int) -> Any:
    """The smallest number of a dtype (sign −1), or the largest."""
    if dtype[0] == "f":
        return sign * np.inf
    if dtype == "bool":
        return sign > 0
    info = np.iinfo(dtype)
    return info.max if sign > 0 else info.min
