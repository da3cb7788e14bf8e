"""Lotka and Volterra's equations, fitted to the furs of hares and lynxes that the Hudson Bay Company traded in 1900-1920.

    dh/dt = (a - b l) h,   dl/dt = (-c + d h) l,   log of what was counted ~ N(log of the solution, sigma²)

Tsitouras' method with steps of its own choice solves them; the gradient goes through its steps. The maximum is compared with what
SciPy finds without gradients on the solution of its own LSODA, and with the posterior means of the case study of the Stan project
(a 0.55, b 0.028, c 0.80, d 0.024).

    python examples/lotka_volterra.py --jax      # the solution beside jax.experimental.ode, where JAX is installed

It needs: pip install scipy
"""

import argparse

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares

import rscan as rs
from rscan.interop.scipy import residuals

#: Thousands of furs a year, 1900-1920 (E. P. Odum, Fundamentals of Ecology, 1953).
HARES = np.array([
    30.0, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22.0, 25.4, 27.1, 40.3, 57.0, 76.6, 52.3, 19.5, 11.2, 7.6, 14.6, 16.2, 24.7,
])  # fmt: skip
LYNXES = np.array([
    4.0, 6.1, 9.8, 35.2, 59.4, 41.7, 19.0, 13.0, 8.3, 9.1, 7.4, 8.0, 12.3, 19.5, 45.7, 51.1, 29.7, 15.8, 9.7, 10.1, 8.6,
])  # fmt: skip
YEARS = np.arange(21.0)
COUNTED = np.log(np.stack([HARES, LYNXES], axis=1))
NAMES = ["a", "b", "c", "d", "hares in 1900", "lynxes in 1900"]
#: Where fits begin, as logarithms.
START = np.log([0.6, 0.03, 0.9, 0.03, 30.0, 4.0])


def slope(y, t, a, b, c, d):
    hares, lynxes = y
    return (a - b * lynxes) * hares, (-c + d * hares) * lynxes


def solution(logs):
    """Hares and lynxes of each year, given the logarithms of the parameters."""
    p = rs.exp(logs)
    return rs.stack(rs.ode.tsit5(slope, (p[4], p[5]), YEARS, *(p[k] for k in range(4)), rtol=1e-8, atol=1e-8), axis=1)


def apart(logs, counted):
    return rs.ravel(rs.log(solution(logs)) - counted)


def of_scipy(logs):
    """The same by LSODA."""
    p = np.exp(logs)
    run = solve_ivp(lambda t, y: slope(y, t, *p[:4]), (0, 20), p[4:], "LSODA", YEARS, rtol=1e-9, atol=1e-9)
    return run.y.T


def of_jax(logs):
    import jax

    jax.config.update("jax_enable_x64", True)
    from jax.experimental.ode import odeint

    p = np.exp(logs)
    return np.stack(odeint(slope, (p[4], p[5]), YEARS, *p[:4], rtol=1e-9, atol=1e-9), axis=1)


def main(jax=False):
    rs.verify_grad(lambda logs: rs.sum(apart(logs, rs.constant(COUNTED)) ** 2), [START])
    values, jac = residuals(apart, START, (COUNTED,))
    found = least_squares(values, START, jac=jac, xtol=1e-12, ftol=1e-12, gtol=1e-12)
    without = least_squares(lambda logs: (np.log(of_scipy(logs)) - COUNTED).ravel(), START, xtol=1e-10, ftol=1e-10)
    ours, theirs = np.exp(found.x), np.exp(without.x)
    sigma = np.sqrt(np.mean(found.fun**2))
    # Of one solution: by its own, each solver's minimum has another value.
    costs = {"rscan": found.cost, "SciPy": 0.5 * np.sum(values(without.x) ** 2)}
    solved = {"SciPy": np.abs(rs.compile(solution)(START) / of_scipy(START) - 1).max()}
    if jax:
        solved["JAX"] = np.abs(rs.compile(solution)(START) / of_jax(START) - 1).max()

    print(f"Lotka and Volterra, 21 years, {found.nfev} evaluations ({without.nfev} and differences without gradients)")
    print(f"{'':14} {'rscan':>10} {'SciPy':>10}")
    for name, a, b in zip(NAMES, ours, theirs):
        print(f"{name:14} {a:10.5f} {b:10.5f}")
    print(f"sigma {sigma:.3f}; solutions differ by " + ", ".join(f"{error:.1e} from {name}'s" for name, error in solved.items()))
    return dict(ours=ours, scipy=theirs, sigma=sigma, solved=solved, costs=costs)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--jax", action="store_true")
    main(options.parse_args().jax)
