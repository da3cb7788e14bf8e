"""Where gradients would go through random draws."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

#: Ops through which no gradient flows.
_OPAQUE = frozenset(
    (
        "stop_gradient",
        "argreduce",
        "argsort",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "dim",
        "isnan",
        "isinf",
        "floor",
        "ceil",
        "trunc",
        "round",
        "sign",
    )
)
_DRAWS = ("legacy_draw", "legacy_choice", "legacy_multinomial", "legacy_permutation", "legacy_poisson")


def behind(roots: Iterable[Any], stop: set[Any]) -> set[Any]:
    """The expressions from which gradients of the roots come, not looking behind `stop`."""
    seen: set[Any] = set()
    stack = list(roots)
    while stack:
        v = stack.pop()
        if v in seen:
            continue
        seen.add(v)
        if v not in stop and v.op not in _OPAQUE:
            stack.extend(v.inputs)
    return seen


def drawn_from(root: Any, stop: set[Any]) -> list[Any]:
    """The parameters of the draws that an expression is computed from, also of those in the steps of loops."""
    found: list[Any] = []
    loops: set[int] = set()
    for v in behind([root], stop):
        if v in stop:
            continue
        if v.op in _DRAWS:
            found += v.inputs[1:3]
        elif v.scan is not None and v.key[0] not in loops:
            loops.add(v.key[0])
            found += _drawn_inside(v)
    return found


def _drawn_inside(loop: Any) -> list[Any]:
    """The inputs of a loop that the parameters of draws in its step come from, over any number of steps."""
    params, results = loop.scan_body()
    parameters = [p for result in results for p in drawn_from(result, set())]
    if not parameters:
        return []
    slots, place = loop.scan["slots"], {v: i for i, v in enumerate(params)}
    wanted = {place[v] for v in behind(parameters, set()) if v in place}
    reached: list[Any] = []
    while True:
        new = [s for s in slots if s not in reached and wanted & set(s["params"])]
        if not new:
            break
        reached += new
        rows = [results[r] for s in new for r in s["results"]]
        wanted |= {place[v] for v in behind(rows, set()) if v in place}
    inputs = loop.inputs
    return [inputs[s["node_input"]] for s in reached if s["node_input"] is not None]
