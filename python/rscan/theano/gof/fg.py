"""`theano.gof.fg`: the graph of a compiled function, for programs that look at it."""

from __future__ import annotations

from typing import Any

from ...errors import MissingInputError
from .graph import io_toposort


class FunctionGraph:
    """Inputs and outputs, and what is between."""

    inputs: list[Any]
    outputs: list[Any]

    def __init__(self, inputs: Any, outputs: Any, **_: Any) -> None:
        self.inputs, self.outputs = list(inputs), list(outputs)

    def toposort(self) -> list[Any]:
        """The applications, inputs before users."""
        return io_toposort(self.inputs, self.outputs)

    @property
    def apply_nodes(self) -> set[Any]:
        """The applications."""
        return set(self.toposort())

    @property
    def variables(self) -> set[Any]:
        """All variables."""
        return {v for node in self.toposort() for v in (*node.inputs, *node.outputs)} | set(self.inputs) | set(self.outputs)


class Maker:
    """What a function was made of. Rewrites happen below, so this is the graph as it was written."""

    inputs: Any
    mode: None
    fgraph: FunctionGraph
    expanded_inputs: Any
    outputs: Any

    def __init__(self, function: Any) -> None:
        self.inputs, self.mode = function.inputs, None
        outputs = [*function.outputs, *(value for _, value in function.updates)]
        self.fgraph = FunctionGraph([slot.variable for slot in function.inputs], outputs)
        self.expanded_inputs = function.inputs
        self.outputs = function.outputs


__all__ = ["FunctionGraph", "Maker", "MissingInputError"]
