"""What functions can run on: `rs.devices()`."""

from __future__ import annotations

import dataclasses

from . import _native

__all__ = ["Device", "devices"]


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
