"""Functions step by step: rows as a call with all rows makes them."""

import pickle
import threading

import numpy as np
import pytest
from helpers import same

import rscan as rs
import rscan.theano as theano
import rscan.theano.tensor as T

RNG = np.random.default_rng(1)


def rows_of(session, *sequences):
    """The rows of all steps, each result stacked."""
    return np.stack([session.step(*rows) for rows in zip(*sequences, strict=True)])


def gru(n=5, m=3):
    x, h0 = rs.dmatrix("x"), rs.dvector("h0")
    weights = [rs.dmatrix(name) for name in ("wz", "uz", "wr", "ur", "wh", "uh")]
    wz, uz, wr, ur, wh, uh = weights

    def step(x, h):
        z, r = rs.sigmoid(x @ wz + h @ uz), rs.sigmoid(x @ wr + h @ ur)
        return (1 - z) * h + z * rs.tanh(x @ wh + (r * h) @ uh)

    f = rs.function([x, h0, *weights], rs.loop(step, over=x, init=h0))
    values = [RNG.normal(size=(n if k % 2 else m, n)) * 0.4 for k in range(6)]
    return f, {"h0": RNG.normal(size=n), **{w.name: v for w, v in zip(weights, values, strict=True)}}


def test_a_gru_in_all_engines(monkeypatch):
    xs = RNG.normal(size=(40, 3))
    for engine in ("eval", "vm", "jit", "auto"):
        monkeypatch.setenv("RSCAN_ENGINE", engine)
        f, fixed = gru()
        whole = f(xs, *fixed.values())
        session = f.session(**fixed)
        same(rows_of(session, xs[:7]), whole[:7])
        same(session.run(xs[7:20]), whole[7:20])
        same(rows_of(session, xs[20:]), whole[20:])
        same(session.state["h0"], whole[-1])
        assert len(session) == 40 and not session.stopped


def test_results_of_rows_before_and_behind_the_loop():
    x, y, h0, w = rs.dmatrix("x"), rs.dvector("y"), rs.dvector("h0"), rs.dmatrix("w")
    a = rs.loop(lambda x, h: rs.tanh(x + 0.5 * h), over=rs.exp(x) @ w, init=h0)
    b = rs.loop(lambda h, y, s: s + h.sum() * y, over=[a, y], init=0.0)
    f = rs.function([x, y, h0, w], {"a": rs.exp(a), "b": b, "sums": a.sum(axis=1), "last": a[-1] * 2, "w": w.sum(), "both": b * y})
    xs, ys, fixed = RNG.normal(size=(9, 2)), RNG.normal(size=9), {"h0": np.zeros(3), "w": RNG.normal(size=(2, 3))}
    session = f.session(**fixed)
    for t in range(9):
        row, whole = session.step(xs[t], y=ys[t]), f(xs[: t + 1], ys[: t + 1], **fixed)
        for key in ("a", "b", "sums", "both"):
            same(row[key], whole[key][-1])
        same(row["last"], whole["last"])
        same(row["w"], whole["w"])


def test_taps_of_sequences_and_states_in_the_facade():
    x, h = T.dvector("x"), T.dvector("h")
    out, _ = theano.scan(
        lambda a, b, c, p, q: a + b * c + 0.3 * p * q,
        sequences=dict(input=x, taps=[-1, 0, 2]),
        outputs_info=dict(initial=h, taps=[-1, -3]),
    )
    f = theano.function([x, h], [out, out**2])
    xs, hs = RNG.normal(size=12), RNG.normal(size=3)
    whole = f(xs, hs)
    session = f.session(x=xs[:3], h=hs)
    same(np.array([session.step(v) for v in xs[3:]]).T, np.array(whole))
    later = f.session(x=xs[:8], h=hs)
    same(later.run(xs[8:])[1], whole[1][5:])
    with pytest.raises(rs.RscanValueError, match="needs the first 3 rows of `x`"):
        f.session(h=hs)
    with pytest.raises(rs.RscanValueError, match="begins with 3 rows of `x`, got 2"):
        f.session(x=xs[:2], h=hs)


def test_the_same_rows_in_many_terms():
    x = rs.dmatrix("x")
    y = rs.loop(lambda x, h: h + x, over=x, init=rs.zeros(2))
    for _ in range(70):
        y = rs.sin(y) * y
    f, xs = rs.function([x], y), RNG.normal(size=(5, 2))
    same(rows_of(f.session(), xs), f(xs))


