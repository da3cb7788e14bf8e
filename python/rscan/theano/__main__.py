"""`python -m rscan.theano program.py …` runs a program that imports `theano`."""

from __future__ import annotations

import importlib.util
import os
import runpy
import sys
from typing import Any

import rscan.theano as facade


def main(arguments: list[str]) -> int:
    """Runs the program named first with the rest as its arguments. 1 or 2, as `python` gives it, where there is no such program."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: python -m rscan.theano [-m module | program.py] [arguments]")
        return 0 if arguments else 2
    facade.install()
    if arguments[0] == "-m" and len(arguments) > 1:
        sys.path.insert(0, os.getcwd())
        if _spec(arguments[1]) is None:
            print(f"{sys.executable}: No module named {arguments[1]}", file=sys.stderr)
            return 1
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return 0
    path = os.path.abspath(arguments[0])
    if os.path.isdir(path) and not os.path.exists(os.path.join(path, "__main__.py")):
        print(f"{sys.executable}: can't find '__main__' module in {path!r}", file=sys.stderr)
        return 1
    try:
        if not os.path.isdir(path):
            open(path, "rb").close()
    except OSError as error:
        print(f"{sys.executable}: can't open file {path!r}: [Errno {error.errno}] {error.strerror}", file=sys.stderr)
        return 2
    sys.argv = arguments
    sys.path.insert(0, os.path.dirname(path))
    runpy.run_path(arguments[0], run_name="__main__")
    return 0


def _spec(module: str) -> Any:
    try:
        return importlib.util.find_spec(module)
    except ModuleNotFoundError:
        return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
