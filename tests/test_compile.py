"""`@rs.compile` and `rs.value_and_grad`."""

import collections
import dataclasses
import gc
import pickle
import weakref
from typing import Any

import numpy as np
import pytest
from helpers import same

import rscan as rs
from rscan import _quick, _tree


def test_traced_once_per_dtype_and_rank():
    traces = []

    @rs.compile
    def f(x, y):
        traces.append((x.dtype, x.ndim))
        return rs.sum(x * y)

    assert f(np.ones(3), 2.0) == 6
    assert f(np.ones(5), 3.0) == 15
    f(np.ones((2, 2)), 1.0)
    f(np.ones(3, "float32"), 1.0)
    assert traces == [("float64", 1), ("float64", 2), ("float32", 1)]
    assert f.n_variants == 3


def test_repeated_calls_take_the_short_way():
    f = rs.compile(lambda x, y=2.0: x * y)
    for k in range(3):
        assert f(float(k)) == 2 * k
        assert f(np.full(2, k)).tolist() == [2 * k, 2 * k]
        assert f(k, 3) == 3 * k and isinstance(f(k, 3), np.int64)
        assert f(np.float32(k), np.float32(1)).dtype == "float32"
        assert f(x=float(k)) == 2 * k
    with rs.config.override(floatX="float32"):
        assert f(1.0, 1.5).dtype == "float32"
    assert f(1.0, 1.5).dtype == "float64"
    with pytest.raises(rs.RscanError):
        f(1.0, 2.0, 3.0)


def test_results_without_axes_are_numbers():
    f = rs.compile(lambda x: (x.sum(), x * 2, {"n": x.max()}))
    total, doubled, more = f(np.array([1.0, 2.0]))
    assert isinstance(total, np.float64) and isinstance(more["n"], np.float64) and isinstance(doubled, np.ndarray)
    assert f"{total:.1f}" == "3.0"


@dataclasses.dataclass
class Model:
    w: Any
    b: Any


def test_structures():
    @rs.compile
    def f(model, data, scale=2.0):
        return {"y": data["x"] @ model.w + model.b * scale, "both": [model.b, (data["x"],)]}

    out = f(Model(np.eye(2), 1.0), {"x": np.array([1.0, 2.0])}, scale=3.0)
    np.testing.assert_array_equal(out["y"], [4, 5])
    assert isinstance(out["both"], list) and isinstance(out["both"][1], tuple)
    np.testing.assert_array_equal(f(Model(np.eye(2), 1.0), {"x": np.array([1.0, 2.0])})["y"], [3, 4])


def test_other_arguments_are_compiled_for_themselves():
    @rs.compile
    def f(x, kind, extra=None):
        return rs.tanh(x) if kind == "tanh" else x * 2

    assert f(1.0, "tanh") == np.tanh(1)
    assert f(1.0, "double") == 2
    assert f.n_variants == 2
    with pytest.raises(rs.RscanError, match="neither a number"):
        f(1.0, {1, 2})


def test_lists_of_numbers_are_arrays():
    assert rs.compile(lambda x: x.sum())([1.0, 2.0, 3.0]) == 6
    assert rs.compile(lambda x: x.sum())([[1, 2], [3, 4]]) == 10


def test_called_with_variables_it_gives_an_expression():
    f = rs.compile(lambda x: x * 2)
    x = rs.dscalar("x")
    assert rs.eval(f(x) + 1, {x: 3.0}) == 7


def test_methods():
    class Thing:
        factor = 3.0

        @rs.compile
        def scaled(self, x):
            return x * self.factor

    assert Thing().scaled(2.0) == 6


def test_shared_variables_and_updates():
    count = rs.shared(np.int64(0))

    @rs.compile
    def f(x):
        return rs.loop(lambda x: (x + count, {count: count + 1}), x).sum()

    assert f(np.zeros(3)) == 3
    assert f(np.zeros(3)) == 3 + 4 + 5


