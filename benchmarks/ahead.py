"""What a step costs whose product is computed ahead: `python ahead.py [-t 100 1000 10000 100000]`.

    h = tanh(x·w + h / 2)        x: rows of K elements, w: K by N, f64; the last h is returned

The products do not depend on h: they are computed for many steps at once. Figures are nanoseconds per step, the best of several calls;
where products of all steps go through main memory, long loops cost more per step than short ones. Pin it to one core.
"""

import argparse
import time

import numpy as np
import rscan as rs

EXTENTS = [(8, 64), (64, 64), (64, 256)]


def compiled(n):
    x, w = rs.matrix("x"), rs.matrix("w")
    rows, _ = rs.scan(lambda x, h, w: rs.tanh(x @ w + 0.5 * h), sequences=x, outputs_info=rs.zeros(n), non_sequences=w)
    return rs.function([x, w], rows[-1])


def reference(x, w):
    h = np.zeros(w.shape[1])
    for row in x:
        h = np.tanh(row @ w + 0.5 * h)
    return h


def timed(f, *args, calls=7):
    np.testing.assert_allclose(f(*args), reference(*args), rtol=1e-9, atol=1e-12)
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
    print("| K | N | " + " | ".join(f"T = {t:,}" for t in steps) + " |\n|" + "---|" * (len(steps) + 2))
    random = np.random.default_rng(0)
    for k, n in EXTENTS:
        f, w = compiled(n), random.standard_normal((k, n)) / k
        cells = [timed(f, random.standard_normal((t, k)), w) / t * 1e9 for t in steps]
        print(f"| {k} | {n} | " + " | ".join(f"{c:.0f} ns" for c in cells) + " |", flush=True)


if __name__ == "__main__":
    main()
