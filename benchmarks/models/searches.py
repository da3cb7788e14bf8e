"""Searches, gathers, sorts, and positions of extremes that are followed back."""

import numpy as np
import rscan as rs
from models import Model

KIND = "searches, gathers, sorts"


class ViterbiBackTrace(Model):
    """The most likely path of a hidden Markov model: back pointers forwards, then the path backwards."""

    kind, dtype = KIND, "float64"
    size, small = dict(states=48, steps=1000), dict(states=3, steps=6)

    def make(self, random, states, steps):
        return np.log(random.dirichlet(np.ones(states), size=states)), random.normal(size=(steps, states))

    def rscan(self, states, steps):
        @rs.compile
        def f(A, B):
            def forward(b, v):
                scores = v[:, None] + A
                return dict(v=rs.max(scores, axis=0) + b, back=rs.argmax(scores, axis=0))

            out = rs.loop(forward, over=dict(b=B[1:]), init=dict(v=B[0]))
            last = rs.argmax(out.v[-1])
            path = rs.loop(lambda back, s: back[s], over=out.back, init=last, reverse=True)
            return rs.max(out.v[-1]), rs.concatenate([path, last[None]])

        return f

    def jax(self, states, steps):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(A, B):
            def forward(v, b):
                scores = v[:, None] + A
                return jnp.max(scores, axis=0) + b, jnp.argmax(scores, axis=0)

            v, back = jax.lax.scan(forward, B[0], B[1:])
            last = jnp.argmax(v)
            path = jax.lax.scan(lambda s, back: (back[s], back[s]), last, back, reverse=True)[1]
            return jnp.max(v), jnp.append(path, last)

        return f


class ParticleFilter(Model):
    """A bootstrap filter of a stochastic growth model; systematic resampling by comparing all positions with all weights' sums."""

    kind, dtype = KIND, "float64"
    size, small = dict(particles=400, steps=60), dict(particles=5, steps=4)

    def make(self, random, particles, steps):
        return random.normal(size=steps), random.normal(size=(steps, particles)), random.uniform(size=steps), random.normal(size=particles)

    def rscan(self, particles, steps):
        @rs.compile
        def f(y, noise, u, x0):
            def step(y, noise, u, x):
                x = 0.5 * x + 2 * x / (1 + x**2) + noise
                logw = -0.5 * (y - x**2 / 20) ** 2
                top = rs.max(logw)
                w = rs.exp(logw - top)
                total = rs.sum(w)
                mean = rs.sum(w * x) / total
                places = (rs.arange(particles) + u) / particles
                chosen = rs.sum(places[:, None] > rs.cumsum(w / total)[None, :], axis=1)
                return dict(x=x[rs.minimum(chosen, particles - 1)], mean=mean, loglik=top + rs.log(total / particles))

            out = rs.loop(step, over=dict(y=y, noise=noise, u=u), init=dict(x=x0))
            return out.mean, rs.sum(out.loglik)

        return f

    def jax(self, particles, steps):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(y, noise, u, x0):
            def step(x, row):
                y, noise, u = row
                x = 0.5 * x + 2 * x / (1 + x**2) + noise
                logw = -0.5 * (y - x**2 / 20) ** 2
                top = jnp.max(logw)
                w = jnp.exp(logw - top)
                total = jnp.sum(w)
                mean = jnp.sum(w * x) / total
                places = (jnp.arange(particles) + u) / particles
                chosen = jnp.sum(places[:, None] > jnp.cumsum(w / total)[None, :], axis=1)
                return x[jnp.minimum(chosen, particles - 1)], (mean, top + jnp.log(total / particles))

            mean, loglik = jax.lax.scan(step, x0, (y, noise, u))[1]
            return mean, jnp.sum(loglik)

        return f


