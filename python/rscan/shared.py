"""Shared variables: values that live between calls."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _native
from ._spans import here
from .dtypes import as_array, described, no_array, to_array, what_to_do
from .errors import RscanTypeError
from .variable import DTYPES, Variable, is_weak, known_as, weak_dtype, wrap


class _Note:
    """What is noted at the core's side of a shared variable, which expressions keep: from it the variable is made again where a
    program holds nothing but expressions of it, as a random stream is of which only draws are left."""

    def __init__(self, variable: SharedVariable) -> None:
        self.variable, self.cls = weakref.ref(variable), type(variable)
        #: True for the key of a random stream (`SharedVariable.keyed`).
        self.keyed = False
        #: `default_update`, and what stands in it for the variable itself: they would keep each other for ever.
        self.update: Any = None
        self.itself: _native.Var | None = None

    def set_update(self, variable: SharedVariable, value: Any) -> None:
        self.variable, self.cls = weakref.ref(variable), type(variable)
        self.update, self.itself = value, None
        if isinstance(value, Variable):
            native = variable._v
            self.itself = _native.input(native.dtype, native.shape, native.name, native.span)
            (self.update,) = _native.substitute([value._v], [(native, self.itself)])

    def update_of(self, variable: SharedVariable) -> Any:
        if self.itself is None:
            return self.update
        (value,) = _native.substitute([self.update], [(self.itself, variable._v)])
        return wrap(value, variable._family)


class SharedVariable(Variable):
    """A variable with a value, which functions read, and write where they update it.

    errors: `RscanTypeError` (E0809) where it is not made by `shared`; `set_value` raises (E0506) for values that do not fit.

    >>> s = rs.shared(1.0, name="s")
    >>> s.set_value(2.5)
    >>> s.get_value()
    array(2.5)
    """

    def __init__(self, shared: _native.Shared) -> None:
        if not isinstance(shared, _native.Shared):
            raise RscanTypeError("shared variables are made by rs.shared(value)", code="E0809", labels=[(here(), "")])
        super().__init__(shared.var)
        self._shared = shared
        self._default_update: Variable | None = None
        self._keyed = False
        if self._v.note is None:
            self._v.set_note(_Note(self))

    @classmethod
    def _adopt(cls, native: _native.Var) -> SharedVariable:
        """The Python object of a shared leaf found in a graph."""
        shared, note = native.shared, native.note
        assert shared is not None
        known = None if note is None else note.variable()
        if known is not None and (isinstance(known, cls) or known._default_update is not None):
            return known
        if known is not None or note is None:
            return cls(shared)
        out = note.cls(shared)
        note.variable = weakref.ref(out)
        out._default_update, out._keyed = note.update_of(out), note.keyed
        return out

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.default_update, self.keyed = self._default_update, self._keyed

    @property
    def default_update(self) -> Variable | None:
        """Its value after every call of a function that depends on it, unless the function says otherwise."""
        return self._default_update

    @default_update.setter
    def default_update(self, value: Variable | None) -> None:
        self._default_update = value
        self._v.note.set_update(self, value)

    @property
    def keyed(self) -> bool:
        """True for the key of a random stream, which advances once per call: steps fold their index into it instead."""
        return self._keyed

    @keyed.setter
    def keyed(self, keyed: bool) -> None:
        self._keyed = self._v.note.keyed = keyed

    @property
    def device(self) -> str | None:
        """The device where its values are kept; None: with the host."""
        return self._shared.device

    def get_value(self, borrow: bool = False, return_internal_type: bool = False) -> Any:
        """A copy of the value. return_internal_type: of a variable on a device the value there, an `rs.DeviceArray`, not copied."""
        there = self._shared.there() if return_internal_type else None
        return self._shared.get() if there is None else there

    def set_value(self, value: Any, borrow: bool = False) -> None:
        """Replaces the value by a copy. dtype and number of axes stay as they are; numbers and lists adapt if they survive.

        errors: `RscanTypeError` (E0506) for a value of another number of axes, or that its dtype does not hold.
        """
        self._shared.set(self._fitting(value))

    def _fitting(self, value: Any) -> Any:
        if isinstance(value, _native.DeviceArray) and value.dtype.name == self.dtype:
            return value
        try:
            array = as_array(value)
        except ValueError as error:
            raise no_array(f"{self!r} cannot hold {described(value)}", error, "E0506") from None
        if array.dtype.kind not in "biuf":
            text = f"{self!r} cannot hold {described(value)}: its dtype is {array.dtype}"
            raise RscanTypeError(text, code="E0506", labels=[(here(), ""), (self._v.span, "made here")], helps=what_to_do(value, array))
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
    device: str | None = None,
) -> SharedVariable:
    """A shared variable with a copy of `value`, of its dtype: int64 and float64 for Python numbers.

    Extents may change from one value to the next, except those that `shape` fixes.
    device: where its values are kept, updates among them: 'wgpu:0'. Functions on that device read and write them there. A pickle has the
    value with the host.

    errors: `RscanTypeError` (E0805) for what is no array of numbers; `set_value` raises it (E0506) for values that lose something.

    >>> s = rs.shared(np.zeros(2), name="s")
    >>> step = rs.function([], s.sum(), updates={s: s + 1})
    >>> step(), step()
    (array(0.), array(2.))
    >>> s.get_value()
    array([2., 2.])
    """
    return make_shared(SharedVariable, value, name, shape, dtype, device)


def make_shared(
    cls: type[SharedVariable], value: Any, name: str | None, shape: Any = None, dtype: Any = None, device: str | None = None
) -> Any:
    """A shared variable of a class."""
    if isinstance(value, Variable):
        raise RscanTypeError("a shared variable holds numbers, not a variable", code="E0805", labels=[(here(), "")])
    if is_weak(value) and dtype is None:
        dtype = weak_dtype(value, None) if not isinstance(value, float) else "float64"
    try:
        kept = isinstance(value, _native.DeviceArray) and dtype is None
        array = value if kept else as_array(value) if dtype is None else to_array(value, dtype)
    except ValueError as error:
        raise RscanTypeError(f"{described(value)} cannot become an array: {error}", code="E0805", labels=[(here(), "")]) from None
    if array.dtype.name not in DTYPES:
        text = f"a shared variable cannot hold {array.dtype}"
        raise RscanTypeError(text, code="E0805", labels=[(here(), "")], helps=what_to_do(value, array))
    return adopt_shared(cls, _native.Shared(array, name, here(), None if shape is None else list(shape), device))


def adopt_shared(cls: type[SharedVariable], native: _native.Shared) -> Any:
    """The Python object of a new shared variable."""
    return known_as(cls(native))
