"""Special functions, named as SciPy's: `rs.special.gammainc`, `rs.special.log_ndtr`, …, with gradients by every float argument."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ._args import whole
from ._spans import here
from .errors import RscanTypeError
from .ops import (
    abs,
    digamma,
    erf,
    erfc,
    erfinv,
    exp,
    expm1,
    gammaln,
    less,
    log,
    log1p,
    log_sigmoid,
    log_softmax,
    logical_and,
    logical_or,
    logsumexp,
    maximum,
    relu,
    sigmoid,
    softmax,
    softplus,
    sqrt,
    stop_gradient,
    where,
    xlogy,
)  # fmt: skip
from .ops import all as _all
from .ops_elementwise import cast
from .ops_math import _floats, sinc
from .ops_shape import broadcast_arrays
from .scan import scan
from .updates import until
from .variable import Variable, as_variable, elementwise, operands, result_dtype

expit = sigmoid
psi = digamma
log_expit = log_sigmoid

__all__ = [
    "beta", "betainc", "betaln", "binom", "comb", "digamma", "entr", "erf", "erfc", "erfinv", "expit", "expm1", "factorial", "gamma",
    "gammainc", "gammaincc", "gammaln", "gammasgn", "i0", "i0e", "i1", "i1e", "kl_div", "log1p", "log_expit", "log_ndtr", "log_softmax",
    "logit", "logsumexp", "multigammaln", "ndtr", "ndtri", "poch", "polygamma", "psi", "rel_entr", "relu", "sinc", "softmax", "softplus",
    "xlog1py", "xlogy", "zeta",
]  # fmt: skip


def _float(x: Any) -> Variable:
    v = as_variable(x)
    return v if v.dtype.startswith("float") else cast(v, "float64")


def _together(*args: Any) -> list[Variable]:
    """All in their common float dtype, broadcast to one shape."""
    items = operands(list(args))
    dtype = result_dtype(*items)
    dtype = dtype if dtype.startswith("float") else "float64"
    return broadcast_arrays(*(cast(v, dtype) for v in items))


# Gamma functions.


def gammasgn(x: Any) -> Variable:
    """The sign of the gamma function; 0 at its poles.

    >>> rs.special.gammasgn([1.0, -0.5]).eval()
    array([ 1., -1.])
    """
    v = _float(x)
    down = elementwise("floor", v)
    pole = logical_and(less(v, 0.5), v == down)
    return where(pole, 0.0, where(logical_or(v > 0, down % 2 == 0), 1.0, -1.0)).astype(v.dtype)


def gamma(x: Any) -> Variable:
    """The gamma function; NaN where it has a pole, but at 0, where it is infinite.

    >>> rs.special.gamma([1.0, 5.0]).eval().round(6)
    array([ 1., 24.])
    """
    v = _float(x)
    return where(v == 0, np.inf, where(gammasgn(v) == 0, np.nan, gammasgn(v) * exp(gammaln(v))))


def factorial(x: Any) -> Variable:
    """x!, the gamma function of x + 1; 0 of negative numbers.

    >>> rs.special.factorial(5).eval().round(6)
    np.float64(120.0)
    """
    v = _float(x)
    return where(v < 0, 0.0, exp(gammaln(maximum(v, 0.0) + 1)))


def betaln(a: Any, b: Any) -> Variable:
    """The logarithm of the beta function.

    >>> rs.special.betaln(2.0, 3.0).eval().round(6)
    np.float64(-2.484907)
    """
    x, y = _floats(a, b)
    return gammaln(x) + gammaln(y) - gammaln(x + y)


def beta(a: Any, b: Any) -> Variable:
    """The beta function of positive numbers.

    >>> rs.special.beta(2.0, 3.0).eval().round(6)
    np.float64(0.083333)
    """
    return exp(betaln(a, b))


def binom(n: Any, k: Any) -> Variable:
    """Binomial coefficients, as floats; 0 for k outside 0 … n.

    >>> rs.special.binom(5, 2).eval().round(6)
    np.float64(10.0)
    """
    x, y = _floats(n, k)
    inside = logical_and(y >= 0, y <= x)
    x1, y1 = where(inside, x, 1.0), where(inside, y, 0.0)
    found = exp(gammaln(x1 + 1) - gammaln(y1 + 1) - gammaln(x1 - y1 + 1))
    rounded = elementwise("round", found)
    # Of whole numbers they are whole; gradients are those of the smooth function.
    exact = logical_and(logical_and(x == elementwise("floor", x), y == elementwise("floor", y)), found < 1e10)
    return where(inside, found + stop_gradient(where(exact, rounded - found, 0.0)), 0.0)


comb = binom


def poch(z: Any, m: Any) -> Variable:
    """z·(z + 1)·…·(z + m − 1) for positive z: Γ(z + m) / Γ(z).

    >>> rs.special.poch(3.0, 2.0).eval().round(6)
    np.float64(12.0)
    """
    x, y = _floats(z, m)
    return exp(gammaln(x + y) - gammaln(x))


def multigammaln(a: Any, d: int) -> Variable:
    """The logarithm of the multivariate gamma function of dimension d.

    >>> rs.special.multigammaln(3.0, 2).eval().round(6)
    np.float64(1.550195)
    """
    v = _float(a)
    total = as_variable(0.25 * whole(d, "d") * (d - 1) * math.log(math.pi), v.dtype)
    for j in range(d):
        total = total + gammaln(v - j / 2)
    return total


#: Bernoulli's numbers B₂ … B₂₄ over (2j)!, of the formula of Euler and Maclaurin.
_EULER = (
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600, -3617 / 10670622842880000,
    43867 / 5109094217170944000, -174611 / 802857662698291200000,
)  # fmt: skip


def zeta(x: Any, q: Any = 1.0) -> Variable:
    """Hurwitz's zeta function Σ (q + k)^−x, for x > 1 and q > 0; Riemann's without q. (Euler–Maclaurin with ten terms.)

    >>> rs.special.zeta(2.0).eval().round(6)
    np.float64(1.644934)
    """
    s, a = _floats(x, q)
    valid = logical_and(s > 1, a > 0)
    s1, a1 = where(s > 1, s, 2.0), where(a > 0, a, 1.0)
    total: Any = 0
    for k in range(12):
        total = total + (a1 + k) ** -s1
    far = a1 + 12
    total = total + far ** (1 - s1) / (s1 - 1) + 0.5 * far**-s1
    rising, power = s1, far ** (-s1 - 1)
    for j, factor in enumerate(_EULER):
        total = total + factor * rising * power
        rising = rising * (s1 + 2 * j + 1) * (s1 + 2 * j + 2)
        power = power / (far * far)
    return where(valid, total, where(s == 1, np.inf, np.nan)).astype(s1.dtype)


def polygamma(n: int, x: Any) -> Variable:
    """The n-th derivative of digamma, for x > 0 (n = 1 … 3 for all x).

    >>> rs.special.polygamma(1, 1.0).eval().round(6)
    np.float64(1.644934)
    """
    v, order = _float(x), whole(n, "n")
    if order < 0:
        raise RscanTypeError(f"n counts derivatives, got {n}", code="E0809", labels=[(here(), "")])
    if order == 0:
        return digamma(v)
    if order in (1, 2):
        return elementwise("trigamma" if order == 1 else "tetragamma", v)
    return (-1.0) ** (order + 1) * math.factorial(order) * zeta(order + 1.0, v)


#: Steps of series and fractions at most: for arguments up to some 10⁶.
_STEPS = 10_000


def _series(a: Variable, x: Variable) -> Variable:
    """Σ xⁿ / (a·(a + 1)·…·(a + n))."""

    def step(n: Variable, term: Variable, total: Variable, a: Variable, x: Variable) -> Any:
        term = term * x / (a + cast(n, a.dtype))
        total = total + term
        done = _all(abs(term) <= abs(total) * float(np.finfo(a.dtype).eps) * 0.25)
        return [term, total], until(done)

    first = 1 / a
    rows, _ = scan(step, sequences=np.arange(1, _STEPS), outputs_info=[first, first], non_sequences=[a, x], name="gammainc")
    return rows[1][-1]


def _fraction(numerator: Any, denominator: Any, first: Variable, parameters: list[Variable], name: str) -> Variable:
    """A continued fraction by Lentz's method: `b₀ + a₁/(b₁ + a₂/(b₂ + …))`."""
    tiny = float(np.finfo(first.dtype).tiny) * 1e4

    def step(n: Variable, f: Variable, c: Variable, d: Variable, *given: Variable) -> Any:
        k = cast(n, f.dtype)
        a, b = numerator(k, *given), denominator(k, *given)
        d = b + a * d
        d = 1 / where(abs(d) < tiny, tiny, d)
        c = b + a / c
        c = where(abs(c) < tiny, tiny, c)
        change = c * d
        return [f * change, c, d], until(_all(abs(change - 1) <= float(np.finfo(f.dtype).eps) * 2))

    start = where(abs(first) < tiny, tiny, first)
    rows, _ = scan(step, sequences=np.arange(1, _STEPS), outputs_info=[start, start, first * 0], non_sequences=parameters, name=name)
    return rows[0][-1]


