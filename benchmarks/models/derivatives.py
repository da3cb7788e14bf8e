"""Jacobians, Hessians, and gradients of each example."""

import numpy as np
import rscan as rs
from models import Model

KIND = "Jacobians, Hessians, per example"


class JacobianRNN(Model):
    """The Jacobian of a recurrent net's last state by its first."""

    kind, dtype = KIND, "float64"
    size, small = dict(hidden=32, steps=50), dict(hidden=3, steps=4)

    def make(self, random, hidden, steps):
        return 0.1 * random.normal(size=hidden), random.normal(size=(hidden, hidden)) / np.sqrt(hidden)

    def rscan(self, hidden, steps):
        @rs.compile
        def f(h0, W):
            last = rs.loop(lambda h: rs.tanh(W @ h), init=h0, n_steps=steps)[-1]
            return rs.jacobian(last, h0)

        return f

    def jax(self, hidden, steps):
        import jax, jax.numpy as jnp

        def last(h0, W):
            return jax.lax.scan(lambda h, _: (jnp.tanh(W @ h), None), h0, None, length=steps)[0]

        return jax.jit(jax.jacrev(last))


class HessianGarch(Model):
    """The Hessian of a GARCH(1,1)'s likelihood by its three parameters."""

    kind, dtype = KIND, "float64"
    size, small = dict(steps=1000), dict(steps=6)

    def make(self, random, steps):
        return np.array([-2.0, 0.1, 0.8]), random.normal(size=steps)

    def rscan(self, steps):
        @rs.compile
        def f(p, r):
            s2 = rs.loop(lambda r, s2: rs.exp(p[0]) + p[1] * r**2 + p[2] * s2, over=r[:-1], init=rs.mean(r**2))
            return rs.hessian(0.5 * rs.sum(rs.log(s2) + r[1:] ** 2 / s2), p)

        return f

    def jax(self, steps):
        import jax, jax.numpy as jnp

        def nll(p, r):
            def step(s2, r):
                s2 = jnp.exp(p[0]) + p[1] * r**2 + p[2] * s2
                return s2, s2

            s2 = jax.lax.scan(step, jnp.mean(r**2), r[:-1])[1]
            return 0.5 * jnp.sum(jnp.log(s2) + r[1:] ** 2 / s2)

        return jax.jit(jax.hessian(nll))


class ScoresOfGarch(Model):
    """The score of each observation: the Jacobian of all terms of a likelihood by three parameters, forwards."""

    kind, dtype = KIND, "float64"
    size, small = dict(steps=500), dict(steps=5)

    def make(self, random, steps):
        return np.array([-2.0, 0.1, 0.8]), random.normal(size=steps)

    def rscan(self, steps):
        @rs.compile
        def f(p, r):
            s2 = rs.loop(lambda r, s2: rs.exp(p[0]) + p[1] * r**2 + p[2] * s2, over=r[:-1], init=rs.mean(r**2))
            terms = 0.5 * (rs.log(s2) + r[1:] ** 2 / s2)
            return rs.stack([rs.jvp(terms, p, rs.eye(3)[k]) for k in range(3)], axis=1)

        return f

    def jax(self, steps):
        import jax, jax.numpy as jnp

        def terms(p, r):
            def step(s2, r):
                s2 = jnp.exp(p[0]) + p[1] * r**2 + p[2] * s2
                return s2, s2

            s2 = jax.lax.scan(step, jnp.mean(r**2), r[:-1])[1]
            return 0.5 * (jnp.log(s2) + r[1:] ** 2 / s2)

        return jax.jit(jax.jacfwd(terms))


class GradientPerExample(Model):
    """The gradient of a small net's loss for each example, and the second moment of all of them."""

    kind, dtype = KIND, "float64"
    size, small = dict(examples=200, d=10, hidden=16), dict(examples=4, d=2, hidden=3)

    def make(self, random, examples, d, hidden):
        return (
            random.normal(size=(d, hidden)) / d,
            random.normal(size=hidden) / hidden,
            random.normal(size=(examples, d)),
            random.normal(size=examples),
        )

    def rscan(self, examples, d, hidden):
        @rs.compile
        def f(W, v, X, y):
            def one(x, y):
                loss = (rs.tanh(x @ W) @ v - y) ** 2
                gW, gv = rs.grad(loss, [W, v])
                return rs.concatenate([rs.flatten(gW), gv])

            g = rs.loop(one, over=[X, y])
            return g, rs.mean(g**2, axis=0)

        return f

    def jax(self, examples, d, hidden):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(W, v, X, y):
            loss = lambda W, v, x, y: (jnp.tanh(x @ W) @ v - y) ** 2
            gW, gv = jax.vmap(jax.grad(loss, argnums=(0, 1)), in_axes=(None, None, 0, 0))(W, v, X, y)
            g = jnp.concatenate([gW.reshape(examples, -1), gv], axis=1)
            return g, jnp.mean(g**2, axis=0)

        return f


class HessianVector(Model):
    """The product of the Hessian of an autoregression's loss with a vector: a gradient, forwards."""

    kind, dtype = KIND, "float64"
    size, small = dict(steps=300, d=8), dict(steps=5, d=2)

    def make(self, random, steps, d):
        return random.normal(size=(d, d)) / d, random.normal(size=(d, d)), random.normal(size=(steps, d))

    def rscan(self, steps, d):
        @rs.compile
        def f(W, direction, x):
            h = rs.loop(lambda x, h: rs.tanh(W @ h + x), over=x, init=rs.zeros(d))
            loss = rs.mean((h[:-1] - x[1:]) ** 2)
            return rs.jvp(rs.grad(loss, W), W, direction)

        return f

    def jax(self, steps, d):
        import jax, jax.numpy as jnp

        def loss(W, x):
            def step(h, x):
                h = jnp.tanh(W @ h + x)
                return h, h

            return jnp.mean((jax.lax.scan(step, jnp.zeros(d), x)[1][:-1] - x[1:]) ** 2)

        @jax.jit
        def f(W, direction, x):
            return jax.jvp(lambda W: jax.grad(loss)(W, x), (W,), (direction,))[1]

        return f


class SensitivityByInputs(Model):
    """The Jacobian of all states of a small oscillator by its three parameters, backwards: many cotangents."""

    kind, dtype = KIND, "float64"
    size, small = dict(steps=60), dict(steps=4)

    def make(self, random, steps):
        return np.array([1.0, 0.1, 0.5]), random.normal(size=steps)

    def rscan(self, steps):
        @rs.compile
        def f(p, force):
            def step(force, x, v):
                v = v + 0.1 * (force - p[0] * x - p[1] * v - p[2] * x**3)
                return dict(x=x + 0.1 * v, v=v)

            x = rs.loop(step, over=dict(force=force), init=dict(x=1.0, v=0.0)).x
            return rs.jacobian(x, p)

        return f

    def jax(self, steps):
        import jax

        def states(p, force):
            def step(s, force):
                x, v = s
                v = v + 0.1 * (force - p[0] * x - p[1] * v - p[2] * x**3)
                x = x + 0.1 * v
                return (x, v), x

            return jax.lax.scan(step, (1.0, 0.0), force)[1]

        return jax.jit(jax.jacrev(states))
