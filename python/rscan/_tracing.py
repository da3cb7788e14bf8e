"""One loop from plan to graph: placeholders for what the step sees, the step's call, what it made, the finished loop.

`scan` and `loop` bring their arguments into a `Plan`; everything behind is the same for both.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from . import _native, _tree
from .errors import RscanError, ScanError
from .ops import broadcast_to, equal, where
from .updates import ForgottenUpdatesWarning, OrderedUpdates
from .variable import Variable, as_variable, wrap

# The loops being traced.

_active = threading.local()


def step_indices() -> tuple[Variable, ...]:
    """The step indices of the loops whose steps are being traced in this thread, the outermost first."""
    return getattr(_active, "indices", ())


def is_traced() -> bool:
    """Whether this thread calls a function or the step of a loop to see what it computes: what they are given has no values."""
    return bool(step_indices()) or getattr(_active, "traced", False)


@contextlib.contextmanager
def traced(extents: dict[int, int]) -> Iterator[None]:
    """While a function is called to see what it computes. `extents`: those that its inputs have in the call for which that is done."""
    before = getattr(_active, "traced", False), expected_extents()
    _active.traced, _active.extents = True, extents
    try:
        yield
    finally:
        _active.traced, _active.extents = before


def expected_extents() -> dict[int, int]:
    """The extents of the call for which this thread sees what a function computes, by symbol: what is made holds for all others too, but
    where methods differ in speed alone, they tell which is quicker."""
    return getattr(_active, "extents", {})


@contextlib.contextmanager
def entered(index: Variable) -> Iterator[None]:
    """While the step of a loop is traced."""
    before = step_indices()
    _active.indices = (*before, index)
    try:
        yield
    finally:
        _active.indices = before


# What is known of loops beside their graphs is noted at their nodes, and goes with them.


@dataclasses.dataclass(frozen=True)
class LoopUpdates:
    """Updates of shared variables made by one loop."""

    #: None where the node of the loop tells them: the values are made of it, and would keep it for ever.
    updates: tuple[tuple[_native.Var, _native.Var], ...] | None
    #: True where they travel along by themselves, False where the user passes them on.
    automatic: bool
    #: False where nobody wants to hear that they were forgotten.
    report: bool
    span: int
    name: str | None


@dataclasses.dataclass
class _Note:
    """What is noted at a node that tells that a graph contains a loop."""

    updates: LoopUpdates | None = None
    #: Functions that contain the loop measure where their time goes.
    profiled: bool = False


def _note_of(node: _native.Var) -> _Note:
    """The note at a node: a new one where there is none."""
    note = node.note
    if note is None:
        note = _Note()
        node.set_note(note)
    return note


def _noted(variables: Sequence[_native.Var], since: int = 0) -> list[tuple[_native.Var, _Note]]:
    """The notes of loops behind expressions (of those made since a node), each once, in the order in which the loops were made."""
    found = [(v, v.note) for v in _native.noted(list(variables), since)]
    return list({id(note): (v, note) for v, note in found if isinstance(note, _Note)}.values())


def loops_with_updates(variables: Sequence[_native.Var], since: int = 0) -> list[LoopUpdates]:
    """What is known of the loops that the expressions contain (those made since a node), where these update variables."""
    found: dict[int, LoopUpdates] = {}
    for node, note in _noted(variables, since):
        made = note.updates
        if made is not None and id(made) not in found:
            found[id(made)] = made if made.updates is not None else dataclasses.replace(made, updates=tuple(node.updates()))
    return list(found.values())


def profiled(result: Result) -> None:
    """Marks a loop: functions that contain it measure where their time goes."""
    for v in (*result.outputs, result.steps):
        if v._v.kind == "apply":
            _note_of(v._v).profiled = True


def wants_profile(variables: Sequence[Variable]) -> bool:
    """True where a marked loop is behind one of the variables."""
    return any(note.profiled for _, note in _noted([v._v for v in variables]))


def travelling_updates(variables: Sequence[Variable], given: Any = ()) -> list[tuple[Variable, Variable]]:
    """Updates that the loops behind some variables bring along, but for the variables in `given`. Forgotten ones are reported."""
    found: dict[Variable, Variable] = {}
    for made in loops_with_updates([v._v for v in variables]):
        pairs = [(wrap(k), wrap(v)) for k, v in made.updates or ()]
        missing = [(k, v) for k, v in pairs if k not in given and k not in found]
        if made.automatic:
            found.update(missing)
        else:
            _report_forgotten([k for k, _ in missing], made)
    return list(found.items())


def _report_forgotten(variables: list[Variable], made: LoopUpdates) -> None:
    if not variables or not made.report:
        return
    names = ", ".join(f"`{v._describe()}`" for v in variables)
    error = RscanError(
        f"the loop updates {names}, but its updates were not passed on",
        code="E0125",
        labels=[(made.span, "the loop"), *((v._v.span, "made here") for v in variables)],
        helps=["pass the second result of rs.scan on: rs.function(..., updates=updates), or return it from the enclosing step"],
    )
    warnings.warn(str(error), ForgottenUpdatesWarning, stacklevel=2)


# Plans.


@dataclasses.dataclass
class Slot:
    """A sequence or a state as the user described it."""

    value: Variable
    taps: list[int]
    name: str | None = None
    #: The Python number that a state starts from, where nobody chose its dtype and shape.
    weak: Any = None

    def spread(self) -> Slot:
        """With the rows that the taps need, where it starts from a Python number."""
        if self.weak is not None and self.taps != [-1] and self.value.ndim == 0 and all(k < 0 for k in self.taps):
            self.value = broadcast_to(self.value, [-min(self.taps)])
        return self


@dataclasses.dataclass
class Plan:
    """Everything about a loop but its step."""

    span: int
    name: str | None = None
    n_steps: Variable | None = None
    go_backwards: bool = False
    truncate: int | None = None
    strict: bool = False
    sequences: list[Slot] = dataclasses.field(default_factory=list)
    states: list[Slot] = dataclasses.field(default_factory=list)
    passed: list[Variable] = dataclasses.field(default_factory=list)
    #: Updates travel along by themselves.
    automatic: bool = False
    #: Python numbers and axes of extent 1 adapt to what the step gives.
    adapt: bool = True
    report_forgotten: bool = True
    #: What was passed is an input of the loop, used or not, with the value that it has when the loop begins.
    fixed: bool = False
    family: type[Variable] = Variable

    def open(self) -> Placeholders:
        """The placeholders of the step."""
        n_steps = None if self.n_steps is None else self.n_steps._v
        builder = _native.LoopBuilder(self.name, n_steps, self.go_backwards, self.truncate, self.strict, self.span)
        index = builder.step_index()
        sequences = [builder.sequence(slot.value._v, slot.taps, slot.name) for slot in self.sequences]
        states = [builder.state(slot.value._v, slot.taps, slot.name) for slot in self.states]
        for value in self.passed:
            builder.pass_(value._v, self.fixed)
        return Placeholders(builder, index, sequences, states)

    def float_dtype(self) -> str | None:
        """The float dtype of what the step is given, where there is one."""
        given = [*(slot.value for slot in self.sequences), *(s.value for s in self.states if s.weak is None), *self.passed]
        floats = [v.dtype for v in given if v.dtype.startswith("float")]
        return np.result_type(*floats).name if floats else None


@dataclasses.dataclass
class Placeholders:
    """A builder of the core, and what the step sees."""

    builder: _native.LoopBuilder
    index: _native.Var
    sequences: list[list[_native.Var]]
    states: list[list[_native.Var]]

    def all(self) -> list[_native.Var]:
        """In a fixed order."""
        return [self.index, *(v for slot in (*self.sequences, *self.states) for v in slot)]


@dataclasses.dataclass
class Made:
    """What the step made: outputs with the position of their state (or None), updates, the condition that ends the loop."""

    outputs: list[tuple[int | None, Variable]]
    updates: OrderedUpdates
    until: Variable | None = None

    def natives(self) -> list[_native.Var]:
        """All expressions, in a fixed order."""
        extra = [] if self.until is None else [self.until._v]
        return [*(v._v for _, v in self.outputs), *(v._v for v in self.updates.values()), *extra]

    def replaced(self, old: list[_native.Var], new: list[_native.Var], family: type[Variable]) -> Made:
        """The same of other placeholders."""
        values = iter(_native.substitute(self.natives(), list(zip(old, new, strict=True))))
        outputs = [(at, wrap(next(values), family)) for at, _ in self.outputs]
        updates = OrderedUpdates([(key, wrap(next(values), family)) for key in self.updates])
        return Made(outputs, updates, None if self.until is None else wrap(next(values), family))


@dataclasses.dataclass
class Result:
    """A finished loop."""

    outputs: list[Variable]
    updates: OrderedUpdates
    steps: Variable

    def without_extra(self, n: int) -> Result:
        """With the first n outputs alone."""
        return dataclasses.replace(self, outputs=self.outputs[:n])


def settled(plan: Plan, placeholders: Placeholders, made: Made) -> Made:
    """With the updates that the step brings along."""
    made.updates.update(_brought_along(plan, placeholders, made))
    return made


def close(plan: Plan, placeholders: Placeholders, made: Made) -> Result:
    """The loop itself."""
    updates = [(key._v, value._v) for key, value in made.updates.items()]
    until = None if made.until is None else made.until._v
    outputs, after, steps = placeholders.builder.finish([(at, v._v) for at, v in made.outputs], updates, until)
    if after:
        looped = steps.kind == "apply"
        record = LoopUpdates(None if looped else tuple(after), plan.automatic, plan.report_forgotten, plan.span, plan.name)
        for node in [steps] if looped else outputs:
            _note_of(node).updates = record
    family = plan.family
    pairs = [(wrap(k, family), wrap(v, family)) for k, v in after]
    return Result([wrap(v, family) for v in outputs], OrderedUpdates(pairs), wrap(steps, family))


def _brought_along(plan: Plan, placeholders: Placeholders, made: Made) -> list[tuple[Variable, Variable]]:
    """Updates that the step did not return: of loops inside it, and default updates of the shared variables that it uses."""
    since = placeholders.index.key[0]
    roots = made.natives()
    found: dict[Variable, Variable] = {}
    for inner in loops_with_updates(roots, since):
        missing = [(wrap(k, plan.family), wrap(v, plan.family)) for k, v in inner.updates or ()]
        missing = [(k, v) for k, v in missing if k not in made.updates and k not in found]
        if inner.automatic or plan.automatic:
            found.update(missing)
        else:
            _report_forgotten([k for k, _ in missing], inner)
    for native in _native.noted(roots, since):
        if native.kind != "shared":
            continue
        variable = wrap(native, plan.family)
        default = getattr(variable, "default_update", None)
        if default is not None and not getattr(variable, "keyed", False) and variable not in made.updates and variable not in found:
            found[variable] = default
    return list(found.items())


# Initial states that adapt to what the step makes of them.


class Tracing:
    """What a step makes, with the updates that it brings along, and with initial states that fit."""

    made: Made

    def __init__(self, plan: Plan) -> None:
        self.plan, self.placeholders = plan, plan.open()
        self._rounds, self._tried = 4 if plan.adapt else 0, set[int]()

    def takes(self, made: Made) -> bool:
        """Whether that is it. Else the step is to be called again, with other placeholders: what it did with a number that a state starts
        from, such as a sum over its axes, says nothing of what it does with an array."""
        self.made = settled(self.plan, self.placeholders, made)
        while self._rounds and (changes := self._changes()):
            self._rounds -= 1
            states = [dataclasses.replace(s, value=changes.get(i, s.value)) for i, s in enumerate(self.plan.states)]
            plan = dataclasses.replace(self.plan, states=states)
            opened = plan.open()
            old, new = self.placeholders.all(), opened.all()
            again = any(a.ndim != b.ndim for a, b in zip(old, new, strict=True))
            try:
                self.made = self.made if again else self.made.replaced(old, new, plan.family)
            except RscanError:
                break  # The step cannot be rebuilt for other types: the core says what does not fit.
            self.plan, self.placeholders = plan, opened
            if again:
                return False
        return True

    def _changes(self) -> dict[int, Variable]:
        hint, changes = self.plan.float_dtype(), {}
        for at, out in self.made.outputs:
            new = None if at is None else _fitting(self.plan, at, self.placeholders, out._v, None if at in self._tried else hint)
            if at is not None and new is not None:
                changes[at] = new
                self._tried.add(at)
        return changes

    def result(self) -> Result:
        """The loop itself."""
        return close(self.plan, self.placeholders, self.made)


def _fitting(plan: Plan, at: int, placeholders: Placeholders, out: _native.Var, hint: str | None) -> Variable | None:
    """An initial state that fits what the step gives, or None where it is as it should be, or cannot be helped."""
    slot, row = plan.states[at], placeholders.states[at][0]
    dtype = _fitting_dtype(slot.weak, row.dtype, out.dtype, hint)
    shape = _fitting_shape(plan, slot, row, out, placeholders.index.key[0])
    if dtype == row.dtype and shape is None:
        return None
    if slot.weak is not None:
        value = wrap(as_variable(np.asarray(slot.weak).astype(dtype))._v, plan.family)
        rows = slot.taps != [-1] and slot.value.ndim == 1 and shape is not None
        current = broadcast_to(value, [*slot.value.shape, *[1] * len(shape or ())] if rows else slot.value.shape)
    else:
        current = slot.value
    if shape is None:
        return current
    return broadcast_to(current, shape if slot.taps == [-1] else [current.shape[0], *shape])


def _fitting_dtype(weak: Any, before: str, after: str, hint: str | None) -> str:
    if weak is None or before == after:
        return before
    if after.startswith("float") and not before.startswith("float") and hint is not None:
        return hint
    survives = np.asarray(weak).astype(after) == weak
    return after if survives else np.promote_types(before, after).name


def _fitting_shape(plan: Plan, slot: Slot, row: _native.Var, out: _native.Var, since: int) -> list[Any] | None:
    """The extents that a row needs where it must be broadcast, or None."""
    if slot.weak is not None and row.ndim == 0 and out.ndim > 0:
        grows = list(range(out.ndim))
    elif row.ndim == out.ndim:
        grows = [i for i, n in enumerate(row.shape) if n == 1 and out.shape[i] != 1]
    else:
        return None
    if not grows:
        return None
    found = {i: extent_outside(plan, out, i, since) for i in grows}
    if any(n is None for n in found.values()):
        return None
    base = slot.value.shape[-row.ndim :] if row.ndim else ()
    return [found[i] if i in found else base[i] for i in range(out.ndim)]


def extent_outside(plan: Plan, out: _native.Var, axis: int, since: int) -> Any:
    """One extent of a step's output in terms of values outside the loop, or None."""
    return _extent_outside(plan, out, axis, since, {})


