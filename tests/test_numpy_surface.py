"""A part of `make accept-numpy`: each of NumPy's functions at one shape and dtype, gradients and batch rules; and which are missing."""

import numpy as np
import numpy_surface
import pytest

import rscan as rs

CALLS = list(numpy_surface.table())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(8))
def test_some_of_all(part):
    faults = []
    for i, (name, call, shapes, dtypes) in enumerate(CALLS):
        if i % 8 != part:
            continue
        shape, dtype = shapes[i % len(shapes)], dtypes[i % len(dtypes)]
        faults.append((call, shape, dtype, numpy_surface.compared(name, call, shape, dtype)))
        if "float64" in dtypes and i % 3 == 0 and name not in numpy_surface.NO_GRADIENT:
            faults.append((call, shapes[0], "gradient", numpy_surface.slope(call, shapes[0], *numpy_surface.domain(name))))
        if i % 3 == 1:
            faults.append((call, shapes[0], dtype, numpy_surface.rows(call, shapes[0], dtype)))
    assert [fault for fault in faults if fault[-1]] == []


def test_faults_are_found():
    assert numpy_surface.differs([np.ones(2)], [np.ones(3)]) and numpy_surface.differs([np.ones(2)], [np.zeros(2)])
    assert numpy_surface.differs([np.ones(2)], [np.ones(2, "float32")]) and not numpy_surface.differs([np.ones(2)], [np.ones(2)])
    assert numpy_surface.compared("sort", "m.sort(x) if m.__name__ == 'numpy' else m.sort(-x)", (5,), "float64")
    assert numpy_surface.slope("m.stop_gradient(x) * x", (2,)) and not numpy_surface.slope("m.sin(x)", (2,))


def test_what_numpy_has():
    """What computes is there; what is missing says what to do instead."""
    there = {name for name in numpy_surface.functions(np) if hasattr(rs, name)}
    assert len({name.partition("linalg.")[2] or name for name, *_ in CALLS}) > 300
    for name in set(numpy_surface.functions(np)) - there:
        with pytest.raises(AttributeError, match="which numpy has: "):
            getattr(rs, name)
