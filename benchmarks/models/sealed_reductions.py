"""Sums, means and extremes over every axis."""

import numpy as np

import rscan as rs
from models import Model


class ThreeWayFitting(Model):
    """Iterative proportional fitting of a three-way table to its three two-way margins."""

    kind = "reductions over every axis"
    dtype = "float64"
    size = dict(rows=14, columns=11, layers=9, sweeps=60)
    small = dict(rows=3, columns=2, layers=4, sweeps=3)

    def make(self, random, rows, columns, layers, sweeps):
        start = random.exponential(size=(rows, columns, layers)) + 0.1
        target = random.exponential(size=(rows, columns, layers)) + 0.1
        return start, target.sum(2), target.sum(1), target.sum(0)

    def rscan(self, rows, columns, layers, sweeps):
        @rs.compile
        def fit(table, rc, rl, cl):
            def sweep(t):
                t = t * (rc / rs.sum(t, axis=2))[:, :, None]
                t = t * (rl / rs.sum(t, axis=1))[:, None, :]
                t = t * (cl / rs.sum(t, axis=0))[None, :, :]
                return dict(t=t, off=rs.max(rs.abs(rs.sum(t, axis=2) - rc)))

            out = rs.loop(sweep, init=dict(t=table), n_steps=sweeps)
            t = out.t[-1]
            return t, out.off, rs.sum(t, axis=(1, 2)), rs.sum(t * rs.log(t))

        return fit

    def jax(self, rows, columns, layers, sweeps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def fit(table, rc, rl, cl):
            def sweep(t, _):
                t = t * (rc / jnp.sum(t, axis=2))[:, :, None]
                t = t * (rl / jnp.sum(t, axis=1))[:, None, :]
                t = t * (cl / jnp.sum(t, axis=0))[None, :, :]
                return t, jnp.max(jnp.abs(jnp.sum(t, axis=2) - rc))

            t, off = lax.scan(sweep, table, None, length=sweeps)
            return t, off, jnp.sum(t, axis=(1, 2)), jnp.sum(t * jnp.log(t))

        return fit


class NormalisedTower(Model):
    """A deep residual net whose layers are the rows of a sequence, with batch normalisation; all gradients."""

    kind = "reductions over every axis"
    dtype = "float64"
    size = dict(layers=10, batch=32, width=40)
    small = dict(layers=3, batch=4, width=3)

    def make(self, random, layers, batch, width):
        W = random.normal(size=(layers, width, width)) / np.sqrt(width)
        return W, np.ones((layers, width)), np.zeros((layers, width)), random.normal(size=(batch, width)), random.normal(size=batch)

    def rscan(self, layers, batch, width):
        @rs.compile
        def loss(W, scale, shift, x, y):
            def layer(W, scale, shift, h):
                a = h @ W
                mean = rs.mean(a, axis=0)
                variance = rs.mean((a - mean) ** 2, axis=0)
                return h + rs.tanh(scale * (a - mean) / rs.sqrt(variance + 1e-5) + shift)

            h = rs.loop(layer, over=[W, scale, shift], init=x)[-1]
            return rs.mean((rs.mean(h, axis=1) - y) ** 2)

        return rs.value_and_grad(loss, wrt=(0, 1, 2))

    def jax(self, layers, batch, width):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def loss(W, scale, shift, x, y):
            def layer(h, row):
                W, scale, shift = row
                a = h @ W
                mean = jnp.mean(a, axis=0)
                variance = jnp.mean((a - mean) ** 2, axis=0)
                return h + jnp.tanh(scale * (a - mean) / jnp.sqrt(variance + 1e-5) + shift), None

            h, _ = lax.scan(layer, x, (W, scale, shift))
            return jnp.mean((jnp.mean(h, axis=1) - y) ** 2)

        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2)))


