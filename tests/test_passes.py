"""Which passes run, and that results do not depend on it."""

import numpy as np
import pytest

import rscan as rs
from rscan import _native


def _loop():
    x, n = rs.dvector("x"), rs.lscalar("n")
    rows, _ = rs.scan(lambda h, x: rs.tanh(h * 1.0 + x) ** 2, outputs_info=rs.ones_like(x), non_sequences=x, n_steps=n)
    last = rows[-1]
    return [x, n], [last, rs.grad(last.sum(), x)]


def test_explain_tells_what_passes_did_and_left():
    inputs, outputs = _loop()
    found = rs.function(inputs, outputs).explain()
    assert ("algebra", "x · 1 → x") in [rule[:2] for rule in found.rules]
    assert {"scan_keep_last"} <= {note.name for note in found.passes}
    assert "x · 1 → x" in str(found)
    assert rs.function(inputs, outputs, excluding=[name for name, *_ in _native.passes()]).explain().rules == []


def test_results_do_not_depend_on_the_passes():
    inputs, outputs = _loop()
    args = (np.array([0.5, -1.0, 2.0]), 7)
    want = rs.function(inputs, outputs)(*args)
    for name, *_ in _native.passes():
        for got, value in zip(rs.function(inputs, outputs, excluding=[name])(*args), want, strict=True):
            np.testing.assert_allclose(got, value, rtol=1e-12)
    for level in ("none", "fast_compile", "fast_run"):
        with rs.config.override(passes=level):
            f = rs.function(inputs, outputs)
        for got, value in zip(f(*args), want, strict=True):
            np.testing.assert_allclose(got, value, rtol=1e-12)


def test_the_text_is_the_users_and_the_optimised_text_what_runs():
    x = rs.dscalar("x")
    f = rs.function([x], rs.log(1.0 + rs.exp(x * 1.0)))
    assert "softplus" not in f.text() and "mul" in f.text()
    assert "softplus(x)" in f.text(optimised=True)
    assert rs.function([x], f.outputs, excluding="stabilise").text(optimised=True).count("softplus") == 0
    assert f(1000.0) == 1000.0


def test_unused_inputs_are_those_of_the_users_graph():
    n = rs.lscalar("n")
    f = rs.function([n], n * 0)
    assert f.text(optimised=True).split("{")[1].strip() == "return 0:i64\n}"
    assert f(3) == 0


def test_passes_are_excluded_by_our_names_and_theanos():
    x = rs.dscalar("x")
    y = rs.log(1.0 + rs.exp(x))
    for name in ("stabilise", "stabilize"):
        assert "softplus" not in rs.function([x], y, excluding=[name]).text(optimised=True)
        with rs.config.override(excluding=(name,)):
            assert "softplus" not in rs.function([x], y).text(optimised=True)
    assert "softplus" in rs.function([x], y, excluding=["fusion", "inplace"]).text(optimised=True)


def test_a_pass_that_is_not_there_is_an_error_with_the_names():
    x = rs.dscalar("x")
    with pytest.raises(rs.RscanValueError, match="stabilise") as error:
        rs.function([x], x * 2, excluding=["stabilize_everything"])
    assert error.value.code == "E0509"
    with pytest.raises(rs.RscanValueError, match="fast_compile"):
        rs.config.passes = "faster"


def test_the_environment_switches_passes_off(monkeypatch):
    x = rs.dscalar("x")
    y = rs.log(1.0 + rs.exp(x))
    monkeypatch.setenv("RSCAN_EXCLUDE", "stabilise, fma")
    assert "softplus" not in rs.function([x], y).text(optimised=True)
    monkeypatch.setenv("RSCAN_EXCLUDE", "")
    monkeypatch.setenv("RSCAN_PASSES", "0")
    f = rs.function([x], y)
    assert f.text(optimised=True) == f.text()


