"""The array API standard: each function beside NumPy's, and where it is installed array_api_strict's (all: `make accept-array-api`)."""

import collections

import array_api
import eager
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


#: What NumPy's functions of these names do not take, or do in another order.
NOT_NUMPYS = {"sort", "argsort", "unique_values", "fft.fftfreq", "fft.rfftfreq"}


def faults(reference, without):
    """Every sixth case of each function, one at least."""
    seen, found = collections.Counter(), []
    for name, args, named in array_api.cases():
        if name not in without and seen[name] % 6 == 0:
            differs = array_api.difference(reference, name, args, named)
            found += [(name, args, named, differs)] if differs else []
        seen[name] += 1
    return found, seen


@pytest.mark.filterwarnings("ignore")
def test_beside_numpy():
    found, seen = faults(np, NOT_NUMPYS | set(array_api.LACKING))
    assert found == [] and len(seen) > 190 and seen.total() > 20_000


@pytest.mark.filterwarnings("ignore")
def test_beside_array_api_strict():
    strict = pytest.importorskip("array_api_strict")
    found, seen = faults(strict, set(array_api.LACKING))
    assert found == []
    assert set(array_api.functions(strict)) - set(seen) == array_api.UNCOUNTED & set(array_api.functions(strict))


def test_differences_are_found():
    x = np.array([1.0, 2.0])
    assert array_api.difference(np, "sum", [x], {}) is None
    for name, args, named in (("sum", [x], {}), ("abs", [np.array([0.0])], {}), ("sort", [x], {})):
        other = type("other", (), {name: staticmethod(lambda v, **_: -v)})
        other.asarray = staticmethod(np.asarray)
        assert array_api.difference(other, name, args, named)


def test_eager_functions_are_compiled_once(monkeypatch):
    monkeypatch.setattr(eager, "_compiled", {})
    x = eager.Array(np.arange(4.0))
    first = eager.xp.sum(x * 2.0)
    before = len(eager._compiled)
    assert float(eager.xp.sum(eager.Array(np.ones(7)) * 2.0)) == 14.0 and float(first) == 12.0
    assert len(eager._compiled) == before
    assert eager.xp.sum(eager.Array([1, 2])).dtype == "int64" and len(eager._compiled) == before + 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_neighbours_of_floats(dtype):
    """Of any bits, and of the powers of two around the smallest normal number."""
    info, bits = np.finfo(dtype), {"float32": np.uint32, "float64": np.uint64}[dtype]
    x = np.random.default_rng(0).integers(0, np.iinfo(bits).max, 4000, dtype=bits, endpoint=True).view(dtype)
    powers = np.ldexp(info.smallest_normal, np.arange(-10, 60)).astype(dtype)
    ends = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, info.max, -info.max, info.smallest_subnormal, 1.0], dtype)
    x = np.concatenate([x, powers, np.nextafter(powers, np.array(0, dtype)), ends, -ends])
    a, b = rs.vector("a", dtype=dtype), rs.vector("b", dtype=dtype)
    f = rs.function([a, b], [rs.nextafter(a, b), rs.spacing(a)])
    with np.errstate(all="ignore"):
        for y in (x[::-1].copy(), np.full_like(x, np.inf), np.full_like(x, -np.inf), 0 * x, x):
            found, apart = f(x, y)
            np.testing.assert_array_equal(found, np.nextafter(x, y))
            assert (np.signbit(found) == np.signbit(np.nextafter(x, y)))[found == 0].all()
        np.testing.assert_array_equal(apart, np.spacing(x))
    slopes = rs.grad(rs.sum(rs.nextafter(a, b)), [a, b])
    np.testing.assert_array_equal(rs.function([a, b], slopes)([1, 0, 2], [2, 3, 2]), [[1, 1, 1], [0, 0, 0]])


def test_a_cutoff_per_matrix():
    a, b = rs.dtensor3("a"), rs.dvector("b")
    x = np.stack([np.diag([4.0, 2.0, 1.0]), np.diag([4.0, 2.0, 1.0])]) + 0.01 * np.arange(18.0).reshape(2, 3, 3)
    cut = np.array([0.3, 0.1])
    f = rs.function([a, b], [rs.linalg.pinv(a, rtol=b), rs.linalg.matrix_rank(a, rtol=b)])
    same(f(x, cut)[0], np.linalg.pinv(x, rtol=cut), 1e-10)
    assert f(x, cut)[1].tolist() == np.linalg.matrix_rank(x, rtol=cut).tolist() == [2, 3]
    rs.verify_grad(lambda v: rs.linalg.pinv(v, rtol=rs.as_variable(cut)), [x])


def test_repeats_of_nothing_and_fewer_than_none():
    x, n = rs.dvector("x"), rs.lvector("n")
    f = rs.function([x, n], rs.repeat(x, n))
    assert f([], []).shape == (0,) and f([1.0, 2.0], [0, 2]).tolist() == [2.0, 2.0]
    with pytest.raises(AssertionError, match="a number of repeats is negative"):
        f([1.0, 2.0], [-1, 3])
    one = rs.tensor("int64", (1,))
    assert rs.function([x, one], rs.repeat(x, one))([1.0, 2.0], [2]).tolist() == [1.0, 1.0, 2.0, 2.0]


def test_the_upper_factor_reads_the_upper_half():
    a = np.array([[4.0, 2.0], [9.0, 5.0]])
    same(rs.linalg.cholesky(a, upper=True).eval(), np.linalg.cholesky(a, upper=True))
    rs.verify_grad(lambda v: rs.linalg.cholesky(v, upper=True), [a])
