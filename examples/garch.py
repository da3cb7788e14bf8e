"""GARCH(1,1) with constant mean, by maximum likelihood, on daily S&P 500 returns 1999-2018.

    r_t = mu + e_t,   e_t ~ N(0, s_t),   s_t = omega + alpha * e_{t-1}**2 + beta * s_{t-1}

The likelihood is one loop; its gradient comes from rscan, the optimiser from SciPy. `arch` fits the same model to the
same series: both must find the same parameters.

It needs: pip install arch matplotlib
"""

from pathlib import Path

import arch.data.sp500
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from arch import arch_model
from scipy.optimize import minimize

import rscan as rs

matplotlib.use("Agg")
NAMES = ["mu", "omega", "alpha", "beta"]
PLOT = Path(__file__).resolve().parent.parent / "out" / "garch_volatility.png"


def variances(theta, returns, s0):
    """Residuals and conditional variances, one of each per day."""
    mu, omega, alpha, beta = (theta[k] for k in range(4))

    def step(r, e, s):
        return dict(e=r - mu, s=omega + alpha * e**2 + beta * s)

    return rs.loop(step, over=dict(r=returns), init=dict(e=rs.sqrt(s0), s=s0))


@rs.compile
def negative_log_likelihood(theta, returns, s0):
    out = variances(theta, returns, s0)
    return 0.5 * rs.sum(np.log(2 * np.pi) + rs.log(out.s) + out.e**2 / out.s)


@rs.compile
def conditional_variance(theta, returns, s0):
    return variances(theta, returns, s0).s


def backcast(returns):
    """The variance before the first day, as `arch` sets it: a weighted mean of the first 75 squared residuals."""
    e = returns[:75] - returns.mean()
    weights = 0.94 ** np.arange(len(e))
    return weights @ e**2 / weights.sum()


def fit(returns, s0):
    """Maximum likelihood; the parameters are scaled by their starting values, so that one step length suits all."""
    start = np.array([returns.mean(), 0.05 * returns.var(), 0.1, 0.85])
    value_and_grad = rs.value_and_grad(negative_log_likelihood)

    def scaled(x):
        value, gradient = value_and_grad(start * x, returns, s0)
        return float(value) / len(returns), gradient * start / len(returns)

    bounds = [(None, None), (1e-8, None), (0.0, None), (0.0, None)]
    options = dict(ftol=1e-15, gtol=1e-10, maxiter=300)
    found = minimize(scaled, np.ones(4), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return start * found.x, found.nfev


def plot(dates, returns, variance):
    PLOT.parent.mkdir(exist_ok=True)
    fig, ax = plt.subplots(figsize=(10, 4))
    ax.plot(dates, np.abs(returns), color="0.8", linewidth=0.5, label="|return|")
    ax.plot(dates, np.sqrt(variance), color="C0", linewidth=1, label="conditional volatility")
    ax.set(title="S&P 500, GARCH(1,1)", ylabel="percent a day")
    ax.legend()
    fig.savefig(PLOT, dpi=100, bbox_inches="tight")
    plt.close(fig)


def main():
    prices: pd.Series = arch.data.sp500.load()["Adj Close"]
    series = 100 * prices.pct_change().dropna()
    returns = series.to_numpy()
    s0 = backcast(returns)
    theta, calls = fit(returns, s0)
    log_likelihood = -float(negative_log_likelihood(theta, returns, s0))
    reference = arch_model(series, mean="Constant", vol="GARCH", p=1, q=1).fit(disp="off", tol=1e-12)
    plot(series.index, returns, conditional_variance(theta, returns, s0))

    print(f"GARCH(1,1), {len(returns)} returns, {calls} evaluations of likelihood and gradient")
    print(f"{'':14} {'rscan':>12} {'arch':>12}")
    for name, ours, theirs in zip(NAMES, theta, reference.params):
        print(f"{name:14} {ours:12.6f} {theirs:12.6f}")
    print(f"log-likelihood {log_likelihood:12.4f} {reference.loglikelihood:12.4f}")
    print(f"plot: {PLOT.relative_to(PLOT.parent.parent)}")
    return dict(
        theta=theta,
        arch=reference.params.to_numpy(),
        log_likelihood=log_likelihood,
        arch_log_likelihood=reference.loglikelihood,
        plot=PLOT,
    )


if __name__ == "__main__":
    main()
