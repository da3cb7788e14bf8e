"""Every model of benchmarks/models gives the evaluator's values on the other engines, at a small size."""

import importlib.util
import sys

import executed
import numpy as np
import pytest

FOLDER = executed.ROOT / "benchmarks" / "models"


def package():
    """The corpus as the package that it is for its runner."""
    if "models" not in sys.modules:
        spec = importlib.util.spec_from_file_location("models", FOLDER / "__init__.py", submodule_search_locations=[str(FOLDER)])
        sys.modules["models"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["models"])
    return sys.modules["models"]


MODELS = package().find()
OPEN = [name for name, model in MODELS.items() if not model.sealed]
#: What these need is missing.
MISSING = {"QRIteration": (AttributeError, "qr")}


def results(model, engine, passes, monkeypatch):
    """The results of two calls, as lists of arrays."""
    monkeypatch.setenv("RSCAN_ENGINE", engine)
    monkeypatch.setenv("RSCAN_PASSES", passes)
    arguments = model.arguments(model.small)
    f = model.rscan(**model.small)
    return [package().flat(f(*arguments)) for _ in range(2)]


@pytest.mark.parametrize("name", OPEN)
def test_engines_agree_with_the_evaluator(name, monkeypatch):
    model = MODELS[name]
    if name in MISSING:
        error, text = MISSING[name]
        with pytest.raises(error, match=text):
            model.rscan(**model.small)(*model.arguments(model.small))
        return
    expected, again = results(model, "eval", "0", monkeypatch)
    for engine in ("vm", "jit"):
        for ours in results(model, engine, "1", monkeypatch):
            model.same(ours, expected)
    assert all(np.asarray(a).size for a in expected)
    model.same(again, expected)


def test_there_are_two_models_or_more_of_each_class():
    kinds = [MODELS[name].kind for name in OPEN]
    assert len(kinds) >= 32
    assert all(kinds.count(kind) >= 2 for kind in kinds)
