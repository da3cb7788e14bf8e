"""Nested structures of values: dicts, lists, tuples, named tuples and dataclasses, taken apart and put together."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple


class Tree(NamedTuple):
    """The structure of a value without its leaves. `kind` is None for a leaf."""

    kind: str | None
    cls: Any = None
    keys: tuple[Any, ...] = ()
    children: tuple[Tree, ...] = ()

    def build(self, leaves: Iterator[Any]) -> Any:
        """A value of this structure."""
        if self.kind is None:
            return next(leaves)
        return self.assemble([child.build(leaves) for child in self.children])

    def assemble(self, items: list[Any]) -> Any:
        """A value of this structure, which is no leaf, with these parts."""
        if self.kind == "dict":
            return dict(zip(self.keys, items, strict=True))
        if self.kind == "dataclass":
            return self.cls(**dict(zip(self.keys, items, strict=True)))
        if self.kind == "namedtuple":
            return self.cls(*items)
        if self.kind == "object":
            return self.cls._from_tree(self.keys, items)
        return self.cls(items)

    def describe(self) -> str:
        """In words."""
        if self.kind is None:
            return "a value"
        inner = [child.describe() for child in self.children]
        if self.kind in ("dict", "dataclass", "namedtuple"):
            name = "dict" if self.kind == "dict" else self.cls.__name__
            return f"{name}({', '.join(f'{k}={v}' for k, v in zip(self.keys, inner, strict=True))})"
        return f"[{', '.join(inner)}]" if self.cls is list else f"({', '.join(inner)})"


LEAF = Tree(None)


def is_dataclass(value: Any) -> bool:
    """True for an instance of a dataclass."""
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def flatten(value: Any, is_leaf: Callable[[Any], bool] = lambda _: False) -> tuple[list[Any], Tree]:
    """The leaves of a value in order, and its structure. None has no leaves."""
    leaves: list[Any] = []
    return leaves, _walk(value, is_leaf, leaves)


def _walk(value: Any, is_leaf: Callable[[Any], bool], leaves: list[Any]) -> Tree:
    parts = None if is_leaf(value) else _parts(value)
    if parts is None:
        leaves.append(value)
        return LEAF
    kind, keys, items = parts
    return Tree(kind, type(value), keys, tuple(_walk(item, is_leaf, leaves) for item in items))


def _parts(value: Any) -> tuple[str, tuple[Any, ...], list[Any]] | None:
    if isinstance(value, Mapping):
        return "dict", tuple(value), list(value.values())
    if is_dataclass(value):
        names = tuple(f.name for f in dataclasses.fields(value) if f.init)
        return "dataclass", names, [getattr(value, name) for name in names]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return "namedtuple", value._fields, list(value)
    if isinstance(value, (list, tuple)):
        return "list", (), list(value)
    if hasattr(type(value), "_as_tree"):
        return "object", *value._as_tree()
    return None


def paths(tree: Tree, prefix: str = "") -> list[str]:
    """A name per leaf: `h`, `h.x`, `h[0]`."""
    if tree.kind is None:
        return [prefix]
    out = []
    for i, child in enumerate(tree.children):
        key = tree.keys[i] if i < len(tree.keys) else None
        step = f"[{i}]" if key is None else f".{key}" if prefix else str(key)
        out += paths(child, prefix + step)
    return out


def written(tree: Tree, prefix: str = "") -> list[str]:
    """What a program writes for each leaf: `h`, `h.x` of a dataclass, `h["x"]` of a dict. Without a prefix, keys are names of variables."""
    if tree.kind is None:
        return [prefix]
    out = []
    for i, child in enumerate(tree.children):
        key = tree.keys[i] if i < len(tree.keys) else None
        quoted = f'"{key}"' if isinstance(key, str) else repr(key)
        item = f"[{i}]" if key is None else f"[{quoted}]" if tree.kind == "dict" else f".{key}"
        out += written(child, prefix + item if prefix else str(key))
    return out


def dotted(tree: Tree, prefix: str = "") -> list[Any]:
    """A name per leaf, parts joined by dots: `h`, `h.x`, `h.0`. The key itself where it is no text."""
    if tree.kind is None:
        return [prefix]
    steps = tree.keys or [str(i) for i in range(len(tree.children))]
    steps = [f"{prefix}.{step}" if prefix and isinstance(step, str) else step for step in steps]
    return [name for step, child in zip(steps, tree.children, strict=True) for name in dotted(child, step)]


def same(a: Tree, b: Tree) -> bool:
    """True for structures with the same leaves in the same places; dicts in any order, lists and tuples alike."""
    if a.kind != b.kind or set(a.keys) != set(b.keys) or len(a.children) != len(b.children):
        return False
    if a.kind == "dataclass" and a.cls is not b.cls:
        return False
    return all(same(x, y) for x, y in zip(a.children, _ordered(b, a.keys), strict=True))


def _ordered(tree: Tree, keys: tuple[Any, ...]) -> list[Tree]:
    if tree.kind != "dict":
        return list(tree.children)
    by_key = dict(zip(tree.keys, tree.children, strict=True))
    return [by_key[k] for k in keys]


def aligned(value: Any, tree: Tree) -> list[Any]:
    """The leaves of a value in the order of a structure that it shares."""
    if tree.kind is None:
        return [value]
    if tree.kind == "dict":
        items = [value[k] for k in tree.keys]
    elif tree.kind == "dataclass":
        items = [getattr(value, k) for k in tree.keys]
    else:
        items = list(value)
    return [leaf for item, child in zip(items, tree.children, strict=True) for leaf in aligned(item, child)]
