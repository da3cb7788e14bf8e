"""The site: these pages, the tutorial (executed), and a page per group of public names. `make docs` builds it into out/site."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import rscan
from rscan.inputs import CONSTRUCTORS

ROOT = Path(__file__).parent.parent

project, author, release = "rscan", "The rscan developers", rscan.__version__
extensions = ["myst_nb"]
html_theme = "furo"
html_title = "rscan"
exclude_patterns = ["_build"]
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_execution_show_tb = True
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]

#: Files of the repository that pages link to and the site does not have.
_OUTSIDE = re.compile(r"\[([^\]]*)\]\((\.\./[^)#]+)(?:#[^)]*)?\)")

#: Groups of public names, by the module that defines them; what is in none of these goes into "More".
GROUPS = {
    "Loops": ["scan", "loop", "checkpoints", "updates"],
    "Functions of arrays": ["compile", "function", "session", "_calling", "shared", "vmap", "config"],
    "Derivatives": ["gradient", "verify"],
    "Looking inside": ["show", "printing", "explain", "profile"],
    "Variables": ["variable", "inputs", "typing"],
    "Elementwise functions": ["_rows", "ops_elementwise"],
    "Reductions and sorting": ["ops_reduce", "ops_search"],
    "Shapes, indices, creation": ["ops_shape", "ops_pieces", "indexing", "ops_create", "ops_control"],
    "Errors": ["errors"],
}

#: Constructors of variables that have a page of their own; the others differ in prefix and number.
USUAL = {"tensor", "scalar", "vector", "matrix", "tensor3", "dscalar", "dvector", "dmatrix", "vectors"}


def public_names() -> dict[str, list[str]]:
    """Every public name of rscan, by group; modules among them are groups of their own."""
    groups: dict[str, list[str]] = {title: [] for title in GROUPS}
    owner = {module: title for title, modules in GROUPS.items() for module in modules}
    for name in rscan.__all__:
        value = getattr(rscan, name)
        if inspect.ismodule(value):
            members = getattr(value, "__all__", None) or [n for n, v in vars(value).items() if n[0] != "_" and _own(v, value)]
            groups[f"rscan.{name}"] = [f"{name}.{n}" for n in sorted(set(members))]
            continue
        module = (getattr(value, "__module__", "") or "").rpartition(".")[2]
        if name in CONSTRUCTORS or module == "rscan":
            module = "inputs" if name in CONSTRUCTORS else "_rows"
        groups.setdefault(owner.get(module, "More"), []).append(name)
    groups["rscan.onnx"] = ["onnx.export"]
    groups["rscan.interop"] = interop_names()
    return groups


def _own(value: object, module: object) -> bool:
    return (inspect.isroutine(value) or inspect.isclass(value)) and getattr(value, "__module__", "").startswith(module.__name__)


def write_reference(app: object) -> None:
    """Writes docs/api/*.md."""
    folder = Path(__file__).parent / "api"
    folder.mkdir(exist_ok=True)
    pages = []
    for title, names in public_names().items():
        shown = [n for n in names if n not in CONSTRUCTORS or n in USUAL]
        if not shown:
            continue
        slug = re.sub(r"\W+", "-", title.lower()).strip("-")
        pages.append(slug)
        text = [f"# {title}", ""]
        if len(shown) < len(names):
            text += [
                "There is a constructor per prefix (`b w i l ub uw ui ul f d`, none for `floatX`), kind and plural: "
                f"{len(names)} in all. These stand for them.",
                "",
            ]
        for name in shown:
            text += entry(name)
        _write(folder / f"{slug}.md", "\n".join(text))
    listing = "\n".join(pages)
    _write(folder / "index.md", f"# Reference\n\nEvery public name, by group.\n\n```{{toctree}}\n:maxdepth: 1\n\n{listing}\n```\n")


def entry(name: str) -> list[str]:
    """What the page says of a name: signature and docstring, of a class its methods, or a value."""
    value: Any = rscan
    for part in name.split("."):
        value = getattr(value, part)
    doc = inspect.getdoc(value) or ""
    if not callable(value):
        text = [f"`{value!r}`"] if isinstance(value, (int, float, str)) else _prose(inspect.getdoc(type(value)) or "")
        return [f"````{{py:data}} rscan.{name}", "", *text, "````", ""]
    kind = "class" if inspect.isclass(value) else "function"
    methods = [f"- `{n}{_signature(m)}`: {_first(m)}" for n, m in vars(value).items() if _method(n, m)] if kind == "class" else []
    return [f"````{{py:{kind}}} rscan.{name}{_signature(value)}", "", *_prose(doc), "", *methods, "````", ""]


def _method(name: str, value: object) -> bool:
    return name[0] != "_" and inspect.isfunction(value) and bool(value.__doc__)


def _first(value: object) -> str:
    return " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())


def _signature(value: Any) -> str:
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        return "(...)"
    return re.sub(r"<[^>]*>", "...", text).replace("'", "").partition(" -> ")[0]


def _prose(doc: str) -> list[str]:
    """A docstring as Markdown: lines that begin with the names of parameters stand alone, and examples are blocks."""
    named = re.compile(r"^(\w+(?:, \w+)*): (.*)$")
    out: list[str] = []
    example = False
    for line in doc.splitlines():
        if line.startswith(">>> ") and not example:
            out.append("```pycon")
            example = True
        elif example and not line:
            out.append("```")
            example = False
        found = None if example else named.match(line)
        out += ["", f"**{found[1]}**: {found[2]}"] if found else [line]
    return [*out, "```"] if example else out


def interop_names() -> list[str]:
    """What the bridges offer whose other side is installed."""
    found = []
    for file in sorted((Path(rscan.__file__).parent / "interop").glob("[a-z]*.py")):
        try:
            module = importlib.import_module(f"rscan.interop.{file.stem}")
        except ImportError:
            continue
        found += [f"interop.{file.stem}.{name}" for name in module.__all__]
    return found


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def mend_links(app: object, docname: str, source: list[str]) -> None:
    """Links to files beside the pages become their names: the site has only the pages."""
    source[0] = _OUTSIDE.sub(lambda found: f"{found[1]} (`{found[2].removeprefix('../')}`)", source[0])


def setup(app: object) -> None:
    """Sphinx calls this."""
    app.connect("builder-inited", write_reference)
    app.connect("source-read", mend_links)
