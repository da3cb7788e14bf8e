"""More of NumPy's functions: differences over distances, counted bits, one more window, values put at positions,
covariances, histograms, integrals."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from ._args import at_least, axes_of, one_axis, whole
from ._spans import here
from .errors import RscanTypeError, RscanValueError, ShapeError
from .indexing import take, take_along_axis
from .ops_control import assert_
from .ops_create import arange, linspace, zeros
from .ops_elementwise import cast, clip, where
from .ops_reduce import _float, diff, max, min, sum
from .ops_search import searchsorted, sums_at
from .ops_shape import atleast_2d, broadcast_like, concatenate, expand_dims, moveaxis, ravel, reshape
from .variable import Variable, as_variable, elementwise, extent, operands

__all__ = ["bitwise_count", "corrcoef", "cov", "gradient", "histogram", "histogram_bin_edges", "i0", "kaiser", "put", "trapezoid"]


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


# Of samples: covariances, histograms, sums over intervals.


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Variable:
    """The integral along an axis by the trapezoidal rule, over places x or with distance dx.

    rs.trapezoid(rs.sin(t), t)

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `y`, `axis` or `x` of another kind; `AxisError` (E0810) for
    an axis that is not there; `ShapeError` (E0201) where shapes do not broadcast.

    >>> rs.trapezoid([1.0, 2.0, 3.0], dx=0.5).eval()
    array(2.)
    """
    v = _float(at_least(y, 1, "trapezoid"), None)
    at = one_axis(axis, v.ndim)
    before = (builtins.slice(None),) * at
    if x is not None:
        places = as_variable(x)
        dx = diff(places) if places.ndim == 1 else diff(places, axis=at)
        dx = expand_dims(dx, tuple(i for i in range(v.ndim) if i != at)) if places.ndim == 1 else dx
    pairs = v[(*before, builtins.slice(1, None))] + v[(*before, builtins.slice(None, -1))]
    return sum(pairs * dx, at) * 0.5


# Covariances.


def cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None, fweights: Any = None, aweights: Any = None
) -> Variable:
    """The covariances of variables: rows of a matrix (columns with `rowvar=False`), of a vector one; those of y are more.

    Divided by the number of observations less `ddof`: 1, or 0 with `bias`. `fweights` count observations, `aweights` weigh them.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `m`, `y` or `ddof` of another kind; `ShapeError` (E0201)
    where shapes do not broadcast, (E0206) for arrays that do not fit each other.

    >>> rs.cov([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]).eval()
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    v = _variables(m, rowvar)
    if y is not None:
        v = concatenate([v, _variables(y, rowvar)], 0)
    v = _float(v, None)
    ddof = (0 if bias else 1) if ddof is None else whole(ddof, "ddof")
    weights = None
    for given in (fweights, aweights):
        if given is not None:
            weights = cast(given, v.dtype) if weights is None else weights * cast(given, v.dtype)
    if weights is None:
        n, w = extent(v, 1), None
        total: Any = cast(as_variable(n), v.dtype)
        middle = sum(v, 1, keepdims=True) / total
        freedom = total - ddof
    else:
        w = weights
        total = sum(w)
        middle = sum(v * w, 1, keepdims=True) / total
        freedom = total - ddof if aweights is None else total - ddof * sum(w * cast(aweights, v.dtype)) / total
    deviation = v - middle
    found = (deviation if w is None else deviation * w) @ deviation.T / elementwise("maximum", freedom, 0.0)
    return found[0, 0] if found.static_shape == (1, 1) else found


def _variables(m: Any, rowvar: bool) -> Variable:
    v = as_variable(m)
    if v.ndim > 2:
        raise RscanTypeError(f"cov takes a vector or a matrix, got {v!r}", code="E0809", labels=[(here(), "")])
    rows = atleast_2d(v)
    return rows if rowvar or v.ndim < 2 else rows.T


