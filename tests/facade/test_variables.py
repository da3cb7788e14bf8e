"""Theano's rules for variables: identity, constants, promotion, broadcast patterns, attributes."""

import numpy as np
import pytest

import rscan.theano as theano
import rscan.theano.tensor as T


def value(x, given=None):
    return x.eval(given or {})


def test_equality_is_identity():
    x, y = T.dvectors("x", "y")
    assert (x == x) is True and (x == y) is False and (x != y) is True
    assert {x: 1}[x] == 1 and y in [x, y] and [x, y] == [x, y]


def test_python_protocols():
    x, m = T.dvector("x"), T.dmatrix("m")
    assert bool(x) is True
    for comparison in (x > 0, x <= 1, T.eq(x, 1)):
        with pytest.raises(TypeError):
            bool(comparison)
    with pytest.raises(TypeError):
        len(x)
    with pytest.raises(ValueError):
        iter(x).__next__()
    with pytest.raises(ValueError):
        1 in x  # noqa: B015
    n, d = m.shape
    a, b = T.shape(m)
    assert [int(v) for v in theano.function([m], [n, d, a * b])(np.ones((2, 3)))] == [2, 3, 6]


@pytest.mark.parametrize(
    ("number", "dtype"),
    [(0, "int8"), (-129, "int16"), (300, "int16"), (70000, "int32"), (2**40, "int64"), (1.0, "float32"), (1.1, "float64"), (True, "int8")],
)
def test_constants_take_the_smallest_dtype(number, dtype):
    assert T.constant(number).dtype == T.as_tensor_variable(number).dtype == dtype


