"""Compiled functions: arguments, outputs, updates, givens."""

import threading
import time

import numpy as np
import pytest
from helpers import DTYPES, run, same

import rscan as rs

A = np.arange(12.0).reshape(3, 4)


def test_forms_of_outputs():
    x = rs.vector("x")
    single = rs.function([x], x.sum())([1, 2])
    assert isinstance(single, np.ndarray) and single.shape == () and single == 3
    assert isinstance(rs.function([x], [x])([1.0]), list)
    assert list(rs.function([x], {"twice": 2 * x, "sum": x.sum()})([1, 2])) == ["twice", "sum"]
    assert rs.function([x], None, on_unused_input="ignore")([1]) == []
    assert rs.function([x], [], on_unused_input="ignore")([1]) == []
    same(rs.function([x], x + 1)([1.0]), np.array([2.0]))
    same(rs.function(x, rs.Out(x + 1))([1.0]), np.array([2.0]))


def test_an_output_that_is_an_input_is_a_copy():
    x = rs.vector("x")
    a = np.ones(3)
    out = rs.function([x], x)(a)
    out[0] = 5
    assert a[0] == 1
    big = np.ones(100_000)
    out = rs.function([x], x)(big)
    out[0] = 5
    assert big[0] == 1


def test_results_are_the_callers_own():
    x = rs.vector("x")
    f = rs.function([x], [x * 2, x * 2])
    for n in (3, 100_000):
        first, second = f(np.ones(n))
        first[:] = 0
        assert second[0] == 2 and f(np.ones(n))[0][0] == 2
        assert first.flags.writeable


AWKWARD = {
    "strided": A[::2, ::-1],
    "fortran": np.asfortranarray(A),
    "transposed": A.T,
    "broadcast": np.broadcast_to(np.arange(4.0), (3, 4)),
    "byte swapped": A.astype(">f8"),
    "empty": np.zeros((0, 4)),
    "unaligned": np.frombuffer(b"\0" + A.tobytes(), "f8", offset=1).reshape(3, 4),
    "structured field": np.rec.fromarrays([A.astype("i1"), A])["f1"],
    "float32": A.astype("float32"),
    "int": A.astype("int64"),
    "bool": A > 3,
    "lists": A.tolist(),
    "tuples": tuple(map(tuple, A.tolist())),
    "matrix subclass": A.view(type("Sub", (np.ndarray,), {})),
}


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_arguments(name):
    value = AWKWARD[name]
    x = rs.matrix("x")
    same(rs.function([x], x * 1.0)(value), np.asarray(value, dtype="float64") * 1.0)


def test_read_only_arguments():
    a = A.copy()
    a.flags.writeable = False
    x = rs.matrix("x")
    same(rs.function([x], rs.set_subtensor(x[0], 0.0))(a)[0], np.zeros(4))


def test_zero_dimensional_arguments():
    x, n = rs.scalar("x"), rs.iscalar("n")
    f = rs.function([x, n], x * n)
    for value in (2, 2.0, np.float64(2), np.float32(2), np.array(2.0), np.array(2), True):
        assert f(value, 3) == float(value) * 3
    assert f(1.0, np.int64(3)) == 3


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_goes_in_and_out(dtype):
    x = np.array([[0, 1], [1, 100 if dtype != "bool" else 0]], dtype)
    same(run(lambda v: v, x), x)
    same(run(lambda v: v.T, x), x.T)


