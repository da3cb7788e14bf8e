"""`grad`, `jacobian`, … of functions: of arrays and of variables, nested, of structures."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import pytest

import rscan as rs

X, V = np.array([1.0, -2.0, 0.5]), np.array([0.3, 1.0, -1.0])
W = np.arange(6.0).reshape(2, 3) - 2


def cubes(x):
    return rs.sum(x**3)


class Pair(NamedTuple):
    a: Any
    b: Any


@dataclasses.dataclass
class Model:
    w: Any
    offset: Any = 0.0


def test_arrays_give_arrays_and_variables_variables():
    g = rs.grad(cubes)
    assert isinstance(g, rs.Compiled) and type(g(X)) is np.ndarray
    np.testing.assert_allclose(g(X), 3 * X**2)
    x = rs.dvector("x")
    assert isinstance(g(x), rs.Variable)
    np.testing.assert_allclose(g(x).eval({x: X}), 3 * X**2)
    value, slope = rs.value_and_grad(cubes)(x)
    assert isinstance(value, rs.Variable) and isinstance(slope, rs.Variable)
    assert isinstance(rs.hessian(cubes)(x), rs.Variable) and isinstance(rs.jvp(cubes, (x,), (V,))[1], rs.Variable)
    assert isinstance(rs.grad(cubes(x), x), rs.Variable)


def test_what_else_the_function_uses_does_not_move():
    v, c = rs.dscalar("v"), rs.dvector("c")
    assert rs.grad(lambda y: y * v)(v).eval({v: 3.0}) == 3
    assert [g.eval({v: 3.0}) for g in rs.grad(lambda a, b: a * a * b, argnums=(0, 1))(v, v)] == [18, 9]
    assert rs.grad(lambda a, b: a * a * b)(v, v).eval({v: 3.0}) == 18
    assert rs.grad(lambda y: rs.grad(lambda z: y * z)(y))(v).eval({v: 3.0}) == 1
    np.testing.assert_array_equal(rs.grad(lambda y: rs.sum(y * c))(X).eval({c: V}), V)
    outer = rs.compile(lambda c: rs.grad(lambda y: rs.sum(y * c))(X))
    np.testing.assert_array_equal(outer(V), V)


def test_transforms_nest():
    np.testing.assert_allclose(rs.grad(lambda y: rs.sum(rs.grad(cubes)(y) ** 2))(X), 36 * X**3)
    third = rs.grad(rs.grad(rs.grad(lambda x: x**5)))
    assert third(2.0) == 240
    np.testing.assert_allclose(rs.jacobian(rs.grad(cubes))(X), np.diag(6 * X))
    np.testing.assert_allclose(rs.grad(rs.compile(cubes))(X), 3 * X**2)
    rows = rs.compile(rs.vmap(rs.grad(cubes)))
    np.testing.assert_allclose(rows(W), 3 * W**2)
    np.testing.assert_allclose(rs.grad(lambda w: rs.sum(rs.vmap(cubes)(w) ** 2))(W), 2 * (W**3).sum(1)[:, None] * 3 * W**2)
    hessians = rs.compile(rs.vmap(rs.hessian(cubes)))(W)
    np.testing.assert_allclose(hessians, np.stack([np.diag(6 * w) for w in W]))
    change = rs.compile(lambda x, v: rs.jvp(rs.grad(cubes), (x,), (v,))[1])
    np.testing.assert_allclose(change(X, V), 6 * X * V)


def test_argnums_and_aux():
    f = lambda x, y, k=2.0: rs.sum(x * y**2) * k
    np.testing.assert_allclose(rs.grad(f, 1)(X, V), 4 * X * V)
    gx, gy = rs.grad(f, argnums=(0, "y"))(X, V, k=1.0)
    np.testing.assert_allclose([gx, gy], [V**2, 2 * X * V])
    assert rs.grad(f, "k")(X, V, k=3.0) == pytest.approx((X * V**2).sum())
    assert rs.grad(f, -1)(X, V, 3.0) == pytest.approx((X * V**2).sum())
    several = lambda *xs: xs[0] * xs[1] ** 2
    assert rs.grad(several, argnums=(0, 1))(3.0, 2.0) == (4.0, 12.0)
    slope, aux = rs.grad(lambda x: (cubes(x), {"twice": 2 * x}), has_aux=True)(X)
    np.testing.assert_allclose([slope, aux["twice"]], [3 * X**2, 2 * X])
    (value, aux), slope = rs.value_and_grad(lambda x: (x**2, [x]), argnums=0, has_aux=True)(3.0)
    assert (value, aux, slope) == (9, [3.0], 6)
    jacobian, aux = rs.jacobian(lambda x: (x**2, x.sum()), has_aux=True)(X)
    np.testing.assert_allclose(jacobian, np.diag(2 * X))
    assert aux == X.sum()
    second, aux = rs.hessian(lambda x: (cubes(x), x[0]), has_aux=True)(X)
    np.testing.assert_allclose(second, np.diag(6 * X))
    assert aux == X[0]


STRUCTURES = {
    "dict": {"a": X, "b": {"c": 2.0}},
    "list": [X, [2.0]],
    "tuple": (X, (2.0,)),
    "named tuple": Pair(X, Pair(2.0, 1.0)),
    "dataclass": Model(X, Model(2.0)),
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_structures(name):
    p = STRUCTURES[name]
    leaves, _ = rs._tree.flatten(p, lambda v: isinstance(v, np.ndarray))
    total = lambda p: sum(rs.sum(v**2) for v in rs._tree.flatten(p, lambda v: isinstance(v, rs.Variable))[0])
    for given in (rs.grad(total)(p), rs.vjp(total, p)[1](1.0)[0], rs.value_and_grad(total)(p)[1]):
        assert type(given) is type(p)
        got, _ = rs._tree.flatten(given, lambda v: isinstance(v, np.ndarray))
        for g, v in zip(got, leaves, strict=True):
            np.testing.assert_allclose(g, 2 * np.asarray(v))
    value, change = rs.jvp(total, (p,), (p,))
    assert change == pytest.approx(2 * value)


def test_jacobians_and_hessians_of_structures():
    f = lambda p, k: {"sum": p["x"] * p["y"], "only": [p["y"] ** 2]}
    found = rs.jacobian(f)({"x": X, "y": 2.0}, 1)
    np.testing.assert_allclose(found["sum"]["x"], 2 * np.eye(3))
    np.testing.assert_allclose(found["sum"]["y"], X)
    np.testing.assert_allclose(found["only"][0]["x"], np.zeros(3))
    assert found["only"][0]["y"] == 4
    first, second = rs.jacobian(lambda x, y: rs.outer(x, y), argnums=(0, 1))(X, V[:2])
    assert first.shape == (3, 2, 3) and second.shape == (3, 2, 2)
    found = rs.hessian(lambda p: rs.sum(p["x"] ** 2) * p["y"])({"x": X, "y": 2.0})
    np.testing.assert_allclose(found["x"]["x"], 4 * np.eye(3))
    np.testing.assert_allclose(found["x"]["y"], 2 * X)
    np.testing.assert_allclose(found["y"]["x"], 2 * X)
    assert found["y"]["y"] == 0
    (aa, ab), (ba, bb) = rs.hessian(lambda a, b: a**2 * b, argnums=(0, 1))(3.0, 5.0)
    assert [aa, ab, ba, bb] == [10, 6, 6, 0]
    np.testing.assert_allclose(rs.jacobian(lambda x: x**2, block_size=2)(X), np.diag(2 * X))
    assert rs.jacobian(lambda x: rs.argmax(x))(X).tolist() == [0, 0, 0]


def test_forward_backward_and_hessian_times_vector():
    f = lambda x, y: {"p": x * y, "n": [x.sum()]}
    value, change = rs.jvp(f, (X, 2.0), (V, 1.0))
    np.testing.assert_allclose(value["p"], 2 * X)
    np.testing.assert_allclose(change["p"], 2 * V + X)
    assert change["n"][0] == pytest.approx(V.sum())
    value, pull = rs.vjp(f, X, 2.0)
    gx, gy = pull({"p": V, "n": [10.0]})
    np.testing.assert_allclose(gx, 2 * V + 10)
    assert gy == pytest.approx((X * V).sum())
    value, pull, aux = rs.vjp(lambda x: (x**2, "text"), X, has_aux=True)
    assert aux == "text"
    np.testing.assert_allclose(pull(V)[0], 2 * X * V)
    (hv,) = rs.hvp(cubes, (X,), (V,))
    np.testing.assert_allclose(hv, 6 * X * V)
    ha, hb = rs.hvp(lambda a, b: a**2 * b, (3.0, 5.0), (1.0, 0.0))
    assert (ha, hb) == (10, 6)
    x, v = rs.dvector("x"), rs.dvector("v")
    np.testing.assert_allclose(rs.hvp(cubes, (x,), (v,))[0].eval({x: X, v: V}), 6 * X * V)


def test_loops():
    power = lambda w: rs.loop(lambda s: s * w, init=1.0, n_steps=5)[-1]
    assert rs.grad(power)(2.0) == 80 and rs.grad(rs.grad(power))(2.0) == 160
    descent = lambda c: rs.loop(lambda s: s - 0.1 * rs.grad(lambda q: rs.sum((q - c) ** 2))(s), init=rs.constant(X), n_steps=100)[-1]
    np.testing.assert_allclose(rs.compile(descent)(V), V, atol=1e-8)
    np.testing.assert_allclose(rs.jacobian(descent)(V), np.eye(3), atol=1e-8)
    state = lambda w: rs.loop(lambda m: dict(m=Model(m.w * w, m.offset + m.w)), init=dict(m=Model(1.0, 0.0)), n_steps=3)
    assert rs.grad(lambda w: state(w).m.offset[-1])(2.0) == 5
    nested = rs.grad(lambda w: rs.loop(lambda s: s + rs.grad(power)(w * s), init=1.0, n_steps=2)[-1])
    step = 1e-6
    plain = lambda w: (lambda s: s + 5 * (w * s) ** 4)(1 + 5 * w**4)
    assert nested(0.7) == pytest.approx((plain(0.7 + step) - plain(0.7 - step)) / (2 * step), rel=1e-6)


def test_strings_and_none_are_no_arguments_of_a_gradient():
    f = lambda x, how, more=None: rs.sum(x**2) if how == "square" else rs.sum(x)
    np.testing.assert_allclose(rs.grad(f)(X, "square"), 2 * X)
    np.testing.assert_allclose(rs.grad(f)(X, "sum"), np.ones(3))
    assert rs.grad(lambda p: rs.sum(p["x"] ** 2))({"x": 2.0, "kind": "a"}) == {"x": 4.0, "kind": None}


def test_float32_and_constants():
    assert rs.grad(cubes)(X.astype("float32")).dtype == "float32"
    np.testing.assert_array_equal(rs.grad(lambda x: rs.constant(1.0))(X), np.zeros(3))
    np.testing.assert_array_equal(rs.grad(lambda x, y: rs.sum(y**2))(X, V), np.zeros(3))


ERRORS = {
    "no such argument": (lambda: rs.grad(cubes, 3)(X), "the arguments are x"),
    "integers": (lambda: rs.grad(cubes)(np.array([1, 2])), "with respect to floats"),
    "a list of integers": (lambda: rs.value_and_grad(cubes)([1, 2]), "pass floats"),
    "an array": (lambda: rs.grad(lambda x: x)(X), "scalar"),
    "a structure": (lambda: rs.grad(lambda x: {"a": x})(2.0), "returns dict"),
    "no pair": (lambda: rs.grad(cubes, has_aux=True)(X), "returns a pair"),
    "arguments": (lambda: rs.grad(cubes)(), "missing a required argument"),
    "primals": (lambda: rs.jvp(cubes, X, X), "takes a tuple"),
    "tangents": (lambda: rs.jvp(cubes, (X,), (X, X)), "one for each argument"),
    "structure of tangents": (lambda: rs.jvp(lambda p: p["a"], ({"a": 1.0},), (2.0,)), "with the structure"),
    "structure of cotangents": (lambda: rs.vjp(cubes, X)[1]((1.0, 2.0)), "with the structure"),
    "hvp": (lambda: rs.hvp(3, (X,), (X,)), "takes a function"),
    "value_and_grad": (lambda: rs.value_and_grad(3), "takes a function"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    call, text = ERRORS[name]
    with pytest.raises(rs.RscanError, match=text):
        call()


def test_compiled_functions_are_traced_once_and_plain_ones_each_time():
    """What a plain function reads may have changed since the call before."""
    traced, factor = [], [1.0]

    def cost(x):
        traced.append(1)
        return factor[0] * rs.sum(x**3)

    calls = [
        lambda f: rs.jvp(f, (X,), (V,))[1],
        lambda f: rs.vjp(f, X)[1](1.0)[0] @ V,
        lambda f: rs.hvp(f, (X,), (V,))[0] @ np.ones(3),
    ]
    expected = [np.sum(3 * X**2 * V)] * 2 + [np.sum(6 * X * V)]
    for call, value in zip(calls, expected, strict=True):
        f = rs.compile(cost)
        assert call(f) == pytest.approx(value)
        before = len(traced)
        assert call(f) == pytest.approx(value) and len(traced) == before
        factor[0] = 2.0
        assert call(cost) == pytest.approx(2 * value) and len(traced) > before
        factor[0] = 1.0
    f = rs.compile(lambda x: (rs.sum(x**2), {"twice": 2 * x}))
    assert rs.jvp(f, (X,), (V,), has_aux=True)[2].keys() == {"twice"} and len(rs.vjp(f, X, has_aux=True)) == 3
    single = rs.compile(cost)
    assert [rs.jvp(single, (a,), (a,))[1].dtype for a in (X, X.astype("float32"))] == ["float64", "float32"]


def test_options_that_a_transform_has_not():
    for call in (rs.grad, rs.jacobian, rs.hessian):
        with pytest.raises(rs.RscanTypeError, match=r"has no option 'static_argnums'(.|\n)*rs\.compile\(f, static=…\)"):
            call(cubes, static_argnums=1)
    with pytest.raises(rs.RscanTypeError, match="has no option 'wrt'"):
        rs.jvp(cubes, wrt=X)
    with pytest.raises(rs.RscanTypeError, match="has no option 'wrt'"):
        rs.vjp(cubes, X, wrt=X)