def test_functions_keep_their_passes_when_pickled():
    import pickle

    x = rs.dscalar("x")
    f = rs.function([x], rs.log(1.0 + rs.exp(x)), excluding=["stabilise"])
    assert "softplus" not in pickle.loads(pickle.dumps(f)).text(optimised=True)


def test_assertions_and_errors_stay():
    x, n = rs.dvector("x"), rs.lscalar("n")
    f = rs.function([x, n], x[n] * 0.0)
    with pytest.raises(IndexError):
        f([1.0, 2.0], 2)
    rows, _ = rs.scan(lambda h: h * 2.0, outputs_info=rs.ones_like(x), n_steps=n)
    g = rs.function([x, n], rows[-1])
    assert g([1.0], 3) == [8.0]
    with pytest.raises(IndexError):
        g([1.0], 0)


def _chain(steps, states, batch, turned):
    """A chain of messages in log space, the derivatives of its sum, and arguments with impossible transitions."""
    log_a, log_b = rs.dmatrix("log_a"), rs.dtensor3("log_b") if batch else rs.dmatrix("log_b")

    def step(b, a):
        wide = a[..., None, :] + log_a if turned else a[..., :, None] + log_a
        return rs.logsumexp(wide, axis=-1 if turned else -2) + b

    a, _ = rs.scan(step, sequences=log_b[1:], outputs_info=log_b[0])
    total = rs.sum(rs.logsumexp(a[-1] if steps > 1 else log_b[0], axis=-1))
    rng = np.random.default_rng(steps * states)
    weights = rng.normal(size=(states, states)) * 3
    weights[rng.random((states, states)) < 0.4] = -np.inf
    np.fill_diagonal(weights, 0.0)
    rows = rng.normal(size=(steps, 3, states) if batch else (steps, states))
    return [log_a, log_b], [total, *rs.grad(total, [log_a, log_b])], [weights, rows]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize(("steps", "states"), [(2, 3), (3, 5), (40, 1), (40, 9), (200, 20)])
def test_chains_in_log_space_are_those_of_the_formula(steps, states, batch, turned):
    inputs, outputs, args = _chain(steps, states, batch, turned)
    f = rs.function(inputs, outputs)
    assert ("log_matmul_left" in f.text(optimised=True)) == ("log_matmul" in f.text(optimised=True))
    got, want = f(*args), rs.function(inputs, outputs, excluding=["scan_log_matmul"])(*args)
    for x, y in zip(got, want, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12 * np.abs(y).max())
    with rs.config.override(passes="none"):
        plain = rs.function(inputs, outputs)(*args)
    for x, y in zip(got, plain, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12 * np.abs(y).max())


def test_slopes_of_chains_in_log_space_match_differences():
    inputs, outputs, (weights, rows) = _chain(30, 6, False, False)
    f, rng = rs.function(inputs, outputs), np.random.default_rng(1)
    ways = [rng.normal(size=weights.shape), rng.normal(size=rows.shape)]
    value, *slopes = f(weights, rows)
    up, down = (f(weights + h * ways[0], rows + h * ways[1])[0] for h in (1e-6, -1e-6))
    slope = sum((g * way)[np.isfinite(g)].sum() for g, way in zip(slopes, ways, strict=True))
    assert abs((up - down) / 2e-6 - slope) <= 1e-6 * abs(value)