def test_mistakes():
    f = rs.compile(lambda x: x)
    with pytest.raises(rs.RscanError, match="missing a required argument"):
        f()
    with pytest.raises(rs.RscanError, match="is an array of"):
        f(np.array(["a"]))
    with pytest.raises(rs.RscanError):
        rs.compile(3)
    assert rs.compile(f) is f
    assert rs.compile(name="g")(lambda x: x)._name == "g"


class TestValueAndGrad:
    def test_is_kept_on_the_function(self):
        def f(x):
            return x**2

        assert rs.value_and_grad(f) is rs.value_and_grad(f)
        assert rs.value_and_grad(f) is not rs.value_and_grad(f, wrt=(0,))
        compiled = rs.compile(f)
        assert rs.value_and_grad(compiled) is rs.value_and_grad(compiled)

    def test_value_and_gradient(self):
        value, gradient = rs.value_and_grad(lambda x, y: (x**2).sum() * y)(np.array([1.0, 2.0]), 3.0)
        assert isinstance(value, np.float64) and value == 15
        np.testing.assert_array_equal(gradient, [6, 12])

    def test_several_arguments_by_position_and_name(self):
        value, (gy, gx) = rs.value_and_grad(lambda x, y: x**2 * y, wrt=("y", 0))(2.0, 3.0)
        assert (value, gy, gx) == (12, 4, 12)
        value, gy = rs.value_and_grad(lambda x, y: x**2 * y, wrt=-1)(2.0, 3.0)
        assert gy == 4

    def test_structures(self):
        value, gradient = rs.value_and_grad(lambda p: p["a"] ** 2 + p["b"][0] * 3)({"a": 2.0, "b": [5.0]})
        assert (value, gradient) == (19, {"a": 4.0, "b": [3.0]})

    def test_aux(self):
        (value, aux), gradient = rs.value_and_grad(lambda x: (x**2, {"twice": 2 * x}), has_aux=True)(3.0)
        assert (value, aux["twice"], gradient) == (9, 6, 6)

    def test_an_argument_without_influence_has_zero_gradient(self):
        assert rs.value_and_grad(lambda x, y: y**2)(1.0, 2.0) == (4, 0)

    def test_unknown_argument(self):
        with pytest.raises(rs.RscanError, match="the arguments are x"):
            rs.value_and_grad(lambda x: x, wrt="y")(1.0)

    def test_scipy_minimises(self):
        optimize = pytest.importorskip("scipy.optimize")

        @rs.compile
        def rosenbrock(x):
            return rs.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

        options = {"ftol": 1e-15, "gtol": 1e-9}
        found = optimize.minimize(rs.value_and_grad(rosenbrock), np.zeros(4), jac=True, method="L-BFGS-B", options=options)
        np.testing.assert_allclose(found.x, np.ones(4), rtol=1e-5)

    def test_garch_likelihood(self):
        """The model of the benchmark: two states with taps, by name."""

        @rs.compile
        def nll(p, y, e_init, s0):
            c, phi, th1, th2, om, al, be = (p[k] for k in range(7))

            def step(y, e, s):
                (y_tm1, y_t), (e_tm2, e_tm1) = y, e
                return dict(e=y_t - c - phi * y_tm1 - th1 * e_tm1 - th2 * e_tm2, s=om + al * e_tm1**2 + be * s)

            out = rs.scan(step, sequences=dict(y=rs.taps(y, -1, 0)), init=dict(e=rs.taps(e_init, -2, -1), s=s0))
            return 0.5 * rs.sum(rs.log(out.s) + out.e**2 / out.s)

        p, y = np.array([0.1, 0.2, 0.3, 0.1, 0.1, 0.1, 0.5]), np.random.default_rng(0).normal(size=20)
        value, gradient = rs.value_and_grad(nll)(p, y, np.zeros(2), 1.0)

        def plain(p):
            c, phi, th1, th2, om, al, be = p
            e, s, total = [0.0, 0.0], 1.0, 0.0
            for t in range(1, 20):
                new_s = om + al * e[-1] ** 2 + be * s
                e.append(y[t] - c - phi * y[t - 1] - th1 * e[-1] - th2 * e[-2])
                s = new_s
                total += np.log(s) + e[-1] ** 2 / s
            return 0.5 * total

        np.testing.assert_allclose(value, plain(p))
        np.testing.assert_allclose(gradient, rs.numeric_grad(plain, [p])[0], rtol=1e-7)


