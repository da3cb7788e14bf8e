"""Optimisers as pure functions: `init(params)` gives a state, `update(grads, state, params)` updates and the next state.

Parameters, gradients and states are structures of dicts, lists, tuples and dataclasses. With arrays the functions are compiled and give
arrays, with variables variables: they are called in a Python loop as well as in the step of an `rs.loop`. Nothing is changed in place.

    optimiser = rs.optim.adam(1e-3)
    state = optimiser.init(params)
    value, grads = rs.value_and_grad(loss)(params)
    updates, state = optimiser.update(grads, state, params)
    params = rs.optim.apply_updates(params, updates)
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _tree
from ._instead import public
from ._schedules import (
    constant_schedule,
    cosine_decay,
    exponential_decay,
    linear_schedule,
    piecewise_constant,
    warmup_cosine,
)
from ._spans import here
from .compile import Compiled, _is_leaf
from .errors import RscanTypeError, RscanValueError
from .ops import cast, maximum, sign, sqrt, where, zeros_like
from .ops import clip as _clip
from .ops import sum as _sum
from .transforms import fitting
from .variable import Variable, as_variable

__all__ = [
    "Optimizer", "adadelta", "adagrad", "adam", "adamw", "add_decayed_weights", "apply_updates", "chain", "clip",
    "clip_by_global_norm", "constant_schedule", "cosine_decay", "exponential_decay", "global_norm", "linear_schedule",
    "lion", "momentum", "piecewise_constant", "rmsprop", "scale", "sgd", "warmup_cosine",
]  # fmt: skip

if not TYPE_CHECKING:  # for whom a name that is misspelt must stay a mistake
    __getattr__, __dir__ = public(__name__, __all__)

#: A number, a variable, or a function of the number of updates made before.
Schedule = Any


class Optimizer:
    """What makes updates of gradients. `step` does all at once: `params, state = optimiser.step(grads, state, params)`.

    >>> optimiser = rs.optim.sgd(0.1)
    >>> p = {"w": np.array([1.0, 2.0])}
    >>> p, state = optimiser.step({"w": np.array([1.0, 1.0])}, optimiser.init(p), p)
    >>> p["w"]
    array([0.9, 1.9])
    """

    name: str

    def __init__(self, init: Callable[[Any], Any], update: Callable[[Any, Any, Any], tuple[Any, Any]], name: str = "optimiser") -> None:
        self._init, self._update, self.name = init, update, name

    def __repr__(self) -> str:
        return f"<rs.optim.{self.name}>"

    @functools.cached_property
    def init(self) -> Compiled:
        """The first state for parameters."""

        def init(params: Any) -> Any:
            return self._init(_moving(params))

        return Compiled(init, f"{self.name}.init")

    @functools.cached_property
    def update(self) -> Compiled:
        """What to add to the parameters, and the next state. Some optimisers need no parameters."""

        def update(grads: Any, state: Any, params: Any = None) -> Any:
            return self._update(_variables(grads), state, params if params is None else _moving(params))

        return Compiled(update, f"{self.name}.update")

    @functools.cached_property
    def step(self) -> Compiled:
        """The next parameters, and the next state."""

        def step(grads: Any, state: Any, params: Any) -> Any:
            values = _moving(params)
            updates, after = self._update(_variables(grads), state, values)
            return _map(lambda p, u: p + cast(u, p.dtype), values, updates), after

        return Compiled(step, f"{self.name}.step")


def _variables(tree: Any) -> Any:
    return _map(as_variable, tree)


def _moving(params: Any) -> Any:
    """Parameters as variables, which are floats: an update of an integer would be rounded away."""

    def moves(value: Any) -> Variable:
        v = as_variable(value)
        if not v.dtype.startswith("float"):
            text = f"a parameter is {v.dtype}, and optimisers move floats"
            raise RscanTypeError(text, code="E0401", labels=[(here(), "")], helps=["pass floats: 2.0 for 2, or x.astype(float)"])
        return v

    return _map(moves, params)


def _leaves(tree: Any) -> list[Any]:
    return _tree.flatten(tree, _is_leaf)[0]


def _map(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """A function of the values in the same places of structures."""
    leaves, structure = _tree.flatten(tree, _is_leaf)
    columns = [fitting(other, structure) for other in others]
    if any(column is None for column in columns):
        wrong = _tree.flatten(others[columns.index(None)], _is_leaf)[1].describe()
        text = f"gradients, states and parameters have one structure: {structure.describe()} is not {wrong}"
        raise RscanValueError(text, code="E0809", labels=[(here(), "")])
    return structure.build(iter([function(*values) for values in zip(leaves, *columns, strict=True)]))


def apply_updates(params: Any, updates: Any) -> Any:
    """Parameters with updates added, in the dtypes of the parameters.

    errors: `RscanTypeError` (E0401) for parameters that are integers, (E0805) for what is no array; `RscanValueError` (E0809) for
    structures that differ.

    >>> rs.optim.apply_updates({"w": 1.0}, {"w": -0.25})
    {'w': np.float64(0.75)}
    """
    return _applied(params, updates)


def _apply(params: Any, updates: Any) -> Any:
    return _map(lambda p, u: p + cast(u, p.dtype), _moving(params), updates)


_applied = Compiled(_apply, "apply_updates")


def _rate(schedule: Schedule, count: Any, like: Variable) -> Any:
    value = schedule(count) if callable(schedule) and not isinstance(schedule, Variable) else schedule
    return cast(value, like.dtype) if isinstance(value, (Variable, np.ndarray, np.generic)) else value


def _power(base: Any, count: Any) -> Variable:
    return as_variable(base, "float64") ** cast(count, "float64")


def _none(_: Any) -> tuple[()]:
    return ()


# Parts.


def chain(*parts: Optimizer) -> Optimizer:
    """One after the other, each with what the one before makes of the gradients: `chain(clip(1.0), adam(1e-3))`.

    errors: `RscanTypeError` (E0809) for `parts` of another kind.

    >>> optimiser = rs.optim.chain(rs.optim.clip(1.0), rs.optim.sgd(0.5))
    >>> p, state = optimiser.step(np.array([10.0]), optimiser.init(np.array([1.0])), np.array([1.0]))
    >>> p
    array([0.5])
    """
    wrong = [p for p in parts if not isinstance(p, Optimizer)]
    if wrong:
        raise RscanTypeError(f"chain takes optimisers, not {wrong[0]!r}", code="E0809", labels=[(here(), "")])

    def update(grads: Any, states: Any, params: Any) -> tuple[Any, Any]:
        after = []
        for part, state in zip(parts, states, strict=True):
            grads, state = part._update(grads, state, params)
            after.append(state)
        return grads, tuple(after)

    return Optimizer(lambda params: tuple(p._init(params) for p in parts), update, "chain")


def scale(factor: Schedule) -> Optimizer:
    """Gradients times a factor, which may depend on the number of updates before.

    errors: those of `apply_updates`, when it is used.

    >>> part = rs.optim.scale(-0.5)
    >>> part.update(np.array([3.0]), part.init(np.zeros(1)))[0]
    array([-1.5])
    """

    def update(grads: Any, state: Any, params: Any) -> tuple[Any, Any]:
        return _map(lambda g: g * _rate(factor, state["count"], g), grads), {"count": state["count"] + 1}

    return Optimizer(lambda _: {"count": as_variable(0)}, update, "scale")


def _downhill(learning_rate: Schedule) -> Optimizer:
    """Against the gradient, by the learning rate."""

    def update(grads: Any, state: Any, params: Any) -> tuple[Any, Any]:
        return _map(lambda g: -(g * _rate(learning_rate, state["count"], g)), grads), {"count": state["count"] + 1}

    return Optimizer(lambda _: {"count": as_variable(0)}, update, "scale")


def clip(limit: Any) -> Optimizer:
    """Gradients with elements between −limit and limit.

    errors: those of `apply_updates`, when it is used.

    >>> part = rs.optim.clip(1.0)
    >>> part.update(np.array([3.0, -0.5]), part.init(np.zeros(2)))[0]
    array([ 1. , -0.5])
    """
    return Optimizer(_none, lambda grads, state, params: (_map(lambda g: _clip(g, -limit, limit), grads), state), "clip")


def global_norm(tree: Any) -> Variable:
    """The root of the sum of all squares in a structure.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.optim.global_norm({"a": np.array([3.0]), "b": 4.0}).eval()
    array(5.)
    """
    parts = [_sum(as_variable(v) ** 2) for v in _leaves(tree)]
    total: Any = parts[0] if parts else as_variable(0.0)
    for part in parts[1:]:
        total = total + part
    return sqrt(total)


def clip_by_global_norm(max_norm: Any) -> Optimizer:
    """Gradients that are shortened together where their norm, of all of them, is larger.

    errors: those of `apply_updates`, when it is used.

    >>> part = rs.optim.clip_by_global_norm(1.0)
    >>> part.update(np.array([3.0, 4.0]), part.init(np.zeros(2)))[0]
    array([0.6, 0.8])
    """

    def update(grads: Any, state: Any, params: Any) -> tuple[Any, Any]:
        norm = global_norm(grads)
        factor = where(norm > max_norm, max_norm / where(norm > max_norm, norm, 1.0), 1.0)
        return _map(lambda g: g * cast(factor, g.dtype), grads), state

    return Optimizer(_none, update, "clip_by_global_norm")


def add_decayed_weights(weight_decay: Any) -> Optimizer:
    """Gradients plus the parameters times a factor.

    errors: those of `apply_updates`, when it is used.

    >>> part = rs.optim.add_decayed_weights(0.1)
    >>> updates, state = part.update(np.array([1.0]), part.init(np.array([2.0])), np.array([2.0]))
    >>> updates
    array([1.2])
    """

    def update(grads: Any, state: Any, params: Any) -> tuple[Any, Any]:
        return _map(lambda g, p: g + weight_decay * p, grads, _given(params, "add_decayed_weights")), state

    return Optimizer(_none, update, "add_decayed_weights")


def _given(params: Any, what: str) -> Any:
    if params is None:
        raise RscanValueError(f"{what} needs the parameters", code="E0809", labels=[(here(), "")], helps=["update(grads, state, params)"])
    return params


def _trace(decay: Any, nesterov: bool) -> Optimizer:
    def update(grads: Any, state: Any, params: Any) -> tuple[Any, Any]:
        after = _map(lambda g, m: g + decay * m, grads, state)
        return (_map(lambda g, m: g + decay * m, grads, after) if nesterov else after), after

    return Optimizer(lambda params: _map(zeros_like, params), update, "trace")


def _by_moments(b1: Any, b2: Any, eps: Any) -> Optimizer:
    """Running means of gradients over roots of those of their squares, both corrected for their start at 0."""

    def update(grads: Any, state: Any, params: Any) -> tuple[Any, Any]:
        count = state["count"] + 1
        mean = _map(lambda g, m: b1 * m + (1 - b1) * g, grads, state["mean"])
        square = _map(lambda g, v: b2 * v + (1 - b2) * g * g, grads, state["square"])
        first, second = 1 - _power(b1, count), 1 - _power(b2, count)
        scaled = _map(lambda m, v: m / cast(first, m.dtype) / (sqrt(v / cast(second, v.dtype)) + eps), mean, square)
        return scaled, {"count": count, "mean": mean, "square": square}

    init = lambda params: {"count": as_variable(0), "mean": _map(zeros_like, params), "square": _map(zeros_like, params)}
    return Optimizer(init, update, "moments")


# Optimisers.


def _named(optimiser: Optimizer, name: str) -> Optimizer:
    optimiser.name = name
    return optimiser


def sgd(learning_rate: Schedule, momentum: Any = None, nesterov: bool = False) -> Optimizer:
    """Gradient descent, on request with momentum.

    errors: those of `apply_updates`, when it is used.

    >>> optimiser = rs.optim.sgd(0.1)
    >>> p, state = optimiser.step(np.array([4.0]), optimiser.init(np.array([1.0])), np.array([1.0]))
    >>> p
    array([0.6])
    """
    parts = [_downhill(learning_rate)] if momentum is None else [_trace(momentum, nesterov), _downhill(learning_rate)]
    return _named(chain(*parts), "sgd")


def momentum(learning_rate: Schedule, decay: Any = 0.9, nesterov: bool = False) -> Optimizer:
    """Gradient descent along a decaying sum of gradients; Nesterov's looks one update ahead.

    errors: those of `apply_updates`, when it is used.

    >>> optimiser = rs.optim.momentum(0.1)
    >>> p, state = optimiser.step(np.array([4.0]), optimiser.init(np.array([1.0])), np.array([1.0]))
    >>> p
    array([0.6])
    """
    return _named(sgd(learning_rate, decay, nesterov), "momentum")


def adam(learning_rate: Schedule, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8) -> Optimizer:
    """Adam (Kingma, Ba, "Adam: a method for stochastic optimization", 2015).

    errors: those of `apply_updates`, when it is used.

    >>> optimiser = rs.optim.adam(0.1)
    >>> p, state = optimiser.step(np.array([4.0]), optimiser.init(np.array([1.0])), np.array([1.0]))
    >>> p.round(6)
    array([0.9])
    """
    return _named(chain(_by_moments(b1, b2, eps), _downhill(learning_rate)), "adam")


def adamw(learning_rate: Schedule, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8, weight_decay: Any = 1e-4) -> Optimizer:
    """Adam with decay of the parameters beside it (Loshchilov, Hutter, "Decoupled weight decay regularization", 2019).

    errors: those of `apply_updates`, when it is used.

    >>> optimiser = rs.optim.adamw(0.1, weight_decay=0.5)
    >>> p, state = optimiser.step(np.array([4.0]), optimiser.init(np.array([1.0])), np.array([1.0]))
    >>> p.round(6)
    array([0.85])
    """
    return _named(chain(_by_moments(b1, b2, eps), add_decayed_weights(weight_decay), _downhill(learning_rate)), "adamw")


def adagrad(learning_rate: Schedule, initial: Any = 0.1, eps: Any = 1e-7) -> Optimizer:
    """Gradients over the root of the sum of all their squares so far (Duchi, Hazan, Singer, 2011).

    errors: those of `apply_updates`, when it is used.

    >>> optimiser = rs.optim.adagrad(0.1)
    >>> p, state = optimiser.step(np.array([4.0]), optimiser.init(np.array([1.0])), np.array([1.0]))
    >>> p.round(6)
    array([0.900311])
    """

    def update(grads: Any, state: Any, params: Any) -> tuple[Any, Any]:
        after = _map(lambda g, v: v + g * g, grads, state)
        return _map(lambda g, v: where(v > 0, g / sqrt(where(v > 0, v, 1.0) + eps), 0.0), grads, after), after

    init = lambda params: _map(lambda p: zeros_like(p) + initial, params)
    return _named(chain(Optimizer(init, update), _downhill(learning_rate)), "adagrad")


def rmsprop(learning_rate: Schedule, decay: Any = 0.9, eps: Any = 1e-8, momentum: Any = None, centered: bool = False) -> Optimizer:
    """Gradients over the root of a running mean of their squares; `centered` takes the square of the running mean of gradients from it.

    errors: those of `apply_updates`, when it is used.

    >>> optimiser = rs.optim.rmsprop(0.1)
    >>> p, state = optimiser.step(np.array([4.0]), optimiser.init(np.array([1.0])), np.array([1.0]))
    >>> p.round(6)
    array([0.683772])
    """

    def update(grads: Any, state: Any, params: Any) -> tuple[Any, Any]:
        square = _map(lambda g, v: decay * v + (1 - decay) * g * g, grads, state["square"])
        if not centered:
            return _map(lambda g, v: g / sqrt(v + eps), grads, square), {"square": square}
        mean = _map(lambda g, m: decay * m + (1 - decay) * g, grads, state["mean"])
        scaled = _map(lambda g, v, m: g / sqrt(maximum(v - m * m, 0.0) + eps), grads, square, mean)
        return scaled, {"square": square, "mean": mean}

    def init(params: Any) -> Any:
        zeros = lambda: _map(zeros_like, params)
        return {"square": zeros(), "mean": zeros()} if centered else {"square": zeros()}

    parts = [Optimizer(init, update), _downhill(learning_rate)]
    return _named(chain(*parts, *([] if momentum is None else [_trace(momentum, False)])), "rmsprop")


def adadelta(learning_rate: Schedule = 1.0, rho: Any = 0.9, eps: Any = 1e-6) -> Optimizer:
    """Gradients times the root of a running mean of squared updates, over that of squared gradients (Zeiler, "ADADELTA: an adaptive
    learning rate method", 2012).

    errors: those of `apply_updates`, when it is used.

    >>> optimiser = rs.optim.adadelta()
    >>> p, state = optimiser.step(np.array([4.0]), optimiser.init(np.array([1.0])), np.array([1.0]))
    >>> p.round(6)
    array([0.996838])
    """

    def update(grads: Any, state: Any, params: Any) -> tuple[Any, Any]:
        square = _map(lambda g, v: rho * v + (1 - rho) * g * g, grads, state["square"])
        moved = _map(lambda g, v, u: g * sqrt((u + eps) / (v + eps)), grads, square, state["moved"])
        return moved, {"square": square, "moved": _map(lambda m, u: rho * u + (1 - rho) * m * m, moved, state["moved"])}

    init = lambda params: {"square": _map(zeros_like, params), "moved": _map(zeros_like, params)}
    return _named(chain(Optimizer(init, update), _downhill(learning_rate)), "adadelta")


def lion(learning_rate: Schedule, b1: Any = 0.9, b2: Any = 0.99, weight_decay: Any = 0.0) -> Optimizer:
    """Signs of means of gradients (Chen et al., "Symbolic discovery of optimization algorithms", 2023).

    errors: those of `apply_updates`, when it is used.

    >>> optimiser = rs.optim.lion(0.1)
    >>> p, state = optimiser.step(np.array([4.0]), optimiser.init(np.array([1.0])), np.array([1.0]))
    >>> p
    array([0.9])
    """

    def update(grads: Any, state: Any, params: Any) -> tuple[Any, Any]:
        signs = _map(lambda g, m: sign(b1 * m + (1 - b1) * g), grads, state)
        return signs, _map(lambda g, m: b2 * m + (1 - b2) * g, grads, state)

    first = Optimizer(lambda params: _map(zeros_like, params), update)
    decays = isinstance(weight_decay, Variable) or weight_decay != 0
    return _named(chain(first, *([add_decayed_weights(weight_decay)] if decays else []), _downhill(learning_rate)), "lion")