def test_a_chain_keeps_what_its_gradient_needs():
    inputs, outputs, _ = _chain(30, 6, False, False)
    text = rs.function(inputs, outputs).text(optimised=True)
    assert [text.count(f"= log_matmul{name}") for name in ("(", "_powers", "_sums", "_quotients", "_left", "_right")] == [1] * 6
    assert "log_matmul_right[reverse=true]" in text


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("recurrent", [False, True])
def test_products_of_a_sequence_that_is_read_from_its_end_take_its_last_rows(n, recurrent):
    x, w = rs.tensor("float64", (5, 3), "x"), rs.dmatrix("w")

    def step(row, *h):
        y = row @ w
        return (y, rs.tanh(h[0])) if recurrent else y

    state = [None, rs.zeros((2,))] if recurrent else None
    found, _ = rs.scan(step, sequences=x, outputs_info=state, n_steps=n, go_backwards=True)
    y = found[0] if recurrent else found
    random = np.random.default_rng(3)
    a, b = random.normal(size=(5, 3)), random.normal(size=(3, 2))
    value, slope = rs.function([x, w], [y, rs.grad(y.sum(), x)])(a, b)
    np.testing.assert_allclose(value, a[::-1][:n] @ b, rtol=1e-12)
    np.testing.assert_allclose(slope[: 5 - n], 0)
    np.testing.assert_allclose(slope[5 - n :], np.tile(b.sum(1), (n, 1)), rtol=1e-12)


@pytest.mark.parametrize("n", range(5))
def test_the_gradient_by_initial_rows_sees_what_its_steps_wrote_over_them(n):
    x0, steps = rs.dvector("x0"), rs.lscalar("n")
    taps = {"initial": x0, "taps": [-2, -1]}
    rows, _ = rs.scan(lambda b, a: 2.0 * b + 3.0 * a, outputs_info=taps, n_steps=steps)
    cost = (rows**2).sum()
    f = rs.function([x0, steps], [cost, rs.grad(cost, x0)])

    def plain(x):
        x = list(x)
        for _ in range(n):
            x.append(2.0 * x[-2] + 3.0 * x[-1])
        return np.array(x[2:])

    at = np.array([0.5, -0.25])
    unit = np.stack([plain(e) for e in np.eye(2)])
    value, slope = f(at, n)
    np.testing.assert_allclose(value, (plain(at) ** 2).sum(), rtol=1e-12)
    np.testing.assert_allclose(slope, 2.0 * unit @ plain(at), rtol=1e-12)


def turned(rows):
    return rs.flip(rows, 0) if isinstance(rows, rs.Variable) else rows[::-1]


#: What may be read of a loop's rows: it keeps those that are enough.
READS = {
    "last": lambda r: r[-1], "third last": lambda r: r[-3], "last three": lambda r: r[-3:], "all but one": lambda r: r[:-1],
    "before the last": lambda r: r[-3:-1], "every second": lambda r: r[-4::2], "first": lambda r: r[0], "second": lambda r: r[1],
    "turned, first": lambda r: r[::-1][0], "turned, third": lambda r: r[::-1][2], "turned, three": lambda r: r[::-1][:3],
    "turned, from 1": lambda r: r[::-1][1:3], "turned, from 0": lambda r: r[::-1][0:2], "turned, last": lambda r: r[::-1][-1],
    "turned twice": lambda r: r[::-1][::-1][-2], "backwards": lambda r: r[-2::-1], "cut and last": lambda r: r[1:][-1],
    "cut, turned": lambda r: r[2:][::-1][0], "cut, turned, two": lambda r: r[1:][::-1][:2],
    "sum": lambda r: r.sum(0), "sum of all": lambda r: r.sum(), "greatest": lambda r: r.max(0), "product": lambda r: r.prod(0),
    "mean": lambda r: r.mean(0), "sum of a cut": lambda r: r[1:].sum(0), "sum of turned": lambda r: r[::-1].sum(0),
    "flipped, first": lambda r: turned(r)[0], "flipped, third": lambda r: turned(r)[2], "flipped, three": lambda r: turned(r)[:3],
    "flipped, from 1": lambda r: turned(r)[1:3], "flipped, from 0": lambda r: turned(r)[0:2], "flipped, last": lambda r: turned(r)[-1],
    "flipped, second last": lambda r: turned(r)[-2:], "flipped twice": lambda r: turned(turned(r))[-2],
    "cut, flipped": lambda r: turned(r[1:])[:2],
    "flipped, from -3": lambda r: turned(r)[-3:2], "flipped, every second": lambda r: turned(r)[0:4:2],
}  # fmt: skip


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("steps", [4, 7])
def test_a_loop_keeps_what_is_read(name, steps):
    x, h = rs.dmatrix("x"), rs.dvector("h")
    rows, _ = rs.scan(lambda v, h: rs.tanh(h * 0.5 + v), sequences=x, outputs_info=h)
    xs, state, expected = np.random.default_rng(steps).standard_normal((steps, 3)), np.ones(3), []
    for v in xs:
        state = np.tanh(state * 0.5 + v)
        expected.append(state)
    got = rs.function([x, h], READS[name](rows))(xs, np.ones(3))
    np.testing.assert_allclose(got, READS[name](np.array(expected)), rtol=1e-12)


