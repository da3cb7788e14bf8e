"""Particle filters with given random numbers."""

import numpy as np

import rscan as rs
from models import Model


class BootstrapVolatility(Model):
    """The bootstrap filter of a stochastic volatility model with systematic resampling at every step."""

    kind = "particle filters"
    dtype = "float64"
    size = dict(steps=150, particles=200)
    small = dict(steps=4, particles=6)

    def make(self, random, steps, particles):
        y = 0.8 * random.standard_t(5, size=steps)
        return y, random.normal(size=(steps, particles)), random.random(steps), np.array([-0.5, 0.95, 0.3])

    def rscan(self, steps, particles):
        @rs.compile
        def filter(y, z, u, theta):
            mean, phi, sigma = theta[0], theta[1], theta[2]

            def step(y, z, u, x):
                x = mean + phi * (x - mean) + sigma * z
                log_w = -0.5 * (np.log(2 * np.pi) + x + y**2 * rs.exp(-x))
                top = rs.max(log_w)
                w = rs.exp(log_w - top)
                total = rs.sum(w)
                points = (rs.arange(particles) + u) / particles
                below = rs.cumsum(w / total)[None, :] < points[:, None]
                ancestor = rs.minimum(rs.sum(below, axis=1), particles - 1)
                return dict(x=x[ancestor], volatility=rs.sum(w * rs.exp(x / 2)) / total, ll=top + rs.log(total / particles))

            out = rs.loop(step, over=dict(y=y, z=z, u=u), init=dict(x=mean + rs.zeros(particles)))
            return rs.sum(out.ll), out.volatility

        return filter

    def jax(self, steps, particles):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def filter(y, z, u, theta):
            mean, phi, sigma = theta

            def step(x, row):
                y, z, u = row
                x = mean + phi * (x - mean) + sigma * z
                log_w = -0.5 * (jnp.log(2 * jnp.pi) + x + y**2 * jnp.exp(-x))
                top = jnp.max(log_w)
                w = jnp.exp(log_w - top)
                total = jnp.sum(w)
                points = (jnp.arange(particles) + u) / particles
                # counts instead of a binary search, as the other side does
                ancestor = jnp.searchsorted(jnp.cumsum(w / total), points, method="compare_all")
                ancestor = jnp.minimum(ancestor, particles - 1)
                return x[ancestor], (top + jnp.log(total / particles), jnp.sum(w * jnp.exp(x / 2)) / total)

            _, (ll, volatility) = lax.scan(step, jnp.full(particles, mean), (y, z, u))
            return jnp.sum(ll), volatility

        return filter


class BearingsOnlyTracking(Model):
    """A ship tracked by bearings: four states per particle, weights kept in logs, resampled where too few of them count."""

    kind = "particle filters"
    dtype = "float64"
    size = dict(steps=80, particles=250)
    small = dict(steps=4, particles=5)

    def make(self, random, steps, particles):
        t = np.arange(steps)
        bearings = np.arctan2(2 + 0.03 * t, 3 - 0.04 * t) + 0.02 * random.normal(size=steps)
        start = np.array([3, -0.04, 2, 0.03]) + np.array([0.3, 0.01, 0.3, 0.01]) * random.normal(size=(particles, 4))
        return bearings, start, 0.005 * random.normal(size=(steps, particles, 2)), random.random((steps, particles))

    def rscan(self, steps, particles):
        @rs.compile
        def track(bearings, start, noise, uniforms):
            F = np.array([[1.0, 1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1], [0, 0, 0, 1]])
            G = np.array([[0.5, 0], [1, 0], [0, 0.5], [0, 1]])

            def step(bearing, noise, u, x, log_w):
                x = x @ F.T + noise @ G.T
                error = bearing - rs.arctan2(x[:, 2], x[:, 0])
                log_w = log_w - 0.5 * (error / 0.02) ** 2
                log_w = log_w - rs.logsumexp(log_w)
                w = rs.exp(log_w)
                few = 1 / rs.sum(w**2) < particles / 2
                drawn = rs.minimum(rs.sum(rs.cumsum(w)[None, :] < u[:, None], axis=1), particles - 1)
                ancestor = rs.where(few, drawn, rs.arange(particles))
                new_log_w = rs.where(few, -np.log(particles), log_w)
                return dict(x=x[ancestor], log_w=new_log_w, mean=w @ x, few=few)

            init = dict(x=start, log_w=rs.full((particles,), -np.log(particles)))
            out = rs.loop(step, over=dict(bearing=bearings, noise=noise, u=uniforms), init=init)
            return out.mean, out.few

        return track

    def jax(self, steps, particles):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def track(bearings, start, noise, uniforms):
            F = jnp.array([[1.0, 1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1], [0, 0, 0, 1]])
            G = jnp.array([[0.5, 0], [1, 0], [0, 0.5], [0, 1]])

            def step(state, row):
                x, log_w = state
                bearing, noise, u = row
                x = x @ F.T + noise @ G.T
                error = bearing - jnp.arctan2(x[:, 2], x[:, 0])
                log_w = log_w - 0.5 * (error / 0.02) ** 2
                log_w = log_w - jax.nn.logsumexp(log_w)
                w = jnp.exp(log_w)
                few = 1 / jnp.sum(w**2) < particles / 2
                drawn = jnp.minimum(jnp.searchsorted(jnp.cumsum(w), u, method="compare_all"), particles - 1)
                ancestor = jnp.where(few, drawn, jnp.arange(particles))
                new_log_w = jnp.where(few, -jnp.log(particles), log_w)
                return (x[ancestor], new_log_w), (w @ x, few)

            start = (start, jnp.full(particles, -jnp.log(particles)))
            return lax.scan(step, start, (bearings, noise, uniforms))[1]

        return track


