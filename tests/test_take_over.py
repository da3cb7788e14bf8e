"""Loops in a step that write over the row of a state: where nothing reads the old row afterwards there is one row, and no copy of it."""

import numpy as np
import pytest

import rscan as rs

# Of so many elements, loops are no part of the kernel of the loop around.
N = 100
B = np.concatenate([[3.0, -1.0, 2.0, 0.5, -4.0, 1.0, 2.5], np.random.default_rng(0).normal(size=N - 7)])
PLACES = np.array([2, 6, 0, 3, 3])


def swept(b, by):
    """Each element of b with the one before it added, from the second one on, times `by`."""
    return rs.loop(lambda i, b: b.at[i + 1].set(by * (b[i] + b[i + 1])), over=rs.arange(b.shape[0] - 1), init=b).last


def sunk(b, x):
    """x put where b first has something larger, what is there going on to the next such place."""

    def step(b, x, i):
        return dict(b=b.at[i].set(rs.minimum(b[i], x)), x=rs.maximum(b[i], x), i=i + 1), rs.until(i + 2 >= b.shape[0])

    out = rs.loop(step, init=dict(b=b, x=x, i=0)).last
    return out.b, out.x


def in_lists(b, by):
    """A loop whose step is a list of parts, for its product, and has a loop in it."""
    w = (rs.eye(N) * 0.5 + 0.1) / 4
    return rs.loop(lambda i, b: swept(b, 0.5).at[i].add(rs.tanh(w @ b)[i] * by), over=rs.arange(3), init=b).last


def apart(b, by):
    """The same without a chance to write over a row: what was there is needed once more."""
    new = swept(b, by)
    return new + 0.1 * b


#: What a step makes of a state and a place: the new state and an output.
STEPS = {
    "a loop": lambda b, i: (swept(b, 0.7), b[0]),
    "two loops": lambda b, i: (swept(swept(b, 0.7), 0.2), b[1]),
    "a write between": lambda b, i: (swept(swept(b, 0.7).at[i].add(1.0), 0.3), b[i]),
    "the old row afterwards": lambda b, i: (apart(b, 0.5), b[0]),
    "an element of the old row afterwards": lambda b, i: (lambda new: (new, new[0] + b[i]))(swept(b, 0.6)),
    "two loops from one row": lambda b, i: (swept(b, 0.5) - swept(b.at[i].set(0.0), 0.2), rs.sum(b)),
    "two loops from one row, one returned": lambda b, i: (swept(b, 0.5), swept(b, 0.2)[i]),
    "until": lambda b, i: sunk(b, 0.3 * b[i]),
    "the last place of a loop": lambda b, i: (lambda new, x: (new.at[i].set(x), x))(*sunk(swept(b, 0.4), b[2])),
    "a list": lambda b, i: (in_lists(b, 0.5), b[i]),
    "lists": lambda b, i: (in_lists(swept(in_lists(b, 0.5), 0.5), 0.3), rs.max(b)),
    "places twice": lambda b, i: (b.at[rs.stack([i, 0, i])].max(b[i] * 0.5 + 0.1), b[0]),
    "a branch": lambda b, i: (rs.ifelse(i > 2, swept(b, 0.3), b.at[i].set(0.1)), b[i]),
    "a write where something holds": lambda b, i: (rs.where(i > 2, b.at[i].set(b[0] * 2), b), b[i]),
    "writes where it does or not": lambda b, i: (rs.where(b[i] > 1, b.at[i].set(0.5).at[0].add(b[i]), b.at[1].set(0.1)), b[0]),
    "a row where it does": lambda b, i: (rs.where(b[0] > b[i], rs.outer(b, b).at[i].add(b), rs.outer(b, b))[1] * 0.1, b[i]),
    "a number of steps by value": lambda b, i: (rs.loop(lambda b: b.at[0].add(b[1]), init=b, n_steps=i).last, b[0]),
    "a view of the row": lambda b, i: (swept(b[::-1], 0.5), b[i]),
}


def run(step, keep, monkeypatch, engine, grad=False):
    monkeypatch.setenv("RSCAN_ENGINE", engine)
    b, places = rs.dvector("b"), rs.lvector("places")
    out = rs.loop(lambda i, b: dict(zip(("b", "y"), step(b, i), strict=True)), over=places, init=dict(b=b))
    kept = {"last": out.last.b, "rows": out.b, "both": rs.sum(out.b, axis=1)}[keep]
    results = [kept, out.y]
    if grad:
        results.append(rs.grad(rs.sum(kept**2) + rs.sum(out.y), b))
    return rs.function([b, places], results)(B, PLACES)


