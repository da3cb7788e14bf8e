"""Whether each pass over loops earns its place: `make accept-passes`.

A corpus of programs (those of tests/seeds, of examples/ and of the benchmark, random ones, and a few that show one pass each), each
compiled with all passes, without each pass that fired in it, and without any. Demanded of every pass over loops:

- it fires in at least 3 programs;
- without it, at least one program is at least 10 % worse in something that can be counted: operations evaluated in steps, costly
  ones among them (products, factorisations, functions like tanh), rows that loops keep (of 100 steps), rows that a step reads and
  writes;
- with it and without it, values and gradients agree: floats to 1e-9 (float32: 1e-4) of the largest element, all else exactly.

Nothing is timed, so the table is the same on every machine. Exit status 1 where something demanded is missing.
"""

import argparse
import importlib
import io
import os
import re
import runpy
import sys
import warnings
from collections import defaultdict
from contextlib import redirect_stdout
from pathlib import Path

os.environ["RSCAN_ENGINE"] = "eval"

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "peers")]

import numpy as np  # noqa: E402
from passes_corpus import SHOWN, SMALL  # noqa: E402

import rscan as rs  # noqa: E402
from rscan import _native  # noqa: E402

FUNCTION = sys.modules["rscan.function"].Function
#: What is costly in a step.
COSTLY = {
    "matmul", "solve", "inverse", "cholesky", "slogdet", "solve_slogdet", "lu", "lu_solve", "exp", "log", "tanh", "sigmoid", "softplus",
    "sin", "cos", "pow", "logsumexp", "softmax", "log_softmax",
}  # fmt: skip
MEASURES = ["ops", "costly", "rows", "slots"]
WORSE, LEAST = 1.1, 3
RANDOM = 24


class Program:
    """A function that was made and called once: how to make it again with other passes."""

    def __init__(self, name, function, args, named, shared):
        self.name, self.function, self.args, self.named, self.shared = name, function, args, named, shared

    def run(self, excluding):
        """What it gives without some passes, what it costs, and the passes that fired."""
        old = self.function
        made = FUNCTION(
            old.inputs, list(old.outputs), list(old.updates), list(old._givens), None, "ignore", old._allow_downcast, True, True,
            ("fast_run", excluding),
        )  # fmt: skip
        for variable, value in self.shared:
            variable.set_value(value.copy() if isinstance(value, np.ndarray) else value)
        with redirect_stdout(io.StringIO()):
            values = made(*self.args, **self.named)
        values = [np.asarray(v) for v in (values if isinstance(values, list) else [values])]
        values += [np.asarray(s.get_value()) for s, _ in old.updates]
        fired = {note.name for note in made.explain().passes if note.done}
        return values, costs(made), fired


def costs(function):
    """The measures of a function that was called once."""
    found = dict.fromkeys(MEASURES, 0)
    for k, loop in enumerate(function.profile.loops):
        for op, (count, _) in loop.ops.items():
            found["ops"] += count if k else 0
            found["costly"] += count if op in COSTLY else 0
    for line in function.text(optimised=True).splitlines():
        words = line.split("#")[0].split()
        if words[:1] == ["state"]:
            keep = re.search(r"keep=(all|last\((\d+)\))", line)
            found["rows"] += 100 if keep[1] == "all" else int(keep[2])
            found["slots"] += sum(len(offsets.split(",")) for offsets in re.findall(r"(?:reads|writes)=\[([^\]]+)\]", line))
        elif words[:1] == ["seq"]:
            found["slots"] += 1
    return found


def recorded(name, build):
    """The programs that a piece of code makes and calls."""
    made, calls = [], {}
    start, call = FUNCTION.__init__, FUNCTION.__call__

    def init(self, *args, **named):
        start(self, *args, **named)
        made.append(self)

    def first_call(self, *args, **named):
        plain = {k: v for k, v in named.items() if k != "out"}
        before = [(s, s.get_value()) for s in self.shared if hasattr(s, "get_value")]
        calls.setdefault(id(self), (self, [np.array(a) if isinstance(a, np.ndarray) else a for a in args], plain, before))
        return call(self, *args, **named)

    FUNCTION.__init__, FUNCTION.__call__ = init, first_call
    try:
        with redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            build()
    finally:
        FUNCTION.__init__, FUNCTION.__call__ = start, call
    found = [calls[id(f)] for f in made if id(f) in calls and "scan" in f.text()]
    return [Program(f"{name}/{k}" if k else name, *parts) for k, parts in enumerate(found)]


