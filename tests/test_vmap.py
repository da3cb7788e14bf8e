"""`vmap`: rows of a function against the function of each row, in values, derivatives and errors."""

import dataclasses
import io

import numpy as np
import pytest

import rscan as rs

RNG = np.random.default_rng(5)
X = RNG.normal(size=(5, 4))
Y = RNG.normal(size=(3, 4))
W = RNG.normal(size=(4, 4)) / 2


def symbol(value):
    return rs.tensor(np.asarray(value).dtype.name, [None] * np.ndim(value), "x")


def each_row(f, args, axes):
    """The results of the function for each row, one after the other."""
    n = next(np.shape(a)[k] for a, k in zip(args, axes, strict=True) if k is not None)
    rows = []
    for i in range(n):
        own = [a if k is None else np.take(a, i, axis=k) for a, k in zip(args, axes, strict=True)]
        symbols = [symbol(a) for a in own]
        rows.append(rs.function(symbols, f(*symbols), on_unused_input="ignore")(*own))
    return np.stack(rows)


def check(f, args, axes=None, **options):
    axes = axes or (0,) * len(args)
    symbols = [symbol(a) for a in args]
    got = rs.function(symbols, rs.vmap(f, axes)(*symbols), on_unused_input="ignore")(*args)
    np.testing.assert_allclose(got, each_row(f, args, axes), rtol=1e-11, atol=1e-12, **options)


def steps(h0, w, n=5):
    h, _ = rs.scan(lambda h: rs.tanh(h @ w), outputs_info=h0, n_steps=n)
    return h


def doubling(a):
    """A loop that stops at a step of its own for each row."""
    h, _ = rs.scan(lambda h: (h * 1.5, rs.until(rs.sum(rs.abs(h)) > 20)), outputs_info=a, n_steps=60)
    return h


class TestValues:
    def test_defaults_are_no_arguments(self):
        def scaled(x, k=2.0):
            return x * k

        a = np.arange(3.0)
        np.testing.assert_array_equal(rs.compile(rs.vmap(scaled))(a), 2 * a)
        np.testing.assert_array_equal(rs.compile(rs.vmap(scaled, in_axes=(0,)))(a), 2 * a)
        np.testing.assert_array_equal(rs.compile(rs.vmap(scaled))(a, k=a), a * a)
        np.testing.assert_array_equal(rs.compile(rs.vmap(rs.grad(scaled)))(a), [2, 2, 2])

    def test_products(self):
        check(lambda a, w: a @ w, (X, W), (0, None))
        check(lambda w, a: w @ a, (W, X), (None, 0))
        check(lambda a, b: rs.dot(a, b), (X, X * 2))
        check(lambda a, w: rs.outer(a, w[0]), (X, W), (0, None))

    def test_elementwise_and_reductions(self):
        check(lambda a: rs.softmax(a) + rs.max(a) - rs.argmax(a), (X,))
        check(lambda a, b: rs.cumsum(a) * b, (X, RNG.normal(size=5)))

    def test_indices_of_each_row(self):
        at = np.array([0, 3, -1, 2, 1])
        check(lambda a, i: a[i] + a[::2].sum(), (X, at))
        check(lambda w, i: w[i], (W, at), (None, 0))
        check(lambda a, i: rs.set_subtensor(a[i], 7.0), (X, at))
        with pytest.raises(rs.RscanIndexError, match="out of range"):
            rs.eval(rs.vmap(lambda a, i: a[i])(X, at * 9))

    def test_linear_algebra(self):
        spd = np.stack([np.eye(3) * (k + 2) + 0.3 for k in range(5)])
        check(lambda m: rs.linalg.cholesky(m), (spd,))
        check(lambda m, b: rs.linalg.solve(m, b), (spd, X[:, :3]))
        check(lambda m, b: rs.linalg.solve(m, b), (spd[0], X[:, :3]), (None, 0))
        check(lambda m: rs.linalg.det(m) + rs.linalg.slogdet(m)[1], (spd,))

    def test_loops(self):
        check(steps, (X, W), (0, None))
        check(lambda a, w: steps(a, w)[-1], (X.T.copy(), W), (1, None))
        check(steps, (X[0], np.stack([W, W / 2, -W])), (None, 0))
        check(lambda xs: rs.scan(lambda x, h: rs.tanh(x + h), sequences=xs, outputs_info=0.0)[0], (X,))
        back = {"go_backwards": True}
        check(lambda xs: rs.scan(lambda x, h: x - h, sequences=xs, outputs_info=0.0, **back)[0], (X,))
        taps = {"initial": X[:2, 0], "taps": [-1, -2]}
        check(lambda x: rs.scan(lambda a, b: a + x * b, outputs_info=taps, n_steps=4)[0], (X[:, 1],))

    def test_rows_that_stop_on_their_own(self):
        check(lambda a: doubling(a)[-1], (X,))
        check(lambda a: doubling(a).shape[0], (X,))
        check(lambda a: rs.sum(doubling(a)), (X,))  # rows of different lengths: one after the other
        check(lambda a, n: steps(a, W, n)[-1], (X, np.array([2, 5, 1, 3, 4])))

    def test_loops_in_loops(self):
        check(lambda a: rs.scan(lambda h: steps(h, W, 2)[-1], outputs_info=a, n_steps=3)[0], (X,))
        check(lambda a: rs.scan(lambda q: rs.vmap(lambda p: p * q)(a), sequences=Y[:, 0])[0], (X,))

    def test_choice(self):
        check(lambda a: rs.ifelse(a[0] > 0, a * 2, a - 1), (X,))
        # Where the branch is not taken, the index is outside.
        at = np.array([9, 1, 9, 3, 0])
        check(lambda a, i: rs.ifelse(i < 4, a[i], 0.0), (X, at))
        # A choice in a branch of a choice, whose own condition is fit to be computed only where the branch is taken.
        check(lambda a, i: rs.ifelse(a[0] > 0, 1.0, rs.ifelse(i < 4, rs.ifelse(a[i] > 0, a[i], 7.0), 0.0)), (X, at))

    def test_no_rows(self):
        x = rs.matrix("x")
        assert rs.function([x], rs.vmap(lambda a: steps(a, W)[-1])(x))(np.zeros((0, 4))).shape == (0, 4)


