"""Every error code has a program that ends in it, with its whole text; codes that no program in Python reaches are listed with the reason.

The programs are those of `ui/` (one file each) and of `ui/codes.md` (short ones).
"""

import os
import re
import runpy
from pathlib import Path

import pytest

import rscan as rs

TABLE = Path(__file__).parent / "ui" / "codes.md"
CODES = Path(__file__).parent.parent / "crates" / "scan-core" / "src" / "base" / "codes"
SECTION = re.compile(r"^# (?P<title>[^\n]*)\n\n```python\n(?P<program>.*?)```\n(?:```text\n(?P<text>.*?)```\n)?", re.M | re.S)
HEAD = "import numpy as np\n\nimport rscan as rs\n\n"

_TEXT = "the text form of graphs: Python reads only what rscan wrote, in pickles"
_OPS = "ops of users exist in Rust alone"
_EARLIER = "Python finds it earlier: "
#: Codes that no whole text is tested for here, and why.
ELSEWHERE = {
    "E0119": _EARLIER + "E0126",
    "E0125": "a warning: TestForgotten in test_scan.py, and tests/facade/test_scan.py",
    "E0207": _EARLIER + "E0804",
    "E0221": _EARLIER + "E0803 and E0810",
    "E0231": _TEXT,
    "E0302": _OPS,
    "E0390": "Ctrl-C is Python's KeyboardInterrupt: tests/test_interrupts.py",
    "E0391": _OPS,
    "E0405": _OPS,
    "E0414": _OPS,
    "E0415": _OPS,
    "E0511": "an environment variable, read once per process: tests of the core",
    "E0522": "needs an adapter without float64: tests of the core",
    "E0523": "needs a device that fails: tests of the core",
    "E0605": _EARLIER + "rs.linalg.qr takes matrices of any shape",
    "E0901": _TEXT,
    "E0902": _TEXT,
    "E0903": _TEXT,
    "E0904": _TEXT,
    "E0905": _OPS,
    "E0906": _TEXT,
    "E0907": _TEXT,
    "E0908": _TEXT,
    "E0911": _TEXT,
    "E0912": _TEXT,
    "E0913": _TEXT,
    "E0914": _TEXT,
    "E0915": _TEXT,
    "E0916": _TEXT,
    "E0917": _TEXT,
    "E0918": _TEXT,
    "E0923": "a file of a newer rscan: tests of the core",
    "E0924": "a file that was put together by hand: tests of the core",
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
