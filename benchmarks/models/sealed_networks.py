"""Recurrent nets of 16 to 512 units, for batches of 1 to 128."""

import numpy as np

import rscan as rs
from models import Model


def draw(random, *shape):
    return (random.normal(size=shape) / np.sqrt(shape[0])).astype("f4")


class GruDigits(Model):
    """A GRU reads an image row by row and names the digit at the end: loss and all gradients."""

    kind = "RNN, GRU, LSTM"
    dtype = "float32"
    size = dict(steps=28, inputs=28, units=64, batch=32)
    small = dict(steps=3, inputs=2, units=3, batch=2)

    def make(self, random, steps, inputs, units, batch):
        parameters = dict(
            Wz=draw(random, inputs, units), Uz=draw(random, units, units), bz=np.zeros(units, "f4"),
            Wr=draw(random, inputs, units), Ur=draw(random, units, units), br=np.zeros(units, "f4"),
            Wh=draw(random, inputs, units), Uh=draw(random, units, units), bh=np.zeros(units, "f4"),
            V=draw(random, units, 10), c=np.zeros(10, "f4"),
        )  # fmt: skip
        return parameters, random.random((steps, batch, inputs)).astype("f4"), random.integers(0, 10, size=batch)

    def rscan(self, steps, inputs, units, batch):
        @rs.compile
        def loss(p, x, label):
            def step(x, h):
                z = rs.sigmoid(x @ p["Wz"] + h @ p["Uz"] + p["bz"])
                r = rs.sigmoid(x @ p["Wr"] + h @ p["Ur"] + p["br"])
                n = rs.tanh(x @ p["Wh"] + (r * h) @ p["Uh"] + p["bh"])
                return (1 - z) * h + z * n

            h = rs.loop(step, over=x, init=rs.zeros((batch, units), dtype="float32"))[-1]
            logits = h @ p["V"] + p["c"]
            return rs.mean(rs.logsumexp(logits, axis=1) - logits[rs.arange(batch), label])

        return rs.value_and_grad(loss)

    def jax(self, steps, inputs, units, batch):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def loss(p, x, label):
            # the inputs' products are taken for all steps and gates at once
            W = jnp.concatenate([p["Wz"], p["Wr"], p["Wh"]], axis=1)
            b = jnp.concatenate([p["bz"], p["br"], p["bh"]])
            U = jnp.concatenate([p["Uz"], p["Ur"]], axis=1)

            def step(h, a):
                zr = jax.nn.sigmoid(a[:, : 2 * units] + h @ U)
                z, r = zr[:, :units], zr[:, units:]
                n = jnp.tanh(a[:, 2 * units :] + (r * h) @ p["Uh"])
                return (1 - z) * h + z * n, None

            h, _ = lax.scan(step, jnp.zeros((batch, units), jnp.float32), x @ W + b)
            log_p = jax.nn.log_softmax(h @ p["V"] + p["c"])
            return -jnp.mean(jnp.take_along_axis(log_p, label[:, None], axis=1))

        return jax.jit(jax.value_and_grad(loss))


class LstmLanguageModel(Model):
    """A language model of words: embedding, LSTM, softmax; the loss and all gradients."""

    kind = "RNN, GRU, LSTM"
    dtype = "float32"
    size = dict(steps=24, units=96, batch=16, words=200)
    small = dict(steps=3, units=3, batch=2, words=5)

    def make(self, random, steps, units, batch, words):
        parameters = dict(
            E=draw(random, words, units), W=draw(random, units, 4 * units), U=draw(random, units, 4 * units),
            b=np.zeros(4 * units, "f4"), V=draw(random, units, words), c=np.zeros(words, "f4"),
        )  # fmt: skip
        return parameters, random.integers(0, words, size=(steps + 1, batch))

    def rscan(self, steps, units, batch, words):
        @rs.compile
        def loss(p, text):
            def step(x, h, c):
                a = x @ p["W"] + h @ p["U"] + p["b"]
                i, f, o, g = a[:, :units], a[:, units : 2 * units], a[:, 2 * units : 3 * units], a[:, 3 * units :]
                c = rs.sigmoid(f + 1) * c + rs.sigmoid(i) * rs.tanh(g)
                return dict(h=rs.sigmoid(o) * rs.tanh(c), c=c)

            zero = rs.zeros((batch, units), dtype="float32")
            h = rs.loop(step, over=dict(x=p["E"][text[:-1]]), init=dict(h=zero, c=zero)).h
            log_p = rs.log_softmax(h @ p["V"] + p["c"], axis=-1)
            return -rs.mean(rs.take_along_axis(log_p, text[1:, :, None], axis=2))

        return rs.value_and_grad(loss)

    def jax(self, steps, units, batch, words):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def loss(p, text):
            def step(state, a):
                h, c = state
                i, f, o, g = jnp.split(a + h @ p["U"], 4, axis=1)
                c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
                h = jax.nn.sigmoid(o) * jnp.tanh(c)
                return (h, c), h

            zero = jnp.zeros((batch, units), jnp.float32)
            _, h = lax.scan(step, (zero, zero), p["E"][text[:-1]] @ p["W"] + p["b"])
            log_p = jax.nn.log_softmax(h @ p["V"] + p["c"])
            return -jnp.mean(jnp.take_along_axis(log_p, text[1:, :, None], axis=2))

        return jax.jit(jax.value_and_grad(loss))


