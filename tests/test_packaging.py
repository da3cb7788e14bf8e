"""What is published: metadata, the source distribution, the workflow that builds wheels."""

import importlib.util
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import rscan as rs

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_metadata_is_complete():
    project = PROJECT["project"]
    for key in ("description", "readme", "license", "keywords", "authors", "classifiers", "scripts", "requires-python"):
        assert project[key], key
    assert {"Typing :: Typed", "Programming Language :: Rust"} <= set(project["classifiers"])
    assert rs.__version__ == tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def test_links_of_the_readme_lead_to_the_repository():
    """What an index of packages shows has no files beside it."""
    spec = importlib.util.spec_from_file_location("readme", ROOT / "tools" / "readme.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    before = (ROOT / "README.md").read_text(encoding="utf-8")
    after = tool.absolute(before, "scheme://host/owner/rscan/", "v1.2.3")
    targets = [found[1] for found in re.finditer(r"\]\(([^)]+)\)", after)]
    assert len(targets) > 15 and len(targets) == before.count("](")
    for target in targets:
        kind, _, path = target.removeprefix("scheme://host/owner/rscan/").partition("/v1.2.3/")
        assert kind in ("blob", "raw") and (ROOT / path).exists(), target
    assert "![" in after and re.search(r"!\[[^\]]*\]\(scheme://host/owner/rscan/raw/v1.2.3/docs/garch.png\)", after)
    workflow = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    assert workflow.count("tools/readme.py") == workflow.count("PyO3/maturin-action")


def test_every_bridge_says_what_it_needs():
    bridges = {f.stem for f in (ROOT / "python" / "rscan" / "interop").glob("[a-z]*.py")}
    extras = set(PROJECT["project"]["optional-dependencies"])
    assert bridges - {"pytensor"} <= extras and "pymc" in extras  # which brings PyTensor along


def test_the_source_distribution_has_what_a_build_needs(tmp_path):
    maturin = shutil.which("maturin", path=str(Path(sys.executable).parent)) or shutil.which("maturin")
    if maturin is None or shutil.which("cargo") is None:
        pytest.skip("maturin or cargo is not installed")
    done = subprocess.run([maturin, "sdist", "-o", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr
    (file,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(file) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"PKG-INFO", "Cargo.lock", "LICENSE-MIT", "LICENSE-APACHE", "README.md", "python/rscan/py.typed", "python/rscan/__init__.pyi"}
    assert wanted - names == set()
    assert "crates/scan-core/src/base/codes/E0103.md" in names and "python/rscan/interop/scipy.py" in names
    assert not [name for name in names if name.endswith((".so", ".pyc", ".pyd")) or name.startswith("target/")]
    assert file.stat().st_size < 5_000_000


def test_the_workflow_builds_for_every_system_and_asserts_the_tag():
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    assert all(system in text for system in ("ubuntu-latest", "ubuntu-24.04-arm", "macos-14", "windows-latest", "musllinux"))
    oldest = PROJECT["project"]["requires-python"].removeprefix(">=").replace(".", "")
    assert f"cp{oldest}-abi3" in text and f"abi3-py{oldest}" in (ROOT / "crates" / "scan-py" / "Cargo.toml").read_text()
    assert re.search(r"if: startsWith\(github.ref, 'refs/tags/v'\)\n    needs:", text), "nothing but a tag publishes"
    assert "cp314-cp314t" in text and "--release" in text


def test_pythons_without_a_lock_have_wheels_that_are_tried():
    """The wheel for every Python does not run there. Each is built on every system, its tag is asserted, and tests run in threads."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    job = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())["jobs"]["wheels"]
    entries = job["strategy"]["matrix"]["include"]
    systems = {entry["os"] for entry in entries if "python" not in entry and not entry.get("manylinux", "").startswith("musl")}
    for python, feature in (("3.14t", None), ("3.15t", "pyo3/abi3t-py315")):
        built = [entry for entry in entries if entry.get("python") == python]
        assert {entry["os"] for entry in built} == systems - {"macos-15-intel"} and {entry.get("features") for entry in built} == {feature}
    steps = {step["name"]: step for step in job["steps"] if "name" in step}
    tag = next(step["run"] for name, step in steps.items() if name.startswith("One wheel"))
    assert "cp314-cp314t" in tag and "cp315-*abi3t" in tag
    threads = steps["Run tests in many threads"]
    assert threads["if"] == "${{ matrix.python }}" and "--parallel-threads=8" in threads["run"] and "_is_gil_enabled()" in threads["run"]
    tests = job["env"]["THREADED"].split()
    assert f"\nTHREADED := {' '.join(tests)}\n" in (ROOT / "Makefile").read_text()
    assert len(tests) > 3 and all((ROOT / test).exists() for test in tests)


def test_wheels_are_built_without_what_tests_need():
    cargo = tomllib.loads((ROOT / "crates" / "scan-py" / "Cargo.toml").read_text())
    assert PROJECT["tool"]["maturin"]["no-default-features"] is True
    assert "testing" not in cargo["dependencies"]["scan-core"]["features"] and cargo["features"]["testing"] == ["scan-core/testing"]


def test_what_is_wrong_with_a_wheel_is_found(tmp_path):
    spec = importlib.util.spec_from_file_location("check_wheel", ROOT / "tools" / "check_wheel.py")
    check = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(check)
    metadata = "Summary: s\nKeywords: k\nLicense-Expression: MIT\nClassifier: c\nAuthor: a\n"
    parts = ["rscan/py.typed", "rscan/__init__.pyi", "rscan.dist-info/licenses/LICENSE-MIT", "rscan.dist-info/sboms/a.json"]

    def wheel(library, metadata, names):
        path = tmp_path / "rscan-0-cp311-abi3-any.whl"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("rscan/_native.abi3.so", library)
            archive.writestr("rscan.dist-info/METADATA", metadata)
            for name in names:
                archive.writestr(name, "")
        return check.inside(path)

    good = [*parts, "rscan.dist-info/entry_points.txt"]
    assert wheel(b"\x7fELF.text", metadata, good) == []
    library = b"\x7fELF /home/me/.cargo/registry/x.rs check_device .symtab"
    found = wheel(library, metadata.replace("Keywords", "Words"), [*parts, "rscan/tests/test_a.py"])
    for fault in ("1 paths of the machine", "`check_device`", "not stripped", "no entry_points.txt", "no Keywords", "rscan/tests/"):
        assert any(fault in line for line in found), (fault, found)
    assert len(found) == 6
    assert any("the limit is 6" in line for line in wheel(bytes(7_000_000), metadata, good))


def test_importing_stays_small():
    """What `import rscan` adds to `import numpy`: time follows, and does not depend on the machine's load."""
    program = "import sys, numpy; before = set(sys.modules); import rscan; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    added = set(done.stdout.split())
    assert {name for name in added if name.partition(".")[0] != "rscan"} <= {"__future__", "copy", "dataclasses", "threading"}, done.stderr
    assert 50 < len(added) <= 80, "what few programs need is imported where it is used"
    assert not {f"rscan.{name}" for name in ("interop", "theano", "onnx", "cli", "_html", "_drawing", "stats", "optim", "ode")} & added
