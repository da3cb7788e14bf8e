"""The programs of docs/interop.md that need what the tests of rscan itself do not install: those of its `py` blocks."""

import importlib
import re

import executed
import numpy as np
import pytest

import rscan as rs

PAGE = executed.ROOT / "docs" / "interop.md"
PROGRAMS = re.findall(r"^```py\n((?:import|from) (\w+).*?)^```", PAGE.read_text(), re.M | re.S)


def test_every_program_of_the_page_begins_with_what_it_needs():
    assert {name for _, name in PROGRAMS} == {"jax", "torch", "pymc", "nutpie", "numba"}
    assert len(PROGRAMS) == PAGE.read_text().count("```py\n")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("program", "name"), PROGRAMS, ids=[name for _, name in PROGRAMS])
def test_programs(program, name):
    pytest.importorskip(name, reason=f"{name} is not installed")
    if name == "numba":
        # Where rscan is installed numba finds this by an entry point; here it may lie in a folder of the path.
        importlib.import_module("rscan.interop.numba").register()
    exec(compile(program, str(PAGE), "exec"), {"rs": rs, "np": np})
