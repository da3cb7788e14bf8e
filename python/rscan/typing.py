"""Names for annotations: `Operand`, what functions of variables take; `Array`, an argument of a compiled function."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, Union

import numpy as np

from .variable import Variable

__all__ = ["Array", "HasArray", "HasDLPack", "Operand"]


class HasArray(Protocol):
    """What NumPy makes an array of: pandas, polars, xarray, Arrow and many others.

    >>> class Celsius:
    ...     def __array__(self, dtype=None, copy=None):
    ...         return np.array([20.0, 25.0])
    >>> rs.as_variable(Celsius()).eval()
    array([20., 25.])
    """

    def __array__(self) -> np.ndarray[Any, Any]: ...


class HasDLPack(Protocol):
    """What hands over its memory by DLPack: JAX, PyTorch and others.

    >>> hasattr(np.zeros(2), "__dlpack__")
    True
    """

    def __dlpack__(self, *, stream: Any = ...) -> Any: ...

    def __dlpack_device__(self) -> Any: ...


#: What functions of variables take: a variable, a number, an array, or lists of these.
Operand: TypeAlias = Union[Variable, float, "np.ndarray[Any, Any]", "np.generic[Any]", list[Any], tuple[Any, ...], HasArray, HasDLPack]

#: An argument of a function under `@rs.compile`: a variable in the function, whatever becomes an array where it is called.
Array: TypeAlias = Any
