"""`theano.scan` with Theano's strictness."""

import pickle

import numpy as np
import pytest

import rscan.theano as theano
import rscan.theano.tensor as T

ZERO = np.float64(0)


def run(outputs, inputs=(), values=(), **options):
    return theano.function(list(inputs), outputs, **options)(*values)


def test_a_state_keeps_its_type():
    for step, initial in [
        (lambda a: a * 1.5, T.constant(0)),
        (lambda a: T.cast(a, "float32"), T.dscalar()),
        (lambda a: T.cast(a, "float64"), T.fscalar()),
        (lambda a: a + T.dvector(), T.dscalar()),
        (lambda a: a.sum(), T.dvector()),
    ]:
        with pytest.raises(ValueError):
            theano.scan(step, outputs_info=initial, n_steps=3)


def test_int8_states_wrap():
    out, _ = theano.scan(lambda a: a + T.constant(100), outputs_info=0, n_steps=3)
    assert out.dtype == "int8" and run(out).tolist() == [100, -56, 44]


def test_a_broadcastable_state_stays_so():
    m, row = T.dmatrix(), T.drow()
    out, _ = theano.scan(lambda a: a + m, outputs_info=row, n_steps=2)
    for use in (lambda: T.grad(out.sum(), row), lambda: T.grad(out.sum(), m), lambda: theano.function([row, m], out)):
        with pytest.raises(TypeError, match="unbroadcast"):
            use()
    out, _ = theano.scan(lambda a: a + T.addbroadcast(m, 0), outputs_info=row, n_steps=2)
    assert run(out, [row, m], [np.zeros((1, 2)), np.ones((1, 2))]).shape == (2, 1, 2)


def test_the_step_is_called_once_with_named_placeholders():
    x, w = T.dvector("x"), theano.shared(2.0, "w")
    calls = []

    def step(v, a, given):
        calls.append((v.name, a.name, given is w))
        return v * given + a

    theano.scan(step, sequences=x, outputs_info=T.dscalar("s0"), non_sequences=w)
    assert calls == [("x[t]", "s0[t-1]", True)]


def test_one_step_makes_no_loop():
    x = T.dvector("x")
    out, _ = theano.scan(lambda v, a: a + v, sequences=x, outputs_info=ZERO, n_steps=1)
    assert not theano.scan_module.scan_op.scan_nodes([out])
    assert run(out, [x], [[3, 4]]).tolist() == [3]


def test_taps_in_the_order_listed_and_long_initial_states():
    x = T.dvector("x")
    out, _ = theano.scan(lambda a, b: 10 * a + b, sequences=dict(input=x, taps=[1, -1]))
    assert run(out, [x], [range(5)]).tolist() == [20, 31, 42]
    out, _ = theano.scan(lambda v: v, sequences=dict(input=x, taps=2))
    assert run(out, [x], [range(5)]).tolist() == [2, 3, 4]
    init = T.dvector()
    out, _ = theano.scan(lambda a, b: a + b, outputs_info=dict(initial=init, taps=[-1, -2]), n_steps=3)
    assert run(out, [init], [[1, 1, 50]]).tolist() == [2, 3, 5]


def test_outputs_info_without_states_and_of_the_wrong_length():
    x = T.dvector("x")
    for info in (None, [], [None, {}]):
        out, _ = theano.scan(lambda v: [v, v], sequences=x, outputs_info=info)
        assert len(out) == 2
    for info in ([None], [None] * 3):
        with pytest.raises(ValueError):
            theano.scan(lambda v: [v, v], sequences=x, outputs_info=info)


