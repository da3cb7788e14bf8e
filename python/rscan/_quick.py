"""Calls of compiled functions with arguments like those of an earlier call: which variant they take, and its inputs in order.

Arguments are looked at once, by exact types: arrays, numbers, texts, None, and dicts, tuples, lists, named tuples and dataclasses of
them. What is anything else goes the general way, through `inspect.signature` and `_tree`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _tree
from ._native import DeviceArray

#: Numbers whose type alone decides the variant.
NUMBERS = frozenset((float, int, bool, np.float64, np.float32, np.int64))

#: Names of the fields per class that is a dataclass or a named tuple; None for classes that are neither.
_fields: dict[type, tuple[str, ...] | None] = {}


class _Other(Exception):
    """An argument that has to go the general way."""


class Marker:
    """Stands for a leaf, by its position among the leaves."""

    def __init__(self, at: int) -> None:
        self.at = at


def kind_of(args: tuple[Any, ...], named: dict[str, Any], leaves: list[Any]) -> Any:
    """What tells which variant the arguments take, their leaves being appended; None where only the general way can say."""
    try:
        kinds = [_kind(value, leaves) for value in args]
        return (*kinds, *((name, _kind(value, leaves)) for name, value in named.items())) if named else tuple(kinds)
    except _Other:
        return None


def _kind(value: Any, leaves: list[Any]) -> Any:
    cls = type(value)
    if cls is np.ndarray or cls is DeviceArray:
        leaves.append(value)
        return value.dtype.num, value.dtype.isnative, value.ndim
    if cls in NUMBERS:
        leaves.append(value)
        return cls
    if cls is dict:
        return dict, tuple(value), *[_kind(item, leaves) for item in value.values()]
    if cls is tuple or (cls is list and value and type(value[0]) in (np.ndarray, dict, tuple)):
        return cls, *[_kind(item, leaves) for item in value]
    if cls is str or value is None:
        return str, value
    names = _fields[cls] if cls in _fields else _fields_of(cls)
    if names is None:
        raise _Other
    return cls, *[_kind(getattr(value, name), leaves) for name in names]


def _fields_of(cls: type) -> tuple[str, ...] | None:
    found: tuple[str, ...] | None = None
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        found = cls._fields
    elif dataclasses.is_dataclass(cls):
        found = tuple(f.name for f in dataclasses.fields(cls) if f.init)
    _fields[cls] = found
    return found


def marked(value: Any, count: list[int]) -> Any:
    """The same structure with markers for its leaves."""
    cls = type(value)
    if cls is np.ndarray or cls is DeviceArray or cls in NUMBERS:
        count[0] += 1
        return Marker(count[0] - 1)
    if cls is dict:
        return {key: marked(item, count) for key, item in value.items()}
    if cls is tuple or cls is list:
        return cls(marked(item, count) for item in value)
    if cls is str or value is None:
        return value
    items = [marked(getattr(value, name), count) for name in _fields_of(cls) or ()]
    return cls(*items) if issubclass(cls, tuple) else _Dataclass(cls, items)


class _Dataclass:
    """A dataclass with markers, which its constructor would not take."""

    def __init__(self, cls: type, items: list[Any]) -> None:
        self.cls, self.items = cls, items

    def _as_tree(self) -> tuple[tuple[Any, ...], list[Any]]:
        return (), self.items


def builder(tree: _tree.Tree) -> Callable[[Any], Any]:
    """`tree.build`, prepared: a function of an iterator over leaves."""
    if tree.kind is None:
        return next
    parts = [builder(child) for child in tree.children]
    keys, cls = tree.keys, tree.cls
    if tree.kind == "dict":
        pairs = list(zip(keys, parts, strict=True))
        return lambda leaves: {key: part(leaves) for key, part in pairs}
    if tree.kind == "list" and cls in (list, tuple):
        return lambda leaves: cls([part(leaves) for part in parts])
    return tree.build
