"""Factorisations and what is made of them give what NumPy and SciPy give, and their gradients agree with differences."""

import numpy as np
import pytest
import scipy.linalg
from helpers import like_numpy, run, same, symbol

import rscan as rs

RNG = np.random.default_rng(5)
SQUARE, TALL, WIDE, STACK = (RNG.standard_normal(s) for s in [(4, 4), (5, 3), (3, 5), (2, 4, 3)])
SYMMETRIC = SQUARE + SQUARE.T
DEFICIENT = TALL[:, :2] @ RNG.standard_normal((2, 4))
SHAPES = [SQUARE, TALL, WIDE, STACK, STACK.swapaxes(1, 2).copy(), TALL[:, :1], TALL[:1], TALL[:1, :1], np.zeros((0, 0)), np.zeros((3, 0))]


CUT = {
    "wide": np.array([[1.0, 0.2, 0.1], [0.3, 0.4, -0.2]]), "tall": np.random.default_rng(2).normal(size=(5, 3)),
    "equal": np.diag([1.0, 1.0, 0.1]), "rows": np.random.default_rng(3).normal(size=(2, 4, 3)), "all stay": np.diag([3.0, 2.0]),
}  # fmt: skip


@pytest.mark.parametrize("name", CUT)
def test_slopes_where_singular_values_count_as_0(name):
    """What is cut off moves what is left: the first and the second derivative are those of differences."""
    a, rcond = CUT[name], 0.6 if name == "wide" else 0.4
    weights = np.random.default_rng(1).normal(size=np.swapaxes(a, -1, -2).shape)
    cost = lambda x: rs.sum(rs.sin(rs.linalg.pinv(x, rcond=rcond)) * weights)
    np.testing.assert_allclose(run(cost, a), np.sum(np.sin(np.linalg.pinv(a, rcond=rcond)) * weights), rtol=1e-12)
    rs.verify_grad(cost, [a], rel_tol=1e-6)
    rs.verify_grad(lambda x: rs.sum(rs.sin(rs.grad(cost(x), x))), [a], rel_tol=1e-5)
    if a.ndim == 2:
        b = np.arange(1.0, len(a) + 1)
        rs.verify_grad(lambda x, b: rs.linalg.lstsq(x, b, rcond=rcond)[0], [a, b], rel_tol=1e-6)


@pytest.mark.parametrize("a", SHAPES, ids=lambda a: str(a.shape))
def test_qr(a):
    like_numpy(lambda m, a: [*m.linalg.qr(a)], a)
    like_numpy(lambda m, a: m.linalg.qr(a, mode="r"), a)
    if a.size:
        rs.verify_grad(lambda a: rs.linalg.qr(a).Q, [a])
        rs.verify_grad(lambda a: rs.linalg.qr(a).R, [a])


def test_qr_where_columns_depend_on_each_other_has_no_gradient():
    a = symbol(DEFICIENT)
    f = rs.function([a], rs.grad(rs.sum(rs.linalg.qr(a).R), a))
    same(run(lambda a: rs.linalg.qr(a).Q @ rs.linalg.qr(a).R, DEFICIENT), DEFICIENT)
    with pytest.raises(rs.LinAlgError, match="E0601"):
        f(np.zeros((3, 2)))


@pytest.mark.parametrize("a", SHAPES, ids=lambda a: str(a.shape))
def test_svd(a):
    same(run(rs.linalg.svdvals, a), np.linalg.svd(a, compute_uv=False), 1e-10)
    u, s, vh = run(lambda a: [*rs.linalg.svd(a)], a)
    np.testing.assert_allclose(u * s[..., None, :] @ vh, a, atol=1e-12)
    for known in (False, True):
        product = lambda a: rs.linalg.svd(a).U @ rs.linalg.svd(a).Vh
        same(run(product, a, known=known), (lambda u, s, vh: u @ vh)(*np.linalg.svd(a, full_matrices=False)), 1e-9)
    if a.size:
        for k in range(3):
            rs.verify_grad(lambda a, k=k: rs.linalg.svd(a)[k], [a])


