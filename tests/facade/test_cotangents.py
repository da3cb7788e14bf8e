"""Gradients of users' ops that do not fit the inputs are errors with the op's name and both shapes, and what fits is used."""

import numpy as np
import pytest

import rscan as rs
import rscan.theano as theano
import rscan.theano.tensor as T


def squared(gradient):
    class Squared(theano.Op):
        def make_node(self, x):
            x = T.as_tensor_variable(x)
            return theano.Apply(self, [x], [x.type()])

        def perform(self, node, inputs, outputs):
            outputs[0][0] = inputs[0] ** 2

        def grad(self, inputs, gradients):
            return gradient(inputs[0], gradients[0])

    return Squared()


def from_graph(gradient):
    x = T.dmatrix("x")
    return theano.OpFromGraph([x], [x**2], grad_overrides=lambda inputs, gradients: gradient(inputs[0], gradients[0]), name="Squared")


MISFITS = {
    "a number": (lambda x, g: [g.sum()], r"has the shape \(\) for input 0, whose shape is \(\?, \?\)"),
    "one axis more": (lambda x, g: [g.dimshuffle("x", 0, 1)], r"has the shape \(1, \?, \?\) for input 0, whose shape is \(\?, \?\)"),
    "one axis less": (lambda x, g: [g[0]], r"has the shape \(\?,\) for input 0, whose shape is \(\?, \?\)"),
    "a number of Python's": (lambda x, g: [1.0], r"has the shape \(\) for input 0"),
    "no list": (lambda x, g: g, "is a list with one item for each of 1 inputs, not "),
    "two": (lambda x, g: [g, g], "gave 2 cotangents for 1 inputs"),
}


@pytest.mark.parametrize("make", [squared, from_graph])
@pytest.mark.parametrize("name", MISFITS)
def test_misfits(name, make):
    gradient, text = MISFITS[name]
    x = T.dmatrix("x")
    with pytest.raises(rs.GradientError, match=text) as caught:
        theano.grad(make(gradient)(x).sum(), x)
    assert caught.value.code == "E0414" and "`Squared`" in str(caught.value)


@pytest.mark.parametrize("make", [squared, from_graph])
def test_other_extents_are_an_error_when_the_function_runs(make):
    x = T.dmatrix("x")
    f = theano.function([x], theano.grad(make(lambda x, g: [(2 * x * g)[:1]])(x).sum(), x))
    assert f(np.full((1, 3), 2.0)).tolist() == [[4.0, 4.0, 4.0]]
    with pytest.raises(AssertionError, match="`Squared` has another extent of axis 0 than input 0"):
        f(np.ones((2, 3)))


@pytest.mark.parametrize("make", [squared, from_graph])
def test_arrays_and_variables_of_rscan_are_gradients(make):
    """They counted as none: the gradient was 0."""
    x = T.dmatrix("x")
    for gradient in (lambda x, g: [np.full((2, 3), 5.0)], lambda x, g: [rs.constant(np.full((2, 3), 5.0))], lambda x, g: (5.0 + 0 * g,)):
        f = theano.function([x], theano.grad(make(gradient)(x).sum(), x))
        assert f(np.ones((2, 3))).tolist() == [[5.0] * 3] * 2
    f = theano.function([x], theano.grad(make(lambda x, g: [theano.gradient.DisconnectedType()()])(x).sum(), x))
    assert f(np.ones((2, 3))).tolist() == [[0.0] * 3] * 2
