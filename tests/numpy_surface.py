"""NumPy's functions by their names: values over dtypes and edge shapes beside NumPy, gradients beside differences, batch rules beside
loops.

    PYTHONPATH=python:tests python -m numpy_surface          # all of it, and what fails
    PYTHONPATH=python:tests python -m numpy_surface sort     # of some names
"""

import collections
import inspect
import sys
import warnings

import numpy as np
from helpers import DTYPES
from numpy_forms import FORMS

import rscan as rs

SCALAR, VECTORS, MATRICES, MORE = [()], [(5,), (1,), (0,)], [(2, 3), (1, 1), (0, 3), (3, 0)], [(2, 1, 3)]
ANY = [*SCALAR, *VECTORS, *MATRICES, *MORE]
ARRAYS = [*VECTORS, *MATRICES, *MORE]
SQUARE = [(3, 3), (1, 1), (2, 3, 3)]
FLOATS = ["float32", "float64"]
INTEGERS = [d for d in DTYPES if d not in FLOATS]


def words(text):
    return text.split()


#: Per kind: names, calls, shapes, and dtypes. In calls `m` is the module, `x` and `y` are arrays of one shape and dtype.
KINDS = [
    (
        "abs absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh cbrt ceil conj conjugate cos "
        "cosh "
        "deg2rad degrees exp exp2 expm1 fabs fix floor imag iscomplex isfinite isinf isnan isneginf isposinf isreal log log10 log1p log2 "
        "logical_not modf nan_to_num negative positive rad2deg radians real real_if_close rint sign signbit sin sinc sinh sqrt "
        "square tan tanh trunc i0 array asarray asanyarray copy ones_like zeros_like ravel transpose atleast_1d atleast_2d atleast_3d "
        "argwhere "
        "nonzero ndim shape size",
        ["m.{}(x)"], ANY, DTYPES,
    ),
    ("reciprocal", ["m.{}(x)"], ANY, FLOATS),
    ("squeeze", ["m.{}(x)"], ANY, DTYPES),
    ("array_equiv", ["m.{}(x, y)", "m.{}(x, x[..., :1])"], ARRAYS, DTYPES),
    ("unique_values", ["m.sort(m.{}(x))"], ARRAYS, DTYPES),
    ("bitwise_invert bitwise_not invert bitwise_count", ["m.{}(x)"], ANY, INTEGERS),
    (
        "add arctan2 atan2 copysign divide divmod equal float_power floor_divide fmax fmin fmod greater greater_equal heaviside hypot less "
        "less_equal logaddexp logaddexp2 logical_and logical_or logical_xor maximum minimum mod multiply not_equal power pow remainder "
        "subtract true_divide isclose allclose array_equal",
        ["m.{}(x, y)", "m.{}(x, y[..., :1])", "m.{}(x, 2)"], ARRAYS, DTYPES,
    ),
    ("bitwise_and bitwise_or bitwise_xor", ["m.{}(x, y)"], ANY, INTEGERS),
    ("bitwise_left_shift bitwise_right_shift left_shift right_shift", ["m.{}(x, y % 3)"], ANY, INTEGERS[1:]),
    ("gcd lcm", ["m.{}(x, y)"], ANY, INTEGERS[1:]),
    ("ldexp", ["m.{}(x, m.asarray([1, 2, 0])[:1])"], ANY, FLOATS),
    (
        "sum prod max min amax amin mean std var any all median ptp nansum nanprod nanmax nanmin nanmean nanstd nanvar nanmedian "
        "count_nonzero",
        ["m.{}(x)", "m.{}(x, axis=0)", "m.{}(x, axis=-1, keepdims=True)"], ARRAYS, DTYPES,
    ),
    ("argmax argmin nanargmax nanargmin", ["m.{}(x)", "m.{}(x, axis=0)"], ARRAYS, DTYPES),
    ("sort argsort cumsum cumprod nancumsum nancumprod", ["m.{}(x)", "m.{}(x, axis=0)"], ARRAYS, DTYPES),
    ("cumulative_sum cumulative_prod", ["m.{}(x, axis=0)", "m.{}(x, axis=-1, include_initial=True)"], ARRAYS, DTYPES),
    ("quantile nanquantile", ["m.{}(x, 0.3)", "m.{}(x, [0.0, 0.7], axis=0)"], ARRAYS, FLOATS),
    ("percentile nanpercentile", ["m.{}(x, 30)", "m.{}(x, 70, axis=0)"], ARRAYS, FLOATS),
    ("average", ["m.{}(x)", "m.{}(x, axis=0, weights=y * y + 1)"], ARRAYS, FLOATS),
    ("partition", ["m.sort(m.{}(x, 0), axis=-1)"], [(5,), (2, 3)], DTYPES),
    ("argpartition", ["m.sort(m.{}(x, 0), axis=-1)"], [(5,), (2, 3)], DTYPES),
    ("lexsort", ["m.{}((x, y))"], VECTORS, DTYPES),
    ("searchsorted digitize", ["m.{}(*((m.sort(x), y) if '{}' == 'searchsorted' else (y, m.sort(x))))"], VECTORS, DTYPES),
    ("unique unique_counts unique_inverse unique_all", ["m.{}(x)"], ARRAYS, DTYPES),
    ("intersect1d setdiff1d setxor1d union1d", ["m.{}(x, y)"], VECTORS, DTYPES),
    ("isin", ["m.{}(x, y)", "m.{}(x, [1, 2], invert=True)"], ARRAYS, DTYPES),
    ("flatnonzero", ["m.{}(x)"], ARRAYS, DTYPES),
    ("diff", ["m.{}(x)", "m.{}(x, axis=0)", "m.{}(x, n=2)"], ARRAYS, DTYPES),
    ("ediff1d", ["m.{}(x)"], ARRAYS, DTYPES[1:]),
    ("gradient", ["m.{}(x)", "m.{}(x, 0.5)"], [(5,), (4,), (2,), (1,)], FLOATS),
    ("trapezoid", ["m.{}(x)", "m.{}(x, dx=0.5, axis=0)"], ARRAYS, FLOATS),
    ("interp", ["m.{}(y, m.sort(x), x)"], VECTORS, FLOATS),
    ("unwrap", ["m.{}(x)", "m.{}(x, axis=0)"], ARRAYS, FLOATS),
    ("cov corrcoef", ["m.{}(x)"], [(5,), (2, 3)], FLOATS),
    ("convolve correlate", ["m.{}(x, y[:2])", "m.{}(x, y[:3], 'same')", "m.{}(x, y[:2], 'valid')"], [(5,), (1,)], DTYPES[1:]),
    ("bincount", ["m.{}(abs(x) % 4)", "m.{}(abs(x) % 4, minlength=6)"], VECTORS, ["int64", "uint8", "int16"]),
    ("histogram", ["m.{}(x, 4, range=(-3, 3))", "m.{}(x, [-2.0, 0.0, 2.0])"], ARRAYS, FLOATS),
    ("polyval", ["m.{}(x, 2)", "m.{}(x, y)"], VECTORS, FLOATS),
    ("polyadd polysub polymul", ["m.{}(x, y)"], [(5,), (1,)], FLOATS),
    ("polyder polyint", ["m.{}(x)"], [(5,), (1,)], FLOATS),
    ("polyfit", ["m.{}(m.asarray([0.0, 1.0, 2.0, 4.0, 5.0]), x, 2)"], [(5,), (5, 2)], ["float64"]),
    ("poly vander", ["m.{}(x)"], [(5,), (1,)], ["float64"]),
    ("flip", ["m.{}(x)", "m.{}(x, 0)"], ARRAYS, DTYPES),
    ("flipud", ["m.{}(x)"], ARRAYS, DTYPES),
    ("fliplr rot90 matrix_transpose", ["m.{}(x)"], [*MATRICES, *MORE], DTYPES),
    ("roll", ["m.{}(x, 1)", "m.{}(x, -2, 0)"], ARRAYS, DTYPES),
    ("repeat", ["m.{}(x, 2)", "m.{}(x, 3, axis=0)"], ARRAYS, DTYPES),
    ("tile", ["m.{}(x, 2)", "m.{}(x, (2, 1))"], ARRAYS, DTYPES),
    ("reshape", ["m.{}(x, (-1,))", "m.{}(x, x.shape[::-1])"], [(5,), (1,), (2, 3), (1, 1), (2, 1, 3)], DTYPES),
    ("resize", ["m.{}(x, (2, 2))"], [(5,), (1,), (2, 3)], DTYPES),
    ("expand_dims", ["m.{}(x, 0)", "m.{}(x, -1)"], ANY, DTYPES),
    ("moveaxis swapaxes rollaxis", ["m.{}(x, 0, 1)"], [*MATRICES, *MORE], DTYPES),
    ("permute_dims", ["m.{}(x, (1, 0))"], MATRICES, DTYPES),
    ("broadcast_to", ["m.{}(x, (2, *x.shape))"], ANY, DTYPES),
    ("broadcast_arrays", ["m.{}(x, y[:1])"], ARRAYS, DTYPES),
    ("concatenate concat stack hstack vstack", ["m.{}([x, y])"], ARRAYS, DTYPES),
    ("column_stack dstack", ["m.{}([x, y])"], ARRAYS, DTYPES),
    ("append", ["m.{}(x, y)", "m.{}(x, y, 0)"], ARRAYS, DTYPES),
    ("insert", ["m.{}(x, 0, 1)", "m.{}(x, 0, 1, axis=0)"], ARRAYS, DTYPES),
    ("delete", ["m.{}(x, 0)", "m.{}(x, [0], axis=0)"], [(5,), (1,), (2, 3), (1, 1)], DTYPES),
    ("block", ["m.{}([x, y])"], ARRAYS, DTYPES),
    ("pad", ["m.{}(x, 1)", "m.{}(x, 2, 'constant', constant_values=1)"], ARRAYS, DTYPES),
    ("trim_zeros", ["m.{}(x)"], VECTORS, DTYPES),
    ("split array_split", ["m.{}(x, 1)"], ARRAYS, DTYPES),
    ("unstack", ["m.{}(x)"], [(5,), (1,), (2, 3), (1, 1)], DTYPES),
    ("hsplit vsplit", ["m.{}(x, 1)"], [(2, 3), (1, 1)], DTYPES),
    ("dsplit", ["m.{}(x, 3)"], MORE, DTYPES),
    ("take", ["m.{}(x, [0, -1])", "m.{}(x, [0], axis=0)"], [(5,), (1,), (2, 3), (1, 1)], DTYPES),
    ("take_along_axis", ["m.{}(x, m.argsort(y, axis=0), 0)"], [(5,), (1,), (2, 3), (1, 1)], DTYPES),
    ("choose", ["m.{}([0, 1, 0, 1, 1], [x, y])"], [(5,)], DTYPES),
    ("select", ["m.{}([x > y, x < y], [x, y], 0)"], ARRAYS, DTYPES[1:]),
    ("piecewise", ["m.{}(x, [x > 0, x < 0], [lambda v: v * v, 1])"], ARRAYS, FLOATS),
    ("where", ["m.{}(x > y, x, y)"], ARRAYS, DTYPES[1:]),
    ("compress", ["m.{}([True, False], x, axis=0)"], [(5,), (2, 3)], DTYPES),
    ("extract", ["m.{}(x > y, x)"], ARRAYS, DTYPES[1:]),
    ("clip", ["m.{}(x, 1, 2)"], ARRAYS, DTYPES[1:]),
    ("round around", ["m.{}(x)", "m.{}(x, 1)"], ANY, FLOATS),
    ("full_like", ["m.{}(x, 1)"], ANY, DTYPES),
    ("diag diagflat", ["m.{}(x)", "m.{}(x, 1)"], [(5,), (1,), (2, 3), (1, 1)], DTYPES),
    ("diagonal trace", ["m.{}(x)", "m.{}(x, 1)"], [*MATRICES, *MORE], DTYPES),
    ("tril triu", ["m.{}(x)", "m.{}(x, 1)"], [*MATRICES, *MORE], DTYPES),
    ("tril_indices triu_indices", ["m.{}(3, 1)"], SCALAR, ["float64"]),
    ("tril_indices_from triu_indices_from", ["m.{}(x)"], MATRICES, ["float64"]),
    ("diag_indices tri eye identity hamming hanning blackman bartlett", ["m.{}(4)", "m.{}(1)", "m.{}(0)"], SCALAR, ["float64"]),
    ("diag_indices_from", ["m.{}(x)"], [(3, 3)], ["float64"]),
    ("kaiser", ["m.{}(4, 2.0)", "m.{}(1, 2.0)"], SCALAR, ["float64"]),
    ("zeros ones", ["m.{}((2, 0))", "m.{}(3, 'int8')"], SCALAR, ["float64"]),
    ("full", ["m.{}((2, 3), x)"], SCALAR, DTYPES),
    ("arange", ["m.{}(5)", "m.{}(1, 2, 0.25)", "m.{}(5, 1, -2)"], SCALAR, ["float64"]),
    ("linspace", ["m.{}(x, 3.0, 5)", "m.{}(0, x, 1)", "m.{}(0, x, 4, endpoint=False)"], SCALAR, FLOATS),
    ("logspace", ["m.{}(x, 1.0, 3)"], SCALAR, ["float64"]),
    ("geomspace", ["m.{}(x * x + 1, 7.0, 3)"], SCALAR, ["float64"]),
    ("meshgrid", ["m.{}(x, y)", "m.{}(x, y, indexing='ij')"], VECTORS, DTYPES),
    ("indices", ["m.{}((2, 3))", "m.{}((0, 2))"], SCALAR, ["float64"]),
    ("ix_", ["m.{}([0, 2], [1])"], SCALAR, ["float64"]),
    ("unravel_index", ["m.{}([0, 3], (2, 2))"], SCALAR, ["float64"]),
    ("ravel_multi_index", ["m.{}(([0, 1], [1, 0]), (2, 2))"], SCALAR, ["float64"]),
    ("apply_along_axis", ["m.{}(lambda v: v.sum(), 0, x)"], [(5,), (2, 3), (1, 1)], FLOATS),
    ("apply_over_axes", ["m.{}(m.sum, x, [0])"], ARRAYS, FLOATS),
    ("dot inner outer", ["m.{}(x, y)"], VECTORS, DTYPES),
    ("vdot kron vecdot", ["m.{}(x, y)"], ARRAYS, DTYPES[1:]),
    ("matmul", ["m.{}(x, y)", "m.{}(x, y[..., 0])"], [(3, 3), (1, 1), (0, 0), (2, 3, 3)], DTYPES),
    ("tensordot", ["m.{}(x, y, axes=0)", "m.{}(x, y, axes=1)"], VECTORS, DTYPES[1:]),
    ("matvec vecmat", ["m.{}(*((x, y[..., 0]) if '{}' == 'matvec' else (y[..., 0], x)))"], SQUARE, FLOATS),
    ("einsum", ["m.{}('...,...->...', x, y)"], ANY, FLOATS),
    ("cross", ["m.{}(x, y)"], [(2, 3), (3,)], DTYPES[1:]),
]  # fmt: skip
#: Of `linalg`; `s` is x times its transpose plus the unit matrix.
LINALG = [
    ("det inv slogdet matrix_power", ["m.linalg.{}(s, *([2] if '{}' == 'matrix_power' else []))"], SQUARE, FLOATS),
    ("cholesky eigvalsh", ["m.linalg.{}(s)"], SQUARE, FLOATS),
    ("svdvals cond matrix_norm", ["m.linalg.{}(x)"], [(2, 3), (1, 1), (2, 3, 3)], FLOATS),
    ("pinv matrix_rank", ["m.linalg.{}(x)"], [(2, 3), (1, 1), (2, 3, 3)], ["float64"]),
    ("solve", ["m.linalg.{}(s, x)"], SQUARE, FLOATS),
    ("norm vector_norm", ["m.linalg.{}(x)", "m.linalg.{}(x, axis=0)"], [(5,), (2, 3), (1, 1)], FLOATS),
    ("multi_dot", ["m.linalg.{}([x, s, x])"], [(3, 3), (1, 1)], FLOATS),
    ("outer vecdot cross", ["m.linalg.{}(x, y)"], [(3,)], DTYPES[1:]),
    ("diagonal trace matrix_transpose", ["m.linalg.{}(x)"], SQUARE, FLOATS),
    ("matmul tensordot", ["m.linalg.{}(x, y)"], [(3, 3)], FLOATS),
    ("tensorinv tensorsolve", ["m.linalg.{}(s, *([1] if '{}' == 'tensorinv' else [x[..., 0]]))"], [(3, 3)], ["float64"]),
    ("qr", ["abs(m.linalg.{}(x)[1])"], [(2, 3), (3, 3), (1, 1), (3, 2)], ["float64"]),
    ("svd", ["m.linalg.{}(x, full_matrices=False)[1]"], [(2, 3), (3, 3), (1, 1)], ["float64"]),
    ("eigh", ["m.linalg.{}(s)[0]"], SQUARE, ["float64"]),
    ("lstsq", ["m.linalg.{}(x, y[:, 0])[0]"], [(3, 3), (3, 2)], ["float64"]),
]
#: Where values jump at the points that are drawn, or nothing is to be differentiated; and where rows are no vectors.
NO_GRADIENT = {"i0", "matrix_rank", "poly", "cond", "unstack"}
#: Where slopes are taken, if not between -2.4 and 2.4.
DOMAINS = {
    **dict.fromkeys(words("acos arccos arcsin asin arctanh atanh log log10 log1p log2 sqrt power pow float_power"), (0.2, 0.9)),
    **dict.fromkeys(words("acosh arccosh"), (1.2, 2.0)),
}
#: What asks for known extents.
KNOWN = {"squeeze", "poly", "unstack"}
#: Floats keep their dtype where NumPy goes on in float64, and the other way round. Integers become float64 everywhere, NumPy's smaller ones
#: float16 and float32.
OWN_DTYPES = {"quantile", "nanquantile", "interp", "cov", "corrcoef", "histogram", "polyval", "polyder", "polyint", "conj", "conjugate"}
#: What is an error of one of both alone: statistics of nothing, and truth values where arithmetic makes none.
OWN_ERRORS = {"median", "nanmedian", "nanquantile", "nanpercentile", "quantile", "percentile", "average", "positive", "nonzero"}


