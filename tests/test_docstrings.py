"""Every public name has an example in its docstring, and every example gives what it says."""

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


@pytest.mark.parametrize("name", ["scan", "loop", "function", "compile", "shared", "grad", "value_and_grad"])
def test_errors_are_named_with_codes_that_exist(name):
    _, _, said = getattr(rs, name).__doc__.partition("    errors: ")
    text = said.partition("\n\n")[0]
    assert text
    assert all(rs.error_page(code) for code in re.findall(r"E\d{4}", text))
    assert all(hasattr(rs, error) for error in re.findall(r"`(\w+Error)`", text))


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
