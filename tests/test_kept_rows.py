"""Gradients of loops whose steps run loops of numbers: the rows of those lie in memory of a kernel's own."""

import numpy as np
import pytest

import rscan as rs

LOOPS = {
    "until": lambda a, m, h: rs.loop(lambda u: (0.5 * u + rs.sin(a * u), rs.until(u < 0.3)), init=h, n_steps=40).last,
    "until alone": lambda a, m, h: rs.loop(lambda u: (0.5 * u + 0.1 * rs.sin(a * u), rs.until(rs.abs(u) < 1e-3)), init=h).last,
    "counted": lambda a, m, h: rs.loop(lambda u: 0.5 * u + rs.sin(a * u), init=h, n_steps=m).last,
    "ranged": lambda a, m, h: rs.fori(m, m + m % 3, lambda k, u: rs.tanh(a * u + 0.1 * k), h),
    "taps": lambda a, m, h: rs.loop(lambda u: rs.cos(u[0] * a) + 0.3 * u[1], init=rs.taps(rs.stack([h, 0.5 * h]), -2, -1), n_steps=m).last,
    "two states": lambda a, m, h: sum(rs.loop(lambda u, v: (rs.tanh(u - a * v), v * 0.9 + u), init=[h, a], n_steps=m).last),
    "vector": lambda a, m, h: rs.sum(rs.loop(lambda u: rs.tanh(u * a + u[::-1]), init=rs.stack([h, a, 0.2]), n_steps=m).last),
    "deeper": lambda a, m, h: (
        rs.loop(lambda u: 0.4 * rs.loop(lambda w: (rs.sin(w + a * u), rs.until(w > 0.8)), init=u, n_steps=5).last, init=h, n_steps=m).last
    ),
}


def program(name):
    inner = LOOPS[name]
    counts = np.array([1, 4, 2, 7, 1, 3, 12, 5])

    def total(a, x):
        out = rs.loop(lambda x, m, h: inner(a, m, rs.tanh(h + x)), over=(x, counts), init=0.4)
        return rs.sum(out**2)

    return total, (0.9, np.linspace(-1.0, 1.5, 8))


@pytest.mark.parametrize("name", LOOPS)
def test_gradients(monkeypatch, name):
    found = []
    for engine in ("eval", "vm", "jit"):
        monkeypatch.setenv("RSCAN_ENGINE", engine)
        total, args = program(name)
        f = rs.value_and_grad(total, argnums=(0, 1))
        value, (da, dx) = f(*args)
        found.append([np.asarray(x).tobytes() for x in (value, da, dx)])
        if engine != "eval" and name != "taps":
            assert str(f.explain()).count("a loop of the kernel of the loop around") >= 2, f.explain()
    assert found[0] == found[1] == found[2]
    e, g = 1e-6, rs.compile(total)
    steps = [(g(args[0], args[1] + e * d) - g(args[0], args[1] - e * d)) / (2 * e) for d in np.eye(8)]
    np.testing.assert_allclose(dx, steps, rtol=2e-5, atol=1e-7)
    np.testing.assert_allclose(da, (g(args[0] + e, args[1]) - g(args[0] - e, args[1])) / (2 * e), rtol=2e-5, atol=1e-7)


def sines(m, h):
    return rs.loop(lambda u: rs.sin(u * 1.1), init=h, n_steps=m).last


@pytest.mark.parametrize("counts", [[0, 0, 0], [3, 0, 2], [1, 20000, 2], [2, -1, 3]])
def test_no_steps_and_more_than_there_is_room_for(monkeypatch, counts):
    """There is room for the rows of some steps; the law runs loops of more, or says what is wrong."""
    found = []
    for engine in ("eval", "vm", "jit"):
        monkeypatch.setenv("RSCAN_ENGINE", engine)
        try:
            slope = rs.grad(lambda h, counts: rs.loop(sines, over=counts, init=h)[-1])(0.7, np.array(counts))
            found.append(np.asarray(slope).tobytes())
        except rs.errors.RscanError as error:
            found.append(str(error))
    assert found[0] == found[1] == found[2]


def slow(a, h):
    step = lambda u, k: (dict(u=u * 0.9999 + a * 1e-4, k=k + 1), rs.until(k > 20000))
    return rs.loop(step, init=dict(u=h, k=0)).last.u


def test_a_loop_that_runs_longer_than_there_is_room_for(monkeypatch):
    found = []
    for engine in ("eval", "vm", "jit"):
        monkeypatch.setenv("RSCAN_ENGINE", engine)
        slope = rs.grad(lambda h, a: rs.loop(slow, over=a, init=h)[-1])(0.7, np.array([0.1, 0.2]))
        found.append(np.asarray(slope).tobytes())
    assert found[0] == found[1] == found[2]


def test_memory_of_one_thread_is_not_that_of_another():
    from concurrent.futures import ThreadPoolExecutor

    total, args = program("counted")
    f = rs.value_and_grad(total, argnums=(0, 1))
    f(*args)

    def bits(given):
        value, slopes = f(*given)
        return [np.asarray(x).tobytes() for x in (value, *slopes)]

    given = [(a, args[1] * a) for a in np.linspace(0.5, 1.5, 16)]
    alone = [bits(g) for g in given]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(bits, given * 20)) == alone * 20
