"""The functions and operators of the array API standard beside `array_api_strict`: values, dtypes and shapes. rscan's go through the eager
arrays of `eager`, one compiled function per call's kind.

PYTHONPATH=python:tests python -m array_api          # all cases: the share that agrees, and what does not
PYTHONPATH=python:tests python -m array_api sort     # of some names
"""

import collections
import itertools
import operator
import sys
import warnings

import numpy as np
from eager import DTYPES, Array, of_parts, xp

INTS, FLOATS, NUMBERS = DTYPES[1:9], DTYPES[9:], DTYPES[1:]
SHAPES = [(), (0,), (1,), (5,), (3, 4), (0, 3), (2, 1, 3)]
AXES = [shape for shape in SHAPES if shape]
FULL = [shape for shape in SHAPES if 0 not in shape]
#: Shapes that broadcast.
PAIRS = [((3, 4), (4,)), ((), (3,)), ((2, 1), (1, 3)), ((0, 3), (3,)), ((1,), (1,)), ((2, 3), ()), ((), ()), ((3, 1, 2), (4, 1))]
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-30, -1e30]
rng = np.random.default_rng(0)

#: What rscan lacks, and why.
LACKING = {"linalg.svd": "the reduced form is the default"}
#: What computes nothing of arrays, or complex numbers alone, and is no case.
UNCOUNTED = {
    "__array_namespace_info__", "asarray", "broadcast_shapes", "can_cast", "finfo", "from_dlpack", "get_array_api_strict_flags", "iinfo",
    "imag", "isdtype", "reset_array_api_strict_flags", "result_type", "set_array_api_strict_flags",
}  # fmt: skip
#: Functions whose results, or arguments, are complex arrays: rscan's are pairs, compared with both parts.
OF_PAIRS = {f"fft.{name}" for name in ["fft", "ifft", "fftn", "ifftn", "rfft", "irfft", "rfftn", "irfftn", "hfft", "ihfft"]}
#: Factors that are determined but for signs: what is compared of them.
PRODUCTS = {
    "linalg.eigh": lambda w, v: [w, v * w[..., None, :] @ np.swapaxes(v, -1, -2), abs(v)],
    "linalg.qr": lambda q, r: [q @ r, abs(q[..., : r.shape[-1]]), abs(r)],
    "linalg.svd": lambda u, s, v: [s, u[..., : s.shape[-1]] * s[..., None, :] @ v[..., : s.shape[-1], :], 0 * u, 0 * v],
}


def words(text):
    return text.split()


def some(dtype, shape=(3, 4), low=1, high=6):
    """Numbers of a dtype on which all functions are defined."""
    if dtype == "bool":
        return np.asarray(rng.integers(0, 2, shape)).astype(bool)
    if dtype.startswith("float"):
        return np.asarray(rng.uniform(0.1, 0.9, shape)).astype(dtype)
    return np.asarray(rng.integers(low, high, shape)).astype(dtype)


def extremes(dtype):
    """Numbers at the ends of a dtype, and special ones."""
    if dtype in FLOATS:
        return np.array(SPECIAL, dtype)
    if dtype == "bool":
        return np.array([True, False])
    info = np.iinfo(dtype)
    return np.array(sorted({info.min, info.min + 1, 0, 1, 2, 7, info.max - 1, info.max}), dtype)


def promoted():
    """Pairs of dtypes of one kind that have a common one."""
    for a, b in itertools.product(NUMBERS, NUMBERS):
        if (a[0] == "f") == (b[0] == "f") and (np.result_type(a, b).kind == "f") == (a[0] == "f"):
            yield a, b


def cases():
    """Name, arguments and named arguments of each call."""
    for kinds in (ones, twos, operators, reductions, along_axes, ordered, shapes, joined, chosen, indexed, created, products, matrices):
        yield from kinds()
    yield from transforms()


# Elementwise functions.

ONE_FLOAT = "acos acosh asin asinh atan atanh cos cosh exp expm1 log log1p log2 log10 reciprocal signbit sin sinh sqrt tan tanh"
ONE_NUMBER = "abs ceil conj floor isfinite isinf isnan negative positive real round sign square trunc"
TWO_NUMBERS = (
    "add subtract multiply floor_divide remainder maximum minimum equal not_equal less less_equal greater greater_equal pow "
)
TWO_FLOATS = "divide atan2 copysign hypot logaddexp nextafter"
BITS = "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift"


