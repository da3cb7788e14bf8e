"""Log-densities and special functions far out, of parameters from 10⁻³⁰⁰ to 10¹⁵, beside mpmath at 60 digits; and their slopes."""

import itertools

import mpmath as mp
import numpy as np
import pytest
import scipy.special
import scipy.stats

import rscan as rs

log, log1p, pi, gammaln = mp.log, mp.log1p, mp.pi, mp.loggamma


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(60):
        yield


def xlogy(a, x):
    return mp.mpf(0) if a == 0 else a * log(x)


def betaln(a, b):
    return gammaln(a) + gammaln(b) - gammaln(a + b)


def ndtr(x):
    return mp.erfc(-x / mp.sqrt(2)) / 2


def between(a, b):
    return ndtr(b) - ndtr(a) if b < 0 else ndtr(-a) - ndtr(-b)


def log_f(y, m, n):
    return m / 2 * log(m) + n / 2 * log(n) + xlogy(m / 2 - 1, y) - (m + n) / 2 * log(n + m * y) - betaln(m / 2, n / 2)


FAR = [0, 1e-10, 1, 1e8, 1e160, 1e200]
LARGE = [1e-3, 0.5, 1, 10, 1e3, 1e6, 1e12]
POSITIVE = [1e-300, 1e-10, 0.5, 1, 1.001, 10, 1e10, 1e200]
#: The formula, and the arguments, of which all combinations are tried.
DENSITIES = {
    "norm": (lambda y: -y * y / 2 - log(2 * pi) / 2, [[0, 1e-300, 1, -40, 1e8, 1e150]]),
    "expon": (lambda y: -y, [[0, 1e-300, 1, 700, 1e300]]),
    "gamma": (lambda y, a: xlogy(a - 1, y) - y - gammaln(a), [[1e-300, 0.1, 1, 1e3, 1e6, 1001000, 1e9, 1e12], [*LARGE, 1e9]]),
    "beta": (
        lambda y, a, b: xlogy(a - 1, y) + (b - 1) * log1p(-y) - betaln(a, b),
        [[1e-300, 1e-10, 0.25, 0.5, 0.75, 1 - 1e-10], [1e-10, 0.5, 1, 50, 1e5, 1e10], [1e-10, 0.5, 1, 70, 1e5, 1e12]],
    ),
    "chi2": (lambda y, k: xlogy(k / 2 - 1, y) - y / 2 - gammaln(k / 2) - k / 2 * log(2), [[1e-300, 1e-5, 1, 1e3, 1e6, 1e12], LARGE]),
    "t": (
        lambda y, v: gammaln((v + 1) / 2) - gammaln(v / 2) - log(v * pi) / 2 - (v + 1) / 2 * log1p(y * y / v),
        [[0, 1e-10, 0.5, -3, 40, 1e5, 1e100, 1e200], [1e-5, 0.5, 1, 4, 30, 100, 1e4, 1e6, 1e8, 1e10, 1e12, 1e15]],
    ),
    "f": (log_f, [POSITIVE, [0.5, 1, 5, 1e3, 1e6, 1e10], [0.5, 1, 7, 1e3, 1e6, 1e12]]),
    "cauchy": (lambda y: -log(pi) - log1p(y * y), [FAR]),
    "halfcauchy": (lambda y: log(2 / pi) - log1p(y * y), [FAR]),
    "laplace": (lambda y: -abs(y) - log(2), [[0, 1e-10, -1, 1e8]]),
    "logistic": (lambda y: -abs(y) - 2 * log1p(mp.exp(-abs(y))), [[0, 1e-10, -1, 40, -800, 1e8]]),
    "lognorm": (lambda y, s: -((log(y) / s) ** 2) / 2 - log(s) - log(y) - log(2 * pi) / 2, [POSITIVE, [1e-3, 0.5, 1, 10, 1e3]]),
    "halfnorm": (lambda y: -y * y / 2 + log(2 / pi) / 2, [[0, 1e-10, 1, 40, 1e8]]),
    "invgamma": (lambda y, a: -(a + 1) * log(y) - gammaln(a) - 1 / y, [[1e-300, 1e-12, 1e-6, 1e-3, 0.1, 1, 10, 1e10], LARGE]),
    "pareto": (lambda y, b: log(b) - (b + 1) * log(y), [[1, 1 + 1e-10, 2, 1e10, 1e300], LARGE]),
    "weibull_min": (lambda y, c: log(c) + xlogy(c - 1, y) - y**c, [[1e-300, 1e-10, 0.5, 1, 1.01, 2, 10], [1e-3, 0.5, 1, 2, 50]]),
    "gumbel_r": (lambda y: -y - mp.exp(-y), [[0, 1e-10, -5, 5, 40, 1e8]]),
    "gumbel_l": (lambda y: y - mp.exp(y), [[0, 1e-10, -5, 5, -40, -1e8]]),
    "skewnorm": (
        lambda y, a: log(2) - y * y / 2 - log(2 * pi) / 2 + log(ndtr(a * y)), [[0, 1e-10, -0.5, 1, -5, 5, 30], [-50, -1, 0, 1e-10, 3, 1e3]],
    ),
    "vonmises": (lambda y, k: k * mp.cos(y) - log(2 * pi * mp.besseli(0, k)), [[0, 1e-6, 0.5, -1, 3], [0, 1e-10, 1, 19.9, 20.1, 1e4, 1e8]]),
    "poisson": (lambda k, mu: xlogy(k, mu) - mu - gammaln(k + 1), [[0, 1, 5, 100, 1e3, 1000999, 1e9, 1e12], [1e-300, *LARGE, 1e9]]),
    "geom": (lambda k, p: log(p) + (k - 1) * log1p(-p), [[1, 2, 100, 1e6, 1e12], [1e-300, 1e-10, 0.5, 1 - 1e-10]]),
    "binom": (
        lambda k, n, p: gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) + xlogy(k, p) + (n - k) * log1p(-p),
        [[0, 1, 5, 500, 5e5, 999999, 5e8, 5e11], [1, 10, 1e3, 1e6, 1e9, 1e12], [1e-10, 1e-3, 0.5, 0.9]],
    ),
    "nbinom": (
        lambda k, n, p: gammaln(k + n) - gammaln(k + 1) - gammaln(n) + n * log(p) + k * log1p(-p),
        [[0, 1, 5, 500, 1e6, 1e9], [1e-5, 0.5, 1, 10, 1e3, 1e6, 1e12], [1e-10, 1e-3, 0.5, 0.9, 1 - 1e-10]],
    ),
}  # fmt: skip


