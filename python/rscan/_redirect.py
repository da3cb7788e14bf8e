"""NumPy's functions and ufuncs, called with variables, lead to ours."""

from __future__ import annotations

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


def from_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """`np.exp(x)`, `np.ones(3) * x`, `np.add.reduce(x)`."""
    from . import ops

    name = ufunc.__name__
    if method == "reduce" and name in _REDUCTIONS:
        options.setdefault("axis", 0)
        known = {k: v for k, v in options.items() if k != "dtype" or name in ("add", "multiply")}
        return getattr(ops, _REDUCTIONS[name])(*inputs, **known)
    if method == "outer":
        raise UnsupportedError(f"np.{name}.outer of variables is not supported", code="E0813", labels=[(here(), "")])
    function = getattr(ops, name, None)
    if function is None or method != "__call__":
        raise UnsupportedError(f"np.{name} of variables is not supported", code="E0813", labels=[(here(), "")])
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
    from . import linalg, ops

    home: Any = linalg if "linalg" in function.__module__ else ops
    if function.__module__ == "numpy.fft":
        from . import fft as home
    ours = getattr(home, function.__name__, None)
    if ours is None or function.__name__ in NUMPY:
        table = LINALG if home is linalg else NUMPY
        helps = [table[function.__name__]] if function.__name__ in table else []
        raise UnsupportedError(f"np.{function.__name__} of variables is not supported", code="E0813", labels=[(here(), "")], helps=helps)
    return ours(*args, **options)
