"""Functions of variables give what NumPy's give."""

import numpy as np
import pytest
from helpers import DTYPES, INTS, like_numpy, run, same, symbol

import rscan as rs

A = np.array([[3.0, -1.0, 2.5], [0.5, 4.0, -2.0]])
B = np.arange(24.0).reshape(2, 3, 4) - 7.5
AXES = [None, 0, 1, -1, (0, 1), (-1, 0), (0, 1, 2), ()]


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all", "mean"])
@pytest.mark.parametrize("axis", AXES, ids=repr)
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions(name, axis, keepdims):
    like_numpy(lambda m, x: getattr(m, name)(x, axis=axis, keepdims=keepdims), B)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all", "mean", "var", "std"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_of_reductions(name, dtype):
    if dtype == "bool" and name in ("var", "std"):
        pytest.skip("NumPy refuses the difference of bools")
    like_numpy(lambda m, x: getattr(m, name)(x, axis=0), np.array([[1, 0], [1, 1]], dtype))


@pytest.mark.parametrize("axis", [None, 0, (0, 2), -1], ids=repr)
@pytest.mark.parametrize("ddof", [0, 1])
def test_variance(axis, ddof):
    like_numpy(lambda m, x: m.var(x, axis=axis, ddof=ddof), B)
    like_numpy(lambda m, x: m.std(x, axis=axis, ddof=ddof, keepdims=True), B)


def test_reductions_with_a_dtype():
    x = np.array([1, 2, 3], "int8")
    like_numpy(lambda m, v: m.sum(v, dtype="int8"), x)
    like_numpy(lambda m, v: m.sum(v, dtype="float32"), x)
    like_numpy(lambda m, v: v.mean(dtype="float32"), x)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_empty(shape):
    x = np.zeros(shape)
    for name in ("sum", "prod", "any", "all"):
        like_numpy(lambda m, v, name=name: getattr(m, name)(v), x)
    like_numpy(lambda m, v: v.sum(axis=0), x)
    like_numpy(lambda m, v: m.sort(v), x)
    like_numpy(lambda m, v: m.cumsum(v), x)
    like_numpy(lambda m, v: m.concatenate([v, v]), x)
    with pytest.raises(ValueError):
        run(lambda v: v.max(), x)
    with pytest.raises(ValueError):
        run(lambda v: v.argmax(), x)


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value")
def test_mean_of_nothing_is_nan():
    like_numpy(lambda m, v: v.mean(), np.zeros(0))


def test_nan_wins():
    x = np.array([1.0, np.nan, 3.0])
    for name in ("max", "min", "argmax", "argmin", "sort", "argsort"):
        like_numpy(lambda m, v, name=name: getattr(m, name)(v), x)
    rows = np.array([[1.0, 2.0, np.nan, 4.0], [np.nan, 2.5, 0.0, 3.0], [0.5, np.nan, 7.0, 4.5]])
    for name in ("max", "min", "argmax", "argmin"):
        for axis in (0, 1):
            like_numpy(lambda m, v, name=name, axis=axis: getattr(m, name)(v, axis=axis), rows)


@pytest.mark.parametrize("axis", [None, 0, 1, -1], ids=repr)
def test_along_axes(axis):
    for name in ("argmax", "argmin", "cumsum", "cumprod", "sort", "argsort"):
        like_numpy(lambda m, x, name=name: getattr(m, name)(x, axis=axis), A)
    like_numpy(lambda m, x: m.argmax(x, axis=axis, keepdims=True), A)
    like_numpy(lambda m, x: m.ptp(x, axis=axis), A)
    like_numpy(lambda m, x: m.count_nonzero(x > 0, axis=axis), A)
    like_numpy(lambda m, x: m.flip(x, axis=axis), A)
    like_numpy(lambda m, x: m.roll(x, 2, axis=axis), A)
    like_numpy(lambda m, x: m.roll(x, -5, axis=axis), A)
    like_numpy(lambda m, x: m.repeat(x, 3, axis=axis), A)


def test_isclose_with_infinities():
    a = np.array([np.inf, -np.inf, np.inf, 1.0, np.inf, np.nan, np.nan, 1.0])
    b = np.array([np.inf, -np.inf, -np.inf, np.inf, 1.0, np.nan, 1.0, 1.0 + 1e-9])
    same(run(rs.isclose, a, b), np.isclose(a, b))


