"""Extents that differ from row to row, or from step to step. A function of a row whose result has one shape gives under `vmap` what it
gives for each row; rows of a loop that differ are an error of the step, on every engine."""

import numpy as np
import pytest
from test_inner_loops import agree

import rscan as rs

X = np.arange(20.0).reshape(4, 5) + 1
K = np.array([0, 1, 3, 5])

#: Of a row and an integer of its own: one number each.
TOTALS = {
    "slice": lambda x, k: rs.sum(x[k : k + 2]),
    "rest": lambda x, k: rs.sum(x[k:]),
    "first": lambda x, k: rs.sum(x[:k]),
    "last": lambda x, k: rs.sum(x[-k:]),
    "backwards": lambda x, k: rs.sum(x[k::-1]),
    "strides": lambda x, k: rs.sum(x[k : k + 3 : 2]),
    "products": lambda x, k: rs.dot(x[:k], x[:k]),
    "chain": lambda x, k: rs.sum(rs.exp(-rs.cumsum(rs.sort(x[:k])[::-1]))),
    "joined": lambda x, k: rs.sum(rs.concatenate([x[:k], 2 * x[k:]]) * rs.arange(5.0)),
    "extent": lambda x, k: x[k : k + 2].shape[0] + x[0],
    "numbers": lambda x, k: rs.sum(rs.arange(k)) * x[0],
    "ones": lambda x, k: rs.sum(rs.ones(k) * x[:k]),
    "mask": lambda x, k: rs.sum(x[x > 5 * k]),
    "repeats": lambda x, k: rs.sum(rs.repeat(x, k)),
    "count": lambda x, k: rs.fori(0, k, lambda i, s: s * 1.5 + x[i], 0.0),
    "loop": lambda x, k: rs.loop(lambda v, s: s * 0.5 + v, over=x[:k], init=0.0).last,
    "length": lambda x, k: rs.sum(rs.loop(lambda v, s: s * 0.5 + v, over=x[:k], init=0.0)),
    "step": lambda x, k: rs.fori(0, 2, lambda t, s: s + rs.sum(x[t + k : t + k + 2]), 0.0),
}
ROWS = {
    "set": lambda x, k: x.at[k : k + 2].add(x[k : k + 2]),
    "turned": lambda x, k: rs.concatenate([x[k:], x[:k]]),
    "scatter": lambda x, k: x.at[: k + 1].multiply(2.0),
}


def each(f):
    """The rows, one after the other, by functions of one row."""
    one = rs.compile(f)
    return np.stack([one(x, int(k)) for x, k in zip(X, K, strict=True)])


@pytest.mark.parametrize("name", [*TOTALS, *ROWS])
def test_values_are_those_of_each_row(name):
    f = {**TOTALS, **ROWS}[name]
    np.testing.assert_allclose(rs.compile(rs.vmap(f))(X, K), each(f), rtol=1e-12)
    turned = rs.compile(rs.vmap(f))(X[::-1], K[::-1])
    np.testing.assert_allclose(turned[::-1], each(f), rtol=1e-12)


@pytest.mark.parametrize("name", [n for n in TOTALS if n not in ("extent", "numbers", "repeats", "mask")])
def test_gradients_are_those_of_each_row(name):
    f = TOTALS[name]
    got = rs.compile(rs.grad(lambda x: rs.sum(rs.vmap(f)(x, K) ** 2)))(X)
    one = rs.compile(rs.grad(lambda x, k: f(x, k) ** 2))
    np.testing.assert_allclose(got, np.stack([one(x, int(k)) for x, k in zip(X, K, strict=True)]), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["slice", "count", "loop", "chain"])
def test_arrays_of_all_rows_are_read_too(name):
    f, x = TOTALS[name], X[1]
    got = rs.compile(lambda x, k: rs.vmap(lambda k: f(x, k))(k))(x, K)
    np.testing.assert_allclose(got, [rs.compile(f)(x, int(k)) for k in K], rtol=1e-12)


#: Rows of a loop over integers, of which each has another extent.
CHANGING = {
    "rest": lambda x, k: x[k:],
    "first": lambda x, k: rs.tanh(x[:k]),
    "turned": lambda x, k: x[:k][::-1],
    "joined": lambda x, k: rs.concatenate([x[:k], x[:1]]),
    "outer": lambda x, k: rs.outer(x[:k], x[:2]),
    "zeros": lambda x, k: rs.zeros(k) * x[0],
    "sorted": lambda x, k: rs.cumsum(rs.sort(x[:k])),
    "inner": lambda x, k: rs.loop(lambda v, s: s + v, over=x[:k], init=0.0),
}


@pytest.mark.parametrize("name", CHANGING)
@pytest.mark.parametrize("order", [[0, 1, 2], [3, 1, 0], [1, 1, 4]])
def test_rows_that_change_are_errors_of_their_step(monkeypatch, name, order):
    f, x = CHANGING[name], np.arange(1.0, 6.0)
    whole = rs.compile(lambda x, k: rs.loop(lambda k: f(x, k), over=k))
    with pytest.raises(rs.errors.ScanTypeError, match="E0102") as error:
        whole(x, np.array(order))
    step = 1 if order[0] != order[1] else 2
    assert f"step {step}" in str(error.value)
    agree(monkeypatch, lambda x, k: rs.loop(lambda k: f(x, k), over=k), x, np.array(order))
    with pytest.raises(rs.errors.ScanTypeError, match="E0102"):
        rs.compile(rs.vmap(f, (None, 0)))(x, np.array(order))
    alike = [order[1]] * 3
    np.testing.assert_allclose(whole(x, np.array(alike)), np.stack([rs.compile(f)(x, alike[0])] * 3))


@pytest.mark.parametrize("order", [[1, 2, 3], [3, 2, 1]])
def test_outputs_beside_a_state_that_change(order):
    f = rs.compile(lambda x, k: rs.loop(lambda k, s: {"s": s + rs.sum(x[:k]), "o": x[:k] * s}, over=k, init={"s": 0.0}))
    with pytest.raises(rs.errors.ScanTypeError, match="E0102"):
        f(np.arange(1.0, 6.0), np.array(order))
