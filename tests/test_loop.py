"""`rs.loop`: arguments by name, structures as states, results by name."""

import dataclasses
import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest

import rscan as rs

XS = np.array([1.0, 2.0, 4.0])


def run(outputs, **values):
    """The values of outputs, given inputs by name."""
    return rs.eval(outputs, values)


def test_by_name():
    xs, h0, c = rs.dvector("xs"), rs.dscalar("h0"), rs.dscalar("c")
    out = rs.loop(lambda c, h, x: dict(h=h * c + x, y=h - x), over=dict(x=xs), init=dict(h=h0), given=dict(c=c))
    assert isinstance(out, rs.Loop)
    assert out.keys() == ["h", "y"] and len(out) == 2 and "h" in out
    assert out["h"] is out.h and out[1] is out.y
    h, y = out
    np.testing.assert_array_equal(run([h, y], xs=XS, h0=1.0, c=2.0), [[3, 8, 20], [0, 1, 4]])
    assert run(out.steps, xs=XS, h0=1.0, c=2.0) == 3
    with pytest.raises(AttributeError, match="it has h, y"):
        out.z


def test_several_rows_arrive_as_a_tuple():
    """The example of the design: an echo state network with feedback."""
    rng = np.random.default_rng(0)
    w, w_in, w_in2, w_fb, w_out = (0.3 * rng.normal(size=s) for s in [(3, 3), (2, 3), (2, 3), (2, 3), (3, 2)])
    u, x0, y0 = rs.dmatrix("u"), rs.dmatrix("x0"), rs.dvector("y0")

    def step(u, x, y):
        (u_tm4, u_t), (x_tm3, x_tm1) = u, x
        return dict(x=rs.tanh(x_tm1 @ w + u_t @ w_in + u_tm4 @ w_in2 + y @ w_fb), y=x_tm3 @ w_out)

    out = rs.loop(step, over=dict(u=rs.taps(u, -4, 0)), init=dict(x=rs.taps(x0, -3, -1), y=y0))
    values = {u: rng.normal(size=(9, 2)), x0: rng.normal(size=(3, 3)), y0: rng.normal(size=2)}
    x_rows, y_rows = rs.function(list(values), [out.x, out.y])(*values.values())
    past, y = list(values[x0]), values[y0]
    for t in range(5):
        row = np.tanh(past[-1] @ w + values[u][t + 4] @ w_in + values[u][t] @ w_in2 + y @ w_fb)
        y = past[-3] @ w_out
        past.append(row)
        np.testing.assert_allclose(x_rows[t], row)
        np.testing.assert_allclose(y_rows[t], y)
    rs.verify_grad(rs.sum(out.x**2) + rs.sum(out.y), values)


def test_in_order():
    xs = rs.dvector("xs")
    out = rs.loop(lambda x, a, b, c: (a + x, b * x, c * x), [xs], [0.0, 1.0], given=[10.0])
    found = run(list(out), xs=XS)
    np.testing.assert_array_equal(found, [[1, 3, 7], [1, 2, 8], [10, 20, 40]])


def test_one_value_without_a_name_is_a_variable():
    x0, r = rs.dscalar("x0"), rs.dscalar("r")
    xs = rs.loop(lambda x, r: r * x * (1 - x), init=x0, given=r, n_steps=4)
    assert isinstance(xs, rs.LoopOutput)
    x, expected = 0.3, []
    for _ in range(4):
        x = 3.7 * x * (1 - x)
        expected.append(x)
    np.testing.assert_allclose(run(xs, x0=0.3, r=3.7), expected)
    np.testing.assert_allclose(run(xs[-1], x0=0.3, r=3.7), expected[-1])
    assert run(xs.steps, x0=0.3, r=3.7) == 4


def test_scan_with_init_is_loop():
    xs = rs.dvector("xs")
    out = rs.scan(lambda x, s: dict(s=s + x), sequences=dict(x=xs), init=dict(s=0.0))
    np.testing.assert_array_equal(run(out.s, xs=XS), [1, 3, 7])


@dataclasses.dataclass
class Motion:
    position: Any
    velocity: Any


class Pair(NamedTuple):
    first: Any
    second: Any


