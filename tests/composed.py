"""Transforms of transforms of loops: 40 programs, ten transforms, each of each, against finite differences and, where it is installed, JAX.

    PYTHONPATH=tests python -m composed                # every pair for every program, some minutes
    PYTHONPATH=tests python -m composed --jax 4        # and four pairs a program against JAX

A program is a function of a structure of parameters (an array, a dict, a tuple, a named tuple, a nested dict) that gives a vector, written
for both libraries. A transform makes of such a function another one, whose vector holds all that the transform gives.
"""

import argparse
import collections
import itertools
import random
import sys
import time

import numpy as np

import rscan as rs

Pair = collections.namedtuple("Pair", "a b")
XS = np.linspace(-1.0, 1.0, 6)
ROWS = np.sin(np.arange(12.0)).reshape(6, 2)


class Rscan:
    """The words that programs and transforms are written in, for rscan."""

    np = rs
    grad, value_and_grad, jacobian, hessian, vmap = rs.grad, rs.value_and_grad, rs.jacobian, rs.hessian, rs.vmap
    jvp, sigmoid = rs.jvp, rs.sigmoid

    @staticmethod
    def vjp(f, x, w):
        return rs.vjp(f, x)[1](w)[0]

    @staticmethod
    def hvp(f, x, v):
        return rs.hvp(f, (x,), (v,))[0]

    @staticmethod
    def scan(step, carry, xs, reverse=False):
        def named(x, c):
            c, y = step(c, x)
            return {"c": c, "y": y}

        out = rs.loop(named, over={"x": xs}, init={"c": carry}, reverse=reverse)
        return out.last.c, out.y


class Jax:
    """The same for JAX."""

    def __init__(self):
        import jax
        import jax.numpy as jnp

        jax.config.update("jax_enable_x64", True)
        self.np, self.sigmoid, self.jax = jnp, jax.nn.sigmoid, jax
        self.grad, self.value_and_grad, self.jacobian, self.hessian = jax.grad, jax.value_and_grad, jax.jacrev, jax.hessian
        self.vmap, self.jvp = jax.vmap, jax.jvp

    def vjp(self, f, x, w):
        return self.jax.vjp(f, x)[1](w)[0]

    def hvp(self, f, x, v):
        return self.jax.jvp(self.jax.grad(f), (x,), (v,))[1]

    def scan(self, step, carry, xs, reverse=False):
        return self.jax.lax.scan(step, carry, xs, reverse=reverse)


def _leaves(tree):
    """Values of a structure, in the order of its keys, sorted as JAX sorts them."""
    if isinstance(tree, dict):
        return [leaf for key in sorted(tree) for leaf in _leaves(tree[key])]
    if isinstance(tree, (tuple, list)):
        return [leaf for item in tree for leaf in _leaves(item)]
    return [tree]


def _map(function, tree):
    if isinstance(tree, dict):
        return {key: _map(function, item) for key, item in tree.items()}
    if isinstance(tree, (tuple, list)):
        items = [_map(function, item) for item in tree]
        return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
    return function(tree)


def flat(lib, tree):
    """All values of a structure as one vector."""
    return lib.np.concatenate([lib.np.reshape(leaf, (-1,)) for leaf in _leaves(tree)])


def weights(n):
    return np.cos(1.0 + np.arange(n))


def directions(tree):
    """A fixed direction of the kind of the parameters."""
    count = itertools.count()
    return _map(lambda leaf: np.reshape([np.sin(2.0 + next(count)) for _ in range(int(np.prod(leaf.shape)))], leaf.shape), tree)


# Transforms: of (lib, function of p, p as arrays that tell shapes, length of what the function gives) to (function, length).


def scalar(lib, h, m):
    return lambda p: lib.np.sum(h(p) * weights(m))


def _size(like):
    return sum(int(np.prod(leaf.shape)) for leaf in _leaves(like))


