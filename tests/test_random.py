"""Random numbers: pure draws of keys, streams, loops."""

import numpy as np
import pytest

import rscan as rs


def draw(expression):
    return rs.eval(expression)


class TestKeys:
    def test_a_draw_is_a_function_of_its_key(self):
        a, b = draw(rs.random.normal(rs.random.key(1), (4,))), draw(rs.random.normal(rs.random.key(1), (4,)))
        np.testing.assert_array_equal(a, b)
        assert not np.array_equal(a, draw(rs.random.normal(rs.random.key(2), (4,))))

    def test_split_and_fold_in(self):
        key = rs.random.key(0)
        first, second = rs.random.split(key)
        keys = [draw(k).tolist() for k in (key, first, second, rs.random.fold_in(key, 7), rs.random.fold_in(first, 0))]
        assert len({tuple(k) for k in keys}) == 5
        np.testing.assert_array_equal(draw(first), draw(rs.random.fold_in(key, 0)))

    @pytest.mark.parametrize("num", [0, 1, 3, 16, 17, 40, np.int64(5)])
    def test_split_gives_rows(self, num):
        key = rs.random.key(0)
        keys = rs.random.split(key, num)
        rows = [draw(rs.random.fold_in(key, i)) for i in range(int(num))]
        np.testing.assert_array_equal(draw(keys), np.reshape(np.array(rows, np.uint64), (int(num), 2)))
        count = rs.compile(lambda n: rs.random.split(rs.random.key(0), n))
        np.testing.assert_array_equal(count(int(num)), draw(keys))

    def test_keys_that_were_split_are_a_sequence_and_are_mapped(self):
        keys = rs.random.split(rs.random.key(1), 4)
        each = [draw(rs.random.normal(k, 3)) for k in keys]
        np.testing.assert_array_equal(draw(rs.vmap(lambda k: rs.random.normal(k, 3))(keys)), each)
        out = rs.loop(lambda k, x: x + rs.random.normal(k, 3), over=keys, init=np.zeros(3))
        np.testing.assert_array_equal(draw(out.last), each[0] + each[1] + each[2] + each[3])

    def test_larger_draws_continue_smaller_ones(self):
        key = rs.random.key(3)
        np.testing.assert_array_equal(draw(rs.random.uniform(key, 10))[:4], draw(rs.random.uniform(key, 4)))

    @pytest.mark.parametrize("seed", [-1, 1.5, 2**64, True, "one"])
    def test_seeds_are_numbers(self, seed):
        with pytest.raises(rs.RscanError, match="seed"):
            rs.random.key(seed)

    @pytest.mark.parametrize("seed", [0, 7, np.int8(3), np.uint64(2**63 + 5)])
    def test_a_seed_may_be_an_argument(self, seed):
        found = rs.compile(lambda seed: rs.random.key(seed))(seed)
        np.testing.assert_array_equal(found, rs.random.key(int(seed)).eval())

    def test_a_variable_that_is_no_integer_is_no_seed(self):
        with pytest.raises(rs.RscanError, match="E0809"):
            rs.random.key(rs.dscalar("x"))

    def test_keys_are_checked(self):
        with pytest.raises(rs.RscanError, match="E0702"):
            rs.random.uniform(rs.constant([1.0, 2.0]))

    def test_several_keys_or_numbers_are_for_vmap(self):
        keys, numbers = rs.tensor("uint64", (None, 2), "keys"), rs.lvector("numbers")
        for draw_of, op in [(rs.random.normal, "random_normal"), (lambda k: rs.random.fold_in(k, 1), "fold_in")]:
            with pytest.raises(rs.RscanTypeError) as info:
                draw_of(keys)
            text = str(info.value)
            assert f"[E0702] `{op}` needs a key, a uint64 vector of 2, got keys: uint64[?, 2]" in text
            assert "help: rs.vmap(f)(keys) draws with each of several keys" in text
        with pytest.raises(rs.RscanTypeError) as info:
            rs.random.fold_in(rs.random.key(0), numbers)
        text = str(info.value)
        assert "[E0222] `fold_in` takes one number, got numbers: int64[?]" in text
        assert "help: rs.vmap(lambda n: rs.random.fold_in(key, n))(numbers) makes a key of each" in text


