"""Ecology, agents, games and queues: a forest of single trees, a population by size, poker, a server that goes round."""

import numpy as np

import rscan as rs
from models import Model


class ForestGapPlots(Model):
    """A gap model: single trees on many plots compete for light by their heights, die, and make place for saplings."""

    kind = "ecology, agents, games, queues"
    dtype = "float32"
    size = dict(plots=16, trees=50, species=4, years=60)
    small = dict(plots=2, trees=5, species=2, years=4)
    rtol = 1e-3

    def make(self, random, plots, trees, species, years):
        traits = dict(
            growth=random.uniform(0.5, 1.5, species).astype("f4"),
            tallest=random.uniform(15, 35, species).astype("f4"),
            half=random.uniform(0.05, 0.5, species).astype("f4"),
        )
        diameter = random.uniform(1, 40, size=(plots, trees)).astype("f4")
        kinds = random.integers(0, species, size=(plots, trees)).astype("i4")
        luck = random.random((plots, years, trees)).astype("f4")
        fresh = random.integers(0, species, size=(plots, years, trees)).astype("i4")
        return traits, diameter, kinds, luck, fresh

    def rscan(self, plots, trees, species, years):
        def plot(traits, diameter, kinds, luck, fresh):
            def year(luck, fresh, d, kinds):
                tallest = traits["tallest"][kinds]
                height = 1.3 + tallest * (1 - rs.exp(-0.03 * d))
                leaves = 0.02 * d**2
                order = rs.argsort(-height)
                above = rs.cumsum(leaves[order]) - leaves[order]
                light = rs.exp(-0.01 * rs.zeros_like(d).at[order].set(above))
                growth = traits["growth"][kinds] * light / (light + traits["half"][kinds]) * (1 - height / (tallest + 1.3))
                dies = luck < rs.where(growth < 0.05, 0.2, 0.01)
                d = rs.where(dies, 1.0, d + growth)
                kinds = rs.where(dies, fresh, kinds)
                biomass = rs.zeros(species, dtype="float32").at[kinds].add(0.1 * d**2.5)
                return dict(d=d, kinds=kinds, biomass=biomass)

            out = rs.loop(year, over=dict(luck=luck, fresh=fresh), init=dict(d=diameter, kinds=kinds))
            return out.biomass, out.last.kinds

        @rs.compile
        def forest(traits, diameter, kinds, luck, fresh):
            biomass, kinds = rs.vmap(plot, in_axes=(None, 0, 0, 0, 0))(traits, diameter, kinds, luck, fresh)
            return rs.mean(biomass, axis=0), kinds

        return forest

    def jax(self, plots, trees, species, years):
        import jax, jax.numpy as jnp

        def plot(traits, diameter, kinds, luck, fresh):
            def year(carry, x):
                (d, kinds), (luck, fresh) = carry, x
                tallest = traits["tallest"][kinds]
                height = 1.3 + tallest * (1 - jnp.exp(-0.03 * d))
                leaves = 0.02 * d**2
                order = jnp.argsort(-height)
                above = jnp.cumsum(leaves[order]) - leaves[order]
                light = jnp.exp(-0.01 * jnp.zeros_like(d).at[order].set(above, unique_indices=True))
                growth = traits["growth"][kinds] * light / (light + traits["half"][kinds]) * (1 - height / (tallest + 1.3))
                dies = luck < jnp.where(growth < 0.05, 0.2, 0.01)
                d = jnp.where(dies, 1.0, d + growth)
                kinds = jnp.where(dies, fresh, kinds)
                biomass = jnp.zeros(species, jnp.float32).at[kinds].add(0.1 * d**2.5)
                return (d, kinds), biomass

            (_, kinds), biomass = jax.lax.scan(year, (diameter, kinds), (luck, fresh))
            return biomass, kinds

        @jax.jit
        def forest(traits, diameter, kinds, luck, fresh):
            biomass, kinds = jax.vmap(plot, in_axes=(None, 0, 0, 0, 0))(traits, diameter, kinds, luck, fresh)
            return jnp.mean(biomass, axis=0), kinds

        return forest


