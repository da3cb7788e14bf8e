"""Forms of arguments of NumPy's functions, beside those of `numpy_surface`: names, calls, shapes and dtypes, as there."""

from __future__ import annotations

from typing import Any

FLOATS, NUMBERS = ["float32", "float64"], ["float32", "float64", "int32"]

METHODS = (
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull", "linear",
    "median_unbiased", "normal_unbiased", "lower", "higher", "midpoint", "nearest",
)  # fmt: skip
MODES = ("constant", "edge", "linear_ramp", "maximum", "mean", "median", "minimum", "reflect", "symmetric", "wrap")

FORMS: list[Any] = [
    ("quantile nanquantile", [f"m.{{}}(x, [0.0, 0.1, 0.37, 1.0], axis=-1, method='{k}')" for k in METHODS], [(5,), (2, 3), (1,)], FLOATS),
    ("percentile nanpercentile", [f"m.{{}}(x, 40.0, axis=0, method='{k}')" for k in METHODS], [(5,), (2, 3)], FLOATS),
    (
        "quantile nanquantile",
        [
            "m.{}(x, 0.3, axis=(0, 1), keepdims=True)", "m.{}(x, [[0.1, 0.2], [0.3, 0.4]], axis=0)", "m.{}(x, [0.1,0.6], axis=(0,1))",
            "m.{}(x, 0.25, axis=1, weights=y*y+0.1, method='inverted_cdf')"
        ],
        [(2, 3)], FLOATS,
    ),
    ("quantile percentile", ["m.{}(x, 0.3)", "m.{}(x, [0.3, 0.7], axis=0)"], [(5,), (2, 3)], ["int32", "int64", "bool"]),
    ("median nanmedian", ["m.{}(x, axis=(0, 1))", "m.{}(x, axis=1, keepdims=True)"], [(2, 3)], NUMBERS),
    ("pad", [f"m.{{}}(x, {width}, mode='{mode}')" for mode in MODES for width in ("2", "(1, 2)")], [(5,), (2, 3)], NUMBERS),
    (
        "pad",
        [
            "m.{}(x, ((1, 2), (0, 3)), mode='constant', constant_values=((1, 2), (3, 4)))",
            "m.{}(x, ((1, 2), (0, 3)), mode='linear_ramp', end_values=((1, 2), (3, 4)))",
            "m.{}(x, ((1, 2), (0, 3)), mode='maximum', stat_length=2)",
            "m.{}(x, ((1, 2), (0, 3)), mode='mean', stat_length=((1, 2), (2, 1)))",
            "m.{}(x, ((1, 2), (0, 3)), mode='reflect', reflect_type='odd')",
            "m.{}(x, ((1, 2), (0, 3)), mode='symmetric', reflect_type='odd')", "m.{}(x, {0: (1, 2)})", "m.{}(x, {1: 2}, mode='edge')",
            "m.{}(x, 7, mode='reflect')", "m.{}(x, 7, mode='symmetric', reflect_type='odd')",
            "m.{}(x, 7, mode='reflect', reflect_type='odd')", "m.{}(x, 0)", "m.{}(x, ((0,0),(1,1)), mode='median', stat_length=2)"
        ],
        [(3, 4)], NUMBERS,
    ),
    (
        "einsum",
        [
            "m.{}(x, [0, 1], y, [2, 1], [0, 2])", "m.{}(x, [0, 1], [1, 0])", "m.{}(x, [0, 1], [0])",
            "m.{}(x, [Ellipsis, 0], y, [Ellipsis, 0], [Ellipsis])", "m.{}(x, [0, 1], y, [0, 1])",
            "m.{}('ij,kj->ik', x, y, optimize='greedy')", "m.{}('ij,kj->ik', x, y, optimize=True)",
            "m.{}('ij,kj', x, y, optimize='optimal')", "m.{}('...j,kj->...k', x, y)", "m.{}('ij->', x)", "m.{}('ij', x)", "m.{}('ji', x)",
            "m.{}('i...->...', x)", "m.{}('ij,kj->ik', x, y, optimize=['einsum_path', (0, 1)])",
            "m.{}('ij,kj->ik', x, y, dtype='float64')"
        ],
        [(2, 3)], FLOATS,
    ),
    (
        "histogram",
        [
            "m.{}(x)", "m.{}(x, 4, density=True)", "m.{}(x, 3, weights=y)",
            "m.{}(x, bins=3, range=(-1.0, 1.5), density=True, weights=y*y)", "m.{}(x, [-2.0, -1.0, 1.5], density=True)",
            "m.{}(x, bins=4, range=(0, 0))"
        ],
        [(5,), (2, 3)], ["float64"],
    ),
    ("histogram", ["m.{}(x, 4)"], [(5,)], ["int32"]),
    ("histogram_bin_edges", ["m.{}(x, 4)", "m.{}(x, 3, (0, 1))", "m.{}(x, [0., 1.,2.])"], [(5,)], ["float64"]),
    (
        "unique",
        [
            "m.{}(x, return_index=True, return_inverse=True, return_counts=True)", "m.{}(x, axis=0)",
            "m.{}(x, axis=0, return_inverse=True)", "m.{}(x, return_inverse=True)", "m.{}(x, True)", "m.{}(x, equal_nan=False)",
            "m.{}(x, sorted=True)"
        ],
        [(5,), (2, 3)], NUMBERS,
    ),
    (
        "cov",
        [
            "m.{}(x, y)", "m.{}(x, rowvar=False)", "m.{}(x, bias=True)", "m.{}(x, ddof=0)", "m.{}(x, ddof=2)",
            "m.{}(x, fweights=[1, 2, 3])", "m.{}(x, aweights=[0.1, 0.2, 0.3])",
            "m.{}(x, fweights=[1, 2, 3], aweights=[0.1, 0.2, 0.3], ddof=0)", "m.{}(x, dtype='float64')"
        ],
        [(2, 3), (4, 3)], FLOATS,
    ),
    ("corrcoef", ["m.{}(x, y)", "m.{}(x, rowvar=False)", "m.{}(x, dtype='float64')"], [(2, 3)], FLOATS),
    (
        "interp",
        [
            "m.{}(y, m.sort(x), y, left=-1.0, right=9.0)", "m.{}(y, m.sort(x), y, period=2.0)", "m.{}(0.5, m.sort(x), y)"
        ],
        [(5,)], ["float64"],
    ),
    (
        "convolve correlate",
        [
            "m.{}(x, y)", "m.{}(x, y, 'full')", "m.{}(x, y, mode='same')", "m.{}(x, y[:3], mode='valid')", "m.{}(x[:2], y, mode='same')",
            "m.{}(x[:2], y, mode='valid')", "m.{}(x[:2], y)"
        ],
        [(5,)], NUMBERS,
    ),
    (
        "sum prod",
        [
            "m.{}(x, initial=2, where=y > 0, axis=0)", "m.{}(x, axis=(0, 1), initial=3, keepdims=True)", "m.{}(x, dtype='float64')",
            "m.{}(x, where=[True, False, True])"
        ],
        [(2, 3)], NUMBERS,
    ),
    (
        "max min amax amin",
        [
            "m.{}(x, initial=2, where=y > 0, axis=0)", "m.{}(x, initial=1, axis=1, keepdims=True)", "m.{}(x, initial=0)"
        ],
        [(2, 3), (0, 3)], NUMBERS,
    ),
    ("nansum nanprod", ["m.{}(x, initial=2, where=y > 0, axis=0)", "m.{}(x, initial=3, keepdims=True)"], [(2, 3)], NUMBERS),
    ("nanmax nanmin", ["m.{}(x, initial=2, where=y > 0, axis=0)", "m.{}(x, initial=3)"], [(2, 3)], NUMBERS),
    (
        "nanmean mean",
        [
            "m.{}(x, where=y > -9, axis=0)", "m.{}(x, where=[True, False, True])", "m.{}(x, axis=(0,1), keepdims=True)",
            "m.{}(x, dtype='float64')"
        ],
        [(2, 3)], NUMBERS,
    ),
    (
        "nanvar nanstd var std",
        [
            "m.{}(x, where=y > -9, axis=0)", "m.{}(x, ddof=1, axis=1)", "m.{}(x, correction=1)",
            "m.{}(x, axis=1, mean=m.mean(x, axis=1, keepdims=True))", "m.{}(x, axis=(0,1), keepdims=True)"
        ],
        [(2, 3)], NUMBERS,
    ),
    ("any all", ["m.{}(x, where=y > 0, axis=0)", "m.{}(x, axis=(0, 1))"], [(2, 3)], NUMBERS),
    ("ptp", ["m.{}(x, axis=(0, 1), keepdims=True)"], [(2, 3)], NUMBERS),
    ("count_nonzero", ["m.{}(x, axis=(0, 1), keepdims=True)"], [(2, 3)], NUMBERS),
    ("argmax argmin", ["m.{}(x, axis=1, keepdims=True)"], [(2, 3)], NUMBERS),
    ("cumsum cumprod nancumsum nancumprod", ["m.{}(x, axis=1, dtype='float64')", "m.{}(x, 0, 'float64')"], [(2, 3)], NUMBERS),
    (
        "take",
        [
            "m.{}(x, [5, -7], mode='wrap')", "m.{}(x, [5, -7], mode='clip', axis=1)", "m.{}(x, [[0, 1], [1, 0]], axis=1)",
            "m.{}(x, 1, axis=0)"
        ],
        [(2, 3)], NUMBERS,
    ),
    (
        "roll",
        [
            "m.{}(x, (1, 2), axis=(0, 1))", "m.{}(x, 1, axis=(0, 1))", "m.{}(x, (1, 2))", "m.{}(x, (1, 2), axis=0)", "m.{}(x, -7, 1)",
            "m.{}(x, [1,2], axis=[0,1])"
        ],
        [(2, 3)], NUMBERS,
    ),
    (
        "repeat",
        [
            "m.{}(x, [1, 2, 0], axis=1)", "m.{}(x, [3], axis=1)", "m.{}(x, 0)", "m.{}(x, [1,0,2,1,1,3])"
        ],
        [(2, 3)], NUMBERS,
    ),
    ("tile", ["m.{}(x, (2, 1, 2))", "m.{}(x, ())", "m.{}(x, [2])", "m.{}(x, 0)"], [(2, 3)], NUMBERS),
    ("rot90", ["m.{}(x, 2)", "m.{}(x, -1)", "m.{}(x, k=1, axes=(1, 0))"], [(2, 3)], NUMBERS),
    (
        "trapezoid",
        [
            "m.{}(y, x)", "m.{}(y, x=[0.0, 1.0, 4.0], axis=1)", "m.{}(y, dx=2.0)", "m.{}(y, x, axis=0)", "m.{}(y, dx=[1.0, 2.0])"
        ],
        [(2, 3)], FLOATS,
    ),
    (
        "linspace",
        [
            "m.{}(x, y, 4, axis=-1)", "m.{}(x, y, 4, endpoint=False, retstep=True)", "m.{}(x, 9, 3, dtype='int32')",
            "m.{}(x, y, num=3, axis=1)"
        ],
        [(3,)], FLOATS,
    ),
    ("logspace", ["m.{}(x, y, 4, base=2.0)", "m.{}(x, y, 4, endpoint=False, axis=-1)"], [(3,)], ["float64"]),
    ("geomspace", ["m.{}(x*x+1, y*y+1, 4, endpoint=False)", "m.{}(x*x+1, 9.0, 4, axis=-1)"], [(3,)], ["float64"]),
    (
        "arange",
        [
            "m.{}(5.0)", "m.{}(2, 5)", "m.{}(5, dtype='float32')", "m.{}(1, 5, 2, dtype='int8')", "m.{}(start=1, stop=5)",
            "m.{}(0, 1, 0.1)", "m.{}(3, 3)"
        ],
        [()], ["float64"],
    ),
    (
        "meshgrid",
        [
            "m.{}(x, y, sparse=True)", "m.{}(x, y, x, indexing='ij', sparse=True)", "m.{}(x, y, copy=False)", "m.{}(x)"
        ],
        [(3,)], NUMBERS,
    ),
    ("indices", ["m.{}((2, 3), dtype='float64')", "m.{}((2, 3), sparse=True)"], [()], ["float64"]),
    (
        "searchsorted",
        [
            "m.{}(m.sort(x), y, side='right')", "m.{}(x, y, sorter=m.argsort(x))", "m.{}(x, y, 'right', m.argsort(x))",
            "m.{}(m.sort(x), 0.5)"
        ],
        [(5,)], NUMBERS,
    ),
    ("digitize", ["m.{}(y, m.sort(x), right=True)", "m.{}(y, m.flip(m.sort(x)))"], [(5,)], NUMBERS),
    (
        "average",
        [
            "m.{}(x, weights=y*y+1, returned=True)", "m.{}(x, axis=1, weights=[1, 2, 3], keepdims=True)",
            "m.{}(x, axis=(0, 1), weights=y*y+1)", "m.{}(x, axis=0, returned=True)"
        ],
        [(2, 3)], FLOATS,
    ),
    ("diff", ["m.{}(x, n=2, prepend=0, append=1)", "m.{}(x, axis=0, prepend=y)", "m.{}(x, 0)"], [(2, 3)], ["float64"]),
    (
        "gradient",
        [
            "m.{}(x)", "m.{}(x, 2.0, axis=1)", "m.{}(x, [0.0, 1.0, 3.0, 4.0], axis=1, edge_order=2)", "m.{}(x, 1.0, [0.0, 1.0, 3.0, 4.0])",
            "m.{}(x, axis=(0, 1))", "m.{}(x, edge_order=2)"
        ],
        [(3, 4)], ["float64"],
    ),
    ("cross", ["m.{}(x, y, axis=1)", "m.{}(x, y, axisa=1, axisb=1, axisc=0)"], [(2, 3)], NUMBERS),
    (
        "tensordot",
        [
            "m.{}(x, y, axes=([1], [1]))", "m.{}(x, y, axes=2)", "m.{}(x, y, ((0, 1), (0, 1)))", "m.{}(x, y, axes=(1, 1))"
        ],
        [(2, 3)], NUMBERS,
    ),
    ("kron", ["m.{}(x, y)", "m.{}(x, y[0])", "m.{}(x, 2)"], [(2, 3)], NUMBERS),
    (
        "clip",
        [
            "m.{}(x, a_min=0, a_max=1)", "m.{}(x, None, 1)", "m.{}(x, 0, None)", "m.{}(x, min=0)", "m.{}(x, y, 2)",
            "m.{}(x, -1, m.abs(y))", "m.{}(x, a_min=0, a_max=None)", "m.{}(x, None, None)", "m.{}(x, 2, 1)"
        ],
        [(2, 3)], NUMBERS,
    ),
    ("round around", ["m.{}(x, 2)", "m.{}(x, decimals=-1)", "m.{}(x * 100, -2)", "m.{}(x, 0)"], [(2, 3)], NUMBERS),
    (
        "full_like ones_like zeros_like",
        [
            "m.{}(x, *([3] if '{}' == 'full_like' else []), dtype='int32') * 0",
            "m.{}(x, *([3] if '{}' == 'full_like' else []), shape=(4, 2)) * 0",
            "m.{}(x, *([3] if '{}' == 'full_like' else []), shape=5, dtype='float32') * 0"
        ],
        [(2, 3)], NUMBERS,
    ),
    ("full_like", ["m.{}(x, fill_value=3)", "m.{}(x, [1, 2, 3])", "m.{}(x, 2.5)"], [(2, 3)], NUMBERS),
    ("full", ["m.{}((2, 2), fill_value=3)", "m.{}((2, 3), [1, 2, 3])", "m.{}((), 3.5, dtype='float32')"], [()], ["float64"]),
    (
        "sort argsort",
        [
            "m.{}(x, kind='stable')", "m.{}(x, kind='mergesort', axis=0)", "m.{}(x, stable=True)", "m.{}(x, axis=None)",
            "m.{}(x, 0, 'stable')"
        ],
        [(2, 3)], NUMBERS,
    ),
    (
        "partition argpartition",
        [
            "m.sort(m.{}(x, 1, axis=0), axis=0)", "m.sort(m.{}(x, [0, 1], kind='introselect'))"
        ],
        [(2, 3)], NUMBERS,
    ),
    (
        "concatenate concat stack hstack vstack",
        [
            "m.{}([x, y], dtype='float64')", "m.{}((x, y), dtype='float32', casting='unsafe')"
        ],
        [(2, 3)], NUMBERS,
    ),
    ("concatenate", ["m.{}((x, y), axis=None)", "m.{}([x, [[1, 2, 3]]], 0)"], [(2, 3)], NUMBERS),
    ("atleast_1d atleast_2d atleast_3d", ["m.{}(x, y, 3)"], [(3,)], NUMBERS),
    ("array_split", ["m.{}(x, 3)", "m.{}(x, [1, 3])", "m.{}(x, indices_or_sections=2)"], [(5,)], NUMBERS),
    ("split", ["m.{}(x, [1, 3])", "m.{}(x, [2, 9])"], [(5,)], NUMBERS),
    ("trim_zeros", ["m.{}(x, 'f')", "m.{}(m.concatenate([[0, 0], x, [0]]), trim='b')"], [(5,)], NUMBERS),
    ("trim_zeros", ["m.{}(m.pad(x, 1))"], [(2, 3)], FLOATS),
    ("intersect1d", ["m.{}(m.round(x), m.round(y), return_indices=True)", "m.{}(x, y, assume_unique=True)"], [(5,)], FLOATS),
    ("isin", ["m.{}(x, y, assume_unique=False, kind='sort')"], [(5,)], NUMBERS),
    (
        "ravel_multi_index",
        [
            "m.{}(([0, 3], [1, 4]), (3, 4), mode='clip')", "m.{}(([0, 3], [1, 4]), (3, 4), mode='wrap')",
            "m.{}(([0, 2], [1, 3]), (3, 4), order='F')"
        ],
        [()], ["float64"],
    ),
    ("unravel_index", ["m.{}([0, 5], (2, 3), order='F')", "m.{}(4, (2, 3))"], [()], ["float64"]),
    (
        "ravel reshape",
        [
            "m.{}(x, *([(3, 2)] if '{}' == 'reshape' else []), order='F')", "m.{}(x, *([(3, 2)] if '{}' == 'reshape' else []), order='C')"
        ],
        [(2, 3)], NUMBERS,
    ),
    ("copy array asarray", ["m.{}(x, order='C')"], [(2, 3)], NUMBERS),
    ("eye", ["m.{}(3, M=4, k=-1)", "m.{}(N=3)"], [()], ["float64"]),
    ("tri", ["m.{}(3, M=4, k=-1)"], [()], ["float64"]),
    ("trace", ["m.{}(x, 1)", "m.{}(x, offset=-1, axis1=1, axis2=0, dtype='float64')"], [(3, 3)], NUMBERS),
    ("diagonal", ["m.{}(x, 1, 0, 2)", "m.{}(x, offset=0, axis1=-1, axis2=-2)"], [(2, 3, 4)], NUMBERS),
    ("nan_to_num", ["m.{}(x, nan=1.0, posinf=2.0, neginf=-2.0)"], [(2, 3)], FLOATS),
    ("isclose allclose", ["m.{}(x, y, rtol=0.5, atol=0.1)", "m.{}(x, x, equal_nan=True)"], [(2, 3)], NUMBERS),
    ("array_equal", ["m.{}(x, x, equal_nan=True)"], [(2, 3)], NUMBERS),
    ("angle", ["m.{}(x, deg=True)"], [(2, 3)], FLOATS),
    ("unwrap", ["m.{}(x, discont=1.0, period=2.0)", "m.{}(x, axis=0)"], [(2, 3)], FLOATS),
    ("vander", ["m.{}(x, 3)", "m.{}(x, N=4, increasing=True)"], [(5,)], ["float64"]),
    ("polyfit", ["m.{}(m.asarray([0.0, 1.0, 2.0, 4.0, 5.0]), x, 2, w=[1.0, 2.0, 1.0, 1.0, 3.0])"], [(5,)], ["float64"]),
    ("polyint", ["m.{}(x, 2)", "m.{}(x, 1, 3.0)"], [(5,)], FLOATS),
    ("polyder", ["m.{}(x, 2)"], [(5,)], FLOATS),
    ("bincount", ["m.{}(m.abs(x) % 4, weights=m.abs(x) * 0.5)", "m.{}(m.abs(x) % 4, minlength=7)"], [(5,)], ["int64"]),
    ("nanargmax nanargmin", ["m.{}(x, axis=1, keepdims=True)"], [(2, 3)], FLOATS),
    ("squeeze", ["m.{}(x, axis=(0,))", "m.{}(x[None, :, None], (0, 2))"], [(1, 3)], NUMBERS),
    ("expand_dims", ["m.{}(x, (0, 2))"], [(2, 3)], NUMBERS),
    ("flip", ["m.{}(x, (0, 1))"], [(2, 3)], NUMBERS),
    ("transpose permute_dims", ["m.{}(x, (1, 0))", "m.{}(x, axes=(-1, 0))"], [(2, 3)], NUMBERS),
    ("moveaxis", ["m.{}(x, [0, 1], [-1, -2])"], [(2, 3, 4)], NUMBERS),
    (
        "delete",
        [
            "m.{}(x, [0, 2], axis=1)", "m.{}(x, slice(0, 2), 1)", "m.{}(x, 1)", "m.{}(x, [True, False, True], 1)"
        ],
        [(2, 3)], NUMBERS,
    ),
    ("insert", ["m.{}(x, [0, 2], 9, axis=1)", "m.{}(x, 1, [7, 8], axis=1)", "m.{}(x, [1, 1], [7, 8])"], [(2, 3)], NUMBERS),
    ("append", ["m.{}(x, y, axis=1)", "m.{}(x, 3)", "m.{}(x, [[1, 2, 3]], 0)"], [(2, 3)], NUMBERS),
    ("resize", ["m.{}(x, 4)", "m.{}(x, (4, 3))"], [(2, 3)], NUMBERS),
    ("select", ["m.{}([x > 1, x > 0], [x, y])", "m.{}([x > 1, x > 0], [x, y], default=2)"], [(2, 3)], NUMBERS),
    (
        "piecewise",
        [
            "m.{}(x, [x > 0], [lambda v: v * v, lambda v: -v])", "m.{}(x, [x > 0, x < -1], [1, 2, 3])"
        ],
        [(2, 3)], FLOATS,
    ),
    ("choose", ["m.{}([2, 5, -1], [x, y, x], mode='wrap')", "m.{}([2, 5, -1], [x, y, x], mode='clip')"], [(3,)], NUMBERS),
    ("compress", ["m.{}([True, False, True], x, axis=1)", "m.{}([True, False, True], x)"], [(2, 3)], NUMBERS),
    ("where", ["m.{}(x > 0, x, 0)", "m.{}(x > 0, 1.5, y)", "m.{}(x > 0)"], [(2, 3)], NUMBERS),
    ("heaviside", ["m.{}(x, 0.5)"], [(2, 3)], FLOATS),
    ("ediff1d", ["m.{}(x, to_end=[1, 2], to_begin=0)"], [(2, 3)], NUMBERS),
    (
        "linalg.norm",
        [
            "m.{}(x, 'fro')", "m.{}(x, 'nuc')", "m.{}(x, 1)", "m.{}(x, -1)", "m.{}(x, 2)", "m.{}(x, -2)", "m.{}(x, m.inf)",
            "m.{}(x, axis=1)", "m.{}(x, 3, axis=0)", "m.{}(x, axis=(0, 1), keepdims=True)", "m.{}(x, ord=0, axis=0)",
            "m.{}(x, -m.inf, 1, True)"
        ],
        [(2, 3)], FLOATS,
    ),
    ("linalg.cond", ["m.{}(x[:, :2])", "m.{}(x[:, :2], 'fro')", "m.{}(x[:, :2], 1)", "m.{}(x[:, :2], -2)"], [(2, 3)], FLOATS),
    ("linalg.matrix_rank", ["m.{}(x, tol=0.1)", "m.{}(x, hermitian=False)"], [(2, 3)], FLOATS),
    ("linalg.eigvalsh", ["m.{}(s, UPLO='U')", "m.{}(s, 'U')"], [(3, 3)], FLOATS),
    ("linalg.pinv", ["m.{}(x, rcond=0.1)", "m.{}(x, hermitian=False)"], [(2, 3)], ["float64"]),
    ("linalg.pinv", ["m.{}(s, hermitian=True)"], [(3, 3)], ["float64"]),
    ("linalg.tensorsolve", ["m.{}(s, x[0], axes=None)"], [(3, 3)], ["float64"]),
    ("linalg.cross", ["m.{}(x, y, axis=1)"], [(2, 3)], NUMBERS),
    ("linalg.qr", ["m.abs(m.{}(x, mode='r'))", "m.abs(m.{}(x, 'complete')[1])"], [(2, 3), (3, 2)], FLOATS),
    (
        "linalg.svd",
        [
            "m.{}(x, compute_uv=False)", "m.{}(x, full_matrices=False, compute_uv=True)[1]", "m.{}(x, False, False)"
        ],
        [(2, 3)], FLOATS,
    ),
    ("fft.fftshift fft.ifftshift", ["m.{}(x, axes=1)"], [(2, 3)], FLOATS),
    ("fft.fftfreq fft.rfftfreq", ["m.{}(5, 0.5)", "m.{}(n=4, d=2.0)"], [()], ["float64"]),
]  # fmt: skip
