"""Loops by name: `rs.loop(step, over=dict(x=xs), init=dict(h=h0))`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Never

import numpy as np

from . import _returned, _tree
from ._hints import hints, of_state, of_value, positional
from ._ragged import Ragged
from ._signatures import misspelt
from ._spans import here, of_function
from ._tracing import Group, Made, Placeholders, Plan, Result, Slot, Tracing, entered, one_row
from .errors import RscanTypeError, ScanError
from .ops import equal, flip, logical_and, stop_gradient, where
from .scan import _loop_name, check_arguments, check_step, settle_weak, steps_of, truncation
from .updates import OrderedUpdates
from .variable import Variable, as_variable, family_of, is_operand, is_weak, known_as, wrap

__all__ = ["Loop", "LoopOutput", "Taps", "loop", "taps"]


class Taps:
    """A sequence or an initial state with the rows that the step sees of it.

    errors: `ScanError` (E0121) for offsets that are no integers.

    >>> t = rs.taps(np.zeros(5), -2, -1)
    >>> t.offsets
    [-2, -1]
    """

    value: Any
    offsets: list[int]

    def __init__(self, value: Any, *offsets: int) -> None:
        items = offsets[0] if len(offsets) == 1 and isinstance(offsets[0], (list, tuple, range)) else offsets
        if not items or not all(isinstance(k, (int, np.integer)) for k in items):
            raise ScanError(f"taps are one or more integers, not {items!r}", code="E0121", labels=[(here(), "")])
        self.value, self.offsets = value, [int(k) for k in items]


def taps(value: Any, *offsets: int) -> Taps:
    """The rows t + k of `value` that step t sees, for each offset k. Several arrive in the step as a tuple.

    Of a sequence, offsets may have any sign. Of an initial state they are negative, and it has one row per past step that the
    oldest offset reaches, the oldest first: one row for -1, too. A single offset arrives as the row itself. Taps may stand in lists
    and dicts of states and sequences.

    errors: `ScanError` (E0121) for offsets that are no integers, (E0104) for other numbers of initial rows.

    >>> def step(y):
    ...     before, now = y
    ...     return now - before
    >>> rs.loop(step, over=rs.taps(np.array([1.0, 4.0, 9.0]), -1, 0)).eval()
    array([3., 5.])
    """
    return Taps(value, *offsets)


class Loop:
    """The outputs of a loop, one row per step: by name (`out.h`, `out["h"]`) and in order (`out[0]`, `h, y = out`).

    An output that is named as something else here comes first, and hides it: what is called `last` or `steps` leaves no way to the values
    after the last step, or to the number of steps.

    >>> out = rs.loop(lambda x: {"double": 2 * x}, over={"x": np.array([1.0, 2.0])})
    >>> out.keys(), out["double"].eval()
    (['double'], array([2., 4.]))
    """

    #: Number of steps that ran, an int64 scalar.
    steps: Variable
    #: Values of the shared variables that the loop updates, after it. `rs.function` finds them by itself.
    updates: OrderedUpdates

    def __init__(
        self, values: dict[Any, Any], steps: Variable, updates: OrderedUpdates, last: Callable[[], dict[Any, Any]] | None = None
    ) -> None:
        self._values, self._last = values, last
        self.steps, self.updates = steps, updates

    @property
    def last(self) -> Loop:
        """The values after the last step, by the same names: of a state the initial one where no step ran, which `[-1]` of no rows is not.

        An output that is no state has a last row only where a step ran.
        """
        found = {key: _last_row(rows) for key, rows in self._values.items()} if self._last is None else self._last()
        return Loop(found, self.__dict__["steps"], self.__dict__["updates"])

    def _as_tree(self) -> tuple[tuple[Any, ...], list[Any]]:
        """The outputs and the number of steps, as a structure."""
        return tuple(self._values), [*self._values.values(), self.__dict__["steps"]]

    @classmethod
    def _from_tree(cls, keys: tuple[Any, ...], items: list[Any]) -> Loop:
        return cls(dict(zip(keys, items, strict=False)), items[-1], OrderedUpdates())

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_"):
            values = object.__getattribute__(self, "__dict__").get("_values", {})
            if name in values:
                return values[name]
        return object.__getattribute__(self, name)

    def __getattr__(self, name: str) -> Any:
        values = self.__dict__.get("_values", {})
        known = ", ".join(str(k) for k in values)
        text = f"the loop has no output named {name!r}; it has {known or 'none'}"
        if hasattr(Variable, name) and not name.startswith("_"):
            text += "".join(f", whose values have: {shown}.{name}" for shown in self._shown()[:1])
        raise AttributeError(text)

    def _shown(self) -> list[str]:
        """How the outputs are written: `out.h`, `out[1]`."""
        return [f"out.{key}" if isinstance(key, str) and key.isidentifier() else f"out[{key!r}]" for key in self._values]

    def _no_array(self) -> RscanTypeError:
        """The error of where one array is wanted."""
        names = self._shown()
        text = f"a loop's outputs are {len(names)} arrays, and one is wanted" if len(names) > 1 else "a loop with names is no array"
        return RscanTypeError(text, code="E0805", labels=[(here(), "")], helps=[f"take {' or '.join(names)}"] if names else [])

    def _computed(self, *_: Any, **__: Any) -> Never:
        raise self._no_array()

    if not TYPE_CHECKING:  # for whom arithmetic with a loop must stay a mistake
        __array_function__ = __array_ufunc__ = _computed
        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __neg__ = _computed
        __matmul__ = __rmatmul__ = __pow__ = __rpow__ = __mod__ = __floordiv__ = __lt__ = __le__ = __gt__ = __ge__ = _computed

    def __getitem__(self, key: Any) -> Any:
        return self._values[key] if isinstance(key, str) else list(self._values.values())[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values.values())

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(k for k in self._values if isinstance(k, str))]

    def keys(self) -> list[Any]:
        """Names of the outputs."""
        return list(self._values)

    def values(self) -> list[Any]:
        """The outputs."""
        return list(self._values.values())

    def items(self) -> list[tuple[Any, Any]]:
        """Names and outputs."""
        return list(self._values.items())

    def _repr_html_(self) -> str:
        from ._html import loop

        return loop(self)

    def __repr__(self) -> str:
        return f"Loop({', '.join(f'{k}={v!r}' for k, v in self._values.items())})"


class LoopOutput(Variable):
    """The one output of a loop whose step returns a single value: a variable that also knows the loop's `steps` and `updates`.

    >>> rows = rs.loop(lambda h: h / 2, init=8.0, n_steps=3)
    >>> rows.eval(), rs.eval(rows.last), rs.eval(rows.steps)
    (array([4., 2., 1.]), array(1.), array(3))
    """

    steps: Variable
    updates: OrderedUpdates
    _last: Callable[[], Variable]

    @property
    def last(self) -> Variable:
        """The value after the last step: of a state the initial one where no step ran, which `[-1]` of no rows is not."""
        return self._last()


LoopOutput._family = Variable


def _last_row(rows: Any) -> Any:
    leaves, tree = _tree.flatten(rows, lambda v: isinstance(v, (Variable, np.ndarray)))
    return tree.build(iter([v[-1] for v in leaves]))


def final(rows: Variable) -> Variable:
    """The value after the last step: the last row of the state's buffer, which the initial rows come first in."""
    buffer = rows._v.inputs[0] if rows._v.op == "index" else None
    return wrap(buffer, rows._family)[-1] if buffer is not None and buffer.op == "scan" else rows[-1]


