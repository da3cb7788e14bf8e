"""What errors suggest, applied: each wrong program says what to do, and the program that does it runs."""

import functools
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import rscan as rs

XS = np.array([1.0, 2.0, 3.0])


def scanned(step, **arguments):
    return rs.scan(step, **arguments)[0].eval()


#: The wrong program, words of its advice, the program that follows it, and what that gives.
ADVICE = {
    "JAX's order": (
        lambda: rs.loop(lambda h, x: rs.concatenate([h, x[None]])[1:], over=XS, init=np.zeros(2)),
        r"step\(x, carry\)",
        lambda: rs.loop(lambda x, h: rs.concatenate([h, x[None]])[1:], over=XS, init=np.zeros(2))[-1].eval(),
        [2.0, 3.0],
    ),
    "a table": (
        lambda: rs.compile(lambda i: XS[i])(1),
        r"rs\.constant\(table\)\[",
        lambda: rs.compile(lambda i: rs.constant(XS)[i])(1),
        2.0,
    ),
    "a list of variables": (
        lambda: rs.compile(lambda x, i: [x, 2 * x][i])(1.5, 1),
        r"rs\.stack\(items\)\[i\]",
        lambda: rs.compile(lambda x, i: rs.stack([x, 2 * x])[i])(1.5, 1),
        3.0,
    ),
    "NumPy's array of variables": (
        lambda: rs.compile(lambda x: np.array([x[0], x[2]]))(XS),
        r"rs\.stack\(\[a, b\]\)",
        lambda: rs.compile(lambda x: rs.stack([x[0], x[2]]))(XS),
        [1.0, 3.0],
    ),
    "math": (
        lambda: rs.compile(lambda x: __import__("math").sqrt(x))(4.0),
        r"rs\.exp\(x\)",
        lambda: rs.compile(lambda x: rs.sqrt(x))(4.0),
        2.0,
    ),
    "range": (
        lambda: rs.compile(lambda x, n: [x := x * 2 for _ in range(n)])(1.0, 3),
        r"rs\.fori\(0, n, body, init\)",
        lambda: rs.compile(lambda x, n: rs.fori(0, n, lambda i, v: v * 2, x))(1.0, 3),
        8.0,
    ),
    "and, or": (
        lambda: rs.compile(lambda x: (x == 1) or (x == 2))(XS),
        r"& \| ~",
        lambda: rs.compile(lambda x: (x == 1) | (x == 2))(XS),
        [True, True, False],
    ),
    "if": (
        lambda: rs.compile(lambda x: x if x > 0 else -x)(-2.0),
        r"rs\.where\(condition, a, b\)",
        lambda: rs.compile(lambda x: rs.where(x > 0, x, -x))(-2.0),
        2.0,
    ),
    "writing in place": (
        lambda: rs.compile(lambda x: x.__setitem__(0, 5.0))(XS),
        r"x\.at\[index\]\.set\(value\)",
        lambda: rs.compile(lambda x: x.at[0].set(5.0))(XS),
        [5.0, 2.0, 3.0],
    ),
    "several sequences for one": (
        lambda: rs.loop(lambda x: 2 * x, over=[1, 2, 3]),
        r"np\.array\(…\)",
        lambda: rs.loop(lambda x: 2 * x, over=np.array([1, 2, 3])).eval(),
        [2, 4, 6],
    ),
    "a condition among the outputs": (
        lambda: scanned(lambda h: (h + 1, h > 1), outputs_info=0, n_steps=9),
        r"rs\.until\(condition\)",
        lambda: scanned(lambda h: (h + 1, rs.until(h > 1)), outputs_info=0, n_steps=9),
        [1, 2, 3],
    ),
    "unpacking": (
        lambda: rs.compile(lambda p: (lambda a, b: a * b)(*p))(XS[1:]),
        r"a, b = \(x\[i\] for i in range\(2\)\)",
        lambda: rs.compile(lambda p: (lambda a, b: a * b)(*(p[i] for i in range(2))))(XS[1:]),
        6.0,
    ),
    "enumerate": (
        lambda: rs.compile(lambda x: sum(i * v for i, v in enumerate(x)))(XS),
        r"over=\(rs\.arange\(x\.shape\[0\]\), x\) what enumerate is",
        lambda: rs.compile(lambda x: rs.loop(lambda i, v, s: s + i * v, over=(rs.arange(x.shape[0]), x), init=0.0).last)(XS),
        8.0,
    ),
    "NumPy's zeros of a variable's shape": (
        lambda: rs.compile(lambda x: x + np.zeros(x.shape))(XS),
        r"rs\.zeros\(x\.shape\)",
        lambda: rs.compile(lambda x: x + rs.zeros(x.shape))(XS),
        [1.0, 2.0, 3.0],
    ),
    "a scalar for a vector": (
        lambda: rs.compile(lambda x: x[0])(2.0),
        r"1 index for 0 axes[^$]*pass one: np\.array\(\[…\]\)",
        lambda: rs.compile(lambda x: x[0])(np.array([2.0])),
        2.0,
    ),
    "floats as an index": (
        lambda: rs.compile(lambda x, i: x[i])(XS, np.array([2.0])),
        r'rs\.cast\(i, "int64"\)',
        lambda: rs.compile(lambda x, i: x[rs.cast(i, "int64")])(XS, np.array([2.0])),
        [3.0],
    ),
    "rows of different lengths": (
        lambda: rs.compile(rs.sum)([[1.0, 2.0], [3.0]]),
        r"its rows have different lengths[^$]*rs\.loop\(…, lengths=n\)",
        lambda: rs.loop(lambda x, s: s + x, over=np.array([[1.0, 3.0], [2.0, 0.0]]), init=np.zeros(2), lengths=[2, 1]).last.eval(),
        [3.0, 3.0],
    ),
    "lengths that are floats": (
        lambda: rs.loop(lambda x, s: s + x, over=np.ones((2, 2)), init=np.zeros(2), lengths=[2.0, 1.0]),
        r'np\.asarray\(lengths, "int64"\)',
        lambda: rs.loop(lambda x, s: s + x, over=np.ones((2, 2)), init=np.zeros(2), lengths=np.asarray([2.0, 1.0], "int64")).last.eval(),
        [2.0, 1.0],
    ),
    "a number of steps that is a float": (
        lambda: rs.loop(lambda h: 2 * h, init=1.0, n_steps=3.0),
        r"int\(n\)",
        lambda: rs.loop(lambda h: 2 * h, init=1.0, n_steps=int(3.0)).last.eval(),
        8.0,
    ),
    "the number of the step": (
        lambda: rs.loop(lambda x, t, s: {"s": s + t * x}, over={"x": XS}, init={"s": 0.0}),
        r"give `t` in `over`[^$]*over=rs\.arange\(n\)",
        lambda: rs.loop(lambda x, t, s: {"s": s + t * x}, over={"x": XS, "t": rs.arange(3)}, init={"s": 0.0}).last.s.eval(),
        8.0,
    ),
    "a range of Python's": (
        lambda: rs.loop(lambda i, s: s + i, over=range(3), init=0),
        r"rs\.arange\(n\)",
        lambda: rs.loop(lambda i, s: s + i, over=rs.arange(3), init=0).last.eval(),
        3,
    ),
    "a state that grows": (
        lambda: rs.loop(lambda x, p: rs.append(p, x), over=XS, init=rs.zeros(0)),
        r"\.at\[t\]\.set\(…\)`\n.*over=rs\.arange\(n\)",
        lambda: rs.loop(lambda t, x, p: p.at[t].set(x), over=(rs.arange(3), XS), init=rs.zeros(3)).last.eval(),
        [1.0, 2.0, 3.0],
    ),
    "nothing to loop over": (
        lambda: rs.loop(lambda h: 2 * h, init=1.0),
        r"pass over=x, .* or n_steps=n",
        lambda: rs.loop(lambda h: 2 * h, init=1.0, n_steps=3).last.eval(),
        8.0,
    ),
    "JAX's pair with None": (
        lambda: rs.loop(lambda x, h: (h + x, None), over=XS, init=0.0),
        r"it is `return carry`",
        lambda: rs.loop(lambda x, h: h + x, over=XS, init=0.0).last.eval(),
        6.0,
    ),
    "a condition beside a dict": (
        lambda: rs.loop(lambda h: ({"h": h + 1}, h > 1), init={"h": 0.0}, n_steps=9),
        r"only rs\.until\(condition\)",
        lambda: rs.loop(lambda h: ({"h": h + 1}, rs.until(h > 1)), init={"h": 0.0}, n_steps=9).h.eval(),
        [1.0, 2.0, 3.0],
    ),
    "a list of numbers as a state": (
        lambda: rs.loop(lambda x, h: {"h": h + x}, over={"x": XS}, init={"h": [0.0, 0.0]}),
        r"np\.array\(\[…\]\) makes one array",
        lambda: rs.loop(lambda x, h: {"h": h + x}, over={"x": XS}, init={"h": np.array([0.0, 0.0])}).last.h.eval(),
        [6.0, 6.0],
    ),
    "a float64 array in a float32 loop": (
        lambda: rs.loop(lambda h: h + rs.ones(2), init=np.zeros(2, "float32"), n_steps=2),
        r"float64 unless told",
        lambda: rs.loop(lambda h: h + rs.ones(2, dtype=h.dtype), init=np.zeros(2, "float32"), n_steps=2).last.eval(),
        [2.0, 2.0],
    ),
    "scan's name in loop": (
        lambda: rs.loop(lambda x: 2 * x, sequences=XS),
        r"`sequences`[^$]*is called `over` here",
        lambda: rs.loop(lambda x: 2 * x, over=XS).eval(),
        [2.0, 4.0, 6.0],
    ),
    "a misspelt argument": (
        lambda: rs.vmap(lambda x: 2 * x, inaxes=0),
        r"is called `in_axes` here",
        lambda: rs.vmap(lambda x: 2 * x, in_axes=0)(XS).eval(),
        [2.0, 4.0, 6.0],
    ),
    "SciPy's args": (
        lambda: rs.ode.odeint(lambda y, t, k: -k * y, 1.0, [0.0, 1.0], args=(0.0,)),
        r"is called `\*args` here",
        lambda: rs.ode.odeint(lambda y, t, k: -k * y, 1.0, [0.0, 1.0], 0.0).eval(),
        [1.0, 1.0],
    ),
    "derivatives in a list": (
        lambda: rs.ode.odeint(lambda y, t: [y[1], 0.0], np.zeros(2), [0.0, 1.0]),
        r"rs\.stack\(\[…\]\) makes one array",
        lambda: rs.ode.odeint(lambda y, t: rs.stack([y[1], 0.0]), np.zeros(2), [0.0, 1.0]).eval(),
        [[0.0, 0.0], [0.0, 0.0]],
    ),
    "mapped over a number": (
        lambda: rs.vmap(rs.add)(XS, 1.0),
        r"in_axes=\(0, None\)",
        lambda: rs.vmap(rs.add, in_axes=(0, None))(XS, 1.0).eval(),
        [2.0, 3.0, 4.0],
    ),
    "text in a shared variable": (
        lambda: rs.shared(1.0, "w").set_value("2"),
        r"E0506[^$]*text is no number: np\.asarray\(x, dtype=float\)",
        lambda: rs.shared(np.asarray("2", dtype=float), "w").get_value(),
        2.0,
    ),
    "scan unpacked": (
        lambda: rs.function([], rs.scan(lambda x: 2 * x, sequences=XS)),
        r"outputs, updates = rs\.scan\(…\)",
        lambda: rs.function([], rs.scan(lambda x: 2 * x, sequences=XS)[0])(),
        [2.0, 4.0, 6.0],
    ),
    "integers": (lambda: rs.grad(lambda x: x * x)(3), r"2\.0 for 2", lambda: rs.grad(lambda x: x * x)(3.0), 6.0),
    "dtypes of states": (
        lambda: rs.loop(lambda x, h: h + x, over=XS, init=np.zeros((), "int64")),
        "start from float64",
        lambda: rs.loop(lambda x, h: h + x, over=XS, init=np.zeros((), "float64"))[-1].eval(),
        6.0,
    ),
    "a shared variable's value": (
        lambda: np.asarray(rs.shared(XS)),
        r"get_value\(\)",
        lambda: rs.shared(XS).get_value(),
        XS,
    ),
    "a scalar as a sequence": (
        lambda: rs.scan(lambda x, c: x * c, sequences=[XS, rs.constant(2.0)]),
        "non_sequences",
        lambda: scanned(lambda x, c: x * c, sequences=[XS], non_sequences=[rs.constant(2.0)]),
        [2.0, 4.0, 6.0],
    ),
}


