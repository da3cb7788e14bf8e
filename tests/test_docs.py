"""Every program of README.md and docs/ runs and prints what the page says."""

import importlib.util
import inspect
import re

import executed
import pytest

import rscan as rs

PAGES = [executed.ROOT / "README.md", *sorted((executed.ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("section", [s for p in PAGES for s in executed.sections(p)], ids=str)
@pytest.mark.usefixtures("chosen_engine")
def test_programs(section, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    executed.run(section)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_pages_begin_with_their_imports(page):
    """Who copies the first program of a page has what it uses."""
    first = re.search(r"(?ms)^```python\n(.*?)^```$", page.read_text())
    for module, name in (("numpy", "np"), ("rscan", "rs")):
        if first and re.search(rf"\b{name}\.", first[1]):
            assert f"import {module} as {name}" in first[1]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    prose = re.sub(r"(?ms)^```.*?^```$", "", page.read_text())
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_tests_of_the_laws_exist():
    python = "".join(p.read_text() for p in (executed.ROOT / "tests").glob("*.py"))
    rust = "".join(p.read_text() for p in (executed.ROOT / "crates" / "scan-core").rglob("*.rs"))
    spec = "".join(p.read_text() for p in (executed.ROOT / "tests" / "spec").glob("*.md"))
    rows = [r.split("|") for r in (executed.ROOT / "docs" / "laws.md").read_text().splitlines() if r.startswith("| ")][1:]
    laws, sums = [r for r in rows if len(r) == 7], [r for r in rows if len(r) == 5]
    assert (len(laws), len(sums)) == (13, 8)
    for name in re.findall(r"`(\w+_\w+)`", "".join(r[3] for r in sums)):
        assert f"fn {name}(" in rust, name
    for row in laws:
        for title in re.findall(r"\*([^*]+)\*", row[3]):
            assert f"\n## {title}\n" in spec, title
        for name in re.findall(r"`(\w+)`", row[4]):
            assert f"def {name}(" in python or f"class {name}:" in python, name
        for name in re.findall(r"`(\w+)`", row[5]):
            assert f"fn {name}(" in rust, name


def test_readme_is_short():
    lines = (executed.ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 150
    assert "```python" in lines[:25]


def test_every_public_name_is_in_the_reference():
    spec = importlib.util.spec_from_file_location("conf", executed.ROOT / "docs" / "conf.py")
    conf = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(conf)
    groups = conf.public_names()
    listed = [name for names in groups.values() for name in names]
    assert len(listed) == len(set(listed))
    modules = {name for name in rs.__all__ if inspect.ismodule(getattr(rs, name))}
    assert set(rs.__all__) - modules <= set(listed)
    assert all(any(name.startswith(f"{module}.") for name in listed) for module in modules)
    assert conf.entry("scan")[0].startswith("````{py:function} rscan.scan(fn: Callable[..., Any], sequences")
    assert "outputs_info" in "\n".join(conf.entry("scan"))


def test_figures_of_the_readme_are_those_of_the_page():
    """The README rounds what docs/why-not-jax.md has of `rscan bench`."""
    page = (executed.ROOT / "docs" / "why-not-jax.md").read_text()
    readme = (executed.ROOT / "README.md").read_text()
    for system, exact, rounded in [("rscan", "11.8 µs", "12 µs"), ("jax", "39.5 µs", "40 µs"), ("pytensor", "618 µs", "620 µs")]:
        assert re.search(rf"^\| {system} \|.*\| {exact} \|$", page, re.M)
        assert re.search(rf"^\| {system} \|.*\| {rounded} \|", readme, re.M | re.I)
