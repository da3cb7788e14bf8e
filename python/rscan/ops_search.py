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
    "bincount", "cummax", "cummin", "digitize", "interp", "one_hot", "pad", "searchsorted", "segment_sum", "top_k",
]  # fmt: skip


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Variable:
    """The positions (int64) in the sorted vector `a` before which the elements of `v` belong.

    With `side="left"` a position is the number of elements of `a` that are smaller, with `"right"` of those that are not larger. NaN is
    above everything. `sorter` holds the positions that sort `a`. The positions have no gradient.

        rs.searchsorted(rs.cumsum(weights), u)          # draws by their probabilities

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
    x0, y0 = take(places, low), take(values, low)
    width = take(places, high) - x0
    flat = elementwise("eq", width, 0)
    slope = (take(values, high) - y0) / where(flat, 1, width)
    out = where(flat, y0 + 0 * slope, slope * (at - x0) + y0)
    if period is not None:
        return out
    first, last = (values[0] if left is None else left), (values[-1] if right is None else right)
    return where(elementwise("lt", at, places[0]), first, where(elementwise("lt", places[-1], at), last, out))


def cummax(x: Any, axis: int | None = None) -> Variable:
    """The largest of the elements up to each one, along an axis or flattened; NaN from the first NaN on.

    The gradient goes to the first of equal elements.

        rs.cummax([1, 3, 2, 5])                         # 1, 3, 3, 5

    >>> rs.cummax([1.0, 3.0, 2.0]).eval()
    array([1., 3., 3.])
    """
    return _along("cumextreme", x, axis, {"kind": "max"})


def cummin(x: Any, axis: int | None = None) -> Variable:
    """The smallest of the elements up to each one, along an axis or flattened; NaN from the first NaN on.

    The gradient goes to the first of equal elements.

        rs.cummin([3, 1, 2, 0])                         # 3, 1, 1, 0

    >>> rs.cummin([3.0, 1.0, 2.0]).eval()
    array([3., 1., 1.])
    """
    return _along("cumextreme", x, axis, {"kind": "min"})


def top_k(x: Any, k: int, axis: int = -1) -> tuple[Variable, Variable]:
    """The k largest elements along an axis, the largest first, and their positions (int64).

    NaN comes first; equal elements keep their order. The values have a gradient.

        values, positions = rs.top_k(scores, 3)

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

    >>> rs.one_hot([0, 2], 3).eval()
    array([[1., 0., 0.],
           [0., 0., 1.]])
    """
    v = as_variable(x)
    at = one_axis(axis, v.ndim + 1)
    numbers = expand_dims(arange(num_classes), tuple(i for i in range(v.ndim + 1) if i != at))
    return cast(elementwise("eq", expand_dims(v, at), numbers), dtype_name(dtype, config.floatX))


def bincount(x: Any, weights: Any = None, minlength: Any = 0) -> Variable:
    """How often each number from 0 to the largest occurs in a vector of integers that are not negative, or the sum of its weights.

    There are `minlength` results at least.

        rs.bincount([0, 2, 2])                          # 1, 0, 2

    >>> rs.bincount([0, 1, 1, 3], minlength=5).eval()
    array([1, 2, 0, 1, 0])
    """
    v = as_variable(x)
    if v.ndim != 1 or v.dtype[0] == "f":
        raise RscanTypeError(f"bincount takes a vector of integers, got {v!r}", code="E0809", labels=[(here(), "")])
    v = cast(v, "int64")
    largest = max(concatenate([v, as_variable(np.array([-1]))]))
    fine = elementwise("le", 0, v)
    v = assert_(v, fine, message="bincount: a number is negative")
    length = elementwise("maximum", largest + 1, minlength)
    if weights is None:
        return segment_sum(apply("broadcast_like", {}, as_variable(1), v), v, length)
    return segment_sum(cast(weights, "float64"), v, length)


def segment_sum(data: Any, segment_ids: Any, num_segments: Any) -> Variable:
    """The sums of the rows of `data` that have the same number, one row per number from 0 on: row i is added to row `segment_ids[i]`.

        rs.segment_sum([1.0, 2.0, 4.0], [0, 1, 0], 2)   # 5, 2

    >>> rs.segment_sum([1.0, 2.0, 3.0], [0, 1, 0], 2).eval()
    array([4., 2.])
    """
    rows, ids = at_least(data, 1, "segment_sum"), as_variable(segment_ids)
    if ids.ndim != 1:
        raise RscanTypeError(f"segment_sum takes a number per row, got {ids!r}", code="E0809", labels=[(here(), "")])
    start = zeros([num_segments, *rows.shape[1:]], rows.dtype)
    return write(start, ids, rows, "inc")


def _pairs(given: Any, ndim: int, what: str) -> list[tuple[Any, Any]]:
    """What is to be done before and behind each axis: one number, a pair, or a pair per axis."""
    is_list = isinstance(given, (list, tuple)) or (isinstance(given, np.ndarray) and given.ndim > 0)
    items = list(given) if is_list else [given]
    if not any(isinstance(i, (list, tuple)) or np.ndim(i) for i in items if not isinstance(i, Variable)):
        items = [items]
    pairs = [tuple(i) if isinstance(i, (list, tuple, np.ndarray)) else (i,) for i in items]
    pairs = [p * 2 if len(p) == 1 else p for p in pairs] * (ndim if len(pairs) == 1 else 1)
    if len(pairs) != ndim or any(len(p) != 2 for p in pairs):
        text = f"{what} is a number, a pair, or a pair for each of {ndim} axes, not {given!r}"
        raise RscanTypeError(text, code="E0809", labels=[(here(), "")])
    return [(a, b) for a, b in pairs]


def _reached(mode: str, before: Any, n: Any, behind: Any) -> Variable:
    """The positions on an axis of n elements that a padded axis shows."""
    wide = arange(0 - before, n + behind)
    if mode == "edge":
        return elementwise("minimum", elementwise("maximum", wide, 0), n - 1)
    if mode == "wrap":
        return wide % n
    turn = 1 if mode == "reflect" else 0
    period = 2 * n - 2 * turn
    period = elementwise("maximum", period, 1)
    place = wide % period
    return elementwise("minimum", place, period - 1 + turn - place)


def pad(x: Any, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> Variable:
    """x with so many elements before and behind each axis.

    `pad_width` is a number, a pair, or a pair per axis, and so is `constant_values`, which the mode `constant` puts there. The mode `edge`
    repeats the first and the last element, `reflect` mirrors at them, `symmetric` behind them, `wrap` begins again at the other end.

        rs.pad(x, 1)
        rs.pad(rows, ((2, 0), (0, 0)), constant_values=np.nan)

    >>> rs.pad([1.0, 2.0], (1, 2)).eval()
    array([0., 1., 2., 0., 0.])
    >>> rs.pad([1, 2, 3], 1, mode="reflect").eval()
    array([2, 1, 2, 3, 2])
    """
    v = as_variable(x)
    if mode not in ("constant", "edge", "reflect", "symmetric", "wrap"):
        raise RscanValueError(
            f"pad has the modes constant, edge, reflect, symmetric and wrap, not {mode!r}", code="E0809", labels=[(here(), "")]
        )
    widths, values = _pairs(pad_width, v.ndim, "pad_width"), _pairs(constant_values, v.ndim, "constant_values")
    for axis, ((before, behind), constants) in enumerate(zip(widths, values, strict=True)):
        if any(not isinstance(w, Variable) and whole(w, "pad_width") < 0 for w in (before, behind)):
            raise RscanValueError("pad_width is not negative", code="E0809", labels=[(here(), "")])
        if not isinstance(before, Variable) and not isinstance(behind, Variable) and before == behind == 0:
            continue
        if mode == "constant":
            shape = v.shape
            sides = [
                full([*shape[:axis], width, *shape[axis + 1 :]], cast(value, v.dtype))
                for width, value in zip((before, behind), constants, strict=True)
            ]
            v = concatenate([sides[0], v, sides[1]], axis)
        else:
            v = take(v, _reached(mode, before, extent(v, axis), behind), axis)
    return v