def _extent_outside(plan: Plan, out: _native.Var, axis: int, since: int, known: dict[Any, Any]) -> Any:
    at = (out.key, axis)
    if at not in known:
        known[at] = None
        own = _own_extent(plan, out, axis, since)
        known[at] = own if own is not None else _broadcast_extent(plan, out, axis, since, known)
    return known[at]


def _broadcast_extent(plan: Plan, out: _native.Var, axis: int, since: int, known: dict[Any, Any]) -> Any:
    """That of an elementwise operation whose operands have extents that are known outside: that of those that are not 1."""
    if out.kind != "apply" or out.op in _structural():
        return None
    found = []
    for x in out.inputs:
        own = axis - (out.ndim - x.ndim)
        if own >= 0 and x.shape[own] != 1:
            found.append(_extent_outside(plan, x, own, since, known))
    if not found or any(n is None for n in found):
        return None
    fixed = [n for n in found if isinstance(n, int)]
    return fixed[0] if fixed else functools.reduce(lambda n, m: where(equal(n, 1), m, n), found)


@functools.cache
def _structural() -> frozenset[str]:
    return frozenset(_native.structural_ops())


def _own_extent(plan: Plan, out: _native.Var, axis: int, since: int) -> Any:
    """One that a value outside the loop has, too."""
    if out.shape[axis] is not None:
        return out.shape[axis]
    given = [slot.value._v for slot in (*plan.sequences, *plan.states)]
    for native in given + [v for v in _native.recent([out], since) if v.key[0] < since]:
        for i in range(native.ndim):
            if out.same_dim(axis, native, i):
                return wrap(native).shape[i]
    return None


