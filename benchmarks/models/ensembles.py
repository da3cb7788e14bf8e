"""Ensembles: the same small system many times under `vmap`, with states of a few elements each."""

import numpy as np
import rscan as rs
from models import Model
from models.odes import rk4

KIND = "ensembles under vmap"


def _lorenz(stack, s):
    return stack([10 * (s[1] - s[0]), s[0] * (28 - s[2]) - s[1], s[0] * s[1] - 8 / 3 * s[2]])


class LorenzEnsemble(Model):
    """Lorenz' system from many starts by Runge and Kutta's method: all states."""

    kind, dtype = KIND, "float64"
    size, small = dict(rows=256, steps=200), dict(rows=5, steps=7)

    def make(self, random, rows, steps):
        return (random.normal(size=(rows, 3)),)

    def rscan(self, rows, steps):
        return rs.compile(rs.vmap(lambda s0: rs.loop(lambda s: rk4(lambda s: _lorenz(rs.stack, s), s, 0.01), init=s0, n_steps=steps)))

    def jax(self, rows, steps):
        import jax, jax.numpy as jnp

        def run(s0):
            def step(s, _):
                s = rk4(lambda s: _lorenz(jnp.stack, s), s, 0.01)
                return s, s

            return jax.lax.scan(step, s0, None, length=steps)[1]

        return jax.jit(jax.vmap(run))


class LocalTrendPanel(Model):
    """The likelihood of a local linear trend by a Kalman filter with matrices of 2 × 2, and its gradient, for each of many series."""

    kind, dtype = KIND, "float64"
    size, small = dict(rows=100, steps=200), dict(rows=5, steps=9)
    F = np.array([[1.0, 1.0], [0.0, 1.0]])

    def make(self, random, rows, steps):
        return 0.1 * random.normal(size=(rows, 3)), random.normal(size=(rows, steps)).cumsum(axis=1)

    def rscan(self, rows, steps):
        def nll(theta, y):
            level, slope, noise = rs.exp(theta[0]), rs.exp(theta[1]), rs.exp(theta[2])

            def step(y, a, p):
                v, s = y - a[0], p[0, 0] + noise
                k = p[:, 0] / s
                p = self.F @ (p - rs.outer(k, p[0])) @ self.F.T + rs.diag(rs.stack([level, slope]))
                return dict(a=self.F @ (a + k * v), p=p, l=rs.log(s) + v * v / s)

            return rs.sum(rs.loop(step, over=dict(y=y), init=dict(a=rs.zeros(2), p=10 * rs.eye(2))).l)

        return rs.compile(rs.vmap(rs.value_and_grad(nll)))

    def jax(self, rows, steps):
        import jax, jax.numpy as jnp

        def nll(theta, y):
            level, slope, noise = jnp.exp(theta)

            def step(state, y):
                a, p = state
                v, s = y - a[0], p[0, 0] + noise
                k = p[:, 0] / s
                p = self.F @ (p - jnp.outer(k, p[0])) @ self.F.T + jnp.diag(jnp.stack([level, slope]))
                return (self.F @ (a + k * v), p), jnp.log(s) + v * v / s

            return jnp.sum(jax.lax.scan(step, (jnp.zeros(2), 10 * jnp.eye(2)), y)[1])

        return jax.jit(jax.vmap(jax.value_and_grad(nll)))


class SwitchingRegimes(Model):
    """An autoregression whose mean and noise are those of a hidden state, one path for each row."""

    kind, dtype = KIND, "float64"
    size, small = dict(rows=200, steps=250), dict(rows=5, steps=9)
    P = np.array([[0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]]).cumsum(axis=1)
    MEAN, SCALE = np.array([0.1, -0.1, 0.0]), np.array([0.1, 0.3, 0.6])

    def make(self, random, rows, steps):
        return random.uniform(size=(rows, steps)), random.normal(size=(rows, steps)), random.integers(0, 3, rows)

    def rscan(self, rows, steps):
        p, mean, scale = rs.constant(self.P), rs.constant(self.MEAN), rs.constant(self.SCALE)

        def path(u, z, s0):
            def step(u, z, x, s):
                s = rs.minimum(rs.cast(rs.sum(p[s] < u), "int64"), 2)
                return dict(x=0.9 * x + mean[s] + scale[s] * z, s=s)

            return rs.loop(step, over=dict(u=u, z=z), init=dict(x=0.0, s=s0)).x

        return rs.compile(rs.vmap(path))

    def jax(self, rows, steps):
        import jax, jax.numpy as jnp

        p, mean, scale = jnp.asarray(self.P), jnp.asarray(self.MEAN), jnp.asarray(self.SCALE)

        def path(u, z, s0):
            def step(state, given):
                (x, s), (u, z) = state, given
                s = jnp.minimum(jnp.sum(p[s] < u), 2)
                x = 0.9 * x + mean[s] + scale[s] * z
                return (x, s), x

            return jax.lax.scan(step, (0.0, s0), (u, z))[1]

        return jax.jit(jax.vmap(path))


