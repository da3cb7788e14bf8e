"""`grad`, `vjp`, `jvp`, `jacobian`, `hessian`, and the check of gradients itself."""

import numpy as np
import pytest

import rscan as rs
from rscan import derivatives

X = np.array([0.3, -0.7, 1.1])


class TestGrad:
    x, y = rs.dvector("x"), rs.dvector("y")
    cost = (rs.sin(x) * y).sum()

    def test_keeps_the_form_of_wrt(self):
        x, y = self.x, self.y
        assert isinstance(rs.grad(self.cost, x), rs.Variable)
        assert isinstance(rs.grad(self.cost, [x]), list)
        assert isinstance(rs.grad(self.cost, (x, y)), tuple)
        assert rs.grad(self.cost, []) == []

    def test_values(self):
        f = rs.function([self.x, self.y], rs.grad(self.cost, [self.x, self.y]))
        gx, gy = f(X, 2 * X)
        np.testing.assert_allclose(gx, np.cos(X) * 2 * X)
        np.testing.assert_allclose(gy, np.sin(X))

    def test_of_an_intermediate_variable(self):
        z = self.x * 2
        g = rs.grad((z**2).sum(), z)
        np.testing.assert_allclose(rs.eval(g, {self.x: X}), 4 * X)

    def test_an_equal_expression_is_another_variable(self):
        z, y = self.x * 2, self.x * 2
        f = rs.function([self.x], [rs.grad((z * y).sum(), z), *rs.grad((z * y).sum(), [z, self.x]), rs.grad((z * y).sum(), self.x, [y])])
        for found, expected in zip(f(X), [2 * X, 2 * X, 8 * X, 4 * X], strict=True):
            np.testing.assert_allclose(found, expected)

    def test_through_one_variable_to_another(self):
        z = rs.exp(self.x)
        gz, gx = rs.grad((z**2).sum(), [z, self.x])
        np.testing.assert_allclose(rs.eval(gz, {self.x: X}), 2 * np.exp(X))
        np.testing.assert_allclose(rs.eval(gx, {self.x: X}), 2 * np.exp(2 * X))
        again = rs.grad(gz.sum(), z)
        np.testing.assert_allclose(rs.eval(again, {self.x: X}), [2, 2, 2])

    @pytest.mark.parametrize(("n", "m"), [(1, 3), (3, 1), (1, 1), (3, 3), (1, 700), (1, 0)])
    def test_what_is_repeated_has_the_sum_of_all_slopes(self, n, m):
        x, y = rs.dvector("x"), rs.dvector("y")
        f = rs.function([x, y], rs.grad(rs.sum((x + y) * 0.8), [x, y]))
        for size, other, slope in zip((n, m), (m, n), f(np.ones(n), np.ones(m)), strict=True):
            np.testing.assert_allclose(slope, np.full(size, 0.8 * (other if size == 1 else 1)))

    def test_of_a_shared_variable(self):
        w = rs.shared(X, name="w")
        np.testing.assert_allclose(rs.eval(rs.grad((w**3).sum(), w)), 3 * X**2)

    def test_consider_constant(self):
        z = rs.sin(self.x)
        g = rs.grad((z * self.x).sum(), self.x, consider_constant=[z])
        np.testing.assert_allclose(rs.eval(g, {self.x: X}), np.sin(X))

    def test_known_grads(self):
        z = self.x**2
        g = rs.grad(None, self.x, known_grads={z: self.y})
        np.testing.assert_allclose(rs.function([self.x, self.y], g)(X, 3 * X), 2 * X * 3 * X)

    def test_disconnected(self):
        x, y = self.x, self.y
        with pytest.raises(rs.errors.DisconnectedInputError, match="`y`"):
            rs.grad((x**2).sum(), y)
        with pytest.warns(UserWarning, match="`y`"):
            rs.grad((x**2).sum(), y, disconnected_inputs="warn")
        zero = rs.grad((x**2).sum(), y, disconnected_inputs="ignore")
        np.testing.assert_array_equal(rs.eval(zero, {y: X}), [0, 0, 0])
        options = dict(disconnected_inputs="ignore")
        assert rs.grad((x**2).sum(), y, **options, return_disconnected="none") is None
        assert rs.grad((x**2).sum(), [x, y], **options, return_disconnected="disconnected")[1] is rs.DISCONNECTED
        with pytest.raises(rs.RscanError, match="disconnected_inputs"):
            rs.grad(self.cost, x, disconnected_inputs="maybe")

    @pytest.mark.parametrize("cut", [rs.stop_gradient, rs.zeros_like, lambda v: rs.cast(v.shape[0], "float64")])
    def test_what_cuts_the_way(self, cut):
        with pytest.raises(rs.errors.DisconnectedInputError):
            rs.grad(cut(self.x).sum(), self.x)

    def test_integers_have_float64_zeros(self):
        i = rs.lvector("i")
        g = rs.grad((rs.cast(i, "float64") ** 2).sum(), i, disconnected_inputs="ignore")
        assert g.dtype == "float64"
        assert rs.eval(g, {i: np.array([1, 2])}).shape == (2,)

    def test_dtype_of_a_gradient_is_that_of_the_variable(self):
        x = rs.fvector("x")
        assert rs.grad((rs.cast(x, "float64") ** 2).sum(), x).dtype == "float32"

    @pytest.mark.parametrize("cost", [x, rs.lscalar("i"), rs.dmatrix("m").sum(axis=0)])
    def test_cost_is_a_float_scalar(self, cost):
        with pytest.raises(rs.errors.NonScalarCostError, match="E0401"):
            rs.grad(cost, self.x)

    def test_without_cost(self):
        with pytest.raises(rs.RscanError, match="E0401"):
            rs.grad(None, self.x)
        with pytest.raises(rs.RscanError, match="not 3"):
            rs.grad(self.cost, 3)


