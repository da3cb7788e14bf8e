"""The crate as somebody meets it first: unpacked from what `cargo package` made, and used by a program, the one of its first page."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))


def first_program() -> str:
    """The program at the head of `lib.rs`, as its page shows it, made to print."""
    text = (ROOT / "crates" / "scan-core" / "src" / "lib.rs").read_text(encoding="utf-8")
    lines = [line.removeprefix("//!").removeprefix(" ") for line in text.splitlines() if line.startswith("//!")]
    program = re.search(r"```\n(.*?)```", "\n".join(lines), re.S)
    assert program is not None
    return "\n".join(line.removeprefix("# ") for line in program[1].splitlines())


def main() -> int:
    told = subprocess.run(["cargo", "metadata", "--no-deps", "--format-version", "1"], cwd=ROOT, capture_output=True, check=True).stdout
    version = next(p["version"] for p in json.loads(told)["packages"] if p["name"] == "scan-core")
    packed = TARGET / "package" / f"scan-core-{version}.crate"
    with tempfile.TemporaryDirectory() as at, tarfile.open(packed) as archive:
        names = archive.getnames()
        missing = [n for n in ("README.md", "LICENSE-MIT", "LICENSE-APACHE", "Cargo.toml") if f"scan-core-{version}/{n}" not in names]
        print(f"{packed.name}: {packed.stat().st_size / 1e6:.2f} MB, {len(names)} files; missing: {missing or 'nothing'}")
        archive.extractall(at, filter="data")
        home = Path(at) / "first"
        (home / "src").mkdir(parents=True)
        crate = Path(at) / f"scan-core-{version}"
        (home / "Cargo.toml").write_text(
            '[package]\nname = "first"\nversion = "0.1.0"\nedition = "2024"\n\n[workspace]\n\n'
            f'[dependencies]\nscan-core = {{ path = "{crate}" }}\n'
        )
        (home / "src" / "main.rs").write_text(first_program())
        done = subprocess.run(["cargo", "run", "--quiet"], cwd=home, capture_output=True, text=True, check=False)
        print(done.stdout + done.stderr, end="")
        print("the first program runs" if done.returncode == 0 else "the first program does not run")
        return int(done.returncode != 0 or bool(missing))


if __name__ == "__main__":
    sys.exit(main())
