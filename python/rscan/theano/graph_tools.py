"""Replacing variables in expressions: `theano.clone`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import _native
from .._spans import here
from ..errors import RscanTypeError
from ..shared import SharedVariable
from ..variable import Variable, wrap
from .variable import TensorVariable, as_tensor_variable


def clone(output: Any, replace: Any = None, strict: bool = True, share_inputs: bool = True, copy_inputs: Any = None) -> Any:
    """A copy of an expression (or a list of them) in which variables are replaced.

    replace: a dict or pairs. strict: what replaces a variable must have its type; else the expression takes the types that follow.
    share_inputs: False makes new inputs, also in the place of what is replaced; shared variables are copied with their values.
    """
    if copy_inputs is not None:
        share_inputs = copy_inputs
    pairs = list(replace.items() if isinstance(replace, Mapping) else replace or ())
    for old, _ in pairs:
        if not isinstance(old, Variable):
            raise RscanTypeError(f"clone replaces variables, not {old!r}", code="E0809", labels=[(here(), "")])
    table: dict[Any, Any] = {old: _replacement(old, new, strict) if share_inputs else old.type() for old, new in pairs}
    outputs = list(output) if isinstance(output, (list, tuple)) else [output]
    outputs = [as_tensor_variable(v) for v in outputs]
    if not share_inputs:
        for leaf in _native.leaves([v._v for v in outputs], [k._v for k in table]):
            v = wrap(leaf, TensorVariable)
            if v not in table and leaf.kind != "const":
                table[v] = _copied(v)
    found = replaced(outputs, table)
    return found if isinstance(output, (list, tuple)) else found[0]


def _replacement(old: Variable, new: Any, strict: bool) -> Any:
    v = as_tensor_variable(new)
    if strict and (v.dtype != old.dtype or v.ndim != old.ndim):
        raise RscanTypeError(f"{old} is {old.dtype} of {old.ndim} axes, {v} is {v.dtype} of {v.ndim}", code="E0505", labels=[(here(), "")])
    return v


def _copied(v: Variable) -> Variable:
    if isinstance(v, SharedVariable):
        from ..shared import make_shared

        out = make_shared(type(v), v._shared.get(), v.name, v.static_shape)
        return out
    return v.type(v.name)  # type: ignore[attr-defined]


def replaced(outputs: Any, table: Mapping[Any, Any]) -> Any:
    """Expressions (one, a list, a dict) with variables replaced, all at once."""
    if outputs is None:
        return None
    if isinstance(outputs, Mapping):
        return dict(zip(outputs, replaced(list(outputs.values()), table), strict=True))
    if not isinstance(outputs, (list, tuple)):
        return replaced([outputs], table)[0]
    items = [as_tensor_variable(getattr(v, "variable", v)) for v in outputs]
    pairs = [(k._v, as_tensor_variable(v)._v) for k, v in table.items()]
    found = _native.substitute([v._v for v in items], pairs) if pairs else [v._v for v in items]
    return [wrap(v, TensorVariable) for v in found]