def test_until_and_numbers_of_steps():
    x, h0, n = rs.dvector("x"), rs.dscalar("h0"), rs.lscalar("n")
    f = rs.function([x, h0], rs.loop(lambda x, h: (h + x, rs.until(h + x > 3)), over=x, init=h0))
    session = f.session(h0=0.0)
    same(session.run([1.0, 2.5, 2.0]), np.array([1.0, 3.5]))
    assert session.stopped and len(session) == 2
    with pytest.raises(rs.ScanError, match="ended after step 2: the loop has met its condition"):
        session.step(1.0)
    session.reset(h0=-5.0)
    assert session.step(1.0) == -4.0 and not session.stopped
    g = rs.function([h0, n], rs.loop(lambda h: h * 2, init=h0, n_steps=n))
    endless, three = g.session(h0=1.0), g.session(h0=1.0, n=3)
    same(endless.run(6), g(1.0, 6))
    same(three.run(6), g(1.0, 3))
    with pytest.raises(rs.ScanError, match="has made all of its steps"):
        three.step()


@pytest.mark.parametrize(
    "loop",
    [
        lambda x, h: rs.loop(lambda h: 2 * h + 1, n_steps=x.shape[0], init=h),
        lambda x, h: rs.loop(lambda k, h: 2 * h + k - k + 1, over=rs.arange(x.shape[0]), init=h),
        lambda x, h: rs.loop(lambda x, h: 2 * h + 1, over=x, init=h),
    ],
    ids=["n_steps", "arange", "a sequence that no step reads"],
)
def test_inputs_that_say_only_how_many_steps_there_are(loop):
    x, h = rs.dvector("x"), rs.dscalar("h")
    f = rs.function([x, h], loop(x, h))
    endless = f.session(h=1.0)
    assert [float(endless.step()) for _ in range(4)] == [3.0, 7.0, 15.0, 31.0] and not endless.stopped
    ended = f.session(h=1.0, x=np.ones(2))
    assert [float(ended.step()) for _ in range(2)] == [3.0, 7.0] and ended.stopped
    with pytest.raises(rs.RscanError) as caught:
        ended.step()
    assert caught.value.code == "E0533"


def test_a_number_of_steps_that_is_bounded_is_a_value_too():
    x, k = rs.dvector("x"), rs.lscalar("k")
    n = rs.minimum(x.shape[0], rs.minimum(5, k))
    h = rs.loop(lambda x, h: 0.5 * h + x, over=x, init=0.0, n_steps=n)
    f = rs.function([x, k], rs.where(h[-1] < n, h[-1], 100.0 * n))
    xs, session = np.array([1.0, 3.0, 0.5, 8.0]), f.session(k=4)
    same(np.array([session.step(v) for v in xs]), np.array([f(xs[: t + 1], 4) for t in range(4)]))


def test_a_loop_that_reads_rows_of_later_steps_is_refused():
    h0 = rs.dscalar("h0")
    h = rs.loop(lambda h: 0.5 * h + 1.0, init=h0, n_steps=6)
    f = rs.function([h0], rs.loop(lambda h, s: s + h, over=h[2:], init=0.0))
    assert f(1.0).shape == (4,)
    with pytest.raises(rs.errors.UnsupportedError, match=r"E0531.*that later steps make"):
        f.session()


def test_conditions_that_hold_as_soon_as_there_is_a_step():
    x = rs.dvector("x")
    total = rs.loop(lambda x, s: s + x, over=x, init=0.0)[-1]
    for holds in (x.shape[0] > 0, x.shape[0] >= 1, rs.logical_not(x.shape[0] < 1), x.shape[0] + 1 > 1):
        f = rs.function([x], rs.ifelse(holds, total, -1.0))
        session = f.session()
        assert [float(session.step(v)) for v in (2.0, 3.0)] == [2.0, 5.0]
        assert f(np.zeros(0)) == -1.0


def test_numbers_of_steps_chosen_by_whether_there_is_a_step():
    x = rs.dvector("x")
    n = x.shape[0]
    for steps in (rs.where(n >= 1, n, 7), rs.where(n < 1, 7, n)):
        f = rs.function([x], rs.loop(lambda x, s: 0.5 * s + x, over=x, init=0.0, n_steps=steps))
        session = f.session()
        assert [float(session.step(v)) for v in (2.0, 3.0, 4.0)] == f([2.0, 3.0, 4.0]).tolist() == [2.0, 4.0, 6.0]


