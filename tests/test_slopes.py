"""First and second derivatives of special functions, densities and draws by all arguments, at whole and half parameters and at edges.

Each point is a call of its own: what else stands in an array may change when a loop ends. The law is mpmath at 30 digits, or differences
of SciPy's. `make accept-derivatives` takes more points.
"""

import itertools
import os

import mpmath as mp
import numpy as np
import pytest
import scipy.special
import scipy.stats

import rscan as rs

WIDE = bool(os.environ.get("RSCAN_WIDE_SLOPES"))
SHAPES = [0.3, 0.5, 1.0, 1.5, 2.0, 3.0, 4.5, 7.0] if WIDE else [0.5, 1.0, 2.0, 3.5]
AT = [0.2, 0.7, 1.3, 2.6, 5.1, 11.0] if WIDE else [0.7, 2.6]
SHARES = [0.03, 0.1, 0.3, 0.5, 0.55, 0.9] if WIDE else [0.3, 0.55, 0.9]
REAL = [-2.0, -0.4, 0.0, 0.6, 3.0]


def _ndtri(p):
    return mp.sqrt(2) * mp.erfinv(2 * p - 1)


def _xlogx(x, y):
    return x * mp.log(x / y) if x else mp.mpf(0)


#: Laws and the points of each argument.
LAWS = {
    "gammainc": (lambda a, x: mp.gammainc(a, 0, x, regularized=True), SHAPES, AT),
    "gammaincc": (lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True), SHAPES, AT),
    "betainc": (lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True), SHAPES, SHAPES, SHARES),
    "beta": (mp.beta, SHAPES, SHAPES),
    "betaln": (lambda a, b: mp.log(mp.beta(a, b)), SHAPES, SHAPES),
    "binom": (mp.binomial, [3.0, 5.5], [0.5, 1.0, 2.0]),
    "poch": (mp.rf, SHAPES, SHAPES),
    "zeta": (mp.zeta, [1.5, 2.0, 3.0], SHAPES),
    "gamma": (mp.gamma, [-0.5, *SHAPES]),
    "gammaln": (mp.loggamma, SHAPES),
    "digamma": (mp.digamma, SHAPES),
    "factorial": (mp.factorial, [0.0, 1.0, 2.5]),
    "ndtr": (mp.ncdf, REAL),
    "log_ndtr": (lambda x: mp.log(mp.ncdf(x)), [-30.0, -20.0, *REAL]),
    "ndtri": (_ndtri, SHARES),
    "erf": (mp.erf, REAL),
    "erfc": (mp.erfc, REAL),
    "erfinv": (mp.erfinv, [-0.9, 0.0, 0.3]),
    "sinc": (lambda x: mp.sincpi(x), REAL),
    "i0": (lambda x: mp.besseli(0, x), [*REAL, 19.9, 20.1]),
    "i1": (lambda x: mp.besseli(1, x), [*REAL, 19.9, 20.1]),
    "i0e": (lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), [-2.0, 0.6, 19.9, 20.1]),
    "i1e": (lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), [-2.0, 0.6, 19.9, 20.1]),
    "xlogy": (lambda x, y: x * mp.log(y), [0.0, 1.0, -2.5], AT),
    "xlog1py": (lambda x, y: x * mp.log1p(y), [0.0, 1.0, -2.5], [-0.7, -0.3, 0.0, 2.0]),
    "entr": (lambda x: -x * mp.log(x), AT),
    "rel_entr": (_xlogx, AT, AT),
    "kl_div": (lambda x, y: _xlogx(x, y) - x + y, AT, AT),
    "logit": (lambda p: mp.log(p / (1 - p)), SHARES),
    "expit": (lambda x: 1 / (1 + mp.exp(-x)), REAL),
    "log_expit": (lambda x: -mp.log1p(mp.exp(-x)), REAL),
    "softplus": (lambda x: mp.log1p(mp.exp(x)), REAL),
}


def _orders(n):
    """The first derivatives by n arguments and the second ones, as mpmath counts them."""
    unit = [tuple(int(i == j) for j in range(n)) for i in range(n)]
    return unit + [tuple(map(sum, zip(a, b, strict=True))) for a, b in itertools.combinations_with_replacement(unit, 2)]