class TestStructures:
    def motion(self, state, dt=0.1):
        return Motion(state.position + dt * state.velocity, state.velocity - dt * state.position)

    def expected(self):
        p, v, rows = 1.0, 0.0, []
        for _ in range(5):
            p, v = p + 0.1 * v, v - 0.1 * p
            rows.append((p, v))
        return np.array(rows).T

    def test_dataclass_alone(self):
        out = rs.loop(self.motion, init=Motion(1.0, 0.0), n_steps=5)
        np.testing.assert_allclose(run([out.position, out.velocity]), self.expected())

    def test_dataclass_by_name(self):
        out = rs.loop(lambda body: dict(body=self.motion(body), e=body.position**2), init=dict(body=Motion(1.0, 0.0)), n_steps=5)
        assert isinstance(out.body, Motion)
        np.testing.assert_allclose(run([out.body.position, out.body.velocity]), self.expected())

    def test_nested(self):
        def step(x, s):
            return dict(s=dict(b=[s["b"][0] + x, s["b"][1] * x], a=Pair(s["a"].second, s["a"].first + x)))

        out = rs.loop(step, over=dict(x=rs.dvector("xs")), init=dict(s=dict(a=Pair(0.0, 1.0), b=[0.0, 1.0])))
        assert isinstance(out.s["a"], Pair)
        found = run([out.s["a"].first, out.s["a"].second, *out.s["b"]], xs=XS)
        np.testing.assert_array_equal(found, [[1, 1, 3], [1, 3, 5], [1, 3, 7], [1, 2, 8]])

    def test_structures_of_sequences_and_given(self):
        a, b = rs.dvector("a"), rs.dvector("b")
        out = rs.loop(lambda row, k: row["p"] * row["q"][0] + k["c"], over=dict(row=dict(p=a, q=[b])), given=dict(k=dict(c=5.0)))
        np.testing.assert_array_equal(run(out, a=XS, b=XS), XS**2 + 5)

    def test_tuple_states_in_order(self):
        out = rs.loop(lambda x, s: ((s[1], s[0] + x),), over=[rs.dvector("xs")], init=[(0.0, 1.0)])
        found = run(list(out[0]), xs=XS)
        np.testing.assert_array_equal(found, [[1, 1, 3], [1, 3, 5]])

    def test_another_structure_is_an_error(self):
        with pytest.raises(rs.RscanError, match="E0105") as caught:
            rs.loop(lambda s: dict(s=(s[0], s[1], s[0])), init=dict(s=(0.0, 1.0)), n_steps=2)
        assert "changes its structure" in str(caught.value)


class TestOptions:
    xs = rs.dvector("xs")

    def test_reverse_keeps_the_order_of_the_rows(self):
        out = rs.loop(lambda x, s: dict(s=2 * s + x, x=x), dict(x=self.xs), dict(s=0.0), reverse=True)
        np.testing.assert_array_equal(run([out.s, out.x], xs=XS), [[21, 10, 4], [1, 2, 4]])

    def test_go_backwards_keeps_the_order_of_the_steps(self):
        out = rs.loop(lambda x, s: dict(s=2 * s + x), dict(x=self.xs), dict(s=0.0), go_backwards=True)
        np.testing.assert_array_equal(run(out.s, xs=XS), [4, 10, 21])

    def test_until(self):
        out = rs.loop(lambda s: (dict(s=2 * s), rs.until(s > 10)), init=dict(s=1.0), n_steps=100)
        np.testing.assert_array_equal(run([out.s, out.steps])[0], [2, 4, 8, 16, 32])
        assert run(out.steps) == 5

    def test_strict(self):
        w = rs.shared(2.0, name="w")
        with pytest.raises(rs.RscanError, match="E0113"):
            rs.loop(lambda x: x * w, self.xs, strict=True)
        rs.loop(lambda x, w: x * w, self.xs, given=w, strict=True)

    @pytest.mark.parametrize("k", [1, 2, 5])
    def test_truncate(self, k):
        s = rs.loop(lambda x, s: s * x, self.xs, 1.0, truncate=k)
        expected = np.array([0.0 if t < 3 - k else 8 / XS[t] for t in range(3)])
        np.testing.assert_allclose(rs.eval(rs.grad(s[-1], self.xs), {self.xs: XS}), expected)

    @pytest.mark.parametrize("window", [1, 2, 3, 4])
    def test_window_cuts_the_gradient_of_states(self, window):
        """As if each window were a loop of its own that starts from a constant."""
        xs, s0 = rs.dvector("x"), rs.dscalar("s0")
        s = rs.loop(lambda x, s: rs.sin(s) + x, xs, s0, window=window)
        value = np.array([0.3, -0.2, 0.5, 0.9, 1.1])
        found = rs.function([xs, s0], [s, *rs.grad(s.sum(), [xs, s0])])(value, 0.4)
        state, rows, first = s0, [], rs.dscalar("unused")
        for t in range(5):
            if t % window == 0 and t > 0:
                state = rs.stop_gradient(state)
            state = rs.sin(state) + xs[t]
            rows.append(state)
        del first
        plain = rs.stack(rows)
        expected = rs.function([xs, s0], [plain, *rs.grad(plain.sum(), [xs, s0])])(value, 0.4)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b)

    def test_one_step(self):
        out = rs.loop(lambda x, s: dict(s=s + x, y=x), dict(x=self.xs), dict(s=5.0), n_steps=1)
        np.testing.assert_array_equal(run([out.s, out.y], xs=XS), [[6], [1]])
        assert run(out.steps) == 1


