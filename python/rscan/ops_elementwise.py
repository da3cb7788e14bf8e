"""Elementwise functions that are not rows of the core's table, or take more arguments than their row."""

from __future__ import annotations

import builtins
from typing import Any

from .variable import Variable, apply, as_variable, dtype_name, elementwise, operands

__all__ = ["astype", "cast", "clip", "isclose", "nan_to_num", "round", "switch", "where"]


def cast(x: Any, dtype: Any) -> Variable:
    """The same elements as another dtype. Floats lose their fraction on the way to integers; a number is True unless it is 0."""
    v, name = as_variable(x), dtype_name(dtype)
    return v if v.dtype == name else apply("cast", {"dtype": name}, v)


astype = cast


def where(condition: Any, a: Any = None, b: Any = None) -> Any:
    """Elements of a where the condition is true, else of b. With the condition alone, the positions where it is true."""
    if a is None and b is None:
        from .indexing import nonzero

        return nonzero(condition)
    return apply("where", {}, cast(condition, "bool"), *operands((a, b)))


switch = where


def clip(x: Any, min: Any = None, max: Any = None) -> Variable:
    """x, not less than min nor more than max. None leaves that side open."""
    if min is not None and max is not None:
        return elementwise("clip", x, min, max)
    if min is not None:
        return elementwise("maximum", x, min)
    return as_variable(x) if max is None else elementwise("minimum", x, max)


def round(x: Any, decimals: int = 0) -> Variable:
    """The nearest integer (or multiple of 10**-decimals), the even one where two are equally near."""
    v = as_variable(x)
    if v.dtype[0] in "iub" and decimals >= 0:
        return v
    if decimals == 0:
        return elementwise("round", v)
    factor = 10.0 ** builtins.abs(decimals)
    return elementwise("round", v * factor) / factor if decimals > 0 else elementwise("round", v / factor) * factor


def nan_to_num(x: Any, nan: float = 0.0) -> Variable:
    """x with another number in place of NaN."""
    v = as_variable(x)
    return where(elementwise("isnan", v), nan, v)


def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8) -> Variable:
    """True where |a − b| ≤ atol + rtol·|b|."""
    a, b = operands((a, b))
    near = elementwise("le", elementwise("abs", a - b), atol + rtol * elementwise("abs", b))
    finite = elementwise("logical_not", elementwise("isinf", b))
    return elementwise("logical_or", elementwise("logical_and", near, finite), elementwise("eq", a, b))
