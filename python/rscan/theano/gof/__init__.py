"""`theano.gof`."""

from ..absent import absent_in
from . import fg, graph, null_type, op, type, utils
from .fg import FunctionGraph, MissingInputError
from .graph import Apply, Constant, Variable
from .op import Op
from .type import Generic, Type, generic

globals().update(absent_in("gof"))

__all__ = [
    "Apply", "Constant", "FunctionGraph", "Generic", "MissingInputError", "Op", "Type", "Variable", "fg", "generic", "graph",
    "null_type", "op", "type", "utils",
]  # fmt: skip
