"""Loops in the steps of loops: what they give, or raise, does not depend on where they run, to the bit."""

import numpy as np
import pytest

import rscan as rs

ENGINES = ("eval", "vm", "jit")


def agree(monkeypatch, build, *args, reached=None):
    """What a function gives by each engine, or raises. `reached`: a word that `explain` has of the loops where one is compiled."""
    found = []
    for engine in ENGINES:
        monkeypatch.setenv("RSCAN_ENGINE", engine)
        variables = [rs.tensor(np.asarray(a).dtype.name, [None] * np.ndim(a)) for a in args]
        outs = build(*variables)
        f = rs.function(variables, list(outs) if isinstance(outs, (list, tuple)) else [outs])
        try:
            got = f(*args)
        except Exception as e:
            found.append((type(e), str(e)))
            continue
        found.append([(a.dtype, a.shape, a.tobytes()) for a in got])
        assert [(a.dtype, a.shape, a.tobytes()) for a in f(*args)] == found[-1], "a second call"
        if reached and engine != "eval":
            assert reached in str(f.explain()), f.explain()
    law, *others = found
    for got in others:
        assert got == law
    return law


KERNEL, LIST = "a kernel in the step of the loop around", "a list in the step of the loop around"
WITHIN = "a loop of the kernel of the loop around"


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_scalar_loops_with_all_rows_wanted(monkeypatch, n):
    def build(x, h0):
        def step(row, h):
            inner = rs.loop(lambda a, left: rs.tanh(a + 0.5 * left + h[0]), over=row, init=h[1])
            return {"h": rs.stack([inner[-1], rs.sum(inner)]), "rows": inner}

        out = rs.loop(step, over=x, init={"h": h0})
        return [out.h, out.rows, *rs.grad(rs.sum(out.h**2) + rs.sum(out.rows**3), [x, h0])]

    agree(monkeypatch, build, numbers(5, n), numbers(2, seed=1), reached=KERNEL)


@pytest.mark.parametrize("d", [1, 3, 20])
def test_loops_of_products_with_gradients(monkeypatch, d):
    def build(W, x, h0):
        def step(x, h):
            inner = rs.loop(lambda g: rs.tanh(W @ g + x), init=h, n_steps=4)
            return {"h": inner[-1], "mean": rs.mean(inner, axis=0)}

        out = rs.loop(step, over=x, init={"h": h0})
        return [out.h, out.mean, *rs.grad(rs.sum(out.h**2) + rs.sum(out.mean), [W, x, h0])]

    agree(monkeypatch, build, numbers(d, d) / d, numbers(6, d, seed=1), numbers(d, seed=2), reached=LIST if d > 3 else None)


def test_rows_of_a_matrix_are_updated_one_by_one(monkeypatch):
    def build(A, b, x0):
        def sweep(x):
            row = lambda i, x: x.at[i].set((b[i] - rs.dot(A[i], x) + A[i, i] * x[i]) / A[i, i])
            return rs.loop(row, over=rs.arange(A.shape[0]), init=x)[-1]

        return rs.loop(sweep, init=x0, n_steps=5)

    for n, what in ((20, WITHIN), (100, LIST)):
        agree(monkeypatch, build, numbers(n, n) + 9 * np.sqrt(n) * np.eye(n), numbers(n, seed=1), np.zeros(n), reached=what)


def test_taps_backward_and_the_last_rows(monkeypatch):
    def by_scan(x, start):
        def inner(a, before, last):
            return 0.3 * last - 0.2 * before + a

        def step(row, h):
            rows, _ = rs.scan(inner, sequences=row, outputs_info={"initial": h, "taps": [-2, -1]}, go_backwards=True)
            return [rows[-2:], rows[0]]

        rows, _ = rs.scan(step, sequences=x, outputs_info=[start, None])
        return rows

    agree(monkeypatch, by_scan, numbers(4, 6), numbers(2, seed=3))


@pytest.mark.parametrize("counts", [[1, 3, 2, 7], [2, 0, 5], [0, 0], [4]])
def test_as_many_steps_as_an_integer_says(monkeypatch, counts):
    def build(counts, x, h0):
        def step(n, x, h):
            inner = rs.loop(lambda g: 0.9 * g + x, init=h, n_steps=n)
            return rs.concatenate([h[None], inner])[-1]

        out = rs.loop(step, over=[counts, x], init=h0)
        return [out, *rs.grad(rs.sum(out**2), [x, h0])]

    agree(monkeypatch, build, np.array(counts), numbers(len(counts)), np.array(0.5))
    agree(monkeypatch, build, np.array(counts), numbers(len(counts), 3), numbers(3, seed=1))


