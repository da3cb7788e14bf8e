"""Loops whose rows stop on their own, written by hand: what a mask leaves out counts wherever the step reads it, beside NumPy."""

import numpy as np
import pytest

import rscan as rs


class InNumPy:
    """What steps call, in NumPy; everything else is spelt alike."""

    where, sum, max, flip, tanh = np.where, np.sum, np.max, np.flip, np.tanh
    cumsum, concatenate, transpose, constant = np.cumsum, np.concatenate, np.transpose, np.asarray

    @staticmethod
    def add_at(x, place, y):
        x = x.copy()
        np.add.at(x, place, y)
        return x

    @staticmethod
    def set_at(x, place, y):
        x = x.copy()
        x[place] = y
        return x


class InRscan:
    """The same in rscan."""

    where, sum, max, flip, tanh = rs.where, rs.sum, rs.max, rs.flip, rs.tanh
    cumsum, concatenate, transpose, constant = rs.cumsum, rs.concatenate, rs.transpose, rs.constant

    @staticmethod
    def add_at(x, place, y):
        return x.at[place].add(y)

    @staticmethod
    def set_at(x, place, y):
        return x.at[place].set(y)


def both(step, init, n_steps):
    """The last states by rscan, and by NumPy's loop."""

    def stepped(*states):
        new = step(InRscan, *states)
        return new, rs.until(~rs.any(new[-1]))

    got = rs.compile(lambda *init: rs.loop(stepped, init=init, n_steps=n_steps).last)(*init)
    for _ in range(n_steps):
        init = step(InNumPy, *init)
        if not init[-1].any():
            break
    return got, init


def check(step, init, n_steps):
    got, wanted = both(step, init, n_steps)
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-9, atol=1e-12)


X = np.array([1.0, 2.0, 0.1, 7.0, -3.0])
SQUARE = np.arange(9.0).reshape(3, 3) / 4


def summed(m, h, goes):
    new = m.where(goes, h + m.sum(m.where(goes, h, 0.0)), h)
    return new, goes & (new < 10)


def flipped(m, h, goes):
    new = m.where(goes, 0.5 * m.flip(m.where(goes, h, -1.0), 0) + 1, h)
    return new, goes & (new < 3)


def turned(m, h, goes):
    rows = goes[:, None]
    new = m.where(rows, m.transpose(m.where(rows, h, 1.0)) + 0.25, h)
    return new, goes & (m.max(new, axis=1) < 2.5)


def of_elements(m, h, goes):
    new = m.where(goes, h + 0.1 * m.sum(m.where(goes, h, 0.0), axis=1)[:, None], h)
    return new, goes & (new < 2.0)


def neighbours(m, h, goes):
    seen = m.where(goes, h, 0.0)
    new = m.where(goes, h + 0.5 * m.concatenate([seen[1:], seen[:1]]), h)
    return new, goes & (new < 6)


@pytest.mark.parametrize(
    ("step", "h", "goes"),
    [
        (summed, X, X < 10),
        (summed, X, X < 2),
        (flipped, X, X < 3),
        (turned, SQUARE, np.array([True, True, False])),
        (of_elements, SQUARE, SQUARE < 2),
        (neighbours, X, X < 6),
    ],
)
def test_rows_that_have_stopped_are_what_the_mask_says(step, h, goes):
    check(step, (h, goes), 20)


def random_step(rng, n, rank):
    """A step of `h`, of places `k` and of a mask, drawn once."""
    draws = rng.integers(0, 1 << 30, 100)
    h0, table = rng.normal(size=(n,) * rank), rng.normal(size=n)

    def step(m, h, k, goes):
        drawn = iter(draws.tolist())
        rows = goes if goes.ndim == rank else goes[:, None]
        alone = goes if goes.ndim == 1 else goes[:, 0]
        place = [m.where(alone, k, 0), k][next(drawn) % 2]
        values = [m.where(rows, h, h0), m.where(rows, h, 0.25), h]
        for _ in range(3 + next(drawn) % 4):
            a, b = (values[next(drawn) % len(values)] for _ in range(2))
            made = [
                lambda a, b: 0.5 * a - b,
                lambda a, b: m.tanh(a),
                lambda a, b: a + 0.1 * m.sum(b),
                lambda a, b: a + 0.1 * m.sum(b, axis=0),
                lambda a, b: m.flip(a, 0) if rank == 1 else m.transpose(a),
                lambda a, b: a[place],
                lambda a, b: m.constant(table)[place] + b if rank == 1 else a[np.arange(n), place][:, None] + b,
                lambda a, b: 0.2 * m.cumsum(a, axis=0),
                lambda a, b: m.add_at(a, place, b),
                lambda a, b: m.where(rows, m.set_at(a, (np.arange(n), place), 0.5), a) if rank == 2 else m.max(a) - b,
                lambda a, b: m.concatenate([a[1:], b[:1]]),
                lambda a, b: m.where(rows, a, b),
                lambda a, b: m.where(rows, a, h),
            ]
            values.append(made[next(drawn) % len(made)](a, b))
        new = m.where(rows, values[-1] + 0.25 * values[-2] + 0.3, h if next(drawn) % 4 else 0.0 * h)
        places = m.where(alone, (k + 1) % n, k) if next(drawn) % 2 else (k + 1) % n
        return new, places, goes & ((new if goes.ndim == rank else m.max(new, axis=1)) < 4.0)

    return step


