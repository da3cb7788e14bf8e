"""Draws have the distributions that they are named after, parameters and sizes broadcast, gradients are those of the quantiles."""

import numpy as np
import pytest
import scipy.stats as st

import rscan as rs

KEY, N = rs.random.key(20260), 20_000
R = rs.random

CONTINUOUS = {
    "uniform": (lambda k, n: R.uniform(k, n, -1.0, 2.0), st.uniform(-1, 3)),
    "normal": (lambda k, n: R.normal(k, n, 1.0, 2.0), st.norm(1, 2)),
    "exponential": (lambda k, n: R.exponential(k, n, 2.0), st.expon(scale=2)),
    "gumbel": (lambda k, n: R.gumbel(k, n, 1.0, 2.0), st.gumbel_r(1, 2)),
    "laplace": (lambda k, n: R.laplace(k, n, 1.0, 2.0), st.laplace(1, 2)),
    "logistic": (lambda k, n: R.logistic(k, n, 1.0, 2.0), st.logistic(1, 2)),
    "cauchy": (lambda k, n: R.cauchy(k, n, 1.0, 2.0), st.cauchy(1, 2)),
    "lognormal": (lambda k, n: R.lognormal(k, n, 0.5, 0.7), st.lognorm(0.7, scale=np.exp(0.5))),
    "pareto": (lambda k, n: R.pareto(k, 2.5, n), st.pareto(2.5)),
    "weibull": (lambda k, n: R.weibull(k, 1.5, n, 2.0), st.weibull_min(1.5, scale=2)),
    "truncated_normal": (lambda k, n: R.truncated_normal(k, -0.5, 1.5, n), st.truncnorm(-0.5, 1.5)),
    "truncated_normal far out": (lambda k, n: R.truncated_normal(k, 6.0, 9.0, n), st.truncnorm(6, 9)),
    "gamma small": (lambda k, n: R.gamma(k, 0.2, n), st.gamma(0.2)),
    "gamma": (lambda k, n: R.gamma(k, 2.7, n, 3.0), st.gamma(2.7, scale=3)),
    "gamma large": (lambda k, n: R.gamma(k, 400.0, n), st.gamma(400)),
    "chisquare": (lambda k, n: R.chisquare(k, 3.0, n), st.chi2(3)),
    "student_t": (lambda k, n: R.student_t(k, 3.0, n, 1.0, 2.0), st.t(3, 1, 2)),
    "beta": (lambda k, n: R.beta(k, 2.0, 0.5, n), st.beta(2, 0.5)),
    "dirichlet": (lambda k, n: R.dirichlet(k, np.array([0.5, 1.5, 2.0]), n)[:, 1], st.beta(1.5, 2.5)),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name):
    """Kolmogorov's and Smirnov's test, with a fixed seed."""
    draw, distribution = CONTINUOUS[name]
    x = rs.eval(draw(KEY, N))
    assert x.dtype == "float64" and st.kstest(x, distribution.cdf).pvalue > 1e-3
    assert not st.kstest(x * 1.1 + 0.02, distribution.cdf).pvalue > 1e-3


