"""Draws of integers and of elements, pure functions of a key. Parameters and `size` as for draws of floats; there are no gradients.
Parameters of no distribution (a negative mean, a probability of 2, NaN) are an error (E0301) when the function runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._args import one_axis
from .._spans import here
from ..config import config
from ..errors import RscanTypeError, RscanValueError
from ..ops import (
    abs,
    all,
    any,
    argmax,
    argsort,
    assert_,
    broadcast_to,
    cast,
    clip,
    cumsum,
    equal,
    exp,
    floor,
    gammaln,
    ifelse,
    isnan,
    less,
    less_equal,
    log,
    logical_and,
    logical_not,
    logical_or,
    max,
    maximum,
    minimum,
    moveaxis,
    prod,
    reshape,
    sqrt,
    stack,
    stop_gradient,
    sum,
    take,
    where,
)  # fmt: skip
from ..scan import scan
from ..updates import until
from ..variable import Variable, as_variable, dtype_name, extents, static_value
from .draws import _positive, gumbel, shape_of, uniform
from .keys import drawn, fold_in

__all__ = ["bernoulli", "binomial", "categorical", "choice", "geometric", "integers", "multinomial", "permutation", "poisson"]


def integers(key: Any, low: Any, high: Any = None, size: Any = None, dtype: Any = "int64") -> Variable:
    """Integers of [low, high), or of [0, low) without `high`, all equally likely. Arrays of bounds are less than 2⁵³ apart.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `size` of another kind, (E0702) for what is no key;
    `ShapeError` (E0201) where shapes do not broadcast; `RscanValueError` (E0701) for bounds that are not ordered.

    >>> rs.random.integers(rs.random.key(0), 0, 2, 1000).eval().max()
    np.int64(1)
    """
    if high is None:
        low, high = 0, low
    first, end = _within(cast(low, "int64"), cast(high, "int64"), dtype_name(dtype))
    shape = shape_of(size, first, end)
    if first.ndim == end.ndim == 0:
        return cast(drawn("random_integers", {}, key, first, end, *extents(shape)), dtype)
    span = end - first
    span = assert_(span, less(first, end), span > 0, span <= 2**53, message="integers takes a low below high, less than 2**53 apart")
    part = uniform(key, shape, dtype="float64") * cast(span, "float64")
    return cast(minimum(first + cast(floor(part), "int64"), end - 1), dtype)


def _within(first: Variable, end: Variable, dtype: str) -> tuple[Variable, Variable]:
    """Bounds of integers that the dtype has."""
    if dtype == "int64" or dtype.startswith("float"):
        return first, end
    low, high = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, min(np.iinfo(dtype).max, 2**63 - 2))
    message = f"integers takes bounds within {dtype}"
    return assert_(first, first >= low, message=message), assert_(end, end <= high + 1, message=message)


def bernoulli(key: Any, p: Any = 0.5, size: Any = None, dtype: Any = "bool") -> Variable:
    """True with probability p.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `size` of another kind, (E0702) for what is no key, (E0806)
    for a dtype that is not there; `ShapeError` (E0201) where shapes do not broadcast; `AssertionFailedError` (E0301), when it runs, for
    parameters out of their domain.

    >>> rs.random.bernoulli(rs.random.key(0), 0.5, 4).eval()
    array([ True,  True,  True, False])
    """
    q = as_variable(p)
    q = q if q.dtype.startswith("float") else cast(q, config.floatX)
    q = assert_(q, logical_and(q >= 0, q <= 1), message="bernoulli takes a probability from 0 to 1")
    return cast(less(uniform(key, shape_of(size, q), dtype=q.dtype), q), dtype)


def geometric(key: Any, p: Any, size: Any = None, dtype: Any = "int64") -> Variable:
    """How many trials of probability p it takes until one succeeds: 1, 2, …

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `size` of another kind, (E0702) for what is no key, (E0806)
    for a dtype that is not there; `ShapeError` (E0201) where shapes do not broadcast; `AssertionFailedError` (E0301), when it runs, for
    parameters out of their domain.

    >>> rs.random.geometric(rs.random.key(0), 0.5, 10_000).eval().min()
    np.int64(1)
    """
    from ..ops import log1p

    q = cast(p, "float64")
    u = uniform(key, shape_of(size, q), dtype="float64")
    q = assert_(q, q > 0, q <= 1, message="geometric takes a probability above 0, up to 1")
    return cast(maximum(floor(log1p(-u) / log1p(-q)) + 1, 1.0), dtype_name(dtype))


#: Rounds of rejection at most: each accepts three of four or more.
_ROUNDS = 128
#: Where the search through the probabilities ends and rejection begins, and so many numbers that it looks at: all there are to rounding.
_FEW, _SEARCHED = 10.0, 110


def _searched(u: Variable, first: Variable, ratio: Callable[[Variable], Variable], shape: list[Any], name: str) -> Variable:
    """The first number whose probabilities add up to more than u: each is the one before times a ratio."""

    def step(k: Variable, found: Variable, probability: Variable, total: Variable, u: Variable) -> Any:
        beyond = u >= total
        probability = probability * ratio(k + 1.0)
        return [where(beyond, k + 1.0, found), probability, total + probability], until(all(logical_not(beyond)))

    first = broadcast_to(first, shape)
    start = [broadcast_to(as_variable(0.0, "float64"), shape), first, first]
    rows, _ = scan(step, sequences=np.arange(float(_SEARCHED)), outputs_info=start, non_sequences=u, name=name)
    return rows[0][-1]


def _rejected(
    key: Any,
    wanted: Variable,
    shape: list[Any],
    start: Variable,
    propose: Callable[[Variable, Variable], tuple[Variable, Variable]],
    name: str,
) -> Variable:
    """Proposals of two uniform numbers, until all that are wanted are accepted."""

    def step(number: Variable, found: Variable, done: Variable) -> Any:
        own = fold_in(key, number)
        u = uniform(fold_in(own, 0), shape, dtype="float64") - 0.5
        v = _positive(uniform(fold_in(own, 1), shape, dtype="float64"))
        k, good = propose(u, v)
        now = logical_or(done, good)
        return [where(logical_and(good, logical_not(done)), k, found), now], until(all(now))

    states = [broadcast_to(start, shape), broadcast_to(logical_not(wanted), shape)]
    rows, _ = scan(step, sequences=np.arange(_ROUNDS), outputs_info=states, name=name)
    return rows[0][-1]


def _either(large: Variable, many: Variable, few: Variable) -> Variable:
    """`many` where large, else `few`: neither is computed where no element takes it."""
    return where(large, ifelse(any(large), many, few), ifelse(all(large), many, few))


def poisson(key: Any, lam: Any = 1.0, size: Any = None, dtype: Any = "int64") -> Variable:
    """Poisson with mean `lam`: by search below 10, above by rejection (Hörmann, "The transformed rejection method for generating Poisson
    random variables", 1993).

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `size` of another kind, (E0702) for what is no key, (E0806)
    for a dtype that is not there; `ShapeError` (E0201) where shapes do not broadcast; `AssertionFailedError` (E0301), when it runs, for
    parameters out of their domain.

    >>> rs.random.poisson(rs.random.key(0), [1.0, 100.0]).eval().shape
    (2,)
    """
    name = dtype_name(dtype)
    shape = shape_of(size, lam)
    given = stop_gradient(cast(lam, "float64"))
    mean = broadcast_to(assert_(given, given >= 0, given < 9e18, message="poisson takes a mean of 0 or more, below 9e18"), shape)
    large = mean >= _FEW
    small, mu = where(large, 1.0, mean), where(large, mean, _FEW)
    u = uniform(fold_in(key, 0), shape, dtype="float64")
    few = _searched(u, exp(-small), lambda k: small / k, shape, "poisson")
    b = 0.931 + 2.53 * sqrt(mu)
    a = -0.059 + 0.02483 * b
    quick, inverse = 0.9277 - 3.6224 / (b - 2), 1.1239 + 1.1328 / (b - 3.4)

    def propose(u: Variable, v: Variable) -> tuple[Variable, Variable]:
        edge = 0.5 - abs(u)
        k = floor((2 * a / edge + b) * u + mu + 0.43)
        inside = logical_and(k >= 0, logical_or(edge >= 0.013, v <= edge))
        at = maximum(k, 0.0)
        exact = log(v * inverse / (a / (edge * edge) + b)) <= at * log(mu) - mu - gammaln(at + 1)
        return at, logical_or(logical_and(edge >= 0.07, v <= quick), logical_and(inside, exact))

    many = _rejected(fold_in(key, 1), large, shape, floor(mu), propose, "poisson")
    return cast(_either(large, many, few), name)


def binomial(key: Any, n: Any, p: Any, size: Any = None, dtype: Any = "int64") -> Variable:
    """How many of n trials of probability p succeed: by search where few do or few do not, else by transformed rejection (Hörmann, "The
    generation of binomial random variates", 1993).

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `size` of another kind, (E0702) for what is no key, (E0806)
    for a dtype that is not there; `ShapeError` (E0201) where shapes do not broadcast; `AssertionFailedError` (E0301), when it runs, for
    parameters out of their domain.

    >>> rs.random.binomial(rs.random.key(0), 10, 0.5, 1000).eval().mean().round()
    np.float64(5.0)
    """
    name = dtype_name(dtype)
    shape = shape_of(size, n, p)
    trials, share = (broadcast_to(stop_gradient(cast(v, "float64")), shape) for v in (n, p))
    trials = assert_(trials, trials >= 0, equal(trials, floor(trials)), message="binomial takes 0 trials or more, whole ones")
    share = assert_(share, share >= 0, share <= 1, message="binomial takes a probability from 0 to 1")
    turned = share > 0.5
    q = where(turned, 1 - share, share)
    large = trials * q >= _FEW
    odds = q / (1 - q)
    n0, q0 = where(large, 1.0, trials), where(large, 0.5, q)
    u = uniform(fold_in(key, 0), shape, dtype="float64")
    few = _searched(u, (1 - q0) ** n0, lambda k: maximum(n0 + 1 - k, 0.0) / k * where(large, 1.0, odds), shape, "binomial")
    n1, q1 = where(large, trials, 40.0), where(large, q, 0.5)
    spread = sqrt(n1 * q1 * (1 - q1))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * q1
    alpha, quick, mode = (2.83 + 5.1 / b) * spread, 0.92 - 4.2 / b, floor((n1 + 1) * q1)
    top = gammaln(mode + 1) + gammaln(n1 - mode + 1)

    def propose(u: Variable, v: Variable) -> tuple[Variable, Variable]:
        edge = 0.5 - abs(u)
        k = floor((2 * a / edge + b) * u + n1 * q1 + 0.5)
        inside = logical_and(k >= 0, k <= n1)
        at = clip(k, 0.0, n1)
        bound = top - gammaln(at + 1) - gammaln(n1 - at + 1) + (at - mode) * log(q1 / (1 - q1))
        exact = log(v * alpha / (a / (edge * edge) + b)) <= bound
        return at, logical_and(inside, logical_or(logical_and(edge >= 0.07, v <= quick), exact))

    many = _rejected(fold_in(key, 1), large, shape, mode, propose, "binomial")
    found = minimum(_either(large, many, few), trials)
    return cast(where(turned, trials - found, found), name)


def multinomial(key: Any, n: Any, p: Any, size: Any = None, dtype: Any = "int64") -> Variable:
    """How often each of several outcomes occurs in n trials, along the last axis, whose extent is known.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `p` or `size` of another kind, (E0702) for what is no key,
    (E0806) for a dtype that is not there; `AssertionFailedError` (E0301), when it runs, for parameters out of their domain.

    >>> rs.random.multinomial(rs.random.key(0), 10, [0.2, 0.8]).eval().sum()
    np.int64(10)
    """
    name, q = dtype_name(dtype), cast(p, "float64")
    if q.ndim == 0 or q.static_shape[-1] is None:
        raise RscanTypeError(
            f"multinomial takes probabilities along an axis of known extent, got {q!r}", code="E0809", labels=[(here(), "")]
        )
    weights = _weights(q, "multinomial")
    trials = cast(n, "int64")
    trials = assert_(trials, trials >= 0, message="multinomial takes 0 trials or more")
    shape = shape_of(size, n, q[..., 0])
    left, rest, counts = broadcast_to(trials, shape), sum(weights, -1), []
    for i in range(q.static_shape[-1] - 1):
        share = clip(where(rest > 0, weights[..., i] / where(rest > 0, rest, 1.0), 0.0), 0.0, 1.0)
        counts.append(binomial(fold_in(key, i), left, share, shape))
        left, rest = left - counts[-1], rest - weights[..., i]
    return cast(stack([*counts, left], -1), name)


def categorical(key: Any, logits: Any = None, axis: int = -1, size: Any = None, *, p: Any = None) -> Variable:
    """The number (int64) of an outcome, given the logarithms of probabilities (up to a constant) along an axis, or the probabilities.

    `size` is the shape of the result, to which the other axes broadcast.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `p`, `axis` or `size` of another kind; `RscanValueError`
    (E0809) for `p` or `logits` out of range; `AxisError` (E0810) for an axis that is not there; `ShapeError` (E0201) where shapes do not
    broadcast.

    >>> rs.random.categorical(rs.random.key(0), p=[0.0, 1.0, 0.0], size=3).eval()
    array([1, 1, 1])
    """
    if (logits is None) == (p is None):
        raise RscanValueError("categorical takes logits, or p=", code="E0809", labels=[(here(), "")])
    given = as_variable(logits if p is None else p)
    given = given if given.dtype.startswith("float") else cast(given, config.floatX)
    if given.ndim == 0:
        raise RscanTypeError(f"categorical takes an axis of outcomes, got {given!r}", code="E0809", labels=[(here(), "")])
    rows = moveaxis(given, one_axis(axis, given.ndim), -1)
    if p is None:
        possible = max(rows, -1, initial=-np.inf) > -np.inf
        rows = assert_(rows, logical_not(isnan(rows)), possible, message="categorical takes logits that are numbers, one of them finite")
    else:
        rows = log(_weights(rows, "categorical"))
    heads = list(rows.shape[:-1]) if size is None else extents(size)
    return argmax(rows + gumbel(key, [*heads, rows.shape[-1]], dtype=rows.dtype), -1)


def permutation(key: Any, n: Any, axis: int = 0) -> Variable:
    """A random order of 0 … n-1; of an array: of its rows, or of its slices along an axis.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0702) for what is no key; `RscanValueError` (E0222) for extents that
    are negative or no scalars.

    >>> np.sort(rs.random.permutation(rs.random.key(0), 4).eval())
    array([0, 1, 2, 3])
    """
    v = as_variable(n)
    if v.ndim == 0:
        return drawn("random_permutation", {}, key, cast(v, "int64"))
    at = one_axis(axis, v.ndim)
    return take(v, drawn("random_permutation", {}, key, *extents(v.shape[at])), axis=at)


def choice(key: Any, a: Any, size: Any = None, replace: bool = True, p: Any = None, axis: int = 0) -> Variable:
    """Elements of a vector (slices of an array along an axis), or of 0 … a-1. Without `replace`, none twice. `p`: their probabilities.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `size` or `p` of another kind, (E0702) for what is no key;
    `ShapeError` (E0204) where the numbers of elements differ; `AssertionFailedError` (E0301), when it runs, for parameters out of their
    domain.

    >>> rs.random.choice(rs.random.key(0), 3, 3, replace=False).eval().sum()
    np.int64(3)
    """
    v = as_variable(a)
    at = 0 if v.ndim == 0 else one_axis(axis, v.ndim)
    n = v if v.ndim == 0 else as_variable(v.shape[at])
    shape = shape_of(size)
    if not replace:
        order = permutation(key, n) if p is None else _by_weight(key, _chances(p, n), shape)
        count: Any = 1
        for extent in shape:
            count = count * extent
        picked = reshape(_at_least(order, n, count)[:count], shape)
    elif p is None:
        picked = integers(key, 0, n, shape)
    else:
        ends = cumsum(_chances(p, n))
        u = uniform(key, shape, dtype=ends.dtype if ends.dtype.startswith("float") else None) * ends[-1]
        # Where a draw falls exactly on the end of an interval, the next one is meant.
        picked = sum(cast(less_equal(ends, u[..., None]), "int64"), axis=-1)
        picked = clip(picked, 0, ends.shape[0] - 1)
    return picked if v.ndim == 0 else take(v, picked, axis=at)


def _at_least(order: Variable, n: Variable, count: Any) -> Variable:
    """Numbers of which so many are taken."""
    text = "choice without replacement draws no more than there are elements"
    there, wanted = static_value(n), static_value(as_variable(count))
    if there is not None and wanted is not None and wanted > there:
        raise RscanValueError(f"{text}: {wanted} of {there}", code="E0809", labels=[(here(), "")])
    return assert_(order, less_equal(count, n), message=text)


def _weights(p: Any, what: str) -> Variable:
    """Probabilities along the last axis, up to a factor."""
    v = as_variable(p)
    return assert_(v, v >= 0, sum(v, -1) > 0, message=f"{what} takes probabilities of 0 or more, not all of them 0")


def _chances(p: Any, n: Variable) -> Variable:
    v = as_variable(p)
    if v.ndim != 1:
        raise RscanTypeError(f"choice takes a vector of probabilities, got {v!r}", code="E0809", labels=[(here(), "")])
    return assert_(_weights(v, "choice"), equal(v.shape[0], n), message="choice takes as many probabilities as there are elements")


def _by_weight(key: Any, p: Variable, shape: list[Any]) -> Variable:
    """Numbers in the order in which they are drawn one after the other with these weights: logarithms plus Gumbel noise, sorted."""
    possible = cast(p > 0, "int64")
    p = assert_(p, less_equal(prod(as_variable(shape)), sum(possible)), message="choice without replacement draws what has a probability")
    weights = p if p.dtype.startswith("float") else cast(p, config.floatX)
    return argsort(-(log(weights) + gumbel(key, weights.shape, dtype=weights.dtype)))
