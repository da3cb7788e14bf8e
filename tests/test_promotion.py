"""dtypes of results are NumPy's, with Python numbers weak."""

import operator

import numpy as np
import pytest
from helpers import DTYPES, like_numpy, run

import rscan as rs

ARITHMETIC = [operator.add, operator.mul, operator.truediv, operator.lt, operator.ge]


@pytest.mark.parametrize("op", ARITHMETIC, ids=lambda op: op.__name__)
@pytest.mark.parametrize("a", DTYPES)
@pytest.mark.parametrize("b", DTYPES)
def test_pairs(op, a, b):
    x, y = np.array([1, 0, 1], a), np.array([1, 1, 0], b)
    with np.errstate(all="ignore"):
        expected = op(x, y)
    got = run(op, x, y)
    wide = expected.astype("float64") if expected.dtype == "float16" else expected
    if op is operator.truediv and {a, b} <= {"bool", "int8", "uint8", "int16", "uint16"}:
        wide = wide.astype("float64")
    assert got.dtype == wide.dtype
    np.testing.assert_allclose(got, wide, rtol=1e-3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("number", [2, 1.5, True])
@pytest.mark.parametrize("op", [operator.add, operator.mul], ids=lambda op: op.__name__)
def test_python_numbers_are_weak(dtype, number, op):
    x = np.array([1, 0, 1], dtype)
    like_numpy(lambda m, v: op(v, number), x)
    like_numpy(lambda m, v: op(number, v), x)


@pytest.mark.parametrize("dtype", DTYPES[1:])
def test_division_of_integers(dtype):
    x, y = np.array([7, 8, 0, 5], dtype), np.array([2, 3, 5, 1], dtype)
    like_numpy(lambda m, a, b: a // b, x, y)
    like_numpy(lambda m, a, b: a % b, x, y)
    if dtype[0] != "u":
        like_numpy(lambda m, a, b: (-a) // b, x, y)
        like_numpy(lambda m, a, b: (-a) % b, x, y)
        like_numpy(lambda m, a, b: list(divmod(a, -b)), x, y)


def test_powers():
    like_numpy(lambda m, a: a**2, np.array([1, -3, 2], "int32"))
    like_numpy(lambda m, a: 2**a, np.array([1, 3, 2], "int32"))
    like_numpy(lambda m, a: a**0.5, np.array([1, 3, 2], "float32"))
    like_numpy(lambda m, a: a**-1, np.array([1.0, 3, 2]))


@pytest.mark.parametrize("op", [operator.and_, operator.or_, operator.xor], ids=lambda op: op.__name__)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "int64"])
def test_bits(op, dtype):
    x, y = np.array([0, 1, 1, 0], dtype), np.array([0, 0, 1, 1], dtype)
    like_numpy(lambda m, a, b: op(a, b), x, y)
    like_numpy(lambda m, a: ~a, x)
    like_numpy(lambda m, a: op(a, True if dtype == "bool" else 1), x)


def test_shifts():
    like_numpy(lambda m, a: a << 3, np.array([1, -2, 5]))
    like_numpy(lambda m, a: a >> 1, np.array([1, -2, 5]))


def test_bool_arithmetic_that_numpy_refuses():
    b = rs.tensor("bool", (None,))
    with pytest.raises(TypeError):
        b - b
    with pytest.raises(TypeError):
        -b


@pytest.mark.parametrize(("dtype", "number"), [("int8", 128), ("uint8", -1), ("int32", 2**31), ("int64", 2**63)])
def test_integers_that_do_not_fit(dtype, number):
    with pytest.raises(OverflowError, match=dtype):
        rs.vector(dtype=dtype) + number


def test_numpy_scalars_keep_their_dtype():
    assert (rs.fvector() * np.float64(2)).dtype == "float64"
    assert (np.float64(2) * rs.fvector()).dtype == "float64"
    assert (rs.bvector() + np.int16(1)).dtype == "int16"
    assert (rs.fvector() * 2.0).dtype == "float32"


def test_nothing_is_of_floatX_unless_a_dtype_is_given():
    assert rs.constant([]).dtype == "float64" and rs.constant([], "int8").dtype == "int8"
    assert rs.constant(np.zeros(0, "int16")).dtype == "int16"
    with rs.config.override(floatX="float32"):
        assert rs.constant([]).dtype == "float32" and rs.constant([], "int8").dtype == "int8"


def test_floatX():
    with rs.config.override(floatX="float32"):
        assert rs.vector().dtype == "float32"
        assert rs.as_variable(1.5).dtype == "float32"
        assert rs.zeros(3).dtype == "float32"
        assert rs.as_variable([1.5, 2]).dtype == "float32"
    assert rs.vector().dtype == "float64"
    with pytest.raises(ValueError, match="floatX"):
        rs.config.floatX = "float16"
    with pytest.raises(ValueError, match="no setting"):
        rs.config.colour = 3


def test_weak_numbers_together():
    assert rs.maximum(1, 2).dtype == "int64"
    assert rs.maximum(1, 2.5).dtype == "float64"
    assert rs.where(rs.tensor("bool"), 1.0, 0.0).dtype == "float64"
    assert rs.where(rs.tensor("bool"), rs.fscalar(), 0.0).dtype == "float32"


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_casts(source, target):
    like_numpy(lambda m, x: x.astype(target), np.array([0, 1, 100], source))
