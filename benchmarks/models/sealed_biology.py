"""Computational biology: synapses, gene circuits, trees of species, malaria."""

import numpy as np

import rscan as rs
from models import Model


class DepressingSynapseFit(Model):
    """Tsodyks and Markram's synapse: the misfit of the amplitudes of each of many neurons, with its gradient by the neuron's parameters."""

    kind = "computational biology"
    dtype = "float32"
    size = dict(neurons=32, spikes=300)
    small = dict(neurons=3, spikes=9)

    def make(self, random, neurons, spikes):
        p = random.normal(size=(neurons, 4), scale=0.3).astype("f4")
        gaps = random.exponential(0.1, size=(neurons, spikes)).astype("f4")
        seen = random.gamma(2.0, 0.2, size=(neurons, spikes)).astype("f4")
        return p, gaps, seen

    def rscan(self, neurons, spikes):
        def loss(p, gaps, seen):
            use, recovery, facilitation, amplitude = rs.sigmoid(p[0]), 0.3 * rs.exp(p[1]), 0.2 * rs.exp(p[2]), rs.exp(p[3])

            def step(gap, seen, u, r):
                error = amplitude * u * r - seen
                u_next = use + u * (1 - use) * rs.exp(-gap / facilitation)
                r_next = 1 + (r - r * u - 1) * rs.exp(-gap / recovery)
                return dict(u=u_next, r=r_next, cost=error**2)

            out = rs.loop(step, over=dict(gap=gaps, seen=seen), init=dict(u=use, r=rs.ones_like(use)))
            return rs.mean(out.cost)

        return rs.compile(rs.vmap(rs.value_and_grad(loss)))

    def jax(self, neurons, spikes):
        import jax, jax.numpy as jnp

        def loss(p, gaps, seen):
            use, recovery, facilitation, amplitude = jax.nn.sigmoid(p[0]), 0.3 * jnp.exp(p[1]), 0.2 * jnp.exp(p[2]), jnp.exp(p[3])

            def step(carry, x):
                (u, r), (gap, seen) = carry, x
                error = amplitude * u * r - seen
                u_next = use + u * (1 - use) * jnp.exp(-gap / facilitation)
                r_next = 1 + (r - r * u - 1) * jnp.exp(-gap / recovery)
                return (u_next, r_next), error**2

            return jnp.mean(jax.lax.scan(step, (use, jnp.ones_like(use)), (gaps, seen))[1])

        return jax.jit(jax.vmap(jax.value_and_grad(loss)))


class RepressilatorSensitivity(Model):
    """Elowitz and Leibler's ring of three genes: the normal equations of a fit, from the Jacobian of the trajectory by its parameters."""

    kind = "computational biology"
    dtype = "float64"
    size = dict(times=50, substeps=10)
    small = dict(times=4, substeps=2)
    rtol = 1e-8

    def make(self, random, times, substeps):
        theta = np.array([3.0, -1.0, 0.3, 2.1])
        start = random.uniform(0.5, 3.0, size=6)
        seen = random.gamma(3.0, 1.0, size=(times, 3))
        return theta, start, seen

    def rscan(self, times, substeps):
        dt = 0.5 / substeps

        def proteins(theta, start):
            alpha, leak, beta, n = rs.exp(theta[0]), rs.exp(theta[1]), rs.exp(theta[2]), theta[3]

            def slope(y):
                m, p = y[:3], y[3:]
                dm = -m + alpha / (1 + rs.roll(p, 1) ** n) + leak
                return rs.concatenate([dm, -beta * (p - m)])

            def rk4(y):
                k1 = slope(y)
                k2 = slope(y + dt / 2 * k1)
                k3 = slope(y + dt / 2 * k2)
                k4 = slope(y + dt * k3)
                return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

            def observe(y):
                y = rs.loop(rk4, init=y, n_steps=substeps).last
                return dict(y=y, seen=y[3:])

            return rs.loop(observe, init=dict(y=start), n_steps=times).seen

        @rs.compile
        def normal_equations(theta, start, seen):
            residual = (proteins(theta, start) - seen).ravel()
            jacobian = rs.reshape(rs.jacobian(lambda theta: proteins(theta, start))(theta), (3 * times, 4))
            return jacobian.T @ jacobian, jacobian.T @ residual, rs.sum(residual**2)

        return normal_equations

    def jax(self, times, substeps):
        import jax, jax.numpy as jnp

        dt = 0.5 / substeps

        def proteins(theta, start):
            alpha, leak, beta, n = jnp.exp(theta[0]), jnp.exp(theta[1]), jnp.exp(theta[2]), theta[3]

            def slope(y):
                m, p = y[:3], y[3:]
                dm = -m + alpha / (1 + jnp.roll(p, 1) ** n) + leak
                return jnp.concatenate([dm, -beta * (p - m)])

            def rk4(y, _):
                k1 = slope(y)
                k2 = slope(y + dt / 2 * k1)
                k3 = slope(y + dt / 2 * k2)
                k4 = slope(y + dt * k3)
                return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

            def observe(y, _):
                y = jax.lax.scan(rk4, y, None, length=substeps)[0]
                return y, y[3:]

            return jax.lax.scan(observe, start, None, length=times)[1]

        @jax.jit
        def normal_equations(theta, start, seen):
            residual = (proteins(theta, start) - seen).ravel()
            jacobian = jax.jacfwd(proteins)(theta, start).reshape(3 * times, 4)
            return jacobian.T @ jacobian, jacobian.T @ residual, jnp.sum(residual**2)

        return normal_equations