class TensorPowerMethod(Model):
    """The best rank-one approximation of a tensor of order three, by alternating contractions over two of its axes."""

    kind = "reductions over every axis"
    dtype = "float64"
    size = dict(n=24, sweeps=40)
    small = dict(n=3, sweeps=4)

    def make(self, random, n, sweeps):
        a, b, c = random.normal(size=(3, n))
        T = np.einsum("i,j,k->ijk", a, b, c) / n + 0.2 * random.normal(size=(n, n, n))
        return T, *random.normal(size=(2, n))

    def rscan(self, n, sweeps):
        def unit(x):
            return x / rs.sqrt(rs.sum(x**2))

        @rs.compile
        def approximate(T, v0, w0):
            def sweep(v, w):
                u = unit(rs.sum(T * v[None, :, None] * w[None, None, :], axis=(1, 2)))
                v = unit(rs.sum(T * u[:, None, None] * w[None, None, :], axis=(0, 2)))
                w = rs.sum(T * u[:, None, None] * v[None, :, None], axis=(0, 1))
                size = rs.sqrt(rs.sum(w**2))
                return dict(v=v, w=w / size, u=u, size=size)

            out = rs.loop(sweep, init=dict(v=unit(v0), w=unit(w0)), n_steps=sweeps)
            return out.u[-1], out.v[-1], out.w[-1], out.size

        return approximate

    def jax(self, n, sweeps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def unit(x):
            return x / jnp.linalg.norm(x)

        @jax.jit
        def approximate(T, v0, w0):
            def sweep(state, _):
                _, v, w = state
                u = unit(jnp.einsum("ijk,j,k->i", T, v, w))
                v = unit(jnp.einsum("ijk,i,k->j", T, u, w))
                w = jnp.einsum("ijk,i,j->k", T, u, v)
                size = jnp.linalg.norm(w)
                return (u, v, w / size), size

            (u, v, w), size = lax.scan(sweep, (v0, unit(v0), unit(w0)), None, length=sweeps)
            return u, v, w, size

        return approximate


class LloydClusters(Model):
    """k-means by Lloyd's iteration until no point changes its cluster; inertia, sizes and centres."""

    kind = "reductions over every axis"
    dtype = "float64"
    size = dict(points=500, clusters=6, features=3)
    small = dict(points=8, clusters=2, features=2)

    def make(self, random, points, clusters, features):
        centres = 3 * random.normal(size=(clusters, features))
        X = centres[random.integers(0, clusters, size=points)] + random.normal(size=(points, features))
        return X, X[:clusters]

    def rscan(self, points, clusters, features):
        @rs.compile
        def lloyd(X, start):
            def step(centres, label):
                d = rs.sum((X[:, None, :] - centres[None, :, :]) ** 2, axis=2)
                new = rs.argmin(d, axis=1)
                member = rs.cast(new[:, None] == rs.arange(clusters), "float64")
                size = rs.sum(member, axis=0)
                sums = rs.sum(member[:, :, None] * X[:, None, :], axis=0)
                state = dict(centres=sums / rs.maximum(size, 1)[:, None], label=new)
                return dict(**state, inertia=rs.sum(rs.min(d, axis=1)), size=size), rs.until(rs.all(new == label))

            out = rs.loop(step, init=dict(centres=start, label=rs.full((points,), -1)), n_steps=200)
            return out.centres[-1], out.label[-1], out.inertia[-1], out.size[-1]

        return lloyd

    def jax(self, points, clusters, features):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def lloyd(X, start):
            def step(state):
                centres, label, _, _, _, k = state
                d = jnp.sum((X[:, None, :] - centres) ** 2, axis=2)
                new = jnp.argmin(d, axis=1)
                member = jax.nn.one_hot(new, clusters, dtype=X.dtype)
                size = jnp.sum(member, axis=0)
                centres = member.T @ X / jnp.maximum(size, 1)[:, None]
                return centres, new, jnp.sum(jnp.min(d, axis=1)), size, jnp.any(new != label), k + 1

            init = (start, jnp.full(points, -1), 0.0, jnp.zeros(clusters), True, 0)
            centres, label, inertia, size, _, _ = lax.while_loop(lambda s: s[4] & (s[5] < 200), step, init)
            return centres, label, inertia, size

        return lloyd
