"""Rows of a loop's states that take part in some steps alone: sequences of different lengths side by side, and masks."""

from __future__ import annotations

from typing import Any

from ._tracing import Placeholders, Plan, Slot, extent_outside
from .errors import ScanError
from .ops import assert_, cast, equal, expand_dims, logical_or, max, not_equal, where, zeros_like
from .variable import Variable, as_variable, is_operand, wrap

#: What is asserted of lengths whose number a call tells.
_ONE_FOR_SEVERAL = "lengths has one entry for several rows; a number without axes is the length of all rows"


class Ragged:
    """Which rows take part: as many steps as `lengths` say, or where a sequence that the step does not see, the mask, says so."""

    def __init__(self, lengths: Any, mask: Any, plan: Plan) -> None:
        self.span = plan.span
        self.lengths = None if lengths is None else self._integers(lengths)
        if self.lengths is None:
            plan.sequences.append(Slot(self._truths(mask), [0]))
            return
        if mask is not None or plan.n_steps is not None:
            raise self._fail("lengths tell the number of steps: neither n_steps nor a mask goes with them")
        self.lengths = assert_(self.lengths, self.lengths >= 0, message="a length of a loop's rows is negative")
        steps = max(self.lengths, initial=0)
        if plan.go_backwards and plan.sequences:
            shorter = [steps <= as_variable(slot.value.shape[0]) - _reach(slot) for slot in plan.sequences]
            steps = assert_(steps, *shorter, message="a length of a loop's rows is larger than that of a sequence")
            # Backwards a loop begins with the last row of its sequences: that of the longest row.
            for slot in plan.sequences:
                slot.value = slot.value[: steps + _reach(slot)]
        plan.n_steps = steps

    def kept(self, plan: Plan, placeholders: Placeholders, outputs: list[tuple[int | None, Variable]]) -> list[tuple[int | None, Variable]]:
        """What the step made, where rows that take no part keep their states, and have 0 of what is no state."""
        if self.lengths is not None:
            self.lengths = self._one_each(self.lengths, plan, [v for _, v in outputs], placeholders.index.key[0])
        active = self._active(plan, placeholders)
        return [(at, self._chosen(active, v, self._before(plan, placeholders, at, v))) for at, v in outputs]

    def _one_each(self, lengths: Variable, plan: Plan, made: list[Variable], since: int) -> Variable:
        """Lengths, of which there are as many as rows: arithmetic would broadcast one, and rows that were forgotten would go unnoticed."""
        conditions = []
        for axis, given in enumerate(lengths.shape):
            found = [extent_outside(plan, v._v, axis, since) for v in made if v.ndim > axis and not v._v.same_dim(axis, lengths._v, axis)]
            for rows in (n for n in found if n is not None):
                if isinstance(given, int) and isinstance(rows, int) and given == 1 != rows:
                    text = f"lengths has one entry along axis {axis}, and the step makes {rows} rows"
                    raise self._fail(text, "give a length for each row; a number without axes, lengths=n, is that of all rows")
                if not isinstance(given, int) or (given == 1 and not isinstance(rows, int)):
                    conditions.append(logical_or(equal(given, rows), not_equal(given, 1)))
        if not conditions:
            return lengths
        return assert_(lengths, *conditions, message=_ONE_FOR_SEVERAL)

    def _active(self, plan: Plan, placeholders: Placeholders) -> Variable:
        if self.lengths is None:
            return wrap(placeholders.sequences[-1][0], plan.family)
        step = wrap(placeholders.index, plan.family)
        return (as_variable(plan.n_steps) - 1 - step if plan.go_backwards else step) < self.lengths

    def _before(self, plan: Plan, placeholders: Placeholders, at: int | None, made: Variable) -> Variable:
        if at is None:
            return zeros_like(made)
        offsets = plan.states[at].taps
        if -1 not in offsets:
            raise self._fail("a state with lengths or a mask has the tap -1: what a row keeps is its value before")
        return cast(wrap(placeholders.states[at][offsets.index(-1)], plan.family), made.dtype)

    def _chosen(self, active: Variable, made: Variable, before: Variable) -> Variable:
        if made.ndim < active.ndim:
            raise self._fail(f"lengths or a mask of {active.ndim} axes choose among rows, and the step made {made!r}, which has fewer axes")
        return where(expand_dims(active, tuple(range(active.ndim, made.ndim))), made, before)

    def _integers(self, lengths: Any) -> Variable:
        if is_operand(lengths) or isinstance(lengths, (Variable, list, tuple)):
            v = as_variable(lengths)
            if v.dtype.startswith(("int", "uint")):
                return cast(v, "int64")
        raise self._fail(f"lengths are integers, one for each row, not {lengths!r}", 'np.asarray(lengths, "int64") makes integers of them')

    def _truths(self, mask: Any) -> Variable:
        if is_operand(mask) or isinstance(mask, (Variable, list, tuple)):
            v = as_variable(mask)
            if v.ndim and not v.dtype.startswith("float"):
                return cast(v, "bool")
        raise self._fail(f"a mask has True or False for each step, and each row, not {mask!r}")

    def _fail(self, text: str, *helps: str) -> ScanError:
        return ScanError(text, code="E0121", labels=[(self.span, "")], helps=helps)


def _reach(slot: Slot) -> int:
    """How many rows of a sequence a step sees, but one."""
    taps = sorted([0, *slot.taps])
    return taps[-1] - taps[0]
