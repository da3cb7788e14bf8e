"""Functions in a file, `rs.save("model.rscan", train=f, predict=g)`, that Python, Rust and C load; weights alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, overload

import numpy as np

from . import _native, _tree
from ._calling import _MISSING, RESULT, Bound, In, convert, plain
from ._spans import here
from .dtypes import as_array
from .errors import RscanTypeError, RscanValueError, ShapeError
from .function import Function
from .printing import printer
from .shared import SharedVariable, adopt_shared
from .variable import Variable, wrap

Path = str | os.PathLike[str]


#: What is said of a function: a text, or texts by the names of its arguments and results, "" for the function itself.
Docs = str | Mapping[str, str]


def save(
    path: Path, functions: Mapping[str, Function] | None = None, /, *, docs: Mapping[str, Docs] | None = None, **named: Function
) -> None:
    """Writes compiled functions to a file, by name, with the values of their shared variables as they are between two calls.

    `rs.load`, the crate `scan-core` and the library `rscan.h` read it, and go on where this process is. It is a safetensors file: other
    tools see the shared variables in it.

    docs: what functions are, in words, by name. For arguments and results it is a dict in place of the text, by their names, "" for the
    function and "return" for a result without a name. `help` and `rscan inspect` show them. Without it a function has its `doc`: what a
    file said, or the docstring of what `rs.compile` compiled.

    The file is the old one or the new one, whole, whatever happens meanwhile. Devices are not kept, and of default arguments that are
    shared variables the value now.

    errors: `RscanTypeError` (E0809) for what is no path or function; `RscanValueError` (E0926) where there is nothing to save, (E0925) for
    `docs` of what is not there; `FileError` (E0921) where it cannot be written.

    >>> x, w = rs.dvector("x"), rs.shared(2.0, "w")
    >>> scale = rs.function([x], w * x)
    >>> count = rs.function([], w, updates={w: w + 1})
    >>> rs.save("model.rscan", scale=scale, count=count, docs={"scale": {"": "w times x.", "x": "lengths in metres"}})
    >>> rs.load("model.rscan").scale([1.0, 2.0])
    array([2., 4.])
    """
    if functions is not None and not isinstance(functions, Mapping):
        raise RscanTypeError(f"functions are given by name, not as {functions!r}", code="E0809", labels=[(here(), "")])
    everything = {**(functions or {}), **named}
    if not everything:
        raise RscanValueError("there are no functions to save", code="E0926", labels=[(here(), "")])
    unknown = next((name for name in docs or {} if name not in everything), None)
    if unknown is not None:
        raise RscanValueError(f"`docs` speaks of {unknown!r}, which is not saved", code="E0925", labels=[(here(), "")])
    _native.save([_said(name, f, (docs or {}).get(name)) for name, f in everything.items()], _path(path))


def _said(name: str, f: Any, docs: Docs | None) -> tuple[Any, ...]:
    """What the core writes of a function besides what it is."""
    if not isinstance(f, Function):
        text = f"`{name}`: {type(f).__name__} cannot be saved; what `rs.function` returns can"
        raise RscanTypeError(text, code="E0809", labels=[(here(), "")], helps=[_instead(f, name)])
    bad = next((key for key in f._keys or () if not isinstance(key, str)), None)
    if bad is not None:
        raise RscanValueError(f"`{name}`: the result {bad!r} has a key that is no string", code="E0926", labels=[(here(), "")])
    front = {
        "strict": [slot.strict for slot in f.inputs],
        "downcast": [slot.allow_downcast for slot in f.inputs],
        "allow_downcast": f._allow_downcast,
    }
    form = "single" if f._single else "list" if f._keys is None else "dict"
    outputs = f._keys if f._keys is not None else [v.name for v in f.outputs]
    inputs, defaults = [slot.name for slot in f.inputs], [_default(slot, f) for slot in f.inputs]
    doc, texts = _docs_of(f, name, docs)
    of_ports = [texts.get(port or "") for port in inputs], [texts.get(port or RESULT) for port in outputs]
    import json

    return name, f._native, doc, form, inputs, defaults, list(outputs), json.dumps(front), of_ports


def _instead(f: Any, name: str) -> str:
    """What to save in place of what is no function."""
    if isinstance(f, Bound):
        return "of a function with fixed arguments save `f.function`, with these as default values: rs.In(x, value=…)"
    if hasattr(f, "lower"):
        return f"it is compiled for each kind of arguments; save what it is for such: rs.save(path, {name}={name}.lower(x, …))"
    return f"of a function of Python save what is compiled for such arguments: rs.save(path, {name}=rs.compile(f).lower(x, …))"


def _docs_of(f: Function, name: str, docs: Docs | None) -> tuple[str | None, dict[str, str]]:
    """What is said of a function, and of its arguments and results by name."""
    if isinstance(docs, str) or docs is None:
        return docs or f.doc, dict(f.docs)
    texts = {**f.docs, **docs}
    doc = texts.pop("", f.doc)
    known = f._described()
    unknown = next((port for port in texts if port not in known), None)
    if unknown is not None:
        text = f"`docs` speaks of {unknown!r}, which `{name}` does not have; it has {', '.join(known)}"
        raise RscanValueError(text, code="E0925", labels=[(here(), "")])
    return doc, texts


def _default(slot: In, f: Function) -> np.ndarray | None:
    value = slot.default()
    return None if value is _MISSING else plain(convert(value, slot, f._allow_downcast))


def load(path: Path, *, ops: Sequence[Any] | Mapping[str, Any] = (), device: str | None = None) -> Module:
    """Reads a file that `rs.save` wrote. device: where its functions run, as for `rs.function`.

    ops: users' ops that its functions use: a list of ops as the facade makes them (`as_op`, instances of `Op`), or a dict of such, or of
    functions of arrays, by the names that the file has of them. What `rs.Print` made prints again, and needs nothing.

    Nothing of the file is executed but loops and operations of rscan: a file from somebody else can at worst compute nonsense.

    errors: `RscanTypeError` (E0809) for what is no path or no op; `FileNotFoundError` and its like; `ParseError` (E0922) for another
    file.

    >>> x = rs.dscalar("x")
    >>> rs.function([x], x + 1, name="up").save("model.rscan")
    >>> m = rs.load("model.rscan")
    >>> m.up(1.0), list(m)
    (array(2.), ['up'])
    """
    find = _finder(ops)
    with open(_path(path), "rb") as file:
        data = file.read()
    return Module(_native.load(data, find), device)


def _finder(ops: Any) -> Callable[[str, Any], _native.UserOp | None]:
    """What gives a user's op by its name in the file, and by the types of its results."""
    if not isinstance(ops, Mapping):
        natives = [_listed_op(op) for op in ops] if isinstance(ops, (list, tuple)) else [_listed_op(ops)]
        ops = {native.key: native for native in natives}
    bad = next((name for name, op in ops.items() if not isinstance(name, str) or not _is_op(op)), None)
    if bad is not None:
        raise _no_op(ops[bad])

    def find(key: str, types: Any) -> _native.UserOp | None:
        op = ops.get(key)
        if op is None:
            return printer(key)
        return op if isinstance(op, _native.UserOp) else _known(op, key) or _of_callable(op, key, types)

    return find


