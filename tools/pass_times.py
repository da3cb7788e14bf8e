"""How long the passes take: a chain of nodes, short and ten times as long, and functions of the benchmark, with their gradients.

`.venv/bin/python tools/pass_times.py` prints milliseconds. The times of the passes are differences between a function with all passes
and one with none, on the evaluator, where nothing else is compiled. Each of the two is the least of many rounds, in which all that is
compared takes turns: a pause of the machine falls into some rounds of all of them, not into all rounds of one.
"""

import gc
import importlib
import os
import sys
import time
from pathlib import Path

os.environ["RSCAN_ENGINE"] = "eval"

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "peers")]

import rscan as rs  # noqa: E402

FUNCTION = sys.modules["rscan.function"].Function
ROUNDS = 15
NODES = [2_000, 20_000]


def once(job):
    """Seconds of this thread: those that other programs take do not count."""
    start = time.thread_time()
    job()
    return time.thread_time() - start


def least(jobs):
    """Milliseconds per job, given with the number of times that it runs in each round: what is brief runs more often."""
    best = [float("inf")] * len(jobs)
    gc.collect()
    gc.disable()
    for _ in range(ROUNDS):
        best = [min(b, *(once(job) for _ in range(times))) for b, (job, times) in zip(best, jobs, strict=True)]
    gc.enable()
    return [1e3 * b for b in best]


def compiled(level, inputs, outputs):
    def job():
        with rs.config.override(passes=level):
            rs.function(inputs, outputs, on_unused_input="ignore")

    return job


def passes(*functions):
    """The share of the passes and the rest, per function: inputs, outputs, and how often it is made in each round."""
    levels = ("none", "fast_run")
    found = least([(compiled(level, inputs, outputs), times) for inputs, outputs, times in functions for level in levels])
    return [(every - none, none) for none, every in zip(found[::2], found[1::2], strict=True)]


def chain(n):
    x = rs.dvector("x")
    y = x
    for k in range(n // 2):
        y = rs.tanh(y) * (1.0 + k)
    return [x], [y]


def workload(module, name):
    """Inputs and outputs of a workload's function."""
    made, peer = [], importlib.import_module("p_rscan")
    peer.rs = rs
    spec = next(s for s in importlib.import_module(f"specs.{module}").SPECS if s.name == name)
    start = FUNCTION.__init__

    def init(self, *args, **named):
        start(self, *args, **named)
        made.append(self)

    FUNCTION.__init__ = init
    build = time.perf_counter()
    peer.IMPL[(name, "")](spec.make())
    build = time.perf_counter() - build
    if not made:
        peer.IMPL[(name, "")](spec.make())()
    FUNCTION.__init__ = start
    return made[-1].inputs, made[-1].outputs, 1e3 * build


def main():
    short, long = NODES
    shares = passes((*chain(short), long // short), (*chain(long), 1))
    for n, (share, rest) in zip(NODES, shares, strict=True):
        print(f"chain of {n} nodes: passes {share:.2f} ms; the rest of the function {rest:.2f} ms")
    ratio, walk = (long / short for short, long in zip(*shares, strict=True))
    print(f"ten times the nodes: {ratio:.1f} times the time; the rest, which walks over the nodes and no more, {walk:.1f} times")
    for module, name in [("w09_garch", "09_garch_grad"), ("w05_rnn", "05b_rnn_grad"), ("w06_lstm", "06_lstm_train")]:
        inputs, outputs, build = workload(module, name)
        [(share, rest)] = passes((inputs, outputs, 1))
        print(f"{name}: passes {share:.2f} ms; the rest of the function {rest:.2f} ms; all, with model and gradient {build:.1f} ms")
    # The longer chain leaves the caches: what that costs is told by the rest.
    return 0 if ratio <= max(15, 1.5 * walk) else 1


if __name__ == "__main__":
    sys.exit(main())
