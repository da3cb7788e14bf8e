"""Order statistics: quantiles, percentiles and medians, also without NaN."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._args import at_least, axes_of, no_out, one_axis
from ._spans import here
from .errors import RscanTypeError, RscanValueError
from .indexing import take, take_along_axis
from .ops_control import assert_
from .ops_elementwise import cast, where
from .ops_reduce import _float, argsort, cumsum, sort, sum
from .ops_shape import atleast_1d, broadcast_like, expand_dims, moveaxis, ravel, reshape
from .variable import Variable, as_variable, elementwise, extent, static_value

__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"]

#: Methods by the place n·q + a + q·(1 − a − b) − 1 of n elements that lie between two: a and b.
_BETWEEN = {
    "averaged_inverted_cdf": (0.0, 1.0),
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
_METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf", "closest_observation", *_BETWEEN)


def _rows(x: Variable, axis: Any) -> tuple[Variable, list[int]]:
    """The elements over axes along a last axis, and the axes."""
    axes = axes_of(axis, x.ndim)
    if not axes:
        raise RscanTypeError("order statistics are taken over one axis at least", code="E0809", labels=[(here(), "")])
    moved = moveaxis(x, tuple(axes), tuple(range(x.ndim - len(axes), x.ndim)))
    if len(axes) == 1:
        return moved, axes
    count: Any = 1
    for n in moved.shape[x.ndim - len(axes) :]:
        count = count * n
    return reshape(moved, [*moved.shape[: x.ndim - len(axes)], count]), axes


def _shares(q: Any, dtype: str) -> Variable:
    """Shares that are numbers in [0, 1], which is asked now or when the function runs."""
    share = as_variable(q, None if isinstance(q, Variable) else dtype)
    known = static_value(share)
    if known is not None and not np.all((known >= 0) & (known <= 1)):
        raise RscanValueError("quantiles are numbers in [0, 1]", code="E0809", labels=[(here(), "")])
    if known is None:
        fits = elementwise("logical_and", elementwise("le", 0, share), elementwise("le", share, 1))
        share = assert_(share, fits, message="quantiles are numbers in [0, 1]")
    return cast(share, dtype)


def _quantile(x: Any, q: Any, axis: Any, method: str, keepdims: bool, skips_nan: bool, weights: Any = None) -> Variable:
    v = atleast_1d(_float(at_least(x, 0, "quantile"), None))
    if method not in _METHODS:
        text = f"quantiles are found by the methods {', '.join(_METHODS)}, not by {method!r}"
        raise RscanValueError(text, code="E0809", labels=[(here(), "")])
    share = _shares(q, v.dtype)
    if share.ndim > 1:
        flat = _quantile(v, ravel(share), axis, method, keepdims, skips_nan, weights)
        return reshape(flat, [*share.shape, *flat.shape[1:]])
    rows, axes = _rows(v, axis)
    nan = elementwise("isnan", rows)
    at = expand_dims(share, tuple(range(rows.ndim - 1))) if share.ndim else share
    if weights is not None:
        found = _weighted(rows, _rows(_weights(weights, v, axis, method), axis)[0], nan, at)
    else:
        every = cast(as_variable(extent(rows, rows.ndim - 1)), v.dtype)
        some = sum(cast(elementwise("logical_not", nan), v.dtype), -1, keepdims=True) if skips_nan else every
        found = _at_share(sort(rows, -1), at, some, method)
    if not skips_nan:
        found = where(sum(cast(nan, "int64"), -1, keepdims=True) > 0, np.nan, found)
    out = moveaxis(found, -1, 0) if share.ndim else found[..., 0]
    return expand_dims(out, tuple(a + share.ndim for a in axes)) if keepdims else out


def _weights(weights: Any, v: Variable, axis: Any, method: str) -> Variable:
    """Weights of v's shape, given so or along one axis."""
    if method != "inverted_cdf":
        text = f"weights want the method 'inverted_cdf', not {method!r}"
        raise RscanValueError(text, code="E0809", labels=[(here(), "")], helps=['rs.quantile(x, q, weights=w, method="inverted_cdf")'])
    w = cast(weights, v.dtype)
    if w.ndim == 1 and v.ndim > 1:
        along = one_axis(axis, v.ndim)
        w = expand_dims(w, tuple(a for a in range(v.ndim) if a != along))
    return broadcast_like(w, v)


def _weighted(rows: Variable, weights: Variable, nan: Variable, share: Variable) -> Variable:
    """The first elements of rows up to which the weights are the shares of their sum, without those that are NaN."""
    order = argsort(rows, -1)
    so_far = cumsum(take_along_axis(where(nan, 0.0, weights), order, -1), -1)
    so_far = so_far / so_far[..., -1:]
    before = elementwise("lt", where(so_far == 0, -1.0, so_far)[..., None], share[..., None, :] if share.ndim else share)
    place = elementwise("minimum", sum(cast(before, "int64"), -2), extent(rows, rows.ndim - 1) - 1)
    return take_along_axis(take_along_axis(rows, order, -1), place, -1)


