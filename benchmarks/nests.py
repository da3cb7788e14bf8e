"""Thirteen classes of loops beside the best C that is known for each: `python nests.py [--cpu 0] [--only NAME …] [--text DIR]`.

Each program is written as a reader of the manual would write it. Its values are compared with those of NumPy in float64, gradients
with finite differences of these, before anything is timed. A time is the best of many short rounds on one core, to which the process
pins itself, in seconds of the processor: those of the clock, less what other programs took of the core meanwhile. Functions are called as
users call them: arrays of NumPy's go in, new ones come out, value and gradient together.

The figures of C are those of one machine: a Zen 4 with AVX-512 at 3.6 GHz, intrinsics where the compiler did not see it, buffers
allocated before, checked for values. Ratios mean something on a core of that kind and clock; the first lines say which one this is,
and how long a chain of dependent multiplications and additions takes (a Zen 4 at 3.6 GHz: 1.1 ns a step where they are fused, 1.7
where they are not). The C of the recurrent nets has no room for products of inputs and weights: inputs come multiplied. That of the
particle filter counts places that are equally far apart; with a search for any places it takes 2,030 µs. Collatz is int64; all else
is float64 where f32 is not said.

Prints a table, the worst ratio, and whether all are at most 2.5; exits with 1 where one is not.
"""

import argparse
import os
import pathlib
import sys
import time
import timeit
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import rscan as rs
from models.integers import CollatzLanes
from models.searches import ViterbiBackTrace

MOST = 2.5
#: Two of the programs are models of the corpus.
VITERBI, COLLATZ = ViterbiBackTrace(), CollatzLanes()


@dataclass
class Program:
    """One row: what makes its arguments, and the functions for a size, rscan's and NumPy's; of gradients NumPy has the value alone."""

    name: str
    what: str  # what is computed: values forward, or a derivative
    c: float  # the best C, µs
    size: dict[str, int]
    checked: list[dict[str, int]]  # sizes at which values are compared
    make: Callable[..., tuple]
    ours: Callable[..., Callable]
    twin: Callable[..., Callable]
    wrt: tuple[int, ...] = ()
    rtol: float = 1e-9


def f4(a):
    return np.asarray(a, "float32")


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def logsumexp(x, axis=None):
    top = np.max(x, axis=axis, keepdims=True)
    return np.squeeze(top, axis=axis) + np.log(np.sum(np.exp(x - top), axis=axis))


# Linear attention: the state sums outer products of keys and values


def attention_make(random, steps, d):
    return tuple(f4(random.normal(size=(steps, d)) / np.sqrt(d)) for _ in range(3))


def attention(q, k, v):
    def step(q, k, v, S):
        S = S + rs.outer(k, v)
        return dict(S=S, y=q @ S)

    d = q.shape[1]
    return rs.loop(step, over=dict(q=q, k=k, v=v), init=dict(S=rs.zeros((d, d), dtype="float32"))).y


def attention_twin(q, k, v):
    return np.einsum("td,tde->te", q, np.cumsum(k[:, :, None] * v[:, None, :], axis=0))


# A selective state space model (Mamba): D channels of N states, steps that depend on the input


def ssm_make(random, steps, d, n):
    dt = np.log1p(np.exp(random.normal(size=(steps, d)) - 2))
    return f4(-np.exp(random.normal(size=(d, n)))), f4(dt), *(f4(random.normal(size=(steps, k))) for k in (d, n, n))


def ssm(A, dt, x, B, C):
    def step(dt, x, B, C, h):
        h = rs.exp(dt[:, None] * A) * h + (dt * x)[:, None] * B[None, :]
        return dict(h=h, y=h @ C)

    return rs.loop(step, over=dict(dt=dt, x=x, B=B, C=C), init=dict(h=rs.zeros_like(A))).y


def ssm_twin(A, dt, x, B, C):
    h, y = np.zeros(A.shape), []
    for dt_t, x_t, B_t, C_t in zip(dt, x, B, C, strict=True):
        h = np.exp(dt_t[:, None] * A) * h + (dt_t * x_t)[:, None] * B_t
        y.append(h @ C_t)
    return np.array(y)


