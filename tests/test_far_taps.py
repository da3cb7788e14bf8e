"""States that steps see many rows back: the evaluator's bits with every engine."""

import numpy as np
import pytest
from test_inner_loops import agree

import rscan as rs


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("steps", [1, 15, 16, 40, 333])
@pytest.mark.parametrize("taps", [[-16], [-17, -1], [-60, -18, -15, -2], [-1, -16, -32], [-100, -99]], ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (9,), (3, 4)], ids=str)
def test_rows_far_back(monkeypatch, taps, steps, shape):
    def build(history, w):
        def step(x):
            return {"x": rs.tanh(sum(rs.sin(tap) * (0.3 + k) for k, tap in enumerate(x if len(taps) > 1 else [x])) * w)}

        out = rs.loop(step, init={"x": rs.taps(history, *taps)}, n_steps=steps).x
        last = rs.loop(step, init={"x": rs.taps(history, *taps)}, n_steps=steps).x[-1]
        return [out, last, *rs.grad(rs.sum(out**2), [history, w])]

    agree(monkeypatch, build, 0.5 * numbers(-min(taps), *shape), np.array(0.7))


def test_beside_other_states_and_until(monkeypatch):
    def build(history, x):
        def step(x, y, z):
            far, near = y
            return {"y": 0.5 * far - 0.2 * near + x, "z": z + far}, rs.until(z > 3.0)

        out = rs.loop(step, over=x, init={"y": rs.taps(history, -20, -1), "z": 0.0})
        return [out.y, out.z]

    for seed in range(6):
        agree(monkeypatch, build, numbers(23, seed=seed), 0.4 * numbers(300, seed=seed + 9))
