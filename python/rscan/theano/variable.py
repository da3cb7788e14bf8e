"""Theano's variables: rscan's, with Theano's constants, promotion, checks and attributes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from .. import _native, ops
from .. import variable as base
from .._spans import here
from ..dtypes import DTYPES, as_array, dtype_name
from ..errors import RscanTypeError, RscanValueError
from ..shared import SharedVariable
from ..variable import Variable, apply, elementwise, wrap
from .config import _values as _settings
from .type import TensorType

_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


class TensorVariable(Variable):
    """A symbolic array as Theano has it."""

    def __new__(cls, native: Any) -> TensorVariable:
        """Constants are of a class of their own."""
        if cls is TensorVariable and isinstance(native, _native.Var) and native.kind == "const":
            return object.__new__(TensorConstant)
        return object.__new__(cls)

    def __init__(self, native: Any) -> None:
        super().__init__(native)
        mode = _settings["compute_test_value"]
        if mode != "off" and native.kind == "apply":
            from .check_values import check

            check(self, mode)

    # Attributes.

    @property
    def type(self) -> TensorType:
        """dtype and broadcast pattern."""
        return TensorType(self.dtype, self.broadcastable)

    @property
    def broadcastable(self) -> tuple[bool, ...]:
        """Which axes are known to have extent 1."""
        return tuple(n == 1 for n in self.static_shape)

    @property
    def owner(self) -> Any:
        """The application that computes it; None for what a caller gives."""
        from .gof.graph import owner_of

        return owner_of(self)

    @property
    def index(self) -> int | None:
        """Its position among the outputs of its owner."""
        from .gof.graph import index_of

        return index_of(self)

    @property
    def shape(self) -> Any:
        """The extents, an int64 vector that unpacks."""
        return shape_of(self)

    @property
    def size(self) -> Variable:
        """Number of elements."""
        return ops.prod(self.shape) if self.ndim else constant(np.int64(1))

    def __str__(self) -> str:
        if self.name:
            return self.name
        op = self._v.op
        return f"{op}.{self._v.index}" if op else f"<{self.type}>"

    def __repr__(self) -> str:
        return str(self)

    # What Python asks of objects.

    def __eq__(self, other: object) -> bool:  # type: ignore[override]
        return self is other or (isinstance(other, Variable) and self._v == other._v)

    def __ne__(self, other: object) -> bool:  # type: ignore[override]
        return not self == other

    def __hash__(self) -> int:
        return Variable.__hash__(self)

    def __bool__(self) -> bool:  # type: ignore[override]
        if self._v.op in _COMPARISONS:
            raise RscanTypeError(
                "variables do not support boolean operations: their values are not known yet", code="E0801", labels=[(here(), "")]
            )
        return True

    def __len__(self) -> NoReturn:
        raise RscanTypeError("a variable has no len(): its shape is symbolic; use x.shape[0]", code="E0802", labels=[(here(), "")])

    def __iter__(self) -> Iterator[Variable]:
        n = self.static_shape[0] if self.ndim else None
        if n is None or self._v.kind == "input":
            raise RscanValueError(
                "the length of this variable is not known: it cannot be iterated over", code="E0802", labels=[(here(), "")]
            )
        return (self[i] for i in range(n))

    def __contains__(self, item: Any) -> NoReturn:
        raise RscanValueError("a variable has no values yet, so `in` has no answer", code="E0802", labels=[(here(), "")])

    # Methods whose arguments or results differ from NumPy's.

    def __truediv__(self, other: Any) -> Variable:
        return true_div(self, other) if base.is_operand(other) else NotImplemented

    def __rtruediv__(self, other: Any) -> Variable:
        return true_div(other, self) if base.is_operand(other) else NotImplemented

    __div__ = __truediv__

    def __dot__(self, other: Any) -> Variable:
        return _T().dot(self, other)

    def __getitem__(self, key: Any) -> Variable:
        return ops.getitem(self, _plain_key(key))

    def sum(self, axis: Any = None, dtype: Any = None, keepdims: bool = False, acc_dtype: Any = None) -> Variable:  # type: ignore[override]
        return _T().sum(self, axis, dtype, keepdims)

    def prod(self, axis: Any = None, dtype: Any = None, keepdims: bool = False, acc_dtype: Any = None) -> Variable:  # type: ignore[override]
        return _T().prod(self, axis, dtype, keepdims)

    def mean(self, axis: Any = None, dtype: Any = None, keepdims: bool = False, acc_dtype: Any = None) -> Variable:  # type: ignore[override]
        return _T().mean(self, axis, dtype, keepdims=keepdims)

    def var(self, axis: Any = None, ddof: int = 0, keepdims: bool = False, corrected: bool = False) -> Variable:  # type: ignore[override]
        return _T().var(self, axis, ddof, keepdims)

    def std(self, axis: Any = None, ddof: int = 0, keepdims: bool = False, corrected: bool = False) -> Variable:  # type: ignore[override]
        return _T().std(self, axis, ddof, keepdims)

    def max(self, axis: Any = None, keepdims: bool = False) -> Variable:  # type: ignore[override]
        return _T().max(self, axis, keepdims)

    def min(self, axis: Any = None, keepdims: bool = False) -> Variable:  # type: ignore[override]
        return _T().min(self, axis, keepdims)

    def any(self, axis: Any = None, keepdims: bool = False) -> Variable:  # type: ignore[override]
        return ops.any(self, _axis(axis), keepdims=keepdims)

    def all(self, axis: Any = None, keepdims: bool = False) -> Variable:  # type: ignore[override]
        return ops.all(self, _axis(axis), keepdims=keepdims)

    def argmax(self, axis: Any = None, keepdims: bool = False) -> Variable:  # type: ignore[override]
        return _T().argmax(self, axis, keepdims)

    def argmin(self, axis: Any = None, keepdims: bool = False) -> Variable:  # type: ignore[override]
        return _T().argmin(self, axis, keepdims)

    def norm(self, L: Any = 2, axis: Any = None, keepdims: bool = False) -> Variable:  # type: ignore[override]
        return _T().norm(self, L, axis, keepdims)

    def ptp(self, axis: Any = None) -> Variable:
        return _T().ptp(self, axis)

    def flatten(self, ndim: int = 1) -> Variable:
        return _T().flatten(self, ndim)

    def reshape(self, shape: Any, ndim: int | None = None) -> Variable:  # type: ignore[override]
        return _T().reshape(self, shape, ndim)

    def dimshuffle(self, *pattern: Any) -> Variable:
        return _T().dimshuffle(self, pattern[0] if len(pattern) == 1 and isinstance(pattern[0], (list, tuple)) else pattern)

    def copy(self, name: str | None = None) -> Variable:
        out = ops.copy(self)
        if name is not None:
            out.name = name
        return out

    def fill(self, value: Any) -> Variable:
        return _T().fill(self, value)

    def clip(self, a_min: Any, a_max: Any) -> Variable:  # type: ignore[override]
        return _T().clip(self, a_min, a_max)

    def round(self, mode: Any = None) -> Variable:  # type: ignore[override]
        return _T().round(self, mode)

    def nonzero(self, return_matrix: bool = False) -> Any:
        return _T().nonzero(self, return_matrix)

    def nonzero_values(self) -> Variable:
        return _T().nonzero_values(self)

    def zeros_like(self, dtype: Any = None) -> Variable:
        return _T().zeros_like(self, dtype)

    def ones_like(self, dtype: Any = None) -> Variable:
        return _T().ones_like(self, dtype)

    def take(self, indices: Any, axis: int | None = None, mode: str = "raise") -> Variable:
        return _T().take(self, indices, axis, mode)

    def conj(self) -> Variable:
        return self

    def eval(self, inputs: dict[Any, Any] | None = None) -> np.ndarray:
        from .compile.function import evaluate

        return evaluate(self, inputs)

    def clone(self) -> Variable:
        return self.type(self.name)


class TensorConstant(TensorVariable):
    """A constant."""

    @property
    def data(self) -> np.ndarray:
        """Its value."""
        value = self._v.value
        assert value is not None
        return value

    value = data

    def get_scalar_constant_value(self) -> np.ndarray:
        return self.data

    def __str__(self) -> str:
        return self.name or f"TensorConstant{{{np.array2string(self.data, threshold=6)}}}"

    def __repr__(self) -> str:
        return str(self)

    def __iter__(self) -> Iterator[Variable]:
        return (constant(row) for row in self.data) if self.ndim else super().__iter__()


class ShapeVariable(TensorVariable):
    """The extents of a variable: a vector that also knows its elements."""

    _dims: list[Variable]

    def __iter__(self) -> Iterator[Variable]:
        return iter(self._dims)

    def __getitem__(self, key: Any) -> Variable:
        if isinstance(key, (int, np.integer)):
            return self._dims[key]
        if isinstance(key, slice) and all(k is None or isinstance(k, (int, np.integer)) for k in (key.start, key.stop, key.step)):
            return _vector_of(self._dims[key])
        return super().__getitem__(key)


def shape_of(x: Variable) -> Variable:
    """`x.shape`."""
    return _vector_of([_extent(x, i) for i in range(x.ndim)])


def _extent(x: Variable, axis: int) -> Variable:
    """As Theano's: also an extent that is known is of `x`, so that what `x` is made of counts as used."""
    if x._v.kind == "constant":
        return constant(np.int64(base.extent(x, axis)))
    return wrap(base.apply("dim", {"axis": axis}, x)._v, TensorVariable)


