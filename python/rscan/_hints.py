"""Advice about loops whose arguments were read in another way than they were meant."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .errors import RscanError
from .variable import Variable

#: What first parameters are called where the state is meant to come first.
_CARRIES = {"carry", "state", "acc", "accumulator", "hidden", "prev", "previous"}


@contextlib.contextmanager
def hints(step: Callable[..., Any], sequences: Sequence[Variable], states: int, named: bool = False) -> Iterator[None]:
    """Errors of a loop, with advice where its step seems to take arguments in JAX's order, or a tuple seems to be meant as one array."""
    try:
        yield
    except RscanError as error:
        if error.code == "E0118" and not named and len(sequences) > 1 and all(x.ndim == 0 for x in sequences):
            error.helps = ["a tuple or list holds several sequences: np.array(…) or rs.stack(…) makes one sequence of the numbers"]
        elif sequences and states and not named and _carry_first(step):
            error.helps.append("rows of sequences come first, then states: step(x, carry), where JAX has step(carry, x)")
        raise


def _carry_first(step: Callable[..., Any]) -> bool:
    try:
        names = list(inspect.signature(step).parameters)
    except (TypeError, ValueError):
        return False
    return len(names) > 1 and names[0] in _CARRIES
