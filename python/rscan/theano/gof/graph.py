"""`theano.gof.graph`: walking expressions."""

from __future__ import annotations

from typing import Any

from ... import _native
from ...variable import wrap
from ..graph_tools import clone
from ..variable import TensorConstant as Constant
from ..variable import TensorVariable
from ..variable import TensorVariable as Variable


class OpView:
    """An op of the core's table: its name and attributes."""

    name: str
    attrs: dict[str, Any]

    def __init__(self, name: str, attrs: dict[str, Any]) -> None:
        self.name, self.attrs = name, attrs

    def __str__(self) -> str:
        args = ", ".join(f"{key}={value}" for key, value in self.attrs.items())
        return f"{self.name}{{{args}}}" if args else self.name

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpView) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


class Apply:
    """The application of an op to inputs."""

    op: Any
    inputs: list[Any]
    outputs: list[Any]

    def __init__(self, op: Any, inputs: Any, outputs: Any) -> None:
        self.op, self.inputs, self.outputs = op, list(inputs), list(outputs)
        self._key: Any = None

    @property
    def nin(self) -> int:
        """Number of inputs."""
        return len(self.inputs)

    @property
    def nout(self) -> int:
        """Number of outputs."""
        return len(self.outputs)

    @property
    def out(self) -> Any:
        """The output."""
        return self.outputs[0]

    default_output = out

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Apply) and self._key is not None and self._key == other._key)

    def __hash__(self) -> int:
        return hash(self._key) if self._key is not None else id(self)

    def __str__(self) -> str:
        return f"{self.op}({', '.join(map(str, self.inputs))})"

    __repr__ = __str__


def owner_of(v: Any) -> Apply | None:
    """The application that computes a variable."""
    native = v._v
    if native.kind != "apply":
        return None
    if native.scan is not None:
        from ..scan_module.scan_op import node_of

        return node_of(v)
    node = Apply(OpView(native.op, dict(native.attrs)), [wrap(i, TensorVariable) for i in native.inputs], [v])
    node._key = native.key[0]
    return node


def index_of(v: Any) -> int | None:
    """The position of a variable among the outputs of its owner."""
    native = v._v
    if native.kind != "apply":
        return None
    if native.scan is not None:
        from ..scan_module.scan_op import output_position

        return output_position(native)
    return native.index


def inputs(variables: Any, blockers: Any = None) -> list[Any]:
    """The leaves that variables depend on: inputs, shared variables and constants."""
    stop = [v._v for v in blockers or ()]
    return [wrap(v, TensorVariable) for v in _native.leaves([v._v for v in variables], stop)]


def ancestors(variables: Any, blockers: Any = None) -> list[Any]:
    """The variables and all that they depend on."""
    stop, seen, out, stack = {v._v for v in blockers or ()}, set(), [], [v._v for v in variables]
    while stack:
        v = stack.pop()
        if v in seen:
            continue
        seen.add(v)
        out.append(wrap(v, TensorVariable))
        if v not in stop:
            stack.extend(v.inputs)
    return out


def io_toposort(ins: Any, outs: Any) -> list[Apply]:
    """The applications between inputs and outputs, inputs before users."""
    order: list[Any] = []
    stop, done = {v._v.key for v in ins}, set()
    stack: list[tuple[Any, bool]] = [(v._v, False) for v in outs]
    while stack:
        v, ready = stack.pop()
        node = v.key[0]
        if v.kind != "apply" or v.key in stop or node in done:
            continue
        if ready:
            done.add(node)
            order.append(owner_of(wrap(v, TensorVariable)))
        else:
            stack.append((v, True))
            stack.extend((i, False) for i in v.inputs)
    return order


def ops(i: Any, o: Any) -> set[Apply]:
    """The applications between inputs and outputs."""
    return set(io_toposort(i, o))


def variables(i: Any, o: Any) -> set[Any]:
    """The variables between inputs and outputs."""
    return set(i) | set(o) | {v for node in io_toposort(i, o) for v in (*node.inputs, *node.outputs)}


def is_in_ancestors(l_apply: Any, f_node: Any) -> bool:
    """True where one application depends on another."""
    return any(node == f_node for node in io_toposort([], l_apply.outputs))


__all__ = ["Apply", "Constant", "Variable", "ancestors", "clone", "inputs", "io_toposort", "ops", "variables"]
