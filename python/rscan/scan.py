"""Loops with Theano's arguments: `scan`, and `map`, `reduce`, `foldl`, `foldr`, which are cases of it."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Mapping
from typing import Any, Never

import numpy as np

from . import _returned, _tree
from ._cases import cases_of
from ._hints import hints, of_arguments, positional, signature_of
from ._signatures import misspelt
from ._spans import here, of_function
from ._tracing import Made, Plan, Result, Slot, Tracing, entered, profiled
from .errors import ScanError
from .updates import OrderedUpdates
from .variable import Variable, as_variable, family_of, is_operand, is_weak, weak_constant, wrap

__all__ = ["foldl", "foldr", "map", "reduce", "scan"]


class _NotGiven:
    def __repr__(self) -> str:
        return "<not given>"


_UNSET: Any = _NotGiven()


def scan(
    fn: Callable[..., Any],
    sequences: Any = None,
    outputs_info: Any = None,
    non_sequences: Any = None,
    n_steps: Any = None,
    truncate_gradient: int = -1,
    go_backwards: bool = False,
    mode: Any = None,
    name: str | None = None,
    profile: Any = False,
    allow_gc: bool | None = None,
    strict: bool = False,
    return_list: bool = False,
    *,
    init: Any = _UNSET,
    **unknown: Never,
) -> Any:
    """Loops a step over the rows of sequences. Returns (outputs, updates).

    fn is called once, with variables: the slices of each sequence (one per tap, in the order listed), the past values of
    each output with taps, the non_sequences. It returns the outputs, then updates of shared variables if there are any, then
    `until(condition)` if the loop can end early.

    sequences: a variable, or a list of variables and of dict(input=x, taps=[-1, 0, 2]); tap k is row t+k at step t.
    outputs_info: per output None (not read back), an initial value (the step reads the value before), or
        dict(initial=rows, taps=[-2, -1]); None for no output being read back.
    non_sequences: passed to every step as they are. Whatever else the step uses is found by itself.
    n_steps: how many steps; without it the shortest sequence decides, or `until` alone.
    truncate_gradient: the gradient covers the last so many steps; -1: all.
    go_backwards: sequences are read from their end; outputs stay in the order of the steps.
    name: in errors, prints and profiles. profile: True or a name: functions of this loop have a `profile`.
    strict: a shared variable that is used must be among the non_sequences.
    return_list: a list also of one output.
    mode, allow_gc: accepted for programs that have them; the engine chooses.

    errors: `ScanError` (E0105 to E0129) where arguments or what the step returned do not go together, `ScanTypeError` (E0101 to E0103)
    where a state changes its type.

    With `init` instead of outputs_info, this is `rs.loop`, with its names and its result.

    >>> x = rs.dvector("x")
    >>> h, updates = rs.scan(lambda x, h: 0.5 * h + x, sequences=x, outputs_info=rs.constant(0.0))
    >>> f = rs.function([x], h, updates=updates)
    >>> f([1.0, 2.0, 3.0])
    array([1.  , 2.5 , 4.25])
    >>> rs.function([x], rs.grad(h[-1], x))([1.0, 2.0, 3.0])
    array([0.25, 0.5 , 1.  ])
    """
    if unknown:
        raise misspelt(scan, unknown)
    if init is not _UNSET:
        from .loop import loop

        backwards, truncate = go_backwards, truncate_gradient
        return loop(fn, sequences, init, n_steps, non_sequences, go_backwards=backwards, truncate=truncate, name=name, strict=strict)
    named = _loop_name(fn, name, profile)
    plan = plan_of(fn, sequences, outputs_info, non_sequences, n_steps, truncate_gradient, go_backwards, named, strict)
    result = run(plan)
    if profile:
        profiled(result)
    return packed(result, return_list)


def packed(result: Result, return_list: bool = False) -> tuple[Any, OrderedUpdates]:
    """(outputs, updates): None for no output, a variable for one, else a list."""
    outputs = result.outputs
    if return_list or len(outputs) > 1:
        return outputs, result.updates
    return (outputs[0] if outputs else None), result.updates


@dataclasses.dataclass
class Dialect:
    """How values become variables: what differs between rscan's own API and others on the same loops.

    Another API calls `packed(run(plan_of(…, dialect=…)), return_list)`.
    """

    #: Makes a variable of what the user gave as a sequence, an initial state or a non_sequence.
    convert: Callable[[Any], Variable] = as_variable
    #: Makes a variable of what the step returned.
    output: Callable[[Any], Variable] = as_variable
    #: Python numbers adapt to the step, and are passed to it as they are.
    adapt: bool = True
    #: Slots are named after the step's parameters.
    parameter_names: bool = True
    #: A function that uses the loop without its updates says so.
    report_forgotten: bool = True
    #: Non_sequences are inputs of the loop, used or not, with the values that they have when it begins.
    fixed: bool = False
    family: type[Variable] = Variable


PYTHONIC = Dialect()


@dataclasses.dataclass
class ScanPlan:
    """A plan with what only `scan` knows."""

    fn: Callable[..., Any]
    plan: Plan
    #: Per output: the position of its state, or None. None: nothing was said about outputs.
    info: list[int | None] | None
    #: What the step gets after slices and past values.
    rest: list[Any]
    dialect: Dialect


def plan_of(
    fn: Any,
    sequences: Any,
    outputs_info: Any,
    non_sequences: Any,
    n_steps: Any,
    truncate_gradient: Any,
    go_backwards: bool,
    name: str | None,
    strict: bool,
    dialect: Dialect = PYTHONIC,
) -> ScanPlan:
    """Reads the arguments of `scan`."""
    span = here()
    check_step(fn, span)
    reader = _Arguments(span, dialect)
    seqs = [reader.sequence(item, i) for i, item in enumerate(reader.listed(sequences))]
    rest = reader.listed(non_sequences)
    given = [reader.state(item, i) for i, item in enumerate(reader.listed(outputs_info))]
    rest = [v if dialect.adapt and is_weak(v) else reader.variable(v, "non_sequences") for v in rest]
    states = [slot for slot in given if slot is not None]
    family = dialect.family
    if family is Variable:
        family = family_of([*(s.value for s in seqs), *(s.value for s in states), *rest])
    plan = Plan(
        span=span,
        name=name,
        n_steps=None if n_steps is None else steps_of(n_steps, span),
        go_backwards=bool(go_backwards),
        truncate=truncation(truncate_gradient, span),
        strict=bool(strict),
        sequences=seqs,
        states=states,
        passed=[v for v in rest if isinstance(v, Variable)],
        adapt=dialect.adapt,
        report_forgotten=dialect.report_forgotten,
        fixed=dialect.fixed,
        family=family,
    )
    settle_weak(plan)
    counter = iter(range(len(states)))
    info = [None if slot is None else next(counter) for slot in given] if given else None
    result = ScanPlan(fn, plan, info, rest, dialect)
    if dialect.parameter_names:
        name_slots(result)
    return result


def settle_weak(plan: Plan) -> None:
    """Python floats as initial states start in the float dtype of what the step is given."""
    hint = plan.float_dtype()
    for slot in plan.states:
        if isinstance(slot.weak, float):
            slot.value = weak_constant(slot.weak, hint, plan.family)
            slot.spread()


def run(scan_plan: ScanPlan, swap: bool = False) -> Result:
    """Calls the step and makes the loop. swap: the step's states come before the rows of sequences."""
    plan, fn = scan_plan.plan, scan_plan.fn
    with hints(fn, [slot.value for slot in plan.sequences], len(plan.states), swapped=functools.partial(run, scan_plan, True)):
        # A step may be 100 loops deep: no frames that can be done without.
        traced = Tracing(plan)
        while True:
            placeholders = traced.placeholders
            given = [placeholders.states, placeholders.sequences] if swap else [placeholders.sequences, placeholders.states]
            args = [wrap(v, plan.family) for slots in given for slot in slots for v in slot]
            args += scan_plan.rest
            check_arguments(fn, args, {}, plan.span)
            with entered(wrap(placeholders.index, plan.family)):
                value = fn(*args)
            if traced.takes(made_of(scan_plan, value)):
                return traced.result()


