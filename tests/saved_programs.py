"""Every function that the programs of this project compile, through a file and back: the same bits, in Python and in Rust.

While programs run, the first call of each function is recorded: before it the function goes to a file with the values that its shared
variables have, after it results and new values are kept. Then the file is read, and called with the same arguments.

`python -m saved_programs FOLDER` does so with all programs and leaves the files in FOLDER, for `cargo run --example replay FOLDER`.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import runpy
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import executed
import numpy as np

import rscan as rs
from rscan._calling import Bound, Caller
from rscan.function import Function

#: Functions that have no file, by program and name, and why.
LEFT_OUT: dict[tuple[str, str], str] = {}


class Recorder:
    """Records the first call of each function into a folder, while it is open."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.program = folder, ""
        #: Where the file of each recorded call is, by its number: the program and the function's name.
        self.recorded: list[tuple[str, str]] = []
        #: Functions that could not be saved, and the title of the error.
        self.left_out: dict[tuple[str, str], str] = {}
        self._known: dict[int, Function] = {}
        self._call: Any = None

    def __enter__(self) -> Recorder:
        self._call = Caller.__call__
        Caller.__call__ = lambda caller, *args, **named: self._recorded(caller, args, named)
        return self

    def __exit__(self, *_: Any) -> None:
        del Caller.__call__  # the one of the core again

    def run(self, name: str, program: Callable[[], Any]) -> None:
        """Runs a program, whose calls are recorded under this name."""
        self.program = name
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program()

    def _recorded(self, caller: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        function = caller.function if isinstance(caller, Bound) else caller
        if id(function) in self._known or not isinstance(function, Function):
            return self._call(caller, *args, **named)
        self._known[id(function)] = function  # and keeps it: no other one has its id
        path = self.folder / f"{len(self.recorded):04}.rscan"
        given = self._given(caller, function, args, named)
        saved = given is not None and self._saved(function, path)
        try:
            results = self._call(caller, *args, **named)
        except BaseException:
            path.unlink(missing_ok=True)
            del self._known[id(function)]
            raise
        if saved:
            self._keep(function, given, results)
        return results

    def _given(self, caller: Any, function: Function, args: tuple[Any, ...], named: dict[str, Any]) -> list[np.ndarray] | None:
        """Copies of the arguments, the fixed ones among them; None where they do not fit, which the call will say."""
        named = {name: value for name, value in named.items() if name != "out" or "out" in caller._names}
        try:
            free = iter(caller._arguments(args, named))
        except rs.RscanError:
            return None
        fixed = caller._fixed if isinstance(caller, Bound) else {}
        return [np.array(fixed[i] if i in fixed else next(free)) for i in range(len(function.inputs))]

    def _saved(self, function: Function, path: Path) -> bool:
        try:
            rs.save(path, f=function)
        except rs.RscanError as error:
            self.left_out[self.program, function.name or "f"] = error.title
            return False
        return True

    def _keep(self, function: Function, given: list[np.ndarray], results: Any) -> None:
        call = {f"argument.{i:03}": value for i, value in enumerate(given)}
        call |= {f"result.{i:03}": value for i, value in enumerate(flat(function, results))}
        call |= {f"update.{i:03}": value for i, value in enumerate(updated(function))}
        rs.save_params(self.folder / f"{len(self.recorded):04}.call.safetensors", call)
        self.recorded.append((self.program, function.name or "f"))


def flat(function: Function, results: Any) -> list[np.ndarray]:
    """The arrays among the results of a call."""
    values = [results] if function._single else results if function._keys is None else results.values()
    return [np.asarray(value) for value in values]


def updated(function: Function) -> list[np.ndarray]:
    """The values of what a call updates."""
    return [np.array(shared.get_value()) for shared, _ in function.updates]


def differences(recorder: Recorder) -> Iterator[str]:
    """Reads each file and calls it: what differs from the call that was recorded."""
    for i, (program, name) in enumerate(recorder.recorded):
        path = recorder.folder / f"{i:04}.rscan"
        call = rs.load_params(path.with_suffix(".call.safetensors"))
        of = {kind: [call[key] for key in sorted(call) if key.startswith(kind)] for kind in ("argument", "result", "update")}
        try:
            function = rs.load(path).f
            with contextlib.redirect_stdout(io.StringIO()):
                results = flat(function, function(*of["argument"]))
        except rs.RscanError as error:
            yield f"{program}, `{name}`, {path.name}: {error.title}"
            continue
        if not same_bits([*results, *updated(function)], [*of["result"], *of["update"]]):
            yield f"{program}, `{name}`, {path.name}: other bits"


def same_bits(found: list[np.ndarray], expected: list[np.ndarray]) -> bool:
    """Equal dtypes, shapes and bytes."""
    kinds = [[(a.dtype, a.shape, a.tobytes()) for a in arrays] for arrays in (found, expected)]
    return kinds[0] == kinds[1]


# The programs, by name.


def pages() -> Iterator[tuple[str, Callable[[], Any]]]:
    """The sections of tests/spec."""
    for page in sorted((executed.ROOT / "tests" / "spec").glob("*.md")):
        for section in executed.sections(page):
            yield str(section), lambda section=section: executed.run(section)


def documents() -> Iterator[tuple[str, Callable[[], Any]]]:
    """The sections of README.md and docs/."""
    for page in [executed.ROOT / "README.md", *sorted((executed.ROOT / "docs").glob("*.md"))]:
        for section in executed.sections(page):
            yield str(section), lambda section=section: executed.run(section)


def seeds() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Theano's programs."""
    for path in sorted((executed.ROOT / "tests" / "seeds").glob("*.py")):
        yield f"tests/seeds/{path.name}", lambda path=path: runpy.run_path(str(path))


def examples() -> Iterator[tuple[str, Callable[[], Any]]]:
    """examples/*.py."""
    for path in sorted((executed.ROOT / "examples").glob("*.py")):
        yield f"examples/{path.name}", lambda path=path: runpy.run_path(str(path), run_name="example")["main"]()


def models() -> Iterator[tuple[str, Callable[[], Any]]]:
    """benchmarks/models, at the sizes of their tests."""
    import test_models

    for name in test_models.OPEN:
        model = test_models.MODELS[name]
        yield f"benchmarks/models: {name}", lambda model=model: model.rscan(**model.small)(*model.arguments(model.small))


def specs() -> Iterator[tuple[str, Callable[[], Any]]]:
    """benchmarks/specs, as rscan has them."""
    sys.path.insert(0, str(executed.ROOT / "benchmarks"))
    spec = importlib.util.spec_from_file_location("peer_of_rscan", executed.ROOT / "benchmarks" / "peers" / "p_rscan.py")
    assert spec is not None and spec.loader is not None
    peer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(peer)
    peer.init(None, None)
    from common import all_specs

    for name, workload in all_specs().items():
        make = peer.IMPL[name, ""]
        yield f"benchmarks/specs: {name}", lambda make=make, workload=workload: make(workload.make())()


KINDS = {"spec": pages, "docs": documents, "seeds": seeds, "examples": examples, "models": models, "specs": specs}


def record(folder: Path, kinds: list[str]) -> Recorder:
    """Runs the programs of some kinds, whose calls are recorded."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as elsewhere, Recorder(folder) as recorder:
        os.chdir(elsewhere)
        try:
            for kind in kinds:
                for name, program in KINDS[kind]():
                    recorder.run(name, program)
        finally:
            os.chdir(before)
    return recorder


def main() -> int:
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*"):
        old.unlink()
    recorder = record(folder, sys.argv[2:] or list(KINDS))
    found = list(differences(recorder))
    for line in found:
        print(line)
    unknown = {key: title for key, title in recorder.left_out.items() if key not in LEFT_OUT}
    for (program, name), title in recorder.left_out.items():
        print(f"left out: {program}, `{name}`: {LEFT_OUT.get((program, name), title)}")
    programs = len({program for program, _ in recorder.recorded})
    print(f"{len(recorder.recorded)} functions of {programs} programs, {len(found)} differ, {len(recorder.left_out)} have no file")
    return 1 if found or unknown else 0


if __name__ == "__main__":
    sys.exit(main())
