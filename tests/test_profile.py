"""Where the time of calls goes: `profile` of a function and of a loop."""

import json
import pickle
import time

import numpy as np
import pytest

import rscan as rs
import rscan.theano as theano
import rscan.theano.tensor as T


def chain(profile=False, name=None):
    n, x = rs.lscalar("n"), rs.dscalar("x")
    return [n, x], rs.scan(lambda h: rs.sin(h) * 2.0, outputs_info=x, n_steps=n, name=name, profile=profile)[0][-1]


def test_a_function_without_profile_has_none():
    inputs, out = chain()
    assert rs.function(inputs, out).profile is None


@pytest.mark.parametrize("of", ["function", "loop"])
@pytest.mark.usefixtures("chosen_engine")
def test_steps_and_operations_are_counted(of):
    inputs, out = chain(profile=of == "loop", name="waves")
    f = rs.function(inputs, out, profile=of == "function")
    assert f(5, 0.3) == f(5, 0.3) == rs.function(*chain())(5, 0.3)
    f(2, 0.3)
    outside, waves = f.profile.loops
    assert (f.profile.calls, outside.name, waves.name) == (3, "outside loops", "waves")
    assert (waves.calls, waves.steps) == (3, 12)
    assert {op: count for op, (count, _) in waves.ops.items()} == {"kernel": 3}
    assert outside.ops["scan"][0] == 3
    inside = sum(seconds for _, seconds in waves.ops.values())
    assert 0.0 < inside <= waves.seconds <= outside.ops["scan"][1]


def test_lines_add_up_to_what_calls_take():
    n, x, v = rs.lscalar("n"), rs.dscalar("x"), rs.dvector("v")
    h = rs.scan(lambda h, x: rs.sin(h) * rs.exp(x), outputs_info=v, non_sequences=x, n_steps=n)[0][-1]
    loss = rs.sum(h**2 + rs.log(v)[: h.shape[0]])
    f = rs.function([n, x, v], [loss, rs.grad(loss, x)], profile=True)
    start = time.perf_counter()
    for rows in (3, 3, 1):
        f(rows, 0.1, np.arange(1.0, 9.0))
    wall = time.perf_counter() - start
    outside, *loops = f.profile.loops
    assert outside.calls == 3 and 0.0 < outside.seconds <= wall
    assert sum(loop.seconds for loop in loops) <= outside.ops["scan"][1] + 1e-9
    for loop in f.profile.loops:
        assert loop.around > -1e-9, loop
        assert sum(seconds for _, seconds in loop.ops.values()) + loop.around == pytest.approx(loop.seconds)
    assert str(f.profile).count("around these") == len(f.profile.loops)


def test_the_name_of_a_profile_names_the_loop():
    assert rs.function(*chain(profile="tides"), profile="all").profile.name == "all"
    f = rs.function(*chain(profile="tides"))
    f(3, 1.0)
    assert f.profile.loops[1].name == "tides"
    text = str(f.profile)
    assert text.startswith("profile of a function: 1 calls, arrays of ") and "tides: 1 runs, 3 steps" in text


def test_nested_loops_and_gradients_have_entries_of_their_own():
    n, x = rs.lscalar("n"), rs.dscalar("x")

    def outer(h):
        return rs.scan(lambda s: s * 0.5 + 1.0, outputs_info=h, n_steps=9, name="inner")[0][-1]

    out = rs.scan(outer, outputs_info=x, n_steps=n, name="outer")[0][-1]
    f = rs.function([n, x], [out, rs.grad(out, x)], profile=True)
    assert np.allclose(f(2, 1.0)[1], 0.5**18)
    found = {loop.name: loop.steps for loop in f.profile.loops[1:]}
    # The gradient computes no step again: 2 · 9 steps of the inner loop forward, and its gradient's on the way back.
    assert found["outer"] == 2 and found["inner"] == 18
    assert found["grad of outer"] == 2


def test_what_loops_store(monkeypatch):
    """Rows that are returned, and the tape of a gradient; of the last row alone nothing. The evaluator does not count them."""
    monkeypatch.delenv("RSCAN_ENGINE", raising=False)
    x, w = rs.dmatrix("x"), rs.dmatrix("w")
    rows = rs.loop(lambda x, h: rs.tanh(x + h @ w), over=x, init=rs.zeros(4), name="rnn")
    last = rs.function([x, w], rows.last, profile=True)
    slope = rs.function([x, w], rs.grad(rs.sum(rows[:] ** 2), w), profile=True)
    for f in (last, slope):
        f(np.ones((10, 4)), np.eye(4))
    assert last.profile.loops[1].stored == 0
    (forward,) = [loop for loop in slope.profile.loops if loop.name == "rnn"]
    assert forward.stored >= 4 * 8 and f", stores {forward.stored} bytes per step" in str(slope.profile)
    assert slope.profile.as_dict()["loops"][1]["stored"] is not None and f"{forward.stored} bytes per step" in slope.profile._repr_html_()
    copy = pickle.loads(pickle.dumps(slope))
    copy(np.ones((10, 4)), np.eye(4))
    assert [loop.stored for loop in copy.profile.loops] == [loop.stored for loop in slope.profile.loops]


