"""What `import rscan` takes after `import numpy`: `python imports.py [--rounds 15] [package ...]`.

Each figure comes from fresh processes, in milliseconds. Byte code is cached in a folder of its own, as an installer leaves it beside the modules;
the first process, which fills the cache, is not counted.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile

PROGRAM = "import time, numpy; start = time.perf_counter(); import {}; print(time.perf_counter() - start)"


def measured(package, rounds):
    """Milliseconds of so many imports."""
    with tempfile.TemporaryDirectory() as cache:
        env = {**os.environ, "PYTHONPYCACHEPREFIX": cache}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, "-c", PROGRAM.format(package)]
        times = [float(subprocess.run(command, env=env, check=True, capture_output=True).stdout) for _ in range(rounds + 1)]
    return [1e3 * t for t in times[1:]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", default=["rscan"], metavar="package")
    parser.add_argument("--rounds", type=int, default=15, help="processes per package (default 15)")
    options = parser.parse_args()
    for package in options.packages:
        times = measured(package, options.rounds)
        print(f"{package}: median {statistics.median(times):.1f} ms, {min(times):.1f} to {max(times):.1f} ms in {len(times)} processes")


if __name__ == "__main__":
    main()
