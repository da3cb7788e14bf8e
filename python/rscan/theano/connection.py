"""What a cost depends on in Theano's sense: a gradient may be zero, but is not missing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

#: Ops whose result has nothing to do with the values of their inputs.
_CUT = frozenset(("stop_gradient", "dim"))
#: Ops whose other inputs tell places and extents alone, by the number of inputs that tell values.
_VALUES = {
    "index": 1, "gather": 1, "broadcast_like": 1, "reshape_like": 1, "broadcast_to": 1, "reshape": 1, "sum_to": 1,
    "index_write": 2, "gather_write": 2, "arange": 0, "eye": 0,
}  # fmt: skip


def connected(roots: Iterable[Any], constants: Iterable[Any] = (), loops: dict[int, _Loop] | None = None) -> set[Any]:
    """The expressions of the core on which the roots depend, not looking behind constants. `loops` keeps what was found out."""
    known = {} if loops is None else loops
    stop, seen = set(constants), set()
    stack = list(roots)
    while stack:
        v = stack.pop()
        if v not in seen:
            seen.add(v)
            stack.extend(_behind(v, known) if v not in stop else ())
    return seen


def _behind(v: Any, loops: dict[int, _Loop]) -> list[Any]:
    """The inputs of an expression on which its value depends."""
    if v.op in _CUT or v.kind != "apply":
        return []
    if v.op == "scan":
        node = v.key[0]
        if node not in loops:
            loops[node] = _Loop(v, loops)
        return loops[node].behind(v.index)
    n = _VALUES.get(v.op)
    return v.inputs if n is None else v.inputs[:n]


class _Loop:
    """What the outputs of a loop depend on, over any number of steps."""

    def __init__(self, output: Any, loops: dict[int, _Loop]) -> None:
        self.loops, self.inputs, self.slots = loops, output.inputs, output.scan["slots"]
        self.params, self.results = output.scan_body()
        #: Per result of the step, the parameters on which it depends.
        self.read: dict[int, set[int]] = {}

    def behind(self, output: int) -> list[Any]:
        """The inputs on which an output depends."""
        reached = [slot for slot in self.slots if slot["node_output"] == output]
        while True:
            read = set().union(*(self._read_by(r) for slot in reached for r in slot["results"]))
            new = [slot for slot in self.slots if slot not in reached and read.intersection(slot["params"])]
            if not new:
                break
            reached += new
        # The initial rows of a state matter only where some step reads them.
        used = [slot for slot in reached if slot["node_input"] is not None and read.intersection(slot["params"])]
        return [self.inputs[slot["node_input"]] for slot in used]

    def _read_by(self, result: int) -> set[int]:
        if result not in self.read:
            seen = connected([self.results[result]], (), self.loops)
            self.read[result] = {i for i, p in enumerate(self.params) if p in seen}
        return self.read[result]
