# ruff: noqa: F401
"""Theano's names on rscan's loops: `import rscan.theano as theano`, `import rscan.theano.tensor as T`.

`python -m rscan.theano program.py` runs a program that imports `theano` itself. What works and what differs is in docs/facade.md.
"""

from . import absent, scalar, type, variable
from .config import change_flags, config
from .misc import _asarray
from .tensor import as_tensor_variable  # before what needs the namespace

# isort: split
from . import compile, gof, gradient, ifelse, misc, printing, raise_op, sandbox, scan_module, tensor, updates, version
from .compile import FAST_COMPILE, FAST_RUN, In, Mode, OpFromGraph, Out, ProfileStats, as_op, function, predefined_modes, shared
from .compile.mode import get_mode
from .config import config as configdefaults
from .gof import Apply, Constant, Op, Variable
from .gradient import Lop, Rop, grad, subgraph_grad
from .graph_tools import clone
from .printing import pp, pprint, pydotprint
from .scan_module import foldl, foldr, map, reduce, scan, scan_checkpoints
from .tensor import dot
from .updates import OrderedUpdates
from .variable import TensorVariable
from .version import version as __version__

absent.provide()


def sparse_grad(x: object) -> object:
    """x: gradients of indexed variables are sums over the indices anyway."""
    return x


def install() -> None:
    """Makes `import theano` find these modules."""
    import sys

    here = __name__
    for name, module in list(sys.modules.items()):
        if name == here or name.startswith(here + "."):
            sys.modules["theano" + name[len(here) :]] = module
