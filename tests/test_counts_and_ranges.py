"""Numbers of points that are variables, and values outside the range of what takes them."""

import numpy as np
import pytest
import scipy.linalg
from helpers import like_numpy, run

import rscan as rs


@pytest.mark.parametrize("name", ["linspace", "logspace", "geomspace"])
@pytest.mark.parametrize("endpoint", [True, False])
def test_numbers_of_points_that_are_variables(name, endpoint):
    n = rs.lscalar("n")
    for ends in ((0.1, 2.0), (np.array([0.1, -1.0]), np.array([0.7, -3.0]))):
        f = rs.function([n], getattr(rs, name)(*ends, n, endpoint))
        for k in (0, 1, 2, 3, 9):
            expected = getattr(np, name)(*ends, k, endpoint=endpoint)
            got = f(k)
            assert got.shape == expected.shape
            np.testing.assert_allclose(got, expected, rtol=1e-14)
            if k > 1 and endpoint and name != "logspace":
                np.testing.assert_array_equal(got[-1], ends[1])
        with pytest.raises(rs.errors.AssertionFailedError, match="the number of points is negative"):
            f(-1)
    x = rs.dscalar("x")
    slope = rs.function([x, n], rs.grad(rs.sum(getattr(rs, name)(1.0, x, n, endpoint) ** 2), x))
    cost = lambda v: np.sum(getattr(np, name)(1.0, v, 5, endpoint=endpoint) ** 2)
    np.testing.assert_allclose(slope(1.5, 5), (cost(1.5 + 1e-6) - cost(1.5 - 1e-6)) / 2e-6, rtol=1e-6)
    for wrong in (2.5, -1, rs.dscalar(), rs.lvector()):
        with pytest.raises(rs.RscanTypeError, match="number of points"):
            getattr(rs, name)(0.1, 1.0, wrong)


def test_values_that_do_not_fit_are_errors():
    x, q, i = rs.dvector("x"), rs.dvector("q"), rs.lvector("i")
    values = np.array([3.0, 1.0, 2.0])
    for f in (rs.quantile, rs.percentile, rs.nanquantile, rs.nanpercentile):
        whole = 1.0 if "quantile" in f.__name__ else 100.0
        g = rs.function([x, q], f(x, q))
        np.testing.assert_array_equal(g(values, [0.0, whole]), [1.0, 3.0])
        for wrong in (-0.01 * whole, 1.01 * whole, np.nan):
            with pytest.raises(rs.errors.AssertionFailedError, match=r"quantiles are numbers in \[0, 1\]"):
                g(values, [0.0, wrong])
    one, several = rs.function([x, i], rs.insert(x, i[0], 9.0)), rs.function([x, i], rs.insert(x, i, 9.0))
    for place in (-3, -1, 0, 2, 3):
        np.testing.assert_array_equal(one(values, [place]), np.insert(values, place, 9.0))
        np.testing.assert_array_equal(several(values, [place, 1]), np.insert(values, [place, 1], 9.0))
    for place in (-9, -4, 4, 99):
        for g in (one, several):
            with pytest.raises(rs.errors.AssertionFailedError, match="a position lies outside the axis"):
                g(values, [place, 1])


M = np.random.default_rng(5).normal(size=(3, 4))
FORMS = {
    "linspace axis": lambda m, x: m.linspace(x, 2 * x, 5, axis=1),
    "linspace last axis": lambda m, x: m.linspace(x[0], 2.0, 3, axis=-1),
    "linspace retstep": lambda m, x: m.linspace(x[0], 2.0, 3, retstep=True),
    "linspace retstep of one": lambda m, x: m.linspace(x[0, 0], 2.0, 1, retstep=True),
    "linspace retstep open": lambda m, x: m.linspace(x[0, 0], 2.0, 4, False, True),
    "logspace axis": lambda m, x: m.logspace(x, 2 * x, 4, axis=1),
    "geomspace axis": lambda m, x: m.geomspace(m.abs(x) + 1, 9.0, 4, axis=2),
    "average returned": lambda m, x: m.average(x, 1, returned=True),
    "average returned weights": lambda m, x: m.average(x, 0, weights=np.array([1.0, 2.0, 0.5]), returned=True),
    "average keepdims": lambda m, x: m.average(x, 0, weights=np.array([1.0, 2.0, 0.5]), keepdims=True),
    "average of all": lambda m, x: m.average(x, returned=True, keepdims=True),
    "take wrap": lambda m, x: m.take(x, [7, -1, 20], axis=1, mode="wrap"),
    "take clip": lambda m, x: m.take(x, [[7], [-1]], mode="clip"),
    "rot90 axes": lambda m, x: m.rot90(x[None] * np.ones((2, 1, 1)), 1, (1, 2)),
    "rot90 axes back": lambda m, x: m.rot90(x[None] * np.ones((2, 1, 1)), 3, (2, -3)),
    "rot90 twice": lambda m, x: m.rot90(x, 2, (1, 0)),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms_of_arguments(name):
    with np.errstate(all="ignore"):
        like_numpy(FORMS[name], M)
    if "of one" not in name:
        rs.verify_grad(lambda x: FORMS[name](rs, x) if "return" not in name and "retstep" not in name else FORMS[name](rs, x)[0], [M])


def test_a_diagonal_of_ones_is_not_read():
    a, b = np.array([[np.nan, 0.0], [3.0, np.nan]]), np.array([1.0, 5.0])
    for trans in (0, 1):
        got = run(lambda a, b, t=trans: rs.linalg.solve_triangular(a, b, lower=True, trans=t, unit_diagonal=True), a, b)
        np.testing.assert_allclose(got, scipy.linalg.solve_triangular(np.tril(a, -1), b, trans, lower=True, unit_diagonal=True))


def test_wrong_forms():
    x = rs.dmatrix("x")
    with pytest.raises(rs.RscanValueError, match="the modes of take"):
        rs.take(x, [0], mode="no")
    for axes in ((0, 0), (0, 2), (0,)):
        with pytest.raises((ValueError, IndexError)):
            rs.rot90(x, 1, axes)
