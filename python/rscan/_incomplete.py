"""The incomplete gamma and beta functions: a series and continued fractions, in loops that end where values and slopes are exact."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .ops import abs, exp, gammaln, ifelse, log, log1p, logical_and, logical_not, logical_or, maximum, minimum, stop_gradient, where
from .ops import any as _any
from .ops_elementwise import cast
from .ops_math import _floats
from .ops_shape import broadcast_arrays
from .scan import scan
from .updates import until
from .variable import Variable, as_variable, elementwise, operands, result_dtype

__all__ = ["betainc", "betaln", "gammainc", "gammaincc"]


def floats(x: Any) -> Variable:
    """What is float stays as it is; else as float64."""
    v = as_variable(x)
    return v if v.dtype.startswith("float") else cast(v, "float64")


def _together(*args: Any) -> list[Variable]:
    """All in their common float dtype, broadcast to one shape."""
    items = operands(list(args))
    dtype = result_dtype(*items)
    dtype = dtype if dtype.startswith("float") else "float64"
    return broadcast_arrays(*(cast(v, dtype) for v in items))


def betaln(a: Any, b: Any) -> Variable:
    """The logarithm of the beta function.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.special.betaln(2.0, 3.0).eval().round(6)
    np.float64(-2.484907)
    """
    x, y = _floats(a, b)
    # By comparing: of two that are equal minimum and maximum share the slopes.
    least, most = where(x < y, x, y), where(x < y, y, x)
    near = lambda p, q: gammaln(p) + where(p + q > q, gammaln(q) - gammaln(p + q), 0.0)
    return where_large(_stirlings(x, y, large_of(x)), _far_betaln, near, least, most)


def _far_betaln(p: Variable, q: Variable) -> Variable:
    """Where the logarithms of gamma functions are large and their difference is not."""
    n = p + q
    share = p * log(p / n) + q * log1p(-p / n)
    return share - 0.5 * log(p * (q / n) / (2 * math.pi)) + beyond_stirling(p) + beyond_stirling(q) - beyond_stirling(n)


def large_of(x: Variable) -> float:
    """From where on logarithms of gamma functions are so large that their sums lose digits."""
    return 1000.0 if x.dtype == "float64" else STIRLING


def where_large(large: Variable, far: Any, near: Any, *given: Variable) -> Variable:
    """`far` of what is given where that is large, else `near`: each computed of 10 in place of what is not its own, and `far` only if
    something is large."""
    usual = near(*(where(large, STIRLING, v) for v in given))
    found = far(*(where(large, v, STIRLING) for v in given))
    return where(large, ifelse(_any(large), found, usual), usual)


def _stirlings(p: Variable, q: Variable, large: float) -> Variable:
    """Where beta functions are computed by Stirling's formula."""
    return logical_and(maximum(p, q) >= large, minimum(p, q) >= float(np.finfo(p.dtype).tiny) ** 0.25)


#: Parameters from which on a logarithm of the gamma function is Stirling's formula, and up to which there are values: the numbers of terms
#: grow as their roots.
STIRLING, _LARGEST = 10.0, 1e10


def beyond_stirling(x: Variable) -> Variable:
    """What the logarithm of the gamma function has more than (x − ½)·log(x) − x + ½·log(2π)."""
    large = x >= STIRLING
    far, near = where(large, x, STIRLING), where(large, 1.0, x)
    y = 1 / (far * far)
    series = 1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y * (1 / 1188 - y * (691 / 360360 - y * (1 / 156))))))
    return where(large, series / far, gammaln(near) - ((near - 0.5) * log(near) - near + 0.5 * math.log(2 * math.pi)))


def log_less(ratio: Variable, x: Variable) -> Variable:
    """log(ratio) − x for a ratio of 1 + x; near 0 it is −x²/2."""
    near = abs(x) < 0.1
    small = where(near, x, 0.0)
    series = as_variable(0.0, x.dtype)
    for k in range(18, 1, -1):
        series = (-1.0) ** (k + 1) / k + small * series
    return where(near, small * small * series, log(where(near, 1.0, ratio)) - where(near, 0.0, x))


def log_gamma_front(p: Variable, v: Variable) -> Variable:
    """p·log(v) − v − gammaln(p). Of large p the terms are large and their sum is not."""
    large = p >= STIRLING
    a, x, b, y = where(large, p, STIRLING), where(large, v, STIRLING), where(large, 1.0, p), where(large, 1.0, v)
    far = a * log_less(x / a, (x - a) / a) + 0.5 * log(a * (0.5 / math.pi)) - beyond_stirling(a)
    return where(large, far, b * log(y) - y - gammaln(b))


