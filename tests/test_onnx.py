"""Functions as models of ONNX: onnxruntime computes what we compute, and what cannot be exported is refused by name."""

import os
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

import rscan as rs
from rscan.onnx import _model

#: How many draws of data each graph is judged by.
DRAWS = int(os.environ.get("RSCAN_ONNX_DRAWS", "3"))
#: What draws the data of the graph that is being built.
DATA = np.random.default_rng(7)


def data(*shape, low=0.1, high=1.1):
    """Positive numbers, so that sums do not cancel and each element can be compared to a few units in the last place."""
    return DATA.uniform(low, high, shape)


# Graphs: each builds a function and gives its arguments. The names are those of the page docs/onnx.md.

GRAPHS = {}


def graph(build):
    GRAPHS[build.__name__] = build
    return build


def made(name, draw=0):
    """A graph and arguments, drawn from a seed of its own: what a test finds does not hang on those that ran before it."""
    global DATA
    DATA = np.random.default_rng([zlib.crc32(name.encode()), draw])
    return GRAPHS[name]()


def rnn(x, w, h0):
    rows, _ = rs.scan(lambda x, h: rs.tanh(h @ w + x), sequences=x, outputs_info=h0, name="cell")
    return rows


@graph
def one_tap():
    x, w, h0 = rs.dmatrix("x"), rs.dmatrix("w"), rs.dvector("h0")
    return rs.function([x, w, h0], rnn(x, w, h0)), [data(6, 3), data(3, 3), data(3)]


@graph
def gradient_of_a_loop():
    x, w, h0 = rs.dmatrix("x"), rs.dmatrix("w"), rs.dvector("h0")
    cost = rs.sum(rnn(x, w, h0)[-1] ** 2)
    return rs.function([x, w, h0], [cost, *rs.grad(cost, [x, w, h0])]), [data(6, 3) / 8, data(3, 3) / 4, data(3) / 8]


@graph
def two_taps():
    x = rs.dvector("x")
    rows, _ = rs.scan(lambda x, a, b: x + 0.5 * a + 0.3 * b, sequences=x, outputs_info=dict(initial=x[:2], taps=[-2, -1]))
    return rs.function([x], rows), [data(9)]


@graph
def gradient_of_two_taps():
    x = rs.dvector("x")
    rows, _ = rs.scan(lambda x, a, b: x + 0.5 * a * b, sequences=x, outputs_info=dict(initial=x[:2], taps=[-2, -1]))
    return rs.function([x], rs.grad(rs.sum(rows**2), x)), [data(9) / 2]


@graph
def far_taps():
    x, first = rs.dvector("x"), rs.dvector("first")
    rows, _ = rs.scan(lambda x, a, b: x + a * b, sequences=x, outputs_info=dict(initial=first, taps=[-5, -2]))
    return rs.function([x, first], [rows, rs.grad(rs.sum(rows), first)]), [data(8), data(5)]


@graph
def taps_of_a_sequence():
    x = rs.dvector("x")
    rows, _ = rs.scan(lambda a, b, c: a + 2 * b * c, sequences=dict(input=x, taps=[-1, 0, 2]))
    return rs.function([x], [rows, rs.grad(rs.sum(rows), x)]), [data(9)]


@graph
def until():
    x = rs.dscalar("x")
    rows, _ = rs.scan(lambda h: (h * 1.5, rs.until(h > 20)), outputs_info=x, n_steps=50)
    return rs.function([x], [rows, rows.shape[0]]), [np.array(1.25)]


@graph
def gradient_of_until():
    x = rs.dscalar("x")
    rows, _ = rs.scan(lambda h: (h * h + 0.5, rs.until(h > 20)), outputs_info=x, n_steps=50)
    return rs.function([x], [rows[-1], rs.grad(rows[-1], x)]), [np.array(1.25)]


@graph
def until_over_rows():
    x = rs.dmatrix("x")
    total, _ = rs.scan(lambda row, s: (s + row, rs.until(rs.sum(s + row) > 5)), sequences=x, outputs_info=rs.zeros(3))
    return rs.function([x], total), [data(20, 3)]


