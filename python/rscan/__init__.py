"""Symbolic loops: differentiated, optimised and run as native code."""

from importlib import import_module as _import_module
from sys import modules as _modules
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from .variable import Variable, as_variable, constant  # first: the functions need the class, and it them

# isort: split
from . import errors, linalg, random, typing
from ._instead import of_numpy as _of_numpy
from ._native import __version__
from ._signatures import described as _described
from .checkpoints import scan_checkpoints
from .compile import Compiled, compile
from .compile import compile as jit
from .config import config
from .derivatives import DISCONNECTED, Lop, Rop
from .devices import Device, DeviceArray, devices, to_device
from .errors import (
    AxisError,
    DeviceError,
    DisconnectedInputError,
    FileError,
    GradientError,
    InternalError,
    LinAlgError,
    MissingInputError,
    NonScalarCostError,
    ParseError,
    RscanError,
    RscanIndexError,
    RscanOverflowError,
    RscanTypeError,
    RscanValueError,
    ScanError,
    ScanTypeError,
    ShapeError,
    UnsupportedError,
    UnusedInputError,
    error_page,
)
from .folds import associative_scan, fori, while_loop
from .function import Function, In, Out, function
from .function import evaluate as eval
from .inputs import CONSTRUCTORS as _CONSTRUCTORS
from .inputs import tensor
from .loop import Loop, LoopOutput, Taps, loop, taps
from .ops import *  # noqa: F403
from .ops import __all__ as _functions
from .printing import Print, debugprint, pp, print_
from .random import RandomStream
from .saving import Module, load, load_params, save, save_params
from .scan import foldl, foldr, map, reduce, scan
from .session import Session, step_all
from .shared import SharedVariable, shared
from .show import show
from .transforms import grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp
from .updates import ForgottenUpdatesWarning, OrderedUpdates, until
from .verify import numeric_grad, verify_grad
from .vmap import vmap

if _TYPE_CHECKING:
    from . import fft, interop, ode, onnx, optim, special, stats  # noqa: F401

globals().update(_CONSTRUCTORS)
print = print_  # not in __all__: it would hide Python's own

inf, nan, pi, e, newaxis = float("inf"), float("nan"), 3.141592653589793, 2.718281828459045, None

__all__ = [
    "AxisError",
    "Compiled",
    "Device",
    "DeviceArray",
    "DeviceError",
    "DISCONNECTED",
    "DisconnectedInputError",
    "FileError",
    "ForgottenUpdatesWarning",
    "Function",
    "GradientError",
    "In",
    "InternalError",
    "LinAlgError",
    "Loop",
    "LoopOutput",
    "Lop",
    "MissingInputError",
    "Module",
    "NonScalarCostError",
    "OrderedUpdates",
    "Out",
    "ParseError",
    "Print",
    "RandomStream",
    "Rop",
    "RscanError",
    "RscanIndexError",
    "RscanOverflowError",
    "RscanTypeError",
    "RscanValueError",
    "ScanError",
    "ScanTypeError",
    "Session",
    "ShapeError",
    "SharedVariable",
    "Taps",
    "UnsupportedError",
    "UnusedInputError",
    "Variable",
    "__version__",
    "as_variable",
    "associative_scan",
    "compile",
    "config",
    "constant",
    "debugprint",
    "devices",
    "error_page",
    "errors",
    "eval",
    "fft",
    "foldl",
    "foldr",
    "fori",
    "function",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jit",
    "jvp",
    "linalg",
    "load",
    "load_params",
    "loop",
    "map",
    "numeric_grad",
    "ode",
    "optim",
    "pp",
    "print_",
    "random",
    "reduce",
    "save",
    "save_params",
    "scan",
    "scan_checkpoints",
    "shared",
    "show",
    "special",
    "stats",
    "step_all",
    "taps",
    "tensor",
    "to_device",
    "typing",
    "until",
    "value_and_grad",
    "verify_grad",
    "vjp",
    "vmap",
    "while_loop",
    *_CONSTRUCTORS,
    *_functions,
]

for _function in (scan, loop, fori, while_loop, associative_scan, function, compile, shared, vmap):
    _described(_function)
for _function in (value_and_grad, hvp, grad, jacobian, hessian):
    _described(_function)
del _function

# Modules are imported by their names (`from rscan.explain import Explanation`); as attributes they would stand among the functions,
# and some have the name of a function of NumPy.
for _name, _value in list(globals().items()):
    if type(_value) is type(errors) and _name not in __all__ and not _name.startswith("_"):
        del globals()[_name]
del _name, _value

#: Constructors that completion shows. There are many more: one per prefix, kind and plural.
_USUAL = {prefix + kind for prefix in ("", "d", "f", "i", "l") for kind in ("scalar", "vector", "matrix")}
_USUAL |= {"scalars", "vectors", "matrices", "tensor3", "dtensor3"}

#: Theano's words for what has a name of NumPy's, or one that says more: completion shows them to programs that use the facade.
_THEANOS = {
    "DISCONNECTED", "Lop", "Rop", "alloc", "bit_and", "bit_or", "bit_xor", "consider_constant", "disconnected_grad", "div", "eq", "fill",
    "floordiv", "ge", "gt", "inc_subtensor", "int_div", "join", "le", "lt", "max_and_argmax", "mul", "ne", "neg", "print_", "psi",
    "scan_checkpoints", "set_subtensor", "sgn", "shift_left", "shift_right", "sqr", "sub", "switch", "true_div",
}  # fmt: skip


def __dir__() -> list[str]:
    """What users mean to see."""
    hidden = set(_CONSTRUCTORS) - _USUAL | (set() if "rscan.theano" in _modules else _THEANOS)
    return sorted([*(name for name in __all__ if name not in hidden), "interop", "onnx", "e", "inf", "nan", "newaxis", "pi", "print"])


#: Modules that are imported when they are first asked for.
_LATER = ("fft", "interop", "ode", "onnx", "optim", "special", "stats")


def __getattr__(name: str) -> _Any:
    if name in _LATER:
        return _import_module(f".{name}", __name__)
    raise _of_numpy(name)
