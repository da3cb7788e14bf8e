"""`theano.sandbox.rng_mrg`: streams on rscan's counter-based generator."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ... import ops, random
from ...dtypes import dtype_name
from ...shared import make_shared
from ...variable import Variable, wrap
from ..config import config
from ..tensor.create import shape_items
from ..variable import TensorSharedVariable, TensorVariable, as_tensor_variable


class MRG_RandomStreams:
    """Random variables with Theano's arguments. The numbers are rscan's own: the same whatever the optimiser does."""

    def __init__(self, seed: Any = 12345, use_cuda: Any = None) -> None:
        self.default_instance_seed = seed
        self._stream = random.Stream.__new__(random.Stream)
        key = make_shared(TensorSharedVariable, random.keys.key_array(_number(seed)), "random key")
        key.keyed = True
        self._stream._key = key
        key.default_update = random.fold_in(key, -1)
        self._stream._sites = itertools.count()

    def seed(self, seed: Any = None) -> None:
        """Begins again."""
        self._stream.seed(_number(self.default_instance_seed if seed is None else seed))

    def updates(self) -> list[tuple[Any, Any]]:
        """The key and its next value."""
        return [(self._stream._key, self._stream._key.default_update)]

    @property
    def state_updates(self) -> list[tuple[Any, Any]]:
        """`updates()`."""
        return self.updates()

    def _key(self) -> Variable:
        return wrap(self._stream.key()._v, TensorVariable)

    def uniform(self, size: Any, low: Any = 0.0, high: Any = 1.0, ndim: Any = None, dtype: Any = None, nstreams: Any = None) -> Variable:
        """Uniform over [low, high)."""
        unit = random.uniform(self._key(), shape_items(size), dtype=_dtype(dtype))
        return ops.cast(as_tensor_variable(low) + unit * (as_tensor_variable(high) - low), _dtype(dtype))

    def normal(self, size: Any, avg: Any = 0.0, std: Any = 1.0, ndim: Any = None, dtype: Any = None, nstreams: Any = None) -> Variable:
        """Normal with mean `avg` and standard deviation `std`."""
        unit = random.normal(self._key(), shape_items(size), dtype=_dtype(dtype))
        return ops.cast(as_tensor_variable(avg) + unit * as_tensor_variable(std), _dtype(dtype))

    def binomial(
        self, size: Any = None, n: int = 1, p: Any = 0.5, ndim: Any = None, dtype: Any = "int64", nstreams: Any = None
    ) -> Variable:
        """The number of successes in n trials of probability p."""
        chance = as_tensor_variable(p)
        shape = list(chance.shape) if size is None else shape_items(size)
        total: Any = None
        for _ in range(int(n)):
            hit = ops.cast(random.uniform(self._key(), shape, dtype="float64") < chance, dtype)
            total = hit if total is None else total + hit
        return total

    def multinomial(
        self, size: Any = None, n: int = 1, pvals: Any = None, ndim: Any = None, dtype: Any = "int64", nstreams: Any = None
    ) -> Variable:
        """How often each outcome occurs in n trials, for each row of pvals."""
        p = as_tensor_variable(pvals)
        total: Any = None
        for _ in range(int(n)):
            u = random.uniform(self._key(), [*list(p.shape)[:-1], 1], dtype="float64")
            ends = ops.cumsum(p, -1)
            here = ops.cast(u < ends, dtype)
            hit = here - ops.cast(u < ends - p, dtype)
            total = hit if total is None else total + hit
        return total

    def choice(self, size: Any = 1, a: Any = None, replace: bool = True, p: Any = None, **_: Any) -> Variable:
        """Elements of 0 … a−1."""
        return random.choice(self._key(), as_tensor_variable(a), shape_items(size), replace, p)


def _number(seed: Any) -> int:
    return int(np.asarray(seed).reshape(-1)[0]) if not isinstance(seed, int) else seed


def _dtype(dtype: Any) -> str:
    return dtype_name(dtype, config.floatX)


MRG_RandomStream = RandomStreams = MRG_RandomStreams
