"""Rows of loops in steps, as many as a value of the step says: their gradients run in one list of kernels, and are right."""

import re

import numpy as np
import pytest
from test_inner_loops import agree

import rscan as rs

T = 9
RANDOM = np.random.default_rng(2)
X, ROWS, W = RANDOM.normal(size=T), RANDOM.normal(size=(T, 3)), RANDOM.normal(size=(3, 3)) / 3
COUNTS = RANDOM.integers(0, 6, size=T)
SOME = np.maximum(COUNTS, 1)


def sines(h, x, n):
    """n rows."""
    return rs.loop(lambda z: {"z": rs.sin(z + x)}, init={"z": h}, n_steps=n).z


def discounted(rows, **options):
    return rs.loop(lambda p, g: {"g": g * 0.5 + p}, over={"p": rows}, init={"g": rs.zeros_like(rows[0])}, **options).g


def over(step, x, n, h0=0.3):
    """The last state, squared."""
    h = rs.loop(lambda x, n, h: {"h": step(x, n, h)}, over={"x": x, "n": n}, init={"h": rs.constant(h0)}).h
    return rs.sum(h**2)


def until(x, n):
    def step(x, n, h):
        def newton(z):
            return {"z": z - (z**3 + z - x) / (3 * z**2 + 1)}, rs.until(abs(z**3 + z - x) < 1e-9)

        return rs.loop(newton, init={"z": x + h}, n_steps=20).z[-1] * 0.5

    return over(step, x, n)


def first_and_last(x, n):
    def step(x, n, h):
        rows = sines(h, x, n)
        return rows[n - 1] * rows[0] + rows[-1]

    return over(step, x, n)


def as_often_as_was_computed(x, n):
    def step(x, n, h):
        rows = sines(h, x, rs.clip(rs.cast(abs(h) * 4, "int64"), 1, 6))
        return rows[-1] + 0.1 * rows[0]

    return over(step, x, n)


def reversed_between(x, n):
    return over(lambda x, n, h: discounted(rs.exp(-sines(h, x, n)[::-1]))[-1], x, n)


def with_what_was_before(x, n):
    return over(lambda x, n, h: rs.concatenate([rs.stack([h]), sines(h, x, n)])[-1] + x, x, n)


def differences(x, n):
    def step(x, n, h):
        rows = sines(h, x, n + 1)
        return discounted((rows[1:] - rows[:-1]) ** 2)[-1] + rows[-1]

    return over(step, x, n)


def both_ways(x, n):
    def step(x, n, h):
        rows = sines(h, x, n)
        forth = discounted(rows)
        back = rs.loop(lambda p, q, g: {"g": g * 0.5 + p * q}, over={"p": rows, "q": forth}, init={"g": h}, reverse=True).g
        return back[-1]

    return over(step, x, n)


def with_no_rows_beside(x, n):
    def step(x, n, h):
        rows = sines(h, x, n)
        none, behind = rows[:0], rows[n:]
        return rs.concatenate([none, rows, behind])[-1] + rs.sum(none) + rs.sum(behind**2) + 0.1 * rows[0]

    return over(step, x, n)


LOOPS = [
    with_no_rows_beside,
    until,
    first_and_last,
    as_often_as_was_computed,
    reversed_between,
    with_what_was_before,
    differences,
    both_ways,
]


def slopes(loss):
    return lambda x, n: [loss(x, n), rs.grad(loss(x, n), x)]


@pytest.mark.parametrize("loss", LOOPS)
def test_engines_agree(monkeypatch, loss):
    agree(monkeypatch, slopes(loss), X, SOME)
    agree(monkeypatch, slopes(loss), X, COUNTS)


@pytest.mark.parametrize("loss", LOOPS)
def test_slopes_are_those_of_differences(loss):
    _, slope = compiled(loss)(X, SOME)
    steps = 1e-6 * np.eye(T)
    f = compiled(loss)
    differences = [(f(X + d, SOME)[0] - f(X - d, SOME)[0]) / 2e-6 for d in steps]
    np.testing.assert_allclose(slope, differences, rtol=1e-6, atol=1e-8)


def compiled(loss):
    x, n = rs.vector("x"), rs.lvector("n")
    return rs.function([x, n], slopes(loss)(x, n), on_unused_input="ignore")