def _first(values: Callable[[], dict[Any, Any]]) -> Any:
    return next(iter(values().values()))


def _fields(values: Callable[[], dict[Any, Any]], names: list[str]) -> dict[Any, Any]:
    return {name: getattr(_first(values), name) for name in names}


def loop(
    step: Callable[..., Any],
    over: Any = None,
    init: Any = None,
    n_steps: Any = None,
    given: Any = None,
    *,
    non_sequences: Any = None,
    reverse: bool = False,
    go_backwards: bool = False,
    truncate: int | None = None,
    window: int | None = None,
    name: str | None = None,
    strict: bool = False,
    lengths: Any = None,
    mask: Any = None,
    **unknown: Never,
) -> Any:
    """Loops a step over rows of `over`, starting from `init`.

    Dictionaries pass by name: the step's parameters are the keys of `over` (rows of sequences), `init` (states) and `given`
    (the same at every step). Lists and single values pass in order: over, init, given. `taps(x, -1, 0)` gives the step
    several rows, as a tuple. A state may be a structure of dicts, lists, tuples and dataclasses.

    The step returns the new states, by the same names or in the same order, and whatever else is wanted as rows; then updates
    of shared variables, if any; then `rs.until(condition)`, if the loop can end early. Updates travel along by themselves.

    n_steps: how many steps; without it the shortest sequence decides, or `until` alone: then rows are kept as long as there is memory.
    reverse: from the last row to the first, with the results in the order of the rows. go_backwards: in the order of the steps.
    truncate: the gradient covers the last so many steps. window: the gradient of states is cut every so many steps.
    strict: a shared variable that is used must be given.
    lengths: how many steps each row of the states takes part in (integers, for their leading axes; a number: all rows); afterwards it keeps
    its states, and other outputs are 0. The longest tells the number of steps. mask: the same for any steps: True or False for each step
    and row.

    errors: those of `rs.scan`, with the names of states.

    Returns a `Loop`, or the variable itself where the step returns one value and nothing has a name.

    >>> x = np.array([1.0, 2.0, 3.0])
    >>> out = rs.loop(lambda x, h: {"h": 0.5 * h + x}, over={"x": x}, init={"h": 0.0})
    >>> out.h.eval()
    array([1.  , 2.5 , 4.25])
    >>> rs.eval(out.last.h), rs.eval(out.steps)
    (array(4.25), array(3))
    >>> rs.loop(lambda x, h: h + x, over=np.ones((3, 2)), init=np.zeros(2), lengths=[1, 3]).eval()
    array([[1., 1.],
           [1., 2.],
           [1., 3.]])
    """
    if unknown:
        raise misspelt(loop, unknown)
    given = given if given is not None else non_sequences
    call = _Call(step, over, init, given, here())
    plan = Plan(
        span=call.span,
        name=_loop_name(step, name),
        n_steps=None if n_steps is None else steps_of(n_steps, call.span),
        go_backwards=bool(reverse or go_backwards),
        truncate=truncation(truncate, call.span),
        strict=bool(strict),
        sequences=[*call.sequences],
        states=call.states,
        passed=call.passed,
        automatic=True,
        family=family_of([*(s.value for s in (*call.sequences, *call.states)), *call.passed]),
    )
    ragged = None if lengths is None and mask is None else Ragged(lengths, mask, plan)
    settle_weak(plan)
    made = functools.partial(call.made, plan, ragged, _window(window, call.span))
    named = call.over.named or call.init.named
    with hints(step, [slot.value for slot in call.sequences], len(plan.states), named, functools.partial(made, swap=True), True):
        outputs, result = made()
    return outputs.rows(result, reverse, plan.family)


