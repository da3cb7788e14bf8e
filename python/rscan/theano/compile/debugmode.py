"""`theano.compile.debugmode`."""

from .mode import Mode


class DebugMode(Mode):
    """A mode as any other: results do not depend on it."""


__all__ = ["DebugMode"]
