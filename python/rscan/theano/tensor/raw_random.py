"""Draws of NumPy's legacy generator: the state is an array that draws take and give back."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ... import _native, ops
from ..._spans import here
from ...dtypes import dtype_name
from ...errors import RscanTypeError
from ...shared import make_shared
from ...variable import Variable, apply_all, wrap
from ..config import config
from ..variable import TensorSharedVariable, TensorVariable, as_tensor_variable
from .create import shape_items

_WORDS = 628


def to_words(state: np.random.RandomState) -> np.ndarray:
    """The state of a `RandomState` as 628 words."""
    _, key, position, has_gauss, gauss = state.get_state()
    words = np.empty(_WORDS, np.uint32)
    words[:624], words[624], words[625] = key, position, has_gauss
    words[626:] = np.array([gauss], np.float64).view(np.uint32)
    return words


def from_words(words: np.ndarray) -> np.random.RandomState:
    """The `RandomState` with a state of 628 words."""
    state = np.random.RandomState()
    gauss = float(np.ascontiguousarray(words[626:]).view(np.float64)[0])
    state.set_state(("MT19937", words[:624].copy(), int(words[624]), int(words[625]), gauss))
    return state


class RandomStateSharedVariable(TensorSharedVariable):
    """A shared generator. Its value is a `numpy.random.RandomState`."""

    def get_value(self, borrow: bool = False, return_internal_type: bool = False) -> Any:
        """The generator, a copy."""
        return from_words(self._shared.get())

    def set_value(self, value: Any, borrow: bool = False) -> None:
        """Replaces the generator."""
        if not isinstance(value, np.random.RandomState):
            raise RscanTypeError(f"{self} holds a RandomState, not {value!r}", code="E0506", labels=[(here(), "")])
        self._shared.set(to_words(value))


def random_state_shared(state: np.random.RandomState, name: str | None = None) -> Any:
    """A shared generator."""
    return make_shared(RandomStateSharedVariable, to_words(state), name, (_WORDS,))


def _shape_of(size: Any, ndim: int | None, *parameters: Variable) -> list[Variable]:
    if size is None:
        like = [p for p in parameters if p.ndim]
        if not like:
            return []
        total = functools.reduce(lambda a, b: a + b, like)
        return list(total.shape)
    if isinstance(size, Variable) and size.ndim == 1 and size.static_shape[0] is None:
        return [size[i] for i in range(ndim or 0)]
    return shape_items(size)


def _draw(state: Any, dist: str, dtype: str, size: Any, ndim: Any, a: Any, b: Any) -> tuple[Variable, Variable]:
    first, second = as_tensor_variable(a), as_tensor_variable(b)
    shape = _shape_of(size, ndim, first, second)
    new, out = apply_all("legacy_draw", {"dist": dist, "dtype": dtype}, [state, first, second, *shape])
    return new, out


def uniform(random_state: Any, size: Any = None, low: Any = 0.0, high: Any = 1.0, ndim: Any = None, dtype: Any = None) -> Any:
    """Uniform over [low, high): (state, draw)."""
    return _draw(random_state, "uniform", dtype_name(dtype, config.floatX), size, ndim, low, high)


def normal(random_state: Any, size: Any = None, avg: Any = 0.0, std: Any = 1.0, ndim: Any = None, dtype: Any = None) -> Any:
    """Normal with mean `avg` and standard deviation `std`."""
    return _draw(random_state, "normal", dtype_name(dtype, config.floatX), size, ndim, avg, std)


def binomial(
    random_state: Any, size: Any = None, n: Any = 1, p: Any = 0.5, ndim: Any = None, dtype: Any = "int64", prob: Any = None
) -> Any:
    """The number of successes in n trials of probability p."""
    return _draw(random_state, "binomial", dtype, size, ndim, n, p if prob is None else prob)


def random_integers(random_state: Any, size: Any = None, low: Any = 0, high: Any = 1, ndim: Any = None, dtype: Any = "int64") -> Any:
    """Integers from low to high, both included."""
    return _draw(random_state, "integers", dtype, size, ndim, low, high)


def _host(key: str, infer: Any, draw: Any, state: Any, *inputs: Variable) -> tuple[Variable, Variable]:
    """A draw that NumPy itself makes."""

    def evaluate(arrays: list[np.ndarray]) -> list[np.ndarray]:
        generator = from_words(arrays[0])
        out = draw(generator, *arrays[1:])
        return [to_words(generator), out]

    op = _native.extern(key, True, lambda types: [("uint32", [_WORDS]), infer(types[1:])], evaluate, None)
    new, out = apply_all(op, {}, [state, *inputs])
    return new, out


def permutation(random_state: Any, size: Any = None, n: Any = 1, ndim: Any = None, dtype: Any = "int64") -> Any:
    """A random order of 0 … n−1 for each element of `size`."""
    count = ops.cast(as_tensor_variable(n), "int64")
    shape = _shape_of(() if size is None else size, ndim)

    def draw(generator: Any, n: np.ndarray, *dims: np.ndarray) -> np.ndarray:
        lengths = tuple(int(d) for d in dims)
        out = np.empty((*lengths, int(n)), dtype)
        for index in np.ndindex(lengths):
            out[index] = generator.permutation(int(n))
        return out

    return _host("legacy_permutation", lambda types: (dtype, [None] * len(types)), draw, random_state, count, *shape)


def multinomial(random_state: Any, size: Any = None, n: Any = 1, pvals: Any = (0.5, 0.5), ndim: Any = None, dtype: Any = "int64") -> Any:
    """How often each outcome occurs in n trials of probabilities pvals (rows of a matrix: one draw per row)."""
    p = ops.cast(as_tensor_variable(pvals), "float64")
    trials = ops.cast(as_tensor_variable(n), "int64")
    shape = _shape_of(list(p.shape)[:-1] if size is None else size, ndim)

    def draw(generator: Any, trials: np.ndarray, p: np.ndarray, *dims: np.ndarray) -> np.ndarray:
        lengths = tuple(int(d) for d in dims)
        rows, counts = np.broadcast_to(p, (*lengths, p.shape[-1])), np.broadcast_to(trials, lengths)
        out = np.empty(rows.shape, dtype)
        for index in np.ndindex(lengths):
            out[index] = generator.multinomial(int(counts[index]), rows[index])
        return out

    return _host("legacy_multinomial", lambda types: (dtype, [None] * (len(types) - 1)), draw, random_state, trials, p, *shape)


def choice(
    random_state: Any, size: Any = None, a: Any = 2, replace: bool = True, p: Any = None, ndim: Any = None, dtype: Any = "int64"
) -> Any:
    """Elements of a vector, or of 0 … a−1."""
    values = as_tensor_variable(a)
    weights = [] if p is None else [ops.cast(as_tensor_variable(p), "float64")]
    shape = _shape_of(() if size is None else size, ndim)
    out_dtype = dtype if values.ndim == 0 else values.dtype

    def draw(generator: Any, values: np.ndarray, *rest: np.ndarray) -> np.ndarray:
        chances = rest[0] if weights else None
        lengths = tuple(int(d) for d in rest[len(weights) :])
        source = values if values.ndim else int(values)
        return np.asarray(generator.choice(source, lengths, replace, chances), out_dtype)

    def infer(types: Any) -> Any:
        return out_dtype, [None] * (len(types) - 1 - len(weights))

    return _host("legacy_choice", infer, draw, random_state, values, *weights, *shape)


def poisson(random_state: Any, size: Any = None, lam: Any = 1.0, ndim: Any = None, dtype: Any = "int64") -> Any:
    """Poisson with mean lam."""
    mean = ops.cast(as_tensor_variable(lam), "float64")
    shape = _shape_of(size, ndim, mean)

    def draw(generator: Any, mean: np.ndarray, *dims: np.ndarray) -> np.ndarray:
        return np.asarray(generator.poisson(mean, tuple(int(d) for d in dims)), dtype)

    return _host("legacy_poisson", lambda types: (dtype, [None] * (len(types) - 1)), draw, random_state, mean, *shape)


def shuffle_row_elements(stream: Any, x: Any) -> Variable:
    """Each row of x in a random order of its own."""
    v = as_tensor_variable(x)
    order = stream.permutation(size=v.shape[:-1] if v.ndim > 1 else (), n=v.shape[v.ndim - 1], ndim=v.ndim - 1)
    return ops.take_along_axis(v, order, -1)


def facade(native: Any) -> Variable:
    """An expression as one of Theano's variables."""
    return wrap(native, TensorVariable)