def _incomplete_gamma(a: Any, x: Any) -> tuple[Variable, Variable, Variable]:
    """The lower and the upper regularised function, and where arguments make sense."""
    p, v = _together(a, x)
    valid = logical_and(p > 0, v >= 0)
    inside = logical_and(valid, logical_and(v > 0, elementwise("isfinite", v)))
    p, v = where(inside, p, 1.0), where(inside, v, 1.0)
    small = v < p + 1
    log_front = p * log(v) - v - gammaln(p)
    lower = exp(log_front) * _series(where(small, p, 1.0), where(small, v, 0.5))
    pb, vb = where(small, 1.0, p), where(small, 3.0, v)
    upper = exp(log_front) / _fraction(lambda n, p, v: -n * (n - p), lambda n, p, v: v - p + 1 + 2 * n, vb - pb + 1, [pb, vb], "gammaincc")
    return where(small, lower, 1 - upper), where(small, 1 - lower, upper), inside


def gammainc(a: Any, x: Any) -> Variable:
    """The regularised lower incomplete gamma function, for a > 0 and x ≥ 0: the part of Γ(a) whose integral ends at x.

    By its series and its continued fraction, in loops that end where all elements are exact.

    >>> rs.special.gammainc(1.0, 1.0).eval().round(6)
    np.float64(0.632121)
    """
    lower, _, inside = _incomplete_gamma(a, x)
    p, v = _together(a, x)
    outside = where(logical_and(p > 0, v == 0), 0.0, where(logical_and(p > 0, v == np.inf), 1.0, np.nan))
    return where(inside, lower, outside).astype(p.dtype)


