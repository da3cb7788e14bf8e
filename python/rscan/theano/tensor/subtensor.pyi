"""Indexing as Theano names it, read and written, and constants behind variables. Made by tools/stubs.py."""
# ruff: noqa

from typing import Any
from ... import indexing as indexing, ops as ops
from ..._spans import here as here
from ...dtypes import as_array as as_array
from ...errors import RscanIndexError as RscanIndexError, RscanTypeError as RscanTypeError, RscanValueError as RscanValueError
from ..variable import as_tensor_variable as as_tensor_variable
from ...variable import Variable as Variable, elementwise as elementwise

import numpy as np
NAMES: list[Any]
class NotScalarConstantError(RscanIndexError):
    ...
def _written(place: Any, value: Any, mode: str) -> Variable:
    ...
def extract_constant(v: Any, *_: Any, **__: Any) -> Any:
    """The value of a constant scalar, or what was given."""
def flatnonzero(x: Any) -> Variable:
    """The positions in the flattened array of the elements that are not 0."""
def get_scalar_constant_value(v: Any, *_: Any, **__: Any) -> np.ndarray:
    """The value of a constant scalar."""
def get_vector_length(v: Any) -> int:
    """The length of a vector, where it is known."""
def inc_subtensor(x: Any, y: Any, inplace: bool = False, set_instead_of_inc: bool = False, tolerate_inplace_aliasing: bool = False) -> Variable:
    """`inc_subtensor(x[i], y)`: x with y added at i."""
def nonzero(x: Any, return_matrix: bool = False) -> Any:
    """Per axis, the positions of the elements that are not 0; as rows of a matrix on request."""
def nonzero_values(x: Any) -> Variable:
    """The elements that are not 0."""
def set_subtensor(x: Any, y: Any, inplace: bool = False, tolerate_inplace_aliasing: bool = False) -> Variable:
    """`set_subtensor(x[i], y)`: x with y at i."""
def take(x: Any, indices: Any, axis: Any = None, mode: str = 'raise') -> Variable:
    """Elements at these positions. mode: 'raise', 'clip' or 'wrap' positions outside."""

