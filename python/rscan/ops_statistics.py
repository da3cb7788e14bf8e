"""Reductions that leave NaN out, covariances, histograms, sums over intervals."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from ._args import at_least, no_out, one_axis, whole
from ._spans import here
from .errors import RscanTypeError, RscanValueError
from .indexing import take_along_axis
from .ops_create import linspace, zeros
from .ops_elementwise import cast, where
from .ops_elementwise import where as _where
from .ops_math import diff
from .ops_reduce import _ddof, _float, argmax, argmin, cumprod, cumsum, max, min, prod, sum
from .ops_search import searchsorted, sums_at
from .ops_shape import atleast_2d, broadcast_like, concatenate, expand_dims, ravel
from .variable import Variable, as_variable, elementwise, extent, operands

__all__ = [
    "corrcoef", "cov", "cumulative_prod", "cumulative_sum", "ediff1d", "histogram", "histogram_bin_edges", "nanargmax", "nanargmin",
    "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd", "nansum", "nanvar", "trapezoid",
]  # fmt: skip


# Without NaN.


def _instead(x: Any, value: float) -> tuple[Variable, Variable]:
    """x with a number for NaN, and where NaN was."""
    v = as_variable(x)
    if not v.dtype.startswith("float"):
        return v, broadcast_like(as_variable(False), v)
    nan = elementwise("isnan", v)
    return where(nan, as_variable(value, v.dtype), v), nan


def nansum(
    x: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Variable:
    """The sum of the elements that are not NaN, as `sum` takes it.

    errors: those of `sum`.

    >>> rs.nansum([np.nan, 1.0, 3.0]).eval()
    array(4.)
    """
    return sum(_instead(x, 0)[0], axis, dtype, out, keepdims, initial, where)


def nanprod(
    x: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Variable:
    """The product of the elements that are not NaN, as `prod` takes it.

    errors: those of `prod`.

    >>> rs.nanprod([np.nan, 2.0, 3.0]).eval()
    array(6.)
    """
    return prod(_instead(x, 1)[0], axis, dtype, out, keepdims, initial, where)


def nancumsum(x: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Variable:
    """`cumsum` with 0 for NaN.

    errors: those of `cumsum`.

    >>> rs.nancumsum([2.0, np.nan, 3.0]).eval()
    array([2., 2., 5.])
    """
    return cumsum(_instead(x, 0)[0], axis, dtype, out)


def nancumprod(x: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Variable:
    """`cumprod` with 1 for NaN.

    errors: those of `cumprod`.

    >>> rs.nancumprod([2.0, np.nan, 3.0]).eval()
    array([2., 2., 6.])
    """
    return cumprod(_instead(x, 1)[0], axis, dtype, out)


def _extreme(which: Any, worst: float, x: Any, axis: Any, out: None, keepdims: bool, initial: Any, where_: Any) -> Variable:
    no_out(out)
    v, nan = _instead(x, worst)
    if initial is not None or where_ is not None:
        return which(v, axis, keepdims=keepdims, initial=initial, where=where_)  # type: ignore[no-any-return]
    found = which(v, axis, keepdims=keepdims)
    if not v.dtype.startswith("float"):
        return found
    some = sum(cast(elementwise("logical_not", nan), "int64"), axis, keepdims=keepdims)
    return where(elementwise("gt", some, 0), found, np.nan)


def nanmax(x: Any, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None) -> Variable:
    """The largest of the elements that are not NaN; NaN where there are none. Of `initial`, too, and where `where` is true, as `max`.

    errors: those of `max`.

    >>> rs.nanmax([np.nan, 1.0, 3.0]).eval()
    array(3.)
    """
    return _extreme(max, -np.inf, x, axis, out, keepdims, initial, where)


def nanmin(x: Any, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None) -> Variable:
    """The smallest of the elements that are not NaN; NaN where there are none. Of `initial`, too, and where `where` is true, as `min`.

    errors: those of `min`.

    >>> rs.nanmin([np.nan, 1.0, 3.0]).eval()
    array(1.)
    """
    return _extreme(min, np.inf, x, axis, out, keepdims, initial, where)


def nanargmax(x: Any, axis: int | None = None, out: None = None, keepdims: bool = False) -> Variable:
    """The position of the first largest element that is not NaN; 0 where there is none.

    errors: those of `argmax`.

    >>> rs.nanargmax([np.nan, 1.0, 3.0]).eval()
    array(2)
    """
    return argmax(_instead(x, -np.inf)[0], axis, out, keepdims)


def nanargmin(x: Any, axis: int | None = None, out: None = None, keepdims: bool = False) -> Variable:
    """The position of the first smallest element that is not NaN; 0 where there is none.

    errors: those of `argmin`.

    >>> rs.nanargmin([np.nan, 1.0, 3.0]).eval()
    array(1)
    """
    return argmin(_instead(x, np.inf)[0], axis, out, keepdims)


def _counting(x: Any, dtype: Any, where_: Any) -> tuple[Variable, Variable]:
    """Floats with 0 for what does not count, NaN or where that is false; and what that is."""
    v, nan = _instead(_float(x, dtype), 0)
    if where_ is None:
        return v, nan
    out = broadcast_like(elementwise("logical_not", cast(where_, "bool")), v)
    return where(out, 0, v), elementwise("logical_or", nan, out)


def _numbers(nan: Variable, dtype: str, axis: Any, keepdims: bool) -> Variable:
    return sum(cast(elementwise("logical_not", nan), dtype), axis, keepdims=keepdims)


def nanmean(x: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, *, where: Any = None) -> Variable:
    """The mean of the elements (where `where` is true) that are not NaN; NaN where there are none.

    errors: those of `mean`.

    >>> rs.nanmean([np.nan, 1.0, 3.0]).eval()
    array(2.)
    """
    no_out(out)
    v, nan = _counting(x, dtype, where)
    return sum(v, axis, keepdims=keepdims) / _numbers(nan, v.dtype, axis, keepdims)


def nanvar(
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    mean: Any = None,
    correction: float | None = None,
) -> Variable:
    """The variance of the elements that are not NaN; NaN where there are not more than ddof. Arguments are those of `var`.

    errors: those of `var`.

    >>> rs.nanvar([np.nan, 1.0, 3.0]).eval()
    array(1.)
    """
    no_out(out)
    v, nan = _counting(x, dtype, where)
    n = _numbers(nan, v.dtype, axis, True)
    # A row of NaN alone has no middle, and its deviations, which are left out, must not be NaN in the gradient.
    none = elementwise("eq", n, 0)
    middle = sum(v, axis, keepdims=True) / _where(none, 1, n) if mean is None else mean
    deviation = _where(nan, 0, v - middle)
    n = _numbers(nan, v.dtype, axis, keepdims)
    found, ddof = sum(deviation * deviation, axis, keepdims=keepdims), _ddof(ddof, correction)
    enough = elementwise("gt", n, ddof)
    return _where(enough, found / _where(enough, n - ddof, 1), np.nan)


def nanstd(
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    mean: Any = None,
    correction: float | None = None,
) -> Variable:
    """The standard deviation of the elements that are not NaN. Arguments are those of `var`.

    errors: those of `std`.

    >>> rs.nanstd([np.nan, 1.0, 3.0]).eval()
    array(1.)
    """
    return elementwise("sqrt", nanvar(x, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction))


# Cumulation and differences.


def _cumulative(op: Any, first: int, x: Any, axis: int | None, dtype: Any, include_initial: bool) -> Variable:
    v = at_least(x, 1, "a cumulative function")
    if axis is None and v.ndim > 1:
        raise RscanValueError("of more than one axis, say which: axis=…", code="E0809", labels=[(here(), "")])
    at = one_axis(0 if axis is None else axis, v.ndim)
    found: Variable = op(v, at, dtype)
    if not include_initial:
        return found
    shape = list(v.shape)
    shape[at] = 1
    return concatenate([zeros(shape, found.dtype) + as_variable(first, found.dtype), found], at)


def cumulative_sum(x: Any, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Variable:
    """`cumsum` along an axis; with `include_initial`, a 0 comes first.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `x` or `axis` of another kind, (E0806) for a dtype that is
    not there; `RscanValueError` (E0809) for `x` out of range; `AxisError` (E0810) for an axis that is not there.

    >>> rs.cumulative_sum([1, 2, 3], include_initial=True).eval()
    array([0, 1, 3, 6])
    """
    return _cumulative(cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(x: Any, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Variable:
    """`cumprod` along an axis; with `include_initial`, a 1 comes first.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `x` or `axis` of another kind, (E0806) for a dtype that is
    not there; `RscanValueError` (E0809) for `x` out of range; `AxisError` (E0810) for an axis that is not there.

    >>> rs.cumulative_prod([1, 2, 3]).eval()
    array([1, 2, 6])
    """
    return _cumulative(cumprod, 1, x, axis, dtype, include_initial)


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Variable:
    """Differences of neighbours of the flattened array, with something put before and behind them.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.ediff1d([1, 4, 9], to_begin=0).eval()
    array([0, 3, 5])
    """
    steps = diff(ravel(as_variable(ary)))
    parts = [*([] if to_begin is None else [ravel(cast(to_begin, steps.dtype))]), steps]
    return concatenate([*parts, *([] if to_end is None else [ravel(cast(to_end, steps.dtype))])])


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
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
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
    v = _float(v, dtype)
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


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Variable:
    """The correlations of variables, as `cov` takes them.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `x` or `y` of another kind; `ShapeError` (E0206) for arrays
    that do not fit each other.

    >>> rs.corrcoef([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]).eval()
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    c = cov(x, y, rowvar, dtype=dtype)
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
