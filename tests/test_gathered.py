"""Reads by index arrays that kernels of a list do: the evaluator's bits, and its errors where an index lies outside."""

import numpy as np
import pytest

import rscan as rs

RANDOM = np.random.default_rng(3)
TABLE = RANDOM.normal(size=(6, 11))
CUBE = RANDOM.normal(size=(3, 6, 11))
ROWS = RANDOM.integers(-6, 6, size=(40, 9))
COLUMNS = RANDOM.integers(-11, 11, size=(40, 9))


def fused(x, i, j):
    return rs.sum(x[i, j] * x[i[:, None], j[None, :]] + 1)


# What a step makes of a table, and of two index arrays.
READS = {
    "both axes": lambda x, i, j: x[i, j] * 2 + j,
    "a reduction of all pairs": fused,
    "rows and columns apart": lambda x, i, j: rs.max(x[i[:, None], j], axis=0) - rs.sum(x[i, j]),
    "an index that is computed": lambda x, i, j: rs.exp(x[i, rs.minimum(j + 1, 10)]) + x[-1, j],
    "an index that is read": lambda x, i, j: rs.abs(x[rs.cast(rs.abs(x[i, j]) * 2, "int64") % 6, j]),
    "single elements": lambda x, i, j: x[i[0], j[1]] + x[i[2], j[0]] * j,
    "the elements of rows": lambda x, i, j: x[:, j] * 0.5 + rs.arange(9),
    "whole rows": lambda x, i, j: x[i] * 0.5 + j[:, None],
    "indices of another dtype": lambda x, i, j: x[rs.cast(i, "int8"), rs.cast(rs.abs(j), "uint8") % 11] * 3,
    "the first of several": lambda x, i, j: rs.argmax(x[i, j] * j),
    "a table of float32": lambda x, i, j: rs.cast(x, "float32")[i, j] * 2,
    "a table of integers": lambda x, i, j: rs.cast(x * 9, "int32")[i, j] + rs.cast(x * 9, "int64")[j % 6, j],
    "a table of bools": lambda x, i, j: rs.where((x > 0)[i, j], 1.0, x[i, j]),
}


def run(read, i, j, table=TABLE):
    """A loop over index arrays whose table changes at each step."""

    @rs.compile
    def loop(x, i, j):
        def step(i, j, x):
            y = read(x, i, j)
            return dict(x=rs.tanh(x + 0.1 * rs.mean(rs.cast(y, "float64"))), y=y)

        out = rs.loop(step, over=dict(i=i, j=j), init=dict(x=x))
        return out.y, out.last.x

    return loop(table, i, j)


def engines(monkeypatch, of):
    """What the evaluator makes of it, and each engine."""
    made = {}
    for engine in ("eval", "vm", "jit", "auto"):
        monkeypatch.setenv("RSCAN_ENGINE", engine)
        made[engine] = of()
    return made


@pytest.mark.parametrize("name", READS)
def test_engines_have_the_bits_of_the_evaluator(name, monkeypatch):
    made = engines(monkeypatch, lambda: [np.asarray(a) for a in run(READS[name], ROWS, COLUMNS)])
    for engine in ("vm", "jit", "auto"):
        for got, wanted in zip(made[engine], made["eval"], strict=True):
            assert got.dtype == wanted.dtype
            assert got.tobytes() == wanted.tobytes(), (name, engine)


@pytest.mark.parametrize("name", ["both axes", "a reduction of all pairs", "single elements", "an index that is read"])
@pytest.mark.parametrize(("step", "at", "value"), [(0, "i", 6), (7, "i", -7), (39, "j", 11), (3, "j", 2**62), (5, "i", -(2**63))])
def test_an_index_outside_is_the_error_of_the_evaluator(name, step, at, value, monkeypatch):
    i, j = ROWS.copy(), COLUMNS.copy()
    dict(i=i, j=j)[at][step, 0] = value

    def told():
        with pytest.raises(IndexError) as error:
            run(READS[name], i, j)
        return str(error.value)

    made = engines(monkeypatch, told)
    assert len(set(made.values())) == 1, made
    assert f"in step {step}" in made["jit"]
    assert "is out of range for axis" in made["jit"]