def test_repeat_tile_diff_average():
    like_numpy(lambda m, x: m.repeat(x, [2, 0, 1], axis=1), A)
    for reps in (2, (2,), (2, 3), (2, 1, 2), ()):
        like_numpy(lambda m, x, reps=reps: m.tile(x, reps), A)
    for n in (1, 2):
        like_numpy(lambda m, x, n=n: m.diff(x, n=n), A)
    like_numpy(lambda m, x: m.diff(x, axis=0), A)
    like_numpy(lambda m, x: m.average(x, axis=1, weights=np.array([1.0, 2.0, 0.5])), A)
    like_numpy(lambda m, x: m.average(x, weights=np.abs(x)), A)
    same(run(lambda x, k: rs.repeat(x, k, 0), A, np.int64(2)), np.repeat(A, 2, 0))
    for axis in (0, 1):
        counts = np.arange(A.shape[axis])[::-1].copy()
        same(run(lambda x, k, axis=axis: rs.repeat(x, k, axis), A, counts), np.repeat(A, counts, axis))
        with pytest.raises(rs.errors.AssertionFailedError):
            run(lambda x, k, axis=axis: rs.repeat(x, k, axis), A, np.ones(A.shape[axis] + 1, np.int64))
    same(run(lambda x, k: rs.roll(x, k, 1), A, np.int64(-1)), np.roll(A, -1, 1))


def test_softmax_family():
    big = np.array([[1000.0, 1000.0, -1000.0], [0.0, 1.0, 2.0]])
    for axis in (0, 1, -1):
        shifted = np.exp(big - big.max(axis, keepdims=True))
        same(run(lambda x, axis=axis: rs.softmax(x, axis), big), shifted / shifted.sum(axis, keepdims=True))
        expected = np.log(shifted.sum(axis)) + big.max(axis)
        same(run(lambda x, axis=axis: rs.logsumexp(x, axis), big), expected)
        same(run(lambda x, axis=axis: rs.log_softmax(x, axis), big), big - np.expand_dims(expected, axis))
    same(run(lambda x: rs.logsumexp(x, (0, 1), keepdims=True), A), np.log(np.exp(A).sum(keepdims=True)))


SHAPES = {
    "reshape": lambda m, x: m.reshape(x, (4, -1)),
    "reshape method": lambda m, x: x.reshape(6, 4),
    "ravel": lambda m, x: m.ravel(x),
    "flatten": lambda m, x: x.flatten(),
    "transpose": lambda m, x: m.transpose(x),
    "transpose axes": lambda m, x: x.transpose(1, -1, 0),
    "T": lambda m, x: x.T,
    "swapaxes": lambda m, x: m.swapaxes(x, 0, -1),
    "moveaxis": lambda m, x: m.moveaxis(x, 0, -1),
    "moveaxis several": lambda m, x: m.moveaxis(x, (0, 1), (-1, 0)),
    "expand_dims": lambda m, x: m.expand_dims(x, (0, -1)),
    "squeeze": lambda m, x: m.squeeze(m.expand_dims(x, 1), 1),
    "broadcast_to": lambda m, x: m.broadcast_to(x, (5, 2, 3, 4)),
    "flip all": lambda m, x: m.flip(x),
    "flipud": lambda m, x: m.flipud(x),
    "fliplr": lambda m, x: m.fliplr(x),
    "rot90": lambda m, x: m.rot90(x, 3),
    "stack": lambda m, x: m.stack([x, x + 1], axis=-1),
    "concatenate": lambda m, x: m.concatenate([x, x[:1]], axis=0),
    "concatenate flat": lambda m, x: m.concatenate([x, x], axis=None),
    "vstack": lambda m, x: m.vstack([x[0, 0], x[1, 1]]),
    "hstack": lambda m, x: m.hstack([x[0, 0], x[1, 1]]),
    "hstack matrices": lambda m, x: m.hstack([x[0], x[1]]),
    "split": lambda m, x: m.split(x, 2, axis=2),
    "split at": lambda m, x: m.split(x, [1, 3], axis=-1),
    "array_split": lambda m, x: m.array_split(x, 3, axis=2),
    "atleast_2d": lambda m, x: m.atleast_2d(x[0, 0]),
    "broadcast_arrays": lambda m, x: list(m.broadcast_arrays(x, x[0])),
    "roll several": lambda m, x: m.roll(x, (1, 2), axis=(0, 1)),
    "clip": lambda m, x: m.clip(x, -2, 3.5),
    "clip open": lambda m, x: x.clip(None, 3),
    "where": lambda m, x: m.where(x > 0, x, -1),
    "round": lambda m, x: m.round(x / 3, 1),
    "isclose": lambda m, x: m.isclose(x, x + 1e-9),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name):
    like_numpy(SHAPES[name], B)


