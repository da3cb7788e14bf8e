"""The command `rscan`, which is `python -m rscan` too: what is installed, error codes, programs, pictures, a benchmark."""

from __future__ import annotations

import argparse
import json
import os
import runpy
import sys
import traceback
from collections.abc import Sequence
from typing import Any

ABOUT = "Symbolic loops: differentiated, optimised and run as native code."


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns its exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 0
    commands = {"doctor": _doctor, "explain": _explain, "run": _run, "show": _show, "bench": _bench, "inspect": _inspect, "onnx": _onnx}
    try:
        status = commands[options.command](options)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads has seen enough, as `head` has
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


def _parser() -> argparse.ArgumentParser:
    from ._native import __version__

    parser = argparse.ArgumentParser(prog="rscan", description=ABOUT)
    parser.add_argument("--version", action="version", version=f"rscan {__version__}")
    commands = parser.add_subparsers(dest="command", title="commands", metavar="COMMAND")
    doctor = commands.add_parser("doctor", help="say what is installed, and try a loop on every engine")
    doctor.add_argument("--json", action="store_true", help="the same for programs")
    explain = commands.add_parser("explain", help="explain an error code, such as E0103")
    explain.add_argument("code", nargs="?", help="the code; without it, a list of all")
    explain.add_argument("--json", action="store_true", help="the same for programs")
    run = commands.add_parser("run", help="run a program; an error of rscan is shown without the frames of the library")
    run.add_argument("--theano", action="store_true", help="`import theano` in the program is rscan.theano")
    run.add_argument("--json", action="store_true", help="an error of rscan for programs, on standard error")
    run.add_argument("program", help="a Python file")
    run.add_argument("arguments", nargs=argparse.REMAINDER, help="what the program gets")
    show = commands.add_parser("show", help="draw the functions and variables that a program makes")
    show.add_argument("file", help="a Python file, FILE:NAME for one of its names, a file of rs.save, or a pickled function")
    show.add_argument("--json", action="store_true", help="the texts by the names of functions and variables")
    form = show.add_mutually_exclusive_group()
    for name, text in {"svg": "a picture", "dot": "for Graphviz", "mermaid": "for Markdown", "text": "the text form (the default)"}.items():
        form.add_argument(f"--{name}", dest="format", action="store_const", const=name, help=text)
    show.add_argument("--optimised", action="store_true", help="the graph as it runs, not as it was written")
    show.add_argument("--both", dest="optimised", action="store_const", const="both", help="as it was written, and as it runs beside it")
    show.add_argument("-o", "--output", help="the file to write; standard output")
    inspect = commands.add_parser("inspect", help="say what is in a file that rs.save wrote")
    inspect.add_argument("file", help="the file")
    inspect.add_argument("--json", action="store_true", help="the same for programs")
    onnx = commands.add_parser("onnx", help="write a function of a file that rs.save wrote as a model of ONNX")
    onnx.add_argument("file", help="the file")
    onnx.add_argument("output", help="the model to write")
    onnx.add_argument("--function", help="its name, where the file has several")
    onnx.add_argument("--json", action="store_true", help="what was written, for programs")
    bench = commands.add_parser("bench", help="time a model with its gradient, beside what else is installed")
    bench.add_argument("--json", action="store_true", help="the same for programs")
    bench.add_argument("--only", default="", help="systems whose names contain this")
    return parser


def _explain(options: Any) -> int:
    from .errors import error_page

    code = options.code
    if code is None:
        pages = filter(None, map(error_page, (f"E{n:04d}" for n in range(10_000))))
        heads = [page.splitlines()[0].lstrip("# ") for page in pages]
        print(json.dumps(dict(head.split(": ", 1) for head in heads), indent=2) if options.json else "\n".join(heads))
        return 0
    code = code.upper() if code[:1] in "eE" else f"E{code:0>4}"
    found = error_page(code)
    if found is None:
        print(f"there is no error code {code}; `rscan explain` lists all", file=sys.stderr)
        return 1
    title, _, text = found.rstrip().partition("\n")
    if options.json:
        print(json.dumps({"code": code, "title": title.partition(": ")[2], "text": text.strip()}, indent=2))
    else:
        print(found.rstrip())
    return 0


