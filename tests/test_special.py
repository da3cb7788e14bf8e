"""Special functions and log-densities give what SciPy's give, and their gradients agree with differences."""

import numpy as np
import pytest
import scipy.special
import scipy.stats
from helpers import run

import rscan as rs

X = np.array([0.05, 0.3, 1.0, 2.5, 7.0, 19.9, 20.1, 55.0])
BOTH = np.concatenate([-X[::-1], [0.0], X])
SHARES = np.array([0.0, 1e-300, 1e-20, 1e-3, 0.07, 0.1, 0.3, 0.5, 0.62, 0.97, 1 - 1e-12, 1.0])

FUNCTIONS = {
    "gamma": [np.array([-2.5, -1.0, -0.5, 0.0, 0.5, 1.0, 4.0, 20.5])], "gammasgn": [np.array([-2.5, -1.5, -0.5, 0.5, 3.0])],
    "factorial": [np.array([-1.0, 0.0, 1.0, 5.0, 2.5])], "beta": [X, X[::-1].copy()], "betaln": [X, X[::-1].copy()],
    "binom": [np.array([5.0, 10.0, 2.5, 40.0]), np.array([2.0, 0.0, 1.5, 20.0])], "poch": [X, X[::-1] / 9],
    "zeta": [np.array([1.01, 1.5, 2.0, 4.0, 9.0]), np.array([1.0, 0.3, 7.0, 30.0, 2.0])],
    "gammainc": [np.repeat([0.2, 1.0, 7.5, 60.0], 8), np.tile(X, 4)], "gammaincc": [np.repeat([0.2, 1.0, 7.5, 60.0], 8), np.tile(X, 4)],
    "betainc": [np.repeat([0.3, 1.0, 8.0], 4), np.tile([0.2, 1.0, 4.0, 30.0], 3), np.linspace(0, 1, 12)],
    "xlog1py": [np.array([0.0, 0.0, 2.0, -1.0]), np.array([-1.0, 5.0, 0.5, 1e-20])], "entr": [np.array([-1.0, 0.0, 0.3, 2.0])],
    "rel_entr": [np.array([0.0, 0.0, 1.0, 2.0, 1.0]), np.array([0.0, 1.0, 0.0, 3.0, -1.0])],
    "kl_div": [np.array([0.0, 0.0, 1.0, 2.0]), np.array([0.0, 1.0, 0.0, 3.0])], "logit": [SHARES[1:-1]], "expit": [BOTH], "ndtr": [BOTH],
    "log_ndtr": [BOTH], "ndtri": [SHARES], "i0": [BOTH], "i0e": [BOTH], "i1": [BOTH], "i1e": [BOTH], "psi": [X], "log_expit": [BOTH],
    "erf": [BOTH], "sinc": [BOTH],
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name):
    arrays = FUNCTIONS[name]
    theirs = np.sinc if name == "sinc" else getattr(scipy.special, name)
    ours = getattr(rs.special, name)
    with np.errstate(all="ignore"):
        expected = theirs(*arrays)
    for known in (False, True):
        got = run(lambda *xs: ours(*xs), *arrays, known=known)
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-300)
    single = [a.astype("float32") for a in arrays]
    if name not in ("ndtri", "logit", "factorial"):
        got = run(lambda *xs: ours(*xs), *single)
        assert got.dtype == "float32"
        finite = np.isfinite(theirs(*single)) & (np.abs(theirs(*single)) < 1e30)
        np.testing.assert_allclose(got[finite], theirs(*single)[finite], rtol=5e-4, atol=1e-6)
    assert run(lambda *xs: ours(*xs), *(a[:0] for a in arrays)).shape == (0,)


