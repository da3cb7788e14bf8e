"""Recurrent nets of 16 to 512 units, for one sequence and for many, with and without gradient."""

import numpy as np
import rscan as rs
from models import Model

KIND = "recurrent nets"


def weights(random, dtype, *shapes):
    """Matrices that keep the size of what they are applied to."""
    return tuple((random.normal(size=s) / np.sqrt(s[0])).astype(dtype) for s in shapes)


class ElmanOne(Model):
    """A plain net of 16 units along one sequence, all states returned."""

    kind, dtype = KIND, "float64"
    size, small = dict(steps=500, hidden=16, d=3), dict(steps=4, hidden=3, d=2)

    def make(self, random, steps, hidden, d):
        return (*weights(random, "f8", (hidden, hidden), (hidden, d)), random.normal(size=(steps, d)))

    def rscan(self, steps, hidden, d):
        @rs.compile
        def f(W, U, x):
            return rs.loop(lambda x, h: rs.tanh(W @ h + U @ x), over=x, init=rs.zeros(hidden))

        return f

    def jax(self, steps, hidden, d):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(W, U, x):
            def step(h, x):
                h = jnp.tanh(W @ h + U @ x)
                return h, h

            return jax.lax.scan(step, jnp.zeros(hidden), x)[1]

        return f


class ElmanTraining(Model):
    """The gradient of a plain net of 128 units with a batch of 32, as a classifier of sequences."""

    kind, dtype = KIND, "float32"
    size, small = dict(steps=50, batch=32, hidden=128, d=16, classes=10), dict(steps=3, batch=2, hidden=3, d=2, classes=2)

    def make(self, random, steps, batch, hidden, d, classes):
        x = random.normal(size=(steps, batch, d)).astype("f4")
        return (*weights(random, "f4", (hidden, hidden), (d, hidden), (hidden, classes)), x, random.integers(classes, size=batch))

    def rscan(self, steps, batch, hidden, d, classes):
        def loss(W, U, V, x, label):
            h = rs.loop(lambda x, h: rs.tanh(h @ W + x @ U), over=x, init=rs.zeros((batch, hidden), dtype="float32"))[-1]
            return -rs.mean(rs.log_softmax(h @ V, axis=1)[rs.arange(batch), label])

        return rs.value_and_grad(loss, wrt=(0, 1, 2))

    def jax(self, steps, batch, hidden, d, classes):
        import jax, jax.numpy as jnp

        def loss(W, U, V, x, label):
            h = jax.lax.scan(lambda h, x: (jnp.tanh(h @ W + x @ U), None), jnp.zeros((batch, hidden), "float32"), x)[0]
            return -jnp.mean(jax.nn.log_softmax(h @ V, axis=1)[jnp.arange(batch), label])

        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2)))


class GRULatency(Model):
    """A gated recurrent unit of 256 along one sequence."""

    kind, dtype = KIND, "float32"
    size, small = dict(steps=50, hidden=256, d=64), dict(steps=3, hidden=3, d=2)

    def make(self, random, steps, hidden, d):
        return (*weights(random, "f4", (hidden, 3 * hidden), (d, 3 * hidden)), random.normal(size=(steps, d)).astype("f4"))

    def rscan(self, steps, hidden, d):
        @rs.compile
        def f(W, U, x):
            def step(x, h):
                a, b = x @ U, h @ W
                z = rs.sigmoid(a[:hidden] + b[:hidden])
                r = rs.sigmoid(a[hidden : 2 * hidden] + b[hidden : 2 * hidden])
                return (1 - z) * rs.tanh(a[2 * hidden :] + r * b[2 * hidden :]) + z * h

            return rs.loop(step, over=x, init=rs.zeros(hidden, dtype="float32"))[-1]

        return f

    def jax(self, steps, hidden, d):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(W, U, x):
            def step(h, x):
                a, b = x @ U, h @ W
                z = jax.nn.sigmoid(a[:hidden] + b[:hidden])
                r = jax.nn.sigmoid(a[hidden : 2 * hidden] + b[hidden : 2 * hidden])
                return (1 - z) * jnp.tanh(a[2 * hidden :] + r * b[2 * hidden :]) + z * h, None

            return jax.lax.scan(step, jnp.zeros(hidden, "float32"), x)[0]

        return f


