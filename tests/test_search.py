"""Searches, counts, interpolation and padding give what NumPy's give, and their gradients agree with differences."""

import numpy as np
import pytest
from helpers import DTYPES, like_numpy, run, same, symbol

import rscan as rs

NAN, INF = np.nan, np.inf
TABLE = np.array([-1.0, 0.0, 0.0, 2.5, INF, NAN, NAN])
POINTS = np.array([[-2.0, -1.0, -0.0, 1.0], [2.5, 3.0, INF, NAN]])


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(side):
    like_numpy(lambda m, a, v: m.searchsorted(a, v, side), TABLE, POINTS)
    like_numpy(lambda m, a, v: m.searchsorted(a, v, side=side), TABLE[:1], POINTS[0])
    like_numpy(lambda m, a, v: m.searchsorted(a, v, side=side), TABLE[:0], POINTS[0])
    like_numpy(lambda m, a, v: m.searchsorted(a, v, side=side), TABLE, POINTS[:0])
    like_numpy(lambda m, a: m.searchsorted(a, 0.0, side), TABLE)
    order = np.array([2, 0, 1])
    like_numpy(lambda m, a, v, i: m.searchsorted(a, v, side, i), np.array([5, 7, 1]), np.arange(9), order)
    for dtype in DTYPES:
        a = np.sort(np.array([0, 1, 1, 3]).astype(dtype))
        like_numpy(lambda m, a, v: m.searchsorted(a, v, side), a, np.arange(5).astype(dtype))
        like_numpy(lambda m, a, v: m.searchsorted(a, v, side), a, np.array([-0.5, 0.5, 1, 9]))
    rng = np.random.default_rng(1)
    a, v = np.sort(rng.integers(0, 300, 500)), rng.integers(-5, 310, 700)
    like_numpy(lambda m, a, v: m.searchsorted(a, v, side), a, v)
    like_numpy(lambda m, a, v: m.searchsorted(a, v, side), a, np.sort(v))


def test_numpys_own_functions_take_variables():
    x = rs.vector("x")
    same(rs.function([x], np.searchsorted(x, 0.5))([0.0, 1.0]), np.array(1))


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("bins", [[0.0, 1.0, 2.5], [2.5, 1.0, 0.0], [1.0], [], [0.0, 0.0, 3.0], [3.0, 3.0]])
def test_digitize(right, bins):
    bins = np.array(bins)
    like_numpy(lambda m, x, b: m.digitize(x, b, right), POINTS, bins)
    like_numpy(lambda m, x: m.digitize(x, bins, right), POINTS)


def test_interp():
    xp, fp = np.array([0.0, 1.0, 3.0, 3.5]), np.array([0.5, 2.0, -1.0, 4.0])
    x = np.array([-1.0, 0.0, 0.25, 1.0, 2.9, 3.0, 3.5, 7.0, NAN, INF, -INF])
    like_numpy(lambda m, x, xp, fp: m.interp(x, xp, fp), x, xp, fp)
    like_numpy(lambda m, x, xp, fp: m.interp(x, xp, fp, left=-9.0, right=9.0), x, xp, fp)
    like_numpy(lambda m, x, xp, fp: m.interp(x, xp, fp, period=4.0), x[:8], xp, fp)
    like_numpy(lambda m, x, xp, fp: m.interp(x, xp, fp, period=2.0), x[:8], xp[::-1].copy(), fp)
    like_numpy(lambda m, x, xp, fp: m.interp(x, xp, fp), x[:-3], xp[:1], fp[:1])
    like_numpy(lambda m, x, xp, fp: m.interp(x, xp, fp), np.arange(-2, 9), np.array([0, 2, 6]), np.array([1, -3, 4]))
    like_numpy(lambda m, x, xp, fp: m.interp(x, xp, fp), x[:0], xp, fp)
    rs.verify_grad(lambda x, xp, fp: rs.interp(x, xp, fp), [np.array([-0.5, 0.25, 1.7, 3.2, 5.0]), xp, fp])


