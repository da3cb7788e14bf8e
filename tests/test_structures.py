"""Structures outside the transforms: branches, results of functions, values, gradients of variables; and where they do not fit."""

import dataclasses
import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest

import rscan as rs


class Pair(NamedTuple):
    a: Any
    b: Any


@dataclasses.dataclass
class State:
    h: Any
    c: Any


Q, X = 2.0, np.array([1.0, 3.0])
MAKES = {
    "dict": lambda a, b: {"a": a, "b": b},
    "tuple": lambda a, b: (a, b, ()),
    "list": lambda a, b: [a, [b]],
    "named tuple": Pair,
    "dataclass": State,
    "nested": lambda a, b: State(Pair(a, None), {"c": [b, a], "kind": "state"}),
}


@pytest.fixture(params=MAKES)
def make(request):
    return MAKES[request.param]


def equal(a, b):
    """Equal structures of the same types, arrays by their elements."""
    assert type(a) is type(b) or (np.ndim(a) == np.ndim(b) == 0 and not isinstance(a, (dict, State, str)) and a is not None)
    if dataclasses.is_dataclass(a):
        return equal(vars(a), vars(b))
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        return [equal(a[k], b[k]) for k in a]
    if isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        return [equal(x, y) for x, y in zip(a, b, strict=True)]
    if a is None or isinstance(a, str):
        assert a == b
        return None
    return np.testing.assert_allclose(a, b)


