"""`theano.function`: arguments, results, updates, copies; and the tools around it."""

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rscan.theano as theano
import rscan.theano.tensor as T


def test_what_arguments_are_accepted():
    f, x, row, i = T.fvector("f"), T.dvector("x"), T.drow("r"), T.iscalar("i")
    double = theano.function([f], f * 2)
    assert double([0.5]).tolist() == [1.0] and theano.function([x], x)(range(3)).tolist() == [0, 1, 2]
    assert theano.function([i], i + 1)(2).dtype == np.int32
    for bad in ([0.1], np.ones(2), 3.0, [[1.0]]):
        with pytest.raises(TypeError):
            double(bad)
    assert theano.function([x], x)(np.ones(2, np.float32)).dtype == np.float64
    assert theano.function([f], f, allow_input_downcast=True)(np.array([0.1])).dtype == np.float32
    with theano.change_flags(floatX="float32"):
        assert double([0.1]).tolist() == [np.float32(0.1) * 2]
    with pytest.raises(TypeError):
        theano.function([row], row)(np.ones((2, 2)))


def test_inputs_that_are_missing_unused_or_twice():
    x, y = T.dvectors("x", "y")
    with pytest.raises(theano.gof.fg.MissingInputError):
        theano.function([x], x + y)
    with pytest.raises(ValueError, match="y"):
        theano.function([x, y], x)
    assert theano.function([x, y], x, on_unused_input="ignore")([1], [2]).tolist() == [1]
    with pytest.raises(ValueError):
        theano.function([x, x], x)
    assert theano.function([x, y], x - y)(y=[1], x=[3]).tolist() == [2]


def test_the_form_of_results():
    x = T.dvector("x")
    total = theano.function([x], x.sum())([1, 2])
    assert isinstance(total, np.ndarray) and total.shape == ()
    assert isinstance(theano.function([x], [x])([1]), list) and list(theano.function([x], {"a": x})([1])) == ["a"]
    assert theano.function([], None)() == [] == theano.function([], [])()
    a = np.ones(2)
    out = theano.function([x], x)(a)
    out[0] = 5
    assert a[0] == 1


def test_intermediate_inputs_givens_and_updates():
    s = T.dscalar("s")
    y = s * 2
    assert theano.function([y], y + 1)(3.0) == 4
    a, b = theano.shared(1.0, "a"), theano.shared(2.0, "b")
    theano.function([], updates=[(a, b), (b, a)])()
    assert (a.get_value(), b.get_value()) == (2, 1)
    assert theano.function([s], y, givens={s: s + 1})(1.0) == 4
    assert theano.function([], a * 2, givens=[(a, T.constant(7.0))])() == 14
    n = theano.shared(0, "n")
    count = theano.function([], n, updates={n: n + 1})
    assert [int(count()) for _ in range(3)] == [0, 1, 2]
    for bad in ({n: n + 1.5}, {n: T.dvector()}, {s: s}):
        with pytest.raises(TypeError):
            theano.function([], [], updates=bad, on_unused_input="ignore")
    with pytest.raises(ValueError):
        theano.function([], [], updates=[(n, n + 1), (n, n + 2)])


def test_inputs_with_values_and_updates():
    s, k = T.dscalar("s"), T.dscalar("k")
    count = theano.function([theano.In(s, value=0, update=s + k), k], s)
    assert [float(count(k=2)) for _ in range(3)] == [0, 2, 4]
    assert count(10, 1) == 10 and count(k=0) == 11
    assert theano.function([k, theano.In(s, value=5, name="five")], s * k)(2) == 10


def test_shared_variables():
    w = theano.shared(np.zeros((2, 2), np.float32), "w")
    w.set_value([[1, 2], [3, 4]])
    v = w.get_value()
    v[0, 0] = 9
    assert w.get_value()[0, 0] == 1 and w.get_value(borrow=True).dtype == np.float32
    for bad in (np.zeros(2), np.full((2, 2), 0.1)):
        with pytest.raises(TypeError):
            w.set_value(bad)
    assert w.type.ndim == 2 and w.eval().shape == (2, 2)
    with pytest.raises(TypeError):
        theano.shared(T.dscalar())


def test_clone():
    x, w = T.dvector("x"), theano.shared(np.ones(2), "w")
    y = (w * x).sum()
    assert theano.function([x], theano.clone(y, replace={w: w * 3}))([1, 1]) == 6
    assert theano.function([x], theano.clone([y, y], [(x, x + 1)])[1])([1, 1]) == 4
    apart = theano.clone(y, share_inputs=False)
    leaves = theano.gof.graph.inputs([apart])
    assert {v.name for v in leaves} == {"x", "w"} and x not in leaves and w not in leaves
    with pytest.raises(TypeError):
        theano.clone(y, replace={x: T.fvector()})
    assert theano.clone(y, replace={x: T.fvector()}, strict=False).dtype == "float64"


