"""Loops in steps whose length is computed: over blocks, of which lists are made for the lengths that occur, and such of no step."""

import re

import numpy as np
import pytest
from test_inner_loops import agree

import rscan as rs

W = np.random.default_rng(0).normal(size=(3, 3)) / 2


def checkpoints(every):
    def build(xs, w):
        return rs.scan_checkpoints(lambda x, h: rs.tanh(x + h @ w), xs, rs.zeros(3), save_every_N=every)[0]

    return build


def counted(every):
    """A block's loop runs as often as there are rows left."""

    def build(xs, w):
        n = xs.shape[0]

        def block(j, h):
            first = j * every
            steps = rs.minimum(n - first, every)
            return rs.scan(lambda i, h: rs.tanh(xs[first + i] + h @ w), rs.arange(steps), h)[0][-1]

        return rs.scan(block, rs.arange((n + every - 1) // every), rs.zeros(3))[0]

    return build


def sliced(every):
    """A block's loop is over rows from here to there."""

    def build(xs, w):
        n = xs.shape[0]

        def block(j, h):
            rows = xs[j * every : rs.minimum((j + 1) * every, n)]
            return rs.scan(lambda x, h: rs.tanh(x + h @ w), rows, h)[0][-1]

        return rs.scan(block, rs.arange((n + every - 1) // every), rs.zeros(3))[0]

    return build


def clipped(every):
    """As `sliced`, where what reaches beyond the rows is left to the slice."""

    def build(xs, w):
        def block(j, h):
            return h + rs.tanh(rs.sum(xs[j * every : j * every + rs.minimum(j + 1, every)], axis=0)) @ w

        return rs.scan(block, rs.arange((xs.shape[0] + every - 1) // every), rs.zeros(3))[0]

    return build


def alternating(every):
    """Two lengths, in turns."""

    def build(xs, w):
        def block(j, h):
            steps = rs.minimum(1 + (j % 2) * every, xs.shape[0])
            return rs.scan(lambda i, h: rs.tanh(xs[i] + h @ w), rs.arange(steps), h)[0][-1]

        return rs.scan(block, rs.arange(6), rs.zeros(3))[0]

    return build


@pytest.mark.parametrize("n", [1, 4, 11, 12])
@pytest.mark.parametrize("every", [1, 4, 20])
@pytest.mark.parametrize("blocks", [checkpoints, counted, sliced, clipped, alternating])
def test_engines_agree(monkeypatch, blocks, every, n):
    xs = np.random.default_rng(1).normal(size=(n, 3))
    agree(monkeypatch, blocks(every), xs, W)
    agree(monkeypatch, lambda xs, w: rs.grad(rs.sum(blocks(every)(xs, w) ** 2), [xs, w]), xs, W)


@pytest.mark.parametrize("blocks", [checkpoints, counted, sliced])
def test_blocks_are_the_loop(blocks):
    xs = np.random.default_rng(1).normal(size=(22, 3))
    x, w = rs.matrix("x"), rs.matrix("w")
    whole = rs.scan(lambda x, h: rs.tanh(x + h @ w), x, rs.zeros(3))[0]
    at = np.r_[3:22:4, 21]
    expected = rs.function([x, w], [whole[at], *rs.grad(rs.sum(whole[at] ** 2), [x, w])])(xs, W)
    rows = blocks(4)(x, w)
    found = rs.function([x, w], [rows, *rs.grad(rs.sum(rows**2), [x, w])])(xs, W)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.usefixtures("chosen_engine")
@pytest.mark.parametrize(
    ("blocks", "n", "lists"),
    [(checkpoints, 80, 1), (checkpoints, 78, 2), (counted, 80, 1), (counted, 78, 2), (sliced, 78, 2), (alternating, 78, 2)],
)
def test_lists_are_made_for_lengths(blocks, n, lists):
    x, w = rs.matrix("x"), rs.matrix("w")
    rows = blocks(4)(x, w)
    f = rs.function([x, w], [rows, *rs.grad(rs.sum(rows**2), [x, w])])
    for _ in range(2):
        f(np.ones((n, 3)), W)
    found = re.findall("a list for each of ([0-9]+) integers", str(f.explain()))
    assert found and {int(k) for k in found} == {lists}, f.explain()


def popped(size):
    """Stacks of which a token takes some elements, or none: the loop in the step may run no step."""

    def row(tokens):
        def step(k, v, n):
            def pop(v, n):
                return (v.at[n - 1].set(v[n - 1] + k), n - 1), rs.until((n <= 1) | (v[rs.maximum(n - 2, 0)] < k))

            v, n = rs.loop(pop, init=(v, n), n_steps=rs.where((n > 0) & (k < 0), 8, 0)).last
            return v.at[n].set(k), rs.minimum(n + (k > 0), 6)

        return rs.loop(step, over=tokens, init=(rs.zeros(size, dtype="int64"), rs.constant(0))).last

    return lambda tokens: list(rs.vmap(row)(tokens))


@pytest.mark.parametrize("size", [8, 120])
def test_loops_in_steps_that_may_run_no_step(monkeypatch, size):
    tokens = np.random.default_rng(0).integers(-3, 5, size=(16, 60))
    agree(monkeypatch, popped(size), tokens)
    agree(monkeypatch, popped(size), tokens[:1])
    agree(monkeypatch, popped(size), np.abs(tokens))


@pytest.mark.usefixtures("chosen_engine")
def test_lists_run_loops_of_no_step():
    f = rs.compile(popped(120))
    f(np.random.default_rng(0).integers(-3, 5, size=(16, 60)))
    assert "check 0 <= it" in f.plan() and "check 1 <= it" not in f.plan()
