"""Optimisers against their formulas in NumPy, in Python loops and in loops of variables."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import run

import rscan as rs

O = rs.optim
P0 = np.array([1.0, -2.0, 0.5])
GRADS = [np.array([0.3, -1.0, 0.0]), np.array([0.1, 2.0, -0.5]), np.array([-0.7, 0.2, 0.0]), np.array([0.3, 0.3, 3.0])]


def sgd(p, grads, lr=0.1, decay=0.0, nesterov=False):
    m = 0
    for g in grads:
        m = decay * m + g
        p = p - lr * (g + decay * m if nesterov else m)
    return p


def adam(p, grads, lr=0.1, b1=0.9, b2=0.999, eps=1e-8, decay=0.0):
    m = v = 0
    for i, g in enumerate(grads, 1):
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g**2
        p = p - lr * (m / (1 - b1**i) / (np.sqrt(v / (1 - b2**i)) + eps) + decay * p)
    return p


def rmsprop(p, grads, lr=0.1, decay=0.9, eps=1e-8, momentum=0.0, centered=False):
    v = m = t = 0
    for g in grads:
        v, m = decay * v + (1 - decay) * g**2, decay * m + (1 - decay) * g
        t = momentum * t + lr * g / np.sqrt(v - (m**2 if centered else 0) + eps)
        p = p - t
    return p


def adagrad(p, grads, lr=0.1):
    v = 0.1
    for g in grads:
        v = v + g**2
        p = p - lr * g / np.sqrt(v + 1e-7)
    return p


def lion(p, grads, lr=0.1, b1=0.9, b2=0.99, decay=0.0):
    m = 0
    for g in grads:
        p = p - lr * (np.sign(b1 * m + (1 - b1) * g) + decay * p)
        m = b2 * m + (1 - b2) * g
    return p


def clipped(p, grads, lr=0.1):
    for g in grads:
        p = p - lr * g * min(1, 1.5 / np.linalg.norm(g))
    return p


OPTIMISERS = {
    "sgd": (O.sgd(0.1), sgd),
    "sgd with momentum": (O.sgd(0.1, 0.8), lambda p, g: sgd(p, g, decay=0.8)),
    "momentum": (O.momentum(0.1, 0.8, nesterov=True), lambda p, g: sgd(p, g, decay=0.8, nesterov=True)),
    "adam": (O.adam(0.1), adam),
    "adam of others": (O.adam(0.1, 0.5, 0.7, 1e-3), lambda p, g: adam(p, g, b1=0.5, b2=0.7, eps=1e-3)),
    "adamw": (O.adamw(0.1, weight_decay=0.3), lambda p, g: adam(p, g, decay=0.3)),
    "rmsprop": (O.rmsprop(0.1), rmsprop),
    "rmsprop centered": (O.rmsprop(0.1, 0.8, 1e-4, momentum=0.5, centered=True), lambda p, g: rmsprop(p, g, 0.1, 0.8, 1e-4, 0.5, True)),
    "adagrad": (O.adagrad(0.1), adagrad),
    "lion": (O.lion(0.1), lion),
    "lion with decay": (O.lion(0.1, weight_decay=0.3), lambda p, g: lion(p, g, decay=0.3)),
    "clip": (O.chain(O.clip(0.4), O.sgd(0.1)), lambda p, g: sgd(p, [np.clip(x, -0.4, 0.4) for x in g])),
    "clip_by_global_norm": (O.chain(O.clip_by_global_norm(1.5), O.sgd(0.1)), clipped),
    "scale": (O.chain(O.scale(-0.2)), lambda p, g: sgd(p, g, lr=0.2)),
}


@pytest.mark.parametrize("name", OPTIMISERS)
def test_formulas(name):
    optimiser, formula = OPTIMISERS[name]
    p = P0
    state = optimiser.init(p)
    for g in GRADS:
        updates, state = optimiser.update(g, state, p)
        p = O.apply_updates(p, updates)
        assert isinstance(p, np.ndarray)
    np.testing.assert_allclose(p, formula(P0, GRADS), rtol=1e-12)
    start = rs.constant(P0)
    looped = rs.loop(
        lambda g, p, s: dict(zip("ps", optimiser.step(g, s, p), strict=True)),
        over=dict(g=np.stack(GRADS)),
        init=dict(p=start, s=optimiser.init(start)),
    )
    np.testing.assert_allclose(rs.eval(looped.p[-1]), formula(P0, GRADS), rtol=1e-12)
    single, state = P0.astype("float32"), optimiser.init(P0.astype("float32"))
    for g in GRADS:
        single, state = optimiser.step(g.astype("float32"), state, single)
    assert single.dtype == "float32"
    np.testing.assert_allclose(single, formula(P0, GRADS), rtol=1e-4, atol=1e-6)


#: What optax and PyTorch make of a small problem; tools/optimiser_sequences.py writes it.
PUBLISHED = json.loads((Path(__file__).parent / "optimisers.json").read_text())
BY_NAME = {
    "sgd": O.sgd(0.1), "momentum": O.momentum(0.1, 0.8), "nesterov": O.momentum(0.1, 0.8, nesterov=True), "adam": O.adam(0.1),
    "adam of others": O.adam(0.1, 0.5, 0.7, 1e-3), "adamw": O.adamw(0.1, weight_decay=0.3), "adadelta": O.adadelta(),
    "adadelta of others": O.adadelta(0.5, 0.8, 1e-3), "adagrad": O.adagrad(0.1), "adagrad without eps": O.adagrad(0.1, eps=0.0),
    "rmsprop": O.rmsprop(0.1), "rmsprop without eps": O.rmsprop(0.1, eps=0.0),
    "rmsprop centered": O.rmsprop(0.1, 0.8, 1e-4, momentum=0.5, centered=True), "lion": O.lion(0.1),
    "lion with decay": O.lion(0.1, weight_decay=0.3), "clip": O.chain(O.clip(0.4), O.sgd(0.1)),
    "clip_by_global_norm": O.chain(O.clip_by_global_norm(1.5), O.sgd(0.1)), "cosine": O.adam(O.cosine_decay(0.2, 8, 0.05)),
    "exponential": O.sgd(O.exponential_decay(0.2, 3, 0.5)), "linear": O.sgd(O.linear_schedule(0.2, 0.05, 6)),
    "warmup": O.sgd(O.warmup_cosine(0.0, 0.2, 4, 10)), "pieces": O.sgd(O.piecewise_constant(0.2, {3: 0.5, 6: 0.1})),
}  # fmt: skip


#: optax computes these shares of a schedule in float32.
SINGLE = {"exponential", "linear", "warmup"}


def slopes(p):
    """As tools/optimiser_sequences.py has them."""
    coupled = rs.stack([p[1], p[0], 0.0 * p[0]]) if isinstance(p, rs.Variable) else np.array([p[1], p[0], 0.0])
    return p**3 - np.arange(1.0, 4.0) * math.cos(1.0) + coupled


@pytest.mark.parametrize(("package", "name"), [(package, name) for package, names in PUBLISHED.items() for name in names])
def test_published_sequences(package, name):
    expected, optimiser = np.array(PUBLISHED[package][name]), BY_NAME[name]
    p = P0
    state = optimiser.init(p)
    for after in expected:
        p, state = optimiser.step(slopes(p), state, p)
        np.testing.assert_allclose(p, after, rtol=1e-6 if name in SINGLE else 1e-9)


@pytest.mark.parametrize("name", BY_NAME)
def test_shared_variables(name):
    """Parameters and states that are shared, and updated by a function that is called once a step."""
    optimiser = BY_NAME[name]
    expected = next(np.array(names[name]) for names in PUBLISHED.values() if name in names)
    p = rs.shared(P0, "p")
    leaves, tree = rs._tree.flatten(optimiser.init(P0), lambda v: isinstance(v, (np.ndarray, np.generic)))
    states = [rs.shared(v) for v in leaves]
    after, state = optimiser.step(slopes(p), tree.build(iter(states)), p)
    found = rs._tree.flatten(state, lambda v: isinstance(v, rs.Variable))[0]
    step = rs.function([], [], updates=[(p, after), *zip(states, found, strict=True)])
    for values in expected:
        step()
        np.testing.assert_allclose(p.get_value(), values, rtol=1e-6 if name in SINGLE else 1e-9)


def test_integers_do_not_move():
    """An update of an integer would be rounded to nothing."""
    integers = np.array([1, 2])
    optimiser = O.sgd(0.5)
    for call in (
        lambda: optimiser.init(integers),
        lambda: optimiser.step(np.ones(2), optimiser.init(np.ones(2)), integers),
        lambda: optimiser.update(np.ones(2), optimiser.init(np.ones(2)), integers),
        lambda: O.apply_updates({"w": integers}, {"w": np.ones(2)}),
    ):
        with pytest.raises(rs.RscanTypeError, match="a parameter is int64, and optimisers move floats"):
            call()


@dataclasses.dataclass
class Model:
    w: Any
    b: Any


@pytest.mark.parametrize("make", [lambda w, b: {"w": w, "b": [b]}, lambda w, b: (w, (b,)), Model], ids=["dict", "tuple", "dataclass"])
def test_structures(make):
    for optimiser in (O.adam(0.1), O.adamw(0.1), O.rmsprop(0.1, centered=True), O.chain(O.clip_by_global_norm(1.0), O.lion(0.1))):
        p = make(P0, 2.0)
        state = optimiser.init(p)
        loss = lambda p: sum(rs.sum((v - 1) ** 2) for v in rs._tree.flatten(p, lambda v: isinstance(v, rs.Variable))[0])
        first, _ = rs.value_and_grad(loss)(p)
        for _ in range(30):
            last, g = rs.value_and_grad(loss)(p)
            p, state = optimiser.step(g, state, p)
        assert type(p) is type(make(0, 0)) and last < 0.2 * first
    assert run(lambda a, b: O.global_norm({"a": a, "b": [b]}), P0, np.array(2.0)) == pytest.approx(np.sqrt((P0**2).sum() + 4))


def test_hypergradients():
    """The final loss by the learning rate, through the optimiser."""

    def final(rate):
        optimiser, start = O.momentum(rate, 0.5), rs.constant(P0)
        slope = lambda p: rs.grad(lambda q: rs.sum(q**4))(p)
        step = lambda p, s: dict(zip("ps", optimiser.step(slope(p), s, p), strict=True))
        return rs.sum(rs.loop(step, init=dict(p=start, s=optimiser.init(start)), n_steps=5).p[-1] ** 2)

    rs.verify_grad(final, [np.array(0.01)])


SCHEDULES = {
    "constant": (O.constant_schedule(0.3), lambda i: 0.3),
    "linear": (O.linear_schedule(1.0, 0.2, 4, begin=2), lambda i: 1 - 0.8 * min(max(i - 2, 0) / 4, 1)),
    "exponential": (O.exponential_decay(2.0, 3, 0.5), lambda i: 2 * 0.5 ** (i / 3)),
    "staircase": (O.exponential_decay(2.0, 3, 0.5, staircase=True, end=0.6), lambda i: max(2 * 0.5 ** (i // 3), 0.6)),
    "cosine": (O.cosine_decay(2.0, 5, 0.5), lambda i: 0.5 + 1.5 * 0.5 * (1 + np.cos(np.pi * min(i / 5, 1)))),
    "warmup": (O.warmup_cosine(0.0, 1.0, 4, 8), lambda i: i / 4 if i < 4 else 0.5 * (1 + np.cos(np.pi * min((i - 4) / 4, 1)))),
    "pieces": (O.piecewise_constant(1.0, {6: 0.1, 3: 0.5}), lambda i: 1.0 if i < 3 else 0.5 if i < 6 else 0.05),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name):
    schedule, formula = SCHEDULES[name]
    expected = np.array([formula(i) for i in range(10)])
    np.testing.assert_allclose([rs.eval(schedule(rs.constant(i))) for i in range(10)], expected, rtol=1e-12, atol=1e-15)
    optimiser, p = O.sgd(schedule), 0.0
    state = optimiser.init(p)
    for i in range(4):
        p, state = optimiser.step(1.0, state, p)
        assert p == pytest.approx(-expected[: i + 1].sum())


ERRORS = {
    "chain": lambda: O.chain(O.sgd(0.1), 3),
    "no parameters": lambda: O.adamw(0.1).update(P0, O.adamw(0.1).init(P0)),
    "structure": lambda: O.sgd(0.1).step([P0], O.sgd(0.1).init({"a": P0, "b": P0}), {"a": P0, "b": P0}),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    with pytest.raises(rs.RscanError):
        ERRORS[name]()