class TestDirections:
    x = rs.dvector("x")
    y = (rs.sin(x) * x.sum(), (x**2).sum())
    matrix = np.vstack([np.diag(np.cos(X) * X.sum()) + np.sin(X)[:, None], 2 * X])

    def test_vjp(self):
        v = [np.array([1.0, 2.0, 3.0]), 4.0]
        found = rs.eval(rs.vjp(self.y, self.x, v), {self.x: X})
        np.testing.assert_allclose(found, np.array([1, 2, 3, 4]) @ self.matrix)
        np.testing.assert_allclose(rs.eval(rs.Lop(self.y, [self.x], v), {self.x: X})[0], found)

    def test_jvp(self):
        t = np.array([1.0, -2.0, 0.5])
        found = rs.eval(rs.jvp(self.y, self.x, t), {self.x: X})
        np.testing.assert_allclose(np.append(*found), self.matrix @ t)
        np.testing.assert_allclose(rs.eval(rs.Rop(self.y[0], self.x, t), {self.x: X}), (self.matrix @ t)[:3])

    def test_jvp_of_what_is_not_connected_is_zero(self):
        z = rs.dvector("z")
        np.testing.assert_array_equal(rs.function([z], rs.jvp(z * 2, self.x, X), on_unused_input="ignore")(X), [0, 0, 0])

    def test_numbers_must_match(self):
        with pytest.raises(rs.RscanError, match="E0404"):
            rs.vjp(self.y, self.x, [X])
        with pytest.raises(rs.RscanError, match="E0404"):
            rs.vjp(self.y[:1], self.x, [np.ones((2, 2))])
        with pytest.raises(rs.RscanError, match="E0404"):
            rs.jvp(self.y, [self.x], [X, X])


class TestMatrices:
    def test_jacobian(self):
        x, y = rs.dvector("x"), rs.dscalar("y")
        jx, jy = rs.jacobian(rs.sin(x) * y, [x, y])
        found = rs.function([x, y], [jx, jy])(X, 2.0)
        np.testing.assert_allclose(found[0], np.diag(2 * np.cos(X)))
        np.testing.assert_allclose(found[1], np.sin(X))

    def test_jacobian_of_a_matrix(self):
        x = rs.dmatrix("x")
        value = np.arange(6.0).reshape(2, 3)
        found = rs.eval(rs.jacobian(x @ x.T, x), {x: value})
        assert found.shape == (2, 2, 2, 3)
        h, expected = 1e-6, np.zeros((2, 2, 2, 3))
        for i, j in np.ndindex(2, 3):
            e = np.zeros((2, 3))
            e[i, j] = h
            expected[:, :, i, j] = ((value + e) @ (value + e).T - (value - e) @ (value - e).T) / (2 * h)
        np.testing.assert_allclose(found, expected, atol=1e-7)

    def test_jacobian_in_blocks(self):
        x = rs.dmatrix("x")
        value = np.arange(6.0).reshape(2, 3) / 5
        y = rs.sin(x @ x.T + rs.scan(lambda h: h * 0.5, outputs_info=x[:, :2], n_steps=3)[0][-1])
        whole = rs.function([x], rs.jacobian(y, x))(value)
        for size in (1, 3, 4, 7):
            np.testing.assert_allclose(rs.function([x], rs.jacobian(y, x, block_size=size))(value), whole, rtol=1e-12, atol=1e-14)
        second = rs.function([x], rs.hessian(y.sum(), x, block_size=4))(value)
        np.testing.assert_allclose(second, rs.function([x], rs.hessian(y.sum(), x))(value), rtol=1e-12, atol=1e-14)
        with pytest.raises(rs.GradientError, match="at least 1"):
            rs.jacobian(y, x, block_size=0)

    def test_jacobian_of_large_arrays_is_taken_in_blocks(self, monkeypatch):
        x = rs.tensor("float64", [5], "x")
        y = rs.tanh(x) * 2
        monkeypatch.setattr(derivatives, "ROOM", 11)
        blocks = rs.function([x], rs.jacobian(y, x))
        assert "scan" in blocks.text()
        compiled = rs.compile(rs.jacobian(lambda x: rs.tanh(x) * 2))
        for f, n in ((blocks, 5), (compiled, 5), (compiled, 2), (compiled, 13)):
            np.testing.assert_allclose(f(np.arange(float(n))), np.diag(2 / np.cosh(np.arange(n)) ** 2), atol=1e-15)
        assert "scan" in compiled.text() and compiled.n_variants == 1

    def test_jacobian_of_a_scalar_is_its_gradient(self):
        x = rs.dvector("x")
        np.testing.assert_allclose(rs.eval(rs.jacobian((x**2).sum(), x), {x: X}), 2 * X)

    def test_hessian(self):
        x = rs.dvector("x")
        cost = (x**3).sum() * x[0]
        found = rs.eval(rs.hessian(cost, x), {x: X})
        expected = np.diag(6 * X * X[0])
        expected[0] += 3 * X**2
        expected[:, 0] += 3 * X**2
        np.testing.assert_allclose(found, expected)

    def test_hessian_of_a_loop(self):
        x = rs.dvector("x")
        y, _ = rs.scan(lambda a, s: rs.sin(s) * a + s, x, 1.0)
        found = rs.eval(rs.hessian(y[-1], x), {x: X})
        np.testing.assert_allclose(found, found.T, atol=1e-12)
        g = rs.function([x], rs.grad(y[-1], x))
        for k in range(3):
            e = np.zeros(3)
            e[k] = 1e-6
            np.testing.assert_allclose(found[k], (g(X + e) - g(X - e)) / 2e-6, rtol=1e-6, atol=1e-8)