def compared(name, build, formula, points, close=1e-11):
    """Each value to so many digits, or to 10⁻¹³ where it is near 0."""
    columns = [np.array(column, float) for column in zip(*points, strict=True)]
    inputs = [rs.dvector() for _ in columns]
    for point, got in zip(points, rs.function(inputs, build(*inputs), on_unused_input="ignore")(*columns), strict=True):
        expected = formula(*map(mp.mpf, map(float, point)))
        error = abs(mp.mpf(float(got)) - expected)
        assert error <= close * abs(expected) + 1e-13, (name, point, got, float(expected))


def density(name):
    distribution = getattr(rs.stats, name)
    return getattr(distribution, "logpdf", None) or distribution.logpmf


@pytest.mark.parametrize("name", DENSITIES)
def test_densities(name):
    formula, arguments = DENSITIES[name]
    points = list(itertools.product(*arguments))
    if name == "binom":
        points = [p for p in points if p[0] <= p[1]]
    compared(name, density(name), formula, points)


def test_normal_numbers_between_bounds_that_are_near_each_other():
    bounds = [(-1, 1), (0, 1e-5), (5, 6), (-6, -5), (38, 40), (-101, -100), (1e-8, 2e-8), (10, 10.0001), (1, 1 + 1e-9), (2, 2.016)]
    bounds.append((2, 2.017))
    formula = lambda y, a, b: -y * y / 2 - log(2 * pi) / 2 - log(between(a, b))
    compared("truncnorm", rs.stats.truncnorm.logpdf, formula, [(y, a, b) for a, b in bounds for y in (a, (a + b) / 2, b)])


#: Points at which the slopes by each parameter are compared.
SLOPES = {
    "t": [(0.7, 1e10), (3.0, 25.0), (40.0, 1e4), (1e200, 3.0)], "gamma": [(1001000.0, 1e6), (12.0, 10.5), (1e12, 1e12)],
    "beta": [(0.4, 1e5, 2e5), (1e-9, 0.5, 1e10), (0.3, 20.0, 0.5)], "chi2": [(1e6, 1e6)], "invgamma": [(1e-6, 1e6), (1e-3, 900.0)],
    "f": [(1.001, 1e6, 1e5), (0.5, 1.0, 1e12), (2.0, 1e10, 0.5), (1e-200, 3.0, 1e6)], "poisson": [(1000999.0, 1e6), (12.0, 9.0)],
    "binom": [(5e5, 1e6, 0.5), (5.0, 1e12, 1e-11)], "nbinom": [(1e6, 1e3, 1e-3), (5.0, 1e10, 1 - 1e-10)],
}  # fmt: skip