@pytest.mark.parametrize(
    "a", [SYMMETRIC, np.stack([SYMMETRIC, SQUARE @ SQUARE.T]), np.ones((1, 1)), np.zeros((0, 0))], ids=lambda a: str(a.shape)
)
def test_eigh(a):
    for half in "LU":
        like_numpy(lambda m, a, half=half: m.linalg.eigvalsh(a, UPLO=half), a)
        values, vectors = run(lambda a, half=half: [*rs.linalg.eigh(a, UPLO=half)], a)
        np.testing.assert_allclose(a @ vectors, vectors * values[..., None, :], atol=1e-12)
        if a.size:
            rs.verify_grad(lambda a, half=half: rs.linalg.eigvalsh(a, half), [a])
            rs.verify_grad(lambda a, half=half: rs.linalg.eigh(a, half).eigenvectors ** 2, [a])
    other = np.tril(a) + 7 * np.triu(np.ones_like(a), 1)
    same(run(rs.linalg.eigvalsh, other), np.linalg.eigvalsh(a), 1e-10)


def tiny_elements(random, shape):
    """Elements of very different magnitudes, zeros and such that are not normal among them; the largest has all its bits."""
    magnitudes = 10.0 ** random.choice([0, -40, -160, -290, -308, -315, -322], size=shape)
    a = random.normal(size=shape) * magnitudes * (random.random(shape) < 0.8)
    a[0, 0] = 10.0 ** random.choice([0, -200, -290])
    return a


def test_elements_that_underflow():
    """What is orthonormal stays so, and products give the matrix back, to the bits that its largest element has."""
    random = np.random.default_rng(8)
    a = rs.dmatrix("a")
    qr, svd, eigh = (rs.function([a], list(f(a))) for f in (rs.linalg.qr, rs.linalg.svd, rs.linalg.eigh))
    for _ in range(300):
        m, n = random.integers(1, 7, size=2)
        x = tiny_elements(random, (m, n))
        scale = np.abs(x).max()
        (q, r), (u, s, v) = qr(x), svd(x)
        k = len(s)
        for orthonormal, back in (q, q @ (r / scale)), (u[:, :k], u[:, :k] * (s / scale) @ v[:k]):
            np.testing.assert_allclose(orthonormal.T @ orthonormal, np.eye(k), atol=1e-13)
            np.testing.assert_allclose(back, x / scale, atol=1e-13)
        x = tiny_elements(random, (n, n))
        x, scale = np.tril(x) + np.tril(x, -1).T, np.abs(x).max()
        w, v = eigh(x)
        np.testing.assert_allclose(v.T @ v, np.eye(n), atol=1e-13)
        np.testing.assert_allclose(v * (w / scale) @ v.T, x / scale, atol=1e-13)


def test_equal_eigenvalues():
    """What does not depend on the choice of vectors has its gradient: traces of functions of a matrix, by f'(a)."""
    a = symbol(SYMMETRIC)
    f = rs.function([a], rs.grad(rs.sum(rs.exp(rs.linalg.eigvalsh(a))), a))
    same(f(2 * np.eye(3)), np.exp(2.0) * np.eye(3), 1e-12)
    rs.verify_grad(lambda a: rs.linalg.pinv(a), [np.eye(3)])


@pytest.mark.parametrize("a", [SQUARE, TALL, WIDE, STACK, DEFICIENT, np.zeros((2, 3)), np.zeros((0, 3))], ids=lambda a: str(a.shape))
def test_pinv(a):
    for options in ({}, {"rcond": 1e-3}):
        expected = np.linalg.pinv(a, rcond=options.get("rcond", 1e-13))
        same(run(lambda a, o=options: rs.linalg.pinv(a, **o), a), expected, 1e-9)
    if a.size and a is not DEFICIENT and a.any():
        rs.verify_grad(rs.linalg.pinv, [a])
        rs.verify_grad(lambda a: rs.grad(rs.sum(rs.linalg.pinv(a) ** 2), a), [a])


@pytest.mark.parametrize("a", [SQUARE, TALL, WIDE, DEFICIENT], ids=lambda a: str(a.shape))
@pytest.mark.parametrize("columns", [(), (2,)])
def test_lstsq(a, columns):
    b = RNG.standard_normal((len(a), *columns))
    x, residuals, rank, values = run(lambda a, b: [*rs.linalg.lstsq(a, b)], a, b)
    expected = np.linalg.lstsq(a, b, rcond=None)
    same([x, values], [expected[0], expected[3]], 1e-9)
    assert rank == expected[2]
    np.testing.assert_allclose(residuals, np.sum((b - a @ x) ** 2, 0).reshape(residuals.shape), atol=1e-12)
    if expected[1].size:
        same(residuals, expected[1], 1e-9)
    if a is not DEFICIENT:
        rs.verify_grad(lambda a, b: rs.linalg.lstsq(a, b)[0], [a, b])