def _is_op(op: Any) -> bool:
    return isinstance(op, _native.UserOp) or hasattr(op, "_user_op") or callable(op)


def _known(op: Any, key: str | None = None) -> _native.UserOp | None:
    """An op of the facade as one of the core; under its own name, or another."""
    return op._user_op(key) if hasattr(op, "_user_op") else None


def _listed_op(op: Any) -> _native.UserOp:
    native = op if isinstance(op, _native.UserOp) else _known(op)
    if native is None:
        raise _no_op(op)
    return native


def _no_op(op: Any) -> RscanTypeError:
    helps = ["ops are what `as_op` and classes of `Op` make; functions of arrays are given by name: ops={'name': function}"]
    return RscanTypeError(f"{op!r} is no op that a file can use by itself", code="E0809", labels=[(here(), "")], helps=helps)


def _of_callable(function: Any, key: str, types: Any) -> _native.UserOp:
    """A function of arrays as an op, whose results are of the types that the file says."""
    if not types:
        text = f"the file does not say what `{key}` gives, so a function alone cannot stand for it"
        raise RscanTypeError(text, code="E0809", labels=[(here(), "")], helps=["save it again with this version, or give an op"])

    def evaluate(arrays: list[np.ndarray]) -> list[np.ndarray]:
        found = function(*arrays)
        found = list(found) if isinstance(found, (list, tuple)) else [found]
        return [as_array(value, dtype) for value, (dtype, _) in zip(found, types, strict=True)]

    return _native.extern(key, True, lambda _: types, evaluate)


