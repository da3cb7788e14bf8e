"""What a step may use, and when that is computed: non_sequences, strict loops, updates, random variables from outside."""

import numpy as np
import pytest

import rscan.theano as theano
import rscan.theano.tensor as T
from rscan.theano.sandbox.rng_mrg import MRG_RandomStreams
from rscan.theano.scan_module import scan_op, until
from rscan.theano.tensor.shared_randomstreams import RandomStreams

MissingInputError = theano.gof.fg.MissingInputError
ZERO = np.float64(0)


def run(outputs, inputs=(), values=(), **options):
    return theano.function(list(inputs), outputs, **options)(*values)


def numpys(seed, n):
    gen = np.random.RandomState(seed)
    return [np.random.RandomState(int(gen.randint(2**30))) for _ in range(n)]


# Non_sequences are inputs of the loop, used or not.


@pytest.mark.parametrize("strict", [False, True])
def test_a_non_sequence_counts_as_used(strict):
    x, y = T.dvector("x"), T.dscalar("y")
    for given in (y, y * 2):
        out, _ = theano.scan(lambda a, b: a * 2, sequences=x, non_sequences=given, strict=strict)
        assert run(out, [x, y], [[1, 2], 3]).tolist() == [2, 4]
        assert y in theano.gof.graph.inputs([out])
        with pytest.raises(MissingInputError, match="y"):
            theano.function([x], out)


def test_unused_non_sequences_of_folds_gradients_clones_and_loops_inside():
    x, y = T.dvector("x"), T.dscalar("y")
    out, _ = theano.map(lambda a, b: a * 2, x, y)
    assert run(out, [x, y], [[1, 2], 3]).tolist() == [2, 4]
    out, _ = theano.reduce(lambda a, s, b: a + s, x, T.constant(ZERO), y)
    assert run(out, [x, y], [[1, 2], 3]) == 3
    assert run(theano.clone(out), [x, y], [[1, 2], 3]) == 3
    out, _ = theano.scan(lambda a, b: a**2, sequences=x, non_sequences=y)
    assert run(T.grad(out.sum(), x), [x, y], [[1, 2], 3]).tolist() == [2, 4]

    def outer(a, b):
        rows, _ = theano.scan(lambda c, d: c * 2, sequences=x, non_sequences=b)
        return rows.sum() + a

    out, _ = theano.scan(outer, sequences=x, non_sequences=y)
    assert run(out, [x, y], [[1, 2], 3]).tolist() == [7, 8]


def test_what_is_not_passed_to_a_loop_is_not_used():
    x, y = T.dvector("x"), T.dscalar("y")
    out, _ = theano.scan(lambda a: a * 2, sequences=x)
    one, _ = theano.scan(lambda a, b: a * 2, sequences=x, non_sequences=y, n_steps=1)
    for unused in (out, one):
        with pytest.raises(theano.compile.UnusedInputError, match="y"):
            theano.function([x, y], unused)


def test_non_sequences_are_inputs_in_the_order_in_which_they_are_passed():
    x, k, w = T.dvector("x"), T.iscalar("k"), theano.shared(1.0, "w")
    j, unread, idle = T.dscalar("j"), T.dscalar("unread"), theano.shared(1.0, "idle")
    given = [w, k, T.constant(2.0), unread, idle]
    out, _ = theano.scan(lambda a, b, c, *_: a * c + a * b + j, sequences=x, non_sequences=given)
    (node,) = scan_op.scan_nodes([out])
    others = node.op.outer_non_seqs(node)
    assert others[:3] == [w, k, unread] and len(others) == 4 and idle not in others
    assert [v.name for v in node.op.inner_non_seqs()[:3]] == ["w", "k", "unread"]


def test_a_non_sequence_has_the_value_that_it_has_when_the_loop_begins():
    def ended(step, given):
        w.set_value(1.0)
        out, updates = theano.scan(lambda *args: (step(*args), {w: w + 1}), non_sequences=given, n_steps=3)
        return run(out, updates=updates).tolist()

    w = theano.shared(1.0, "w")
    e = w * 2
    assert ended(lambda: e + 0, []) == [2, 4, 6]
    assert ended(lambda given: given + 0, e) == [2, 2, 2]
    assert ended(lambda given: given + e, e) == [4, 4, 4]
    assert ended(lambda given: given + w * 2, e) == [4, 6, 8]
    assert ended(lambda given: given + w * 2, w) == [3, 6, 9]
    assert ended(lambda given: theano.scan(lambda v: v + e, non_sequences=given, n_steps=2)[0].sum(), e) == [8, 8, 8]


