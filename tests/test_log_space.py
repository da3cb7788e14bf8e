"""Sums of exponentials written by hand become ops: in loops, with gradients, for every spelling; values and slopes stay what they are."""

import numpy as np
import pytest

import rscan as rs

INF = np.inf


def where_finite(m):
    return rs.where(rs.isfinite(m), m, 0.0)


def shifted(x, m, axis=0):
    """`log Σ exp(x − m) + m` for an m without the axis."""
    return rs.log(rs.sum(rs.exp(x - rs.expand_dims(m, axis)), axis=axis)) + m


def kept(x, guard=lambda m: m, back=lambda m: m):
    m = guard(rs.max(x, axis=0, keepdims=True))
    return (rs.log(rs.sum(rs.exp(x - m), axis=0, keepdims=True)) + back(m))[0]


def with_the_first(x):
    m = rs.max(x, axis=0)
    return m + rs.log(rs.exp(x - m[None, :]).sum(axis=0))


def turned(x):
    m = rs.max(x, axis=0)
    return rs.log(rs.sum(rs.exp(x.T - m[:, None]), axis=1)) + m


def guarded_inside(x):
    m = rs.max(x, axis=0)
    return rs.log(rs.sum(rs.exp(x - where_finite(m)), axis=0)) + m


def guarded_by_infinity(x):
    m = rs.max(x, axis=0)
    return rs.log(rs.sum(rs.exp(x - rs.where(rs.isinf(m), 0.0, m)), axis=0)) + m


def reshaped(x):
    m = rs.max(x, axis=0)
    return rs.log(rs.sum(rs.exp(x - m.reshape((1, -1))), axis=0)) + m


def of_a_mean(x):
    return rs.log(rs.mean(rs.exp(x), axis=0)) + float(np.log(3.0))


def of_products(x):
    half = rs.exp(0.5 * x)
    return rs.log(rs.sum(half * half, axis=0))


#: Spellings of `logsumexp(x, axis=0)`, x a matrix of three rows.
SUMS = {
    "without a maximum": lambda x: rs.log(rs.sum(rs.exp(x), axis=0)),
    "maximum without the axis": lambda x: shifted(x, rs.max(x, axis=0)),
    "maximum that is constant": lambda x: shifted(x, rs.stop_gradient(rs.max(x, axis=0))),
    "maximum with the axis": kept,
    "maximum with the axis, constant": lambda x: kept(x, rs.stop_gradient),
    "maximum of all": lambda x: rs.log(rs.sum(rs.exp(x - rs.max(x)), axis=0)) + rs.max(x),
    "maximum of maxima": lambda x: rs.log(rs.sum(rs.exp(x - rs.max(rs.max(x, axis=0))), axis=0)) + rs.max(rs.max(x, axis=0)),
    "a number": lambda x: rs.log(rs.sum(rs.exp(x - 0.5), axis=0)) + 0.5,
    "maximum first": with_the_first,
    "transposed": turned,
    "reshaped": reshaped,
    "guarded": lambda x: shifted(x, where_finite(rs.max(x, axis=0))),
    "guarded with the axis": lambda x: kept(x, where_finite),
    "guarded inside": guarded_inside,
    "guarded by infinity": guarded_by_infinity,
    "of a mean": of_a_mean,
    "of products": of_products,
    "two sums of two": lambda x: rs.logsumexp(rs.log(rs.sum(rs.exp(rs.stack([x[0], x[1], x[2]])), axis=0))[None], axis=0),
}


def divided(e):
    return e / e.sum(axis=0)


#: Spellings of `softmax(x, axis=0)`.
SOFTMAXES = {
    "without a maximum": lambda x: divided(rs.exp(x)),
    "less the maximum": lambda x: divided(rs.exp(x - rs.max(x, axis=0))),
    "less a constant": lambda x: divided(rs.exp(x - rs.stop_gradient(rs.max(x, axis=0, keepdims=True)))),
    "less the maximum of all": lambda x: divided(rs.exp(x - rs.max(x))),
    "summed with the axis": lambda x: rs.exp(x) / rs.sum(rs.exp(x), axis=0, keepdims=True),
    "times the reciprocal": lambda x: rs.exp(x) * (1 / rs.sum(rs.exp(x), axis=0)),
}

#: Spellings of `log_softmax(x, axis=0)`.
LOGS = {
    "less the logarithm": lambda x: (lambda d: d - rs.log(rs.sum(rs.exp(d), axis=0)))(x - rs.max(x, axis=0)),
    "of the quotient": lambda x: rs.log(divided(rs.exp(x - rs.max(x, axis=0)))),
    "of elements of the quotient": lambda x: rs.stack([rs.log(divided(rs.exp(x - rs.max(x, axis=0)))[k]) for k in range(3)]),
}

