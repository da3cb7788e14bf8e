"""The type stubs list what the tables make. `UPDATE=1 pytest tests/test_stubs.py` writes them."""

import os
from pathlib import Path

import pytest

import rscan as rs
from rscan import _rows, inputs

HOME = Path(rs.__file__).parent


def rows_stub() -> str:
    """A function per row and per other name of a row."""
    out = [
        '"""Elementwise functions. Made from the table: see tests/test_stubs.py."""',
        "",
        "from collections.abc import Callable",
    ]
    out += [
        "from typing import Any",
        "",
        "from .variable import Variable",
        "",
        "ALIASES: dict[str, str]",
        "EXTENDED: tuple[str, ...]",
    ]
    out += ["ROWS: dict[str, Callable[..., Variable]]", ""]
    table = {row["name"]: row for row in rs._native.catalogue()}
    for name, target in {**{name: name for name in table}, **_rows.ALIASES}.items():
        if name not in _rows.EXTENDED and name in _rows.ROWS:
            arguments = ", ".join(arg + ": Any" for arg in table[target]["args"])
            out += [f"def {name}({arguments}, /) -> Variable:", f'    """{table[target]["doc"]}"""', ""]
    return "\n".join(out).rstrip() + "\n"


def inputs_stub() -> str:
    """A function per dtype and kind of variable, and its plural."""
    out = ['"""Variables that a caller fills. Made from the tables of inputs.py: see tests/test_stubs.py."""', ""]
    out += [
        "from collections.abc import Callable, Sequence",
        "from typing import Any",
        "",
        "from .variable import Variable",
        "",
    ]
    out += ["PREFIXES: dict[str, str]", "KINDS: dict[str, tuple[int | None, ...]]", "PLURALS: dict[str, str]"]
    out += ["CONSTRUCTORS: dict[str, Callable[..., Any]]", ""]
    out += ["def tensor(dtype: Any = None, shape: Sequence[int | None] = (), name: str | None = None) -> Variable: ..."]
    plurals = {prefix + many for prefix in ["", *inputs.PREFIXES] for many in inputs.PLURALS.values()}
    for name in inputs.CONSTRUCTORS:
        if name in plurals:
            out.append(f"def {name}(*names: Any, dtype: Any = None) -> list[Variable]: ...")
        else:
            options = "name: str | None = None, dtype: Any = None, shape: Sequence[int | None] | None = None"
            out.append(f"def {name}({options}) -> Variable: ...")
    return "\n".join(out) + "\n"


@pytest.mark.parametrize(("name", "make"), [("_rows.pyi", rows_stub), ("inputs.pyi", inputs_stub)])
def test_stubs_are_current(name, make):
    file = HOME / name
    if os.environ.get("UPDATE"):
        file.write_text(make(), encoding="utf-8")
    assert file.read_text(encoding="utf-8") == make()


def test_every_exported_name_exists():
    missing = [name for name in rs.__all__ if not hasattr(rs, name)]
    assert not missing
    assert len(set(rs.__all__)) == len(rs.__all__)
    undocumented = [name for name in rs.__all__ if callable(getattr(rs, name)) and not getattr(rs, name).__doc__]
    assert not undocumented
