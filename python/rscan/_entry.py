"""Functions of numbers as other libraries call them: by an address."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from ._spans import here
from .errors import RscanValueError

if TYPE_CHECKING:
    from . import _native

_CTYPES: dict[str, Any] = {"float64": ctypes.c_double, "float32": ctypes.c_float, "int64": ctypes.c_int64}
_DOUBLES = ctypes.POINTER(ctypes.c_double)


def as_ctypes(entry: _native.EntryPoint) -> Any:
    """A function object of ctypes, which keeps what it calls alive."""
    params, result = entry.dtypes
    return _kept(entry, ctypes.CFUNCTYPE(_CTYPES[result], *(_CTYPES[p] for p in params))(entry.address))


def as_lowlevel(entry: _native.EntryPoint, kind: str) -> Any:
    """A `scipy.LowLevelCallable`."""
    from scipy import LowLevelCallable

    context = ctypes.c_void_p(entry.context)
    if kind == "filter":
        window = ctypes.CFUNCTYPE(ctypes.c_int, _DOUBLES, ctypes.c_ssize_t, _DOUBLES, ctypes.c_void_p)(entry.window_address)
        return LowLevelCallable(_kept(entry, window), context, "int (double *, npy_intp, double *, void *)")
    if kind != "numbers":
        raise RscanValueError(f"kind is 'numbers' or 'filter', not {kind!r}", code="E0809", labels=[(here(), "")])
    listed = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int, _DOUBLES, ctypes.c_void_p)(entry.list_address)
    if len(entry.dtypes[0]) == 1:
        return LowLevelCallable(as_ctypes(entry))
    return LowLevelCallable(_kept(entry, listed), context, "double (int, double *, void *)")


def numba_signature(entry: _native.EntryPoint) -> Any:
    """The signature of numba's."""
    from numba import types

    params, result = entry.dtypes
    return getattr(types, result)(*(getattr(types, p) for p in params))


def _kept(entry: _native.EntryPoint, function: Any) -> Any:
    function.rscan_entry = entry
    return function