def t_grad(lib, h, like, m):
    return lambda p: flat(lib, lib.grad(scalar(lib, h, m))(p)), _size(like)


def t_value_and_grad(lib, h, like, m):
    def both(p):
        value, slope = lib.value_and_grad(scalar(lib, h, m))(p)
        return lib.np.concatenate([lib.np.reshape(value, (1,)), flat(lib, slope)])

    return both, _size(like) + 1


def t_argnums(lib, h, like, m):
    """By two arguments, of which the second scales the result."""

    def both(p):
        two = lib.grad(lambda p, s: scalar(lib, h, m)(p) * s**2, argnums=(1, 0))(p, 0.5 + 0.1 * lib.np.sum(_leaves(p)[0]))
        return lib.np.concatenate([lib.np.reshape(two[0], (1,)), flat(lib, two[1])])

    return both, _size(like) + 1


def t_has_aux(lib, h, like, m):
    def both(p):
        slope, aux = lib.grad(lambda p: (scalar(lib, h, m)(p), {"all": h(p)}), has_aux=True)(p)
        return lib.np.concatenate([flat(lib, slope), aux["all"]])

    return both, _size(like) + m


def t_jacobian(lib, h, like, m):
    return lambda p: flat(lib, lib.jacobian(h)(p)), _size(like) * m


def t_hessian(lib, h, like, m):
    return lambda p: flat(lib, lib.hessian(scalar(lib, h, m))(p)), _size(like) ** 2


def t_jvp(lib, h, like, m):
    v = directions(like)

    def both(p):
        value, slope = lib.jvp(h, (p,), (v,))
        return lib.np.concatenate([value, slope])

    return both, 2 * m


def t_vjp(lib, h, like, m):
    return lambda p: flat(lib, lib.vjp(h, p, weights(m))), _size(like)


def t_hvp(lib, h, like, m):
    v = directions(like)
    return lambda p: flat(lib, lib.hvp(scalar(lib, h, m), p, v)), _size(like)


def t_vmap(lib, h, like, m):
    def rows(p):
        return lib.np.reshape(lib.vmap(h)(_map(lambda leaf: lib.np.stack([leaf, 0.9 * leaf, leaf**2]), p)), (-1,))

    return rows, 3 * m


TRANSFORMS = {name[2:]: made for name, made in list(globals().items()) if name.startswith("t_")}

# Programs.

PROGRAMS = {}


def program(start, jax=True):
    def add(fn):
        PROGRAMS[fn.__name__] = (fn, start, jax)
        return fn

    return add


V, S = np.array([0.3, -0.4]), np.array(0.7)
M = np.array([[0.2, -0.3], [0.4, 0.1]])


@program(V)
def smoother(lib, p):
    last, _ = lib.scan(lambda c, x: (p[0] * c + p[1] * x,) * 2, 0.5 * p[0], XS)
    return lib.np.stack([last, last**2])


@program({"a": S, "b": V})
def all_rows(lib, p):
    _, rows = lib.scan(lambda c, x: (lib.np.tanh(p["a"] * c + p["b"] * x),) * 2, p["b"], XS)
    return lib.np.sum(rows**2, axis=0)


@program({"w": M, "h": V})
def rnn(lib, p):
    last, rows = lib.scan(lambda h, x: (lib.np.tanh(h @ p["w"] + x),) * 2, p["h"], ROWS)
    return last + rows[2]


@program((V, S))
def garch(lib, p):
    a, b, c = p[0][0] ** 2, p[0][1] ** 2, p[1]
    _, s = lib.scan(lambda s, x: (c**2 + a * x**2 + b * s,) * 2, 1.0 + a, XS)
    return lib.np.stack([lib.np.sum(lib.np.log(s) + XS**2 / s), s[-1]])


@program(Pair(S, V))
def two_states(lib, p):
    def step(c, x):
        u, v = c
        u, v = u + 0.1 * v * p.a, v - 0.1 * lib.np.sin(u) + x * p.b[0]
        return (u, v), u * v

    (u, v), rows = lib.scan(step, (p.a, p.b[1]), XS)
    return lib.np.stack([u + rows[1], v])