def _with_taps(value: Any, taps: type) -> Any:
    """What `scan` takes as rows with taps, `dict(input=x, taps=[-1, 0])`, as `loop` has them; all else as it is."""
    if not isinstance(value, Mapping) or set(value) not in ({"input", "taps"}, {"initial", "taps"}):
        return value
    offsets = value["taps"] if isinstance(value["taps"], (list, tuple, range)) else [value["taps"]]
    # Sequences of these names are no offsets.
    if not all(isinstance(k, (int, np.integer)) and not isinstance(k, bool) for k in offsets):
        return value
    if "initial" in value and list(offsets) == [-1]:
        # As in Theano: with this tap alone it is the value itself.
        return value["initial"]
    return taps(value["input" if "input" in value else "initial"], *offsets)


def one_row(value: Variable, name: str, span: int) -> Variable:
    """The row of an initial state of which the step sees the row before."""
    rows = value.static_shape[0]
    if rows not in (1, None):
        helps = ["a value goes into init= as it is; taps(x[None], -1) makes a row of x"]
        text = f"the initial state of `{name}` has {rows} rows; taps of -1 take one"
        raise ScanError(text, code="E0104", labels=[(span, "")], helps=helps)
    return value[0]


class Group:
    """`over`, `init` or `given`: named or ordered arguments, each a structure."""

    def __init__(self, value: Any, what: str, span: int, taps: type) -> None:
        self.what, value = what, _with_taps(value, taps)
        if value is None:
            self.keys, items = [], []
        elif isinstance(value, Mapping):
            self.keys, items = list(value), list(value.values())
            if not all(isinstance(k, str) for k in self.keys):
                raise ScanError(f"the keys of {what} are names of parameters, not {self.keys!r}", code="E0121", labels=[(span, "")])
        elif isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            self.keys, items = list(range(len(value))), list(value)
        else:
            self.keys, items = [0], [value]
        self.named = isinstance(value, Mapping)
        self.single = value is not None and not self.named and not (isinstance(value, (list, tuple)) and not hasattr(value, "_fields"))
        flat = [_tree.flatten(_with_taps(item, taps), lambda v: isinstance(v, taps)) for item in items]
        self.leaves = [leaf for leaves, _ in flat for leaf in leaves]
        self.trees = [tree for _, tree in flat]
        self.names = self.paths([str(k) for k in self.keys] if self.named else [])

    def paths(self, prefixes: list[str]) -> list[str]:
        """A name for each leaf, of what its argument is called; by its place where nothing calls it."""
        names = [*prefixes[: len(self.keys)], *(f"{self.what}[{k}]" for k in self.keys[len(prefixes) :])]
        return [n for tree, prefix in zip(self.trees, names, strict=True) for n in _tree.paths(tree, prefix)]

    def arguments(self, values: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        """What the step gets, given the value of each leaf."""
        leaves = iter(values)
        built = [tree.build(leaves) for tree in self.trees]
        return ([], dict(zip(self.keys, built, strict=True))) if self.named else (built, {})