def test_columns_of_all_rows_but_the_first():
    x = rs.dmatrix("x")
    f = rs.function([x], [x[1:, 1], rs.exp(x)[1:, -2:] * 2])
    xs = np.arange(12.0).reshape(4, 3) / 12
    session = f.session(x=xs[:1])
    for t in range(1, 4):
        same(session.step(xs[t]), [rows[-1] for rows in f(xs[: t + 1])])


@pytest.mark.parametrize(
    "part", [lambda h: h[1:], lambda h: h[:-1], lambda h: h[2:] * 2, lambda h: h[1:] - h[:-1], lambda h: rs.exp(rs.diff(h))]
)
def test_rows_that_the_first_step_does_not_make_are_refused(part):
    x = rs.dvector("x")
    h = rs.loop(lambda x, h: 0.5 * h + x, over=x, init=0.0)
    f = rs.function([x], part(h))
    assert len(f([1.0, 2.0, 3.0])) < 3
    with pytest.raises(rs.errors.UnsupportedError, match=r"E0531.*the first step does not make the first row"):
        f.session()


@pytest.mark.parametrize("part", [lambda x: x[:-1], lambda x: x[1:] - x[:-1], lambda x: rs.diff(x) * x[1:]])
def test_rows_of_a_sequence_that_begin_later(part):
    x = rs.dvector("x")
    f = rs.function([x], part(x))
    xs = np.array([1.0, 4.0, 2.0, 8.0])
    session = f.session(x=xs[:1])
    same(session.run(xs[1:]), f(xs))
    with pytest.raises(rs.errors.RscanValueError, match="E0532"):
        f.session()


def test_what_is_repeated_for_each_row():
    x, b, s = rs.dmatrix("x"), rs.dvector("b"), rs.dscalar("s")
    h = rs.loop(lambda x, h: 0.5 * h + x, over=x, init=rs.zeros(2))
    shape = (x.shape[0], 2)
    f = rs.function([x, b, s], [rs.broadcast_to(b, shape) + h, rs.broadcast_to(s, shape) * h, rs.full_like(h, s) - h])
    fixed, xs = {"b": np.array([1.0, 2.0]), "s": 2.0}, np.arange(6.0).reshape(3, 2)
    session = f.session(**fixed)
    for t in range(3):
        same(session.step(xs[t]), [rows[-1] for rows in f(xs[: t + 1], **fixed)])


def test_draws_follow_the_number_of_the_step():
    h0, n = rs.dscalar("h0"), rs.lscalar("n")
    stream = rs.RandomStream(3)
    f = rs.function([h0, n], rs.loop(lambda h: 0.9 * h + stream.normal(), init=h0, n_steps=n))
    session = f.session(h0=0.5)
    rows = np.array([session.step() for _ in range(6)])
    session.commit()
    after = f(0.5, 6)
    assert not np.array_equal(rows, after)  # the stream went on, as it does with every call
    stream_again = rs.RandomStream(3)
    g = rs.function([h0, n], rs.loop(lambda h: 0.9 * h + stream_again.normal(), init=h0, n_steps=n))
    same(rows, g(0.5, 6))
    same(g(0.5, 6), after)


def test_shared_variables_are_written_by_commit_alone():
    x, h0, s = rs.dvector("x"), rs.dscalar("h0"), rs.shared(1.0, name="s")
    f = rs.function([x, h0], rs.loop(lambda x, h: (h + x * s, {s: s + x}), over=x, init=h0))
    session, other = f.session(h0=0.0), f.session(h0=0.0)
    first = session.run([1.0, 2.0])
    s.set_value(7.0)
    same(other.run([1.0, 2.0]), first)
    assert s.get_value() == 7.0
    session.commit()
    assert s.get_value() == 4.0 and session.state["s"] == 4.0
    s.set_value(1.0)
    same(f([1.0, 2.0], 0.0), first)
    assert s.get_value() == 4.0
    f.session(h0=0.0).commit()
    assert s.get_value() == 4.0


