"""What `numpy.linalg` has beside functions of the same names in `numpy`, with the array API's axes; systems of arrays of more axes."""

from __future__ import annotations

from typing import Any

from .._args import at_least, one_axis
from .._spans import here
from ..errors import RscanValueError, ShapeError
from ..variable import Variable, as_variable
from .systems import inv, solve

__all__ = ["cross", "diagonal", "tensorinv", "tensorsolve", "vecdot"]


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Variable:
    """The cross product of vectors of three elements along an axis.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `x1`, `x2` or `axis` of another kind; `AxisError` (E0810)
    for an axis that is not there; `ShapeError` (E0201) where shapes do not broadcast, (E0812) for pieces that do not fit.

    >>> rs.linalg.cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]).eval()
    array([0., 0., 1.])
    """
    from ..ops_contract import cross as _cross

    out = _cross(x1, x2, axis=axis)
    for v in (as_variable(x1), as_variable(x2)):
        if v.static_shape[axis] not in (3, None):
            raise ShapeError(f"linalg.cross takes vectors of three elements, got {v!r}", code="E0201", labels=[(here(), "")])
    return out


def diagonal(x: Any, /, *, offset: int = 0) -> Variable:
    """The diagonals of the matrices in the last two axes.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `x` or `offset` of another kind.

    >>> rs.linalg.diagonal([[1, 2], [3, 4]], offset=1).eval()
    array([2])
    """
    from ..ops import diagonal as _diagonal

    return _diagonal(at_least(x, 2, "diagonal"), offset, -2, -1)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Variable:
    """The inner products of vectors along an axis.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `x1`, `x2` or `axis` of another kind; `AxisError` (E0810)
    for an axis that is not there; `ShapeError` (E0201) where shapes do not broadcast.

    >>> rs.linalg.vecdot([[1, 2], [3, 4]], [1, 1]).eval()
    array([3, 7])
    """
    from ..ops_contract import vecdot as _vecdot

    return _vecdot(x1, x2, axis)


def tensorinv(a: Any, ind: int = 2) -> Variable:
    """The inverse of a for `tensordot(…, ind)`: the first `ind` axes are those of the rows of a matrix, the others those of its columns.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `a` of another kind; `RscanValueError` (E0809) for `a` or
    `ind` out of range; `LinAlgError` (E0601) for a singular matrix, (E0603) for what is no square matrix.

    >>> rs.linalg.tensorinv(2.0 * np.eye(6).reshape(6, 2, 3), ind=1).eval().shape
    (2, 3, 6)
    """
    v = at_least(a, 1, "tensorinv")
    if not 0 < ind < v.ndim:
        raise RscanValueError(f"ind counts axes of {v!r}, some and not all, got {ind}", code="E0809", labels=[(here(), "")])
    behind = v.shape[ind:]
    return inv(v.reshape([_product(v.shape[:ind]), _product(behind)])).reshape([*behind, *v.shape[:ind]])


def tensorsolve(a: Any, b: Any, axes: Any = None) -> Variable:
    """The x with `tensordot(a, x, x.ndim) = b`. `axes` of a are moved behind the others first.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axes` of another kind; `RscanValueError` (E0809) for `a`
    out of range; `AxisError` (E0810) for an axis that is not there; `ShapeError` (E0204) where the numbers of elements differ.

    >>> rs.linalg.tensorsolve(2.0 * np.eye(6).reshape(6, 2, 3), np.ones(6)).eval()
    array([[0.5, 0.5, 0.5],
           [0.5, 0.5, 0.5]])
    """
    from ..ops_shape import ravel, transpose

    v, w = as_variable(a), as_variable(b)
    if axes is not None:
        chosen = [one_axis(k, v.ndim) for k in axes]
        v = transpose(v, [*(k for k in range(v.ndim) if k not in chosen), *chosen])
    if v.ndim < w.ndim:
        raise RscanValueError(f"tensorsolve takes at least the axes of {w!r}, got {v!r}", code="E0809", labels=[(here(), "")])
    found = v.shape[w.ndim :]
    rows = _product(found)
    return solve(v.reshape([_product(w.shape), rows]), ravel(w)).reshape([*found])


def _product(extents: Any) -> Any:
    found: Any = 1
    for n in extents:
        found = found * n
    return found
