"""Calls of compiled functions: stopping them, threads, commits, awkward arguments."""

import _thread
import signal
import threading

import numpy as np
import pytest

import rscan as rs

FOREVER = 2**40


def counter(nested=False):
    """A function that adds 1 to a shared variable in each of n steps."""
    n, total = rs.lscalar("n"), rs.shared(0.0, name="total")

    def step():
        if nested:
            inner, _ = rs.scan(lambda x: x + 1.0, outputs_info=total * 1.0, n_steps=n)
            return {total: inner[-1]}
        return {total: total + 1.0}

    _, updates = rs.scan(step, n_steps=2 if nested else n)
    return rs.function([n], [], updates=updates), total


@pytest.fixture(autouse=True)
def ctrl_c_interrupts():
    """As in a terminal: a process that was started in the background ignores the signal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt_soon():
    timer = threading.Timer(0.3, _thread.interrupt_main, [signal.SIGINT])
    timer.start()
    return timer


@pytest.mark.parametrize("nested", [False, True])
def test_ctrl_c_stops_a_loop_and_commits_nothing(nested):
    count, total = counter(nested)
    timer = interrupt_soon()
    with pytest.raises(KeyboardInterrupt):
        count(FOREVER)
    timer.join()
    assert total.get_value() == 0.0
    count(3)
    assert total.get_value() == (6.0 if nested else 3.0)


def test_ctrl_c_stops_a_gradient():
    n, x = rs.lscalar("n"), rs.dscalar("x")
    last = rs.scan(lambda h: rs.sin(h), outputs_info=x, n_steps=n)[0][-1]
    slope = rs.function([n, x], rs.grad(last, x))
    timer = interrupt_soon()
    with pytest.raises(KeyboardInterrupt):
        slope(20_000_000, 0.5)
    timer.join()
    assert slope(1, 0.5) == pytest.approx(np.cos(0.5), rel=1e-15)


def test_other_threads_run_during_a_call():
    count, _ = counter()
    seen, stop = [], threading.Event()

    def watch():
        while not stop.wait(0.001):
            seen.append(1)

    thread = threading.Thread(target=watch)
    thread.start()
    while len(seen) < 3:
        count(2000)
    stop.set()
    thread.join()
    assert len(seen) >= 3


def test_updates_from_many_threads_are_all_there():
    count, total = counter()
    threads = [threading.Thread(target=lambda: [count(5) for _ in range(40)]) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert total.get_value() == 6 * 40 * 5


def test_commits_are_seen_whole():
    a, b = rs.shared(1.0, name="a"), rs.shared(-1.0, name="b")
    move = rs.function([], [], updates={a: a + 1.0, b: b - 1.0})
    sums = rs.function([], a + b)
    stop = threading.Event()

    def work():
        while not stop.is_set():
            move()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert {float(sums()) for _ in range(2000)} == {0.0}
    finally:
        stop.set()
        thread.join()


def test_a_failing_call_commits_nothing():
    i, total = rs.lscalar("i"), rs.shared(np.zeros(3), name="total")
    f = rs.function([i], total[i], updates={total: total + 1.0})
    with pytest.raises(IndexError):
        f(7)
    assert total.get_value().tolist() == [0, 0, 0]


def test_updates_use_the_values_before_the_call():
    a, b = rs.shared(1.0, name="a"), rs.shared(2.0, name="b")
    rs.function([], [], updates=[(a, b), (b, a)])()
    assert (a.get_value(), b.get_value()) == (2.0, 1.0)


def awkward(x):
    """The same numbers in every layout that NumPy knows."""
    wide = np.zeros((2 * x.shape[0] + 1, 3 * x.shape[1] + 1))
    wide[1::2, 1::3] = x
    frozen = x.copy()
    frozen.flags.writeable = False
    return {
        "strided": wide[1::2, 1::3],
        "reversed": x[::-1, ::-1].copy()[::-1, ::-1],
        "fortran": np.asfortranarray(x),
        "byte-swapped": x.astype(x.dtype.newbyteorder()),
        "read-only": frozen,
        "subclass": x.view(np.matrix) if x.ndim == 2 else x,
        "unaligned": np.frombuffer(b"\0" + x.tobytes(), dtype=np.uint8)[1:].view(np.float64).reshape(x.shape),
    }


def test_arguments_in_every_layout():
    xs, h0 = rs.dmatrix("xs"), rs.dvector("h0")
    out = rs.scan(lambda x, h: rs.tanh(x + 0.5 * h), sequences=xs, outputs_info=h0)[0]
    f = rs.function([xs, h0], [out, rs.grad(out.sum(), xs)])
    x = np.random.default_rng(3).standard_normal((4, 3))
    want = f(x, np.ones(3))
    for name, other in awkward(x).items():
        before = np.array(other, copy=True)
        got = f(other, np.ones(3))
        assert np.array_equal(np.asarray(other), before), name
        for g, w in zip(got, want, strict=True):
            assert np.array_equal(g, w), name


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (5,), (0, 3), (3, 0), (1, 1)])
def test_every_dtype_and_shape_passes_through_a_loop(dtype, shape):
    x = (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2).astype(dtype)
    v = rs.tensor(dtype, (None,) * len(shape), name="v")
    rows, _ = rs.scan(lambda s: s, outputs_info=v, n_steps=3)
    got = rs.function([v], rows)(x)
    assert got.dtype == x.dtype and got.shape == (3, *shape)
    assert np.array_equal(got, np.stack([x] * 3))


def test_results_belong_to_the_caller():
    x = rs.dvector("x")
    f = rs.function([x], [x, x + 0.0])
    given = np.ones(3)
    same, other = f(given)
    same[0] = 5.0
    other[1] = 7.0
    assert given.tolist() == [1, 1, 1]
    kept = rs.shared(np.ones(2), name="kept")
    rs.function([], kept)()[0] = 9.0
    kept.get_value()[0] = 9.0
    assert kept.get_value().tolist() == [1, 1]
