"""`theano.compile.builders`: functions of variables as ops."""

from __future__ import annotations

from typing import Any

from ..._spans import here
from ...errors import RscanTypeError
from ..graph_tools import replaced
from ..variable import as_tensor_variable


class OpFromGraph:
    """An op that is an expression of inputs. Calling it puts its arguments in their places.

    grad_overrides is a function of (inputs, gradients of the outputs), or a list of these with None for the usual gradient.
    """

    def __init__(self, inputs: Any, outputs: Any, inline: bool = False, lop_overrides: Any = "default", grad_overrides: Any = "default",
                 rop_overrides: Any = "default", connection_pattern: Any = None, name: str | None = None, **_: Any) -> None:  # fmt: skip
        self.inputs, self.outputs, self.name = list(inputs), list(outputs), name
        if any(o not in ("default", None) for o in (lop_overrides, grad_overrides, rop_overrides) if not callable(o)) or any(
            map(callable, (lop_overrides, grad_overrides, rop_overrides))
        ):
            raise RscanTypeError("OpFromGraph takes no gradients of its own: write an Op", code="E0813", labels=[(here(), "")])

    def __call__(self, *args: Any) -> Any:
        if len(args) != len(self.inputs):
            raise RscanTypeError(f"the op takes {len(self.inputs)} inputs, got {len(args)}", code="E0809", labels=[(here(), "")])
        table = {}
        for old, new in zip(self.inputs, args, strict=True):
            v = as_tensor_variable(new)
            if v.ndim != old.ndim:
                raise RscanTypeError(f"{old} has {old.ndim} axes, {v} has {v.ndim}", code="E0809", labels=[(here(), "")])
            table[old] = v.astype(old.dtype)
        found = replaced(self.outputs, table)
        return found[0] if len(found) == 1 else found
