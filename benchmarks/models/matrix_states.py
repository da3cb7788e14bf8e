"""States that are matrices: outer products, fast weights, covariances, state spaces of many channels."""

import numpy as np
import rscan as rs
from models import Model

KIND = "matrix states and outer products"


class LinearAttention(Model):
    """Linear attention: the state sums outer products of keys and values. With gradient."""

    kind, dtype = KIND, "float32"
    size, small = dict(steps=256, d=48), dict(steps=5, d=3)

    def make(self, random, steps, d):
        return tuple(random.normal(size=(steps, d)).astype("f4") / np.sqrt(d).astype("f4") for _ in range(3))

    def rscan(self, steps, d):
        def loss(q, k, v):
            def step(q, k, v, S):
                S = S + rs.outer(k, v)
                return dict(S=S, y=q @ S)

            out = rs.loop(step, over=dict(q=q, k=k, v=v), init=dict(S=rs.zeros((d, d), dtype="float32")))
            return rs.sum(out.y**2)

        return rs.value_and_grad(loss, wrt=(0, 1, 2))

    def jax(self, steps, d):
        import jax, jax.numpy as jnp

        def loss(q, k, v):
            def step(S, row):
                q, k, v = row
                S = S + jnp.outer(k, v)
                return S, q @ S

            return jnp.sum(jax.lax.scan(step, jnp.zeros((d, d), "float32"), (q, k, v))[1] ** 2)

        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2)))


class FastWeights(Model):
    """Fast weights with the delta rule: what the matrix predicts for a key is corrected."""

    kind, dtype = KIND, "float64"
    size, small = dict(steps=300, d=32), dict(steps=5, d=3)

    def make(self, random, steps, d):
        k = random.normal(size=(steps, d))
        return k / np.linalg.norm(k, axis=1, keepdims=True), random.normal(size=(steps, d)), random.uniform(0.1, 1, size=steps)

    def rscan(self, steps, d):
        @rs.compile
        def f(k, v, beta):
            def step(k, v, beta, W):
                y = W @ k
                return dict(W=W + beta * rs.outer(v - y, k), y=y)

            out = rs.loop(step, over=dict(k=k, v=v, beta=beta), init=dict(W=rs.zeros((d, d))))
            return out.y, out.W[-1]

        return f

    def jax(self, steps, d):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(k, v, beta):
            def step(W, row):
                k, v, beta = row
                y = W @ k
                return W + beta * jnp.outer(v - y, k), y

            W, y = jax.lax.scan(step, jnp.zeros((d, d)), (k, v, beta))
            return y, W

        return f


class FastWeightsGrad(FastWeights):
    """The gradient of the prediction error with respect to everything."""

    size = dict(steps=150, d=24)

    def rscan(self, steps, d):
        def loss(k, v, beta):
            def step(k, v, beta, W):
                e = v - W @ k
                return dict(W=W + beta * rs.outer(e, k), e=e)

            return rs.sum(rs.loop(step, over=dict(k=k, v=v, beta=beta), init=dict(W=rs.zeros((d, d)))).e ** 2)

        return rs.value_and_grad(loss, wrt=(0, 1, 2))

    def jax(self, steps, d):
        import jax, jax.numpy as jnp

        def loss(k, v, beta):
            def step(W, row):
                k, v, beta = row
                e = v - W @ k
                return W + beta * jnp.outer(e, k), e

            return jnp.sum(jax.lax.scan(step, jnp.zeros((d, d)), (k, v, beta))[1] ** 2)

        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2)))


class RecursiveLeastSquares(Model):
    """Recursive least squares with forgetting: a covariance of rank-one updates."""

    kind, dtype = KIND, "float64"
    size, small = dict(steps=500, d=12), dict(steps=6, d=3)

    def make(self, random, steps, d):
        x = random.normal(size=(steps, d))
        return x, x @ random.normal(size=d) + 0.1 * random.normal(size=steps), 0.99

    def rscan(self, steps, d):
        @rs.compile
        def f(x, y, forget):
            def step(x, y, w, P):
                Px = P @ x
                gain = Px / (forget + x @ Px)
                e = y - w @ x
                return dict(w=w + gain * e, P=(P - rs.outer(gain, Px)) / forget, e=e)

            out = rs.loop(step, over=dict(x=x, y=y), init=dict(w=rs.zeros(d), P=100.0 * rs.eye(d)))
            return out.w[-1], out.P[-1], out.e

        return f

    def jax(self, steps, d):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(x, y, forget):
            def step(state, row):
                (w, P), (x, y) = state, row
                Px = P @ x
                gain = Px / (forget + x @ Px)
                e = y - w @ x
                return (w + gain * e, (P - jnp.outer(gain, Px)) / forget), e

            (w, P), e = jax.lax.scan(step, (jnp.zeros(d), 100.0 * jnp.eye(d)), (x, y))
            return w, P, e

        return f


