"""Choices of which one side takes much work: whatever engines jump over, values and gradients are the evaluator's, to the bit."""

import numpy as np
import pytest

import rscan as rs

ENGINES = ["eval", "vm", "jit", "auto"]


def heavy(x, rounds=6):
    """More instructions than a jump costs, with functions that are called."""
    for k in range(rounds):
        x = rs.sin(x + k) / (1.5 + x * x) + rs.exp(-abs(x)) * 0.25
    return x + rs.special.gammaln(2.0 + x * x)


def flags(kind, shape):
    random = np.random.default_rng(5)
    return {
        "never": np.zeros(shape, bool),
        "always": np.ones(shape, bool),
        "seldom": random.random(shape) < 0.05,
        "often": random.random(shape) < 0.5,
    }[kind]


def by_engines(monkeypatch, build, *args):
    """The results of each engine, of a function of its own, after some calls."""
    found = {}
    for engine in ENGINES:
        monkeypatch.setenv("RSCAN_ENGINE", engine)
        f = build()
        for _ in range(4):
            found[engine] = [np.asarray(v) for v in f(*args)]
    for engine in ENGINES[1:]:
        for ours, law in zip(found[engine], found["eval"], strict=True):
            np.testing.assert_array_equal(ours, law, err_msg=engine)
    return found["eval"]


def formula(choose):
    """A loop whose step takes the long way where a bool says so, within it a longer one where another does."""

    def run(a, x, flag, inner):
        def step(x, flag, inner, h):
            long = choose(inner, heavy(h * a, 9), heavy(x + h))
            h = choose(flag, 0.5 * h + 0.1 * long, 0.9 * h + x)
            return dict(h=h, seen=choose(flag, long * h, h))

        init = dict(h=x[0] * a)
        return rs.loop(step, over=(x, flag, inner), init=init)

    return run


