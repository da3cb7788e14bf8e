"""Arrays that stay on a device: what they are to Python, what of a call crosses, and when their memory goes."""

import ctypes
import gc
import os
import pickle
import signal
import threading

import numpy as np
import pytest

import rscan as rs
from rscan import _native

os.environ.setdefault("RSCAN_CUDA_DRIVER", "fake")
DEVICES = [d.name for d in rs.devices() if d.name != "cpu"]
EACH = {name.split(":")[0]: name for name in DEVICES}
needs_wgpu = pytest.mark.skipif("wgpu" not in EACH, reason="wgpu: not run (no device)")
DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"]


@pytest.fixture(params=["cuda", pytest.param("wgpu", marks=needs_wgpu)])
def device(request):
    """The name of a device."""
    return EACH[request.param]


def numbers(dtype, shape):
    n = int(np.prod(shape))
    values = np.arange(n) % 2 == 0 if dtype == "bool" else (np.arange(n) * 37 - (0 if dtype[0] == "u" else 60))
    return np.asarray(values).astype(dtype).reshape(shape)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 4), (2, 0, 3), (1, 1)])
def test_elements_come_back_as_they_went(device, dtype, shape):
    x = numbers(dtype, shape)
    there = rs.to_device(x, device)
    assert (there.shape, there.dtype, there.device, there.ndim, there.size, there.nbytes) == (
        shape,
        x.dtype,
        device,
        x.ndim,
        x.size,
        x.nbytes,
    )
    back = there.numpy()
    assert back.dtype == x.dtype and back.shape == shape and back.tobytes() == x.tobytes()
    assert there.block() is there
    back.ravel()[:1] = 0
    assert there.numpy().tobytes() == x.tobytes(), "what is given is a copy"


def test_what_it_is_to_others(device):
    x = numbers("float32", (3, 2))
    there = rs.to_device(x, device)
    assert repr(there) == f"DeviceArray(shape=(3, 2), dtype=float32, device='{device}')"
    assert len(there) == 3 and np.array_equal(there[1:], x[1:]) and there[2, 1] == x[2, 1]
    assert np.array_equal(np.asarray(there), x) and np.asarray(there, "float64").dtype == np.float64
    assert [row.tolist() for row in there] == x.tolist()
    with pytest.raises(ValueError, match="copied to the host"):
        np.asarray(there, copy=False)
    with pytest.raises(TypeError, match="no length"):
        len(rs.to_device(1.0, device))
    copy = pickle.loads(pickle.dumps(there))
    assert type(copy) is np.ndarray and np.array_equal(copy, x)
    assert rs.to_device(there, device).device == device


def test_other_libraries_read_memory_of_cards_alone(device):
    there, bools = rs.to_device(numbers("float64", (4,)), device), rs.to_device(numbers("bool", (4,)), device)
    if device.startswith("wgpu"):
        assert there.__dlpack_device__() == (1, 0) and not hasattr(there, "__cuda_array_interface__")
        assert np.array_equal(np.from_dlpack(there), there.numpy())
        with pytest.raises(BufferError, match="copied to the host"):
            there.__dlpack__(copy=False)
        return
    assert there.__dlpack_device__() == (2, 0)
    said = there.__cuda_array_interface__
    assert said["shape"] == (4,) and said["typestr"] == "<f8" and said["data"][1] and said["version"] == 3
    assert np.array_equal(np.from_dlpack(there, device="cpu"), there.numpy())
    assert not hasattr(bools, "__cuda_array_interface__")
    with pytest.raises(BufferError, match="four bytes"):
        bools.__dlpack__()


