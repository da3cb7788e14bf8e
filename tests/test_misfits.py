"""Calls whose arguments do not fit end in the same error on every engine: nothing is cut, repeated or answered silently."""

import numpy as np
import pytest

import rscan as rs

ENGINES = ["eval", "vm", "jit", "auto"]


def batched():
    h, w = rs.dmatrix("h"), rs.dmatrix("w")
    return [h, w], rs.loop(lambda h: {"h": h @ w}, init={"h": h}, n_steps=4).h


def single():
    h, w = rs.dvector("h"), rs.dmatrix("w")
    return [h, w], rs.loop(lambda h: {"h": h @ w}, init={"h": h}, n_steps=3).h


def recurrent():
    x, h, w = rs.dmatrix("x"), rs.dvector("h"), rs.dmatrix("w")
    return [x, h, w], rs.loop(lambda x_t, h: {"h": rs.tanh(h @ w) + x_t}, over={"x_t": x}, init={"h": h}).h


def transposed():
    h = rs.dmatrix("h")
    return [h], rs.loop(lambda h: {"h": h.T}, init={"h": h}, n_steps=3).h


def shortened():
    h = rs.dvector("h")
    return [h], rs.loop(lambda h: {"h": h[:-1]}, init={"h": h}, n_steps=2).h


def lagged():
    h, w = rs.dmatrix("h"), rs.dmatrix("w")
    return [h, w], rs.loop(lambda h: {"h": h[0] @ w + h[1]}, init={"h": rs.taps(h, -2, -1)}, n_steps=3).h


def until():
    h, w = rs.dvector("h"), rs.dmatrix("w")

    def step(h):
        new = h @ w
        return {"h": new}, rs.until(rs.sum(new) > 100)

    return [h, w], rs.loop(step, init={"h": h}, n_steps=9).h