SMOOTH = {
    "gamma": [np.array([-0.5, 0.5, 3.2])], "betaln": [X[:4], X[1:5]], "binom": [np.array([5.5, 10.0]), np.array([2.2, 3.0])],
    "zeta": [np.array([1.5, 3.0]), np.array([0.7, 4.0])], "gammainc": [np.array([0.7, 3.0, 3.0]), np.array([0.4, 1.0, 8.0])],
    "gammaincc": [np.array([0.7, 3.0, 3.0]), np.array([0.4, 1.0, 8.0])], "xlog1py": [np.array([1.0, 2.0]), np.array([0.5, -0.3])],
    "betainc": [np.array([0.7, 3.0]), np.array([2.0, 1.5]), np.array([0.2, 0.9])], "log_ndtr": [np.array([-40.0, -20.0, -3.0, 0.5, 5.0])],
    "ndtri": [np.array([0.01, 0.3, 0.8])], "i0": [np.array([-3.0, 0.0, 2.0])], "i1e": [np.array([-3.0, 0.5, 25.0])],
    "logit": [np.array([0.2, 0.9])], "entr": [np.array([0.2, 3.0])], "rel_entr": [np.array([0.2, 3.0]), np.array([1.0, 2.0])],
}  # fmt: skip


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients(name):
    f = getattr(rs.special, name)
    rs.verify_grad(lambda *xs: f(*xs), SMOOTH[name], rel_tol=1e-5)
    rs.verify_grad(lambda *xs: rs.grad(rs.sum(f(*xs)), xs[-1]), SMOOTH[name], rel_tol=1e-4, abs_tol=1e-6)


def test_functions_with_a_number():
    for n in range(6):
        np.testing.assert_allclose(run(lambda x, n=n: rs.special.polygamma(n, x), X), scipy.special.polygamma(n, X), rtol=1e-11)
    np.testing.assert_allclose(run(lambda x: rs.special.multigammaln(x + 2, 3), X), scipy.special.multigammaln(X + 2, 3), rtol=1e-12)
    with pytest.raises(TypeError):
        rs.special.polygamma(1.5, rs.vector())
    with pytest.raises(TypeError):
        rs.special.polygamma(-1, rs.vector())


def test_rows_at_once_and_outside():
    rows = np.stack([X[:4], X[4:]])
    for f in (lambda x: rs.special.gammainc(2.0, x), lambda x: rs.special.betainc(2.0, 0.7, x / 60), rs.special.ndtri, rs.special.i0e):
        np.testing.assert_allclose(run(rs.vmap(f), rows / 60), np.stack([run(f, row / 60) for row in rows]), rtol=1e-12)
    got = run(lambda a, x: rs.special.gammainc(a, x), np.array([1.0, 1.0, -1.0, 2.0, np.nan]), np.array([0.0, np.inf, 1.0, -1.0, 1.0]))
    np.testing.assert_array_equal(got, [0, 1, np.nan, np.nan, np.nan])


#: Parameters of continuous distributions by SciPy's names, and where they are compared.
CONTINUOUS = {
    "norm": [], "uniform": [], "expon": [], "gamma": [2.3], "beta": [2.5, 0.7], "chi2": [3.5], "t": [4.2], "f": [3.0, 5.5], "cauchy": [],
    "laplace": [], "logistic": [], "lognorm": [0.7], "halfnorm": [], "halfcauchy": [], "invgamma": [2.1], "pareto": [1.7],
    "weibull_min": [1.6], "gumbel_r": [], "gumbel_l": [], "truncnorm": [-1.0, 2.0], "skewnorm": [3.0],
}  # fmt: skip
POINTS = np.array([-3.1, -0.4, 0.0, 0.2, 0.5, 0.93, 1.0, 1.7, 4.0, 12.0])


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name):
    ours, theirs, shapes = getattr(rs.stats, name), getattr(scipy.stats, name), CONTINUOUS[name]
    with np.errstate(all="ignore"):
        for more in ((), (0.3, 1.7)):
            np.testing.assert_allclose(
                run(lambda x, m=more: ours.logpdf(x, *shapes, *m), POINTS), theirs.logpdf(POINTS, *shapes, *more), rtol=1e-11, atol=1e-13
            )
            np.testing.assert_allclose(
                run(lambda x, m=more: ours.pdf(x, *shapes, *m), POINTS), theirs.pdf(POINTS, *shapes, *more), rtol=1e-11, atol=1e-300
            )
            if ours._cdf is not None:
                got = run(lambda x, m=more: ours.cdf(x, *shapes, *m), POINTS)
                np.testing.assert_allclose(got, theirs.cdf(POINTS, *shapes, *more), rtol=1e-11, atol=1e-15)
    inside = POINTS[np.isfinite(theirs.logpdf(POINTS, *shapes)) & ~np.isin(POINTS, [0.0, 1.0])]
    arrays = [inside, *(np.array(s) for s in shapes), np.array(0.01), np.array(1.1)]
    rs.verify_grad(lambda x, *s: ours.logpdf(x, *s), arrays, rel_tol=1e-5)
    x = rs.vector("x")
    outside = rs.function([x], rs.grad(rs.sum(rs.where(rs.isfinite(ours.logpdf(x, *shapes)), ours.logpdf(x, *shapes), 0.0)), x))(POINTS)
    assert np.isfinite(outside[~np.isin(POINTS, [0.0, 1.0])]).all()