def test_the_last_axes_are_merged():
    x = symbol(B)
    flat = rs.function([x], [rs.flatten(x), rs.flatten(x, 2), rs.flatten(x, 3), rs.flatten(x, 4), rs.flatten(x[0, 0], 2)])(B)
    same(flat, [B.ravel(), B.reshape(B.shape[0], -1), B, B, B[0, 0]])


def test_an_infinity_is_close_to_itself_alone():
    a = np.array([np.inf, np.inf, -np.inf, 1.0, np.inf, np.nan, 2.0])
    like_numpy(lambda m, a, b: m.isclose(a, b), a, np.array([np.inf, -np.inf, -np.inf, np.inf, 1.0, np.nan, 2.0]))


def test_join_promotes():
    like_numpy(lambda m, a, b: m.concatenate([a, b]), np.array([1, 2], "int8"), np.array([0.5], "float32"))
    like_numpy(lambda m, a, b: m.stack([a, b]), np.array([1, 2], "int8"), np.array([3, 4], "uint8"))
    same(run(lambda x: rs.join(1, x, x), A), np.concatenate([A, A], 1))


def test_shape_as_numbers_and_symbols():
    x = rs.tensor("float64", (None, 3))
    rows, columns = x.shape
    assert columns == 3 and isinstance(rows, rs.Variable) and rows.dtype == "int64"
    f = rs.function([x], [rs.zeros(x.shape), x.size * 1, rs.ones((rows, 2), "int8"), x.reshape((rows * 3,))])
    same(f(A.T), [np.zeros((3, 2)), 6, np.ones((3, 2), "int8"), A.T.ravel()]) if A.T.shape[1] == 3 else None
    same(f(A), [np.zeros((2, 3)), np.int64(6), np.ones((2, 2), "int8"), A.ravel()])


CREATED = {
    "zeros": lambda m: m.zeros((2, 3)),
    "zeros int": lambda m: m.zeros(3, dtype="int32"),
    "ones scalar": lambda m: m.ones(()),
    "full": lambda m: m.full((2, 2), 7),
    "full float": lambda m: m.full((2, 2), 7, dtype="float32"),
    "arange": lambda m: m.arange(5),
    "arange float": lambda m: m.arange(0.5, 3, 0.25),
    "arange down": lambda m: m.arange(5, 0, -2),
    "arange empty": lambda m: m.arange(3, 1),
    "linspace": lambda m: m.linspace(0, 1, 7),
    "linspace open": lambda m: m.linspace(-1.5, 2, 4, endpoint=False),
    "linspace float": lambda m: m.linspace(0, 1, 5, dtype="float32"),
    "linspace one": lambda m: m.linspace(2, 3, 1),
    "eye": lambda m: m.eye(3),
    "eye k": lambda m: m.eye(2, 4, 1, dtype="int64"),
    "identity": lambda m: m.identity(2),
    "diag": lambda m: m.diag(m.arange(3), -1),
    "tri": lambda m: m.tri(3, 4, 1),
}


@pytest.mark.parametrize("name", CREATED)
def test_created(name):
    same(rs.function([], CREATED[name](rs))(), CREATED[name](np))


def test_created_like_and_symbolic():
    like_numpy(lambda m, x: m.zeros_like(x), np.ones((2, 3), "int16"))
    like_numpy(lambda m, x: m.ones_like(x, dtype="float32"), np.ones((2, 0), "int16"))
    like_numpy(lambda m, x: m.full_like(x, 2.5), A)
    like_numpy(lambda m, x: m.triu(x, 1), A)
    like_numpy(lambda m, x: m.tril(x), B)
    like_numpy(lambda m, x: m.diag(x, 1), A)
    same(run(lambda n: rs.arange(n), np.int32(4)), np.arange(4))
    same(run(lambda n: rs.alloc(1.5, n, 2), np.int32(4)), np.full((4, 2), 1.5))
    same(run(lambda x: rs.fill(x, 2), A), np.full((2, 3), 2))