@program(V)
def backwards(lib, p):
    _, rows = lib.scan(lambda c, x: (p[0] * c + lib.np.exp(p[1] * x),) * 2, p[1], XS, reverse=True)
    return rows[:3]


@program({"a": S})
def logistic_map(lib, p):
    last, _ = lib.scan(lambda c, x: ((3 + p["a"] * 0.1) * c * (1 - c),) * 2, 0.3 + 0.1 * p["a"], XS)
    return lib.np.stack([last, p["a"]])


@program(V)
def nested_loop(lib, p):
    def step(c, x):
        inner, _ = lib.scan(lambda d, y: (lib.np.sin(d * p[0] + y * p[1]),) * 2, c + x, XS[:3])
        return inner, inner * x

    last, rows = lib.scan(step, p[1], XS)
    return lib.np.stack([last, lib.np.sum(rows)])


@program({"a": V, "c": {"d": S}})
def nested_dict(lib, p):
    last, _ = lib.scan(lambda c, x: (c * p["c"]["d"] + lib.np.cos(p["a"] * x),) * 2, p["a"], XS)
    return last * p["c"]["d"]


@program(M)
def matrix_power(lib, p):
    last, _ = lib.scan(lambda c, x: (c @ p + x * p,) * 2, p, XS[:4])
    return lib.np.reshape(last, (-1,))


@program(V)
def maximum(lib, p):
    last, rows = lib.scan(lambda c, x: (lib.np.maximum(0.9 * c, x * p[0] + p[1]),) * 2, -1.0 + 0 * p[0], XS)
    return lib.np.stack([last, lib.np.sum(rows**2)])


@program(V)
def where(lib, p):
    last, rows = lib.scan(lambda c, x: (lib.np.where(c > 0.2, c * p[0], c + p[1] ** 2 + 0.1 * x),) * 2, p[0], XS)
    return lib.np.stack([last, rows[3]])


@program({"w": M, "u": M + 0.1})
def gru(lib, p):
    def step(h, x):
        z = lib.sigmoid(x @ p["w"] + h @ p["u"])
        n = lib.np.tanh(x + (z * h) @ p["u"])
        return ((1 - z) * n + z * h,) * 2

    last, rows = lib.scan(step, np.zeros(2), ROWS)
    return last + rows[0]


@program(V)
def index(lib, p):
    last, rows = lib.scan(lambda c, x: (lib.np.stack([c[1], c[0] * p[0] + x * p[1]]),) * 2, p, XS)
    return last + rows[2]


@program((S, S))
def log_sum_exp(lib, p):
    def step(c, x):
        c = lib.np.logaddexp(c + p[0], x * p[1])
        return c, c

    last, rows = lib.scan(step, p[1], XS)
    return lib.np.stack([last, lib.np.sum(rows)])


@program(V)
def forward_algorithm(lib, p):
    a = lib.np.log(lib.sigmoid(lib.np.stack([lib.np.stack([p[0], p[1]]), lib.np.stack([-p[1], p[0] * 2])])))

    def step(c, x):
        both = c[:, None] + a
        m = lib.np.max(both, axis=0)
        c = lib.np.log(lib.np.sum(lib.np.exp(both - m), axis=0)) + m + x * p
        return c, lib.np.sum(c)

    last, rows = lib.scan(step, p, XS)
    return last + rows[1]


@program(Pair(V, S))
def kalman(lib, p):
    q, r = lib.np.exp(p.a)[0], lib.np.exp(p.a)[1]

    def step(c, x):
        mean, var = c
        k = (var + q) / (var + q + r)
        mean, var = mean * p.b + k * (x - mean * p.b), (1 - k) * (var + q)
        return (mean, var), lib.np.log(var + r) + (x - mean) ** 2 / (var + r)

    (mean, var), rows = lib.scan(step, (p.b, 1.0 + p.b**2), XS)
    return lib.np.stack([lib.np.sum(rows), mean, var])


