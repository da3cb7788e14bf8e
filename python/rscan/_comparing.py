"""Comparisons are exact, as NumPy's: integers are compared as integers, also where no dtype holds both sides."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .dtypes import is_weak
from .variable import Variable, apply, as_variable, family_of, operands

#: Rows that compare, and what each is with its sides exchanged.
COMPARISONS = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}

#: Which of them hold where the left side is negative and the right side is not.
_OF_NEGATIVE = ("lt", "le", "ne")


def compared(op: str, a: Any, b: Any) -> Variable:
    """A comparison, element by element."""
    family = family_of((a, b))
    sides = [v if is_weak(v) else as_variable(v, family=family) for v in (a, b)]
    x, y = operands([_number(v, other, family) for v, other in zip(sides, sides[::-1], strict=True)])
    if family is Variable and x.dtype == "uint64" and y.dtype.startswith("int"):
        return _with_unsigned(COMPARISONS[op], y, x)
    if family is Variable and y.dtype == "uint64" and x.dtype.startswith("int"):
        return _with_unsigned(op, x, y)
    return apply(op, {}, x, y)


def _number(value: Any, met: Any, family: type[Variable]) -> Any:
    """A Python integer that does not fit the dtype it meets in one that holds it, or as an infinity beyond all integers."""
    if not isinstance(value, int) or isinstance(value, bool) or not isinstance(met, Variable) or met.dtype.startswith("float"):
        return value
    for dtype in ("int64" if met.dtype == "bool" else met.dtype, "int64", "uint64"):
        if np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
            return value if dtype == met.dtype else as_variable(value, dtype, family)
    return as_variable(math.copysign(math.inf, value), "float64", family)


def _with_unsigned(op: str, signed: Variable, unsigned: Variable) -> Variable:
    """They promote to float64, in which large neighbours are equal."""
    negative = apply("lt", {}, *operands((signed, 0)))
    plain = apply(op, {}, apply("cast", {"dtype": "uint64"}, signed), unsigned)
    if op in _OF_NEGATIVE:
        return apply("logical_or", {}, negative, plain)
    return apply("logical_and", {}, apply("logical_not", {}, negative), plain)