@pytest.mark.parametrize("name", ["max", "min"])
def test_running_extremes(name):
    ours, numpys = getattr(rs, f"cum{name}"), getattr(np, f"{name}imum").accumulate
    for dtype in DTYPES:
        x = np.array([[2, 0, 1], [0, 3, 3]]).astype(dtype)
        for axis in (0, 1):
            same(run(lambda v, axis=axis: ours(v, axis), x), numpys(x, axis=axis))
    x = np.array([1.0, -0.0, 0.0, 3.0, NAN, 5.0, INF])
    same(run(ours, x), numpys(x))
    same(run(ours, x[:0]), x[:0])
    same(run(ours, x[:1]), x[:1])
    same(run(ours, POINTS), numpys(POINTS.ravel()))
    rng = np.random.default_rng(2)
    rs.verify_grad(lambda v: ours(v, 1) ** 2, [rng.standard_normal((3, 5))])
    x = rs.vector("x")
    slope = rs.function([x], rs.grad((ours(x) * [1.0, 2.0, 4.0, 8.0]).sum(), x))
    np.testing.assert_array_equal(slope([1.0, 1.0, 1.0, 1.0]), [15, 0, 0, 0])


def test_top_k():
    x = np.array([[3.0, NAN, 1.0, 3.0, -0.0], [0.0, -1.0, 5.0, 5.0, INF]])
    values, positions = run(lambda v: rs.top_k(v, 3), x)
    np.testing.assert_array_equal(positions, [[1, 0, 3], [4, 2, 3]])
    np.testing.assert_array_equal(values, [[NAN, 3, 3], [INF, 5, 5]])
    for axis, k in ((0, 2), (1, 0), (-1, 5), (0, 0)):
        values, positions = run(lambda v, k=k, axis=axis: rs.top_k(v, k, axis), x)
        order = np.argsort(np.where(np.isnan(x), -INF, -x), axis=axis, kind="stable").take(range(k), axis)
        same(positions, order)
        same(values, np.take_along_axis(x, order, axis))
    same(run(lambda v: rs.top_k(v, 2)[0], np.array([3, 1, 3], "uint8")), np.array([3, 3], "uint8"))
    rng = np.random.default_rng(3)
    rs.verify_grad(lambda v: rs.top_k(v, 2, axis=0)[0] ** 2, [rng.standard_normal((4, 3))])
    with pytest.raises(rs.RscanValueError, match="top_k of 4 elements of 3"):
        rs.top_k(symbol(np.zeros(3), known=True), 4)
    with pytest.raises(rs.RscanError, match="fewer than 4 elements"):
        run(lambda v: rs.top_k(v, 4)[0], np.zeros(3))


def test_one_hot():
    x = np.array([[0, 2], [3, -1]])
    same(run(lambda v: rs.one_hot(v, 3), x), np.array([[[1.0, 0, 0], [0, 0, 1]], [[0, 0, 0], [0, 0, 0]]]))
    same(run(lambda v: rs.one_hot(v, 3, "int8", axis=0), x[0]), np.array([[1, 0], [0, 0], [0, 1]], "int8"))
    same(run(lambda v: rs.one_hot(v, 0), x[0]), np.zeros((2, 0)))
    same(run(lambda v: rs.one_hot(v, 2, bool), np.array(1)), np.array([False, True]))


def test_counts():
    x = np.array([1, 4, 1, 0])
    for more in ({}, {"minlength": 3}, {"minlength": 9}):
        like_numpy(lambda m, v, more=more: m.bincount(v, **more), x)
        like_numpy(lambda m, v, more=more: m.bincount(v.astype("uint8"), **more), x)
    like_numpy(lambda m, v, w: m.bincount(v, w), x, np.array([0.5, 1.0, 2.0, -1.0]))
    like_numpy(lambda m, v: m.bincount(v, minlength=2), x[:0])
    same(run(lambda v: rs.bincount(v, length=6), x), np.bincount(x, minlength=6))
    same(run(lambda v, w: rs.bincount(v, w, length=5), x, np.array([0.5, 1.0, 2.0, -1.0])), np.array([-1.0, 2.5, 0, 0, 1.0]))
    same(run(lambda v: rs.bincount(v, length=2), x[:0]), np.zeros(2, "int64"))
    with pytest.raises(rs.RscanIndexError):
        run(lambda v: rs.bincount(v, length=4), x)
    step = lambda row, n: n + rs.bincount((row + n[0]) % 5, length=5)
    rows = rs.compile(lambda x: rs.loop(step, over=x, init=rs.zeros(5, "int64")))
    given, counts = np.arange(60).reshape(6, 10) % 7, np.zeros(5, "int64")
    for row, found in zip(given, rows(given), strict=True):
        counts = counts + np.bincount((row + counts[0]) % 5, minlength=5)
        np.testing.assert_array_equal(found, counts)
    assert "eval" not in str(rows.explain()), rows.explain()
    rs.verify_grad(lambda w: rs.bincount(x, w) ** 2, [np.array([0.5, 1.0, 2.0, -1.0])])
    with pytest.raises(rs.RscanError, match="negative"):
        run(rs.bincount, np.array([1, -1]))
    with pytest.raises(rs.RscanTypeError, match="vector of integers"):
        rs.bincount(rs.vector("x"))

    rows, ids = np.arange(8.0).reshape(4, 2), np.array([2, 0, 2, 3])
    expected = np.zeros((5, 2))
    np.add.at(expected, ids, rows)
    same(run(lambda r, i: rs.segment_sum(r, i, 5), rows, ids), expected)
    same(run(lambda r, i: rs.segment_sum(r, i, 2), rows[:0], ids[:0]), np.zeros((2, 2)))
    rs.verify_grad(lambda r: rs.segment_sum(r, ids, 5) ** 2, [rows])
    with pytest.raises(rs.RscanIndexError):
        run(lambda r, i: rs.segment_sum(r, i, 3), rows, ids)


