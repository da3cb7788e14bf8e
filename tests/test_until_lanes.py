"""Loops that stop by what all lanes say: one kernel, which runs blocks of steps, and stops at the very step at which the evaluator does."""

import numpy as np
import pytest
from test_mapped_steps import both

import rscan as rs

pytestmark = pytest.mark.usefixtures("chosen_engine")


def halved(x, condition, n_steps=200, part=lambda loop: loop[-1]):
    """Numbers that are halved until a condition on them, and on the number of steps, holds."""

    def f(x):
        def step(x, n):
            x = x * 0.5
            return dict(x=x, n=n + 1), rs.until(condition(x, n))

        loop = rs.loop(step, init=dict(x=x, n=0), n_steps=n_steps)
        return part(loop["x"]), loop["n"][-1], loop.steps

    return both(f, x)


#: Conditions, and of which there is a kernel of many lanes.
CONDITIONS = {
    "all": (lambda x, n: rs.all(x < 1e-3), True),
    "any": (lambda x, n: rs.any(x < 1e-3), True),
    "not_any": (lambda x, n: ~rs.any(x >= 1e-3), True),
    "not_all": (lambda x, n: ~rs.all(x >= 1e-3), True),
    "max": (lambda x, n: rs.max(rs.abs(x)) < 1e-3, True),
    "max_turned": (lambda x, n: rs.constant(1e-3) >= rs.max(x), True),
    "min": (lambda x, n: rs.min(-x) > -1e-3, True),
    "min_any": (lambda x, n: rs.min(x) < 1e-3, False),
    "sum": (lambda x, n: rs.sum(x) < 1e-3, False),
    "count": (lambda x, n: n >= 17, True),
    "or_count": (lambda x, n: rs.all(x < 1e-30) | (n >= 17), True),
    "and_count": (lambda x, n: (n >= 17) & rs.any(x < 1e-3), True),
    "both": (lambda x, n: rs.all(x < 1e-3) & rs.all(x < 1e-5), True),
    "one_of_two": (lambda x, n: rs.any(x < 1e-3) | rs.any(x < 1e-5), True),
    "mixed": (lambda x, n: rs.all(x < 1e-3) | rs.all(x < 1e-5), False),
    "numbers": (lambda x, n: rs.all(rs.floor(x * 1e3)), True),
    "never": (lambda x, n: rs.any(x < 0), True),
    "at_once": (lambda x, n: rs.any(x > 0), True),
}


@pytest.mark.parametrize("part", [lambda x: x[-1], lambda x: x], ids=["last", "all"])
@pytest.mark.parametrize("lanes", [16, 100, 3000])
@pytest.mark.parametrize("name", CONDITIONS)
def test_a_loop_stops_where_the_evaluator_does(name, lanes, part):
    condition, voted = CONDITIONS[name]
    got, expected, plan = halved(np.random.default_rng(0).uniform(1, 100, lanes), condition, part=part)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    assert (f"{lanes} lanes" in plan) == voted, plan


@pytest.mark.parametrize("last", range(1, 40))
def test_it_stops_after_any_number_of_steps(last):
    got, expected, plan = halved(np.full(24, 2.0**last), lambda x, n: rs.all(x <= 1))
    assert got[1] == expected[1] == got[2] == last
    np.testing.assert_array_equal(got[0], expected[0])
    assert "24 lanes" in plan, plan


@pytest.mark.parametrize("n_steps", [1, 2, 15, 16, 17, 63])
def test_it_ends_with_its_last_step(n_steps):
    got, expected, _ = halved(np.ones(24), lambda x, n: rs.any(x < 0), n_steps, part=lambda x: x)
    assert [int(n) for n in got[1:]] == [int(n) for n in expected[1:]] == [n_steps] * 2
    np.testing.assert_array_equal(got[0], expected[0])


@pytest.mark.parametrize("name", ["all", "max", "min", "max_turned", "not_all"])
def test_what_is_no_number_is_on_no_side(name):
    x = np.ones(24)
    x[5] = np.nan
    got, expected, _ = halved(x, CONDITIONS[name][0])
    assert got[1] == expected[1]
    np.testing.assert_array_equal(got[0], expected[0])