def test_what_the_step_may_return():
    x, s = T.dvector("x"), theano.shared(3, "s")
    up = {s: s + 1}
    for step in (lambda: up, lambda: [(s, s + 1)], lambda: ([], up)):
        outputs, updates = theano.scan(step, n_steps=3)
        assert outputs is None and list(updates) == [s]
    for result in (lambda v: v, lambda v: [v], lambda v: (v, {}), lambda v: ([v], ()), lambda v: (v, up), lambda v: (up, v)):
        outputs, updates = theano.scan(result, sequences=x)
        assert isinstance(outputs, T.TensorVariable) and isinstance(updates, dict)
    out, updates = theano.scan(lambda v: (v, theano.scan_module.until(v > 2)), sequences=x)
    assert not updates and run(out, [x], [range(9)]).tolist() == [0, 1, 2, 3]
    assert isinstance(theano.scan(lambda v: v, sequences=x, return_list=True)[0], list)
    for bad in (lambda v: 1, lambda v: theano.scan_module.until(v > 1), lambda v: (theano.scan_module.until(v > 1), v)):
        with pytest.raises(ValueError):
            theano.scan(bad, sequences=x)
    outputs, _ = theano.scan(lambda: s, n_steps=2)
    assert run(outputs).tolist() == [3, 3]


def test_numbers_of_steps():
    x, n = T.dvector("x"), T.iscalar("n")
    f = theano.function([x, n], theano.scan(lambda v: v, sequences=x, n_steps=n)[0])
    assert f([1, 2], 1).tolist() == [1] and f([1, 2], 0).shape == (0,)
    for count in (3, -1):
        with pytest.raises(ValueError):
            f([1, 2], count)
    out, _ = theano.scan(lambda a, b: a + b, sequences=[x, T.arange(100000)])
    assert run(out, [x], [[1, 2]]).tolist() == [1, 3]


def test_stopped_loops_have_gradients_of_the_steps_that_ran():
    x = T.dvector("x")
    out, _ = theano.scan(lambda v, a: (a + v**2, theano.scan_module.until(v > 2)), sequences=x, outputs_info=ZERO)
    g = theano.function([x], T.grad(out[-1], x))
    assert g([1, 2, 3, 4]).tolist() == [2, 4, 6, 0]
    out, _ = theano.scan(lambda v, a: a + v**2, sequences=x, outputs_info=ZERO, truncate_gradient=2)
    assert run(T.grad(out[-1], x), [x], [[1, 2, 3, 4]]).tolist() == [0, 0, 6, 8]


def test_nested_loops_gradients_twice_and_inside():
    m, x = T.dmatrix(), T.dvector()
    inner = lambda row: theano.scan(lambda v, a: a + v**3, sequences=row, outputs_info=ZERO)[0][-1]
    out, _ = theano.scan(inner, sequences=m)
    a = np.arange(4.0).reshape(2, 2)
    np.testing.assert_allclose(run(T.grad(out.sum(), m), [m], [a]), 3 * a**2)
    total, _ = theano.scan(lambda v, acc: acc * v, sequences=x, outputs_info=np.float64(1))
    second = T.grad(T.grad(total[-1], x)[0], x)
    np.testing.assert_allclose(run(second, [x], [[2, 3, 4]]), [0, 4, 3])
    out, _ = theano.scan(lambda v: T.grad(v**3, v), sequences=x)
    assert run(out, [x], [[1, 2]]).tolist() == [3, 12]
    np.testing.assert_allclose(run(T.Rop(total, x, T.ones_like(x)), [x], [[2, 3, 4]]), [1, 5, 26])


def test_folds():
    x = T.dvector()
    step = lambda element, accumulator: accumulator * 2 + element
    for fold, expected in [(theano.reduce, 11), (theano.foldl, 11), (theano.foldr, 17)]:
        out, _ = fold(step, x, T.constant(ZERO))
        assert out.ndim == 0 and run(out, [x], [[1, 2, 3]]) == expected


