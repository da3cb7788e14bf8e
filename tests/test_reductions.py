"""Reductions in steps, over any axes, of many elements, of what lies apart: the evaluator's bits with every engine."""

import numpy as np
import pytest
from test_inner_loops import agree

import rscan as rs


def numbers(*shape, dtype="float64", seed=0):
    return (5 * np.random.default_rng(seed).normal(size=shape)).astype(dtype)


def looped(step, *captured):
    """Three steps of a state of the result's shape, each with another factor."""

    def build(x, *others):
        factors = rs.constant(np.array([0.5, -1.5, 2.0], x.dtype))
        first = step(x, *others)
        return rs.loop(lambda c, h: h + step(x * c, *others), over=factors, init=rs.zeros_like(first))

    return build


LONG = [(257,), (300,), (512,), (1000,), (16384,), (17000,), (40, 30), (2, 300), (300, 2), (9, 600, 5), (7, 3, 513)]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kind", ["sum", "prod"])
@pytest.mark.parametrize("shape", LONG, ids=str)
def test_sums_of_more_than_a_block(monkeypatch, shape, kind, dtype):
    x = numbers(*shape, dtype=dtype)
    if kind == "prod":
        x = (1 + x / 1000).astype(dtype)
    axes = [None, *range(len(shape))] if len(shape) > 1 else [0]
    for axis in axes:
        agree(monkeypatch, looped(lambda x, axis=axis: getattr(rs, kind)(x * x, axis=axis)), x)


@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize(("shape", "axes"), [((5, 6, 7), (0, 2)), ((5, 1, 7), (0, 2)), ((4, 9, 7, 3), (0, 2)), ((20, 24, 24), (0, 2))])
def test_axes_with_others_between(monkeypatch, shape, axes, kind, keepdims):
    x = 1 + numbers(*shape) / 100
    x.flat[::7] = 0.0
    x.flat[3::7] = -0.0
    agree(monkeypatch, looped(lambda x: getattr(rs, kind)(rs.abs(x) * x, axis=axes, keepdims=keepdims)), x)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kind", ["sum", "prod"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 9, 34])
def test_rows_of_a_state_are_reduced_several_at_once(monkeypatch, n, kind, dtype):
    """Rows of up to 64 elements are written out, longer ones are walked side by side, four at most; -0 stays what the law makes of it."""
    for m in (17, 24, 33, 64, 65, 100, 257, 600):
        x, w = 1 + numbers(n, m, dtype=dtype) / 1000, numbers(m, dtype=dtype, seed=1) / 10
        x[:, ::3] = -0.0

        def build(x, w):
            def step(h):
                rows = getattr(rs, kind)(h * w, axis=1)
                return {"h": h[::-1] * 0.5 + rows[:, None], "rows": rows, "columns": getattr(rs, kind)(h * w, axis=0)}

            out = rs.loop(step, init={"h": x}, n_steps=3)
            return out["h"], out["rows"], out["columns"]

        agree(monkeypatch, build, x.astype(dtype), w)


def test_the_first_zero_and_the_first_nan_of_several_axes_win(monkeypatch):
    x = np.full((3, 4, 5), -1.0)
    x[2, :, 0], x[0, :, 3], x[1, 2, 1:3] = 0.0, -0.0, np.nan
    agree(monkeypatch, looped(lambda x: rs.max(x * 1.0, axis=(0, 2))), x)


@pytest.mark.parametrize("operands", [((24, 24, 24), (24,), (24,)), ((6, 10, 30), (10,), (30,)), ((3, 40, 9), (40,), (9,))], ids=str)
def test_sums_over_broadcasts_that_do_not_lie_in_a_row(monkeypatch, operands):
    def step(x, v, w):
        return rs.sum(x * v[None, :, None] * w[None, None, :], axis=(1, 2))

    agree(monkeypatch, looped(step), *(numbers(*shape, seed=k) for k, shape in enumerate(operands)))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "bool"])
@pytest.mark.parametrize("shape", [(100, 12), (9, 3), (3, 9), (40, 40), (5, 2), (300, 7), (13, 33), (1, 4), (4, 1)], ids=str)
def test_lanes_whose_elements_lie_apart(monkeypatch, shape, dtype):
    a, b, start = numbers(*shape, dtype=dtype), numbers(*shape[::-1], dtype=dtype, seed=1), numbers(*shape, dtype=dtype, seed=2)

    def build(a, b, start):
        def step(h):
            y = h ^ a if dtype == "bool" else h + a
            z = rs.where(b < y.T, y.T, b)
            top = rs.max(y, axis=1)
            new = rs.where(y < top[:, None], y, ~y if dtype == "bool" else -y)
            if dtype.startswith("int"):
                new = new % 1000
            elif dtype.startswith("float"):
                new = new * np.dtype(dtype).type(0.5)
            at = rs.argmax(y, axis=1) + rs.argmin(z, axis=0)
            turned = rs.any(y, axis=1) if dtype == "bool" else rs.sum(y[:, ::-1].T * 1, axis=0)
            return {"h": new, "at": at, "top": top, "turned": turned, "z": z.T[::-1]}

        out = rs.loop(step, init={"h": start}, n_steps=4)
        return [out.h, out.at, out.top, out.turned, out.z]

    agree(monkeypatch, build, a, b, start)