def table():
    """Name, call, shapes and dtypes."""
    for kinds, of in ((KINDS, ""), (LINALG, "linalg."), (FORMS, "")):
        for names, calls, shapes, dtypes in kinds:
            for name in words(names):
                for call in calls:
                    yield of + name, call.replace("{}", name), shapes, dtypes


def domain(name):
    return [DOMAINS[name]] if name in DOMAINS else []


def drawn(shape, dtype, seed):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in FLOATS:
        return np.asarray(rng.uniform(-2.4, 2.4, shape)).astype(dtype)
    return rng.integers(0 if dtype[0] == "u" else -3, 5, shape).astype(dtype)


def value(module, call, x, y):
    names = {"m": module, "x": x, "y": y}
    if "s" in words(call.replace("(", " ( ").replace(",", " ,").replace("[", " [ ").replace(")", " )")):
        names["s"] = module.matmul(x, module.swapaxes(x, -1, -2)) + module.eye(x.shape[-1], dtype=x.dtype)
    return eval(call, names)


def parts(result):
    """Arrays and numbers of a result, flat."""
    if isinstance(result, (tuple, list)):
        return [p for item in result for p in parts(item)]
    return [result]


def computed(build, *arrays, known=False):
    """What rscan gives of inputs of unknown extents."""
    inputs = [rs.tensor(a.dtype, a.shape if known else (None,) * a.ndim) for a in arrays]
    return rs.function(inputs, [rs.as_variable(v) for v in parts(build(*inputs))], on_unused_input="ignore")(*arrays)


