"""Training as one loop, with the gradient in its step; gradients through training."""

import numpy as np
import rscan as rs
from models import Model

KIND = "optimisers and hyper-gradients"


def regression(random, rows, d):
    """Rows of inputs, and what is to be predicted."""
    X = random.normal(size=(rows, d))
    return X, X @ random.normal(size=d) + 0.1 * random.normal(size=rows)


class AdamRegression(Model):
    """Adam on a small regression with a robust loss, all of it one loop."""

    kind, dtype = KIND, "float64"
    size, small = dict(rows=100, d=10, steps=200), dict(rows=5, d=2, steps=4)

    def make(self, random, rows, d, steps):
        return (*regression(random, rows, d), 0.05)

    def rscan(self, rows, d, steps):
        @rs.compile
        def f(X, y, rate):
            def step(t, w, m, v):
                loss = rs.mean(rs.sqrt(1 + (X @ w - y) ** 2) - 1)
                g = rs.grad(loss, w)
                m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
                w = w - rate * (m / (1 - 0.9**t)) / (rs.sqrt(v / (1 - 0.999**t)) + 1e-8)
                return dict(w=w, m=m, v=v, loss=loss)

            zero = rs.zeros(d)
            out = rs.loop(step, over=dict(t=rs.arange(1.0, steps + 1)), init=dict(w=zero, m=zero, v=zero))
            return out.w[-1], out.loss

        return f

    def jax(self, rows, d, steps):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(X, y, rate):
            def step(state, t):
                w, m, v = state
                loss, g = jax.value_and_grad(lambda w: jnp.mean(jnp.sqrt(1 + (X @ w - y) ** 2) - 1))(w)
                m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
                w = w - rate * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8)
                return (w, m, v), loss

            zero = jnp.zeros(d)
            (w, _, _), loss = jax.lax.scan(step, (zero, zero, zero), jnp.arange(1.0, steps + 1))
            return w, loss

        return f


class TrainedNet(Model):
    """Gradient descent with momentum on a net of two layers, over given minibatches."""

    kind, dtype = KIND, "float32"
    size, small = dict(steps=100, batch=32, d=16, hidden=32), dict(steps=3, batch=2, d=2, hidden=3)

    def make(self, random, steps, batch, d, hidden):
        f4 = lambda *s: random.normal(size=s).astype("f4")
        return f4(steps, batch, d), f4(steps, batch), f4(d, hidden) / np.float32(d**0.5), f4(hidden) / np.float32(hidden**0.5)

    def rscan(self, steps, batch, d, hidden):
        @rs.compile
        def f(X, y, W, v):
            def step(X, y, p, speed):
                loss = rs.mean((rs.tanh(X @ p["W"]) @ p["v"] - y) ** 2)
                g = dict(zip(p, rs.grad(loss, list(p.values()))))
                speed = {k: 0.9 * speed[k] - 0.01 * g[k] for k in p}
                return dict(p={k: p[k] + speed[k] for k in p}, speed=speed, loss=loss)

            p = dict(W=W, v=v)
            out = rs.loop(step, over=dict(X=X, y=y), init=dict(p=p, speed={k: rs.zeros_like(p[k]) for k in p}))
            return out.loss, out.p["W"][-1]

        return f

    def jax(self, steps, batch, d, hidden):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(X, y, W, v):
            def step(state, given):
                (p, speed), (X, y) = state, given
                loss, g = jax.value_and_grad(lambda p: jnp.mean((jnp.tanh(X @ p["W"]) @ p["v"] - y) ** 2))(p)
                speed = jax.tree.map(lambda s, g: 0.9 * s - 0.01 * g, speed, g)
                return (jax.tree.map(jnp.add, p, speed), speed), loss

            p = dict(W=W, v=v)
            (p, _), loss = jax.lax.scan(step, (p, jax.tree.map(jnp.zeros_like, p)), (X, y))
            return loss, p["W"]

        return f


class MomentumHyperGradient(Model):
    """The gradient of the loss after training by the learning rate, the momentum and the weights at first."""

    kind, dtype = KIND, "float64"
    size, small = dict(rows=60, d=8, steps=100), dict(rows=4, d=2, steps=3)

    def make(self, random, rows, d, steps):
        X, y = regression(random, rows, d)
        return np.array([-3.0, 1.0]), np.zeros(d), X, (y > 0).astype("f8")

    def rscan(self, rows, d, steps):
        def final(p, w0, X, y):
            rate, momentum = rs.exp(p[0]), rs.sigmoid(p[1])

            def loss(w):
                z = X @ w
                return rs.mean(rs.softplus(z) - y * z)

            def step(w, v):
                v = momentum * v - rate * rs.grad(loss(w), w)
                return dict(w=w + v, v=v)

            return loss(rs.loop(step, init=dict(w=w0, v=rs.zeros(d)), n_steps=steps).w[-1])

        return rs.value_and_grad(final, wrt=(0, 1))

    def jax(self, rows, d, steps):
        import jax, jax.numpy as jnp

        def final(p, w0, X, y):
            rate, momentum = jnp.exp(p[0]), jax.nn.sigmoid(p[1])

            def loss(w):
                z = X @ w
                return jnp.mean(jax.nn.softplus(z) - y * z)

            def step(state, _):
                w, v = state
                v = momentum * v - rate * jax.grad(loss)(w)
                return (w + v, v), None

            return loss(jax.lax.scan(step, (w0, jnp.zeros(d)), None, length=steps)[0][0])

        return jax.jit(jax.value_and_grad(final, argnums=(0, 1)))


