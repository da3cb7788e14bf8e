"""Functions of rscan in PyTensor and PyMC, judged by pytensor.gradient.verify_grad and by sampling."""

import numpy as np
import pytest

import rscan as rs

pytensor = pytest.importorskip("pytensor", reason="pytensor is not installed")
from rscan.interop.pytensor import RscanOp, wrap  # noqa: E402

pt = pytensor.tensor
X = np.array([1.0, 2.0, 4.0, 3.0])


@pytest.fixture(autouse=True)
def interpreted():
    """Without a compiler: what is tested is the op, not what PyTensor compiles around it."""
    with pytensor.config.change_flags(mode="FAST_COMPILE", cxx=""):
        yield


def smooth(a, x):
    rows, _ = rs.scan(lambda x, h: a * h + (1 - a) * x, sequences=x, outputs_info=x[0])
    return rs.sum((x - rows) ** 2)


def test_gradients_by_their_own_check():
    pytensor.gradient.verify_grad(wrap(smooth), [np.float64(0.5), X], rng=np.random.default_rng(0))


def test_values_and_gradients_are_ours():
    a, x = pt.dscalar("a"), pt.dvector("x")
    value = RscanOp(rs.compile(smooth))(a, x)
    found = pytensor.function([a, x], [value, *pytensor.grad(value, [a, x])])(0.5, X)
    ours, slopes = rs.value_and_grad(smooth, wrt=(0, 1))(0.5, X)
    for here, there in zip(found, [ours, *slopes], strict=True):
        np.testing.assert_allclose(here, there)


def test_several_outputs_of_which_one_is_used():
    op = wrap(lambda x, n: [x * n, rs.sum(x), n + 1])
    x = pt.dvector("x")
    first, _, steps = op(x, pt.constant(np.int64(3)))
    assert steps.dtype == "int64"
    f = pytensor.function([x], [first, pytensor.grad(first.sum(), x), steps])
    assert [np.asarray(v).tolist() for v in f([1.0, 2.0])] == [[3, 6], [3, 3], 4]


def test_equal_functions_are_one_op():
    assert wrap(smooth) == wrap(smooth) and hash(wrap(smooth)) == hash(wrap(smooth))


def test_in_a_model_of_pymc():
    pm = pytest.importorskip("pymc", reason="pymc is not installed")
    y = np.random.default_rng(0).normal(1.5, 1.0, 50)
    density = wrap(lambda mu, y: -0.5 * rs.sum((y - mu) ** 2))
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 10)
        pm.Potential("likelihood", density(mu, pt.constant(y)))
    at = {"mu": np.float64(1.0)}
    expected = -0.5 * np.sum((y - 1) ** 2) - 0.5 * 0.01 - np.log(10) - 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(model.compile_logp()(at), expected)
    np.testing.assert_allclose(model.compile_dlogp()(at), np.sum(y - 1) - 0.01)


@pytest.mark.filterwarnings("ignore")
def test_pymc_samples_the_posterior_in_closed_form():
    """Of a normal mean with known variance and a normal prior: mean Σy/(n + 1/100), variance 1/(n + 1/100)."""
    pm = pytest.importorskip("pymc", reason="pymc is not installed")
    y = np.random.default_rng(0).normal(1.5, 1.0, 50)
    density = wrap(lambda mu, y: -0.5 * rs.sum((y - mu) ** 2))
    with pm.Model():
        mu = pm.Normal("mu", 0, 10)
        pm.Potential("likelihood", density(mu, pt.constant(y)))
        drawn = pm.sample(400, tune=200, chains=2, cores=1, random_seed=1, progressbar=False, compute_convergence_checks=False)
    found, precision = drawn.posterior["mu"].values, 50 + 0.01
    assert abs(found.mean() - y.sum() / precision) < 0.05 and abs(found.std() * precision**0.5 - 1) < 0.25
