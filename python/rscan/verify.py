"""Checks of gradients against finite differences, and of forward mode against reverse mode."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ._spans import here
from .derivatives import grad, jvp
from .dtypes import as_array
from .errors import GradientCheckError, RscanTypeError
from .function import Function, function
from .inputs import tensor
from .ops import sum
from .variable import Variable, as_variable

__all__ = ["numeric_grad", "verify_grad"]


class _Tolerance(NamedTuple):
    relative: float
    absolute: float
    #: Step lengths to choose from, relative to the size of what is moved.
    steps: tuple[float, ...]


TOLERANCES = {
    "float64": _Tolerance(1e-6, 1e-8, (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5)),
    "float32": _Tolerance(2e-2, 2e-3, (3e-1, 1e-1, 3e-2, 1e-2, 3e-3)),
}


class Worst(NamedTuple):
    """The entry of a gradient that is farthest from its finite difference, in units of what is tolerated."""

    ratio: float
    argument: int
    index: tuple[int, ...]  # type: ignore[assignment]  # hides tuple.index
    found: float
    expected: float


def verify_grad(
    fun: Callable[..., Any] | Variable,
    point: Any,
    *,
    rel_tol: float | None = None,
    abs_tol: float | None = None,
    n_tests: int = 2,
    seed: int = 0,
    check_forward: bool = True,
) -> Worst:
    """Compares a gradient with finite differences at a point; returns the worst entry, or raises `GradientCheckError`.

    fun: a function of variables, with `point` the list of their values; or an expression, with `point` a dict of variables and
    values. Integer and boolean arguments stay fixed. An output with axes is weighted with random numbers and added up, anew in
    each of `n_tests` tests. Tolerances: 1e-6 relative and 1e-8 absolute, in single precision 2e-2 and 2e-3.
    check_forward: also compare `jvp` and `vjp` in a random direction.

    errors: `GradientCheckError` (E0407) where they differ; `RscanTypeError` (E0809) without a float output and a float input.

    >>> rs.verify_grad(lambda x: rs.sum(rs.sin(x)), [np.array([0.1, 0.2])]).ratio < 1
    True
    """
    inputs, values, output = _at_point(fun, point)
    moved = [i for i, v in enumerate(inputs) if v.dtype.startswith("float")]
    if not moved or not output.dtype.startswith("float"):
        raise RscanTypeError("a gradient check needs a float output and a float input", code="E0809", labels=[(here(), "")])
    coarse = "float32" if "float32" in [output.dtype, *(inputs[i].dtype for i in moved)] else "float64"
    limits = TOLERANCES[coarse]
    limits = _Tolerance(limits.relative if rel_tol is None else rel_tol, limits.absolute if abs_tol is None else abs_tol, limits.steps)
    rng = np.random.default_rng(seed)
    weight = tensor(output.dtype, [None] * output.ndim, "weight")
    cost = sum(output * weight)
    wrt = [inputs[i] for i in moved]
    value = function(inputs, output, on_unused_input="ignore")
    reverse = function([*inputs, weight], grad(cost, wrt, disconnected_inputs="ignore"), on_unused_input="ignore")
    shape = np.shape(value(*values))
    worst = Worst(0.0, 0, (), 0.0, 0.0)
    for _ in range(n_tests):
        w = np.asarray(rng.uniform(0.5, 1.5, shape) * rng.choice([-1.0, 1.0], shape), output.dtype)
        found = reverse(*values, w)
        expected = numeric_grad(lambda *v, w=w: _dot(value(*v), w), values, moved, limits.steps)
        for i, a, b in zip(moved, found, expected, strict=True):
            worst = max(worst, _worst(i, np.asarray(a, float), b, limits), key=lambda x: x.ratio)
        if worst.ratio > 1:
            raise _differs(inputs, worst, limits)
        if check_forward:
            _check_forward(inputs, values, moved, output, w, found, limits, rng)
    return worst


def _at_point(fun: Any, point: Any) -> tuple[list[Variable], list[np.ndarray], Variable]:
    if isinstance(fun, Variable):
        if not isinstance(point, Mapping) or not all(isinstance(key, Variable) for key in point):
            raise RscanTypeError("the point of an expression is a dict of variables and values", code="E0809", labels=[(here(), "")])
        inputs = list(point)
        values = [np.array(as_array(value), variable.dtype) for variable, value in point.items()]
        return inputs, values, fun
    values = [np.array(as_array(v)) for v in (point if isinstance(point, (list, tuple)) else [point])]
    inputs = [tensor(v.dtype.name, [None] * v.ndim, f"argument {i}") for i, v in enumerate(values)]
    return inputs, values, as_variable(fun(*inputs))


def numeric_grad(
    f: Callable[..., float], values: list[np.ndarray], moved: list[int] | None = None, steps: tuple[float, ...] | None = None
) -> list[np.ndarray]:
    """The gradient of a function of arrays by central differences.

    Each entry is extrapolated from several step lengths (Richardson), of which the pair that agrees best counts.

    errors: `ValueError` for values that are no numbers; what `f` raises.

    >>> rs.numeric_grad(lambda x: float((x**2).sum()), [np.array([1.0, 2.0])])[0].round(4)
    array([2., 4.])
    """
    steps = steps or TOLERANCES["float64"].steps
    values = [as_array(v) for v in values]
    out = []
    for i in range(len(values)) if moved is None else moved:
        gradient = np.zeros(values[i].shape)
        for index in np.ndindex(values[i].shape):
            gradient[index] = _entry(f, values, i, index, steps)
        out.append(gradient)
    return out


def _entry(f: Callable[..., float], values: list[np.ndarray], i: int, index: tuple[int, ...], steps: tuple[float, ...]) -> float:
    size = max(1.0, abs(float(values[i][index])))
    best, error = np.nan, np.inf
    for step in steps:
        coarse, fine = _difference(f, values, i, index, step * size), _difference(f, values, i, index, step * size / 2)
        finest = _difference(f, values, i, index, step * size / 4)
        first, second = (4 * fine - coarse) / 3, (4 * finest - fine) / 3
        if not abs(second - first) >= error:
            best, error = (16 * second - first) / 15, abs(second - first)
    return best


def _difference(f: Callable[..., float], values: list[np.ndarray], i: int, index: tuple[int, ...], h: float) -> float:
    ends = []
    for sign in (1, -1):
        moved = list(values)
        moved[i] = values[i].copy()
        moved[i][index] += sign * h
        ends.append((f(*moved), float(moved[i][index])))
    (up, high), (down, low) = ends
    return (up - down) / (high - low)


def _dot(a: Any, b: Any) -> float:
    return float(np.sum(np.asarray(a, np.float64) * np.asarray(b, np.float64)))


def _worst(argument: int, found: np.ndarray, expected: np.ndarray, limits: _Tolerance) -> Worst:
    if not found.size:
        return Worst(0.0, argument, (), 0.0, 0.0)
    allowed = limits.absolute + limits.relative * np.maximum(np.abs(found), np.abs(expected))
    ratio = np.abs(found - expected) / allowed
    ratio = np.where(np.isnan(ratio), np.inf, ratio)
    at = np.unravel_index(int(np.argmax(ratio)), ratio.shape) if ratio.ndim else ()
    index = tuple(int(k) for k in at)
    return Worst(float(ratio[index]), argument, index, float(found[index]), float(expected[index]))


def _differs(inputs: list[Variable], worst: Worst, limits: _Tolerance) -> GradientCheckError:
    name = inputs[worst.argument]._describe()
    entry = f"`{name}`" + (f"[{', '.join(map(str, worst.index))}]" if worst.index else "")
    off = abs(worst.found - worst.expected)
    return GradientCheckError(
        f"the gradient with respect to {entry} is {worst.found:.9g}, finite differences give {worst.expected:.9g}",
        labels=[(here(), "")],
        notes=[
            f"they differ by {off:.3g} absolutely and {off / max(abs(worst.expected), 1e-300):.3g} relatively",
            f"tolerated are {limits.absolute:.3g} + {limits.relative:.3g} · |gradient|",
        ],
        helps=["near a kink or a jump finite differences mean nothing: choose another point"],
    )


def _check_forward(
    inputs: list[Variable],
    values: list[np.ndarray],
    moved: list[int],
    output: Variable,
    w: np.ndarray,
    found: list[np.ndarray],
    limits: _Tolerance,
    rng: np.random.Generator,
) -> None:
    directions = [np.asarray(rng.uniform(-1, 1, values[i].shape), inputs[i].dtype) for i in moved]
    tangents = [tensor(inputs[i].dtype, [None] * inputs[i].ndim, "tangent") for i in moved]
    pushed = jvp(output, [inputs[i] for i in moved], tangents)
    forward: Function = function([*inputs, *tangents], pushed, on_unused_input="ignore")
    left = _dot(forward(*values, *directions), w)
    products = [np.asarray(g, float) * d for g, d in zip(found, directions, strict=True)]
    right = float(np.sum([np.sum(p) for p in products]))
    size = float(np.sum([np.sum(np.abs(p)) for p in products]))
    if not abs(left - right) <= limits.absolute + limits.relative * max(size, abs(left)):
        raise GradientCheckError(
            f"forward mode and reverse mode disagree: along a random direction {left:.9g} and {right:.9g}",
            labels=[(here(), ""), (output._v.span, "the output")],
        )