@pytest.mark.parametrize("case", ADVICE)
def test_advice_that_is_followed_runs(case):
    wrong, words, right, expected = ADVICE[case]
    with pytest.raises((rs.RscanError, TypeError), match=words):
        wrong()
    np.testing.assert_array_equal(right(), expected)


def test_a_value_of_a_step_that_leaves_it():
    kept = []
    rs.loop(lambda x, h: (kept.append(x + 1), h + x)[1], over=XS, init=0.0)
    with pytest.raises(rs.MissingInputError, match="leaves the loop by being returned from the step"):
        rs.function([], kept[0])


def test_a_format_of_numbers_wants_a_value():
    x = rs.dscalar("x")
    with pytest.raises(rs.RscanTypeError, match=r"cannot be written as '\.2f'[^$]*rs\.Print"):
        f"{x:.2f}"
    assert f"{x}" == str(x)


@pytest.mark.parametrize(
    ("value", "name", "words"),
    [
        (lambda: rs.constant(1.0) + 1, "item", r"x\.eval\(\)\.item\(\) has the value"),
        (lambda: rs.dvector("v") + 1, "tolist", r"x\.eval\(\{v: …\}\)\.tolist\(\) has the value"),
        (lambda: rs.shared(1.0), "item", r"x\.get_value\(\)\.item\(\) has the value"),
        (lambda: rs.loop(lambda x: {"y": x}, over={"x": XS}), "eval", r"no output named 'eval'; it has y, whose values have: out\.y\.eval"),
    ],
)
def test_what_arrays_have_is_had_of_values(value, name, words):
    with pytest.raises(AttributeError, match=words):
        getattr(value(), name)


