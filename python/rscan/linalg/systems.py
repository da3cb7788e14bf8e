"""Systems of equations, inverses, determinants and powers of matrices."""

from __future__ import annotations

from typing import Any

from .._args import at_least, whole
from .._spans import here
from ..errors import RscanValueError
from ..indexing import diagonal
from ..ops_create import eye, zeros_like
from ..ops_elementwise import cast, where
from ..ops_reduce import sum as _sum
from ..ops_shape import swapaxes
from ..variable import Variable, apply, apply_all, as_variable
from .products import pair

__all__ = [
    "cho_solve", "cholesky", "det", "inv", "matrix_power", "matrix_transpose", "slogdet", "solve", "solve_triangular", "trace",
]  # fmt: skip


def square(a: Any, what: str) -> Variable:
    """Matrices of floats."""
    v = at_least(a, 2, what)
    return v if v.dtype.startswith("float") else cast(v, "float64")


def solve(a: Any, b: Any, assume: str = "general") -> Variable:
    """x with a·x = b. `assume`: 'general', 'lower', 'upper', or 'positive' (definite, symmetric).

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `a` or `b` of another kind; `RscanValueError` (E0809) for
    `assume` out of range; `LinAlgError` (E0601) for a singular matrix, (E0603) for what is no square matrix; `LinAlgError` (E0604) for a
    right side that does not fit.

    >>> rs.linalg.solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 2.0]).eval()
    array([1. , 0.5])
    """
    if assume not in ("general", "lower", "upper", "positive"):
        raise RscanValueError(
            f"solve can assume 'general', 'lower', 'upper' or 'positive', not {assume!r}",
            code="E0809",
            labels=[(here(), "")],
        )
    left, right = pair(square(a, "solve"), at_least(b, 1, "solve"))
    return apply("solve", {"kind": assume}, left, right)


def solve_triangular(a: Any, b: Any, lower: bool = False, trans: Any = 0, unit_diagonal: bool = False) -> Variable:
    """x with a·x = b for a triangular a, of which the other half is not read. `trans` takes the transpose of a; with `unit_diagonal` its
    diagonal is not read either, and counts as ones.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `a` or `b` of another kind; `RscanValueError` (E0809) for
    `trans` out of range; `LinAlgError` (E0601) for a singular matrix, (E0603) for what is no square matrix; `LinAlgError` (E0604) for a
    right side that does not fit.

    >>> rs.linalg.solve_triangular([[2.0, 0.0], [1.0, 1.0]], [2.0, 3.0], lower=True).eval()
    array([1., 2.])
    """
    if not (isinstance(trans, (int, str)) and trans in (0, 1, 2, "N", "T", "C")):
        raise RscanValueError(f"trans is 0, 1, 2, 'N', 'T' or 'C', not {trans!r}", code="E0809", labels=[(here(), "")])
    if unit_diagonal:
        square = as_variable(a)
        a = where(eye(square.shape[-1], dtype="bool"), 1, square)
    if trans not in (0, "N"):
        a, lower = swapaxes(a, -1, -2), not lower
    return solve(a, b, "lower" if lower else "upper")


def cho_solve(c_and_lower: Any, b: Any) -> Variable:
    """x with a·x = b, given `(c, lower)`: Cholesky's factor of a, and whether it is the lower one.

    x = rs.linalg.cho_solve((rs.linalg.cholesky(a), True), b)

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `b` of another kind; `RscanValueError` (E0809) for
    `c_and_lower` out of range; `LinAlgError` (E0604) for a right side that does not fit.

    >>> c = rs.linalg.cholesky([[4.0, 0.0], [0.0, 9.0]])
    >>> rs.linalg.cho_solve((c, True), [4.0, 9.0]).eval()
    array([1., 1.])
    """
    if not isinstance(c_and_lower, (tuple, list)) or len(c_and_lower) != 2:
        raise RscanValueError(
            f"cho_solve takes a pair of the factor and whether it is the lower one, not {c_and_lower!r}",
            code="E0809",
            labels=[(here(), "")],
            helps=["rs.linalg.cho_solve((rs.linalg.cholesky(a), True), b)"],
        )
    c, lower = c_and_lower
    first = solve_triangular(c, b, lower=bool(lower), trans=0 if lower else 1)
    return solve_triangular(c, first, lower=bool(lower), trans=1 if lower else 0)