def ones():
    # conj and real are the only functions of the standard that take floats alone beside complex numbers.
    for name, d, shape in itertools.product(words(ONE_FLOAT), FLOATS, SHAPES):
        yield name, [some(d, shape) + (1 if name == "acosh" else 0)], {}
    for name, shape in itertools.product(words(ONE_NUMBER), SHAPES):
        for d in FLOATS if name == "real" else NUMBERS:
            yield name, [some(d, shape)], {}
    for name in words(ONE_FLOAT) + words(ONE_NUMBER):
        for d in FLOATS if name in words(ONE_FLOAT) or name == "real" else NUMBERS:
            yield name, [extremes(d)], {}
    for d, shape in itertools.product(["bool", *INTS], SHAPES):
        yield "bitwise_invert", [some(d, shape)], {}
    for shape in SHAPES:
        yield "logical_not", [some("bool", shape)], {}
    for d, shape in itertools.product(NUMBERS, SHAPES):
        low, high = (0.2, 0.5) if d in FLOATS else (2, 3)
        yield "clip", [some(d, shape), low, high], {}
        yield "clip", [some(d, shape)], {"min": low}
        yield "clip", [some(d, shape)], {"max": np.asarray(high, d)}
        yield "clip", [some(d, shape)], {}
    for d in FLOATS:
        yield "clip", [extremes(d), some(d, (12,)), np.asarray(2.0, d)], {}


def twos():
    numbers = words(TWO_NUMBERS)
    for name, (a, b) in itertools.product(numbers, list(promoted())):
        yield name, [some(a), some(b, (4,))], {}
    for name, a, b in itertools.product(words(TWO_FLOATS), FLOATS, FLOATS):
        yield name, [some(a), some(b, (3, 1))], {}
    for name, (a, b) in itertools.product(words(BITS), [pair for pair in promoted() if pair[0] in INTS]):
        yield name, [some(a), some(b, low=0, high=3)], {}
    for name, d, (s, t) in itertools.product(numbers + words(TWO_FLOATS), ("int16", "uint8", "float32", "float64"), PAIRS):
        if d in FLOATS or name in numbers:
            yield name, [some(d, s), some(d, t)], {}
    for name in words("logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor equal not_equal"):
        for s, t in PAIRS:
            yield name, [some("bool", s), some("bool", t)], {}
    for name, d in itertools.product(numbers + words(TWO_FLOATS), NUMBERS):
        if d in FLOATS:
            x = extremes(d)
            yield name, [x[:, None], x], {}
        elif name in numbers and name not in ("pow", "floor_divide", "remainder"):
            yield name, [extremes(d)[:, None], extremes(d)], {}
    for name, d in itertools.product(numbers, NUMBERS):
        yield name, [some(d), 2], {}
        yield name, [3, some(d)], {}
    for name, d in itertools.product(words(TWO_FLOATS), FLOATS):
        yield name, [some(d), 2.0], {}
        yield name, [2.0, some(d)], {}
    for d, shape in itertools.product(DTYPES, SHAPES):
        yield "where", [some("bool", shape), some(d, shape), some(d, shape)], {}
        yield "where", [some("bool", (2, 1)), some(d, ()), some(d, (3,))], {}
    for a, b in promoted():
        yield "where", [some("bool"), some(a), some(b)], {}
        yield "where", [some("bool"), some(a), 1], {}
    for d, to, shape in itertools.product(DTYPES, DTYPES, [(), (0,), (3, 4)]):
        yield "astype", [some(d, shape), to], {}
    yield "astype", [some("float32"), "float32"], {"copy": False}


ARITHMETIC = "add sub mul truediv floordiv mod pow eq ne lt le gt ge"


