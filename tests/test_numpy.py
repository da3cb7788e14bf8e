"""Every function that NumPy has too gives what NumPy's gives, over dtypes and values at the edges."""

import itertools
import warnings

import numpy as np
import pytest
from helpers import run

import rscan as rs
from rscan import ops_build, ops_contract, ops_join, ops_numeric, ops_polynomial, ops_select, ops_sets

DTYPES = ("bool", "int8", "uint8", "int32", "int64", "uint64", "float32", "float64")


def _each(names, why):
    return dict.fromkeys(names.split(), why)


#: Functions whose results differ, or that take more than arrays, and why. `SPECIAL` and other files test what they do.
APART = {
    "reciprocal": "of integers NumPy gives integers, 0 for all but 1 and -1",
    "argsort": "NumPy's order of equal elements is any, ours is stable",
    "empty": "zeros",
    "empty_like": "zeros",
    "pow": "exponents of integers: test_ops",
    "power": "exponents of integers: test_ops",
    **_each("conj conjugate positive", "of bools NumPy gives int8, or nothing"),
    "around": "as round",
    "arange": "takes extents",
    **_each("eye identity tri full ones zeros broadcast_to reshape tile repeat concatenate stack hstack vstack shape ndim size", "shapes"),
    **_each("take take_along_axis moveaxis expand_dims swapaxes transpose permute_dims split array_split roll rot90 where", "positions"),
    **_each("bincount digitize interp pad searchsorted", "test_search"),
    **_each("average linspace clip diff broadcast_arrays full_like round nan_to_num matrix astype isclose nonzero", "other arguments"),
    **_each("matmul vdot dot inner outer diagonal tensordot kron matrix_transpose", "products: test_ops"),
    **_each("percentile quantile nanpercentile nanquantile histogram histogram_bin_edges trapezoid ediff1d cov", "test_numpy_names"),
    "corrcoef": "test_numpy_names",
    **_each("cumulative_sum cumulative_prod divmod modf unwrap ldexp gcd lcm real_if_close nanargmax nanargmin", "test_numpy_names"),
    **{n: "test_numpy_names" for m in (ops_sets, ops_join, ops_build, ops_contract, ops_numeric, ops_polynomial) for n in m.__all__},
    **dict.fromkeys(ops_select.__all__, "test_numpy_names"),
}  # fmt: skip


