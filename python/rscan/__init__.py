"""Symbolic loops: differentiated, optimised and run as native code."""

from .variable import Variable, as_variable, constant  # first: the functions need the class, and it them

# isort: split
from . import errors, linalg
from ._native import __version__
from .config import config
from .errors import RscanError, error_page
from .function import Function, In, Out, function
from .function import evaluate as eval
from .inputs import CONSTRUCTORS as _CONSTRUCTORS
from .inputs import tensor
from .ops import *  # noqa: F403
from .ops import __all__ as _functions
from .shared import SharedVariable, shared

globals().update(_CONSTRUCTORS)

inf, nan, pi, e, newaxis = float("inf"), float("nan"), 3.141592653589793, 2.718281828459045, None

__all__ = [
    "Function",
    "In",
    "Out",
    "RscanError",
    "SharedVariable",
    "Variable",
    "__version__",
    "as_variable",
    "config",
    "constant",
    "error_page",
    "errors",
    "eval",
    "function",
    "linalg",
    "shared",
    "tensor",
    *_CONSTRUCTORS,
    *_functions,
]
