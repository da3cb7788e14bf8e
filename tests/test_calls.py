"""The way of arguments into compiled functions and of results out of them: memory, forms, fixed arguments, threads."""

import copy
import gc
import pickle
import signal
import sys
import threading
import time

import numpy as np
import pytest
from helpers import DTYPES, same, symbol

import rscan as rs
import rscan.theano as theano
import rscan.theano.tensor as T

#: Elements of arrays that are copied, read in place, and large enough for their memory to come back.
SIZES = (0, 1, 3, 255, 4096, 300_000)


def values(dtype, n):
    return (np.arange(n) % 2 if dtype == "bool" else np.arange(n) % 100).astype(dtype)


def layouts(a):
    """The same values in every layout that NumPy has."""
    swapped = a.astype(a.dtype.newbyteorder())
    raw = np.zeros(a.nbytes + 1, "u1")
    unaligned = raw[1:].view(a.dtype)
    unaligned[:] = a
    fixed = a.copy()
    fixed.flags.writeable = False
    spread = np.repeat(a, 3)[::3]
    return {
        "plain": a,
        "read-only": fixed,
        "strided": spread,
        "backwards": a[::-1].copy()[::-1],
        "swapped": swapped,
        "unaligned": unaligned,
    }


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_every_dtype_and_layout(dtype, n):
    a = values(dtype, n)
    x = symbol(a)
    f = rs.function([x], [x, x.reshape((-1, 1)), x[::-1]])
    for name, given in layouts(a).items():
        before = given.copy()
        got = f(given)
        same(got, [a, a.reshape(-1, 1), a[::-1]])
        assert all(out.flags.writeable and not np.shares_memory(out, given) for out in got), name
        for out in got:
            out[...] = 1
        assert np.array_equal(given, before), name
    if a.size:
        assert np.array_equal(f(a)[0], a)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rank_zero(dtype):
    a = np.array(1, dtype)
    x = symbol(a)
    f = rs.function([x], x)
    python = bool(a) if dtype == "bool" else float(a) if dtype[0] == "f" else int(a)
    for value in (a, a[()], a.astype(a.dtype.newbyteorder()), python, True):
        same(f(value), a)
    assert f(a) is not a


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "bool"])
def test_numbers_become_what_conversion_makes_of_them(dtype):
    """Numbers that are taken as they come give what `np.asarray` and a cast give, and the same ones are refused."""
    x = rs.tensor(dtype, ())
    f, slow = rs.function([x], x), rs.function([rs.In(x, name="x")], x)
    numbers = [0, 1, -1, 127, 128, 255, 256, -129, 2**24, 2**24 + 1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2**64, 10**30]
    numbers += [0.0, -0.0, 0.5, 0.1, 1e300, np.inf, -np.inf, np.nan, True, False]
    numbers += [np.float32(0.5), np.float64(0.1), np.int8(-3), np.uint64(2**63), np.longlong(7), np.bool_(True), np.float16(0.5)]
    for number in numbers:
        try:
            expected = slow(x=number)
        except TypeError as error:
            with pytest.raises(TypeError) as found:
                f(number)
            assert found.value.code == error.code == "E0504", number
        else:
            got = f(number)
            assert got.dtype == expected.dtype == dtype and got.tobytes() == expected.tobytes(), number


def test_strict_inputs_take_their_dtype_only():
    x, n = rs.scalar("x"), rs.lscalar("n")
    f = rs.function([rs.In(x, strict=True), rs.In(n, strict=True)], x * n)
    assert f(0.5, 4) == f(np.float64(0.5), np.array(4)) == 2
    for bad in ((1, 4), (np.float32(1), 4), (0.5, np.int32(4)), (0.5, True)):
        with pytest.raises(TypeError, match="strict"):
            f(*bad)


def test_bytes_of_bools_may_be_anything():
    x = rs.tensor("bool", (None,), "x")
    f = rs.function([x], [x, ~x, x.astype("int64")])
    for n in (4, 4096):
        a = np.full(n, 2, "u1").view(bool)
        same(f(a), [np.full(n, True), np.full(n, False), np.ones(n, "int64")])
        same(f(x=a), f(a))


