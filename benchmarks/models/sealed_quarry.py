"""Programs of several trades: a text decoder, bouts of behaviour, grains, power grids, banks, blood and bottles."""

import numpy as np

import rscan as rs
from models import Model


class RotaryTextDecoder(Model):
    """Greedy decoding by a small transformer with rotary positions, gated feed-forward and a cache of keys and values."""

    kind = "quarry"
    dtype = "float32"
    size = dict(steps=64, layers=2, width=64, heads=4, words=256)
    small = dict(steps=5, layers=2, width=8, heads=2, words=11)

    def make(self, random, steps, layers, width, heads, words):
        def weights(*shape):
            return (random.normal(size=shape) / np.sqrt(shape[-2])).astype("f4")

        embedding = random.normal(size=(words, width)).astype("f4")
        return (
            np.int64(3), embedding, weights(layers, width, 3 * width), weights(layers, width, width),
            weights(layers, width, 4 * width), weights(layers, 2 * width, width),
            (1 + 0.1 * random.normal(size=(layers, 2, width))).astype("f4"), weights(width, words),
        )  # fmt: skip

    def angles(self, steps, width, heads):
        half = width // heads // 2
        angle = np.arange(steps)[:, None] * 100.0 ** (-np.arange(half) / half)
        return np.cos(angle).astype("f4"), np.sin(angle).astype("f4")

    def rscan(self, steps, layers, width, heads, words):
        each = width // heads
        cosine, sine = self.angles(steps, width, heads)

        def normed(x, scale):
            return x * scale / rs.sqrt(rs.mean(x * x) + 1e-5)

        def turned(x, c, s):
            a, b = x[:, : each // 2], x[:, each // 2 :]
            return rs.concatenate([a * c - b * s, a * s + b * c], axis=1)

        @rs.compile
        def decode(first, embedding, wqkv, wo, up, down, scale, unembedding):
            def step(xs, token, keys, values):
                t, c, s = xs
                x = embedding[token]
                for layer in range(layers):
                    q, k, v = rs.split(normed(x, scale[layer, 0]) @ wqkv[layer], 3)
                    q = turned(q.reshape((heads, each)), c, s)
                    keys = keys.at[layer, t].set(turned(k.reshape((heads, each)), c, s))
                    values = values.at[layer, t].set(v.reshape((heads, each)))
                    scores = rs.einsum("hd,thd->ht", q, keys[layer]) / each**0.5
                    scores = rs.where(rs.arange(steps) <= t, scores, -1e9)
                    mixed = rs.einsum("ht,thd->hd", rs.softmax(scores, axis=1), values[layer])
                    x = x + mixed.reshape((width,)) @ wo[layer]
                    gate, lifted = rs.split(normed(x, scale[layer, 1]) @ up[layer], 2)
                    x = x + (gate * rs.sigmoid(gate) * lifted) @ down[layer]
                logits = x @ unembedding
                token = rs.argmax(logits)
                return dict(token=token, keys=keys, values=values, chance=rs.max(rs.log_softmax(logits)))

            cache = rs.zeros((layers, steps, heads, each), dtype="float32")
            out = rs.loop(step, over=dict(xs=(rs.arange(steps), cosine, sine)), init=dict(token=first, keys=cache, values=cache))
            return out.token, out.chance

        return decode

    def jax(self, steps, layers, width, heads, words):
        import jax
        import jax.numpy as jnp

        each = width // heads
        cosine, sine = self.angles(steps, width, heads)

        def normed(x, scale):
            return x * scale / jnp.sqrt(jnp.mean(x * x) + 1e-5)

        def turned(x, c, s):
            a, b = x[:, : each // 2], x[:, each // 2 :]
            return jnp.concatenate([a * c - b * s, a * s + b * c], axis=1)

        def decode(first, embedding, wqkv, wo, up, down, scale, unembedding):
            def step(carry, xs):
                token, keys, values = carry
                t, c, s = xs
                x = embedding[token]
                for layer in range(layers):
                    q, k, v = jnp.split(normed(x, scale[layer, 0]) @ wqkv[layer], 3)
                    q = turned(q.reshape(heads, each), c, s)
                    keys = keys.at[layer, t].set(turned(k.reshape(heads, each), c, s))
                    values = values.at[layer, t].set(v.reshape(heads, each))
                    scores = jnp.einsum("hd,thd->ht", q, keys[layer]) / each**0.5
                    scores = jnp.where(jnp.arange(steps) <= t, scores, -1e9)
                    mixed = jnp.einsum("ht,thd->hd", jax.nn.softmax(scores, axis=1), values[layer])
                    x = x + mixed.reshape(width) @ wo[layer]
                    gate, lifted = jnp.split(normed(x, scale[layer, 1]) @ up[layer], 2)
                    x = x + (jax.nn.silu(gate) * lifted) @ down[layer]
                logits = x @ unembedding
                token = jnp.argmax(logits)
                return (token, keys, values), (token, jnp.max(jax.nn.log_softmax(logits)))

            cache = jnp.zeros((layers, steps, heads, each), jnp.float32)
            return jax.lax.scan(step, (first, cache, cache), (jnp.arange(steps), cosine, sine))[1]

        return jax.jit(decode)


class BehaviourBouts(Model):
    """A hidden semi-Markov model of an animal's bouts: the forward pass over durations, log-sum-exp by hand, with gradient."""

    kind = "quarry"
    dtype = "float64"
    size = dict(steps=400, states=4, longest=12)
    small = dict(steps=9, states=3, longest=4)

    def make(self, random, steps, states, longest):
        level = np.repeat(random.integers(0, states, steps), 5)[:steps] * 1.0
        return (
            np.arange(states) + random.normal(0, 0.2, states), random.normal(-0.5, 0.1, states),
            random.normal(size=(states, states)), random.normal(size=(longest, states)),
            level + random.normal(0, 0.7, steps),
        )  # fmt: skip

    def rscan(self, steps, states, longest):
        no_return = -1e4 * np.eye(states)

        def log_sum_exp(x):
            largest = rs.max(x, axis=0)
            return largest + rs.log(rs.sum(rs.exp(x - largest), axis=0))

        @rs.compile
        def loss(mean, log_sd, transition, duration, y):
            log_move = rs.log_softmax(transition + no_return, axis=1)
            log_last = rs.log_softmax(duration, axis=0)
            density = -0.5 * ((y[:, None] - mean) / rs.exp(log_sd)) ** 2 - log_sd - 0.5 * np.log(2 * np.pi)

            def step(e, begin, open_bouts):
                open_bouts = rs.concatenate([begin[None, :], open_bouts[:-1]]) + e
                ended = log_sum_exp(open_bouts + log_last)
                begin = log_sum_exp(ended[:, None] + log_move)
                return dict(begin=begin, open_bouts=open_bouts, ended=ended)

            start = rs.full((states,), -np.log(states))
            out = rs.loop(step, over=dict(e=density), init=dict(begin=start, open_bouts=rs.full((longest, states), -1e4)))
            return -log_sum_exp(out.ended[-1])

        return rs.value_and_grad(loss, argnums=(0, 1, 2, 3))

    def jax(self, steps, states, longest):
        import jax
        import jax.numpy as jnp

        no_return = -1e4 * np.eye(states)

        def log_sum_exp(x):
            largest = jax.lax.stop_gradient(jnp.max(x, axis=0))
            return largest + jnp.log(jnp.sum(jnp.exp(x - largest), axis=0))

        def loss(mean, log_sd, transition, duration, y):
            log_move = jax.nn.log_softmax(transition + no_return, axis=1)
            log_last = jax.nn.log_softmax(duration, axis=0)
            density = -0.5 * ((y[:, None] - mean) / jnp.exp(log_sd)) ** 2 - log_sd - 0.5 * np.log(2 * np.pi)

            def step(carry, e):
                begin, open_bouts, _ = carry
                open_bouts = jnp.concatenate([begin[None, :], open_bouts[:-1]]) + e
                ended = log_sum_exp(open_bouts + log_last)
                return (log_sum_exp(ended[:, None] + log_move), open_bouts, ended), None

            start = jnp.full(states, -np.log(states))
            carry, _ = jax.lax.scan(step, (start, jnp.full((longest, states), -1e4), start), density)
            return -log_sum_exp(carry[2])

        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2, 3)))