@graph
def no_steps():
    x, w, h0 = rs.dmatrix("x"), rs.dmatrix("w"), rs.dvector("h0")
    rows = rnn(x, w, h0)
    return rs.function([x, w, h0], [rows, *rs.grad(rs.sum(rows), [x, w, h0])]), [np.zeros((0, 3)), data(3, 3), data(3)]


@graph
def no_steps_of_rows_without_a_state():
    x, w = rs.dmatrix("x"), rs.dmatrix("w")
    rows, _ = rs.scan(lambda x: x @ w, sequences=x)
    return rs.function([x, w], rows), [np.zeros((0, 3)), data(3, 4)]


@graph
def no_steps_until():
    x = rs.dmatrix("x")
    rows, _ = rs.scan(lambda row, s: (s + row, rs.until(rs.sum(s) > 5)), sequences=x, outputs_info=rs.zeros(3))
    return rs.function([x], [rows, rows.shape[0]]), [np.zeros((0, 3))]


@graph
def given_number_of_steps():
    n, x = rs.lscalar("n"), rs.dscalar("x")
    rows, _ = rs.scan(lambda h: rs.sqrt(h + 1), outputs_info=x, n_steps=n)
    return rs.function([n, x], rows), [np.array(7), np.array(0.5)]


@graph
def step_by_number():
    n, x = rs.lscalar("n"), rs.dvector("x")
    rows, _ = rs.scan(lambda i, s: s + x[i], sequences=rs.arange(n), outputs_info=rs.constant(0.0))
    return rs.function([n, x], [rows, rs.grad(rows[-1], x)]), [np.array(4), data(6)]


@graph
def backwards():
    x = rs.dvector("x")
    rows, _ = rs.scan(lambda x, h: 0.5 * h + x, sequences=x, outputs_info=rs.constant(1.0), go_backwards=True)
    return rs.function([x], [rows, rs.grad(rs.sum(rows), x)]), [data(7)]


@graph
def nested():
    x = rs.dmatrix("x")

    def outer(row, s):
        inner, _ = rs.scan(lambda v, a: a * 0.5 + v, sequences=row, outputs_info=s)
        return inner[-1]

    rows, _ = rs.scan(outer, sequences=x, outputs_info=rs.constant(0.25))
    return rs.function([x], [rows, rs.grad(rs.sum(rows), x)]), [data(4, 5)]


@graph
def nested_until():
    x = rs.dvector("x")

    def newton(v, s):
        root, _ = rs.scan(lambda r: (0.5 * (r + v / r), rs.until(rs.abs(r * r - v) < 1e-3)), outputs_info=v, n_steps=30)
        return s + root[-1]

    rows, _ = rs.scan(newton, sequences=x, outputs_info=rs.constant(0.0))
    return rs.function([x], rows), [data(5) * 4]


def lstm(x, w, u, b, h0, c0):
    n = 3

    def step(x, h, c):
        z = x @ w + h @ u + b
        i, f, o, g = (z[k * n : (k + 1) * n] for k in range(4))
        c = rs.sigmoid(f) * c + rs.sigmoid(i) * rs.tanh(g)
        return rs.sigmoid(o) * rs.tanh(c), c

    (h, c), _ = rs.scan(step, sequences=x, outputs_info=[h0, c0])
    return h, c


@graph
def lstm_with_gradient():
    x, w, u, b = rs.dmatrix("x"), rs.dmatrix("w"), rs.dmatrix("u"), rs.dvector("b")
    h0, c0 = rs.dvector("h0"), rs.dvector("c0")
    h, _ = lstm(x, w, u, b, h0, c0)
    cost = rs.sum(h[-1])
    f = rs.function([x, w, u, b, h0, c0], {"cost": cost, "dw": rs.grad(cost, w), "db": rs.grad(cost, b), "dh0": rs.grad(cost, h0)})
    return f, [data(5, 2) / 4, data(2, 12) / 8, data(3, 12) / 8, data(12) / 8, data(3) / 4, data(3) / 4]


@graph
def gru_in_float32():
    x, w, h0 = rs.fmatrix("x"), rs.fmatrix("w"), rs.fvector("h0")

    def step(x, h):
        z = rs.sigmoid(x + h @ w)
        return (1 - z) * h + z * rs.tanh(x)

    rows, _ = rs.scan(step, sequences=x, outputs_info=h0)
    return rs.function([x, w, h0], rows), [v.astype("f4") for v in (data(5, 3), data(3, 3), data(3))]


