"""States of which a step writes a part: one row of memory, whatever else reads it."""

import math

import numpy as np
import pytest

import rscan as rs

N = 6


def run(step, init, sequences, n_outputs=1, **options):
    """The last row of the first output, and all rows of the others."""
    outputs, _ = rs.scan(step, sequences=sequences, outputs_info=init, **options)
    outputs = outputs if isinstance(outputs, list) else [outputs]
    return [outputs[0][-1], *outputs[1:n_outputs]]


@pytest.fixture
def xs():
    return np.random.default_rng(3).normal(size=9)


def expected(xs, update, width=N):
    buf = np.zeros(width)
    for i, x in enumerate(xs):
        update(buf, i, x)
    return buf


def check(xs, step, update, sequences=None, width=N):
    x, b0 = rs.dvector("x"), rs.dvector("b0")
    (last,) = run(step, [b0], [rs.arange(x.shape[0]), x] if sequences is None else sequences(x))
    f = rs.function([x, b0], last)
    init = np.zeros(width)
    np.testing.assert_array_equal(f(xs, init), expected(xs, update, width))
    assert not init.any(), "the caller's array"
    return f


def test_a_row_is_set(xs):
    def update(buf, i, x):
        buf[i % N] = x

    check(xs, lambda i, x, buf: buf.at[i % N].set(x), update)


def test_what_is_read_is_read_before_it_is_written(xs):
    def step(i, x, buf):
        new = buf.at[i % N].set(x + buf[(i + 1) % N])
        return new, buf[i % N], new[i % N], buf.sum()

    x = rs.dvector("x")
    init = [rs.zeros(N), None, None, None]
    outs = run(step, init, [rs.arange(x.shape[0]), x], 4)
    buf, olds, news, sums = np.zeros(N), [], [], []
    for i, value in enumerate(xs):
        olds.append(buf[i % N])
        sums.append(buf.sum())
        buf[i % N] = value + buf[(i + 1) % N]
        news.append(buf[i % N])
    for got, want in zip(rs.function([x], outs)(xs), [buf, olds, news, sums], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-13)


def test_what_needs_the_new_row_and_the_old_one_copies(xs):
    def step(i, x, buf):
        new = buf.at[i % N].set(x)
        return new, (buf * new[0]).sum()

    x = rs.dvector("x")
    outs = run(step, [rs.zeros(N), None], [rs.arange(x.shape[0]), x], 2)
    f = rs.function([x], outs)
    buf, sums = np.zeros(N), []
    for i, value in enumerate(xs):
        old = buf.copy()
        buf[i % N] = value
        sums.append((old * buf[0]).sum())
    got = f(xs)
    np.testing.assert_array_equal(got[0], buf)
    np.testing.assert_allclose(got[1], sums, rtol=1e-13)


@pytest.mark.parametrize("shape", [lambda v: v.reshape((2, 3)), lambda v: v[None], lambda v: v.reshape((2, 3)).T])
def test_what_needs_another_shape_of_the_old_row_and_the_new_one_copies(xs, shape):
    def step(i, x, buf):
        seen = shape(buf)
        new = buf.at[i % N].set(x)
        return new, (seen * new[0]).sum(), seen[0].sum() + new[1]

    x = rs.dvector("x")
    got = rs.function([x], run(step, [rs.zeros(N), None, None], [rs.arange(x.shape[0]), x], 3))(xs)
    buf, sums, firsts = np.zeros(N), [], []
    for i, value in enumerate(xs):
        old = shape(buf.copy())
        buf[i % N] = value
        sums.append((old * buf[0]).sum())
        firsts.append(old[0].sum() + buf[1])
    for a, b in zip(got, [buf, sums, firsts], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)


def test_the_old_row_as_an_output(xs):
    x = rs.dvector("x")
    outs = run(lambda i, v, buf: (buf.at[i % N].set(v), buf), [rs.zeros(N), None], [rs.arange(x.shape[0]), x], 2)
    last, rows = rs.function([x], outs)(xs)
    buf = np.zeros(N)
    for i, value in enumerate(xs):
        np.testing.assert_array_equal(rows[i], buf)
        buf[i % N] = value
    np.testing.assert_array_equal(last, buf)


def test_written_with_a_view_of_itself(xs):
    def update(buf, i, x):
        buf[1:3] = buf[::-1][1:3] + x
        buf[:3] = buf.reshape(2, 3)[1].copy()

    check(xs, lambda i, x, buf: (b := buf.at[1:3].set(buf[::-1][1:3] + x)).at[:3].set(b.reshape((2, 3))[1]), update)


ORDER = np.array([2, 0, 1, 5, 5, 3, 9, 8, 8, 11, 7, 10])