def operators():
    """By Python's signs, of arrays and of arrays with numbers."""
    for name, d in itertools.product(words(ARITHMETIC), NUMBERS):
        if d in FLOATS or name != "truediv":
            yield f"operator.{name}", [some(d), some(d, (4,))], {}
            yield f"operator.{name}", [some(d), 2], {}
            yield f"operator.{name}", [2, some(d)], {}
            if name not in words("eq ne lt le gt ge"):
                yield f"operator.i{name}", [some(d), some(d, (4,))], {}
    for name, d in itertools.product(words("and_ or_ xor"), ["bool", *INTS]):
        yield f"operator.{name}", [some(d), some(d, (4,))], {}
        yield f"operator.{name}", [some(d), True if d == "bool" else 3], {}
    for name, d in itertools.product(words("lshift rshift"), INTS):
        yield f"operator.{name}", [some(d), some(d, low=0, high=3)], {}
        yield f"operator.{name}", [some(d), 2], {}
    for name, d, shape in itertools.product(words("neg pos abs"), NUMBERS, SHAPES):
        yield f"operator.{name}", [some(d, shape)], {}
    for d in ["bool", *INTS]:
        yield "operator.invert", [some(d)], {}
    for d in NUMBERS:
        for s, t in [((3,), (3,)), ((2, 3), (3, 2)), ((2, 2, 3), (3,)), ((2, 0), (0, 3))]:
            yield "operator.matmul", [some(d, s), some(d, t)], {}
    for d in DTYPES:
        yield "x.T", [some(d)], {}
        yield "x.mT", [some(d, (2, 3, 4))], {}


# Reductions, cumulation, order.


def how(shape):
    """Axes and keepdims for a shape."""
    yield {}
    yield {"keepdims": True}
    for axis in range(-len(shape), len(shape)):
        yield {"axis": axis}
    if len(shape) > 1:
        yield {"axis": (0, -1)}
        yield {"axis": (0, 1), "keepdims": True}
        yield {"axis": -1, "keepdims": True}


def reductions():
    for name, shape in itertools.product(words("sum prod max min mean std var all any count_nonzero"), SHAPES):
        if 0 in shape and name in words("max min mean std var"):
            continue
        for d in FLOATS if name in ("mean", "std", "var") else DTYPES if name in words("all any count_nonzero") else NUMBERS:
            for named in how(shape):
                yield name, [some(d, shape, high=3)], named
    for name, d, to in itertools.product(("sum", "prod"), NUMBERS, ("int64", "float32", "float64")):
        if to in FLOATS or (d in INTS and d != "uint64"):
            yield name, [some(d, high=3)], {"dtype": to, "axis": 0}
    for name, d, named in itertools.product(("std", "var"), FLOATS, how((3, 4))):
        for correction in (1, 0.5, 0.0):
            yield name, [some(d)], {"correction": correction, **named}
    for name, d in itertools.product(words("sum prod max min mean all any count_nonzero"), FLOATS):
        yield name, [extremes(d)], {}
    for name, d in itertools.product(words("max min"), (*INTS, *FLOATS)):
        yield name, [extremes(d)[1:]], {"axis": 0}


def along_axes():
    for name, d, shape in itertools.product(words("cumulative_sum cumulative_prod"), NUMBERS, AXES):
        for axis, initial in itertools.product(range(-len(shape), len(shape)), (False, True)):
            yield name, [some(d, shape, high=3)], {"axis": axis, "include_initial": initial}
        if len(shape) == 1:
            yield name, [some(d, shape, high=3)], {}
    for name, d, to in itertools.product(words("cumulative_sum cumulative_prod"), INTS[:4], ("int64", "float64")):
        yield name, [some(d, high=3)], {"axis": 0, "dtype": to}
    for d, shape in itertools.product(NUMBERS, [(5,), (3, 4), (2, 1, 3)]):
        for axis in range(-len(shape), len(shape)):
            one = tuple(1 if k == axis % len(shape) else n for k, n in enumerate(shape))
            yield "diff", [some(d, shape)], {"axis": axis}
            yield "diff", [some(d, shape)], {"axis": axis, "n": 2, "prepend": some(d, one), "append": some(d, shape)}
            yield "diff", [some(d, shape)], {"axis": axis, "append": some(d, one)}
    for d in NUMBERS:
        yield "diff", [some(d)], {"n": 3}
        yield "diff", [some(d)], {"n": 0}