def _path(path: Any) -> str:
    try:
        return os.fsdecode(path)
    except TypeError:
        raise RscanTypeError(f"a path is a text or an os.PathLike, not {path!r}", code="E0809", labels=[(here(), "")]) from None


def _existing(path: Any) -> str:
    """The path of a file that can be opened; of others Python's own error says why: FileNotFoundError, PermissionError."""
    with open(path := _path(path), "rb"):
        return path


class Module(Mapping[str, Function]):
    """Functions from a file: `m.predict(x)` or, for every name, `m["predict"](x)`. Each is compiled when it is first asked for.

    errors: `RscanTypeError` (E0809) where it is not made by `load`; `AttributeError` and `KeyError` for functions that are not there.

    >>> total = rs.shared(1.0, "total")
    >>> rs.save("model.rscan", up=rs.function([], [], updates={total: total + 1}))
    >>> m = rs.load("model.rscan")
    >>> m.up()
    []
    >>> m.shared["total"].get_value()
    array(2.)
    """

    def __init__(self, native: _native.Module, device: str | None = None) -> None:
        if not isinstance(native, _native.Module):
            raise RscanTypeError("modules are read by rs.load(path)", code="E0809", labels=[(here(), "")])
        self._native, self._device = native, device
        #: The shared variables by name. All functions of the module read and update these.
        self.shared: dict[str, SharedVariable] = {name: adopt_shared(SharedVariable, s) for name, s in native.shared}
        self._functions: dict[str, Function | None] = dict.fromkeys(native.names)

    def __getitem__(self, name: str) -> Function:
        found = self._functions[name]
        if found is None:
            found = self._functions[name] = self._made(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def __getattr__(self, name: str) -> Function:
        if not name.startswith("_") and name in self._functions:
            return self[name]
        raise AttributeError(f"the module has no function {name!r}; it has {', '.join(self._functions)}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._functions]

    def __repr__(self) -> str:
        return f"<rscan module: {', '.join(self._functions)}; shared variables: {', '.join(self.shared) or 'none'}>"

    def describe(self) -> str:
        """Functions with their arguments and loops, and the shared variables with their sizes, as text."""
        return self._native.describe()

    def save(self, path: Path) -> None:
        """Writes its functions, with the values that the shared variables have now.

        errors: those of `save`: `RscanTypeError` (E0809) for what is no path, `FileError` (E0921) where it cannot be written.
        """
        save(path, dict(self))

    def _made(self, name: str) -> Function:
        import json

        inputs, outputs, updates, doc, form, defaults, names, passes, front, docs = self._native.function(name)
        said = json.loads(front) if front else {}
        strict, downcast = said.get("strict", [False] * len(inputs)), said.get("downcast", [None] * len(inputs))
        slots = []
        for native, default, is_strict, allow in zip(inputs, defaults, strict, downcast, strict=True):
            value = _MISSING if default is None else default
            slots.append(In(wrap(native), native.name, value, strict=is_strict, allow_downcast=allow))
        values = [wrap(v) for v in outputs]
        result: Any = values[0] if form == "single" else values if form == "list" else dict(zip(names, values, strict=True))
        pairs = [(wrap(shared), wrap(value)) for shared, value in updates]
        level, excluding = passes
        made = Function(
            slots, result, pairs, None, name, "ignore", said.get("allow_downcast"), True, False, (level, list(excluding)), self._device
        )
        of_ports = [
            *zip([slot.name or "" for slot in slots], docs[0], strict=True),
            *zip([n or RESULT for n in names], docs[1], strict=True),
        ]
        made._say(doc, {port: text for port, text in of_ports if text is not None})
        return made


# Parameters alone: arrays and shared variables in dicts, lists and dataclasses, each with a name.

_S = TypeVar("_S")


def save_params(path: Path, params: Any) -> None:
    """Writes arrays, numbers and shared variables to a safetensors file.

    params: a structure of dicts, lists, tuples and dataclasses, whose names are those of its parts, joined by dots: `layers.0.w`; or a list
    of shared variables that have names. Files of other tools for safetensors are named so, too.

    errors: `RscanTypeError` (E0809) for what is no path or has no value; `RscanValueError` (E0926) for what has no name, or one that is
    taken; `FileError` (E0921) where it cannot be written.

    >>> rs.save_params("w.safetensors", {"layers": [{"w": np.eye(2)}, {"w": np.ones(3)}], "rate": rs.shared(0.5)})
    >>> sorted(rs.load_params("w.safetensors"))
    ['layers.0.w', 'layers.1.w', 'rate']
    """
    pairs, _ = _named(params)
    _native.save_params(_path(path), {name: _array(name, value) for name, value in pairs.items()})


@overload
def load_params(path: Path) -> dict[str, np.ndarray]: ...
@overload
def load_params(path: Path, like: _S) -> _S: ...
def load_params(path: Path, like: Any = None) -> Any:
    """The arrays of a safetensors file, whoever wrote it: by name, or in the structure of `like`.

    like: a structure as `save_params` takes it, with the names and shapes of the file. Where it has shared variables, these get the values,
    all or, after an error, none; where it has arrays or numbers, the result has the arrays of the file.

    errors: `RscanTypeError` (E0809) for what is no path, (E0506) where a shared variable cannot hold the dtype; `FileNotFoundError` and its
    like; `ParseError` (E0922) for another file; `RscanValueError` (E0925) for names that are missing or too many; `ShapeError` (E0809) for
    other shapes.

    >>> model = {"w": rs.shared(np.zeros((2, 2)), "w"), "b": np.zeros(2)}
    >>> rs.save_params("w.safetensors", {"w": np.eye(2), "b": np.ones(2)})
    >>> loaded = rs.load_params("w.safetensors", like=model)
    >>> loaded["w"] is model["w"], model["w"].get_value(), loaded["b"]
    (True, array([[1., 0.],
           [0., 1.]]), array([1., 1.]))
    """
    arrays = dict(_native.load_params(_existing(path)))
    if like is None:
        return arrays
    wanted, tree = _named(like)
    _check(arrays, {name: _array(name, value) for name, value in wanted.items()}, _path(path))
    fitting = {name: value._fitting(arrays[name]) for name, value in wanted.items() if isinstance(value, SharedVariable)}
    for name, array in fitting.items():
        wanted[name].set_value(array)
    found = [wanted[name] if name in fitting else arrays[name] for name in wanted]
    return list(found) if tree is None else tree.build(iter(found))


def _named(params: Any) -> tuple[dict[str, Any], _tree.Tree | None]:
    """Arrays and shared variables by their names, and the structure that they stand in; None for shared variables by their own names."""
    items = list(params) if isinstance(params, Iterable) and not isinstance(params, (Mapping, Variable, str, np.ndarray)) else None
    if items is not None and not hasattr(params, "_fields") and all(isinstance(v, SharedVariable) for v in items):
        return _unique([(v.name, v) for v in items]), None
    leaves, tree = _tree.flatten(params, lambda v: isinstance(v, (Variable, np.ndarray)))
    return _unique(list(zip(_tree.dotted(tree), leaves, strict=True))), tree


def _unique(pairs: list[tuple[Any, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for i, (name, value) in enumerate(pairs):
        if not isinstance(name, str) or not name:
            raise _unnamed(f"number {i} of what is to be saved has no name")
        if name in found:
            raise _unnamed(f"two arrays are called {name!r}")
        found[name] = value
    return found


def _unnamed(text: str) -> RscanValueError:
    return RscanValueError(text, code="E0926", labels=[(here(), "")], helps=["pass a dict of names"])


def _array(name: str, value: Any) -> np.ndarray:
    if isinstance(value, SharedVariable):
        return value.get_value(borrow=True)
    if isinstance(value, Variable):
        raise RscanTypeError(f"`{name}` is an expression, which has no value", code="E0809", labels=[(here(), "")])
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise RscanTypeError(f"`{name}` is no array of numbers: {value!r}", code="E0809", labels=[(here(), "")])
    return array


def _check(arrays: Mapping[str, np.ndarray], wanted: Mapping[str, np.ndarray], file: str) -> None:
    """Refuses a file whose names or shapes are others."""
    missing, more = [n for n in wanted if n not in arrays], [n for n in arrays if n not in wanted]
    if missing or more:
        kinds = [("the file lacks", missing), ("only the file has", more)]
        notes = [f"{said}: {', '.join(names)}" for said, names in kinds if names]
        text = f"the names of `{file}` are not those of `like`"
        helps = ["rs.load_params(path) gives all arrays by name"]
        raise RscanValueError(text, code="E0925", labels=[(here(), "")], notes=notes, helps=helps)
    for name, array in wanted.items():
        if arrays[name].shape != array.shape:
            text = f"`{name}` has the shape {arrays[name].shape} in the file, and {array.shape} in `like`"
            raise ShapeError(text, code="E0809", labels=[(here(), "")])
