"""Loops that hand nothing from step to step, and their gradients: they are loops of rows alone, too."""

import numpy as np
import pytest

import rscan as rs

rows, weights, shift = rs.dmatrix("rows"), rs.dvector("weights"), rs.dscalar("shift")
ARGS = np.random.default_rng(3).uniform(0.5, 1.5, (5, 3)), np.linspace(-1, 1, 5), 0.25


def step(x, c):
    """A factor of a matrix: dear enough to be kept."""
    L = rs.linalg.cholesky(rs.eye(3) * 3 + x[:, None] * x[None, :])
    return rs.tanh(L @ x) * c


CASES = {
    "forwards": dict(),
    "backwards": dict(reverse=True),
    "by the number of the step": dict(numbered=True),
    "fewer steps than rows": dict(n_steps=3),
    "fewer steps, backwards": dict(n_steps=3, reverse=True),
    "a captured value that is differentiated": dict(wrt=[rows, shift]),
    "truncated": dict(truncate=2),
}


def looped(numbered=False, wrt=(rows,), **options):
    """A cost of a loop, its derivatives."""
    inner = lambda t, x: step(x, shift) * (t + 1.0)
    over = [rs.arange(rows.shape[0]), rows] if numbered else [rs.ones(rows.shape[0]), rows]
    out = rs.loop(inner, over=over, **options)
    cost = rs.sum(out**2 * weights[: out.shape[0], None])
    return [cost, *rs.grad(cost, list(wrt))]


def unrolled(numbered=False, wrt=(rows,), reverse=False, n_steps=5, truncate=None):
    """The same, step by step."""
    order = list(range(5))[::-1][:n_steps] if reverse else list(range(n_steps))
    kept = order if truncate is None else order[-truncate:]
    x = [rows[i] if i in kept else rs.disconnected_grad(rows[i]) for i in order]
    scale = [i + 1.0 if numbered else 2.0 for i in order]
    # A loop that goes backwards returns its rows in the order of what it read.
    cost = sum(rs.sum((step(v, shift) * s) ** 2 * weights[i - min(order)]) for i, v, s in zip(order, x, scale, strict=True))
    return [cost, *rs.grad(cost, list(wrt))]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_gradients_are_those_of_the_unrolled_loop(case):
    compiled = lambda out, **options: rs.function([rows, weights, shift], out, on_unused_input="ignore", **options)(*ARGS)
    found, wanted = compiled(looped(**case)), compiled(unrolled(**case))
    plain = compiled(looped(**case), excluding=["scan_residuals", "scan_merge", "scan_dce", "cse"])
    for a, b, c in zip(found, wanted, plain, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(c, b, rtol=1e-12, atol=1e-14)


def test_second_derivatives_are_those_of_the_unrolled_loop():
    way = np.random.default_rng(4).normal(size=(5, 3))
    along = [rs.grad(rs.sum(rs.grad(cost, rows) * way), rows) for cost in (looped()[0], unrolled()[0])]
    found, wanted = rs.function([rows, weights, shift], along)(*ARGS)
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-13)


def factors(f):
    """How many matrices are factored in a call."""
    return f.text(optimised=True).count("= cholesky(")


def test_a_loop_and_its_gradient_are_one_where_neither_needs_the_other():
    out = rs.loop(lambda x: rs.sum(rs.log(rs.diagonal(rs.linalg.cholesky(rs.eye(12) * 3 + rs.outer(x, x))))), over=rows)
    f = rs.function([rows], [rs.sum(out), rs.grad(rs.sum(out), rows)])
    f(np.ones((4, 12)))
    assert str(f.explain()).splitlines()[0].endswith("1 loop") and factors(f) == 1, f.explain()


def test_what_the_loop_computed_is_kept_for_its_gradient():
    out = rs.loop(lambda x: rs.sum(rs.linalg.cholesky(rs.eye(12) * 3 + rs.outer(x, x)) @ x), over=rows)
    cost = rs.sum((out - 1.0) ** 2)
    f = rs.function([rows], [cost, rs.grad(cost, rows)])
    f(np.ones((4, 12)))
    assert "reads what" in str(f.explain()) and factors(f) == 1, f.explain()