def distinct(d, shape):
    return rng.permutation(int(np.prod(shape))).reshape(shape).astype(d)


def ordered():
    for d, shape in itertools.product(NUMBERS, FULL):
        for name in ("argmax", "argmin"):
            for axis, keepdims in itertools.product([None, *range(-len(shape), len(shape))], (False, True)):
                yield name, [some(d, shape)], {"axis": axis, "keepdims": keepdims}
    for name, d, shape in itertools.product(("sort", "argsort"), NUMBERS, AXES):
        for axis, descending, stable in itertools.product(range(-len(shape), len(shape)), (False, True), (False, True)):
            x = some(d, shape) if stable else distinct(d, shape)
            yield name, [x], {"axis": axis, "descending": descending, "stable": stable}
    for d, side in itertools.product(NUMBERS, ("left", "right")):
        table = np.sort(some(d, (6,)))
        for shape in SHAPES:
            yield "searchsorted", [table, some(d, shape)], {"side": side}
        turned = rng.permutation(6)
        yield "searchsorted", [table[np.argsort(turned)], some(d, (3,))], {"side": side, "sorter": turned}
        yield "searchsorted", [table[:0], some(d, (3,))], {"side": side}
        yield "searchsorted", [table, 2 if d in INTS else 0.5], {"side": side}
    for name, d, shape in itertools.product(words("unique_values unique_counts unique_inverse unique_all"), DTYPES, SHAPES):
        yield name, [some(d, shape, high=3)], {}
    for d, shape, invert in itertools.product(INTS, SHAPES, (False, True)):
        yield "isin", [some(d, shape), some(d, (2,))], {"invert": invert}
    for d in INTS:
        yield "isin", [some(d), 2], {}
        yield "isin", [2, some(d)], {}
    for d, shape in itertools.product(DTYPES, AXES):
        yield "nonzero", [some(d, shape, low=0, high=2)], {}


# Shapes.


def shapes():
    for d, shape in itertools.product(DTYPES, SHAPES):
        x, n = some(d, shape), len(shape)
        for axis in [None, *range(-n, n), *([(0, -1)] if n > 1 else [])]:
            yield "flip", [x], {"axis": axis}
        if n:
            yield "roll", [x, 2], {}
            yield "roll", [x, -1], {"axis": 0}
            yield "roll", [x, (1, -2)], {"axis": (0, -1)}
            yield "roll", [x, 3], {"axis": (0, -1)}
        for axis in range(-n - 1, n + 1):
            yield "expand_dims", [x], {"axis": axis}
        for perm in itertools.permutations(range(n)):
            yield "permute_dims", [x, perm], {}
        if n:
            yield "permute_dims", [x, tuple(range(-n, 0))], {}
        yield "reshape", [x, (x.size,)], {}
        yield "reshape", [x, shape[::-1]], {"copy": True}
        if x.size:
            yield "reshape", [x, (1, *shape)], {"copy": False}
        yield "reshape", [x, (1, -1, 1) if x.size else (0, 3, 1)], {}
        yield "broadcast_to", [x, (2, *shape)], {}
        yield "tile", [x, (2,)], {}
        yield "tile", [x, (2, 1, 3, 1)], {}
        yield "tile", [x, ()], {}
        if n:
            yield "tile", [x, (0,) * n], {}
            yield "repeat", [x, 2], {}
            yield "repeat", [x, 0], {}
            for axis in range(-n, n):
                yield "repeat", [x, 3], {"axis": axis}
                yield "repeat", [x, rng.integers(0, 3, shape[axis])], {"axis": axis}
        for name in ("zeros_like", "ones_like", "empty_like"):
            yield name, [x], {}
            yield name, [x], {"dtype": "float32"}
        yield "full_like", [x, d == "bool" or 1], {}
        yield "full_like", [x, 2], {"dtype": "int64"}
    for d in DTYPES:
        for axis in (1, -1, (1,), (1, 3), ()):
            yield "squeeze", [some(d, (3, 1, 2, 1)), axis], {}
        yield "squeeze", [some(d, (1,)), 0], {}
        for source, to in ((0, 1), (0, -1), (-1, 0), ((0, 1), (2, 0)), ((2, -2), (0, -1))):
            yield "moveaxis", [some(d, (2, 3, 4)), source, to], {}
        for k in (-2, 0, 1, 9):
            for name, shape in itertools.product(("tril", "triu"), [(3, 4), (2, 3, 3), (0, 2)]):
                yield name, [some(d, shape)], {"k": k}


