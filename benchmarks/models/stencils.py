"""Stencils in one and two dimensions: neighbours by slices, by rolls and by padding."""

import numpy as np
import rscan as rs
from models import Model

KIND = "stencils"


class HeatPlane(Model):
    """Heat in a plane with fixed edges: five-point differences by slices."""

    kind, dtype = KIND, "float64"
    size, small = dict(n=256, steps=100), dict(n=7, steps=5)

    def make(self, random, n, steps):
        return random.uniform(size=(n, n)), 0.2

    def rscan(self, n, steps):
        @rs.compile
        def f(u, c):
            def step(u):
                around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
                return u.at[1:-1, 1:-1].add(c * around)

            return rs.loop(step, init=u, n_steps=steps)[-1]

        return f

    def jax(self, n, steps):
        import jax

        @jax.jit
        def f(u, c):
            def step(_, u):
                around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
                return u.at[1:-1, 1:-1].add(c * around)

            return jax.lax.fori_loop(0, steps, step, u)

        return f


class HeatRodGradient(Model):
    """Heat in a rod whose conductivity varies; the gradient of the misfit by conductivities and by what is there at first."""

    kind, dtype = KIND, "float64"
    size, small = dict(n=200, steps=200), dict(n=6, steps=5)

    def make(self, random, n, steps):
        return random.uniform(0.1, 0.4, size=n - 1), random.normal(size=n), random.normal(size=n)

    def rscan(self, n, steps):
        def loss(k, u0, target):
            def step(u):
                flow = k * (u[1:] - u[:-1])
                return rs.concatenate([u[:1], u[1:-1] + flow[1:] - flow[:-1], u[-1:]])

            return rs.sum((rs.loop(step, init=u0, n_steps=steps)[-1] - target) ** 2)

        return rs.value_and_grad(loss, wrt=(0, 1))

    def jax(self, n, steps):
        import jax, jax.numpy as jnp

        def loss(k, u0, target):
            def step(u, _):
                flow = k * (u[1:] - u[:-1])
                return jnp.concatenate([u[:1], u[1:-1] + flow[1:] - flow[:-1], u[-1:]]), None

            return jnp.sum((jax.lax.scan(step, u0, None, length=steps)[0] - target) ** 2)

        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))


class WaveTaps(Model):
    """The wave equation on a ring by two taps into the past; the gradient by speeds."""

    kind, dtype = KIND, "float64"
    size, small = dict(n=128, steps=300), dict(n=5, steps=6)

    def make(self, random, n, steps):
        bump = np.exp(-((np.arange(n) - n / 2) ** 2) / n)
        return random.uniform(0.3, 0.9, size=n), np.stack([bump, bump]), random.normal(size=n)

    def rscan(self, n, steps):
        def loss(c, start, target):
            def step(u):
                before, now = u
                return 2 * now - before + c**2 * (rs.roll(now, 1) - 2 * now + rs.roll(now, -1))

            u = rs.loop(step, init=rs.taps(start, -2, -1), n_steps=steps)
            return rs.sum((u[-1] - target) ** 2) + rs.mean(u**2)

        return rs.value_and_grad(loss)

    def jax(self, n, steps):
        import jax, jax.numpy as jnp

        def loss(c, start, target):
            def step(state, _):
                before, now = state
                new = 2 * now - before + c**2 * (jnp.roll(now, 1) - 2 * now + jnp.roll(now, -1))
                return (now, new), new

            u = jax.lax.scan(step, (start[0], start[1]), None, length=steps)[1]
            return jnp.sum((u[-1] - target) ** 2) + jnp.mean(u**2)

        return jax.jit(jax.value_and_grad(loss))


class GameOfLife(Model):
    """Conway's game on a torus, by rolls of small integers."""

    kind, dtype = KIND, "int32"
    size, small = dict(n=96, steps=100), dict(n=6, steps=4)

    def make(self, random, n, steps):
        return ((random.uniform(size=(n, n)) < 0.3).astype("i4"),)

    def rscan(self, n, steps):
        @rs.compile
        def f(board):
            def step(b):
                around = sum(rs.roll(b, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
                return rs.where((around == 3) | ((b == 1) & (around == 2)), 1, 0).astype("int32")

            return rs.loop(step, init=board, n_steps=steps)[-1]

        return f

    def jax(self, n, steps):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(board):
            def step(_, b):
                around = sum(jnp.roll(b, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
                return jnp.where((around == 3) | ((b == 1) & (around == 2)), 1, 0).astype("int32")

            return jax.lax.fori_loop(0, steps, step, board)

        return f


class RuleOfNeighbours(Model):
    """An elementary cellular automaton: the next cells are looked up in a table of eight; all rows are returned."""

    kind, dtype = KIND, "int64"
    size, small = dict(n=400, steps=300), dict(n=9, steps=5)

    def make(self, random, n, steps):
        return np.array([0, 1, 1, 1, 0, 1, 1, 0]), random.integers(0, 2, size=n)

    def rscan(self, n, steps):
        @rs.compile
        def f(rule, cells):
            return rs.loop(lambda c: rule[4 * rs.roll(c, 1) + 2 * c + rs.roll(c, -1)], init=cells, n_steps=steps)

        return f

    def jax(self, n, steps):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(rule, cells):
            def step(c, _):
                c = rule[4 * jnp.roll(c, 1) + 2 * c + jnp.roll(c, -1)]
                return c, c

            return jax.lax.scan(step, cells, None, length=steps)[1]

        return f


class GrayScott(Model):
    """Two species that diffuse and react on a torus."""

    kind, dtype = KIND, "float32"
    size, small = dict(n=64, steps=200), dict(n=5, steps=4)

    def make(self, random, n, steps):
        v = (random.uniform(size=(n, n)) < 0.1).astype("f4") * np.float32(0.5)
        return 1 - v, v, np.float32(0.035), np.float32(0.06)

    def rscan(self, n, steps):
        @rs.compile
        def f(u, v, feed, kill):
            def spread(a):
                return rs.roll(a, 1, 0) + rs.roll(a, -1, 0) + rs.roll(a, 1, 1) + rs.roll(a, -1, 1) - 4 * a

            def step(u, v):
                uvv = u * v**2
                return dict(u=u + 0.16 * spread(u) - uvv + feed * (1 - u), v=v + 0.08 * spread(v) + uvv - (feed + kill) * v)

            out = rs.loop(step, init=dict(u=u, v=v), n_steps=steps)
            return out.u[-1], out.v[-1]

        return f

    def jax(self, n, steps):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(u, v, feed, kill):
            def spread(a):
                return jnp.roll(a, 1, 0) + jnp.roll(a, -1, 0) + jnp.roll(a, 1, 1) + jnp.roll(a, -1, 1) - 4 * a

            def step(_, state):
                u, v = state
                uvv = u * v**2
                return u + 0.16 * spread(u) - uvv + feed * (1 - u), v + 0.08 * spread(v) + uvv - (feed + kill) * v

            return jax.lax.fori_loop(0, steps, step, (u, v))

        return f
