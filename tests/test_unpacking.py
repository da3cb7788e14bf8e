"""`a, b = x` of a variable whose extent is not known."""

import numpy as np
import pytest

import rscan as rs
from rscan.errors import AssertionFailedError, RscanTypeError


def test_names_take_the_rows_of_an_argument():
    @rs.compile
    def f(p, m):
        a, b, c = rs.exp(p)
        first, (second, third) = m, m.T
        return a - b * c + rs.sum(first) + rs.sum(second * third)

    p, m = np.array([0.1, 0.2, 0.3]), np.arange(6.0).reshape(3, 2)
    a, b, c = np.exp(p)
    assert np.isclose(f(p, m), a - b * c + m.sum() + (m[:, 0] * m[:, 1]).sum(), rtol=1e-14)
    value, slope = rs.value_and_grad(f)(p, m)
    assert np.allclose(slope, [a, -b * c, -b * c], rtol=1e-14) and value == f(p, m)


def test_another_number_of_rows_is_an_error():
    @rs.compile
    def f(p):
        a, b = p
        return a + b

    assert f(np.array([1.0, 2.0])) == 3.0
    with pytest.raises(AssertionFailedError, match=r"2 names take the rows of p: .*, which has another number of rows"):
        f(np.ones(3))


def test_rows_in_steps_are_taken_apart():
    def step(pair, h):
        a, b = pair
        return h * a + b

    pairs = np.array([[1.0, 2.0], [0.5, 1.0], [2.0, -1.0]])
    f = rs.compile(lambda pairs: rs.loop(step, over=pairs, init=0.0))
    assert f(pairs).tolist() == [2.0, 2.0, 3.0]
    with pytest.raises(AssertionFailedError, match="another number of rows"):
        f(np.ones((3, 3)))


def test_many_names():
    x = rs.dvector("x")
    names = ", ".join(f"a{k}" for k in range(100))
    scope = {"x": x}
    exec(f"{names} = x\nout = a0 + a99", scope)
    assert rs.function([x], scope["out"])(np.arange(100.0)) == 99.0


def test_a_walk_wants_an_extent():
    x = rs.dvector("x")
    for program in ("for row in x: pass", "first, *rest = x", "list(x)", "a = [*x]"):
        with pytest.raises(RscanTypeError) as caught:
            exec(program, {"x": x})
        assert caught.value.code == "E0802", program
