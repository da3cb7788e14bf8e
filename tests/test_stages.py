"""Loops of one lane in stages: what does not wait for the step before is computed for many steps at once, with the bits of the law."""

import numpy as np
import pytest

import rscan as rs

RNG = np.random.default_rng(3)


def garch(p, r):
    def step(x, h):
        h = p[0] + p[1] * x * x + p[2] * h
        return dict(h=h, ll=rs.log(h) + x * x / h, seen=rs.exp(-h) > 0.3)

    out = rs.loop(step, over=dict(x=r), init=dict(h=1.0))
    return rs.sum(out.ll), out.h, out.seen


def tables(p, r):
    # What a step looks up hangs on the step before in one table, and not in the other.
    weights = rs.constant(np.linspace(0.5, 1.5, 7))

    def step(x, k, s, old):
        k = (k * 3 + 1) % 7
        return dict(k=k, s=s * p[2] + weights[k] * rs.tanh(x * p[0]), old=rs.log1p(x * x), late=rs.exp(-old) * rs.sin(s))

    out = rs.loop(step, over=dict(x=r), init=dict(k=1, s=0.0, old=0.0))
    return rs.sum(out.late * out.s), out.k, out.old


def both(f, p, r, monkeypatch):
    found = []
    for engine in ("auto", "eval"):
        monkeypatch.setenv("RSCAN_ENGINE", engine)
        loss = rs.compile(lambda p, r: f(p, r)[0])
        found.append([*rs.compile(f)(p, r), *rs.compile(rs.value_and_grad(loss))(p, r)])
    return found


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 256, 257, 700])
@pytest.mark.parametrize("f", [garch, tables])
def test_stages_have_the_bits_of_the_law(f, n, monkeypatch):
    p, r = np.array([0.1, 0.2, 0.7]), RNG.normal(size=n)
    got, want = both(f, p, r, monkeypatch)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


def test_explain_tells_of_stages(chosen_engine):
    f = rs.compile(garch)
    f(np.array([0.1, 0.2, 0.7]), RNG.normal(size=20_000))
    assert "what does not wait for the step before has steps as lanes" in str(f.explain())