V, M, T3 = np.array([1.0, -2.0, 0.5]), A.T.copy(), B
PRODUCTS = {
    "matmul": lambda m, v, a, t: a.T @ a,
    "matmul vector": lambda m, v, a, t: v @ a,
    "matmul vectors": lambda m, v, a, t: v @ v,
    "matmul batch": lambda m, v, a, t: m.swapaxes(t, 1, 2) @ a,
    "dot": lambda m, v, a, t: m.dot(a.T, v),
    "dot scalar": lambda m, v, a, t: m.dot(2.0, a),
    "dot method": lambda m, v, a, t: v.dot(a),
    "dot 3d": lambda m, v, a, t: m.dot(a.T, t),
    "tensordot": lambda m, v, a, t: m.tensordot(t, a, axes=([1], [0])),
    "tensordot 2": lambda m, v, a, t: m.tensordot(t, t, axes=([0, 1], [0, 1])),
    "tensordot n": lambda m, v, a, t: m.tensordot(a.T, a, axes=1),
    "tensordot 0": lambda m, v, a, t: m.tensordot(v, v, axes=0),
    "outer": lambda m, v, a, t: m.outer(v, a),
    "inner": lambda m, v, a, t: m.inner(a.T, v),
    "inner of matrices": lambda m, v, a, t: [m.inner(a, a), m.inner(t, t), m.inner(a.T, t[:, 0, :3]), m.inner(2.0, a)],
    "vdot": lambda m, v, a, t: m.vdot(a, a),
    "kron": lambda m, v, a, t: m.kron(a, a.T),
    "trace": lambda m, v, a, t: m.linalg.trace(a @ a.T),
    "norm": lambda m, v, a, t: m.linalg.norm(a),
    "norm 1": lambda m, v, a, t: m.linalg.norm(v, 1),
    "norm inf": lambda m, v, a, t: m.linalg.norm(v, np.inf),
    "norm 0": lambda m, v, a, t: m.linalg.norm(v, 0),
    "norm 3": lambda m, v, a, t: m.linalg.norm(v, 3),
    "norm axis": lambda m, v, a, t: m.linalg.norm(t, axis=1, keepdims=True),
    "norm matrix 1": lambda m, v, a, t: m.linalg.norm(a, 1),
    "norm matrix inf": lambda m, v, a, t: m.linalg.norm(t, -np.inf, axis=(2, 0)),
    "solve": lambda m, v, a, t: m.linalg.solve(a @ a.T + m.eye(3), v),
    "solve matrix": lambda m, v, a, t: m.linalg.solve(a @ a.T + m.eye(3), a),
    "inv": lambda m, v, a, t: m.linalg.inv(a @ a.T + m.eye(3)),
    "det": lambda m, v, a, t: m.linalg.det(a @ a.T + m.eye(3)),
    "slogdet": lambda m, v, a, t: list(m.linalg.slogdet(a @ a.T + m.eye(3))),
    "cholesky": lambda m, v, a, t: m.linalg.cholesky(a @ a.T + m.eye(3)),
    "matrix_power": lambda m, v, a, t: m.linalg.matrix_power(a @ a.T, 5),
    "matrix_power 0": lambda m, v, a, t: m.linalg.matrix_power(a @ a.T, 0),
    "matrix_power -2": lambda m, v, a, t: m.linalg.matrix_power(a @ a.T + m.eye(3), -2),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name):
    like_numpy(PRODUCTS[name], V, M, T3, rtol=1e-9)


def test_triangular_and_batched():
    low = np.tril(M @ M.T + np.eye(3))
    same(run(lambda a, b: rs.linalg.solve_triangular(a, b, lower=True), low, V), np.linalg.solve(low, V), 1e-9)
    same(run(lambda a, b: rs.linalg.solve_triangular(a, b, lower=True, trans=1), low, V), np.linalg.solve(low.T, V), 1e-9)
    same(run(rs.batched_dot, T3, T3.swapaxes(1, 2).copy()), T3 @ T3.swapaxes(1, 2))
    same(run(rs.batched_dot, T3[:, 0], T3.swapaxes(1, 2).copy()), np.einsum("bi,bij->bj", T3[:, 0], T3.swapaxes(1, 2)))
    same(run(rs.batched_dot, T3[:, 0], T3[:, 1]), np.einsum("bi,bi->b", T3[:, 0], T3[:, 1]))


def test_integer_products():
    like_numpy(lambda m, a: a @ a, np.array([[1, 2], [3, 4]], "int32"))
    like_numpy(lambda m, a: m.linalg.solve(a, m.ones(2)), np.array([[1, 2], [3, 4]], "int32"))


@pytest.mark.parametrize("row", rs._native.catalogue(), ids=lambda row: row["name"])
def test_rows_exist_by_name(row):
    function = getattr(rs, row["name"])
    assert row["doc"] in function.__doc__ or row["name"] in rs._rows.EXTENDED
    assert callable(function)


