"""Functions along axes: reductions, extremes, cumulation, sorting."""

from __future__ import annotations

import builtins
from typing import Any

from ._args import at_least, axes_of, no_out, one_axis
from ._spans import here
from .errors import RscanTypeError, RscanValueError
from .ops_elementwise import cast
from .ops_shape import broadcast_like, broadcast_to, concatenate, expand_dims, ravel, reshape, transpose
from .variable import Variable, apply, as_variable, dtype_name, elementwise, extent

__all__ = [
    "all", "amax", "amin", "any", "argmax", "argmin", "argsort", "average", "count_nonzero", "cumprod", "cumsum",
    "log_softmax", "logsumexp", "max", "max_and_argmax", "mean", "min", "prod", "ptp", "softmax", "sort", "std", "sum", "var",
]  # fmt: skip


def _reduce(kind: str, x: Any, axis: Any, keepdims: bool, dtype: Any = None) -> Variable:
    v = as_variable(x) if dtype is None else cast(x, dtype)
    out = apply("reduce", {"kind": kind, "axes": axes_of(axis, v.ndim), "keepdims": builtins.bool(keepdims)}, v)
    return out if dtype is None else cast(out, dtype)


#: What an element that does not count stands for.
_NEUTRAL: dict[str, Any] = {"sum": 0, "prod": 1, "any": False, "all": True}


def _counted(kind: str, x: Any, where: Any, initial: Any) -> Variable:
    """x with what changes nothing where it does not count."""
    v, counts = as_variable(x), cast(where, "bool")
    other = _NEUTRAL.get(kind, initial)
    if other is None:
        text = f"{kind} over a part of the elements takes an initial value, which it is where there are none"
        raise RscanValueError(text, code="E0809", labels=[(here(), "")], helps=[f"rs.{kind}(x, where=…, initial=…)"])
    if kind in ("any", "all"):
        v = cast(v, "bool")
    return elementwise("where", counts, v, cast(other, v.dtype))