def differs(got, expected, lax=False):
    """What is wrong, or None. lax: whatever the dtype of floats."""
    if len(got) != len(expected):
        return f"{len(got)} results, not {len(expected)}"
    for g, e in zip(got, expected, strict=True):
        e = np.asarray(e)
        half = e.dtype == "float16"
        if g.shape != e.shape or (g.dtype != e.dtype and not (lax and g.dtype.kind in "fb")):
            return f"{g.dtype}{g.shape}, not {e.dtype}{e.shape}"
        if e.dtype.kind != "f":
            if not np.array_equal(g, e):
                return f"{g}, not {e}"
        else:
            close = 2e-2 if half else 2e-5 if "float32" in (e.dtype, g.dtype) else 1e-9
            if not np.allclose(g, e, close, close, equal_nan=True):
                return f"{g}, not {e}"
    return None


def compared(name, call, shape, dtype):
    """A value beside NumPy's; an error where NumPy has one."""
    x, y = drawn(shape, dtype, 1), drawn(shape, dtype, 2)
    known, own = name in KNOWN or name.startswith("linalg."), name in OWN_ERRORS
    ours = lambda: computed(lambda x, y: value(rs, call, x, y), x, y, known=known)
    try:
        expected = parts(value(np, call, x, y))
    except Exception as error:
        try:
            got = ours()
        except Exception:
            return None
        return None if own else f"{got}, where NumPy says {error}"
    if any(np.asarray(e).dtype.kind not in "bifu" for e in expected):
        return None
    if own and x.size == 0:
        return None
    try:
        return differs(ours(), expected, lax=dtype not in FLOATS or name in OWN_DTYPES)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


