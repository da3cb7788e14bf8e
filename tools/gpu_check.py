"""Compares a device with the processor, and prints times: `python tools/gpu_check.py cuda:0`, in less than ten minutes.

Random kernels against the interpreter of kernels, random loops against NumPy and loops against the processor, bit by bit; then how long
loops take on either. It ends with status 1 where anything differs. For a machine that has the device: rscan, NumPy and a checkout's tests.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import rscan as rs
from rscan import _native

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))


def wide(dtype: str) -> tuple[list[Any], list[Any], list[Any]]:
    """A gate over rows, elementwise, with its gradient."""
    x, a = rs.tensor(dtype, [None, None], "x"), rs.tensor(dtype, [None], "a")
    out = rs.loop(lambda x, h: rs.tanh(h * a + x) * rs.sigmoid(x), over=x, init=rs.zeros_like(a))
    return [x, a], [out[-1], rs.grad(rs.sum(out[-1]), a)], [(1000, 65536), (65536,)]


def network(dtype: str) -> tuple[list[Any], list[Any], list[Any]]:
    """Elman's network with its gradient."""
    x, w, u = rs.tensor(dtype, [None, None, None], "x"), rs.tensor(dtype, [None, None], "w"), rs.tensor(dtype, [None, None], "u")
    zero = rs.zeros_like(x[0] @ w)
    out = rs.loop(lambda x, h: rs.tanh(x @ w + h @ u), over=x, init=zero)
    return [x, w, u], [out[-1], *rs.grad(rs.sum(out[-1]), [w, u])], [(64, 32, 64), (64, 128), (128, 128)]


def many_steps(dtype: str) -> tuple[list[Any], list[Any], list[Any]]:
    """A recurrence of a few lanes and many steps."""
    a = rs.tensor(dtype, [None], "a")
    out = rs.loop(lambda h: rs.sqrt(h * a + 1.0), init=a, n_steps=100_000)
    return [a], [out[-1]], [(256,)]


def timed(f: Any, args: list[np.ndarray]) -> tuple[float, list[np.ndarray]]:
    """The best time of three calls behind a first one, in milliseconds, and the results."""
    found, best = f(*args), float("inf")
    for _ in range(3):
        start = time.perf_counter()
        found = f(*args)
        best = min(best, 1000 * (time.perf_counter() - start))
    return best, found


def loops(device: str, small: bool) -> int:
    """Loops on the device and on the processor; how many differ."""
    differ = 0
    for make in (wide, network, many_steps):
        for dtype in ("float32", "float64"):
            inputs, outputs, shapes = make(dtype)
            rng = np.random.default_rng(0)
            shapes = [tuple(max(2, n // 16) if small else n for n in shape) for shape in shapes]
            args = [(rng.uniform(0.1, 0.9, shape) / np.sqrt(shape[-1])).astype(dtype) for shape in shapes]
            there, here = rs.function(inputs, outputs, device=device), rs.function(inputs, outputs)
            (fast, found), (slow, law) = timed(there, args), timed(here, args)
            same = all(np.array_equal(one, other) for one, other in zip(found, law, strict=True))
            differ += not same
            print(f"{make.__name__:<11} {dtype}  {device} {fast:9.2f} ms  cpu {slow:9.2f} ms  {'same bits' if same else 'DIFFERENT'}")
            if make is network:
                print(f"            {there.explain().loops[0].variants[0].engine}")
    return differ


def programs(device: str, seconds: float) -> int:
    """Random loops and their gradients against NumPy; how many fail."""
    import test_random_programs as random

    end, failed, seed = time.monotonic() + seconds, 0, 0
    with rs.config.override(device=device):
        while time.monotonic() < end:
            try:
                random.check(seed)
            except Exception as error:
                failed += 1
                print(f"program {seed}: {type(error).__name__}: {str(error).splitlines()[:1]}")
            seed += 1
    print(f"{seed} random programs, {failed} fail")
    return failed


def main() -> int:
    """Runs everything; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("device", nargs="?", default="cuda:0")
    parser.add_argument("--kernels", type=int, default=2000, help="how many random kernels")
    parser.add_argument("--seconds", type=float, default=120, help="how long random programs run")
    parser.add_argument("--small", action="store_true", help="loops of small extents, for drivers that are slow")
    options = parser.parse_args()
    print(*rs.devices(), sep="\n")
    start = time.monotonic()
    faults = _native.check_device(options.device, max(1, options.kernels // 100))
    print(f"random kernels in {time.monotonic() - start:.0f} s, {len(faults)} differ", *faults[:3], sep="\n")
    failed = len(faults) + loops(options.device, options.small) + programs(options.device, options.seconds)
    print("everything agrees" if failed == 0 else f"{failed} FAIL")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
