"""Symbolic loops: differentiated, optimised and run as native code. Made by tools/stubs.py."""
# ruff: noqa

from .ops import *
from .inputs import *
from . import (
    errors as errors,
    fft as fft,
    linalg as linalg,
    ode as ode,
    optim as optim,
    random as random,
    special as special,
    stats as stats,
    typing as typing,
)
from ._calling import In as In
from .checkpoints import scan_checkpoints as scan_checkpoints
from .compile import Compiled as Compiled, compile as _jit
from .config import config as config
from .derivatives import DISCONNECTED as DISCONNECTED
from .devices import Device as Device, devices as devices
from .errors import (
    AxisError as AxisError,
    DeviceError as DeviceError,
    DisconnectedInputError as DisconnectedInputError,
    FileError as FileError,
    GradientError as GradientError,
    InternalError as InternalError,
    LinAlgError as LinAlgError,
    MissingInputError as MissingInputError,
    NonScalarCostError as NonScalarCostError,
    ParseError as ParseError,
    RscanError as RscanError,
    RscanIndexError as RscanIndexError,
    RscanOverflowError as RscanOverflowError,
    RscanTypeError as RscanTypeError,
    RscanValueError as RscanValueError,
    ScanError as ScanError,
    ScanTypeError as ScanTypeError,
    ShapeError as ShapeError,
    UnsupportedError as UnsupportedError,
    UnusedInputError as UnusedInputError,
    error_page as error_page,
)
from .folds import associative_scan as associative_scan, fori as fori
from .function import Function as Function, Out as Out, evaluate as _eval
from .loop import Loop as Loop, LoopOutput as LoopOutput, Taps as Taps, taps as taps
from .printing import Print as Print, pp as pp, print_ as _print, print_ as print_
from .random.stream import RandomStream as RandomStream
from .saving import Module as Module, load as load, load_params as load_params, save as save, save_params as save_params
from .session import Session as Session, step_all as step_all
from .shared import SharedVariable as SharedVariable
from .show import show as show
from .transforms import hvp as hvp
from .updates import ForgottenUpdatesWarning as ForgottenUpdatesWarning, OrderedUpdates as OrderedUpdates, until as until
from .variable import Variable as Variable
from .verify import numeric_grad as numeric_grad, verify_grad as verify_grad
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TextIO
import builtins
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, ParamSpec, TextIO, TypeVar, overload

from numpy.typing import NDArray

from .typing import Operand

_P = ParamSpec("_P")
_R = TypeVar("_R")
_K = TypeVar("_K")
_V = TypeVar("_V", bound=Variable)
_Inputs = Variable | In | Sequence[Variable | In] | None
_Several = tuple[Variable, Variable] | tuple[Variable, Variable, Variable] | tuple[Variable, Variable, Variable, Variable]

eval = _eval
jit = _jit
print = _print

@overload
def Lop(f: Any, wrt: Variable, eval_points: Any, consider_constant: Any = None, disconnected_inputs: str = "raise") -> Variable: ...
@overload
def Lop(f: Any, wrt: list[_V], eval_points: Any, consider_constant: Any = None, disconnected_inputs: str = "raise") -> list[Variable]: ...
@overload
def Lop(
    f: Any, wrt: tuple[_V, ...], eval_points: Any, consider_constant: Any = None, disconnected_inputs: str = "raise"
) -> tuple[Variable, ...]: ...
@overload
def Rop(f: Variable, wrt: Any, eval_points: Any) -> Variable: ...
@overload
def Rop(f: list[_V], wrt: Any, eval_points: Any) -> list[Variable]: ...
@overload
def Rop(f: tuple[_V, ...], wrt: Any, eval_points: Any) -> tuple[Variable, ...]: ...
def __dir__() -> Any:
    """What users mean to see."""

__version__: str

