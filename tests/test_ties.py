"""Slopes where elements tie: those of functions that are smooth there, and equal shares wherever inputs can be exchanged."""

import numpy as np
import pytest

import rscan as rs

TIED = [[2.0, 5.0, 5.0, 5.0], [1.0, 1.0, 1.0, 1.0], [0.0, -0.0, -1.0, 0.0], [3.0, 4.0, 3.0, 0.5], [7.0, 7.0, -7.0, 7.0]]
PASSES = [{}, {"excluding": ["masks"]}, {"excluding": ["stabilise", "fma"]}, {"excluding": ["scan"]}, {"excluding": ["cse", "algebra"]}]


def slope(f, at, order=1):
    """The derivative of a function of a number, with all passes and with none."""
    s = rs.dscalar("s")
    y = f(s)
    for _ in range(order):
        y = rs.grad(y, s)
    found = float(rs.function([s], y)(at))
    with rs.config.override(passes="none"):
        assert float(rs.function([s], y)(at)) == pytest.approx(found, rel=1e-14, abs=1e-300)
    return found


def gradient(f, x, dtype="float64", **options):
    v = rs.tensor(dtype, (None,) * np.ndim(x))
    return rs.function([v], rs.grad(rs.sum(f(v)), v), **options)(np.asarray(x, dtype))


#: Functions that are s for positive s (or for all where marked), however they are written.
IDENTITIES = {
    "max": lambda s: rs.max(s * rs.ones(5)),
    "min": lambda s: rs.min(s * rs.ones((2, 3))),
    "max over an axis": lambda s: rs.mean(rs.max(s * rs.ones((4, 3)), axis=1)),
    "max over the first": lambda s: rs.mean(rs.min(s * rs.ones((4, 3)), axis=0, keepdims=True)),
    "some tie": lambda s: rs.max(s * np.array([1.0, 1.0, 0.5, 1.0])),
    "the middle": lambda s: 2 * rs.max(s * rs.ones(3)) - rs.min(s * rs.ones(3)),
    "maximum": lambda s: rs.maximum(s, s),
    "minimum": lambda s: rs.minimum(s, s * 1.0),
    "maximum of arrays": lambda s: rs.sum(rs.maximum(s * np.array([1.0, 2.0, 0.0]), s * np.array([1.0, 1.0, -3.0]))) / 3,
    "repeated": lambda s: rs.mean(rs.maximum(s * rs.ones(3), s)),
    "clip": lambda s: rs.clip(s, s, s),
    "clip below": lambda s: rs.clip(s, s, 2 * s),
    "clip above": lambda s: rs.clip(s, -s, s),
    "sort": lambda s: rs.sum(rs.sort(s * rs.ones(4)) * np.array([0.25, 1.0, -0.5, 0.25])),
    "argsort": lambda s: rs.sum((s * rs.ones(3))[rs.argsort(s * rs.ones(3))] * np.array([0.5, 2.0, -1.5])),
    "prod": lambda s: rs.prod(s * rs.ones(1)),
    "logsumexp": lambda s: rs.logsumexp(s * rs.ones(4)) - np.log(4.0),
    "norm": lambda s: rs.linalg.norm(s * rs.ones(3), np.inf),
    "matrix norm": lambda s: rs.linalg.norm(s * rs.ones((2, 2)), 1) / 2,
    "max of max": lambda s: rs.max(rs.stack([rs.max(s * rs.ones(3)), s, rs.maximum(s, s)])),
}


@pytest.mark.parametrize("f", IDENTITIES.values(), ids=IDENTITIES)
def test_functions_that_are_smooth_where_they_tie_have_their_slopes(f):
    assert slope(f, 1.5) == pytest.approx(1, rel=1e-14)
    assert slope(lambda s: f(s) ** 2, 1.5) == pytest.approx(3, rel=1e-14)
    assert slope(lambda s: f(s) ** 3, 1.5, 2) == pytest.approx(9, rel=1e-13)


