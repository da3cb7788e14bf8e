"""Compiled functions: `f = rs.function([x, y], z)`, then `f(1.0, y=2.0)`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from . import _native
from ._pickle import from_text, leaves_of, to_text
from ._spans import here
from ._tracing import travelling_updates, wants_profile
from .config import config
from .errors import RscanTypeError, RscanValueError, UnsupportedError, UnusedInputError
from .profile import Profile
from .shared import SharedVariable
from .variable import DTYPES, Variable, as_variable, is_weak, wrap


class _MISSING:
    """Stands for no value; a class, so that pickle keeps it itself."""


class In:
    """An input with a default value, or a name of its own for keyword arguments."""

    def __init__(
        self,
        variable: Variable,
        name: str | None = None,
        value: Any = _MISSING,
        update: Any = None,
        mutable: bool = False,
        borrow: bool | None = None,
        strict: bool = False,
        allow_downcast: bool | None = None,
    ) -> None:
        if not isinstance(variable, Variable):
            raise RscanTypeError(f"In takes a variable, got {variable!r}", code="E0809", labels=[(here(), "")])
        if update is not None:
            raise UnsupportedError(
                "an input has no update",
                code="E0813",
                labels=[(here(), "")],
                helps=["keep the value in rs.shared(…) and update that"],
            )
        self.variable, self.name, self.strict = variable, name or variable.name, strict
        self.value = _MISSING if value is None else value
        self.allow_downcast = allow_downcast

    def default(self) -> Any:
        """The value where the caller gives none."""
        return self.value.get_value() if isinstance(self.value, SharedVariable) else self.value

    def describe(self) -> str:
        """How to call it in a message."""
        return f"input `{self.name}`" if self.name else f"input {self.variable!r}"


class Out:
    """An output. `borrow` has no effect: results are the caller's own."""

    def __init__(self, variable: Variable, borrow: bool = False) -> None:
        self.variable, self.borrow = variable, borrow


def function(
    inputs: Any,
    outputs: Any = None,
    *,
    updates: Any = None,
    givens: Any = None,
    name: str | None = None,
    on_unused_input: str = "raise",
    allow_input_downcast: bool | None = None,
    no_default_updates: Any = False,
    profile: bool | str = False,
) -> Function:
    """Compiles expressions of inputs.

    outputs: a variable (the function returns an array), a list (a list), a dict (a dict) or None (an empty list).
    updates: a dict or pairs of shared variables and their values after each call, computed from the values before it.
    givens: a dict or pairs of variables and what replaces them.
    on_unused_input: 'raise', 'warn' or 'ignore' an input that nothing depends on.
    allow_input_downcast: True lets arguments lose precision on the way to their input's dtype.
    no_default_updates: True, or a list of shared variables, whose `default_update` is left out.
    profile: True or a name: `f.profile` tells where the time of the calls went, per loop and operation.
    """
    return Function(inputs, outputs, updates, givens, name, on_unused_input, allow_input_downcast, no_default_updates, profile)


