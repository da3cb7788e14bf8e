"""`theano.compile.ops`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..gof.op import Op


def as_op(itypes: Any, otypes: Any, infer_shape: Any = None) -> Callable[[Any], Op]:
    """A decorator that makes an op of a function of arrays."""
    ins = list(itypes) if isinstance(itypes, (list, tuple)) else [itypes]
    outs = list(otypes) if isinstance(otypes, (list, tuple)) else [otypes]

    def decorate(function: Any) -> Op:
        return _FromFunction(function, [_type_of(t) for t in ins], [_type_of(t) for t in outs])

    return decorate


def _type_of(kind: Any) -> Any:
    return kind if hasattr(kind, "broadcastable") else kind().type


class _FromFunction(Op):
    itypes: Any
    otypes: Any

    def __init__(self, function: Any, itypes: Any, otypes: Any) -> None:
        self._function, self.itypes, self.otypes = function, itypes, otypes

    def perform(self, node: Any, inputs: Any, output_storage: Any, *_: Any) -> None:
        """Calls the function."""
        out = self._function(*inputs)
        for cell, value in zip(output_storage, out if isinstance(out, (list, tuple)) else [out], strict=True):
            cell[0] = value

    def __str__(self) -> str:
        return f"FromFunctionOp{{{getattr(self._function, '__name__', '?')}}}"


def view_op(x: Any) -> Any:
    """x."""
    return x


def shape_i(var: Any, i: int, fgraph: Any = None) -> Any:
    """One extent."""
    return var.shape[i]


class FromFunctionOp(_FromFunction):
    """An op of a function of arrays."""
