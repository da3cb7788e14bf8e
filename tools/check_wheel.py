"""What a published wheel must be: `python tools/check_wheel.py dist/*.whl`.

Small, stripped, without paths of the machine that built it and without what only tests need, with its licences and a bill of
materials. Then it is tried in an environment that has Python and NumPy alone, and no compiler on its path. It ends with status 1
where something is not so.
"""

from __future__ import annotations

import argparse
import email
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

LIMIT = 6_000_000

PROGRAM = """
import numpy as np
import rscan as rs

x = rs.dvector("x")
rows, _ = rs.scan(lambda x, h: 0.5 * h + x, sequences=x, outputs_info=rs.constant(0.0))
f = rs.function([x], [rows[-1], rs.grad(rows[-1], x)])
value, slope = f(np.ones(3))
assert value == 1.75 and slope.tolist() == [0.25, 0.5, 1.0], (value, slope)
assert "runs on" in str(f.explain())
print("rscan", rs.__version__, "works")
"""


def inside(wheel: Path) -> list[str]:
    """What is wrong with a wheel's files."""
    found = []
    if wheel.stat().st_size >= LIMIT:
        found.append(f"{wheel.stat().st_size / 1e6:.2f} MB, and the limit is {LIMIT / 1e6:.0f}")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        library = next(name for name in names if re.search(r"_native.*\.(so|pyd|dylib)$", name))
        data = archive.read(library)
        metadata = email.message_from_bytes(archive.read(next(n for n in names if n.endswith(".dist-info/METADATA"))))
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB, {Path(library).name} {len(data) / 1e6:.1f} MB")
    # What begins with /rustc/ is in the library as its compiler was built.
    home = re.escape(os.path.expanduser("~")).encode()
    paths = set(re.findall(rb"(?:" + home + rb"|/home/|/Users/|/root/|/github/|[A-Z]:\\Users)[\w./\\-]{4,}", data))
    if paths:
        found.append(f"{len(paths)} paths of the machine that built it, such as {sorted(paths)[0].decode(errors='replace')}")
    found += [f"it has `{word.decode()}`, which only tests need" for word in (b"check_device", b"RSCAN_CUDA_DRIVER") if word in data]
    found += ["it has symbols: it is not stripped"] * (data[:4] == b"\x7fELF" and b".symtab" in data)
    found += [
        f"no {part}"
        for part in ("py.typed", "__init__.pyi", "LICENSE-MIT", "sboms/", "entry_points.txt")
        if not any(part in n for n in names)
    ]
    found += [
        f"no {key} in its metadata" for key in ("Summary", "Keywords", "License-Expression", "Classifier", "Author") if not metadata[key]
    ]
    found += [f"{name} does not belong there" for name in names if re.search(r"(^|/)(tests?|benchmarks|__pycache__)/", name)]
    return found


def outside(wheel: Path) -> list[str]:
    """What is wrong with it in an environment of its own, from which no compiler is found."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        programs = Path(folder) / ("Scripts" if os.name == "nt" else "bin")
        kept = {key: value for key, value in os.environ.items() if key.startswith(("PIP_", "SYSTEMROOT", "SSL_"))}
        bare = {"PATH": str(programs), "HOME": folder, **kept}
        python = str(programs / "python")
        for command in (
            [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel.resolve())],
            [python, "-W", "error", "-c", PROGRAM],
            [str(programs / "rscan"), "doctor"],
            [str(programs / "rscan"), "bench", "--only", "rscan"],
        ):
            done = subprocess.run(command, cwd=folder, env=bare, capture_output=True, text=True, timeout=300)
            if done.returncode:
                return [f"{' '.join(command[1:4])} ends with {done.returncode}: {done.stderr[-600:]}"]
            print(done.stdout.rstrip())
    return []


def main() -> int:
    """Checks all wheels; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheels", nargs="+", type=Path)
    parser.add_argument("--inside", action="store_true", help="only look into them, as for other machines")
    options = parser.parse_args()
    found = [fault for wheel in options.wheels for fault in inside(wheel) + ([] if options.inside else outside(wheel))]
    print(*found or ["everything is as it must be"], sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
