"""States that are indexed, sliced, rolled and stacked again."""

import numpy as np
import rscan as rs
from models import Model

KIND = "sliced, rolled and stacked states"


class LotkaVolterra(Model):
    """Prey and predators as one vector, by Heun's method; the gradient by the four rates."""

    kind, dtype = KIND, "float64"
    size, small = dict(steps=1000), dict(steps=6)

    def make(self, random, steps):
        return np.array([1.1, 0.4, 0.4, 0.1]), np.array([10.0, 5.0]), random.uniform(1, 10, size=(steps, 2))

    def rscan(self, steps):
        def loss(p, s0, data):
            h = 0.01

            def slope(s):
                return rs.stack([p[0] * s[0] - p[1] * s[0] * s[1], p[3] * s[0] * s[1] - p[2] * s[1]])

            def step(s):
                k = slope(s)
                return s + h / 2 * (k + slope(s + h * k))

            return rs.mean((rs.loop(step, init=s0, n_steps=steps) - data) ** 2)

        return rs.value_and_grad(loss)

    def jax(self, steps):
        import jax, jax.numpy as jnp

        def loss(p, s0, data):
            h = 0.01

            def slope(s):
                return jnp.stack([p[0] * s[0] - p[1] * s[0] * s[1], p[3] * s[0] * s[1] - p[2] * s[1]])

            def step(s, _):
                k = slope(s)
                s = s + h / 2 * (k + slope(s + h * k))
                return s, s

            return jnp.mean((jax.lax.scan(step, s0, None, length=steps)[1] - data) ** 2)

        return jax.jit(jax.value_and_grad(loss))


class DelayLine(Model):
    """A filter of finite response: a delay line by concatenation, and the gradient by the filter's taps."""

    kind, dtype = KIND, "float64"
    size, small = dict(steps=1500, taps=32), dict(steps=6, taps=3)

    def make(self, random, steps, taps):
        return random.normal(size=taps), random.normal(size=steps), random.normal(size=steps)

    def rscan(self, steps, taps):
        def loss(w, x, target):
            def step(x, target, line):
                line = rs.concatenate([x[None], line[:-1]])
                return dict(line=line, e=target - rs.tanh(w @ line))

            return rs.mean(rs.loop(step, over=dict(x=x, target=target), init=dict(line=rs.zeros(taps))).e ** 2)

        return rs.value_and_grad(loss)

    def jax(self, steps, taps):
        import jax, jax.numpy as jnp

        def loss(w, x, target):
            def step(line, row):
                x, target = row
                line = jnp.concatenate([x[None], line[:-1]])
                return line, target - jnp.tanh(w @ line)

            return jnp.mean(jax.lax.scan(step, jnp.zeros(taps), (x, target))[1] ** 2)

        return jax.jit(jax.value_and_grad(loss))


class AdaptiveFilter(Model):
    """Normalised least mean squares: a rolled delay line whose first place is set, and weights that adapt."""

    kind, dtype = KIND, "float32"
    size, small = dict(steps=2000, taps=24), dict(steps=6, taps=3)

    def make(self, random, steps, taps):
        x = random.normal(size=steps)
        return x.astype("f4"), np.convolve(x, random.normal(size=taps))[:steps].astype("f4")

    def rscan(self, steps, taps):
        @rs.compile
        def f(x, d):
            def step(x, d, line, w):
                line = rs.roll(line, 1).at[0].set(x)
                e = d - rs.dot(w, line)
                return dict(line=line, w=w + 0.5 * e * line / (0.1 + rs.dot(line, line)), e=e)

            zero = rs.zeros(taps, dtype="float32")
            out = rs.loop(step, over=dict(x=x, d=d), init=dict(line=zero, w=zero))
            return out.e, out.w[-1]

        return f

    def jax(self, steps, taps):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(x, d):
            def step(state, row):
                (line, w), (x, d) = state, row
                line = jnp.roll(line, 1).at[0].set(x)
                e = d - jnp.dot(w, line)
                return (line, w + 0.5 * e * line / (0.1 + jnp.dot(line, line))), e

            zero = jnp.zeros(taps, "float32")
            (_, w), e = jax.lax.scan(step, (zero, zero), (x, d))
            return e, w

        return f


