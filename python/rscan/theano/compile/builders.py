"""`theano.compile.builders`: functions of variables as ops."""

from __future__ import annotations

from typing import Any

from ... import _native
from ..._spans import here
from ...errors import RscanTypeError, RscanValueError, UnsupportedError
from ...variable import apply_all, wrap
from ..gof.cotangents import fitting
from ..gradient import Lop
from ..graph_tools import replaced
from ..variable import TensorVariable, as_tensor_variable


class OpFromGraph:
    """An op that is an expression of inputs. Calling it puts its arguments in their places.

    grad_overrides: a function of (inputs, gradients of the outputs) that gives the gradients of the inputs, or a list with one such
    function per input, None for the gradient of the expression. lop_overrides: the same with (inputs, outputs, gradients).
    """

    inputs: list[Any]
    outputs: list[Any]
    name: str | None

    def __init__(
        self,
        inputs: Any,
        outputs: Any,
        inline: bool = False,
        lop_overrides: Any = "default",
        grad_overrides: Any = "default",
        rop_overrides: Any = "default",
        connection_pattern: Any = None,
        name: str | None = None,
        **_: Any,
    ) -> None:
        self.inputs, self.outputs, self.name = list(inputs), [as_tensor_variable(v) for v in outputs], name
        if rop_overrides != "default":
            raise UnsupportedError("OpFromGraph takes no rop_overrides", code="E0813", labels=[(here(), "")])
        self._override = lop_overrides if lop_overrides != "default" else grad_overrides
        self._with_outputs = lop_overrides != "default"

    def __call__(self, *args: Any) -> Any:
        if len(args) != len(self.inputs):
            text = f"the op takes {len(self.inputs)} inputs, got {len(args)}"
            raise RscanValueError(text, code="E0809", labels=[(here(), "")])
        values = []
        for old, new in zip(self.inputs, args, strict=True):
            v = as_tensor_variable(new)
            if v.ndim != old.ndim:
                text = f"{old} has {old.ndim} axes, {v} has {v.ndim}"
                raise RscanTypeError(text, code="E0809", labels=[(here(), "")])
            values.append(v.astype(old.dtype))
        if self._override == "default":
            found = replaced(self.outputs, dict(zip(self.inputs, values, strict=True)))
        else:
            found = [wrap(v._v, TensorVariable) for v in apply_all(self._user_op(), {}, values)]
        return found[0] if len(found) == 1 else found

    def _user_op(self, key: str | None = None) -> Any:
        """The op as one of a user, which has the gradient that it was given."""
        from .function import function

        run = function(self.inputs, self.outputs, on_unused_input="ignore")
        types = [(v.dtype, [1 if b else None for b in v.broadcastable]) for v in self.outputs]
        return _native.extern(key or self.name or "OpFromGraph", True, lambda _: types, lambda arrays: run(*arrays), self._vjp)

    def _vjp(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
        ins, outs = ([wrap(v, TensorVariable) for v in items] for items in (inputs, outputs))
        given = [o.zeros_like() if c is None else wrap(c, TensorVariable) for o, c in zip(outs, cotangents, strict=True)]  # type: ignore[attr-defined]
        args = (ins, outs, given) if self._with_outputs else (ins, given)
        if callable(self._override):
            found = self._override(*args)
        else:
            usual = Lop(replaced(self.outputs, dict(zip(self.inputs, ins, strict=True))), ins, given, disconnected_inputs="ignore")
            found = [u if o in ("default", None) else o(*args) for o, u in zip(self._override, usual, strict=True)]
        return fitting(self.name or "OpFromGraph", found, ins)
