"""Transforms of functions: `grad(f)`, `value_and_grad`, `jacobian`, `hessian`, `jvp`, `vjp`, `hvp`.

What they give is a function of arrays and of variables: with arrays it is compiled and gives arrays, with a variable among the arguments it
gives variables. So transforms nest, and are used in steps of loops. Arguments and results are structures of dicts, lists, tuples and
dataclasses. Each has a form for variables, too, in `gradient`, which these names lead to where the first argument is no function.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from . import _native, _tree, derivatives
from ._spans import here, of_function
from .compile import Compiled, _is_leaf, _is_value
from .dtypes import as_array
from .errors import GradientError, MissingInputError, RscanTypeError
from .ops import cast
from .variable import Variable, as_variable, wrap

__all__ = ["grad", "hessian", "hvp", "jacobian", "jvp", "value_and_grad", "vjp"]


class Transformed(Compiled):
    """A function made of another one."""

    def __call__(self, *args: Any, **named: Any) -> Any:
        try:
            return super().__call__(*args, **named)
        except MissingInputError:
            # The function uses variables of the one around it: so it gives variables, whatever it is given.
            return self._fn(*_as_variables(args), **_as_variables(named))


def _as_variables(arguments: Any) -> Any:
    leaves, tree = _tree.flatten(arguments, _is_leaf)
    return tree.build(iter([as_variable(v) if _is_value(v) else v for v in leaves]))


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, Variable)


def _form(transform: Callable[..., Any], fn: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """A transform of a function; of options that it has not, an error."""
    own = inspect.signature(transform).parameters
    wrong = next((name for name in named if name not in own), None)
    if wrong is not None:
        helps = ["rs.compile(f, static=…) makes arguments static, of transforms too"] if wrong.startswith("static") else []
        text = f"this form of the transform, of a function, has no option {wrong!r}"
        notes = [f"it has {', '.join(list(own)[1:])}"]
        raise RscanTypeError(text, code="E0508", labels=[(here(), "")], notes=notes, helps=helps)
    return transform(fn, *args, **named)


def _plain(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function of variables itself."""
    return fn._fn if isinstance(fn, Compiled) else fn


def _device(fn: Callable[..., Any]) -> str | None:
    """The device that a compiled function asks for: what is made of it runs there, too."""
    return fn._device if isinstance(fn, Compiled) else None


class _Call:
    """A call of a function, in which some arguments are variables of its own: what else the function uses does not move with them."""

    def __init__(self, fn: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any], wanted: list[Any]) -> None:
        self.fn = fn
        bound = _bound(fn, args, named)
        #: Variables in place of the arguments, and these.
        self.inside: list[Variable] = []
        self.outside: list[Variable] = []
        #: The structure of each wanted argument, and its variables; None for what is no value.
        self.parts: list[tuple[_tree.Tree, list[Variable | None]]] = []
        for which in wanted:
            key, at = _place(bound, which)
            given = bound.arguments[key] if at is None else bound.arguments[key][at]
            leaves, tree = _tree.flatten(given, _is_leaf)
            names = _tree.paths(tree, key)
            own = [self._variable(v, n) if _is_value(v) else None for v, n in zip(leaves, names, strict=True)]
            self.parts.append((tree, own))
            value = tree.build(iter([v if w is None else w for v, w in zip(leaves, own, strict=True)]))
            bound.arguments[key] = value if at is None else (*bound.arguments[key][:at], value, *bound.arguments[key][at + 1 :])
        self.result = fn(*bound.args, **bound.kwargs)

    def _variable(self, value: Any, name: str) -> Variable:
        v = as_variable(value)
        if not v.dtype.startswith("float"):
            raise GradientError(
                f"`{name}` is {v.dtype}: derivatives are taken with respect to floats",
                code="E0401",
                labels=[(here(), ""), (of_function(self.fn), "the function")],
                helps=["pass floats: 2.0 for 2, or x.astype(float)"],
            )
        own = wrap(v._v.input_like(name, here()))
        self.inside.append(own)
        self.outside.append(v)
        return own

    def variables(self) -> list[Variable]:
        """Of all wanted arguments."""
        return [v for _, own in self.parts for v in own if v is not None]

    def like_arguments(self, found: list[Any]) -> list[Any]:
        """What was found for each variable, in the structures of the arguments."""
        values = iter(found)
        return [tree.build(iter([None if v is None else next(values) for v in own])) for tree, own in self.parts]

    def settled(self, value: Any) -> Any:
        """A structure of variables with the arguments in their places."""
        leaves, tree = _tree.flatten(value, lambda v: isinstance(v, Variable))
        places = [i for i, v in enumerate(leaves) if isinstance(v, Variable)]
        pairs = [(a._v, b._v) for a, b in zip(self.inside, self.outside, strict=True)]
        found = _native.substitute([leaves[i]._v for i in places], pairs)
        for i, v in zip(places, found, strict=True):
            leaves[i] = wrap(v, leaves[i]._family)
        return tree.build(iter(leaves))


