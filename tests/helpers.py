"""What several tests use: symbols of arrays, and the comparison with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

import rscan as rs

FLOATS = ("float32", "float64")
INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
DTYPES = ("bool", *INTS, *FLOATS)


def symbol(array: Any, known: bool = False) -> rs.Variable:
    """An input of an array's type, with extents known or not."""
    a = np.asarray(array)
    return rs.tensor(a.dtype, a.shape if known else (None,) * a.ndim)


def run(build: Any, *arrays: Any, known: bool = False) -> Any:
    """What the expression that `build` makes of inputs gives for arrays."""
    symbols = [symbol(a, known) for a in arrays]
    outputs = build(*symbols)
    outputs = list(outputs) if isinstance(outputs, (tuple, list)) else outputs
    return rs.function(symbols, outputs, on_unused_input="ignore")(*arrays)


def same(got: Any, expected: Any, rtol: float = 1e-6) -> None:
    """Equal dtype, shape and values."""
    if isinstance(expected, (tuple, list)):
        assert len(got) == len(expected)
        for g, e in zip(got, expected, strict=True):
            same(g, e, rtol)
        return
    expected = np.asarray(expected)
    assert isinstance(got, np.ndarray)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(got, expected, rtol=rtol if expected.dtype == "float64" else max(rtol, 2e-6), atol=1e-12)
    else:
        np.testing.assert_array_equal(got, expected)


def like_numpy(build: Any, *arrays: Any, rtol: float = 1e-10) -> None:
    """`build(module, *arrays)` gives with rscan what it gives with NumPy, whether extents are known or not."""
    with np.errstate(all="ignore"):
        expected = build(np, *arrays)
    for known in (False, True):
        same(run(lambda *xs: build(rs, *xs), *arrays, known=known), expected, rtol)
