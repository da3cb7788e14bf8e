"""Tools that programs use on graphs: comparing, mapping, rebuilding, None as a constant."""

import numpy as np
import pytest

import rscan.theano as theano
import rscan.theano.tensor as T
from rscan.theano.compile.pfunc import rebuild_collect_shared
from rscan.theano.scan_module import scan_op, until
from rscan.theano.scan_module.scan_utils import equal_computations, map_variables
from rscan.theano.tensor.type_other import NoneConst, none_type_t

ZERO = np.float64(0)


def run(outputs, inputs=(), values=(), **options):
    return theano.function(list(inputs), outputs, **options)(*values)


# equal_computations


def test_equal_computations_are_the_same_operations_on_the_same_leaves():
    x, y, m, w = T.dvector("x"), T.dvector("y"), T.dmatrix("m"), theano.shared(1.0, "w")
    constant = T.constant
    for a, b in [
        (x + y, x + y),
        (x * w + 1, x * w + 1),
        (constant(np.nan), constant(np.nan)),
        (T.max_and_argmax(m, 0)[1], T.max_and_argmax(m, 0)[1]),
        (x, x),
    ]:
        assert equal_computations([a], [b])
    for a, b in [
        (x + y, x * y),
        (x + y, y + x),
        (x + 1, x + 2),
        (x + 1, y + 1),
        (m.sum(axis=0), m.sum(axis=1)),
        (x * w, x * theano.shared(1.0, "w")),
        (x, y),
        (constant(1.0), constant(2.0)),
        (constant(1), constant(np.int64(1))),
        (T.fvector() + 1, x + 1),
    ]:
        assert not equal_computations([a], [b])
    assert not equal_computations([x + y, x * y], [x * y, x + y])
    with pytest.raises(AssertionError):
        equal_computations([x], [x, y])


def test_variables_that_count_as_the_same():
    x, y, f = T.dvector("x"), T.dvector("y"), T.fvector("f")
    assert equal_computations([x + 1], [y + 1], [x], [y]) and equal_computations([x], [y], [x], [y])
    assert not equal_computations([x + y], [y + y], [x], [y])
    assert not equal_computations([x + y], [x + y], [x], [y])
    assert not equal_computations([f + 1], [x + 1], [f], [x])
    assert not equal_computations([x], [x], [x], [])


def test_equal_loops():
    x, k = T.dvector("x"), T.dscalar("k")

    def loop(step=lambda v, s: v + s * 2, start=ZERO, **options):
        return theano.scan(step, sequences=x, outputs_info=T.constant(start), **options)[0]

    assert equal_computations([loop()], [loop()]) and equal_computations([loop(name="a")], [loop(name="b")])
    others = [
        loop(lambda v, s: v + s * 3),
        loop(lambda v, s: v - s * 2),
        loop(start=np.float64(1)),
        loop(go_backwards=True),
        loop(truncate_gradient=2),
        loop(lambda v, s: v + s * k),
        loop(lambda v, s: (v + s * 2, until(v > 3))),
        loop(n_steps=2),
    ]
    for i, other in enumerate(others):
        assert not any(equal_computations([other], [b]) for b in [loop(), *others[:i]]) and equal_computations([other], [other])


# map_variables


def test_map_variables_replaces_one_by_one():
    a, b, c = T.dscalars("a", "b", "c")
    total = a + b
    total.tag.replacement = a * b
    out = total + c
    (new,) = map_variables(lambda v: getattr(v.tag, "replacement", v), [out])
    assert [float(v) for v in run([out, new], [a, b, c], [2, 3, 5])] == [10, 11]
    found = map_variables(lambda v: v * 2 if v is a else v, [a + b, a])
    assert [float(v) for v in run(found, [a, b], [2, 3])] == [7, 4]
    assert map_variables(lambda v: v, [out]) == [out]
    with pytest.raises(TypeError):
        map_variables(lambda v: T.dvector() if v is a else v, [a + 1])


