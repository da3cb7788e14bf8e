"""Programs of `accept_passes.py`: the benchmark's workloads at small sizes, and programs that show what one pass does."""

import numpy as np

import rscan as rs

N = 12


def normal(*shape, dtype="float32", seed=0):
    return (0.5 * np.random.default_rng(seed).standard_normal(shape)).astype(dtype)


def rnn(hidden, width=1, steps=N):
    return dict(
        x=normal(steps, 2, 3, seed=1), Wx=normal(3, width * hidden, seed=2), Wh=normal(hidden, width * hidden, seed=3),
        b=normal(width * hidden, seed=4), h0=normal(2, hidden, seed=5), c0=normal(2, hidden, seed=6), target=normal(2, hidden, seed=7),
    )  # fmt: skip


def gru():
    i = rnn(4, 3)
    return dict(i, bx=i["b"], bh=normal(12, seed=8))


def kalman():
    double = lambda *shape, seed: normal(*shape, dtype="float64", seed=seed)
    transition = np.eye(4) * 0.9 + 0.1 * double(4, 4, seed=1)
    observed = np.eye(2, 4)
    return dict(y=double(N, 2, seed=2), F=transition, H=observed, q=np.zeros(4), r=np.zeros(2), x0=np.zeros(4), P0=np.eye(4))


def hmm():
    return dict(logA=normal(5, 5, dtype="float64"), logB=normal(N, 5, dtype="float64", seed=1), logpi=normal(5, dtype="float64", seed=2))


def garch():
    p = np.array([0.1, 0.5, 0.2, -0.1, 0.05, 0.1, 0.85])
    return dict(p=p, y=normal(N + 1, dtype="float64"), e_init=np.zeros(2), s0=np.float64(1.0))


def rbm():
    return dict(W=normal(6, 4), bv=normal(6, seed=1), bh=normal(4, seed=2), v0=(normal(3, 6, seed=3) > 0).astype("float32"), k=5)


#: Inputs of the workloads.
SMALL = {
    "01a_logistic_last": lambda: dict(x0=0.4, r=3.7, T=N),
    "01b_logistic_all": lambda: dict(x0=0.4, r=3.7, T=N),
    "02_power": lambda: dict(A=normal(5, dtype="float64"), k=N),
    "04_cumsum": lambda: dict(x=normal(N, 5, dtype="float64")),
    "05a_rnn_fwd": lambda: rnn(4),
    "05b_rnn_grad": lambda: rnn(4),
    "16b_mem_ckpt": lambda: rnn(4, steps=200),
    "06_lstm_train": lambda: rnn(4, 4),
    "07_gru_latency": gru,
    "08a_until_scalar": lambda: dict(x0=1.0, f=1.1, maxv=2.0, n_max=30),
    "08c_fixedpoint": lambda: dict(M=0.3 * np.eye(3), c=np.ones(3), x0=np.zeros(3), eps=1e-6, n_max=50),
    "09_garch_grad": garch,
    "10a_lorenz_scalar": lambda: dict(s0=np.array([1.0, 2.0, 3.0]), T=N),
    "11_kalman_grad": kalman,
    "12_rbm_gibbs": rbm,
    "13_hmm_grad": hmm,
    "15a_linrec_fwd": lambda: dict(a=normal(N, 5), b=normal(N, 5, seed=1)),
}


# Programs that show one pass, each with a gradient.


def call(inputs, cost, wrt, args, extra=()):
    """Makes and calls a function of a cost and its gradient."""
    rs.function(inputs, [cost, *extra, *rs.grad(cost, wrt)])(*args)


def unrolled():
    x, w = rs.tensor("float64", (3, 4), "x"), rs.tensor("float64", (4, 4), "w")
    for steps in (1, 2, 3, 4):
        h, _ = rs.scan(lambda h, w: rs.tanh(h @ w), outputs_info=x, non_sequences=w, n_steps=steps)
        call([x, w], rs.sum(h[-1]), [w], [normal(3, 4, dtype="float64"), normal(4, 4, dtype="float64")])