class TestQuickCalls:
    """Calls after the first one with such arguments go another way, and give the same."""

    Point = collections.namedtuple("Point", "x y")

    @dataclasses.dataclass
    class Model:
        w: object
        b: object = 1.0

    def calls(self):
        a, b = np.array([1.0, 2.0]), np.array([10.0, 20.0])
        Point, Model = self.Point, self.Model
        return {
            "named": (lambda x, y, z: x - 2 * y + 3 * z, [((a,), dict(z=b, y=2.0)), ((b,), dict(z=a, y=3.0)), ((a,), dict(y=b, z=a))]),
            "defaults": (lambda x, y=2.0, z=None, *, w=5.0: x - y * w, [((a,), {}), ((b,), dict(w=3.0)), ((a, 4.0), {}), ((b, 4.0), {})]),
            "dicts": (lambda p: p["a"] - p["b"], [(({"a": a, "b": a},), {}), (({"b": a, "a": b},), {}), (({"a": a, "b": b},), {})]),
            "nested": (
                lambda p, q: p["m"].w - p["m"].b * p["t"][0].y + q[1],
                [(({"m": Model(a, b), "t": (Point(a, b),)}, [a, 2.0]), {}), (({"m": Model(b, a), "t": (Point(a, 3 * b),)}, [b, 4.0]), {})],
            ),
            "texts": (lambda x, how: x if how == "same" else -x, [((a, "same"), {}), ((a, "other"), {}), ((b, "same"), {})]),
            "many": (lambda *xs, **ys: xs[0] - xs[-1] + ys["k"], [((a, b), dict(k=a)), ((b, a), dict(k=b)), ((a, b, b), dict(k=a))]),
            "dtypes": (lambda p: p["x"] / 2, [(({"x": v},), {}) for v in (a, a.astype("f4"), 3, a[None])]),
            "lists": (lambda x: rs.sum(x[0]), [(([a, b],), {}), (([1.0, 2.0],), {}), (([b, a],), {}), (([3.0, 1.0],), {})]),
        }

    @pytest.mark.parametrize("case", ["named", "defaults", "dicts", "nested", "texts", "many", "dtypes", "lists"])
    def test_give_what_first_calls_give(self, case):
        fn, calls = self.calls()[case]
        f = rs.compile(fn)
        for _ in range(3):
            for args, named in calls:
                expected, got = rs.compile(fn)(*args, **named), f(*args, **named)
                same(np.asarray(got), np.asarray(expected))
                assert type(got) is type(expected)

    def test_arguments_left_out_are_what_their_defaults_are(self):
        seen = []

        def f(x, flag=False, how="double", none=None, n=2, more=np.ones(2), *, last=3.0):
            seen.append((flag, how, none, n, type(more), last))
            y = x if flag else -x
            for _ in range(n):
                y = y * 2 if how == "double" else y
            return y * more + last

        g, a = rs.compile(f), np.array([1.0, 2.0])
        for _ in range(3):
            np.testing.assert_array_equal(g(a), [-1.0, -5.0])
            np.testing.assert_array_equal(g(a, last=1.0), [-3.0, -7.0])
            np.testing.assert_array_equal(g(a, how="same"), [2.0, 1.0])
        assert [s[:4] for s in seen] == [(False, "double", None, 2), (False, "double", None, 2), (False, "same", None, 2)]
        assert seen[0][4] is np.ndarray and seen[0][5] == 3.0 and isinstance(seen[1][5], rs.Variable)
        assert g(a.astype("f4"), more=np.ones(2, "f4")).dtype == "float32"
        np.testing.assert_allclose(rs.compile(rs.linalg.cholesky)(4 * np.eye(2)), 2 * np.eye(2))
        with pytest.raises(rs.RscanTypeError, match="missing a required argument"):
            g()

    def test_arrays_are_constants_where_it_is_called_while_another_is_traced(self):
        table, rows = np.array([1.0, 2.0, 4.0]), {"m": np.arange(6.0).reshape(3, 2)}
        pick = rs.compile(lambda t, k, r, n=2: t[k] * r["m"][k : k + 1].sum() * n)
        assert pick(table, 1, rows) == 20.0
        assert rs.compile(lambda k: pick(table, k, rows))(1) == 20.0
        assert rs.compile(lambda k: pick(table, k, rows, n=3))(1) == 30.0
        f = rs.compile(lambda w, x, how: rs.sum(w * x[1:].mean()) if how == "mean" else w, static="how")
        assert rs.grad(lambda w: f(w, table, "mean"))(2.0) == 3.0
        doubled = rs.compile(lambda x, n: [x * k for k in range(n)][-1])
        assert rs.compile(lambda x: doubled(x, 3))(2.0) == 4.0, "numbers stay numbers"

    def test_results_keep_their_structure(self):
        f = rs.compile(lambda p: (p["a"], {"b": [p["b"], None], "c": self.Point(p["a"], "text")}))
        first, second = f({"a": 1.0, "b": 2.0}), f({"a": 1.0, "b": 2.0})
        assert first == second == (1.0, {"b": [2.0, None], "c": self.Point(1.0, "text")})
        assert type(second[1]["c"]) is self.Point

    def test_variables_in_them_give_variables(self):
        f, x = rs.compile(lambda p: p["a"] * 2), rs.dscalar("x")
        assert f({"a": 1.0}) == 2.0 and isinstance(f({"a": x}), rs.Variable) and f({"a": 3.0}) == 6.0

    def test_the_default_float_is_asked_each_time(self):
        f = rs.compile(lambda p: p["a"] * 2)
        assert f({"a": 1.0}).dtype == "float64"
        with rs.config.override(floatX="float32"):
            assert f({"a": 1.0}).dtype == "float32"
        assert f({"a": 1.0}).dtype == "float64"