def test_slopes_of_a_normal_cut_at_its_middle():
    """Half of a normal: its density at 0 is √(2/π), and a bound that is infinite does not matter."""
    x, a, b = rs.dscalars("x", "a", "b")
    value = rs.stats.truncnorm.logpdf(x, a, b)
    f = rs.function([x, a, b], [value, *rs.grad(value, [x, a, b])])
    log_density = scipy.stats.halfnorm.logpdf(0.3)
    np.testing.assert_allclose(f(0.3, 0.0, np.inf), [log_density, -0.3, np.sqrt(2 / np.pi), 0.0], rtol=1e-13)


def test_slopes_of_a_normal_cut_on_one_side():
    """By the bound b: minus the density there by what is below it."""
    x, a, b = rs.dscalars("x", "a", "b")
    value = rs.stats.truncnorm.logpdf(x, a, b)
    f = rs.function([x, a, b], rs.grad(value, [x, a, b]))
    ratio = scipy.stats.norm.pdf(0.2) / scipy.stats.norm.cdf(0.2)
    np.testing.assert_allclose(f(0.1, -np.inf, 0.2), [-0.1, 0.0, -ratio], rtol=1e-13)
    np.testing.assert_allclose(f(0.1, -0.2, np.inf), [-0.1, ratio, 0.0], rtol=1e-13)
    np.testing.assert_allclose(f(0.1, -np.inf, np.inf), [-0.1, 0.0, 0.0], rtol=1e-13)


