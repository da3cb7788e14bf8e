"""Indexing as NumPy's, read and written.

An index becomes up to three stages, each one op: slices and integers (`index`), new axes (`expand`), arrays of
positions (`gather`). Writing runs through the same stages backwards.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from ._args import one_axis, whole
from ._spans import here
from .dtypes import as_array
from .errors import RscanIndexError, RscanTypeError, RscanValueError, UnsupportedError
from .ops_elementwise import cast
from .ops_shape import broadcast_like, expand_dims, ravel, squeeze
from .variable import Variable, apply, apply_all, as_variable, elementwise, extent, is_weak, operands, weak_constant

__all__ = ["diagonal", "inc_subtensor", "nonzero", "set_subtensor", "take", "take_along_axis"]


@dataclass
class Plan:
    """An index in three stages."""

    #: Items of the first stage, one per leading axis of the indexed array, with their inputs.
    items: list[str] = field(default_factory=list)
    inputs: list[Variable] = field(default_factory=list)
    #: New axes of the array that the first stage gives.
    new: list[int] = field(default_factory=list)
    #: New axes that only keep arrays of positions apart, to be taken out at the end.
    walls: list[int] = field(default_factory=list)
    #: Indexed axes after the second stage, with their arrays of positions.
    axes: list[int] = field(default_factory=list)
    arrays: list[Variable] = field(default_factory=list)

    @property
    def pattern(self) -> str:
        """Items of the first stage, without trailing full slices."""
        items = list(self.items)
        while items and items[-1] == ":":
            items.pop()
        return ",".join(items)


def getitem(x: Variable, key: Any) -> Variable:
    """`x[key]`."""
    plan = plan_index(x, key)
    out = _read(x, plan)
    if out is x:
        out = apply("transpose", {"perm": list(range(x.ndim))}, x)
    out._origin = (x, key)
    return out


def _read(x: Variable, plan: Plan) -> Variable:
    out = _basic(x, plan)
    if plan.axes:
        out = apply("gather", {"axes": plan.axes}, out, *plan.arrays)
        walls = _walls(plan)
        out = squeeze(out, walls) if walls else out
    return out


def _basic(x: Variable, plan: Plan) -> Variable:
    """The first two stages."""
    out = apply("index", {"pattern": plan.pattern}, x, *plan.inputs) if plan.pattern else x
    return expand_dims(out, tuple(plan.new)) if plan.new else out


def _walls(plan: Plan) -> tuple[int, ...]:
    """Where the walls are in the result: the positions' axes come first, as walls part them."""
    front = max((a.ndim for a in plan.arrays), default=0)
    return tuple(front + w - sum(a < w for a in plan.axes) for w in plan.walls)


def plan_index(x: Variable, key: Any) -> Plan:
    """The stages of an index."""
    items = list(key) if isinstance(key, tuple) else [key]
    items = [_normal(item) for item in items]
    advanced = any(_is_array(item) for item in items)
    items = _fill(x, items)
    plan, axis, place = Plan(), 0, 0
    for item in items:
        if item is None or item is Wall:
            (plan.new if item is None else plan.walls).append(place)
            if item is Wall:
                plan.new.append(place)
            place += 1
        elif isinstance(item, slice):
            _add_slice(plan, x, axis, item)
            axis, place = axis + 1, place + 1
        elif _is_array(item) and item.dtype == "bool":
            positions = _mask(x, axis, item)
            for array in positions:
                _add_array(plan, place, array)
                axis, place = axis + 1, place + 1
        elif advanced:
            _add_array(plan, place, item)
            axis, place = axis + 1, place + 1
        else:
            plan.items.append("i")
            plan.inputs.append(item)
            axis += 1
    return plan


class Wall:
    """Stands where an empty `...` parts two arrays of positions: NumPy then puts their axes first."""


