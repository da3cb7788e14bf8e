"""Logsumexp, softmax and norms written out by hand."""

import numpy as np

import rscan as rs
from models import Model


class EntropicTransport(Model):
    """Sinkhorn's iteration in log space, and the gradient of the transport cost by the costs and the points' weights."""

    kind = "logsumexp, softmax, norms by hand"
    dtype = "float64"
    size = dict(n=40, m=30, sweeps=50)
    small = dict(n=4, m=3, sweeps=3)

    def make(self, random, n, m, sweeps):
        x, y = random.normal(size=(n, 2)), random.normal(size=(m, 2)) + 0.5
        cost = np.sum((x[:, None] - y) ** 2, axis=2)
        return cost, random.normal(size=n) / 2, np.full(m, -np.log(m)), 0.3

    def rscan(self, n, m, sweeps):
        def lse(a, axis):
            top = rs.max(a, axis=axis, keepdims=True)
            return rs.log(rs.sum(rs.exp(a - top), axis=axis)) + rs.squeeze(top, axis=axis)

        @rs.compile
        def transport(cost, logits, log_b, epsilon):
            log_a = logits - lse(logits, 0)
            K = -cost / epsilon

            def sweep(g):
                f = log_a - lse(K + g[None, :], 1)
                return dict(g=log_b - lse(K + f[:, None], 0), f=f)

            out = rs.loop(sweep, init=dict(g=rs.zeros(m)), n_steps=sweeps)
            plan = rs.exp(out.f[-1][:, None] + K + out.g[-1][None, :])
            return rs.sum(plan * cost)

        return rs.value_and_grad(transport, wrt=(0, 1))

    def jax(self, n, m, sweeps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def lse(a, axis):
            top = jnp.max(a, axis=axis, keepdims=True)
            return jnp.log(jnp.sum(jnp.exp(a - top), axis=axis)) + jnp.squeeze(top, axis=axis)

        def transport(cost, logits, log_b, epsilon):
            log_a = logits - lse(logits, 0)
            K = -cost / epsilon

            def sweep(state, _):
                _, g = state
                f = log_a - lse(K + g[None, :], 1)
                return (f, log_b - lse(K + f[:, None], 0)), None

            (f, g), _ = lax.scan(sweep, (jnp.zeros(n), jnp.zeros(m)), None, length=sweeps)
            return jnp.sum(jnp.exp(f[:, None] + K + g[None, :]) * cost)

        return jax.jit(jax.value_and_grad(transport, argnums=(0, 1)))


class CapsuleRouting(Model):
    """Routing by agreement between two layers of capsules, softmax and squashing by hand; the gradient of the margin loss."""

    kind = "logsumexp, softmax, norms by hand"
    dtype = "float32"
    size = dict(inputs=72, outputs=10, width=8, rounds=4)
    small = dict(inputs=5, outputs=3, width=2, rounds=2)

    def make(self, random, inputs, outputs, width, rounds):
        u = random.normal(size=(inputs, width)).astype("f4")
        W = (0.3 * random.normal(size=(inputs, width, outputs, width))).astype("f4")
        return W, u, np.eye(outputs, dtype="f4")[1]

    def rscan(self, inputs, outputs, width, rounds):
        def squash(s):
            squared = rs.sum(s**2, axis=-1, keepdims=True)
            return squared / (1 + squared) * s / rs.sqrt(squared + np.float32(1e-8))

        @rs.compile
        def loss(W, u, label):
            votes = rs.sum(u[:, :, None, None] * W, axis=1)  # inputs x outputs x width

            def route(b):
                e = rs.exp(b - rs.max(b, axis=1, keepdims=True))
                c = e / rs.sum(e, axis=1, keepdims=True)
                v = squash(rs.sum(c[:, :, None] * votes, axis=0))
                return dict(b=b + rs.sum(votes * v[None, :, :], axis=2), v=v)

            out = rs.loop(route, init=dict(b=rs.zeros((inputs, outputs), dtype="float32")), n_steps=rounds)
            length = rs.sqrt(rs.sum(out.v[-1] ** 2, axis=1) + np.float32(1e-8))
            there = label * rs.maximum(0, np.float32(0.9) - length) ** 2
            return rs.sum(there + np.float32(0.5) * (1 - label) * rs.maximum(0, length - np.float32(0.1)) ** 2)

        return rs.value_and_grad(loss, wrt=(0, 1))

    def jax(self, inputs, outputs, width, rounds):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def squash(s):
            squared = jnp.sum(s**2, axis=-1, keepdims=True)
            return squared / (1 + squared) * s / jnp.sqrt(squared + 1e-8)

        def loss(W, u, label):
            votes = jnp.einsum("id,idok->iok", u, W)

            def route(state, _):
                b, _ = state
                e = jnp.exp(b - jnp.max(b, axis=1, keepdims=True))
                c = e / jnp.sum(e, axis=1, keepdims=True)
                v = squash(jnp.einsum("io,iok->ok", c, votes))
                return (b + jnp.einsum("iok,ok->io", votes, v), v), None

            start = (jnp.zeros((inputs, outputs), jnp.float32), jnp.zeros((outputs, width), jnp.float32))
            (_, v), _ = lax.scan(route, start, None, length=rounds)
            length = jnp.sqrt(jnp.sum(v**2, axis=1) + 1e-8)
            there = label * jnp.maximum(0, 0.9 - length) ** 2
            return jnp.sum(there + 0.5 * (1 - label) * jnp.maximum(0, length - 0.1) ** 2)

        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))


