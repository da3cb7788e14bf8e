"""Comparing expressions, and replacing variables in them one by one, also in the steps of loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import _native
from ..._spans import here
from ...errors import AssertionFailedError, RscanTypeError, UnsupportedError
from ...variable import wrap
from ..variable import TensorVariable, as_tensor_variable

# Comparing.


def equal_computations(xs: Sequence[Any], ys: Sequence[Any], in_xs: Any = None, in_ys: Any = None) -> bool:
    """True where the expressions are made of the same operations, in the same way, of the same leaves. `in_xs` and `in_ys` are pairs
    of variables that count as the same."""
    if len(xs) != len(ys):
        raise AssertionFailedError(f"{len(xs)} expressions are compared with {len(ys)}", code="E0809", labels=[(here(), "")])
    ins_x, ins_y = list(in_xs or ()), list(in_ys or ())
    if len(ins_x) != len(ins_y) or any(x.type != y.type for x, y in zip([*xs, *ins_x], [*ys, *ins_y], strict=True)):
        return False
    same = {x._v: y._v for x, y in zip(ins_x, ins_y, strict=True)}
    return _equal([(x._v, y._v) for x, y in zip(xs, ys, strict=True)], same)


def _equal(pairs: list[tuple[Any, Any]], same: dict[Any, Any]) -> bool:
    """True where the expressions of each pair are equal, given what counts as the same."""
    targets, seen, stack = set(same.values()), set(), list(pairs)
    while stack:
        pair = a, b = stack.pop()
        if pair in seen:
            continue
        seen.add(pair)
        if a in same or b in targets:
            if same.get(a) != b:
                return False
        elif not _alike(a, b):
            return False
        else:
            stack.extend(zip(a.inputs, b.inputs, strict=True))
    return True


def _alike(a: Any, b: Any) -> bool:
    """True where two expressions differ in their inputs at most."""
    if a.kind != b.kind or a.dtype != b.dtype or a.ndim != b.ndim:
        return False
    if a.kind == "const":
        return bool(np.array_equal(a.value, b.value, equal_nan=a.dtype[0] == "f"))
    if a.kind != "apply":
        return a == b
    if (a.op, a.index, len(a.inputs)) != (b.op, b.index, len(b.inputs)):
        return False
    return a.attrs == b.attrs if a.scan is None or b.scan is None else _alike_loops(a, b)


def _alike_loops(a: Any, b: Any) -> bool:
    if _form(a.scan) != _form(b.scan):
        return False
    (ins_a, outs_a), (ins_b, outs_b) = a.scan_body(), b.scan_body()
    types = [[(v.dtype, v.ndim) for v in ins] for ins in (ins_a, ins_b)]
    return types[0] == types[1] and _equal(list(zip(outs_a, outs_b, strict=True)), dict(zip(ins_a, ins_b, strict=True)))


def _form(loop: dict[str, Any]) -> Any:
    """What there is about a loop beside its step and its names."""
    states = [[state[key] for key in ("kind", "reads", "writes", "keep", "tag")] for state in loop["states"]]
    return loop["until"], loop["truncate"], [seq["reverse"] for seq in loop["seqs"]], states, len(loop["captured"])


# Replacing.


def map_variables(replacer: Callable[[Any], Any], graphs: Sequence[Any], additional_inputs: Any = None) -> list[Any]:
    """Copies of expressions in which every variable, also inside the steps of loops, is what the replacer makes of it.

    The replacer is called on each variable once, inputs first; the variable is computed of what was replaced before. It returns the
    variable itself, or another one of the same type. Variables of a step are not the ones that the user's function made: they
    have its names, but no tags.
    """
    values = [as_tensor_variable(v)._v for v in graphs]
    return [wrap(v, TensorVariable) for v in _Map(replacer).of(values)]


class _Map:
    """One walk over expressions. What was made of a variable is remembered."""

    def __init__(self, replacer: Callable[[Any], Any]) -> None:
        self.replacer = replacer
        self.made: dict[Any, Any] = {}
        #: Per node, its outputs on the inputs that were made.
        self.nodes: dict[int, list[Any]] = {}

    def of(self, values: Sequence[Any]) -> list[Any]:
        stack = [(v, False) for v in reversed(values)]
        while stack:
            v, ready = stack.pop()
            if v in self.made:
                continue
            if ready or v.kind != "apply":
                self.made[v] = self._replaced(v)
            else:
                stack.append((v, True))
                stack += [(i, False) for i in reversed(v.inputs)]
        return [self.made[v] for v in values]

    def _replaced(self, v: Any) -> Any:
        before: Any = wrap(self._on_new_inputs(v) if v.kind == "apply" else v, TensorVariable)
        after = as_tensor_variable(self.replacer(before))
        if (after.dtype, after.ndim) != (before.dtype, before.ndim):
            raise RscanTypeError(f"{before} is {before.type}, what replaces it {after.type}", code="E0505", labels=[(here(), "")])
        return after._v

    def _on_new_inputs(self, v: Any) -> Any:
        node = v.key[0]
        if node not in self.nodes:
            outs = v.siblings() if v.scan is not None else [v]
            pairs = [(i, self.made[i]) for i in v.inputs if self.made[i] != i]
            new = _native.substitute(outs, pairs) if pairs else outs
            self.nodes[node] = _with_step(new[0], _Map(self.replacer).of) if v.scan is not None else new
        return self.nodes[node][v.index] if v.scan is not None else self.nodes[node][0]


def _with_step(loop: Any, change: Callable[[list[Any]], list[Any]]) -> list[Any]:
    """The outputs of a loop whose step gives what `change` makes of its results."""
    params, results = loop.scan_body()
    news = change(results)
    if news == results:
        return loop.siblings()
    info, ins = loop.scan, loop.inputs
    if any(slot["kind"] == "mit_mot" for slot in info["slots"]):
        raise UnsupportedError("the step of a gradient's loop cannot be replaced", code="E0813", labels=[(here(), "")])
    backwards = any(seq["reverse"] for seq in info["seqs"])
    builder = _native.LoopBuilder(info["name"], ins[0], backwards, info["truncate"], False, loop.span)
    pairs = [(params[0], builder.step_index())]
    for seq in info["seqs"]:
        pairs += zip([params[p] for p in seq["params"]], builder.sequence(ins[seq["input"]], [0], seq["name"]), strict=True)
    for value in info["captured"]:
        pairs.append((params[value["params"][0]], ins[value["input"]]))
    outputs: list[tuple[int | None, Any]] = []
    updates = []
    count = 0
    for state in info["states"]:
        (result,) = state["results"]
        read = [params[p] for p in state["params"]]
        if state["tag"] == "shared":
            (leaf,) = ins[state["input"]].inputs
            pairs += [(p, leaf) for p in read]
            updates.append((leaf, result))
            continue
        outputs.append((None if state["input"] is None else count, result))
        if state["input"] is not None:
            taps = [at - state["writes"][0] for at in state["reads"]]
            rows = ins[state["input"]]
            start = wrap(rows, TensorVariable)[0]._v if taps == [-1] else rows
            pairs += zip(read, builder.state(start, taps or [-1], state["name"]), strict=bool(taps))
            count += 1
    made = _native.substitute(news, pairs)
    until = made[-1] if info["until"] else None
    _, _, steps = builder.finish([(at, made[r]) for at, r in outputs], [(leaf, made[r]) for leaf, r in updates], until)
    return steps.siblings()


__all__ = ["equal_computations", "map_variables"]
