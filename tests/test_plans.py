"""`f.plan()`: what runs, as text."""

import re

import numpy as np
import pytest

import rscan as rs


def lines(f, *words):
    """The lines of a plan that hold all the words."""
    return [line.strip() for line in f.plan().splitlines() if all(word in line for word in words)]


@pytest.fixture(autouse=True)
def on_the_vm(monkeypatch):
    monkeypatch.setenv("RSCAN_ENGINE", "vm")


def test_a_loop_that_is_one_kernel():
    x = rs.dvector("x")
    f = rs.function([x], rs.loop(lambda x, h: h * x, over=x, init=rs.constant(2.0)), excluding=["fma"])
    assert not lines(f, "kernel")
    assert np.array_equal(f([3.0, 5.0]), [6.0, 30.0])
    text = f.plan()
    assert "m0 is the row of sequence `x`" in text
    assert "one kernel, 1 lane (vm)" in text
    kernel = re.findall(r"r\d+: f64 = (\w+)", text)
    assert sorted(kernel) == ["carry", "load", "mul"]
    assert lines(f, "state `h`: f64, rows are stored, 1 handed on")


def test_a_step_that_is_a_list_names_the_memory_of_its_parts():
    w = rs.dmatrix("w")

    def step(h):
        inner = rs.loop(lambda a, k: a + k * rs.sum(h), over=rs.arange(4.0), init=0.0).last
        return rs.sort(rs.tanh(w @ h)) + inner

    f = rs.function([w], rs.loop(step, init=rs.ones(40), n_steps=3).last)
    f(np.eye(40))
    assert lines(f, "a list of parts:", "matmul")
    product = lines(f, "matmul 40x40 40x1")
    assert len(product) == 1 and "-> memory[" in product[0] and "test_plans.py" in product[0]
    assert lines(f, "call sort", "f64[40] -> ")
    assert lines(f, "memory:", "bytes")


def test_loops_in_steps_and_what_all_steps_read():
    x, w = rs.dmatrix("x"), rs.dmatrix("w")

    def step(row):
        return rs.loop(lambda h: rs.tanh(w @ h) + row, init=row, n_steps=5).last

    f = rs.function([x, w], rs.loop(step, over=x))
    f(np.ones((4, 40)), np.eye(40))
    assert len(lines(f, "loop of 5 steps")) == 1
    assert lines(f, "matmul 40x40 40x1") and lines(f, "a list of parts:")
    assert "not called yet" not in f.plan()


def test_maps_regions_and_compiled_functions():
    @rs.compile
    def f(x):
        return rs.exp(x * 2) + 1, x[::2]

    f(np.ones(6))
    assert "store" in f.plan() and f.plan() == f.plan(np.ones(6))
    assert "kernel (vm)" in f.plan()
    with pytest.raises(rs.RscanTypeError, match="plan wants the arguments of a call"):
        rs.compile(lambda x: x).plan()


def test_transforms_are_called_by_their_names_before_a_call():
    """The error names what the user wrote, and lines of theirs alone."""
    made = [rs.hessian, rs.jacobian, rs.grad, rs.value_and_grad]
    for transform in made:
        with pytest.raises(rs.RscanTypeError) as caught:
            transform(lambda x: rs.sum(x**3)).plan()
        assert f"{transform.__name__}(<lambda>)()" in caught.value.title
        assert "transforms.py" not in str(caught.value)


def test_what_has_no_kernel_says_why():
    x = rs.dvector("x")
    grown = rs.function([x], rs.scan(lambda h: rs.concatenate([h, h]), outputs_info=[None], sequences=[x[:, None]])[0])
    grown([1.0, 2.0])
    assert grown.plan().startswith("fn f(x: f64[n0]) {") and grown.plan().endswith("}\n")
    y = rs.lvector("y")
    by_values = rs.function([y], rs.loop(lambda n: rs.sum(rs.arange(n)), over=y))
    by_values([3, 4])
    assert len(lines(by_values, "a list of parts, for some integers")) == 2


@pytest.mark.parametrize("exponent", [3, 2.5, 1.5, 0.5, -0.5, -2])
def test_powers_and_their_derivatives_of_arrays_are_products_and_roots(exponent):
    """As those of numbers: the exponent of a derivative is known, though it is written as a choice that depends on each element."""
    x = np.array([0.3, 1.7, 4.0])
    f = rs.compile(lambda x: rs.value_and_grad(lambda x: rs.sum(x**exponent))(x))
    value, slope = f(x)
    np.testing.assert_allclose(value, np.sum(x**exponent), rtol=1e-13)
    np.testing.assert_allclose(slope, exponent * x ** (exponent - 1), rtol=1e-13)
    assert not lines(f, "call pow")
    jacobian = rs.compile(rs.jacobian(lambda x: rs.loop(lambda h: 0.5 * h + 0.1 * x**exponent, init=x, n_steps=4).last))
    expected = 0.5**4 + 0.1 * exponent * x ** (exponent - 1) * sum(0.5**k for k in range(4))
    np.testing.assert_allclose(jacobian(x), np.diag(expected), rtol=1e-12)
    assert not lines(jacobian, "call pow")