class GRUTraining(Model):
    """The gradient of a gated recurrent unit of 96 with a batch of 32."""

    kind, dtype = KIND, "float32"
    size, small = dict(steps=50, batch=32, hidden=96, d=32), dict(steps=3, batch=2, hidden=3, d=2)

    def make(self, random, steps, batch, hidden, d):
        x, target = random.normal(size=(steps, batch, d)).astype("f4"), random.normal(size=(batch, hidden)).astype("f4")
        return (*weights(random, "f4", (hidden, 3 * hidden), (d, 3 * hidden)), x, target)

    def rscan(self, steps, batch, hidden, d):
        def loss(W, U, x, target):
            def step(x, h):
                a, b = x @ U, h @ W
                az, ar, an = rs.split(a, 3, axis=1)
                bz, br, bn = rs.split(b, 3, axis=1)
                z = rs.sigmoid(az + bz)
                return (1 - z) * rs.tanh(an + rs.sigmoid(ar + br) * bn) + z * h

            return rs.mean((rs.loop(step, over=x, init=rs.zeros((batch, hidden), dtype="float32"))[-1] - target) ** 2)

        return rs.value_and_grad(loss, wrt=(0, 1))

    def jax(self, steps, batch, hidden, d):
        import jax, jax.numpy as jnp

        def loss(W, U, x, target):
            def step(h, x):
                a, b = x @ U, h @ W
                az, ar, an = jnp.split(a, 3, axis=1)
                bz, br, bn = jnp.split(b, 3, axis=1)
                z = jax.nn.sigmoid(az + bz)
                return (1 - z) * jnp.tanh(an + jax.nn.sigmoid(ar + br) * bn) + z * h, None

            return jnp.mean((jax.lax.scan(step, jnp.zeros((batch, hidden), "float32"), x)[0] - target) ** 2)

        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))


class LSTMTraining(Model):
    """The gradient of a long short-term memory of 64 with a batch of 16, a loss at each step."""

    kind, dtype = KIND, "float32"
    size, small = dict(steps=60, batch=16, hidden=64, d=8), dict(steps=3, batch=2, hidden=3, d=2)

    def make(self, random, steps, batch, hidden, d):
        x, y = random.normal(size=(steps, batch, d)).astype("f4"), random.normal(size=(steps, batch)).astype("f4")
        return (
            *weights(random, "f4", (hidden, 4 * hidden), (d, 4 * hidden)),
            np.zeros(4 * hidden, "f4"),
            *weights(random, "f4", (hidden,)),
            x,
            y,
        )

    def rscan(self, steps, batch, hidden, d):
        def loss(W, U, b, v, x, y):
            def step(x, h, c):
                i, f, g, o = rs.split(x @ U + h @ W + b, 4, axis=1)
                c = rs.sigmoid(f + 1) * c + rs.sigmoid(i) * rs.tanh(g)
                return dict(h=rs.sigmoid(o) * rs.tanh(c), c=c)

            zero = rs.zeros((batch, hidden), dtype="float32")
            h = rs.loop(step, over=dict(x=x), init=dict(h=zero, c=zero)).h
            return rs.mean((h @ v - y) ** 2)

        return rs.value_and_grad(loss, wrt=(0, 1, 2, 3))

    def jax(self, steps, batch, hidden, d):
        import jax, jax.numpy as jnp

        def loss(W, U, b, v, x, y):
            def step(state, x):
                h, c = state
                i, f, g, o = jnp.split(x @ U + h @ W + b, 4, axis=1)
                c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
                h = jax.nn.sigmoid(o) * jnp.tanh(c)
                return (h, c), h

            zero = jnp.zeros((batch, hidden), "float32")
            return jnp.mean((jax.lax.scan(step, (zero, zero), x)[1] @ v - y) ** 2)

        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2, 3)))


class LSTMGenerating(Model):
    """A long short-term memory of 512 that generates: the most likely letter is the next input."""

    kind, dtype = KIND, "float32"
    size, small = dict(steps=20, hidden=512, letters=40), dict(steps=3, hidden=4, letters=3)

    def make(self, random, steps, hidden, letters):
        return weights(random, "f4", (hidden, 4 * hidden), (letters, 4 * hidden), (hidden, letters))

    def rscan(self, steps, hidden, letters):
        @rs.compile
        def generate(W, E, V):
            def step(letter, h, c):
                i, f, g, o = rs.split(E[letter] + h @ W, 4)
                c = rs.sigmoid(f) * c + rs.sigmoid(i) * rs.tanh(g)
                h = rs.sigmoid(o) * rs.tanh(c)
                return dict(letter=rs.argmax(h @ V), h=h, c=c)

            zero = rs.zeros(hidden, dtype="float32")
            out = rs.loop(step, init=dict(letter=np.int64(0), h=zero, c=zero), n_steps=steps)
            return out.letter, out.h[-1]

        return generate

    def jax(self, steps, hidden, letters):
        import jax, jax.numpy as jnp

        @jax.jit
        def generate(W, E, V):
            def step(state, _):
                letter, h, c = state
                i, f, g, o = jnp.split(E[letter] + h @ W, 4)
                c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
                h = jax.nn.sigmoid(o) * jnp.tanh(c)
                letter = jnp.argmax(h @ V)
                return (letter, h, c), letter

            zero = jnp.zeros(hidden, "float32")
            (_, h, _), letters = jax.lax.scan(step, (jnp.int64(0), zero, zero), None, length=steps)
            return letters, h

        return generate