def _vector_of(dims: list[Variable]) -> Variable:
    if not dims:
        out = ShapeVariable(_native.constant(np.zeros(0, np.int64), here()))
    else:
        values = [d._v.value for d in dims]
        if all(v is not None for v in values):
            out = ShapeVariable(_native.constant(np.array(values, np.int64).reshape(-1), here()))
        else:
            out = ShapeVariable(ops.stack([wrap(d._v, TensorVariable) for d in dims])._v)
    out._dims = dims
    return out


TensorVariable._family = TensorVariable


class TensorSharedVariable(TensorVariable, SharedVariable):
    """A variable with a value."""

    def __init__(self, shared: _native.Shared) -> None:
        SharedVariable.__init__(self, shared)

    @property
    def container(self) -> Any:
        """Itself, with `.value`."""
        return self

    @property
    def value(self) -> np.ndarray:
        """A copy of the value."""
        return self.get_value()

    def set_value(self, value: Any, borrow: bool = False) -> None:
        """Replaces the value. dtype and number of axes stay as they are."""
        array = as_array(value)
        if array.ndim != self.ndim:
            raise RscanTypeError(f"{self} has {self.ndim} axes, the value {array.ndim}", code="E0506", labels=[(here(), "")])
        self._shared.set(np.ascontiguousarray(self._fitting(value)).reshape(array.shape))

    def zero(self, borrow: bool = False) -> None:
        """Sets all elements to 0."""
        self.set_value(np.zeros_like(self.get_value()))