def joined():
    for d, shape in itertools.product(DTYPES, AXES):
        x, n = some(d, shape), len(shape)
        for axis in [None, *range(-n, n)]:
            yield "concat", [[x, x, some(d, shape)]], {"axis": axis}
        for axis in range(-n - 1, n + 1):
            yield "stack", [[x, some(d, shape)]], {"axis": axis}
        for axis in range(-n, n):
            if shape[axis]:
                yield "unstack", [x], {"axis": axis}
    for d in DTYPES:
        yield "stack", [[some(d, ()), some(d, ())]], {}
        yield "concat", [(some(d, (1, 3)), some(d, (2, 3)))], {}
        yield "broadcast_arrays", [some(d, (3, 1)), some(d, (4,)), some(d, ())], {}
        for indexing in ("xy", "ij"):
            yield "meshgrid", [some(d, (3,)), some(d, (2,)), some(d, (1,))], {"indexing": indexing}
        yield "meshgrid", [some(d, (3,))], {}
        yield "meshgrid", [some(d, (0,)), some(d, (2,))], {}
    for a, b in promoted():
        yield "concat", [[some(a), some(b)]], {}
        yield "stack", [[some(a), some(b)]], {}
    for s, t in PAIRS:
        yield "broadcast_arrays", [some("int8", s), some("float64", t)], {}


def chosen():
    for d, shape in itertools.product(DTYPES, [(5,), (1,), (3, 4), (2, 1, 3)]):
        x, n = some(d, shape), len(shape)
        for axis in range(-n, n):
            yield "take", [x, rng.integers(0, shape[axis], 3)], {"axis": axis}
            yield "take", [x, np.zeros(0, "int64")], {"axis": axis}
            at = rng.integers(-shape[axis], shape[axis], shape)
            yield "take_along_axis", [x, at], {"axis": axis}
        yield "take_along_axis", [x, np.zeros(shape, "int32")], {}
        if n == 1:
            yield "take", [x, np.array([0, -1], "int32")], {}


KEYS = [
    (0, Ellipsis), (-1, Ellipsis), (0, 1), (-1, 2), (slice(1, None), Ellipsis), (slice(None, None, -1), slice(None)), (slice(0, 2), 1),
    (Ellipsis, 0), (None, 1, Ellipsis), (0, None, slice(1, 3)), (Ellipsis, slice(3, None, -2)), (slice(3, 1), Ellipsis), Ellipsis,
    (slice(None), slice(-2, None)),
]  # fmt: skip


def indexed():
    for d, key in itertools.product(DTYPES, KEYS):
        yield "operator.getitem", [some(d), key], {}
        if None not in np.atleast_1d(np.array(key, object)):
            yield "x[key] = value", [some(d), key, some(d, ())], {}
    for d in DTYPES:
        mask = some("bool")
        yield "operator.getitem", [some(d), mask], {}
        yield "operator.getitem", [some(d), mask[:, 0]], {}
        yield "operator.getitem", [some(d, ()), ()], {}
        yield "operator.getitem", [some(d, ()), (None, Ellipsis)], {}
        yield "operator.getitem", [some(d), (np.array([0, 2, -1]), np.array([1, 1, 3]))], {}
        yield "operator.getitem", [some(d), (np.array([[0], [2]]), np.array([1, 3]))], {}
        yield "operator.getitem", [some(d), (1, np.array([1, 3]))], {}
        yield "x[key] = value", [some(d), mask, some(d, ())], {}
        yield "x[key] = value", [some(d), (1, Ellipsis), some(d, (4,))], {}
        yield "x[key] = value", [some(d), (slice(0, 2), Ellipsis), True if d == "bool" else 1], {}