class LeakyReservoir(Model):
    """A reservoir of leaky units that first follows a signal and then goes on alone, fed with its own readings."""

    kind = "RNN, GRU, LSTM"
    dtype = "float64"
    size = dict(units=250, steps=150)
    small = dict(units=5, steps=3)
    rtol = 1e-6

    def make(self, random, units, steps):
        W = random.normal(size=(units, units)) * (random.random((units, units)) < 0.1)
        W *= 0.9 / np.max(np.abs(np.linalg.eigvals(W)) + 1e-9)
        return W, random.uniform(-0.5, 0.5, size=units), random.normal(size=units) / units, np.sin(0.2 * np.arange(steps))

    def rscan(self, units, steps):
        @rs.compile
        def run(W, W_in, readout, signal):
            def unit(x, h):
                return 0.7 * h + 0.3 * rs.tanh(W @ h + W_in * x)

            h = rs.loop(unit, over=signal, init=rs.zeros(units))

            def free(h):
                y = rs.dot(readout, h)
                return dict(h=unit(y, h), y=y)

            return h[-1], rs.loop(free, init=dict(h=h[-1]), n_steps=steps).y

        return run

    def jax(self, units, steps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def run(W, W_in, readout, signal):
            def unit(x, h):
                return 0.7 * h + 0.3 * jnp.tanh(W @ h + W_in * x)

            h, _ = lax.scan(lambda h, x: (unit(x, h), None), jnp.zeros(units), signal)

            def free(h, _):
                y = readout @ h
                return unit(y, h), y

            return h, lax.scan(free, h, None, length=steps)[1]

        return run


class SpikingLayer(Model):
    """Leaky integrate-and-fire neurons trained through a surrogate of their spikes: loss and gradients."""

    kind = "RNN, GRU, LSTM"
    dtype = "float32"
    size = dict(steps=60, inputs=40, neurons=64, batch=16)
    small = dict(steps=4, inputs=2, neurons=3, batch=2)

    def make(self, random, steps, inputs, neurons, batch):
        spikes = (random.random((steps, batch, inputs)) < 0.2).astype("f4")
        W = 2 * draw(random, inputs, neurons)
        return (W, draw(random, neurons, neurons), draw(random, neurons, 3)), spikes, random.integers(0, 3, size=batch)

    def rscan(self, steps, inputs, neurons, batch):
        def spike(v):
            soft = v / (1 + 10 * rs.abs(v))
            return soft + rs.stop_gradient(rs.cast(v > 0, "float32") - soft)

        @rs.compile
        def loss(weights, x, label):
            W, U, V = weights

            def step(x, v, s, out):
                v = np.float32(0.9) * v * (1 - s) + x @ W + s @ U
                s = spike(v - 1)
                return dict(v=v, s=s, out=np.float32(0.95) * out + s @ V)

            zero = rs.zeros((batch, neurons), dtype="float32")
            init = dict(v=zero, s=zero, out=rs.zeros((batch, 3), dtype="float32"))
            loop = rs.loop(step, over=dict(x=x), init=init)
            logits = rs.max(loop.out, axis=0)
            rate = rs.mean(loop.s)
            return rs.mean(rs.logsumexp(logits, axis=1) - logits[rs.arange(batch), label]) + (rate - np.float32(0.1)) ** 2

        return rs.value_and_grad(loss)

    def jax(self, steps, inputs, neurons, batch):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def spike(v):
            soft = v / (1 + 10 * jnp.abs(v))
            return soft + lax.stop_gradient((v > 0).astype(jnp.float32) - soft)

        def loss(weights, x, label):
            W, U, V = weights

            def step(state, a):
                v, s, out = state
                v = 0.9 * v * (1 - s) + a + s @ U
                s = spike(v - 1)
                out = 0.95 * out + s @ V
                return (v, s, out), (s, out)

            zero = jnp.zeros((batch, neurons), jnp.float32)
            _, (s, out) = lax.scan(step, (zero, zero, jnp.zeros((batch, 3), jnp.float32)), x @ W)
            log_p = jax.nn.log_softmax(jnp.max(out, axis=0))
            return -jnp.mean(log_p[jnp.arange(batch), label]) + (jnp.mean(s) - 0.1) ** 2

        return jax.jit(jax.value_and_grad(loss))


class StreamingGru(Model):
    """A wide GRU for one stream, as speech comes in: all readings, without gradients."""

    kind = "RNN, GRU, LSTM"
    dtype = "float32"
    size = dict(steps=40, inputs=40, units=256)
    small = dict(steps=3, inputs=2, units=3)

    def make(self, random, steps, inputs, units):
        x = random.normal(size=(steps, inputs)).astype("f4")
        return draw(random, inputs, 3 * units), draw(random, units, 3 * units), np.zeros(3 * units, "f4"), draw(random, units, 8), x

    def rscan(self, steps, inputs, units):
        @rs.compile
        def run(W, U, b, V, x):
            def step(x, h):
                a, u = x @ W + b, h @ U
                z = rs.sigmoid(a[:units] + u[:units])
                r = rs.sigmoid(a[units : 2 * units] + u[units : 2 * units])
                n = rs.tanh(a[2 * units :] + r * u[2 * units :])
                h = z * h + (1 - z) * n
                return dict(h=h, y=h @ V)

            out = rs.loop(step, over=dict(x=x), init=dict(h=rs.zeros(units, dtype="float32")))
            return out.y, out.h[-1]

        return run

    def jax(self, steps, inputs, units):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def run(W, U, b, V, x):
            def step(h, a):
                u = h @ U
                z = jax.nn.sigmoid(a[:units] + u[:units])
                r = jax.nn.sigmoid(a[units : 2 * units] + u[units : 2 * units])
                n = jnp.tanh(a[2 * units :] + r * u[2 * units :])
                h = z * h + (1 - z) * n
                return h, h

            h, hs = lax.scan(step, jnp.zeros(units, jnp.float32), x @ W + b)
            return hs @ V, h

        return run


class BatchedElman(Model):
    """The adding problem: an Elman net of rectified units for a large batch, started at the identity; all gradients."""

    kind = "RNN, GRU, LSTM"
    dtype = "float32"
    size = dict(steps=40, units=100, batch=128)
    small = dict(steps=4, units=3, batch=2)

    def make(self, random, steps, units, batch):
        x = np.stack([random.random((steps, batch)), random.random((steps, batch)) < 2 / steps], axis=2).astype("f4")
        return (draw(random, 2, units), np.eye(units, dtype="f4"), np.zeros(units, "f4"), draw(random, units, 1)), x

    def rscan(self, steps, units, batch):
        @rs.compile
        def loss(parameters, x):
            W, U, b, v = parameters
            target = rs.sum(x[:, :, 0] * x[:, :, 1], axis=0)
            h = rs.loop(lambda x, h: rs.maximum(x @ W + h @ U + b, 0), over=x, init=rs.zeros((batch, units), dtype="float32"))
            return rs.mean(((h[-1] @ v)[:, 0] / units - target) ** 2)

        return rs.value_and_grad(loss)

    def jax(self, steps, units, batch):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def loss(parameters, x):
            W, U, b, v = parameters
            target = jnp.sum(x[:, :, 0] * x[:, :, 1], axis=0)
            h0 = jnp.zeros((batch, units), jnp.float32)
            h, _ = lax.scan(lambda h, a: (jnp.maximum(a + h @ U, 0), None), h0, x @ W + b)
            return jnp.mean(((h @ v)[:, 0] / units - target) ** 2)

        return jax.jit(jax.value_and_grad(loss))


class TinyLstmForecast(Model):
    """An LSTM of sixteen units on one long series, trained by prediction of the next value: loss and gradients in f64."""

    kind = "RNN, GRU, LSTM"
    dtype = "float64"
    size = dict(steps=300, units=16)
    small = dict(steps=5, units=2)

    def make(self, random, steps, units):
        y = np.sin(0.1 * np.arange(steps + 1)) + 0.1 * random.normal(size=steps + 1)
        U = random.normal(size=(4, units, units)) / np.sqrt(units)
        return dict(w=random.normal(size=(4, units)), U=U, b=np.zeros((4, units)), v=random.normal(size=units) / units), y

    def rscan(self, steps, units):
        @rs.compile
        def loss(p, y):
            w, U, b, v = p["w"], p["U"], p["b"], p["v"]

            def step(y, h, c):
                before, now = y
                i = rs.sigmoid(w[0] * before + U[0] @ h + b[0])
                f = rs.sigmoid(w[1] * before + U[1] @ h + b[1])
                o = rs.sigmoid(w[2] * before + U[2] @ h + b[2])
                c = f * c + i * rs.tanh(w[3] * before + U[3] @ h + b[3])
                h = o * rs.tanh(c)
                return dict(h=h, c=c, e=now - rs.dot(v, h))

            init = dict(h=rs.zeros(units), c=rs.zeros(units))
            return rs.mean(rs.loop(step, over=dict(y=rs.taps(y, -1, 0)), init=init).e ** 2)

        return rs.value_and_grad(loss)

    def jax(self, steps, units):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def loss(p, y):
            U = p["U"].reshape(4 * units, units)

            def step(state, row):
                h, c = state
                a, now = row
                i, f, o, g = a + (U @ h).reshape(4, units)
                c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
                h = jax.nn.sigmoid(o) * jnp.tanh(c)
                return (h, c), now - p["v"] @ h

            inputs = p["w"] * y[:-1, None, None] + p["b"]
            _, e = lax.scan(step, (jnp.zeros(units), jnp.zeros(units)), (inputs, y[1:]))
            return jnp.mean(e**2)

        return jax.jit(jax.value_and_grad(loss))
