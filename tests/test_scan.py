"""`scan` against loops in Python: values, gradients, arguments, and what a step may return."""

import numpy as np
import pytest
from unrolled import Case, weighted

import rscan as rs

R = np.random.default_rng(7)


def n(*shape):
    return R.normal(size=shape)


W, V = 0.5 * n(3, 3), 0.5 * n(2, 3)

CASES = {
    "map": Case(lambda x: np.tanh(x) * 2, {"x": n(5)}, [("x", [0])]),
    "map of rows": Case(lambda x, a: x @ a, {"x": n(4, 3), "a": W}, [("x", [0])], rest=["a"]),
    "two outputs": Case(lambda x: (x * x, x + 1), {"x": n(4, 2)}, [("x", [0])]),
    "sum": Case(lambda x, s: s + x, {"x": n(6), "s": n()}, [("x", [0])], [("s", [-1])]),
    "product": Case(lambda x, s: s * x, {"x": n(6), "s": n()}, [("x", [0])], [("s", [-1])]),
    "power": Case(lambda s, a: s * a, {"s": n(3), "a": n(3)}, [], [("s", [-1])], ["a"], n_steps=4),
    "rnn": Case(
        lambda x, h, w, v: np.tanh(x @ v + h @ w),
        {"x": n(5, 2), "h": n(3), "w": W, "v": V},
        [("x", [0])],
        [("h", [-1])],
        ["w", "v"],
    ),
    "state and free output": Case(lambda x, h: (np.tanh(x + h), h * x), {"x": n(5, 2), "h": n(2)}, [("x", [0])], [("h", [-1]), (None, [])]),
    "free output first": Case(lambda x, h: (h * x, np.tanh(x + h)), {"x": n(5, 2), "h": n(2)}, [("x", [0])], [(None, []), ("h", [-1])]),
    "two states": Case(lambda a, b: (np.tanh(a + b), a * b), {"a": n(2), "b": n(2)}, [], [("a", [-1]), ("b", [-1])], n_steps=4),
    "fibonacci": Case(lambda a, b: np.sin(a) + b, {"s": n(2)}, [], [("s", [-2, -1])], n_steps=6),
    "fibonacci the other way": Case(lambda b, a: np.sin(a) + b, {"s": n(2)}, [], [("s", [-1, -2])], n_steps=6),
    "far taps": Case(lambda a, b, c: np.sin(a) * b + c, {"s": n(5, 2)}, [], [("s", [-5, -2, -1])], n_steps=7),
    "far taps, unsorted": Case(lambda a, b: np.sin(a) * b + a, {"s": n(5, 2)}, [], [("s", [-3, -5])], n_steps=7),
    "more initial rows than needed": Case(lambda a, b: np.sin(a) + b, {"s": n(4)}, [], [("s", [-2, -1])], n_steps=5),
    "one far tap": Case(lambda a: np.cos(a), {"s": n(3)}, [], [("s", [-3])], n_steps=5),
    "past of a sequence": Case(lambda a, b: a * b, {"x": n(7)}, [("x", [-4, 0])]),
    "future of a sequence": Case(lambda a, b: a - 2 * b, {"x": n(7)}, [("x", [0, 2])]),
    "only the future": Case(lambda a: a * 2, {"x": n(7)}, [("x", [3])]),
    "only the past": Case(lambda a: a * 2, {"x": n(7)}, [("x", [-2])]),
    "taps in the order listed": Case(
        lambda a, b, c, d, e: a + 2 * b + 3 * c + 5 * d + 7 * e,
        {"x": n(9), "y": n(7), "z": n(8)},
        [("x", [-3, 2, -1]), ("y", [0]), ("z", [3])],
    ),
    "the seed's network": Case(
        lambda u4, u0, x3, x1, y1, w, p, q, f, o: (np.tanh(x1 @ w + u0 @ p + u4 @ q + y1 @ f), x3 @ o),
        {"u": n(9, 2), "x": n(3, 3), "y": n(2), "w": W, "p": V, "q": 0.3 * n(2, 3), "f": n(2, 3), "o": n(3, 2)},
        [("u", [-4, 0])],
        [("x", [-3, -1]), ("y", [-1])],
        ["w", "p", "q", "f", "o"],
    ),
    "unequal lengths": Case(lambda x, y, s: s + x * y, {"x": n(7), "y": n(4), "s": n()}, [("x", [0]), ("y", [0])], [("s", [-1])]),
    "fewer steps than rows": Case(lambda x, s: s + x, {"x": n(7), "s": n()}, [("x", [0])], [("s", [-1])], n_steps=3),
    "backwards": Case(lambda x, s: 2 * s + x, {"x": n(5), "s": n()}, [("x", [0])], [("s", [-1])], go_backwards=True),
    "backwards with taps": Case(lambda a, b, c: a + 10 * b + 100 * c, {"x": n(8)}, [("x", [-2, 0, 1])], go_backwards=True),
    "backwards, fewer steps": Case(
        lambda a, b, s: s * 0.5 + a - b, {"x": n(8), "s": n()}, [("x", [-1, 0])], [("s", [-1])], n_steps=4, go_backwards=True
    ),
    "no step": Case(lambda x, s: s + x, {"x": n(4, 2), "s": n(2)}, [("x", [0])], [("s", [-1])], n_steps=0),
    "no step, a state made of a sequence": Case(
        lambda x, s: 0.5 * x + 0.1, {"x": n(5, 2, 3), "s": n(2, 3)}, [("x", [0])], [("s", [-1])], n_steps=0
    ),
    "no row": Case(lambda x, s: s + x, {"x": n(0, 2), "s": n(2)}, [("x", [0])], [("s", [-1])]),
    "one step": Case(lambda x, s: (s * x, x + 1), {"x": n(3), "s": n()}, [("x", [0])], [("s", [-1]), (None, [])], n_steps=1),
    "one step with taps": Case(
        lambda x, y, a, b: x * y * np.sin(a) + b, {"x": n(4), "s": n(2)}, [("x", [-1, 1])], [("s", [-2, -1])], n_steps=1
    ),
    "one step backwards": Case(lambda x, s: s * x, {"x": n(3), "s": n()}, [("x", [0])], [("s", [-1])], n_steps=1, go_backwards=True),
    "a state that only copies": Case(lambda x, s: (s, s * x), {"x": n(4), "s": n()}, [("x", [0])], [("s", [-1]), (None, [])]),
    "an output that is a slice": Case(lambda x, s: (s + x, x), {"x": n(4), "s": n()}, [("x", [0])], [("s", [-1]), (None, [])]),
    "empty state": Case(lambda x, s: s + x.sum(), {"x": n(4, 2), "s": n(0)}, [("x", [0])], [("s", [-1])]),
    "matrix state": Case(lambda x, s: np.tanh(s @ s) + x, {"x": n(3), "s": 0.3 * n(2, 2)}, [("x", [0])], [("s", [-1])]),
}


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    case = CASES[name]
    inputs = case.inputs()
    f = rs.function(list(inputs.values()), case.scan(inputs), on_unused_input="ignore")
    found = f(*case.values.values())
    expected = case.unrolled(case.values, case.steps())
    for a, rows in zip(found, expected, strict=False):
        assert len(a) == case.steps()
        if rows:
            np.testing.assert_allclose(a, np.stack(rows), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_gradients_equal_those_of_the_unrolled_graph(name):
    case = CASES[name]
    inputs = case.inputs()
    wrt = list(inputs.values())
    if case.steps():
        rows = case.unrolled(inputs, case.steps())
        plain = rs.grad(weighted([rs.stack(r) for r in rows]), wrt, disconnected_inputs="ignore")
    else:
        plain = [rs.zeros_like(v) for v in wrt]
    looped = rs.grad(weighted(case.scan(inputs)), wrt)
    f = rs.function(wrt, plain + looped, on_unused_input="ignore")
    found = f(*case.values.values())
    for v, a, b in zip(wrt, found[: len(wrt)], found[len(wrt) :], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12, err_msg=v.name)


@pytest.mark.parametrize("name", CASES)
def test_gradients_equal_differences(name):
    case = CASES[name]
    inputs = case.inputs()
    rs.verify_grad(weighted(case.scan(inputs)), {inputs[k]: v for k, v in case.values.items()}, n_tests=1)


def test_fn_is_called_once():
    calls = []
    xs = rs.dvector("xs")
    rs.scan(lambda x, s: calls.append(1) or s + x, xs, 0)
    assert calls == [1]


def test_arguments_come_in_the_order_of_the_documentation():
    """The seed's list of arguments."""
    seen = []

    def step(*args):
        seen.extend(a.name for a in args)
        return args[5], args[0], args[7]

    a, b, c, d, e, f, g, h = rs.vectors(*"abcdefgh")
    rs.scan(
        step,
        sequences=[dict(input=a, taps=[-3, 2, -1]), b, dict(input=c, taps=3)],
        outputs_info=[dict(initial=d, taps=[-3, -5]), dict(initial=e, taps=None), f[0]],
        non_sequences=[g, h],
    )
    assert seen[:7] == ["a[t-3]", "a[t+2]", "a[t-1]", "b[t]", "c[t+3]", "d[t-3]", "d[t-5]"]
    assert seen[8:] == ["g", "h"]


class TestArguments:
    xs = rs.dvector("xs")
    x = np.array([1.0, 2.0, 3.0])

    def run(self, outputs):
        return rs.function([self.xs], outputs)(self.x)

    @pytest.mark.parametrize("sequences", ["variable", "list", "tuple", "dict", "list of dict", "taps as number", "taps None"])
    def test_forms_of_sequences(self, sequences):
        xs = self.xs
        forms = {
            "variable": xs, "list": [xs], "tuple": (xs,), "dict": dict(input=xs), "list of dict": [dict(input=xs, taps=[0])],
            "taps as number": dict(input=xs, taps=0), "taps None": dict(input=xs, taps=None),
        }  # fmt: skip
        doubled, _ = rs.scan(lambda x: x * 2, forms[sequences])
        np.testing.assert_array_equal(self.run(doubled), [2, 4, 6])

    def test_arrays_and_numbers(self):
        y, _ = rs.scan(lambda x, s, c: s + x * c, np.array([1.0, 2.0]), np.float64(1.0), 3)
        np.testing.assert_array_equal(rs.function([], y)(), [4, 10])

    @pytest.mark.parametrize(
        "info",
        [None, {}, dict(initial=None), [], [None], [{}], [dict(taps=None)], dict(initial=5.0, taps=None), dict(initial=5.0, taps=[])],
    )
    def test_outputs_that_are_not_read_back(self, info):
        doubled, _ = rs.scan(lambda x: x * 2, self.xs, info)
        np.testing.assert_array_equal(self.run(doubled), [2, 4, 6])

    @pytest.mark.parametrize(
        "info",
        [1.0, np.float64(1.0), rs.constant(1.0), [1.0], dict(initial=1.0), dict(initial=1.0, taps=[-1]), dict(initial=1.0, taps=-1)],
    )
    def test_initial_states(self, info):
        total, _ = rs.scan(lambda x, s: s + x, self.xs, info)
        np.testing.assert_array_equal(self.run(total), [2, 4, 7])

    def test_outputs_are_none_one_or_a_list(self):
        counter = rs.shared(0)
        assert rs.scan(lambda x: {counter: counter + 1}, self.xs)[0] is None
        assert rs.scan(lambda x: {counter: counter + 1}, self.xs, return_list=True)[0] == []
        assert isinstance(rs.scan(lambda x: [x], self.xs)[0], rs.Variable)
        assert isinstance(rs.scan(lambda x: x, self.xs, return_list=True)[0], list)
        assert len(rs.scan(lambda x: [x, x], self.xs)[0]) == 2

    def test_n_steps_may_be_symbolic(self):
        n = rs.iscalar("n")
        f = rs.function([n], rs.scan(lambda s: s * 2, outputs_info=1.0, n_steps=n)[0])
        assert f(0).shape == (0,)
        np.testing.assert_array_equal(f(3), [2, 4, 8])
        with pytest.raises(rs.errors.ScanError, match="negative"):
            f(-1)

    def test_long_arange_costs_nothing(self):
        y, _ = rs.scan(lambda x, i: x * i, [self.xs, rs.arange(10_000)])
        np.testing.assert_array_equal(self.run(y), [0, 2, 6])

    def test_last_of_no_rows_is_an_error(self):
        y, _ = rs.scan(lambda x, s: s + x, self.xs, 0.0, n_steps=0)
        with pytest.raises(rs.RscanError, match="E0202"):
            self.run(y[-1])

    @pytest.mark.parametrize(
        "code, arguments",
        [
            ("E0121", dict(sequences=dict(inputs=xs))),
            ("E0121", dict(sequences=dict(taps=[0]))),
            ("E0121", dict(sequences=dict(input=xs, taps="0"))),
            ("E0121", dict(sequences=xs, outputs_info=dict(init=1.0))),
            ("E0121", dict(sequences=["xs"])),
            ("E0121", dict(sequences=xs, truncate_gradient=0)),
            ("E0116", dict(sequences=dict(input=xs, taps=[]))),
            ("E0112", dict(sequences=xs, outputs_info=dict(taps=[-1]))),
            ("E0112", dict(sequences=xs, outputs_info=dict(initial=xs, taps=[-1, 0]))),
            ("E0117", dict(n_steps=2.5)),
            ("E0117", dict(n_steps="three")),
            ("E0117", dict(n_steps=xs)),
            ("E0118", dict(sequences=rs.dscalar())),
            ("E0111", dict(n_steps=-1)),
            ("E0110", dict()),
        ],
    )
    def test_mistakes(self, code, arguments):
        with pytest.raises(rs.RscanError) as caught:
            rs.scan(lambda *args: args[0] if args else 1.0, **arguments)
        assert caught.value.code == code


class TestReturned:
    """Law 5: every accepted arrangement."""

    def check(self, result, values=None, count=None):
        xs, counter = rs.dvector("xs"), rs.shared(np.int64(0), name="counter")
        outputs, updates = rs.scan(lambda x: result(x, {counter: counter + 1}, rs.until(x > 2)), xs, return_list=True)
        found = rs.function([xs], outputs, updates=updates, on_unused_input="ignore")(np.array([1.0, 3.0, 2.0]))
        assert len(found) == len(values or [])
        for a, b in zip(found, values or [], strict=True):
            np.testing.assert_array_equal(a, b)
        assert counter.get_value() == (count or 0)

    @pytest.mark.parametrize(
        "arrangement",
        [
            lambda x, u, c: x, lambda x, u, c: [x], lambda x, u, c: (x,), lambda x, u, c: ([x],), lambda x, u, c: (x, {}),
            lambda x, u, c: (x, []), lambda x, u, c: ([x], ()), lambda x, u, c: ({}, x), lambda x, u, c: ([], [x]),
        ],
    )  # fmt: skip
    def test_outputs_alone(self, arrangement):
        self.check(arrangement, [[1, 3, 2]])

    def test_several_outputs(self):
        self.check(lambda x, u, c: (x, x + 1), [[1, 3, 2], [2, 4, 3]])
        self.check(lambda x, u, c: [x, x + 1], [[1, 3, 2], [2, 4, 3]])
        self.check(lambda x, u, c: [x, 1.5], [[1, 3, 2], [1.5, 1.5, 1.5]])

    def test_updates_alone(self):
        self.check(lambda x, u, c: u, [], 3)
        self.check(lambda x, u, c: list(u.items()), [], 3)
        self.check(lambda x, u, c: rs.OrderedUpdates(u), [], 3)
        self.check(lambda x, u, c: ([], u), [], 3)

    @pytest.mark.parametrize(
        "arrangement",
        [
            lambda x, u, c: (x, u), lambda x, u, c: ([x], u), lambda x, u, c: (u, x), lambda x, u, c: (u, [x]),
            lambda x, u, c: (x, list(u.items())), lambda x, u, c: ((x,), tuple(u.items())), lambda x, u, c: [x, u],
        ],
    )  # fmt: skip
    def test_outputs_and_updates(self, arrangement):
        self.check(arrangement, [[1, 3, 2]], 3)

    @pytest.mark.parametrize(
        "arrangement",
        [
            lambda x, u, c: (x, c),
            lambda x, u, c: ([x], c),
            lambda x, u, c: [x, c],
            lambda x, u, c: (x, {}, c),
            lambda x, u, c: ({}, x, c),
        ],
    )
    def test_outputs_and_until(self, arrangement):
        self.check(arrangement, [[1, 3]])

    @pytest.mark.parametrize(
        "arrangement",
        [lambda x, u, c: (x, u, c), lambda x, u, c: ([x], u, c), lambda x, u, c: (u, [x], c), lambda x, u, c: ((x, u), c)],
    )
    def test_all_three(self, arrangement):
        self.check(arrangement, [[1, 3]], 2)

    def test_updates_and_until(self):
        self.check(lambda x, u, c: (u, c), [], 2)

    @pytest.mark.parametrize(
        "code, arrangement",
        [
            ("E0107", lambda x, u, c: c),
            ("E0107", lambda x, u, c: (c,)),
            ("E0107", lambda x, u, c: (c, x)),
            ("E0107", lambda x, u, c: (x, c, u)),
            ("E0107", lambda x, u, c: (x, c, c)),
            ("E0123", lambda x, u, c: (x, "text")),
            ("E0123", lambda x, u, c: "text"),
            ("E0123", lambda x, u, c: (x, u, x)),
            ("E0123", lambda x, u, c: ([x], [x], u)),
            ("E0115", lambda x, u, c: {"x": x}),
            ("E0115", lambda x, u, c: (x, {x: x})),
        ],
    )
    def test_mistakes(self, code, arrangement):
        with pytest.raises(rs.RscanError) as caught:
            self.check(arrangement)
        assert caught.value.code == code

    def test_shared_variable_as_output(self):
        s = rs.shared(2.0, name="s")
        y, _ = rs.scan(lambda x: [s, x], rs.constant([1.0, 2.0]))
        np.testing.assert_array_equal(rs.function([], y[0])(), [2, 2])


class TestAdaptingStates:
    """Python numbers and axes of extent 1 take what the step gives; arrays keep their dtype."""

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    @pytest.mark.parametrize("initial", [0, 0.0])
    def test_numbers_take_the_dtype_of_the_step(self, dtype, initial):
        xs = rs.vector("xs", dtype=dtype)
        y, _ = rs.scan(lambda x, s: s + x, xs, initial)
        assert y.dtype == dtype
        np.testing.assert_array_equal(rs.function([xs], y)(np.array([1, 2], dtype)), [1, 3])

    def test_integers_stay_integers(self):
        y, _ = rs.scan(lambda s: s + 2, outputs_info=1, n_steps=3)
        assert y.dtype == "int64"
        np.testing.assert_array_equal(rs.function([], y)(), [3, 5, 7])

    def test_integers_become_floats(self):
        y, _ = rs.scan(lambda s: s * 0.5, outputs_info=1, n_steps=3)
        assert y.dtype == "float64"
        np.testing.assert_array_equal(rs.function([], y)(), [0.5, 0.25, 0.125])

    @pytest.mark.parametrize("initial", [1, 1.0])
    def test_numbers_fill_all_past_rows(self, initial):
        xs = rs.fmatrix("xs")
        y, _ = rs.scan(lambda x, a, b: a + b + x, xs, dict(initial=initial, taps=[-2, -1]))
        assert y.dtype == "float32"
        np.testing.assert_array_equal(rs.function([xs], y)(np.zeros((3, 2), "float32")), [[2, 2], [3, 3], [5, 5]])
        z, _ = rs.scan(lambda a, b: a + b, outputs_info=dict(initial=1, taps=[-2, -1]), n_steps=3)
        np.testing.assert_array_equal(rs.eval(z), [2, 3, 5])

    def test_a_loop_inside_is_built_again(self):
        m = rs.dmatrix("m")

        def outer(row, total):
            return total + rs.scan(lambda x, s: s + x * total, row, 0.0)[0][-1]

        y, _ = rs.scan(outer, m, 1)
        assert y.dtype == "float64"
        np.testing.assert_array_equal(rs.function([m], y)(np.array([[1.0, 2.0], [3.0, 4.0]])), [4, 32])
        rs.verify_grad(y.sum(), {m: n(2, 3)})

    def test_booleans(self):
        xs = rs.dvector("xs")
        y, _ = rs.scan(lambda x, seen: seen | (x > 1), xs, False)
        np.testing.assert_array_equal(rs.function([xs], y)(np.array([0.0, 2.0, 0.0])), [False, True, True])

    @pytest.mark.parametrize("n_steps", [1, 3])
    def test_numbers_take_the_shape_of_the_step(self, n_steps):
        xs = rs.dmatrix("xs")
        y, _ = rs.scan(lambda x, s: s + x, xs, 0, n_steps=n_steps)
        np.testing.assert_array_equal(rs.function([xs], y)(np.ones((3, 2))), np.cumsum(np.ones((n_steps, 2)), 0))

    @pytest.mark.parametrize(
        "step",
        [
            lambda x, s: x + rs.sum(s),
            lambda x, s: x + rs.max(s) + rs.dot(s, s),
            lambda x, s: x + rs.logsumexp(s) if s.ndim else x + s,
            lambda x, s: x + rs.mean(rs.cumsum(s)) + s.size,
            lambda x, s: x + rs.scan(lambda t: t + rs.sum(t) + rs.sum(s), outputs_info=0.0, n_steps=2)[0][-1],
        ],
    )
    @pytest.mark.parametrize("initial", [0, 0.0, 1.5])
    def test_a_step_that_is_no_function_of_elements_sees_the_shape_that_its_state_gets(self, step, initial):
        """A sum of a number is the number; that of the vector which the state becomes is not."""
        xs = rs.dmatrix("xs")
        values = n(4, 2)
        found, wanted = (rs.scan(step, xs, s)[0] for s in (initial, rs.full((2,), float(initial))))
        np.testing.assert_array_equal(rs.function([xs], found)(values), rs.function([xs], wanted)(values))
        rs.verify_grad(rs.sum(rs.sin(found[:2])), {xs: values * 0.1})

    def test_such_a_step_in_other_loops(self):
        ones, expected = np.ones((3, 2)), [[1, 1], [3, 3], [7, 7]]
        step = lambda x, s: x + rs.sum(s)
        assert rs.loop(lambda x, s: dict(s=step(x, s), k=s), over=dict(x=ones), init=dict(s=0.0)).k.eval().tolist() == [
            [0, 0],
            *expected[:2],
        ]
        assert rs.fori(0, 3, lambda i, s: step(np.ones(2), s), 0.0).eval().tolist() == [7, 7]
        assert rs.reduce(step, ones, 0.0)[0].eval().tolist() == [7, 7]
        assert rs.scan_checkpoints(step, ones, 0.0, save_every_N=2)[0].eval().tolist() == [[3, 3], [7, 7]]
        ended = rs.loop(lambda x, s: (step(x, s), rs.until(rs.max(s) > 0)), over=ones, init=0)
        assert ended.eval().tolist() == expected[:2]
        assert rs.vmap(lambda r: rs.loop(lambda x, s: step(x, s) + r, over=ones, init=0.0)[-1])(np.zeros(2)).eval().tolist() == [
            [7, 7],
            [7, 7],
        ]
        kept = rs.loop(step, over=ones, init=0.0, lengths=[1, 3])
        assert kept.eval().tolist() == [[1, 1], [1, 3], [1, 5]]

    def test_calls_of_the_step_whose_state_gets_axes(self):
        """Once more than others: for the shape that the first call tells."""
        ranks = []
        rs.scan(lambda x, s: ranks.append(s.ndim) or s + x, rs.dmatrix("xs"), 0.0)
        assert ranks == [0, 1]

    def test_shape_from_a_captured_variable(self):
        b = rs.shared(np.ones(4), name="b")
        y, _ = rs.scan(lambda s: s + b, outputs_info=0.0, n_steps=2)
        np.testing.assert_array_equal(rs.function([], y)(), [[1] * 4, [2] * 4])

    @pytest.mark.parametrize(
        "shapes",
        [
            ((3, 4), (4,), (4,)),
            ((3, 1), (4,), (1,)),
            ((3, 4), (1,), (1,)),
            ((3, 2, 1), (4,), (2, 1)),
            ((3, 1, 1), (1,), (1, 1)),
        ],
    )
    def test_shape_of_what_broadcasts_together(self, shapes):
        """Which operand has the extent, and which has 1, is known when it is called."""
        xs, a, b = (rs.tensor("float64", (None,) * len(shape), name) for shape, name in zip(shapes, "xab", strict=True))
        y, _ = rs.scan(lambda x, s: 0.5 * s + rs.where(x > 0.5, a * x, b), xs, 0.0)
        values = [n(*shape) for shape in shapes]
        state, expected = 0.0, []
        for x in values[0]:
            state = 0.5 * state + np.where(x > 0.5, values[1] * x, values[2])
            expected.append(state)
        np.testing.assert_array_equal(rs.function([xs, a, b], y)(*values), expected)
        rs.verify_grad(y.sum(), dict(zip([xs, a, b], values, strict=True)))

    def test_what_does_not_broadcast_together(self):
        xs, a = rs.dmatrix("xs"), rs.dvector("a")
        f = rs.function([xs, a], rs.scan(lambda x, s: 0.5 * s + a * x, xs, 0.0)[0])
        with pytest.raises(rs.errors.ShapeError, match="E0201"):
            f(np.ones((2, 3)), np.ones(4))

    def test_axes_of_extent_1(self):
        xs = rs.dtensor3("xs")
        y, _ = rs.scan(lambda x, s: s + x, xs, rs.zeros((1, 3)))
        np.testing.assert_array_equal(rs.function([xs], y)(np.ones((2, 4, 3))), np.stack([np.ones((4, 3)), 2 * np.ones((4, 3))]))

    def test_gradient_reaches_the_row_that_was_spread(self):
        s0 = rs.tensor("float64", (1,), "s0")
        xs = rs.dmatrix("xs")
        y, _ = rs.scan(lambda x, s: s * x, xs, s0)
        rs.verify_grad(y.sum(), {xs: n(3, 4), s0: n(1)})

    def test_arrays_do_not_adapt(self):
        xs = rs.dvector("xs")
        for initial in (np.float32(0), rs.constant(0.0, "float32"), np.int64(0)):
            with pytest.raises(rs.errors.ScanTypeError, match="E0103"):
                rs.scan(lambda x, s: s + x, xs, initial)

    def test_state_keeps_a_wider_type_than_the_step_gives(self):
        with pytest.raises(rs.errors.ScanTypeError, match="E0103"):
            rs.scan(lambda x, s: x, rs.fvector(), rs.constant(0.0, "float64"))

    def test_mixed_dtypes(self):
        i, x = rs.ivector("i"), rs.fvector("x")

        def step(i, x, count, total, mean):
            return count + i, total + x * 2, (mean + count) / 2

        (count, total, mean), _ = rs.scan(step, [i, x], [np.int32(0), np.float32(0), 0.0])
        assert [v.dtype for v in (count, total, mean)] == ["int32", "float32", "float64"]
        f = rs.function([i, x], [count, total, mean])
        found = f(np.array([1, 2], "int32"), np.array([0.5, 1], "float32"))
        for a, b in zip(found, [[1, 3], [1, 3], [0, 0.5]], strict=True):
            np.testing.assert_array_equal(a, b)


class TestUntil:
    def loop(self, **options):
        x, limit = rs.dscalar("x"), rs.dscalar("limit")
        y, _ = rs.scan(lambda p, limit: (p * x, rs.until(p * x > limit)), outputs_info=rs.constant(1.0), non_sequences=limit, **options)
        return x, limit, y

    def test_the_stopping_step_is_kept(self):
        x, limit, y = self.loop(n_steps=1024)
        f = rs.function([x, limit], y)
        np.testing.assert_array_equal(f(2.0, 45.0), [2, 4, 8, 16, 32, 64])
        np.testing.assert_array_equal(f(2.0, 0.0), [2])

    def test_n_steps_is_the_maximum(self):
        x, limit, y = self.loop(n_steps=3)
        np.testing.assert_array_equal(rs.function([x, limit], y)(2.0, 1e9), [2, 4, 8])

    @pytest.mark.parametrize("limit", [0.0, 5.0, 45.0, 1e9])
    def test_gradient_has_as_many_steps_as_ran(self, limit):
        x, bound, y = self.loop(n_steps=10)
        g = rs.function([x, bound], rs.grad(y.sum(), x))(2.0, limit)
        steps = next((k for k in range(1, 11) if 2.0**k > limit), 10)
        np.testing.assert_allclose(g, sum(k * 2.0 ** (k - 1) for k in range(1, steps + 1)))

    def test_gradient_of_a_sequence_with_a_state(self):
        xs, s0 = rs.dvector("xs"), rs.dscalar("s0")
        y, _ = rs.scan(lambda x, s: (s * x, rs.until(s * x > 5)), xs, s0)
        f = rs.function([xs, s0], [y, *rs.grad((y**2).sum(), [xs, s0])])
        x, s = np.array([2.0, 1.5, 3.0, 4.0, 7.0]), 1.1
        rows, g, _ = f(x, s)
        assert len(rows) == 3
        np.testing.assert_array_equal(g[3:], 0)
        rs.verify_grad((y**2).sum(), {xs: x, s0: np.array(s)})

    def test_truncated_gradient_counts_back_from_the_stop(self):
        xs = rs.dvector("xs")
        y, _ = rs.scan(lambda x, s: (s * x, rs.until(s * x > 5)), xs, 1.0, truncate_gradient=2)
        g = rs.function([xs], rs.grad(y[-1], xs))(np.array([2.0, 1.5, 3.0, 4.0, 7.0]))
        np.testing.assert_allclose(g, [0, 2 * 3, 2 * 1.5, 0, 0])


class TestUpdates:
    def test_they_act_after_each_step(self):
        s = rs.shared(np.float64(1), name="s")
        y, updates = rs.scan(lambda x: (s * x, {s: s + x}), rs.constant([1.0, 2.0, 3.0]))
        f = rs.function([], y, updates=updates)
        np.testing.assert_array_equal(f(), [1, 4, 12])
        assert s.get_value() == 7

    def test_one_step(self):
        s = rs.shared(np.float64(1), name="s")
        y, updates = rs.scan(lambda: (s * 3, {s: s + 1}), n_steps=1)
        f = rs.function([], y, updates=updates)
        np.testing.assert_array_equal(f(), [3])
        assert s.get_value() == 2

    def test_no_step_leaves_it(self):
        s, k = rs.shared(np.float64(1), name="s"), rs.lscalar("k")
        y, updates = rs.scan(lambda: (s * 3, {s: s + 1}), n_steps=k)
        f = rs.function([k], y, updates=updates)
        assert f(0).shape == (0,)
        assert s.get_value() == 1

    def test_gradient_goes_through_the_updates(self):
        s = rs.shared(np.float64(1.5), name="s")
        x = rs.dscalar("x")
        y, updates = rs.scan(lambda x: (s * x, {s: s * x}), non_sequences=x, n_steps=3)
        g = rs.function([x], rs.grad(y[-1], [x, s]), updates=updates)(2.0)
        np.testing.assert_allclose(g, [3 * 1.5 * 4, 8])
        assert s.get_value() == 12

    def test_nested(self):
        s = rs.shared(np.int64(0), name="s")

        def outer(x):
            y, inner = rs.scan(lambda: (s * 10, {s: s + 1}), n_steps=2)
            return y + x, inner

        y, updates = rs.scan(outer, rs.constant([0, 1, 2]))
        np.testing.assert_array_equal(rs.function([], y, updates=updates)(), [[0, 10], [21, 31], [42, 52]])
        assert s.get_value() == 6

    def test_default_updates_become_updates_of_the_loop(self):
        s = rs.shared(np.int64(0), name="s")
        s.default_update = s + 1
        y, updates = rs.scan(lambda: s * 1, n_steps=3)
        assert list(updates) == [s]
        np.testing.assert_array_equal(rs.function([], y, updates=updates)(), [0, 1, 2])
        assert s.get_value() == 3

    def test_forgotten_updates_are_reported(self):
        s = rs.shared(np.int64(0), name="counter")
        y, updates = rs.scan(lambda: (s * 1, {s: s + 1}), n_steps=3)
        with pytest.warns(rs.ForgottenUpdatesWarning, match="`counter`"):
            rs.function([], y)
        rs.function([], y, updates=updates)
        rs.function([], y, no_default_updates=True)

    def test_forgotten_inner_updates_are_reported(self):
        s = rs.shared(np.int64(0), name="counter")
        with pytest.warns(rs.ForgottenUpdatesWarning, match="`counter`"):
            rs.scan(lambda x: rs.scan(lambda: (s * 1, {s: s + 1}), n_steps=3)[0] + x, rs.constant([0, 1]))

    def test_ordered_updates(self):
        s, t = rs.shared(1.0, name="s"), rs.shared(2.0, name="t")
        updates = rs.OrderedUpdates({s: s + 1})
        assert not rs.OrderedUpdates() and dict(updates + {t: t})
        assert list(updates + {t: t}) == [s, t]
        same = s + 1
        assert len(rs.OrderedUpdates({s: same}) + rs.OrderedUpdates({s: same})) == 1
        with pytest.raises(rs.RscanError, match="E0126"):
            updates + {s: s + 2}
        with pytest.raises(rs.RscanError, match="E0115"):
            updates[rs.dscalar()] = 1
        with pytest.raises(rs.RscanError, match="E0115"):
            rs.OrderedUpdates({"s": 1})


class TestNested:
    def test_loop_in_a_loop(self):
        a = rs.dmatrix("a")

        def row(r, total):
            sums, _ = rs.scan(lambda x, s, total: s * x + total, r, 1.0, total)
            return sums[-1]

        y, _ = rs.scan(row, a, 0.5)
        value, expected, total = n(3, 2), [], 0.5
        for r in value:
            s = 1.0
            for x in r:
                s = s * x + total
            total = s
            expected.append(s)
        np.testing.assert_allclose(rs.function([a], y)(value), expected)
        rs.verify_grad((y**2).sum(), {a: value})

    def test_inner_loop_of_varying_length(self):
        lengths, x = rs.lvector("lengths"), rs.dscalar("x")
        y, _ = rs.scan(lambda k: rs.scan(lambda s: s * x, outputs_info=rs.constant(1.0), n_steps=k)[0].sum(), lengths)
        value = rs.function([lengths, x], [y, rs.grad(y.sum(), x)])(np.array([0, 1, 3]), 2.0)
        np.testing.assert_allclose(value[0], [0, 2, 14])
        np.testing.assert_allclose(value[1], 1 + 1 + 4 + 12)

    def test_three_levels(self):
        x = rs.dtensor3("x")
        y, _ = rs.scan(lambda m: rs.scan(lambda v: rs.scan(lambda e, s: s + e * e, v, 0.0)[0][-1], m)[0].sum(), x)
        value = n(2, 3, 4)
        np.testing.assert_allclose(rs.function([x], y)(value), (value**2).sum((1, 2)))
        rs.verify_grad(rs.sum(y**2), {x: value})

    def test_captured_of_both_levels(self):
        a, b = rs.dscalar("a"), rs.dscalar("b")
        xs = rs.dvector("xs")
        y, _ = rs.scan(lambda x: rs.scan(lambda s: s * a + x * b, outputs_info=x, n_steps=2)[0][-1], xs)
        rs.verify_grad((y**2).sum(), {xs: n(3), a: n(), b: n()})


class TestGradients:
    def test_captured_and_shared(self):
        w, u = rs.shared(n(3, 3), name="w"), rs.dmatrix("u")
        square = u @ u
        xs = rs.dmatrix("xs")
        h, _ = rs.scan(lambda x, h: rs.tanh(x @ w + h @ square), xs, rs.zeros(3))
        cost = (h**2).sum()
        g = rs.grad(cost, [w, u, square])
        values = {xs: n(4, 3), u: 0.3 * n(3, 3)}
        rs.verify_grad(cost, values)
        found = rs.function([xs, u], g)(*values.values())
        plain = rs.dmatrix("plain")
        h, _ = rs.scan(lambda x, h: rs.tanh(x @ plain + h @ square), xs, rs.zeros(3))
        expected = rs.function([xs, u, plain], rs.grad((h**2).sum(), [plain, u]))(*values.values(), w.get_value())
        np.testing.assert_allclose(found[0], expected[0])
        np.testing.assert_allclose(found[1], expected[1])

    @pytest.mark.parametrize("k", [1, 2, 4, 9])
    def test_truncated(self, k):
        xs, s0, w = rs.dvector("xs"), rs.dscalar("s0"), rs.dscalar("w")
        y, _ = rs.scan(lambda x, s, w: w * s + x, xs, s0, w, truncate_gradient=k)
        x, start, weight = n(4), 0.7, 0.9
        found = rs.function([xs, s0, w], rs.grad(y[-1], [xs, s0, w]))(x, start, weight)
        rows = [start]
        for v in x:
            rows.append(weight * rows[-1] + v)
        last = min(k, 4)
        gx = np.array([weight ** (3 - t) if t >= 4 - last else 0.0 for t in range(4)])
        gw = sum(weight ** (3 - t) * rows[t] for t in range(4 - last, 4))
        np.testing.assert_allclose(found[0], gx)
        np.testing.assert_allclose(found[2], gw)
        np.testing.assert_allclose(found[1], weight**4 if k >= 4 else 0)

    def test_grad_inside_the_step(self):
        """Newton's method by descent: the step differentiates an expression of its own state."""
        a = rs.dscalar("a")
        x, _ = rs.scan(lambda x: x - 0.1 * rs.grad((x**2 - a) ** 2, x), outputs_info=1.5, n_steps=60)
        f = rs.function([a], [x[-1], rs.grad(x[-1], a)])
        value, slope = f(2.0)
        np.testing.assert_allclose(value, np.sqrt(2), rtol=1e-5)
        np.testing.assert_allclose(slope, 0.5 / np.sqrt(2), rtol=1e-3)
        rs.verify_grad(x[-1], {a: np.array(2.0)})

    def test_grad_inside_the_step_of_a_captured_expression(self):
        w, xs = rs.dvector("w"), rs.dvector("xs")
        cost = (w**3).sum()
        y, _ = rs.scan(lambda x: (rs.grad(cost * x, w) * x).sum(), xs)
        value = {w: n(3), xs: n(2)}
        np.testing.assert_allclose(rs.function(list(value), y)(*value.values()), 3 * (value[w] ** 2).sum() * value[xs] ** 2)
        rs.verify_grad(y.sum(), value)

    @pytest.mark.parametrize("name", ["rnn", "far taps", "backwards with taps", "state and free output"])
    def test_second_order(self, name):
        case = CASES[name]
        inputs = case.inputs()
        wrt = list(inputs.values())
        first = rs.grad(weighted(case.scan(inputs)), wrt)
        total = sum(((g * (0.7 + i)) ** 2).sum() for i, g in enumerate(first))
        rs.verify_grad(total, {inputs[k]: v for k, v in case.values.items()}, n_tests=1, rel_tol=1e-5, abs_tol=1e-7)

    def test_third_order(self):
        x = rs.dscalar("x")
        y = rs.scan(lambda s: s * x, outputs_info=rs.constant(1.0), n_steps=5)[0][-1]
        g1 = rs.grad(y, x)
        g2 = rs.grad(g1, x)
        g3 = rs.grad(g2, x)
        np.testing.assert_allclose(rs.function([x], [g1, g2, g3])(1.5), [5 * 1.5**4, 20 * 1.5**3, 60 * 1.5**2])

    @pytest.mark.parametrize("name", ["rnn", "far taps", "the seed's network", "backwards with taps", "no step"])
    def test_forward_mode(self, name):
        case = CASES[name]
        inputs = case.inputs()
        wrt, outs = list(inputs.values()), case.scan(inputs)
        tangents = [R.normal(size=v.shape) for v in case.values.values()]
        pushed = rs.jvp(outs, wrt, tangents)
        f = rs.function(wrt, [*outs, *pushed], on_unused_input="ignore")
        h = 1e-6
        up = f(*(v + h * t for v, t in zip(case.values.values(), tangents, strict=True)))
        down = f(*(v - h * t for v, t in zip(case.values.values(), tangents, strict=True)))
        here = f(*case.values.values())
        for k in range(len(outs)):
            np.testing.assert_allclose(here[len(outs) + k], (up[k] - down[k]) / (2 * h), rtol=1e-6, atol=1e-8)

    def test_single_precision(self):
        xs, s0 = rs.fvector("xs"), rs.fscalar("s0")
        y, _ = rs.scan(lambda x, s: rs.tanh(s) * x, xs, s0)
        rs.verify_grad(y.sum(), {xs: n(4).astype("f"), s0: np.float32(0.3)})

    def test_integer_sequences_have_zero_gradients(self):
        i, x = rs.lvector("i"), rs.dscalar("x")
        y, _ = rs.scan(lambda i, s: s * x + i, i, 1.0)
        gi, gx = rs.function([i, x], rs.grad(y[-1], [i, x], disconnected_inputs="ignore"))(np.array([1, 2]), 3.0)
        np.testing.assert_array_equal(gi, [0.0, 0.0])
        np.testing.assert_allclose(gx, 2 * 3 + 1)


class TestCases:
    xs = rs.dvector("xs")
    x = np.array([1.0, 2.0, 4.0])

    def run(self, y):
        return rs.function([self.xs], y)(self.x)

    def test_map(self):
        np.testing.assert_array_equal(self.run(rs.map(lambda x, c: x * c, self.xs, 3.0)[0]), [3, 6, 12])
        np.testing.assert_array_equal(self.run(rs.map(lambda x: x + 1, self.xs, go_backwards=True)[0]), [5, 3, 2])

    def test_reduce(self):
        np.testing.assert_array_equal(self.run(rs.reduce(lambda x, s: 2 * s + x, self.xs, 0.0)[0]), 12)
        np.testing.assert_array_equal(self.run(rs.reduce(lambda x, s: 2 * s + x, self.xs, 0.0, go_backwards=True)[0]), 21)

    def test_folds(self):
        np.testing.assert_array_equal(self.run(rs.foldl(lambda x, s: 2 * s + x, self.xs, 0.0)[0]), 12)
        np.testing.assert_array_equal(self.run(rs.foldr(lambda x, s, c: 2 * s + x + c, self.xs, 0.0, 1.0)[0]), 28)

    def test_reduce_of_several(self):
        (a, b), updates = rs.reduce(lambda x, a, b: (a + x, b * x), self.xs, [0.0, 1.0])
        assert not updates
        assert self.run([a, b]) == [7, 8]

    def test_gradients(self):
        rs.verify_grad(rs.foldr(lambda x, s: rs.sin(s) * x, self.xs, 0.7)[0], {self.xs: self.x})
        rs.verify_grad(rs.map(lambda x: x**3, self.xs)[0], {self.xs: self.x})


class TestCheckpoints:
    @pytest.mark.parametrize("steps", [1, 2, 3, 4, 7, 8])
    @pytest.mark.parametrize("every", [1, 3, 4, 10])
    def test_rows_and_gradients_equal_those_of_scan(self, steps, every):
        w, h0, xs = rs.dmatrix("w"), rs.dvector("h0"), rs.dmatrix("xs")

        def step(x, h):
            new = rs.tanh(x + h @ w)
            return new, (h * x).sum()

        (plain, other), _ = rs.scan(step, xs, [h0, None])
        (kept, also), _ = rs.scan_checkpoints(step, xs, [h0, None], save_every_N=every)
        rows = [min((j + 1) * every, steps) - 1 for j in range(-(-steps // every))]
        wrt = [xs, h0, w]
        costs = [(plain[rows] ** 2).sum() + other[rows].sum(), (kept**2).sum() + also.sum()]
        f = rs.function(wrt, [plain, kept, other, also, *rs.grad(costs[0], wrt), *rs.grad(costs[1], wrt)])
        found = f(n(steps, 3), n(3), W)
        np.testing.assert_allclose(found[1], found[0][rows])
        np.testing.assert_allclose(found[3], found[2][rows])
        for a, b in zip(found[4:7], found[7:], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)

    def test_taps_and_unequal_lengths(self):
        s0, a, b = rs.dvector("s0"), rs.dvector("a"), rs.dvector("b")
        arguments = dict(
            fn=lambda a2, a0, b, s3, s1: rs.sin(s3) * a2 + s1 * a0 + b,
            sequences=[dict(input=a, taps=[-2, 0]), b],
            outputs_info=dict(initial=s0, taps=[-3, -1]),
        )
        plain, kept = rs.scan(**arguments)[0], rs.scan_checkpoints(**arguments, save_every_N=3)[0]
        wrt = [s0, a, b]
        f = rs.function(wrt, [plain, kept, *rs.grad(plain[-1], wrt), *rs.grad(kept[-1], wrt)])
        found = f(n(3), n(10), n(20))
        np.testing.assert_allclose(found[1], found[0][[2, 5, 7]])
        for x, y in zip(found[2:5], found[5:], strict=True):
            np.testing.assert_allclose(x, y)
        plain, kept, *_ = f(n(3), n(20), n(5))
        np.testing.assert_allclose(kept, plain[[2, 4]])

    @pytest.mark.parametrize("lengths", [(5, 7, 9), (7, 5, 9), (7, 9, 5)])
    def test_the_shortest_sequence_decides(self, lengths):
        a, b, c = rs.dvector("a"), rs.dvector("b"), rs.dvector("c")
        y, _ = rs.scan_checkpoints(lambda a, b, c, s: s + a * b * c, [a, b, c], 0.0, save_every_N=2)
        np.testing.assert_array_equal(rs.function([a, b, c], y)(*map(np.ones, lengths)), [2, 4, 5])

    def test_shared_variables_are_found(self):
        w = rs.shared(2.0)
        y, _ = rs.scan_checkpoints(lambda x, s: s + x * w, np.ones(4), 0.0, save_every_N=2)
        np.testing.assert_array_equal(rs.function([], y)(), [4, 8])

    def test_n_steps_numbers_and_updates(self):
        count = rs.shared(np.int64(0), name="count")
        y, updates = rs.scan_checkpoints(lambda s: (s * 2, {count: count + 1}), outputs_info=1, n_steps=7, save_every_N=3)
        np.testing.assert_array_equal(rs.function([], y, updates=updates)(), [8, 64, 128])
        assert count.get_value() == 7

    def test_the_gradient_keeps_the_ends_of_blocks_only(self):
        """No loop over all steps outside: the steps of a block are run again inside the gradient's loop over blocks."""
        xs, w = rs.dmatrix("xs"), rs.dmatrix("w")
        y, _ = rs.scan_checkpoints(lambda x, h: rs.tanh(x + h @ w), xs, rs.zeros(3), save_every_N=4)
        text = rs.debugprint(rs.grad((y[-1] ** 2).sum(), w), file="str")
        outside = [line for line in text.splitlines() if line.startswith("  %") and " = scan" in line]
        assert len(outside) == 2, text
        assert text.count(" = scan") >= 4, "blocks run forward, forward again, and backward"

    def test_no_step(self):
        xs = rs.dvector("xs")
        y, _ = rs.scan_checkpoints(lambda x, s: s + x, xs, 0.0)
        assert rs.function([xs], y)(np.zeros(0)).shape == (0,)

    def test_random_numbers_are_those_of_scan(self):
        def rows(loop, **options):
            stream = rs.RandomStream(5)
            y, _ = loop(lambda s: s + stream.normal(), outputs_info=0.0, n_steps=6, **options)
            return rs.function([], y)()

        np.testing.assert_allclose(rows(rs.scan_checkpoints, save_every_N=2), rows(rs.scan)[1::2])

    def test_padding(self):
        xs = rs.dvector("xs")
        y, _ = rs.scan_checkpoints(lambda x, s: s + x, xs, 0.0, save_every_N=2, padding=False)
        f = rs.function([xs], y)
        np.testing.assert_array_equal(f(np.ones(4)), [2, 4])
        with pytest.raises(rs.RscanError, match="not a multiple of save_every_N=2"):
            f(np.ones(5))

    def test_mistakes(self):
        xs = rs.dvector("xs")
        y, _ = rs.scan_checkpoints(lambda x, s: s + x, xs, 0.0, n_steps=5)
        with pytest.raises(rs.RscanError, match="shorter than n_steps"):
            rs.function([xs], y)(np.ones(4))
        for code, options in {"E0124": dict(save_every_N=0), "E0110": dict(sequences=None)}.items():
            with pytest.raises(rs.RscanError, match=code):
                rs.scan_checkpoints(lambda *a: a[-1], **{"sequences": xs, "outputs_info": 0.0, **options})
        with pytest.raises(rs.RscanError, match="E0124"):
            rs.scan_checkpoints(lambda x, s: (s + x, rs.until(s > 3)), xs, 0.0)


class TestDeep:
    """Loops in loops in loops: the work of compiling them, and where it ends."""

    @staticmethod
    def nest(x, depth, n_steps):
        if depth == 0:
            return 0.5 * x + 1
        return rs.scan(lambda h: TestDeep.nest(h, depth - 1, n_steps), outputs_info=x, n_steps=n_steps)[0][-1]

    @pytest.mark.parametrize("n_steps", [2, 3])
    def test_loops_of_few_steps_are_not_written_out_at_every_level(self, n_steps):
        x = rs.dvector("x")
        sizes = []
        for depth in (10, 20):
            f = rs.function([x], self.nest(x, depth, n_steps))
            sizes.append(len(f.text(optimised=True).splitlines()))
        assert sizes[1] <= 3 * sizes[0] + 100

    def test_sixty_levels_run_and_have_gradients(self):
        x, steps = rs.dvector("x"), rs.lscalar("n")
        y = self.nest(x, 60, steps)
        value, slope = rs.function([x, steps], [y, rs.grad(y.sum(), x)])(np.array([1.0, 4.0]), 1)
        np.testing.assert_allclose(value, [1.5, 3.0])
        np.testing.assert_allclose(slope, [0.5, 0.5])

    def test_too_many_levels_are_an_error(self):
        with pytest.raises(rs.RscanError, match="E0127"):
            self.nest(rs.dvector("x"), 101, rs.lscalar("n"))


def test_strict_loops_take_expressions_of_shared_variables_as_they_are_passed():
    w, x = rs.shared(2.0, "w"), rs.dvector("x")
    e = w * 2

    def nested(inner, outer):
        def step(a, *_):
            rows, _ = rs.scan(lambda b, v: b * v, sequences=x, non_sequences=inner, strict=True)
            return rs.sum(rows) + a

        return rs.scan(step, sequences=x, non_sequences=[*outer, x], strict=True)[0]

    for inner, outer, expected in [(e, [e], [13, 14]), (e, [w], [13, 14]), (w, [w], [7, 8])]:
        assert rs.function([x], nested(inner, outer))([1.0, 2.0]).tolist() == expected
    for inner, outer in [(w, [e]), (e, []), (w, [])]:
        with pytest.raises(rs.errors.ScanError, match="w"):
            nested(inner, outer)


@pytest.mark.parametrize("taps", [[-1, 0], [0], [-2, 3]])
def test_taps_of_outputs_are_in_the_past(taps):
    with pytest.raises(rs.RscanError, match=f"has the tap {max(taps)}, but a step can only read what earlier steps gave"):
        rs.scan(lambda *a: a[0], outputs_info=dict(initial=np.zeros(3), taps=taps), n_steps=2)


def test_a_shared_variable_holds_numbers():
    with pytest.raises(TypeError, match="a shared variable holds numbers, not a variable"):
        rs.shared(rs.dvector())