def created():
    for d in DTYPES:
        for shape in [(), (0,), (2, 3), 4]:
            for name in words("zeros ones empty"):
                yield name, [shape], {"dtype": d}
            yield "full", [shape, True if d == "bool" else 3], {"dtype": d}
        for size, k in itertools.product([(3,), (3, 5), (5, 3), (0,), (3, None)], (-2, 0, 1, 7)):
            yield "eye", list(size), {"dtype": d, "k": k}
    for d in NUMBERS:
        for args in ([5], [1, 7], [1, 7, 2], [7, 1, 2], [0]):
            yield "arange", args, {"dtype": d}
        if d[0] != "u":
            yield "arange", [7, 1, -2], {"dtype": d}
    for args in ([5], [0.0, 1.0, 0.25], [1, 3.5], [5, 0, -1], [2.5]):
        yield "arange", args, {}
    for d, num, endpoint in itertools.product([None, *FLOATS], (0, 1, 2, 7), (True, False)):
        yield "linspace", [0, 1, num], {"dtype": d, "endpoint": endpoint}
        yield "linspace", [2.5, -1, num], {"dtype": d, "endpoint": endpoint}
    for shape in [(), (0,), (2, 3), 4]:
        for name in words("zeros ones empty"):
            yield name, [shape], {}
        for value in (3, 3.5, True):
            yield "full", [shape, value], {}
    yield "eye", [3], {}


# Products and matrices.


MULTIPLIED = [
    ((3,), (3,)), ((3, 4), (4, 2)), ((4,), (4, 2)), ((3, 4), (4,)), ((2, 3, 4), (4, 2)), ((5, 1, 2, 3), (4, 3, 2)), ((0, 3), (3, 2)),
    ((2, 0), (0, 3)),
]  # fmt: skip
DOTTED = [((3,), (3,)), ((2, 3), (3,)), ((2, 1, 3), (4, 3)), ((2, 0), (2, 0))]


def products():
    for d in NUMBERS:
        for s, t in MULTIPLIED:
            yield "matmul", [some(d, s), some(d, t)], {}
            yield "linalg.matmul", [some(d, s), some(d, t)], {}
        for name in ("tensordot", "linalg.tensordot"):
            for axes in (0, 1, 2, ((0,), (1,)), ((0, 1), (1, 0)), ((-1,), (0,)), ((), ())):
                yield name, [some(d, (3, 3)), some(d, (3, 3))], {"axes": axes}
            yield name, [some(d, (3, 4)), some(d, (3, 4))], {}
            yield name, [some(d, (2, 3, 4)), some(d, (4, 3, 5))], {"axes": ((1, 2), (1, 0))}
        for name, (s, t) in itertools.product(("vecdot", "linalg.vecdot"), DOTTED):
            yield name, [some(d, s), some(d, t)], {}
        yield "vecdot", [some(d, (3, 2)), some(d, (3, 2))], {"axis": -2}
        for name, shape in itertools.product(("matrix_transpose", "linalg.matrix_transpose"), [(3, 4), (2, 3, 4), (0, 2), (1, 1)]):
            yield name, [some(d, shape)], {}
        for s, t in [((3,), (2,)), ((0,), (2,)), ((1,), (1,))]:
            yield "linalg.outer", [some(d, s), some(d, t)], {}
        for s, t, axis in [((3,), (3,), -1), ((2, 3), (2, 3), -1), ((3, 2), (3, 2), -2), ((4, 1, 3), (2, 3), -1)]:
            yield "linalg.cross", [some(d, s), some(d, t)], {"axis": axis}
        for offset, shape in itertools.product((-1, 0, 2), [(3, 4), (2, 3, 3), (1, 1)]):
            yield "linalg.diagonal", [some(d, shape)], {"offset": offset}
            yield "linalg.trace", [some(d, shape)], {"offset": offset}
        yield "linalg.trace", [some(d)], {"dtype": "float64"}
    for d in DTYPES:
        yield "linalg.diagonal", [some(d)], {}
    for name, (a, b) in itertools.product(("matmul", "vecdot", "tensordot"), list(promoted())):
        yield name, [some(a, (3, 3)), some(b, (3, 3))], {}


def definite(d, shape):
    half = rng.standard_normal(shape)
    return np.asarray(half @ np.swapaxes(half, -1, -2) + 4 * np.eye(shape[-1])).astype(d)


