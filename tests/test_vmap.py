"""`vmap`: rows of a function against the function of each row, in values, derivatives and errors."""

import dataclasses

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
