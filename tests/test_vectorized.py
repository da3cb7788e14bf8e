"""Loops whose steps do not wait for each other: the steps are lanes, and give the evaluator's bits with every engine."""

import numpy as np
import pytest
from test_inner_loops import agree

import rscan as rs

LANES = "that do not wait for each other are lanes"
STEPS = [0, 1, 31, 32, 33, 100, 1024, 1030, 2500]


def numbers(*shape, dtype="float64", seed=0):
    return (2 * np.random.default_rng(seed).normal(size=shape)).astype(dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", STEPS)
def test_a_small_network_of_each_row(monkeypatch, n, dtype):
    def build(x, y, w, v):
        def one(x, y):
            cost = (rs.tanh(x @ w) @ v - y) ** 2
            return {"cost": cost, "slopes": rs.grad(cost, w), "large": cost > 1.0}

        out = rs.loop(one, over={"x": x, "y": y})
        return [out.cost, out.slopes, out.large]

    args = numbers(n, 3, dtype=dtype), numbers(n, dtype=dtype, seed=1), numbers(3, 4, dtype=dtype), numbers(4, dtype=dtype, seed=2)
    agree(monkeypatch, build, *args, reached=LANES if n >= 32 else None)


@pytest.mark.parametrize("n", STEPS)
def test_rows_read_backwards_and_in_part(monkeypatch, n):
    def build(x, k):
        def one(x, k):
            a, b, c = x[0], x[1], x[2]
            for _ in range(4):
                a, b, c = rs.sin(a * b), rs.exp(-(c**2)) + a, rs.where(b > a, c * b, k - c)
            return rs.stack([a, b, c]), a * b + c

        rows, last = rs.loop(one, over={"x": x[::-1], "k": k})
        return [rows, last[::-1]]

    agree(monkeypatch, build, numbers(n, 3), numbers(n, seed=1), reached=LANES if n >= 32 else None)


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "bool"])
@pytest.mark.parametrize("n", [40, 1100])
def test_integers(monkeypatch, n, dtype):
    x = np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 100, size=(n, 4)).astype(dtype)

    def build(x):
        def one(x):
            a, b = rs.cast(x[0], "int64"), rs.cast(x[1], "int64")
            for k in range(6):
                a, b = (a * 7 + b) % 101, rs.where(a > b, a - b, b + k)
            return rs.stack([a, b]), x[2] == x[3], rs.cast(a, dtype)

        return list(rs.loop(one, over=x))

    agree(monkeypatch, build, x)


@pytest.mark.parametrize("n", [33, 1030])
def test_what_steps_share_or_count_is_no_lane(monkeypatch, n):
    """The last of what all write, the number of the step, tables, states that are handed on, loops that stop."""

    def build(x, table):
        def chain(a):
            return rs.tanh(rs.sin(a[0] * a[1]) + rs.exp(-(a[2] ** 2)) * rs.cos(a[0]))

        last = rs.loop(chain, over=x).last
        at = rs.cast(rs.abs(x[:, 0]) * 3, "int64") % 8
        read = rs.loop(lambda a, k: chain(a) * table[k] + rs.tanh(table[k]), over=[x, at])
        carried = rs.loop(lambda a, h: chain(a) + 0.5 * h, over=x, init=0.0)
        counted = rs.loop(lambda a, t: chain(a) * rs.sin(t * 0.5) + rs.cos(t), over=[x, rs.arange(n)])
        stopped = rs.loop(lambda a, s: (chain(a) + 0 * s, rs.until(a[0] > 3.0)), over=x, init=0.0)
        return [last, read, carried, counted, stopped]

    agree(monkeypatch, build, numbers(n, 3), numbers(8, seed=1))