UNARY = [
    *[
        "exp",
        "exp2",
        "expm1",
        "log",
        "log2",
        "log10",
        "log1p",
        "sqrt",
        "sin",
        "cos",
        "tan",
        "arcsin",
        "arccos",
        "arctan",
    ],
    *[
        "sinh",
        "cosh",
        "tanh",
        "arcsinh",
        "arctanh",
        "floor",
        "ceil",
        "trunc",
        "rint",
        "sign",
        "abs",
        "fabs",
        "negative",
    ],
    *["square", "reciprocal", "isnan", "isinf", "isfinite", "logical_not", "deg2rad", "rad2deg", "signbit"],
]


@pytest.mark.parametrize("name", UNARY)
def test_numpy_ufuncs_lead_here(name):
    x = np.array([0.25, 0.5, 0.75])
    expected = getattr(np, name)(x)
    same(run(getattr(np, name), x), expected, 1e-12)
    same(run(getattr(rs, name), x), expected, 1e-12)


def test_numpy_functions_lead_here():
    x = symbol(A)
    results = [
        np.sum(x, axis=0),
        np.concatenate([x, x]),
        np.where(x > 0, x, 0.0),
        np.dot(x, x.T),
        np.linalg.norm(x),
        np.maximum(x, 1),
    ]
    results += [
        np.ones(3) * x,
        np.float64(2) + x,
        np.add.reduce(x, axis=1),
        np.ones((2, 2)) @ x,
        np.mean(x),
        np.transpose(x),
    ]
    expected = [A.sum(0), np.concatenate([A, A]), np.where(A > 0, A, 0), A @ A.T, np.linalg.norm(A), np.maximum(A, 1)]
    expected += [np.ones(3) * A, 2 + A, A.sum(1), np.ones((2, 2)) @ A, A.mean(), A.T]
    same(rs.function([x], results)(A), expected)
    with pytest.raises(NotImplementedError, match=r"np\.eigvals"):
        np.linalg.eigvals(x)
    reductions = [np.add, np.multiply, np.maximum, np.minimum, np.logical_and, np.logical_or]
    same(rs.function([x], [f.reduce(x) for f in reductions])(A), [f.reduce(A) for f in reductions])
    same(rs.function([x], np.add.reduce(x, axis=1, keepdims=True))(A), A.sum(1, keepdims=True))
    with pytest.raises(NotImplementedError, match=r"np\.add\.outer of variables"):
        np.add.outer(x, x)
    with pytest.raises(NotImplementedError, match=r"np\.subtract\.reduce of variables"):
        np.subtract.reduce(x)
    with pytest.raises(TypeError, match="`where`"):
        np.exp(x, where=False)


def test_ifelse_and_assert():
    same(run(lambda c, x: rs.ifelse(c > 0, x, -x), np.int64(1), A), A)
    same(run(lambda c, x: rs.ifelse(c > 0, x, -x), np.int64(-1), A), -A)
    same(run(lambda x: rs.assert_(x, x > -10, message="too small"), A), A)
    with pytest.raises(rs.RscanError, match="too small"):
        run(lambda x: rs.assert_(x, x > 0, message="too small"), A)
    with pytest.raises(TypeError, match="scalar"):
        rs.ifelse(symbol(A) > 0, 1, 2)


@pytest.mark.parametrize("axis", [2, -3, (0, 0)])
def test_bad_axes(axis):
    with pytest.raises(ValueError, match="axis"):
        symbol(A).sum(axis=axis)


def test_shapes_that_do_not_fit():
    x, y = symbol(A, known=True), symbol(B, known=True)
    with pytest.raises(ValueError, match="broadcast"):
        x + y
    with pytest.raises(ValueError):
        x @ x
    with pytest.raises(ValueError):
        x.reshape(4, 2)
    with pytest.raises(ValueError, match="broadcast"):
        run(lambda a, b: a + b, A, B)
    for split in (rs.split, rs.array_split):
        with pytest.raises(ValueError, match="1 part or more"):
            split(x, 0)
    with pytest.raises(ValueError, match="equal parts"):
        rs.split(x, 2, axis=1)


# Powers of integers.

REFUSED = "integers to negative integer powers are not allowed"