def _bound(fn: Callable[..., Any], args: Any, named: Any) -> inspect.BoundArguments:
    try:
        bound = inspect.signature(fn).bind(*args, **named)
    except TypeError as error:
        name = getattr(fn, "__name__", "the function")
        raise RscanTypeError(f"{name}(): {error}", code="E0508", labels=[(here(), ""), (of_function(fn), "")]) from None
    bound.apply_defaults()
    return bound


def _place(bound: inspect.BoundArguments, which: Any) -> tuple[str, int | None]:
    """The name of a parameter given by position or name, and where it is one of several under `*name`, which."""
    flat: list[tuple[str, int | None]] = []
    for name in bound.arguments:
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            flat += [(name, i) for i in range(len(bound.arguments[name]))]
        elif kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD):
            flat.append((name, None))
    if isinstance(which, str) and which in bound.arguments:
        return which, None
    if isinstance(which, int) and not isinstance(which, bool) and -len(flat) <= which < len(flat):
        return flat[which]
    raise RscanTypeError(
        f"there is no argument {which!r} to differentiate with respect to",
        code="E0508",
        labels=[(here(), "")],
        notes=[f"the arguments are {', '.join(bound.arguments)}"],
    )


def _listed(argnums: Any) -> list[Any]:
    return list(argnums) if isinstance(argnums, (tuple, list)) else [argnums]


def _as_given(argnums: Any, found: list[Any]) -> Any:
    return tuple(found) if isinstance(argnums, (tuple, list)) else found[0]


def _without_aux(result: Any, has_aux: bool, fn: Callable[..., Any]) -> tuple[Any, Any]:
    if not has_aux:
        return result, None
    if isinstance(result, (tuple, list)) and len(result) == 2:
        return result[0], result[1]
    raise RscanTypeError("with has_aux the function returns a pair of its value and anything", code="E0508", labels=[(of_function(fn), "")])


def _cost(value: Any, fn: Callable[..., Any]) -> Variable:
    if not isinstance(value, Variable) and not _is_value(value):
        raise GradientError(
            f"the function returns {type(value).__name__}, and a gradient is that of a float scalar",
            code="E0401",
            labels=[(of_function(fn), "")],
            helps=["with has_aux=True it may return (value, anything); rs.jacobian takes arrays and structures of them"],
        )
    return as_variable(value)


def _made(fn: Callable[..., Any], what: str, transform: Callable[..., Any], given: Callable[..., Any]) -> Transformed:
    """What a transform makes of a plain function, for where it was `given`: its device and its static arguments."""
    name = f"{what}({getattr(fn, '__name__', 'fn')})"
    function = functools.wraps(fn)(transform)
    function.__dict__.pop("_value_and_grad", None)
    if not isinstance(given, Compiled):
        return Transformed(function, name)
    return Transformed(function, name, given._device, static=given._static, profile=given._profile)