@pytest.mark.parametrize(
    "a", [SQUARE, TALL, STACK, DEFICIENT, np.zeros((2, 2)), np.ones(3), np.zeros(3), np.array(2.0)], ids=lambda a: str(a.shape)
)
def test_matrix_rank(a):
    like_numpy(lambda m, a: m.linalg.matrix_rank(a), a)
    if a.ndim > 1:
        like_numpy(lambda m, a: m.linalg.matrix_rank(a, tol=1.0), a)


@pytest.mark.parametrize("p", [None, 2, -2, 1, np.inf, "fro", "nuc"])
def test_condition(p):
    like_numpy(lambda m, a: m.linalg.cond(a, p), SQUARE, rtol=1e-9)


@pytest.mark.parametrize("order", [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
def test_norms_of_matrices(order):
    like_numpy(lambda m, a: m.linalg.norm(a, order), TALL)
    for keepdims in (False, True):
        like_numpy(lambda m, a, keep=keepdims: m.linalg.norm(a, order, axis=(2, 0), keepdims=keep), STACK)
    if order is not None:
        like_numpy(lambda m, a: m.linalg.matrix_norm(a, ord=order), STACK)
    rs.verify_grad(lambda a: rs.linalg.norm(a, order), [TALL])


@pytest.mark.parametrize("order", [None, 0, 1, 2, 3, 0.5, -1, np.inf, -np.inf])
def test_norms_of_vectors(order):
    like_numpy(lambda m, a: m.linalg.norm(a, order), TALL[0])
    like_numpy(lambda m, a: m.linalg.norm(a, order, axis=1, keepdims=True), STACK)


@pytest.mark.parametrize("scale", [0.0, 1e-8, 0.3, 1.0, 6.0, 40.0])
def test_expm(scale):
    for a in (SQUARE * scale, np.stack([SQUARE, -0.1 * SQUARE]) * scale, np.array([[0.0, 1.0], [0.0, 0.0]]) * scale, np.zeros((0, 0))):
        expected = scipy.linalg.expm(a)
        np.testing.assert_allclose(run(rs.linalg.expm, a), expected, rtol=1e-9, atol=1e-11 * np.max(np.abs(expected), initial=1))
    if 0 < scale <= 1:
        rs.verify_grad(rs.linalg.expm, [SQUARE * scale])
        rs.verify_grad(lambda a: rs.grad(rs.sum(rs.linalg.expm(a) ** 2), a), [SQUARE * scale])


def test_expm_in_single_precision_and_of_what_is_not_finite():
    out = run(rs.linalg.expm, SQUARE.astype("float32"))
    assert out.dtype == "float32"
    np.testing.assert_allclose(out, scipy.linalg.expm(SQUARE), rtol=1e-4)
    assert np.isnan(run(rs.linalg.expm, np.full((2, 2), np.nan))).all()


def test_triangular_and_cholesky_solves():
    a, b = SQUARE @ SQUARE.T + np.eye(4), RNG.standard_normal((4, 2))
    for lower in (False, True):
        c = np.linalg.cholesky(a) if lower else np.linalg.cholesky(a).T
        same(run(lambda c, b, lower=lower: rs.linalg.cho_solve((c, lower), b), c, b), np.linalg.solve(a, b), 1e-9)
        rs.verify_grad(lambda a, lower=lower: rs.linalg.solve_triangular(a, b, lower=lower), [a])
        rs.verify_grad(lambda c, b, lower=lower: rs.linalg.cho_solve((c, lower), b), [c, b])


@pytest.mark.parametrize("known", [False, True])
def test_multi_dot(known):
    shapes = [(2, 30), (30, 3), (3, 20), (20, 4)]
    items = [RNG.standard_normal(s) for s in shapes]
    for chain in (
        items,
        items[:2],
        items[:3],
        [items[0][0], *items[1:]],
        [*items[:-1], items[-1][:, 0]],
        [items[0][0], items[1], items[2][:, 0]],
    ):
        same(run(lambda *xs: rs.linalg.multi_dot(xs), *chain, known=known), np.linalg.multi_dot(chain), 1e-10)


def test_multi_dot_multiplies_in_the_cheap_order():
    a, b, c = (rs.tensor("float64", s) for s in [(2, 100), (100, 2), (2, 100)])
    assert "f64[100, 100]" not in str(rs.function([a, b, c], rs.linalg.multi_dot([a, b, c])).explain())
    product = rs.linalg.multi_dot([b, a, b])  # 100×2 · (2×100 · 100×2)
    assert [tuple(v.static_shape) for v in rs.linalg.factors._order and [product]] == [(100, 2)]
    assert rs.linalg.factors._order([b, a, b])[0, 2] == 0 and rs.linalg.factors._order([a, b, c])[0, 2] == 1


def test_block_diag():
    blocks = [SQUARE, TALL, np.arange(3), np.array(2.0), np.zeros((0, 2))]
    same(run(rs.linalg.block_diag, *blocks), scipy.linalg.block_diag(*blocks))
    same(run(rs.linalg.block_diag, np.eye(2, dtype="int8")), np.eye(2, dtype="int8"))
    rs.verify_grad(rs.linalg.block_diag, [TALL, SQUARE])


@pytest.mark.parametrize("n", [0, 1, 3, -2])
def test_matrix_power_of_batches(n):
    like_numpy(lambda m, a: m.linalg.matrix_power(a, n), np.stack([SQUARE, SQUARE.T]))


def test_traces():
    like_numpy(lambda m, a: m.linalg.trace(a, offset=-1), STACK)
    like_numpy(lambda m, a: m.linalg.trace(a), SQUARE)


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_dtypes(dtype):
    a = (np.arange(9).reshape(3, 3) % 4 == 1).astype(dtype) + np.eye(3, dtype=dtype)
    like_numpy(lambda m, a: m.linalg.svd(a, compute_uv=False), a)
    like_numpy(lambda m, a: m.linalg.eigvalsh(a), a)
    q, r = run(lambda a: [*rs.linalg.qr(a)], a)
    assert q.dtype == r.dtype == np.linalg.qr(a)[1].dtype
    np.testing.assert_allclose(r, np.linalg.qr(a)[1], atol=1e-6)
    np.testing.assert_allclose(run(rs.linalg.pinv, a), np.linalg.pinv(a), atol=1e-6)
    like_numpy(lambda m, a: m.linalg.lstsq(a, m.ones(3, dtype), rcond=None)[0], a, rtol=1e-5)


BATCHED = {
    "qr": (lambda a: rs.linalg.qr(a).R, STACK),
    "svd": (lambda a: rs.linalg.svd(a).S, STACK),
    "eigh": (rs.linalg.eigvalsh, np.stack([SYMMETRIC, SQUARE @ SQUARE.T])),
    "pinv": (rs.linalg.pinv, STACK),
    "expm": (rs.linalg.expm, np.stack([SQUARE, 9 * SQUARE])),
    "rank": (rs.linalg.matrix_rank, STACK),
    "lstsq": (lambda a: rs.linalg.lstsq(a, np.arange(4.0))[0], STACK),
    "nuc": (lambda a: rs.linalg.norm(a, "nuc"), STACK),
}


@pytest.mark.parametrize("name", BATCHED)
def test_rows_at_once(name):
    f, a = BATCHED[name]
    np.testing.assert_allclose(run(rs.vmap(f), a), np.stack([run(f, row) for row in a]), rtol=1e-9, atol=1e-12)


def test_in_loops():
    steps = lambda x: rs.loop(lambda x: rs.linalg.qr(x).Q @ x.T, init=[x], n_steps=3)[-1]
    x = SQUARE
    for _ in range(3):
        x = np.linalg.qr(x).Q @ x.T
    same(run(steps, SQUARE), x, 1e-9)
    rs.verify_grad(steps, [SQUARE])


def test_numpys_own_functions_take_variables():
    x = rs.matrix("x")
    assert np.linalg.svd(x, full_matrices=False).S.ndim == 1
    assert np.linalg.qr(x).R.ndim == 2
    with pytest.raises(NotImplementedError, match="eigh"):
        np.linalg.eig(x)


ERRORS = {
    "qr mode": (lambda x: rs.linalg.qr(x, "raw"), NotImplementedError),
    "cross of two": (lambda x: rs.linalg.cross(np.ones(2), np.ones(2)), ValueError),
    "eigh half": (lambda x: rs.linalg.eigh(x, "M"), ValueError),
    "rcond": (lambda x: rs.linalg.pinv(x, rcond=-1), ValueError),
    "vector": (lambda x: rs.linalg.svd(x[0]), TypeError),
    "not square": (lambda x: rs.linalg.eigh(np.ones((2, 3))), np.linalg.LinAlgError),
    "one matrix": (lambda x: rs.linalg.multi_dot([x]), ValueError),
    "cho_solve": (lambda x: rs.linalg.cho_solve(x, x), ValueError),
    "norm": (lambda x: rs.linalg.norm(x, "no"), ValueError),
    "rows": (lambda x: rs.linalg.lstsq(np.ones((3, 2)), np.ones(2)), rs.ShapeError),
    "power": (lambda x: rs.linalg.matrix_power(x, 1.5), TypeError),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    build, kind = ERRORS[name]
    with pytest.raises(kind) as caught:
        build(rs.matrix("x"))
    assert isinstance(caught.value, rs.RscanError)


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (3, 3), (2, 5, 3), (1, 1), (4, 1), (3, 0), (0, 3), (0, 0)])
def test_complete_factors(shape, known):
    """What is added is orthonormal, and R and the singular values are NumPy's."""
    a = np.random.default_rng(1).standard_normal(shape)
    factors = lambda v: [*rs.linalg.qr(v, mode="complete"), *rs.linalg.svd(v, full_matrices=True)]
    q, r, u, s, vh = run(factors, a, known=known)
    for got, expected in zip((q, r, u, s, vh), (*np.linalg.qr(a, mode="complete"), *np.linalg.svd(a)), strict=True):
        assert got.shape == expected.shape
    for orthogonal in (q, u, vh):
        same(orthogonal.swapaxes(-1, -2) @ orthogonal, np.zeros(orthogonal.shape) + np.eye(orthogonal.shape[-1]), 1e-9)
    k = s.shape[-1]
    same(r, np.triu(r))
    same(q @ r, a, 1e-9)
    same(u[..., :k] * s[..., None, :] @ vh[..., :k, :], a, 1e-9)


def test_what_is_arbitrary_has_no_gradient():
    a = np.random.default_rng(1).standard_normal((4, 2))
    for orthogonal in (lambda v: rs.linalg.qr(v, mode="complete").Q, lambda v: rs.linalg.svd(v, full_matrices=True).U):
        with pytest.raises(rs.LinAlgError):
            rs.grad(lambda v, f=orthogonal: rs.sum(f(v) ** 3))(a)
    rs.verify_grad(lambda v: rs.sum(rs.linalg.svd(v, full_matrices=True).S ** 3), [a])
    rs.verify_grad(lambda v: rs.sum(rs.linalg.qr(v, mode="complete").Q ** 3), [a[:2]])
    rs.verify_grad(lambda v: rs.sum(rs.linalg.qr(v, mode="complete").R ** 3), [a.T])


def test_the_array_apis_products_of_vectors():
    x, y = np.random.default_rng(1).standard_normal((2, 2, 3, 3))
    like_numpy(lambda m, a, b: [m.linalg.cross(a, b, axis=1), m.linalg.vecdot(a, b, axis=0), m.linalg.diagonal(a, offset=1)], x, y)


@pytest.mark.parametrize("structure", ["general", "lower", "positive"])
def test_a_right_side_is_solved_alike_whatever_stands_beside_it(structure):
    a, b = rs.dmatrix("a"), rs.dmatrix("b")
    f = rs.function([a, b], rs.linalg.solve(a, b, assume=structure))
    rng = np.random.default_rng(3)
    for n in [1, 2, 4, 7, 12, 16, 17, 33, 70]:
        x = rng.normal(size=(n, n))
        x = {"general": x, "lower": np.tril(x) + 4 * np.eye(n), "positive": x @ x.T + n * np.eye(n)}[structure]
        sides = rng.normal(size=(n, 40))
        whole = f(x, sides)
        for width in [1, 3, 8, 39]:
            parts = [f(x, sides[:, at : at + width]) for at in range(0, 40, width)]
            np.testing.assert_array_equal(np.hstack(parts), whole)
