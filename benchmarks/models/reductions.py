"""Reductions over every axis; logsumexp, softmax and norms that are written out."""

import numpy as np
import rscan as rs
from models import Model

KIND = "reductions, softmax by hand"


class ForwardByHand(Model):
    """The forward algorithm with logsumexp written out by max, exp, sum and log; the gradient by all tables."""

    kind, dtype = KIND, "float64"
    size, small = dict(states=32, steps=500), dict(states=3, steps=5)

    def make(self, random, states, steps):
        return np.log(random.dirichlet(np.ones(states), size=states)), random.normal(size=(steps, states))

    def rscan(self, states, steps):
        def loglik(A, B):
            def step(b, a):
                s = a[:, None] + A
                m = rs.max(s, axis=0)
                return m + rs.log(rs.sum(rs.exp(s - m), axis=0)) + b

            last = rs.loop(step, over=B[1:], init=B[0] - np.log(states))[-1]
            m = rs.max(last)
            return m + rs.log(rs.sum(rs.exp(last - m)))

        return rs.value_and_grad(loglik, wrt=(0, 1))

    def jax(self, states, steps):
        import jax, jax.numpy as jnp

        def loglik(A, B):
            def step(a, b):
                s = a[:, None] + A
                m = jnp.max(s, axis=0)
                return m + jnp.log(jnp.sum(jnp.exp(s - m), axis=0)) + b, None

            last = jax.lax.scan(step, B[0] - np.log(states), B[1:])[0]
            m = jnp.max(last)
            return m + jnp.log(jnp.sum(jnp.exp(last - m)))

        return jax.jit(jax.value_and_grad(loglik, argnums=(0, 1)))


class AttentionDecoding(Model):
    """Decoding with one head of attention: keys and values are kept, the softmax is written out, later places are masked."""

    kind, dtype = KIND, "float32"
    size, small = dict(steps=128, d=64), dict(steps=4, d=3)

    def make(self, random, steps, d):
        return tuple((random.normal(size=(d, d)) / np.sqrt(d)).astype("f4") for _ in range(4)) + (random.normal(size=d).astype("f4"),)

    def rscan(self, steps, d):
        @rs.compile
        def f(Wq, Wk, Wv, Wo, x0):
            places = rs.arange(steps)

            def step(t, x, keys, values):
                keys = keys.at[t].set(x @ Wk)
                values = values.at[t].set(x @ Wv)
                scores = rs.where(places <= t, keys @ (x @ Wq) / np.float32(d) ** 0.5, -np.inf)
                w = rs.exp(scores - rs.max(scores))
                y = x + ((w / rs.sum(w)) @ values) @ Wo
                return dict(x=y / rs.sqrt(rs.mean(y**2) + 1e-6), keys=keys, values=values)

            zero = rs.zeros((steps, d), dtype="float32")
            return rs.loop(step, over=dict(t=places), init=dict(x=x0, keys=zero, values=zero)).x

        return f

    def jax(self, steps, d):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(Wq, Wk, Wv, Wo, x0):
            places = jnp.arange(steps)

            def step(state, t):
                x, keys, values = state
                keys = keys.at[t].set(x @ Wk)
                values = values.at[t].set(x @ Wv)
                scores = jnp.where(places <= t, keys @ (x @ Wq) / np.float32(d) ** 0.5, -jnp.inf)
                w = jnp.exp(scores - jnp.max(scores))
                y = x + ((w / jnp.sum(w)) @ values) @ Wo
                x = y / jnp.sqrt(jnp.mean(y**2) + 1e-6)
                return (x, keys, values), x

            zero = jnp.zeros((steps, d), "float32")
            return jax.lax.scan(step, (x0, zero, zero), places)[1]

        return f


class RowsAndColumns(Model):
    """A matrix made doubly stochastic in logarithms, by logsumexp over one axis and the other; the gradient by its temperature."""

    kind, dtype = KIND, "float64"
    size, small = dict(n=24, steps=60), dict(n=3, steps=4)

    def make(self, random, n, steps):
        return np.float64(0.7), random.normal(size=(n, n)), random.uniform(size=(n, n))

    def rscan(self, n, steps):
        def loss(temperature, scores, cost):
            def normalised(x, axis):
                m = rs.max(x, axis=axis, keepdims=True)
                return x - m - rs.log(rs.sum(rs.exp(x - m), axis=axis, keepdims=True))

            def step(x):
                return normalised(normalised(x, 1), 0)

            return rs.sum(rs.exp(rs.loop(step, init=scores / temperature, n_steps=steps)[-1]) * cost)

        return rs.value_and_grad(loss, wrt=(0, 1))

    def jax(self, n, steps):
        import jax, jax.numpy as jnp

        def loss(temperature, scores, cost):
            def normalised(x, axis):
                m = jnp.max(x, axis=axis, keepdims=True)
                return x - m - jnp.log(jnp.sum(jnp.exp(x - m), axis=axis, keepdims=True))

            def step(x, _):
                return normalised(normalised(x, 1), 0), None

            return jnp.sum(jnp.exp(jax.lax.scan(step, scores / temperature, None, length=steps)[0]) * cost)

        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))