class NewtonLogistic(Model):
    """Logistic regression by Newton's method with the Hessian of the loss, until the step is small."""

    kind, dtype = KIND, "float64"
    size, small = dict(rows=200, d=8), dict(rows=12, d=2)

    def make(self, random, rows, d):
        X, y = regression(random, rows, d)
        return X, (y + 2 * random.normal(size=rows) > 0).astype("f8")

    def rscan(self, rows, d):
        @rs.compile
        def f(X, y):
            def step(w):
                z = X @ w
                loss = rs.sum(rs.softplus(z) - y * z) + 0.5 * rs.sum(w**2)
                change = rs.linalg.solve(rs.hessian(loss, w), rs.grad(loss, w))
                return w - change, rs.until(rs.max(rs.abs(change)) < 1e-9)

            w = rs.loop(step, init=rs.zeros(d), n_steps=30)
            return w[-1], w.steps

        return f

    def jax(self, rows, d):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(X, y):
            def loss(w):
                z = X @ w
                return jnp.sum(jax.nn.softplus(z) - y * z) + 0.5 * jnp.sum(w**2)

            def step(state):
                w, _, n = state
                change = jnp.linalg.solve(jax.hessian(loss)(w), jax.grad(loss)(w))
                return w - change, jnp.max(jnp.abs(change)), n + 1

            w, _, n = jax.lax.while_loop(lambda s: (s[1] >= 1e-9) & (s[2] < 30), step, (jnp.zeros(d), jnp.inf, 0))
            return w, n

        return f


class CoordinateDescent(Model):
    """The lasso by coordinate descent: a loop over coordinates in a loop over sweeps, with the residual kept."""

    kind, dtype = KIND, "float64"
    size, small = dict(rows=100, d=20, sweeps=30), dict(rows=5, d=3, sweeps=2)

    def make(self, random, rows, d, sweeps):
        return (*regression(random, rows, d), 5.0)

    def rscan(self, rows, d, sweeps):
        @rs.compile
        def f(X, y, penalty):
            norms = rs.sum(X**2, axis=0)

            def coordinate(j, w, r):
                rho = rs.dot(X[:, j], r) + norms[j] * w[j]
                new = rs.sign(rho) * rs.maximum(rs.abs(rho) - penalty, 0) / norms[j]
                return dict(w=w.at[j].set(new), r=r - X[:, j] * (new - w[j]))

            def sweep(w, r):
                out = rs.loop(coordinate, over=dict(j=rs.arange(d)), init=dict(w=w, r=r))
                return dict(w=out.w[-1], r=out.r[-1])

            return rs.loop(sweep, init=dict(w=rs.zeros(d), r=y), n_steps=sweeps).w[-1]

        return f

    def jax(self, rows, d, sweeps):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(X, y, penalty):
            norms = jnp.sum(X**2, axis=0)

            def coordinate(j, state):
                w, r = state
                rho = jnp.dot(X[:, j], r) + norms[j] * w[j]
                new = jnp.sign(rho) * jnp.maximum(jnp.abs(rho) - penalty, 0) / norms[j]
                return w.at[j].set(new), r - X[:, j] * (new - w[j])

            sweep = lambda _, state: jax.lax.fori_loop(0, d, coordinate, state)
            return jax.lax.fori_loop(0, sweeps, sweep, (jnp.zeros(d), y))[0]

        return f


class ConjugateGradient(Model):
    """The method of conjugate gradients until the residual is small."""

    kind, dtype = KIND, "float64"
    size, small = dict(n=100), dict(n=4)
    rtol = 1e-7

    def make(self, random, n):
        Q = np.linalg.qr(random.normal(size=(n, n)))[0]
        return Q @ np.diag(np.linspace(1, 20, n)) @ Q.T, random.normal(size=n)

    def rscan(self, n):
        @rs.compile
        def f(A, b):
            def step(x, r, p, rr):
                Ap = A @ p
                alpha = rr / rs.dot(p, Ap)
                r = r - alpha * Ap
                new = rs.dot(r, r)
                return dict(x=x + alpha * p, r=r, p=r + new / rr * p, rr=new), rs.until(new < 1e-20)

            return rs.loop(step, init=dict(x=rs.zeros_like(b), r=b, p=b, rr=rs.dot(b, b)), n_steps=200).x[-1]

        return f

    def jax(self, n):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(A, b):
            def step(state):
                x, r, p, rr, n = state
                Ap = A @ p
                alpha = rr / jnp.dot(p, Ap)
                r = r - alpha * Ap
                new = jnp.dot(r, r)
                return x + alpha * p, r, r + new / rr * p, new, n + 1

            return jax.lax.while_loop(lambda s: (s[3] >= 1e-20) & (s[4] < 200), step, (jnp.zeros_like(b), b, b, jnp.dot(b, b), 0))[0]

        return f