class Function:
    """A compiled function. Calls may come from many threads."""

    _profile_class = Profile

    def __init__(
        self,
        inputs: Any,
        outputs: Any,
        updates: Any,
        givens: Any,
        name: str | None,
        on_unused_input: str,
        allow_input_downcast: bool | None,
        no_default_updates: Any,
        profile: Any = False,
    ) -> None:
        self.name = name
        self.inputs = [item if isinstance(item, In) else In(_input(item)) for item in _listed(inputs)]
        self._single, self._keys, self.outputs = _structure(outputs)
        self._allow_downcast = allow_input_downcast
        given = _pairs(givens, "givens")
        replaced = [(old, _matching(new, old)) for old, new in given]
        explicit = [(shared, _matching(value, shared)) for shared, value in _pairs(updates, "updates")]
        inner = [slot.variable for slot in self.inputs]
        self.updates = _with_defaults(explicit, self.outputs, inner, replaced, no_default_updates)
        self._givens = replaced
        self._compile()
        wanted = profile or wants_profile([*self.outputs, *(value for _, value in self.updates)])
        #: Where the time of the calls went; None where nobody asked.
        self.profile = self._profile_class(profile if isinstance(profile, str) else name) if wanted else None
        self._check_unused(on_unused_input)
        self._names = {slot.name: i for i, slot in enumerate(self.inputs) if slot.name}

    def _compile(self) -> None:
        self._native = _native.Function(
            [slot.variable._v for slot in self.inputs],
            [v._v for v in self.outputs],
            [(shared._v, value._v) for shared, value in self.updates],
            [(old._v, new._v) for old, new in self._givens],
            self.name,
        )

    def __getstate__(self) -> dict[str, Any]:
        """Expressions travel as one text over inputs, replaced and shared variables."""
        values = [*self.outputs, *(value for _, value in self.updates), *(new for _, new in self._givens)]
        leaves = leaves_of(values, [*(slot.variable for slot in self.inputs), *(old for old, _ in self._givens)])
        family = next((v._family for v in values), Variable)
        state = {key: value for key, value in self.__dict__.items() if key not in ("_native", "outputs")}
        state["updates"] = [shared for shared, _ in self.updates]
        state["_givens"] = [old for old, _ in self._givens]
        return {**state, "_program": (to_text(values, leaves), leaves, family)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        values = from_text(*state.pop("_program"))
        self.__dict__.update(state)
        shared, replaced = state["updates"], state["_givens"]
        n = len(values) - len(replaced)
        m = n - len(shared)
        self.outputs = values[:m]
        self.updates = list(zip(shared, values[m:n], strict=True))
        self._givens = list(zip(replaced, values[n:], strict=True))
        self._compile()

    def __call__(self, *args: Any, **named: Any) -> Any:
        """The outputs for these arguments, given in order or by name."""
        if named or not self._native.fits(*args):
            args = self._arguments(args, named)
        if self.profile is None:
            results = self._native(*args)
        else:
            results, rows = self._native.profiled(*args)
            self.profile.add(rows)
        if self._single:
            return results[0]
        return results if self._keys is None else dict(zip(self._keys, results, strict=True))

    def __repr__(self) -> str:
        inputs = ", ".join(slot.name or "?" for slot in self.inputs)
        return f"<rscan function {self.name or ''}({inputs})>"

    def text(self) -> str:
        """The graph in text form."""
        return self._native.text()

    @property
    def shared(self) -> list[Variable]:
        """The shared variables that it reads."""
        return [wrap(s.var) for s in self._native.shared]

    def get_shared(self) -> list[Variable]:
        """The shared variables that it reads."""
        return self.shared

    def _check_unused(self, action: str) -> None:
        if action not in ("raise", "warn", "ignore"):
            raise RscanValueError(f"on_unused_input is 'raise', 'warn' or 'ignore', not {action!r}", code="E0809", labels=[(here(), "")])
        unused = [] if action == "ignore" else self._native.unused_inputs
        if not unused:
            return
        slot = self.inputs[unused[0]]
        error = UnusedInputError(
            f"nothing depends on {slot.describe()}",
            code="E0507",
            labels=[(here(), ""), (slot.variable._v.span, "the input is made here")],
            helps=["leave it away, or pass on_unused_input='ignore'"],
        )
        if action == "raise":
            raise error
        import warnings

        warnings.warn(str(error), stacklevel=5)

    def _arguments(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[np.ndarray, ...]:
        """The arguments in order, each an array of its input's dtype."""
        if len(args) > len(self.inputs):
            raise self._bad_call(f"takes {len(self.inputs)} arguments, got {len(args)}")
        values = list(args) + [_MISSING] * (len(self.inputs) - len(args))
        for name, value in named.items():
            i = self._names.get(name)
            if i is None:
                raise self._bad_call(f"has no input named `{name}`")
            if i < len(args):
                raise self._bad_call(f"got `{name}` twice")
            values[i] = value
        return tuple(self._argument(slot, value) for slot, value in zip(self.inputs, values, strict=True))

    def _bad_call(self, text: str) -> RscanTypeError:
        names = [slot.name or "?" for slot in self.inputs]
        return RscanTypeError(
            f"the function {self.name or ''} {text}".replace("  ", " "),
            code="E0508",
            labels=[(here(), "")],
            notes=[f"its inputs are ({', '.join(names)})"],
        )

    def _argument(self, slot: In, value: Any) -> np.ndarray:
        if value is _MISSING:
            value = slot.default()
            if value is _MISSING:
                raise self._bad_call(f"needs {slot.describe()}")
        allow = self._allow_downcast if slot.allow_downcast is None else slot.allow_downcast
        return convert(value, slot, allow)


def convert(value: Any, slot: In, allow_downcast: bool | None = None) -> np.ndarray:
    """An argument as an array of its input's dtype and shape.

    Arrays are converted where no value of their dtype can be lost; numbers, lists and ranges where theirs survive.
    """
    variable = slot.variable
    if isinstance(value, Variable):
        raise _unfit(slot, f"got a variable, {value!r}", "arguments are numbers; `givens` replaces variables by variables")
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise _unfit(slot, f"got what is no array: {error}") from None
    if array.dtype.name not in DTYPES and array.dtype.kind not in "f":
        raise _unfit(slot, f"got {_kind_of(value, array)}")
    if array.dtype != variable.dtype:
        array = _converted(value, array, slot, allow_downcast)
    static = variable.static_shape
    if array.ndim != len(static):
        raise _unfit(slot, f"got an array of {array.ndim} axes, of shape {array.shape}", _rank_help(array, len(static)))
    if any(n is not None and n != m for n, m in zip(static, array.shape, strict=True)):
        raise _unfit(slot, f"got an array of shape {array.shape}")
    return array


def _converted(value: Any, array: np.ndarray, slot: In, allow_downcast: bool | None) -> np.ndarray:
    dtype = slot.variable.dtype
    if slot.strict:
        raise _unfit(slot, f"got {array.dtype}, and the input is strict")
    if np.can_cast(array.dtype, dtype, "safe") or allow_downcast:
        with np.errstate(all="ignore"):
            return array.astype(dtype)
    if hasattr(value, "dtype") and np.ndim(value):
        raise _unfit(slot, f"got an array of {array.dtype}", f'pass array.astype("{dtype}"), or allow_input_downcast=True')
    with np.errstate(all="ignore"):
        cast = array.astype(dtype)
        lossless = bool(np.all((cast == array) | ((cast != cast) & (array != array))))
    weak = allow_downcast is None and config.floatX == dtype == "float32" and array.dtype == "float64"
    if not (lossless or weak):
        text = np.array2string(array, threshold=6)
        raise _unfit(slot, f"got {text}, which {dtype} cannot hold exactly", "allow_input_downcast=True rounds")
    return cast


def _kind_of(value: Any, array: np.ndarray) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {array.dtype}"
    return repr(value) if len(repr(value)) < 60 else f"a {type(value).__name__}"


def _rank_help(array: np.ndarray, rank: int) -> str | None:
    return f"add axes: array[{', '.join(['None'] * (rank - array.ndim))}]" if array.ndim < rank else None


def _unfit(slot: In, text: str, help: str | None = None) -> RscanTypeError:
    v = slot.variable
    wanted = f"{v.dtype}[{', '.join('?' if n is None else str(n) for n in v.static_shape)}]" if v.ndim else f"a {v.dtype} scalar"
    return RscanTypeError(
        f"{slot.describe()} takes {wanted}, {text}",
        code="E0504",
        labels=[(here(), "called here"), (v._v.span, "the input is made here")],
        helps=[help] if help else (),
    )


# What a function is made of.


def _listed(inputs: Any) -> list[Any]:
    if inputs is None:
        return []
    return list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]


def _input(item: Any) -> Variable:
    if isinstance(item, SharedVariable):
        raise RscanTypeError(
            f"{item!r} is shared and cannot be an input",
            code="E0809",
            labels=[(here(), ""), (item._v.span, "made here")],
            helps=["functions read shared variables by themselves; `givens` replaces one"],
        )
    if not isinstance(item, Variable):
        raise RscanTypeError(f"an input is a variable, not {item!r}", code="E0809", labels=[(here(), "")])
    if item._v.kind == "const":
        raise RscanTypeError(f"the constant {item!r} cannot be an input", code="E0809", labels=[(here(), "")])
    return item


def _structure(outputs: Any) -> tuple[bool, list[Any] | None, list[Variable]]:
    """Whether there is one output alone, the keys of a dict, and the outputs."""
    if outputs is None:
        return False, None, []
    if isinstance(outputs, Mapping):
        return False, list(outputs), [_output(v) for v in outputs.values()]
    if isinstance(outputs, (list, tuple)):
        return False, None, [_output(v) for v in outputs]
    return True, None, [_output(outputs)]


def _output(item: Any) -> Variable:
    return as_variable(item.variable if isinstance(item, Out) else item)


def _pairs(items: Any, what: str) -> list[tuple[Variable, Any]]:
    if items is None:
        return []
    pairs = list(items.items() if isinstance(items, Mapping) else items)
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not isinstance(pair[0], Variable):
            raise RscanTypeError(
                f"{what} is a dict or a list of pairs that begin with a variable, got {pair!r}",
                code="E0809",
                labels=[(here(), "")],
            )
    return [tuple(pair) for pair in pairs]


def _matching(value: Any, like: Variable) -> Variable:
    """A new value of a variable, in the variable's dtype where nothing is lost."""
    if is_weak(value):
        return as_variable(value, like.dtype if not isinstance(value, float) or like.dtype[0] == "f" else None, like._family)
    v = as_variable(value, family=like._family)
    return as_variable(v, like.dtype) if v.dtype != like.dtype and np.can_cast(v.dtype, like.dtype, "safe") else v


def leaves(variables: Iterable[Variable], stop: Iterable[Variable] = ()) -> list[Variable]:
    """Inputs, constants and shared variables that the variables depend on, not looking behind `stop`."""
    variables = list(variables)
    family = next((v._family for v in variables), Variable)
    return [wrap(v, family) for v in _native.leaves([v._v for v in variables], [v._v for v in stop])]


def _with_defaults(
    updates: list[tuple[Variable, Variable]],
    outputs: list[Variable],
    inputs: list[Variable],
    givens: list[tuple[Variable, Variable]],
    no_default_updates: Any,
) -> list[tuple[Variable, Variable]]:
    """The updates, and those that shared variables bring along."""
    if no_default_updates is True:
        return updates
    left_out = set(no_default_updates or ())
    updates = [
        *updates,
        *travelling_updates([*outputs, *(value for _, value in updates)], {shared for shared, _ in updates}),
    ]
    found = {shared for shared, _ in updates}
    stop = [*inputs, *(old for old, _ in givens)]
    fresh = [*outputs, *(value for _, value in updates), *(new for _, new in givens)]
    while fresh:
        seen = [v for v in leaves(fresh, stop) if isinstance(v, SharedVariable) and v not in found and v not in left_out]
        added = [(v, _matching(v.default_update, v)) for v in dict.fromkeys(seen) if v.default_update is not None]
        found.update(v for v, _ in added)
        updates += added
        fresh = [value for _, value in added]
    return updates


# Values without a function.


def evaluate(outputs: Any, inputs: Mapping[Any, Any] | None = None) -> Any:
    """The values of variables (one, a list or a dict), given those of the inputs, by variable or name."""
    given = dict(inputs or {})
    _, _, flat = _structure(outputs)
    by_name = {v.name: v for v in leaves(flat, [k for k in given if isinstance(k, Variable)]) if v.name and v._v.kind == "input"}
    variables = [key if isinstance(key, Variable) else by_name.get(key) for key in given]
    if None in variables:
        unknown = list(given)[variables.index(None)]
        raise RscanValueError(f"nothing depends on an input named {unknown!r}", code="E0508", labels=[(here(), "")])
    compiled = function(variables, outputs, on_unused_input="ignore", no_default_updates=True)
    return compiled(*given.values())