def values(dtype):
    d = np.dtype(dtype)
    if dtype == "bool":
        return np.array([False, True])
    if d.kind == "f":
        edges = [-np.inf, -2.5, -1, -0.5, -0.0, 0.0, 0.5, 1, 1.5, 2.5, 1e30, np.inf, np.nan]
        return np.array(edges, dtype)
    low, high = np.iinfo(d).min, np.iinfo(d).max
    return np.unique(np.array([low, *([-1] if low else []), 0, 1, 2, 3, 7, high // 2, high // 2 + 1, high], dtype))


def compare(name, *arrays, **options):
    """What NumPy gives, where it gives anything, is what we give: dtype, shape, and values, or an error of ours."""
    ours, numpys = (lambda *xs: getattr(rs, name)(*xs, **options)), getattr(np, name)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = numpys(*arrays, **options)
            if np.asarray(expected).dtype == "float16":  # which NumPy takes for small integers, and we do not have
                expected = numpys(*(np.asarray(a, "float64") for a in arrays), **options)
        except (TypeError, ValueError):
            with pytest.raises(rs.RscanError):
                run(ours, *arrays)
            return
    try:
        got = run(ours, *arrays)
    except rs.RscanError:
        return  # nothing silent
    assert (got.dtype, got.shape) == (expected.dtype, np.shape(expected))
    coarse = any(np.asarray(a).dtype == "float32" for a in arrays) or np.asarray(expected).dtype == "float32"
    np.testing.assert_allclose(got, expected, rtol=2e-5 if coarse else 1e-9, err_msg=f"{name} of {arrays}")


def shared_names():
    functions = [n for n in rs.__all__ if callable(getattr(rs, n)) and callable(getattr(np, n, None)) and n not in APART]
    return [n for n in functions if not isinstance(getattr(rs, n), type) and n not in ("eval", "print_")]


def arguments(name):
    return getattr(getattr(np, name), "nin", 1)


@pytest.mark.parametrize("name", [n for n in shared_names() if arguments(n) == 1])
def test_functions_of_one_array(name):
    for dtype in DTYPES:
        edges = values(dtype)
        for x in (edges, edges[:0], edges[:1], np.resize(edges, (2, 3)), edges[-1], np.array([1, 0, 1, 1]).astype(dtype)):
            if name in ("mean", "sum", "var", "std", "ptp", "prod", "cumprod") and np.dtype(dtype).itemsize > 4:
                x = x[np.abs(x.astype("float64")) < 1e9] if np.ndim(x) else np.array(1, dtype)  # how sums are rounded
            compare(name, x)


PAIRS = list(itertools.product(DTYPES, DTYPES))


@pytest.mark.parametrize("name", [n for n in shared_names() if arguments(n) == 2])
def test_functions_of_two_arrays(name):
    for first, second in PAIRS:
        a, b = values(first), values(second)
        compare(name, np.repeat(a, len(b)), np.tile(b, len(a)))
        compare(name, a[:0], b[0])
    for dtype in DTYPES:
        a = values(dtype)
        compare(name, np.resize(a, (2, 3)), np.resize(a[::-1], 3))


def test_most_functions_are_compared():
    assert len(shared_names()) > 90 and not set(APART) - set(rs.__all__)


@pytest.mark.parametrize("name", ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"])
def test_comparisons_are_exact(name):
    """Also of int64 with uint64, which promote to float64, and with integers that the dtype does not hold."""
    wide = [2**63 - 1, 2**63 - 2, 2**62, 0]
    for a, b in itertools.product((np.array([*wide, -1, -(2**63)]),), (np.array([2**63, 2**64 - 1, *wide], "uint64"),)):
        compare(name, np.repeat(a, len(b)), np.tile(b, len(a)))
        compare(name, np.tile(b, len(a)), np.repeat(a, len(b)))
        compare(name, a.reshape(2, 3), b[:3])
    for dtype in DTYPES[:-2]:
        x = values(dtype)
        for number in (-1, 300, -(2**31) - 1, 2**63, 2**64 - 1, 2**64, 2**70, -(2**70)):
            expected = getattr(np, name)(x.astype(object), number).astype(bool)
            np.testing.assert_array_equal(run(lambda v, n=number: getattr(rs, name)(v, n), x), expected)
            expected = getattr(np, name)(number, x.astype(object)).astype(bool)
            np.testing.assert_array_equal(run(lambda v, n=number: getattr(rs, name)(n, v), x), expected)
    assert run(lambda v: v == 300, np.array([44, 255], "uint8")).tolist() == [False, False]


#: Functions with more arguments: what they are given beside the array.
SPECIAL = {
    "isclose": [(1.0,), (0,), (np.inf,), (np.nan,), (np.array([[1.0], [np.inf]]),)],
    "round": [(0,), (1,), (2,), (-1,), (3,)],
    "nan_to_num": [(), (True, 1.0), (True, 1.0, 2.0, 3.0)],
    "linspace": [(3,), (3, 1), (3, 5), (-7.0, 4), (3, 5, False), (np.array([1.0, 2.0]).reshape(2, 1), 3)],
    "take": [([0, -1],), ([0], 0), ([True, False, True],), (True,), (np.array([[True], [False]]),)],
    "diag": [(1,), (-1,), (1.5,)],
    "clip": [(0, 1), (1, 0), (None, 1), (0, None), (0.5, 1.5)],
    "dot": [(-1,), (2,), (2.5,), (True,), (np.int8(2),)],
    "inner": [(-1,), (2,), (2.5,)],
    "full_like": [(3,), (1,), (True,)],
    "array_split": [(2,), (3,)],
    "repeat": [(2,), (0,), (2, 0)],
    "roll": [(1,), (-5,), (2, 0), (100,)],
}


@pytest.mark.parametrize("name", SPECIAL)
def test_functions_with_more_arguments(name):
    for dtype in DTYPES:
        edges = values(dtype)
        small = edges[np.abs(edges.astype("float64")) < 100] if name in ("linspace", "round", "dot", "inner", "full_like") else edges
        for x in (small, small[:1], np.resize(small[:2], (2, 2)), small[-1]):
            for more in SPECIAL[name]:
                if name == "round" and dtype == "bool":
                    continue  # NumPy gives float16, or fails
                _compare_with(name, x, more)


def _compare_with(name, x, more):
    with np.errstate(all="ignore"):
        try:
            expected = getattr(np, name)(x, *more)
        except (TypeError, ValueError, IndexError):
            with pytest.raises((rs.RscanError, TypeError)):
                run(lambda v: getattr(rs, name)(v, *more), x)
            return
    try:
        got = run(lambda v: getattr(rs, name)(v, *more), x)
    except rs.RscanError:
        return
    for g, e in zip(got, expected, strict=True) if isinstance(expected, list) else [(got, np.asarray(expected))]:
        assert (g.dtype, g.shape) == (e.dtype, e.shape), (name, x, more)
        np.testing.assert_allclose(g, e, rtol=2e-6, atol=1e-7 if e.dtype == "float32" else 1e-12, err_msg=f"{name}{more} of {x!r}")


def test_integers_of_linspace_are_the_ones_below():
    assert run(lambda a, b: rs.linspace(a, b, 4, dtype=int), np.array(-2.0), np.array(0.0)).tolist() == [-2, -2, -1, 0]


def test_close_to_infinity_and_nan():
    edges = np.array([np.inf, -np.inf, np.nan, 0.0, 1e308, 1.0, 1.0 + 1e-9])
    a, b = np.repeat(edges, 7), np.tile(edges, 7)
    for equal_nan in (False, True):
        compare("isclose", a, b, equal_nan=equal_nan)
    with pytest.raises(rs.RscanTypeError, match=r"nan_to_num\(x, nan="):
        rs.nan_to_num(rs.vector(), 5.0)


def test_parts_that_are_not_equal_are_refused_when_it_runs():
    halves = rs.function([x := rs.vector("x")], rs.split(x, 2))
    assert [h.tolist() for h in halves([1, 2, 3, 4])] == [[1, 2], [3, 4]]
    with pytest.raises(rs.RscanValueError, match="does not split into 2 equal parts") as caught:
        halves([1, 2, 3])
    assert caught.value.labels[0][0] == __file__


@pytest.mark.parametrize("name", ["mean", "var", "std"])
def test_dtypes_of_means(name):
    x = np.array([[1.5, 2.5, -4.0], [0.5, 7.0, 8.0]])
    for dtype in ("float32", "float64"):
        compare(name, x, dtype=dtype)
        compare(name, x.astype("int32"), dtype=dtype)
    if name == "mean":
        compare(name, x.astype("int32"), axis=0, dtype="int8")
        compare(name, np.array([1, 2]), dtype="int8")
    else:
        with pytest.raises(rs.RscanTypeError, match="computed in float32 or float64"):
            getattr(rs, name)(x, dtype="int8")


@pytest.mark.parametrize("number", [1.5, "1", None, np.array([1, 2])])
def test_what_counts_is_an_integer(number):
    m = rs.matrix("m")
    for build in (rs.diag, rs.tril, rs.triu, rs.round, rs.diagonal):
        with pytest.raises(rs.RscanTypeError) as caught:
            build(m, number)
        assert caught.value.code == "E0809" and caught.value.labels[0][0] == __file__