def test_what_a_pass_did_is_all_that_it_tells():
    x = rs.dvector("x")
    rows, _ = rs.scan(lambda v, a, b: (rs.sin(a) * v + b, a), sequences=x, outputs_info=[rs.constant(1.0), rs.constant(0.5)])
    found = rs.function([x], rs.grad(rows[0][-1], x)).explain()
    told = [str(note) for note in found.passes if note.name == "scan_narrow"]
    assert told and not any("writes 0 rows" in text for text in told)


@pytest.mark.parametrize("first", ["last", "last three", "first", "sum", "flipped, third", "sum of a cut"])
@pytest.mark.parametrize("second", ["last", "last three", "second", "all but one", "sum", "product"])
def test_slopes_by_all_that_is_read_add_up(first, second):
    x, h = rs.dmatrix("x"), rs.dvector("h")
    rows, _ = rs.scan(lambda v, h: rs.tanh(h * 0.5 + v), sequences=x, outputs_info=h)
    cost = rs.sin(READS[first](rows)).sum() + (READS[second](rows) ** 2).sum()
    slopes = rs.grad(cost, [x, h])
    args = (np.random.default_rng(3).standard_normal((5, 3)), np.ones(3))
    plain = rs.function([x, h], slopes, excluding=[name for name, *_ in _native.passes()])
    for got, want in zip(rs.function([x, h], slopes)(*args), plain(*args), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("extent", [3, 2, 1])
def test_without_steps_nothing_that_does_not_fit_is_an_error(extent):
    x, w, m, u = rs.dmatrix("x"), rs.dvector("w"), rs.dmatrix("m"), rs.dmatrix("u")
    steps = [
        lambda v, h: (rs.tanh(v + h), rs.tanh(v + w)),
        lambda v, h: (h * 0.5 + v, rs.tanh(rs.tanh(v) * 2 + w)),
        lambda v, h: (rs.tanh(v + h), rs.exp((v + h) @ m + w)),
        lambda v, h: (rs.tanh(v + h), rs.exp(w * (v + h)) @ m),
        lambda v, h: (rs.tanh(v + h), rs.tanh(rs.tanh(v) + u)[0]),
    ]
    for step in steps:
        (_, rows), _ = rs.scan(step, sequences=x, outputs_info=[rs.zeros(3), None])
        alone, _ = rs.scan(lambda v, step=step: step(v, 0.5)[1], sequences=x)
        for outputs in (rows, alone):
            ins, passes = [x, w, m, u], [name for name, *_ in _native.passes()]
            plain = rs.function(ins, outputs, excluding=passes, on_unused_input="ignore")
            args = (np.zeros((0, 3)), np.ones(extent), np.ones((3, 2)), np.ones((2, extent)))
            got = rs.function(ins, outputs, on_unused_input="ignore")(*args)
            assert got.shape[0] == 0 and got.ndim == plain(*args).ndim == 2


def test_what_is_chosen_is_as_narrow_as_what_becomes_of_it():
    """`where(c, 1, 0)` is made of integers of 64 bits; cast to 32 it is a choice between those, whatever was cast to get there."""
    x = rs.ivector("x")
    for chosen in (rs.where(x > 2, 1, 0), rs.where(x > 2, x.astype("int64"), 7), rs.where(x > 2, np.nan, x.astype("float64"))):
        f = rs.function([x], chosen.astype("int32"))
        given = np.array([-5, 2, 3, 2**31 - 1], "int32")
        with rs.config.override(passes="none"):
            law = rs.function([x], chosen.astype("int32"))(given)
        np.testing.assert_array_equal(f(given), law)
        assert "64" not in f.text(True), f.text(True)
    wide = rs.function([x], rs.where(x > 2, x.astype("int64") * 3, 7).astype("int32"))
    assert "int64" in wide.text(True) or "i64" in wide.text(True)


class TestLoopsThatStopAlike:
    """Loops that stop by the same condition of states that are alike become one."""

    @staticmethod
    def loops(f, *args):
        return str(f.explain(*args)).splitlines()[0]

    def test_a_loop_and_the_loop_with_its_tangents(self):
        def root(p):
            newton = lambda x: ((x + p / x) / 2, rs.until(rs.abs(x * x - p) < 1e-12))
            return rs.loop(newton, init=p, n_steps=40).last

        f = rs.compile(lambda p: rs.jvp(root, (p,), (1.0,)))
        np.testing.assert_allclose(f(9.0), (3.0, 1 / 6), rtol=1e-12)
        assert self.loops(f, 9.0).endswith("1 loop"), f.explain(9.0)

    def test_with_loops_in_their_steps(self):
        def end(p):
            def outer(s):
                inner = rs.loop(lambda a: rs.sin(a + p * s), init=s, n_steps=5).last
                return inner, rs.until(rs.abs(inner - s) < 1e-3)

            return rs.loop(outer, init=0.5, n_steps=50).last

        f = rs.compile(lambda p: rs.jvp(end, (p,), (1.0,)))
        step = 1e-6
        value, slope = f(0.4)
        plain = rs.compile(end)
        np.testing.assert_allclose(value, plain(0.4), rtol=1e-12)
        np.testing.assert_allclose(slope, (plain(0.4 + step) - plain(0.4 - step)) / (2 * step), rtol=1e-5)
        assert self.loops(f, 0.4).endswith("2 loops"), f.explain(0.4)

    @pytest.mark.parametrize(
        "other",
        [
            lambda a, p: (a * 0.7, rs.until(a < 0.02)),  # another state
            lambda a, p: (a * 0.5, rs.until(a < 0.1)),  # another condition
            lambda a, p: (a * 0.5, rs.until(a < p)),  # of something else
        ],
    )
    def test_not_where_they_may_stop_at_other_steps(self, other):
        @rs.compile
        def f(p):
            one = rs.loop(lambda a: (a * 0.5, rs.until(a < 0.02)), init=p)
            two = rs.loop(lambda a: other(a, 0.03 * p), init=p)
            return one, two

        one, two = f(3.0)
        a, expected = 3.0, []
        while True:
            stop = a < 0.02
            a *= 0.5
            expected.append(a)
            if stop:
                break
        np.testing.assert_array_equal(one, expected)
        assert self.loops(f, 3.0).endswith("2 loops")
        assert len(two) != len(one)

    def test_two_that_share_a_condition_only(self):
        """What else they carry may differ."""

        @rs.compile
        def f(x):
            a = rs.loop(lambda n, s: (dict(n=n + 1, s=s + x), rs.until(n >= 4)), init=dict(n=0, s=0.0))
            b = rs.loop(lambda n, s: (dict(n=n + 1, s=s * x), rs.until(n >= 4)), init=dict(n=0, s=1.0))
            return a.s, b.s

        a, b = f(2.0)
        np.testing.assert_array_equal(a, [2, 4, 6, 8, 10])
        np.testing.assert_array_equal(b, [2, 4, 8, 16, 32])
        assert self.loops(f, 2.0).endswith("1 loop")