def test_static_arguments():
    @rs.compile(static=("n", "square"))
    def f(x, n, square=False):
        for _ in range(n):
            x = x * x if square else 2 * x
        return rs.sum(x)

    x = np.array([1.0, 3.0])
    assert (f(x, 2), f(x, 2, square=True), f(x, n=0), f.n_variants) == (16, 82, 4, 3)
    assert f(x, 2) == 16 and f(2 * x, 2) == 32 and f.n_variants == 3
    assert f(x, True) == 8 and f.n_variants == 4  # Not the variant of 1, which is equal.
    np.testing.assert_array_equal(rs.grad(f)(x, 3), [8, 8])
    value, slope = rs.value_and_grad(f)(x, 1, True)
    assert value == 10 and slope.tolist() == [2, 6]
    np.testing.assert_array_equal(rs.hessian(f)(x, 1, square=True), 2 * np.eye(2))
    np.testing.assert_array_equal(rs.jacobian(f)(x, n=2), [4, 4])
    np.testing.assert_array_equal(rs.jvp(lambda x: f(x, 2), (x,), (x,))[1], 16)
    v = rs.dvector("v")
    assert f(v, 2).eval({v: x}) == 16
    assert f.lower(x, 1)(x) == [8]
    names = rs.compile(lambda x, kind: x + 1 if kind == ("a", 1) else x - 1, static="kind")
    assert (names(1.0, ("a", 1)), names(1.0, ("a", 2))) == (2, 0)
    again = pickle.loads(pickle.dumps(rs.compile(_times, static="n")))
    assert again(2.0, 3) == 8.0
    assert rs.compile(rs.compile(_times), static="n")(2.0, 3) == 8.0


