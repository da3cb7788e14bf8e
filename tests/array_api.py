"""The functions of the array API standard, as `rscan` has them, beside `array_api_strict`: values, dtypes and shapes.

PYTHONPATH=tests python -m array_api        # all cases: the share that agrees, and what does not
"""

import collections
import itertools
import sys
import warnings

import numpy as np

import rscan as rs

REAL = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"]
INTS, FLOATS, NUMBERS = REAL[1:9], REAL[9:], REAL[1:]
rng = np.random.default_rng(0)

#: What rscan lacks, and why.
LACKING = {
    "nextafter": "the bits of floats are not there",
}


def words(text):
    return text.split()


def some(dtype, shape=(3, 4), low=1, high=6):
    """Numbers of a dtype on which all functions are defined."""
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.startswith("float"):
        return rng.uniform(0.1, 0.9, shape).astype(dtype)
    return rng.integers(low, high, shape).astype(dtype)


def promoted():
    """Pairs of dtypes of one kind that have a common one."""
    for a, b in itertools.product(NUMBERS, NUMBERS):
        if (a[0] == "f") == (b[0] == "f") and (np.result_type(a, b).kind == "f") == (a[0] == "f"):
            yield a, b


def cases():
    """Name, arguments and named arguments of each call."""
    yield from elementwise()
    yield from along_axes()
    yield from shapes()
    yield from created()
    yield from matrices()


def elementwise():
    for name, d in itertools.product(words("abs ceil floor negative positive round sign square trunc isfinite isinf isnan"), NUMBERS):
        yield name, [some(d)], {}
    ones = "acos asin atan atanh cos cosh exp expm1 log log1p log2 log10 sin sinh sqrt tan tanh asinh reciprocal signbit"
    for name, d in itertools.product(words(ones), FLOATS):
        yield name, [some(d)], {}
    for d in FLOATS:
        yield "acosh", [some(d) + 1], {}
    for d in [*INTS, "bool"]:
        yield "bitwise_invert", [some(d)], {}
    twos = "add subtract multiply floor_divide remainder maximum minimum equal not_equal less less_equal greater greater_equal pow"
    for name, (a, b) in itertools.product(words(twos), list(promoted())):
        yield name, [some(a), some(b, (4,))], {}
    for name, a, b in itertools.product(words("divide atan2 copysign hypot logaddexp nextafter"), FLOATS, FLOATS):
        yield name, [some(a), some(b)], {}
    bits = "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift"
    for name, (a, b) in itertools.product(words(bits), [pair for pair in promoted() if pair[0][0] != "f"]):
        yield name, [some(a), some(b, low=0, high=3)], {}
    yield "logical_not", [some("bool")], {}
    for name in words("logical_and logical_or logical_xor"):
        yield name, [some("bool"), some("bool")], {}
    for d in NUMBERS:
        yield "clip", [some(d), 1 if d[0] != "f" else 0.2, 3 if d[0] != "f" else 0.5], {}
    for d in REAL:
        yield "where", [some("bool"), some(d), some(d)], {}
        for to in REAL:
            yield "astype", [some(d), to], {}


def along_axes():
    for name in words("sum prod max min mean std var"):
        for d in FLOATS if name in ("mean", "std", "var") else NUMBERS:
            for how in ({}, {"axis": 0}, {"axis": -1}, {"axis": (0, 1)}, {"keepdims": True}):
                yield name, [some(d, high=3)], how
    for name, d in itertools.product(words("cumulative_sum cumulative_prod"), NUMBERS):
        for how in ({"axis": 0}, {"axis": -1}, {"axis": 0, "include_initial": True}):
            yield name, [some(d, high=3)], how
    for name, d in itertools.product(("std", "var"), FLOATS):
        yield name, [some(d)], {"correction": 1.0, "axis": 0}
    for name, d in itertools.product(words("all any count_nonzero"), REAL):
        yield name, [some(d)], {"axis": 0}
        yield name, [some(d)], {}
    for d in NUMBERS:
        for name, how in itertools.product(("argmax", "argmin"), ({"axis": 1}, {})):
            yield name, [some(d)], how
        distinct = rng.permutation(12).reshape(3, 4).astype(d)
        for name, how in itertools.product(("sort", "argsort"), ({}, {"axis": 0}, {"descending": True}, {"stable": False})):
            yield name, [distinct], how
        yield "argsort", [some(d)], {"descending": True}
        yield "diff", [some(d)], {"axis": 0}
        yield "diff", [some(d)], {"axis": 0, "prepend": some(d, (1, 4))}
        yield "diff", [some(d)], {"axis": 1, "append": some(d, (3, 2)), "n": 2}
        yield "searchsorted", [np.sort(some(d, (5,))), some(d, (3,))], {}
    for name in words("unique_values unique_counts unique_inverse unique_all"):
        yield name, [np.array([2, 1, 2])], {}


