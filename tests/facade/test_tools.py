"""Types as objects, functions as containers, gradients in parts, ops and streams: what programs use beside expressions."""

import collections
import copy

import numpy as np
import pytest

import rscan.theano as theano
import rscan.theano.tensor as T
from rscan.theano.ifelse import ifelse
from rscan.theano.tensor.shared_randomstreams import RandomStreams


def run(outputs, inputs=(), values=(), **options):
    return theano.function(list(inputs), outputs, **options)(*values)


# Types.


def test_constructors_of_a_dtype_are_types():
    assert T.dvector == T.TensorType("float64", (False,)) and hash(T.dvector) == hash(T.dvector().type)
    assert T.drow.broadcastable == (True, False) and (T.imatrix.dtype, T.imatrix.ndim) == ("int32", 2)
    assert T.dvector("x").name == "x" and [v.name for v in T.dvectors("a", "b")] == ["a", "b"] and len(T.fmatrices(3)) == 3
    assert T.vector("x", dtype="int8").dtype == "int8" and T.dvector.make_variable("q").name == "q"
    for kind, text in [
        (T.dvector, "TensorType(float64, vector)"),
        (T.fscalar, "TensorType(float32, scalar)"),
        (T.lcol, "TensorType(int64, col)"),
        (T.dtensor3, "TensorType(float64, 3D)"),
        (T.TensorType("int8", (True, True, False)), "TensorType(int8, (True, True, False))"),
    ]:
        assert str(kind) == text


def test_types_take_values():
    assert T.dvector.filter([1, 2]).tolist() == [1, 2] and T.dvector.filter([1, 2]).dtype == np.float64
    assert T.fvector.filter(np.ones(2), allow_downcast=True).dtype == np.float32
    with pytest.raises(TypeError):
        T.fvector.filter(np.ones(2))
    assert [T.dvector.is_valid_value(v) for v in (np.ones(2), np.ones((2, 2)), np.ones(2, "float32"), [1.0])] == [True, False, False, False]
    x, m = T.dvector(), T.dmatrix()
    assert T.dvector.filter_variable(x) is x
    with pytest.raises(TypeError):
        T.dvector.filter_variable(m)
    assert T.dvector.dtype_specs() == (np.float64, "float64", "npy_float64")
    assert T.dvector.values_eq(np.array([np.nan]), np.array([np.nan])) and not T.dvector.values_eq(np.ones(2), np.zeros(2))
    assert T.dvector.values_eq_approx(np.ones(2), np.ones(2) + 1e-9) and not T.dvector.values_eq_approx(np.ones(2), np.ones(2) + 1)
    assert T.dvector.clone(dtype="int8") == T.bvector and T.dvector.clone(broadcastable=(True, False)) == T.drow


# Functions as containers, and copies.


def test_functions_hold_values_of_inputs_and_shared_variables():
    s, x, w, v = T.dscalar("s"), T.dvector("x"), theano.shared(np.array([1.0, 2.0]), "w"), theano.shared(np.array([3.0, 4.0]), "v")
    f = theano.function([theano.In(s, value=2.0), x], s * x, name="f")
    assert f[s] == 2 == f["s"]
    f[s] = 5.0
    assert f(x=[1, 2]).tolist() == [5, 10]
    g = theano.function([x], x * w, updates=[(w, w + 1)])
    assert g.get_shared() == [w] and g[w].tolist() == [1, 2] == g["w"].tolist()
    g["w"] = np.array([5.0, 6.0])
    assert w.get_value().tolist() == [5, 6]
    for name in ("nothing", T.dscalar("s")):
        with pytest.raises(KeyError):
            f[name]
    swapped, still, again = g.copy(swap={w: v}), g.copy(delete_updates=True), copy.copy(g)
    assert swapped([1, 1]).tolist() == [3, 4] and v.get_value().tolist() == [4, 5] and w.get_value().tolist() == [5, 6]
    assert still([1, 1]).tolist() == [5, 6] == still([1, 1]).tolist()
    assert again([1, 1]).tolist() == [5, 6] and w.get_value().tolist() == [6, 7]
    assert f.copy(name="other").name == "other" and "f" in repr(f)


# Gradients in parts.


