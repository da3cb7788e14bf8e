"""Random steps of products, slices, joins, sums and functions on a device: the processor's bits, gradients too.

`RSCAN_RANDOM_STEPS=1000` has so many of them in place of a few.
"""

import os

import numpy as np
import pytest
from test_devices import both, device  # noqa: F401

import rscan as rs

COUNT = int(os.environ.get("RSCAN_RANDOM_STEPS", "24"))
WIDTHS = [8, 12, 16, 24, 32, 40]


class Step:
    """A step of two states that a seed describes; its matrices are made the first time that it is traced."""

    def __init__(self, seed, width, dtype):
        self.seed, self.width, self.dtype = seed, width, dtype
        self.matrices, self.values = [], []

    def matrix(self, used, rows, columns):
        if used == len(self.matrices):
            rng = np.random.default_rng([self.seed, used])
            self.matrices.append(rs.tensor(self.dtype, [None, None], f"w{used}"))
            self.values.append((rng.normal(size=(rows, columns)) / np.sqrt(rows)).astype(self.dtype))
        return self.matrices[used]

    def __call__(self, x, h, c):
        rng, used = np.random.default_rng(self.seed), 0
        values = [(h, self.width), (c, self.width), (x, self.width)]
        for _ in range(rng.integers(3, 9)):
            value, n = values[-1] if rng.random() < 0.6 else values[rng.integers(len(values))]
            kind = rng.integers(10)
            if kind < 3:
                wide = int(rng.choice([*WIDTHS, 48]))
                values.append((value @ self.matrix(used, n, wide), wide))
                used += 1
            else:
                values.append(self.other(kind, rng, value, n, values))
        (h2, n), (c2, m) = values[-1], values[rng.integers(len(values))]
        h2 = rs.tanh(h2 @ self.matrix(used, n, self.width))
        c2 = rs.tanh(c2 @ self.matrix(used + 1, m, self.width))
        return dict(h=h2, c=0.5 * (c + c2))

    def other(self, kind, rng, value, n, values):
        """Something else made of a value with so many columns, and how many columns that has."""
        other, m = values[rng.integers(len(values))]
        if kind == 3:
            return [rs.tanh, rs.erf, rs.sigmoid][rng.integers(3)](value), n
        if kind == 4 and n == m:
            return value * 0.5 + other, n
        if kind == 5 and n > 8:
            first = int(rng.integers(0, n - 7))
            last = int(rng.integers(first + 4, n + 1))
            return value[:, first:last], last - first
        if kind == 6 and n + m <= 100:
            return rs.concatenate([value, other], axis=1), n + m
        if kind == 7:
            return value - rs.mean(value, axis=1, keepdims=True), n
        if kind == 8:
            return rs.softmax(value, axis=1), n
        return (value[:, ::-1] if rng.random() < 0.5 else value[::-1]), n


@pytest.mark.parametrize("seed", range(COUNT))
def test_random_steps(device, seed):  # noqa: F811
    rng = np.random.default_rng([seed, 1])
    dtype, rows, width = str(rng.choice(["float32", "float64"])), int(rng.choice([1, 2, 3, 4, 5, 9, 16, 33])), int(rng.choice(WIDTHS))
    step, x = Step(seed, width, dtype), rs.tensor(dtype, [None] * 3, "x")
    zero = rs.zeros((rows, width), dtype)
    out = rs.loop(step, over=x, init=dict(h=zero + 0.1, c=zero - 0.2))
    cost = rs.sum(out.h[-1] ** 2) + rs.sum(out.c)
    outputs = [out.h[-1], out.c] if seed % 2 else [cost, *rs.grad(cost, [x, step.matrices[-2]])]
    args = rng.normal(size=(int(rng.integers(2, 6)), rows, width)).astype(dtype), *step.values
    both(device, [x, *step.matrices], outputs, *args, on_unused_input="ignore")
