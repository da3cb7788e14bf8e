"""Elementwise functions: one per row of the core's table, with NumPy's and Theano's other names, and what is composed of them."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from . import _native
from ._spans import here
from .errors import RscanTypeError
from .variable import Variable, apply, as_variable, dtype_name, elementwise, operands

#: Other names of rows.
ALIASES = {
    "subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div", "true_div": "div", "negative": "neg",
    "absolute": "abs", "fabs": "abs", "power": "pow", "remainder": "mod", "floor_divide": "floordiv", "int_div": "floordiv",
    "equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge",
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "arcsinh": "asinh", "arccosh": "acosh",
    "arctanh": "atanh", "sgn": "sign", "sqr": "square", "bitwise_and": "bit_and", "bitwise_or": "bit_or",
    "bitwise_xor": "bit_xor", "bitwise_not": "invert", "bitwise_invert": "invert", "left_shift": "shift_left",
    "right_shift": "shift_right", "bitwise_left_shift": "shift_left", "bitwise_right_shift": "shift_right", "rint": "round",
    "fix": "trunc", "expit": "sigmoid", "psi": "digamma", "degrees": "rad2deg", "radians": "deg2rad", "lgamma": "gammaln",
}  # fmt: skip


def _row(name: str, args: list[str], doc: str) -> Callable[..., Variable]:
    """The function of a row of the table."""

    def function(*operands: Any) -> Variable:
        if len(operands) != len(args):
            text = f"{name}({', '.join(args)}) takes {len(args)} arguments, got {len(operands)}"
            raise RscanTypeError(text, code="E0809", labels=[(here(), "")])
        return elementwise(name, *operands)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}({', '.join(args)}): {doc}"
    function.__module__ = "rscan"
    return function


#: The function of each row, by its name and its other names.
ROWS: dict[str, Callable[..., Variable]] = {row["name"]: _row(row["name"], row["args"], row["doc"]) for row in _native.catalogue()}
ROWS.update({alias: ROWS[name] for alias, name in ALIASES.items() if name in ROWS and alias not in ROWS})
globals().update(ROWS)

#: What `rscan` exports of this module besides the rows.
COMPOSED = ["astype", "cast", "clip", "isclose", "nan_to_num", "round", "switch", "where"]


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
    return elementwise("logical_or", near, elementwise("eq", a, b))
