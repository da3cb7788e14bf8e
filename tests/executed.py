"""Runs the programs of a Markdown file.

Every fenced `python` block runs; a `text` block right after it is what it prints (`...` stands for anything, blanks
count as one). The blocks of one section, from one heading to the next, share their names; `rs` and `np` are there from
the start.
"""

import contextlib
import doctest
import io
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import rscan as rs

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^```(\w*|\{\w+\})\s*$")
HEADING = re.compile(r"^#+ +(.*)$")


@dataclass
class Block:
    """A fenced block: its language, its text and the line where the text starts."""

    language: str
    text: str
    line: int


@dataclass
class Section:
    """The blocks under one heading."""

    path: Path
    title: str
    blocks: list[Block] = field(default_factory=list)

    def __str__(self):
        return f"{self.path.relative_to(ROOT).as_posix()}: {self.title}"


def sections(path):
    """The sections of a file that hold a program."""
    found = [Section(path, path.stem)]
    language, lines, start = None, [], 0
    for number, line in enumerate(path.read_text().splitlines(), 1):
        fence = FENCE.match(line)
        if language is None and fence:
            language, lines, start = fence[1] or "plain", [], number + 1
        elif language is None and HEADING.match(line):
            found.append(Section(path, HEADING.match(line)[1]))
        elif language is not None and line.startswith("```"):
            found[-1].blocks.append(Block(language, "\n".join(lines) + "\n", start))
            language = None
        elif language is not None:
            lines.append(line)
    assert language is None, f"{path}: the block of line {start} has no end"
    return [s for s in found if any(b.language == "python" for b in s.blocks)]


def run(section):
    """Runs a section; fails where a program prints something else than the text says."""
    names = {"rs": rs, "np": np, "__name__": "__main__"}
    check = doctest.OutputChecker().check_output
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    for block, following in zip(section.blocks, [*section.blocks[1:], None], strict=True):
        if block.language != "python":
            continue
        out = io.StringIO()
        # the blank lines make line numbers those of the file
        code = compile("\n" * (block.line - 1) + block.text, str(section.path), "exec")
        with contextlib.redirect_stdout(out):
            exec(code, names)
        if following is not None and following.language == "text":
            got = out.getvalue()
            place = f"{section.path}:{following.line}"
            assert check(following.text, got, flags), f"{place} says\n{following.text}\nbut the program prints\n{got}"
