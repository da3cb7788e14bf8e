"""Indexing as Theano names it, read and written, and constants behind variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import indexing, ops
from ..._spans import here
from ...dtypes import as_array
from ...errors import RscanIndexError, RscanTypeError, RscanValueError
from ...variable import Variable, elementwise
from ..variable import as_tensor_variable


def take(x: Any, indices: Any, axis: Any = None, mode: str = "raise") -> Variable:
    """Elements at these positions. mode: 'raise', 'clip' or 'wrap' positions outside."""
    v, at = as_tensor_variable(x), as_tensor_variable(indices)
    if mode not in ("raise", "clip", "wrap"):
        raise RscanValueError(f"take knows no mode {mode!r}", code="E0809", labels=[(here(), "")])
    n = v.size if axis is None else v.shape[axis]
    if mode == "clip":
        at = elementwise("clip", at, as_tensor_variable(0), n - 1)
    elif mode == "wrap":
        at = elementwise("mod", at, n)
    return ops.take(v, at, axis)


def nonzero(x: Any, return_matrix: bool = False) -> Any:
    """Per axis, the positions of the elements that are not 0; as rows of a matrix on request."""
    v = as_tensor_variable(x)
    if v.ndim == 0:
        raise RscanValueError("nonzero takes an array with axes", code="E0809", labels=[(here(), "")])
    found = tuple(ops.nonzero(v))
    return ops.stack(list(found)) if return_matrix else found


def nonzero_values(x: Any) -> Variable:
    """The elements that are not 0."""
    v = as_tensor_variable(x)
    return v[nonzero(v)]


def flatnonzero(x: Any) -> Variable:
    """The positions in the flattened array of the elements that are not 0."""
    return nonzero(ops.ravel(as_tensor_variable(x)))[0]


def _written(place: Any, value: Any, mode: str) -> Variable:
    if getattr(place, "_origin", None) is None:
        raise RscanTypeError(
            f"{mode}_subtensor takes an indexed variable, as in {mode}_subtensor(x[i], value)", code="E0809", labels=[(here(), "")]
        )
    x, key = place._origin
    v = as_tensor_variable(value)
    if v.ndim > place.ndim:
        raise RscanTypeError(f"a value of {v.ndim} axes does not fit into a place of {place.ndim}", code="E0809", labels=[(here(), "")])
    if np.result_type(v.dtype, x.dtype).name != x.dtype and not isinstance(value, (int, float)):
        raise RscanTypeError(f"{v.dtype} cannot be written into an array of {x.dtype}", code="E0804", labels=[(here(), "")])
    return indexing.write(x, key, ops.cast(v, x.dtype), mode)


def set_subtensor(x: Any, y: Any, inplace: bool = False, tolerate_inplace_aliasing: bool = False) -> Variable:
    """`set_subtensor(x[i], y)`: x with y at i."""
    return _written(x, y, "set")


def inc_subtensor(
    x: Any, y: Any, inplace: bool = False, set_instead_of_inc: bool = False, tolerate_inplace_aliasing: bool = False
) -> Variable:
    """`inc_subtensor(x[i], y)`: x with y added at i."""
    return _written(x, y, "set" if set_instead_of_inc else "inc")


def get_vector_length(v: Any) -> int:
    """The length of a vector, where it is known."""
    x = as_tensor_variable(v)
    if x.ndim != 1 or x.static_shape[0] is None:
        raise RscanValueError("the length of the vector is not known", code="E0802", labels=[(here(), "")])
    return x.static_shape[0]


class NotScalarConstantError(RscanIndexError):
    """Not a constant scalar."""


def get_scalar_constant_value(v: Any, *_: Any, **__: Any) -> np.ndarray:
    """The value of a constant scalar."""
    if isinstance(v, Variable):
        if v._v.value is None or v.ndim:
            raise NotScalarConstantError(f"{v} is no constant scalar", code="E0802", labels=[(here(), "")])
        return np.asarray(v._v.value)
    return as_array(v)


def extract_constant(v: Any, *_: Any, **__: Any) -> Any:
    """The value of a constant scalar, or what was given."""
    try:
        return get_scalar_constant_value(v)
    except NotScalarConstantError:
        return v


NAMES = [
    "take", "nonzero", "nonzero_values", "flatnonzero", "set_subtensor", "inc_subtensor", "get_vector_length",
    "get_scalar_constant_value", "NotScalarConstantError", "extract_constant",
]  # fmt: skip