def value_and_grad(fn: Callable[..., Any], argnums: Any = 0, has_aux: bool = False, *, wrt: Any = None) -> Compiled:
    """A function that returns the value of `fn`, a float scalar, and its gradient.

    argnums (or wrt): position or name of the argument, or a tuple of them; an argument may be a structure, and its gradient is one of the
    same kind. has_aux: `fn` returns (value, anything), and so does the result: ((value, anything), gradient).
    Made once per function: later calls with the same function return the same object.

    errors: those of `grad`.

    >>> f = rs.value_and_grad(lambda p, x: rs.sum((p["a"] * x - 1.0) ** 2))
    >>> f({"a": 1.0}, np.array([1.0, 2.0]))
    (np.float64(1.0), {'a': np.float64(4.0)})
    """
    if not _is_function(fn):
        raise RscanTypeError(f"value_and_grad takes a function, not {fn!r}", code="E0508", labels=[(here(), "")])
    argnums = argnums if wrt is None else wrt
    key = (tuple(argnums) if isinstance(argnums, (tuple, list)) else argnums, has_aux)
    cache = _cache_of(fn)
    if key not in cache:
        cache[key] = _made(_plain(fn), "value_and_grad", _with_gradient(_plain(fn), argnums, has_aux), fn)
    return cache[key]


class _Cache(dict[Any, Any]):
    """What was made of a function. It stays behind where the function is pickled, or it would be pickled for ever."""

    def __reduce__(self) -> Any:
        return _Cache, ()


def _cache_of(fn: Any) -> dict[Any, Any]:
    try:
        return fn.__dict__.setdefault("_value_and_grad", _Cache())
    except AttributeError:
        return {}


def _kept(fn: Any, key: Any, make: Callable[[], Any]) -> Any:
    """What was made of a compiled function before. A plain function is traced at each call: what it reads may have changed."""
    if not isinstance(fn, Compiled):
        return make()
    cache = _cache_of(fn)
    if key not in cache:
        cache[key] = make()
    return cache[key]


def _with_gradient(fn: Callable[..., Any], argnums: Any, has_aux: bool) -> Callable[..., Any]:
    def both(*args: Any, **named: Any) -> Any:
        call = _Call(fn, args, named, _listed(argnums))
        value, aux = _without_aux(call.result, has_aux, fn)
        found = derivatives.grad(_cost(value, fn), call.variables(), disconnected_inputs="ignore")
        gradients = _as_given(argnums, call.like_arguments(found))
        return call.settled(((value, aux) if has_aux else value, gradients))

    return both


