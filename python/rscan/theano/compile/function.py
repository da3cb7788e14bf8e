"""`theano.function` and what it returns."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..._spans import here
from ...errors import MissingInputError, RscanTypeError, RscanValueError, UnusedInputError
from ...function import Function as BaseFunction
from ...function import In as BaseIn
from ...function import Out as BaseOut
from ...function import _input
from ...function import leaves as leaves_of
from ...shared import SharedVariable
from ...variable import Variable, wrap
from ..inconsistent import check_consistent
from ..variable import TensorVariable, as_tensor_variable
from .mode import get_mode
from .profiling import ProfileStats


class In(BaseIn):
    """An input with a name, a value for calls that give none, or an update of that value."""

    update: Any | None
    borrow: bool | None
    mutable: bool | None

    def __init__(
        self,
        variable: Any,
        name: str | None = None,
        value: Any = None,
        update: Any = None,
        mutable: bool | None = None,
        strict: bool = False,
        allow_downcast: bool | None = None,
        autoname: bool = True,
        implicit: Any = None,
        borrow: bool | None = None,
        shared: bool = False,
    ) -> None:
        if update is not None and value is None:
            raise RscanValueError("an input with an update needs a value to start from", code="E0809", labels=[(here(), "")])
        super().__init__(variable, name, value, None, bool(mutable), borrow, strict, allow_downcast)
        self.update = None if update is None else as_tensor_variable(update)
        self.borrow, self.mutable = borrow, mutable

    def default(self) -> Any:
        """The value where the caller gives none."""
        return copy.copy(super().default()) if self.update is not None else super().default()


class Out(BaseOut):
    """An output."""


Param = SymbolicInput = In
SymbolicOutput = Out


def function(
    inputs: Any,
    outputs: Any = None,
    mode: Any = None,
    updates: Any = None,
    givens: Any = None,
    no_default_updates: Any = False,
    accept_inplace: bool = False,
    name: str | None = None,
    rebuild_strict: bool = True,
    allow_input_downcast: bool | None = None,
    profile: Any = None,
    on_unused_input: str | None = None,
    trust_input: bool = False,
) -> Function:
    """Compiles expressions of inputs."""
    from ..config import config

    passes = get_mode(mode).passes()
    if isinstance(inputs, Variable) or not isinstance(inputs, (list, tuple)):
        raise RscanTypeError("the inputs of a function are a list of variables", code="E0809", labels=[(here(), "")])
    slots = [_slot(item) for item in inputs]
    seen = [slot.variable for slot in slots]
    if len(set(seen)) < len(seen):
        raise RscanValueError("a variable occurs twice among the inputs", code="E0502", labels=[(here(), "")])
    spec = _Spec(slots, outputs, _pairs(updates, "updates"), _pairs(givens, "givens"), name, no_default_updates, allow_input_downcast)
    spec.passes = passes
    return Function(spec, on_unused_input or config.on_unused_input, profile, trust_input)


def _slot(item: Any) -> BaseIn:
    if isinstance(item, BaseIn):
        return item
    if isinstance(item, (list, tuple)) and len(item) == 2 and isinstance(item[0], Variable):
        return In(item[0], value=item[1])
    if not isinstance(item, Variable):
        raise RscanTypeError(f"an input is a variable, not {item!r}", code="E0809", labels=[(here(), "")])
    return In(_input(item))


def _pairs(items: Any, what: str) -> list[tuple[Variable, Variable]]:
    if items is None:
        return []
    if isinstance(items, tuple) and len(items) == 2 and isinstance(items[0], Variable):
        items = [items]
    pairs = list(items.items() if isinstance(items, Mapping) else items)
    out: list[tuple[Variable, Variable]] = []
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not isinstance(pair[0], Variable):
            raise RscanTypeError(
                f"{what} is a dict or a list of pairs that begin with a variable, got {pair!r}", code="E0809", labels=[(here(), "")]
            )
        key, value = pair
        if what == "updates" and not isinstance(key, SharedVariable):
            raise RscanTypeError(f"{key} is updated, but it is not a shared variable", code="E0115", labels=[(here(), "")])
        if any(key._v == other._v for other, _ in out):
            raise RscanValueError(f"{what} has {key} twice", code="E0126", labels=[(here(), "")])
        out.append((key, _fitting(value, key)))
    return out


def _fitting(value: Any, like: Variable) -> Variable:
    """A new value of a variable, which must have its dtype or one that it holds, and its number of axes."""
    v = as_tensor_variable(value)
    if v.ndim != like.ndim:
        raise RscanTypeError(f"{like} has {like.ndim} axes, what replaces it {v.ndim}", code="E0505", labels=[(here(), "")])
    if v.dtype != like.dtype:
        if not np.can_cast(v.dtype, like.dtype, "safe"):
            raise RscanTypeError(
                f"{like} is {like.dtype}, what replaces it {v.dtype}", code="E0505", labels=[(here(), ""), (like._v.span, "made here")]
            )
        v = v.astype(like.dtype)
    return v


class _Spec:
    """What a function is made of."""

    slots: Any
    outputs: Any
    updates: Any
    givens: Any
    name: Any
    no_default_updates: Any
    downcast: Any

    def __init__(self, slots: Any, outputs: Any, updates: Any, givens: Any, name: Any, no_default_updates: Any, downcast: Any) -> None:
        self.slots, self.outputs, self.updates, self.givens, self.name = slots, outputs, updates, givens, name
        self.no_default_updates, self.downcast = no_default_updates, downcast
        self.passes: tuple[str, list[str]] | None = None


def _as_output(item: Any) -> Any:
    return as_tensor_variable(item.variable if isinstance(item, BaseOut) else item)


def _converted(outputs: Any) -> Any:
    if outputs is None:
        return None
    if isinstance(outputs, Mapping):
        return {key: _as_output(v) for key, v in outputs.items()}
    if isinstance(outputs, (list, tuple)):
        return [_as_output(v) for v in outputs]
    return _as_output(outputs)


class Function(BaseFunction):
    """A compiled function."""

    trust_input: bool

    _profile_class = ProfileStats

    def __init__(self, spec: _Spec, on_unused_input: str, profile: Any, trust_input: bool) -> None:
        self._spec, self.trust_input = spec, trust_input
        outputs = _converted(spec.outputs)
        self._stateful = [i for i, slot in enumerate(spec.slots) if getattr(slot, "update", None) is not None]
        news = [spec.slots[i].update for i in self._stateful]
        self._extra = None
        self._quick = not news
        action = "ignore" if news else on_unused_input
        given = (spec.slots, outputs, spec.updates, spec.givens, spec.name, action, spec.downcast, spec.no_default_updates)
        super().__init__(*given, profile, spec.passes)
        check_consistent([*self.outputs, *(value for _, value in self.updates)])
        if news:
            self._extra = BaseFunction(spec.slots, news, None, spec.givens, None, "ignore", spec.downcast, True, False, spec.passes)

    def _call(self, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """A call whose arguments have to be converted, or have names, or whose inputs have updates."""
        subset = named.pop("output_subset", None)
        if self._extra is None:
            out = super()._call(args, named)
        else:
            values = self._arguments(args, named)
            news = self._extra(*values)
            out = self._run(values)
            for i, new in zip(self._stateful, news, strict=True):
                self.inputs[i].value = new
        return out if subset is None else [out[i] for i in subset]

    def copy(
        self, share_memory: bool = False, swap: Any = None, delete_updates: bool = False, name: str | None = None, profile: Any = None
    ) -> Function:
        """The same function, or one on other shared variables."""
        spec = copy.copy(self._spec)
        spec.name = name or spec.name
        if delete_updates:
            spec.updates = []
        if swap:
            from ..graph_tools import replaced

            spec.outputs = replaced(spec.outputs, swap)
            spec.updates = [(swap.get(k, k), replaced(v, swap)) for k, v in spec.updates]
        return Function(spec, "ignore", profile, self.trust_input)

    def __copy__(self) -> Function:
        return self.copy()

    def __getitem__(self, item: Any) -> Any:
        """The value of an input or shared variable, by variable or name."""
        return self._place(item).value if not isinstance(self._place(item), SharedVariable) else self._place(item).get_value()

    def __setitem__(self, item: Any, value: Any) -> None:
        place = self._place(item)
        if isinstance(place, SharedVariable):
            place.set_value(value)
        else:
            place.value = value

    def _place(self, item: Any) -> Any:
        for slot in self.inputs:
            if slot.variable is item or (isinstance(item, str) and slot.name == item):
                return slot
        for v in self.shared:
            if (isinstance(item, Variable) and v._v == item._v) or (isinstance(item, str) and v.name == item):
                return v
        raise KeyError(item)

    @property
    def value(self) -> Function:
        """The function itself."""
        return self

    container = value

    @property
    def shared(self) -> list[Variable]:
        """The shared variables that it reads or updates."""
        read = [wrap(s.var, TensorVariable) for s in self._native.shared]
        return read + [v for v, _ in self.updates if v not in read]

    @property
    def maker(self) -> Any:
        """The graph: `maker.fgraph.toposort()`, `.outputs`, `.inputs`."""
        from ..gof.fg import Maker

        return Maker(self)

    def __repr__(self) -> str:
        return f"<rscan.theano function {self.name or ''}>"


def evaluate(variable: Any, inputs: Mapping[Any, Any] | None = None) -> np.ndarray:
    """The value of a variable, given those of inputs."""
    given = dict(inputs or {})
    leaves = leaves_of([variable], [k for k in given if isinstance(k, Variable)])
    by_name = {v.name: v for v in leaves if v.name and v._v.kind == "input"}
    keys = [k if isinstance(k, Variable) else by_name[k] for k in given]
    return function(keys, variable, on_unused_input="ignore", no_default_updates=True)(*given.values())


__all__ = [
    "Function",
    "In",
    "MissingInputError",
    "Out",
    "Param",
    "SymbolicInput",
    "SymbolicOutput",
    "UnusedInputError",
    "evaluate",
    "function",
]