class CovarianceRecursion(Model):
    """An exponentially weighted covariance of returns and the log-likelihood of its correlations' shrinkage; gradient by both decays."""

    kind, dtype = KIND, "float64"
    size, small = dict(steps=400, d=10), dict(steps=6, d=3)

    def make(self, random, steps, d):
        return np.array([0.94, 0.1]), random.normal(size=(steps, d)) @ random.normal(size=(d, d)) / d

    def rscan(self, steps, d):
        def loss(p, x):
            decay, ridge = p[0], p[1]

            def step(x, C):
                S = C + ridge * rs.eye(d)
                return dict(C=decay * C + (1 - decay) * x[:, None] * x[None, :], risk=rs.sum(S * rs.outer(x, x)) / rs.linalg.trace(S))

            return rs.mean(rs.loop(step, over=dict(x=x), init=dict(C=rs.eye(d))).risk)

        return rs.value_and_grad(loss)

    def jax(self, steps, d):
        import jax, jax.numpy as jnp

        def loss(p, x):
            decay, ridge = p[0], p[1]

            def step(C, x):
                S = C + ridge * jnp.eye(d)
                return decay * C + (1 - decay) * x[:, None] * x[None, :], jnp.sum(S * jnp.outer(x, x)) / jnp.trace(S)

            return jnp.mean(jax.lax.scan(step, jnp.eye(d), x)[1])

        return jax.jit(jax.value_and_grad(loss))


class SelectiveSSM(Model):
    """A selective state space model (Mamba): D channels of N states, steps that depend on the input."""

    kind, dtype = KIND, "float32"
    size, small = dict(steps=512, d=64, n=16), dict(steps=5, d=3, n=2)

    def make(self, random, steps, d, n):
        f4 = lambda a: a.astype("f4")
        dt = f4(np.log1p(np.exp(random.normal(size=(steps, d)) - 2)))
        return f4(-np.exp(random.normal(size=(d, n)))), dt, *(f4(random.normal(size=s)) for s in [(steps, d), (steps, n), (steps, n)])

    def rscan(self, steps, d, n):
        @rs.compile
        def f(A, dt, x, B, C):
            def step(dt, x, B, C, h):
                h = rs.exp(dt[:, None] * A) * h + (dt * x)[:, None] * B[None, :]
                return dict(h=h, y=rs.sum(h * C[None, :], axis=1))

            return rs.loop(step, over=dict(dt=dt, x=x, B=B, C=C), init=dict(h=rs.zeros((d, n), dtype="float32"))).y

        return f

    def jax(self, steps, d, n):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(A, dt, x, B, C):
            def step(h, row):
                dt, x, B, C = row
                h = jnp.exp(dt[:, None] * A) * h + (dt * x)[:, None] * B[None, :]
                return h, h @ C

            return jax.lax.scan(step, jnp.zeros((d, n), "float32"), (dt, x, B, C))[1]

        return f


class SelectiveSSMGrad(SelectiveSSM):
    """Its gradient with respect to everything."""

    size = dict(steps=256, d=64, n=16)

    def rscan(self, steps, d, n):
        def loss(A, dt, x, B, C):
            def step(dt, x, B, C, h):
                h = rs.exp(dt[:, None] * A) * h + (dt * x)[:, None] * B[None, :]
                return dict(h=h, y=h @ C)

            return rs.sum(rs.loop(step, over=dict(dt=dt, x=x, B=B, C=C), init=dict(h=rs.zeros((d, n), dtype="float32"))).y ** 2)

        return rs.value_and_grad(loss, wrt=(0, 1, 2, 3, 4))

    def jax(self, steps, d, n):
        import jax, jax.numpy as jnp

        def loss(A, dt, x, B, C):
            def step(h, row):
                dt, x, B, C = row
                h = jnp.exp(dt[:, None] * A) * h + (dt * x)[:, None] * B[None, :]
                return h, h @ C

            return jnp.sum(jax.lax.scan(step, jnp.zeros((d, n), "float32"), (dt, x, B, C))[1] ** 2)

        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2, 3, 4)))