def _places(share: Variable, count: Variable, method: str) -> tuple[Variable, Variable, Variable]:
    """The places of two among so many elements, and that of the quantile, which lies between them."""
    if method in _BETWEEN:
        a, b = _BETWEEN[method]
        place = count * share + (a + share * (1 - a - b)) - 1
        low = elementwise("floor", place)
        return low, low + 1, place
    if method == "inverted_cdf":
        place = elementwise("ceil", count * share - 1)
    elif method == "closest_observation":
        place = count * share - 1.5
        low = elementwise("floor", place)
        place = where(elementwise("logical_and", elementwise("eq", place, low), elementwise("eq", low % 2, 1)), low, low + 1)
    else:
        place = elementwise("maximum", share * (count - 1), 0.0)
        place = elementwise("round", place) if method == "nearest" else place
    low, high = elementwise("floor", place), elementwise("ceil", place)
    return {"lower": (low, low, place), "higher": (high, high, place)}.get(method, (low, high, place))


def _at_share(ordered: Variable, share: Variable, count: Variable, method: str) -> Variable:
    """The elements of sorted rows at shares of the way from the first to the last of so many, along the last axis."""
    low, high, place = _places(share, count, method)
    inside = lambda p: cast(elementwise("maximum", elementwise("minimum", p, count - 1), 0.0), "int64")
    first, second = (_elements(ordered, inside(p)) for p in (low, high))
    if method == "midpoint":
        return (first + second) * 0.5
    if method == "averaged_inverted_cdf":
        return where(elementwise("eq", place, low), (first + second) * 0.5, second)
    if method != "linear" and method not in _BETWEEN:
        return first
    part = place - low
    # As NumPy: from the nearer end, so that both ends are met.
    step = where(elementwise("logical_or", elementwise("eq", part, 0), elementwise("eq", inside(low), inside(high))), 0.0, second - first)
    return where(elementwise("lt", part, 0.5), first + step * part, second - step * (1 - part))


def _elements(ordered: Variable, places: Variable) -> Variable:
    """Elements of rows: the same of all, or of each its own."""
    places = atleast_1d(places)
    if ordered.ndim == 1 or all(n == 1 for n in places.static_shape[:-1]):
        return take(ordered, ravel(places), axis=-1)
    return take_along_axis(ordered, places, -1)


def quantile(
    x: Any,
    q: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Variable:
    """The elements at shares q, in [0, 1], of the way from the smallest to the largest, over axes; NaN where there is one.

    Between two elements it is on the line through both, or as `method` says, which is one of NumPy's thirteen. An array of shares gives
    first axes. `weights` of x's shape, or along one axis, want `method="inverted_cdf"`. The gradient goes to the elements between which the
    quantile lies.

        rs.quantile(x, [0.25, 0.75], axis=0)

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `RscanValueError` (E0809) for `q`
    or `method` out of range; `AxisError` (E0810) for an axis that is not there.

    >>> rs.quantile([1.0, 2.0, 3.0, 4.0], 0.5).eval()
    array(2.5)
    >>> rs.quantile([1.0, 2.0, 3.0, 4.0], 0.3, method="hazen").eval().round(6)
    np.float64(1.7)
    """
    no_out(out)
    return _quantile(x, q, axis, method, keepdims, False, weights)


def percentile(
    x: Any,
    q: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Variable:
    """`quantile` of `q / 100`.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `RscanValueError` (E0809) for `q`
    or `method` out of range; `AxisError` (E0810) for an axis that is not there.

    >>> rs.percentile([1.0, 2.0, 3.0], [25, 75]).eval()
    array([1.5, 2.5])
    """
    no_out(out)
    return _quantile(x, _hundredth(q), axis, method, keepdims, False, weights)


def _hundredth(q: Any) -> Any:
    return q / 100 if isinstance(q, Variable) else np.true_divide(q, 100)


def median(x: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False) -> Variable:
    """The middle element over axes, or the mean of the two in the middle; NaN where there is one.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `AxisError` (E0810) for an axis
    that is not there; `RscanIndexError` (E0202) for an index outside its axis.

    >>> rs.median([3.0, 1.0, 2.0, 10.0]).eval()
    array(2.5)
    """
    no_out(out)
    return _quantile(x, 0.5, axis, "midpoint", keepdims, False)


def nanquantile(
    x: Any,
    q: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Variable:
    """`quantile` of the elements that are not NaN; NaN where there are none.

    errors: those of `quantile`.

    >>> rs.nanquantile([np.nan, 1.0, 3.0], 0.5).eval()
    array(2.)
    """
    no_out(out)
    return _quantile(x, q, axis, method, keepdims, True, weights)


def nanpercentile(
    x: Any,
    q: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Variable:
    """`percentile` of the elements that are not NaN; NaN where there are none.

    errors: those of `percentile`.

    >>> rs.nanpercentile([np.nan, 1.0, 3.0], 50).eval()
    array(2.)
    """
    no_out(out)
    return _quantile(x, _hundredth(q), axis, method, keepdims, True, weights)


def nanmedian(x: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False) -> Variable:
    """`median` of the elements that are not NaN; NaN where there are none.

    errors: those of `median`.

    >>> rs.nanmedian([np.nan, 1.0, 3.0]).eval()
    array(2.)
    """
    no_out(out)
    return _quantile(x, 0.5, axis, "midpoint", keepdims, True)
