"""rscan against JAX on models that nobody tuned for: `python run.py [--only REGEX] [--rscan-only] [--calls] [-o FILE]`; see README.md.

Ratios are rscan / JAX: below 1 rscan is ahead. Each model runs in a process of its own on one core: rscan's first call, then both sides in
turn, for many short rounds, of which the best count. A first call is the best of three fresh processes, less a later call. Times are those
of the process on its core; a row is "disturbed" where a median is far from the best all the same.
"""

import argparse
import collections
import importlib.util
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
sys.path[0] = str(HERE.parent)

import models
from report import geomean, t

ENVIRONMENT = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
    "JAX_ENABLE_X64": "1",
    "JAX_ENABLE_COMPILATION_CACHE": "false",
}


def worker(name, options, **changed):
    """What a fresh process found out about a model."""
    settings = dict(
        small=options.small, jax=options.jax, rounds=0 if options.check_only else options.rounds, seconds=options.seconds, first_only=False
    )
    command = [sys.executable, str(HERE / "worker.py"), name, json.dumps({**settings, **changed})]
    if options.cpu and os.path.exists("/usr/bin/taskset"):
        command = ["taskset", "-c", options.cpu, *command]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.timeout, env={**os.environ, **ENVIRONMENT})
    except subprocess.TimeoutExpired:
        return dict(ok=False, error=f"not done after {options.timeout:.0f} s")
    lines = done.stdout.strip().splitlines()
    try:
        return json.loads(lines[-1])
    except (IndexError, ValueError):
        return dict(ok=False, error=f"died with status {done.returncode}: {done.stderr.strip()[-500:]}")


def measured(model, options):
    """One row: the model, and what was found out."""
    found = worker(model.name, options)
    row = dict(name=model.name, kind=model.kind, dtype=model.dtype, sealed=model.sealed, **found)
    if found["ok"] and "run_s" in found:
        others = [worker(model.name, options, first_only=True) for _ in range(options.starts - 1)]
        firsts = [found["first_call_s"], *(o["first_call_s"] for o in others if o["ok"])]
        row["first_s"] = max(0.0, min(firsts) - found["run_s"])
    return row


def line(row):
    """A row of a table."""
    if not row["ok"]:
        return f"  {row['name']:30} {row['dtype']:8} FAILED  {' '.join(row['error'].split())[:150]}"
    if "run_s" not in row:
        return f"  {row['name']:30} {row['dtype']:8} ok"
    ratio = f"x{row['ratio']:<7.3g}" if "ratio" in row else " " * 8
    jax = f"jax {t(row['jax_s']):>9}" if "jax_s" in row else ""
    disturbed = any(row[f"{side}_median_s"] > 1.5 * row[f"{side}_s"] for side in ("run", "jax") if f"{side}_median_s" in row)
    notes = (f"  was x{row['was']:.3g}" if "was" in row else "") + ("  disturbed" if disturbed else "")
    return f"  {row['name']:30} {row['dtype']:8} {ratio} rscan {t(row['run_s']):>9}  {jax}  first call {t(row['first_s']):>9}{notes}"


def print_calls(row):
    for loop in row.get("loops", []):
        reason = f", because {loop['reason']}" if loop["reason"] else ""
        copies = f"; a step copies {', '.join(loop['copies'])}" if loop["copies"] else ""
        print(f"      {'  ' * loop['depth']}{loop['loop'] or 'loop'}: {loop['engine']}{reason}{copies}")


def print_kinds(rows, options):
    """A table per class, the worst ratio first."""
    for kind in dict.fromkeys(r["kind"] for r in rows):
        mine = sorted((r for r in rows if r["kind"] == kind), key=lambda r: -r.get("ratio", float("inf")))
        ratios = [r["ratio"] for r in mine if "ratio" in r]
        print(f"\n{kind}" + (f": x{geomean(ratios):.3g}" if ratios else ""))
        for row in mine:
            print(line(row))
            if options.calls:
                print_calls(row)


def print_summary(title, rows):
    ratios = {r["name"]: r["ratio"] for r in rows if "ratio" in r}
    firsts = {r["name"]: r["first_s"] for r in rows if "first_s" in r}
    print(f"\n{title}: {sum(r['ok'] for r in rows)} of {len(rows)} models give the right values")
    if ratios:
        worst = max(ratios, key=ratios.get)
        slower = sum(x > 1 for x in ratios.values())
        print(f"  geometric mean x{geomean(ratios.values()):.3g} of JAX, worst x{ratios[worst]:.3g} on {worst}")
        print(f"  slower than JAX on {slower} of {len(ratios)}")
        print("  worst first: " + ", ".join(f"{name} x{ratios[name]:.3g}" for name in sorted(ratios, key=ratios.get, reverse=True)[:12]))
    if firsts:
        worst = max(firsts, key=firsts.get)
        print(f"  first call: median {t(statistics.median(firsts.values()))}, worst {t(firsts[worst])} on {worst}")
    for row in rows:
        if not row["ok"]:
            print(f"  FAILED {row['name']}: {row['error']}")


def print_tally(rows):
    """In how many models the host is still called for what."""
    ops = collections.Counter(op for r in rows for op in {c for loop in r.get("loops", []) for c in loop["calls"]})
    print("\nCalled by the host in steps, and in how many models: " + (", ".join(f"{op} {n}" for op, n in ops.most_common()) or "nothing"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a regular expression of names, classes and files")
    parser.add_argument("--rscan-only", action="store_true", help="without JAX: no values are compared")
    parser.add_argument(
        "--calls", action="store_true", help="on which engine each loop runs, and what the host still computes in its steps"
    )
    parser.add_argument("--check-only", action="store_true", help="compare values, take no times")
    parser.add_argument("--small", action="store_true", help="at the size of the tests")
    parser.add_argument("-o", metavar="FILE", help="write all that was found as JSON")
    parser.add_argument("--against", metavar="FILE", help="show the ratios of an earlier -o FILE beside")
    parser.add_argument("--cpu", default="0", help="the core (default 0)")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=0.003, help="per side and round (default 0.003)")
    parser.add_argument("--starts", type=int, default=3, help="fresh processes per first call (default 3)")
    parser.add_argument("--timeout", type=float, default=180, help="seconds per model (default 180)")
    options = parser.parse_args()
    options.jax = not options.rscan_only
    if options.jax and importlib.util.find_spec("jax") is None:
        print("JAX is not installed for this python: nothing is compared (--rscan-only times rscan alone)")
        return 0
    chosen = [m for m in models.find().values() if re.search(options.only, f"{m.name} {m.kind} {type(m).__module__}", re.IGNORECASE)]
    if not chosen:
        print(f"no model has {options.only!r} in its name, class or file")
        return 2
    earlier = (
        {r["name"]: r["ratio"] for r in json.loads(pathlib.Path(options.against).read_text()) if "ratio" in r} if options.against else {}
    )
    rows = []
    for model in chosen:
        rows.append(measured(model, options))
        if model.name in earlier:
            rows[-1]["was"] = earlier[model.name]
        print(line(rows[-1]), flush=True)
    for title, sealed in (("open models", False), ("sealed models", True)):
        mine = [r for r in rows if r["sealed"] == sealed]
        if mine:
            print(f"\n== {title}")
            print_kinds(mine, options)
            print_summary(title, mine)
            if options.calls:
                print_tally(mine)
    if options.o:
        pathlib.Path(options.o).write_text(json.dumps(rows, indent=1))
    return 0 if all(r["ok"] for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