def shapes():
    for d in REAL:
        x = some(d)
        yield "flip", [x], {}
        yield "flip", [x], {"axis": 1}
        yield "roll", [x, 2], {}
        yield "roll", [x, 1], {"axis": 0}
        yield "permute_dims", [x, (1, 0)], {}
        yield "reshape", [x, (2, 6)], {}
        yield "reshape", [x, (2, -1)], {"copy": True}
        yield "expand_dims", [x], {"axis": 1}
        yield "squeeze", [some(d, (3, 1)), 1], {}
        yield "moveaxis", [x, 0, 1], {}
        yield "tile", [x, (2, 1)], {}
        yield "repeat", [x, 2], {"axis": 0}
        yield "broadcast_to", [some(d, (4,)), (3, 4)], {}
        yield "take", [x, np.array([1, 0])], {"axis": 0}
        yield "take_along_axis", [x, np.zeros((3, 1), "int64")], {"axis": 1}
        yield "tril", [x], {}
        yield "triu", [x], {"k": 1}
        yield "concat", [[x, x]], {"axis": 0}
        yield "stack", [[x, x]], {"axis": 1}
        yield "zeros_like", [x], {}
        yield "ones_like", [x], {}
        yield "full_like", [x, 1 if d != "bool" else True], {}
    yield "nonzero", [some("int64", low=0, high=2)], {}
    yield "unstack", [some("int64")], {}
    yield "broadcast_arrays", [some("int64"), some("int64", (4,))], {}


def created():
    for d in NUMBERS:
        yield "arange", [1, 7, 2], {"dtype": d}
        yield "zeros", [(2, 3)], {"dtype": d}
        yield "ones", [(2, 3)], {"dtype": d}
        yield "full", [(2,), 3], {"dtype": d}
        yield "eye", [3], {"dtype": d, "k": 1}
    for d in FLOATS:
        yield "linspace", [0, 1, 5], {"dtype": d}
    yield "arange", [5], {}
    yield "arange", [0.0, 1.0, 0.25], {}
    yield "full", [(2,), 3.5], {}
    yield "full", [(2,), True], {}
    yield "meshgrid", [some("float64", (3,)), some("float64", (2,))], {}
    yield "meshgrid", [some("int64", (3,)), some("int64", (2,))], {"indexing": "ij"}


def matrices():
    for d in NUMBERS:
        yield "matmul", [some(d, (3, 4)), some(d, (4, 2))], {}
        yield "tensordot", [some(d, (3, 4)), some(d, (4, 2))], {"axes": 1}
        yield "vecdot", [some(d), some(d)], {}
        yield "matrix_transpose", [some(d)], {}
    for d in FLOATS:
        half = rng.standard_normal((3, 3))
        a = (half @ half.T + 4 * np.eye(3)).astype(d)
        for name in words("cholesky det inv pinv svdvals matrix_norm eigvalsh slogdet trace matrix_rank"):
            yield f"linalg.{name}", [a], {}
        yield "linalg.solve", [a, some(d, (3,))], {}
        yield "linalg.vector_norm", [some(d)], {"axis": 1}
        yield "linalg.matrix_power", [a, 3], {}
        yield "linalg.outer", [some(d, (3,)), some(d, (2,))], {}
        for name in ("cross", "vecdot"):
            yield f"linalg.{name}", [some(d, (3,)), some(d, (3,))], {}
        yield "linalg.diagonal", [some(d)], {}


def found(module, name):
    for part in name.split("."):
        module = getattr(module, part)
    return module


def mapped(function, value):
    """Arrays in a list, in the words of a library."""
    if isinstance(value, list):
        return [mapped(function, item) for item in value]
    return function(value) if isinstance(value, np.ndarray) else value


def of_strict(strict, name, args, named):
    word = lambda key, value: getattr(strict, value) if key == "dtype" else mapped(strict.asarray, value)
    values = [getattr(strict, v) if isinstance(v, str) else mapped(strict.asarray, v) for v in args]
    out = found(strict, name)(*values, **{key: word(key, value) for key, value in named.items()})
    return [np.asarray(v._array) for v in out] if isinstance(out, (tuple, list)) else [np.asarray(getattr(out, "_array", out))]


def of_rscan(name, args, named):
    named = {key: mapped(rs.constant, value) for key, value in named.items()}
    out = found(rs, name)(*[mapped(rs.constant, value) for value in args], **named)
    return [np.asarray(v.eval()) for v in (out if isinstance(out, (tuple, list)) else [out])]


def difference(strict, name, args, named):
    """None where both give the same."""
    expected = of_strict(strict, name, args, named)
    try:
        got = of_rscan(name, args, named)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    for g, e in zip(got, expected, strict=True):
        if (g.dtype, g.shape) != (e.dtype, e.shape):
            return f"{g.dtype}{g.shape}, expected {e.dtype}{e.shape}"
        close = 2e-5 if e.dtype == "float32" else 1e-9
        if not (np.allclose(g, e, close, close) if e.dtype.kind == "f" else np.array_equal(g, e)):
            return f"{g}, expected {e}"
    return None


def main():
    import array_api_strict as strict

    warnings.simplefilter("ignore")
    wrong, total = collections.defaultdict(list), collections.Counter()
    for name, args, named in cases():
        total[name] += 1
        differs = difference(strict, name, args, named)
        if differs:
            wrong[name].append(differs)
    good = total.total() - sum(map(len, wrong.values()))
    print(f"{good} of {total.total()} cases agree; {len(total) - len(wrong)} of {len(total)} functions in all of theirs")
    for name, all_of_it in wrong.items():
        print(f"{name}: {len(all_of_it)} of {total[name]}; {LACKING.get(name) or all_of_it[0][:200]}")
    return int(set(wrong) != set(LACKING))


if __name__ == "__main__":
    sys.exit(main())
