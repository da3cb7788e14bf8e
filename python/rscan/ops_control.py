"""Choice, checks, and what holds gradients back."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _tree
from ._spans import here
from .errors import RscanTypeError
from .ops_elementwise import cast
from .variable import Variable, apply, as_variable, operands, result_dtype

__all__ = ["assert_", "consider_constant", "disconnected_grad", "grad_clip", "ifelse", "stop_gradient"]


def ifelse(condition: Any, a: Any, b: Any) -> Any:
    """a where the scalar condition is true, else b; only that one is computed. Of structures (dicts, lists, tuples, dataclasses) each
    item by item.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `condition`, `a` or `b` of another kind, (E0220) for
    branches that differ.

    >>> x = rs.dscalar("x")
    >>> rs.function([x], rs.ifelse(x > 0, rs.log(x), 0.0))(-1.0)
    array(0.)
    """
    (first, tree), (second, other) = _tree.flatten(a, _is_item), _tree.flatten(b, _is_item)
    if tree.kind is not None or other.kind is not None:
        if not _tree.same(tree, other):
            text = f"the branches of ifelse are {tree.describe()} and {other.describe()}"
            raise RscanTypeError(text, code="E0809", labels=[(here(), "")], helps=["both have the same structure"])
        second = second if tree == other else _tree.aligned(b, tree)
        return tree.build(iter([ifelse(condition, x, y) for x, y in zip(first, second, strict=True)]))
    if a is None and b is None:
        return None
    if callable(a) or callable(b):
        raise RscanTypeError(
            "ifelse takes the values of its branches, not functions",
            code="E0809",
            labels=[(here(), "")],
            helps=["rs.ifelse(c, f(x), g(x)) computes the one that is taken alone"],
        )
    chooser = cast(condition, "bool")
    if chooser.ndim:
        raise RscanTypeError(
            f"the condition of ifelse is a scalar, got {chooser!r}",
            code="E0809",
            labels=[(here(), "")],
            helps=["rs.where chooses per element"],
        )
    taken, left = operands((a, b))
    if taken.dtype != left.dtype:
        dtype = result_dtype(taken, left)
        taken, left = cast(taken, dtype), cast(left, dtype)
    return apply("ifelse", {}, chooser, taken, left)


def _is_item(value: Any) -> bool:
    return isinstance(value, (Variable, np.ndarray, np.generic))


def stop_gradient(x: Any) -> Any:
    """x, through which no gradient flows. Of structures (dicts, lists, tuples, dataclasses) each item.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> x = rs.dscalar("x")
    >>> rs.function([x], rs.grad(x * rs.consider_constant(x), x))(3.0)
    array(3.)
    """
    leaves, tree = _tree.flatten(x, _is_item)
    if tree.kind == "list" and not any(_is_item(leaf) for leaf in leaves):  # numbers are an array
        return apply("stop_gradient", {}, as_variable(x))
    return tree.build(apply("stop_gradient", {}, as_variable(leaf)) for leaf in leaves)


disconnected_grad = stop_gradient
consider_constant = stop_gradient


def grad_clip(x: Any, low: float, high: float) -> Variable:
    """x; the gradient that flows through is clipped to [low, high].

    errors: `RscanTypeError` (E0805) for what is no number or array; `RscanValueError` (E0406) for bounds that are not ordered.

    >>> x = rs.dscalar("x")
    >>> rs.function([x], rs.grad(rs.grad_clip(x, -1, 1) ** 2, x))(3.0)
    array(1.)
    """
    return apply("grad_clip", {"low": float(low), "high": float(high)}, as_variable(x))


def assert_(x: Any, *conditions: Any, message: str = "an assertion does not hold") -> Variable:
    """x, where every condition is true everywhere when the function runs; else an error with the message.

    errors: `RscanTypeError` (E0805) for what is no number or array; `AssertionFailedError` (E0301), when it runs, where a condition does
    not hold.

    >>> x = rs.dscalar("x")
    >>> f = rs.function([x], rs.sqrt(rs.assert_(x, x >= 0, message="x is negative")))
    >>> f(4.0)
    array(2.)
    >>> try:
    ...     f(-1.0)
    ... except AssertionError as error:
    ...     print(error.title)
    an assertion failed: x is negative
    """
    return apply("assert", {"message": message}, as_variable(x), *[cast(c, "bool") for c in conditions])
