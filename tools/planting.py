"""What programs that plant faults share: a copy of the tree in which faults sleep, its builds, and the runs of its tests."""

from __future__ import annotations

import json
import os
import pathlib
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CORE = "crates/scan-core/src/"
#: Bytes of address space for a run: a fault that asks for more memory ends there, and not the machine.
MEMORY = 12 << 30

#: Sites call this. Which of them a run has reached is written to a file, where one is named.
PLANTED = """
/// True where fault `k` is awake.
pub fn planted(k: usize) -> bool {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicBool, Ordering};
    static AWAKE: LazyLock<Option<usize>> = LazyLock::new(|| std::env::var("PLANTED_BUG").ok()?.parse().ok());
    static SEEN: LazyLock<Option<(String, Vec<AtomicBool>)>> =
        LazyLock::new(|| Some((std::env::var("PLANTED_SEEN").ok()?, (0..4096).map(|_| AtomicBool::new(false)).collect())));
    if let Some((path, seen)) = &*SEEN
        && !seen[k].swap(true, Ordering::Relaxed)
    {
        use std::io::Write;
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        let _ = file.and_then(|mut file| file.write_all(format!("{k}\\n").as_bytes()));
    }
    *AWAKE == Some(k)
}
"""


def write(path: pathlib.Path, data: bytes) -> None:
    """Writes a file if that changes it: builds look at the times of files."""
    if path.is_file() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def tracked() -> list[str]:
    """Files of the repository, new ones too; without one, all that is neither hidden nor built."""
    listed = subprocess.run(["git", "ls-files", "-zco", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode == 0:
        return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]
    built = ("target", "out", ".venv", "bench-results")
    names = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
    return [str(n) for n in names if not n.parts[0].startswith(built) and "__pycache__" not in n.parts and n.suffix != ".so"]


def copy_tree(tree: pathlib.Path, changed: dict[str, str], without: str = "\0") -> None:
    """A copy of the tree, with other texts of some files."""
    names = [name for name in tracked() if not name.startswith(without)]
    for name in names:
        write(tree / name, changed[name].encode() if name in changed else (ROOT / name).read_bytes())
    for top in ("crates", "tests", "python/rscan"):
        if not any(name.startswith(top) for name in names):
            continue
        for path in (tree / top).rglob("*"):
            name = str(path.relative_to(tree))
            if path.is_file() and path.suffix in (".rs", ".py", ".ir", ".md", ".txt") and name not in names:
                path.unlink()


def cargo(tree: pathlib.Path, command: str) -> tuple[bool, list[dict]]:
    """Runs cargo in a copy; whether that succeeded, and its messages."""
    env = dict(os.environ, CARGO_TARGET_DIR=str(tree / "target"), PYO3_PYTHON=sys.executable)
    words = [*shlex.split(os.environ.get("CARGO", "cargo")), *command.split()]
    done = subprocess.run(words, cwd=tree, env=env, capture_output=True, text=True)
    messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode and not any(m.get("reason") == "compiler-message" for m in messages):
        sys.exit(done.stderr)
    return done.returncode == 0, messages


def errors(messages: list[dict]) -> list[dict]:
    return [m["message"] for m in messages if m.get("reason") == "compiler-message" and m["message"]["level"] == "error"]


def built(tree: pathlib.Path, command: str) -> list[dict]:
    """The messages of a build, which has to succeed."""
    good, messages = cargo(tree, f"{command} --message-format=json")
    if not good:
        sys.exit("\n".join(e["rendered"] for e in errors(messages)))
    return messages


def build_tests(tree: pathlib.Path) -> dict[str, str]:
    """The paths of the test programs by their names."""
    messages = built(tree, "test --package scan-core --all-features --lib --tests --no-run")
    return {m["target"]["name"]: m["executable"] for m in messages if m.get("executable")}


def build(tree: pathlib.Path) -> dict[str, str]:
    """The paths of the test programs by their names, and the extension in its place."""
    found = build_tests(tree)
    for m in built(tree, "build --profile wheel --package scan-py"):
        if m.get("reason") == "compiler-artifact" and m["target"]["name"] == "_native":
            for name in m["filenames"]:
                if name.endswith((".so", ".dylib")) and "wheel" in name:
                    write(tree / "python/rscan/_native.abi3.so", pathlib.Path(name).read_bytes())
    return found


def listed(program: str) -> list[str]:
    """The tests of a Rust test program."""
    out = subprocess.run([program, "--list", "--format", "terse"], capture_output=True, text=True, check=True).stdout
    return [line.removesuffix(": test") for line in out.splitlines() if line.endswith(": test")]


def run(command: list[str], cwd: pathlib.Path, limit: float, **settings: str) -> tuple[str, float, str]:
    """How a command went ("passed", "failed", "timed out"), how long it took, and what it printed."""
    env = {**os.environ, "RUST_BACKTRACE": "0", "RSCAN_RANDOM_STOP": "1", **settings}
    start = time.time()

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    with tempfile.TemporaryFile("w+", errors="replace") as printed:
        process = subprocess.Popen(
            command, cwd=cwd, env=env, stdout=printed, stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=bounded
        )
        try:
            how = "failed" if process.wait(limit) else "passed"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            how = "timed out"
        printed.seek(0)
        return how, time.time() - start, printed.read()


def pytest(files: list[str]) -> list[str]:
    """The command that runs these test files, in this order, until one fails."""
    return [sys.executable, "-m", "pytest", "-q", "-x", "--timeout=100", "-p", "no:cacheprovider", *files]


def python_settings(tree: pathlib.Path) -> dict[str, str]:
    """Variables of the environment with which Python takes the package of a copy, and leaves no compiled files of it."""
    return {"PYTHONPATH": str(tree / "python"), "PYTHONDONTWRITEBYTECODE": "1", "MPLBACKEND": "Agg"}
