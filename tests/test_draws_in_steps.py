"""Draws of few numbers whose keys are made in the step: kernels compute them, with the bits of whole arrays of draws."""

import numpy as np
import pytest

import rscan as rs

R = rs.random

# What a step draws of a key that it makes, and whether a kernel computes it.
DRAWS = {
    "uniform": (lambda k: R.uniform(k), True),
    "uniform of float32": (lambda k: R.uniform(k, dtype="float32"), True),
    "three": (lambda k: R.uniform(k, 3), True),
    "a matrix of float32": (lambda k: R.uniform(k, (2, 3), dtype="float32"), True),
    "none": (lambda k: R.uniform(k, (0, 2)), None),
    "normal": (lambda k: R.normal(k), True),
    "two normals": (lambda k: R.normal(k, 2), True),
    "four normals": (lambda k: R.normal(k, (2, 2)), True),
    "seven normals of float32": (lambda k: R.normal(k, 7, dtype="float32"), True),
    "a range": (lambda k: R.integers(k, -3, 4), True),
    "a range of a power of two": (lambda k: R.integers(k, 0, 64, 2), True),
    "a large range": (lambda k: R.integers(k, -5, 2**32 - 6), True),
    "a larger range": (lambda k: R.integers(k, 0, 2**33), False),
    "all integers but one": (lambda k: R.integers(k, -(2**63), 2**63 - 1), False),
    "a stream below it": (lambda k: R.uniform(R.fold_in(k, 2**40 + 3)), True),
    "a negative stream": (lambda k: R.uniform(R.fold_in(k, -1)), True),
    "streams of an array": (lambda k: rs.vmap(lambda n: R.fold_in(k, n))(np.array([1, -7], "int8")), True),
    "a draw of each of two keys": (lambda k: rs.vmap(R.normal)(R.split(k, 2)), True),
    "many": (lambda k: R.uniform(k, 50), False),
    "a choice": (lambda k: R.bernoulli(k, 0.3), True),
    "gamma": (lambda k: R.gamma(k, 0.7), None),
    "a permutation": (lambda k: R.permutation(k, 5), False),
}


def drawn(draw):
    """Draws in loops in loops whose number of steps depends on what is drawn."""

    @rs.compile
    def f(seed, x):
        key = R.key(seed)

        def outer(t, s):
            mine = R.fold_in(key, t)

            def inner(i, s):
                k = R.fold_in(mine, i)
                u = draw(k)
                s = 0.5 * s + rs.sum(rs.cast(u, "float64") % 7)
                return dict(i=i + 1, s=s), rs.until((i >= 5) | (R.uniform(R.fold_in(k, 0)) < 0.2))

            last = rs.loop(inner, init=dict(i=0, s=s)).last
            return dict(s=last.s, u=draw(R.fold_in(mine, last.i)), steps=last.i)

        out = rs.loop(outer, over=dict(t=rs.arange(40)), init=dict(s=x))
        return out.u, out.s, out.steps

    return f


@pytest.mark.parametrize("name", DRAWS)
def test_engines_draw_the_same_bits(name, monkeypatch):
    draw, in_kernels = DRAWS[name]
    made = {}
    for engine in ("eval", "vm", "jit", "auto"):
        monkeypatch.setenv("RSCAN_ENGINE", engine)
        f = drawn(draw)
        made[engine] = [f(seed, 0.25) for seed in (0, 7, -(2**63))]
        if engine == "jit" and in_kernels is not None:
            assert ("calls of" in str(f.explain())) != in_kernels, str(f.explain())
    for engine, found in made.items():
        for ours, law in zip(found, made["eval"], strict=True):
            for a, b in zip(ours, law, strict=True):
                assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes(), engine
    assert len({int(n) for n in made["eval"][0][2]}) > 1


@pytest.mark.parametrize("dtype", ("float32", "float64"))
@pytest.mark.parametrize("draw", (R.uniform, R.normal))
def test_numbers_are_those_of_a_whole_array(draw, dtype):
    """Element i of a draw of a key is the same in a step and outside of it."""

    @rs.compile
    def f(seed, n):
        def step(i, s):
            return dict(s=s, y=draw(R.fold_in(R.fold_in(R.key(seed), s), i), 4, dtype=dtype))

        return rs.loop(step, over=rs.arange(n), init=dict(s=3)).y

    key = R.fold_in(R.key(5), 3)
    for number, row in enumerate(f(5, 6)):
        assert row.tobytes() == draw(R.fold_in(key, number), 9, dtype=dtype).eval()[:4].tobytes()


def test_steps_with_draws_under_vmap():
    f = drawn(lambda k: R.normal(k))
    x = np.linspace(-1, 1, 5)
    mapped = rs.compile(lambda seeds, x: rs.vmap(f)(seeds, x))
    seeds = np.arange(5)
    for row, (seed, x0) in enumerate(zip(seeds, x, strict=True)):
        for a, b in zip(mapped(seeds, x), f(seed, x0), strict=True):
            np.testing.assert_array_equal(a[row], b)


def test_a_range_without_numbers_is_an_error():
    f = drawn(lambda k: R.integers(k, 3, 3))
    with pytest.raises(rs.errors.RscanValueError, match="low < high"):
        f(0, 0.0)
