"""Loops in loops, with lengths that are known, that depend on the step and that depend on values; their gradients."""

import numpy as np
import rscan as rs
from models import Model

KIND = "loops in loops"


class SoftDTW(Model):
    """Soft dynamic time warping of two series: a loop over columns in a loop over rows. The gradient by one of the series."""

    kind, dtype = KIND, "float64"
    size, small = dict(n=100), dict(n=4)

    def make(self, random, n):
        return random.normal(size=n), random.normal(size=n), 0.5

    def rscan(self, n):
        def loss(x, y, gamma):
            cost = (x[:, None] - y[None, :]) ** 2
            far = 1e10

            def softmin(a, b, c):
                return -gamma * rs.logsumexp(rs.stack([a, b, c]) / -gamma)

            def row(cost, before):
                def cell(d, up, corner, left):
                    return d + softmin(up, corner, left)

                r = rs.loop(cell, over=[cost, before[1:], before[:-1]], init=rs.constant(far))
                return rs.concatenate([[far], r])

            start = rs.concatenate([[0.0], rs.full(n, far)])
            return rs.loop(row, over=cost, init=start)[-1, -1]

        return rs.value_and_grad(loss)

    def jax(self, n):
        import jax, jax.numpy as jnp

        def loss(x, y, gamma):
            cost = (x[:, None] - y[None, :]) ** 2
            far = 1e10

            def row(before, cost):
                def cell(left, given):
                    d, up, corner = given
                    new = d - gamma * jax.nn.logsumexp(jnp.stack([up, corner, left]) / -gamma)
                    return new, new

                r = jax.lax.scan(cell, far, (cost, before[1:], before[:-1]))[1]
                return jnp.concatenate([jnp.array([far]), r]), None

            start = jnp.concatenate([jnp.zeros(1), jnp.full(n, far)])
            return jax.lax.scan(row, start, cost)[0][-1]

        return jax.jit(jax.value_and_grad(loss))


class EditDistance(Model):
    """Levenshtein's distance of two words, row by row and cell by cell."""

    kind, dtype = KIND, "int64"
    size, small = dict(n=200), dict(n=5)

    def make(self, random, n):
        return random.integers(0, 4, size=n), random.integers(0, 4, size=n)

    def rscan(self, n):
        @rs.compile
        def f(a, b):
            def row(letter, i, before):
                def cell(other, up, corner, left):
                    return rs.minimum(rs.minimum(up, left) + 1, corner + (letter != other))

                r = rs.loop(cell, over=[b, before[1:], before[:-1]], init=i)
                return rs.concatenate([i[None], r])

            return rs.loop(row, over=[a, rs.arange(1, n + 1)], init=rs.arange(n + 1))[-1, -1]

        return f

    def jax(self, n):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(a, b):
            def row(before, given):
                letter, i = given

                def cell(left, given):
                    other, up, corner = given
                    new = jnp.minimum(jnp.minimum(up, left) + 1, corner + (letter != other))
                    return new, new

                r = jax.lax.scan(cell, i, (b, before[1:], before[:-1]))[1]
                return jnp.concatenate([i[None], r]), None

            return jax.lax.scan(row, jnp.arange(n + 1), (a, jnp.arange(1, n + 1)))[0][-1]

        return f


class ImplicitEuler(Model):
    """Implicit Euler steps of a stiff scalar equation, each solved by five Newton steps; the gradient by both parameters."""

    kind, dtype = KIND, "float64"
    size, small = dict(steps=300), dict(steps=4)

    def make(self, random, steps):
        return np.array([50.0, 1.3]), random.normal(size=steps)

    def rscan(self, steps):
        def loss(p, force):
            h = 0.01

            def step(force, y):
                def newton(z):
                    return z - (z - y + h * (p[0] * (z**3 - p[1] * z) - force)) / (1 + h * p[0] * (3 * z**2 - p[1]))

                return rs.loop(newton, init=y, n_steps=5)[-1]

            return rs.sum(rs.loop(step, over=force, init=rs.constant(2.0)) ** 2)

        return rs.value_and_grad(loss)

    def jax(self, steps):
        import jax, jax.numpy as jnp

        def loss(p, force):
            h = 0.01

            def step(y, force):
                def newton(z, _):
                    return z - (z - y + h * (p[0] * (z**3 - p[1] * z) - force)) / (1 + h * p[0] * (3 * z**2 - p[1])), None

                y = jax.lax.scan(newton, y, None, length=5)[0]
                return y, y

            return jnp.sum(jax.lax.scan(step, 2.0, force)[1] ** 2)

        return jax.jit(jax.value_and_grad(loss))


