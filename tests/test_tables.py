"""States of which steps read and write elements by their numbers: one kernel, in the bits of every engine."""

import numpy as np
import pytest

import rscan as rs

ENGINES = ("eval", "vm", "jit")
N = 40


def rings(x, at, table):
    """Rows of different lengths, read and written where each goes round."""
    lengths, lines = np.array([9, 8, 7]), np.arange(3)

    def step(t, v, ring):
        where = t % lengths
        heard = ring[lines, where]
        return dict(ring=ring.at[lines, where].set(v + 0.5 * heard), y=rs.sum(heard))

    out = rs.loop(step, over=dict(t=rs.arange(x.shape[0]), v=x), init=dict(ring=rs.zeros((3, 9))))
    return out["y"], out["ring"][-1]


def counted(x, at, table):
    """The same element may be added to several times in a step."""
    return rs.loop(lambda i, j, v, s: s.at[rs.stack([i, j, i])].add(rs.stack([v, 2.0 * v, s[j]])), over=(at, at[::-1], x), init=table)[-1]


def read_after_written(x, at, table):
    def step(i, v, s):
        new = s.at[i].set(v)
        newer = new.at[(i + 1) % N].set(new[i] + new[(i + 1) % N])
        return newer.at[i].add(newer[(i + 1) % N])

    return rs.loop(step, over=(at, x), init=table)[-1]


def chosen(x, at, table):
    """A whole array is taken, or another: elements decide."""

    def step(i, v, s):
        swapped = s.at[i].set(s[0]).at[0].set(s[i])
        return rs.where(v > 0.5, swapped, rs.where(v > 0.2, s.at[i].set(v), s))

    return rs.loop(step, over=(at, x), init=table)[-1]


def from_the_end(x, at, table):
    return rs.loop(lambda i, v, s: s.at[-i - 1].set(v + s[-i - 1]), over=(at, x), init=table)[-1]


