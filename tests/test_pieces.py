"""Steps that read arrays put together of others: rolled, padded, shifted, concatenated; the same bits as the evaluator's, everywhere."""

import numpy as np
import pytest
from test_inner_loops import agree

import rscan as rs


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def roll_minmod(u):
    return u - 0.1 * (rs.roll(u, 1) - rs.maximum(u, rs.roll(u, -1)))


def laplace_padded(u):
    p = rs.pad(u, 1)
    return u + 0.1 * (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u)


def life(u):
    around = sum(rs.roll(rs.roll(u, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
    return rs.tanh(u + 0.2 * around)


def edges_held(u):
    return rs.concatenate([u[:1], 0.5 * (u[2:] + u[:-2]) * rs.exp(-(u[1:-1] ** 2)), u[-1:]])


def turned(u):
    return rs.concatenate([u[::-1][: u.shape[0] // 2], u[: u.shape[0] - u.shape[0] // 2] + 1.0])


def beside(u):
    return rs.concatenate([u[:, 3:] * 2.0, u[:, :3] - 1.0], axis=1).T.reshape(u.shape[1], u.shape[0]).T


def with_sums(u):
    rolled = rs.roll(u, 2)
    return rolled * rs.sum(rolled * u) / (1 + rs.max(rs.abs(rolled)))


def three_deep(u):
    return rs.roll(rs.concatenate([rs.roll(u, 3)[5:], rs.zeros(5)]), -2) + rs.flip(rs.roll(u, 1), 0)


def interior_written(u):
    v = u.at[1:-1].set(0.5 * (u[2:] + u[:-2]))
    return rs.tanh(v) * u


def interior_added(u):
    v = u.at[2:].add(rs.sin(u[:-2])).at[:-1].add(0.25)
    return v / (1 + rs.abs(v))


def little_written(u):
    return rs.tanh(u.at[0].set(1.0).at[-1].add(u[0])) + u[0]


@pytest.mark.parametrize("n", [6, 70, 131])
@pytest.mark.parametrize(
    "step",
    [roll_minmod, edges_held, turned, with_sums, three_deep, interior_written, interior_added, little_written],
    ids=lambda f: f.__name__,
)
def test_vectors(monkeypatch, step, n):
    def build(u):
        out = rs.loop(step, init=u, n_steps=4)
        return [out, rs.grad(rs.sum(out**2), u)]

    agree(monkeypatch, build, numbers(n))


def block_written(u):
    v = u.at[1:-1, 1:].set(u[:-2, 1:] - 0.5 * u[2:, 1:])
    w = rs.zeros_like(u).at[1:-1, 1:-1].add(u[1:-1, 1:-1] ** 2).at[2].add(u[0])
    return rs.tanh(v - 0.1 * w)


def row_of_numbers(u):
    v = u.at[:, 1:].set(u[0, 1:]).at[1:, :].add(rs.cos(u[:-1]))
    return 0.5 * v + 0.25 * u


@pytest.mark.parametrize("shape", [(5, 7), (33, 40), (48, 3)])
@pytest.mark.parametrize("step", [laplace_padded, life, beside, block_written, row_of_numbers], ids=lambda f: f.__name__)
def test_matrices(monkeypatch, step, shape):
    def build(u):
        out = rs.loop(step, init=u, n_steps=3)
        return [out, rs.grad(rs.sum(out**2), u)]

    agree(monkeypatch, build, numbers(*shape))


WEIGHTS = np.random.default_rng(5).normal(size=(5, 5))


def blurred(image, weights):
    padded, (n, m) = rs.pad(image, 2), image.shape
    return sum(weights[i, j] * padded[i : i + n, j : j + m] for i in range(5) for j in range(5))


@pytest.mark.parametrize("shape", [(3, 5), (20, 17), (48, 48)])
@pytest.mark.parametrize("odd", [None, np.inf, np.nan, -0.0])
def test_blurs_and_their_gradients(monkeypatch, shape, odd):
    """What is written into zeros at 25 places, once times a weight that would make a zero of the margin a NaN."""
    weights = WEIGHTS.copy()
    if odd is not None:
        weights[0, 3] = odd

    def build(u, w):
        out = rs.loop(lambda u: u / (1 + blurred(u, w) ** 2), init=u, n_steps=2)
        return [out, *rs.grad(rs.sum(out**2), [u, w])]

    agree(monkeypatch, build, numbers(*shape), weights)


@pytest.mark.parametrize("dtype", ["float32", "int64", "int32"])
def test_sums_of_what_is_written_at_many_places(monkeypatch, dtype):
    """Set or added; of the array itself or what is made of it; one is read elsewhere, too; one place has no element before it."""
    places = [(0, 0), (0, 3), (1, 1), (2, 0), (2, 3), (1, 3)]

    def build(u, scale):
        def step(u):
            n, m, zeros = u.shape[0], u.shape[1], rs.zeros((11, 14), dtype=dtype)
            parts = [zeros.at[i : i + n, j : j + m].add(u * scale - u * u) for i, j in places]
            parts += [zeros.at[i : i + n, j : j + m].set(u) for i, j in places[1:4]]
            whole = sum(parts) + rs.cast(rs.sum(parts[2]), dtype)
            return whole[1:10, 2:13] // 7 if dtype != "float32" else rs.tanh(whole[1:10, 2:13])

        return rs.loop(step, init=u, n_steps=3)

    u = numbers(9, 11)
    agree(monkeypatch, build, (100 * u).astype(dtype) if dtype != "float32" else u.astype(dtype), np.array(3, dtype))


def test_rows_written_at_many_places(monkeypatch):
    """What is written has an axis of one more than what it is made of."""

    def build(u, k):
        def step(u):
            n, places = u.shape[0], [(i, j) for i in range(6) for j in range(0, 8, 3)]
            whole = sum(rs.zeros((6, 20)).at[i : i + 1, j : j + n].add(u * rs.reshape(k + i - j, (1, 1))) for i, j in places)
            return rs.tanh(rs.sum(whole, axis=0)[2 : n + 2])

        return rs.loop(step, init=u, n_steps=3)

    agree(monkeypatch, build, numbers(11), np.array(0.3))


def test_volumes(monkeypatch):
    def build(u, w):
        def step(u):
            p = rs.pad(u, 1)
            shifts = [(1, 1, 0), (1, 1, 2), (1, 0, 1), (1, 2, 1), (0, 1, 1), (2, 1, 1)]
            return u + w * sum(p[a : a + 6, b : b + 7, c : c + 9] - u for a, b, c in shifts)

        out = rs.loop(step, init=u, n_steps=2)
        return [out, *rs.grad(rs.sum(out**3), [u, w])]

    agree(monkeypatch, build, numbers(6, 7, 9), numbers(6, 7, 9, seed=1))


def test_slivers(monkeypatch):
    """Six arrays shifted by one place each: cut where they end, a walk would fall into vectors of a lane."""

    def build(u):
        def step(u):
            longer = rs.pad(u, ((0, 0), (0, 6)), constant_values=1.0)
            return rs.tanh(sum(longer[:, r : r + u.shape[1]] for r in range(1, 7)) - u)

        out = rs.loop(step, init=u, n_steps=3)
        return [out, rs.grad(rs.sum(out**2), u)]

    agree(monkeypatch, build, numbers(12, 20))


def put_together(kind, x, y, at):
    n = x.shape[0]
    if kind == 0:
        return rs.roll(x, at)
    if kind == 1:
        return rs.concatenate([x[at:], y[:at]])
    if kind == 2:
        return 0.5 * x + rs.tanh(y)
    if kind == 3:
        return rs.concatenate([y[:at], rs.zeros(n - at)])
    if kind == 4:
        return rs.flip(x, 0) * y
    return rs.concatenate([x[: at // 2], 0.25 * y[: n - at // 2]])


@pytest.mark.parametrize("seed", range(40))
def test_random_pieces(monkeypatch, seed):
    """What pieces are made of, and where they are cut, is drawn."""
    random = np.random.default_rng(seed)
    n = int(random.integers(40, 120))
    drawn = list(zip(random.integers(0, 6, size=8).tolist(), random.integers(1, n - 1, size=8).tolist(), strict=True))

    def build(u, w):
        def step(u):
            values = [u, w]
            for kind, at in drawn:
                values.append(put_together(kind, values[-1], values[at % len(values)], at))
            return rs.tanh(sum(values))

        out = rs.loop(step, init=u, n_steps=3)
        return [out, *rs.grad(rs.sum(out**2), [u, w])]

    agree(monkeypatch, build, numbers(n, seed=seed), numbers(n, seed=seed + 1))
