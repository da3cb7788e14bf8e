"""NumPy's functions and ufuncs, called with variables, lead to ours."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from ._instead import LINALG, NUMPY
from ._spans import here
from .errors import RscanTypeError, UnsupportedError

#: Reductions of ufuncs.
_REDUCTIONS = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "logical_and": "all",
    "logical_or": "any",
}

#: What there is in place of methods of ufuncs.
_RUNNING = {"add.accumulate": "cumsum", "multiply.accumulate": "cumprod", "logaddexp.reduce": "logsumexp"}


def from_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """`np.exp(x)`, `np.ones(3) * x`, `np.add.reduce(x)`."""
    ops = part("ops")
    name = ufunc.__name__
    if method == "reduce" and name in _REDUCTIONS:
        options.setdefault("axis", 0)
        known = {k: v for k, v in options.items() if k != "dtype" or name in ("add", "multiply")}
        return getattr(ops, _REDUCTIONS[name])(*inputs, **known)
    if method == "outer":
        raise UnsupportedError(f"np.{name}.outer of variables is not supported", code="E0813", labels=[(here(), "")])
    function = getattr(ops, name, None)
    if function is None or method != "__call__":
        called = name if method == "__call__" else f"{name}.{method}"
        helps = [f"rs.{_RUNNING[called]}(x)"] if called in _RUNNING else []
        raise UnsupportedError(f"np.{called} of variables is not supported", code="E0813", labels=[(here(), "")], helps=helps)
    if options:
        raise RscanTypeError(f"np.{name} of variables takes no `{next(iter(options))}`", code="E0809", labels=[(here(), "")])
    return function(*inputs)


def part(name: str) -> Any:
    """A module of this package that is imported where it is used, and does not stand among the functions of the package."""
    import importlib
    import sys

    package = __name__.rpartition(".")[0]
    there = f"{package}.{name}" in sys.modules
    module = importlib.import_module(f".{name}", package)
    if not there:
        vars(sys.modules[package]).pop(name, None)
    return module


def from_numpy_function(function: Any, args: Any, options: Any) -> Any:
    """`np.sum(x)`, `np.linalg.solve(a, b)`."""
    module = function.__module__
    of_linalg = "linalg" in module
    home = part("linalg" if of_linalg else "fft" if module == "numpy.fft" else "ops")
    ours = getattr(home, function.__name__, None)
    if ours is None or function.__name__ in NUMPY:
        table = LINALG if of_linalg else NUMPY
        helps = [table[function.__name__]] if function.__name__ in table else []
        raise UnsupportedError(f"np.{function.__name__} of variables is not supported", code="E0813", labels=[(here(), "")], helps=helps)
    try:
        return ours(*args, **_in_our_words(function, ours, options) if options else {})
    except TypeError as error:
        if isinstance(error, RscanTypeError) or "argument" not in str(error):
            raise
        text = f"np.{function.__name__} of variables: {error}"
        raise RscanTypeError(text, code="E0809", labels=[(here(), "")], helps=[_ARGUMENTS]) from None


_ARGUMENTS = "docs/absent.md lists the arguments of NumPy's that are not there"


def _in_our_words(function: Any, ours: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Named arguments by the names that parameters at their places have here: `np.sum(a=x)` is `rs.sum(x=x)`."""
    try:
        theirs, own = (list(inspect.signature(f).parameters) for f in (function, ours))
    except ValueError:
        return options
    names = {t: o for t, o in zip(theirs, own, strict=False) if t not in own and o not in theirs}
    return {names.get(name, name): value for name, value in options.items()}