def test_inspection():
    x, b0 = T.dvector("x"), T.dvector("b0")
    q, _ = theano.scan(
        lambda v, a, b3, b1, k: (a + v, b3 * v + b1, v * k),
        sequences=x,
        outputs_info=[ZERO, dict(initial=b0, taps=[-3, -1]), None],
        non_sequences=T.dscalar("k"),
    )
    (node,) = theano.scan_module.scan_op.scan_nodes(q)
    op = node.op
    # n_steps, x, b (mit_sot), a (sit_sot), the nit_sot, k
    assert (len(node.inputs), len(node.outputs), len(op.inputs), len(op.outputs)) == (6, 3, 5, 3)
    assert (op.n_seqs, op.n_mit_mot, op.n_mit_sot, op.n_sit_sot, op.n_shared_outs, op.n_nit_sot) == (1, 0, 1, 1, 0, 1)
    assert node.inputs[1] == x and q[2].owner == node and q[2].owner.op == op
    maps = op.var_mappings
    assert len(maps) == 12
    assert maps["outer_inp_from_outer_out"] == {0: 2, 1: 3, 2: 4}
    assert maps["inner_inp_from_outer_inp"] == {1: [0], 2: [1, 2], 3: [3], 4: [], 5: [4]}
    assert maps["outer_out_from_outer_inp"] == {1: -1, 2: 0, 3: 1, 4: 2, 5: -1}
    assert maps["outer_out_from_inner_inp"] == {0: -1, 1: 0, 2: 0, 3: 1, 4: -1}
    assert maps["inner_out_from_inner_inp"] == {0: [], 1: [0], 2: [0], 3: [1], 4: []}
    assert maps["inner_inp_from_inner_out"] == {0: [1, 2], 1: [3], 2: []}
    pattern = op.connection_pattern(node)
    assert pattern[1] == [True, True, True] and pattern[2] == [True, False, False] and pattern[5] == [False, False, True]
    assert op.inner_connection_pattern()[1] == [True, False, False, True, False]
    assert [v.name for v in op.inputs] == ["x[t]", "b0[t-3]", "b0[t-1]", op.inputs[3].name, "k"]
    assert op.inner_seqs() == op.inputs[:1] and op.inner_nitsot_outs() == op.outputs[2:]
    assert op.outer_seqs(node) == [x] and op.inner_mitsot_outs(op.outputs) == op.outputs[:1]
    assert op.mitsot_taps() == [[-3, -1]] and op.mitmot_out_taps() == []
    args = theano.scan_module.scan_utils.scan_args(node.inputs, node.outputs, op.inputs, op.outputs, op.info)
    assert args.inner_inputs == op.inputs and args.outer_inputs == node.inputs and args.inner_outputs == op.outputs
    assert args.outer_outputs == node.outputs and args.inner_in_mit_sot == [op.inputs[1:3]]
    assert {k: v for k, v in args.info.items() if k in op.info} == {k: op.info[k] for k in args.info}


def test_scan_args_of_all_kinds_of_outputs():
    x, rows, w, k = T.dvector("x"), T.dvector("rows"), theano.shared(1.0, "w"), T.dscalar("k")

    def step(v, a, b, c, given):
        return [a + b + v, v * given, c + v, v - 1], {w: w + v}

    info = [dict(initial=rows, taps=[-2, -1]), None, T.constant(ZERO), None]
    outs, updates = theano.scan(step, sequences=x, outputs_info=info, non_sequences=k)
    (node,) = theano.scan_module.scan_op.scan_nodes([*outs, updates[w]])
    op = node.op
    assert (op.n_mit_sot, op.n_sit_sot, op.n_nit_sot, op.n_shared_outs) == (1, 1, 2, 1)
    args = theano.scan_module.scan_utils.scan_args(node.inputs, node.outputs, op.inputs, op.outputs, op.info)
    assert args.inner_out_nit_sot == op.inner_nitsot_outs() and len(args.inner_out_nit_sot) == 2
    assert args.inner_out_shared == op.inner_shared_outs() and len(args.inner_out_shared) == 1
    assert args.outer_out_nit_sot == op.outer_nitsot_outs(node) == outs[1::2]
    assert args.outer_out_shared == op.outer_shared_outs(node) and args.outer_in_shared == op.outer_shared(node)
    assert [v.name for v in args.inner_in_shared] == ["w"] and args.inner_in_non_seqs == op.inner_non_seqs()
    (product, minus), (update,) = args.inner_out_nit_sot, args.inner_out_shared
    slices, (factor,), (before,) = args.inner_in_seqs, args.inner_in_non_seqs, args.inner_in_shared
    assert run([product, minus], [*slices, factor], [2, 5]) == [10, 1] and run(update, [*slices, before], [2, 5]) == 7
    assert args.inner_inputs == op.inputs and args.inner_outputs == op.outputs
    assert args.outer_inputs == node.inputs and args.outer_outputs == node.outputs
    assert args.info["n_nit_sot"] == 2 and args.info["n_shared_outs"] == 1


