"""Random numbers: drawn in the step, and compared in distribution; or given, and compared number by number."""

import numpy as np
import rscan as rs
from models import Model

KIND = "random draws"


def near(a, b, errors):
    """Means of the rows of two samples agree within five standard errors."""
    a, b = np.asarray(a, "f8").ravel(), np.asarray(b, "f8").ravel()
    bound = 5 * errors * np.hypot(a.std(), b.std()) / np.sqrt(min(a.size, b.size)) + 1e-12
    assert abs(a.mean() - b.mean()) <= bound, f"means {a.mean():.4g} and {b.mean():.4g} are farther apart than {bound:.2g}"


class RandomWalks(Model):
    """Many random walks with a reflecting barrier; where they are at the end."""

    kind, dtype = KIND, "float64"
    size, small = dict(walks=1000, steps=100), dict(walks=20, steps=3)

    def make(self, random, walks, steps):
        return (np.zeros(walks),)

    def rscan(self, walks, steps):
        random = rs.random.Stream(seed=1)

        @rs.compile
        def f(start):
            return rs.loop(lambda x: rs.abs(x + random.normal(size=walks)), init=start, n_steps=steps)[-1]

        return f

    def jax(self, walks, steps):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(start):
            def step(x, key):
                return jnp.abs(x + jax.random.normal(key, (walks,))), None

            return jax.lax.scan(step, start, jax.random.split(jax.random.key(1), steps))[0]

        return f

    def same(self, ours, theirs):
        near(ours[0], theirs[0], 1)


class Metropolis(Model):
    """Metropolis' algorithm for a banana-shaped density in many chains, proposals and decisions drawn in the step."""

    kind, dtype = KIND, "float64"
    size, small = dict(chains=50, steps=400), dict(chains=4, steps=3)

    def make(self, random, chains, steps):
        return (random.normal(size=(chains, 2)),)

    def rscan(self, chains, steps):
        random = rs.random.Stream(seed=2)

        @rs.compile
        def f(start):
            def logp(x):
                return -0.5 * (x[:, 0] ** 2 + 4 * (x[:, 1] - x[:, 0] ** 2) ** 2)

            def step(x, lp):
                new = x + 0.7 * random.normal(size=(chains, 2))
                new_lp = logp(new)
                taken = rs.log(random.uniform(size=chains)) < new_lp - lp
                return dict(x=rs.where(taken[:, None], new, x), lp=rs.where(taken, new_lp, lp), taken=taken)

            out = rs.loop(step, init=dict(x=start, lp=logp(start)), n_steps=steps)
            return out.x, rs.mean(out.taken)

        return f

    def jax(self, chains, steps):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(start):
            def logp(x):
                return -0.5 * (x[:, 0] ** 2 + 4 * (x[:, 1] - x[:, 0] ** 2) ** 2)

            def step(state, key):
                x, lp = state
                for_step, for_choice = jax.random.split(key)
                new = x + 0.7 * jax.random.normal(for_step, (chains, 2))
                new_lp = logp(new)
                taken = jnp.log(jax.random.uniform(for_choice, (chains,))) < new_lp - lp
                x, lp = jnp.where(taken[:, None], new, x), jnp.where(taken, new_lp, lp)
                return (x, lp), (x, taken)

            x, taken = jax.lax.scan(step, (start, logp(start)), jax.random.split(jax.random.key(2), steps))[1]
            return x, jnp.mean(taken)

        return f

    def same(self, ours, theirs):
        assert ours[0].shape == theirs[0].shape
        # The draws of a chain hang together: as if one in thirty were independent.
        near(ours[0][..., 0], theirs[0][..., 0], 30**0.5)
        near(ours[0][..., 0] ** 2, theirs[0][..., 0] ** 2, 30**0.5)
        assert abs(float(ours[1]) - float(theirs[1])) < (0.02 if ours[0].size > 1000 else 0.5)


class MetropolisGiven(Model):
    """One long chain of Metropolis' algorithm for the parameters of a regression, with all draws given."""

    kind, dtype = KIND, "float64"
    size, small = dict(rows=50, d=4, steps=1000), dict(rows=4, d=2, steps=5)

    def make(self, random, rows, d, steps):
        X = random.normal(size=(rows, d))
        return (
            X,
            X @ random.normal(size=d) + 0.3 * random.normal(size=rows),
            0.1 * random.normal(size=(steps, d)),
            np.log(random.uniform(size=steps)),
        )

    def rscan(self, rows, d, steps):
        @rs.compile
        def f(X, y, jumps, logu):
            def logp(w):
                return -2 * rs.sum((y - X @ w) ** 2) - 0.5 * rs.sum(w**2)

            def step(jump, logu, w, lp):
                new = w + jump
                new_lp = logp(new)
                taken = logu < new_lp - lp
                return dict(w=rs.where(taken, new, w), lp=rs.where(taken, new_lp, lp), taken=taken)

            zero = rs.zeros(d)
            out = rs.loop(step, over=dict(jump=jumps, logu=logu), init=dict(w=zero, lp=logp(zero)))
            return out.w, rs.sum(out.taken)

        return f

    def jax(self, rows, d, steps):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(X, y, jumps, logu):
            def logp(w):
                return -2 * jnp.sum((y - X @ w) ** 2) - 0.5 * jnp.sum(w**2)

            def step(state, given):
                (w, lp), (jump, logu) = state, given
                new = w + jump
                new_lp = logp(new)
                taken = logu < new_lp - lp
                w, lp = jnp.where(taken, new, w), jnp.where(taken, new_lp, lp)
                return (w, lp), (w, taken)

            zero = jnp.zeros(d)
            w, taken = jax.lax.scan(step, (zero, logp(zero)), (jumps, logu))[1]
            return w, jnp.sum(taken)

        return f