@program({"k": V})
def runge_kutta(lib, p):
    f = lambda y: lib.np.stack([y[1], -p["k"][0] * y[0] - p["k"][1] * y[1] ** 3])

    def step(y, x):
        k1 = f(y)
        k2 = f(y + 0.1 * k1)
        return (y + 0.1 * (k1 + k2),) * 2

    last, _ = lib.scan(step, p["k"] + 1.0, XS)
    return last


@program(V)
def cumulative(lib, p):
    _, rows = lib.scan(lambda c, x: (c + x * p,) * 2, 0 * p, XS)
    return lib.np.sum(lib.np.sin(rows), axis=0)


@program(V)
def no_recurrence(lib, p):
    _, rows = lib.scan(lambda c, x: (c, lib.np.exp(x * p)), p[0], XS)
    return rows[1] + rows[4]


@program({"a": V})
def product(lib, p):
    last, _ = lib.scan(lambda c, x: (c * (1 + x * p["a"]),) * 2, 1 + 0 * p["a"], XS)
    return last


@program((V, V))
def outer_product(lib, p):
    last, _ = lib.scan(lambda c, x: (0.5 * c + x * p[0][:, None] * p[1][None, :],) * 2, 0 * M, ROWS[:, 0])
    return last @ p[0]


@program(V)
def norm(lib, p):
    last, rows = lib.scan(lambda c, x: (c / lib.np.sqrt(lib.np.sum(c**2) + 1.0) + x * p,) * 2, p, XS)
    return last + rows[0]


@program(V)
def soft_max(lib, p):
    def step(c, x):
        e = lib.np.exp(c * x - lib.np.max(c * x))
        return (e / lib.np.sum(e) * p + c,) * 2

    last, _ = lib.scan(step, p, XS)
    return last


@program(V)
def powers(lib, p):
    last, _ = lib.scan(lambda c, x: (lib.np.abs(c) ** (1.0 + 0.1 * x) * (p[0] ** 2 + 0.5) + p[1] ** 2,) * 2, 1.0 + p[0] ** 2, XS)
    return lib.np.stack([last, p[0]])


@program({"b": S, "a": S})
def key_order(lib, p):
    last, _ = lib.scan(lambda c, x: (c * p["a"] + x * p["b"] ** 2,) * 2, p["b"], XS)
    return lib.np.stack([last, p["a"] * 2 * last])


@program(V)
def steps_of_gradient(lib, p):
    """Gradient descent: the step takes a gradient itself."""
    cost = lambda y: (y[0] - p[0]) ** 2 * (1 + y[1] ** 2) + lib.np.cos(y[1] * p[1])
    last, _ = lib.scan(lambda y, x: (y - 0.1 * lib.grad(cost)(y),) * 2, 1.0 + 0 * p, XS[:3])
    return last


@program(V)
def mapped_inside(lib, p):
    last, _ = lib.scan(lambda c, x: (lib.vmap(lambda a: lib.np.sin(a * x + p[0]))(c),) * 2, p, XS)
    return last


@program(M)
def reductions(lib, p):
    last, rows = lib.scan(lambda c, x: (lib.np.mean(c * p, axis=0) * x + lib.np.max(p, axis=1),) * 2, p[0], XS)
    return last + lib.np.sum(rows, axis=0)


@program(V)
def delayed(lib, p):
    def step(c, x):
        return (c[1], c[2], p[0] * c[2] + p[1] * c[0] + x), c[0]

    last, rows = lib.scan(step, (p[0], p[1], 0.5 * p[0]), XS)
    return lib.np.stack([last[2], lib.np.sum(rows)])


@program({"x": V})
def gathered(lib, p):
    last, _ = lib.scan(lambda c, i: (c + lib.np.sin(p["x"])[i] * c**2,) * 2, p["x"][0], np.array([0, 1, 1, 0, 1]))
    return lib.np.stack([last, last * p["x"][1]])


