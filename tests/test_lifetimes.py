"""What is known of loops and shared variables beside their expressions lives as long as these, and no longer."""

import gc
import importlib
import pickle
import pkgutil
import weakref

import numpy as np
import pytest

import rscan as rs
import rscan.theano as theano
import rscan.theano.tensor as T
from rscan import _tracing
from rscan.theano.sandbox.rng_mrg import MRG_RandomStreams

NOTES = (_tracing._Note, importlib.import_module("rscan.shared")._Note)


def notes():
    """How many notes nodes of the core keep."""
    gc.collect()
    return sum(issubclass(type(o), NOTES) for o in gc.get_objects())


def registries():
    """The number of entries of every container that a module of ours has."""
    names = [
        m.name
        for m in pkgutil.walk_packages(rs.__path__, "rscan.")
        if not any(part in m.name for part in ("__main__", "interop.", "onnx._proto"))
    ]
    modules = [importlib.import_module(name) for name in names]
    gc.collect()
    containers = (dict, list, set, weakref.WeakValueDictionary)
    return {
        (module.__name__, name): len(value)
        for module in [rs, *modules]
        for name, value in vars(module).items()
        if isinstance(value, containers) and not name.startswith("__")
    }


def counted():
    """A loop that updates a shared variable by itself, and measures where its time goes."""
    count, x = rs.shared(0, "count"), rs.vector("x")
    out = rs.loop(lambda x, h: (h + x, {count: count + 1}), over=x, init=0.0)
    return count, x, out


def one_step():
    count, x = rs.shared(0, "count"), rs.vector("x")
    return count, x, rs.loop(lambda h: (h + x[0], {count: count + 1}), init=0.0, n_steps=1)


def forgotten():
    count = rs.shared(0)
    return rs.scan(lambda x: (x, {count: count + 1}), sequences=rs.vector("x"), profile=True)


def nested():
    count = rs.shared(0)
    inner = lambda y: (y, {count: count + 1})
    return rs.loop(lambda x: rs.sum(rs.loop(inner, over=x)), over=rs.matrix("x"))


def stream():
    return rs.RandomStream(1).normal((2,))


def drawing_loop():
    draws = rs.RandomStream(3)
    return rs.loop(lambda h: h + draws.uniform(), init=0.0, n_steps=3)


def updated_by_itself():
    v = rs.shared(1.0)
    v.default_update = v * 2
    v.default_update = v + 1
    return v


def compiled():
    f = rs.value_and_grad(lambda x: rs.sum(x * x))
    f(2.0)
    return rs.compile(lambda x: x + 1)(np.ones(2))


def theanos():
    count = theano.shared(0)
    count.default_update = count + 1
    out, updates = theano.scan(lambda x: (x, {count: count + 1}), sequences=T.dvector())
    return out, updates, MRG_RandomStreams(1).uniform((2,)), T.shared_randomstreams.RandomStreams(1).normal((2,))


BUILDERS = [counted, one_step, forgotten, nested, stream, drawing_loop, updated_by_itself, compiled, theanos]


@pytest.mark.parametrize("build", BUILDERS)
def test_what_is_dropped_is_forgotten(build):
    kept = build()
    before, entries = notes(), registries()
    del kept
    for _ in range(100):
        build()
    assert notes() <= before
    after = registries()
    grown = {key: (entries.get(key, 0), n) for key, n in after.items() if n > entries.get(key, 0)}
    assert not grown


def test_thousands_of_loops():
    before, entries = notes(), sum(registries().values())
    for _ in range(5000):
        counted()
    assert notes() <= before and sum(registries().values()) <= entries + 10


def test_functions_and_gradients_keep_nothing():
    def whole():
        _, x, out = counted()
        return rs.function([x], [out, rs.grad(out[-1], x)], profile=True)([1.0, 2.0])

    whole()
    before = notes()
    for _ in range(20):
        whole()
    assert notes() <= before


# What is kept is found.


def test_updates_are_found_as_long_as_the_loop_is():
    count, x, out = counted()
    assert list(out.updates) == [count]
    row = out[-1]
    del out
    gc.collect()
    f = rs.function([x], row)
    assert (f([1.0, 2.0]), count.get_value()) == (3, 2) and (f([1.0]), count.get_value()) == (1, 3)
    count, x, out = one_step()
    f = rs.function([x], out)
    assert (f([5.0]).tolist(), count.get_value()) == ([5], 1)


def test_a_stream_goes_on_without_its_object():
    expected = rs.RandomStream(7)
    wanted = rs.function([], expected.normal((2,)))
    kept = rs.RandomStream(7)
    draw = kept.normal((2,))
    gone = weakref.ref(kept._key)
    del kept
    gc.collect()
    assert gone() is None
    f = rs.function([], draw)
    got = [f(), f(), f()]
    np.testing.assert_array_equal(got, [wanted(), wanted(), wanted()])
    assert not np.array_equal(got[0], got[1])
    g = pickle.loads(pickle.dumps(f))
    assert np.array_equal(g(), f())


@pytest.mark.parametrize("shape", [None, (2,)])
def test_a_default_update_is_found_again(shape):
    def made():
        v = rs.shared(np.array([1.0, 2.0]), "v", shape=shape)
        v.default_update = 3 * v + rs.sum(v)
        return v * 1.0

    y = made()
    gc.collect()
    f = rs.function([], y)
    assert [f().tolist(), f().tolist(), f().tolist()] == [[1, 2], [6, 9], [33, 42]]
    (v,) = f.shared
    assert v.default_update is not None and v.name == "v" and isinstance(v, rs.SharedVariable)
    v.default_update = None
    assert v.default_update is None
    del v
    gc.collect()
    assert f.shared[0].default_update is None


def test_a_default_update_is_found_again_in_steps():
    def made():
        v = rs.shared(np.array([1.0, 2.0]), "v")
        v.default_update = 3 * v + rs.sum(v)
        return v._v

    leaf = made()
    gc.collect()
    f = rs.function([], rs.loop(lambda: rs.sum(rs.as_variable(leaf)), n_steps=3))
    assert f().tolist() == [3, 15, 75] and f()[0] == 375


def test_keys_of_dropped_streams_fold_the_step_in():
    """In a loop the key of a stream advances once per call, not per step, whether or not the stream is still there."""
    steps = rs.loop(lambda: rs.RandomStream(5).uniform(), n_steps=4)
    gc.collect()
    f = rs.function([], steps)
    first, second = f(), f()
    assert len(set(first)) == 4 and not set(first) & set(second)


def test_a_shared_variable_is_the_users_object():
    v = rs.shared(1.0, "v")
    f = rs.function([], v * 2)
    assert f.shared[0] is v and f.get_shared()[0] is v
    w = theano.shared(1.0)
    assert theano.function([], w * 2).get_shared()[0] is w