class LayerNormRNN(Model):
    """A recurrent net whose state is normalised by mean and variance over the last axis; the gradient by weights and gains."""

    kind, dtype = KIND, "float32"
    size, small = dict(steps=40, batch=16, hidden=64), dict(steps=4, batch=2, hidden=3)

    def make(self, random, steps, batch, hidden):
        f4 = lambda *s: random.normal(size=s).astype("f4")
        return f4(hidden, hidden) / np.float32(hidden**0.5), 1 + f4(hidden) / 10, f4(steps, batch, hidden)

    def rscan(self, steps, batch, hidden):
        def loss(W, gain, x):
            def step(x, h):
                a = x + h @ W
                a = a - rs.mean(a, axis=-1, keepdims=True)
                return rs.tanh(gain * a / rs.sqrt(rs.mean(a**2, axis=-1, keepdims=True) + 1e-5))

            return rs.mean(rs.loop(step, over=x, init=rs.zeros((batch, hidden), dtype="float32"))[-1] ** 2)

        return rs.value_and_grad(loss, wrt=(0, 1))

    def jax(self, steps, batch, hidden):
        import jax, jax.numpy as jnp

        def loss(W, gain, x):
            def step(h, x):
                a = x + h @ W
                a = a - jnp.mean(a, axis=-1, keepdims=True)
                return jnp.tanh(gain * a / jnp.sqrt(jnp.mean(a**2, axis=-1, keepdims=True) + 1e-5)), None

            return jnp.mean(jax.lax.scan(step, jnp.zeros((batch, hidden), "float32"), x)[0] ** 2)

        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))


class EveryAxis(Model):
    """A cube of numbers is centred over each axis in turn and scaled by its norm."""

    kind, dtype = KIND, "float64"
    size, small = dict(n=16, steps=100), dict(n=3, steps=3)

    def make(self, random, n, steps):
        return random.normal(size=(n, n + 1, n + 2)), random.normal(size=(steps, n))

    def rscan(self, n, steps):
        @rs.compile
        def f(cube, pushes):
            def step(push, c):
                c = c + 0.1 * push[:, None, None] * rs.tanh(c)
                for axis in range(3):
                    c = c - rs.mean(c, axis=axis, keepdims=True)
                c = c / rs.sqrt(rs.sum(c**2))
                return dict(c=c, largest=rs.max(rs.abs(c), axis=(0, 2)))

            out = rs.loop(step, over=dict(push=pushes), init=dict(c=cube))
            return out.c[-1], out.largest

        return f

    def jax(self, n, steps):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(cube, pushes):
            def step(c, push):
                c = c + 0.1 * push[:, None, None] * jnp.tanh(c)
                for axis in range(3):
                    c = c - jnp.mean(c, axis=axis, keepdims=True)
                c = c / jnp.sqrt(jnp.sum(c**2))
                return c, jnp.max(jnp.abs(c), axis=(0, 2))

            return jax.lax.scan(step, cube, pushes)

        return f


class MixtureEM(Model):
    """Expectation and maximisation for a mixture of Gaussians: softmax over components, sums over points."""

    kind, dtype = KIND, "float64"
    size, small = dict(points=400, k=4, d=3, steps=30), dict(points=6, k=2, d=2, steps=3)

    def make(self, random, points, k, d, steps):
        centres = 3 * random.normal(size=(k, d))
        return centres[random.integers(k, size=points)] + random.normal(size=(points, d)), random.normal(size=(k, d))

    def rscan(self, points, k, d, steps):
        @rs.compile
        def f(x, start):
            def step(mu, var, weight):
                far = rs.sum((x[:, None, :] - mu[None]) ** 2, axis=2)
                logp = rs.log(weight) - 0.5 * d * rs.log(var) - 0.5 * far / var
                top = rs.max(logp, axis=1, keepdims=True)
                p = rs.exp(logp - top)
                total = rs.sum(p, axis=1, keepdims=True)
                r = p / total
                n = rs.sum(r, axis=0) + 1e-3
                return dict(
                    mu=(r.T @ x) / n[:, None],
                    var=rs.sum(r * far, axis=0) / (d * n) + 1e-3,
                    weight=n / points,
                    loglik=rs.sum(top + rs.log(total)),
                )

            out = rs.loop(step, init=dict(mu=start, var=rs.ones(k), weight=rs.full(k, 1 / k)), n_steps=steps)
            return out.mu[-1], out.loglik

        return f

    def jax(self, points, k, d, steps):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(x, start):
            def step(state, _):
                mu, var, weight = state
                far = jnp.sum((x[:, None, :] - mu[None]) ** 2, axis=2)
                logp = jnp.log(weight) - 0.5 * d * jnp.log(var) - 0.5 * far / var
                top = jnp.max(logp, axis=1, keepdims=True)
                p = jnp.exp(logp - top)
                total = jnp.sum(p, axis=1, keepdims=True)
                r = p / total
                n = jnp.sum(r, axis=0) + 1e-3
                return ((r.T @ x) / n[:, None], jnp.sum(r * far, axis=0) / (d * n) + 1e-3, n / points), jnp.sum(top + jnp.log(total))

            (mu, _, _), loglik = jax.lax.scan(step, (start, jnp.ones(k), jnp.full(k, 1 / k)), None, length=steps)
            return mu, loglik

        return f