class CombReverb(Model):
    """Four comb filters with ring buffers of different lengths, read and written at positions that go round."""

    kind, dtype = KIND, "float64"
    size, small = dict(steps=3000, length=200), dict(steps=9, length=4)

    def make(self, random, steps, length):
        return random.normal(size=steps), np.array([length, length - 1, length - 2, length - 3]), np.array([0.8, 0.78, 0.76, 0.74])

    def rscan(self, steps, length):
        @rs.compile
        def f(x, delays, gains):
            def step(t, x, ring):
                at = t % delays
                lines = rs.arange(4)
                heard = ring[lines, at]
                return dict(ring=ring.at[lines, at].set(x + gains * heard), y=rs.sum(heard))

            return rs.loop(step, over=dict(t=rs.arange(steps), x=x), init=dict(ring=rs.zeros((4, length)))).y

        return f

    def jax(self, steps, length):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(x, delays, gains):
            def step(ring, row):
                t, x = row
                at = t % delays
                lines = jnp.arange(4)
                heard = ring[lines, at]
                return ring.at[lines, at].set(x + gains * heard), jnp.sum(heard)

            return jax.lax.scan(step, jnp.zeros((4, length)), (jnp.arange(steps), x))[1]

        return f


class DoublePendulum(Model):
    """Angles and speeds in one vector that is cut in two and joined, by the classical Runge-Kutta method."""

    kind, dtype = KIND, "float64"
    size, small = dict(steps=1000), dict(steps=5)

    def make(self, random, steps):
        return (np.array([1.0, 0.5, 0.0, 0.2]),)

    def rscan(self, steps):
        @rs.compile
        def f(s0):
            def slope(s):
                (a, b), (u, v) = (s[0], s[1]), (s[2], s[3])
                d = a - b
                low = 3 - rs.cos(2 * d)
                du = (-29.43 * rs.sin(a) - 9.81 * rs.sin(a - 2 * b) - 2 * rs.sin(d) * (v**2 + u**2 * rs.cos(d))) / low
                dv = 2 * rs.sin(d) * (2 * u**2 + 19.62 * rs.cos(a) + v**2 * rs.cos(d)) / low
                return rs.concatenate([s[2:], rs.stack([du, dv])])

            def step(s):
                h = 0.005
                k1 = slope(s)
                k2 = slope(s + h / 2 * k1)
                k3 = slope(s + h / 2 * k2)
                return s + h / 6 * (k1 + 2 * k2 + 2 * k3 + slope(s + h * k3))

            return rs.loop(step, init=s0, n_steps=steps)

        return f

    def jax(self, steps):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(s0):
            def slope(s):
                a, b, u, v = s
                d = a - b
                low = 3 - jnp.cos(2 * d)
                du = (-29.43 * jnp.sin(a) - 9.81 * jnp.sin(a - 2 * b) - 2 * jnp.sin(d) * (v**2 + u**2 * jnp.cos(d))) / low
                dv = 2 * jnp.sin(d) * (2 * u**2 + 19.62 * jnp.cos(a) + v**2 * jnp.cos(d)) / low
                return jnp.concatenate([s[2:], jnp.stack([du, dv])])

            def step(s, _):
                h = 0.005
                k1 = slope(s)
                k2 = slope(s + h / 2 * k1)
                k3 = slope(s + h / 2 * k2)
                s = s + h / 6 * (k1 + 2 * k2 + 2 * k3 + slope(s + h * k3))
                return s, s

            return jax.lax.scan(step, s0, None, length=steps)[1]

        return f

    rtol = 1e-6


class PluckedString(Model):
    """Karplus and Strong's string: a ring buffer that is averaged, read and rolled; the gradient by damping and excitation."""

    kind, dtype = KIND, "float64"
    size, small = dict(steps=1000, length=50), dict(steps=9, length=4)

    def make(self, random, steps, length):
        return np.float64(0.99), random.normal(size=length), random.normal(size=steps)

    def rscan(self, steps, length):
        def loss(damping, pluck, target):
            def step(s):
                out = s[0]
                return rs.concatenate([s[1:], rs.stack([damping * 0.5 * (s[0] + s[1])])]), out

            _, heard = rs.loop(step, init=[pluck], n_steps=steps)
            return rs.mean((heard - target) ** 2)

        return rs.value_and_grad(loss, wrt=(0, 1))

    def jax(self, steps, length):
        import jax, jax.numpy as jnp

        def loss(damping, pluck, target):
            def step(s, _):
                return jnp.concatenate([s[1:], damping * 0.5 * (s[0] + s[1])[None]]), s[0]

            heard = jax.lax.scan(step, pluck, None, length=steps)[1]
            return jnp.mean((heard - target) ** 2)

        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))