@pytest.mark.parametrize(
    ("name", "instead"), [("exp", r"rs\.exp\(x\)"), ("unsqueeze", r"rs\.expand_dims\(x, axis\)"), ("grad", r"rs\.grad")]
)
def test_functions_and_what_tensors_have(name, instead):
    with pytest.raises(AttributeError, match=f"has no attribute '{name}': {instead}"):
        getattr(rs.constant(1.0), name)


def test_variables_without_values_have_no_items():
    with pytest.raises(AttributeError, match="it has no value while a function is traced"):
        rs.compile(lambda x: x.item())(1.0)
    with pytest.raises(AttributeError, match="it has no value while a function is traced"):
        rs.loop(lambda x: x.item(), over=XS)
    with pytest.raises(AttributeError, match=r"has no attribute 'itme'$"):
        rs.constant(1.0).itme


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("x > 0.5 | x < -0.5", "(x > 0.5) | (x < -0.5)"),
        ("[x < 1 & x > 0, 1]", "(x < 1) & (x > 0)"),
        ("rs.where(x < 1 & x > 0, x, 0)", "(x < 1) & (x > 0)"),
        ("0 < x < 1", "(0 < x) & (x < 1)"),
        ("(x > 0) & x < 1 & x != 3", "(x > 0) & (x < 1) & (x != 3)"),
    ],
)
def test_conditions_are_shown_with_parentheses(written, meant, tmp_path):
    file = tmp_path / "program.py"
    file.write_text(written)
    with pytest.raises(rs.RscanTypeError) as caught:
        exec(compile(written, str(file), "exec"), {"rs": rs, "x": rs.dscalar("x")})
    assert meant in caught.value.helps[-1]


