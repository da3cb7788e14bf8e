"""Where the inputs of a variant stand among the leaves of a call's arguments.

The core's `Dispatcher` looks at arguments by exact types: arrays, numbers, texts, None, and dicts, tuples, lists, named tuples and
dataclasses of them. What is anything else goes the general way, through `inspect.signature` and `_tree`.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from ._native import DeviceArray

#: Numbers whose type alone decides the variant.
NUMBERS = frozenset((float, int, bool, np.float64, np.float32, np.int64))

#: What `fields_of` has found: calls look at classes again and again.
_FIELDS: dict[type, tuple[str, ...] | None] = {}


class Marker:
    """Stands for a leaf, by its position among the leaves."""

    def __init__(self, at: int) -> None:
        self.at = at


def fields_of(cls: Any) -> tuple[str, ...] | None:
    """Names of the fields of a class that is a dataclass or a named tuple; None for others."""
    if cls not in _FIELDS:
        named = issubclass(cls, tuple) and hasattr(cls, "_fields")
        fields = tuple(f.name for f in dataclasses.fields(cls) if f.init) if dataclasses.is_dataclass(cls) else None
        _FIELDS[cls] = tuple(cls._fields) if named else fields
    return _FIELDS[cls]


def marked(value: Any, count: list[int]) -> Any:
    """The same structure with markers for its leaves."""
    cls: Any = type(value)
    if cls is np.ndarray or cls is DeviceArray or cls in NUMBERS:
        count[0] += 1
        return Marker(count[0] - 1)
    if cls is dict:
        return {key: marked(item, count) for key, item in value.items()}
    if cls is tuple or cls is list:
        return cls(marked(item, count) for item in value)
    if cls is str or value is None:
        return value
    items = [marked(getattr(value, name), count) for name in fields_of(cls) or ()]
    return cls(*items) if issubclass(cls, tuple) else _Dataclass(cls, items)


class _Dataclass:
    """A dataclass with markers, which its constructor would not take."""

    def __init__(self, cls: type, items: list[Any]) -> None:
        self.cls, self.items = cls, items

    def _as_tree(self) -> tuple[tuple[Any, ...], list[Any]]:
        return (), self.items
