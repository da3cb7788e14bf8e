"""Quotients and remainders of integers in steps: what NumPy gives, with one lane, with many, and on devices."""

import os

import numpy as np
import pytest

import rscan as rs

# Where no card is asked for: one that a driver without a card interprets.
os.environ.setdefault("RSCAN_CUDA_DRIVER", "fake")

DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
OPS = {"//": lambda a, b: a // b, "%": lambda a, b: a % b, "fmod": rs.fmod}
DEVICES = list({d.name.split(":")[0]: d.name for d in rs.devices() if d.name != "cpu"}.values())


def pairs(dtype):
    """All pairs of numbers that matter."""
    limits, random = np.iinfo(dtype), np.random.default_rng(3)
    some = [limits.min, limits.min + 1, -7, -3, -2, -1, 0, 1, 2, 3, 7, 10, limits.max // 3, limits.max - 1, limits.max]
    drawn = random.integers(limits.min, limits.max, 17, dtype=dtype, endpoint=True)
    each = np.array([*(n for n in some if limits.min <= n <= limits.max), *drawn], dtype=dtype)
    return np.repeat(each, len(each)), np.tile(each, len(each))


def expected(name, a, b):
    with np.errstate(all="ignore"):
        return {"//": np.floor_divide, "%": np.mod, "fmod": np.fmod}[name](a, b)


@pytest.mark.parametrize("engine", ["eval", "vm", "jit", "auto"])
@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("dtype", DTYPES)
class TestHost:
    def test_one_lane(self, dtype, name, engine, monkeypatch):
        monkeypatch.setenv("RSCAN_ENGINE", engine)
        a, b = pairs(dtype)

        def step(a, b, total):
            made = OPS[name](a, b)
            # What waits for the step before keeps steps from being lanes.
            return dict(total=total ^ made, made=made)

        out = rs.compile(lambda a, b: rs.loop(step, over=(a, b), init=dict(total=np.zeros((), dtype))).made)(a, b)
        np.testing.assert_array_equal(out, expected(name, a, b))

    def test_many_lanes(self, dtype, name, engine, monkeypatch):
        monkeypatch.setenv("RSCAN_ENGINE", engine)
        a, b = pairs(dtype)
        rows = rs.compile(lambda a, b: rs.loop(lambda a, b: OPS[name](a, b), over=(a, b)))
        out = rows(a.reshape(-1, 32), b.reshape(-1, 32)) if len(a) % 32 == 0 else rows(a[None], b[None])
        np.testing.assert_array_equal(out.reshape(-1), expected(name, a, b))

    def test_by_a_number_that_is_known(self, dtype, name, engine, monkeypatch):
        monkeypatch.setenv("RSCAN_ENGINE", engine)
        a, b = pairs(dtype)
        for k in np.unique(b):
            out = rs.compile(lambda a, k=k: rs.loop(lambda a: OPS[name](a, k), over=a))(a)
            np.testing.assert_array_equal(out, expected(name, a, k), err_msg=str(k))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_on_devices(dtype, name, device):
    a, b = pairs(dtype)
    f = rs.compile(lambda a, b: rs.loop(lambda a, b: OPS[name](a, b), over=(a, b)), device=device)
    np.testing.assert_array_equal(np.asarray(f(a[None], b[None]))[0], expected(name, a, b))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32"])
def test_narrow_integers_keep_their_sign_as_int64_on_devices(dtype, device):
    a, _ = pairs(dtype)
    f = rs.compile(lambda a: rs.loop(lambda a: [rs.cast(a, "int64") < 5, rs.cast(a, "int64")], over=a), device=device)
    less, wide = (np.asarray(x)[0] for x in f(a[None]))
    np.testing.assert_array_equal(less, a.astype("int64") < 5)
    np.testing.assert_array_equal(wide, a.astype("int64"))