class GenealogyOfGrowth(Model):
    """The nonstationary growth model: a particle filter that keeps its ancestors, and smoothed paths traced back through them."""

    kind = "particle filters"
    dtype = "float64"
    size = dict(steps=100, particles=150)
    small = dict(steps=4, particles=5)

    def make(self, random, steps, particles):
        return 5 * random.normal(size=steps) ** 2, random.normal(size=(steps, particles)), random.random((steps, particles))

    def rscan(self, steps, particles):
        @rs.compile
        def smooth(y, z, u):
            def step(t, y, z, u, x):
                x = x / 2 + 25 * x / (1 + x**2) + 8 * rs.cos(1.2 * t) + np.sqrt(10.0) * z
                w = rs.softmax(-0.5 * (y - x**2 / 20) ** 2)
                ancestor = rs.minimum(rs.sum(rs.cumsum(w)[None, :] < u[:, None], axis=1), particles - 1)
                return dict(x=x[ancestor], moved=x, ancestor=ancestor)

            over = dict(t=rs.arange(steps), y=y, z=z, u=u)
            out = rs.loop(step, over=over, init=dict(x=rs.zeros(particles)))

            def back(moved, ancestor, k):
                k = ancestor[k]
                return dict(k=k, path=moved[k])

            paths = rs.loop(back, over=dict(moved=out.moved, ancestor=out.ancestor), init=dict(k=rs.arange(particles)), reverse=True)
            return rs.mean(paths.path, axis=1), paths.k[0]

        return smooth

    def jax(self, steps, particles):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def smooth(y, z, u):
            def step(x, row):
                t, y, z, u = row
                x = x / 2 + 25 * x / (1 + x**2) + 8 * jnp.cos(1.2 * t) + np.sqrt(10.0) * z
                w = jax.nn.softmax(-0.5 * (y - x**2 / 20) ** 2)
                ancestor = jnp.minimum(jnp.searchsorted(jnp.cumsum(w), u, method="compare_all"), particles - 1)
                return x[ancestor], (x, ancestor)

            _, (moved, ancestors) = lax.scan(step, jnp.zeros(particles), (jnp.arange(steps), y, z, u))

            def back(k, row):
                moved, ancestor = row
                k = ancestor[k]
                return k, moved[k]

            first, paths = lax.scan(back, jnp.arange(particles, dtype=ancestors.dtype), (moved, ancestors), reverse=True)
            return jnp.mean(paths, axis=1), first

        return smooth


class DifferentiableFilter(Model):
    """A particle filter with soft resampling: the gradient of its likelihood estimate by all parameters of the model."""

    kind = "particle filters"
    dtype = "float64"
    size = dict(steps=60, particles=100)
    small = dict(steps=3, particles=4)

    def make(self, random, steps, particles):
        x = np.cumsum(0.3 * random.normal(size=steps))
        y = x + 0.5 * random.normal(size=steps)
        return np.array([0.9, -1.0, -0.7]), y, random.normal(size=(steps, particles)), random.random(steps)

    def rscan(self, steps, particles):
        @rs.compile
        def nll(theta, y, z, u):
            phi, q, r = theta[0], rs.exp(theta[1]), rs.exp(theta[2])

            def step(y, z, u, x, log_w):
                x = phi * x + q * z
                log_w = log_w - 0.5 * np.log(2 * np.pi) - rs.log(r) - 0.5 * ((y - x) / r) ** 2
                ll = rs.logsumexp(log_w)
                w = rs.exp(log_w - ll)
                proposal = 0.5 * w + 0.5 / particles
                points = (rs.arange(particles) + u) / particles
                ancestor = rs.minimum(rs.sum(rs.cumsum(proposal)[None, :] < points[:, None], axis=1), particles - 1)
                return dict(x=x[ancestor], log_w=rs.log(w[ancestor] / proposal[ancestor] / particles), ll=ll)

            init = dict(x=rs.zeros(particles), log_w=rs.full((particles,), -np.log(particles)))
            return -rs.sum(rs.loop(step, over=dict(y=y, z=z, u=u), init=init).ll)

        return rs.value_and_grad(nll)

    def jax(self, steps, particles):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def nll(theta, y, z, u):
            phi, q, r = theta[0], jnp.exp(theta[1]), jnp.exp(theta[2])

            def step(state, row):
                x, log_w = state
                y, z, u = row
                x = phi * x + q * z
                log_w = log_w + jax.scipy.stats.norm.logpdf(y, x, r)
                ll = jax.nn.logsumexp(log_w)
                w = jnp.exp(log_w - ll)
                proposal = 0.5 * w + 0.5 / particles
                points = (jnp.arange(particles) + u) / particles
                ancestor = jnp.searchsorted(jnp.cumsum(lax.stop_gradient(proposal)), points, method="compare_all")
                ancestor = jnp.minimum(ancestor, particles - 1)
                return (x[ancestor], jnp.log(w[ancestor] / proposal[ancestor] / particles)), ll

            start = (jnp.zeros(particles), jnp.full(particles, -jnp.log(particles)))
            return -jnp.sum(lax.scan(step, start, (y, z, u))[1])

        return jax.jit(jax.value_and_grad(nll))
