"""Elementwise functions that are not rows of the core's table, or take more arguments than their row."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from . import _native
from ._args import whole
from ._spans import here
from .errors import RscanTypeError
from .variable import Variable, apply, as_variable, dtype_name, elementwise, family_of, operands, wrap

__all__ = [
    "astype", "cast", "clip", "fabs", "isclose", "nan_to_num", "pow", "power", "rint", "round", "switch", "where",
]  # fmt: skip


def cast(x: Any, dtype: Any) -> Variable:
    """The same elements as another dtype. Floats lose their fraction on the way to integers; a number is True unless it is 0.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0806) for a dtype that is not there.

    >>> rs.cast([1.7, 2.2], "int64").eval()
    array([1, 2])
    """
    v, name = as_variable(x), dtype_name(dtype)
    return v if v.dtype == name else apply("cast", {"dtype": name}, v)


def astype(x: Any, dtype: Any, *, copy: bool = True) -> Variable:
    """`cast` under NumPy's name. Variables are never changed in place, whatever `copy` says.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0806) for a dtype that is not there.

    >>> rs.astype([1.7, 2.2], "int64").eval()
    array([1, 2])
    """
    return cast(x, dtype)


def where(condition: Any, a: Any = None, b: Any = None) -> Any:
    """Elements of a where the condition is true, else of b. With the condition alone, the positions where it is true.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for one of a and b alone; `ShapeError` (E0201) where shapes do
    not broadcast.

    >>> rs.switch([True, False], 1.0, 2.0).eval()
    array([1., 2.])
    """
    if a is None and b is None:
        from .indexing import nonzero

        return nonzero(condition)
    if a is None or b is None:
        raise RscanTypeError(
            "where takes a value for either case, or neither",
            code="E0809",
            labels=[(here(), "")],
            helps=["rs.where(condition, x, y); rs.choose(k, [x, y, …]) takes the value with number k"],
        )
    return apply("where", {}, cast(condition, "bool"), *operands((a, b)))


switch = where


def clip(x: Any, min: Any = None, max: Any = None, *, a_min: Any = None, a_max: Any = None) -> Variable:
    """x, not less than min nor more than max, of which `a_min` and `a_max` are other names. None leaves that side open.

    errors: `RscanTypeError` (E0805) for what is no number or array; `ShapeError` (E0201) where shapes do not broadcast.

    >>> rs.clip([-1.0, 0.5, 3.0], 0, 1).eval()
    array([0. , 0.5, 1. ])
    """
    if (min is not None and a_min is not None) or (max is not None and a_max is not None):
        raise RscanTypeError("clip: a_min and min, a_max and max are names of one bound: give one", code="E0809", labels=[(here(), "")])
    min, max = a_min if min is None else min, a_max if max is None else max
    if min is not None and max is not None:
        return elementwise("clip", x, min, max)
    if min is not None:
        return elementwise("maximum", x, min)
    return as_variable(x) if max is None else elementwise("minimum", x, max)


def round(x: Any, decimals: int = 0) -> Variable:
    """The nearest integer (or multiple of 10**-decimals), the even one where two are equally near. Integers stay integers.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `decimals` of another kind.

    >>> rs.round([1.234, 5.678], 1).eval()
    array([1.2, 5.7])
    """
    v, decimals = as_variable(x), whole(decimals, "the number of decimals")
    if v.dtype[0] in "iub" and decimals >= 0:
        return v
    if decimals == 0:
        return elementwise("round", v)
    factor = 10.0 ** builtins.abs(decimals)
    out = elementwise("round", v * factor) / factor if decimals > 0 else elementwise("round", v / factor) * factor
    return cast(out, v.dtype) if v.dtype[0] in "iu" else out


def _as_float(x: Any) -> Variable:
    v = as_variable(x)
    return v if v.dtype.startswith("float") else cast(v, "float64")


def rint(x: Any) -> Variable:
    """The nearest integer, the even one where two are equally near, as a float.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.rint([1.4, 2.5]).eval()
    array([1., 2.])
    """
    return elementwise("round", _as_float(x))


def fabs(x: Any) -> Variable:
    """The absolute value, as a float.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.fabs([-1.5, 2.0]).eval()
    array([1.5, 2. ])
    """
    return elementwise("abs", _as_float(x))


def pow(x: Any, y: Any) -> Variable:
    """`xʸ`. Integers wrap; where both are integers, y is not negative, as for NumPy: else an error, now or when the function runs.

    errors: `RscanTypeError` (E0805) for what is no number or array; `ShapeError` (E0201) where shapes do not broadcast.

    >>> rs.pow([1.0, 2.0], 3).eval()
    array([1., 8.])
    """
    base, exponent = operands((x, y))
    family = family_of((base, exponent))
    if family is not Variable:  # whose operators have a rule of their own
        return elementwise("pow", base, exponent)
    return wrap(_native.power(base._v, exponent._v, here()), family)


power = pow


def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Variable:
    """x with numbers in place of NaN and the infinities: 0, and the largest and smallest ones that there are.

    `copy` has no effect. It comes first, as for NumPy.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `copy` of another kind; `ShapeError` (E0201) where shapes
    do not broadcast.

    >>> rs.nan_to_num([np.nan, 1.0]).eval()
    array([0., 1.])
    """
    if not isinstance(copy, (bool, np.bool_)):
        raise RscanTypeError(f"copy is True or False, not {copy!r}", code="E0809", labels=[(here(), "")], helps=["nan_to_num(x, nan=…)"])
    v = as_variable(x)
    if not v.dtype.startswith("float"):
        return v
    largest = float(np.finfo(v.dtype).max)
    for infinity, instead in ((np.inf, largest if posinf is None else posinf), (-np.inf, -largest if neginf is None else neginf)):
        v = where(elementwise("eq", v, infinity), cast(instead, v.dtype), v)
    return where(elementwise("isnan", v), cast(nan, v.dtype), v)


def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Variable:
    """True where |a − b| ≤ atol + rtol·|b|, and where a and b are equal; where both are NaN if `equal_nan`.

    errors: `RscanTypeError` (E0805) for what is no number or array; `ShapeError` (E0201) where shapes do not broadcast.

    >>> rs.isclose([1.0, 2.0], [1.0 + 1e-9, 2.1]).eval()
    array([ True, False])
    """
    x, y = operands((a, b))
    near = elementwise("le", elementwise("abs", x - _as_float(y)), atol + rtol * elementwise("abs", _as_float(y)))
    close = elementwise("logical_or", elementwise("logical_and", near, elementwise("isfinite", y)), elementwise("eq", x, y))
    if not equal_nan:
        return close
    return elementwise("logical_or", close, elementwise("logical_and", elementwise("isnan", x), elementwise("isnan", y)))