def merged():
    x = rs.dmatrix("x")
    a, _ = rs.scan(lambda x, a: a + rs.exp(x), sequences=x, outputs_info=rs.zeros_like(x[0]))
    b, _ = rs.scan(lambda x, b: b * rs.exp(x), sequences=x, outputs_info=rs.ones_like(x[0]))
    call([x], rs.sum(a[-1] * b[-1]), [x], [normal(N, 3, dtype="float64")])


def merged_maps():
    x = rs.dmatrix("x")
    a, _ = rs.scan(lambda x: rs.exp(x) + 1, sequences=x)
    b, _ = rs.scan(lambda x, s: s + rs.exp(x), sequences=x, outputs_info=rs.zeros_like(x[0]))
    rs.function([x], [a, b])(normal(N, 3, dtype="float64"))


def equal_states():
    x, n = rs.dvector("x"), rs.lscalar("n")
    rows, _ = rs.scan(lambda a, b: [rs.sin(a), rs.sin(b)], outputs_info=[x, x], n_steps=n)
    rs.function([x, n], [rows[0], rows[1]])(normal(3, dtype="float64"), N)


def equal_states_of_three():
    x, n = rs.dvector("x"), rs.lscalar("n")
    rows, _ = rs.scan(lambda a, b, c: [rs.sin(b), rs.sin(c), rs.sin(a)], outputs_info=[x, x, x], n_steps=n)
    rs.function([x, n], [r[-1] for r in rows])(normal(3, dtype="float64"), N)


def equal_states_with_gradient():
    x, n = rs.dvector("x"), rs.lscalar("n")
    rows, _ = rs.scan(lambda a, b: [rs.tanh(a) * a, rs.tanh(b) * b], outputs_info=[x, x], n_steps=n)
    call([x, n], rs.sum(rows[0][-1] + rows[1][-1]), [x], [normal(3, dtype="float64"), N])


def unused_states():
    x, n = rs.dvector("x"), rs.lscalar("n")
    rows, _ = rs.scan(lambda a, b: [a * 0.5, rs.exp(b) * a], outputs_info=[x, x], n_steps=n)
    rs.function([x, n], rows[0])(normal(3, dtype="float64"), N)


def invariant():
    x, w, n = rs.dvector("x"), rs.dmatrix("w"), rs.lscalar("n")
    rows, _ = rs.scan(lambda h, w: rs.tanh(h @ rs.exp(w).T), outputs_info=x, non_sequences=w, n_steps=n)
    call([x, w, n], rs.sum(rows[-1]), [x, w], [normal(3, dtype="float64"), normal(3, 3, dtype="float64"), N])


def summed():
    x, n = rs.dvector("x"), rs.lscalar("n")
    rows, _ = rs.scan(lambda h: rs.sin(h) * 1.1, outputs_info=x, n_steps=n)
    rs.function([x, n], rs.sum(rows))(normal(3, dtype="float64"), N)
    rs.function([x, n], rs.sum(rows, axis=0))(normal(3, dtype="float64"), N)
    total, _ = rs.scan(lambda h, s: [rs.sin(h), s + h], outputs_info=[x, rs.zeros_like(x)], n_steps=n)
    rs.function([x, n], [rs.mean(total[0]), total[1][-1]])(normal(3, dtype="float64"), N)


def accumulated_products():
    x, y = rs.tensor("float64", (None, None, None), "x"), rs.tensor("float64", (None, None, None), "y")
    init = rs.zeros((x.shape[2], y.shape[2]))
    acc, _ = rs.scan(lambda x, y, a: a + x.T @ rs.tanh(y), sequences=[x, y], outputs_info=init)
    rs.function([x, y], acc[-1])(normal(N, 2, 3, dtype="float64"), normal(N, 2, 4, dtype="float64"))


def read_out():
    """A recurrent network with an output layer, and its gradient."""
    x, u, v, c = rs.tensor("float64", (None, None, None), "x"), rs.dmatrix("u"), rs.dmatrix("v"), rs.dvector("c")
    rows, _ = rs.scan(
        lambda x, h: [rs.tanh(x + h @ u), rs.softmax(h @ v + c, axis=-1)], sequences=x, outputs_info=[rs.zeros_like(x[0]), None]
    )
    double = lambda *shape: normal(*shape, dtype="float64")
    call([x, u, v, c], rs.sum(rows[1] ** 2), [u, v, c], [double(N, 2, 3), double(3, 3), double(3, 4), double(4)])


