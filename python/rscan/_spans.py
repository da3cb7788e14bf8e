"""Where the user wrote something: the nearest line outside this package, and outside NumPy, which may have called it."""

from __future__ import annotations

import sys
from types import FrameType

from . import _native

_known: dict[tuple[str, int, str], int] = {}


def _is_ours(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__", "").partition(".")[0] in ("rscan", "numpy")


def frame_outside(depth: int = 1) -> FrameType | None:
    """The nearest frame that is not this package's, starting `depth` frames up."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None and _is_ours(frame):
        frame = frame.f_back
    return frame


def here() -> int:
    """The user's current line as a span of the core."""
    frame = frame_outside(2)
    if frame is None:
        return 0
    code = frame.f_code
    place = (code.co_filename, frame.f_lineno, code.co_name)
    span = _known.get(place)
    if span is None:
        span = _known[place] = _native.span(*place)
    return span


def of_function(function: object) -> int:
    """The line on which a Python function begins; 0 where it has none."""
    code = getattr(function, "__code__", None)
    return 0 if code is None else _native.span(code.co_filename, code.co_firstlineno, code.co_name)
