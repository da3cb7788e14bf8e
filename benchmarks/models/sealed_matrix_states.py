"""Matrices as states, changed by outer products."""

import numpy as np

import rscan as rs
from models import Model


class StorkeyHopfield(Model):
    """A Hopfield net learns patterns one after the other by Storkey's rule, then recalls a damaged one."""

    kind = "matrix states and outer products"
    dtype = "float64"
    size = dict(neurons=96, patterns=30, recall=15)
    small = dict(neurons=8, patterns=3, recall=3)

    def make(self, random, neurons, patterns, recall):
        memories = random.choice([-1.0, 1.0], size=(patterns, neurons))
        probe = memories[patterns // 2] * np.where(random.random(neurons) < 0.15, -1.0, 1.0)
        return memories, probe

    def rscan(self, neurons, patterns, recall):
        @rs.compile
        def train_and_recall(memories, probe):
            def learn(xi, W):
                field = W @ xi
                # the local field at i without the terms of i and j
                h = field[:, None] - rs.diag(W)[:, None] * xi[:, None] - W * xi[None, :]
                new = W + (rs.outer(xi, xi) - xi[:, None] * h.T - h * xi[None, :]) / neurons
                return new * (1 - rs.eye(neurons))

            W = rs.loop(learn, over=memories, init=rs.zeros((neurons, neurons)))[-1]

            def update(s):
                h = W @ s
                new = rs.where(h >= 0, 1.0, -1.0)
                return dict(s=new, energy=-0.5 * rs.dot(new, W @ new))

            out = rs.loop(update, init=dict(s=probe), n_steps=recall)
            return W, out.s[-1], out.energy

        return train_and_recall

    def jax(self, neurons, patterns, recall):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def train_and_recall(memories, probe):
            off_diagonal = 1 - jnp.eye(neurons)

            def learn(W, xi):
                field = W @ xi
                h = field[:, None] - jnp.diag(W)[:, None] * xi[:, None] - W * xi[None, :]
                new = W + (jnp.outer(xi, xi) - xi[:, None] * h.T - h * xi[None, :]) / neurons
                return new * off_diagonal, None

            W, _ = lax.scan(learn, jnp.zeros((neurons, neurons)), memories)

            def update(s, _):
                new = jnp.where(W @ s >= 0, 1.0, -1.0)
                return new, -0.5 * new @ (W @ new)

            s, energy = lax.scan(update, probe, None, length=recall)
            return W, s, energy

        return train_and_recall


class ForgettingLeastSquares(Model):
    """Recursive least squares: squared one-step errors and their gradient with respect to the forgetting factor."""

    kind = "matrix states and outer products"
    dtype = "float64"
    size = dict(steps=500, features=12)
    small = dict(steps=6, features=3)

    def make(self, random, steps, features):
        X = random.normal(size=(steps, features))
        drift = np.cumsum(0.05 * random.normal(size=(steps, features)), axis=0)
        return 0.98, X, np.sum(X * drift, axis=1) + 0.3 * random.normal(size=steps)

    def rscan(self, steps, features):
        @rs.compile
        def loss(forgetting, X, y):
            def step(x, y, w, P):
                Px = P @ x
                gain = Px / (forgetting + rs.dot(x, Px))
                e = y - rs.dot(w, x)
                return dict(w=w + gain * e, P=(P - rs.outer(gain, Px)) / forgetting, e=e)

            out = rs.loop(step, over=dict(x=X, y=y), init=dict(w=rs.zeros(features), P=10.0 * rs.eye(features)))
            return rs.mean(out.e**2)

        return rs.value_and_grad(loss)

    def jax(self, steps, features):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def loss(forgetting, X, y):
            def step(carry, xy):
                w, P = carry
                x, y = xy
                Px = P @ x
                gain = Px / (forgetting + x @ Px)
                e = y - w @ x
                return (w + gain * e, (P - jnp.outer(gain, Px)) / forgetting), e

            _, e = lax.scan(step, (jnp.zeros(features), 10.0 * jnp.eye(features)), (X, y))
            return jnp.mean(e**2)

        return jax.jit(jax.value_and_grad(loss))


class DeltaRuleMemory(Model):
    """A layer of fast weights written by the delta rule, several heads at once, and gradients of all projections."""

    kind = "matrix states and outer products"
    dtype = "float32"
    size = dict(steps=128, heads=4, width=24)
    small = dict(steps=4, heads=2, width=3)

    def make(self, random, steps, heads, width):
        d = heads * width
        x = random.normal(size=(steps, d)).astype("f4")
        target = random.normal(size=(steps, d)).astype("f4")
        weights = tuple((random.normal(size=(d, d)) / np.sqrt(d)).astype("f4") for _ in range(3))
        return (*weights, (random.normal(size=(d, heads)) / np.sqrt(d)).astype("f4"), x, target)

    def rscan(self, steps, heads, width):
        @rs.compile
        def loss(Wq, Wk, Wv, Wb, x, target):
            q = (x @ Wq).reshape((steps, heads, width))
            k = (x @ Wk).reshape((steps, heads, width))
            k = k / rs.sqrt(rs.sum(k**2, axis=-1, keepdims=True) + np.float32(1e-6))
            v = (x @ Wv).reshape((steps, heads, width))
            beta = rs.sigmoid(x @ Wb)

            def step(q, k, v, beta, S):
                old = rs.sum(S * k[:, None, :], axis=-1)
                S = S + (beta[:, None] * (v - old))[:, :, None] * k[:, None, :]
                return dict(S=S, y=rs.sum(S * q[:, None, :], axis=-1))

            S0 = rs.zeros((heads, width, width), dtype="float32")
            out = rs.loop(step, over=dict(q=q, k=k, v=v, beta=beta), init=dict(S=S0))
            return rs.mean((out.y.reshape((steps, heads * width)) - target) ** 2)

        return rs.value_and_grad(loss, wrt=(0, 1, 2, 3))

    def jax(self, steps, heads, width):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def loss(Wq, Wk, Wv, Wb, x, target):
            q = (x @ Wq).reshape(steps, heads, width)
            k = (x @ Wk).reshape(steps, heads, width)
            k = k / jnp.sqrt(jnp.sum(k**2, axis=-1, keepdims=True) + 1e-6)
            v = (x @ Wv).reshape(steps, heads, width)
            beta = jax.nn.sigmoid(x @ Wb)

            def step(S, row):
                q, k, v, beta = row
                old = jnp.einsum("hij,hj->hi", S, k)
                S = S + jnp.einsum("hi,hj->hij", beta[:, None] * (v - old), k)
                return S, jnp.einsum("hij,hj->hi", S, q)

            _, y = lax.scan(step, jnp.zeros((heads, width, width), jnp.float32), (q, k, v, beta))
            return jnp.mean((y.reshape(steps, heads * width) - target) ** 2)

        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2, 3)))