# The most likely path of a hidden Markov model: back pointers forwards, then the path backwards


def viterbi_twin(A, B):
    v, back = B[0], []
    for b in B[1:]:
        scores = v[:, None] + A
        v = scores.max(axis=0) + b
        back.append(scores.argmax(axis=0))
    path = [v.argmax()]
    for pointers in back[::-1]:
        path.append(pointers[path[-1]])
    return v.max(), np.array(path[::-1])


# Heat in a plane with fixed edges


def heat_make(random, n, steps):
    return random.uniform(size=(n, n)), 0.2


def heat(u, c, steps):
    def step(u):
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
        return u.at[1:-1, 1:-1].add(c * around)

    return rs.loop(step, init=u, n_steps=steps)[-1]


def heat_twin(u, c, steps):
    u = u.copy()
    for _ in range(steps):
        u[1:-1, 1:-1] += c * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1])
    return u


# Collatz: halve or triple and add one, in lanes, until all are 1; how long each takes


def collatz_twin(start):
    n, count, steps = start, np.zeros_like(start), 0
    while steps == 0 or np.any(n != 1):
        going = n != 1
        n, count, steps = np.where(going, np.where(n % 2 == 0, n // 2, 3 * n + 1), n), count + going, steps + 1
    return count, np.int64(steps)


# The Jacobian of a recurrent net's last state by its first


def jacobian_make(random, hidden, steps):
    return 0.1 * random.normal(size=hidden), random.normal(size=(hidden, hidden)) / np.sqrt(hidden)


def jacobian(h0, W, steps):
    return rs.jacobian(rs.loop(lambda h: rs.tanh(W @ h), init=h0, n_steps=steps)[-1], h0)


def jacobian_twin(h0, W, steps):
    h, J = h0, np.eye(len(h0))
    for _ in range(steps):
        h = np.tanh(W @ h)
        J = (1 - h**2)[:, None] * (W @ J)
    return J


# Soft dynamic time warping: a loop over columns in a loop over rows


def dtw_make(random, n):
    return random.normal(size=n), random.normal(size=n), 0.5


def dtw(x, y, gamma):
    cost = (x[:, None] - y[None, :]) ** 2
    n, far = y.shape[0], 1e10

    def row(cost, before):
        def cell(d, up, corner, left):
            return d - gamma * rs.logsumexp(rs.stack([up, corner, left]) / -gamma)

        r = rs.loop(cell, over=[cost, before[1:], before[:-1]], init=rs.constant(far))
        return rs.concatenate([[far], r])

    return rs.loop(row, over=cost, init=rs.concatenate([[0.0], rs.full(n, far)]))[-1, -1]


def dtw_twin(x, y, gamma):
    R = np.full((len(x) + 1, len(y) + 1), 1e10)
    R[0, 0] = 0.0
    for i, a in enumerate(x):
        for j, b in enumerate(y):
            near = np.array([R[i, j + 1], R[i, j], R[i + 1, j]])
            R[i + 1, j + 1] = (a - b) ** 2 - gamma * logsumexp(near / -gamma)
    return R[-1, -1]


# A bootstrap filter of a stochastic growth model with given noise; systematic resampling


def filter_make(random, particles, steps):
    return random.normal(size=steps), random.normal(size=(steps, particles)), random.uniform(size=steps), random.normal(size=particles)


def searched(places, weights):
    return rs.searchsorted(rs.cumsum(weights), places)


def compared(places, weights):
    return rs.sum(places[:, None] > rs.cumsum(weights)[None, :], axis=1)


def particle_filter(resample):
    def f(y, noise, u, x0):
        particles = x0.shape[0]

        def step(y, noise, u, x):
            x = 0.5 * x + 2 * x / (1 + x**2) + noise
            logw = -0.5 * (y - x**2 / 20) ** 2
            top = rs.max(logw)
            w = rs.exp(logw - top)
            total = rs.sum(w)
            mean = rs.sum(w * x) / total
            chosen = resample((rs.arange(particles) + u) / particles, w / total)
            return dict(x=x[rs.minimum(chosen, particles - 1)], mean=mean, loglik=top + rs.log(total / particles))

        out = rs.loop(step, over=dict(y=y, noise=noise, u=u), init=dict(x=x0))
        return out.mean, rs.sum(out.loglik)

    return f


def filter_twin(y, noise, u, x):
    n, means, loglik = len(x), [], 0.0
    for y_t, noise_t, u_t in zip(y, noise, u, strict=True):
        x = 0.5 * x + 2 * x / (1 + x**2) + noise_t
        logw = -0.5 * (y_t - x**2 / 20) ** 2
        w = np.exp(logw - logw.max())
        means.append(np.sum(w * x) / w.sum())
        loglik += logw.max() + np.log(w.sum() / n)
        x = x[np.minimum(np.searchsorted(np.cumsum(w / w.sum()), (np.arange(n) + u_t) / n), n - 1)]
    return np.array(means), loglik


# The Lorenz system by Runge and Kutta


def lorenz_make(random, steps):
    return np.array([10.0, 28.0, 8 / 3]), random.normal(size=3)


def rk4(slope, s, h):
    """A step of the classical Runge-Kutta method; on either side."""
    k1 = slope(s)
    k2 = slope(s + h / 2 * k1)
    k3 = slope(s + h / 2 * k2)
    return s + h / 6 * (k1 + 2 * k2 + 2 * k3 + slope(s + h * k3))


def lorenz_slope(stack, p, s):
    x, y, z = s[0], s[1], s[2]
    return stack([p[0] * (y - x), x * (p[1] - z) - y, x * y - p[2] * z])


def lorenz(p, s0, steps):
    return rs.loop(lambda s: rk4(lambda s: lorenz_slope(rs.stack, p, s), s, 0.005), init=s0, n_steps=steps)[-1]


def lorenz_twin(p, s, steps):
    for _ in range(steps):
        s = rk4(lambda s: lorenz_slope(np.stack, p, s), s, 0.005)
    return s


# Gated recurrent units: of a batch, whose inputs and states are rows, and of one sequence. Inputs come multiplied by their weights


def gru_make(random, steps, batch, hidden):
    W, a = random.normal(size=(hidden, 3 * hidden)) / np.sqrt(hidden), random.normal(size=(steps, batch, 3 * hidden))
    return f4(W), f4(a), f4(random.normal(size=(batch, hidden)))


def gru(W, a, h0):
    def step(a, h):
        az, ar, an = rs.split(a, 3, axis=-1)
        bz, br, bn = rs.split(h @ W, 3, axis=-1)
        z = rs.sigmoid(az + bz)
        return (1 - z) * rs.tanh(an + rs.sigmoid(ar + br) * bn) + z * h

    return rs.loop(step, over=a, init=h0)[-1]


def gru_twin(W, a, h0):
    h = h0
    for a_t in a:
        (az, ar, an), (bz, br, bn) = np.split(a_t, 3, axis=-1), np.split(h @ W, 3, axis=-1)
        z = sigmoid(az + bz)
        h = (1 - z) * np.tanh(an + sigmoid(ar + br) * bn) + z * h
    return h


def gru_one_make(random, steps, hidden):
    W, a, h = gru_make(random, steps, 1, hidden)
    return W, a[:, 0], h[0]


# The likelihood of a hidden Markov model, by transitions and by the likelihoods of what is seen


def hmm_make(random, states, steps):
    return random.dirichlet(np.ones(states), size=states), random.uniform(0.1, 1.0, size=(steps, states))


def hmm_log_make(random, states, steps):
    return tuple(np.log(a) for a in hmm_make(random, states, steps))


def hmm_scaled(A, B):
    def step(b, p):
        p = (p @ A) * b
        total = rs.sum(p)
        return dict(p=p / total, ll=rs.log(total))

    states = A.shape[0]
    return rs.sum(rs.loop(step, over=dict(b=B), init=dict(p=rs.ones(states) / states)).ll)


def hmm_log(A, B):
    states = A.shape[0]
    a = rs.loop(lambda b, a: b + rs.logsumexp(a[:, None] + A, axis=0), over=B, init=rs.zeros(states) - rs.log(states))[-1]
    return rs.logsumexp(a)


def hmm_scaled_twin(A, B):
    p, ll = np.full(len(A), 1 / len(A)), 0.0
    for b in B:
        p = (p @ A) * b
        ll, p = ll + np.log(p.sum()), p / p.sum()
    return ll


def hmm_log_twin(A, B):
    return hmm_scaled_twin(np.exp(A), np.exp(B))


# A map in lanes that counts how many numbers of a table lie below each lane. It is chaotic, hence compared over ten steps


def ranks_make(random, n, steps):
    return random.uniform(size=n), np.sort(random.uniform(size=n))


def ranks(u, c, steps):
    n = c.shape[0]

    def step(u):
        rank = rs.sum(u[:, None] > c[None, :], axis=-1)
        return 3.9 * u * (1 - u) * (0.9 + 0.1 * rank / n)

    return rs.loop(step, init=u, n_steps=steps)[-1]


def ranks_twin(u, c, steps):
    for _ in range(steps):
        u = 3.9 * u * (1 - u) * (0.9 + 0.1 * np.sum(u[:, None] > c[None, :], axis=-1) / len(c))
    return u


def plain(f):
    """What makes the compiled function of one that needs no size."""
    return lambda **size: rs.compile(f)


def stepped(f):
    """Likewise of one whose last argument is its number of steps."""
    return lambda steps, **size: rs.compile(lambda *args: f(*args, steps))


def slopes(loss, wrt):
    """Value and gradient of a loss, in a function that no other size has been given to."""
    return lambda **size: rs.value_and_grad(lambda *args: loss(*args), wrt=wrt)


def stepped_slopes(loss, wrt):
    return lambda steps, **size: rs.value_and_grad(lambda *args: loss(*args, steps), wrt=wrt)


def twin(f):
    return lambda **size: f


def stepped_twin(f):
    return lambda steps, **size: lambda *args: f(*args, steps)


def squares(f):
    return lambda *args: (f(*args) ** 2).sum()


def programs():
    """All rows, in the order of the table."""
    name, size, small = "linear attention f32, T 256, D 48", dict(steps=256, d=48), dict(steps=5, d=3)
    loss, loss_twin, wrt = squares(attention), squares(attention_twin), (0, 1, 2)
    yield Program(name, "forward", 30, size, [small, size], attention_make, plain(attention), twin(attention_twin), rtol=1e-4)
    yield Program(name, "gradient", 113, size, [small], attention_make, slopes(loss, wrt), twin(loss_twin), wrt, rtol=1e-3)

    name, size, small = "selective SSM f32, D 64, N 16, T 512", dict(steps=512, d=64, n=16), dict(steps=5, d=3, n=2)
    loss, loss_twin, wrt = squares(ssm), squares(ssm_twin), (0, 1, 2, 3, 4)
    yield Program(name, "forward", 123, size, [small, size], ssm_make, plain(ssm), twin(ssm_twin), rtol=1e-4)
    yield Program(name, "gradient", 268, size, [small], ssm_make, slopes(loss, wrt), twin(loss_twin), wrt, rtol=1e-3)

    name, size, small = "Viterbi, S 48, T 1000, with back trace", dict(steps=1000, states=48), dict(steps=6, states=3)
    yield Program(name, "forward", 162, size, [small, size], VITERBI.make, VITERBI.rscan, twin(viterbi_twin))

    name, size, small = "heat 256², 100 steps", dict(n=256, steps=100), dict(n=7, steps=5)
    yield Program(name, "forward", 968, size, [small, size], heat_make, stepped(heat), stepped_twin(heat_twin))

    name, size, small = "Collatz, 5,000 lanes until all are 1", dict(lanes=5000), dict(lanes=9)
    yield Program(name, "forward", 141, size, [small, size], COLLATZ.make, COLLATZ.rscan, twin(collatz_twin))

    name, size, small = "Jacobian of 50 tanh(Wh) steps, 32", dict(hidden=32, steps=50), dict(hidden=3, steps=4)
    yield Program(name, "Jacobian", 62, size, [small, size], jacobian_make, stepped(jacobian), stepped_twin(jacobian_twin))

    name, size, small = "soft-DTW, n 120", dict(n=120), dict(n=5)
    yield Program(name, "forward", 50, size, [small, size], dtw_make, plain(dtw), twin(dtw_twin))
    yield Program(name, "gradient", 65, size, [small], dtw_make, slopes(dtw, (0,)), twin(dtw_twin), (0,), rtol=1e-6)

    name, size, few = "particle filter, N 1000, T 300", dict(particles=1000, steps=300), dict(particles=1000, steps=5)
    for way, resample in ("searchsorted", searched), ("comparing all", compared):
        ours = plain(particle_filter(resample))
        yield Program(f"{name}, {way}", "forward", 634, size, [dict(particles=5, steps=4), few], filter_make, ours, twin(filter_twin))

    name, size, small, wrt = "RK4 of Lorenz, 1,000 steps", dict(steps=1000), dict(steps=5), (0, 1)
    yield Program(name, "forward", 14, size, [small, size], lorenz_make, stepped(lorenz), stepped_twin(lorenz_twin))
    loss, loss_twin = stepped_slopes(squares(lorenz), wrt), stepped_twin(squares(lorenz_twin))
    yield Program(name, "gradient", 33, size, [small], lorenz_make, loss, loss_twin, wrt, rtol=1e-6)

    name, wrt = "GRU f32, B 32, H 96, 50 steps", (0, 1, 2)
    size, small = dict(steps=50, batch=32, hidden=96), dict(steps=3, batch=2, hidden=3)
    yield Program(name, "forward", 907, size, [small, size], gru_make, plain(gru), twin(gru_twin), rtol=1e-4)
    loss, loss_twin = slopes(squares(gru), wrt), twin(squares(gru_twin))
    yield Program(name, "gradient", 2845, size, [small], gru_make, loss, loss_twin, wrt, rtol=1e-3)

    name, size, small = "GRU f32, B 1, H 256, 50 steps", dict(steps=50, hidden=256), dict(steps=3, hidden=3)
    yield Program(name, "forward", 413, size, [small, size], gru_one_make, plain(gru), twin(gru_twin), rtol=1e-4)

    name, size, small, wrt = "HMM, S 32, T 1000", dict(states=32, steps=1000), dict(states=3, steps=5), (0, 1)
    loss, loss_twin = slopes(hmm_scaled, wrt), twin(hmm_scaled_twin)
    yield Program(f"{name}, scaled", "gradient", 149, size, [small], hmm_make, loss, loss_twin, wrt, rtol=1e-6)
    loss, loss_twin = slopes(hmm_log, wrt), twin(hmm_log_twin)
    yield Program(f"{name}, log-space", "gradient", 202, size, [small], hmm_log_make, loss, loss_twin, wrt, rtol=1e-6)

    name, size = "Σ of u[:,None] > c[None,:] over the last axis, 300², 100 steps", dict(n=300, steps=100)
    few = [dict(n=4, steps=3), dict(n=300, steps=10)]
    yield Program(name, "forward", 409, size, few, ranks_make, stepped(ranks), stepped_twin(ranks_twin))


def near(found, expected, rtol, where):
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape, f"{where}: the shape is {found.shape}, and {expected.shape} is expected"
    if expected.dtype.kind in "iub":
        assert np.array_equal(found, expected), f"{where}: integers differ"
        return
    error, scale = np.max(np.abs(found - expected)), np.max(np.abs(expected))
    assert error <= rtol * scale, f"{where}: wrong by {error:.3g}, the largest value is {scale:.3g}"


def differences(value, args, wrt, width=1e-6):
    """The gradients of a function of arrays, by central differences."""
    found = []
    for k in wrt:
        slope = np.zeros(np.shape(args[k]))
        for place in np.ndindex(slope.shape):
            sides = []
            for sign in (1, -1):
                moved = np.array(args[k], "float64")
                moved[place] += sign * width
                sides.append(value(*args[:k], moved, *args[k + 1 :]))
            slope[place] = (sides[0] - sides[1]) / (2 * width)
        found.append(slope)
    return found


def check(program, size):
    """Asserts that a program has the values of its twin, in float64, at a size."""
    args = program.make(np.random.default_rng(1234), **size)
    wide = [a.astype("float64") if getattr(a, "dtype", None) == np.float32 else a for a in args]
    value = program.twin(**size)
    found, where = program.ours(**size)(*args), f"{program.name}, {program.what}, at {size}"
    if not program.wrt:
        found, expected = (v if isinstance(v, tuple) else (v,) for v in (found, value(*wide)))
    else:
        found = (found[0], *(found[1] if isinstance(found[1], (tuple, list)) else found[1:]))
        expected = (value(*wide), *differences(value, wide, program.wrt))
    assert len(found) == len(expected), f"{where}: {len(found)} results, and {len(expected)} are expected"
    for a, b in zip(found, expected, strict=True):
        near(a, b, program.rtol, where)


def best(call, seconds):
    """Microseconds per call: the best of rounds so short that other programs leave some of them alone."""
    timer = timeit.Timer(call, timer=time.process_time)
    n = 1
    while (spent := min(timer.repeat(3, n))) < 0.0005:
        n *= 2
    return min(timer.repeat(max(5, int(seconds / spent)), n)) / n * 1e6


def machine():
    """The name and clock of the processor, as the system tells them."""
    told = {}
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            told.setdefault(key.strip(), value.strip())
    except OSError:
        pass
    avx = "AVX-512" if "avx512f" in told.get("flags", "").split() else "no AVX-512"
    return f"{told.get('model name', 'a processor without a name')}, {told.get('cpu MHz', '?')} MHz by /proc/cpuinfo, {avx}"


def chain(seconds):
    """Nanoseconds per step of a chain of dependent multiplications and additions, in which nothing but their latency counts."""
    f = rs.compile(lambda a, b, x: rs.loop(lambda x: a * x + b, init=x, n_steps=100_000).last)
    f(0.5, 1.0, 1.0)
    return best(lambda: f(0.5, 1.0, 1.0), seconds) / 100


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cpu", type=int, default=0, help="the core to run on")
    parser.add_argument("--only", nargs="+", default=[""], help="rows whose names contain one of these words")
    parser.add_argument("--seconds", type=float, default=0.5, help="of timing, per row and pass")
    parser.add_argument("--passes", type=int, default=3, help="over all rows; the best counts")
    parser.add_argument("--text", type=pathlib.Path, help="a folder for what explain() and plan() say")
    options = parser.parse_args()
    os.sched_setaffinity(0, {options.cpu})
    print(f"{machine()}\na chain of multiplications and additions: {chain(options.seconds):.2f} ns a step\n", flush=True)

    rows = [p for p in programs() if any(word in f"{p.name}, {p.what}" for word in options.only)]
    calls, times = [], np.full(len(rows), np.inf)
    for k, p in enumerate(rows):
        for size in p.checked:
            check(p, size)
        f, args = p.ours(**p.size), p.make(np.random.default_rng(1234), **p.size)
        f(*args)
        calls.append(lambda f=f, args=args: f(*args))
        if options.text:
            for kind in ("explain", "plan"):
                (options.text / f"{k:02}_{p.what}.{kind}.txt").write_text(f"{p.name}\n{getattr(f, kind)()}\n")
    for _ in range(options.passes):
        times = [min(t, best(call, options.seconds)) for t, call in zip(times, calls, strict=True)]

    print("| program | | rscan, µs | best C, µs | ratio |\n|---|---|---|---|---|")
    for p, t in zip(rows, times, strict=True):
        print(f"| {p.name} | {p.what} | {t:,.0f} | {p.c:,} | {t / p.c:.2f} |")
    worst = max(t / p.c for p, t in zip(rows, times, strict=True))
    above = sum(t / p.c > MOST for p, t in zip(rows, times, strict=True))
    print(f"the worst ratio is {worst:.2f}: " + (f"{above} of {len(rows)} are above {MOST}" if above else f"all are at most {MOST}"))
    sys.exit(above > 0)


if __name__ == "__main__":
    main()
