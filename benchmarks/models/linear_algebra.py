"""Small linear algebra in the step: products, solutions, factorisations of 2 to 30 rows."""

import numpy as np
import rscan as rs
from models import Model

KIND = "small linear algebra"


class KalmanGradient(Model):
    """A Kalman filter of four states and two observations; the gradient of its likelihood by transitions and both variances."""

    kind, dtype = KIND, "float64"
    size, small = dict(steps=200), dict(steps=4)

    def make(self, random, steps):
        F = 0.9 * np.eye(4) + 0.05 * random.normal(size=(4, 4))
        return F, random.normal(size=4) / 2, random.normal(size=2) / 2, np.eye(2, 4), random.normal(size=(steps, 2)).cumsum(axis=0) / 3

    def rscan(self, steps):
        def loss(F, q, r, H, y):
            Q, R = rs.diag(rs.exp(q)), rs.diag(rs.exp(r))

            def step(y, x, P):
                x, P = F @ x, F @ P @ F.T + Q
                S = H @ P @ H.T + R
                v = y - H @ x
                K = rs.linalg.solve(S, H @ P).T
                _, logdet = rs.linalg.slogdet(S)
                return dict(x=x + K @ v, P=P - K @ H @ P, ll=logdet + v @ rs.linalg.solve(S, v))

            return 0.5 * rs.sum(rs.loop(step, over=dict(y=y), init=dict(x=rs.zeros(4), P=rs.eye(4))).ll)

        return rs.value_and_grad(loss, wrt=(0, 1, 2))

    def jax(self, steps):
        import jax, jax.numpy as jnp

        def loss(F, q, r, H, y):
            Q, R = jnp.diag(jnp.exp(q)), jnp.diag(jnp.exp(r))

            def step(state, y):
                x, P = state
                x, P = F @ x, F @ P @ F.T + Q
                S = H @ P @ H.T + R
                v = y - H @ x
                K = jnp.linalg.solve(S, H @ P).T
                return (x + K @ v, P - K @ H @ P), jnp.linalg.slogdet(S)[1] + v @ jnp.linalg.solve(S, v)

            return 0.5 * jnp.sum(jax.lax.scan(step, (jnp.zeros(4), jnp.eye(4)), y)[1])

        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2)))


class RiccatiIteration(Model):
    """The cost matrix of a linear regulator by iteration until it settles."""

    kind, dtype = KIND, "float64"
    size, small = dict(n=10, m=3), dict(n=3, m=1)

    def make(self, random, n, m):
        return 0.98 * np.linalg.qr(random.normal(size=(n, n)))[0], random.normal(size=(n, m)) / n, np.eye(n), np.eye(m)

    def rscan(self, n, m):
        @rs.compile
        def f(A, B, Q, R):
            def step(P):
                gain = rs.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
                new = Q + A.T @ P @ (A - B @ gain)
                return new, rs.until(rs.max(rs.abs(new - P)) < 1e-9)

            P = rs.loop(step, init=Q, n_steps=2000)
            return P[-1], P.steps

        return f

    def jax(self, n, m):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(A, B, Q, R):
            def step(state):
                P, _, n = state
                gain = jnp.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
                new = Q + A.T @ P @ (A - B @ gain)
                return new, jnp.max(jnp.abs(new - P)), n + 1

            P, _, n = jax.lax.while_loop(lambda s: (s[1] >= 1e-9) & (s[2] < 2000), step, (Q, jnp.inf, 0))
            return P, n

        return f


