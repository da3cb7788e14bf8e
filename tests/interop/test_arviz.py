"""Draws for ArviZ, judged by its summaries."""

import warnings

import numpy as np
import pytest

import rscan as rs

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of the version before 1.0, when it is imported
    arviz = pytest.importorskip("arviz", reason="arviz is not installed")
    from rscan.interop.arviz import from_draws


@pytest.mark.filterwarnings("ignore")
def test_summaries_of_nested_draws():
    random = np.random.default_rng(0)
    draws = {"m": random.normal(3, 1, (2, 500)), "b": {"w": random.normal(0, 2, (2, 500, 3))}}
    data = from_draws(draws, sample_stats={"diverging": np.zeros((2, 500), bool)})
    assert data.posterior["b.w"].shape == (2, 500, 3) and not data.sample_stats["diverging"].values.any()
    table = arviz.summary(data)
    assert abs(float(table.loc["m", "mean"]) - 3) < 0.2 and len(table) == 4


@pytest.mark.filterwarnings("ignore")
def test_the_data_is_what_the_version_has():
    coords = {"asset": ["a", "b", "c"]}
    data = from_draws({"b": {"w": np.zeros((2, 50, 3))}}, sample_stats={"lp": np.zeros((2, 50))}, coords=coords, dims={"b.w": ["asset"]})
    assert type(data).__name__ == ("DataTree" if int(arviz.__version__.split(".")[0]) >= 1 else "InferenceData")
    assert data.posterior["b.w"].dims == ("chain", "draw", "asset") and list(data.posterior.asset.values) == coords["asset"]
    assert data.sample_stats["lp"].dims == ("chain", "draw")


def test_draws_without_chains_are_named():
    with pytest.raises(rs.RscanError, match="the draws of `m` have no axes"):
        from_draws({"m": np.zeros(3)})
