"""Functions of rscan as arguments of functions that numba compiles."""

import numpy as np
import pytest

import rscan as rs

numba = pytest.importorskip("numba", reason="numba is not installed")
from rscan.interop import numba as bridge  # noqa: E402

bridge.register()


@numba.njit
def summed(f, xs):
    total = 0.0
    for x in xs:
        total += f(x)
    return total


def logistic():
    x, n = rs.dscalar("x"), 50
    rows, _ = rs.scan(lambda y: 3.7 * y * (1 - y), outputs_info=x, n_steps=n)
    return rs.function([x], rows[-1])


def test_a_compiled_function_calls_a_loop():
    f, xs = logistic(), np.linspace(0.1, 0.9, 40)
    expected = 0.0
    for x in xs:
        expected += f(x).item()
    assert summed(f, xs) == expected
    # One compilation serves all functions of a signature.
    g = rs.function([rs.dscalar("x")], rs.constant(2.0), on_unused_input="ignore")
    before = len(summed.signatures)
    assert summed(g, xs) == 80.0 and len(summed.signatures) == before


def test_other_dtypes_and_fixed_arguments():
    i, y, r = rs.lscalar("i"), rs.fscalar("y"), rs.dvector("r")
    f = rs.function([i, y, r], rs.sum(r) * rs.cast(i, "float64") + y)
    bound = f.bind(r=np.arange(4.0))

    @numba.njit
    def call(f, i, y):
        return f(i, y)

    assert call(bound, np.int64(3), np.float32(0.5)) == 18.5
    assert bound.signature() == numba.float64(numba.int64, numba.float32)


def test_parallel_loops():
    f, xs = logistic(), np.linspace(0.1, 0.9, 200)

    @numba.njit(parallel=True)
    def each(f, xs):
        out = np.empty(len(xs))
        for k in numba.prange(len(xs)):
            out[k] = f(xs[k])
        return out

    assert each(f, xs).tolist() == [f(x).item() for x in xs]


def test_others_are_refused():
    v = rs.dvector("v")
    with pytest.raises(rs.errors.UnsupportedError) as caught:
        summed(rs.function([v], rs.sum(v)), np.ones(3))
    assert caught.value.code == "E0541"