def gammaincc(a: Any, x: Any) -> Variable:
    """The regularised upper incomplete gamma function: 1 − gammainc(a, x), exact where that is small.

    >>> rs.special.gammaincc(1.0, 1.0).eval().round(6)
    np.float64(0.367879)
    """
    _, upper, inside = _incomplete_gamma(a, x)
    p, v = _together(a, x)
    outside = where(logical_and(p > 0, v == 0), 1.0, where(logical_and(p > 0, v == np.inf), 0.0, np.nan))
    return where(inside, upper, outside).astype(p.dtype)


def betainc(a: Any, b: Any, x: Any) -> Variable:
    """The regularised incomplete beta function, for a, b > 0 and x in [0, 1], by its continued fraction.

    >>> rs.special.betainc(2.0, 3.0, 0.5).eval().round(6)
    np.float64(0.6875)
    """
    p, q, v = _together(a, b, x)
    inside = logical_and(logical_and(p > 0, q > 0), logical_and(v > 0, v < 1))
    p1, q1, v1 = where(inside, p, 1.0), where(inside, q, 1.0), where(inside, v, 0.5)
    mirrored = v1 > (p1 + 1) / (p1 + q1 + 2)
    p2, q2, v2 = where(mirrored, q1, p1), where(mirrored, p1, q1), where(mirrored, 1 - v1, v1)

    def numerator(n: Variable, p: Variable, q: Variable, v: Variable) -> Variable:
        m = elementwise("floor", n / 2)
        even = m * (q - m) * v / ((p + 2 * m - 1) * (p + 2 * m))
        odd = -(p + m) * (p + q + m) * v / ((p + 2 * m) * (p + 2 * m + 1))
        return where(n % 2 == 0, even, odd)

    one = v2 * 0 + 1
    fraction = _fraction(numerator, lambda n, p, q, v: v * 0 + 1, one, [p2, q2, v2], "betainc")
    found = exp(p2 * log(v2) + q2 * log1p(-v2) - betaln(p2, q2)) / (p2 * fraction)
    found = where(mirrored, 1 - found, found)
    valid = logical_and(p > 0, q > 0)
    outside = where(logical_and(valid, v == 0), 0.0, where(logical_and(valid, v == 1), 1.0, np.nan))
    return where(inside, found, outside).astype(p.dtype)


