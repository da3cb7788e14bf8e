"""Parameters in a safetensors file: arrays and shared variables in dicts, lists and dataclasses, each with a name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, overload

import numpy as np

from . import _native, _tree
from ._spans import here
from .errors import RscanTypeError, RscanValueError, ShapeError
from .saving import Path, existing, path_of
from .shared import SharedVariable
from .variable import Variable

__all__ = ["load_params", "save_params"]

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
    _native.save_params(path_of(path), {name: _array(name, value) for name, value in pairs.items()})


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
    arrays = dict(_native.load_params(existing(path)))
    if like is None:
        return arrays
    wanted, tree = _named(like)
    _check(arrays, {name: _array(name, value) for name, value in wanted.items()}, path_of(path))
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
