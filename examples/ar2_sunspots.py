"""AR(2) on the yearly sunspot numbers 1700-2008, by conditional maximum likelihood.

    y_t = c + a1 * y_{t-1} + a2 * y_{t-2} + e_t,   e_t ~ N(0, sigma**2)

One loop reads the series through the taps -2, -1 and 0. `statsmodels` (AutoReg) gives the reference. A second loop,
whose *output* has the taps -2 and -1, continues the series.

It needs: pip install statsmodels
"""

import numpy as np
import statsmodels.api as sm
from scipy.optimize import minimize
from statsmodels.tsa.ar_model import AutoReg

import rscan as rs


@rs.compile
def negative_log_likelihood(theta, y):
    c, a1, a2, log_sigma = (theta[k] for k in range(4))

    def residual(y):
        y_tm2, y_tm1, y_t = y
        return dict(e=y_t - c - a1 * y_tm1 - a2 * y_tm2)

    e = rs.loop(residual, over=dict(y=rs.taps(y, -2, -1, 0))).e
    return 0.5 * rs.sum(np.log(2 * np.pi) + 2 * log_sigma + (e / rs.exp(log_sigma)) ** 2)


@rs.compile
def forecast(theta, last_two):
    c, a1, a2 = (theta[k] for k in range(3))

    def step(y):
        y_tm2, y_tm1 = y
        return dict(y=c + a1 * y_tm1 + a2 * y_tm2)

    return rs.loop(step, init=dict(y=rs.taps(last_two, -2, -1)), n_steps=10).y


def fit(y):
    value_and_grad = rs.value_and_grad(negative_log_likelihood)
    scale = np.array([y.mean(), 1.0, 1.0, 1.0])

    def scaled(x):
        value, gradient = value_and_grad(scale * x, y)
        return float(value) / len(y), gradient * scale / len(y)

    start = np.array([0.5, 0.5, 0.0, np.log(y.std())])
    found = minimize(scaled, start, jac=True, method="BFGS", options=dict(gtol=1e-10, maxiter=500))
    return scale * found.x, found.nfev


def main():
    y = sm.datasets.sunspots.load_pandas().data["SUNACTIVITY"].to_numpy()
    theta, calls = fit(y)
    log_likelihood = -float(negative_log_likelihood(theta, y))
    reference = AutoReg(y, 2).fit()
    expected = np.append(reference.params, np.sqrt(reference.sigma2))
    ours = np.append(theta[:3], np.exp(theta[3]))
    future = forecast(theta, y[-2:])
    expected_future = reference.predict(start=len(y), end=len(y) + 9)

    print(f"AR(2), {len(y)} years, {calls} evaluations of likelihood and gradient")
    print(f"{'':14} {'rscan':>12} {'statsmodels':>12}")
    for name, a, b in zip(["c", "a1", "a2", "sigma"], ours, expected):
        print(f"{name:14} {a:12.6f} {b:12.6f}")
    print(f"log-likelihood {log_likelihood:12.4f} {reference.llf:12.4f}")
    print(f"2009           {future[0]:12.4f} {expected_future[0]:12.4f}")
    return dict(
        parameters=ours,
        statsmodels=expected,
        log_likelihood=log_likelihood,
        statsmodels_log_likelihood=reference.llf,
        forecast=future,
        statsmodels_forecast=expected_future,
    )


if __name__ == "__main__":
    main()