# Entropies and logarithms.


def xlog1py(x: Any, y: Any) -> Variable:
    """x·log(1 + y), 0 where x is 0.

    >>> rs.special.xlog1py(0.0, -1.0).eval()
    array(0.)
    """
    a, b = _floats(x, y)
    none = a == 0
    return where(none, where(elementwise("isnan", b), b, 0.0), a * log1p(where(none, 0.0, b)))


def entr(x: Any) -> Variable:
    """−x·log(x), 0 at 0, −∞ of negative numbers.

    >>> rs.special.entr([0.5, 0.0]).eval().round(6)
    array([ 0.346574, -0.      ])
    """
    v = _float(x)
    return where(v < 0, -np.inf, -xlogy(v, where(v > 0, v, 1.0)))


def rel_entr(x: Any, y: Any) -> Variable:
    """x·log(x/y) of positive numbers, 0 where x is 0 and y is not negative, else ∞.

    >>> rs.special.rel_entr(1.0, 2.0).eval().round(6)
    np.float64(-0.693147)
    """
    a, b = _floats(x, y)
    both = logical_and(a > 0, b > 0)
    found = where(both, a, 1.0) * log(where(both, a, 1.0) / where(both, b, 1.0))
    return where(both, found, where(logical_and(a == 0, b >= 0), 0.0, np.inf)).astype(found.dtype)


def kl_div(x: Any, y: Any) -> Variable:
    """x·log(x/y) − x + y.

    >>> rs.special.kl_div(1.0, 2.0).eval().round(6)
    np.float64(0.306853)
    """
    a, b = _floats(x, y)
    found = rel_entr(a, b)
    return where(found < np.inf, found - a + b, np.inf).astype(found.dtype)


def logit(p: Any) -> Variable:
    """log(p / (1 − p)), the inverse of `expit`.

    >>> rs.special.logit([0.5, 1.0]).eval()
    array([ 0., inf])
    """
    v = _float(p)
    return log(v) - log1p(-v)


# The normal distribution.


def ndtr(x: Any) -> Variable:
    """The probability of a standard normal number of at most x.

    >>> rs.special.ndtr(0.0).eval()
    array(0.5)
    """
    return 0.5 * erfc(_float(x) * -math.sqrt(0.5))


