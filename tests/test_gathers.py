"""Reads and writes by index arrays in steps: the evaluator's bits, or its error, with every engine."""

import numpy as np
import pytest
from test_inner_loops import agree

import rscan as rs

DTYPES = ("int8", "int32", "int64", "uint8", "uint64")


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("outside", [False, True])
def test_elements_and_rows(monkeypatch, dtype, outside):
    def build(at, x, M):
        def step(at, x):
            rows = M[at]
            return {"x": x[at] + 0.5 * rs.sum(rows, axis=1), "rows": rows, "both": M[at, at % 3]}

        out = rs.loop(step, over=at, init={"x": x})
        return [out.x, out.rows, out.both, *rs.grad(rs.sum(out.x**2), [x, M])]

    at = np.random.default_rng(1).integers(0, 40, size=(5, 40)).astype(dtype)
    if dtype.startswith("i"):
        at[1, 3] = -40
    if outside:
        at[3, 7] = 41
    agree(monkeypatch, build, at, numbers(40), numbers(40, 3))


@pytest.mark.parametrize("mode", ["set", "add"])
@pytest.mark.parametrize("one", [False, True])
@pytest.mark.parametrize("outside", [False, True])
def test_written(monkeypatch, mode, one, outside):
    def build(at, x, y):
        def step(at, x):
            new = rs.tanh(x[at]) + y if not one else y[0]
            return getattr(x.at[at], mode)(new)

        out = rs.loop(step, over=at, init=x)
        return [out, *rs.grad(rs.sum(out**2), [x, y])]

    at = np.random.default_rng(2).integers(-50, 50, size=(6, 20))
    if outside:
        at[4, 19] = -51
    agree(monkeypatch, build, at, numbers(50), numbers(20, seed=1))


def test_axes_between_and_several_arrays(monkeypatch):
    def build(at, x):
        def step(at, x):
            y = x[:, at] + x[at[0], at][:, None][:6] * 0.1
            return x.at[:, at].add(rs.tanh(y)).at[at[:2], at[2:4], :].set(rs.ones((2, 2)))

        out = rs.loop(step, over=at, init=x)
        return [out, rs.grad(rs.sum(out**3), x)]

    agree(monkeypatch, build, np.random.default_rng(3).integers(0, 6, size=(4, 6)), numbers(6, 6, 2))


def test_no_indices_and_no_elements(monkeypatch):
    def build(at, x):
        return rs.loop(lambda at, x: x.at[at].add(x[at] * 2.0) + rs.sum(x[at]), over=at, init=x)

    agree(monkeypatch, build, np.zeros((3, 0), dtype="int64"), numbers(30))
    agree(monkeypatch, build, np.zeros((3, 2), dtype="int64"), numbers(0))


@pytest.mark.parametrize("outside", [False, True])
def test_index_arrays_that_are_broadcast(monkeypatch, outside):
    """Rows by a column of numbers, columns by a matrix of them; of the middle of three axes, too."""

    def build(at, rows, x, z):
        def step(at, x, total):
            mine = x[rows[:, None], at]
            return x.at[rows[:, None], at].add(0.5 * mine), total + rs.sum(z[rows[:, None], at] * mine[..., None])

        out = rs.loop(step, over=at, init=[x, rs.constant(0.0)])
        return [*out, *rs.grad(rs.sum(out[0][-1] ** 2) + out[1][-1], [x, z])]

    at = np.random.default_rng(5).integers(-30, 30, size=(6, 4, 7))
    if outside:
        at[4, 3, 5] = 30
    agree(monkeypatch, build, at, np.array([3, -1, 0, 2]), numbers(5, 30), numbers(5, 30, 2, seed=1))


@pytest.mark.usefixtures("chosen_engine")
def test_rows_by_number_are_no_calls_in_a_list():
    h0, u, i = rs.dmatrix("h0"), rs.dmatrix("u"), rs.lvector("i")
    f = rs.function([h0, u, i], rs.loop(lambda i, h: rs.tanh(h @ u) + h[i] @ u, over=i, init=h0))
    f(numbers(3, 40), numbers(40, 40) / 9, [0, 2, 1, 2])
    [loop] = f.explain().loops
    assert "steps of" in loop.variants[0].engine and "calls" not in loop.variants[0].engine


@pytest.mark.parametrize("mode", ["set", "add"])
def test_columns_and_rows_that_a_number_names_are_written(monkeypatch, mode):
    """One value for all, or one for each: into a column, a row, and a matrix in the middle."""

    def build(at, x, z, y):
        def step(at, x, z):
            x = getattr(x.at[:, at], mode)(0.25)
            x = getattr(x.at[:, at - 2], mode)(y * x[:, at])
            x = getattr(x.at[at], mode)(0.5)
            z = getattr(z.at[:, at], mode)(x[:, :2])
            return {"x": rs.tanh(x), "z": getattr(z.at[:, :, at - 3], mode)(1.5)}

        out = rs.loop(step, over=at, init={"x": x, "z": z})
        return [out.x, out.z, *rs.grad(rs.sum(out.x[-1] ** 2) + rs.sum(out.z[-1] ** 2), [x, y])]

    at = np.array([3, 2, 3, 2, 2])
    agree(monkeypatch, build, at, numbers(6, 5), numbers(6, 5, 2, seed=2), numbers(6, seed=1))
    with pytest.raises(Exception, match="E0202"):
        rs.compile(lambda at, x: rs.loop(lambda at, x: x.at[:, at].set(0.0), over=at, init=x).last)(np.array([0, 5]), numbers(6, 5))


@pytest.mark.parametrize("rows", [5, 40])
def test_reads_by_index_of_parts(monkeypatch, rows):
    """Parts from the front on, from behind, and between; of two axes and three; small ones, and of an axis that is read."""

    def build(x, at):
        def one(x, at):
            def step(k, x):
                i, j = (at + k) % 7, (at * k) % 6
                rows, deep, fixed = x[1:, 1:], x[None, 1:, :, None], rs.stack([x, x], axis=2)
                parts = [x[:-1, i], x[1:, i], x[2:-3, i], x[:2, i], rows[j], rows[:, j], x[:-1][j, i], deep[0, :, i, 0]]
                parts += [fixed[:, :, 0][at_all, j], fixed[1:, :, 1][:, at_all], x[1:, 2][at_all], x[::-1][at_all, i], x[:, 1:2][at_all]]
                return x.at[j].set(rs.tanh(sum(rs.sum(p * rs.sum(p)) for p in parts) + x[j]))

            return rs.loop(step, over=rs.arange(4), init=x)

        out = rs.vmap(one)(x, at)
        return [out, rs.grad(rs.sum(out**2), x)]

    at_all = np.array([[0, 3], [5, 1]])
    agree(monkeypatch, build, numbers(rows, 7, 9), np.arange(rows) * 3 % 11)