@program(V)
def clipped(lib, p):
    last, rows = lib.scan(lambda c, x: (lib.np.clip(c * 1.5 + x * p[0], -0.8, 0.9) + 0.01 * p[1],) * 2, p[1], XS)
    return lib.np.stack([last, rows[2]])


@program((S, V))
def divided(lib, p):
    last, _ = lib.scan(lambda c, x: (p[1] / (1.0 + c**2 + p[0] ** 2 * x**2),) * 2, p[1], XS)
    return last


@program(V)
def oscillator(lib, p):
    (c, s), _ = lib.scan(lambda c, x: ((lib.np.cos(c[1]) * p[0], lib.np.sin(c[0]) + p[1]), x), (p[0], p[1]), XS)
    return lib.np.stack([c, s])


@program(V)
def two_loops(lib, p):
    _, rows = lib.scan(lambda c, x: (p[0] * c + x,) * 2, p[1], XS)
    last, _ = lib.scan(lambda c, x: (lib.np.tanh(c + x * p[1]),) * 2, p[0], rows)
    return lib.np.stack([last, rows[-1]])


@program({"f": M})
def transposed(lib, p):
    last, _ = lib.scan(lambda c, x: (0.5 * c.T @ p["f"] + x,) * 2, p["f"], XS[:4])
    return lib.np.reshape(last, (-1,))[:3]


@program(V)
def long_loop(lib, p):
    last, _ = lib.scan(lambda c, x: (0.9 * c + 0.1 * lib.np.sin(p[0] * x + p[1]),) * 2, p[0], np.linspace(0, 3, 300))
    return lib.np.stack([last, p[1] * last])


@program(V)
def one_step(lib, p):
    last, rows = lib.scan(lambda c, x: (lib.np.exp(c * x),) * 2, p, XS[:1])
    return last + rows[0]


@program(V, jax=False)
def newton(lib, p):
    """Stops by itself."""
    f = lambda r: (0.5 * (r + (1.0 + p**2) / r), rs.until(rs.max(rs.abs(r**2 - 1.0 - p**2)) < 1e-10))
    rows, _ = rs.scan(f, outputs_info=1.5 + 0 * p, n_steps=30)
    return rows[-1]


@program({"a": S}, jax=False)
def until_with_rows(lib, p):
    step = lambda x, h: (h * (1.2 + 0.1 * p["a"]) + x**2, rs.until(h > 3.0))
    rows, _ = rs.scan(step, sequences=np.linspace(0.5, 1, 9), outputs_info=p["a"])
    return rs.stack([rows[-1], rs.sum(rows)])


# Comparing.


def numeric_jacobian(g, p):
    """Central differences of a function of arrays, extrapolated: result × parameter."""
    leaves = _leaves(p)

    def at(k, i, by):
        moved = [leaf.copy() for leaf in leaves]
        moved[k].reshape(-1)[i] += by
        values = iter(moved)
        return g(_rebuilt(p, values))

    columns = []
    for k, leaf in enumerate(leaves):
        for i in range(leaf.size):
            d = [(at(k, i, e) - at(k, i, -e)) / (2 * e) for e in (2e-3, 1e-3, 5e-4)]
            first = [(4 * d[1] - d[0]) / 3, (4 * d[2] - d[1]) / 3]
            columns.append((16 * first[1] - first[0]) / 15)
    return np.stack(columns, axis=1)


def _rebuilt(tree, values):
    if isinstance(tree, dict):
        found = {key: _rebuilt(tree[key], values) for key in sorted(tree)}
        return {key: found[key] for key in tree}
    if isinstance(tree, (tuple, list)):
        items = [_rebuilt(item, values) for item in tree]
        return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
    return next(values)