def corrcoef(x: Any, y: Any = None, rowvar: bool = True) -> Variable:
    """The correlations of variables, as `cov` takes them.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `x` or `y` of another kind; `ShapeError` (E0206) for arrays
    that do not fit each other.

    >>> rs.corrcoef([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]).eval()
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    c = cov(x, y, rowvar)
    if c.ndim == 0:
        return c / c
    spread = elementwise("sqrt", take_along_axis(c, _diagonal(c), 1)[:, 0])
    found = c / expand_dims(spread, 1) / expand_dims(spread, 0)
    return elementwise("minimum", elementwise("maximum", found, -1.0), 1.0)


def _diagonal(c: Variable) -> Variable:
    from .ops_create import arange

    return expand_dims(arange(extent(c, 0)), 1)


# Histograms.


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Variable:
    """The edges of bins: so many of equal width from the smallest to the largest element, or over a range; or those that are given.

    errors: `RscanTypeError` (E0805) for what is no number or array; `RscanValueError` (E0809) for `range` or `bins` out of range.

    >>> rs.histogram_bin_edges([0.0, 1.0, 4.0], bins=2).eval()
    array([0., 2., 4.])
    """
    v = ravel(as_variable(a))
    if isinstance(bins, str):
        raise RscanValueError("bins are a number or their edges", code="E0809", labels=[(here(), "")])
    if not isinstance(bins, (int, np.integer)):
        edges = as_variable(bins)
        if edges.ndim != 1:
            raise RscanValueError(f"bins are a number known now or a vector of edges, not {edges!r}", code="E0809", labels=[(here(), "")])
        return edges
    if bins < 1:
        raise RscanValueError(f"a histogram has 1 bin or more, not {bins}", code="E0809", labels=[(here(), "")])
    floats = _float(v, None)
    if range is None:
        empty = elementwise("eq", extent(v, 0), 0)
        low = min(concatenate([floats, broadcast_like(as_variable(np.inf, floats.dtype), zeros([1]))]))
        high = max(concatenate([floats, broadcast_like(as_variable(-np.inf, floats.dtype), zeros([1]))]))
        low, high = where(empty, 0.0, low), where(empty, 1.0, high)
    else:
        if not isinstance(range, (tuple, list)) or len(range) != 2:
            raise RscanValueError(f"a range is a pair of numbers, not {range!r}", code="E0809", labels=[(here(), "")])
        low, high = operands((range[0], range[1]))
    flat = elementwise("eq", low, high)
    return linspace(where(flat, low - 0.5, low), where(flat, high + 0.5, high), int(bins) + 1)


def histogram(a: Any, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None) -> tuple[Variable, Variable]:
    """How many elements are in each bin, or the sum of their weights, and the edges of the bins. The last edge belongs to the last bin.

    counts, edges = rs.histogram(x, bins=20, range=(0, 1))

    errors: `RscanTypeError` (E0805) for what is no number or array; `RscanValueError` (E0809) for `bins` out of range; `ShapeError` (E0201)
    where shapes do not broadcast; `RscanIndexError` (E0202) for an index outside its axis.

    >>> rs.eval(rs.histogram([1.0, 2.0, 1.0], bins=[0, 1, 2, 3]))
    [array([0, 2, 1]), array([0, 1, 2, 3])]
    """
    v = ravel(as_variable(a))
    edges = histogram_bin_edges(v, bins, range)
    n = extent(edges, 0) - 1
    place = searchsorted(edges, v, "right") - 1
    place = where(elementwise("eq", v, edges[-1]), n - 1, place)
    inside = elementwise("logical_and", elementwise("ge", place, 0), elementwise("lt", place, n))
    w = as_variable(1) if weights is None else ravel(as_variable(weights))
    # What is outside goes to one more bin, which is cut off.
    counts = sums_at(broadcast_like(w, place), where(inside, place, n), n + 1)[:-1]
    if density:
        counts = counts / diff(edges) / sum(counts)
    return counts, edges
