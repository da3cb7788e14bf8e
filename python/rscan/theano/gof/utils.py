"""`theano.gof.utils`."""

from typing import Any


class MethodNotDefined(NotImplementedError):
    """A method that an op does not have."""


def flatten(items: Any) -> list[Any]:
    """Nested lists as one list."""
    if isinstance(items, (list, tuple, set)):
        return [x for item in items for x in flatten(item)]
    return [items]


class scratchpad:
    """Takes any attribute."""