#: Functions that are x at every x, bends or not.
UNBENT = {
    "parts": lambda x: rs.maximum(x, 0.0) + rs.minimum(x, 0.0),
    "rectified": lambda x: rs.maximum(x, 0.0) - rs.maximum(-x, 0.0),
    "two clips": lambda x: rs.clip(x, -9.0, 0.0) + rs.clip(x, 0.0, 9.0),
    "a clip and what it cuts off": lambda x: rs.clip(x, -1.0, 1.0) + rs.maximum(x - 1.0, 0.0) + rs.minimum(x + 1.0, 0.0),
    "sizes": lambda x: rs.maximum(x, 0.0) * 2.0 - abs(x),
    "hinges": lambda x: rs.maximum(x + 1.0, 0.0) - rs.maximum(-1.0 - x, 0.0) - 1.0,
    "of both": lambda x: rs.maximum(x, -x) + 2 * rs.minimum(x, 0.0),
    "leaky": lambda x: (rs.where(x > 0, x, 0.1 * x) + rs.where(x > 0, 0.1 * x, x)) / 1.1,
}


@pytest.mark.parametrize("f", UNBENT.values(), ids=UNBENT)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bends_that_cancel_leave_no_trace(f, dtype):
    x = np.array([-2.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 3.0])
    np.testing.assert_allclose(gradient(f, x, dtype), np.ones_like(x), rtol=1e-6)
    assert (gradient(lambda v: rs.maximum(v, -v), [0.0, -0.0]) == 0).all()


@pytest.mark.parametrize("x", TIED)
@pytest.mark.parametrize("options", PASSES, ids=str)
def test_exchangeable_elements_share_equally(x, options):
    x = np.array(x)
    for f, of in [(rs.max, np.max), (rs.min, np.min)]:
        hit = x == of(x)
        np.testing.assert_array_equal(gradient(f, x, **options), hit / hit.sum())
        both = np.stack([x, x + 1])
        np.testing.assert_array_equal(gradient(lambda v: f(v, 1), both, **options), np.stack([hit, hit]) / hit.sum())  # noqa: B023
        np.testing.assert_array_equal(gradient(lambda v: f(v, 0), both.T, **options), np.stack([hit, hit]).T / hit.sum())  # noqa: B023
        np.testing.assert_array_equal(gradient(lambda v: f(v, (0, 1)), np.stack([x, x]), **options), np.stack([hit, hit]) / hit.sum() / 2)  # noqa: B023


def test_two_inputs_share_equally():
    x, y = rs.dvector("x"), rs.dvector("y")
    a, b = np.array([1.0, 2.0, 3.0, np.inf, np.nan]), np.array([1.0, 3.0, 2.0, np.inf, 1.0])
    for f, wins in [(rs.maximum, a > b), (rs.minimum, a < b)]:
        gx, gy = rs.function([x, y], rs.grad(rs.sum(f(x, y)), [x, y]))(a, b)
        shares = np.where(a == b, 0.5, wins)
        np.testing.assert_array_equal(gx, np.where(np.isnan(a), 0, shares))
        np.testing.assert_array_equal(gy, np.where(np.isnan(a), 0, 1 - shares))
        pushed = rs.function([x, y], rs.jvp(f(x, y), [x, y], [x * 0 + 2.0, y * 0 + 2.0]))(a[:3], b[:3])
        np.testing.assert_array_equal(pushed, [2.0, 2.0, 2.0])


def test_tangents_are_those_of_the_shares():
    x, t = rs.dvector("x"), rs.dvector("t")
    f = rs.function([x, t], rs.jvp(rs.max(x), x, t))
    assert f([1.0, 4.0, 4.0], [7.0, 1.0, 2.0]) == 1.5
    assert f([4.0, 4.0, 4.0], [1.0, 1.0, 1.0]) == pytest.approx(1, rel=1e-15)


def test_where_the_extreme_is_nan_nothing_has_a_slope_nor_a_slope_of_it():
    x, t = rs.dvector("x"), rs.dvector("t")
    g = rs.grad(rs.max(x) * rs.sum(t), x)
    f = rs.function([x, t], [g, *rs.grad(rs.sum(g), [x, t], disconnected_inputs="ignore")])
    for found in f([1.0, np.nan], [2.0, 3.0]):
        np.testing.assert_array_equal(found, [0.0, 0.0])


