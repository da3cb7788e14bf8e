"""Graphs of ONNX under construction, as plain data: names, nodes, constants and the scopes of loops and branches.

Nothing here needs the package `onnx`: what cannot be exported is refused whether or not it is installed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import UnsupportedError

#: The operator set that is written: onnxruntime 1.14 and later run it.
OPSET, IR_VERSION = 18, 8


@dataclasses.dataclass
class Port:
    """A value that enters or leaves a graph; extents are numbers, names, or None; no shape where the rank is left to inference."""

    name: str
    dtype: str
    shape: tuple[int | str | None, ...] | None = None


@dataclasses.dataclass
class Node:
    """An operator applied to values by name; an attribute that is a `Body` is a graph of its own."""

    op: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]
    place: str = ""


@dataclasses.dataclass
class Body:
    """A graph: of the model, of a step, of a branch."""

    inputs: list[Port]
    outputs: list[Port]
    nodes: list[Node]


class Scope:
    """Where nodes are added: the names of expressions that are computed here."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.names: dict[tuple[int, int], str] = {}


class Writer:
    """Adds nodes to the innermost scope. Names are unique in the whole model, constants belong to all of it."""

    def __init__(self) -> None:
        self.scopes = [Scope()]
        self.constants: dict[str, np.ndarray] = {}
        #: Expressions that something reads: of a loop only what is read leaves it.
        self.used: set[tuple[int, int]] = set()
        #: The line of the program whose nodes are added.
        self.place = ""
        self._taken: set[str] = set()
        self._counts: dict[str, int] = {}
        self._known: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    def fresh(self, hint: str) -> str:
        """A name that nothing else has."""
        name = hint
        while name in self._taken:
            self._counts[hint] = self._counts.get(hint, 0) + 1
            name = f"{hint}_{self._counts[hint]}"
        self._taken.add(name)
        return name

    def find(self, key: tuple[int, int]) -> str | None:
        """The name of an expression, where it is computed in this scope or around it."""
        return next((scope.names[key] for scope in reversed(self.scopes) if key in scope.names), None)

    def several(self, op: str, inputs: Sequence[str], n: int, **attributes: Any) -> list[str]:
        """Applies an operator of n results."""
        outputs = [self.fresh(op.lower()) for _ in range(n)]
        self.scopes[-1].nodes.append(Node(op, list(inputs), outputs, attributes, self.place))
        return outputs

    def op(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Applies an operator of one result."""
        return self.several(op, inputs, 1, **attributes)[0]

    def rename(self, last: str, name: str) -> None:
        """Gives the result of the last node a name that was made before."""
        node = self.scopes[-1].nodes[-1]
        assert node.outputs == [last]
        node.outputs = [name]

    def inside(self, build: Callable[[], None]) -> list[Node]:
        """The nodes that `build` adds, in a scope of their own."""
        self.scopes.append(Scope())
        try:
            build()
        finally:
            scope = self.scopes.pop()
        return scope.nodes

    # Constants.

    def constant(self, value: Any, dtype: str | None = None, hint: str = "const") -> str:
        """A constant; equal ones are kept once."""
        array = np.ascontiguousarray(np.asarray(value, dtype=dtype))
        array = array.reshape(np.shape(value))
        key = array.dtype.name, array.shape, array.tobytes()
        if key not in self._known:
            self._known[key] = self.fresh(hint)
            self.constants[self._known[key]] = array
        return self._known[key]

    def ints(self, *values: int) -> str:
        """A vector of integers: axes, bounds."""
        return self.constant(list(values), "int64")

    def integer(self, value: int) -> str:
        """An integer."""
        return self.constant(value, "int64")

    def number(self, value: float, dtype: str) -> str:
        """A number of a dtype."""
        return self.constant(value, dtype)

    # What is written again and again.

    def cast(self, x: str, source: str, target: str) -> str:
        """x as another dtype."""
        return x if source == target else self.op("Cast", x, to=target)

    def shape(self, x: str, start: int = 0, end: int | None = None) -> str:
        """Extents as a vector."""
        return self.op("Shape", x, **({"start": start} if start else {}), **({} if end is None else {"end": end}))

    def extent(self, x: str, axis: int) -> str:
        """One extent as a scalar."""
        return self.op("Squeeze", self.shape(x, axis, axis + 1), self.ints(0))

    def vector(self, *scalars: str) -> str:
        """Integer scalars as a vector."""
        return self.op("Concat", *(self.op("Unsqueeze", s, self.ints(0)) for s in scalars), axis=0) if scalars else self.ints()

    def slice(self, x: str, start: str, end: str, axis: int = 0, step: int = 1) -> str:
        """Rows from start to end, which are scalars, along an axis."""
        bounds = (self.op("Unsqueeze", b, self.ints(0)) for b in (start, end))
        return self.op("Slice", x, *bounds, self.ints(axis), self.ints(step))

    def rows(self, count: str, row: str) -> str:
        """Extents of an array of so many rows, whose own extents are a vector."""
        return self.op("Concat", self.op("Unsqueeze", count, self.ints(0)), row, axis=0)

    def upto(self, count: str) -> str:
        """0 to below a number."""
        return self.op("Range", self.integer(0), count, self.integer(1))

    def zeros(self, shape: str, dtype: str) -> str:
        """Zeros of the extents in a vector."""
        return self.op("Expand", self.number(0, dtype), shape)

    def where(self, condition: str, a: str, b: str, dtype: str) -> str:
        """a where the condition holds, else b: through another dtype where runtimes select among fewer."""
        if dtype == "bool":
            return self.op("Or", self.op("And", condition, a), self.op("And", self.op("Not", condition), b))
        via = {"int16": "int32", "uint16": "int32", "uint64": "int64"}.get(dtype, dtype)
        chosen = self.op("Where", condition, self.cast(a, dtype, via), self.cast(b, dtype, via))
        return self.cast(chosen, via, dtype)

    def through(self, op: str, x: str, dtype: str, known: Sequence[str], *more: str, **attributes: Any) -> str:
        """An operator that keeps the dtype of x; through int64 for integers (and bools) for which runtimes do not have it."""
        via = dtype if dtype in known else "int64"
        return self.cast(self.op(op, self.cast(x, dtype, via), *more, **attributes), via, dtype)


def unsupported(what: str, span: int, why: str = "", helps: Sequence[str] = ()) -> UnsupportedError:
    """The error of what ONNX cannot say, at the user's line."""
    return UnsupportedError(f"ONNX cannot say {what}{f': {why}' if why else ''}", code="E0927", labels=[(span, "")], helps=list(helps))
