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