def test_promotion():
    f, i, b, x = T.fvector(), T.ivector(), T.bvector(), T.dvector()
    assert (f * 1.5).dtype == "float32" and (f * 1.1).dtype == "float64"
    assert (i * 1.5).dtype == (i + f).dtype == (i / 2).dtype == "float64"
    assert (b * b).dtype == (b + 1).dtype == "int8" and (T.iscalar() // 2).dtype == "int32"
    assert (f * np.float64(1)).dtype == (np.ones(3) * f).dtype == "float64"
    assert b.sum().dtype == T.arange(3).dtype == "int64" and i.mean().dtype == T.sqrt(i).dtype == "float64"
    assert T.sqrt(b).dtype == "float32" and (x > 0).dtype == "bool"
    assert [theano.shared(v).dtype for v in (3, 3.0, True, np.float32(1))] == ["int64", "float64", "bool", "float32"]
    with theano.change_flags(floatX="float32"):
        assert (i / 2).dtype == T.constant(1.1).dtype == T.vector().dtype == "float32"


def test_integers_with_and_without_a_sign_are_compared_as_floats():
    a, b = T.constant(np.array([2**53 + 1, -1])), T.constant(np.array([2**53, 1], "uint64"))
    for compare, expected in [
        (T.lt, [False, True]), (T.le, [True, True]), (T.gt, [False, False]), (T.ge, [True, False]), (T.eq, [True, False]),
        (T.neq, [False, True]),
    ]:  # fmt: skip
        assert value(compare(a, b)).tolist() == expected


def test_int8_wraps():
    b = T.bscalar()
    assert int(value(b + 100, {b: 100})) == -56


def test_broadcast_patterns_belong_to_the_type():
    row, col, m = T.drow(), T.dcol(), T.dmatrix()
    assert row.broadcastable == (True, False) and col.broadcastable == (False, True)
    assert T.alloc(0, 1, T.iscalar()).broadcastable == T.constant(np.ones((1, 10))).broadcastable == (True, False)
    assert (row + m).broadcastable == (False, False) and row.T.broadcastable == (False, True)
    assert T.unbroadcast(row, 0).broadcastable == (False, False)
    assert T.patternbroadcast(m, (True, False)).broadcastable == T.addbroadcast(m, 0).broadcastable == (True, False)
    opened = T.unbroadcast(row, 0)
    np.testing.assert_array_equal(value(opened * 2, {row: np.ones((1, 3))}), np.full((1, 3), 2.0))
    with pytest.raises(ValueError):
        value(T.addbroadcast(m, 0), {m: np.ones((2, 2))})
    assert theano.shared(np.ones((1, 2))).broadcastable == (False, False)
    assert theano.shared(np.ones((1, 2)), broadcastable=(True, False)).broadcastable == (True, False)


def test_dimshuffle():
    m, row = T.dmatrix(), T.drow()
    assert m.dimshuffle(1, "x", 0).broadcastable == (False, True, False)
    a = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(value(m.dimshuffle(1, "x", 0), {m: a}), a.T[:, None, :])
    np.testing.assert_array_equal(value(row.dimshuffle(1), {row: a[:1]}), a[0])
    with pytest.raises(ValueError):
        m.dimshuffle(0)


def test_types_owners_and_tags():
    x = T.dvector("x")
    y = x + 1
    assert x.type == T.TensorType("float64", (False,)) == y.type and x.owner is None
    assert y.owner.inputs[0] == x and y.owner.outputs == [y] and str(y.owner.op) == "add"
    assert x.type("z").name == "z" and x.type().name is None
    x.tag.test_value = np.ones(2)
    assert x.tag.test_value.shape == (2,)
    assert isinstance(T.constant(1), T.TensorConstant) and T.constant(3).data == 3
    assert set(theano.gof.graph.inputs([y * theano.shared(1.0, "w")])) >= {x}


def test_shapes_are_vectors():
    m = T.dmatrix()
    a = np.ones((2, 3))
    assert value(m.shape, {m: a}).tolist() == [2, 3] and value(m.shape[-1], {m: a}) == 3
    assert value(T.prod(m.shape), {m: a}) == 6 and value(m.shape * 2, {m: a}).tolist() == [4, 6]
    assert value(m.shape[:1], {m: a}).tolist() == [2] and m.size.eval({m: a}) == 6
    assert value(T.zeros(m.shape), {m: a}).shape == (2, 3) and value(m.reshape((3, 2)), {m: a}).shape == (3, 2)
    v = T.lvector()
    assert theano.function([m, v], m.reshape(v, ndim=2))(a, [3, 2]).shape == (3, 2)
    assert value(m.flatten(), {m: a}).shape == (6,) and value(T.flatten(T.ones((2, 3, 4)), 2)).shape == (2, 12)


def test_indexing_reads_and_writes():
    x, i = T.dvector(), T.iscalar()
    a = np.arange(5.0)
    assert value(x[::-1][i], {x: a, i: 1}) == 3 and value(x[-i:], {x: a, i: 2}).tolist() == [3, 4]
    assert value(x[[0, 2]], {x: a}).tolist() == [0, 2] and value(x[x > 2], {x: a}).tolist() == [3, 4]
    assert value(T.set_subtensor(x[1:3], 9), {x: a}).tolist() == [0, 9, 9, 3, 4]
    assert value(T.inc_subtensor(x[[1, 1]], 1), {x: a}).tolist() == [0, 3, 2, 3, 4]
    with pytest.raises(TypeError):
        T.set_subtensor(x, 1)
    with pytest.raises(TypeError):
        T.set_subtensor(T.fvector()[0], T.dscalar())
    assert value(T.take(x, [7, -1], mode="clip"), {x: a}).tolist() == [4, 0]


def test_stable_logarithms():
    s = T.dscalar()
    assert value(T.log(T.nnet.sigmoid(s)), {s: -800}) == -800 == value(T.log(1 - T.nnet.sigmoid(s)), {s: 800})
    v = T.dvector()
    out = value(T.nnet.softmax(v), {v: [0.0, 1.0]})
    assert out.shape == (1, 2) and out.sum() == pytest.approx(1)
    assert value(T.log(T.nnet.softmax(v)), {v: [0.0, 2000.0]})[0, 0] == -2000


def test_functions_of_the_namespace(rng):
    a, b = rng.normal(size=(3, 4)), rng.normal(size=(4, 2))
    m, n = T.dmatrix(), T.dmatrix()
    given = {m: a, n: b}
    for ours, expected in [
        (T.dot(m, n), a @ b),
        (T.tensordot(m, n, axes=[[1], [0]]), a @ b),
        (T.batched_dot(m, m), (a * a).sum(1)),
        (T.stack([m, m * 2], axis=1), np.stack([a, a * 2], 1)),
        (T.concatenate([m, m], axis=-1), np.hstack([a, a])),
        (T.join(0, m, m), np.vstack([a, a])),
        (T.tile(n, (2, 3)), np.tile(b, (2, 3))),
        (T.repeat(n, 2, axis=0), np.repeat(b, 2, 0)),
        (m.norm(1), np.abs(a).sum()),
        (m.std(axis=0), a.std(0)),
        (T.clip(m, -0.5, 0.5), a.clip(-0.5, 0.5)),
        (T.switch(m > 0, m, -m), abs(a)),
        (T.max_and_argmax(m, axis=1)[1], a.argmax(1)),
        (T.round(T.constant([0.5, 1.5, -0.5])), [0, 2, -0.0]),
        (T.eye(2, 3), np.eye(2, 3)),
        (T.nlinalg.matrix_inverse(T.dot(n.T, n)), np.linalg.inv(b.T @ b)),
        (T.split(m, [1, 2], 2, axis=1)[1], a[:, 1:3]),
        (T.nnet.binary_crossentropy(T.constant([0.3]), T.constant([1.0])), -np.log([np.float64(0.3)])),
        (T.xlogx.xlogy0(T.constant([0.0, 2.0]), T.constant([0.0, 3.0])), [0, 2 * np.log(3)]),
    ]:
        leaves = theano.gof.graph.inputs([ours])
        np.testing.assert_allclose(value(ours, {k: v for k, v in given.items() if k in leaves}), expected, rtol=1e-6)
    nowhere = T.nonzero(T.constant([0, 3, 4]), return_matrix=True)
    assert value(nowhere).tolist() == [[1, 2]]


def test_halves_are_rounded_to_even_or_away_from_zero():
    x = T.constant(np.array([-2.5, -1.5, -0.6, -0.5, 0.4, 0.5, 1.5, 2.5]))
    assert value(T.round(x)).tolist() == [-2, -2, -1, -0.0, 0, 0, 2, 2]
    assert value(T.round(x, mode="half_away_from_zero")).tolist() == [-3, -2, -1, -1, 0, 1, 2, 3]
    rounded = T.iround(x, mode="half_away_from_zero")
    assert rounded.dtype == "int64" and value(rounded).tolist() == [-3, -2, -1, -1, 0, 1, 2, 3]
    with pytest.raises(ValueError, match="half_up"):
        T.round(x, mode="half_up")


def test_what_is_close_is_numpys():
    nan, inf = np.nan, np.inf
    a = np.array([1.0, nan, nan, 1.0, inf, inf, -inf, 1e-9, 1.0, 1.0 + 2e-5])
    b = np.array([1.0, nan, 1.0, nan, inf, -inf, -inf, 0.0, 1.0 + 1e-6, 1.0])
    for equal_nan in (False, True):
        expected = np.isclose(a, b, equal_nan=equal_nan)
        assert value(T.isclose(T.constant(a), T.constant(b), equal_nan=equal_nan)).tolist() == expected.tolist()
    for equal_nan, expected in ((False, False), (True, True)):
        assert bool(value(T.allclose(T.constant(a[:2]), T.constant(b[:2]), equal_nan=equal_nan))) is expected
    assert value(T.isclose(T.constant([1.0, 1.0]), T.constant([1.05, 1.2]), rtol=0.0, atol=0.1)).tolist() == [True, False]
    assert value(T.isclose(T.constant([9.5, 10.0]), T.constant([10.0, 9.0]), rtol=0.1, atol=0.0)).tolist() == [True, False]


def test_absent_names_say_so():
    with pytest.raises(AttributeError, match=r"docs/facade\.md"):
        T.no_such_function
    with pytest.raises(NotImplementedError):
        T.nnet.conv2d(1, 2)
