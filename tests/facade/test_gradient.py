"""`theano.grad`: what is connected to a cost, costs that are integers, loops that have no gradient."""

import numpy as np
import pytest

import rscan.theano as theano
import rscan.theano.tensor as T
from rscan.theano.gradient import DisconnectedInputError, DisconnectedType, disconnected_grad

ZERO = np.float64(0)


def run(outputs, inputs=(), values=(), **options):
    return theano.function(list(inputs), outputs, **options)(*values)


# Initial states.


def test_an_initial_state_that_no_step_reads_is_disconnected():
    x, s = T.dvector("x"), T.dscalar("s")
    out, _ = theano.scan(lambda a, b: a * 2, sequences=x, outputs_info=s)
    with pytest.raises(DisconnectedInputError, match="s"):
        T.grad(out.sum(), s)
    with pytest.raises(ValueError):
        T.grad(out.sum(), [x, s])
    gx, gs = T.grad(out.sum(), [x, s], disconnected_inputs="ignore")
    assert [v.tolist() for v in run([gx, gs], [x, s], [[1, 2], 3])] == [[2, 2], 0]
    with pytest.warns(UserWarning, match="s"):
        assert run(T.grad(out.sum(), s, disconnected_inputs="warn"), [s], [3]) == 0
    gx, gs = T.grad(out.sum(), [x, s], disconnected_inputs="ignore", return_disconnected="none")
    assert gs is None and gx is not None


@pytest.mark.parametrize(
    ("step", "cost", "found"),
    [
        (lambda a, s, c: (a * 2, c + 1), 1, None),
        (lambda a, s, c: (a * 2 + s, c + 1), 1, None),
        (lambda a, s, c: (a * 2, s + 1), 1, 1),
        (lambda a, s, c: (a * 2, s + 1), 0, None),
        (lambda a, s, c: (a * 2 + disconnected_grad(s), c), 0, None),
        (lambda a, s, c: (a * 2 + T.cast(s > 0, "float64"), c), 0, 0),
        (lambda a, s, c: (c + a, s * 2), 0, 2),
    ],
)
def test_what_reads_a_state_connects_it(step, cost, found):
    # Over three steps, with a cost of the sums of all rows.
    x, s = T.dvector("x"), T.dscalar("s")
    out, _ = theano.scan(step, sequences=x, outputs_info=[s, T.constant(ZERO)])
    if found is None:
        with pytest.raises(DisconnectedInputError):
            T.grad(out[cost].sum(), s)
    else:
        assert run(T.grad(out[cost].sum(), s), [x, s], [[1, 1, 1], 1], on_unused_input="ignore") == found


def test_states_of_several_rows_are_connected_as_a_whole():
    x, rows = T.dvector("x"), T.dvector("rows")
    info = dict(initial=rows, taps=[-2, -1])
    out, _ = theano.scan(lambda a, b, c: a * 2 + b, sequences=x, outputs_info=info)
    assert run(T.grad(out.sum(), rows), [x, rows], [[1, 2], [3, 4]]).tolist() == [1, 1]
    out, _ = theano.scan(lambda a, b, c: a * 2, sequences=x, outputs_info=info)
    with pytest.raises(DisconnectedInputError):
        T.grad(out.sum(), rows)
    out, _ = theano.scan(lambda a, b: a * 2 + b.shape[0], sequences=x, non_sequences=rows)
    with pytest.raises(DisconnectedInputError):
        T.grad(out.sum(), rows)


# Costs without a slope.


@pytest.mark.parametrize("floatX", ["float64", "float32"])
def test_the_gradient_of_an_integer_is_zeros(floatX):
    with theano.change_flags(floatX=floatX):
        x, i = T.vector("x"), T.ivector("i")
        for cost in ((x > 0).sum(), T.cast(x, "int32").sum(), T.argmax(x), (x > 0).any()):
            g = T.grad(cost, x)
            assert g.dtype == floatX and run(g, [x], [[1, 2]]).tolist() == [0, 0]
        steps, _ = theano.scan(lambda a, s: a + s, sequences=i, outputs_info=T.constant(np.int32(0)))
        for cost in (i.sum(), steps[-1]):
            g = T.grad(cost, i)
            assert g.dtype == floatX and run(g, [i], [[1, 2]], on_unused_input="ignore").tolist() == [0, 0]
        for cost in (i.sum(), x.shape[0]):
            with pytest.raises(DisconnectedInputError):
                T.grad(cost, x)
        assert isinstance(T.grad(i.sum(), x, disconnected_inputs="ignore", return_disconnected="disconnected"), type(DisconnectedType()()))
        with pytest.raises(TypeError):
            T.grad(i, i)


def test_zeros_are_no_missing_gradients():
    x = T.dvector("x")
    for cost in (T.cast((x > 0).sum(), "float64"), T.floor(x).sum(), T.sgn(x).sum(), T.switch(x > 0, 1.0, 2.0).sum()):
        assert run(T.grad(cost, x), [x], [[1, -2]]).tolist() == [0, 0]
    for cost in (T.zeros_like(x).sum(), T.cast(x.shape[0], "float64"), T.alloc(1.0, x.shape[0]).sum(), disconnected_grad(x).sum()):
        with pytest.raises(DisconnectedInputError):
            T.grad(cost, x)


