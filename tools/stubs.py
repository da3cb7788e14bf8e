"""The type stubs of modules whose names are made when they are imported: `tools/stubs.py` compares, `tools/stubs.py --write` writes.

Names, parameters and docs come from the modules as they run, so that a row of the table or a function that is added is in the stubs
at the next `--write`. What types cannot be read from a signature stands in `OVERLOADS`.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from collections import defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any

import rscan
from rscan import _rows, inputs

HOME = Path(rscan.__file__).parent

#: Modules that make names when they are imported.
MAKERS = [
    "rscan._rows", "rscan.inputs", "rscan.theano.tensor.create", "rscan.theano.tensor.elemwise", "rscan.theano.tensor.arrays",
    "rscan.theano.tensor.subtensor", "rscan.theano.tensor.nnet",
]  # fmt: skip

#: Modules whose stubs are their names as they run.
GATHERED = [*MAKERS[2:], "rscan.ops", "rscan.theano", "rscan.theano.tensor"]

#: Modules that export all names of others: their stubs say so, and do not list these names again.
STARS = {"rscan": ["rscan.ops", "rscan.inputs"], "rscan.ops": ["rscan._rows"]}

#: Types of parameters, what is then returned, and whose parameters they are, as `module:name`, where not the function's own. An overload
#: whose function is not there is left out.
Patch = tuple[dict[str, str], str] | tuple[dict[str, str], str, str]


def _like(parameter: str, name: str) -> list[Patch]:
    """Derivatives of variables come in the form in which variables were given."""
    home = f"rscan.derivatives:{name}"
    return [
        ({parameter: "Variable"}, "Variable", home),
        ({parameter: "list[_V]"}, "list[Variable]", home),
        ({parameter: "tuple[_V, ...]"}, "tuple[Variable, ...]", home),
        ({parameter: "dict[_K, _V]"}, "dict[_K, Variable]", home),
    ]


def _transform(name: str, returns: str = "Compiled[_P, Any]") -> Patch:
    """The form that takes a function."""
    return ({"fn": "Callable[_P, Any]"}, returns, f"rscan.transforms:{name}")


def _of_first(name: str, form: str) -> list[Patch]:
    """The forms that take a function whose first argument is of a known type, and differentiate by it, as they do without `argnums`."""
    kinds = {"Variable": "NDArray[Any]", "dict[_K, Variable]": "dict[_K, NDArray[Any]]", "list[Variable]": "list[NDArray[Any]]"}
    given = {"argnums": "", "has_aux": "", "wrt": "", "block_size": ""}
    return [
        (
            {"fn": f"Callable[Concatenate[{kind}, _Q], Variable]", **given},
            f"Compiled[Concatenate[{kind}, _Q], {form.format(made)}]",
            f"rscan.transforms:{name}",
        )
        for kind, made in kinds.items()
    ]


_FIXED = {"return_list": "Literal[False]", "init": ""}
#: What describes one output.
_ONE = "Variable | float | NDArray[Any] | dict[str, Any]"
_OTHERS = "list[Any] | tuple[Any, ...] | None"
_STEPS: list[Patch] = [
    ({"fn": "Callable[..., Variable | tuple[Variable, until]]", **_FIXED}, "tuple[Variable, OrderedUpdates]"),
    ({"fn": "Callable[..., _Several]", **_FIXED}, "tuple[list[Variable], OrderedUpdates]"),
    ({"fn": "Callable[..., Any]", "return_list": "bool", "init": ""}, "tuple[Any, OrderedUpdates]"),
]
#: A step without annotations matches every kind of step: what is looped over tells the result where it can, before the step is looked at.
_SCAN: list[Patch] = [
    ({"fn": "Callable[..., Any]", "outputs_info": _ONE, **_FIXED}, "tuple[Variable, OrderedUpdates]"),
    ({"fn": "Callable[..., Any]", "outputs_info": f"*, {_ONE}", **_FIXED}, "tuple[Variable, OrderedUpdates]"),
    ({"fn": "Callable[..., Variable | tuple[Variable, until]]", "outputs_info": _OTHERS, **_FIXED}, "tuple[Variable, OrderedUpdates]"),
    ({"fn": "Callable[..., _Several]", "outputs_info": _OTHERS, **_FIXED}, "tuple[list[Variable], OrderedUpdates]"),
    ({"fn": "Callable[..., Any]", "return_list": "bool", "init": ""}, "tuple[Any, OrderedUpdates]"),
]

#: Per function what takes the place of its parameters' types, and what it then returns; "" leaves a parameter out. Parameters that a
#: function does not have are passed over.
OVERLOADS: dict[str, list[Patch]] = {
    "grad": [*_like("wrt", "grad"), *_of_first("_grad_of", "{}"), _transform("_grad_of")],
    "vjp": [*_like("wrt", "vjp"), _transform("_vjp_of", "Any")],
    "Lop": _like("wrt", "Lop"),
    "jvp": [*_like("outputs", "jvp"), _transform("_jvp_of", "Any")],
    "Rop": _like("f", "Rop"),
    "jacobian": [*_like("wrt", "jacobian"), _transform("_jacobian_of")],
    "hessian": [*_like("wrt", "hessian"), _transform("_hessian_of")],
    "function": [
        ({"inputs": "_Inputs", "outputs": "Variable | Out | float"}, "Function[NDArray[Any]]"),
        ({"inputs": "_Inputs", "outputs": "list[Any] | tuple[Any, ...] | None"}, "Function[list[NDArray[Any]]]"),
        ({"inputs": "_Inputs", "outputs": "Mapping[_K, Variable | Out | float]"}, "Function[dict[_K, NDArray[Any]]]"),
        ({"inputs": "_Inputs", "outputs": "Any"}, "Function[Any]"),
    ],
    "compile": [
        ({"fn": "Callable[_P, Variable]"}, "Compiled[_P, NDArray[Any]]"),
        ({"fn": "Callable[_P, tuple[Variable, Variable]]"}, "Compiled[_P, tuple[NDArray[Any], NDArray[Any]]]"),
        ({"fn": "Callable[_P, tuple[Variable, ...]]"}, "Compiled[_P, tuple[NDArray[Any], ...]]"),
        ({"fn": "Callable[_P, list[Variable]]"}, "Compiled[_P, list[NDArray[Any]]]"),
        ({"fn": "Callable[_P, dict[_K, Variable]]"}, "Compiled[_P, dict[_K, NDArray[Any]]]"),
        ({"fn": "Callable[_P, Any]"}, "Compiled[_P, Any]"),
        ({"fn": "None"}, "Callable[[Callable[_P, Any]], Compiled[_P, Any]]"),
    ],
    "value_and_grad": [
        *_of_first("value_and_grad", "tuple[NDArray[Any], {}]"),
        ({"fn": "Compiled[_P, Any]"}, "Compiled[_P, tuple[Any, Any]]"),
        ({"fn": "Callable[_P, Any]"}, "Compiled[_P, tuple[Any, Any]]"),
    ],
    "vmap": [({"f": "Callable[_P, _R]"}, "Callable[_P, _R]")],
    "scan": [*_SCAN, ({}, "Any")],
    "map": _STEPS,
    "reduce": _STEPS,
    "foldl": _STEPS,
    "foldr": _STEPS,
    "loop": [
        ({"step": "Callable[..., Any]", "init": "dict[str, Any]"}, "Loop"),
        ({"step": "Callable[..., Any]", "init": "*, dict[str, Any]"}, "Loop"),
        ({"step": "Callable[..., Mapping[str, Any]]", "init": "Operand | Taps | None"}, "Loop"),
        ({"step": "Callable[..., Variable]", "init": "Operand | Taps | None"}, "LoopOutput"),
        ({"init": "list[Any] | tuple[Any, ...]"}, "Loop"),
        ({}, "Any"),
    ],
    "constant": [({"value": "Operand"}, "Variable")],
    "as_variable": [({"value": "Operand"}, "Variable")],
    "shared": [({"value": "Operand"}, "SharedVariable")],
    "debugprint": [({"file": "TextIO | None"}, "None"), ({"file": "str"}, "str")],
}

HEADER = '''"""{doc} Made by tools/stubs.py."""
# ruff: noqa

'''

PREAMBLE = """import builtins
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Concatenate, Literal, ParamSpec, TextIO, TypeVar, overload

