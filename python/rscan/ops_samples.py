"""Covariances, histograms, sums over intervals."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from ._args import at_least, one_axis, whole
from ._spans import here
from .errors import RscanTypeError, RscanValueError
from .indexing import take_along_axis
from .ops_create import linspace, zeros
from .ops_elementwise import cast, where
from .ops_reduce import _float, diff, max, min, sum
from .ops_search import searchsorted, sums_at
from .ops_shape import atleast_2d, broadcast_like, concatenate, expand_dims, ravel
from .variable import Variable, as_variable, elementwise, extent, operands

__all__ = ["corrcoef", "cov", "histogram", "histogram_bin_edges", "trapezoid"]


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