def test_values_that_survive():
    f = rs.function([x := rs.fvector("x")], x)
    same(f([0.5]), np.array([0.5], "float32"))
    same(f(range(3)), np.arange(3, dtype="float32"))
    with pytest.raises(TypeError, match="cannot hold exactly"):
        f([0.1])
    with pytest.raises(TypeError, match="float64"):
        f(np.array([0.5]))
    same(rs.function([x], x, allow_input_downcast=True)(np.array([0.1])), np.array([0.1], "float32"))
    with rs.config.override(floatX="float32"):
        same(f([0.1]), np.array([0.1], "float32"))
    g = rs.function([n := rs.bvector("n")], n)
    same(g([1, -128]), np.array([1, -128], "int8"))
    for bad in ([128], [1.5], np.array([1])):
        with pytest.raises(TypeError):
            g(bad)
    assert np.isnan(rs.function([x], x)([np.nan]))[0]


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (np.zeros(3), "1 axes"),
        (np.zeros((2, 2, 2)), "3 axes"),
        (3.0, "0 axes"),
        ("text", "text"),
        (None, "None"),
        ([[1], [1, 2]], "no array"),
        (np.zeros((2, 2), complex), "complex128"),
        (np.array([[None]]), "object"),
        (rs.matrix("y"), "a variable"),
    ],
    ids=lambda v: type(v).__name__,
)
def test_unfit_arguments_are_named(value, word):
    f = rs.function([x := rs.matrix("weights")], x * 2)
    with pytest.raises(TypeError, match="weights") as error:
        f(value)
    assert error.value.code == "E0504"
    assert word in str(error.value)
    assert "test_function.py" in str(error.value)


def test_static_shapes_are_checked():
    f = rs.function([x := rs.tensor("float64", (None, 3), "x")], x * 2)
    with pytest.raises(TypeError, match=r"\(2, 4\)"):
        f(np.zeros((2, 4)))
    with pytest.raises(TypeError, match="x"):
        rs.function([r := rs.row("x")], r * 2)(np.zeros((2, 4)))


def test_names_and_defaults():
    x, y, z = rs.scalar("x"), rs.scalar("y"), rs.scalar("z")
    f = rs.function([x, rs.In(y, value=10.0), rs.In(z, value=100.0, name="other")], x + y + z)
    assert (f(1), f(1, 2), f(1, other=0), f(x=1, y=2), f(1, other=1, y=1)) == (111, 103, 11, 103, 3)
    for args, named, word in [
        ((), {}, "needs"),
        ((1, 2, 3, 4), {}, "got 4"),
        ((1,), {"x": 2}, "twice"),
        ((1,), {"w": 2}, "unexpected keyword argument 'w'"),
    ]:
        with pytest.raises(TypeError, match=word):
            f(*args, **named)


def test_missing_and_unused_inputs():
    x, y = rs.vector("x"), rs.vector("y")
    with pytest.raises(rs.errors.MissingInputError, match="y"):
        rs.function([x], x + y)
    with pytest.raises(rs.errors.UnusedInputError, match="`y`"):
        rs.function([x, y], x)
    with pytest.warns(UserWarning, match="`y`"):
        rs.function([x, y], x, on_unused_input="warn")
    same(rs.function([x, y], x, on_unused_input="ignore")([1.0], [2.0]), np.array([1.0]))
    with pytest.raises(ValueError, match="twice"):
        rs.function([x, x], x)
    with pytest.raises(ValueError, match="on_unused_input"):
        rs.function([x], x, on_unused_input="maybe")


def test_inputs_may_be_intermediate():
    x = rs.vector("x")
    y = rs.exp(x)
    same(rs.function([y], y * 2)([3.0]), np.array([6.0]))


@pytest.mark.parametrize("bad", [3, "x", None, rs.constant(1.0)], ids=repr)
def test_what_cannot_be_an_input(bad):
    with pytest.raises(TypeError):
        rs.function([bad], rs.scalar())


def test_updates():
    n, x = rs.shared(0, "n"), rs.scalar("x")
    f = rs.function([], n, updates={n: n + 1})
    assert [int(f()) for _ in range(3)] == [0, 1, 2] and n.get_value() == 3
    a, b = rs.shared(1.0, "a"), rs.shared(2.0, "b")
    rs.function([], [], updates=[(a, b), (b, a)])()
    assert (a.get_value(), b.get_value()) == (2, 1)
    rs.function([x], updates={a: x})(7)
    assert a.get_value() == 7
    rs.function([], updates={a: 5})()
    assert a.get_value() == 5 and a.get_value().dtype == "float64"
    with pytest.raises(ValueError, match="twice"):
        rs.function([], updates=[(a, b), (a, a + 1)])
    with pytest.raises(TypeError, match="`n`"):
        rs.function([], updates={n: a})
    with pytest.raises(TypeError):
        rs.function([], updates={a: rs.vector()})