class TestAxes:
    def test_nested(self):
        x, y = rs.matrix("x"), rs.matrix("y")
        table = rs.vmap(lambda a: rs.vmap(lambda b: rs.dot(a, b))(y))(x)
        np.testing.assert_allclose(rs.function([x, y], table)(X, Y), X @ Y.T)
        both = rs.vmap(rs.vmap(rs.dot, (None, 0)), (0, None))
        np.testing.assert_allclose(rs.function([x, y], both(x, y))(X, Y), X @ Y.T)

    def test_structures(self):
        @dataclasses.dataclass
        class Pair:
            a: object
            b: object

        f = rs.vmap(lambda d, p: {"sum": d["x"] @ p.a, "k": p.b}, ({"x": 1, "y": None}, Pair(None, 0)), {"sum": 0, "k": 0})
        out = f({"x": X.T, "y": W}, Pair(W, np.arange(5)))
        np.testing.assert_allclose(rs.eval(out["sum"]), X @ W)
        np.testing.assert_array_equal(rs.eval(out["k"]), np.arange(5))

    def test_out_axes(self):
        x = rs.as_variable(X)
        turned, fixed, spread = rs.vmap(lambda a: (a * 2, rs.as_variable(W).sum(), rs.as_variable(Y[0])), 0, (1, None, 0))(x)
        np.testing.assert_array_equal(rs.eval(turned), X.T * 2)
        np.testing.assert_allclose(rs.eval(fixed), W.sum(), rtol=1e-14)
        np.testing.assert_array_equal(rs.eval(spread), np.broadcast_to(Y[0], (5, 4)))
        np.testing.assert_array_equal(rs.eval(rs.vmap(lambda a: a[:, None], -1, -2)(X)), X[:, :, None])

    def test_names(self):
        np.testing.assert_array_equal(rs.eval(rs.vmap(lambda a, b: a + b, (None,))(1.0, b=X)), X + 1)

    def test_compiled(self):
        f = rs.compile(rs.vmap(lambda a, w: a @ w, (0, None)))
        np.testing.assert_allclose(f(X, W), X @ W)
        np.testing.assert_allclose(rs.eval(rs.vmap(rs.compile(lambda a: a * 2))(rs.as_variable(X))), X * 2)