# Strict loops.


def strict(step, given, x):
    out, updates = theano.scan(step, sequences=x, non_sequences=given, strict=True)
    leaves = [v for v in theano.gof.graph.inputs([out]) if v.name in ("x", "y")]
    return run(out, leaves, [{"x": [1.0, 2.0], "y": 3.0}[v.name] for v in leaves], updates=updates).tolist()


def test_strict_loops_use_the_shared_variables_that_they_are_passed():
    x, y, w = T.dvector("x"), T.dscalar("y"), theano.shared(2.0, "w")
    e = w * 2
    assert strict(lambda a, b: a * w, [w], x) == [2, 4]
    assert strict(lambda a, b: a * e, [e], x) == [4, 8]
    assert strict(lambda a: a * y, [], x) == [3, 6]
    assert strict(lambda a: (a, {w: w + 1}), [], x) == [1, 2]
    for step, given in [
        (lambda a: a * w, []),
        (lambda a: a * e, []),
        (lambda a, b: a * b * w, [e]),
        (lambda a, b: a * (w * 2), [e]),
        (lambda a: (a, until(a > w)), []),
        (lambda a: (a, {w: w + theano.shared(1.0, "other w")}), []),
    ]:
        with pytest.raises(MissingInputError, match="w"):
            strict(step, given, x)
    many = theano.shared(np.ones(2), "w")
    with pytest.raises(MissingInputError, match="w"):
        theano.scan(lambda a: a + many.sum(), sequences=many, strict=True)
    with pytest.raises(MissingInputError, match="w"):
        theano.scan(lambda s: s + many.sum(), outputs_info=many, n_steps=2, strict=True)
    assert run(theano.scan(lambda a: a * w, sequences=x, n_steps=1, strict=True)[0], [x], [[1]]).tolist() == [3 * 2 - 2]


def test_strict_loops_inside_strict_loops():
    x, w = T.dvector("x"), theano.shared(2.0, "w")
    e = w * 2

    def nested(inner, outer, use):
        def step(a, *_):
            rows, _ = theano.scan(lambda b, *args: b * use(*args), sequences=x, non_sequences=inner, strict=True)
            return rows.sum() + a

        return strict(step, [*outer, x], x)

    assert nested([w], [w], lambda v: v) == [7, 8]
    assert nested([e], [e], lambda v: v) == [13, 14] == nested([e], [e], lambda v: e) == nested([e], [w], lambda v: v)
    for inner, outer in [([w], []), ([w], [e]), ([e], [])]:
        with pytest.raises(MissingInputError, match="w"):
            nested(inner, outer, lambda v: v)


# What updates use.


def test_updates_use_what_the_outputs_use_or_what_was_passed():
    x, y, w = T.dvector("x"), T.dscalar("y"), theano.shared(1.0, "w")
    e = y * 2

    def updated(step, given=(), **options):
        w.set_value(1.0)
        out, updates = theano.scan(step, sequences=x, non_sequences=list(given), **options)
        run([] if out is None else out, [x, y], [[1, 2], 3], updates=updates)
        return float(w.get_value())

    assert updated(lambda a, b: (a, {w: w + y}), [y]) == 7
    assert updated(lambda a: (a * y, {w: w + y})) == 7
    assert updated(lambda a: (a + e, {w: w + y})) == 7
    assert updated(lambda a, b: (a, {w: w + e}), [e]) == 13
    assert updated(lambda a: (a, {w: w + 1}, until(a > y))) == 3
    assert updated(lambda a: (a, {w: w + y}), n_steps=1) == 4
    # An extent is of what it is taken of, though it be known.
    assert updated(lambda a: (a + (np.ones(3) * y).shape[0], {w: w + y})) == 7
    assert updated(lambda a: ((a + T.zeros((np.ones((2, 3)) * y).shape[::-1])).sum(), {w: w + y})) == 7
    for step, given in [
        (lambda a: (a, {w: w + y}), []),
        (lambda a: (a, {w: w + e}), []),
        (lambda a: {w: w + y}, []),
        (lambda a, b: (a + b, {w: w + y}), [e]),
    ]:
        with pytest.raises(MissingInputError, match="y"):
            theano.scan(step, sequences=x, non_sequences=given)
    with pytest.raises(MissingInputError, match="y"):
        theano.scan(lambda a, s: (a + s, {w: w + y}), sequences=x, outputs_info=y)
    with pytest.raises(MissingInputError, match=r"x\[t\]"):
        theano.scan(lambda a: (a, theano.scan(lambda: {w: w + a}, n_steps=2)[1]), sequences=x)