def test_no_steps_where_a_last_row_is_wanted_is_the_error_of_the_law(monkeypatch):
    def build(counts, h0):
        return rs.loop(lambda n, h: rs.loop(lambda g: 2 * g + 1, init=h, n_steps=n)[-1], over=counts, init=h0)

    assert agree(monkeypatch, build, np.array([1, 2, 3]), np.array(0.5), reached=WITHIN)
    kind, text = agree(monkeypatch, build, np.array([1, 0, 3]), np.array(0.5))
    assert issubclass(kind, IndexError) and "in step 1" in text
    kind, text = agree(monkeypatch, build, np.array([1, 2, -3]), np.array(0.5))
    assert "E0111" in text and "in step 2" in text


def with_slopes_of_last_rows(counts, others, x, h0):
    """A loop of which a row is read that is there only after a step, beside one that may run none; what both keep is read backwards."""

    def step(n, m, x, h):
        row = rs.loop(lambda g: rs.tanh(0.9 * g + x), init=h, n_steps=n)[-1]
        rest = rs.loop(lambda g: g * rs.cos(g + x), init=row, n_steps=m).last
        return row - 0.5 * rest

    out = rs.loop(step, over=[counts, others, x], init=h0)
    return [out, *rs.grad(rs.sum(out**2), [x, h0])]


@pytest.mark.parametrize("others", [[0, 0, 0], [2, 0, 5], [1, 3, 2]])
def test_gradients_of_rows_that_only_a_step_makes_stay_in_the_kernel(monkeypatch, others):
    args = np.array([3, 1, 4]), np.array(others), numbers(3), np.array(0.5)
    agree(monkeypatch, with_slopes_of_last_rows, *args, reached=WITHIN)
    agree(monkeypatch, with_slopes_of_last_rows, args[0], args[1], numbers(3, 2), numbers(2, seed=1))
    f = rs.compile(with_slopes_of_last_rows)
    f(*args)
    assert "runs on eval" not in str(f.explain(*args)), f.explain(*args)


def test_gradients_of_such_rows_where_no_step_runs_are_the_error_of_the_law(monkeypatch):
    args = np.array([3, 0, 4]), np.array([1, 1, 1]), numbers(3), np.array(0.5)
    kind, text = agree(monkeypatch, with_slopes_of_last_rows, *args)
    assert issubclass(kind, IndexError) and "in step 1" in text


def series(a, x):
    """A series whose terms are counted first, and then added up from the last one on."""
    still, at = rs.stop_gradient(a), rs.stop_gradient(x)
    count = lambda n, t: (dict(n=n + 1, t=t * at / (still + n)), rs.until(t < 1e-17))
    n = rs.stop_gradient(rs.loop(count, init=dict(n=1.0, t=at * 0 + 1), n_steps=500).n[-1])
    init = dict(n=n, rest=x * 0 + 1)
    return rs.loop(lambda n, rest: dict(n=n - 1, rest=1 + x / (a + n) * rest), init=init, n_steps=rs.cast(n, "int64")).rest[-1] / a


def test_gradients_of_loops_that_count_the_steps_of_others():
    """The step of the gradient reads rows that are there only after a step. What the forward loop computes for it is what it computes
    itself, though what is kept of the inner loops differed at first."""

    def loss(a, x):
        return rs.sum(rs.loop(lambda x, h: 0.5 * h + series(a, x + 0.1 * rs.tanh(h)), over=x, init=a * 0.1))

    f = rs.value_and_grad(loss)
    x = np.linspace(0.2, 2.0, 5)
    _, slope = f(1.5, x)
    np.testing.assert_allclose(slope, (f(1.5 + 1e-6, x)[0] - f(1.5 - 1e-6, x)[0]) / 2e-6, rtol=1e-6)
    assert "runs on eval" not in str(f.explain(1.5, x)), f.explain(1.5, x)
    forward, _ = f.text(optimised=True).split("cotangent", 1)
    assert forward.count("state h") == 1, forward


def test_lengths_by_the_number_of_the_step(monkeypatch):
    def build(births, decay):
        def step(t, birth, past):
            total = rs.loop(lambda s, total: total + past[s] * decay[t - s], over=rs.arange(t), init=rs.constant(0.0))
            return {"past": past.at[t].set(birth + rs.sum(total[-1:]))}

        steps = births.shape[0]
        past = rs.loop(step, over={"t": rs.arange(steps), "birth": births}, init={"past": rs.zeros_like(births)}).past[-1]
        return [past, *rs.grad(rs.sum(past**2), [births, decay])]

    for n in (1, 2, 12, 30):
        agree(monkeypatch, build, numbers(n), numbers(n, seed=1) / n)


