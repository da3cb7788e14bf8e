"""Products of rows are computed outside a loop, though they may fail there. Where no step runs, a call fails as little as before."""

import numpy as np
import pytest

import rscan as rs
import rscan.theano as theano
import rscan.theano.tensor as T

ENGINES = ["eval", "auto"]


@pytest.fixture(params=ENGINES, autouse=True)
def engine(request, monkeypatch):
    monkeypatch.setenv("RSCAN_ENGINE", request.param)


def mapped():
    """Rows by a matrix, and what is made of it."""
    x, y, w, v = rs.dmatrix("x"), rs.dvector("y"), rs.dmatrix("w"), rs.dvector("v")
    one = lambda x_t, y_t: (rs.tanh(x_t @ w) @ v - y_t) ** 2
    return rs.function([x, y, w, v], rs.loop(one, over=[x, y]))


def per_row():
    """The gradient of each row: as many matrices as there are rows."""
    x, w = rs.dmatrix("x"), rs.dmatrix("w")
    gradients = rs.loop(lambda x_t: rs.grad(rs.sum(rs.tanh(x_t @ w) ** 2), w), over=[x])
    return rs.function([x, w], [rs.sum(gradients, axis=0)])


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


def test_a_matrix_for_each_row_is_not_held_for_all():
    f = per_row()
    x, w = np.random.default_rng(1).normal(size=(6, 3)), np.ones((3, 2))
    z = np.tanh(x @ w)
    np.testing.assert_allclose(f(x, w)[0], x.T @ (2 * z * (1 - z**2)), rtol=1e-12)
    assert "of each row by itself" in str(f.explain())


def test_products_stay_in_the_step_beside_an_op_of_the_user():
    x, w, v = rs.dmatrix("x"), rs.dmatrix("w"), T.dvector("v")
    twice = theano.as_op([T.dvector], [T.dvector])(lambda v: 2 * v)
    out = rs.loop(lambda x_t, h: {"h": 0.5 * h + x_t, "y": h @ w}, over=x, init={"h": rs.zeros(3)})
    f = rs.function([x, w, v], [out.y, twice(v)])
    assert f(np.zeros((0, 3)), np.zeros((4, 5)), [1.0])[0].shape == (0, 5)
    assert "not done: `matmul` might fail where no step runs" in str(f.explain())