def test_gradients_make_mit_mots():
    x = T.dvector("x")
    out, _ = theano.scan(lambda v, a: a * v, sequences=x, outputs_info=np.float64(1))
    ops = [node.op for node in theano.scan_module.scan_op.scan_nodes([T.grad(out[-1], x)])]
    backward = [op for op in ops if op.n_mit_mot]
    assert len(backward) == 1 and len(backward[0].mitmot_out_taps()[0]) >= 2


def test_inspection_of_shared_updates_and_conditions():
    x, s = T.dvector("x"), theano.shared(0, "s")
    stop = theano.scan_module.until
    out, updates = theano.scan(lambda v, a: (a + v, {s: s + 2}, stop(v > s)), sequences=x, outputs_info=ZERO, name="counted")
    (node,) = theano.scan_module.scan_op.scan_nodes([out])
    op = node.op
    assert op.as_while and op.name == "counted" and (op.n_sit_sot, op.n_shared_outs, op.n_nit_sot) == (1, 1, 0)
    # Inner: x[t], a, s; the results a, s and the condition.
    assert len(op.inputs) == 3 and len(op.outputs) == 3 and op.outputs[-1].dtype == "bool"
    assert op.inner_shared() == [op.inputs[2]] and op.inner_shared_outs() == [op.outputs[1]]
    assert op.outputs[1].eval({op.inputs[2]: 5}) == 7
    args = theano.scan_module.scan_utils.scan_args(node.inputs, node.outputs, op.inputs, op.outputs, op.info)
    assert args.cond == op.outputs[-1:] and args.inner_outputs == op.outputs and args.outer_outputs == node.outputs
    assert len(args.outer_in_shared) == 1 and args.as_while
    assert len(op.inner_connection_pattern()) == 3 and len(op.connection_pattern(node)) == len(node.inputs)
    f = theano.function([x], out, updates=updates)
    assert f([-1, 0, 9, 9]).tolist() == [-1, -1, 8] and s.get_value() == 6


def test_parts_of_a_loop_with_shared_outputs_and_such_that_are_not_read_back():
    x, s, r = T.dvector("x"), theano.shared(0.0, "s"), theano.shared(1.0, "r")
    step = lambda v, a: ([a + v, v * 2, s + r], {s: s + 2, r: r * 3})
    outs, updates = theano.scan(step, sequences=x, outputs_info=[ZERO, None, None])
    (node,) = theano.scan_module.scan_op.scan_nodes(outs)
    op = node.op
    args = theano.scan_module.scan_utils.scan_args(node.inputs, node.outputs, op.inputs, op.outputs, op.info)
    assert args.inner_out_sit_sot == op.inner_sitsot_outs() == op.outputs[:1]
    assert args.inner_out_nit_sot == op.inner_nitsot_outs() == op.outputs[1:3]
    assert args.inner_out_shared == op.inner_shared_outs() == op.outputs[3:]
    assert args.outer_out_nit_sot == node.outputs[1:3] and args.outer_out_shared == node.outputs[3:]
    assert args.inner_in_shared == op.inner_shared() and len(args.inner_in_shared) == 2
    assert args.outer_in_shared == op.outer_shared(node) and len(args.outer_in_nit_sot) == 2
    assert args.inner_outputs == op.outputs and args.outer_outputs == node.outputs
    a, b, c = theano.function([x], outs, updates=updates)([1, 2])
    assert (a.tolist(), b.tolist(), c.tolist()) == ([1, 3], [2, 4], [1, 5]) and (s.get_value(), r.get_value()) == (4, 9)


def test_what_a_loop_gives_is_theanos_whatever_it_is_given():
    out, _ = theano.scan(lambda: T.constant(2.0) * 3, n_steps=3)
    assert isinstance(out, T.TensorVariable) and out.eval().tolist() == [6, 6, 6]
    plain, _ = theano.scan(lambda v: v + 1, sequences=np.arange(3.0))
    assert isinstance(plain, T.TensorVariable) and plain.eval().tolist() == [1, 2, 3]