from numpy.typing import NDArray

from .typing import Operand

_P = ParamSpec("_P")
_Q = ParamSpec("_Q")
_R = TypeVar("_R")
_K = TypeVar("_K")
_V = TypeVar("_V", bound=Variable)
_Inputs = Variable | In | Sequence[Variable | In] | None
_Several = tuple[Variable, Variable] | tuple[Variable, Variable, Variable] | tuple[Variable, Variable, Variable, Variable]
"""


# The tables.


def rows_stub() -> str:
    """A function per row and per other name of a row."""
    out = [HEADER.format(doc="Elementwise functions.").rstrip(), "", "from collections.abc import Callable", ""]
    out += ["from .typing import Operand", "from .variable import Variable", "", "ALIASES: dict[str, str]", "EXTENDED: tuple[str, ...]"]
    out += ["ROWS: dict[str, Callable[..., Variable]]", ""]
    table = {row["name"]: row for row in rscan._native.catalogue()}
    names = {**{name: name for name in table}, **_rows.ALIASES}
    shown = [name for name in names if name not in _rows.EXTENDED and name in _rows.ROWS]
    for name in shown:
        arguments = ", ".join(arg + ": Operand" for arg in table[names[name]]["args"])
        out += [f"def {name}({arguments}, /) -> Variable:", f'    """{table[names[name]]["doc"]}"""', ""]
    out += _exported(_rows.__all__)
    return "\n".join(out).rstrip() + "\n"


def inputs_stub() -> str:
    """A function per dtype and kind of variable, and its plural."""
    out = [HEADER.format(doc="Variables that a caller fills.").rstrip(), "", "from collections.abc import Callable, Sequence"]
    out += ["from typing import Any", "", "from .variable import Variable", ""]
    out += ["PREFIXES: dict[str, str]", "KINDS: dict[str, tuple[int | None, ...]]", "PLURALS: dict[str, str]"]
    out += ["CONSTRUCTORS: dict[str, Callable[..., Any]]", ""]
    out += ["def tensor(dtype: Any = None, shape: Sequence[int | None] = (), name: str | None = None) -> Variable: ..."]
    plurals = {prefix + many for prefix in ["", *inputs.PREFIXES] for many in inputs.PLURALS.values()}
    for name in inputs.CONSTRUCTORS:
        if name in plurals:
            out.append(f"def {name}(*names: str | int, dtype: Any = None) -> list[Variable]: ...")
        else:
            dtype = inspect.signature(inputs.CONSTRUCTORS[name]).parameters["dtype"].default
            options = f"name: str | None = None, dtype: Any = {dtype!r}, shape: Sequence[int | None] | None = None"
            out.append(f"def {name}({options}) -> Variable: ...")
    return "\n".join([*out, *_exported(inputs.__all__)]) + "\n"


# Whole modules.


def package_stub() -> str:
    """`rscan/__init__.pyi`: where each public name comes from, and overloads."""
    names = sorted(set(rscan.__all__) | {"print", "inf", "nan", "pi", "e", "newaxis", "__dir__"})
    gathered = _Gathered(rscan)
    for name in names:
        if name in OVERLOADS:
            gathered.overloaded(name)
        else:
            gathered.add(name)
    text = HEADER.format(doc=rscan.__doc__ or "")
    return text + gathered.imports() + PREAMBLE + "\n" + gathered.text()


def module_stub(name: str) -> str:
    """A module as it is at run time."""
    module = importlib.import_module(name)
    gathered = _Gathered(module)
    for public in sorted(n for n in vars(module) if not n.startswith("__")):
        gathered.add(public)
    if hasattr(module, "__getattr__"):
        gathered.body.append("def __getattr__(name: str) -> Any: ...")
    text = HEADER.format(doc=(module.__doc__ or "").strip().splitlines()[0])
    # Where other modules' names are exported, too, there is no list: checkers would take it for all there is.
    exported = [] if not hasattr(module, "__all__") else [] if name in STARS else _exported(module.__all__)
    return text + "from typing import Any\n" + gathered.imports() + "\n" + gathered.text() + "\n".join(["", *exported, ""])


class _Gathered:
    """The text of a stub."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.package = module.__name__ if hasattr(module, "__path__") else module.__name__.rpartition(".")[0]
        self.body: list[str] = []
        self._stars = [importlib.import_module(star) for star in STARS.get(module.__name__, [])]
        #: Names that the stub exports, and names that its annotations need.
        self._froms: dict[str, set[tuple[str, str]]] = defaultdict(set)
        self._used: dict[str, set[str]] = defaultdict(set)

    def add(self, name: str) -> None:
        """A name of the module: taken from where it is defined, or written out."""
        value = getattr(self.module, name)
        if any(name in star.__all__ and getattr(star, name) is value for star in self._stars):
            return
        if isinstance(value, ModuleType):
            parent, _, last = value.__name__.rpartition(".")
            if parent.startswith("rscan") and value.__spec__ is not None:
                self._froms[parent].add((last, name))
            elif value.__spec__ is None:
                self.body.append(f"{name}: Any")
            return
        home = self._home(name, value)
        if home is not None:
            self._froms[home].add((name if hasattr(sys.modules[home], name) else value.__name__, name))
        elif inspect.isfunction(value):
            self._function(name, value)
        elif isinstance(value, type) and value.__module__ == self.module.__name__:
            self._class(value)
        elif not (isinstance(value, type) or (getattr(value, "__module__", None) or "").startswith(("typing", "builtins", "__future__"))):
            self.body.append(f"{name}: {self._type(value)}")

    def overloaded(self, name: str) -> None:
        """A function by its overloads."""
        lines = []
        own = getattr(self.module, name)
        first = next(iter(inspect.signature(own).parameters))
        for changes, returns, *home in OVERLOADS[name]:
            function = _found(*home) if home else own
            if function is not None:
                _, _, parameters = _parameters(function, changes).partition(":")
                lines.append(f"def {name}({first}:{parameters}) -> {returns}: ...")
                self._names({key: text for key, text in _annotations(function).items() if key != "return"}, function)
        self.body += [f"@overload\n{line}" for line in lines] if len(lines) > 1 else lines

    def imports(self) -> str:
        """The imports, one module a line."""
        lines = [f"from {self._relative(star.__name__)} import *" for star in self._stars]
        for home, names in sorted(self._froms.items()):
            # A stub exports what it imports under the name that it has there; other names are assigned.
            items = ", ".join(f"{name} as {alias if name == alias else f'_{alias}'}" for name, alias in sorted(names))
            self._used[home] -= {alias for _, alias in names}
            lines.append(f"from {self._relative(home)} import {items}")
        lines += [f"from {self._relative(home)} import {', '.join(sorted(names))}" for home, names in sorted(self._used.items()) if names]
        return "\n".join(lines) + "\n"

    def text(self) -> str:
        """Everything that is no import."""
        others = sorted(alias for names in self._froms.values() for name, alias in names if name != alias)
        return "\n".join([*(f"{alias} = _{alias}" for alias in others), *self.body]) + "\n"

    def _home(self, name: str, value: Any) -> str | None:
        """The module that a type checker finds the name in; None where it is this one."""
        own = getattr(value, "__module__", None) or ""
        known = [own] if own.startswith("rscan.") else []
        if isinstance(value, type):
            known.append("rscan._native")  # a class of it may name the package as its module
        if inspect.isroutine(value) and (own != self.module.__name__ or self.module is rscan):
            known += MAKERS
        for candidate in known:
            found = vars(sys.modules[candidate]) if candidate in sys.modules and candidate != self.module.__name__ else {}
            if any(found.get(key, self) is value for key in (name, getattr(value, "__name__", name))):
                return candidate
        return None

    def _class(self, cls: type) -> None:
        bases = ", ".join(base.__name__ for base in cls.__bases__ if base is not object)
        self.body.append(f"class {cls.__name__}{f'({bases})' if bases else ''}:")
        for base in cls.__bases__:
            if base.__module__.startswith("rscan"):
                self._froms[base.__module__].add((base.__name__, base.__name__))
        methods = {name: value for name, value in vars(cls).items() if inspect.isfunction(value)}
        for name, method in methods.items():
            self.body.append(f"    def {name}({_parameters(method, {})}) -> {_annotations(method).get('return', 'Any')}: ...")
            self._names(_annotations(method), method)
        if not methods:
            self.body.append("    ...")

    def _function(self, name: str, function: Any) -> None:
        doc = (function.__doc__ or "").strip().splitlines()[:1]
        head = f"def {name}({_parameters(function, {})}) -> {_annotations(function).get('return', 'Any')}:"
        self.body += [head, "    " + (f'"""{doc[0]}"""' if doc else "...")]
        self._names(_annotations(function), function)

    def _names(self, annotations: dict[str, str], function: Any) -> None:
        """Imports what annotations speak of."""
        for text in annotations.values():
            for node in ast.walk(ast.parse(text, mode="eval")):
                found = function.__globals__.get(node.id) if isinstance(node, ast.Name) else None
                if isinstance(found, ModuleType):
                    self.body.insert(0, f"import {found.__name__}" + (f" as {node.id}" if found.__name__ != node.id else ""))
                elif found is not None and found is not Any and getattr(found, "__module__", "builtins") != "builtins":
                    self._used[found.__module__].add(node.id)

    def _type(self, value: Any) -> str:
        if value is None:
            return "None"
        cls = type(value)
        if cls.__module__ == "builtins":
            return {"list": "list[Any]", "dict": "dict[Any, Any]", "tuple": "tuple[Any, ...]"}.get(cls.__name__, cls.__name__)
        if cls.__module__.startswith("rscan") and not cls.__name__.startswith("_"):
            self._used[cls.__module__].add(cls.__name__)
            return cls.__name__
        return "Any"

    def _relative(self, home: str) -> str:
        """A module's name as an import in this package writes it."""
        if home != "rscan" and not home.startswith("rscan."):
            return home
        here, there = self.package.split("."), home.split(".")
        common = 0
        while common < min(len(here), len(there)) and here[common] == there[common]:
            common += 1
        return "." * (len(here) - common + 1) + ".".join(there[common:])


