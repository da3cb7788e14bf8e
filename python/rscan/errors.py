"""The exceptions of rscan. Each has a code, whose page `error_page(code)` returns, and says where and what to do."""

from __future__ import annotations

import linecache
import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from . import _native
from ._spans import here

Label = tuple[str, int, str]


class RscanError(Exception):
    """The base of all. `labels` are `(file, line, remark)`, the first being where the error is reported.

    >>> try:
    ...     rs.constant([1.0, 2.0]) + rs.constant([1.0, 2.0, 3.0])
    ... except rs.RscanError as error:
    ...     print(error.code, error.title)
    E0201 shapes float64[2] and float64[3] do not broadcast together
    """

    title: str
    code: str
    labels: list[Label]
    notes: list[str]
    helps: list[str]

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
        # Whoever has no better place says where the user's program is.
        self.labels = [label for label in map(_resolve, list(labels) or [(here(), "")]) if label is not None]
        self.notes = list(notes)
        self.helps = list(helps)

    def __str__(self) -> str:
        return "\n".join([f"[{self.code}] {self.title}", *_details(self)])

    def render(self) -> str:
        """The whole text with the name of the class in front."""
        return "\n".join([f"{type(self).__name__}[{self.code}]: {self.title}", *_details(self)])

    def _rename(self, names: dict[str, str]) -> None:
        """Writes the keys of `names` as their values, wherever the text has them."""
        if not names:
            return
        known = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
        words = re.compile(rf'(?<![\w."\]])({known})(?!\w)')

        def told(text: str) -> str:
            return words.sub(lambda found: names[found[1]], text)

        self.title, self.notes, self.helps = told(self.title), [told(text) for text in self.notes], [told(text) for text in self.helps]
        self.labels = [(file, line, told(remark)) for file, line, remark in self.labels]

    def __reduce__(self) -> Any:
        return _rebuild, (type(self), self.title, self.code, self.labels, self.notes, self.helps)


def _rebuild(cls: type[RscanError], title: str, code: str, labels: Any, notes: Any, helps: Any) -> RscanError:
    error = cls(title, code=code, labels=labels, notes=notes, helps=helps)
    error.labels = labels
    return error


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
        lines.append(f"  --> {_called(file)}:{line}")
        lines += _source(error.labels)
    lines += [f"   = note: {note}" for note in error.notes]
    lines += [f"   = help: {help}" for help in error.helps]
    return lines


#: Lines that came with a program from a file, whose source need not be at hand: of those that errors have shown.
_TEXTS: dict[tuple[str, int], str] = {}


#: What is shown of a line.
_WIDEST = 120


def _line(file: str, line: int) -> str:
    text = (_TEXTS.get((file, line)) or linecache.getline(file, line)).rstrip()
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1].rstrip() + "…"


