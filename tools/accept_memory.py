"""Memory that cannot be had, again and again: `make accept-memory N=10000`.

Twelve programs on two engines (the evaluator, and kernels): results of operations, rows that loops keep, gradients, draws, updates of
shared variables. Under a limited address space four threads call them, at once, with arguments for which there is no memory. Demanded
of every call:

- it raises `rs.errors.RscanMemoryError`, a MemoryError with code E0392, how many bytes, and the line of this file that asked for them;
- shared variables keep their values;
- the same function gives the right result at the next call, with smaller arguments.

Nothing is timed. Exit status 1 where something demanded is missing; a process that aborts says so by its own exit status.
"""

import argparse
import os
import re
import resource
import sys
import threading
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("RSCAN_NUM_THREADS", "2")

import numpy as np

import rscan as rs

THREADS = 4
#: Bytes of addresses that are left when the calls begin.
LEFT = 1 << 30
#: Elements of 8 bytes that do not fit in there, though the machine may have them, and such that no machine has.
MANY, TOO_MANY = 1 << 28, 10**14


class Program:
    """A function, arguments that are too large and such that are not, and what it gives for these."""

    def __init__(self, name: str, f: Callable, large: tuple, small: tuple, expected: np.ndarray, weight: int = 1, kept=None) -> None:
        self.name, self.f, self.large, self.small, self.expected, self.weight, self.kept = name, f, large, small, expected, weight, kept
        self.next_calls = self.refused = 0


def creation() -> list[Program]:
    n, x, i = rs.lscalar("n"), rs.vector("x"), rs.lvector("i")
    wide, three = np.arange(20_000.0), np.arange(3.0)
    many = np.zeros(20_000, dtype=np.int64)
    ones = rs.function([n], rs.ones((n, n)))
    counts = rs.function([n], rs.arange(n))
    outer = rs.function([x], rs.outer(x, x))
    tiled = rs.function([x, n], rs.tile(x, n))
    product = rs.function([x], rs.matmul(x[:, None], x[None, :]))
    draws = rs.function([n], rs.random.normal(rs.random.key(1), (n,)))
    taken = rs.function([x, i], rs.broadcast_to(x, (x.shape[0], x.shape[0]))[i])
    return [
        Program("ones", ones, (10**7,), (2,), np.ones((2, 2))),
        Program("arange", counts, (TOO_MANY,), (3,), np.arange(3)),
        Program("outer", outer, (wide,), (three,), np.outer(three, three)),
        Program("tile", tiled, (wide, MANY // 20_000), (three, 2), np.tile(three, 2)),
        Program("matmul", product, (wide,), (three,), np.outer(three, three)),
        Program("normal", draws, (MANY,), (0,), np.zeros(0)),
        Program("take", taken, (wide, many), (three, np.array([1])), three[None]),
    ]


def loops() -> list[Program]:
    n, x, s = rs.lscalar("n"), rs.vector("x"), rs.scalar("s")
    row = np.ones(100_000)
    scalars, _ = rs.scan(lambda h: h * 0.5, outputs_info=s, n_steps=n)
    growing, _ = rs.scan(lambda h: (h + 1.0, rs.until((h + 1.0).min() > 1e6)), outputs_info=x, n_steps=n)
    tables, _ = rs.scan(lambda h: rs.tanh(rs.outer(h, h).sum(0)), outputs_info=x, n_steps=n)
    last, _ = rs.scan(lambda h: rs.tanh(h), outputs_info=s, n_steps=n)
    return [
        Program("kept rows", rs.function([s, n], scalars), (1.0, 10**12), (1.0, 2), np.array([0.5, 0.25])),
        Program("a loop that may stop", rs.function([x, n], growing), (row, 10**6), (np.zeros(1), 2), np.array([[1.0], [2.0]]), 40),
        Program("in a step", rs.function([x, n], tables), (row, 3), (np.zeros(2), 1), np.zeros((1, 2))),
        Program("gradient", rs.function([s, n], rs.grad(last[-1], s)), (0.5, MANY), (0.0, 3), np.array(1.0)),
    ]


def updates() -> list[Program]:
    x, table = rs.vector("x"), rs.shared(np.zeros((1, 1)), name="table")
    f = rs.function([x], x * 2.0, updates={table: rs.outer(x, x)})
    return [Program("update", f, (np.ones(20_000),), (np.arange(1.0),), np.zeros(1), kept=table)]


def programs() -> list[Program]:
    out = []
    for engine in ["eval", "auto"]:
        os.environ["RSCAN_ENGINE"] = engine
        for program in creation() + loops() + updates():
            program.name += f" ({engine})"
            out.append(program)
    return out


def addresses() -> int:
    """Bytes of addresses that this process uses."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def wrong(program: Program) -> str | None:
    """What is wrong with a call that has no memory and with the one after it."""
    before = None if program.kept is None else program.kept.get_value()
    try:
        program.f(*program.large)
        return "no error"
    except MemoryError as error:
        text = str(error)
        if not isinstance(error, rs.errors.RscanMemoryError) or error.code != "E0392":
            return f"another error: {error!r}"
        if not re.search(r"[\d,]{4,} bytes", text) or not error.labels or not error.labels[0][0].endswith("accept_memory.py"):
            return f"no bytes or no line: {text}"
    except BaseException as error:
        return f"another error: {error!r}"
    if before is not None and not np.array_equal(before, program.kept.get_value()):
        return "a shared variable was written"
    if not np.array_equal(program.f(*program.small), program.expected):
        return "wrong at the next call"
    program.next_calls += 1
    return None


def work(share: list[Program], faults: list[str]) -> None:
    for program in share:
        if fault := wrong(program):
            faults.append(f"{program.name}: {fault}")
        program.refused += 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=10_000, help="refused allocations")
    n = parser.parse_args().n
    all_of_them = programs()
    for program in all_of_them:
        program.f(*program.small)
    resource.setrlimit(resource.RLIMIT_AS, (addresses() + LEFT,) * 2)
    # Those that fill the memory before they fail come less often.
    turns = [p for k in range(n) for p in all_of_them if k % p.weight == 0][:n]
    faults: list[str] = []
    threads = [threading.Thread(target=work, args=(turns[k::THREADS], faults)) for k in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for fault in faults[:20]:
        print(fault)
    refused, again = sum(p.refused for p in all_of_them), sum(p.next_calls > 0 for p in all_of_them)
    counts = f"{refused} refused allocations from {THREADS} threads: 0 aborts, {len(faults)} wrong errors"
    print(f"{counts}, {again} functions work at the next call")
    return 0 if not faults and again == len(all_of_them) and refused == n else 1


if __name__ == "__main__":
    sys.exit(main())
