"""Elementwise functions in operators of ONNX. What runtimes have in float32 alone is spelled out, by formulas that lose no digits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..dtypes import promote
from ._writer import Writer, unsupported

FLOATS = ("float32", "float64")

#: Compare what they are given, whose dtypes promote; all others compute in the dtype of their result.
COMPARISONS = {"eq": "Equal", "ne": "", "lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual"}
TESTS = ("isnan", "isinf", "isfinite", "signbit")

#: Operators that every runtime has in both float dtypes, and for integers where there are any.
PLAIN = {
    "sqrt": "Sqrt",
    "exp": "Exp",
    "log": "Log",
    "sin": "Sin",
    "cos": "Cos",
    "tanh": "Tanh",
    "reciprocal": "Reciprocal",
    # In float64 onnxruntime has no kernels for these.
    "atan": "Atan",
    "asin": "Asin",
    "acos": "Acos",
    "erf": "Erf",
}
#: Why there is nothing for a function.
ABSENT = {
    "erfc": "1 - erf(x) has no digits left for large x",
    "erfinv": "",
    "ndtri": "",
    "gammaln": "",
    "digamma": "",
    "trigamma": "",
    "tetragamma": "",
    "atan2": "",
}


class Elementwise:
    """One function of operands that have one dtype."""

    def __init__(self, w: Writer, dtype: str) -> None:
        self.w, self.dtype = w, dtype
        self.is_float, self.is_bool, self.unsigned = dtype in FLOATS, dtype == "bool", dtype[0] == "u"

    def num(self, value: float) -> str:
        """A number of the operands' dtype."""
        return self.w.number(value, self.dtype)

    def __getattr__(self, op: str) -> Callable[..., str]:
        """An operator of ONNX by its name."""
        if not op[0].isupper():
            raise AttributeError(op)
        return lambda *ins, **attributes: self.w.op(op, *ins, **attributes)

    def pick(self, condition: str, a: str, b: str) -> str:
        """a where the condition holds, else b."""
        return self.w.where(condition, a, b, self.dtype)

    # Arithmetic.

    def add(self, x: str, y: str) -> str:
        return self.Or(x, y) if self.is_bool else self.Add(x, y)

    def sub(self, x: str, y: str) -> str:
        return self.Sub(x, y)

    def mul(self, x: str, y: str) -> str:
        return self.And(x, y) if self.is_bool else self.Mul(x, y)

    def fma(self, x: str, y: str, z: str) -> str:
        return self.Add(self.Mul(x, y), z)

    def div(self, x: str, y: str) -> str:
        return self.Div(x, y)

    def neg(self, x: str) -> str:
        return self.Sub(self.num(0), x) if self.unsigned else self.Neg(x)

    def abs(self, x: str) -> str:
        return x if self.is_bool or self.unsigned else self.Abs(x)

    def sign(self, x: str) -> str:
        return self.Sign(x)

    def square(self, x: str) -> str:
        return self.Mul(x, x)

    def _quotient(self, x: str, y: str) -> tuple[str, str]:
        """Quotient towards zero and remainder of integers; 0 and x where y is 0. Processors trap what is not a quotient."""
        zero = self.Equal(y, self.num(0))
        if self.unsigned:
            q = self.pick(zero, self.num(0), self.Div(x, self.pick(zero, self.num(1), y)))
        else:
            turned = self.Equal(y, self.num(-1))
            q = self.Div(x, self.pick(self.Or(zero, turned), self.num(1), y))
            q = self.pick(zero, self.num(0), self.pick(turned, self.Sub(self.num(0), x), q))
        return q, self.Sub(x, self.Mul(q, y))

    def _floored(self, x: str, y: str) -> tuple[str, str]:
        """Quotient and remainder of Python's `//` and `%`."""
        if self.is_float:
            r = self.Mod(x, y, fmod=1)
            wrong = self.And(self.Not(self.Equal(r, self.num(0))), self.Xor(self.Less(r, self.num(0)), self.Less(y, self.num(0))))
            r = self.pick(wrong, self.Add(r, y), r)
            whole = self.Div(self.Sub(x, r), y)
            down = self.Floor(whole)
            q = self.pick(self.Greater(self.Sub(whole, down), self.num(0.5)), self.Add(down, self.num(1)), down)
            return q, r
        q, r = self._quotient(x, y)
        if self.unsigned:
            return q, r
        wrong = self.And(self.Not(self.Equal(r, self.num(0))), self.Xor(self.Less(r, self.num(0)), self.Less(y, self.num(0))))
        return self.pick(wrong, self.Sub(q, self.num(1)), q), self.pick(wrong, self.Add(r, y), r)

    def _unless_zero(self, x: str, y: str) -> str:
        """Integers by 0 give 0."""
        return x if self.is_float else self.pick(self.Equal(y, self.num(0)), self.num(0), x)

    def floordiv(self, x: str, y: str) -> str:
        return self._unless_zero(self._floored(x, y)[0], y)

    def mod(self, x: str, y: str) -> str:
        return self._unless_zero(self._floored(x, y)[1], y)

    def fmod(self, x: str, y: str) -> str:
        return self.Mod(x, y, fmod=1) if self.is_float else self._unless_zero(self._quotient(x, y)[1], y)

    def rsqrt(self, x: str) -> str:
        return self.Reciprocal(self.Sqrt(x))

    # Order.

    def minimum(self, x: str, y: str) -> str:
        return self._extreme("Min", x, y)

    def maximum(self, x: str, y: str) -> str:
        return self._extreme("Max", x, y)

    def _extreme(self, op: str, x: str, y: str) -> str:
        if self.is_bool:
            return self.And(x, y) if op == "Min" else self.Or(x, y)
        via = "int32" if self.dtype in ("int16", "uint16") else self.dtype
        found = self.w.op(op, self.w.cast(x, self.dtype, via), self.w.cast(y, self.dtype, via))
        return self.w.cast(found, via, self.dtype)

    def clip(self, x: str, lo: str, hi: str) -> str:
        return self.minimum(self.maximum(x, lo), hi)

    def relu(self, x: str) -> str:
        return x if self.is_bool else self.maximum(x, self.num(0))

    def isnan(self, x: str) -> str:
        return self.IsNaN(x) if self.is_float else self._never(x)

    def isinf(self, x: str) -> str:
        return self.IsInf(x) if self.is_float else self._never(x)

    def isfinite(self, x: str) -> str:
        return self.Less(self.Abs(x), self.num(math.inf)) if self.is_float else self.Not(self._never(x))

    def signbit(self, x: str) -> str:
        if self.is_float:
            below = self.Less(x, self.num(0))
            return self.Or(below, self.And(self.Equal(x, self.num(0)), self.Less(self.Reciprocal(x), self.num(0))))
        return self._never(x) if self.is_bool or self.unsigned else self.Less(x, self.num(0))

    def _never(self, x: str) -> str:
        return self.Expand(self.w.constant(False), self.w.shape(x))

    def copysign(self, x: str, y: str) -> str:
        size = self.Abs(x)
        return self.pick(self.signbit(y), self.Neg(size), size)

    # Bits.

    def bit_and(self, x: str, y: str) -> str:
        return self.And(x, y) if self.is_bool else self.BitwiseAnd(x, y)

    def bit_or(self, x: str, y: str) -> str:
        return self.Or(x, y) if self.is_bool else self.BitwiseOr(x, y)

    def bit_xor(self, x: str, y: str) -> str:
        return self.Xor(x, y) if self.is_bool else self.BitwiseXor(x, y)

    def invert(self, x: str) -> str:
        return self.Not(x) if self.is_bool else self.BitwiseNot(x)

    def _shifted(self, x: str, y: str, direction: str) -> str:
        """Shifts by 0 to the width, as unsigned words; 0 beyond."""
        width = np.dtype(self.dtype).itemsize * 8
        fits = self.And(self.GreaterOrEqual(y, self.num(0)), self.Less(y, self.num(width)))
        by = self.pick(fits, y, self.num(0))
        word = self.dtype if self.unsigned else f"u{self.dtype}"
        via = "uint32" if word == "uint16" else word
        there = self.BitShift(*(self.w.cast(v, self.dtype, via) for v in (x, by)), direction=direction)
        return self.pick(fits, self.w.cast(there, via, self.dtype), self.num(0))

    def shift_left(self, x: str, y: str) -> str:
        return self._shifted(x, y, "LEFT")

    def shift_right(self, x: str, y: str) -> str:
        if self.unsigned:
            return self._shifted(x, y, "RIGHT")
        below = self.Less(x, self.num(0))
        moved = self._shifted(self.pick(below, self.BitwiseNot(x), x), y, "RIGHT")
        return self.pick(below, self.BitwiseNot(moved), moved)

    # Rounding.

    def floor(self, x: str) -> str:
        return self.Floor(x) if self.is_float else x

    def ceil(self, x: str) -> str:
        return self.Ceil(x) if self.is_float else x

    def round(self, x: str) -> str:
        return self.Round(x) if self.is_float else x

    def trunc(self, x: str) -> str:
        return self.pick(self.Less(x, self.num(0)), self.Ceil(x), self.Floor(x)) if self.is_float else x

    # Exponentials and logarithms.

    def exp2(self, x: str) -> str:
        return self.Pow(self.num(2), x)

    def expm1(self, x: str) -> str:
        """`(u − 1)·x / log u` with `u = eˣ`: errors of u in numerator and denominator cancel."""
        u = self.Exp(x)
        less = self.Sub(u, self.num(1))
        plain = self.Or(self.Greater(self.Abs(x), self.num(1)), self.Equal(less, self.num(0)))
        safe = self.pick(plain, self.num(2), u)
        fine = self.Div(self.Mul(less, x), self.Log(safe))
        return self.pick(self.Equal(less, self.num(0)), x, self.pick(plain, less, fine))

    def log1p(self, x: str) -> str:
        """`x·log u / (u − 1)` with `u = 1 + x`, by the same reason."""
        u = self.Add(self.num(1), x)
        less = self.Sub(u, self.num(1))
        same = self.Equal(less, self.num(0))
        big = self.Greater(x, self.num(1e10))
        by = self.pick(self.Or(same, big), self.num(1), less)
        return self.pick(same, x, self.pick(big, self.Log(u), self.Div(self.Mul(x, self.Log(u)), by)))

    def log2(self, x: str) -> str:
        return self.Div(self.Log(x), self.num(math.log(2)))

    def log10(self, x: str) -> str:
        return self.Div(self.Log(x), self.num(math.log(10)))

    def logaddexp(self, x: str, y: str) -> str:
        top = self.maximum(x, y)
        same = self.Equal(x, y)
        gap = self.pick(same, self.num(0), self.Neg(self.Abs(self.Sub(x, y))))
        return self.Add(top, self.log1p(self.Exp(gap)))

    def sigmoid(self, x: str) -> str:
        """Spelled out: kernels for `Sigmoid` lose digits where it is small."""
        return self.Reciprocal(self.Add(self.num(1), self.Exp(self.Neg(x))))

    def softplus(self, x: str) -> str:
        return self.Add(self.maximum(x, self.num(0)), self.log1p(self.Exp(self.Neg(self.Abs(x)))))

    def log_sigmoid(self, x: str) -> str:
        return self.Neg(self.softplus(self.Neg(x)))

    def silu(self, x: str) -> str:
        return self.Mul(x, self.sigmoid(x))

    def xlogy(self, x: str, y: str) -> str:
        none = self.And(self.Equal(x, self.num(0)), self.Not(self.IsNaN(y)))
        return self.pick(none, self.num(0), self.Mul(x, self.Log(self.pick(none, self.num(1), y))))

    # Angles.

    def hypot(self, x: str, y: str) -> str:
        x, y = self.Abs(x), self.Abs(y)
        big, small = self.maximum(x, y), self.minimum(x, y)
        plain = self.Or(self.Equal(big, self.num(0)), self.IsInf(big))
        part = self.Div(small, self.pick(plain, self.num(1), big))
        return self.pick(plain, big, self.Mul(big, self.Sqrt(self.Add(self.num(1), self.Mul(part, part)))))

    def tan(self, x: str) -> str:
        return self.Div(self.Sin(x), self.Cos(x))

    def sinh(self, x: str) -> str:
        u = self.expm1(self.Abs(x))
        half = self.Mul(self.num(0.5), self.Add(u, self.Div(u, self.Add(u, self.num(1)))))
        return self.pick(self.Less(x, self.num(0)), self.Neg(half), half)

    def cosh(self, x: str) -> str:
        half = self.Mul(self.num(0.5), self.Exp(self.Abs(x)))
        return self.Add(half, self.Div(self.num(0.25), half))

    def asinh(self, x: str) -> str:
        size = self.Abs(x)
        square = self.Mul(size, size)
        root = self.Sqrt(self.Add(square, self.num(1)))
        found = self.log1p(self.Add(size, self.Div(square, self.Add(self.num(1), root))))
        big = self.Greater(size, self.num(1e8 if self.dtype == "float64" else 1e4))
        found = self.pick(big, self.Add(self.Log(self.pick(big, size, self.num(1))), self.num(math.log(2))), found)
        return self.pick(self.Less(x, self.num(0)), self.Neg(found), found)

    def acosh(self, x: str) -> str:
        t = self.Sub(x, self.num(1))
        return self.log1p(self.Add(t, self.Sqrt(self.Add(self.Mul(self.num(2), t), self.Mul(t, t)))))

    def atanh(self, x: str) -> str:
        size = self.Abs(x)
        found = self.Mul(self.num(0.5), self.log1p(self.Div(self.Mul(self.num(2), size), self.Sub(self.num(1), size))))
        return self.pick(self.Less(x, self.num(0)), self.Neg(found), found)

    def deg2rad(self, x: str) -> str:
        return self.Mul(x, self.num(math.pi / 180))

    def rad2deg(self, x: str) -> str:
        return self.Mul(x, self.num(1 / (math.pi / 180)))

    # Truth values.

    def logical_and(self, x: str, y: str) -> str:
        return self.And(x, y)

    def logical_or(self, x: str, y: str) -> str:
        return self.Or(x, y)

    def logical_xor(self, x: str, y: str) -> str:
        return self.Xor(x, y)

    def logical_not(self, x: str) -> str:
        return self.Not(x)