class YearlyIntegralProjection(Model):
    """A population of plants by size in years of different weather: its long-run growth, and how that depends on the rates of life."""

    kind = "ecology, agents, games, queues"
    dtype = "float64"
    size = dict(years=40, mesh=50)
    small = dict(years=3, mesh=6)
    rtol = 1e-8

    def make(self, random, years, mesh):
        p = dict(
            survival=np.array([-1.0, 0.8]),
            growth=np.array([0.6, 0.8, -1.0]),
            flower=np.array([-3.0, 0.9]),
            seeds=np.array([0.5, 0.6]),
            sprout=np.array([1.0, -0.7, -3.0]),
        )
        return p, random.normal(size=years, scale=0.3)

    def rscan(self, years, mesh):
        x = np.linspace(-0.5, 6.5, mesh)
        width = x[1] - x[0]

        @rs.compile
        def rate(p, weather):
            def density(x, mean, log_sd):
                return rs.exp(-0.5 * ((x - mean) / rs.exp(log_sd)) ** 2 - log_sd) / np.sqrt(2 * np.pi)

            flowering = rs.sigmoid(p["flower"][0] + p["flower"][1] * x)
            seeds = flowering * rs.exp(p["seeds"][0] + p["seeds"][1] * x) * rs.exp(p["sprout"][2])
            sprouts = density(x, p["sprout"][0], p["sprout"][1])[:, None] * seeds

            def year(weather, n):
                survival = rs.sigmoid(p["survival"][0] + p["survival"][1] * x + weather)
                mean = p["growth"][0] + p["growth"][1] * x + 0.5 * weather
                kernel = density(x[:, None], mean, p["growth"][2]) * survival + sprouts
                n = kernel @ n * width
                total = rs.sum(n)
                return dict(n=n / total, grown=rs.log(total))

            out = rs.loop(year, over=dict(weather=weather), init=dict(n=rs.full(mesh, 1 / mesh)))
            return rs.mean(out.grown)

        return rs.value_and_grad(rate)

    def jax(self, years, mesh):
        import jax, jax.numpy as jnp

        x = jnp.linspace(-0.5, 6.5, mesh)
        width = x[1] - x[0]

        def rate(p, weather):
            def density(x, mean, log_sd):
                return jnp.exp(-0.5 * ((x - mean) / jnp.exp(log_sd)) ** 2 - log_sd) / np.sqrt(2 * np.pi)

            flowering = jax.nn.sigmoid(p["flower"][0] + p["flower"][1] * x)
            seeds = flowering * jnp.exp(p["seeds"][0] + p["seeds"][1] * x) * jnp.exp(p["sprout"][2])
            sprouts = density(x, p["sprout"][0], p["sprout"][1])[:, None] * seeds

            def year(n, weather):
                survival = jax.nn.sigmoid(p["survival"][0] + p["survival"][1] * x + weather)
                mean = p["growth"][0] + p["growth"][1] * x + 0.5 * weather
                kernel = density(x[:, None], mean, p["growth"][2]) * survival + sprouts
                n = kernel @ n * width
                total = jnp.sum(n)
                return n / total, jnp.log(total)

            return jnp.mean(jax.lax.scan(year, jnp.full(mesh, 1 / mesh), weather)[1])

        return jax.jit(jax.value_and_grad(rate))


class KuhnRegret(Model):
    """Counterfactual regret in Kuhn's poker with three cards, from several starts: the mean strategies and the value of the game."""

    kind = "ecology, agents, games, queues"
    dtype = "float64"
    size = dict(starts=8, rounds=200)
    small = dict(starts=2, rounds=5)
    rtol = 1e-7

    deals = np.array([(a, b) for a in range(3) for b in range(3) if a != b])

    def make(self, random, starts, rounds):
        return (random.uniform(-1, 1, size=(starts, 12, 2)),)

    def rscan(self, starts, rounds):
        deals = self.deals

        def play(regret):
            def iteration(regret, total):
                positive = rs.maximum(regret, 0)
                norm = rs.sum(positive, axis=1, keepdims=True)
                strategy = rs.where(norm > 0, positive / rs.where(norm > 0, norm, 1.0), 0.5)

                def deal(cards, regret, total, value):
                    one, two = cards[0], cards[1]
                    win = rs.where(one > two, 1.0, -1.0)
                    first, passed, bet, answer = strategy[one], strategy[3 + two], strategy[6 + two], strategy[9 + one]
                    v_answer = -answer[0] + 2 * win * answer[1]
                    v_passed = win * passed[0] + v_answer * passed[1]
                    v_bet = bet[0] + 2 * win * bet[1]
                    v = first[0] * v_passed + first[1] * v_bet
                    regret = regret.at[one].add(rs.stack([v_passed - v, v_bet - v]) / 6)
                    regret = regret.at[3 + two].add(first[0] / 6 * rs.stack([v_passed - win, v_passed - v_answer]))
                    regret = regret.at[6 + two].add(first[1] / 6 * rs.stack([v_bet - 1, v_bet - 2 * win]))
                    regret = regret.at[9 + one].add(passed[1] / 6 * rs.stack([-1 - v_answer, 2 * win - v_answer]))
                    total = total.at[one].add(first).at[3 + two].add(passed).at[6 + two].add(bet).at[9 + one].add(first[0] * answer)
                    return regret, total, value + v / 6

                regret, total, value = rs.loop(deal, over=deals, init=(regret, total, 0.0)).last
                return dict(regret=regret, total=total, value=value)

            out = rs.loop(iteration, init=dict(regret=regret, total=rs.zeros((12, 2))), n_steps=rounds)
            total = out.last.total
            return total / rs.sum(total, axis=1, keepdims=True), rs.mean(out.value)

        return rs.compile(rs.vmap(play))

    def jax(self, starts, rounds):
        import jax, jax.numpy as jnp

        deals = jnp.asarray(self.deals)

        def play(regret):
            def iteration(carry, _):
                regret, total = carry
                positive = jnp.maximum(regret, 0)
                norm = jnp.sum(positive, axis=1, keepdims=True)
                strategy = jnp.where(norm > 0, positive / jnp.where(norm > 0, norm, 1.0), 0.5)

                def deal(carry, cards):
                    regret, total, value = carry
                    one, two = cards
                    win = jnp.where(one > two, 1.0, -1.0)
                    first, passed, bet, answer = strategy[one], strategy[3 + two], strategy[6 + two], strategy[9 + one]
                    v_answer = -answer[0] + 2 * win * answer[1]
                    v_passed = win * passed[0] + v_answer * passed[1]
                    v_bet = bet[0] + 2 * win * bet[1]
                    v = first[0] * v_passed + first[1] * v_bet
                    regret = regret.at[one].add(jnp.stack([v_passed - v, v_bet - v]) / 6)
                    regret = regret.at[3 + two].add(first[0] / 6 * jnp.stack([v_passed - win, v_passed - v_answer]))
                    regret = regret.at[6 + two].add(first[1] / 6 * jnp.stack([v_bet - 1, v_bet - 2 * win]))
                    regret = regret.at[9 + one].add(passed[1] / 6 * jnp.stack([-1 - v_answer, 2 * win - v_answer]))
                    total = total.at[one].add(first).at[3 + two].add(passed).at[6 + two].add(bet).at[9 + one].add(first[0] * answer)
                    return (regret, total, value + v / 6), None

                (regret, total, value), _ = jax.lax.scan(deal, (regret, total, jnp.asarray(0.0)), deals)
                return (regret, total), value

            (_, total), values = jax.lax.scan(iteration, (regret, jnp.zeros((12, 2))), None, length=rounds)
            return total / jnp.sum(total, axis=1, keepdims=True), jnp.mean(values)

        return jax.jit(jax.vmap(play))


