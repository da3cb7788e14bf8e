"""`theano.tensor.shared_randomstreams`: streams that draw what NumPy's `RandomState` draws."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from . import raw_random
from .raw_random import RandomStateSharedVariable, random_state_shared


class RandomStreams:
    """Random variables. Each draw has a generator of its own, a shared variable whose update goes with it.

    Draw k is what `RandomState(int(gen.randint(2**30)))` gives, where gen is `RandomState(seed)` and k draws were made before.
    """

    gen_seedgen: np.random.RandomState

    def __init__(self, seed: int | None = None) -> None:
        self.default_instance_seed = seed
        self.gen_seedgen = np.random.RandomState(seed)
        self.state_updates: list[tuple[Any, Any]] = []

    def updates(self) -> list[tuple[Any, Any]]:
        """The generators and their states after a call."""
        return list(self.state_updates)

    def seed(self, seed: int | None = None) -> None:
        """Begins again: every generator gets the state that it had first, of this seed."""
        seedgen = np.random.RandomState(self.default_instance_seed if seed is None else seed)
        for old, _ in self.state_updates:
            old.set_value(np.random.RandomState(int(seedgen.randint(2**30))))

    def __getitem__(self, item: Any) -> Any:
        for old, _ in self.state_updates:
            if item is old:
                return old.get_value()
        raise KeyError(item)

    def __setitem__(self, item: Any, value: Any) -> None:
        for old, _ in self.state_updates:
            if item is old:
                old.set_value(value)
                return
        raise KeyError(item)

    def gen(self, op: Any, *args: Any, **kwargs: Any) -> Any:
        """One draw of a function of `raw_random`."""
        state = random_state_shared(np.random.RandomState(int(self.gen_seedgen.randint(2**30))))
        new, out = op(state, *args, **kwargs)
        state.default_update = new
        self.state_updates.append((state, new))
        out.rng, out.update = state, (state, new)
        return out

    def __deepcopy__(self, memo: dict[int, Any]) -> RandomStreams:
        out = RandomStreams.__new__(RandomStreams)
        memo[id(self)] = out
        out.default_instance_seed = self.default_instance_seed
        out.gen_seedgen = copy.deepcopy(self.gen_seedgen)
        out.state_updates = copy.deepcopy(self.state_updates, memo)
        return out

    def binomial(self, size: Any = None, n: Any = 1, p: Any = 0.5, ndim: Any = None, dtype: Any = "int64", prob: Any = None) -> Any:
        """The number of successes in n trials of probability p."""
        return self.gen(raw_random.binomial, size, n, p, ndim=ndim, dtype=dtype, prob=prob)

    def uniform(self, size: Any = None, low: Any = 0.0, high: Any = 1.0, ndim: Any = None, dtype: Any = None) -> Any:
        """Uniform over [low, high)."""
        return self.gen(raw_random.uniform, size, low, high, ndim=ndim, dtype=dtype)

    def normal(self, size: Any = None, avg: Any = 0.0, std: Any = 1.0, ndim: Any = None, dtype: Any = None) -> Any:
        """Normal with mean `avg` and standard deviation `std`."""
        return self.gen(raw_random.normal, size, avg, std, ndim=ndim, dtype=dtype)

    def random_integers(self, size: Any = None, low: Any = 0, high: Any = 1, ndim: Any = None, dtype: Any = "int64") -> Any:
        """Integers from low to high, both included."""
        return self.gen(raw_random.random_integers, size, low, high, ndim=ndim, dtype=dtype)

    def choice(self, size: Any = (), a: Any = 2, replace: bool = True, p: Any = None, ndim: Any = None, dtype: Any = "int64") -> Any:
        """Elements of a vector, or of 0 … a−1."""
        return self.gen(raw_random.choice, size, a, replace, p, ndim=ndim, dtype=dtype)

    def poisson(self, size: Any = None, lam: Any = 1.0, ndim: Any = None, dtype: Any = "int64") -> Any:
        """Poisson with mean lam."""
        return self.gen(raw_random.poisson, size, lam, ndim=ndim, dtype=dtype)

    def permutation(self, size: Any = None, n: Any = 1, ndim: Any = None, dtype: Any = "int64") -> Any:
        """A random order of 0 … n−1."""
        return self.gen(raw_random.permutation, size, n, ndim=ndim, dtype=dtype)

    def multinomial(self, size: Any = None, n: Any = 1, pvals: Any = (0.5, 0.5), ndim: Any = None, dtype: Any = "int64") -> Any:
        """How often each outcome occurs in n trials."""
        return self.gen(raw_random.multinomial, size, n, pvals, ndim=ndim, dtype=dtype)

    def shuffle_row_elements(self, x: Any) -> Any:
        """Each row in a random order of its own."""
        return raw_random.shuffle_row_elements(self, x)


__all__ = ["RandomStateSharedVariable", "RandomStreams"]