def _add_array(plan: Plan, place: int, array: Variable) -> None:
    plan.items.append(":")
    plan.axes.append(place)
    plan.arrays.append(array)


def _add_slice(plan: Plan, x: Variable, axis: int, item: slice) -> None:
    step = 1 if item.step is None else _constant_step(item.step)
    text = ""
    for letter, bound in (("s", item.start), ("e", item.stop)):
        if bound is not None:
            text += letter
            plan.inputs.append(_integer(bound, "a bound of a slice"))
        text += ":" if letter == "s" else ""
    plan.items.append(text if step == 1 else f"{text}:{step}")


def _constant_step(step: Any) -> int:
    value = step._v.value if isinstance(step, Variable) else step
    try:
        number = operator.index(value.item() if isinstance(value, np.ndarray) else value)
    except TypeError:
        raise UnsupportedError(
            "the step of a slice must be an integer known now",
            code="E0803",
            labels=[(here(), "")],
            helps=["x[rs.arange(start, stop, step)]"],
        ) from None
    if number == 0:
        raise RscanIndexError("the step of a slice cannot be 0", code="E0803", labels=[(here(), "")])
    return number


def _integer(value: Any, what: str) -> Variable:
    v = as_variable(value if isinstance(value, Variable) else operator_index(value, what))
    if v.ndim or v.dtype[0] not in "iu":
        raise RscanIndexError(f"{what} is an integer scalar, not {v!r}", code="E0803", labels=[(here(), "")])
    return v


def operator_index(value: Any, what: str) -> int:
    """A Python integer, or an error that says what was expected."""
    try:
        return operator.index(value)
    except TypeError:
        raise RscanIndexError(f"{what} is an integer, not {value!r}", code="E0803", labels=[(here(), "")]) from None


def _normal(item: Any) -> Any:
    """An item of an index: None, Ellipsis, a slice, an integer scalar or an array of positions or truth values."""
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    if isinstance(item, (bool, np.bool_)):
        raise UnsupportedError("a single truth value is no index here", code="E0803", labels=[(here(), "")])
    if isinstance(item, (list, tuple, range)):
        item = np.asarray(item, dtype=np.int64) if len(item) == 0 else item if _symbolic(item) else as_array(item)
    elif not isinstance(item, (Variable, np.ndarray)):
        item = operator_index(item, "an index")
    v = as_variable(item)
    if v.dtype.startswith("float"):
        text = f"an index is made of integers or truth values, not {v.dtype}"
        raise RscanIndexError(text, code="E0803", labels=[(here(), "")], helps=['rs.cast(i, "int64") makes integers of floats'])
    if v.ndim == 0 and v.dtype == "bool":
        raise UnsupportedError("a single truth value is no index here", code="E0803", labels=[(here(), "")])
    return v


def _symbolic(item: Any) -> bool:
    return isinstance(item, Variable) or (isinstance(item, (list, tuple)) and any(map(_symbolic, item)))


def _is_array(item: Any) -> bool:
    """True for what makes an index advanced: arrays, also of rank 0 where NumPy's would be."""
    return isinstance(item, Variable) and item.ndim > 0


def _width(item: Any) -> int:
    """Number of axes that an item takes."""
    if item is None or item is Ellipsis:
        return 0
    return item.ndim if isinstance(item, Variable) and item.dtype == "bool" else 1


def _many(n: int, one: str, more: str) -> str:
    return f"{n} {one if n == 1 else more}"


def _fill(x: Variable, items: list[Any]) -> list[Any]:
    """The items with `...` written out and full slices for the axes that are not mentioned."""
    dots = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise RscanIndexError("an index has only one `...`", code="E0803", labels=[(here(), "")])
    missing = x.ndim - sum(map(_width, items))
    if missing < 0:
        raise RscanIndexError(
            f"{_many(x.ndim - missing, 'index', 'indices')} for {_many(x.ndim, 'axis', 'axes')}: {x!r}",
            code="E0803",
            labels=[(here(), ""), (x._v.span, "made here")],
            helps=[] if x.ndim else ["a scalar has no elements; where an array was meant, pass one: np.array([…])"],
        )
    rest: list[Any] = [slice(None)] * missing
    if not dots:
        return items + rest
    before, after = items[: dots[0]], items[dots[0] + 1 :]
    if not rest and any(map(_is_array, items)) and _parts(before) and _parts(after):
        rest = [Wall]
    return before + rest + after