def test_an_error_commits_nothing():
    a = rs.shared(np.zeros(3), "a")
    i = rs.iscalar("i")
    f = rs.function([i], a[i], updates={a: a + 1})
    with pytest.raises(IndexError):
        f(7)
    same(a.get_value(), np.zeros(3))
    f(1)
    same(a.get_value(), np.ones(3))


def test_default_updates():
    n = rs.shared(0, "n")
    n.default_update = n + 1
    y = n * 10
    f = rs.function([], y)
    assert (int(f()), int(f())) == (0, 10)
    assert int(rs.function([], y, no_default_updates=True)()) == 20 == int(rs.function([], y, no_default_updates=[n])())
    rs.function([], y, updates={n: n + 5})()
    assert n.get_value() == 7
    del n
    z = rs.function([], y + 1)
    assert (int(z()), int(z())) == (71, 81)


def test_givens():
    x, y = rs.vector("x"), rs.vector("y")
    same(rs.function([y], x * 2, givens={x: y + 1})([1.0]), np.array([4.0]))
    same(rs.function([], x * 2, givens=[(x, np.array([3.0]))])(), np.array([6.0]))
    s = rs.shared(np.arange(6.0), "data")
    i = rs.lscalar("i")
    same(rs.function([i], x.sum(), givens={x: s[i : i + 2]})(2), np.asarray(5.0))


def test_eval():
    x, y = rs.vector("x"), rs.scalar("y")
    same((x * y).eval({x: [1, 2], y: 3}), np.array([3.0, 6.0]))
    same((x * y).eval({"x": [1, 2], "y": 3}), np.array([3.0, 6.0]))
    same(rs.eval([x + 1, x.sum()], {x: [1, 2]}), [np.array([2.0, 3.0]), np.asarray(3.0)])
    assert (rs.as_variable(2) + 3).eval() == 5
    with pytest.raises(rs.errors.MissingInputError):
        (x * y).eval({x: [1, 2]})
    with pytest.raises(ValueError, match="nope"):
        x.eval({"nope": 1})


def test_shared_values():
    a = np.ones(3)
    s = rs.shared(a, "s")
    a[0] = 5
    s.get_value()[1] = 5
    same(s.get_value(), np.ones(3))
    s.set_value([1, 2])
    same(s.get_value(), np.array([1.0, 2.0]))
    values = {"int64": 3, "float64": 3.0, "bool": True, "float32": np.float32(1)}
    assert all(rs.shared(value).dtype == dtype for dtype, value in values.items())
    for bad in (np.zeros((2, 2)), np.zeros(2, complex), 3.0):
        with pytest.raises(TypeError):
            s.set_value(bad)
    with pytest.raises(TypeError, match=r"`s`|s: "):
        rs.shared(np.zeros(2, "int32"), "s").set_value([0.5])
    with pytest.raises(TypeError):
        rs.shared(np.zeros((2, 3)), shape=(None, 3)).set_value(np.zeros((2, 4)))
    with pytest.raises(TypeError, match="shared"):
        rs.function([s], s)
    with pytest.raises(TypeError):
        rs.shared(rs.vector())


def test_many_threads():
    n = rs.shared(0)
    f = rs.function([x := rs.vector("x")], x.sum(), updates={n: n + 1})
    wrong = []

    def work(k):
        for _ in range(50):
            if f(np.full(100, float(k))) != 100 * k:
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and n.get_value() == 400


def test_text_shows_the_graph():
    f = rs.function([x := rs.vector("x")], rs.exp(x), name="model")
    assert f.text().startswith("fn model(x: f64[") and "exp(x)" in f.text()
    assert repr(f) == "<rscan function model(x)>"


def test_a_call_is_quick():
    f = rs.function([x := rs.vector("x")], x + 1)
    a = np.ones(4)
    f(a)
    start = time.perf_counter()
    for _ in range(200):
        f(a)
    assert (time.perf_counter() - start) / 200 < 500e-6
