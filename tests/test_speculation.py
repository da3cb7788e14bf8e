"""What is the same at every step, or of all rows at once, is computed outside a loop, though it may fail there. Where no step runs, a call
fails as little as before."""

import numpy as np
import pytest

import rscan as rs
from rscan.printing import Print

ENGINES = ["eval", "auto"]


@pytest.fixture(params=ENGINES, autouse=True)
def engine(request, monkeypatch):
    monkeypatch.setenv("RSCAN_ENGINE", request.param)


def invariant():
    """A system that is the same at every step."""
    a, b, h, n = rs.dmatrix("a"), rs.dvector("b"), rs.dvector("h"), rs.lscalar("n")
    o = rs.loop(lambda h: {"h": h + rs.solve(a, b)}, init={"h": h}, n_steps=n)
    return rs.function([a, b, h, n], o.h)


def fixed_product():
    """A product that is the same at every step, beside rows."""
    x, w, b, h = rs.dmatrix("x"), rs.dmatrix("w"), rs.dvector("b"), rs.dvector("h")
    o = rs.loop(lambda x_t, h: {"h": rs.tanh(h + x_t + w @ b)}, over={"x_t": x}, init={"h": h})
    return rs.function([x, w, b, h], o.h)


def mapped():
    """Rows by a matrix, and what is made of it."""
    x, y, w, v = rs.dmatrix("x"), rs.dvector("y"), rs.dmatrix("w"), rs.dvector("v")
    one = lambda x_t, y_t: (rs.tanh(x_t @ w) @ v - y_t) ** 2
    return rs.function([x, y, w, v], rs.loop(one, over=[x, y]))


def test_a_singular_matrix_matters_where_a_step_runs():
    f = invariant()
    singular, good = np.ones((2, 2)), np.array([[2.0, 0], [0, 4]])
    b, h = np.array([2.0, 4]), np.array([1.0, 1])
    np.testing.assert_array_equal(f(good, b, h, 2), [[2.0, 2], [3, 3]])
    for _ in range(2):
        assert f(singular, b, h, 0).shape[0] == 0
        with pytest.raises(rs.RscanError, match="E0601"):
            f(singular, b, h, 2)
    np.testing.assert_array_equal(f(good, b, h, 1), [[2.0, 2]])


def test_products_that_do_not_fit_matter_where_a_step_runs():
    f = fixed_product()
    w, b, h = np.ones((2, 3)), np.ones(4), np.zeros(2)
    assert f(np.zeros((0, 2)), w, b, h).shape[0] == 0
    with pytest.raises(rs.ShapeError, match="E0208"):
        f(np.zeros((1, 2)), w, b, h)
    np.testing.assert_allclose(f(np.zeros((1, 2)), w, np.ones(3), h), np.tanh([[3.0, 3]]))


def test_maps_of_rows_that_do_not_fit():
    f = mapped()
    rng = np.random.default_rng(0)
    x, y, w, v = rng.normal(size=(7, 3)), rng.normal(size=5), rng.normal(size=(3, 4)), rng.normal(size=4)
    np.testing.assert_allclose(f(x, y, w, v), (np.tanh(x[:5] @ w) @ v - y) ** 2, rtol=1e-12)
    assert f(x[:0], y, w[:2], v).shape == (0,)
    assert f(x, y[:0], w, v[:2]).shape == (0,)
    with pytest.raises(rs.ShapeError, match="E0208"):
        f(x, y, w[:2], v)
    with pytest.raises(rs.ShapeError, match="E0208"):
        f(x, y, w, v[:2])


def test_operations_of_users_see_no_second_run():
    seen = []
    a, b, h, n = rs.dmatrix("a"), rs.dvector("b"), rs.dvector("h"), rs.lscalar("n")
    noted = Print("b", callback=seen.append)(b)
    o = rs.loop(lambda h: {"h": h + rs.solve(a, b)}, init={"h": h}, n_steps=n)
    f = rs.function([a, b, h, n], [noted, o.h])
    assert f(np.ones((2, 2)), np.ones(2), np.ones(2), 0)[1].shape[0] == 0
    assert len(seen) == 1
    with pytest.raises(rs.RscanError, match="E0601"):
        f(np.ones((2, 2)), np.ones(2), np.ones(2), 1)
    assert len(seen) == 2
