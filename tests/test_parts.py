"""Parts of what a step computed, or of a sequence's row, stay where they are: nothing is copied, and nothing is written over too early."""

import numpy as np
import pytest

import rscan as rs

N, T = 16, 7
rng = np.random.default_rng(11)
WIDE, XS, H0 = 0.4 * rng.standard_normal((N, 3 * N)), rng.standard_normal((T, 2 * N)), rng.standard_normal(N)


def both(step, init, **options):
    """Outputs of the loop, compiled and by a walk in Python over what the step gives for one row."""
    w, xs = rs.dmatrix("w"), rs.dmatrix("xs")
    starts = {name: rs.dvector(name) for name in init}
    out = rs.loop(lambda x, **rows: step(rs, x, rows, w), over={"x": xs}, init=starts, **options)
    f = rs.function([w, xs, *starts.values()], [out[name] for name in init])
    found = f(WIDE, XS, *init.values())

    rows, kept = dict(init), {name: [] for name in init}
    for x in XS:
        given = step(np, x, rows, WIDE)
        rows = {name: np.asarray(given[name]) for name in init}
        for name, row in rows.items():
            kept[name].append(row)
    return f, found, [np.array(kept[name]) for name in init]


def a_part(m, x, rows, w):
    """The state is a part of a product, which others read, too."""
    z = rows["h"] @ w
    return {"h": m.tanh(z[N : 2 * N]) + x[N:] * z[:N]}


def only_a_part(m, x, rows, w):
    return {"h": (rows["h"] @ w + 0.1)[N : 2 * N]}


def the_first_part(m, x, rows, w):
    return {"h": (m.tanh(rows["h"]) @ w)[:N]}


def parts_of_parts(m, x, rows, w):
    z = (rows["h"] @ w)[N:]
    return {"h": m.tanh(z[1 : N + 1]) + z[N:][::-1] + x[2:][:N]}


def two_states(m, x, rows, w):
    z = rows["h"] @ w
    return {"h": m.tanh(z[:N] + x[:N]), "g": z[N : 2 * N] * 0.5 + rows["g"][0]}


def the_same_part_twice(m, x, rows, w):
    z = m.tanh(rows["h"]) @ w
    return {"h": z[N : 2 * N], "g": z[N : 2 * N]}


def a_part_of_a_row(m, x, rows, w):
    """The part lies in the row of a state that the step replaces."""
    return {"h": m.tanh(rows["h"] @ w)[:N] * rows["g"][0], "g": rows["h"][::-1] * x[:N] + rows["g"][1]}


def wanted_late(m, x, rows, w):
    """The part is read after other temporaries were made, which must not take its place."""
    first = (rows["h"] @ w)[2 * N :]
    second = (m.tanh(rows["h"] * 2.0) @ w)[N : 2 * N]
    third = (m.tanh(rows["h"] * 3.0) @ w)[:N]
    return {"h": m.tanh(first * third - second) + first}


STEPS = [a_part, only_a_part, the_first_part, parts_of_parts, two_states, the_same_part_twice, a_part_of_a_row, wanted_late]


@pytest.mark.parametrize("step", STEPS, ids=lambda s: s.__name__)
@pytest.mark.usefixtures("chosen_engine")
def test_values_are_those_of_a_walk(step):
    init = {"h": H0, "g": H0 * 0.5} if "g" in step(np, XS[0], {"h": H0, "g": H0}, WIDE) else {"h": H0}
    f, found, expected = both(step, init)
    assert f.explain().loops[0].variants[0].engine.startswith("steps of"), str(f.explain())
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("step", STEPS, ids=lambda s: s.__name__)
def test_slopes_do_not_depend_on_passes(step):
    names = ["h", "g"] if "g" in step(np, XS[0], {"h": H0, "g": H0}, WIDE) else ["h"]
    w, xs = rs.dmatrix("w"), rs.dmatrix("xs")
    starts = {name: rs.dvector(name) for name in names}
    out = rs.loop(lambda x, **rows: step(rs, x, rows, w), over={"x": xs}, init=starts)
    cost = sum(rs.sum(out[name] ** 2) for name in names)
    inputs = [w, xs, *starts.values()]
    slopes, args = rs.grad(cost, inputs), [WIDE * 0.3, XS, *[H0] * len(names)]
    found = rs.function(inputs, slopes)(*args)
    with rs.config.override(passes="none"):
        plain = rs.function(inputs, slopes)(*args)
    for x, y in zip(found, plain, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-10)


def test_a_part_may_stop_the_loop():
    w, h0 = rs.dmatrix("w"), rs.dvector("h0")

    def step(h):
        z = rs.tanh(h @ w + 0.3)
        return z[N : 2 * N], rs.until(z[2] > 0.7)

    h, _ = rs.scan(step, outputs_info=h0, n_steps=50)
    found, row, kept = rs.function([w, h0], h)(WIDE, H0), H0, []
    for _ in range(50):
        z = np.tanh(row @ WIDE + 0.3)
        row = z[N : 2 * N]
        kept.append(row)
        if z[2] > 0.7:
            break
    np.testing.assert_allclose(found, kept, rtol=1e-12)
    assert 0 < len(kept) < 50


@pytest.mark.parametrize("behind", [0.0, 1.0])
def test_the_last_rows_turned_round_with_others_behind(behind):
    """As gradients of loops begin, where what stands behind is zero."""
    x, y = rs.dvector("x"), rs.dvector("y")
    rows = rs.full((rs.minimum(x.shape[0], 3),), behind)
    last = y[-2:]
    f = rs.function([x, y], rows.at[rows.shape[0] - last.shape[0] :].add(last)[::-1])
    np.testing.assert_array_equal(f(np.zeros(5), [3.0, 4.0, 5.0]), [5.0 + behind, 4.0 + behind, behind])
    np.testing.assert_array_equal(f(np.zeros(2), [3.0, 4.0, 5.0]), [5.0 + behind, 4.0 + behind])


@pytest.mark.parametrize("behind", [0.0, 1.0])
def test_some_rows_flipped_with_others_behind(behind):
    """The last ones, as gradients of loops begin, or the first ones."""
    x, y = rs.dvector("x"), rs.dvector("y")
    rows = rs.full((rs.minimum(x.shape[0], 3),), behind)
    some = [y[-2:], y[:-2]]
    f = rs.function([x, y], [rs.flip(rows.at[rows.shape[0] - part.shape[0] :].add(part), 0) for part in some])
    for n in (5, 3):
        last, first = f(np.zeros(n), [3.0, 4.0, 5.0])
        np.testing.assert_array_equal(last, [5.0 + behind, 4.0 + behind, behind])
        np.testing.assert_array_equal(first, [3.0 + behind, behind, behind])
