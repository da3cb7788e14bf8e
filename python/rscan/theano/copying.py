"""`copy.deepcopy` of variables: shared variables are copied with their values, and expressions follow them."""

from __future__ import annotations

import copy
from typing import Any

from .. import _native
from ..shared import make_shared
from ..variable import wrap
from .variable import TensorVariable


def copy_shared(v: Any, memo: dict[int, Any]) -> Any:
    """A shared variable of its own, with the same value; the same copy again within one deepcopy."""
    copies = memo.setdefault("rscan shared", {})  # type: ignore[call-overload]
    found = copies.get(v._shared.id)
    if found is None:
        found = copies[v._shared.id] = make_shared(type(v), v._shared.get(), v.name, v.static_shape)
        if getattr(v, "_keyed", False):
            found._keyed = True
        if v.default_update is not None:
            found.default_update = copy.deepcopy(v.default_update, memo)
    return found


def copy_variable(v: Any, memo: dict[int, Any]) -> Any:
    """The same expression of the copies of its shared variables; without shared variables itself."""
    pairs = []
    for leaf in _native.leaves([v._v], []):
        if leaf.kind == "shared":
            pairs.append((leaf, copy_shared(wrap(leaf, TensorVariable), memo)._v))
    if not pairs:
        return v
    return wrap(_native.substitute([v._v], pairs)[0], TensorVariable)
