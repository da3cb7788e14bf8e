"""Log-densities, named as SciPy's: `rs.stats.norm.logpdf(x, loc, scale)`, `rs.stats.poisson.logpmf(k, mu)`, …

Outside its support a density is 0 and its logarithm −∞, where gradients are 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import linalg
from ._incomplete import beyond_stirling, incomplete_beta, large_of, log_beta_front, log_gamma_front, where_large
from ._instead import public
from ._spans import here
from .errors import RscanTypeError, UnsupportedError
from .indexing import diagonal, take_along_axis
from .ops import abs, exp, floor, gammaln, log, log1p, log_sigmoid, logical_and, maximum, minimum, sin, sum, where, xlogy
from .ops_elementwise import cast
from .ops_shape import expand_dims
from .special import betainc, betaln, gammainc, gammaincc, i0e, log_ndtr, ndtr, ndtri, xlog1py
from .variable import Variable, as_variable, elementwise

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def _float(x: Any) -> Variable:
    v = as_variable(x)
    return v if v.dtype.startswith("float") else cast(v, "float64")


def _floats(*xs: Any) -> list[Variable]:
    """The values as floats; numbers of Python take the dtype that the arrays have in common, as they do in sums."""
    numbers = [isinstance(x, (int, float)) and not isinstance(x, np.generic) for x in xs]
    arrays = [_float(x) for x, number in zip(xs, numbers, strict=True) if not number]
    dtype = np.result_type(*(v.dtype for v in arrays)) if arrays else np.dtype("float64")
    left = iter(arrays)
    return [as_variable(np.asarray(x, dtype)) if number else next(left) for x, number in zip(xs, numbers, strict=True)]


class Distribution:
    """A distribution of one number with shape parameters, moved by `loc` and, where it is continuous, stretched by `scale`.

    errors: `RscanTypeError` (E0805) for what is no number or array; `ShapeError` (E0201) where shapes do not broadcast.

    >>> rs.stats.norm.logpdf(0.0, 0.0, 1.0).eval().round(6)
    np.float64(-0.918939)
    >>> rs.stats.gamma.cdf(1.0, 2.0, scale=0.5).eval().round(6)
    np.float64(0.593994)
    >>> rs.stats.poisson.logpmf([0, 1], 2.0).eval().round(6)
    array([-2.      , -1.306853])
    """

    name: str
    shapes: list[str]

    _discrete = False

    def __init__(
        self,
        name: str,
        shapes: str,
        log_density: Callable[..., Variable],
        support: Callable[..., tuple[Any, Any]],
        inside: Any,
        cdf: Callable[..., Variable] | None = None,
    ) -> None:
        self.name, self.shapes = name, shapes.split()
        self._log, self._support, self._inside, self._cdf = log_density, support, inside, cdf

    def __repr__(self) -> str:
        return f"rs.stats.{self.name}"

    def _given(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[list[Any], Any, Any]:
        """Shape parameters, place and scale."""
        names = [*self.shapes, "loc"] if self._discrete else [*self.shapes, "loc", "scale"]
        values = dict(zip(names, args, strict=False))
        wrong = [k for k in named if k not in names or k in values]
        values.update(named)
        if wrong or len(args) > len(names) or any(s not in values for s in self.shapes):
            text = f"{self.name} takes x, {', '.join(names)}; loc{'' if self._discrete else ' and scale'} can be left away"
            raise RscanTypeError(text, code="E0809", labels=[(here(), "")])
        return [values[s] for s in self.shapes], values.get("loc", 0.0), values.get("scale", 1.0)

    def _standard(self, x: Any, args: Any, named: Any) -> tuple[Variable, list[Variable], Any]:
        given, loc, scale = self._given(args, named)
        v, *shapes = _floats(x, *given)
        moved = v if isinstance(loc, (int, float)) and loc == 0 else v - loc
        stretched = moved if isinstance(scale, (int, float)) and scale == 1 else moved / scale
        return stretched, shapes, scale

    def _outside(self, y: Variable, shapes: list[Variable]) -> tuple[Variable, Any, Any]:
        low, high = self._support(*shapes)
        there = logical_and(elementwise("ge", y, low), elementwise("le", y, high))
        return logical_and(there, y == floor(y) if self._discrete else elementwise("isfinite", y)), low, high

    def _log_at(self, x: Any, args: Any, named: Any) -> Variable:
        y, shapes, scale = self._standard(x, args, named)
        there, _, _ = self._outside(y, shapes)
        found = self._log(where(there, y, self._inside_of(shapes)), *shapes)
        if not (isinstance(scale, (int, float)) and scale == 1):
            found = found - log(_floats(y, scale)[1])
        return where(there, found, where(elementwise("isnan", y), y, -np.inf))

    def _inside_of(self, shapes: list[Variable]) -> Any:
        return self._inside(*shapes) if callable(self._inside) else self._inside

    def cdf(self, x: Any, *args: Any, **named: Any) -> Variable:
        """The probability of at most x.

        errors: `RscanTypeError` (E0805) for what is no number or array; `UnsupportedError` (E0813) of a distribution that has none here.
        """
        if self._cdf is None:
            raise UnsupportedError(f"{self.name} has no cdf here", code="E0813", labels=[(here(), "")])
        y, shapes, _ = self._standard(x, args, named)
        y = floor(y) if self._discrete else y
        low, high = self._support(*shapes)
        below, above = elementwise("lt", y, low), elementwise("gt", y, high)
        found = self._cdf(where(elementwise("logical_or", below, above), self._inside_of(shapes), y), *shapes)
        return where(below, 0.0, where(above, 1.0, found))


class Continuous(Distribution):
    """A distribution with a density."""

    def logpdf(self, x: Any, *args: Any, **named: Any) -> Variable:
        """The logarithm of the density at x.

        errors: `RscanTypeError` (E0805) for what is no number or array; `ShapeError` (E0201) where shapes do not broadcast.
        """
        return self._log_at(x, args, named)

    def pdf(self, x: Any, *args: Any, **named: Any) -> Variable:
        """The density at x.

        errors: `RscanTypeError` (E0805) for what is no number or array; `ShapeError` (E0201) where shapes do not broadcast.
        """
        return exp(self._log_at(x, args, named))


class Discrete(Distribution):
    """A distribution of integers."""

    _discrete = True

    def logpmf(self, k: Any, *args: Any, **named: Any) -> Variable:
        """The logarithm of the probability of k.

        errors: `RscanTypeError` (E0805) for what is no number or array; `ShapeError` (E0201) where shapes do not broadcast.
        """
        return self._log_at(k, args, named)

    def pmf(self, k: Any, *args: Any, **named: Any) -> Variable:
        """The probability of k.

        errors: `RscanTypeError` (E0805) for what is no number or array; `ShapeError` (E0201) where shapes do not broadcast.
        """
        return exp(self._log_at(k, args, named))


class _Normal(Continuous):
    def logcdf(self, x: Any, *args: Any, **named: Any) -> Variable:
        """The logarithm of the probability of at most x."""
        return log_ndtr(self._standard(x, args, named)[0])

    def ppf(self, q: Any, loc: Any = 0.0, scale: Any = 1.0) -> Variable:
        """The x of which at most q is the probability."""
        return ndtri(q) * scale + loc


_ALL = lambda *_: (-np.inf, np.inf)
_POSITIVE = lambda *_: (0.0, np.inf)
_UNIT = lambda *_: (0.0, 1.0)


def _log_gamma(y: Variable, a: Variable) -> Variable:
    # Of large a the terms are large and their sum is not.
    far = lambda y, a: log_gamma_front(a, y) - log(y)
    return where_large(logical_and(a >= large_of(a), y > 0), far, lambda y, a: xlogy(a - 1, y) - y - gammaln(a), y, a)


def _log_inverse_gamma(y: Variable, a: Variable) -> Variable:
    far = lambda y, a: log_gamma_front(a, 1 / y) - log(y)
    return where_large(a >= large_of(a), far, lambda y, a: -(a + 1) * log(y) - gammaln(a) - 1 / y, y, a)


def _log_1_square(y: Variable) -> Variable:
    """log(1 + y²), whose square may be too large for a number."""
    size = abs(y)
    return where_large(size > 1e8, lambda y: 2 * log(y), lambda y: log1p(y * y), size)


def _log_t(y: Variable, df: Variable) -> Variable:
    # The logarithms of gamma functions of large df are large, and their difference is not.
    far = lambda z: z * log1p(0.5 / z) - 0.5 + beyond_stirling(z + 0.5) - beyond_stirling(z) - _HALF_LOG_2PI
    near = lambda z: gammaln(z + 0.5) - gammaln(z) - 0.5 * log(2 * math.pi * z)
    return where_large(df >= large_of(df), far, near, df / 2) - (df + 1) / 2 * _log_1_square(y / elementwise("sqrt", df))


def _t_cdf(y: Variable, df: Variable) -> Variable:
    """By the tail, of which betainc knows the slope; near 0, where that is a root of a square, by its series."""
    half = (df + 1) / 2
    near = half * y * y < 1e-6 * df
    there = where(near, 1.0, y)
    square = there * there
    tail = 0.5 * incomplete_beta(df / 2, 0.5, df / (df + square), square / (df + square))
    at = where(near, y, 0.0)
    step = at * at / df
    middle = 0.5 + at * (1 - half * step / 3 + half * (half + 1) * step * step / 10) * exp(_log_t(at * 0, df))
    return where(near, middle, where(there > 0, 1 - tail, tail))


def _f_cdf(y: Variable, m: Variable, n: Variable) -> Variable:
    both = m * y + n
    return incomplete_beta(m / 2, n / 2, m * y / both, n / both)


def _laplace_cdf(y: Variable) -> Variable:
    right = y > 0
    return where(right, 1 - 0.5 * exp(-where(right, y, 0.0)), 0.5 * exp(where(right, 0.0, y)))


def _log_von_mises(y: Variable, k: Variable) -> Variable:
    # The logarithm of i0e has a corner at 0, which |k| takes away.
    return -2 * k * sin(0.5 * y) ** 2 - math.log(2 * math.pi) - (log(i0e(k)) + (abs(k) - k))


def _log_beta(y: Variable, a: Variable, b: Variable) -> Variable:
    near = lambda y, a, b: xlogy(a - 1, y) + xlog1py(b - 1, -y) - betaln(a, b)
    large = logical_and(maximum(a, b) >= large_of(a), logical_and(y > 0, y < 1))
    there = where(large, y, 0.5)
    far = lambda a, b: log_beta_front(a, b, there, 1 - there) - log(there) - log1p(-there)
    return where_large(large, far, lambda a, b: near(where(large, 0.5, y), a, b), a, b)


def _log_f(y: Variable, m: Variable, n: Variable) -> Variable:
    def far(y: Variable, m: Variable, n: Variable) -> Variable:
        odds = y * (m / n)
        return log_beta_front(m / 2, n / 2, 1 / (1 + 1 / odds), 1 / (1 + odds)) - log(y)

    def near(y: Variable, m: Variable, n: Variable) -> Variable:
        ratio = log(m / n)
        usual = lambda y: xlogy(m / 2 - 1, y) + m / 2 * ratio - (m + n) / 2 * log1p(y * (m / n))
        return where_large(y * (m / n) > 1e30, lambda y: -(n / 2 + 1) * log(y) - n / 2 * ratio, usual, y) - betaln(m / 2, n / 2)

    between = logical_and(y * (m / n) > 1e-30, y * (m / n) < 1e30)
    return where_large(logical_and(maximum(m, n) >= large_of(m), between), far, near, y, m, n)


def _log_poisson(k: Variable, mu: Variable) -> Variable:
    far = lambda k, mu: log_gamma_front(k, mu) - log(k)
    return where_large(k >= large_of(k), far, lambda k, mu: xlogy(k, mu) - gammaln(k + 1) - mu, k, mu)


def _log_binomial(k: Variable, n: Variable, p: Variable) -> Variable:
    others, proper = n - k, logical_and(p > 0, p < 1)
    large = logical_and(proper, logical_and(maximum(k, others) >= large_of(n), minimum(k, others) >= 1))
    share, own = where(large, p, 0.5), where(large, 0.5, p)
    far = lambda a, b: log_beta_front(a, b, share, 1 - share) + log(a + b) - log(a) - log(b)
    near = lambda a, b: gammaln(a + b + 1) - gammaln(a + 1) - gammaln(b + 1) + xlogy(a, own) + xlog1py(b, -own)
    return where_large(large, far, near, k, others)


def _log_negative_binomial(k: Variable, n: Variable, p: Variable) -> Variable:
    large = logical_and(logical_and(p > 0, p < 1), logical_and(maximum(k, n) >= large_of(n), k >= 1))
    share, own = where(large, p, 0.5), where(large, 0.5, p)
    far = lambda k, n: log_beta_front(n, k, share, 1 - share) - log(k)
    near = lambda k, n: gammaln(k + n) - gammaln(k + 1) - gammaln(n) + n * log(own) + xlog1py(k, -own)
    return where_large(large, far, near, k, n)


def _log_narrow(a: Variable, b: Variable) -> Variable:
    """The logarithm of the normal probability between two numbers that are near each other, by the density in the middle."""
    middle, width = (a + b) / 2, b - a
    square, w = middle * middle, width * width
    sixth = square**3 - 15 * square * square + 45 * square - 15
    bend = w * ((square - 1) / 24 + w * ((square * square - 6 * square + 3) / 1920 + w * sixth / 322560))
    return log(width) - 0.5 * square - _HALF_LOG_2PI + log1p(bend)


def _log_truncated(y: Variable, a: Variable, b: Variable) -> Variable:
    # Of the side on which more is exact.
    swap = a > 0
    low, high = where(swap, -b, a), where(swap, -a, b)
    # Nothing is cut off at -inf, where the slope of log_ndtr is infinite.
    cut = low > -np.inf
    below = log_ndtr(where(cut, low, elementwise("minimum", high, 0.0) - 1.0))
    narrow = (high - low) * (1 + abs(low)) < 0.05
    mass = log_ndtr(high) + where(cut, log1p(-exp(below - where(narrow, below + 1.0, log_ndtr(high)))), 0.0)
    mass = where(narrow, _log_narrow(where(narrow, low, 0.0), where(narrow, high, 0.01)), mass)
    return -0.5 * y * y - _HALF_LOG_2PI - mass


def _log_lognormal(y: Variable, s: Variable) -> Variable:
    logs = log(y)
    return -0.5 * (logs / s) ** 2 - log(s) - logs - _HALF_LOG_2PI


norm: Continuous = _Normal("norm", "", lambda y: -0.5 * y * y - _HALF_LOG_2PI, _ALL, 0.0, ndtr)
uniform: Continuous = Continuous("uniform", "", lambda y: y * 0, _UNIT, 0.5, lambda y: y)
expon: Continuous = Continuous("expon", "", lambda y: -y, _POSITIVE, 1.0, lambda y: -elementwise("expm1", -y))
gamma: Continuous = Continuous("gamma", "a", _log_gamma, _POSITIVE, 1.0, lambda y, a: gammainc(a, y))
beta: Continuous = Continuous("beta", "a b", _log_beta, _UNIT, 0.5, lambda y, a, b: betainc(a, b, y))
chi2: Continuous = Continuous(
    "chi2", "df", lambda y, k: _log_gamma(y / 2, k / 2) - math.log(2), _POSITIVE, 1.0, lambda y, k: gammainc(k / 2, y / 2)
)
t: Continuous = Continuous("t", "df", _log_t, _ALL, 0.0, _t_cdf)
f: Continuous = Continuous("f", "dfn dfd", _log_f, _POSITIVE, 1.0, _f_cdf)
cauchy: Continuous = Continuous(
    "cauchy", "", lambda y: -math.log(math.pi) - _log_1_square(y), _ALL, 0.0, lambda y: 0.5 + elementwise("atan", y) / math.pi
)
laplace: Continuous = Continuous("laplace", "", lambda y: -abs(y) - math.log(2), _ALL, 0.0, _laplace_cdf)
logistic: Continuous = Continuous(
    "logistic", "", lambda y: log_sigmoid(y) + log_sigmoid(-y), _ALL, 0.0, lambda y: exp(log_sigmoid(y))
)
lognorm: Continuous = Continuous(
    "lognorm", "s", _log_lognormal, lambda s: (np.finfo("float64").tiny, np.inf), 1.0, lambda y, s: ndtr(log(y) / s)
)
halfnorm: Continuous = Continuous(
    "halfnorm", "", lambda y: -0.5 * y * y + 0.5 * math.log(2 / math.pi), _POSITIVE, 1.0, lambda y: elementwise("erf", y * math.sqrt(0.5))
)
halfcauchy: Continuous = Continuous(
    "halfcauchy", "", lambda y: math.log(2 / math.pi) - _log_1_square(y), _POSITIVE, 1.0, lambda y: 2 / math.pi * elementwise("atan", y)
)
invgamma: Continuous = Continuous(
    "invgamma", "a", _log_inverse_gamma, lambda a: (np.finfo("float64").tiny, np.inf), 1.0,
    lambda y, a: gammaincc(a, 1 / y),
)  # fmt: skip
pareto: Continuous = Continuous("pareto", "b", lambda y, b: log(b) - (b + 1) * log(y), lambda b: (1.0, np.inf), 2.0, lambda y, b: 1 - y**-b)
weibull_min: Continuous = Continuous(
    "weibull_min", "c", lambda y, c: log(c) + xlogy(c - 1, y) - y**c, _POSITIVE, 1.0, lambda y, c: -elementwise("expm1", -(y**c))
)
gumbel_r: Continuous = Continuous("gumbel_r", "", lambda y: -y - exp(-y), _ALL, 0.0, lambda y: exp(-exp(-y)))
gumbel_l: Continuous = Continuous("gumbel_l", "", lambda y: y - exp(y), _ALL, 0.0, lambda y: -elementwise("expm1", -exp(y)))
truncnorm: Continuous = Continuous(
    "truncnorm", "a b", _log_truncated, lambda a, b: (a, b), lambda a, b: where(a > -np.inf, a, where(b < np.inf, b, 0.0))
)
skewnorm: Continuous = Continuous("skewnorm", "a", lambda y, a: math.log(2) - 0.5 * y * y - _HALF_LOG_2PI + log_ndtr(a * y), _ALL, 0.0)
vonmises: Continuous = Continuous("vonmises", "kappa", _log_von_mises, _ALL, 0.0)

bernoulli: Discrete = Discrete(
    "bernoulli", "p", lambda k, p: xlogy(k, p) + xlog1py(1 - k, -p), _UNIT, 0.0, lambda k, p: where(k < 1, 1 - p, 1.0)
)
poisson: Discrete = Discrete(
    "poisson", "mu", _log_poisson, _POSITIVE, 0.0, lambda k, mu: gammaincc(k + 1, mu)
)
geom: Discrete = Discrete(
    "geom", "p", lambda k, p: log(p) + xlog1py(k - 1, -p), lambda p: (1.0, np.inf), 1.0, lambda k, p: -elementwise("expm1", k * log1p(-p))
)
binom: Discrete = Discrete(
    "binom", "n p", _log_binomial, lambda n, p: (0.0, n), 0.0,
    lambda k, n, p: where(k < n, betainc(elementwise("maximum", n - k, 0.5), k + 1, 1 - p), 1.0),
)  # fmt: skip
nbinom: Discrete = Discrete(
    "nbinom", "n p", _log_negative_binomial, _POSITIVE, 0.0, lambda k, n, p: betainc(n, k + 1, p)
)
randint: Discrete = Discrete(
    "randint", "low high", lambda k, low, high: -log(high - low) + k * 0, lambda low, high: (low, high - 1), lambda low, high: low
)


class dirichlet:
    """Vectors of positive numbers whose sum is 1, along the last axis.

    errors: `RscanTypeError` (E0805) for what is no number or array; `ShapeError` (E0201) where shapes do not broadcast.

    >>> rs.stats.dirichlet.logpdf([0.5, 0.5], [1.0, 1.0]).eval().round(6) + 0.0
    np.float64(0.0)
    """

    @staticmethod
    def logpdf(x: Any, alpha: Any) -> Variable:
        """The logarithm of the density at the vectors x.

        errors: `RscanTypeError` (E0805) for what is no number or array; `ShapeError` (E0201) where shapes do not broadcast.
        """
        v, a = _float(x), _float(alpha)
        return sum(xlogy(a - 1, v), -1) - sum(gammaln(a), -1) + gammaln(sum(a, -1))

    @staticmethod
    def pdf(x: Any, alpha: Any) -> Variable:
        """The density at the vectors x.

        errors: `RscanTypeError` (E0805) for what is no number or array; `ShapeError` (E0201) where shapes do not broadcast.
        """
        return exp(dirichlet.logpdf(x, alpha))


class multinomial:
    """How often each of several outcomes occurs in n trials, along the last axis.

    errors: `RscanTypeError` (E0805) for what is no number or array; `ShapeError` (E0201) where shapes do not broadcast.

    >>> rs.stats.multinomial.logpmf([1, 1], 2, [0.5, 0.5]).eval().round(6)
    np.float64(-0.693147)
    """

    @staticmethod
    def logpmf(x: Any, n: Any, p: Any) -> Variable:
        """The logarithm of the probability of the counts x, which add up to n.

        errors: `RscanTypeError` (E0805) for what is no number or array; `ShapeError` (E0201) where shapes do not broadcast.
        """
        k, q, total = _float(x), _float(p), _float(n)
        found = gammaln(total + 1) + sum(xlogy(k, q) - gammaln(k + 1), -1)
        return where(sum(k, -1) == total, found, -np.inf)

    @staticmethod
    def pmf(x: Any, n: Any, p: Any) -> Variable:
        """The probability of the counts x.

        errors: `RscanTypeError` (E0805) for what is no number or array; `ShapeError` (E0201) where shapes do not broadcast.
        """
        return exp(multinomial.logpmf(x, n, p))


class categorical:
    """One of several outcomes, numbered from 0, with probabilities along the last axis.

    errors: `RscanTypeError` (E0805) for what is no number or array; `ShapeError` (E0201) where shapes do not broadcast.

    >>> rs.stats.categorical.logpmf(1, [0.25, 0.75]).eval().round(6)
    np.float64(-0.287682)
    """

    @staticmethod
    def logpmf(k: Any, p: Any) -> Variable:
        """The logarithm of the probability of outcome k.

        errors: `RscanTypeError` (E0805) for what is no number or array; `RscanIndexError` (E0202) for an outcome that is not there.
        """
        q, place = log(_float(p)), cast(k, "int64")
        return q[place] if q.ndim == 1 else take_along_axis(q, expand_dims(place, -1), -1)[..., 0]


class multivariate_normal:
    """Normal vectors, along the last axis.

    errors: `RscanTypeError` (E0805) for what is no number or array; `LinAlgError` (E0602) for a covariance that is not positive definite.

    >>> rs.stats.multivariate_normal.logpdf([0.0, 0.0], np.zeros(2), np.eye(2)).eval().round(6)
    np.float64(-1.837877)
    """

    @staticmethod
    def logpdf(x: Any, mean: Any = 0.0, cov: Any = 1.0) -> Variable:
        """The logarithm of the density at the vectors x, with a covariance matrix, by Cholesky's factor.

        errors: `RscanTypeError` (E0805) for what is no number or array; `LinAlgError` (E0602) for a `cov` that is not positive definite.
        """
        v, c = _float(x), _float(cov)
        deviation = v - mean
        n = deviation.shape[-1]
        half = _HALF_LOG_2PI * (cast(n, v.dtype) if isinstance(n, Variable) else n)
        if c.ndim == 0:
            log_det = log(c) * (cast(n, v.dtype) if isinstance(n, Variable) else n)
            return -0.5 * (sum(deviation * deviation, -1) / c + log_det) - half
        factor = linalg.cholesky(c)
        rows = deviation if deviation.ndim == 1 else deviation[..., None]
        white = linalg.solve_triangular(factor, rows, lower=True)
        white = white if deviation.ndim == 1 else white[..., 0]
        return -0.5 * sum(white * white, -1) - sum(log(diagonal(factor, 0, -2, -1)), -1) - half

    @staticmethod
    def pdf(x: Any, mean: Any = 0.0, cov: Any = 1.0) -> Variable:
        """The density at the vectors x.

        errors: `RscanTypeError` (E0805) for what is no number or array; `ShapeError` (E0201) where shapes do not broadcast.
        """
        return exp(multivariate_normal.logpdf(x, mean, cov))


__all__ = [
    "bernoulli", "beta", "binom", "categorical", "cauchy", "chi2", "dirichlet", "expon", "f", "gamma", "geom", "gumbel_l", "gumbel_r",
    "halfcauchy", "halfnorm", "invgamma", "laplace", "logistic", "lognorm", "multinomial", "multivariate_normal", "nbinom", "norm",
    "pareto", "poisson", "randint", "skewnorm", "t", "truncnorm", "uniform", "vonmises", "weibull_min",
]  # fmt: skip

if not TYPE_CHECKING:  # for whom a name that is misspelt must stay a mistake
    __getattr__, __dir__ = public(__name__, __all__)