class TestDerivatives:
    def test_vmap_of_gradient_and_gradient_of_vmap(self):
        def cost(a, w):
            return rs.sum(steps(a, w)[-1] ** 2)

        check(lambda a, w: rs.grad(cost(a, w), a), (X, W), (0, None))
        check(lambda a, w: rs.grad(cost(a, w), w), (X, W), (0, None))
        x, w = rs.matrix("x"), rs.matrix("w")
        total = rs.sum(rs.vmap(cost, (0, None))(x, w))
        got = rs.function([x, w], rs.grad(total, [x, w]))(X, W)
        one = rs.function([x, w], rs.grad(rs.sum(steps(x, w)[-1] ** 2), [x, w]))(X, W)
        for a, b in zip(got, one, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11)

    def test_of_higher_order(self):
        def slope(a):
            return rs.grad(rs.sum(rs.grad(rs.sum(rs.sin(steps(a, W, 3))), a) ** 2), a)

        check(slope, (X,))
        x = rs.matrix("x")
        total = rs.sum(rs.vmap(slope)(x) ** 2)
        rs.verify_grad(lambda v: rs.sum(rs.vmap(slope)(v) ** 2), [X[:2]])
        assert np.isfinite(rs.function([x], total)(X))

    def test_of_rows_that_stop_on_their_own(self):
        check(lambda a: rs.grad(rs.sum(doubling(a)[-1] ** 2), a), (X,))
        rs.verify_grad(lambda v: rs.sum(rs.vmap(lambda a: doubling(a)[-1])(v) ** 2), [X])

    def test_hessians_of_each_row(self):
        check(lambda a: rs.hessian(rs.sum(rs.tanh(W @ a) ** 2), a), (X,))
        check(lambda a: rs.jacobian(steps(a, W)[-1], a), (X,))


class TestRandom:
    def test_rows_draw_what_a_loop_over_rows_draws(self):
        x = rs.matrix("x")
        mapped, looped = rs.RandomStream(3), rs.RandomStream(3)
        a = rs.function([x], rs.vmap(lambda v: v + mapped.normal((4,)))(x))
        b = rs.function([x], rs.scan(lambda v: v + looped.normal((4,)), sequences=x)[0])
        for _ in range(2):
            np.testing.assert_array_equal(a(X), b(X))
        assert len(np.unique((a(X) - X).round(12))) == X.size

    def test_a_key_for_each_row(self):
        keys = np.stack([rs.eval(rs.random.fold_in(rs.random.key(1), k)) for k in range(3)])
        got = rs.eval(rs.vmap(lambda k: rs.random.uniform(k, (2,)))(keys))
        np.testing.assert_array_equal(got, [rs.eval(rs.random.uniform(k, (2,))) for k in keys])


class TestErrors:
    @pytest.mark.parametrize(
        ("call", "text"),
        [
            (lambda: rs.vmap(lambda a, b: a * b)(X, Y), "different numbers of rows"),
            (lambda: rs.vmap(lambda a: a, None)(X), "nothing is mapped over"),
            (lambda: rs.vmap(lambda a: a)(1.0), "has no axis 0"),
            (lambda: rs.vmap(lambda a: a, 2)(X), "has no axis 2"),
            (lambda: rs.vmap(lambda a: a, (0, 0))(X), "one for each of the 1 arguments"),
            (lambda: rs.vmap(lambda a: a[0], ((0, 0),))([X, X, X]), "does not have the structure"),
            (lambda: rs.vmap(lambda a: a, 0, None)(X), "differs from row to row"),
            (lambda: rs.vmap(lambda a: a, 0, 5)(X), "out_axes is 5"),
            (lambda: rs.vmap(lambda a: a, 0, (0, 0))(X), "structure of the result"),
        ],
    )
    def test_axes_that_do_not_fit(self, call, text):
        with pytest.raises(rs.ShapeError, match=text) as error:
            call()
        assert error.value.code == "E0128"

    def test_extents_that_are_known_at_the_call(self):
        u, v = rs.vector("u"), rs.vector("v")
        f = rs.function([u, v], rs.vmap(lambda a, b: a * b)(u, v))
        np.testing.assert_array_equal(f(np.ones(3), np.arange(3.0)), np.arange(3.0))
        with pytest.raises(rs.RscanError, match="different numbers of rows"):
            f(np.ones(3), np.ones(1))

    def test_rows_of_different_lengths(self):
        with pytest.raises(rs.RscanError, match="changes shape"):
            rs.eval(rs.vmap(doubling)(X))

    def test_updates(self):
        total = rs.shared(0.0, name="total")

        with pytest.raises(rs.RscanValueError) as error:
            rs.vmap(lambda x: rs.scan(lambda: (x + total, {total: total + x}), n_steps=2)[0])(rs.vector("x"))
        assert error.value.code == "E0129"

    def test_what_is_not_a_function(self):
        with pytest.raises(rs.RscanTypeError):
            rs.vmap(3)