def _derivatives(f, n):
    """A function of n numbers that gives all of them."""
    args = [rs.dscalar(f"argument{i}") for i in range(n)]
    first = rs.grad(f(*args), args, disconnected_inputs="ignore")
    second = [rs.grad(g, args[i:], disconnected_inputs="ignore") for i, g in enumerate(first)]
    return rs.function(args, [*first, *itertools.chain(*second)], on_unused_input="ignore")


@pytest.mark.parametrize("name", LAWS)
def test_special_functions(name):
    law, *points = LAWS[name]
    found, orders = _derivatives(getattr(rs.special, name), len(points)), _orders(len(points))
    with mp.workdps(30):
        for at in itertools.product(*points):
            exact = [float(mp.re(mp.diff(law, tuple(map(mp.mpf, at)), order))) for order in orders]
            np.testing.assert_allclose(found(*at), exact, rtol=2e-9, atol=1e-10 * max(map(abs, exact)), err_msg=f"{at}, {orders}")


def test_a_neighbour_does_not_decide_on_a_slope():
    """What a vector's elements give is what they give alone."""
    a, x = (v.ravel() for v in np.meshgrid(SHAPES, AT))
    by_a = rs.grad(lambda a: rs.sum(rs.special.gammainc(a, x)))(a)
    alone = [rs.grad(lambda a, x: rs.special.gammainc(a, x))(*pair) for pair in zip(a, x, strict=True)]
    np.testing.assert_allclose(by_a, alone, rtol=1e-12)


def test_slopes_at_the_ends():
    """Of 0 and of 1, where they are finite: gammainc(1, x) is 1 − exp(−x), betainc(1, b, x) is 1 − (1 − x)ᵇ."""
    gamma, beta = _derivatives(rs.special.gammainc, 2), _derivatives(rs.special.betainc, 3)
    np.testing.assert_array_equal(np.array(gamma(1.0, 0.0))[[0, 1, 2, 4]], [0, 1, 0, -1])
    np.testing.assert_array_equal(gamma(3.0, 0.0), 0)
    assert gamma(0.5, 0.0)[1] == np.inf
    np.testing.assert_allclose(np.array(beta(1.0, 2.5, 0.0))[[2, 8]], [2.5, -2.5 * 1.5])
    np.testing.assert_allclose(np.array(beta(2.5, 1.0, 1.0))[[2, 8]], [2.5, 2.5 * 1.5])
    np.testing.assert_allclose(rs.grad(rs.special.gammaincc, 1)(1.0, 0.0), -1)
    assert rs.grad(rs.special.entr)(0.0) == np.inf
    np.testing.assert_array_equal(rs.grad(rs.special.rel_entr, (0, 1))(0.0, 2.0), [-np.inf, 0])
    np.testing.assert_array_equal(rs.grad(rs.special.kl_div, (0, 1))(0.0, 2.0), [-np.inf, 1])
    np.testing.assert_array_equal(rs.grad(rs.special.xlog1py, (0, 1))(0.0, -1.0), [-np.inf, 0])


def test_large_parameters():
    """Logarithms of large terms leave nothing of a small sum, and numbers of terms had a bound: a quarter of the value came out."""
    a, b, x = rs.dvector("a"), rs.dvector("b"), rs.dvector("x")
    sizes = 10.0 ** np.arange(-3, 10)
    p, v = (u.ravel() for u in np.meshgrid(sizes, sizes))
    p, v = np.concatenate([p, sizes, sizes]), np.concatenate([v, sizes + 2 * np.sqrt(sizes), np.maximum(sizes - 2 * np.sqrt(sizes), 1e-9)])
    got = rs.function([a, x], [rs.special.gammainc(a, x), rs.special.gammaincc(a, x)])(p, v)
    np.testing.assert_allclose(got, [scipy.special.gammainc(p, v), scipy.special.gammaincc(p, v)], rtol=1e-10, atol=1e-290)
    p, q, v = (u.ravel() for u in np.meshgrid(sizes[:-2], sizes[:-2], [1e-12, 1e-3, 0.1, 0.5, 0.9, 0.999]))
    f = rs.special.betainc(a, b, x)
    got, slopes = (g(p, q, v) for g in (rs.function([a, b, x], f), rs.function([a, b, x], rs.grad(rs.sum(f), [a, b, x]))))
    np.testing.assert_allclose(got, scipy.special.betainc(p, q, v), rtol=1e-10, atol=1e-290)
    assert np.isfinite(slopes).all()
    for at in ((np.inf, 1.0, 0.5), (1.0, np.inf, 0.5), (1e11, 2.0, 0.5), (np.nan, 1.0, 0.5)):
        assert np.isnan(rs.special.betainc(*at).eval()) and np.isnan(rs.special.gammainc(at[0] * at[1], 3.0).eval())


