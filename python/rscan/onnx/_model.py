"""Functions as graphs of ONNX."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np

from .. import _native
from .._spans import here
from ._elementwise import elementwise
from ._indexing import gather, gather_write, index, index_write
from ._loops import Loop
from ._structural import STRUCTURAL, Call
from ._writer import Body, Port, Writer, unsupported

#: Operations by name and what they need; the rest of the table is in `REFUSED`.
CALLS = {**STRUCTURAL, **{f.__name__: f for f in (index, index_write, gather, gather_write)}}

_FACTORS = "there are no factorisations"
_DRAWS = ("fold_in", "random_uniform", "random_normal", "random_integers", "random_permutation", "legacy_draw")
#: What is refused, and why.
REFUSED = {
    **dict.fromkeys(("solve", "cholesky", "inverse", "slogdet", "det", "cofactor", "cofactor_slope", "solve_slogdet"), _FACTORS),
    **dict.fromkeys(("qr", "eigh", "svd", "pinv"), _FACTORS),
    **dict.fromkeys(_DRAWS, "its generators give other numbers"),
    "dft": "Fourier transforms are not written yet",
    "assert": "a graph has no errors of its own",
    "argcumextreme": "",
    # Passes make these; what a user writes has others in their place.
    **dict.fromkeys(("outer_sum", "log_matmul", "log_matmul_powers", "log_matmul_sums"), ""),
    **dict.fromkeys(("log_matmul_quotients", "log_matmul_left", "log_matmul_right"), ""),
}
_ROWS = frozenset(row["name"] for row in _native.catalogue())


@dataclasses.dataclass
class Model:
    """A whole model: its graph, the constants in it, and what it is called."""

    name: str
    graph: Body
    constants: dict[str, np.ndarray]
    doc: str


class Exporter:
    """Writes expressions as nodes, each where it is first needed."""

    def __init__(self) -> None:
        self.w = Writer()

    def use(self, roots: Iterable[Any]) -> None:
        """Notes what is read on the way to expressions."""
        stack = list(roots)
        while stack:
            v = stack.pop()
            if v.key not in self.w.used:
                self.w.used.add(v.key)
                stack += v.inputs

    def compute(self, root: Any) -> str:
        """The name of an expression, whose nodes are added where they are not there yet."""
        stack = [root]
        while stack:
            v = stack[-1]
            if self.w.find(v.key) is not None:
                stack.pop()
                continue
            # A branch computes what it alone needs.
            first = v.inputs[:1] if v.op == "ifelse" else v.inputs
            missing = [i for i in first if self.w.find(i.key) is None]
            if missing:
                stack += reversed(missing)
                continue
            self._add(v)
        return self.w.find(root.key) or ""

    def _add(self, v: Any) -> None:
        w = self.w
        place = _native.span_place(v.span)
        w.place = f"{place[0].rsplit('/', 1)[-1]}:{place[1]}" if place else ""
        if v.kind == "const":
            w.scopes[0].names[v.key] = w.constant(v.value, hint=v.name or "const")
        elif v.kind == "shared":
            w.scopes[0].names[v.key] = w.constant(v.shared.get(), hint=v.name or "shared")
        elif v.kind == "input":
            raise unsupported(f"what {v.describe()} is", v.span)
        else:
            outs = self._applied(v)
            w.scopes[-1].names.update({s.key: name for s, name in zip(v.siblings(), outs, strict=True) if name})

    def _applied(self, v: Any) -> list[str]:
        op = v.op
        if op == "ifelse":
            return [self._branches(v)]
        names = [self.w.find(i.key) or "" for i in v.inputs]
        if op == "scan":
            return Loop(self.w, v, names, self.compute, self.use).write()
        if op in _ROWS:
            return elementwise(self.w, v, names)
        if op == "nonzero":
            found = self.w.op("NonZero", self.w.cast(names[0], v.inputs[0].dtype, "bool"))
            return [self.w.op("Gather", found, self.w.integer(axis), axis=0) for axis in range(len(v.siblings()))]
        if op in CALLS:
            return [CALLS[op](Call(self.w, v, names))]
        if op in REFUSED:
            raise unsupported("random draws" if op in _DRAWS else f"`{op}`", v.span, REFUSED[op])
        raise unsupported(f"the op `{op}`", v.span, "what a user's op means is Python")

    def _branches(self, v: Any) -> str:
        w, condition = self.w, v.inputs[0]
        test = w.cast(w.find(condition.key) or "", condition.dtype, "bool")
        bodies = []
        for branch in v.inputs[1:]:
            out: list[Port] = []

            def build(branch: Any = branch, out: list[Port] = out) -> None:
                out.append(Port(w.op("Identity", w.cast(self.compute(branch), branch.dtype, v.dtype)), v.dtype))

            nodes = w.inside(build)
            bodies.append(Body([], out, nodes))
        return w.op("If", test, then_branch=bodies[0], else_branch=bodies[1])


def model_of(function: Any, name: str) -> Model:
    """The model of a compiled function, as its expressions are written.

    Raises UnsupportedError E0927 for what ONNX cannot say: updates, random draws, factorisations, users' ops.
    """
    if function.updates:
        shared = function.updates[0][0]
        error = unsupported(f"that a call changes `{shared._v.describe()}`", here(), "its models have no state")
        error.labels += [(place[0], place[1], "made here") for place in [_native.span_place(shared._v.span)] if place]
        error.helps.append("make a function that returns the new value, and keep it where the model is called")
        raise error
    inputs = [slot.variable._v for slot in function.inputs]
    outputs = [v._v for v in function.outputs]
    if function._givens:
        outputs = _native.substitute(outputs, [(old._v, new._v) for old, new in function._givens])
    e = Exporter()
    dims = _Dims(e.w)
    ports = []
    for i, v in enumerate(inputs):
        port = Port(e.w.fresh(v.name or f"input_{i}"), v.dtype, dims.of(v, function.inputs[i].name or f"input_{i}"))
        e.w.scopes[0].names[v.key] = port.name
        ports.append(port)
    names = function._keys if function._keys is not None else [v.name for v in outputs]
    out = [Port(e.w.fresh(str(c or f"output_{i}")), v.dtype, dims.of(v)) for i, (v, c) in enumerate(zip(outputs, names, strict=True))]
    e.use(outputs)
    for v, port in zip(outputs, out, strict=True):
        e.w.rename(e.w.op("Identity", e.compute(v)), port.name)
    return Model(name, Body(ports, out, e.w.scopes[0].nodes), e.w.constants, function.doc or "")


class _Dims:
    """Names of extents: equal ones have one name."""

    def __init__(self, w: Writer) -> None:
        self.w, self.known = w, list[tuple[Any, int, str]]()

    def of(self, v: Any, name: str | None = None) -> tuple[int | str | None, ...]:
        """The shape of an input, whose extents get names; of an output, without `name`, those that have one."""
        return tuple(self._one(v, axis, known, name) for axis, known in enumerate(v.shape))

    def _one(self, v: Any, axis: int, known: int | None, name: str | None) -> int | str | None:
        if known is not None:
            return known
        for other, at, called in self.known:
            if v.same_dim(axis, other, at):
                return called
        if name is None:
            return None
        self.known.append((v, axis, f"{name}_{axis}"))
        return f"{name}_{axis}"
