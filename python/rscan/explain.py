"""What became of the loops of a function: `print(f.explain())`, `f.explain().as_dict()`."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from . import _native


@dataclasses.dataclass(frozen=True)
class StatePlan:
    """A state of a loop: how many of its last rows the loop returns (None: all of them)."""

    name: str | None
    kind: str
    keeps: int | None

    def __str__(self) -> str:
        kept = "all rows" if self.keeps is None else "the last row" if self.keeps == 1 else f"the last {self.keeps} rows"
        return f"state {self.name or '?'} ({self.kind}) returns {kept}"


@dataclasses.dataclass(frozen=True)
class Work:
    """What is done in a step.

    operations: arithmetic on single elements, comparisons and choices among them; a fused multiply-add is two.
    width: the bytes of the elements that these give.
    calls: functions and operations that are called; what they do is not counted.
    bytes: what is read and written, in caches too.
    """

    operations: int
    width: int
    calls: int
    bytes: int

    def __str__(self) -> str:
        calls = f", {self.calls:,} call{'' if self.calls == 1 else 's'}" if self.calls else ""
        return f"a step: {self.operations:,} operations{calls}, {self.bytes:,} bytes read and written"

    def least(self) -> float:
        """The seconds that a step takes at least on one core of this machine, by its arithmetic and by what it reads and writes, whichever
        is more: the roofline model of Williams, Waterman and Patterson (2009), with what was measured of multiply-adds of elements in
        registers, and of arrays in the innermost cache. What is called is not counted."""
        width, moved = _native.peak()
        return max(self.width / width, self.bytes / moved)


@dataclasses.dataclass(frozen=True)
class Variant:
    """A loop compiled for rows of certain extents.

    engine: 'jit' (scalars in registers), 'avx512' or 'avx2' (wide rows as lanes), 'vm', 'eval', the name of a device, or what the steps are
    made of.
    reason: why it is not one kernel, or not machine code; None where it is.
    block: steps between two looks at whether the caller wants to stop.
    copies: what each step copies without computing anything, a state's name or a description, with the bytes; best if empty.
    stored: bytes that each step stores in rows that the loop returns: steps times this is what a gradient's tape takes.
    crossed: on a device, the bytes that went there and came back in the last call; else None.
    work: what a step does; None where it runs loops of which nobody knows how many steps they take, or is not compiled.
    """

    engine: str
    reason: str | None
    lanes: int
    instructions: int
    block: int
    copies: list[tuple[str, int]]
    stored: int
    crossed: list[int] | None = None
    work: Work | None = None

    @classmethod
    def of(cls, row: Any) -> Variant:
        """What the core tells of it."""
        made = cls(*row[:-1])
        return made if row[-1] is None else dataclasses.replace(made, work=Work(*row[-1]))

    def __str__(self) -> str:
        text = f"runs on {self.engine}"
        if self.instructions:
            text += f": {self.lanes} lanes, {self.instructions} instructions a step, blocks of {self.block} steps"
        if self.reason is not None:
            text += f", because {self.reason}"
        copies = [f"    copies {what}: {size:,} bytes a step" for what, size in self.copies]
        stores = [f"    stores {self.stored:,} bytes a step"] if self.stored else []
        work = [] if self.work is None else [f"    {self.work}"]
        crossed = [] if self.crossed is None else [f"    {_moved(self.crossed)}"]
        return "\n".join([text, *work, *copies, *stores, *crossed])


def _moved(crossed: list[int]) -> str:
    return f"the last call moved {crossed[0]:,} bytes to the device and {crossed[1]:,} back"


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a part of a function runs that is no loop: the device, or None for the host, and then why; the bytes that went to the device
    and came back in the last call."""

    op: str
    file: str | None
    line: int | None
    device: str | None
    why: str | None
    crossed: list[int]

    def __str__(self) -> str:
        place = "" if self.file is None else f"  ({os.path.basename(self.file)}:{self.line})"
        why = "" if self.why is None else f", because {self.why}"
        moved = f": {_moved(self.crossed)}" if self.device is not None and any(self.crossed) else ""
        return f"{self.op}{place} runs on {self.device or 'the host'}{why}{moved}"


