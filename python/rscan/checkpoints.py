"""Loops that keep only every N-th value, and compute the others again for their gradient."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from ._spans import here
from ._tracing import Made, Placeholders, Plan, Result, Slot, Tracing, close, entered
from .errors import ScanError
from .ops import assert_, concatenate, equal, minimum, reshape, zeros
from .scan import ScanPlan, check_arguments, made_of, packed, plan_of
from .variable import Variable, as_variable, extent, wrap

__all__ = ["scan_checkpoints"]


def scan_checkpoints(
    fn: Callable[..., Any],
    sequences: Any = None,
    outputs_info: Any = None,
    non_sequences: Any = None,
    name: str | None = "checkpointscan_fn",
    n_steps: Any = None,
    save_every_N: int = 10,
    padding: bool = True,
) -> Any:
    """`scan`, of which only every `save_every_N`-th value of each output is kept. Returns (outputs, updates).

    T steps give ceil(T / N) rows; row j holds the value after min((j + 1) N, T) steps. The gradient runs the steps between
    two rows again, so that memory holds T / N values and N intermediate ones instead of T.

    Arguments are those of `scan`. With padding=False, T must be a multiple of N; else the run fails.

    errors: those of `scan`; `ScanError` (E0124) for a `save_every_N` that is no positive integer.

    >>> rows, updates = rs.scan_checkpoints(lambda h: h + 1.0, outputs_info=rs.constant(0.0), n_steps=10, save_every_N=4)
    >>> rows.eval()
    array([ 4.,  8., 10.])
    """
    span = here()
    if not isinstance(save_every_N, (int, np.integer)) or isinstance(save_every_N, bool) or save_every_N < 1:
        raise ScanError(f"save_every_N is {save_every_N!r}", code="E0124", labels=[(span, "")], helps=["a number of steps, 1 or more"])
    user = plan_of(fn, sequences, outputs_info, non_sequences, n_steps, -1, False, name, False)
    return packed(run_in_blocks(user, int(save_every_N), bool(padding)))


def run_in_blocks(user: ScanPlan, every: int, padding: bool = True) -> Result:
    """Calls the step and makes the loop over blocks."""
    return _Blocks(user, every, padding).run()


class _Blocks:
    """A loop over blocks, with a loop over the steps of a block inside."""

    def __init__(self, user: ScanPlan, every: int, padding: bool) -> None:
        self.user, self.every, self.padding = user, every, padding
        # Traced without a number of steps: the placeholders are moved into the blocks afterwards.
        self.plan = dataclasses.replace(user.plan, n_steps=None)

    def run(self) -> Result:
        old, made = self._traced()
        steps, rows = self._lengths()
        blocks = (steps + (self.every - 1)) // self.every
        outer = Plan(
            span=self.plan.span,
            name=self.plan.name,
            n_steps=blocks,
            sequences=[Slot(_in_blocks(x, blocks, self.every), [0], name) for x, name in rows],
            states=[Slot(_carried(s), [-1], s.name) for s in self.plan.states],
            passed=self.plan.passed,
            adapt=False,
            report_forgotten=self.plan.report_forgotten,
            family=self.plan.family,
        )
        opened = outer.open()
        return close(outer, opened, self._block(opened, old, made, steps, rows)).without_extra(len(made.outputs))

    def _traced(self) -> tuple[Placeholders, Made]:
        """The step's call, and initial states that fit."""
        plan, fn, traced = self.plan, self.user.fn, Tracing(self.plan)
        while True:
            slots = (*traced.placeholders.sequences, *traced.placeholders.states)
            args = [wrap(v, plan.family) for slot in slots for v in slot] + self.user.rest
            check_arguments(fn, args, {}, plan.span)
            with entered(wrap(traced.placeholders.index, plan.family)):
                value = fn(*args)
            if traced.takes(made_of(self.user, value)):
                break
        self.plan, placeholders, made = traced.plan, traced.placeholders, traced.made
        if made.until is not None:
            raise ScanError(
                "the step of scan_checkpoints cannot end the loop with until(...)",
                code="E0124",
                labels=[(plan.span, ""), (made.until._v.span, "the condition")],
                helps=["use rs.scan, or stop inside the step: rs.where(done, h, new_h)"],
            )
        return placeholders, made

    def _lengths(self) -> tuple[Variable, list[tuple[Variable, str | None]]]:
        """The number of steps, and the rows that each tap of each sequence reads."""
        rows = [(x, slot.name) for slot in self.plan.sequences for x in _cut(slot)]
        lengths = [as_variable(extent(x, 0)) for x, _ in rows]
        steps = self.user.plan.n_steps
        if steps is None:
            if not lengths:
                raise ScanError(
                    "nothing tells how many steps the loop runs",
                    code="E0110",
                    labels=[(self.plan.span, "no n_steps and no sequence")],
                    helps=["pass n_steps=..., or something to loop over in sequences"],
                )
            steps = lengths[0]
            for n in lengths[1:]:
                steps = minimum(steps, n)
        else:
            steps = assert_(steps.astype("int64"), steps >= 0, message="n_steps is negative")
            for n, (_, name) in zip(lengths, rows, strict=True):
                steps = assert_(steps, steps <= n, message=f"sequence `{name or '?'}` is shorter than n_steps")
        if not self.padding:
            text = f"the number of steps is not a multiple of save_every_N={self.every}, and padding is False"
            steps = assert_(steps, equal(steps % self.every, 0), message=text)
        return steps, rows

    def _block(self, opened: Placeholders, old: Placeholders, made: Made, steps: Variable, rows: list[tuple[Variable, str | None]]) -> Made:
        """What one step of the outer loop makes: a loop over the steps of its block."""
        family = self.plan.family
        start = wrap(opened.index, family) * self.every
        inner = Plan(
            span=self.plan.span,
            name=self.plan.name,
            n_steps=minimum(steps - start, self.every),
            sequences=[Slot(wrap(slot[0], family), [0], name) for slot, (_, name) in zip(opened.sequences, rows, strict=True)],
            states=[Slot(wrap(v[0], family), s.taps, s.name) for v, s in zip(opened.states, self.plan.states, strict=True)],
            passed=self.plan.passed,
            adapt=False,
            family=family,
        )
        placeholders = inner.open()
        index = start + wrap(placeholders.index, family)
        new = [index._v, *(v for slot in (*placeholders.sequences, *placeholders.states) for v in slot)]
        result = close(inner, placeholders, made.replaced(old.all(), new, family))
        outputs: list[tuple[int | None, Variable]] = []
        carried: list[tuple[int | None, Variable]] = []
        for (at, _), out in zip(made.outputs, result.outputs, strict=True):
            if at is None or self.plan.states[at].taps == [-1]:
                outputs.append((at, out[-1]))
            else:
                outputs.append((None, out[-1]))
                past = wrap(opened.states[at][0], family)
                carried.append((at, concatenate([past, out])[min(self.plan.states[at].taps) :]))
        return Made(outputs + carried, result.updates)


def _cut(slot: Slot) -> list[Variable]:
    """Per tap the rows that it reads: row t at step t."""
    low, high = min(0, *slot.taps), max(0, *slot.taps)
    return [slot.value[k - low : (k - high) or None] for k in slot.taps]


def _carried(slot: Slot) -> Variable:
    """What goes from one block to the next: as many past rows as the oldest tap reaches."""
    return slot.value if slot.taps == [-1] else slot.value[: -min(slot.taps)]


def _in_blocks(x: Variable, blocks: Variable, every: int) -> Variable:
    """Rows in blocks, the last one filled up with zeros that no step reads."""
    total = blocks * every
    row = [extent(x, axis) for axis in range(1, x.ndim)]
    kept = x[:total]
    missing = total - extent(kept, 0)
    filled = concatenate([kept, zeros([missing, *row], dtype=x.dtype)])
    return reshape(filled, [blocks, every, *row])