def _grad_of(fn: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Transformed:
    both = _with_gradient(_plain(fn), argnums, has_aux)

    def alone(*args: Any, **named: Any) -> Any:
        value, gradients = both(*args, **named)
        return (gradients, value[1]) if has_aux else gradients

    return _made(_plain(fn), "grad", alone, fn)


def grad(cost: Any, *args: Any, **named: Any) -> Any:
    """The gradient: of a function a function, of a variable variables.

    `grad(f, argnums=0, has_aux=False)` gives the function that computes the gradient of f, a float scalar, with respect to arguments, by
    position or name: one, or a tuple of them. With has_aux, f returns (value, anything), and the result is (gradient, anything).

    `grad(cost, wrt, consider_constant=None, disconnected_inputs="raise", known_grads=None, return_disconnected="zero")` gives the
    gradient of a scalar with respect to a variable (a variable), or to a list, tuple, dict or dataclass of them (of that kind).

    - consider_constant: variables through which no gradient flows.
    - disconnected_inputs: 'raise', 'warn' or 'ignore' where the cost does not depend on a variable.
    - known_grads: variables with gradients that are given; without a cost, gradients start there.
    - return_disconnected: for such variables 'zero', 'none' (None) or 'disconnected' (`DISCONNECTED`).

        rs.grad(lambda x: rs.sum(x**2))(np.ones(3))     # an array
        rs.grad(rs.sum(x**2), x)                        # a variable

    errors: `GradientError` (E0401) of what is no float scalar (`NonScalarCostError`) or by what is no float; `DisconnectedInputError`
    (E0402); E0403 where an op has no gradient.

    >>> rs.grad(lambda x: rs.sum(x**2))(np.array([1.0, 2.0]))
    array([2., 4.])
    >>> x = rs.dscalar("x")
    >>> rs.function([x], rs.grad(x**3, x))(2.0)
    array(12.)
    """
    return _form(_grad_of, cost, args, named) if _is_function(cost) else derivatives.grad(cost, *args, **named)


def _jacobian_of(fn: Callable[..., Any], argnums: Any = 0, has_aux: bool = False, *, block_size: int | None = None) -> Transformed:
    return _slopes(fn, "jacobian", argnums, has_aux, block_size)


def _slopes(fn: Callable[..., Any], what: str, argnums: Any, has_aux: bool, block_size: int | None) -> Transformed:
    given, fn = fn, _plain(fn)

    def rows(*args: Any, **named: Any) -> Any:
        call = _Call(fn, args, named, _listed(argnums))
        value, aux = _without_aux(call.result, has_aux, fn)
        leaves, tree = _tree.flatten(value, _is_leaf)
        found = [_as_given(argnums, call.like_arguments(_rows(as_variable(v), call.variables(), block_size))) for v in leaves]
        built = tree.build(iter(found))
        return call.settled((built, aux) if has_aux else built)

    return _made(fn, what, rows, given)


def _rows(y: Variable, variables: list[Variable], block_size: int | None) -> list[Variable]:
    if not y.dtype.startswith("float"):
        # Integers do not move.
        y = cast(y, "float64") * 0.0
    return derivatives.jacobian(y, variables, disconnected_inputs="ignore", block_size=block_size)


def jacobian(expression: Any, *args: Any, **named: Any) -> Any:
    """All derivatives: of a function a function, of a variable variables. Rows are computed together, in one backward pass.

    `jacobian(f, argnums=0, has_aux=False, *, block_size=None)` gives the function that computes them for each array that f returns, in its
    structure, with respect to arguments, in theirs.

    `jacobian(expression, wrt, consider_constant=None, disconnected_inputs="raise", *, block_size=None)` gives them for an array, of shape
    `expression.shape + wrt.shape`.

    block_size: so many rows at a time; by default all of them, or, where extents are known or told by a first call, as many as 2²⁶
    elements of the largest array between allow.
    errors: those of `grad`; `RscanTypeError` (E0508) for what is no function.

    >>> rs.jacobian(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    return _form(_jacobian_of, expression, args, named) if _is_function(expression) else derivatives.jacobian(expression, *args, **named)


def _hessian_of(fn: Callable[..., Any], argnums: Any = 0, has_aux: bool = False, *, block_size: int | None = None) -> Transformed:
    return _slopes(_grad_of(fn, argnums, has_aux), "hessian", argnums, has_aux, block_size)


def hessian(cost: Any, *args: Any, **named: Any) -> Any:
    """Second derivatives: of a function a function, of a variable variables.

    `hessian(f, argnums=0, has_aux=False, *, block_size=None)` gives the function that computes those of a scalar by all pairs of arguments:
    the structure of the arguments, in each place of which it stands once more.

    `hessian(cost, wrt, consider_constant=None, disconnected_inputs="raise", *, block_size=None)` gives them for a variable, of shape
    `wrt.shape + wrt.shape`; of a list of variables, the block of each with itself. `block_size` as in `jacobian`.
    errors: those of `grad`; `RscanTypeError` (E0508) for what is no function.

    >>> rs.hessian(lambda x: rs.sum(x**3))(np.array([1.0, 2.0]))
    array([[ 6.,  0.],
           [ 0., 12.]])
    """
    return _form(_hessian_of, cost, args, named) if _is_function(cost) else derivatives.hessian(cost, *args, **named)


def _pushed(fn: Callable[..., Any], has_aux: bool) -> Callable[..., Any]:
    def push(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
        call = _Call(fn, tuple(primals), {}, list(range(len(primals))))
        value, aux = _without_aux(call.result, has_aux, fn)
        leaves, tree = _tree.flatten(value, _is_leaf)
        given = _matching(call, tangents)
        found = derivatives.jvp([as_variable(v) for v in leaves], call.variables(), given)
        out = (value, tree.build(iter(found)))
        return call.settled((*out, aux) if has_aux else out)

    return push


def _matching(call: _Call, tangents: tuple[Any, ...]) -> list[Variable]:
    """A tangent for each variable, in their order."""
    leaves = [leaf for tangent in tangents for leaf in _tree.flatten(tangent, _is_leaf)[0]]
    own = [v for _, variables in call.parts for v in variables]
    return [cast(v, w.dtype) for v, w in zip(leaves, own, strict=True) if w is not None]


def _shaped(value: Any, tree: _tree.Tree, what: str, fn: Callable[..., Any]) -> Any:
    """A value in a structure, every number an array: lists of numbers would count as arrays otherwise."""
    leaves = fitting(value, tree)
    if leaves is None:
        given = _tree.flatten(value, _is_leaf)[1].describe()
        raise _misfit(f"a {what}, {tree.describe()}, not {given}", fn)
    return tree.build(iter([v if isinstance(v, Variable) or not _is_value(v) else as_array(v) for v in leaves]))


def fitting(value: Any, tree: _tree.Tree) -> list[Any] | None:
    """The leaves of a value in the places of a structure's; None where it has another structure."""
    if tree.kind is None:
        return [value] if _is_leaf(value) or not isinstance(value, (list, tuple, dict)) else None
    if tree.kind == "dict" and (not isinstance(value, Mapping) or set(value) != set(tree.keys)):
        return None
    try:
        parts = _tree.aligned(value, _tree.Tree(tree.kind, tree.cls, tree.keys, (_tree.LEAF,) * len(tree.children)))
    except (AttributeError, TypeError, ValueError):
        return None
    found = [fitting(part, child) for part, child in zip(parts, tree.children, strict=True)]
    return None if any(leaves is None for leaves in found) else [leaf for leaves in found for leaf in leaves or ()]


def _misfit(wanted: str, fn: Callable[..., Any]) -> RscanTypeError:
    return RscanTypeError(f"a derivative along a direction takes {wanted}", code="E0508", labels=[(here(), ""), (of_function(fn), "")])


def _tuple_of(primals: Any, what: str) -> tuple[Any, ...]:
    if isinstance(primals, (tuple, list)):
        return tuple(primals)
    raise RscanTypeError(f"{what} takes a tuple of the function's arguments, not {primals!r}", code="E0508", labels=[(here(), "")])


def jvp(outputs: Any, *args: Any, **named: Any) -> Any:
    """How outputs change along a direction: the Jacobian times tangents.

    `jvp(f, primals, tangents, has_aux=False)` gives `f(*primals)` and its change where the arguments move along tangents.

    `jvp(outputs, wrt, tangents, disconnected_outputs="ignore", return_disconnected="zero")` gives the changes of variables.

        value, change = rs.jvp(f, (x,), (v,))

    A plain function is traced at each call, as JAX does; one made by `rs.compile` once for each kind of arguments. So do `vjp` and `hvp`.
    errors: those of `grad`; `RscanTypeError` (E0508) for what is no function.

    >>> value, tangent = rs.jvp(lambda x: x**2, (3.0,), (1.0,))
    >>> value, tangent
    (np.float64(9.0), np.float64(6.0))
    """
    return _form(_jvp_of, outputs, args, named) if _is_function(outputs) else derivatives.jvp(outputs, *args, **named)


def _jvp_of(fn: Callable[..., Any], primals: Any, tangents: Any, has_aux: bool = False) -> Any:
    name = f"jvp({getattr(fn, '__name__', 'fn')})"
    pushed = _kept(fn, ("jvp", has_aux), lambda: Transformed(_pushed(_plain(fn), has_aux), name, _device(fn)))
    at, along = _tuple_of(primals, "jvp"), _tuple_of(tangents, "jvp")
    if len(at) != len(along):
        raise _misfit(f"{len(at)} tangents, one for each argument, not {len(along)}", fn)
    what = "tangent with the structure of its argument"
    return pushed(at, tuple(_shaped(v, _tree.flatten(x, _is_leaf)[1], what, fn) for x, v in zip(at, along, strict=True)))


def vjp(outputs: Any, *args: Any, **named: Any) -> Any:
    """Cotangents times the Jacobian.

    `vjp(f, *primals, has_aux=False)` gives `f(*primals)` and a function that takes cotangents, in the structure of what f returns, and
    gives those of the arguments, as a tuple.

    `vjp(outputs, wrt, cotangents, consider_constant=None, disconnected_inputs="raise", return_disconnected="zero")` gives, for
    variables, what the gradient of `sum(cotangents · outputs)` is.

        value, pull = rs.vjp(f, x)
        (slope,) = pull(1.0)
    errors: those of `grad`; `RscanTypeError` (E0508) for what is no function.

    >>> value, pull = rs.vjp(lambda x: x**2, 3.0)
    >>> value, pull(1.0)
    (np.float64(9.0), (np.float64(6.0),))
    """
    return _form(_vjp_of, outputs, args, named) if _is_function(outputs) else derivatives.vjp(outputs, *args, **named)


def _pulled(fn: Callable[..., Any], has_aux: bool, device: str | None) -> tuple[Transformed, Transformed]:
    """The function itself, and what pulls cotangents back through it."""

    def pulled(primals: tuple[Any, ...], cotangent: Any) -> Any:
        call = _Call(fn, primals, {}, list(range(len(primals))))
        value, _ = _without_aux(call.result, has_aux, fn)
        leaves, given = _tree.flatten(value, _is_leaf)[0], _tree.flatten(cotangent, _is_leaf)[0]
        outs = [as_variable(v) for v in leaves]
        floats = [i for i, v in enumerate(outs) if v.dtype.startswith("float")]
        chosen, cotangents = [outs[i] for i in floats], [cast(given[i], outs[i].dtype) for i in floats]
        found = derivatives.vjp(chosen, call.variables(), cotangents, disconnected_inputs="ignore")
        return call.settled(tuple(call.like_arguments(found)))

    name = getattr(fn, "__name__", "fn")
    return Transformed(functools.wraps(fn)(lambda *args: fn(*args)), name, device), Transformed(pulled, f"vjp({name})", device)


def _vjp_of(fn: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    forward, pull = _kept(fn, ("vjp", has_aux), lambda: _pulled(_plain(fn), has_aux, _device(fn)))
    fn = _plain(fn)
    out, aux = _without_aux(forward(*primals), has_aux, fn)
    tree = _tree.flatten(out, lambda v: isinstance(v, (Variable, np.ndarray, np.generic)))[1]
    back = lambda cotangent: pull(tuple(primals), _shaped(cotangent, tree, "cotangent with the structure of the result", fn))
    return (out, back, aux) if has_aux else (out, back)


def hvp(fn: Callable[..., Any], primals: Any, tangents: Any) -> Any:
    """The Hessian of a scalar function at its arguments, times a direction, without the Hessian: how the gradient changes along it.

    `primals` and `tangents` are tuples of all arguments, and so is the result.

        (hv,) = rs.hvp(f, (x,), (v,))
    errors: those of `grad`; `RscanTypeError` (E0508) for what is no function.

    >>> rs.hvp(lambda x: rs.sum(x**3), (np.array([1.0, 2.0]),), (np.array([1.0, 0.0]),))
    (array([6., 0.]),)
    """
    if not _is_function(fn):
        raise RscanTypeError(f"hvp takes a function, not {fn!r}", code="E0508", labels=[(here(), "")])
    given = _tuple_of(primals, "hvp")
    slopes = _kept(fn, ("hvp", len(given)), lambda: _grad_of(fn, tuple(range(len(given)))))
    return _jvp_of(slopes, given, tangents)[1]