@pytest.mark.parametrize("dtype", INTS)
def test_powers_of_integers_are_numpys(dtype):
    x = np.array([0, 1, 2, 3, 5], dtype)
    for n in (0, 1, 2, 3, np.int8(2), np.array([0, 1, 2, 3, 4]), np.uint8(3), True, 2.0, -1.0):
        like_numpy(lambda _, v, n=n: v**n, x)
    for m in (2, True, np.int16(3)):
        like_numpy(lambda _, v, m=m: m**v, x)
    for other in (*INTS, "bool"):
        like_numpy(lambda _, v, n: v**n, x, np.array([0, 1, 1, 0, 1], other))


def test_negative_exponents_that_are_known_are_refused_where_they_are_written():
    x, b = rs.lvector("x"), rs.tensor("bool", (None,))
    for build in (
        lambda: x**-1,
        lambda: x ** np.int64(-2),
        lambda: x ** np.array([1, -1]),
        lambda: x ** [2, -1],
        lambda: x ** rs.constant(-1),
        lambda: x ** (rs.constant(1) - 3),
        lambda: b**-1,
        lambda: 2 ** rs.constant(-1),
        lambda: rs.pow(x, -1),
        lambda: rs.power(2, -1),
        lambda: np.power(x, -1),
        lambda: np.array([1, 2]) ** rs.constant(-1),
        lambda: rs.loop(lambda h: h**-1, init=2, n_steps=3),
    ):
        with pytest.raises(rs.RscanValueError, match=REFUSED) as caught:
            build()
        assert caught.value.code == "E0301" and caught.value.labels[0][0] == __file__
    for fine in (x**-1.0, x.astype("float64") ** -1, rs.tensor("uint8", ()) ** rs.constant(np.uint8(3)), 2.0**-x):
        assert fine.dtype == "uint8" or fine.dtype == "float64"


def test_negative_exponents_that_only_values_tell_are_refused_when_it_runs():
    x, n = rs.lvector("x"), rs.lvector("n")
    f = rs.function([x, n], x**n)
    assert f([2, 3], [3, 0]).tolist() == [8, 1]
    for bad in ([-1, 2], [0, -3]):
        with pytest.raises(rs.RscanValueError, match=REFUSED) as caught:
            f([1, -1], bad)
        assert caught.value.code == "E0301" and caught.value.labels[0][0] == __file__
    steps = rs.function([n], rs.loop(lambda k, h: h**k, over=n, init=2))
    assert steps([1, 2, 3]).tolist() == [2, 4, 64]
    with pytest.raises(rs.RscanValueError, match=REFUSED) as caught:
        steps([1, 2, -3, 4])
    assert "in step 2" in str(caught.value) and caught.value.labels[0][0] == __file__
    wide = rs.function([x, n], rs.loop(lambda k, h: h * x**k % 100, over=n, init=x))
    assert wide([2, 3], [0, 1, 2]).tolist() == [[2, 3], [4, 9], [16, 81]]
    with pytest.raises(rs.RscanValueError, match=REFUSED):
        wide([2, 3], [0, 1, -2])
    # Where the power is not computed, its exponent does not matter.
    lazy = rs.function([x, n], rs.ifelse(rs.all(n >= 0), x**n, x))
    assert lazy([2, 3], [-1, 2]).tolist() == [2, 3] and lazy([2, 3], [1, 2]).tolist() == [2, 9]


def test_powers_of_integers_as_exponents_have_gradients():
    x, n = rs.vector("x"), rs.lscalar("n")
    f = rs.function([x, n], rs.grad(rs.sum(x ** (n**2)), x))
    np.testing.assert_allclose(f([2.0, 3.0], 2), [32, 108])


def test_norms_of_integers_are_floats():
    for ord in (-2, -1, 0, 1, 2, 3, 0.5, np.inf, -np.inf):
        like_numpy(lambda np_, v, o=ord: np_.linalg.vector_norm(v, ord=o), np.array([1, -2, 4]))
        like_numpy(lambda np_, v, o=ord: np_.linalg.vector_norm(v, ord=o), np.array([1, -2, 4], np.float32), rtol=1e-6)
    with pytest.raises(rs.RscanValueError, match="no vector norm"):
        rs.linalg.vector_norm(rs.vector(), rs.scalar("p"))


def test_polynomials_of_up_to_64_coefficients_are_written_out():
    x = rs.dscalar("x")
    for n, loops in ((64, 0), (65, 1)):
        coefficients = np.cos(np.arange(n))
        f = rs.function([x], rs.polyval(coefficients, x))
        assert f.text().count('scan "polyval"') == loops
        np.testing.assert_allclose(f(0.9), np.polyval(coefficients, 0.9), rtol=1e-13)
