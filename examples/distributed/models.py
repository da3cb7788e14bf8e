"""What is sent to workers: a GARCH fit of one block of series, and the likelihood of one part of the rows of a data set."""

import numpy as np
from scipy.optimize import minimize

import rscan as rs


def garch_nll(theta, returns):
    """Negative log-likelihood of a GARCH(1,1) a day; theta: logarithms of omega / variance, alpha and beta, before they are squeezed."""
    variance = rs.mean(returns**2)
    weights = rs.softmax(rs.concatenate([theta[1:], [0.0]]))  # alpha + beta < 1
    omega, alpha, beta = variance * rs.exp(theta[0]), weights[0], weights[1]
    s = rs.loop(lambda r, s: omega + alpha * r**2 + beta * s, over=returns[:-1], init=variance)
    s = rs.concatenate([variance[None], s])
    return 0.5 * rs.mean(rs.log(s) + returns**2 / s)


garch = rs.value_and_grad(garch_nll)


def fit_block(block):
    """Parameters and log-likelihood of each series (a row) of a block."""
    out = []
    for returns in block:
        found = minimize(garch, np.array([-3.0, 0.5, 2.5]), (returns,), "L-BFGS-B", jac=True)
        weights = np.exp(np.append(found.x[1:], 0.0))
        out.append([returns.var() * np.exp(found.x[0]), *(weights / weights.sum())[:2], -found.fun * len(returns)])
    return np.array(out)


def simulated_returns(series, days, seed=0):
    """A panel: series × days, each series with parameters of its own."""
    rng = np.random.default_rng(seed)
    alpha, beta = rng.uniform(0.05, 0.15, series), rng.uniform(0.75, 0.83, series)
    noise = rng.standard_normal((days, series))
    s, r, out = np.ones(series), np.zeros(series), np.empty((days, series))
    for t in range(days):
        s = (1 - alpha - beta) + alpha * r**2 + beta * s
        r = out[t] = np.sqrt(s) * noise[t]
    return np.ascontiguousarray(out.T)


def event_nll(beta, part):
    """Negative log-likelihood of counts whose rates rise and fall with what happened to the same unit before.

    part: covariates (time × units × k) and counts (time × units).
    """
    x, y = part["x"], part["y"]

    def step(x, y, memory):
        log_rate = x @ beta[:-2] + beta[-2] * memory
        decay = rs.sigmoid(beta[-1])
        return {"memory": decay * memory + (1 - decay) * rs.log1p(y), "log_rate": log_rate}

    out = rs.loop(step, over={"x": x, "y": y}, init={"memory": rs.zeros(y.shape[1])})
    return rs.sum(rs.exp(out.log_rate) - y * out.log_rate)


partial = rs.value_and_grad(event_nll)


def of_part(beta, part):
    """Value and gradient of one part."""
    value, slope = partial(beta, part)
    return float(value), slope


def of_parts(beta, parts):
    """Values and gradients of several parts, in one message."""
    return [of_part(beta, part) for part in parts]


def simulated_events(parts, time=60, units=200, k=3, seed=0):
    """Parts of a data set, each with units of its own."""
    truth = np.append(0.3 * np.ones(k), [0.4, 0.5])
    out = []
    for number in range(parts):
        rng = np.random.default_rng([seed, number])
        x = rng.standard_normal((time, units, k)) * 0.5
        memory, y = np.zeros(units), np.empty((time, units))
        decay = 1 / (1 + np.exp(-truth[-1]))
        for t in range(time):
            y[t] = rng.poisson(np.exp(x[t] @ truth[:-2] + truth[-2] * memory))
            memory = decay * memory + (1 - decay) * np.log1p(y[t])
        out.append({"x": x, "y": y})
    return out, truth
