"""`theano.scan` and its cases: rscan's loops with Theano's strictness. A state keeps its dtype and number of axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ... import checkpoints
from ..._cases import cases_of
from ..._spans import here
from ..._tracing import Made, Placeholders, Plan, Result, close, entered, profiled, settled
from ...errors import ScanError, UnsupportedError
from ...scan import Dialect, ScanPlan, check_arguments, made_of, packed, plan_of
from ...variable import Variable, is_operand, wrap
from ..compile.mode import get_mode
from ..inconsistent import refusing
from ..tensor.arrays import unbroadcast
from ..variable import TensorVariable, as_tensor_variable
from .step import check_leaves, default_updates, drawn_anew, growing


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

    A change of dtype or number of axes of a state is an error here; nothing adapts. Non_sequences are inputs of the loop, used or
    not, with the values that they have when it begins. Whatever else the step uses is computed in every step: random variables
    are drawn anew.
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
        False,
        _DIALECT,
    )
    result = _run(plan, strict)
    if profile:
        profiled(result)
    return packed(result, return_list)


def _run(scan_plan: ScanPlan, strict: bool) -> Result:
    """Calls the step and makes the loop."""
    plan = scan_plan.plan
    placeholders = plan.open()
    args = [wrap(v, TensorVariable) for slot in (*placeholders.sequences, *placeholders.states) for v in slot]
    args += scan_plan.rest
    check_arguments(scan_plan.fn, args, {}, plan.span)
    with entered(wrap(placeholders.index, TensorVariable)):
        value = scan_plan.fn(*args)
    made = made_of(scan_plan, value)
    if plan.n_steps is None and not plan.sequences:
        made.until = None  # here a condition is not enough: without it the core says what is missing
    if placeholders.index.kind == "const":
        return _one_step(plan, placeholders, made)
    made.updates.update(default_updates(plan, made))
    made = drawn_anew(plan, placeholders, made)
    plan, placeholders, made, fault = growing(plan, placeholders, made)
    made = settled(plan, placeholders, made)
    check_leaves(plan, placeholders, made, strict)
    result = close(plan, placeholders, made)
    return result if fault is None else refusing(result, fault)


def _one_step(plan: Plan, placeholders: Placeholders, made: Made) -> Result:
    """A loop of one constant step is no loop: the outputs are what the step gives, whatever their types."""
    made.outputs = [(None, out) for _, out in made.outputs]
    result = close(plan, placeholders, settled(plan, placeholders, made))
    result.outputs = [unbroadcast(out, 0) for out in result.outputs]
    return result


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


_DIALECT = Dialect(
    as_tensor_variable, _output, adapt=False, parameter_names=False, report_forgotten=False, fixed=True, family=TensorVariable
)


map: Callable[..., Any]
reduce: Callable[..., Any]
foldl: Callable[..., Any]
foldr: Callable[..., Any]
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
    """`scan`, of which only every `save_every_N`-th value of each output is kept; the gradient computes the others again.

    Outputs have no taps: a RuntimeError.
    """
    infos = outputs_info if isinstance(outputs_info, (list, tuple)) else [outputs_info]
    if any(isinstance(info, Mapping) and info.get("taps") is not None for info in infos):
        raise UnsupportedError(
            "scan_checkpoints takes no taps of outputs",
            code="E0124",
            labels=[(here(), "")],
            helps=["a state of several rows can be one state: a matrix whose rows are the past values"],
        )
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
