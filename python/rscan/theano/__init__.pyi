"""Theano's names on rscan's loops: `import rscan.theano as theano`, `import rscan.theano.tensor as T`. Made by tools/stubs.py."""
# ruff: noqa

from typing import Any
from . import absent as absent, compile as compile, connection as connection, draws as draws, gof as gof, gradient as gradient, graph_tools as graph_tools, ifelse as ifelse, inconsistent as inconsistent, misc as misc, picture as picture, printing as printing, raise_op as raise_op, sandbox as sandbox, scalar as scalar, scan_module as scan_module, tensor as tensor, type as type, updates as updates, variable as variable, version as version
from .compile.builders import OpFromGraph as OpFromGraph
from .compile.function import In as In, Out as Out, function as function
from .compile.mode import FAST_COMPILE as FAST_COMPILE, FAST_RUN as FAST_RUN, Mode as Mode, get_mode as get_mode
from .compile.ops import as_op as as_op
from .compile.profiling import ProfileStats as ProfileStats
from .config import change_flags as change_flags, config as config
from .gof.graph import Apply as Apply
from .gof.op import Op as Op
from .gradient import Lop as Lop, Rop as Rop, grad as grad, subgraph_grad as subgraph_grad
from .graph_tools import clone as clone
from .misc import _asarray as _asarray
from .printing import pp as pp, pprint as pprint, pydotprint as pydotprint
from .scan_module.scan import scan as scan, scan_checkpoints as scan_checkpoints
from .tensor.arrays import dot as dot
from .tensor.basic import shared as shared
from .variable import TensorConstant as _Constant, TensorVariable as TensorVariable, Variable as Variable, as_tensor_variable as as_tensor_variable
from ..updates import OrderedUpdates as OrderedUpdates
from collections.abc import Callable

Constant = _Constant
configdefaults: Any
def foldl(fn: Callable[..., Any], sequences: Any, outputs_info: Any, non_sequences: Any = None, mode: Any = None, name: str | None = None) -> Any:
    """`reduce` from the first row to the last."""
def foldr(fn: Callable[..., Any], sequences: Any, outputs_info: Any, non_sequences: Any = None, mode: Any = None, name: str | None = None) -> Any:
    """`reduce` from the last row to the first."""
gpuarray: Any
def install() -> Any:
    """Makes `import theano` find these modules."""
def map(fn: Callable[..., Any], sequences: Any, non_sequences: Any = None, truncate_gradient: int = -1, go_backwards: bool = False, mode: Any = None, name: str | None = None) -> Any:
    """What fn gives for each row of the sequences. Returns (outputs, updates)."""
predefined_modes: dict[Any, Any]
def reduce(fn: Callable[..., Any], sequences: Any, outputs_info: Any, non_sequences: Any = None, go_backwards: bool = False, mode: Any = None, name: str | None = None) -> Any:
    """The last value of fn(row, accumulator, …), starting from outputs_info. Returns (value or values, updates)."""
sparse: Any
def sparse_grad(x: Any) -> Any:
    """x: gradients of indexed variables are sums over the indices anyway."""
typed_list: Any

