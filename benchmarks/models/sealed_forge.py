"""Models from many trades, by a reader of the manual: fatigue, porous media, markets, filters, mixtures, durations, foragers."""

import numpy as np
import rscan as rs
from models import Model


class RainflowFatigueCycles(Model):
    """Rainflow counting of load histories with a stack of turning points, one per strain gauge: a while loop in a scan under vmap."""

    kind = "forge"
    dtype = "float64"
    size = dict(gauges=16, points=400, depth=64, bins=16)
    small = dict(gauges=3, points=20, depth=32, bins=4)

    def make(self, random, gauges, points, depth, bins):
        signs = np.where(np.arange(points) % 2 == 0, 1.0, -1.0)
        return signs * np.abs(random.normal(size=(gauges, points))) * 50.0, 3.5

    def rscan(self, gauges, points, depth, bins):
        def count(loads, slope):
            def step(x, stack, top, damage, histogram):
                def closed(v):
                    stack, top, damage, histogram = v
                    last = rs.abs(stack[top - 1] - stack[rs.maximum(top - 2, 0)])
                    before = rs.abs(stack[rs.maximum(top - 2, 0)] - stack[rs.maximum(top - 3, 0)])
                    return (top >= 3) & (last >= before)

                def close(v):
                    stack, top, damage, histogram = v
                    width = rs.abs(stack[top - 2] - stack[top - 3])
                    half = top == 3
                    bin = rs.clip(rs.cast(rs.floor(width / 20.0), "int32"), 0, bins - 1)
                    damage = damage + rs.where(half, 0.5, 1.0) * (width / 100.0) ** slope
                    histogram = histogram.at[bin].add(rs.cast(rs.where(half, 1, 2), "int32"))
                    newest = stack[top - 1]
                    whole = stack.at[top - 3].set(newest)
                    begun = stack.at[0].set(stack[1]).at[1].set(newest)
                    stack = rs.where(half, begun, whole)
                    top = rs.cast(rs.where(half, 2, top - 2), "int32")
                    return stack, top, damage, histogram

                stack = stack.at[top].set(x)
                return rs.while_loop(closed, close, (stack, top + 1, damage, histogram))

            init = (rs.zeros(depth), np.int32(0), 0.0, rs.zeros(bins, dtype="int32"))
            stack, top, damage, histogram = rs.loop(step, over=loads, init=init).last
            return damage, histogram, top

        return rs.compile(rs.vmap(count, (0, None)))

    def jax(self, gauges, points, depth, bins):
        import jax, jax.numpy as jnp
        from jax import lax

        def count(loads, slope):
            def step(carry, x):
                def closed(v):
                    stack, top, damage, histogram = v
                    last = jnp.abs(stack[top - 1] - stack[jnp.maximum(top - 2, 0)])
                    before = jnp.abs(stack[jnp.maximum(top - 2, 0)] - stack[jnp.maximum(top - 3, 0)])
                    return (top >= 3) & (last >= before)

                def close(v):
                    stack, top, damage, histogram = v
                    width = jnp.abs(stack[top - 2] - stack[top - 3])
                    half = top == 3
                    bin = jnp.clip(jnp.floor(width / 20.0).astype(jnp.int32), 0, bins - 1)
                    damage = damage + jnp.where(half, 0.5, 1.0) * (width / 100.0) ** slope
                    histogram = histogram.at[bin].add(jnp.where(half, 1, 2).astype(jnp.int32))
                    newest = stack[top - 1]
                    whole = stack.at[top - 3].set(newest)
                    begun = stack.at[0].set(stack[1]).at[1].set(newest)
                    stack = jnp.where(half, begun, whole)
                    top = jnp.where(half, 2, top - 2).astype(jnp.int32)
                    return stack, top, damage, histogram

                stack, top, damage, histogram = carry
                stack = stack.at[top].set(x)
                return lax.while_loop(closed, close, (stack, top + 1, damage, histogram)), None

            init = (jnp.zeros(depth), jnp.int32(0), jnp.float64(0.0), jnp.zeros(bins, jnp.int32))
            (stack, top, damage, histogram), _ = lax.scan(step, init, loads)
            return damage, histogram, top

        return jax.jit(jax.vmap(count, (0, None)))