SQUARE = [(3, 3), (1, 1), (2, 3, 3), (2, 1, 2, 2), (0, 2, 2), (0, 0)]
RECTANGLES = [(3, 4), (4, 3), (1, 1), (2, 3, 2)]


def matrices():
    for d, shape in itertools.product(FLOATS, SQUARE):
        a = definite(d, shape)
        for name in words("det inv slogdet eigvalsh eigh cholesky"):
            yield f"linalg.{name}", [a], {}
        yield "linalg.cholesky", [a], {"upper": True}
        for n in (0, 1, 3, -2):
            yield "linalg.matrix_power", [a, n], {}
        yield "linalg.solve", [a, some(d, (*shape[:-1], 2))], {}
        yield "linalg.solve", [a, some(d, (shape[-1],))], {}
    for d, shape in itertools.product(FLOATS, RECTANGLES):
        a = rng.standard_normal(shape).astype(d)
        for name in words("pinv svdvals matrix_rank"):
            yield f"linalg.{name}", [a], {}
        for name in ("pinv", "matrix_rank"):
            yield f"linalg.{name}", [a], {"rtol": 0.1}
            yield f"linalg.{name}", [a], {"rtol": np.asarray(rng.uniform(0.05, 0.9, shape[:-2]), d)}
        for mode in ("reduced", "complete"):
            yield "linalg.qr", [a], {"mode": mode}
        for full in (True, False):
            yield "linalg.svd", [a], {"full_matrices": full}
        yield "linalg.svd", [a], {}
        for order, keepdims in itertools.product(("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf), (False, True)):
            yield "linalg.matrix_norm", [a], {"ord": order, "keepdims": keepdims}
    for d, order, shape in itertools.product(FLOATS, (2, 1, 0, 3, -1, 0.5, np.inf, -np.inf), [(5,), (3, 4)]):
        for named in how(shape):
            yield "linalg.vector_norm", [some(d, shape)], {"ord": order, **named}
    for d in FLOATS:
        yield "linalg.vector_norm", [some(d, ())], {}
        yield "linalg.vector_norm", [some(d, (0,))], {}


# Fourier transforms.


def transforms():
    for d, shape in itertools.product(FLOATS, AXES):
        for name, axes in itertools.product(("fftshift", "ifftshift"), (None, 0, (0, -1) if len(shape) > 1 else (0,))):
            yield f"fft.{name}", [some(d, shape)], {"axes": axes}
    for name, n, d in itertools.product(("fftfreq", "rfftfreq"), (1, 4, 7), (None, *FLOATS)):
        yield f"fft.{name}", [n], {"dtype": d}
        yield f"fft.{name}", [n], {"d": 0.5, "dtype": d}
    norms = ("backward", "ortho", "forward")
    for d, name, norm in itertools.product(FLOATS, words("fft ifft irfft hfft"), norms):
        for shape, named in itertools.product([(5,), (4, 6)], ({}, {"n": 7}, {"n": 3, "axis": 0}, {"axis": 0})):
            yield f"fft.{name}", [(some(d, shape), some(d, shape))], {**named, "norm": norm}
    for d, name, norm in itertools.product(FLOATS, words("rfft ihfft"), norms):
        for shape, named in itertools.product([(5,), (4, 6)], ({}, {"n": 7}, {"n": 3, "axis": 0}, {"axis": 0})):
            yield f"fft.{name}", [some(d, shape)], {**named, "norm": norm}
    for d, name, norm in itertools.product(FLOATS, words("fftn ifftn rfftn irfftn"), norms):
        for named in ({}, {"axes": (0,)}, {"s": (3, 5), "axes": (0, 1)}, {"axes": (-1, 0)}):
            parts = (some(d, (4, 6)), some(d, (4, 6)))
            yield f"fft.{name}", [parts[0] if name == "rfftn" else parts], {**named, "norm": norm}


# Both sides.


def assigned(x, key, value):
    x[key] = value
    return x


METHODS = {"x.T": lambda x: x.T, "x.mT": lambda x: x.mT, "x[key] = value": assigned}


def found(module, name):
    if name in METHODS:
        return METHODS[name]
    if name.startswith("operator."):
        return getattr(operator, name[9:])
    for part in name.split("."):
        module = getattr(module, part)
    return module


def parts_of(name, out, plain):
    """Arrays of NumPy's: of complex ones both parts, of factors what is determined."""
    out = [plain(v) for v in (out if isinstance(out, (tuple, list)) else [out])]
    out = [part for v in out for part in ([v.real, v.imag] if v.dtype.kind == "c" else [v])]
    return PRODUCTS[name](*out) if name in PRODUCTS else out


def of_strict(strict, name, args, named):
    def there(part):
        if isinstance(part, (np.ndarray, np.generic)):
            return strict.asarray(part.copy())
        return getattr(strict, part) if isinstance(part, str) and part in DTYPES else part

    if name == "isin":  # array_api_strict forgets `invert`
        return [np.isin(*args, **named)]
    if name in OF_PAIRS:
        args = [a[0] + 1j * a[1] if isinstance(a, tuple) else a for a in args]
    out = found(strict, name)(*of_parts(args, there), **of_parts(named, there))
    return parts_of(name, out, lambda v: np.asarray(getattr(v, "_array", v)))


def of_rscan(name, args, named):
    here = lambda part: Array(part.copy()) if isinstance(part, (np.ndarray, np.generic)) else part
    return parts_of(name, found(xp, name)(*of_parts(args, here), **of_parts(named, here)), lambda v: v.value)


def difference(strict, name, args, named):
    """None where both give the same."""
    expected = of_strict(strict, name, args, named)
    try:
        got = of_rscan(name, args, named)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if len(got) != len(expected):
        return f"{len(got)} arrays, expected {len(expected)}"
    for g, e in zip(got, expected, strict=True):
        if (g.dtype, g.shape) != (e.dtype, e.shape):
            return f"{g.dtype}{g.shape}, expected {e.dtype}{e.shape}"
        if name.startswith("empty"):
            continue
        close = 2e-5 if e.dtype == "float32" else 1e-9
        if not (np.allclose(g, e, close, close, equal_nan=True) if e.dtype.kind == "f" else np.array_equal(g, e)):
            return f"{g}, expected {e}"
        if name in SIGNED and not np.array_equal(np.signbit(g[g == 0]), np.signbit(e[g == 0])):
            return f"{g}, expected {e}: the signs of zeros"
    return None


#: Functions of which the sign of 0 counts.
SIGNED = {*words(ONE_FLOAT), *words(ONE_NUMBER), *words(TWO_FLOATS), *words("add subtract multiply floor_divide remainder pow")}


def functions(strict):
    """The names of the standard."""
    for prefix, module in (("", strict), ("linalg.", strict.linalg), ("fft.", strict.fft)):
        for name in module.__all__:
            member = getattr(module, name)
            if callable(member) and not isinstance(member, type) and not isinstance(member, strict._dtypes.DType):
                yield prefix + name


def main():
    import array_api_strict as strict

    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    wanted = sys.argv[1:]
    wrong, total = collections.defaultdict(list), collections.Counter()
    for name, args, named in cases():
        if wanted and name not in wanted:
            continue
        total[name] += 1
        differs = difference(strict, name, args, named)
        if differs:
            wrong[name].append(f"{args} {named}: {differs}")
    for what, names in (("without complex numbers", set(total) - OF_PAIRS), ("of complex arrays as pairs", set(total) & OF_PAIRS)):
        cases_of, good = sum(total[n] for n in names), sum(total[n] - len(wrong[n]) for n in names)
        print(f"{what}: {good} of {cases_of} cases agree; {sum(not wrong[n] for n in names)} of {len(names)} functions in all of theirs")
    without = set() if wanted else set(functions(strict)) - set(total) - UNCOUNTED
    if without:
        print(f"without a case: {' '.join(sorted(without))}")
    for name, all_of_it in wrong.items():
        if all_of_it:
            print(f"{name}: {len(all_of_it)} of {total[name]} differ; {LACKING.get(name) or ' '.join(all_of_it[0][:600].split())}")
    return int(bool(without) or not {name for name, faults in wrong.items() if faults} <= set(LACKING))


if __name__ == "__main__":
    sys.exit(main())
