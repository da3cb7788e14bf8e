"""Sums of products: einsum, convolutions, products of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._args import at_least, one_axis
from ._spans import here
from .errors import RscanValueError, ShapeError
from .indexing import diagonal
from .linalg.products import matmul, pair
from .ops_control import assert_
from .ops_create import arange, zeros
from .ops_elementwise import cast, where
from .ops_reduce import sum as _sum
from .ops_shape import concatenate, expand_dims, flip, moveaxis, reshape, stack, transpose
from .variable import Variable, as_variable, elementwise, extent, operands, result_dtype

__all__ = ["convolve", "correlate", "cross", "einsum", "matvec", "trace", "vecdot", "vecmat"]


# Einstein's sums.


def einsum(subscripts: Any, *arrays: Any, optimize: Any = True, dtype: Any = None) -> Variable:
    """Sums of products by Einstein's convention: a letter for each axis of each array, `->` and those of the result.

    Letters that the result lacks are summed over; a letter twice in one array takes its diagonal; `...` stands for axes that broadcast. Two
    arrays at a time are contracted, as products of matrices, the pair first that leaves the smallest array and costs least (of extents that
    are not known all count as equal), whatever path `optimize` names; `optimize=False`: from left to right. Lists of integers may stand
    for letters: behind each array those of its axes, and last those of the result.

        rs.einsum("bij,bjk->bik", a, b)
        rs.einsum(a, [0, 1], b, [1, 2], [0, 2])

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0806) for a dtype that is not there; `RscanValueError` (E0809) for
    `subscripts`, `arrays` or `optimize` out of range; `ShapeError` (E0812) for pieces that do not fit.

    >>> rs.einsum("ij,jk->ik", np.ones((2, 3)), np.ones((3, 2))).eval()
    array([[3., 3.],
           [3., 3.]])
    """
    if not isinstance(subscripts, str):
        subscripts, arrays = _of_lists([subscripts, *arrays])
    items = operands([as_variable(a) for a in arrays])
    common = result_dtype(*items) if dtype is None else dtype
    items = [cast(v, common) for v in items]
    terms, out = _letters(subscripts, items)
    parts = [_simple(v, t, out, [u for k, u in enumerate(terms) if k != i]) for i, (v, t) in enumerate(zip(items, terms, strict=True))]
    while len(parts) > 1:
        i, j = _cheapest(parts, out) if optimize else (0, 1)
        (b, tb), (a, ta) = parts.pop(j), parts.pop(i)
        kept = out + "".join(t for _, t in parts)
        joined = _contract(a, ta, b, tb, kept)
        parts.insert(0 if not optimize else len(parts), joined)
    v, term = parts[0]
    gone = [k for k, c in enumerate(term) if c not in out]
    if gone:
        v, term = _sum(v, tuple(gone), dtype=common if v.dtype != "bool" else None), "".join(c for c in term if c in out)
    return transpose(v, [term.index(c) for c in out]) if term != out else v


def _of_lists(given: list[Any]) -> tuple[str, tuple[Any, ...]]:
    """The letters of arrays that are each followed by a list of numbers, and of the list behind them; and the arrays."""
    lists = [*given[1::2], *([given[-1]] if len(given) % 2 else [])]
    fits = lambda i: i is Ellipsis or (isinstance(i, (int, np.integer)) and 0 <= i < len(_NUMBERED))
    if len(given) < 2 or not all(isinstance(term, (list, tuple)) and all(map(fits, term)) for term in lists):
        text = "einsum takes its letters as one string first, or a list of integers from 0 to 51 behind each array"
        helps = ['rs.einsum("ij,jk->ik", a, b)', "rs.einsum(a, [0, 1], b, [1, 2], [0, 2])"]
        raise RscanValueError(text, code="E0809", labels=[(here(), "")], helps=helps)
    terms = ["".join("..." if i is Ellipsis else _NUMBERED[i] for i in term) for term in lists]
    left = ",".join(terms[: len(given) // 2])
    return f"{left}->{terms[-1]}" if len(given) % 2 else left, tuple(given[: len(given) // 2 * 2 : 2])


_NUMBERED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

#: Letters for the axes of `...`, which no user writes.
_DOTS = "αβγδεζηθικλμνξοπρστυφχψω"


def _letters(subscripts: str, items: list[Variable]) -> tuple[list[str], str]:
    """The letters of each array and of the result, those of `...` written out."""
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(items):
        raise RscanValueError(f"einsum {subscripts!r} names {len(terms)} arrays, got {len(items)}", code="E0809", labels=[(here(), "")])
    widths = []
    for term, v in zip(terms, items, strict=True):
        names = term.replace("...", "", 1)
        if not all(c.isascii() and c.isalpha() for c in names):
            raise RscanValueError(f"einsum {subscripts!r}: {term!r} is not made of letters", code="E0809", labels=[(here(), "")])
        extra = v.ndim - len(names)
        if extra < 0 or (extra and "..." not in term):
            raise RscanValueError(f"einsum {subscripts!r}: {term!r} for an array of {v.ndim} axes", code="E0809", labels=[(here(), "")])
        widths.append(extra if "..." in term else 0)
    most = max(widths, default=0)
    dots = _DOTS[:most]
    terms = [t.replace("...", dots[most - w :]) for t, w in zip(terms, widths, strict=True)]
    counts = "".join(terms)
    if not arrow:
        return terms, dots + "".join(sorted(c for c in set(counts) if counts.count(c) == 1 and c not in dots))
    out = right.replace("...", dots)
    if len(set(out)) < len(out) or not set(out) <= set(counts):
        raise RscanValueError(
            f"einsum {subscripts!r}: the letters of the result occur on the left, each once", code="E0809", labels=[(here(), "")]
        )
    return terms, out


def _simple(v: Variable, term: str, out: str, others: list[str]) -> tuple[Variable, str]:
    """Without letters that occur twice, and without those that nothing else needs."""
    for letter in dict.fromkeys(term):
        while term.count(letter) > 1:
            first = term.index(letter)
            second = term.index(letter, first + 1)
            m, n = v.static_shape[first], v.static_shape[second]
            if None not in (m, n) and m != n:
                raise ShapeError(f"einsum: `{letter}` stands for extents {m} and {n}", code="E0812", labels=[(here(), "")])
            v = diagonal(v, 0, first, second)
            term = "".join(c for k, c in enumerate(term) if k not in (first, second)) + letter
    elsewhere = set(out).union(*others)
    gone = [k for k, c in enumerate(term) if c not in elsewhere]
    if gone and v.dtype.startswith("float"):
        v, term = _sum(v, tuple(gone)), "".join(c for c in term if c in elsewhere)
    return v, term


#: What an extent that is not known counts as.
_UNKNOWN = 32


def _cheapest(parts: list[tuple[Variable, str]], out: str) -> tuple[int, int]:
    """The pair whose product frees most memory, and of these the one that costs least."""
    size: dict[str, int] = {}
    for v, term in parts:
        for c, n in zip(term, v.static_shape, strict=True):
            size[c] = max(size.get(c, 1), _UNKNOWN if n is None else n)
    of = lambda letters: int(np.prod([float(size[c]) for c in letters])) if letters else 1
    best = None
    for i in range(len(parts)):
        for j in range(i + 1, len(parts)):
            a, b = set(parts[i][1]), set(parts[j][1])
            kept = set(out).union(*(t for k, (_, t) in enumerate(parts) if k not in (i, j)))
            cost = (of((a | b) & kept) - of(a) - of(b), of(a | b), i, j)
            best = cost if best is None or cost < best else best
    assert best is not None
    return best[2], best[3]


def _contract(a: Variable, ta: str, b: Variable, tb: str, kept: str) -> tuple[Variable, str]:
    """The product of two arrays, summed over the letters that are not kept."""
    for c in set(ta) & set(tb):
        m, n = a.static_shape[ta.index(c)], b.static_shape[tb.index(c)]
        if None not in (m, n) and m != n and 1 not in (m, n):
            raise ShapeError(f"einsum: `{c}` stands for extents {m} and {n}", code="E0812", labels=[(here(), "")])
    # An extent of 1 may broadcast, which products of matrices do not in the axes that are summed over.
    mixed = any((a.static_shape[ta.index(c)] == 1) != (b.static_shape[tb.index(c)] == 1) for c in set(ta) & set(tb))
    shared = [c for c in ta if c in tb and c in kept]
    summed = [c for c in ta if c in tb and c not in kept]
    left, right = [c for c in ta if c not in tb], [c for c in tb if c not in ta]
    if mixed or not summed or any(c in _DOTS for c in summed):
        return _multiplied(a, ta, b, tb, kept)
    rows = transpose(a, [ta.index(c) for c in (*shared, *left, *summed)])
    columns = transpose(b, [tb.index(c) for c in (*shared, *summed, *right)])
    n = len(shared)
    rest_a, rest_b = rows.shape[n : n + len(left)], columns.shape[n + len(summed) :]
    # Each with its own inner extents: where they turn out to differ, the product says so.
    first = reshape(rows, [*rows.shape[:n], _times(rest_a), _times(rows.shape[n + len(left) :])])
    second = reshape(columns, [*columns.shape[:n], _times(columns.shape[n : n + len(summed)]), _times(rest_b)])
    wide = matmul(first, second)
    return reshape(wide, [*wide.shape[:n], *rest_a, *rest_b]), "".join([*shared, *left, *right])


def _multiplied(a: Variable, ta: str, b: Variable, tb: str, kept: str) -> tuple[Variable, str]:
    letters = ta + "".join(c for c in tb if c not in ta)
    product = _aligned(a, ta, letters) * _aligned(b, tb, letters)
    gone = tuple(k for k, c in enumerate(letters) if c not in kept)
    if gone:
        product = _sum(product, gone, dtype=product.dtype)
    return product, "".join(c for c in letters if c in kept)


def _aligned(v: Variable, term: str, letters: str) -> Variable:
    v = transpose(v, [term.index(c) for c in letters if c in term])
    missing = tuple(k for k, c in enumerate(letters) if c not in term)
    return expand_dims(v, missing) if missing else v


def _times(extents: Any) -> Any:
    out: Any = 1
    for n in extents:
        out = out * n
    return out


# Convolutions.


def convolve(a: Any, v: Any, mode: str = "full") -> Variable:
    """The sums of products of a vector with another one that is reversed and moved along it.

    Wherever they meet ("full"), as many as the longer one has ("same"), or where they lie upon each other ("valid").

        rs.convolve(signal, kernel, "same")

    errors: `RscanTypeError` (E0805) for what is no number or array; `RscanValueError` (E0809) for `a`, `v` or `mode` out of range.

    >>> rs.convolve([1.0, 2.0, 3.0], [1.0, 1.0]).eval()
    array([1., 3., 5., 3.])
    """
    x, y = _vectors(a, v, "convolve")
    return _slid(x, flip(y), mode, True)


def correlate(a: Any, v: Any, mode: str = "valid") -> Variable:
    """The sums of products of a vector with another one that is moved along it. Modes as for `convolve`.

    errors: `RscanTypeError` (E0805) for what is no number or array; `RscanValueError` (E0809) for `a`, `v` or `mode` out of range.

    >>> rs.correlate([1.0, 2.0, 3.0], [1.0, 1.0]).eval()
    array([3., 5.])
    """
    x, y = _vectors(a, v, "correlate")
    return _slid(x, y, mode, False)


def _vectors(a: Any, v: Any, what: str) -> tuple[Variable, Variable]:
    x, y = pair(a, v)
    if x.ndim != 1 or y.ndim != 1:
        helps = ["of images: sum(k[i, j] * x[i : i + h, j : j + w] …), see docs/numpy.md"] if x.ndim > 1 else []
        raise RscanValueError(f"{what} takes vectors, got {x!r} and {y!r}", code="E0809", labels=[(here(), "")], helps=helps)
    if 0 in (x.static_shape[0], y.static_shape[0]):
        raise RscanValueError(f"{what} takes vectors with elements", code="E0809", labels=[(here(), "")])
    return x, y


def _larger(m: Any, n: Any) -> Any:
    return max(m, n) if isinstance(m, int) and isinstance(n, int) else elementwise("maximum", m, n)


def _smaller(m: Any, n: Any) -> Any:
    return min(m, n) if isinstance(m, int) and isinstance(n, int) else elementwise("minimum", m, n)


def _slid(x: Variable, y: Variable, mode: str, commutes: bool) -> Variable:
    if mode not in ("full", "same", "valid"):
        raise RscanValueError(f"the modes are 'full', 'same' and 'valid', not {mode!r}", code="E0809", labels=[(here(), "")])
    m, n = extent(x, 0), extent(y, 0)
    # A window of y's length at each place; y is the shorter one where that is known.
    if commutes and isinstance(m, int) and isinstance(n, int) and n > m:
        x, y, m, n = flip(y), flip(x), n, m
    around = zeros([n - 1], x.dtype)
    padded = concatenate([around, x, around])
    windows = padded[expand_dims(arange(m + n - 1), 1) + arange(n)]
    full = matmul(windows, y)
    if mode == "full":
        return full
    short, long = _smaller(m, n), _larger(m, n)
    if mode == "valid":
        return full[short - 1 : long]
    swapped = not commutes and isinstance(m, int) and isinstance(n, int) and n > m
    start = short // 2 if swapped else (short - 1) // 2
    if not commutes and not (isinstance(m, int) and isinstance(n, int)):
        start = where(elementwise("lt", m, n), short // 2, (short - 1) // 2)
    return full[start : start + long]


# Products of vectors.


def vecdot(x1: Any, x2: Any, axis: int = -1) -> Variable:
    """The sums of products along an axis.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `x1`, `x2` or `axis` of another kind; `AxisError` (E0810)
    for an axis that is not there; `ShapeError` (E0201) where shapes do not broadcast.

    >>> rs.vecdot([[1, 2], [3, 4]], [1, 1]).eval()
    array([3, 7])
    """
    a, b = pair(at_least(x1, 1, "vecdot"), at_least(x2, 1, "vecdot"))
    product = moveaxis(a, one_axis(axis, a.ndim), -1) * moveaxis(b, one_axis(axis, b.ndim), -1)
    return _sum(product, -1, dtype=product.dtype)


def matvec(x1: Any, x2: Any) -> Variable:
    """Matrices times vectors, in the last two axes and the last one.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `x1` or `x2` of another kind; `ShapeError` (E0208) where
    extents of a product differ.

    >>> rs.matvec([[1, 2], [3, 4]], [1, 1]).eval()
    array([3, 7])
    """
    return matmul(at_least(x1, 2, "matvec"), expand_dims(at_least(x2, 1, "matvec"), -1))[..., 0]


def vecmat(x1: Any, x2: Any) -> Variable:
    """Vectors times matrices, in the last axis and the last two.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `x1` or `x2` of another kind; `ShapeError` (E0208) where
    extents of a product differ.

    >>> rs.vecmat([1, 1], [[1, 2], [3, 4]]).eval()
    array([4, 6])
    """
    return matmul(expand_dims(at_least(x1, 1, "vecmat"), -2), at_least(x2, 2, "vecmat"))[..., 0, :]


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Variable:
    """The sum of a diagonal over two axes.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `a`, `offset`, `axis2` or `axis1` of another kind, (E0806)
    for a dtype that is not there; `AxisError` (E0810) for an axis that is not there.

    >>> rs.trace([[1, 2], [3, 4]]).eval()
    array(5)
    """
    return _sum(diagonal(at_least(a, 2, "trace"), offset, axis1, axis2), -1, dtype=dtype)


def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Variable:
    """The vector product along axes of extent 3; of vectors of 2 elements, the third element of it. An extent that is not known is 3.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for arguments of another kind; `AxisError` (E0810) for an axis
    that is not there; `ShapeError` (E0812) for pieces that do not fit.

    >>> rs.cross([1, 0, 0], [0, 1, 0]).eval()
    array([0, 0, 1])
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = operands((a, b))
    x, y = (moveaxis(at_least(v, 1, "cross"), at, -1) for v, at in ((x, axisa), (y, axisb)))
    sizes = x.static_shape[-1], y.static_shape[-1]
    if not set(sizes) <= {2, 3, None}:
        raise ShapeError(f"cross takes axes of 2 or 3 elements, got {x!r} and {y!r}", code="E0812", labels=[(here(), "")])
    x, y = _of_three(x), _of_three(y)
    part = lambda v, i: v[..., 0] * 0 if i == 2 and v.static_shape[-1] == 2 else v[..., i]
    third = part(x, 0) * part(y, 1) - part(x, 1) * part(y, 0)
    if sizes == (2, 2):
        return third
    first = part(x, 1) * part(y, 2) - part(x, 2) * part(y, 1)
    second = part(x, 2) * part(y, 0) - part(x, 0) * part(y, 2)
    return moveaxis(stack([first, second, third], -1), -1, axisc)


def _of_three(v: Variable) -> Variable:
    """Where its last extent is not known it is 3."""
    if v.static_shape[-1] is not None:
        return v
    return assert_(v, elementwise("eq", v.shape[-1], 3), message="cross: an axis of unknown extent that has 2 or 3 elements, counted as 3")