# Places that the step's number decides on are written out in one kernel for few elements alone: for others the step is a list of parts, and
# may write in place. Six elements are few, twelve are not; m is how many.
OF_ITSELF = {
    "reversed": lambda b, i, at, m: at(b)[::-1].set(b),
    "in another order": lambda b, i, at, m: at(b)[ORDER[:m]].set(b),
    "in an order of the step": lambda b, i, at, m: at(b)[(ORDER[:m] + i) % m].set(b),
    "added in an order of the step": lambda b, i, at, m: at(b)[(ORDER[:m] + i) % m].add(b),
    "from its end, under another shape": lambda b, i, at, m: at(b)[(m - 1 - np.arange(m) + i) % m].set(
        b.reshape((2, m // 2, *b.shape[1:])).reshape(b.shape)
    ),
    "shifted": lambda b, i, at, m: at(b)[1:].set(b[:-1]),
    "two rows swapped": lambda b, i, at, m: at(at(b)[i % m].set(b[4]))[4].set(b[i % m]),
}


class _At:
    """`.at` of NumPy arrays, as the manual describes it: rows are read before they are written, and the last one of a place counts."""

    def __init__(self, array):
        self.array = array

    def __getitem__(self, index):
        self.index = index
        return self

    def set(self, value):
        new = self.array.copy()
        new[self.index] = np.copy(value)
        return new

    def add(self, value):
        new = self.array.copy()
        np.add.at(new, self.index, np.copy(value))
        return new


@pytest.mark.parametrize("how", OF_ITSELF)
@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize(("m", "row"), [(6, ()), (6, (150,)), (12, (150,))], ids=["numbers", "rows", "more rows"])
@pytest.mark.usefixtures("chosen_engine")
def test_written_over_with_what_it_holds(how, n, m, row):
    step, b0, steps = OF_ITSELF[how], rs.tensor("float64", (None,) * (1 + len(row)), "b0"), rs.lscalar("n")
    (last,) = run(lambda i, b: step(b, i, lambda x: x.at, m), [b0], [rs.arange(steps)])
    start = np.arange(1.0, 1 + m * math.prod(row)).reshape(m, *row)
    want = start
    for i in range(n):
        want = step(want, i, _At, m)
    f = rs.function([b0, steps], last)
    np.testing.assert_array_equal(f(start, n), want)
    if "an order of the step" in how and m == 12:
        (variant,) = f.explain().loops[0].variants
        assert variant.copies, "what is written over is read meanwhile"


def test_chains_of_writes(xs):
    def update(buf, i, x):
        buf[i % N] = x
        buf[(2 * i) % N] += buf[i % N] * x
        buf[-1] -= 1

    def step(i, x, buf):
        one = buf.at[i % N].set(x)
        two = one.at[(2 * i) % N].add(one[i % N] * x)
        return two.at[-1].add(-1.0)

    check(xs, step, update)


def test_index_arrays(xs):
    def update(buf, i, x):
        buf[[i % N, (i + 2) % N]] += [x, 2 * x]

    def step(i, x, buf):
        return buf.at[rs.stack([i % N, (i + 2) % N])].add(rs.stack([x, 2 * x]))

    check(xs, step, update)


def test_rows_of_a_matrix(xs):
    m = rs.dmatrix("m")
    last, _ = rs.scan(lambda i, table: table.at[i % 3, 1:].set(table[(i + 1) % 3, :-1] + i), sequences=rs.arange(7), outputs_info=m)
    start = np.arange(12.0).reshape(3, 4)
    want = start.copy()
    for i in range(7):
        want[i % 3, 1:] = want[(i + 1) % 3, :-1] + i
    np.testing.assert_array_equal(rs.function([m], last[-1])(start), want)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "int32", "float32", "float64"])
def test_every_dtype(dtype):
    b = rs.vector("b", dtype=dtype)
    last, _ = rs.scan(lambda i, buf: buf.at[i % 4].set(buf[(i + 1) % 4]), sequences=rs.arange(5), outputs_info=b)
    start = np.array([0, 1, 1, 0]).astype(dtype)
    want = start.copy()
    for i in range(5):
        want[i % 4] = want[(i + 1) % 4]
    got = rs.function([b], last[-1])(start)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


def test_until_and_no_steps(xs):
    x, n = rs.dvector("x"), rs.lscalar("n")
    bufs, _ = rs.scan(
        lambda i, v, buf: (buf.at[i % N].set(v), {}, rs.until(i >= 4)),
        sequences=[rs.arange(n), x],
        outputs_info=[rs.zeros(N)],
        n_steps=n,
    )
    f = rs.function([x, n], bufs[-1:])
    np.testing.assert_array_equal(f(xs, 9), [[*xs[:5], 0]])
    assert f(xs, 0).shape == (0, N)