def elementwise(w: Writer, v: Any, names: list[str]) -> list[str]:
    """A node of the elementwise table."""
    op, args = v.op, v.inputs
    if op in ABSENT:
        raise unsupported(f"`{op}`", v.span, ABSENT[op])
    if op == "where":
        condition = w.cast(names[0], args[0].dtype, "bool")
        a, b = (w.cast(name, arg.dtype, v.dtype) for name, arg in zip(names[1:], args[1:], strict=True))
        return [w.where(condition, a, b, v.dtype)]
    dtype = v.dtype
    if op in COMPARISONS or op in TESTS:
        dtype = promote(tuple(a.dtype for a in args))
        dtype = "uint8" if dtype == "bool" and op not in ("eq", "ne") else dtype
    given = [w.cast(n, a.dtype, dtype) for n, a in zip(names, args, strict=True)]
    if op in COMPARISONS:
        return [w.op("Not", w.op("Equal", *given)) if op == "ne" else w.op(COMPARISONS[op], *given)]
    if op == "pow":
        return [_power(w, v, given)]
    if op in PLAIN:
        return [w.op(PLAIN[op], *given)]
    return [getattr(Elementwise(w, dtype), op)(*given)]


def _power(w: Writer, v: Any, given: list[str]) -> str:
    """A power. Of integers, which wrap, a product of squares."""
    exponent = v.inputs[1]
    value = exponent.value if exponent.kind == "const" and exponent.ndim == 0 else None
    if v.dtype in FLOATS:
        return w.op("Mul", given[0], given[0]) if value == 2 else w.op("Pow", *given)
    if value is None or value < 0:
        raise unsupported("powers of integers with exponents that are computed", v.span, "they wrap", ["make the base a float"])
    left, square, out = int(value), given[0], None
    while left:
        if left & 1:
            out = square if out is None else w.op("Mul", out, square)
        left >>= 1
        square = w.op("Mul", square, square) if left else square
    return out or w.op("Expand", w.number(1, v.dtype), w.shape(given[0]))