class HamiltonianGiven(Model):
    """Hamiltonian Monte Carlo for a logistic regression: leapfrog steps with gradients in a loop over given momenta."""

    kind, dtype = KIND, "float64"
    size, small = dict(rows=60, d=5, steps=100, leaps=10), dict(rows=4, d=2, steps=2, leaps=2)
    rtol = 1e-6

    def make(self, random, rows, d, steps, leaps):
        X = random.normal(size=(rows, d))
        y = (X @ random.normal(size=d) + random.normal(size=rows) > 0).astype("f8")
        return X, y, random.normal(size=(steps, d)), np.log(random.uniform(size=steps))

    def rscan(self, rows, d, steps, leaps):
        @rs.compile
        def f(X, y, momenta, logu):
            def energy(w):
                z = X @ w
                return rs.sum(rs.softplus(z) - y * z) + 0.5 * rs.sum(w**2)

            def slope(w):
                return rs.grad(energy(w), w)

            def leap(q, p):
                p = p - 0.05 * slope(q)
                q = q + 0.1 * p
                return dict(q=q, p=p - 0.05 * slope(q))

            def step(p, logu, w):
                path = rs.loop(leap, init=dict(q=w, p=p), n_steps=leaps)
                q, end = path.q[-1], path.p[-1]
                change = energy(w) + 0.5 * rs.sum(p**2) - energy(q) - 0.5 * rs.sum(end**2)
                return rs.where(logu < change, q, w)

            return rs.loop(step, over=[momenta, logu], init=rs.zeros(d))

        return f

    def jax(self, rows, d, steps, leaps):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(X, y, momenta, logu):
            def energy(w):
                z = X @ w
                return jnp.sum(jax.nn.softplus(z) - y * z) + 0.5 * jnp.sum(w**2)

            slope = jax.grad(energy)

            def leap(_, state):
                q, p = state
                p = p - 0.05 * slope(q)
                q = q + 0.1 * p
                return q, p - 0.05 * slope(q)

            def step(w, given):
                p, logu = given
                q, end = jax.lax.fori_loop(0, leaps, leap, (w, p))
                change = energy(w) + 0.5 * jnp.sum(p**2) - energy(q) - 0.5 * jnp.sum(end**2)
                w = jnp.where(logu < change, q, w)
                return w, w

            return jax.lax.scan(step, jnp.zeros(d), (momenta, logu))[1]

        return f


class Ising(Model):
    """Gibbs sampling of the Ising model on a torus: black and white fields in turn, draws given."""

    kind, dtype = KIND, "float32"
    size, small = dict(n=32, steps=100), dict(n=4, steps=3)

    def make(self, random, n, steps):
        return random.choice([-1.0, 1.0], size=(n, n)).astype("f4"), random.uniform(size=(steps, 2, n, n)).astype("f4"), np.float32(0.4)

    def rscan(self, n, steps):
        @rs.compile
        def f(spins, u, beta):
            black = (rs.arange(n)[:, None] + rs.arange(n)[None, :]) % 2 == 0

            def half(s, u, field):
                around = rs.roll(s, 1, 0) + rs.roll(s, -1, 0) + rs.roll(s, 1, 1) + rs.roll(s, -1, 1)
                drawn = rs.where(u < rs.sigmoid(2 * beta * around), 1.0, -1.0).astype("float32")
                return rs.where(field, drawn, s)

            def step(u, s):
                s = half(half(s, u[0], black), u[1], ~black)
                return dict(s=s, magnetisation=rs.mean(s))

            out = rs.loop(step, over=dict(u=u), init=dict(s=spins))
            return out.s[-1], out.magnetisation

        return f

    def jax(self, n, steps):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(spins, u, beta):
            black = (jnp.arange(n)[:, None] + jnp.arange(n)[None, :]) % 2 == 0

            def half(s, u, field):
                around = jnp.roll(s, 1, 0) + jnp.roll(s, -1, 0) + jnp.roll(s, 1, 1) + jnp.roll(s, -1, 1)
                drawn = jnp.where(u < jax.nn.sigmoid(2 * beta * around), 1.0, -1.0).astype("float32")
                return jnp.where(field, drawn, s)

            def step(s, u):
                s = half(half(s, u[0], black), u[1], ~black)
                return s, jnp.mean(s)

            return jax.lax.scan(step, spins, u)

        return f
