#!/usr/bin/env python3
"""Changes one small thing of the code at a time, and counts how many such mutants the tests find.

    .venv/bin/python tools/mutants.py [-n MUTANTS] [--seed SEED] [--part K/N] [-d FOLDER] [-j RUNS] [-k TEXT] [--again] [--list]

The sample is drawn from places in the core (loops, gradients, passes, lowering, execution) and in the Python package: an operator, a
constant, a condition, a statement that goes, a call that goes from a chain. Mutants of the core lie asleep in one build of a copy of
the tree; those that do not compile are dropped. Mutants of Python are written into a copy of the package, one at a time.

First all tests run without a mutant, and tell which places each of them reaches. Then each mutant is put before the tests that reach
it, those nearest first, until one fails. What `make test` runs is run, but for the linters and the examples of doc comments. Results are
kept in the folder (out/mutants), so that a run that was stopped goes on where it was; --again judges again those that survived. Several
machines share the work by --part: the second of them judges --part 2/3.

tools/mutants_equivalent.toml lists mutants that no test can find, with the reason: these are only judged with --again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import pathlib
import shutil
import sys
import threading
import tomllib
from concurrent.futures import ThreadPoolExecutor

import mutants_python
import mutants_rust
import planting
from mutants_python import parses
from mutants_site import Site, overlaps
from planting import CORE, ROOT

FOLDERS = ("scan", "grad", "lower", "exec", "rewrite")
#: Of the mutants asked for, so many are of the core.
RUST_SHARE = 0.6
#: Part of the sample that one kind of change may take.
MOST_OF_A_KIND = 0.16
#: Places for which there is room in the build; those that do not compile go.
SPARE = 1.5
EQUIVALENT = ROOT / "tools/mutants_equivalent.toml"
#: Tests of the core that take so many seconds run last.
LONG = 8.0
#: So many random programs run early: fewer than the test demands that each feature is used by.
FEW_PROGRAMS = "19"
#: Writes which functions of the package are called, for runs that ask for it.
CALLS = '''"""Writes which functions of rscan are called, where a file for it is named."""
import os
import sys
import threading

if "PLANTED_CALLS" in os.environ:
    seen = set()

    def called(frame, event, arg):
        code = frame.f_code
        if code not in seen:
            seen.add(code)
            head, found, name = code.co_filename.rpartition("/python/rscan/")
            if found:
                with open(os.environ["PLANTED_CALLS"], "a") as file:
                    print(name, code.co_firstlineno, file=file)

    sys.settrace(called)
    threading.settrace(called)
'''


def sample(sites: list[Site], n: int, seed: int) -> list[Site]:
    """So many sites that do not overlap, no kind too often. What is elsewhere in the code does not change which."""
    key = lambda s: hashlib.sha256(f"{seed} {s.key} {s.nth}".encode()).digest()
    chosen: list[Site] = []
    kinds: dict[str, int] = {}
    for site in sorted(sites, key=key):
        if len(chosen) == n:
            break
        room = kinds.get(site.kind, 0) < MOST_OF_A_KIND * n
        if room and not any(overlaps(site, other) for other in chosen) and parses(site):
            kinds[site.kind] = kinds.get(site.kind, 0) + 1
            chosen.append(site)
    return chosen


def rust_sources() -> list[str]:
    found = [p for folder in FOLDERS for p in (ROOT / CORE / folder).rglob("*.rs") if p.name != "tests.rs"]
    return sorted(str(p.relative_to(ROOT)) for p in found)


def plant(sites: list[Site]) -> tuple[dict[str, str], list[tuple[str, int, int, int]]]:
    """Texts of the files with their sites, and where in these each site is: file, first and last byte, number."""
    texts, places = {}, []
    for file in {s.file for s in sites}:
        text, shift = (ROOT / file).read_text(), 0
        for k, s in sorted(((k, s) for k, s in enumerate(sites) if s.file == file), key=lambda pair: pair[1].start):
            old, new = s.old, s.new
            if s.kind == "statement":
                woken = f"if !crate::base::planted({k}) {{ {old} }}"
            else:
                woken = f"(if crate::base::planted({k}) {{ {new} }} else {{ {old} }})"
            at = s.start + shift
            text = text[:at] + woken + text[at + len(old) :]
            shift += len(woken) - len(old)
            first = len(text[:at].encode())
            places.append((file, first, first + len(woken.encode()), k))
        texts[file] = text
    base = CORE + "base/mod.rs"
    texts[base] = (ROOT / base).read_text() + planting.PLANTED
    return texts, places


def compiling(tree: pathlib.Path, sites: list[Site]) -> list[Site]:
    """The sites that compile, planted in the copy. Those that do not are remembered: what is planted again is not built again."""
    remembered = tree / "not-compiling.json"
    bad_keys = set(json.loads(remembered.read_text())) if remembered.exists() else set()
    while True:
        sites = [s for s in sites if s.name not in bad_keys]
        texts, places = plant(sites)
        planting.copy_tree(tree, texts)
        good, messages = planting.cargo(tree, "build --package scan-core --all-features --lib --message-format=json")
        if good:
            return sites
        bad: set[int] = set()
        for error in planting.errors(messages):
            spans = [s for s in error["spans"] if s["is_primary"]] or error["spans"]
            for span in spans + [s for child in error["children"] for s in child["spans"]]:
                while span.get("expansion"):
                    span = span["expansion"]["span"]
                for file, first, last, k in places:
                    if file == span["file_name"] and first <= span["byte_end"] and span["byte_start"] <= last:
                        bad.add(k)
        if not bad:
            sys.exit("\n".join(e["rendered"] for e in planting.errors(messages)))
        print(f"{len(bad)} of {len(sites)} sites do not compile", flush=True)
        bad_keys |= {sites[k].name for k in bad}
        planting.write(remembered, json.dumps(sorted(bad_keys), indent=1, ensure_ascii=False).encode())


class Unit:
    """Some tests that run together: their name, command, and what they reach."""

    def __init__(self, name: str, command: list[str], folder: str, **settings: str) -> None:
        self.name, self.command, self.folder, self.settings = name, command, folder, settings
        self.seconds = 0.0
        self.seen: set[int] = set()
        self.calls: set[tuple[str, int]] = set()

    @property
    def of_python(self) -> bool:
        return self.name.endswith(".py")


def units_of(programs: dict[str, str], tree: pathlib.Path) -> list[Unit]:
    """Test programs of Rust module by module, those of Python file by file."""
    found = []
    for program, path in sorted(programs.items()):
        groups: dict[str, list[str]] = {}
        for test in planting.listed(path):
            module = test.rpartition("::")[0].removesuffix("::tests")
            groups.setdefault(module or test, []).append(test)
        for module, tests in groups.items():
            found.append(Unit(f"{program} {module}", [path, "--exact", *tests], "crates/scan-core"))
            if module.startswith("random_programs"):
                few = {"RSCAN_RANDOM_PROGRAMS": FEW_PROGRAMS}
                found.append(Unit(f"{program} first random programs", [path, "--exact", *tests], "crates/scan-core", **few))
    files = sorted(str(p.relative_to(tree)) for p in (tree / "tests").rglob("test_*.py") if "programs" not in p.parts)
    return found + [Unit(f, planting.pytest([f]), "") for f in files]


class Judge:
    """Runs tests on mutants."""

    def __init__(self, tree: pathlib.Path, runs: int) -> None:
        self.tree, self.runs = tree, runs
        self.threads = str(max(1, (os.cpu_count() or 1) // runs))
        self.folders = [tree / f"run{i}" for i in range(runs)]
        self.free, self.lock = list(self.folders), threading.Lock()
        self.units: list[Unit] = []

    def prepare(self, programs: dict[str, str]) -> None:
        """Copies for runs side by side; all tests, asleep."""
        for folder in self.folders:
            planting.copy_tree(folder, {}, without="crates/")
            if not (folder / "crates").is_symlink():
                (folder / "crates").symlink_to(ROOT / "crates")
            shutil.copy2(self.tree / "python/rscan/_native.abi3.so", folder / "python/rscan/_native.abi3.so")
            planting.write(folder / "trace/sitecustomize.py", CALLS.encode())
        self.units = units_of(programs, self.tree)
        with ThreadPoolExecutor(self.runs) as pool:
            healthy = list(pool.map(self.measure, self.units))
        for unit, (how, printed) in zip(self.units, healthy, strict=True):
            if how != "passed":
                print(f"left out, since without a mutant it {how}: {unit.name}\n{printed[-1500:]}", flush=True)
        self.units = [u for u, (how, _) in zip(self.units, healthy, strict=True) if how == "passed"]

    def measure(self, unit: Unit) -> tuple[str, str]:
        with self.lock:
            folder = self.free.pop()
        seen, calls = folder / "seen.txt", folder / "calls.txt"
        seen.write_text("")
        calls.write_text("")
        how, unit.seconds, printed = self.run(unit.command, folder, unit, 900, PLANTED_SEEN=str(seen), PLANTED_CALLS=str(calls))
        unit.seen = {int(line) for line in seen.read_text().split("\n") if line.isdigit()}
        pairs = (line.rsplit(" ", 1) for line in calls.read_text().splitlines())
        unit.calls = {(pair[0], int(pair[1])) for pair in pairs if len(pair) == 2}
        with self.lock:
            self.free.append(folder)
        return how, printed

    def run(self, command: list[str], folder: pathlib.Path, unit: Unit, limit: float, **settings: str) -> tuple[str, float, str]:
        if not unit.of_python:
            return planting.run(command, self.tree / unit.folder, limit, RUST_TEST_THREADS=self.threads, **unit.settings, **settings)
        python = planting.python_settings(folder)
        if "PLANTED_CALLS" in settings:
            python["PYTHONPATH"] += os.pathsep + str(folder / "trace")
            del python["PYTHONDONTWRITEBYTECODE"]
        return planting.run(command, folder, limit, **python, **settings)

    def judge(self, k: int, site: Site) -> str:
        """What found a mutant, or ""."""
        with self.lock:
            folder = self.free.pop()
        try:
            return self.of_python(site, folder) if site.file.endswith(".py") else self.of_rust(k, site, folder)
        finally:
            with self.lock:
                self.free.append(folder)

    def of_rust(self, k: int, site: Site, folder: pathlib.Path) -> str:
        module = site.file.removeprefix(CORE).removesuffix(".rs").removesuffix("/mod").replace("/", "::")
        mine = lambda u: not (u.name.endswith(" " + module) or u.name == "it ir_files")
        reaching = sorted((u for u in self.units if k in u.seen), key=lambda u: (mine(u), u.seconds))
        rust, python = ([u for u in reaching if u.of_python == is_python] for is_python in (False, True))
        long = [u for u in rust if u.seconds > LONG]
        for units in ([u for u in rust if u not in long], python, long):
            found = self.pytest(units, folder, PLANTED_BUG=str(k)) if units is python else self.first_of(units, folder, k)
            if found:
                return found
        return ""

    def first_of(self, units: list[Unit], folder: pathlib.Path, k: int) -> str:
        for unit in units:
            how, _, _ = self.run(unit.command, folder, unit, 20 + 10 * unit.seconds, PLANTED_BUG=str(k))
            if how != "passed":
                return unit.name + ("" if how == "failed" else " (timed out)")
        return ""

    def of_python(self, site: Site, folder: pathlib.Path) -> str:
        name = site.file.removeprefix("python/rscan/")
        reaching = [u for u in self.units if (name, site.owner) in u.calls]
        stem = pathlib.Path(name).stem
        near = lambda u: not (stem.strip("_") in u.name or ("theano" in name and "facade" in u.name))
        reaching.sort(key=lambda u: (near(u), u.seconds))
        path = folder / site.file
        text = path.read_text()
        for compiled in (path.parent / "__pycache__").glob(f"{stem}.*.pyc"):
            compiled.unlink()
        path.write_text(text[: site.start] + site.new + text[site.start + len(site.old) :])
        try:
            return self.pytest(reaching, folder)
        finally:
            path.write_text(text)

    def pytest(self, units: list[Unit], folder: pathlib.Path, **settings: str) -> str:
        if not units:
            return ""
        limit = 60 + 5 * sum(u.seconds for u in units)
        how, _, printed = self.run(planting.pytest([u.name for u in units]), folder, units[0], limit, **settings)
        if how == "passed":
            return ""
        failed = [line for line in printed.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return (failed[0].split(" - ")[0].split(" ", 1)[1] if failed else "pytest") + ("" if how == "failed" else " (timed out)")


def equivalents() -> list[dict[str, str]]:
    """The mutants that are listed as such."""
    return tomllib.loads(EQUIVALENT.read_text())["mutant"] if EQUIVALENT.exists() else []


def reason(site: Site, listed: list[dict[str, str]]) -> str:
    """Why a mutant changes nothing, or "": the line around it, or which of equal ones it is, is asked for where it is given."""
    line = (ROOT / site.file).read_text().splitlines()[site.line - 1].strip()
    here = lambda m: m.get("line", line) == line and m.get("nth", site.nth) == site.nth
    same = (m for m in listed if f"{m['file']}: {m['old']} → {m['new']}" == site.key and here(m))
    return next((m["because"] for m in same), "")


def report(sites: list[Site], results: dict[str, str], listed: list[dict[str, str]]) -> int:
    """Prints what became of each mutant; the number that survived."""
    found = equivalent = survived = 0
    for site in sites:
        verdict = results.get(site.name)
        if verdict:
            found += 1
        elif verdict is not None and (why := reason(site, listed)):
            equivalent += 1
            print(f"equivalent    {site.file}:{site.line}  {site.change}, because {why}")
        elif verdict is not None:
            survived += 1
            print(f"survived      {site.file}:{site.line}  {site.change}")
    judged = found + equivalent + survived
    share = 100 * found / max(1, found + survived)
    print(f"{judged} mutants: {found} found, {equivalent} equivalent, {survived} survived ({share:.1f} % of those not equivalent)")
    return survived


def part(text: str) -> slice:
    """Which mutants `K/N` asks for."""
    k, n = map(int, text.split("/"))
    if not 1 <= k <= n:
        raise ValueError(text)
    return slice(k - 1, None, n)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=250, help="mutants")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", type=part, default=slice(0, None, 1), help="which share of the mutants: 2/3 is the second of three")
    parser.add_argument("-d", type=pathlib.Path, default=ROOT / "out/mutants", help="folder of the copy and of the results")
    parser.add_argument("-j", type=int, default=os.cpu_count() or 1, help="runs side by side")
    parser.add_argument("-k", default="", help="only mutants whose file or change contains this")
    parser.add_argument("--again", action="store_true", help="judge again those that survived")
    parser.add_argument("--list", action="store_true", help="only print the sample as last built, with what is known")
    options = parser.parse_args()
    tree = options.d.resolve()
    tree.mkdir(parents=True, exist_ok=True)
    kept = tree / "results.json"
    results: dict[str, str] = json.loads(kept.read_text()) if kept.exists() else {}
    n_rust = round(options.n * RUST_SHARE)
    rust = [s for file in rust_sources() for s in mutants_rust.sites(file, (ROOT / file).read_text())]
    files = sorted(str(p.relative_to(ROOT)) for p in (ROOT / "python/rscan").rglob("*.py"))
    python = [s for file in files for s in mutants_python.sites(file, (ROOT / file).read_text())]
    python = sample(python, options.n - n_rust, options.seed)
    candidates = sample(rust, int(n_rust * SPARE), options.seed)
    if options.list:
        report(candidates + python, results, equivalents())
        return 0
    # All that compile are planted: which numbers they have does not depend on the sample's size.
    built = compiling(tree, candidates)
    chosen = list(enumerate(built[:n_rust] + python))[options.part.start :: options.part.step]
    listed = equivalents()
    judge = Judge(tree, options.j)
    judge.prepare(planting.build(tree))
    print(f"{len(rust)} places in the core, {len(judge.units)} groups of tests", flush=True)
    lock = threading.Lock()

    def one(pair: tuple[int, Site]) -> None:
        k, site = pair
        key = site.name
        if options.k not in f"{site.file} {site.change}" or (key in results and (results[key] or not options.again)):
            return
        equivalent = not options.again and reason(site, listed)
        verdict = "" if equivalent else judge.judge(k, site)
        with lock:
            results[key] = verdict
            kept.write_text(json.dumps(results, indent=1, ensure_ascii=False))
            text = f"found by {verdict}" if verdict else "equivalent" if equivalent else "SURVIVED"
            print(f"{text:<60} {site.file}:{site.line}  {site.change}", flush=True)

    with ThreadPoolExecutor(options.j) as pool:
        list(pool.map(one, chosen))
    return 1 if report([site for _, site in chosen], results, listed) > 0.08 * len(chosen) else 0


if __name__ == "__main__":
    sys.exit(main())
