"""Functions of rscan in JAX, judged by jax.test_util."""

import numpy as np
import pytest

import rscan as rs

jax = pytest.importorskip("jax", reason="jax is not installed")
from rscan.interop.jax import wrap  # noqa: E402

jnp = jax.numpy


@pytest.fixture(autouse=True)
def wide():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def smooth(a, x):
    rows, _ = rs.scan(lambda x, h: a * h + (1 - a) * x, sequences=x, outputs_info=x[0])
    return rs.sum((x - rows) ** 2)


X = np.array([1.0, 2.0, 4.0, 3.0])


def test_gradients_by_their_own_check():
    from jax.test_util import check_grads

    check_grads(wrap(smooth), (0.5, jnp.asarray(X)), order=1, modes=("rev",))


def test_values_and_gradients_are_ours():
    f = wrap(rs.compile(smooth))
    value, slope = jax.value_and_grad(f, argnums=(0, 1))(0.5, X)
    ours, ours_slope = rs.value_and_grad(smooth, wrt=(0, 1))(0.5, X)
    np.testing.assert_allclose(value, ours)
    for a, b in zip(slope, ours_slope, strict=True):
        np.testing.assert_allclose(a, b)


def test_under_jit_and_vmap_and_inside_other_code():
    f = wrap(smooth)
    a = jnp.array([0.25, 0.5])
    np.testing.assert_allclose(jax.jit(jax.vmap(f, (0, None)))(a, X), [f(0.25, X), f(0.5, X)])
    np.testing.assert_allclose(jax.grad(lambda a: jnp.sin(f(a, X)) * a)(0.5), jax.grad(lambda a: jnp.sin(f(a, X)) * a)(0.5 + 0.0))
    outer = jax.jit(jax.grad(lambda a: 2 * f(jnp.tanh(a), X)))
    np.testing.assert_allclose(outer(0.3), 2 * rs.value_and_grad(smooth)(np.tanh(0.3), X)[1] * (1 - np.tanh(0.3) ** 2), rtol=1e-6)


def test_structures_and_integers():
    f = wrap(lambda x, n: {"y": x * n, "steps": n + 1})
    found = f(jnp.array([1.0, 2.0]), 3)
    assert found["y"].tolist() == [3, 6] and int(found["steps"]) == 4
    assert jax.grad(lambda x: f(x, 3)["y"].sum())(jnp.array([1.0, 2.0])).tolist() == [3, 3]


def test_in_single_precision():
    jax.config.update("jax_enable_x64", False)
    value, slope = jax.value_and_grad(wrap(smooth))(jnp.float32(0.5), jnp.asarray(X, "float32"))
    assert value.dtype == slope.dtype == "float32"
