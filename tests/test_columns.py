"""Parts of arrays that integers of a step name, read and written: rows, columns, and whole axes between."""

import numpy as np
import pytest
from test_inner_loops import agree

import rscan as rs

RANDOM = np.random.default_rng(4)
B, C = RANDOM.normal(size=(5, 4)), RANDOM.normal(size=(3, 5, 4))
X, Y = RANDOM.integers(0, 4, size=12), RANDOM.integers(0, 3, size=12)
X[3] = -1


def parts(b, c, x, y):
    def step(x, y, h, table, cube):
        read = b[:, x] + c[y, :, x] + rs.sum(c[y, 1:, x]) + c[y][:, x]
        return {
            "h": rs.tanh(h * 0.5 + read),
            "table": table.at[:, x].set(h),
            "cube": cube.at[y, :, x].add(h),
            "planes": c[:, :, x],
            "lines": c[:, 2, x],
            "rows": c[y, :, :],
        }

    init = {"h": rs.zeros(5), "table": rs.zeros((5, 4)), "cube": rs.zeros((3, 5, 4))}
    out = rs.loop(step, over={"x": x, "y": y}, init=init)
    return [out.h, out.table, out.cube, out.planes, out.lines, out.rows]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_parts_are_those_of_numpy(monkeypatch, dtype):
    agree(monkeypatch, parts, B.astype(dtype), C.astype(dtype), X, Y)
    f = rs.compile(parts)
    h, table, cube, planes, lines, rows = f(B.astype(dtype), C.astype(dtype), X, Y)
    want = np.zeros((5, 4)), np.zeros((3, 5, 4))
    for t, (x, y) in enumerate(zip(X, Y, strict=True)):
        before = h[t - 1] if t else np.zeros(5)
        want[0][:, x] = before
        want[1][y, :, x] += before
        for got, part in [(planes, C[:, :, x]), (lines, C[:, 2, x]), (rows, C[y])]:
            np.testing.assert_array_equal(got[t], part.astype(dtype))
        np.testing.assert_allclose(table[t], want[0], rtol=1e-6)
        np.testing.assert_allclose(cube[t], want[1], rtol=1e-5)


def test_slopes(monkeypatch):
    def slopes(b, c, x, y):
        return rs.grad(sum(rs.sum(part**2) for part in parts(b, c, x, y)), [b, c])

    agree(monkeypatch, slopes, B, C, X, Y)


def test_numbers_outside_are_reported(monkeypatch):
    outside = X.copy()
    outside[7] = 4
    kind, text = agree(monkeypatch, parts, B, C, outside, Y)
    assert issubclass(kind, IndexError) and "E0202" in text
