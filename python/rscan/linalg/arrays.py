"""What `numpy.linalg` has beside the functions of the same names in `numpy`: with the array API's axes."""

from __future__ import annotations

from typing import Any

from .._args import at_least
from .._spans import here
from ..errors import ShapeError
from ..variable import Variable, as_variable

__all__ = ["cross", "diagonal", "vecdot"]


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Variable:
    """The cross product of vectors of three elements along an axis.

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

    >>> rs.linalg.diagonal([[1, 2], [3, 4]], offset=1).eval()
    array([2])
    """
    from ..ops import diagonal as _diagonal

    return _diagonal(at_least(x, 2, "diagonal"), offset, -2, -1)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Variable:
    """The inner products of vectors along an axis.

    >>> rs.linalg.vecdot([[1, 2], [3, 4]], [1, 1]).eval()
    array([3, 7])
    """
    from ..ops_contract import vecdot as _vecdot

    return _vecdot(x1, x2, axis)