def slope(call, shape, domain=(-2.4, 2.4)):
    """The gradient of a weighted sum beside differences."""
    x, y = (np.asarray(np.random.default_rng(seed).uniform(*domain, shape)) for seed in (3, 4))

    def cost(x, y):
        floats = [v for v in map(rs.as_variable, parts(value(rs, call, x, y))) if v.dtype == "float64"]
        return rs.sum(rs.stack([rs.sum(rs.cos(rs.arange(v.size) + 1.0) * rs.ravel(v)) for v in floats])) if floats else 0.0 * rs.sum(x + y)

    try:
        rs.verify_grad(cost, [x, y])
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return None


def rows(call, shape, dtype):
    """The batch rule beside a loop over rows."""
    x, y = (np.stack([drawn(shape, dtype, 10 * k + seed) for k in range(3)]) for seed in (5, 6))
    f = lambda x, y: [rs.as_variable(v) for v in parts(value(rs, call, x, y))]
    try:
        alone = [computed(f, a, b) for a, b in zip(x, y, strict=True)]
    except Exception:
        return None
    if any(len({row[k].shape for row in alone}) > 1 for k in range(len(alone[0]))):
        return None
    try:
        return differs(computed(lambda x, y: rs.vmap(f)(x, y), x, y), [np.stack([row[k] for row in alone]) for k in range(len(alone[0]))])
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


