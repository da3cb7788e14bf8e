"""Loops with a state that does not keep its broadcast pattern: they can be written down, but neither run nor differentiated."""

from __future__ import annotations

from typing import Any

from .. import _native
from .._tracing import Result
from ..errors import ScanTypeError
from ..variable import Variable, apply_all, wrap

#: What is wrong with such loops, by the numbers of the nodes of their outputs.
_refused: dict[int, ScanTypeError] = {}


def refusing(result: Result, fault: ScanTypeError) -> Result:
    """The loop, of which there are neither functions nor gradients."""

    def refuse(*_: Any) -> Any:
        raise fault

    outputs = []
    for out in result.outputs:
        op = _native.extern("inconsistent_loop", True, lambda types: types, refuse, refuse)
        (new,) = apply_all(op, {}, [out])
        new = wrap(new._v, out._family)
        _refused[new._v.key[0]] = fault
        outputs.append(new)
    result.outputs = outputs
    return result


def check_consistent(variables: list[Variable]) -> None:
    """Refuses expressions of loops with a state that does not keep its broadcast pattern."""
    if _refused:
        for v in _native.recent([v._v for v in variables], min(_refused)):
            if v.key[0] in _refused:
                raise _refused[v.key[0]]
