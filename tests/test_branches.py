"""Derivatives of `rs.ifelse`: what a branch alone needs is computed, and differentiated, only where the branch is taken."""

import os

import numpy as np
import pytest

import rscan as rs

ENGINES = ("eval", "vm", "jit")


@pytest.fixture(params=ENGINES, autouse=True)
def engine(request, monkeypatch):
    monkeypatch.setenv("RSCAN_ENGINE", request.param)


def derivatives(y, wrt, *inputs):
    """Value, gradient, and the gradient of the sum of the gradient's squares."""
    slope = rs.grad(y, wrt)
    return rs.function([*inputs], [y, slope, rs.grad(rs.sum(slope**2), wrt)])


def test_an_index_in_a_branch_that_is_not_taken():
    x, k = rs.dvector("x"), rs.lscalar("k")
    f = derivatives(rs.ifelse(k < x.shape[0], rs.sin(x[k]) ** 2, 0.0), x, x, k)
    at = np.array([1.0, 2.0, 3.0])
    value, slope, second = f(at, 1)
    np.testing.assert_allclose(value, np.sin(2.0) ** 2)
    np.testing.assert_allclose(slope, [0, np.sin(4.0), 0])
    np.testing.assert_allclose(second, [0, 4 * np.sin(4.0) * np.cos(4.0), 0])
    assert [a.tolist() for a in f(at, 7)] == [0.0, [0.0] * 3, [0.0] * 3]


@pytest.mark.parametrize("swapped", [False, True])
def test_slopes_that_are_infinite_in_a_branch_that_is_not_taken(swapped):
    x = rs.dscalar("x")
    taken = x <= 0 if swapped else x > 0
    y = rs.ifelse(taken, *((0.5 * x, rs.sqrt(x)) if swapped else (rs.sqrt(x), 0.5 * x)))
    f = derivatives(y, x, x)
    np.testing.assert_allclose(f(4.0), [2.0, 0.25, -2 * 0.25 / 32])
    assert [float(a) for a in f(0.0)] == [0.0, 0.5, 0.0]
    assert [float(a) for a in f(-4.0)] == [-2.0, 0.5, 0.0]


def test_what_is_used_outside_of_a_branch_too_is_differentiated_in_any_case():
    x, c = rs.dvector("x"), rs.lscalar("c")
    inner = rs.exp(x)
    y = rs.sum(inner) + rs.ifelse(c > 0, rs.sum(inner * x), rs.sum(inner) ** 2)
    f = derivatives(y, x, x, c)
    at, e = np.array([0.5, -1.0]), np.exp([0.5, -1.0])
    np.testing.assert_allclose(f(at, 1)[1], e + e * at + e)
    np.testing.assert_allclose(f(at, 0)[1], e + 2 * e.sum() * e)


def test_choices_in_choices():
    x, k = rs.dvector("x"), rs.lscalar("k")
    n = x.shape[0]
    deep = rs.ifelse(k < 2 * n, x[k - n] ** 2, rs.log(x[0] - x[0]) * x[1])
    y = rs.ifelse(k < n, x[k] ** 3, deep + x[0])
    z = rs.ifelse(k > 0, y, y * x[1])
    f = derivatives(z, x, x, k)
    at = np.array([2.0, 3.0])
    assert f(at, 0)[1].tolist() == [36.0, 8.0]
    assert f(at, 1)[1].tolist() == [0.0, 27.0]
    assert f(at, 2)[1].tolist() == [5.0, 0.0]
    assert f(at, 3)[1].tolist() == [1.0, 6.0]
    assert f(at, 4)[1][1] == -np.inf


def test_the_same_value_in_both_branches():
    x, c = rs.dscalar("x"), rs.lscalar("c")
    f = derivatives(rs.ifelse(c > 0, x, x) * rs.ifelse(c > 0, x, 2.0), x, x, c)
    assert [float(a) for a in f(3.0, 1)] == [9.0, 6.0, 24.0]
    assert [float(a) for a in f(3.0, 0)] == [6.0, 2.0, 0.0]


def test_with_respect_to_a_value_in_a_branch():
    x, c = rs.dscalar("x"), rs.lscalar("c")
    inner = rs.sin(x)
    f = rs.function([x, c], rs.grad(rs.ifelse(c > 0, inner**2, x), [inner, x]))
    assert [float(a) for a in f(1.0, 1)] == [2 * np.sin(1.0), 2 * np.sin(1.0) * np.cos(1.0)]
    assert [float(a) for a in f(1.0, 0)] == [0.0, 1.0]