def test_constants_have_gradients_but_pass_none_on():
    x = T.dvector("x")
    y = x * 2
    gx, gy = T.grad((x * y).sum(), [x, y], consider_constant=[x, y])
    assert [v.tolist() for v in run([gx, gy], [x], [[1, -3]])] == [[2, -6], [1, -3]]
    with pytest.raises(DisconnectedInputError):
        T.grad(y.sum(), x, consider_constant=[y])


def test_known_gradients_connect():
    x, y = T.dvector("x"), T.dvector("y")
    z = x * 2
    g = T.grad(None, x, known_grads={z: y})
    assert run(g, [x, y], [[1, 2], [3, 4]], on_unused_input="ignore").tolist() == [6, 8]
    with pytest.raises(DisconnectedInputError):
        T.grad(None, y, known_grads={z: T.ones_like(z)})


# Loops that have no gradient.


@pytest.mark.parametrize("taps", [[-1], [-2, -1]])
def test_a_loop_whose_state_loses_its_pattern_is_made_but_has_no_gradient(taps):
    m, rows = T.dmatrix("m"), T.zeros((1,)) if taps == [-1] else T.addbroadcast(T.zeros((2, 1)), 1)
    step = lambda a, *s: (a + sum(s), a * 2)
    (out, other), _ = theano.scan(step, sequences=m, outputs_info=[dict(initial=rows, taps=taps), None])
    assert out.type == T.dmatrix().type
    for cost in (out.sum(), other.sum(), (out[-1] ** 2).sum()):
        with pytest.raises(TypeError, match="broadcastable"):
            T.grad(cost, m)
    with pytest.raises(TypeError, match="broadcastable"):
        theano.function([m], out, on_unused_input="ignore")
    nested, _ = theano.scan(lambda v: theano.scan(lambda a, s: a + s, sequences=m, outputs_info=T.zeros((1,)))[0] + v, sequences=m)
    with pytest.raises(TypeError, match="broadcastable"):
        T.grad(nested.sum(), m)
    one, _ = theano.scan(lambda a, s: a + s, sequences=m, outputs_info=T.zeros((1,)), n_steps=1)
    assert run(T.grad(one.sum(), m), [m], [np.ones((2, 3))]).tolist() == [[1, 1, 1], [0, 0, 0]]


def test_unbroadcast_lets_a_state_keep_its_pattern():
    m = T.dmatrix("m")
    out, _ = theano.scan(lambda a, s: a + s, sequences=m, outputs_info=T.unbroadcast(T.zeros((1,)), 0))
    assert run(T.grad(out.sum(), m), [m], [np.ones((3, 1))]).tolist() == [[3], [2], [1]]


def test_functions_that_change_gradients_alone():
    x, values = T.dvector("x"), [1.0, -2.0, 0.25]
    for made, slopes in [
        (theano.gradient.grad_scale(x, 3.0), [3, 3, 3]),
        (theano.gradient.grad_scale(x, 3), [3, 3, 3]),
        (theano.gradient.grad_clip(x, -0.5, 0.5), [0.5, 0.5, 0.5]),
        (theano.gradient.zero_grad(x), [0, 0, 0]),
        (theano.gradient.undefined_grad(x), [0, 0, 0]),
    ]:
        assert run(made, [x], [values]).tolist() == values
        found = T.grad(made.sum(), x, disconnected_inputs="ignore")
        assert run(found, [x], [values], on_unused_input="ignore").tolist() == slopes


def test_positions_and_extents_are_not_connected():
    x, i, k = T.dvector("x"), T.iscalar("i"), T.lvector("k")
    for cost, wrt in [
        (x[i], i),
        (x[k].sum(), k),
        (T.set_subtensor(x[i], 1.0).sum(), i),
        (T.inc_subtensor(x[k], 1.0).sum(), k),
        (x[:i].sum(), i),
        (T.alloc(x[0], i).sum(), i),
        (T.arange(i).sum(), i),
        (T.eye(i).sum(), i),
        (x.reshape((i, 2)).sum(), i),
    ]:
        with pytest.raises(DisconnectedInputError):
            T.grad(cost, wrt)


def test_what_is_written_at_positions_is_connected():
    x, y, k = T.dvector("x"), T.dscalar("y"), T.lvector("k")
    for write in (T.set_subtensor, T.inc_subtensor):
        assert run(T.grad(write(x[0], y).sum(), y), [x, y], [[1, 2, 3], 4], on_unused_input="ignore") == 1
        assert run(T.grad(write(x[1:], y).sum(), y), [x, y], [[1, 2, 3], 4], on_unused_input="ignore") == 2
        assert run(T.grad(write(x[k], y).sum(), y), [x, y, k], [[1, 2, 3], 4, [0, 2]], on_unused_input="ignore") == 2


def test_names_and_dtypes_of_gradients():
    x, f = T.dvector("x"), T.fvector("f")
    cost = (x**2).sum()
    cost.name = "cost"
    assert T.grad(cost, x).name == "(dcost/dx)" and T.grad(cost, x, add_names=False).name is None
    assert T.grad((f * x).sum(), f).dtype == "float64" and T.grad((f**2).sum(), f).dtype == "float32"
