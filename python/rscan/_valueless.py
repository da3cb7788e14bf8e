"""What needs a value does not work on a variable, and says what to do."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from . import _instead, _native
from ._precedence import with_parentheses
from ._redirect import part
from ._spans import here
from .errors import RscanTypeError

if TYPE_CHECKING:
    from .variable import Variable

_STATIC = "an argument that decides how the function is written: rs.compile(static=…) passes it as it is"

#: What NumPy's arrays have and variables have not, for they have no values.
_OF_VALUES = {"item": ".item()", "tolist": ".tolist()", "numpy": "", "tobytes": ".tobytes()", "to_numpy": ""}

#: Whether this thread traces a function, whose arguments have no values.
_tracing = threading.local()


@contextlib.contextmanager
def tracing() -> Iterator[None]:
    """While a function of variables is called to see what it computes."""
    before, _tracing.now = getattr(_tracing, "now", False), True
    try:
        yield
    finally:
        _tracing.now = before


def _value(x: Any) -> str | None:
    """What gives the value of a variable; None where it has none, in functions that are traced and in steps of loops."""
    if x._v.kind == "shared":
        return f"{x.name or 'x'}.get_value()"
    names = [v.name or "…" for v in _native.leaves([x._v], []) if v.kind == "input"]
    if getattr(_tracing, "now", False) or part("_tracing").step_indices() or any("[t" in name for name in names):
        return None
    own = x.name or ("y" if "x" in names else "x")
    return f"{own}.eval({{{', '.join(f'{name}: …' for name in names)}}})" if names else f"{own}.eval()"


def _computed(x: Any, number: str = "") -> str | None:
    """Advice on how to have the value of a variable, as a number of Python's if it is one."""
    value = _value(x)
    return None if value is None else f"{f'{number}({value})' if number and x.ndim == 0 else value} gives the value"


def needs_value(x: Any, text: str, code: str, *helps: str | None) -> RscanTypeError:
    """The error of what wants a value of a variable."""
    labels = [(here(), ""), (x._v.span, "made here")]
    # What is computed is no argument.
    fit = [help for help in helps if help and (help != _STATIC or (x._v.kind == "input" and x.ndim == 0))]
    return RscanTypeError(f"{x!r} {text}", code=code, labels=labels, helps=fit)


class Valueless:
    """What Python and NumPy ask of numbers and arrays."""

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            text = f"{type(self).__name__!r} object has no attribute {name!r}"
            if name in _OF_VALUES:
                value = _value(self)
                text += ": it has no value while a function is traced" if value is None else f": {value}{_OF_VALUES[name]} has the value"
            raise AttributeError(text, name=name, obj=self)

    def __bool__(self: Any) -> NoReturn:
        compared = "; whether two variables are the same one is asked with `is`" if self._v.op in ("eq", "ne") else ""
        meant = with_parentheses() if self.dtype == "bool" else None
        raise needs_value(
            self,
            "has no truth value before the function runs",
            "E0801",
            f"use rs.where(condition, a, b) or rs.ifelse(condition, a, b); & | ~ in place of and, or, not{compared}",
            None if meant is None else f"comparisons in a chain are written one by one: {meant}",
            _STATIC,
        )

    def __float__(self: Any) -> NoReturn:
        raise needs_value(self, "has no value yet, so float() cannot give one", "E0802", _computed(self, "float"), *_instead.OF_FLOAT)

    def __int__(self: Any) -> NoReturn:
        converts = 'rs.cast(x, "int64") converts, and gives a variable'
        raise needs_value(self, "has no value yet, so int() cannot give one", "E0802", _computed(self, "int"), converts)

    def __format__(self: Any, spec: str) -> str:
        if spec:
            raise needs_value(self, f"has no value yet, so it cannot be written as {spec!r}", "E0802", _computed(self), _instead.OF_FORMAT)
        return str(self)

    def __index__(self: Any) -> NoReturn:
        raise needs_value(self, "has no value yet, so it is no number of Python's", "E0802", *_instead.OF_INDEX, _STATIC)

    def __array__(self: Any, dtype: Any = None, copy: Any = None) -> NoReturn:
        if self._v.kind == "shared":
            raise needs_value(self, "is a variable, not its value", "E0802", _computed(self))
        helps = _instead.of_array(sys._getframe(1).f_globals.get("__name__", ""))
        raise needs_value(self, "has no value yet, so it cannot become a NumPy array", "E0802", _computed(self), *helps)

    def __len__(self: Any) -> int:
        if self.ndim == 0:
            raise RscanTypeError("a scalar has no len()", code="E0802", labels=[(here(), "")])
        if self._v.shape[0] is None:
            raise needs_value(self, "has a first axis of unknown extent, so len() has no answer", "E0802", "use x.shape[0]")
        return self._v.shape[0]

    def __iter__(self: Any) -> Iterator[Variable]:
        if self.ndim == 0:
            raise RscanTypeError("a scalar cannot be iterated over", code="E0802", labels=[(here(), "")])
        if self._v.shape[0] is None:
            raise needs_value(self, "has a first axis of unknown extent and cannot be iterated over", "E0802", *_instead.OF_ITERATION)
        return (self[i] for i in range(self._v.shape[0]))

    def __contains__(self: Any, item: Any) -> NoReturn:
        raise needs_value(self, "has no values yet, so `in` has no answer", "E0802", "use rs.any(x == value)")
