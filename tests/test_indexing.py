"""Indexing: every index gives what NumPy gives, read, set and added to."""

import numpy as np
import pytest
from helpers import run, same, symbol

import rscan as rs

A = np.arange(5 * 4 * 3, dtype="float64").reshape(5, 4, 3)
I = np.array([2, 0, 2])
J = np.array([[0, 3], [1, -1]])
MASK1 = np.array([True, False, True, True, False])
MASK2 = np.arange(20).reshape(5, 4) % 3 == 0

BASIC = [
    np.s_[0], np.s_[-1], np.s_[1, 2], np.s_[1, 2, 0], np.s_[:], np.s_[...], np.s_[()], np.s_[1:3], np.s_[:-1], np.s_[::2],
    np.s_[::-1], np.s_[3:0:-1], np.s_[-2:], np.s_[10:], np.s_[:10], np.s_[4:1], np.s_[:, 1], np.s_[..., 1], np.s_[..., -1, :],
    np.s_[None], np.s_[:, None], np.s_[..., None], np.s_[1, None, 2], np.s_[None, 1:3, None, 0], np.s_[1, ..., 2],
    np.s_[::-2, ::-1], np.s_[0, :, ...], np.s_[2:2], np.s_[-100:100:3],
]  # fmt: skip

ADVANCED = [
    np.s_[I], np.s_[J], np.s_[[0, 1]], np.s_[[]], np.s_[I, I], np.s_[I, :, I], np.s_[:, I], np.s_[:, I, I], np.s_[I, 0],
    np.s_[0, I], np.s_[0, :, I], np.s_[..., I], np.s_[I, ..., I], np.s_[:, I, ..., I], np.s_[I, None], np.s_[I, None, I],
    np.s_[None, I], np.s_[1:, I], np.s_[::-1, I, ::2], np.s_[1:4, I, 0], np.s_[J, I[:2]], np.s_[J, :, I[:2]], np.s_[I, 1:3],
    np.s_[I, -1], np.s_[MASK1], np.s_[MASK2], np.s_[MASK1, 1], np.s_[:, np.array([True, False, False, True])],
    np.s_[MASK2, 0], np.s_[MASK2, ..., None], np.s_[A > 20.0], np.s_[None, MASK1, None], np.s_[I.astype("uint8")],
    np.s_[np.array(1)], np.s_[np.int32(-2)], np.s_[[True, False, False, True, True]], np.s_[:, :, np.array([], "int64")],
]  # fmt: skip


@pytest.mark.parametrize("key", BASIC + ADVANCED, ids=repr)
@pytest.mark.parametrize("known", [False, True])
def test_read(key, known):
    same(run(lambda x: x[key], A, known=known), A[key])


@pytest.mark.parametrize("key", BASIC + ADVANCED, ids=repr)
def test_set_and_add(key):
    value = np.arange(A[key].size, dtype="float64").reshape(A[key].shape) * 10 + 1
    expected_set, expected_add = A.copy(), A.copy()
    np.add.at(expected_add, key, value)
    got_set, got_add = run(lambda x, y: (x.at[key].set(y), x.at[key].add(y)), A, value)
    same(got_add, expected_add)
    positions = np.arange(A.size).reshape(A.shape)[key]
    if np.unique(positions).size == positions.size:
        expected_set[key] = value
        same(got_set, expected_set)


@pytest.mark.parametrize("key", BASIC + ADVANCED, ids=repr)
def test_set_a_number(key):
    expected = A.copy()
    expected[key] = -1
    same(run(lambda x: x.at[key].set(-1), A), expected)


def test_duplicates_last_wins_and_sum():
    x = np.zeros(3)
    same(run(lambda v: v.at[[1, 1]].set(np.array([5.0, 7.0])), x), np.array([0.0, 7.0, 0.0]))
    same(run(lambda v: v.at[[1, 1]].add(np.array([5.0, 7.0])), x), np.array([0.0, 12.0, 0.0]))


def test_symbolic_indices():
    x, i, j = symbol(A), rs.iscalar("i"), rs.lscalar("j")
    f = rs.function([x, i, j], [x[i], x[i:j], x[i:j:-1], x[..., i], x[:, i, None, j], x[-i:], x[i + j :]])
    for p, q in [(0, 2), (1, 1), (2, 0)]:
        expected = [A[p], A[p:q], A[p:q:-1], A[..., p], A[:, p, None, q], A[-p:], A[p + q :]]
        same(f(A, p, q), expected)


