"""Steps that do the same to each of many rows: one kernel whose lanes are the rows, with the bits of the evaluator."""

import numpy as np
import pytest

import rscan as rs

F = np.array([[1.0, 0.5], [-0.25, 0.75]])


def lorenz(s):
    return s + 0.01 * rs.stack([10 * (s[1] - s[0]), s[0] * (28 - s[2]) - s[1], s[0] * s[1] - 8 / 3 * s[2]])


def filtered(s):
    a, p = s[:2], rs.reshape(s[2:], (2, 2))
    k = p[:, 0] / (p[0, 0] + 0.5)
    a = F @ (a + k * (0.1 - a[0]))
    p = F @ (p - rs.outer(k, p[0])) @ F.T + 0.1 * rs.eye(2)
    return rs.concatenate([a, rs.reshape(p, (4,))])


#: Steps of one row, and how long a row is.
STEPS = {
    "lorenz": (lorenz, 3),
    "filter": (filtered, 6),
    "rolled": (lambda s: rs.roll(s, 1) * 0.9 + s[::-1] * 0.1, 5),
    "softmax": (lambda s: rs.softmax(s) + rs.logsumexp(s) - s.max(), 3),
    "sorted": (lambda s: rs.sort(s) * 0.9 + rs.cumsum(s) * 0.1 + rs.argmax(s), 4),
    "chosen": (lambda s: rs.where(s[0] > s[1], s * 0.5, s[::-1] + 0.1), 2),
    "written": (lambda s: s.at[1].set(s[0] * 0.5).at[0].add(s[2] - s[1]), 3),
    "solved": (lambda s: s * 0.5 + rs.linalg.solve(2 * rs.eye(2) + 0.1 * s[0], s[1:])[0], 3),
    "inverse": (lambda s: rs.tanh(s + rs.linalg.inv(rs.eye(2) + rs.outer(s, s))[0] + rs.linalg.det(rs.eye(2) + rs.outer(s, s))), 2),
    "cholesky": (lambda s: s * 0.5 + rs.linalg.cholesky(rs.eye(2) + rs.outer(s, s))[:, 0], 2),
    "searched": (lambda s: s * 0.5 + rs.searchsorted(np.array([-1.0, 0.0, 0.5]), s[0]), 2),
    "summed": (lambda s: rs.tanh(s - rs.mean(s)) + rs.std(s) * rs.arange(3), 3),
}


