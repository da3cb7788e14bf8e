"""What a step decides, its gradient takes: comparisons, signs and roundings of values that it computes again, and rounds otherwise."""

import re

import numpy as np
import pytest

import rscan as rs

T, D = 40, 5


def loop(decide, **options):
    """Inputs, a cost with all its slopes, and arguments, of a loop whose step decides something of what is contracted."""
    w, xs, h0 = rs.dmatrix("w"), rs.dmatrix("xs"), rs.dvector("h0")

    def step(x, h, w):
        y = rs.tanh(h @ w) * x + h * 0.3
        z = y * 1.7 + x * y
        top = rs.max(z)
        return {"h": rs.tanh(z) * 0.7, "top": top, "loss": decide(x, h, z, top)}

    out = rs.loop(step, over={"x": xs}, init={"h": h0}, given={"w": w}, **options)
    cost = rs.sum(out.loss) + 0.25 * rs.sum(out.top)
    rng = np.random.default_rng(3)
    args = [rng.standard_normal((D, D)) * 0.4, rng.standard_normal((T, D)), rng.standard_normal(D)]
    return [w, xs, h0], [cost, *rs.grad(cost, [w, xs, h0])], args


def close(found, expected, message=""):
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-8 * np.abs(y).max(), err_msg=message)


def plainly(inputs, outputs, args):
    with rs.config.override(passes="none"):
        return rs.function(inputs, outputs)(*args)


def place(x, h, z, top):
    near = rs.clip(rs.floor(z[0] * 3.0 + x[1] * 2.0), 0.0, D - 1.0)
    return z[rs.argmax(z)] * x[rs.cast(near, "int64")]


