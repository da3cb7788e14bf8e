"""Every function of the namespace, compared with what Theano 1.0.5 gave for it (floatX=float64).

`measured.json` has, per expression, dtype, broadcast pattern, shape and elements to six digits. To add one, write it there, with what a
program gives that computes it with Theano.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import rscan.theano as theano
import rscan.theano.tensor as T
from rscan.theano.ifelse import ifelse

MEASURED = json.loads((Path(__file__).parent / "measured.json").read_text())
TYPES = {
    "x": "float64 0", "m": "float64 00", "f": "float32 0", "i": "int32 0", "t": "float64 000", "s": "float64 ", "n": "int64 ",
    "b": "int8 0", "u": "float64 0", "sq": "float64 00", "row": "float64 10", "col": "float64 01", "k": "int64 0", "p": "float64 0",
    "e": "float64 0", "g": "float64 0",
}  # fmt: skip


def variable(name):
    dtype, pattern = TYPES[name].split(" ")
    return T.TensorType(dtype, [c == "1" for c in pattern])(name)


VARIABLES = {name: variable(name) for name in TYPES}
NAMES = {"T": T, "theano": theano, "np": np, "ifelse": ifelse, **VARIABLES}


def array(value, dtype):
    """Nested lists of numbers, and of words for those that JSON does not have."""
    items = np.array(value, dtype=object)
    return np.array([float(v) for v in items.ravel()]).reshape(items.shape).astype(dtype)


@pytest.mark.parametrize("text", MEASURED["expressions"])
def test_an_expression_is_what_theano_makes_of_it(text):
    dtype, pattern, shape, elements = MEASURED["expressions"][text]
    made = eval(text, dict(NAMES))
    leaves = [v for v in dict.fromkeys(theano.gof.graph.inputs([made])) if v in VARIABLES.values()]
    found = theano.function(leaves, made)(*[array(MEASURED["inputs"][v.name], v.dtype) for v in leaves])
    assert (made.dtype, found.dtype, "".join("01"[b] for b in made.broadcastable)) == (dtype, dtype, pattern)
    assert list(found.shape) == shape
    np.testing.assert_allclose(found.ravel().astype(float), array(elements, float), rtol=5.1e-6, atol=1e-9)


def test_every_function_of_the_namespace_is_tested():
    listed = " ".join(MEASURED["expressions"])
    names = {name for module in (T.elemwise, T.arrays, T.subtensor) for name in module.NAMES if callable(getattr(T, name))}
    assert {name for name in names if f".{name}(" not in listed} == TESTED_BELOW


TESTED_BELOW = {
    "NotScalarConstantError", "atleast_1d", "divmod", "extract_constant", "flip", "get_scalar_constant_value", "get_vector_length", "imag",
    "left_shift", "logical_not", "logsumexp", "moveaxis", "patternbroadcast", "power", "real", "right_shift",
    "round_half_away_from_zero", "truediv", "unbroadcast",
}  # fmt: skip


def value(variable, **given):
    """The value of a variable of those of `VARIABLES`."""
    given = {name: array(MEASURED["inputs"][name], VARIABLES[name].dtype) for name in VARIABLES} | given
    leaves = [v for v in dict.fromkeys(theano.gof.graph.inputs([variable])) if v in VARIABLES.values()]
    return theano.function(leaves, variable)(*[given[v.name] for v in leaves])


def test_functions_that_theano_has_not_or_has_otherwise():
    x, m, i, t, s = (VARIABLES[name] for name in "xmits")
    a, b, c, d = (array(MEASURED["inputs"][v.name], v.dtype) for v in (x, m, i, t))
    for ours, expected in [
        (T.atleast_1d(s), [1.7]),
        (T.atleast_1d(x), a),
        (T.divmod(i, 3)[0], c // 3),
        (T.divmod(i, 3)[1], c % 3),
        (T.flip(m, 1), b[:, ::-1]),
        (T.imag(x), 0 * a),
        (T.real(x), a),
        (T.left_shift(i, 2), c << 2),
        (T.right_shift(i, 1), c >> 1),
        (T.logical_not(x > 0), a <= 0),
        (T.logsumexp(m, axis=1), np.log(np.exp(b).sum(1))),
        (T.logsumexp(m, axis=1, keepdims=True), np.log(np.exp(b).sum(1, keepdims=True))),
        (T.moveaxis(t, 0, 2), np.moveaxis(d, 0, 2)),
        (T.patternbroadcast(m[:1], (True, False)), b[:1]),
        (T.unbroadcast(m[:1], 0), b[:1]),
        (T.power(x, 2), a**2),
        (T.truediv(i, 2), c / 2),
        (T.std(m, ddof=1), b.std(ddof=1)),
        (m.norm(np.inf, axis=0), abs(b).max(0)),
        (m.norm(-np.inf), abs(b).min()),
        (m.norm(0), np.count_nonzero(b)),
    ]:
        np.testing.assert_allclose(value(ours), expected, rtol=1e-12)


def test_constants_behind_variables():
    x = VARIABLES["x"]
    assert T.get_vector_length(T.as_tensor_variable([1, 2, 3])) == 3 and T.get_vector_length(T.dmatrix().shape) == 2
    assert T.get_scalar_constant_value(T.constant(3)) == 3 == T.extract_constant(T.constant(3))
    assert T.get_scalar_constant_value(2.5) == 2.5
    first = x[0]
    assert T.extract_constant(first) is first
    for use in (lambda: T.get_vector_length(x), lambda: T.get_vector_length(T.dmatrix())):
        with pytest.raises(ValueError, match="length"):
            use()
    for v in (first, T.constant([1, 2])):
        with pytest.raises(T.NotScalarConstantError):
            T.get_scalar_constant_value(v)


def test_rounding_of_exact_halves():
    x = T.dvector("x")
    halves = [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, np.nextafter(0.5, 0), -np.nextafter(0.5, 0), 2.0**52 - 0.5, 2.4, -2.6, np.inf, -0.0]
    away = [1, 2, 3, -1, -2, -3, 0, 0, 2.0**52, 2, -3, np.inf, 0]
    for made in (T.round(x, mode="half_away_from_zero"), x.round(mode="half_away_from_zero"), T.round_half_away_from_zero(x)):
        assert theano.function([x], made)(halves).tolist() == away
    even = np.round(halves)
    for made in (T.round(x), T.round(x, mode="half_to_even"), x.round(), T.round_half_to_even(x)):
        np.testing.assert_array_equal(theano.function([x], made)(halves), even)
    whole = theano.function([x], T.iround(x, mode="half_away_from_zero"))(halves[:8])
    assert whole.dtype == np.int64 and whole.tolist() == away[:8]
    f = T.fvector("f")
    assert theano.function([f], T.round(f, "half_away_from_zero"))(np.float32([0.49999997, -2.5, 8388607.5])).tolist() == [0, -3, 8388608]
    with pytest.raises(ValueError, match="up"):
        T.round(x, mode="up")
    for mode in ("half_to_even", "half_away_from_zero"):
        with pytest.raises(TypeError):
            T.round(T.ivector(), mode=mode)


def test_functions_at_the_edges_of_their_domains():
    special = pytest.importorskip("scipy.special")
    x, f = T.dvector("x"), T.fvector("f")
    points = np.array([-4.5, -2.5, -0.5, 0.5, 4.0, 24.9, 25.1, 30.0, 1e3, 1e8])
    np.testing.assert_allclose(theano.function([x], T.erfcx(x))(points), special.erfcx(points), rtol=1e-12)
    small = np.float32([-2, 0.5, 8.5, 9.5, 100])
    np.testing.assert_allclose(theano.function([f], T.erfcx(f))(small), special.erfcx(small.astype(float)), rtol=2e-5)
    slope = theano.function([x], T.grad(T.erfcx(x).sum(), x))(points)
    np.testing.assert_allclose(slope, 2 * points * special.erfcx(points) - 2 / np.sqrt(np.pi), rtol=1e-5, atol=1e-9)
    points = np.array([-4.5, -3.5, -2.5, -1.5, -0.25, 0.5, 5.0])
    np.testing.assert_allclose(theano.function([x], T.gamma(x))(points), special.gamma(points), rtol=1e-12)
    assert np.isinf(theano.function([x], T.gamma(x))([0.0, -1.0, -2.0])).all()


def test_numbers_of_repeats_are_checked():
    x, k = T.dvector("x"), T.lvector("k")
    f = theano.function([x, k], T.repeat(x, k))
    assert f([1, 2, 3], [0, 2, 1]).tolist() == [2, 2, 3] and f([1, 2, 3], [2, 0, 0]).tolist() == [1, 1]
    assert f([1, 2], [0, 0]).shape == (0,)
    for counts in ([1, 2], [1, 1, 1, 1]):
        with pytest.raises((ValueError, AssertionError)):
            f([1, 2, 3], counts)


def test_stacks_of_matrices_alone():
    x, m = T.dvector(), T.dmatrix()
    for use in (lambda: T.vertical_stack(x, x), lambda: T.horizontal_stack(m), lambda: T.vertical_stack(m, x)):
        with pytest.raises(TypeError):
            use()
