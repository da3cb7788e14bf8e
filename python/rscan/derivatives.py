"""Derivatives of expressions: `grad`, its two directions `vjp` and `jvp`, `jacobian`, `hessian`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from . import _native, _tree
from ._spans import here
from ._tracing import expected_extents
from .config import chosen_passes
from .errors import DisconnectedInputError, GradientError
from .ops import arange, broadcast_to, cast, expand_dims, eye, moveaxis, reshape, zeros_like
from .scan import scan
from .variable import Variable, as_variable, family_of, wrap

__all__ = ["DISCONNECTED", "Lop", "Rop", "grad", "hessian", "jacobian", "jvp", "vjp"]


class _Disconnected:
    """The derivative of something that a cost does not depend on."""

    def __repr__(self) -> str:
        return "DISCONNECTED"


DISCONNECTED = _Disconnected()


def grad(
    cost: Any,
    wrt: Any,
    consider_constant: Any = None,
    disconnected_inputs: str = "raise",
    known_grads: Mapping[Any, Any] | None = None,
    return_disconnected: str = "zero",
) -> Any:
    """The gradient of a scalar with respect to a variable (a variable), or to a structure of them (of that kind).

    consider_constant: variables through which no gradient flows.
    disconnected_inputs: 'raise', 'warn' or 'ignore' where the cost does not depend on a variable.
    known_grads: variables with gradients that are given; without a cost, gradients start there.
    return_disconnected: for such variables 'zero', 'none' (None) or 'disconnected' (`DISCONNECTED`).
    """
    span = here()
    known = _pairs(known_grads)
    if cost is None and not known:
        raise GradientError("a gradient needs a cost, or known_grads to start from", code="E0401", labels=[(span, "")])
    variables = _variables(wrt, span)
    family = family_of(variables)
    start = None if cost is None else as_variable(cost, family=family)
    found = _native.grad(
        None if start is None else start._v,
        [v._v for v in variables],
        [v._v for v in _listed(consider_constant)],
        [(k._v, v._v) for k, v in known],
        span,
        chosen_passes(),
    )
    missing = Missing(disconnected_inputs, return_disconnected, start, span)
    return _like(wrt, [missing.gradient(v, g, family) for v, g in zip(variables, found, strict=True)])


def vjp(
    outputs: Any,
    wrt: Any,
    cotangents: Any,
    consider_constant: Any = None,
    disconnected_inputs: str = "raise",
    return_disconnected: str = "zero",
) -> Any:
    """Cotangents times the Jacobian of outputs with respect to `wrt`: what the gradient of `sum(cotangents · outputs)` is."""
    span = here()
    outs, variables = _listed(outputs), _variables(wrt, span)
    family = family_of([*outs, *variables])
    given = [as_variable(v, family=family) for v in _listed(cotangents)]
    constants = [v._v for v in _listed(consider_constant)]
    found = _native.vjp([v._v for v in outs], [v._v for v in given], [v._v for v in variables], constants, [], span, chosen_passes())
    missing = Missing(disconnected_inputs, return_disconnected, outs[0] if outs else None, span)
    return _like(wrt, [missing.gradient(v, g, family) for v, g in zip(variables, found, strict=True)])


def jvp(outputs: Any, wrt: Any, tangents: Any, disconnected_outputs: str = "ignore", return_disconnected: str = "zero") -> Any:
    """The Jacobian of outputs with respect to `wrt`, times tangents: how outputs change where `wrt` moves that way."""
    span = here()
    outs, variables = _variables(outputs, span), _variables(wrt, span)
    family = family_of([*outs, *variables])
    given = [as_variable(v, family=family) for v in _listed(tangents)]
    found = _native.jvp([v._v for v in outs], [v._v for v in variables], [v._v for v in given], span, chosen_passes())
    missing = Missing(disconnected_outputs, return_disconnected, None, span)
    return _like(outputs, [missing.gradient(v, g, family) for v, g in zip(outs, found, strict=True)])


def Lop(f: Any, wrt: Any, eval_points: Any, consider_constant: Any = None, disconnected_inputs: str = "raise") -> Any:
    """`vjp` under Theano's name.

    errors: `RscanTypeError` (E0805) for what is no number or array; `GradientError` (E0809) for `disconnected_inputs` out of range, (E0401)
    for what has no derivative, (E0404) for vectors that do not fit; `DisconnectedInputError` (E0402) where nothing depends on it.

    >>> x = rs.dvector("x")
    >>> rs.function([x], rs.Lop(x**2, x, rs.ones_like(x)))([1.0, 2.0])
    array([2., 4.])
    """
    return vjp(f, wrt, eval_points, consider_constant, disconnected_inputs)


def Rop(f: Any, wrt: Any, eval_points: Any) -> Any:
    """`jvp` under Theano's name.

    errors: `RscanTypeError` (E0805) for what is no number or array; `GradientError` (E0401) for what has no derivative, (E0404) for vectors
    that do not fit.

    >>> x = rs.dvector("x")
    >>> rs.function([x], rs.Rop(x**2, x, rs.ones_like(x)))([1.0, 2.0])
    array([2., 4.])
    """
    return jvp(f, wrt, eval_points)


#: Elements of one array that rows of a Jacobian may take together, where extents are known: 512 MiB of float64.
ROOM = 1 << 26


def jacobian(
    expression: Any,
    wrt: Any,
    consider_constant: Any = None,
    disconnected_inputs: str = "raise",
    *,
    block_size: int | None = None,
) -> Any:
    """All derivatives of an array: of shape `expression.shape + wrt.shape` and dtype of `wrt`. Rows are computed together, in one backward
    pass; where `wrt` has no more elements than the array, columns are, in a forward pass. What extents do not tell, the first call of a
    compiled function does.

    block_size: so many rows at a time; by default all of them, or, where extents are known or told by a first call, as many as 2²⁶
    elements of the largest array between allow.
    """
    y = as_variable(expression)
    span = here()
    variables = _variables(wrt, span)
    if block_size is not None and (isinstance(block_size, bool) or not isinstance(block_size, int) or block_size < 1):
        raise GradientError(f"block_size is a number of rows, at least 1, not {block_size!r}", code="E0809", labels=[(span, "")])
    if y.ndim == 0 or not y.dtype.startswith("float"):
        return grad(y, wrt, consider_constant, disconnected_inputs)
    found = {}
    if consider_constant is None and block_size is None and _are_few(y, variables):
        found = {k: _pushed(y, v) for k, v in enumerate(variables)}
    others = [v for k, v in enumerate(variables) if found.get(k) is None]
    rows = iter(_pulled(y, others, consider_constant, disconnected_inputs, block_size) if others else [])
    return _like(wrt, [next(rows) if found.get(k) is None else found[k] for k in range(len(variables))])


def _are_few(y: Variable, variables: list[Variable]) -> bool:
    """True where the derivatives by all elements of variables take no more, pushed forwards together, than those of all elements of y,
    pulled backwards: as many passes need no memory of the steps."""
    m, *n = _expected_sizes([y._v, *(v._v for v in variables)])
    few = m is not None and all(n) and sum(filter(None, n)) <= m
    return few and all(_may_be_pushed(y, v) for v in variables)


def _may_be_pushed(y: Variable, v: Variable) -> bool:
    return v.dtype.startswith("float") and _fitting_block(v, [v, y]) is None


def _expected_sizes(variables: list[_native.Var]) -> list[int | None]:
    """Numbers of elements, as they are known, or in the call for which a function is traced."""
    shapes = _native.expected_shapes(variables, expected_extents())
    return [None if None in shape else math.prod(n for n in shape if n is not None) for shape in shapes]


def _pushed(y: Variable, v: Variable) -> Variable | None:
    """All derivatives of y by v, in forward mode; None where y does not depend on v."""
    span = here()
    directions = _shaped(eye(v.size, dtype=v.dtype), v)
    direction = wrap(_native.row(directions._v, span), v._family)
    (found,) = _native.jvp([y._v], [v._v], [direction._v], span, chosen_passes())
    if found is None:
        return None
    (columns,) = _of_all_rows([wrap(found, y._family)], direction, directions, units=v.ndim == 1)
    # As a gradient, it has the dtype of what it is taken by, whichever way is the shorter.
    return cast(reshape(moveaxis(columns, 0, -1), [*y.shape, *v.shape]), v.dtype)


def _shaped(rows: Variable, like: Variable) -> Variable:
    """Rows of as many elements as an array has, in its shape."""
    return rows if like.ndim == 1 else reshape(rows, [rows.shape[0], *like.shape])


def _pulled(
    y: Variable, variables: list[Variable], consider_constant: Any, disconnected_inputs: str, block_size: int | None
) -> list[Variable]:
    """All derivatives of y by variables, in reverse mode."""
    size, block = y.size, block_size or _fitting_block(y, variables)

    def rows_of(seeds: Variable, units: bool = False) -> list[Variable]:
        return _rows_of_cotangents(y, variables, _shaped(seeds, y), consider_constant, disconnected_inputs, units)

    rows = rows_of(eye(size, dtype=y.dtype), y.ndim == 1) if block is None else _in_blocks(rows_of, size, block, y.dtype)
    return [reshape(r, [*y.shape, *v.shape]) if y.ndim > 1 else r for r, v in zip(rows, variables, strict=True)]


def _fitting_block(y: Variable, variables: list[Variable]) -> int | None:
    """How many rows fit into the room, or None where all do, or extents are not known."""
    between = _native.recent([y._v], min(v._v.key[0] for v in variables))
    size, *others = _expected_sizes([y._v, *between])
    largest = max(n or 1 for n in [size, *others])
    return None if size is None or size * largest <= ROOM else max(1, ROOM // largest)


def _in_blocks(rows_of: Callable[[Variable], list[Variable]], size: Any, block: int, dtype: str) -> list[Variable]:
    """The rows of a Jacobian, so many at a time."""

    def one(k: Variable) -> list[Variable]:
        number = arange(block)[:, None] + k * block
        return rows_of(cast(number == arange(size), dtype))

    found, _ = scan(one, sequences=arange((size + block - 1) // block), name="jacobian", return_list=True)
    return [reshape(r, [r.shape[0] * block, *(r.shape[axis] for axis in range(2, r.ndim))])[:size] for r in found]


def _rows_of_cotangents(
    y: Variable, variables: list[Variable], seeds: Variable, consider_constant: Any, disconnected_inputs: str, units: bool
) -> list[Variable]:
    """The cotangents of variables for each cotangent of y; of units, what is known to be zero stays zero."""
    span = here()
    seed = wrap(_native.row(seeds._v, span), y._family)
    return _of_all_rows(vjp(y, variables, seed, consider_constant, disconnected_inputs), seed, seeds, units)


def _of_all_rows(values: list[Variable], row: Variable, rows: Variable, units: bool) -> list[Variable]:
    """Values in terms of a row, for each of the rows, which may be the unit vectors."""
    outputs = [v._v for v in values]
    found = _native.vmap_units(outputs, row._v, rows._v, here()) if units else _native.vmap(outputs, [(row._v, rows._v)], here())
    all_rows = [(wrap(v, values[0]._family), varies) for v, varies in found]
    return [v if varies else broadcast_to(expand_dims(v, 0), [rows.shape[0], *v.shape]) for v, varies in all_rows]


def hessian(
    cost: Any, wrt: Any, consider_constant: Any = None, disconnected_inputs: str = "raise", *, block_size: int | None = None
) -> Any:
    """Second derivatives of a scalar, of shape `wrt.shape + wrt.shape`; of a list of variables, the block of each with itself. `block_size`
    as in `jacobian`."""
    variables = _variables(wrt, here())
    firsts = grad(cost, variables, consider_constant, disconnected_inputs)
    found = []
    for g, v in zip(firsts, variables, strict=True):
        narrow = consider_constant is None and block_size is None and _may_be_pushed(g, v)
        square = _pushed(g, v) if narrow else None
        found.append(jacobian(g, v, consider_constant, "ignore", block_size=block_size) if square is None else square)
    return _like(wrt, found)


class Missing:
    """What stands for the gradient of a variable that is not connected."""

    action: str
    instead: str
    cost: Variable | None
    span: int

    def __init__(self, action: str, instead: str, cost: Variable | None, span: int) -> None:
        _one_of("disconnected_inputs", action, ("raise", "warn", "ignore"), span)
        _one_of("return_disconnected", instead, ("zero", "none", "disconnected"), span)
        self.action, self.instead, self.cost, self.span = action, instead, cost, span

    def gradient(self, variable: Variable, found: _native.Var | None, family: type[Variable]) -> Any:
        if found is not None:
            return wrap(found, family)
        if self.action != "ignore":
            error = self._error(variable)
            if self.action == "raise":
                raise error
            warnings.warn(str(error), stacklevel=3)
        if self.instead == "none":
            return None
        if self.instead == "disconnected":
            return DISCONNECTED
        return zeros_like(variable, variable.dtype if variable.dtype.startswith("float") else "float64")

    def _error(self, variable: Variable) -> DisconnectedInputError:
        name = variable._describe()
        cost = [] if self.cost is None else [(self.cost._v.span, "the cost")]
        indexed = ["each x[i] is a variable of its own: name it, `x0 = x[0]`, and use x0; or rs.grad(cost, x)[i]"]
        return DisconnectedInputError(
            f"the cost does not depend on `{name}`, or only through operations without a derivative",
            code="E0402",
            labels=[(self.span, "the gradient is asked for here"), *cost, (variable._v.span, f"`{name}` is made here")],
            helps=[*(indexed if variable._origin is not None else []), 'if that is meant: disconnected_inputs="ignore" gives zeros'],
        )


def _one_of(name: str, value: str, allowed: tuple[str, ...], span: int) -> None:
    if value not in allowed:
        raise GradientError(f"{name} is one of {', '.join(map(repr, allowed))}, not {value!r}", code="E0809", labels=[(span, "")])


def _pairs(known: Any) -> list[tuple[Variable, Variable]]:
    items = () if known is None else known.items() if isinstance(known, Mapping) else known
    unfit = [key for key, _ in items if not isinstance(key, Variable)]
    if unfit:
        raise GradientError(f"the keys of known_grads are variables, not {unfit[0]!r}", code="E0809", labels=[(here(), "")])
    return [(key, as_variable(value, family=key._family)) for key, value in items]


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    items = value if isinstance(value, (list, tuple)) else [value]
    return [v if isinstance(v, Variable) else as_variable(v) for v in items]


def _variables(value: Any, span: int) -> list[Variable]:
    items = _tree.flatten(value, lambda v: isinstance(v, Variable))[0]
    for item in items:
        if not isinstance(item, Variable):
            raise GradientError(f"derivatives are taken with respect to variables, not {item!r}", code="E0401", labels=[(span, "")])
    return items


def _like(wrt: Any, found: list[Any]) -> Any:
    """The results in the form in which the variables were given."""
    return _tree.flatten(wrt, lambda v: isinstance(v, Variable))[1].build(iter(found))