def test_loops_that_stop(monkeypatch):
    def build(x):
        def step(x):
            def newton(E):
                new = E - (E - 0.4 * rs.sin(E) - x) / (1 - 0.4 * rs.cos(E))
                return new, rs.until(rs.abs(new - E) < 1e-10)

            return rs.loop(newton, init=x, n_steps=30)[-1]

        out = rs.loop(step, over=x)
        return [out, rs.grad(rs.sum(out), x)]

    agree(monkeypatch, build, numbers(9), reached="a loop of the kernel of the loop around")

    def of_rows(x, W):
        def step(x):
            def halve(h):
                new = rs.tanh(W @ h) / 2
                return new, rs.until(rs.max(rs.abs(new)) < 1e-2)

            return rs.loop(halve, init=x, n_steps=20)[-1]

        return rs.loop(step, over=x)

    agree(monkeypatch, of_rows, 100 * numbers(6, 12), numbers(12, 12, seed=4), reached=LIST)


@pytest.mark.parametrize("depth", [2, 3, 4, 5])
def test_loops_in_loops_in_loops(monkeypatch, depth):
    def build(x, W):
        def nest(h, depth):
            if depth == 0:
                return rs.tanh(W @ h + x)
            return rs.loop(lambda h: nest(h, depth - 1) + 0.1 * h, init=h, n_steps=2)[-1]

        out = nest(x, depth)
        return [out, *rs.grad(rs.sum(out**2), [x, W])]

    agree(monkeypatch, build, numbers(10), numbers(10, 10, seed=1) / 5)


def test_an_index_outside_is_reported_with_all_steps(monkeypatch):
    def build(x, at):
        return rs.loop(lambda k: rs.loop(lambda i, s: s + x[i], over=k, init=0.0)[-1], over=at)

    assert agree(monkeypatch, build, numbers(20), np.arange(12).reshape(4, 3))
    kind, text = agree(monkeypatch, build, numbers(20), np.array([[0, 1, 2], [3, 99, 4]]))
    assert issubclass(kind, IndexError)
    assert "in step 1 (" in text or "in step 1 of" in text


def test_the_profile_counts_inner_steps():
    x = rs.dmatrix()
    inner = lambda row: rs.loop(lambda a, s: rs.sin(s) + a, over=row, init=rs.zeros(500), name="inside")[-1]
    f = rs.function([x], rs.loop(inner, over=x, name="outside"), profile=True)
    f(numbers(7, 5))
    loops = {loop.name: loop for loop in f.profile.loops}
    assert (loops["outside"].steps, loops["inside"].calls, loops["inside"].steps) == (7, 7, 35)


def test_the_profile_has_no_loops_of_a_kernel():
    x = rs.dmatrix()
    inner = lambda row: rs.loop(lambda a, s: rs.sin(s) + a, over=row, init=0.0, name="inside")[-1]
    f = rs.function([x], rs.loop(inner, over=x, name="outside"), profile=True)
    f(numbers(7, 5))
    assert "inside" not in [loop.name for loop in f.profile.loops] and WITHIN in str(f.explain())


def test_tables_are_read_by_number(monkeypatch):
    def build(table, path):
        def step(i, s):
            return 0.5 * s + table[path[i], (path[i] + i) % 7]

        return rs.loop(step, over=rs.arange(path.shape[0]), init=0.0)

    path = np.random.default_rng(0).integers(-30, 30, size=50)
    agree(monkeypatch, build, numbers(30, 7), path)
    path[20] = 30
    kind, text = agree(monkeypatch, build, numbers(30, 7), path)
    assert issubclass(kind, IndexError) and "in step 20" in text


def test_effects_happen_once_though_the_inner_loop_fails(capfd, monkeypatch):
    """What runs a loop again, where an index inside it is outside, must not print again."""
    printed = []
    for engine in ENGINES:
        monkeypatch.setenv("RSCAN_ENGINE", engine)
        x, at = rs.dvector(), rs.lmatrix()

        def step(k, x=x):
            seen = rs.Print("seen")(k[0])
            return rs.loop(lambda i, s: s + x[i], over=k, init=0.0)[-1] + seen

        f = rs.function([x, at], rs.loop(step, over=at))
        with pytest.raises(IndexError):
            f(np.ones(20), np.array([[0, 1, 2], [3, 99, 4], [5, 6, 7]]))
        out, err = capfd.readouterr()
        printed.append(out + err)
    assert printed[0].count("seen") == 2
    assert printed[1:] == printed[:1] * 2


