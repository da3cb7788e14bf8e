"""What errors say where a variable is taken for its value. `_methods.Valueless` raises them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from . import _instead, _native
from . import ops as _ops
from ._spans import here, line_here
from ._tracing import is_traced
from .errors import RscanTypeError

STATIC = "an argument that decides how the function is written: rs.compile(static=…) passes it as it is"

#: What NumPy's arrays have and variables have not, for they have no values.
_OF_VALUES = {"item": ".item()", "tolist": ".tolist()", "numpy": "", "tobytes": ".tobytes()", "to_numpy": ""}


def _value(x: Any) -> str | None:
    """What gives the value of a variable; None where it has none, in functions that are traced and in steps of loops."""
    if x._v.kind == "shared":
        return f"{x.name or 'x'}.get_value()"
    names = [v.name or "…" for v in _native.leaves([x._v], []) if v.kind == "input"]
    if is_traced() or any("[t" in name for name in names):
        return None
    own = x.name or ("y" if "x" in names else "x")
    return f"{own}.eval({{{', '.join(f'{name}: …' for name in names)}}})" if names else f"{own}.eval()"


def computed(x: Any, number: str = "") -> str | None:
    """Advice on how to have the value of a variable, as a number of Python's if it is one."""
    value = _value(x)
    return None if value is None else f"{f'{number}({value})' if number and x.ndim == 0 else value} gives the value"


def needs_value(x: Any, text: str, code: str, *helps: str | None) -> RscanTypeError:
    """The error of what wants a value of a variable."""
    labels = [(here(), ""), (x._v.span, "made here")]
    # What is computed is no argument.
    fit = [help for help in helps if help and (help != STATIC or (x._v.kind == "input" and x.ndim == 0))]
    return RscanTypeError(f"{x!r} {text}", code=code, labels=labels, helps=fit)


#: Python's functions that compare or add up values, where the user's line calls them.
_OF_PYTHON = re.compile(r"(?<![\w.])(max|min|sum|any|all|sorted)\(")

_THROUGH_ROWS = re.compile(r"\b(for|zip|enumerate|map)\b")


def in_place_of(names: Iterable[str]) -> str | None:
    """Advice where the user's line calls one of these functions of Python's."""
    line = line_here()
    # What goes through rows in another way, within the call, has advice of its own.
    called = [] if _THROUGH_ROWS.search(line) else [name for name in _OF_PYTHON.findall(line) if name in names]
    ours = {"max": "rs.maximum(a, b), or rs.max(x) of all", "min": "rs.minimum(a, b), or rs.min(x) of all", "sorted": "rs.sort(x)"}
    return f"{called[0]}() of Python wants values: {ours.get(called[0], f'rs.{called[0]}(x)')}" if called else None


def no_attribute(x: Any, name: str) -> AttributeError:
    """The error of an attribute that variables have not."""
    text = _instead.attribute(type(x).__name__, name, _ops)
    if name in _OF_VALUES:
        value = _value(x)
        text += ": it has no value while a function is traced" if value is None else f": {value}{_OF_VALUES[name]} has the value"
    return AttributeError(text, name=name, obj=x)