def test_missing_arguments_are_told_with_those_that_there_are():
    with pytest.raises(rs.RscanTypeError, match=r"missing a required argument: 'y'[^$]*its arguments are theta, y"):
        rs.compile(lambda theta, y: theta * y)(1.0, Y=2.0)


@pytest.mark.parametrize(
    ("module", "name", "meant"), [(rs, "cumsums", "cumsum"), (rs.linalg, "chol", None), (rs.linalg, "choleski", "cholesky")]
)
def test_misspelt_names(module, name, meant):
    with pytest.raises(AttributeError) as caught:
        getattr(module, name)
    assert (f"did you mean `{meant}`" in str(caught.value)) == (meant is not None)


def test_a_step_whose_first_parameter_is_called_carry():
    with pytest.warns(UserWarning, match=r"called 'carry' and gets rows of `over`: .* step\(x, carry\)") as caught:
        rs.loop(lambda carry, x: carry + rs.sum(x), over=rs.dmatrix("xs"), init=0.0)
    assert caught[0].filename == __file__
    rs.loop(lambda carry, x: carry + rs.sum(x), over=dict(x=rs.dvector("xs")), init=dict(carry=0.0))


def test_a_tuple_as_carry_is_one_state_in_a_list():
    xs = rs.dvector("xs")
    with pytest.raises(rs.ScanError, match=r"init=\[carry\] is one state that is a tuple"):
        rs.loop(lambda x, c: (c[0] + x, c[1]), over=xs, init=(0.0, 1.0))
    rs.loop(lambda x, c: (c[0] + x, c[1]), over=xs, init=[(0.0, 1.0)])


