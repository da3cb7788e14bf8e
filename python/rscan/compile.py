"""Functions of arrays from functions of variables: `@rs.compile`.

The function is called with variables once per dtype and number of axes of its arguments; what it returns is compiled and kept.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, overload

import numpy as np

from . import _tree
from ._native import DeviceArray, Dispatcher, Results
from ._pickle import Made
from ._progress import teller
from ._quick import Marker, marked
from ._spans import here, of_function
from ._tracing import traced
from .dtypes import as_array, is_foreign, no_array, short, what_to_do
from .errors import RscanError, RscanTypeError, ScanTypeError, ShapeError
from .function import Function, function
from .inputs import tensor
from .session import CompiledSession
from .updates import OrderedUpdates
from .variable import DTYPES, Variable, as_variable, is_weak, weak_dtype

__all__ = ["Compiled", "compile"]


if TYPE_CHECKING:
    from typing_extensions import ParamSpec, TypeVar  # with defaults: `Compiled` alone is a type, too

    from .explain import Explanation
    from .profile import Profile
    from .typing import Operand

    P = ParamSpec("P", default=...)
    R = TypeVar("R", default=Any)
else:
    from typing import ParamSpec, TypeVar

    P, R = ParamSpec("P"), TypeVar("R")


class Compiled(Dispatcher, Made, Generic[P, R]):
    """A function of arrays, numbers and structures of these (dicts, lists, tuples, dataclasses). Other arguments, such as
    strings and None, are passed on as they are, and each value of theirs is compiled for itself.

    errors: calls raise those of `compile`; `lower` and `session` the same.

    >>> f = rs.compile(lambda x: {"sum": rs.sum(x), "largest": rs.max(x)})
    >>> f(np.array([1.0, 4.0]))
    {'sum': np.float64(5.0), 'largest': np.float64(4.0)}
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        name: str | None = None,
        device: str | None = None,
        progress: Any = None,
        static: tuple[str, ...] = (),
        profile: bool | str = False,
        fetch: bool = True,
    ) -> None:
        self._fn = fn
        self._device, self._progress, self._profile, self._fetch = device, teller(progress), profile, fetch
        self._recipe = (type(self), (fn, name, device, progress is True, static, profile, fetch))
        self._name = name or getattr(fn, "__name__", "compiled")
        self._signature = inspect.signature(fn)
        #: Arguments that the function gets as they are.
        self._static = static
        self._variants: dict[Any, tuple[Function, Results]] = {}
        self._lock = threading.Lock()
        functools.update_wrapper(self, fn, updated=())

    if TYPE_CHECKING:
        # With the arguments that the function declares, or with arrays in their order where it declares variables.
        @overload
        def __call__(self, *args: P.args, **named: P.kwargs) -> R: ...
        @overload
        def __call__(self: Compiled[[Variable], R], a: Operand, /) -> R: ...
        @overload
        def __call__(self: Compiled[[Variable, Variable], R], a: Operand, b: Operand, /) -> R: ...
        @overload
        def __call__(self: Compiled[[Variable, Variable, Variable], R], a: Operand, b: Operand, c: Operand, /) -> R: ...
        @overload
        def __call__(
            self: Compiled[[Variable, Variable, Variable, Variable], R], a: Operand, b: Operand, c: Operand, d: Operand, /
        ) -> R: ...
        @overload
        def __call__(
            self: Compiled[[Variable, Variable, Variable, Variable, Variable], R],
            a: Operand,
            b: Operand,
            c: Operand,
            d: Operand,
            e: Operand,
            /,
        ) -> R: ...
        def __call__(self, *args: Any, **named: Any) -> Any: ...

    def _general(self, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """A call with arguments of any kind. Those with arguments like them take no Python code from then on."""
        leaves, tree, static, names = self._flat(args, named)
        if any(isinstance(v, Variable) for v in leaves):
            return self._inlined(leaves, tree, static)
        arrays = _arrays(leaves, tree, names)
        compiled, out = self._variant(arrays, tree, static, names)
        if not self._static:
            self._remember(args, named, compiled, out)
        try:
            return out.build(compiled(*arrays), numbers=True)
        except RscanError as error:
            self._advise(error, args, named)
            raise

    def _inlined(self, leaves: list[Any], tree: _tree.Tree, static: tuple[tuple[int, Any], ...]) -> Any:
        """The expressions themselves, in a function that is traced. Arrays are constants: the function does with them what it does with the
        variables that they are in calls with arrays alone."""
        made = [as_variable(v) if isinstance(v, np.ndarray) or is_foreign(v) else v for v in leaves]
        bound = self._bound(made, tree, static)
        return self._fn(*bound.args, **bound.kwargs)

    def _bound(self, values: list[Any], tree: _tree.Tree, static: tuple[tuple[int, Any], ...]) -> inspect.BoundArguments:
        """Arguments with other values in the places of those that `_flat` found, and beside them what is none."""
        rest, fixed = iter(values), {i: v.value if isinstance(v, _Static) else v for i, v in static}
        arguments = tree.build(iter([fixed[i] if i in fixed else next(rest) for i in range(len(values) + len(fixed))]))
        bound = self._signature.bind_partial()
        bound.arguments.update(arguments)
        return bound

    def _advise(self, error: RscanError, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Says an error of a call in the user's words; to one of shapes in a loop it adds what is said where the shapes are known while
        the function is traced."""
        error._rename(_words(self._flat(args, named)[1]))
        in_loop = any(note.startswith("in step ") for note in error.notes)
        if not (isinstance(error, ScanTypeError) or (in_loop and isinstance(error, ShapeError))):
            return
        leaves, tree, static, names = self._flat(args, named)
        arrays = _arrays(leaves, tree, names)
        inputs = [tensor(a.dtype.name, a.shape, n) for a, n in zip(arrays, names, strict=True)]
        try:
            self._result(inputs, arrays, tree, static)
        except RscanError as traced:
            error.helps += [help for help in traced.helps if help not in error.helps]
        except Exception:  # the function's own, of shapes that it did not expect to know: the first error is the one to report
            return

    def _order(self, args: tuple[Any, ...], named: dict[str, Any]) -> list[int] | None:
        """Per input of a variant the number of its leaf among those of the arguments; None where these are the inputs in order."""
        count = [0]
        bound = self._signature.bind(*[marked(v, count) for v in args], **{k: marked(v, count) for k, v in named.items()})
        leaves, _ = _tree.flatten(dict(bound.arguments), lambda v: isinstance(v, Marker))
        order = [v.at for v in leaves if isinstance(v, Marker)]
        return None if order == list(range(count[0])) else order

    def lower(self, *args: Any, **named: Any) -> Function:
        """The compiled function behind calls with such arguments; its inputs are the leaves of the arguments.

        errors: those of a call: `RscanTypeError` (E0508) for arguments that are no arrays.
        """
        leaves, tree, static, names = self._flat(args, named)
        return self._variant(_arrays(leaves, tree, names), tree, static, names)[0]

    def explain(self, *args: Any, **named: Any) -> Explanation:
        """What became of the loops in calls with such arguments; without arguments, of what was traced last. Loops are compiled at their
        first call.

        errors: those of a call: `RscanTypeError` (E0508) for arguments that are no arrays, or for none before the first call.
        """
        return self._behind("explain", args, named).explain()

    def text(self, *args: Any, optimised: bool = False, **named: Any) -> str:
        """The graph of calls with such arguments in text form: as it was written, or, optimised, as it runs; without arguments, of what was
        traced last.

        errors: those of `explain`.
        """
        return self._behind("text", args, named).text(optimised)

    def plan(self, *args: Any, **named: Any) -> str:
        """What runs in calls with such arguments, as text: `Function.plan`; without arguments, of what was traced last.

        errors: those of `explain`.
        """
        return self._behind("plan", args, named).plan()

    @property
    def profile(self) -> Profile | None:
        """Where the time of calls went, of what was traced last (`f.lower(…).profile` for other arguments); None where nobody asked."""
        return next(reversed(self._variants.values()))[0].profile if self._variants else None

    def _behind(self, what: str, args: tuple[Any, ...], named: dict[str, Any]) -> Function:
        """The compiled function that a method tells of."""
        if self._variants and not args and not named:
            return next(reversed(self._variants.values()))[0]
        try:
            return self.lower(*args, **named)
        except RscanTypeError as error:
            if not args and not named:
                shown = ", ".join(self._signature.parameters)
                error.helps.append(f"{what} wants the arguments of a call, .{what}({shown}), or that it was called before")
            raise

    def session(self, *args: Any, **named: Any) -> CompiledSession:
        """The function step by step (docs/sessions.md). The arguments are those of a call; of sequences, the rows that have come already,
        which may be none: `np.empty((0, 3))`.

        errors: those of a call: `RscanTypeError` (E0508) for what are no arrays; `UnsupportedError` (E0531) for what has no steps.
        """
        leaves, tree, static, names = self._flat(args, named)
        arrays = _arrays(leaves, tree, names)
        compiled, out = self._variant(arrays, tree, static, names)
        places, needed = compiled._native.stepwise()
        before = dict(places)
        given = {i: a for i, a in enumerate(arrays) if i in needed or (i in before and (before[i] or len(a)))}
        return CompiledSession(compiled, functools.partial(out.build, numbers=True), given)

    @property
    def n_variants(self) -> int:
        """How often the function was traced."""
        return len(self._variants)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def _repr_html_(self) -> str:
        from ._html import compiled

        return compiled(self)

    def __repr__(self) -> str:
        return f"<compiled {self._name}{self._signature}>"

    def _flat(self, args: Any, named: Any) -> tuple[list[Any], _tree.Tree, tuple[Any, ...], list[str]]:
        """Values, the structure of the arguments, what is not a value, and a name per value."""
        try:
            bound = self._signature.bind(*args, **named)
        except TypeError as error:
            labels, notes = [(here(), ""), (of_function(self._fn), "")], [f"its arguments are {', '.join(self._signature.parameters)}"]
            raise RscanTypeError(f"{self._name}(): {error}", code="E0508", labels=labels, notes=notes) from None
        given = {name: _Static(value) if name in self._static else value for name, value in bound.arguments.items()}
        leaves, tree = _tree.flatten(given, _is_leaf)
        names = _tree.paths(tree)
        static = tuple((i, v) for i, v in enumerate(leaves) if not _is_value(v))
        self._refuse_iterators(static, names)
        values = [(v, n) for v, n in zip(leaves, names, strict=True) if _is_value(v)]
        return [v for v, _ in values], tree, static, [n for _, n in values]

    def _refuse_iterators(self, static: tuple[tuple[int, Any], ...], names: list[str]) -> None:
        """What is no value is passed on as it is; an iterator would be used up by the call that traces the function."""
        for i, value in static:
            advice = what_to_do(value)
            if advice:
                text = f"argument `{names[i]}` of {self._name}() is {short(value)}"
                raise RscanTypeError(text, code="E0508", labels=[(here(), ""), (of_function(self._fn), "")], helps=advice)

    def _no_value(self, result: Any) -> RscanTypeError:
        """The error of a function that returns nothing that could be computed."""
        what, help = "None", "is its `return` missing?"
        if result is not None:
            what, help = "the updates of a loop", "rs.scan returns two things: outputs, updates = rs.scan(…)"
        labels = [(of_function(self._fn), "the function")]
        return RscanTypeError(f"{self._name}() returned {what}", code="E0508", labels=labels, helps=[help])

    def _result(self, inputs: list[Variable], arrays: list[np.ndarray], tree: _tree.Tree, static: tuple[tuple[int, Any], ...]) -> Any:
        """What the function gives for variables, in calls like that with these arrays. An exception in it says which arguments are None or
        tuples of numbers: they are passed on as they are."""
        bound = self._bound(inputs, tree, static)
        extents: dict[int, int] = {}
        for v, a in zip(inputs, arrays, strict=True):
            v._v.expect(a.shape, extents)
        try:
            with traced(extents):
                return self._fn(*bound.args, **bound.kwargs)
        except (TypeError, AttributeError, RscanError) as error:
            if isinstance(error, RscanError):
                error._rename(_words(tree))
            if not isinstance(error, (TypeError, AttributeError)):
                raise
            for note in self._misunderstood(tree, static):
                error.add_note(note)
            raise

    def _misunderstood(self, tree: _tree.Tree, static: tuple[tuple[int, Any], ...]) -> list[str]:
        """What may have been meant otherwise of the arguments."""
        names = _tree.paths(tree)
        notes = [
            f"argument `{names[i]}` of {self._name}() is None, which the function gets as it is: pass an array or a number"
            for i, value in static
            if value is None
        ]
        for name, part in zip(tree.keys, tree.children, strict=True):
            plain = part.cls is tuple and part.kind == "list" and all(child.kind is None for child in part.children)
            if plain and self._signature.parameters[name].kind is not inspect.Parameter.VAR_POSITIONAL:
                notes.append(f"argument `{name}` of {self._name}() is a tuple, which the function gets as one: np.array(…) makes an array")
        return notes

    def _variant(self, arrays: list[np.ndarray], tree: _tree.Tree, static: tuple[Any, ...], names: list[str]) -> tuple[Function, Results]:
        key = (tree, static, tuple((a.dtype.name, a.ndim) for a in arrays))
        try:
            found = self._variants.get(key)
        except TypeError:
            bad = next(v for _, v in static if not _hashable(v))
            text = f"{self._name}() got {type(bad).__name__}, which is neither a number, an array, nor a structure of these"
            if isinstance(bad, _Static):
                text = f"{self._name}() got {type(bad.value).__name__} for a static argument, which is hashable: a number, a text, a tuple"
            raise RscanTypeError(text, code="E0508", labels=[(here(), "")]) from None
        if found is None:
            with self._lock:
                found = self._variants.get(key) or self._trace(arrays, tree, static, names)
                self._variants[key] = found
        return found

    def _trace(self, arrays: list[np.ndarray], tree: _tree.Tree, static: tuple[Any, ...], names: list[str]) -> tuple[Function, Results]:
        inputs = [tensor(a.dtype.name, [None] * a.ndim, n) for a, n in zip(arrays, names, strict=True)]
        result = self._result(inputs, arrays, tree, static)
        if result is None or isinstance(result, OrderedUpdates):
            raise self._no_value(result)
        outputs, out = _tree.flatten(result, lambda v: isinstance(v, Variable))
        kept = {i: v for i, v in enumerate(outputs) if v is None or isinstance(v, str)}
        variables = [as_variable(v) for i, v in enumerate(outputs) if i not in kept]
        options = {"on_unused_input": "ignore", "device": self._device, "progress": self._progress, "profile": self._profile}
        options["fetch"] = self._fetch
        compiled = function(inputs, variables, name=self._name, **options)
        if getattr(self._fn, "__doc__", None):
            compiled._say(inspect.getdoc(self._fn), {})
        return compiled, Results(out, kept)


class _Static:
    """The value of a static argument. Numbers of different types are different values."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Static) and type(self.value) is type(other.value) and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash(self.value)


def _is_leaf(value: Any) -> bool:
    return isinstance(value, (Variable, np.ndarray, np.generic, str)) or _is_numbers(value) or is_foreign(value)


def _is_numbers(value: Any) -> bool:
    """True for lists of numbers, which count as arrays."""
    return isinstance(value, list) and bool(value) and all(is_weak(v) or isinstance(v, np.generic) or _is_numbers(v) for v in value)


def _is_value(value: Any) -> bool:
    return isinstance(value, (Variable, np.ndarray, np.generic)) or is_weak(value) or _is_numbers(value) or is_foreign(value)


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _words(tree: _tree.Tree) -> dict[str, str]:
    """How the user writes arguments that are items of dicts, by the names of inputs."""
    return {name: said for name, said in zip(_tree.paths(tree), _tree.written(tree), strict=True) if name != said}


def _arrays(leaves: list[Any], tree: _tree.Tree, names: list[str]) -> list[np.ndarray]:
    """Arguments as arrays."""
    try:
        return [_array(v, n) for v, n in zip(leaves, names, strict=True)]
    except RscanError as error:
        error._rename(_words(tree))
        raise


def _array(value: Any, name: str) -> np.ndarray:
    if is_weak(value):
        with contextlib.suppress(OverflowError):  # what NumPy makes of an integer of more than 63 bits, or an error
            return np.asarray(value, dtype=weak_dtype(value, None))
    if isinstance(value, DeviceArray):
        return value  # type: ignore[return-value]  # read where it lies
    try:
        array = as_array(value)
    except ValueError as error:
        raise no_array(f"argument `{name}` is no array", error, "E0508") from None
    if array.dtype.name not in DTYPES:
        text = f"argument `{name}` is an array of {array.dtype}"
        raise RscanTypeError(text, code="E0508", labels=[(here(), "")], helps=what_to_do(value, array))
    return array


def compile(
    fn: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    device: str | None = None,
    progress: Any = None,
    static: str | tuple[str, ...] = (),
    profile: bool | str = False,
    fetch: bool | None = None,
) -> Any:
    """Makes a function of arrays of a function of variables: `@rs.compile`.

    It is traced on the first call for each dtype and number of axes of its arguments. Results are NumPy arrays, or NumPy
    numbers where they have no axes, in the structure that the function returns. An argument that a call leaves out is the Python value that
    its default is. device, progress, profile, fetch: as `rs.function` takes
    them.
    static: the name of an argument, or several, that the function gets as they are, to use in `range(n)` or `if flag:`. For each value it
    is traced anew. What `rs.grad` and others make of the function has them, too.

    errors: calls raise `RscanTypeError` (E0508) for arguments that are no arrays, what tracing the function raises, and what calls of
    `rs.function` raise.

    >>> @rs.compile
    ... def poly(x, power=2):
    ...     return rs.sum(x**power)
    >>> poly([1.0, 2.0])
    np.float64(5.0)
    >>> poly([1.0, 2.0], power=3)
    np.float64(9.0)
    """
    if fn is None:
        return lambda f: compile(f, name=name, device=device, progress=progress, static=static, profile=profile, fetch=fetch)
    names = (static,) if isinstance(static, str) else tuple(static)
    if isinstance(fn, Compiled):
        same = device in (None, fn._device) and names in ((), fn._static) and profile in (False, fn._profile)
        if same and progress is None and fetch in (None, fn._fetch):
            return fn
        tells = fn._progress if progress is None else progress
        kept = _checked(names or fn._static, fn._fn)
        stays = fn._fetch if fetch is None else fetch
        return type(fn)(fn._fn, name or fn._name, device or fn._device, tells, kept, profile or fn._profile, stays)
    if not callable(fn):
        raise RscanTypeError(f"compile takes a function, not {fn!r}", code="E0508", labels=[(here(), "")])
    return Compiled(fn, name, device, progress, _checked(names, fn), profile, fetch is not False)


def _checked(static: tuple[Any, ...], fn: Callable[..., Any]) -> tuple[str, ...]:
    """Names of arguments."""
    own = inspect.signature(fn).parameters
    wrong = next((name for name in static if name not in own), None)
    if wrong is not None:
        notes = [f"its arguments are {', '.join(own)}"]
        raise RscanTypeError(f"the function has no argument {wrong!r} to be static", code="E0508", labels=[(here(), "")], notes=notes)
    return static
