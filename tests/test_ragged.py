"""Loops over sequences of different lengths side by side, with masks, and without a number of steps."""

import numpy as np
import pytest
from helpers import same

import rscan as rs

RNG = np.random.default_rng(2)
X, LENGTHS, H0, W = RNG.standard_normal((6, 4, 3)), np.array([2, 0, 6, 5]), RNG.standard_normal((4, 3)), RNG.standard_normal((3, 3))


def alone(x, h, reverse):
    """One row by itself."""
    rows = np.zeros_like(x)
    outs = np.zeros(len(x))
    for i in reversed(range(len(x))) if reverse else range(len(x)):
        outs[i] = h.sum()
        h = np.tanh(x[i] + h @ W)
        rows[i] = h
    return rows, outs, h


@pytest.mark.parametrize("reverse", [False, True])
def test_rows_of_different_lengths(reverse):
    x, h0, w, n = rs.dtensor3("x"), rs.dmatrix("h0"), rs.dmatrix("w"), rs.lvector("n")
    out = rs.loop(lambda x, h: dict(h=rs.tanh(x + h @ w), y=rs.sum(h, 1)), over=dict(x=x), init=dict(h=h0), lengths=n, reverse=reverse)
    f = rs.function([x, h0, w, n], [out.h, out.y, out.last.h, *rs.grad(rs.sum(out.last.h**2), [x, h0, w])])
    for lengths in (LENGTHS, LENGTHS * 0, LENGTHS % 2):
        h, y, last, dx, dh, dw = f(X, H0, W, lengths)
        of_w = np.zeros_like(W)
        for b, k in enumerate(lengths):
            rows, outs, end = alone(X[:k, b], H0[b], reverse)
            np.testing.assert_allclose(h[:k, b], rows, rtol=1e-12)
            np.testing.assert_allclose(y[:, b], [*outs, *[0] * (len(y) - k)], rtol=1e-12)
            np.testing.assert_allclose(last[b], end, rtol=1e-12)
            one = rs.loop(lambda x, h: rs.tanh(x + h @ w), over=x[:, 0], init=h0[0], reverse=reverse)
            g = rs.function([x, h0, w], rs.grad(rs.sum(one.last**2), [x, h0, w]))(X[:k, b : b + 1], H0[b : b + 1], W)
            np.testing.assert_allclose(dx[:k, b], g[0][:, 0], rtol=1e-9, atol=1e-12)
            assert not dx[k:, b].any()
            np.testing.assert_allclose(dh[b], g[1][0], rtol=1e-9, atol=1e-12)
            of_w += g[2]
        np.testing.assert_allclose(dw, of_w, rtol=1e-9, atol=1e-12)
    for bad, match in (([7, 1, 1, 1], "E0109|larger than"), ([-1, 1, 1, 1], "negative"), ([1, 1, 1], "broadcast")):
        with pytest.raises(rs.RscanError, match=match):
            f(X, H0, W, np.array(bad))
    assert f(X[:, :0], H0[:0], W, LENGTHS[:0])[2].shape == (0, 3)


def test_the_longest_row_tells_the_number_of_steps():
    out = rs.loop(lambda x, h: h + x, over=np.ones((9, 2)), init=np.zeros(2), lengths=[1, 4])
    assert rs.eval(out.steps) == 4
    same(rs.loop(lambda x, s: s + x, over=np.arange(4), init=0, lengths=2).eval(), np.array([0, 1]))


ONE_FOR_ALL = "lengths has one entry for several rows; a number without axes is the length of all rows"


@pytest.mark.parametrize("known", [True, False])
def test_one_entry_is_no_length_of_several_rows(known):
    x, n = rs.tensor("float64", (3, 4 if known else None)), rs.lvector("n")
    f = rs.function([x, n], rs.loop(lambda x, h: h + x, over=x, init=rs.zeros_like(x[0]), lengths=n))
    same(f(np.ones((3, 4)), [1, 2, 1, 1]), np.array([[1.0, 1, 1, 1], [1, 2, 1, 1]]))
    with pytest.raises(rs.errors.AssertionFailedError, match=ONE_FOR_ALL):
        f(np.ones((3, 4)), [2])
    if not known:
        same(f(np.ones((3, 1)), [2]), np.array([[1.0], [2.0]]))


def test_one_entry_is_no_length_of_several_columns():
    f = rs.compile(lambda x, n: rs.loop(lambda x, h: h + x, over=x, init=rs.zeros_like(x[0]), lengths=n).last)
    same(f(np.ones((3, 2, 2)), [[1, 2], [3, 3]]), np.array([[1.0, 2], [3, 3]]))
    same(f(np.ones((3, 2, 1)), [[1], [3]]), np.array([[1.0], [3.0]]))
    same(f(np.ones((3, 2)), 2), np.array([2.0, 2.0]))
    with pytest.raises(rs.errors.AssertionFailedError, match=ONE_FOR_ALL):
        f(np.ones((3, 2, 2)), [[1], [3]])


def test_masks():
    x, mask = np.arange(12.0).reshape(4, 3), np.array([[1, 0, 1], [0, 0, 1], [1, 1, 0], [0, 0, 0]], bool)
    out = rs.loop(lambda x, s: {"s": s + x, "y": x + 1}, over={"x": x}, init={"s": 0.0}, mask=mask)
    same(out.s.eval(), np.cumsum(np.where(mask, x, 0), 0))
    same(out.y.eval(), np.where(mask, x + 1, 0))
    back = rs.loop(lambda x, s: s + x, over=x, init=0.0, mask=mask, reverse=True)
    same(back.eval(), np.cumsum(np.where(mask, x, 0)[::-1], 0)[::-1])
    same(rs.loop(lambda x, s: s + x, over=x[:, 0].astype("float32"), init=0.0, mask=[1, 0, 1, 0]).eval(), np.array([0, 0, 6, 6], "float32"))


