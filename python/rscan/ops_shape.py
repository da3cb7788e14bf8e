"""Functions that rearrange elements: reshaping, axes, joining."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ._args import at_least, axes_of, no_out, one_axis
from ._spans import here
from .errors import AxisError, RscanTypeError, RscanValueError, ShapeError
from .ops_elementwise import cast
from .variable import Variable, apply, as_variable, dtype_name, extent, extents, operands, result_dtype

__all__ = [
    "atleast_1d", "atleast_2d", "broadcast_arrays", "broadcast_like", "broadcast_to", "concatenate", "copy",
    "expand_dims", "flatten", "flip", "fliplr", "flipud", "hstack", "join", "moveaxis", "ndim", "permute_dims", "ravel",
    "reshape", "rot90", "shape", "size", "squeeze", "stack", "swapaxes", "transpose", "vstack",
]  # fmt: skip


def shape(x: Any) -> tuple[Any, ...]:
    """The extents: ints where known, else symbolic int64 scalars.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.eval(rs.shape(np.zeros((2, 3))))
    [array(2), array(3)]
    """
    return as_variable(x).shape


def ndim(x: Any) -> int:
    """The number of axes.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.ndim(rs.dmatrix("x"))
    2
    """
    return as_variable(x).ndim


def size(x: Any, axis: int | None = None) -> Any:
    """The number of elements, or one extent.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `AxisError` (E0810) for an axis
    that is not there.

    >>> rs.eval(rs.size(np.zeros((2, 3))))
    array(6)
    """
    v = as_variable(x)
    return v.size if axis is None else extent(v, one_axis(axis, v.ndim))


def copy(x: Any, order: str | None = "K") -> Variable:
    """Another variable with the same elements. Memory is laid out by the compiler, whatever `order` says.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.copy([1.0, 2.0]).eval()
    array([1., 2.])
    """
    v = as_variable(x)
    return apply("transpose", {"perm": list(range(v.ndim))}, v)


def by_columns(order: Any) -> bool:
    """False for "C" and what is that here, True for "F"."""
    if order not in ("C", "F", "A", "K", None):
        helps = ["several extents are a tuple: rs.reshape(x, (2, 3)), or x.reshape(2, 3)"] if isinstance(order, (int, Variable)) else []
        raise RscanValueError(f"order is 'C' or 'F', not {order!r}", code="E0809", labels=[(here(), "")], helps=helps)
    return bool(order == "F")


def reshape(x: Any, shape: Any, order: str = "C", *, copy: bool | None = None) -> Variable:
    """The same elements, in order, under other extents, of which one may be −1: row by row, or with `order="F"` column by column. Results
    share no memory, whatever `copy` says.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `shape` of another kind; `ShapeError` (E0204) where the
    numbers of elements differ.

    >>> rs.reshape(np.arange(6), (2, -1)).eval()
    array([[0, 1, 2],
           [3, 4, 5]])
    """
    if isinstance(shape, Variable) and shape.ndim == 1:
        shape = list(shape)
    if by_columns(order):
        turned = list(shape)[::-1] if isinstance(shape, (tuple, list, np.ndarray)) else [shape]
        return transpose(reshape(transpose(x), turned))
    return apply("reshape", {}, as_variable(x), *extents(shape))


def ravel(x: Any, order: str = "C") -> Variable:
    """All elements as a vector: row by row, or with `order="F"` column by column.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.ravel([[1, 2], [3, 4]]).eval()
    array([1, 2, 3, 4])
    """
    v = transpose(x) if by_columns(order) else as_variable(x)
    return v if v.ndim == 1 else reshape(v, (-1,))


def flatten(x: Any, ndim: int = 1) -> Variable:
    """With the axes from ndim − 1 on merged into one.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.flatten(np.arange(6).reshape(2, 3)).eval()
    array([0, 1, 2, 3, 4, 5])
    """
    v = as_variable(x)
    if ndim == 1 or v.ndim <= ndim:
        return ravel(v) if ndim == 1 else v
    merged: Any = 1
    for n in v.shape[ndim - 1 :]:
        merged = merged * n
    return reshape(v, (*v.shape[: ndim - 1], merged))


def transpose(x: Any, axes: Any = None) -> Variable:
    """With axes permuted; in reverse order by default.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axes` of another kind; `AxisError` (E0810) for an axis
    that is not there.

    >>> rs.permute_dims(np.zeros((2, 3, 4)), (2, 0, 1)).eval().shape
    (4, 2, 3)
    """
    v = as_variable(x)
    if axes is None:
        perm = list(range(v.ndim))[::-1]
    else:
        perm = [one_axis(a, v.ndim) for a in axes]
        if sorted(perm) != list(range(v.ndim)):
            raise AxisError(f"axes {tuple(axes)} are no permutation of {v.ndim} axes", labels=[(here(), "")])
    return v if v.ndim < 2 else apply("transpose", {"perm": perm}, v)


permute_dims = transpose


def swapaxes(x: Any, axis1: int, axis2: int) -> Variable:
    """With two axes exchanged.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis1` or `axis2` of another kind; `AxisError` (E0810) for
    an axis that is not there.

    >>> rs.swapaxes([[1, 2], [3, 4]], 0, 1).eval()
    array([[1, 3],
           [2, 4]])
    """
    v = as_variable(x)
    perm = list(range(v.ndim))
    a, b = one_axis(axis1, v.ndim), one_axis(axis2, v.ndim)
    perm[a], perm[b] = perm[b], perm[a]
    return transpose(v, perm)


def moveaxis(x: Any, source: Any, destination: Any) -> Variable:
    """With axes moved to other places; the rest keep their order.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `source` or `destination` of another kind; `AxisError`
    (E0810) for an axis that is not there.

    >>> rs.moveaxis(np.zeros((2, 3, 4)), 0, -1).eval().shape
    (3, 4, 2)
    """
    v = as_variable(x)
    sources = [one_axis(a, v.ndim) for a in (source if isinstance(source, (tuple, list)) else (source,))]
    targets = [one_axis(a, v.ndim) for a in (destination if isinstance(destination, (tuple, list)) else (destination,))]
    if len(set(sources)) != len(sources) or len(set(targets)) != len(targets) or len(sources) != len(targets):
        raise AxisError(f"moveaxis takes as many sources as destinations, got {source!r} and {destination!r}", labels=[(here(), "")])
    perm = [a for a in range(v.ndim) if a not in sources]
    for target, origin in sorted(zip(targets, sources, strict=True)):
        perm.insert(target, origin)
    return transpose(v, perm)


def expand_dims(x: Any, axis: Any) -> Variable:
    """With new axes of extent 1 at these positions of the result.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `AxisError` (E0810) for an axis
    that is not there.

    >>> rs.expand_dims([1.0, 2.0], 1).eval()
    array([[1.],
           [2.]])
    """
    v = as_variable(x)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    places = axes_of(tuple(axes), v.ndim + len(axes))
    return apply("expand", {"axes": places}, v) if places else v


def squeeze(x: Any, axis: Any = None) -> Variable:
    """Without axes of extent 1: these, or all that are known to be 1.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `AxisError` (E0810) for an axis
    that is not there.

    >>> rs.squeeze([[1.0, 2.0]]).eval()
    array([1., 2.])
    """
    v = as_variable(x)
    if axis is not None:
        axes = axes_of(axis, v.ndim)
    else:
        axes = [i for i, n in enumerate(v.static_shape) if n == 1]
        unknown = [i for i, n in enumerate(v.static_shape) if n is None]
        if unknown:
            raise ShapeError(
                f"the extent of axis {unknown[0]} of {v!r} is not known, so whether it goes away is not known either",
                code="E0811",
                labels=[(here(), "")],
                helps=["say which: x.squeeze(axis=…)"],
            )
    return apply("squeeze", {"axes": axes}, v) if axes else v


def broadcast_to(x: Any, shape: Any) -> Variable:
    """Repeated along new axes and axes of extent 1 to a shape.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `shape` of another kind; `ShapeError` (E0201) where shapes
    do not broadcast; `RscanValueError` (E0222) for extents that are negative or no scalars.

    >>> rs.broadcast_to([1.0, 2.0], (2, 2)).eval()
    array([[1., 2.],
           [1., 2.]])
    """
    if isinstance(shape, Variable) and shape.ndim == 1:
        shape = list(shape)
    return apply("broadcast_to", {}, as_variable(x), *extents(shape))


def broadcast_like(x: Any, like: Any) -> Variable:
    """Broadcast to the shape of another.

    errors: `RscanTypeError` (E0805) for what is no number or array; `ShapeError` (E0201) where shapes do not broadcast.

    >>> rs.broadcast_like(1.0, np.zeros(3)).eval()
    array([1., 1., 1.])
    """
    return apply("broadcast_like", {}, as_variable(x), as_variable(like))


def broadcast_arrays(*arrays: Any) -> list[Variable]:
    """All broadcast to their common shape.

    errors: `RscanTypeError` (E0805) for what is no number or array; `ShapeError` (E0201) where shapes do not broadcast.

    >>> rs.eval(rs.broadcast_arrays([1, 2], [[3], [4]]))
    [array([[1, 2],
           [1, 2]]), array([[3, 3],
           [4, 4]])]
    """
    items = [as_variable(a) for a in arrays]
    total: Any = None
    for v in items:
        flag = apply("broadcast_like", {}, as_variable(False), v)
        total = flag if total is None else total | flag
    return [broadcast_like(v, total) for v in items]


def flip(x: Any, axis: Any = None) -> Variable:
    """With the elements along axes (all by default) in reverse order.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `AxisError` (E0810) for an axis
    that is not there.

    >>> rs.flip([1, 2, 3]).eval()
    array([3, 2, 1])
    """
    v = as_variable(x)
    for a in axes_of(axis, v.ndim):
        v = apply("flip", {"axis": a}, v)
    return v


def flipud(x: Any) -> Variable:
    """Reversed along the first axis.

    errors: `RscanTypeError` (E0805) for what is no number or array; `AxisError` (E0810) for an axis that is not there.

    >>> rs.flipud([[1, 2], [3, 4]]).eval()
    array([[3, 4],
           [1, 2]])
    """
    return flip(x, 0)


def fliplr(x: Any) -> Variable:
    """Reversed along the second axis.

    errors: `RscanTypeError` (E0805) for what is no number or array; `AxisError` (E0810) for an axis that is not there.

    >>> rs.fliplr([[1, 2], [3, 4]]).eval()
    array([[2, 1],
           [4, 3]])
    """
    return flip(x, 1)


def rot90(x: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Variable:
    """A matrix turned by k quarters, from the first of two axes towards the second.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `x` or `axes` of another kind; `RscanValueError` (E0809)
    for `axes` out of range; `AxisError` (E0810) for an axis that is not there.

    >>> rs.rot90([[1, 2], [3, 4]]).eval()
    array([[2, 4],
           [1, 3]])
    """
    v = at_least(x, 2, "rot90")
    if len(axes_of(tuple(axes), v.ndim)) != 2:
        raise RscanValueError(f"rot90 turns two axes, not {axes!r}", code="E0809", labels=[(here(), "")])
    a, b = (one_axis(axis, v.ndim) for axis in axes)
    turns = {
        0: lambda m: m,
        1: lambda m: flip(swapaxes(m, a, b), a),
        2: lambda m: flip(m, (a, b)),
        3: lambda m: flip(swapaxes(m, a, b), b),
    }
    return turns[operator.index(k) % 4](v)


def common_dtype(arrays: list[Variable], dtype: Any, casting: str) -> str:
    """What arrays become when they are joined: their common dtype, or the one that is asked for and may be had."""
    if dtype is None:
        return result_dtype(*arrays)
    name = dtype_name(dtype)
    for v in arrays:
        if not np.can_cast(v.dtype, name, casting):  # type: ignore[arg-type]
            helps = ['casting="unsafe"']
            raise RscanTypeError(f"{v!r} does not become {name} by casting={casting!r}", code="E0809", labels=[(here(), "")], helps=helps)
    return name


def concatenate(arrays: Any, axis: int | None = 0, out: None = None, *, dtype: Any = None, casting: str = "same_kind") -> Variable:
    """Joined along an existing axis (None: flattened first), in their common dtype or as `dtype` says, where `casting` admits it.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `arrays` or `axis` of another kind; `AxisError` (E0810) for
    an axis that is not there.

    >>> rs.concatenate([[1.0, 2.0], [3.0]]).eval()
    array([1., 2., 3.])
    """
    _in_a_list(axis, "concatenate")
    if isinstance(arrays, Variable):
        arrays = list(arrays)
    no_out(out)
    items = [as_variable(a) for a in arrays]
    if not items:
        raise RscanTypeError("nothing to join", code="E0809", labels=[(here(), "")])
    if axis is None:
        items, axis = [ravel(v) for v in items], 0
    common = common_dtype(items, dtype, casting)
    at = one_axis(axis, items[0].ndim)
    return apply("join", {"axis": at}, *[cast(v, common) for v in items])


def _in_a_list(axis: Any, what: str) -> None:
    """Refuses an array in the place of the axis."""
    if isinstance(axis, (Variable, np.ndarray, list, tuple)):
        text, helps = f"{what} takes its arrays as one argument", [f"in a list: rs.{what}([a, b])"]
        raise RscanTypeError(text, code="E0809", labels=[(here(), "")], helps=helps)


def join(axis: int, *arrays: Any) -> Variable:
    """`concatenate` with the axis first.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind, (E0206) for arrays that do not fit
    each other; `AxisError` (E0810) for an axis that is not there.

    >>> rs.join(0, [1.0], [2.0, 3.0]).eval()
    array([1., 2., 3.])
    """
    return concatenate(arrays, axis)


def stack(arrays: Any, axis: int = 0, out: None = None, *, dtype: Any = None, casting: str = "same_kind") -> Variable:
    """Joined along a new axis, as `concatenate` joins.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `arrays` or `axis` of another kind; `AxisError` (E0810) for
    an axis that is not there.

    >>> rs.stack([[1, 2], [3, 4]], axis=1).eval()
    array([[1, 3],
           [2, 4]])
    """
    _in_a_list(axis, "stack")
    items = operands(list(arrays))
    if len({v.ndim for v in items}) > 1:
        text = f"stack takes arrays of one shape, got {', '.join(map(repr, items))}"
        raise RscanTypeError(text, code="E0206", labels=[(here(), "")], helps=["rs.concatenate joins along an axis that is there"])
    if not items:
        raise RscanTypeError("nothing to stack", code="E0809", labels=[(here(), "")])
    at = one_axis(axis, items[0].ndim + 1)
    return concatenate([expand_dims(v, at) for v in items], at, out, dtype=dtype, casting=casting)


def each(function: Any, arrays: tuple[Any, ...]) -> Any:
    """Of one array what a function gives, of several the tuple."""
    found = tuple(function(as_variable(a)) for a in arrays)
    return found[0] if len(found) == 1 else found


def atleast_1d(*arrays: Any) -> Any:
    """A scalar as a vector of one element; others as they are. Of several arrays a tuple.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.atleast_1d(3.0).eval()
    array([3.])
    """
    return each(lambda v: expand_dims(v, 0) if v.ndim == 0 else v, arrays)


def atleast_2d(*arrays: Any) -> Any:
    """With new first axes until there are two. Of several arrays a tuple.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.atleast_2d([1.0, 2.0]).eval()
    array([[1., 2.]])
    """
    return each(lambda v: expand_dims(v, tuple(range(2 - v.ndim))) if v.ndim < 2 else v, arrays)


def vstack(arrays: Any, *, dtype: Any = None, casting: str = "same_kind") -> Variable:
    """Joined as rows, as `concatenate` joins.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `arrays` of another kind.

    >>> rs.vstack([[1, 2], [3, 4]]).eval()
    array([[1, 2],
           [3, 4]])
    """
    return concatenate([atleast_2d(a) for a in arrays], 0, dtype=dtype, casting=casting)


def hstack(arrays: Any, *, dtype: Any = None, casting: str = "same_kind") -> Variable:
    """Joined along the second axis, vectors along the first, as `concatenate` joins.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `arrays` of another kind.

    >>> rs.hstack([[1, 2], [3]]).eval()
    array([1, 2, 3])
    """
    items = [atleast_1d(a) for a in arrays]
    return concatenate(items, 0 if items and items[0].ndim == 1 else 1, dtype=dtype, casting=casting)
