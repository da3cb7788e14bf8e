"""Every model of benchmarks/models gives the evaluator's values on the other engines, at small sizes."""

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


def size_of(model, width):
    """The size of the tests, or one whose rows are as long as `width`, so that they fill vectors."""
    return {key: max(small, min(width, model.size[key])) for key, small in model.small.items()}


def results(model, size, engine, passes, monkeypatch):
    """The results of two calls, as lists of arrays."""
    monkeypatch.setenv("RSCAN_ENGINE", engine)
    monkeypatch.setenv("RSCAN_PASSES", passes)
    arguments = model.arguments(size)
    f = model.rscan(**size)
    return [package().flat(f(*arguments)) for _ in range(2)]


@pytest.mark.parametrize("width", [0, 19])
@pytest.mark.parametrize("name", OPEN)
def test_engines_agree_with_the_evaluator(name, width, monkeypatch):
    model = MODELS[name]
    size = size_of(model, width)
    expected, again = results(model, size, "eval", "0", monkeypatch)
    assert all(a.size for a in expected)
    model.same(again, expected)
    for engine in ("vm", "jit"):
        for ours in results(model, size, engine, "1", monkeypatch):
            model.same(ours, expected)


@pytest.mark.parametrize("name", OPEN[::3])
def test_plans_tell_of_all_loops_that_ran(name, monkeypatch):
    """A line for each loop of the outermost graph, with something below it."""
    model = MODELS[name]
    monkeypatch.setenv("RSCAN_ENGINE", "vm")
    f = model.rscan(**model.small)
    f(*model.arguments(model.small))
    text = f.plan().splitlines()
    loops = [k for k, line in enumerate(text) if line.startswith("  %") and " = scan(" in line]
    assert all(text[k + 1].startswith("    ") for k in loops)


def test_there_are_two_models_or_more_of_each_class():
    kinds = [MODELS[name].kind for name in OPEN]
    assert len(kinds) >= 32
    assert all(kinds.count(kind) >= 2 for kind in kinds)


def test_the_example_of_the_readme_is_a_model(monkeypatch):
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    source = text.split("```python\n")[1].split("```")[0]
    names = {}
    exec(source, names)
    model = names["Smoother"]()
    assert set(model.small) == set(model.size)
    expected, _ = results(model, model.small, "eval", "0", monkeypatch)
    model.same(results(model, model.small, "jit", "1", monkeypatch)[0], expected)


@pytest.mark.parametrize(
    ("ours", "theirs", "message"),
    [
        ([1.0], [1.0 + 1e-6], "wrong by"),
        ([1.0, np.nan], [1.0, 2.0], "not finite at other places"),
        ([1.0, np.inf], [1.0, -np.inf], "other infinities"),
        ([1, 2], [1, 3], "differs at 1 of 2 places"),
        ([1, 2], [1.0, 2.0], "dtype"),
        ([[1.0]], [1.0], "shape"),
    ],
)
def test_what_differs_is_a_failure(ours, theirs, message):
    model = next(iter(MODELS.values()))
    model.same([np.array(theirs)], [np.array(theirs)])
    with pytest.raises(AssertionError, match=message):
        model.same([np.array(ours)], [np.array(theirs)])
    with pytest.raises(AssertionError, match="1 outputs, and 0"):
        model.same([np.array(ours)], [])