#: Shape parameters of distributions, and points where their support is not what it is for most.
SHAPED = {
    "gamma": [SHAPES], "beta": [SHAPES, SHAPES], "chi2": [[1.0, 2.0, 3.5]], "t": [[0.5, 1.0, 2.0, 5.0]],
    "f": [[1.0, 2.0, 3.5], [1.0, 2.0, 5.0]], "invgamma": [SHAPES], "weibull_min": [SHAPES], "pareto": [SHAPES], "lognorm": [SHAPES],
    "norm": [], "cauchy": [], "laplace": [],
    "logistic": [], "gumbel_r": [], "gumbel_l": [], "truncnorm": [[-2.0, -0.5], [1.0, 2.5]], "skewnorm": [[-1.0, 0.0, 2.0]],
    "vonmises": [[0.5, 1.0, 2.0]], "expon": [], "halfnorm": [], "halfcauchy": [], "uniform": [],
}  # fmt: skip
POINTS = {"beta": SHARES, "truncnorm": [-0.3, 0.0, 0.9], "pareto": [1.3, 4.0], "uniform": [0.3, 0.9]}
BOTH_SIDES = {"t", "norm", "cauchy", "laplace", "logistic", "gumbel_r", "gumbel_l", "skewnorm", "vonmises"}


def _slope(law, at, k):
    """The slope of a function of numbers by the k-th, by Richardson's differences; whether it is finite all around."""
    h = 2e-3 * max(abs(at[k]), 0.1)
    moved = lambda s: law(*at[:k], at[k] + s, *at[k + 1 :])
    central = [(moved(s) - moved(-s)) / (2 * s) for s in (h, h / 2, h / 4)]
    once = [(4 * b - a) / 3 for a, b in itertools.pairwise(central)]
    return (16 * once[1] - once[0]) / 15, np.isfinite(once).all()


def _compare(ours, law, points, what):
    n = len(points)
    args = [rs.dscalar(f"argument{i}") for i in range(n)]
    found = rs.function(args, rs.grad(ours(*args), args, disconnected_inputs="ignore"), on_unused_input="ignore")
    compared = 0
    for at in itertools.product(*points):
        got = found(*at)
        for k in range(n):
            slope, sure = _slope(law, at, k)
            if sure:
                compared += 1
                np.testing.assert_allclose(got[k], slope, rtol=1e-6, atol=1e-7, err_msg=f"{what} at {at} by {k}")
    assert compared > 0


@pytest.mark.parametrize("name", SHAPED)
@pytest.mark.parametrize("what", ["logpdf", "pdf", "cdf"])
def test_continuous_distributions(name, what):
    ours, theirs, shapes = getattr(rs.stats, name), getattr(scipy.stats, name), SHAPED[name]
    if what == "cdf" and ours._cdf is None:
        return
    at = POINTS.get(name, [*AT, *([0.0, -1.3] if name in BOTH_SIDES else [])])
    if name == "laplace":
        at = [x for x in at if x]  # Where it has a corner.
    _compare(getattr(ours, what), getattr(theirs, what), [at, *shapes], f"{name}.{what}")
    moved = [[2.0 * at[0] + 0.1], *(s[:1] for s in shapes), [0.1], [2.0]]
    _compare(getattr(ours, what), getattr(theirs, what), moved, f"{name}.{what}")


@pytest.mark.parametrize("name", ["poisson", "binom", "nbinom", "geom", "bernoulli"])
def test_discrete_distributions(name):
    shapes = {"poisson": [AT], "binom": [SHARES], "nbinom": [SHAPES, SHARES], "geom": [SHARES], "bernoulli": [SHARES]}[name]
    trials = (6.0,) if name == "binom" else ()
    for k, what in itertools.product([0.0, 1.0] if name == "bernoulli" else [1.0, 2.0, 4.0], ["logpmf", "pmf", "cdf"]):
        ours, theirs = getattr(getattr(rs.stats, name), what), getattr(getattr(scipy.stats, name), what)
        _compare(lambda *s, f=ours, k=k: f(k, *trials, *s), lambda *s, f=theirs, k=k: f(k, *trials, *s), shapes, f"{name}.{what}({k})")


