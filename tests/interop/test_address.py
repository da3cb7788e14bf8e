"""Functions of numbers called by their address: by ctypes, and by SciPy's low-level callables."""

import ctypes
import gc
import pickle
import threading
import weakref

import numpy as np
import pytest

import rscan as rs


def bits(x):
    return np.asarray(x).tobytes()


def likelihood():
    """Of a GARCH loop over fixed data, as a function of two parameters; it takes a vector besides."""
    a, b, r = rs.dscalar("a"), rs.dscalar("b"), rs.dvector("r")
    v, _ = rs.scan(lambda r, v: 0.1 + a * r**2 + b * v, sequences=r, outputs_info=rs.ones(()))
    return rs.function([a, b, r], -0.5 * rs.sum(rs.log(v) + r**2 / v))


DATA = np.random.default_rng(3).normal(size=200)


def test_the_bits_of_a_call():
    f = likelihood().bind(r=DATA)
    called = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_double)(f.address)
    for a, b in np.random.default_rng(1).uniform(0, 0.5, (30, 2)):
        assert bits(called(a, b)) == bits(f.ctypes(a, b)) == bits(f(a, b))
    assert f.address == f.address and f.address_error is None


@pytest.mark.parametrize("n", [0, 1, 2, 7, 20])
def test_any_number_of_arguments(n):
    xs = [rs.dscalar(f"x{i}") for i in range(n)]
    f = rs.function(xs, sum((x * (i + 1.0) for i, x in enumerate(xs)), rs.constant(0.5)))
    values = np.random.default_rng(n).normal(size=n).tolist()
    assert bits(f.ctypes(*values)) == bits(f(*values))


def test_every_dtype_in_its_place():
    x, y, i, j = rs.dscalar("x"), rs.fscalar("y"), rs.lscalar("i"), rs.lscalar("j")
    f = rs.function([i, x, y, j], x * y + rs.cast(i - j, "float64"))
    for values in [(3, 0.1, 0.25, -5), (-(2**40), np.inf, -0.0, 7)]:
        assert bits(f.ctypes(*values)) == bits(f(*values))
    single = rs.function([y, i], y * rs.cast(i, "float32"))
    assert bits(np.float32(single.ctypes(1.7, 3))) == bits(single(np.float32(1.7), 3))
    whole = rs.function([i, j], i * j - 1)
    assert whole.ctypes(-3, 2**33) == -3 * 2**33 - 1


def test_shared_variables_are_read_as_they_are():
    w, x = rs.shared(2.0, "w"), rs.dscalar("x")
    f = rs.function([x], w * x)
    called = f.ctypes
    assert called(3.0) == 6.0
    w.set_value(5.0)
    assert called(3.0) == 15.0


def test_errors_are_nan_and_are_kept():
    x, i = rs.dscalar("x"), rs.lscalar("i")
    f = rs.function([x, i], rs.arange(4.0)[i] * x)
    assert f.ctypes(2.0, 3) == 6.0 and f.address_error is None
    assert np.isnan(f.ctypes(2.0, 9))
    with pytest.raises(IndexError) as caught:
        f(2.0, 9)
    assert str(f.address_error) == str(caught.value) and f.address_error.code == caught.value.code
    assert f.ctypes(2.0, 1) == 2.0 and f.address_error is not None, "the last one that failed"
    whole = rs.function([i], rs.arange(4)[i])
    assert whole.ctypes(9) == -(2**63)


def test_from_eight_threads_at_once():
    f = likelihood().bind(r=DATA)
    called, points = f.ctypes, np.random.default_rng(2).uniform(0, 0.5, (8, 50, 2))
    expected = [[f(a, b).item() for a, b in rows] for rows in points]
    found = [None] * 8

    def work(k):
        found[k] = [called(a, b) for a, b in points[k]]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert found == expected


def test_what_is_called_is_kept():
    x = rs.dscalar("x")
    f = rs.function([x], x * 3.0)
    called, gone = f.ctypes, weakref.ref(f)
    del f
    gc.collect()
    assert gone() is None and called(2.0) == 6.0
    again = pickle.loads(pickle.dumps(rs.function([x], x * 3.0)))
    assert again.ctypes(2.0) == 6.0


def refused():
    x, v = rs.dscalar("x"), rs.dvector("v")
    w = rs.shared(1.0, "w")

    yield [v], rs.sum(v), {}, "input `v` is float64"
    yield [x], x + rs.zeros(3), {}, "its result is float64"
    yield [x], [x, x + 1], {}, "it has 2 results"
    yield [rs.iscalar("k")], rs.constant(1.0), {}, "input `k` is int32"
    yield [x], x > 0, {}, "its result is bool"
    yield [x], x * w, {w: w + x}, "it updates shared variables"
    yield [x], x * rs.random.Stream(1).uniform(), {}, "it updates shared variables"
    yield [x], rs.Print("x")(x), {}, "it has operations of users"


def test_others_have_no_address():
    for inputs, output, updates, text in refused():
        f = rs.function(inputs, output, updates=updates, on_unused_input="ignore")
        for ask in (lambda f=f: f.address, lambda f=f: f.ctypes, f.lowlevel, f.__wrapper_address__):
            with pytest.raises(rs.errors.UnsupportedError, match="the function has no address: " + text) as caught:
                ask()
            assert caught.value.code == "E0541"


def test_quad_calls_a_loop():
    integrate = pytest.importorskip("scipy.integrate", reason="scipy is not installed")
    f = likelihood().bind(r=DATA)
    two = integrate.quad(f.lowlevel(), 0.05, 0.3, args=(0.5,))
    assert two == integrate.quad(lambda a, b: f(a, b).item(), 0.05, 0.3, args=(0.5,))
    one = f.bind(b=0.5)
    assert integrate.quad(one.lowlevel(), 0.05, 0.3) == two
    assert one.lowlevel().signature == "double (double)" and f.lowlevel().signature == "double (int, double *, void *)"
    # One number too many is NaN, and says why.
    wrong = f.lowlevel()
    with pytest.warns(integrate.IntegrationWarning):
        assert np.isnan(integrate.quad(wrong, 0.0, 1.0, args=(0.5, 1.0))[0])
    assert f.address_error.code == "E0504"


def test_filters_of_images():
    ndimage = pytest.importorskip("scipy.ndimage", reason="scipy is not installed")
    cells = rs.dscalars("a b c d")
    f = rs.function(cells, rs.sqrt(sum(c**2 for c in cells)) - rs.maximum(cells[0], cells[3]))
    image = np.random.default_rng(4).normal(size=(9, 7))
    found = ndimage.generic_filter(image, f.lowlevel("filter"), size=(2, 2))
    assert bits(found) == bits(ndimage.generic_filter(image, lambda cells: f(*cells).item(), size=(2, 2)))


def test_low_level_callables_have_one_dtype_and_kinds():
    pytest.importorskip("scipy", reason="scipy is not installed")
    y = rs.fscalar("y")
    f = rs.function([y], rs.cast(y, "float64"))
    for kind in ("numbers", "filter"):
        with pytest.raises(rs.errors.UnsupportedError, match="all of its numbers are to be float64 here, and one is float32"):
            f.lowlevel(kind)
    with pytest.raises(ValueError, match="kind is 'numbers' or 'filter'"):
        rs.function([rs.dscalar("x")], 1.0, on_unused_input="ignore").lowlevel("image")
