"""The whole text of errors: each program in `ui/` ends in one, and its text lies beside it. `UPDATE=1` rewrites the texts."""

import os
import runpy
from pathlib import Path

import pytest

import rscan as rs

PROGRAMS = sorted((Path(__file__).parent / "ui").glob("*.py"))


def error_of(program: Path) -> rs.RscanError:
    """What a program raises."""
    with pytest.raises(rs.RscanError) as caught:
        runpy.run_path(str(program), run_name="__main__")
    return caught.value


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_text(program):
    error = error_of(program)
    text = error.render() + "\n"
    expected = program.with_suffix(".stderr")
    if os.environ.get("UPDATE"):
        expected.write_text(text)
    assert text == expected.read_text()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_names_the_users_line(program):
    error = error_of(program)
    assert error.labels, "an error says where"
    assert {Path(file).name for file, _, _ in error.labels} == {program.name}, "only lines of the user's program"


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_code_has_a_page(program):
    code = error_of(program).code
    page = rs.error_page(code)
    assert page is not None and page.startswith(f"# {code}: ")


def test_no_text_without_program():
    texts = {p.stem for p in (Path(__file__).parent / "ui").glob("*.stderr")}
    assert texts == {p.stem for p in PROGRAMS}
