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


KINDS = {"max": rs.max, "min": rs.min, "any": rs.any, "all": rs.all, "sum": rs.sum}


@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize("kind", ["max", "min", "any", "all", "sum"])
@pytest.mark.parametrize("axis", [-1, 1, (1, 2)])
def test_rows_that_are_read_often_are_reduced_once(monkeypatch, kind, axis, outside):
    """More rows are read than there are: of each the extreme is found once. Sums of floats keep their order."""

    def build(at, q):
        def step(at, q):
            rows = (q > 0)[at] if kind in ("any", "all") else q[at]
            found = KINDS[kind](rows, axis=axis)
            return {"q": rs.cos(q + rs.sum(rs.cast(found, "float64"))), "found": found}

        out = rs.loop(step, over=at, init={"q": q})
        return [out.q, out.found]

    at = np.random.default_rng(3).integers(-6, 6, size=(4, 30))
    if outside:
        at[2, 17] = 6
    agree(monkeypatch, build, at, numbers(6, 4, 5))


@pytest.mark.parametrize("where", [(0,), (1,), (2,), (0, 2), (0, 1), (1, 2)])
@pytest.mark.parametrize("axis", range(5))
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions_along_any_axis_of_what_is_read(monkeypatch, where, axis, keepdims):
    """Index arrays of two axes in every place, the same in all steps or those of the step."""
    shape = 5, 6, 7
    index = np.random.default_rng(4).integers(0, 5, size=(3, 8, 4))

    def build(at, x):
        def step(at, x):
            found = []
            for names in (index[0], at):
                key = [slice(None)] * 3
                for place in where:
                    key[place] = names
                rows = x[tuple(key)]
                axes = axis % rows.ndim
                found += [rs.sum(rows > 0.3, axis=axes, keepdims=keepdims), rs.max(rows, axis=axes, keepdims=keepdims)]
            change = sum(rs.sum(rs.cast(f, "float64")) for f in found)
            return {"x": rs.cos(x + change), **{f"f{k}": f for k, f in enumerate(found)}}

        out = rs.loop(step, over=at, init={"x": x})
        return [out[name] for name in ("x", "f0", "f1", "f2", "f3")]

    agree(monkeypatch, build, index, numbers(*shape))


def test_what_is_reduced_before_it_is_read_stands_in_the_plan(monkeypatch):
    monkeypatch.setenv("RSCAN_ENGINE", "jit")
    to, q = rs.lmatrix("to"), rs.dmatrix("q")
    best = rs.loop(lambda q: q * 0.5 + rs.max(q[to], axis=-1), init=q, n_steps=4)
    f = rs.function([to, q], best)
    f(np.random.default_rng(5).integers(0, 64, size=(64, 4)), numbers(64, 4))
    assert "-> memory[64]: f64[64, 4, 4]" not in f.plan() and "[64, 4, 4]" not in f.plan(), f.plan()
    neighbours, infected = rs.lmatrix("neighbours"), rs.vector("infected", dtype="bool")
    spread = rs.loop(lambda state: rs.sum(state[neighbours], axis=1) > 3, init=infected, n_steps=4)
    f = rs.function([neighbours, infected], spread)
    f(np.random.default_rng(6).integers(0, 250, size=(250, 8)), numbers(250) > 0)
    assert "bool[8, 250]" in f.plan() and "bool[250, 8]" not in f.plan(), f.plan()


@pytest.mark.parametrize(
    "dtype, mode", [("bool", "set"), *((dtype, mode) for dtype in ("int8", "float32", "float64") for mode in ("set", "add"))]
)
@pytest.mark.parametrize("change", ["none", "ends", "outside", "first outside"])
def test_one_index_array_changes_beside_others(monkeypatch, dtype, mode, change):
    """What the others name is found once; indices from the end, and outside, are looked at in each step."""
    rows = np.arange(7)
    if change == "first outside":
        rows = rows + 1

    def build(at, wide, x):
        def step(at, wide, x):
            found = x[rows, at]
            several = x[rows[:, None], wide]
            new = x.at[rows, at].set(found[::-1])
            new = getattr(new.at[rows[:, None], wide], mode)(several)
            new = new.at[rows[:, None], wide % 5].set(rs.cast(1, dtype))
            return {"x": new, "found": found, "several": several}

        out = rs.loop(step, over=(at, wide), init={"x": x})
        return [out.x, out.found, out.several]

    random = np.random.default_rng(8)
    at, wide = random.integers(0, 9, size=(5, 7)), random.integers(0, 9, size=(5, 7, 3))
    if change == "ends":
        at[3, 2] = wide[4, 6, 1] = -9
    if change == "outside":
        wide[2, 0, 0] = 9
    agree(monkeypatch, build, at, wide, random.integers(0, 2, size=(7, 9)).astype(dtype))


def test_batches_of_reads_and_writes_by_index(monkeypatch):
    def build(at, x, by):
        def series(at, x):
            step = lambda at, x: x.at[at].add(by * rs.tanh(x[at[::-1]])).at[at[0]].set(0.5)
            return rs.loop(step, over=at, init=x)[-1]

        out = rs.vmap(series)(at, x)
        return [out, *rs.grad(rs.sum(out**2), [x, by])]

    agree(monkeypatch, build, np.random.default_rng(9).integers(-6, 6, size=(5, 4, 3)), numbers(5, 6), np.float64(0.3))
