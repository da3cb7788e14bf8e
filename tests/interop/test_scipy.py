"""Objectives for SciPy, judged by scipy.optimize."""

import dataclasses

import numpy as np
import pytest

import rscan as rs

optimize = pytest.importorskip("scipy.optimize", reason="scipy is not installed")
from rscan.interop.scipy import objective, residuals  # noqa: E402


@dataclasses.dataclass
class Params:
    w: np.ndarray
    b: dict


def cost(p, x, scale):
    rows, _ = rs.scan(lambda x, h: rs.tanh(h @ p.w + x * p.b["slope"]), sequences=x, outputs_info=rs.ones(2))
    return rs.sum(rows**2) * scale + rs.sum(p.w**2) * p.b["slope"] ** 2


START = Params(np.array([[0.1, 0.2], [0.3, -0.4]]), {"slope": 0.5})
ARGS = (np.array([1.0, -1.0, 2.0]), 0.5)


def test_gradients_by_their_own_check():
    f = objective(cost, START, ARGS)
    for x in (f.x0, f.x0 + 0.3):
        assert optimize.check_grad(f.fun, f.jac, x) < 1e-6
        value, slope = f(x)
        assert type(value) is float and value == f.fun(x)
        assert slope.dtype == np.float64 and slope.shape == x.shape and slope.flags.c_contiguous


def test_hessians_by_differences_of_gradients():
    f = objective(cost, START, ARGS)
    expected = optimize.approx_fprime(f.x0, f.jac, 1e-6)
    np.testing.assert_allclose(f.hess(f.x0), expected, atol=1e-5)
    p = np.arange(5.0)
    np.testing.assert_allclose(f.hessp(f.x0, p), f.hess(f.x0) @ p, rtol=1e-10)


@pytest.mark.parametrize("method", ["L-BFGS-B", "BFGS", "Newton-CG", "trust-exact", "trust-ncg"])
def test_every_kind_of_minimiser(method):
    rosenbrock = objective(lambda p: (1 - p["x"]) ** 2 + 100 * (p["y"] - p["x"] ** 2) ** 2, {"x": -1.0, "y": 1.5})
    second = {"Newton-CG": {"hessp": rosenbrock.hessp}, "trust-exact": {"hess": rosenbrock.hess}, "trust-ncg": {"hessp": rosenbrock.hessp}}
    found = optimize.minimize(rosenbrock, rosenbrock.x0, jac=True, method=method, **second.get(method, {}))
    np.testing.assert_allclose(list(rosenbrock.unravel(found.x).values()), [1, 1], atol=1e-3)


def test_ravel_and_unravel_undo_each_other():
    f = objective(cost, START, ARGS)
    assert f.names == ["w", "b.slope"] and f.x0.tolist() == [0.1, 0.2, 0.3, -0.4, 0.5]
    again = f.unravel(f.ravel(Params(np.arange(4.0).reshape(2, 2), {"slope": 7.0})))
    assert isinstance(again, Params) and again.w.tolist() == [[0, 1], [2, 3]] and again.b["slope"] == 7
    rows = f.unravel(np.arange(10.0).reshape(2, 5))
    assert rows.w.shape == (2, 2, 2) and rows.b["slope"].tolist() == [4, 9]
    named = objective(lambda p: p["a"] * rs.sum(p["b"]), {"a": 1.0, "b": [1.0, 2.0]})
    assert named.ravel({"b": [5.0, 6.0], "a": 4.0}).tolist() == [4, 5, 6]


def test_what_does_not_fit_is_named():
    f = objective(cost, START, ARGS)
    with pytest.raises(rs.RscanError, match="these parameters are"):
        f.ravel({"w": 1.0})
    with pytest.raises(rs.RscanError, match="`flag` is not made of numbers"):
        objective(lambda p: p["a"], {"a": 1.0, "flag": True})
    with pytest.raises(rs.RscanError, match="E0504"):
        f(np.zeros(3))


def test_least_squares_and_roots():
    t = np.linspace(0, 1, 20)
    y = 2 * np.exp(-3 * t)
    values, jac = residuals(lambda p, t, y: p["a"] * rs.exp(-p["k"] * t) - y, {"a": 1.0, "k": 1.0}, (t, y))
    found = optimize.least_squares(values, [1.0, 1.0], jac=jac)
    np.testing.assert_allclose(found.x, [2, 3], rtol=1e-6)


def test_a_constant_direction_has_slope_zero():
    f = objective(lambda p: p["a"] ** 2, {"a": 3.0, "unused": [1.0, 2.0]})
    assert f(f.x0)[1].tolist() == [6, 0, 0] and f.hess(f.x0)[0, 0] == 2


def test_arguments_as_scipy_takes_them():
    """One that is no tuple is passed as it is."""
    y = np.array([1.0, 2.0, 4.0])

    def cost(p, y):
        return rs.sum((y - p) ** 2)

    bare, tuple_ = objective(cost, 0.5, args=y), objective(cost, 0.5, args=(y,))
    assert bare.fun([0.5]) == tuple_.fun([0.5]) == ((y - 0.5) ** 2).sum()
    values, jac = residuals(lambda p, y: p * y, 2.0, y)
    np.testing.assert_array_equal(values([2.0]), 2 * y)
    np.testing.assert_array_equal(jac([2.0])[:, 0], y)


def test_a_cost_that_is_no_scalar_is_shown_at_the_users_lines():
    f = objective(lambda p, y: y * p, 0.5, args=(np.ones(3),))
    with pytest.raises(rs.NonScalarCostError) as caught:
        f(f.x0)
    assert all(file == __file__ for file, _, _ in caught.value.labels)