def test_a_fault_behind_the_last_step_is_none():
    def f(x, table, last):
        def step(x, n):
            return dict(x=x + table[n], n=n + 1), rs.until(rs.all(x >= last))

        return rs.loop(step, init=dict(x=x, n=0), n_steps=100)["x"]

    table = np.ones(7)
    got, expected, _ = both(f, np.zeros(32), table, 4.0)
    np.testing.assert_array_equal(got, expected)
    assert len(got) == 5
    with pytest.raises(IndexError, match="index 7 is out of range for axis 0 with extent 7"):
        rs.compile(f)(np.zeros(32), table, 9.0)


def test_a_fault_of_one_row_behind_the_last_step_is_none():
    def f(x, table, last):
        def row(x, table):
            def step(x, n):
                return dict(x=x + table[n], n=n + 1)

            return rs.loop(step, init=dict(x=x, n=0), n_steps=3)["x"][-1]

        def step(x, k):
            return dict(x=x + rs.vmap(lambda t: t[k])(table), k=k + 1), rs.until(rs.all(x >= last))

        return rs.loop(step, init=dict(x=x, k=rs.cast(0, "int64")), n_steps=100)["x"]

    table = np.random.default_rng(0).uniform(1, 2, (32, 7))
    got, expected, _ = both(f, np.zeros(32), table, 4.0)
    np.testing.assert_array_equal(got, expected)
    with pytest.raises(IndexError):
        rs.compile(f)(np.zeros(32), table, 90.0)


def epidemic(rate):
    def step(s):
        new, well = rate * s[0] * s[1], 0.1 * s[1]
        s = s + rs.stack([-new, new - well, well])
        return s, rs.until(s[1] < 1e-3)

    return rs.loop(step, init=np.array([0.99, 0.01, 0.0]), n_steps=300)


@pytest.mark.parametrize("rows", [16, 61])
@pytest.mark.parametrize("name", ["last", "steps", "sum"])
def test_rows_that_end_each_by_itself(rows, name):
    part = {"last": lambda loop: loop[-1], "steps": lambda loop: loop.steps, "sum": lambda loop: rs.sum(loop[-1] ** 2)}[name]
    rates = np.random.default_rng(0).uniform(0.15, 0.5, rows)
    got, expected, plan = both(rs.vmap(lambda rate: part(epidemic(rate))), rates)
    np.testing.assert_array_equal(got, expected)
    assert f"{rows} lanes" in plan, plan
    alone = [rs.compile(lambda rate: part(epidemic(rate)))(rate) for rate in rates]
    np.testing.assert_array_equal(got, alone)


def test_gradients_of_rows_that_end_each_by_itself():
    rates = np.random.default_rng(0).uniform(0.15, 0.5, 20)
    slope = rs.grad(lambda rate: epidemic(rate)[-1][2])
    got, expected, _ = both(rs.vmap(slope), rates)
    np.testing.assert_array_equal(got, expected)
    alone = rs.compile(slope)
    np.testing.assert_allclose(got, [alone(rate) for rate in rates], rtol=1e-12)


def test_taps_far_back_are_read_from_what_was_made():
    def f(x):
        step = lambda x: (0.5 * x[0] + 0.4 * x[1], rs.until(rs.all(x[0] + x[1] < 1e-3)))
        return rs.loop(step, init=rs.taps(x, -20, -1), n_steps=500)

    got, expected, plan = both(f, np.random.default_rng(0).uniform(1, 2, (20, 40)))
    np.testing.assert_array_equal(got, expected)
    assert "40 lanes" in plan, plan


@pytest.mark.parametrize("name", ["all", "any"])
def test_a_condition_on_no_elements_is_none_of_lanes(name):
    condition = {"all": lambda none, n: rs.all(none) & (n >= 5), "any": lambda none, n: rs.any(none) | (n >= 5)}[name]

    def f(s, none):
        def step(s, n):
            return dict(s=rs.roll(s, 1, axis=1) * 0.5, n=n + 1), rs.until(condition(none, n))

        return rs.loop(step, init=dict(s=s, n=0), n_steps=30)["s"]

    got, expected, _ = both(f, np.ones((32, 3)), np.zeros(0, bool))
    np.testing.assert_array_equal(got, expected)
    assert len(got) == 6
