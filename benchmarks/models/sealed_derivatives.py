"""Jacobians, Hessians and gradients per example."""

import numpy as np

import rscan as rs
from models import Model


class EpidemicGaussNewton(Model):
    """Two steps of Gauss and Newton for the rates of an SIR epidemic: the Jacobian of the whole curve by three parameters."""

    kind = "Jacobians, Hessians, gradients per example"
    dtype = "float64"
    size = dict(days=80)
    small = dict(days=5)

    def make(self, random, days):
        return np.log([0.4, 0.12, 0.01]), 0.2 * np.exp(-(((np.arange(days) - 30) / 15) ** 2)) + 0.005 * random.normal(size=days)

    def rscan(self, days):
        def curve(theta):
            beta, gamma, i0 = rs.exp(theta[0]), rs.exp(theta[1]), rs.exp(theta[2])

            def day(s, i):
                infected = beta * s * i
                return dict(s=s - infected, i=i + infected - gamma * i)

            return rs.loop(day, init=dict(s=1 - i0, i=i0), n_steps=days).i

        @rs.compile
        def improve(theta, observed):
            for _ in range(2):
                y = curve(theta)
                J = rs.jacobian(y, theta)
                theta = theta + rs.linalg.solve(J.T @ J + 1e-6 * rs.eye(3), J.T @ (observed - y))
            return theta, y, J

        return improve

    def jax(self, days):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def curve(theta):
            beta, gamma, i0 = jnp.exp(theta)

            def day(state, _):
                s, i = state
                infected = beta * s * i
                new = s - infected, i + infected - gamma * i
                return new, new[1]

            return lax.scan(day, (1 - i0, i0), None, length=days)[1]

        @jax.jit
        def improve(theta, observed):
            for _ in range(2):
                y = curve(theta)
                J = jax.jacfwd(curve)(theta)
                theta = theta + jnp.linalg.solve(J.T @ J + 1e-6 * jnp.eye(3), J.T @ (observed - y))
            return theta, y, J

        return improve


class HessianOfArma(Model):
    """Gradient, Hessian and covariance of the estimates of an ARMA(2, 1) model by its conditional likelihood."""

    kind = "Jacobians, Hessians, gradients per example"
    dtype = "float64"
    size = dict(steps=400)
    small = dict(steps=7)

    def make(self, random, steps):
        e, y = random.normal(size=steps + 2), np.zeros(steps + 2)
        for t in range(2, steps + 2):
            y[t] = 0.3 + 0.5 * y[t - 1] - 0.2 * y[t - 2] + e[t] + 0.4 * e[t - 1]
        return np.array([0.2, 0.4, -0.1, 0.3, 0.1]), y

    def rscan(self, steps):
        @rs.compile
        def derivatives(theta, y):
            c, a1, a2, b, log_sigma = (theta[k] for k in range(5))

            def step(y, e):
                y_tm2, y_tm1, y_t = y
                return dict(e=y_t - c - a1 * y_tm1 - a2 * y_tm2 - b * e)

            e = rs.loop(step, over=dict(y=rs.taps(y, -2, -1, 0)), init=dict(e=0.0)).e
            nll = rs.sum(0.5 * np.log(2 * np.pi) + log_sigma + 0.5 * (e / rs.exp(log_sigma)) ** 2)
            H = rs.hessian(nll, theta)
            return nll, rs.grad(nll, theta), H, rs.diag(rs.linalg.inv(H))

        return derivatives

    def jax(self, steps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def nll(theta, y):
            c, a1, a2, b, log_sigma = theta

            def step(e, row):
                y_tm2, y_tm1, y_t = row
                e = y_t - c - a1 * y_tm1 - a2 * y_tm2 - b * e
                return e, e

            _, e = lax.scan(step, 0.0, (y[:-2], y[1:-1], y[2:]))
            return jnp.sum(0.5 * jnp.log(2 * jnp.pi) + log_sigma + 0.5 * (e / jnp.exp(log_sigma)) ** 2)

        @jax.jit
        def derivatives(theta, y):
            value, gradient = jax.value_and_grad(nll)(theta, y)
            H = jax.hessian(nll)(theta, y)
            return value, gradient, H, jnp.diag(jnp.linalg.inv(H))

        return derivatives


class ClippedPrivateGradient(Model):
    """Differentially private training: the gradient of a small net for each example, cut at a norm, and their noisy mean."""

    kind = "Jacobians, Hessians, gradients per example"
    dtype = "float64"
    size = dict(examples=64, features=20, hidden=16)
    small = dict(examples=3, features=2, hidden=2)

    def make(self, random, examples, features, hidden):
        W, v = random.normal(size=(features, hidden)) / np.sqrt(features), random.normal(size=hidden) / np.sqrt(hidden)
        y = random.integers(0, 2, size=examples).astype(float)
        return W, v, random.normal(size=(examples, features)), y, random.normal(size=W.shape), random.normal(size=hidden)

    def rscan(self, examples, features, hidden):
        @rs.compile
        def private(W, v, X, y, noise_W, noise_v):
            def example(x, y):
                z = rs.dot(rs.tanh(x @ W), v)
                loss = rs.softplus(z) - y * z
                gW, gv = rs.grad(loss, [W, v])
                norm = rs.sqrt(rs.sum(gW**2) + rs.sum(gv**2))
                factor = rs.minimum(1.0, 0.5 / norm)
                return dict(gW=factor * gW, gv=factor * gv, norm=norm)

            out = rs.loop(example, over=dict(x=X, y=y))
            return (rs.sum(out.gW, axis=0) + noise_W) / examples, (rs.sum(out.gv, axis=0) + noise_v) / examples, out.norm

        return private

    def jax(self, examples, features, hidden):
        import jax
        import jax.numpy as jnp

        def loss(parameters, x, y):
            W, v = parameters
            z = jnp.tanh(x @ W) @ v
            return jax.nn.softplus(z) - y * z

        @jax.jit
        def private(W, v, X, y, noise_W, noise_v):
            gW, gv = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))((W, v), X, y)
            norm = jnp.sqrt(jnp.sum(gW**2, axis=(1, 2)) + jnp.sum(gv**2, axis=1))
            factor = jnp.minimum(1.0, 0.5 / norm)
            return (jnp.einsum("n,nij->ij", factor, gW) + noise_W) / examples, (factor @ gv + noise_v) / examples, norm

        return private