def both(f, *args):
    """What it makes, and what the evaluator makes of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RSCAN_ENGINE", "eval")
        expected = rs.compile(f)(*args)
    compiled = rs.compile(f)
    return compiled(*args), expected, str(compiled.explain(*args))


def rows_of(name, n, dtype="float64"):
    return np.random.default_rng(0).normal(size=(n, STEPS[name][1])).astype(dtype)


@pytest.mark.usefixtures("chosen_engine")
@pytest.mark.parametrize("n", [4, 7, 8, 70])
@pytest.mark.parametrize("name", STEPS)
def test_each_row_has_the_bits_of_the_evaluator(name, n):
    step = STEPS[name][0]
    got, expected, plan = both(rs.vmap(lambda s0: rs.loop(step, init=s0, n_steps=5)), rows_of(name, n))
    np.testing.assert_array_equal(got, expected)
    assert f"{n} lanes" in plan, plan


@pytest.mark.usefixtures("chosen_engine")
@pytest.mark.parametrize("name", STEPS)
def test_in_single_precision(name):
    step = lambda s: rs.cast(STEPS[name][0](s), "float32")
    got, expected, _ = both(rs.vmap(lambda s0: rs.loop(step, init=s0, n_steps=5)), rows_of(name, 21, "float32"))
    np.testing.assert_array_equal(got, expected)


@pytest.mark.usefixtures("chosen_engine")
@pytest.mark.parametrize("name", STEPS)
def test_gradients_of_each_row(name):
    step = STEPS[name][0]
    loss = lambda s0: rs.sum(rs.loop(step, init=s0, n_steps=4)[-1] ** 2)
    x = rows_of(name, 9)
    got, expected, _ = both(rs.vmap(rs.grad(loss)), x)
    np.testing.assert_array_equal(got, expected)
    alone = rs.compile(rs.grad(loss))
    np.testing.assert_allclose(got, np.stack([alone(row) for row in x]), rtol=1e-9, atol=1e-12)


TABLE = np.random.default_rng(5).normal(size=(4, 4))

#: Steps with an integer for each row.
INDEXED = {
    "element": lambda s, i: s[i % 3] * s,
    "of a small table": lambda s, i: rs.constant(TABLE)[i, 1] * s + rs.constant(TABLE)[2][i],
    "of a large table": lambda s, i: rs.constant(np.arange(40.0))[9 * i] * 0.1 * s,
    "a row of a table": lambda s, i: rs.constant(TABLE)[i][:3] + s,
    "set": lambda s, i: s.at[i % 3].set(s[1] * 0.5),
    "added": lambda s, i: s.at[i % 3].add(s[(i + 1) % 3]),
    "not modulo": lambda s, i: s.at[i - 1].add(1.0),
}


def indexed(name):
    def step(s, i):
        return dict(s=rs.clip(INDEXED[name](s, i), -3, 3), i=(i * 5 + 1) % 4)

    return lambda s0, i0: rs.loop(step, init=dict(s=s0, i=i0), n_steps=5).s


@pytest.mark.usefixtures("chosen_engine")
@pytest.mark.parametrize("n", [5, 21])
@pytest.mark.parametrize("name", INDEXED)
def test_an_index_for_each_row(name, n):
    rng = np.random.default_rng(6)
    got, expected, plan = both(rs.vmap(indexed(name)), rng.normal(size=(n, 3)), rng.integers(0, 3, n))
    np.testing.assert_array_equal(got, expected)
    assert f"{n} lanes" in plan, plan


@pytest.mark.usefixtures("chosen_engine")
@pytest.mark.parametrize("name", ["of a small table", "of a large table", "not modulo"])
@pytest.mark.parametrize("row", [0, 6, 20])
def test_an_index_outside_in_one_row(name, row):
    i0 = np.zeros(21, int)
    i0[row] = 7
    f = rs.vmap(indexed(name))
    with pytest.raises(rs.RscanIndexError) as found:
        rs.compile(f)(np.ones((21, 3)), i0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RSCAN_ENGINE", "eval")
        with pytest.raises(rs.RscanIndexError) as expected:
            rs.compile(f)(np.ones((21, 3)), i0)
    assert str(found.value) == str(expected.value)


@pytest.mark.usefixtures("chosen_engine")
def test_a_singular_matrix_in_one_row():
    f = rs.vmap(lambda s0: rs.loop(lambda s: s + 0.1 * rs.linalg.solve(rs.diag(s), s), init=s0, n_steps=40))
    x = np.ones((9, 2))
    assert "9 lanes" in both(f, x)[2]
    x[5, 1] = 0.0
    with pytest.raises(rs.errors.LinAlgError):
        rs.compile(f)(x)


@pytest.mark.usefixtures("chosen_engine")
def test_rows_in_the_last_axis():
    """States are written as one array per quantity, each with all rows."""

    def step(s, x):
        a, b, c = s[0], s[1], s[2]
        return rs.stack([a + 0.1 * b, b - 0.1 * a * c, rs.minimum(c + x, 1.0)])

    run = lambda s0, xs: rs.loop(lambda x, s: step(s, x), over=dict(x=xs), init=dict(s=s0)).s
    rng = np.random.default_rng(1)
    got, expected, plan = both(run, rng.normal(size=(3, 33)), rng.normal(size=(6, 33)))
    np.testing.assert_array_equal(got, expected)
    assert "33 lanes" in plan, plan


@pytest.mark.usefixtures("chosen_engine")
@pytest.mark.parametrize(
    "step",
    [
        lambda s: s - s.sum(axis=0),
        lambda s: s[::-1] * 0.5,
        lambda s: rs.cumsum(s, axis=0) * 0.1,
        lambda s: rs.softmax(s, axis=0) + s[:1],
        lambda s: rs.concatenate([s[1:], s[:1]]) + s[:, :1],
        lambda s: rs.sort(s, axis=0) * 0.9,
        lambda s: s.at[2].set(s[0]),
        lambda s: s + s[3] * s[:, :1],
        lambda s: rs.arange(6.0)[:, None] * 0.1 + s[:, ::-1],
    ],
)
def test_rows_that_depend_on_each_other(step):
    got, expected, _ = both(lambda s0: rs.loop(step, init=s0, n_steps=4), np.random.default_rng(2).normal(size=(6, 3)))
    np.testing.assert_array_equal(got, expected)


@pytest.mark.usefixtures("chosen_engine")
@pytest.mark.parametrize("n", [4, 5])
def test_as_many_rows_as_a_row_has_elements(n):
    """Which axis numbers the rows is not to be told by how long it is."""
    w = np.random.default_rng(3).normal(size=(n, n))
    for step in (lambda s: rs.tanh(s @ w), lambda s: rs.tanh(w @ s), lambda s: s.T * 0.9 + s[0], lambda s: s[:, 0] * w + s):
        got, expected, _ = both(lambda s0, step=step: rs.loop(step, init=s0, n_steps=3), 0.1 * w + 1)
        np.testing.assert_array_equal(got, expected)


@pytest.mark.usefixtures("chosen_engine")
def test_many_outputs_taps_and_sequences():
    def per_row(y, s0, k):
        def step(y, s, d):
            new = rs.stack([0.5 * s[1] + y, s[0] * k])
            return dict(s=new, d=rs.dot(new, s) + d[0] * rs.arange(2), m=new > 0, i=rs.cast(y * 3, "int64"))

        out = rs.loop(step, over=dict(y=y), init=dict(s=s0, d=dict(initial=rs.ones((2, 2)), taps=[-2])))
        return out.s, out.d, out.m, out.i

    rng = np.random.default_rng(4)
    got, expected, plan = both(rs.vmap(per_row), rng.normal(size=(11, 8)), rng.normal(size=(11, 2)), rng.normal(size=11))
    for a, b in zip(got, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    assert "11 lanes" in plan, plan


CLASSES, MOVES = np.random.default_rng(2).integers(0, 12, size=(2, 256)).astype("int32")


@pytest.mark.usefixtures("chosen_engine")
@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16"])
def test_bytes_and_words_through_tables_that_all_rows_share(dtype):
    def decode(text, n):
        def step(byte, state, hashed):
            kind = rs.constant(CLASSES)[byte.astype("int32") & 255]
            state = rs.constant(MOVES)[(state * 12 + kind) & 255]
            hashed = (hashed ^ (byte >> 1)) * np.array(31, dtype) + state.astype(dtype)
            return dict(state=state, hashed=hashed), rs.until(state == 11)

        init = dict(state=np.int32(0), hashed=np.array(7, dtype))
        out = rs.loop(step, over=dict(byte=text), init=init, n_steps=n)
        return out.last.state, out.last.hashed, out.steps

    text = np.random.default_rng(1).integers(0, 200, size=(33, 40)).astype(dtype)
    lengths = np.random.default_rng(1).integers(0, 41, size=33)
    got, expected, plan = both(rs.vmap(decode), text, lengths)
    for g, e in zip(got, expected, strict=True):
        assert g.dtype == e.dtype
        np.testing.assert_array_equal(g, e)
    assert "33 lanes" in plan, plan


@pytest.mark.usefixtures("chosen_engine")
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "uint16", "int16"])
def test_walks_on_a_grid_of_few_bits(dtype):
    def walk(start, turns, grid):
        def step(turn, at):
            ahead = (at * 5 + turn) % 120
            free = grid[ahead // 12, ahead % 12]
            return dict(at=rs.where(free > 0 if dtype != "bool" else free, ahead, at), seen=free)

        out = rs.loop(step, over=dict(turn=turns), init=dict(at=start))
        return out.at, out.seen

    random = np.random.default_rng(4)
    start, turns = random.integers(0, 120, size=19), random.integers(0, 9, size=(19, 30))
    grid = random.integers(-1 if dtype.startswith("int") else 0, 2, size=(10, 12)).astype(dtype)
    got, expected, plan = both(rs.vmap(walk, in_axes=(0, 0, None)), start, turns, grid)
    for g, e in zip(got, expected, strict=True):
        assert g.dtype == e.dtype
        np.testing.assert_array_equal(g, e)
    assert "19 lanes" in plan, plan


@pytest.mark.usefixtures("chosen_engine")
@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16"])
@pytest.mark.parametrize("shape", [(5, 7), (40, 33)])
def test_images_of_few_bits(dtype, shape):
    def spread(image, mask):
        def step(seen):
            padded = rs.pad(seen, 1)
            ((n, m), zero) = image.shape, np.array(0, dtype)
            around = rs.maximum(rs.maximum(padded[:n, 1:-1], padded[2:, 1:-1]), rs.maximum(padded[1:-1, :m], padded[1:-1, 2:]))
            mixed = rs.where(mask, around - seen // 3, seen + (around >> 2)) ^ rs.where(seen > zero, ~image, -image)
            return rs.minimum(mixed, (mixed.astype("float32") * 1.7 - 5).astype(dtype))

        return rs.loop(step, init=image, n_steps=4)

    image = np.random.default_rng(0).integers(0, 250, size=shape).astype(dtype)
    got, expected, _ = both(spread, image, image % 3 == 0)
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)
