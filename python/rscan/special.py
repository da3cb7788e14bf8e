"""Special functions, named as SciPy's: `rs.special.gammainc`, `rs.special.log_ndtr`, …, with gradients by every float argument."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ._args import whole
from ._incomplete import STIRLING, betainc, betaln, beyond_stirling, gammainc, gammaincc, log_less
from ._incomplete import floats as _float
from ._instead import public
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
    ndtri,
    relu,
    sigmoid,
    softmax,
    softplus,
    sqrt,
    stop_gradient,
    where,
    xlogy,
)  # fmt: skip
from .ops_math import _floats, sinc
from .variable import Variable, as_variable, elementwise

expit = sigmoid
psi = digamma
log_expit = log_sigmoid

__all__ = [
    "beta", "betainc", "betaln", "binom", "comb", "digamma", "entr", "erf", "erfc", "erfinv", "expit", "expm1", "factorial", "gamma",
    "gammainc", "gammaincc", "gammaln", "gammasgn", "i0", "i0e", "i1", "i1e", "kl_div", "log1p", "log_expit", "log_ndtr", "log_softmax",
    "logit", "logsumexp", "multigammaln", "ndtr", "ndtri", "poch", "polygamma", "psi", "rel_entr", "relu", "sinc", "softmax", "softplus",
    "xlog1py", "xlogy", "zeta",
]  # fmt: skip

if not TYPE_CHECKING:  # for whom a name that is misspelt must stay a mistake
    __getattr__, __dir__ = public(__name__, __all__)


# Gamma functions.


def gammasgn(x: Any) -> Variable:
    """The sign of the gamma function; 0 at its poles.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.special.gammasgn([1.0, -0.5]).eval()
    array([ 1., -1.])
    """
    v = _float(x)
    down = elementwise("floor", v)
    pole = logical_and(less(v, 0.5), v == down)
    return where(pole, 0.0, where(logical_or(v > 0, down % 2 == 0), 1.0, -1.0)).astype(v.dtype)


def gamma(x: Any) -> Variable:
    """The gamma function; NaN where it has a pole, but at 0, where it is infinite.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.special.gamma([1.0, 5.0]).eval().round(6)
    array([ 1., 24.])
    """
    v = _float(x)
    return where(v == 0, np.inf, where(gammasgn(v) == 0, np.nan, gammasgn(v) * exp(gammaln(v))))


def factorial(x: Any) -> Variable:
    """x!, the gamma function of x + 1; 0 of negative numbers.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.special.factorial(5).eval().round(6)
    np.float64(120.0)
    """
    v = _float(x)
    return where(v < 0, 0.0, exp(gammaln(where(v < 0, 0.0, v) + 1)))


def beta(a: Any, b: Any) -> Variable:
    """The beta function of positive numbers.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.special.beta(2.0, 3.0).eval().round(6)
    np.float64(0.083333)
    """
    return exp(betaln(a, b))


def binom(n: Any, k: Any) -> Variable:
    """Binomial coefficients, as floats; 0 for k outside 0 … n.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.special.binom(5, 2).eval().round(6)
    np.float64(10.0)
    """
    x, y = _floats(n, k)
    inside = logical_and(y >= 0, y <= x)
    x1, y1 = where(inside, x, 1.0), where(inside, y, 0.0)
    found = exp(-log1p(x1) - betaln(x1 - y1 + 1, y1 + 1))
    rounded = elementwise("round", found)
    # Of whole numbers they are whole; gradients are those of the smooth function.
    exact = logical_and(logical_and(x == elementwise("floor", x), y == elementwise("floor", y)), found < 1e10)
    return where(inside, found + stop_gradient(where(exact, rounded - found, 0.0)), 0.0)


comb = binom


def poch(z: Any, m: Any) -> Variable:
    """z·(z + 1)·…·(z + m − 1) for positive z: Γ(z + m) / Γ(z).

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.special.poch(3.0, 2.0).eval().round(6)
    np.float64(12.0)
    """
    x, y = _floats(z, m)
    large = logical_and(x >= STIRLING, x + y >= STIRLING)
    a, b = where(large, x, STIRLING), where(large, y, 0.0)
    far = (a + b - 0.5) * log1p(b / a) + b * (log(a) - 1) + beyond_stirling(a + b) - beyond_stirling(a)
    c, d = where(large, 1.0, x), where(large, 1.0, y)
    return exp(where(large, far, gammaln(c + d) - gammaln(c)))


def multigammaln(a: Any, d: int) -> Variable:
    """The logarithm of the multivariate gamma function of dimension d.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `d` of another kind.

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

    errors: `RscanTypeError` (E0805) for what is no number or array.

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

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `n` of another kind.

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


