"""Reads what a step returned: outputs, updates, a stopping condition, in any accepted arrangement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import _tree
from ._spans import of_function
from .errors import ScanError
from .updates import OrderedUpdates, is_shared, until
from .variable import Variable

if TYPE_CHECKING:
    from ._tracing import Group

ARRANGEMENTS = "outputs; updates; (outputs, updates); (updates, outputs); and each of these followed by until(condition)"


class Returned(NamedTuple):
    """`outputs` as the step gave them: None, one value, or a list (or, where asked for, a structure)."""

    outputs: Any
    updates: OrderedUpdates
    until: until | None


def read(value: Any, fn: Any, span: int, is_output: Any = None) -> Returned:
    """Takes apart what `fn` returned. `is_output` tells outputs of the caller's own kind, beside values and lists of them."""
    reader = _Reader(fn, span, is_output or (lambda _: False))
    condition, rest = reader.condition(value)
    outputs, updates = reader.split(rest)
    return Returned(outputs, OrderedUpdates(updates), condition)


def is_the_state(value: Any, init: Group) -> bool:
    """True for a dict or a dataclass that is the one state itself, in place of outputs by the names in it."""
    kinds = [tree.kind for tree in init.trees]
    alike = (kinds == ["dict"] and not init.named and isinstance(value, Mapping)) or (kinds == ["dataclass"] and _tree.is_dataclass(value))
    return alike and (init.single or _tree.same(_tree.flatten(value, lambda v: isinstance(v, Variable))[1], init.trees[0]))


class _Reader:
    def __init__(self, fn: Any, span: int, own: Any) -> None:
        self.fn, self.span, self.own = fn, span, own

    def fail(self, code: str, title: str, *helps: str, notes: tuple[str, ...] = ()) -> ScanError:
        labels = [(self.span, ""), (of_function(self.fn), "the step")]
        return ScanError(title, code=code, labels=labels, notes=notes, helps=helps)

    def condition(self, value: Any) -> tuple[until | None, Any]:
        """The stopping condition, and the rest."""
        help = "the order is: return outputs, until(condition) or: return outputs, updates, until(condition)"
        if isinstance(value, until):
            raise self.fail("E0107", "the step returned nothing but until(...)", help)
        if isinstance(value, (list, tuple)):
            places = [i for i, item in enumerate(value) if isinstance(item, until)]
            if places and places != [len(value) - 1]:
                raise self.fail("E0107", "until(...) is not the last thing that the step returned", help)
            if len(value) == 1 and places:
                raise self.fail("E0107", "the step returned nothing but until(...)", help)
            if places:
                return value[-1], value[0] if len(value) == 2 else value[:-1]
        return None, value

    def split(self, value: Any) -> tuple[Any, Any]:
        """Outputs and updates."""
        if self.is_updates(value) and not self.own(value):
            return ([], value) if len(value) or isinstance(value, Mapping) else ([], ())
        if isinstance(value, (list, tuple)) and len(value) == 2:
            first, second = value
            if self.is_outputs(first) and self.is_updates(second):
                return first, second
            if self.is_updates(first) and self.is_outputs(second):
                return second, first
        if isinstance(value, (list, tuple)) and len(value) == 1 and not is_value(value[0]):
            return self.split(value[0])
        if value is None:
            return [], ()
        if self.is_outputs(value):
            return value, ()
        raise self.unreadable(value)

    def is_updates(self, value: Any) -> bool:
        if isinstance(value, Mapping):
            return not self.own(value) or not value
        return isinstance(value, (list, tuple)) and all(_is_pair(item) for item in value)

    def is_outputs(self, value: Any) -> bool:
        if is_value(value) or self.own(value):
            return True
        return isinstance(value, (list, tuple)) and all(is_value(item) or self.own(item) for item in value)

    def unreadable(self, value: Any) -> ScanError:
        notes = (f"the step returned {_shape_of(value)}", f"accepted are: {ARRANGEMENTS}")
        helps = ["outputs are variables or a list of them, updates a dictionary or pairs (shared variable, new value)"]
        if isinstance(value, (list, tuple)) and any(item is None for item in value):
            helps.append("leave None out: where JAX has `return carry, None` it is `return carry`")
        return self.fail("E0123", "what the step returned cannot be read", *helps, notes=notes)


def is_value(value: Any) -> bool:
    """True for what can be one output."""
    return isinstance(value, (Variable, bool, int, float, np.ndarray, np.generic))


def _is_pair(item: Any) -> bool:
    return isinstance(item, (list, tuple)) and len(item) == 2 and is_shared(item[0])


def _shape_of(value: Any) -> str:
    """The structure of a value in words."""
    if isinstance(value, (list, tuple)):
        inner = ", ".join(_shape_of(v) for v in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k!r}: …" for k in value) + "}"
    if isinstance(value, Variable):
        return "a variable"
    return f"a {type(value).__name__}"
