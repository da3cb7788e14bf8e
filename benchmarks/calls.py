"""What a call of a compiled function costs besides its computation: `python calls.py [--markdown]`.

Each function is as small as can be; figures are the best of several rounds, in microseconds per call, beside jax.jit where jax
is installed (on NumPy arguments, its results waited for and made into NumPy arrays, which costs it no copy on the CPU).
"""
import argparse, functools, os, sys, timeit

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_X64", "1")
import numpy as np
import rscan as rs

SIZES = {"1 KiB": 1 << 7, "64 KiB": 1 << 13, "1 MiB": 1 << 17, "8 MiB": 1 << 20, "64 MiB": 1 << 23}


def best(call, rounds=200, seconds=0.001):
    """Microseconds per call: the best of many rounds so short that other programs leave some of them alone."""
    timer = timeit.Timer(call)
    call()
    n = 1
    while (spent := min(timer.repeat(3, n))) < seconds / 2:
        n *= 2
    rounds = max(5, min(rounds, int(1.0 / spent)))
    return min(timer.repeat(rounds, n)) / n * 1e6


def jitted():
    """jax.jit, or None; with gradients where that is asked for. All of a result becomes arrays of NumPy's."""
    try:
        import jax
    except ImportError:
        return None
    arrays = functools.partial(jax.tree.map, np.asarray)

    def made(f, gradient=False):
        compiled = jax.jit(jax.value_and_grad(f) if gradient else f)
        return lambda *args: arrays(compiled(*args))

    return made


def gate(x, h, w, b):
    g = rs.sigmoid(w * h + b * x)
    return g * h + (1 - g) * x


def loops():
    """What a loop costs beside its steps: a step of four vectors alone, and in loops of few steps."""
    h, w, b = vectors = [rs.vector(name) for name in "hwb"]
    one, many = rs.vector("x"), rs.matrix("x")
    step = rs.function([one, *vectors], gate(one, h, w, b))
    loop = rs.function([many, *vectors], rs.scan(gate, sequences=many, outputs_info=h, non_sequences=[w, b])[0])
    values = np.random.default_rng(0).standard_normal((13, 20))
    yield "a step on 4 vectors of 20", best(lambda x=values[3]: step(x, *values[:3]))
    for n in (1, 10):
        yield f"{n} such step{'s' * (n > 1)} as a loop", best(lambda x=values[3 : 3 + n]: loop(x, *values[:3]))


def structures(jit):
    """What `rs.compile` and `rs.value_and_grad` make, of a dict and a number."""
    given = {"x": np.linspace(0.0, 1.0, 4), "w": np.eye(4)}, 2.0
    cost = lambda p, s: ((p["x"] @ p["w"]) * p["x"]).sum() * s
    value, both = rs.compile(cost), rs.value_and_grad(cost)
    yield "a dict of 2 arrays, and a float -> number", best(lambda: value(*given)), jit and best(lambda f=jit(cost): f(*given))
    yield "the same -> number and gradient", best(lambda: both(*given)), jit and best(lambda f=jit(cost, gradient=True): f(*given))


def rows():
    jit = jitted()
    jax = (lambda f, *args: best(lambda g=jit(f): g(*args))) if jit else (lambda f, *args: None)
    for k in range(1, 6):
        xs = [rs.scalar(f"x{i}") for i in range(k)]
        f = rs.function(xs, xs[0] * 2.0, on_unused_input="ignore")
        numbers, zero = [1.5] * k, [np.array(1.5)] * k
        yield f"{k} Python floats -> scalar", best(lambda: f(*numbers)), jax(lambda *a: a[0] * 2.0, *numbers)
        yield f"{k} arrays of rank 0 -> scalar", best(lambda: f(*zero)), jax(lambda *a: a[0] * 2.0, *zero)
    x, y = rs.scalar("x"), rs.scalar("y")
    f = rs.function([x, y], x * 2.0, on_unused_input="ignore")
    bound = f.bind(y=1.0)
    yield "1 float, another fixed by bind", best(lambda: bound(1.5)), None
    yield "2 floats by name", best(lambda: f(x=1.5, y=1.0)), jax(lambda x, y: x * 2.0, 1.5, 1.0)
    yield from structures(jit)
    for name, spent in loops():
        yield name, spent, None
    v = rs.vector("v")
    first, same = rs.function([v], v[0]), rs.function([v], v)
    for name, n in SIZES.items():
        a = np.arange(float(n))
        yield f"{name} in, scalar out", best(lambda: first(a)), jax(lambda v: v[0], a)
    for name, n in SIZES.items():
        a, buffer = np.arange(float(n)), np.empty(n)
        yield f"{name} in, a copy out", best(lambda: same(a)), jax(lambda v: v + 0.0, a)
        yield f"{name} in, into out=", best(lambda: same(a, out=buffer)), None
        yield f"{name}: numpy.copy", best(lambda: np.copy(a)), None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--markdown", action="store_true", help="a table for docs/performance.md")
    markdown = parser.parse_args().markdown
    if markdown:
        print("| call | rscan, µs | jax.jit, µs |\n|---|---|---|")
    for name, ours, theirs in rows():
        other = "–" if theirs is None else f"{theirs:.3g}"
        print(f"| {name} | {ours:.3g} | {other} |" if markdown else f"{name:34} {ours:10.2f} {other:>10}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
