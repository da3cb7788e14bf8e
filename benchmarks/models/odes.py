"""Integrators of differential equations, with and without networks, one in another."""

import numpy as np
import rscan as rs
from models import Model

KIND = "integrators of differential equations"


def rk4(slope, s, h):
    """A step of the classical Runge-Kutta method; on either side."""
    k1 = slope(s)
    k2 = slope(s + h / 2 * k1)
    k3 = slope(s + h / 2 * k2)
    return s + h / 6 * (k1 + 2 * k2 + 2 * k3 + slope(s + h * k3))


class LorenzGradient(Model):
    """The Lorenz system as one vector, by Runge and Kutta; the gradient by its three parameters and the initial state."""

    kind, dtype = KIND, "float64"
    size, small = dict(steps=500), dict(steps=5)

    def make(self, random, steps):
        return np.array([10.0, 28.0, 8 / 3]), np.array([1.0, 1.0, 1.0]), random.normal(size=3)

    def rscan(self, steps):
        def loss(p, s0, target):
            def slope(s):
                x, y, z = s[0], s[1], s[2]
                return rs.stack([p[0] * (y - x), x * (p[1] - z) - y, x * y - p[2] * z])

            return rs.sum((rs.loop(lambda s: rk4(slope, s, 0.005), init=s0, n_steps=steps)[-1] - target) ** 2)

        return rs.value_and_grad(loss, wrt=(0, 1))

    def jax(self, steps):
        import jax, jax.numpy as jnp

        def loss(p, s0, target):
            def slope(s):
                x, y, z = s
                return jnp.stack([p[0] * (y - x), x * (p[1] - z) - y, x * y - p[2] * z])

            return jnp.sum((jax.lax.scan(lambda s, _: (rk4(slope, s, 0.005), None), s0, None, length=steps)[0] - target) ** 2)

        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))


class NeuralODE(Model):
    """A net of two layers as the slope of a batch of states, by Runge and Kutta; the gradient by both layers."""

    kind, dtype = KIND, "float32"
    size, small = dict(batch=32, d=4, hidden=32, steps=40), dict(batch=2, d=2, hidden=3, steps=3)

    def make(self, random, batch, d, hidden, steps):
        f4 = lambda *s: random.normal(size=s).astype("f4")
        return f4(d, hidden) / np.float32(d), f4(hidden), f4(hidden, d) / np.float32(hidden), f4(batch, d), f4(batch, d)

    def rscan(self, batch, d, hidden, steps):
        def loss(W1, b1, W2, x0, target):
            slope = lambda x: rs.tanh(x @ W1 + b1) @ W2
            return rs.mean((rs.loop(lambda x: rk4(slope, x, 0.05), init=x0, n_steps=steps)[-1] - target) ** 2)

        return rs.value_and_grad(loss, wrt=(0, 1, 2))

    def jax(self, batch, d, hidden, steps):
        import jax, jax.numpy as jnp

        def loss(W1, b1, W2, x0, target):
            slope = lambda x: jnp.tanh(x @ W1 + b1) @ W2
            return jnp.mean((jax.lax.scan(lambda x, _: (rk4(slope, x, 0.05), None), x0, None, length=steps)[0] - target) ** 2)

        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2)))


class KeplerLeapfrog(Model):
    """A planet by leapfrog steps, with its energy at each; the gradient of the final place by place and speed at first."""

    kind, dtype = KIND, "float64"
    size, small = dict(steps=2000), dict(steps=5)
    rtol = 1e-6

    def make(self, random, steps):
        return np.array([1.0, 0.0]), np.array([0.0, 1.1])

    def rscan(self, steps):
        def place(q0, p0):
            h = 0.01

            def pull(q):
                return -q / rs.sum(q**2) ** 1.5

            def step(q, p):
                half = p + h / 2 * pull(q)
                q = q + h * half
                p = half + h / 2 * pull(q)
                return dict(q=q, p=p, energy=rs.sum(p**2) / 2 - 1 / rs.linalg.norm(q))

            out = rs.loop(step, init=dict(q=q0, p=p0), n_steps=steps)
            return out.q[-1, 0] + rs.var(out.energy)

        return rs.value_and_grad(place, wrt=(0, 1))

    def jax(self, steps):
        import jax, jax.numpy as jnp

        def place(q0, p0):
            h = 0.01

            def pull(q):
                return -q / jnp.sum(q**2) ** 1.5

            def step(state, _):
                q, p = state
                half = p + h / 2 * pull(q)
                q = q + h * half
                p = half + h / 2 * pull(q)
                return (q, p), jnp.sum(p**2) / 2 - 1 / jnp.linalg.norm(q)

            (q, _), energy = jax.lax.scan(step, (q0, p0), None, length=steps)
            return q[0] + jnp.var(energy)

        return jax.jit(jax.value_and_grad(place, argnums=(0, 1)))