def _parts(items: list[Any]) -> bool:
    return any(isinstance(item, Variable) for item in items)


def _mask(x: Variable, axis: int, mask: Variable) -> list[Variable]:
    """The positions at which a mask is true; its extents must be those of the axes that it indexes."""
    checks = []
    for i in range(mask.ndim):
        m, n = mask.static_shape[i], x.static_shape[axis + i]
        if m is not None and n is not None and m != n:
            text = f"a mask of extent {m} for axis {axis + i}, which has {n}"
            raise RscanIndexError(text, code="E0803", labels=[(here(), "")])
        if (m is None or n is None) and not mask._v.same_dim(i, x._v, axis + i):
            checks.append(apply("eq", {}, *operands((extent(mask, i), extent(x, axis + i)))))
    if checks:
        message = "the mask of an index has another shape than what it indexes"
        mask = apply("assert", {"message": message}, mask, *checks)
    return apply_all("nonzero", {}, [mask])


# Writing.


class At:
    """`x.at`: what its index is written at."""

    def __init__(self, x: Variable) -> None:
        self._x = x

    def __getitem__(self, key: Any) -> Place:
        return Place(self._x, key)

    def __call__(self, *_: Any) -> NoReturn:
        raise RscanIndexError("an index stands in brackets: x.at[i].set(v)", code="E0803", labels=[(here(), "")])


class Place:
    """`x.at[key]`: gives copies of x, changed there."""

    def __init__(self, x: Variable, key: Any) -> None:
        self._x, self._key = x, key

    def get(self) -> Variable:
        """`x[key]`."""
        return getitem(self._x, self._key)

    def set(self, value: Any) -> Variable:
        """x with `value` there. Where a position occurs twice, the last one wins."""
        return write(self._x, self._key, value, "set")

    def add(self, value: Any) -> Variable:
        """x with `value` added there. Where a position occurs twice, both are added."""
        return write(self._x, self._key, value, "inc")

    def multiply(self, value: Any) -> Variable:
        """x with what is there multiplied by `value`. Where a position occurs twice, by both."""
        return self.apply(lambda old, new: old * new, value)

    mul = multiply

    def divide(self, value: Any) -> Variable:
        """x with what is there divided by `value`. Where a position occurs twice, by both."""
        return self.apply(lambda old, new: old / new, value)

    def min(self, value: Any) -> Variable:
        """x with the smaller of what is there and `value`."""
        return self.apply(lambda old, new: elementwise("minimum", old, new), value)

    def max(self, value: Any) -> Variable:
        """x with the larger of what is there and `value`."""
        return self.apply(lambda old, new: elementwise("maximum", old, new), value)

    def power(self, value: Any) -> Variable:
        """x with what is there raised to `value`. Where a position occurs twice, by both."""
        return self.apply(lambda old, new: old**new, value)

    def apply(self, function: Callable[[Variable, Variable], Any], value: Any) -> Variable:
        """x with `function(old, value)` there. Where a position occurs twice, it is called again with what it gave."""
        plan = plan_index(self._x, self._key)
        if not plan.axes or all(set(array.static_shape) <= {1} for array in plan.arrays):
            return self.set(function(self.get(), as_variable(value, family=self._x._family) if not is_weak(value) else value))
        return _one_after_another(self._x, self._key, function, value)