class PorousFrontNewton(Model):
    """Barenblatt's porous-medium equation by implicit steps, each with four Newton steps with a Jacobian by differentiation; the gradient of a misfit."""

    kind = "forge"
    dtype = "float64"
    size = dict(cells=14, steps=30)
    small = dict(cells=5, steps=3)
    rtol = 1e-7

    def make(self, random, cells, steps):
        x = np.linspace(-1, 1, cells)
        return (
            dict(k=0.02, m=1.7, source=0.01 * np.ones(cells)),
            0.2 + np.exp(-8 * x**2),
            0.3 + 0.5 * np.exp(-4 * x**2) + 0.01 * random.normal(size=cells),
        )

    def rscan(self, cells, steps):
        def loss(p, u0, observed):
            dx, dt = 2.0 / cells, 0.05

            def residual(u, old):
                face = 0.5 * (u[1:] + u[:-1])
                flux = p["k"] * face ** p["m"] * (u[1:] - u[:-1]) / dx
                flux = rs.concatenate([rs.zeros(1), flux, rs.zeros(1)])
                return u - old - dt * ((flux[1:] - flux[:-1]) / dx + p["source"])

            def step(u):
                def newton(i, v):
                    return v - rs.linalg.solve(rs.jacobian(residual)(v, u), residual(v, u))

                return rs.fori(0, 4, newton, u)

            u = rs.loop(step, init=u0, n_steps=steps)
            return rs.sum((u.last - observed) ** 2) + 1e-3 * rs.sum(u[:] ** 2)

        return rs.value_and_grad(rs.compile(loss))

    def jax(self, cells, steps):
        import jax, jax.numpy as jnp
        from jax import lax

        def loss(p, u0, observed):
            dx, dt = 2.0 / cells, 0.05

            def residual(u, old):
                face = 0.5 * (u[1:] + u[:-1])
                flux = p["k"] * face ** p["m"] * (u[1:] - u[:-1]) / dx
                flux = jnp.concatenate([jnp.zeros(1), flux, jnp.zeros(1)])
                return u - old - dt * ((flux[1:] - flux[:-1]) / dx + p["source"])

            jacobian = jax.jacfwd(residual)

            def step(u, _):
                v = lax.fori_loop(0, 4, lambda i, v: v - jnp.linalg.solve(jacobian(v, u), residual(v, u)), u)
                return v, v

            last, rows = lax.scan(step, u0, None, length=steps)
            return jnp.sum((last - observed) ** 2) + 1e-3 * jnp.sum(rows**2)

        return jax.jit(jax.value_and_grad(loss))


class StableMarriageProposals(Model):
    """Gale and Shapley's proposals in several markets at once: vmap over a while loop with integer tables and a boolean queue."""

    kind = "forge"
    dtype = "int32"
    size = dict(markets=12, people=32)
    small = dict(markets=2, people=4)

    def make(self, random, markets, people):
        # Tastes that agree a little, so that there are many refusals.
        common = random.normal(size=people)
        wishes = np.argsort(common + 0.7 * random.normal(size=(markets, people, people)), axis=2).astype("int32")
        ranks = np.argsort(np.argsort(random.normal(size=(markets, people, people)), axis=2), axis=2).astype("int32")
        return wishes, ranks

    def rscan(self, markets, people):
        def match(wishes, ranks):
            def body(v):
                free, following, partner, proposals = v
                m = rs.cast(rs.argmax(free), "int32")
                w = wishes[m, following[m]]
                held = partner[w]
                other = rs.maximum(held, 0)
                accepts = (held < 0) | (ranks[w, m] < ranks[w, other])
                free = free.at[m].set(~accepts)
                free = free.at[other].set(free[other] | (accepts & (held >= 0)))
                partner = partner.at[w].set(rs.where(accepts, m, held))
                return free, following.at[m].add(1), partner, proposals + 1

            init = (
                rs.ones(people, dtype="bool"),
                rs.zeros(people, dtype="int32"),
                rs.full(people, -1, dtype="int32"),
                np.int32(0),
            )
            free, following, partner, proposals = rs.while_loop(lambda v: rs.any(v[0]), body, init)
            return partner, following, proposals

        return rs.compile(rs.vmap(match))

    def jax(self, markets, people):
        import jax, jax.numpy as jnp
        from jax import lax

        def match(wishes, ranks):
            def body(v):
                free, following, partner, proposals = v
                m = jnp.argmax(free).astype(jnp.int32)
                w = wishes[m, following[m]]
                held = partner[w]
                other = jnp.maximum(held, 0)
                accepts = (held < 0) | (ranks[w, m] < ranks[w, other])
                free = free.at[m].set(~accepts)
                free = free.at[other].set(free[other] | (accepts & (held >= 0)))
                partner = partner.at[w].set(jnp.where(accepts, m, held))
                return free, following.at[m].add(1), partner, proposals + 1

            init = (
                jnp.ones(people, bool),
                jnp.zeros(people, jnp.int32),
                jnp.full(people, -1, jnp.int32),
                jnp.int32(0),
            )
            free, following, partner, proposals = lax.while_loop(lambda v: jnp.any(v[0]), body, init)
            return partner, following, proposals

        return jax.jit(jax.vmap(match))


