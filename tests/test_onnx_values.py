"""Models of ONNX without loops, computed by NumPy from what ONNX says of each operator: the values are ours, with no runtime installed."""

import numpy as np
import pytest
from test_onnx import GRAPHS, data

import rscan as rs
from rscan.onnx import _model


def axes_of(given):
    return tuple(int(axis) for axis in given)


def reduce_sum(x, axes, keepdims=1, noop_with_empty_axes=0):
    assert axes.size or noop_with_empty_axes
    return x.sum(axis=axes_of(axes), keepdims=bool(keepdims), dtype=x.dtype)


def reshape(x, shape, allowzero=0):
    kept = [x.shape[i] if n == 0 and not allowzero else int(n) for i, n in enumerate(shape)]
    return x.reshape(kept)


def slice_(x, starts, ends, axes=None, steps=None):
    index = [slice(None)] * x.ndim
    for k, (start, end) in enumerate(zip(starts, ends, strict=True)):
        axis, step = int(axes[k]) if axes is not None else k, int(steps[k]) if steps is not None else 1
        before_all = step < 0 and end < -x.shape[axis]
        index[axis] = slice(int(start), None if before_all else int(end), step)
    return x[tuple(index)]


def scatter_nd(x, places, new, reduction="none"):
    found, at = x.copy(), tuple(np.moveaxis(places, -1, 0))
    if reduction == "none":
        found[at] = new
    else:
        {"add": np.add, "max": np.maximum}[reduction].at(found, at, new)
    return found


def expand(x, shape):
    return x * np.ones(axes_of(shape), x.dtype)


def like(f):
    """A function of operands that have one dtype."""

    def checked(*args):
        assert len({a.dtype for a in args}) == 1, [a.dtype for a in args]
        return f(*args)

    return checked


OPERATORS = {
    **{op: like(getattr(np, op.lower())) for op in ("Add", "Equal", "Greater", "Less", "Abs", "Sign", "Exp", "IsNaN", "MatMul", "Size")},
    "Sub": like(np.subtract), "Mul": like(np.multiply), "GreaterOrEqual": like(np.greater_equal), "LessOrEqual": like(np.less_equal),
    "And": like(np.logical_and), "Or": like(np.logical_or), "Xor": like(np.logical_xor), "Not": np.logical_not, "Neg": np.negative,
    "Max": like(np.maximum), "Min": like(np.minimum), "Where": np.where, "Identity": np.asarray, "Range": like(np.arange),
    "Cast": lambda x, to: x.astype(to),
    "Concat": lambda *xs, axis: np.concatenate(xs, axis=axis),
    "Expand": expand,
    "Gather": lambda x, i, axis=0: np.take(x, i, axis=axis),
    "GatherND": lambda x, places: x[tuple(np.moveaxis(places, -1, 0))],
    "NonZero": lambda x: np.array(np.nonzero(x)),
    "ReduceProd": lambda x, keepdims=1: x.prod(keepdims=bool(keepdims)),
    "ReduceSum": reduce_sum,
    "Reshape": reshape,
    "ScatterND": scatter_nd,
    "Shape": lambda x, start=0, end=None: np.array(x.shape[start:end], "int64"),
    "Slice": slice_,
    "Squeeze": lambda x, axes: x.squeeze(axes_of(axes)),
    "Transpose": lambda x, perm: x.transpose(perm),
    "Unsqueeze": lambda x, axes: np.expand_dims(x, axes_of(axes)),
}  # fmt: skip


def computed(body, known):
    """The outputs of a graph, whose inputs and constants are known by name."""
    known = dict(known)
    for node in body.nodes:
        given = [known[name] for name in node.inputs]
        if node.op == "If":
            found = computed(node.attributes["then_branch" if given[0] else "else_branch"], known)
        else:
            found = [np.asarray(OPERATORS[node.op](*given, **node.attributes))]
        known.update(zip(node.outputs, found, strict=True))
    return [known[port.name] for port in body.outputs]


def stretched_along_one_axis():
    x, y = rs.tensor("float64", [3, None], "x"), rs.tensor("float64", [3, None], "y")
    return rs.function([x, y], [x + y, *rs.grad(rs.sum(x * y + x), [x, y])]), [data(3, 1), data(3, 4)]


def comparisons():
    x, y, n = rs.dvector("x"), rs.fvector("y"), rs.vector("n", "int8")
    b = x > 0.5
    outs = [x < y, x <= 0.7, x >= n, rs.equal(x, y), rs.not_equal(n, 1), b < (y > 0.5), rs.equal(b, n > 0), rs.isnan(x)]
    return rs.function([x, y, n], outs), [data(6), data(6).astype("float32"), np.array([-1, 0, 1, 2, 0, 1], "int8")]


def writes_of_whole_rows():
    x, i, j, v = rs.dtensor3("x"), rs.lvector("i"), rs.lvector("j"), rs.dmatrix("v")
    outs = [x.at[i, j].set(v), x.at[i, j].add(v), x.at[:, i, j].set(7.0)]
    return rs.function([x, i, j, v], outs), [data(3, 3, 4), np.array([2, 0, 2]), np.array([1, 1, 1]), data(3, 4)]


OWN = [stretched_along_one_axis, comparisons, writes_of_whole_rows]
SHARED = ["gathers", "writes", "slices", "conditions", "products", "broadcasts"]
CASES = {**{f.__name__: f for f in OWN}, **{name: GRAPHS[name] for name in SHARED}}


@pytest.mark.parametrize("name", CASES)
def test_numpy_computes_what_we_compute(name):
    f, args = CASES[name]()
    model = _model.model_of(f, name)
    names = [port.name for port in model.graph.inputs]
    found = computed(model.graph, {**model.constants, **dict(zip(names, args, strict=True))})
    for ours, theirs, port in zip(f(*args), found, model.graph.outputs, strict=True):
        assert theirs.dtype == port.dtype == ours.dtype and theirs.shape == ours.shape
        np.testing.assert_allclose(theirs, ours, rtol=1e-14)