def test_gradients_of_parts_of_a_graph():
    x, w, v = T.dvector("x"), theano.shared(np.array([1.0, 2.0]), "w"), theano.shared(np.array([3.0, 4.0]), "v")
    h = x * w
    out = h * v
    cost = (out**2).sum()
    part = lambda *args, **options: theano.gradient.subgraph_grad(*args, **options)
    wrt, ends = part([v], [h], cost=cost)
    assert [g.tolist() for g in run(wrt + ends, [x], [[1, 2]])] == [[6, 128], [18, 128]]
    then, last = part([w], [x], start=collections.OrderedDict(zip([h], ends, strict=True)))
    assert [g.tolist() for g in run(then + last, [x], [[1, 2]])] == [[18, 256], [18, 256]]
    wrt, ends = part([v], [h], start={out: T.ones_like(out)}, cost=cost)
    assert [g.tolist() for g in run(wrt + ends, [x], [[1, 2]])] == [[7, 132], [21, 132]]
    behind, _ = part([w], [h], cost=cost)
    assert run(behind, [x], [[1, 2]], on_unused_input="ignore")[0].tolist() == [0, 0]


def test_forms_of_derivatives():
    x, y, s = T.dvector("x"), T.dvector("y"), T.dscalar("s")
    found = theano.gradient.numeric_grad(lambda a, b: (a * b).sum(), [np.array([1.0, 2.0]), np.array([3.0, 4.0])]).gf
    np.testing.assert_allclose(found, [[3, 4], [1, 2]], rtol=1e-5)
    np.testing.assert_allclose(theano.gradient.numeric_grad(lambda a: (a**2).sum(), np.array([1.0, 2.0])).gf, [2, 4], rtol=1e-5)
    format_as = theano.gradient.format_as
    assert (format_as(True, False, (1, 2)), format_as(False, True, [1]), format_as(False, False, [1])) == ([1, 2], (1,), 1)
    for form in (T.Lop((x * 2,), (x,), (y,)), T.Rop((x * 2,), (x,), (y,))):
        assert isinstance(form, tuple) and run(form[0], [x, y], [[0, 0], [1, 2]], on_unused_input="ignore").tolist() == [2, 4]
    (both,) = T.Lop([x * 2, x * 3], [x], [y, y])
    assert run(both, [x, y], [[0, 0], [1, 2]], on_unused_input="ignore").tolist() == [5, 10]
    assert run(T.jacobian(s * 2, s), [s], [1], on_unused_input="ignore") == 2
    for bad in (
        lambda: T.Rop(x, [x, y], [x]),
        lambda: T.Rop(x, x, T.dmatrix()),
        lambda: T.jacobian(T.dmatrix(), x),
        lambda: T.hessian(x, x),
        lambda: T.hessian(s, s),
        lambda: T.grad(s, 3),
    ):
        with pytest.raises((ValueError, TypeError)):
            bad()


# Misuse.


@pytest.mark.parametrize(
    ("error", "use"),
    [
        (ValueError, lambda s, x, m: ifelse(s, [x, x], [x])),
        (TypeError, lambda s, x, m: ifelse(x, x, x)),
        (TypeError, lambda s, x, m: ifelse(s, x, m)),
        (ValueError, lambda s, x, m: T.nonzero(s)),
        (TypeError, lambda s, x, m: T.set_subtensor(x[:2], m)),
        (ValueError, lambda s, x, m: T.flatten(m, 3)),
        (ValueError, lambda s, x, m: T.flatten(m, 0)),
        (ValueError, lambda s, x, m: m.dimshuffle(0, 0, 1)),
        (ValueError, lambda s, x, m: m.dimshuffle(2)),
        (ValueError, lambda s, x, m: T.addbroadcast(m, 2)),
        (TypeError, lambda s, x, m: T.concatenate(x)),
        (TypeError, lambda s, x, m: T.batched_dot(s, x)),
        (ValueError, lambda s, x, m: T.nnet.softmax(T.dtensor3())),
        (TypeError, lambda s, x, m: theano.shared(1.0, name=3)),
        (TypeError, lambda s, x, m: T.alloc(1.0, 1.5)),
        (TypeError, lambda s, x, m: T.constant(x)),
        (ValueError, lambda s, x, m: T.as_tensor_variable(m, ndim=1)),
        (TypeError, lambda s, x, m: x + "a"),
        (TypeError, lambda s, x, m: theano.function(x, x)),
        (TypeError, lambda s, x, m: theano.function([3], x)),
        (TypeError, lambda s, x, m: theano.function([x], x, updates=[3])),
        (ValueError, lambda s, x, m: theano.compile.mode.get_mode("nothing")),
        (ValueError, lambda s, x, m: theano.scan(lambda v: v, sequences=x, mode="nothing")),
        (ValueError, lambda s, x, m: theano.OpFromGraph([s, x], [s * x])(s)),
        (TypeError, lambda s, x, m: theano.OpFromGraph([s, x], [s * x])(x, x)),
        (TypeError, lambda s, x, m: theano.clone(x, replace={3: x})),
    ],
)
def test_misuse(error, use):
    with pytest.raises(error):
        use(T.dscalar("s"), T.dvector("x"), T.dmatrix("m"))


