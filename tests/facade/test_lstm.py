"""A classifier of sentences: embedding, LSTM with masks, mean over time, softmax. Its training is compared with plain NumPy."""

import numpy as np
import pytest

import rscan.theano as theano
import rscan.theano.tensor as T

WORDS, DIM, CLASSES, DECAY, OFFSET = 9, 4, 3, 0.01, 1e-8
LENGTHS = [6, 2, 4, 1, 6]
NAMES = ["emb", "W", "U", "b", "V", "c"]


def weights():
    rng = np.random.RandomState(7)
    shapes = [(WORDS, DIM), (DIM, 4 * DIM), (DIM, 4 * DIM), (4 * DIM,), (DIM, CLASSES), (CLASSES,)]
    return {name: 0.4 * rng.normal(size=shape) for name, shape in zip(NAMES, shapes, strict=True)}


def sentences():
    """Words of all sentences, a row per time, where the masks say that there are any; words and classes occur several times."""
    rng = np.random.RandomState(3)
    words, labels = rng.randint(0, WORDS, (max(LENGTHS), len(LENGTHS))), rng.randint(0, CLASSES, len(LENGTHS))
    masks = (np.arange(max(LENGTHS))[:, None] < LENGTHS).astype(float)
    return words * masks.astype(int), masks, labels


# The model in Theano's words.


def gates(v):
    return [v[:, i * DIM : (i + 1) * DIM] for i in range(4)]


def kept(mask, new, old):
    return mask[:, None] * new + (1.0 - mask)[:, None] * old


def model(shared, noisy):
    words, mask, labels = T.matrix("words", dtype="int64"), T.matrix("mask"), T.vector("labels", dtype="int64")
    floatX = theano.config.floatX
    times, n = words.shape[0], words.shape[1]
    rows = T.dot(shared["emb"][words.flatten()].reshape([times, n, DIM]), shared["W"]) + shared["b"]

    def step(m, x, h, c):
        i, f, o, g = gates(T.dot(h, shared["U"]) + x)
        c = kept(m, T.nnet.sigmoid(f) * c + T.nnet.sigmoid(i) * T.tanh(g), c)
        return kept(m, T.nnet.sigmoid(o) * T.tanh(c), h), c

    start = T.alloc(np.asarray(0.0, floatX), n, DIM)
    (h, _), _ = theano.scan(step, sequences=[mask, rows], outputs_info=[start, start], n_steps=times)
    mean = (h * mask[:, :, None]).sum(axis=0) / mask.sum(axis=0)[:, None]
    srng = theano.sandbox.rng_mrg.MRG_RandomStreams(1)
    mean = T.switch(noisy, mean * srng.binomial(mean.shape, p=0.5, n=1, dtype=mean.dtype), mean * 0.5)
    odds = T.nnet.softmax(T.dot(mean, shared["V"]) + shared["c"])
    cost = -T.log(odds[T.arange(n), labels] + OFFSET).mean()
    decay = theano.shared(np.asarray(DECAY, floatX))
    return [words, mask, labels], cost + decay * (shared["V"] ** 2).sum()


def adadelta(shared, grads, slopes):
    zeros = lambda: {k: theano.shared(v.get_value() * np.asarray(0.0, theano.config.floatX)) for k, v in shared.items()}
    steps, squares = zeros(), zeros()
    first = [(squares[k], 0.95 * squares[k] + 0.05 * grads[k] ** 2) for k in NAMES]
    move = {k: -T.sqrt(steps[k] + 1e-6) / T.sqrt(squares[k] + 1e-6) * slopes[k] for k in NAMES}
    then = [(steps[k], 0.95 * steps[k] + 0.05 * move[k] ** 2) for k in NAMES]
    return first, then + [(shared[k], shared[k] + move[k]) for k in NAMES]


def sgd(shared, grads, slopes):
    rate = np.asarray(0.5, theano.config.floatX)
    return [], [(shared[k], shared[k] - rate * slopes[k]) for k in NAMES]


def trained(rule, updates):
    """Cost and gradients before each update."""
    floatX = theano.config.floatX
    shared = {k: theano.shared(v.astype(floatX), k) for k, v in weights().items()}
    inputs, cost = model(shared, theano.shared(np.asarray(0.0, floatX)))
    grads = dict(zip(NAMES, T.grad(cost, [shared[k] for k in NAMES]), strict=True))
    slopes = {k: theano.shared(v.get_value() * 0) for k, v in shared.items()}
    first, then = rule(shared, grads, slopes)
    evaluate = theano.function(inputs, cost, updates=[(slopes[k], grads[k]) for k in NAMES] + first)
    update = theano.function([], [], updates=then)
    words, masks, labels = sentences()
    out = []
    for _ in range(updates):
        value = evaluate(words, masks.astype(floatX), labels)
        assert value.dtype == floatX and all(v.dtype == floatX for v in grads.values())
        out.append((float(value), {k: v.get_value() for k, v in slopes.items()}))
        update()
    return out


