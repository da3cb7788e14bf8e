"""Advice about loops whose arguments were read in another way than they were meant."""

from __future__ import annotations

import contextlib
import inspect
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from . import _tree
from ._spans import frame_outside
from .errors import RscanError
from .updates import until
from .variable import Variable

#: What first parameters are called where the state is meant to come first.
_CARRIES = {"carry", "state", "acc", "accumulator", "hidden", "prev", "previous"}

#: Those of them that nobody calls a row of a sequence.
_ALWAYS_CARRIES = {"carry", "acc", "accumulator"}

_ORDER = "rows of sequences come first, then states: step(x, carry), where JAX has step(carry, x)"

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
    loop: bool = False,
) -> Iterator[None]:
    """Errors of a loop, with advice where its step seems to take arguments in JAX's order, or a tuple seems to be meant as one array.

    swapped: makes the loop with the states before the rows of sequences. loop: `rs.loop` makes it, and not `rs.scan`.
    """
    try:
        yield
    except RscanError as error:
        if error.code == "E0110" and loop:
            error.helps = ["pass over=x, whose rows are gone through, or n_steps=n, or end the loop: return …, rs.until(condition)"]
        if error.code == "E0118" and not named and len(sequences) > 1 and all(x.ndim == 0 for x in sequences):
            error.helps = ["a tuple or list holds several sequences: np.array(…) or rs.stack(…) makes one sequence of the numbers"]
        elif error.code == "E0122" and loop and not named and len(sequences) > 1 and len(positional(step) or []) == states + 1:
            error.helps.append("a tuple or list holds several sequences, a parameter for each: rs.stack(items) makes one of them")
        elif error.code == "E0122" and loop and not named and states > 1 and len(positional(step) or []) == len(sequences) + 1:
            error.helps.append("a tuple holds several states, a parameter of the step for each: init=[carry] is one state that is a tuple")
        elif sequences and states and not named and (_first_of_several(step) in _CARRIES or _fits(swapped, error)):
            error.helps.append(_ORDER)
        raise
    first = _first_of_several(step) if loop and sequences and states and not named else None
    if first in _ALWAYS_CARRIES:
        _warn(f"the step's first parameter is called {first!r} and gets rows of `over`: {_ORDER}. Another name says that this is meant")


def of_value(value: Any) -> list[str]:
    """Advice about what is no value of a loop."""
    if value is None:
        return ["leave out what has no value, in the step's result as in `init`"]
    if isinstance(value, until):
        return ["return the condition last, beside the outputs: return {…}, rs.until(condition)"]
    return ["numbers that are counted are an array: rs.arange(n)"] if isinstance(value, range) else []


#: What parameters are called that are meant to be the number of the step.
_COUNTERS = {"t", "i", "k", "n", "idx", "index", "step", "time"}


def of_arguments(signature: inspect.Signature, passed: int, named: Sequence[str] | dict[str, Any]) -> list[str]:
    """Advice about a step that does not take what the loop passes."""
    wanted = [p for p in signature.parameters.values() if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    missing = [p.name for p in wanted[passed:] if p.name not in named]
    helps = [f"passed by name: {', '.join(named)}; the step has parameters of these names"] if named else []
    if len(named) > 1:
        helps.append("a dict that is to arrive as it is stands in a list: `init=[params]` is one state")
    if named and missing:
        helps.append(f"give `{missing[0]}` in `over`, `init` or `given`, or take it from the parameters of the step")
    if _COUNTERS.intersection(missing):
        helps.append("the number of the step is a sequence: over=rs.arange(n)")
    return helps


def of_state(before: _tree.Tree, after: _tree.Tree, keys: list[Any]) -> list[str]:
    """Advice about a state whose structure changes."""
    if after.kind == "dict" and set(keys) <= set(after.keys):
        return ["return {…} with further outputs in it; after it only rs.until(condition), if the loop can end early"]
    if before.kind == "list" and after.kind is None:
        return ["a list is a structure of several states: np.array([…]) makes one array of numbers"]
    return []


def signature_of(fn: Any) -> inspect.Signature | None:
    """The signature of a function, where it tells one."""
    try:
        return inspect.signature(fn)
    except (TypeError, ValueError):
        return None


def positional(fn: Any) -> list[str] | None:
    """The names of the parameters that a function takes by position, where it tells them."""
    signature = signature_of(fn)
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return None if signature is None else [p.name for p in signature.parameters.values() if p.kind in kinds]


def _first_of_several(step: Callable[..., Any]) -> str | None:
    """What the first parameter of a step is called that has more of them."""
    signature = signature_of(step)
    names = list(signature.parameters) if signature else []
    return names[0] if len(names) > 1 else None


def _warn(text: str) -> None:
    """A warning at the user's line."""
    frame = frame_outside()
    if frame is not None:
        known, module = frame.f_globals.setdefault("__warningregistry__", {}), frame.f_globals.get("__name__")
        warnings.warn_explicit(text, UserWarning, frame.f_code.co_filename, frame.f_lineno, module, known)


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