class RidgeHyperGradient(Model):
    """Inner gradient steps on a ridge regression in an outer loop over folds; the gradient of what they miss by rate and penalty."""

    kind, dtype = KIND, "float64"
    size, small = dict(folds=5, rows=40, d=8, steps=30), dict(folds=2, rows=4, d=2, steps=3)

    def make(self, random, folds, rows, d, steps):
        X = random.normal(size=(folds, rows, d))
        return np.array([-3.0, -2.0]), X, X @ random.normal(size=d) + 0.3 * random.normal(size=(folds, rows))

    def rscan(self, folds, rows, d, steps):
        def loss(p, X, y):
            rate, penalty = rs.exp(p[0]), rs.exp(p[1])

            def fold(X, y):
                half = rows // 2

                def descend(w):
                    inner = rs.mean((X[:half] @ w - y[:half]) ** 2) + penalty * rs.sum(w**2)
                    return w - rate * rs.grad(inner, w)

                w = rs.loop(descend, init=rs.zeros(d), n_steps=steps)[-1]
                return rs.mean((X[half:] @ w - y[half:]) ** 2)

            return rs.mean(rs.loop(fold, over=[X, y]))

        return rs.value_and_grad(loss)

    def jax(self, folds, rows, d, steps):
        import jax, jax.numpy as jnp

        def loss(p, X, y):
            rate, penalty = jnp.exp(p[0]), jnp.exp(p[1])

            def fold(X, y):
                half = rows // 2
                inner = lambda w: jnp.mean((X[:half] @ w - y[:half]) ** 2) + penalty * jnp.sum(w**2)
                w = jax.lax.scan(lambda w, _: (w - rate * jax.grad(inner)(w), None), jnp.zeros(d), None, length=steps)[0]
                return jnp.mean((X[half:] @ w - y[half:]) ** 2)

            return jnp.mean(jax.vmap(fold)(X, y))

        return jax.jit(jax.value_and_grad(loss))


class SinkhornBarycentre(Model):
    """Sinkhorn's iterations for some histograms, each against the same one; the gradient of their transport costs by that one."""

    kind, dtype = KIND, "float64"
    size, small = dict(problems=8, n=30, steps=40), dict(problems=2, n=3, steps=3)

    def make(self, random, problems, n, steps):
        return random.normal(size=n), random.dirichlet(np.ones(n), size=problems), random.uniform(size=(n, n))

    def rscan(self, problems, n, steps):
        def loss(logits, targets, cost):
            a = rs.softmax(logits)
            K = rs.exp(-cost / 0.1)

            def transport(b):
                def step(u, v):
                    u = a / (K @ v)
                    return dict(u=u, v=b / (K.T @ u))

                out = rs.loop(step, init=dict(u=rs.ones(n), v=rs.ones(n)), n_steps=steps)
                return rs.sum(out.u[-1][:, None] * K * cost * out.v[-1][None, :])

            return rs.sum(rs.loop(transport, over=targets))

        return rs.value_and_grad(loss)

    def jax(self, problems, n, steps):
        import jax, jax.numpy as jnp

        def loss(logits, targets, cost):
            a = jax.nn.softmax(logits)
            K = jnp.exp(-cost / 0.1)

            def transport(b):
                def step(state, _):
                    u = a / (K @ state[1])
                    return (u, b / (K.T @ u)), None

                (u, v), _ = jax.lax.scan(step, (jnp.ones(n), jnp.ones(n)), None, length=steps)
                return jnp.sum(u[:, None] * K * cost * v[None, :])

            return jnp.sum(jax.vmap(transport)(targets))

        return jax.jit(jax.value_and_grad(loss))


class LengthByIndex(Model):
    """A renewal equation: the inner loop of step t sums over all t earlier rows."""

    kind, dtype = KIND, "float64"
    size, small = dict(steps=200), dict(steps=6)

    def make(self, random, steps):
        return random.uniform(size=steps), random.uniform(size=steps) / steps

    def rscan(self, steps):
        @rs.compile
        def f(births, decay):
            def step(t, birth, past):
                total = rs.loop(lambda s, total: total + past[s] * decay[t - s], over=rs.arange(t), init=rs.constant(0.0))
                # Without steps there is no last row.
                total = rs.sum(total[-1:])
                return dict(past=past.at[t].set(birth + total))

            out = rs.loop(step, over=dict(t=rs.arange(steps), birth=births), init=dict(past=rs.zeros(steps)))
            return out.past[-1]

        return f

    def jax(self, steps):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(births, decay):
            def step(past, given):
                t, birth = given
                total = jax.lax.fori_loop(0, t, lambda s, total: total + past[s] * decay[t - s], 0.0)
                return past.at[t].set(birth + total), None

            return jax.lax.scan(step, jnp.zeros(steps), (jnp.arange(steps), births))[0]

        return f


