"""Arrays from lists, ranges, and positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._args import at_least, whole
from ._spans import here
from .config import config
from .errors import RscanTypeError, RscanValueError
from .indexing import nonzero
from .ops_create import arange, diag, linspace, tri, zeros
from .ops_elementwise import cast, where
from .ops_shape import broadcast_arrays, broadcast_to, expand_dims, moveaxis, ravel, size, stack
from .variable import Variable, as_variable, dtype_name, elementwise, extent, operands

__all__ = [
    "array", "asanyarray", "asarray", "bartlett", "blackman", "diag_indices", "diag_indices_from", "diagflat", "fill_diagonal",
    "fromfunction", "geomspace", "hamming", "hanning", "indices", "ix_", "logspace", "meshgrid", "tril_indices", "tril_indices_from",
    "triu_indices", "triu_indices_from", "vander",
]  # fmt: skip


def _common(value: Any) -> Any:
    """Nested lists as one variable; numbers take the dtype of what they are listed with."""
    if isinstance(value, (list, tuple)) and _holds_variable(value):
        return stack([_common(v) for v in value])
    return value


def _holds_variable(value: Any) -> bool:
    return isinstance(value, Variable) or (isinstance(value, (list, tuple)) and any(map(_holds_variable, value)))


def array(object: Any, dtype: Any = None, copy: Any = None, ndmin: int = 0, *, order: str | None = "K") -> Variable:
    """A variable of a number, an array, or nested lists of numbers, arrays and variables. (`copy` and `order` have no effect.)

    rs.array([[x, 0.0], [y, 1.0]])

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `ndmin` of another kind, (E0806) for a dtype that is not
    there.

    >>> x = rs.dscalar("x")
    >>> rs.function([x], rs.array([[x, 0], [0, x**2]]))(3.0)
    array([[3., 0.],
           [0., 9.]])
    """
    v = as_variable(_common(object)) if dtype is None else cast(_common(object), dtype)
    missing = whole(ndmin, "ndmin") - v.ndim
    return expand_dims(v, tuple(range(missing))) if missing > 0 else v


def asarray(a: Any, dtype: Any = None, copy: Any = None, *, order: str | None = None) -> Variable:
    """`array` under NumPy's other name.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0806) for a dtype that is not there.

    >>> rs.asanyarray([1, 2], dtype="float32").eval()
    array([1., 2.], dtype=float32)
    """
    return array(a, dtype)


asanyarray = asarray


def _spaced(start: Any, stop: Any, num: Any, endpoint: bool) -> Variable:
    points: Variable = linspace(start, stop, num, endpoint)
    return points


def logspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0) -> Variable:
    """Numbers with evenly spaced logarithms, from base**start to base**stop.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `num` or `axis` of another kind, (E0806) for a dtype that
    is not there; `AxisError` (E0810) for an axis that is not there; `ShapeError` (E0201) where shapes do not broadcast.

    >>> rs.logspace(0, 2, 3).eval()
    array([  1.,  10., 100.])
    """
    out = moveaxis(elementwise("pow", base, _spaced(start, stop, num, endpoint)), 0, axis)
    return out if dtype is None else cast(out, dtype)


def geomspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Variable:
    """Numbers with a constant ratio, from start to stop, which have the same sign.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `num` or `axis` of another kind, (E0806) for a dtype that
    is not there; `AxisError` (E0810) for an axis that is not there.

    >>> rs.geomspace(1, 100, 3).eval()
    array([  1.,  10., 100.])
    """
    first, last = operands((start, stop))
    first, last = (cast(v, "float64") if v.dtype[0] != "f" else v for v in (first, last))
    signs = elementwise("sign", first)
    logs = _spaced(elementwise("log10", first * signs), elementwise("log10", last * signs), num, endpoint)
    out = signs * elementwise("pow", 10.0, logs)
    number = expand_dims(arange(extent(out, 0)), tuple(range(1, out.ndim)))
    out = where(elementwise("eq", number, 0), first, out)
    if endpoint:
        out = where(elementwise("eq", number, elementwise("maximum", cast(num, "int64") - 1, 1)), last, out)
    out = moveaxis(out, 0, axis)
    return out if dtype is None else cast(out, dtype)


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Variable, ...]:
    """The coordinates of a grid: an array for each vector, along whose axis it varies. `sparse` leaves other axes with extent 1.

    xs, ys = rs.meshgrid(x, y)

    errors: `RscanTypeError` (E0805) for what is no number or array; `RscanValueError` (E0809) for `indexing` out of range.

    >>> rs.eval(rs.meshgrid([1, 2], [3, 4]))
    [array([[1, 2],
           [1, 2]]), array([[3, 3],
           [4, 4]])]
    """
    if indexing not in ("xy", "ij"):
        raise RscanValueError(f"indexing is 'xy' or 'ij', not {indexing!r}", code="E0809", labels=[(here(), "")])
    vectors = [ravel(as_variable(x)) for x in xi]
    n = len(vectors)
    axes = list(range(n))
    if indexing == "xy" and n > 1:
        axes[:2] = [1, 0]
    spread = [expand_dims(v, tuple(i for i in range(n) if i != at)) for v, at in zip(vectors, axes, strict=True)]
    return tuple(spread if sparse or n < 2 else broadcast_arrays(*spread))


def _shape(dimensions: Any) -> list[Any]:
    if isinstance(dimensions, (list, tuple)):
        return list(dimensions)
    raise RscanTypeError(f"a shape is a tuple of extents, not {dimensions!r}", code="E0809", labels=[(here(), "")])


def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    """The positions along each axis of an array of a shape, along a new first axis.

    errors: `RscanTypeError` (E0809) for `dimensions` of another kind, (E0806) for a dtype that is not there.

    >>> rs.eval(rs.indices((2, 2))[0])
    array([[0, 0],
           [1, 1]])
    """
    shape = _shape(dimensions)
    places = [
        expand_dims(cast(arange(n), dtype_name("int64" if dtype is int else dtype)), tuple(i for i in range(len(shape)) if i != at))
        for at, n in enumerate(shape)
    ]
    if sparse:
        return tuple(places)
    if not places:
        return zeros((0,), "int64")
    return stack([broadcast_to(p, shape) for p in places])


def fromfunction(function: Any, shape: Any, *, dtype: Any = float, **named: Any) -> Any:
    """What a function gives for the positions along each axis of an array of a shape.

    errors: `RscanTypeError` (E0809) for `shape` of another kind, (E0806) for a dtype that is not there.

    >>> rs.fromfunction(lambda i, j: 10 * i + j, (2, 2)).eval()
    array([[ 0.,  1.],
           [10., 11.]])
    """
    places = indices(shape, dtype)
    return function(*(places[i] for i in range(len(_shape(shape)))), **named)


def ix_(*args: Any) -> tuple[Variable, ...]:
    """Vectors of positions (or truth values) as an index of all their combinations: `x[rs.ix_(rows, columns)]`.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for arguments that do not fit.

    >>> x = rs.as_variable(np.arange(9).reshape(3, 3))
    >>> x[rs.ix_([0, 2], [1, 2])].eval()
    array([[1, 2],
           [7, 8]])
    """
    vectors = [as_variable(a) for a in args]
    if any(v.ndim != 1 for v in vectors):
        raise RscanTypeError("ix_ takes vectors", code="E0809", labels=[(here(), "")])
    vectors = [nonzero(v)[0] if v.dtype == "bool" else v for v in vectors]
    return tuple(expand_dims(v, tuple(i for i in range(len(vectors)) if i != at)) for at, v in enumerate(vectors))


def tril_indices(n: Any, k: int = 0, m: Any = None) -> tuple[Variable, ...]:
    """The positions at and below the k-th diagonal of a matrix of n rows and m columns.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `n`, `k` or `m` of another kind; `RscanValueError` (E0222)
    for extents that are negative or no scalars.

    >>> rs.eval(rs.tril_indices(2))
    [array([0, 1, 1]), array([0, 0, 1])]
    """
    return nonzero(tri(n, m, k, "bool"))


def triu_indices(n: Any, k: int = 0, m: Any = None) -> tuple[Variable, ...]:
    """The positions at and above the k-th diagonal of a matrix of n rows and m columns.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `n`, `k` or `m` of another kind; `RscanValueError` (E0222)
    for extents that are negative or no scalars.

    >>> rs.eval(rs.triu_indices(2))
    [array([0, 0, 1]), array([0, 1, 1])]
    """
    return nonzero(elementwise("logical_not", tri(n, m, whole(k, "k") - 1, "bool")))


def tril_indices_from(arr: Any, k: int = 0) -> tuple[Variable, ...]:
    """`tril_indices` of a matrix.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `arr` or `k` of another kind.

    >>> rs.eval(rs.tril_indices_from(np.zeros((2, 2))))
    [array([0, 1, 1]), array([0, 0, 1])]
    """
    v = at_least(arr, 2, "tril_indices_from")
    return tril_indices(extent(v, 0), k, extent(v, 1))


def triu_indices_from(arr: Any, k: int = 0) -> tuple[Variable, ...]:
    """`triu_indices` of a matrix.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `arr` or `k` of another kind.

    >>> rs.eval(rs.triu_indices_from(np.zeros((2, 2))))
    [array([0, 0, 1]), array([0, 1, 1])]
    """
    v = at_least(arr, 2, "triu_indices_from")
    return triu_indices(extent(v, 0), k, extent(v, 1))


def diag_indices(n: Any, ndim: int = 2) -> tuple[Variable, ...]:
    """The positions on the diagonal of an array with so many axes of extent n.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `ndim` of another kind, (E0222) for extents that are
    negative or no scalars.

    >>> rs.eval(rs.diag_indices(2))
    [array([0, 1]), array([0, 1])]
    """
    return (arange(n),) * whole(ndim, "ndim")


def diag_indices_from(arr: Any) -> tuple[Variable, ...]:
    """The positions on the diagonal of an array.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `arr` of another kind.

    >>> rs.eval(rs.diag_indices_from(np.zeros((2, 2))))
    [array([0, 1]), array([0, 1])]
    """
    v = at_least(arr, 2, "diag_indices_from")
    return diag_indices(extent(v, 0), v.ndim)


def diagflat(v: Any, k: int = 0) -> Variable:
    """The square matrix with the flattened array on its k-th diagonal.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `k` of another kind.

    >>> rs.diagflat([1, 2]).eval()
    array([[1, 0],
           [0, 2]])
    """
    return diag(ravel(as_variable(v)), k)


def fill_diagonal(a: Any, val: Any, wrap: bool = False, *, inplace: bool = False) -> Variable:
    """a with `val` on its main diagonal. Unlike NumPy's it gives a changed copy: variables cannot be changed in place.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `a`, `inplace` or `wrap` of another kind; `ShapeError`
    (E0201) where shapes do not broadcast.

    >>> rs.fill_diagonal(np.zeros((2, 2)), 5).eval()
    array([[5., 0.],
           [0., 5.]])
    """
    if inplace or wrap:
        raise RscanTypeError("fill_diagonal gives a changed copy, without wrap", code="E0809", labels=[(here(), "")])
    v = at_least(a, 2, "fill_diagonal")
    shape = [extent(v, i) for i in range(v.ndim)]
    n = shape[0]
    for m in shape[1:]:
        n = min(n, m) if isinstance(n, int) and isinstance(m, int) else elementwise("minimum", n, m)
    return v.at[(arange(n),) * v.ndim].set(val)


def vander(x: Any, N: Any = None, increasing: bool = False) -> Variable:
    """The powers of a vector as columns, the highest first unless `increasing`.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `x` of another kind, (E0222) for extents that are negative
    or no scalars.

    >>> rs.vander([2, 3], 3).eval()
    array([[4, 2, 1],
           [9, 3, 1]])
    """
    v = as_variable(x)
    if v.ndim != 1:
        raise RscanTypeError(f"vander takes a vector, got {v!r}", code="E0809", labels=[(here(), "")])
    n = size(v) if N is None else N
    powers = arange(n) if increasing else as_variable(n) - 1 - arange(n)
    if v.dtype == "bool":
        v = cast(v, "int64")
    grid = elementwise("pow", expand_dims(v, 1), cast(powers, v.dtype) if v.dtype.startswith("float") else powers)
    return where(elementwise("eq", powers, 0), as_variable(1, grid.dtype), grid)


def _window(n: Any, *weights: float) -> Variable:
    """The sum of weighted cosines over n places, symmetric; one place has weight 1."""
    count = as_variable(n)
    places = cast(arange(1 - count, count, 2), config.floatX)
    turn = places * float(np.pi) / cast(elementwise("maximum", count - 1, 1), config.floatX)
    total = sum(weight * elementwise("cos", k * turn) for k, weight in enumerate(weights))
    return where(elementwise("eq", count, 1), as_variable(1.0, config.floatX), as_variable(total))


def bartlett(M: Any) -> Variable:
    """Bartlett's window, a triangle.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0222) for extents that are negative or no scalars.

    >>> rs.bartlett(3).eval()
    array([0., 1., 0.])
    """
    count = as_variable(M)
    places = cast(arange(1 - count, count, 2), config.floatX)
    return 1.0 - elementwise("abs", places) / cast(elementwise("maximum", count - 1, 1), config.floatX)


def blackman(M: Any) -> Variable:
    """Blackman's window.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0222) for extents that are negative or no scalars.

    >>> rs.blackman(3).eval().round(3)
    array([-0.,  1., -0.])
    """
    return _window(M, 0.42, 0.5, 0.08)


def hamming(M: Any) -> Variable:
    """Hamming's window.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0222) for extents that are negative or no scalars.

    >>> rs.hamming(3).eval()
    array([0.08, 1.  , 0.08])
    """
    return _window(M, 0.54, 0.46)


def hanning(M: Any) -> Variable:
    """Hann's window.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0222) for extents that are negative or no scalars.

    >>> rs.hanning(3).eval()
    array([0., 1., 0.])
    """
    return _window(M, 0.5, 0.5)
