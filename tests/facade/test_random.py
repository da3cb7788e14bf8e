"""Random streams: NumPy's numbers bit for bit."""

import copy

import numpy as np
import pytest

import rscan.theano as theano
import rscan.theano.tensor as T
from rscan.theano.sandbox.rng_mrg import MRG_RandomStreams
from rscan.theano.tensor.shared_randomstreams import RandomStreams


def numpys(seed, n):
    gen = np.random.RandomState(seed)
    return [np.random.RandomState(int(gen.randint(2**30))) for _ in range(n)]


def test_each_draw_is_numpys_stream():
    srng, p = RandomStreams(234), [0.2, 0.3, 0.5]
    draws = [
        srng.uniform((2, 2)),
        srng.uniform((3,), low=-1, high=T.constant(4.0)),
        srng.normal((3,), avg=1, std=2),
        srng.binomial((4,), n=3, p=0.4),
        srng.random_integers((5,), 2, 9),
        srng.permutation((), 5),
        srng.multinomial((2,), 5, p),
        srng.choice((3,), 7, False),
        srng.poisson((2,), 3.0),
    ]
    assert [d.dtype for d in draws[:4]] == ["float64", "float64", "float64", "int64"]
    f = theano.function([], draws)
    rs = numpys(234, len(draws))
    for _ in range(3):
        expected = [
            rs[0].uniform(size=(2, 2)),
            rs[1].uniform(-1, 4, 3),
            rs[2].normal(1, 2, 3),
            rs[3].binomial(3, 0.4, 4),
            rs[4].randint(2, 10, 5),
            rs[5].permutation(5),
            rs[6].multinomial(5, p, 2),
            rs[7].choice(7, 3, False),
            rs[8].poisson(3.0, 2),
        ]
        for found, wanted in zip(f(), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_draws_have_the_dtype_that_is_asked_for():
    srng = RandomStreams(3)
    draws = [srng.uniform((2,), dtype="float32"), srng.normal((2,), dtype="float32"), srng.uniform((2,)), srng.normal((2,))]
    assert [d.dtype for d in draws] == ["float32", "float32", "float64", "float64"]
    rs = numpys(3, 4)
    expected = [rs[0].uniform(size=2), rs[1].normal(size=2), rs[2].uniform(size=2), rs[3].normal(size=2)]
    for found, wanted in zip(theano.function([], draws)(), expected, strict=True):
        np.testing.assert_array_equal(found, wanted.astype(found.dtype))
    state = T.constant(T.raw_random.to_words(np.random.RandomState(1)))
    made = [T.raw_random.uniform(state, (2,), dtype="float32"), T.raw_random.normal(state, (2,))]
    assert [draw.dtype for _, draw in made] == ["float32", "float64"]


def test_a_draw_has_one_value_per_call_and_moves_on_unless_told_not_to():
    draw = RandomStreams(1).uniform((2,))
    zero = theano.function([], draw - draw)
    assert zero().tolist() == [0, 0]
    f, still = theano.function([], draw), theano.function([], draw, no_default_updates=True)
    assert (still() == still()).all() and not (f() == f()).all()


def test_seeds_and_states():
    srng = RandomStreams(1)
    draw = srng.normal(())
    f = theano.function([], draw)
    first = f()
    srng.seed(1)
    assert f() == first
    state = draw.rng.get_value(borrow=True)
    state.seed(7)
    draw.rng.set_value(state)
    assert f() == np.random.RandomState(7).normal()
    other = copy.deepcopy(f)
    assert f() == other()


def test_draws_in_loops_are_successive():
    srng = RandomStreams(5)
    out, updates = theano.scan(lambda: srng.uniform((2,)), n_steps=3)
    f = theano.function([], out, updates=updates)
    (state,) = numpys(5, 1)
    for _ in range(2):
        np.testing.assert_array_equal(f(), [state.uniform(size=2) for _ in range(3)])


def test_gibbs_sampling_with_shared_weights():
    # The sampler of Theano's documentation: the chain reads the weights, and its generators move on.
    w, srng = theano.shared(np.array([[0.5, -0.2], [0.1, 0.3]]), "w"), RandomStreams(3)

    def step(v):
        h = srng.binomial(v.shape, n=1, p=T.nnet.sigmoid(T.dot(v, w)), dtype="float64")
        return srng.binomial(v.shape, n=1, p=T.nnet.sigmoid(T.dot(h, w.T)), dtype="float64")

    start = T.dvector("start")
    out, updates = theano.scan(step, outputs_info=start, n_steps=4)
    found = theano.function([start], out, updates=updates)([1.0, 0.0])
    first, second = numpys(3, 2)
    v, weights, rows = np.array([1.0, 0.0]), w.get_value(), []
    for _ in range(4):
        h = first.binomial(1, 1 / (1 + np.exp(-v @ weights)))
        v = second.binomial(1, 1 / (1 + np.exp(-h @ weights.T))).astype(float)
        rows.append(v)
    np.testing.assert_array_equal(found, rows)


def test_gradients_do_not_go_through_draws():
    srng, mean = RandomStreams(1), T.dscalar("mean")
    with pytest.raises(theano.gradient.NullTypeGradError):
        T.grad(srng.normal((2,), avg=mean).sum(), mean)
    assert T.grad((mean + srng.normal((2,))).sum(), mean).eval({mean: 0}) == 2
    draw = srng.normal((), avg=mean)
    assert T.grad(draw * mean, mean, consider_constant=[draw]).type == mean.type
    with pytest.raises(theano.gradient.NullTypeGradError):
        T.grad(draw, draw.rng)
    loop, _ = theano.scan(lambda h: srng.normal((), avg=h * mean), outputs_info=np.float64(0), n_steps=3)
    with pytest.raises(theano.gradient.NullTypeGradError):
        T.grad(loop[-1], mean)
    loop, _ = theano.scan(lambda h: h * mean + srng.normal(()), outputs_info=np.float64(1), n_steps=3)
    assert T.grad(loop[-1], mean).ndim == 0


def test_mrg_streams():
    srng = MRG_RandomStreams(seed=1)
    u, n, b = srng.uniform((1000,)), srng.normal((1000,), avg=3), srng.binomial((1000,), p=0.25)
    f = theano.function([], [u, n, b])
    first, second = f(), f()
    assert not (first[0] == second[0]).any() and abs(first[1].mean() - 3) < 0.2 and abs(first[2].mean() - 0.25) < 0.06
    assert b.dtype == "int64" and set(first[2]) == {0, 1}
    out, updates = theano.scan(lambda: srng.uniform(()), n_steps=4)
    assert len(set(theano.function([], out, updates=updates)().tolist())) == 4
    np.testing.assert_array_equal(srng.multinomial(pvals=np.full((3, 4), 0.25)).eval().sum(1), [1, 1, 1])


def test_no_step_of_a_loop_that_draws():
    """Rows that no step makes have the extents of a trial step: it draws, and must not do so from a state of zeros, which never ends."""
    x, n = T.dvector("x"), T.iscalar("n")
    stream = RandomStreams(1)
    rows, updates = theano.scan(lambda: x * stream.normal(()), n_steps=n)
    f = theano.function([x, n], rows, updates=updates)
    assert f(np.zeros(3), 0).shape == (0, 3)
    expected = np.random.RandomState(int(np.random.RandomState(1).randint(2**30))).normal(size=2)
    np.testing.assert_array_equal(f(np.ones(3), 2), expected[:, None] * np.ones(3))