def log_beta_front(p: Variable, q: Variable, v: Variable, w: Variable) -> Variable:
    """p·log(v) + q·log(w) − betaln(p, q), likewise; w is 1 − v."""
    large = _stirlings(p, q, STIRLING)
    a, b, x, y = (where(large, one, 1.0) for one in (p, q, v, w))
    apart, n = x * b - y * a, a + b
    far = a * log_less(x * (n / a), apart / a) + b * log_less(y * (n / b), -apart / b) + 0.5 * log(a * (b / n) * (0.5 / math.pi))
    far = far - beyond_stirling(a) - beyond_stirling(b) + beyond_stirling(n)
    c, d, s, t = (where(large, 1.0, one) for one in (p, q, v, w))
    s, t = where(large, 0.5, s), where(large, 0.5, t)
    # Where s is small t is rounded, and log1p(-s) is not.
    near = c * log(s) + d * where(s < 0.5, log1p(-minimum(s, 0.5)), log(t)) - betaln(c, d)
    return where(large, far, near)


def _series(a: Variable, x: Variable) -> Variable:
    """Σ xⁿ / (a·(a + 1)·…·(a + n)), for x of at most a + 1, the last term first: (1 + x/(a + 1)·(1 + x/(a + 2)·(…))) / a."""

    def count(n: Variable, term: Variable, a: Variable, x: Variable) -> Any:
        term = term * x / (a + n)
        # Of NaN, too, this ends.
        return [n + 1, term], until(logical_not(_any(term > float(np.finfo(a.dtype).eps) / 64)))

    def step(n: Variable, rest: Variable, a: Variable, x: Variable) -> Any:
        return [n - 1, 1 + x / (a + n) * rest]

    begin, given = [as_variable(1.0, a.dtype), x * 0 + 1], [a, x]
    counted, _ = scan(count, outputs_info=begin, non_sequences=[stop_gradient(v) for v in given], name="gammainc")
    terms = stop_gradient(counted[0][-1])
    rows, _ = scan(step, outputs_info=[terms, begin[1]], n_steps=cast(terms, "int64"), non_sequences=given, name="gammainc")
    return rows[1][-1] / a


def _fraction(numerator: Any, denominator: Any, first: Variable, parameters: list[Variable], name: str) -> Variable:
    """A continued fraction: `b₀ + a₁/(b₁ + a₂/(b₂ + …))`, from as many terms as `_terms` says, the last one first."""

    def step(n: Variable, rest: Variable, *given: Variable) -> Any:
        return [n - 1, numerator(n, *given)[0] / (denominator(n, *given) + rest)]

    begin = [_terms(numerator, denominator, first, parameters, name), first * 0]
    rows, _ = scan(step, outputs_info=begin, n_steps=cast(begin[0], "int64"), non_sequences=parameters, name=name)
    return first + rows[1][-1]


def _terms(numerator: Any, denominator: Any, first: Variable, parameters: list[Variable], name: str) -> Variable:
    """How many terms make a continued fraction and its slopes exact.

    `numerator` gives aₙ and a bound of its size and of its slopes by the parameters. Where an aₙ is 0 the value has no more terms, but
    its slopes have. So it is asked what the n-th term would add if each numerator were its bound: two convergents are
    Π aᵢ / (Bₙ·Bₙ₋₁) apart, with denominators Bₙ = bₙ·Bₙ₋₁ + aₙ·Bₙ₋₂.
    """
    enough = float(np.finfo(first.dtype).eps) / 64

    def step(n: Variable, ratio: Variable, gap: Variable, *given: Variable) -> Any:
        a, bound = numerator(n, *given)
        ratio = 1 / (denominator(n, *given) + a * ratio)
        added = gap * bound * abs(ratio)
        return [n + 1, ratio, added * abs(ratio)], until(logical_not(_any(added > size * enough)))

    size = stop_gradient(abs(first))
    begin = [as_variable(1.0, first.dtype), size * 0, size * 0 + 1]
    rows, _ = scan(step, outputs_info=begin, non_sequences=[stop_gradient(v) for v in parameters], name=name)
    return stop_gradient(rows[0][-1])


def _incomplete_gamma(a: Any, x: Any) -> tuple[Variable, Variable, Variable]:
    """The lower and the upper regularised function, and where arguments make sense."""
    p, v = _together(a, x)
    valid = logical_and(p > 0, v >= 0)
    inside = logical_and(logical_and(valid, p <= _LARGEST), logical_and(v > 0, elementwise("isfinite", v)))
    p, v = where(inside, p, 1.0), where(inside, v, 1.0)
    small = v < p + 1
    log_front = log_gamma_front(p, v)
    lower = exp(log_front) * _series(where(small, p, 1.0), where(small, v, 0.5))
    pb, vb = where(small, 1.0, p), where(small, 3.0, v)
    numerator = lambda n, p, v: (n * (p - n), n * maximum(abs(p - n), 1.0))
    upper = exp(log_front) / _fraction(numerator, lambda n, p, v: v - p + 1 + 2 * n, vb - pb + 1, [pb, vb], "gammaincc")
    return where(small, lower, 1 - upper), where(small, 1 - lower, upper), inside


