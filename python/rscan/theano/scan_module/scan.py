"""`theano.scan` and its cases: rscan's loops with Theano's strictness. A state keeps its dtype and number of axes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ... import checkpoints
from ..._spans import here
from ...errors import ScanError
from ...scan import Dialect, packed, plan_of, run
from ...variable import Variable, is_operand
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
        fn, sequences, _infos(outputs_info), non_sequences, steps, truncate_gradient, go_backwards, name or _profile(profile), strict, _ARGUMENTS
    )
    result = run(dataclasses.replace(plan, dialect=_OUTPUTS))
    return packed(result, return_list)


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


_ARGUMENTS = Dialect(as_tensor_variable, adapt=False, parameter_names=False, family=TensorVariable)
_OUTPUTS = Dialect(_output, adapt=False, parameter_names=False, family=TensorVariable)


def map(
    fn: Callable[..., Any],
    sequences: Any,
    non_sequences: Any = None,
    truncate_gradient: int = -1,
    go_backwards: bool = False,
    mode: Any = None,
    name: str | None = None,
) -> Any:
    """What fn gives for each row of the sequences. Returns (outputs, updates)."""
    return scan(fn, sequences, None, non_sequences, None, truncate_gradient, go_backwards, mode, name)


def reduce(
    fn: Callable[..., Any],
    sequences: Any,
    outputs_info: Any,
    non_sequences: Any = None,
    go_backwards: bool = False,
    mode: Any = None,
    name: str | None = None,
) -> Any:
    """The last value of fn(row, accumulator, …). Returns (value or values, updates)."""
    outputs, updates = scan(fn, sequences, outputs_info, non_sequences, None, -1, go_backwards, mode, name)
    if isinstance(outputs, (list, tuple)):
        return [rows[-1] for rows in outputs], updates
    return outputs[-1], updates


def foldl(fn: Callable[..., Any], sequences: Any, outputs_info: Any, non_sequences: Any = None, mode: Any = None, name: str | None = None) -> Any:
    """`reduce` from the first row to the last."""
    return reduce(fn, sequences, outputs_info, non_sequences, False, mode, name)


def foldr(fn: Callable[..., Any], sequences: Any, outputs_info: Any, non_sequences: Any = None, mode: Any = None, name: str | None = None) -> Any:
    """`reduce` from the last row to the first."""
    return reduce(fn, sequences, outputs_info, non_sequences, True, mode, name)


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
