"""Every public name has an example in its docstring, and every example gives what it says."""

import builtins
import doctest
import importlib.util
import inspect
import re
import types
from pathlib import Path

import executed
import numpy as np
import pytest

import rscan as rs
from rscan.inputs import CONSTRUCTORS

#: Names that are no functions or classes: what they are stands in the comment above them, or in the docstring of their class.
VALUES = {"config", "DISCONNECTED", "__version__", "typing.Operand", "typing.Array"}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def reference() -> types.ModuleType:
    """docs/conf.py, which lists the public names."""
    spec = importlib.util.spec_from_file_location("conf", executed.ROOT / "docs" / "conf.py")
    conf = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(conf)
    return conf


def documented() -> dict[str, dict[str, object]]:
    """Per group of the reference the things behind its names, each once: other names of a thing share its docstring."""
    found: dict[str, dict[str, object]] = {}
    seen: set[int] = set()
    for title, names in reference().public_names().items():
        for name in names:
            value = rs
            for part in name.split("."):
                value = getattr(value, part)
            if not (inspect.isroutine(value) or inspect.isclass(value)):
                # An object has the docstring of its class, or of the public one that this is a kind of.
                value = next((kind for kind in type(value).__mro__ if ">>> " in (kind.__doc__ or "")), type(value))
            if name not in VALUES and id(value) not in seen:
                seen.add(id(value))
                found.setdefault(title, {})[name] = value
    return found


GROUPS = documented()


def example_of(name: str, value: object) -> doctest.DocTest:
    own = {"rs": rs, "np": np, "__name__": "__main__"}
    return doctest.DocTestParser().get_doctest(inspect.cleandoc(value.__doc__ or ""), own, name, None, None)


@pytest.mark.parametrize("title", GROUPS)
def test_every_name_has_an_example(title):
    missing = [name for name, value in GROUPS[title].items() if ">>> " not in (value.__doc__ or "")]
    assert not missing, f"no example in the docstring of {', '.join(missing)}"


@pytest.mark.parametrize("title", GROUPS)
def test_examples_give_what_they_say(title, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said: list[str] = []
    for name, value in GROUPS[title].items():
        if name in CONSTRUCTORS and name not in ("scalar", "fmatrix", "lvectors", "dtensor3", "ivector"):
            continue  # made by one function, of which these are cases
        doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(example_of(name, value), out=said.append)
    assert not said, "\n".join(said)


#: What has no errors to name, and why: functions, classes and, as `Class.method`, methods.
CANNOT_FAIL = {
    **dict.fromkeys(["Loop", "LoopOutput", "Device", "optim.Optimizer"], "made by functions that name theirs"),
    **dict.fromkeys(["typing.HasArray", "typing.HasDLPack"], "a type"),
    "Variable": "operators and methods are functions that name theirs",
    "Out": "keeps what it is given; `function` looks at it",
    "devices": "lists what there is",
    "error_page": "gives None for an unknown code",
    "optim.constant_schedule": "gives what it was given",
    **dict.fromkeys(["Loop.keys", "Loop.values", "Loop.items"], "lists outputs"),
    **dict.fromkeys(["Function.text", "Function.explain", "Function.plan", "Function.get_shared"], "tells what there is"),
    **dict.fromkeys(["In.default", "In.describe"], "tells what there is"),
    "Session.copy": "copies what there is",
    "SharedVariable.get_value": "copies what there is",
    "RandomStream.key": "counts",
    "Module.describe": "tells what there is",
}


def public_callables() -> dict[str, object]:
    """Functions, classes and the methods of classes; exceptions are errors themselves."""
    found: dict[str, object] = {}
    for name, value in ((name, value) for group in GROUPS.values() for name, value in group.items()):
        if inspect.isclass(value) and issubclass(value, BaseException):
            continue
        found[name] = value
        if inspect.isclass(value):
            methods = {n: m for n, m in vars(value).items() if n[0] != "_" and isinstance(m, (types.FunctionType, staticmethod))}
            found |= {f"{name}.{n}": m for n, m in methods.items() if m.__doc__}
    return found


CALLABLES = public_callables()


def errors_of(value: object) -> str:
    """What a docstring says of errors."""
    said = re.search(r"(?ms)^errors: (.*?)(?:\n\n|\Z|^>>> )", inspect.cleandoc(value.__doc__ or ""))
    return " ".join(said[1].split()) if said else ""


def test_every_public_callable_names_its_errors():
    silent = [name for name, value in CALLABLES.items() if name not in CANNOT_FAIL and not errors_of(value)]
    assert not silent, f"no errors in the docstring of {', '.join(silent)}"
    needless = [name for name in CANNOT_FAIL if name not in CALLABLES or errors_of(CALLABLES[name])]
    assert not needless, f"these need no reason: {needless}"


@pytest.mark.parametrize("title", GROUPS)
def test_errors_are_named_with_codes_that_exist(title):
    """Classes with codes, classes of Python's, or those of another function."""
    for name in (n for n, v in CALLABLES.items() if any(n.partition(".")[0] == m.partition(".")[0] for m in GROUPS[title])):
        text = errors_of(CALLABLES[name])
        if not text:
            continue
        assert all(rs.error_page(code) for code in re.findall(r"E\d{4}", text)), name
        classes = re.findall(r"`(\w+(?:Error|Interrupt))`", text)
        assert all(hasattr(rs, c) or hasattr(rs.errors, c) or hasattr(builtins, c) for c in classes), name
        others = [n.removeprefix("rs.") for n in re.findall(r"those of `([\w.]+)`", text)]
        home = name.rpartition(".")[0]
        assert all(f"{home}.{n}" in CALLABLES or n in CALLABLES or n.partition(".")[0] in rs.__all__ for n in others), name
        assert classes or others or "what " in text, name


def test_a_wrong_example_is_found():
    said: list[str] = []

    def wrong() -> None:
        """
        >>> rs.exp(0.0).eval()
        array(2.)
        """

    doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(example_of("wrong", wrong), out=said.append)
    assert "array(1.)" in "".join(said)


def test_examples_are_blocks_of_the_reference():
    text = "\n".join(reference().entry("cumsum"))
    assert "```pycon\n>>> rs.cumsum(" in text and text.count("```") == 4, text


def test_examples_name_no_file():
    """Docstrings hold for everyone: no path of the machine that they were written on."""
    named = [name for group in GROUPS.values() for name, value in group.items() if str(Path.home()) in (value.__doc__ or "")]
    assert not named