def renewal(births, decay):
    """The inner loop of step t has t steps, so none at first."""

    def step(t, birth, past):
        total = rs.loop(lambda s, total: total + past[s] * decay[t - s], over=rs.arange(t), init=rs.constant(0.0))
        return {"past": past.at[t].set(birth + rs.sum(total[-1:]))}

    init = {"past": rs.zeros_like(births)}
    return rs.loop(step, over={"t": rs.arange(births.shape[0]), "birth": births}, init=init).past


def counted_from_one(births, decay):
    def step(t, x, h):
        inner = rs.loop(lambda k, a: rs.tanh(a + decay[k] * k), over=rs.arange(t + 1), init=h)
        return {"h": inner[-1] * 0.5 + x}

    init = {"h": rs.constant(0.1)}
    return rs.loop(step, over={"t": rs.arange(births.shape[0]), "x": births}, init=init).h


def over_a_slice(births, decay):
    def step(t, x, h):
        inner = rs.loop(lambda d, a: a * 0.5 + d, over=decay[:t], init=h)
        return {"h": rs.sum(inner[-1:]) * 0.5 + x}

    init = {"h": rs.constant(0.1)}
    return rs.loop(step, over={"t": rs.arange(births.shape[0]), "x": births}, init=init).h


def over_the_end_of_a_slice(births, decay):
    def step(t, x, h):
        inner = rs.loop(lambda d, a: a * 0.5 + d, over=decay[-t - 1 :], init=h)
        return {"h": inner[-1] * 0.5 + x}

    init = {"h": rs.constant(0.1)}
    return rs.loop(step, over={"t": rs.arange(births.shape[0]), "x": births}, init=init).h


def as_often_as_was_computed(births, decay):
    def step(x, h):
        n = rs.maximum(rs.cast(rs.floor(x * 5), "int64"), 0)
        inner = rs.loop(lambda i, a: a * 0.5 + i * x + decay[0], over=rs.arange(3, n + 3), init=h)
        return {"h": rs.sum(inner[-1:]) * 0.5 + x}

    return rs.loop(step, over={"x": births}, init={"h": rs.constant(0.1)}).h


@pytest.mark.parametrize("steps", [1, 2, 7, 60])
@pytest.mark.parametrize("loop", [renewal, counted_from_one, over_a_slice, over_the_end_of_a_slice, as_often_as_was_computed])
def test_lengths_that_depend_on_the_step(monkeypatch, loop, steps):
    births, decay = np.random.default_rng(0).uniform(size=(2, steps))
    agree(monkeypatch, loop, births, decay / steps)
    agree(monkeypatch, lambda b, d: rs.grad(rs.sum(loop(b, d) ** 2), [b, d]), births, decay / steps)


@pytest.mark.usefixtures("chosen_engine")
def test_one_list_is_for_all_lengths():
    births, decay = rs.vector("births"), rs.vector("decay")
    f = rs.function([births, decay], renewal(births, decay))
    f(np.ones(40), np.ones(40))
    assert "a list for each of 2 integers" in str(f.explain())


def test_numbers_of_steps_that_run_backwards_or_from_elsewhere(monkeypatch):
    def build(x):
        forth = rs.loop(lambda i, a: a * 0.5 + i, over=rs.arange(3, x.shape[0] + 3), init=x[0])
        back = rs.loop(lambda i, a: a * 0.5 + i, over=rs.arange(x.shape[0]), init=x[0], reverse=True)
        twos = rs.loop(lambda i, a: a * 0.5 + i, over=rs.arange(1, x.shape[0], 2), init=x[0])
        few = rs.loop(lambda i, a: a * 0.5 + i, over=rs.arange(x.shape[0]), init=x[0], n_steps=2)
        return [forth, back, twos, few]

    for n in (2, 3, 9):
        agree(monkeypatch, build, numbers(n))
    agree(monkeypatch, build, numbers(1))


def test_the_number_of_rows_that_are_kept_of_a_loop_that_stops(monkeypatch):
    def build(x, y):
        def step(x, h):
            inner = rs.loop(lambda y, a: (rs.tanh(a + x * y), rs.until(a > 0.5)), over=y, init=h)
            return {"h": inner[-1] + rs.cast(inner[-1:].shape[0], "float64")}

        return rs.loop(step, over=x, init={"h": rs.constant(0.1)}).h

    agree(monkeypatch, build, np.arange(1.0, 6.0), np.arange(1.0, 4.0))