def read_out_of_vectors():
    x, u, v = rs.dmatrix("x"), rs.dmatrix("u"), rs.dmatrix("v")
    rows, _ = rs.scan(lambda x, h: [rs.tanh(x + h @ u), rs.exp(h) @ v], sequences=x, outputs_info=[rs.zeros_like(x[0]), None])
    rs.function([x, u, v], rows)(normal(N, 3, dtype="float64"), normal(3, 3, dtype="float64"), normal(3, 4, dtype="float64"))


def read_out_until():
    x, v, n = rs.dvector("x"), rs.dmatrix("v"), rs.lscalar("n")
    step = lambda h: ([h * 1.2, 2.0 * (h @ v)], rs.until(rs.sum(h) > 20.0))
    rows, _ = rs.scan(step, outputs_info=[x, None], n_steps=n)
    rs.function([x, v, n], rows)(np.ones(3), normal(3, 4, dtype="float64"), 40)


def array_operations():
    x, w = rs.tensor("float64", (None, None, None), "x"), rs.dmatrix("w")
    y, _ = rs.scan(lambda x: rs.softmax(x @ w, axis=1), sequences=x)
    call([x, w], rs.sum(y**3), [x, w], [normal(N, 2, 3, dtype="float64"), normal(3, 4, dtype="float64")])


def array_operations_on_vectors():
    x, w, c = rs.dmatrix("x"), rs.dmatrix("w"), rs.dvector("c")
    y, _ = rs.scan(lambda x: rs.tanh(x @ w + c) * 2.0, sequences=x)
    rs.function([x, w, c], y)(normal(N, 3, dtype="float64"), normal(3, 4, dtype="float64"), normal(4, dtype="float64"))


def sums_of_exponentials():
    x = rs.dmatrix("x")
    y, _ = rs.scan(lambda x: rs.logsumexp(x * 2.0, axis=0), sequences=x, go_backwards=True)
    call([x], rs.sum(y**2), [x], [normal(N, 3, dtype="float64")])


def gates():
    """A recurrent network whose gates have matrices of their own, and its gradient."""
    x, h0 = rs.dmatrix("x"), rs.dvector("h0")
    names = ["Wz", "Wr", "Wh", "Uz", "Ur", "Uh"]
    w = {name: rs.dmatrix(name) for name in names}

    def step(x, h):
        z = rs.sigmoid(x @ w["Wz"] + h @ w["Uz"])
        r = rs.sigmoid(x @ w["Wr"] + h @ w["Ur"])
        return (1 - z) * h + z * rs.tanh(x @ w["Wh"] + r * (h @ w["Uh"]))

    h, _ = rs.scan(step, sequences=x, outputs_info=h0)
    values = [normal(4 if name[0] == "U" else 3, 4, dtype="float64", seed=k) for k, name in enumerate(names)]
    call([x, h0, *w.values()], rs.sum(h[-1] ** 2), list(w.values()), [normal(N, 3, dtype="float64"), np.zeros(4), *values])


def gates_of_batches():
    h0, u, v = rs.fmatrix("h0"), rs.fmatrix("u"), rs.fmatrix("v")
    h, _ = rs.scan(lambda h: rs.tanh(h @ u) * rs.sigmoid(h @ v), outputs_info=h0, n_steps=N)
    rs.function([h0, u, v], h)(normal(2, 4), normal(4, 4), normal(4, 4))


def two_readings():
    x, u, v = rs.dmatrix("x"), rs.dmatrix("u"), rs.dmatrix("v")
    rows, _ = rs.scan(lambda x, h: [rs.sin(x + h @ u), rs.max(h @ v)], sequences=x, outputs_info=[rs.zeros_like(x[0]), None])
    rs.function([x, u, v], rows)(normal(N, 3, dtype="float64"), normal(3, 3, dtype="float64"), normal(3, 4, dtype="float64"))


def regular(n, seed=0):
    return 3 * np.eye(n) + normal(n, n, dtype="float64", seed=seed)


