"""Compiled functions: `f = rs.function([x, y], z)`, then `f(1.0, y=2.0)`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from . import _native, _tree
from ._calling import RESULT, Bound, Caller, In
from ._pickle import from_text, leaves_of, to_text
from ._progress import teller
from ._redirect import part
from ._spans import here
from ._tracing import travelling_updates, wants_profile
from .config import chosen_passes, config
from .errors import MissingInputError, RscanTypeError, RscanValueError, UnsupportedError, UnusedInputError
from .profile import Profile
from .session import Session
from .shared import SharedVariable
from .updates import OrderedUpdates
from .variable import Variable, as_variable, is_weak, wrap

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # with a default: `Function` alone is a type, too

    from .explain import Explanation

    R = TypeVar("R", default=Any)
else:
    from typing import TypeVar

    R = TypeVar("R")


class Out:
    """An output. `borrow` has no effect: results are the caller's own.

    >>> x = rs.dscalar("x")
    >>> f = rs.function([x], rs.Out(x + 1))
    >>> f(1.0)
    array(2.)
    """

    variable: Variable
    borrow: bool

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
    excluding: Iterable[str] = (),
    device: str | None = None,
    progress: Any = None,
    fetch: bool = True,
) -> Function[Any]:
    """Compiles expressions of inputs.

    outputs: a variable (the function returns an array), a list or a tuple (a list), a dict (a dict) or None (an empty list); or a structure
        of dataclasses, named tuples, dicts, lists and tuples in each other (the same structure of arrays).
    updates: a dict or pairs of shared variables and their values after each call, computed from the values before it.
    givens: a dict or pairs of variables and what replaces them.
    on_unused_input: 'raise', 'warn' or 'ignore' an input that nothing depends on.
    allow_input_downcast: True lets arguments lose precision on the way to their input's dtype.
    no_default_updates: True, or a list of shared variables, whose `default_update` is left out.
    profile: True or a name: `f.profile` tells where the time of the calls went, per loop and operation.
    excluding: names of passes that do not run, ours or Theano's, besides those of `rs.config.excluding`.
    device: where it runs: 'cpu', 'cuda' (the first card of NVIDIA's), 'wgpu' (the first adapter of Vulkan), 'wgpu:1', as `rs.devices()`
    lists them; else `rs.config.device`.
    fetch: False leaves results on the device that it runs on, as `rs.DeviceArray`; arguments may be such arrays in any case.
    progress: True for a bar on stderr while calls take long, or a callable: `progress(done, steps, seconds)` is called ten times a
    second at most, with the steps of the outermost loop that runs and how many there are (None: nobody knows), then its `close()`.

    errors: `MissingInputError` (E0501), `UnusedInputError` (E0507) and `RscanTypeError` (E0508) of inputs and outputs; `RscanValueError`
    (E0809) for `fetch=False` on the processor; calls raise
    `RscanTypeError` (E0504) for arguments that do not fit, and what the program finds: `ShapeError`, `RscanIndexError`, `LinAlgError`.

    >>> x, y = rs.dscalars("x y")
    >>> f = rs.function([x, y], {"sum": x + y, "product": x * y})
    >>> f(2.0, y=3.0)
    {'sum': array(5.), 'product': array(6.)}
    >>> try:
    ...     f("two", 3.0)
    ... except TypeError as error:
    ...     print(error.code)
    E0504
    """
    passes, device = chosen_passes(excluding), device or config.device
    if not fetch and device == "cpu":
        raise RscanValueError(
            "fetch=False leaves results on a device, and this function runs on the processor",
            code="E0809",
            labels=[(here(), "")],
            helps=["device= names one of those that rs.devices() lists"],
        )
    args = (inputs, outputs, updates, givens, name, on_unused_input, allow_input_downcast, no_default_updates, profile, passes)
    if isinstance(outputs, (Variable, Out)):
        return Function(*args, device, progress, fetch)
    from ._structured import Structured, is_structure

    return (Structured if is_structure(outputs) else Function)(*args, device, progress, fetch)


class Function(Caller, Generic[R]):
    """A compiled function. Calls may come from many threads.

    Arguments that are arrays of their input's dtype in C order are read where they lie; all others are converted first. Results
    are the caller's own. `f(…, out=array)` (a list or a dict of arrays where the function returns one) writes the results there.

    errors: calls raise `RscanTypeError` (E0504) for arguments that do not fit, (E0508) for missing or unknown ones, and what the program
    finds.

    >>> x = rs.dvector("x")
    >>> f = rs.function([x], x * 2, name="double")
    >>> f([1.0, 2.0])
    array([2., 4.])
    >>> f.name
    'double'
    """

    inputs: list[In]
    outputs: list[Variable]
    updates: list[tuple[Variable, Variable]]
    profile: Profile | None

    _profile_class = Profile
    #: False where every call goes through `_call`.
    _quick = True
    #: Accepted, and without effect: arguments that fit are never converted, and looking at them takes no time.
    trust_input = False
    _progress: Any = None

    if TYPE_CHECKING:

        def __call__(self, *args: Any, **named: Any) -> R: ...

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
        passes: tuple[str, list[str]] | None = None,
        device: str | None = None,
        progress: Any = None,
        fetch: bool = True,
    ) -> None:
        self.name = name
        self._progress = teller(progress)
        self._passes = passes
        self._device = None if device == "cpu" else device
        self._fetch = fetch
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
        self._complete()

    def _complete(self) -> None:
        self._describe()
        if self.profile is not None:
            self.profile.measures(self._native)
        strict = [slot.strict for slot in self.inputs]
        self._install(self._native, *self._form, self._free_names(), strict, self.profile, self._quick)

    @property
    def _form(self) -> tuple[bool, list[Any] | None]:
        """Whether a call gives one result alone, and the keys of the dict that it gives."""
        return self._single, self._keys

    def _described(self) -> list[str]:
        """The names of what docs can speak of: arguments and results."""
        results = self._keys if self._keys is not None else [v.name or RESULT for v in self.outputs]
        return list(dict.fromkeys([*(slot.name for slot in self.inputs if slot.name), *(str(name) for name in results)]))

    def _compile(self) -> None:
        try:
            self._translate()
        except MissingInputError as error:
            if re.search(r"`[^`]*\[t[^`]*\]`", error.title):
                error.helps = ["it is a value of a loop's step, and leaves the loop by being returned from the step"]
            raise

    def _translate(self) -> None:
        self._native = _native.Function(
            [slot.variable._v for slot in self.inputs],
            [v._v for v in self.outputs],
            [(shared._v, value._v) for shared, value in self.updates],
            [(old._v, new._v) for old, new in self._givens],
            self.name,
            self._passes,
            self._device,
            self._fetch,
        )
        if self._progress is not None:
            self._native.set_progress(self._progress)

    def __getstate__(self) -> dict[str, Any]:
        """Expressions travel as one text over inputs, replaced and shared variables."""
        values = [*self.outputs, *(value for _, value in self.updates), *(new for _, new in self._givens)]
        leaves = leaves_of(values, [*(slot.variable for slot in self.inputs), *(old for old, _ in self._givens)])
        family = next((v._family for v in values), Variable)
        state = {key: value for key, value in self.__dict__.items() if key not in ("_native", "outputs", "_progress")}
        state["updates"] = [shared for shared, _ in self.updates]
        state["_givens"] = [old for old, _ in self._givens]
        return {**state, "_program": (to_text(values, leaves), leaves, family, _native.__version__)}

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
        self._complete()

    def bind(self, *args: Any, **named: Any) -> Bound:
        """The function with some arguments fixed: the first ones, and those with these names. They are copied and converted once.

        errors: `RscanTypeError` (E0504) for arguments that do not fit, (E0508) for unknown ones.
        """
        if not self._quick:
            raise UnsupportedError("an input with an update cannot be fixed", code="E0813", labels=[(here(), "")])
        return Bound(self, self._fixed_by(args, named))

    def session(self, *args: Any, **named: Any) -> Session:
        """The function step by step: its sequences come row by row, the states of its loops are kept in between (docs/sessions.md).

        Given are the inputs that are no sequences, in order or by name. Of a sequence with taps the rows before the first step are given,
        too; further rows of sequences are steps made at once.

        errors: `UnsupportedError` (E0531) for what has no steps; `RscanValueError` (E0532) for inputs that are missing.
        """
        if not self._quick:
            raise UnsupportedError("a function with an input that has an update has no sessions", code="E0813", labels=[(here(), "")])
        return Session(self, args, named)

    def __repr__(self) -> str:
        inputs = ", ".join(slot.name or "?" for slot in self.inputs)
        return f"<rscan function {self.name or ''}({inputs})>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it to a file, under its name or else as `f`, as `rs.save` does.

        errors: those of `save`: `RscanTypeError` (E0809) for what is no path, `FileError` (E0921) where it cannot be written.
        """
        from .saving import save

        save(path, {self.name or "f": self})

    def text(self, optimised: bool = False) -> str:
        """The graph in text form: as it was written, or, optimised, as it runs."""
        return self._native.text(optimised)

    def plan(self) -> str:
        """What runs, as text: the optimised graph, and below each loop and each group of operations what was made of it for the types of
        the last calls: kernels, instruction by instruction, or a list of parts with the memory of each (docs/inside.md).

        Loops are compiled at their first call: before that it says nothing of them.
        """
        return self._native.plan()

    def explain(self) -> Explanation:
        """What became of its loops: engine, rows kept, and why not better. Loops are compiled at their first call."""
        found: Explanation = part("explain").explain(self._native, self.name)
        return found

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
    if isinstance(outputs, OrderedUpdates) or (isinstance(outputs, tuple) and any(isinstance(v, OrderedUpdates) for v in outputs)):
        raise RscanTypeError(
            "the outputs of a function are variables, not the updates of a loop",
            code="E0508",
            labels=[(here(), "")],
            helps=["rs.scan returns two things: outputs, updates = rs.scan(…), and rs.function(…, outputs, updates=updates)"],
        )
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
    """The values of variables (one, a list, a dict or a structure), given those of the inputs, by variable or name.

    errors: those of `function`, and of its call.

    >>> x = rs.dscalar("x")
    >>> rs.eval(x**2, {x: 3.0})
    array(9.)
    >>> rs.eval({"double": 2 * x}, {"x": 3.0})
    {'double': array(6.)}
    """
    given = dict(inputs or {})
    flat = [_output(v) for v in _tree.flatten(outputs, lambda v: isinstance(v, (Variable, Out)))[0] if isinstance(v, (Variable, Out))]
    by_name = {v.name: v for v in leaves(flat, [k for k in given if isinstance(k, Variable)]) if v.name and v._v.kind == "input"}
    variables = [key if isinstance(key, Variable) else by_name.get(key) for key in given]
    unknown = next((key for key, variable in zip(given, variables, strict=True) if variable is None), None)
    if unknown is not None:
        raise RscanValueError(f"nothing depends on an input named {unknown!r}", code="E0508", labels=[(here(), "")])
    compiled = function(variables, outputs, on_unused_input="ignore", no_default_updates=True)
    return compiled(*given.values())