def test_classes_derived_from_arrays():
    x = rs.vector("x")
    f = rs.function([x], x * 2)
    derived = np.arange(400.0).view(np.recarray)
    same(f(derived), np.arange(400.0) * 2)
    assert type(f(derived)) is np.ndarray
    with pytest.raises(rs.RscanTypeError, match="lose its mask"):
        f(np.ma.masked_array(np.arange(400.0), mask=np.arange(400) % 2 == 0))


@pytest.mark.parametrize("n", SIZES)
def test_changes_after_the_call_change_nothing(n):
    x = rs.vector("x")
    s = rs.shared(np.zeros(n), "s")
    keep = rs.function([x], [x, s], updates={s: x})
    a = np.ones(n)
    first, _ = keep(a)
    a[...] = 5
    same([first, s.get_value()], [np.ones(n), np.ones(n)])
    first[...] = 6
    _, second = keep(a)
    same([second, s.get_value()], [np.ones(n), np.full(n, 5.0)])
    second[...] = 7
    s.get_value()[...] = 8
    same(keep(a)[1], np.full(n, 5.0))
    s.set_value(a)
    a[...] = 9
    same(s.get_value(), np.full(n, 5.0))
    c = rs.constant(a)
    a[...] = 10
    out = rs.function([], c)()
    same(out, np.full(n, 9.0))
    out[...] = 11
    same(rs.function([], c)(), np.full(n, 9.0))


@pytest.mark.parametrize("n", SIZES)
def test_equal_outputs_are_apart(n):
    x = rs.vector("x")
    f = rs.function([x], [x + 1, x + 1, (x + 1).reshape((-1,)), x, x])
    outs = f(np.zeros(n))
    for i, out in enumerate(outs):
        out[...] = i
    same(outs, [np.full(n, float(i)) for i in range(5)])


# Memory that comes back.


def address(a):
    return a.__array_interface__["data"][0]


def test_memory_of_large_results_comes_back():
    x = rs.vector("x")
    f = rs.function([x], x)
    a = np.arange(234_567.0)
    f.free()
    first = f(a)
    at = address(first)
    view = memoryview(first[1000:])
    del first
    second = f(a + 1)
    assert address(second) != at and view[0] == 1000.0
    view.release()
    del view
    gc.collect()
    third = f(a + 2)
    assert address(third) == at
    same([second, third], [a + 1, a + 2])
    third[...] = np.nan
    del third
    same(f(a[:-100]), a[:-100])
    f.free()


def test_kept_memory_is_bounded():
    n = 1 << 20
    x = rs.vector("x")
    f = rs.function([x], x)
    f.free()
    a = np.zeros(n)
    held = [f(a) for _ in range(40)]
    assert len({address(h) for h in held}) == 40
    del held
    assert 0 < rs._native.release() <= 256 << 20
    assert rs._native.release() == 0


def test_large_results_through_pickle_and_copy():
    x = rs.vector("x")
    out = rs.function([x], x)(np.arange(200_000.0))
    for other in (pickle.loads(pickle.dumps(out)), copy.deepcopy(out), out.copy()):
        same(other, out)
        assert not np.shares_memory(other, out)


# References.


def test_references_do_not_leak():
    x, y = rs.vector("x"), rs.scalar("y")
    # A name that nobody else in the process has: others take and drop references to a common word.
    total = "the total of these calls"
    f = rs.function([x, y], {total: (x * y).sum(), "x": x})
    g = f.bind(y=2.0)
    arrays = [np.ones(n) for n in (3, 4096, 300_000)]
    number = np.float64(1.25)
    buffers = {total: np.empty(()), "x": np.empty(4096)}

    def calls():
        for a in arrays:
            f(a, number), f(x=a, y=number), g(a), g(x=a)
        f(arrays[1], number, out=buffers)
        with pytest.raises(TypeError):
            f(arrays[0], number, arrays[1])
        with pytest.raises(TypeError):
            f(arrays[1], "no")

    calls()
    gc.collect()
    watched = [*arrays, number, np.dtype("float64"), *buffers.values(), total]
    before = [sys.getrefcount(w) for w in watched]
    for _ in range(20):
        calls()
    gc.collect()
    after = [sys.getrefcount(w) for w in watched]
    grown = [a - b for a, b in zip(after, before, strict=True)]
    # The dtype belongs to all: a few references more or less are NumPy's own.
    assert all(abs(n) <= (3 if isinstance(w, np.dtype) else 0) for n, w in zip(grown, watched, strict=True)), grown