class TestDistributions:
    key = rs.random.key(42)
    n = 20_000

    def close(self, values, mean, std):
        assert abs(values.mean() - mean) < 5 * std / np.sqrt(values.size)
        assert abs(values.std() / std - 1) < 0.05

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_uniform(self, dtype):
        x = draw(rs.random.uniform(self.key, self.n, -1.0, 3.0, dtype=dtype))
        assert x.dtype == dtype and x.min() >= -1 and x.max() < 3
        self.close(x, 1, 4 / np.sqrt(12))

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_scaled(self, dtype):
        unit = draw(rs.random.uniform(self.key, 4, dtype=dtype)).astype("float64")
        for low, high in ((0.0, 2.0), (-1.0, 1.0), (0.5, 1.0), (0, 1)):
            np.testing.assert_allclose(draw(rs.random.uniform(self.key, 4, low, high, dtype=dtype)), low + (high - low) * unit, rtol=1e-6)
        unit = draw(rs.random.normal(self.key, 4, dtype=dtype)).astype("float64")
        for mean, scale in ((0.0, 2.0), (1.5, 1.0), (-2.0, 0.5), (0, 1)):
            np.testing.assert_allclose(draw(rs.random.normal(self.key, 4, mean, scale, dtype=dtype)), mean + scale * unit, rtol=2e-6)

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_normal(self, dtype):
        x = draw(rs.random.normal(self.key, (self.n // 2, 2), 2.0, 3.0, dtype=dtype))
        assert x.dtype == dtype and x.shape == (self.n // 2, 2)
        self.close(x, 2, 3)
        assert abs(np.corrcoef(x[:, 0], x[:, 1])[0, 1]) < 0.05

    def test_exponential(self):
        self.close(draw(rs.random.exponential(self.key, self.n, 2.0)), 2, 2)
        self.close(draw(rs.random.exponential(self.key, self.n)), 1, 1)

    def test_integers(self):
        x = draw(rs.random.integers(self.key, -2, 3, self.n))
        np.testing.assert_allclose(np.bincount(x + 2) / self.n, 0.2, atol=0.02)
        assert set(draw(rs.random.integers(self.key, 3, size=100))) == {0, 1, 2}
        assert draw(rs.random.integers(self.key, 5, size=2, dtype="int8")).dtype == "int8"

    def test_bernoulli(self):
        x = draw(rs.random.bernoulli(self.key, 0.3, self.n))
        assert x.dtype == bool
        self.close(x.astype(float), 0.3, np.sqrt(0.21))
        p = draw(rs.random.bernoulli(self.key, np.array([0.0, 1.0]), (50, 2)))
        assert not p[:, 0].any() and p[:, 1].all()
        assert draw(rs.random.bernoulli(self.key, np.array([0.0, 1.0, 1.0]))).tolist() == [False, True, True]

    def test_permutation(self):
        assert sorted(draw(rs.random.permutation(self.key, 10))) == list(range(10))
        rows = draw(rs.random.permutation(self.key, np.arange(12.0).reshape(6, 2)))
        assert sorted(map(tuple, rows)) == sorted(map(tuple, np.arange(12.0).reshape(6, 2)))

    def test_choice(self):
        x = draw(rs.random.choice(self.key, 4, self.n, p=np.array([0.1, 0.0, 0.6, 0.3])))
        np.testing.assert_allclose(np.bincount(x, minlength=4) / self.n, [0.1, 0, 0.6, 0.3], atol=0.02)
        x = draw(rs.random.choice(self.key, np.array([10.0, 20.0]), 100))
        assert set(x) == {10.0, 20.0}
        assert sorted(draw(rs.random.choice(self.key, 5, 5, replace=False))) == [0, 1, 2, 3, 4]
        p = np.array([0.6, 0.3, 0.1, 0.0])
        keys = rs.vmap(lambda i: rs.random.choice(rs.random.fold_in(self.key, i), 4, 2, replace=False, p=p))(np.arange(self.n))
        pairs = draw(keys)
        assert (pairs[:, 0] != pairs[:, 1]).all() and pairs.max() == 2
        np.testing.assert_allclose(np.bincount(pairs[:, 0]) / self.n, p[:3], atol=0.02)
        np.testing.assert_allclose((pairs == 0).any(1).mean(), 0.6 + 0.3 * 0.6 / 0.7 + 0.1 * 0.6 / 0.9, atol=0.02)
        columns = draw(rs.random.choice(self.key, np.arange(6.0).reshape(2, 3), 4, axis=1))
        assert columns.shape == (2, 4) and (columns[1] - columns[0] == 3).all()

    def test_multivariate_normal(self):
        cov = np.array([[2.0, 0.6], [0.6, 1.0]])
        x = draw(rs.random.multivariate_normal(self.key, np.array([1.0, -1.0]), cov, self.n))
        np.testing.assert_allclose(x.mean(0), [1, -1], atol=0.05)
        np.testing.assert_allclose(np.cov(x.T), cov, atol=0.06)

    def test_gradient_of_parameters(self):
        rs.verify_grad(lambda m, s: rs.random.normal(rs.random.key(0), 3, m, s), [np.ones(3), np.array(2.0)])


class TestStream:
    def test_new_numbers_every_call_the_same_for_a_seed(self):
        def run():
            stream = rs.random.Stream(7)
            f = rs.function([], stream.normal(3))
            return [f(), f()]

        (a, b), again = run(), run()
        assert not np.array_equal(a, b)
        np.testing.assert_array_equal([a, b], again)

    def test_draws_differ_and_have_one_value_per_call(self):
        stream = rs.RandomStream(1)
        x, y = stream.uniform(2), stream.uniform(2)
        a, b, c = rs.function([], [x, y, x])()
        assert not np.array_equal(a, b)
        np.testing.assert_array_equal(a, c)

    def test_functions_share_the_stream(self):
        stream = rs.RandomStream(1)
        x = stream.uniform()
        f, g = rs.function([], x), rs.function([], x)
        assert f() != g()

    def test_seed_begins_again(self):
        stream = rs.RandomStream(1)
        f = rs.function([], stream.uniform(2))
        a = f()
        stream.seed(1)
        np.testing.assert_array_equal(f(), a)

    def test_no_default_updates(self):
        f = rs.function([], rs.RandomStream(1).uniform(), no_default_updates=True)
        assert f() == f()


class TestLoops:
    def test_every_step_draws_anew(self):
        stream = rs.RandomStream(3)
        y, updates = rs.scan(lambda: stream.normal(2), n_steps=5)
        assert not updates, "the key is no state of the loop"
        f = rs.function([], y)
        a, b = f(), f()
        assert len({tuple(r) for r in np.vstack([a, b])}) == 10

    def test_inner_loops_fold_in_both_steps(self):
        stream = rs.RandomStream(3)
        y = rs.loop(lambda: rs.loop(lambda: stream.uniform(), n_steps=3), n_steps=4)
        assert len(set(rs.function([], y)().ravel())) == 12

    def test_a_draw_outside_is_the_same_in_every_step(self):
        x = rs.RandomStream(3).uniform()
        y = rs.function([], rs.scan(lambda i: x + i * 0, rs.arange(4))[0])()
        assert len(set(y)) == 1

    def test_one_step_draws_what_the_first_of_many_draws(self):
        def rows(n):
            stream = rs.RandomStream(9)
            return rs.function([], rs.scan(lambda: stream.uniform(), n_steps=n)[0])()

        np.testing.assert_array_equal(rows(1), rows(3)[:1])

    def test_gradient_sees_the_numbers_of_the_loop(self):
        stream, w = rs.RandomStream(4), rs.dscalar("w")
        noise = []

        def step(s):
            noise.append(stream.normal())
            return s * w + noise[-1]

        y, _ = rs.scan(step, outputs_info=0.5, n_steps=4)
        g = rs.grad(y[-1], w)
        f = rs.function([w], [y, g])
        rows, slope = f(1.3)
        e = rows - 1.3 * np.append(0.5, rows[:-1])
        s, ds = 0.5, 0.0
        for k in range(4):
            s, ds = s * 1.3 + e[k], ds * 1.3 + s
        np.testing.assert_allclose(slope, ds)

    def test_pure_keys_in_a_loop(self):
        key = rs.random.key(0)
        y, _ = rs.scan(lambda i: rs.random.uniform(rs.random.fold_in(key, i)), rs.arange(3))
        expected = [draw(rs.random.uniform(rs.random.fold_in(key, i))) for i in range(3)]
        np.testing.assert_array_equal(draw(y), expected)
