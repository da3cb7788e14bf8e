"""Theano's gradients of extremes: of two that tie the first gets the whole gradient, of the elements of one array each of them; rscan's own
functions share it equally among them."""

from __future__ import annotations

from typing import Any

from ..._args import axes_of
from ...variable import Variable, apply, elementwise
from ..variable import _axis, as_tensor_variable


def _to(y: Variable, *pairs: Variable) -> Variable:
    """y; its gradient goes to each x where the condition behind it holds."""
    return apply("grad_to", {}, y, *pairs) if y.dtype.startswith("float") else y


def _greater_or_lesser(row: str, x: Any, y: Any) -> Variable:
    first, second = as_tensor_variable(x), as_tensor_variable(y)
    out = elementwise(row, first, second)
    taken = elementwise("eq", out, first)
    return _to(out, first, taken, second, elementwise("logical_not", taken))


def maximum(x: Any, y: Any) -> Variable:
    """The greater of x and y. Where they tie, x has the whole gradient."""
    return _greater_or_lesser("maximum", x, y)


def minimum(x: Any, y: Any) -> Variable:
    """The lesser of x and y. Where they tie, x has the whole gradient."""
    return _greater_or_lesser("minimum", x, y)


def clip(x: Any, min: Any, max: Any) -> Variable:
    """x, not less than min nor more than max. At a bound x has the whole gradient, and the bound none."""
    v, low, high = map(as_tensor_variable, (x, min, max))
    below, above = elementwise("lt", v, low), elementwise("gt", v, high)
    within = elementwise("logical_and", elementwise("ge", v, low), elementwise("le", v, high))
    return _to(elementwise("clip", v, low, high), v, within, low, below, high, above)


def _extreme(kind: str, x: Any, axis: Any, keepdims: bool) -> Variable:
    v = as_tensor_variable(x)
    axes = axes_of(_axis(axis), v.ndim)
    if not v.dtype.startswith("float"):
        return apply("reduce", {"kind": kind, "axes": axes, "keepdims": keepdims}, v)
    y = apply("reduce", {"kind": kind, "axes": axes, "keepdims": True}, v)
    y = _to(y, v, apply("extreme_mask", {"kind": kind, "axes": axes}, v))
    return y if keepdims or not axes else apply("squeeze", {"axes": axes}, y)


def max(x: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """The largest element. Each that ties has the whole gradient."""
    return _extreme("max", x, axis, keepdims)


def min(x: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """The smallest element. Each that ties has the whole gradient."""
    return _extreme("min", x, axis, keepdims)
