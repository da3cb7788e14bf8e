"""A place in a file and what is put there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Site:
    """One change of a file."""

    file: str
    #: Characters before the text that changes.
    start: int
    line: int
    kind: str
    old: str
    new: str
    #: Such changes before it in the file.
    nth: int = 0
    #: Of Python: the line with which the function begins, 1 for what runs at import.
    owner: int = 1

    @property
    def change(self) -> str:
        """In one line."""
        return f"{' '.join(self.old.split())} → {' '.join(self.new.split()) or '(nothing)'}"

    @property
    def key(self) -> str:
        """What stays when lines move."""
        return f"{self.file}: {self.change}"

    @property
    def name(self) -> str:
        """Which of equal changes, too."""
        return f"{self.key} #{self.nth}"


def overlaps(a: Site, b: Site) -> bool:
    """True where the changed texts of two places have characters in common."""
    return a.file == b.file and a.start < b.start + len(b.old) and b.start < a.start + len(a.old)


def numbered(sites: list[Site]) -> list[Site]:
    """Equal changes of a file told apart by their order."""
    counts: dict[str, int] = {}
    for site in sorted(sites, key=lambda s: s.start):
        site.nth = counts.get(site.key, 0)
        counts[site.key] = site.nth + 1
    return sites