def test_segments():
    rows, ids = np.array([[2.0, -1.0], [5.0, 3.0], [4.0, np.nan], [-3.0, 0.5]]), np.array([2, 0, 2, 3])
    for ours, theirs, start in (
        (rs.segment_max, np.maximum, -np.inf), (rs.segment_min, np.minimum, np.inf), (rs.segment_prod, np.multiply, 1.0),
    ):  # fmt: skip
        for given in (rows, rows[:, 0], rows[:0], rows[:1]):
            expected = np.full((5, *given.shape[1:]), start)
            theirs.at(expected, ids[: len(given)], given)
            same(run(lambda r, i, f=ours: f(r, i, 5), given, ids[: len(given)]), expected)
            same(run(lambda r, i, n, f=ours: f(r, i, n), given, ids[: len(given)], np.array(5)), expected)
        rs.verify_grad(lambda r, f=ours: rs.where(rs.isfinite(f(r, ids, 5)), f(r, ids, 5), 0.0) ** 2, [rows[:, 0]])
    for dtype in ("int8", "uint16", "int64"):
        least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
        same(run(lambda r: rs.segment_max(r, [1, 1], 2), np.array([3, 4], dtype)), np.array([least, 4], dtype))
        same(run(lambda r: rs.segment_min(r, [1, 1], 2), np.array([3, 4], dtype)), np.array([most, 3], dtype))
    same(run(lambda r: rs.segment_max(r, [1, 1], 2), np.array([True, False])), np.array([False, True]))
    for f in (rs.segment_sum, rs.segment_max, rs.segment_min, rs.segment_prod):
        with pytest.raises(rs.errors.AssertionFailedError, match="a number of a segment is negative"):
            run(lambda r, i, f=f: f(r, i, 3), rows, np.array([0, 0, -1, 1]))
        with pytest.raises(rs.RscanIndexError):
            run(lambda r, i, f=f: f(r, i, 3), rows, ids)
        with pytest.raises(rs.RscanTypeError, match="takes an integer per row"):
            f(rs.vector("x"), rs.vector("i"), 3)


def test_interp_beside_what_is_not_finite():
    """A point gives its own value, whatever its neighbour's is."""
    at = np.array([0.0, 0.5, 1.0, 1.5, 2.0, -1.0, 3.0, np.nan])
    nan, inf = np.nan, np.inf
    for values in ([1.0, nan, 3.0], [1.0, inf, 3.0], [inf, inf, 3.0], [-inf, 0.0, inf], [nan, 1.0, 2.0], [1.0, 2.0, nan]):
        like_numpy(lambda m, x, xp, fp: m.interp(x, xp, fp), at, np.array([0.0, 1.0, 2.0]), np.array(values))
    rs.verify_grad(lambda x, fp: rs.interp(x, [0.0, 1.0, 2.0], fp), [np.array([0.3, 1.7]), np.array([1.0, 4.0, -2.0])])
    knots = rs.grad(lambda x: rs.sum(rs.interp(x, [0.0, 1.0, 2.0], [1.0, 4.0, -2.0])))(np.array([0.0, 1.0, 2.0]))
    np.testing.assert_array_equal(knots, [3.0, -6.0, -6.0])


