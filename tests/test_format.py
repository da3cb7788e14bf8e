"""The page of the format: its tables of ops are those of the core (UPDATE=1 writes them), its grammar knows every word."""

import os
import re

import executed

from rscan import _native

PAGE = executed.ROOT / "docs" / "format.md"


def cell(text):
    """A text as a cell of a table."""
    return " ".join(text.replace("|", r"\|").split())


def structural():
    """The table of ops that are not elementwise."""
    lines = ["| op | attributes | |", "|---|---|---|"]
    for row in _native.structural_table():
        call, what = re.fullmatch(r"(`[^`]*`)[:.]? ?(.*)", cell(row["doc"])).groups()
        attributes = [f"`{name}`: {kind.replace('` `', '`, `')} ({cell(text).rstrip('.')})" for name, kind, text in row["attributes"]]
        assert call.startswith(f"`{row['name']}("), row["name"]
        lines.append(f"| {call} | {'<br>'.join(attributes)} | {what} |")
    return lines


def elementwise():
    """The table of elementwise ops."""
    lines = ["| op | |", "|---|---|"]
    return lines + [f"| `{row['name']}({', '.join(row['args'])})` | {cell(row['doc'])} |" for row in _native.catalogue()]


def test_tables_are_those_of_the_core():
    page = PAGE.read_text()
    for name, table in {"ops": structural(), "rows": elementwise()}.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, _, rest = page.partition(begin)
        found, _, after = rest.partition(end)
        text = "\n".join(table) + "\n"
        if os.environ.get("UPDATE"):
            page = before + begin + text + end + after
            PAGE.write_text(page)
        else:
            assert found == text, f"UPDATE=1 writes the table of {name}"


def test_the_grammar_knows_every_word():
    source = (executed.ROOT / "crates" / "scan-core" / "src" / "ir" / "parse.rs").read_text()
    words = re.findall(r'"(\w+)"', source.split("RESERVED: &[&str] = &[")[1].split("];")[0])
    page = PAGE.read_text()
    grammar = page.split("### Grammar")[1].split("```text")[1].split("```")[0]
    listed = re.search(r"part of this grammar \(`([^`]*)`\)", page)[1].split()
    assert sorted(words) == sorted(listed) and len(words) > 15
    assert [word for word in words if f'"{word}"' not in grammar and word not in ("nan", "inf")] == []
