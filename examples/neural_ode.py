"""A neural differential equation of the seasons in the tropical Pacific: sea-surface temperatures of El Niño's region 1950-2010.

    d(temperature, hidden)/dt = a small network of (temperature, hidden)

The mean year of 1950-1989 is a closed curve. The network learns to walk three times along it from its first month, and is then left
alone: the fourth year must be that year again. The gradient goes through the steps of Runge and Kutta's method; it is compared with
finite differences.

    python examples/neural_ode.py --iterations 6000

It needs: pip install statsmodels matplotlib
"""

import argparse
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import statsmodels.api as sm

import rscan as rs

matplotlib.use("Agg")
PLOT = Path(__file__).resolve().parent.parent / "out" / "neural_ode.png"
HIDDEN, STEPS = 16, 4


def seasons():
    """Mean and scale of all months; the mean year of the years before 1990 and that of the years from 1990 on, standardised."""
    table = sm.datasets.elnino.load_pandas().data.set_index("YEAR").dropna()
    before, after = table.loc[:1989].to_numpy(), table.loc[1990:].to_numpy()
    mean, scale = before.mean(), before.mean(axis=0).std()
    return mean, scale, (before.mean(axis=0) - mean) / scale, (after.mean(axis=0) - mean) / scale


def slope(y, t, p):
    return rs.tanh(y @ p["in"] + p["bias"]) @ p["out"]


def path(p, months):
    """Temperature and hidden state of each month."""
    return rs.ode.rk4(slope, p["start"], np.arange(months) / 12, p, steps=STEPS)


def loss(p, year):
    """Of three years, after each of which the hidden state, too, is where it began."""
    walked = path(p, 37)
    apart = walked[:36, 0] - rs.tile(year, 3)
    return rs.mean(apart**2) + rs.mean((walked[12::12] - walked[0]) ** 2)


def initial(year, hidden=HIDDEN, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "start": np.array([year[0], 0.0]),
        "in": rng.standard_normal((2, hidden)),
        "bias": 0.1 * rng.standard_normal(hidden),
        "out": rng.standard_normal((hidden, 2)) / np.sqrt(hidden) * 3,
    }


def fit(p, year, iterations, report=lambda text: None):
    optimiser = rs.optim.chain(rs.optim.clip_by_global_norm(1.0), rs.optim.adam(rs.optim.cosine_decay(0.03, iterations)))

    @rs.compile
    def update(p, state, year):
        value, slopes = rs.value_and_grad(loss)(p, year)
        return value, *optimiser.step(slopes, state, p)

    state, losses = optimiser.init(p), []
    for i in range(iterations):
        value, p, state = update(p, state, year)
        losses.append(float(value))
        if (i + 1) % (iterations // 10) == 0:
            report(f"iteration {i + 1:5}   loss {value:.4f}")
    return p, losses


def verify(year):
    p = initial(year, 3)
    rs.verify_grad(lambda *values: loss(dict(zip(p, values)), rs.constant(year)), list(p.values()))


def plot(walked, year, mean, scale):
    PLOT.parent.mkdir(exist_ok=True)
    fig, ax = plt.subplots(figsize=(8, 4))
    ax.plot(mean + scale * np.tile(year, len(walked) // 12), "o", color="0.6", label="mean year 1950-1989")
    ax.plot(mean + scale * walked, color="C0", label="neural ODE from January of the first year")
    ax.set(xlabel="months", ylabel="°C")
    ax.legend()
    fig.savefig(PLOT, dpi=100, bbox_inches="tight")
    plt.close(fig)


def main(iterations=1200, report=lambda text: None):
    mean, scale, year, later = seasons()
    verify(year)
    p, losses = fit(initial(year), year, iterations, report)
    walked = rs.compile(lambda p: path(p, 48))(p)[:, 0]
    errors = {
        "years learnt": np.sqrt(np.mean((walked[:36].reshape(3, 12) - year) ** 2)),
        "one more year": np.sqrt(np.mean((walked[36:].reshape(1, 12) - year) ** 2)),
        "the mean year from 1990 on": np.sqrt(np.mean((walked[:12] - later) ** 2)),
        "the two mean years differ by": np.sqrt(np.mean((year - later) ** 2)),
    }
    plot(walked, year, mean, scale)
    print(f"neural ODE, {iterations} iterations, loss {losses[0]:.3f} to {losses[-1]:.5f}; picture: {PLOT}")
    for what, error in errors.items():
        print(f"{what:30} {error * scale:6.3f} °C")
    return dict(losses=losses, errors=errors, plot=PLOT)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--iterations", type=int, default=5000)
    main(options.parse_args().iterations, report=lambda text: print(text, flush=True))
