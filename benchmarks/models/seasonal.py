"""Time series with long taps into the past."""

import numpy as np
import rscan as rs
from models import Model

KIND = "long and seasonal taps"


class Sarima(Model):
    """SARIMA(1,0,1)(1,0,1)12 by conditional sums of squares; the gradient by four coefficients."""

    kind, dtype = KIND, "float64"
    size, small = dict(steps=600), dict(steps=20)

    def make(self, random, steps):
        return np.array([0.5, 0.3, 0.4, 0.2]), random.normal(size=steps).cumsum() / 10

    def rscan(self, steps):
        def loss(p, y):
            phi, theta, Phi, Theta = p[0], p[1], p[2], p[3]

            def step(y, e):
                (y13, y12, y1, y0), (e13, e12, e1) = y, e
                return y0 - phi * y1 - Phi * y12 + phi * Phi * y13 - theta * e1 - Theta * e12 - theta * Theta * e13

            e = rs.loop(step, over=rs.taps(y, -13, -12, -1, 0), init=rs.taps(rs.zeros(13), -13, -12, -1))
            return rs.sum(e**2)

        return rs.value_and_grad(loss)

    def jax(self, steps):
        import jax, jax.numpy as jnp

        def loss(p, y):
            phi, theta, Phi, Theta = p

            def step(e, given):
                y13, y12, y1, y0 = given
                new = y0 - phi * y1 - Phi * y12 + phi * Phi * y13 - theta * e[-1] - Theta * e[1] - theta * Theta * e[0]
                return jnp.append(e[1:], new), new

            return jnp.sum(jax.lax.scan(step, jnp.zeros(13), (y[:-13], y[1:-12], y[12:-1], y[13:]))[1] ** 2)

        return jax.jit(jax.value_and_grad(loss))


class DampedSeasonalETS(Model):
    """Exponential smoothing with errors, a damped trend and a season of 12; the gradient by parameters and all initial states."""

    kind, dtype = KIND, "float64"
    size, small = dict(steps=500), dict(steps=16)

    def make(self, random, steps):
        return np.array([0.0, -2.0, -1.5, 2.0]), np.array([10.0, 0.1]), random.normal(size=12), random.normal(size=steps) + 10

    def rscan(self, steps):
        def loss(p, start, season0, y):
            alpha, beta, gamma, phi = rs.sigmoid(p[0]), rs.sigmoid(p[1]), rs.sigmoid(p[2]), rs.sigmoid(p[3])

            def step(y, level, trend, season):
                e = y - level - phi * trend - season
                return dict(level=level + phi * trend + alpha * e, trend=phi * trend + beta * e, season=season + gamma * e, e=e)

            out = rs.loop(step, over=dict(y=y), init=dict(level=start[0], trend=start[1], season=rs.taps(season0, -12)))
            return rs.log(rs.mean(out.e**2))

        return rs.value_and_grad(loss, wrt=(0, 1, 2))

    def jax(self, steps):
        import jax, jax.numpy as jnp

        def loss(p, start, season0, y):
            alpha, beta, gamma, phi = jax.nn.sigmoid(p)

            def step(state, y):
                level, trend, season = state
                e = y - level - phi * trend - season[0]
                season = jnp.append(season[1:], season[0] + gamma * e)
                return (level + phi * trend + alpha * e, phi * trend + beta * e, season), e

            e = jax.lax.scan(step, (start[0], start[1], season0), y)[1]
            return jnp.log(jnp.mean(e**2))

        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2)))


class AR24(Model):
    """A simulated autoregression with 24 taps and a threshold; the gradient by all coefficients."""

    kind, dtype = KIND, "float64"
    size, small = dict(steps=1000, order=24), dict(steps=6, order=4)

    def make(self, random, steps, order):
        return random.normal(size=order) / order, random.normal(size=steps), np.zeros(order)

    def rscan(self, steps, order):
        def loss(w, noise, start):
            def step(noise, past):
                return rs.tanh(sum(w[k] * past[k] for k in range(order))) + noise

            return rs.mean(rs.loop(step, over=noise, init=rs.taps(start, *range(-order, 0))) ** 2)

        return rs.value_and_grad(loss)

    def jax(self, steps, order):
        import jax, jax.numpy as jnp

        def loss(w, noise, start):
            def step(past, noise):
                new = jnp.tanh(w @ past) + noise
                return jnp.append(past[1:], new), new

            return jnp.mean(jax.lax.scan(step, start, noise)[1] ** 2)

        return jax.jit(jax.value_and_grad(loss))


class DelayedLogistic(Model):
    """Many populations with a delay of 17 generations (Mackey and Glass), all rows returned."""

    kind, dtype = KIND, "float64"
    size, small = dict(n=64, steps=1000, delay=17), dict(n=2, steps=6, delay=3)
    rtol = 1e-6

    def make(self, random, n, steps, delay):
        return random.uniform(0.5, 1.5, size=(delay, n)), random.uniform(0.1, 0.2, size=n)

    def rscan(self, n, steps, delay):
        @rs.compile
        def f(start, rate):
            def step(x):
                late, now = x
                return now + 0.5 * (rate * late / (1 + late**10) - 0.1 * now)

            return rs.loop(step, init=rs.taps(start, -delay, -1), n_steps=steps)

        return f

    def jax(self, n, steps, delay):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(start, rate):
            def step(past, _):
                late, now = past[0], past[-1]
                new = now + 0.5 * (rate * late / (1 + late**10) - 0.1 * now)
                return jnp.concatenate([past[1:], new[None]]), new

            return jax.lax.scan(step, start, None, length=steps)[1]

        return f