def rows(x, at, table):
    """Rows of a matrix, some of which are none."""
    m = rs.reshape(table, (10, 4))
    return rs.loop(lambda i, v, m: m.at[i // 4].set(m[i % 10] * v + rs.arange(4.0)), over=(at, x), init=m)[-1]


def stopped(x, at, table):
    step = lambda i, v, s: (s.at[i].set(v), rs.until(s[(i + 3) % N] + v > 1.5))
    return rs.loop(step, over=(at, x), init=table)[-1]


def bools(x, at, table):
    seen = rs.loop(lambda i, s: s.at[i].set(~s[(i * 7) % N]), over=at, init=rs.zeros(N, dtype="bool"))
    return seen[-1]


def in_a_step(x, at, table):
    """A loop in a step, over as many elements as an integer of the step says."""

    def outer(v, n, s):
        inner = rs.loop(lambda k, t: t.at[k % N].add(v * t[(k + 1) % N]), over=rs.arange(n + 1), init=s)
        return inner[-1]

    return rs.loop(outer, over=(x[:5], at[:5] % 7), init=table)[-1]


def threes(x, at, table):
    """More than a step writes into a table as single elements."""
    return rs.loop(lambda i, v, s: s.at[rs.arange(20) + i % 20].add(v), over=(at, x), init=table)[-1]


PROGRAMS = [rings, counted, read_after_written, chosen, from_the_end, rows, stopped, bools, in_a_step, threes]


def given(dtype="float64", n=60):
    random = np.random.default_rng(5)
    return random.uniform(size=n).astype(dtype), random.integers(0, N, size=n), random.normal(size=N).astype(dtype)


def compiled(build, dtype="float64"):
    x, at, table = rs.tensor(dtype, (None,)), rs.lvector("at"), rs.tensor(dtype, (N,))
    y = build(x, at, table)
    return rs.function([x, at, table], list(y) if isinstance(y, tuple) else [y], on_unused_input="ignore")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("build", PROGRAMS, ids=lambda f: f.__name__)
def test_every_engine_gives_the_same_bits(monkeypatch, build, dtype):
    found = []
    for engine in ENGINES:
        monkeypatch.setenv("RSCAN_ENGINE", engine)
        f = compiled(build, dtype)
        for n in (60, 1, 7):
            found.append((n, [(a.dtype, a.shape, a.tobytes()) for a in f(*(a[:n] if a.shape == (60,) else a for a in given(dtype)))]))
    for k, (n, got) in enumerate(found):
        assert got == found[k % 3][1], (ENGINES[k // 3], n)


@pytest.mark.parametrize("build", [f for f in PROGRAMS if f not in (threes, in_a_step)], ids=lambda f: f.__name__)
@pytest.mark.usefixtures("chosen_engine")
def test_such_loops_are_one_kernel(build):
    f = compiled(build)
    f(*given())
    assert "1 lanes" in str(f.explain()), f.explain()


def test_values_are_numpys():
    x, at, table = given()
    want = table.copy()
    for i, j, v in zip(at, at[::-1], x, strict=True):
        old = want[j]
        for k, more in ((i, v), (j, 2.0 * v), (i, old)):
            want[k] += more
    np.testing.assert_array_equal(compiled(counted)(x, at, table)[0], want)
    want = table.copy()
    for i, v in zip(at, x, strict=True):
        if v > 0.5:
            want[i], want[0] = want[0], want[i]
        elif v > 0.2:
            want[i] = v
    np.testing.assert_array_equal(compiled(chosen)(x, at, table)[0], want)


@pytest.mark.parametrize("build", [counted, read_after_written, chosen, from_the_end, rows], ids=lambda f: f.__name__)
def test_gradients_are_differences(build):
    x, at, table = rs.dvector("x"), rs.lvector("at"), rs.tensor("float64", (N,))
    cost = rs.sum(rs.sin(build(x, at, table)))
    f = rs.function([x, at, table], [cost, *rs.grad(cost, [x, table])])
    a, i, t = given(n=12)
    cost, by_x, by_table = f(a, i, t)
    for along in range(3):
        dx, dt = np.random.default_rng(along).normal(size=a.shape), np.random.default_rng(9 + along).normal(size=N)
        e = 1e-6
        slope = (f(a + e * dx, i, t + e * dt)[0] - f(a - e * dx, i, t - e * dt)[0]) / (2 * e)
        np.testing.assert_allclose(by_x @ dx + by_table @ dt, slope, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_index_outside_is_an_error_and_the_inputs_stay(monkeypatch, engine):
    monkeypatch.setenv("RSCAN_ENGINE", engine)
    f = compiled(from_the_end)
    x, at, table = given()
    at[31] = N
    kept = table.copy()
    with pytest.raises(IndexError, match="step 31"):
        f(x, at, table)
    np.testing.assert_array_equal(table, kept)
    at[31] = 3
    np.testing.assert_array_equal(f(x, at, table)[0], f(x, at, kept)[0])


@pytest.mark.parametrize("n", [4, 16])
@pytest.mark.usefixtures("chosen_engine")
def test_small_tables_that_the_loop_returns_are_in_its_kernel(n):
    at, table = rs.lvector("at"), rs.dvector("table")
    step = lambda i, s, t: {"s": 0.5 * s + t[i], "t": t}
    with rs.config.override(passes="none"):
        out = rs.loop(step, over={"i": at}, init={"s": 0.0}, given={"t": table})
        f = rs.function([at, table], [out.s, out.t])
    sums, tables = f([0, 1, 0], np.arange(1.0, n + 1))
    np.testing.assert_array_equal(sums, [1.0, 2.5, 2.25])
    np.testing.assert_array_equal(tables, [np.arange(1.0, n + 1)] * 3)
    [variant] = f.explain().loops[0].variants
    assert variant.instructions > 0, variant