class TestUpdates:
    def test_they_travel_by_themselves(self):
        count = rs.shared(np.int64(0), name="count")
        out = rs.loop(lambda x: (x * 2, {count: count + 1}), rs.constant(XS))
        f = rs.function([], out.sum())
        assert f() == 14
        assert count.get_value() == 3
        assert list(out.updates) == [count]

    @pytest.mark.parametrize("n_steps", [1, 3])
    def test_out_of_inner_loops(self, n_steps):
        count = rs.shared(np.int64(0), name="count")

        def outer(s):
            inner = rs.loop(lambda: (count * 1, {count: count + 1}), n_steps=2)
            return s + inner.sum()

        out = rs.loop(outer, init=rs.constant(np.int64(0)), n_steps=n_steps)
        f = rs.function([], out[-1])
        assert f() == sum(range(2 * n_steps))
        assert count.get_value() == 2 * n_steps
        assert f() == sum(range(2 * n_steps, 4 * n_steps))

    def test_explicit_ones_win(self):
        count = rs.shared(np.int64(0), name="count")
        out = rs.loop(lambda x: (x * 2, {count: count + 1}), rs.constant(XS))
        rs.function([], out, updates={count: count + 100})()
        assert count.get_value() == 100

    def test_through_a_gradient(self):
        count = rs.shared(np.float64(1), name="count")
        x = rs.dscalar("x")
        out = rs.loop(lambda s: (s * x * count, {count: count + 1}), init=rs.constant(1.0), n_steps=3)
        f = rs.function([x], rs.grad(out[-1], x))
        np.testing.assert_allclose(f(2.0), 3 * 4 * 6)
        assert count.get_value() == 4


@pytest.mark.parametrize(
    "code, arguments",
    [
        ("E0105", dict(step=lambda x, h: dict(y=x), over=dict(x=rs.dvector()), init=dict(h=0.0))),
        ("E0105", dict(step=lambda a, b: a + b, init=[0.0, 1.0], n_steps=2)),
        ("E0121", dict(step=lambda x: x, over={1: rs.dvector()})),
        ("E0121", dict(step=lambda x: x, over=dict(x="rows"))),
        ("E0121", dict(step=lambda x: x, over=rs.dvector(), window=0)),
        ("E0122", dict(step=lambda y: y, over=dict(x=rs.dvector()))),
        ("E0122", dict(step=lambda x, y: y, over=dict(x=rs.dvector()))),
        ("E0107", dict(step=lambda x: rs.until(x > 1), over=rs.dvector())),
        ("E0114", dict(step=rs.compile(lambda x: x), over=rs.dvector())),
        ("E0112", dict(step=lambda x: x, init=rs.taps(rs.dvector(), 0), n_steps=2)),
        ("E0110", dict(step=lambda x: x, init=0.0)),
    ],
)
def test_mistakes(code, arguments):
    with pytest.raises(rs.RscanError) as caught:
        rs.loop(**arguments)
    assert caught.value.code == code


def test_taps_as_scan_has_them():
    x, start = np.arange(5.0), np.arange(2.0)
    one = rs.loop(lambda u: dict(y=u[0] + u[1]), over=dict(u=dict(input=x, taps=[-1, 0]))).y
    alone = rs.loop(lambda u: u[0] + u[1], over=dict(input=x, taps=(-1, 0)))
    single = rs.loop(lambda u: u, over=[dict(input=x, taps=-1)])
    assert one.eval().tolist() == alone.eval().tolist() == [1.0, 3.0, 5.0, 7.0] and single.eval().tolist() == [0.0, 1.0, 2.0, 3.0]
    state = rs.loop(lambda u: dict(u=u[0] + u[1]), init=dict(u=dict(initial=start, taps=[-2, -1])), n_steps=3)
    assert state.u.eval().tolist() == [1.0, 2.0, 3.0]
    # Sequences that have these names are what they are.
    both = rs.loop(lambda input, taps: input * taps, over=dict(input=x, taps=rs.constant(x)))
    assert both.eval().tolist() == (x * x).tolist()