def test_map_variables_sees_each_variable_once_inputs_first():
    a, w = T.dscalar("a"), theano.shared(2.0, "w")
    e, seen = T.exp(a * w), []
    map_variables(lambda v: (seen.append(str(v)), v)[1], [e + e, e])
    assert seen == ["a", "w", "mul.0", "exp.0", "add.0"]


def test_map_variables_goes_into_the_steps_of_loops():
    x, start, k, w = T.dvector("x"), T.dvector("start"), T.dscalar("k"), theano.shared(1.0, "w")

    def outputs(function):
        def step(v, a, b, s):
            return [function(v) * k, a + b + s, function(s)], {w: w + function(v)}, until(function(v) > 5)

        info = [None, dict(initial=start, taps=[-2, -1]), T.constant(ZERO)]
        return theano.scan(step, sequences=x, outputs_info=info, go_backwards=True, name="inner")

    made, updates = outputs(T.exp)
    other, expected_updates = outputs(lambda v: v * 3)
    change = lambda v: v.owner.inputs[0] * 3 if v.owner is not None and str(v.owner.op) == "exp" else v
    found = map_variables(change, [*made, updates[w]])
    (node,) = scan_op.scan_nodes(found)
    assert node.op.name == "inner" and node.op.as_while
    values = [[0.5, 3.0, 1.0, 0.25], [1.0, 2.0], 7.0]
    for new, expected in zip(found, [*other, expected_updates[w]], strict=True):
        a, b = (run(v, [x, start, k], values, on_unused_input="ignore") for v in (new, expected))
        np.testing.assert_allclose(a, b, rtol=1e-12)
    assert map_variables(lambda v: v, made) == made


def test_map_variables_may_bring_new_variables_into_a_step():
    x, w = T.dvector("x"), theano.shared(7.0, "w")
    out, _ = theano.scan(lambda v, s: v * 2 + s, sequences=x, outputs_info=T.constant(ZERO))
    doubled = lambda v: v.owner.inputs[0] * w if v.owner is not None and str(v.owner.op) == "mul" else v
    (new,) = map_variables(doubled, [out])
    assert run(new, [x], [[1, 2, 3]]).tolist() == [7, 21, 42] and run(out, [x], [[1, 2, 3]]).tolist() == [2, 6, 12]


def test_map_variables_keeps_the_step_index():
    # Draws of counter-based streams depend on the index of the step.
    draw = theano.sandbox.rng_mrg.MRG_RandomStreams(1)
    out, _ = theano.scan(lambda: T.exp(draw.uniform(())), n_steps=4)
    change = lambda v: v.owner.inputs[0] if v.owner is not None and str(v.owner.op) == "exp" else v
    (new,) = map_variables(change, [out])
    before, after = theano.function([], [out, new])()
    assert len(set(after)) == 4
    np.testing.assert_allclose(np.exp(after), before)


# rebuild_collect_shared


def test_rebuilding_shares_inputs_and_collects_updates():
    a, b, w = T.dscalar("a"), T.dscalar("b"), theano.shared(2.0, "w")
    out = a * w + b
    ins, outs, (copies, news, pairs, shared) = rebuild_collect_shared([out], [a, b], updates=[(w, w + 1)])
    assert ins == [a, b] and shared == [w] and list(news) == [w] and pairs == list(news.items())
    assert float(run(outs[0], ins, [3, 4])) == 10 and copies[a] == a and copies[out] == outs[0]
    assert run(news[w]) == 3
    single = rebuild_collect_shared(out, [a, b])
    assert isinstance(single[1], T.TensorVariable)
    assert rebuild_collect_shared(None, [a])[:2] == ([a], [])


