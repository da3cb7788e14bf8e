"""Theano's elementwise functions."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import ops
from ..._spans import here
from ...errors import RscanTypeError, RscanValueError, UnsupportedError
from ...variable import Variable, apply, elementwise
from ..variable import as_tensor_variable, true_div
from . import _ties
from ._ties import clip, maximum, minimum  # noqa: F401 (clip is among NAMES)

#: Theano's names and the rows of the core's table. Those marked `float` compute small integers in float32.
SAME = {
    "sub": "sub", "mod": "mod", "int_div": "floordiv", "floor_div": "floordiv", "pow": "pow", "power": "pow", "neg": "neg",
    "abs_": "abs", "sgn": "sign", "sqr": "square", "square": "square", "eq": "eq",
    "neq": "ne", "lt": "lt", "gt": "gt", "le": "le", "ge": "ge", "isnan": "isnan", "isinf": "isinf", "and_": "bit_and",
    "or_": "bit_or", "xor": "bit_xor", "invert": "invert", "bitwise_and": "bit_and", "bitwise_or": "bit_or",
    "bitwise_xor": "bit_xor", "bitwise_not": "invert", "logical_not": "logical_not",
    "left_shift": "shift_left", "right_shift": "shift_right",
}  # fmt: skip

FLOAT = {
    "floor": "floor", "ceil": "ceil", "trunc": "trunc", "sqrt": "sqrt",
    "inv": "reciprocal", "log": "log", "log1p": "log1p", "exp": "exp", "exp2": "exp2", "expm1": "expm1", "log2": "log2",
    "log10": "log10", "sin": "sin", "cos": "cos", "tan": "tan", "arcsin": "asin", "arccos": "acos",
    "arctan": "atan", "arctan2": "atan2", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "arcsinh": "asinh",
    "arccosh": "acosh", "arctanh": "atanh", "erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "gammaln": "gammaln",
    "psi": "digamma", "tri_gamma": "trigamma", "deg2rad": "deg2rad", "rad2deg": "rad2deg", "sigmoid": "sigmoid", "softplus": "softplus",
}  # fmt: skip

_SMALL = ("bool", "int8", "uint8", "int16", "uint16")


def _in_float(v: Variable) -> Variable:
    """Small integers as float32, others as float64."""
    if v.dtype.startswith("float"):
        return v
    return ops.cast(v, "float32" if v.dtype in _SMALL else "float64")


def _row(name: str, row: str, in_float: bool) -> Callable[..., Variable]:
    def function(*args: Any) -> Variable:
        items = [as_tensor_variable(a) for a in args]
        return elementwise(row, *(map(_in_float, items) if in_float else items))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Elementwise `{row}`."
    return function


ROWS: dict[str, Callable[..., Variable]] = {name: _row(name, row, False) for name, row in SAME.items()}
ROWS |= {name: _row(name, row, True) for name, row in FLOAT.items()}
globals().update(ROWS)


def add(*args: Any) -> Variable:
    """The sum of all arguments."""
    return _fold("add", args)


def mul(*args: Any) -> Variable:
    """The product of all arguments."""
    return _fold("mul", args)


def _fold(row: str, args: Any) -> Variable:
    return functools.reduce(lambda x, y: elementwise(row, x, y), map(as_tensor_variable, args))


def erfcx(x: Any) -> Variable:
    """exp(x²) erfc(x)."""
    v = _in_float(as_tensor_variable(x))
    # Where erfc is about to vanish, six terms of its asymptotic series are exact.
    far = elementwise("gt", v, as_tensor_variable(np.asarray(9 if v.dtype == "float32" else 25, v.dtype)))
    near, large = ops.where(far, ops.zeros_like(v), v), ops.where(far, v, ops.ones_like(v))
    series, t = ops.ones_like(v), 0.5 / (large * large)
    for k in (11, 9, 7, 5, 3, 1):
        series = 1 - k * t * series
    tail = series * np.asarray(1 / np.sqrt(np.pi), v.dtype) / large
    return ops.where(far, ops.cast(tail, v.dtype), elementwise("exp", near * near) * elementwise("erfc", near))


def erfcinv(x: Any) -> Variable:
    """The inverse of erfc."""
    v = _in_float(as_tensor_variable(x))
    return elementwise("ndtri", v * 0.5) * np.asarray(-np.sqrt(0.5), v.dtype)


def gamma(x: Any) -> Variable:
    """The gamma function."""
    v = _in_float(as_tensor_variable(x))
    size, below = elementwise("exp", elementwise("gammaln", v)), elementwise("floor", v)
    # Left of 0 the sign changes at every integer, where the value is infinite.
    odd = elementwise("ne", 2 * elementwise("floor", below / 2), below)
    return ops.where(elementwise("lt", v, as_tensor_variable(0)) & odd & elementwise("ne", v, below), -size, size)


def cast(x: Any, dtype: Any) -> Variable:
    """The same elements as another dtype."""
    return ops.cast(as_tensor_variable(x), dtype)


def _convert_to(dtype: str) -> Callable[[Any], Variable]:
    return lambda x: cast(x, dtype)


CASTS = {f"_convert_to_{d}": _convert_to(d) for d in ("bool", "int8", "int16", "int32", "int64", "float32", "float64")}
globals().update(CASTS)


def switch(condition: Any, a: Any, b: Any) -> Variable:
    """Elements of a where the condition is not 0, else of b."""
    first, second = as_tensor_variable(a), as_tensor_variable(b)
    return apply("where", {}, ops.cast(as_tensor_variable(condition), "bool"), *ops_pair(first, second))


def ops_pair(a: Variable, b: Variable) -> tuple[Variable, Variable]:
    """Both in their common dtype."""
    dtype = np.result_type(a.dtype, b.dtype).name
    return ops.cast(a, dtype), ops.cast(b, dtype)


def where(condition: Any, a: Any = None, b: Any = None) -> Any:
    """`switch`; with the condition alone the positions where it is not 0."""
    if a is None and b is None:
        return tuple(ops.nonzero(as_tensor_variable(condition)))
    return switch(condition, a, b)


def round(x: Any, mode: Any = None) -> Variable:
    """The nearest integer; of two equally near ones the even one, or that away from 0."""
    v = as_tensor_variable(x)
    if mode in (None, "half_to_even"):
        return round_half_to_even(v)
    if mode == "half_away_from_zero":
        return round_half_away_from_zero(v)
    raise RscanValueError(f"round knows no mode {mode!r}", code="E0809", labels=[(here(), "")])


def iround(x: Any, mode: Any = None) -> Variable:
    """`round` as int64."""
    return ops.cast(round(x, mode), "int64")


def round_half_to_even(x: Any) -> Variable:
    """The nearest integer; of two equally near ones the even one."""
    return elementwise("round", _float_alone(x))


def round_half_away_from_zero(x: Any) -> Variable:
    """The nearest integer; of two equally near ones that away from 0."""
    v = _float_alone(x)
    whole = elementwise("trunc", v)
    # The part behind the point is exact; x + 0.5 need not be.
    away = elementwise("ge", abs(v - whole), as_tensor_variable(0.5))
    return ops.where(away, whole + elementwise("sign", v), whole)


def _float_alone(x: Any) -> Variable:
    v = as_tensor_variable(x)
    if not v.dtype.startswith("float"):
        raise RscanTypeError(f"floats are rounded, not {v.dtype}", code="E0804", labels=[(here(), "")])
    return v


def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Variable:
    """True where |a − b| ≤ atol + rtol·|b|, or both are the same infinity; of NaN nowhere, or with `equal_nan` where both are."""
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    close = ops.isclose(a, b, rtol, atol)
    return close | (elementwise("isnan", a) & elementwise("isnan", b)) if equal_nan else close


def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Variable:
    """True where all are close."""
    return ops.all(isclose(a, b, rtol, atol, equal_nan))


def clip_grad(x: Any, low: Any, high: Any) -> Variable:
    """x; the gradient that flows through is clipped."""
    return ops.grad_clip(as_tensor_variable(x), low, high)


def real(x: Any) -> Variable:
    """x: there are no complex numbers."""
    return as_tensor_variable(x)


conj = real


def imag(x: Any) -> Variable:
    """Zeros: there are no complex numbers."""
    return ops.zeros_like(as_tensor_variable(x))


def divmod(a: Any, b: Any) -> tuple[Variable, Variable]:
    """The quotient rounded down, and the rest."""
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    return elementwise("floordiv", a, b), elementwise("mod", a, b)


def second(like: Any, value: Any) -> Variable:
    """`value` broadcast to the shape of `like`."""
    return fill(like, value)


def fill(like: Any, value: Any) -> Variable:
    """`value` broadcast to the shape of `like`, in its own dtype."""
    x, v = as_tensor_variable(like), as_tensor_variable(value)
    return ops.broadcast_like(v, x + ops.zeros_like(v, x.dtype) if v.ndim else x)


def smallest(*args: Any) -> Variable:
    """The least of the arguments, element by element."""
    return functools.reduce(minimum, args) if builtins.len(args) > 1 else _ties.min(args[0])


def largest(*args: Any) -> Variable:
    """The greatest of the arguments, element by element."""
    return functools.reduce(maximum, args) if builtins.len(args) > 1 else _ties.max(args[0])


def choose(a: Any, choices: Any, mode: str = "raise") -> Variable:
    """For each element of a the element of that one of the choices, a list of arrays."""
    index = as_tensor_variable(a)
    if not isinstance(choices, (list, tuple)):
        raise UnsupportedError("choose takes a list of choices", code="E0813", labels=[(here(), "")])
    out = as_tensor_variable(choices[-1])
    for i, choice in reversed(list(enumerate(choices[:-1]))):
        out = switch(elementwise("eq", index, as_tensor_variable(i)), choice, out)
    return out


def upcast(*dtypes: str) -> str:
    """The dtype that holds all of these."""
    if not dtypes:
        raise RscanTypeError("upcast takes dtypes", code="E0809", labels=[(here(), "")])
    return np.result_type(*dtypes).name


truediv = div = true_div
NAMES = [
    *ROWS, "add", "mul", "maximum", "minimum", "erfcx", "erfcinv", "gamma", "cast", "switch", "where", "clip", "round",
    "iround", "round_half_to_even", "round_half_away_from_zero", "isclose", "allclose", "real", "conj", "imag", "divmod", "second", "fill",
    "smallest", "largest", "choose", "true_div", "truediv",
]  # fmt: skip
