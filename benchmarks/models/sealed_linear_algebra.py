"""Small linear algebra, two to thirty rows."""

import numpy as np

import rscan as rs
from models import Model


class GaussSeidel(Model):
    """Gauss and Seidel's iteration: every sweep is a loop over the rows that changes one element of the solution each."""

    kind = "small linear algebra"
    dtype = "float64"
    size = dict(n=30, sweeps=60)
    small = dict(n=4, sweeps=3)

    def make(self, random, n, sweeps):
        A = random.normal(size=(n, n)) / np.sqrt(n)
        return A @ A.T + 2 * np.eye(n), random.normal(size=n)

    def rscan(self, n, sweeps):
        @rs.compile
        def solve(A, b):
            def sweep(x):
                def row(i, x):
                    return x.at[i].set((b[i] - rs.dot(A[i], x) + A[i, i] * x[i]) / A[i, i])

                x = rs.loop(row, over=rs.arange(n), init=x)[-1]
                return dict(x=x, residual=rs.sqrt(rs.sum((A @ x - b) ** 2)))

            out = rs.loop(sweep, init=dict(x=rs.zeros(n)), n_steps=sweeps)
            return out.x[-1], out.residual

        return solve

    def jax(self, n, sweeps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def solve(A, b):
            def sweep(x, _):
                def row(i, x):
                    return x.at[i].set((b[i] - A[i] @ x + A[i, i] * x[i]) / A[i, i])

                x = lax.fori_loop(0, n, row, x)
                return x, jnp.linalg.norm(A @ x - b)

            return lax.scan(sweep, jnp.zeros(n), None, length=sweeps)

        return solve

    def same(self, ours, theirs):
        # residuals at the end are differences of equal numbers
        self.atol = 1e-12
        super().same(ours, theirs)


class LinearQuadraticRegulator(Model):
    """The finite-horizon regulator of a stochastic control problem: gains backwards, a simulation forwards, gradient by costs."""

    kind = "small linear algebra"
    dtype = "float64"
    size = dict(horizon=80, n=6, m=2)
    small = dict(horizon=4, n=2, m=1)

    def make(self, random, horizon, n, m):
        A = np.eye(n) + 0.1 * random.normal(size=(n, n))
        return (np.zeros(n), np.full(m, -1.0)), A, random.normal(size=(n, m)), random.normal(size=n), 0.1 * random.normal(size=(horizon, n))

    def rscan(self, horizon, n, m):
        @rs.compile
        def cost(log_costs, A, B, x0, noise):
            Q, R = rs.diag(rs.exp(log_costs[0])), rs.diag(rs.exp(log_costs[1]))

            def riccati(P):
                PA = P @ A
                K = rs.linalg.solve(R + B.T @ P @ B, B.T @ PA)
                return dict(P=Q + A.T @ PA - A.T @ P @ B @ K, K=K)

            gains = rs.loop(riccati, init=dict(P=Q), n_steps=horizon).K

            def move(K, noise, x):
                u = -(K @ x)
                return dict(x=A @ x + B @ u + noise, cost=rs.sum(x**2) + 0.1 * rs.sum(u**2))

            return rs.sum(rs.loop(move, over=dict(K=gains[::-1], noise=noise), init=dict(x=x0)).cost)

        return rs.value_and_grad(cost)

    def jax(self, horizon, n, m):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def cost(log_costs, A, B, x0, noise):
            Q, R = jnp.diag(jnp.exp(log_costs[0])), jnp.diag(jnp.exp(log_costs[1]))

            def riccati(P, _):
                PA = P @ A
                K = jnp.linalg.solve(R + B.T @ P @ B, B.T @ PA)
                return Q + A.T @ PA - A.T @ P @ B @ K, K

            _, gains = lax.scan(riccati, Q, None, length=horizon)

            def move(x, row):
                K, noise = row
                u = -(K @ x)
                return A @ x + B @ u + noise, jnp.sum(x**2) + 0.1 * jnp.sum(u**2)

            return jnp.sum(lax.scan(move, x0, (gains[::-1], noise))[1])

        return jax.jit(jax.value_and_grad(cost))


class LanczosSteps(Model):
    """Lanczos' tridiagonalisation of a symmetric matrix, with full orthogonalisation against the vectors so far."""

    kind = "small linear algebra"
    dtype = "float64"
    size = dict(n=30, steps=20)
    small = dict(n=5, steps=3)

    def make(self, random, n, steps):
        A = random.normal(size=(n, n))
        return A + A.T, random.normal(size=n)

    def rscan(self, n, steps):
        @rs.compile
        def lanczos(A, start):
            def step(k, q, V):
                V = rs.set_subtensor(V[k], q)
                w = A @ q
                alpha = rs.dot(q, w)
                w = w - V.T @ (V @ w)
                w = w - V.T @ (V @ w)
                beta = rs.sqrt(rs.sum(w**2))
                return dict(q=w / beta, V=V, alpha=alpha, beta=beta)

            init = dict(q=start / rs.sqrt(rs.sum(start**2)), V=rs.zeros((steps, n)))
            out = rs.loop(step, over=dict(k=rs.arange(steps)), init=init)
            return out.alpha, out.beta, out.V[-1]

        return lanczos

    def jax(self, n, steps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def lanczos(A, start):
            def step(state, k):
                q, V = state
                V = V.at[k].set(q)
                w = A @ q
                alpha = q @ w
                w = w - V.T @ (V @ w)
                w = w - V.T @ (V @ w)
                beta = jnp.linalg.norm(w)
                return (w / beta, V), (alpha, beta)

            init = (start / jnp.linalg.norm(start), jnp.zeros((steps, n)))
            (_, V), (alpha, beta) = lax.scan(step, init, jnp.arange(steps))
            return alpha, beta, V

        return lanczos


class PageRankPanel(Model):
    """Personalised PageRank of a small web for every start page at once, until nothing moves."""

    kind = "small linear algebra"
    dtype = "float64"
    size = dict(pages=30)
    small = dict(pages=4)

    def make(self, random, pages):
        links = (random.random((pages, pages)) < 0.15) + np.roll(np.eye(pages), 1, axis=1)
        return links / links.sum(1, keepdims=True), 0.85

    def rscan(self, pages):
        @rs.compile
        def rank(P, damping):
            def step(r):
                new = damping * (r @ P) + (1 - damping) * rs.eye(pages)
                return dict(r=new, change=rs.max(rs.sum(rs.abs(new - r), axis=1))), rs.until(rs.all(rs.abs(new - r) < 1e-12))

            out = rs.loop(step, init=dict(r=rs.eye(pages)), n_steps=500)
            return out.r[-1], rs.argmax(out.r[-1], axis=1)

        return rank

    def jax(self, pages):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def rank(P, damping):
            home = jnp.eye(pages)

            def step(state):
                r, _, k = state
                new = damping * (r @ P) + (1 - damping) * home
                return new, jnp.any(jnp.abs(new - r) >= 1e-12), k + 1

            r, _, _ = lax.while_loop(lambda s: s[1] & (s[2] < 500), step, (home, True, 0))
            return r, jnp.argmax(r, axis=1)

        return rank


class AlternatingFactors(Model):
    """Alternating least squares of a matrix with gaps: a small regression for every row, then for every column, in turns."""

    kind = "small linear algebra"
    dtype = "float64"
    size = dict(rows=40, columns=30, rank=4, sweeps=5)
    small = dict(rows=4, columns=3, rank=2, sweeps=2)

    def make(self, random, rows, columns, rank, sweeps):
        R = random.normal(size=(rows, rank)) @ random.normal(size=(rank, columns)) + 0.1 * random.normal(size=(rows, columns))
        return R, (random.random((rows, columns)) < 0.6).astype(float), random.normal(size=(columns, rank)), 0.5

    def rscan(self, rows, columns, rank, sweeps):
        @rs.compile
        def factorise(R, seen, V0, ridge):
            def regress(R, seen, V):
                def one(r, m):
                    A = V.T @ (m[:, None] * V) + ridge * rs.eye(rank)
                    return rs.linalg.solve(A, V.T @ (m * r))

                return rs.loop(one, over=[R, seen])

            def sweep(V):
                U = regress(R, seen, V)
                V = regress(R.T, seen.T, U)
                return dict(V=V, U=U, loss=rs.sum(seen * (R - U @ V.T) ** 2))

            out = rs.loop(sweep, init=dict(V=V0), n_steps=sweeps)
            return out.U[-1] @ out.V[-1].T, out.loss

        return factorise

    def jax(self, rows, columns, rank, sweeps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def factorise(R, seen, V0, ridge):
            def regress(R, seen, V):
                def one(r, m):
                    A = V.T @ (m[:, None] * V) + ridge * jnp.eye(rank)
                    return jnp.linalg.solve(A, V.T @ (m * r))

                return jax.vmap(one)(R, seen)

            def sweep(state, _):
                _, V = state
                U = regress(R, seen, V)
                V = regress(R.T, seen.T, U)
                return (U, V), jnp.sum(seen * (R - U @ V.T) ** 2)

            (U, V), loss = lax.scan(sweep, (jnp.zeros((rows, rank)), V0), None, length=sweeps)
            return U @ V.T, loss

        return factorise


class UnscentedPendulum(Model):
    """An unscented filter of a pendulum: sigma points from a Cholesky factor, likelihood and gradient by noises and length."""

    kind = "small linear algebra"
    dtype = "float64"
    size = dict(steps=150)
    small = dict(steps=3)

    def make(self, random, steps):
        return np.array([-2.0, -4.0, 1.0]), np.sin(np.cos(0.15 * np.arange(steps))) + 0.3 * random.normal(size=steps)

    def rscan(self, steps):
        weights = np.array([1 / 3] + [1 / 6] * 4)

        @rs.compile
        def nll(theta, y):
            r, q, length = rs.exp(theta[0]), rs.exp(theta[1]), theta[2]

            def points(m, P):
                L = rs.linalg.cholesky(3.0 * P)
                return rs.concatenate([m[None, :], m + L.T, m - L.T], axis=0)

            def step(y, m, P):
                x = points(m, P)
                angle, speed = x[:, 0], x[:, 1]
                x = rs.stack([angle + 0.1 * speed, speed - 0.981 / length * rs.sin(angle)], axis=1)
                m = weights @ x
                P = (x - m).T @ (weights[:, None] * (x - m)) + q * rs.eye(2)
                x = points(m, P)
                h = rs.sin(x[:, 0])
                mean = rs.sum(weights * h)
                S = rs.sum(weights * (h - mean) ** 2) + r
                C = (x - m).T @ (weights * (h - mean))
                e = y - mean
                return dict(m=m + C * e / S, P=P - rs.outer(C, C) / S, nll=0.5 * (rs.log(2 * np.pi * S) + e**2 / S))

            init = dict(m=rs.constant(np.array([0.8, 0.0])), P=0.5 * rs.eye(2))
            return rs.sum(rs.loop(step, over=dict(y=y), init=init).nll)

        return rs.value_and_grad(nll)

    def jax(self, steps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        weights = np.array([1 / 3] + [1 / 6] * 4)

        def nll(theta, y):
            r, q, length = jnp.exp(theta[0]), jnp.exp(theta[1]), theta[2]

            def points(m, P):
                L = jnp.linalg.cholesky(3.0 * P)
                return jnp.concatenate([m[None, :], m + L.T, m - L.T])

            def step(state, y):
                m, P = state
                angle, speed = points(m, P).T
                x = jnp.stack([angle + 0.1 * speed, speed - 0.981 / length * jnp.sin(angle)], axis=1)
                m = weights @ x
                P = (x - m).T @ (weights[:, None] * (x - m)) + q * jnp.eye(2)
                x = points(m, P)
                h = jnp.sin(x[:, 0])
                mean = weights @ h
                S = weights @ (h - mean) ** 2 + r
                C = (x - m).T @ (weights * (h - mean))
                e = y - mean
                return (m + C * e / S, P - jnp.outer(C, C) / S), 0.5 * (jnp.log(2 * jnp.pi * S) + e**2 / S)

            return jnp.sum(lax.scan(step, (jnp.array([0.8, 0.0]), 0.5 * jnp.eye(2)), y)[1])

        return jax.jit(jax.value_and_grad(nll))