def two_systems():
    a, b, c = rs.tensor("float64", (3, 3), "a"), rs.tensor("float64", (3, 2), "b"), rs.tensor("float64", (3,), "c")
    cost = rs.sum(rs.linalg.solve(a, b)) + rs.sum(rs.linalg.solve(a, c) ** 2)
    f = lambda h: cost * h
    y, _ = rs.scan(f, outputs_info=rs.constant(1.0), n_steps=3)
    call([a, b, c], y[-1], [a, b, c], [regular(3), normal(3, 2, dtype="float64"), normal(3, dtype="float64")])


def filter_of_known_extents():
    a, p, y = rs.tensor("float64", (2, 2), "a"), rs.tensor("float64", (2, 3), "p"), rs.tensor("float64", (None, 2), "y")

    def step(y, s):
        gain, rest = rs.linalg.solve(s, p), rs.linalg.solve(s, y)
        return 0.9 * s + 0.01 * (gain @ gain.T) + 0.01 * rs.sum(rest)

    s, _ = rs.scan(step, sequences=y, outputs_info=a)
    call([a, p, y], rs.sum(s[-1]), [a, p], [regular(2), normal(2, 3, dtype="float64"), normal(N, 2, dtype="float64")])


def inverse_and_system():
    a, c, n = rs.tensor("float64", (3, 3), "a"), rs.tensor("float64", (3,), "c"), rs.lscalar("n")
    step = lambda h: rs.linalg.inv(a + rs.diag(h)) @ h + rs.linalg.solve(a + rs.diag(h), c)
    h, _ = rs.scan(step, outputs_info=c, n_steps=n)
    rs.function([a, c, n], h)(regular(3), normal(3, dtype="float64"), N)


def chain_of_states():
    log_a, log_b = rs.dmatrix("logA"), rs.dmatrix("logB")
    step = lambda b, a: rs.logsumexp(log_a + a[:, None], axis=0) + b
    a, _ = rs.scan(step, sequences=log_b, outputs_info=log_b[0])
    i = hmm()
    call([log_a, log_b], rs.logsumexp(a[-1]), [log_a, log_b], [i["logA"], i["logB"]])


def messages_backwards():
    log_a, log_b = rs.dmatrix("logA"), rs.dmatrix("logB")
    step = lambda b, m: rs.logsumexp(log_a + (b + m)[None, :], axis=1)
    m, _ = rs.scan(step, sequences=log_b, outputs_info=rs.zeros_like(log_b[0]), go_backwards=True)
    i = hmm()
    call([log_a, log_b], rs.logsumexp(m[-1]), [log_a, log_b], [i["logA"], i["logB"]])


def roots_of_rows():
    """Newton's method for each of several numbers, each until it is there, and its gradient."""
    x = rs.dvector("x")
    step = lambda a, y: ((y + a / y) / 2, rs.until(abs(y * y - a) < 1e-9))
    root = lambda a: rs.loop(lambda y: step(a, y), init=1.0 + 0 * a, n_steps=30).last
    call([x], rs.sum(rs.vmap(root)(x)), [x], [np.array([2.0, 3.0, 10.0])])


def rows_of_own_lengths():
    x, n = rs.dmatrix("x"), rs.lvector("n")
    decayed = lambda x, n: rs.loop(lambda x, h: rs.tanh(h) + x, over=x, init=0.0, n_steps=n).last
    rs.function([x, n], rs.vmap(decayed)(x, n))(normal(4, N, dtype="float64"), np.array([3, N, 0, 7]))


def walks_that_end():
    x, w = rs.dmatrix("x"), rs.dmatrix("w")
    walk = lambda x: rs.loop(lambda h: (rs.sin(h @ w) + h, rs.until(rs.sum(h) > 2)), init=x, n_steps=20).last
    rs.function([x, w], rs.vmap(walk)(x))(normal(4, 3, dtype="float64") ** 2, np.eye(3) / 2)


#: By name.
SHOWN = {
    f.__name__: f
    for f in (
        unrolled, merged, merged_maps, equal_states, equal_states_of_three, equal_states_with_gradient, unused_states, invariant, summed,
        accumulated_products, read_out, read_out_of_vectors, read_out_until, array_operations, array_operations_on_vectors,
        sums_of_exponentials, gates, gates_of_batches, two_readings, two_systems, filter_of_known_extents, inverse_and_system,
        chain_of_states, messages_backwards, roots_of_rows, rows_of_own_lengths, walks_that_end,
    )
}  # fmt: skip