def test_branches_of_other_extents():
    x, c = rs.dvector("x"), rs.lscalar("c")
    y = rs.sum(rs.ifelse(c > 0, x[1:] ** 2, rs.concatenate([x, x])))
    f = rs.function([x, c], rs.grad(y, x))
    assert f([1.0, 2.0, 3.0], 1).tolist() == [0.0, 4.0, 6.0]
    assert f([1.0, 2.0, 3.0], 0).tolist() == [2.0, 2.0, 2.0]


def test_in_the_steps_of_a_loop():
    x, w, n = rs.dvector("x"), rs.dscalar("w"), rs.lscalar("n")

    def step(i, h):
        return rs.ifelse(i < x.shape[0], h * x[i] + w, rs.ifelse(i < 0, h * rs.sqrt(h - h) * w, h + w))

    y = rs.loop(step, over=rs.arange(n), init=rs.constant(1.0))[-1]
    f = rs.function([x, w, n], [y, *rs.grad(y, [x, w])])
    value, by_x, by_w = f([2.0, 3.0], 0.5, 4)
    assert (float(value), by_x.tolist(), float(by_w)) == (9.0, [3.0, 2.5], 6.0)


def test_forwards():
    x, k = rs.dvector("x"), rs.lscalar("k")
    y = rs.ifelse(k < x.shape[0], x[k] ** 2, rs.sum(x))
    f = rs.function([x, k], [rs.jacobian(y, x), rs.hessian(y, x)])
    at = np.array([1.0, 2.0])
    assert [a.tolist() for a in f(at, 1)] == [[0.0, 4.0], [[0.0, 0.0], [0.0, 2.0]]]
    assert [a.tolist() for a in f(at, 5)] == [[1.0, 1.0], [[0.0, 0.0], [0.0, 0.0]]]
    value, change = rs.jvp(lambda x: rs.ifelse(x[0] > 5, x[9], x[1] ** 2), (at,), (np.ones(2),))
    assert (float(value), float(change)) == (4.0, 4.0)


def test_a_loop_of_which_one_output_is_needed_in_a_branch_and_another_in_any_case():
    s, n, c = rs.dscalar("s"), rs.lscalar("n"), rs.lscalar("c")
    out = rs.loop(lambda i: {"a": rs.sin(s * (i + 1)), "b": s**3}, over=rs.arange(n))
    y = rs.sum(out.b) + rs.tanh(rs.ifelse(c > 0, rs.sum(s * 0.5), rs.sum(out.a)))
    f = derivatives(y, s, s, n, c)
    _, slope, second = f(0.3, 2, 1)
    t = 1 - np.tanh(0.15) ** 2
    np.testing.assert_allclose(slope, 6 * 0.3**2 + 0.5 * t)
    np.testing.assert_allclose(second, 2 * slope * (12 * 0.3 - 0.5 * np.tanh(0.15) * t))
    sines = np.sin([0.3, 0.6]).sum()
    np.testing.assert_allclose(f(0.3, 2, 0)[1], 6 * 0.3**2 + (1 - np.tanh(sines) ** 2) * (np.cos(0.3) + 2 * np.cos(0.6)))


# What is the same at every step.


def halves(y, x, n):
    """The last state, its gradient, and the gradient of the gradient's first element."""
    slope = rs.grad(y[-1], x)
    return rs.function([x, n], [y[-1], slope, rs.grad(slope[0], x)])


@pytest.fixture(params=["fast_run", "none"])
def passes(request):
    with rs.config.override(passes=request.param):
        yield


@pytest.mark.usefixtures("passes")
def test_an_invariant_index_in_a_branch_that_no_step_takes():
    x, n = rs.dvector("x"), rs.lscalar("n")
    f = halves(rs.loop(lambda i, h: rs.ifelse(i < 0, h * x[9], h + x[0] ** 2), over=rs.arange(n), init=1.0), x, n)
    assert [a.tolist() for a in f([3.0, 5.0], 4)] == [37.0, [24.0, 0.0], [8.0, 0.0]]
    assert f(np.ones(12), 4)[1].tolist() == [8.0] + [0.0] * 11
    with pytest.raises(IndexError, match="index 0 is out of range"):
        f(np.ones(0), 4)
    g = halves(rs.loop(lambda i, h: rs.ifelse(i > 2, h * x[9], h + x[0] ** 2), over=rs.arange(n), init=1.0), x, n)
    assert g([3.0, 5.0], 3)[0] == 28.0
    with pytest.raises(IndexError, match="index 9 is out of range"):
        g([3.0, 5.0], 4)


