"""Steps that walk over arrays of several axes: what is computed does not depend on how it is walked, to the bit."""

import numpy as np
import pytest

import rscan as rs

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan]


def same(monkeypatch, step, state, *captured, steps=3):
    """All rows of what a step gives, by machine code and by the vm as by the evaluator."""
    given = [state, *captured]
    found = []
    for engine in ("eval", "vm", "jit"):
        monkeypatch.setenv("RSCAN_ENGINE", engine)
        variables = [rs.tensor(a.dtype.name, [None] * a.ndim) for a in given]
        out = rs.loop(lambda h, v=variables: step(h, *v[1:]), init={"h": variables[0]}, n_steps=steps)
        found.append(rs.function(variables, out.values())(*given))
    law, *others = found
    for got in others:
        for k, (a, b) in enumerate(zip(got, law, strict=True)):
            assert a.dtype == b.dtype and a.shape == b.shape, k
            if a.dtype.kind == "f":
                assert np.array_equal(np.isnan(a), np.isnan(b)), k
                a, b = np.nan_to_num(a), np.nan_to_num(b)
            assert a.tobytes() == b.tobytes(), k


def numbers(*shape, dtype="float64", seed=0):
    random = np.random.default_rng(seed)
    if dtype == "bool":
        return random.random(shape) < 0.5
    x = random.normal(size=shape) * 4
    return np.abs(x).astype(dtype) if dtype.startswith("u") else x.astype(dtype)


def with_special(x):
    random = np.random.default_rng(5)
    x = x.copy()
    x.flat[random.choice(x.size, min(x.size, 9), replace=False)] = np.resize(SPECIAL, min(x.size, 9))
    return x


@pytest.mark.parametrize("n, m", [(1, 1), (1, 9), (5, 1), (3, 7), (8, 8), (17, 16), (40, 33), (300, 20), (20, 300)])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "bool"])
def test_reductions_of_what_is_broadcast(monkeypatch, n, m, dtype):
    def step(h, a, b):
        x = a[:, None] * b[None, :] if dtype == "bool" else a[:, None] + h * b[None, :]
        out = {"h": h}
        for axis in (0, 1, None):
            for name, f in (("sum", rs.sum), ("max", rs.max), ("min", rs.min), ("prod", rs.prod)):
                out[f"{name}{axis}"] = f(x, axis=axis)
            out[f"any{axis}"] = rs.any(x > 0, axis=axis)
            out[f"all{axis}"] = rs.all(x > 0, axis=axis)
            out[f"count{axis}"] = rs.sum(x > b[None, :], axis=axis)
        out["first0"], out["first1"] = rs.argmax(x, axis=0), rs.argmin(x, axis=1)
        return out

    state = np.array(True if dtype == "bool" else 1, dtype)
    same(monkeypatch, step, state, numbers(n, dtype=dtype), numbers(m, dtype=dtype, seed=1), steps=2)


@pytest.mark.parametrize("shape", [(6, 5), (9, 32), (33, 4), (2, 70)])
def test_extremes_of_states_with_equal_elements_and_nans(monkeypatch, shape):
    def step(h, c):
        x = h + c
        out = {"h": h[::-1]}
        for axis in (0, 1):
            out[f"max{axis}"], out[f"min{axis}"] = rs.max(x, axis=axis), rs.min(x, axis=axis)
            out[f"first{axis}"], out[f"least{axis}"] = rs.argmax(x, axis=axis), rs.argmin(x, axis=axis)
        return out

    same(monkeypatch, step, with_special(np.round(numbers(*shape))), np.zeros(shape[1]))
    same(monkeypatch, step, np.full(shape, -np.inf), np.zeros(shape[1]))
    same(monkeypatch, step, np.where(numbers(*shape) > 0, 0.0, -0.0), np.full(shape[1], -0.0))


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 31, 130, 300])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32"])
def test_a_vector_as_a_whole(monkeypatch, n, dtype):
    def step(h, x):
        y = h * x
        found = {"first": rs.argmax(y), "least": rs.argmin(y - x), "sum": rs.sum(y), "top": rs.max(y), "low": rs.min(y + h)}
        return {"h": h[::-1] + 1, "any": rs.any(y > 2), "all": rs.all(y > -9), "prod": rs.prod(y), **found}

    special = with_special if dtype.startswith("f") else np.asarray
    same(monkeypatch, step, numbers(n, dtype=dtype), special(numbers(n, dtype=dtype, seed=1)))


