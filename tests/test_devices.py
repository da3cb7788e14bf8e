"""Functions on a device: the bits of the processor, its errors, and what is said of where things ran."""

import os
import pickle
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import rscan as rs

# Where no card is asked for: one that a driver without a card interprets.
os.environ.setdefault("RSCAN_CUDA_DRIVER", "fake")
DEVICES = [d.name for d in rs.devices() if d.name != "cpu"]
#: The last of each kind: for wgpu the program that runs on the processor, where there is one.
EACH = {name.split(":")[0]: name for name in DEVICES}
needs_wgpu = pytest.mark.skipif("wgpu" not in EACH, reason="wgpu: not run (no device)")


@pytest.fixture(params=["cuda", pytest.param("wgpu", marks=needs_wgpu)])
def device(request):
    """The name of a device."""
    return EACH[request.param]


def test_a_device_is_there_where_it_is_required():
    assert "cuda" in EACH and ("wgpu" in EACH or "RSCAN_REQUIRE_WGPU" not in os.environ)


def test_the_processor_comes_first():
    first = rs.devices()[0]
    assert (first.name, str(first), first.lacks) == ("cpu", "cpu: the processor", [])


@pytest.mark.parametrize("name", ["tpu", "wgpu:99", "wgpu:x", "cuda:99", "cuda:x", "cpu:1"])
def test_a_device_that_is_not_there(name):
    x = rs.dscalar("x")
    with pytest.raises(rs.DeviceError) as info:
        rs.function([x], x + 1, device=name)
    assert info.value.code == "E0521"


def test_the_processor_by_name():
    x = rs.dscalar("x")
    f = rs.function([x], x + 1, device="cpu")
    assert f(1.0) == 2.0 and f.explain().device is None and f.explain().places == []


def test_without_a_driver():
    program = """
import rscan as rs
x = rs.dscalar("x")
assert rs.function([x], x + 1)(1.0) == 2.0
try:
    import ctypes
    ctypes.CDLL("libcuda.so.1")
    kinds = ["wgpu"]
except OSError:
    kinds = ["cuda", "wgpu"]
    assert [d.name for d in rs.devices()] == ["cpu"]
for kind in kinds:
    try:
        rs.function([x], x + 1, device=kind)
    except rs.DeviceError as error:
        assert error.code == "E0521" and "no driver" in str(error), error
    else:
        raise AssertionError("there is no device")
"""
    env = {**os.environ, "VK_DRIVER_FILES": "/nowhere", "VK_ICD_FILENAMES": "/nowhere"}
    del env["RSCAN_CUDA_DRIVER"]
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def both(on, inputs, outputs, *args, **named):
    """The results on the device and on the processor, which are the same bits; the function on the device."""
    device = rs.function(inputs, outputs, device=on, **named)
    cpu = rs.function(inputs, outputs, **named)
    for _ in range(2):
        found, law = device(*args), cpu(*args)
        pairs = zip(found, law, strict=True) if isinstance(outputs, list) else [(found, law)]
        for got, want in pairs:
            np.testing.assert_array_equal(got, want)
    return device


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "uint16", "int64", "bool"])
def test_elementwise(device, dtype):
    x = rs.tensor(dtype, [None, None], "x")
    y = rs.where(x > 0, x * x, -x) if dtype != "bool" else rs.logical_not(x)
    values = (np.arange(35).reshape(5, 7) - 17).astype(dtype)
    f = both(device, [x], [y], values)
    [place] = f.explain().places
    assert place.device == device and place.crossed == [values.nbytes, 0] and f.explain().crossed == [values.nbytes, values.nbytes]


def test_a_wide_loop_and_its_gradient(device):
    x, a = rs.dmatrix("x"), rs.dvector("a")
    out = rs.loop(lambda x, h: rs.tanh(h * a + x), over=x, init=rs.zeros_like(a))
    cost = rs.sum(out**2)
    rng = np.random.default_rng(1)
    f = both(device, [x, a], [out, rs.grad(cost, a)], rng.normal(size=(40, 70)), rng.normal(size=70))
    plans = f.explain()
    assert plans.device == device
    assert all(device in loop.variants[0].engine and loop.variants[0].crossed is not None for loop in plans.loops), str(plans)
    assert all(n > 0 for n in plans.crossed)
    assert f"loops on {device}" in str(plans) and "bytes to the device" in str(plans)


