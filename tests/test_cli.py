"""The command `rscan`."""

import importlib
import json
import os
import pickle
import re
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

import rscan as rs
from rscan.cli import main

PROGRAM = """
import sys
import rscan as rs

x = rs.dvector("x")
rows, _ = rs.scan(lambda x, h: x + 0.5 * h, x, rs.constant(0.0), name="smooth")
f = rs.function([x], rows, name="f")
g = rs.function([x], rs.sum(rows), name="g")
y = rows + 1
print("ran", sys.argv[1:])
"""

WRONG = """
import rscan as rs


def build():
    return rs.scan(lambda h: h @ rs.ones((2, 2)), outputs_info=rs.constant([0, 1]), n_steps=3)


build()
"""


@pytest.fixture
def program(tmp_path):
    (tmp_path / "prog.py").write_text(PROGRAM)
    return str(tmp_path / "prog.py")


def test_bare_is_help(capsys):
    assert main([]) == 0
    out = capsys.readouterr().out
    assert all(command in out for command in ("doctor", "explain", "run", "show", "bench", "--version"))


def test_version(capsys):
    with pytest.raises(SystemExit) as done:
        main(["--version"])
    assert done.value.code == 0 and capsys.readouterr().out == f"rscan {rs.__version__}\n"


def test_the_console_script_is_there():
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
    module, _, function = project["scripts"]["rscan"].partition(":")
    assert getattr(importlib.import_module(module), function) is main


