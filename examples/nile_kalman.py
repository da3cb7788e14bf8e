"""Local level model on the annual flow of the Nile at Aswan 1871-1970, by a Kalman filter with diffuse start.

    y_t = level_t + e_t,   e_t ~ N(0, H);      level_{t+1} = level_t + w_t,   w_t ~ N(0, Q)

Durbin and Koopman (Time Series Analysis by State Space Methods, 2nd ed., section 2.10.3) report H = 15099, Q = 1469.1.
The diffuse first observation only starts the filter: level_2 ~ N(y_1, H + Q).

It needs: pip install statsmodels
"""

import numpy as np
import statsmodels.api as sm
from scipy.optimize import minimize

import rscan as rs

PUBLISHED = np.array([15099.0, 1469.1])


def kalman_filter(log_variances, y):
    """Prediction errors v, their variances F and filtered levels, from the second observation on."""
    H, Q = rs.exp(log_variances[0]), rs.exp(log_variances[1])

    def step(y, level, P):
        v, F = y - level, P + H
        gain = P / F
        return dict(level=level + gain * v, P=P * (1 - gain) + Q, v=v, F=F)

    return rs.loop(step, over=dict(y=y[1:]), init=dict(level=y[0], P=H + Q))


@rs.compile
def negative_log_likelihood(log_variances, y):
    out = kalman_filter(log_variances, y)
    return 0.5 * rs.sum(np.log(2 * np.pi) + rs.log(out.F) + out.v**2 / out.F)


@rs.compile
def filtered_level(log_variances, y):
    return kalman_filter(log_variances, y).level


def fit(y):
    value_and_grad = rs.value_and_grad(negative_log_likelihood)

    def objective(x):
        value, gradient = value_and_grad(x, y)
        return float(value), gradient

    found = minimize(objective, np.log([y.var() / 2, y.var() / 2]), jac=True, method="BFGS", options=dict(gtol=1e-8))
    return found.x, found.nfev


def main():
    y = sm.datasets.nile.load_pandas().data["volume"].to_numpy()
    x, calls = fit(y)
    variances = np.exp(x)
    log_likelihood = -float(negative_log_likelihood(x, y))
    model = sm.tsa.UnobservedComponents(y, "local level", use_exact_diffuse=True)
    reference = model.smooth(variances)
    level = filtered_level(x, y)
    # the reference counts a constant for the diffuse observation
    reference_log_likelihood = reference.llf + 0.5 * np.log(2 * np.pi)

    print(f"Nile, local level, {len(y)} years, {calls} evaluations of likelihood and gradient")
    print(f"{'':14} {'rscan':>12} {'published':>12}")
    for name, ours, theirs in zip(["H", "Q"], variances, PUBLISHED):
        print(f"{name:14} {ours:12.1f} {theirs:12.1f}")
    print(f"{'':14} {'rscan':>12} {'statsmodels':>12}   at the same variances")
    print(f"log-likelihood {log_likelihood:12.4f} {reference_log_likelihood:12.4f}")
    print(f"level of 1970  {level[-1]:12.4f} {reference.filtered_state[0, -1]:12.4f}")
    return dict(
        variances=variances,
        published=PUBLISHED,
        log_likelihood=log_likelihood,
        statsmodels_log_likelihood=reference_log_likelihood,
        level=level,
        statsmodels_level=reference.filtered_state[0, 1:],
    )


if __name__ == "__main__":
    main()