class SankoffStates(Model):
    """Parsimony with costs of changes: the cheapest states of all ancestors in a tree, for each site of an alignment."""

    kind = "computational biology"
    dtype = "int32"
    size = dict(sites=64, leaves=24, states=20)
    small = dict(sites=3, leaves=5, states=4)

    def make(self, random, sites, leaves, states):
        tips = random.integers(0, states, size=(sites, leaves)).astype("i4")
        tips = np.where(random.random(tips.shape) < 0.6, tips[:, :1], tips).astype("i4")
        costs = random.integers(1, 9, size=(states, states)).astype("i4")
        costs = np.minimum(costs, costs.T) * (1 - np.eye(states, dtype="i4"))
        roots, children = list(range(leaves)), []
        for node in range(leaves, 2 * leaves - 1):
            left, right = (roots.pop(random.integers(len(roots))) for _ in range(2))
            children.append((left, right))
            roots.append(node)
        return tips, np.array(children, "i4"), costs.astype("i4")

    def rscan(self, sites, leaves, states):
        nodes = 2 * leaves - 1

        def reconstruct(tips, children, costs):
            table = rs.full((nodes, states), np.int32(1_000_000))
            table = table.at[:leaves].set(rs.where(tips[:, None] == rs.arange(states), np.int32(0), np.int32(1_000_000)))
            inner = rs.arange(leaves, nodes)

            def up(pair, node, table):
                left = rs.min(costs + table[pair[0]], axis=1)
                right = rs.min(costs + table[pair[1]], axis=1)
                return table.at[node].set(left + right)

            table = rs.loop(up, over=(children, inner), init=table).last
            root = rs.argmin(table[nodes - 1])

            def down(pair, node, state):
                left = rs.argmin(costs[state[node]] + table[pair[0]])
                right = rs.argmin(costs[state[node]] + table[pair[1]])
                return state.at[pair[0]].set(left).at[pair[1]].set(right)

            state = rs.zeros(nodes, dtype="int64").at[nodes - 1].set(root)
            state = rs.loop(down, over=(children, inner), init=state, reverse=True).last
            return table[nodes - 1, root], state

        return rs.compile(rs.vmap(reconstruct, in_axes=(0, None, None)))

    def jax(self, sites, leaves, states):
        import jax, jax.numpy as jnp

        nodes = 2 * leaves - 1

        def reconstruct(tips, children, costs):
            table = jnp.full((nodes, states), 1_000_000, jnp.int32)
            table = table.at[:leaves].set(jnp.where(tips[:, None] == jnp.arange(states), 0, 1_000_000).astype(jnp.int32))
            inner = jnp.arange(leaves, nodes)

            def up(table, x):
                pair, node = x
                left = jnp.min(costs + table[pair[0]], axis=1)
                right = jnp.min(costs + table[pair[1]], axis=1)
                return table.at[node].set(left + right), None

            table = jax.lax.scan(up, table, (children, inner))[0]
            root = jnp.argmin(table[nodes - 1])

            def down(state, x):
                pair, node = x
                left = jnp.argmin(costs[state[node]] + table[pair[0]])
                right = jnp.argmin(costs[state[node]] + table[pair[1]])
                return state.at[pair[0]].set(left).at[pair[1]].set(right), None

            state = jnp.zeros(nodes, jnp.int64).at[nodes - 1].set(root)
            state = jax.lax.scan(down, state, (children, inner), reverse=True)[0]
            return table[nodes - 1, root], state

        return jax.jit(jax.vmap(reconstruct, in_axes=(0, None, None)))


