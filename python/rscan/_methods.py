"""The methods of variables, named as NumPy's: each is the function of that name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