@pytest.mark.usefixtures("passes")
def test_an_empty_array_in_a_branch_that_no_step_takes():
    x, n = rs.dvector("x"), rs.lscalar("n")
    y = rs.loop(lambda i, h: rs.ifelse(i < x.shape[0], h * x[0] + x[-1], h + 1.0), over=rs.arange(n), init=1.0)
    f = rs.function([x, n], [y[-1], rs.grad(y[-1], x)])
    assert [a.tolist() for a in f(np.ones(0), 4)] == [5.0, []]
    assert [a.tolist() for a in f([2.0, 3.0], 3)] == [14.0, [7.0, 3.0]]


@pytest.mark.usefixtures("passes")
def test_an_infinite_slope_in_a_branch_that_no_step_takes():
    x, n = rs.dscalar("x"), rs.lscalar("n")
    y = rs.loop(lambda i, h: rs.ifelse(i < 0, h * rs.log(x), h + x**2), over=rs.arange(n), init=1.0)
    slope = rs.grad(y[-1], x)
    f = rs.function([x, n], [y[-1], slope, rs.grad(slope, x)])
    assert [float(a) for a in f(0.0, 3)] == [1.0, 0.0, 6.0]


@pytest.mark.usefixtures("passes")
def test_what_one_branch_and_another_part_of_the_step_need_is_computed_once_before_the_loop():
    x, n = rs.dvector("x"), rs.lscalar("n")

    def step(i, h):
        total = rs.sum(rs.exp(x))
        return rs.ifelse(i < 1, h * total, h + total) + total

    y = rs.loop(step, over=rs.arange(n), init=1.0)[-1]
    f = rs.function([x, n], [y, rs.grad(y, x)])
    total = np.exp([0.5, -0.5]).sum()
    np.testing.assert_allclose(f([0.5, -0.5], 2)[0], 4 * total)
    np.testing.assert_allclose(f([0.5, -0.5], 2)[1], 4 * np.exp([0.5, -0.5]))


@pytest.mark.usefixtures("passes")
def test_a_loop_in_a_branch_that_no_step_takes():
    x, n, m = rs.dvector("x"), rs.lscalar("n"), rs.lscalar("m")

    def step(i, h):
        product = rs.loop(lambda j, q: q * x[j], over=rs.arange(m), init=1.0)[-1]
        return rs.ifelse(i < n - 3, h * product, h + x[0])

    y = rs.loop(step, over=rs.arange(n), init=1.0)[-1]
    f = rs.function([x, n, m], [y, rs.grad(y, x)])
    assert [a.tolist() for a in f([2.0, 3.0], 3, 9)] == [7.0, [3.0, 0.0]]
    assert [a.tolist() for a in f([2.0, 3.0], 4, 2)] == [12.0, [6.0, 2.0]]
    with pytest.raises(IndexError, match="index 2 is out of range"):
        f([2.0, 3.0], 4, 9)


def test_parts_of_gradients_are_added_where_they_belong():
    """No array of zeros is added to the gradient at each step."""
    x, n = rs.dvector("x"), rs.lscalar("n")
    for step in [
        lambda i, h: h * x[i] + x[i + 1],
        lambda i, h: rs.ifelse(rs.eq(i % 2, 0), h * x[i], h * x[i + 1] + x[2]),
        lambda i, h: rs.where(rs.eq(i % 2, 0), h * x[i], h * x[i + 1]) + x[i + 2],
    ]:
        y = rs.loop(step, over=rs.arange(n), init=1.0)[-1]
        f = rs.function([x, n], rs.grad(y, x))
        for line in f.text(optimised=True).partition("cotangent")[2].splitlines():
            assert not line.lstrip().startswith(("dx", "%")) or "broadcast_like(0.0" not in line, f.text(optimised=True)


# Steps that are lists of kernels and products: a branch is a part of the list that is run or not.


def choose(rng, values, vectors, depth):
    """A random choice between expressions of vectors, some of which are costly, or fail where a value is not in range."""
    w, x, table = values

    def vector(depth):
        kind = rng.integers(9 if depth else 4)
        if kind < 2:
            return vectors[rng.integers(len(vectors))]
        if kind == 2:
            return rs.tanh(w @ vectors[rng.integers(len(vectors))])
        if kind == 3:
            return rs.linalg.solve(w @ w.T + rs.eye(20), vectors[rng.integers(len(vectors))])
        if kind < 6:
            return vector(depth - 1) * 0.7 + vector(depth - 1)
        a, b = vector(depth - 1), vector(depth - 1)
        if kind == 6:
            return rs.ifelse(a[int(rng.integers(20))] > x, a, b)
        place = rs.cast(rs.floor(a[1]), "int64")
        return rs.ifelse(rs.logical_and(place >= 0, place < 5), b * table[place], a)

    return vector(depth)


