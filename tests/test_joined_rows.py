"""Loops whose step joins its row of edges and the rows of a loop inside: their gradients read it again, and run no inner loop twice."""

import numpy as np
import pytest

import rscan as rs

x, y = rs.dvector("x"), rs.dvector("y")
ARGS = np.linspace(-1, 1, 4), np.array([0.3, -0.2, 0.7])


def cell(up, left, a, b):
    return rs.tanh(up * 0.7 + left * 0.4 + a * b)


EDGES = {
    "in front": (lambda rows, e: rs.concatenate([[e], rows]), lambda row: row[1:]),
    "behind": (lambda rows, e: rs.concatenate([rows, [e, e]]), lambda row: row[:-2]),
    "on both sides": (lambda rows, e: rs.concatenate([[e], rows, [e]]), lambda row: row[1:-1]),
    "none": (lambda rows, e: rows, lambda row: row),
    "as a matrix": (lambda rows, e: rs.concatenate([rs.stack([rows, rows * 2.0]), e * rs.ones((2, 1))], axis=1), lambda row: row[0, :-1]),
}


def costs(edge):
    """The cost of the loop in a loop, and the same step by step."""
    join, inside = EDGES[edge]
    width, start = ARGS[1].size, 0.25

    def row(a, before):
        rows = rs.loop(lambda up, b, left: cell(up, left, a, b), over=[inside(before), y], init=rs.constant(start))
        return join(rows, rs.tanh(a))

    first = join(rs.zeros(width), rs.constant(0.5))
    looped = rs.loop(row, over=x, init=first)
    before, unrolled = first, []
    for i in range(ARGS[0].size):
        rows, left = [], rs.constant(start)
        for j in range(width):
            left = cell(inside(before)[j], left, x[i], y[j])
            rows.append(left)
        before = join(rs.stack(rows), rs.tanh(x[i]))
        unrolled.append(before)
    weigh = lambda out: rs.sum(rs.sin(out) * (rs.arange(out.size).reshape(out.shape) + 1.0))
    return weigh(looped), weigh(rs.stack(unrolled))


@pytest.mark.parametrize("edge", EDGES)
def test_gradients_are_those_of_the_unrolled_loop(edge):
    looped, unrolled = costs(edge)
    found, wanted = (rs.function([x, y], [cost, *rs.grad(cost, [x, y])])(*ARGS) for cost in (looped, unrolled))
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("edge", ["in front", "none"])
def test_second_derivatives_are_those_of_the_unrolled_loop(edge):
    second = lambda cost: rs.grad(rs.sum(rs.grad(cost, x) ** 2), [x, y])
    looped, unrolled = costs(edge)
    found, wanted = (rs.function([x, y], second(cost))(*ARGS) for cost in (looped, unrolled))
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("edge", ["in front", "on both sides", "none"])
def test_inner_loops_are_not_run_again(edge):
    looped, _ = costs(edge)
    f = rs.function([x, y], rs.grad(looped, [x, y]))
    f(*ARGS)
    # The loop, the loop inside, and the gradients of both.
    assert str(f.explain()).splitlines()[0] == "function: 4 loops", f.explain()


SYSTEMS = {"E0601": lambda a, b: rs.linalg.solve(a, b), "E0602": lambda a, b: rs.linalg.cholesky(a) @ b}


@pytest.mark.parametrize(("code", "op"), SYSTEMS.items(), ids=SYSTEMS)
def test_a_step_says_which_system_has_no_solution(code, op):
    matrices, sides = rs.dtensor3("matrices"), rs.dmatrix("sides")
    given = np.stack([np.eye(3), 2 * np.eye(3), np.zeros((3, 3))])
    # What the step before gave makes it a loop that no array operation replaces.
    out = rs.loop(lambda a, b, h: op(a, b + 0.1 * h), over=[matrices, sides], init=rs.zeros(3))
    f = rs.function([matrices, sides], out)
    np.testing.assert_allclose(f(given[:2], np.ones((2, 3)))[0], np.ones(3))
    with pytest.raises(rs.LinAlgError, match="in step 2") as error:
        f(given, np.ones((3, 3)))
    assert error.value.code == code