def _one_after_another(x: Variable, key: Any, function: Callable[[Variable, Variable], Any], value: Any) -> Variable:
    """x with a function's values at positions that may occur more than once: a loop over them."""
    from .loop import final
    from .ops_create import arange
    from .ops_shape import reshape
    from .scan import scan

    places = getitem(reshape(arange(x.size), x.shape), key)
    values = broadcast_like(_writable(x, value), places)

    def step(place: Variable, new: Variable, flat: Variable) -> Variable:
        return write(flat, place, cast(function(flat[place], new), x.dtype), "set")

    rows, _ = scan(step, sequences=[ravel(places), ravel(values)], outputs_info=ravel(x), name="at")
    return reshape(final(rows), x.shape)


def write(x: Variable, key: Any, value: Any, mode: str) -> Variable:
    """A copy of x with `value` set (`set`) or added (`inc`) at an index."""
    plan = plan_index(x, key)
    y = _writable(x, value)
    if not plan.axes:
        if not plan.pattern and not plan.new:
            return broadcast_like(y, x) if mode == "set" else x + broadcast_like(y, x)
        if plan.new:
            y = squeeze(broadcast_like(y, _basic(x, plan)), plan.new)
        return apply("index_write", {"mode": mode, "pattern": plan.pattern}, x, y, *plan.inputs)
    if plan.walls:
        y = expand_dims(broadcast_like(y, _read(x, plan)), _walls(plan))
    inner = _basic(x, plan)
    inner = apply("gather_write", {"mode": mode, "axes": plan.axes}, inner, y, *plan.arrays)
    if plan.new:
        inner = squeeze(inner, plan.new)
    return apply("index_write", {"mode": "set", "pattern": plan.pattern}, x, inner, *plan.inputs) if plan.pattern else inner


def _writable(x: Variable, value: Any) -> Variable:
    """A value in the dtype of the array that it is written into."""
    if is_weak(value) and not (isinstance(value, float) and not x.dtype.startswith("float")):
        return cast(weak_constant(value, x.dtype, x._family), x.dtype)
    v = as_variable(value, family=x._family)
    if not np.can_cast(v.dtype, x.dtype, "same_kind"):
        raise RscanTypeError(
            f"{v.dtype} cannot be written into an array of {x.dtype}",
            code="E0804",
            labels=[(here(), ""), (x._v.span, "the array is made here")],
            helps=[f'rs.cast(value, "{x.dtype}") rounds, or make the array {v.dtype} first'],
        )
    return cast(v, x.dtype)


def _origin(place: Variable, what: str) -> tuple[Variable, Any]:
    if not isinstance(place, Variable) or place._origin is None:
        raise RscanTypeError(
            f"{what} takes an indexed variable, as in {what}(x[i], value)",
            code="E0809",
            labels=[(here(), "")],
            helps=["x.at[i].set(value)"],
        )
    return place._origin


def set_subtensor(place: Variable, value: Any) -> Variable:
    """`set_subtensor(x[i], v)`: x with v at i.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `place` of another kind; `ShapeError` (E0201) where shapes
    do not broadcast.

    >>> x = rs.as_variable([1.0, 2.0, 3.0])
    >>> rs.set_subtensor(x[0], 10).eval()
    array([10.,  2.,  3.])
    """
    return write(*_origin(place, "set_subtensor"), value, "set")


def inc_subtensor(place: Variable, value: Any) -> Variable:
    """`inc_subtensor(x[i], v)`: x with v added at i.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `place` of another kind; `ShapeError` (E0201) where shapes
    do not broadcast.

    >>> x = rs.as_variable([1.0, 2.0, 3.0])
    >>> rs.inc_subtensor(x[1:], 10).eval()
    array([ 1., 12., 13.])
    """
    return write(*_origin(place, "inc_subtensor"), value, "inc")


# Functions that index.


