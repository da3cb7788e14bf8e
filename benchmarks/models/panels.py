"""Panels: many series at once, each with parameters of its own."""

import numpy as np
import rscan as rs
from models import Model

KIND = "panels of series"


class HoltWintersPanel(Model):
    """Holt and Winters' smoothing with a season of 12 for many series; the gradient by three parameters of each."""

    kind, dtype = KIND, "float64"
    size, small = dict(series=200, steps=120), dict(series=3, steps=15)

    def make(self, random, series, steps):
        return random.normal(size=(3, series)), random.normal(size=(steps, series)).cumsum(axis=0) + 10, random.normal(size=(12, series))

    def rscan(self, series, steps):
        def loss(p, y, season0):
            alpha, beta, gamma = rs.sigmoid(p[0]), rs.sigmoid(p[1]), rs.sigmoid(p[2])

            def step(y, level, trend, season):
                new = alpha * (y - season) + (1 - alpha) * (level + trend)
                return dict(
                    level=new,
                    trend=beta * (new - level) + (1 - beta) * trend,
                    season=gamma * (y - new) + (1 - gamma) * season,
                    e=y - level - trend - season,
                )

            start = dict(level=y[0], trend=rs.zeros_like(y[0]), season=rs.taps(season0, -12))
            return rs.mean(rs.loop(step, over=dict(y=y), init=start).e ** 2)

        return rs.value_and_grad(loss)

    def jax(self, series, steps):
        import jax, jax.numpy as jnp

        def loss(p, y, season0):
            alpha, beta, gamma = jax.nn.sigmoid(p)

            def step(state, given):
                (level, trend, seasons), (t, y) = state, given
                season = seasons[t % 12]
                new = alpha * (y - season) + (1 - alpha) * (level + trend)
                e = y - level - trend - season
                trend = beta * (new - level) + (1 - beta) * trend
                return (new, trend, seasons.at[t % 12].set(gamma * (y - new) + (1 - gamma) * season)), e

            e = jax.lax.scan(step, (y[0], jnp.zeros(series), season0), (jnp.arange(steps), y))[1]
            return jnp.mean(e**2)

        return jax.jit(jax.value_and_grad(loss))


class GarchPanel(Model):
    """GARCH(1,1) for many series; the gradient by the parameters of each."""

    kind, dtype = KIND, "float64"
    size, small = dict(series=100, steps=500), dict(series=3, steps=5)

    def make(self, random, series, steps):
        p = np.stack([np.full(series, -2.0), np.full(series, -2.2), np.full(series, 1.5)]) + 0.1 * random.normal(size=(3, series))
        return p, random.normal(size=(steps, series))

    def rscan(self, series, steps):
        def loss(p, r):
            omega, alpha, beta = rs.exp(p[0]), rs.sigmoid(p[1]), rs.sigmoid(p[2])
            s2 = rs.loop(lambda r, s2: omega + alpha * r**2 + beta * s2, over=r[:-1], init=rs.mean(r**2, axis=0))
            return 0.5 * rs.sum(rs.log(s2) + r[1:] ** 2 / s2)

        return rs.value_and_grad(loss)

    def jax(self, series, steps):
        import jax, jax.numpy as jnp

        def loss(p, r):
            omega, alpha, beta = jnp.exp(p[0]), jax.nn.sigmoid(p[1]), jax.nn.sigmoid(p[2])

            def step(s2, r):
                s2 = omega + alpha * r**2 + beta * s2
                return s2, s2

            s2 = jax.lax.scan(step, jnp.mean(r**2, axis=0), r[:-1])[1]
            return 0.5 * jnp.sum(jnp.log(s2) + r[1:] ** 2 / s2)

        return jax.jit(jax.value_and_grad(loss))


class LocalLevelPanel(Model):
    """The local level model: a Kalman filter of scalars for many series with missing values; the gradient by both variances."""

    kind, dtype = KIND, "float64"
    size, small = dict(series=300, steps=150), dict(series=3, steps=6)

    def make(self, random, series, steps):
        y = random.normal(size=(steps, series)).cumsum(axis=0)
        y[random.uniform(size=y.shape) < 0.1] = np.nan
        return random.normal(size=(2, series)), y

    def rscan(self, series, steps):
        def loss(p, y):
            q, r = rs.exp(p[0]), rs.exp(p[1])

            def step(y, a, v):
                seen = ~rs.isnan(y)
                v = v + q
                e = rs.where(seen, y - a, 0.0)
                f = v + r
                gain = rs.where(seen, v / f, 0.0)
                return dict(a=a + gain * e, v=v * (1 - gain), ll=rs.where(seen, rs.log(f) + e**2 / f, 0.0))

            out = rs.loop(step, over=dict(y=y), init=dict(a=rs.zeros(series), v=rs.full(series, 10.0)))
            return 0.5 * rs.sum(out.ll)

        return rs.value_and_grad(loss)

    def jax(self, series, steps):
        import jax, jax.numpy as jnp

        def loss(p, y):
            q, r = jnp.exp(p)

            def step(state, y):
                a, v = state
                seen = ~jnp.isnan(y)
                v = v + q
                e = jnp.where(seen, y - a, 0.0)
                f = v + r
                gain = jnp.where(seen, v / f, 0.0)
                return (a + gain * e, v * (1 - gain)), jnp.where(seen, jnp.log(f) + e**2 / f, 0.0)

            return 0.5 * jnp.sum(jax.lax.scan(step, (jnp.zeros(series), jnp.full(series, 10.0)), y)[1])

        return jax.jit(jax.value_and_grad(loss))
