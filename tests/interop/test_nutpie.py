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