WIDTHS = [0, 1, (2, 0), ((1, 2), (0, 3)), [(0, 0), (0, 1)], np.array([2, 1])]


@pytest.mark.parametrize("width", WIDTHS, ids=str)
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
def test_pad(width, mode):
    for x in (np.arange(6.0).reshape(2, 3), np.array([[7]], "int8"), np.array([[True, False]])):
        like_numpy(lambda m, v: m.pad(v, width, mode), x)
    wide = ((5, 7), (4, 9))
    like_numpy(lambda m, v: m.pad(v, wide, mode), np.arange(6.0).reshape(2, 3))


def test_pad_with_values():
    x = np.arange(6.0).reshape(2, 3)
    for values in (1.5, (1, 2), ((1, 2), (3, NAN))):
        like_numpy(lambda m, v, values=values: m.pad(v, ((1, 2), (0, 1)), constant_values=values), x)
    like_numpy(lambda m, v: m.pad(v, 1, constant_values=2.7), np.array([1, 2]))
    like_numpy(lambda m, v: m.pad(v, 2), np.zeros((0, 2)))
    n, v = rs.iscalar("n"), rs.vector("v")
    same(rs.function([v, n], rs.pad(v, (n, 0)))([1.0, 2.0], 2), np.array([0.0, 0.0, 1.0, 2.0]))
    for mode in ("constant", "edge", "reflect", "symmetric", "wrap"):
        rs.verify_grad(lambda v, mode=mode: rs.pad(v, ((2, 1), (0, 1)), mode) ** 2, [x + 0.5])
    for bad in (-1, (1, 2, 3), ((1, 2), (3, 4), (5, 6))):
        with pytest.raises(rs.RscanError, match="pad_width"):
            rs.pad(symbol(x), bad)
    with pytest.raises(rs.RscanValueError, match="not 'mirror'"):
        rs.pad(symbol(x), 1, "mirror")


def test_a_particle_filter():
    """Weights, systematic resampling by a search, moves: the loop and its written-out form agree."""
    rng = np.random.default_rng(4)
    steps, n = 12, 50
    y, noise, u = rng.standard_normal(steps), rng.standard_normal((steps, n)), rng.random(steps)

    def step(m, y_t, e_t, u_t, x):
        weights = m.exp(-0.5 * (y_t - x) ** 2)
        total = m.cumsum(weights)
        places = m.searchsorted(total / total[-1], (m.arange(n) + u_t) / n)
        return 0.9 * x[m.minimum(places, n - 1)] + 0.5 * e_t

    inputs = [rs.vector("y"), rs.matrix("e"), rs.vector("u")]
    rows, _ = rs.scan(lambda *args: step(rs, *args), sequences=inputs, outputs_info=rs.zeros(n))
    x = np.zeros(n)
    for t in range(steps):
        x = step(np, y[t], noise[t], u[t], x)
    np.testing.assert_allclose(rs.function(inputs, rows)(y, noise, u)[-1], x, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int8", "bool", "uint8"])
def test_some_of_an_order_are_those_of_all(dtype):
    """The first or last positions, of equal elements and NaN too, however many there are."""
    random = np.random.default_rng(0)
    for shape, axis in (((7,), 0), ((3, 50), 1), ((50, 3), 0), ((2, 3, 5), 1), ((300,), 0), ((1,), 0), ((0,), 0), ((2, 1000), 1)):
        a = random.integers(0, 4 if np.prod(shape) < 1000 else 100, size=shape).astype(dtype)
        if dtype.startswith("float") and a.size:
            a.flat[0] = np.nan
            a.flat[a.size // 2] = -0.0
        x, order = rs.tensor(dtype, [None] * len(shape)), np.argsort(a, axis, kind="stable")
        for k in (1, 2, 3, 40, 500):
            slices = [(slice(None),) * axis + (s,) for s in (slice(None, k), slice(-k, None))]
            ours = [y[s] for y in (rs.argsort(x, axis), rs.flip(rs.argsort(x, axis), axis)) for s in slices]
            f = rs.function([x], ours)
            assert f.text(True).count("argtopk") == 2 and "argsort" not in f.text(True)
            for got, want in zip(f(a), [y[s] for y in (order, np.flip(order, axis)) for s in slices], strict=True):
                assert got.dtype == want.dtype
                np.testing.assert_array_equal(got, want)