TensorVariable._shared_class = TensorSharedVariable


# How values become variables.


def smallest_dtype(value: bool | int | float) -> str:
    """The dtype of a Python number: the smallest that holds it."""
    from .config import config

    if isinstance(value, float):
        if config.floatX == "float32" or np.float64(np.float32(value)) == value or value != value:
            return "float32"
        return "float64"
    for name in ("int8", "int16", "int32", "int64", "uint64"):
        limits = np.iinfo(name)
        if limits.min <= int(value) <= limits.max:
            return name
    raise RscanTypeError(f"{value} fits into no integer dtype", code="E0807", labels=[(here(), "")])


def as_tensor_variable(x: Any, name: str | None = None, ndim: int | None = None) -> Any:
    """`x` as a variable: itself, or a constant of it; lists with variables are stacked."""
    out = _converted(x)
    if ndim is not None and out.ndim != ndim:
        if out.ndim > ndim:
            raise RscanValueError(f"{out} has {out.ndim} axes, not {ndim}", code="E0809", labels=[(here(), "")])
        out = ops.expand_dims(out, tuple(range(ndim - out.ndim)))
    if name is not None:
        out.name = name
    return out


def _converted(x: Any) -> Variable:
    if isinstance(x, TensorConstant) and x.data is None:
        x = None
    if isinstance(x, TensorVariable):
        return x
    if isinstance(x, Variable):
        return wrap(x._v, TensorVariable)
    if hasattr(x, "_as_TensorVariable"):
        return x._as_TensorVariable()
    if isinstance(x, (list, tuple)) and _symbolic(x):
        return ops.stack(_promoted([_converted(v) for v in x]))
    if isinstance(x, np.ndarray) and x.dtype == object and any(isinstance(v, Variable) for v in x.flat):
        return _converted(x.tolist())
    if x is None or isinstance(x, (str, bytes, dict)) or callable(x):
        raise RscanTypeError(f"{x!r} cannot become a variable", code="E0805", labels=[(here(), "")])
    return constant(x)


def _symbolic(x: Any) -> bool:
    return isinstance(x, Variable) or (isinstance(x, (list, tuple)) and any(map(_symbolic, x)))