def test_slopes_by_one_element_under_several_names_add_up():
    p = rs.dvector("p")
    cost = rs.sin(p[0]) + p[1] * 3 + p[-2] ** 2 + 5 * p[-1]
    at = np.array([0.5, 2.0])
    np.testing.assert_allclose(rs.function([p], rs.grad(cost, p))(at), [np.cos(0.5) + 1, 8])
    three = np.array([0.5, 2.0, 1.0])
    np.testing.assert_allclose(rs.function([p], rs.grad(cost, p))(three), [np.cos(0.5), 3 + 4, 5])


@pytest.mark.parametrize("positions", [[0, -3], [2, 2], [-1, 2], [0, 1], [-1, -2], [1, -2]])
def test_only_what_stays_of_values_written_twice_counts(positions):
    x, y = rs.dvector("x"), rs.dvector("y")
    written = x.at[positions].set(y)
    weights = np.array([1.0, 10.0, 100.0])
    by_x, by_y = rs.function([x, y], rs.grad((written * weights).sum(), [x, y]))(np.zeros(3), np.ones(2))
    first, last = (p % 3 for p in positions)
    np.testing.assert_array_equal(by_y, [0 if first == last else weights[first], weights[last]])
    np.testing.assert_array_equal(by_x, [0 if k in (first, last) else weights[k] for k in range(3)])


class TestVerify:
    def test_right_gradients_pass(self):
        worst = rs.verify_grad(lambda x, y: rs.tanh(x) @ y, [X, np.ones((3, 2))])
        assert worst.ratio < 0.1

    def test_a_wrong_gradient_is_named(self):
        with pytest.raises(rs.errors.GradientCheckError, match=r"argument 0`\[1\]") as caught:
            rs.verify_grad(lambda x: x * rs.stop_gradient(x) * rs.constant([0.0, 1.0, 0.0]) + x, [X])
        assert caught.value.code == "E0407"

    def test_small_faults_are_found(self):
        with pytest.raises(rs.errors.GradientCheckError):
            rs.verify_grad(lambda x: x + 1e-5 * rs.stop_gradient(x), [X])

    def test_nan_is_a_fault(self):
        with pytest.raises(rs.errors.GradientCheckError):
            rs.verify_grad(lambda x: rs.sqrt(x * 0) + x, [X])

    def test_integers_stay_fixed(self):
        rs.verify_grad(lambda x, i: x[i] ** 2, [X, np.array([2, 0])])

    def test_needs_floats(self):
        with pytest.raises(rs.RscanError, match="float"):
            rs.verify_grad(lambda i: i * 2, [np.array([1])])

    def test_numeric_grad_is_accurate(self):
        found = rs.numeric_grad(lambda x: float(np.exp(x).sum()), [X])
        np.testing.assert_allclose(found[0], np.exp(X), rtol=1e-10)


def test_no_gradient_flows_through_a_structure():
    @rs.value_and_grad
    def f(x, y):
        held = rs.stop_gradient({"x": x, "both": (x, y)})
        a, b = rs.stop_gradient([x, rs.outer(x, y)])
        return rs.sum(x * held["x"] * held["both"][1]) + rs.sum(a) + rs.sum(b * y)

    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    value, slope = f(x, y)
    assert value == np.sum(x * x * y) + x.sum() + np.sum(np.outer(x, y) * y) and slope.tolist() == (x * y).tolist()
    assert rs.stop_gradient([1.0, 2.0]).eval().tolist() == [1.0, 2.0]