def test_taps_need_integers():
    with pytest.raises(rs.RscanError, match="E0121"):
        rs.taps(rs.dvector())
    with pytest.raises(rs.RscanError, match="E0121"):
        rs.taps(rs.dvector(), 0.5)


@pytest.mark.parametrize("names", [("over", "init"), ("over", "given"), ("init", "given")])
def test_a_name_stands_for_one_thing(names):
    with pytest.raises(rs.errors.ScanError, match=f"`x` is in `{names[0]}` and in `{names[1]}`") as caught:
        rs.loop(lambda x: {"x": x}, n_steps=2, **{name: {"x": np.zeros((2, 3))} for name in names})
    assert caught.value.code == "E0122"


class TestLast:
    """The value after the last step, which is the initial one where no step ran."""

    def test_no_step_leaves_the_initial_value(self):
        n, w = rs.iscalar("n"), rs.dscalar("w")
        out = rs.loop(lambda x: 2 * x, init=w, n_steps=n)
        f = rs.function([w, n], [out.last, rs.grad(out.last, w)])
        assert [v.tolist() for v in f(3.0, 0)] == [3, 1] and [v.tolist() for v in f(3.0, 3)] == [24, 8]
        with pytest.raises(rs.RscanError, match="E0202"):
            rs.function([w, n], out[-1])(3.0, 0)

    def test_names_structures_and_directions(self):
        n = rs.iscalar("n")
        start = dict(p={"a": 1.0, "b": [2.0]}, q=rs.taps(rs.constant([1.0, 5.0]), -2, -1))
        out = rs.loop(lambda p, q: dict(p={"a": p["a"] + 1, "b": [p["b"][0] * 2]}, q=q[0] + q[1], y=p["a"]), init=start, n_steps=n)
        f = rs.function([n], [out.last.p["a"], out.last.p["b"][0], out.last.q, out.last.steps])
        assert [v.tolist() for v in f(0)] == [1, 2, 5, 0] and [v.tolist() for v in f(2)] == [3, 8, 11, 2]
        assert rs.function([n], out.last.y)(2) == 2
        with pytest.raises(rs.RscanError, match="E0202"):
            rs.function([n], out.last["y"])(0)
        back = rs.loop(lambda x, h: 10 * h + x, over=rs.constant([1.0, 2.0, 3.0]), init=0.0, reverse=True)
        assert rs.eval(back).tolist() == [321, 32, 3] and rs.eval(back.last) == 321
        one = rs.loop(lambda h: 2 * h, init=1.5, n_steps=1)
        assert rs.eval(one.last) == 3

    def test_a_loop_that_ends_early(self):
        n = rs.iscalar("n")
        out = rs.loop(lambda x: (2 * x, rs.until(x > 20)), init=1.0, n_steps=n)
        f = rs.function([n], [out.last, out.steps])
        assert [v.tolist() for v in f(50)] == [64, 6] and [v.tolist() for v in f(0)] == [1, 0]

    def test_in_a_loop_and_for_many_rows(self):
        n, x = rs.iscalar("n"), rs.dvector("x")
        inner = lambda s: rs.loop(lambda q: q * 0.5, init=s, n_steps=n).last
        f = rs.function([n], rs.loop(lambda s: s + inner(s), init=1.0, n_steps=3))
        assert f(0).tolist() == [2, 4, 8] and f(1).tolist() == [1.5, 2.25, 3.375]
        assert rs.function([x, n], rs.vmap(inner)(x))([4.0, 8.0], 2).tolist() == [1, 2]

    def test_pickled(self):
        n = rs.iscalar("n")
        again, m = pickle.loads(pickle.dumps((rs.loop(lambda h: dict(h=2 * h), init=dict(h=1.0), n_steps=n), n)))
        f = rs.function([m], [again.h, again.last.h])
        assert [v.tolist() for v in f(2)] == [[2, 4], 4] and f(0)[1] == 1

    def test_a_state_as_a_dataclass(self):
        out = rs.loop(lambda s: Both(s.b, s.a + s.b), init=Both(0.0, 1.0), n_steps=5)
        assert rs.eval(out.last.a) == 5 and rs.eval(out.last.b) == 8


