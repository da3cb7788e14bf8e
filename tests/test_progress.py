"""Calls tell how far they have come."""

import io
import itertools
import os
import pickle
import signal
import sys
import threading

import numpy as np
import pytest

import rscan as rs
from rscan._progress import Bar, line


class Heard:
    """What a callable was told; it notes when it was closed."""

    def __init__(self, until=3):
        self.told, self.closed, self.until = [], 0, until

    def __call__(self, done, steps, seconds):
        assert self.closed == 0 or len(self.told)
        self.told.append((done, steps, seconds))
        if len(self.told) == self.until:
            raise Enough

    def close(self):
        self.closed += 1


class Enough(Exception):
    """Ends a call that would take for ever."""


#: Loops of too many steps to wait for, on each kind of engine: one kernel, a list with a product, and with a loop inside.
def scalars(x, n):
    return rs.loop(lambda h: rs.tanh(h + x), init=0.0, n_steps=n).last


def products(x, n):
    return rs.loop(lambda h: rs.tanh(rs.eye(40) @ h + x), init=rs.zeros((40, 3)), n_steps=n).last


def nested(x, n):
    return rs.loop(lambda h: rs.loop(lambda k: rs.cos(k + h[0]), init=h, n_steps=7)[-1] + x, init=rs.zeros(3), n_steps=n).last


MANY = 10**9


@pytest.mark.parametrize("build", [scalars, products, nested])
@pytest.mark.parametrize("engine", ["auto", "eval"])
def test_steps_are_told_while_a_call_runs(build, engine, monkeypatch):
    monkeypatch.setenv("RSCAN_ENGINE", engine)
    heard = Heard()
    x, n = rs.dscalar("x"), rs.lscalar("n")
    f = rs.function([x, n], build(x, n), progress=heard)
    with pytest.raises(Enough):
        f(0.5, MANY)
    steps = [done for done, _, _ in heard.told]
    assert steps == sorted(steps) and 0 < steps[-1] < MANY and {most for _, most, _ in heard.told} == {MANY}
    seconds = [at for _, _, at in heard.told]
    assert seconds == sorted(seconds) and all(b > a for a, b in itertools.pairwise(seconds)) and heard.closed == 1
    assert np.isfinite(f(0.5, 5)).all(), "the function works at the next call"


def test_brief_calls_tell_nothing():
    heard = Heard()
    f = rs.compile(lambda x: rs.sum(x**2), progress=heard)
    assert [float(f(np.ones(k))) for k in range(4)] == [0, 1, 2, 3]
    assert not heard.told and heard.closed == 0


def test_values_are_those_without():
    x, n = rs.dscalar("x"), rs.lscalar("n")
    plain, told = (rs.function([x, n], scalars(x, n), progress=p) for p in (None, Heard(10**6)))
    assert plain(0.3, 3000).tobytes() == told(0.3, 3000).tobytes()
    profiled = rs.function([x, n], scalars(x, n), progress=Heard(10**6), profile=True)
    assert profiled(0.3, 3000) == plain(0.3, 3000) and profiled.profile.loops[1].steps == 3000


def test_loops_that_end_by_their_condition_have_no_number_of_steps():
    heard = Heard()
    x = rs.dscalar("x")
    last = rs.loop(lambda h: (h + x, rs.until(h < -1)), init=0.0).last
    with pytest.raises(Enough):
        rs.function([x], last, progress=heard)(1e-9)
    assert {most for _, most, _ in heard.told} == {None} and heard.told[-1][0] > 0


def test_what_has_no_loop_tells_the_time():
    heard = Heard(1)
    x = rs.dmatrix("x")
    with pytest.raises(Enough):
        rs.function([x], x @ (x @ (x @ x)), progress=heard)(np.ones((3000, 3000)))
    assert heard.told[0][:2] == (0, None)


@pytest.mark.usefixtures("ctrl_c_interrupts")
def test_ctrl_c_stops_as_without():
    heard = Heard(10**6)
    x, n = rs.dscalar("x"), rs.lscalar("n")
    f = rs.function([x, n], scalars(x, n), progress=heard)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        f(0.5, MANY)
        timer.join()
    assert heard.told and heard.closed == 1


def test_threads_tell_each_their_own():
    heard = Heard(10**6)
    x, n = rs.dscalar("x"), rs.lscalar("n")
    f = rs.function([x, n], scalars(x, n), progress=heard)
    found = []
    threads = [threading.Thread(target=lambda k=k: found.append(float(f(0.1 * k, 1000)))) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == sorted(float(f(0.1 * k, 1000)) for k in range(8))


class TestBar:
    def test_lines(self):
        assert line(0, None, 1.5) == "1.5 s" and line(1200, None, 1.5) == "1,200 steps, 1.5 s"
        assert line(500, 1000, 2.0) == f"[{'#' * 15}{'.' * 15}] 500 of 1,000 steps, 2.0 s, 2.0 s left"
        assert line(0, 10, 1.0).endswith("0 of 10 steps, 1.0 s")

    def test_it_appears_late_and_disappears(self):
        file = io.StringIO()
        bar = Bar(file)
        bar(10, 100, 0.2)
        assert file.getvalue() == ""
        bar(50, 100, 1.0)
        assert file.getvalue().startswith("\r[###") and "50 of 100" in file.getvalue()
        bar.close()
        bar.close()
        assert file.getvalue().endswith("\r\x1b[K") and file.getvalue().count("\r") == 2

    def test_it_is_for_terminals_and_notebooks(self, monkeypatch):
        class Terminal(io.StringIO):
            def isatty(self):
                return True

        class Cell(io.StringIO):
            __module__ = "ipykernel.iostream"

        for kind, shown in ((Terminal, True), (Cell, True), (io.StringIO, False)):
            monkeypatch.setattr(sys, "stderr", kind())
            bar = Bar()
            bar(50, 100, 1.0)
            assert ("50 of 100" in sys.stderr.getvalue()) is shown
            bar.close()
            assert bool(sys.stderr.getvalue()) is shown
        monkeypatch.setattr(sys, "stderr", None)  # as under pythonw
        Bar()(50, 100, 1.0)

    def test_true_is_a_bar(self):
        f = rs.compile(lambda x: x + 1, progress=True)
        assert isinstance(f._progress, Bar) and f(1.0) == 2
        assert isinstance(rs.compile(f)._progress, Bar) and rs.compile(f) is f
        assert rs.compile(f, progress=False)._progress is None


def test_what_is_no_callable_is_refused():
    for wrong in (3, "bar", [print]):
        with pytest.raises(rs.RscanTypeError, match="progress is True or a callable") as caught:
            rs.function([], rs.constant(1.0), progress=wrong)
        assert caught.value.code == "E0809"


def test_functions_travel_without_it():
    x = rs.dscalar("x")
    f = rs.function([x], x + 1, progress=lambda *_: None)
    copied = pickle.loads(pickle.dumps(f))
    assert copied(1.0) == 2 and copied._progress is None
    assert f.bind(2.0)() == 3
