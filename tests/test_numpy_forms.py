"""Forms of arguments of NumPy's functions that are refused, and those that the tables of `numpy_surface` cannot say."""

import numpy as np
import pytest
from helpers import run, same

import rscan as rs

X = np.array([[3.0, 1.0, 2.0], [0.5, 5.0, 4.0]])

REFUSED = {
    "method": (lambda: rs.quantile(X, 0.5, method="median"), "methods linear, lower"),
    "weights": (lambda: rs.quantile(X, 0.5, weights=X), "weights want the method 'inverted_cdf', not 'linear'"),
    "shares": (lambda: rs.quantile(X, [0.5, 1.5]), r"numbers in \[0, 1\]"),
    "a function": (lambda: rs.pad(X, 1, lambda *_: None), "pad has the modes"),
    "reflect_type": (lambda: rs.pad(X, 1, "reflect", reflect_type="none"), "reflect_type is 'even' or 'odd', not 'none'"),
    "stat_length": (lambda: rs.pad(X, 1, "mean", stat_length=0), "stat_length is 1 or more"),
    "lists of letters": (lambda: rs.einsum(X, [0, 1], [0, 60]), "a list of integers from 0 to 51"),
    "no letters": (lambda: rs.einsum(X), "einsum takes its letters"),
    "two bounds": (lambda: rs.clip(X, 0, a_min=1), "a_min and min"),
    "kind": (lambda: rs.sort(X, kind="fast"), "a kind of sorting is one of"),
    "order": (lambda: rs.argsort(X, order="a"), "no fields to sort by"),
    "partition": (lambda: rs.partition(X, 1, kind="quicksort"), "a kind of sorting is one of"),
    "casting": (lambda: rs.concatenate([X, X], dtype="int32"), "does not become int32 by casting='same_kind'"),
    "shifts": (lambda: rs.roll(X, (1, 2, 3), (0, 1)), "as many shifts as axes, got 3 and 2"),
    "order of elements": (lambda: rs.reshape(X, (3, 2), order="B"), "order is 'C' or 'F', not 'B'"),
    "order of positions": (lambda: rs.unravel_index(1, (2, 3), order="K"), "order is 'C' or 'F', not 'K'"),
    "mode of positions": (lambda: rs.ravel_multi_index(([0], [1]), (2, 3), mode="none"), "raise, wrap and clip"),
    "trim": (lambda: rs.trim_zeros(X, "x"), "'f', 'b' or 'fb'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    call, text = REFUSED[name]
    with pytest.raises(rs.RscanError, match=text) as caught:
        call()
    assert caught.value.code == "E0809"


def test_positions_outside_are_errors_when_the_function_runs():
    i = rs.lvector("i")
    there = rs.function([i], rs.unravel_index(i, (2, 3)))
    back = rs.function([i], rs.ravel_multi_index((i, i), (2, 3)))
    assert [v.tolist() for v in there([5])] == [[1], [2]] and back([1]).tolist() == [4]
    for f in (there, back):
        for wrong in ([-1], [6]):
            with pytest.raises(AssertionError, match="a position lies outside the array"):
                f(wrong)


def test_ufuncs_reduce_what_counts():
    """`initial` and `where` were passed over."""
    x = rs.dmatrix("x")
    f = rs.function([x], [np.add.reduce(x, initial=5.0), np.maximum.reduce(x, axis=1, where=X > 1, initial=2.5)])
    same(f(X)[0], np.add.reduce(X, initial=5.0))
    same(f(X)[1], np.maximum.reduce(X, axis=1, where=X > 1, initial=2.5))


@pytest.mark.parametrize("method", ["linear", "inverted_cdf", "closest_observation", "hazen", "averaged_inverted_cdf"])
def test_quantiles_at_shares_that_are_known_later(method):
    data = np.array([[3.0, np.nan, 1.0, 2.0], [7.0, 5.0, 6.0, 4.0]])
    q = np.array([0.0, 0.25, 0.6, 1.0])
    for ours, theirs in ((rs.quantile, np.quantile), (rs.nanquantile, np.nanquantile)):
        same(run(lambda x, q, f=ours: f(x, q, axis=1, method=method), data, q), theirs(data, q, axis=1, method=method))


def test_weighted_quantiles():
    w = np.array([[0.0, 2.0, 1.0], [1.0, 0.0, 3.0]])
    for q in (0.0, 0.3, 0.5, 1.0):
        same(run(lambda x, w, q=q: rs.quantile(x, q, 1, weights=w, method="inverted_cdf"), X, w),
             np.quantile(X, q, axis=1, weights=w, method="inverted_cdf"))  # fmt: skip
    same(run(lambda x: rs.quantile(x, [0.2, 0.9], 1, weights=[1, 2, 3], method="inverted_cdf"), X),
         np.quantile(X, [0.2, 0.9], axis=1, weights=[1, 2, 3], method="inverted_cdf"))  # fmt: skip


def test_rows_padded_by_widths_that_are_variables():
    x, n = rs.dvector("x"), rs.lscalar("n")
    for mode in ("constant", "edge", "linear_ramp", "mean", "reflect", "symmetric", "wrap"):
        f = rs.function([x, n], rs.pad(x, (n, 2), mode))
        for width in (0, 3, 8):
            same(f(X[0], width), np.pad(X[0], (width, 2), mode))


@pytest.mark.parametrize("odd", [False, True])
@pytest.mark.parametrize("mode", ["reflect", "symmetric"])
def test_mirrors_far_outside(mode, odd):
    kind = "odd" if odd else "even"
    for x in (np.array([1.0, 4.0, 2.0]), np.array([1.0, 4.0]), np.array([5.0])):
        for width in (1, 2, 5, 11):
            expected = np.pad(x, (width, width + 1), mode, reflect_type=kind)
            same(run(lambda v, w=width: rs.pad(v, (w, w + 1), mode, reflect_type=kind), x), expected)


def test_numpys_names_of_arguments():
    x = rs.dmatrix("x")
    f = rs.function([x], [np.sum(a=x, axis=0), np.clip(a=x, a_min=1, a_max=2), np.reshape(x, shape=(3, 2)), np.sort(a=x, kind="stable")])
    for got, expected in zip(f(X), [X.sum(0), np.clip(X, 1, 2), X.reshape(3, 2), np.sort(X)], strict=True):
        same(got, expected)
    with pytest.raises(rs.RscanTypeError, match=r"np\.round of variables: .*'out'") as caught:
        np.round(x, out=np.ones(2))
    assert caught.value.code == "E0809" and "docs/absent.md" in str(caught.value)
