"""Shared variables: values that live between calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _native
from ._spans import here
from .errors import RscanTypeError
from .variable import DTYPES, Variable, _known, is_weak, weak_dtype

#: Shared variables that are updated by themselves are kept: expressions know only the core's side of them.
_updated: dict[int, SharedVariable] = {}


class SharedVariable(Variable):
    """A variable with a value, which functions read, and write where they update it."""

    def __init__(self, shared: _native.Shared) -> None:
        if not isinstance(shared, _native.Shared):
            raise RscanTypeError("shared variables are made by rs.shared(value)", code="E0809", labels=[(here(), "")])
        super().__init__(shared.var)
        self._shared = shared
        self._default_update: Variable | None = None

    @classmethod
    def _adopt(cls, native: _native.Var) -> SharedVariable:
        """The Python object of a shared leaf found in a graph."""
        shared = native.shared
        assert shared is not None
        known = _updated.get(shared.id)
        return cls(shared) if known is None else known

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.default_update = self._default_update

    @property
    def default_update(self) -> Variable | None:
        """Its value after every call of a function that depends on it, unless the function says otherwise."""
        return self._default_update

    @default_update.setter
    def default_update(self, value: Variable | None) -> None:
        self._default_update = value
        if value is None:
            _updated.pop(self._shared.id, None)
        else:
            _updated[self._shared.id] = self

    def get_value(self, borrow: bool = False, return_internal_type: bool = False) -> np.ndarray:
        """A copy of the value."""
        return self._shared.get()

    def set_value(self, value: Any, borrow: bool = False) -> None:
        """Replaces the value by a copy. dtype and number of axes stay as they are; numbers and lists adapt if they survive."""
        self._shared.set(self._fitting(value))

    def _fitting(self, value: Any) -> np.ndarray:
        array = np.asarray(value)
        if array.dtype.name == self.dtype:
            return array
        if isinstance(value, (np.ndarray, np.generic)):
            fits = np.can_cast(array.dtype, self.dtype, "safe")
        else:
            fits = array.size == 0 or bool(np.all(array.astype(self.dtype) == array))
        if not fits:
            raise RscanTypeError(
                f"{self!r} cannot hold a value of {array.dtype} without loss",
                code="E0506",
                labels=[(here(), ""), (self._v.span, "made here")],
                helps=[f'np.asarray(value, "{self.dtype}") converts'],
            )
        return array.astype(self.dtype)


Variable._shared_class = SharedVariable


def shared(
    value: Any,
    name: str | None = None,
    borrow: bool = False,
    shape: Sequence[int | None] | None = None,
    dtype: Any = None,
) -> SharedVariable:
    """A shared variable with a copy of `value`, of its dtype: int64 and float64 for Python numbers.

    Extents may change from one value to the next, except those that `shape` fixes.
    """
    return make_shared(SharedVariable, value, name, shape, dtype)


def make_shared(cls: type[SharedVariable], value: Any, name: str | None, shape: Any = None, dtype: Any = None) -> Any:
    """A shared variable of a class."""
    if isinstance(value, Variable):
        raise RscanTypeError("a shared variable holds numbers, not a variable", code="E0805", labels=[(here(), "")])
    if is_weak(value) and dtype is None:
        dtype = weak_dtype(value, None) if not isinstance(value, float) else "float64"
    array = np.asarray(value, dtype=dtype)
    if array.dtype.name not in DTYPES:
        raise RscanTypeError(f"a shared variable cannot hold {array.dtype}", code="E0805", labels=[(here(), "")])
    return adopt_shared(cls, _native.Shared(array, name, here(), None if shape is None else list(shape)))


def adopt_shared(cls: type[SharedVariable], native: _native.Shared) -> Any:
    """The Python object of a new shared variable."""
    out = cls(native)
    _known[(cls._family, out._v.key)] = out
    return out