def test_several_past_values():
    out = rs.loop(lambda y: y[0] + y[1], init=rs.taps(np.ones((2, 2)), -2, -1), lengths=[2, 4])
    same(out.eval(), np.array([[2.0, 2.0], [3.0, 3.0], [3.0, 5.0], [3.0, 8.0]]))


def test_lengths_for_many_rows_and_in_a_step():
    x, lengths = np.ones((2, 5, 3)), np.array([[1, 2, 5], [0, 3, 3]])
    for reverse in (False, True):
        total = lambda x, n, reverse=reverse: rs.loop(lambda a, s: s + a, over=x, init=rs.zeros(3), lengths=n, reverse=reverse).last
        same(rs.vmap(total)(x, lengths).eval(), lengths * 1.0)
        same(rs.vmap(total, in_axes=(None, 0))(x[0], lengths).eval(), lengths * 1.0)
        same(rs.loop(lambda n, total=total: total(rs.constant(x[0]), n), over=lengths).eval(), lengths * 1.0)
    same(rs.vmap(lambda x, m: rs.loop(lambda a, s: s + a, over=x, init=rs.zeros(3), mask=m).last)(x, x > 0).eval(), np.full((2, 3), 5.0))
    last = lambda w: rs.loop(lambda a, s: s * w + a, over=np.ones((4, 2)), init=rs.zeros(2), lengths=[2, 4]).last
    rs.verify_grad(lambda w: rs.grad(rs.sum(last(w) ** 2), w), [np.array(0.5)])


WRONG = {
    "floats": dict(lengths=2.5),
    "text": dict(lengths="ab"),
    "and steps": dict(lengths=2, n_steps=3),
    "and a mask": dict(lengths=2, mask=[True] * 4),
    "rows": dict(lengths=[2]),
    "mask of floats": dict(mask=np.ones(4)),
    "mask of one": dict(mask=True),
    "taps": dict(init=rs.taps(np.zeros(2), -2), lengths=2),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes(name):
    with pytest.raises(rs.ScanError) as caught:
        rs.loop(lambda x, s: s + x, **{"over": np.arange(4.0), "init": 0.0, **WRONG[name]})
    assert caught.value.code == "E0121"


def halved(x):
    return rs.loop(lambda y: (y / 2, rs.until(y < 2)), init=x)


def test_a_condition_alone_ends_a_loop():
    x = rs.dscalar("x")
    out = halved(x)
    f = rs.function([x], [out, out.last, out.steps, rs.grad(out.last, x)])
    for start, expected in ((100.0, [50, 25, 12.5, 6.25, 3.125, 1.5625, 0.78125]), (1.0, [0.5])):
        rows, last, steps, slope = f(start)
        same(rows, np.array(expected, float))
        assert (last, steps, slope) == (expected[-1], len(expected), 0.5 ** len(expected))
    rows, _ = rs.scan(lambda y: (y / 2, rs.until(y < 2)), outputs_info=x)
    assert rs.function([x], rows)(1e9).size == 30
    v = rs.dvector("v")
    each = rs.vmap(lambda x: halved(x).last)(v)
    g = rs.function([v], [each, rs.grad(rs.sum(each), v)])
    values, slopes = g([1.0, 100.0, 1e6])
    np.testing.assert_allclose(values, [0.5, 0.78125, 1e6 / 2**20])
    np.testing.assert_allclose(slopes, [0.5, 2.0**-7, 2.0**-20])


def test_a_condition_alone_in_a_step():
    v = rs.dvector("v")
    f = rs.function([v], rs.loop(lambda x: halved(x).last, over=v))
    np.testing.assert_allclose(f([1.0, 100.0]), [0.5, 0.78125])


def test_theanos_loops_have_a_maximum():
    from rscan import theano
    from rscan.theano import tensor as T

    with pytest.raises(rs.ScanError) as caught:
        theano.scan(lambda y: (y / 2, theano.scan_module.until(y < 2)), outputs_info=T.dscalar())
    assert caught.value.code == "E0110"


def test_a_number_is_the_first_state_of_rows_that_a_call_counts():
    @rs.compile
    def decayed(x, n):
        return rs.loop(lambda x, h: 0.5 * h + x, over=x, init=0.0, lengths=n).last

    np.testing.assert_array_equal(decayed(np.ones((3, 4)), np.array([1, 2, 3, 0])), [1.0, 1.5, 1.75, 0.0])
    np.testing.assert_array_equal(decayed(np.ones((2, 1)), np.array([2])), [1.5])


@pytest.mark.parametrize("reverse", [False, True])
def test_rows_of_lengths_run_as_many_steps_backwards(reverse):
    f = rs.compile(
        lambda x, n: rs.loop(lambda x, s: dict(s=0.5 * s + x), over=dict(x=x), init=dict(s=rs.zeros(3)), lengths=n, reverse=reverse)
    )
    x, n = np.arange(18.0).reshape(6, 3), np.array([1, 0, 4])
    got = f(x, n)["s"]
    assert got.shape == (4, 3)
    state, rows = np.zeros(3), [None] * 4
    for t in range(3, -1, -1) if reverse else range(4):
        rows[t] = state = np.where(t < n, 0.5 * state + x[t], state)
    np.testing.assert_allclose(got, np.stack(rows))
    assert f(x, np.array([0, 0, 0]))["s"].shape == (0, 3)
    with pytest.raises(rs.errors.RscanError, match=r"E0109|E0301"):
        f(x[:3], n)