@pytest.mark.parametrize("name", SLOPES)
def test_slopes(name):
    formula, discrete = DENSITIES[name][0], name in ("poisson", "binom", "nbinom")
    for point in SLOPES[name]:
        inputs = [rs.dscalar() for _ in point]
        wanted = [k for k in range(len(point)) if not (discrete and (k == 0 or (name == "binom" and k == 1)))]
        slopes = rs.function(inputs, rs.grad(density(name)(*inputs), [inputs[k] for k in wanted]), on_unused_input="ignore")(*point)
        for k, got in zip(wanted, slopes, strict=True):
            exact = [mp.mpf(v) for v in point]
            with mp.workdps(120):
                expected = mp.diff(lambda v, k=k, e=exact: formula(*e[:k], v, *e[k + 1 :]), exact[k], h=exact[k] * mp.mpf(10) ** -40)
            # What is left of two terms that cancel has the rounding of each.
            close = 1e-9 * abs(expected) + 1e-14 * max(1, abs(1 / exact[k]))
            assert abs(mp.mpf(float(got)) - expected) <= close, (name, point, k, got, expected)


SPECIAL = {
    "betaln": (betaln, [[1e-300, 1e-10, 0.5, 1, 2.5, 9.9, 10.1, 1e3, 1e6, 1e12]] * 2),
    "binom": (mp.binomial, [[5, 10.5, 60, 1e3, 1e6, 1e10, 1e14], [0, 1, 2, 2.5, 5]]),
    "poch": (mp.rf, [[0.5, 1, 5, 11, 100, 1e5, 1e10, 1e14], [0, 1e-10, 0.5, 1, 2, 5, -0.25]]),
    "rel_entr": (lambda x, y: x * log(x / y), [[1e-300, 0.1, 1, 1e10, 1e300], [1e-300, 0.1, 1, 1 + 1e-10, 1e10, 1e300]]),
    "kl_div": (lambda x, y: x * log(x / y) - x + y, [[0.1, 1, 1e10], [0.1, 1, 1 + 1e-5, 1 + 1e-10, 1.05, 1e10, 1e10 + 1]]),
    "log_ndtr": (lambda x: log(ndtr(x)), [[0, 1e-10, 1, 5, -1, -5, -19.9, -20.1, -37, -1e3]]),
    "gammaln": (gammaln, [[1e-300, 1e-10, 0.5, 1 + 1e-10, 1.5, 2 + 1e-10, 10, 1e3, 1e10, 1e100, 1e300]]),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions(name):
    formula, arguments = SPECIAL[name]
    compared(name, getattr(rs.special, name), formula, list(itertools.product(*arguments)), 2e-12)


@pytest.mark.parametrize("name", ["norm", "cauchy", "gumbel_r", "expon"])
def test_the_density_of_infinity_is_0(name):
    assert np.array_equal(rs.eval(density(name)(np.array([np.inf, -np.inf]))), [-np.inf, -np.inf])
    assert rs.eval(rs.stats.gamma.logpdf(np.inf, np.array([0.5, 2.0, 30.0]))).tolist() == [-np.inf] * 3


def test_small_divergences():
    """Of numbers that are nearly equal: half the square of the difference."""
    x, y = rs.dscalars("x", "y")
    value, by_y = rs.function([x, y], [rs.special.kl_div(x, y), rs.grad(rs.special.kl_div(x, y), y)])(1.0, 1.0 + 2.0**-30)
    assert value == pytest.approx(2.0**-61, rel=1e-8) and by_y == pytest.approx(2.0**-30, rel=1e-8)


@pytest.mark.parametrize("name", ["t", "gamma", "beta", "f", "poisson", "binom", "truncnorm"])
def test_rows_and_steps_with_large_and_small_parameters(name):
    """One formula goes for some of the elements, another for the others: in rows, steps and derivatives as alone."""
    points = {
        "t": [(0.7, 1e10), (0.7, 3.0), (1e200, 3.0)], "gamma": [(1001000.0, 1e6), (2.0, 0.5)], "beta": [(0.4, 1e5, 2e5), (0.4, 0.5, 2.0)],
        "f": [(1.001, 1e6, 1e5), (0.5, 1.0, 3.0)], "poisson": [(1000999.0, 1e6), (2.0, 9.0)], "binom": [(5e5, 1e6, 0.5), (2.0, 7.0, 0.3)],
        "truncnorm": [(0.5, 0.5, 0.5001), (0.5, -1.0, 2.0)],
    }[name]  # fmt: skip
    columns = [np.array(column) for column in zip(*points, strict=True)]
    f = density(name)
    inputs = [rs.dvector() for _ in columns]
    value = f(*inputs)
    together = rs.function(inputs, [value, rs.grad(rs.sum(value), inputs[-1])], on_unused_input="ignore")(*columns)
    alone = [rs.dscalar() for _ in columns]
    one = rs.function(alone, [f(*alone), rs.grad(f(*alone), alone[-1])], on_unused_input="ignore")
    np.testing.assert_allclose(together, np.transpose([one(*point) for point in points]), rtol=1e-13)
    rows = rs.function(inputs, rs.vmap(f)(*inputs), on_unused_input="ignore")(*columns)
    steps = rs.function(inputs, rs.loop(lambda *v: f(*v), over=tuple(inputs)), on_unused_input="ignore")(*columns)
    np.testing.assert_allclose(rows, together[0], rtol=1e-13)
    np.testing.assert_allclose(steps, together[0], rtol=1e-13)


def test_tails_of_t_with_many_degrees_of_freedom():
    """By the incomplete beta function, one parameter of which is large; each element as it is alone."""
    x = np.array([-8.0, -2.99, -2.0, -0.49, 0.01, 0.51, 1.01, 3.01])
    for df in (1e2, 1e5, 1e6, 1e8, 1e9):
        together = rs.stats.t.cdf(x, df=df).eval()
        np.testing.assert_allclose(together, scipy.stats.t.cdf(x, df), rtol=2e-13)
        np.testing.assert_allclose([rs.stats.t.cdf(v, df=df).eval() for v in x], together, rtol=1e-15)


def test_incomplete_beta_functions_of_large_parameters():
    for a, b in ((1e6, 1e6), (1e7, 3.0), (3.0, 1e5), (1e8, 66.0), (0.5, 1e7), (40.0, 1e-3)):
        for sign in (-2, 0.5, 3):
            x = a / (a + b) * (1 + sign * np.sqrt(b / a / (a + b + 1)))
            if 0 < x < 1:
                np.testing.assert_allclose(rs.special.betainc(a, b, x).eval(), scipy.special.betainc(a, b, x), rtol=1e-11)


@pytest.mark.parametrize("in_a_loop", [False, True])
def test_functions_at_the_ends_of_their_domains(in_a_loop):
    def values(f, x):
        return rs.compile(lambda x: rs.loop(f, over=x) if in_a_loop else f(x))(x)

    below = np.array([-1e5, -16384.0, -3e6, -1.5, 0.5, -np.inf, -0.0])
    assert np.isnan(values(rs.arccosh, below)).all() and np.isnan(values(rs.arccosh, below.astype("float32"))).all()
    rest = 1 - np.array([0.9e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15, 2.0**-53])
    exact = [float(mp.erfinv(mp.mpf(v))) for v in rest]
    np.testing.assert_allclose(values(rs.erfinv, rest), exact, rtol=1e-14)
    np.testing.assert_allclose(values(rs.erfinv, -rest), [-v for v in exact], rtol=1e-14)
    x = np.array([0.0, -0.0, np.inf, -np.inf, 1e-300, 5e-324, 1e308, 1.5])
    k = np.array([2**31 - 1, 2000, -(2**31), -3001, 1900, 2000, -2000, 3])
    found = rs.compile(lambda x, k: rs.loop(rs.ldexp, over=[x, k]) if in_a_loop else rs.ldexp(x, k))(x, k)
    np.testing.assert_array_equal(found, np.ldexp(x, k.astype("int32")))
    assert np.array_equal(np.signbit(found), np.signbit(x))


def test_differences_of_equal_products_are_0():
    """Where a product is rounded once with the difference, they are what the other one was rounded by."""
    x = np.random.default_rng(1).normal(size=200)

    def step(x, y, z):
        spread = rs.sqrt((x * x + y * y) / 2 - ((x + y) / 2) ** 2)
        return rs.sqrt(x * x - y * y), x * z - y * z, rs.sqrt(x**2 - y**2), spread, (2 * x) * z - y * (2 * z)

    for f in (step, lambda *xs: rs.loop(step, over=list(xs))):
        for found in rs.compile(lambda x, y, z, f=f: list(f(x, y, z)))(x, x.copy(), np.cos(x)):
            np.testing.assert_array_equal(found, 0.0)