@pytest.mark.parametrize(
    ("name", "where"),
    [("svd", "rs.linalg.svd"), ("adam", "rs.optim.adam"), ("norm", "rs.linalg.norm or rs.stats.norm"), ("rk4", "rs.ode.rk4")],
)
def test_names_of_the_modules_within(name, where):
    with pytest.raises(AttributeError, match=f"has no attribute '{name}': it is {where}$"):
        getattr(rs, name)


def test_keys_are_counted_by_integers():
    with pytest.raises(rs.RscanTypeError, match=r"the number of keys is an integer, not 2\.5"):
        rs.random.split(rs.random.key(0), 2.5)


def test_several_sequences_where_one_was_meant():
    keys = tuple(rs.random.split(rs.random.key(0), 5))
    with pytest.raises(rs.errors.ScanError, match=r"E0122[\s\S]*rs\.stack\(items\) makes one of them"):
        rs.loop(lambda key, x: x + rs.random.normal(key), over=keys, init=0.0)


@pytest.mark.parametrize(
    "use",
    [lambda out: out * 2, lambda out: 2 + out, lambda out: np.ones(3) - out, np.exp, lambda out: out < 1, lambda out: -out],
)
def test_arithmetic_with_a_loop_says_which_array_to_take(use):
    out = rs.loop(lambda x, m: dict(m=m + x), over=np.arange(3.0), init=dict(m=0.0))
    with pytest.raises(rs.RscanTypeError, match=r"E0805[\s\S]*take out\.m"):
        use(out)


@pytest.mark.parametrize("name", ["gelu", "layer_norm", "elu", "leaky_relu", "glu", "dropout"])
def test_functions_of_networks_that_are_a_line(name):
    with pytest.raises(AttributeError, match=f"has no attribute '{name}': .*x"):
        getattr(rs, name)


def test_images_are_no_vectors():
    with pytest.raises(rs.RscanValueError, match=r"docs/numpy\.md"):
        rs.convolve(np.ones((3, 3)), np.ones((2, 2)))


def test_steps_that_fit_neither_way_get_no_advice_about_the_order():
    with pytest.raises(rs.RscanError) as caught:
        rs.loop(lambda a, b: rs.outer(a, b), over=np.ones((3, 2)), init=np.zeros(2))
    assert "JAX" not in str(caught.value)