def test_clones_without_shared_inputs_have_new_inputs():
    x, y, z, w = T.dvector("x"), T.dvector("y"), T.dvector("z"), theano.shared(np.arange(3.0), "w")
    t = x * 2
    leaves = lambda v: [u for u in theano.gof.graph.inputs([v]) if not isinstance(u, theano.Constant)]
    for out, replace, names in [
        (x * y + w, {}, ["x", "y", "w"]),
        (x * y + w, {y: z * 2}, ["x", None, "w"]),
        (x * y + w, {y: z}, ["x", None, "w"]),
        (x * y + w, {y: x}, ["x", None, "w"]),
        (x * y + w, {w: w + 1}, ["x", "y", None]),
        (t + y, {t: t * z}, [None, "y"]),
        (x * y + w, [(y, T.fvector("another type"))], ["x", None, "w"]),
    ]:
        found = leaves(theano.clone(out, replace, share_inputs=False))
        assert [v.name for v in found] == names and not {x, y, z, w}.intersection(found)
        assert [v.dtype for v in found] == ["float64"] * len(found)
    apart = theano.clone(x * y + w, {y: z * 2}, share_inputs=False)
    a, b, v = leaves(apart)
    v.set_value(np.ones(3))
    assert theano.function([a, b], apart)([1, 2, 3], [1, 1, 1]).tolist() == [2, 3, 4] and w.get_value().tolist() == [0, 1, 2]
    one, two = theano.clone([x, x * 2], share_inputs=False)
    assert one != x and theano.function([one], two)([1]).tolist() == [2]
    loop, _ = theano.scan(lambda u, s: s * u + x.sum(), sequences=y, outputs_info=np.float64(1))
    found = leaves(theano.clone(loop, {x: z * 2}, share_inputs=False))
    assert sorted(v.name or "" for v in found) == ["", "y"] and y not in found
    assert set(leaves(theano.clone(loop, {x: z * 2}))) == {y, z}


def test_clones_that_are_not_strict_take_other_types():
    y = T.dvector("y")
    for new, dtype, ndim in [(T.fvector(), "float32", 1), (T.ivector(), "float64", 1), (T.dmatrix(), "float64", 2)]:
        out = theano.clone(T.exp(y), {y: new}, strict=False)
        assert (out.dtype, out.ndim) == (dtype, ndim)
        with pytest.raises(TypeError):
            theano.clone(T.exp(y), {y: new})


def test_copies_and_pickles():
    class Model:
        pass

    x, model = T.dvector("x"), Model()
    model.w = theano.shared(np.ones(2), "w")
    model.y = (model.w * x).sum()
    model.f = theano.function([x], model.y, updates=[(model.w, model.w + 1)])
    other = copy.deepcopy(model)
    assert model.f([1, 1]) == 2 and other.w.get_value().tolist() == [1, 1]
    assert other.f([1, 1]) == 2 and other.w.get_value().tolist() == [2, 2] == model.w.get_value().tolist()
    f, w = pickle.loads(pickle.dumps((model.f, model.w)))
    assert f([1, 1]) == 4 and w.get_value().tolist() == [3, 3] and model.w.get_value().tolist() == [2, 2]
    assert model.f.copy()([1, 1]) == 4


def test_gradients():
    s, x, f, i = T.dscalar("s"), T.dvector("x"), T.fvector("f"), T.ivector("i")
    assert isinstance(T.grad(s**2, (s,)), tuple) and isinstance(T.grad(s**2, [s]), list)
    with pytest.raises(TypeError):
        T.grad(x, x)
    with pytest.raises(theano.gradient.DisconnectedInputError):
        T.grad(s, x)
    assert T.grad(s, x, disconnected_inputs="ignore").eval({x: [1]}).tolist() == [0]
    assert T.grad((i * x).sum(), i).dtype == "float64" == T.grad((f * x).sum(), f).dtype
    assert T.grad((f * 2).sum(), f).dtype == "float32"
    assert T.grad(x.max(), x).eval({x: [2, 1, 2]}).tolist() == [1, 0, 1]
    assert T.grad(abs(s), s).eval({s: 0}) == 0 == T.grad(s**0, s).eval({s: 0})
    assert T.grad(T.switch(s > 0, T.log(s), 0), s).eval({s: -1}) == 0
    y = s * 3
    assert T.grad(y**2, y).eval({s: 1}) == 6
    assert T.grad(y**2, s, consider_constant=[y], disconnected_inputs="ignore").eval({s: 1}) == 0
    assert T.grad(None, s, known_grads={y: T.constant(2.0)}).eval({}) == 6
    np.testing.assert_allclose(T.jacobian(x**2, x).eval({x: [1, 2]}), np.diag([2, 4]))
    np.testing.assert_allclose(T.hessian((x**3).sum(), x).eval({x: [1, 2]}), np.diag([6, 12]))
    assert T.Lop(x**2, x, T.ones_like(x)).eval({x: [1, 2]}).tolist() == [2, 4]
    T.verify_grad(lambda a: T.tanh(a).sum(), [np.array([0.1, 0.2])], rng=np.random.RandomState(1))
    T.verify_grad(lambda a: T.tanh(a).sum(), np.array([[0.1, 0.2]]))
    with pytest.raises(ValueError):
        T.verify_grad(lambda a: T.sqr(theano.gradient.disconnected_grad(a)) * a, [np.array([0.1, 0.2])])


