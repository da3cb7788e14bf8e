"""Where another dtype comes from: what an error says of a loop whose step gives a state another dtype than it had."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

import numpy as np

from . import _native
from .errors import RscanError
from .variable import Variable

#: What the name of a row ends with, as the step sees it.
_ROW = re.compile(r"\[t[^]]*\]$")

#: Ops that make arrays of numbers.
_MAKERS = {"broadcast_to", "broadcast_like", "eye", "arange"}

#: How many values are named at most.
_NAMED = 3


def explain_dtype(error: RscanError, pairs: Sequence[tuple[str, Variable]]) -> None:
    """Says in an error which values bring the dtype in, and how each is cast. pairs: dtypes of states, and what the step makes of them."""
    want, made = next((pair for pair in pairs if pair[1].dtype != pair[0]), (None, None))
    if want is None or made is None:
        return
    got = made.dtype
    if not want.startswith("float") or np.promote_types(want, got) == want:
        error.notes, error.helps = [], [_of_states(want, got)]
        return
    found = _guilty(list(_origins(made._v, got)), want)[:_NAMED]
    error.notes = list(dict.fromkeys(f"{_what(v)} ({_place(v)}){_so(v, want, got)}" for v in found))
    casts = list(dict.fromkeys(cast for v in found if (cast := _cast(v, want))))
    error.helps = casts or [f'rs.cast(x, "{want}") of it in the step, or an initial state of {got}']


def _of_states(want: str, got: str) -> str:
    """Advice where no value that the step reads is at fault."""
    if (want, got) == ("float64", "float32"):
        return 'rs.cast(value, "float64") of what the step returns; or an initial state of float32: rs.zeros(…, dtype="float32")'
    if want == "bool" or (got.startswith("float") and not want.startswith("float")):
        zero = "0.0 in place of 0" if got.startswith("float") else "0 in place of False"
        return f'start from {got}: {zero}, or rs.cast(initial, "{got}"); a cast of the step\'s result to {want} would change its values'
    return f'rs.cast(value, "{want}") of what the step returns, or an initial state of {got}'


def _origins(made: _native.Var, dtype: str) -> Iterator[_native.Var]:
    """The values of a dtype that none of their inputs has, in the order in which the step reads them: none that was cast to another."""
    seen: set[tuple[int, int]] = set()
    waiting = [made]
    while waiting:
        v = waiting.pop()
        if v.key in seen:
            continue
        seen.add(v.key)
        before = [x for x in v.inputs if x.dtype == dtype] if v.kind == "apply" and v.op not in _MAKERS else []
        if not before:
            yield v
        waiting += reversed(before)


def _guilty(found: list[_native.Var], want: str) -> list[_native.Var]:
    """Those that bring the dtype in. Arithmetic casts what meets a wider array, and Python numbers take the dtype of what they meet: so
    casts count where nothing else does, and numbers where there are no casts."""
    casts = [v for v in found if v.op == "cast"]
    numbers = [v for v in found if v.kind == "const" and v.ndim == 0]
    others = [v for v in found if v not in casts and v not in numbers]
    wider = [v.inputs[0] for v in casts if v.inputs[0].dtype != want]
    return [x for v in others for x in _met(v, want)] or wider or casts or numbers


def _met(v: _native.Var, want: str) -> list[_native.Var]:
    """What has names of what meets in an op, of other dtypes than the state's; else the op."""
    named = [x for x in v.inputs if x.name and x.dtype != want] if v.kind == "apply" and v.op not in _MAKERS else []
    return named or [v]


def _what(v: _native.Var) -> str:
    """What a value is."""
    if v.op in _MAKERS:
        return f"the array that is made here is {v.dtype}"
    if v.kind == "apply" and v.name is None:
        return f"`{v.op}` of {' and '.join(dict.fromkeys(x.dtype for x in v.inputs)) or 'nothing'} gives {v.dtype}"
    if v.kind == "const" and v.name is None:
        return f"{'a constant array' if v.ndim else f'the constant {v.value.item()!r}'} is {v.dtype}"
    return f"`{v.describe()}` is {v.dtype}"


def _so(v: _native.Var, want: str, got: str) -> str:
    """What follows of a value's dtype."""
    return f", so the step gives {got}" if v.dtype == got else f", and with {want} that gives {got}"


def _cast(v: _native.Var, want: str) -> str | None:
    """How a value is cast, under a name of its own: what is named by an item or a field cannot always be assigned to."""
    if v.op in _MAKERS:
        return f'arrays of rs.zeros, rs.ones, rs.eye and others are float64 unless told: dtype="{want}", or rs.config.floatX'
    if v.kind == "const" and v.name is None:
        return f'rs.constant(array, dtype="{want}")' if v.ndim else f"{v.value.item()!r} alone, which takes the dtype of what it meets"
    if v.name is None:
        return None
    if row := _ROW.search(v.name):
        return f'make them agree in the step: rs.cast(row, "{want}") of the row of `{v.name[: row.start()]}`'
    name = v.name.rpartition(".")[2]
    return f'make them agree outside the loop: {name if name.isidentifier() else "x"} = rs.cast({v.name}, "{want}")'


def _place(v: _native.Var) -> str:
    place = _native.span_place(v.span)
    return "somewhere" if place is None else f"{os.path.basename(place[0])}:{place[1]}"
