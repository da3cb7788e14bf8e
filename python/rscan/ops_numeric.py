"""More of NumPy's functions: differences over distances, counted bits, one more window, and values put at positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._args import axes_of, one_axis
from ._spans import here
from .errors import RscanTypeError, RscanValueError, ShapeError
from .indexing import take
from .ops_control import assert_
from .ops_create import arange
from .ops_elementwise import cast, clip, where
from .ops_math import _floats, diff
from .ops_shape import concatenate, moveaxis, ravel, reshape
from .variable import Variable, apply, as_variable, elementwise, extent, operands

__all__ = ["bitwise_count", "gradient", "i0", "kaiser", "nextafter", "put", "spacing"]


def bitwise_count(x: Any) -> Variable:
    """How many bits of the absolute value of integers are 1, as uint8.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `x` of another kind.

    >>> rs.bitwise_count([1, 7, -8]).eval()
    array([1, 3, 1], dtype=uint8)
    """
    v = as_variable(x)
    if v.dtype.startswith("float"):
        raise RscanTypeError(f"bitwise_count takes integers, got {v!r}", code="E0809", labels=[(here(), "")])
    n = cast(elementwise("abs", v) if v.dtype.startswith("int") else v, "uint64")
    if v.dtype.startswith("int"):
        n = n & np.uint64(2 ** (8 * np.dtype(v.dtype).itemsize) - 1)
    for shift, mask in ((1, 0x5555555555555555), (2, 0x3333333333333333), (4, 0x0F0F0F0F0F0F0F0F)):
        n = (n & np.uint64(mask)) + ((n >> np.uint64(shift)) & np.uint64(mask))
    for shift in (8, 16, 32):
        n = n + (n >> np.uint64(shift))
    return cast(n & np.uint64(0x7F), "uint8")


def _neighbour(size: Variable, away: Variable) -> Variable:
    """The float next to one that is not negative, away from 0 where that is wanted, else towards it.

    (Rump, Zimmermann, Boldo and Melquiond, "Computing predecessor and successor in rounding to nearest": what is added or taken is rounded
    to one unit of the last place. Small numbers are made large before, and the smallest ones have the distance of 0.)
    """
    info = np.finfo(size.dtype)
    unit, least = float(info.epsneg), float(info.smallest_subnormal)
    up = where(away, 1.0, -1.0).astype(size.dtype)
    small, tiny = size < least / unit / unit / 2, size < least / unit
    scaled = where(small, size / unit, size)
    step = up * (unit * (1 + 2 * unit) * scaled)
    found = where(small, (scaled + step) * unit, scaled + step)
    found = where(tiny, size + up * least, found)
    return where(elementwise("logical_and", size == np.inf, elementwise("logical_not", away)), float(info.max), found)


def nextafter(x1: Any, x2: Any) -> Variable:
    """The float next to x1 on the way to x2, which it is where both are equal; NaN where one is. Its slope is 1 by x1, and 0 by x2.

    errors: `RscanTypeError` (E0805) for what is no number or array; `ShapeError` (E0201) where shapes do not broadcast.

    >>> rs.nextafter(1.0, 2.0).eval() - 1.0
    np.float64(2.220446049250313e-16)
    """
    x, y = _floats(x1, x2)
    up = x < y
    size = elementwise("abs", x)
    signed = elementwise("copysign", _neighbour(size, elementwise("eq", up, elementwise("gt", x, 0))), x)
    least = as_variable(float(np.finfo(x.dtype).smallest_subnormal), x.dtype)
    found = where(elementwise("eq", x, 0), elementwise("copysign", least, y), signed)
    found = where(elementwise("isnan", x + y), x + y, where(elementwise("eq", x, y), y, found))
    found = where(elementwise("logical_and", elementwise("isinf", x), elementwise("isinf", y)), where(x == y, y, signed), found)
    return apply("grad_to", {}, found, x + 0 * y, as_variable(True))


def spacing(x: Any) -> Variable:
    """The distance of x to the float next to it, away from 0, with the sign of x; NaN of infinities. Its slope is 0.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.spacing([1.0, -1.0]).eval()
    array([ 2.22044605e-16, -2.22044605e-16])
    """
    v = as_variable(x)
    v = v if v.dtype.startswith("float") else cast(v, "float64")
    found = nextafter(v, where(v < 0, -np.inf, np.inf).astype(v.dtype)) - v
    return where(elementwise("isinf", v), np.nan, found).astype(v.dtype)


def i0(x: Any) -> Variable:
    """The modified Bessel function of the first kind and order 0; `rs.special` has its relatives.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.i0([0.0, 1.0]).eval().round(6)
    array([1.      , 1.266066])
    """
    from .special import i0 as of_special

    return of_special(x)


def kaiser(M: Any, beta: Any) -> Variable:
    """Kaiser's window.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `M` of another kind; `ShapeError` (E0201) where shapes do
    not broadcast.

    >>> rs.kaiser(3, 0.0).eval()
    array([1., 1., 1.])
    """
    n = cast(M, "int64")
    if n.ndim:
        raise RscanTypeError(f"kaiser takes a number of elements, got {n!r}", code="E0809", labels=[(here(), "")])
    half = elementwise("maximum", cast(n - 1, "float64"), 1.0) / 2.0
    # A window of one element is 1: its one place is the middle.
    away = (cast(arange(n), "float64") - cast(n - 1, "float64") / 2.0) / half
    return i0(beta * elementwise("sqrt", elementwise("maximum", 1 - away * away, 0.0))) / i0(cast(beta, "float64"))


def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> Variable:
    """The array with values at positions of the flattened array; values are repeated where there are fewer. Unlike NumPy's it gives a
    changed copy, and where a position occurs twice its value is one of them.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `ind` or `mode` of another kind; `RscanIndexError` (E0202)
    for an index outside its axis.

    >>> rs.put([[1, 2], [3, 4]], [0, -1], [8, 9]).eval()
    array([[8, 2],
           [3, 9]])
    """
    given, places, values = as_variable(a), ravel(as_variable(ind)), ravel(as_variable(v))
    if places.dtype.startswith("float") or mode not in ("raise", "wrap", "clip"):
        text = f"put takes integers as positions, and one of the modes raise, wrap and clip, got {places!r} and {mode!r}"
        raise RscanTypeError(text, code="E0809", labels=[(here(), "")])
    flat, places = ravel(given), cast(places, "int64")
    size = as_variable(extent(flat, 0))
    if mode == "wrap":
        places = places % size
    elif mode == "clip":
        places = clip(places, 0, size - 1)
    chosen = take(values, arange(extent(places, 0)) % as_variable(extent(values, 0)))
    return reshape(flat.at[places].set(cast(chosen, given.dtype)), given.shape)


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Slopes of sampled values along each axis: central differences, at the edges one-sided ones of order 1 or 2. For the derivative of a
    function see `rs.grad`.

    `varargs` are the distances of samples: one number for all axes, or for each axis a number or the vector of places. Of several axes it
    gives a tuple.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis`, `f` or `varargs` of another kind; `RscanValueError`
    (E0809) for `edge_order` out of range; `AxisError` (E0810) for an axis that is not there; `ShapeError` (E0201) where shapes do not
    broadcast; `AssertionFailedError` (E0301), when it runs, for another number of places than of samples.

    >>> rs.gradient([1.0, 4.0, 9.0]).eval()
    array([3., 4., 5.])
    >>> rs.gradient([1.0, 4.0, 9.0], [1.0, 2.0, 4.0]).eval().round(6)
    array([3.      , 2.833333, 2.5     ])
    """
    v = as_variable(f)
    v = v if v.dtype.startswith("float") else cast(v, "float64")
    if axis is None:
        axes = list(range(v.ndim))
    else:
        axes = [one_axis(k, v.ndim) for k in (axis if isinstance(axis, (tuple, list)) else (axis,))]
        axes_of(axis, v.ndim)
    if edge_order not in (1, 2):
        raise RscanValueError(f"edge_order is 1 or 2, not {edge_order!r}", code="E0809", labels=[(here(), "")])
    distances = list(varargs) or [1.0]
    if len(distances) == 1 and as_variable(distances[0]).ndim == 0:
        distances = distances * len(axes)
    if len(distances) != len(axes):
        raise RscanTypeError(f"gradient takes distances for {len(axes)} axes, got {len(distances)}", code="E0809", labels=[(here(), "")])
    found = [moveaxis(_slopes(moveaxis(v, k, 0), d, edge_order), 0, k) for k, d in zip(axes, distances, strict=True)]
    return found[0] if len(found) == 1 else tuple(found)