CASES = [
    (single, [(3,), (3, 2)], "E0102"),
    (batched, [(4, 5), (5, 3)], "E0102"),
    (recurrent, [(5, 4), (3,), (3, 3)], "E0201"),
    (recurrent, [(5, 3), (1,), (1, 1)], "E0102"),
    (transposed, [(4, 5)], "E0102"),
    (shortened, [(4,)], "E0102"),
    (lagged, [(2, 3), (3, 1)], None),
    (lagged, [(2, 1), (1, 3)], "E0102"),
    (until, [(2,), (2, 3)], "E0102"),
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("slopes", [False, True], ids=["values", "gradients"])
@pytest.mark.parametrize(("model", "shapes", "code"), CASES)
def test_states_keep_their_shape(monkeypatch, engine, slopes, model, shapes, code):
    monkeypatch.setenv("RSCAN_ENGINE", engine)
    inputs, rows = model()
    outputs = rs.grad(rs.sum(rows**2), inputs) if slopes else rows
    f = rs.function(inputs, outputs)
    args = [np.full(shape, 0.5) for shape in shapes]
    if code is None:
        f(*args)
        return
    with pytest.raises(rs.errors.RscanError) as caught:
        f(*args)
    assert caught.value.code == code
    assert "test_misfits.py:" in str(caught.value)
    if code == "E0102":
        assert "at step 0" in str(caught.value)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_function_works_after_a_misfit(monkeypatch, engine):
    monkeypatch.setenv("RSCAN_ENGINE", engine)
    f = rs.function(*single())
    for _ in range(3):
        with pytest.raises(rs.errors.ScanTypeError):
            f(np.ones(3), np.ones((3, 2)))
        np.testing.assert_array_equal(f(np.ones(2), np.eye(2)), np.ones((3, 2)))


@pytest.mark.parametrize("engine", ENGINES)
def test_what_passes_would_leave_out_is_still_reported(monkeypatch, engine):
    """Only the shape of x + y is needed: it does not fit, whatever is made of it."""
    monkeypatch.setenv("RSCAN_ENGINE", engine)
    x, y = rs.dvector("x"), rs.dvector("y")
    f = rs.function([x, y], rs.zeros_like(x + y))
    with pytest.raises(rs.errors.RscanError, match=r"\(3,\) and \(2,\)"):
        f(np.ones(3), np.ones(2))
    np.testing.assert_array_equal(f(np.ones(3), np.ones(1)), np.zeros(3))


@pytest.mark.parametrize("engine", ENGINES)
def test_the_first_of_two_faults_is_reported(monkeypatch, engine):
    """A pass takes the product of all rows ahead of the loop: the index comes first all the same."""
    monkeypatch.setenv("RSCAN_ENGINE", engine)
    x, w, table, k = rs.dmatrix("x"), rs.dmatrix("w"), rs.dvector("table"), rs.lscalar("k")

    def step(x_t, h):
        first = table[k]
        return {"h": rs.tanh(h + rs.sum(x_t @ w)) + first}

    f = rs.function([x, w, table, k], rs.loop(step, over={"x_t": x}, init={"h": rs.constant(0.0)}).h)
    with pytest.raises(rs.errors.RscanIndexError, match="index 7 is out of range"):
        f(np.ones((5, 3)), np.ones((2, 2)), np.ones(4), 7)
    with pytest.raises(rs.errors.ShapeError, match="cannot multiply"):
        f(np.ones((5, 3)), np.ones((2, 2)), np.ones(4), 2)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_long_loop_reports_its_late_fault(monkeypatch, engine):
    """More steps than the evaluator is asked to repeat."""
    monkeypatch.setenv("RSCAN_ENGINE", engine)
    steps = 3000 if engine == "eval" else 400_000
    k, v = rs.lvector("k"), rs.dvector("v")
    f = rs.function([k, v], rs.loop(lambda i, h: {"h": 0.5 * h + v[i] * v[0] + rs.tanh(h)}, over={"i": k}, init={"h": rs.constant(0.0)}).h)
    at = np.zeros(steps, dtype="int64")
    at[-2] = 9
    with pytest.raises(rs.errors.RscanIndexError, match=rf"in step {steps - 2} "):
        f(at, np.ones(3))


@pytest.mark.parametrize("engine", ENGINES)
def test_loops_of_which_only_the_number_of_steps_is_used_say_that_they_cannot_run(engine, monkeypatch):
    monkeypatch.setenv("RSCAN_ENGINE", engine)
    x, y, n = rs.dvector("x"), rs.dvector("y"), rs.lscalar("n")
    counted = lambda x_t: rs.loop(lambda y_t, h: {"h": h * y_t + x_t}, over=[y], init={"h": x_t}, n_steps=n).steps
    f = rs.function([x, y, n], rs.loop(counted, over=[x]))
    np.testing.assert_array_equal(f(np.ones(3), np.ones(4), 2), [2, 2, 2])
    with pytest.raises(rs.RscanError, match="E0111"):
        f(np.ones(3), np.ones(4), -3)
    with pytest.raises(rs.RscanError, match="E0109"):
        f(np.ones(3), np.ones(4), 5)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_index_of_an_axis_without_elements(engine, monkeypatch):
    monkeypatch.setenv("RSCAN_ENGINE", engine)
    x, v, m = rs.lvector("x"), rs.dvector("v"), rs.dmatrix("m")
    read = rs.function([x, v], rs.loop(lambda i: v[i] * 2, over=[x]))
    rows = rs.function([x, m], rs.loop(lambda i: rs.sum(m[:, i]), over=[x]))
    written = rs.function([x, v], rs.loop(lambda i, h: {"h": h.at[i].set(1.0)}, over=[x], init={"h": v}).h)
    own = rs.function([x, m], rs.loop(lambda i, row: (row * 2)[i], over=[x, m]))
    state = rs.function([x, v], rs.loop(lambda i, h: {"h": h / 2 + h[i]}, over=[x], init={"h": v}).h)
    places = np.array([0, 1, 0])
    np.testing.assert_array_equal(read(places, np.arange(2.0)), [0, 2, 0])
    none = np.zeros(0)
    for f, array in [(read, none), (rows, np.zeros((2, 0))), (written, none), (own, np.zeros((3, 0))), (state, none)]:
        with pytest.raises(rs.RscanError, match="E0202"):
            f(places, array)
        assert len(f(places[:0], array)) == 0