def made_of(scan_plan: ScanPlan, value: Any) -> Made:
    """Reads what the step returned, and ties outputs to states."""
    plan, fn = scan_plan.plan, scan_plan.fn
    returned = _returned.read(value, fn, plan.span)
    outputs = returned.outputs
    outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    info = scan_plan.info
    if info is not None and len(info) != len(outputs):
        raise _wrong_number(fn, plan, info, outputs)
    ties = info or [None] * len(outputs)
    values = [scan_plan.dialect.output(v) for v in outputs]
    until = None if returned.until is None else returned.until.condition
    return Made(list(zip(ties, values, strict=True)), returned.updates, until)


def _wrong_number(fn: Any, plan: Plan, info: list[int | None], outputs: list[Any]) -> ScanError:
    n, last = len(outputs), outputs[-1] if outputs else None
    bare = isinstance(last, Variable) and last.dtype == "bool" and last.ndim == 0
    ends = ["if the last value is the condition that ends the loop: return outputs, rs.until(condition)"] if bare else []
    described, returned = _count(len(info), "output"), _count(n, "value")
    labels = [(plan.span, f"outputs_info describes {described}"), (of_function(fn), f"the step returns {returned}")]
    if len(info) < n:
        return ScanError(
            "outputs_info describes only some of the outputs of the step",
            code="E0106",
            labels=labels,
            notes=["without an entry there is no telling which output belongs to which"],
            helps=[
                *ends,
                "give every output an entry, in the order in which the step returns them: None for one that it does not read back",
            ],
        )
    return ScanError(
        f"the step returns {_count(n, 'value')}, but outputs_info describes {len(info)}",
        code="E0105",
        labels=labels,
        helps=["return one value per entry of outputs_info, in the same order"],
    )


