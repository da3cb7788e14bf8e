"""Functions that cut arrays into pieces, repeat them, move them along axes, and put more elements at their edges."""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from ._args import one_axis, whole
from ._spans import here
from .errors import RscanTypeError, RscanValueError, ShapeError
from .indexing import take
from .ops_create import arange, full, linspace
from .ops_elementwise import cast, where
from .ops_quantiles import median
from .ops_reduce import max, mean, min
from .ops_shape import broadcast_to, concatenate, expand_dims, flip, ravel, reshape
from .variable import Variable, apply, as_variable, elementwise, extent, operands

__all__ = ["array_split", "pad", "roll", "split", "tile"]


def split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[Variable]:
    """Parts along an axis: so many equal ones, or cut at these positions.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `RscanValueError` (E0809) for
    `indices_or_sections` out of range; `AxisError` (E0810) for an axis that is not there; `RscanIndexError` (E0803) for what is no index;
    `ShapeError` (E0812) for unequal parts.

    >>> rs.eval(rs.split(np.arange(6), 3))
    [array([0, 1]), array([2, 3]), array([4, 5])]
    """
    v = as_variable(x)
    at = one_axis(axis, v.ndim)
    if isinstance(indices_or_sections, (int, np.integer)):
        n, parts = v.static_shape[at], _sections(indices_or_sections)
        if n is not None and n % parts:
            raise ShapeError(f"{n} elements do not split into {parts} equal parts", code="E0812", labels=[(here(), "")])
        if n is None:
            even = apply("eq", {}, *operands((extent(v, at) % parts, 0)))
            v = apply("assert", {"message": f"axis {at} does not split into {parts} equal parts"}, v, even)
        return _cut(v, [extent(v, at) * i // parts for i in range(1, parts)], at)
    return _cut(v, list(indices_or_sections), at)


def _sections(number: Any) -> int:
    if int(number) < 1:
        raise RscanValueError(f"an array splits into 1 part or more, not {number}", code="E0809", labels=[(here(), "")])
    return int(number)


def array_split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[Variable]:
    """So many parts along an axis, the first ones longer where they cannot be equal; or cut at these positions.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `RscanValueError` (E0809) for
    `indices_or_sections` out of range; `AxisError` (E0810) for an axis that is not there.

    >>> rs.eval(rs.array_split(np.arange(5), 2))
    [array([0, 1, 2]), array([3, 4])]
    """
    v = as_variable(x)
    at = one_axis(axis, v.ndim)
    if not isinstance(indices_or_sections, (int, np.integer)):
        return _cut(v, list(indices_or_sections), at)
    n, sections = extent(v, at), _sections(indices_or_sections)
    ends = [i * (n // sections) + _least(i, n % sections) for i in range(1, sections)]
    return _cut(v, ends, at)


def _least(a: int, b: Any) -> Any:
    return builtins.min(a, b) if isinstance(b, int) else apply("minimum", {}, *operands((a, b)))


def _cut(x: Variable, ends: list[Any], axis: int) -> list[Variable]:
    bounds = [None, *ends, None]
    before = (slice(None),) * axis
    return [x[(*before, slice(a, b))] for a, b in itertools.pairwise(bounds)]


def tile(x: Any, reps: Any) -> Variable:
    """Repeated as a whole, so often along each axis.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `reps` of another kind; `RscanValueError` (E0222) for
    extents that are negative or no scalars.

    >>> rs.tile([1, 2], 2).eval()
    array([1, 2, 1, 2])
    """
    v = as_variable(x)
    counts = list(reps) if isinstance(reps, (tuple, list, np.ndarray)) else [reps]
    v = expand_dims(v, tuple(range(builtins.max(0, len(counts) - v.ndim))))
    counts = [1] * (v.ndim - len(counts)) + counts
    extents_before = v.shape
    pairs = [item for pair in zip(counts, extents_before, strict=True) for item in pair]
    wide = broadcast_to(expand_dims(v, tuple(range(0, 2 * v.ndim, 2))), pairs)
    return reshape(wide, [c * n for c, n in zip(counts, extents_before, strict=True)])


def roll(x: Any, shift: Any, axis: Any = None) -> Variable:
    """Moved along an axis (or flattened) by a number of places; what leaves at one end enters at the other.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `AxisError` (E0810) for an axis
    that is not there; `RscanIndexError` (E0803) for what is no index; `RscanValueError` (E0809) for other numbers of shifts than of axes.

    >>> rs.roll([1, 2, 3], 1).eval()
    array([3, 1, 2])
    """
    v = as_variable(x)
    if axis is None:
        return reshape(roll(ravel(v), shift, 0), v.shape)
    if isinstance(axis, (tuple, list)) or isinstance(shift, (tuple, list)):
        axes, shifts = (list(a) if isinstance(a, (tuple, list)) else [a] for a in (axis, shift))
        several = builtins.max(len(axes), len(shifts))
        if not {len(axes), len(shifts)} <= {1, several}:
            text = f"roll takes as many shifts as axes, got {len(shifts)} and {len(axes)}"
            raise RscanValueError(text, code="E0809", labels=[(here(), "")])
        for k in range(several):
            v = roll(v, shifts[k % len(shifts)], axes[k % len(axes)])
        return v
    at = one_axis(axis, v.ndim)
    n = extent(v, at)
    if isinstance(n, int) and n == 0:
        return v
    first = n - shift % (n if isinstance(n, int) else apply("maximum", {}, *operands((n, 1))))
    before = (slice(None),) * at
    return concatenate([v[(*before, slice(first, None))], v[(*before, slice(None, first))]], at)


def _pairs(given: Any, ndim: int, what: str) -> list[tuple[Any, Any]]:
    """What is to be done before and behind each axis: one number, a pair, a pair per axis, or a dict of them."""
    if isinstance(given, dict):
        sides = {one_axis(axis, ndim): width if isinstance(width, (tuple, list)) else (width, width) for axis, width in given.items()}
        given = [sides.get(axis, (0, 0)) for axis in range(ndim)]
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


def _ends(v: Variable, axis: int, before: Any, behind: Any, mode: str) -> list[list[Variable]] | None:
    """What stands before and behind an axis as parts of it, which loops read where they are; none where it may be more than that."""
    if isinstance(before, Variable) or isinstance(behind, Variable):
        return None
    n, ahead, widths = extent(v, axis), (slice(None),) * axis, [whole(before, "pad_width"), whole(behind, "pad_width")]
    if mode != "edge" and builtins.max(widths) > 1:
        skipped = int(mode == "reflect")
        if not isinstance(n, int) or n < builtins.max(widths) + skipped:
            return None
        if mode == "wrap":
            return [[v[(*ahead, slice(n - widths[0], n))]], [v[(*ahead, slice(0, widths[1]))]]]
        first, last = v[(*ahead, slice(skipped, widths[0] + skipped))], v[(*ahead, slice(n - widths[1] - skipped, n - skipped))]
        return [[flip(first, axis)], [flip(last, axis)]]
    places: tuple[Any, Any] = (-1, 0) if mode == "wrap" else (0, -1)
    if mode == "reflect":
        places = (elementwise("minimum", as_variable(n - 1), 1), elementwise("maximum", as_variable(n - 2), 0))

    def repeated(place: Any, width: int) -> Variable:
        row = expand_dims(v[(*ahead, place)], axis)
        return row if width == 1 else broadcast_to(row, [*v.shape[:axis], width, *v.shape[axis + 1 :]])

    return [[repeated(place, width)] if width else [] for place, width in zip(places, widths, strict=True)]


def _mirrored(v: Variable, axis: int, before: Any, behind: Any, mode: str, odd: bool) -> Variable:
    """Reflected at the edges, or, symmetric, behind them; odd: the differences to the edge with the other sign."""
    n = extent(v, axis)
    period = elementwise("maximum", as_variable(n - (1 if mode == "reflect" else 0)), 1)
    wide = arange(0 - before, n + behind)
    turn, place = wide // period, wide % period
    turned = elementwise("eq", turn % 2, 1)
    found = take(v, where(turned, elementwise("maximum", n - 1 - place, 0), place), axis)
    if not odd:
        return found
    column = tuple(k for k in range(v.ndim) if k != axis)
    first, last = take(v, as_variable([0]), axis), take(v, as_variable([0]) + (n - 1), axis)
    steps = cast(expand_dims(turn // 2, column), v.dtype) * (last - first)
    return where(expand_dims(turned, column), 2 * last - found, found) + 2 * steps


def _repeated(v: Variable, axis: int, before: Any, behind: Any, mode: str) -> Variable:
    """The edges again, or the elements from the other end."""
    n = extent(v, axis)
    wide = arange(0 - before, n + behind)
    place = wide % n if mode == "wrap" else elementwise("minimum", elementwise("maximum", wide, 0), n - 1)
    return take(v, place, axis)


_STATISTICS: dict[str, Callable[..., Variable]] = {"maximum": max, "minimum": min, "mean": mean, "median": median}


def _statistics(v: Variable, axis: int, lengths: tuple[Any, Any], mode: str) -> list[Variable]:
    """A statistic of so many elements at the one end and at the other."""
    all_of, ahead = slice(None), (slice(None),) * axis
    if any(length is not None and whole(length, "stat_length") < 1 for length in lengths):
        raise RscanValueError("stat_length is 1 or more", code="E0809", labels=[(here(), "")])
    first, last = lengths
    ends = [all_of if first is None else slice(first), all_of if last is None else slice(-last, None)]
    found = [_STATISTICS[mode](v[(*ahead, end)], axis, keepdims=True) for end in ends]
    return [cast(elementwise("round", f) if v.dtype[0] in "iu" and f.dtype[0] == "f" else f, v.dtype) for f in found]


def _sides(v: Variable, axis: int, widths: tuple[Any, Any], mode: str, values: tuple[Any, Any]) -> list[Variable]:
    """What stands before and behind an axis: constants, statistics, or ramps to constants."""
    if mode == "linear_ramp":
        edges = [take(v, as_variable(0), axis), take(v, as_variable(extent(v, axis) - 1), axis)]
        ramps = [linspace(end, e, w, endpoint=False, dtype=v.dtype, axis=axis) for end, e, w in zip(values, edges, widths, strict=True)]
        return [ramps[0], flip(ramps[1], axis)]
    given = _statistics(v, axis, values, mode) if mode in _STATISTICS else [cast(value, v.dtype) for value in values]
    return [full([*v.shape[:axis], width, *v.shape[axis + 1 :]], value) for width, value in zip(widths, given, strict=True)]


_MODES = ("constant", "edge", "empty", "linear_ramp", "maximum", "mean", "median", "minimum", "reflect", "symmetric", "wrap")


def pad(
    x: Any,
    pad_width: Any,
    mode: str = "constant",
    constant_values: Any = 0,
    *,
    end_values: Any = 0,
    stat_length: Any = None,
    reflect_type: str = "even",
) -> Variable:
    """x with so many elements before and behind each axis, of x's dtype.

    `pad_width` is a number, a pair, a pair per axis, or a dict of axes, and so is `constant_values`, which the mode `constant` puts
    there. The mode `edge` repeats the first and the last element, `reflect` mirrors at them, `symmetric` behind them (with
    `reflect_type="odd"` what an element is above the edge it is below it), `wrap` begins again at the other end. `linear_ramp` goes to
    `end_values` in even steps; `maximum`, `mean`, `median` and `minimum` are those of the `stat_length` elements at an edge, or of all.
    `empty` puts zeros there.

        rs.pad(x, 1)
        rs.pad(rows, ((2, 0), (0, 0)), constant_values=np.nan)

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `pad_width` or `constant_values` of another kind;
    `RscanValueError` (E0809) for `pad_width` or `mode` out of range; `RscanIndexError` (E0202) for an index outside its axis.

    >>> rs.pad([1.0, 2.0], (1, 2)).eval()
    array([0., 1., 2., 0., 0.])
    >>> rs.pad([1, 2, 3], 1, mode="reflect").eval()
    array([2, 1, 2, 3, 2])
    """
    v = as_variable(x)
    if mode not in _MODES or reflect_type not in ("even", "odd"):
        what = f"reflect_type is 'even' or 'odd', not {reflect_type!r}"
        what = what if mode in _MODES else f"pad has the modes {', '.join(_MODES)}, not {mode!r}"
        helps: list[str] = [] if isinstance(mode, str) else ["rs.concatenate joins what a function makes of x with x"]
        raise RscanValueError(what, code="E0809", labels=[(here(), "")], helps=helps)
    given = stat_length if mode in _STATISTICS else end_values if mode == "linear_ramp" else 0 if mode == "empty" else constant_values
    widths, values = _pairs(pad_width, v.ndim, "pad_width"), _pairs(given, v.ndim, "what stands there")
    for axis, ((before, behind), pair) in enumerate(zip(widths, values, strict=True)):
        if any(not isinstance(w, Variable) and whole(w, "pad_width") < 0 for w in (before, behind)):
            raise RscanValueError("pad_width is not negative", code="E0809", labels=[(here(), "")])
        if not isinstance(before, Variable) and not isinstance(behind, Variable) and before == behind == 0:
            continue
        if mode in ("edge", "reflect", "symmetric", "wrap"):
            odd = mode in ("reflect", "symmetric") and reflect_type == "odd"
            ends = None if odd else _ends(v, axis, before, behind, mode)
            if ends is not None:
                v = concatenate([*ends[0], v, *ends[1]], axis)
            elif mode in ("edge", "wrap"):
                v = _repeated(v, axis, before, behind, mode)
            else:
                v = _mirrored(v, axis, before, behind, mode, odd)
        else:
            sides = _sides(v, axis, (before, behind), mode, pair)
            v = concatenate([sides[0], v, sides[1]], axis)
    return v
