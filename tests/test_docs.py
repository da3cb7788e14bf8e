"""Every program of README.md and docs/ runs and prints what the page says."""

import executed
import pytest

PAGES = [executed.ROOT / "README.md", *sorted((executed.ROOT / "docs").glob("**/*.md"))]


@pytest.mark.parametrize("section", [s for p in PAGES for s in executed.sections(p)], ids=str)
def test_programs(section, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    executed.run(section)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target in executed.re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_readme_is_short():
    lines = (executed.ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 150
    assert "```python" in lines[:25]
