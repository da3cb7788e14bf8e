"""Types of variables: dtype and broadcast pattern."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _native
from .._spans import here
from ..dtypes import DTYPES, dtype_name
from ..errors import RscanTypeError
from ..variable import wrap


class TensorType:
    """dtype and broadcast pattern of a variable. Calling it makes a variable: `TensorType("float64", (False, True))("x")`."""

    dtype: str
    broadcastable: tuple[bool, ...]

    def __init__(self, dtype: Any, broadcastable: Any, name: str | None = None) -> None:
        self.dtype = dtype_name(dtype)
        self.broadcastable = tuple(bool(b) for b in broadcastable)
        self.name = name

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.broadcastable)

    def __call__(self, name: str | None = None) -> Any:
        from .variable import TensorVariable

        shape = [1 if b else None for b in self.broadcastable]
        return wrap(_native.input(self.dtype, shape, name, here()), TensorVariable)

    make_variable = __call__

    def clone(self, dtype: Any = None, broadcastable: Any = None) -> TensorType:
        """The type with another dtype or pattern."""
        return TensorType(self.dtype if dtype is None else dtype, self.broadcastable if broadcastable is None else broadcastable)

    def filter(self, value: Any, strict: bool = False, allow_downcast: bool | None = None) -> np.ndarray:
        """The value as an array of this type."""
        from .._calling import In, convert

        array = convert(value, In(self(), strict=strict), allow_downcast)
        return array

    def is_valid_value(self, value: Any) -> bool:
        """True for an array of this type."""
        return isinstance(value, np.ndarray) and value.dtype.name == self.dtype and value.ndim == self.ndim

    def filter_variable(self, other: Any, allow_convert: bool = True) -> Any:
        """The value as a variable of this type."""
        from .variable import as_tensor_variable

        out: Any = as_tensor_variable(other)
        if out.type != self:
            raise RscanTypeError(f"cannot convert {out.type} into {self}", code="E0806", labels=[(here(), "")])
        return out

    def dtype_specs(self) -> tuple[Any, str, str]:
        """NumPy's type, the name, and C's name."""
        return np.dtype(self.dtype).type, self.dtype, f"npy_{self.dtype}"

    def values_eq(self, a: Any, b: Any) -> bool:
        return bool(np.array_equal(a, b, equal_nan=True))

    def values_eq_approx(self, a: Any, b: Any, **_: Any) -> bool:
        return bool(np.allclose(a, b, equal_nan=True))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorType) and (self.dtype, self.broadcastable) == (other.dtype, other.broadcastable)

    def __hash__(self) -> int:
        return hash((self.dtype, self.broadcastable))

    def __str__(self) -> str:
        names = {(): "scalar", (False,): "vector", (False, False): "matrix", (True, False): "row", (False, True): "col"}
        kind = names.get(self.broadcastable)
        if kind is None:
            if not any(self.broadcastable):
                kind = f"{self.ndim}D"
            else:
                kind = str(self.broadcastable)
        return self.name or f"TensorType({self.dtype}, {kind})"

    __repr__ = __str__


#: Dtypes that variables have.
tensor_dtypes = DTYPES
