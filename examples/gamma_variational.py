"""Variational inference with gamma distributions: how often patients of the RAND experiment saw a doctor.

    visits ~ Poisson(rate of the group),   rate ~ Gamma(1, 0.1)

The posterior of each group's rate is approximated by a gamma distribution whose shape and rate follow the gradient of the evidence lower
bound, through the draws themselves. Here the posterior is known: it is Gamma(1 + visits, 0.1 + patients), the reference, and the bound
reaches the log-evidence.

It needs: pip install statsmodels
"""

import argparse

import numpy as np
import statsmodels.api as sm
from scipy.special import gammaln

import rscan as rs

GROUPS, PATIENTS, DRAWS = 6, 12, 64
SHAPE, RATE = 1.0, 0.1


def visits():
    """Groups × patients: a few of each, so that the posterior is wide."""
    counts = sm.datasets.randhie.load_pandas().data["mdvis"].to_numpy(dtype=np.float64)
    return counts[: GROUPS * 500].reshape(GROUPS, 500)[:, :PATIENTS]


def bound(q, key, counts):
    """The evidence lower bound, by draws; q: logarithms of shapes and of means."""
    shape, rate = rs.exp(q["shape"]), rs.exp(q["shape"] - q["mean"])
    draws = rs.random.gamma(key, rs.broadcast_to(shape, (DRAWS, GROUPS))) / rate
    likelihood = rs.sum(rs.stats.poisson.logpmf(counts, draws[:, :, None]), axis=2)
    prior = rs.stats.gamma.logpdf(draws, SHAPE, scale=1 / RATE)
    own = rs.stats.gamma.logpdf(draws, shape, scale=1 / rate)
    return rs.sum(rs.mean(likelihood + prior - own, axis=0))


def fit(counts, iterations):
    optimiser = rs.optim.adam(rs.optim.exponential_decay(0.1, iterations, 0.01))

    @rs.compile
    def fitted(start, counts):
        """The whole fit is one loop; averages of the last half of the path."""

        def step(i, q, state):
            value, slopes = rs.value_and_grad(lambda q: -bound(q, rs.random.fold_in(rs.random.key(0), i), counts))(q)
            q, state = optimiser.step(slopes, state, q)
            return dict(q=q, state=state, value=value)

        return rs.loop(step, over=dict(i=rs.arange(iterations)), init=dict(q=start, state=optimiser.init(start)))

    start = {"shape": np.zeros(GROUPS), "mean": np.zeros(GROUPS)}
    path = fitted(start, counts)
    half = {name: rows[iterations // 2 :].mean(axis=0) for name, rows in path.q.items()}
    return np.exp(half["shape"]), np.exp(half["mean"]), -path.value


def evidence(counts):
    """The logarithm of the probability of all counts."""
    total, n = counts.sum(axis=1), counts.shape[1]
    of_group = SHAPE * np.log(RATE) - gammaln(SHAPE) + gammaln(SHAPE + total) - (SHAPE + total) * np.log(RATE + n)
    return float(np.sum(of_group) - gammaln(counts + 1).sum())


def exact_bound(q, counts):
    """The log-evidence less the divergence of the two gamma distributions."""
    a, b = rs.exp(q["shape"]), rs.exp(q["shape"] - q["mean"])
    a0, b0 = SHAPE + counts.sum(axis=1), RATE + PATIENTS
    apart = (a - a0) * rs.digamma(a) - rs.gammaln(a) + gammaln(a0) + a0 * (rs.log(b) - np.log(b0)) + a * (b0 - b) / b
    return evidence(counts) - rs.sum(apart)


def slopes(counts):
    """The gradient by draws, averaged over many, and that of the exact bound, which finite differences confirm. Draws jump where one
    is rejected, so that finite differences of the bound by draws say nothing."""
    q = {"shape": np.full(GROUPS, 0.7), "mean": np.full(GROUPS, 0.4)}
    rs.verify_grad(lambda s, m: exact_bound({"shape": s, "mean": m}, counts), list(q.values()))
    many = rs.compile(rs.vmap(lambda n: rs.grad(bound)(q, rs.random.fold_in(rs.random.key(1), n), rs.constant(counts))))(np.arange(400))
    exact = rs.grad(lambda q: exact_bound(q, counts))(q)
    return np.array([many[k].mean(axis=0) for k in q]), np.array([exact[k] for k in q])


def main(iterations=2000):
    counts = visits()
    slope, exact_slope = slopes(counts)
    shape, mean, bounds = fit(counts, iterations)
    exact_shape, exact_rate = SHAPE + counts.sum(axis=1), RATE + PATIENTS
    exact = exact_shape / exact_rate

    print(f"gamma posteriors of {GROUPS} rates by {iterations} steps of {DRAWS} draws")
    print(f"{'patients seen':14} {'mean':>8} {'exact':>8} {'shape':>8} {'exact':>8}")
    for k in range(GROUPS):
        print(f"{counts[k].sum():14.0f} {mean[k]:8.3f} {exact[k]:8.3f} {shape[k]:8.2f} {exact_shape[k]:8.2f}")
    print(f"bound {bounds[-100:].mean():.3f}, log-evidence {evidence(counts):.3f}")
    found = dict(mean=mean, shape=shape, bound=bounds[-100:].mean(), slope=slope)
    return found | dict(exact_mean=exact, exact_shape=exact_shape, evidence=evidence(counts), exact_slope=exact_slope)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--iterations", type=int, default=4000)
    main(options.parse_args().iterations)
