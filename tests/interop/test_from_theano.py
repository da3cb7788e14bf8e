"""The programs of Theano and PyTensor on docs/from-theano.md print what rscan's beside them print: run by rscan.theano, and by PyTensor."""

import contextlib
import importlib
import io
import operator
import re

import executed
import numpy as np
import pytest

import rscan as rs

PAGE = executed.ROOT / "docs" / "from-theano.md"
PAIRS = [section for section in executed.sections(PAGE) if section.blocks]
#: Per library the modules that a left side calls `pytensor` and `pt`, and the one that has `until`.
LIBRARIES = {
    "rscan.theano": ("rscan.theano", "rscan.theano.tensor", "rscan.theano.scan_module"),
    "pytensor": ("pytensor", "pytensor.tensor", "pytensor.scan.utils"),
}


def names_of(library):
    """What a left side finds."""
    pytest.importorskip(library, reason=f"{library} is not installed")
    whole, tensor, scan = map(importlib.import_module, LIBRARIES[library])
    if library == "pytensor":
        # A C compiler is not needed for these, and takes longer than they do.
        whole.config.cxx, whole.config.mode = "", "FAST_COMPILE"
    return {"pytensor": whole, "pt": tensor, "until": scan.until, "np": np}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("section", PAIRS, ids=lambda section: section.title)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_both_sides_print_the_same(section, library):
    theirs, ours, printed = section.blocks
    assert (theirs.language, ours.language, printed.language) == ("py", "python", "text")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(theirs.text, names_of(library))
    assert re.split(r"\s+", out.getvalue().strip()) == re.split(r"\s+", printed.text.strip())


def rows():
    """The rows of the page's table: theirs, ours, remark."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[1:]]


def test_there_are_pairs_and_rows():
    assert len(PAIRS) >= 5 and len(rows()) >= 20 and all(len(row) >= 2 for row in rows())


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_names_of_the_table_exist(row):
    for path in re.findall(r"\b(?:rs|rscan)\.([\w.]+\w)", " ".join(row[1:])):
        if path.startswith("interop."):
            pytest.importorskip(path.split(".")[1], reason="its other side is not installed")
            importlib.import_module(f"rscan.{path.rpartition('.')[0]}")
        if path.startswith("theano"):
            importlib.import_module("rscan.theano")
        operator.attrgetter(path)(rs)


@pytest.mark.parametrize("library", ["pytensor"])
def test_their_names_of_the_table_exist(library):
    """What the left column calls by its module is there in PyTensor."""
    found = names_of(library)
    for theirs, *_ in rows():
        for name, path in re.findall(r"`(pytensor|pt)\.([\w.]+)\(?", theirs):
            operator.attrgetter(path)(found[name])
