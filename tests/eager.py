"""A thin eager array over rscan: each function of the array API standard, and each operator, is a compiled function of rscan, kept per
dtypes, numbers of axes and further arguments.

>>> from eager import Array, xp
>>> xp.sum(Array([[1.0, 2.0], [3.0, 4.0]]) + 1.0, axis=0).value
array([6., 8.])
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

import rscan as rs

DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")
#: What asks for known extents, since the number of results depends on them.
KNOWN = {"unstack"}

_compiled: dict[Any, Any] = {}


def of_parts(form: Any, change: Any) -> Any:
    """A form of lists, tuples and dicts, with `change` applied to what is none of them."""
    if isinstance(form, (list, tuple)):
        return type(form)(of_parts(part, change) for part in form)
    if isinstance(form, slice):
        return slice(*(of_parts(part, change) for part in (form.start, form.stop, form.step)))
    return {key: of_parts(part, change) for key, part in form.items()} if isinstance(form, dict) else change(form)


def computed(name: str, build: Any, args: Any, named: Any) -> Any:
    """What a function of rscan gives for arrays, as arrays: traced and compiled once per kind of arguments."""
    arrays: list[np.ndarray] = []

    def placed(part: Any) -> Any:
        if not isinstance(part, Array):
            return part
        arrays.append(part.value)
        return _Place(len(arrays) - 1)

    form = of_parts((args, named), placed)
    kinds = [(a.dtype.name, a.shape if name in KNOWN else a.ndim) for a in arrays]
    key = (name, repr(form), repr(kinds))
    if key not in _compiled:
        _compiled[key] = _compile(build, form, arrays, name in KNOWN)
    function, several = _compiled[key]
    found = function(*arrays)
    return tuple(Array(v) for v in found) if several else Array(found[0])


class _Place:
    """Where an array stands among the arguments."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __repr__(self) -> str:
        return f"<{self.number}>"


def _compile(build: Any, form: Any, arrays: list[np.ndarray], known: bool) -> tuple[Any, bool]:
    inputs = [rs.tensor(a.dtype, a.shape if known else (None,) * a.ndim) for a in arrays]
    args, named = of_parts(form, lambda part: inputs[part.number] if isinstance(part, _Place) else part)
    out = build(*args, **named)
    several = isinstance(out, (tuple, list))
    outputs = [rs.as_variable(v) for v in _flat(out)]
    return rs.function(inputs, outputs, on_unused_input="ignore"), several


def _flat(out: Any) -> list[Any]:
    return [v for part in out for v in _flat(part)] if isinstance(out, (tuple, list)) else [out]


def _operator(name: str, turned: bool = False) -> Any:
    function = getattr(operator, name)
    build = (lambda x, y: function(y, x)) if turned else function

    def method(self: Array, *others: Any) -> Any:
        return computed(f"operator {name} {turned}", build, (self, *others), {})

    return method


class Array:
    """An array that computes at once."""

    def __init__(self, value: Any) -> None:
        self.value = np.asarray(value)

    dtype = property(lambda self: self.value.dtype)
    shape = property(lambda self: self.value.shape)
    ndim = property(lambda self: self.value.ndim)
    size = property(lambda self: self.value.size)
    device = property(lambda self: "cpu")
    T = property(lambda self: computed("T", lambda x: x.T, (self,), {}))
    mT = property(lambda self: xp.matrix_transpose(self))

    def __array_namespace__(self, *, api_version: str | None = None) -> Namespace:
        return xp

    def __setitem__(self, key: Any, value: Any) -> None:
        self.value = computed("set", lambda x, key, value: x.at[key].set(value), (self, key, value), {}).value

    def __bool__(self) -> bool:
        return bool(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __index__(self) -> int:
        return operator.index(self.value)

    def __repr__(self) -> str:
        return f"Array({self.value!r})"


for _name in ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor", "lshift", "rshift"]:
    setattr(Array, f"__{_name.strip('_')}__", _operator(_name))
    setattr(Array, f"__r{_name.strip('_')}__", _operator(_name, True))
for _name in ["eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "abs", "invert", "getitem"]:
    setattr(Array, f"__{_name}__", _operator(_name))


class Namespace:
    """The standard's functions, as rscan has them under these names."""

    def __init__(self, module: Any, prefix: str = "") -> None:
        self._module, self._prefix = module, prefix
        if not prefix:
            self.linalg, self.fft = Namespace(rs.linalg, "linalg."), Namespace(rs.fft, "fft.")

    def __getattr__(self, name: str) -> Any:
        build = getattr(self._module, name)

        def function(*args: Any, **named: Any) -> Any:
            return computed(self._prefix + name, build, args, named)

        return function

    def asarray(self, value: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Array:
        return Array(np.array(value.value if isinstance(value, Array) else value, dtype=dtype, copy=copy))


xp: Any = Namespace(rs)
for _name in DTYPES:
    setattr(xp, _name, np.dtype(_name))
for _name in ["e", "inf", "nan", "newaxis", "pi", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]:
    setattr(xp, _name, getattr(np, _name))
