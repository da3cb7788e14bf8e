"""The methods of variables, named as NumPy's: each is the function of that name; and what wants a value, which no variable has."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from . import _instead
from ._redirect import part
from ._spans import here, unpacked
from .errors import RscanTypeError

if TYPE_CHECKING:
    import numpy as np

    from .variable import Variable

#: The module of functions: `variable` sets it once both exist, for functions need the class and methods the functions.
ops: Any = None


class Methods:
    """What a variable can do besides operators."""

    def sum(
        self, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
    ) -> Variable:
        return ops.sum(self, axis, dtype, out, keepdims, initial, where)

    def prod(
        self, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
    ) -> Variable:
        return ops.prod(self, axis, dtype, out, keepdims, initial, where)

    def mean(self, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, *, where: Any = None) -> Variable:
        return ops.mean(self, axis, dtype, out, keepdims, where=where)

    def var(
        self, axis: Any = None, dtype: Any = None, out: None = None, ddof: int = 0, keepdims: bool = False, *, where: Any = None
    ) -> Variable:
        return ops.var(self, axis, dtype, out, ddof, keepdims, where=where)

    def std(
        self, axis: Any = None, dtype: Any = None, out: None = None, ddof: int = 0, keepdims: bool = False, *, where: Any = None
    ) -> Variable:
        return ops.std(self, axis, dtype, out, ddof, keepdims, where=where)

    def max(self, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None) -> Variable:
        return ops.max(self, axis, out, keepdims, initial, where)

    def min(self, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None) -> Variable:
        return ops.min(self, axis, out, keepdims, initial, where)

    def any(self, axis: Any = None, out: None = None, keepdims: bool = False, *, where: Any = None) -> Variable:
        return ops.any(self, axis, out, keepdims, where)

    def all(self, axis: Any = None, out: None = None, keepdims: bool = False, *, where: Any = None) -> Variable:
        return ops.all(self, axis, out, keepdims, where)

    def argmax(self, axis: int | None = None, out: None = None, keepdims: bool = False) -> Variable:
        return ops.argmax(self, axis, out, keepdims)

    def argmin(self, axis: int | None = None, out: None = None, keepdims: bool = False) -> Variable:
        return ops.argmin(self, axis, out, keepdims)

    def cumsum(self, axis: int | None = None, dtype: Any = None) -> Variable:
        return ops.cumsum(self, axis, dtype)

    def cumprod(self, axis: int | None = None, dtype: Any = None) -> Variable:
        return ops.cumprod(self, axis, dtype)

    def sort(self, axis: int | None = -1, kind: str | None = None) -> Variable:
        return ops.sort(self, axis, kind)

    def argsort(self, axis: int | None = -1, kind: str | None = None) -> Variable:
        return ops.argsort(self, axis, kind)

    def partition(self, kth: Any, axis: int | None = -1) -> Variable:
        return ops.partition(self, kth, axis)

    def argpartition(self, kth: Any, axis: int | None = -1) -> Variable:
        return ops.argpartition(self, kth, axis)

    def searchsorted(self, v: Any, side: str = "left", sorter: Any = None) -> Variable:
        return ops.searchsorted(self, v, side, sorter)

    def norm(self, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Variable:
        return ops.linalg.norm(self, ord, axis, keepdims)

    def dot(self, other: Any) -> Variable:
        return ops.dot(self, other)

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Variable:
        return ops.trace(self, offset, axis1, axis2, dtype)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Variable:
        return ops.diagonal(self, offset, axis1, axis2)

    def reshape(self, *shape: Any, order: str = "C") -> Variable:
        return ops.reshape(self, shape[0] if len(shape) == 1 else shape, order)

    def ravel(self, order: str = "C") -> Variable:
        return ops.ravel(self, order)

    def flatten(self) -> Variable:
        return ops.ravel(self)

    def transpose(self, *axes: Any) -> Variable:
        return ops.transpose(self, axes[0] if len(axes) == 1 else axes or None)

    def swapaxes(self, axis1: int, axis2: int) -> Variable:
        return ops.swapaxes(self, axis1, axis2)

    def squeeze(self, axis: Any = None) -> Variable:
        return ops.squeeze(self, axis)

    def repeat(self, repeats: Any, axis: int | None = None) -> Variable:
        return ops.repeat(self, repeats, axis)

    def take(self, indices: Any, axis: int | None = None, mode: str = "raise") -> Variable:
        return ops.take(self, indices, axis, mode=mode)

    def clip(self, min: Any = None, max: Any = None) -> Variable:
        return ops.clip(self, min, max)

    def round(self, decimals: int = 0) -> Variable:
        return ops.round(self, decimals)

    def nonzero(self) -> tuple[Variable, ...]:
        return ops.nonzero(self)

    def astype(self, dtype: Any, *, copy: bool = True) -> Variable:
        return ops.astype(self, dtype, copy=copy)

    def copy(self) -> Variable:
        return ops.copy(self)

    def fill(self, value: Any) -> Variable:
        return ops.full_like(self, value)

    def eval(self, inputs: dict[Any, Any] | None = None) -> np.ndarray:
        """The value, given those of the inputs that it depends on: `y.eval({x: 3})`."""
        from .function import evaluate

        return evaluate(self, inputs)


def _part() -> Any:
    """What errors say, which is imported where one is raised."""
    return part("_valueless")


def _needs_value(x: Any, text: str, code: str, *helps: str | None) -> RscanTypeError:
    error: RscanTypeError = _part().needs_value(x, text, code, *helps)
    return error


class Valueless:
    """What Python and NumPy ask of numbers and arrays."""

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            raise part("_valueless").no_attribute(self, name)

    def __bool__(self: Any) -> NoReturn:
        compared = "; whether two variables are the same one is asked with `is`" if self._v.op in ("eq", "ne") else ""
        meant = part("_precedence").with_parentheses() if self.dtype == "bool" else None
        raise _needs_value(
            self,
            "has no truth value before the function runs",
            "E0801",
            f"use rs.where(condition, a, b) or rs.ifelse(condition, a, b); & | ~ in place of and, or, not{compared}",
            _part().in_place_of(("max", "min", "sorted", "any", "all")),
            None if meant is None else f"comparisons in a chain are written one by one: {meant}",
            _part().STATIC,
        )

    def __float__(self: Any) -> NoReturn:
        raise _needs_value(
            self, "has no value yet, so float() cannot give one", "E0802", _part().computed(self, "float"), *_instead.OF_FLOAT
        )

    def __int__(self: Any) -> NoReturn:
        converts = 'rs.cast(x, "int64") converts, and gives a variable'
        raise _needs_value(self, "has no value yet, so int() cannot give one", "E0802", _part().computed(self, "int"), converts)

    def __format__(self: Any, spec: str) -> str:
        if spec:
            raise _needs_value(
                self, f"has no value yet, so it cannot be written as {spec!r}", "E0802", _part().computed(self), _instead.OF_FORMAT
            )
        return str(self)

    def __index__(self: Any) -> NoReturn:
        raise _needs_value(self, "has no value yet, so it is no number of Python's", "E0802", *_instead.OF_INDEX, _part().STATIC)

    def __array__(self: Any, dtype: Any = None, copy: Any = None) -> NoReturn:
        if self._v.kind == "shared":
            raise _needs_value(self, "is a variable, not its value", "E0802", _part().computed(self))
        helps = _instead.of_array(sys._getframe(1).f_globals.get("__name__", ""))
        raise _needs_value(self, "has no value yet, so it cannot become a NumPy array", "E0802", _part().computed(self), *helps)

    def __len__(self: Any) -> int:
        if self.ndim == 0:
            raise RscanTypeError("a scalar has no len()", code="E0802", labels=[(here(), "")])
        if self._v.shape[0] is None:
            raise _needs_value(self, "has a first axis of unknown extent, so len() has no answer", "E0802", "use x.shape[0]")
        return self._v.shape[0]

    def __iter__(self: Any) -> Iterator[Variable]:
        if self.ndim == 0:
            raise RscanTypeError("a scalar cannot be iterated over", code="E0802", labels=[(here(), "")])
        if self._v.shape[0] is None:
            count = unpacked(sys._getframe(1))
            if count is not None:
                message = f"{count} names take the rows of {self}, which has another number of rows"
                rows = ops.assert_(self, ops.equal(self.shape[0], count), message=message)
                return (rows[i] for i in range(count))
            python = _part().in_place_of(("max", "min", "sum", "any", "all", "sorted"))
            helps = _instead.OF_ITERATION if python is None else [python]
            raise _needs_value(self, "has a first axis of unknown extent and cannot be iterated over", "E0802", *helps)
        return (self[i] for i in range(self._v.shape[0]))

    def __contains__(self: Any, item: Any) -> NoReturn:
        raise _needs_value(self, "has no values yet, so `in` has no answer", "E0802", "use rs.any(x == value)")