@dataclasses.dataclass
class Both:
    a: Any
    b: Any


def test_outputs_come_before_methods_of_their_name():
    init = dict(values=1.0, items=2.0, last=3.0)
    out = rs.loop(lambda values, items, last: dict(values=values + 1, items=items, last=last), init=init, n_steps=2)
    assert rs.eval(out.values).tolist() == [2, 3] and rs.eval(out.items).tolist() == [2, 2] and rs.eval(out["last"]).tolist() == [3, 3]
    assert [rs.eval(v).tolist() for v in out] == [[2, 3], [2, 2], [3, 3]] and len(out) == 3 and "items" in out
    assert out.keys() == ["values", "items", "last"] and "values=" in repr(out)


def test_a_compiled_function_returns_a_loop_of_arrays():
    f = rs.compile(lambda x: rs.loop(lambda h, k: dict(h=h * x, k=k + 1), init=dict(h=1.0, k=0), n_steps=3))
    out = f(2.0)
    assert isinstance(out, rs.Loop) and out.h.tolist() == [2, 4, 8] and out.k.tolist() == [1, 2, 3]
    assert (out.steps, out.last.h, out["h"][-1]) == (3, 8, 8)
    nested = rs.compile(lambda x: {"out": rs.loop(lambda h: dict(h=h * x), init=dict(h=1.0), n_steps=2), "x": x})(3.0)
    assert nested["out"].h.tolist() == [3, 9]
    rows = rs.vmap(lambda x: rs.loop(lambda h: dict(h=h * x), init=dict(h=1.0), n_steps=2))(rs.constant([1.0, 2.0]))
    assert rs.eval(rows.h).tolist() == [[1, 1], [2, 4]]


def test_hints():
    x = rs.dvector("x")
    with pytest.raises(rs.RscanError, match=r"x0 = x\[0\]"):
        rs.grad(x[0] ** 2, x[0])
    with pytest.raises(rs.RscanError) as caught:
        rs.grad(x[0] ** 2, rs.dscalar("y"))
    assert "x0" not in str(caught.value)
    with pytest.raises(rs.ScanError, match=r"rs\.until\(condition\)"):
        rs.scan(lambda h: (h + 1, h > 3), outputs_info=1.0, n_steps=10)
    with pytest.raises(rs.ScanError) as caught:
        rs.scan(lambda h: (h + 1, h - 3), outputs_info=1.0, n_steps=10)
    assert "rs.until" not in str(caught.value)


@pytest.mark.parametrize("going", [lambda x: rs.where(x > 0, 0, 1), lambda x: x > 0])
def test_an_integer_that_a_number_meets_is_named(going):
    def step(x, g):
        return x + 0.9 * going(x) * g

    x = rs.tensor("float32", (None, None), name="x")
    with pytest.raises(rs.errors.ScanTypeError) as caught:
        rs.loop(step, over=dict(x=x), init=dict(g=rs.zeros(2, dtype="float32")))
    [note] = caught.value.notes
    assert caught.value.code == "E0103" and note.startswith("`mul` of ") and "the constant" not in note
    assert not any("alone" in text for text in caught.value.helps)


@pytest.mark.parametrize("far", [1, 2, 3])
def test_taps_of_a_state_have_a_row_for_each_step_that_they_reach(far):
    x = np.arange(5.0)
    rows = np.arange(far * 2.0).reshape(far, 2)
    got = rs.loop(lambda x, h: dict(h=h + x), over=dict(x=x), init=dict(h=rs.taps(rows, -far))).h.eval()
    want = list(rows)
    for k in range(5):
        want.append(want[-far] + x[k])
    np.testing.assert_array_equal(got, want[far:])
    several = rs.loop(lambda h: dict(h=[h[0] + 1, h[1] * 2]), init=dict(h=[rs.taps(rows, -far), rs.taps(1.0, -1)]), n_steps=2).h
    np.testing.assert_array_equal(several[1].eval(), [2.0, 4.0])


def test_taps_of_one_step_take_one_row():
    with pytest.raises(rs.errors.ScanError, match=r"E0104.*`h` has 3 rows; taps of -1 take one"):
        rs.loop(lambda h: h + 1, init=dict(h=rs.taps(np.zeros(3), -1)), n_steps=2)
    # In Theano's words it is the value itself.
    h, _ = rs.scan(lambda h: h + 1, outputs_info=dict(initial=np.zeros(3), taps=[-1]), n_steps=2)
    assert h.eval().shape == (2, 3)
