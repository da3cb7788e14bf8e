"""Random draws, as arguments where values are compared."""

import numpy as np

import rscan as rs
from models import Model


class HeatBathIsing(Model):
    """The Ising model on a torus by heat-bath sweeps of the two colours of a chequerboard; magnetisation and energy."""

    kind = "random draws"
    dtype = "float64"
    size = dict(side=32, sweeps=50)
    small = dict(side=4, sweeps=3)

    def make(self, random, side, sweeps):
        return random.choice([-1.0, 1.0], size=(side, side)), random.random((sweeps, 2, side, side)), 0.42

    def rscan(self, side, sweeps):
        white = np.add.outer(np.arange(side), np.arange(side)) % 2 == 0

        @rs.compile
        def simulate(spins, uniforms, beta):
            def field(s):
                return rs.roll(s, 1, axis=0) + rs.roll(s, -1, axis=0) + rs.roll(s, 1, axis=1) + rs.roll(s, -1, axis=1)

            def sweep(u, s):
                s = rs.where(white, rs.where(u[0] < rs.sigmoid(2 * beta * field(s)), 1.0, -1.0), s)
                s = rs.where(white, s, rs.where(u[1] < rs.sigmoid(2 * beta * field(s)), 1.0, -1.0))
                return dict(s=s, m=rs.mean(s), energy=-rs.sum(s * field(s)) / 2)

            out = rs.loop(sweep, over=dict(u=uniforms), init=dict(s=spins))
            return out.s[-1], out.m, out.energy

        return simulate

    def jax(self, side, sweeps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        white = np.add.outer(np.arange(side), np.arange(side)) % 2 == 0

        @jax.jit
        def simulate(spins, uniforms, beta):
            def field(s):
                return jnp.roll(s, 1, 0) + jnp.roll(s, -1, 0) + jnp.roll(s, 1, 1) + jnp.roll(s, -1, 1)

            def sweep(s, u):
                s = jnp.where(white, jnp.where(u[0] < jax.nn.sigmoid(2 * beta * field(s)), 1.0, -1.0), s)
                s = jnp.where(white, s, jnp.where(u[1] < jax.nn.sigmoid(2 * beta * field(s)), 1.0, -1.0))
                return s, (jnp.mean(s), -jnp.sum(s * field(s)) / 2)

            s, (m, energy) = lax.scan(sweep, spins, uniforms)
            return s, m, energy

        return simulate


class HestonGreeks(Model):
    """The price of a call with a barrier under Heston's model from given normal numbers, and its sensitivities."""

    kind = "random draws"
    dtype = "float64"
    size = dict(paths=1000, steps=50)
    small = dict(paths=5, steps=3)

    def make(self, random, paths, steps):
        return np.array([100.0, 0.04, 1.5, 0.04, 0.5, -0.7]), random.normal(size=(steps, 2, paths)), 100.0

    def rscan(self, paths, steps):
        @rs.compile
        def price(theta, z, strike):
            spot, v0, kappa, mean, xi, rho = (theta[k] for k in range(6))
            dt = 1 / steps

            def step(z, log_s, v, highest):
                positive = rs.maximum(v, 1e-8)
                root = rs.sqrt(positive * dt)
                log_s = log_s - 0.5 * positive * dt + root * z[0]
                v = v + kappa * (mean - positive) * dt + xi * root * (rho * z[0] + rs.sqrt(1 - rho**2) * z[1])
                return dict(log_s=log_s, v=v, highest=rs.maximum(highest, log_s))

            start = rs.log(spot) + rs.zeros(paths)
            out = rs.loop(step, over=dict(z=z), init=dict(log_s=start, v=v0 + rs.zeros(paths), highest=start))
            payoff = rs.maximum(rs.exp(out.log_s[-1]) - strike, 0)
            alive = rs.sigmoid(20 * (np.log(150.0) - out.highest[-1]))
            return rs.mean(payoff * alive)

        return rs.value_and_grad(price)

    def jax(self, paths, steps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def price(theta, z, strike):
            spot, v0, kappa, mean, xi, rho = theta
            dt = 1 / steps

            def step(state, z):
                log_s, v, highest = state
                positive = jnp.maximum(v, 1e-8)
                root = jnp.sqrt(positive * dt)
                log_s = log_s - 0.5 * positive * dt + root * z[0]
                v = v + kappa * (mean - positive) * dt + xi * root * (rho * z[0] + jnp.sqrt(1 - rho**2) * z[1])
                return (log_s, v, jnp.maximum(highest, log_s)), None

            start = jnp.full(paths, jnp.log(spot))
            (log_s, _, highest), _ = lax.scan(step, (start, jnp.full(paths, v0), start), z)
            payoff = jnp.maximum(jnp.exp(log_s) - strike, 0)
            return jnp.mean(payoff * jax.nn.sigmoid(20 * (jnp.log(150.0) - highest)))

        return jax.jit(jax.value_and_grad(price))


class WrightFisherDrift(Model):
    """Wright and Fisher's drift of many populations with selection, drawn inside of the loop."""

    kind = "random draws"
    dtype = "float64"
    size = dict(populations=200, genes=50, generations=60)
    small = dict(populations=40, genes=10, generations=10)

    def make(self, random, populations, genes, generations):
        return np.full(populations, 0.3), 0.02

    def rscan(self, populations, genes, generations):
        stream = rs.random.Stream(seed=11)

        @rs.compile
        def drift(start, selection):
            def generation(x):
                p = x * (1 + selection) / (1 + selection * x)
                return rs.mean(stream.uniform(size=(populations, genes)) < p[:, None], axis=1)

            x = rs.loop(generation, init=start, n_steps=generations)
            return rs.mean(x, axis=1), rs.var(x, axis=1)

        return drift

    def jax(self, populations, genes, generations):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def drift(start, selection):
            def generation(x, key):
                p = x * (1 + selection) / (1 + selection * x)
                x = jnp.mean(jax.random.uniform(key, (populations, genes)) < p[:, None], axis=1, dtype=jnp.float64)
                return x, x

            _, x = lax.scan(generation, start, jax.random.split(jax.random.key(0), generations))
            return jnp.mean(x, axis=1), jnp.var(x, axis=1)

        return drift

    def same(self, ours, theirs):
        for a, b, allowed in zip(ours, theirs, (0.35, 0.15)):
            assert a.shape == b.shape and a.dtype == b.dtype
            assert np.max(np.abs(a - b)) < allowed, f"means or variances differ by {np.max(np.abs(a - b))}"


class GibbsRegression(Model):
    """A Gibbs sampler for a linear regression with unknown variance: a Cholesky factor per draw, all draws given."""

    kind = "random draws"
    dtype = "float64"
    size = dict(draws=150, rows=80, features=6)
    small = dict(draws=3, rows=5, features=2)

    def make(self, random, draws, rows, features):
        X = random.normal(size=(rows, features))
        y = X @ random.normal(size=features) + random.normal(size=rows)
        return X, y, random.normal(size=(draws, features)), random.gamma(2 + rows / 2, size=draws)

    def rscan(self, draws, rows, features):
        @rs.compile
        def sample(X, y, z, gamma):
            XX, Xy = X.T @ X, X.T @ y

            def draw(z, gamma, variance):
                L = rs.linalg.cholesky(XX / variance + 0.1 * rs.eye(features))
                half = rs.linalg.solve_triangular(L, Xy / variance, lower=True)
                beta = rs.linalg.solve_triangular(L, half + z, lower=True, trans=1)
                return dict(variance=(1 + 0.5 * rs.sum((y - X @ beta) ** 2)) / gamma, beta=beta)

            out = rs.loop(draw, over=dict(z=z, gamma=gamma), init=dict(variance=1.0))
            return out.beta, out.variance

        return sample

    def jax(self, draws, rows, features):
        import jax
        import jax.numpy as jnp
        from jax import lax
        from jax.scipy.linalg import solve_triangular

        @jax.jit
        def sample(X, y, z, gamma):
            XX, Xy = X.T @ X, X.T @ y

            def draw(variance, row):
                z, gamma = row
                L = jnp.linalg.cholesky(XX / variance + 0.1 * jnp.eye(features))
                half = solve_triangular(L, Xy / variance, lower=True)
                beta = solve_triangular(L, half + z, lower=True, trans=1)
                variance = (1 + 0.5 * jnp.sum((y - X @ beta) ** 2)) / gamma
                return variance, (beta, variance)

            return lax.scan(draw, 1.0, (z, gamma))[1]

        return sample


class AnnealedTour(Model):
    """Simulated annealing of a round trip: a stretch of the tour is turned round where given draws accept it."""

    kind = "random draws"
    dtype = "float64"
    size = dict(cities=50, steps=1500)
    small = dict(cities=6, steps=5)

    def make(self, random, cities, steps):
        places = random.random((cities, 2))
        ends = np.sort(np.stack([random.integers(0, cities, steps), random.integers(0, cities, steps)], axis=1), axis=1)
        return places, ends, np.log(random.random(steps)), np.geomspace(0.5, 0.005, steps)

    def rscan(self, cities, steps):
        @rs.compile
        def anneal(places, ends, log_u, temperature):
            d = rs.sqrt(rs.sum((places[:, None, :] - places[None, :, :]) ** 2, axis=2))
            k = rs.arange(cities)

            def step(ends, log_u, temperature, tour, length):
                i, j = ends[0], ends[1]
                candidate = tour[rs.where((k >= i) & (k <= j), i + j - k, k)]
                new = rs.sum(d[candidate, rs.roll(candidate, -1)])
                accept = log_u * temperature < length - new
                return dict(tour=rs.where(accept, candidate, tour), length=rs.where(accept, new, length))

            over = dict(ends=ends, log_u=log_u, temperature=temperature)
            out = rs.loop(step, over=over, init=dict(tour=k, length=rs.sum(d[k, rs.roll(k, -1)])))
            return out.tour[-1], out.length

        return anneal

    def jax(self, cities, steps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def anneal(places, ends, log_u, temperature):
            d = jnp.sqrt(jnp.sum((places[:, None, :] - places[None, :, :]) ** 2, axis=2))
            k = jnp.arange(cities)

            def step(state, row):
                tour, length = state
                (i, j), log_u, temperature = row
                candidate = tour[jnp.where((k >= i) & (k <= j), i + j - k, k)]
                new = jnp.sum(d[candidate, jnp.roll(candidate, -1)])
                accept = log_u * temperature < length - new
                length = jnp.where(accept, new, length)
                return (jnp.where(accept, candidate, tour), length), length

            start = (k, jnp.sum(d[k, jnp.roll(k, -1)]))
            (tour, _), length = lax.scan(step, start, (ends, log_u, temperature))
            return tour, length

        return anneal
