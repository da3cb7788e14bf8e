"""`theano.compile.pfunc`: what a function is made of, before it is compiled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..._spans import here
from ...errors import RscanTypeError, RscanValueError
from ...shared import SharedVariable
from ...variable import Variable
from ..gof.graph import ancestors
from ..graph_tools import clone, replaced
from ..variable import as_tensor_variable
from .function import In, Out, Param, function

pfunc = function


def rebuild_collect_shared(
    outputs: Any,
    inputs: Any = None,
    replace: Any = None,
    updates: Any = None,
    rebuild_strict: bool = True,
    copy_inputs_over: bool = True,
    no_default_updates: Any = False,
) -> tuple[list[Any], Any, list[Any]]:
    """Copies of inputs and outputs with variables replaced, and the updates of the shared variables behind them.

    Returns (inputs, outputs, [copies, updates, pairs, shared]): what each variable became, a dict and a list of the updates, default
    ones included, and the shared variables.
    """
    given = list(inputs or ())
    for v in given:
        if isinstance(getattr(v, "variable", v), SharedVariable):
            raise RscanTypeError(f"{v} is shared and cannot be an input; `givens` replaces it", code="E0809", labels=[(here(), "")])
    pairs = list(replace.items() if isinstance(replace, Mapping) else replace or ())
    listed, single = _listed(outputs)
    table = _table(given, listed, pairs, rebuild_strict, copy_inputs_over)
    explicit = _explicit(updates)
    copies = {v: v for v in ancestors([*listed, *(getattr(v, "variable", v) for v in given)])}
    copies |= dict(zip(copies, replaced(list(copies), table), strict=True)) | table
    news = {k: copies.get(v, replaced(v, table)) for k, v in explicit.items()}
    shared = [v for v in copies if isinstance(v, SharedVariable) and v not in table]
    _add_defaults(news, shared, table, no_default_updates)
    ins = [v if hasattr(v, "variable") else copies.get(v, v) for v in given]
    outs: Any = [copies[v] for v in listed]
    return ins, outs[0] if single else outs, [copies, news, list(news.items()), shared]


def _listed(outputs: Any) -> tuple[list[Any], bool]:
    if outputs is None:
        return [], False
    items = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    for v in items:
        if not isinstance(v, (Variable, Out)):
            raise RscanTypeError(f"outputs are variables, or a list of them, not {v!r}", code="E0809", labels=[(here(), "")])
    return [getattr(v, "variable", v) for v in items], not isinstance(outputs, (list, tuple))


def _table(given: list[Any], outputs: list[Any], pairs: list[tuple[Any, Any]], strict: bool, share: bool) -> dict[Any, Any]:
    """What takes the place of what."""
    table = {old: clone(old, [(old, new)], strict) for old, new in pairs}
    if not share:
        leaves = [v for v in ancestors([*outputs, *table.values()]) if v.owner is None and v._v.kind == "input"]
        fresh = {v: v.type(v.name) for v in dict.fromkeys([*leaves, *(v for v in given if isinstance(v, Variable))]) if v not in table}
        table = {old: replaced(new, fresh) for old, new in table.items()} | fresh
    return table


def _explicit(updates: Any) -> dict[Any, Any]:
    out: dict[Any, Any] = {}
    for key, value in updates.items() if isinstance(updates, Mapping) else updates or ():
        if not isinstance(key, SharedVariable):
            raise RscanTypeError(f"{key} is updated, but it is not a shared variable", code="E0115", labels=[(here(), "")])
        if key in out:
            raise RscanValueError(f"{key} is updated twice", code="E0126", labels=[(here(), "")])
        out[key] = _of_type(value, key)
    return out


def _of_type(value: Any, like: Any) -> Any:
    v = as_tensor_variable(value)
    if v.ndim != like.ndim or not np.can_cast(v.dtype, like.dtype, "safe"):
        raise RscanTypeError(f"{like} is {like.type}, its update {v.type}", code="E0505", labels=[(here(), "")])
    return v if v.dtype == like.dtype else v.astype(like.dtype)


def _add_defaults(news: dict[Any, Any], shared: list[Any], table: dict[Any, Any], left_out: Any) -> None:
    """Adds the default updates of shared variables, and the shared variables behind them."""
    for v in [*news, *news.values()]:
        shared += [u for u in ancestors([v]) if isinstance(u, SharedVariable) and u not in shared]
    for v in shared:  # It grows meanwhile.
        wanted = left_out is not True and v not in (left_out or ())
        if v.default_update is not None and wanted and v not in news:
            news[v] = replaced(v.default_update, table)
            shared += [u for u in ancestors([news[v]]) if isinstance(u, SharedVariable) and u not in shared]


__all__ = ["In", "Param", "pfunc", "rebuild_collect_shared"]
