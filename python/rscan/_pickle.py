"""Variables and functions through pickle and copy.deepcopy, and functions of Python that transforms were applied to.

An expression travels as text over its leaves; inputs and shared variables travel as objects, so that what is pickled
together keeps sharing them.
"""

from __future__ import annotations

import functools
import importlib
import pickle
import sys
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from . import _native
from .errors import RscanError
from .variable import Variable, wrap


def leaves_of(variables: Sequence[Variable], stop: Sequence[Variable] = ()) -> list[Variable]:
    """Inputs and shared variables that the variables depend on, and those of `stop` that they do."""
    found = _native.leaves([v._v for v in variables], [v._v for v in stop])
    family = next((v._family for v in variables), Variable)
    return [wrap(v, family) for v in found if v.kind != "const"]


def to_text(variables: Sequence[Variable], leaves: Sequence[Variable]) -> str:
    """Expressions as the text of a function of leaves."""
    return _native.to_text([v._v for v in variables], [v._v for v in leaves])


def from_text(text: str, leaves: Sequence[Variable], family: type[Variable], version: str = "") -> list[Variable]:
    """The expressions of a text that this version of rscan wrote, or another one: then errors say so."""
    try:
        return [wrap(v, family) for v in _native.from_text(text, [v._v for v in leaves])]
    except RscanError as error:
        if version != _native.__version__:
            error.notes.append(f"it was pickled by rscan {version or 'of an earlier version'}, and is read by {_native.__version__}")
            error.helps.append("pickles are for one version of rscan: files of rs.save are read by later ones, too")
        raise


def reduce_variable(v: Variable) -> Any:
    """How pickle stores a variable."""
    state = {key: value for key, value in v.__dict__.items() if key not in ("_v", "_origin", "_shared")}
    native = v._v
    if native.kind == "const":
        return _constant, (v._family, native.value, native.name), state
    if native.kind == "input":
        return _input, (v._family, native.dtype, native.shape, native.name), state
    if native.kind == "shared":
        assert native.shared is not None
        return _shared, (type(v), native.shared.get(), native.name, native.shape), state
    leaves = leaves_of([v])
    return _expression, (v._family, to_text([v], leaves), leaves, native.name, _native.__version__), state


def _constant(family: type[Variable], value: Any, name: str | None) -> Variable:
    out = wrap(_native.constant(value), family)
    out.name = name
    return out


def _input(family: type[Variable], dtype: str, shape: Sequence[int | None], name: str | None) -> Variable:
    return wrap(_native.input(dtype, shape, name), family)


def _shared(cls: Any, value: Any, name: str | None, shape: Sequence[int | None]) -> Variable:
    from .shared import adopt_shared

    return adopt_shared(cls, _native.Shared(value, name, 0, shape))


def _expression(family: type[Variable], text: str, leaves: Sequence[Variable], name: str | None, version: str = "") -> Variable:
    (out,) = from_text(text, leaves, family, version)
    if name is not None and all(out is not leaf for leaf in leaves):
        out.name = name
    return out


# Functions of Python, and what is made of them.


class Made:
    """What a transform made of functions: pickled as the transform and its arguments, from which it is made again.

    `_recipe` is the transform and its arguments. What is found under its name in a module travels as that name.
    """

    _recipe: tuple[Callable[..., Any], tuple[Any, ...]]

    def __reduce__(self) -> Any:
        if getattr(self, "__module__", "__main__") != "__main__" and _found(self) is self and _whole(self.__module__) is None:
            return self.__qualname__  # type: ignore[attr-defined]
        if id(self) in _travelling:  # a function that calls itself
            return getattr(self, "__qualname__", type(self).__qualname__)
        transform, arguments = self._recipe
        _travelling.add(id(self))
        try:
            return transform, tuple(map(_carried, arguments))
        finally:
            _travelling.discard(id(self))


class Transformed(Made):
    """A function that a transform made, as an object that can be pickled."""

    def __init__(self, function: Callable[..., Any], transform: Callable[..., Any], *arguments: Any) -> None:
        functools.update_wrapper(self, function)
        self._function, self._recipe = function, (transform, arguments)

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._function(*args, **named)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # What pickles and copies look for is asked of what has no attributes yet.
            if name not in ("explain", "lower", "profile", "session", "text"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
            made = self._recipe[0].__name__
            text = f"what rs.{made} gives is a function of variables, not compiled: rs.compile(rs.{made}(f)) has `{name}`"
            raise AttributeError(text, name=name, obj=self)

    def __repr__(self) -> str:
        return f"<{self._recipe[0].__name__} of {getattr(self, '__qualname__', '?')}>"


#: What is being pickled by this process.
_travelling: set[int] = set()


def _found(thing: Any) -> Any:
    """What a module has under the name of a function."""
    found: Any = sys.modules.get(thing.__module__)
    for part in getattr(thing, "__qualname__", "").split("."):
        found = getattr(found, part, None)
    return found


class _Carried:
    """A function of Python on its way: by its name, or else by what it consists of."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __reduce__(self) -> Any:
        return pickle.loads, (_dumped(self.function),)


def _carried(argument: Any) -> Any:
    return _Carried(argument) if isinstance(argument, types.FunctionType) else argument


#: Where cloudpickle lives: Ray and joblib have copies of their own.
_CLOUDPICKLES = ("cloudpickle", "ray.cloudpickle.cloudpickle", "joblib.externals.cloudpickle")


def _whole(module: str) -> Any:
    """The cloudpickle that was told to send a module's functions whole (`register_pickle_by_value`), because the receiver lacks it."""
    for name in _CLOUDPICKLES:
        listed = getattr(sys.modules.get(name), "list_registry_pickle_by_value", None)
        if listed is not None and any(module == known or module.startswith(f"{known}.") for known in listed()):
            return sys.modules[name]
    return None


def _dumped(function: Any) -> bytes:
    """A function as bytes. Local functions and those of the main program need cloudpickle, which joblib and loky bring along."""
    whole = _whole(function.__module__)
    if whole is not None:
        return whole.dumps(function)
    if function.__module__ != "__main__" and _found(function) is function:
        return pickle.dumps(function)
    for name in ("cloudpickle", "joblib.externals.cloudpickle"):
        try:
            return importlib.import_module(name).dumps(function)
        except ImportError:
            continue
    raise pickle.PicklingError(
        f"the function {function.__qualname__} is found under no name in another process: move it into a module, or install cloudpickle"
    )
