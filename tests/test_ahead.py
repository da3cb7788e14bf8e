"""Rows that are computed ahead of the steps that read them, a block at a time where there are many."""

import numpy as np
import pytest

import rscan as rs

K, N = 6, 48
#: So many steps that all rows of N numbers take more than a block.
LONG = 4000


def cell(x, h, w, u, b):
    """One layer of gates: products of the sequence are taken for all steps at once."""
    z = rs.sigmoid(x @ w[:, :N] + h * u + b)
    return z * h + (1 - z) * rs.tanh(x @ w[:, N:])


def program(**options):
    x, w, u, b, h = rs.matrix("x"), rs.matrix("w"), rs.vector("u"), rs.vector("b"), rs.vector("h")
    rows, _ = rs.scan(cell, sequences=x, outputs_info=h, non_sequences=[w, u, b], **options)
    return [x, w, u, b, h], rows


def numbers(steps):
    random = np.random.default_rng(steps)
    shapes = [(steps, K), (K, 2 * N), (N,), (N,), (N,)]
    return [0.3 * random.standard_normal(shape) for shape in shapes]


def reference(x, w, u, b, h):
    rows = []
    for row in x:
        z = 1 / (1 + np.exp(-(row @ w[:, :N] + h * u + b)))
        h = z * h + (1 - z) * np.tanh(row @ w[:, N:])
        rows.append(h)
    return np.array(rows)


def ahead(f):
    return [op for loop in f.explain().loops for op in loop.ahead]


@pytest.mark.parametrize("steps", [1, 5, LONG])
@pytest.mark.usefixtures("chosen_engine")
def test_all_rows_and_the_last(steps):
    ins, rows = program()
    f = rs.function(ins, [rows, rows[-1]])
    values = numbers(steps)
    all_rows, last = f(*values)
    np.testing.assert_allclose(all_rows, reference(*values), rtol=1e-10)
    np.testing.assert_array_equal(last, all_rows[-1])
    assert "matmul" in ahead(f)
    assert "computed ahead, in blocks of rows" in str(f.explain())


def test_backwards():
    ins, rows = program(go_backwards=True)
    values = numbers(LONG)
    expected = reference(values[0][::-1], *values[1:])
    np.testing.assert_allclose(rs.function(ins, rows)(*values), expected, rtol=1e-10)


def test_fewer_steps_than_rows():
    ins, rows = program(n_steps=LONG - 7)
    values = numbers(LONG)
    np.testing.assert_allclose(rs.function(ins, rows)(*values), reference(values[0][:-7], *values[1:]), rtol=1e-10)


def test_gradients_are_those_without_passes():
    ins, rows = program()
    grads = rs.grad((rows * rows).mean(), ins)
    values = numbers(LONG)
    plain = rs.function(ins, grads, excluding=["scan_hoist_seq"])
    for got, want in zip(rs.function(ins, grads)(*values), plain(*values), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-13)


def test_a_loop_that_stops_within_a_block():
    x, w = rs.matrix("x"), rs.matrix("w")

    def step(x, total):
        total = total + rs.abs(x @ w).sum()
        return total, rs.until(total > 900.0)

    totals, _ = rs.scan(step, sequences=x, outputs_info=rs.constant(0.0))
    f = rs.function([x, w], totals)
    values = numbers(LONG)[:2]
    expected = np.cumsum(np.abs(values[0] @ values[1]).sum(axis=1))
    stop = int(np.argmax(expected > 900.0)) + 1
    assert 1 < stop < LONG
    np.testing.assert_allclose(f(*values), expected[:stop], rtol=1e-10)


def test_a_misfit_is_told_as_the_step_is_written():
    ins, rows = program()
    values = numbers(LONG)
    values[0] = np.zeros((LONG, K + 1))
    with pytest.raises(rs.RscanError, match=rf"cannot multiply \({K + 1},\) by \({K}, "):
        rs.function(ins, rows)(*values)


@pytest.mark.parametrize(
    ("ours", "numpys", "by_rows"),
    [
        (lambda p: rs.flip(p, 0), lambda p: p[::-1], False),
        (lambda p: rs.softmax(p, 0), lambda p: np.exp(p) / np.exp(p).sum(0), False),
        (lambda p: rs.log_softmax(p, 0), lambda p: p - np.log(np.exp(p).sum(0)), False),
        (lambda p: p - p.max(0), lambda p: p - p.max(0), False),
        (lambda p: p * rs.equal(p, p.max(0)), lambda p: p * (p == p.max(0)), False),
        (lambda p: rs.cumsum(p, 0), lambda p: p.cumsum(0), False),
        (lambda p: p[:, ::-1] + rs.flip(p, 1), lambda p: 2 * p[:, ::-1], True),
        (lambda p: rs.softmax(p, 1), lambda p: np.exp(p) / np.exp(p).sum(1, keepdims=True), True),
    ],
    ids=["flip", "softmax", "log_softmax", "max", "mask", "cumsum", "flip of rows", "softmax of rows"],
)
@pytest.mark.usefixtures("chosen_engine")
def test_what_reads_other_rows_sees_all_of_them(ours, numpys, by_rows):
    x, w = rs.matrix("x"), rs.matrix("w")
    # Nothing but the loop reads the rows: how many there are is known without them.
    rows, _ = rs.scan(lambda p, h: 0.5 * h + p, sequences=ours(x @ w), outputs_info=rs.zeros(2 * N), n_steps=x.shape[0])
    values = numbers(LONG)[:2]
    h, expected = np.zeros(2 * N), []
    for p in numpys(values[0] @ values[1]):
        h = 0.5 * h + p
        expected.append(h)
    f = rs.function([x, w], rows)
    np.testing.assert_allclose(f(*values), expected, rtol=1e-9, atol=1e-12)
    assert ("matmul" in ahead(f)) == by_rows


@pytest.mark.parametrize("shape", [(6, 96), (3, 2), (64, 8), (2, 300), (120, 4), (40, 40)], ids=str)
@pytest.mark.parametrize("steps", [600, LONG])
@pytest.mark.usefixtures("chosen_engine")
def test_bits_are_those_of_all_rows_at_once(shape, steps):
    x, w = rs.matrix("x"), rs.matrix("w")
    products = x @ w
    rows, _ = rs.scan(lambda p, h: 0.5 * h + p, sequences=products, outputs_info=rs.zeros(shape[1]), n_steps=x.shape[0])
    random = np.random.default_rng(steps)
    values = [random.standard_normal((steps, shape[0])), random.standard_normal(shape)]
    blocks, whole = rs.function([x, w], rows), rs.function([x, w], [rows, products])
    np.testing.assert_array_equal(blocks(*values), whole(*values)[0])
    assert "matmul" in ahead(blocks) and not ahead(whole)