def nonzero(x: Any) -> tuple[Variable, ...]:
    """Per axis, the positions (int64) of the elements that are not 0.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.eval(list(rs.nonzero([0, 3, 4])))
    [array([1, 2])]
    """
    v = as_variable(x)
    return tuple(apply_all("nonzero", {}, [v if v.ndim else expand_dims(v, 0)]))


def take(x: Any, indices: Any, axis: int | None = None, out: None = None, mode: str = "raise") -> Variable:
    """Elements (or slices along an axis) at these positions. Those outside are an error (E0202) when it runs; with `mode="wrap"` they are
    counted on from the other end, with "clip" they are the nearest ones.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `RscanValueError` (E0809) for
    `mode` out of range; `AxisError` (E0810) for an axis that is not there; `RscanIndexError` (E0803) for what is no index;
    `RscanIndexError` (E0202), when it runs, for an index outside its axis.

    >>> rs.take([10, 20, 30], [2, 0]).eval()
    array([30, 10])
    """
    v = as_variable(x)
    if axis is None:
        v, axis = ravel(v), 0
    if not (isinstance(indices, (list, tuple)) and not indices):
        positions = as_variable(indices)
        indices = cast(positions, "int64") if positions.dtype == "bool" else indices
    if mode != "raise":
        indices = _inside(as_variable(indices), extent(v, one_axis(axis, v.ndim)), mode)
    return v[(slice(None),) * one_axis(axis, v.ndim) + (indices,)]


def _inside(positions: Variable, n: Any, mode: str) -> Variable:
    """Positions from 0 to n − 1."""
    places = cast(positions, "int64")
    if mode == "wrap":
        return places % n
    if mode == "clip":
        return elementwise("minimum", elementwise("maximum", places, 0), as_variable(n) - 1)
    raise RscanValueError(f"the modes of take are 'raise', 'wrap' and 'clip', not {mode!r}", code="E0809", labels=[(here(), "")])


def take_along_axis(x: Any, indices: Any, axis: int | None = -1) -> Variable:
    """The elements whose positions along an axis (None: of the flattened array) are given, for each place of the other axes.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axis` of another kind; `AxisError` (E0810) for an axis
    that is not there; `RscanIndexError` (E0803) for what is no index.

    >>> rs.take_along_axis([[1, 2], [3, 4]], [[1], [0]], 1).eval()
    array([[2],
           [3]])
    """
    v, idx = as_variable(x), as_variable(indices)
    if axis is None:
        v, axis = v.reshape(-1), 0
    at = one_axis(axis, v.ndim)
    if idx.ndim != v.ndim:
        raise RscanIndexError(
            f"take_along_axis takes as many axes of indices as of the array, got {idx!r}",
            code="E0803",
            labels=[(here(), "")],
        )
    where = [_counting(v, i) if i != at else idx for i in range(v.ndim)]
    return v[tuple(where)]


def _counting(x: Variable, axis: int) -> Variable:
    from .ops_create import arange

    return expand_dims(arange(extent(x, axis)), tuple(i for i in range(x.ndim) if i != axis))


def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Variable:
    """The elements whose positions along two axes differ by an offset; their axis is the last one.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `offset`, `axis2` or `axis1` of another kind; `AxisError`
    (E0810) for an axis that is not there.

    >>> rs.diagonal([[1, 2], [3, 4]]).eval()
    array([1, 4])
    """
    from .ops_create import arange
    from .ops_shape import moveaxis

    v = moveaxis(as_variable(x), (axis1, axis2), (-2, -1))
    if v.ndim == 2:
        return apply("diag", {"k": whole(offset, "offset")}, v)
    rows, columns = extent(v, v.ndim - 2) - max(-offset, 0), extent(v, v.ndim - 1) - max(offset, 0)
    shorter = min(rows, columns) if isinstance(rows, int) and isinstance(columns, int) else apply("minimum", {}, *operands((rows, columns)))
    steps = arange(shorter)
    return v[(..., steps + max(-offset, 0), steps + max(offset, 0))]