def as_variable(value: Operand, dtype: Any = None, family: type[Variable] = ...) -> Variable: ...
@overload
def compile(fn: Callable[_P, Variable], *, name: str | None = None, device: str | None = None) -> Compiled[_P, NDArray[Any]]: ...
@overload
def compile(
    fn: Callable[_P, tuple[Variable, Variable]], *, name: str | None = None, device: str | None = None
) -> Compiled[_P, tuple[NDArray[Any], NDArray[Any]]]: ...
@overload
def compile(
    fn: Callable[_P, tuple[Variable, ...]], *, name: str | None = None, device: str | None = None
) -> Compiled[_P, tuple[NDArray[Any], ...]]: ...
@overload
def compile(
    fn: Callable[_P, list[Variable]], *, name: str | None = None, device: str | None = None
) -> Compiled[_P, list[NDArray[Any]]]: ...
@overload
def compile(
    fn: Callable[_P, dict[_K, Variable]], *, name: str | None = None, device: str | None = None
) -> Compiled[_P, dict[_K, NDArray[Any]]]: ...
@overload
def compile(fn: Callable[_P, Any], *, name: str | None = None, device: str | None = None) -> Compiled[_P, Any]: ...
@overload
def compile(fn: None = None, *, name: str | None = None, device: str | None = None) -> Callable[[Callable[_P, Any]], Compiled[_P, Any]]: ...
def constant(value: Operand, dtype: Any = None, name: str | None = None) -> Variable: ...
@overload
def debugprint(x: Any, file: TextIO | None = None) -> None: ...
@overload
def debugprint(x: Any, file: str) -> str: ...

e: float

@overload
def foldl(
    fn: Callable[..., Variable | tuple[Variable, until]],
    sequences: Any,
    outputs_info: Any,
    non_sequences: Any = None,
    mode: Any = None,
    name: str | None = None,
) -> tuple[Variable, OrderedUpdates]: ...
@overload
def foldl(
    fn: Callable[..., _Several], sequences: Any, outputs_info: Any, non_sequences: Any = None, mode: Any = None, name: str | None = None
) -> tuple[list[Variable], OrderedUpdates]: ...
@overload
def foldl(
    fn: Callable[..., Any], sequences: Any, outputs_info: Any, non_sequences: Any = None, mode: Any = None, name: str | None = None
) -> tuple[Any, OrderedUpdates]: ...
@overload
def foldr(
    fn: Callable[..., Variable | tuple[Variable, until]],
    sequences: Any,
    outputs_info: Any,
    non_sequences: Any = None,
    mode: Any = None,
    name: str | None = None,
) -> tuple[Variable, OrderedUpdates]: ...
@overload
def foldr(
    fn: Callable[..., _Several], sequences: Any, outputs_info: Any, non_sequences: Any = None, mode: Any = None, name: str | None = None
) -> tuple[list[Variable], OrderedUpdates]: ...
@overload
def foldr(
    fn: Callable[..., Any], sequences: Any, outputs_info: Any, non_sequences: Any = None, mode: Any = None, name: str | None = None
) -> tuple[Any, OrderedUpdates]: ...
@overload
def function(
    inputs: _Inputs,
    outputs: Variable | Out | float,
    *,
    updates: Any = None,
    givens: Any = None,
    name: str | None = None,
    on_unused_input: str = "raise",
    allow_input_downcast: bool | None = None,
    no_default_updates: Any = False,
    profile: bool | str = False,
    excluding: Iterable[str] = (),
    device: str | None = None,
) -> Function[NDArray[Any]]: ...
@overload
def function(
    inputs: _Inputs,
    outputs: list[Any] | tuple[Any, ...] | None = None,
    *,
    updates: Any = None,
    givens: Any = None,
    name: str | None = None,
    on_unused_input: str = "raise",
    allow_input_downcast: bool | None = None,
    no_default_updates: Any = False,
    profile: bool | str = False,
    excluding: Iterable[str] = (),
    device: str | None = None,
) -> Function[list[NDArray[Any]]]: ...
@overload
def function(
    inputs: _Inputs,
    outputs: Mapping[_K, Any],
    *,
    updates: Any = None,
    givens: Any = None,
    name: str | None = None,
    on_unused_input: str = "raise",
    allow_input_downcast: bool | None = None,
    no_default_updates: Any = False,
    profile: bool | str = False,
    excluding: Iterable[str] = (),
    device: str | None = None,
) -> Function[dict[_K, NDArray[Any]]]: ...
@overload
def grad(
    cost: Any,
    wrt: Variable,
    consider_constant: Any = None,
    disconnected_inputs: str = "raise",
    known_grads: Mapping[Any, Any] | None = None,
    return_disconnected: str = "zero",
) -> Variable: ...
@overload
def grad(
    cost: Any,
    wrt: list[_V],
    consider_constant: Any = None,
    disconnected_inputs: str = "raise",
    known_grads: Mapping[Any, Any] | None = None,
    return_disconnected: str = "zero",
) -> list[Variable]: ...
@overload
def grad(
    cost: Any,
    wrt: tuple[_V, ...],
    consider_constant: Any = None,
    disconnected_inputs: str = "raise",
    known_grads: Mapping[Any, Any] | None = None,
    return_disconnected: str = "zero",
) -> tuple[Variable, ...]: ...
@overload
def grad(cost: Callable[_P, Any], argnums: Any = 0, has_aux: bool = False) -> Compiled[_P, Any]: ...
@overload
def hessian(
    cost: Any, wrt: Variable, consider_constant: Any = None, disconnected_inputs: str = "raise", *, block_size: int | None = None
) -> Variable: ...
@overload
def hessian(
    cost: Any, wrt: list[_V], consider_constant: Any = None, disconnected_inputs: str = "raise", *, block_size: int | None = None
) -> list[Variable]: ...
@overload
def hessian(
    cost: Any, wrt: tuple[_V, ...], consider_constant: Any = None, disconnected_inputs: str = "raise", *, block_size: int | None = None
) -> tuple[Variable, ...]: ...
@overload
def hessian(cost: Callable[_P, Any], argnums: Any = 0, has_aux: bool = False, *, block_size: int | None = None) -> Compiled[_P, Any]: ...

