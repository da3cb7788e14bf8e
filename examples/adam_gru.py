"""Adam on a GRU, beside JAX: the yearly sunspot numbers, forecast from the 30 years before, written once for both.

What differs is the loop (`rs.loop` or `jax.lax.scan`) and who compiles. `python examples/adam_gru.py --jax` runs JAX; the losses that it
gave with jax 0.10 in float64 stand in `OF_JAX`, and rscan's must be these.

It needs: pip install statsmodels
"""

import argparse
import time

import numpy as np
import statsmodels.api as sm

import rscan as rs

HIDDEN, WINDOW, EVERY = 12, 30, 50
#: Losses before iterations 0, 50, 100, 150 and 200.
OF_JAX = [0.6630782601, 0.02984799639, 0.02138505009, 0.01747877366, 0.01503551913]


def data():
    """Windows (time × series) and the years after them, scaled."""
    y = sm.datasets.sunspots.load_pandas().data["SUNACTIVITY"].to_numpy() / 100
    return np.array([y[k : k + WINDOW] for k in range(len(y) - WINDOW)]).T, y[WINDOW:]


def initial(seed=0):
    rng = np.random.default_rng(seed)
    return {
        "x": rng.standard_normal((1, 3 * HIDDEN)),
        "h": rng.standard_normal((HIDDEN, 3 * HIDDEN)) / np.sqrt(HIDDEN),
        "bias": np.zeros(3 * HIDDEN),
        "out": rng.standard_normal(HIDDEN) / np.sqrt(HIDDEN),
    }


def gru(xp, sigmoid, p, x, h):
    """A step for all series; xp: rscan or jax.numpy."""
    of_x, of_h = x[:, None] @ p["x"] + p["bias"], h @ p["h"]
    z = sigmoid(of_x[:, :HIDDEN] + of_h[:, :HIDDEN])
    r = sigmoid(of_x[:, HIDDEN : 2 * HIDDEN] + of_h[:, HIDDEN : 2 * HIDDEN])
    n = xp.tanh(of_x[:, 2 * HIDDEN :] + r * of_h[:, 2 * HIDDEN :])
    return (1 - z) * n + z * h


def loss(p, x, y):
    h = rs.loop(lambda x, h: gru(rs, rs.sigmoid, p, x, h), over=x, init=rs.zeros((x.shape[1], HIDDEN))).last
    return rs.mean((h @ p["out"] - y) ** 2)


def train(iterations):
    """Losses before each iteration."""
    x, y = data()
    optimiser = rs.optim.adam(0.01)

    @rs.compile
    def update(p, state, x, y):
        value, slopes = rs.value_and_grad(loss)(p, x, y)
        return value, *optimiser.step(slopes, state, p)

    p = initial()
    state, losses = optimiser.init(p), []
    for _ in range(iterations):
        value, p, state = update(p, state, x, y)
        losses.append(float(value))
    return np.array(losses)


def train_in_jax(iterations):
    """The same, with Adam written out."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    x, y = data()

    def loss(p, x, y):
        start = jnp.zeros((x.shape[1], HIDDEN))
        h, _ = jax.lax.scan(lambda h, x: (gru(jnp, jax.nn.sigmoid, p, x, h), None), start, x)
        return jnp.mean((h @ p["out"] - y) ** 2)

    @jax.jit
    def update(p, m, v, i, x, y):
        value, g = jax.value_and_grad(loss)(p, x, y)
        m = {k: 0.9 * m[k] + 0.1 * g[k] for k in p}
        v = {k: 0.999 * v[k] + 0.001 * g[k] ** 2 for k in p}
        rate = lambda k: 0.01 * (m[k] / (1 - 0.9**i)) / (jnp.sqrt(v[k] / (1 - 0.999**i)) + 1e-8)
        return value, {k: p[k] - rate(k) for k in p}, m, v

    p = initial()
    m = v = {k: np.zeros_like(w) for k, w in p.items()}
    losses = []
    for i in range(iterations):
        value, p, m, v = update(p, m, v, i + 1.0, x, y)
        losses.append(float(value))
    return np.array(losses)


def verify():
    x, y = data()
    p = initial()
    rs.verify_grad(lambda *values: loss(dict(zip(p, values)), rs.constant(x[:4, :3]), rs.constant(y[:3])), list(p.values()))


def main(iterations=201, jax=False):
    verify()
    begun = time.perf_counter()
    losses = train_in_jax(iterations) if jax else train(iterations)
    took = time.perf_counter() - begun
    print(f"{'JAX' if jax else 'rscan'}: {iterations} iterations of Adam on a GRU of {HIDDEN}, {took:.2f} s with compiling")
    print("losses", [float(f"{value:.10g}") for value in losses[::EVERY]])
    return dict(losses=losses, jax=np.array(OF_JAX), every=EVERY)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--iterations", type=int, default=1001)
    options.add_argument("--jax", action="store_true")
    given = options.parse_args()
    main(given.iterations, given.jax)
