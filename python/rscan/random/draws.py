"""Draws of continuous distributions, pure functions of a key.

Parameters are numbers, arrays or variables. `size` is a number, a variable, or a sequence of these, to which parameters broadcast;
without it they broadcast to each other. Draws have gradients to parameters: how a number would move that is drawn.
A negative scale is an error (E0301) when the function runs.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import linalg
from .._spans import here
from ..config import config
from ..errors import RscanTypeError
from ..ops import (
    all,
    assert_,
    broadcast_to,
    cast,
    exp,
    gammaln,
    less,
    less_equal,
    log,
    log1p,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    sqrt,
    stop_gradient,
    sum,
    tan,
    where,
)  # fmt: skip
from ..scan import scan
from ..updates import until
from ..variable import Variable, apply, as_variable, dtype_name, elementwise, extents, operands
from .keys import drawn, fold_in

__all__ = [
    "beta", "cauchy", "chisquare", "dirichlet", "exponential", "gamma", "gumbel", "laplace", "logistic", "lognormal", "multivariate_normal",
    "normal", "pareto", "student_t", "truncated_normal", "uniform", "weibull",
]  # fmt: skip


def float_dtype(dtype: Any) -> str:
    """A dtype of draws, by default the configured one."""
    name = dtype_name(dtype, config.floatX)
    if not name.startswith("float"):
        raise RscanTypeError(f"such draws are float32 or float64, not {name}", code="E0806", labels=[(here(), "")])
    return name


def shape_of(size: Any, *parameters: Any) -> list[Any]:
    """The shape to draw: `size`, or what the parameters broadcast to."""
    if size is not None:
        return extents(size)
    arrays = [v for v in (as_variable(p) for p in parameters) if v.ndim]
    if not arrays:
        return []
    common = arrays[0]
    for v in arrays[1:]:
        common = elementwise("eq", common, common) & elementwise("eq", v, v)
    return extents(list(common.shape))


def _is(value: Any, number: int) -> bool:
    return isinstance(value, (int, float)) and value == number


def scaled(scale: Any, what: str) -> Any:
    """A scale, which is not negative when the function runs. NaN stays: the draws are NaN, too."""
    if isinstance(scale, (int, float)) and not scale < 0:
        return scale
    v = as_variable(scale)
    return assert_(v, logical_not(less(v, 0)), message=f"{what} takes a scale of 0 or more")


def uniform(key: Any, size: Any = None, low: Any = 0.0, high: Any = 1.0, dtype: Any = None) -> Variable:
    """Uniform over [low, high); an error (E0301) where high is below low.

    errors: those of `normal`.

    >>> rs.random.uniform(rs.random.key(0), 10_000, low=1.0, high=3.0).eval().mean().round(1)
    np.float64(2.0)
    """
    unit = drawn("random_uniform", {"dtype": float_dtype(dtype)}, key, *shape_of(size, low, high))
    if _is(low, 0) and _is(high, 1):
        return unit
    return low + unit * _width(low, high)


def _width(low: Any, high: Any) -> Any:
    width = high - low
    if isinstance(width, (int, float)) and not width < 0:
        return width
    v = as_variable(width)
    return assert_(v, logical_not(less(v, 0)), message="uniform takes a high that is not below low")


def normal(key: Any, size: Any = None, loc: Any = 0.0, scale: Any = 1.0, dtype: Any = None) -> Variable:
    """Normal with mean `loc` and standard deviation `scale`.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `size` of another kind, (E0702) for what is no key, (E0806)
    for a dtype that is not there; `ShapeError` (E0201) where shapes do not broadcast; `AssertionFailedError` (E0301), when it runs, for
    parameters out of their domain.

    >>> rs.random.normal(rs.random.key(0), 10_000, loc=2.0).eval().mean().round(1)
    np.float64(2.0)
    """
    unit = drawn("random_normal", {"dtype": float_dtype(dtype)}, key, *shape_of(size, loc, scale))
    return unit if _is(loc, 0) and _is(scale, 1) else loc + unit * scaled(scale, "normal")


def _exponential(key: Any, size: Any, dtype: Any) -> Variable:
    return -log1p(-uniform(key, size, dtype=dtype))


def exponential(key: Any, size: Any = None, scale: Any = 1.0, dtype: Any = None) -> Variable:
    """Exponential with mean `scale`.

    errors: those of `normal`.

    >>> rs.random.exponential(rs.random.key(0), 10_000, scale=2.0).eval().mean().round(1)
    np.float64(2.0)
    """
    return _exponential(key, shape_of(size, scale), dtype) * scaled(scale, "exponential")


def _positive(x: Variable) -> Variable:
    return maximum(x, float(np.finfo(x.dtype).tiny))


def gumbel(key: Any, size: Any = None, loc: Any = 0.0, scale: Any = 1.0, dtype: Any = None) -> Variable:
    """Gumbel's distribution of largest values.

    errors: those of `normal`.

    >>> rs.random.gumbel(rs.random.key(0), (2, 3)).eval().shape
    (2, 3)
    """
    return loc - log(_positive(_exponential(key, shape_of(size, loc, scale), dtype))) * scaled(scale, "gumbel")


def laplace(key: Any, size: Any = None, loc: Any = 0.0, scale: Any = 1.0, dtype: Any = None) -> Variable:
    """Laplace's distribution: exponential on both sides of `loc`.

    errors: those of `normal`.

    >>> rs.random.laplace(rs.random.key(0), 2, dtype="float32").eval().dtype
    dtype('float32')
    """
    shape = shape_of(size, loc, scale)
    sign = where(uniform(fold_in(key, 1), shape, dtype=dtype) < 0.5, -1.0, 1.0)
    return loc + cast(sign, float_dtype(dtype)) * _exponential(fold_in(key, 0), shape, dtype) * scaled(scale, "laplace")


def logistic(key: Any, size: Any = None, loc: Any = 0.0, scale: Any = 1.0, dtype: Any = None) -> Variable:
    """The logistic distribution.

    errors: those of `normal`.

    >>> rs.random.logistic(rs.random.key(0), (2, 3)).eval().shape
    (2, 3)
    """
    u = _positive(uniform(key, shape_of(size, loc, scale), dtype=dtype))
    return loc + (log(u) - log1p(-u)) * scaled(scale, "logistic")


def cauchy(key: Any, size: Any = None, loc: Any = 0.0, scale: Any = 1.0, dtype: Any = None) -> Variable:
    """Cauchy's distribution.

    errors: those of `normal`.

    >>> np.median(rs.random.cauchy(rs.random.key(0), 10_000, loc=3.0).eval()).round(1)
    np.float64(3.0)
    """
    u = uniform(key, shape_of(size, loc, scale), dtype=dtype)
    return loc + tan((u - 0.5) * math.pi) * scaled(scale, "cauchy")


def lognormal(key: Any, size: Any = None, mean: Any = 0.0, sigma: Any = 1.0, dtype: Any = None) -> Variable:
    """The exponential of a normal number.

    errors: those of `normal`.

    >>> bool((rs.random.lognormal(rs.random.key(0), 100).eval() > 0).all())
    True
    """
    return exp(normal(key, size, mean, scaled(sigma, "lognormal"), dtype))


def pareto(key: Any, b: Any, size: Any = None, dtype: Any = None) -> Variable:
    """Pareto's distribution with exponent b, of numbers of at least 1; NaN where b is not positive.

    errors: those of `normal`.

    >>> rs.random.pareto(rs.random.key(0), 3.0, 4).eval().shape
    (4,)
    """
    exponent = as_variable(b)
    return where(exponent > 0, exp(_exponential(key, shape_of(size, b), dtype) / exponent), np.nan)


def weibull(key: Any, concentration: Any, size: Any = None, scale: Any = 1.0, dtype: Any = None) -> Variable:
    """Weibull's distribution; NaN where the concentration is negative.

    errors: those of `normal`.

    >>> rs.random.weibull(rs.random.key(0), 2.0, 3).eval().shape
    (3,)
    """
    draws = _positive(_exponential(key, shape_of(size, concentration, scale), dtype))
    k = as_variable(concentration)
    return where(k >= 0, exp(log(draws) / k), np.nan) * scaled(scale, "weibull")


def truncated_normal(key: Any, lower: Any, upper: Any, size: Any = None, dtype: Any = None) -> Variable:
    """Standard normal, given that it is between two numbers; NaN where the lower one is the larger.

    errors: those of `normal`.

    >>> bool((abs(rs.random.truncated_normal(rs.random.key(0), -1.0, 1.0, 100).eval()) <= 1).all())
    True
    """
    from ..special import ndtr, ndtri

    name, shape = float_dtype(dtype), shape_of(size, lower, upper)
    low, high = (cast(v, name) for v in operands((lower, upper)))
    # On the side of the negative numbers, where shares are exact.
    mirrored = low > 0
    low, high = where(mirrored, -high, low), where(mirrored, -low, high)
    first, last = ndtr(low), ndtr(high)
    share = first + uniform(key, shape, dtype=name) * (last - first)
    found = maximum(low, ndtri(_positive(share)))
    return where(less_equal(low, high), where(mirrored, -found, found), np.nan)


#: Rounds of rejection at most: each accepts nineteen of twenty.
_ROUNDS = 64


def _unit_gamma(key: Any, a: Variable, shape: list[Any]) -> Variable:
    """Gamma with a ≥ 1 (Marsaglia, Tsang, "A simple method for generating gamma variables", 2000)."""
    d = a - 1 / 3
    c = 1 / sqrt(9 * d)

    def propose(number: Variable, found: Variable, done: Variable, d: Variable, c: Variable) -> Any:
        own = fold_in(key, number)
        x = normal(fold_in(own, 0), shape, dtype=a.dtype)
        u = _positive(uniform(fold_in(own, 1), shape, dtype=a.dtype))
        v = (1 + c * x) ** 3
        good = logical_and(v > 0, log(u) < 0.5 * x * x + d - d * v + d * log(where(v > 0, v, 1.0)))
        new = where(logical_and(good, logical_not(done)), d * v, found)
        now = logical_or(done, good)
        return [new, now], until(all(now))

    start = broadcast_to(d, shape)
    rows, _ = scan(
        propose,
        sequences=np.arange(_ROUNDS),
        outputs_info=[start, broadcast_to(as_variable(False), shape)],
        non_sequences=[d, c],
        name="gamma",
    )
    return rows[0][-1]


def _moves_with(draws: Variable, a: Variable) -> Variable:
    """Draws x of a gamma distribution, which move so that the share P(a, x) of smaller numbers stays (Figurnov, Mohamed, Mnih, "Implicit
    reparameterization gradients", 2018), with three derivatives by a.

    P at the draw, as a moves, less what it is there, is what a relative step η of x has to take back: Taylor's series of P by η, with
    density·x = w, is w·(η + r·η²/2 + (r² − a + 1)·η³/6), r = a − 1 − x. It is solved for η, one order at a time.
    """
    from ..special import gammainc

    at = stop_gradient(_positive(draws))
    share = gammainc(a, at)
    first = (stop_gradient(share) - share) / exp(a * log(at) - at - gammaln(a))
    r = a - 1 - at
    second = first - 0.5 * r * first * first
    third = first - 0.5 * r * second * second - (r * r - a + 1) / 6 * second * second * second
    return apply("grad_to", {}, stop_gradient(draws), at * (1 + third), as_variable(True))


def gamma(key: Any, a: Any, size: Any = None, scale: Any = 1.0, dtype: Any = None) -> Variable:
    """Gamma with shape a, times `scale`; NaN where a is negative.

    errors: those of `normal`.

    >>> rs.random.gamma(rs.random.key(0), 2.0, 10_000).eval().mean().round(1)
    np.float64(2.0)
    """
    name = float_dtype(dtype)
    shape = shape_of(size, a, scale)
    given = broadcast_to(cast(a, name), shape)
    fixed = stop_gradient(given)
    small = fixed < 1
    draws = _unit_gamma(fold_in(key, 0), where(small, fixed + 1, fixed), shape)
    shrink = exp(-_exponential(fold_in(key, 1), shape, name) / where(small, fixed, 1.0))
    return where(fixed >= 0, _moves_with(where(small, draws * shrink, draws), given), np.nan) * scaled(scale, "gamma")


def chisquare(key: Any, df: Any, size: Any = None, dtype: Any = None) -> Variable:
    """χ² with df degrees of freedom.

    errors: those of `normal`.

    >>> rs.random.chisquare(rs.random.key(0), 3.0, 10_000).eval().mean().round(1)
    np.float64(3.0)
    """
    return 2 * gamma(key, cast(df, float_dtype(dtype)) / 2, size, dtype=dtype)


def student_t(key: Any, df: Any, size: Any = None, loc: Any = 0.0, scale: Any = 1.0, dtype: Any = None) -> Variable:
    """Student's t with df degrees of freedom, times `scale`, plus `loc`.

    errors: those of `normal`.

    >>> rs.random.student_t(rs.random.key(0), 5.0, (2, 2)).eval().shape
    (2, 2)
    """
    shape, freedom = shape_of(size, df, loc, scale), cast(df, float_dtype(dtype))
    spread = sqrt(freedom / chisquare(fold_in(key, 1), freedom, shape, dtype))
    return loc + normal(fold_in(key, 0), shape, dtype=dtype) * spread * scaled(scale, "student_t")


def beta(key: Any, a: Any, b: Any, size: Any = None, dtype: Any = None) -> Variable:
    """Beta with parameters a and b.

    errors: those of `normal`.

    >>> rs.random.beta(rs.random.key(0), 2.0, 3.0, 1000).eval().mean().round(1)
    np.float64(0.4)
    """
    shape = shape_of(size, a, b)
    x, y = gamma(fold_in(key, 0), a, shape, dtype=dtype), gamma(fold_in(key, 1), b, shape, dtype=dtype)
    return x / _positive(x + y)


def dirichlet(key: Any, alpha: Any, size: Any = None, dtype: Any = None) -> Variable:
    """Vectors of numbers whose sum is 1, along the last axis; NaN where a parameter is not positive. `size` counts vectors.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `alpha` or `size` of another kind, (E0702) for what is no
    key, (E0806) for a dtype that is not there.

    >>> rs.random.dirichlet(rs.random.key(0), [1.0, 2.0]).eval().sum().round(6)
    np.float64(1.0)
    """
    a = as_variable(alpha)
    if a.ndim == 0:
        raise RscanTypeError(f"dirichlet takes a vector of parameters, got {a!r}", code="E0809", labels=[(here(), "")])
    shape = None if size is None else [*extents(size), *extents(a.shape[-1])]
    draws = where(all(a > 0, -1, keepdims=True), gamma(key, a, shape, dtype=dtype), np.nan)
    return draws / _positive(sum(draws, -1, keepdims=True))


def multivariate_normal(key: Any, mean: Any, cov: Any, size: Any = None) -> Variable:
    """Normal vectors with this mean and covariance, along the last axis; `size` counts vectors. Batches of both broadcast.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `size` of another kind; `ShapeError` (E0201) where shapes
    do not broadcast, (E0208) where extents of a product differ; `LinAlgError` (E0602) for a matrix that is not positive definite;
    `RscanTypeError` (E0702) for what is no key.

    >>> rs.random.multivariate_normal(rs.random.key(0), np.zeros(2), np.eye(2), 5).eval().shape
    (5, 2)
    """
    m, c = operands((mean, cov))
    m, c = (v if v.dtype.startswith("float") else cast(v, config.floatX) for v in (m, c))
    n = extents(m.shape[-1])
    heads = shape_of(size, m[..., 0], c[..., 0, 0])
    unit = normal(key, [*heads, *n], dtype=np.result_type(m.dtype, c.dtype).name)
    factor = linalg.cholesky(c)
    if factor.ndim == 2:
        return m + unit @ factor.T
    return m + (factor @ unit[..., None])[..., 0]