@pytest.mark.parametrize("of", ["captured", "sequence", "initial"])
def test_what_a_loop_of_no_steps_is_given_may_fail(monkeypatch, of):
    """At the first step the inner loop does not run, and what it is given has no element: the evaluator computes it all the same."""

    def build(x, k):
        def step(t, at):
            picked = x[at]
            if of == "captured":
                inner = rs.loop(lambda h: h * picked, init=rs.ones(3), n_steps=t % 3)
            elif of == "sequence":
                inner = rs.loop(lambda a, h: h * a, over=picked * rs.ones(2), init=rs.ones(3), n_steps=t % 3)
            else:
                inner = rs.loop(lambda h: h * 0.5, init=picked * rs.ones(3), n_steps=t % 3)
            return {"sum": rs.sum(inner)}

        return [rs.loop(step, over=[rs.arange(k.shape[0]), k]).sum]

    law = agree(monkeypatch, build, numbers(5), np.array([9, 1, 2, 3, 0, 1, 4]))
    assert law[0] is rs.errors.RscanIndexError, law
    assert isinstance(agree(monkeypatch, build, numbers(5), np.array([0, 1, 2, 3, 0, 1, 4])), list)


def levinson(r):
    """Reflection coefficients: step k has an inner loop over k numbers, the first none."""

    def step(k, a, e):
        acc = rs.fori(0, k, lambda j, s: s + a[j] * r[k - j], 0.0)
        reflection = (r[k + 1] + acc) / e
        a = rs.fori(0, k + 1, lambda j, b: b.at[j].add(0.1 * reflection * a[k - j]), a)
        return dict(a=a.at[k].set(-reflection), e=e * (1 - 0.1 * reflection**2))

    out = rs.loop(step, over=dict(k=rs.arange(6)), init=dict(a=rs.zeros(7), e=r[0] + 3))
    return out.a, out.e


def test_loops_that_run_no_step_first(monkeypatch):
    """Of which what they end with alone is read: one list for all steps, those too in which they do not run."""
    agree(monkeypatch, levinson, numbers(9), reached=WITHIN)
    f = rs.compile(levinson)
    f(numbers(9))
    assert "a list for each" not in str(f.explain(numbers(9))), f.explain(numbers(9))


@pytest.mark.parametrize("counts", [[0, 3, 0, 1], [0, 0], [2, 2, 0], [1]])
def test_numbers_of_steps_that_may_be_none(monkeypatch, counts):
    def build(x, n):
        def step(n, h):
            last = rs.loop(lambda a: rs.tanh(a + 0.3), init=h, n_steps=n).last
            rows = rs.loop(lambda a: a * 0.5 + x, init=rs.stack([h, last]), n_steps=n).last
            return dict(h=last + rs.sum(rows) * 0.1)

        return rs.loop(step, over=n, init=dict(h=x)).h

    agree(monkeypatch, build, np.float64(0.7), np.array(counts))


def test_a_negative_number_of_steps_is_an_error_in_each_engine(monkeypatch):
    build = lambda x, n: rs.loop(lambda n, h: rs.loop(rs.sin, init=h, n_steps=n).last, over=n, init=x)
    law = agree(monkeypatch, build, np.float64(0.7), np.array([1, 0, -2]))
    assert isinstance(law, tuple), law


@pytest.mark.parametrize("passes", ["none", "fast_run"])
def test_a_negative_number_of_steps_is_an_error_though_nothing_else_of_the_loop_is_read(monkeypatch, passes):
    def build(x, n):
        def step(n, h):
            inner = rs.loop(lambda v: v * h, over=x, n_steps=n)
            return h + 0.1 * rs.cast(inner.steps, "float64")

        return rs.loop(step, over=n, init=0.5)

    with rs.config.override(passes=passes):
        assert not isinstance(agree(monkeypatch, build, numbers(4), np.array([1, 0, 3])), tuple)
        _, text = agree(monkeypatch, build, numbers(4), np.array([1, 0, -2]))
        assert "E0111" in text, text


def test_what_only_a_step_of_the_loop_would_fail_at(monkeypatch):
    """What the law computes where the inner loop has a step alone: an index that does not fit matters only then."""

    def build(x, n, at):
        step = lambda n, at, h: rs.loop(lambda a: a + x[at], init=h, n_steps=n).last
        return rs.loop(step, over=[n, at], init=0.5)

    agree(monkeypatch, build, numbers(4), np.array([2, 0, 1]), np.array([1, 9, 3]))
    agree(monkeypatch, build, numbers(4), np.array([2, 1, 1]), np.array([1, 9, 3]))
