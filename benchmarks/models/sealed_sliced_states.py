"""States that are indexed, cut, shifted and put together."""

import numpy as np

import rscan as rs
from models import Model


class EchoCanceller(Model):
    """Normalised least mean squares with a delay line that is shifted by one sample per step."""

    kind = "states that are indexed, sliced, rolled, stacked"
    dtype = "float64"
    size = dict(samples=2000, taps=64)
    small = dict(samples=8, taps=4)

    def make(self, random, samples, taps):
        x = random.normal(size=samples)
        echo = np.convolve(x, np.exp(-np.arange(taps) / 8) * random.normal(size=taps))[:samples]
        return x, echo + 0.01 * random.normal(size=samples), 0.5

    def rscan(self, samples, taps):
        @rs.compile
        def cancel(x, d, rate):
            def step(x, d, line, w):
                line = rs.concatenate([rs.stack([x]), line[:-1]])
                e = d - rs.dot(w, line)
                return dict(line=line, w=w + rate * e * line / (1e-3 + rs.sum(line**2)), e=e)

            out = rs.loop(step, over=dict(x=x, d=d), init=dict(line=rs.zeros(taps), w=rs.zeros(taps)))
            return out.w[-1], out.e

        return cancel

    def jax(self, samples, taps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def cancel(x, d, rate):
            def step(state, xd):
                line, w = state
                x, d = xd
                line = jnp.roll(line, 1).at[0].set(x)
                e = d - w @ line
                return (line, w + rate * e * line / (1e-3 + line @ line)), e

            (_, w), e = lax.scan(step, (jnp.zeros(taps), jnp.zeros(taps)), (x, d))
            return w, e

        return cancel


class SlotMemory(Model):
    """A ring of memory slots: each step writes one and reads all by attention; gradients of the three projections."""

    kind = "states that are indexed, sliced, rolled, stacked"
    dtype = "float32"
    size = dict(steps=100, slots=16, width=24)
    small = dict(steps=5, slots=3, width=2)

    def make(self, random, steps, slots, width):
        weights = [(random.normal(size=(width, width)) / np.sqrt(width)).astype("f4") for _ in range(3)]
        return (*weights, random.normal(size=(steps, width)).astype("f4"))

    def rscan(self, steps, slots, width):
        @rs.compile
        def loss(Wk, Wv, Wq, x):
            def step(t, x, keys, values, h):
                slot = t % slots
                keys = keys.at[slot].set(rs.tanh(x @ Wk))
                values = values.at[slot].set(rs.tanh(x @ Wv))
                attention = rs.softmax(keys @ (rs.tanh(x + h) @ Wq))
                return dict(keys=keys, values=values, h=attention @ values)

            empty = rs.zeros((slots, width), dtype="float32")
            init = dict(keys=empty, values=empty, h=rs.zeros(width, dtype="float32"))
            out = rs.loop(step, over=dict(t=rs.arange(steps - 1), x=x[:-1]), init=init)
            return rs.mean((out.h - x[1:]) ** 2)

        return rs.value_and_grad(loss, wrt=(0, 1, 2))

    def jax(self, steps, slots, width):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def loss(Wk, Wv, Wq, x):
            def step(state, tx):
                keys, values, h = state
                t, x = tx
                slot = t % slots
                keys = keys.at[slot].set(jnp.tanh(x @ Wk))
                values = values.at[slot].set(jnp.tanh(x @ Wv))
                attention = jax.nn.softmax(keys @ (jnp.tanh(x + h) @ Wq))
                h = attention @ values
                return (keys, values, h), h

            empty = jnp.zeros((slots, width), jnp.float32)
            _, h = lax.scan(step, (empty, empty, jnp.zeros(width, jnp.float32)), (jnp.arange(steps - 1), x[:-1]))
            return jnp.mean((h - x[1:]) ** 2)

        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2)))


