"""`theano.tensor.xlogx`: x log x and x log y that are 0 where x is."""

from __future__ import annotations

from typing import Any

from ...variable import Variable, elementwise
from ..variable import as_tensor_variable


def xlogx(x: Any) -> Variable:
    """x log x; 0 at 0."""
    v = as_tensor_variable(x)
    return elementwise("xlogy", v, v)


def xlogy0(x: Any, y: Any) -> Variable:
    """x log y; 0 where x is 0."""
    return elementwise("xlogy", as_tensor_variable(x), as_tensor_variable(y))
