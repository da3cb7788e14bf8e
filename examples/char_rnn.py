"""A character RNN on English prose (the help texts that come with Python), trained with Adam.

The gradient is verified against finite differences before the training starts. The parameters and the optimiser's
moments are shared variables; one compiled function runs forward loop, backward loop and updates.
"""

import pydoc_data.topics

import numpy as np

import rscan as rs

ALPHABET = "abcdefghijklmnopqrstuvwxyz .,'()\n"
HIDDEN, LENGTH, BATCH, ITERATIONS = 96, 32, 16, 1500
# nats a character; guessing by letter frequency alone gives 2.9
LOSS_BOUND = 1.9


def progress(n):
    """range(n), with a bar where tqdm is installed."""
    try:
        from tqdm import trange
    except ImportError:
        return tenths(n)
    return trange(n, desc="training", mininterval=1.0)


def tenths(n):
    """range(n), with a line at every tenth."""
    for i in range(n):
        if i % (n // 10) == 0:
            print(f"training: {100 * i // n} %", flush=True)
        yield i


def corpus():
    """The help texts as indices into ALPHABET."""
    text = "\n".join(pydoc_data.topics.topics[k] for k in sorted(pydoc_data.topics.topics)).lower()
    index = {c: i for i, c in enumerate(ALPHABET)}
    return np.array([index[c] for c in text if c in index], dtype=np.int64)


def entropy_of_letters(data):
    frequency = np.bincount(data, minlength=len(ALPHABET)) / len(data)
    return -np.sum(frequency * np.log(frequency))


def initial_parameters(hidden, rng, dtype):
    n = len(ALPHABET)
    draw = lambda rows, columns: (rng.standard_normal((rows, columns)) / np.sqrt(rows)).astype(dtype)
    return dict(
        W_in=draw(n, hidden),
        W=draw(hidden, hidden),
        b=np.zeros(hidden, dtype),
        W_out=draw(hidden, n),
        b_out=np.zeros(n, dtype),
    )


def cross_entropy(W_in, W, b, W_out, b_out, x, y):
    """Mean loss in nats a character; x, y: time x batch."""
    h0 = rs.zeros((x.shape[1], b.shape[0]), dtype=b.dtype)

    def step(x_t, h_tm1):
        return rs.tanh(x_t + h_tm1 @ W)

    h = rs.loop(step, over=W_in[x] + b, init=h0)
    logits = h @ W_out + b_out
    hit = y[:, :, None] == np.arange(len(ALPHABET))
    return rs.mean(rs.logsumexp(logits, axis=-1) - rs.sum(rs.where(hit, logits, 0), axis=-1))


def generator(parameters, length):
    """A function of the first character's index that lets the network write."""
    W_in, W, b, W_out, b_out = parameters.values()
    random = rs.random.Stream(seed=3)

    def step(h_tm1, c_tm1):
        h = rs.tanh(W_in[c_tm1] + b + h_tm1 @ W)
        return [h, random.choice(len(ALPHABET), p=rs.softmax(h @ W_out + b_out))]

    first = rs.lscalar("first")
    (_, characters), updates = rs.scan(step, outputs_info=[rs.zeros_like(b), first], n_steps=length)
    return rs.function([first], characters, updates=updates)


def verify():
    """Raises where the gradient of a small model differs from finite differences."""
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, len(ALPHABET), (2, 5, 2))
    parameters = initial_parameters(3, rng, np.float64)
    rs.verify_grad(lambda *p: cross_entropy(*p, rs.constant(x), rs.constant(y)), list(parameters.values()))


def adam(parameters, gradients, rate=0.005, b1=0.9, b2=0.99, eps=1e-8):
    """Updates of the parameters and of the optimiser's state."""
    t = rs.shared(np.float32(0), name="t")
    updates = [(t, t + 1)]
    scale = rate * rs.sqrt(1 - b2 ** (t + 1)) / (1 - b1 ** (t + 1))
    for p, g in zip(parameters, gradients):
        m, v = (rs.shared(np.zeros_like(p.get_value()), name=f"{k}_{p.name}") for k in "mv")
        m_new, v_new = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g**2
        updates += [(m, m_new), (v, v_new), (p, p - scale * m_new / (rs.sqrt(v_new) + eps))]
    return updates


def main():
    verify()
    rng = np.random.default_rng(0)
    data = corpus()
    parameters = {k: rs.shared(v, name=k) for k, v in initial_parameters(HIDDEN, rng, np.float32).items()}
    x, y = rs.lmatrix("x"), rs.lmatrix("y")
    loss = cross_entropy(**parameters, x=x, y=y)
    values = list(parameters.values())
    train = rs.function([x, y], loss, updates=adam(values, rs.grad(loss, values)))

    losses = []
    for _ in progress(ITERATIONS):
        start = rng.integers(0, len(data) - LENGTH - 1, BATCH)
        window = data[start + np.arange(LENGTH + 1)[:, None]]
        losses.append(float(train(window[:-1], window[1:])))
    first, last = np.mean(losses[:10]), np.mean(losses[-20:])

    written = "".join(ALPHABET[i] for i in generator(parameters, 240)(ALPHABET.index("t")))
    print(f"character RNN, {len(data)} characters, {ITERATIONS} batches of {BATCH} x {LENGTH}")
    print(f"loss, first 10 batches {first:8.3f}   uniform guess {np.log(len(ALPHABET)):.3f}")
    print(f"loss, last 20 batches  {last:8.3f}   bound {LOSS_BOUND}, letter frequencies {entropy_of_letters(data):.3f}")
    print("t" + written)
    return dict(text=written, first=first, last=last, bound=LOSS_BOUND, letters=entropy_of_letters(data))


if __name__ == "__main__":
    main()
