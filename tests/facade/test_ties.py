"""Where elements of one array tie, Theano gives each the whole gradient, of two arguments the first; rscan's own functions share it."""

import numpy as np
import pytest

import rscan.theano as theano
import rscan.theano.tensor as T

X, Y = np.array([2.0, 5.0, 5.0, 1.0]), np.array([2.0, 4.0, 6.0, 1.0])


def slopes(cost, wrt, values, **options):
    return theano.function(wrt, T.grad(cost, wrt), **options)(*values)


RULES = {
    "max": (lambda x: T.max(x), [0, 1, 1, 0]),
    "method": (lambda x: x.max(), [0, 1, 1, 0]),
    "min of equal ones": (lambda x: T.min(T.maximum(x, 2.0)), [1, 0, 0, 0]),
    "min": (lambda x: (-x).min(), [0, -1, -1, 0]),
    "kept": (lambda x: T.max(x, axis=0, keepdims=True).sum(), [0, 1, 1, 0]),
    "and where": (lambda x: T.max_and_argmax(x, axis=0)[0], [0, 1, 1, 0]),
    "largest": (lambda x: T.largest(x), [0, 1, 1, 0]),
    "range": (lambda x: T.ptp(x), [0, 1, 1, -1]),
    "norm": (lambda x: x.norm(np.inf), [0, 1, 1, 0]),
    "clip": (lambda x: T.clip(x, 2, 5).sum(), [1, 1, 1, 0]),
    "clip method": (lambda x: x.clip(2, 4).sum(), [1, 0, 0, 0]),
    "maximum of one": (lambda x: T.maximum(x, x).sum(), [1, 1, 1, 1]),
    "relu": (lambda x: T.nnet.relu(x - 2).sum(), [0.5, 1, 1, 0]),
    "size": (lambda x: abs(x - 2).sum(), [0, 1, 1, -1]),
    "squared": (lambda x: T.max(x) ** 2 / 10, [0, 1, 1, 0]),
}


@pytest.mark.parametrize(("f", "expected"), RULES.values(), ids=RULES)
def test_ties_have_theanos_gradient(f, expected):
    x = T.dvector("x")
    for mode in (None, "FAST_COMPILE", theano.Mode(optimizer=None)):
        np.testing.assert_array_equal(slopes(f(x), [x], [X], mode=mode)[0], expected)


def test_two_inputs():
    x, y = T.dvector("x"), T.fvector("y")
    for f, gx, gy in [(T.maximum, [1, 1, 0, 1], [0, 0, 1, 0]), (T.minimum, [1, 0, 1, 1], [0, 1, 0, 0])]:
        found = slopes(f(x, y).sum(), [x, y], [X, Y.astype("float32")])
        np.testing.assert_array_equal(found[0], gx)
        np.testing.assert_array_equal(found[1], gy)
    low, high = T.dscalars("low", "high")
    found = slopes(T.clip(x, low, high).sum(), [x, low, high], [X, 2.0, 5.0])
    np.testing.assert_array_equal(found[0], [1, 1, 1, 0])
    assert [float(v) for v in found[1:]] == [1, 0]


def test_axes_and_integers():
    m, i = T.dmatrix("m"), T.ivector("i")
    a = np.array([[1.0, 3.0, 3.0], [1.0, 1.0, 0.0]])
    for axis in (0, 1, -1, (0, 1), None, [1]):
        found = slopes(T.max(m, axis=axis).sum(), [m], [a])[0]
        over = tuple(axis) if isinstance(axis, (tuple, list)) else axis
        np.testing.assert_array_equal(found, a == a.max(axis=over, keepdims=True))
        np.testing.assert_array_equal(T.max(m, axis=axis).eval({m: a}), a.max(axis=over))
    assert T.max(i).eval({i: [1, 7, 7]}) == 7 and T.max(i).dtype == "int32"
    np.testing.assert_array_equal(T.maximum(i, 3).eval({i: [1, 7, 3]}), [3, 7, 3])
    np.testing.assert_array_equal(T.clip(i, 2, 3).eval({i: [1, 7, 3]}), [2, 3, 3])


def test_in_a_loop_and_of_higher_order():
    x, h0 = T.dvector("x"), T.dvector("h0")
    h, _ = theano.scan(lambda x, h: T.maximum(h, h.max()) * x + T.clip(h, 0, 3), sequences=x, outputs_info=h0)
    cost = (h[-1] ** 2).sum() / 2
    g = T.grad(cost, h0)
    # Each of three equal elements is x + 1 times as large after a step, and its slope too: of h and its maximum the first has the gradient.
    outputs = [g, T.grad(g.sum(), h0)]
    for mode in (None, theano.Mode(optimizer=None)):
        first, second = theano.function([x, h0], outputs, mode=mode)([2.0], [1.0, 1.0, 1.0])
        np.testing.assert_allclose(first, np.full(3, 3.0 * (2 + 1)))
        np.testing.assert_allclose(second, np.full(3, (2 + 1) ** 2))
