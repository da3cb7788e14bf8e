"""`theano.compile.nanguardmode`."""

from typing import Any

from .mode import Mode


class NanGuardMode(Mode):
    """A mode as any other: it guards against nothing."""

    def __init__(self, nan_is_error: Any = None, inf_is_error: Any = None, big_is_error: Any = None, **options: Any) -> None:
        super().__init__(**options)


__all__ = ["NanGuardMode"]
