"""Loops of machine learning research: contrastive queues, memories, flows in continuous time, rules."""

import numpy as np

import rscan as rs
from models import Model


class MomentumContrastQueue(Model):
    """Contrastive training with a slow encoder of keys and a queue of negatives (MoCo): some steps on a stream of pairs of views."""

    kind = "machine learning loops"
    dtype = "float32"
    size = dict(batches=30, batch=16, features=16, hidden=32, code=8, queue=256)
    small = dict(batches=4, batch=2, features=3, hidden=4, code=2, queue=6)
    rtol = 1e-3

    def make(self, random, batches, batch, features, hidden, code, queue):
        def f4(*shape, scale=1.0):
            return random.normal(size=shape, scale=scale).astype("f4")

        p = dict(w1=f4(features, hidden, scale=0.3), b1=np.zeros(hidden, "f4"), w2=f4(hidden, code, scale=0.3))
        seen = f4(batches, batch, features)
        views = [seen + f4(batches, batch, features, scale=0.3) for _ in range(2)]
        negatives = f4(queue, code)
        negatives /= np.linalg.norm(negatives, axis=1, keepdims=True)
        return p, negatives, views[0], views[1]

    def rscan(self, batches, batch, features, hidden, code, queue):
        def encode(p, x):
            z = rs.tanh(x @ p["w1"] + p["b1"]) @ p["w2"]
            return z / rs.sqrt(rs.sum(z**2, axis=1, keepdims=True) + 1e-6)

        @rs.compile
        def train(p, negatives, first, second):
            def step(first, second, q, k, negatives, at):
                keys = encode(k, second)

                def loss(q):
                    codes = encode(q, first)
                    alike = rs.sum(codes * keys, axis=1, keepdims=True)
                    logits = rs.concatenate([alike, codes @ negatives.T], axis=1) / 0.1
                    return -rs.mean(rs.log_softmax(logits, axis=1)[:, 0])

                value, slopes = rs.value_and_grad(loss)(q)
                q = {name: q[name] - 0.1 * slopes[name] for name in q}
                k = {name: 0.95 * k[name] + 0.05 * q[name] for name in k}
                places = (at + rs.arange(batch)) % queue
                return dict(q=q, k=k, negatives=negatives.at[places].set(keys), at=(at + batch) % queue, loss=value)

            out = rs.loop(step, over=dict(first=first, second=second), init=dict(q=p, k=p, negatives=negatives, at=0))
            return out.last.q, out.last.negatives, out.loss

        return train

    def jax(self, batches, batch, features, hidden, code, queue):
        import jax, jax.numpy as jnp

        def encode(p, x):
            z = jnp.tanh(x @ p["w1"] + p["b1"]) @ p["w2"]
            return z / jnp.sqrt(jnp.sum(z**2, axis=1, keepdims=True) + 1e-6)

        @jax.jit
        def train(p, negatives, first, second):
            def step(carry, x):
                (q, k, negatives, at), (first, second) = carry, x
                keys = encode(k, second)

                def loss(q):
                    codes = encode(q, first)
                    alike = jnp.sum(codes * keys, axis=1, keepdims=True)
                    logits = jnp.concatenate([alike, codes @ negatives.T], axis=1) / 0.1
                    return -jnp.mean(jax.nn.log_softmax(logits, axis=1)[:, 0])

                value, slopes = jax.value_and_grad(loss)(q)
                q = jax.tree.map(lambda v, g: v - 0.1 * g, q, slopes)
                k = jax.tree.map(lambda v, w: 0.95 * v + 0.05 * w, k, q)
                places = (at + jnp.arange(batch)) % queue
                return (q, k, negatives.at[places].set(keys), (at + batch) % queue), value

            (q, _, negatives, _), losses = jax.lax.scan(step, (p, p, negatives, jnp.int64(0)), (first, second))
            return q, negatives, losses

        return train