DECISIONS = {
    "equal": lambda x, h, z, top: rs.sum(rs.where(rs.eq(z, top), z * z, 0.0)),
    "unequal": lambda x, h, z, top: rs.sum(rs.where(rs.ne(z, top), z * z, 0.0)),
    "not less": lambda x, h, z, top: rs.sum(rs.where(z >= top, z * z, 0.0)),
    "difference": lambda x, h, z, top: rs.sum(rs.where(rs.eq(z - top, 0.0), z * z, 0.0)),
    "clipped": lambda x, h, z, top: rs.sum(rs.clip(z - top, -5.0, 0.0) * x),
    "positive part": lambda x, h, z, top: rs.sum(rs.maximum(z - top, 0.0) * x + rs.maximum(z, top) * h),
    "size": lambda x, h, z, top: rs.sum(abs(z - top) * x),
    "rounded": lambda x, h, z, top: rs.sum((z - rs.floor(z)) ** 2 * rs.sign(top)),
    "of two": lambda x, h, z, top: rs.sum(rs.where(rs.logical_and(z >= top, z > 0.0), z * z, z)),
    "branch": lambda x, h, z, top: rs.ifelse(rs.sum(z) * 1.5 + top * 0.5 > 0.0, rs.sum(z * z), rs.sum(z)),
    "place": place,
    "remainder": lambda x, h, z, top: rs.sum(((z - top) % 1.0) ** 2 * x),
    "remainder by a slope": lambda x, h, z, top: rs.sum(((z - top) % (1.5 + h * h)) * x),
    "truncated remainder": lambda x, h, z, top: rs.sum(rs.fmod(z - top + 1.0, 1.0) ** 2 * x),
    "floored": lambda x, h, z, top: rs.sum(((z - top) // 0.25) * x),
    "angle": lambda x, h, z, top: rs.sum(rs.atan2(z - top, -1.0 - x * x)),
    "side": lambda x, h, z, top: rs.sum(rs.copysign(x * h, z - top)),
}


@pytest.mark.parametrize("decide", DECISIONS.values(), ids=DECISIONS)
@pytest.mark.parametrize("options", [{}, {"truncate": 7}, {"reverse": True}, {"window": 11}], ids=str)
def test_slopes_are_those_of_the_step_that_ran(decide, options):
    inputs, outputs, args = loop(decide, **options)
    close(rs.function(inputs, outputs)(*args), plainly(inputs, outputs, args))


@pytest.mark.parametrize("decide", DECISIONS.values(), ids=DECISIONS)
def test_without_a_pass_they_are_the_same(decide):
    inputs, outputs, args = loop(decide)
    found = rs.function(inputs, outputs)(*args)
    for name in ["scan_residuals", "scan_merge", "cse", "fma", "scan_hoist_seq", "masks"]:
        close(rs.function(inputs, outputs, excluding=[name])(*args), found, name)


def test_slopes_of_a_chosen_extreme_match_differences():
    inputs, outputs, args = loop(DECISIONS["equal"])
    f, way = rs.function(inputs, outputs), np.random.default_rng(5).standard_normal(D)
    up, down = (f(*args[:2], args[2] + h * way)[0] for h in (1e-6, -1e-6))
    assert abs((up - down) / 2e-6 - f(*args)[3] @ way) < 1e-6


@pytest.mark.parametrize("decide", ["not less", "remainder", "remainder by a slope", "floored"])
def test_second_derivatives_take_them_too(decide):
    inputs, (_, _, _, slope), args = loop(DECISIONS[decide])
    outputs = rs.grad(rs.sum(slope * rs.sin(inputs[2])), inputs)
    close(rs.function(inputs, outputs)(*args), plainly(inputs, outputs, args))


def test_nested_loops_and_steps_that_print_take_them(capsys):
    xs, h0 = rs.dmatrix("xs"), rs.dvector("h0")

    def step(x, h):
        z = rs.Print("z")(h * x + x * 1.7)

        def inner(u):
            v = u * z + z * 1.3
            top = rs.max(v)
            return {"top": top, "kept": rs.sum(rs.where(rs.eq(v, top), v * v, 0.0))}

        out = rs.loop(inner, over={"u": xs})
        return {"h": rs.tanh(z), "loss": rs.sum(out.kept) + rs.sum(out.top) + rs.sum(rs.where(z >= rs.max(z), z, 0.0))}

    out = rs.loop(step, over={"x": xs}, init={"h": h0})
    cost, rng = rs.sum(out.loss), np.random.default_rng(4)
    args = [rng.standard_normal((6, D)), rng.standard_normal(D)]
    outputs = [cost, *rs.grad(cost, [xs, h0])]
    rs.function([xs, h0], cost)(*args)
    once = capsys.readouterr().out
    found = rs.function([xs, h0], outputs)(*args)
    assert capsys.readouterr().out == once != ""
    close(found, plainly([xs, h0], outputs, args))


def inner_loop(start, update, us):
    def inner(u, g):
        return {"g": update(u, g), "s": rs.sum(update(u, g) * u)}

    out = rs.loop(inner, over={"u": us}, init={"g": start})
    return rs.sum(out.s) + rs.sum(out.g[-1])


def twice(u, z, top):
    """A loop in the loop in the loop."""
    return inner_loop(z, lambda v, g: rs.where(rs.eq(g, top), v * g, 0.1) + g, rs.stack([u, u * 0.5]))


def handed_on(z, top, us):
    """What is compared comes to the comparison by way of two states."""

    def inner(u, a, b):
        return {"a": z, "b": a, "s": rs.sum(rs.where(rs.eq(b, top), b * u, 0.0))}

    return rs.sum(rs.loop(inner, over={"u": us}, init={"a": us[0], "b": us[1]}).s)


NESTED = {
    "handed on": handed_on,
    "a start": lambda z, top, us: inner_loop(z, lambda u, g: rs.where(rs.eq(g, top), g * u, 0.0) * 0.5 + g, us),
    "captured": lambda z, top, us: inner_loop(z * 0.0, lambda u, g: rs.tanh(g * 0.5 + rs.where(rs.eq(z, top), z * u, 0.0)), us),
    "both scaled": lambda z, top, us: inner_loop(us[0], lambda u, g: rs.tanh(g * u + rs.where(z * u >= top * u, z * g, 0.2)), us),
    "a bend": lambda z, top, us: inner_loop(us[0], lambda u, g: rs.tanh(g * u + rs.maximum(z, top) * u), us),
    "rows": lambda z, top, us: inner_loop(us[0], lambda u, g: rs.where(rs.eq(u, top), u * g, g * 0.7), rs.stack([z, z * 0.5, us[1]])),
    "packed": lambda z, top, us: inner_loop(
        rs.concatenate([z, rs.reshape(top, (1,))]),
        lambda u, g: rs.where(rs.eq(g, g[-1]), g * 0.9, g * 0.8),
        rs.concatenate([us, us[:, :1]], axis=1),
    ),
    "deeper": lambda z, top, us: inner_loop(us[0], lambda u, g: rs.tanh(g + twice(u, z, top) * 0.01), us),
}


@pytest.mark.parametrize("within", NESTED.values(), ids=NESTED)
def test_loops_inside_steps_decide_on_what_the_steps_saw(within):
    us = rs.dmatrix("us")
    inputs, outputs, args = loop(lambda x, h, z, top: within(z, top, us))
    inputs.append(us)
    outputs.append(rs.grad(outputs[0], us))
    args.append(np.random.default_rng(6).standard_normal((3, D)))
    close(rs.function(inputs, outputs)(*args), plainly(inputs, outputs, args))


def rows_of_decisions(f):
    return len(re.findall(r"state .*: (bool|i64).* cotangent", f.text(optimised=True)))


def cost_of(step):
    xs, h0 = rs.dmatrix("xs"), rs.dvector("h0")
    out = rs.loop(step, over={"x": xs}, init={"h": h0})
    return rs.function([xs, h0], rs.grad(rs.sum(out.h), [xs, h0]))


@pytest.mark.parametrize(
    ("step", "rows"),
    [
        (lambda x, h: {"h": rs.where(h * 0.9 + x > 1.0, 0.0, h * 0.9 + x)}, 1),
        (lambda x, h: {"h": rs.maximum(h * 0.9 + x, 0.0)}, 2),  # which is greater, and whether they tie
        (lambda x, h: {"h": rs.maximum(h + x, 0.0)}, 0),
        (lambda x, h: {"h": rs.where(x > 1.0, 0.0, h * 0.9 + x)}, 0),
        (lambda x, h: {"h": rs.max(h * 0.9 + x) + h}, 1),
        (lambda x, h: {"h": rs.max(h + x) + rs.logsumexp(h * 0.9 + x) + h}, 0),
        (lambda x, h: {"h": rs.tanh(h * 0.9 + x) * rs.sigmoid(x)}, 0),
    ],
)
def test_rows_are_kept_where_another_rounding_could_decide_otherwise(step, rows):
    assert rows_of_decisions(cost_of(step)) == rows


def test_a_loop_that_stops_takes_them_too():
    def step(v, h):
        z = h * 0.9 + v
        h = rs.where(z > 1.0, z * 0.5, z * 1.1)
        return h, rs.until(h * 1.5 + v > 2.0)

    def value(xs, h):
        total = 0.0
        for v in xs:
            z = h * 0.9 + v
            h = z * 0.5 if z > 1 else z * 1.1
            total += h * h
            if h * 1.5 + v > 2:
                break
        return total

    x, h0 = rs.dvector("x"), rs.dscalar("h0")
    rows, _ = rs.scan(step, sequences=x, outputs_info=h0)
    cost = (rows**2).sum()
    xs, eps = np.array([0.5, 0.7, -0.3, 0.4, 1.9, 0.2, 5.0]), 1e-6 * np.eye(7)
    got, slopes = rs.function([x, h0], [cost, rs.grad(cost, x)])(xs, 0.8)
    assert got == pytest.approx(value(xs, 0.8)) and slopes[-1] == 0
    np.testing.assert_allclose(slopes, [(value(xs + e, 0.8) - value(xs - e, 0.8)) / 2e-6 for e in eps], rtol=1e-6, atol=1e-8)
