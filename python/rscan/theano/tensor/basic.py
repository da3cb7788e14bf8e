"""`theano.tensor.basic`: the same names, and shared variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._spans import here
from ...dtypes import as_array
from ...errors import RscanTypeError
from ...shared import make_shared
from ...variable import Variable
from ..type import TensorType
from ..variable import TensorConstant, TensorSharedVariable, TensorVariable, as_tensor_variable, constant
from . import arrays, create, elemwise, subtensor


def shared(
    value: Any,
    name: str | None = None,
    strict: bool = False,
    allow_downcast: bool | None = None,
    borrow: bool = False,
    broadcastable: Any = None,
    target: str = "cpu",
    **_: Any,
) -> Variable:
    """A shared variable: int64 for an int, float64 for a float, bool for a bool, the dtype of an array."""
    if isinstance(value, Variable):
        raise RscanTypeError("a shared variable holds numbers, not a variable", code="E0805", labels=[(here(), "")])
    if isinstance(value, np.random.RandomState):
        from .raw_random import random_state_shared

        return random_state_shared(value, name)
    if value is None or isinstance(value, (str, dict)):
        raise RscanTypeError(f"no shared variable of {value!r}", code="E0805", labels=[(here(), "")])
    array = as_array(value)
    pattern = None if broadcastable is None else [1 if b else None for b in broadcastable]
    if name is not None and not isinstance(name, str):
        raise RscanTypeError(f"the name of a shared variable is a string, not {name!r}", code="E0809", labels=[(here(), "")])
    return make_shared(TensorSharedVariable, array, name, pattern)


_shared = shared
for _module in (elemwise, create, arrays, subtensor):
    globals().update({_name: getattr(_module, _name) for _name in _module.NAMES})

__all__ = ["TensorConstant", "TensorSharedVariable", "TensorType", "TensorVariable", "as_tensor_variable", "constant", "shared"]
