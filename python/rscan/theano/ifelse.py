"""`theano.ifelse`."""

from __future__ import annotations

from typing import Any

from .. import ops
from .._spans import here
from ..errors import RscanTypeError, RscanValueError
from ..variable import apply
from .variable import as_tensor_variable


def ifelse(condition: Any, then_branch: Any, else_branch: Any, name: str | None = None) -> Any:
    """The one branch where the scalar condition is not 0, else the other; only that one is computed. Lists: item by item."""
    several = isinstance(then_branch, (list, tuple))
    first = list(then_branch) if several else [then_branch]
    second = list(else_branch) if isinstance(else_branch, (list, tuple)) else [else_branch]
    if len(first) != len(second):
        raise RscanValueError(f"the branches have {len(first)} and {len(second)} values", code="E0809", labels=[(here(), "")])
    chooser = as_tensor_variable(condition)
    if chooser.ndim:
        raise RscanTypeError("the condition of ifelse is a scalar", code="E0809", labels=[(here(), "")])
    out = []
    for a, b in zip(map(as_tensor_variable, first), map(as_tensor_variable, second), strict=True):
        if a.ndim != b.ndim:
            raise RscanTypeError(f"the branches have {a.ndim} and {b.ndim} axes", code="E0809", labels=[(here(), "")])
        from .tensor.elemwise import ops_pair

        out.append(apply("ifelse", {}, ops.cast(chooser, "bool"), *ops_pair(a, b)))
    return type(then_branch)(out) if several else out[0]