def _found(home: str) -> Any:
    """What is at `module:name`; None where it is not."""
    module, _, name = home.partition(":")
    return getattr(sys.modules.get(module), name, None)


def _annotations(function: Any) -> dict[str, str]:
    return {name: text for name, text in getattr(function, "__annotations__", {}).items() if isinstance(text, str)}


def _parameters(function: Any, changes: dict[str, str]) -> str:
    """The parameters of a function, some with other types. Where None is no value of such a type, there is no default of None, nor
    any default before it; `*, type` is a parameter that is given by name, as all that follow are."""
    out: list[str] = []
    annotations, kinds = _annotations(function), inspect.Parameter
    for name, parameter in inspect.signature(function).parameters.items():
        if changes.get(name) == "":
            continue
        prefix = {kinds.VAR_POSITIONAL: "*", kinds.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        change, by_name = changes.get(name, "").removeprefix("*, "), changes.get(name, "").startswith("*, ")
        if (by_name or parameter.kind is parameter.KEYWORD_ONLY) and not any(text.startswith("*") for text in out):
            out.append("*")
        annotation = change or annotations.get(name, "Any")
        default = "" if parameter.default is parameter.empty else f" = {_default(parameter.default)}"
        if name in changes and default == " = None" and "None" not in annotation:
            default, out = "", out if by_name else [text.partition(" = ")[0] for text in out]
        out.append(f"{prefix}{name}: {annotation}{default}")
    return ", ".join(out)


def _default(value: Any) -> str:
    plain = value is None or isinstance(value, (bool, int, str)) or value == ()
    return repr(value) if plain else "..."


def _exported(names: list[str]) -> list[str]:
    return ["", "__all__ = [", *(f"    {name!r}," for name in names), "]"]


def stubs() -> dict[Path, str]:
    """Every stub that is made, by its file."""
    out = {HOME / "_rows.pyi": rows_stub(), HOME / "inputs.pyi": inputs_stub(), HOME / "__init__.pyi": package_stub()}
    for name in GATHERED:
        file = Path(importlib.import_module(name).__file__ or "")
        out[file.with_suffix(".pyi")] = module_stub(name)
    return out


def main(arguments: list[str]) -> int:
    """Compares or writes; the exit status says whether something was not current."""
    stale = [(file, text) for file, text in stubs().items() if not file.exists() or file.read_text(encoding="utf-8") != text]
    for file, text in stale:
        if "--write" in arguments:
            file.write_text(text, encoding="utf-8")
        print(file.relative_to(HOME.parent), "written" if "--write" in arguments else "is not current: tools/stubs.py --write")
    return int(bool(stale) and "--write" not in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