def test_branches(make):
    q, x = rs.dscalar("q"), rs.dvector("x")
    chosen = rs.ifelse(q > 0, make(q, x), make(-q, 2 * x)) if make is not MAKES["nested"] else None
    if chosen is None:
        keep = lambda a, b: State(Pair(a, None), {"c": [b, a]})
        chosen, make = rs.ifelse(q > 0, keep(q, x), keep(-q, 2 * x)), keep
    equal(rs.eval(rs.ifelse(q > 0, Pair(q, x), Pair(-q, x)), {q: Q, x: X}), Pair(Q, X))
    leaves, tree = rs._tree.flatten(chosen, lambda v: isinstance(v, rs.Variable))
    assert tree == rs._tree.flatten(make(q, x), lambda v: isinstance(v, rs.Variable))[1]
    f = rs.function([q, x], [v for v in leaves if v is not None])
    for value in (Q, -Q):
        expected = rs._tree.flatten(make(abs(value), X if value > 0 else 2 * X), lambda v: isinstance(v, np.ndarray))[0]
        for got, wanted in zip(f(value, X), [v for v in expected if v is not None], strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_branches_that_do_not_fit():
    q = rs.dscalar("q")
    for a, b in (([q], [q, q]), ({"a": q}, {"b": q}), (State(q, q), Pair(q, q)), (q, [q]), (Pair(q, q), (q, q))):
        with pytest.raises(rs.RscanTypeError, match=r"the branches of ifelse are .* and "):
            rs.ifelse(q > 0, a, b)


def test_functions_and_values(make):
    q, x = rs.dscalar("q"), rs.dvector("x")
    outputs, expected = make(2 * q, rs.sin(x)), make(np.array(2 * Q), np.sin(X))
    f = rs.function([q, x], outputs)
    equal(f(Q, X), expected)
    equal(rs.eval(outputs, {q: Q, "x": X}), expected)
    equal(pickle.loads(pickle.dumps(f))(Q, X), expected)
    equal(f.bind(Q)(X), expected)
    equal(f.bind(Q).bind(X)(), expected)
    if make is not MAKES["nested"]:  # In which one array stands twice.
        out = make(np.zeros(()), np.zeros(2))
        equal(f(Q, X, out=out), expected)
        equal(out, expected)


def test_flat_tuples_are_lists():
    """As Theano's functions give them."""
    q = rs.dscalar("q")
    assert rs.function([q], (q, 2 * q))(1.0) == [1.0, 2.0]
    assert rs.function([], None)() == []


def test_sessions_give_structures(make):
    x, q = rs.dvector("x"), rs.dscalar("q")
    h = rs.loop(lambda x, h: 0.5 * h + x, over=x, init=q)
    f = rs.function([x, q], make(h, h**2))
    session = f.session(q=1.0)
    steps = [session.step(v) for v in X]
    for i, step in enumerate(steps):
        equal(step, make(*(v[i] for v in rs.function([x, q], [h, h**2])(X, 1.0))))
    equal(f.session(q=1.0).run(X), f(X, 1.0))


def test_gradients_of_structures(make):
    q, x = rs.dscalar("q"), rs.dvector("x")
    if make is MAKES["nested"]:
        make = lambda a, b: State(Pair(a, [b]), {})
    found = rs.grad(q**2 * rs.sum(x**3), make(q, x))
    equal(rs.eval(found, {q: Q, x: X}), make(2 * Q * 28.0, 3 * Q**2 * X**2))


def test_names_in_files_and_models(tmp_path):
    """What a file gives has the names of the places."""
    q = rs.dscalar("q")
    f = rs.function([q], State(q, {"c": [2 * q, 3 * q]}), name="f")
    f.save(tmp_path / "f.rscan")
    found = rs.load(tmp_path / "f.rscan").f(1.0)
    assert list(found) == ["h", "c.c[0]", "c.c[1]"] and [float(v) for v in found.values()] == [1.0, 2.0, 3.0]


def test_scan_and_map_say_who_takes_structures():
    """Their dicts are Theano's, of taps."""
    x = rs.dvector("x")
    with pytest.raises(rs.ScanError, match=r"rs\.loop takes structures as states"):
        rs.scan(lambda s: s, outputs_info=State(x[0], x[1]), n_steps=2)
    with pytest.raises(rs.ScanError, match=r"rs\.loop takes structures as states"):
        rs.map(lambda p: p.h, State(x, x))
    with pytest.raises(rs.ScanError, match=r"rs\.vmap maps a function over a dict of rows"):
        rs.map(lambda p: p["a"], {"a": x})
    np.testing.assert_array_equal(rs.vmap(lambda p: 2 * p["a"])({"a": X}).eval(), 2 * X)


@pytest.mark.parametrize("give", [lambda p: p, lambda p: [p], lambda p: (p, rs.until(False)), lambda p: (p, p["w"])])
def test_one_state_that_is_a_dict_comes_back_as_it_is(give):
    """A dict in a list is one state: the step gets it, and returns it with or without a list around it."""

    def run(w, b):
        out = rs.loop(lambda p: give({"w": 0.5 * p["w"], "b": p["b"] + 1}), init=[{"w": w, "b": b}], n_steps=3)
        return out.last[0], rs.grad(rs.sum(out[0]["w"]), w)

    last, slope = rs.compile(run)(np.array([8.0, 16.0]), 1.0)
    np.testing.assert_array_equal(last["w"], [1.0, 2.0])
    assert last["b"] == 4.0
    np.testing.assert_array_equal(slope, [0.875, 0.875])


def test_a_dict_with_other_names_is_no_such_state():
    with pytest.raises(rs.ScanError, match="returns no value for the state `p`"):
        rs.loop(lambda p: {"a": p["w"]}, init=[{"w": 1.0, "b": 2.0}], n_steps=3)
    with pytest.raises(rs.ScanError, match=r"`init=\[params\]` is one state"):
        rs.loop(lambda p: p, init={"w": 1.0, "b": 2.0}, n_steps=3)


def test_values_are_chosen_and_not_functions():
    k = rs.lscalar("k")
    with pytest.raises(rs.RscanTypeError, match="choose takes values, not functions"):
        rs.choose(k, [lambda: 1.0, lambda: 2.0])
    with pytest.raises(rs.RscanTypeError, match="a value for either case, or neither"):
        rs.switch(k, [k, k + 1])
    with pytest.raises(rs.RscanTypeError, match="a function is no value: call it"):
        rs.where(k > 0, abs, 1.0)


@pytest.mark.parametrize("init", [[State(1.0, 2.0)], (State(1.0, 2.0),), {"s": State(1.0, 2.0)}, State(1.0, 2.0)])
@pytest.mark.parametrize("give", [lambda s: s, lambda s: [s], lambda s: (s, rs.until(False))])
def test_one_state_that_is_a_dataclass_comes_back_as_it_is(init, give):
    x = rs.dvector("x")
    out = rs.loop(lambda x, s: give(State(s.h + s.c, 0.5 * s.c + x)), over={"x": x} if isinstance(init, dict) else x, init=init)
    last = out.last["s"] if isinstance(init, dict) else out.last
    f = rs.function([x], [last.h, last.c])
    assert [float(v) for v in f([1.0, 2.0])] == [5.0, 3.0]