def checks(wanted=()):
    """What is checked, and what is wrong about it."""
    for name, call, shapes, dtypes in table():
        if wanted and name not in wanted:
            continue
        for shape in shapes:
            for dtype in dtypes:
                yield name, f"{call} of {dtype}{shape}", compared(name, call, shape, dtype)
        if "float64" in dtypes and name.rpartition(".")[2] not in NO_GRADIENT:
            yield name, f"gradient of {call} at {shapes[0]}", slope(call, shapes[0], *domain(name))
        for dtype in {"float64", "int64"} & set(dtypes):
            yield name, f"rows of {call} of {dtype}{shapes[0]}", rows(call, shapes[0], dtype)


def functions(module):
    """NumPy's own index: functions and ufuncs, no classes."""
    found = [n for n in dir(module) if not n.startswith("_") and callable(getattr(module, n)) and not inspect.isclass(getattr(module, n))]
    return sorted(set(found) - {"test"})


def main():
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    total, wrong = collections.Counter(), collections.defaultdict(list)
    for name, what, fault in checks(sys.argv[1:]):
        total[name] += 1
        if fault:
            wrong[name].append(f"{what}: {fault}")
    for faults in wrong.values():
        print("\n".join(f[:240] for f in faults[:6]))
    for numpys, ours in ((np, rs), (np.linalg, rs.linalg), (np.fft, rs.fft)):
        names = functions(numpys)
        print(f"{numpys.__name__}: {sum(hasattr(ours, n) for n in names)} of {len(names)} functions are there")
    good = len(total) - len(wrong)
    print(f"{total.total()} checks of {len(total)} names: {good} names agree, {sum(map(len, wrong.values()))} checks differ")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
