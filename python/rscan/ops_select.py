"""Choices among arrays, and functions along axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ._args import axes_of, one_axis
from ._spans import here
from .errors import RscanTypeError, RscanValueError
from .indexing import _counting, nonzero, take
from .ops_control import assert_
from .ops_elementwise import cast, where
from .ops_reduce import all as _all
from .ops_shape import broadcast_like, expand_dims, moveaxis, ravel
from .variable import Variable, as_variable, elementwise, operands, result_dtype

__all__ = ["apply_along_axis", "apply_over_axes", "choose", "compress", "extract", "piecewise", "put_along_axis", "select"]


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Variable:
    """Elements of the first choice whose condition is true there, else the default.

    rs.select([x < 0, x < 1], [0.0, x**2], default=1.0)

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `condlist` of another kind; `RscanValueError` (E0809) for
    `condlist` or `choicelist` out of range; `ShapeError` (E0201) where shapes do not broadcast.

    >>> x = rs.as_variable([-2.0, 0.5, 3.0])
    >>> rs.select([x < 0, x < 1], [0.0, x], 1.0).eval()
    array([0. , 0.5, 1. ])
    """
    conditions, choices = list(condlist), list(choicelist)
    if len(conditions) != len(choices) or not conditions:
        text = f"select takes a choice for each condition, got {len(conditions)} conditions and {len(choices)} choices"
        raise RscanValueError(text, code="E0809", labels=[(here(), "")])
    values = operands([*choices, default])
    out = cast(values[-1], result_dtype(*values))
    for condition, choice in reversed(list(zip(conditions, values, strict=False))):
        flag = as_variable(condition)
        if flag.dtype != "bool":
            raise RscanTypeError(f"the conditions of select are truth values, not {flag!r}", code="E0809", labels=[(here(), "")])
        out = where(flag, choice, out)
    return out


def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **named: Any) -> Variable:
    """A function with pieces: where a condition is true what its function (or number) gives for x; the last true one counts.

    One function more than conditions is for where none is true, else that is 0. Every function is computed for all of x: a gradient that is
    not finite outside a function's own piece reaches x as NaN; `rs.where` around its argument keeps it away.

        rs.piecewise(x, [x < 0, x >= 0], [lambda x: -x, lambda x: x**2])

    errors: `RscanTypeError` (E0805) for what is no number or array; `RscanValueError` (E0809) for `condlist` or `funclist` out of range;
    `ShapeError` (E0201) where shapes do not broadcast.

    >>> rs.piecewise([-1.0, 2.0], [rs.as_variable([-1.0, 2.0]) < 0], [0.0, 1.0]).eval()
    array([0., 1.])
    """
    v = as_variable(x)
    conditions = list(condlist) if isinstance(condlist, (list, tuple)) else [condlist]
    functions = list(funclist)
    if len(functions) not in (len(conditions), len(conditions) + 1):
        text = f"{len(conditions)} conditions take as many functions or one more, not {len(functions)}"
        raise RscanValueError(text, code="E0809", labels=[(here(), "")])
    value = lambda f: cast(f(v, *args, **named) if callable(f) else f, v.dtype)
    out = broadcast_like(value(functions[len(conditions)] if len(functions) > len(conditions) else 0), v)
    for condition, f in zip(conditions, functions, strict=False):
        out = where(condition, value(f), out)
    return out


def choose(a: Any, choices: Any, out: None = None, mode: str = "raise") -> Variable:
    """Elements of the arrays whose numbers are given.

    A number without an array is an error, or is taken modulo ("wrap") or to the nearest ("clip").

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `a` of another kind; `RscanValueError` (E0809) for
    `choices` or `mode` out of range; `ShapeError` (E0201) where shapes do not broadcast; `AssertionFailedError` (E0301), when it runs, for
    a number that is none of the arrays.

    >>> rs.choose([0, 1], [[1, 2], [3, 4]]).eval()
    array([1, 4])
    """
    numbers = as_variable(a)
    if numbers.dtype[0] not in "iub":
        raise RscanTypeError(f"choose takes integers, not {numbers!r}", code="E0809", labels=[(here(), "")])
    items = list(choices)
    if any(map(callable, items)):
        raise RscanTypeError(
            "choose takes values, not functions",
            code="E0809",
            labels=[(here(), "")],
            helps=["rs.choose(k, [f(x), g(x)]) computes all of them; rs.ifelse(c, f(x), g(x)) computes the one that is taken alone"],
        )
    if mode not in ("raise", "wrap", "clip") or not items:
        raise RscanValueError(
            f"choose takes an array or more, and the modes raise, wrap and clip, not {mode!r}", code="E0809", labels=[(here(), "")]
        )
    numbers, n = cast(numbers, "int64"), len(items)
    if mode == "raise":
        fine = _all(elementwise("logical_and", elementwise("ge", numbers, 0), elementwise("lt", numbers, n)))
        numbers = assert_(numbers, fine, message=f"choose: a number that is not one of {n} arrays")
    numbers = numbers % n if mode == "wrap" else elementwise("minimum", elementwise("maximum", numbers, 0), n - 1)
    values = operands(items)
    found = cast(values[-1], result_dtype(*values))
    for i in reversed(range(n - 1)):
        found = where(elementwise("eq", numbers, i), values[i], found)
    return broadcast_like(found, elementwise("add", numbers, cast(found, "int64"))) if found.ndim < numbers.ndim else found


def compress(condition: Any, a: Any, axis: int | None = None) -> Variable:
    """The elements (or slices along an axis) where a vector of truth values is true.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `AxisError` (E0810) for an axis
    that is not there; `RscanIndexError` (E0202) for an index outside its axis.

    >>> rs.compress([True, False, True], [1, 2, 3]).eval()
    array([1, 3])
    """
    v = as_variable(a)
    v = ravel(v) if axis is None else v
    at = one_axis(0 if axis is None else axis, v.ndim)
    places = nonzero(cast(condition, "bool"))[0]
    return take(v, places, at)


def extract(condition: Any, arr: Any) -> Variable:
    """The elements where the condition is true, as a vector.

    errors: `RscanTypeError` (E0805) for what is no number or array; `RscanIndexError` (E0202) for an index outside its axis.

    >>> rs.extract([True, False, True], [1, 2, 3]).eval()
    array([1, 3])
    """
    return compress(ravel(as_variable(condition)), ravel(as_variable(arr)))


def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None) -> Variable:
    """The array with values at positions along an axis, for each place of the other axes. Unlike NumPy's it gives a changed copy.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `arr`, `indices` or `axis` of another kind; `AxisError`
    (E0810) for an axis that is not there; `ShapeError` (E0201) where shapes do not broadcast; `RscanIndexError` (E0803) for what is no
    index; `RscanTypeError` (E0804) for values of another dtype.

    >>> rs.put_along_axis([[1, 2], [3, 4]], [[0], [1]], 9, 1).eval()
    array([[9, 2],
           [3, 9]])
    """
    v, places = as_variable(arr), as_variable(indices)
    if axis is None:
        v, axis = ravel(v), 0
    at = one_axis(axis, v.ndim)
    if places.ndim != v.ndim:
        raise RscanTypeError(
            f"put_along_axis takes as many axes of positions as of the array, got {places!r}", code="E0809", labels=[(here(), "")]
        )
    return v.at[tuple(_counting(v, i) if i != at else places for i in range(v.ndim))].set(values)


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **named: Any) -> Any:
    """What a function of a vector gives for all vectors along an axis; its results lie along that axis.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `AxisError` (E0810) for an axis
    that is not there.

    >>> rs.apply_along_axis(lambda row: row / rs.sum(row), 1, [[1.0, 3.0], [2.0, 2.0]]).eval()
    array([[0.25, 0.75],
           [0.5 , 0.5 ]])
    """
    from .vmap import vmap

    v = as_variable(arr)
    at = one_axis(axis, v.ndim)
    f: Callable[..., Any] = lambda row: as_variable(func1d(row, *args, **named))
    for _ in range(v.ndim - 1):
        f = vmap(f)
    out = f(moveaxis(v, at, -1))
    extra = out.ndim - (v.ndim - 1)
    return moveaxis(out, tuple(range(v.ndim - 1, out.ndim)), tuple(range(at, at + extra))) if extra else out


def apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Variable:
    """What a function of an array and an axis gives, for one axis after the other; axes that it leaves away are kept with extent 1.

    errors: `RscanTypeError` (E0805) for what is no number or array; `AxisError` (E0810) for an axis that is not there.

    >>> rs.apply_over_axes(rs.sum, np.ones((2, 3)), [0, 1]).eval()
    array([[6.]])
    """
    v = as_variable(a)
    for axis in axes if isinstance(axes, (list, tuple, np.ndarray)) else [axes]:
        at = axes_of(int(axis), v.ndim)[0]
        found = as_variable(func(v, at))
        v = found if found.ndim == v.ndim else expand_dims(found, at)
    return v
