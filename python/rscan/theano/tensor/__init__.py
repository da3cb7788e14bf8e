# ruff: noqa: F401
"""`theano.tensor`."""

from typing import Any

import numpy as np

from ...variable import Variable
from ..absent import absent_in
from ..config import config
from ..gradient import Lop, Rop, consider_constant, disconnected_grad, grad, hessian, jacobian, verify_grad
from ..type import TensorType
from ..variable import ShapeVariable, TensorConstant, TensorSharedVariable, TensorVariable, as_tensor_variable, constant
from . import (
    arrays,
    basic,
    create,
    elemwise,
    extra_ops,
    fft,
    linalg,
    nlinalg,
    nnet,
    opt,
    raw_random,
    shared_randomstreams,
    signal,
    slinalg,
    sort,
    subtensor,
    type,
    type_other,
    var,
    xlogx,
)
from .basic import _shared, shared
from .extra_ops import fill_diagonal, fill_diagonal_offset, searchsorted, to_one_hot
from .linalg import matrix_dot, matrix_inverse, trace
from .shared_randomstreams import RandomStreams

# Functions take the place of modules of their name.
globals().update({name: getattr(elemwise, name) for name in elemwise.NAMES})
globals().update({name: getattr(create, name) for name in create.NAMES})
globals().update({name: getattr(arrays, name) for name in arrays.NAMES})
globals().update({name: getattr(subtensor, name) for name in subtensor.NAMES})

abs = globals()["abs_"]
pi, e, inf, nan, newaxis = np.pi, np.e, np.inf, np.nan, None
divide = true_div = elemwise.true_div
truncate = globals()["trunc"]
discrete_dtypes = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
continuous_dtypes = float_dtypes = ("float32", "float64")
int_dtypes, uint_dtypes, complex_dtypes = ("int8", "int16", "int32", "int64"), ("uint8", "uint16", "uint32", "uint64"), ()
integer_dtypes, all_dtypes = int_dtypes + uint_dtypes, ("bool", *int_dtypes, *uint_dtypes, *float_dtypes)
as_tensor = as_tensor_variable
Tensor = TensorType
tensor_copy = lambda x: as_tensor_variable(x).copy()
identity = tensor_copy
globals().update(absent_in("tensor"))


def __getattr__(name: str) -> Any:
    raise AttributeError(f"rscan's theano.tensor has no `{name}`: docs/facade.md lists what there is")


__all__ = [name for name in globals() if not name.startswith("_") and name not in ("Any", "np", "Variable", "config")]
