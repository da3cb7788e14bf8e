"""`python -m rscan`: explains error codes, and says whether the installation works."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns its exit status."""
    about = "Symbolic loops: differentiated, optimised and run as native code."
    parser = argparse.ArgumentParser(prog="python -m rscan", description=about)
    commands = parser.add_subparsers(dest="command", required=True)
    explain = commands.add_parser("explain", help="explain an error code, such as E0103")
    explain.add_argument("code", nargs="?", help="the code; without it, a list of all")
    commands.add_parser("doctor", help="say what is installed, and run a loop and its gradient")
    options = parser.parse_args(arguments)
    return _explain(options.code) if options.command == "explain" else _doctor()


def _explain(code: str | None) -> int:
    from .errors import error_page

    if code is None:
        numbers = [f"E{n:04d}" for n in range(10_000)]
        for page in filter(None, map(error_page, numbers)):
            print(page.splitlines()[0].lstrip("# "))
        return 0
    code = code.upper() if code[:1] in "eE" else f"E{code:0>4}"
    found = error_page(code)
    if found is None:
        print(f"there is no error code {code}; `python -m rscan explain` lists all", file=sys.stderr)
        return 1
    print(found.rstrip())
    return 0


def _doctor() -> int:
    import numpy as np

    import rscan as rs

    print(f"rscan    {rs.__version__} ({os.path.dirname(rs.__file__)})")
    print(f"Python   {platform.python_version()} ({sys.executable})")
    print(f"NumPy    {np.__version__}")
    print(f"machine  {platform.machine()}, {platform.system()}, {os.cpu_count()} processors")
    return 0 if _self_test(rs, np) else 1


def _self_test(rs: object, np: object) -> bool:
    """A loop and its gradient, against the formula."""
    start = time.perf_counter()
    a, x0 = rs.dscalars("a", "x0")  # type: ignore[attr-defined]
    rows, _ = rs.scan(lambda x, a: a * x, outputs_info=x0, non_sequences=a, n_steps=10)  # type: ignore[attr-defined]
    f = rs.function([a, x0], [rows[-1], rs.grad(rows[-1], a)])  # type: ignore[attr-defined]
    value, slope = f(1.5, 2.0)
    seconds = time.perf_counter() - start
    good = bool(np.allclose([value, slope], [2 * 1.5**10, 20 * 1.5**9]))  # type: ignore[attr-defined]
    print(f"loop     {'works' if good else 'GIVES WRONG NUMBERS'}, built and run in {1000 * seconds:.0f} ms")
    return good