def _times(x, n):
    return x**2 if n == 2 else x * x * x if n == 3 else x


class TestLookingInside:
    """What functions of `rs.function` tell, for one kind of arguments or for what was traced last."""

    @staticmethod
    def total(x):
        return rs.loop(lambda x, s: s + x, over=x, init=0.0, name="total").last

    def test_of_the_arguments_of_a_call(self):
        f = rs.compile(self.total)
        assert f.explain(np.ones(3)).loops[0].name == "total" and f.n_variants == 1
        assert "f32[" in f.text(np.ones(3, "float32")) and "f64[" in f.text(np.ones(3)) and f.n_variants == 2
        assert f.text(np.ones(3)) != f.text(np.ones(3), optimised=True) == f.lower(np.ones(3)).text(True)
        assert rs.grad(f).explain(np.ones(3)).loops and rs.value_and_grad(f).text(x=np.ones(3)).startswith("fn ")

    def test_of_what_was_traced_last(self):
        f = rs.compile(self.total)
        f(np.ones(3))
        assert "f64[" in f.text() and f.explain().loops[0].variants
        f(np.ones(3, "float32"))
        assert "f32[" in f.text()
        assert rs.compile(lambda: rs.constant(1.0)).text().startswith("fn ")

    def test_before_any_call(self):
        with pytest.raises(rs.RscanTypeError, match=r"explain wants the arguments of a call, \.explain\(x\), or that it was called before"):
            rs.compile(self.total).explain()

    def test_profiles(self):
        f = rs.compile(self.total, profile=True)
        assert f.profile is None
        f(np.ones(3))
        f(np.ones(3))
        assert f.profile.calls == 2 and f.profile.loops[1].name == "total"
        gradient = rs.grad(f)
        gradient(np.ones(3))
        assert gradient.profile.calls == 1
        assert rs.compile(f, profile="again") is not f and rs.compile(f) is f and rs.compile(f, profile=True) is f
        plain = rs.compile(self.total)
        plain(np.ones(3))
        assert plain.profile is None

    @pytest.mark.parametrize("name", ["explain", "profile", "text"])
    def test_of_functions_of_variables(self, name):
        with pytest.raises(AttributeError, match=rf"rs\.compile\(rs\.vmap\(f\)\) has `{name}`"):
            getattr(rs.vmap(self.total), name)
        with pytest.raises(AttributeError, match="no attribute 'expl'"):
            rs.vmap(self.total).expl


def test_wrong_static_arguments():
    with pytest.raises(rs.RscanTypeError, match="has no argument 'y' to be static"):
        rs.compile(lambda x: x, static="y")
    with pytest.raises(rs.RscanTypeError, match="got list for a static argument, which is hashable"):
        rs.compile(lambda x, n: x, static="n")(1.0, [1])
    with pytest.raises(rs.RscanTypeError, match=r"rs\.compile\(static=") as caught:
        rs.compile(lambda x, n: sum(x for _ in range(n)))(1.0, 3)
    assert caught.value.code == "E0802"
    with pytest.raises(rs.RscanTypeError, match=r"rs\.compile\(static="):
        rs.compile(lambda x, flag: x if flag else 2 * x)(1.0, True)


Pair = collections.namedtuple("Pair", "first second")