@pytest.mark.parametrize("loss", LOOPS)
@pytest.mark.usefixtures("chosen_engine")
def test_one_list_is_for_all_numbers_of_rows(loss):
    f = compiled(loss)
    f(X, SOME)
    runs = [line for line in str(f.explain()).splitlines() if "runs on" in line]
    assert not any("eval" in line or "calls of scan" in line or "for each of 4" in line for line in runs), runs


@pytest.mark.parametrize("total", [False, True])
def test_rows_of_vectors(monkeypatch, total):
    def build(w, x, n):
        def step(x, n, h):
            rows = rs.loop(lambda z: {"z": rs.tanh(w @ z + x)}, init={"z": h}, n_steps=n).z
            if total:
                return rs.sum(rows, axis=0) * 0.1
            both = rs.concatenate([h[None], rows])
            products = rs.exp(-(both**2))[:-1] * both[1:]
            return discounted(products)[-1] + both[0] * 0.1

        loss = over(step, x, n, np.ones(3))
        return [loss, *rs.grad(loss, [w, x])]

    agree(monkeypatch, build, W, ROWS, SOME)
    if total:
        agree(monkeypatch, build, W, ROWS, COUNTS)


def test_more_rows_than_ever_before(monkeypatch):
    """Lists have room for about as many rows as one call has at most; later calls may have more."""
    x, n = rs.vector("x"), rs.lvector("n")
    f = rs.function([x, n], slopes(both_ways)(x, n))
    found = [f(X, n) for n in (SOME, 10 * SOME, SOME, 100 * SOME)]
    monkeypatch.setenv("RSCAN_ENGINE", "eval")
    law = rs.function([x, n], slopes(both_ways)(x, n))
    for got, n in zip(found, (SOME, 10 * SOME, SOME, 100 * SOME), strict=True):
        for a, b in zip(got, law(X, n), strict=True):
            assert a.tobytes() == b.tobytes()


def test_sequences_that_are_too_short_are_reported(monkeypatch):
    def build(x, n, short):
        def step(x, n, h):
            rows = rs.loop(lambda s, z: {"z": rs.sin(z + x + s)}, over={"s": short}, init={"z": h}, n_steps=n).z
            return rows[-1]

        return rs.grad(over(step, x, n), x)

    agree(monkeypatch, build, X, SOME, np.ones(6))
    law = agree(monkeypatch, build, X, SOME, np.ones(3))
    assert isinstance(law, tuple), "an error"


def test_plans_for_the_values_of_integers_are_made_once_each(monkeypatch):
    monkeypatch.setenv("RSCAN_ENGINE", "vm")
    x, k, n = rs.dvector("x"), rs.lscalar("k"), rs.lscalar("n")
    f = rs.function([x, k, n], rs.loop(lambda i, h: h * 0.5 + rs.sum(rs.tanh(x[i : i + k] * h)), over=rs.arange(n), init=1.0))
    for count in (2, 3) * 4:
        f(X, count, 4)
    [loop] = f.explain().loops
    assert (loop.compiled, len(loop.variants)) == (2, 2)


def test_lists_are_made_for_the_integers_that_extents_depend_on(monkeypatch):
    """Not for those that choose a column, of which there are many more together."""
    monkeypatch.setenv("RSCAN_ENGINE", "vm")
    w, columns, n, j = rs.dmatrix("w"), rs.dmatrix("columns"), rs.lvector("n"), rs.lvector("j")

    def step(n, j, h):
        return rs.tanh(rs.loop(lambda v: v @ w, init=h, n_steps=n)[-1] * columns[:, j])

    out = rs.loop(lambda n, j, h: {"h": step(n, j, h)}, over={"n": n, "j": j}, init={"h": rs.ones(3)}).h
    cost = rs.sum(out[-1] ** 2)
    f = rs.function([w, columns, n, j], [cost, rs.grad(cost, w)])
    given = np.eye(3) * 0.7 + 0.1, np.linspace(0.5, 1.5, 12).reshape(3, 4), np.array([3, 2, 3, 2, 3, 2]), np.array([0, 1, 2, 3, 1, 0])
    got = f(*given)
    [lists] = re.findall("a list for each of ([0-9]+) integers", str(f.explain()))
    assert int(lists) <= 2
    monkeypatch.setenv("RSCAN_ENGINE", "eval")
    law = rs.function([w, columns, n, j], [cost, rs.grad(cost, w)])(*given)
    for ours, right in zip(got, law, strict=True):
        np.testing.assert_allclose(ours, right, rtol=1e-13)


