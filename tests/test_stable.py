"""Formulas that overflow or cancel: value, slope and slope of the slope against mpmath, in loops, too."""

import mpmath as m
import numpy as np
import pytest

import rscan as rs

WEIGHTS = [1.0, 0.5, -1.0]
LARGE = [-1000.0, -720.0, -40.0, -1.5, 0.0, 0.75, 30.0, 720.0, 1000.0]
SMALL = [-0.5, -1e-9, 1e-12, 0.3, 0.999]

#: How a formula is written, with mpmath, and where. Written over a module that has its functions.
FORMULAS = {
    "log(1 + exp)": (lambda f, x: f.log(1 + f.exp(x)), LARGE),
    "log(exp + 1)": (lambda f, x: f.log(f.exp(x) + 1.0), LARGE),
    "log1p(exp)": (lambda f, x: f.log1p(f.exp(x)), LARGE),
    "log(sigmoid)": (lambda f, x: f.log(f.sigmoid(x)), LARGE),
    "log(sigmoid(1000x))": (lambda f, x: f.log(f.sigmoid(1000 * x)), [-1.0, -0.01, 0.02, 1.0]),
    "log(1 − sigmoid)": (lambda f, x: f.log(1 - f.sigmoid(x)), LARGE),
    "log1p(−sigmoid)": (lambda f, x: f.log1p(-f.sigmoid(x)), LARGE),
    "log of a quotient": (lambda f, x: f.log(1 / (1 + f.exp(-x))), LARGE),
    "log(1 − a quotient)": (lambda f, x: f.log(1 - 1 / (1 + f.exp(-x))), LARGE),
    "a quotient": (lambda f, x: 1 / (1 + f.exp(-x)), LARGE),
    "log(softmax)": (lambda f, x: f.log(f.softmax(x)), LARGE),
    "log(Σ exp)": (lambda f, x: f.log(f.total(x)), LARGE),
    "log(exp)": (lambda f, x: f.log(f.exp(x)) * x, LARGE),
    "exp − 1": (lambda f, x: f.exp(x) - 1, [-700.0, -40.0, -1e-12, 0.0, 1e-14, 0.5, 20.0]),
    "1 − exp": (lambda f, x: 1 - f.exp(x), [-700.0, -40.0, 1e-14, 0.5, 20.0]),
    "log(1 + x)": (lambda f, x: f.log(1 + x), SMALL),
    "log(1 − x)": (lambda f, x: f.log(1 - x), SMALL),
    "−softplus(−x)": (lambda f, x: -f.softplus(-x), LARGE),
    "used twice": (lambda f, x: f.log(f.sigmoid(x)) * f.sigmoid(x) + f.sigmoid(x), LARGE),
    "inside another": (lambda f, x: f.log(1 + f.exp(f.log(f.sigmoid(x)))), LARGE),
    "cross entropy": (lambda f, x: -(0.25 * f.log(f.sigmoid(x)) + 0.75 * f.log(1 - f.sigmoid(x))), LARGE),
}


class Symbols:
    """The functions of a formula on variables."""

    exp, log, log1p, sigmoid, softplus = rs.exp, rs.log, rs.log1p, rs.sigmoid, rs.softplus

    @staticmethod
    def softmax(x):
        return rs.softmax(x * rs.cast(np.array(WEIGHTS), x.dtype))[1]

    @staticmethod
    def total(x):
        return rs.sum(rs.exp(x * rs.cast(np.array(WEIGHTS), x.dtype)))


class Softmax(Symbols):
    """As they are written for all elements, of which the logarithm takes one."""

    @staticmethod
    def log(x):
        return rs.log(x)[1] if x.ndim else rs.log(x)

    @staticmethod
    def softmax(x):
        return rs.softmax(x * rs.cast(np.array(WEIGHTS), x.dtype))


class Numbers:
    """The same with numbers of many digits."""

    exp, log = m.exp, m.log
    log1p = staticmethod(lambda x: m.log(1 + x))
    sigmoid = staticmethod(lambda x: 1 / (1 + m.exp(-x)))
    softplus = staticmethod(lambda x: m.log(1 + m.exp(x)))
    total = staticmethod(lambda x: sum(m.exp(x * w) for w in WEIGHTS))
    softmax = staticmethod(lambda x: m.exp(x * WEIGHTS[1]) / sum(m.exp(x * w) for w in WEIGHTS))


def exact(formula, x, order):
    with m.workdps(1000):
        return float(m.diff(lambda v: formula(Numbers, v), m.mpf(x), order))


def agree(found, expected, dtype, inner=1.0):
    """To many digits, or to the last one of the slopes of bounded functions; `inner` is the slope of what they are of."""
    tolerance, least = (1e-9, 1e-14) if dtype == "float64" else (2e-4, 1e-6)
    with np.errstate(over="ignore"):
        expected = np.asarray(expected).astype(dtype)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=least * inner)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", FORMULAS)