@pytest.mark.parametrize("seed", range(12))
def test_branches_of_lists(seed):
    """Choices between products and solutions, in each other, shared, and one after the other: values and gradients of every engine."""
    rng = np.random.default_rng(seed)
    w, table = rs.dmatrix("w"), rs.dvector("table")
    x0, xs = rs.dvector("x0"), rs.dvector("xs")

    def step(x, h, k):
        one = choose(rng, (w, x, table), [h, k], 3)
        two = choose(rng, (w, x, table), [h, k, one], 2)
        both = rs.ifelse(rs.sum(h) > x, [one, two], [two - one, k])
        return {"h": rs.tanh(both[0]), "k": rs.tanh(both[1] + x)}

    out = rs.loop(step, over={"x": xs}, init={"h": x0, "k": x0[::-1]})
    cost = rs.sum(out.h[-1] ** 2) + rs.sum(out.k * 0.1)
    slopes = rs.grad(cost, [w, table, x0], disconnected_inputs="ignore")
    f = rs.function([w, table, x0, xs], [cost, out.h, *slopes], on_unused_input="ignore")
    data = np.random.default_rng(1)
    args = data.normal(size=(20, 20)) * 0.3, data.normal(size=5), data.normal(size=20), data.normal(size=9)
    with rs.config.override(passes="none"):
        plain = rs.function([w, table, x0, xs], [cost, out.h], on_unused_input="ignore")
    results = f(*args)
    for got, want in zip(results, plain(*args), strict=False):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
    step_size, gradient = 1e-6, results[2]
    at = tuple(data.integers(20, size=2))
    moved = [args[0].copy() for _ in range(2)]
    moved[0][at] += step_size
    moved[1][at] -= step_size
    slope = (f(moved[0], *args[1:])[0] - f(moved[1], *args[1:])[0]) / (2 * step_size)
    np.testing.assert_allclose(gradient[at], slope, rtol=1e-5, atol=1e-6)


def test_a_branch_that_is_not_taken_costs_nothing_and_fails_not():
    """A factorisation that fails in a branch alone, in a step that is a list."""
    a, xs, n = rs.dmatrix("a"), rs.dmatrix("xs"), rs.lscalar("n")

    def step(i, x, h):
        return rs.ifelse(i < n, rs.linalg.cholesky(a + h[0] * 0)[0] + x, rs.tanh(a @ h))

    out = rs.loop(step, over=[rs.arange(xs.shape[0]), xs], init=rs.zeros(6))
    f = rs.function([a, xs, n], out)
    bad, rows = -np.eye(6), np.arange(24.0).reshape(4, 6)
    want, h = [], np.zeros(6)
    for _ in range(4):
        h = np.tanh(bad @ h)
        want.append(h)
    np.testing.assert_allclose(f(bad, rows, 0), want)
    np.testing.assert_allclose(f(np.eye(6), rows, 4), np.eye(6)[0] + rows)
    with pytest.raises(rs.RscanError, match="positive definite"):
        f(bad, rows, 1)


def test_the_plan_of_a_step_with_branches():
    w, x0, c = rs.dmatrix("w"), rs.dvector("x0"), rs.dvector("c")
    out = rs.loop(lambda c, h: rs.ifelse(c > 0, w @ h, h), over=c, init=x0)
    f = rs.function([w, x0, c], out[-1])
    np.testing.assert_allclose(f(np.eye(30) * 2, np.ones(30), [1.0, -1.0, 3.0]), 4 * np.ones(30))
    assert ("steps of" in str(f.explain())) == (os.environ["RSCAN_ENGINE"] != "eval"), f.explain()


def test_structures_are_chosen_item_by_item_and_functions_are_refused():
    c = rs.lscalar("c")
    f = rs.function([c], list(rs.ifelse(c > 0, [2, 3.0], [4, 5.0])))
    assert [float(v) for v in f(1)] == [2.0, 3.0]
    chosen = rs.ifelse(c > 0, {"a": 1.0, "b": rs.arange(2)}, {"b": rs.arange(3), "a": 2.0})
    g = rs.function([c], [chosen["a"], chosen["b"]])
    assert [v.tolist() for v in g(0)] == [2.0, [0, 1, 2]]
    with pytest.raises(rs.RscanError, match="values of its branches, not functions"):
        rs.ifelse(c > 0, lambda: 1.0, lambda: 2.0)