@graph
def garch_likelihood_with_gradient():
    r, p = rs.dvector("r"), rs.dvector("p")

    def step(r, v):
        return p[0] + p[1] * r * r + p[2] * v

    v, _ = rs.scan(step, sequences=r, outputs_info=rs.constant(1.0))
    cost = rs.sum(v + r * r / v)
    return rs.function([r, p], [cost, rs.grad(cost, p)]), [data(20), np.array([0.8, 0.2, 0.6])]


@graph
def shared_weights():
    w, x = rs.shared(data(3, 3), "w"), rs.dmatrix("x")
    return rs.function([x], rnn(x, w, rs.zeros(3))), [data(4, 3)]


@graph
def whole_states_of_many_dtypes():
    n = rs.lscalar("n")
    outs = []
    for dtype in ("int8", "int32", "int64", "uint8", "float32"):
        start = rs.constant(np.array(3, dtype))
        outs.append(rs.scan(lambda h, k=start: h * k, outputs_info=start, n_steps=n)[0])
    return rs.function([n], outs), [np.array(9)]


@graph
def reductions():
    x = rs.dmatrix("x")
    outs = [rs.sum(x, axis=0), rs.prod(x, axis=1), rs.max(x), rs.min(x, axis=0), rs.mean(x, axis=1), rs.var(x), rs.logsumexp(x, axis=1)]
    outs += [rs.any(x > 0.9, axis=0), rs.all(x > 0.2, axis=1), rs.argmax(x, axis=1), rs.argmin(x, axis=0), rs.softmax(x, axis=1)]
    return rs.function([x], outs), [data(5, 4)]


@graph
def reductions_with_nan():
    x = rs.dmatrix("x")
    outs = [rs.max(x, axis=0), rs.min(x, axis=1), rs.argmax(x, axis=1), rs.argmin(x, axis=0), rs.maximum(x, 0.5), rs.clip(x, 0.2, 0.6)]
    x0 = data(5, 4)
    x0[1, 2] = x0[3, 0] = x0[3, 3] = np.nan
    return rs.function([x], outs), [x0]


@graph
def gathers():
    x, i, j = rs.dmatrix("x"), rs.lvector("i"), rs.lvector("j")
    picked = x[i, j]
    outs = [x[i], x[:, j], picked, rs.grad(rs.sum(x[i] ** 2), x), rs.grad(rs.sum(picked**2), x)]
    return rs.function([x, i, j], outs), [data(4, 5), np.array([0, -1, 0]), np.array([1, 1, 3])]


@graph
def writes():
    x, i, v = rs.dmatrix("x"), rs.lvector("i"), rs.dmatrix("v")
    outs = [x.at[i].set(v), x.at[i].add(v), x.at[:, 1].set(7.0), x.at[1:3].add(1.0), x.at[0, ::2].set(2.0)]
    return rs.function([x, i, v], outs), [data(4, 5), np.array([2, 0, 2]), data(3, 5)]


@graph
def slices():
    x, a, b = rs.dmatrix("x"), rs.lscalar("a"), rs.lscalar("b")
    outs = [x[a:b], x[::-1], x[b::-2, 1:], x[-1], x[a, -2], x[:, None, ::3], x[10:20]]
    return rs.function([x, a, b], outs), [data(6, 5), np.array(1), np.array(4)]


@graph
def conditions():
    x, y = rs.dvector("x"), rs.dvector("y")
    outs = [rs.where(x > y, x, y), rs.clip(x, 0.3, 0.6), rs.minimum(x, y), rs.sign(x - 0.5), rs.relu(x - 0.5)]
    outs += [rs.grad(rs.sum(rs.where(x > y, x * y, y * y)), y), rs.ifelse(x[0] > 0, x, y / 0), rs.logical_xor(x > 0.5, y > 0.5)]
    return rs.function([x, y], outs), [data(6), data(6)]