def test_rows_gathered_and_searched(monkeypatch):
    table = np.random.default_rng(0).dirichlet(np.ones(12), size=12).cumsum(axis=1)
    u = np.random.default_rng(1).uniform(size=(50, 100))

    def chains(table, u):
        return rs.loop(lambda u, s: rs.argmax(table[s] > u[:, None], axis=1), over=u, init=rs.zeros(100, "int64"))

    agree(monkeypatch, chains, table, u)


def test_a_long_scalar_step_is_a_list_where_that_is_quicker(monkeypatch):
    def viterbi(a, b):
        def step(b, d):
            through = d[:, None] + a
            return {"d": rs.max(through, axis=0) + b, "back": rs.argmax(through, axis=0)}

        out = rs.loop(step, over={"b": b}, init={"d": b[0]})
        return [out.d, out.back]

    args = numbers(12, 12), numbers(30, 12, seed=1)
    agree(monkeypatch, viterbi, *args, reached="takes longer")


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "bool"])
@pytest.mark.parametrize("shape", [(12, 12), (3, 40), (40, 3), (16, 9), (17, 9), (200, 11), (300, 9), (5, 1), (1, 5), (2, 2)], ids=str)
def test_several_reductions_of_what_is_read_in_common(monkeypatch, shape, dtype):
    a = numbers(*shape, dtype=dtype)
    rows, columns = numbers(3, shape[0], dtype=dtype, seed=1), numbers(3, shape[1], dtype=dtype, seed=2)
    if dtype.startswith("float"):
        a.flat[::5], a.flat[2::7], rows[1, 0], columns[2, -1] = 0.0, -0.0, np.nan, np.inf

    def build(a, rows, columns):
        def step(row, column, h):
            made = []
            for axis, moving in ((0, column), (1, row[:, None])):
                y = moving ^ a if dtype == "bool" else moving + a
                top = rs.max(y, axis=axis, keepdims=True)
                made += [rs.max(y, axis=axis), rs.argmax(y, axis=axis), rs.argmin(y, axis=axis), rs.min(y, axis=axis)]
                made += [rs.any(y, axis=axis), rs.all(y, axis=axis), rs.sum(y, axis=axis), rs.sum(y * y, axis=axis)]
                made += [rs.sum(y ^ top if dtype == "bool" else rs.abs(y - top), axis=axis)]
            return {"made": made, "h": h + rs.cast(rs.sum(made[1]), h.dtype) + rs.sum(made[-2])}

        start = rs.zeros((), dtype="int64" if dtype in ("int64", "bool") else dtype)
        out = rs.loop(step, over=[rows, columns], init={"h": start})
        return [*out.made, out.h]

    assert isinstance(agree(monkeypatch, build, a, rows, columns), list)


@pytest.mark.parametrize("sums", [4, 6, 9])
@pytest.mark.parametrize(
    "shape", [(17,), (255,), (256,), (257,), (1000,), (1536,), (5000,), (17000,), (66000,), (3, 1000), (5, 600), (12, 40)], ids=str
)
def test_several_long_sums_of_what_is_read_in_common(monkeypatch, shape, sums):
    """Slopes of parameters that all rows share: walked together as far as registers and blocks allow."""
    x, y = 1 + numbers(*shape) / 1000, numbers(*shape, seed=1)
    x.flat[::3] = -0.0
    narrow = y.astype("float32")

    def build(x, y, narrow):
        def step(h, *slopes):
            parts = [h * y, h * x, rs.abs(h), h * narrow, narrow * narrow * rs.cast(h, "float32"), h - x, 2.0 * h, h * h, y - h]
            made = [(rs.prod if k == 2 else rs.sum)(part, axis=-1) for k, part in enumerate(parts[:sums])]
            return 0.5 * h + x, *(old + new for old, new in zip(slopes, made, strict=True))

        first = [rs.zeros(shape[:-1], "float32" if k == 4 else "float64") for k in range(sums)]
        return [out[-1] for out in rs.loop(step, init=[x, *first], n_steps=3)]

    agree(monkeypatch, build, x, y, narrow)
