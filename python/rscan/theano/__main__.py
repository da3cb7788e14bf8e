"""`python -m rscan.theano program.py …` runs a program that imports `theano`."""

from __future__ import annotations

import os
import runpy
import sys

import rscan.theano as facade


def main(arguments: list[str]) -> int:
    """Runs the program named first with the rest as its arguments."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: python -m rscan.theano [-m module | program.py] [arguments]")
        return 0 if arguments else 2
    facade.install()
    if arguments[0] == "-m" and len(arguments) > 1:
        sys.argv = arguments[1:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path.insert(0, os.path.dirname(os.path.abspath(arguments[0])))
        runpy.run_path(arguments[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