class LegendreMemoryFit(Model):
    """A Legendre memory unit: the loss of a batch of sequences and its gradient by the parameters."""

    kind = "machine learning loops"
    dtype = "float32"
    size = dict(steps=150, batch=8, order=12, hidden=24)
    small = dict(steps=6, batch=2, order=3, hidden=4)
    rtol = 1e-3

    def make(self, random, steps, batch, order, hidden):
        def f4(*shape, scale=0.3):
            return random.normal(size=shape, scale=scale).astype("f4")

        q = np.arange(order)
        r = (2 * q + 1)[:, None] / 50.0
        i, j = np.meshgrid(q, q, indexing="ij")
        a = np.where(i < j, -1.0, (-1.0) ** (i - j + 1)) * r
        b = (-1.0) ** q[:, None] * r
        inverse = np.linalg.inv(np.eye(order) - a / 2)
        memory = dict(a=(inverse @ (np.eye(order) + a / 2)).astype("f4"), b=(inverse @ b)[:, 0].astype("f4"))
        p = dict(ex=f4(), eh=f4(hidden), em=f4(order), wx=f4(hidden), wh=f4(hidden, hidden), wm=f4(order, hidden), out=f4(hidden))
        p["ex"] = np.float32(1.0)
        return p, memory, f4(steps, batch, scale=1.0), f4(steps, batch, scale=1.0)

    def rscan(self, steps, batch, order, hidden):
        @rs.compile
        def loss(p, memory, x, y):
            def step(x, y, h, m):
                u = p["ex"] * x + h @ p["eh"] + m @ p["em"]
                m = m @ memory["a"].T + u[:, None] * memory["b"]
                h = rs.tanh(x[:, None] * p["wx"] + h @ p["wh"] + m @ p["wm"])
                return dict(h=h, m=m, cost=rs.mean((h @ p["out"] - y) ** 2))

            init = dict(h=rs.zeros((batch, hidden), dtype="float32"), m=rs.zeros((batch, order), dtype="float32"))
            return rs.mean(rs.loop(step, over=dict(x=x, y=y), init=init).cost)

        return rs.value_and_grad(loss)

    def jax(self, steps, batch, order, hidden):
        import jax, jax.numpy as jnp

        def loss(p, memory, x, y):
            def step(carry, xy):
                (h, m), (x, y) = carry, xy
                u = p["ex"] * x + h @ p["eh"] + m @ p["em"]
                m = m @ memory["a"].T + u[:, None] * memory["b"]
                h = jnp.tanh(x[:, None] * p["wx"] + h @ p["wh"] + m @ p["wm"])
                return (h, m), jnp.mean((h @ p["out"] - y) ** 2)

            init = (jnp.zeros((batch, hidden), jnp.float32), jnp.zeros((batch, order), jnp.float32))
            return jnp.mean(jax.lax.scan(step, init, (x, y))[1])

        return jax.jit(jax.value_and_grad(loss))