class LyapunovSpectrum(Model):
    """Lyapunov exponents of the Lorenz system: the Jacobian of each step moves a frame, Gram and Schmidt straighten it."""

    kind = "Jacobians, Hessians, gradients per example"
    dtype = "float64"
    size = dict(steps=500)
    small = dict(steps=4)
    rtol = 1e-6

    def make(self, random, steps):
        return np.array([1.0, 2.0, 20.0]) + 0.1 * random.normal(size=3), np.array([10.0, 28.0, 8 / 3]), 0.01

    def rscan(self, steps):
        @rs.compile
        def spectrum(x0, theta, dt):
            def f(x):
                return rs.stack([theta[0] * (x[1] - x[0]), x[0] * (theta[1] - x[2]) - x[1], x[0] * x[1] - theta[2] * x[2]])

            def heun(x):
                k = f(x)
                return x + 0.5 * dt * (k + f(x + dt * k))

            def step(x, frame):
                new = heun(x)
                M = rs.jacobian(new, x) @ frame
                columns, logs = [], []
                for k in range(3):
                    v = M[:, k]
                    for q in columns:
                        v = v - rs.dot(q, v) * q
                    r = rs.sqrt(rs.sum(v**2))
                    columns.append(v / r)
                    logs.append(rs.log(r))
                return dict(x=new, frame=rs.stack(columns, axis=1), logs=rs.stack(logs))

            out = rs.loop(step, init=dict(x=x0, frame=rs.eye(3)), n_steps=steps)
            return out.x[-1], rs.cumsum(out.logs, axis=0) / (dt * rs.arange(1, steps + 1))[:, None]

        return spectrum

    def jax(self, steps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def spectrum(x0, theta, dt):
            def f(x):
                return jnp.stack([theta[0] * (x[1] - x[0]), x[0] * (theta[1] - x[2]) - x[1], x[0] * x[1] - theta[2] * x[2]])

            def heun(x):
                k = f(x)
                return x + 0.5 * dt * (k + f(x + dt * k))

            def step(state, _):
                x, frame = state
                M = jax.jacfwd(heun)(x) @ frame
                columns, logs = [], []
                for k in range(3):
                    v = M[:, k]
                    for q in columns:
                        v = v - (q @ v) * q
                    r = jnp.linalg.norm(v)
                    columns.append(v / r)
                    logs.append(jnp.log(r))
                return (heun(x), jnp.stack(columns, axis=1)), jnp.stack(logs)

            (x, _), logs = lax.scan(step, (x0, jnp.eye(3)), None, length=steps)
            return x, jnp.cumsum(logs, axis=0) / (dt * jnp.arange(1, steps + 1))[:, None]

        return spectrum


class PoissonNewton(Model):
    """Maximum likelihood by Newton's method, the Hessian taken inside of the loop, until the gradient vanishes."""

    kind = "Jacobians, Hessians, gradients per example"
    dtype = "float64"
    size = dict(rows=200, features=8)
    small = dict(rows=12, features=2)

    def make(self, random, rows, features):
        X = random.normal(size=(rows, features)) / 3
        return X, random.poisson(np.exp(X @ random.normal(size=features) + 0.5)).astype(float), 0.1

    def rscan(self, rows, features):
        @rs.compile
        def fit(X, y, ridge):
            def step(w):
                eta = X @ w
                nll = rs.sum(rs.exp(eta) - y * eta) + 0.5 * ridge * rs.sum(w**2)
                g = rs.grad(nll, w)
                H = rs.hessian(nll, w)
                state = dict(w=w - rs.linalg.solve(H, g), nll=nll, H=H)
                return state, rs.until(rs.sqrt(rs.sum(g**2)) < 1e-8)

            out = rs.loop(step, init=dict(w=rs.zeros(features)), n_steps=50)
            return out.w[-1], out.nll[-1], out.H[-1]

        return fit

    def jax(self, rows, features):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def fit(X, y, ridge):
            def nll(w):
                eta = X @ w
                return jnp.sum(jnp.exp(eta) - y * eta) + 0.5 * ridge * jnp.sum(w**2)

            def step(state):
                w, _, _, _, k = state
                value, g = jax.value_and_grad(nll)(w)
                H = jax.hessian(nll)(w)
                return w - jnp.linalg.solve(H, g), value, H, jnp.linalg.norm(g), k + 1

            start = (jnp.zeros(features), 0.0, jnp.zeros((features, features)), jnp.inf, 0)
            w, value, H, _, _ = lax.while_loop(lambda s: (s[3] >= 1e-8) & (s[4] < 50), step, start)
            return w, value, H

        return fit