@pytest.mark.parametrize("shared", [False, True])
def test_lists_leave_errors_of_what_no_branch_needs_to_the_law(monkeypatch, shared):
    """What does not depend on the step, and what branches of two conditions need, is computed in any case: if it fails, the loop is the
    evaluator's, of the optimised step. It was the whole call's as it is written, whose log(1 + exp(h)) rounds otherwise."""

    def step(u, h, w, n):
        rows = rs.loop(lambda s: {"s": s * 0.5}, init={"s": u if shared else rs.constant(0.5)}, n_steps=n)["s"]
        far = rs.sum(rs.broadcast_to(rows, (3,)))
        a = rs.ifelse(u > 5, h * far, h + rs.cast(rows.shape[0], "float64"))
        b = rs.ifelse(u > 6, a - rs.sin(far * a), a) if shared else a
        return {"h": w @ rs.tanh(rs.log(1 + rs.exp(b)))}

    random = np.random.default_rng(3)
    args = random.normal(size=300), random.normal(size=40), random.normal(size=(40, 40)) / 6
    found = []
    for engine in ENGINES:
        monkeypatch.setenv("RSCAN_ENGINE", engine)
        u, h0, w, n = rs.dvector("u"), rs.dvector("h0"), rs.dmatrix("w"), rs.lscalar("n")
        out = rs.loop(lambda u, h, w=w, n=n: step(u, h, w, n), over=u, init={"h": h0})
        f = rs.function([u, h0, w, n], out["h"])
        found.append([f(*args, 0), f(*args, 1), f(np.full(3, 7.0), *args[1:], 1)])
        with pytest.raises(rs.errors.RscanError, match="E0201"):
            f(np.full(3, 7.0), *args[1:], 0)
    for got in found[1:]:
        assert [a.tobytes() for a in got] == [a.tobytes() for a in found[0]]


def powers(v, n, stops):
    """The rows of a loop of n steps or fewer."""

    def step(a):
        new = a + v
        return ({"a": new}, rs.until(new > 9)) if stops else {"a": new}

    return rs.loop(step, init={"a": v}, n_steps=n)


def powers_of_numpy(v, n, stops):
    rows = []
    for _ in range(n):
        rows.append((rows[-1] if rows else v) + v)
        if stops and rows[-1] > 9:
            break
    return rows


ROWS = {"last": lambda rows: rows[-1], "first": lambda rows: rows[0], "both": lambda rows: rows[-1] - 2 * rows[0]}
LOOPS_IN_BRANCHES = {
    "two": lambda where, row, k, v: where(k > 2, lambda: row(v, k), lambda: row(10 * v, k - 3)),
    "beside": lambda where, row, k, v: where(k > 2, lambda: row(v, k - 2), lambda: v) + where(k < 5, lambda: row(3 * v, k), lambda: v),
    "nested": lambda where, row, k, v: where(k > 2, lambda: row(v, k), lambda: where(k > 1, lambda: row(2 * v, k), lambda: 3 * v)),
    "one of the other": lambda where, row, k, v: where(k > 2, lambda: row(row(v, 2), k), lambda: row(10 * v, k + 1)),
}


@pytest.mark.parametrize("stops", [False, True], ids=["counted", "until"])
@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("form", LOOPS_IN_BRANCHES)
def test_a_row_that_a_loop_in_the_other_branch_has_not(form, row, stops):
    """Only the branch that is taken has to have the row; the other one leaves the loops beside it alone."""
    program, read = LOOPS_IN_BRANCHES[form], ROWS[row]

    def step(k, v):
        value = program(lambda c, a, b: rs.ifelse(c, a(), b()), lambda v, n: read(powers(v, n, stops)["a"]), k, v)
        return {"v": v + 0.25, "y": value}

    f = rs.compile(lambda ks, v: rs.loop(step, over={"k": ks}, init={"v": v}).y)
    for ks in ([3, 3, 3], [1, 4, 2] if form != "two" else [4, 6, 3], [3, 5, 4, 8, 5]):
        wanted = [
            program(lambda c, a, b: a() if c else b(), lambda v, n: read(powers_of_numpy(v, n, stops)), k, 0.5 + 0.25 * t)
            for t, k in enumerate(ks)
        ]
        np.testing.assert_allclose(f(np.array(ks), 0.5), wanted, rtol=1e-12)
