"""Derivatives of determinants, of singular matrices, too."""

import itertools

import numpy as np
import pytest

import rscan as rs
import rscan.theano as theano
import rscan.theano.tensor as T


def exact(a):
    """The determinant of integers by its definition."""
    n = len(a)
    terms = itertools.permutations(range(n))
    sign = lambda p: (-1) ** sum(p[i] > p[j] for i in range(n) for j in range(i + 1, n))
    return sum(sign(p) * int(np.prod([int(a[i][p[i]]) for i in range(n)])) for p in terms)


def along(a, ways):
    """The derivative of the determinant along as many matrices as there are ways: it is linear in each row."""
    n = len(a)
    total = 0
    for rows in itertools.permutations(range(n), len(ways)):
        changed = a.copy()
        for row, way in zip(rows, ways, strict=True):
            changed[row] = way[row]
        total += exact(changed)
    return total


SINGULAR = {
    "of one": np.zeros((1, 1)),
    "rank 1 of 2": np.array([[1.0, 2], [2, 4]]),
    "nothing": np.zeros((2, 2)),
    "rank 2 of 3": np.array([[1.0, 2, 3], [4, 5, 6], [7, 8, 9]]),
    "rank 1 of 3": np.ones((3, 3)),
    "a row of zeros": np.array([[1.0, 2, 3], [0, 0, 0], [7, 8, 10]]),
    "two equal columns": np.array([[1.0, 2, 2, 0], [3, 1, 1, 5], [0, 4, 4, 2], [2, 2, 2, 1]]),
    "rank 2 of 4": np.outer([1, 2, 0, 1], [3, 1, 1, 2]) + np.outer([0, 1, 1, 5], [2.0, 0, 1, 4]),
    "regular": np.array([[2.0, 1, 0], [1, 3, 1], [0, 1, 4]]),
}


def units(n):
    return [np.eye(n * n)[k].reshape(n, n) for k in range(n * n)]


@pytest.mark.parametrize("a", SINGULAR.values(), ids=SINGULAR)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_slopes_are_cofactors_and_slopes_of_slopes_minors(a, dtype):
    x, w = rs.tensor(dtype, (None, None)), rs.tensor(dtype, (None, None))
    y = rs.linalg.det(x)
    g = rs.grad(y, x)
    f = rs.function([x, w], [y, g, rs.grad(rs.sum(g * w), x), rs.jvp(g, x, w)])
    n, tolerance = len(a), 1e-12 if dtype == "float64" else 1e-4
    way = np.arange(n * n).reshape(n, n) % 5 - 2.0
    value, slope, second, pushed = f(a.astype(dtype), way.astype(dtype))
    np.testing.assert_allclose(value, exact(a), atol=10 * tolerance)
    np.testing.assert_allclose(slope.ravel(), [along(a, [unit]) for unit in units(n)], rtol=tolerance, atol=10 * tolerance)
    expected = [along(a, [unit, way]) for unit in units(n)]
    np.testing.assert_allclose(second.ravel(), expected, rtol=tolerance, atol=100 * tolerance)
    np.testing.assert_allclose(pushed.ravel(), expected, rtol=tolerance, atol=100 * tolerance)


def test_batches_nothing_and_integers():
    x = rs.tensor("float64", (None, None, None))
    f = rs.function([x], [rs.linalg.det(x), rs.grad(rs.sum(rs.linalg.det(x) ** 2), x)])
    a = np.stack([SINGULAR["rank 2 of 3"], SINGULAR["regular"], SINGULAR["rank 1 of 3"]])
    value, slope = f(a)
    np.testing.assert_allclose(value, [0, 18, 0], atol=1e-12)
    np.testing.assert_allclose(slope[1], 2 * 18 * 18 * np.linalg.inv(a[1]).T, rtol=1e-12)
    np.testing.assert_allclose(slope[[0, 2]], 0, atol=1e-12)
    value, slope = f(np.zeros((2, 0, 0)))
    assert value.tolist() == [1, 1] and slope.shape == (2, 0, 0)
    assert rs.eval(rs.linalg.det(np.array([[1, 2], [3, 4]]))) == pytest.approx(-2)


def test_third_derivatives_are_those_of_regular_matrices():
    s = rs.dscalar("s")
    a, way = SINGULAR["regular"], SINGULAR["rank 2 of 3"]
    y = rs.linalg.det(a + s * way)
    for _ in range(3):
        y = rs.grad(y, s)
    np.testing.assert_allclose(rs.function([s], y)(0.0), along(a, [way, way, way]), atol=1e-10)
    b = SINGULAR["regular"]
    z = rs.linalg.det(s * b)
    for _ in range(3):
        z = rs.grad(z, s)
    np.testing.assert_allclose(rs.function([s], z)(0.5), 6 * 18, rtol=1e-12)
    with pytest.raises(rs.RscanError, match="third derivative of `det`"):
        rs.function([s], z)(0.0)


def test_the_gradient_of_slogdet_says_that_it_is_the_inverse():
    x = rs.dmatrix("x")
    f = rs.function([x], rs.grad(rs.linalg.slogdet(x)[1], x))
    np.testing.assert_allclose(f(SINGULAR["regular"]), np.linalg.inv(SINGULAR["regular"]).T, rtol=1e-12)
    with pytest.raises(rs.RscanError, match=r"E0601.*singular") as e:
        f(SINGULAR["rank 1 of 3"])
    assert "the gradient of `slogdet`" in str(e.value)


def test_in_steps_and_in_theano():
    xs, w = rs.tensor("float64", (None, None, None)), rs.dmatrix("w")
    d, _ = rs.scan(lambda x, d, w: d * 0.5 + rs.linalg.det(x @ w), sequences=xs, outputs_info=rs.constant(1.0), non_sequences=w)
    a = np.stack([SINGULAR["rank 2 of 3"], SINGULAR["regular"]])
    gx, gw = rs.function([xs, w], rs.grad(d[-1], [xs, w]))(a, np.eye(3))
    minors = lambda m: np.array([along(m, [unit]) for unit in units(3)]).reshape(3, 3)
    np.testing.assert_allclose(gx, [0.5 * minors(a[0]), minors(a[1])], atol=1e-11)
    np.testing.assert_allclose(gw, 18 * np.eye(3), atol=1e-10)
    m = T.dmatrix("m")
    slope = theano.function([m], T.grad(T.nlinalg.det(m), m))(SINGULAR["rank 1 of 2"])
    np.testing.assert_array_equal(slope, [[4, -2], [-2, 1]])