class NewtonForEachRow(Model):
    """Newton's method for two equations, from the same start for the right sides of each row."""

    kind, dtype = KIND, "float64"
    size, small = dict(rows=1000, steps=20), dict(rows=5, steps=20)

    def make(self, random, rows, steps):
        return (np.stack([random.uniform(4, 5, rows), random.uniform(0.5, 1.0, rows)], axis=1),)

    @staticmethod
    def step(np_, solve, x, p):
        f = np_.stack([x[0] ** 2 + x[1] ** 2 - p[0], x[0] * x[1] - p[1]])
        slope = np_.stack([np_.stack([2 * x[0], 2 * x[1]]), np_.stack([x[1], x[0]])])
        return x - solve(slope, f)

    def rscan(self, rows, steps):
        start = np.array([2.0, 0.5])
        return rs.compile(rs.vmap(lambda p: rs.loop(lambda x: self.step(rs, rs.linalg.solve, x, p), init=start, n_steps=steps)[-1]))

    def jax(self, rows, steps):
        import jax, jax.numpy as jnp

        def root(p):
            step = lambda x, _: (self.step(jnp, jnp.linalg.solve, x, p), None)
            return jax.lax.scan(step, jnp.array([2.0, 0.5]), None, length=steps)[0]

        return jax.jit(jax.vmap(root))


class LstmOfEachSeries(Model):
    """A small LSTM with weights of its own for each series: the gradient of its error one step ahead."""

    kind, dtype = KIND, "float64"
    size, small = dict(rows=64, steps=100, units=2), dict(rows=5, steps=7, units=2)

    def make(self, random, rows, steps, units):
        return 0.5 * random.normal(size=(rows, 4 * units, units + 2)), random.normal(size=(rows, steps))

    def rscan(self, rows, steps, units):
        def loss(w, y):
            def step(y, h, c):
                a = w[:, :units] @ h + w[:, units] * y + w[:, units + 1]
                i, f, o = (rs.sigmoid(a[k * units : (k + 1) * units]) for k in range(3))
                c = f * c + i * rs.tanh(a[3 * units :])
                return dict(h=o * rs.tanh(c), c=c)

            h = rs.loop(step, over=dict(y=y), init=dict(h=rs.zeros(units), c=rs.zeros(units))).h
            return rs.mean((h[:-1, 0] - y[1:]) ** 2)

        return rs.compile(rs.vmap(rs.grad(loss)))

    def jax(self, rows, steps, units):
        import jax, jax.numpy as jnp

        def loss(w, y):
            def step(state, y):
                h, c = state
                a = w[:, :units] @ h + w[:, units] * y + w[:, units + 1]
                i, f, o = (jax.nn.sigmoid(a[k * units : (k + 1) * units]) for k in range(3))
                c = f * c + i * jnp.tanh(a[3 * units :])
                h = o * jnp.tanh(c)
                return (h, c), h

            h = jax.lax.scan(step, (jnp.zeros(units), jnp.zeros(units)), y)[1]
            return jnp.mean((h[:-1, 0] - y[1:]) ** 2)

        return jax.jit(jax.vmap(jax.grad(loss)))


class EpidemicsThatEnd(Model):
    """Epidemics with rates of their own, each until few are infected: what is left."""

    kind, dtype = KIND, "float64"
    size, small = dict(rows=256, steps=400), dict(rows=5, steps=400)

    def make(self, random, rows, steps):
        return (random.uniform(0.15, 0.5, rows),)

    def rscan(self, rows, steps):
        def run(rate):
            def step(s):
                new, well = rate * s[0] * s[1], 0.1 * s[1]
                s = s + rs.stack([-new, new - well, well])
                return s, rs.until(s[1] < 1e-3)

            return rs.loop(step, init=np.array([0.99, 0.01, 0.0]), n_steps=steps)[-1]

        return rs.compile(rs.vmap(run))

    def jax(self, rows, steps):
        import jax, jax.numpy as jnp

        def run(rate):
            def step(state):
                s, n = state
                new, well = rate * s[0] * s[1], 0.1 * s[1]
                return s + jnp.stack([-new, new - well, well]), n + 1

            goes_on = lambda state: (state[1] < steps) & ((state[1] < 1) | (state[0][1] >= 1e-3))
            return jax.lax.while_loop(goes_on, step, (jnp.array([0.99, 0.01, 0.0]), 0))[0]

        return jax.jit(jax.vmap(run))


class EnsembleKalmanFilter(Model):
    """Members of an ensemble that are moved by what their common mean and covariance say of an observation: rows that depend on each other."""

    kind, dtype = KIND, "float64"
    size, small = dict(rows=100, steps=200), dict(rows=5, steps=9)

    def make(self, random, rows, steps):
        return random.normal(size=(rows, 3)), random.normal(size=steps)

    def rscan(self, rows, steps):
        def step(y, x):
            x = x + 0.01 * rs.stack(
                [10 * (x[:, 1] - x[:, 0]), x[:, 0] * (28 - x[:, 2]) - x[:, 1], x[:, 0] * x[:, 1] - 8 / 3 * x[:, 2]], axis=1
            )
            d = x - x.mean(axis=0)
            gain = (d * d[:, :1]).sum(axis=0) / (rs.sum(d[:, 0] ** 2) + rows)
            return x + (y - x[:, 0])[:, None] * gain

        return rs.compile(lambda x0, y: rs.loop(step, over=dict(y=y), init=dict(x=x0)).x)

    def jax(self, rows, steps):
        import jax, jax.numpy as jnp

        def step(x, y):
            x = x + 0.01 * jnp.stack(
                [10 * (x[:, 1] - x[:, 0]), x[:, 0] * (28 - x[:, 2]) - x[:, 1], x[:, 0] * x[:, 1] - 8 / 3 * x[:, 2]], axis=1
            )
            d = x - x.mean(axis=0)
            gain = (d * d[:, :1]).sum(axis=0) / (jnp.sum(d[:, 0] ** 2) + rows)
            x = x + (y - x[:, 0])[:, None] * gain
            return x, x

        return jax.jit(lambda x0, y: jax.lax.scan(step, x0, y)[1])