def test_arguments_are_let_go_after_an_error():
    x, i = rs.vector("x"), rs.lscalar("i")
    f = rs.function([x, i], x[i])
    a = np.ones(4096)
    before = sys.getrefcount(a)
    for _ in range(5):
        with pytest.raises(IndexError):
            f(a, 10_000)
    gc.collect()
    assert sys.getrefcount(a) == before


# Memory for the outputs.


def test_outputs_in_given_memory():
    x = rs.vector("x")
    for n in SIZES:
        a, buffer = np.arange(float(n)), np.full(n, np.nan)
        assert rs.function([x], x * 2)(a, out=buffer) is buffer
        same(buffer, a * 2)
        pair = [np.full(n, np.nan), None]
        assert rs.function([x], [x, x + 1])(a, out=pair) is pair
        same(pair[0], a)
        both = {"b": np.full(n, np.nan), "a": np.empty(())}
        rs.function([x], {"a": x.sum(), "b": x - 1})(a, out=both)
        same([both["a"], both["b"]], [a.sum(), a - 1])
    rows = np.zeros((5, 7))
    rs.function([x], x)(np.arange(7.0), out=rows[3])
    same(rows[3], np.arange(7.0))
    assert not rows[:3].any() and not rows[4].any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_in_given_memory(dtype):
    a = values(dtype, 5)
    x = symbol(a)
    same(rs.function([x], x)(a, out=np.zeros(5, dtype)), a)


def test_unfit_memory_is_refused():
    x = rs.vector("x")
    count = rs.shared(0, "count")
    f = rs.function([x], x * 2, updates={count: count + 1}, name="double")
    a = np.ones(4096)
    fixed = np.empty(4096)
    fixed.flags.writeable = False
    wide = np.empty(8192)
    for bad, word in [
        (np.empty(4096, "float32"), "float64"),
        (np.empty(4096, ">f8"), "float64"),
        (wide[::2], "C order"),
        (layouts(np.empty(4096))["unaligned"], "C order"),
        (fixed, "read-only"),
        (np.empty((4096, 1)), "axes"),
        (np.empty(4095), r"\(4096,\)"),
        ([np.empty(4096)], "array"),
        (3.0, "array"),
        (a, "argument"),
    ]:
        with pytest.raises(TypeError, match=word) as error:
            f(a, out=bad)
        assert error.value.code == "E0515" and "double" in str(error.value) and "test_calls.py" in str(error.value)
    with pytest.raises(TypeError, match="argument"):
        f(wide[:4096], out=wide[100:4196])
    assert count.get_value() == 0 and np.array_equal(a, np.ones(4096))
    f(wide[:4096], out=wide[4096:])
    assert count.get_value() == 1
    pair = rs.function([x], [x, x + 1])
    for bad, word in [
        (np.empty(4096), "list of 2"),
        ([np.empty(4096)], "list of 2"),
        ([wide[:4096], wide[1:4097]], "another output"),
        ([np.empty(4096), np.empty(3)], "output 1"),
    ]:
        with pytest.raises(TypeError, match=word):
            pair(a, out=bad)
    named = rs.function([x], {"u": x})
    for bad in (np.empty(4096), {"v": np.empty(4096)}, {}):
        with pytest.raises(TypeError, match=r"dict|key"):
            named(a, out=bad)


def test_an_input_may_be_called_out():
    out = rs.vector("out")
    same(rs.function([out], out * 2)(out=[1.0, 2.0]), np.array([2.0, 4.0]))


