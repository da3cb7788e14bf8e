"""What `make accept-native` checks of programs without Python: bits, sizes and times of two builds, with machine code and without.

Two examples of the crate are built for release and stripped. A program in Python trains 50 steps and saves; `serve`, run without
environment, goes on for 100 steps: the losses, the prediction and the weights that it saves are those of Python, to the bit. `session`
steps a filter.
Times are the best of a few runs, on a machine that may be busy.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import rscan as rs

ROOT = Path(__file__).parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
#: What whoever counts bytes asks of the compiler.
SMALL = ['opt-level="s"', 'lto="fat"', "codegen-units=1", 'panic="abort"']
#: Name of the build, its flags, and what its programs may weigh.
BUILDS = [
    ("jit", [], 12e6),
    ("small", ["--no-default-features", *(f"--config=profile.release.{setting}" for setting in SMALL)], 5e6),
]
EXAMPLES = ("serve", "session")
UNITS = {"ns": 1e-6, "µs": 1e-3, "ms": 1.0, "s": 1e3}


def build(flags: list[str], folder: Path) -> None:
    """The examples in a folder."""
    wanted = [word for name in EXAMPLES for word in ("--example", name)]
    config = ["--config", "profile.release.strip=true"]
    command = ["cargo", "build", "--quiet", "--release", "--package", "scan-core", *config, *flags, *wanted]
    subprocess.run(command, cwd=ROOT, check=True)
    folder.mkdir()
    for name in EXAMPLES:
        shutil.copy(TARGET / "release" / "examples" / name, folder / name)


def model(width: int = 8):
    """A cell with its training step: weights of `width²` numbers, and constants of ten megabytes beside them where it is wide."""
    rng = np.random.default_rng(5)
    w, u = (rs.shared(rng.normal(size=(width, width)) / width, name) for name in "wu")
    x, y = rs.dmatrix("x"), rs.dvector("y")
    h, _ = rs.scan(lambda x, h: rs.tanh(x @ u + h @ w), sequences=x, outputs_info=rs.zeros(width), name="cell")
    prediction = rs.sum(h, axis=1)
    loss = rs.mean((prediction - y) ** 2)
    updates = {v: v - 0.05 * g for v, g in zip((w, u), rs.grad(loss, [w, u]), strict=True)}
    train, predict = rs.function([x, y], loss, updates=updates), rs.function([x], prediction)
    return train, predict, rng.normal(size=(20, width)), rng.normal(size=20)


def alone(program: Path, *args: Path) -> str:
    """What a program prints that sees no environment."""
    return subprocess.run(["env", "-i", program, *args], capture_output=True, text=True, check=True).stdout


def goes_on(program: Path, folder: Path) -> bool:
    """True where the program makes what Python makes after it."""
    train, predict, x, y = model()
    for _ in range(50):
        train(x, y)
    files = [folder / name for name in ("model.rscan", "data.safetensors", "results.safetensors")]
    rs.save(files[0], train=train, predict=predict)
    rs.save_params(files[1], {"x": x, "y": y})
    losses = np.array([train(x, y) for _ in range(100)])
    alone(program, *files)
    found, later = rs.load_params(files[2]), rs.load(files[0])
    pairs = [(found["losses"], losses), (found["prediction"], predict(x)), (later.predict(x), predict(x))]
    pairs += [(later.shared[v.name].get_value(), v.get_value()) for v in train.shared]
    return all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs)


def opens(program: Path, folder: Path) -> tuple[float, float, float]:
    """Megabytes of a file, and the milliseconds after which it is loaded and has made a prediction, at best."""
    train, predict, x, y = model(810)
    files = [folder / name for name in ("wide.rscan", "wide.safetensors", "out.safetensors")]
    rs.save(files[0], train=train, predict=predict)
    rs.save_params(files[1], {"x": x[:1], "y": y[:1]})
    size, best = files[0].stat().st_size / 1e6, (np.inf, np.inf)
    for _ in range(5):
        told = re.search(r"loaded in ([\d.]+)(\S+), first prediction of .* after ([\d.]+)(\S+)", alone(program, *files))
        assert told is not None
        best = min(best[0], float(told[1]) * UNITS[told[2]]), min(best[1], float(told[3]) * UNITS[told[4]])
    return size, *best


def main() -> int:
    bad = 0

    def say(text: str, holds: bool) -> None:
        nonlocal bad
        bad += not holds
        print(f"{'ok ' if holds else 'BAD'} {text}", flush=True)

    with tempfile.TemporaryDirectory() as at:
        for name, flags, limit in BUILDS:
            folder = Path(at) / name
            build(flags, folder)
            program = folder / "serve"
            size = program.stat().st_size
            say(f"{name}: serve, stripped, has {size / 1e6:.2f} MB (at most {limit / 1e6:.0f})", size < limit)
            linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
            say(f"{name}: ldd names no Python", "python" not in linked.lower())
            say(f"{name}: 50 steps in Python, then 100 in Rust under env -i: the bits of Python", goes_on(program, folder))
            size, loaded, first = opens(program, folder)
            say(f"{name}: a file of {size:.1f} MB is loaded in {loaded:.2f} ms (less than 10)", loaded < 10)
            say(f"{name}: its first prediction is there after {first:.2f} ms (less than 20)", first < 20)
            told = alone(folder / "session", folder / "filter.rscan")
            step = re.search(r"(\d+) ns a step at best", told)
            assert step is not None
            quick = name != "jit" or int(step[1]) < 150
            say(f"{name}: a step of a filter of three states takes {step[1]} ns (less than 150 with machine code)", quick)
            print(told, end="")
    print("all hold" if not bad else f"{bad} do not hold")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