def test_advice_is_looked_for_once_in_loops_of_loops():
    """Each loop would call its step again, and with it all loops within."""
    calls = []

    def nested(h, depth):
        calls.append(depth)
        if depth == 0:
            return rs.concatenate([h, h])
        return rs.loop(lambda x, h: nested(h, depth - 1), over=np.ones((2, 3)), init=h)[-1]

    with pytest.raises(rs.ScanTypeError):
        nested(rs.zeros(3), 6)
    assert len(calls) < 40


def test_a_tuple_where_an_array_is_meant():
    with pytest.raises(TypeError) as caught:
        rs.compile(lambda x: x @ x)((1.0, 2.0))
    assert caught.value.__notes__ == ["argument `x` of <lambda>() is a tuple, which the function gets as one: np.array(…) makes an array"]
    assert rs.compile(lambda x: x @ x)(np.array((1.0, 2.0))) == 5
    with pytest.raises(TypeError) as caught:
        rs.compile(lambda *xs: xs @ xs)(1.0, 2.0)
    assert not hasattr(caught.value, "__notes__")


def test_advice_never_hides_the_error():
    """The function is traced once more with the shapes of the call; what it raises then is not what was asked for."""
    traced = []

    @rs.compile
    def f(xs, w):
        traced.append(xs.static_shape)
        if xs.static_shape[0] is not None:
            raise KeyError("of the function itself")
        return rs.loop(lambda x, h: rs.tanh(x @ w + h), over=xs, init=rs.zeros(3))[-1]

    with pytest.raises(rs.ShapeError) as caught:
        f(np.ones((5, 2)), np.ones((4, 3)))
    assert caught.value.code == "E0208" and traced == [(None, None), (5, 2)]
    with pytest.raises(rs.ShapeError):
        f(np.ones((5, 3)), np.ones((4, 3)))


def test_functions_of_scipy_on_variables():
    stats = pytest.importorskip("scipy.stats", reason="scipy is not installed")
    with pytest.raises(rs.RscanTypeError, match=r"rs\.stats\.norm\.logpdf\(x\)") as caught:
        rs.compile(lambda x: stats.norm.logpdf(x))(0.5)
    assert {Path(file).name for file, _, _ in caught.value.labels} == {Path(__file__).name}
    assert rs.compile(lambda x: rs.stats.norm.logpdf(x))(0.5) == pytest.approx(stats.norm.logpdf(0.5), rel=1e-14)


class TestLines:
    """Lines of the standard library and of scripts are no user's."""

    def test_of_the_standard_library(self):
        x = rs.dvector("x")
        caught = []

        def fail():
            try:
                functools.reduce(rs.add, [x, "text"])
            except rs.RscanError as error:
                caught.append(error)

        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()
        assert [Path(file).name for file, _, _ in caught[0].labels] == [Path(__file__).name]

    def test_none_where_there_is_no_user(self):
        f = rs.function([rs.dvector("x")], rs.constant(1.0), on_unused_input="ignore")
        caught = []

        def kept(args):
            caught.append(args.exc_value)

        before, threading.excepthook = threading.excepthook, kept
        try:
            thread = threading.Thread(target=f, args=("text",))
            thread.start()
            thread.join()
        finally:
            threading.excepthook = before
        assert {Path(file).name for file, _, _ in caught[0].labels} == {Path(__file__).name}

    def test_of_scripts(self, tmp_path):
        script = Path(sys.executable).with_name("rscan")
        if not script.exists():
            pytest.skip("the script is not installed")
        (tmp_path / "x.rscan").write_text("no file of rscan's")
        done = subprocess.run([script, "inspect", tmp_path / "x.rscan"], capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and "sys.exit" not in done.stderr and "-->" not in done.stderr

    def test_long_ones_are_cut(self):
        x = rs.tensor("float64", [3], "x")
        with pytest.raises(rs.ShapeError) as caught:
            x + rs.zeros(4) + 0.0 + 1.0 + 2.0 + 3.0 + 4.0 + 5.0 + 6.0 + 7.0 + 8.0 + 9.0 + 10.0 + 11.0 + 12.0 + 13.0 + 14.0 + 15.0 + 16.0
        line = next(text for text in str(caught.value).splitlines() if "| " in text)
        assert "x + rs.zeros(4)" in line and line.endswith("…") and len(line) < 130