def _promoted(items: list[Variable]) -> list[Variable]:
    dtype = np.result_type(*(v.dtype for v in items)).name
    return [ops.cast(v, dtype) for v in items]


def constant(x: Any, name: str | None = None, ndim: int | None = None, dtype: Any = None) -> Any:
    """A constant of the smallest dtype that holds a number; arrays keep theirs."""
    if isinstance(x, Variable):
        raise RscanTypeError("a constant is made of numbers, not of variables", code="E0805", labels=[(here(), "")])
    if dtype is None and isinstance(x, (bool, int, float)) and not isinstance(x, np.generic):
        dtype = smallest_dtype(x)
    with np.errstate(over="ignore", invalid="ignore"):
        array = as_array(x, None if dtype is None else dtype_name(dtype))
    if array.size == 0 and not hasattr(x, "dtype") and dtype is None:
        array = array.astype(dtype_name("floatX"))
    if array.dtype.name not in DTYPES:
        raise RscanTypeError(
            f"{x!r} cannot become a constant: its dtype is {array.dtype}",
            code="E0805",
            labels=[(here(), "")],
            helps=[f"the dtypes of variables are {', '.join(DTYPES)}; complex numbers are kept in two arrays"],
        )
    if ndim is not None and array.ndim < ndim:
        array = array.reshape((1,) * (ndim - array.ndim) + array.shape)
    out = wrap(_native.constant(np.ascontiguousarray(array).reshape(array.shape), here()), TensorVariable)
    if name is not None:
        out.name = name
    return out


def true_div(a: Any, b: Any) -> Variable:
    """The quotient; of integers as floatX."""
    from .config import config

    first, second = as_tensor_variable(a), as_tensor_variable(b)
    if first.dtype[0] != "f" and second.dtype[0] != "f":
        first, second = ops.cast(first, config.floatX), ops.cast(second, config.floatX)
    return elementwise("div", first, second)


def _plain_key(key: Any) -> Any:
    """An index as the base takes it: NumPy integers and constants as they are."""
    if isinstance(key, tuple):
        return tuple(_plain_key(k) for k in key)
    if isinstance(key, np.ndarray) and key.ndim == 0:
        return int(key)
    return None if isinstance(key, TensorConstant) and key.data is None else key


def _axis(axis: Any) -> Any:
    """An axis as numbers."""
    if isinstance(axis, Variable):
        return int(axis._v.value) if axis._v.value is not None else axis
    if isinstance(axis, np.ndarray):
        return axis.tolist() if axis.ndim else int(axis)
    return axis


def _T() -> Any:
    from . import tensor

    return tensor


def _binary(op: str, a: Any, b: Any) -> Any:
    for v in (a, b):
        if isinstance(v, (complex, np.complexfloating)):
            constant(v)  # This says that there are no complex numbers.
    if not (base.is_operand(a) and base.is_operand(b)):
        return NotImplemented
    return elementwise(op, as_tensor_variable(a), as_tensor_variable(b))


def _operator(op: str, swapped: bool) -> Any:
    def method(self: Any, other: Any) -> Any:
        return _binary(op, other, self) if swapped else _binary(op, self, other)

    return method


for _name, _op in {
    "add": "add", "sub": "sub", "mul": "mul", "floordiv": "floordiv", "mod": "mod", "pow": "pow",
    "and": "bit_and", "or": "bit_or", "xor": "bit_xor", "lshift": "shift_left", "rshift": "shift_right",
}.items():  # fmt: skip
    setattr(TensorVariable, f"__{_name}__", _operator(_op, False))
    setattr(TensorVariable, f"__r{_name}__", _operator(_op, True))
for _name in ("lt", "le", "gt", "ge"):
    setattr(TensorVariable, f"__{_name}__", _operator(_name, False))


def _matmul(self: Any, other: Any) -> Any:
    return ops.matmul(self, as_tensor_variable(other)) if base.is_operand(other) else NotImplemented


def _rmatmul(self: Any, other: Any) -> Any:
    return ops.matmul(as_tensor_variable(other), self) if base.is_operand(other) else NotImplemented


TensorVariable.__matmul__ = _matmul  # type: ignore[method-assign]
TensorVariable.__rmatmul__ = _rmatmul  # type: ignore[method-assign]

__all__ = [
    "ShapeVariable",
    "TensorConstant",
    "TensorSharedVariable",
    "TensorVariable",
    "apply",
    "as_tensor_variable",
    "constant",
    "true_div",
]
