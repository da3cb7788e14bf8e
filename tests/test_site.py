"""The site of the documentation: it builds without a warning, and its links lead somewhere. Needs what requirements-docs.txt lists."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

for module in ("sphinx", "myst_nb", "furo"):
    pytest.importorskip(module, reason=f"{module} is not installed")

DOCS = Path(__file__).parent.parent / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The pages of the site, without the results of notebooks, which other tests run."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(DOCS, folder / "docs", ignore=shutil.ignore_patterns("api", "_build"))
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-D", "nb_execution_mode=off", folder / "docs", folder / "out"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    return folder / "out"


def test_every_page_and_every_public_name_is_there(site):
    pages = {page.relative_to(site).as_posix() for page in site.rglob("*.html")}
    assert {f"{page.stem}.html" for page in (*DOCS.glob("*.md"), *DOCS.glob("*.ipynb"))} <= pages
    reference = "".join(page.read_text() for page in (site / "api").glob("*.html"))
    assert all(f'id="rscan.{name}"' in reference for name in ("scan", "loop", "linalg.solve", "interop.scipy.objective"))


def test_readers_choose_light_or_dark(site):
    """The switch of the theme, with colours of programs and of results of notebooks for both."""
    for page in ("index.html", "tutorial.html", "api/loops.html"):
        assert 'class="theme-toggle"' in (site / page).read_text()
    styles = "".join(style.read_text() for style in (site / "_static").rglob("*.css"))
    assert all(f'[data-theme="{theme}"]' in styles or f"[data-theme={theme}]" in styles for theme in ("light", "dark"))
    assert "[data-theme=dark] .highlight" in styles.replace('"', "") and "--mystnb-source-bg-color" in styles


def test_local_links_lead_somewhere(site):
    for page in site.rglob("*.html"):
        for target, anchor in re.findall(r'(?:href|src)="([^"#:?]*)(?:\?[^"#]*)?(?:#([^"]*))?"', page.read_text()):
            found = page if not target else (page.parent / unquote(target)).resolve()
            assert found.exists() or "genindex" in target, f"{page.name} links to {target}"
            if anchor and found.suffix == ".html":
                assert f'id="{unquote(anchor)}"' in found.read_text(), f"{page.name} links to {target}#{anchor}"
