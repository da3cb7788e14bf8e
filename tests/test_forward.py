"""Forward mode: tangents of loops, beside differences and beside what cotangents say, in one loop."""

import numpy as np
import pytest

import rscan as rs


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).uniform(0.2, 0.9, size=shape)


def several_taps(x, h, w):
    return rs.scan(
        lambda a, b, old, new: rs.tanh(a * old + b * new * w),
        sequences=dict(input=x, taps=[-1, 0]),
        outputs_info=dict(initial=h, taps=[-3, -1]),
    )[0]


def backwards(x, h, w):
    return rs.scan(lambda a, s: a * s + w, sequences=x, outputs_info=h[0], go_backwards=True)[0]


def stopped(x, h, w):
    return rs.loop(lambda a, s: (s * (1 + a * w), rs.until(s > 2.0)), over=x, init=h[0])


def last_row(x, h, w):
    return rs.loop(lambda a, s: rs.sin(s) * a + w, over=x, init=h)[-1]


def in_loops(x, h, w):
    inner = lambda a, s: rs.loop(lambda b, c: rs.tanh(b * c + a * w), over=x, init=s)[-1]
    return rs.loop(inner, over=x, init=h[1])


def written(x, h, w):
    return rs.loop(lambda a, i, s: s.at[i % 3].add(a * w * s[(i + 1) % 3]), over=(x, rs.arange(x.shape[0])), init=h)


def not_moved(x, h, w):
    """One state has a tangent from the second step on, one has none."""
    step = lambda a, p, q: dict(p=p + 1.0, q=q * 0.5 + a * w * p)
    return rs.loop(step, over=x, init=dict(p=rs.constant(np.float64(0.0)), q=rs.constant(np.float64(1.0))))["q"]


def decided(x, h, w):
    return rs.loop(lambda a, s: rs.where(a > 0.5, s * w, rs.ifelse(a > 0.3, s + w, s - a)), over=x, init=h[2])


def of_gradient(x, h, w):
    return rs.grad(rs.sum(several_taps(x, h, w) ** 2), x)


def truncated(x, h, w):
    return rs.scan(lambda a, s: a * s + w, sequences=x, outputs_info=h[0], truncate_gradient=4)[0][-1]


LOOPS = [several_taps, backwards, stopped, last_row, in_loops, written, not_moved, decided, of_gradient]


def pushed(build):
    x, h, w = rs.dvector("x"), rs.dvector("h"), rs.dscalar("w")
    dx, dh, dw = rs.dvector("dx"), rs.dvector("dh"), rs.dscalar("dw")
    y = build(x, h, w)
    return rs.function([x, h, w, dx, dh, dw], [y, rs.jvp(y, [x, h, w], [dx, dh, dw])], on_unused_input="ignore")