def expected(outer, g, slope, p):
    """What a transform of g gives, by differences. slope: the gradient of g, weighted, by rscan; for second derivatives alone."""
    value = g(p)
    w, v = weights(len(value)), np.concatenate([np.reshape(leaf, -1) for leaf in _leaves(directions(p))])
    if outer == "vmap":
        return np.concatenate([g(_map(f, p)) for f in (lambda x: x, lambda x: 0.9 * x, lambda x: x**2)])
    if outer in ("hessian", "hvp"):
        second = numeric_jacobian(slope, p)
        return second @ v if outer == "hvp" else blocks(second, p)
    jacobian = numeric_jacobian(g, p)
    if outer == "jacobian":
        return np.concatenate([part.reshape(-1) for part in np.split(jacobian, np.cumsum([leaf.size for leaf in _leaves(p)])[:-1], axis=1)])
    if outer == "argnums":
        s = 0.5 + 0.1 * _leaves(p)[0].sum()
        return np.concatenate([[2 * s * (w @ value)], jacobian.T @ w * s**2])
    found = {
        "grad": jacobian.T @ w,
        "vjp": jacobian.T @ w,
        "value_and_grad": np.concatenate([[w @ value], jacobian.T @ w]),
        "has_aux": np.concatenate([jacobian.T @ w, value]),
        "jvp": np.concatenate([value, jacobian @ v]),
    }
    return found[outer]


def blocks(second, p):
    """A Hessian in the order of a structure of structures."""
    cuts = np.cumsum([leaf.size for leaf in _leaves(p)])[:-1]
    return np.concatenate([part.reshape(-1) for rows in np.split(second, cuts, axis=0) for part in np.split(rows, cuts, axis=1)])


def array_of(p):
    return _map(lambda leaf: np.array(leaf, dtype=np.float64), p)


def check(name, inner, outer, jax=None):
    """None, or what differs between a composition and its reference."""
    fn, start, with_jax = PROGRAMS[name]
    p = array_of(start)
    m = len(rs.compile(lambda p: fn(Rscan, p))(p))
    h = lambda p: fn(Rscan, p)
    first, n = TRANSFORMS[inner](Rscan, h, p, m)
    second, _ = TRANSFORMS[outer](Rscan, first, p, n)
    got = rs.compile(second)(p)
    if jax is not None and with_jax:
        first, n = TRANSFORMS[inner](jax, lambda p: fn(jax, p), p, m)
        wanted, tolerance = np.asarray(TRANSFORMS[outer](jax, first, p, n)[0](p)), 1e-9
    else:
        g, slope = rs.compile(first), rs.compile(t_grad(Rscan, first, p, n)[0]) if outer in ("hessian", "hvp") else None
        wanted, tolerance = expected(outer, g, slope, p), 1e-6
    if got.shape != wanted.shape:
        return f"{outer}({inner}({name})): shape {got.shape}, expected {wanted.shape}"
    error = np.max(np.abs(got - wanted) / (np.abs(wanted).max() + 1.0), initial=0.0)
    return None if error < tolerance else f"{outer}({inner}({name})): differs by {error:.1e}"


def main(arguments=None):
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--only", default="")
    options.add_argument("--jax", type=int, default=0, help="so many pairs a program against JAX")
    given = options.parse_args(arguments)
    jax = Jax() if given.jax else None
    begun, count, bad = time.time(), 0, []
    for number, name in enumerate(name for name in PROGRAMS if given.only in name):
        pairs = list(itertools.product(TRANSFORMS, repeat=2))
        if jax is not None:
            pairs = random.Random(number).sample(pairs, given.jax)
        for inner, outer in pairs:
            count += 1
            try:
                found = check(name, inner, outer, jax)
            except Exception as error:
                found = f"{outer}({inner}({name})): {type(error).__name__} {str(error)[:200]}"
            if found is not None:
                bad.append(found)
                print(found, flush=True)
    print(f"{count} compositions of {len(TRANSFORMS)} transforms, {len(bad)} wrong, {time.time() - begun:.0f} s")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
