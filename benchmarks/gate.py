"""What a step of a gated state costs: `python gate.py [--jax] [--markdown]`.

    g = sigmoid(w·h + b·x)        h, x, w, b: vectors of D elements, f64
    h = g·h + (1 − g)·x           every row of h is returned

Figures are nanoseconds per step, the best of many short rounds taken in turn; small D tells how long the chain of dependent operations is,
large D how many of them run at once, many steps what memory takes. Pin it to one core for figures to compare.
"""
import argparse, os, sys, time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_X64", "1")
import numpy as np
import rscan as rs

SIZES = [20, 100, 1000]
STEPS = [400, 2000]


def inputs(d, steps):
    random = np.random.default_rng(d + steps)
    return random.standard_normal((steps, d)), 0.5 * random.standard_normal((2, d)), np.zeros(d)


def reference(x, wb, h):
    rows = []
    for row in x:
        g = 1 / (1 + np.exp(-(wb[0] * h + wb[1] * row)))
        h = g * h + (1 - g) * row
        rows.append(h)
    return np.array(rows)


def compiled():
    x, w, b, start = rs.matrix("x"), rs.vector("w"), rs.vector("b"), rs.vector("start")

    def step(x, h, w, b):
        g = rs.sigmoid(w * h + b * x)
        return g * h + (1 - g) * x

    rows, _ = rs.scan(step, sequences=x, outputs_info=start, non_sequences=[w, b])
    return rs.function([x, w, b, start], rows)


def jitted():
    import jax

    def loop(x, w, b, start):
        def step(h, x):
            g = jax.nn.sigmoid(w * h + b * x)
            h = g * h + (1 - g) * x
            return h, h

        return jax.lax.scan(step, start, x)[1]

    compiled = jax.jit(loop)
    return lambda *args: compiled(*args).block_until_ready()


def timed(call, rounds):
    """The best of some rounds, in seconds."""
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def measure(calls, seconds):
    """The best of each call: they take turns, so that what else the machine does hits all alike."""
    for call in calls:
        call()
    best, end = [float("inf")] * len(calls), time.perf_counter() + seconds * len(calls)
    while time.perf_counter() < end:
        best = [min(b, timed(call, 5)) for b, call in zip(best, calls)]
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jax", action="store_true", help="beside JAX")
    parser.add_argument("--markdown", action="store_true", help="a table for docs/benchmarks.md")
    parser.add_argument("--seconds", type=float, default=2.0, help="per figure (default 2)")
    options = parser.parse_args()
    functions = [compiled()] + ([jitted()] if options.jax else [])
    names = ["rscan"] + (["jax"] if options.jax else [])
    if options.markdown:
        print("| D | steps | " + " | ".join(f"{n}, ns per step" for n in names) + " |\n|" + "---|" * (2 + len(names)))
    for steps in STEPS:
        for d in SIZES:
            x, wb, start = inputs(d, steps)
            for f in functions:
                np.testing.assert_allclose(np.asarray(f(x, *wb, start)), reference(x, wb, start), rtol=1e-9, atol=1e-12)
            figures = [s / steps * 1e9 for s in measure([lambda f=f: f(x, *wb, start) for f in functions], options.seconds)]
            if options.markdown:
                print(f"| {d} | {steps} | " + " | ".join(f"{f:.3g}" for f in figures) + " |", flush=True)
            else:
                print(f"D={d:<5} T={steps:<5}" + "".join(f"  {n} {f:8.1f} ns" for n, f in zip(names, figures)), flush=True)


if __name__ == "__main__":
    sys.exit(main())