def test_tables_along_an_axis_that_no_index_names(monkeypatch):
    def of():
        step = lambda i, j, x: dict(x=x * 0.9 + 0.01 * rs.sum(x[:, i, j] * 2, axis=1)[:, None, None])
        return np.asarray(rs.compile(lambda x, i, j: rs.loop(step, over=dict(i=i, j=j), init=dict(x=x)).last.x)(CUBE, ROWS, COLUMNS))

    made = engines(monkeypatch, of)
    assert all(got.tobytes() == made["eval"].tobytes() for got in made.values())
    x = CUBE.copy()
    for i, j in zip(ROWS, COLUMNS, strict=True):
        x = x * 0.9 + 0.01 * (x[:, i, j] * 2).sum(axis=1)[:, None, None]
    np.testing.assert_allclose(made["jit"], x, rtol=1e-12)


@pytest.mark.parametrize("engine", ["eval", "vm", "jit"])
def test_what_is_read_is_from_before_it_is_written(engine, monkeypatch):
    monkeypatch.setenv("RSCAN_ENGINE", engine)

    def step(i, j, x):
        old = x[i, j]
        new = x.at[i, j].set(old * 0.5 + 1)
        return dict(x=new, y=old + new[i, j] + rs.sum(new))

    out = rs.compile(lambda x, i, j: rs.loop(step, over=dict(i=i, j=j), init=dict(x=x)))(TABLE, ROWS, COLUMNS)
    x, wanted = TABLE.copy(), []
    for i, j in zip(ROWS, COLUMNS, strict=True):
        old = x[i, j]
        x[i, j] = old * 0.5 + 1
        wanted.append(old + x[i, j] + x.sum())
    np.testing.assert_allclose(np.asarray(out.y), wanted, rtol=1e-12)
    np.testing.assert_allclose(np.asarray(out.last.x), x, rtol=1e-12)


def test_the_gradient_is_that_of_differences():
    @rs.compile
    def loss(x):
        step = lambda i, j, x: dict(x=rs.tanh(x + 0.1 * rs.sum(x[i, j] * x[i[:, None], j], axis=0)[3]))
        return rs.sum(rs.loop(step, over=dict(i=ROWS[:5], j=COLUMNS[:5]), init=dict(x=x)).last.x ** 2)

    slope, v = np.asarray(rs.grad(loss)(TABLE)), RANDOM.normal(size=TABLE.shape)
    h = 1e-6
    np.testing.assert_allclose((slope * v).sum(), (loss(TABLE + h * v) - loss(TABLE - h * v)) / (2 * h), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float64", "bool"])
@pytest.mark.parametrize(
    "shapes", [((4, 1), (5,)), ((5,), (4, 1)), ((2, 1, 3), (4, 1)), ((4, 1), (2, 1, 3)), ((1, 4), (4, 4)), ((3,), (1,))]
)
def test_index_arrays_that_are_broadcast(dtype, shapes, monkeypatch):
    x = TABLE > 0 if dtype == "bool" else TABLE
    places = [RANDOM.integers(-n, n, size=(7, *shape)) for n, shape in zip(x.shape, shapes, strict=True)]
    y = RANDOM.normal(size=np.broadcast_shapes(*shapes)) > 0.3

    def of():
        def step(i, j, x):
            read = x[i, j]
            return dict(x=x.at[i, j].set(y) if dtype == "bool" else x.at[i, j].add(rs.cast(y, dtype)), y=read)

        out = rs.compile(lambda x, i, j: rs.loop(step, over=dict(i=i, j=j), init=dict(x=x)))(x, *places)
        return [np.asarray(out.y), np.asarray(out.last.x)]

    now, wanted = x.copy(), []
    for i, j in zip(*places, strict=True):
        wanted.append(now[i, j])
        if dtype == "bool":
            now[i, j] = y
        else:
            np.add.at(now, (i, j), y.astype(dtype))
    for rows, last in engines(monkeypatch, of).values():
        np.testing.assert_array_equal(rows, wanted)
        np.testing.assert_array_equal(last, now)
