"""Functions whose results are a structure: dataclasses, named tuples, dicts and lists in each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import _tree
from ._calling import Bound
from ._native import Results
from .compile import _is_leaf
from .function import Function, Out
from .session import Session
from .updates import OrderedUpdates


def is_structure(outputs: Any) -> bool:
    """True for what is more than a variable, or a list or a dict of variables."""
    if _is_output(outputs):
        return False
    if _tree.is_dataclass(outputs) or hasattr(outputs, "_fields"):
        return True
    items = outputs.values() if isinstance(outputs, Mapping) else outputs if isinstance(outputs, (list, tuple)) else ()
    if any(isinstance(item, OrderedUpdates) for item in items):
        return False
    return any(item is None or (not _is_output(item) and _is_inner(item)) for item in items)


def _is_inner(item: Any) -> bool:
    return isinstance(item, (Mapping, list, tuple)) or _tree.is_dataclass(item)


def _is_output(value: Any) -> bool:
    return isinstance(value, Out) or _is_leaf(value)


class _Builder:
    """Puts results together: the structure, and the texts and Nones in it, which are no values."""

    def __init__(self, outputs: Any) -> None:
        found, tree = _tree.flatten(outputs, _is_output)
        kept = {i: v for i, v in enumerate(found) if v is None or isinstance(v, str)}
        self._results = Results(tree, kept)
        self.values = [v for i, v in enumerate(found) if i not in kept]
        names = _tree.paths(tree)
        #: A name for each value, where the structure has names.
        self.names = [n for i, n in enumerate(names) if i not in kept] if tree.keys else None

    def build(self, values: Any) -> Any:
        """The structure with these values."""
        return self._results.build(values)

    def take_apart(self, out: Any) -> Any:
        """The arrays of `out=`, in their order."""
        return None if out is None else [v for v in _tree.flatten(out, _is_leaf)[0] if v is not None and not isinstance(v, str)]


class Structured(Function[Any]):
    """A function that gives a structure. In files and on ONNX its results have the names of their places: `state.h`."""

    _builder: _Builder

    def __init__(self, inputs: Any, outputs: Any, *others: Any) -> None:
        self._builder = _Builder(outputs)
        super().__init__(inputs, list(self._builder.values), *others)
        self._builder.values = []
        self._keys = self._builder.names

    @property
    def _form(self) -> tuple[bool, list[Any] | None]:
        return False, None

    def __call__(self, *args: Any, **named: Any) -> Any:
        return _called(self, super().__call__, args, named)

    def bind(self, *args: Any, **named: Any) -> Bound:
        """As `Function.bind`."""
        return _StructuredBound(self, super().bind(*args, **named)._fixed)

    def session(self, *args: Any, **named: Any) -> Session:
        """As `Function.session`; rows of results come in the structure."""
        return _StructuredSession(self, args, named)


def _called(function: Structured, call: Any, args: Any, named: dict[str, Any]) -> Any:
    if "out" in named and "out" not in function._names:
        named["out"] = function._builder.take_apart(named["out"])
    return function._builder.build(call(*args, **named))


class _StructuredBound(Bound):
    function: Structured

    def __call__(self, *args: Any, **named: Any) -> Any:
        return _called(self.function, super().__call__, args, named)

    def bind(self, *args: Any, **named: Any) -> Bound:
        """As `Bound.bind`."""
        return _StructuredBound(self.function, super().bind(*args, **named)._fixed)


class _StructuredSession(Session):
    function: Structured

    def step(self, *args: Any, **named: Any) -> Any:
        """As `Session.step`, in the structure."""
        return self._built(super().step(*args, **named))

    def run(self, *args: Any, **named: Any) -> Any:
        """As `Session.run`, in the structure."""
        return self._built(super().run(*args, **named))

    def _built(self, rows: Any) -> Any:
        return self.function._builder.build(rows)