def test_snapshots_and_copies():
    f, fixed = gru()
    xs = RNG.normal(size=(10, 3))
    session, other = f.session(**fixed), f.session(**fixed)
    session.run(xs[:4])
    kept, copied = session.snapshot(), session.copy()
    ahead = session.run(xs[4:])
    same(copied.run(xs[4:]), ahead)
    other.restore(pickle.loads(pickle.dumps(kept)))
    assert len(other) == 4
    same(other.run(xs[4:]), ahead)
    for bad in (b"", kept[:-9], kept[:30] + b"\x01" + kept[31:]):
        with pytest.raises(rs.RscanValueError, match="not those of a session, or were changed"):
            other.restore(bad)
    y = rs.dvector("y")
    g = rs.function([y], rs.loop(lambda y, m: m + y, over=y, init=0.0))
    with pytest.raises(rs.RscanValueError, match="of another function"):
        g.session().restore(kept)
    small, values = gru(4)
    with pytest.raises(rs.RscanValueError, match="other extents"):
        small.session(**values).restore(kept)


def test_sessions_are_begun_by_functions():
    with pytest.raises(rs.RscanTypeError, match=r"sessions are begun by f.session"):
        rs.Session("f", (), {})


def test_functions_in_files_go_step_by_step(tmp_path):
    f, fixed = gru()
    rs.save(tmp_path / "gru.rscan", gru=f)
    m = rs.load(tmp_path / "gru.rscan")
    xs = RNG.normal(size=(8, 3))
    session, other = f.session(**fixed), m.gru.session(**fixed)
    session.run(xs[:3])
    other.restore(session.snapshot())
    same(other.run(xs[3:]), session.run(xs[3:]))


def test_misfits():
    f, fixed = gru()
    with pytest.raises(rs.RscanValueError, match="a session needs `h0`"):
        f.session(**{k: v for k, v in fixed.items() if k != "h0"})
    with pytest.raises(rs.RscanTypeError, match="unexpected keyword argument 'z'"):
        f.session(z=1.0, **fixed)
    session = f.session(**fixed)
    session.step(np.zeros(3))
    with pytest.raises(rs.RscanTypeError, match="needs a row of input `x`"):
        session.step()
    with pytest.raises(rs.RscanTypeError, match=r"(?s)no sequence named 'y'.*its sequences are \(x\)"):
        session.step(y=np.zeros(3))
    with pytest.raises(rs.RscanTypeError, match="takes float64"):
        session.step(np.zeros((2, 3)))
    with pytest.raises(rs.RscanTypeError, match="float64"):
        session.step(np.zeros(3, dtype=complex))
    with pytest.raises(rs.RscanValueError, match=r"a row of `x` has shape \(4,\), those before had \(3,\)"):
        session.step(np.zeros(4))
    assert len(session) == 1
    narrow = f.session(**{**fixed, "wr": np.zeros((4, 5))})
    with pytest.raises(rs.ShapeError):
        narrow.step(np.zeros(3))


def test_what_needs_all_rows_is_refused_with_its_line():
    x, h0 = rs.dvector("x"), rs.dscalar("h0")
    out = rs.loop(lambda x, h: h + x, over=x, init=h0)
    for result, name in [(out.sum(), "reduce"), (rs.sort(out), "sort"), (rs.cumsum(out), "cumsum")]:
        with pytest.raises(rs.UnsupportedError, match=f"`{name}` takes all rows at once") as caught:
            rs.function([x, h0], result).session(h0=0.0)
        assert "test_session.py" in str(caught.value)
    back = rs.loop(lambda x, h: h + x, over=x, init=h0, reverse=True)
    with pytest.raises(rs.UnsupportedError, match="from its end"):
        rs.function([x, h0], back).session(h0=0.0)
    with pytest.raises(rs.UnsupportedError, match="begins with what depends on rows"):
        rs.function([x, h0], rs.loop(lambda x, h: h + x, over=x, init=out[-1])).session(h0=0.0)


def test_compiled_functions_keep_their_structures():
    @rs.compile
    def model(obs, start, rate):
        out = rs.loop(lambda a, b, m: dict(m=m + rate * (a - m), d=a - b), over=dict(a=obs["a"], b=obs["b"]), init=dict(m=start))
        return {"mean": out.m, "pair": (out.d, "text")}

    a, b = RNG.normal(size=6), RNG.normal(size=6)
    whole = model({"a": a, "b": b}, 0.0, 0.25)
    session = model.session({"a": a[:2], "b": b[:2]}, 0.0, 0.25)
    for t in range(2, 6):
        row = session.step({"a": a[t], "b": b[t]})
        assert row["mean"] == whole["mean"][t] and row["pair"] == (whole["pair"][0][t], "text")
    with pytest.raises(rs.RscanTypeError, match=r"needs a row of `obs.b`"):
        session.step({"a": 1.0})


