"""Variables and functions through pickle and copy."""

import copy
import pickle

import numpy as np
import pytest
from helpers import same

import rscan as rs

WAYS = [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]


@pytest.fixture(params=WAYS, ids=["deepcopy", "pickle"])
def through(request):
    """A way to copy."""
    return request.param


def test_expressions(through):
    x, w = rs.vector("x"), rs.shared(np.ones(3), "w")
    y = (x * w).sum()
    y.name = "total"
    y.tag.note = "kept"
    x2, w2, y2 = through((x, w, y))
    assert (x2.name, y2.name, y2.tag.note) == ("x", "total", "kept") and x2 is not x and w2 is not w
    w2.set_value(np.full(3, 2.0))
    same(rs.function([x2], y2)([1, 2, 3]), np.asarray(12.0))
    same(rs.function([x], y)([1, 2, 3]), np.asarray(6.0))


def test_functions_keep_sharing(through):
    n = rs.shared(0, "n")
    up, show = through((rs.function([], [], updates={n: n + 1}), rs.function([], n)))
    up(), up()
    assert int(show()) == 2 and int(n.get_value()) == 0


def test_everything_of_a_function(through):
    x, y, z = rs.scalars("x y z")
    f = rs.function([x, rs.In(y, value=5.0)], {"a": x + y + z, "b": rs.exp(x)}, givens={z: x * 100}, name="f")
    g = through(f)
    assert g(1.0) == f(1.0) and g(1.0, y=2.0) == f(1.0, 2.0) and g.name == "f" and repr(g) == repr(f)
    with pytest.raises(TypeError):
        g()
    h = rs.function([e := rs.exp(x)], e * 2)
    assert through(h)(3.0) == 6.0


def test_default_updates(through):
    n = rs.shared(0, "n")
    n.default_update = n + 1
    m, y = through((n, n * 10))
    f = rs.function([], y)
    assert (int(f()), int(f()), int(m.get_value()), int(n.get_value())) == (0, 10, 2, 0)


def test_loops(through):
    x, h0 = rs.vector("x"), rs.scalar("h0")
    hs, _ = rs.scan(lambda x_t, h: x_t + 0.5 * h, sequences=x, outputs_info=h0)
    f = rs.function([x, h0], [hs, rs.grad(hs[-1], h0)])
    same(through(f)([1.0, 2.0], 4.0), f([1.0, 2.0], 4.0))


def test_constants(through):
    c = rs.constant(np.arange(3), name="c")
    d = through(c)
    assert d.name == "c" and d.eval().tolist() == [0, 1, 2]
