"""What gradients that users write give, made fit for the inputs of their ops."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._spans import here
from ...errors import GradientError
from ...ops_control import assert_
from ...variable import Variable, elementwise
from ..variable import as_tensor_variable


def fitting(op: str, found: Any, inputs: list[Any]) -> list[Any]:
    """One variable per input, of its dtype and shape; None where there is no gradient. What does not fit is a GradientError (E0414)."""
    if not isinstance(found, (list, tuple)):
        raise _misfit(op, f"is a list with one item for each of {len(inputs)} inputs, not {found!r}")
    if len(found) != len(inputs):
        return [None] * len(found)  # the core says how many there have to be
    return [_fitting(op, k, g, v) for k, (g, v) in enumerate(zip(found, inputs, strict=True))]


def _fitting(op: str, number: int, g: Any, v: Any) -> Any:
    # What has no gradient, or none that is defined, is no variable.
    if v.dtype[0] != "f" or not isinstance(g, (Variable, np.ndarray, np.number, int, float)):
        return None
    given = as_tensor_variable(g).astype(v.dtype)
    apart = [None not in pair and pair[0] != pair[1] for pair in zip(given.static_shape, v.static_shape, strict=False)]
    if given.ndim != v.ndim or any(apart):
        raise _misfit(op, f"has the shape {_shown(given)} for input {number}, whose shape is {_shown(v)}")
    for axis in range(v.ndim):
        if not v._v.same_dim(axis, given._v, axis):
            text = f"the gradient of `{op}` has another extent of axis {axis} than input {number}"
            given = assert_(given, elementwise("eq", given.shape[axis], v.shape[axis]), message=text)
    return given._v


def _shown(v: Any) -> str:
    return f"({', '.join('?' if n is None else str(n) for n in v.static_shape)}{',' if v.ndim == 1 else ''})"


def _misfit(op: str, what: str) -> GradientError:
    helps = ["grad returns a variable of each input's shape, as inputs[0].zeros_like()"]
    return GradientError(f"the gradient of `{op}` {what}", code="E0414", labels=[(here(), "")], helps=helps)