def test_sessions_of_one_function_step_side_by_side():
    f, fixed = gru(16)
    xs = RNG.normal(size=(200, 3))
    whole = f(xs, *fixed.values())
    found = {}

    def work(k):
        found[k] = rows_of(f.session(**fixed), xs)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert sorted(found) == [0, 1, 2, 3]
    for rows in found.values():
        same(rows, whole)


# Many sessions at once.


def test_many_sessions_make_the_bits_of_each_alone():
    f, _ = cell()
    many, alone = ([f.session(h0=np.full(3, 0.01 * i)) for i in range(150)] for _ in range(2))
    rng = np.random.default_rng(3)
    for _ in range(5):
        x = rng.normal(size=(150, 3))
        rows = rs.step_all(many, x)
        assert rows.shape == (150, 3) and rows.tobytes() == np.stack([s.step(row) for s, row in zip(alone, x, strict=True)]).tobytes()
    assert [len(s) for s in many] == [5] * 150
    rs.step_all(reversed(many), x=x)
    assert many[0].step(x[0]).shape == (3,)


def cell():
    x, h0 = rs.dmatrix("x"), rs.dvector("h0")
    w = rs.shared(np.random.default_rng(1).normal(size=(3, 3)), "w")
    return rs.function([x, h0], rs.loop(lambda x, h: rs.tanh(h @ w + x), over=x, init=h0)), None


def test_one_that_fails_is_left_as_it_was_and_the_others_go_on():
    x, h0 = rs.dvector("x"), rs.dscalar("h0")
    f = rs.function([x, h0], dict(h=rs.loop(lambda x, h: (h + x, rs.until(h + x > 100)), over=x, init=h0)))
    sessions = [f.session(h0=100.0 * (i % 50 == 7)) for i in range(200)]
    first = rs.step_all(sessions, np.ones(200))
    ended = [i for i in range(200) if i % 50 == 7]
    assert [i for i, s in enumerate(sessions) if s.stopped] == ended and first["h"][7] == 101.0
    failed = {}
    rows = rs.step_all(sessions, np.ones(200), failed=failed)["h"]
    assert list(failed) == ended and {e.code for e in failed.values()} == {"E0533"}
    assert (rows[ended] == 0).all() and (np.delete(rows, ended) == 2.0).all()
    with pytest.raises(rs.ScanError, match="of session 7; 4 of 200 sessions failed") as caught:
        rs.step_all(sessions, np.ones(200))
    assert caught.value.code == "E0533"
    assert [len(s) for s in sessions[6:9]] == [3, 1, 3] and sessions[7].state["h0"] == 101.0
    failed.clear()
    assert rs.step_all([sessions[7]], np.ones(1), failed=failed) is None and list(failed) == [0]


def test_what_does_not_fit_many_sessions_steps_none():
    f, _ = cell()
    sessions = [f.session(h0=np.zeros(3)) for _ in range(3)]
    other = cell()[0].session(h0=np.zeros(3))
    for bad, rows, text in [
        ([], np.ones((0, 3)), "at least one"),
        ([*sessions, other], np.ones((4, 3)), "of different functions"),
        ([*sessions, sessions[1]], np.ones((4, 3)), "sessions 1 and 3 are the same one"),
        (sessions, np.ones((2, 3)), "rows for 2 sessions, not 3"),
    ]:
        with pytest.raises(rs.RscanError, match=text) as caught:
            rs.step_all(bad, rows)
        assert caught.value.code == "E0532"
    assert all(len(s) == 0 for s in sessions)


def test_many_sessions_of_compiled_functions_have_their_structures():
    @rs.compile
    def ema(xs, start):
        return {"m": rs.loop(lambda x, m: m + 0.5 * (x - m), over=xs, init=start)}

    sessions = [ema.session(np.empty(0), float(i)) for i in range(4)]
    assert rs.step_all(sessions, [2.0] * 4)["m"].tolist() == [1.0, 1.5, 2.0, 2.5]
