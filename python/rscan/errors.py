"""The exceptions of rscan. Each has a code, whose page `error_page(code)` returns, and says where and what to do."""

from __future__ import annotations

import linecache
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from . import _native

Label = tuple[str, int, str]


class RscanError(Exception):
    """The base of all. `labels` are `(file, line, remark)`, the first being where the error is reported."""

    #: Used where the error is raised without a code.
    default_code = "E0809"

    def __init__(
        self,
        title: str = "",
        *,
        code: str | None = None,
        labels: Iterable[Label | tuple[int, str]] = (),
        notes: Sequence[str] = (),
        helps: Sequence[str] = (),
    ) -> None:
        super().__init__(title)
        self.title = title
        self.code = code or self.default_code
        self.labels = [label for label in map(_resolve, labels) if label is not None]
        self.notes = list(notes)
        self.helps = list(helps)

    def __str__(self) -> str:
        return "\n".join([f"[{self.code}] {self.title}", *_details(self)])

    def render(self) -> str:
        """The whole text with the name of the class in front."""
        return "\n".join([f"{type(self).__name__}[{self.code}]: {self.title}", *_details(self)])

    def __reduce__(self) -> Any:
        return _rebuild, (type(self), self.title, self.code, self.labels, self.notes, self.helps)


def _rebuild(cls: type[RscanError], title: str, code: str, labels: Any, notes: Any, helps: Any) -> RscanError:
    return cls(title, code=code, labels=labels, notes=notes, helps=helps)


def _resolve(label: Any) -> Label | None:
    """A label given by a span of the core, as `(file, line, remark)`."""
    if len(label) == 3:
        return label
    place = _native.span_place(label[0])
    return None if place is None else (place[0], place[1], label[1])


def _details(error: RscanError) -> list[str]:
    lines = []
    if error.labels:
        file, line, _ = error.labels[0]
        lines.append(f"  --> {os.path.basename(file)}:{line}")
        lines += _source(error.labels)
    lines += [f"   = note: {note}" for note in error.notes]
    lines += [f"   = help: {help}" for help in error.helps]
    return lines


def _source(labels: list[Label]) -> list[str]:
    """The labelled lines in source order, remarks aligned in one column."""
    home = labels[0][0]
    remarks: dict[tuple[str, int], list[str]] = {}
    for file, line, remark in sorted(labels, key=lambda label: label[:2]):
        known = remarks.setdefault((file, line), [])
        if remark and remark not in known:
            known.append(remark)
    rows = [(file, line, linecache.getline(file, line).rstrip(), "; ".join(words)) for (file, line), words in remarks.items()]
    gutter = max(len(str(row[1])) for row in rows)
    width = min(110, max((len(row[2]) for row in rows if row[3]), default=0))
    out = []
    for file, line, text, remark in rows:
        elsewhere = "" if file == home else f" ({os.path.basename(file)})"
        out.append(f"{line:>{gutter}} | {text:<{width}}   {remark}{elsewhere}".rstrip())
    return out


class RscanTypeError(RscanError, TypeError):
    """A dtype or number of axes that does not fit."""


class ShapeError(RscanError, ValueError):
    """Extents that do not fit."""


class RscanValueError(RscanError, ValueError):
    """An argument out of its domain."""


class RscanIndexError(RscanError, IndexError):
    """An index outside its axis."""


class AxisError(RscanError, ValueError, IndexError):
    """An axis that an array does not have."""

    default_code = "E0810"


class RscanOverflowError(RscanError, OverflowError):
    """A Python integer that its dtype cannot hold."""

    default_code = "E0807"


class ScanError(RscanError, ValueError):
    """The structure of a loop: arguments of scan, what its step returned."""


class ScanTypeError(RscanError, TypeError, ValueError):
    """A loop state that changes its type."""


class GradientError(RscanError, ValueError):
    """A gradient that does not exist."""


class GradientCheckError(GradientError):
    """A gradient that differs from its finite differences."""

    default_code = "E0407"


class NonScalarCostError(GradientError, TypeError):
    """The gradient of something that is not a scalar."""


class DisconnectedInputError(RscanError, ValueError):
    """The gradient's input does not influence the cost."""


class LinAlgError(RscanError, np.linalg.LinAlgError):
    """A matrix without the property that its algorithm needs."""


class RscanMemoryError(RscanError, MemoryError):
    """There is no memory for a result."""

    default_code = "E0392"


class UnsupportedError(RscanError, NotImplementedError):
    """Something that rscan does not support."""


class DeviceError(RscanError, RuntimeError):
    """A device that is not there, lacks something, or failed."""

    default_code = "E0521"


class ParseError(RscanError, ValueError):
    """Text that does not parse or verify."""


class InternalError(RscanError, RuntimeError):
    """A fault of rscan itself."""

    default_code = "E9999"


class MissingInputError(RscanValueError):
    """An output depends on an input that the function is not given."""

    default_code = "E0501"


class AssertionFailedError(RscanValueError, AssertionError):
    """An assertion of the user's does not hold."""

    default_code = "E0301"


class UnusedInputError(RscanValueError):
    """Nothing depends on an input of a function."""

    default_code = "E0505"


#: Classes by the core's word for the kind of error.
KINDS: dict[str, type[RscanError]] = {
    "TypeError": RscanTypeError,
    "ShapeError": ShapeError,
    "ValueError": RscanValueError,
    "IndexError": RscanIndexError,
    "ScanError": ScanError,
    "ScanTypeError": ScanTypeError,
    "GradientError": GradientError,
    "DisconnectedInputError": DisconnectedInputError,
    "LinAlgError": LinAlgError,
    "MemoryError": RscanMemoryError,
    "UnsupportedError": UnsupportedError,
    "DeviceError": DeviceError,
    "ParseError": ParseError,
    "InternalError": InternalError,
}

#: Codes with a class of their own.
CODES: dict[str, type[RscanError]] = {"E0301": AssertionFailedError, "E0401": NonScalarCostError, "E0501": MissingInputError}


def _from_native(
    kind: str,
    code: str,
    title: str,
    labels: list[tuple[str, int, str, str]],
    notes: list[str],
    helps: list[str],
) -> RscanError:
    """The exception of a diagnostic of the core."""
    cls = CODES.get(code) or KINDS.get(kind, RscanError)
    places = [(file, line, remark) for file, line, _function, remark in labels]
    return cls(title, code=code, labels=places, notes=notes, helps=helps)


def error_page(code: str) -> str | None:
    """The page that explains an error code: cause, example, fix. `None` for an unknown code."""
    return _native.error_page(code)