inf: float

@overload
def jacobian(
    expression: Any, wrt: Variable, consider_constant: Any = None, disconnected_inputs: str = "raise", *, block_size: int | None = None
) -> Variable: ...
@overload
def jacobian(
    expression: Any, wrt: list[_V], consider_constant: Any = None, disconnected_inputs: str = "raise", *, block_size: int | None = None
) -> list[Variable]: ...
@overload
def jacobian(
    expression: Any,
    wrt: tuple[_V, ...],
    consider_constant: Any = None,
    disconnected_inputs: str = "raise",
    *,
    block_size: int | None = None,
) -> tuple[Variable, ...]: ...
@overload
def jacobian(
    expression: Callable[_P, Any], argnums: Any = 0, has_aux: bool = False, *, block_size: int | None = None
) -> Compiled[_P, Any]: ...
@overload
def jvp(
    outputs: Variable, wrt: Any, tangents: Any, disconnected_outputs: str = "ignore", return_disconnected: str = "zero"
) -> Variable: ...
@overload
def jvp(
    outputs: list[_V], wrt: Any, tangents: Any, disconnected_outputs: str = "ignore", return_disconnected: str = "zero"
) -> list[Variable]: ...
@overload
def jvp(
    outputs: tuple[_V, ...], wrt: Any, tangents: Any, disconnected_outputs: str = "ignore", return_disconnected: str = "zero"
) -> tuple[Variable, ...]: ...
@overload
def jvp(outputs: Callable[_P, Any], primals: Any, tangents: Any, has_aux: bool = False) -> Any: ...
@overload
def loop(
    step: Callable[..., Mapping[str, Any]],
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
) -> Loop: ...
@overload
def loop(
    step: Callable[..., Variable],
    over: Any = None,
    init: Operand | Taps | None = None,
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
) -> LoopOutput: ...
@overload
def loop(
    step: Callable[..., Any],
    over: Any,
    init: dict[str, Any] | list[Any] | tuple[Any, ...],
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
) -> Loop: ...
@overload
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
) -> Any: ...
@overload
def map(
    fn: Callable[..., Variable | tuple[Variable, until]],
    sequences: Any,
    non_sequences: Any = None,
    truncate_gradient: int = -1,
    go_backwards: bool = False,
    mode: Any = None,
    name: str | None = None,
) -> tuple[Variable, OrderedUpdates]: ...
@overload
def map(
    fn: Callable[..., _Several],
    sequences: Any,
    non_sequences: Any = None,
    truncate_gradient: int = -1,
    go_backwards: bool = False,
    mode: Any = None,
    name: str | None = None,
) -> tuple[list[Variable], OrderedUpdates]: ...
@overload
def map(
    fn: Callable[..., Any],
    sequences: Any,
    non_sequences: Any = None,
    truncate_gradient: int = -1,
    go_backwards: bool = False,
    mode: Any = None,
    name: str | None = None,
) -> tuple[Any, OrderedUpdates]: ...

