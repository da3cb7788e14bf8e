"""Elementwise functions of NumPy's that are composed of rows of the core's table, and differences of neighbours."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from ._args import at_least, one_axis
from ._spans import here
from .config import config
from .errors import RscanTypeError
from .ops_control import stop_gradient
from .ops_elementwise import _as_float, cast, round, where
from .ops_reduce import all, cumsum
from .ops_shape import broadcast_like, broadcast_to, concatenate, join
from .variable import Variable, as_variable, elementwise, is_weak, operands

__all__ = [
    "angle", "around", "cbrt", "conj", "conjugate", "diff", "divmod", "float_power", "fmax", "fmin", "gcd", "heaviside", "imag",
    "iscomplex", "isneginf", "isposinf", "isreal", "lcm", "ldexp", "logaddexp2", "modf", "positive", "real", "real_if_close",
    "sinc", "unwrap",
]  # fmt: skip


def cbrt(x: Any) -> Variable:
    """The cube root, of negative numbers, too.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.cbrt([8.0, -27.0]).eval()
    array([ 2., -3.])
    """
    v = _as_float(x)
    size = elementwise("abs", v)
    root = elementwise("pow", size, 1 / 3)
    # A step of Newton's method takes the error of the exponent away. The slope of the root is right as it is.
    regular = elementwise("logical_and", elementwise("gt", root, 0), elementwise("isfinite", root))
    fixed = where(regular, root, 1)
    step = where(regular, (fixed * fixed * fixed - size) / (3 * fixed * fixed), 0)
    return elementwise("copysign", root - stop_gradient(step), v)


def _floats(x1: Any, x2: Any) -> tuple[Variable, Variable]:
    """Both in their common dtype, float64 where that is none of floats."""
    a, b = operands((x1, x2))
    dtype = np.result_type(a.dtype, b.dtype).name
    dtype = dtype if dtype.startswith("float") else "float64"
    return cast(a, dtype), cast(b, dtype)


def heaviside(x1: Any, x2: Any) -> Variable:
    """0 where x1 is negative, 1 where it is positive, x2 where it is 0.

    errors: `RscanTypeError` (E0805) for what is no number or array; `ShapeError` (E0201) where shapes do not broadcast.

    >>> rs.heaviside([-1.0, 0.0, 2.0], 0.5).eval()
    array([0. , 0.5, 1. ])
    """
    a, b = _floats(x1, x2)
    step = cast(elementwise("gt", a, 0), a.dtype)
    return where(elementwise("isnan", a), a, where(elementwise("eq", a, 0), b, step))


def sinc(x: Any) -> Variable:
    """sin(πx) / (πx), 1 at 0.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.sinc([0.0, 0.5]).eval()
    array([1.        , 0.63661977])
    """
    y = _as_float(x) * float(np.pi)
    near = elementwise("lt", elementwise("abs", y), 0.05)
    away, square = where(near, 1.0, y), where(near, y * y, 0.0)
    series = 1 - square / 6 * (1 - square / 20 * (1 - square / 42 * (1 - square / 72)))
    return where(near, series, elementwise("sin", away) / away)


def _without_nan(row: str, x1: Any, x2: Any) -> Variable:
    a, b = operands((x1, x2))
    found = elementwise(row, a, b)
    if not found.dtype.startswith("float"):
        return found
    return where(elementwise("isnan", _as_float(a)), b, where(elementwise("isnan", _as_float(b)), a, found))


def fmax(x1: Any, x2: Any) -> Variable:
    """The larger of two numbers; of NaN and a number, the number.

    errors: `RscanTypeError` (E0805) for what is no number or array; `ShapeError` (E0201) where shapes do not broadcast.

    >>> rs.fmax([np.nan, 1.0], [2.0, 0.0]).eval()
    array([2., 1.])
    """
    return _without_nan("maximum", x1, x2)


def fmin(x1: Any, x2: Any) -> Variable:
    """The smaller of two numbers; of NaN and a number, the number.

    errors: `RscanTypeError` (E0805) for what is no number or array; `ShapeError` (E0201) where shapes do not broadcast.

    >>> rs.fmin([np.nan, 1.0], [2.0, 0.0]).eval()
    array([2., 0.])
    """
    return _without_nan("minimum", x1, x2)


def float_power(x1: Any, x2: Any) -> Variable:
    """`x1 ** x2` in double precision.

    errors: `RscanTypeError` (E0805) for what is no number or array; `ShapeError` (E0201) where shapes do not broadcast.

    >>> rs.float_power([2, 3], 2).eval()
    array([4., 9.])
    """
    return elementwise("pow", cast(x1, "float64"), cast(x2, "float64"))


def logaddexp2(x1: Any, x2: Any) -> Variable:
    """log₂(2^x1 + 2^x2), without overflow.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.logaddexp2(3.0, 3.0).eval()
    array(4.)
    """
    a, b = _floats(x1, x2)
    two = float(np.log(2.0))
    return elementwise("logaddexp", a * two, b * two) / two


def ldexp(x1: Any, x2: Any) -> Variable:
    """`x1 · 2^x2`, x2 integers.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `x2` of another kind; `ShapeError` (E0201) where shapes do
    not broadcast.

    >>> rs.ldexp([1.0, 3.0], [2, 1]).eval()
    array([4., 6.])
    """
    m, e = _as_float(x1), as_variable(x2)
    if e.dtype[0] == "f":
        raise RscanTypeError(f"the exponents of ldexp are integers, not {e!r}", code="E0809", labels=[(here(), "")])
    # In three parts, all of which are finite and not 0.
    e = elementwise("minimum", elementwise("maximum", cast(e, "int64"), -3000), 3000)
    third = e // 3
    power = lambda n: elementwise("exp2", cast(n, "float64"))
    return cast(cast(m, "float64") * power(third) * power(third) * power(e - 2 * third), m.dtype)


def modf(x: Any) -> tuple[Variable, Variable]:
    """The fractional and the whole parts, both with the sign of x.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.eval(rs.modf([1.5, -2.25]))
    [array([ 0.5 , -0.25]), array([ 1., -2.])]
    """
    v = _as_float(x)
    whole = elementwise("trunc", v)
    finite = elementwise("isfinite", v)
    part = where(finite, v - where(finite, whole, 0), where(elementwise("isnan", v), v, 0))
    return elementwise("copysign", part, v), whole


def divmod(x1: Any, x2: Any) -> tuple[Variable, Variable]:
    """`x1 // x2` and `x1 % x2`.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.eval(rs.divmod(7, 3))
    [array(2), array(1)]
    """
    a, b = operands((x1, x2))
    return a // b, a % b


def _integers(x1: Any, x2: Any, what: str) -> tuple[Variable, Variable]:
    a, b = operands((x1, x2))
    dtype = np.result_type(a.dtype, b.dtype).name
    if dtype[0] not in "iu":
        raise RscanTypeError(f"{what} takes integers, got {a!r} and {b!r}", code="E0809", labels=[(here(), "")])
    return cast(a, dtype), cast(b, dtype)


def gcd(x1: Any, x2: Any) -> Variable:
    """The greatest common divisor of integers, not negative; that of 0 and 0 is 0.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `x1` or `x2` of another kind; `ShapeError` (E0201) where
    shapes do not broadcast.

    >>> rs.gcd(12, [8, 18]).eval()
    array([4, 6])
    """
    from .scan import scan
    from .updates import until

    a, b = _integers(x1, x2, "gcd")
    a, b = elementwise("abs", broadcast_like(a, a | b)), elementwise("abs", broadcast_like(b, a | b))

    def euclid(a: Variable, b: Variable) -> Any:
        rest = where(elementwise("eq", b, 0), 0, a % b)
        larger = where(elementwise("eq", b, 0), a, b)
        return [larger, cast(rest, b.dtype)], until(all(elementwise("eq", rest, 0)))

    # Euclid's algorithm takes at most so many steps for numbers of 64 bits.
    found, _ = scan(euclid, outputs_info=[a, b], n_steps=94, name="gcd")
    # The remainder of the smallest integer, whose absolute value overflows, may be negative.
    return elementwise("abs", found[0][-1])


def lcm(x1: Any, x2: Any) -> Variable:
    """The least common multiple of integers, not negative; 0 where one is 0.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `x1` or `x2` of another kind; `ShapeError` (E0201) where
    shapes do not broadcast.

    >>> rs.lcm(4, [6, 10]).eval()
    array([12, 20])
    """
    a, b = _integers(x1, x2, "lcm")
    divisor = gcd(a, b)
    none = elementwise("eq", divisor, 0)
    return where(none, 0, elementwise("abs", a // where(none, 1, divisor) * b))


def isneginf(x: Any) -> Variable:
    """True for −∞.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.isneginf([-np.inf, 1.0]).eval()
    array([ True, False])
    """
    return elementwise("eq", _as_float(x), -np.inf)


def isposinf(x: Any) -> Variable:
    """True for ∞.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.isposinf([np.inf, 1.0]).eval()
    array([ True, False])
    """
    return elementwise("eq", _as_float(x), np.inf)


def positive(x: Any) -> Variable:
    """x itself.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.conj([1.0, 2.0]).eval()
    array([1., 2.])
    """
    return as_variable(x)


real = positive
conj = positive
conjugate = positive
real_if_close = positive


def imag(x: Any) -> Variable:
    """Zeros: there are no complex numbers.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.imag([1.0, 2.0]).eval()
    array([0., 0.])
    """
    v = as_variable(x)
    return v * 0 if v.dtype[0] in "iu" else broadcast_like(as_variable(0, v.dtype), v)


def isreal(x: Any) -> Variable:
    """True everywhere: there are no complex numbers.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.isreal([1.0, 2.0]).eval()
    array([ True,  True])
    """
    return broadcast_like(as_variable(True), as_variable(x))


def iscomplex(x: Any) -> Variable:
    """False everywhere: there are no complex numbers.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.iscomplex([1.0, 2.0]).eval()
    array([False, False])
    """
    return broadcast_like(as_variable(False), as_variable(x))


def angle(x: Any, deg: bool = False) -> Variable:
    """The angle in the complex plane: π, or 180°, of negative numbers, else 0.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.angle([-1.0, 1.0]).eval()
    array([3.14159265, 0.        ])
    """
    v = _as_float(x)
    half = 180.0 if deg else float(np.pi)
    return where(elementwise("isnan", v), v, where(elementwise("signbit", v), as_variable(half, v.dtype), as_variable(0, v.dtype)))


around = round


def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 2 * float(np.pi)) -> Variable:
    """Angles without jumps: multiples of the period are added where neighbours differ by more than half of it (or `discont`).

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `p` or `axis` of another kind, (E0206) for arrays that do
    not fit each other; `AxisError` (E0810) for an axis that is not there; `ShapeError` (E0201) where shapes do not broadcast.

    >>> rs.unwrap([0.0, 3.0, 6.0, 9.0 - 2 * np.pi]).eval()
    array([0., 3., 6., 9.])
    """
    v = at_least(p, 1, "unwrap")
    v = v if v.dtype.startswith("float") or builtins.isinstance(period, int) else cast(v, config.floatX)
    at = one_axis(axis, v.ndim)
    steps = diff(v, axis=at)
    half = period / 2 if v.dtype.startswith("float") else period // 2
    wrapped = (steps + half) % period - half
    even = elementwise("logical_and", elementwise("eq", wrapped, -half), elementwise("gt", steps, 0))
    wrapped = where(even, half, wrapped)
    limit = half if discont is None else elementwise("maximum", discont, half)
    correction = where(elementwise("lt", elementwise("abs", steps), limit), 0, wrapped - steps)
    before = (builtins.slice(None),) * at
    first = v[(*before, builtins.slice(None, 1))]
    rest = v[(*before, builtins.slice(1, None))] + cast(cumsum(correction, at), v.dtype)
    return concatenate([first, rest], at)


def _between(v: Variable, axis: int, prepend: Any, append: Any) -> Variable:
    """An array between two others, each of them an array of as many axes or a number."""
    parts = []
    for part in (prepend, v, append):
        if part is None:
            continue
        value = as_variable(part, v.dtype if is_weak(part) else None)
        one = [1 if k == axis else v.shape[k] for k in range(v.ndim)]
        parts.append(broadcast_to(value, one) if value.ndim == 0 else value)
    return v if len(parts) == 1 else join(axis, *parts)


def diff(x: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Variable:
    """Differences of neighbours along an axis, n times; of x with other arrays, or numbers, before and behind it.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `x`, `n` or `axis` of another kind, (E0206) for arrays that
    do not fit each other; `AxisError` (E0810) for an axis that is not there.

    >>> rs.diff([1.0, 4.0, 9.0]).eval()
    array([3., 5.])
    """
    v = at_least(x, 1, "diff")
    if n < 0:
        raise RscanTypeError(f"n counts the differences, got {n}", code="E0809", labels=[(here(), "")])
    v = _between(v, one_axis(axis, v.ndim), prepend, append)
    before = (builtins.slice(None),) * one_axis(axis, v.ndim)
    for _ in range(n):
        later, earlier = v[(*before, builtins.slice(1, None))], v[(*before, builtins.slice(None, -1))]
        v = elementwise("ne", later, earlier) if v.dtype == "bool" else later - earlier
    return v