class PowerIteration(Model):
    """The largest eigenvalue and its vector, until the value settles."""

    kind, dtype = KIND, "float64"
    size, small = dict(n=30), dict(n=3)

    def make(self, random, n):
        A = random.normal(size=(n, n))
        return A @ A.T + 10 * np.eye(n), np.ones(n)

    def rscan(self, n):
        @rs.compile
        def f(A, v):
            def step(v, value):
                w = A @ v
                new = rs.linalg.norm(w)
                return dict(v=w / new, value=new), rs.until(rs.abs(new - value) < 1e-12 * new)

            out = rs.loop(step, init=dict(v=v / rs.linalg.norm(v), value=0.0), n_steps=5000)
            return out.value[-1], out.v[-1]

        return f

    rtol = 1e-5

    def jax(self, n):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(A, v):
            def step(state):
                v, value, _, n = state
                w = A @ v
                new = jnp.linalg.norm(w)
                return w / new, new, jnp.abs(new - value) < 1e-12 * new, n + 1

            v, value, _, _ = jax.lax.while_loop(lambda s: ~s[2] & (s[3] < 5000), step, (v / jnp.linalg.norm(v), 0.0, False, 0))
            return value, v

        return f


class OrthogonalIteration(Model):
    """A few largest eigenvalues by orthogonal iteration, the columns made orthogonal by Cholesky's factor."""

    kind, dtype = KIND, "float64"
    size, small = dict(n=24, k=4, steps=100), dict(n=4, k=2, steps=4)
    rtol = 1e-6

    def make(self, random, n, k, steps):
        Q = np.linalg.qr(random.normal(size=(n, n)))[0]
        return Q @ np.diag(0.8 ** np.arange(n)) @ Q.T, random.normal(size=(n, k))

    def rscan(self, n, k, steps):
        @rs.compile
        def f(A, V):
            def step(V):
                W = A @ V
                L = rs.linalg.cholesky(W.T @ W)
                return rs.linalg.solve_triangular(L, W.T, lower=True).T

            V = rs.loop(step, init=V, n_steps=steps)[-1]
            return rs.diagonal(V.T @ A @ V)

        return f

    def jax(self, n, k, steps):
        import jax, jax.numpy as jnp
        from jax.scipy.linalg import solve_triangular

        @jax.jit
        def f(A, V):
            def step(_, V):
                W = A @ V
                return solve_triangular(jnp.linalg.cholesky(W.T @ W), W.T, lower=True).T

            V = jax.lax.fori_loop(0, steps, step, V)
            return jnp.diagonal(V.T @ A @ V)

        return f


class QRIteration(Model):
    """All eigenvalues of a symmetric matrix by the QR iteration."""

    kind, dtype = KIND, "float64"
    size, small = dict(n=8, steps=60), dict(n=3, steps=4)

    def make(self, random, n, steps):
        A = random.normal(size=(n, n))
        return (A + A.T,)

    def rscan(self, n, steps):
        @rs.compile
        def f(A):
            def step(A):
                Q, R = rs.linalg.qr(A)
                return R @ Q

            return rs.diagonal(rs.loop(step, init=A, n_steps=steps)[-1])

        return f

    def jax(self, n, steps):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(A):
            def step(_, A):
                Q, R = jnp.linalg.qr(A)
                return R @ Q

            return jnp.diagonal(jax.lax.fori_loop(0, steps, step, A))

        return f


class NewtonSchulz(Model):
    """The inverse of a matrix by Newton's and Schulz's iteration; the gradient of its trace."""

    kind, dtype = KIND, "float64"
    size, small = dict(n=20, steps=25), dict(n=3, steps=8)

    def make(self, random, n, steps):
        A = random.normal(size=(n, n))
        return (A @ A.T / n + np.eye(n),)

    def rscan(self, n, steps):
        def trace(A):
            start = A.T / rs.sum(A**2)
            return rs.linalg.trace(rs.loop(lambda X: X @ (2 * rs.eye(n) - A @ X), init=start, n_steps=steps)[-1])

        return rs.value_and_grad(trace)

    def jax(self, n, steps):
        import jax, jax.numpy as jnp

        def trace(A):
            step = lambda X, _: (X @ (2 * jnp.eye(n) - A @ X), None)
            return jnp.trace(jax.lax.scan(step, A.T / jnp.sum(A**2), None, length=steps)[0])

        return jax.jit(jax.value_and_grad(trace))


