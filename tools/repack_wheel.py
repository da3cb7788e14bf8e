"""Compresses wheels again, in place: `python tools/repack_wheel.py dist/*.whl` (half a minute of one core for each).

Zopfli looks for the shortest stream that deflate has; whoever unpacks needs nothing for it. What is in a wheel stays as it is.
"""

from __future__ import annotations

import os
import sys
import zipfile
from pathlib import Path

import zopfli


def repack(wheel: Path) -> None:
    small = wheel.with_suffix(".small")
    with zipfile.ZipFile(wheel) as old, zopfli.ZipFile(small, "w", encoding="utf-8", block_splitting_max=0) as new:
        for entry in old.infolist():
            new.writestr(entry, old.read(entry))
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(small) as new:
        told = [[(e.filename, e.CRC, e.file_size, e.date_time, e.external_attr) for e in z.infolist()] for z in (old, new)]
        assert told[0] == told[1] and new.testzip() is None, "a wheel that is another"
    before = wheel.stat().st_size
    os.replace(small, wheel)
    print(f"{wheel.name}: {before / 1e6:.2f} MB, now {wheel.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        repack(Path(argument))