class NearestCentroid(Model):
    """Online k-means: the nearest centroid of a point moves towards it."""

    kind, dtype = KIND, "float64"
    size, small = dict(points=1000, k=16, d=8), dict(points=7, k=3, d=2)

    def make(self, random, points, k, d):
        return random.normal(size=(points, d)), random.normal(size=(k, d))

    def rscan(self, points, k, d):
        @rs.compile
        def f(x, start):
            def step(x, centres, counts):
                nearest = rs.argmin(rs.sum((centres - x) ** 2, axis=1))
                counts = counts.at[nearest].add(1.0)
                centres = centres.at[nearest].add((x - centres[nearest]) / counts[nearest])
                return dict(centres=centres, counts=counts, nearest=nearest)

            out = rs.loop(step, over=dict(x=x), init=dict(centres=start, counts=rs.zeros(k)))
            return out.centres[-1], out.nearest

        return f

    def jax(self, points, k, d):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(x, start):
            def step(state, x):
                centres, counts = state
                nearest = jnp.argmin(jnp.sum((centres - x) ** 2, axis=1))
                counts = counts.at[nearest].add(1.0)
                return (centres.at[nearest].add((x - centres[nearest]) / counts[nearest]), counts), nearest

            (centres, _), nearest = jax.lax.scan(step, (start, jnp.zeros(k)), x)
            return centres, nearest

        return f


class ValueIteration(Model):
    """Optimal savings by value iteration: next period's value is interpolated in a table, the best choice is taken for each state."""

    kind, dtype = KIND, "float64"
    size, small = dict(grid=100, choices=40, steps=50), dict(grid=5, choices=3, steps=4)

    def make(self, random, grid, choices, steps):
        return np.linspace(0.1, 10, grid), np.linspace(0.05, 0.95, choices), 0.95

    def rscan(self, grid, choices, steps):
        @rs.compile
        def f(wealth, shares, beta):
            spent = wealth[:, None] * shares[None, :]
            left = rs.clip(1.05 * (wealth[:, None] - spent) + 0.3, wealth[0], wealth[-1])
            width = wealth[1] - wealth[0]
            below = rs.clip(rs.floor((left - wealth[0]) / width).astype("int64"), 0, grid - 2)
            weight = (left - wealth[below]) / width

            def step(v):
                ahead = (1 - weight) * v[below] + weight * v[below + 1]
                q = rs.log(spent) + beta * ahead
                return dict(v=rs.max(q, axis=1), choice=rs.argmax(q, axis=1))

            out = rs.loop(step, init=dict(v=rs.zeros_like(wealth)), n_steps=steps)
            return out.v[-1], out.choice[-1]

        return f

    def jax(self, grid, choices, steps):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(wealth, shares, beta):
            spent = wealth[:, None] * shares[None, :]
            left = jnp.clip(1.05 * (wealth[:, None] - spent) + 0.3, wealth[0], wealth[-1])
            width = wealth[1] - wealth[0]
            below = jnp.clip(jnp.floor((left - wealth[0]) / width).astype("int64"), 0, grid - 2)
            weight = (left - wealth[below]) / width

            def step(_, state):
                v, _ = state
                q = jnp.log(spent) + beta * ((1 - weight) * v[below] + weight * v[below + 1])
                return jnp.max(q, axis=1), jnp.argmax(q, axis=1)

            return jax.lax.fori_loop(0, steps, step, (jnp.zeros_like(wealth), jnp.zeros(grid, "int64")))

        return f


