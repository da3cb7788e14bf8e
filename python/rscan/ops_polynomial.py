"""Polynomials, given by their coefficients, the highest power first."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._args import whole
from ._spans import here
from .errors import RscanTypeError, RscanValueError
from .ops_build import vander
from .ops_contract import convolve
from .ops_create import arange, zeros
from .ops_elementwise import cast
from .ops_reduce import sum as _sum
from .ops_shape import atleast_1d, broadcast_like, concatenate, expand_dims, ravel
from .variable import Variable, as_variable, elementwise, extent, operands, result_dtype

__all__ = ["poly", "polyadd", "polyder", "polyfit", "polyint", "polymul", "polysub", "polyval"]


def _coefficients(p: Any, what: str) -> Variable:
    v = atleast_1d(p)
    if v.ndim != 1:
        raise RscanTypeError(f"{what} takes a vector of coefficients, got {v!r}", code="E0809", labels=[(here(), "")])
    return v


def polyval(p: Any, x: Any) -> Variable:
    """The values of a polynomial at x, by Horner's rule.

    rs.polyval([2.0, 0.0, 1.0], x)                  # 2·x² + 1

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `p` of another kind.

    >>> rs.polyval([1.0, 2.0, 3.0], 2.0).eval()
    array(11.)
    """
    c, v = operands((_coefficients(p, "polyval"), x))
    dtype = result_dtype(c, v)
    c, v = cast(c, dtype), cast(v, dtype)
    known = c.static_shape[0]
    out = broadcast_like(as_variable(0, dtype), v)
    if known is not None and known <= 64:
        for i in range(known):
            out = out * v + c[i]
        return out
    from .scan import scan

    rows, _ = scan(
        lambda a, y, v: y * v + a, sequences=concatenate([zeros([1], dtype), c]), outputs_info=out, non_sequences=v, name="polyval"
    )
    return rows[-1]


def _aligned(a1: Any, a2: Any, what: str) -> tuple[Variable, Variable]:
    a, b = operands((_coefficients(a1, what), _coefficients(a2, what)))
    dtype = result_dtype(a, b)
    n = elementwise("maximum", extent(a, 0), extent(b, 0))
    if None not in (a.static_shape[0], b.static_shape[0]):
        n = max(a.static_shape[0], b.static_shape[0])  # type: ignore[type-var, assignment]
    widen = lambda v: concatenate([zeros([n - extent(v, 0)], dtype), cast(v, dtype)])
    return widen(a), widen(b)


def polyadd(a1: Any, a2: Any) -> Variable:
    """The sum of two polynomials.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `a1` or `a2` of another kind.

    >>> rs.polyadd([1, 2], [1, 0, 0]).eval()
    array([1, 1, 2])
    """
    a, b = _aligned(a1, a2, "polyadd")
    return a + b


def polysub(a1: Any, a2: Any) -> Variable:
    """The difference of two polynomials.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `a1` or `a2` of another kind.

    >>> rs.polysub([1, 2], [1, 1]).eval()
    array([0, 1])
    """
    a, b = _aligned(a1, a2, "polysub")
    return a - b


def polymul(a1: Any, a2: Any) -> Variable:
    """The product of two polynomials.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `a1` or `a2` of another kind; `RscanValueError` (E0809) for
    `a1` or `a2` out of range.

    >>> rs.polymul([1, 1], [1, -1]).eval()
    array([ 1,  0, -1])
    """
    return convolve(_coefficients(a1, "polymul"), _coefficients(a2, "polymul"))


def polyder(p: Any, m: int = 1) -> Variable:
    """The m-th derivative of a polynomial.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `p` or `m` of another kind; `RscanValueError` (E0809) for
    `m` out of range.

    >>> rs.polyder([1.0, 2.0, 3.0]).eval()
    array([2., 2.])
    """
    v = _coefficients(p, "polyder")
    if whole(m, "m") < 0:
        raise RscanValueError(f"m counts derivatives, got {m}", code="E0809", labels=[(here(), "")])
    for _ in range(m):
        n = extent(v, 0)
        v = v[:-1] * cast(as_variable(n) - 1 - arange(as_variable(n) - 1), v.dtype)
    return v


def polyint(p: Any, m: int = 1, k: Any = 0) -> Variable:
    """The m-th antiderivative of a polynomial, with constants k: one, or one for each integration.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `p` or `m` of another kind, (E0206) for arrays that do not
    fit each other; `RscanValueError` (E0809) for `m` out of range.

    >>> rs.polyint([2.0, 2.0]).eval()
    array([1., 2., 0.])
    """
    v = _coefficients(p, "polyint")
    v = v if v.dtype.startswith("float") else cast(v, "float64")
    if whole(m, "m") < 0:
        raise RscanValueError(f"m counts integrations, got {m}", code="E0809", labels=[(here(), "")])
    constants = [k] * m if np.ndim(k) == 0 else list(k)
    for constant in constants[:m]:
        n = as_variable(extent(v, 0))
        v = concatenate([v / cast(n - arange(n), v.dtype), expand_dims(cast(constant, v.dtype), 0)])
    return v


def poly(seq_of_zeros: Any) -> Variable:
    """The coefficients of the polynomial with these roots, a vector of known extent, and 1 as its highest.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> rs.poly([1.0, 2.0]).eval()
    array([ 1., -3.,  2.])
    """
    roots = ravel(as_variable(seq_of_zeros))
    roots = roots if roots.dtype.startswith("float") else cast(roots, "float64")
    if roots.static_shape[0] is None:
        raise RscanTypeError(f"poly takes a vector of known extent, got {roots!r}", code="E0809", labels=[(here(), "")])
    out = as_variable(np.ones(1, roots.dtype))
    for root in roots:
        last = expand_dims(as_variable(0, roots.dtype), 0)
        out = concatenate([out, last]) - root * concatenate([last, out])
    return out


def polyfit(x: Any, y: Any, deg: int, rcond: float | None = None, full: bool = False, w: Any = None) -> Variable:
    """The coefficients of the polynomial of a degree that fits the points (x, y) best, by least squares.

    y may be a matrix, a column for each polynomial; `w` weighs the distances. There are gradients to x, y and w.

        slope, offset = rs.polyfit(x, y, 1)

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `x`, `y` or `deg` of another kind; `RscanValueError`
    (E0809) for `deg`, `full` or `rcond` out of range; `AxisError` (E0810) for an axis that is not there; `ShapeError` (E0201) where shapes
    do not broadcast; `ShapeError` (E0812) for vectors that do not fit.

    >>> rs.polyfit([0.0, 1.0, 2.0], [1.0, 3.0, 5.0], 1).eval().round(6)
    array([2., 1.])
    """
    from .linalg import lstsq

    if full:
        raise RscanValueError("polyfit gives coefficients alone", code="E0809", labels=[(here(), "")], helps=["rs.linalg.lstsq gives more"])
    if whole(deg, "deg") < 0:
        raise RscanValueError(f"a degree is not negative, got {deg}", code="E0809", labels=[(here(), "")])
    places, values = (v if v.dtype.startswith("float") else cast(v, "float64") for v in (as_variable(x), as_variable(y)))
    if places.ndim != 1 or values.ndim not in (1, 2):
        raise RscanTypeError(f"polyfit takes a vector of places, got {places!r} and {values!r}", code="E0809", labels=[(here(), "")])
    left, right = vander(places, deg + 1), values
    if w is not None:
        weight = cast(w, left.dtype)
        left = left * expand_dims(weight, 1)
        right = right * (expand_dims(weight, 1) if right.ndim == 2 else weight)
    # Columns of length 1 are better conditioned.
    scale = elementwise("sqrt", _sum(left * left, 0))
    solved = lstsq(left / scale, right, rcond)[0]
    return solved / (expand_dims(scale, 1) if solved.ndim == 2 else scale)
