"""Theano's functions and methods of variables, each against NumPy: values, extents, dtypes, what is refused."""

import numpy as np
import pytest

import rscan.theano as theano
import rscan.theano.tensor as T

RNG = np.random.default_rng(5)
V, W = RNG.normal(size=4), RNG.normal(size=4)
M, N, S = RNG.normal(size=(3, 4)), RNG.normal(size=(4, 2)), RNG.normal(size=(3, 3))
A3, B3 = RNG.normal(size=(2, 3, 4)), RNG.normal(size=(2, 4, 5))
A4, B4 = RNG.normal(size=(2, 3, 4, 5)), RNG.normal(size=(2, 5, 3))
INTS = np.array([3, 1, 4, 1, 5])
POSITIVE = S @ S.T + np.eye(3)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


#: By name: what is computed of the variables, what NumPy computes, the arrays.
CASES = {
    # Reductions, as functions and as methods: an axis goes, or stays with extent 1.
    **{
        f"{name} {axis} {keep}": (
            lambda x, name=name, axis=axis, keep=keep: [getattr(T, name)(x, axis, keepdims=keep), getattr(x, name)(axis, keepdims=keep)],
            lambda a, name=name, axis=axis, keep=keep: [getattr(np, name)(a, axis, keepdims=keep)] * 2,
            [A3],
        )
        for name in ("sum", "prod", "mean", "var", "std", "max", "min", "argmax", "argmin", "any", "all")
        for axis in (None, 1, -1)
        for keep in (False, True)
    },
    **{
        f"{name} as it is": (
            lambda x, name=name: [getattr(T, name)(x, 0), getattr(x, name)(0), getattr(x, name)()],
            lambda a, name=name: [getattr(np, name)(a, 0)] * 2 + [getattr(np, name)(a)],
            [A3],
        )
        for name in ("sum", "prod", "mean", "var", "std", "max", "min", "argmax", "argmin", "any", "all", "ptp")
    },
    "axes in many forms": (
        lambda x: [x.sum((0, 2)), T.sum(x, [0, 1]), x.max(np.array(1)), T.mean(x, np.array([0, 2])), x.min(T.constant(2))],
        lambda a: [a.sum((0, 2)), a.sum((0, 1)), a.max(1), a.mean((0, 2)), a.min(2)],
        [A3],
    ),
    "ddof": (lambda x: [x.var(1, 1), T.std(x, 2, 2)], lambda a: [a.var(1, ddof=1), a.std(2, ddof=2)], [A3]),
    "the largest and its position": (
        lambda x: list(T.max_and_argmax(x, axis=1, keepdims=True)),
        lambda a: [a.max(1, keepdims=True), a.argmax(1, keepdims=True)],
        [M],
    ),
    "norms": (
        lambda x: [
            x.norm(2),
            x.norm(1, axis=1),
            x.norm(3, axis=0, keepdims=True),
            T.norm(x, np.inf),
            T.norm(x, -np.inf, 1),
            T.norm(x, 0, 0),
        ],
        lambda a: [
            np.sqrt((a**2).sum()),
            abs(a).sum(1),
            (abs(a) ** 3).sum(0, keepdims=True) ** (1 / 3),
            abs(a).max(),
            abs(a).min(1),
            (a != 0).sum(0),
        ],
        [np.where(M > 1, 0, M)],
    ),
    "logsumexp": (
        lambda x: [T.logsumexp(x, 1), T.logsumexp(x, 0, True)],
        lambda a: [np.log(np.exp(a).sum(1)), np.log(np.exp(a).sum(0, keepdims=True))],
        [M],
    ),
    "cumulated": (
        lambda x: [T.cumsum(x), T.cumsum(x, 1), T.cumprod(x, 0), T.diff(x), T.diff(x, 2, 0)],
        lambda a: [a.cumsum(), a.cumsum(1), a.cumprod(0), np.diff(a), np.diff(a, 2, 0)],
        [M],
    ),
    "sorted": (
        lambda x: [T.sort(x), T.sort(x, 0), T.argsort(x), T.argsort(x, 0)],
        lambda a: [np.sort(a), np.sort(a, 0), a.argsort(), a.argsort(0)],
        [M],
    ),
    "bincount": (
        lambda x, w: [T.bincount(x), T.bincount(x, minlength=9), T.bincount(x, minlength=2), T.bincount(x, w)],
        lambda a, w: [np.bincount(a), np.bincount(a, minlength=9), np.bincount(a, minlength=2), np.bincount(a, w)],
        [INTS, RNG.normal(size=5)],
    ),
    "products": (
        lambda a, b, v: [T.dot(a, b), T.dot(a, v), T.dot(v, b), T.outer(v, v), a.dot(b), T.dot(v, v), T.tensordot(a, b, 1)],
        lambda a, b, v: [a @ b, a @ v, v @ b, np.outer(v, v), a @ b, v @ v, a @ b],
        [M, N, V],
    ),
    "batched_dot of numbers": (
        lambda a, b: [T.batched_dot(a, b), T.batched_dot(b, a)],
        lambda a, b: [a[:, None, None] * b] * 2,
        [A3[:, 0, 0], A3],
    ),
    "batched_dot of vectors": (
        lambda a, b: [T.batched_dot(a, b), T.batched_dot(b, a), T.batched_dot(a, a)],
        lambda a, b: [np.einsum("bk,bkl->bl", a, b), np.einsum("bkl,bl->bk", b, a), (a * a).sum(1)],
        [A3[:, 0, :3], RNG.normal(size=(2, 3, 3))],
    ),
    "batched_dot of rank 3": (lambda a, b: [T.batched_dot(a, b)], lambda a, b: [a @ b], [A3, B3]),
    "batched_dot of rank 4": (lambda a, b: [T.batched_dot(a, b)], lambda a, b: [np.einsum("bijk,bkl->bijl", a, b)], [A4, B4]),
    "batched_dot with rank 4": (lambda a, b: [T.batched_dot(a, b)], lambda a, b: [np.einsum("bik,bjkl->bijl", a, b)], [A3, A4]),
    "batched_tensordot": (
        lambda a, b: [T.batched_tensordot(a, b, [[2], [1]]), T.batched_tensordot(a, a, 2), T.batched_tensordot(a, b, [2, 1])],
        lambda a, b: [a @ b, np.einsum("bij,bij->b", a, a), a @ b],
        [A3, B3],
    ),
    "new axes": (
        lambda x: [T.shape_padleft(x), T.shape_padleft(x, 2), T.shape_padright(x), T.shape_padright(x, 2), T.shape_padaxis(x, 1)],
        lambda a: [a[None], a[None, None], a[..., None], a[..., None, None], a[:, None]],
        [M],
    ),
    "other shapes": (
        lambda x: [
            x.reshape((4, 6)),
            x.reshape([2, -1]),
            x.flatten(),
            x.flatten(2),
            T.flatten(x, outdim=2),
            x.T,
            x.transpose(1, 0, 2),
            T.transpose(x, (2, 0, 1)),
            T.swapaxes(x, 0, 2),
            x.swapaxes(1, 2),
            T.moveaxis(x, 0, -1),
            x.dimshuffle(2, "x", 0, 1),
            T.atleast_1d(x[0, 0, 0]),
            T.roll(x, 1),
            T.roll(x, -1, 1),
            T.flip(x),
            T.flip(x, 2),
        ],
        lambda a: [
            a.reshape(4, 6),
            a.reshape(2, -1),
            a.ravel(),
            a.reshape(2, -1),
            a.reshape(2, -1),
            a.T,
            a.transpose(1, 0, 2),
            a.transpose(2, 0, 1),
            a.swapaxes(0, 2),
            a.swapaxes(1, 2),
            np.moveaxis(a, 0, -1),
            a.transpose(2, 0, 1)[:, None],
            a[0, 0, :1],
            np.roll(a, 1),
            np.roll(a, -1, 1),
            np.flip(a),
            np.flip(a, 2),
        ],
        [A3],
    ),
    "joined": (
        lambda x, y: [
            T.concatenate([x, y]),
            T.concatenate([x, y], 1),
            T.join(1, x, y),
            T.stack([x, y]),
            T.stack([x, y], 1),
            T.stack(x, y),
            T.stack([x, y], axis=-1),
        ],
        lambda a, b: [
            np.vstack([a, b]),
            np.hstack([a, b]),
            np.hstack([a, b]),
            np.stack([a, b]),
            np.stack([a, b], 1),
            np.stack([a, b]),
            np.stack([a, b], -1),
        ],
        [S, POSITIVE],
    ),
    "repeated": (
        lambda x: [
            T.tile(x, 2),
            T.tile(x, (2, 1)),
            T.tile(x, (2,), ndim=3),
            T.tile(x, (1, 2, 2), ndim=3),
            T.repeat(x, 2),
            T.repeat(x, 3, axis=1),
        ],
        lambda a: [
            np.tile(a, 2),
            np.tile(a, (2, 1)),
            np.tile(a, (1, 1, 2)),
            np.tile(a, (1, 2, 2)),
            np.repeat(a, 2),
            np.repeat(a, 3, axis=1),
        ],
        [M],
    ),
    "split": (
        lambda x: [*T.split(x, [1, 3], 2, axis=1), *T.split(x, [2, 1], 2), *T.split(x, T.constant(np.array([1, 2])), 2, axis=0)],
        lambda a: [a[:, :1], a[:, 1:], a[:2], a[2:], a[:1], a[1:]],
        [M],
    ),
    "diagonals": (
        lambda x: [T.diagonal(x), T.diagonal(x, 1), T.diag(x), T.nlinalg.trace(x), T.diag(x[0])],
        lambda a: [a.diagonal(), a.diagonal(1), a.diagonal(), np.trace(a), np.diag(a[0])],
        [S],
    ),
    "one hot": (lambda x: [T.extra_ops.to_one_hot(x, 6)], lambda a: [np.eye(6)[a]], [INTS]),
    # Selection.
    "taken": (
        lambda x: [
            T.take(x, [1, 0]),
            T.take(x, [1, -1], axis=0),
            x.take(2, 1),
            T.take(x, [9, -9], axis=1, mode="clip"),
            T.take(x, [5, -5], axis=1, mode="wrap"),
            T.take(x, [13, -1], mode="wrap"),
        ],
        lambda a: [
            a.take([1, 0]),
            a[[1, -1]],
            a[:, 2],
            a.take([9, -9], 1, mode="clip"),
            a.take([5, -5], 1, mode="wrap"),
            a.take([13, -1], mode="wrap"),
        ],
        [M],
    ),
    "not 0": (
        lambda x: [*T.nonzero(x), T.nonzero_values(x), T.flatnonzero(x), x.nonzero(return_matrix=True), *T.where(x)],
        lambda a: [*a.nonzero(), a[a.nonzero()], np.flatnonzero(a), np.stack(a.nonzero()), *np.where(a)],
        [np.where(M > 0, M, 0)],
    ),
    "chosen": (
        lambda x, y: [
            T.where(x > y, x, y),
            T.switch(x > y, 1, y),
            T.choose(T.cast(x > 0, "int8"), [x, y]),
            T.smallest(x, y, 0),
            T.largest(x, y, 0),
            T.smallest(x),
            T.largest(x),
        ],
        lambda a, b: [
            np.where(a > b, a, b),
            np.where(a > b, 1, b),
            np.where(a > 0, b, a),
            np.minimum(np.minimum(a, b), 0),
            np.maximum(np.maximum(a, b), 0),
            a.min(),
            a.max(),
        ],
        [S, POSITIVE],
    ),
    "searchsorted": (
        lambda x, y: [
            T.extra_ops.searchsorted(x, y),
            T.extra_ops.searchsorted(x, y, side="right"),
            T.extra_ops.searchsorted(x[::-1], y, sorter=T.arange(4)[::-1]),
        ],
        lambda a, b: [np.searchsorted(a, b), np.searchsorted(a, b, side="right"), np.searchsorted(a, b)],
        [np.array([1.0, 2, 2, 3]), np.array([[0.0, 1], [2, 2.5], [3, 4]])],
    ),
    # Elementwise.
    "sums and products of many": (
        lambda x, y: [T.add(x, y, 1), T.mul(x, y, 2), T.sub(x, y), T.sqr(x), T.inv(y), T.int_div(x, y), T.mod(x, y)],
        lambda a, b: [a + b + 1, a * b * 2, a - b, a * a, 1 / b, a // b, a % b],
        [V, W],
    ),
    "operators": (
        lambda x, y: [
            x + y,
            x - y,
            x * y,
            x / y,
            x // y,
            x % y,
            2 - x,
            2 / x,
            7 // y,
            7 % y,
            -x,
            abs(x),
            (x * x) ** 1.5,
            2**x,
            x < y,
            x <= y,
            x > y,
            x >= y,
        ],
        lambda a, b: [
            a + b,
            a - b,
            a * b,
            a / b,
            a // b,
            a % b,
            2 - a,
            2 / a,
            7 // b,
            7 % b,
            -a,
            abs(a),
            (a * a) ** 1.5,
            2**a,
            a < b,
            a <= b,
            a > b,
            a >= b,
        ],
        [V, W],
    ),
    "operators of integers": (
        lambda x: [x & 3, x | 8, x ^ 5, x << 2, x >> 1, 3 & x, 8 | x, 5 ^ x, 1 << x, 64 >> x, x // 2, x % 3, ~x, x**2],
        lambda a: [a & 3, a | 8, a ^ 5, a << 2, a >> 1, a & 3, a | 8, a ^ 5, 1 << a, 64 >> a, a // 2, a % 3, ~a, a**2],
        [INTS],
    ),
    "products of matrices": (lambda x, y: [x @ y, M @ y, x @ N], lambda a, b: [a @ b, M @ b, a @ N], [M, N]),
    "log1p": (lambda x: [T.log1p(x), T.log1p(-T.nnet.sigmoid(x))], lambda a: [np.log1p(a), np.log(1 - 1 / (1 + np.exp(-a)))], [abs(V)]),
    "logarithms of softmax": (
        lambda x: [T.log(T.nnet.softmax(x)), T.log(1 - T.nnet.sigmoid(x)), T.log(2 - T.nnet.sigmoid(x)), T.log(1 - T.tanh(x))],
        lambda a: [np.log(softmax(a)), np.log(1 - 1 / (1 + np.exp(-a))), np.log(2 - 1 / (1 + np.exp(-a))), np.log(1 - np.tanh(a))],
        [M],
    ),
    "quotient and rest": (lambda x, y: list(T.divmod(x, y)), lambda a, b: list(np.divmod(a, b)), [V, W]),
    "filled": (
        lambda x, v: [T.fill(x, v), T.fill(x, 7), T.second(x, v), x.fill(3)],
        lambda a, v: [a * 0 + v, a * 0 + 7, a * 0 + v, a * 0 + 3],
        [M, V],
    ),
    "parts": (lambda x: [T.real(x), T.imag(x), x.conj(), x.zeros_like(), x.ones_like()], lambda a: [a, a * 0, a, a * 0, a * 0 + 1], [V]),
    "x log x": (
        lambda x, y: [T.xlogx.xlogx(x), T.xlogx.xlogy0(x, y)],
        lambda a, b: [np.where(a == 0, 0, a * np.log(np.where(a == 0, 1, a))), np.where(a == 0, 0, a * np.log(b + (a == 0)))],
        [np.array([0, 0.5, 2]), np.array([0, 3.0, 4])],
    ),
    # Networks.
    "activations": (
        lambda x: [
            T.nnet.sigmoid(x),
            T.nnet.hard_sigmoid(x),
            T.nnet.ultra_fast_sigmoid(x),
            T.nnet.softplus(x),
            T.nnet.relu(x),
            T.nnet.relu(x, 0.1),
            T.nnet.relu(x, 1),
            T.nnet.elu(x),
            T.nnet.elu(x, 2),
            T.nnet.selu(x),
            T.nnet.softsign(x),
        ],
        lambda a: [
            1 / (1 + np.exp(-a)),
            (0.2 * a + 0.5).clip(0, 1),
            1 / (1 + np.exp(-a)),
            np.log1p(np.exp(a)),
            a.clip(0),
            np.where(a > 0, a, 0.1 * a),
            a,
            np.where(a > 0, a, np.expm1(a)),
            np.where(a > 0, a, 2 * np.expm1(a)),
            1.0507009873554805 * np.where(a > 0, a, 1.6732632423543772 * np.expm1(a)),
            a / (1 + abs(a)),
        ],
        [4 * M],
    ),
    "softmax": (
        lambda x, v: [T.nnet.softmax(x), T.nnet.logsoftmax(x), T.nnet.softmax(v), T.nnet.logsoftmax(v)],
        lambda a, v: [softmax(a), np.log(softmax(a)), softmax(v)[None], np.log(softmax(v))[None]],
        [M, V],
    ),
    "cross entropies": (
        lambda x, k: [
            T.nnet.categorical_crossentropy(T.nnet.softmax(x), T.nnet.softmax(-x)),
            T.nnet.categorical_crossentropy(T.nnet.softmax(x), k),
            *T.nnet.crossentropy_softmax_1hot(x, k),
            T.nnet.binary_crossentropy(T.nnet.sigmoid(x), x > 0),
            T.nnet.sigmoid_binary_crossentropy(x, T.cast(x > 0.3, "float64")),
        ],
        lambda a, k: [
            -(softmax(-a) * np.log(softmax(a))).sum(1),
            -np.log(softmax(a))[np.arange(3), k],
            -np.log(softmax(a))[np.arange(3), k],
            softmax(a),
            np.log1p(np.exp(-abs(a))),
            np.log1p(np.exp(-abs(a))) + a * ((a > 0) * 1.0 - (a > 0.3)),
        ],
        [M, np.array([2, 0, 3])],
    ),
    "confusion matrix": (
        lambda a, p: T.nnet.confusion_matrix(a, p),
        lambda a, p: [[[1, 1, 0], [0, 2, 0], [1, 0, 0]], [1, 3, 7]],
        [np.array([1, 1, 3, 3, 7]), np.array([1, 3, 3, 3, 1])],
    ),
    "batch normalization": (lambda x, v: [T.nnet.batch_normalization(x, v, 2, 1, 4)], lambda a, v: [(a - 1) * v / 4 + 2], [M, V]),
    # Linear algebra.
    "linear algebra": (
        lambda x, b: [
            T.nlinalg.matrix_inverse(x),
            T.nlinalg.det(x),
            T.nlinalg.matrix_dot(x, x, x),
            T.nlinalg.matrix_power(x, 3),
            T.slinalg.solve(x, b),
            T.slinalg.cholesky(x),
            T.slinalg.cholesky(x, lower=False),
            T.slinalg.kron(x, b),
        ],
        lambda a, b: [
            np.linalg.inv(a),
            np.linalg.det(a),
            a @ a @ a,
            a @ a @ a,
            np.linalg.solve(a, b),
            np.linalg.cholesky(a),
            np.linalg.cholesky(a).T,
            np.kron(a, b),
        ],
        [POSITIVE, S],
    ),
    "triangular systems": (
        lambda x, b: [T.slinalg.solve_lower_triangular(x, b), T.slinalg.solve_upper_triangular(x, b)],
        lambda a, b: [np.linalg.solve(np.tril(a), b), np.linalg.solve(np.triu(a), b)],
        [POSITIVE, S],
    ),
    "norms of matrices": (
        lambda x: [T.nlinalg.norm(x), T.nlinalg.norm(x, "fro"), T.nlinalg.norm(x[0], 1), T.nlinalg.norm(x[0], np.inf)],
        lambda a: [np.linalg.norm(a), np.linalg.norm(a), abs(a[0]).sum(), abs(a[0]).max()],
        [S],
    ),
    "filled diagonals": (
        lambda x: [T.extra_ops.fill_diagonal(x, 5), T.extra_ops.fill_diagonal_offset(x, 5, 1), T.extra_ops.fill_diagonal_offset(x, 5, -1)],
        lambda a: [
            a * (1 - np.eye(3)) + 5 * np.eye(3),
            a * (1 - np.eye(3, k=1)) + 5 * np.eye(3, k=1),
            a * (1 - np.eye(3, k=-1)) + 5 * np.eye(3, k=-1),
        ],
        [S],
    ),
    # What makes arrays.
    "made": (
        lambda x: [
            T.zeros(3),
            T.ones((2, 3)),
            T.zeros_like(x),
            T.ones_like(x),
            T.eye(3),
            T.eye(2, 4),
            T.eye(3, 4, 1),
            T.identity_like(x),
            T.arange(4),
            T.arange(1, 7, 2),
            T.arange(0.5, 3),
            T.alloc(x[0, 0], 2, 3),
            T.alloc(x[0], 2, 4),
            *T.mgrid[0:2, 1:6:2],
        ],
        lambda a: [
            np.zeros(3),
            np.ones((2, 3)),
            a * 0,
            a * 0 + 1,
            np.eye(3),
            np.eye(2, 4),
            np.eye(3, 4, 1),
            np.eye(3, 4),
            np.arange(4),
            np.arange(1, 7, 2),
            np.arange(0.5, 3),
            np.full((2, 3), a[0, 0]),
            np.tile(a[0], (2, 1)),
            *np.mgrid[0:2, 1:6:2],
        ],
        [M],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    ours, numpys, arrays = CASES[name]
    variables = [T.TensorType(str(a.dtype), (False,) * a.ndim)() for a in arrays]
    made = list(ours(*variables))
    got = theano.function(variables, made, on_unused_input="ignore")(*arrays)
    expected = list(numpys(*arrays))
    assert len(got) == len(expected)
    for k, (a, b) in enumerate(zip(got, expected, strict=True)):
        assert a.shape == np.shape(b), f"result {k}"
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=1e-9, err_msg=f"result {k}")


def test_dtypes():
    b, i, f = T.bvector(), T.ivector(), T.fvector()
    assert [v.dtype for v in (b.sum(), b.prod(), b.max(), i.mean(), f.mean(), f.sum(), f.argmax())] == [
        "int64", "int64", "int8", "float64", "float32", "float32", "int64",
    ]  # fmt: skip
    assert T.sum(f, dtype="float64").dtype == f.sum(dtype="float64").dtype == f.prod(dtype="float64").dtype == "float64"
    assert [T.zeros(2).dtype, T.zeros(2, "int8").dtype, T.ones(2, "float32").dtype, T.zeros_like(f).dtype] == [
        "float64",
        "int8",
        "float32",
        "float32",
    ]
    assert T.zeros_like(f, "int32").dtype == f.ones_like("int32").dtype == "int32" and T.eye(2, dtype="float32").dtype == "float32"
    assert [T.arange(b[0]).dtype, T.arange(1.0, 3).dtype, T.arange(3, dtype="int8").dtype] == ["int64", "float32", "int8"]
    assert [T.bincount(b).dtype, T.bincount(b, f).dtype, T.extra_ops.to_one_hot(b, 3).dtype] == ["int64", "float32", "float64"]
    assert T.fill(f, 2.5).dtype == "float32" and T.stack([b, f]).dtype == "float32" and T.choose(b, [b, f]).dtype == "float32"
    assert T.nnet.sigmoid(b).dtype == "float32" and T.nnet.sigmoid(i).dtype == "float64"


def test_broadcast_patterns():
    m, row, t = T.dmatrix(), T.drow(), T.TensorType("float64", (True, False, True))()
    assert m.sum(0, keepdims=True).broadcastable == (True, False) and T.shape_padleft(m).broadcastable == (True, False, False)
    assert T.squeeze(t).ndim == 1 and T.squeeze(t, 0).ndim == 2 and T.squeeze(m) == m
    assert T.unbroadcast(row, 0).broadcastable == (False, False) and T.addbroadcast(m, 1).broadcastable == (False, True)
    assert T.patternbroadcast(m, (True, False)).broadcastable == (True, False) and T.patternbroadcast(
        row, (False, False)
    ).broadcastable == (False, False)
    assert T.addbroadcast(m, 1).eval({m: np.ones((2, 1))}).tolist() == [[1], [1]]
    with pytest.raises(ValueError):
        T.addbroadcast(m, 1).eval({m: np.ones((2, 2))})
    with pytest.raises(ValueError):
        T.addbroadcast(T.constant(np.ones((2, 2))), 0)
    for axis in (2, -1):
        with pytest.raises(ValueError):
            T.addbroadcast(m, axis)
    checked = T.specify_shape(m, (2, None))
    assert checked.eval({m: np.ones((2, 5))}).shape == (2, 5)
    with pytest.raises(AssertionError):
        checked.eval({m: np.ones((3, 5))})


def test_what_is_refused():
    m, v, t = T.dmatrix(), T.dvector(), T.dtensor3()
    for refused in (
        lambda: T.batched_dot(T.dscalar(), m), lambda: T.batched_dot(m, T.dscalar()), lambda: T.concatenate(m),
        lambda: T.nnet.categorical_crossentropy(t, v), lambda: T.set_subtensor(v[1], m), lambda: T.set_subtensor(T.ivector()[0], v[0]),
        lambda: T.constant(v), lambda: T.as_tensor_variable(None), lambda: T.zeros(2.5), lambda: T.ones((2, 1.0)),
    ):  # fmt: skip
        with pytest.raises(TypeError):
            refused()
    for refused in (
        lambda: T.nnet.softmax(t),
        lambda: T.flatten(m, 3), lambda: T.flatten(m, -1), lambda: m.reshape((2, 3), ndim=3), lambda: T.take(v, [0], mode="other"),
        lambda: T.nonzero(T.dscalar()), lambda: T.get_vector_length(v), lambda: T.as_tensor_variable(m, ndim=1),
        lambda: m.dimshuffle(0, 0, 1),
    ):  # fmt: skip
        with pytest.raises(ValueError):
            refused()


def test_constants_behind_variables():
    assert T.get_vector_length(T.constant([1, 2, 3])) == 3 == T.get_vector_length([1, 2, 3])
    assert T.get_scalar_constant_value(T.constant(4)) == 4 == T.extract_constant(T.constant(4))
    v = T.dvector()
    assert T.extract_constant(v) is v and T.as_tensor_variable(v, ndim=3).broadcastable == (True, True, False)
    assert T.constant([1.0, 2.0], ndim=2).broadcastable == (True, False) and T.constant(2, name="two").name == "two"
    for not_constant in (v, T.constant([1.0])):
        with pytest.raises(T.NotScalarConstantError):
            T.get_scalar_constant_value(not_constant)
    assert [float(x.eval()) for x in T.constant([1.5, 2.5])] == [1.5, 2.5]


def test_several_variables_at_once():
    x, y = T.dvectors("x", "y")
    assert (x.name, y.name, x.type) == ("x", "y", y.type) and len(T.fmatrices(3)) == 3
    assert [v.dtype for v in (T.scalar(), T.bscalar(), T.wscalar(), T.iscalar(), T.lscalar(), T.fscalar(), T.dscalar())] == [
        "float64", "int8", "int16", "int32", "int64", "float32", "float64",
    ]  # fmt: skip
    assert (
        T.vector(dtype="int8").dtype == "int8"
        and T.col().broadcastable == (False, True)
        and T.tensor("int8", (True,)).broadcastable == (True,)
    )


def test_writing_by_index():
    m = T.dmatrix()
    a = np.arange(6.0).reshape(2, 3)
    assert T.inc_subtensor(m[0], [1, 2, 3]).eval({m: a}).tolist() == [[1, 3, 5], [3, 4, 5]]
    assert T.inc_subtensor(m[0], 7, set_instead_of_inc=True).eval({m: a}).tolist() == [[7, 7, 7], [3, 4, 5]]
    assert T.set_subtensor(m[:, 1:], [[9], [8]]).eval({m: a}).tolist() == [[0, 9, 9], [3, 8, 8]]


def test_what_cannot_be_shared():
    for value in (T.dvector(), None, "text", {}):
        with pytest.raises(TypeError, match="shared variable"):
            theano.shared(value)
    with pytest.raises(TypeError, match="name"):
        theano.shared(1, name=2)
    assert theano.shared(np.ones((1, 2)), broadcastable=(True, False)).broadcastable == (True, False)


def test_sizes_of_parts_may_be_computed():
    x, sizes = T.dvector("x"), T.lvector("sizes")
    f = theano.function([x, sizes], T.split(x, sizes, 2))
    assert [part.tolist() for part in f([1, 2, 3], [1, 2])] == [[1], [2, 3]] == [part.tolist() for part in f([1, 2, 3], [1, 2])]
    assert [part.eval({x: [1, 2, 3]}).tolist() for part in T.split(x, [2, 1])] == [[1, 2], [3]]


def test_factorisations():
    a = np.array([[2.0, 1.0], [1.0, 3.0], [0.0, 1.0]])
    x = T.dmatrix("x")
    f = theano.function([x], [*T.nlinalg.qr(x), *T.nlinalg.svd(x, 0), T.nlinalg.pinv(x), T.nlinalg.lstsq(x, np.ones(3))[0]])
    q, r, u, s, v, inverse, solved = f(a)
    np.testing.assert_allclose([q @ r, (u * s) @ v], [a, a], atol=1e-12)
    np.testing.assert_allclose(inverse, np.linalg.pinv(a), atol=1e-12)
    np.testing.assert_allclose(solved, np.linalg.lstsq(a, np.ones(3), rcond=None)[0], atol=1e-12)
    square = a[:2]
    w, vectors, e, only = theano.function([x], [*T.nlinalg.eigh(x), T.slinalg.expm(x), T.nlinalg.svd(x, 0, 0)])(square)
    np.testing.assert_allclose(square @ vectors, vectors * w, atol=1e-12)
    np.testing.assert_allclose(e, vectors @ np.diag(np.exp(w)) @ vectors.T, rtol=1e-12)
    np.testing.assert_allclose(only, np.linalg.svd(square, compute_uv=False), rtol=1e-12)
    assert isinstance(T.nlinalg.pinv(x), type(x))
    u, s, v = theano.function([x], T.nlinalg.svd(x))(a)
    assert (u.shape, v.shape) == ((3, 3), (2, 2))
    np.testing.assert_allclose((u[:, :2] * s) @ v, a, atol=1e-12)
    np.testing.assert_allclose(theano.function([x], T.grad(T.nlinalg.pinv(x).sum(), x))(square).shape, (2, 2))