CASES = [(op, name, f) for op, table in (("logsumexp", SUMS), ("softmax", SOFTMAXES), ("log_softmax", LOGS)) for name, f in table.items()]
LAWS = {
    "logsumexp": lambda x: rs.logsumexp(x, axis=0),
    "softmax": lambda x: rs.softmax(x, axis=0),
    "log_softmax": lambda x: rs.log_softmax(x, axis=0),
}
each = pytest.mark.parametrize(("op", "name", "formula"), CASES, ids=[f"{op}: {name}" for op, name, _ in CASES])
W = np.array([[0.3, -1.2, 0.7, 0.1], [1.5, 0.2, -0.4, 0.9], [-0.6, 0.8, 1.1, -2.0]])


def looped(formula, xs, w, last=None):
    """A state of four that each step sends through the formula."""

    def step(x, h):
        y = formula(x[:, None] + w * rs.tanh(h))
        return (y if y.ndim == 1 else rs.sum(y * w, axis=0)) * 0.5 + 0.1

    hs, _ = rs.scan(step, sequences=xs, outputs_info=rs.constant(np.linspace(-1, 1, 4)))
    return rs.sum(hs[-1] * rs.constant(np.array([1.0, -0.5, 2.0, 0.25])))


def functions(formula, **settings):
    xs, w = rs.dmatrix("xs"), rs.dmatrix("w")
    with rs.config.override(**settings):
        cost = looped(formula, xs, w)
        return rs.function([xs, w], [cost, *rs.grad(cost, [xs, w])])


def count(text, op):
    return sum(line.split(" = ")[-1].startswith((f"{op}(", f"{op}[")) for line in text.splitlines() if " = " in line)


@each
def test_the_op_appears_in_the_step_and_in_its_gradient(op, name, formula):
    # Of stacks the op becomes a function of what was stacked.
    text = functions(formula, excluding="stacks").text(optimised=True)
    assert count(text, op) >= 1
    assert count(text, "log") == (name == "of a mean")  # of the number of rows
    assert "kind=max" not in text and "extreme_mask" not in text
    x = rs.dmatrix("x")
    assert count(rs.function([x], formula(x), excluding=["stabilise", "stacks"]).text(optimised=True), op) == (
        op == "logsumexp" and name == "two sums of two"
    )