class AgeingBloomFilter(Model):
    """A stream of keys with duplicates through two Bloom filters of which the older is thrown away when the younger is full."""

    kind = "forge"
    dtype = "uint32"
    size = dict(keys=3000, bits=12)
    small = dict(keys=40, bits=6)

    def make(self, random, keys, bits):
        odd = (random.integers(0, 2**31, 4) * 2 + 1).astype("uint32")
        return random.integers(0, max(keys // 2, 1), keys).astype("uint32"), odd

    def rscan(self, keys, bits):
        @rs.compile
        def run(stream, odd):
            def step(key, young, old, filled, turns):
                h = key * odd
                h = (h ^ (h >> 15)) * np.uint32(0x2C1B3C6D)
                h = (h ^ (h >> 12)) * np.uint32(0x297A2D39)
                h = rs.cast((h ^ (h >> 15)) >> (32 - bits), "int32")
                here = rs.all(young[h])
                known = here | rs.all(old[h])
                young = young.at[h].set(True)
                filled = filled + rs.cast(~here, "int32")
                full = filled >= 2**bits // 8
                young, old = rs.ifelse(full, [rs.zeros_like(young), young], [young, old])
                return (
                    dict(
                        young=young,
                        old=old,
                        filled=rs.cast(rs.where(full, 0, filled), "int32"),
                        turns=turns + rs.cast(full, "uint8"),
                        known=known,
                        first=h[0],
                    )
                )

            empty = rs.zeros(2**bits, dtype="bool")
            out = rs.loop(
                step, over=dict(key=stream), init=dict(young=empty, old=empty, filled=np.int32(0), turns=np.uint8(0))
            )
            return out.known, rs.max(out.first), out.turns[-1], rs.sum(out.last.young), out.filled

        return run

    def jax(self, keys, bits):
        import jax, jax.numpy as jnp
        from jax import lax

        def run(stream, odd):
            def step(carry, key):
                young, old, filled, turns = carry
                h = key * odd
                h = (h ^ (h >> 15)) * jnp.uint32(0x2C1B3C6D)
                h = (h ^ (h >> 12)) * jnp.uint32(0x297A2D39)
                h = ((h ^ (h >> 15)) >> (32 - bits)).astype(jnp.int32)
                here = jnp.all(young[h])
                known = here | jnp.all(old[h])
                young = young.at[h].set(True)
                filled = filled + (~here).astype(jnp.int32)
                full = filled >= 2**bits // 8
                young, old = lax.cond(full, lambda y, o: (jnp.zeros_like(y), y), lambda y, o: (y, o), young, old)
                filled = jnp.where(full, 0, filled).astype(jnp.int32)
                turns = turns + full.astype(jnp.uint8)
                return (young, old, filled, turns), (known, h[0], filled)

            empty = jnp.zeros(2**bits, bool)
            (young, old, filled, turns), (known, first, fills) = lax.scan(
                step, (empty, empty, jnp.int32(0), jnp.uint8(0)), stream
            )
            return known, jnp.max(first), turns, jnp.sum(young), fills

        return jax.jit(run)


class OnlineMixtureCholesky(Model):
    """A Gaussian mixture updated by each observation, densities by Cholesky factors; the gradient of its predictive score by its start and its forgetting."""

    kind = "forge"
    dtype = "float64"
    size = dict(rows=200, parts=4)
    small = dict(rows=5, parts=2)
    rtol = 1e-7

    def make(self, random, rows, parts):
        centres = 3 * random.normal(size=(parts, 2))
        x = centres[random.integers(0, parts, rows)] + random.normal(size=(rows, 2))
        return dict(mean=centres + 0.5 * random.normal(size=(parts, 2)), decay=0.6), x

    def rscan(self, rows, parts):
        @rs.compile
        def score(p, x):
            def step(x, t, weight, mean, spread):
                factor = rs.linalg.cholesky(spread)
                left = x - mean
                z = rs.linalg.solve_triangular(factor, left[:, :, None], lower=True)[:, :, 0]
                logdet = rs.sum(rs.log(rs.diagonal(factor, axis1=1, axis2=2)), axis=1)
                logs = rs.log(weight) - 0.5 * rs.sum(z**2, axis=1) - logdet - np.log(2 * np.pi)
                share = rs.softmax(logs)
                rate = (t + 2.0) ** -p["decay"]
                weight = (1 - rate) * weight + rate * share
                gain = rate * share / weight
                mean = mean + gain[:, None] * left
                spread = spread + gain[:, None, None] * (left[:, :, None] * left[:, None, :] + 0.05 * rs.eye(2) - spread)
                return dict(weight=weight, mean=mean, spread=spread, loss=-rs.logsumexp(logs))

            init = dict(
                weight=rs.ones(parts) / parts, mean=p["mean"], spread=rs.tile(rs.eye(2)[None, :, :], (parts, 1, 1))
            )
            out = rs.loop(step, over=dict(x=x, t=rs.arange(rows)), init=init)
            return rs.mean(out.loss)

        return rs.value_and_grad(score)

    def jax(self, rows, parts):
        import jax, jax.numpy as jnp
        from jax import lax

        def score(p, x):
            def step(carry, row):
                weight, mean, spread = carry
                x, t = row
                factor = jnp.linalg.cholesky(spread)
                left = x - mean
                z = lax.linalg.triangular_solve(factor, left[:, :, None], left_side=True, lower=True)[:, :, 0]
                logdet = jnp.sum(jnp.log(jnp.diagonal(factor, axis1=1, axis2=2)), axis=1)
                logs = jnp.log(weight) - 0.5 * jnp.sum(z**2, axis=1) - logdet - np.log(2 * np.pi)
                share = jax.nn.softmax(logs)
                rate = (t + 2.0) ** -p["decay"]
                weight = (1 - rate) * weight + rate * share
                gain = rate * share / weight
                mean = mean + gain[:, None] * left
                spread = spread + gain[:, None, None] * (left[:, :, None] * left[:, None, :] + 0.05 * jnp.eye(2) - spread)
                return (weight, mean, spread), -jax.nn.logsumexp(logs)

            init = (jnp.ones(parts) / parts, p["mean"], jnp.tile(jnp.eye(2), (parts, 1, 1)))
            return jnp.mean(lax.scan(step, init, (x, jnp.arange(rows)))[1])

        return jax.jit(jax.value_and_grad(score))


class SemiMarkovDurations(Model):
    """The likelihood of a hidden semi-Markov model whose state holds the steps that are left of a stay, with its gradient."""

    kind = "forge"
    dtype = "float64"
    size = dict(steps=300, states=4, longest=12)
    small = dict(steps=6, states=2, longest=3)

    def make(self, random, steps, states, longest):
        p = dict(
            move=random.normal(size=(states, states)),
            stay=random.normal(size=(states, longest)),
            mean=np.arange(states) * 1.5,
            log_width=np.zeros(states),
        )
        return p, np.repeat(random.integers(0, states, steps), 5)[:steps] * 1.5 + random.normal(size=steps)

    def rscan(self, steps, states, longest):
        @rs.compile
        def nll(p, y):
            barred = rs.where(rs.eye(states) > 0, -1e9, p["move"])
            move = rs.log_softmax(barred, axis=1)
            stay = rs.log_softmax(p["stay"], axis=1)

            def seen(y):
                return rs.stats.norm.logpdf(y, p["mean"], rs.exp(p["log_width"]))

            def step(y, a):
                entered = rs.logsumexp(a[:, 0][:, None] + move, axis=0)
                longer = rs.concatenate([a[:, 1:], rs.full((states, 1), -1e9)], axis=1)
                return rs.logaddexp(longer, entered[:, None] + stay) + seen(y)[:, None]

            first = stay - np.log(states) + seen(y[0])[:, None]
            return -rs.logsumexp(rs.loop(step, over=y[1:], init=first).last)

        return rs.value_and_grad(nll)

    def jax(self, steps, states, longest):
        import jax, jax.numpy as jnp
        from jax import lax

        def nll(p, y):
            barred = jnp.where(jnp.eye(states) > 0, -1e9, p["move"])
            move = jax.nn.log_softmax(barred, axis=1)
            stay = jax.nn.log_softmax(p["stay"], axis=1)

            def seen(y):
                return jax.scipy.stats.norm.logpdf(y, p["mean"], jnp.exp(p["log_width"]))

            def step(a, y):
                entered = jax.nn.logsumexp(a[:, 0][:, None] + move, axis=0)
                longer = jnp.concatenate([a[:, 1:], jnp.full((states, 1), -1e9)], axis=1)
                return jnp.logaddexp(longer, entered[:, None] + stay) + seen(y)[:, None], None

            first = stay - np.log(states) + seen(y[0])[:, None]
            return -jax.nn.logsumexp(lax.scan(step, first, y[1:])[0])

        return jax.jit(jax.value_and_grad(nll))


class PatchForagers(Model):
    """Animals that choose a patch by its food, may be eaten there, and are reborn elsewhere: categorical, Bernoulli, normal and integer draws in the step."""

    kind = "forge"
    dtype = "float64"
    size = dict(animals=128, patches=8, days=200)
    small = dict(animals=64, patches=4, days=60)

    def make(self, random, animals, patches, days):
        return 7, random.uniform(1.0, 3.0, patches), 0.05

    def rscan(self, animals, patches, days):
        @rs.compile
        def run(seed, growth, risk):
            key = rs.random.key(seed)

            def step(t, food, where, energy):
                k1, k2, k3, k4 = rs.random.split(rs.random.fold_in(key, t), 4)
                near = rs.one_hot(where, patches)
                where = rs.random.categorical(k1, rs.softmax(rs.log(food) + 1.5 * near))
                crowd = rs.bincount(where, minlength=patches)
                eaten = food / (1.0 + crowd)
                energy = energy + eaten[where] - 0.6 + 0.1 * rs.random.normal(k2, animals)
                dead = rs.random.bernoulli(k3, risk, size=animals) | (energy < 0)
                where = rs.where(dead, rs.random.integers(k4, 0, patches, animals), where)
                energy = rs.where(dead, 1.0, rs.minimum(energy, 5.0))
                food = food - eaten * crowd + 0.3 * growth + 0.1
                return dict(food=food, where=where, energy=energy, deaths=rs.sum(dead))

            init = dict(food=growth, where=rs.arange(animals) % patches, energy=rs.ones(animals))
            out = rs.loop(step, over=dict(t=rs.arange(days)), init=init)
            return rs.mean(out.deaths), rs.mean(out.energy), rs.mean(out.food, axis=0)

        return run

    def jax(self, animals, patches, days):
        import jax, jax.numpy as jnp
        from jax import lax

        def run(seed, growth, risk):
            key = jax.random.key(seed)

            def step(carry, t):
                food, where, energy = carry
                k1, k2, k3, k4 = jax.random.split(jax.random.fold_in(key, t), 4)
                near = jax.nn.one_hot(where, patches)
                where = jax.random.categorical(k1, jnp.log(food) + 1.5 * near)
                crowd = jnp.bincount(where, length=patches)
                eaten = food / (1.0 + crowd)
                energy = energy + eaten[where] - 0.6 + 0.1 * jax.random.normal(k2, (animals,))
                dead = jax.random.bernoulli(k3, risk, (animals,)) | (energy < 0)
                where = jnp.where(dead, jax.random.randint(k4, (animals,), 0, patches), where)
                energy = jnp.where(dead, 1.0, jnp.minimum(energy, 5.0))
                food = food - eaten * crowd + 0.3 * growth + 0.1
                return (food, where, energy), (jnp.sum(dead), energy, food)

            init = (growth, jnp.arange(animals) % patches, jnp.ones(animals))
            _, (deaths, energies, foods) = lax.scan(step, init, jnp.arange(days))
            return jnp.mean(deaths), jnp.mean(energies), jnp.mean(foods, axis=0)

        return jax.jit(run)

    def same(self, ours, theirs):
        assert len(ours) == len(theirs) == 3
        for i, (a, b) in enumerate(zip(ours, theirs)):
            assert a.shape == b.shape and np.all(np.isfinite(a)) and np.all(np.isfinite(b))
            assert np.all(np.abs(a - b) < 0.15 * np.abs(b) + 0.02), f"output {i}: {a} and {b}"
