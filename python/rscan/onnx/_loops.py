"""Loops of ONNX: `Scan` where the number of steps is known before, `Loop` where a step may stop it.

A step of ONNX is given the last row of a state. Whatever else of a state it reads is kept in further states, *registers*: rows
`i .. i + span` move down by one at each step. A loop that may have no steps makes one of zeros, of whose rows none is kept: runtimes refuse
a `Scan` of no steps, and do not know what shape the rows of a `Loop` of no steps have.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

from ._writer import Body, Port, Writer

END = sys.maxsize
#: dtype and extents of a row.
Kind = tuple[str, tuple[int | str | None, ...]]


def kind(v: Any) -> Kind:
    """What is known of an expression."""
    return v.dtype, tuple(v.shape)


@dataclasses.dataclass
class Ran:
    """What a loop leaves: states after the last step, emitted rows, and the number of steps."""

    finals: list[str]
    rows: list[str]
    steps: str


class Plan:
    """A loop under construction: what its steps are given, and what they give."""

    def __init__(self, w: Writer, n: str, nonempty: bool, until: bool = False) -> None:
        self.w, self.n, self.nonempty, self.until = w, n, nonempty, until
        #: Steps that are made.
        self.made = n if nonempty else w.op("Max", n, w.integer(1))
        self.index = w.fresh("i")
        #: (rows, their ports in the step, from the last row)
        self.sequences: list[tuple[str, Port, bool]] = []
        #: (what it begins as, its port in the step)
        self.carried: list[tuple[str, Port]] = []
        self.results: dict[str, str] = {}
        self.emitted: list[Port] = []
        self.stop: str | None = None

    def sequence(self, x: str, row: Kind, reverse: bool = False, whole: bool = False) -> str:
        """A row of x per step, from the last one if `reverse`; the name of the row. whole: x has as many rows as there are steps."""
        w = self.w
        if not self.nonempty:
            missing = w.op("Max", w.op("Sub", w.integer(1), w.extent(x, 0)), w.integer(0))
            x = w.op("Concat", x, w.zeros(w.rows(missing, w.shape(x, 1)), row[0]), axis=0)
        if not whole:
            first = w.op("Sub", w.extent(x, 0), self.made) if reverse else w.integer(0)
            x = w.slice(x, first, w.op("Add", first, self.made))
        port = Port(w.fresh("row"), *row)
        self.sequences.append((x, port, reverse))
        return port.name

    def carry(self, start: str, kind: Kind, hint: str) -> str:
        """A state that begins as `start`; its name in the step."""
        port = Port(self.w.fresh(hint), *kind)
        self.carried.append((start, port))
        return port.name

    def result(self, state: str, new: str) -> None:
        """What becomes of a state."""
        self.results[state] = new

    def emit(self, row: str, kind: Kind) -> int:
        """A row per step that leaves the loop; its position among them."""
        self.emitted.append(Port(row, *kind))
        return len(self.emitted) - 1


def run(plan: Plan, body: Callable[[], None]) -> Ran:
    """Adds the loop whose step `body` builds."""
    ran = _loop(plan, body) if plan.until else _scan(plan, body)
    if plan.nonempty:
        return ran
    rows = [plan.w.slice(rows, plan.w.integer(0), plan.n) for rows in ran.rows]
    return Ran(ran.finals, rows, plan.w.op("Min", ran.steps, plan.n))


def _ports(plan: Plan) -> list[Port]:
    """What a step gives. Each is a node of the step's own: neither a parameter nor a value from around the loop may leave it."""
    w = plan.w
    given = [dataclasses.replace(port, name=plan.results[port.name]) for _, port in plan.carried] + plan.emitted
    return [dataclasses.replace(port, name=w.op("Identity", port.name)) for port in given]