@graph
def sorting():
    x, n = rs.dmatrix("x"), rs.lvector("n")
    outs = [rs.sort(x, axis=0), rs.argsort(x, axis=1), rs.argsort(n), rs.sort(n), rs.grad(rs.sum(rs.sort(x, axis=0)[0] ** 2), x)]
    outs += [rs.searchsorted(rs.sort(x[0]), x[1]), rs.searchsorted(rs.sort(n), n, side="right")]
    x0 = data(5, 4)
    x0[1, 1], x0[0, 1] = np.nan, np.inf
    return rs.function([x, n], outs), [x0, np.array([3, 1, 3, 2, 1])]


@graph
def running():
    x = rs.dmatrix("x")
    outs = [rs.cumsum(x, axis=0), rs.cumprod(x, axis=1), rs.grad(rs.sum(rs.cumprod(x, axis=0)), x), rs.cumsum(x[::-1], axis=1)]
    return rs.function([x], outs), [data(5, 4)]


@graph
def shapes():
    x, n = rs.dtensor3("x"), rs.lscalar("n")
    outs = [x.reshape((n, -1)), x.T, rs.concatenate([x, x * 2], axis=1), rs.stack([x[0], x[1]]), rs.squeeze(x[:, :1], axis=1)]
    outs += [rs.tile(x[0], (2, 1)), rs.broadcast_to(x[:1], (3, 2, 4)), rs.eye(3), rs.arange(n), rs.diag(x[0, 0]), rs.triu(x[0])]
    return rs.function([x, n], outs), [data(3, 2, 4), np.array(6)]