# Random variables from outside.


def test_a_random_variable_from_outside_is_drawn_anew_in_each_step():
    srng = RandomStreams(seed=234)
    draw = srng.uniform((2,))
    out, updates = theano.scan(lambda: draw * 2, n_steps=3)
    assert list(updates) == [draw.rng]
    (state,) = numpys(234, 1)
    f = theano.function([], out, updates=updates)
    for _ in range(2):
        np.testing.assert_array_equal(f(), [2 * state.uniform(size=2) for _ in range(3)])


def test_a_random_variable_that_is_passed_is_drawn_once_per_call():
    srng = RandomStreams(seed=234)
    draw = srng.uniform((2,))
    out, updates = theano.scan(lambda given: draw + given, non_sequences=draw, n_steps=3)
    assert not updates
    (state,) = numpys(234, 1)
    f = theano.function([], out, updates=updates)
    for _ in range(2):
        np.testing.assert_array_equal(f(), [2 * state.uniform(size=2)] * 3)


@pytest.mark.parametrize("passed", [False, True])
def test_dropout_masks_of_a_recurrence(passed):
    # One mask for all steps where it is passed, one per step where it is not.
    weights, start = np.arange(6.0).reshape(3, 2) / 6, np.zeros(3)
    w, srng = theano.shared(weights, "w"), RandomStreams(1234)
    mask = srng.binomial(size=(3,), n=1, p=0.5)
    step = lambda s, *given: T.dot(w, T.ones(2)) * (given or [mask])[0] + s
    out, updates = theano.scan(step, outputs_info=T.constant(start), non_sequences=[mask] * passed, n_steps=4)
    (state,) = numpys(1234, 1)
    masks = [state.binomial(1, 0.5, 3) for _ in range(1 if passed else 4)]
    expected = np.cumsum([weights.sum(1) * masks[min(i, len(masks) - 1)] for i in range(4)], axis=0)
    np.testing.assert_allclose(run(out, updates=updates), expected, rtol=1e-12)
    assert len(updates) == 1 - passed


def test_random_variables_from_outside_in_loops_inside_loops():
    srng = RandomStreams(5)
    draw = srng.normal(())
    inner = lambda *_: theano.scan(lambda: draw, n_steps=2)
    out, updates = theano.scan(inner, n_steps=2)
    (state,) = numpys(5, 1)
    np.testing.assert_array_equal(run(out, updates=updates), state.normal(size=(2, 2)))
    given = lambda v: theano.scan(lambda b: b, n_steps=2, non_sequences=v)
    out, updates = theano.scan(given, n_steps=2, non_sequences=draw)
    assert not updates and len(set(run(out, updates=updates).ravel())) == 1


def test_default_updates_of_what_the_step_uses_from_outside():
    w = theano.shared(1.0, "w")
    w.default_update = w + 1
    e = w * 2
    out, updates = theano.scan(lambda: e + 0, n_steps=3)
    assert run(out, updates=updates).tolist() == [2, 4, 6] and w.get_value() == 4
    w.set_value(1.0)
    out, updates = theano.scan(lambda v: v + 0, non_sequences=e, n_steps=3)
    assert not updates and run(out, updates=updates).tolist() == [2, 2, 2] and w.get_value() == 2


def test_counter_based_draws_from_outside():
    srng = MRG_RandomStreams(3)
    draw = srng.uniform((2,))
    f = theano.function([], theano.scan(lambda: draw, n_steps=3)[0])
    first, second = f(), f()
    assert len(np.unique([first, second])) == 12
    passed = theano.function([], theano.scan(lambda v: v + 0, non_sequences=draw, n_steps=3)[0])()
    assert len(np.unique(passed)) == 2
    nested, _ = theano.scan(lambda: theano.scan(lambda: draw, n_steps=2)[0], n_steps=3)
    assert len(np.unique(run(nested))) == 12


