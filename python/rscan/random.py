"""Random numbers: pure functions of a key, and streams that hand out keys.

A stream has one key, which advances once per call of a compiled function. Each draw folds its own number into it, and, in
the step of a loop, the index of the step of every loop around it. So a seed gives the same numbers whatever the optimiser
does, on every machine, and in exported programs.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from . import linalg
from ._spans import here
from ._tracing import step_indices
from .config import config
from .errors import RscanTypeError, RscanValueError
from .function import evaluate
from .ops import cast, clip, cumsum, less, less_equal, log1p, reshape, sum, take
from .shared import SharedVariable, make_shared
from .variable import Variable, apply, as_variable, dtype_name, extents, operands

__all__ = [
    "RandomStream", "Stream", "bernoulli", "choice", "exponential", "fold_in", "integers", "key", "multivariate_normal", "normal",
    "permutation", "split", "uniform",
]  # fmt: skip

#: Folded into a stream's key for the key of the next call; draws are numbered from 0, steps too.
_NEXT_CALL = -1


def key(seed: int) -> Variable:
    """The key of a seed: a constant, uint64[2]."""
    return as_variable(_key_array(seed))


def _key_array(seed: Any) -> np.ndarray:
    if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool):
        raise RscanTypeError(f"a seed is an integer, not {seed!r}", code="E0809", labels=[(here(), "")])
    if not 0 <= int(seed) < 2**64:
        raise RscanValueError(f"a seed is at least 0 and less than 2**64, not {seed}", code="E0809", labels=[(here(), "")])
    return evaluate(fold_in(np.zeros(2, np.uint64), np.uint64(seed)))


def fold_in(key: Any, n: Any) -> Variable:
    """Another key, of number n of a key. Different numbers give independent keys."""
    return apply("fold_in", {}, as_variable(key), as_variable(n))


def split(key: Any, num: int = 2) -> tuple[Variable, ...]:
    """Several independent keys of one."""
    return tuple(fold_in(key, i) for i in range(num))


# Draws of a key. `size` is a number, a variable, or a sequence of these; () for a scalar. Parameters broadcast to it.


def _like_size(x: Variable, size: Any) -> Any:
    """The shape to draw: `size`, or that of the parameters."""
    return x.shape if size is None else size


def uniform(key: Any, size: Any = (), low: Any = 0.0, high: Any = 1.0, dtype: Any = None) -> Variable:
    """Uniform over [low, high)."""
    unit = apply("random_uniform", {"dtype": _float(dtype)}, as_variable(key), *extents(size))
    if _is(low, 0) and _is(high, 1):
        return unit
    return _scaled(unit, low, high - low)


def normal(key: Any, size: Any = (), loc: Any = 0.0, scale: Any = 1.0, dtype: Any = None) -> Variable:
    """Normal with mean `loc` and standard deviation `scale`."""
    unit = apply("random_normal", {"dtype": _float(dtype)}, as_variable(key), *extents(size))
    return unit if _is(loc, 0) and _is(scale, 1) else _scaled(unit, loc, scale)


def exponential(key: Any, size: Any = (), scale: Any = 1.0, dtype: Any = None) -> Variable:
    """Exponential with mean `scale`."""
    return -log1p(-uniform(key, size, dtype=dtype)) * scale


def integers(key: Any, low: Any, high: Any = None, size: Any = (), dtype: Any = "int64") -> Variable:
    """Integers of [low, high), or of [0, low) without `high`, all equally likely."""
    if high is None:
        low, high = 0, low
    out = apply("random_integers", {}, as_variable(key), cast(low, "int64"), cast(high, "int64"), *extents(size))
    return cast(out, dtype)


def bernoulli(key: Any, p: Any = 0.5, size: Any = None, dtype: Any = "bool") -> Variable:
    """True with probability p."""
    q = as_variable(p)
    q = q if q.dtype.startswith("float") else cast(q, config.floatX)
    return cast(less(uniform(key, _like_size(q, size), dtype=q.dtype), q), dtype)


def permutation(key: Any, n: Any) -> Variable:
    """A random order of 0 … n-1; of an array: of its rows."""
    v = as_variable(n)
    if v.ndim == 0:
        return apply("random_permutation", {}, as_variable(key), cast(v, "int64"))
    return take(v, apply("random_permutation", {}, as_variable(key), *extents(v.shape[0])), axis=0)


def choice(key: Any, a: Any, size: Any = (), replace: bool = True, p: Any = None) -> Variable:
    """Elements of a vector, or of 0 … a-1. Without `replace`, no element twice. `p`: their probabilities."""
    v = as_variable(a)
    n = v if v.ndim == 0 else as_variable(v.shape[0])
    if not replace:
        if p is not None:
            raise RscanValueError("choice without replacement has equal probabilities", code="E0809", labels=[(here(), "")])
        picked = _without_replacement(key, n, size)
    elif p is None:
        picked = integers(key, 0, n, size)
    else:
        ends = cumsum(as_variable(p))
        u = uniform(key, size, dtype=ends.dtype if ends.dtype.startswith("float") else None) * ends[-1]
        # Where a draw falls exactly on the end of an interval, the next one is meant.
        picked = sum(cast(less_equal(ends, u[..., None]), "int64"), axis=-1)
        picked = clip(picked, 0, ends.shape[0] - 1)
    return picked if v.ndim == 0 else take(v, picked, axis=0)


def _without_replacement(key: Any, n: Variable, size: Any) -> Variable:
    shape = extents(size)
    count: Any = 1
    for extent in shape:
        count = count * extent
    return reshape(permutation(key, n)[:count], shape)


def multivariate_normal(key: Any, mean: Any, cov: Any, size: Any = ()) -> Variable:
    """Normal vectors with this mean and covariance; `size` counts vectors."""
    m, c = operands((mean, cov))
    shape = [*extents(size), *extents(m.shape[0])]
    return m + normal(key, shape, dtype=m.dtype) @ linalg.cholesky(c).T


def _float(dtype: Any) -> str:
    name = dtype_name(dtype, config.floatX)
    if not name.startswith("float"):
        raise RscanTypeError(f"such draws are float32 or float64, not {name}", code="E0806", labels=[(here(), "")])
    return name


def _is(value: Any, number: int) -> bool:
    return isinstance(value, (int, float)) and value == number


def _scaled(unit: Variable, start: Any, width: Any) -> Variable:
    return start + unit * width


class Stream:
    """A stream of random numbers with a seed. Methods draw, with the functions of this module, each from a key of its own.

    The values are fixed within one call of a function and new in the next. `seed(n)` begins again.
    """

    def __init__(self, seed: int = 0, name: str | None = None) -> None:
        self._key: SharedVariable = make_shared(SharedVariable, _key_array(seed), name or "random key")
        self._key.keyed = True
        self._key.default_update = fold_in(self._key, _NEXT_CALL)
        self._sites = itertools.count()

    @property
    def state(self) -> SharedVariable:
        """The key, a shared variable."""
        return self._key

    def seed(self, seed: int) -> None:
        """Begins again with another seed."""
        self._key.set_value(_key_array(seed))

    def key(self) -> Variable:
        """The key of one more draw: new in every call, and in every step of the loops around it."""
        found = fold_in(self._key, next(self._sites))
        for index in step_indices():
            found = fold_in(found, index)
        return found

    def uniform(self, size: Any = (), low: Any = 0.0, high: Any = 1.0, dtype: Any = None) -> Variable:
        """Uniform over [low, high)."""
        return uniform(self.key(), size, low, high, dtype)

    def normal(self, size: Any = (), loc: Any = 0.0, scale: Any = 1.0, dtype: Any = None) -> Variable:
        """Normal with mean `loc` and standard deviation `scale`."""
        return normal(self.key(), size, loc, scale, dtype)

    def exponential(self, size: Any = (), scale: Any = 1.0, dtype: Any = None) -> Variable:
        """Exponential with mean `scale`."""
        return exponential(self.key(), size, scale, dtype)

    def integers(self, low: Any, high: Any = None, size: Any = (), dtype: Any = "int64") -> Variable:
        """Integers of [low, high), or of [0, low) without `high`."""
        return integers(self.key(), low, high, size, dtype)

    def bernoulli(self, p: Any = 0.5, size: Any = None, dtype: Any = "bool") -> Variable:
        """True with probability p."""
        return bernoulli(self.key(), p, size, dtype)

    def permutation(self, n: Any) -> Variable:
        """A random order of 0 … n-1, or of the rows of an array."""
        return permutation(self.key(), n)

    def choice(self, a: Any, size: Any = (), replace: bool = True, p: Any = None) -> Variable:
        """Elements of a vector, or of 0 … a-1."""
        return choice(self.key(), a, size, replace, p)

    def multivariate_normal(self, mean: Any, cov: Any, size: Any = ()) -> Variable:
        """Normal vectors with this mean and covariance."""
        return multivariate_normal(self.key(), mean, cov, size)


#: The same under the name of other packages.
RandomStream = Stream
