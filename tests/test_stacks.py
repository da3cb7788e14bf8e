"""Reductions of stacks: functions of what was stacked, with the bits of the reduction, and with its gradients."""

import numpy as np
import pytest

import rscan as rs

A, B = np.array([1.0, np.nan, 0.0, -np.inf, 3.0, -0.0, np.inf]), np.array([2.0, 1.0, -0.0, -np.inf, np.nan, -0.0, np.inf])
C = np.array([2.0, 5.0, 1.0, -np.inf, 1.0, -0.0, np.nan])
REDUCTIONS = {
    "max": lambda s: rs.max(s, axis=0),
    "min": lambda s: rs.min(s, axis=0),
    "argmax": lambda s: rs.argmax(s, axis=0),
    "argmin": lambda s: rs.argmin(s, axis=0),
    "sum": lambda s: rs.sum(s, axis=0),
    "kept": lambda s: rs.sum(s, axis=0, keepdims=True),
    "mean": lambda s: rs.mean(s, axis=0),
    "prod": lambda s: rs.prod(s, axis=0),
    "any": lambda s: rs.any(s > 1, axis=0),
    "all": lambda s: rs.all(s > 1, axis=0),
    "logsumexp": lambda s: rs.logsumexp(s, axis=0),
    "softmax": lambda s: rs.softmax(s, axis=0)[1],
    "log_softmax": lambda s: rs.log_softmax(s, axis=0)[-1],
    "of a function": lambda s: rs.sum(rs.where(rs.isfinite(s), rs.exp(s * 0.5), 0), axis=0),
    "weighted": lambda s: rs.max(s * rs.constant(np.linspace(0.5, 2, s.ndim + 1))[:, None], axis=0),
}
DTYPES = {"f64": (rs.dvector, "float64"), "f32": (rs.fvector, "float32"), "i32": (rs.ivector, "int32")}
each = pytest.mark.parametrize("reduction", REDUCTIONS.values(), ids=REDUCTIONS)


def both(build, args):
    """Of a function with the pass and of one without."""
    variables, out = build()
    optimised = rs.function(variables, out)
    plain = rs.function(variables, out, excluding=["stacks"])
    return optimised, optimised(*args), plain(*args)


@pytest.mark.parametrize("dtype", DTYPES)
@each
def test_reductions_have_the_bits_of_the_stack(reduction, dtype):
    make, name = DTYPES[dtype]
    arrays = [np.nan_to_num(x, nan=7, posinf=9, neginf=-9).astype(name) if name == "int32" else x.astype(name) for x in (A, B, C)]

    def build():
        # Of the same length, as the graph can tell: other stacks stay.
        x = make("x")
        y, z = rs.constant(arrays[1]), rs.constant(arrays[2])
        return [x], reduction(rs.stack([x[: len(A)] + rs.zeros(len(A), dtype=name), y, z]))

    f, got, plain = both(build, [arrays[0]])
    assert "join" not in f.text(optimised=True)
    assert got.dtype == plain.dtype
    assert got.shape == plain.shape
    np.testing.assert_array_equal(np.isnan(got), np.isnan(plain))
    there = ~np.isnan(plain)
    assert got[there].tobytes() == plain[there].tobytes()


@each
def test_gradients_in_loops_are_those_of_the_stack(reduction):
    u = np.random.default_rng(2).normal(size=5)

    def build():
        x = rs.dvector("x")

        def step(h):
            left = rs.concatenate([rs.full(1, -2.0), h[:-1]])
            y = reduction(rs.stack([h, left, 0.3 * h + 0.1]))
            return 0.5 * h + 0.2 * rs.cast(y if y.ndim == 1 else y[0], "float64") + x * 0.1

        h = rs.loop(step, init=rs.constant(u), n_steps=4)
        return [x], [h, *rs.grad(rs.sum(h[-1] ** 2), [x], disconnected_inputs="ignore")]

    _, got, plain = both(build, [u[::-1].copy()])
    for a, b in zip(got, plain, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-15)


def test_stacks_of_arrays_that_do_not_fit_are_refused_as_ever():
    x, y = rs.dvector("x"), rs.dvector("y")
    f = rs.function([x, y], rs.sum(rs.stack([x, y]), axis=0))
    np.testing.assert_array_equal(f(np.ones(3), np.ones(3)), 2 * np.ones(3))
    for wrong in (np.ones(1), np.ones(2)):
        with pytest.raises(rs.RscanError, match="E0"):
            f(np.ones(3), wrong)


def test_what_is_read_whole_is_computed_once():
    x = rs.dvector("x")
    every = rs.exp(rs.stack([x, 2 * x]))
    text = rs.function([x], [rs.sum(every, axis=0), every]).text(optimised=True)
    assert text.count("exp(") == 1