def test_calls_alike_give_what_the_first_gave():
    """The first call of a kind of arguments is traced, those after it go another way."""
    a, b = np.arange(3.0), np.array([2.0, 4.0, 8.0])
    calls: list[tuple[Any, ...]] = [
        (a, b),
        (a.astype("float32"), 2),
        (2, True),
        (np.int64(3), np.float32(2)),
        ({"x": a, "y": [b, a]}, 1.5),
        ({"y": [b, a], "x": a}, 1.5),
        ((a, (b, 2.0)), [1.0, 2.0, 3.0]),
        (Pair(a, Model(b, None)), "text"),
        (Model(1.0, {"w": np.int8(3)}), None),
        (a.astype(">f8"), b[::-1]),
        (np.array(2.0), a[:0]),
    ]

    @rs.compile
    def f(x, y=2.0):
        leaves, tree = _tree.flatten((x, y), lambda v: isinstance(v, rs.Variable))
        x, y = tree.build(iter([v if v is None or isinstance(v, str) else v * 2 for v in leaves]))
        return {"x": x, "y": y, "kept": (None, "text")}

    for args in calls:
        first = f(*args)
        for again in (f(*args), f(args[0], y=args[1])):
            assert list(again) == list(first) and again["kept"] == (None, "text")
            same_structure(first, again)


def same_structure(first: Any, again: Any) -> None:
    assert type(first) is type(again)
    if isinstance(first, dict):
        assert list(first) == list(again)
        first, again = list(first.values()), list(again.values())
    if dataclasses.is_dataclass(first):
        first, again = list(vars(first).values()), list(vars(again).values())
    if isinstance(first, (list, tuple)):
        for one, other in zip(first, again, strict=True):
            same_structure(one, other)
    elif isinstance(first, np.ndarray):
        same(again, first)
    else:
        assert first == again


@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"])
def test_results_without_axes_are_numbers_of_their_dtype(dtype):
    f = rs.compile(lambda x: (x[1], x))
    x = np.array([0, 1]).astype(dtype)
    for _ in range(3):
        one, all = f(x)
        assert type(one) is np.dtype(dtype).type and one == x[1]
        same(all, x)


def test_numbers_that_do_not_fit_are_errors_in_later_calls_as_in_the_first():
    f = rs.compile(lambda n: n + 1)
    assert f(1) == 2 and f(2) == 3
    with pytest.raises((rs.RscanError, OverflowError)):
        f(2**70)
    assert f(3) == 4


def test_structures_that_hold_themselves_or_are_deep():
    f = rs.compile(lambda x: 1.0)
    x: Any = {}
    x["x"] = x
    for _ in range(2):
        with pytest.raises(RecursionError):
            f(x)
    deep: Any = np.ones(2)
    for _ in range(100):
        deep = (deep,)
    g = rs.compile(lambda x: rs.sum(_tree.flatten(x)[0][0]))
    assert [float(g(deep)) for _ in range(3)] == [2.0, 2.0, 2.0]


def test_keys_that_change_their_dict_do_no_harm():
    class Key(str):
        def __hash__(self):
            given.pop("b", None)
            return super().__hash__()

        __eq__ = str.__eq__

    given: dict[str, Any] = {}
    f = rs.compile(lambda x: rs.sum(x["a"]))
    for _ in range(3):
        given.clear()
        given.update({"a": np.ones(2)})
        given[Key("c")] = np.ones(3)
        given["b"] = np.ones(1)
        assert f(given) == 2.0


def test_what_remembers_a_class_goes_with_it():
    def made() -> weakref.ref[Any]:
        @dataclasses.dataclass
        class Own:
            w: Any

            step = rs.compile(lambda self: rs.sum(self.w))

        own = Own(np.ones(3))
        assert own.step() == 3.0 and own.step() == 3.0
        _quick._FIELDS.clear()
        return weakref.ref(Own)

    gone = made()
    gc.collect()
    assert gone() is None


def test_errors_of_later_calls_say_what_those_of_the_first_say():
    @rs.compile
    def f(x, h):
        return rs.scan(lambda row, h: row @ h, sequences=x, outputs_info=h)[0]

    def error(*args: Any) -> str:
        with pytest.raises(rs.ShapeError) as caught:
            f(*args)
        return str(caught.value)

    bad = np.ones((2, 3, 3)), np.ones(4)
    first = error(*bad)
    assert f(np.ones((2, 3, 3)), np.ones(3)).shape == (2, 3)
    assert error(*bad) == first
