"""Names of the array API standard: beside NumPy, and where it is installed beside array_api_strict (all: `make accept-array-api`)."""

import collections

import array_api
import numpy as np
import pytest
from helpers import like_numpy, same

import rscan as rs

X = np.array([[3.0, 1.0, 3.0, 2.0], [0.0, 5.0, 0.0, 4.0]])


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_sorted_the_other_way_round(axis):
    expected = np.flip(np.sort(X, axis=axis), -1 if axis is None else axis)
    same(rs.sort(X, axis=axis, descending=True).eval(), expected)
    at = rs.argsort(X, axis=axis, descending=True).eval()
    same(np.take_along_axis(X.ravel() if axis is None else X, at, -1 if axis is None else axis), expected)
    like_numpy(lambda xp, x: xp.sort(x, axis=axis, stable=True), X)


def test_equal_elements_keep_their_order():
    assert rs.argsort([1, 3, 1, 3], descending=True).eval().tolist() == [1, 3, 0, 2]
    assert rs.argsort([1, 3, 1, 3], stable=True).eval().tolist() == [0, 2, 1, 3]


def test_gradients_of_what_is_sorted_the_other_way_round():
    rs.verify_grad(lambda x: rs.sum(rs.sort(x, descending=True) * np.array([1.0, 2.0, 3.0])), [np.array([0.3, 2.0, -1.0])])


@pytest.mark.parametrize("name", ["var", "std"])
def test_correction(name):
    like_numpy(lambda xp, x: getattr(xp, name)(x, axis=1, correction=1), X)
    with pytest.raises(rs.RscanTypeError, match="two names of one number"):
        getattr(rs, name)(X, ddof=1, correction=1)


@pytest.mark.parametrize("how", [dict(prepend=0), dict(append=np.ones((2, 1))), dict(prepend=np.ones((2, 2)), append=2.5, n=2)])
def test_differences_of_more(how):
    like_numpy(lambda xp, x: xp.diff(x, axis=1, **how), X)
    like_numpy(lambda xp, x: xp.diff(x, **how), np.arange(6).reshape(2, 3)) if "append" not in how else None


def test_what_is_unique():
    for got, expected in zip(rs.unique_all([3, 1, 3]), np.unique_all([3, 1, 3]), strict=True):
        same(got.eval(), expected)
    assert rs.reshape(X, (4, 2), copy=True).eval().shape == (4, 2)


@pytest.mark.filterwarnings("ignore")
def test_beside_array_api_strict():
    """A few cases of each function."""
    strict = pytest.importorskip("array_api_strict")
    seen = collections.Counter()
    for name, args, named in array_api.cases():
        seen[name] += 1
        if seen[name] <= 4 and name not in array_api.LACKING:
            assert array_api.difference(strict, name, args, named) is None, (name, args, named)
    assert len(seen) > 130 and set(array_api.LACKING) <= set(seen)