#: Parameters of discrete distributions.
DISCRETE = {"bernoulli": [0.3], "poisson": [2.4], "geom": [0.4], "binom": [7.0, 0.35], "nbinom": [3.5, 0.4], "randint": [1.0, 6.0]}
COUNTS = np.array([-1.0, 0.0, 1.0, 2.0, 5.0, 7.0, 9.0])


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete(name):
    ours, theirs, shapes = getattr(rs.stats, name), getattr(scipy.stats, name), DISCRETE[name]
    for given in (COUNTS, COUNTS.astype(int), COUNTS + 0.5):
        for loc in ((), (1,)):
            got = run(lambda k, m=loc: ours.logpmf(k, *shapes, *m), given)
            np.testing.assert_allclose(got, theirs.logpmf(given, *shapes, *loc), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(run(lambda k: ours.pmf(k, *shapes), COUNTS), theirs.pmf(COUNTS, *shapes), rtol=1e-11)
    if ours._cdf is not None:
        np.testing.assert_allclose(run(lambda k: ours.cdf(k, *shapes), COUNTS), theirs.cdf(COUNTS, *shapes), rtol=1e-11)
    if name != "randint":
        p = np.array(shapes[-1])
        rs.verify_grad(lambda p: rs.sum(ours.logpmf(np.array([1.0]), *shapes[:-1], p)), [p], rel_tol=1e-5)


@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_densities_have_the_dtype_of_what_they_are_given(name):
    ours = getattr(rs.stats, name)
    density = ours.logpmf if name in DISCRETE else ours.logpdf
    x, numbers = rs.fvector("x"), [0.5] * len(ours.shapes)
    assert density(x, *numbers).dtype == "float32"
    assert density(x, *(rs.fscalar() for _ in numbers), 1.0).dtype == "float32"
    assert density(x, *numbers, loc=np.float64(1.0)).dtype == "float64"
    assert density(rs.dvector(), *(rs.fscalar() for _ in numbers)).dtype == "float64"
    if name in CONTINUOUS:
        assert density(x, *numbers, scale=2.0).dtype == "float32"


def test_von_mises_and_vectors():
    at = np.array([-3.0, -1.0, 0.0, 2.0])
    np.testing.assert_allclose(run(lambda x: rs.stats.vonmises.logpdf(x, 2.2), at), scipy.stats.vonmises.logpdf(at, 2.2), rtol=1e-12)
    alpha, x = np.array([0.5, 2.0, 3.5]), np.array([0.2, 0.5, 0.3])
    np.testing.assert_allclose(run(rs.stats.dirichlet.logpdf, x, alpha), scipy.stats.dirichlet.logpdf(x, alpha), rtol=1e-12)
    counts, p = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]]), np.array([0.2, 0.5, 0.3])
    np.testing.assert_allclose(
        run(lambda k, p: rs.stats.multinomial.logpmf(k, 3, p), counts, p), scipy.stats.multinomial.logpmf(counts, 3, p), rtol=1e-12
    )
    np.testing.assert_allclose(run(lambda p: rs.stats.categorical.logpmf(np.array([0, 2]), p), p), np.log([0.2, 0.3]), rtol=1e-12)
    mean, a = np.array([1.0, -1.0, 0.5]), np.array([[2.0, 0.3, 0.1], [0.3, 1.0, -0.2], [0.1, -0.2, 0.7]])
    points = np.array([[0.0, 0.0, 0.0], [1.0, -2.0, 0.3]])
    expected = scipy.stats.multivariate_normal.logpdf(points, mean, a)
    np.testing.assert_allclose(run(rs.stats.multivariate_normal.logpdf, points, mean, a), expected, rtol=1e-12)
    np.testing.assert_allclose(run(rs.stats.multivariate_normal.pdf, points[0], mean, a), np.exp(expected[0]), rtol=1e-12)
    np.testing.assert_allclose(
        run(lambda x: rs.stats.multivariate_normal.logpdf(x, 0.0, 2.0), points),
        scipy.stats.multivariate_normal.logpdf(points, cov=2 * np.eye(3)),
        rtol=1e-12,
    )
    rs.verify_grad(rs.stats.multivariate_normal.logpdf, [points, mean, a])
    rs.verify_grad(rs.stats.dirichlet.logpdf, [x, alpha])


def test_wrong_calls():
    x = rs.vector("x")
    for call in (lambda: rs.stats.gamma.logpdf(x), lambda: rs.stats.norm.logpdf(x, 0, 1, 2), lambda: rs.stats.norm.logpdf(x, sigma=1)):
        with pytest.raises(rs.errors.RscanTypeError, match="takes x, "):
            call()
    with pytest.raises(NotImplementedError):
        rs.stats.skewnorm.cdf(x, 1.0)
    np.testing.assert_allclose(
        run(lambda q: rs.stats.norm.ppf(q, 1.0, 2.0), SHARES[1:-1]), scipy.stats.norm.ppf(SHARES[1:-1], 1, 2), rtol=1e-11
    )
    np.testing.assert_allclose(run(lambda x: rs.stats.norm.logcdf(x), BOTH), scipy.stats.norm.logcdf(BOTH), rtol=1e-11)
