"""What a loop is given: sequences, states and constants, by name or in order, each a structure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import _tree
from .errors import ScanError


class Group:
    """`over`, `init` or `given`: named or ordered arguments, each a structure."""

    def __init__(self, value: Any, what: str, span: int, taps: type) -> None:
        self.what = what
        if value is None:
            self.keys, items = [], []
        elif isinstance(value, Mapping):
            self.keys, items = list(value), list(value.values())
            if not all(isinstance(k, str) for k in self.keys):
                raise ScanError(f"the keys of {what} are names of parameters, not {self.keys!r}", code="E0121", labels=[(span, "")])
        elif isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            self.keys, items = list(range(len(value))), list(value)
        else:
            self.keys, items = [0], [value]
        self.named = isinstance(value, Mapping)
        self.single = value is not None and not self.named and not (isinstance(value, (list, tuple)) and not hasattr(value, "_fields"))
        flat = [_tree.flatten(item, lambda v: isinstance(v, taps)) for item in items]
        self.leaves = [leaf for leaves, _ in flat for leaf in leaves]
        self.trees = [tree for _, tree in flat]
        self.names = self.paths([str(k) for k in self.keys] if self.named else [])

    def paths(self, prefixes: list[str]) -> list[str]:
        """A name for each leaf, of what its argument is called; by its place where nothing calls it."""
        names = [*prefixes[: len(self.keys)], *(f"{self.what}[{k}]" for k in self.keys[len(prefixes) :])]
        return [n for tree, prefix in zip(self.trees, names, strict=True) for n in _tree.paths(tree, prefix)]

    def arguments(self, values: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        """What the step gets, given the value of each leaf."""
        leaves = iter(values)
        built = [tree.build(leaves) for tree in self.trees]
        return ([], dict(zip(self.keys, built, strict=True))) if self.named else (built, {})