class TestStops:
    """Rows that stop at steps of their own, of which the last values are wanted."""

    def last(self, a, n_steps=30):
        return rs.loop(lambda h: (h * 1.5, rs.until(rs.sum(rs.abs(h)) > 20)), init=a, n_steps=n_steps).last

    def test_the_last_of_each(self):
        check(self.last, (X,))
        check(lambda a: rs.loop(lambda t: (t + 0.25, rs.until(t > a)), init=0.5, n_steps=40).last, (X[:, 0],))
        check(lambda a: doubling(a)[-1], (X,))
        check(lambda a: doubling(a)[-1, 1:], (X,))

    def test_their_own_numbers_of_steps(self):
        counts = np.array([0, 3, 1, 7, 2])
        check(lambda a, n: rs.loop(lambda h: rs.tanh(h + 1), init=a, n_steps=n).last, (X, counts))
        squares = rs.vmap(rs.linalg.expm)(rs.constant(np.stack([k * np.eye(3) + 0.1 for k in (0.1, 30.0, 2.0)])))
        for k, got in zip((0.1, 30.0, 2.0), squares.eval(), strict=True):
            np.testing.assert_allclose(got, rs.linalg.expm(k * np.eye(3) + 0.1).eval(), rtol=1e-11)

    def test_no_row_of_no_steps_has_a_last_step(self):
        f = rs.compile(rs.vmap(lambda a, n: rs.loop(lambda h: h + 1, init=a, n_steps=n)[-1]))
        np.testing.assert_array_equal(f(np.zeros(2), np.array([1, 3])), [1, 3])
        with pytest.raises(rs.RscanError):
            f(np.zeros(2), np.array([1, 0]))
        g = rs.compile(rs.vmap(lambda a: rs.loop(lambda h: (h + 1, rs.until(h > 3)), init=a, n_steps=0)[-1]))
        with pytest.raises(rs.RscanError):
            g(np.zeros(2))

    def test_only_the_last_is_kept(self):
        f = rs.compile(rs.vmap(lambda a: self.last(a)))
        f(X)
        assert "returns all rows" not in str(f.explain(X))
        np.testing.assert_allclose(f(X), each_row(self.last, (X,), (0,)), rtol=1e-12)

    def test_the_last_of_what_is_no_state(self):
        """An output that no step reads: of each row the one that its own last step made."""

        def seen(a, n_steps=30):
            step = lambda h: (dict(h=h * 1.5, size=rs.sum(h * h), turned=h[::-1] - 1.0), rs.until(rs.sum(rs.abs(h)) > 20))
            out = rs.loop(step, init=dict(h=a), n_steps=n_steps)
            return out.size[-1] + out.turned[-1]

        check(seen, (X,))
        check(lambda a: rs.grad(rs.sum(seen(a) ** 2), a), (X,))
        f = rs.compile(lambda x: rs.grad(rs.sum(rs.vmap(seen)(x) ** 2), x))
        np.testing.assert_allclose(f(X), each_row(lambda a: rs.grad(rs.sum(seen(a) ** 2), a), (X,), (0,)), rtol=1e-11)
        step = lambda h: (dict(h=h * 1.5, size=rs.sum(h * h)), rs.until(rs.sum(h) > 20))
        scalar = lambda a: rs.loop(step, init=dict(h=a), n_steps=9).size[-1]
        f = rs.compile(lambda x: rs.grad(rs.sum(rs.vmap(scalar)(x) ** 2), x))
        f(X)
        assert "gather" not in f.text(optimised=True), "its rows are looked for"
        with pytest.raises(rs.RscanError) as error:
            rs.compile(rs.vmap(lambda a: seen(a, n_steps=0)))(X)
        with pytest.raises(rs.RscanError) as law:
            rs.compile(lambda a: seen(a, n_steps=0))(X[0])
        assert error.value.code == law.value.code

    def test_gradients(self):
        check(lambda a: rs.grad(rs.sum(self.last(a) ** 2), a), (X,))
        f = rs.compile(lambda x: rs.grad(rs.sum(rs.vmap(self.last)(x) ** 2), x))
        np.testing.assert_allclose(f(X), each_row(lambda a: rs.grad(rs.sum(self.last(a) ** 2), a), (X,), (0,)), rtol=1e-11)


