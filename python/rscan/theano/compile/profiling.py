"""`theano.compile.profiling`."""

from typing import Any


class ProfileStats:
    """What `profile=True` gives: counts of calls."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.fct_callcount = 0
        self.message: str | None = None

    def summary(self, *_: Any, **__: Any) -> None:
        """Nothing to say."""