def compared(h, x):
    top = rs.max(h)
    return rs.where(rs.eq(h, top), h * x, 0.5 * h) + 0.25 * rs.min(h) - 0.125 * rs.maximum(h, top * x)


STEPS = {
    "compared with its extreme": compared,
    "held": lambda h, x: rs.clip(h * x, rs.min(h), rs.max(h)),
    "sorted": lambda h, x: rs.sort(h) * x + rs.max(h),
    "contracted": lambda h, x: rs.maximum(h * 0.3 + rs.max(h) * 0.7, h * x) * 0.8 + h[::-1] * 0.1,
    "rectified": lambda h, x: rs.maximum(h - rs.max(h), 0.0) + h * x,
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("options", PASSES, ids=str)
@pytest.mark.parametrize("order", [1, 2])
def test_steps_of_tied_states_have_the_slopes_of_what_they_are_of_one_number(step, options, order):
    """Homogeneous in h0: of degree 1, so the slope along h0 is the value; and for equal elements the state is c·s for a number c."""
    xs, s = rs.dvector("xs"), rs.dscalar("s")
    h, _ = rs.scan(lambda x, h: step(h, x), sequences=xs, outputs_info=s * rs.ones(4))
    y = rs.sum(h[-1] * np.array([1.0, 2.0, -0.5, 0.25]))
    g = rs.grad(y**order, s)
    g = rs.grad(g, s) if order == 2 else g
    args = [np.array([0.7, 1.0, 1.3, 0.9]), 1.5]
    value = rs.function([xs, s], y)(*args)
    expected = value / 1.5 if order == 1 else 2 * (value / 1.5) ** 2
    assert rs.function([xs, s], g, **options)(*args) == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_partial_ties_in_steps(step):
    xs, h0 = rs.dvector("xs"), rs.dvector("h0")
    h, _ = rs.scan(lambda x, h: step(h, x), sequences=xs, outputs_info=h0)
    y = rs.sum(h[-1] * np.array([1.0, 2.0, -0.5, 0.25]))
    outputs = [y, rs.grad(y, h0)]
    args = [np.array([0.7, 1.0, 1.3]), np.array([2.0, 2.0, 1.0, 1.0])]
    found = rs.function([xs, h0], outputs)(*args)
    assert found[1] @ args[1] == pytest.approx(float(found[0]), rel=1e-12)
    with rs.config.override(passes="none"):
        for x, z in zip(found, rs.function([xs, h0], outputs)(*args), strict=True):
            np.testing.assert_allclose(x, z, rtol=1e-12)


@pytest.mark.parametrize("even", [True, False])
def test_a_tie_of_values_that_are_rounded_stays_one_in_the_gradient(even):
    """The rows of w are equal, so the elements of h @ w.T tie, however the products are rounded where the gradient takes them again."""
    w, xs = rs.dmatrix("w"), rs.dmatrix("xs")

    def step(x, h):
        z = rs.tanh(h @ w.T) * x + h * 0.3
        top = rs.max(z)
        return rs.tanh(z) * 0.7, top, z

    (_, top, z), _ = rs.scan(step, sequences=xs, outputs_info=[0.3 * rs.ones(5), None, None])
    g = rs.grad(rs.sum(top), xs)
    rng = np.random.default_rng(1)
    row = np.full(5, 0.3137) if even else rng.standard_normal(5)
    args = [np.tile(row, (5, 1)), np.tile(rng.standard_normal((30, 1)), (1, 5))]
    found, rows = rs.function([w, xs], [g, z])(*args)
    assert (rows == rows[:, :1]).all()
    if even:
        np.testing.assert_allclose(found, np.tile(found[:, :1], (1, 5)), rtol=1e-12)
    with rs.config.override(passes="none"):
        np.testing.assert_allclose(found, rs.function([w, xs], g)(*args), rtol=1e-9)
