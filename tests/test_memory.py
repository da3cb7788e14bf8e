"""Memory that cannot be had: an error of the call, at the user's line, and nothing is lost."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rscan as rs

ROOT = Path(__file__).resolve().parent.parent
K = 10**7


def refused(f, *args):
    with pytest.raises(MemoryError) as caught:
        f(*args)
    error = caught.value
    assert isinstance(error, rs.errors.RscanMemoryError) and error.code == "E0392"
    return error


def test_too_large_a_result_says_how_large_and_where():
    n = rs.lscalar("n")
    table = rs.ones((n, n))
    f = rs.function([n], table)
    error = refused(f, K)
    assert re.search(r"800,000,000,000,000 bytes \(727\.6 TiB\)", str(error)), str(error)
    assert "table = rs.ones((n, n))" in str(error)
    assert f(2).tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize("n", [10**10, 2**40, 2**62])
def test_what_cannot_be_addressed_is_refused_likewise(n):
    extent = rs.lscalar("n")
    f = rs.function([extent], rs.zeros((extent, extent)) + 1.0)
    error = refused(f, n)
    assert "bytes" in str(error) and f(1).tolist() == [[1.0]]


def test_all_rows_are_refused_before_the_first_step():
    n, seen = rs.lscalar("n"), rs.shared(0, name="seen")
    out, updates = rs.scan(lambda h: (h * 0.5, {seen: seen + 1}), outputs_info=rs.constant(1.0), n_steps=n)
    f = rs.function([n], out, updates=updates)
    error = refused(f, 10**12)
    assert "of 1000000000000 steps: 8,000,000,000,0" in str(error) and "rs.scan(" in str(error), str(error)
    assert seen.get_value() == 0
    assert f(2).tolist() == [0.5, 0.25] and seen.get_value() == 2


def test_a_step_that_asks_for_too_much_is_named():
    x, n = rs.vector("x"), rs.lscalar("n")

    def step(h):
        m = rs.cast(h[0], "int64")
        return rs.ones((m, m))[0, :2] * h * 1000.0

    f = rs.function([x, n], rs.scan(step, outputs_info=x, n_steps=n)[0])
    error = refused(f, np.array([10.0, 10.0]), 5)
    assert "in step 2" in str(error) and "rs.ones((m, m))" in str(error), str(error)
    assert f(np.array([2.0, 3.0]), 1).tolist() == [[2000.0, 3000.0]]


def test_a_failing_call_writes_no_shared_variable():
    n, total = rs.lscalar("n"), rs.shared(np.zeros(2), name="total")
    f = rs.function([n], rs.outer(rs.arange(n), rs.arange(n)), updates={total: total + 1.0})
    refused(f, K)
    assert total.get_value().tolist() == [0, 0]
    f(2)
    assert total.get_value().tolist() == [1, 1]


def test_the_page_of_the_error_is_there():
    assert "memory" in rs.errors.error_page("E0392")


@pytest.mark.skipif(sys.platform != "linux", reason="limits of the address space are Linux's")
def test_refused_memory_from_four_threads():
    done = subprocess.run([sys.executable, ROOT / "tools" / "accept_memory.py", "-n", "240"], capture_output=True, text=True, timeout=280)
    wanted = "240 refused allocations from 4 threads: 0 aborts, 0 wrong errors, 24 functions work at the next call\n"
    assert done.returncode == 0 and done.stdout.endswith(wanted), f"{done.returncode}\n{done.stdout}\n{done.stderr[-3000:]}"
