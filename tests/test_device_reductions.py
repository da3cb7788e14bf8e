"""Sums, products and extremes of very many elements on a device: the processor's bits, and no part with the host."""

import numpy as np
import pytest
from test_devices import both, device  # noqa: F401

import rscan as rs

#: Whole blocks of a power of two and not, a last one that is short, axes before and behind.
SHAPES = [
    ((131072,), None),
    ((70000,), None),
    ((16641, 3), 0),
    ((3, 33000), 1),
    ((40, 30, 40), None),
    ((2, 130, 200, 2), (1, 2)),
]
FLOATS = {"sum": rs.sum, "prod": rs.prod, "max": rs.max, "min": rs.min, "mean": rs.mean}


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("shape, axis", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "int16"])
def test_many_elements(device, shape, axis, dtype, name):  # noqa: F811
    x = rs.tensor(dtype, [None] * len(shape), "x")
    numbers = (np.random.default_rng(1).normal(size=shape) * 3).astype(dtype)
    f = both(device, [x], FLOATS[name](x, axis=axis), numbers)
    assert "on the host" not in str(f.explain()), str(f.explain())


@pytest.mark.parametrize("name", ["sum", "max", "min"])
def test_what_is_no_number_or_less_than_zero(device, name):  # noqa: F811
    x = rs.dmatrix("x")
    f = rs.function([x], FLOATS[name](x, axis=1, keepdims=True), device=device)
    law = rs.function([x], FLOATS[name](x, axis=1, keepdims=True))
    rows = np.zeros((4, 20001))
    rows[0, 777] = np.nan
    rows[1] = -0.0
    rows[2, ::2] = -0.0
    rows[3] = np.arange(20001) - 7.5
    found, expected = f(rows), law(rows)
    np.testing.assert_array_equal(found, expected)
    assert (np.signbit(found) == np.signbit(expected))[1:].all()


@pytest.mark.parametrize("name", ["any", "all"])
@pytest.mark.parametrize("odd", [0, 4097, 50000])
def test_truths(device, name, odd):  # noqa: F811
    x = rs.tensor("bool", [None], "x")
    values = np.full(50001, name == "all")
    values[odd] = name != "all"
    assert both(device, [x], getattr(rs, name)(x), values)(values) == (name != "all")


def test_the_mean_of_rows_in_a_step(device):  # noqa: F811
    """A step that sums more elements than one kernel does."""
    h0, x = rs.fmatrix("h0"), rs.fvector("x")
    out = rs.loop(lambda x, h: rs.tanh(h) * 0.5 + rs.mean(h) + x, over=x, init=h0)
    rng = np.random.default_rng(2)
    args = rng.normal(size=(150, 130)).astype("float32"), rng.normal(size=3).astype("float32")
    [variant] = both(device, [h0, x], [out[-1]], *args).explain().loops[0].variants
    assert variant.engine == f"steps of {device} kernels" and "on the host" not in variant.reason
