"""What functions can run on: `rs.devices()`."""

from __future__ import annotations

import dataclasses
from typing import Any

from . import _native
from ._native import DeviceArray
from ._spans import here
from .dtypes import as_array, described, no_array, what_to_do
from .errors import RscanTypeError, RscanValueError
from .variable import DTYPES

__all__ = ["Device", "DeviceArray", "devices", "to_device"]


@dataclasses.dataclass(frozen=True)
class Device:
    """A device of this machine.

    name: as `rs.function(..., device=name)` takes it. about: what it is, in words.
    software: it is a program that runs on the processor. lacks: what it does not compute, and why; empty where it computes everything.

    >>> all(isinstance(device, rs.Device) for device in rs.devices())
    True
    """

    name: str
    about: str
    software: bool
    lacks: list[str]

    def __str__(self) -> str:
        lacks = f"; lacks {', '.join(self.lacks)}" if self.lacks else ""
        return f"{self.name}: {self.about}{lacks}"


def devices() -> list[Device]:
    """The processor, and the graphics processors of this machine, real ones first. They are opened for it, which takes a moment.

    >>> isinstance(rs.devices(), (list, tuple))
    True
    """
    return [Device(*row) for row in _native.devices()]


def to_device(value: Any, device: str) -> DeviceArray:
    """A copy of an array in the memory of a device, of the same shape and dtype: bool, integers, float32, float64.

    value: an array, a number or a list, or a `DeviceArray`, which is handed on where it is there already.

    errors: `DeviceError` (E0521) where there is no such device; `RscanTypeError` (E0805) for what is no array of numbers; `RscanValueError`
    (E0809) for the processor; `MemoryError` (E0392) where the device has no memory for it.

    >>> for device in rs.devices()[1:]:
    ...     print(np.asarray(rs.to_device([1.0, 2.0], device.name)))
    ...     break
    ... else:
    ...     print("[1. 2.]")
    [1. 2.]
    """
    if not isinstance(value, DeviceArray):
        given = value
        try:
            value = as_array(given)
        except ValueError as error:
            raise no_array(f"{described(given)} cannot become an array", error, "E0805") from None
        if value.dtype.name not in DTYPES:
            text = f"a device holds no {value.dtype}"
            raise RscanTypeError(text, code="E0805", labels=[(here(), "")], helps=what_to_do(given, value))
    made = _native.to_device(value, device)
    if made is None:
        text = "the processor has no memory of its own to send an array to"
        raise RscanValueError(text, code="E0809", labels=[(here(), "")], helps=["NumPy's arrays are there"])
    return made