class RunningMedian(Model):
    """The median of the last 21 numbers, by sorting the window at each step."""

    kind, dtype = KIND, "float64"
    size, small = dict(steps=2000, window=21), dict(steps=8, window=3)

    def make(self, random, steps, window):
        return (random.normal(size=steps).cumsum(),)

    def rscan(self, steps, window):
        @rs.compile
        def f(x):
            def step(x, last):
                last = rs.concatenate([last[1:], x[None]])
                return dict(last=last, median=rs.sort(last)[window // 2])

            return rs.loop(step, over=dict(x=x), init=dict(last=rs.zeros(window))).median

        return f

    def jax(self, steps, window):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(x):
            def step(last, x):
                last = jnp.concatenate([last[1:], x[None]])
                return last, jnp.sort(last)[window // 2]

            return jax.lax.scan(step, jnp.zeros(window), x)[1]

        return f


class BeamSearch(Model):
    """Beam search over the scores of a Markov language model: the best continuations of all beams are kept, with their parents."""

    kind, dtype = KIND, "float32"
    size, small = dict(beams=8, words=64, steps=60), dict(beams=2, words=4, steps=4)

    def make(self, random, beams, words, steps):
        return ((random.normal(size=(words, words)) - 3).astype("f4"),)

    def rscan(self, beams, words, steps):
        @rs.compile
        def f(table):
            def step(score, word):
                every = rs.flatten(score[:, None] + table[word])
                best = rs.argsort(-every)[:beams]
                return dict(score=every[best], word=best % words, parent=best // words)

            start = rs.concatenate([rs.zeros(1, dtype="float32"), rs.full(beams - 1, -1e9, dtype="float32")])
            out = rs.loop(step, init=dict(score=start, word=rs.zeros(beams, dtype="int64")), n_steps=steps)
            return out.score[-1], out.word, out.parent

        return f

    def jax(self, beams, words, steps):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(table):
            def step(state, _):
                score, word = state
                score, best = jax.lax.top_k((score[:, None] + table[word]).ravel(), beams)
                word, parent = best % words, best // words
                return (score, word), (word, parent)

            start = jnp.concatenate([jnp.zeros(1, "float32"), jnp.full(beams - 1, -1e9, "float32")])
            (score, _), (word, parent) = jax.lax.scan(step, (start, jnp.zeros(beams, "int32")), None, length=steps)
            return score, word, parent

        return f


class ChainSimulation(Model):
    """Many Markov chains, simulated with given uniform numbers: rows of the table are gathered and searched."""

    kind, dtype = KIND, "int64"
    size, small = dict(chains=100, states=12, steps=200), dict(chains=3, states=3, steps=5)

    def make(self, random, chains, states, steps):
        return (
            random.dirichlet(np.ones(states), size=states).cumsum(axis=1),
            random.uniform(size=(steps, chains)),
            np.zeros(chains, "int64"),
        )

    def rscan(self, chains, states, steps):
        @rs.compile
        def f(sums, u, start):
            return rs.loop(lambda u, s: rs.argmax(sums[s] > u[:, None], axis=1), over=u, init=start)

        return f

    def jax(self, chains, states, steps):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(sums, u, start):
            def step(s, u):
                s = jnp.argmax(sums[s] > u[:, None], axis=1)
                return s, s

            return jax.lax.scan(step, start, u)[1]

        return f


class EmpiricalRanks(Model):
    """A Lorenz map in lanes: how many numbers of a fixed table lie below each lane, at each step."""

    kind, dtype = KIND, "float64"
    size, small = dict(n=300, steps=50), dict(n=4, steps=3)

    def make(self, random, n, steps):
        return random.uniform(size=n), np.sort(random.uniform(size=n))

    def rscan(self, n, steps):
        @rs.compile
        def f(u, table):
            def step(u):
                rank = rs.sum(u[:, None] > table[None, :], axis=-1)
                return 3.9 * u * (1 - u) * (0.9 + 0.1 * rank / n)

            return rs.loop(step, init=u, n_steps=steps)

        return f

    def jax(self, n, steps):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(u, table):
            def step(u, _):
                rank = jnp.sum(u[:, None] > table[None, :], axis=-1)
                u = 3.9 * u * (1 - u) * (0.9 + 0.1 * rank / n)
                return u, u

            return jax.lax.scan(step, u, None, length=steps)[1]

        return f

    rtol = 1e-3  # the map is chaotic: rounding grows by half per step