def test_as_a_module():
    done = subprocess.run([sys.executable, "-m", "rscan"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("usage: rscan")


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_a_reader_may_stop_reading():
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([sys.executable, "-m", "rscan", "explain", "E0103"], stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


def test_unknown_commands_are_refused(capsys):
    with pytest.raises(SystemExit) as done:
        main(["dance"])
    assert done.value.code == 2 and "invalid choice" in capsys.readouterr().err


class TestExplain:
    def test_a_code(self, capsys):
        assert main(["explain", "E0103"]) == 0
        assert capsys.readouterr().out.startswith("# E0103: a state changes its dtype")
        assert main(["explain", "103"]) == 0
        assert main(["explain", "E9998"]) == 1
        assert "no error code" in capsys.readouterr().err

    def test_a_list_of_all(self, capsys):
        assert main(["explain"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) > 40 and all(line[0] == "E" and line[5] == ":" for line in lines)


class TestDoctor:
    def test_says_that_every_engine_works(self, capsys):
        assert main(["doctor"]) == 0
        out = capsys.readouterr().out
        assert all(f"{engine:<8} works" in out for engine in ("eval", "vm", "jit"))

    def test_lists_devices(self, capsys, monkeypatch):
        monkeypatch.setenv("RSCAN_CUDA_DRIVER", "fake")
        monkeypatch.setenv("VK_DRIVER_FILES", "/nowhere")
        monkeypatch.setenv("VK_ICD_FILENAMES", "/nowhere")
        assert main(["doctor"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert "cuda:0   PTX interpreted by the processor (compute capability 9.0, CUDA 12.4, a program on the processor)" in lines
        assert any(line.startswith("wgpu     none: Vulkan has no adapter here") for line in lines), lines

    def test_for_programs(self, capsys, monkeypatch):
        monkeypatch.setenv("RSCAN_NUM_THREADS", "3")
        assert main(["doctor", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["works"] and found["rscan"] == rs.__version__ and found["settings"]["RSCAN_NUM_THREADS"] == "3"
        assert found["threads"] == 3

    def test_says_what_fails(self, capsys, monkeypatch):
        monkeypatch.setenv("RSCAN_NUM_THREADS", "none")
        assert main(["doctor"]) == 1
        assert "FAILS" in capsys.readouterr().out


class TestRun:
    def test_a_program_with_arguments(self, program, capsys):
        assert main(["run", program, "a", "--b"]) == 0
        assert capsys.readouterr().out == "ran ['a', '--b']\n"

    def test_errors_without_frames_of_the_library(self, tmp_path, capsys):
        (tmp_path / "wrong.py").write_text(WRONG)
        assert main(["run", str(tmp_path / "wrong.py")]) == 1
        text = capsys.readouterr().err
        assert "wrong.py" in text and "in build" in text and "[E0" in text and "`rscan explain E0" in text
        assert "rscan/scan.py" not in text and "runpy" not in text

    def test_errors_for_programs(self, tmp_path, capsys):
        (tmp_path / "wrong.py").write_text(WRONG)
        assert main(["run", "--json", str(tmp_path / "wrong.py")]) == 1
        found = json.loads(capsys.readouterr().err)
        assert set(found) == {"error", "code", "title", "labels", "notes", "helps"}
        assert issubclass(getattr(rs, found["error"]), rs.RscanError) and rs.error_page(found["code"])
        line = next(i for i, text in enumerate(WRONG.splitlines(), 1) if "rs.scan(" in text)
        assert any(label["file"].endswith("wrong.py") and label["line"] == line for label in found["labels"])

    def test_arguments_after_the_program_are_its_own(self, program, capsys):
        assert main(["run", "--json", program, "--json"]) == 0
        assert capsys.readouterr().out == "ran ['--json']\n"

    def test_theano(self, tmp_path):
        (tmp_path / "old.py").write_text("import theano\nprint(theano.function([], theano.tensor.constant(2) + 1)())\n")
        done = subprocess.run([sys.executable, "-m", "rscan", "run", "--theano", tmp_path / "old.py"], capture_output=True, text=True)
        assert done.stdout == "3\n", done.stderr

    def test_a_file_that_is_not_there(self, capsys):
        assert main(["run", "nowhere.py"]) == 2
        assert "no file 'nowhere.py'" in capsys.readouterr().err


class TestShow:
    def test_every_form(self, program, tmp_path, capsys):
        for form, start in (("--text", "fn f("), ("--dot", "digraph"), ("--mermaid", "flowchart")):
            assert main(["show", program + ":f", form, "-o", str(tmp_path / "out")]) == 0
            assert (tmp_path / "out").read_text().startswith(start)
        assert main(["show", program + ":g", "--svg", "-o", str(tmp_path / "out.svg")]) == 0
        assert ET.parse(tmp_path / "out.svg").getroot().tag.endswith("svg")

    def test_all_functions_of_a_program(self, program, capsys):
        assert main(["show", program]) == 0
        out = capsys.readouterr().out
        assert out.count("fn f(") == 1 and out.count("fn g(") == 1
        assert main(["show", program, "--svg"]) == 1
        assert "makes f, g; name one" in capsys.readouterr().err

    def test_without_functions_what_is_computed_is_shown_and_inputs_are_not(self, tmp_path, capsys):
        (tmp_path / "plain.py").write_text('import rscan as rs\n\nx = rs.dvector("x")\ny = rs.tanh(x)\n')
        assert main(["show", str(tmp_path / "plain.py"), "--svg"]) == 0
        assert "tanh" in capsys.readouterr().out
        (tmp_path / "inputs.py").write_text('import rscan as rs\n\nx = rs.dvector("x")\n')
        assert main(["show", str(tmp_path / "inputs.py")]) == 1
        assert "makes no function or variable" in capsys.readouterr().err

    def test_a_pickled_function(self, tmp_path, capsys):
        x = rs.dvector("x")
        (tmp_path / "f.pkl").write_bytes(pickle.dumps(rs.function([x], x * 2, name="twice")))
        assert main(["show", str(tmp_path / "f.pkl"), "--optimised"]) == 0
        assert "fn twice(" in capsys.readouterr().out

    def test_a_file_of_save(self, tmp_path, capsys):
        path = str(tmp_path / "m.rscan")
        x = rs.dvector("x")
        rs.save(path, f=rs.function([x], rs.exp(x), name="f"), g=rs.function([x], rs.tanh(x), name="g"))
        assert main(["show", path + ":g", "--svg"]) == 0
        assert "tanh" in "".join(ET.fromstring(capsys.readouterr().out).itertext())
        assert main(["show", path]) == 0
        assert "exp(x)" in (text := capsys.readouterr().out) and "tanh(x)" in text
        assert main(["show", path, "--json", "--mermaid"]) == 0
        assert {name: text.startswith("flowchart") for name, text in json.loads(capsys.readouterr().out).items()} == {"f": True, "g": True}

    @pytest.mark.parametrize("content", [b"", b"\x80abc", b"text", pickle.dumps(rs.until)[:-5]])
    def test_what_cannot_be_read(self, content, tmp_path, capsys):
        path = tmp_path / "f.bin"
        path.write_bytes(content)
        assert main(["show", str(path)]) == 1
        said = capsys.readouterr().err
        assert said.startswith("rscan show: ") and said.count("\n") == 1

    def test_what_is_not_there(self, program, capsys):
        assert main(["show", "nowhere.py"]) == 2
        assert main(["show", program + ":h"]) == 1
        assert "no function or variable named 'h'" in capsys.readouterr().err


def test_inspect_for_programs(tmp_path, capsys):
    path = str(tmp_path / "m.rscan")
    x, total = rs.tensor("float32", (None, 3), "x"), rs.shared(np.zeros(3), "total")
    f = rs.function([x], rs.sum(x, axis=0), updates={total: total + rs.sum(x, axis=0)}, name="f")
    f.doc = "column sums"
    rs.save(path, f=f)
    assert main(["inspect", path, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["shared"] == {"total": {"dtype": "float64", "shape": [3]}}
    assert found["functions"]["f"] == {
        "inputs": [{"name": "x", "dtype": "float32", "shape": [None, 3]}],
        "outputs": [{"name": None, "dtype": "float32", "shape": [3]}],
        "updates": ["total"],
        "doc": "column sums",
    }


def test_explain_for_programs(capsys):
    assert main(["explain", "e0103", "--json"]) == 0
    page = json.loads(capsys.readouterr().out)
    assert page["code"] == "E0103" and rs.error_page("E0103").startswith(f"# E0103: {page['title']}") and "```" in page["text"]
    assert main(["explain", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["E0103"] == page["title"]


def test_onnx_writes_the_function_that_is_named(tmp_path, capsys):
    file, out = tmp_path / "two.rscan", str(tmp_path / "two.onnx")
    a, b = rs.dmatrix("a"), rs.dvector("b")
    rs.save(file, twice=rs.function([b], b * 2), solved=rs.function([a, b], rs.linalg.solve(a, b)))
    assert main(["onnx", str(file), out, "--function", "solved"]) == 1
    assert "`solve`: there are no factorisations" in capsys.readouterr().err
    assert main(["onnx", str(file), out, "--function", "thrice"]) == 1
    assert "has twice, solved; name one: --function twice" in capsys.readouterr().err


def test_onnx_for_programs(tmp_path, capsys):
    pytest.importorskip("onnx", reason="onnx is not installed")
    file, out = tmp_path / "f.rscan", tmp_path / "f.onnx"
    x = rs.dvector("x")
    rs.save(file, f=rs.function([x], rs.exp(x)))
    assert main(["onnx", str(file), str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["function"], found["file"], found["bytes"]) == ("f", str(out), out.stat().st_size)
    assert found["inputs"] == [{"name": "x", "dtype": "float64", "shape": [None]}]


def test_every_command_speaks_to_programs(capsys):
    """`--json` is an option of each."""
    with pytest.raises(SystemExit):
        main(["--help"])
    commands = re.findall(r"(?m)^    ([a-z]+)  ", capsys.readouterr().out)
    assert len(commands) >= 7
    for command in commands:
        with pytest.raises(SystemExit):
            main([command, "--help"])
        assert "--json" in capsys.readouterr().out, command


def test_bench_compares_figures_that_agree(capsys):
    assert main(["bench", "--json", "--only", "rscan"]) == 0
    found = json.loads(capsys.readouterr().out)
    (rscan,) = found["systems"]
    assert found["agree"] and rscan["system"] == "rscan"
    assert rscan["call_us"] > 0 and np.isfinite(rscan["gradient"]).all()


def test_bench_says_where_figures_disagree(capsys, monkeypatch):
    from rscan import bench

    wrong = lambda y: lambda theta: (0.0, np.zeros(3))
    monkeypatch.setattr(bench, "SYSTEMS", {"wrong": ("numpy", wrong)})
    assert main(["bench"]) == 1
    assert "DISAGREE" in capsys.readouterr().out
