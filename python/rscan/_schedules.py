"""Schedules: functions of the number of updates made before."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .ops import cast, clip, cos, floor, maximum, minimum, where
from .variable import Variable, as_variable

__all__ = ["constant_schedule", "cosine_decay", "exponential_decay", "linear_schedule", "piecewise_constant", "warmup_cosine"]


def _float(count: Any) -> Variable:
    return cast(count, "float64")


def constant_schedule(value: Any) -> Callable[[Any], Variable]:
    """Always the same.

    >>> rs.optim.constant_schedule(0.1)(7).eval()
    array(0.1)
    """
    return lambda count: as_variable(value, "float64")


def linear_schedule(start: Any, end: Any, steps: int, begin: int = 0) -> Callable[[Any], Variable]:
    """From `start` to `end` on a line, over so many updates from one on.

    errors: `RscanTypeError` (E0805), when it is used, for a step that is no number.

    >>> rs.eval(rs.optim.linear_schedule(1.0, 0.0, 10)(rs.constant(5)))
    array(0.5)
    """
    return lambda count: start + (end - start) * clip((_float(count) - begin) / max(steps, 1), 0.0, 1.0)


def exponential_decay(start: Any, steps: int, rate: Any, staircase: bool = False, end: Any = None) -> Callable[[Any], Variable]:
    """`start · rate^(count / steps)`, in whole steps with `staircase`, not beyond `end`.

    errors: `RscanTypeError` (E0805), when it is used, for a step that is no number.

    >>> rs.eval(rs.optim.exponential_decay(1.0, 10, 0.5)(rs.constant(20)))
    array(0.25)
    """

    def at(count: Any) -> Variable:
        turns = _float(count) / steps
        value = start * as_variable(rate, "float64") ** (floor(turns) if staircase else turns)
        return value if end is None else where(as_variable(rate) < 1, maximum(value, end), minimum(value, end))

    return at


def cosine_decay(start: Any, steps: int, end: Any = 0.0) -> Callable[[Any], Variable]:
    """From `start` to `end` on half a period of a cosine, over so many updates.

    errors: `RscanTypeError` (E0805), when it is used, for a step that is no number.

    >>> rs.eval(rs.optim.cosine_decay(1.0, 10)(rs.constant(5)))
    array(0.5)
    """
    return lambda count: end + (start - end) * 0.5 * (1 + cos(math.pi * clip(_float(count) / max(steps, 1), 0.0, 1.0)))


def warmup_cosine(start: Any, peak: Any, warmup: int, steps: int, end: Any = 0.0) -> Callable[[Any], Variable]:
    """On a line from `start` to `peak` during `warmup` updates, then on a cosine to `end` at update `steps`.

    errors: `RscanTypeError` (E0805), when it is used, for a step that is no number.

    >>> rs.eval(rs.optim.warmup_cosine(0.0, 1.0, 10, 100)(rs.constant(5)))
    array(0.5)
    """
    rises, falls = linear_schedule(start, peak, warmup), cosine_decay(peak, steps - warmup, end)
    return lambda count: where(_float(count) < warmup, rises(count), falls(count - warmup))


def piecewise_constant(start: Any, factors: dict[int, Any]) -> Callable[[Any], Variable]:
    """`start`, times each factor once its number of updates is reached.

    errors: `RscanTypeError` (E0805), when it is used, for a step that is no number.

    >>> rs.eval(rs.optim.piecewise_constant(1.0, {10: 0.1})(rs.constant(20)))
    array(0.1)
    """

    def at(count: Any) -> Variable:
        value = as_variable(start, "float64")
        for boundary, factor in sorted(factors.items()):
            value = where(_float(count) >= boundary, value * factor, value)
        return value

    return at
