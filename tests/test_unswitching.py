"""Conditions that all elements of a row share: kernels of which only a version runs give what the whole gives, to the bit."""

import numpy as np
import pytest
from test_inner_loops import agree

import rscan as rs


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("never", [False, True])
@pytest.mark.parametrize("n", [3, 64, 2000])
def test_rows_that_stay_as_they_are(monkeypatch, never, n):
    def build(on, w, x):
        def step(on, x):
            return rs.where(on & (x > -1.0), rs.sin(x) * w + 0.5, x)

        out = rs.loop(step, over=on, init=x)
        return [out, *rs.grad(rs.sum(out[-1] ** 2), [w, x])]

    on = np.zeros(40, bool) if never else np.random.default_rng(1).random(40) < 0.4
    agree(monkeypatch, build, on, numbers(n), numbers(n, seed=1))


@pytest.mark.parametrize("keep", ["rows", "last"])
def test_a_flag_that_the_state_itself_has(monkeypatch, keep):
    """A sieve: whether a number strikes its multiples is an element of what it strikes them from."""

    def build(candidates):
        def step(p, prime):
            return rs.where(prime[p] & (rs.arange(3000) % p == 0) & (rs.arange(3000) > p), False, prime)

        out = rs.loop(step, over=candidates, init=rs.arange(3000) > 1)
        return [out if keep == "rows" else out[-1]]

    agree(monkeypatch, build, np.arange(2, 60))


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8"])
def test_numbers_that_decide(monkeypatch, dtype):
    """By the number of the step, and by a scalar state that the same step changes."""

    def build(x, y):
        def step(t, h, calls):
            due = (t % 3 == 1) & (calls < 5)
            return {"h": rs.where(due, h * 3 + y, h).astype(dtype), "calls": rs.where(due, calls + 1, calls)}

        out = rs.loop(step, over=rs.arange(25), init={"h": x, "calls": rs.constant(0)})
        return [out.h, out.calls]

    agree(monkeypatch, build, (numbers(1500) * 9).astype(dtype), (numbers(1500, seed=2) * 9).astype(dtype))


def test_matrices_and_what_is_chosen_of_two(monkeypatch):
    def build(on, a, b, m):
        def step(on, m):
            return rs.where(on > 0.2, rs.exp(-(m**2)) + a[:, None], rs.tanh(m * b) - a[:, None])

        out = rs.loop(step, over=on, init=m)
        return [out[-1], *rs.grad(rs.sum(out[-1]), [on, a, b, m])]

    agree(monkeypatch, build, numbers(30), numbers(40, seed=1), numbers(40, 50, seed=2), numbers(40, 50, seed=3))
