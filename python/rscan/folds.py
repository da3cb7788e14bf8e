"""Loops of one function over one value: while a condition holds, counted, and the running combination of an associative function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _tree
from ._args import one_axis, whole
from ._spans import here, of_function
from .errors import RscanTypeError, RscanValueError, ScanError, ShapeError
from .loop import loop
from .ops import (
    arange,
    assert_,
    broadcast_to,
    concatenate,
    equal,
    expand_dims,
    flip,
    greater,
    logical_not,
    moveaxis,
    reshape,
    swapaxes,
    where,
    zeros,
)  # fmt: skip
from .scan import _loop_name, check_arguments, check_step, steps_of
from .updates import until
from .variable import Variable, as_variable, is_operand

__all__ = ["associative_scan", "fori", "while_loop"]

#: More steps than a loop of nanoseconds runs in a quarter of an hour: the most that a step's own loop may be told.
_UNLIMITED = 1 << 40


def fori(lower: Any, upper: Any, body: Callable[[Variable, Any], Any], init: Any) -> Any:
    """The value after `for i in range(lower, upper): value = body(i, value)`, starting from `init`, as `jax.lax.fori_loop`.

    The value may be a structure of dicts, lists, tuples and dataclasses. Where `lower` is not below `upper` it is `init`. `i` is int64.
    `rs.loop` keeps every step's value, and can end early.

    errors: `ScanError` (E0117) for bounds that are no integers, (E0105) where the structure changes, and those of `scan`.

    >>> rs.fori(1, 6, lambda i, product: product * i, 1).eval()
    array(120)
    """
    span = here()
    check_step(body, span)
    first, end = (steps_of(n, span) for n in (lower, upper))
    for v in (first, end):
        if v.ndim or not v.dtype.startswith(("int", "uint")):
            raise ScanError(f"fori counts from one integer to another, got {v!r}", code="E0117", labels=[(span, "")])

    def step(i: Variable, value: Any) -> dict[str, Any]:
        check_arguments(body, [i, value], {}, span)
        return {"value": _like(value, body(i, value), body, span)}

    return loop(step, over={"i": arange(first, end)}, init={"value": init}, name=_loop_name(body, None) or "fori").last["value"]


def while_loop(cond: Callable[[Any], Any], body: Callable[[Any], Any], init: Any) -> Any:
    """The value after `while cond(value): value = body(value)`, starting from `init`, as `jax.lax.while_loop`, and with reverse mode.

    The value may be a structure of dicts, lists, tuples and dataclasses. Where `cond(init)` is false it is `init`. A gradient keeps the
    values of all steps. Under `vmap` each row has a number of steps of its own. After 2**40 steps the loop ends. `rs.loop` with `rs.until`
    keeps every step's value.

    cond: of the value, true or false (a scalar). body: the next value.

    errors: `ScanError` (E0108) for a condition that is no scalar, (E0105) where the structure changes, (E0121) for an `init` without
    values, and those of `scan`.

    >>> rs.while_loop(lambda v: v[0] > 1, lambda v: (v[0] / 2, v[1] + 1), (100.0, 0))[1].eval()
    array(7)
    >>> rs.grad(lambda x: rs.while_loop(lambda y: y < 10, lambda y: y * y, x))(3.0)
    np.float64(108.0)
    """
    span = here()
    for function in (cond, body):
        check_step(function, span)
    leaves, tree = _tree.flatten(init, lambda v: isinstance(v, Variable))
    if not leaves:
        raise ScanError("while_loop starts from an array or a structure of arrays, and there is none", code="E0121", labels=[(span, "")])
    begun = tree.build(iter([as_variable(v) for v in leaves]))
    check_arguments(cond, [begun], {}, span)
    first = as_variable(cond(begun))
    if first.ndim:
        text = f"the condition of while_loop must be a scalar, got {first!r}"
        raise ScanError(text, code="E0108", labels=[(of_function(cond), "the condition"), (span, "in this loop")])

    def step(value: Any) -> tuple[dict[str, Any], until]:
        check_arguments(body, [value], {}, span)
        new = _like(value, body(value), body, span)
        return {"value": new}, until(logical_not(cond(new)))

    n_steps = where(first, _UNLIMITED, 0)
    return loop(step, init={"value": init}, n_steps=n_steps, name=_loop_name(body, None) or "while_loop").last["value"]


def _like(before: Any, after: Any, fn: Callable[..., Any], span: int) -> Any:
    """A result with the structure of an argument."""
    old, new = (_tree.flatten(v, lambda v: isinstance(v, Variable))[1] for v in (before, after))
    if not _tree.same(old, new):
        raise ScanError(
            f"the function makes {new.describe()} of {old.describe()}",
            code="E0105",
            labels=[(span, ""), (of_function(fn), "the function")],
            helps=["it returns a structure like the one that it is given"],
        )
    return after


def associative_scan(op: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0, *, blocks: int | None = None) -> Any:
    """`[e0, op(e0, e1), op(op(e0, e1), e2), …]` along an axis, as `jax.lax.associative_scan`.

    `elems` is an array or a structure of arrays that have this axis in common. `op` takes two structures like it, of any extent along the
    axis, and combines them pair by pair: `op(a, b)[k]` is made of `a[k]` and `b[k]` alone. It is associative, its results have the shape
    and dtype of its arguments, and it is differentiated like everything else. `rs.vmap` makes such a function of one for two elements.

    reverse: from the end, `[…, op(e2, e1), e2]`.
    blocks: elements, of which there are more, are taken in so many blocks side by side, which are then put together: twice the work in a
    `blocks`-th of the steps, and other roundings. Without it they are taken one after the other by a compiled loop, mostly the quickest.

    errors: `RscanTypeError` (E0809) for `blocks` or `axis` of another kind; `AxisError` (E0810) for an axis that is not there; `ScanError`
    (E0105) for a function that changes the structure, (E0118) for a sequence without an axis, (E0121) for arguments that a loop does not
    take; `RscanValueError` (E0121) for `blocks` less than 1.

    >>> rs.associative_scan(rs.maximum, np.array([1.0, 3.0, 2.0, 5.0])).eval()
    array([1., 3., 3., 5.])
    >>> a, b = np.array([0.5, 0.5, 2.0]), np.array([1.0, 1.0, 1.0])
    >>> _, x = rs.associative_scan(lambda f, g: (g[0] * f[0], g[0] * f[1] + g[1]), (a, b))  # x[t] = a[t] * x[t-1] + b[t]
    >>> x.eval()
    array([1. , 1.5, 4. ])
    """
    span = here()
    check_step(op, span)
    leaves, tree = _tree.flatten(elems, lambda v: isinstance(v, Variable))
    if not leaves:
        raise ScanError("associative_scan takes an array or a structure of arrays, and there is none", code="E0121", labels=[(span, "")])
    names = _tree.paths(tree, "elems")
    rows = [_rows(v, name, axis, span) for v, name in zip(leaves, names, strict=True)]
    rows = [flip(v, 0) for v in _of_one_length(rows, names, span)] if reverse else _of_one_length(rows, names, span)
    if blocks is not None and whole(blocks, "blocks") < 1:
        raise RscanValueError(f"blocks is {blocks}: a number of 1 or more", code="E0121", labels=[(span, "")])
    found = _Pairs(op, tree, axis, span).scanned(rows, 1 if blocks is None else whole(blocks, "blocks"))
    return tree.build(iter([moveaxis(flip(v, 0) if reverse else v, 0, axis) for v in found]))


def _rows(value: Any, name: str, axis: int, span: int) -> Variable:
    """An array with the axis first."""
    if not is_operand(value) and not isinstance(value, Variable):
        raise RscanTypeError(f"`{name}` is no array: {value!r}", code="E0121", labels=[(span, "")])
    v = as_variable(value)
    if v.ndim == 0:
        raise ScanError(f"`{name}` is a scalar: it has no axis to scan over", code="E0118", labels=[(span, "")])
    return moveaxis(v, one_axis(axis, v.ndim), 0)


def _of_one_length(rows: list[Variable], names: list[str], span: int) -> list[Variable]:
    """Refuses arrays of different lengths: at once where these are known, else when the function runs."""
    first = rows[0]
    unsure = [v for v in rows[1:] if not v._v.same_dim(0, first._v, 0)]
    for v, name in zip(rows, names, strict=True):
        a, b = first.static_shape[0], v.static_shape[0]
        if a is not None and b is not None and a != b:
            text = f"associative_scan takes arrays of one length, but `{names[0]}` has {a} elements, `{name}` {b}"
            raise ShapeError(text, code="E0201", labels=[(span, "")])
    same = [equal(v.shape[0], first.shape[0]) for v in unsure]
    return [assert_(first, *same, message="associative_scan takes arrays of one length"), *rows[1:]] if same else rows


class _Pairs:
    """The function on lists of arrays whose leading axis counts elements."""

    def __init__(self, op: Callable[[Any, Any], Any], tree: _tree.Tree, axis: int, span: int) -> None:
        self.op, self.tree, self.axis, self.span = op, tree, axis, span

    def __call__(self, a: list[Variable], b: list[Variable]) -> list[Variable]:
        left, right = (self.tree.build(iter([moveaxis(v, 0, self.axis) for v in part])) for part in (a, b))
        value = _like(left, self.op(left, right), self.op, self.span)
        found = [as_variable(v) for v in _tree.aligned(value, self.tree)]
        return [moveaxis(v, one_axis(self.axis, v.ndim), 0) if v.ndim else v for v in found]

    def scanned(self, rows: list[Variable], blocks: int) -> list[Variable]:
        """In blocks, of which each has an element and the first ones one more."""
        n = rows[0].static_shape[0]
        if blocks == 1 or (n is not None and n <= blocks):
            return self.in_order(rows)
        message = f"associative_scan in {blocks} blocks takes more than {blocks} elements"
        return self.in_blocks([assert_(rows[0], greater(rows[0].shape[0], blocks), message=message), *rows[1:]], blocks)

    def over(self, rows: list[Variable], first: list[Variable]) -> list[Variable]:
        """What each row makes of what the rows before it made, beginning with the first."""
        k = len(rows)
        found = loop(lambda *values: self(list(values[k:]), list(values[:k])), over=rows, init=first, name="associative_scan")
        return [found] if isinstance(found, Variable) else [found[i] for i in range(k)]

    def in_order(self, rows: list[Variable]) -> list[Variable]:
        """One after the other. A loop starts from something even where there are no elements: then from zeros, and runs no step."""
        sure = rows[0].static_shape[0] not in (None, 0)
        first = [v[:1] if sure else concatenate([v[:1], zeros([1, *v.shape[1:]], v.dtype)])[:1] for v in rows]
        rest = self.over([expand_dims(v[1:], 1) for v in rows], first)
        return [concatenate([v[:1], w[:, 0]]) for v, w in zip(rows, rest, strict=True)]

    def in_blocks(self, rows: list[Variable], blocks: int) -> list[Variable]:
        """The elements that make no full block, and one at least, come first. Then all blocks at once, each for itself; then what stands
        before each is put before its elements."""
        n = rows[0].shape[0]
        steps = (n - 1) // blocks
        rest = n - steps * blocks
        front = self.in_order([v[:rest] for v in rows])
        lanes = [swapaxes(reshape(v[rest:], [blocks, steps, *v.shape[1:]]), 0, 1) for v in rows]
        inner = self.over([v[1:] for v in lanes], [v[0] for v in lanes])
        inner = [concatenate([v[:1], w]) for v, w in zip(lanes, inner, strict=True)]
        before = self.in_order([concatenate([f[-1:], v[-1][:-1]]) for f, v in zip(front, inner, strict=True)])
        flat = [reshape(v, [steps * blocks, *v.shape[2:]]) for v in inner]
        spread = [reshape(broadcast_to(b[None], v.shape), [steps * blocks, *v.shape[2:]]) for b, v in zip(before, inner, strict=True)]
        whole = [reshape(v, [steps, blocks, *v.shape[1:]]) for v in self(spread, flat)]
        return [concatenate([f, reshape(swapaxes(v, 0, 1), [steps * blocks, *v.shape[2:]])]) for f, v in zip(front, whole, strict=True)]
