"""Where the user wrote something: the nearest line outside this package and the libraries that call functions they are given."""

from __future__ import annotations

import dis
import linecache
import os
import sys
from types import FrameType

from . import _native

_UNPACK = dis.opmap["UNPACK_SEQUENCE"]

_known: dict[tuple[str, int, str], int] = {}

#: Libraries that call rscan, or functions of rscan's, for the user.
_LIBRARIES = {"rscan", "numpy", "scipy", "pandas", "polars", "sklearn", "joblib"}

#: Whether the lines of a file are no user's, by the file and the library that its names belong to.
_skipped: dict[tuple[str, str], bool] = {}


#: The files of this package that have been met: most frames are theirs.
_own_files: set[str] = set()

_FOLDER = os.path.dirname(__file__) + os.sep


def _is_ours(frame: FrameType) -> bool:
    place = (frame.f_code.co_filename, frame.f_globals.get("__name__", "").partition(".")[0])
    found = _skipped.get(place)
    if found is None:
        found = _skipped[place] = place[1] in _LIBRARIES or _comes_with_python(*place) or frame.f_globals.get("__package__") == "rscan"
        if found and place[0].startswith(_FOLDER):
            _own_files.add(place[0])
    return found


def _comes_with_python(file: str, library: str) -> bool:
    """True for the standard library, and for the scripts that installing a package makes of its commands."""
    if file.startswith("<frozen "):
        return True
    if not os.path.isabs(file):
        return False
    folder = os.path.dirname(file)
    if library == "__main__" and (folder == os.path.dirname(sys.executable) or folder.endswith(".exe")):
        return True
    return folder.startswith(os.path.dirname(os.__file__)) and "-packages" not in folder


def frame_outside(depth: int = 1) -> FrameType | None:
    """The nearest frame that is not this package's, starting `depth` frames up."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None and (frame.f_code.co_filename in _own_files or _is_ours(frame)):
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


def line_here() -> str:
    """The text of the user's current line; empty where it is not at hand."""
    frame = frame_outside(2)
    return "" if frame is None else linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()


def of_function(function: object) -> int:
    """The line on which a Python function begins, of one that this package made the one that it was made of; 0 where it has none."""
    while hasattr(function, "__wrapped__") and getattr(function, "__globals__", {}).get("__package__") == "rscan":
        function = function.__wrapped__
    code = getattr(function, "__code__", None)
    return 0 if code is None else _native.span(code.co_filename, code.co_firstlineno, code.co_name)


def unpacked(frame: FrameType) -> int | None:
    """How many names `a, b, c = …` has, where that is what a frame is at; None elsewhere, and for `a, *b = …`."""
    code, at = frame.f_code.co_code, frame.f_lasti
    if code[at] != _UNPACK or (at >= 2 and code[at - 2] == dis.EXTENDED_ARG):
        return None
    return code[at + 1]
