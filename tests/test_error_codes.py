"""Every error code has a program that ends in it, with its whole text; codes that no program in Python reaches are listed with the reason.

The programs are those of `ui/` (one file each) and of `ui/codes.md` (short ones).
"""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import rscan as rs

TABLE = Path(__file__).parent / "ui" / "codes.md"
CODES = Path(__file__).parent.parent / "crates" / "scan-core" / "src" / "base" / "codes"
SECTION = re.compile(r"^# (?P<title>[^\n]*)\n\n```python\n(?P<program>.*?)```\n(?:```text\n(?P<text>.*?)```\n)?", re.M | re.S)
HEAD = "import numpy as np\n\nimport rscan as rs\n\n"

_GRAPH = "a graph that neither Python nor the text form can say: tests of the core"
_OPS = "ops that programs in Rust define: tests of the core"
_EARLIER = "Python finds it earlier: "
#: Codes that no whole text is tested for here, and why.
ELSEWHERE = {
    "E0119": _EARLIER + "E0126",
    "E0125": "a warning: TestForgotten in test_scan.py, and tests/facade/test_scan.py",
    "E0130": "loops written in Rust: tests of the core",
    "E0207": _EARLIER + "E0804",
    "E0221": _EARLIER + "E0803 and E0810",
    "E0390": "Ctrl-C is Python's KeyboardInterrupt: tests/test_interrupts.py",
    "E0391": "the exception of the user's op comes out itself: test_exceptions_of_user_code_come_out_unchanged in test_errors.py",
    "E0405": _OPS,
    "E0511": "an environment variable, read once per process: test_settings_that_make_no_sense",
    "E0522": "needs an adapter without float64: tests of the core",
    "E0523": "needs a device that fails: tests of the core",
    "E0605": _EARLIER + "rs.linalg.qr takes matrices of any shape",
    "E0911": _GRAPH,
    "E0912": _GRAPH,
    "E0913": _GRAPH,
    "E0914": _GRAPH,
    "E0915": _GRAPH,
    "E0923": "a file of a newer rscan: tests of the core",
    "E9999": "a fault of rscan itself",
}

#: Parts of texts that are the machine's.
MACHINE = [(re.compile(r"the machine has .*"), "the machine has …"), (re.compile(r"no adapter.*"), "no adapter …")]


def sections():
    return [found.groupdict() for found in SECTION.finditer(TABLE.read_text())]


def error_of(program, folder):
    """What a program raises."""
    file = folder / "program.py"
    file.write_text(HEAD + program)
    with pytest.raises(rs.RscanError) as caught:
        runpy.run_path(str(file), run_name="__main__")
    return caught.value


def text_of(error):
    text = error.render() + "\n"
    for pattern, instead in MACHINE:
        text = pattern.sub(instead, text)
    return text


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("section", sections(), ids=lambda section: section["title"])
def test_text(section, tmp_path):
    error = error_of(section["program"], tmp_path)
    text = text_of(error)
    if os.environ.get("UPDATE"):
        whole = TABLE.read_text()
        start = whole.index(f"# {section['title']}\n\n```python\n{section['program']}```\n")
        head = f"# {section['title']}\n\n```python\n{section['program']}```\n"
        rest = re.sub(r"\A```text\n.*?```\n", "", whole[start + len(head) :], flags=re.S)
        TABLE.write_text(whole[:start] + head + f"```text\n{text}```\n" + rest)
        return
    assert text == section["text"]
    if re.fullmatch(r"E\d{4}", section["title"]):
        assert error.code == section["title"]
    assert {Path(file).name for file, _, _ in error.labels} == {"program.py"}, "an error says where, in the user's program alone"
    assert rs.error_page(error.code).startswith(f"# {error.code}: ")


def test_every_code_has_a_text_or_a_reason():
    codes = {page.stem for page in CODES.glob("E*.md")}
    texts = [file.read_text() for file in TABLE.parent.glob("*.stderr")] + [section["text"] or "" for section in sections()]
    told = {code for text in texts for code in re.findall(r"^\w+\[(E\d{4})\]: ", text)}
    assert told | set(ELSEWHERE) == codes
    assert not told & set(ELSEWHERE), "what has a text needs no reason"


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("RSCAN_NUM_THREADS", "many", "a whole number from 1 on, or not be set"),
        ("RSCAN_ISA", "avx1024", "avx512, avx2 or portable, or not be set"),
    ],
)
def test_settings_that_make_no_sense(name, value, allowed, tmp_path):
    (tmp_path / "program.py").write_text(HEAD + "rs.function([], rs.constant(1.0))\n")
    environment = {**os.environ, name: value, "RSCAN_ENGINE": "", "PYTHONPATH": str(Path(rs.__file__).parent.parent)}
    done = subprocess.run([sys.executable, tmp_path / "program.py"], env=environment, capture_output=True, text=True, timeout=60)
    title = f'rscan.errors.RscanValueError: [E0511] {name} is "{value}"; it may be {allowed}'
    assert done.stderr.splitlines()[-3:] == [title, "  --> program.py:5", "5 | rs.function([], rs.constant(1.0))"]


def test_an_argument_of_none_is_named():
    with pytest.raises(TypeError) as caught:
        rs.compile(lambda x, y: x + y, name="added")(1.0, None)
    assert caught.value.__notes__ == ["argument `y` of added() is None, which the function gets as it is: pass an array or a number"]


def test_the_gradient_of_what_is_linear_needs_no_input():
    """Nothing depends on the values of x, and a call takes them all the same."""
    assert rs.grad(lambda x: rs.sum(3.0 * x))([1.0, 2.0]).tolist() == [3.0, 3.0]
    value, slope = rs.value_and_grad(lambda x: 3.0 * x)(2.0)
    assert (value, slope) == (6.0, 3.0)


def test_errors_that_travel_keep_their_places():
    import pickle

    error = rs.RscanError("text", code="E0809", labels=[("file.py", 3, "here")])
    assert pickle.loads(pickle.dumps(error)).labels == error.labels == [("file.py", 3, "here")]
