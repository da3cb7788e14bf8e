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


def connected(roots: Iterable[Any], constants: Iterable[Any] = ()) -> set[Any]:
    """The expressions of the core on which the roots depend, not looking behind constants."""
    stop, seen = set(constants), set()
    stack = list(roots)
    while stack:
        v = stack.pop()
        if v not in seen:
            seen.add(v)
            stack.extend(_behind(v) if v not in stop else ())
    return seen


def _behind(v: Any) -> list[Any]:
    """The inputs of an expression on which its value depends."""
    if v.op in _CUT or v.kind != "apply":
        return []
    if v.scan is not None:
        return _behind_loop(v)
    n = _VALUES.get(v.op)
    return v.inputs if n is None else v.inputs[:n]


def _behind_loop(output: Any) -> list[Any]:
    """The inputs of a loop on which one of its outputs depends, over any number of steps."""
    params, results = output.scan_body()
    slots, inputs = output.scan["slots"], output.inputs
    reached = [slot for slot in slots if slot["node_output"] == output.index]
    while True:
        seen = connected(results[r] for slot in reached for r in slot["results"])
        read = {i for i, p in enumerate(params) if p in seen}
        new = [slot for slot in slots if slot not in reached and read.intersection(slot["params"])]
        if not new:
            break
        reached += new
    # The initial rows of a state matter only where some step reads them.
    used = [slot for slot in reached if slot["node_input"] is not None and read.intersection(slot["params"])]
    return [inputs[slot["node_input"]] for slot in used]
