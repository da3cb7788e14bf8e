"""Reductions, products, shapes, joins, indexing as Theano names them."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from ... import indexing, linalg, ops
from ..._spans import here
from ...dtypes import dtype_name
from ...errors import RscanTypeError, RscanValueError, ShapeError
from ...variable import Variable, apply, elementwise, extent
from ..variable import _axis, as_tensor_variable
from ._ties import max, min
from .create import shape_items

# Reductions.


def sum(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, acc_dtype: Any = None) -> Variable:
    """The sum; of small integers as int64."""
    return ops.sum(as_tensor_variable(x), _axis(axis), dtype, keepdims=keepdims)


def prod(
    x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, acc_dtype: Any = None, no_zeros_in_input: bool = False
) -> Variable:
    """The product."""
    return ops.prod(as_tensor_variable(x), _axis(axis), dtype, keepdims=keepdims)


def mean(x: Any, axis: Any = None, dtype: Any = None, op: Any = False, keepdims: bool = False, acc_dtype: Any = None) -> Variable:
    """The mean; of integers as float64."""
    return ops.mean(as_tensor_variable(x), _axis(axis), dtype, keepdims=keepdims)


def var(x: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False, corrected: bool = False) -> Variable:
    """The variance."""
    return ops.var(as_tensor_variable(x), _axis(axis), ddof=ddof, keepdims=keepdims)


def std(x: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False, corrected: bool = False) -> Variable:
    """The standard deviation."""
    return elementwise("sqrt", var(x, axis, ddof, keepdims))


def any(x: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """True where some element is not 0."""
    return ops.any(as_tensor_variable(x), _axis(axis), keepdims=keepdims)


def all(x: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """True where no element is 0."""
    return ops.all(as_tensor_variable(x), _axis(axis), keepdims=keepdims)


def _position(function: Any, x: Any, axis: Any, keepdims: bool) -> Variable:
    """A position along one axis, or among the elements along several, taken in their order."""
    v, given = as_tensor_variable(x), _axis(axis)
    if not isinstance(given, (list, tuple)):
        return function(v, given, keepdims=keepdims)
    over = sorted({i % builtins.max(v.ndim, 1) for i in given})
    kept = [i for i in range(v.ndim) if i not in over]
    flat = flatten(ops.transpose(v, [*kept, *over]), len(kept) + 1)
    return ops.expand_dims(function(flat, -1), tuple(over)) if keepdims else function(flat, -1)


def argmax(x: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """The position of the first largest element."""
    return _position(ops.argmax, x, axis, keepdims)


def argmin(x: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """The position of the first smallest element."""
    return _position(ops.argmin, x, axis, keepdims)


def max_and_argmax(x: Any, axis: Any = None, keepdims: bool = False) -> tuple[Variable, Variable]:
    """The largest element and its position."""
    return max(x, axis, keepdims), argmax(x, axis, keepdims)


def ptp(x: Any, axis: Any = None) -> Variable:
    """The largest minus the smallest element."""
    return max(x, axis) - min(x, axis)


def norm(x: Any, ord: Any = 2, axis: Any = None, keepdims: bool = False) -> Variable:
    """The sum of |x|**ord over axes, to the power 1/ord."""
    v = as_tensor_variable(x)
    if ord == 0:
        return ops.sum(ops.cast(elementwise("ne", v, as_tensor_variable(0)), v.dtype), _axis(axis), keepdims=keepdims)
    if ord in (np.inf, -np.inf):
        return (max if ord > 0 else min)(abs(v), axis, keepdims)
    if ord == 2:
        return elementwise("sqrt", sum(v * v, axis, keepdims=keepdims))
    return sum(abs(v) ** ord, axis, keepdims=keepdims) ** (1.0 / ord)


def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """log Σ exp(x)."""
    return ops.logsumexp(as_tensor_variable(x), _axis(axis), keepdims)


def cumsum(x: Any, axis: Any = None) -> Variable:
    """Sums of the elements up to each one."""
    return ops.cumsum(as_tensor_variable(x), axis)


def cumprod(x: Any, axis: Any = None) -> Variable:
    """Products of the elements up to each one."""
    return ops.cumprod(as_tensor_variable(x), axis)


def sort(x: Any, axis: Any = -1, kind: str = "quicksort", order: Any = None) -> Variable:
    """Sorted along an axis."""
    return ops.sort(as_tensor_variable(x), axis)


def argsort(x: Any, axis: Any = -1, kind: str = "quicksort", order: Any = None) -> Variable:
    """The positions that sort."""
    return ops.argsort(as_tensor_variable(x), axis)


def diff(x: Any, n: int = 1, axis: int = -1) -> Variable:
    """Differences of neighbours."""
    return ops.diff(as_tensor_variable(x), n, axis)


def bincount(x: Any, weights: Any = None, minlength: Any = None, assert_nonneg: bool = False) -> Variable:
    """How often each number occurs, or the sum of its weights."""
    from .create import zeros

    v = as_tensor_variable(x)
    length: Any = ops.max(v) + 1
    if minlength is not None:
        length = elementwise("maximum", length, as_tensor_variable(minlength))
    value = as_tensor_variable(1 if weights is None else weights)
    return indexing.write(zeros([length], "int64" if weights is None else value.dtype), v, value, "inc")


# Products.


def dot(a: Any, b: Any) -> Variable:
    """The product as `numpy.dot`."""
    return linalg.dot(as_tensor_variable(a), as_tensor_variable(b))


def outer(a: Any, b: Any) -> Variable:
    """The outer product of two vectors."""
    return linalg.outer(as_tensor_variable(a), as_tensor_variable(b))


def tensordot(a: Any, b: Any, axes: Any = 2) -> Variable:
    """The sum of products over axes."""
    return linalg.tensordot(as_tensor_variable(a), as_tensor_variable(b), axes)


def batched_dot(a: Any, b: Any) -> Variable:
    """`dot` of each pair of items along the first axes."""
    x, y = as_tensor_variable(a), as_tensor_variable(b)
    if x.ndim == 0 or y.ndim == 0:
        raise RscanTypeError("batched_dot takes arrays with an axis to go along", code="E0809", labels=[(here(), "")])
    if x.ndim == 1 or y.ndim == 1:
        deep = builtins.max(x.ndim, y.ndim)
        return ops.expand_dims(x, tuple(range(x.ndim, deep))) * ops.expand_dims(y, tuple(range(y.ndim, deep)))
    if x.ndim > 3 or y.ndim > 3:
        return batched_tensordot(x, y, [x.ndim - 1, builtins.max(1, y.ndim - 2)])
    left = ops.expand_dims(x, 1) if x.ndim == 2 else x
    right = ops.expand_dims(y, 2) if y.ndim == 2 else y
    out = ops.matmul(left, right)
    drop = ([1] if x.ndim == 2 else []) + ([2] if y.ndim == 2 else [])
    return ops.squeeze(out, tuple(drop)) if drop else out


def batched_tensordot(x: Any, y: Any, axes: Any = 2) -> Variable:
    """`tensordot` of each pair of items along the first axes; axes count the first one."""
    a, b = as_tensor_variable(x), as_tensor_variable(y)
    if isinstance(axes, int):
        over_a, over_b = list(range(a.ndim - axes, a.ndim)), list(range(1, axes + 1))
    else:
        over_a, over_b = ([i] if isinstance(i, int) else list(i) for i in axes)
    free_a = [i for i in range(1, a.ndim) if i not in over_a]
    free_b = [i for i in range(1, b.ndim) if i not in over_b]
    size = lambda v, at: ops.prod(ops.stack([as_tensor_variable(extent(v, i)) for i in at])) if at else 1
    n, inner = a.shape[0], size(a, over_a)
    left = ops.reshape(ops.transpose(a, [0, *free_a, *over_a]), shape_items([n, size(a, free_a), inner]))
    right = ops.reshape(ops.transpose(b, [0, *over_b, *free_b]), shape_items([n, inner, size(b, free_b)]))
    dims = [n, *(a.shape[i] for i in free_a), *(b.shape[i] for i in free_b)]
    return ops.reshape(ops.matmul(left, right), dims)


# Shapes.


def shape(x: Any) -> Variable:
    """The extents, an int64 vector."""
    return as_tensor_variable(x).shape


def shape_padleft(x: Any, n_ones: int = 1) -> Variable:
    """With new first axes."""
    return ops.expand_dims(as_tensor_variable(x), tuple(range(n_ones)))


def shape_padright(x: Any, n_ones: int = 1) -> Variable:
    """With new last axes."""
    v = as_tensor_variable(x)
    return ops.expand_dims(v, tuple(range(v.ndim, v.ndim + n_ones)))


def shape_padaxis(x: Any, axis: int) -> Variable:
    """With a new axis."""
    return ops.expand_dims(as_tensor_variable(x), axis)


def reshape(x: Any, newshape: Any, ndim: int | None = None) -> Variable:
    """The same elements under other extents, of which one may be −1. A symbolic vector as the shape needs `ndim`."""
    v = as_tensor_variable(x)
    if isinstance(newshape, Variable) and newshape.ndim == 1 and ndim is not None:
        items = [newshape[i] for i in range(ndim)]
    else:
        items = shape_items(newshape)
    if ndim is not None and len(items) != ndim:
        raise RscanValueError(f"the shape has {len(items)} items, ndim is {ndim}", code="E0809", labels=[(here(), "")])
    return ops.reshape(v, items)


def flatten(x: Any, ndim: int | None = None, outdim: int | None = None) -> Variable:
    """With the axes from ndim − 1 on merged into one."""
    v, n = as_tensor_variable(x), next((k for k in (ndim, outdim) if k is not None), 1)
    if n < 1 or (n > v.ndim and not (n == 1 and v.ndim == 0)):
        raise RscanValueError(f"flatten into {n} axes of {v.ndim}", code="E0809", labels=[(here(), "")])
    if n == v.ndim:
        return v
    return ops.reshape(v, [*(v.shape[i] for i in range(n - 1)), -1])


def dimshuffle(x: Any, pattern: Any) -> Variable:
    """Axes in the order of the pattern; 'x' is a new axis, and what is left out must have extent 1."""
    v, items = as_tensor_variable(x), list(pattern)
    kept = [i % v.ndim if isinstance(i, (int, np.integer)) and -v.ndim <= i < v.ndim else i for i in items if i != "x"]
    unknown = [i for i in kept if not isinstance(i, (int, np.integer)) or not 0 <= i < v.ndim]
    if unknown or len(set(kept)) < len(kept):
        raise RscanValueError(f"dimshuffle({', '.join(map(repr, items))}) of {v.ndim} axes", code="E0809", labels=[(here(), "")])
    dropped = [i for i in range(v.ndim) if i not in kept]
    for i in dropped:
        if v.static_shape[i] != 1:
            raise RscanValueError(f"dimshuffle drops axis {i} of {v}, which is not broadcastable", code="E0809", labels=[(here(), "")])
    if dropped:
        v = ops.squeeze(v, tuple(dropped))
    order = sorted(kept)
    v = ops.transpose(v, [order.index(i) for i in kept]) if kept else v
    new = tuple(i for i, item in enumerate(items) if item == "x")
    return ops.expand_dims(v, new) if new else v


def transpose(x: Any, axes: Any = None) -> Variable:
    """With axes permuted."""
    return ops.transpose(as_tensor_variable(x), axes)


def squeeze(x: Any, axis: Any = None) -> Variable:
    """Without the broadcastable axes."""
    v = as_tensor_variable(x)
    at = tuple(i for i, b in enumerate(v.broadcastable) if b) if axis is None else axis
    return v if at == () else ops.squeeze(v, at)


def _patterned(x: Any, pattern: dict[int, bool]) -> Variable:
    v = as_tensor_variable(x)
    for axis, flag in pattern.items():
        if not 0 <= axis < v.ndim:
            raise RscanValueError(f"axis {axis} of {v.ndim} axes", code="E0810", labels=[(here(), "")])
        known = v.static_shape[axis]
        if flag and known is not None and known != 1:
            raise ShapeError(f"axis {axis} has the extent {known} and cannot be broadcastable", code="E0812", labels=[(here(), "")])
        if flag and known is None:
            v = ops.expand_dims(ops.squeeze(v, axis), axis)
        elif not flag and known == 1:
            v = _forget(v, axis)
    return v


def _forget(v: Variable, axis: int) -> Variable:
    """The same array with an extent that is not known before the run: it is cut at a computed 1."""
    end = ops.sum(as_tensor_variable(np.ones(1, np.int64)))
    return apply("index", {"pattern": ",".join([":"] * axis + [":e"])}, v, end)


def addbroadcast(x: Any, *axes: int) -> Variable:
    """With axes declared to have extent 1, which is checked when the function runs."""
    return _patterned(x, dict.fromkeys(axes, True))


def unbroadcast(x: Any, *axes: int) -> Variable:
    """With axes of extent 1 whose extent counts as unknown."""
    return _patterned(x, dict.fromkeys(axes, False))


def patternbroadcast(x: Any, broadcastable: Any) -> Variable:
    """With a broadcast pattern."""
    return _patterned(x, dict(enumerate(broadcastable)))


def specify_shape(x: Any, shape: Any) -> Variable:
    """x, whose extents are checked when the function runs; None leaves one open."""
    v = as_tensor_variable(x)
    items = list(shape) if isinstance(shape, (list, tuple)) else shape_items(shape)
    checks = [elementwise("eq", v.shape[i], as_tensor_variable(n)) for i, n in enumerate(items) if n is not None]
    return ops.assert_(v, *checks, message="an array does not have the specified shape") if checks else v


def join(axis: Any, *tensors: Any) -> Variable:
    """Joined along an existing axis."""
    items = [as_tensor_variable(t) for t in tensors]
    return ops.concatenate(items, _axis(axis))


def concatenate(tensors: Any, axis: Any = 0) -> Variable:
    """Joined along an existing axis."""
    if not isinstance(tensors, (list, tuple)):
        raise RscanTypeError("concatenate takes a list of arrays", code="E0809", labels=[(here(), "")])
    return join(axis, *tensors)


def stack(*tensors: Any, axis: int | None = None) -> Variable:
    """Joined along a new axis: `stack([a, b], axis=1)`, or, as formerly, `stack(a, b)`."""
    if isinstance(tensors[0], (list, tuple)):
        if len(tensors) == 2 and axis is None:
            axis = tensors[1]
        items = tensors[0]
    else:
        items = tensors
    values = [as_tensor_variable(t) for t in items]
    dtype = np.result_type(*(v.dtype for v in values)).name
    return ops.stack([ops.cast(v, dtype) for v in values], axis or 0)


def stacklists(arg: Any) -> Variable:
    """Nested lists of equal lengths as one array, with an axis per level."""
    if isinstance(arg, (list, tuple)):
        return stack([stacklists(item) for item in arg])
    return as_tensor_variable(arg)


def horizontal_stack(*args: Any) -> Variable:
    """Matrices side by side."""
    return _matrices(args, 1)


def vertical_stack(*args: Any) -> Variable:
    """Matrices one below the other."""
    return _matrices(args, 0)


def _matrices(args: Any, axis: int) -> Variable:
    items = [as_tensor_variable(v) for v in args]
    if len(items) < 2 or builtins.any(v.ndim != 2 for v in items):
        raise RscanTypeError("two or more matrices are stacked", code="E0809", labels=[(here(), "")])
    return concatenate(items, axis)


def split(x: Any, splits_size: Any, n_splits: int | None = None, axis: int = 0) -> list[Variable]:
    """Parts of these sizes along an axis."""
    v = as_tensor_variable(x)
    sizes = list(splits_size) if not isinstance(splits_size, Variable) else [splits_size[i] for i in range(n_splits or 0)]
    parts, start = [], as_tensor_variable(np.int64(0))
    before = (slice(None),) * (axis % v.ndim)
    for size in sizes:
        end = start + as_tensor_variable(size)
        parts.append(v[(*before, slice(start, end))])
        start = end
    return parts


def tile(x: Any, reps: Any, ndim: int | None = None) -> Variable:
    """Repeated as a whole."""
    v = as_tensor_variable(x)
    counts = [reps] if isinstance(reps, (int, np.integer)) or getattr(reps, "ndim", None) == 0 else list(reps)
    counts = [1] * (builtins.max(v.ndim, ndim or 0) - len(counts)) + counts
    return ops.tile(v, counts)


def repeat(x: Any, repeats: Any, axis: Any = None) -> Variable:
    """Each element so often in a row."""
    return ops.repeat(
        as_tensor_variable(x), repeats if isinstance(repeats, (int, list, tuple, np.ndarray)) else as_tensor_variable(repeats), axis
    )


def roll(x: Any, shift: Any, axis: Any = None) -> Variable:
    """Moved along an axis; what leaves at one end enters at the other."""
    return ops.roll(as_tensor_variable(x), shift, axis)


def swapaxes(x: Any, a: int, b: int) -> Variable:
    """With two axes exchanged."""
    return ops.swapaxes(as_tensor_variable(x), a, b)


def moveaxis(x: Any, source: Any, destination: Any) -> Variable:
    """With axes moved."""
    return ops.moveaxis(as_tensor_variable(x), source, destination)


def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Variable:
    """The elements whose positions along two axes differ by an offset."""
    return ops.diagonal(as_tensor_variable(x), offset, axis1, axis2)


def atleast_1d(x: Any) -> Variable:
    """A scalar as a vector."""
    return ops.atleast_1d(as_tensor_variable(x))


def flip(x: Any, axis: Any = None) -> Variable:
    """In reverse order."""
    return ops.flip(as_tensor_variable(x), axis)


def to_one_hot(y: Any, nb_class: Any, dtype: Any = None) -> Variable:
    """A row with a single 1 for each number."""
    from .create import arange

    v = as_tensor_variable(y)
    return ops.cast(elementwise("eq", ops.expand_dims(v, 1), ops.expand_dims(arange(nb_class), 0)), dtype_name(dtype, "floatX"))


NAMES = [
    "sum", "prod", "mean", "var", "std", "max", "min", "any", "all", "argmax", "argmin", "max_and_argmax", "ptp", "norm",
    "logsumexp", "cumsum", "cumprod", "sort", "argsort", "diff", "bincount", "dot", "outer", "tensordot", "batched_dot",
    "batched_tensordot", "shape", "shape_padleft", "shape_padright", "shape_padaxis", "reshape", "flatten", "dimshuffle",
    "transpose", "squeeze", "addbroadcast", "unbroadcast", "patternbroadcast", "specify_shape", "join", "concatenate", "stack",
    "stacklists", "horizontal_stack", "vertical_stack",
    "split", "tile", "repeat", "roll", "swapaxes", "moveaxis", "diagonal", "atleast_1d", "flip",
]  # fmt: skip