def test_other_functions_of_distributions():
    _compare(rs.stats.norm.ppf, scipy.stats.norm.ppf, [SHARES, [0.1], [2.0]], "norm.ppf")
    _compare(rs.stats.norm.logcdf, scipy.stats.norm.logcdf, [[-9.0, 0.3], [0.1], [2.0]], "norm.logcdf")
    vector = lambda a, b, c: np.array([a, b, c])
    x = np.array([0.2, 0.3, 0.5])
    both = lambda f: lambda *s: f(x, rs.stack(s) if isinstance(s[0], rs.Variable) else vector(*s))
    _compare(both(rs.stats.dirichlet.logpdf), both(scipy.stats.dirichlet.logpdf), [SHAPES, [1.0], [2.0]], "dirichlet.logpdf")


def test_densities_where_they_have_middles():
    """Second derivatives at 0, where densities are put together of two sides, and of a concentration of none."""
    logistic, t = _derivatives(rs.stats.logistic.logpdf, 1), _derivatives(rs.stats.t.cdf, 2)
    np.testing.assert_allclose(logistic(0.0), [0, -0.5], atol=1e-15)
    for df in (0.5, 1.0, 2.0, 30.0):
        for y in (0.0, 1e-200, 1e-9, -1e-5, 1e-4, 1e-3):
            np.testing.assert_allclose(t(y, df)[0], scipy.stats.t.pdf(y, df), rtol=1e-12)
            np.testing.assert_allclose(t(y, df)[2], -(df + 1) * y / (df + y * y) * scipy.stats.t.pdf(y, df), rtol=1e-6, atol=1e-11)
    assert rs.grad(rs.stats.laplace.cdf)(0.0) == 0.5
    np.testing.assert_allclose(_derivatives(lambda k: rs.stats.vonmises.logpdf(0.7, k), 1)(0.0), [np.cos(0.7), -0.5], atol=1e-12)


def _moments(draw, a, n=20_000):
    """Sums over draws, and their two derivatives by a parameter."""
    v = rs.dscalar("a")
    total = rs.sum(draw(v, n))
    first = rs.grad(total, v)
    return rs.function([v], [total, first, rs.grad(first, v)])(a)


@pytest.mark.parametrize("a", [0.4, 1.0, 1.5, 2.0, 6.0])
def test_draws_of_a_gamma_move_as_their_quantiles(a):
    """To the second derivative, draw by draw: shares of smaller numbers stay."""
    key, v = rs.random.key(5), rs.dvector("a")
    draws = rs.random.gamma(key, v)
    first = rs.grad(rs.sum(draws), v)
    given = np.full(40, a)
    x, one, two = rs.function([v], [draws, first, rs.grad(rs.sum(first), v)])(given)
    share = scipy.stats.gamma.cdf(x, a)
    sure = (share > 1e-6) & (share < 0.999)
    h = 2e-3 * a
    at = lambda s: scipy.stats.gamma.ppf(share, a + s)
    np.testing.assert_allclose(one[sure], ((8 * (at(h) - at(-h)) - at(2 * h) + at(-2 * h)) / (12 * h))[sure], rtol=1e-6)
    expected = (16 * (at(h) + at(-h)) - at(2 * h) - at(-2 * h) - 30 * at(0.0)) / (12 * h * h)
    np.testing.assert_allclose(two[sure], expected[sure], rtol=1e-3, atol=1e-4)


def test_second_derivatives_of_moments():
    """Of means whose second derivatives are known: E[x²] of a gamma is a² + a, of χ² k² + 2k, E[x] of a beta a/(a + b)."""
    key, n = rs.random.key(5), 20_000
    cases = [
        (lambda a, n: rs.random.gamma(key, a, n) ** 2, 2.0, 2.0),
        (lambda k, n: rs.random.chisquare(key, k, n) ** 2, 3.0, 2.0),
        (lambda a, n: rs.random.beta(key, a, 3.0, n), 2.0, -6.0 / 125),
        (lambda a, n: rs.random.dirichlet(key, rs.stack([a, 1.0 + 0.0 * a, 2.0 + 0.0 * a]), n)[:, 0], 1.5, -6.0 / 4.5**3),
    ]
    for draw, at, expected in cases:
        np.testing.assert_allclose(_moments(draw, at, n)[2] / n, expected, rtol=0.03)