# Ops of users.


class Scaled(theano.Op):
    __props__ = ("factor",)
    itypes, otypes = [T.dvector], [T.dvector]

    def __init__(self, factor):
        self.factor = factor

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0] * self.factor


class Second(theano.Op):
    default_output = 1

    def make_node(self, x):
        return theano.Apply(self, [x], [x.type("first"), x.type("second")])

    def perform(self, node, inputs, outputs):
        outputs[0][0], outputs[1][0] = inputs[0], inputs[0] * 3


def test_ops_of_users_have_types_properties_and_a_default_output():
    x = T.dvector("x")
    assert run(Scaled(2)(x), [x], [[1, 2]]).tolist() == [2, 4]
    assert Scaled(2) == Scaled(2) != Scaled(3) and hash(Scaled(2)) == hash(Scaled(2)) and str(Scaled(2)) == "Scaled{factor=2}"
    assert Scaled(2) != Second() and Second() != Second()
    out = Second()(x)
    assert out.name == "second" and run(out, [x], [[1, 2]]).tolist() == [3, 6]
    for error, use in [
        (ValueError, lambda: Scaled(2)(x, x)),
        (TypeError, lambda: Scaled(2)(T.dmatrix())),
        (NotImplementedError, lambda: theano.Op()(x)),
    ]:
        with pytest.raises(error):
            use()
    with pytest.raises(ValueError, match="Scaled"):
        T.grad(Scaled(2)(x).sum(), x)


# Streams.


def test_states_of_streams_are_read_and_written():
    streams = RandomStreams(5)
    draw = streams.uniform((2,))
    assert [old for old, _ in streams.updates()] == [draw.rng] and isinstance(streams[draw.rng], np.random.RandomState)
    streams[draw.rng] = np.random.RandomState(9)
    assert run(draw).tolist() == np.random.RandomState(9).uniform(size=2).tolist()
    for use in (lambda: streams[T.dscalar()], lambda: streams.__setitem__(T.dscalar(), np.random.RandomState(1))):
        with pytest.raises(KeyError):
            use()
    with pytest.raises(TypeError):
        draw.rng.set_value(3)
    assert isinstance(theano.shared(np.random.RandomState(1)).get_value(), np.random.RandomState)
    other = copy.deepcopy(streams)
    (mine, _), (theirs, _) = streams.updates()[0], other.updates()[0]
    mine.set_value(np.random.RandomState(1))
    assert theirs is not mine and theirs.get_value().uniform() != np.random.RandomState(1).uniform()


def test_shapes_of_draws():
    streams, x, k, m = RandomStreams(5), T.dvector("x"), T.lvector("k"), T.dmatrix("m")
    assert run(streams.uniform()).shape == () and run(streams.uniform(size=x.shape), [x], [[1, 2, 3]]).shape == (3,)
    assert run(streams.uniform(size=k, ndim=2), [k], [[2, 3]]).shape == (2, 3)
    assert run(streams.normal(avg=x, std=1e-9), [x], [[1, 2]]).round(6).tolist() == [1, 2]
    assert run(streams.uniform((2, 3), low=0 * x), [x], [[1, 2, 3]]).shape == (2, 3)
    rows = run(streams.shuffle_row_elements(m), [m], [np.arange(40.0).reshape(2, 20)])
    np.testing.assert_array_equal(np.sort(rows, 1), np.arange(40.0).reshape(2, 20))
    assert rows[0].tolist() != sorted(rows[0]) and (rows[0] + 20).tolist() != rows[1].tolist()
    assert sorted(run(streams.shuffle_row_elements(x), [x], [[3, 1, 2]])) == [1, 2, 3]