class GrainHopper(Model):
    """Discs that slide into a hopper: springs and dashpots between all pairs and at two sloped walls, by the material's constants."""

    kind = "quarry"
    dtype = "float64"
    size = dict(steps=150, grains=24)
    small = dict(steps=6, grains=5)
    rtol = 1e-7

    def make(self, random, steps, grains):
        columns = 6
        place = np.stack([np.arange(grains) % columns - (columns - 1) / 2, 2.5 + np.arange(grains) // columns], axis=1)
        place = place * 0.95 + random.normal(0, 0.03, (grains, 2))
        speed = random.normal(0, 0.3, (grains, 2)) - np.array([0.0, 2.0])
        return np.array([400.0, 3.0, 0.7]), place, speed, random.uniform(0.42, 0.52, grains)

    def rscan(self, steps, grains):
        dt, gravity = 2e-3, np.array([0.0, -9.81])
        other = 1.0 - np.eye(grains)

        @rs.compile
        def loss(theta, place, speed, radius):
            stiffness, damping, slope = theta[0], theta[1], theta[2]
            mass = radius**2
            reach = radius[:, None] + radius[None, :]

            def step(x, v):
                between = x[:, None, :] - x[None, :, :]
                distance = rs.sqrt(rs.sum(between**2, axis=2) + 1e-12)
                normal = between / distance[:, :, None]
                overlap = rs.maximum(reach - distance, 0.0) * other
                closing = rs.sum((v[:, None, :] - v[None, :, :]) * normal, axis=2)
                push = stiffness * overlap - damping * closing * (overlap > 0)
                force = rs.sum(push[:, :, None] * normal, axis=1)
                for side in (-1.0, 1.0):  # the wall's inner normal points up and to the middle
                    wall = rs.stack([-side * rs.sin(slope), rs.cos(slope)])
                    depth = rs.maximum(radius - x @ wall, 0.0)
                    hold = stiffness * depth - damping * (v @ wall) * (depth > 0)
                    force = force + hold[:, None] * wall
                v = v + dt * (force / mass[:, None] + gravity)
                return dict(x=x + dt * v, v=v)

            end = rs.loop(step, init=dict(x=place, v=speed), n_steps=steps).last
            return rs.mean(end.x[:, 1]) + rs.mean(mass * rs.sum(end.v**2, axis=1))

        return rs.value_and_grad(loss)

    def jax(self, steps, grains):
        import jax
        import jax.numpy as jnp

        dt, gravity = 2e-3, np.array([0.0, -9.81])
        other = 1.0 - np.eye(grains)

        def loss(theta, place, speed, radius):
            stiffness, damping, slope = theta
            mass = radius**2
            reach = radius[:, None] + radius[None, :]

            def step(carry, _):
                x, v = carry
                between = x[:, None, :] - x[None, :, :]
                distance = jnp.sqrt(jnp.sum(between**2, axis=2) + 1e-12)
                normal = between / distance[:, :, None]
                overlap = jnp.maximum(reach - distance, 0.0) * other
                closing = jnp.sum((v[:, None, :] - v[None, :, :]) * normal, axis=2)
                push = stiffness * overlap - damping * closing * (overlap > 0)
                force = jnp.sum(push[:, :, None] * normal, axis=1)
                for side in (-1.0, 1.0):
                    wall = jnp.stack([-side * jnp.sin(slope), jnp.cos(slope)])
                    depth = jnp.maximum(radius - x @ wall, 0.0)
                    hold = stiffness * depth - damping * (v @ wall) * (depth > 0)
                    force = force + hold[:, None] * wall
                v = v + dt * (force / mass[:, None] + gravity)
                return (x + dt * v, v), None

            (x, v), _ = jax.lax.scan(step, (place, speed), length=steps)
            return jnp.mean(x[:, 1]) + jnp.mean(mass * jnp.sum(v**2, axis=1))

        return jax.jit(jax.value_and_grad(loss))


class GridOfTheDay(Model):
    """A day of AC power flows by Newton's method, each hour from the one before, and the gradient of losses by lines and capacitors."""

    kind = "quarry"
    dtype = "float64"
    size = dict(hours=24, buses=6, rounds=5)
    small = dict(hours=3, buses=4, rounds=3)

    def make(self, random, hours, buses, rounds):
        tail = np.concatenate([np.arange(buses), np.arange(buses - 2)])  # a ring and chords
        head = np.concatenate([(np.arange(buses) + 1) % buses, np.arange(buses - 2) + 2])
        shape = 0.7 + 0.3 * np.sin(np.arange(hours) / hours * 2 * np.pi - 2)[:, None]
        active = -0.35 * shape * random.uniform(0.5, 1.5, (hours, buses))
        active[:, 1] = 0.8
        return (
            random.uniform(0.1, 0.3, tail.size), random.uniform(0.0, 0.1, buses), tail, head, active,
            -0.3 * np.abs(active) * random.uniform(0.5, 1.0, (hours, buses)),
        )  # fmt: skip

    def rscan(self, hours, buses, rounds):
        @rs.compile
        def cost(reactance, shunt, tail, head, active, reactive):
            resistance = 0.25 * reactance
            size = resistance**2 + reactance**2
            g, b = resistance / size, -reactance / size
            ends = rs.zeros((buses, buses))
            conductance = ends.at[tail, head].add(-g).at[head, tail].add(-g).at[tail, tail].add(g).at[head, head].add(g)
            susceptance = ends.at[tail, head].add(-b).at[head, tail].add(-b).at[tail, tail].add(b).at[head, head].add(b)
            susceptance = susceptance + rs.diag(shunt)

            def voltages(z):  # bus 0 is the reference, bus 1 holds its voltage, the others are loads
                angle = rs.concatenate([rs.zeros(1), z[: buses - 1]])
                return angle, rs.concatenate([rs.array([1.02, 1.01]), z[buses - 1 :]])

            def flows(z):
                angle, volt = voltages(z)
                turn = angle[:, None] - angle[None, :]
                c, s = rs.cos(turn), rs.sin(turn)
                p = volt * ((conductance * c + susceptance * s) @ volt)
                q = volt * ((conductance * s - susceptance * c) @ volt)
                return p, q

            def hour(p, q, z):
                def mismatch(z):
                    found_p, found_q = flows(z)
                    return rs.concatenate([(found_p - p)[1:], (found_q - q)[2:]])

                def newton(z):
                    return z - rs.linalg.solve(rs.jacobian(mismatch)(z), mismatch(z))

                z = rs.loop(newton, init=z, n_steps=rounds).last
                return dict(z=z, loss=rs.sum(flows(z)[0]), off=rs.sum((voltages(z)[1] - 1.0) ** 2))

            flat = rs.concatenate([rs.zeros(buses - 1), rs.ones(buses - 2)])
            out = rs.loop(hour, over=dict(p=active, q=reactive), init=dict(z=flat))
            return rs.sum(out.loss) + 10.0 * rs.sum(out.off)

        return rs.value_and_grad(cost, argnums=(0, 1))

    def jax(self, hours, buses, rounds):
        import jax
        import jax.numpy as jnp

        def cost(reactance, shunt, tail, head, active, reactive):
            resistance = 0.25 * reactance
            size = resistance**2 + reactance**2
            g, b = resistance / size, -reactance / size
            ends = jnp.zeros((buses, buses))
            conductance = ends.at[tail, head].add(-g).at[head, tail].add(-g).at[tail, tail].add(g).at[head, head].add(g)
            susceptance = ends.at[tail, head].add(-b).at[head, tail].add(-b).at[tail, tail].add(b).at[head, head].add(b)
            susceptance = susceptance + jnp.diag(shunt)

            def voltages(z):
                angle = jnp.concatenate([jnp.zeros(1), z[: buses - 1]])
                return angle, jnp.concatenate([jnp.array([1.02, 1.01]), z[buses - 1 :]])

            def flows(z):
                angle, volt = voltages(z)
                turn = angle[:, None] - angle[None, :]
                c, s = jnp.cos(turn), jnp.sin(turn)
                p = volt * ((conductance * c + susceptance * s) @ volt)
                q = volt * ((conductance * s - susceptance * c) @ volt)
                return p, q

            def hour(z, xs):
                p, q = xs

                def mismatch(z):
                    found_p, found_q = flows(z)
                    return jnp.concatenate([(found_p - p)[1:], (found_q - q)[2:]])

                def newton(z, _):
                    return z - jnp.linalg.solve(jax.jacfwd(mismatch)(z), mismatch(z)), None

                z, _ = jax.lax.scan(newton, z, length=rounds)
                return z, (jnp.sum(flows(z)[0]), jnp.sum((voltages(z)[1] - 1.0) ** 2))

            flat = jnp.concatenate([jnp.zeros(buses - 1), jnp.ones(buses - 2)])
            _, (loss, off) = jax.lax.scan(hour, flat, (active, reactive))
            return jnp.sum(loss) + 10.0 * jnp.sum(off)

        return jax.jit(jax.value_and_grad(cost, argnums=(0, 1)))


class InterbankClearing(Model):
    """What banks pay each other after several shocks, with fire sales; the expected shortfall by assets and by debts."""

    kind = "quarry"
    dtype = "float32"
    size = dict(banks=120, debts=900, shocks=8, rounds=40)
    small = dict(banks=7, debts=20, shocks=2, rounds=5)

    def make(self, random, banks, debts, shocks, rounds):
        debtor = np.concatenate([np.arange(banks), random.integers(0, banks, debts - banks)])
        creditor = (debtor + random.integers(1, banks, debts)) % banks
        return (
            random.uniform(1.0, 4.0, banks).astype("f4"), random.lognormal(-1, 0.7, debts).astype("f4"), np.float32(0.3),
            debtor, creditor, random.uniform(0.2, 1.0, (shocks, banks)).astype("f4"),
        )  # fmt: skip

    def rscan(self, banks, debts, shocks, rounds):
        @rs.compile
        def shortfall(assets, owed, depth, debtor, creditor, shock):
            zero = rs.zeros(banks, dtype="float32")
            due = zero.at[debtor].add(owed)

            def cleared(shock):
                def step(paid, price):
                    received = zero.at[creditor].add(owed * (paid / due)[debtor])
                    need = rs.maximum(due - received, 0.0)
                    holding = assets * shock
                    sold = rs.minimum(need / price, holding)
                    price = rs.exp(-depth * rs.sum(sold) / rs.sum(assets))
                    return dict(paid=rs.minimum(due, received + price * holding), price=price)

                end = rs.loop(step, init=dict(paid=due, price=rs.ones((), dtype="float32")), n_steps=rounds).last
                return rs.sum(due - end.paid) / rs.sum(due)

            return rs.mean(rs.vmap(cleared)(shock))

        return rs.value_and_grad(shortfall, argnums=(0, 1, 2))

    def jax(self, banks, debts, shocks, rounds):
        import jax
        import jax.numpy as jnp

        def shortfall(assets, owed, depth, debtor, creditor, shock):
            zero = jnp.zeros(banks, jnp.float32)
            due = zero.at[debtor].add(owed)

            def cleared(shock):
                def step(carry, _):
                    paid, price = carry
                    received = zero.at[creditor].add(owed * (paid / due)[debtor])
                    need = jnp.maximum(due - received, 0.0)
                    holding = assets * shock
                    sold = jnp.minimum(need / price, holding)
                    price = jnp.exp(-depth * jnp.sum(sold) / jnp.sum(assets))
                    return (jnp.minimum(due, received + price * holding), price), None

                (paid, _), _ = jax.lax.scan(step, (due, jnp.float32(1.0)), length=rounds)
                return jnp.sum(due - paid) / jnp.sum(due)

            return jnp.mean(jax.vmap(cleared)(shock))

        return jax.jit(jax.value_and_grad(shortfall, argnums=(0, 1, 2)))


class BloodBankShelf(Model):
    """Platelets that expire, issued oldest first, for many order policies; a policy ends when it has been short too often."""

    kind = "quarry"
    dtype = "int64"
    size = dict(days=365, policies=64, life=6, lead=4)
    small = dict(days=9, policies=3, life=3, lead=2)

    def make(self, random, days, policies, life, lead):
        weekday = np.arange(days) % 7
        return (
            random.integers(20, 60, policies), random.integers(40, 110, policies), np.int64(60),
            random.poisson(np.where(weekday < 5, 12, 6)), random.integers(1, lead, days), random.integers(0, 100, days),
        )  # fmt: skip

    def rscan(self, days, policies, life, lead):
        @rs.compile
        def simulate(reorder, upto, limit, demand, delay, percent):
            def policy(reorder, upto):
                def day(t, wanted, wait, percent, shelf, coming, short, spoiled, cost):
                    shelf = shelf.at[life - 1].add(coming[0])  # shelf[0] expires tonight
                    coming = rs.concatenate([coming[1:], rs.zeros(1, dtype="int64")])
                    older = rs.cumsum(shelf) - shelf
                    issued = rs.clip(wanted - older, 0, shelf)
                    missed = wanted - rs.sum(issued)
                    returned = issued[life - 1] * percent // 1000  # fresh units come back unused
                    shelf = (shelf - issued).at[life - 1].add(returned)
                    gone = shelf[0]
                    shelf = rs.concatenate([shelf[1:], rs.zeros(1, dtype="int64")])
                    position = rs.sum(shelf) + rs.sum(coming)
                    order = rs.where((position <= reorder) & (t % 7 != 6), upto - position, 0)
                    coming = coming.at[wait - 1].add(rs.maximum(order, 0))
                    state = dict(
                        shelf=shelf, coming=coming, short=short + missed, spoiled=spoiled + gone,
                        cost=cost + 300 * gone + 1500 * missed + rs.sum(shelf) + rs.where(order > 0, 200, 0),
                    )  # fmt: skip
                    return state, rs.until(short + missed >= limit)

                out = rs.loop(
                    day,
                    over=dict(t=rs.arange(days), wanted=demand, wait=delay, percent=percent),
                    init=dict(shelf=rs.full((life,), 5, dtype="int64"), coming=rs.zeros(lead, dtype="int64"), short=0, spoiled=0, cost=0),
                )
                return out.steps, out.last.short, out.last.spoiled, out.last.cost, out.last.shelf

            return rs.vmap(policy)(reorder, upto)

        return simulate

    def jax(self, days, policies, life, lead):
        import jax
        import jax.numpy as jnp

        def simulate(reorder, upto, limit, demand, delay, percent):
            def policy(reorder, upto):
                def day(carry):
                    t, shelf, coming, short, spoiled, cost = carry
                    shelf = shelf.at[life - 1].add(coming[0])
                    coming = jnp.concatenate([coming[1:], jnp.zeros(1, jnp.int64)])
                    older = jnp.cumsum(shelf) - shelf
                    issued = jnp.clip(demand[t] - older, 0, shelf)
                    missed = demand[t] - jnp.sum(issued)
                    returned = issued[life - 1] * percent[t] // 1000
                    shelf = (shelf - issued).at[life - 1].add(returned)
                    gone = shelf[0]
                    shelf = jnp.concatenate([shelf[1:], jnp.zeros(1, jnp.int64)])
                    position = jnp.sum(shelf) + jnp.sum(coming)
                    order = jnp.where((position <= reorder) & (t % 7 != 6), upto - position, 0)
                    coming = coming.at[delay[t] - 1].add(jnp.maximum(order, 0))
                    cost = cost + 300 * gone + 1500 * missed + jnp.sum(shelf) + jnp.where(order > 0, 200, 0)
                    return t + 1, shelf, coming, short + missed, spoiled + gone, cost

                start = (0, jnp.full(life, 5), jnp.zeros(lead, jnp.int64), 0, 0, 0)
                steps, shelf, _, short, spoiled, cost = jax.lax.while_loop(lambda c: (c[0] < days) & (c[3] < limit), day, start)
                return steps, short, spoiled, cost, shelf

            return jax.vmap(policy)(reorder, upto)

        return jax.jit(simulate)


class BottlesSoldHessian(Model):
    """Sales of many products with a level, a season of a year, lagged shocks and prices, with heavy tails: the Hessian by what they share."""

    kind = "quarry"
    dtype = "float64"
    size = dict(months=120, products=24, year=12)
    small = dict(months=7, products=2, year=3)

    def make(self, random, months, products, year):
        season = 0.4 * np.sin(np.arange(months)[:, None] * 2 * np.pi / year + random.uniform(0, 6, products))
        price = random.normal(0, 0.2, (months + 1, products))
        y = (
            3
            + season
            - 0.8 * price[1:]
            + 0.05 * random.normal(size=(months, products)).cumsum(0)
            + 0.1 * random.standard_t(5, (months, products))
        )
        return np.array([-0.5, -1.5, 0.3, -0.7, 0.2, -2.0]), y, price

    def rscan(self, months, products, year):
        @rs.compile
        def loss(theta, y, price):
            alpha, gamma = rs.sigmoid(theta[0]), rs.sigmoid(theta[1])
            phi, slope, lag, log_scale = rs.tanh(theta[2]), theta[3], theta[4], theta[5]

            def step(y, price, level, season, shock):
                price_before, price_now = price
                two_ago, one_ago = shock
                forecast = level + season + slope * price_now + lag * price_before + phi * one_ago - 0.5 * phi**2 * two_ago
                shock = y - forecast
                fit = -log_scale - 3.0 * rs.log1p((shock / rs.exp(log_scale)) ** 2 / 5.0)
                return dict(level=level + alpha * shock, season=season + gamma * shock, shock=shock, fit=fit)

            out = rs.loop(
                step,
                over=dict(y=y, price=rs.taps(price, -1, 0)),
                init=dict(level=y[0], season=rs.taps(rs.zeros((year, products)), -year), shock=rs.taps(rs.zeros((2, products)), -2, -1)),
            )
            return -rs.mean(out.fit)

        return rs.hessian(loss)

    def jax(self, months, products, year):
        import jax
        import jax.numpy as jnp

        def loss(theta, y, price):
            alpha, gamma = jax.nn.sigmoid(theta[0]), jax.nn.sigmoid(theta[1])
            phi, slope, lag, log_scale = jnp.tanh(theta[2]), theta[3], theta[4], theta[5]

            def step(carry, xs):
                level, seasons, two_ago, one_ago = carry
                t, y, price_before, price_now = xs
                season = seasons[t % year]
                forecast = level + season + slope * price_now + lag * price_before + phi * one_ago - 0.5 * phi**2 * two_ago
                shock = y - forecast
                fit = -log_scale - 3.0 * jnp.log1p((shock / jnp.exp(log_scale)) ** 2 / 5.0)
                return (level + alpha * shock, seasons.at[t % year].set(season + gamma * shock), one_ago, shock), fit

            none = jnp.zeros(products)
            carry = (y[0], jnp.zeros((year, products)), none, none)
            return -jnp.mean(jax.lax.scan(step, carry, (jnp.arange(months), y, price[:-1], price[1:]))[1])

        return jax.jit(jax.hessian(loss))