def test_rebuilding_replaces_and_copies():
    a, b, w = T.dscalar("a"), T.dscalar("b"), theano.shared(2.0, "w")
    out = a * w + b
    ins, (new,), (copies, news, _, shared) = rebuild_collect_shared(
        [out], [a, b], replace={b: a * 3}, updates={w: w + b}, copy_inputs_over=False
    )
    assert ins[0] != a and ins[0].name == "a" and copies[a] == ins[0] and shared == [w]
    assert {v for v in theano.gof.graph.inputs([new, ins[1], news[w]]) if v._v.kind == "input"} == {ins[0]}
    assert [float(v) for v in run([new, ins[1], news[w]], ins[:1], [5])] == [25, 15, 17]
    other = T.dscalar("other")
    leaves = theano.gof.graph.inputs([rebuild_collect_shared(out + other, [a], copy_inputs_over=False)[1]])
    assert {v.name for v in leaves} == {"a", "b", "other", "w"} and not {a, b, other}.intersection(leaves) and w in leaves
    with pytest.raises(TypeError):
        rebuild_collect_shared(out, [a, b], replace={b: T.fscalar()})
    assert rebuild_collect_shared(out, [a, b], replace={b: T.fscalar("f")}, rebuild_strict=False)[1].dtype == "float64"


def test_rebuilding_follows_default_updates():
    a, w, v = T.dscalar("a"), theano.shared(2.0, "w"), theano.shared(3.0, "v")
    w.default_update, v.default_update = w + v, v + 1
    news = lambda **options: rebuild_collect_shared([a * w], [a], **options)[2][1]
    assert set(news()) == {w, v} and run(news()[w], no_default_updates=True) == 5
    assert news(no_default_updates=True) == {} and news(no_default_updates=[w]) == {}
    assert set(news(no_default_updates=[v])) == {w}
    assert run(news(updates=[(w, w * 10)])[w], no_default_updates=True) == 20


@pytest.mark.parametrize(
    ("error", "arguments"),
    [
        (ValueError, lambda a, w: dict(outputs=[a], updates=[(w, w + 1), (w, w + 2)])),
        (TypeError, lambda a, w: dict(outputs=[a], updates=[(a, w)])),
        (TypeError, lambda a, w: dict(outputs=[a], updates=[(w, T.dvector())])),
        (TypeError, lambda a, w: dict(outputs={"out": a})),
        (TypeError, lambda a, w: dict(outputs=[a], inputs=[w])),
    ],
)
def test_what_cannot_be_rebuilt(error, arguments):
    with pytest.raises(error):
        rebuild_collect_shared(**arguments(T.dscalar("a"), theano.shared(1.0, "w")))


# Small things.


def test_none_as_a_constant():
    x = T.dvector("x")
    assert isinstance(NoneConst, theano.Constant) and NoneConst.data is None and NoneConst.owner is None
    assert NoneConst.type == none_type_t and str(NoneConst) == NoneConst.name == "NoneConst"
    assert NoneConst.equals(NoneConst) and not NoneConst.equals(T.constant(1))
    assert none_type_t.is_valid_value(None) and not none_type_t.is_valid_value(0)
    assert x[NoneConst].type == T.drow().type and run(x[NoneConst, 1:], [x], [[1, 2, 3]]).tolist() == [[2, 3]]
    for use in (lambda: NoneConst + x, lambda: T.as_tensor_variable(NoneConst), lambda: none_type_t.filter(0)):
        with pytest.raises(TypeError):
            use()


def test_arrays_of_a_dtype():
    a = np.zeros(2)
    assert theano._asarray(a, "float64") is a and theano._asarray([1.5, 2], dtype="int32").tolist() == [1, 2]
    assert theano._asarray([1], dtype="int8").dtype == np.int8 and theano._asarray([1], None).dtype == np.float64
    with theano.change_flags(floatX="float32"):
        assert theano._asarray([1], dtype="floatX").dtype == np.float32
    assert theano._asarray([[1, 2], [3, 4]], "float32", order="F").flags.f_contiguous
    assert theano.__version__ == "1.0.5" == theano.version.version