def _count(n: int, word: str) -> str:
    return f"{n} {word}" + ("" if n == 1 else "s")


# Arguments.


class _Arguments:
    """Reads sequences, outputs_info and non_sequences."""

    def __init__(self, span: int, dialect: Dialect) -> None:
        self.span, self.dialect = span, dialect

    def fail(self, title: str, *helps: str, code: str = "E0121") -> ScanError:
        return ScanError(title, code=code, labels=[(self.span, "")], helps=helps)

    def listed(self, value: Any) -> list[Any]:
        """A list of what is one item or a list or tuple of items."""
        if value is None:
            return []
        return list(value) if isinstance(value, (list, tuple)) else [value]

    def variable(self, value: Any, what: str) -> Variable:
        if isinstance(value, Variable) or is_operand(value):
            return self.dialect.convert(value)
        structure = _tree.is_dataclass(value) or isinstance(value, (Mapping, list, tuple))
        helps = ["rs.loop takes structures as states and arguments; rs.vmap maps a function over the rows of one"] if structure else []
        raise self.fail(f"{what} takes variables, arrays and numbers, got {value!r}", *helps)

    def taps(self, value: Any, what: str) -> list[int]:
        items = [value] if isinstance(value, (int, np.integer)) else value
        fits = isinstance(items, (list, tuple, range, np.ndarray))
        if not fits or not all(isinstance(k, (int, np.integer)) and not isinstance(k, bool) for k in items):
            raise self.fail(f"the taps of {what} are {value!r}", "taps are an integer or a list of integers, such as [-1, 0]")
        return [int(k) for k in items]

    def keys(self, item: Mapping[Any, Any], allowed: tuple[str, ...], what: str) -> None:
        unknown = [k for k in item if k not in allowed]
        if unknown:
            keys = " and ".join(f"`{k}`" for k in allowed[:2])
            names = all(isinstance(k, str) for k in item)
            more = ["rs.loop takes sequences and states by name; rs.vmap maps a function over a dict of rows"] if names else []
            raise self.fail(f"{what} has the unknown key {unknown[0]!r}", f"its keys are {keys}", *more)

    def sequence(self, item: Any, i: int) -> Slot:
        what = f"sequence {i}"
        if not isinstance(item, Mapping):
            return Slot(self.variable(item, what), [0])
        self.keys(item, ("input", "taps"), what)
        if item.get("input") is None:
            raise self.fail(f"{what} is a dictionary without `input`", "dict(input=x, taps=[0])")
        taps = item.get("taps")
        return Slot(self.variable(item["input"], what), [0] if taps is None else self.taps(taps, what))

    def state(self, item: Any, i: int) -> Slot | None:
        what = f"output {i}"
        if not isinstance(item, Mapping):
            return None if item is None else self.initial(item, [-1], what)
        self.keys(item, ("initial", "taps", "inplace", "return_steps"), what)
        initial, taps = item.get("initial"), item.get("taps", [-1])
        taps = [] if taps is None else self.taps(taps, what)
        if initial is None:
            if taps and item.get("taps") is not None:
                raise self.fail(f"{what} has taps, but no initial state", "add initial=..., or leave out the taps", code="E0112")
            return None
        if not taps:
            return None
        if any(k >= 0 for k in taps):
            k = next(k for k in taps if k >= 0)
            raise ScanError(
                f"{what} has the tap {k}, but a step can only read what earlier steps gave",
                code="E0112",
                labels=[(self.span, "")],
                helps=["the taps of outputs are negative: -1 is the step before; the taps of sequences may be positive"],
            )
        return self.initial(initial, taps, what)

    def initial(self, value: Any, taps: list[int], what: str) -> Slot:
        weak = value if self.dialect.adapt and is_weak(value) else None
        return Slot(self.variable(value, what), taps, weak=weak).spread()