nan: float
newaxis: None
pi: float

@overload
def reduce(
    fn: Callable[..., Variable | tuple[Variable, until]],
    sequences: Any,
    outputs_info: Any,
    non_sequences: Any = None,
    go_backwards: bool = False,
    mode: Any = None,
    name: str | None = None,
) -> tuple[Variable, OrderedUpdates]: ...
@overload
def reduce(
    fn: Callable[..., _Several],
    sequences: Any,
    outputs_info: Any,
    non_sequences: Any = None,
    go_backwards: bool = False,
    mode: Any = None,
    name: str | None = None,
) -> tuple[list[Variable], OrderedUpdates]: ...
@overload
def reduce(
    fn: Callable[..., Any],
    sequences: Any,
    outputs_info: Any,
    non_sequences: Any = None,
    go_backwards: bool = False,
    mode: Any = None,
    name: str | None = None,
) -> tuple[Any, OrderedUpdates]: ...
@overload
def scan(
    fn: Callable[..., Variable | tuple[Variable, until]],
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
    return_list: Literal[False] = False,
) -> tuple[Variable, OrderedUpdates]: ...
@overload
def scan(
    fn: Callable[..., _Several],
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
    return_list: Literal[False] = False,
) -> tuple[list[Variable], OrderedUpdates]: ...
@overload
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
) -> tuple[Any, OrderedUpdates]: ...
@overload
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
    init: Any = ...,
) -> Any: ...
def shared(
    value: Operand, name: str | None = None, borrow: bool = False, shape: Sequence[int | None] | None = None, dtype: Any = None
) -> SharedVariable: ...
@overload
def value_and_grad(fn: Compiled[_P, Any], argnums: Any = 0, has_aux: bool = False, *, wrt: Any = None) -> Compiled[_P, tuple[Any, Any]]: ...
@overload
def value_and_grad(fn: Callable[_P, Any], argnums: Any = 0, has_aux: bool = False, *, wrt: Any = None) -> Compiled[_P, tuple[Any, Any]]: ...
@overload
def vjp(
    outputs: Any,
    wrt: Variable,
    cotangents: Any,
    consider_constant: Any = None,
    disconnected_inputs: str = "raise",
    return_disconnected: str = "zero",
) -> Variable: ...
@overload
def vjp(
    outputs: Any,
    wrt: list[_V],
    cotangents: Any,
    consider_constant: Any = None,
    disconnected_inputs: str = "raise",
    return_disconnected: str = "zero",
) -> list[Variable]: ...
@overload
def vjp(
    outputs: Any,
    wrt: tuple[_V, ...],
    cotangents: Any,
    consider_constant: Any = None,
    disconnected_inputs: str = "raise",
    return_disconnected: str = "zero",
) -> tuple[Variable, ...]: ...
@overload
def vjp(outputs: Callable[_P, Any], *primals: Any, has_aux: bool = False) -> Any: ...
def vmap(f: Callable[_P, _R], in_axes: Any = 0, out_axes: Any = 0) -> Callable[_P, _R]: ...
