"""Log-densities for nutpie, judged by what it draws."""

import numpy as np
import pytest

import rscan as rs

nutpie = pytest.importorskip("nutpie", reason="nutpie is not installed")
from rscan.interop.nutpie import model  # noqa: E402


def test_draws_have_the_moments_of_the_density():
    def logp(p, scale):
        walk, _ = rs.scan(lambda e, h: 0.5 * h + e, sequences=p["e"], outputs_info=rs.constant(0.0))
        return -0.5 * rs.sum(p["e"] ** 2) - 0.5 * ((p["m"] - 3) / scale) ** 2 + 0 * rs.sum(walk)

    sampled = nutpie.sample(
        model(logp, {"m": 0.0, "e": np.zeros(2)}, (2.0,), expand=lambda p: {"m": p["m"], "e": p["e"], "twice": 2 * p["m"]}),
        draws=600, tune=300, chains=2, cores=1, seed=1, progress_bar=False,
    )  # fmt: skip
    posterior = sampled.posterior
    m = np.asarray(posterior["m"])
    assert m.shape == (2, 600) and np.asarray(posterior["e"]).shape == (2, 600, 2)
    np.testing.assert_array_equal(np.asarray(posterior["twice"]), 2 * m)
    assert abs(m.mean() - 3) < 0.4 and abs(m.std() - 2) < 0.4
    assert abs(np.asarray(posterior["e"]).std() - 1) < 0.2


def test_an_autoregression_has_its_posterior_in_closed_form():
    """AR(1) with known noise and a flat prior: normal around Σ yₜ₋₁·yₜ / Σ yₜ₋₁², of variance 1 / Σ yₜ₋₁²."""
    random, y = np.random.default_rng(3), [0.0]
    for _ in range(300):
        y.append(0.6 * y[-1] + random.standard_normal())
    y = np.array(y)

    def logp(p, y):
        out = rs.loop(lambda x, before: {"before": x, "error": x - p["phi"] * before}, over={"x": y[1:]}, init={"before": y[0]})
        return -0.5 * rs.sum(out.error**2)

    drawn = nutpie.sample(model(logp, {"phi": 0.0}, (y,)), draws=800, tune=300, chains=2, cores=1, seed=2, progress_bar=False)
    phi, weight = np.asarray(drawn.posterior["phi"]), (y[:-1] ** 2).sum()
    assert abs(phi.mean() - (y[:-1] * y[1:]).sum() / weight) < 0.01 and abs(phi.std() * weight**0.5 - 1) < 0.2


def garch_terms(p, exp, tanh):
    """Parameters over all real values: ω > 0, α and β in (0, 1/2)."""
    return exp(p["omega"]), 0.25 * (1 + tanh(p["alpha"])), 0.25 * (1 + tanh(p["beta"]))


def test_the_posterior_of_garch_is_that_of_jax():
    """The log-density with its gradient beside JAX's, and draws from it."""
    jax = pytest.importorskip("jax", reason="jax is not installed")
    from rscan.interop.scipy import objective

    r = np.random.default_rng(5).standard_t(6, 400) * 0.5

    def logp(p, r):
        omega, alpha, beta = garch_terms(p, rs.exp, rs.tanh)
        h = rs.loop(lambda r, h: {"h": omega + alpha * r**2 + beta * h}, over={"r": r[:-1]}, init={"h": rs.mean(r**2)}).h
        return -0.5 * rs.sum(rs.log(h) + r[1:] ** 2 / h) - 0.5 * (p["omega"] ** 2 + p["alpha"] ** 2 + p["beta"] ** 2)

    def theirs(p):
        omega, alpha, beta = garch_terms(p, jax.numpy.exp, jax.numpy.tanh)

        def step(h, r):
            h = omega + alpha * r**2 + beta * h
            return h, h

        _, h = jax.lax.scan(step, jax.numpy.mean(r**2), r[:-1])
        prior = -0.5 * (p["omega"] ** 2 + p["alpha"] ** 2 + p["beta"] ** 2)
        return -0.5 * jax.numpy.sum(jax.numpy.log(h) + r[1:] ** 2 / h) + prior

    start = {"omega": -1.0, "alpha": 0.1, "beta": 0.2}
    ours = objective(logp, start, (r,))
    with jax.enable_x64(True):
        value, slope = jax.value_and_grad(theirs)(start)
        found = ours(ours.x0)
        np.testing.assert_allclose(found[0], float(value), rtol=1e-12)
        np.testing.assert_allclose(found[1], [float(slope[name]) for name in ours.names], rtol=1e-9)
    drawn = nutpie.sample(model(logp, start, (r,)), draws=300, tune=300, chains=2, cores=1, seed=4, progress_bar=False).posterior
    means = [np.asarray(drawn[name]).mean(axis=1) for name in ours.names]
    assert all(abs(a - b) < 0.5 for a, b in means), "chains agree"
