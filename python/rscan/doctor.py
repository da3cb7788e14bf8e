"""`rscan doctor`: what is installed, and whether every engine gives right numbers on this machine."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time
from typing import Any

#: Libraries that rscan works with where they are installed.
OTHERS = (
    "scipy", "pandas", "polars", "xarray", "jax", "torch", "pytensor", "pymc", "nutpie", "scikit-learn", "arviz", "matplotlib", "onnx",
    "onnxruntime", "dask", "ray", "numba", "cloudpickle",
)  # fmt: skip

#: A loop on scalars, one on wide rows, one with a product, each with its gradient; prints the engine of the second.
_PROGRAM = """
import numpy as np, rscan as rs
a, x0, w = rs.dscalar("a"), rs.dvector("x0"), rs.dmatrix("w")
rows, _ = rs.scan(lambda x, a: a * x, outputs_info=x0, non_sequences=a, n_steps=10)
f = rs.function([a, x0], [rows[-1], rs.grad(rs.sum(rows[-1]), a)])
value, slope = f(1.5, np.full(64, 2.0))
for _ in range(300):
    f(1.5, np.full(64, 2.0))
assert np.allclose(value, 2 * 1.5**10) and np.isclose(slope, 64 * 20 * 1.5**9)
hs, _ = rs.scan(lambda h, w: rs.tanh(h @ w), outputs_info=x0, non_sequences=w, n_steps=3)
h = np.array([0.5, 0.25])
for _ in range(3):
    h = np.tanh(h @ np.full((2, 2), 0.5))
assert np.allclose(rs.function([x0, w], hs[-1])([0.5, 0.25], np.full((2, 2), 0.5)), h)
print(f.explain().loops[0].variants[0].engine)
"""


#: The devices that there are, and why there are none of a kind.
_DEVICES = """
import json, rscan as rs
devices = {device.name: str(device).partition(": ")[2] for device in rs.devices()}
for kind in ("cuda", "wgpu"):
    if not any(name.startswith(kind) for name in devices):
        try:
            rs.function([], rs.constant(1.0), device=kind)
        except rs.DeviceError as error:
            notes = [line.partition("note: ")[2] for line in str(error).splitlines() if "note: " in line]
            devices[kind] = "none: " + (notes or [error.title])[0]
print(json.dumps(devices))
"""


def examine(as_json: bool = False) -> int:
    """Prints what there is; the exit status is 0 where everything works."""
    found = examined()
    if as_json:
        print(json.dumps(found, indent=2))
    else:
        _print(found)
    return 0 if found["works"] else 1


def examined() -> dict[str, Any]:
    """What there is, for programs."""
    import numpy as np

    from ._native import __version__

    engines = {name: _tried(name) for name in ("eval", "vm", "jit")}
    return {
        "rscan": __version__,
        "path": os.path.dirname(__file__),
        "python": platform.python_version(),
        "executable": sys.executable,
        "numpy": np.__version__,
        "machine": platform.machine(),
        "system": platform.system(),
        "processors": os.cpu_count(),
        "threads": _threads(),
        "settings": {key: value for key, value in sorted(os.environ.items()) if key.startswith("RSCAN_")},
        "engines": engines,
        "devices": _devices(),
        "others": {name: version for name in OTHERS if (version := _version(name)) is not None},
        "works": all(engine["works"] for engine in engines.values()),
    }


def _devices() -> dict[str, str]:
    """What devices there are, in words, found in a process of its own, since drivers may fail."""
    path = os.pathsep.join([os.path.dirname(os.path.dirname(__file__)), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", _DEVICES], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=120
    )
    lines = done.stdout.splitlines()[-1:]
    found: dict[str, str] = json.loads(lines[0]) if done.returncode == 0 and lines else {"devices": done.stderr.strip()[-200:]}
    return found


def _tried(engine: str) -> dict[str, Any]:
    """A loop and its gradient on an engine, in a process of its own: the choice is one per process."""
    path = os.pathsep.join([os.path.dirname(os.path.dirname(__file__)), *sys.path])
    environment = {**os.environ, "RSCAN_ENGINE": engine, "PYTHONPATH": path}
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", _PROGRAM], env=environment, capture_output=True, text=True, timeout=120)
    seconds = round(time.perf_counter() - start, 3)
    works = done.returncode == 0
    last = (done.stdout if works else done.stderr).strip().splitlines()[-1:] or [""]
    return {"works": works, "seconds": seconds, "code" if works else "error": last[0]}


def _threads() -> int | str | None:
    """How many threads a call uses: what RSCAN_NUM_THREADS says, else the processors that the process may use."""
    asked = os.environ.get("RSCAN_NUM_THREADS", "")
    if asked:
        return int(asked) if asked.isdigit() else asked
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _print(found: dict[str, Any]) -> None:
    print(f"rscan    {found['rscan']} ({found['path']})")
    print(f"Python   {found['python']} ({found['executable']})")
    print(f"NumPy    {found['numpy']}")
    print(f"machine  {found['machine']}, {found['system']}, {found['processors']} processors, {found['threads']} threads used")
    for name, engine in found["engines"].items():
        words = f"works ({engine['code']})" if engine["works"] else f"FAILS: {engine['error']}"
        print(f"{name:<8} {words}, {1000 * engine['seconds']:.0f} ms with the start of Python")
    for name, about in found["devices"].items():
        print(f"{name:<8} {about}")
    for key, value in found["settings"].items():
        print(f"setting  {key}={value}")
    others = ", ".join(f"{name} {version}" for name, version in found["others"].items())
    print(f"beside   {others or 'nothing that rscan works with'}")
