"""`compute_test_value`: expressions are computed from `tag.test_value` of their inputs as they are made."""

from __future__ import annotations

import re
import threading
import warnings
from typing import Any

from .. import _native
from .._spans import here
from ..errors import RscanError

_state = threading.local()
_PLACEHOLDER = re.compile(r"\[t([+-]\d+)?\]$|^t$")


class MissingTestValueError(RscanError, AttributeError):
    """An input has no test value."""

    default_code = "E0802"


def check(v: Any, mode: str) -> None:
    """Computes the test value of a new expression; what fails is reported where the expression is made."""
    if mode not in ("raise", "warn", "ignore") or getattr(_state, "busy", False):
        return
    _state.busy = True
    try:
        _compute(v, mode)
    except MissingTestValueError:
        raise
    except RscanError as error:
        if mode == "raise":
            raise
        if mode == "warn":
            warnings.warn(f"the test value of {v} cannot be computed: {error}", stacklevel=4)
    finally:
        _state.busy = False


def _compute(v: Any, mode: str) -> None:
    from ..variable import wrap
    from .compile.function import function
    from .variable import TensorVariable

    given = {}
    for leaf in _native.leaves([v._v], []):
        if leaf.kind != "input":
            continue
        variable = wrap(leaf, TensorVariable)
        if hasattr(variable.tag, "test_value"):
            given[variable] = variable.tag.test_value
        elif mode == "raise" and not _PLACEHOLDER.search(leaf.name or "") and leaf.name is not None:
            raise MissingTestValueError(f"input {leaf.name} has no test value", labels=[(here(), ""), (leaf.span, "made here")])
        else:
            return
    v.tag.test_value = function(list(given), v, on_unused_input="ignore", no_default_updates=True)(*given.values())
