"""Reductions, products, shapes, sorting and making of arrays in operators of ONNX."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ._elementwise import FLOATS, Elementwise
from ._loops import Plan, run
from ._writer import Writer

END = sys.maxsize
#: What runtimes have kernels for.
_SUMMED = (*FLOATS, "int32", "int64")
_TRIANGLES = (*FLOATS, "int32", "int64", "bool")


class Call:
    """A node of the graph: its names of inputs, and what is known of them."""

    def __init__(self, w: Writer, v: Any, names: list[str]) -> None:
        self.w, self.v, self.names = w, v, names
        self.args, self.attrs, self.dtype = v.inputs, v.attrs, v.dtype

    @property
    def x(self) -> str:
        """The first input."""
        return self.names[0]

    @property
    def rank(self) -> int:
        """Axes of the first input."""
        return self.args[0].ndim

    def arg(self, i: int, dtype: str) -> str:
        """An input as a dtype."""
        return self.w.cast(self.names[i], self.args[i].dtype, dtype)

    def sizes(self, first: int) -> str:
        """The inputs from one on, which are extents, as a vector."""
        return self.w.vector(*(self.arg(i, "int64") for i in range(first, len(self.names))))


# What does nothing to values.


def same(c: Call) -> str:
    return c.x


def cast(c: Call) -> str:
    return c.w.cast(c.x, c.args[0].dtype, c.dtype)


def dim(c: Call) -> str:
    return c.w.extent(c.x, c.attrs["axis"])


# Reductions.


def reduce(c: Call) -> str:
    kind, axes, keep = c.attrs["kind"], list(c.attrs["axes"]), int(c.attrs["keepdims"])
    if not axes:
        return cast(c)
    if kind in ("any", "all"):
        x = c.arg(0, "bool")
        hits = c.w.cast(x if kind == "any" else c.w.op("Not", x), "bool", "int64")
        count = c.w.op("ReduceSum", hits, c.w.ints(*axes), keepdims=keep)
        return c.w.op("Greater" if kind == "any" else "Equal", count, c.w.integer(0))
    x = c.arg(0, c.dtype)
    if kind in ("max", "min"):
        return extreme(c.w, x, c.dtype, "Max" if kind == "max" else "Min", axes, keep)
    op = {"sum": "ReduceSum", "prod": "ReduceProd"}[kind]
    return c.w.through(op, x, c.dtype, _SUMMED, c.w.ints(*axes), keepdims=keep)


def extreme(w: Writer, x: str, dtype: str, which: str, axes: list[int], keep: int) -> str:
    """The extreme over axes. NaN wins, which runtimes do not promise."""
    if dtype == "uint64":  # in the order of signed words, the sign turned
        turned = _signed(w, x, dtype)
        found = w.op(f"Reduce{which}", turned, w.ints(*axes), keepdims=keep)
        return w.cast(w.op("BitwiseXor", found, w.integer(-(2**63))), "int64", dtype)
    found = w.through(f"Reduce{which}", x, dtype, (*FLOATS, "int32", "int64"), w.ints(*axes), keepdims=keep)
    if dtype not in FLOATS:
        return found
    count = w.op("ReduceSum", w.cast(w.op("IsNaN", x), "bool", "int64"), w.ints(*axes), keepdims=keep)
    return w.where(w.op("Greater", count, w.integer(0)), w.number(float("nan"), dtype), found, dtype)


def _signed(w: Writer, x: str, dtype: str) -> str:
    """Integers as int64 of the same order."""
    word = w.cast(x, dtype, "int64")
    return w.op("BitwiseXor", word, w.integer(-(2**63))) if dtype == "uint64" else word


def argreduce(c: Call) -> str:
    dtype, which, axis = c.args[0].dtype, {"max": "ArgMax", "min": "ArgMin"}[c.attrs["kind"]], c.attrs["axis"]
    if dtype not in FLOATS:
        return c.w.op(which, _signed(c.w, c.x, dtype), axis=axis, keepdims=0)
    nan = c.w.op("IsNaN", c.x)
    some = c.w.op("Greater", c.w.op("ReduceSum", c.w.cast(nan, "bool", "int64"), c.w.ints(axis), keepdims=1), c.w.integer(0))
    place = c.w.cast(nan, "bool", dtype)
    place = place if which == "ArgMax" else c.w.op("Neg", place)
    return c.w.op(which, c.w.where(some, place, c.x, dtype), axis=axis, keepdims=0)


def extreme_mask(c: Call) -> str:
    which = "Max" if c.attrs["kind"] == "max" else "Min"
    return c.w.op("Equal", c.x, extreme(c.w, c.x, c.args[0].dtype, which, list(c.attrs["axes"]), 1))


def logsumexp(c: Call) -> str:
    axes, w = list(c.attrs["axes"]), c.w
    x = c.arg(0, c.dtype)
    top = extreme(w, x, c.dtype, "Max", axes, 1)
    top = w.where(w.op("IsInf", top), w.number(0, c.dtype), top, c.dtype)
    total = w.op("ReduceSum", w.op("Exp", w.op("Sub", x, top)), w.ints(*axes), keepdims=1)
    out = w.op("Add", top, w.op("Log", total))
    return out if c.attrs["keepdims"] else w.op("Squeeze", out, w.ints(*axes))


def softmax(c: Call) -> str:
    return c.w.op("Softmax", c.arg(0, c.dtype), axis=c.attrs["axis"])


def log_softmax(c: Call) -> str:
    return c.w.op("LogSoftmax", c.arg(0, c.dtype), axis=c.attrs["axis"])


def cumsum(c: Call) -> str:
    return c.w.through("CumSum", c.arg(0, c.dtype), c.dtype, _SUMMED, c.w.integer(c.attrs["axis"]), reverse=int(c.attrs["reverse"]))


# Order.


def _order(w: Writer, x: str, dtype: str, axis: int) -> str:
    """Positions that sort x along an axis, stable, NaN last."""
    count = w.shape(x, axis, axis + 1)
    if dtype not in FLOATS:
        return w.several("TopK", [_signed(w, x, dtype), count], 2, axis=axis, largest=0, sorted=1)[1]
    nan = w.op("IsNaN", x)
    filled = w.where(nan, w.number(float("inf"), dtype), x, dtype)
    first = w.several("TopK", [filled, count], 2, axis=axis, largest=0, sorted=1)[1]
    behind = w.op("GatherElements", w.cast(nan, "bool", "int64"), first, axis=axis)
    then = w.several("TopK", [behind, count], 2, axis=axis, largest=0, sorted=1)[1]
    return w.op("GatherElements", first, then, axis=axis)


def argsort(c: Call) -> str:
    return _order(c.w, c.x, c.args[0].dtype, c.attrs["axis"])


def argtopk(c: Call) -> str:
    k, w = c.attrs["k"], c.w
    start, end = (-k, END) if c.attrs["largest"] else (0, k)
    return w.op("Slice", argsort(c), w.ints(start), w.ints(end), w.ints(c.attrs["axis"]))


def sort(c: Call) -> str:
    return c.w.op("GatherElements", c.x, argsort(c), axis=c.attrs["axis"])


def searchsorted(c: Call) -> str:
    """How many elements lie before each: compared with all."""
    w, (a, v) = c.w, c.args
    wide = "int64" if a.dtype not in FLOATS and v.dtype not in FLOATS else "float64"
    table, values = c.arg(0, wide), w.op("Unsqueeze", c.arg(1, wide), w.ints(-1))
    before = w.op("LessOrEqual" if c.attrs["right"] else "Less", table, values)
    if wide == "float64":
        nan = w.op("IsNaN", values)
        before = w.op("Or", before, nan if c.attrs["right"] else w.op("And", nan, w.op("Not", w.op("IsNaN", table))))
    return w.op("ReduceSum", w.cast(before, "bool", "int64"), w.ints(-1), keepdims=0)


# Products and shapes.


def matmul(c: Call) -> str:
    via = c.dtype if c.dtype in _SUMMED else "int64"
    return c.w.cast(c.w.op("MatMul", c.arg(0, via), c.arg(1, via)), via, c.dtype)


def reshape(c: Call) -> str:
    w, values = c.w, [a.value if a.kind == "const" else None for a in c.args[1:]]
    if all(value is not None and value >= 0 for value in values):
        return w.op("Reshape", c.x, w.ints(*(int(value) for value in values if value is not None)), allowzero=1)
    sizes = c.sizes(1)
    left = w.op("Equal", sizes, w.integer(-1))
    others = w.op("ReduceProd", w.where(left, w.integer(1), sizes, "int64"), keepdims=0)
    rest = w.op("Div", w.op("Size", c.x), w.op("Max", others, w.integer(1)))
    return w.op("Reshape", c.x, w.where(left, rest, sizes, "int64"), allowzero=1)


def reshape_like(c: Call) -> str:
    return c.w.op("Reshape", c.x, c.w.shape(c.names[1]), allowzero=1)


def transpose(c: Call) -> str:
    return c.w.op("Transpose", c.x, perm=list(c.attrs["perm"]))


def expand(c: Call) -> str:
    return c.w.op("Unsqueeze", c.x, c.w.ints(*c.attrs["axes"]))


def squeeze(c: Call) -> str:
    return c.w.op("Squeeze", c.x, c.w.ints(*c.attrs["axes"]))


def broadcast_to(c: Call) -> str:
    return c.w.op("Expand", c.x, c.sizes(1))


def broadcast_like(c: Call) -> str:
    return c.x if c.args[0].same_dims(c.args[1]) else c.w.op("Expand", c.x, c.w.shape(c.names[1]))


def sum_to(c: Call) -> str:
    """Sums over leading axes that y lacks, and, as the extents turn out, over those along which it has one element."""
    w, (x, y) = c.w, c.args
    if x.same_dims(y):
        return c.x
    out, extra = c.arg(0, c.dtype), x.ndim - y.ndim
    if extra:
        out = w.through("ReduceSum", out, c.dtype, _SUMMED, w.ints(*range(extra)), keepdims=0)
    if all(x.same_dim(i + extra, y, i) for i in range(y.ndim)):
        return out
    stretched = w.op("And", w.op("Equal", w.shape(c.names[1]), w.integer(1)), w.op("Not", w.op("Equal", w.shape(out), w.integer(1))))
    axes = w.op("Squeeze", w.op("NonZero", stretched), w.ints(0))
    return w.through("ReduceSum", out, c.dtype, _SUMMED, axes, keepdims=1, noop_with_empty_axes=1)


def join(c: Call) -> str:
    return c.w.op("Concat", *(c.arg(i, c.dtype) for i in range(len(c.names))), axis=c.attrs["axis"])


def flip(c: Call) -> str:
    w = c.w
    return w.op("Slice", c.x, w.ints(-1), w.ints(-END - 1), w.ints(c.attrs["axis"]), w.ints(-1))


# Arrays that are made.


def arange(c: Call) -> str:
    via = c.dtype if c.dtype in FLOATS else "int64"
    return c.w.cast(c.w.op("Range", *(c.arg(i, via) for i in range(3))), via, c.dtype)


def _diagonals(w: Writer, rows: str, columns: str) -> str:
    """Column minus row."""
    count = [w.upto(n) for n in (rows, columns)]
    return w.op("Sub", w.op("Unsqueeze", count[1], w.ints(0)), w.op("Unsqueeze", count[0], w.ints(1)))


def eye(c: Call) -> str:
    rows, columns, k = (c.arg(i, "int64") for i in range(3))
    return c.w.cast(c.w.op("Equal", _diagonals(c.w, rows, columns), k), "bool", c.dtype)


def diag(c: Call) -> str:
    w, k = c.w, c.attrs["k"]
    down, right = max(-k, 0), max(k, 0)
    if c.rank == 2:
        free = [w.op("Sub", w.extent(c.x, axis), w.integer(off)) for axis, off in ((0, down), (1, right))]
        steps = w.upto(w.op("Max", w.op("Min", *free), w.integer(0)))
        places = [w.op("Unsqueeze", w.op("Add", steps, w.integer(off)), w.ints(1)) for off in (down, right)]
        return w.op("GatherND", c.x, w.op("Concat", *places, axis=1))
    n = w.op("Add", w.extent(c.x, 0), w.integer(abs(k)))
    row = w.op("Concat", w.zeros(w.ints(right), c.dtype), c.x, w.zeros(w.ints(down), c.dtype), axis=0)
    on = w.op("Equal", _diagonals(w, n, n), w.integer(k))
    # Element i of column i + right stands in the row that the padded vector is spread over.
    return w.where(on, w.op("Expand", row, w.shape(on)), w.number(0, c.dtype), c.dtype)


def tri(c: Call) -> str:
    return c.w.through("Trilu", c.x, c.dtype, _TRIANGLES, c.w.integer(c.attrs["k"]), upper=int(not c.attrs["lower"]))


# Running values along an axis, one step after the other.


def _running(c: Call, axis: int, reverse: bool, start: Callable[[str], str], step: Callable[..., str]) -> str:
    """A state that each row of the inputs is put together with, as a loop; `start` makes it of the shape of a row."""
    w = c.w
    perm = [axis, *(i for i in range(c.rank) if i != axis)]
    back = sorted(range(c.rank), key=perm.__getitem__)
    rows = [w.op("Transpose", c.arg(i, c.dtype), perm=perm) for i in range(len(c.names))]
    plan = Plan(w, w.extent(rows[0], 0), False)
    kind = c.dtype, (None,) * (c.rank - 1)
    parameters = [plan.sequence(row, kind, reverse) for row in rows]
    state = plan.carry(start(w.shape(rows[0], 1)), kind, "state")

    def body() -> None:
        new = step(state, *parameters)
        plan.result(state, new)
        plan.emit(new, kind)

    (out,) = run(plan, body).rows
    out = c.w.op("Transpose", out, perm=back)
    return c.w.op("Slice", out, w.ints(-1), w.ints(-END - 1), w.ints(axis), w.ints(-1)) if reverse else out


def cumprod(c: Call) -> str:
    e = Elementwise(c.w, c.dtype)
    return _running(c, c.attrs["axis"], False, lambda shape: e.Expand(e.num(1), shape), e.mul)


def cumextreme(c: Call) -> str:
    e, most = Elementwise(c.w, c.dtype), c.attrs["kind"] == "max"
    return _running(c, c.attrs["axis"], False, lambda shape: e.Expand(_least(c, most), shape), e.maximum if most else e.minimum)


def _least(c: Call, most: bool) -> str:
    """What every number is an extreme of, together with."""
    if c.dtype == "bool":
        return c.w.constant(not most)
    if c.dtype in FLOATS:
        return c.w.number(float("-inf") if most else float("inf"), c.dtype)
    limits = np.iinfo(c.dtype)
    return c.w.constant(limits.min if most else limits.max, c.dtype)


def recurrence(c: Call) -> str:
    e = Elementwise(c.w, c.dtype)
    return _running(c, c.attrs["axis"], c.attrs["reverse"], lambda shape: c.w.zeros(shape, c.dtype), lambda y, a, b: e.Add(e.Mul(a, y), b))


STRUCTURAL: dict[str, Callable[[Call], str]] = {
    **dict.fromkeys(("stop_gradient", "hold", "grad_clip", "grad_to"), same),
    **{f.__name__: f for f in (cast, dim, reduce, argreduce, extreme_mask, logsumexp, softmax, log_softmax, cumsum, argsort, sort)},
    **{f.__name__: f for f in (argtopk, searchsorted, matmul, reshape, reshape_like, transpose, expand, squeeze, broadcast_to)},
    **{f.__name__: f for f in (broadcast_like, sum_to, join, flip, arange, eye, diag, tri, cumprod, cumextreme, recurrence)},
}