class LengthByValue(Model):
    """Each step repeats a map as often as its number says."""

    kind, dtype = KIND, "float64"
    size, small = dict(steps=500, d=16), dict(steps=5, d=2)

    def make(self, random, steps, d):
        return random.integers(1, 9, size=steps), random.normal(size=(d, d)) / d, random.normal(size=(steps, d))

    def rscan(self, steps, d):
        @rs.compile
        def f(counts, W, x):
            def step(k, x, h):
                return rs.loop(lambda g: rs.tanh(W @ g + x), init=h, n_steps=k)[-1]

            return rs.loop(step, over=[counts, x], init=rs.zeros(d))

        return f

    def jax(self, steps, d):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(counts, W, x):
            def step(h, given):
                k, x = given
                h = jax.lax.fori_loop(0, k, lambda _, g: jnp.tanh(W @ g + x), h)
                return h, h

            return jax.lax.scan(step, jnp.zeros(d), (counts, x))[1]

        return f


class LengthByIndexGradient(Model):
    """A triangular sum with a nonlinearity, the inner loop of step t over t terms; the gradient by all coefficients."""

    kind, dtype = KIND, "float64"
    size, small = dict(steps=100), dict(steps=5)

    def make(self, random, steps):
        return random.normal(size=steps) / steps, random.normal(size=steps)

    def rscan(self, steps):
        def loss(decay, x):
            def step(t, x_t):
                terms = rs.loop(lambda s, h: rs.tanh(h + decay[s] * x[t - s]), over=rs.arange(t + 1), init=rs.constant(0.0))
                return (terms[-1] - x_t) ** 2

            return rs.sum(rs.loop(step, over=[rs.arange(steps), x]))

        return rs.value_and_grad(loss, wrt=(0, 1))

    def jax(self, steps):
        import jax, jax.numpy as jnp

        def loss(decay, x):
            # Loops whose length is not known have no gradient in JAX: terms beyond t are masked.
            def step(_, given):
                t, x_t = given
                term = lambda h, s: (jnp.where(s <= t, jnp.tanh(h + decay[s] * x[t - s]), h), None)
                return None, (jax.lax.scan(term, 0.0, jnp.arange(steps))[0] - x_t) ** 2

            return jnp.sum(jax.lax.scan(step, None, (jnp.arange(steps), x))[1])

        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))


class LengthByValueGradient(Model):
    """Each step repeats a small net as often as its number says; the gradient by the net."""

    kind, dtype = KIND, "float64"
    size, small = dict(steps=100, d=16), dict(steps=4, d=2)

    def make(self, random, steps, d):
        return random.normal(size=(d, d)) / d, random.integers(1, 9, size=steps), random.normal(size=(steps, d))

    def rscan(self, steps, d):
        def loss(W, counts, x):
            def step(k, x, h):
                return rs.loop(lambda g: rs.tanh(W @ g + x), init=h, n_steps=k)[-1]

            return rs.mean(rs.loop(step, over=[counts, x], init=rs.zeros(d)) ** 2)

        return rs.value_and_grad(loss)

    def jax(self, steps, d):
        import jax, jax.numpy as jnp

        def loss(W, counts, x):
            # Loops whose length is not known have no gradient in JAX: what is beyond k of at most 8 steps is masked.
            def step(h, given):
                k, x = given
                h = jax.lax.scan(lambda g, s: (jnp.where(s < k, jnp.tanh(W @ g + x), g), None), h, jnp.arange(8))[0]
                return h, h

            return jnp.mean(jax.lax.scan(step, jnp.zeros(d), (counts, x))[1] ** 2)

        return jax.jit(jax.value_and_grad(loss))


class Mandelbrot(Model):
    """Rows of the Mandelbrot set: in each, the points are iterated until all have escaped or 50 steps are over."""

    kind, dtype = KIND, "float64"
    size, small = dict(n=100), dict(n=4)

    def make(self, random, n):
        return np.linspace(-2, 0.6, n), np.linspace(-1.2, 1.2, n)

    def rscan(self, n):
        @rs.compile
        def f(xs, ys):
            def row(y):
                def step(a, b, count):
                    inside = a * a + b * b <= 4
                    new = dict(a=rs.where(inside, a * a - b * b + xs, a), b=rs.where(inside, 2 * a * b + y, b), count=count + inside)
                    return new, rs.until(~rs.any(inside))

                zero = rs.zeros_like(xs)
                return rs.loop(step, init=dict(a=zero, b=zero, count=rs.zeros_like(xs, dtype="int64")), n_steps=50).count[-1]

            return rs.loop(row, over=ys)

        return f

    def jax(self, n):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(xs, ys):
            def row(y):
                def step(state):
                    a, b, count, n, _ = state
                    inside = a * a + b * b <= 4
                    a, b = jnp.where(inside, a * a - b * b + xs, a), jnp.where(inside, 2 * a * b + y, b)
                    return a, b, count + inside, n + 1, jnp.any(inside)

                zero = jnp.zeros_like(xs)
                start = (zero, zero, jnp.zeros(n, "int64"), 0, True)
                return jax.lax.while_loop(lambda s: s[4] & (s[3] < 50), step, start)[2]

            return jax.lax.map(row, ys)

        return f
