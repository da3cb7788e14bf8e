"""Indices, read and written, in operators of ONNX."""

from __future__ import annotations

from ._structural import END, Call
from ._writer import Writer


def _basic(w: Writer, x: str, pattern: str, bounds: list[str]) -> str:
    """The elements at a basic index: all slices at once, then single positions, the last axis first."""
    rest = iter(bounds)
    starts, ends, axes, steps, single = [], [], [], [], []
    for axis, item in enumerate(pattern.split(",") if pattern else ()):
        if item == "i":
            single.append((axis, next(rest)))
            continue
        start, end, step = [*item.split(":"), ""][:3]
        by = int(step) if step else 1
        if not start and not end and by == 1:
            continue
        starts.append(next(rest) if start else w.integer(0 if by > 0 else END))
        ends.append(next(rest) if end else w.integer(END if by > 0 else -END - 1))
        axes.append(axis)
        steps.append(by)
    if axes:
        x = w.op("Slice", x, w.vector(*starts), w.vector(*ends), w.ints(*axes), w.ints(*steps))
    for axis, place in reversed(single):
        x = w.op("Gather", x, place, axis=axis)
    return x


def index(c: Call) -> str:
    return _basic(c.w, c.x, c.attrs["pattern"], [c.arg(i, "int64") for i in range(1, len(c.names))])


def index_write(c: Call) -> str:
    """Writes where the elements of an array of positions are that the index selects."""
    w = c.w
    shape, size = w.shape(c.x), w.op("Size", c.x)
    positions = w.op("Reshape", w.upto(size), shape, allowzero=1)
    places = _basic(w, positions, c.attrs["pattern"], [c.arg(i, "int64") for i in range(2, len(c.names))])
    new = w.op("Expand", c.arg(1, c.dtype), w.shape(places))
    flat = w.op("Reshape", c.x, w.ints(-1))
    spots = w.op("Unsqueeze", places, w.ints(-1))
    if c.attrs["mode"] == "inc":  # places are different, so what is there can be read first
        old = w.op("GatherND", flat, spots)
        new = w.op("Or" if c.dtype == "bool" else "Add", old, new)
    return w.op("Reshape", w.op("ScatterND", flat, spots, new), shape, allowzero=1)


class Places:
    """Advanced indexing of some axes: these first, positions as rows of a matrix of any number of axes."""

    def __init__(self, c: Call, first: int) -> None:
        w, self.axes = c.w, list(c.attrs["axes"])
        self.rest = [i for i in range(c.rank) if i not in self.axes]
        arrays = [c.arg(i, "int64") for i in range(first, len(c.names))]
        self.rank = max(c.args[i].ndim for i in range(first, len(c.names)))
        common = arrays[0]
        for array in arrays[1:]:
            common = w.op("Add", common, array)
        shape = w.shape(common)
        spread = [a if len(arrays) == 1 else w.op("Expand", a, shape) for a in arrays]
        self.index = w.op("Concat", *(w.op("Unsqueeze", a, w.ints(-1)) for a in spread), axis=-1)
        self.shape = shape
        adjacent = all(b == a + 1 for a, b in zip(self.axes, self.axes[1:], strict=False))
        before = self.axes[0] if adjacent else 0
        n = self.rank
        #: From (places, other axes) to where NumPy puts the places.
        self.out = [*range(n, n + before), *range(n), *range(n + before, n + len(self.rest))]

    def front(self, w: Writer, x: str) -> str:
        """x with the indexed axes first."""
        return w.op("Transpose", x, perm=[*self.axes, *self.rest])

    def back(self, w: Writer, x: str) -> str:
        """The axes of x where they were."""
        perm = [*self.axes, *self.rest]
        return w.op("Transpose", x, perm=sorted(range(len(perm)), key=perm.__getitem__))


def gather(c: Call) -> str:
    if len(c.attrs["axes"]) == 1:
        return c.w.op("Gather", c.x, c.arg(1, "int64"), axis=c.attrs["axes"][0])
    p = Places(c, 1)
    return c.w.op("Transpose", c.w.op("GatherND", p.front(c.w, c.x), p.index), perm=p.out)


def gather_write(c: Call) -> str:
    """Adds at places, or sets them: there the last of those that write to one place wins, which ONNX leaves open."""
    w, p = c.w, Places(c, 2)
    x = p.front(w, c.x)
    whole = w.shape(x)
    others = w.op("Slice", whole, w.ints(len(p.axes)), w.ints(END))
    shape = w.op("Concat", p.shape, others, axis=0)
    # The new values in the order of axes of the result, then places first.
    order = w.op("Gather", shape, w.ints(*p.out), axis=0)
    new = w.op("Expand", c.arg(1, c.dtype), order)
    new = w.op("Transpose", new, perm=sorted(range(len(p.out)), key=p.out.__getitem__))
    if c.attrs["mode"] == "inc":
        if c.dtype != "bool":
            return p.back(w, w.op("ScatterND", x, p.index, new, reduction="add"))
        count = w.op("ScatterND", w.cast(x, "bool", "int64"), p.index, w.cast(new, "bool", "int64"), reduction="add")
        return p.back(w, w.cast(count, "int64", "bool"))
    own = w.op("Slice", whole, w.ints(0), w.ints(len(p.axes)))
    count = w.op("ReduceProd", p.shape)
    number = w.op("Reshape", w.upto(w.op("Squeeze", count, w.ints(0))), p.shape, allowzero=1)
    winner = w.op("ScatterND", w.op("Expand", w.integer(-1), own), p.index, number, reduction="max")
    rows = w.op("Reshape", new, w.op("Concat", count, others, axis=0), allowzero=1)
    # A row behind the last one, which stands for places that nothing is written to.
    rows = w.op("Concat", rows, w.zeros(w.op("Concat", w.ints(1), others, axis=0), c.dtype), axis=0)
    there = w.op("Concat", own, w.ints(*[1] * len(p.rest)), axis=0)
    hit = w.op("Reshape", w.op("GreaterOrEqual", winner, w.integer(0)), there, allowzero=1)
    return p.back(w, w.where(hit, w.op("Gather", rows, winner, axis=0), x, c.dtype))
