"""`theano.compile.profiling`."""

from __future__ import annotations

import sys
from typing import IO, Any

from ...profile import Profile


class ProfileStats(Profile):
    """What `profile=True` gives, of a function or of a scan in it: times per loop and operation."""

    @property
    def fct_callcount(self) -> int:
        """Calls of the function."""
        return self.calls

    @property
    def message(self) -> str | None:
        """The name that was given."""
        return self.name

    def summary(self, file: IO[str] | None = None, *_: Any, **__: Any) -> None:
        """Prints the times, to stderr unless told otherwise."""
        print(self, file=file or sys.stderr)