def _called(file: str) -> str:
    """What a file is called: its name, or, in a notebook, the number of its cell."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    cells = getattr(getattr(shell, "compile", None), "_filename_map", None)
    found = cells.get(file) if isinstance(cells, dict) else None
    return os.path.basename(file) if found is None else f"cell [{found}]"


def _source(labels: list[Label]) -> list[str]:
    """The labelled lines in source order, remarks aligned in one column."""
    home = labels[0][0]
    remarks: dict[tuple[str, int], list[str]] = {}
    for file, line, remark in sorted(labels, key=lambda label: label[:2]):
        known = remarks.setdefault((file, line), [])
        if remark and remark not in known:
            known.append(remark)
    rows = [(file, line, _line(file, line), "; ".join(words)) for (file, line), words in remarks.items()]
    gutter = max(len(str(row[1])) for row in rows)
    width = max((len(row[2]) for row in rows if row[3]), default=0)
    out = []
    for file, line, text, remark in rows:
        elsewhere = "" if file == home else f" ({_called(file)})"
        out.append(f"{line:>{gutter}} | {text:<{width}}   {remark}{elsewhere}".rstrip())
    return out


class RscanTypeError(RscanError, TypeError):
    """A dtype or number of axes that does not fit.

    >>> try:
    ...     rs.exp("text")
    ... except rs.RscanTypeError as error:
    ...     print(error.code, isinstance(error, TypeError))
    E0805 True
    """


class ShapeError(RscanError, ValueError):
    """Extents that do not fit.

    >>> try:
    ...     rs.reshape(np.zeros(3), (2, 2)).eval()
    ... except rs.ShapeError as error:
    ...     print(error.code, isinstance(error, ValueError))
    E0204 True
    """


class RscanValueError(RscanError, ValueError):
    """An argument out of its domain.

    >>> try:
    ...     rs.random.key(-1)
    ... except rs.RscanValueError as error:
    ...     print(error.title)
    a seed is at least 0 and less than 2**64, not -1
    """


class RscanIndexError(RscanError, IndexError):
    """An index outside its axis.

    >>> x, i = rs.dvector("x"), rs.lscalar("i")
    >>> try:
    ...     rs.function([x, i], x[i])([1.0], 5)
    ... except IndexError as error:
    ...     print(type(error).__name__, error.code)
    RscanIndexError E0202
    """


class AxisError(RscanError, ValueError, IndexError):
    """An axis that an array does not have.

    >>> try:
    ...     rs.sum(rs.dvector("x"), axis=3)
    ... except rs.AxisError as error:
    ...     print(error.code, error.title)
    E0810 there is no axis 3: its only axis is 0
    """

    default_code = "E0810"


class RscanOverflowError(RscanError, OverflowError):
    """A Python integer that its dtype cannot hold.

    >>> try:
    ...     rs.bvector("x") + 1000
    ... except rs.RscanOverflowError as error:
    ...     print(error.code)
    E0807
    """

    default_code = "E0807"


class ScanError(RscanError, ValueError):
    """The structure of a loop: arguments of scan, what its step returned.

    >>> try:
    ...     rs.scan(lambda: 1.0)
    ... except rs.ScanError as error:
    ...     print(error.code, error.title)
    E0110 nothing tells how many steps the loop runs
    """


class ScanTypeError(RscanError, TypeError, ValueError):
    """A loop state that changes its type.

    >>> try:
    ...     rs.scan(lambda h: rs.stack([h, h]), outputs_info=rs.constant(0.0), n_steps=2)
    ... except rs.ScanTypeError as error:
    ...     print(error.code)
    E0101
    """


class GradientError(RscanError, ValueError):
    """A gradient that does not exist.

    >>> try:
    ...     rs.grad(lambda n: n * 2.0)(3)
    ... except rs.GradientError as error:
    ...     print(error.code, error.title)
    E0401 `n` is int64: derivatives are taken with respect to floats
    """


class GradientCheckError(GradientError):
    """A gradient that differs from its finite differences.

    >>> wrong = lambda x: rs.sum(x * rs.stop_gradient(x))
    >>> try:
    ...     rs.verify_grad(wrong, [np.array([1.0, 2.0])])
    ... except rs.errors.GradientCheckError as error:
    ...     print(error.code)
    E0407
    """

    default_code = "E0407"


class NonScalarCostError(GradientError, TypeError):
    """The gradient of something that is not a scalar.

    >>> x = rs.dvector("x")
    >>> try:
    ...     rs.grad(x, x)
    ... except rs.NonScalarCostError as error:
    ...     print(error.code)
    E0401
    """


class DisconnectedInputError(RscanError, ValueError):
    """The gradient's input does not influence the cost.

    >>> x, y = rs.dscalars("x y")
    >>> try:
    ...     rs.grad(x**2, y)
    ... except rs.DisconnectedInputError as error:
    ...     print(error.code)
    E0402
    """


class LinAlgError(RscanError, np.linalg.LinAlgError):
    """A matrix without the property that its algorithm needs.

    >>> try:
    ...     rs.linalg.inv(np.zeros((2, 2))).eval()
    ... except np.linalg.LinAlgError as error:
    ...     print(type(error).__name__, error.code)
    LinAlgError E0601
    """


class FileError(RscanError, OSError):
    """A file that cannot be read or written.

    >>> try:
    ...     rs.save_params("no/such/folder/w", {"w": 1.0})
    ... except rs.FileError as error:
    ...     print(error.code)
    E0921
    """

    default_code = "E0921"


class RscanMemoryError(RscanError, MemoryError):
    """There is no memory for a result.

    >>> n = rs.lscalar("n")
    >>> try:
    ...     rs.function([n], rs.zeros(n))(2**60)
    ... except MemoryError as error:
    ...     print(type(error).__name__, error.code)
    RscanMemoryError E0392
    """

    default_code = "E0392"


class UnsupportedError(RscanError, NotImplementedError):
    """Something that rscan does not support.

    >>> issubclass(rs.UnsupportedError, NotImplementedError)
    True
    """


class DeviceError(RscanError, RuntimeError):
    """A device that is not there, lacks something, or failed.

    >>> try:
    ...     rs.function([], rs.constant(1.0), device="abacus")
    ... except rs.DeviceError as error:
    ...     print(error.code)
    E0521
    """

    default_code = "E0521"


class ParseError(RscanError, ValueError):
    """Text that does not parse or verify.

    >>> issubclass(rs.ParseError, rs.RscanError)
    True
    """


class InternalError(RscanError, RuntimeError):
    """A fault of rscan itself.

    >>> issubclass(rs.InternalError, RuntimeError)
    True
    """

    default_code = "E9999"


class MissingInputError(RscanValueError):
    """An output depends on an input that the function is not given.

    >>> x, y = rs.dscalars("x y")
    >>> try:
    ...     rs.function([x], x + y)
    ... except rs.MissingInputError as error:
    ...     print(error.code)
    E0501
    """

    default_code = "E0501"


class AssertionFailedError(RscanValueError, AssertionError):
    """An assertion of the user's does not hold.

    >>> try:
    ...     rs.assert_(rs.constant(1.0), rs.constant(False)).eval()
    ... except AssertionError as error:
    ...     print(type(error).__name__, error.code)
    AssertionFailedError E0301
    """

    default_code = "E0301"


class UnusedInputError(RscanValueError):
    """Nothing depends on an input of a function.

    >>> x, y = rs.dscalars("x y")
    >>> try:
    ...     rs.function([x, y], x)
    ... except rs.UnusedInputError as error:
    ...     print(error.code)
    E0507
    """

    default_code = "E0507"


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
    "FileError": FileError,
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
    labels: list[tuple[str, int, str | None, str]],
    notes: list[str],
    helps: list[str],
) -> RscanError:
    """The exception of a diagnostic of the core."""
    cls = CODES.get(code) or KINDS.get(kind, RscanError)
    places = [(file, line, remark) for file, line, _text, remark in labels]
    _TEXTS.update({(file, line): text for file, line, text, _remark in labels if text is not None})
    return cls(title, code=code, labels=places, notes=notes, helps=helps)


def error_page(code: str) -> str | None:
    """The page that explains an error code: cause, example, fix. `None` for an unknown code.

    >>> rs.error_page("E0401").splitlines()[0]
    '# E0401: the gradient of something that is not a float scalar'
    >>> rs.error_page("E") is None
    True
    """
    return _native.error_page(code)
