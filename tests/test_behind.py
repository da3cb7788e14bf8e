"""What is computed of the rows that a loop makes, behind the steps, a block of steps at a time where there are many."""

import numpy as np
import pytest

import rscan as rs

#: So many steps of rows of K numbers that all of them take more than a block.
LONG, K = 5000, 48


def numbers(steps, *shapes, dtype="float64"):
    random = np.random.default_rng(steps)
    return [0.3 * random.standard_normal(shape).astype(dtype) for shape in [(steps, K), *shapes]]


def behind(f):
    return [op for loop in f.explain().loops for op in loop.behind]


def states(x, w=None):
    rows = np.zeros((len(x) + 1, x.shape[1] if w is None else w.shape[1]), x.dtype)
    for t, row in enumerate(x if w is None else x @ w):
        rows[t + 1] = np.tanh(row + rows[t] / 2)
    return rows


def outputs(dtype="float64", **options):
    x, v = rs.matrix("x", dtype=dtype), rs.matrix("v", dtype=dtype)

    def step(x, h, v):
        h = rs.tanh(x + h / 2)
        return h, rs.softmax(h @ v)

    (_, rows), _ = rs.scan(step, sequences=x, outputs_info=[rs.zeros(K, dtype=dtype), None], non_sequences=v, **options)
    return [x, v], rows


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("steps", [0, 1, 5, LONG])
@pytest.mark.usefixtures("chosen_engine")
def test_outputs_that_feed_no_step(steps, dtype):
    ins, rows = outputs(dtype)
    f = rs.function(ins, rows)
    x, v = numbers(steps, (K, 7), dtype=dtype)
    e = np.exp(states(x)[1:] @ v)
    np.testing.assert_allclose(f(x, v), e / e.sum(axis=1, keepdims=True), rtol=1e-10 if dtype == "float64" else 1e-4)
    assert "matmul" in behind(f)
    assert "computed behind, in blocks of rows" in str(f.explain())


@pytest.mark.usefixtures("chosen_engine")
def test_rows_that_are_wanted_too():
    x, v, h = rs.matrix("x"), rs.matrix("v"), rs.zeros(K)
    rows, _ = rs.scan(lambda x, h: rs.tanh(x + h / 2), sequences=x, outputs_info=h)
    products = rows @ v
    values = numbers(LONG, (K, 7))
    alone, both = rs.function([x, v], products), rs.function([x, v], [rows, products])
    assert "matmul" in behind(alone)
    assert not behind(both)
    np.testing.assert_array_equal(both(*values)[1], alone(*values))
    np.testing.assert_allclose(both(*values)[0], states(values[0])[1:], rtol=1e-12, atol=1e-14)


CELLS = {"right": lambda x, h, w, u: rs.tanh(x @ w + h @ u), "left": lambda x, h, w, u: rs.tanh(w @ x + u @ h)}


@pytest.mark.parametrize("n", [1, 5, 20])
@pytest.mark.parametrize("side", CELLS)
@pytest.mark.parametrize("options", [{}, {"go_backwards": True}])
@pytest.mark.usefixtures("chosen_engine")
def test_gradients_by_matrices(n, side, options):
    x, w, u = rs.matrix("x"), rs.matrix("w"), rs.matrix("u")
    cell = CELLS[side]
    rows, _ = rs.scan(cell, sequences=x, outputs_info=rs.zeros(n), non_sequences=[w, u], **options)
    f = rs.function([x, w, u], rs.grad((rows * rows).sum(), [x, w, u]))
    plain = rs.function([x, w, u], rs.grad((rows * rows).sum(), [x, w, u]), excluding=["scan_dot_out", "scan_sink_output"])
    assert "outer_sum" in behind(f)
    assert not behind(plain)
    for steps in (1, 7, LONG):
        x, w, u = numbers(steps, (K, n), (n, n))
        values = [x, w if side == "right" else w.T, u]
        for got, want in zip(f(*values), plain(*values), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-11)


@pytest.mark.usefixtures("chosen_engine")
def test_the_gradient_of_a_batch():
    x, w, u = rs.tensor3("x"), rs.matrix("w"), rs.matrix("u")
    rows, _ = rs.scan(lambda x, h, w, u: rs.tanh(x @ w + h @ u), sequences=x, outputs_info=rs.zeros((3, 20)), non_sequences=[w, u])
    f, plain = (rs.function([x, w, u], rs.grad((rows * rows).mean(), [w, u]), excluding=out) for out in ([], ["scan_dot_out"]))
    random = np.random.default_rng(1)
    for steps in (0, 1, 5, LONG):
        values = [0.3 * random.standard_normal(shape) for shape in [(steps, 3, 8), (8, 20), (20, 20)]]
        for got, want in zip(f(*values), plain(*values), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-13)
    assert "outer_sum" in behind(f)


def test_misfits_are_told_as_the_step_is_written():
    ins, rows = outputs()
    f = rs.function(ins, rows)
    x, v = numbers(LONG, (K - 1, 7))
    with pytest.raises(rs.RscanError, match=rf"cannot multiply \({K},\) by \({K - 1}, 7\)"):
        f(x, v)


@pytest.mark.parametrize(
    "part",
    [
        lambda r: r,
        lambda r: r[1:],
        lambda r: r[:-1],
        lambda r: r[2:-3],
        lambda r: r[:7],
        lambda r: r[-5:],
        lambda r: r[::2],
        lambda r: r[3:-1] + r[2:-2],
    ],
    ids=["all", "from 1", "without the last", "within", "seven", "last five", "every second", "two"],
)
@pytest.mark.parametrize("steps", [9, LONG])
def test_products_of_some_rows(part, steps):
    x, v, h = rs.matrix("x"), rs.matrix("v"), rs.zeros(K)
    rows, _ = rs.scan(lambda x, h: rs.tanh(x + h / 2), sequences=x, outputs_info=h)
    values = numbers(steps, (K, 7))
    expected = part(states(values[0])[1:]) @ values[1]
    np.testing.assert_allclose(rs.function([x, v], part(rows) @ v)(*values), expected, rtol=1e-10, atol=1e-13)
    both = rs.function([x, v], [part(rows) @ v, rs.tanh(part(rows) @ v) * 2, rows[-1]])(*values)
    np.testing.assert_allclose(both[1], np.tanh(expected) * 2, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(both[0], expected, rtol=1e-10, atol=1e-13)


def test_products_of_rows_with_those_where_the_loop_began():
    x, v, h = rs.matrix("x"), rs.matrix("v"), rs.dvector("h")
    rows, _ = rs.scan(lambda x, h: rs.tanh(x + h / 2), sequences=x, outputs_info=h)
    before = rs.concatenate([h[None], rows[:-1]])
    values = numbers(LONG, (K, 7))
    expected = states(values[0])[:-1] @ values[1]
    np.testing.assert_allclose(rs.function([x, v, h], before @ v)(*values, np.zeros(K)), expected, rtol=1e-10, atol=1e-13)