@pytest.mark.parametrize("streams", [RandomStreams, MRG_RandomStreams])
def test_gradients_of_loops_with_draws_from_outside(streams):
    w = theano.shared(0.7, "w")
    e = w * streams(3).normal(())
    out, _ = theano.scan(lambda s: s * e + w, outputs_info=T.constant(np.float64(1)), n_steps=4)
    last = theano.function([], out[-1], no_default_updates=True)
    slope = float(theano.function([], T.grad(out[-1], w), no_default_updates=True)())
    ends = []
    for there in (0.7 + 1e-6, 0.7 - 1e-6):
        w.set_value(there)
        ends.append(float(last()))
    assert slope == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6)


# One constant step.


def test_one_step_takes_the_types_of_the_step():
    x = T.dvector("x")
    for info in (0, 0.0, np.int8(0), np.float32(0)):
        out, _ = theano.scan(lambda a, s: a + s, sequences=x, outputs_info=info, n_steps=1)
        assert out.type == T.dvector().type and run(out, [x], [[3, 4]]).tolist() == [3]
        with pytest.raises(ValueError):
            theano.scan(lambda a, s: a + s, sequences=x, outputs_info=info, n_steps=2)
    out, _ = theano.scan(lambda a, s: T.stack([a, s]), sequences=x, outputs_info=T.constant(ZERO), n_steps=1)
    assert out.type == T.dmatrix().type and run(out, [x], [[3, 4]]).tolist() == [[3, 0]]
    many, _ = theano.scan(lambda a, s: [s + a, a], sequences=x, outputs_info=[0, None], n_steps=1)
    assert [v.tolist() for v in run(many, [x], [[3, 4]])] == [[3], [3]]
    out, _ = theano.scan(lambda s: s + 300, outputs_info=0, n_steps=1)
    assert out.dtype == "int16" and run(out).tolist() == [300]


@pytest.mark.parametrize("taps", [[1], [2], 1, [0, 1], [-1], [-1, 1], [-2, -1], [5], [1, 3]])
@pytest.mark.parametrize("backwards", [False, True])
def test_one_step_reads_what_a_loop_reads(taps, backwards):
    x, n, values = T.dvector("x"), T.iscalar("n"), np.arange(1.0, 7)
    sequence = dict(input=x, taps=taps)
    one, _ = theano.scan(lambda *a: sum(a), sequences=sequence, n_steps=1, go_backwards=backwards)
    loop, _ = theano.scan(lambda *a: sum(a), sequences=sequence, n_steps=n, go_backwards=backwards)
    listed = np.atleast_1d(taps)
    low, high = min(0, *listed), max(0, *listed)
    first = len(values) - high - 1 if backwards else -low
    expected = [values[first + k] for k in listed]
    assert run(one, [x], [values]).tolist() == run(loop, [x, n], [values, 1]).tolist() == [sum(expected)]


# Checkpoints.


def test_checkpoints_take_no_taps_of_outputs():
    x, s, v = T.dvector("x"), T.dscalar("s"), T.dvector("v")
    for info in (dict(initial=v, taps=[-2, -1]), [dict(initial=s, taps=[-1])], [None, dict(initial=s, taps=[-1])]):
        with pytest.raises(RuntimeError, match="taps"):
            theano.scan_checkpoints(lambda a, *b: a, sequences=x, outputs_info=info, save_every_N=2)
    for info in (s, [s], dict(initial=s), [dict(initial=s)]):
        out, _ = theano.scan_checkpoints(lambda a, b: a + b, sequences=x, outputs_info=info, save_every_N=2)
        assert run(out, [x, s], [range(5), 1]).tolist() == [2, 7, 11]
    out, _ = theano.scan_checkpoints(lambda a, given: a * given, sequences=[x], non_sequences=[s], save_every_N=2)
    assert run(out, [x, s], [range(5), 2]).tolist() == [2, 6, 8]


def test_modes_of_loops_are_checked():
    x = T.dvector("x")
    for mode in ("FAST_RUN", "FAST_COMPILE", theano.Mode("py"), None):
        assert run(theano.scan(lambda v: v * 2, sequences=x, mode=mode)[0], [x], [[1, 2]]).tolist() == [2, 4]
    with pytest.raises(ValueError, match="nothing"):
        theano.scan(lambda v: v, sequences=x, mode="nothing")
