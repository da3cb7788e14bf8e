"""Stochastic volatility of daily S&P 500 returns around the crisis of 2008, sampled with Hamiltonian Monte Carlo.

    h_t = mu + phi (h_{t-1} - mu) + sigma e_t,   r_t ~ N(0, exp(h_t)),   e_t ~ N(0, 1)

The log-density is a loop over days. A leapfrog trajectory is a loop over its gradient, and a chain a loop over trajectories: one compiled
function runs all chains side by side. Where nutpie is installed `--nutpie` samples the same density with NUTS. The volatility is
compared with that of a GARCH model that `arch` fits to the same days.

    python examples/stochastic_volatility.py --draws 4000 --days 1000

It needs: pip install arch
"""

import argparse

import arch.data.sp500
import numpy as np
from arch import arch_model

import rscan as rs


def returns(days):
    prices = arch.data.sp500.load()["Adj Close"]
    series = 100 * prices.pct_change().dropna()
    end = series.index.searchsorted("2009-06-30")
    return series.iloc[end - days : end]


def unpacked(x):
    """Mean, persistence and scale of the log-variance, and its standardised innovations."""
    return x[0], rs.tanh(x[1]), rs.exp(x[2]), x[3:]


def log_variance(x):
    mu, phi, sigma, noise = unpacked(x)
    start = noise[0] * sigma / rs.sqrt(1 - phi**2)
    rest = rs.loop(lambda e, h: phi * h + sigma * e, over=noise[1:], init=start)
    return mu + rs.concatenate([start[None], rest])


def log_density(x, r):
    """Up to a constant. Priors: mu ~ N(0, 2²), (phi + 1) / 2 ~ Beta(20, 1.5), sigma ~ log-normal(-1.5, 1)."""
    mu, phi, _, noise = unpacked(x)
    h = log_variance(x)
    likelihood = -0.5 * rs.sum(h + r**2 * rs.exp(-h))
    half = (phi + 1) / 2
    prior = rs.stats.norm.logpdf(mu, 0, 2) + rs.stats.beta.logpdf(half, 20.0, 1.5) + rs.log(1 - phi**2)
    return likelihood + prior + rs.stats.norm.logpdf(x[2], -1.5, 1.0) - 0.5 * rs.sum(noise**2)


