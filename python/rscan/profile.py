"""Where the time of a function's calls goes: per loop and, inside a loop, per operation of its step; and how much memory they take."""

from __future__ import annotations

import dataclasses
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ._redirect import part

#: Names of what stands outside all loops, and of loops that nobody named.
OUTSIDE, UNNAMED = "outside loops", "loop"


@dataclasses.dataclass
class LoopProfile:
    """Times of one loop over all calls of its function."""

    name: str
    #: How often the loop ran, and the steps of all these runs.
    calls: int = 0
    steps: int = 0
    #: Seconds of all these runs, with the loops inside; of what stands outside all loops: of all calls.
    seconds: float = 0.0
    #: Per operation: how often it was evaluated, and for how many seconds. A loop inside is the operation `scan`.
    ops: dict[str, tuple[int, float]] = dataclasses.field(default_factory=dict)
    #: Bytes that each step stores in rows that the loop returns, its gradient's tape among them; None where it was compiled for rows of
    #: several extents, or stands in what is not compiled.
    stored: int | None = None
    #: What a step does, likewise; None also where nobody knows how many steps loops in it take.
    work: Any = None

    @property
    def share(self) -> float | None:
        """How much of what one core of this machine can do at most the loop did: its arithmetic and what it read and wrote, in these
        seconds (`Work.least`). None where that is not known, or where functions are called, whose work is not counted.

        Several threads, or steps that keep carries in registers for what is counted as reads, come above 1 at times.
        """
        if self.work is None or self.work.calls or self.seconds <= 0.0:
            return None
        return float(self.work.least() * self.steps / self.seconds)

    @property
    def around(self) -> float:
        """Seconds between its operations: what they are given is looked up, and what nobody needs any more is given back."""
        return self.seconds - sum(spent for _, spent in self.ops.values())

    def rates(self) -> list[str]:
        """A line of what it did in a second, where that is known."""
        if self.work is None or self.seconds <= 0.0:
            return []
        per_second, share = self.steps / self.seconds * 1e-9, self.share
        did = f"{self.work.operations * per_second:.2f} G operations/s, {self.work.bytes * per_second:.2f} GB/s"
        return [did if share is None else f"{did}: {100 * share:.0f} % of what a core does at most"]

    def add(self, calls: int, steps: int, seconds: float, ops: list[tuple[str, int, float]]) -> None:
        """Adds what one call of the function took."""
        self.calls += calls
        self.steps += steps
        self.seconds += seconds
        for op, count, spent in ops:
            before = self.ops.get(op, (0, 0.0))
            self.ops[op] = (before[0] + count, before[1] + spent)


class Profile:
    """The times and the memory of a function: `print(f.profile)`. `loops` has an entry per loop; the first is what stands outside all."""

    calls: int
    #: The most bytes that arrays took at a time in a call, above those that they took when it began: results, rows of loops, what is
    #: computed on the way. Arguments are not among them, and memory that is kept for later calls neither (`f.free()` gives that back);
    #: arrays of calls in other threads are.
    peak: int
    #: Bytes of arrays that went to devices in all calls, and that came back.
    crossed: list[int]

    def __init__(self, name: str | None = None) -> None:
        self.name = name
        self.calls = self.peak = 0
        self.crossed = [0, 0]
        self._loops: list[LoopProfile] = []
        self._native: Any = None
        self._known: dict[tuple[str, int], LoopProfile] = {}
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {**{key: value for key, value in self.__dict__.items() if key != "_lock"}, "_native": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def add(self, rows: list[Any], peak: int, crossed: Sequence[int] = (0, 0)) -> None:
        """Adds the rows that one call gave, and its bytes: of arrays at most, and those that crossed. Loops of one name are told apart by
        their order."""
        with self._lock:
            self.calls += 1
            self.peak = max(self.peak, peak)
            self.crossed = [before + more for before, more in zip(self.crossed, crossed, strict=True)]
            seen: Counter[str] = Counter()
            for i, (name, *numbers) in enumerate(rows):
                label = OUTSIDE if i == 0 else name or UNNAMED
                key = (label, seen[label])
                seen[label] += 1
                if key not in self._known:
                    self._known[key] = LoopProfile(label)
                    self._loops.append(self._known[key])
                self._known[key].add(*numbers)

    def measures(self, native: Any) -> None:
        """Says which function of the core its loops belong to."""
        self._native = native

    @property
    def loops(self) -> list[LoopProfile]:
        """An entry per loop; the first is what stands outside all."""
        if self._native is not None:
            self._fill(self._native.loops())
        return self._loops

    def _fill(self, plans: list[Any]) -> None:
        """What the loops store, of those whose names are as many in the plans as here."""
        variant, made = part("explain").Variant, dict[str, list[Any]]()
        for name, *_, variants, _compiled in plans:
            made.setdefault(name or UNNAMED, []).append(variant.of(variants[0]) if len(variants) == 1 else None)
        counts = Counter(label for label, _ in self._known)
        for (label, i), loop in self._known.items():
            found = made[label][i] if len(made.get(label, ())) == counts[label] else None
            if found is not None:
                loop.stored, loop.work = found.stored, found.work

    def _repr_html_(self) -> str:
        from ._html import profile

        return profile(self)

    def as_dict(self) -> dict[str, Any]:
        """The same as plain dicts and lists."""
        loops = [dataclasses.asdict(loop) for loop in self.loops]
        return {"name": self.name, "calls": self.calls, "peak": self.peak, "crossed": self.crossed, "loops": loops}

    #: The name that pandas and others have for it.
    to_dict = as_dict

    def __str__(self) -> str:
        lines = [f"profile of {self.name or 'a function'}: {self.calls} calls, arrays of {self.peak:,} bytes at most"]
        for loop in self.loops:
            head = f"{loop.name}: {loop.seconds:.6f} s"
            if loop.name != OUTSIDE:
                per_step = loop.seconds / loop.steps * 1e6 if loop.steps else 0.0
                head = f"{loop.name}: {loop.calls} runs, {loop.steps} steps, {loop.seconds:.6f} s, {per_step:.3f} us per step"
                if loop.stored is not None:
                    head += f", stores {loop.stored:,} bytes per step"
            lines.append(head)
            lines += [f"  {rate}" for rate in loop.rates()]
            for op, (count, spent) in sorted(loop.ops.items(), key=lambda item: -item[1][1]):
                lines.append(f"  {spent:12.6f} s {count:12d} x {op}")
            lines.append(f"  {loop.around:12.6f} s                around these")
        return "\n".join(lines)

    __repr__ = __str__
