"""Factorisations of matrices, and what is made of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._args import at_least
from .._spans import here
from ..errors import RscanValueError, ShapeError, UnsupportedError
from ..ops_create import eye, zeros
from ..ops_elementwise import cast, where
from ..ops_reduce import max as _max
from ..ops_reduce import sum as _sum
from ..ops_shape import atleast_2d, concatenate, expand_dims, ravel, swapaxes
from ..variable import Variable, apply, apply_all, as_variable, dtype_name, elementwise, operands
from .products import matmul, pair
from .systems import solve, square
from .truncated import moving

__all__ = [
    "block_diag", "eigh", "eigvalsh", "expm", "lstsq", "matrix_rank", "multi_dot", "pinv", "qr", "svd", "svdvals",
]  # fmt: skip


class QRResult(NamedTuple):
    """`a = Q @ R`."""

    Q: Variable
    R: Variable


class EighResult(NamedTuple):
    """Eigenvalues in ascending order, and eigenvectors as columns."""

    eigenvalues: Variable
    eigenvectors: Variable


class SVDResult(NamedTuple):
    """`a = U @ diag(S) @ Vh`."""

    U: Variable
    S: Variable
    Vh: Variable


def _floats(a: Any, what: str) -> Variable:
    v = at_least(a, 2, what)
    return v if v.dtype.startswith("float") else cast(v, "float64")


def qr(a: Any, mode: str = "reduced") -> Any:
    """`a = Q @ R`: the columns of Q are orthonormal, R is zero below the diagonal. `mode="r"` gives R alone, `mode="complete"` a square Q,
    whose last columns are orthogonal to those of a.

    The gradient is there where the first min(m, n) columns are linearly independent; else its evaluation is E0601, and so is that of a
    complete Q with more columns than a: those are arbitrary.

        q, r = rs.linalg.qr(a)

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `a` of another kind; `UnsupportedError` (E0813) for what is
    not supported.

    >>> q, r = rs.eval(rs.linalg.qr([[3.0, 1.0], [4.0, 2.0]]))
    >>> (q @ r).round(6)
    array([[3., 1.],
           [4., 2.]])
    """
    if mode not in ("reduced", "r", "complete"):
        text = f"qr has the modes 'reduced', 'complete' and 'r', not {mode!r}"
        raise UnsupportedError(text, code="E0813", labels=[(here(), "")])
    v = _floats(a, "qr")
    if mode == "complete":
        return _complete(v)
    m, n = v.shape[-2:]
    if isinstance(m, int) and isinstance(n, int) and m >= n:
        q, r = apply_all("qr", {}, [v])
    else:
        k = min(m, n) if isinstance(m, int) and isinstance(n, int) else elementwise("minimum", m, n)
        q, r = apply_all("qr", {}, [v[..., :k]])
        r = concatenate([r, matmul(swapaxes(q, -1, -2), v[..., k:])], -1)
    return r if mode == "r" else QRResult(q, r)


def _complete(v: Variable) -> QRResult:
    """The factors with a square Q: those of the matrix with columns of zeros behind it, as many as it lacks."""
    m, n = v.static_shape[-2:]
    rows, columns = v.shape[-2], v.shape[-1]
    if m is not None and n is not None:
        lacking: Any = max(m - n, 0)
    else:
        lacking = elementwise("maximum", as_variable(rows) - columns, 0)
    wide = concatenate([v, zeros([*v.shape[:-1], lacking], v.dtype)], -1)
    q, r = apply_all("qr", {}, [wide[..., :rows]])
    behind = matmul(swapaxes(q, -1, -2), wide[..., rows:])
    return QRResult(q, concatenate([r, behind], -1)[..., :columns])


def eigh(a: Any, UPLO: str = "L") -> EighResult:
    """The eigenvalues of a symmetric matrix in ascending order, and eigenvectors as columns. Half of the matrix is read, see `UPLO`.

    Signs of eigenvectors are arbitrary, and so are the vectors of equal eigenvalues: what depends on the choice has no meaningful gradient.
    The gradient of what does not depend on it is right where no eigenvalues are equal, and everywhere for functions of the
    eigenvalues alone that treat equal ones alike.

        values, vectors = rs.linalg.eigh(s)

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `a` of another kind; `RscanValueError` (E0809) for `UPLO`
    out of range; `LinAlgError` (E0603) for what is no square matrix.

    >>> values, vectors = rs.eval(rs.linalg.eigh([[2.0, 1.0], [1.0, 2.0]]))
    >>> values.round(6), vectors.shape
    (array([1., 3.]), (2, 2))
    """
    if UPLO not in ("L", "U", "l", "u"):
        raise RscanValueError(f"UPLO is 'L' or 'U', not {UPLO!r}", code="E0809", labels=[(here(), "")])
    v = square(a, "eigh")
    values, vectors = apply_all("eigh", {}, [v if UPLO in "Ll" else swapaxes(v, -1, -2)])
    return EighResult(values, vectors)


def eigvalsh(a: Any, UPLO: str = "L") -> Variable:
    """The eigenvalues of a symmetric matrix in ascending order.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `a` of another kind; `RscanValueError` (E0809) for `UPLO`
    out of range; `LinAlgError` (E0603) for what is no square matrix.

    >>> rs.linalg.eigvalsh([[2.0, 1.0], [1.0, 2.0]]).eval().round(6)
    array([1., 3.])
    """
    return eigh(a, UPLO).eigenvalues


def _whole(v: Variable, hermitian: bool) -> Variable:
    """The symmetric matrix of which the lower half is given, where that is meant."""
    if not hermitian:
        return v
    lower = apply("tri", {"lower": True, "k": 0}, v)
    return lower + swapaxes(apply("tri", {"lower": True, "k": -1}, v), -1, -2)


def svd(a: Any, full_matrices: bool = False, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """`a = U @ diag(S) @ Vh`: the singular values S descend, the columns of U and the rows of Vh are orthonormal, min(m, n) of them.

    Unlike NumPy's, it gives the reduced form. With `full_matrices=True` U and Vh are square; what that adds is orthonormal, else
    arbitrary, and its gradient is E0601. Gradients as for `eigh`, singular values in place of eigenvalues; those of U and Vh want singular
    values that are not 0. With `hermitian` a is symmetric, and its lower half is read.

        u, s, vh = rs.linalg.svd(a)

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `a` of another kind.

    >>> u, s, vt = rs.eval(rs.linalg.svd([[3.0, 0.0], [0.0, 2.0]]))
    >>> s.round(6)
    array([3., 2.])
    """
    v = _whole(_floats(a, "svd"), hermitian)
    u, s, vh = apply_all("svd", {}, [v])
    m, n = v.static_shape[-2:]
    if full_matrices and compute_uv and (m is None or m != n):
        u, vh = _filled(u), swapaxes(_filled(swapaxes(vh, -1, -2)), -1, -2)
    return SVDResult(u, s, vh) if compute_uv else s


def _filled(u: Variable) -> Variable:
    """Orthonormal columns with others behind them, as many as there are rows."""
    return concatenate([u, _complete(u).Q[..., u.shape[-1] :]], -1)


def svdvals(a: Any) -> Variable:
    """The singular values of a matrix, the largest first.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `a` of another kind.

    >>> rs.linalg.svdvals([[3.0, 0.0], [0.0, 2.0]]).eval().round(6)
    array([3., 2.])
    """
    return svd(a, compute_uv=False)


def _rcond(rcond: Any, rtol: Any, dtype: str) -> float | Variable:
    """The share of the largest singular value that counts as nothing, of all matrices or of each; below 0 for the usual one."""
    given = rcond if rcond is not None else rtol
    if given is None:
        return -1.0
    if not isinstance(given, (int, float, np.number)):
        return cast(given, dtype)
    if not given >= 0:
        raise RscanValueError(f"rcond of pinv is not negative, got {given!r}", code="E0809", labels=[(here(), "")])
    return float(given)


def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Variable:
    """The pseudo-inverse: singular values up to `rcond` of the largest count as 0, by default max(m, n) times the precision of the dtype.

    `rcond`, or `rtol`, may be a variable or an array, a number per matrix; such ones below the default count as that. There are gradients
    where the rank does not change, whether or not singular values are equal: of any order, up to the third where `rcond` is given, which
    may count values as 0 that are not. With `hermitian` a is symmetric, and its lower half is read.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `a` of another kind; `RscanValueError` (E0809) for `rcond`
    or `rtol` out of range.

    >>> rs.linalg.pinv([[2.0], [0.0]]).eval().round(6) + 0.0
    array([[0.5, 0. ]])
    """
    v = _whole(_floats(a, "pinv"), hermitian)
    share = _rcond(rcond, rtol, v.dtype)
    if isinstance(share, Variable):
        return moving(v, share)
    found = apply("pinv", {"rcond": share}, v)
    return found if share <= 0 else apply("grad_to", {}, found, moving(v, share), as_variable(True))


def lstsq(a: Any, b: Any, rcond: float | None = None) -> tuple[Variable, Variable, Variable, Variable]:
    """The x of least norm that minimises ‖a·x − b‖, the sums of squared residuals, the rank of a, and its singular values.

    `rcond` as for `pinv`. The sums are always there; NumPy leaves them away where the rank is less than the number of columns.

        x, residuals, rank, values = rs.linalg.lstsq(a, b)

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `a` or `b` of another kind; `RscanValueError` (E0809) for
    `rcond` out of range; `ShapeError` (E0812) for pieces that do not fit; `UnsupportedError` (E0813) for what is not supported.

    >>> solution, *_ = rs.linalg.lstsq([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], [1.0, 3.0, 5.0])
    >>> solution.eval().round(6)
    array([1., 2.])
    """
    left, right = pair(_floats(a, "lstsq"), at_least(b, 1, "lstsq"))
    if left.ndim != 2 or right.ndim > 2:
        raise UnsupportedError("lstsq takes a matrix, and a vector or a matrix", code="E0813", labels=[(here(), "")], helps=["rs.vmap"])
    m, rows = left.static_shape[0], right.static_shape[0]
    if None not in (m, rows) and m != rows:
        raise ShapeError(f"lstsq of {m} rows and {rows} right sides", code="E0812", labels=[(here(), "")])
    x = matmul(pinv(left, rcond), right)
    rest = matmul(left, x) - right
    residuals = _sum(rest * rest, 0, keepdims=right.ndim == 1)
    return x, residuals, matrix_rank(left, rtol=rcond), svdvals(left)


def matrix_rank(a: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Variable:
    """How many singular values (int64) are above `tol`, by default max(m, n) times the precision times the largest one; `rtol` in place of
    the first two factors. With `hermitian` a is symmetric, and its lower half is read.

    errors: `RscanTypeError` (E0805) for what is no number or array; `ShapeError` (E0201) where shapes do not broadcast.

    >>> rs.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]]).eval()
    array(1)
    """
    v = as_variable(a)
    v = v if v.dtype.startswith("float") else cast(v, "float64")
    if v.ndim < 2:
        return cast(elementwise("ne", _sum(cast(elementwise("ne", v, 0), "int64")), 0), "int64")
    s = svdvals(_whole(v, hermitian))
    if tol is None:
        if rtol is None:
            m, n = v.shape[-2:]
            larger = max(m, n) if isinstance(m, int) and isinstance(n, int) else cast(elementwise("maximum", m, n), v.dtype)
            rtol = larger * float(np.finfo(v.dtype).eps)
        # A zero joins for matrices without rows.
        least = concatenate([s, zeros([*s.shape[:-1], 1], s.dtype)], -1)
        share = as_variable(rtol, v.dtype if isinstance(rtol, (int, float)) else None)
        tol = _max(least, -1, keepdims=True) * (expand_dims(share, -1) if share.ndim else share)
    else:
        tol = as_variable(tol)
        tol = expand_dims(tol, -1) if tol.ndim else tol
    return _sum(cast(elementwise("gt", s, tol), "int64"), -1)


def multi_dot(arrays: Any) -> Variable:
    """The product of matrices, in the order that multiplies least: of the extents that are known, others counting as equal to each other.

    The first and the last may be vectors.

    errors: `RscanTypeError` (E0805) for what is no number or array; `RscanValueError` (E0809) for `arrays` out of range; `ShapeError`
    (E0208) where extents of a product differ, (E0812) for pieces that do not fit.

    >>> rs.linalg.multi_dot([np.ones((2, 3)), np.ones((3, 4)), np.ones(4)]).eval()
    array([12., 12.])
    """
    items = list(arrays)
    if len(items) < 2:
        raise RscanValueError(f"multi_dot takes two arrays or more, got {len(items)}", code="E0809", labels=[(here(), "")])
    given = [as_variable(v) for v in items]
    first, last = given[0].ndim == 1, given[-1].ndim == 1
    if first:
        given[0] = expand_dims(given[0], 0)
    if last:
        given[-1] = expand_dims(given[-1], 1)
    if any(v.ndim != 2 for v in given):
        raise ShapeError(f"multi_dot takes matrices, got {next(v for v in given if v.ndim != 2)!r}", code="E0812", labels=[(here(), "")])
    out = _in_order(given, _order(given), 0, len(given) - 1)
    out = out[0] if first else out
    return out[..., 0] if last else out


#: What an extent that is not known counts as.
_UNKNOWN = 64


def _order(given: list[Variable]) -> dict[tuple[int, int], int]:
    """Where to part the product of each run of matrices, by dynamic programming over the number of multiplications."""
    extents = [v.static_shape[0] or _UNKNOWN for v in given] + [given[-1].static_shape[1] or _UNKNOWN]
    n = len(given)
    cost: dict[tuple[int, int], int] = {(i, i): 0 for i in range(n)}
    parts: dict[tuple[int, int], int] = {}
    for width in range(1, n):
        for i in range(n - width):
            j = i + width
            costs = [(cost[i, k] + cost[k + 1, j] + extents[i] * extents[k + 1] * extents[j + 1], k) for k in range(i, j)]
            cost[i, j], parts[i, j] = min(costs)
    return parts


def _in_order(given: list[Variable], parts: dict[tuple[int, int], int], i: int, j: int) -> Variable:
    if i == j:
        return given[i]
    k = parts[i, j]
    return matmul(_in_order(given, parts, i, k), _in_order(given, parts, k + 1, j))


def block_diag(*arrays: Any) -> Variable:
    """The matrix with these matrices on its diagonal. Vectors are rows, numbers are matrices of one element.

    errors: `RscanTypeError` (E0805) for what is no number or array; `ShapeError` (E0812) for pieces that do not fit.

    >>> rs.linalg.block_diag([[1]], [[2, 3]]).eval()
    array([[1, 0, 0],
           [0, 2, 3]])
    """
    blocks = operands([atleast_2d(a) for a in arrays]) if arrays else [zeros((1, 0))]
    if any(v.ndim != 2 for v in blocks):
        raise ShapeError(f"block_diag takes matrices, got {next(v for v in blocks if v.ndim != 2)!r}", code="E0812", labels=[(here(), "")])
    dtype = np.result_type(*(v.dtype for v in blocks)).name
    blocks = [cast(v, dtype) for v in blocks]
    rows = [
        concatenate([zeros((v.shape[0], w.shape[1]), dtype) if i != k else v for k, w in enumerate(blocks)], 1)
        for i, v in enumerate(blocks)
    ]
    return concatenate(rows, 0)


#: The coefficients of Padé's approximation of degree 13, and the norm up to which it is exact to double precision (Higham, "The scaling and
#: squaring method for the matrix exponential revisited", 2005).
_PADE = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0, 10559470521600.0, 670442572800.0,
    33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip
_EXACT = 5.371920351148152


def expm(a: Any) -> Variable:
    """The exponential of a matrix, by scaling, Padé's approximation and squaring.

    Matrices of a batch are squared as often as the largest needs.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `a` of another kind; `ShapeError` (E0208) where extents of
    a product differ.

    >>> rs.linalg.expm([[0.0, 1.0], [0.0, 0.0]]).eval()
    array([[1., 1.],
           [0., 1.]])
    """
    from ..loop import final
    from ..scan import scan

    v = square(a, "expm")
    b = [as_variable(c, v.dtype) for c in _PADE]
    # A zero joins for matrices without elements.
    size = _max(concatenate([ravel(_sum(elementwise("abs", v), -2)), zeros([1], v.dtype)]))
    finite = elementwise("logical_and", elementwise("isfinite", size), elementwise("gt", size, 2 * _EXACT))
    # Halved once at least: what is up to twice as large as is exact is small enough then.
    times = cast(where(finite, elementwise("ceil", elementwise("log2", where(finite, size, 1.0) / _EXACT)), 1.0), "int64")
    small = v * elementwise("exp2", cast(-times, v.dtype))
    one = eye(v.shape[-1], dtype=dtype_name(v.dtype))
    a2 = matmul(small, small)
    a4 = matmul(a2, a2)
    a6 = matmul(a4, a2)
    odd = matmul(a6, b[13] * a6 + b[11] * a4 + b[9] * a2) + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * one
    even = matmul(a6, b[12] * a6 + b[10] * a4 + b[8] * a2) + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * one
    odd = matmul(small, odd)
    root = solve(even - odd, even + odd)
    squares, _ = scan(lambda x: matmul(x, x), outputs_info=root, n_steps=times, name="expm")
    return final(squares)
