"""Checks of arguments that several functions share."""

from __future__ import annotations

import operator
from typing import Any

from ._spans import here
from .errors import AxisError, RscanTypeError, UnsupportedError
from .variable import Variable, as_variable


def one_axis(axis: Any, ndim: int) -> int:
    """An axis as a number from 0."""
    try:
        number = operator.index(axis)
    except TypeError:
        raise RscanTypeError(f"an axis is an integer, not {axis!r}", code="E0809", labels=[(here(), "")]) from None
    if not -ndim <= number < ndim:
        said = f"its axes are 0 to {ndim - 1}" if ndim > 1 else "its only axis is 0" if ndim else "a scalar has no axes"
        raise AxisError(f"there is no axis {number}: {said}", labels=[(here(), "")])
    return number % ndim


def whole(number: Any, what: str) -> int:
    """An integer, or an error that says of what."""
    try:
        return operator.index(number)
    except TypeError:
        raise RscanTypeError(f"{what} is an integer, not {number!r}", code="E0809", labels=[(here(), "")]) from None


def axes_of(axis: Any, ndim: int) -> list[int]:
    """Axes (None for all, a number, or several) sorted, each from 0."""
    if axis is None:
        return list(range(ndim))
    axes = sorted(one_axis(a, ndim) for a in (axis if isinstance(axis, (tuple, list)) else (axis,)))
    if len(set(axes)) < len(axes):
        raise AxisError(f"an axis occurs twice in {axis!r}", labels=[(here(), "")])
    return axes


def no_out(out: Any) -> None:
    """Refuses `out=`."""
    if out is not None:
        raise UnsupportedError("variables are computed, not written into: `out` must be left away", code="E0809", labels=[(here(), "")])


def at_least(x: Any, ndim: int, what: str) -> Variable:
    """An argument with at least so many axes."""
    v = as_variable(x)
    if v.ndim < ndim:
        raise RscanTypeError(f"{what} takes {ndim} axes or more, got {v!r}", code="E0809", labels=[(here(), "")])
    return v
