"""The recipes for samplers that need no module of their own: emcee and dynesty take `objective(…).fun`, BlackJAX `interop.jax.wrap`."""

import numpy as np
import pytest

import rscan as rs

Y = np.random.default_rng(0).normal(1.0, 2.0, size=200)
#: What the mean and the logarithm of the standard deviation are, and how near a short run comes.
CENTRE, NEAR = [Y.mean(), np.log(Y.std())], 0.15


def logp(mu, log_sigma, y):
    return -y.shape[0] * log_sigma - 0.5 * rs.sum(((y - mu) / rs.exp(log_sigma)) ** 2)


def density():
    objective = pytest.importorskip("rscan.interop.scipy", reason="scipy is not installed").objective
    f = objective(lambda p, y: logp(p["mu"], p["log_sigma"], y), {"mu": 0.0, "log_sigma": 0.0}, args=(Y,))
    assert f.names == ["mu", "log_sigma"]
    return lambda v: float(f.fun(v))


def test_emcee():
    emcee = pytest.importorskip("emcee", reason="emcee is not installed")
    sampler = emcee.EnsembleSampler(8, 2, density())
    np.random.seed(1)
    sampler.run_mcmc(np.random.default_rng(1).normal(size=(8, 2)) * 0.1, 500)
    np.testing.assert_allclose(sampler.get_chain(discard=200, flat=True).mean(axis=0), CENTRE, atol=NEAR)


def test_dynesty():
    dynesty = pytest.importorskip("dynesty", reason="dynesty is not installed")
    sampler = dynesty.NestedSampler(density(), lambda u: 8 * u - 4, 2, nlive=60, rstate=np.random.default_rng(2))
    sampler.run_nested(print_progress=False, dlogz=1.0)
    found = sampler.results
    mean = np.average(found.samples, axis=0, weights=np.exp(found.logwt - found.logz[-1]))
    np.testing.assert_allclose(mean, CENTRE, atol=NEAR)


@pytest.mark.filterwarnings("ignore")
def test_blackjax():
    jax = pytest.importorskip("jax", reason="jax is not installed")
    blackjax = pytest.importorskip("blackjax", reason="blackjax is not installed")
    from rscan.interop.jax import wrap

    with jax.enable_x64(True):
        density = wrap(lambda v: logp(v[0], v[1], Y))
        nuts = blackjax.nuts(density, step_size=0.1, inverse_mass_matrix=0.02 * jax.numpy.ones(2))
        state, step, draws = nuts.init(jax.numpy.array(CENTRE)), jax.jit(nuts.step), []
        for key in jax.random.split(jax.random.key(0), 80):
            state, _ = step(key, state)
            draws.append(state.position)
        np.testing.assert_allclose(np.mean(draws, axis=0), CENTRE, atol=NEAR)