@pytest.mark.parametrize("engine", ["vm", "jit"])
@pytest.mark.parametrize("keep", ["last", "rows", "both"])
@pytest.mark.parametrize("name", STEPS)
def test_values_are_the_evaluators(name, keep, engine, monkeypatch):
    want = run(STEPS[name], keep, monkeypatch, "eval")
    got = run(STEPS[name], keep, monkeypatch, engine)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)


@pytest.mark.parametrize("name", STEPS)
def test_gradients_are_the_evaluators(name, monkeypatch):
    want = run(STEPS[name], "last", monkeypatch, "eval", grad=True)
    got = run(STEPS[name], "last", monkeypatch, "jit", grad=True)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("engine", ["eval", "vm", "jit"])
def test_rows_that_go_from_state_to_state(engine, monkeypatch):
    monkeypatch.setenv("RSCAN_ENGINE", engine)
    a, b = rs.dvector("a"), rs.dvector("b")
    out = rs.loop(lambda a, b: dict(a=swept(b, 0.5), b=swept(a, 0.3)), init=dict(a=a, b=b), n_steps=5).last

    def by_numpy(x, by):
        x = x.copy()
        for i in range(len(x) - 1):
            x[i + 1] = by * (x[i] + x[i + 1])
        return x

    want = B, B[::-1] + 1
    for _ in range(5):
        want = by_numpy(want[1], 0.5), by_numpy(want[0], 0.3)
    got = rs.function([a, b], [out.a, out.b])(B, B[::-1] + 1)
    np.testing.assert_allclose(got, want)


def copies(step):
    """Rows that the loop around copies, as `explain` tells it."""
    b, places = rs.dvector("b"), rs.lvector("places")
    out = rs.loop(lambda i, b: dict(zip(("b", "y"), step(b, i), strict=True)), over=places, init=dict(b=b))
    f = rs.function([b, places], [out.last.b, out.y])
    f(B, PLACES)
    return [line for line in str(f.explain()).splitlines() if "copies" in line and "800 bytes" in line]


@pytest.mark.usefixtures("chosen_engine")
def test_one_row_where_the_old_one_is_not_needed():
    assert copies(STEPS["a write where something holds"]) == []
    assert copies(STEPS["a write between"]) == []
    assert copies(STEPS["until"]) == []
    assert copies(STEPS["lists"]) == []
    assert copies(STEPS["places twice"]) == []
    assert copies(STEPS["an element of the old row afterwards"]) == []
    assert copies(STEPS["the old row afterwards"]) == ["      copies what a loop in the step begins with: 800 bytes a step"]


@pytest.mark.parametrize("engine", ["eval", "vm", "jit"])
@pytest.mark.parametrize("holds", [True, False])
def test_zeros_and_nans_keep_their_bits_where_nothing_is_written(engine, holds, monkeypatch):
    monkeypatch.setenv("RSCAN_ENGINE", engine)
    x, c, i = rs.dvector("x"), rs.scalar("c", dtype="bool"), rs.lscalar("i")
    f = rs.function([x, c, i], [rs.where(c, x.at[i].add(1.0), x), rs.where(c, x.at[i].set(1.0), x)])
    at = np.array([-0.0, np.nan, 2.0])
    added, put = at.copy(), at.copy()
    if holds:
        added[0] += 1.0
        put[0] = 1.0
    got = f(at, holds, 0)
    assert [a.tobytes() for a in got] == [added.tobytes(), put.tobytes()]
    with pytest.raises(rs.errors.RscanIndexError):
        f(at, holds, 3)


def test_what_the_caller_passes_is_as_it_was():
    b, places = rs.dvector("b"), rs.lvector("places")
    f = rs.function([b, places], rs.loop(lambda i, b: swept(b, 0.7), over=places, init=b).last)
    given = B.copy()
    first = f(given, PLACES)
    assert (given == B).all()
    assert (f(given, PLACES) == first).all()


def test_shared_rows_are_written_at_the_end_of_a_call():
    s = rs.shared(B.copy(), name="s")
    out = rs.loop(lambda i, b: swept(b, 0.7).at[i].set(1.0), over=rs.constant(PLACES), init=s).last
    f = rs.function([], rs.sum(out), updates={s: out})
    total = f()
    np.testing.assert_allclose(total, s.get_value().sum())
    assert f() != total
