"""Loops written out: what `scan` means, for arrays and, with the same code, for variables."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

import rscan as rs


@dataclasses.dataclass
class Case:
    """A loop: a step that works on arrays and on variables, and its arguments by name.

    `seqs` are pairs of a name and taps, `states` pairs of a name (None: not read) and taps, `rest` names.
    """

    step: Callable[..., Any]
    values: dict[str, np.ndarray]
    seqs: list[tuple[str, list[int]]] = dataclasses.field(default_factory=list)
    states: list[tuple[str | None, list[int]]] = dataclasses.field(default_factory=list)
    rest: list[str] = dataclasses.field(default_factory=list)
    n_steps: int | None = None
    go_backwards: bool = False

    def inputs(self) -> dict[str, rs.Variable]:
        """Variables for the values."""
        return {name: rs.tensor(v.dtype.name, [None] * v.ndim, name) for name, v in self.values.items()}

    def scan(self, given: dict[str, Any]) -> list[rs.Variable]:
        """The loop of some variables."""
        info = [None if name is None else dict(initial=given[name], taps=taps) for name, taps in self.states]
        outputs, updates = rs.scan(
            self.step,
            sequences=[dict(input=given[name], taps=taps) for name, taps in self.seqs],
            outputs_info=info,
            non_sequences=[given[name] for name in self.rest],
            n_steps=self.n_steps,
            go_backwards=self.go_backwards,
            return_list=True,
        )
        assert not updates
        return outputs

    def unrolled(self, given: dict[str, Any], n: int) -> list[list[Any]]:
        """The rows of each output, step by step."""
        cuts = [(given[name], taps, self.values[name].shape[0]) for name, taps in self.seqs]
        past = []
        for name, taps in self.states:
            if name is None:
                past.append([])
            elif taps == [-1]:
                past.append([given[name]])
            else:
                past.append([given[name][i] for i in range(-min(taps))])
        before = [len(p) for p in past]
        for t in range(n):
            args = []
            for x, taps, length in cuts:
                low, high = min(0, *taps), max(0, *taps)
                usable = length - (high - low)
                at = usable - 1 - t if self.go_backwards else t
                args += [x[at + k - low] for k in taps]
            for (name, taps), rows in zip(self.states, past, strict=False):
                args += [rows[len(rows) + k] for k in taps] if name is not None else []
            out = self.step(*args, *(given[name] for name in self.rest))
            out = out if isinstance(out, (list, tuple)) else [out]
            if not past:
                past, before = [[] for _ in out], [0] * len(out)
            for rows, value in zip(past, out, strict=True):
                rows.append(value)
        return [rows[m:] for rows, m in zip(past, before, strict=True)]

    def steps(self) -> int:
        """How many steps it has."""
        if self.n_steps is not None:
            return self.n_steps
        return min(self.values[name].shape[0] - (max(0, *taps) - min(0, *taps)) for name, taps in self.seqs)


def weighted(outputs: list[Any]) -> Any:
    """A scalar that depends on every element of the outputs in another way."""
    total = 0.0
    for k, out in enumerate(outputs):
        if out.dtype.startswith("float"):
            total = total + rs.sum(rs.sin(out * (1.3 + k)) + out**2)
    return total
