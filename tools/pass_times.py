"""How long the passes take for functions of the benchmark, with their gradients.

`.venv/bin/python tools/pass_times.py` prints milliseconds. That their time grows with the number of nodes is measured by
`cargo run --profile wheel -p scan-core --example pass_times`, which calls the passes alone. Here their times are differences between a
function with all passes and one with none, on the evaluator, where nothing else is compiled. Each of the two is the least of many
rounds, in which both take turns: a pause of the machine falls into some rounds of both, not into all rounds of one.
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
# Milliseconds that the passes may take.
MODELS = [("w09_garch", "09_garch_grad", 5), ("w05_rnn", "05b_rnn_grad", 30), ("w06_lstm", "06_lstm_train", 30)]


def once(job):
    """Seconds of this thread: those that other programs take do not count."""
    start = time.thread_time()
    job()
    return time.thread_time() - start


def least(jobs):
    """Milliseconds per job."""
    best = [float("inf")] * len(jobs)
    gc.collect()
    gc.disable()
    for _ in range(ROUNDS):
        best = [min(b, once(job)) for b, job in zip(best, jobs, strict=True)]
    gc.enable()
    return [1e3 * b for b in best]


def compiled(level, inputs, outputs):
    def job():
        with rs.config.override(passes=level):
            rs.function(inputs, outputs, on_unused_input="ignore")

    return job


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
    slow = 0
    for module, name, most in MODELS:
        inputs, outputs, build = workload(module, name)
        none, every = least([compiled(level, inputs, outputs) for level in ("none", "fast_run")])
        print(f"{name}: passes {every - none:.2f} ms; the rest of the function {none:.2f} ms; all, with model and gradient {build:.1f} ms")
        slow += every - none > most
    print(f"{slow} of {len(MODELS)} take longer than they may")
    return min(slow, 1)


if __name__ == "__main__":
    sys.exit(main())