def _window(window: Any, span: int) -> int | None:
    if window is not None and (not isinstance(window, (int, np.integer)) or window < 1):
        raise ScanError(f"window is {window!r}", code="E0121", labels=[(span, "")], helps=["a number of steps, 1 or more"])
    return None if window is None else int(window)


class _Call:
    """The arguments of a loop."""

    def __init__(self, step: Any, over: Any, init: Any, given: Any, span: int) -> None:
        check_step(step, span)
        self.step, self.span = step, span
        self.over, self.init, self.given = (Group(v, w, span, Taps) for v, w in ((over, "over"), (init, "init"), (given, "given")))
        self._apart()
        #: What states without names are called by the step.
        self.called: dict[Any, str] = {}
        self._named_after_parameters()
        self.sequences = [self._slot(leaf, name, [0]) for leaf, name in zip(self.over.leaves, self.over.names, strict=True)]
        self.states = [self._slot(leaf, name, [-1]) for leaf, name in zip(self.init.leaves, self.init.names, strict=True)]
        self.rest = [v if is_weak(v) else self._variable(v) for v in self.given.leaves]
        self.passed = [v for v in self.rest if isinstance(v, Variable)]

    def _apart(self) -> None:
        """Refuses a name that stands for two things: the step has one parameter of it."""
        seen: dict[Any, str] = {}
        for group in (self.over, self.init, self.given):
            for key in group.keys if group.named else []:
                if key in seen:
                    raise ScanError(
                        f"`{key}` is in `{seen[key]}` and in `{group.what}`, and the step has one parameter of this name",
                        code="E0122",
                        labels=[(self.span, "")],
                        helps=["give one of them another name"],
                    )
                seen[key] = group.what

    def _named_after_parameters(self) -> None:
        """States whose initial values have no names have those of the step's parameters."""
        names = positional(self.step)
        if names is None or self.init.named:
            return
        taken = self.over.keys if self.over.named else []
        parameters = [name for name in names if name not in taken]
        own = parameters[0 if self.over.named else len(self.over.keys) :]
        self.init.names = self.init.paths(own)
        self.called = dict(zip(self.init.keys, own, strict=False))

    def _variable(self, value: Any) -> Variable:
        if isinstance(value, Variable) or is_operand(value):
            return as_variable(value)
        text = f"a loop takes variables, arrays and numbers, got {value!r}"
        raise ScanError(text, code="E0121", labels=[(self.span, "")], helps=of_value(value))

    def _slot(self, leaf: Any, name: str, default: list[int]) -> Slot:
        value, offsets = (leaf.value, leaf.offsets) if isinstance(leaf, Taps) else (leaf, default)
        weak = value if is_weak(value) and default == [-1] else None
        own = value.name if isinstance(value, Variable) and not self.init.named and default == [-1] else None
        parameter = None if "[" in name or own else name
        variable = self._variable(value)
        if isinstance(leaf, Taps) and default == offsets == [-1] and variable.ndim > 0:
            variable = one_row(variable, name, self.span)
        return Slot(variable, offsets, parameter, weak).spread()

    def made(self, plan: Plan, ragged: Ragged | None, window: int | None, swap: bool = False) -> tuple[_Outputs, Result]:
        """Calls the step and makes the loop. swap: the states come before the rows of sequences."""
        traced = Tracing(plan)
        while True:
            args, named = self.arguments(traced.placeholders, plan.family, window, swap)
            check_arguments(self.step, args, named, self.span)
            with entered(wrap(traced.placeholders.index, plan.family)):
                value = self.step(*args, **named)
            returned = _returned.read(value, self.step, self.span, _is_structure)
            outputs = self.outputs(returned.outputs)
            until = None if returned.until is None else returned.until.condition
            flat = outputs.flat if ragged is None else ragged.kept(traced.plan, traced.placeholders, outputs.flat)
            if traced.takes(Made(flat, returned.updates, until)):
                return outputs, traced.result()

    def arguments(
        self, placeholders: Placeholders, family: type[Variable], window: int | None, swap: bool
    ) -> tuple[list[Any], dict[str, Any]]:
        """What the step is called with."""
        index = wrap(placeholders.index, family)
        args: list[Any] = []
        named: dict[str, Any] = {}
        states = [[_cut(wrap(v, family), index, window) for v in slot] for slot in placeholders.states]
        sequences = [[wrap(v, family) for v in slot] for slot in placeholders.sequences]
        for group, slots in ((self.init, states), (self.over, sequences)) if swap else ((self.over, sequences), (self.init, states)):
            more, by_name = group.arguments([slot[0] if len(slot) == 1 else tuple(slot) for slot in slots])
            args += more
            named.update(by_name)
        more, by_name = self.given.arguments(self.rest)
        return args + more, {**named, **by_name}

    def outputs(self, value: Any) -> _Outputs:
        """Ties what the step returned to the states."""
        init = self.init
        if _returned.is_the_state(value, init):
            items = self._in_order(value)
        elif isinstance(value, Mapping):
            items = dict(value)
        elif _tree.is_dataclass(value):
            leaves, tree = _tree.flatten(value, lambda v: isinstance(v, Variable))
            items = dict(zip(tree.keys, [getattr(value, k) for k in tree.keys], strict=True))
        else:
            items = self._in_order(value)
        missing = [k for k in init.keys if k not in items]
        if missing:
            there = ", ".join(map(str, items)) or "nothing"
            raise self._fail(f"the step returns no value for the state `{self._called(missing[0])}`", f"it returns {there}")
        flat: list[tuple[int | None, Variable]] = []
        trees: dict[Any, _tree.Tree] = {}
        at = 0
        for key, tree in zip(init.keys, init.trees, strict=True):
            flat += [(at + i, self._variable(v)) for i, v in enumerate(self._matched(key, items[key], tree))]
            at += len(_tree.paths(tree))
            trees[key] = tree
        for key, item in items.items():
            if key not in trees:
                leaves, trees[key] = _tree.flatten(item, lambda v: isinstance(v, Variable))
                flat += [(None, self._variable(v)) for v in leaves]
        alone = not isinstance(value, (list, tuple, Mapping)) and not init.named
        return _Outputs(flat, {key: trees[key] for key in trees}, list(items), alone)

    def _in_order(self, value: Any) -> dict[Any, Any]:
        keys = self.init.keys
        structured = isinstance(value, (list, tuple)) and not hasattr(value, "_fields")
        if structured and len(keys) == 1 and self.init.trees[0].kind == "list" and _tree.same(_flat_tree(value), self.init.trees[0]):
            return {keys[0]: value}
        values = list(value) if structured else [value]
        names = [*keys, *range(len(keys), len(values))]
        return dict(zip(names, values, strict=False))

    def _matched(self, key: Any, value: Any, tree: _tree.Tree) -> list[Any]:
        found = _flat_tree(value)
        if not _tree.same(tree, found):
            raise self._fail(
                f"the state `{self._called(key)}` changes its structure from one step to the next",
                f"it was {tree.describe()}, the step gives {found.describe()}",
                *of_state(tree, found, self.init.keys),
            )
        return _tree.aligned(value, tree)

    def _called(self, key: Any) -> Any:
        return self.called.get(key, key)

    def _fail(self, title: str, note: str, *helps: str) -> ScanError:
        labels = [(self.span, ""), (of_function(self.step), "the step")]
        helps = helps or ("a step returns a new value for every state in `init`",)
        return ScanError(title, code="E0105", labels=labels, notes=[note], helps=helps)