DISCRETE = {
    **{f"poisson {m}": (lambda k, n, m=m: R.poisson(k, m, n), st.poisson(m)) for m in (0.05, 2.0, 9.99, 10.0, 63.0, 900.0)},
    **{
        f"binomial {n} {p}": (lambda k, m, n=n, p=p: R.binomial(k, n, p, m), st.binom(n, p))
        for n, p in [(1, 0.3), (12, 0.5), (20, 0.97), (90, 0.5), (1000, 0.004), (300, 0.8)]
    },
    "geometric": (lambda k, n: R.geometric(k, 0.3, n), st.geom(0.3)),
    "bernoulli": (lambda k, n: rs.cast(R.bernoulli(k, 0.3, n), "int64"), st.bernoulli(0.3)),
    "integers": (lambda k, n: R.integers(k, -2, 5, n), st.randint(-2, 5)),
    "integers of arrays": (lambda k, n: R.integers(k, np.full(N, -2), 5), st.randint(-2, 5)),
    "categorical": (lambda k, n: R.categorical(k, p=np.array([0.2, 0.5, 0.3]), size=n), st.rv_discrete(values=(range(3), [0.2, 0.5, 0.3]))),
    "logits": (lambda k, n: R.categorical(k, np.log([2.0, 5, 3]), size=n), st.rv_discrete(values=(range(3), [0.2, 0.5, 0.3]))),
    "multinomial": (lambda k, n: R.multinomial(k, 40, np.array([0.2, 0.5, 0.3]), n)[:, 1], st.binom(40, 0.5)),
    "the last of multinomial": (lambda k, n: R.multinomial(k, 40, np.array([0.2, 0.5, 0.3]), n)[:, 2], st.binom(40, 0.3)),
}


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete(name):
    """Pearson's test, of the numbers that are expected ten times or more and of all others together."""
    draw, distribution = DISCRETE[name]
    x = rs.eval(draw(KEY, N))
    assert x.dtype == "int64" and x.shape == (N,)
    values = np.arange(x.min() - 1, x.max() + 2)
    expected, found = N * distribution.pmf(values), np.array([(x == v).sum() for v in values])
    often = expected >= 10
    assert found[distribution.pmf(values) == 0].sum() == 0
    expected = np.append(expected[often], max(N - expected[often].sum(), 1e-9))
    found = np.append(found[often], N - found[often].sum())
    kept = expected > 1
    statistic = ((found - expected)[kept] ** 2 / expected[kept]).sum()
    assert st.chi2.sf(statistic, kept.sum() - 1) > 1e-3


def test_large_counts_of_poisson_are_those_of_the_paper():
    """Its algorithm PTRS, with two uniform numbers a round."""
    mean, n = 10.0, 4000
    b = 0.931 + 2.53 * np.sqrt(mean)
    a = -0.059 + 0.02483 * b
    expected = np.full(n, np.nan)
    for number in range(40):
        key = R.fold_in(R.fold_in(KEY, 1), number)
        u, v = rs.eval(R.uniform(R.fold_in(key, 0), n)) - 0.5, rs.eval(R.uniform(R.fold_in(key, 1), n))
        edge = 0.5 - abs(u)
        k = np.floor((2 * a / edge + b) * u + mean + 0.43)
        exact = v * (1.1239 + 1.1328 / (b - 3.4)) / (a / edge**2 + b) <= st.poisson(mean).pmf(k)
        quick = (edge >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2))
        good = quick | ((k >= 0) & ((edge >= 0.013) | (v <= edge)) & exact)
        expected = np.where(np.isnan(expected) & good, k, expected)
    assert rs.eval(R.poisson(KEY, mean, n)).tolist() == expected.tolist()