class ManyBodies(Model):
    """Bodies that attract each other: all differences, a sum over one axis, leapfrog steps."""

    kind, dtype = KIND, "float64"
    size, small = dict(n=16, steps=300), dict(n=3, steps=4)
    rtol = 1e-6

    def make(self, random, n, steps):
        return random.normal(size=(n, 3)), 0.1 * random.normal(size=(n, 3)), random.uniform(0.1, 1, size=n)

    def rscan(self, n, steps):
        @rs.compile
        def f(q, p, mass):
            def pull(q):
                d = q[None, :, :] - q[:, None, :]
                r2 = rs.sum(d**2, axis=-1) + 0.05
                return rs.sum((mass[None, :] / r2**1.5)[:, :, None] * d, axis=1)

            def step(q, p):
                half = p + 0.005 * pull(q)
                q = q + 0.01 * half
                return dict(q=q, p=half + 0.005 * pull(q))

            out = rs.loop(step, init=dict(q=q, p=p), n_steps=steps)
            return out.q[-1], out.p[-1]

        return f

    def jax(self, n, steps):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(q, p, mass):
            def pull(q):
                d = q[None, :, :] - q[:, None, :]
                r2 = jnp.sum(d**2, axis=-1) + 0.05
                return jnp.sum((mass[None, :] / r2**1.5)[:, :, None] * d, axis=1)

            def step(_, state):
                q, p = state
                half = p + 0.005 * pull(q)
                q = q + 0.01 * half
                return q, half + 0.005 * pull(q)

            return jax.lax.fori_loop(0, steps, step, (q, p))

        return f


class ObservedEpidemic(Model):
    """An epidemic between weekly observations: Runge-Kutta steps in a loop over weeks; the gradient by rates, in logarithms."""

    kind, dtype = KIND, "float64"
    size, small = dict(weeks=100, inner=7), dict(weeks=3, inner=2)

    def make(self, random, weeks, inner):
        return np.log([0.4, 0.2, 0.1]), random.uniform(0, 0.2, size=weeks)

    def rscan(self, weeks, inner):
        def loss(p, seen):
            beta, sigma, gamma = rs.exp(p[0]), rs.exp(p[1]), rs.exp(p[2])

            def slope(s):
                new = beta * s[0] * s[2]
                return rs.stack([-new, new - sigma * s[1], sigma * s[1] - gamma * s[2]])

            def week(s):
                return rs.loop(lambda s: rk4(slope, s, 1.0 / inner), init=s, n_steps=inner)[-1]

            s = rs.loop(week, init=rs.as_variable(np.array([0.99, 0.005, 0.005])), n_steps=weeks)
            return rs.sum((s[:, 2] - seen) ** 2)

        return rs.value_and_grad(loss)

    def jax(self, weeks, inner):
        import jax, jax.numpy as jnp

        def loss(p, seen):
            beta, sigma, gamma = jnp.exp(p)

            def slope(s):
                new = beta * s[0] * s[2]
                return jnp.stack([-new, new - sigma * s[1], sigma * s[1] - gamma * s[2]])

            def week(s, _):
                s = jax.lax.scan(lambda s, _: (rk4(slope, s, 1.0 / inner), None), s, None, length=inner)[0]
                return s, s

            s = jax.lax.scan(week, jnp.array([0.99, 0.005, 0.005]), None, length=weeks)[1]
            return jnp.sum((s[:, 2] - seen) ** 2)

        return jax.jit(jax.value_and_grad(loss))


class OscillatorEnsemble(Model):
    """Many van der Pol oscillators of different stiffness in two vectors; all their places are returned."""

    kind, dtype = KIND, "float32"
    size, small = dict(n=256, steps=500), dict(n=3, steps=4)
    rtol = 1e-3

    def make(self, random, n, steps):
        f4 = lambda *s: random.uniform(0.5, 2, size=s).astype("f4")
        return f4(n), f4(n), f4(n)

    def rscan(self, n, steps):
        @rs.compile
        def f(mu, x0, v0):
            def slopes(x, v):
                return v, mu * (1 - x**2) * v - x

            def step(x, v):
                h = 0.02
                a, b = slopes(x, v)
                c, d = slopes(x + h / 2 * a, v + h / 2 * b)
                return dict(x=x + h * c, v=v + h * d)

            return rs.loop(step, init=dict(x=x0, v=v0), n_steps=steps).x

        return f

    def jax(self, n, steps):
        import jax

        @jax.jit
        def f(mu, x0, v0):
            def slopes(x, v):
                return v, mu * (1 - x**2) * v - x

            def step(state, _):
                (x, v), h = state, 0.02
                a, b = slopes(x, v)
                c, d = slopes(x + h / 2 * a, v + h / 2 * b)
                x, v = x + h * c, v + h * d
                return (x, v), x

            return jax.lax.scan(step, (x0, v0), None, length=steps)[1]

        return f