def _with(kind: str, x: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Variable:
    """A reduction of what counts, and of an initial value."""
    if where is not None:
        x = _counted(kind, x, where, initial)
    if initial is None:
        return _reduce(kind, x, axis, keepdims, dtype)
    v = as_variable(x)
    if kind in ("max", "min"):
        # One more element, so that there is one.
        axes = axes_of(axis, v.ndim)
        rest = [a for a in range(v.ndim) if a not in axes]
        count: Any = 1
        for a in axes:
            count = count * v.shape[a]
        rows = reshape(transpose(v, rest + axes), [*(v.shape[a] for a in rest), count]) if 0 not in v.static_shape else None
        first = cast(initial, v.dtype)
        if rows is None:
            found = broadcast_to(first, [v.shape[a] for a in rest])
        else:
            found = elementwise(f"{kind}imum", first, _reduce(kind, _joined(rows, first), -1, False))
        return expand_dims(found, tuple(axes)) if keepdims else found
    found = _reduce(kind, v, axis, keepdims, dtype)
    return found + cast(initial, found.dtype) if kind == "sum" else found * cast(initial, found.dtype)


def _joined(rows: Variable, first: Variable) -> Variable:
    """Rows with one more element each."""
    more = broadcast_to(first, [*rows.shape[:-1], 1])
    return concatenate([more, rows], -1)


def sum(
    x: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Variable:
    """The sum over axes (all by default). Integers and bools are summed as 64-bit integers.

    `initial` is added; only elements where `where` is true count.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind, (E0806) for a dtype that is not
    there; `AxisError` (E0810) for an axis that is not there; `ShapeError` (E0201) where shapes do not broadcast.

    >>> rs.sum(np.ones((2, 3), "float32"), axis=1).eval()
    array([3., 3.], dtype=float32)
    >>> rs.sum([1, 2, 3], where=[True, False, True]).eval()
    array(4)
    """
    no_out(out)
    return _with("sum", x, axis, dtype, keepdims, initial, where)


def prod(
    x: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Variable:
    """The product over axes (all by default), and with `initial`, of the elements where `where` is true.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind, (E0806) for a dtype that is not
    there; `AxisError` (E0810) for an axis that is not there; `ShapeError` (E0201) where shapes do not broadcast.

    >>> rs.prod([2, 3, 4]).eval()
    array(24)
    """
    no_out(out)
    return _with("prod", x, axis, dtype, keepdims, initial, where)


def _no_other(what: str, axis: Any) -> None:
    """Refuses what Python's function of this name takes: another value in the place of the axis."""
    if isinstance(axis, (float, Variable)):
        helps = [f"rs.{what}imum(a, b) is the {'larger' if what == 'max' else 'smaller'} one of two"]
        raise RscanTypeError(f"{what} takes an axis in second place, not {axis!r}", code="E0809", labels=[(here(), "")], helps=helps)


def max(x: Any, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None) -> Variable:
    """The largest element over axes (all by default), NaN if there is one; of `initial`, too, and where `where` is true.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `RscanValueError` (E0809) for
    `where` out of range; `AxisError` (E0810) for an axis that is not there; `ShapeError` (E0201) where shapes do not broadcast.

    >>> rs.amax([[1.0, 4.0], [3.0, 2.0]], axis=0).eval()
    array([3., 4.])
    """
    _no_other("max", axis)
    no_out(out)
    return _with("max", x, axis, None, keepdims, initial, where)


def min(x: Any, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None) -> Variable:
    """The smallest element over axes (all by default), NaN if there is one; of `initial`, too, and where `where` is true.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `RscanValueError` (E0809) for
    `where` out of range; `AxisError` (E0810) for an axis that is not there; `ShapeError` (E0201) where shapes do not broadcast.

    >>> rs.amin([[1.0, 4.0], [3.0, 2.0]], axis=0).eval()
    array([1., 2.])
    """
    _no_other("min", axis)
    no_out(out)
    return _with("min", x, axis, None, keepdims, initial, where)


def any(x: Any, axis: Any = None, out: None = None, keepdims: bool = False, where: Any = None) -> Variable:
    """True where some element over axes (of those where `where` is true) is not 0.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `AxisError` (E0810) for an axis
    that is not there; `ShapeError` (E0201) where shapes do not broadcast.

    >>> rs.any([[True, False], [False, False]], axis=1).eval()
    array([ True, False])
    """
    no_out(out)
    return _with("any", x, axis, "bool", keepdims, None, where)


def all(x: Any, axis: Any = None, out: None = None, keepdims: bool = False, where: Any = None) -> Variable:
    """True where no element over axes (of those where `where` is true) is 0.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `AxisError` (E0810) for an axis
    that is not there; `ShapeError` (E0201) where shapes do not broadcast.

    >>> rs.all([[True, False], [True, True]], axis=1).eval()
    array([False,  True])
    """
    no_out(out)
    return _with("all", x, axis, "bool", keepdims, None, where)


amax = max
amin = min


def ptp(x: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """The largest minus the smallest element.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `AxisError` (E0810) for an axis
    that is not there; `RscanValueError` (E0203) where there are no elements.

    >>> rs.ptp([1.0, 4.0, 3.0]).eval()
    array(3.)
    """
    return max(x, axis, keepdims=keepdims) - min(x, axis, keepdims=keepdims)


def count_nonzero(x: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """How many elements are not 0.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `AxisError` (E0810) for an axis
    that is not there.

    >>> rs.count_nonzero([[0, 1], [2, 3]], axis=0).eval()
    array([1, 2])
    """
    return sum(cast(x, "bool"), axis, keepdims=keepdims)


def _float(x: Any, dtype: Any) -> Variable:
    v = as_variable(x)
    if dtype is not None:
        return cast(v, dtype)
    return v if v.dtype.startswith("float") else cast(v, "float64")


def _count(x: Variable, axis: Any) -> Any:
    """Number of elements over axes: an int, or a scalar of x's dtype."""
    n: Any = 1
    for a in axes_of(axis, x.ndim):
        n = n * extent(x, a)
    return cast(n, x.dtype) if isinstance(n, Variable) else n


def _how_many(x: Variable, axis: Any, keepdims: bool, where: Any) -> Any:
    """The number of elements over axes that count."""
    if where is None:
        return _count(x, axis)
    return sum(cast(broadcast_like(cast(where, "bool"), x), x.dtype), axis, keepdims=keepdims)


def mean(x: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, *, where: Any = None) -> Variable:
    """The mean over axes (all by default) of the elements (where `where` is true); integers are averaged as float64.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind, (E0806) for a dtype that is not
    there; `AxisError` (E0810) for an axis that is not there; `ShapeError` (E0201) where shapes do not broadcast.

    >>> rs.mean([[1, 2], [3, 4]], axis=0).eval()
    array([2., 3.])
    """
    no_out(out)
    v = _float(x, dtype)
    found = sum(v, axis, keepdims=keepdims, where=where) / _how_many(v, axis, keepdims, where)
    return found if dtype is None else cast(found, dtype)


#: Where `mean` is an argument.
_mean = mean


def average(x: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False) -> Any:
    """The mean over axes, weighted by an array of x's shape, or of the extent of one axis; with `returned` a pair with the sums of weights.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `AxisError` (E0810) for an axis
    that is not there; `ShapeError` (E0201) where shapes do not broadcast.

    >>> rs.average([1.0, 2.0, 6.0], weights=[1, 1, 2]).eval()
    array(3.75)
    """
    v = as_variable(x)
    w = as_variable(1 if weights is None else weights)
    if w.ndim == 1 and v.ndim > 1 and axis is not None:
        w = expand_dims(w, tuple(a for a in range(v.ndim) if a != one_axis(axis, v.ndim)))
    total = sum(broadcast_like(w, v), axis, keepdims=keepdims)
    found = mean(v, axis, keepdims=keepdims) if weights is None else sum(v * w, axis, keepdims=keepdims) / total
    return (found, cast(total, found.dtype)) if returned else found


def var(
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
    """The variance over axes (of the elements where `where` is true): the sum of squared deviations, divided by n − ddof, which
    `correction` is another name of. `mean` is the mean, where it is known already, with its axes kept.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind, (E0806) for a dtype that is not
    there; `AxisError` (E0810) for an axis that is not there; `ShapeError` (E0201) where shapes do not broadcast.

    >>> rs.var([[1.0, 3.0], [2.0, 8.0]], axis=1).eval()
    array([1., 9.])
    """
    no_out(out)
    ddof = _ddof(ddof, correction)
    if dtype is not None and not dtype_name(dtype).startswith("float"):
        text = f"a variance is computed in float32 or float64, not in {dtype_name(dtype)}"
        raise RscanTypeError(text, code="E0806", labels=[(here(), "")])
    v = _float(x, dtype)
    deviation = v - (_mean(v, axis, keepdims=True, where=where) if mean is None else mean)
    n = _how_many(v, axis, keepdims, where) - ddof
    n = elementwise("maximum", n, 0.0) if isinstance(n, Variable) else builtins.max(n, 0)
    return sum(deviation * deviation, axis, keepdims=keepdims, where=where) / n


def _ddof(ddof: float, correction: float | None) -> float:
    if correction is None:
        return ddof
    if ddof != 0:
        raise RscanTypeError("ddof and correction are two names of one number: give one of them", code="E0809", labels=[(here(), "")])
    return correction


def std(
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
    """The standard deviation over axes (of the elements where `where` is true); arguments are those of `var`.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` or `correction` of another kind, (E0806) for a dtype
    that is not there; `AxisError` (E0810) for an axis that is not there; `ShapeError` (E0201) where shapes do not broadcast.

    >>> rs.std([1.0, 3.0], ddof=1).eval()
    array(1.41421356)
    """
    return elementwise("sqrt", var(x, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction))


def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """log Σ exp(x) over axes, without overflow.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `AxisError` (E0810) for an axis
    that is not there.

    >>> rs.logsumexp([1000.0, 1000.0]).eval()
    array(1000.69314718)
    """
    v = _float(x, None)
    return apply("logsumexp", {"axes": axes_of(axis, v.ndim), "keepdims": builtins.bool(keepdims)}, v)


def softmax(x: Any, axis: int = -1) -> Variable:
    """exp(x) / Σ exp(x) along an axis.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `x` or `axis` of another kind; `AxisError` (E0810) for an
    axis that is not there.

    >>> rs.softmax([0.0, 0.0]).eval()
    array([0.5, 0.5])
    """
    v = _float(at_least(x, 1, "softmax"), None)
    return apply("softmax", {"axis": one_axis(axis, v.ndim)}, v)


def log_softmax(x: Any, axis: int = -1) -> Variable:
    """x − logsumexp(x) along an axis.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `x` or `axis` of another kind; `AxisError` (E0810) for an
    axis that is not there.

    >>> rs.log_softmax([0.0, 0.0]).eval()
    array([-0.69314718, -0.69314718])
    """
    v = _float(at_least(x, 1, "log_softmax"), None)
    return apply("log_softmax", {"axis": one_axis(axis, v.ndim)}, v)


def _arg(kind: str, x: Any, axis: int | None, keepdims: bool) -> Variable:
    v = as_variable(x)
    if axis is None:
        found = apply("argreduce", {"kind": kind, "axis": 0}, ravel(v))
        return expand_dims(found, tuple(range(v.ndim))) if keepdims else found
    along = one_axis(axis, v.ndim)
    found = apply("argreduce", {"kind": kind, "axis": along}, v)
    return expand_dims(found, along) if keepdims else found


def argmax(x: Any, axis: int | None = None, out: None = None, keepdims: bool = False) -> Variable:
    """The position (int64) of the first largest element along an axis, or in the flattened array.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `AxisError` (E0810) for an axis
    that is not there.

    >>> rs.argmax([[1.0, 4.0], [3.0, 2.0]], axis=1).eval()
    array([1, 0])
    """
    no_out(out)
    return _arg("max", x, axis, keepdims)


def argmin(x: Any, axis: int | None = None, out: None = None, keepdims: bool = False) -> Variable:
    """The position (int64) of the first smallest element along an axis, or in the flattened array.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `AxisError` (E0810) for an axis
    that is not there.

    >>> rs.argmin([[1.0, 4.0], [3.0, 2.0]], axis=1).eval()
    array([0, 1])
    """
    no_out(out)
    return _arg("min", x, axis, keepdims)


def max_and_argmax(x: Any, axis: int | None = None, keepdims: bool = False) -> tuple[Variable, Variable]:
    """The largest element and its position.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `AxisError` (E0810) for an axis
    that is not there; `RscanValueError` (E0203) where there are no elements.

    >>> rs.eval(rs.max_and_argmax([1.0, 4.0, 3.0]))
    [array(4.), array(1)]
    """
    return max(x, axis, keepdims=keepdims), argmax(x, axis, keepdims=keepdims)


def _along(op: str, x: Any, axis: int | None, attrs: dict[str, Any] | None = None) -> Variable:
    """An op along one axis; None flattens first."""
    v = as_variable(x)
    if axis is None:
        v, axis = ravel(v), 0
    return apply(op, {"axis": one_axis(axis, v.ndim), **(attrs or {})}, v)


def _cumulated(op: str, x: Any, axis: int | None, dtype: Any, out: None, attrs: dict[str, Any] | None = None) -> Variable:
    no_out(out)
    return _along(op, x, axis, attrs) if dtype is None else cast(_along(op, cast(x, dtype), axis, attrs), dtype)


def cumsum(x: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Variable:
    """Sums of the elements up to each one, along an axis or flattened; integers are summed as 64-bit ones, unless `dtype` says otherwise.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `AxisError` (E0810) for an axis
    that is not there.

    >>> rs.cumsum([[1, 2], [3, 4]], axis=0).eval()
    array([[1, 2],
           [4, 6]])
    """
    return _cumulated("cumsum", x, axis, dtype, out, {"reverse": False})


def cumprod(x: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Variable:
    """Products of the elements up to each one, along an axis or flattened, as `cumsum`.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `AxisError` (E0810) for an axis
    that is not there.

    >>> rs.cumprod([1.0, 2.0, 3.0]).eval()
    array([1., 2., 6.])
    """
    return _cumulated("cumprod", x, axis, dtype, out)


def sort_kind(kind: Any, order: Any, kinds: tuple[Any, ...] = (None, "quicksort", "mergesort", "heapsort", "stable")) -> None:
    """Checks the names of algorithms, of which there is one, and that there are no fields."""
    if kind not in kinds or order is not None:
        text = f"a kind of sorting is one of {kinds}, not {kind!r}"
        text = text if kind not in kinds else f"there are no fields to sort by, got order={order!r}"
        raise RscanValueError(text, code="E0809", labels=[(here(), "")])


def sort(
    x: Any, axis: int | None = -1, kind: str | None = None, order: None = None, *, descending: bool = False, stable: bool | None = None
) -> Variable:
    """Sorted along an axis, NaN last; descending: the other way round, NaN first. Sorting is stable, whatever `kind` and `stable` say.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `AxisError` (E0810) for an axis
    that is not there.

    >>> rs.sort([3.0, 1.0, 2.0]).eval()
    array([1., 2., 3.])
    """
    sort_kind(kind, order)
    found = _along("sort", x, axis)
    return _turned(found, axis) if descending else found


def _turned(v: Variable, axis: int | None) -> Variable:
    """From the last element along an axis to the first; axis as `sort` takes it, whose results along None are vectors."""
    before = (builtins.slice(None),) * (0 if axis is None else one_axis(axis, v.ndim))
    return v[(*before, builtins.slice(None, None, -1))]


def argsort(
    x: Any, axis: int | None = -1, kind: str | None = None, order: None = None, *, descending: bool = False, stable: bool | None = None
) -> Variable:
    """The positions (int64) that sort along an axis; equal elements keep their order, when it is descending, too.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `AxisError` (E0810) for an axis
    that is not there.

    >>> rs.argsort([3.0, 1.0, 2.0]).eval()
    array([1, 2, 0])
    """
    sort_kind(kind, order)
    if not descending:
        return _along("argsort", x, axis)
    v = as_variable(x)
    v = reshape(v, [-1]) if axis is None else v
    at = -1 if axis is None else axis
    last = v.shape[one_axis(at, v.ndim)] - 1
    return last - _turned(_along("argsort", _turned(v, at), at), at)
