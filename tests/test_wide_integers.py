"""Integers of Python's that 64 bits do not hold, or that the integers which they meet do not."""

import numpy as np
import pytest

import rscan as rs

WIDE = [2**63, 2**64 - 1]


@pytest.mark.parametrize("n", WIDE)
def test_arguments_of_compiled_functions_are_what_numpy_makes_of_them(n):
    assert rs.compile(lambda z: z * 1)(n) == n
    assert rs.compile(lambda z: z["a"] * 1)({"a": n}).dtype == np.uint64


@pytest.mark.parametrize("call", [rs.compile(lambda z: z * 1), rs.value_and_grad(lambda z: z * 1.0)])
def test_larger_ones_are_an_error_that_says_so(call):
    with pytest.raises(rs.RscanTypeError, match="integers have 64 bits") as caught:
        call(2**64)
    assert "`z`" in caught.value.title and caught.value.code == "E0508"


def test_inputs_of_floats_take_what_a_float_is_exactly():
    d = rs.dscalar("d")
    f = rs.function([d], d * 1)
    assert f(2**64) == 2.0**64 and f(-(2**70)) == -(2.0**70)
    for n in (2**64 + 1, 10**400):
        with pytest.raises(rs.RscanTypeError, match="integers have 64 bits"):
            f(n)


def test_numbers_that_no_float_holds():
    for run in (
        lambda d: d + 10**400,
        lambda d: d / 10**400,
        lambda d: rs.lscalar("n") / 10**400,
        lambda d: rs.loop(lambda h: (h + d, rs.until(h > 10**400)), init=0.0, n_steps=3),
    ):
        with pytest.raises(rs.RscanOverflowError, match="does not fit into float64"):
            run(rs.dscalar("d"))


@pytest.mark.parametrize("dtype", ["uint8", "uint32", "int16", "int64"])
def test_what_makes_floats_takes_integers_that_do_not_fit(dtype):
    u, n = rs.vector("u", dtype=dtype), 2**70
    values = np.arange(3).astype(dtype)
    for ours, numpys in ((u / n, values / n), (n / (u + 1), n / (values + 1.0)), (rs.hypot(u, n), np.hypot(values, float(n)))):
        found = rs.function([u], ours)(values)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, numpys.astype("float64"), rtol=1e-12)
    with pytest.raises(rs.RscanOverflowError, match=f"does not fit into {dtype}"):
        u + n


def test_a_method_of_a_ufunc_is_named():
    x = rs.dvector("x")
    with pytest.raises(rs.UnsupportedError, match=r"np.multiply.accumulate of variables(.|\n)*rs.cumprod"):
        np.multiply.accumulate(x)
