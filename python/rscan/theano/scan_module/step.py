"""What Theano makes of a step: which variables it may use, what it updates by itself, which broadcast patterns it must keep."""

from __future__ import annotations

import dataclasses
from typing import Any

from ... import _native, random
from ..._tracing import Made, Placeholders, Plan, step_indices
from ...errors import MissingInputError, ScanTypeError
from ...variable import Variable, wrap
from ..tensor.arrays import unbroadcast


def default_updates(plan: Plan, made: Made) -> dict[Variable, Variable]:
    """The default updates of the shared variables from which the step computes, though it be outside of fn. What was passed is
    computed before the loop."""
    stop, found = [v._v for v in plan.passed], {}
    fresh = made.natives()
    while fresh:
        new = {}
        for leaf in _native.leaves(fresh, stop):
            variable: Any = wrap(leaf, plan.family)
            default = variable.default_update if leaf.kind == "shared" else None
            if default is not None and not getattr(variable, "keyed", False) and variable not in made.updates and variable not in found:
                new[variable] = default
        found.update(new)
        fresh = [v._v for v in new.values()]
    return found


def drawn_anew(plan: Plan, placeholders: Placeholders, made: Made) -> Made:
    """With the draws of counter-based streams that were made outside of the step and not passed: each step has its own."""
    since, passed = placeholders.index.key[0], [v._v for v in plan.passed]
    before = [v for v in _native.recent(made.natives(), since) if v.kind == "apply" and v.key[0] < since and v not in passed]
    keys = [k for k in _native.leaves(before, passed) if k.kind == "shared" and getattr(wrap(k, plan.family), "keyed", False)]
    if not keys:
        return made
    pairs = [(v, v) for v in passed]
    for key in keys:
        new = wrap(key, plan.family)
        for index in (*step_indices(), wrap(placeholders.index, plan.family)):
            new = random.fold_in(new, index)
        pairs.append((key, new._v))
    return made.replaced(before, _native.substitute(before, pairs), plan.family)


def check_leaves(plan: Plan, placeholders: Placeholders, made: Made, strict: bool) -> None:
    """Refuses updates that need an input which neither was passed nor is needed for the outputs, and, where the loop is strict,
    shared variables that were not passed."""
    passed = [v._v for v in plan.passed]
    stop = passed + placeholders.all()
    news = [v._v for v in made.updates.values()]
    outputs = made.natives()[: len(made.outputs)] + ([] if made.until is None else [made.until._v])
    known = {*stop, *_native.leaves(outputs, stop)} if news else set()
    for leaf in _native.leaves(news, stop):
        if leaf.kind == "input" and leaf not in known:
            raise _missing(f"the updates of the step use `{leaf.describe()}`, which was not passed to the loop", leaf, "E0501", plan.span)
    if strict:
        known = {*passed, *(key._v for key in made.updates)}
        for leaf in _native.leaves(news + outputs, stop):
            if leaf.kind == "shared" and leaf not in known:
                text = f"the step uses the shared variable `{leaf.describe()}`, which was not passed to the loop"
                raise _missing(text, leaf, "E0113", plan.span)


def _missing(title: str, leaf: Any, code: str, span: int) -> MissingInputError:
    labels = [(leaf.span, f"`{leaf.describe()}` is made here"), (span, "the loop")]
    return MissingInputError(title, code=code, labels=labels, helps=[f"add `{leaf.describe()}` to non_sequences"])


# Broadcast patterns.


def growing(plan: Plan, placeholders: Placeholders, made: Made) -> tuple[Plan, Placeholders, Made, ScanTypeError | None]:
    """With initial states whose extents of 1 count as unknown where the step gives an unknown one, and the error that stands
    for the first of them."""
    fault = None
    for _ in plan.states:
        states = list(plan.states)
        for at, out in made.outputs:
            if at is None or not placeholders.states[at]:
                continue
            row: Any = wrap(placeholders.states[at][0], plan.family)
            axes = _growing_axes(row, out)
            if axes:
                fault = fault or _inconsistent(row, out, plan.span)
                first = 0 if states[at].taps == [-1] else 1
                states[at] = dataclasses.replace(states[at], value=unbroadcast(states[at].value, *(i + first for i in axes)))
        if states == plan.states:
            break
        plan = dataclasses.replace(plan, states=states)
        opened = plan.open()
        made = made.replaced(placeholders.all(), opened.all(), plan.family)
        placeholders = opened
    return plan, placeholders, made, fault


def _growing_axes(before: Variable, after: Variable) -> list[int]:
    if before.ndim != after.ndim or before.dtype != after.dtype:
        return []
    return [i for i, (n, m) in enumerate(zip(before.static_shape, after.static_shape, strict=True)) if n == 1 and m is None]


def _inconsistent(before: Any, after: Any, span: int) -> ScanTypeError:
    return ScanTypeError(
        f"a state is broadcastable {before.broadcastable}, and the step makes it {after.broadcastable}",
        code="E0101",
        labels=[(span, ""), (after._v.span, "the step gives this")],
        helps=["theano.tensor.unbroadcast(initial, axis) lets the axis grow"],
    )


__all__ = ["check_leaves", "default_updates", "drawn_anew", "growing"]