def test_ifelse_print_ops_and_modes(capsys):
    s, x = T.dscalar("s"), T.dvector("x")
    assert theano.ifelse.ifelse(s > 0, s, s * 2).eval({s: -1}) == -2
    assert theano.printing.Print("here")(s).eval({s: 1}) == 1 and "here" in capsys.readouterr().out
    assert theano.pp(T.tanh(x + 1)) == "tanh(x + 1)"
    assert theano.OpFromGraph([s], [s * 2])(s + 1).eval({s: 1}) == 4

    class Twice(theano.Op):
        __props__ = ()

        def make_node(self, x):
            x = T.as_tensor_variable(x)
            return theano.Apply(self, [x], [x.type()])

        def perform(self, node, inputs, output_storage):
            output_storage[0][0] = inputs[0] * 2

        def grad(self, inputs, gradients):
            return [gradients[0] * 2]

    y = Twice()(x)
    assert y.eval({x: [1, 2]}).tolist() == [2, 4] and T.grad(y.sum(), x).eval({x: [1, 2]}).tolist() == [2, 2]
    looped, _ = theano.scan(lambda v: Twice()(v), sequences=x)
    assert looped.eval({x: [1, 2]}).tolist() == [2, 4]

    @theano.as_op(itypes=[T.dvector], otypes=[T.dscalar])
    def total(v):
        return v.sum()

    assert total(x).eval({x: [1, 2]}) == 3
    default = theano.compile.mode.get_default_mode()
    for mode in ("FAST_RUN", "FAST_COMPILE", "DebugMode", None, theano.Mode(linker="py"), default.excluding("fusion")):
        assert theano.function([s], s, mode=mode)(1) == 1
    with pytest.raises(ValueError):
        theano.function([s], s, mode="SLOW")
    with pytest.raises(AssertionError, match="too much"):
        T.opt.Assert("too much")(s, s < 1).eval({s: 2})


def test_settings():
    before = theano.config.floatX

    @theano.change_flags(floatX="float32")
    def inside():
        return T.scalar().dtype

    assert inside() == "float32" and theano.config.floatX == before
    with theano.change_flags([("scan.allow_gc", True)]):
        assert theano.config.scan.allow_gc is True
    assert theano.config.scan.allow_gc is False and theano.config.warn.anything is False
    with pytest.raises(AttributeError):
        theano.config.no_such_setting


def test_values_of_inputs_and_shared_variables_of_a_function():
    x, s, r = T.dscalar("x"), theano.shared(2.0, "s"), theano.shared(5.0, "r")
    f = theano.function([x, theano.In(T.dscalar("y"), value=3.0)], [x * s + r], on_unused_input="ignore")
    assert (f["s"], f["r"], f[s], f["y"], f.container["r"]) == (2, 5, 2, 3, 5)
    f["s"], f[r], f["y"] = 7.0, 1.0, 4.0
    assert (s.get_value(), r.get_value(), f["y"]) == (7, 1, 4) and f(2.0) == [15]
    with pytest.raises(KeyError):
        f["z"]


def test_gradients_of_a_part_of_a_graph():
    x, w = T.dscalar("x"), T.dscalar("w")
    h = x**2
    cost = T.sin(h) * w
    by_w, by_h = theano.gradient.subgraph_grad([w], [h], cost=cost)
    at = {x: 0.5, w: 3.0}
    assert by_w[0].eval(at) == pytest.approx(np.sin(0.25)) and by_h[0].eval(at) == pytest.approx(3 * np.cos(0.25))
    by_w, by_x = theano.gradient.subgraph_grad([w], [x], start={h * w: T.constant(2.0)})
    assert by_w[0].eval(at) == pytest.approx(2 * 0.25) and by_x[0].eval(at) == pytest.approx(2 * 3 * 2 * 0.5)
    by_w, by_x = theano.gradient.subgraph_grad([w], [x], start={h: T.constant(2.0)}, cost=cost)
    # The gradient of the cost is added to that of h, and w is not behind h.
    assert by_w[0].eval(at) == 0 and by_x[0].eval(at) == pytest.approx((2 + 3 * np.cos(0.25)) * 2 * 0.5)