def test_backwards_with_taps():
    # Tap k of step t, counted from the end: the slices are taken forwards, then reversed.
    x = T.dvector("x")
    out, _ = theano.scan(lambda a, b: 10 * a + b, sequences=dict(input=x, taps=[0, 1]), go_backwards=True)
    assert run(out, [x], [[1, 2, 3]]).tolist() == [23, 12]
    out, _ = theano.map(lambda v: v, x, go_backwards=True)
    assert run(out, [x], [[1, 2, 3]]).tolist() == [3, 2, 1]


def test_steps_may_be_given_in_many_forms():
    for steps in (3, np.int64(3), T.constant(3), theano.shared(3), np.asarray(3)):
        out, _ = theano.scan(lambda a: a * 2, outputs_info=1.0, n_steps=steps)
        assert out.dtype == "float32" and run(out).tolist() == [2, 4, 8]
    for bad in (3.0, "3", T.dscalar(), T.ivector()):
        with pytest.raises((ValueError, TypeError)):
            theano.scan(lambda a: a * 2, outputs_info=1.0, n_steps=bad)
    with pytest.raises(ValueError):
        theano.scan(lambda a: a * 2, outputs_info=1.0)


def test_sequences_in_many_forms():
    x = T.dvector("x")
    for sequences, options in [((x, x), {}), ([dict(input=x), x], {}), ([[1, 2], x], {}), ([theano.shared(np.ones(2)), x], {})]:
        out, _ = theano.scan(lambda a, b: a * b, sequences=sequences, **options)
        assert run(out, [x], [[1, 2]]).shape == (2,)
    out, _ = theano.scan(lambda v, a, b: v * a + b, sequences=x, non_sequences=(2, T.constant(1.0)))
    assert run(out, [x], [[1, 2]]).tolist() == [3, 5]


def test_updates_travel_out_of_nested_loops():
    s = theano.shared(0, "s")

    def outer():
        rows, updates = theano.scan(lambda: (s * 1, {s: s + 1}), n_steps=2)
        return rows, updates

    out, updates = theano.scan(outer, n_steps=3)
    f = theano.function([], out, updates=updates)
    assert f().tolist() == [[0, 1], [2, 3], [4, 5]] and s.get_value() == 6
    updates[s] = updates[s] * 10
    theano.function([], [], updates=updates)()
    assert s.get_value() == 120


def test_passed_expressions_of_updated_shared_variables_keep_their_value():
    w = theano.shared(1.0, "w")
    w2 = w * 10
    given = lambda v: v * 1
    for step, passed, expected in [(lambda: w2 * 1, None, [10, 20, 30]), (given, w2, [10, 10, 10]), (given, w, [1, 2, 3])]:
        out, updates = theano.scan(lambda *a, step=step: (step(*a), {w: w + 1}), non_sequences=passed, n_steps=3)
        assert theano.function([], out, updates=updates)().tolist() == expected
        assert w.get_value() == 4
        w.set_value(1.0)
        np.testing.assert_array_equal(T.grad(out[-1], w).eval(), expected[0])


def test_third_derivatives_and_truncation_from_the_stop():
    s, x = T.dscalar("s"), T.dvector("x")
    out, _ = theano.scan(lambda a: a * a, outputs_info=s, n_steps=2)
    third = T.grad(T.grad(T.grad(out[-1], s), s), s)
    assert third.eval({s: 2.0}) == 24 * 2
    step = lambda v, a: (a * v, theano.scan_module.until(v > 3))
    out, _ = theano.scan(step, sequences=x, outputs_info=np.float64(1), truncate_gradient=2)
    assert T.grad(out[-1], x).eval({x: range(1, 7)}).tolist() == [0, 0, 8, 6, 0, 0]


def test_functions_with_loops_pickle():
    x, w = T.dvector("x"), theano.shared(2.0, "w")
    out, _ = theano.scan(lambda v, a: a * w + v, sequences=x, outputs_info=ZERO)
    f = theano.function([x], [out, T.grad(out[-1], w)])
    again = pickle.loads(pickle.dumps(f))
    for a, b in zip(f([1, 2, 3]), again([1, 2, 3]), strict=True):
        np.testing.assert_array_equal(a, b)
