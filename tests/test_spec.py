"""The specification of scan: prose, programs, and the values that they print, worked out by hand."""

import executed
import pytest

PAGES = sorted((executed.ROOT / "tests" / "spec").glob("*.md"))
SECTIONS = [s for p in PAGES for s in executed.sections(p)]


@pytest.mark.parametrize("section", SECTIONS, ids=str)
def test_section(section):
    languages = [b.language for b in section.blocks]
    assert languages == ["python", "text"] * (len(languages) // 2), "every program is followed by what it prints"
    executed.run(section)