def cholesky(a: Any, /, *, upper: bool = False) -> Variable:
    """The lower triangular l with l·lᵀ = a; only the lower half of a is read. With `upper`: its transpose, of the upper half of a.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `a` of another kind; `LinAlgError` (E0602) for a matrix
    that is not positive definite, (E0603) for what is no square matrix.

    >>> rs.linalg.cholesky([[4.0, 2.0], [2.0, 5.0]]).eval()
    array([[2., 0.],
           [1., 2.]])
    >>> try:
    ...     rs.linalg.cholesky([[1.0, 2.0], [2.0, 1.0]]).eval()
    ... except np.linalg.LinAlgError as error:
    ...     print(error.code)
    E0602
    """
    v = square(a, "cholesky")
    return swapaxes(apply("cholesky", {}, swapaxes(v, -1, -2)), -1, -2) if upper else apply("cholesky", {}, v)


def inv(a: Any) -> Variable:
    """The inverse matrix.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `a` of another kind; `LinAlgError` (E0601) for a singular
    matrix, (E0603) for what is no square matrix.

    >>> rs.linalg.inv([[2.0, 0.0], [0.0, 4.0]]).eval()
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    return apply("inverse", {}, square(a, "inv"))


def slogdet(a: Any) -> tuple[Variable, Variable]:
    """Sign and log of the absolute value of the determinant.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `a` of another kind; `LinAlgError` (E0603) for what is no
    square matrix.

    >>> rs.eval(rs.linalg.slogdet([[1.0, 0.0], [0.0, -1.0]]))
    [array(-1.), array(0.)]
    """
    sign, log = apply_all("slogdet", {}, [square(a, "slogdet")])
    return sign, log


def det(a: Any) -> Variable:
    """The determinant. Its gradient is there for singular matrices, too.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `a` of another kind; `LinAlgError` (E0603) for what is no
    square matrix.

    >>> rs.linalg.det([[1.0, 2.0], [3.0, 4.0]]).eval().round(6)
    np.float64(-2.0)
    """
    return apply("det", {}, square(a, "det"))


def matrix_transpose(a: Any) -> Variable:
    """With the last two axes exchanged.

    errors: `RscanTypeError` (E0805) for what is no number or array; `AxisError` (E0810) for an axis that is not there.

    >>> rs.matrix_transpose([[1, 2], [3, 4]]).eval()
    array([[1, 3],
           [2, 4]])
    """
    return swapaxes(a, -1, -2)


def trace(a: Any, offset: int = 0, dtype: Any = None) -> Variable:
    """The sum of a diagonal of matrices, those of the last two axes; of `dtype`, as `rs.sum` takes it.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `a` or `offset` of another kind.

    >>> rs.linalg.trace([[1.0, 2.0], [3.0, 4.0]]).eval()
    array(5.)
    """
    return _sum(diagonal(at_least(a, 2, "trace"), offset, -2, -1), -1, dtype=dtype)


def matrix_power(a: Any, n: int) -> Variable:
    """A square matrix times itself; negative powers of the inverse.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `a` or `n` of another kind; `ShapeError` (E0208) where
    extents of a product differ.

    >>> rs.linalg.matrix_power([[1, 1], [0, 1]], 3).eval()
    array([[1, 3],
           [0, 1]])
    """
    n = whole(n, "the exponent of matrix_power")
    v = square(a, "matrix_power") if n < 0 else at_least(a, 2, "matrix_power")
    base, out = (inv(v) if n < 0 else v), None
    for bit in bin(abs(n))[:1:-1]:
        if bit == "1":
            out = base if out is None else out @ base
        base = base @ base
    return zeros_like(v) + eye(v.shape[-1], dtype=v.dtype) if out is None else out
