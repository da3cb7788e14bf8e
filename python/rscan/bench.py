"""`rscan bench`: a likelihood with its gradient, as an optimiser or a sampler calls it, here and in what else is installed.

The model is a GARCH(1,1) variance `h = omega + alpha·y² + beta·h` over 1,000 observations. What is timed: from the definition to the
first value and gradient, then a call. Every system's figures must agree with the others'.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

Both = Callable[[np.ndarray], tuple[float, np.ndarray]]

N = 1000
START = np.array([0.1, 0.1, 0.8])


def observations() -> np.ndarray:
    """The series, the same on every machine."""
    return np.sin(np.arange(N) * 1.7) * (1 + 0.5 * np.cos(np.arange(N) / 50))


def with_rscan(y: np.ndarray) -> Both:
    """The model in rscan."""
    import rscan as rs

    def nll(theta: Any, y: Any) -> Any:
        rows, _ = rs.scan(lambda y, h: theta[0] + theta[1] * y**2 + theta[2] * h, sequences=y, outputs_info=rs.constant(1.0))
        return rs.sum(rs.log(rows[:-1]) + y[1:] ** 2 / rows[:-1])

    both = rs.value_and_grad(nll)
    return lambda theta: both(theta, y)


def with_numpy(y: np.ndarray) -> Both:
    """A loop of Python, differentiated by hand."""
    return lambda theta: _by_hand(theta, y)


def with_numba(y: np.ndarray) -> Both:
    """The same loop, differentiated by hand, compiled by Numba."""
    import numba

    compiled = numba.njit(_by_hand)
    return lambda theta: compiled(theta, y)


def _by_hand(theta: Any, y: Any) -> Any:
    omega, alpha, beta = theta[0], theta[1], theta[2]
    h, value = 1.0, 0.0
    h_o, h_a, h_b = 0.0, 0.0, 0.0
    gradient = np.zeros(3)
    for t in range(y.shape[0] - 1):
        h_o, h_a, h_b = 1.0 + beta * h_o, y[t] ** 2 + beta * h_a, h + beta * h_b
        h = omega + alpha * y[t] ** 2 + beta * h
        slope = 1 / h - y[t + 1] ** 2 / h**2
        value += np.log(h) + y[t + 1] ** 2 / h
        gradient[0] += slope * h_o
        gradient[1] += slope * h_a
        gradient[2] += slope * h_b
    return value, gradient


def with_jax(y: np.ndarray) -> Both:
    """The model in JAX."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)

    def nll(theta: Any, y: Any) -> Any:
        def step(h: Any, y: Any) -> Any:
            h = theta[0] + theta[1] * y**2 + theta[2] * h
            return h, h

        rows = jax.lax.scan(step, 1.0, y)[1]
        return jnp.sum(jnp.log(rows[:-1]) + y[1:] ** 2 / rows[:-1])

    both = jax.jit(jax.value_and_grad(nll))

    def call(theta: np.ndarray) -> Any:
        value, gradient = both(theta, y)
        return float(value), np.asarray(gradient)

    return call


def with_pytensor(y: np.ndarray) -> Both:
    """The model in PyTensor."""
    pytensor: Any = importlib.import_module("pytensor")
    pt = pytensor.tensor
    theta, series = pt.dvector("theta"), pt.dvector("y")
    omega, alpha, beta = theta[0], theta[1], theta[2]
    step = lambda y, h, omega, alpha, beta: omega + alpha * y**2 + beta * h
    start = pt.as_tensor(np.float64(1.0))
    found = pytensor.scan(step, sequences=series, outputs_info=start, non_sequences=[omega, alpha, beta], return_updates=False)
    cost = pt.sum(pt.log(found[:-1]) + series[1:] ** 2 / found[:-1])
    both = pytensor.function([theta, series], [cost, pytensor.grad(cost, theta)])
    return lambda at: both(at, y)


SYSTEMS: dict[str, tuple[str, Callable[[np.ndarray], Both]]] = {
    "rscan": ("rscan", with_rscan),
    "jax": ("jax", with_jax),
    "pytensor": ("pytensor", with_pytensor),
    "numba, gradient by hand": ("numba", with_numba),
    "numpy, gradient by hand": ("numpy", with_numpy),
}


def bench(as_json: bool = False, only: str = "") -> int:
    """Times every system that is installed, and prints a table. 1 where figures disagree."""
    y = observations()
    rows: list[dict[str, Any]] = []
    for name, (module, make) in SYSTEMS.items():
        if only not in name:
            continue
        if importlib.util.find_spec(module) is None:
            rows.append({"system": name, "missing": True})
            continue
        __import__(module)
        rows.append({"system": name, **_timed(lambda make=make: make(y))})  # type: ignore[misc]
    expected, slope = with_numpy(y)(START)
    good = all(r.get("missing") or (np.isclose(r["value"], expected) and np.allclose(r["gradient"], slope)) for r in rows)
    if as_json:
        print(json.dumps({"model": "garch", "observations": N, "agree": good, "systems": rows}, indent=2))
    else:
        _print(rows, good)
    return 0 if good else 1


def _timed(make: Callable[[], Both]) -> dict[str, Any]:
    start = time.perf_counter()
    both = make()
    value, gradient = both(START)
    ready = time.perf_counter() - start
    for _ in range(3):
        both(START)
    best, spent = np.inf, 0.0
    while spent < 0.5:
        begin = time.perf_counter()
        both(START)
        taken = time.perf_counter() - begin
        best, spent = min(best, taken), spent + taken
    return {"ready_ms": 1e3 * ready, "call_us": 1e6 * best, "value": float(value), "gradient": np.asarray(gradient).tolist()}


def _print(rows: list[dict[str, Any]], good: bool) -> None:
    print(f"GARCH(1,1), {N:,} observations: value and gradient")
    print(f"{'':<25} {'ready':>12} {'a call':>12}")
    for row in rows:
        if row.get("missing"):
            print(f"{row['system']:<25} {'not installed':>25}")
        else:
            print(f"{row['system']:<25} {row['ready_ms']:>9,.0f} ms {row['call_us']:>9,.1f} us")
    print("all agree" if good else "THE FIGURES DISAGREE")
