"""Order statistics, reductions that leave NaN out, cumulative functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._args import at_least, axes_of, no_out, one_axis
from ._spans import here
from .errors import RscanTypeError, RscanValueError
from .indexing import take, take_along_axis
from .ops_control import assert_
from .ops_create import zeros
from .ops_elementwise import cast, where
from .ops_reduce import _float, argmax, argmin, cumprod, cumsum, diff, max, min, prod, sort, sum
from .ops_shape import atleast_1d, broadcast_like, concatenate, expand_dims, moveaxis, ravel, reshape
from .variable import Variable, as_variable, elementwise, extent, static_value

__all__ = [
    "cumulative_prod", "cumulative_sum", "ediff1d", "median", "nanargmax",
    "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin", "nanpercentile", "nanprod", "nanquantile",
    "nanstd", "nansum", "nanvar", "percentile", "quantile",
]  # fmt: skip


# Order statistics.

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


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


def _quantile(x: Any, q: Any, axis: Any, method: str, keepdims: bool, skips_nan: bool) -> Variable:
    v = _float(at_least(x, 0, "quantile"), None)
    v = atleast_1d(v)
    if method not in _METHODS:
        text = f"quantiles are found by the methods {', '.join(_METHODS)}, not by {method!r}"
        raise RscanValueError(text, code="E0809", labels=[(here(), "")])
    share = as_variable(q, None if isinstance(q, Variable) else v.dtype)
    known = static_value(share)
    if share.ndim > 1 or (known is not None and not np.all((known >= 0) & (known <= 1))):
        raise RscanValueError("quantiles are numbers in [0, 1], one or a vector of them", code="E0809", labels=[(here(), "")])
    if known is None:
        fits = elementwise("logical_and", elementwise("le", 0, share), elementwise("le", share, 1))
        share = assert_(share, fits, message="quantiles are numbers in [0, 1]")
    rows, axes = _rows(v, axis)
    ordered = sort(rows, -1)
    nan = elementwise("isnan", rows)
    n = extent(rows, rows.ndim - 1)
    count = sum(cast(elementwise("logical_not", nan), v.dtype), -1, keepdims=True) if skips_nan else cast(as_variable(n), v.dtype)
    share = cast(share, v.dtype)
    found = _at_share(ordered, expand_dims(share, tuple(range(rows.ndim - 1))) if share.ndim else share, count, method)
    if not skips_nan:
        found = where(sum(cast(nan, "int64"), -1, keepdims=True) > 0, np.nan, found)
    out = moveaxis(found, -1, 0) if share.ndim else found[..., 0]
    return expand_dims(out, tuple(a + share.ndim for a in axes)) if keepdims else out


def _at_share(ordered: Variable, share: Variable, count: Variable, method: str) -> Variable:
    """The elements of sorted rows at shares of the way from the first to the last of so many, along the last axis."""
    place = share * (count - 1)
    place = elementwise("maximum", place, 0.0)
    if method == "nearest":
        place = elementwise("round", place)
    low, high = elementwise("floor", place), elementwise("ceil", place)
    low, high = {"lower": (low, low), "higher": (high, high)}.get(method, (low, high))
    at = [_elements(ordered, cast(p, "int64")) for p in (low, high)]
    if method != "linear":
        return (at[0] + at[1]) * 0.5 if method == "midpoint" else at[0]
    part = place - low
    # As NumPy: from the nearer end, so that both ends are met.
    whole = elementwise("eq", part, 0)
    step = where(whole, 0.0, at[1] - at[0])
    return where(elementwise("lt", part, 0.5), at[0] + step * part, at[1] - step * (1 - part))


def _elements(ordered: Variable, places: Variable) -> Variable:
    """Elements of rows: the same of all, or of each its own."""
    places = atleast_1d(places)
    if ordered.ndim == 1 or all(n == 1 for n in places.static_shape[:-1]):
        return take(ordered, ravel(places), axis=-1)
    return take_along_axis(ordered, places, -1)


def quantile(
    x: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, method: str = "linear", keepdims: bool = False
) -> Variable:
    """The elements at shares q, in [0, 1], of the way from the smallest to the largest, over axes; NaN where there is one.

    Between two elements it is on the line through both, or as `method` says: "lower", "higher", "midpoint", "nearest". A vector of shares
    gives a first axis. The gradient goes to the elements between which the quantile lies.

        rs.quantile(x, [0.25, 0.75], axis=0)

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `RscanValueError` (E0809) for `q`
    or `method` out of range; `AxisError` (E0810) for an axis that is not there.

    >>> rs.quantile([1.0, 2.0, 3.0, 4.0], 0.5).eval()
    array(2.5)
    """
    no_out(out)
    return _quantile(x, q, axis, method, keepdims, False)


def percentile(
    x: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, method: str = "linear", keepdims: bool = False
) -> Variable:
    """`quantile` of `q / 100`.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `RscanValueError` (E0809) for `q`
    or `method` out of range; `AxisError` (E0810) for an axis that is not there.

    >>> rs.percentile([1.0, 2.0, 3.0], [25, 75]).eval()
    array([1.5, 2.5])
    """
    no_out(out)
    return _quantile(x, _hundredth(q), axis, method, keepdims, False)


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
    x: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, method: str = "linear", keepdims: bool = False
) -> Variable:
    """`quantile` of the elements that are not NaN; NaN where there are none.

    errors: those of `quantile`.

    >>> rs.nanquantile([np.nan, 1.0, 3.0], 0.5).eval()
    array(2.)
    """
    no_out(out)
    return _quantile(x, q, axis, method, keepdims, True)


def nanpercentile(
    x: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, method: str = "linear", keepdims: bool = False
) -> Variable:
    """`percentile` of the elements that are not NaN; NaN where there are none.

    errors: those of `percentile`.

    >>> rs.nanpercentile([np.nan, 1.0, 3.0], 50).eval()
    array(2.)
    """
    no_out(out)
    return _quantile(x, _hundredth(q), axis, method, keepdims, True)


def nanmedian(x: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False) -> Variable:
    """`median` of the elements that are not NaN; NaN where there are none.

    errors: those of `median`.

    >>> rs.nanmedian([np.nan, 1.0, 3.0]).eval()
    array(2.)
    """
    no_out(out)
    return _quantile(x, 0.5, axis, "midpoint", keepdims, True)


# Without NaN.


def _instead(x: Any, value: float) -> tuple[Variable, Variable]:
    """x with a number for NaN, and where NaN was."""
    v = as_variable(x)
    if not v.dtype.startswith("float"):
        return v, broadcast_like(as_variable(False), v)
    nan = elementwise("isnan", v)
    return where(nan, as_variable(value, v.dtype), v), nan


def nansum(x: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False) -> Variable:
    """The sum of the elements that are not NaN.

    errors: those of `sum`.

    >>> rs.nansum([np.nan, 1.0, 3.0]).eval()
    array(4.)
    """
    return sum(_instead(x, 0)[0], axis, dtype, out, keepdims)


def nanprod(x: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False) -> Variable:
    """The product of the elements that are not NaN.

    errors: those of `prod`.

    >>> rs.nanprod([np.nan, 2.0, 3.0]).eval()
    array(6.)
    """
    return prod(_instead(x, 1)[0], axis, dtype, out, keepdims)


def nancumsum(x: Any, axis: int | None = None) -> Variable:
    """`cumsum` with 0 for NaN.

    errors: those of `cumsum`.

    >>> rs.nancumsum([2.0, np.nan, 3.0]).eval()
    array([2., 2., 5.])
    """
    return cumsum(_instead(x, 0)[0], axis)


def nancumprod(x: Any, axis: int | None = None) -> Variable:
    """`cumprod` with 1 for NaN.

    errors: those of `cumprod`.

    >>> rs.nancumprod([2.0, np.nan, 3.0]).eval()
    array([2., 2., 6.])
    """
    return cumprod(_instead(x, 1)[0], axis)


def _extreme(which: Any, worst: float, x: Any, axis: Any, out: None, keepdims: bool) -> Variable:
    no_out(out)
    v, nan = _instead(x, worst)
    found = which(v, axis, keepdims=keepdims)
    if not v.dtype.startswith("float"):
        return found
    some = sum(cast(elementwise("logical_not", nan), "int64"), axis, keepdims=keepdims)
    return where(elementwise("gt", some, 0), found, np.nan)


def nanmax(x: Any, axis: Any = None, out: None = None, keepdims: bool = False) -> Variable:
    """The largest of the elements that are not NaN; NaN where there are none.

    errors: those of `max`.

    >>> rs.nanmax([np.nan, 1.0, 3.0]).eval()
    array(3.)
    """
    return _extreme(max, -np.inf, x, axis, out, keepdims)


def nanmin(x: Any, axis: Any = None, out: None = None, keepdims: bool = False) -> Variable:
    """The smallest of the elements that are not NaN; NaN where there are none.

    errors: those of `min`.

    >>> rs.nanmin([np.nan, 1.0, 3.0]).eval()
    array(1.)
    """
    return _extreme(min, np.inf, x, axis, out, keepdims)


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


def _numbers(nan: Variable, dtype: str, axis: Any, keepdims: bool) -> Variable:
    return sum(cast(elementwise("logical_not", nan), dtype), axis, keepdims=keepdims)


def nanmean(x: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False) -> Variable:
    """The mean of the elements that are not NaN; NaN where there are none.

    errors: those of `mean`.

    >>> rs.nanmean([np.nan, 1.0, 3.0]).eval()
    array(2.)
    """
    no_out(out)
    v, nan = _instead(_float(x, dtype), 0)
    return sum(v, axis, keepdims=keepdims) / _numbers(nan, v.dtype, axis, keepdims)


def nanvar(x: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: int = 0, keepdims: bool = False) -> Variable:
    """The variance of the elements that are not NaN; NaN where there are not more than ddof.

    errors: those of `var`.

    >>> rs.nanvar([np.nan, 1.0, 3.0]).eval()
    array(1.)
    """
    no_out(out)
    v, nan = _instead(_float(x, dtype), 0)
    middle = nanmean(_float(x, dtype), axis, keepdims=True)
    # A row of NaN alone has no middle, and its deviations, which are left out, must not be NaN in the gradient.
    none = elementwise("eq", _numbers(nan, v.dtype, axis, True), 0)
    deviation = where(nan, 0, v - where(none, 0, middle))
    n = _numbers(nan, v.dtype, axis, keepdims)
    found = sum(deviation * deviation, axis, keepdims=keepdims)
    enough = elementwise("gt", n, ddof)
    return where(enough, found / where(enough, n - ddof, 1), np.nan)


def nanstd(x: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: int = 0, keepdims: bool = False) -> Variable:
    """The standard deviation of the elements that are not NaN.

    errors: those of `std`.

    >>> rs.nanstd([np.nan, 1.0, 3.0]).eval()
    array(1.)
    """
    return elementwise("sqrt", nanvar(x, axis, dtype, out, ddof, keepdims))


# Cumulation and differences.


def _cumulative(op: Any, first: int, x: Any, axis: int | None, include_initial: bool) -> Variable:
    v = at_least(x, 1, "a cumulative function")
    if axis is None and v.ndim > 1:
        raise RscanValueError("of more than one axis, say which: axis=…", code="E0809", labels=[(here(), "")])
    at = one_axis(0 if axis is None else axis, v.ndim)
    found = op(v, at)
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
    return _cumulative(cumsum, 0, x if dtype is None else cast(x, dtype), axis, include_initial)


def cumulative_prod(x: Any, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Variable:
    """`cumprod` along an axis; with `include_initial`, a 1 comes first.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `x` or `axis` of another kind, (E0806) for a dtype that is
    not there; `RscanValueError` (E0809) for `x` out of range; `AxisError` (E0810) for an axis that is not there.

    >>> rs.cumulative_prod([1, 2, 3]).eval()
    array([1, 2, 6])
    """
    return _cumulative(cumprod, 1, x if dtype is None else cast(x, dtype), axis, include_initial)


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Variable:
    """Differences of neighbours of the flattened array, with something put before and behind them.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.ediff1d([1, 4, 9], to_begin=0).eval()
    array([0, 3, 5])
    """
    steps = diff(ravel(as_variable(ary)))
    parts = [*([] if to_begin is None else [ravel(cast(to_begin, steps.dtype))]), steps]
    return concatenate([*parts, *([] if to_end is None else [ravel(cast(to_end, steps.dtype))])])