class MosquitoDelayFit(Model):
    """Ross and Macdonald's malaria with mosquitoes that are infectious ten days after a bite: the likelihood of weekly cases and its gradient."""

    kind = "computational biology"
    dtype = "float64"
    size = dict(days=2000)
    small = dict(days=21)

    def make(self, random, days):
        day = np.arange(days)
        season = 1 + 0.5 * np.sin(2 * np.pi * day / 365)
        cases = random.poisson(3.0 * season).astype("f8")
        p = dict(biting=-1.0, to_host=-1.0, to_mosquito=-0.5, recovery=-3.5, death=-2.2, reported=-3.0)
        return p, season, cases

    def rscan(self, days):
        delay = 10

        @rs.compile
        def nll(p, season, cases):
            biting, to_host, to_mosquito = rs.exp(p["biting"]), rs.sigmoid(p["to_host"]), rs.sigmoid(p["to_mosquito"])
            recovery, death, reported = rs.exp(p["recovery"]), rs.exp(p["death"]), 1000 * rs.exp(p["reported"])

            def step(season, cases, host, mosquito, bitten):
                then = bitten
                rate = biting * season
                new_host = rate * to_host * mosquito * (1 - host)
                new_bitten = rate * to_mosquito * host * (1 - mosquito)
                expected = reported * new_host + 1e-6
                return dict(
                    host=host + new_host - recovery * host,
                    mosquito=mosquito + rs.exp(-death * delay) * then - death * mosquito,
                    bitten=new_bitten,
                    cost=expected - cases * rs.log(expected),
                )

            init = dict(host=0.1, mosquito=0.05, bitten=rs.taps(np.full(delay, 0.005), -delay))
            out = rs.loop(step, over=dict(season=season, cases=cases), init=init)
            return rs.sum(out.cost)

        return rs.value_and_grad(nll)

    def jax(self, days):
        import jax, jax.numpy as jnp

        delay = 10

        def nll(p, season, cases):
            biting, to_host, to_mosquito = jnp.exp(p["biting"]), jax.nn.sigmoid(p["to_host"]), jax.nn.sigmoid(p["to_mosquito"])
            recovery, death, reported = jnp.exp(p["recovery"]), jnp.exp(p["death"]), 1000 * jnp.exp(p["reported"])

            def step(carry, x):
                (host, mosquito, bitten), (season, cases) = carry, x
                then = bitten[0]
                rate = biting * season
                new_host = rate * to_host * mosquito * (1 - host)
                new_bitten = rate * to_mosquito * host * (1 - mosquito)
                expected = reported * new_host + 1e-6
                host_next = host + new_host - recovery * host
                mosquito_next = mosquito + jnp.exp(-death * delay) * then - death * mosquito
                bitten = jnp.concatenate([bitten[1:], new_bitten[None]])
                return (host_next, mosquito_next, bitten), expected - cases * jnp.log(expected)

            init = (jnp.asarray(0.1), jnp.asarray(0.05), jnp.full(delay, 0.005))
            return jnp.sum(jax.lax.scan(step, init, (season, cases))[1])

        return jax.jit(jax.value_and_grad(nll))