def test_rows_and_numbers_of_the_step_are_one_list(monkeypatch):
    """Not one for each number of rows, where what is made of the rows has operands that are none."""
    monkeypatch.setenv("RSCAN_ENGINE", "vm")
    x, n = rs.dvector("x"), rs.lvector("n")
    out = over(lambda x, n, h: discounted(rs.exp(-sines(h, x, n)) * x + h)[-1], x, n)
    f = rs.function([x, n], out)
    f(X, SOME)
    assert "a list for each of 1 integers" in str(f.explain()), f.explain()


@pytest.mark.usefixtures("chosen_engine")
def test_extents_in_gradients_of_loops_in_steps_are_no_rows():
    """What the step of a loop makes from extents of its values is made from extents again: its gradient is native as the loop is."""
    y, w, first = rs.dvector("y"), rs.dmatrix("w"), rs.lvector("first")

    def step(y):
        def improve(new):
            residual = lambda new: new - y - 0.1 * (w @ (new[first] * rs.concatenate([new, rs.ones(1)])[1 + first]))
            return new - rs.linalg.solve(rs.jacobian(residual)(new), residual(new))

        return rs.loop(improve, init=y, n_steps=3)[-1]

    cost = rs.sum(rs.loop(step, init=y, n_steps=4)[-1] ** 2)
    slopes = rs.grad(cost, [y, w])
    f = rs.function([y, w, rs.In(first, value=np.array([3, 0, 1, 2, 2]))], [cost, *slopes])
    at = np.linspace(-1, 1, 4), np.cos(np.arange(20.0)).reshape(4, 5)
    got = f(*at)
    assert "runs on eval" not in str(f.explain())
    for k in range(2):
        for place in np.ndindex(at[k].shape):
            moved = [[x.copy() for x in at] for _ in range(2)]
            moved[0][k][place] += 1e-6
            moved[1][k][place] -= 1e-6
            quotient = (f(*moved[0])[0] - f(*moved[1])[0]) / 2e-6
            np.testing.assert_allclose(got[1 + k][place], quotient, rtol=1e-6, atol=1e-8)


def test_rows_of_several_extents_are_one_list(monkeypatch):
    def build(x, n):
        def step(x, n, h):
            start = {"z": rs.stack([h, 2 * h, 3 * h]), "y": h[None]}
            rows = rs.loop(lambda z, y: {"z": rs.sin(z + x), "y": rs.cos(y * x)}, init=start, n_steps=n)
            return rs.sum((rows.z * rows.y)[-1])

        return over(step, x, n)

    agree(monkeypatch, build, X, SOME, reached="a list for each of 1 integers")


@pytest.mark.parametrize("m", range(1, 10))
def test_rows_and_vectors_that_need_not_fit(monkeypatch, m):
    def build(x, n, c):
        return over(lambda x, n, h: rs.sum((sines(h, x, n) + c)[-1:]), x, n)

    ones = np.ones(T, "int64")
    agree(monkeypatch, build, X, m * ones, np.arange(1.0, m + 1))
    law = agree(monkeypatch, build, X, (m + 1) * ones, np.arange(2.0, m + 4))
    assert isinstance(law, tuple), "an error"


@pytest.mark.usefixtures("chosen_engine")
def test_functions_of_rows_between_others_are_in_the_list():
    def step(x, n, h):
        rows = rs.exp(-sines(h, x, n) * x)
        return discounted(rs.tanh(rs.concatenate([rs.stack([h]), rows, rs.stack([h, x])])))[-1]

    x, n = rs.vector("x"), rs.lvector("n")
    f = rs.function([x, n], over(step, x, n))
    f(X, SOME)
    _, rows, sums = f.explain().loops
    assert [loop.variants[0].engine for loop in (rows, sums)] == ["a kernel in the step of the loop around"] * 2
    assert [len(loop.variants) for loop in (rows, sums)] == [1, 1]


def test_extents_of_rows_that_follow_from_other_rows(monkeypatch):
    def build(x, n):
        def step(x, n, h):
            last = rs.loop(lambda z: {"z": rs.sin(z + x)}, init={"z": rs.stack([h, 2 * h, 3 * h])}, n_steps=n).z[-1:]
            rows = rs.loop(lambda z: {"z": rs.cos(z + x)}, init={"z": last}, n_steps=n).z
            return rs.sum(rows[-1]) * rows.shape[1]

        return over(step, x, n)

    with rs.config.override(passes="none"):
        agree(monkeypatch, build, X, SOME, reached="a list for each of 1 integers")