def test_an_index_that_is_out_of_range_is_an_error(xs):
    x = rs.dvector("x")
    last, _ = rs.scan(lambda i, v, buf: buf.at[i].set(v), sequences=[rs.arange(x.shape[0]), x], outputs_info=rs.zeros(N))
    with pytest.raises(rs.RscanIndexError, match=r"index 6 is out of range for axis 0 with extent 6"):
        rs.function([x], last[-1])(xs)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_gradients(n):
    x, a = rs.dvector("x"), rs.dscalar("a")

    def step(i, v, h, buf):
        h = a * h + rs.tanh(buf[i // 2]) * v
        return h, buf.at[i].set(h * v).at[0].add(a * buf[-1])

    (h, buf), _ = rs.scan(step, sequences=[rs.arange(x.shape[0]), x], outputs_info=[1.0, rs.ones(x.shape[0])])
    cost = (buf[-1] ** 2).sum() + h[-1]
    f = rs.function([x, a], [cost, *rs.grad(cost, [x, a])])
    values = np.random.default_rng(n).normal(size=n)
    _, dx, da = f(values, 0.7)
    eps = 1e-6
    for k in range(n):
        up, down = values.copy(), values.copy()
        up[k] += eps
        down[k] -= eps
        assert dx[k] == pytest.approx((f(up, 0.7)[0] - f(down, 0.7)[0]) / (2 * eps), rel=1e-6, abs=1e-8)
    assert da == pytest.approx((f(values, 0.7 + eps)[0] - f(values, 0.7 - eps)[0]) / (2 * eps), rel=1e-6, abs=1e-8)


def test_a_gradient_does_not_keep_the_buffers_of_all_steps(xs):
    x, a = rs.dvector("x"), rs.dscalar("a")

    def step(i, v, buf):
        one = buf.at[i].set(a * buf[rs.maximum(i - 3, 0)] + v)
        return one.at[0].add(one[i] * buf[1])

    buf, _ = rs.scan(step, sequences=[rs.arange(x.shape[0]), x], outputs_info=rs.zeros(x.shape[0]), name="recall")
    f = rs.function([x, a], rs.grad((buf[-1] ** 2).sum(), [x, a]))
    g = rs.function([x, a], rs.grad((buf[-1] ** 2).sum(), [x, a]), excluding=["scan_residuals"])
    for got, want in zip(f(xs, 0.3), g(xs, 0.3), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-13)
    forward = next(loop for loop in f.explain().loops if loop.name == "recall")
    assert next(state.keeps for state in forward.states if state.name == "buf") == 1
    assert [variant.copies for loop in f.explain().loops for variant in loop.variants] == [[], []]


@pytest.mark.usefixtures("chosen_engine")
def test_only_rows_that_are_copied_are_listed(xs):
    def copies(step, n=N):
        x = rs.dvector("x")
        last = run(step, [rs.zeros(n)], [rs.arange(x.shape[0]), x])
        f = rs.function([x], last)
        f(xs)
        return [what for loop in f.explain().loops for variant in loop.variants for what in variant.copies]

    assert copies(lambda i, v, buf: buf.at[i % 4 : i % 4 + 2].set(rs.stack([v, v * 2]))) == []
    assert copies(lambda i, v, buf: buf.at[i % 4 : i % 4 + 2].set(rs.flip(buf[:2], 0))) == []
    assert copies(lambda i, v, buf: rs.flip(buf, 0).at[i % N].set(v), 900) == []
    same = rs.shared(np.zeros(900))
    assert copies(lambda i, v, buf: same.at[i % N].set(v + buf[0]), 900) == [("a row of which a part is written", 8 * 900)]


@pytest.mark.parametrize(
    "written",
    [lambda b: b.T, lambda b: rs.flip(b, 0), lambda b: b.reshape((3, 3)).T, lambda b: b[::-1].T, lambda b: b.T + b],
    ids=["turned", "flipped", "reshaped", "both", "a sum"],
)
def test_a_square_is_written_over_with_what_it_was(xs, written):
    x, b0 = rs.dvector("x"), rs.dmatrix("b0")
    last = run(lambda v, b: b.at[0:3].set(written(b)).at[0, 1].add(v), [b0], x)
    other = run(lambda v, b: b.at[:3, 0:].add(written(b)), [b0], x)
    got = rs.function([x, b0], [last[0], other[0]])(xs[:4], np.arange(9.0).reshape(3, 3))
    one, two = np.arange(9.0).reshape(3, 3), np.arange(9.0).reshape(3, 3)
    which = rs.function([b0], written(b0))
    for v in xs[:4]:
        one = which(one)
        one[0, 1] += v
        two = two + which(two)
    np.testing.assert_allclose(got[0], one, rtol=1e-13)
    np.testing.assert_allclose(got[1], two, rtol=1e-13)