class LSTMForwardWide(Model):
    """A long short-term memory of 128 over a batch of 128, gates by slices; its last state."""

    kind, dtype = KIND, "float32"
    size, small = dict(steps=30, batch=128, hidden=128, d=16), dict(steps=3, batch=2, hidden=3, d=2)

    def make(self, random, steps, batch, hidden, d):
        return (*weights(random, "f4", (hidden, 4 * hidden), (d, 4 * hidden)), random.normal(size=(steps, batch, d)).astype("f4"))

    def rscan(self, steps, batch, hidden, d):
        @rs.compile
        def f(W, U, x):
            def step(x, h, c):
                a = x @ U + h @ W
                gate = lambda k: a[:, k * hidden : (k + 1) * hidden]
                c = rs.sigmoid(gate(0)) * c + rs.sigmoid(gate(1)) * rs.tanh(gate(2))
                return dict(h=rs.sigmoid(gate(3)) * rs.tanh(c), c=c)

            zero = rs.zeros((batch, hidden), dtype="float32")
            return rs.loop(step, over=dict(x=x), init=dict(h=zero, c=zero)).h[-1]

        return f

    def jax(self, steps, batch, hidden, d):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(W, U, x):
            def step(state, x):
                h, c = state
                a = x @ U + h @ W
                gate = lambda k: a[:, k * hidden : (k + 1) * hidden]
                c = jax.nn.sigmoid(gate(0)) * c + jax.nn.sigmoid(gate(1)) * jnp.tanh(gate(2))
                return (jax.nn.sigmoid(gate(3)) * jnp.tanh(c), c), None

            zero = jnp.zeros((batch, hidden), "float32")
            return jax.lax.scan(step, (zero, zero), x)[0][0]

        return f


class ElmanLatencyGradient(Model):
    """The gradient of a plain net of 32 units along one sequence, by all weights, in double precision."""

    kind, dtype = KIND, "float64"
    size, small = dict(steps=200, hidden=32, d=4), dict(steps=4, hidden=3, d=2)

    def make(self, random, steps, hidden, d):
        x, y = random.normal(size=(steps, d)), random.normal(size=steps)
        return (*weights(random, "f8", (hidden, hidden), (hidden, d), (hidden,)), x, y)

    def rscan(self, steps, hidden, d):
        def loss(W, U, v, x, y):
            return rs.mean((rs.loop(lambda x, h: rs.tanh(W @ h + U @ x), over=x, init=rs.zeros(hidden)) @ v - y) ** 2)

        return rs.value_and_grad(loss, wrt=(0, 1, 2))

    def jax(self, steps, hidden, d):
        import jax, jax.numpy as jnp

        def loss(W, U, v, x, y):
            def step(h, x):
                h = jnp.tanh(W @ h + U @ x)
                return h, h

            return jnp.mean((jax.lax.scan(step, jnp.zeros(hidden), x)[1] @ v - y) ** 2)

        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2)))


class EchoState(Model):
    """A reservoir of 200 units with leaks that feeds back what it says."""

    kind, dtype = KIND, "float64"
    size, small = dict(steps=300, hidden=200), dict(steps=4, hidden=4)

    def make(self, random, steps, hidden):
        W, fed, out = weights(random, "f8", (hidden, hidden), (hidden,), (hidden,))
        return 0.9 * W, fed, out, random.normal(size=steps)

    def rscan(self, steps, hidden):
        @rs.compile
        def f(W, fed, out, u):
            def step(u, x, y):
                x = 0.7 * x + 0.3 * rs.tanh(W @ x + fed * (u + y))
                return dict(x=x, y=out @ x)

            return rs.loop(step, over=dict(u=u), init=dict(x=rs.zeros(hidden), y=0.0)).y

        return f

    def jax(self, steps, hidden):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(W, fed, out, u):
            def step(state, u):
                x, y = state
                x = 0.7 * x + 0.3 * jnp.tanh(W @ x + fed * (u + y))
                y = out @ x
                return (x, y), y

            return jax.lax.scan(step, (jnp.zeros(hidden), 0.0), u)[1]

        return f