class TestBranchesThatMayFail:
    """A branch is computed for all rows, and fails only where a row that takes it does."""

    A = np.stack([np.eye(3) * 2, np.zeros((3, 3)), np.eye(3) + 0.1, np.zeros((3, 3))])
    B = RNG.normal(size=(4, 3))

    @staticmethod
    def solved(a, b):
        return rs.ifelse(a[0, 0] > 0, rs.linalg.solve(a, b), b * 0.5)

    def test_rows_that_take_it(self):
        check(self.solved, (self.A, self.B))
        check(lambda a, b: rs.ifelse(a[0, 0] <= 0, b * 0.5, rs.linalg.solve(a, b)), (self.A, self.B))

    def test_no_row_and_every_row(self):
        for rows in (self.A[[1, 3]], self.A[[0, 2]], self.A[:1], self.A[1:2]):
            check(self.solved, (rows, self.B[: len(rows)]))

    def test_a_row_that_takes_it_fails(self):
        f = rs.compile(rs.vmap(lambda a, b: rs.ifelse(b[0] > 0, rs.linalg.solve(a, b), b)))
        b = np.abs(self.B)
        np.testing.assert_allclose(f(self.A, np.where(self.A[:, 0, :1] > 0, b, -b))[1], -b[1])
        with pytest.raises(rs.RscanError, match="singular"):
            f(self.A, b)

    def test_indices(self):
        at = np.array([0, 7, 2, -9, 3])
        check(lambda a, i: rs.ifelse((i >= 0) & (i < 4), a[i], rs.sum(a)), (X, at))

    def test_loops(self):
        def f(a, n):
            inner = lambda: rs.loop(lambda h: (h * 0.5, rs.until(rs.max(h) < 0.1)), init=a, n_steps=9).last
            return rs.ifelse(n > 2, inner() * n, a)

        check(f, (X, np.arange(5)))
        check(lambda a, n: rs.ifelse(n > 2, rs.loop(rs.sin, init=a, n_steps=n)[-1], a), (X, np.arange(5)))

    def test_nested(self):
        def f(a, i):
            return rs.ifelse(i < 4, rs.ifelse(i >= 0, a[i] + a[i - 1], a[0]), rs.ifelse(i < 9, a[i - 5], -a[1]))

        check(f, (X, np.array([3, -7, 5, 20, 0])))

    def test_gradients(self):
        def f(a, b):
            return rs.sum(self.solved(a, b) ** 2)

        check(lambda a, b: rs.grad(f(a, b), b), (self.A, self.B))
        both = rs.compile(lambda a, b: rs.grad(rs.sum(rs.vmap(f)(a, b)), [a, b]))(self.A, self.B)
        for got, wrt in zip(both, (0, 1), strict=True):
            np.testing.assert_allclose(got, each_row(lambda a, b: rs.grad(f(a, b), [a, b])[wrt], (self.A, self.B), (0, 0)), rtol=1e-11)  # noqa: B023

    def test_a_choice_in_a_branch_where_extents_are_told_by_the_call(self):
        """The loop in front of both choices stays one loop for all rows: it is in no loop over the rows, and no branch computes it anew."""

        def f(y, n):
            m = rs.loop(lambda y, m: y[0] * 0.1 + n * m, over=dict(y=rs.taps(y, -2, -1)), init=dict(m=0.0)).m
            inner = rs.ifelse(rs.sum(m) > 0, m * y[2:], rs.exp(m) + y[2:])
            return rs.ifelse(rs.any(m > 0.1), inner * n, m - y[2:])

        y, n = RNG.normal(size=(6, 9)), np.linspace(-1, 1, 6)
        check(f, (y, n))
        check(lambda y, n: rs.grad(rs.sum(f(y, n) ** 2), y), (y, n))
        both = rs.compile(rs.vmap(f))
        both(y, n)
        assert both.text(y, n).count("state m ") == 1

    def test_in_a_step(self):
        """As the step of a loop: one list, with neither calls of loops nor a loop over the rows where extents agree."""

        def path(target, growth):
            def month(growth, w, n):
                w = w * growth
                off = rs.any(rs.abs(w - target) > 0.2)
                left = rs.loop(lambda x: (1 - 0.1 * rs.sum(rs.abs(x * target - w)), rs.until(x < 0)), init=1.0, n_steps=5).last
                w, n = rs.ifelse(off, (target * left, n + 1), (w, n))
                return dict(w=w, n=n)

            out = rs.loop(month, over=growth, init=dict(w=target, n=0)).last
            return rs.concatenate([out.w, rs.cast(out.n, "float64")[None]])

        target, growth = np.array([0.2, 0.3, 0.5]), np.exp(0.2 * RNG.normal(size=(6, 11, 3)))
        check(path, (target, growth), (None, 0))
        f = rs.compile(rs.vmap(path, (None, 0)))
        f(target, growth)
        told = str(f.explain(target, growth))
        assert "calls of scan" not in told and "runs on eval" not in told, told

    @pytest.mark.parametrize("of_row", [True, False])
    def test_what_prints_does_so_for_rows_that_take_it(self, of_row):
        lines = io.StringIO()

        def one(a, i, w):
            return rs.ifelse(i >= 0, a[i] + rs.print(a[i] if of_row else w, "taken", file=lines), a[0])

        f = rs.compile(rs.vmap(one, (0, 0, None)))
        found = f(X, np.array([1, -1, 3, -9, 0]), 2.0)
        np.testing.assert_array_equal(found[[1, 3]], X[[1, 3], 0])
        assert lines.getvalue().count("taken") == 3, lines.getvalue()

    def test_branches_of_other_extents(self):
        """What extents the branches have is known when it runs; where they differ, it is an error, as one row alone would be in a loop."""
        f = rs.compile(rs.vmap(lambda a, b: rs.ifelse(a[0] > 0, a, b)))
        np.testing.assert_array_equal(f(X, -X), np.where(X[:, :1] > 0, X, -X))
        with pytest.raises(rs.RscanError):
            f(X, np.zeros((5, 3)))