def _scan(plan: Plan, body: Callable[[], None]) -> Ran:
    w, outputs = plan.w, list[Port]()
    count = w.upto(plan.made)

    def step() -> None:
        body()
        outputs.extend(_ports(plan))

    nodes = w.inside(step)
    sequences = [*plan.sequences]
    if not sequences or _reads(nodes, plan.index):
        sequences.append((count, Port(plan.index, "int64", ()), False))
    inputs = [port for _, port in plan.carried] + [row for _, row, _ in sequences]
    n = len(plan.carried)
    out = w.several(
        "Scan",
        [start for start, _ in plan.carried] + [x for x, *_ in sequences],
        len(outputs),
        body=Body(inputs, outputs, nodes),
        num_scan_inputs=len(sequences),
        scan_input_directions=[int(reverse) for *_, reverse in sequences],
    )
    return Ran(out[:n], out[n:], plan.made)


def _reads(nodes: list[Any], name: str) -> bool:
    """True where nodes, or those of loops in them, read a name."""
    inner = [v.nodes for node in nodes for v in node.attributes.values() if isinstance(v, Body)]
    return any(name in node.inputs for node in nodes) or any(_reads(ns, name) for ns in inner)


def _loop(plan: Plan, body: Callable[[], None]) -> Ran:
    w, outputs = plan.w, list[Port]()
    going = w.fresh("going")
    done = plan.carry(w.integer(0), ("int64", ()), "done")

    def step() -> None:
        for x, row, reverse in plan.sequences:
            at = w.op("Sub", w.op("Sub", w.extent(x, 0), w.integer(1)), plan.index) if reverse else plan.index
            w.rename(w.op("Gather", x, at, axis=0), row.name)
        body()
        plan.result(done, w.op("Add", done, w.integer(1)))
        outputs.append(Port(w.op("Not", plan.stop or w.constant(False)), "bool", ()))
        outputs.extend(_ports(plan))

    nodes = w.inside(step)
    inputs = [Port(plan.index, "int64", ()), Port(going, "bool", ()), *(port for _, port in plan.carried)]
    n = len(plan.carried)
    starts = [plan.made, w.constant(True), *(start for start, _ in plan.carried)]
    out = w.several("Loop", starts, len(outputs) - 1, body=Body(inputs, outputs, nodes))
    return Ran(out[:n], out[n:], out[n - 1])


class Loop:
    """A loop of the graph: `compute` finds or adds an expression, in the scope where it is called."""

    def __init__(self, w: Writer, v: Any, names: list[str], compute: Callable[[Any], str], use: Callable[[list[Any]], None]) -> None:
        self.w, self.v, self.names, self.compute = w, v, names, compute
        self.scan = v.scan
        self.siblings = v.siblings()
        self.params, self.results = v.scan_body()
        self.states = self._needed()
        self.live = [self.results[i] for s in self.states for i in s["results"]] + self.results[len(self.results) - self.scan["until"] :]
        use(self.live)
        n = v.inputs[0]
        self.n_var, self.known = n, extent(n)
        self.plan = Plan(w, names[0], bool(self.known), self.scan["until"])
        #: Per state what is put together of its rows when the loop has run.
        self.after: list[Callable[[Ran], str]] = []

    def _needed(self) -> list[dict[str, Any]]:
        """States whose rows something reads, here or in a state that is needed."""
        from .. import _native

        states = self.scan["states"]
        last = self.results[len(self.results) - self.scan["until"] :]
        needed = [s for s in states if self.siblings[s["output"]].key in self.w.used]
        while True:
            roots = [self.results[i] for s in needed for i in s["results"]] + last
            met = {leaf.key for leaf in _native.leaves(roots, self.params)}
            more = [s for s in states if s in needed or any(self.params[i].key in met for i in s["params"])]
            if len(more) == len(needed):
                return more
            needed = more

    def write(self) -> list[str]:
        """Adds the loop; the names of its outputs, empty for those that nothing reads."""
        if not self.states and not self.scan["until"]:  # nothing but the number of steps is asked for
            return [""] * len(self.scan["states"]) + [self.names[0]]
        used = {leaf.key for leaf in self._leaves()}
        given: dict[tuple[int, int], str] = {self.params[0].key: self.plan.index}
        for slot in self.scan["seqs"]:
            parameter, x = self.params[slot["params"][0]], self.v.inputs[slot["input"]]
            if parameter.key in used:
                whole = is_extent_of(self.n_var, x) or (self.known is not None and self.known == x.shape[0])
                given[parameter.key] = self.plan.sequence(self.names[slot["input"]], kind(parameter), slot["reverse"], whole)
        for slot in self.scan["captured"]:
            given[self.params[slot["params"][0]].key] = self.names[slot["input"]]
        windows = [Window(self, state) for state in self.states]
        for window in windows:
            given.update(window.given())

        def body() -> None:
            self.w.scopes[-1].names.update(given)
            if self.scan["until"]:
                stop = self.results[-1]
                self.plan.stop = self.w.cast(self.compute(stop), stop.dtype, "bool")
            for window in windows:
                window.step([self.compute(self.results[i]) for i in window.state["results"]])

        ran = run(self.plan, body)
        out = [""] * len(self.siblings)
        for window in windows:
            output = window.state["output"]
            if self.siblings[output].key in self.w.used:
                out[output] = window.rows(ran)
        out[-1] = ran.steps
        return out

    def _leaves(self) -> list[Any]:
        from .. import _native

        return _native.leaves(self.live, self.params)