def test_names_on_both_ways():
    """Named arguments that need no conversion go the quick way; the other way gives the same."""
    x, y, z = rs.vector("x"), rs.scalar("y"), rs.scalar("z")
    f = rs.function([x, y, z], x * y - z, name="f")
    a, buffer = np.arange(400.0), np.empty(400)
    expected = a * 2 - 3
    for got in (f(a, z=3.0, y=2.0), f(z=3.0, y=2.0, x=a), f(a, 2.0, z=3), f(a, z=np.int8(3), y=2), f(list(a), z=3.0, y=2.0)):
        same(got, expected)
    assert f(a, 2.0, z=3.0, out=buffer) is buffer and f(a, 2, z=np.int8(3), out=None) is not buffer
    same(buffer, expected)
    for args, named, word in [
        ((a, 2.0), {"y": 2.0}, "twice"),
        ((a, 2.0), {}, "needs input `z`"),
        ((a, 2.0), {"w": 1.0}, "unexpected keyword argument 'w'"),
        ((a, 2.0, 3.0), {"w": 1.0}, "unexpected keyword argument 'w'"),
        ((a, 2.0, 3.0), {"z": 1.0}, "twice"),
        ((a, 2.0, 3.0, 4.0), {}, "got 4"),
        ((a, 2.0, 3.0, 4.0), {"out": buffer}, "got 4"),
        ((a,), {"z": 3.0, "out": buffer}, "needs input `y`"),
    ]:
        with pytest.raises(TypeError, match=word) as error:
            f(*args, **named)
        assert error.value.code == "E0508" and "test_calls.py" in str(error.value)
    twins = rs.function([rs.scalar("t"), rs.scalar("t")], [], on_unused_input="ignore")
    with pytest.raises(TypeError, match="needs"):
        twins(t=1.0)


# Fixed arguments.


def test_fixed_arguments():
    x, y, z = rs.vector("x"), rs.scalar("y"), rs.lscalar("z")
    f = rs.function([x, y, rs.In(z, value=100)], x * y + z)
    a = np.arange(4096.0)
    g = f.bind(a, z=1)
    expected = a * 2 + 1
    a[...] = -1
    for got in (g(2.0), g(2), g(y=np.float32(2)), f.bind(y=2).bind(np.arange(4096.0), z=1)(), f.bind(z=1)(np.arange(4096.0), 2)):
        same(got, expected)
    same(f.bind(y=2.0)([1.0]), np.array([102.0]))
    got = g(2.0, out=np.empty(4096))
    same(got, expected)
    assert [slot.name for slot in g.inputs] == ["y"] and "1 fixed" in repr(f.bind(a))
    for args, named, word in [((1.0, 2.0), {}, "got 2"), ((), {}, "needs"), ((), {"x": a}, "unexpected keyword argument 'x'")]:
        with pytest.raises(TypeError, match=word):
            g(*args, **named)
    with pytest.raises(TypeError, match="unexpected keyword argument 'w'"):
        f.bind(w=1)
    with pytest.raises(TypeError, match="takes float64"):
        f.bind(np.zeros((2, 2)))
    same(f(np.ones(2), 2.0, 3), np.array([5.0, 5.0]))


def test_an_output_that_is_a_fixed_argument_is_a_copy():
    x = rs.vector("x")
    for n in SIZES:
        g = rs.function([x], x).bind(np.ones(n))
        g()[...] = 5
        same(g(), np.ones(n))


def test_fixed_arguments_travel():
    x, s = rs.vector("x"), rs.shared(2.0, "s")
    g = rs.function([x, y := rs.scalar("y")], {"out": x * y * s}, name="f").bind(np.arange(3.0))
    for other in (pickle.loads(pickle.dumps(g)), copy.deepcopy(g), copy.copy(g)):
        same(other(2.0)["out"], np.arange(3.0) * 4)
        assert other.name == "f"


def test_profiles_count_calls_of_both_kinds():
    x, y = rs.vector("x"), rs.scalar("y")
    f = rs.function([x, y], x * y, profile=True)
    f(np.ones(2), 2.0)
    f([1.0], y=1)
    f.bind(y=3.0)(np.ones(2))
    assert f.profile.calls == 3 == f.bind(y=1.0).profile.calls