class Tensor(ctypes.Structure):
    """`DLManagedTensorVersioned` of dlpack.h; without the first and the fourth field `DLManagedTensor` has the others in another order."""

    _fields_ = [
        ("version", ctypes.c_uint32 * 2),
        ("owner", ctypes.c_void_p),
        ("delete", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    ]


def held(capsule):
    """The structure that a capsule of version 1 holds."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return Tensor.from_address(pointer(capsule, b"dltensor_versioned"))


def test_dlpack_says_what_is_not_to_be_written():
    device = EACH["cuda"]
    gc.collect()
    before = _native.device_bytes()
    there = rs.to_device(numbers("int32", (2, 3)), device)
    own = _native.device_bytes()
    where = there.__cuda_array_interface__["data"][0]
    capsule = there.__dlpack__(max_version=(1, 0))
    t = held(capsule)
    assert (t.data, t.flags, t.offset, list(t.device), t.rank, t.code, t.bits, t.lanes) == (where, 1, 0, [2, 0], 2, 0, 32, 1)
    assert t.shape[:2] == [2, 3] and t.strides[:2] == [3, 1] and t.version[0] == 1
    copied = there.__dlpack__(max_version=(1, 1), copy=True, stream=1)
    assert held(copied).data != where and held(copied).flags == 2 and _native.device_bytes() > own
    for old in (there.__dlpack__(), there.__dlpack__(max_version=(0, 8), dl_device=(2, 0))):
        assert '"dltensor"' in repr(old), "it cannot say that it is not to be written: a copy"
        assert _native.device_bytes() > own
        del old
    for named in ({"copy": False}, {"dl_device": (2, 7)}, {"dl_device": (10, 0)}, {"dl_device": (1, 0), "copy": False}):
        with pytest.raises(BufferError):
            there.__dlpack__(**named)
    del copied
    assert _native.device_bytes() == own
    del there
    assert _native.device_bytes() == own, "the capsule keeps what it holds"
    del capsule, t
    assert _native.device_bytes() == before


def test_what_is_no_array_or_no_device(device):
    for bad, code in [(["a"], "E0805"), (np.array(["a"]), "E0805"), (1j, "E0805")]:
        with pytest.raises(rs.RscanTypeError) as info:
            rs.to_device(bad, device)
        assert info.value.code == code
    with pytest.raises(rs.RscanValueError) as info:
        rs.to_device(1.0, "cpu")
    assert info.value.code == "E0809"
    with pytest.raises(rs.DeviceError) as info:
        rs.to_device(1.0, "abacus")
    assert info.value.code == "E0521"
    x = rs.dvector("x")
    with pytest.raises(rs.RscanValueError, match="processor") as info:
        rs.function([x], x + 1, fetch=False)
    assert info.value.code == "E0809"


@pytest.mark.parametrize("dtype", DTYPES)
def test_results_stay_and_are_arguments(device, dtype):
    x = rs.tensor(dtype, (None,), "x")
    f = rs.function([x], [x + x, x], device=device, fetch=False)
    g = rs.function([x], x + x)
    value = numbers(dtype, (70,))
    twice, same = f(value)
    assert (twice.device, twice.dtype, same.device) == (device, g(value).dtype, device)
    assert f.explain().crossed == [value.nbytes, 0]
    assert np.array_equal(twice.numpy(), g(value)) and np.array_equal(same, value)
    if twice.dtype == dtype:
        again = f(twice)[0]
        assert f.explain().crossed == [0, 0] and np.array_equal(again, g(g(value)))
    host = rs.function([x], x + x)
    assert np.array_equal(host(same), g(value)), "for the processor it is copied"


def test_a_chain_of_calls_crosses_at_its_ends(device):
    x, w = rs.tensor("float32", (None, None), "x"), rs.tensor("float32", (None, None), "w")
    f = rs.function([x, w], rs.tanh(x @ w + 1), device=device, fetch=False)
    law = rs.function([x, w], rs.tanh(x @ w + 1))
    a, b = numbers("float32", (3, 4)) / 99, numbers("float32", (4, 4)) / 99
    there = rs.to_device(b, device)
    h = f(a, there)
    assert f.explain().crossed == [a.nbytes, 0]
    for _ in range(3):
        h = f(h, there)
        assert f.explain().crossed == [0, 0]
    expected = a
    for _ in range(4):
        expected = law(expected, b)
    assert h.numpy().tobytes() == expected.tobytes()


def test_all_doors_take_them(device):
    value = numbers("float64", (3,))
    there = rs.to_device(value, device)
    x = rs.dvector("x")
    assert np.array_equal(rs.function([x], x * 2)(there), value * 2)
    assert np.array_equal(rs.function([x], x * 2, device=device)(x=there), value * 2)
    assert np.array_equal(rs.eval(x + there, {x: value}), value * 2)
    assert np.array_equal(rs.compile(lambda x: x * 2)(there), value * 2)
    stays = rs.compile(lambda x: {"y": x * 2, "n": rs.sum(x)}, device=device, fetch=False)(there)
    assert stays["y"].device == device and np.array_equal(stays["y"], value * 2) and stays["n"].shape == ()
    assert np.array_equal(rs.shared(there).get_value(), value)
    assert np.array_equal(rs.function([x], x * 2, device=device).bind(there)(), value * 2)
    wide = rs.function([x], x * 2, device=device)
    assert np.array_equal(wide(rs.to_device(np.arange(3), device)), np.arange(3) * 2), "converted by way of the host"
    out = np.zeros(3)
    assert rs.function([x], x * 2, device=device, fetch=False)(there, out=out) is out and np.array_equal(out, value * 2)
    for bad in [rs.to_device(np.ones((2, 2)), device), rs.to_device(np.ones(2) > 0, device)]:
        if bad.ndim == 1:
            assert np.array_equal(wide(bad), [2.0, 2.0])
            continue
        with pytest.raises(rs.RscanTypeError) as info:
            wide(bad)
        assert info.value.code == "E0504"
    y = rs.tensor("float64", (None,), "y")
    both = rs.function([x, y], x + y, device=device)
    assert np.array_equal(both(there, [1.0, 2.0, 3.0]), value + np.arange(1.0, 4.0))
    assert np.array_equal(both(value[::-1], there), value[::-1] + value)
    frozen = value.copy()
    frozen.flags.writeable = False
    assert np.array_equal(both(frozen, there), value * 2)


def test_another_device_is_reached_by_way_of_the_host():
    if len(EACH) < 2:
        pytest.skip("wgpu: not run (no device)")
    one, other = EACH["cuda"], EACH["wgpu"]
    value = numbers("float32", (5,))
    x = rs.fvector("x")
    f = rs.function([x], x + 1, device=other, fetch=False)
    made = f(rs.to_device(value, one))
    assert made.device == other and np.array_equal(made, value + 1)
    assert f.explain().crossed == [value.nbytes, value.nbytes]
    assert rs.to_device(made, one).device == one


def test_shared_variables_on_a_device(device):
    start = numbers("float32", (4,))
    s = rs.shared(start, "s", device=device)
    x = rs.fvector("x")
    f = rs.function([x], (s * x).sum(), updates={s: s + x}, device=device)
    law = rs.shared(start)
    g = rs.function([x], (law * x).sum(), updates={law: law + x})
    for k in range(3):
        value = start / np.float32(k + 1)
        assert f(value) == g(value)
        assert f.explain().crossed == [value.nbytes, 4]
    assert s.device == device and law.device is None
    assert np.array_equal(s.get_value(), law.get_value())
    there = s.get_value(return_internal_type=True)
    assert there.device == device and np.array_equal(there, law.get_value())
    s.set_value(there)
    s.set_value(np.zeros(4, "float32"))
    assert not s.get_value().any() and np.array_equal(there, law.get_value())
    with pytest.raises(rs.RscanTypeError) as info:
        s.set_value(rs.to_device(np.zeros((2, 2), "float32"), device))
    assert info.value.code == "E0506"
    host = rs.function([], s + 1, updates={s: s + 2})
    assert np.array_equal(host(), np.ones(4)) and np.array_equal(s.get_value(), np.full(4, 2.0)) and s.device == device
    assert np.array_equal(pickle.loads(pickle.dumps(s)).get_value(), s.get_value())


def test_an_update_that_fails_keeps_the_old_value(device):
    s = rs.shared(np.ones(3), "s", device=device)
    x, k = rs.dvector("x"), rs.lscalar("k")
    f = rs.function([x, k], x[k], updates={s: s + x}, device=device)
    f(np.ones(3), 2)
    with pytest.raises(IndexError):
        f(np.ones(3), 3)
    assert np.array_equal(s.get_value(), np.full(3, 2.0))


def test_memory_goes_with_its_last_owner(device):
    gc.collect()
    before = _native.device_bytes()
    x = rs.dmatrix("x")
    out = rs.loop(lambda row, h: rs.tanh(h + row), over=x, init=rs.zeros(8))
    f = rs.function([x], [out, out[-1], rs.sum(out)], device=device, fetch=False)
    constants = 64  # zeros(8), sent once for all calls
    for _ in range(3):
        kept = f(numbers("float64", (20, 8)) / 99)
        assert _native.device_bytes() >= before + constants + 8 * (160 + 8 + 1)
        last = kept[1]
        del kept
        assert np.isfinite(last.numpy()).all()
        del last
        assert _native.device_bytes() == before + constants
    del f
    gc.collect()
    assert _native.device_bytes() == before
    s = rs.shared(np.zeros(1000), device=device)
    assert _native.device_bytes() == before + 8000
    g = rs.function([], [], updates={s: s + 1}, device=device)
    for _ in range(4):
        g()
    assert _native.device_bytes() == before + 8000
    del s, g
    gc.collect()
    assert _native.device_bytes() == before


def test_too_much_memory_is_an_error(device):
    with pytest.raises(MemoryError, match=r"[\d,]+ bytes") as info:
        x = np.broadcast_to(np.float64(0), (1 << 14, 1 << 13)) if device.startswith("cuda") else np.empty((1 << 33,), "int8")
        rs.to_device(np.zeros(1 << 25) if device.startswith("cuda") else x, device)
    assert "E0392" in str(info.value) or getattr(info.value, "code", "E0392") == "E0392"


def test_threads_call_the_same_function(device):
    s = rs.shared(np.zeros(16), device=device)
    x = rs.dvector("x")
    f = rs.function([x], x * 2 + 1, updates={s: s + 1}, device=device, fetch=False)
    found = {}

    def work(k):
        h = rs.to_device(np.full(16, float(k)), device)
        for _ in range(5):
            h = f(h)
        found[k] = h.numpy()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert all(np.array_equal(found[k], np.full(16, 32.0 * k + 31)) for k in range(4))
    assert np.array_equal(s.get_value(), np.full(16, 20.0))


@pytest.mark.usefixtures("ctrl_c_interrupts")
def test_ctrl_c_leaves_shared_variables_as_they_were(device):
    s = rs.shared(np.zeros(64), device=device)
    h, n = rs.dvector("h"), rs.lscalar("n")
    out = rs.loop(lambda h: rs.sqrt(h + 1.0), init=h, n_steps=n)
    f = rs.function([h, n], out[-1], updates={s: s + out[-1]}, device=device)
    f(np.ones(64), 3)
    value = s.get_value()
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        f(np.ones(64), 1 << 40 if device.startswith("wgpu") else 1 << 22)
    timer.join()
    assert np.array_equal(s.get_value(), value)


def lstm(on, kept):
    """A step of training an LSTM by gradient descent, float32: parameters are shared variables."""
    depth, width, outs = 8, 32, 8
    rng = np.random.default_rng(0)
    shapes = {"w": (depth, 4 * width), "u": (width, 4 * width), "b": (4 * width,), "v": (width, outs), "c": (outs,)}
    first = {k: (rng.normal(size=shape) * 0.3).astype("float32") for k, shape in shapes.items()}
    p = {k: rs.shared(v, k, device=kept) for k, v in first.items()}
    x, y = rs.tensor("float32", (None, None, depth), "x"), rs.tensor("float32", (None, outs), "y")

    def step(x_t, h, c):
        z = x_t @ p["w"] + h @ p["u"] + p["b"]
        i, f, g, o = (z[:, k * width : (k + 1) * width] for k in range(4))
        c = rs.sigmoid(f) * c + rs.sigmoid(i) * rs.tanh(g)
        return dict(h=rs.sigmoid(o) * rs.tanh(c), c=c)

    zero = rs.zeros((x.shape[1], width), dtype="float32")
    out = rs.loop(step, over=x, init=dict(h=zero, c=zero))
    loss = rs.mean((out["h"][-1] @ p["v"] + p["c"] - y) ** 2)
    slopes = rs.grad(loss, list(p.values()))
    updates = {s: s - rs.cast(0.1, "float32") * slope for s, slope in zip(p.values(), slopes, strict=True)}
    return rs.function([x, y], loss, updates=updates, device=on), p


def test_of_a_step_of_training_the_batch_goes_up_and_the_loss_comes_down(device):
    (f, p), (law, q) = lstm(device, device), lstm(None, None)
    rng = np.random.default_rng(1)
    for k in range(3):
        x, y = rng.normal(size=(5, 16, 8)).astype("float32"), rng.normal(size=(16, 8)).astype("float32")
        assert f(x, y).tobytes() == law(x, y).tobytes()
        # Zeros that gradients begin with, and the step size, go up once.
        assert k == 0 or f.explain().crossed == [x.nbytes + y.nbytes, 4], str(f.explain())
    assert all(np.array_equal(p[k].get_value(), q[k].get_value()) for k in p)
