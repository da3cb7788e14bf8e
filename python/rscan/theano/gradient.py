"""`theano.gradient`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import _native, ops
from .. import derivatives as base
from .._spans import here
from ..dtypes import as_array
from ..errors import DisconnectedInputError, GradientCheckError, GradientError, NonScalarCostError, RscanTypeError
from ..variable import Variable, wrap
from .config import config
from .connection import connected
from .draws import behind, drawn_from
from .variable import TensorVariable, as_tensor_variable


class NullTypeGradError(RscanTypeError):
    """A gradient that is not defined, as through a random draw."""

    default_code = "E0403"


class DisconnectedType:
    """The type of the gradient of something that a cost does not depend on."""

    def __call__(self) -> Any:
        return base.DISCONNECTED


def grad(
    cost: Any,
    wrt: Any,
    consider_constant: Any = None,
    disconnected_inputs: str = "raise",
    add_names: bool = True,
    known_grads: Mapping[Any, Any] | None = None,
    return_disconnected: str = "zero",
    null_gradients: str = "raise",
) -> Any:
    """The gradient of a scalar with respect to a variable, or to a list or tuple of them.

    The gradient with respect to integers is zeros of float64; with respect to float32 in a float64 cost it is float64. A cost
    that is an integer has zeros, of floatX with respect to integers.
    """
    known = None if known_grads is None else OrderedDict((k, as_tensor_variable(v)) for k, v in dict(known_grads).items())
    start = None if cost is None else as_tensor_variable(cost)
    if start is not None and start.ndim:
        raise NonScalarCostError(f"the cost of a gradient is a scalar, not {start.type}", code="E0401", labels=[(here(), "")])
    items = list(wrt) if isinstance(wrt, (list, tuple)) else [wrt]
    for item in items:
        if not isinstance(item, Variable):
            raise RscanTypeError(f"gradients are taken with respect to variables, not {item!r}", code="E0401", labels=[(here(), "")])
    if start is not None and null_gradients == "raise" and known is None:
        _refuse_draws(start, items, _listed(consider_constant or ()))
    constants = None if consider_constant is None else _listed(consider_constant)
    found = _found(start, items, constants, known, base.Missing(disconnected_inputs, return_disconnected, start, here()))
    wide = (start is not None and start.dtype == "float64") or any(v.dtype == "float64" for v in (known or {}).values())
    out = [_named(_widened(g, wide), cost, v, add_names) for g, v in zip(found, items, strict=True)]
    return tuple(out) if isinstance(wrt, tuple) else out if isinstance(wrt, list) else out[0]


def _found(start: Any, items: list[Any], constants: Any, known: Any, missing: base.Missing) -> list[Any]:
    """The gradients: zeros where the cost depends on a variable, but not smoothly, and what `missing` says where it does not."""
    fixed = constants or []
    roots = [v._v for v in (*([] if start is None else [start]), *(known or ()))]
    behind = connected(roots, [v._v for v in fixed])
    found = _slopes(start, items, fixed, known)
    return [missing.gradient(v, None, TensorVariable) if v._v not in behind else _or_zeros(g, v) for g, v in zip(found, items, strict=True)]


def _slopes(start: Any, items: list[Any], constants: list[Any], known: Any) -> list[Any]:
    """The gradients that there are. What is constant has a gradient itself, but passes none on."""
    if start is not None and start.dtype[0] != "f":
        if not known:
            return [None] * len(items)
        start = None
    found = base.grad(start, items, constants, "ignore", known, "none")
    for i, v in enumerate(items):
        if v in constants:
            found[i] = base.grad(start, v, [c for c in constants if c != v], "ignore", known, "none")
    return found


def _or_zeros(g: Any, v: Any) -> Any:
    return ops.zeros_like(v, v.dtype if v.dtype[0] == "f" else config.floatX) if g is None else g


def _widened(g: Any, wide: bool) -> Any:
    return ops.cast(g, "float64") if wide and isinstance(g, Variable) and g.dtype == "float32" else g


def _named(g: Any, cost: Any, v: Any, add_names: bool) -> Any:
    if add_names and isinstance(g, Variable) and g.name is None and g._v.kind == "apply" and v.name and getattr(cost, "name", None):
        g.name = f"(d{cost.name}/d{v.name})"
    return g


def _refuse_draws(cost: Variable, wrt: list[Variable], constants: list[Variable]) -> None:
    """An error where a gradient would go through a random draw: it is not defined there."""
    states = {v for v in _leaves([cost]) if v.dtype == "uint32" and v.static_shape == (628,)}
    if not states:
        return
    for v in states.intersection(wrt):
        text = f"the gradient with respect to {v} is not defined: it is the state of a generator"
        raise NullTypeGradError(text, labels=[(here(), "")])
    stop = {v._v for v in (*wrt, *constants)}
    targets = {v._v for v in wrt}
    parameters = drawn_from(cost._v, stop)
    reached = behind(parameters, stop) & targets
    if reached:
        name = wrap(next(iter(reached)), TensorVariable)
        raise NullTypeGradError(
            f"the gradient with respect to {name} goes through a random draw, which has none",
            labels=[(here(), "")],
            helps=["write the parameter outside of the draw: avg + std * srng.normal(size)"],
        )


def _leaves(variables: list[Variable]) -> set[Variable]:
    return {wrap(v, TensorVariable) for v in _native.leaves([v._v for v in variables], [])}


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple, set)) else [value]


def Rop(f: Any, wrt: Any, eval_points: Any, disconnected_outputs: str = "raise", return_disconnected: str = "zero") -> Any:
    """The Jacobian of f with respect to wrt, times eval_points."""
    outs, variables = _tensors(f), _tensors(wrt)
    points = [as_tensor_variable(p) for p in _listed(eval_points)]
    if len(points) != len(variables):
        raise GradientError("Rop takes as many eval_points as variables", code="E0809", labels=[(here(), "")])
    for v, p in zip(variables, points, strict=True):
        if v.ndim != p.ndim:
            raise GradientError(f"an eval_point of {p.ndim} axes for a variable of {v.ndim}", code="E0809", labels=[(here(), "")])
    points = [ops.cast(p, v.dtype) for v, p in zip(variables, points, strict=True)]
    return _like(f, base.jvp(outs, variables, points))


def Lop(f: Any, wrt: Any, eval_points: Any, consider_constant: Any = None, disconnected_inputs: str = "raise") -> Any:
    """eval_points times the Jacobian of f with respect to wrt."""
    outs, variables = _tensors(f), _tensors(wrt)
    points = [ops.cast(as_tensor_variable(p), o.dtype) for p, o in zip(_listed(eval_points), outs, strict=True)]
    return _like(wrt, base.vjp(outs, variables, points, consider_constant, disconnected_inputs))


def jacobian(expression: Any, wrt: Any, consider_constant: Any = None, disconnected_inputs: str = "raise") -> Any:
    """The derivatives of a scalar or vector: one row per element of the expression."""
    y = as_tensor_variable(expression)
    if y.ndim > 1:
        raise GradientError(f"jacobian takes a scalar or a vector, got {y.ndim} axes", code="E0401", labels=[(here(), "")])
    if y.ndim == 0:
        return grad(y, wrt, consider_constant, disconnected_inputs)
    return base.jacobian(y, wrt, consider_constant, disconnected_inputs)


def hessian(cost: Any, wrt: Any, consider_constant: Any = None, disconnected_inputs: str = "raise") -> Any:
    """The second derivatives of a scalar with respect to vectors."""
    y = as_tensor_variable(cost)
    if y.ndim:
        raise NonScalarCostError("the cost of a Hessian is a scalar", code="E0401", labels=[(here(), "")])
    for v in _listed(wrt):
        if v.ndim != 1:
            raise GradientError(f"hessian takes vectors, got {v.ndim} axes", code="E0401", labels=[(here(), "")])
    return base.hessian(y, wrt, consider_constant, disconnected_inputs)


def subgraph_grad(wrt: Any, end: Any, start: Any = None, cost: Any = None, details: bool = False) -> Any:
    """The gradients with respect to wrt and to end, given those of start, to which that of the cost is added. What lies behind end
    gets none."""
    inner, ends, known = _listed(wrt), _listed(end), dict(start or {})
    if cost is not None and known:
        more = grad(cost, list(known), consider_constant=ends, disconnected_inputs="ignore")
        known = {v: given + g for (v, given), g in zip(known.items(), more, strict=True)}
    found = grad(None if known else cost, [*inner, *ends], ends, "ignore", known_grads=known or None)
    return found[: len(inner)], found[len(inner) :]


def disconnected_grad(x: Any) -> Variable:
    """x, through which no gradient flows."""
    return ops.stop_gradient(as_tensor_variable(x))


consider_constant = disconnected_grad
zero_grad = disconnected_grad


def undefined_grad(x: Any) -> Variable:
    """x, through which no gradient flows."""
    return disconnected_grad(x)


def grad_clip(x: Any, lower_bound: Any, upper_bound: Any) -> Variable:
    """x; the gradient that flows through is clipped."""
    return ops.grad_clip(as_tensor_variable(x), lower_bound, upper_bound)


def grad_scale(x: Any, multiplier: Any) -> Variable:
    """x; the gradient that flows through is scaled."""
    v = as_tensor_variable(x)
    return ops.stop_gradient(v) + multiplier * (v - ops.stop_gradient(v))


class numeric_grad:
    """Gradients by finite differences: `numeric_grad(f, [x0, y0]).gf`."""

    def __init__(self, f: Any, pt: Any, eps: float | None = None, out_type: Any = None) -> None:
        from ..verify import numeric_grad as differences

        points = [np.array(as_array(p), dtype=np.float64) for p in (pt if isinstance(pt, (list, tuple)) else [pt])]
        self.gf: Any = differences(lambda *v: float(f(*v)), points)
        if not isinstance(pt, (list, tuple)):
            self.gf = self.gf[0]


def verify_grad(
    fun: Any,
    pt: Any,
    n_tests: int = 2,
    rng: Any = None,
    eps: float | None = None,
    out_type: Any = None,
    abs_tol: float | None = None,
    rel_tol: float | None = None,
    mode: Any = None,
    cast_to_output_type: bool = False,
    no_debug_ref: bool = True,
) -> None:
    """Compares the gradient of a function of variables with finite differences at a point."""
    from ..verify import verify_grad as check

    def facade(*args: Variable) -> Variable:
        return as_tensor_variable(fun(*[wrap(a._v, TensorVariable) for a in args]))

    point = [np.array(as_array(p)) for p in (pt if isinstance(pt, (list, tuple)) else [pt])]
    seed = 0 if rng is None else int(rng.randint(2**30))
    check(facade, point, rel_tol=rel_tol, abs_tol=abs_tol, n_tests=n_tests, seed=seed)


def _tensors(value: Any) -> list[Variable]:
    return [as_tensor_variable(v) for v in _listed(value)]


def _like(given: Any, found: list[Any]) -> Any:
    if isinstance(given, tuple):
        return tuple(found)
    if isinstance(given, list):
        return found
    return found[0] if isinstance(found, (list, tuple)) else found


def format_as(use_list: bool, use_tuple: bool, outputs: Any) -> Any:
    """A single item, a list or a tuple."""
    if use_tuple:
        return tuple(outputs)
    return list(outputs) if use_list else outputs[0] if isinstance(outputs, (list, tuple)) else outputs


__all__ = [
    "DisconnectedInputError", "DisconnectedType", "GradientCheckError", "Lop", "NullTypeGradError", "Rop", "consider_constant",
    "disconnected_grad", "format_as", "grad", "grad_clip", "grad_scale", "hessian", "jacobian", "numeric_grad", "subgraph_grad",
    "undefined_grad", "verify_grad", "zero_grad",
]  # fmt: skip
