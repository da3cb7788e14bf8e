"""Loops with a buffer in the carry: how time grows with the number of steps.

    python slopes.py [-t 1000 10000 100000 1000000]

Each program keeps a buffer of as many elements as the loop has steps and touches a few of them a step. Where the buffer is
copied each step, time grows with the square of the steps; the slope of log(time) against log(steps) then nears 2. The time of a
call of ten steps is taken off: a call takes a few microseconds, and so do a thousand steps. Prints times, the slope, and what the
loops copy per step (`f.explain()`); fails where a slope leaves [0.95, 1.1] or a step copies the buffer.
"""

import argparse
import sys
import time

import numpy as np

import rscan as rs

LEAST, MOST = 0.95, 1.1


def write(a, xs, n):
    """buf[i] = h², where h = a·h + x."""

    def step(i, x, h, buf):
        h = a * h + x
        return h, buf.at[i].set(h * h)

    (_, buf), _ = rs.scan(step, sequences=[rs.arange(n), xs], outputs_info=[0.0, rs.zeros(n)])
    return buf[-1]


def add(a, xs, n):
    """buf[j] += a·x, where j walks through the buffer by 7."""
    buf, _ = rs.scan(
        lambda i, x, buf: buf.at[(i * 7) % n].add(a * x), sequences=[rs.arange(n), xs], outputs_info=[rs.zeros(n)]
    )
    return buf[-1]


def recall(a, xs, n):
    """buf[i] = a·buf[i − 3] + x: what was written is read again."""
    buf, _ = rs.scan(
        lambda i, x, buf: buf.at[i].set(a * buf[rs.maximum(i - 3, 0)] + x),
        sequences=[rs.arange(n), xs],
        outputs_info=[rs.zeros(n)],
    )
    return buf[-1]


def functions():
    for program in (write, add, recall):
        a, xs = rs.dscalar("a"), rs.dvector("xs")
        last = program(a, xs, xs.shape[0])
        yield program.__name__, "forward", rs.function([a, xs], last)
        yield program.__name__, "gradient", rs.function([a, xs], rs.grad((last * last).sum(), [a, xs]))


def seconds(f, steps):
    """The least of several calls, after half a second in which everything is compiled."""
    xs = np.random.default_rng(0).normal(size=steps)
    best, began = np.inf, time.perf_counter()
    while (at := time.perf_counter() - began) < 1.5 or best == np.inf:
        start = time.perf_counter()
        f(0.5, xs)
        best = min(best, time.perf_counter() - start) if at > 0.5 else best
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-t", "--steps", type=int, nargs="+", default=[10**3, 10**4, 10**5, 10**6])
    steps = parser.parse_args().steps
    print("| program | | " + " | ".join(f"T = {t:,}" for t in steps) + " | slope | copies a step |")
    print("|---|---|" + "---|" * (len(steps) + 2))
    failed = False
    for name, what, f in functions():
        call = seconds(f, 10)
        times = [seconds(f, t) - call for t in steps]
        slope = np.polyfit(np.log(steps), np.log(times), 1)[0]
        copies = sum(size for loop in f.explain().loops for variant in loop.variants[-1:] for _, size in variant.copies)
        failed |= not LEAST <= slope <= MOST or copies >= 8 * min(steps)
        cells = " | ".join(f"{1e9 * t / n:.0f} ns" for t, n in zip(times, steps, strict=True))
        print(f"| {name} | {what} | {cells} | {slope:.3f} | {copies} bytes |", flush=True)
    print(f"slopes {'leave' if failed else 'are all in'} [{LEAST}, {MOST}]" + (", or a buffer is copied" if failed else ""))
    sys.exit(failed)


if __name__ == "__main__":
    main()
