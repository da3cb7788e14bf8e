"""Variables and functions through pickle and copy.deepcopy.

An expression travels as text over its leaves; inputs and shared variables travel as objects, so that what is pickled
together keeps sharing them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _native
from .variable import Variable, wrap


def leaves_of(variables: Sequence[Variable], stop: Sequence[Variable] = ()) -> list[Variable]:
    """Inputs and shared variables that the variables depend on, and those of `stop` that they do."""
    found = _native.leaves([v._v for v in variables], [v._v for v in stop])
    family = next((v._family for v in variables), Variable)
    return [wrap(v, family) for v in found if v.kind != "const"]


def to_text(variables: Sequence[Variable], leaves: Sequence[Variable]) -> str:
    """Expressions as the text of a function of leaves."""
    return _native.to_text([v._v for v in variables], [v._v for v in leaves])


def from_text(text: str, leaves: Sequence[Variable], family: type[Variable]) -> list[Variable]:
    """The expressions of a text."""
    return [wrap(v, family) for v in _native.from_text(text, [v._v for v in leaves])]


def reduce_variable(v: Variable) -> Any:
    """How pickle stores a variable."""
    state = {key: value for key, value in v.__dict__.items() if key not in ("_v", "_origin", "_shared")}
    native = v._v
    if native.kind == "const":
        return _constant, (v._family, native.value, native.name), state
    if native.kind == "input":
        return _input, (v._family, native.dtype, native.shape, native.name), state
    if native.kind == "shared":
        assert native.shared is not None
        return _shared, (type(v), native.shared.get(), native.name, native.shape), state
    leaves = leaves_of([v])
    return _expression, (v._family, to_text([v], leaves), leaves, native.name), state


def _constant(family: type[Variable], value: Any, name: str | None) -> Variable:
    out = wrap(_native.constant(value), family)
    out.name = name
    return out


def _input(family: type[Variable], dtype: str, shape: Sequence[int | None], name: str | None) -> Variable:
    return wrap(_native.input(dtype, shape, name), family)


def _shared(cls: Any, value: Any, name: str | None, shape: Sequence[int | None]) -> Variable:
    from .shared import adopt_shared

    return adopt_shared(cls, _native.Shared(value, name, 0, shape))


def _expression(family: type[Variable], text: str, leaves: Sequence[Variable], name: str | None) -> Variable:
    (out,) = from_text(text, leaves, family)
    if name is not None and all(out is not leaf for leaf in leaves):
        out.name = name
    return out