@graph
def integers():
    a, b = rs.lvector("a"), rs.lvector("b")
    outs = [a // b, a % b, a * b - a, rs.abs(a), a**3, a & b, a ^ b, ~a, a << 2, a >> 1, rs.sign(a), rs.maximum(a, b), a / (b * b + 1)]
    return rs.function([a, b], outs), [np.array([7, -7, 9, -9, 5, 2**62]), np.array([2, 2, -4, -4, 0, -1])]


@graph
def small_integers():
    a, b = rs.bvector("a"), rs.tensor("uint16", [None], "b")
    outs = [a * a, a + a, rs.sum(a), rs.max(a), rs.where(a > 0, a, -a), b - b * 2, rs.minimum(b, b // 3), rs.sort(b), rs.clip(a, -5, 5)]
    return rs.function([a, b], outs), [np.array([100, -100, 7], "i1"), np.array([3, 65535, 9], "u2")]


@graph
def floats():
    x = rs.dvector("x")
    names = "exp log log1p expm1 sqrt tanh sigmoid softplus log_sigmoid silu sinh cosh asinh atanh tan exp2 log2 log10 rsqrt sin cos"
    outs = {name: getattr(rs, name)(x) for name in names.split()}
    outs |= {"hypot": rs.hypot(x, 2 * x), "logaddexp": rs.logaddexp(x, 0.3), "pow": x**2.5, "floordiv": x // 0.3, "mod": -x % 0.3}
    outs |= {"xlogy": rs.xlogy(x, x), "round": rs.round(x * 10), "trunc": rs.trunc(-x * 10), "copysign": rs.copysign(x, -x)}
    return rs.function([x], outs), [data(40, low=0.01, high=0.99)]


@graph
def products():
    x, w, v = rs.dmatrix("x"), rs.dmatrix("w"), rs.dvector("v")
    cost = rs.sum(x @ w)
    return rs.function([x, w, v], [x @ w, x @ v, v @ v, rs.outer(v, v), *rs.grad(cost, [x, w])]), [data(4, 3), data(3, 5), data(3)]


@graph
def broadcasts():
    x, y = rs.dmatrix("x"), rs.dmatrix("y")
    cost = rs.sum(x * y + x)
    return rs.function([x, y], [x + y, *rs.grad(cost, [x, y])]), [data(4, 1), data(4, 3)]


# Gradients through many steps, whose last bits two ways of rounding rarely share: ours and the runtime's are judged by the exact value,
# and may be off by a unit more per step. It comes from the values alone, in long double: derivatives along an imaginary step, in which
# nothing cancels. Data are small, so that no slope is that of a function near its bound, which multiplies the last bits of its value.


def slopes(value, args, wanted):
    """The derivatives of `value(*args)` by the elements of some arguments."""
    args = [np.asarray(a, np.clongdouble) for a in args]
    found = []
    for k in wanted:
        slope = np.empty(args[k].shape, np.longdouble)
        for place in np.ndindex(slope.shape):
            moved = args[k].copy()
            moved[place] += 1e-30j
            slope[place] = value(*args[:k], moved, *args[k + 1 :]).imag / np.longdouble(1e-30)
        found.append(slope)
    return found


def value_of_a_loop(x, w, h):
    for row in x:
        h = np.tanh(h @ w + row)
    return np.sum(h**2)


def value_of_two_taps(x):
    rows = list(x[:2])
    for v in x:
        rows.append(v + rows[-2] * rows[-1] / 2)
    return np.sum(np.stack(rows[2:]) ** 2)


def value_of_an_lstm(x, w, u, b, h, c):
    for row in x:
        i, f, o, g = np.split(row @ w + h @ u + b, 4)
        i, f, o = (1 / (1 + np.exp(-v)) for v in (i, f, o))
        c = f * c + i * np.tanh(g)
        h = o * np.tanh(c)
    return np.sum(h)


#: Of such a graph, the exact results of its arguments, and its number of steps.
EXACT = {
    "gradient_of_a_loop": (lambda *a: [value_of_a_loop(*map(np.longdouble, a)), *slopes(value_of_a_loop, a, [0, 1, 2])], 6),
    "gradient_of_two_taps": (lambda *a: slopes(value_of_two_taps, a, [0]), 9),
    "lstm_with_gradient": (lambda *a: [value_of_an_lstm(*map(np.longdouble, a)), *slopes(value_of_an_lstm, a, [1, 3, 4])], 5),
}


def units(found, expected):
    """The largest difference in units in the last place; infinity where dtype, shape or a NaN differ. An exact value has a longer dtype."""
    if expected.dtype not in (found.dtype, np.longdouble) or found.shape != expected.shape:
        return np.inf
    if found.dtype.kind != "f":
        return 0.0 if (found == expected).all() else np.inf
    plain = np.isfinite(expected)
    if not np.array_equal(found[~plain], expected[~plain], equal_nan=True):
        return np.inf
    found, expected = found[plain], expected[plain]
    return float(np.max(np.abs(found - expected) / np.spacing(np.abs(expected).astype(found.dtype)), initial=0.0))


@pytest.mark.parametrize("draw", range(DRAWS))
@pytest.mark.parametrize("name", GRAPHS)
def test_onnxruntime_computes_what_we_compute(name, draw):
    pytest.importorskip("onnx", reason="onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    f, args = made(name, draw)
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    session = runtime.InferenceSession(rs.onnx.export(f), options, providers=["CPUExecutionProvider"])
    found = session.run(None, {port.name: arg for port, arg in zip(session.get_inputs(), args, strict=True)})
    expected = f(*args)
    if isinstance(expected, dict):
        assert [port.name for port in session.get_outputs()] == list(expected)
    listed = list(expected.values()) if isinstance(expected, dict) else expected if isinstance(expected, list) else [expected]
    listed = [np.asarray(value) for value in listed]
    judged, steps = [(found, listed)], 0
    if name in EXACT:
        exact_of, steps = EXACT[name]
        exact = exact_of(*args)
        judged = [(found, exact), (listed, exact)]
    for ours, values in judged:
        worst = {port.name: units(a, b) for port, a, b in zip(session.get_outputs(), ours, values, strict=True)}
        assert max(worst.values()) <= 4 + steps, worst


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_are_whole_without_the_package(name):
    """Every name that is read was made before, once, in the scope or around it."""
    model = _model.model_of(made(name)[0], name)
    seen = set()

    def walk(body, known):
        known = {*known, *(port.name for port in body.inputs)}
        assert not seen & {port.name for port in body.inputs}
        seen.update(port.name for port in body.inputs)
        for node in body.nodes:
            assert set(node.inputs) <= known, node
            for inner in (v for v in node.attributes.values() if isinstance(v, _model.Body)):
                walk(inner, known)
            assert not seen & set(node.outputs), node
            seen.update(node.outputs)
            known |= set(node.outputs)
        assert {port.name for port in body.outputs} <= known

    walk(model.graph, set(model.constants))


def test_loops_are_scans_unless_a_step_may_stop_them():
    def ops(body):
        inner = [v for node in body.nodes for v in node.attributes.values() if isinstance(v, _model.Body)]
        return [node.op for node in body.nodes] + [op for b in inner for op in ops(b)]

    assert "Scan" in ops(_model.model_of(made("two_taps")[0], "f").graph)
    found = ops(_model.model_of(made("nested_until")[0], "f").graph)
    assert "Scan" in found and "Loop" in found


def test_extents_have_names_and_equal_ones_the_same():
    x, y = rs.dmatrix("x"), rs.tensor("float64", [3], "y")
    f = rs.function([x, y], x * y)
    model = _model.model_of(f, "f")
    assert [port.shape for port in model.graph.inputs] == [("x_0", "x_1"), (3,)]
    rows, _ = rs.scan(lambda row: row + y, sequences=x)
    assert _model.model_of(rs.function([x, y], rows), "f").graph.outputs[0].shape == ("x_0", 3)


def test_nodes_say_the_line_that_they_come_from():
    x = rs.dvector("x")
    model = _model.model_of(rs.function([x], rs.exp(x)), "f")
    assert model.graph.nodes[0].place.startswith("test_onnx.py:")


# Refusals.


def counted():
    w = rs.shared(1.0, "w")
    return rs.function([], w, updates={w: w + 1})


def drawn():
    stream = rs.random.RandomStream(1)
    return rs.function([], stream.normal(size=(3,)), no_default_updates=True)


def solved():
    a, b = rs.dmatrix("a"), rs.dvector("b")
    return rs.function([a, b], rs.linalg.solve(a, b))


def special():
    x = rs.dvector("x")
    return rs.function([x], rs.gammaln(x))


def powers():
    x, n = rs.tensor("uint8", [None], "x"), rs.tensor("uint8", [None], "n")
    return rs.function([x, n], x**n)


def asserted():
    x, n = rs.lvector("x"), rs.lvector("n")
    return rs.function([x, n], x**n)  # E0301 where an exponent is negative


REFUSALS = {
    asserted: "`assert`: a graph has no errors of its own",
    counted: "that a call changes",
    drawn: "random draws: its generators give other numbers",
    solved: "`solve`: there are no factorisations",
    special: "`gammaln`",
    powers: "powers of integers with exponents that are computed",
}


@pytest.mark.parametrize("build", REFUSALS)
def test_what_cannot_be_said_is_refused_by_name_at_its_line(build):
    with pytest.raises(rs.UnsupportedError) as caught:
        rs.onnx.export(build())
    assert caught.value.code == "E0927" and REFUSALS[build] in caught.value.title
    assert caught.value.labels[0][0].endswith("test_onnx.py")


def test_every_operation_is_written_or_refused():
    from rscan import _native

    ops = {*_native.structural_ops()}
    named = {*_model.CALLS, *_model.REFUSED, "ifelse", "nonzero"}
    assert ops == named, ops ^ named


def test_the_page_lists_what_is_refused():
    page = (Path(__file__).parent.parent / "docs" / "onnx.md").read_text(encoding="utf-8")
    from rscan.onnx._elementwise import ABSENT

    assert [op for op in (*_model.REFUSED, *ABSENT) if f"`{op}`" not in page] == []


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match="cannot be exported"):
        rs.onnx.export(lambda x: x)


def test_the_command(tmp_path, capsys):
    from rscan.cli import main

    x = rs.dvector("x")
    file, out = tmp_path / "m.rscan", tmp_path / "m.onnx"
    rs.save(file, up=rs.function([x], x + 1), down=rs.function([x], x - 1))
    assert main(["onnx", str(file), str(out)]) == 1 and "--function up" in capsys.readouterr().err
    assert main(["onnx", str(tmp_path / "none"), str(out)]) == 1
    rs.save(file, count=counted())
    assert main(["onnx", str(file), str(out)]) == 1 and "E0927" in capsys.readouterr().err
    rs.save(file, up=rs.function([x], x + 1))
    status = main(["onnx", str(file), str(out)])
    told = capsys.readouterr().err
    assert (status == 0 and out.stat().st_size > 50) or "pip install onnx" in told


def test_nothing_is_imported_before_it_is_asked_for():
    program = "import sys, rscan\nassert not any(m in sys.modules for m in ('onnx', 'rscan.onnx'))"
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 0
