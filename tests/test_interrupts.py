"""Ctrl-C within one long operation: it stops soon, and the function works at the next call."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import rscan as rs

#: Seconds after the signal within which a call has stopped. They take a small part of one; machines may be busy. Without a look at
#: the signal these calls take tens of seconds.
SOON = 6.0


pytestmark = pytest.mark.usefixtures("ctrl_c_interrupts")


def latency(f, *args) -> float:
    """Seconds from the signal, which comes after 0.3 s, to the end of the call."""
    sent = []

    def send():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.3, send)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        f(*args)
        timer.join()
    return time.monotonic() - sent[0]


def much(x):
    for k in range(100):
        x = rs.sin(rs.exp(rs.tanh(x + k)))
    return x


def regular(n):
    """A matrix with every property that an algorithm may need."""
    return np.full((n, n), 0.5) + n * np.eye(n)


def products(m):
    return m @ (m @ m)


KINDS = {
    "matmul": ("matrix", products, lambda: np.ones((7000, 7000))),
    "ints": ("lmatrix", lambda m: m @ m, lambda: np.ones((4000, 4000), dtype=np.int64)),
    "inv": ("matrix", rs.linalg.inv, lambda: regular(3000)),
    "solve": ("matrix", lambda m: rs.linalg.solve(m, m), lambda: regular(3000)),
    "cholesky": ("matrix", rs.linalg.cholesky, lambda: regular(6000)),
    "slogdet": ("matrix", lambda m: rs.linalg.slogdet(m)[1], lambda: regular(5000)),
    "sort": ("vector", rs.sort, lambda: np.random.default_rng(1).random(60_000_000)),
    "elementwise": ("vector", much, lambda: np.ones(20_000_000)),
}


# Elementwise groups alone have other code on the engines.
@pytest.mark.parametrize(("kind", "engine"), [*((kind, "auto") for kind in KINDS), ("elementwise", "eval")])
def test_ctrl_c_stops_an_operation(kind, engine, monkeypatch):
    monkeypatch.setenv("RSCAN_ENGINE", engine)
    ty, build, large = KINDS[kind]
    x = getattr(rs, ty)("x")
    f = rs.function([x], build(x))
    took = latency(f, large())
    print(f"{kind} ({engine}): {took:.2f} s")
    assert took < SOON
    one = np.ones(1 if ty == "vector" else (1, 1), dtype="int64" if ty == "lmatrix" else "float64")
    assert np.isfinite(f(one)).all()


def test_parts_of_products_have_the_bits_of_the_whole():
    a, b = (np.random.default_rng(k).standard_normal(shape) for k, shape in enumerate([(1300, 300), (300, 2100)]))
    x, y = rs.matrix("x"), rs.matrix("y")
    f = rs.function([x, y], x @ y)
    whole = f(a, b)
    rows = np.concatenate([f(a[lo : lo + 100], b) for lo in range(0, 1300, 100)])
    columns = np.concatenate([f(a, np.ascontiguousarray(b[:, lo : lo + 300])) for lo in range(0, 2100, 300)], axis=1)
    assert whole.tobytes() == rows.tobytes() and np.array_equal(whole, columns)


def test_sorting_in_runs_is_stable():
    keys = np.random.default_rng(1).integers(0, 1000, 300_001)
    x = rs.lvector("x")
    order = rs.function([x], rs.argsort(x))(keys)
    assert np.array_equal(order, np.argsort(keys, kind="stable"))
