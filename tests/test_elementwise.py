"""Groups of elementwise ops outside of loops, on operands of all shapes."""

import numpy as np
import pytest

import rscan as rs


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
@pytest.mark.parametrize(
    "shapes",
    [
        [(7, 5, 1, 1), (7, 5, 6, 8)],
        [(40, 1), (1, 50)],
        [(40, 1), (1, 3)],
        [(3, 1, 30), (4, 30), (1,)],
        [(9, 1, 2), (9, 40, 2), ()],
        [(2, 1, 3, 1, 30), (1, 4, 1, 5, 1)],
        [(30, 0), (30, 1)],
    ],
    ids=str,
)
def test_operands_that_broadcast_along_some_axes(monkeypatch, dtype, shapes):
    """A group of elementwise ops gives the evaluator's bits, whatever axes its operands lack."""
    random = np.random.default_rng(0)
    given = [(10 * random.normal(size=shape)).astype(dtype) for shape in shapes]
    found = []
    for engine in ("eval", "vm", "jit"):
        monkeypatch.setenv("RSCAN_ENGINE", engine)
        variables = [rs.tensor(dtype, [None] * len(s)) for s in shapes]
        total = variables[0]
        for v in variables[1:]:
            total = total * v - rs.maximum(v, total)
        f = rs.function(variables, total + 1)
        for _ in range(2):
            found.append(f(*given))
        turned = [np.array(a, order="F") for a in given]
        found.append(f(*turned))
    assert found[0].shape == np.broadcast_shapes(*shapes)
    for other in found:
        assert other.dtype == found[0].dtype and other.tobytes() == found[0].tobytes()
