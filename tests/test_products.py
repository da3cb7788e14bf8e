"""Products: what an element depends on, and what it does not."""

import numpy as np
import pytest
from test_inner_loops import agree

import rscan as rs


def numbers(shape, dtype, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@pytest.fixture(params=["float32", "float64"])
def product(request):
    a, b = rs.matrix("a", dtype=request.param), rs.matrix("b", dtype=request.param)
    return request.param, rs.function([a, b], a @ b)


@pytest.mark.parametrize("k, n", [(1, 1), (300, 1), (5, 2), (40, 33), (600, 20)])
def test_a_row_has_the_bits_of_its_own_product(product, k, n):
    dtype, f = product
    x, w = numbers((37, k), dtype), numbers((k, n), dtype, 1)
    whole = f(x, w)
    np.testing.assert_allclose(whole, x.astype("float64") @ w.astype("float64"), rtol=1e-4, atol=1e-3 if dtype == "float32" else 1e-10)
    for rows in (1, 2, 3, 5, 8, 20):
        for first in range(0, 37 - rows, 7):
            assert f(x[first : first + rows], w).tobytes() == whole[first : first + rows].tobytes()


def test_views_have_the_bits_of_copies(product):
    dtype, f = product
    x, w = numbers((30, 80), dtype), numbers((90, 60), dtype, 1)
    for a, b in [(x[::2, ::2], w[5:45]), (x.T, w[:60:2].T[:30]), (x[::-1], w[80:0:-1]), (x[:, :40], w[::-1][:40, 3:4])]:
        assert f(a, b).tobytes() == f(a.copy(), b.copy()).tobytes()


def test_what_is_no_number_stays_in_its_row_and_column(product):
    dtype, f = product
    x, w = np.ones((9, 4), dtype), np.ones((4, 19), dtype)
    x[2, 1], w[3, 18] = np.nan, np.inf
    found = f(x, w)
    assert np.isnan(found[2]).all() and np.isinf(np.delete(found, 2, 0)[:, 18]).all()
    assert np.isfinite(np.delete(found, 2, 0)[:, :18]).all()


def test_no_terms_give_zeros(product):
    dtype, f = product
    for m, n in [(0, 3), (3, 0), (2, 1), (5, 7)]:
        assert f(np.ones((m, 0), dtype), np.ones((0, n), dtype)).tolist() == np.zeros((m, n)).tolist()


def test_batches_are_multiplied_as_their_matrices(product):
    dtype, f = product
    a, b = rs.tensor3("a", dtype=dtype), rs.tensor3("b", dtype=dtype)
    g = rs.function([a, b], a @ b)
    x, y = numbers((4, 6, 9), dtype), numbers((1, 9, 5), dtype, 1)
    assert g(x, y).tobytes() == np.stack([f(m, y[0]) for m in x]).tobytes()


@pytest.mark.parametrize("batch", [1, 2, 7, 32])
def test_a_sequence_of_a_batch_runs_as_it_would_alone(product, batch):
    """A recurrent net: no bit of a row depends on the rows beside it, in the loop or in products taken out of it."""
    dtype, _ = product
    x, h0, wx, wh = rs.tensor3("x", dtype=dtype), rs.matrix("h0", dtype=dtype), rs.matrix("wx", dtype=dtype), rs.matrix("wh", dtype=dtype)
    hs, _ = rs.scan(lambda x_t, h: rs.tanh(x_t @ wx + h @ wh), sequences=[x], outputs_info=[h0])
    f = rs.function([x, h0, wx, wh], hs)
    args = numbers((6, 32, 20), dtype), numbers((32, 24), dtype, 1), numbers((20, 24), dtype, 2) / 5, numbers((24, 24), dtype, 3) / 5
    args = [a.astype(dtype) for a in args]
    whole, part = f(*args), f(args[0][:, :batch], args[1][:batch], *args[2:])
    assert part.tobytes() == whole[:, :batch].tobytes()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
@pytest.mark.parametrize(
    "a, b", [((7,), (7,)), ((7,), (7, 5)), ((3, 7), (7,)), ((3, 7), (7, 5)), ((3, 1), (1, 5)), ((1, 7), (7, 1)), ((2, 3, 7), (7, 5))]
)
def test_products_of_integers_in_a_step(monkeypatch, dtype, a, b):
    """They wrap around as NumPy's do, whatever else a step holds that keeps it from being one kernel."""
    random = np.random.default_rng(3)
    x, y = (random.integers(-(2**62), 2**62, size=shape).astype(dtype) for shape in ((4, *a), b))

    def build(x, y):
        def step(row, kept):
            product = row @ y
            return dict(kept=kept.at[-1].set(product.flatten()[:1] if product.ndim else product), out=product)

        return [rs.loop(step, over=x, init=dict(kept=rs.zeros((2, 1) if len(a) + len(b) > 2 else 2, dtype=dtype))).out]

    agree(monkeypatch, build, x, y)
    with np.errstate(over="ignore"):
        expected = np.stack([np.matmul(row, y) for row in x])
    variables = [rs.tensor(dtype, [None] * v.ndim) for v in (x, y)]
    np.testing.assert_array_equal(rs.function(variables, build(*variables))(x, y)[0], expected)
