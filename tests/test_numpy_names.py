"""Functions that are composed of others give what NumPy's give, and their gradients agree with differences."""

import numpy as np
import pytest
from helpers import like_numpy, run, same, symbol

import rscan as rs
from rscan.ops_contract import _cheapest

NAN, INF = np.nan, np.inf
RNG = np.random.default_rng(11)
V = np.array([3.0, -1.0, 2.5, 0.5, 4.0, -2.0])
W = np.array([1.0, 0.5, -2.0])
M = RNG.standard_normal((3, 4))
T = RNG.standard_normal((2, 3, 4))
GAPS = np.array([[1.0, NAN, 3.0, 0.5], [NAN, NAN, NAN, NAN], [2.0, -1.0, INF, 0.0]])
I = np.array([4, -6, 0, 9, 3, -1])
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

#: What is compared: the function of a module and of arrays, and the arrays.
CASES = {
    "cbrt": (lambda m, x: m.cbrt(x), [np.array([-8.0, -0.0, 0.0, 1e-300, 27.0, 1e300, INF, -INF, NAN])]),
    "cbrt of integers": (lambda m, x: m.cbrt(x), [I]),
    "heaviside": (lambda m, x: m.heaviside(x, 0.5), [np.array([-1.0, 0.0, 2.0, NAN])]),
    "sinc": (lambda m, x: m.sinc(x), [np.array([0.0, 1e-9, 0.01, 0.0159, 0.016, 0.5, 1.0, 3.3, -2.0])]),
    "fmax": (lambda m, x, y: m.fmax(x, y), [np.array([1.0, NAN, NAN, 2.0]), np.array([0.5, 1.0, NAN, NAN])]),
    "fmin": (lambda m, x, y: m.fmin(x, y), [np.array([1.0, NAN, NAN, 2.0]), np.array([0.5, 1.0, NAN, NAN])]),
    "fmax of integers": (lambda m, x: m.fmax(x, 2), [I]),
    "float_power": (lambda m, x: m.float_power(x, -1), [np.array([1, 2, 4])]),
    "logaddexp2": (lambda m, x, y: m.logaddexp2(x, y), [V, V[::-1].copy()]),
    "ldexp": (lambda m, x, e: m.ldexp(x, e), [np.array([1.5, 1.0, 1e-300, 1.0]), np.array([3, -1074, 1100, 1023])]),
    "modf": (lambda m, x: [*m.modf(x)], [np.array([1.5, -2.25, 0.0, -0.0, INF, -INF, NAN])]),
    "divmod": (lambda m, x: [*m.divmod(x, 4)], [I]),
    "gcd": (lambda m, x, y: m.gcd(x, y), [I, np.array([6, 4, 0, 0, -7, 5])]),
    "gcd of the smallest": (lambda m, x, y: m.gcd(x, y), [np.array([-128, 6, -128], "int8"), np.array([6, -128, 0], "int8")]),
    "gcd of one": (lambda m, x: m.gcd(x, 12), [I[:, None]]),
    "gcd of nothing": (lambda m, x: m.gcd(x, x), [I[:0]]),
    "gcd of large numbers": (lambda m, x: m.gcd(x, 7540113804746346429), [np.array([4660046610375530309])]),
    "lcm": (lambda m, x, y: m.lcm(x, y), [I, np.array([6, 4, 0, 0, -7, 5])]),
    "gcd of int8": (lambda m, x: m.gcd(x, x), [I.astype("int8")]),
    "gcd of uint64": (lambda m, x: m.gcd(x, x), [np.array([2**63 + 6, 12], "uint64")]),
    "isposinf": (lambda m, x: [m.isposinf(x), m.isneginf(x)], [np.array([INF, -INF, 0, NAN])]),
    "real": (lambda m, x: [m.real(x), m.imag(x), m.isreal(x), m.iscomplex(x), m.conj(x), m.angle(x), m.angle(x, True)], [V]),
    "unwrap": (lambda m, x: m.unwrap(x), [np.cumsum(V)]),
    "unwrap of rows": (lambda m, x: [m.unwrap(x, axis=0), m.unwrap(x, discont=4.0), m.unwrap(x, period=2.5)], [M * 5]),
    # Statistics.
    "median": (lambda m, x: [m.median(x), m.median(x, axis=0), m.median(x, (0, 2)), m.median(x, 1, keepdims=True)], [T]),
    "median of NaN": (lambda m, x: [m.median(x), m.median(x, axis=1), m.nanmedian(x), m.nanmedian(x, axis=1)], [GAPS]),
    "median of integers": (lambda m, x: m.median(x), [I]),
    "quantile": (
        lambda m, x: [m.quantile(x, 0.3), m.quantile(x, [0.0, 0.25, 1.0], axis=1), m.quantile(x, 0.7, (0, 1), keepdims=True)],
        [T],
    ),
    "quantile of one": (lambda m, x: [m.quantile(x, 0.3), m.quantile(x, [0.1, 0.9])], [V[:1]]),
    "quantile methods": (
        lambda m, x: [m.quantile(x, [0.1, 0.5, 0.66, 1.0], method=w) for w in ("lower", "higher", "midpoint", "nearest", "linear")],
        [V],
    ),
    "percentile": (lambda m, x: [m.percentile(x, 30), m.percentile(x, [5, 95], axis=0)], [M]),
    "nanquantile": (
        lambda m, x: [m.nanquantile(x, 0.3), m.nanquantile(x, [0.1, 0.9], axis=1), m.nanpercentile(x, 40, axis=1, keepdims=True)],
        [GAPS[[0, 2]]],
    ),
    "nansum": (lambda m, x: [m.nansum(x), m.nansum(x, axis=1), m.nanprod(x, axis=0), m.nansum(x, axis=0, keepdims=True)], [GAPS]),
    "nanmean": (lambda m, x: [m.nanmean(x), m.nanmean(x, axis=1), m.nanvar(x[:1]), m.nanstd(x[:2], axis=1, ddof=1)], [GAPS]),
    "nanmax": (lambda m, x: [m.nanmax(x), m.nanmax(x, axis=1), m.nanmin(x), m.nanmin(x, axis=0, keepdims=True)], [GAPS]),
    "nanargmax": (lambda m, x: [m.nanargmax(x), m.nanargmin(x, axis=1)], [GAPS[[0, 2]]]),
    "nancumsum": (lambda m, x: [m.nancumsum(x), m.nancumprod(x, axis=1)], [GAPS]),
    "nansum of integers": (lambda m, x: [m.nansum(x), m.nanmax(x), m.nanmean(x), m.nanvar(x)], [I]),
    "cumulative_sum": (
        lambda m, x: [m.cumulative_sum(x, axis=1), m.cumulative_sum(x, axis=0, include_initial=True), m.cumulative_prod(x, axis=1)],
        [M],
    ),
    "ediff1d": (lambda m, x: [m.ediff1d(x), m.ediff1d(x, to_end=[1.0, 2.0], to_begin=9.0)], [M]),
    "trapezoid": (lambda m, y, x: [m.trapezoid(y), m.trapezoid(y, dx=0.5, axis=0), m.trapezoid(y, x)], [M, V[:4]]),
    "trapezoid over places": (lambda m, y, x: m.trapezoid(y, x, axis=0), [M, np.sort(M, 0)]),
    "cov": (lambda m, x: [m.cov(x), m.cov(x, rowvar=False), m.cov(x, bias=True), m.cov(x, ddof=0), m.cov(x[0])], [M]),
    "cov with weights": (
        lambda m, x: [m.cov(x, fweights=np.array([1, 2, 3, 1])), m.cov(x, aweights=np.array([1.0, 0.5, 2.0, 1.0]))],
        [M],
    ),
    "cov of both weights": (lambda m, x: m.cov(x, fweights=np.array([1, 2, 3, 1]), aweights=np.array([1.0, 0.5, 2.0, 1.0])), [M]),
    "cov of two": (lambda m, x, y: m.cov(x, y), [V, V[::-1] ** 2]),
    "corrcoef": (lambda m, x: [m.corrcoef(x), m.corrcoef(x, rowvar=False)], [M]),
    "corrcoef of two": (lambda m, x, y: m.corrcoef(x, y), [V, V[::-1] ** 2]),
    "histogram": (lambda m, x: [*m.histogram(x), *m.histogram(x, 3), *m.histogram(x, 4, range=(-1, 3))], [V]),
    "histogram of edges": (lambda m, x: [*m.histogram(x, [-2.0, 0.0, 0.5, 4.0]), *m.histogram(x, 5, density=True)], [V]),
    "histogram with weights": (lambda m, x: m.histogram(x, 3, weights=np.arange(6.0))[0], [V]),
    "histogram of equal": (lambda m, x: [*m.histogram(x, 3)], [np.ones(4)]),
    "histogram of nothing": (lambda m, x: [*m.histogram(x, 3)], [V[:0]]),
    # Sets.
    "unique": (lambda m, x: m.unique(x), [np.array([3, 1, 3, 2, 1])]),
    "unique of all": (
        lambda m, x: [*m.unique(x, return_index=True, return_inverse=True, return_counts=True)],
        [np.array([[3, 1, 3], [2, 1, 1]])],
    ),
    "unique of NaN": (lambda m, x: [*m.unique(x, return_counts=True)], [np.array([NAN, 1.0, NAN, -0.0, 0.0])]),
    "unique rows": (
        lambda m, x: [m.unique(x, axis=0), *m.unique(x, True, True, True, axis=1), *m.unique(x[0], True, True, True, axis=-1)],
        [np.array([[3, 1, 3], [2, 1, 1], [3, 1, 3], [2, 0, 1]])],
    ),
    "unique blocks": (lambda m, x: [*m.unique(x, True, True, True, axis=1)], [np.arange(24).reshape(2, 4, 3) % 6 // 3 * 1.0]),
    "unique rows of NaN": (lambda m, x: [m.unique(x, axis=0), m.unique(x, axis=1), m.unique(x[:0], axis=0)], [GAPS[[0, 0, 2, 2]]]),
    "unique rows of nothing": (lambda m, x: [m.unique(x[:, :0], axis=0), m.unique(x[:1], axis=0)], [M]),
    "unique unequal NaN": (lambda m, x: m.unique(x, equal_nan=False), [np.array([NAN, 1.0, NAN, 1.0])]),
    "unique of nothing": (lambda m, x: m.unique(x), [V[:0]]),
    "sets": (lambda m, x, y: [m.union1d(x, y), m.intersect1d(x, y), m.setdiff1d(x, y), m.setxor1d(x, y)], [I, np.array([9, 0, 9, 5])]),
    "isin": (lambda m, x, y: [m.isin(x, y), m.isin(x, y, invert=True)], [I.reshape(2, 3), np.array([9, 0, 0])]),
    "isin of nothing": (lambda m, x, y: m.isin(x, y), [I, I[:0]]),
    "isin of floats": (lambda m, x, y: m.isin(x, y), [V, np.array([0, 4, 100])]),
    "lexsort": (lambda m, x, y: m.lexsort((x, y)), [np.array([1, 0, 1, 0, 2]), np.array([0, 1, 0, 0, 1])]),
    "allclose": (lambda m, x: [m.allclose(x, x + 1e-9), m.allclose(x, x + 1), m.array_equal(x, x), m.array_equal(x, x + 1)], [V]),
    "array_equal of NaN": (lambda m, x: [m.array_equal(x, x), m.array_equal(x, x, equal_nan=True), m.array_equiv(x, x)], [GAPS]),
    "flatnonzero": (lambda m, x: [m.flatnonzero(x), m.argwhere(x)], [np.array([[0, 1, 0], [2, 0, 3]])]),
    "unravel_index": (lambda m, x: [*m.unravel_index(x, (3, 4)), m.ravel_multi_index((x % 3, x % 4), (3, 4))], [np.array([0, 5, 11])]),
    # Building.
    "logspace": (lambda m, x: [m.logspace(x, 3.0, 5), m.logspace(0.0, x, 4, endpoint=False, base=2.0)], [np.array(1.5)]),
    "geomspace": (
        lambda m, x: [m.geomspace(x, 1000.0, 4), m.geomspace(-1.0, -x, 3), m.geomspace(x, 8.0, 3, endpoint=False)],
        [np.array(1.0)],
    ),
    "meshgrid": (lambda m, x, y: [*m.meshgrid(x, y), *m.meshgrid(x, y, indexing="ij"), *m.meshgrid(x, y, sparse=True)], [V[:2], W]),
    "meshgrid of three": (lambda m, x, y: [*m.meshgrid(x, y, y), *m.meshgrid(x)], [V[:2], W]),
    "triangles": (lambda m, x: [*m.tril_indices(3), *m.triu_indices(3, 1), *m.tril_indices(2, -1, 4), x[m.triu_indices_from(x)]], [M]),
    "diagonals": (lambda m, x: [*m.diag_indices(3), m.diagflat(x, 1), *m.diag_indices_from(m.diagflat(x))], [W]),
    "indices": (lambda m, x: [m.indices((2, 3)) + x.sum(), *m.indices((2, 3), sparse=True)], [I]),
    "ix_": (lambda m, x: [x[m.ix_([0, 2], [1, 3])], x[m.ix_([True, False, True], [2])]], [M]),
    "vander": (lambda m, x: [m.vander(x), m.vander(x, 2), m.vander(x, increasing=True)], [W]),
    "vander of integers": (lambda m, x: m.vander(x, 3), [I]),
    "windows": (lambda m, x: [w(n) + x[:0].sum() for w in (m.hanning, m.hamming, m.blackman, m.bartlett) for n in (1, 2, 7)], [V]),
    "asarray": (lambda m, x: [m.asarray(x), m.array(x, "float32"), m.array(x, ndmin=3)], [V]),
    # Joining.
    "column_stack": (lambda m, x, y: [m.column_stack([x, x]), m.column_stack([y, x[:3]]), m.dstack([x, x]), m.dstack([y, y])], [V, M]),
    "atleast_3d": (lambda m, x, y: [m.atleast_3d(x), m.atleast_3d(y), m.atleast_3d(2.0), m.concat([x, x])], [V, M]),
    "splits": (lambda m, x: [*m.vsplit(x, 2), *m.hsplit(x, 3), *m.dsplit(x, [1, 2]), *m.hsplit(x[0, 0], 2)], [T]),
    "unstack": (lambda m, x: [*m.unstack(x + m.zeros((3, 4))), *m.unstack(x + m.zeros((3, 4)), axis=1)], [M]),
    "block": (
        lambda m, x, y: [m.block([[x, m.zeros((3, 2))], [m.ones((1, 4)), m.full((1, 2), 2)]]), m.block([y, y]), m.block([[y], [y]])],
        [M, V],
    ),
    "append": (lambda m, x: [m.append(x, 1), m.append(x, x, 0), m.append(x, [[1.0]] * 3, axis=1)], [M]),
    "insert": (
        lambda m, x: [m.insert(x, 1, 9), m.insert(x, -1, 9), m.insert(x, [0, 2], [7, 8]), m.insert(x, [2, 2], [7, 8]), m.insert(x, 6, 1)],
        [V],
    ),
    "insert along": (lambda m, x: [m.insert(x, 1, 9, axis=0), m.insert(x, 1, x[:, 0], axis=1), m.insert(x, [0, 3], 5.0, 1)], [M]),
    "insert a row": (
        lambda m, x: [m.insert(x, 1, x[0], axis=0), m.insert(x, [1], [[1], [2], [3]], axis=1), m.insert(x, slice(0, 2), 0.0, 1)],
        [M],
    ),
    "delete": (lambda m, x: [m.delete(x, 1), m.delete(x, -1), m.delete(x, [0, 2]), m.delete(x, slice(1, 5, 2)), m.delete(x, [])], [V]),
    "delete along": (lambda m, x: [m.delete(x, 1, 0), m.delete(x, [0, -1], axis=1), m.delete(x, np.array([True, False, True]), 0)], [M]),
    "resize": (lambda m, x: [m.resize(x, (2, 4)), m.resize(x, 3), m.resize(x, (0,))], [V]),
    "rollaxis": (lambda m, x: [m.rollaxis(x, 2), m.rollaxis(x, 0, 2), m.rollaxis(x, 1, 3), m.rollaxis(x, 1, -1)], [T]),
    "trim_zeros": (
        lambda m, x: [m.trim_zeros(x), m.trim_zeros(x, "f"), m.trim_zeros(x, "b"), m.trim_zeros(x * 0)],
        [np.array([0, 0, 1, 0, 2, 0])],
    ),
    # Choosing.
    "select": (lambda m, x: [m.select([x < 0, x < 2], [x, x**2]), m.select([x < 0], [1], default=-1.5)], [V]),
    "piecewise": (lambda m, x: [m.piecewise(x, [x < 0, x > 2], [lambda v: -v, 7]), m.piecewise(x, [x > 1], [1, lambda v: v])], [V]),
    "choose": (lambda m, x: [m.choose(x, [10, 20, 30]), m.choose(x, [x, x + 1, x * 5])], [np.array([0, 2, 1, 1])]),
    "choose outside": (lambda m, x: [m.choose(x, [1, 2], mode="wrap"), m.choose(x, [1, 2], mode="clip")], [np.array([-3, 5, 0])]),
    "compress": (lambda m, x: [m.compress([True, False, True], x, axis=0), m.compress([False, True], x), m.extract(x > 0, x)], [M]),
    "apply_along_axis": (lambda m, x: [m.apply_along_axis(lambda v: v.sum(), 0, x), m.apply_along_axis(lambda v: v * 2, 1, x)], [M]),
    "apply_along a longer axis": (lambda m, x: m.apply_along_axis(lambda v: m.outer(v, v), 1, x), [T]),
    "apply_over_axes": (lambda m, x: m.apply_over_axes(m.sum, x, [0, 2]), [T]),
    # Sums of products.
    "convolve": (lambda m, x, y: [m.convolve(x, y, w) for w in ("full", "same", "valid")], [V, W]),
    "convolve shorter": (lambda m, x, y: [m.convolve(x, y, w) for w in ("full", "same", "valid")], [W[:2], V]),
    "correlate": (lambda m, x, y: [m.correlate(x, y), m.correlate(x, y, "full"), m.correlate(x, y, "same")], [V, W[:2]]),
    "correlate shorter": (lambda m, x, y: [m.correlate(x, y, w) for w in ("full", "same", "valid")], [W, V]),
    "correlate evenly": (lambda m, x, y: [m.correlate(x, y, w) for w in ("full", "same", "valid")], [V[:4], V]),
    "convolve integers": (lambda m, x: m.convolve(x, np.array([1, 2])), [I]),
    "vecdot": (lambda m, x, y: [m.vecdot(x, y), m.vecdot(x, x, axis=0), m.matvec(x, y), m.vecmat(y[:3], x)], [M, V[:4]]),
    "trace": (lambda m, x: [m.trace(x), m.trace(x, 1, 0, 2), m.trace(x[0], -1), m.matrix_transpose(x)], [T]),
    "cross": (lambda m, x: [m.cross(x[:, 0], x[:, 1]), m.cross(x.T, x.T[::-1]), m.cross(x, x[:, ::-1], axis=0)], [M]),
    # Polynomials.
    "polyval": (lambda m, c, x: [m.polyval(c, x), m.polyval(c, 2.0), m.polyval(c[:0], x)], [W, M]),
    "polynomials": (
        lambda m, a, b: [m.polyadd(a, b), m.polysub(a, b), m.polymul(a, b), m.polyder(b), m.polyder(b, 2), m.polyint(b, 2, 3.0)],
        [W, V],
    ),
    "poly": (lambda m, a: m.poly(a + m.zeros(3)), [W]),
    "polyfit": (lambda m, x, y: [m.polyfit(x, y, 2), m.polyfit(x, y, 1, w=np.arange(1.0, 7.0))], [V, V**2 + np.sin(V)]),
    "polyfit of columns": (lambda m, x, y: m.polyfit(x, y, 1), [V[:4], M.T.copy()]),
    # Distances, bits, positions.
    "gradient": (lambda m, x: [m.gradient(x), m.gradient(x, 0.5, edge_order=2), m.gradient(x, m.asarray([0.0, 1, 3, 4, 7, 8]))], [V]),
    "gradient of matrices": (
        lambda m, x: [*m.gradient(x), *m.gradient(x, 2.0, [0.0, 0.5, 2.0, 3.0], edge_order=2), m.gradient(x, axis=-1)],
        [M],
    ),
    "gradient of integers": (lambda m, x: [m.gradient(x), m.gradient(x[:2]), m.gradient(x, [0, 1, 3, 4, 7, 9], edge_order=2)], [I]),
    "bitwise_count": (lambda m, x: [m.bitwise_count(x), m.bitwise_count(x > 0)], [np.array([0, -1, 127, -128, 85], "int8")]),
    "bitwise_count of many": (lambda m, x: m.bitwise_count(x), [np.array([0, 2**64 - 1, 2**63, 12345678901234567890], "uint64")]),
    "kaiser": (lambda m, x: [m.kaiser(6, 4.0) + x[:0].sum(), m.kaiser(1, 2.0), m.kaiser(0, 2.0), m.i0(x)], [V]),
    "tensorsolve": (
        lambda m, a, b: [m.linalg.tensorsolve(a, b), m.linalg.tensorinv(a, 2), m.linalg.tensorsolve(m.moveaxis(a, 2, 0), b, axes=(0,))],
        [RNG.standard_normal((2, 3, 6)), M[:2, :3].copy()],
    ),
    # Reductions with conditions.
    "sum where": (lambda m, x: [m.sum(x, where=x > 0), m.sum(x, axis=1, initial=2.0), m.sum(x, 0, where=x[0] > 0, keepdims=True)], [M]),
    "prod where": (
        lambda m, x: [m.prod(x, where=x > 0, initial=3.0), m.any(x > 0, axis=0, where=x < 1), m.all(x > 0, axis=1, where=x > -1)],
        [M],
    ),
    "max where": (
        lambda m, x: [m.max(x, axis=0, where=x > 0, initial=-9.0), m.min(x, initial=0.1), m.max(x, axis=1, initial=0.0, keepdims=True)],
        [M],
    ),
    "max of nothing": (lambda m, x: [m.max(x, initial=1.5), m.min(x, axis=0, initial=2.0)], [M[:0]]),
    "mean where": (
        lambda m, x: [m.mean(x, where=x > 0), m.mean(x, axis=0, where=x > -1), m.var(x, 1, where=x > -1), m.std(x, where=x > 0)],
        [M],
    ),
    "sum of integers": (lambda m, x: [m.sum(x, where=x > 0), m.max(x, initial=100), x.sum(initial=1), x.max(where=x < 3, initial=-9)], [I]),
}


@pytest.mark.parametrize("name", CASES)
def test_like_numpy(name):
    build, arrays = CASES[name]
    like_numpy(build, *arrays, rtol=1e-9)


SUBSCRIPTS = {
    "ij,jk->ik": [(3, 4), (4, 5)], "ij,jk": [(3, 4), (4, 5)], "ii": [(4, 4)], "ii->i": [(4, 4)], "ij->ji": [(3, 4)], "ij->": [(3, 4)],
    "ij->j": [(3, 4)], "i,i": [(3,), (3,)], "i,j": [(3,), (4,)], "i,j->ji": [(3,), (4,)], "bij,bjk->bik": [(2, 3, 4), (2, 4, 5)],
    "bij,bkj->bik": [(2, 3, 4), (2, 5, 4)], "ijk,jil->kl": [(2, 3, 4), (3, 2, 5)], "ij,jk,kl->il": [(2, 3), (3, 4), (4, 2)],
    "...ij,...jk->...ik": [(2, 3, 4), (4, 5)], "...i->...": [(2, 3)], "i...,i...": [(3, 2), (3, 2)], "ij,ij->ij": [(2, 3), (2, 3)],
    "iij->j": [(3, 3, 2)], "iji,j->i": [(3, 2, 3), (2,)], "ab,bc,ca->": [(2, 3), (3, 4), (4, 2)], "i,i,i->i": [(3,), (3,), (3,)],
    "ij,kl->": [(2, 3), (4, 5)], "ij,j->i": [(3, 4), (4,)], ",ij->ij": [(), (2, 3)], "": [()], "ij,ij": [(0, 3), (0, 3)],
    "ij , jk -> ik": [(2, 0), (0, 3)], "ij,jk->ki": [(1, 4), (4, 1)], "i,ij->ij": [(1,), (3, 4)],
}  # fmt: skip


@pytest.mark.parametrize("subscripts", SUBSCRIPTS)
@pytest.mark.parametrize("optimize", [True, False])
def test_einsum(subscripts, optimize):
    arrays = [RNG.standard_normal(s) for s in SUBSCRIPTS[subscripts]]
    like_numpy(lambda m, *xs: m.einsum(subscripts, *xs, optimize=optimize), *arrays)
    if all(a.size for a in arrays) and subscripts != "i,ij->ij":
        rs.verify_grad(lambda *xs: rs.einsum(subscripts, *xs, optimize=optimize), arrays)


def test_einsum_dtypes_and_order():
    like_numpy(lambda m, a: m.einsum("ij,jk->ik", a, a), np.arange(4).reshape(2, 2))
    like_numpy(lambda m, a: m.einsum("ij->i", a), np.ones((2, 2), "int8"))
    like_numpy(lambda m, a: m.einsum("ij,jk", a, a.astype("float32")), np.arange(4, dtype="int8").reshape(2, 2))
    a, b, c = (rs.tensor("float64", s) for s in [(2, 100), (100, 3), (3, 100)])
    assert rs.einsum("ij,jk,kl->il", a, b, c).static_shape == (2, 100)
    assert _cheapest([(a, "ij"), (b, "jk"), (c, "kl")], "il") == (0, 1)
    assert _cheapest([(c, "ij"), (b, "jk"), (c, "kl")], "il") == (0, 1)
    assert _cheapest([(b, "ij"), (c, "jk"), (b, "kl")], "il") == (1, 2)


GRADIENTS = {
    "cbrt": (rs.cbrt, [V]),
    "sinc": (rs.sinc, [np.array([0.0, 0.001, 0.4, -2.2])]),
    "fmax": (lambda x, y: rs.fmax(x, y), [V[:3], W]),
    "median": (lambda x: rs.median(x, axis=0), [M]),
    "quantile": (lambda x: rs.quantile(x, [0.1, 0.55]), [V]),
    "quantile by shares": (lambda q: rs.quantile(V, q), [np.array([0.13, 0.55])]),
    "nanmean": (lambda x: rs.nanmean(rs.where(rs.arange(6) < 4, x, np.nan)), [V]),
    "nanvar": (lambda x: rs.nanstd(rs.where(rs.arange(6) < 4, x, np.nan), ddof=1), [V]),
    "nanmedian": (lambda x: rs.nanquantile(rs.where(rs.arange(6) < 4, x, np.nan), 0.3), [V]),
    "cov": (rs.cov, [M]),
    "corrcoef": (lambda x: rs.corrcoef(x)[0, 1], [M]),
    "trapezoid": (rs.trapezoid, [V, np.arange(6.0) ** 2]),
    "histogram weights": (lambda w: rs.histogram(V, 3, weights=w)[0], [np.arange(6.0)]),
    "insert": (lambda x, y: rs.insert(x, [0, 2], y), [V, W[:2]]),
    "delete": (lambda x: rs.delete(x, [0, 2]), [V]),
    "block": (lambda x, y: rs.block([[x, y], [y, x]]), [M, M + 1]),
    "resize": (lambda x: rs.resize(x, (2, 5)), [V]),
    "select": (lambda x: rs.select([x < 0, x < 2.7], [x**2, x**3]), [V]),
    "piecewise": (lambda x: rs.piecewise(x, [x < 0], [lambda v: -v, lambda v: v**2]), [V]),
    "convolve": (lambda x, y: rs.convolve(x, y, "same"), [V, W]),
    "cross": (lambda x, y: rs.cross(x, y), [V.reshape(2, 3), M[:2, :3].copy()]),
    "polyval": (rs.polyval, [W, V]),
    "polyfit": (lambda x, y: rs.polyfit(x, y, 2), [V, V[::-1].copy()]),
    "gradient": (lambda x, d: rs.gradient(x, rs.cumsum(d**2 + 1), edge_order=2), [V, V]),
    "gradient of distances": (lambda x, d: rs.gradient(x, d), [V, np.array(0.7)]),
    "kaiser": (lambda b: rs.kaiser(5, b), [np.array(2.5)]),
    "put": (lambda x, v: rs.put(x, [0, -1, 7], v), [M, W[:2]]),
    "tensorsolve": (rs.linalg.tensorsolve, [RNG.standard_normal((2, 2, 4)), M[:2, :2].copy()]),
    "tensorinv": (lambda a: rs.linalg.tensorinv(a, 1), [RNG.standard_normal((4, 2, 2))]),
    "vander": (lambda x: rs.vander(x, 3), [np.array([0.0, 1.0, -2.0])]),
    "geomspace": (lambda a: rs.geomspace(a, 8.0, 4), [np.array(1.5)]),
    "logaddexp2": (rs.logaddexp2, [V[:3], W]),
    "unwrap": (rs.unwrap, [np.cumsum(V)]),
    "sum where": (lambda x: rs.sum(x**2, where=x > 0, initial=1.0), [V]),
    "max initial": (lambda x: rs.max(x, axis=0, initial=0.0), [M]),
    "unique size": (lambda x: rs.unique(x, size=4), [V]),
    "array": (lambda x, y: rs.array([[x, 1.0], [2, y]]), [np.array(2.0), np.array(3.0)]),
    "at multiply": (lambda x, v: x.at[rs.constant([0, 1, 0])].multiply(v), [V, W]),
    "at min": (lambda x, v: x.at[rs.constant([0, 1, 0])].min(v), [V, W]),
    "at max": (lambda x, v: x.at[1:4].max(v), [V, W]),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name):
    rs.verify_grad(*GRADIENTS[name])


def test_second_derivatives():
    x = rs.dscalar("x")
    second = rs.grad(rs.grad(rs.sinc(x), x), x)
    assert second.eval({x: 0.0}) == pytest.approx(-(np.pi**2) / 3, rel=1e-9)
    rs.verify_grad(lambda v: rs.grad(rs.sum(rs.cbrt(v)), v), [V])


ROWS = {
    "gradient": lambda x: rs.gradient(x, 0.5, edge_order=2),
    "put": lambda x: rs.put(x, [1, -1], x[:2]),
    "bitwise_count": lambda x: rs.bitwise_count(rs.cast(x * 9, "int64")),
    "median": rs.median,
    "quantile": lambda x: rs.quantile(x, [0.2, 0.9]),
    "nanmax": rs.nanmax,
    "cov": lambda x: rs.cov(x),
    "convolve": lambda x: rs.convolve(x, W),
    "einsum": lambda x: rs.einsum("i,j->ij", x, x),
    "unique": lambda x: rs.unique(x, size=3),
    "histogram": lambda x: rs.histogram(x, 3, range=(-1, 1))[0],
    "polyval": lambda x: rs.polyval(x, 2.0),
    "isin": lambda x: rs.isin(x, V),
    "insert": lambda x: rs.insert(x, 1, 0.0),
    "at": lambda x: x.at[rs.constant([0, 0])].multiply([2.0, 3.0]),
    "lexsort": lambda x: rs.lexsort((x, -x)),
    "sum": lambda x: rs.sum(x, where=x > 0, initial=1.0),
    "select": lambda x: rs.select([x < 0], [x]),
    "gcd": lambda x: rs.gcd(rs.cast(x * 9, "int64"), 6),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_at_once(name):
    f = ROWS[name]
    np.testing.assert_allclose(run(rs.vmap(f), M), np.stack([run(f, row) for row in M]), rtol=1e-12)


def test_unique_of_a_size():
    x = np.array([3, 1, 3, 2, 1])
    same(run(lambda v: rs.unique(v, size=2), x), np.array([1, 2]))
    got = run(lambda v: [*rs.unique(v, True, True, True, size=5, fill_value=-7)], x)
    same(got, [np.array([1, 2, 3, -7, -7]), np.array([1, 3, 0, 0, 0]), np.array([2, 0, 2, 1, 0]), np.array([2, 1, 2, 0, 0])])
    same(run(lambda v: rs.unique(v, size=4), x), np.array([1, 2, 3, 1]))
    same(run(lambda v: rs.unique(v, size=2, fill_value=0), x[:0]), np.array([0, 0]))
    with pytest.raises(AssertionError, match="fill_value"):
        run(lambda v: rs.unique(v, size=2), x[:0])


def test_samples_and_places_that_do_not_fit_when_the_function_runs():
    for mode, places in {"raise": [0, -1, 5], "wrap": [0, -1, 50], "clip": [50, 2]}.items():
        expected = M.copy()
        np.put(expected, places, [7.0, 8.0], mode=mode)
        same(run(lambda x, at=places, mode=mode: rs.put(x, at, [7.0, 8.0], mode), M), expected)
    for build, arrays in ((lambda x, d: rs.gradient(x, d), (V, V[:4])), (lambda x, i: rs.put(x, i, 0.0), (V, np.array([6])))):
        with pytest.raises(rs.RscanError):
            run(build, *arrays)
    with pytest.raises(rs.RscanError):
        run(rs.gradient, V[:1])


def test_partitions_are_sorted():
    same(run(lambda v: [rs.partition(v, 2), rs.argpartition(v, 2), v.partition(1), v.argpartition(1)], V), [np.sort(V), np.argsort(V)] * 2)


def test_arrays_of_lists_with_variables():
    x, y = rs.fscalar("x"), rs.fvector("y")
    assert rs.array([[x, 0.5], [1, x]]).dtype == "float32"
    assert rs.array([y, [1, 2]]).ndim == 2
    same(run(lambda x: rs.array([[x, 0.0], [2, x]]), np.array(3.0)), np.array([[3.0, 0.0], [2.0, 3.0]]))
    same(run(lambda x: rs.asarray([x, x], dtype="int32"), np.array(3.7)), np.array([3, 3], "int32"))


def test_writes_where_positions_occur_twice():
    at = np.array([0, 2, 0, -1])
    values = np.array([2.0, 5.0, -4.0, 0.5])
    for name, ufunc in {"multiply": np.multiply, "mul": np.multiply, "divide": np.divide, "min": np.minimum, "max": np.maximum}.items():
        expected = V.copy()
        ufunc.at(expected, at, values)
        for known in (False, True):
            same(run(lambda x, v, name=name: getattr(x.at[rs.constant(at)], name)(v), V, values, known=known), expected)
        rows = M.copy()
        ufunc.at(rows, (slice(None), at[:3]), values[:3])
        same(run(lambda x, v, name=name: getattr(x.at[:, rs.constant(at[:3])], name)(v), M, values[:3]), rows)
        same(run(lambda x, v, name=name: getattr(x.at[rs.constant(at[:0])], name)(v), V, values[:0]), V)
    squared = V.copy()
    squared[1:3] **= 2
    same(run(lambda x: x.at[1:3].power(2), V), squared)
    same(run(lambda x: x.at[0].apply(lambda old, new: old - 2 * new, 3.0), V), np.array([-3.0, *V[1:]]))
    same(run(lambda x: x.at[rs.constant([1, 1])].max(I.max()), I), np.array([4, 9, 0, 9, 3, -1]))


ERRORS = {
    "gradient of one": (lambda x: rs.gradient(np.ones(1)), ValueError),
    "gradient edges": (lambda x: rs.gradient(x, edge_order=3), ValueError),
    "gradient of few": (lambda x: rs.gradient(np.ones(2), edge_order=2), ValueError),
    "gradient distances": (lambda x: rs.gradient(x, 1.0, 2.0, 3.0), TypeError),
    "gradient places": (lambda x: rs.gradient(x[0], x), TypeError),
    "gradient axis": (lambda x: rs.gradient(x, axis=2), IndexError),
    "bitwise_count": (lambda x: rs.bitwise_count(x), TypeError),
    "kaiser": (lambda x: rs.kaiser([1, 2], 1.0), TypeError),
    "put": (lambda x: rs.put(x, [0.5], 1.0), TypeError),
    "put mode": (lambda x: rs.put(x, [0], 1.0, "no"), TypeError),
    "tensorinv": (lambda x: rs.linalg.tensorinv(x, 2), ValueError),
    "tensorsolve": (lambda x: rs.linalg.tensorsolve(x, np.ones((2, 2, 2))), ValueError),
    "einsum letters": (lambda x: rs.einsum("ij,jk", x), ValueError),
    "einsum axes": (lambda x: rs.einsum("ijk", x), ValueError),
    "einsum result": (lambda x: rs.einsum("ij->iz", x), ValueError),
    "einsum twice": (lambda x: rs.einsum("ij->ii", x), ValueError),
    "einsum extents": (lambda x: rs.einsum("ij,jk", np.ones((2, 3)), np.ones((2, 3))), rs.ShapeError),
    "einsum diagonal": (lambda x: rs.einsum("ii", np.ones((2, 3))), rs.ShapeError),
    "einsum list": (lambda x: rs.einsum(x, "ij"), ValueError),
    "quantile share": (lambda x: rs.quantile(x, 1.5), ValueError),
    "quantile method": (lambda x: rs.quantile(x, 0.5, method="best"), ValueError),
    "quantile axis": (lambda x: rs.quantile(x, 0.5, axis=5), IndexError),
    "gcd": (lambda x: rs.gcd(x, 2), TypeError),
    "ldexp": (lambda x: rs.ldexp(x, x), TypeError),
    "max where": (lambda x: rs.max(x, where=x > 0), ValueError),
    "select": (lambda x: rs.select([x > 0], [1, 2]), ValueError),
    "select numbers": (lambda x: rs.select([x], [1]), TypeError),
    "piecewise": (lambda x: rs.piecewise(x, [x > 0], []), ValueError),
    "choose": (lambda x: rs.choose(x, [1, 2]), TypeError),
    "choose mode": (lambda x: rs.choose(rs.ivector(), [1], mode="no"), ValueError),
    "convolve": (lambda x: rs.convolve(x, x), ValueError),
    "convolve mode": (lambda x: rs.convolve(x[0], x[0], "no"), ValueError),
    "convolve nothing": (lambda x: rs.convolve(x[0], []), ValueError),
    "meshgrid": (lambda x: rs.meshgrid(x, indexing="no"), ValueError),
    "unique rows": (lambda x: rs.unique(x, axis=2), IndexError),
    "unique size": (lambda x: rs.unique(x, size=-1), ValueError),
    "block": (lambda x: rs.block([[x], x]), ValueError),
    "block of nothing": (lambda x: rs.block([]), ValueError),
    "delete": (lambda x: rs.delete(x, 1.5), TypeError),
    "delete outside": (lambda x: rs.delete(np.ones(3), 3), ValueError),
    "histogram bins": (lambda x: rs.histogram(x, 0), ValueError),
    "histogram range": (lambda x: rs.histogram(x, 3, range=2.0), ValueError),
    "fromfunction": (lambda x: rs.fromfunction(lambda i: i, 3), TypeError),
    "histogram names": (lambda x: rs.histogram(x, "auto"), ValueError),
    "cross": (lambda x: rs.cross(np.ones(4), np.ones(4)), rs.ShapeError),
    "polyfit": (lambda x: rs.polyfit(x, x, 1), TypeError),
    "polyfit degree": (lambda x: rs.polyfit(x[0], x[0], -1), ValueError),
    "vander": (lambda x: rs.vander(x), TypeError),
    "cov": (lambda x: rs.cov(rs.tensor3()), TypeError),
    "cumulative_sum": (lambda x: rs.cumulative_sum(x), ValueError),
    "fill_diagonal": (lambda x: rs.fill_diagonal(x, 0, wrap=True), TypeError),
    "trim_zeros": (lambda x: rs.trim_zeros(x, "a"), ValueError),
    "lexsort": (lambda x: rs.lexsort([]), TypeError),
    "ix_": (lambda x: rs.ix_(x), TypeError),
    "put_along_axis": (lambda x: rs.put_along_axis(x, x[0], 0, 1), TypeError),
    "rollaxis": (lambda x: rs.rollaxis(x, 0, 7), rs.ShapeError),
    "apply_along_axis": (lambda x: rs.apply_along_axis(rs.sum, 3, x), IndexError),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    build, kind = ERRORS[name]
    with pytest.raises(kind) as caught:
        build(rs.matrix("x"))
    assert isinstance(caught.value, rs.RscanError)


def test_errors_of_values():
    i = symbol(I)
    with pytest.raises(AssertionError, match="not one of 2 arrays"):
        rs.function([i], rs.choose(i, [1, 2]))(I)
    with pytest.raises(AssertionError, match="2 or 3 elements"):
        run(lambda v: rs.cross(v, v), V)
    same(run(lambda x: rs.quantile(x, [0.0, 0.2, 1.0]), np.array([-INF, 0.0, 1.0, INF])), np.array([-INF, -INF, INF]))
    with pytest.raises(AssertionError, match="outside"):
        run(lambda v: rs.delete(v, rs.constant(7)), V)


def test_changed_copies():
    expected = M.copy()
    np.fill_diagonal(expected, 5.0)
    same(run(lambda x: rs.fill_diagonal(x, 5.0), M), expected)
    expected = M.copy()
    np.put_along_axis(expected, np.array([[1], [0], [3]]), 9.0, axis=1)
    same(run(lambda x: rs.put_along_axis(x, np.array([[1], [0], [3]]), 9.0, 1), M), expected)
    same(run(lambda x: rs.fromfunction(lambda i, j: i * x[0] + j, (2, 3)), V), np.fromfunction(lambda i, j: i * V[0] + j, (2, 3)))
