"""Loops of numbers in the steps of loops of numbers: one kernel, and what it gives, or raises, is what the law says."""

import signal
import threading

import nested_programs
import numpy as np
import pytest
from test_inner_loops import agree, numbers

import rscan as rs

WITHIN = "a loop of the kernel of the loop around"


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_until_it_is_near_enough(monkeypatch, dtype):
    def build(a, x0):
        def newton(a, x):
            def refine(x):
                new = x - (x * x - a) / (2 * x)
                return new, rs.until(rs.abs(new - x) <= 1e-6)

            return rs.loop(refine, init=x).last

        return rs.loop(newton, over=a, init=x0)

    a = (numbers(40) ** 2 + 0.1).astype(dtype)
    agree(monkeypatch, build, a, np.array(1.0, dtype), reached=WITHIN)


def test_the_number_of_steps_that_ran(monkeypatch):
    def build(n):
        def lengths(n):
            halved = rs.loop(lambda m: (rs.where(m % 2 == 0, m // 2, 3 * m + 1), rs.until(m == 1)), init=n, n_steps=200)
            return dict(steps=halved.steps, last=halved.last)

        out = rs.loop(lengths, over=n)
        return [out["steps"], out["last"]]

    agree(monkeypatch, build, np.arange(1, 30), reached=WITHIN)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_integers_that_find_a_divisor(monkeypatch, dtype):
    def build(n, start):
        def least(n, total):
            found = rs.loop(lambda d: (d + 1, rs.until(n % (d + 1) == 0)), init=rs.cast(1, dtype), n_steps=300).last
            return total + found

        return rs.loop(least, over=n, init=start)

    agree(monkeypatch, build, np.array([2, 15, 49, 97, 121, 64], dtype), np.array(3, dtype), reached=WITHIN)


@pytest.mark.parametrize("counts", [[1, 3, 2, 7], [2, 0, 5], [0, 0], [4], [2, -1, 3]])
def test_as_many_steps_as_an_integer_of_the_step_says(monkeypatch, counts):
    def build(counts, h0):
        def step(n, h):
            inner = rs.loop(lambda g: 0.9 * g + 0.1, init=h, n_steps=n)
            return rs.concatenate([h[None], inner])[-1]

        return rs.loop(step, over=counts, init=h0)

    agree(monkeypatch, build, np.array(counts), np.array(0.5))


def test_no_steps_where_there_must_be_one(monkeypatch):
    def build(counts, h0):
        return rs.loop(lambda n, h: rs.loop(lambda g: 2 * g + 1, init=h, n_steps=n).last, over=counts, init=h0)

    for counts in ([1, 2, 3], [1, 0, 3]):
        agree(monkeypatch, build, np.array(counts), np.array(1.0))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [1, 5, 12, 300])
def test_a_row_of_a_table_is_gone_through(monkeypatch, n, reverse):
    def build(x, y0):
        def step(t, y):
            def add(a, x, total):
                return total + x * (a + y)

            over = [rs.arange(n), x]
            return rs.loop(add, over=over, init=rs.cast(t, "float64"), reverse=reverse).last / 100

        return rs.loop(step, over=rs.arange(40), init=y0)

    agree(monkeypatch, build, numbers(n), np.array(0.3), reached=WITHIN)


def test_a_sequence_without_rows(monkeypatch):
    def build(counts, x, h0):
        def step(n, h):
            inner = rs.loop(lambda x, g: 0.5 * g + x, over=x, init=h, n_steps=n)
            return rs.tanh(inner.last + 0.1)

        return rs.loop(step, over=counts, init=h0)

    assert isinstance(agree(monkeypatch, build, np.array([0, 0, 0]), np.zeros(0), np.array(0.5)), list)
    agree(monkeypatch, build, np.array([0, 1, 0]), np.zeros(0), np.array(0.5))


@pytest.mark.parametrize("first", [0, 3, 40])
def test_places_of_a_table(monkeypatch, first):
    """A search that goes on from where the last one ended; from 40 on the table has no such place."""

    def build(table, x, at):
        def find(x, at):
            return rs.loop(lambda k: (k + 1, rs.until(table[k + 1] >= x)), init=at).last

        return rs.loop(find, over=x, init=at)

    agree(monkeypatch, build, np.linspace(0, 1, 45), np.linspace(0.1, 0.95, 9), np.array(first), reached=WITHIN if first < 40 else None)


def test_an_index_beyond_its_array_is_the_error_of_the_law(monkeypatch):
    def build(table, x):
        def find(x, at):
            return rs.loop(lambda k: (k + 1, rs.until(table[k + 1] >= x)), init=at).last

        return rs.loop(find, over=x, init=rs.constant(0))

    kind, text = agree(monkeypatch, build, np.linspace(0, 1, 20), np.array([0.2, 0.5, 7.0]))
    assert issubclass(kind, IndexError) and "20" in text, text


@pytest.mark.parametrize("wide", [False, True])
def test_a_loop_that_never_ends_on_what_a_failed_step_makes(monkeypatch, wide):
    """Step 1 reads beyond the table: what stands in its place, the last element, is less than anything that the loop comes to."""

    def build(table, at):
        def step(i, h):
            least = table[i]
            halve = lambda g: (g * 0.5, rs.until(rs.all(g * 0.5 < least)))
            return rs.max(rs.loop(halve, init=h + rs.ones(300 if wide else 2)).last)

        return rs.loop(step, over=at, init=rs.constant(1.0))

    table = np.concatenate([np.full(19, 0.3), [-1.0]])
    kind, text = agree(monkeypatch, build, table, np.array([3, 40, 2]))
    assert issubclass(kind, IndexError) and "40" in text, text
    assert isinstance(agree(monkeypatch, build, table, np.array([3, 4, 2])), list)


def test_what_the_step_has_written_is_what_the_loop_reads(monkeypatch):
    def build(seeds):
        def step(s, table):
            table = table.at[s].add(1).at[(s * 7) % 20].set(s)

            def look(k, total):
                return total + table[k] * (k + 1)

            total = rs.loop(look, over=rs.arange(20), init=s).last
            return dict(table=table.at[total % 20].add(1), total=total)

        out = rs.loop(step, over=seeds, init=dict(table=rs.zeros(20, dtype="int64")))
        return [out.last.table, out["total"]]

    agree(monkeypatch, build, np.array([3, 17, 4, 4, 19, 0]), reached=WITHIN)


def test_small_arrays_in_loops_in_loops(monkeypatch):
    def build(rows, start):
        def outer(row, state):
            def middle(i, state):
                def inner(left):
                    left = left * 0.5 + rs.where(row[i] > 0, row, -row) * state[i]
                    return left, rs.until(rs.sum(left**2) < 0.3)

                end = rs.loop(inner, init=state, n_steps=6).last
                return state.at[i].set(end[0]) + 0.1 * end

            return rs.loop(middle, over=rs.arange(3), init=state).last

        return rs.loop(outer, over=rows, init=start)

    agree(monkeypatch, build, numbers(7, 3), numbers(3, seed=2), reached=WITHIN)


def test_taps_and_states_without_names(monkeypatch):
    def build(x):
        def step(x, h):
            def inner(a):
                return 0.4 * a[-1] - 0.3 * a[-2] + x

            return rs.tanh(rs.loop(inner, init=dict(a=rs.taps(rs.stack([h, x]), [-2, -1])), n_steps=5).last.a)

        return rs.loop(step, over=x, init=rs.constant(0.1))

    agree(monkeypatch, build, numbers(9))


def test_gradients_and_rows_of_a_batch_go_through_them(monkeypatch):
    def build(a, x):
        def step(a, h):
            return rs.loop(lambda g: 0.5 * (g + a / g), init=h, n_steps=4).last

        out = rs.loop(step, over=a, init=x).last
        each = rs.vmap(lambda x: rs.loop(step, over=a, init=x).last)(rs.stack([x, 2 * x, 3 * x]))
        return [out, *rs.grad(out, [a, x]), each]

    agree(monkeypatch, build, np.array([2.0, 3.0, 5.0, 7.0]), np.array(1.5))


def test_a_session_goes_on_step_by_step(monkeypatch):
    @rs.compile
    def roots(a):
        def newton(a, x):
            return rs.loop(lambda x: (0.5 * (x + a / x), rs.until(rs.abs(x * x - a) < 1e-9)), init=x, n_steps=50).last

        return rs.loop(newton, over=a, init=rs.constant(1.0))

    a = np.array([4.0, 9.0, 2.0])
    whole = roots(a)
    assert WITHIN in str(roots.explain())
    for engine in ("eval", "vm", "jit"):
        monkeypatch.setenv("RSCAN_ENGINE", engine)
        session = roots.session(a=np.zeros(0))
        assert [session.step(x) for x in a] == list(whole), engine


@pytest.mark.usefixtures("ctrl_c_interrupts")
@pytest.mark.parametrize("engine", ["vm", "jit"])
def test_a_loop_without_an_end_can_be_interrupted(monkeypatch, engine):
    monkeypatch.setenv("RSCAN_ENGINE", engine)

    @rs.compile
    def endless(x):
        def step(x, h):
            return rs.loop(lambda g: (0.5 * g + 1, rs.until(g > 1e9)), init=h + x).last

        return rs.loop(step, over=x, init=rs.constant(0.0))

    timer = threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        endless(np.ones(5))
    timer.join()
    assert rs.compile(lambda x: x + 1)(1.0) == 2.0


def test_random_programs_on_all_engines(monkeypatch):
    loops = 0
    for seed in range(30):
        (law, *others), within = nested_programs.results(seed, lambda engine: monkeypatch.setenv("RSCAN_ENGINE", engine))
        assert others == [law, law], f"seed {seed}"
        loops += within
    assert loops >= 10, loops