@pytest.mark.usefixtures("chosen_engine")
def test_the_most_bytes_at_a_time():
    """All rows of a loop that is differentiated, of a few where they are computed again, of one where the last one is asked for."""
    x, rows, width = rs.dvector("x"), 400, 1000
    loop = rs.loop(lambda h: rs.tanh(h) * 0.9, init=x, n_steps=rows)
    whole = rows * width * 8
    outs = {"last": loop.last, "all": loop[:], "slope": rs.grad(rs.sum(loop.last), x)}
    peaks = {}
    for name, out in outs.items():
        f = rs.function([x], out, profile=True)
        f(np.ones(width))
        first = peaks[name] = f.profile.peak
        f(np.ones(width))
        assert f.profile.peak == first == f.profile.to_dict()["peak"], "the second call's memory is the first's, used again"
        assert f"arrays of {first:,} bytes at most" in str(f.profile) and f"arrays of {first:,} bytes" in f.profile._repr_html_()
    assert width * 8 <= peaks["last"] < whole / 4
    assert whole <= peaks["all"] < 2.5 * whole
    assert whole <= peaks["slope"] < 2.5 * whole


def test_a_failing_call_leaves_the_profile_as_it_was():
    i, x = rs.lscalar("i"), rs.dvector("x")
    f = rs.function([i, x], x[i], profile=True)
    with pytest.raises(IndexError):
        f(9, [1.0])
    assert f.profile.calls == 0


def test_a_profile_travels_with_its_function():
    f = rs.function(*chain(profile="tides"))
    f(3, 1.0)
    copy = pickle.loads(pickle.dumps(f))
    copy(4, 1.0)
    assert (f.profile.loops[1].steps, copy.profile.loops[1].steps) == (3, 7)


def test_theanos_profile(capsys):
    x = T.dscalar("x")
    out, _ = theano.scan(lambda h: T.sin(h), outputs_info=x, n_steps=9, profile="sines")
    f = theano.function([x], out[-1])
    f(1.0)
    f(1.0)
    assert f.profile.fct_callcount == 2
    f.profile.summary()
    assert "sines: 2 runs, 18 steps" in capsys.readouterr().err


def test_its_form_for_programs():
    """Keys stay: dashboards read them."""
    f = rs.function(*chain(profile="waves"))
    f(2, 0.3)
    told = json.loads(json.dumps(f.profile.to_dict()))
    assert set(told) == {"name", "calls", "peak", "crossed", "loops"} and told["crossed"] == [0, 0]
    outside, waves = told["loops"]
    assert set(outside) == set(waves) == {"name", "calls", "steps", "seconds", "ops", "stored", "work"}
    assert (waves["name"], waves["calls"], waves["steps"]) == ("waves", 1, f.profile.loops[1].steps)
    assert [len(row) for row in waves["ops"].values()] == [2] * len(waves["ops"])


def test_the_work_of_a_step_is_counted(monkeypatch):
    """Arithmetic, bytes and calls of a kernel and of a list, as they can be counted by hand."""
    monkeypatch.setenv("RSCAN_ENGINE", "vm")
    x, w = rs.dmatrix("x"), rs.dmatrix("w")
    rows = rs.function([x], rs.loop(lambda x, h: x * h, over=x, init=rs.ones(10)), profile=True)
    rows(np.ones((4, 10)))
    work = rows.explain().loops[0].variants[0].work
    # Of a row that is read and one that is written; the state is handed on.
    assert (work.operations, work.width, work.calls, work.bytes) == (10, 80, 0, 160)
    assert rows.profile.loops[1].work == work
    power = rs.function([w], rs.loop(lambda h: rs.sort(w @ h), init=rs.ones(40), n_steps=3).last)
    power(np.eye(40))
    work = power.explain().loops[0].variants[0].work
    assert work.operations == 2 * 40 * 40 and work.calls == 1 and work.bytes > 40 * 40 * 8


def test_loops_in_steps_count_as_often_as_they_run(monkeypatch):
    monkeypatch.setenv("RSCAN_ENGINE", "vm")
    x, n = rs.dmatrix("x"), rs.lscalar("n")

    def work(steps):
        def inner(h):
            return rs.loop(lambda g: g * x[0], init=h @ x, n_steps=steps).last

        f = rs.function([x, n], rs.loop(inner, init=x[0], n_steps=30).last, on_unused_input="ignore")
        f(np.eye(40), 5)
        return f.explain().loops[0].variants[0].work

    assert work(7).operations - work(6).operations == work(6).operations - work(5).operations >= 40
    assert work(n) is None


def test_profiles_tell_how_far_a_loop_is_from_the_machine():
    """The share of the roofline: by what was measured here, so that all that is known of it is that it is one."""
    x = rs.dmatrix("x")
    f = rs.function([x], rs.loop(lambda x, h: 0.5 * h + x * x, over=x, init=rs.zeros(1000)).last, profile=True)
    for _ in range(3):
        f(np.ones((500, 1000)))
    loop = f.profile.loops[1]
    assert loop.share == pytest.approx(loop.work.least() * loop.steps / loop.seconds)
    assert 0.0 < loop.share < 100.0
    assert "G operations/s" in str(f.profile) and "% of what a core does at most" in str(f.profile)
    assert "operations, 8,000 bytes read and written" in str(f.explain())
    assert f.profile.loops[0].share is None