def _inspect(options: Any) -> int:
    from .errors import RscanError
    from .saving import load

    try:
        module = load(options.file)
        print(json.dumps(_contents(module), indent=2) if options.json else module.describe().rstrip("\n"))
    except (OSError, RscanError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _contents(module: Any) -> dict[str, Any]:
    """The functions and shared variables of a file, as plain dicts."""

    def types(variables: Any) -> list[dict[str, Any]]:
        return [{"name": v.name, "dtype": v.dtype, "shape": list(v.static_shape)} for v in variables]

    functions = {
        name: {
            "inputs": types(slot.variable for slot in f.inputs),
            "outputs": types(f.outputs),
            "updates": [variable.name for variable, _ in f.updates],
            "doc": f.doc,
        }
        for name, f in module.items()
    }
    shared = {name: {"dtype": v.dtype, "shape": list(v.get_value().shape)} for name, v in module.shared.items()}
    return {"functions": functions, "shared": shared}


def _onnx(options: Any) -> int:
    from .errors import RscanError
    from .onnx import export
    from .saving import load

    try:
        module = load(options.file)
        name = options.function or next(iter(module))
        if name not in module or (options.function is None and len(module) > 1):
            print(f"rscan onnx: {options.file} has {', '.join(module)}; name one: --function {next(iter(module))}", file=sys.stderr)
            return 1
        made = export(module[name], options.output, name=name)
        if options.json:
            written = {"file": options.output, "bytes": len(made), "function": name}
            print(json.dumps({**written, **_contents(module)["functions"][name]}, indent=2))
    except RscanError as error:
        print(error.render(), file=sys.stderr)
        return 1
    except (OSError, ModuleNotFoundError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _doctor(options: Any) -> int:
    from .doctor import examine

    return examine(as_json=options.json)


def _bench(options: Any) -> int:
    from .bench import bench

    return bench(as_json=options.json, only=options.only)


def _run(options: Any) -> int:
    from .errors import RscanError

    path = options.program
    if not os.path.isfile(path):
        print(f"rscan run: there is no file {path!r}", file=sys.stderr)
        return 2
    if options.theano:
        from . import theano

        theano.install()
    sys.argv = [path, *options.arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        runpy.run_path(path, run_name="__main__")
    except RscanError as error:
        if options.json:
            print(json.dumps(_told(error), indent=2), file=sys.stderr)
            return 1
        for line in _own_frames(error):
            print(line, end="", file=sys.stderr)
        print(error.render(), file=sys.stderr)
        print(f"`rscan explain {error.code}` says more", file=sys.stderr)
        return 1
    return 0


def _told(error: Any) -> dict[str, Any]:
    """An error as plain dicts and lists."""
    labels = [{"file": file, "line": line, "remark": remark} for file, line, remark in error.labels]
    names = {"error": type(error).__name__, "code": error.code, "title": error.title}
    return {**names, "labels": labels, "notes": error.notes, "helps": error.helps}


def _own_frames(error: BaseException) -> list[str]:
    """The traceback without the frames of rscan and of what runs the program."""
    home = os.path.dirname(__file__)
    frames = traceback.extract_tb(error.__traceback__)
    shown = [f for f in frames if not f.filename.startswith(home) and "runpy" not in f.filename]
    return ["Traceback (most recent call last):\n", *traceback.format_list(shown)] if shown else []


def _show(options: Any) -> int:
    from .show import drawn

    path, _, name = options.file.partition(":") if not os.path.exists(options.file) else (options.file, "", "")
    if not os.path.isfile(path):
        print(f"rscan show: there is no file {path!r}", file=sys.stderr)
        return 2
    try:
        found = _things_of(path)
    except _Unreadable as error:
        print(f"rscan show: {error}", file=sys.stderr)
        return 1
    things = [v for key, v in found.items() if not name or key == name]
    if not things:
        print(f"rscan show: {path} makes no function or variable{f' named {name!r}' if name else ''}", file=sys.stderr)
        return 1
    if options.format == "svg" and len(things) > 1 and not options.json:
        print(f"rscan show: {path} makes {', '.join(found)}; name one: {path}:{next(iter(found))}", file=sys.stderr)
        return 1
    texts = [drawn(thing, options.format or "text", options.optimised) for thing in things]
    names = [key for key in found if not name or key == name]
    text = json.dumps(dict(zip(names, texts, strict=True)), indent=2) if options.json else "\n".join(texts)
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            file.write(text + "\n")
    else:
        print(text)
    return 0


def _things_of(path: str) -> dict[str, Any]:
    """What can be drawn of what a file makes, by name: functions, or where there are none, variables that no other one depends on."""
    from .compile import Compiled
    from .function import Function
    from .variable import Variable

    if not path.endswith(".py"):
        return _things_of_file(path)
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    made = runpy.run_path(path, run_name="__main__")
    named = {key: value for key, value in made.items() if not key.startswith("_")}
    functions = {key: v for key, v in named.items() if isinstance(v, Function) or (isinstance(v, Compiled) and v.n_variants)}
    return functions or {key: v for key, v in named.items() if isinstance(v, Variable) and v._v.kind == "apply"}


class _Unreadable(Exception):
    """A file that holds nothing that can be drawn."""


def _things_of_file(path: str) -> dict[str, Any]:
    """The functions of a file that `rs.save` wrote, or what a pickle holds."""
    import pickle

    from .errors import RscanError
    from .saving import load

    with open(path, "rb") as file:
        start = file.read(1)
    try:
        if start != b"\x80":  # how pickles begin
            return dict(load(path))
        with open(path, "rb") as file:
            return {os.path.basename(path): pickle.load(file)}
    except RscanError as error:
        raise _Unreadable(f"{path} is no file of rs.save, no pickle and no .py file: {error.title}") from None
    except Exception as error:  # what unpickling says depends on the bytes
        raise _Unreadable(f"{path} cannot be unpickled: {type(error).__name__}: {error}") from None
