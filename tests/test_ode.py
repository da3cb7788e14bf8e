"""Solutions of differential equations against exact ones and SciPy's, orders of the methods, gradients."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import scipy.integrate
from helpers import run

import rscan as rs

T = np.linspace(0, 2, 5)
ODE = rs.ode


def decay(y, t, k):
    return -k * y


def swing(y, t):
    return rs.stack([y[1], -y[0]])


def test_coefficients_satisfy_the_conditions_of_the_first_orders():
    at, of, error = np.array([0.0, *ODE._AT]), ODE._OF, np.array(ODE._ERROR)
    for c, row in zip(at[1:], of, strict=True):
        assert sum(row) == pytest.approx(c, abs=1e-14)
    b = np.array([*of[-1], 0.0])
    for order in range(1, 6):
        assert (b * at ** (order - 1)).sum() == pytest.approx(1 / order, abs=1e-13)
    for order in range(1, 5):
        assert (error * at ** (order - 1)).sum() == pytest.approx(0, abs=1e-13)
    assert abs((error * at**4).sum()) > 1e-4


@pytest.mark.parametrize(("method", "order"), [("euler", 1), ("rk4", 4)])
def test_orders(method, order):
    errors = []
    for steps in (8, 16):
        found = rs.eval(ODE.odeint(swing, np.array([1.0, 0.0]), T, method=method, steps=steps))
        errors.append(np.abs(found[:, 0] - np.cos(T)).max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.3)


@pytest.mark.parametrize("tolerance", [1e-4, 1e-7, 1e-10])
def test_adapted_steps_keep_the_error_small(tolerance):
    found = rs.eval(ODE.odeint(swing, np.array([1.0, 0.0]), 5 * T, rtol=tolerance, atol=tolerance))
    assert np.abs(found[:, 0] - np.cos(5 * T)).max() < 50 * tolerance
    stiff = lambda y, t: -50 * (y - rs.cos(t))
    expected = scipy.integrate.solve_ivp(lambda t, y: -50 * (y - np.cos(t)), (0, 2), [0.0], t_eval=T, rtol=1e-11, atol=1e-11).y[0]
    assert np.abs(rs.eval(ODE.odeint(stiff, 0.0, T, rtol=tolerance, atol=tolerance)) - expected).max() < 50 * tolerance


def test_forms():
    expected = np.exp(-1.5 * T)
    for given in (T, T.tolist(), rs.constant(T)):
        np.testing.assert_allclose(rs.eval(ODE.odeint(decay, 1.0, given, 1.5)), expected, rtol=1e-7)
    np.testing.assert_allclose(
        run(lambda y, t, k: ODE.odeint(decay, y, t, k), np.ones((2, 3)), T, np.array(1.5))[:, 1, 2], expected, rtol=1e-7
    )
    np.testing.assert_allclose(rs.eval(ODE.tsit5(decay, 1.0, T[::-1].copy(), 1.5)), np.exp(1.5 * (2 - T[::-1])), rtol=1e-7)
    np.testing.assert_allclose(rs.eval(ODE.rk4(decay, 1.0, T, 1.5, steps=50)), expected, rtol=1e-7)
    np.testing.assert_allclose(rs.eval(ODE.euler(decay, 1, T, 1.5, steps=5000)), expected, rtol=2e-3)
    assert rs.eval(ODE.odeint(decay, 1.0, T[:1], 1.5)).tolist() == [1.0]
    np.testing.assert_allclose(rs.eval(ODE.odeint(decay, 1.0, np.array([0.0, 1.0, 1.0, 2.0]), 1.5))[1:3], np.exp([-1.5, -1.5]), rtol=1e-7)
    single = rs.eval(ODE.odeint(decay, np.float32(1), T, 1.5, rtol=1e-4, atol=1e-4))
    assert single.dtype == "float32"
    np.testing.assert_allclose(single, expected, rtol=1e-3)
    np.testing.assert_array_equal(rs.eval(ODE.odeint(lambda y, t: 0.0, np.array([1.0, 2.0]), T)), np.tile([1.0, 2.0], (5, 1)))


@dataclasses.dataclass
class State:
    x: Any
    v: Any


def test_structures():
    spring = lambda s, t: State(s.v, -s.x)
    found = ODE.odeint(spring, State(1.0, 0.0), T)
    np.testing.assert_allclose(rs.eval(found.x), np.cos(T), atol=1e-6)
    named = ODE.odeint(lambda s, t: {"x": s["v"], "v": -s["x"]}, {"x": np.ones(2), "v": np.zeros(2)}, T, method="rk4", steps=40)
    np.testing.assert_allclose(rs.eval(named["v"])[:, 1], -np.sin(T), atol=1e-6)


@pytest.mark.parametrize("method", ["tsit5", "rk4"])
def test_gradients(method):
    solve = lambda y, k: ODE.odeint(decay, y, T, k, method=method, steps=3, rtol=1e-6, atol=1e-6)
    rs.verify_grad(solve, [np.array([1.0, 2.0]), np.array(0.7)], rel_tol=1e-4, abs_tol=1e-5)
    slope = rs.grad(lambda k: ODE.odeint(decay, 1.0, T, k, method=method, steps=20)[-1])(1.5)
    assert slope == pytest.approx(-2 * np.exp(-3), rel=1e-5)
    second = rs.grad(rs.grad(lambda k: ODE.odeint(decay, 1.0, T, k, method=method, steps=20)[-1]))(1.5)
    assert second == pytest.approx(4 * np.exp(-3), rel=1e-4)
    assert rs.grad(lambda end: ODE.odeint(decay, 1.0, rs.stack([0.0, end]), 1.0, method=method, steps=20)[-1])(1.0) == pytest.approx(
        -np.exp(-1), rel=1e-4
    )


def test_rows_at_once():
    solve = lambda y, k: ODE.odeint(decay, y, T, k)
    y, k = rs.dvector("y"), rs.dvector("k")
    got = rs.function([y, k], rs.vmap(solve)(y, k))([1.0, 2.0, 3.0], [0.5, 1.0, 20.0])
    np.testing.assert_allclose(got, np.array([[1.0], [2.0], [3.0]]) * np.exp(-np.outer([0.5, 1.0, 20.0], T)), rtol=1e-5, atol=1e-7)


def test_where_steps_do_not_suffice_there_is_no_solution():
    found = rs.eval(ODE.odeint(decay, 1.0, T, 1.5, max_steps=2))
    assert found[0] == 1 and np.isnan(found[1:]).all()
    blows_up = rs.eval(ODE.odeint(lambda y, t: y * y, 1.0, T, max_steps=300))
    assert np.isnan(blows_up[-1]) and blows_up[1] == pytest.approx(2, rel=1e-6)


ERRORS = {
    "method": lambda: ODE.odeint(decay, 1.0, T, 1.0, method="rk5"),
    "function": lambda: ODE.odeint(1.0, 1.0, T),
    "steps": lambda: ODE.rk4(decay, 1.0, T, 1.0, steps=0),
    "max_steps": lambda: ODE.tsit5(decay, 1.0, T, 1.0, max_steps=1.5),
    "times": lambda: ODE.odeint(decay, 1.0, 2.0, 1.0),
    "structure": lambda: ODE.odeint(lambda y, t: {"a": y["a"]}, {"a": 1.0, "b": 2.0}, T),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    with pytest.raises(rs.RscanError):
        ERRORS[name]()


def test_dense_output():
    """Times that the steps were not chosen for, forwards and backwards: SciPy's solution, its slopes, and NaN outside."""
    f = lambda y, t, k: -k * y * rs.cos(t) + t
    at = np.array([0.0, 0.1, 0.37, 1.0, 1.99, 2.0, 3.0, -0.1])
    for ends in ((0.0, 2.0), (2.0, 0.0)):
        k, t = rs.dscalar("k"), rs.dvector("t")
        solution = rs.ode.dense(f, np.array([1.0, -0.5]), *ends, k)
        got = rs.function([k, t], solution(t))(1.3, at)
        expected = scipy.integrate.solve_ivp(
            lambda t, y: -1.3 * y * np.cos(t) + t, ends, [1.0, -0.5], rtol=1e-12, atol=1e-12, dense_output=True
        ).sol(at[:6]).T  # fmt: skip
        np.testing.assert_allclose(got[:6], expected, rtol=1e-6, atol=1e-7)
        assert np.isnan(got[6:]).all()
        alone = rs.function([k, t], solution(t[2]))(1.3, at)
        np.testing.assert_array_equal(alone, got[2])
        cost = lambda k, y, a=ends[0], b=ends[1]: rs.ode.dense(f, y, a, b, k)(np.array([0.37, 1.5]))
        rs.verify_grad(cost, [np.array(1.3), np.array(1.0)], rel_tol=1e-5)
    t = rs.dscalar("t")
    slope = rs.function([t], rs.grad(rs.ode.dense(lambda y, t: -y, 1.0, 0.0, 2.0)(t), t))
    np.testing.assert_allclose([slope(v) for v in (0.3, 1.7)], -np.exp([-0.3, -1.7]), rtol=1e-6)


def test_dense_output_of_structures_and_of_too_few_steps():
    spring = lambda s, t: {"x": s["v"], "v": -s["x"]}
    found = rs.eval(rs.ode.dense(spring, {"x": 1.0, "v": 0.0}, 0.0, 6.0)([0.5, 5.0]))
    np.testing.assert_allclose(found["x"], np.cos([0.5, 5.0]), rtol=1e-6)
    few = rs.ode.dense(lambda y, t: -y, 1.0, 0.0, 2.0, max_steps=2)(np.linspace(0, 2, 5)).eval()
    assert few[0] == 1 and np.isnan(few[1:]).any() and np.isnan(few[-1])
    with pytest.raises(rs.RscanTypeError, match="a time or a vector of times"):
        rs.ode.dense(lambda y, t: -y, 1.0, 0.0, 2.0)(np.ones((2, 2)))
    with pytest.raises(rs.RscanTypeError, match="function of a derivative"):
        rs.ode.dense(3, 1.0, 0.0, 2.0)
