"""Transforms of transforms of loops, a few of each program; `make accept-transforms` tries all pairs."""

import random

import composed
import numpy as np
import pytest

import rscan as rs

PAIRS = [(inner, outer) for inner in composed.TRANSFORMS for outer in composed.TRANSFORMS]


@pytest.mark.parametrize(("number", "name"), list(enumerate(composed.PROGRAMS)))
def test_composed(number, name):
    for inner, outer in random.Random(number).sample(PAIRS, 2):
        assert composed.check(name, inner, outer) is None


def test_there_are_as_many_as_is_said():
    assert (len(composed.PROGRAMS), len(composed.TRANSFORMS)) == (40, 10)
    assert {name for name, (_, _, jax) in composed.PROGRAMS.items() if not jax} == {"newton", "until_with_rows"}


def test_what_is_wrong_is_found(monkeypatch):
    """A gradient that is a hundredth too large, and one of another shape."""
    exact = composed.Rscan.grad
    monkeypatch.setattr(composed.Rscan, "grad", lambda f, **how: lambda *p: composed._map(lambda v: 1.01 * v, exact(f, **how)(*p)))
    assert "differs by" in composed.check("smoother", "jvp", "grad")
    monkeypatch.setattr(composed.Rscan, "grad", lambda f, **how: lambda *p: exact(f, **how)(*p)[:1])
    assert "shape" in composed.check("smoother", "jvp", "grad")


def test_hessians_of_what_a_cotangent_does_not_change():
    """Rows of such a Hessian depend on the extents of the cotangent alone, and once kept the placeholder of one."""

    def cost(p):
        return rs.sum(rs.loop(lambda x, c: 0.5 * c + x * p[0][:, None] * p[1][None, :], over=composed.XS, init=np.zeros((2, 2))).last)

    p = (np.array([0.3, -0.4]), np.array([0.5, 0.1]))
    slope = rs.grad(lambda p: sum(rs.sum(v) for row in rs.hessian(cost)(p) for v in row))(p)
    np.testing.assert_array_equal(np.stack(slope), np.zeros((2, 2)))
    (aa, ab), (ba, bb) = rs.hessian(cost)(p)
    assert not aa.any() and not bb.any()
    np.testing.assert_allclose(ab, ba.T)