def test_an_op_without_a_gradient_beside_what_is_asked_for():
    @theano.compile.ops.as_op(itypes=[T.dvector], otypes=[T.dvector])
    def double(y):
        return 2 * y

    x, y = T.dvectors("x", "y")
    cost = (x * double(y)).sum() + double(y).sum()
    assert T.grad(cost, x).eval({x: [0, 1], y: [1, 2]}).tolist() == [2, 4]
    with pytest.raises(ValueError, match="no gradient"):
        T.grad(cost, y)


def test_forward_mode_is_compared_with_reverse_mode():
    x = T.dvector("x")
    cut = theano.gradient.disconnected_grad
    wrong = lambda inputs, gradients: [2 * inputs[0] * (0.5 * gradients[0] + 0.5 * cut(gradients[0]))]
    square = theano.OpFromGraph([x], [x * x], grad_overrides=wrong)
    with pytest.raises(theano.gradient.GradientCheckError, match="forward mode and reverse mode"):
        T.verify_grad(square, [np.array([0.5, 1.5])])
    right = theano.OpFromGraph([x], [x * x], grad_overrides=lambda inputs, gradients: [2 * inputs[0] * gradients[0]])
    T.verify_grad(right, [np.array([0.5, 1.5])])


def test_test_values():
    x, y = T.dvectors("x", "y")
    with theano.change_flags(compute_test_value="raise"):
        with pytest.raises(AttributeError, match="x"):
            x + 1
        x.tag.test_value, y.tag.test_value = np.ones(3), np.ones(4)
        assert (x * 2).tag.test_value.tolist() == [2, 2, 2]
        with pytest.raises(ValueError):
            x + y
        out, _ = theano.scan(lambda v, a: v + a, sequences=x, outputs_info=np.float64(0))
        assert out.tag.test_value.tolist() == [1, 2, 3]
    assert not hasattr((x + 1).tag, "test_value")


def test_ops_from_graphs_with_gradients_of_their_own():
    x, y = T.dvectors("x", "y")
    product = theano.OpFromGraph([x, y], [x * y], grad_overrides=lambda inputs, gradients: [gradients[0] * 10, gradients[0] * inputs[0]])
    out = product(x, y)
    given = {x: [1.0, 2.0], y: [3.0, 4.0]}
    assert out.eval(given).tolist() == [3, 8]
    assert T.grad(out.sum(), x).eval(given).tolist() == [10, 10] and T.grad(out.sum(), y).eval(given).tolist() == [1, 2]
    half = theano.OpFromGraph([x, y], [x * y], grad_overrides=[None, lambda inputs, gradients: gradients[0] * 7])
    assert T.grad(half(x, y).sum(), x).eval(given).tolist() == [3, 4]
    assert T.grad(half(x, y).sum(), y).eval(given).tolist() == [7, 7]


def run_program(tmp_path, text, *arguments, **environment):
    program = tmp_path / "program.py"
    program.write_text(text)
    command = [sys.executable, "-m", "rscan.theano", str(program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | environment, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_programs_that_import_theano_run(tmp_path):
    text = """
import sys
from pathlib import Path
import theano, theano.tensor as T
from theano import tensor, config, function, shared
from theano.tensor.shared_randomstreams import RandomStreams
from theano.sandbox.rng_mrg import MRG_RandomStreams
from theano.ifelse import ifelse
from theano.scan_module import until
from theano.compile.mode import get_mode
from theano.gradient import disconnected_grad
from theano.tensor.nnet import sigmoid
from theano.printing import Print
import theano.tensor.slinalg
x = T.vector()
print(x.dtype, sys.argv[1:], function([x], theano.scan(lambda v: v * 2, sequences=x)[0])([1, 2]).tolist())
"""
    out = run_program(tmp_path, text, "--flag", THEANO_FLAGS="floatX=float32,mode=FAST_RUN")
    assert out.split("\n")[0] == "float32 ['--flag'] [2.0, 4.0]"


def test_a_whole_program(tmp_path):
    text = (Path(__file__).parent / "programs" / "recurrences.py").read_text()
    for floats in ("float64", "float32"):
        lines = run_program(tmp_path, text, THEANO_FLAGS=f"floatX={floats}").splitlines()
        first, last = map(float, lines[0].split())
        assert last < first / 3
        assert lines[1].split()[-1] == "89]" and lines[2] == "[ 3 10  5 16  8  4  2  1]" and lines[3] == "[1. 0.]"
        assert float(lines[4]) == pytest.approx(6)