@pytest.mark.parametrize("kind", ["never", "always", "seldom", "often"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("lanes", [None, 1, 3, 7, 8, 33])
class TestEngines:
    def test_a_condition_for_all_lanes(self, lanes, dtype, kind, monkeypatch):
        shape = (40,) if lanes is None else (40, lanes)
        x = np.random.default_rng(1).normal(size=shape).astype(dtype)
        args = np.asarray(0.7, dtype), x, flags(kind, 40), flags("often", 40)

        def build():
            def loss(a, x, flag, inner):
                out = formula(rs.ifelse)(a, x, flag, inner)
                return rs.sum(out.seen) + rs.sum(out.last.h), (out.h, out.seen)

            f = rs.compile(rs.value_and_grad(loss, wrt=(0, 1), has_aux=True))
            return lambda *args: flat(f(*args))

        by_engines(monkeypatch, build, *args)

    def test_a_condition_of_each_lane(self, lanes, dtype, kind, monkeypatch):
        shape = (40,) if lanes is None else (40, lanes)
        x = np.random.default_rng(2).normal(size=shape).astype(dtype)
        args = np.asarray(0.7, dtype), x, flags(kind, shape), flags("seldom", shape)

        def build():
            def loss(a, x, flag, inner):
                out = formula(rs.where)(a, x, flag, inner)
                return rs.sum(out.seen) + rs.sum(out.last.h), (out.h, out.seen)

            f = rs.compile(rs.value_and_grad(loss, wrt=(0, 1), has_aux=True))
            return lambda *args: flat(f(*args))

        by_engines(monkeypatch, build, *args)


def flat(value):
    if isinstance(value, (tuple, list)):
        return [leaf for v in value for leaf in flat(v)]
    return [value]


def test_what_is_jumped_over_may_be_no_number(monkeypatch):
    """Sides that would divide by zero or take roots of negative numbers are not taken, and nothing of them is seen."""

    def build():
        def step(x, kind, h):
            root = heavy(rs.sqrt(x - 100.0) + rs.log(x - 100.0))
            h = rs.where(kind == 0, 0.5 * h + x, rs.where(kind == 1, root, heavy(h)))
            return dict(h=h)

        f = rs.compile(lambda x, kind: rs.loop(step, over=(x, kind), init=dict(h=0.0)).h)
        return lambda *args: [f(*args)]

    kind = np.array([0, 0, 2, 0, 2, 0, 0, 2] * 5, dtype="int32")
    (found,) = by_engines(monkeypatch, build, np.linspace(0.0, 1.0, 40), kind)
    assert np.isfinite(found).all()
    kind[20] = 1
    (found,) = by_engines(monkeypatch, build, np.linspace(0.0, 1.0, 40), kind)
    assert np.isnan(found[20]) and np.isfinite(found[:20]).all()


def test_hessian_of_counts_beside_differences(monkeypatch):
    """Of the two ways of a negative binomial's density, the one for large numbers is jumped over until one is large."""
    random = np.random.default_rng(0)
    x, y = random.normal(size=60), random.negative_binomial(5, 0.4, size=60).astype("float64")

    def nll(theta, x, y):
        size = rs.exp(theta[2])

        def day(x, y, eta):
            eta = theta[0] * eta + theta[1] * x
            return dict(eta=eta, ll=rs.stats.nbinom.logpmf(y, size, size / (size + rs.exp(eta))))

        return -rs.sum(rs.loop(day, over=(x, y), init=dict(eta=1.0)).ll)

    theta = np.array([0.3, 0.2, 1.5])
    for large in (False, True):
        y = np.where(np.arange(60) == 30, 5000.0, y) if large else y

        def build():
            f = rs.compile(rs.hessian(nll))
            return lambda *args: [f(*args)]

        (found,) = by_engines(monkeypatch, build, theta, x, y)
        gradient, step = rs.compile(rs.grad(nll)), 1e-5
        columns = [(gradient(theta + step * e, x, y) - gradient(theta - step * e, x, y)) / (2 * step) for e in np.eye(3)]
        np.testing.assert_allclose(found, columns, rtol=2e-5, atol=1e-4)


def newton(e, h, bound):
    def step(s):
        new = rs.maximum(s - (s**3 + 1.3 * s - e - h) / (3 * s * s + 1.3), 0.0)
        return new, rs.until(abs(new - s) < 1e-12)

    return rs.loop(step, init=abs(e) + 0.1, n_steps=bound).last


def by_value(e, h, bound):
    n = rs.cast(abs(e) * 5, "int64") + 1
    rows, _ = rs.scan(lambda k, t: [k + 1, 0.5 * t + h / k], outputs_info=[e * 0 + 1, e], n_steps=n)
    return rows[1][-1]


def none_at_all(e, h, bound):
    """It may have no steps, where the branch is not taken: its last row is asked for none the less."""
    rows, _ = rs.scan(lambda t: 0.5 * t + h, outputs_info=e, n_steps=rs.cast(rs.maximum(e, 0.0) * 5, "int64"))
    return rows[-1]


@pytest.mark.parametrize("branch", [newton, by_value, none_at_all])
@pytest.mark.parametrize("bound", [12, None])
@pytest.mark.parametrize("nested", [False, True])
def test_loops_in_branches(branch, bound, nested, monkeypatch):
    strain = np.linspace(-1.0, 1.0, 60)

    def build():
        def misfit(p, strain):
            def step(e, h):
                taken = e > 0.21
                found = rs.ifelse(h > 0.1, branch(e, p * h, bound), h) if nested else branch(e, p * h, bound)
                return dict(h=0.5 * h + 0.2 * rs.ifelse(taken, found, 0.3 * e))

            return rs.sum(rs.loop(step, over=strain, init=dict(h=0.05)).h ** 2)

        f = rs.compile(rs.value_and_grad(misfit))
        return lambda *args: flat(f(*args))

    _, slope = by_engines(monkeypatch, build, 0.7, strain)
    near = [build()(0.7 + d, strain)[0] for d in (1e-6, -1e-6)]
    np.testing.assert_allclose(slope, (near[0] - near[1]) / 2e-6, rtol=1e-5, atol=1e-8)


def test_a_branch_that_is_taken_reports_its_loop(monkeypatch):
    """A loop without steps has no last row: an error where the branch is taken, and only there."""
    for engine in ENGINES:
        monkeypatch.setenv("RSCAN_ENGINE", engine)

        def step(e, k, h):
            rows, _ = rs.scan(lambda t: 0.5 * t, outputs_info=e, n_steps=k)
            return dict(h=rs.ifelse(k != 1, rows[-1], h))

        f = rs.compile(lambda x, k: rs.loop(step, over=(x, k), init=dict(h=0.0)).h)
        x, k = np.ones(8), np.array([1, 3, 2, 1, 4, 1, 2, 2])
        for _ in range(3):
            np.testing.assert_allclose(f(x, k), [0, 0.125, 0.25, 0.25, 0.0625, 0.0625, 0.25, 0.25])
        with pytest.raises(rs.errors.RscanIndexError, match="E0202"):
            f(x, np.where(np.arange(8) == 5, 0, k))


def test_loops_in_branches_are_kernels():
    strain = np.linspace(-1.0, 1.0, 60)

    def misfit(p, strain):
        step = lambda e, h: dict(h=0.5 * h + 0.2 * rs.ifelse(e > 0.2, newton(e, p * h, 12), 0.3 * e))
        return rs.sum(rs.loop(step, over=strain, init=dict(h=0.05)).h ** 2)

    f = rs.compile(rs.value_and_grad(misfit))
    f(0.7, strain)
    engines = [loop.variants[-1].engine for loop in f.explain(0.7, strain).loops if loop.depth == 0]
    assert engines and all(engine in ("jit", "vm") for engine in engines), engines