@pytest.mark.parametrize("seed", range(120))
def test_random_steps_of_masked_rows(seed):
    rng = np.random.default_rng(seed)
    n, rank = int(rng.integers(1, 5)), int(rng.integers(1, 3))
    shape = (n,) * (rank if rng.random() < 0.4 else 1)
    init = (rng.normal(size=(n,) * rank), rng.integers(0, n, n), rng.random(shape) < 0.8)
    check(random_step(rng, n, rank), init, int(rng.integers(1, 9)))


def test_rows_of_a_batch_that_have_stopped_read_no_place_that_is_not_there():
    def pops(stack, n):
        def step(stack, n):
            value = stack[n - 1] + stack[n - 2]
            return (stack.at[n - 2].set(value), n - 1), rs.until(n - 1 < 2)

        last = rs.loop(step, init=(stack, n), n_steps=rs.where(n > 1, 10, 0)).last
        return last[0][0]

    stacks, n = np.arange(24.0).reshape(4, 6), np.array([6, 1, 2, 4])
    wanted = [stack[: max(n, 1)].sum() for stack, n in zip(stacks, n, strict=True)]
    np.testing.assert_array_equal(rs.compile(rs.vmap(pops))(stacks, n), wanted)
    slopes = rs.compile(rs.vmap(rs.grad(pops)))(stacks, n)
    np.testing.assert_array_equal(slopes, [[float(k < max(m, 1)) for k in range(6)] for m in n])


def test_a_fault_in_a_row_that_goes_on_is_an_error():
    def walk(places, at):
        def step(at, n):
            return (places[at], n + 1), rs.until(places[at] == 0)

        return rs.loop(step, init=(at, 0), n_steps=8).last[1]

    mapped = rs.compile(rs.vmap(walk))
    places = np.array([[1, 2, 0, 0], [0, 0, 0, 0], [3, 0, 0, 2]])
    np.testing.assert_array_equal(mapped(places, np.array([0, 1, 0])), [3, 1, 3])
    with pytest.raises(IndexError, match="index 9 is out of range"):
        mapped(np.array([[1, 2, 0, 0], [0, 0, 0, 0], [3, 0, 0, 9]]), np.array([0, 1, 0]))


def test_a_choice_by_the_mask_and_something_else_is_no_guard():
    h, some = np.array([-1.0, 1.0, -2.0, 2.0]), np.array([True, False, True, False])

    def step(m, h, goes):
        new = m.where(goes, m.where(goes & (h > 0), h, 10 * h) + 1, h)
        return new, goes & (new < 4)

    check(step, (h, h < 9), 4)

    def given(m, h, goes):
        new = m.where(goes, m.where(goes & m.constant(some), h, -h) + 1, h)
        return new, goes & (new < 4)

    check(given, (h, h < 9), 4)


def test_rows_that_a_mask_repeats():
    chosen = rs.compile(lambda c, x, i, y: rs.where(c[:, None], x.at[rs.arange(x.shape[0]), i].set(y), x))
    mask, one = np.array([True, False]), np.arange(3.0)[None]
    np.testing.assert_array_equal(chosen(mask, one, np.array([1]), 7.0), [[0, 7, 2], [0, 1, 2]])
    two = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(chosen(mask, two, np.array([1, 2]), 7.0), [[0, 7, 2], [3, 4, 5]])
    np.testing.assert_array_equal(chosen(mask[:1], two, np.array([1, 2]), 7.0), [[0, 7, 2], [3, 4, 7]])


def test_rows_of_rows_that_stop_on_their_own():
    def grown(x, scale, table):
        def step(t, h):
            new = 0.5 * h + scale * rs.cast(t, "float64") + table[t % 3]
            return {"h": new}, rs.until(new > 4)

        return rs.loop(step, over={"t": rs.arange(9)}, init={"h": x}).last.h

    def by_numpy(x, scale, table):
        for t in range(9):
            x = 0.5 * x + scale * t + table[t % 3]
            if x > 4:
                break
        return x

    x, scale, tables = np.arange(9.0).reshape(3, 3) - 4, np.array([0.2, 1.0, 3.0]), np.arange(9.0).reshape(3, 3) / 8
    inner = rs.vmap(grown, (0, None, None))
    for outer, scales in [((0, None, 0), [scale[1]] * 3), ((0, 0, 0), scale)]:
        found = rs.compile(rs.vmap(inner, outer))(x, scale[1] if outer[1] is None else scale, tables)
        wanted = [[by_numpy(v, s, table) for v in row] for row, s, table in zip(x, scales, tables, strict=True)]
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    across = rs.compile(rs.vmap(rs.vmap(grown, (0, 0, None)), (1, None, 0)))(x, scale, tables)
    wanted = [[by_numpy(x[j, i], scale[j], tables[i]) for j in range(3)] for i in range(3)]
    np.testing.assert_allclose(across, wanted, rtol=1e-12)