class ContinuousFlowTrace(Model):
    """A normalising flow in continuous time, whose density is integrated with the exact trace of the field's Jacobian."""

    kind = "machine learning loops"
    dtype = "float32"
    size = dict(samples=64, hidden=16, steps=12)
    small = dict(samples=3, hidden=3, steps=2)
    rtol = 1e-3

    def make(self, random, samples, hidden, steps):
        def f4(*shape, scale=0.5):
            return random.normal(size=shape, scale=scale).astype("f4")

        p = dict(w1=f4(2, hidden), b1=f4(hidden), time=f4(hidden), w2=f4(hidden, 2), b2=f4(2))
        return p, f4(samples, 2, scale=1.0)

    def rscan(self, samples, hidden, steps):
        dt = 1.0 / steps

        def field(p, t, z):
            return rs.tanh(z @ p["w1"] + p["b1"] + t * p["time"]) @ p["w2"] + p["b2"]

        def log_density(p, z):
            def slope(t, z):
                return field(p, t, z), -rs.trace(rs.jacobian(lambda z: field(p, t, z))(z))

            def step(t, z, change):
                z1, c1 = slope(t, z)
                z2, c2 = slope(t + dt / 2, z + dt / 2 * z1)
                z3, c3 = slope(t + dt / 2, z + dt / 2 * z2)
                z4, c4 = slope(t + dt, z + dt * z3)
                return z + dt / 6 * (z1 + 2 * z2 + 2 * z3 + z4), change + dt / 6 * (c1 + 2 * c2 + 2 * c3 + c4)

            times = rs.arange(steps, dtype="float32") * dt
            z, change = rs.loop(step, over=times, init=(z, np.float32(0))).last
            return -0.5 * rs.sum(z**2) - change

        @rs.compile
        def nll(p, z):
            return -rs.mean(rs.vmap(log_density, in_axes=(None, 0))(p, z))

        return rs.value_and_grad(nll)

    def jax(self, samples, hidden, steps):
        import jax, jax.numpy as jnp

        dt = 1.0 / steps

        def field(p, t, z):
            return jnp.tanh(z @ p["w1"] + p["b1"] + t * p["time"]) @ p["w2"] + p["b2"]

        def log_density(p, z):
            def slope(t, z):
                return field(p, t, z), -jnp.trace(jax.jacfwd(lambda z: field(p, t, z))(z))

            def step(carry, t):
                z, change = carry
                z1, c1 = slope(t, z)
                z2, c2 = slope(t + dt / 2, z + dt / 2 * z1)
                z3, c3 = slope(t + dt / 2, z + dt / 2 * z2)
                z4, c4 = slope(t + dt, z + dt * z3)
                return (z + dt / 6 * (z1 + 2 * z2 + 2 * z3 + z4), change + dt / 6 * (c1 + 2 * c2 + 2 * c3 + c4)), None

            times = jnp.arange(steps, dtype=jnp.float32) * dt
            (z, change), _ = jax.lax.scan(step, (z, jnp.float32(0)), times)
            return -0.5 * jnp.sum(z**2) - change

        def nll(p, z):
            return -jnp.mean(jax.vmap(log_density, in_axes=(None, 0))(p, z))

        return jax.jit(jax.value_and_grad(nll))


class SequentialCovering(Model):
    """A learner of rules: each rule is a conjunction that grows literal by literal, and what it covers is taken away before the next."""

    kind = "machine learning loops"
    dtype = "int64"
    size = dict(examples=400, features=20, rules=8, literals=3)
    small = dict(examples=12, features=4, rules=2, literals=2)

    def make(self, random, examples, features, rules, literals):
        x = random.random((examples, features)) < 0.5
        y = (x[:, 0] & x[:, 1]) | (~x[:, 2] & x[:, 3]) | (random.random(examples) < 0.05)
        return x, y

    def rscan(self, examples, features, rules, literals):
        @rs.compile
        def learn(x, y):
            tests = rs.concatenate([x.T, ~x.T])  # a row for each literal: the feature, or not the feature

            def rule(left):
                base = rs.sum(left & y) / rs.maximum(rs.sum(left), 1)

                def grow(covered):
                    hits = tests & covered
                    good, all_of = rs.sum(hits & y, axis=1), rs.sum(hits, axis=1)
                    best = rs.argmax((good + 2 * base) / (all_of + 2))
                    return dict(covered=covered & tests[best], literal=best)

                grown = rs.loop(grow, init=dict(covered=left), n_steps=literals)
                covered = grown.last.covered
                return dict(
                    left=left & ~covered,
                    literals=grown.literal[:],
                    right=rs.sum(covered & y),
                    wrong=rs.sum(covered & ~y),
                )

            out = rs.loop(rule, init=dict(left=rs.ones_like(y)), n_steps=rules)
            return out.literals, out.right, out.wrong, out.last.left

        return learn

    def jax(self, examples, features, rules, literals):
        import jax, jax.numpy as jnp

        @jax.jit
        def learn(x, y):
            tests = jnp.concatenate([x.T, ~x.T])

            def rule(left, _):
                base = jnp.sum(left & y) / jnp.maximum(jnp.sum(left), 1)

                def grow(covered, _):
                    hits = tests & covered
                    good, all_of = jnp.sum(hits & y, axis=1), jnp.sum(hits, axis=1)
                    best = jnp.argmax((good + 2 * base) / (all_of + 2))
                    return covered & tests[best], best

                covered, chosen = jax.lax.scan(grow, left, None, length=literals)
                return left & ~covered, (chosen, jnp.sum(covered & y), jnp.sum(covered & ~y))

            left, (chosen, right, wrong) = jax.lax.scan(rule, jnp.ones_like(y), None, length=rules)
            return chosen, right, wrong, left

        return learn