class PollingServer(Model):
    """One server goes round some queues, serves each until it is empty, and needs time to walk: the waits of all, on many days."""

    kind = "ecology, agents, games, queues"
    dtype = "float64"
    size = dict(days=16, queues=4, customers=40)
    small = dict(days=2, queues=2, customers=4)

    def make(self, random, days, queues, customers):
        arrivals = np.cumsum(random.exponential(1.0, size=(days, queues, customers)), axis=2)
        services = random.gamma(2.0, 0.09, size=(days, queues, customers))
        return arrivals, services, random.uniform(0.05, 0.2, size=queues)

    def rscan(self, days, queues, customers):
        def day(arrivals, services, walks):
            def waiting(clock, q, next_one):
                return (next_one < customers) & (arrivals[q, rs.minimum(next_one, customers - 1)] <= clock)

            def visit(clock, q, heads, waits, longest):
                def serve(clock, head, wait):
                    wait = wait + clock - arrivals[q, head]
                    clock = clock + services[q, head]
                    return (clock, head + 1, wait), rs.until(~waiting(clock, q, head + 1))

                most = rs.where(waiting(clock, q, heads[q]), customers, 0)
                served = rs.loop(serve, init=(clock, heads[q], waits[q]), n_steps=most)
                clock, head, wait = served.last
                heads = heads.at[q].set(head)
                state = (clock + walks[q], (q + 1) % queues, heads, waits.at[q].set(wait), rs.maximum(longest, served.steps))
                return state, rs.until(rs.all(heads == customers))

            init = (0.0, 0, rs.zeros(queues, dtype="int64"), rs.zeros(queues), 0)
            out = rs.loop(visit, init=init)
            clock, q, heads, waits, longest = out.last
            return clock, waits / customers, longest, out.steps

        return rs.compile(rs.vmap(day, in_axes=(0, 0, None)))

    def jax(self, days, queues, customers):
        import jax, jax.numpy as jnp

        def day(arrivals, services, walks):
            def visit(carry):
                clock, q, heads, waits, longest, visits = carry

                def waiting(carry):
                    clock, head, _ = carry
                    return (head < customers) & (arrivals[q, head] <= clock)

                def serve(carry):
                    clock, head, wait = carry
                    return clock + services[q, head], head + 1, wait + clock - arrivals[q, head]

                clock, head, wait = jax.lax.while_loop(waiting, serve, (clock, heads[q], waits[q]))
                longest = jnp.maximum(longest, head - heads[q])
                return clock + walks[q], (q + 1) % queues, heads.at[q].set(head), waits.at[q].set(wait), longest, visits + 1

            zero = jnp.int64(0)
            init = (jnp.asarray(0.0), zero, jnp.zeros(queues, jnp.int64), jnp.zeros(queues), zero, zero)
            clock, _, _, waits, longest, visits = jax.lax.while_loop(lambda c: ~jnp.all(c[2] == customers), visit, init)
            return clock, waits / customers, longest, visits

        return jax.jit(jax.vmap(day, in_axes=(0, 0, None)))