def check_step(fn: Any, span: int) -> None:
    """Refuses what is no plain function."""
    from .compile import Compiled
    from .function import Function

    if isinstance(fn, (Function, Compiled)):
        kind = "rs.function" if isinstance(fn, Function) else "rs.compile"
        raise ScanError(
            "the step of a loop is a compiled function",
            code="E0114",
            labels=[(span, f"this is what {kind} returned")],
            notes=["a compiled function computes with arrays; a step is called once, with variables, and returns variables"],
            helps=["pass the Python function that builds the expression"],
        )
    if not callable(fn):
        raise ScanError(f"the step of a loop is a function, not {fn!r}", code="E0121", labels=[(span, "")])


def check_arguments(fn: Any, args: list[Any], named: dict[str, Any], span: int) -> None:
    """Refuses a step that cannot be called with these arguments."""
    signature = signature_of(fn)
    if signature is None:
        return
    try:
        signature.bind(*args, **named)
    except TypeError as error:
        passed = [v._describe() if isinstance(v, Variable) else repr(v) for v in args] + list(named)
        raise ScanError(
            f"the step does not take the arguments of the loop: {error}",
            code="E0122",
            labels=[(span, f"this passes {_count(len(passed), 'argument')}"), (of_function(fn), f"the step takes {signature}")],
            notes=[f"passed are, in this order: {', '.join(passed) or 'nothing'}"],
            helps=of_arguments(signature, len(args), named),
        ) from None


def steps_of(n_steps: Any, span: int) -> Variable:
    """`n_steps` as a variable."""
    if isinstance(n_steps, np.ndarray) and n_steps.ndim == 0:
        n_steps = n_steps[()]
    if not is_operand(n_steps):
        raise ScanError(f"n_steps must be an integer scalar, not {n_steps!r}", code="E0117", labels=[(span, "")])
    v = as_variable(n_steps)
    if v.ndim == 0 and v.dtype.startswith("float"):
        helps = ['int(n) or rs.cast(n, "int64") makes an integer of it']
        raise ScanError(f"n_steps must be an integer scalar, but it is {v.dtype}", code="E0117", labels=[(span, "")], helps=helps)
    return v


def truncation(value: Any, span: int) -> int | None:
    """How many steps the gradient covers; None: all."""
    if value is None or (isinstance(value, (int, np.integer)) and value == -1):
        return None
    if not isinstance(value, (int, np.integer)) or value < 1:
        raise ScanError(
            f"truncate_gradient is {value!r}",
            code="E0121",
            labels=[(span, "")],
            helps=["-1 for the whole gradient, or the number of steps that it covers, 1 or more"],
        )
    return int(value)


def _loop_name(fn: Any, name: str | None, profile: Any = False) -> str | None:
    """The name of a loop: what was said, else that of the step."""
    if name is not None:
        return name
    if isinstance(profile, str) and profile:
        return profile
    found = getattr(fn, "__name__", None)
    return None if found in (None, "<lambda>") else found


#: `x_t`, `x_tm1`, `x_tp2`: how steps name their parameters.
_TIME = re.compile(r"_(t|tm\d+|tp\d+)$")


def name_slots(scan_plan: ScanPlan) -> None:
    """Names sequences and states after the parameters of the step, without their time."""
    names = positional(scan_plan.fn)
    if names is None:
        return
    at = 0
    for slot in (*scan_plan.plan.sequences, *scan_plan.plan.states):
        if at < len(names) and slot.taps:
            slot.name = _TIME.sub("", names[at])
        at += len(slot.taps)


map: Callable[..., Any]
reduce: Callable[..., Any]
foldl: Callable[..., Any]
foldr: Callable[..., Any]
map, reduce, foldl, foldr = cases_of(scan)
