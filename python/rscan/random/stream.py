"""Streams, which hand out keys.

A stream has one key, which advances once per call of a compiled function. Each draw folds its own number into it, and, in
the step of a loop, the index of the step of every loop around it. So a seed gives the same numbers whatever the optimiser
does, on every machine, and in exported programs.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._tracing import step_indices
from ..shared import SharedVariable, make_shared
from ..variable import Variable
from . import counts, draws
from .keys import fold_in, key_array

#: Folded into a stream's key for the key of the next call; draws are numbered from 0, steps too.
_NEXT_CALL = -1

#: What streams draw with.
DRAWS: list[Callable[..., Variable]] = [getattr(module, name) for module in (draws, counts) for name in module.__all__]


class Stream:
    """A stream of random numbers with a seed. Methods draw, with the functions of this module, each from a key of its own.

    The values are fixed within one call of a function and new in the next. `seed(n)` begins again.

    errors: `RscanTypeError` (E0809) for a seed that is no integer; draws raise those of `rs.random`.

    >>> stream = rs.random.Stream(seed=1)
    >>> x = stream.normal(3)
    >>> f = rs.function([], x)
    >>> f().shape, bool((f() == f()).any())
    ((3,), False)
    """

    def __init__(self, seed: int = 0, name: str | None = None) -> None:
        self._key: SharedVariable = make_shared(SharedVariable, key_array(seed), name or "random key")
        self._key.keyed = True
        self._key.default_update = fold_in(self._key, _NEXT_CALL)
        self._sites = itertools.count()

    @property
    def state(self) -> SharedVariable:
        """The key, a shared variable."""
        return self._key

    def seed(self, seed: int) -> None:
        """Begins again with another seed.

        errors: `RscanTypeError` (E0809) for what is no integer, `RscanValueError` (E0809) for one that is negative or too large.
        """
        self._key.set_value(key_array(seed))

    def key(self) -> Variable:
        """The key of one more draw: new in every call, and in every step of the loops around it."""
        found = fold_in(self._key, next(self._sites))
        for index in step_indices():
            found = fold_in(found, index)
        return found

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., Variable]: ...


def _method(function: Callable[..., Variable]) -> Callable[..., Variable]:
    """A function of a key as a method that draws with a key of its own."""
    given = list(inspect.signature(function).parameters.values())[1:]

    @functools.wraps(function)
    def draw(self: Stream, *args: Any, **named: Any) -> Variable:
        return function(self.key(), *args, **named)

    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    draw.__signature__ = inspect.Signature([own, *given], return_annotation="Variable")  # type: ignore[attr-defined]
    return draw


for _function in DRAWS:
    setattr(Stream, _function.__name__, _method(_function))


#: The same under the name of other packages.
RandomStream = Stream
