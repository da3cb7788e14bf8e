"""Sums of products that are products of matrices, and parts of parts: what they become, in loops and in gradients, gives the same."""

import numpy as np
import pytest

import rscan as rs

#: Spellings of products, of a state h and a matrix w of four rows.
PRODUCTS = {
    "last axis": lambda h, w: (w * h).sum(axis=-1),
    "first axis": lambda h, w: (h[:, None] * w).sum(axis=0),
    "with the axis": lambda h, w: (w * h).sum(axis=1, keepdims=True)[:, 0],
    "a matrix": lambda h, w: ((h[:, None] * w)[:, :, None] * w[None, :, :]).sum(axis=1)[0],
    "transposed": lambda h, w: (w.T * h[:, None]).sum(axis=0),
}


def looped(product, xs, w):
    def step(x, h):
        return rs.tanh(product(h, w) + x)

    hs, _ = rs.scan(step, sequences=xs, outputs_info=rs.constant(np.linspace(-1, 1, 4)))
    return rs.sum(hs[-1] * rs.constant(np.array([1.0, -0.5, 2.0, 0.25])))


def functions(product, **settings):
    source = rs.dmatrix("xs"), rs.dmatrix("w")
    with rs.config.override(**settings):
        cost = looped(product, source[0], rs.reshape(source[1], (4, 4)))
        return rs.function(list(source), [cost, *rs.grad(cost, source)])


@pytest.mark.parametrize("name", PRODUCTS)
def test_sums_of_products_are_products_in_loops_and_in_gradients(name):
    args = np.random.default_rng(2).normal(size=(7, 4)), np.random.default_rng(3).normal(size=(4, 4))
    f, plain = functions(PRODUCTS[name]), functions(PRODUCTS[name], excluding="contract")
    assert f.text(optimised=True).count("= matmul(") > plain.text(optimised=True).count("= matmul(")
    found = f(*args)
    for got, want in zip(found, plain(*args), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-13)
    step = 1e-6
    for at in ((0, 1), (3, 2)):
        ends = []
        for sign in (step, -step):
            w = args[1].copy()
            w[at] += sign
            ends.append(float(f(args[0], w)[0]))
        np.testing.assert_allclose(found[2][at], (ends[0] - ends[1]) / (2 * step), rtol=1e-5, atol=1e-9)


def test_a_gradient_without_the_pass_is_that_of_the_sum():
    w, h = rs.dmatrix("w"), rs.dvector("h")
    x, y = rs.reshape(w, (3, 4)), rs.reshape(h, (4,))
    cost = rs.sum((x * y).sum(axis=1) ** 2)
    texts = []
    for settings in ({}, {"excluding": "contract"}):
        with rs.config.override(**settings):
            texts.append(rs.function([w, h], rs.grad(cost, w), excluding=["contract"]).text(optimised=True))
    assert "matmul" in texts[0] and "matmul" not in texts[1]


#: What a step reads of a state of five, in other words.
PARTS = {
    "cut twice": lambda h: h[1:][1:3],
    "an element of a slice": lambda h: rs.stack([h[1:4][-1], h[:3][0]]),
    "cut and joined": lambda h: rs.concatenate([h[:2], h[2:5]])[1:3],
    "elements stacked": lambda h: rs.stack([h[0], h[1], h[2], h[3], h[4]])[3:],
    "beside what was written": lambda h: h.at[0:2].set(0.5)[3:],
    "within what was written": lambda h: h.at[1:4].set(2.0 * h[2:])[2:4],
    "within what was added": lambda h: h.at[1:4].add(2.0 * h[2:])[2:4],
    "a part of a join": lambda h: rs.concatenate([h * 3.0, h])[6:8],
    "a choice in a choice": lambda h: rs.where(h > 0, rs.where(h > 0, h, 1 / h), 2.0 * h)[:2],
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_in_steps_keep_values_and_gradients(name):
    def cost(xs):
        def step(x, h):
            return rs.tanh(h.at[0:2].add(PARTS[name](h)) + x)

        hs, _ = rs.scan(step, sequences=xs, outputs_info=rs.constant(np.linspace(-1, 1, 5)))
        return rs.sum(hs[-1] ** 2)

    xs, outputs = rs.dvector("xs"), []
    for excluding in ([], ["index", "algebra"]):
        y = cost(xs)
        f = rs.function([xs], [y, rs.grad(y, xs)], excluding=excluding)
        outputs.append((f(np.array([0.3, -0.2, 0.5, 0.1])), f.text(optimised=True)))
    for got, want in zip(outputs[0][0], outputs[1][0], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)
    first, last = (text.split("return")[0].count("\n") for _, text in outputs)
    assert first < last
