"""Advice about loops whose arguments were read in another way than they were meant."""

from __future__ import annotations

import contextlib
import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .errors import RscanError
from .variable import Variable

#: What first parameters are called where the state is meant to come first.
_CARRIES = {"carry", "state", "acc", "accumulator", "hidden", "prev", "previous"}

#: Errors of shapes and types, which arguments in another order may not have.
_MISFITS = {"E0101", "E0102", "E0103", "E0104", "E0105", "E0106", "E0201", "E0202", "E0203", "E0204", "E0208", "E0222", "E0810", "E0122"}

#: Whether this thread tries such an order: loops within the step then try none, which would double the time with each of them.
_trying = threading.local()


@contextlib.contextmanager
def hints(
    step: Callable[..., Any],
    sequences: Sequence[Variable],
    states: int,
    named: bool = False,
    swapped: Callable[[], Any] | None = None,
) -> Iterator[None]:
    """Errors of a loop, with advice where its step seems to take arguments in JAX's order, or a tuple seems to be meant as one array.

    swapped: makes the loop with the states before the rows of sequences.
    """
    try:
        yield
    except RscanError as error:
        if error.code == "E0118" and not named and len(sequences) > 1 and all(x.ndim == 0 for x in sequences):
            error.helps = ["a tuple or list holds several sequences: np.array(…) or rs.stack(…) makes one sequence of the numbers"]
        elif sequences and states and not named and (_carry_first(step) or _fits(swapped, error)):
            error.helps.append("rows of sequences come first, then states: step(x, carry), where JAX has step(carry, x)")
        raise


def _carry_first(step: Callable[..., Any]) -> bool:
    try:
        names = list(inspect.signature(step).parameters)
    except (TypeError, ValueError):
        return False
    return len(names) > 1 and names[0] in _CARRIES


def _fits(swapped: Callable[[], Any] | None, error: RscanError) -> bool:
    """True where the step works with its arguments the other way round: after an error it is called once more, to see."""
    if swapped is None or error.code not in _MISFITS or getattr(_trying, "now", False):
        return False
    _trying.now = True
    try:
        swapped()
    except Exception:  # whatever the step raises of arguments that were not meant for it
        return False
    finally:
        _trying.now = False
    return True