class SequentialProcess(Model):
    """Regression with a Gaussian process for several length scales: each step fits one by Cholesky's factor; the gradient by all scales."""

    kind, dtype = KIND, "float64"
    size, small = dict(n=30, scales=20), dict(n=4, scales=2)

    def make(self, random, n, scales):
        x = np.sort(random.uniform(size=n))
        return np.linspace(-3, 0, scales), x, np.sin(6 * x) + 0.1 * random.normal(size=n)

    def rscan(self, n, scales):
        def loss(logs, x, y):
            d2 = (x[:, None] - x[None, :]) ** 2

            def one(s):
                L = rs.linalg.cholesky(rs.exp(-0.5 * d2 / rs.exp(2 * s)) + 0.01 * rs.eye(n))
                a = rs.linalg.solve_triangular(L, y, lower=True)
                return 0.5 * rs.sum(a**2) + rs.sum(rs.log(rs.diagonal(L)))

            return rs.sum(rs.loop(one, over=logs))

        return rs.value_and_grad(loss)

    def jax(self, n, scales):
        import jax, jax.numpy as jnp

        def loss(logs, x, y):
            d2 = (x[:, None] - x[None, :]) ** 2

            def one(s):
                L = jnp.linalg.cholesky(jnp.exp(-0.5 * d2 / jnp.exp(2 * s)) + 0.01 * jnp.eye(n))
                a = jax.scipy.linalg.solve_triangular(L, y, lower=True)
                return 0.5 * jnp.sum(a**2) + jnp.sum(jnp.log(jnp.diagonal(L)))

            return jnp.sum(jax.lax.map(one, logs))

        return jax.jit(jax.value_and_grad(loss))


class ThomasSweeps(Model):
    """Crank and Nicolson's steps of diffusion, each a tridiagonal system by a sweep forwards and one backwards."""

    kind, dtype = KIND, "float64"
    size, small = dict(n=100, steps=30), dict(n=4, steps=2)

    def make(self, random, n, steps):
        return random.uniform(0.1, 1, size=n), random.normal(size=n)

    def rscan(self, n, steps):
        @rs.compile
        def f(k, u0):
            below, above, diagonal = -k.at[0].set(0.0), -k.at[-1].set(0.0), 1 + 2 * k

            def forward(a, b, c, r, cp, rp):
                w = b - a * cp
                return dict(cp=c / w, rp=(r - a * rp) / w)

            def solve(r):
                out = rs.loop(forward, over=dict(a=below, b=diagonal, c=above, r=r), init=dict(cp=0.0, rp=0.0))
                return rs.loop(lambda c, r, x: r - c * x, over=[out.cp, out.rp], init=rs.constant(0.0), reverse=True)

            def step(u):
                around = -below * rs.concatenate([u[:1], u[:-1]]) - above * rs.concatenate([u[1:], u[-1:]])
                return solve((1 - k) * u + 0.5 * around)

            return rs.loop(step, init=u0, n_steps=steps)[-1]

        return f

    def jax(self, n, steps):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(k, u0):
            below, above, diagonal = -k.at[0].set(0.0), -k.at[-1].set(0.0), 1 + 2 * k

            def forward(before, row):
                (cp, rp), (a, b, c, r) = before, row
                w = b - a * cp
                return (c / w, (r - a * rp) / w), (c / w, (r - a * rp) / w)

            def backward(x, row):
                c, r = row
                x = r - c * x
                return x, x

            def solve(r):
                swept = jax.lax.scan(forward, (0.0, 0.0), (below, diagonal, above, r))[1]
                return jax.lax.scan(backward, 0.0, swept, reverse=True)[1]

            def step(_, u):
                around = -below * jnp.concatenate([u[:1], u[:-1]]) - above * jnp.concatenate([u[1:], u[-1:]])
                return solve((1 - k) * u + 0.5 * around)

            return jax.lax.fori_loop(0, steps, step, u0)

        return f