def _flat_tree(value: Any) -> _tree.Tree:
    return _tree.flatten(value, lambda v: isinstance(v, Variable))[1]


def _cut(row: Variable, index: Variable, window: int | None) -> Variable:
    """A state's row, through which no gradient flows at the first step of a window."""
    if window is None or not row.dtype.startswith("float"):
        return row
    starts = logical_and(equal(index % window, 0), index > 0)
    return where(starts, stop_gradient(row), row)


def _is_structure(value: Any) -> bool:
    """True for structures of outputs, as opposed to updates of shared variables."""
    if isinstance(value, Mapping):
        return bool(value) and all(isinstance(k, str) for k in value)
    if _tree.is_dataclass(value):
        return True
    if isinstance(value, (list, tuple)) and value:
        leaves, _ = _tree.flatten(value, lambda v: isinstance(v, Variable))
        return all(_returned.is_value(v) for v in leaves)
    return False


@dataclasses.dataclass
class _Outputs:
    """Outputs of a step: expressions with their states, and how they are put together again."""

    flat: list[tuple[int | None, Variable]]
    #: Structure per name, states first: the order of `flat`.
    trees: dict[Any, _tree.Tree]
    #: Names in the order in which the step returned them.
    order: list[Any]
    #: One value without a name.
    alone: bool

    def rows(self, result: Result, reverse: bool, family: type[Variable]) -> Any:
        """What the user gets."""
        last = functools.partial(self._ends, result)
        leaves = iter(flip(v, 0) if reverse else v for v in result.outputs)
        built = {key: tree.build(leaves) for key, tree in self.trees.items()}
        if self.alone and len(self.flat) == 1 and self.trees[self.order[0]].kind is None:
            out = LoopOutput(built[self.order[0]]._v)
            out._family = family
            out.steps, out.updates = result.steps, result.updates
            out._last = functools.partial(_first, last)
            return known_as(out)
        values = {key: built[key] for key in self.order}
        only = next(iter(values.values())) if self.alone and len(values) == 1 else None
        if only is not None and _tree.is_dataclass(only):
            names = [f.name for f in dataclasses.fields(only) if f.init]
            values = {name: getattr(only, name) for name in names}
            last = functools.partial(_fields, last, names)
        return Loop(values, result.steps, result.updates, last)

    def _ends(self, result: Result) -> dict[Any, Any]:
        """The values after the last step, by the names of the outputs."""
        leaves = iter([final(rows) for rows in result.outputs])
        built = {key: tree.build(leaves) for key, tree in self.trees.items()}
        return {key: built[key] for key in self.order}