def test_symbolic_arrays_of_indices():
    same(run(lambda x, i: x[i, :, 0], A, J), A[J, :, 0])
    same(run(lambda x, m: x[m], A, MASK2), A[MASK2])
    same(run(lambda x, i: x[i[0], i], A, J), A[J[0], J])
    same(run(lambda x, i: x.at[i].add(1.0), A[:, 0, 0], I), A[:, 0, 0] + np.array([1, 0, 2, 0, 0.0]))


def test_set_subtensor_is_the_copy_changed():
    x = symbol(A)
    f = rs.function([x], [rs.set_subtensor(x[1:, 0], 5), rs.inc_subtensor(x[[0, 0]], 1.0)])
    first, second = A.copy(), A.copy()
    first[1:, 0] = 5
    second[0] += 2
    before = A.copy()
    same(f(A), [first, second])
    same(A, before)


def test_take():
    for axis in (None, 0, 1, -1):
        same(run(lambda x, axis=axis: rs.take(x, J % 3, axis), A), np.take(A, J % 3, axis))
    order = np.argsort(-A, axis=1)
    same(run(lambda x, i: rs.take_along_axis(x, i, 1), A, order), np.take_along_axis(A, order, 1))


def test_diagonals():
    for offset in (-1, 0, 2):
        same(run(lambda x, k=offset: x.diagonal(k), A[0]), A[0].diagonal(offset))
        same(run(lambda x, k=offset: rs.diagonal(x, k, 0, 2), A), np.diagonal(A, offset, 0, 2))
        for extents in (A.shape, (None, *A.shape[1:]), (*A.shape[:2], None), (None, None, None)):
            x = rs.tensor("float64", extents)
            same(rs.function([x], rs.diagonal(x, offset, 0, 2))(A), np.diagonal(A, offset, 0, 2))


def test_nonzero():
    same(run(lambda m: m.nonzero(), MASK2), MASK2.nonzero())
    same(run(lambda x: rs.where(x > 30), A), np.where(A > 30))


@pytest.mark.parametrize(
    ("key", "word"),
    [
        (np.s_[0, 0, 0, 0], "4 indices for 3 axes"),
        (np.s_[..., ...], "only one"),
        (np.s_[1.5], "integer"),
        (np.s_["a"], "integer"),
        (np.s_[np.array([1.0])], "integers or truth values"),
        (np.s_[::0], "cannot be 0"),
    ],
)
def test_unfit_indices(key, word):
    with pytest.raises(IndexError, match=word):
        symbol(A)[key]


def test_unsupported_indices():
    with pytest.raises(NotImplementedError, match="truth value"):
        symbol(A)[True]
    with pytest.raises(NotImplementedError, match="step of a slice"):
        symbol(A)[:: rs.iscalar()]


def test_out_of_range():
    with pytest.raises(IndexError, match="out of range"):
        run(lambda x, i: x[i], A, np.int64(5))
    with pytest.raises(IndexError):
        run(lambda x, i: x[i], A, np.array([0, -6]))
    with pytest.raises(IndexError):
        run(lambda x: x[7], A, known=True)


def test_mask_of_another_shape():
    with pytest.raises(IndexError, match="mask"):
        run(lambda x: x[np.array([True, False])], A, known=True)
    with pytest.raises(rs.RscanError, match="mask"):
        run(lambda x, m: x[m], A, np.array([True, False]))


def test_writing_keeps_the_dtype():
    x = rs.ivector("x")
    with pytest.raises(TypeError, match="cannot be written"):
        x.at[0].set(1.5)
    assert rs.fvector().at[0].set(np.float64(1.5)).dtype == "float32"
    assert rs.fvector().at[0].add(1).dtype == "float32"
    with pytest.raises(TypeError, match="in place"):
        x[0] = 1


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int64", "float32"])
def test_numbers_are_written_in_the_dtype_of_the_array(dtype):
    x = rs.tensor(dtype, (None,))
    written = [x.at[1].set(7), x.at[1].add(True), *([x.at[0].set(1.5)] if dtype == "float32" else [])]
    assert all(y.dtype == dtype for y in written)
    got = rs.function([x], written)(np.array([1, 2], dtype))
    assert [y.tolist() for y in got[:2]] == [[1, 7], [1, 3]] and (dtype != "float32" or got[2].tolist() == [1.5, 2])
    if dtype != "float32":
        with pytest.raises(TypeError, match="cannot be written"):
            x.at[0].set(1.5)