def chain(x, key, r, step, scale, draws, leaps):
    """Draws of a chain, how probable each proposal was, all as rows. scale: of each coordinate."""
    both = rs.value_and_grad(log_density)
    first, slope = both(x, r)

    def leap(x, p, slope):
        p = p + 0.5 * step * scale * slope
        x = x + step * scale * p
        value, slope = both(x, r)
        return dict(x=x, p=p + 0.5 * step * scale * slope, slope=slope, value=value)

    def draw(i, x, value, slope):
        one, two, three = rs.random.split(rs.random.fold_in(key, i), 3)
        p = rs.random.normal(one, x.shape)
        n = leaps + rs.random.integers(three, -leaps // 4, leaps // 4 + 1)
        end = rs.loop(leap, init=dict(x=x, p=p, slope=slope), n_steps=n)
        change = end.value[-1] - value - 0.5 * (rs.sum(end.last.p**2) - rs.sum(p**2))
        change = rs.where(rs.isnan(change), -np.inf, change)  # a trajectory that left the numbers is not taken
        taken = rs.log(rs.random.uniform(two)) < change
        return dict(
            x=rs.where(taken, end.last.x, x),
            value=rs.where(taken, end.value[-1], value),
            slope=rs.where(taken, end.last.slope, slope),
            accepted=rs.minimum(1.0, rs.exp(change)),
        )

    out = rs.loop(draw, over=dict(i=rs.arange(draws)), init=dict(x=x, value=first, slope=slope))
    return out.x, out.accepted


def hmc(r, chains, draws, leaps, seed=0):
    """Draws (chain × draw × coordinate) and acceptance of chains, each of which tunes its step and scales on as many draws before."""
    run = rs.compile(chain)
    found, rates = [], []
    for number in range(chains):
        key = np.array([seed, number], np.uint64)
        x = 0.1 * np.random.default_rng([seed, number]).standard_normal(len(r) + 3)
        x[:3] += [np.log(r.var()), 1.8, -1.5]
        step, scale = 0.02, np.ones(len(x))
        for part in range(8):  # tunes the step, and from the half on the scales
            rows, accepted = run(x, key + np.array([1 + part, 0], np.uint64), r, step, scale, draws // 8, leaps)
            step *= np.exp(accepted.mean() - 0.8)
            x = rows[-1]
            if part == 3:
                scale = np.sqrt(0.1 * scale**2 + 0.9 * rows.var(axis=0))
                step = 0.1
        rows, accepted = run(x, key + np.array([100, 0], np.uint64), r, step, scale, draws, leaps)
        found.append(rows)
        rates.append(accepted.mean())
    return np.array(found), np.array(rates)


def nuts(r, chains, draws):
    """The same with nutpie."""
    import nutpie

    from rscan.interop.nutpie import model

    start = np.zeros(len(r) + 3)
    start[:3] = [np.log(r.var()), 1.8, -1.5]
    trace = nutpie.sample(model(log_density, start, args=(r,)), chains=chains, draws=draws, tune=draws, progress_bar=False)
    return trace.posterior["x"].to_numpy(), np.array([1.0])


def split_rhat(rows):
    """Gelman and Rubin's ratio over halves of chains; rows: chain × draw."""
    half = rows.shape[1] // 2
    parts = np.concatenate([rows[:, :half], rows[:, half : 2 * half]])
    within = parts.var(axis=1, ddof=1).mean()
    return np.sqrt((half - 1) / half + parts.mean(axis=1).var(ddof=1) / within)


def verify():
    """Raises where the gradient differs from finite differences."""
    rng = np.random.default_rng(0)
    x = np.concatenate([[0.3, 1.5, -1.0], rng.standard_normal(6)])
    rs.verify_grad(lambda x: log_density(x, rs.constant(rng.standard_normal(6))), [x])


def main(days=150, chains=2, draws=400, leaps=16, use_nutpie=False):
    verify()
    series = returns(days)
    r = series.to_numpy() - series.mean()
    x, accepted = nuts(r, chains, draws) if use_nutpie else hmc(r, chains, draws, leaps)
    h = rs.compile(rs.vmap(log_variance))(x.reshape(-1, days + 3)[:: max(1, chains * draws // 400)])
    volatility = np.exp(0.5 * h).mean(axis=0)
    garch = arch_model(series, mean="Constant", vol="GARCH").fit(disp="off").conditional_volatility.to_numpy()
    rhat = max(split_rhat(x[:, :, k]) for k in range(3))

    print(f"stochastic volatility, {days} days to {series.index[-1]:%Y-%m-%d}, {chains} chains of {draws} draws")
    print(f"acceptance {np.round(accepted, 2)}, largest split R-hat of mu, phi and sigma {rhat:.3f}")
    for name, values in zip(["mu", "phi", "sigma"], [x[..., 0], np.tanh(x[..., 1]), np.exp(x[..., 2])]):
        print(f"{name:8} {values.mean():8.3f} ± {values.std():.3f}")
    print(f"correlation with the volatility of GARCH(1,1) {np.corrcoef(volatility, garch)[0, 1]:.3f}")
    return dict(draws=x, accepted=accepted, rhat=rhat, volatility=volatility, garch=garch)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--days", type=int, default=400)
    options.add_argument("--draws", type=int, default=1000)
    options.add_argument("--chains", type=int, default=4)
    options.add_argument("--nutpie", action="store_true")
    given = options.parse_args()
    main(given.days, given.chains, given.draws, use_nutpie=given.nutpie)