def test_a_network_and_its_gradient(device):
    x, w, u = rs.tensor3("x"), rs.dmatrix("w"), rs.dmatrix("u")
    out = rs.loop(lambda x, h: rs.tanh(x @ w + h @ u), over=x, init=rs.zeros((3, 6)))
    cost = rs.sum(out[-1] ** 2)
    rng = np.random.default_rng(2)
    args = rng.normal(size=(20, 3, 4)), rng.normal(size=(4, 6)), rng.normal(size=(6, 6)) / 3
    f = both(device, [x, w, u], [cost, *rs.grad(cost, [w, u])], *args)
    assert all(device in loop.variants[0].engine for loop in f.explain().loops)


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 301])
def test_an_lstm_and_its_gradient(device, steps):
    x, u = rs.tensor3("x"), rs.dmatrix("u")

    def step(x, h, c):
        a = x + h @ u
        i, f, g, o = (a[:, 3 * k : 3 * k + 3] for k in range(4))
        c = rs.sigmoid(f) * c + rs.sigmoid(i) * rs.tanh(g)
        return dict(h=rs.sigmoid(o) * rs.tanh(c), c=c)

    out = rs.loop(step, over=x, init=dict(h=rs.zeros((2, 3)), c=rs.ones((2, 3))))
    rng = np.random.default_rng(4)
    args = rng.normal(size=(steps, 2, 12)), rng.normal(size=(3, 12)) / 2
    both(device, [x, u], [out.h, rs.sum(out.c), *rs.grad(rs.sum(out.h**2), [x, u])], *args)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_steps_of_several_blocks(device, dtype):
    x, u, v = rs.tensor(dtype, [None] * 3, "x"), rs.tensor(dtype, [None] * 2, "u"), rs.tensor(dtype, [None] * 2, "v")

    def step(x, h, c):
        c = rs.tanh(h @ u + x) * 0.5 + c
        return dict(h=rs.tanh(c @ v) - h[:, ::-1], c=c)

    zero = rs.zeros((5, 90), dtype)
    out = rs.loop(step, over=x, init=dict(h=zero, c=zero))
    rng = np.random.default_rng(6)
    args = [rng.normal(size=shape).astype(dtype) / 9 for shape in ((7, 5, 90), (90, 90), (90, 90))]
    f = both(device, [x, u, v], [out.h, out.c[-1]], *args)
    assert device in f.explain().loops[0].variants[0].engine


def gates(width, slices):
    """A step of a gate per slice of a product's columns."""

    def step(x, h, c, u, _):
        a = x[:, : 4 * width] + h @ u
        i, f, g, o = (a[:, k : k + width] for k in slices)
        c = rs.sigmoid(f) * c + rs.sigmoid(i) * rs.tanh(g)
        return rs.sigmoid(o) * rs.tanh(c), c

    return step


def two_products(x, h, c, u, v):
    """A GRU, whose second product reads what follows the first one."""
    n = c.shape[1]
    a = rs.sigmoid(x + h @ u)
    r, z = a[:, :n], a[:, n : 2 * n]
    return z * h + (1 - z) * rs.tanh(x[:, :n] + (r * h) @ v), c


def weights_that_change(x, h, c, u, v):
    """The state `c` is the right side of a product."""
    h = rs.tanh(x[:, : c.shape[1]] + h @ c)
    return h, c * 0.9 + v * rs.mean(h)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows, width", [(1, 32), (3, 24), (17, 8), (33, 40)])
@pytest.mark.parametrize("cell", ["gates", "shifted gates", "two products", "weights that change"])
def test_what_follows_a_product_in_a_step(device, cell, rows, width, dtype):
    slices = [k * width - (cell == "shifted gates" and k > 1) for k in range(4)]
    cells = {"two products": two_products, "weights that change": weights_that_change}
    step = cells.get(cell, gates(width, slices))
    x, h0, c0, u, v = rs.tensor(dtype, [None] * 3, "x"), *(rs.tensor(dtype, [None] * 2, name) for name in ("h0", "c0", "u", "v"))
    out = rs.loop(lambda x, h, c: dict(zip("hc", step(x, h, c, u, v), strict=True)), over=x, init=dict(h=h0, c=c0))
    rng = np.random.default_rng(rows)
    square = cell == "weights that change"
    shapes = [(4, rows, 4 * width), (rows, width), (width if square else rows, width), (width, 4 * width), (width, width)]
    args = [rng.normal(size=shape).astype(dtype) / 4 for shape in shapes]
    f = both(device, [x, h0, c0, u, v], [out.h[-1], out.c[-1]], *args, on_unused_input="ignore")
    assert f.explain().loops[0].variants[0].engine == f"steps of {device} kernels"
    cost = rs.sum(out.h[-1] ** 2) + rs.sum(out.c[-1])
    both(device, [x, h0, c0, u, v], rs.grad(cost, [h0, c0]), *args, on_unused_input="ignore")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("inner", [255, 256, 257, 515])
