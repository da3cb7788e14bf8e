"""What a step costs where products are computed for blocks of steps: `python blocks.py [-t 100 1000 10000 100000]`.

    ahead       h = tanh(x·w + h / 2)                 x: rows of K elements, w: K by N, f64; the last h is returned
    gradient    the gradient of Σ h² by w             the same loop
    behind      h = tanh(x + h / 2), y = tanh(h·v)    x: rows of K elements, v: K by N; all y are returned

The products x·w, the sum of outer products that the gradient is, and the products h·v do not feed the next step: they are computed for many
steps at once, a block at a time where the loop is long. Figures are nanoseconds per step, the best of several calls; where rows of all steps
go through main memory, long loops cost more per step than short ones. Pin it to one core.
"""

import argparse
import time

import numpy as np
import rscan as rs

EXTENTS = {"ahead": [(8, 64), (64, 64), (64, 256)], "gradient": [(64, 1), (8, 64), (64, 64)], "behind": [(64, 1), (64, 8), (64, 64)]}


def compiled(kind, k, n):
    x, w = rs.matrix("x"), rs.matrix("w")
    if kind == "behind":
        step = lambda x, h, w: ((h := rs.tanh(x + 0.5 * h)), rs.tanh(h @ w))
        (_, rows), _ = rs.scan(step, sequences=x, outputs_info=[rs.zeros(k), None], non_sequences=w)
        return rs.function([x, w], rows)
    rows, _ = rs.scan(lambda x, h, w: rs.tanh(x @ w + 0.5 * h), sequences=x, outputs_info=rs.zeros(n), non_sequences=w)
    return rs.function([x, w], rows[-1] if kind == "ahead" else rs.grad((rows**2).sum(), w))


def reference(kind, x, w):
    given = x if kind == "behind" else x @ w
    rows = np.zeros((len(x) + 1, given.shape[1]))
    for t, row in enumerate(given):
        rows[t + 1] = np.tanh(row + 0.5 * rows[t])
    if kind != "gradient":
        return rows[-1] if kind == "ahead" else np.tanh(rows[1:] @ w)
    ct, total = np.zeros(given.shape[1]), np.zeros_like(w)
    for t in reversed(range(len(x))):
        ct = (2 * rows[t + 1] + 0.5 * ct) * (1 - rows[t + 1] ** 2)
        total += np.outer(x[t], ct)
    return total


def timed(f, kind, *args, calls=7):
    np.testing.assert_allclose(f(*args), reference(kind, *args), rtol=1e-9, atol=1e-9)
    best = float("inf")
    for _ in range(calls):
        start = time.perf_counter()
        f(*args)
        best = min(best, time.perf_counter() - start)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-t", "--steps", type=int, nargs="+", default=[100, 1000, 10_000, 100_000])
    steps = parser.parse_args().steps
    print("| | K | N | " + " | ".join(f"T = {t:,}" for t in steps) + " |\n|" + "---|" * (len(steps) + 3))
    random = np.random.default_rng(0)
    for kind, extents in EXTENTS.items():
        for k, n in extents:
            f, w = compiled(kind, k, n), random.standard_normal((k, n)) / k
            cells = [timed(f, kind, random.standard_normal((t, k)), w) / t * 1e9 for t in steps]
            print(f"| {kind} | {k} | {n} | " + " | ".join(f"{c:.0f} ns" for c in cells) + " |", flush=True)


if __name__ == "__main__":
    main()
