"""What type checkers see of rscan: the stubs are current, user programs check, and mistakes are reported."""

import inspect
import re
import shutil
import subprocess
import sys
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

import rscan as rs

ROOT = Path(__file__).parent.parent
PROGRAMS = Path(__file__).parent / "typing"


def run(*command: str, cwd: Path) -> str:
    """What a checker says; it finds rscan here, whatever is installed."""
    environment = {"MYPYPATH": str(ROOT / "python"), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "python"), "HOME": str(cwd)}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=250)
    return done.stdout + done.stderr


def test_stubs_are_current(tmp_path):
    # In a process of its own: modules gather names as they are used.
    said = run(sys.executable, str(ROOT / "tools" / "stubs.py"), cwd=tmp_path)
    assert said == "", said


def reported(text: str) -> dict[str, set[int]]:
    """Lines with errors per program."""
    found: dict[str, set[int]] = {file.name: set() for file in PROGRAMS.glob("*.py")}
    for name, line in re.findall(r"(\w+\.py):(\d+)(?::\d+)?(?: -|:) error", text):
        found.setdefault(name, set()).add(int(line))
    return found


def expected() -> dict[str, set[int]]:
    lines = {file.name: file.read_text(encoding="utf-8").splitlines() for file in PROGRAMS.glob("*.py")}
    return {name: {i for i, line in enumerate(text, 1) if "# wrong:" in line} for name, text in lines.items()}


def test_mypy_reports_every_mistake_and_nothing_else(tmp_path):
    pytest.importorskip("mypy")
    programs = map(str, sorted(PROGRAMS.glob("*.py")))
    text = run(sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--config-file=", *programs, cwd=tmp_path)
    assert len(expected()["mistakes.py"]) >= 8
    assert reported(text) == expected(), text


def test_pyright_reports_every_mistake_and_nothing_else(tmp_path):
    pyright = Path(sys.executable).with_name("basedpyright")
    if not pyright.exists():
        pytest.skip("basedpyright is not installed")
    shutil.copytree(PROGRAMS, tmp_path / "programs")
    settings = '{"typeCheckingMode": "standard", "extraPaths": ["%s"], "include": ["programs"]}' % (ROOT / "python")
    (tmp_path / "pyrightconfig.json").write_text(settings)
    text = run(str(pyright), "--pythonpath", sys.executable, cwd=tmp_path)
    assert reported(text) == expected(), text


def test_the_types_of_what_is_public_are_known(tmp_path):
    pyright = Path(sys.executable).with_name("basedpyright")
    if not pyright.exists():
        pytest.skip("basedpyright is not installed")
    text = run(str(pyright), "--pythonpath", sys.executable, "--ignoreexternal", "--verifytypes", "rscan", cwd=tmp_path)
    (score,) = re.findall(r"Type completeness score: ([\d.]+)%", text) or [text]
    assert float(score) >= 99.5, "\n".join(line for line in text.splitlines() if "error" in line)


def test_stubtest_finds_nothing(tmp_path):
    pytest.importorskip("mypy")
    allowed, config = ROOT / "tests" / "typing_allowed.txt", str(ROOT / "pyproject.toml")
    options = ["--concise", "--allowlist", str(allowed), "--mypy-config-file", config, "--ignore-unused-allowlist"]
    text = run(sys.executable, "-m", "mypy.stubtest", "rscan", *options, cwd=tmp_path)
    assert text == "", text


@pytest.mark.parametrize("program", ["garch.py", "powers.py", "results.py"])
def test_programs_run(program, tmp_path):
    done = subprocess.run([sys.executable, PROGRAMS / program], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0 and "True" in done.stdout, done.stderr


def test_every_exported_name_exists():
    missing = [name for name in rs.__all__ if not hasattr(rs, name)]
    assert not missing
    assert len(set(rs.__all__)) == len(rs.__all__)
    undocumented = [name for name in rs.__all__ if callable(getattr(rs, name)) and not getattr(rs, name).__doc__]
    assert not undocumented


def test_dir_lists_what_users_mean_to_see():
    shown = dir(rs)
    assert all(hasattr(rs, name) for name in shown) and len(shown) < len(rs.__all__)
    assert {"dvector", "scan", "exp", "pi", "linalg", "print", "fft", "jit"} <= set(shown) and rs.jit is rs.compile
    assert not {"ubtensor5s", "derivatives", "inputs", "ops", "annotations", "_native"} & set(shown)


@pytest.mark.parametrize("name", ["scan", "loop", "function", "compile", "grad", "value_and_grad", "jacobian", "hessian", "vmap", "shared"])
def test_signatures_say_what_is_taken(name):
    function = getattr(rs, name)
    signature = inspect.signature(function)
    names = {"Operand": rs.typing.Operand, "np": np, "Sequence": Sequence, "Iterable": Iterable, "Mapping": Mapping, "Callable": Callable}
    for parameter in signature.parameters.values():
        assert parameter.annotation not in ("Any", parameter.empty) or parameter.name in ("mode", "args", "named"), parameter
        eval(parameter.annotation, vars(typing) | vars(rs) | names)
    assert signature.return_annotation != "Any"
    signature.bind(lambda x: x)


def test_dir_lists_words_of_theano_to_whom_uses_them():
    program = "import rscan as rs; a = dir(rs); import rscan.theano; b = dir(rs); print(sorted(set(b) - set(a)), set(a) - set(b))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    more, fewer = done.stdout.strip().rsplit(" ", 1)
    words = {"bit_and", "alloc", "eq", "neg", "consider_constant", "Lop", "print_", "set_subtensor"}
    assert fewer == "set()" and words <= set(eval(more)), done.stderr
    assert all(hasattr(rs, name) and name in rs.__all__ for name in eval(more))
    assert rs.interop.__name__ == "rscan.interop"


def test_modules_do_not_hide_among_the_functions():
    program = "import rscan as rs; print([n for n, v in vars(rs).items() if type(v) is type(rs) and n not in rs.__all__ and n[0] != '_'])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    assert done.stdout.strip() == "[]", done.stderr
