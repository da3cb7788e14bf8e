"""A corpus of models, each in rscan and in JAX: README.md describes the format of a file."""

import importlib
import pathlib

import numpy as np

HERE = pathlib.Path(__file__).parent
#: Relative to the largest value of an output; integers and booleans are compared exactly.
RTOL = {"float32": 2e-4, "float64": 1e-8}


class Model:
    """One model. Subclasses say what it is; see README.md."""

    kind: str
    dtype: str
    size: dict[str, int]
    small: dict[str, int]
    rtol: float | None = None
    atol = 0.0

    def __init__(self):
        self.name = type(self).__name__
        self.sealed = type(self).__module__.rpartition(".")[2].startswith("sealed_")

    def arguments(self, size):
        """The arguments of a call, the same at every time for a size."""
        return tuple(self.make(np.random.default_rng(1234), **size))

    def same(self, ours, theirs):
        """Asserts that two results, as lists of arrays, agree."""
        assert len(ours) == len(theirs), f"{len(ours)} outputs, and {len(theirs)} are expected"
        for i, (a, b) in enumerate(zip(ours, theirs)):
            assert a.shape == b.shape, f"output {i} has the shape {a.shape}, and {b.shape} is expected"
            assert (a.dtype.kind == "f") == (b.dtype.kind == "f"), f"output {i} has the dtype {a.dtype}, and {b.dtype} is expected"
            if b.dtype.kind == "f":
                self._near(i, a, b)
            else:
                assert np.array_equal(a, b), f"output {i} differs at {np.count_nonzero(a != b)} of {b.size} places"

    def _near(self, i, a, b):
        rtol = RTOL["float32" if b.dtype.itemsize < 8 else "float64"] if self.rtol is None else self.rtol
        finite = np.isfinite(b)
        assert np.array_equal(np.isfinite(a), finite), f"output {i} is not finite at other places"
        assert np.array_equal(a[~finite], b[~finite], equal_nan=True), f"output {i} has other infinities or NaN"
        a, b = a[finite].astype("f8"), b[finite].astype("f8")
        if b.size:
            scale, error = np.max(np.abs(b)), np.max(np.abs(a - b))
            assert error <= rtol * scale + self.atol, f"output {i} is wrong by {error:.3g}, its largest value is {scale:.3g}"


def flat(result):
    """The arrays of a structure of tuples, lists and dicts, dicts by their keys in order."""
    if isinstance(result, dict):
        return [a for key in sorted(result) for a in flat(result[key])]
    if isinstance(result, (tuple, list)):
        return [a for item in result for a in flat(item)]
    return [np.asarray(result)]


def find():
    """All models of the folder, by name."""
    found = {}
    for path in sorted(HERE.glob("*.py")):
        if path.stem in ("__init__", "run", "worker"):
            continue
        module = importlib.import_module(f"models.{path.stem}")
        for cls in vars(module).values():
            if isinstance(cls, type) and issubclass(cls, Model) and cls.__module__ == module.__name__ and hasattr(cls, "make"):
                assert cls.__name__ not in found, f"two models are named {cls.__name__}"
                found[cls.__name__] = cls()
    return found