def log_ndtr(x: Any) -> Variable:
    """Its logarithm, exact far out on both sides.

    >>> rs.special.log_ndtr(-40.0).eval().round(3)
    np.float64(-804.608)
    """
    v = _float(x)
    far, terms = (-20.0, 9) if v.dtype == "float64" else (-9.0, 5)
    tail, right = less(v, far), v >= 0
    below = where(tail, v, far)
    square, series = 1 / (below * below), as_variable(1.0, v.dtype)
    for k in range(terms, 0, -1):
        series = 1 - (2 * k - 1) * square * series
    left = -0.5 * below * below - log(-below) - 0.5 * math.log(2 * math.pi) + log(series)
    middle = log(0.5 * erfc(where(logical_or(tail, right), -1.0, v) * -math.sqrt(0.5)))
    high = log1p(-0.5 * erfc(where(right, v, 1.0) * math.sqrt(0.5)))
    return where(tail, left, where(right, high, middle))


def ndtri(p: Any) -> Variable:
    """The x with `ndtr(x) = p`, by Newton's method from below one half; derivatives up to the third.

    >>> rs.special.ndtri(0.975).eval().round(6)
    np.float64(1.959964)
    """
    v = _float(p)
    inside = logical_and(v > 0, v < 1)
    high = v > 0.5
    q = where(inside, where(high, 1 - v, v), 0.25)
    log_q = log(q)
    u = sqrt(-2 * log_q)
    x: Variable = where(q > 0.1, -math.sqrt(2.0) * erfinv(1 - 2 * maximum(q, 0.1)), -u + log(2 * math.pi * u * u) / (2 * u))

    def better(x: Variable) -> Variable:
        below = log_ndtr(x)
        return x + (log_q - below) * exp(below + 0.5 * x * x + 0.5 * math.log(2 * math.pi))

    for _ in range(4):
        x = stop_gradient(better(x))
    x = better(better(x))
    found = where(high, -x, x)
    return where(inside, found, where(v == 0, -np.inf, where(v == 1, np.inf, np.nan))).astype(v.dtype)


# Bessel functions.

#: Where the power series ends and the asymptotic one begins, and the terms of each: both are exact to rounding there.
_BESSEL_FROM, _BESSEL_TERMS, _BESSEL_FAR = 20.0, 60, 30


def _bessel(x: Any, order: int) -> tuple[Variable, Variable]:
    """The modified Bessel function of order 0 or 1, times exp(−|x|); and |x|."""
    v = _float(x)
    size = abs(v)
    small = less(size, _BESSEL_FROM)
    near = where(small, v, 1.0)
    quarter, series = near * near / 4, as_variable(1.0, v.dtype)
    for k in range(_BESSEL_TERMS, 0, -1):
        series = 1 + quarter / (k * (k + order)) * series
    series = series * exp(-abs(near)) * (1 if order == 0 else near / 2)
    far, tail = where(small, _BESSEL_FROM, size), as_variable(1.0, v.dtype)
    for k in range(_BESSEL_FAR, 0, -1):
        tail = 1 - (4 * order * order - (2 * k - 1) ** 2) / (8 * k * far) * tail
    tail = tail / sqrt(2 * math.pi * far) * (where(v < 0, -1.0, 1.0).astype(v.dtype) if order else 1)
    return where(small, series, tail), size


def i0e(x: Any) -> Variable:
    """`i0(x)·exp(−|x|)`, which does not overflow.

    >>> rs.special.i0e(1.0).eval().round(6)
    np.float64(0.46576)
    """
    return _bessel(x, 0)[0]


def i0(x: Any) -> Variable:
    """The modified Bessel function of order 0.

    >>> rs.special.i0(1.0).eval().round(6)
    np.float64(1.266066)
    """
    scaled, size = _bessel(x, 0)
    return scaled * exp(size)


def i1e(x: Any) -> Variable:
    """`i1(x)·exp(−|x|)`, which does not overflow.

    >>> rs.special.i1e(1.0).eval().round(6)
    np.float64(0.20791)
    """
    return _bessel(x, 1)[0]


def i1(x: Any) -> Variable:
    """The modified Bessel function of order 1.

    >>> rs.special.i1(1.0).eval().round(6)
    np.float64(0.565159)
    """
    scaled, size = _bessel(x, 1)
    return scaled * exp(size)
