"""The README as an index of packages shows it, where links to files lead nowhere: `tools/readme.py ADDRESS REF` rewrites README.md.

ADDRESS is that of the repository, REF a tag or a branch. Links become those of its pages, pictures those of its files.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)]+)\)")


def absolute(text: str, address: str, ref: str) -> str:
    """The text with links that lead to the repository."""
    address = address.rstrip("/")

    def link(found: re.Match[str]) -> str:
        picture, name, target = found.groups()
        return f"{picture}[{name}]({address}/{'raw' if picture else 'blob'}/{ref}/{target})"

    return LINK.sub(link, text)


if __name__ == "__main__":
    README.write_text(absolute(README.read_text(encoding="utf-8"), *sys.argv[1:]), encoding="utf-8")
