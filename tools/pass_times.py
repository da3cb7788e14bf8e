"""How long the passes take: a chain of nodes, short and ten times as long, and functions of the benchmark, with their gradients.

`.venv/bin/python tools/pass_times.py` prints milliseconds, the least of several. The times of the passes are differences between a
function with all passes and one with none, on the evaluator, where nothing else is compiled.
"""

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
ROUNDS = 7
NODES = [2_000, 20_000]


def least(make):
    """Milliseconds."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        make()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def passes(inputs, outputs):
    """The share of the passes."""
    compiled = {}
    for level in ("none", "fast_run"):
        with rs.config.override(passes=level):
            compiled[level] = least(lambda: rs.function(inputs, outputs, on_unused_input="ignore"))
    return compiled["fast_run"] - compiled["none"], compiled["none"]


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
    times = {}
    for n in NODES:
        times[n], _ = passes(*chain(n))
        print(f"chain of {n} nodes: passes {times[n]:.2f} ms")
    ratio = times[NODES[1]] / times[NODES[0]]
    print(f"ten times the nodes: {ratio:.1f} times the time")
    for module, name in [("w09_garch", "09_garch_grad"), ("w05_rnn", "05b_rnn_grad"), ("w06_lstm", "06_lstm_train")]:
        inputs, outputs, build = workload(module, name)
        share, rest = passes(inputs, outputs)
        print(f"{name}: passes {share:.2f} ms; the rest of the function {rest:.2f} ms; all, with model and gradient {build:.1f} ms")
    return 0 if ratio <= 15 else 1


if __name__ == "__main__":
    sys.exit(main())
