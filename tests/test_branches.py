"""Derivatives of `rs.ifelse`: what a branch alone needs is computed, and differentiated, only where the branch is taken."""

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
