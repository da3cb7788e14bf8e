"""How far a call has come, on one line of the terminal: `progress=True`."""

from __future__ import annotations

import sys
from typing import Any

from ._spans import here
from .errors import RscanTypeError

#: Characters of the bar, and seconds before it appears: who waits less wants to see nothing.
WIDTH, PATIENCE = 30, 0.5


class Bar:
    """A bar of the steps of a loop, written over itself; it disappears where the call is over. Without a file it is on standard error, if
    that is a terminal or a notebook: a log has no use for it."""

    def __init__(self, file: Any = None) -> None:
        self._file, self._shown = file, False

    def __call__(self, done: int, steps: int | None, seconds: float) -> None:
        if seconds < PATIENCE or (self._file is None and not _overwrites(sys.stderr)):
            return
        self._shown = True
        self._write(f"\r{line(done, steps, seconds)}\x1b[K")

    def close(self) -> None:
        """Clears the line."""
        if self._shown:
            self._shown = False
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        file = self._file or sys.stderr
        file.write(text)
        file.flush()


def _overwrites(file: Any) -> bool:
    """True where a line can be written over itself: in a terminal, and below the cell of a notebook, which says that it is no terminal."""
    return file is not None and (file.isatty() or type(file).__module__.startswith("ipykernel"))


def line(done: int, steps: int | None, seconds: float) -> str:
    """What a bar shows."""
    if steps is None:
        return f"{done:,} steps, {seconds:.1f} s" if done else f"{seconds:.1f} s"
    full = WIDTH * done // steps
    left = f", {seconds / done * (steps - done):.1f} s left" if done else ""
    return f"[{'#' * full}{'.' * (WIDTH - full)}] {done:,} of {steps:,} steps, {seconds:.1f} s{left}"


def teller(progress: Any) -> Any:
    """The callable of a `progress=` argument, or None."""
    if progress is None or progress is False:
        return None
    if progress is True:
        return Bar()
    if not callable(progress):
        raise RscanTypeError(
            f"progress is True or a callable, not {progress!r}",
            code="E0809",
            labels=[(here(), "")],
            helps=["progress=lambda done, steps, seconds: …"],
        )
    return progress
