"""The second half of docs/absent.md, made of the tables in rscan._instead: `tools/absent.py` compares, `tools/absent.py --write` writes."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import numpy as np

import rscan as rs
from rscan import _instead

PAGE = Path(__file__).parent.parent / "docs" / "absent.md"
BEGIN = "# What NumPy and SciPy have\n"

INTRODUCTION = """
`rs` has NumPy's functions by their names ([numpy.md](numpy.md)), `rs.special` and `rs.stats` some of SciPy's. Whatever else they
have says what to do instead: names that are missing are an `AttributeError` with the text of these tables, and NumPy's functions of
variables a `NotImplementedError`. What the tables of SciPy's modules do not name is missing as well: SciPy computes it of arrays, before
or after the compiled function.
"""

ARGUMENTS = """
## Arguments of NumPy's functions

Of functions that are there some arguments are not: these are errors when the expression is written (E0809; where an argument has no such
name, a TypeError).

| arguments | instead |
|---|---|
| `out` of every function | take the result: variables are computed, not written into |
| `like`, `subok`, `device` | results are rscan's variables; devices are chosen by rs.function(…, device=…) |
| `order` of fields in `sort`, `argsort`, `partition` | sort by rs.lexsort of several arrays |
| a function as `mode` of `pad` | rs.concatenate of x and what the function makes of it |
| `weights` of `quantile` and `percentile` by methods other than `inverted_cdf` | NumPy has none either |
| names of rules as `bins` of `histogram` | np.histogram_bin_edges of known data, or a number of bins |
| `max`, `min` with `where` and without `initial` | say what the value is where there are no elements |
| `casting` that loses digits | rs.cast of the arrays, or casting="unsafe" |
"""


def section() -> str:
    """The text."""
    out = [BEGIN, INTRODUCTION]
    numpys = [("numpy", np, rs, _instead.NUMPY), ("numpy.linalg and scipy.linalg", np.linalg, rs.linalg, _instead.LINALG)]
    numpys.append(("numpy.random", np.random, rs.random, _instead.RANDOM))
    for title, theirs, ours, table in numpys:
        out.append(_table(title, {**_absent(theirs, ours), **table}))
    out += [_table("scipy.special", _instead.SPECIAL), _table("scipy.stats", _instead.STATS)]
    return "\n".join([*out, ARGUMENTS.rstrip()])


def _absent(theirs: ModuleType, ours: ModuleType) -> dict[str, str]:
    names = [n for n in dir(theirs) if not n.startswith("_") and not hasattr(ours, n)]
    return dict.fromkeys(names, "")


def _table(title: str, texts: dict[str, str]) -> str:
    by_text: dict[str, list[str]] = {}
    for name, text in texts.items():
        by_text.setdefault(text, []).append(f"`{name}`")
    rows = [f"| {', '.join(sorted(names, key=str.lower))} | {text.replace('|', chr(92) + '|')} |" for text, names in by_text.items()]
    return f"\n## {title}\n\n| names | instead |\n|---|---|\n" + "\n".join(sorted(rows, key=str.lower))


def main() -> int:
    """Compares, or writes."""
    text = PAGE.read_text()
    wanted = text[: text.index(BEGIN) if BEGIN in text else len(text)].rstrip() + "\n\n" + section() + "\n"
    if "--write" in sys.argv:
        PAGE.write_text(wanted)
        return 0
    if text != wanted:
        print("docs/absent.md is not what the tables say: tools/absent.py --write")
    return int(text != wanted)


if __name__ == "__main__":
    sys.exit(main())