class LindbladSpins(Model):
    """The master equation of three damped spins: real and imaginary parts of a density matrix by Runge and Kutta's method."""

    kind = "matrix states and outer products"
    dtype = "float64"
    size = dict(spins=3, steps=200)
    small = dict(spins=1, steps=3)

    def make(self, random, spins, steps):
        n = 2**spins
        H = random.normal(size=(n, n))
        lowering = np.array([[0.0, 1], [0, 0]])
        decays = np.stack([np.kron(np.kron(np.eye(2**k), lowering), np.eye(2 ** (spins - 1 - k))) for k in range(spins)])
        psi = random.normal(size=n)
        return (H + H.T) / 2, 0.5 * decays, psi / np.linalg.norm(psi), 0.01

    def rscan(self, spins, steps):
        n = 2**spins

        @rs.compile
        def evolve(H, L, psi, dt):
            LL = rs.sum(rs.matmul(rs.swapaxes(L, 1, 2), L), axis=0)

            def damp(r):
                jumps = rs.sum(rs.matmul(rs.matmul(L, r), rs.swapaxes(L, 1, 2)), axis=0)
                return jumps - 0.5 * (LL @ r + r @ LL)

            def f(a, b):
                # rho = a + ib:  -i [H, rho] = [H, b] - i [H, a]
                return H @ b - b @ H + damp(a), a @ H - H @ a + damp(b)

            def step(a, b):
                a1, b1 = f(a, b)
                a2, b2 = f(a + 0.5 * dt * a1, b + 0.5 * dt * b1)
                a3, b3 = f(a + 0.5 * dt * a2, b + 0.5 * dt * b2)
                a4, b4 = f(a + dt * a3, b + dt * b3)
                a = a + dt / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
                b = b + dt / 6 * (b1 + 2 * b2 + 2 * b3 + b4)
                return dict(a=a, b=b, population=rs.diag(a), purity=rs.sum(a**2 + b**2))

            out = rs.loop(step, init=dict(a=rs.outer(psi, psi), b=rs.zeros((n, n))), n_steps=steps)
            return out.population, out.purity, out.b[-1]

        return evolve

    def jax(self, spins, steps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def evolve(H, L, psi, dt):
            LT = jnp.swapaxes(L, 1, 2)
            LL = jnp.sum(LT @ L, axis=0)

            def f(rho):
                commutator = H @ rho - rho @ H
                return -1j * commutator + jnp.sum(L @ rho @ LT, axis=0) - 0.5 * (LL @ rho + rho @ LL)

            def step(rho, _):
                k1 = f(rho)
                k2 = f(rho + 0.5 * dt * k1)
                k3 = f(rho + 0.5 * dt * k2)
                k4 = f(rho + dt * k3)
                rho = rho + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
                return rho, (jnp.diag(rho).real, jnp.sum(rho.real**2 + rho.imag**2))

            rho, (population, purity) = lax.scan(step, jnp.outer(psi, psi) + 0j, None, length=steps)
            return population, purity, rho.imag

        return evolve