def _slopes(v: Variable, distance: Any, order: int) -> Variable:
    """Along the first axis."""
    n = v.static_shape[0]
    if n is not None and n <= order:
        text = f"gradient with edge_order={order} takes {order + 1} samples or more along an axis, got {n}"
        raise ShapeError(text, code="E0201", labels=[(here(), "")])
    d, _ = operands((distance, v))
    if d.ndim > 1:
        raise RscanTypeError(f"the places of samples are a vector, got {d!r}", code="E0809", labels=[(here(), "")])
    inner = v[2:], v[1:-1], v[:-2]
    if d.ndim == 0:
        middle = (inner[0] - inner[2]) / (2 * d)
        edges = _even_edges(v, d, order)
    else:
        d = assert_(d, elementwise("eq", d.shape[0], v.shape[0]), message="gradient takes as many places as samples")
        gaps = diff(d)
        middle = _parabola(*inner, *(reshape(g, [-1, *[1] * (v.ndim - 1)]) for g in (gaps[1:], gaps[:-1])))
        edges = _uneven_edges(v, gaps, order)
    return concatenate([edges[0][None], middle, edges[1][None]])


def _parabola(after: Variable, at: Variable, before: Variable, right: Variable, left: Variable) -> Variable:
    """The slope in the middle of three samples, by the parabola through them; of evenly spaced ones the plain difference."""
    return (left * left * after + (right * right - left * left) * at - right * right * before) / (left * right * (left + right))


def _even_edges(v: Variable, d: Variable, order: int) -> tuple[Variable, Variable]:
    if order == 1:
        return (v[1] - v[0]) / d, (v[-1] - v[-2]) / d
    return (2 * v[1] - 1.5 * v[0] - 0.5 * v[2]) / d, (1.5 * v[-1] - 2 * v[-2] + 0.5 * v[-3]) / d


def _uneven_edges(v: Variable, gaps: Variable, order: int) -> tuple[Variable, Variable]:
    if order == 1:
        return (v[1] - v[0]) / gaps[0], (v[-1] - v[-2]) / gaps[-1]
    return _edge(v[0], v[1], v[2], gaps[0], gaps[1]), -_edge(v[-1], v[-2], v[-3], gaps[-1], gaps[-2])


def _edge(a: Variable, b: Variable, c: Variable, near: Variable, far: Variable) -> Variable:
    """The slope at the first of three samples, going away from the edge."""
    both = near + far
    return -(near + both) / (near * both) * a + both / (near * far) * b - near / (far * both) * c
