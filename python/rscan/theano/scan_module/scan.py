"""`theano.scan` and its cases: rscan's loops with Theano's strictness. A state keeps its dtype and number of axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ... import _native, checkpoints
from ..._cases import cases_of
from ..._spans import here
from ..._tracing import Result, entered, finish, profiled
from ...errors import ScanError, ScanTypeError
from ...scan import Dialect, ScanPlan, check_arguments, made_of, packed, plan_of
from ...variable import Variable, apply, is_operand, wrap
from ..compile.mode import get_mode
from ..variable import TensorVariable, as_tensor_variable


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
) -> Any:
    """Loops a step over the rows of sequences. Returns (outputs, updates). The arguments are those of `rscan.scan`.

    A change of dtype or number of axes of a state is an error here; nothing adapts.
    """
    if mode is not None:
        get_mode(mode)
    steps = None if n_steps is None else _steps(n_steps)
    plan = plan_of(
        fn,
        sequences,
        _infos(outputs_info),
        non_sequences,
        steps,
        truncate_gradient,
        go_backwards,
        name or _profile(profile),
        strict,
        _DIALECT,
    )
    result = _run(plan)
    if profile:
        profiled(result)
    return packed(result, return_list)


def _run(scan_plan: ScanPlan) -> Result:
    """Calls the step and makes the loop, if its states keep their broadcast patterns."""
    plan = scan_plan.plan
    held = _held(scan_plan.rest)
    placeholders = plan.open()
    args = [wrap(v, TensorVariable) for slot in (*placeholders.sequences, *placeholders.states) for v in slot]
    args += scan_plan.rest
    check_arguments(scan_plan.fn, args, {}, plan.span)
    with entered(wrap(placeholders.index, TensorVariable)):
        value = scan_plan.fn(*args)
    made = made_of(scan_plan, value)
    fixed = [(old, new) for old, new, behind in held if behind & {key._v for key in made.updates}]
    if fixed:
        made = made.replaced([old for old, _ in fixed], [new for _, new in fixed], TensorVariable)
    for at, out in made.outputs:
        if at is not None and placeholders.states[at]:
            _check_pattern(wrap(placeholders.states[at][0], TensorVariable), out, plan.span)
    return finish(plan, placeholders, made)


def _held(passed: list[Any]) -> list[tuple[Any, Any, set[Any]]]:
    """Expressions of shared variables among the non_sequences: what they are, a variable of their value before the loop, these leaves.

    A step that updates the shared variable computes an expression that it captures again, but not one that was passed to it.
    """
    leaves = [(v, {x for x in _native.leaves([v._v], []) if x.kind == "shared"}) for v in passed if v._v.kind == "apply"]
    return [(v._v, apply("hold", {}, v)._v, behind) for v, behind in leaves if behind]


def _check_pattern(before: Variable, after: Variable, span: int) -> None:
    """Refuses a step that gives an axis of unknown extent where the state has a broadcastable one."""
    if before.ndim == after.ndim and any(n == 1 and m != 1 for n, m in zip(before.static_shape, after.static_shape, strict=True)):
        raise ScanTypeError(
            f"a state is broadcastable {before.broadcastable}, and the step makes it {after.broadcastable}",  # type: ignore[attr-defined]
            code="E0101",
            labels=[(span, ""), (after._v.span, "the step gives this")],
            helps=["theano.tensor.unbroadcast(initial, axis) lets the axis grow"],
        )


def _profile(profile: Any) -> str | None:
    return profile if isinstance(profile, str) and profile else None


def _steps(n_steps: Any) -> Variable:
    if isinstance(n_steps, float) or not is_operand(n_steps):
        raise ScanError(f"n_steps must be an integer scalar, not {n_steps!r}", code="E0117", labels=[(here(), "")])
    return as_tensor_variable(n_steps)


def _infos(outputs_info: Any) -> Any:
    """An empty list says nothing about outputs."""
    return None if isinstance(outputs_info, (list, tuple)) and not outputs_info else outputs_info


def _output(value: Any) -> Variable:
    if isinstance(value, (bool, int, float)) and not isinstance(value, np.generic):
        raise ScanError(
            f"the step returned the number {value!r} as an output",
            code="E0123",
            labels=[(here(), "")],
            helps=["outputs are variables: theano.tensor.constant makes one of a number"],
        )
    return as_tensor_variable(value)


_DIALECT = Dialect(as_tensor_variable, _output, adapt=False, parameter_names=False, family=TensorVariable, report_forgotten=False)


map, reduce, foldl, foldr = cases_of(scan)


def scan_checkpoints(
    fn: Callable[..., Any],
    sequences: Any = (),
    outputs_info: Any = None,
    non_sequences: Any = (),
    name: str | None = "checkpointscan_fn",
    n_steps: Any = None,
    save_every_N: int = 10,
    padding: bool = True,
) -> Any:
    """`scan`, of which only every `save_every_N`-th value of each output is kept; the gradient computes the others again."""
    return checkpoints.scan_checkpoints(
        fn, _tensors(sequences), _tensors(_infos(outputs_info)), _tensors(non_sequences), name, n_steps, save_every_N, padding
    )


def _tensors(items: Any) -> Any:
    """Arguments as Theano's variables, also inside dictionaries."""
    if items is None or isinstance(items, Variable):
        return items
    if isinstance(items, Mapping):
        return {key: as_tensor_variable(v) if key in ("input", "initial") and v is not None else v for key, v in items.items()}
    if isinstance(items, (list, tuple)):
        return [_tensors(item) for item in items]
    return as_tensor_variable(items)