def test_values_and_slopes_are_exact_where_formulas_overflow(name, dtype):
    formula, points = FORMULAS[name]
    x = rs.tensor(dtype, ())
    y = formula(Softmax if name == "log(softmax)" else Symbols, x)
    slope = rs.grad(y, x)
    outputs = [y, slope, rs.grad(slope, x), rs.jvp(y, x, rs.ones_like(x))]
    f = rs.function([x], outputs)
    for at in points:
        at = float(np.dtype(dtype).type(at))
        if dtype == "float32" and abs(at) > 80 and "exp" in name and "log" not in name:
            continue
        with np.errstate(over="ignore"):
            found = f(np.dtype(dtype).type(at))
        expected = [exact(formula, at, order) for order in (0, 1, 2, 1)]
        for got, right, order in zip(found, expected, (0, 1, 2, 1), strict=True):
            assert np.isfinite(got)
            agree(got, right, dtype, 1000.0**order if "1000" in name else 1.0)


@pytest.mark.parametrize("name", FORMULAS)
def test_in_steps(name):
    formula, points = FORMULAS[name]
    functions = Softmax if name == "log(softmax)" else Symbols
    xs = rs.dvector("xs")
    s, _ = rs.scan(lambda x, s: s + formula(functions, x), sequences=xs, outputs_info=rs.constant(0.0))
    g = rs.grad(s[-1], xs)
    f = rs.function([xs], [g, rs.grad(rs.sum(g), xs)])
    for found, order in zip(f(np.array(points)), (1, 2), strict=True):
        assert np.isfinite(found).all()
        for got, at in zip(found, points, strict=True):
            agree(got, exact(formula, at, order), "float64", 1000.0**order if "1000" in name else 1.0)


def test_of_a_state_and_in_a_loop_in_a_loop():
    w, n = rs.dscalar("w"), 3

    def step(h):
        inner, _ = rs.scan(lambda k, a: a + rs.log(1 - rs.sigmoid(w * h)) * k, sequences=rs.arange(3.0), outputs_info=h * 0)
        return h + rs.log(rs.sigmoid(w * h)) + 0 * inner[-1]

    h, _ = rs.scan(step, outputs_info=rs.constant(2.0), n_steps=n)
    g = rs.grad(h[-1], w)
    # log(sigmoid(x)) is x below −40: h[k+1] = h[k]·(1 + w), but for the first step, whose h is 2 and whose term is 2w.
    f = rs.function([w], [h[-1], g, rs.grad(g, w)])
    found = [float(v) for v in f(-1000.0)]
    # h1 = 2 + 2w < 0, so w·h1 > 0 and its term is 0: h stays.
    assert found == [2 - 2000.0, 2.0, 0.0]


def test_what_gradients_are_asked_by_stays_what_it_is():
    x, ct = rs.dscalar("x"), rs.dscalar("ct")
    z = rs.sigmoid(x)
    y = rs.log(z) + 0.5 * z
    gz, gx = rs.grad(y, [z, x])
    held = rs.grad(y, x, consider_constant=[z], disconnected_inputs="ignore")
    known = rs.grad(None, x, known_grads={z: ct})
    mixed = rs.grad(y, x, known_grads={z: ct})
    found = rs.function([x, ct], [gz, gx, held, known, mixed])(1.25, 3.0)
    s = 1 / (1 + np.exp(-1.25))
    np.testing.assert_allclose(found, [1 / s + 0.5, 1 - s + 0.5 * s * (1 - s), 0, 3 * s * (1 - s), 3 * s * (1 - s)], rtol=1e-12)


@pytest.mark.parametrize("setting", [{"excluding": ("stabilise",)}, {"excluding": "stabilise"}, {"passes": "none"}], ids=str)
def test_without_the_pass_formulas_are_differentiated_as_they_are_written(setting, monkeypatch):
    xs = rs.dvector("xs")
    s, _ = rs.scan(lambda x: rs.log(rs.sigmoid(x)), sequences=xs)
    direct = rs.sum(rs.log(rs.sigmoid(xs)))
    for cost in (rs.sum(s), direct):
        with rs.config.override(**setting):
            plain = rs.grad(cost, xs)
        assert np.isnan(rs.function([xs], plain)([-1000.0])).all()
        np.testing.assert_array_equal(rs.function([xs], rs.grad(cost, xs))([-1000.0]), [1.0])
    monkeypatch.setenv("RSCAN_EXCLUDE", "stabilise")
    assert np.isnan(rs.function([xs], rs.grad(direct, xs))([-1000.0])).all()