def test_parameters_that_are_arrays_have_draws_of_their_own():
    shape = np.array([0.5, 2.0, 30.0])
    for draw in (
        lambda a, n: R.gamma(KEY, a, n),
        lambda a, n: R.normal(KEY, n, a),
        lambda a, n: R.uniform(KEY, n, a, a + 1),
        lambda a, n: R.student_t(KEY, a, n),
        lambda a, n: R.poisson(KEY, a, n),
        lambda a, n: R.exponential(KEY, n, a),
    ):
        x = rs.dvector("x")
        alone = rs.function([x], draw(x, None))(shape)
        assert alone.shape == (3,) and len(set(alone - np.where(alone > 20, 30, 0))) >= 2
        many = rs.function([x], draw(x, (N // 10, 3)))(shape)
        assert many.shape == (N // 10, 3)
        assert rs.eval(draw(2.0, None)).shape == () and rs.eval(draw(2.0, (0,))).shape == (0,) and rs.eval(draw(2.0, 1)).shape == (1,)
    x = rs.eval(R.normal(KEY, None, np.zeros(N)))
    assert st.kstest(x, "norm").pvalue > 1e-3
    assert rs.eval(R.beta(KEY, np.ones((2, 1)), np.ones(3))).shape == (2, 3)
    assert rs.eval(R.binomial(KEY, np.array([[3], [50]]), np.array([0.2, 0.9]))).shape == (2, 2)
    assert rs.eval(R.multinomial(KEY, np.array([3, 7]), np.array([0.2, 0.8]))).sum(1).tolist() == [3, 7]
    assert rs.eval(R.dirichlet(KEY, np.ones((2, 3)))).shape == (2, 3)
    assert rs.eval(R.categorical(KEY, np.zeros((4, 5)), axis=0)).shape == (5,)
    assert rs.eval(R.gamma(KEY, np.array([2.0], "float32"), dtype="float32")).dtype == "float32"


def test_edges():
    assert (rs.eval(R.poisson(KEY, 0.0, 50)) == 0).all()
    assert (rs.eval(R.binomial(KEY, 0, 0.4, 50)) == 0).all()
    assert (rs.eval(R.binomial(KEY, 9, np.array([0.0, 1.0]), (50, 2))) == [0, 9]).all()
    assert rs.eval(R.multinomial(KEY, 5, np.array([1.0]))).tolist() == [5]
    assert rs.eval(R.permutation(KEY, np.arange(6).reshape(2, 3), axis=1)).sum(1).tolist() == [3, 12]


def test_normal_vectors():
    mean, cov = np.array([1.0, -1.0]), np.array([[2.0, 0.6], [0.6, 1.0]])
    x = rs.eval(R.multivariate_normal(KEY, np.stack([mean, -mean]), cov, (N, 2)))
    np.testing.assert_allclose(x.mean(0), [mean, -mean], atol=0.05)
    np.testing.assert_allclose(np.cov(x[:, 1].T), cov, atol=0.06)
    batch = rs.eval(R.multivariate_normal(KEY, mean, np.stack([cov, 4 * cov])))
    assert batch.shape == (2, 2)


def test_normal_vectors_of_one_element_are_normal_numbers():
    m, c = rs.dmatrix("m"), rs.dtensor3("c")
    units = rs.eval(R.normal(KEY, (2, 1)))
    found = rs.function([m, c], R.multivariate_normal(KEY, m, c))([[1.0], [5.0]], [[[4.0]], [[9.0]]])
    np.testing.assert_allclose(found, [[1.0], [5.0]] + units * [[2.0], [3.0]], rtol=1e-12)


@pytest.mark.parametrize("a", [0.6, 3.0])
def test_slopes_of_gamma_draws_keep_their_share(a):
    """At x with F(x; a) = u the slope by a is that of the quantile of u."""
    v = rs.dscalar("a")
    x = R.gamma(KEY, v, 6)
    values, slopes = rs.function([v], [x, rs.jacobian(x, v)])(a)
    h = 1e-5
    shares = st.gamma.cdf(values, a)
    np.testing.assert_allclose(slopes, (st.gamma.ppf(shares, a + h) - st.gamma.ppf(shares, a - h)) / (2 * h), rtol=1e-4)
    assert rs.function([v], rs.grad(rs.mean(R.gamma(KEY, v, N)), v))(a) == pytest.approx(1, abs=0.05)


def test_slopes_of_others():
    rs.verify_grad(lambda m, s: R.laplace(KEY, 4, m, s), [np.array(1.0), np.array(2.0)])
    rs.verify_grad(lambda m, s: R.cauchy(KEY, 4, m, s), [np.array(1.0), np.array(2.0)])
    rs.verify_grad(lambda a: R.pareto(KEY, a, 4), [np.array(1.7)])
    rs.verify_grad(lambda a, s: R.weibull(KEY, a, 4, s), [np.array(1.7), np.array(0.7)])
    rs.verify_grad(lambda lo, hi: R.truncated_normal(KEY, lo, hi, 4), [np.array(-0.3), np.array(1.7)], rel_tol=1e-5)
    rs.verify_grad(lambda m, c: R.multivariate_normal(KEY, m, c, 3), [np.zeros(2), np.array([[2.0, 0.0], [0.3, 1.0]])])
    a, b = rs.dscalar("a"), rs.dscalar("b")
    slopes = rs.function([a, b], rs.grad(rs.mean(R.beta(KEY, a, b, N)), [a, b]))(2.0, 3.0)
    np.testing.assert_allclose(slopes, [3 / 25, -2 / 25], atol=0.005)


def test_in_loops_rows_and_streams():
    stream = rs.random.Stream(3)
    rows = rs.function([], rs.loop(lambda: stream.gamma(2.0, 2), n_steps=4))()
    assert rows.shape == (4, 2) and len(set(rows.ravel())) == 8
    f = rs.vmap(lambda a, i: R.gamma(R.fold_in(KEY, i), a))
    a, i = rs.dvector("a"), rs.lvector("i")
    got = rs.function([a, i], f(a, i))([0.5, 2.0, 70.0], [0, 1, 2])
    expected = [rs.eval(R.gamma(R.fold_in(KEY, k), v)) for k, v in enumerate([0.5, 2.0, 70.0])]
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    counts = rs.function([a, i], rs.vmap(lambda m, k: R.poisson(R.fold_in(KEY, k), m))(a, i))([0.5, 20.0, 700.0], [0, 1, 2])
    assert counts.tolist() == [int(rs.eval(R.poisson(R.fold_in(KEY, k), v))) for k, v in enumerate([0.5, 20.0, 700.0])]
    names = set(rs.random.__all__) - {"RandomStream", "Stream", "fold_in", "key", "split"}
    assert all(callable(getattr(stream, name)) for name in names)
    assert rs.eval(stream.student_t(4.0, 3, scale=2.0)).shape == (3,)


ERRORS = {
    "no logits": lambda: R.categorical(KEY),
    "both": lambda: R.categorical(KEY, np.zeros(2), p=np.ones(2)),
    "a number": lambda: R.categorical(KEY, 1.0),
    "dirichlet": lambda: R.dirichlet(KEY, 1.0),
    "multinomial": lambda: R.multinomial(KEY, 3, rs.vector()),
    "dtype": lambda: R.gamma(KEY, 1.0, dtype="int32"),
    "size": lambda: R.gamma(KEY, 1.0, 1.5),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    with pytest.raises(rs.RscanError):
        ERRORS[name]()


NOT_A_NUMBER = {
    "gamma": lambda k, a: R.gamma(k, a),
    "chisquare": lambda k, a: R.chisquare(k, a),
    "beta": lambda k, a: R.beta(k, a, 2.0),
    "student_t": lambda k, a: R.student_t(k, a),
    "pareto": lambda k, a: R.pareto(k, a),
    "weibull": lambda k, a: R.weibull(k, a),
}


@pytest.mark.parametrize("name", NOT_A_NUMBER)
def test_draws_of_floats_with_parameters_of_no_distribution(name):
    a = rs.dvector("a")
    draws = rs.function([a], NOT_A_NUMBER[name](KEY, a))([-1.5, np.nan, 2.0])
    assert np.isnan(draws).tolist() == [True, True, False]


SHAPED = (R.weibull, R.gamma, R.student_t)
AN_ERROR = {
    "poisson": (lambda k, x: R.poisson(k, x), [-1.0, np.nan], 3.0),
    "binomial": (lambda k, x: R.binomial(k, 10, x), [-0.5, 1.5, np.nan], 0.5),
    "binomial of trials": (lambda k, x: R.binomial(k, x, 0.5), [-1.0], 4.0),
    "geometric": (lambda k, x: R.geometric(k, x), [-0.5, 0.0, 1.5, np.nan], 1.0),
    "multinomial": (lambda k, x: R.multinomial(k, 5, rs.stack([x, 0.5])), [-0.5, np.nan], 0.5),
    "choice": (lambda k, x: R.choice(k, 2, 3, p=rs.stack([x, 0.5])), [-0.5, np.nan], 0.5),
    "choice of nothing": (lambda k, x: R.choice(k, 2, 3, p=rs.stack([x, 0.0 * x])), [0.0], 0.5),
    "choice among others": (lambda k, x: R.choice(k, rs.cast(x, "int64"), 3, p=[0.5, 0.5]), [1.0, 3.0], 2.0),
    "choice without replacement": (lambda k, x: R.choice(k, 2, rs.cast(x, "int64"), replace=False, p=[1.0, 0.0]), [2.0], 1.0),
    "bernoulli": (lambda k, x: R.bernoulli(k, x), [-0.1, 1.5, np.nan], 1.0),
    "integers": (lambda k, x: R.integers(k, [0, 0], rs.cast(rs.stack([x, 5.0]), "int64")), [0.0, -3.0, 2.0**60], 1.0),
    "integers of a dtype": (lambda k, x: R.integers(k, 0, rs.cast(x, "int64"), dtype="int8"), [129.0], 128.0),
    "binomial of parts": (lambda k, x: R.binomial(k, x, 0.5), [2.5], 2.0),
    "poisson of too many": (lambda k, x: R.poisson(k, x), [1e19, np.inf], 1e18),
    "multinomial of nothing": (lambda k, x: R.multinomial(k, 5, rs.stack([x, 0.0])), [0.0], 0.5),
    "multinomial of less": (lambda k, x: R.multinomial(k, rs.cast(x, "int64"), [1.0]), [-1.0], 0.0),
    "categorical": (lambda k, x: R.categorical(k, p=rs.stack([x, 0.0])), [-0.5, 0.0, np.nan], 0.5),
    "categorical of logits": (lambda k, x: R.categorical(k, rs.stack([x, -np.inf])), [-np.inf, np.nan], 0.5),
    "uniform": (lambda k, x: R.uniform(k, 2, 1.0, x), [0.5], 1.0),
    **{
        name: (lambda k, x, draw=getattr(R, name): draw(k, 2.0, scale=x) if draw in SHAPED else draw(k, scale=x), [-1.0], 0.0)
        for name in ("normal", "exponential", "gumbel", "laplace", "logistic", "cauchy", "weibull", "gamma", "student_t")
    },
    "lognormal": (lambda k, x: R.lognormal(k, sigma=x), [-1.0], 0.0),
    "choice without": (lambda k, x: R.choice(k, 2, 2, replace=False, p=rs.stack([x, 0.5])), [-0.5, np.nan], 0.5),
}


@pytest.mark.parametrize("name", AN_ERROR)
def test_draws_of_integers_with_parameters_of_no_distribution(name):
    draw, wrong, right = AN_ERROR[name]
    x = rs.dscalar("x")
    f = rs.function([x], draw(KEY, x))
    f(right)
    for value in wrong:
        with pytest.raises(rs.errors.AssertionFailedError, match=name.split()[0]):
            f(value)
    f(right)


def test_scales_that_are_numbers_are_checked_and_nan_stays():
    with pytest.raises(rs.errors.AssertionFailedError, match="normal takes a scale of 0 or more"):
        R.normal(KEY, scale=-1.0).eval()
    assert np.isnan(R.normal(KEY, scale=[np.nan, 1.0]).eval()).tolist() == [True, False]
    assert np.isnan(R.truncated_normal(KEY, [2.0, 1.0], [1.0, 2.0]).eval()).tolist() == [True, False]
    assert np.isnan(R.dirichlet(KEY, [[0.0, 1.0], [2.0, 1.0]]).eval()).tolist() == [[True] * 2, [False] * 2]
    rs.verify_grad(lambda s: rs.sum(R.normal(KEY, 3, scale=s)), [np.array(0.7)])


def test_a_wrong_parameter_in_a_step_is_an_error_at_its_step():
    rates = rs.dvector("rates")
    f = rs.function([rates], rs.loop(lambda i, rate: R.poisson(R.fold_in(KEY, i), rate), over=[rs.arange(rates.shape[0]), rates]))
    assert f([1.0, 2.0]).shape == (2,)
    with pytest.raises(rs.errors.AssertionFailedError, match="poisson takes a mean of 0 or more"):
        f([1.0, 2.0, -1.0])
