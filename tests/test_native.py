"""The extension itself: random ops keep their promises and never panic; calls can be stopped and leave Python free."""

import os
import random
import signal
import threading
import time

import numpy as np
import pytest

import rscan as rs
from rscan import _native

VALUES = [
    *[np.float64(1.5), np.int64(2), np.int64(-1), np.int8(3), np.bool_(True), np.arange(3.0), np.arange(3), np.ones((2, 2))],
    *[np.ones((2, 3), "f4"), np.zeros(0), np.zeros((0, 2)), np.array([True, False]), np.full((2, 2), np.nan)],
    *[np.arange(628, dtype="u4"), np.arange(2, dtype="u8"), np.ones((2, 2, 2))],
]
ATTRS = {
    "dtype": ["f32", "f64", "i64", "bool"],
    "axis": [0, 1, 2, 9],
    "axes": [[], [0], [1], [0, 1], [1, 0], [0, 0], [5]],
    "keepdims": [True, False],
    "kind": ["sum", "prod", "max", "min", "any", "all", "general", "lower", "positive"],
    "reverse": [True, False],
    "perm": [[], [0], [1, 0], [0, 1], [0, 0], [3]],
    "pattern": ["", "i", ":", "i,i", "s:", "s:e", "s:e:-1", "::2", "i,:", "::0"],
    "mode": ["set", "inc"],
    "k": [0, 1, -3],
    "low": [-1.0, 1.0],
    "high": [1.0, -1.0],
    "message": ["m"],
    "lower": [True, False],
    "dist": ["uniform", "normal", "binomial", "integers"],
}


def attempt(dice: random.Random, op: str) -> bool:
    """One random application: it is refused, or runs (and differentiates) as its types say."""
    attrs = {name: dice.choice(options) for name, options in ATTRS.items()}
    arrays = [np.asarray(dice.choice(VALUES)) for _ in range(dice.choice([0, 1, 1, 2, 2, 2, 3, 4]))]
    known = dice.random() < 0.5
    try:
        ins = [_native.input(a.dtype.name, a.shape if known else [None] * a.ndim) for a in arrays]
        outs = _native.apply(op, attrs, ins)
        results = _native.Function(ins, outs)(*arrays)
        floats = [v for v in ins if v.dtype.startswith("f")]
        if floats and outs[0].dtype.startswith("f"):
            axes = list(range(outs[0].ndim))
            _native.grad(_native.apply("reduce", {"kind": "sum", "axes": axes, "keepdims": False}, outs[:1])[0], floats)
    except rs.errors.InternalError as error:
        raise AssertionError(f"{op} {attrs} {[(a.dtype.name, a.shape) for a in arrays]}") from error
    except rs.RscanError:
        return False
    for result, out in zip(results, outs, strict=True):
        assert (result.dtype.name, result.ndim) == (out.dtype, out.ndim), op
        assert all(n is None or n == m for n, m in zip(out.shape, result.shape, strict=True)), (op, attrs)
    return True


def test_random_ops_keep_their_promises():
    dice = random.Random(7)
    ops = _native.structural_ops() + [row["name"] for row in _native.catalogue()]
    accepted = sum(attempt(dice, dice.choice(ops)) for _ in range(4000))
    assert accepted > 500


def long_loop():
    """A function that runs for hours."""
    x = rs.scalar("x")
    h, _ = rs.scan(lambda h: h * 0.5 + 1, outputs_info=x, n_steps=10**12)
    return rs.function([x], h[-1])


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")
def test_ctrl_c_stops_a_call_and_python_goes_on_meanwhile():
    f, beats = long_loop(), []
    stop = threading.Event()

    def beat():
        while not stop.wait(0.01):
            beats.append(1)

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    thread = threading.Thread(target=beat)
    thread.start()
    start = time.perf_counter()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            f(1.0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        stop.set()
        thread.join()
    assert time.perf_counter() - start < 2
    assert len(beats) > 5


def test_what_a_loop_says_of_itself():
    x, w = rs.vector("x"), rs.scalar("w")
    h, _ = rs.scan(lambda x_t, h, w: x_t + w * h, sequences=x, outputs_info=rs.constant(0.0), non_sequences=w, name="filter")
    native, stack = None, [h._v]
    while native is None:
        v = stack.pop()
        native = v if v.scan else None
        stack += v.inputs
    scan = native.scan
    assert scan["name"] == "filter" and not scan["until"] and scan["truncate"] is None
    assert [s["name"] for s in scan["seqs"]] == ["x"] and len(scan["captured"]) == 1
    assert [(s["kind"], s["reads"], s["writes"]) for s in scan["states"]] == [("sit_sot", [0], [1])]
    assert "mul(" in scan["text"]


def test_loops_are_compiled_for_ten_extents_called_in_turn():
    x = rs.vector("x")
    rows, _ = rs.scan(lambda h: rs.tanh(h) * 1.5, outputs_info=x, n_steps=6)
    f = rs.function([x], rows)
    sizes = [np.linspace(0.1, 1.0, n) for n in range(11, 21)]
    found = {}

    def sweep(name):
        found[name] = [[f(a) for a in sizes] for _ in range(4)]

    threads = [threading.Thread(target=sweep, args=(name,)) for name in "ab"]
    [t.start() for t in threads]
    [t.join() for t in threads]
    for sweeps in found.values():
        for results in sweeps:
            for a, result in zip(sizes, results, strict=True):
                expected = [a := np.tanh(a) * 1.5 for _ in range(6)]
                np.testing.assert_allclose(result, expected, rtol=1e-12)
    loop = f.explain().loops[0]
    if os.environ.get("RSCAN_ENGINE") != "eval":
        assert (loop.compiled, len(loop.variants)) == (10, 10)
        assert all(v.engine != "eval" for v in loop.variants)
        assert "are kept" not in str(f.explain())
        for n in range(21, 321):
            f(np.ones(n))
        loop = f.explain().loops[0]
        assert loop.compiled == 310 and 10 <= len(loop.variants) < 310
        assert f"compiled for 310 extents of rows, of which the last {len(loop.variants)} are kept" in str(f.explain())


def test_branches_of_different_extents():
    x, a, b = rs.dvector("x"), rs.dvector("a"), rs.dvector("b")
    totals, _ = rs.scan(lambda v, h: h + v * rs.ifelse(v > 0, a, b).sum(), sequences=x, outputs_info=0.0)
    f = rs.function([x, a, b], totals)
    xs = np.array([1.0, -2.0, 0.5, -1.0])
    for m, n in ((3, 2), (2, 3), (1, 4), (4, 1), (2, 2)):
        p, q = np.arange(1.0, m + 1), np.arange(2.0, n + 2)
        np.testing.assert_allclose(f(xs, p, q), np.cumsum(xs * np.where(xs > 0, p.sum(), q.sum())))


@pytest.mark.parametrize("n", [3, 100])
def test_constants_that_a_step_makes_of_extents(n):
    h = rs.dvector("h")
    with rs.config.override(passes="none"):
        out = rs.loop(lambda h: rs.tanh(0.5 * h + rs.cast(rs.arange(h.shape[0]), "float64")), init=h, n_steps=3)
        f = rs.function([h], out[-1])
    expected = np.ones(n)
    for _ in range(3):
        expected = np.tanh(0.5 * expected + np.arange(n))
    np.testing.assert_allclose(f(np.ones(n)), expected, rtol=1e-12)