def test_long_chains_of_products_in_a_step(device, inner, dtype):
    """Inner extents of one block of the law, and of several."""
    h0, u, v = (rs.tensor(dtype, [None] * 2, name) for name in ("h0", "u", "v"))
    out = rs.loop(lambda h, u, v: rs.tanh(h @ u) @ v, init=h0, n_steps=3, given=[u, v])
    rng = np.random.default_rng(inner)
    args = [rng.normal(size=shape).astype(dtype) / 9 for shape in ((2, 12), (12, inner), (inner, 12))]
    both(device, [h0, u, v], [out[-1]], *args)


@pytest.mark.parametrize("shape, axis", [((40, 300), 1), ((300, 40), 0), ((7, 11, 530), 2), ((7, 11, 530), (0, 1)), ((9, 1000), None)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
def test_sums_of_many_rows(device, shape, axis, dtype):
    x = rs.tensor(dtype, [None] * len(shape), "x")
    outputs = [rs.sum(x, axis=axis), rs.max(x * 2, axis=axis)]
    both(device, [x], outputs, (np.random.default_rng(1).normal(size=shape) * 20).astype(dtype))


@pytest.mark.parametrize("host", ["first", "last", "both"])
def test_slices_of_a_row_that_the_host_computes(device, host):
    """What the host does not write of a row was written on the device, and stays."""
    h0, u = rs.dmatrix("h0"), rs.dmatrix("u")

    def step(h, u):
        a = h @ u
        first, last = a[:, :20], a[:, 20:]
        first = rs.erf(first) if host != "last" else rs.tanh(first * 2)
        last = rs.erf(last) if host != "first" else rs.tanh(last * 2)
        return rs.concatenate([first, last, first * last], axis=1)[:, 7:47]

    out = rs.loop(step, init=h0, n_steps=5, given=[u])
    args = np.ones((3, 40)), np.random.default_rng(8).normal(size=(40, 40)) / 9
    f = both(device, [h0, u], [out], *args)
    assert "runs on the host: it calls `erf`" in f.explain().loops[0].variants[0].reason
    both(device, [h0, u], [out[-1], *rs.grad(rs.sum(out**3), [h0, u])], *args)


EXPONENTIALS = {
    "softmax": rs.softmax,
    "log_softmax": rs.log_softmax,
    "logsumexp": lambda x, axis: rs.logsumexp(x, axis=axis, keepdims=True),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
@pytest.mark.parametrize("shape, axis", [((8, 70), 1), ((300, 8), 0), ((3, 50, 7), 1), ((5, 1), 1), ((2, 0), 1), ((2, 600), 1)])
@pytest.mark.parametrize("name", EXPONENTIALS)
def test_exponentials_of_rows(device, name, shape, axis, dtype):
    x = rs.tensor(dtype, [None] * len(shape), "x")
    numbers = (np.random.default_rng(3).normal(size=shape) * 4).astype(dtype)
    odd = [np.full(shape, value, dtype) for value in ([-np.inf, np.nan, -0.0] if dtype != "int16" else [0])]
    mixed = np.where(np.arange(numbers.size).reshape(shape) % 3 == 0, odd[0], numbers)
    values = [numbers, *odd, mixed, *([] if dtype == "int16" else [np.where(mixed > 3, np.asarray(np.inf, dtype), mixed)])]
    for value in values:
        f = both(device, [x], EXPONENTIALS[name](x * 1, axis=axis), value)
    assert not device.startswith("cuda") or 0 in shape or "on the host" not in str(f.explain())


def test_a_step_with_a_softmax_runs_on_the_device(device):
    h0, k, v = rs.dmatrix("h0"), rs.dmatrix("k"), rs.dmatrix("v")
    out = rs.loop(lambda h, k, v: rs.softmax(h @ k, axis=1) @ v + 0.5 * h, init=h0, n_steps=4, given=[k, v])
    rng = np.random.default_rng(9)
    args = [rng.normal(size=shape) for shape in ((3, 12), (12, 70), (70, 12))]
    f = both(device, [h0, k, v], [out[-1], *rs.grad(rs.sum(out**2), [h0, k, v])], *args)
    there = all("on the host" not in loop.variants[0].reason for loop in f.explain().loops)
    assert there or not device.startswith("cuda"), str(f.explain())


@pytest.mark.parametrize("taps", [(-2, -1), (-3, -1), (-4,)])
def test_a_network_that_reads_rows_further_back(device, taps):
    h0, u, x = rs.tensor3("h0"), rs.dmatrix("u"), rs.tensor3("x")

    def step(x, h):
        return rs.tanh(x[0] - x[1] + sum(part @ u for part in (h if isinstance(h, tuple) else (h,))))

    out = rs.loop(step, over=rs.taps(x, 0, 2), init=rs.taps(h0, *taps), reverse=len(taps) == 1)
    rng = np.random.default_rng(5)
    args = rng.normal(size=(-min(taps), 3, 5)), rng.normal(size=(5, 5)) / 3, rng.normal(size=(40, 3, 5))
    for outputs in ([out], [out[-1]], [out[-1], *rs.grad(rs.sum(out**3), [h0, u, x])]):
        f = both(device, [h0, u, x], outputs, *args)
        assert all(device in loop.variants[0].engine for loop in f.explain().loops), str(f.explain())


def test_a_list_that_reads_the_number_of_its_step(device):
    h0, u, n = rs.dmatrix("h0"), rs.dmatrix("u"), rs.lscalar("n")
    out = rs.loop(lambda i, h: rs.tanh(h @ u) + i, over=rs.arange(n), init=h0)
    f = both(device, [h0, u, n], out, np.ones((3, 40)), np.random.default_rng(3).normal(size=(40, 40)) / 9, 6)
    assert device in f.explain().loops[0].variants[0].engine


def test_rows_that_a_list_writes_on_the_host(device):
    h0, u, i = rs.dmatrix("h0"), rs.dmatrix("u"), rs.lvector("i")
    out = rs.loop(lambda i, h: rs.set_subtensor(rs.tanh(h @ u)[i], 0.5 * h[i]), over=i, init=h0)
    f = both(device, [h0, u, i], out, np.ones((3, 40)), np.random.default_rng(4).normal(size=(40, 40)) / 9, np.array([0, 2, 1, 2]))
    [variant] = f.explain().loops[0].variants
    assert device in variant.engine and "`index_write` runs on the host" in variant.reason


def in_a_list(device, step, *fixed):
    """How a loop ran on a device whose step is a list."""
    h0, u, n = rs.dmatrix("h0"), rs.dmatrix("u"), rs.lscalar("n")
    given = [rs.dvector("b") for _ in fixed]
    out = rs.loop(step, init=h0, n_steps=n, given=[u, *given])
    f = both(device, [h0, u, n, *given], out, np.ones((3, 40)), np.random.default_rng(5).normal(size=(40, 40)) / 40, 4, *fixed)
    [variant] = f.explain().loops[0].variants
    assert variant.engine == f"steps of {device} kernels"
    return variant


@pytest.mark.parametrize("function", [rs.sin, rs.tanh])
def test_lists_run_on_the_device(device, function):
    variant = in_a_list(device, lambda h, u: function(h @ u) * rs.sum(h * h, axis=1, keepdims=True))
    assert "on the host" not in variant.reason


def test_what_is_repeated_for_each_row_crosses_once(device):
    without = in_a_list(device, lambda h, u: rs.tanh(h @ u) + h)
    repeated = in_a_list(device, lambda h, u, b: rs.tanh(h @ u) + b * h, np.arange(40.0))
    assert repeated.crossed[0] - without.crossed[0] == 40 * 8


def test_what_a_branch_alone_needs_stays_on_the_device(device):
    x, y, n = rs.dmatrix("x"), rs.dmatrix("y"), rs.lscalar("n")
    branch = rs.ifelse(n > 0, x[::-1], x @ y)
    values = np.arange(12.0).reshape(3, 4), np.arange(16.0).reshape(4, 4) / 7
    for count in (1, 0):
        both(device, [x, y, n], [branch, rs.grad(rs.sum(branch**2), x)], *values, count)
        f = both(device, [x, y, n], [branch + 1], *values, count)
    assert all(place.device == device for place in f.explain().places), str(f.explain())


def test_results_without_elements_keep_nothing_on_the_host(device):
    x, w, n = rs.dmatrix("x"), rs.dmatrix("w"), rs.lscalar("n")
    args = np.arange(12.0).reshape(3, 4), np.arange(8.0).reshape(4, 2)
    for count in (0, 2):
        f = both(device, [x, w, n], [x[:n] * 2, x @ w, rs.concatenate([x[:n], x])], *args, count)
        assert all(place.device == device for place in f.explain().places), str(f.explain())


def test_large_arrays_are_moved_on_the_device(device):
    if "fake" in os.environ.get("RSCAN_CUDA_DRIVER", "") and device.startswith("cuda"):
        pytest.skip("a million elements are too many for a driver that interprets")
    x = rs.fmatrix("x")
    f = both(device, [x], [x[::-1], x.T, x[3:], rs.concatenate([x[-1:], x[:-1]])], np.arange(2**21, dtype="f4").reshape(2048, 1024))
    assert all(place.device == device for place in f.explain().places), str(f.explain())


def test_until_stops_where_it_does(device):
    n, limit = rs.iscalar("n"), rs.dscalar("limit")
    out, _ = rs.scan(lambda v: (v * 1.5, rs.until(v > limit)), outputs_info=np.float64(1.0), n_steps=n)
    for count in (3, 50):
        assert len(both(device, [n, limit], out, count, 20.0)(count, 20.0)) == min(count, 9)


def test_taps_updates_and_draws(device):
    total = {name: rs.shared(np.float64(0), name="total") for name in ("cpu", "device")}
    n = rs.iscalar("n")

    def made(key, device):
        stream = rs.RandomStream(7)
        rows, _ = rs.scan(
            lambda a, b: 0.5 * a + 0.25 * b + stream.normal(()),
            outputs_info=dict(initial=rs.as_variable(np.array([1.0, 2.0, 3.0])), taps=[-3, -1]),
            n_steps=n,
        )
        return rs.function([n], rows, updates={total[key]: total[key] + rows[-1]}, device=device, no_default_updates=True)

    cpu, device = made("cpu", None), made("device", device)
    for count in (1, 5, 40):
        np.testing.assert_array_equal(device(count), cpu(count))
    assert total["cpu"].get_value() == total["device"].get_value() != 0


def test_errors_are_those_of_the_processor(device):
    x, i = rs.dvector("x"), rs.ivector("i")
    out = rs.loop(lambda i, h: h + x[i] * x, over=i, init=rs.zeros_like(x))
    f, g = rs.function([x, i], out, device=device), rs.function([x, i], out)
    texts = []
    for function in (f, g):
        with pytest.raises(rs.RscanIndexError) as info:
            function(np.arange(3.0), np.array([0, 1, 7], dtype="int32"))
        texts.append(str(info.value))
    assert texts[0] == texts[1] and "step 2" in texts[0] and "test_devices.py" in texts[0]
    np.testing.assert_array_equal(f(np.arange(3.0), np.array([0, 2], dtype="int32")), g(np.arange(3.0), np.array([0, 2], dtype="int32")))


def test_what_runs_on_the_host_is_named(device):
    x = rs.dvector("x")
    f = rs.function([x], rs.erf(x), device=device)
    np.testing.assert_array_equal(f([0.5, 1.0]), rs.function([x], rs.erf(x))([0.5, 1.0]))
    [place] = f.explain().places
    assert place.device is None and "`erf`" in place.why and "runs on the host, because it calls `erf`" in str(place)


def test_a_huge_sine_is_taken_on_the_host(device):
    x = rs.dvector("x")
    f = both(device, [x], [rs.sin(x)], np.array([0.5, 1.0, -3.0]))
    assert f.explain().places[0].why is None
    f([1e9, 0.5])
    np.testing.assert_array_equal(f([1e9, 0.5])[0], rs.function([x], rs.sin(x))([1e9, 0.5]))
    assert "took values of the host's functions" in f.explain().places[0].why


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_nan_is_unlike_everything(device, dtype):
    x, y = rs.tensor(dtype, [None], "x"), rs.tensor(dtype, [None], "y")
    outs = [rs.where(compare(x, y), x + 1, y * 2) for compare in (rs.not_equal, rs.equal, rs.less, rs.greater_equal)]
    values = np.array([np.nan, 1, np.nan, np.inf, -np.inf, 0.0, 2], dtype)
    both(device, [x, y], [*outs, rs.not_equal(x, x)], values, np.array([np.nan, np.nan, 1, np.inf, np.inf, -0.0, 3], dtype))


@pytest.mark.parametrize("huge", [0.0, 1e9])
def test_loops_that_need_the_host_for_a_step(device, huge):
    """A kernel that finds in some step that only the host's sine will do: none of what it made counts."""
    x, h0, u = rs.dvector("x"), rs.dmatrix("h0"), rs.dmatrix("u")
    kernel = rs.loop(lambda x, s: rs.sin(s + x), over=x, init=0.5)
    rows = rs.loop(lambda x, h: rs.sin(h @ u + x), over=x, init=h0)
    values = np.array([0.1, 0.2, huge, -0.3])
    both(device, [x], kernel, values)
    both(device, [x, h0, u], rows, values, np.ones((3, 40)), np.random.default_rng(6).normal(size=(40, 40)) / 9)


def test_what_a_step_writes_is_read_by_the_next(device):
    """Elements of a state that a kernel writes by number, and reads again in the same place."""
    i = rs.lvector("i")
    counts = rs.loop(lambda i, c: rs.inc_subtensor(c[i], 1 + c[(i + 1) % 20]), over=i, init=rs.zeros(20, "int64"))
    both(device, [i], counts, np.array([3, 3, 2, 3, 19, 0, 19]))


@pytest.mark.parametrize("axis", [0, 1])
def test_sums_along_each_axis_in_a_list(device, axis):
    in_a_list(device, lambda h, u: rs.tanh(h @ u) + rs.sum(u * h[:1], axis=axis)[:40])


def test_numbers_of_steps_in_many_launches(device):
    """A loop of more steps than one launch has, of which each reads its number."""
    h0, n = rs.dvector("h0"), rs.lscalar("n")
    out = rs.loop(lambda i, h: 0.5 * h + i, over=rs.arange(n), init=h0)
    both(device, [h0, n], out[-3:], np.ones(70), 40_000)


def test_no_memory_is_an_error(device):
    x = rs.tensor("int8", [None], "x")
    f = rs.function([x], x + 1, device=device)
    with pytest.raises(MemoryError, match=f"the device {device}"):
        f(np.zeros(1 << 28, "int8"))
    assert f(np.zeros(3, "int8")).tolist() == [1, 1, 1]


@pytest.mark.usefixtures("ctrl_c_interrupts")
def test_a_call_can_be_interrupted(device):
    n = rs.lscalar("n")
    out, _ = rs.scan(lambda v: rs.sqrt(v + 1.0), outputs_info=np.float64(1.0), n_steps=n)
    f = rs.function([n], out[-1], device=device)
    f(10)
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        f(10**12)
    timer.join()
    assert f(10) == rs.function([n], out[-1])(10)


def test_threads_share_a_function(device):
    x, a = rs.dmatrix("x"), rs.dvector("a")
    out = rs.loop(lambda x, h: h * a + x, over=x, init=rs.zeros_like(a))
    f, g = rs.function([x, a], out, device=device), rs.function([x, a], out)
    faults = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for rows in (3, 17):
            args = rng.normal(size=(rows, 5 + seed)), rng.normal(size=5 + seed)
            if not np.array_equal(f(*args), g(*args)):
                faults.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


def test_the_device_travels_along(device):
    x = rs.dvector("x")
    f = pickle.loads(pickle.dumps(rs.function([x], x * 2, device=device)))
    assert f.explain().device == device and f([1.0, 2.0]).tolist() == [2.0, 4.0]

    @rs.compile(device=device)
    def g(x):
        return rs.sum(x * x)

    assert g.lower(np.ones(3)).explain().device == device
    assert rs.value_and_grad(g).lower(np.ones(3)).explain().device == device
    with rs.config.override(device=device):
        assert rs.function([x], x + 1).explain().device == device
        assert rs.function([x], x + 1, device="cpu").explain().device is None