def _gamma_begins(p: Variable, v: Variable) -> Variable:
    """The lower function as it is near 0, with three derivatives of a number that is 0."""
    here = logical_and(v == 0, p > 0)
    at, a = where(here, v, 1.0), where(here, p, 1.0)
    return at**a * (1 / a - at / (a + 1) + at * at / (2 * (a + 2))) * exp(-gammaln(a))


def gammainc(a: Any, x: Any) -> Variable:
    """The regularised lower incomplete gamma function, for a > 0 and x ≥ 0: the part of Γ(a) whose integral ends at x.

    By its series and its continued fraction, in loops that end where all elements and their slopes are exact. NaN for a above 10¹⁰.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.special.gammainc(1.0, 1.0).eval().round(6)
    np.float64(0.632121)
    """
    lower, _, inside = _incomplete_gamma(a, x)
    p, v = _together(a, x)
    outside = where(logical_and(p > 0, v == 0), _gamma_begins(p, v), where(logical_and(p > 0, v == np.inf), 1.0, np.nan))
    return where(inside, lower, outside).astype(p.dtype)


def gammaincc(a: Any, x: Any) -> Variable:
    """The regularised upper incomplete gamma function: 1 − gammainc(a, x), exact where that is small because x is larger than a.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.special.gammaincc(1.0, 1.0).eval().round(6)
    np.float64(0.367879)
    """
    _, upper, inside = _incomplete_gamma(a, x)
    p, v = _together(a, x)
    outside = where(logical_and(p > 0, v == 0), 1 - _gamma_begins(p, v), where(logical_and(p > 0, v == np.inf), 0.0, np.nan))
    return where(inside, upper, outside).astype(p.dtype)


def _beta_begins(p: Variable, q: Variable, v: Variable) -> Variable:
    """The incomplete beta function as it is near 0, with three derivatives of a number that is 0."""
    here = logical_and(v == 0, logical_and(p > 0, q > 0))
    at, a, b = where(here, v, 1.0), where(here, p, 1.0), where(here, q, 1.0)
    near = 1 / a - (b - 1) * at / (a + 1) + (b - 1) * (b - 2) * at * at / (2 * (a + 2))
    return at**a * near * exp(-betaln(a, b))


def _beta_numerator(n: Variable, p: Variable, q: Variable, v: Variable, *_: Variable) -> tuple[Variable, Variable]:
    scale = (p + n - 1) * (p + n - 1 + q) * (v / (p + 2 * n - 1)) ** 2 * n
    return scale * (q - n), scale * maximum(abs(q - n), 1.0)


def _beta_denominator(n: Variable, p: Variable, q: Variable, v: Variable, w: Variable, beyond: Variable) -> Variable:
    return n + n * (q - n) * v / (p + 2 * n - 1) + (p + n) / (p + 1 + 2 * n) * (1 + beyond + n * (1 + w))


def incomplete_beta(a: Any, b: Any, x: Any, rest: Any) -> Variable:
    """`betainc(a, b, x)` where 1 − x is known more exactly than by a subtraction."""
    p, q, v, w = _together(a, b, x, rest)
    valid = logical_and(p > 0, q > 0)
    inside = logical_and(logical_and(valid, maximum(p, q) <= _LARGEST), logical_and(v > 0, w > 0))
    p1, q1, v1, w1 = where(inside, p, 1.0), where(inside, q, 1.0), where(inside, v, 0.5), where(inside, w, 0.5)
    mirrored = v1 > (p1 + 1) / (p1 + q1 + 2)
    p2, q2 = where(mirrored, q1, p1), where(mirrored, p1, q1)
    v2, w2 = where(mirrored, w1, v1), where(mirrored, v1, w1)
    # The even part of the usual continued fraction, of which no term cancels another (Didonato, Morris, "Significant digit computation of
    # the incomplete beta function ratios", 1992), and how far the place lies below the mean, by the smaller of v and 1 − v.
    n = p2 + q2
    beyond = where(v2 < 0.5, p2 - n * v2, n * w2 - q2)
    given = [p2, q2, v2, w2, beyond]
    fraction = _fraction(_beta_numerator, _beta_denominator, (1 + beyond) * (p2 / (p2 + 1)), given, "betainc")
    found = exp(log_beta_front(p2, q2, v2, w2)) / fraction
    found = where(mirrored, 1 - found, found)
    ends = where(v == 0, _beta_begins(p, q, v), 1 - _beta_begins(q, p, w))
    outside = where(logical_and(valid, logical_or(v == 0, w == 0)), ends, np.nan)
    return where(inside, found, outside).astype(p.dtype)


def betainc(a: Any, b: Any, x: Any) -> Variable:
    """The regularised incomplete beta function, for a, b > 0 and x in [0, 1], by its continued fraction. NaN for a or b above 10¹⁰.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.special.betainc(2.0, 3.0, 0.5).eval().round(6)
    np.float64(0.6875)
    """
    v = floats(x)
    return incomplete_beta(a, b, v, 1 - v)