def _products(x, a, n=None):
    """Products of a / x[0], a / x[1], …: of the first n, or until one of the numbers is large."""
    if n is None:
        return rs.loop(lambda k, h: (h * a / k, rs.until(k > 7.5)), over=x, init=1.0).last
    return rs.loop(lambda k, h: h * a / x[k], over=rs.arange(5), init=1.0, n_steps=n).last


@pytest.mark.parametrize("n", [None, [3, 5], [0, 4], [3, 0]])
def test_what_a_row_computes_that_has_stopped_has_no_gradient(n):
    # Behind its last step the first row would divide by zero: 0 times an infinite slope is NaN.
    x = np.array([[2.0, 4.0, 8.0, 0.0, 0.0], [2.0, 4.0, 3.0, 5.0, 7.9]])
    a = rs.dscalar("a")
    rows = [_products(rs.constant(x[r]), a, None if n is None else n[r]) for r in range(2)]
    args = (x,) if n is None else (x, np.array(n))
    together = rs.vmap(lambda x, *n: _products(x, a, *n))(*args)
    for got, want in [(rs.sum(together), rows[0] + rows[1]), (together[0], rows[0])]:
        f = rs.function(
            [a], [got, want, rs.grad(got, a), rs.grad(want, a), rs.hessian(got, a), rs.hessian(want, a)], on_unused_input="ignore"
        )
        value, wanted, slope, wanted_slope, curve, wanted_curve = f(1.5)
        np.testing.assert_allclose([value, slope, curve], [wanted, wanted_slope, wanted_curve], rtol=1e-12)


def test_rows_that_run_no_step_read_nothing():
    table = np.array([1.0, 2.0, 3.0])

    def total(at, n):
        return rs.loop(lambda k, s: s + rs.constant(table)[at + k], over=rs.arange(9), init=0.0, n_steps=n).last

    check(total, [np.array([0, 7, 1]), np.array([3, 0, 2])])
    check(total, [np.array([7, 9]), np.array([0, 0])])
    with pytest.raises(rs.errors.RscanIndexError, match="E0202"):
        check(total, [np.array([0, 1]), np.array([3, 3])])