@dataclasses.dataclass(frozen=True)
class LoopPlan:
    """One loop. `depth` loops stand around it; `variants` is empty before the first call.

    compiled: for how many extents of rows it was compiled. Where that is more than there are variants, those not called for longest were
    given up, and are compiled again when they are called again.

    ahead: what is computed of the sequences' rows before the steps that read them: in blocks that stay in the cache where the loop is long.
    behind: what is computed of the rows that the loop makes, likewise after the steps that make them.
    """

    name: str | None
    file: str | None
    line: int | None
    depth: int
    states: list[StatePlan]
    ahead: list[str]
    behind: list[str]
    variants: list[Variant]
    compiled: int

    def __str__(self) -> str:
        head = "loop" if self.name is None else f"loop {self.name!r}"
        if self.file is not None:
            head += f"  ({os.path.basename(self.file)}:{self.line})"
        lines = [head, *(f"  {state}" for state in self.states)]
        if self.ahead:
            lines.append(f"  computed ahead, in blocks of rows where there are many: {', '.join(self.ahead)}")
        if self.behind:
            lines.append(f"  computed behind, in blocks of rows where there are many: {', '.join(self.behind)}")
        lines += [f"  {line}" for variant in self.variants for line in str(variant).splitlines()]
        if not self.variants:
            lines.append("  not called yet: loops are compiled at their first call")
        if self.compiled > len(self.variants):
            lines.append(f"  compiled for {self.compiled} extents of rows, of which the last {len(self.variants)} are kept")
        return "\n".join("  " * self.depth + line for line in lines)


@dataclasses.dataclass(frozen=True)
class PassNote:
    """What a pass did to a loop or operation, or why it left it as it is."""

    name: str
    place: str
    done: bool
    text: str

    def __str__(self) -> str:
        return f"{self.name}: {self.place}: {'' if self.done else 'not done: '}{self.text}"


@dataclasses.dataclass(frozen=True, repr=False)
class Explanation:
    """What became of a function: its loops, outer ones first; what its passes did, and how often their rules were applied.

    device: what it was asked to run on, None for the processor; places: where its parts run that are no loops, empty without a device.
    crossed: the bytes of arrays that went to devices in the last call, and that came back; of arguments, results and shared variables, too.
    """

    name: str | None
    loops: list[LoopPlan]
    passes: list[PassNote]
    rules: list[tuple[str, str, int]]
    device: str | None = None
    places: list[Place] = dataclasses.field(default_factory=list)
    crossed: list[int] = dataclasses.field(default_factory=lambda: [0, 0])

    def as_dict(self) -> dict[str, Any]:
        """The same as plain dicts and lists."""
        return dataclasses.asdict(self)

    def _repr_html_(self) -> str:
        from ._html import explanation

        return explanation(self)

    def __str__(self) -> str:
        head = f"function {self.name or ''}".rstrip()
        on = "" if self.device is None else f" on {self.device}"
        count = f"{len(self.loops)} loop{'' if len(self.loops) == 1 else 's'}"
        lines = [f"{head}: {count}{on}", *map(str, self.loops), *map(str, self.places), *map(str, self.passes)]
        if self.device is not None:
            lines.insert(1, f"in all, {_moved(self.crossed)}")
        times = [f"{name}: {rule}: {n} {'time' if n == 1 else 'times'}" for name, rule, n in self.rules]
        return "\n".join([*lines, *times])

    __repr__ = __str__


def explain(function: _native.Function, name: str | None) -> Explanation:
    """What became of a compiled function."""
    loops, places = [], []
    for loop_name, span, depth, states, ahead, behind, variants, compiled in function.loops():
        place = _native.span_place(span)
        file, line = (None, None) if place is None else place[:2]
        plans, made = [StatePlan(*s) for s in states], [Variant.of(v) for v in variants]
        loops.append(LoopPlan(loop_name, file, line, depth, plans, ahead, behind, made, compiled))
    notes, rules = function.report()
    device, placed, in_all = function.placed()
    for op, span, where, why, crossed in placed:
        file, line = (_native.span_place(span) or (None, None))[:2]
        places.append(Place(op, file, line, where, why, crossed))
    return Explanation(name, loops, _once([PassNote(*note) for note in notes]), rules, device, places, in_all)


def _once(notes: list[PassNote]) -> list[PassNote]:
    """Each thing once: passes run until nothing changes, and what one of them did at last is what it has to say of a place."""
    last = {(note.name, note.place): note for note in notes}
    return list(dict.fromkeys(note for note in notes if note.done or last[note.name, note.place] == note))
