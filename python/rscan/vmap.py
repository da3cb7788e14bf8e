"""`vmap`: a function of one row as a function of many."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Never

from . import _native, _tree
from ._pickle import Transformed
from ._signatures import misspelt
from ._spans import here
from ._tracing import entered, loops_with_updates
from .compile import _is_leaf, _is_value
from .errors import RscanTypeError, RscanValueError, ShapeError
from .ops import arange, broadcast_to, expand_dims, moveaxis
from .variable import Variable, as_variable, wrap

__all__ = ["vmap"]


def vmap(f: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0, **unknown: Never) -> Callable[..., Any]:
    """The function that computes `f` for each row of its arguments, all rows at once, as `jax.vmap` does.

    in_axes: along which axis rows lie. One for all positional arguments, or a tuple of one for each; None for an argument that is
    the same for every row. Where an argument is a structure (a dict, a list, a tuple, a dataclass), one for all of it or a structure
    of axes. Arguments by name have axis 0.
    out_axes: where the axis of rows stands in the results, likewise; None for a result that is the same for every row.

    `f` is called once, with expressions of one row. Values, errors and random numbers are those of a loop over the rows; floats may be
    rounded otherwise in products and sums. Rows of a loop may stop at different steps. What needs rows of different lengths side by side
    is computed row after row.

    errors: `RscanTypeError` (E0508) for what is no function; calls raise `ShapeError` (E0128) where `in_axes` does not fit, and
    `RscanValueError` (E0129) for updates.

    >>> dots = rs.compile(rs.vmap(lambda a, b: rs.sum(a * b), in_axes=(0, None)))
    >>> dots(np.eye(2), np.array([3.0, 4.0]))
    array([3., 4.])
    """
    if unknown:
        raise misspelt(vmap, unknown)
    if not callable(f):
        raise RscanTypeError(f"vmap takes a function, not {f!r}", code="E0508", labels=[(here(), "")])

    @functools.wraps(f)
    def mapped(*args: Any, **named: Any) -> Any:
        span = here()
        call = _Call(span)
        arguments = call.rows(args, in_axes, "in_axes")
        keywords = {name: call.rows((value,), 0, "in_axes")[0] for name, value in named.items()}
        return call.results(f, arguments, keywords, out_axes)

    mapped.__dict__.pop("_value_and_grad", None)
    return Transformed(mapped, vmap, f, in_axes, out_axes)


class _Call:
    """One call of a mapped function."""

    def __init__(self, span: int) -> None:
        self.span = span
        #: Expressions of one row, with the arrays of all.
        self.pairs: list[tuple[_native.Var, _native.Var]] = []

    def rows(self, args: tuple[Any, ...], axes: Any, what: str) -> tuple[Any, ...]:
        """The arguments for one row."""
        spread = self._one_each(args, axes, what)
        return tuple(self._row_of(arg, own, what) for arg, own in zip(args, spread, strict=True))

    def _one_each(self, args: tuple[Any, ...], axes: Any, what: str) -> tuple[Any, ...]:
        if axes is None or isinstance(axes, int):
            return (axes,) * len(args)
        if not isinstance(axes, (tuple, list)) or len(axes) != len(args):
            raise self._error(f"{what} is an int, None or a tuple with one for each of the {len(args)} arguments, not {axes!r}")
        return tuple(axes)

    def _row_of(self, arg: Any, axes: Any, what: str) -> Any:
        leaves, tree = _tree.flatten(arg, _is_leaf)
        own = _axes_of(tree, axes)
        if own is None:
            raise self._error(f"{what} {axes!r} does not have the structure of the argument, {tree.describe()}")
        return tree.build(iter([self._leaf(leaf, axis) for leaf, axis in zip(leaves, own, strict=True)]))

    def _leaf(self, leaf: Any, axis: int | None) -> Any:
        if axis is None or not _is_value(leaf):
            return leaf
        value = as_variable(leaf)
        if not -value.ndim <= axis < value.ndim:
            text = f"an argument of {value.ndim} axes has no axis {axis} to be mapped over"
            raise self._error(text, "in_axes=(0, None) maps over the first argument and passes the second one on as it is")
        rows = value if axis in (0, -value.ndim) else moveaxis(value, axis, 0)
        row = _native.row(rows._v, self.span)
        self.pairs.append((row, rows._v))
        return wrap(row, value._family)

    def results(self, f: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any], out_axes: Any) -> Any:
        """What the function gives for all rows."""
        if not self.pairs:
            raise self._error("nothing is mapped over: in_axes names no axis of any argument")
        extent = wrap(self.pairs[0][1]).shape[0]
        numbers = arange(extent)
        index = _native.row(numbers._v, self.span)
        with entered(wrap(index)):
            result = f(*args, **named)
        leaves, tree = _tree.flatten(result, lambda v: isinstance(v, Variable))
        outputs = [as_variable(v) for v in leaves]
        self._refuse_updates([v._v for v in outputs], index.key[0])
        found = _native.vmap([v._v for v in outputs], [*self.pairs, (index, numbers._v)], self.span)
        axes = _axes_of(tree, out_axes)
        if axes is None:
            raise self._error(f"out_axes {out_axes!r} does not have the structure of the result, {tree.describe()}")
        placed = [
            self._placed(wrap(all_rows, v._family), varies, axis, extent)
            for v, (all_rows, varies), axis in zip(outputs, found, axes, strict=True)
        ]
        return tree.build(iter(placed))

    def _placed(self, value: Variable, varies: bool, axis: int | None, extent: Any) -> Variable:
        """A result with the axis of rows where it is wanted."""
        if axis is None:
            if varies:
                raise self._error("out_axes is None for a result that differs from row to row")
            return value
        ndim = value.ndim if varies else value.ndim + 1
        if not -ndim <= axis < ndim:
            raise self._error(f"out_axes is {axis} for a result of {ndim} axes")
        if not varies:
            value = broadcast_to(expand_dims(value, 0), [extent, *(value.shape[k] for k in range(value.ndim))])
        return value if axis in (0, -ndim) else moveaxis(value, 0, axis)

    def _refuse_updates(self, outputs: list[_native.Var], since: int) -> None:
        updated = [key for made in loops_with_updates(outputs, since) for key, _ in made.updates or ()]
        for node in _native.noted(outputs, since):
            variable = wrap(node)
            if node.kind == "shared" and not getattr(variable, "keyed", False) and getattr(variable, "default_update", None) is not None:
                updated.append(node)
        if updated:
            names = ", ".join(dict.fromkeys(f"`{wrap(v)._describe()}`" for v in updated))
            raise RscanValueError(
                f"a function under vmap cannot update {names}: rows have no order", code="E0129", labels=[(self.span, "")]
            )

    def _error(self, text: str, *helps: str) -> ShapeError:
        return ShapeError(text, code="E0128", labels=[(self.span, "")], helps=helps)


def _axes_of(tree: _tree.Tree, axes: Any) -> list[int | None] | None:
    """An axis for each leaf of a structure; None where axes have another structure."""
    if axes is None or isinstance(axes, int):
        return [axes] * len(_tree.paths(tree))
    if tree.kind is None:
        return None
    items = _children(tree, axes)
    if items is None:
        return None
    found = [_axes_of(child, item) for child, item in zip(tree.children, items, strict=True)]
    return None if any(part is None for part in found) else [axis for part in found for axis in part or ()]


def _children(tree: _tree.Tree, axes: Any) -> list[Any] | None:
    """The axes of each part of a structure."""
    if tree.kind == "dict":
        fits = isinstance(axes, Mapping) and set(axes) == set(tree.keys)
        return [axes[key] for key in tree.keys] if fits else None
    if tree.kind in ("dataclass", "namedtuple") and not isinstance(axes, (tuple, list)):
        fits = all(hasattr(axes, key) for key in tree.keys)
        return [getattr(axes, key) for key in tree.keys] if fits else None
    fits = isinstance(axes, (tuple, list)) and len(axes) == len(tree.children)
    return list(axes) if fits else None