@pytest.mark.parametrize("shape", [(4, 4), (19, 19), (40, 40)])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32"])
def test_views_are_read_where_they_lie(monkeypatch, shape, dtype):
    def step(h, w):
        inner = h[:-2, 1:-1] + h[2:, 1:-1] - 2 * h[1:-1, 1:-1] + w.T[1:-1, 2:] - w[:-2, ::-1][:, 1:-1]
        turned = h.T + w
        return {
            "h": h.at[1:-1, 1:-1].set(inner // 2 if dtype == "int32" else inner / 2),
            "turned": turned,
            "rows": rs.sum(turned * h, axis=1),
            "columns": rs.sum(turned * h, axis=0),
            "flipped": h[::-1] * w[:, ::-1] + w[::2][:1],
            "diagonal": (h * w)[:, 1] + h[1],
            "stacked": rs.stack([h[0] * 2, w[1] - h[:, 0]]),
        }

    same(monkeypatch, step, numbers(*shape, dtype=dtype), numbers(*shape, dtype=dtype, seed=3))


def test_three_axes(monkeypatch):
    def step(h, a, b):
        x = rs.tanh(h[:, :, None] * a[None, :, :] + b[:, None, :])
        return {
            "h": h * 0.5 + rs.sum(x, axis=2),
            "middle": rs.sum(x, axis=1),
            "outer": rs.max(x, axis=0),
            "two": rs.sum(x, axis=(0, 2)),
            "last": rs.min(x, axis=(1, 2)),
            "turned": rs.transpose(x, (2, 0, 1)) * 2,
        }

    same(monkeypatch, step, numbers(5, 6), numbers(6, 11, seed=1), numbers(5, 11, seed=2))
    same(monkeypatch, step, numbers(1, 17), numbers(17, 3, seed=1), numbers(1, 3, seed=2))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint32"])
def test_quotients_of_integers(monkeypatch, dtype):
    def step(h, a, b):
        return {"h": h + 1, "q": a // b + h, "m": a % b, "half": a // 4, "low": a % 8, "seven": a // 7 + a % 7, "cube": h**3}

    a, b = numbers(40, dtype=dtype) * 9, numbers(40, dtype=dtype, seed=2)
    same(monkeypatch, step, numbers(40, dtype=dtype, seed=4), a.astype(dtype), b)


def test_states_that_are_rolled_and_split(monkeypatch):
    def step(h, w):
        left, right = rs.split(h, 2, axis=1)
        return {"h": rs.roll(h, 1, axis=0) * 0.5 + rs.roll(h, -2, axis=1), "gates": rs.tanh(left) * right + w}

    same(monkeypatch, step, numbers(9, 8), numbers(9, 4, seed=1))


def test_inner_loops_of_lengths_that_the_outer_one_is_given(monkeypatch):
    def step(h, x, k):
        inner = rs.loop(lambda x, s: {"s": 0.5 * s + x}, over={"x": x}, init={"s": h[0]})
        again = rs.loop(lambda v: {"v": rs.tanh(v + h[0])}, init={"v": h}, n_steps=k)
        return {"h": inner.s * 0.1 + again.v[-1]}

    same(monkeypatch, step, numbers(6), numbers(6, seed=1), np.array(4))


def test_powers_are_multiplied_out():
    x = rs.dvector("x")
    exponents = (3, 5, 8, 16, -2, -3, -12, 0.5, 1.5, 2.5, 7.5, -0.5, -1.5, -2.5)
    f = rs.function([x], [x**k for k in exponents])
    assert "pow" not in f.text(optimised=True)
    values = np.array([-1.5, 0.0, -0.0, 2.0, 0.3, np.inf, -np.inf, np.nan, 1e-200, 5e-324, 1e-309, 1e308])
    with np.errstate(all="ignore"):
        for k, got in zip(exponents, f(values), strict=True):
            expected = np.power(values, np.full_like(values, k))  # of a number, NumPy takes the root: another −0, and NaN of −∞
            np.testing.assert_allclose(got, expected, rtol=5e-15)
            assert np.array_equal(np.signbit(got[got == got]), np.signbit(expected[got == got])), k


@pytest.mark.parametrize("k", [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5])
def test_powers_of_halves_have_the_slope_of_powers(k):
    slope = rs.grad(lambda x: rs.sum(rs.loop(lambda x, h: 0.5 * h + x**k, over=x, init=0.0)))
    values = np.array([0.2, 1.0, 3.0])
    weights = np.array([1.75, 1.5, 1.0])
    np.testing.assert_allclose(slope(values), weights * k * values ** (k - 1), rtol=1e-14)


def test_what_reads_too_many_arrays_is_parted(monkeypatch):
    count, width = 60, 40
    rows = {f"x{k}": numbers(4, width, seed=k) for k in range(count)}
    m = numbers(width, width, seed=99) / width

    def step(h, **row):
        for k in range(count):
            h = h * row[f"x{k}"] * 0.1 + row[f"x{k * 7 % count}"]
        return {"h": rs.tanh(m @ h)}

    found = []
    for engine in ("eval", "vm", "jit"):
        monkeypatch.setenv("RSCAN_ENGINE", engine)
        f = rs.compile(lambda rows: rs.loop(step, over=rows, init={"h": np.zeros(width)}).h)
        found.append(f(rows))
        if engine != "eval":
            [loop] = f.explain(rows).loops
            assert "kernels" in loop.variants[0].engine and "calls" not in loop.variants[0].engine
    law, *others = found
    assert all(got.tobytes() == law.tobytes() for got in others)