@pytest.mark.parametrize("build", LOOPS, ids=lambda f: f.__name__)
def test_tangents_of_loops_are_differences(build):
    f = pushed(build)
    at, along = (numbers(8), numbers(3, seed=1), 0.7), (numbers(8, seed=2), numbers(3, seed=3), -0.4)
    tangent = f(*at, *along)[1]
    e = 1e-6
    ahead, behind = (f(*(a + s * e * d for a, d in zip(at, along, strict=True)), *along)[0] for s in (1, -1))
    np.testing.assert_allclose(tangent, (ahead - behind) / (2 * e), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("build", [*LOOPS, truncated], ids=lambda f: f.__name__)
def test_tangents_and_cotangents_tell_the_same(build):
    x, h, w = rs.dvector("x"), rs.dvector("h"), rs.dscalar("w")
    y = build(x, h, w)
    given = [rs.cos(x), h * 2.0, w + 1.0]
    forwards = rs.sum(rs.jvp(y, [x, h, w], given) * rs.sin(y))
    pulled = rs.vjp(y, [x, h, w], [rs.sin(y)], disconnected_inputs="ignore")
    backwards = sum(rs.sum(a * b) for a, b in zip(pulled, given, strict=True))
    f = rs.function([x, h, w], [forwards, backwards], on_unused_input="ignore")
    one, other = f(numbers(8), numbers(3, seed=1), 0.7)
    np.testing.assert_allclose(one, other, rtol=1e-12)


def test_a_tangent_takes_one_loop():
    f = pushed(several_taps)
    f(numbers(8), numbers(3), 0.7, numbers(8), numbers(3), 0.1)
    assert len(f.explain().loops) == 1, f.explain()


@pytest.mark.parametrize("backwards", [False, True])
def test_narrow_jacobians_are_those_of_reverse_mode(backwards):
    """Variables of no more elements than the array go forwards; where there are more, all go backwards together."""
    a, b = rs.tensor("float64", (2,)), rs.tensor("float64", (9,))
    y = rs.loop(lambda s: rs.tanh(s * a[0] + a[1] * rs.sum(b)), init=b[:4], n_steps=3, name="course")
    y = y[-1] if backwards else rs.concatenate([y[i] for i in range(3)])[:11]
    narrow, wide = rs.jacobian(y, [a, b])
    n = 4 if backwards else 11
    rows = [rs.grad(y[i], [a, b]) for i in range(n)]
    f = rs.function([a, b], [narrow, wide, rs.stack([r[0] for r in rows]), rs.stack([r[1] for r in rows])])
    given = numbers(2), numbers(9, seed=1) / 9
    narrow, wide, want_narrow, want_wide = f(*given)
    assert narrow.shape == (n, 2) and wide.shape == (n, 9)
    jacobians = rs.function([a, b], rs.jacobian(y, [a, b]))
    jacobians(*given)
    assert ("grad of course" in str(jacobians.explain())) == backwards, jacobians.explain()
    np.testing.assert_allclose(narrow, want_narrow, rtol=1e-12)
    np.testing.assert_allclose(wide, want_wide, rtol=1e-12)


@pytest.mark.parametrize("transform", [rs.jacobian, lambda f: rs.compile(lambda p, x: rs.jacobian(f)(p, x))], ids=["itself", "within"])
def test_the_first_call_tells_which_way_is_shorter(transform):
    """What a function is compiled for holds for all extents; which way it takes is that of the call that it was compiled for."""

    def course(p, x):
        return rs.loop(lambda x: x + 0.1 * rs.sum(rs.sin(p * x)), init=x, n_steps=6, name="course")

    def differences(p, x, e=1e-6):
        f = rs.compile(course)
        return np.stack([(f(p + e * d, x) - f(p - e * d, x)) / (2 * e) for d in np.eye(len(p))], axis=1)

    for first, way in ((3, False), (9, True)):
        f = transform(course)
        for n in (first, 12 - first, 1, 6):
            p = numbers(n, seed=n)
            np.testing.assert_allclose(f(p, 0.4), differences(p, 0.4), rtol=1e-6, atol=1e-9)
        assert f.n_variants == 1
        assert ("grad of course" in str(f.explain())) == way, f.explain()


@pytest.mark.parametrize(
    "course",
    [
        lambda p, times: rs.loop(lambda t, y: y * rs.cos(p[0] * t), over=times, init=p[2:], name="course"),
        lambda p, times: rs.loop(
            lambda t, y: rs.loop(lambda y: y * p[1] + t, init=y, n_steps=4).last, over=times, init=p[1:], name="course"
        ),
        lambda p, times: rs.concatenate([p[1:], rs.loop(lambda t, y: y + t * p[0], over=times[1:], init=p[0], name="course")]),
        lambda p, times: rs.loop(lambda y: (y * p[0], rs.until(rs.sum(y) > 9)), init=rs.repeat(p[2:], 4), n_steps=5, name="course").last,
    ],
    ids=["sliced", "inner", "joined", "until"],
)
def test_the_first_call_tells_extents_that_are_computed(course):
    p, times = numbers(4), numbers(8, seed=1)
    f = rs.jacobian(course)
    found = f(p, times)
    e, g = 1e-6, rs.compile(course)
    differences = [(g(p + e * d, times) - g(p - e * d, times)) / (2 * e) for d in np.eye(4)]
    np.testing.assert_allclose(found, np.stack(differences, axis=-1), rtol=1e-6, atol=1e-8)
    assert "grad of course" not in str(f.explain()), f.explain()


def test_what_an_output_does_not_depend_on_has_no_tangent():
    x, w = rs.dvector("x"), rs.dvector("w")
    y = rs.cumsum(x)
    assert rs.jvp(y, [w], [w], return_disconnected="none") is None
    with pytest.raises(rs.errors.DisconnectedInputError):
        rs.jvp(y, [w], [w], disconnected_outputs="raise")
    with pytest.raises(rs.errors.GradientError, match=r"a tangent of type .* does not fit an input"):
        rs.jvp(y, [x], [rs.dmatrix("m")])