# Entropies and logarithms.


def xlog1py(x: Any, y: Any) -> Variable:
    """x·log(1 + y), 0 where x is 0.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.special.xlog1py(0.0, -1.0).eval()
    array(0.)
    """
    a, b = _floats(x, y)
    # Where 1 + y is rounded log1p is exact, and elsewhere xlogy, which knows what 0·∞ is. Both have log(1 + y) as their slope by x.
    near = logical_and(b > -0.5, elementwise("isfinite", b))
    return where(near, a * log1p(where(near, b, 1.0)) + 0.0, xlogy(a, where(near, 1.0, 1 + b)))


def entr(x: Any) -> Variable:
    """−x·log(x), 0 at 0, −∞ of negative numbers.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.special.entr([0.5, 0.0]).eval().round(6)
    array([ 0.346574, -0.      ])
    """
    v = _float(x)
    return where(v < 0, -np.inf, -xlogy(v, where(v >= 0, v, 1.0)))


def rel_entr(x: Any, y: Any) -> Variable:
    """x·log(x/y) of positive numbers, 0 where x is 0 and y is not negative, else ∞.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.special.rel_entr(1.0, 2.0).eval().round(6)
    np.float64(-0.693147)
    """
    a, b = _floats(x, y)
    both = logical_and(a >= 0, b > 0)
    c, d = where(both, a, 1.0), where(both, b, 1.0)
    # Near 1 the quotient is rounded, and it may be too large for a number, or too small.
    ratio, least = c / d, float(np.finfo(c.dtype).tiny)
    near, far = abs(c - d) < 0.5 * d, logical_and(c > 0, logical_or(ratio < least, ratio > 1 / least))
    apart = c * log1p(where(near, (c - d) / d, 0.0))
    found = where(near, apart, xlogy(c, where(logical_or(near, far), 1.0, ratio)))
    found = where(far, c * (log(where(far, c, 1.0)) - log(d)), found)
    return where(both, found, where(logical_and(a == 0, b == 0), 0.0, np.inf)).astype(found.dtype)


def kl_div(x: Any, y: Any) -> Variable:
    """x·log(x/y) − x + y.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.special.kl_div(1.0, 2.0).eval().round(6)
    np.float64(0.306853)
    """
    a, b = _floats(x, y)
    found = rel_entr(a, b)
    near = abs(b - a) < 0.1 * a
    c, d = where(near, a, 1.0), where(near, b, 1.0)
    found = where(found < np.inf, found - a + b, np.inf)
    return where(near, -c * log_less(d / c, (d - c) / c), found).astype(a.dtype)


def logit(p: Any) -> Variable:
    """log(p / (1 − p)), the inverse of `expit`.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.special.logit([0.5, 1.0]).eval()
    array([ 0., inf])
    """
    v = _float(p)
    return log(v) - log1p(-v)


# The normal distribution.


def ndtr(x: Any) -> Variable:
    """The probability of a standard normal number of at most x.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.special.ndtr(0.0).eval()
    array(0.5)
    """
    return 0.5 * erfc(_float(x) * -math.sqrt(0.5))


def log_ndtr(x: Any) -> Variable:
    """Its logarithm, exact far out on both sides.

    errors: `RscanTypeError` (E0805) for what is no number or array.

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

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.special.i0e(1.0).eval().round(6)
    np.float64(0.46576)
    """
    return _bessel(x, 0)[0]


def i0(x: Any) -> Variable:
    """The modified Bessel function of order 0.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.special.i0(1.0).eval().round(6)
    np.float64(1.266066)
    """
    scaled, size = _bessel(x, 0)
    return scaled * exp(size)


def i1e(x: Any) -> Variable:
    """`i1(x)·exp(−|x|)`, which does not overflow.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.special.i1e(1.0).eval().round(6)
    np.float64(0.20791)
    """
    return _bessel(x, 1)[0]


def i1(x: Any) -> Variable:
    """The modified Bessel function of order 1.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.special.i1(1.0).eval().round(6)
    np.float64(0.565159)
    """
    scaled, size = _bessel(x, 1)
    return scaled * exp(size)