class DoublePendulumRk4(Model):
    """The double pendulum: one state of four numbers, taken apart and stacked again, by the classical Runge-Kutta method."""

    kind = "states that are indexed, sliced, rolled, stacked"
    dtype = "float64"
    size = dict(steps=1500)
    small = dict(steps=6)

    def make(self, random, steps):
        return np.array([1.2, 0.7, 0.0, 0.1]) + 0.1 * random.normal(size=4), 0.005, 9.81

    def rscan(self, steps):
        @rs.compile
        def swing(y0, dt, g):
            def f(y):
                a, b, u, v = y[0], y[1], y[2], y[3]
                d = a - b
                bottom = 3 - rs.cos(2 * d)
                du = -3 * g * rs.sin(a) - g * rs.sin(a - 2 * b) - 2 * rs.sin(d) * (v**2 + u**2 * rs.cos(d))
                dv = 2 * rs.sin(d) * (2 * u**2 + 2 * g * rs.cos(a) + v**2 * rs.cos(d))
                return rs.stack([u, v, du / bottom, dv / bottom])

            def step(y):
                k1 = f(y)
                k2 = f(y + 0.5 * dt * k1)
                k3 = f(y + 0.5 * dt * k2)
                k4 = f(y + dt * k3)
                return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

            ys = rs.loop(step, init=y0, n_steps=steps)
            a, b, u, v = (ys[:, k] for k in range(4))
            energy = u**2 + 0.5 * v**2 + u * v * rs.cos(a - b) - g * (2 * rs.cos(a) + rs.cos(b))
            return ys, energy

        return swing

    def jax(self, steps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def swing(y0, dt, g):
            def f(y):
                a, b, u, v = y
                d = a - b
                bottom = 3 - jnp.cos(2 * d)
                du = -3 * g * jnp.sin(a) - g * jnp.sin(a - 2 * b) - 2 * jnp.sin(d) * (v**2 + u**2 * jnp.cos(d))
                dv = 2 * jnp.sin(d) * (2 * u**2 + 2 * g * jnp.cos(a) + v**2 * jnp.cos(d))
                return jnp.stack([u, v, du / bottom, dv / bottom])

            def step(y, _):
                k1 = f(y)
                k2 = f(y + 0.5 * dt * k1)
                k3 = f(y + 0.5 * dt * k2)
                k4 = f(y + dt * k3)
                y = y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
                return y, y

            _, ys = lax.scan(step, y0, None, length=steps)
            a, b, u, v = ys.T
            return ys, u**2 + 0.5 * v**2 + u * v * jnp.cos(a - b) - g * (2 * jnp.cos(a) + jnp.cos(b))

        return swing


class AmericanPutTree(Model):
    """An American put on a binomial tree, rolled back in place, and its sensitivities to spot, volatility and rate."""

    kind = "states that are indexed, sliced, rolled, stacked"
    dtype = "float64"
    size = dict(steps=400)
    small = dict(steps=5)

    def make(self, random, steps):
        return np.array([100.0, 0.2 + 0.1 * random.random(), 0.03]), 105.0, 1.0

    def rscan(self, steps):
        @rs.compile
        def price(theta, strike, maturity):
            spot, sigma, rate = theta[0], theta[1], theta[2]
            dt = maturity / steps
            up = rs.exp(sigma * rs.sqrt(dt))
            p = (rs.exp(rate * dt) - 1 / up) / (up - 1 / up)
            discount = rs.exp(-rate * dt)
            j = rs.arange(steps + 1)

            def back(level, value):
                continued = discount * (p * value[1:] + (1 - p) * value[:-1])
                exercised = strike - spot * up ** (2.0 * j[:-1] - level)
                return rs.concatenate([rs.maximum(continued, exercised), value[-1:]])

            leaves = rs.maximum(strike - spot * up ** (2.0 * j - steps), 0)
            return rs.loop(back, over=rs.arange(steps)[::-1], init=leaves)[-1, 0]

        return rs.value_and_grad(price)

    def jax(self, steps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def price(theta, strike, maturity):
            spot, sigma, rate = theta
            dt = maturity / steps
            up = jnp.exp(sigma * jnp.sqrt(dt))
            p = (jnp.exp(rate * dt) - 1 / up) / (up - 1 / up)
            discount = jnp.exp(-rate * dt)
            j = jnp.arange(steps + 1)

            def back(value, level):
                continued = discount * (p * value[1:] + (1 - p) * value[:-1])
                exercised = strike - spot * up ** (2.0 * j[:-1] - level)
                return jnp.append(jnp.maximum(continued, exercised), value[-1]), None

            leaves = jnp.maximum(strike - spot * up ** (2.0 * j - steps), 0)
            value, _ = lax.scan(back, leaves, jnp.arange(steps), reverse=True)
            return value[0]

        return jax.jit(jax.value_and_grad(price))