class BlahutArimoto(Model):
    """The capacity of a noisy channel: reweights the input symbols until the bounds of the capacity meet."""

    kind = "logsumexp, softmax, norms by hand"
    dtype = "float64"
    size = dict(symbols=24, outputs=32)
    small = dict(symbols=3, outputs=4)

    def make(self, random, symbols, outputs):
        return (random.dirichlet(np.full(outputs, 0.5), size=symbols) * 0.98 + 0.02 / outputs,)

    def rscan(self, symbols, outputs):
        @rs.compile
        def capacity(channel):
            def step(p):
                q = p @ channel
                divergence = rs.sum(channel * (rs.log(channel) - rs.log(q)[None, :]), axis=1)
                weighted = rs.log(p) + divergence
                top = rs.max(weighted)
                e = rs.exp(weighted - top)
                lower = top + rs.log(rs.sum(e))
                return dict(p=e / rs.sum(e), lower=lower), rs.until(rs.max(divergence) - lower < 1e-4)

            out = rs.loop(step, init=dict(p=rs.full((symbols,), 1 / symbols)), n_steps=2000)
            return out.lower[-1], out.p[-1], rs.shape(out.lower)[0]

        return capacity

    def jax(self, symbols, outputs):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def capacity(channel):
            def step(state):
                p, _, _, count = state
                q = p @ channel
                divergence = jnp.sum(channel * (jnp.log(channel) - jnp.log(q)), axis=1)
                weighted = jnp.log(p) + divergence
                top = jnp.max(weighted)
                e = jnp.exp(weighted - top)
                lower = top + jnp.log(jnp.sum(e))
                return e / jnp.sum(e), lower, jnp.max(divergence) - lower, count + 1

            start = (jnp.full(symbols, 1 / symbols), 0.0, jnp.inf, 0)
            p, lower, _, count = lax.while_loop(lambda s: (s[2] >= 1e-4) & (s[3] < 2000), step, start)
            return lower, p, count

        return capacity


class TransformerLayers(Model):
    """A small causal transformer whose layers are the rows of a sequence; layer norms and softmax by hand, all gradients."""

    kind = "logsumexp, softmax, norms by hand"
    dtype = "float32"
    size = dict(layers=3, length=32, width=32, heads=4)
    small = dict(layers=2, length=3, width=4, heads=2)

    def make(self, random, layers, length, width, heads):
        def draw(*shape):
            return (random.normal(size=(layers, *shape)) / np.sqrt(shape[0])).astype("f4")

        parameters = dict(qkv=draw(width, 3 * width), out=draw(width, width), up=draw(width, 2 * width), down=draw(2 * width, width))
        x = random.normal(size=(length, width)).astype("f4")
        return parameters, x, random.normal(size=(length, width)).astype("f4")

    def rscan(self, layers, length, width, heads):
        d = width // heads

        def normalise(x):
            centred = x - rs.mean(x, axis=-1, keepdims=True)
            return centred / rs.sqrt(rs.mean(centred**2, axis=-1, keepdims=True) + np.float32(1e-5))

        @rs.compile
        def loss(p, x, target):
            causal = rs.tril(rs.ones((length, length))) > 0

            def layer(qkv, out, up, down, x):
                a = (normalise(x) @ qkv).reshape((length, 3, heads, d)).transpose((1, 2, 0, 3))
                scores = rs.matmul(a[0], rs.swapaxes(a[1], 1, 2)) / np.float32(d**0.5)
                scores = rs.where(causal, scores, np.float32(-1e9))
                e = rs.exp(scores - rs.max(scores, axis=-1, keepdims=True))
                mixed = rs.matmul(e / rs.sum(e, axis=-1, keepdims=True), a[2])
                x = x + rs.swapaxes(mixed, 0, 1).reshape((length, width)) @ out
                return x + rs.maximum(normalise(x) @ up, 0) @ down

            y = rs.loop(layer, over=[p["qkv"], p["out"], p["up"], p["down"]], init=x)[-1]
            return rs.mean((normalise(y) - target) ** 2)

        return rs.value_and_grad(loss)

    def jax(self, layers, length, width, heads):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def normalise(x):
            centred = x - jnp.mean(x, axis=-1, keepdims=True)
            return centred / jnp.sqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + 1e-5)

        def loss(p, x, target):
            causal = jnp.tril(jnp.ones((length, length), bool))

            def layer(x, p):
                q, k, v = (normalise(x) @ p["qkv"]).reshape(length, 3, heads, -1).transpose(1, 2, 0, 3)
                scores = q @ k.swapaxes(1, 2) / (width // heads) ** 0.5
                scores = jnp.where(causal, scores, -1e9)
                e = jnp.exp(scores - jnp.max(scores, axis=-1, keepdims=True))
                mixed = (e / jnp.sum(e, axis=-1, keepdims=True)) @ v
                x = x + mixed.swapaxes(0, 1).reshape(length, width) @ p["out"]
                return x + jnp.maximum(normalise(x) @ p["up"], 0) @ p["down"], None

            y, _ = lax.scan(layer, x, p)
            return jnp.mean((normalise(y) - target) ** 2)

        return jax.jit(jax.value_and_grad(loss))