# Forms.


def test_forms_are_the_same_on_both_ways():
    x = rs.vector("x")
    for outputs in (x, [x], (x, x + 1), {"a": x, 3: x + 1}, [], None, {}):
        f = rs.function([x], outputs, on_unused_input="ignore")
        quick, slow = f(np.ones(3)), f(x=np.ones(3))
        assert type(quick) is type(slow)
        if isinstance(quick, dict):
            assert list(quick) == list(slow) == list(outputs)
            quick, slow = list(quick.values()), list(slow.values())
        same(quick, slow)


def test_theanos_functions():
    x, y = T.dvector("x"), T.dscalar("y")
    f = theano.function([x, theano.In(y, value=1.0)], [x * y, x + y], name="f", trust_input=True)
    same(f(np.ones(2), 3.0), [np.full(2, 3.0), np.full(2, 4.0)])
    same(f(np.ones(2), output_subset=[1]), [np.full(2, 2.0)])
    same(f(np.ones(2), output_subset=[0]), [np.full(2, 1.0)])
    counter = theano.function([theano.In(y, value=0.0, update=y + 1)], y)
    assert [float(counter()) for _ in range(3)] == [0, 1, 2]
    assert float(counter(7.0)) == 7 and float(counter()) == 8
    with pytest.raises(rs.errors.UnsupportedError):
        counter.bind(1.0)
    f.free()


# Threads.


def test_one_function_in_many_threads():
    x, n = rs.vector("x"), rs.lscalar("n")
    f = rs.function([x, n], rs.scan(lambda h: h + 1.0, outputs_info=x, n_steps=n)[0][-1])
    wrong = []

    def work(k):
        for i in range(30):
            size = (3, 300, 200_000)[(i + k) % 3]
            if not np.array_equal(f(np.full(size, float(k)), 3), np.full(size, k + 3.0)):
                wrong.append((k, size))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


def test_arguments_changed_by_another_thread_do_no_harm():
    x, i = rs.vector("x"), rs.lvector("i")
    f = rs.function([x, i], [x[i % 1000], x.sum(), rs.sort(x)])
    a, idx = np.zeros(100_000), np.zeros(100_000, "int64")
    stop = threading.Event()

    def scribble():
        k = 0
        while not stop.is_set():
            k += 1
            a[...] = k
            idx[...] = k * 7919

    thread = threading.Thread(target=scribble)
    thread.start()
    try:
        for _ in range(30):
            taken, _, ordered = f(a, idx)
            assert taken.shape == idx.shape and ordered.shape == a.shape
    finally:
        stop.set()
        thread.join()


def test_other_threads_run_during_a_call():
    """Even where the last calls were brief, so that this one kept the interpreter lock."""
    x, n = rs.scalar("x"), rs.lscalar("n")
    f = rs.function([x, n], rs.scan(lambda h: rs.sin(h) + rs.cos(h), outputs_info=x, n_steps=n)[0][-1])
    steps = 20_000
    while True:
        start = time.perf_counter()
        f(0.5, steps)
        if (long := time.perf_counter() - start) > 0.3:
            break
        steps *= 2
    for _ in range(100):
        f(0.5, 1)
    ticks = []
    thread = threading.Thread(target=lambda: [(ticks.append(time.perf_counter()), time.sleep(0.01)) for _ in range(int(long * 50))])
    thread.start()
    start = time.perf_counter()
    f(0.5, steps)
    end = time.perf_counter()
    thread.join()
    assert sum(start < t < end for t in ticks) >= 3


def test_a_tiny_function_can_be_stopped():
    x, n = rs.scalar("x"), rs.lscalar("n")
    f = rs.function([x, n], rs.scan(lambda h: rs.sin(h) + rs.cos(h), outputs_info=x, n_steps=n)[0][-1])
    for _ in range(100):
        f(0.5, 1)
    timer = threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        timer.start()
        start = time.perf_counter()
        with pytest.raises(KeyboardInterrupt):
            f(0.5, 10**9)
        assert time.perf_counter() - start < 1.5
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    same(f(0.0, 1), np.asarray(1.0))
