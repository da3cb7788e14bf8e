"""Jacobians and Hessians of vectors: what unit vectors become is known by its diagonal, until a product mixes it."""

import numpy as np
import pytest

import rscan as rs

X = np.array([0.3, -0.7, 1.2, 0.9])
B = np.array([1.1, 0.4, -0.6, 2.0])
W = np.random.default_rng(0).normal(size=(4, 4))

FUNCTIONS = {
    "identity": lambda x, b, w: x,
    "negated": lambda x, b, w: -x,
    "scaled": lambda x, b, w: 3.0 * x,
    "by a vector": lambda x, b, w: b * x * b,
    "divided": lambda x, b, w: x / b,
    "divisor": lambda x, b, w: b / x,
    "squared": lambda x, b, w: x * x + x,
    "difference": lambda x, b, w: rs.sin(x) - rs.exp(x * b),
    "chosen": lambda x, b, w: rs.where(x > 0, x * b, 0.0),
    "chosen, both": lambda x, b, w: rs.where(b > 0, rs.sin(x), x * x),
    "chosen, constant": lambda x, b, w: rs.where(b > 0, x, b),
    "rectified": lambda x, b, w: rs.maximum(x, 0.0) * rs.abs(x),
    "cast": lambda x, b, w: rs.cast(rs.cast(x, "float32"), "float64") * b,
    "spread": lambda x, b, w: x + rs.sum(x * b),
    "turned": lambda x, b, w: x[::-1] * x,
    "read": lambda x, b, w: x[rs.arange(4) % 2] * b,
    "shifted": lambda x, b, w: rs.concatenate([x[1:] - x[:-1], x[:1]]),
    "standing": lambda x, b, w: (x[:, None] * b[None, :]).sum(axis=1),
    "matrix": lambda x, b, w: w @ x,
    "row": lambda x, b, w: x @ w,
    "network": lambda x, b, w: rs.tanh(w @ x + b),
    "scaled before": lambda x, b, w: w @ (x * b),
    "row scaled before": lambda x, b, w: (x * b) @ w,
    "layers": lambda x, b, w: rs.tanh(w @ rs.tanh(w @ x)),
    "few": lambda x, b, w: rs.tanh(w[:2] @ (x * b)),
    "few, row": lambda x, b, w: rs.sin((b * x) @ w[:, :3]),
    "dot": lambda x, b, w: (x @ b) * x,
    "quadratic": lambda x, b, w: x * (x @ w @ x),
    "normalised": lambda x, b, w: rs.softmax(x),
    "loop": lambda x, b, w: rs.loop(lambda i, s: rs.tanh(w @ s) * b, over=rs.arange(3), init=x)[-1],
    "matrices": lambda x, b, w: (w * x) @ b,
    "solved": lambda x, b, w: rs.linalg.solve(w + 5 * rs.eye(4), x),
}


def differences(f, x):
    step = 1e-6
    return np.stack([(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(len(x))], axis=-1)


@pytest.mark.parametrize("known", [False, True], ids=["any extents", "known extents"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_jacobians_equal_differences(name, known):
    f = FUNCTIONS[name]
    if known:
        x, b, w = (rs.tensor("float64", v.shape, n) for n, v in (("x", X), ("b", B), ("w", W)))
    else:
        x, b, w = rs.dvector("x"), rs.dvector("b"), rs.dmatrix("w")
    y = f(x, b, w)
    value = rs.function([x, b, w], y, on_unused_input="ignore")
    found = rs.function([x, b, w], rs.jacobian(y, x), on_unused_input="ignore")(X, B, W)
    blocks = rs.function([x, b, w], rs.jacobian(y, x, block_size=2), on_unused_input="ignore")(X, B, W)
    compiled = rs.compile(rs.jacobian(f))(X, B, W)
    rounded = name == "cast"  # differences of such numbers say little
    expected = np.diag(B) if rounded else differences(lambda x: value(x, B, W), X)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)
    tolerance = dict(rtol=1e-6) if rounded else dict(rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(blocks, found, **tolerance)
    np.testing.assert_allclose(compiled, found, **tolerance)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_hessians_equal_differences(name):
    cost = lambda x: rs.sum(FUNCTIONS[name](x, B, W) * rs.cos(x) if "few" not in name else FUNCTIONS[name](x, B, W))
    slope = rs.compile(rs.grad(cost))
    found = rs.compile(rs.hessian(cost))(X)
    if name != "cast":
        np.testing.assert_allclose(found, differences(slope, X), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(found, found.T, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [0, 1, 2, 9])
def test_any_extent(n, dtype):
    x, w = np.linspace(0.1, 0.9, n, dtype=dtype), np.random.default_rng(1).normal(size=(n, n)).astype(dtype)
    found = rs.compile(rs.jacobian(lambda x, w: rs.tanh(w @ x)))(x, w)
    assert found.dtype == dtype and found.shape == (n, n)
    np.testing.assert_allclose(found, (1 - np.tanh(w @ x) ** 2)[:, None] * w, rtol=1e-4 if dtype == "float32" else 1e-10)


@pytest.mark.parametrize("n", [2, 5])
def test_the_dtype_is_that_of_the_argument_whichever_way_is_shorter(n):
    f = lambda x: (x * np.float64(2.0) * rs.arange(x.shape[0]))[:2]
    x = np.ones(n, "float32")
    for found in (rs.jacobian(f)(x), rs.compile(rs.jacobian(f))(x), rs.jacobian(f, block_size=1)(x)):
        assert found.dtype == "float32"
        np.testing.assert_array_equal(found, np.diag(2 * np.arange(n))[:2])


def test_zeros_beside_what_is_not_finite_stay_zeros():
    np.testing.assert_array_equal(rs.compile(rs.jacobian(rs.sqrt))(np.array([0.0, 4.0])), [[np.inf, 0.0], [0.0, 0.25]])
    found = rs.compile(rs.jacobian(lambda x, w: w @ x))(np.ones(2), np.array([[np.inf, 1.0], [2.0, np.nan]]))
    np.testing.assert_array_equal(found, [[np.inf, 1.0], [2.0, np.nan]])
    rows = rs.compile(rs.jacobian(lambda x, w: rs.sqrt(w @ x)))(np.array([0.0, 1.0, 0.0]), np.array([[1.0, 0.0, 1.0], [1.0, 4.0, 1.0]]))
    np.testing.assert_array_equal(rows[1], [0.25, 1.0, 0.25])


def test_no_product_with_the_identity_is_computed():
    f = rs.compile(rs.jacobian(lambda x, w: rs.tanh(w @ x)))
    f(X, W)
    assert "eye" not in f.text(optimised=True) and f.text(optimised=True).count("matmul") == 1
    hessian = rs.compile(rs.hessian(lambda x: rs.sum(rs.exp(x) * x)))
    np.testing.assert_allclose(hessian(X), np.diag((X + 2) * np.exp(X)), rtol=1e-12)
    assert "eye" not in hessian.text(optimised=True)


def test_matrices_that_do_not_fit_are_errors():
    for f in (lambda x, w: rs.tanh(w @ x), lambda x, w: w @ x, lambda x, w: x @ w):
        with pytest.raises(rs.RscanError, match="multipl"):
            rs.compile(rs.jacobian(f))(np.ones(3), np.ones((4, 4)))
