"""Variables that a caller fills, and arrays from nothing."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import ops
from ..._spans import here
from ...dtypes import dtype_name
from ...errors import RscanTypeError
from ...variable import Variable, apply
from ..config import config
from ..type import TensorType
from ..variable import as_tensor_variable, constant

PREFIXES = {
    "": None, "b": "int8", "w": "int16", "i": "int32", "l": "int64", "f": "float32", "d": "float64", "u": "uint8",
    "ub": "uint8", "uw": "uint16", "ui": "uint32", "ul": "uint64",
}  # fmt: skip

KINDS = {
    "scalar": (), "vector": (False,), "matrix": (False, False), "row": (True, False), "col": (False, True),
    "tensor3": (False,) * 3, "tensor4": (False,) * 4, "tensor5": (False,) * 5, "tensor6": (False,) * 6, "tensor7": (False,) * 7,
}  # fmt: skip


def tensor(dtype: Any = None, broadcastable: Any = (), name: str | None = None) -> Variable:
    """A variable of any dtype and broadcast pattern."""
    return TensorType(dtype_name(dtype, config.floatX), broadcastable)(name)


def TensorTypeOf(dtype: Any, broadcastable: Any) -> TensorType:
    """A type."""
    return TensorType(dtype, broadcastable)


def _one(word: str, pattern: tuple[bool, ...], dtype: str | None) -> Callable[..., Variable]:
    """The type where the dtype is fixed; else a function."""
    if dtype is not None:
        return TensorType(dtype, pattern)

    def function(name: Any = None, dtype: Any = None) -> Variable:
        return TensorType(dtype_name(dtype, config.floatX), pattern)(name)

    function.__name__ = function.__qualname__ = word
    function.__doc__ = f"A variable of floatX, broadcastable {pattern}, with an optional name."
    return function


def _several(one: Callable[..., Variable], word: str) -> Callable[..., Any]:
    def function(*names: Any, **options: Any) -> list[Variable]:
        if len(names) == 1 and isinstance(names[0], int):
            return [one(**options) for _ in range(names[0])]
        return [one(name, **options) for name in names]

    function.__name__ = function.__qualname__ = word
    function.__doc__ = "Several variables of one type, by names or by number."
    return function


CONSTRUCTORS: dict[str, Any] = {}
for _prefix, _dtype in PREFIXES.items():
    for _kind, _pattern in KINDS.items():
        _function = CONSTRUCTORS[_prefix + _kind] = _one(_prefix + _kind, _pattern, _dtype)
        _many = _prefix + ("matrices" if _kind == "matrix" else _kind + "s")
        CONSTRUCTORS[_many] = _several(_function, _many)


def shape_items(shape: Any) -> list[Variable]:
    """A shape as int64 scalars: a number, a variable (scalar or vector of known length), or a list of these."""
    if isinstance(shape, Variable):
        items = list(shape) if shape.ndim == 1 else [shape]
    elif isinstance(shape, (list, tuple)):
        items = [item for part in shape for item in (shape_items(part) if getattr(part, "ndim", 0) == 1 else [part])]
    else:
        items = list(np.atleast_1d(shape))
    number = lambda v: constant(np.int64(v) if isinstance(v, (int, np.integer)) else np.asarray(v))
    out = [v if isinstance(v, Variable) else number(v) for v in items]
    for v in out:
        if v.ndim or v.dtype[0] not in "iu":
            raise RscanTypeError(f"an extent is an integer scalar, not {v}", code="E0809", labels=[(here(), "")])
    return out


def alloc(value: Any, *shape: Any) -> Variable:
    """`value` broadcast to a shape. Axes of constant extent 1 are broadcastable."""
    items = shape_items(shape[0]) if len(shape) == 1 else shape_items(shape)
    return apply("broadcast_to", {}, as_tensor_variable(value), *items)


def zeros(shape: Any, dtype: Any = None) -> Variable:
    """An array of zeros."""
    return alloc(constant(0, dtype=dtype_name(dtype, config.floatX)), *shape_items(shape))


def ones(shape: Any, dtype: Any = None) -> Variable:
    """An array of ones."""
    return alloc(constant(1, dtype=dtype_name(dtype, config.floatX)), *shape_items(shape))


def zeros_like(model: Any, dtype: Any = None, opt: bool = False) -> Variable:
    """Zeros with the shape of the model."""
    return ops.zeros_like(as_tensor_variable(model), dtype)


def ones_like(model: Any, dtype: Any = None, opt: bool = False) -> Variable:
    """Ones with the shape of the model."""
    return ops.ones_like(as_tensor_variable(model), dtype)


def eye(n: Any, m: Any = None, k: Any = 0, dtype: Any = None) -> Variable:
    """A matrix with ones where column − row = k."""
    sizes = shape_items([n, n if m is None else m, k])
    return apply("eye", {"dtype": dtype_name(dtype, config.floatX)}, *sizes)


def identity_like(x: Any) -> Variable:
    """The identity with the extents of a matrix."""
    v = as_tensor_variable(x)
    return eye(v.shape[0], v.shape[1], dtype=v.dtype)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Variable:
    """start, start + step, … up to but without stop. Integers give int64."""
    if stop is None:
        start, stop = 0, start
    parts = [as_tensor_variable(v) for v in (start, stop, step)]
    if dtype is None:
        common = np.result_type(*(v.dtype for v in parts)).name
        dtype = common if common.startswith("float") else "int64"
    return apply("arange", {}, *[ops.cast(v, dtype) for v in parts])


def mgrid_axes(slices: Any) -> builtins.list[Variable]:
    """One grid per slice, as `numpy.mgrid`."""
    axes = [arange(s.start or 0, s.stop, s.step or 1) for s in slices]
    return [ops.expand_dims(a, tuple(j for j in range(len(axes)) if j != i)) for i, a in enumerate(axes)]


class _Grid:
    def __init__(self, sparse: bool) -> None:
        self._sparse = sparse

    def __getitem__(self, key: Any) -> Any:
        grids = mgrid_axes(key if isinstance(key, tuple) else (key,))
        return grids if self._sparse else ops.broadcast_arrays(*grids)


mgrid, ogrid = _Grid(False), _Grid(True)


def diag(v: Any, k: int = 0) -> Variable:
    """The diagonal of a matrix, or the matrix with a vector on its diagonal."""
    return ops.diag(as_tensor_variable(v), k)


def tri(n: Any, m: Any = None, k: int = 0, dtype: Any = None) -> Variable:
    """Ones at and below a diagonal."""
    return ops.tril(ones([n, n if m is None else m], dtype), k)


def tril(m: Any, k: int = 0) -> Variable:
    """With zeros above a diagonal."""
    return ops.tril(as_tensor_variable(m), k)


def triu(m: Any, k: int = 0) -> Variable:
    """With zeros below a diagonal."""
    return ops.triu(as_tensor_variable(m), k)


NAMES = [*CONSTRUCTORS, "tensor", "alloc", "zeros", "ones", "zeros_like", "ones_like", "eye", "identity_like", "arange", "mgrid",
         "ogrid", "diag", "tri", "tril", "triu"]  # fmt: skip
globals().update(CONSTRUCTORS)