def corpus():
    """All programs."""
    found = []
    for path in sorted((ROOT / "tests" / "seeds").glob("*.py")):
        found += recorded(f"seed {path.stem}", lambda path=path: runpy.run_path(str(path)))
    for name in SMALL:
        found += recorded(f"bench {name}", lambda name=name: benchmark(name))
    for name, show in SHOWN.items():
        found += recorded(name, show)
    random = importlib.import_module("test_random_programs")
    for seed in range(RANDOM):
        found += recorded(f"random {seed}", lambda seed=seed: random_program(random, seed))
    return found


def benchmark(name):
    """A workload of the benchmark, at a small size."""
    peer = importlib.import_module("p_rscan")
    peer.rs = rs
    peer.IMPL[(name, "")](SMALL[name]())()


def random_program(random, seed):
    """A random program with the gradient of the sum of its outputs."""
    program = random.draw(seed)
    made = random.Symbolic(program)
    values = random.values_of(program)
    floats = [y for y in made.outputs if y.dtype == "float64"]
    wrt = [v for v in made.inputs if v.dtype == "float64"]
    grads = rs.grad(sum(rs.sum(y) for y in floats), wrt, disconnected_inputs="ignore") if floats else []
    f = rs.function(made.arguments, [*made.outputs, *grads], updates=made.updates, on_unused_input="ignore")
    made.call(f, values)


def agree(got, want):
    """True where all values agree."""
    for a, b in zip(got, want, strict=True):
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        if b.dtype.kind != "f":
            if not np.array_equal(a, b):
                return False
            continue
        finite = np.isfinite(b)
        scale = max(1.0, float(np.abs(b[finite]).max(initial=0)))
        bound = (1e-9 if b.dtype == np.float64 else 1e-4) * scale
        if not np.array_equal(finite, np.isfinite(a)) or np.abs(a[finite] - b[finite]).max(initial=0) > bound:
            return False
    return True


class Table:
    """Per pass: where it fired, and what its absence costs most."""

    def __init__(self):
        self.fired = defaultdict(list)
        self.gain = {}
        self.wrong = []

    def add(self, program, names):
        """Runs a program with and without its passes."""
        want, best, fired = program.run([])
        for name in sorted(fired & set(names)):
            self.fired[name].append(program.name)
            got, worse, _ = program.run([name])
            self.compare(program, name, got, want)
            for measure in MEASURES:
                gain = (worse[measure] + 1) / (best[measure] + 1)
                if gain > self.gain.get(name, (0.0,))[0]:
                    self.gain[name] = (gain, measure, worse[measure], best[measure], program.name)
        self.compare(program, "all passes", program.run(list(names))[0], want)

    def compare(self, program, name, got, want):
        if not agree(got, want):
            self.wrong.append(f"{program.name} without {name}")

    def rows(self, names):
        for name in names:
            gain = self.gain.get(name)
            good = len(self.fired[name]) >= LEAST and gain is not None and gain[0] >= WORSE
            told = f"{gain[1]} {gain[3]} → {gain[2]} in {gain[4]}" if gain else "–"
            yield name, len(self.fired[name]), told, good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-v", "--verbose", action="store_true", help="list the programs in which each pass fired")
    options = parser.parse_args()
    every = [name for name, *_ in _native.passes()]
    names = [name for name in every if name.startswith(("scan_", "dot_", "linalg_"))]
    programs, table = corpus(), Table()
    for program in programs:
        table.add(program, every)
    rows = list(table.rows(names))
    print(f"| pass | fired in, of {len(programs)} programs | without it, at most | |\n|---|---|---|---|")
    for name, fired, told, good in rows:
        print(f"| {name} | {fired} | {told} | {'ok' if good else 'MISSING'} |")
    if options.verbose:
        for name in names:
            print(f"{name}: {', '.join(table.fired[name])}")
    for wrong in table.wrong:
        print(f"DISAGREES: {wrong}")
    missing = sum(not good for *_, good in rows)
    print(f"{len(programs)} programs, {len(rows)} passes over loops: {missing} do not earn their place, {len(table.wrong)} disagreements")
    return 1 if missing or table.wrong or len(programs) < 40 else 0


if __name__ == "__main__":
    sys.exit(main())
