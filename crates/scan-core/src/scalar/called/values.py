"""Writes values.txt: values of the functions that kernels call, from mpmath at 60 digits (`python values.py`).

A line has the name, the arguments and the value, as Python writes floats."""

import pathlib
import random

import mpmath as m

m.mp.dps = 60
random.seed(0)
COUNT = 200

ONE = {
    "asin": (m.asin, -1, 1),
    "acos": (m.acos, -1, 1),
    "atan": (m.atan, -6, 6),
    "sinh": (m.sinh, -700, 700),
    "cosh": (m.cosh, -700, 700),
    "erf": (m.erf, -6, 6),
    "erfc": (m.erfc, -6, 27),
    "erfinv": (m.erfinv, -1, 1),
    "ndtri": (lambda p: m.sqrt(2) * m.erfinv(2 * p - 1), 0, 1),
    "gammaln": (m.loggamma, 0, 30),
    "digamma": (m.digamma, 0, 30),
    "trigamma": (lambda x: m.psi(1, x), 0, 30),
}
TWO = {"pow": lambda x, y: m.exp(y * m.log(x)), "hypot": m.hypot, "atan2": m.atan2}


def argument(k, low, high):
    """Over the range, near 0, near 1 and near 2."""
    kinds = [
        lambda: random.uniform(low, high),
        lambda: random.uniform(max(low, -3), min(high, 3)),
        lambda: random.choice([1, -1 if low < 0 else 1]) * 2.0 ** random.uniform(-40, 0),
        lambda: random.choice([1.0, 1.0, 2.0, 1.4616]) + random.choice([1, -1]) * 2.0 ** random.uniform(-40, -2),
    ]
    x = kinds[k % len(kinds)]()
    return x if low < x < high else argument(0, low, high)


def pair(name, k):
    if name != "pow":
        return [random.choice([1, -1]) * 2.0 ** random.uniform(-20 * (k % 3), 20 * (k % 3)) for _ in range(2)]
    x = [random.uniform(0, 5), 2.0 ** random.uniform(-300, 300), 1 + random.uniform(-0.01, 0.01)][k % 3]
    return [x, random.uniform(-1, 1) * float(690 / max(abs(m.log(x)), m.mpf("0.02")))]


lines = []
for name, (f, low, high) in ONE.items():
    for k in range(COUNT):
        x = argument(k, low, high)
        lines.append(f"{name} {x!r} {float(m.re(f(m.mpf(x))))!r}")
for name, f in TWO.items():
    for k in range(COUNT):
        x = pair(name, k)
        lines.append(f"{name} {x[0]!r} {x[1]!r} {float(f(*map(m.mpf, x)))!r}")
(pathlib.Path(__file__).parent / "values.txt").write_text("\n".join(lines) + "\n")
