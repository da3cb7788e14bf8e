"""Functions that cut arrays into pieces, repeat them, and move them along axes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ._args import one_axis
from ._spans import here
from .errors import RscanValueError, ShapeError
from .ops_shape import broadcast_to, concatenate, expand_dims, ravel, reshape
from .variable import Variable, apply, as_variable, extent, operands

__all__ = ["array_split", "roll", "split", "tile"]


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
    `sections` out of range; `AxisError` (E0810) for an axis that is not there.

    >>> rs.eval(rs.array_split(np.arange(5), 2))
    [array([0, 1, 2]), array([3, 4])]
    """
    v = as_variable(x)
    at = one_axis(axis, v.ndim)
    if not isinstance(indices_or_sections, (int, np.integer)):
        return _cut(v, list(indices_or_sections), at)
    n, sections = extent(v, at), _sections(indices_or_sections)
    ends = [i * (n // sections) + (min(i, n % sections) if isinstance(n, int) else _least(i, n % sections)) for i in range(1, sections)]
    return _cut(v, ends, at)


def _least(a: int, b: Variable) -> Variable:
    return apply("minimum", {}, *operands((a, b)))


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
    v = expand_dims(v, tuple(range(max(0, len(counts) - v.ndim))))
    counts = [1] * (v.ndim - len(counts)) + counts
    extents_before = v.shape
    pairs = [item for pair in zip(counts, extents_before, strict=True) for item in pair]
    wide = broadcast_to(expand_dims(v, tuple(range(0, 2 * v.ndim, 2))), pairs)
    return reshape(wide, [c * n for c, n in zip(counts, extents_before, strict=True)])


def roll(x: Any, shift: Any, axis: Any = None) -> Variable:
    """Moved along an axis (or flattened) by a number of places; what leaves at one end enters at the other.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `AxisError` (E0810) for an axis
    that is not there; `RscanIndexError` (E0803) for what is no index.

    >>> rs.roll([1, 2, 3], 1).eval()
    array([3, 1, 2])
    """
    v = as_variable(x)
    if axis is None:
        return reshape(roll(ravel(v), shift, 0), v.shape)
    if isinstance(axis, (tuple, list)) or isinstance(shift, (tuple, list)):
        axes, shifts = (list(a) if isinstance(a, (tuple, list)) else [a] for a in (axis, shift))
        several = max(len(axes), len(shifts))
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