# The model in NumPy.


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def forward(p):
    """The cost, and what its slopes are computed from."""
    words, masks, labels = sentences()
    rows = p["emb"][words] @ p["W"] + p["b"]
    h = c = np.zeros((len(LENGTHS), DIM))
    tape = []
    for m, x in zip(masks, rows, strict=True):
        i, f, o, g = gates(h @ p["U"] + x)
        i, f, o, g = sigmoid(i), sigmoid(f), sigmoid(o), np.tanh(g)
        new = kept(m, f * c + i * g, c)
        tape.append((m, h, c, new, i, f, o, g))
        h, c = kept(m, o * np.tanh(new), h), new
    hs = np.array([entry[1] for entry in tape[1:]] + [h])
    mean = 0.5 * (hs * masks[:, :, None]).sum(0) / masks.sum(0)[:, None]
    z = np.exp(mean @ p["V"] + p["c"])
    odds = z / z.sum(1, keepdims=True)
    chosen = odds[np.arange(len(labels)), labels]
    cost = -np.log(chosen + OFFSET).mean() + DECAY * (p["V"] ** 2).sum()
    return cost, (words, masks, labels, tape, mean, odds, chosen)


def backward(p, saved):
    words, masks, labels, tape, mean, odds, chosen = saved
    n = len(labels)
    d = odds.copy()
    d[np.arange(n), labels] -= 1
    d *= (chosen / (chosen + OFFSET))[:, None] / n
    out = {"V": mean.T @ d + 2 * DECAY * p["V"], "c": d.sum(0), "U": np.zeros_like(p["U"])}
    towards = 0.5 * (d @ p["V"].T) / masks.sum(0)[:, None]
    dh = dc = np.zeros_like(towards)
    rows = np.zeros((*words.shape, 4 * DIM))
    for t in reversed(range(len(tape))):
        m, h, c, new, i, f, o, g = (v if v.ndim > 1 else v[:, None] for v in tape[t])
        dh = dh + m * towards
        inner = dc + m * dh * o * (1 - np.tanh(new) ** 2)
        dfc = m * inner
        di, df, dg, do = dfc * g, dfc * c, dfc * i, m * dh * np.tanh(new)
        rows[t] = np.hstack([di * i * (1 - i), df * f * (1 - f), do * o * (1 - o), dg * (1 - g**2)])
        out["U"] += h.T @ rows[t]
        dh, dc = (1 - m) * dh + rows[t] @ p["U"].T, (1 - m) * inner + dfc * f
    out["b"], out["W"] = rows.sum((0, 1)), np.einsum("tnd,tng->dg", p["emb"][words], rows)
    out["emb"] = np.zeros_like(p["emb"])
    np.add.at(out["emb"], words, rows @ p["W"].T)
    return out


def reference(rule, updates):
    p, steps, squares = weights(), dict.fromkeys(NAMES, 0.0), dict.fromkeys(NAMES, 0.0)
    out = []
    for _ in range(updates):
        cost, saved = forward(p)
        g = backward(p, saved)
        out.append((cost, g))
        for k in NAMES:
            squares[k] = 0.95 * squares[k] + 0.05 * g[k] ** 2
            move = -np.sqrt(steps[k] + 1e-6) / np.sqrt(squares[k] + 1e-6) * g[k] if rule is adadelta else -0.5 * g[k]
            steps[k] = 0.95 * steps[k] + 0.05 * move**2
            p[k] = p[k] + move
    return out


def test_the_slopes_in_numpy_are_those_of_finite_differences():
    p = weights()
    slopes = backward(p, forward(p)[1])
    for name in NAMES:
        found = np.zeros_like(p[name])
        for at in np.ndindex(found.shape):
            there, back = ({**p, name: p[name].copy()} for _ in range(2))
            there[name][at] += 1e-5
            back[name][at] -= 1e-5
            found[at] = (forward(there)[0] - forward(back)[0]) / 2e-5
        np.testing.assert_allclose(slopes[name], found, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("rule", [adadelta, sgd])
@pytest.mark.parametrize(("floatX", "tolerance"), [("float64", 1e-11), ("float32", 2e-5)])
def test_costs_and_gradients_before_each_update(rule, floatX, tolerance):
    with theano.change_flags(floatX=floatX):
        found = trained(rule, 4)
    for (cost, slopes), (expected_cost, expected) in zip(found, reference(rule, 4), strict=True):
        np.testing.assert_allclose(cost, expected_cost, rtol=tolerance)
        for name in NAMES:
            np.testing.assert_allclose(slopes[name], expected[name], rtol=0, atol=tolerance * np.abs(expected[name]).max())
