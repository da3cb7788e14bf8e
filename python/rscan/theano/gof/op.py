"""`theano.gof.op`: ops written by users in Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _native
from ..._spans import here
from ...dtypes import as_array
from ...errors import RscanTypeError, RscanValueError
from ...variable import apply_all, wrap
from ..type import TensorType
from ..variable import TensorVariable
from .cotangents import fitting
from .utils import MethodNotDefined


class Op:
    """An op with `make_node` (or `itypes` and `otypes`), `perform` and, where it has a gradient, `grad`."""

    itypes: Any = None
    otypes: Any = None
    default_output: int | None = None
    __props__: Any = ()

    def make_node(self, *inputs: Any) -> Any:
        """An application: the inputs, and outputs of the right types."""
        from ..variable import as_tensor_variable
        from .graph import Apply

        if self.itypes is None or self.otypes is None:
            raise MethodNotDefined(f"{type(self).__name__} has neither make_node nor itypes and otypes")
        items = [as_tensor_variable(v) for v in inputs]
        if len(items) != len(self.itypes):
            raise RscanValueError(f"{self} takes {len(self.itypes)} inputs, got {len(items)}", code="E0809", labels=[(here(), "")])
        for v, t in zip(items, self.itypes, strict=True):
            if v.type != t:
                raise RscanTypeError(f"{self} takes {t}, got {v.type}", code="E0809", labels=[(here(), "")])
        return Apply(self, items, [t() for t in self.otypes])

    def perform(self, node: Any, inputs: Any, output_storage: Any, *_: Any) -> None:
        """Computes into `output_storage[i][0]`."""
        raise MethodNotDefined("perform")

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        node = self.make_node(*inputs)
        outs = apply_all(self._native(node), {}, node.inputs)
        outs = [wrap(v._v, TensorVariable) for v in outs]
        for old, new in zip(node.outputs, outs, strict=True):
            new.name = old.name
        if self.default_output is not None:
            return outs[self.default_output]
        return outs[0] if len(outs) == 1 and not options.get("return_list") else outs

    def _native(self, node: Any) -> Any:
        types = _types(node)
        return self._made(str(self), lambda _: types, lambda arrays: self._performed(node, arrays))

    def _user_op(self, key: str | None = None) -> Any:
        """The op for a file that has it by name: its applications are made anew, from what it is given."""

        def node(inputs: list[tuple[str, Any]]) -> Any:
            if self.itypes is not None:
                return self.make_node(*(t() for t in self.itypes))
            return self.make_node(*(TensorType(dtype, [False] * len(shape))() for dtype, shape in inputs))

        def evaluate(arrays: list[np.ndarray]) -> list[np.ndarray]:
            return self._performed(node([(a.dtype.name, a.shape) for a in arrays]), arrays)

        return self._made(key or str(self), lambda inputs: _types(node(inputs)), evaluate)

    def _performed(self, node: Any, arrays: list[np.ndarray]) -> list[np.ndarray]:
        types = _types(node)
        storage: list[list[Any]] = [[None] for _ in types]
        self.perform(node, arrays, storage)
        return [as_array(cell[0], dtype) for cell, (dtype, _) in zip(storage, types, strict=True)]

    def _made(self, key: str, infer: Any, evaluate: Any) -> Any:
        has_grad = hasattr(self, "L_op") or hasattr(self, "grad")
        return _native.extern(key, True, infer, evaluate, self._vjp if has_grad else None)

    def _vjp(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
        ins: list[Any] = [wrap(v, TensorVariable) for v in inputs]
        outs: list[Any] = [wrap(v, TensorVariable) for v in outputs]
        given: list[Any] = [v.zeros_like() if c is None else wrap(c, TensorVariable) for v, c in zip(outs, cotangents, strict=True)]
        found = self.L_op(ins, outs, given) if hasattr(self, "L_op") else self.grad(ins, given)  # type: ignore[attr-defined]
        return fitting(str(self), found, ins)

    def __str__(self) -> str:
        props = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__props__ or ())
        return f"{type(self).__name__}{{{props}}}" if props else type(self).__name__

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return False
        return self is other or (bool(self.__props__) and all(getattr(self, n) == getattr(other, n) for n in self.__props__))

    def __hash__(self) -> int:
        return hash((type(self), *(getattr(self, n) for n in self.__props__))) if self.__props__ else hash(type(self))


def _types(node: Any) -> list[tuple[str, list[int | None]]]:
    return [(v.dtype, [1 if b else None for b in v.broadcastable]) for v in node.outputs]


PureOp = Op