class Window:
    """One state: the rows that a step sees of it, in registers, and what it leaves.

    Where a step writes just the newest row, and does not read what is there before, the newest row is emitted. Else rows enter from the
    buffer that the loop was given, and are emitted when the window leaves them.
    """

    def __init__(self, loop: Loop, state: dict[str, Any]) -> None:
        w, self.loop, self.state, self.plan, self.w = loop.w, loop, state, loop.plan, loop.w
        self.reads, self.writes = state["reads"], state["writes"]
        self.span = max([*self.reads, *self.writes], default=0)
        self.newest = self.writes == [self.span] and self.span not in self.reads
        self.value = loop.results[state["results"][0]]
        self.dtype, self.kind = self.value.dtype, kind(self.value)
        init = state["input"]
        self.init = loop.names[init] if init is not None else None
        #: Initial rows, where their number is known.
        self.given_rows = loop.v.inputs[init].shape[0] if init is not None else 0
        self.enters = self._enters()
        starts = [w.op("Gather", self.buffer, w.integer(r), axis=0) for r in range(self.span)]
        self.registers = [self.plan.carry(start, self.kind, state["name"] or "state") for start in starts]
        self.row = "" if self.newest else self.plan.sequence(self.enters, self.kind, whole=True)
        self.emitted: int | None = None

    def _enters(self) -> str:
        """The rows that enter the window; sets the buffer, which has a row for every register."""
        w, plan = self.w, self.plan
        need = w.integer(self.span) if self.newest else w.op("Add", plan.made, w.integer(self.span))
        enough = self.given_rows is not None and self.given_rows >= self.span and self.newest
        if self.init is None:
            seen = self.span > 0 or not self.newest
            self.buffer = w.zeros(w.rows(need, w.ints(*self._row_shape())), self.dtype) if seen else ""
        elif enough or not self.span:
            self.buffer = self.init
        else:
            # Where no step is made there may be fewer rows. A loop that makes steps must be given as many as its taps need.
            lacks = w.op("Max", w.op("Sub", need, w.extent(self.init, 0)), w.integer(0))
            if self.newest:
                lacks = w.op("Mul", lacks, w.cast(w.op("Equal", plan.n, w.integer(0)), "bool", "int64"))
            self.buffer = w.op("Concat", self.init, w.zeros(w.rows(lacks, w.shape(self.init, 1)), self.dtype), axis=0)
        return "" if self.newest else w.slice(self.buffer, w.integer(self.span), need)

    def _row_shape(self) -> list[int]:
        """Extents of rows that nothing gives."""
        from ._writer import unsupported

        shape = self.loop.params[self.state["params"][0]].shape if self.state["params"] else self.value.shape
        if None in shape:
            raise unsupported("a state without initial rows whose extents are not known", self.loop.v.span)
        return list(shape)

    def given(self) -> dict[tuple[int, int], str]:
        """Names of what the step reads."""
        window = [*self.registers, self.row]
        return {self.loop.params[p].key: window[r] for p, r in zip(self.state["params"], self.reads, strict=True)}

    def step(self, new: list[str]) -> None:
        """What becomes of the registers, given the written rows."""
        window = [*self.registers, self.row]
        for offset, row in zip(self.writes, new, strict=True):
            window[offset] = row
        for register, row in zip(self.registers, window[1:], strict=True):
            self.plan.result(register, row)
        if self.loop.siblings[self.state["output"]].key in self.w.used:
            self.emitted = self.plan.emit(window[self.span if self.newest else 0], self.kind)

    def rows(self, ran: Ran) -> str:
        """The rows that the loop returns."""
        w, keep = self.w, self.state["keep"]
        assert self.emitted is not None
        emitted = ran.rows[self.emitted]
        last = int(keep[5:-1]) if keep.startswith("Last") else None
        if self.newest and last is not None:
            return w.op("Slice", emitted, w.ints(-last), w.ints(END), w.ints(0))
        end = w.op("Add", ran.steps, w.integer(self.span))
        parts = self._newest_rows(emitted, end) if self.newest else self._older_rows(emitted, end, ran)
        rows = parts[0] if len(parts) == 1 else w.op("Concat", *parts, axis=0)
        return rows if last is None else w.slice(rows, w.op("Sub", end, w.op("Min", ran.steps, w.integer(last))), end)

    def _newest_rows(self, emitted: str, end: str) -> list[str]:
        w = self.w
        parts = [emitted]
        if self.span:
            exact = self.init is None or self.given_rows == self.span
            parts.insert(0, self.buffer if exact else w.slice(self.init or "", w.integer(0), w.integer(self.span)))
        if self.init is not None and (self.given_rows is None or self.given_rows > self.span):
            parts.append(w.slice(self.init, end, w.integer(END)))
        return parts

    def _older_rows(self, emitted: str, end: str, ran: Ran) -> list[str]:
        """Rows that the window has left, those in it, and those that it did not reach."""
        w, parts = self.w, [emitted]
        if self.span:
            finals = [ran.finals[[port.name for _, port in self.plan.carried].index(r)] for r in self.registers]
            inside = w.op("Concat", *(w.op("Unsqueeze", final, w.ints(0)) for final in finals), axis=0)
            if not self.plan.nonempty:
                untouched = w.slice(self.buffer, w.integer(0), w.integer(self.span))
                inside = w.where(w.op("Equal", ran.steps, w.integer(0)), untouched, inside, self.dtype)
            parts.append(inside)
        if self.init is not None:
            total = w.op("Max", end, w.extent(self.init, 0))
            parts.append(w.slice(self.buffer, end, total))
        return parts


def extent(v: Any) -> int | None:
    """An integer scalar, where it is known: a constant, or an extent of a known shape."""
    if v.kind == "const":
        return int(v.value)
    if v.op == "dim":
        return v.inputs[0].shape[v.attrs["axis"]]
    if v.op in ("add", "sub", "minimum", "maximum"):
        a, b = (extent(i) for i in v.inputs)
        if a is not None and b is not None:
            return {"add": a + b, "sub": a - b, "minimum": min(a, b), "maximum": max(a, b)}[v.op]
    return None


def is_extent_of(n: Any, x: Any) -> bool:
    """True where n is the number of rows of x."""
    return n.op == "dim" and n.attrs["axis"] == 0 and (n.inputs[0] == x or n.inputs[0].same_dim(0, x, 0))