@each
def test_values_and_slopes_in_loops_are_those_of_the_formula(op, name, formula):
    args = np.random.default_rng(4).normal(size=(6, 3)), W
    found, as_written, law = (f(*args) for f in (functions(formula), functions(formula, excluding="stabilise"), functions(LAWS[op])))
    for got, plain, right in zip(found, as_written, law, strict=True):
        np.testing.assert_allclose(got, plain, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(got, right, rtol=1e-9, atol=1e-12)
    f, step = functions(formula), 1e-6
    for which in (0, 1):
        for at in ((0, 0), (2, 1)):
            ends = []
            for sign in (step, -step):
                moved = [a.copy() for a in args]
                moved[which][at] += sign
                ends.append(float(f(*moved)[0]))
            np.testing.assert_allclose(found[1 + which][at], (ends[0] - ends[1]) / (2 * step), rtol=1e-5, atol=1e-8)


def less_maximum(x):
    m = rs.max(x, axis=0)
    return m, rs.log(rs.sum(rs.exp(x - m), axis=0))


#: Other terms stand between a sum and what was taken out of it: formula, and how often `a` is added to `logsumexp(x, axis=0)`.
BETWEEN = {
    "with the maximum": (lambda m, s, a: a + m + s, 1),
    "with the sum": (lambda m, s, a: (a + s) + m, 1),
    "taken from the maximum": (lambda m, s, a: (m - a) + s, -1),
    "taken from the sum": (lambda m, s, a: (s - a) + m, -1),
    "several": (lambda m, s, a: s + (a + (m + a)), 2),
    "on both sides": (lambda m, s, a: (s + a) + (m - a * 3.0), -2),
}


@pytest.mark.parametrize("name", BETWEEN)
def test_other_terms_between_a_sum_and_its_maximum(name):
    formula, times = BETWEEN[name]
    x, a = rs.dmatrix("x"), rs.dvector("a")
    found = formula(*less_maximum(x), a)
    law = rs.logsumexp(x, axis=0) + times * a
    f, g = (rs.function([x, a], [y, *rs.grad(rs.sum(rs.sin(y)), [x, a])]) for y in (found, law))
    args = np.random.default_rng(5).normal(size=(3, 4)) * 5, np.array([1.0, -20.0, 0.5, 3.0])
    for got, right in zip(f(*args), g(*args), strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-12, atol=1e-12)
    if name != "on both sides":
        text = f.text(optimised=True)
        assert count(text, "logsumexp") == 1 and "kind=max" not in text and "extreme_mask" not in text


@each
def test_infinities_and_nan(op, name, formula):
    x, weights = rs.dmatrix("x"), np.array([1.0, 0.5, -2.0, 3.0, 1.0])
    columns = np.array([[-INF, 0.5, -1.0], [1.0, -INF, -INF], [0.3, 0.2, 0.1], [-INF, -INF, -INF], [np.nan, 1.0, 2.0]]).T

    def run(formula, **settings):
        with rs.config.override(**settings):
            y = formula(x)
            slope = rs.grad(rs.sum(rs.where(rs.isfinite(y), y, 0.0) * rs.constant(weights)), x)
            return [np.asarray(v) for v in rs.function([x], [y, slope])(columns)]

    if "mean" in name or "all" in name or "maxima" in name:
        columns = columns[:, :-1]
        weights = weights[:-1]
    (y, slope), (plain, plain_slope), (right, right_slope) = run(formula), run(formula, excluding="stabilise"), run(LAWS[op])
    np.testing.assert_allclose(y, right, rtol=1e-12)
    np.testing.assert_allclose(slope[:, :3], right_slope[:, :3], rtol=1e-12)
    # A formula that is a number, or an infinity, keeps it; where it is NaN, the op may not be.
    told = ~np.isnan(plain)
    np.testing.assert_allclose(y[told], plain[told], rtol=1e-12)
    finite = ~np.isnan(plain_slope)
    np.testing.assert_allclose(slope[finite], plain_slope[finite], rtol=1e-9, atol=1e-15)


def test_large_numbers_neither_overflow_nor_vanish():
    x = rs.dmatrix("x")
    far = np.array([[1000.0, -1000.0], [999.0, -999.0], [0.0, -5000.0]])
    y = rs.log(rs.sum(rs.exp(x), axis=0))
    p = divided(rs.exp(x))
    value, slope, share = rs.function([x], [y, rs.grad(rs.sum(y), x), p])(far)
    top = np.log1p(np.exp(-1.0))
    np.testing.assert_allclose(value, [1000 + top, -999 + top], rtol=1e-15)
    expected = np.array([[1, np.exp(-1.0)], [np.exp(-1.0), 1], [0, 0]]) / (1 + np.exp(-1.0))
    np.testing.assert_allclose(slope, expected, rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(share, expected, rtol=1e-12, atol=1e-300)


#: Formulas that look alike and are something else: their ops stay.
OTHERS = {
    "another maximum": lambda x, w: shifted(x, rs.max(w, axis=0)),
    "another axis": lambda x, w: rs.log(rs.sum(rs.exp(x - rs.max(x, axis=1, keepdims=True)), axis=0)) + rs.sum(rs.max(x, axis=1)),
    "two maxima": lambda x, w: rs.log(rs.sum(rs.exp(x - rs.max(x, axis=0)), axis=0)) + rs.min(x, axis=0),
    "constant on one side": lambda x, w: rs.log(rs.sum(rs.exp(x - rs.stop_gradient(rs.max(x, axis=0))), axis=0)) + rs.max(x, axis=0),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_something_else_stays(name):
    x, w = rs.dmatrix("x"), rs.dmatrix("w")
    y = OTHERS[name](x, w)
    outputs = [y, rs.grad(rs.sum(y * y), x)]
    f = rs.function([x, w], outputs, on_unused_input="ignore")
    assert "kind=max" in f.text(optimised=True)
    args = np.random.default_rng(1).normal(size=(2, 3, 3))
    with rs.config.override(excluding="stabilise"):
        y = OTHERS[name](x, w)
        plain = rs.function([x, w], [y, rs.grad(rs.sum(y * y), x)], on_unused_input="ignore")
    for got, want in zip(f(*args), plain(*args), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10)


def test_a_value_that_gradients_are_asked_by_stays():
    x = rs.dvector("x")
    m = rs.max(x)
    e = rs.exp(x - m)
    p = e / rs.sum(e)
    cost = rs.sum(p * p)
    by_e, by_m, by_x = rs.grad(cost, [e, m, x])
    at = np.array([0.1, -0.7, 1.3])
    found = rs.function([x], [by_e, by_m, by_x])(at)
    numbers = np.exp(at - 1.3)
    s = numbers.sum()
    ct = 2 * numbers / s
    np.testing.assert_allclose(found[0], ct / s - (ct * numbers).sum() / s**2, rtol=1e-12)
    np.testing.assert_allclose(found[1], 0, atol=1e-15)
    np.testing.assert_allclose(found[2], (lambda p: 2 * p * (p - (p * p).sum()))(numbers / s), rtol=1e-12)


def forward_algorithm(scores, transitions):
    """The forward algorithm of a hidden Markov model, written out."""

    def step(b, a):
        x = a[:, None] + transitions
        m = rs.max(x, axis=0)
        return rs.log(rs.sum(rs.exp(x - m[None, :]), axis=0)) + m + b

    alpha, _ = rs.scan(step, sequences=scores[1:], outputs_info=scores[0])
    m = rs.max(alpha[-1])
    return m + rs.log(rs.sum(rs.exp(alpha[-1] - m)))


def test_the_forward_algorithm_written_out_is_a_product_in_log_space():
    scores, transitions = rs.dmatrix("scores"), rs.dmatrix("transitions")
    cost = forward_algorithm(scores, transitions)
    f = rs.function([scores, transitions], [cost, *rs.grad(cost, [scores, transitions])])
    text = f.text(optimised=True)
    assert count(text, "log_matmul") == 1 and count(text, "log_matmul_left") == 1 and "kind=max" not in text
    rng = np.random.default_rng(0)
    args = rng.normal(size=(30, 5)), rng.normal(size=(5, 5))
    with rs.config.override(passes="none", excluding="stabilise"):
        cost = forward_algorithm(scores, transitions)
        plain = rs.function([scores, transitions], [cost, *rs.grad(cost, [scores, transitions])])
    for got, want in zip(f(*args), plain(*args), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-13)


def test_sums_of_smaller_terms_are_added_as_they_are():
    x, c, d = rs.dmatrix("x"), rs.dvector("c"), rs.dvector("d")
    f = rs.function([x, c, d], rs.logsumexp(x + (c[:, None] + d[:, None]), axis=1))
    got = f([[0.0, 1.0, 2.0]] * 2, [1e16, 1.0], [-1e16, 2.0])
    np.testing.assert_allclose(got - np.log(1 + np.e + np.e**2), [0.0, 3.0], atol=1e-12)


@pytest.mark.parametrize("shapes", [[(4,), (3, 4)], [(1, 4), (3, 4)], [(3, 4), (4,)], [(3, 1), (4,)], [(3, 4), (3, 4)]])
def test_the_maximum_of_a_sum_of_which_a_term_is_the_same_along_the_axis_is_put_back(shapes):
    """Other rules take such a term out of the sum of exponentials before the maximum is looked for."""

    def by_hand(x):
        m = rs.max(x, axis=0)
        return m + rs.log(rs.sum(rs.exp(x - m), axis=0))

    inputs = [rs.tensor("float64", [None if n > 1 else 1 for n in shape]) for shape in shapes]
    found, law = (f(inputs[0] + inputs[1]) for f in (by_hand, lambda x: rs.logsumexp(x, axis=0)))
    f, g = (rs.function(inputs, [y, *rs.grad(rs.sum(rs.sin(y)), inputs)]) for y in (found, law))
    random = np.random.default_rng(8)
    args = [random.normal(size=shape) * 4 for shape in shapes]
    for got, right in zip(f(*args), g(*args), strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-12, atol=1e-12)
    assert "kind=max" not in f.text(optimised=True)
    # What is infinite or none is so in every spelling.
    for bad in (-INF, np.nan):
        args[0][..., 0] = bad
        np.testing.assert_array_equal(f(*args)[0], g(*args)[0])


@pytest.mark.parametrize("varies", [False, True])
def test_weights_in_float32_add_up_to_one_at_every_step(varies):
    r = np.random.default_rng(0)
    n = 2000
    x0, a = r.normal(size=4).astype("f4"), r.normal(size=(n, 4, 4) if varies else (4, 4)).astype("f4")
    e = (r.normal(size=(n, 4)) - 13).astype("f4")

    def likelihood(e):
        def step(e, a, x):
            return rs.logsumexp(x[:, None] + a, axis=0) + e

        if varies:
            return rs.logsumexp(rs.loop(step, over=[e, rs.constant(a)], init=x0).last)
        return rs.logsumexp(rs.loop(lambda e, x: step(e, a, x), over=e, init=x0).last)

    slope = np.asarray(rs.compile(rs.grad(likelihood))(e))
    assert slope.dtype == np.float32
    np.testing.assert_allclose(slope.sum(axis=1), 1.0, rtol=0, atol=1e-4)
