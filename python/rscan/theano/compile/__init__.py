"""`theano.compile`."""

from ..printing import MonitorMode
from . import builders, debugmode, mode, monitormode, nanguardmode, ops, pfunc, profiling, sharedvalue
from .builders import OpFromGraph
from .debugmode import DebugMode
from .function import In, Out, SymbolicInput, SymbolicOutput, UnusedInputError, function
from .mode import FAST_COMPILE, FAST_RUN, JAX, Mode, get_default_mode, get_mode, predefined_modes
from .nanguardmode import NanGuardMode
from .ops import as_op
from .pfunc import rebuild_collect_shared
from .profiling import ProfileStats
from .sharedvalue import SharedVariable, shared

__all__ = [
    "FAST_COMPILE", "FAST_RUN", "JAX", "DebugMode", "In", "Mode", "MonitorMode", "NanGuardMode", "OpFromGraph", "Out", "ProfileStats",
    "SharedVariable", "SymbolicInput", "SymbolicOutput", "UnusedInputError", "as_op",
    "builders", "debugmode", "function", "get_default_mode", "get_mode",
    "mode", "monitormode", "nanguardmode", "ops", "pfunc", "predefined_modes",
    "profiling", "rebuild_collect_shared", "shared", "sharedvalue",
]  # fmt: skip
