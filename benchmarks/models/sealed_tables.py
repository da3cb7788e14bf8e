"""Tables, queues, events and counters: states that are looked up, sorted, hashed and counted."""

import numpy as np

import rscan as rs
from models import Model


class DragTableShot(Model):
    """A shell flies through tables of drag, air and wind until it comes down; its miss, and the gradient by aim and drag."""

    kind = "tables"
    dtype = "float64"
    size = dict(steps=1600, machs=24, levels=16)
    small = dict(steps=6, machs=5, levels=4)

    def make(self, random, steps, machs, levels):
        mach = np.linspace(0, 3, machs)[:, None]
        drag = (0.2 + 0.3 * np.exp(-(((mach - 1.1) / 0.4) ** 2))) * (1 + 0.05 * random.normal(size=(machs, levels)))
        heights = np.linspace(0, 15000, levels)
        density = 1.225 * np.exp(-heights / 8500)
        wind = 4 * random.normal(size=levels)
        return np.array([650.0, 0.75]), drag, heights, density, wind

    def rscan(self, steps, machs, levels):
        dt, area_by_mass, target = 0.05, 4.4e-4, 14000.0

        @rs.compile
        def miss(aim, drag, heights, density, wind):
            def coefficient(mach, height):
                u = rs.clip(mach * ((machs - 1) / 3.0), 0.0, machs - 1.0)
                v = rs.clip(height * ((levels - 1) / 15000.0), 0.0, levels - 1.0)
                i = rs.minimum(rs.floor(u).astype("int64"), machs - 2)
                j = rs.minimum(rs.floor(v).astype("int64"), levels - 2)
                u, v = u - i, v - j
                low = (1 - v) * drag[i, j] + v * drag[i, j + 1]
                high = (1 - v) * drag[i + 1, j] + v * drag[i + 1, j + 1]
                return (1 - u) * low + u * high

            def step(x, y, vx, vy):
                rx = vx - rs.interp(y, heights, wind)
                speed = rs.sqrt(rx * rx + vy * vy)
                mach = speed / (340.0 - 0.004 * y)
                brake = 0.5 * area_by_mass * rs.interp(y, heights, density) * coefficient(mach, y) * speed
                vx = vx - dt * brake * rx
                vy = vy - dt * (9.81 + brake * vy)
                y = y + dt * vy
                return dict(x=x + dt * vx, y=y, vx=vx, vy=vy), rs.until(y < 0)

            start = dict(x=0.0, y=0.0, vx=aim[0] * rs.cos(aim[1]), vy=aim[0] * rs.sin(aim[1]))
            last = rs.loop(step, init=start, n_steps=steps).last
            return ((last.x - last.y * last.vx / last.vy - target) / 1000) ** 2

        return rs.value_and_grad(miss, wrt=(0, 1))

    def jax(self, steps, machs, levels):
        import jax
        import jax.numpy as jnp
        from jax import lax

        dt, area_by_mass, target = 0.05, 4.4e-4, 14000.0

        def miss(aim, drag, heights, density, wind):
            def coefficient(mach, height):
                u = jnp.clip(mach * ((machs - 1) / 3.0), 0.0, machs - 1.0)
                v = jnp.clip(height * ((levels - 1) / 15000.0), 0.0, levels - 1.0)
                i = jnp.minimum(jnp.floor(u).astype("int64"), machs - 2)
                j = jnp.minimum(jnp.floor(v).astype("int64"), levels - 2)
                u, v = u - i, v - j
                low = (1 - v) * drag[i, j] + v * drag[i, j + 1]
                high = (1 - v) * drag[i + 1, j] + v * drag[i + 1, j + 1]
                return (1 - u) * low + u * high

            def step(state, _):
                x, y, vx, vy, down = state
                rx = vx - jnp.interp(y, heights, wind)
                speed = jnp.sqrt(rx * rx + vy * vy)
                mach = speed / (340.0 - 0.004 * y)
                brake = 0.5 * area_by_mass * jnp.interp(y, heights, density) * coefficient(mach, y) * speed
                new_vx = vx - dt * brake * rx
                new_vy = vy - dt * (9.81 + brake * vy)
                new_y = y + dt * new_vy
                new = x + dt * new_vx, new_y, new_vx, new_vy
                old = x, y, vx, vy
                return (*(jnp.where(down, a, b) for a, b in zip(old, new)), down | (new_y < 0)), None

            start = 0.0, 0.0, aim[0] * jnp.cos(aim[1]), aim[0] * jnp.sin(aim[1]), False
            x, y, vx, vy, _ = lax.scan(step, start, None, length=steps)[0]
            return ((x - y * vx / vy - target) / 1000) ** 2

        return jax.jit(jax.value_and_grad(miss, argnums=(0, 1)))


class ThermostatTariff(Model):
    """A heat pump with hysteresis runs, by performance table and tariff of the hour, or the house cools; cost and gradient."""

    kind = "tables"
    dtype = "float64"
    size = dict(steps=3000)
    small = dict(steps=6)

    def make(self, random, steps):
        outside = 4 + 6 * np.sin(np.arange(steps) * 2 * np.pi / 96) + random.normal(size=steps)
        tariff = 0.2 + 0.15 * random.random(24)
        performance = np.linspace(1.8, 4.5, 9) + 0.1 * random.normal(size=9)
        house = np.array([0.02, 0.1, 0.025, 6.0])  # leak, coupling to the walls, gain per kW, power in kW
        return house, performance, tariff, outside, random.random(steps) ** 3

    def rscan(self, steps):
        @rs.compile
        def cost(house, performance, tariff, outside, sun):
            def step(out, sun, t, air, wall, on):
                on = rs.where(air < 19.5, 1, rs.where(air > 21.0, 0, on))

                def running():
                    place = rs.clip((out + 12.0) / 4.0, 0.0, 7.999)
                    k = rs.floor(place).astype("int64")
                    better = performance[k] + (place - k) * (performance[k + 1] - performance[k])
                    return house[3] * better * house[2], house[3] * 0.25 * tariff[(t // 4) % 24]

                heat, paid = rs.ifelse(on > 0, list(running()), [0.3 * house[2] * sun, rs.constant(0.0)])
                new_air = air + house[0] * (out - air) + house[1] * (wall - air) + heat + 0.05 * sun
                new_wall = wall + 0.1 * house[1] * (air - wall)
                discomfort = rs.maximum(20.0 - new_air, 0.0) ** 2
                return dict(air=new_air, wall=new_wall, on=on, paid=paid + 0.1 * discomfort)

            sequences = dict(out=outside, sun=sun, t=rs.arange(steps))
            return rs.sum(rs.loop(step, over=sequences, init=dict(air=20.0, wall=19.0, on=0)).paid)

        return rs.value_and_grad(cost, wrt=(0, 1, 2))

    def jax(self, steps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def cost(house, performance, tariff, outside, sun):
            def step(state, x):
                air, wall, on = state
                out, sun, t = x
                on = jnp.where(air < 19.5, 1, jnp.where(air > 21.0, 0, on))

                def running():
                    place = jnp.clip((out + 12.0) / 4.0, 0.0, 7.999)
                    k = jnp.floor(place).astype("int64")
                    better = performance[k] + (place - k) * (performance[k + 1] - performance[k])
                    return house[3] * better * house[2], house[3] * 0.25 * tariff[(t // 4) % 24]

                heat, paid = lax.cond(on > 0, running, lambda: (0.3 * house[2] * sun, 0.0))
                new_air = air + house[0] * (out - air) + house[1] * (wall - air) + heat + 0.05 * sun
                new_wall = wall + 0.1 * house[1] * (air - wall)
                discomfort = jnp.maximum(20.0 - new_air, 0.0) ** 2
                return (new_air, new_wall, on), paid + 0.1 * discomfort

            return jnp.sum(lax.scan(step, (20.0, 19.0, 0), (outside, sun, jnp.arange(steps)))[1])

        return jax.jit(jax.value_and_grad(cost, argnums=(0, 1, 2)))


class CallCentre(Model):
    """A queue with many servers by Kiefer and Wolfowitz: what each has to do, sorted, callers who will not wait; gradient by both rates."""

    kind = "sorted states"
    dtype = "float64"
    size = dict(calls=2000, agents=12)
    small = dict(calls=6, agents=3)

    def make(self, random, calls, agents):
        pauses, talks = random.exponential(size=calls), random.exponential(size=calls)
        patience = 1 + random.exponential(size=calls) * agents / 3
        return 1.0, 0.95 * agents, pauses, talks, patience, np.sort(random.exponential(size=agents)) * agents

    def rscan(self, calls, agents):
        @rs.compile
        def burden(pause, talk, pauses, talks, patience, work):
            def step(a, s, p, work):
                wait = work[0]
                leaves = wait > p
                added = work.at[0].add(rs.where(leaves, 0.0, talk * s))
                work = rs.maximum(rs.sort(added) - pause * a, 0.0)
                return dict(work=work, cost=rs.where(leaves, 3.0 + 0.1 * p, wait), served=rs.where(leaves, 0, 1))

            out = rs.loop(step, over=dict(a=pauses, s=talks, p=patience), init=dict(work=work))
            return rs.mean(out.cost), rs.sum(out.served)

        return rs.value_and_grad(burden, wrt=(0, 1), has_aux=True)

    def jax(self, calls, agents):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def burden(pause, talk, pauses, talks, patience, work):
            def step(work, x):
                a, s, p = x
                wait = work[0]
                leaves = wait > p
                added = work.at[0].add(jnp.where(leaves, 0.0, talk * s))
                work = jnp.maximum(jnp.sort(added) - pause * a, 0.0)
                return work, (jnp.where(leaves, 3.0 + 0.1 * p, wait), jnp.where(leaves, 0, 1))

            _, (cost, served) = lax.scan(step, work, (pauses, talks, patience))
            return jnp.mean(cost), jnp.sum(served)

        return jax.jit(jax.value_and_grad(burden, argnums=(0, 1), has_aux=True))


class PhotonHistogram(Model):
    """Photons random-walk in turbid tissue by given draws: what they lose is added to a histogram of depths, what comes back is summed."""

    kind = "scatter-adds"
    dtype = "float32"
    size = dict(events=60, photons=1000, bins=50)
    small = dict(events=4, photons=12, bins=6)
    rtol = 5e-3  # a photon in another bin

    def make(self, random, events, photons, bins):
        optics = np.array([0.3, 9.0, 0.8, 0.4], "f")  # absorption, scattering, anisotropy, reflection at the surface
        return optics, (1 - random.random((events, 3, photons))).astype("f")

    def rscan(self, events, photons, bins):
        @rs.compile
        def walk(optics, draws):
            absorption, scattering, g, mirror = optics[0], optics[1], optics[2], optics[3]
            total = absorption + scattering

            def step(u, z, mu, weight, lost, back):
                z = z - mu * rs.log(u[0]) / total
                outside = z < 0
                back = back + rs.sum(rs.where(outside, (1 - mirror) * weight, 0.0))
                weight = rs.where(outside, mirror * weight, weight)
                z, mu = rs.abs(z), rs.where(outside, -mu, mu)
                gone = weight * absorption / total
                place = rs.minimum(rs.floor(z * (0.1 * bins)).astype("int32"), bins - 1)
                lost = lost.at[place].add(gone)
                bend = (1 - g * g) / (1 - g + 2 * g * u[1])
                cosine = rs.clip((1 + g * g - bend * bend) / (2 * g), -1.0, 1.0)
                turn = rs.cos(2 * np.pi * u[2])
                mu = mu * cosine + rs.sqrt(rs.maximum((1 - mu * mu) * (1 - cosine * cosine), 0.0)) * turn
                return dict(z=z, mu=rs.clip(mu, -1.0, 1.0), weight=weight - gone, lost=lost, back=back)

            one = rs.ones(photons, dtype="float32")
            start = dict(z=0 * one, mu=one, weight=one, lost=rs.zeros(bins, dtype="float32"), back=rs.constant(np.float32(0)))
            last = rs.loop(step, over=dict(u=draws), init=start).last
            return last.lost, last.back, rs.sum(last.weight)

        return walk

    def jax(self, events, photons, bins):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def walk(optics, draws):
            absorption, scattering, g, mirror = optics
            total = absorption + scattering

            def step(state, u):
                z, mu, weight, lost, back = state
                z = z - mu * jnp.log(u[0]) / total
                outside = z < 0
                back = back + jnp.sum(jnp.where(outside, (1 - mirror) * weight, 0.0))
                weight = jnp.where(outside, mirror * weight, weight)
                z, mu = jnp.abs(z), jnp.where(outside, -mu, mu)
                gone = weight * absorption / total
                place = jnp.minimum(jnp.floor(z * (0.1 * bins)).astype("int32"), bins - 1)
                lost = lost.at[place].add(gone)
                bend = (1 - g * g) / (1 - g + 2 * g * u[1])
                cosine = jnp.clip((1 + g * g - bend * bend) / (2 * g), -1.0, 1.0)
                turn = jnp.cos(2 * np.pi * u[2])
                mu = mu * cosine + jnp.sqrt(jnp.maximum((1 - mu * mu) * (1 - cosine * cosine), 0.0)) * turn
                return (z, jnp.clip(mu, -1.0, 1.0), weight - gone, lost, back), None

            one = jnp.ones(photons, "float32")
            start = 0 * one, one, one, jnp.zeros(bins, "float32"), jnp.float32(0)
            (_, _, weight, lost, back), _ = lax.scan(step, start, draws)
            return lost, back, jnp.sum(weight)

        return walk


class UnionFindPercolation(Model):
    """Bonds of a lattice open one by one, clusters are merged by size with halved paths, until the top is connected to the bottom."""

    kind = "integers"
    dtype = "int64"
    size = dict(side=24)
    small = dict(side=3)

    def make(self, random, side):
        # Sites by rows; the one before the last is joined to the whole top row, the last one to the bottom row.
        site = np.arange(side * side).reshape(side, side)
        across = np.stack([site[:, :-1].ravel(), site[:, 1:].ravel()], 1)
        down = np.stack([site[:-1].ravel(), site[1:].ravel()], 1)
        bonds = random.permutation(np.concatenate([across, down]))
        parent = np.arange(side * side + 2)
        parent[site[0]], parent[site[-1]] = side * side, side * side + 1
        sizes = np.ones(side * side + 2, "int64")
        sizes[-2:] = side + 1
        return bonds, parent, sizes

    def rscan(self, side):
        @rs.compile
        def percolate(bonds, parent, sizes):
            def find(parent, x):
                def climb(parent, x):
                    up = parent[parent[x]]
                    return dict(parent=parent.at[x].set(up), x=up), rs.until(parent[up] == up)

                found = rs.loop(climb, init=dict(parent=parent, x=x)).last
                return found.parent, found.x

            def step(bond, parent, sizes, clusters):
                parent, a = find(parent, bond[0])
                parent, b = find(parent, bond[1])
                big, little = rs.where(sizes[a] >= sizes[b], a, b), rs.where(sizes[a] >= sizes[b], b, a)
                new = rs.where(a == b, 0, sizes[little])
                parent = parent.at[little].set(big)
                sizes = sizes.at[big].add(new)
                clusters = clusters - rs.where(a == b, 0, 1)
                parent, top = find(parent, side * side)
                parent, bottom = find(parent, side * side + 1)
                return dict(parent=parent, sizes=sizes, clusters=clusters), rs.until(top == bottom)

            start = dict(parent=parent, sizes=sizes, clusters=side * (side - 2) + 2)
            out = rs.loop(step, over=dict(bond=bonds), init=start)
            return out.steps, out.last.clusters, rs.max(out.last.sizes), out.last.parent

        return percolate

    def jax(self, side):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def percolate(bonds, parent, sizes):
            def find(parent, x):
                def climb(state):
                    parent, x = state
                    up = parent[parent[x]]
                    return parent.at[x].set(up), up

                return lax.while_loop(lambda state: state[0][state[1]] != state[1], climb, (parent, x))

            def step(state):
                i, parent, sizes, clusters, _ = state
                parent, a = find(parent, bonds[i, 0])
                parent, b = find(parent, bonds[i, 1])
                big, little = jnp.where(sizes[a] >= sizes[b], a, b), jnp.where(sizes[a] >= sizes[b], b, a)
                new = jnp.where(a == b, 0, sizes[little])
                parent = parent.at[little].set(big)
                sizes = sizes.at[big].add(new)
                clusters = clusters - jnp.where(a == b, 0, 1)
                parent, top = find(parent, side * side)
                parent, bottom = find(parent, side * side + 1)
                return i + 1, parent, sizes, clusters, top == bottom

            going = lambda state: (state[0] < bonds.shape[0]) & ~state[4]
            i, parent, sizes, clusters, _ = lax.while_loop(going, step, (0, parent, sizes, side * (side - 2) + 2, False))
            return i, clusters, jnp.max(sizes), parent

        return percolate


class CountMinSketch(Model):
    """A count-min sketch of a stream with conservative updates: rows of counters at hashed places, and the most frequent key so far."""

    kind = "integers"
    dtype = "uint32"
    size = dict(stream=4000, rows=5, bits=9)
    small = dict(stream=6, rows=2, bits=2)

    def make(self, random, stream, rows, bits):
        keys = (random.zipf(1.4, size=stream) * 2654435761 % 2**32).astype("uint32")
        return keys, random.integers(1, 2**32, size=rows, dtype="uint32")

    def rscan(self, stream, rows, bits):
        @rs.compile
        def sketch(keys, seeds):
            def mix(h):  # the end of MurmurHash3
                h = (h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B)
                h = (h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35)
                return h ^ (h >> np.uint32(16))

            def step(key, table, best, often):
                places = mix(key ^ seeds) & np.uint32(2**bits - 1)
                row = rs.arange(rows)
                estimate = rs.min(table[row, places]) + 1
                table = table.at[row, places].max(estimate)
                best = rs.where(estimate > often, key, best)
                return dict(table=table, best=best, often=rs.maximum(often, estimate), estimate=estimate)

            start = dict(table=rs.zeros((rows, 2**bits), dtype="int32"), best=keys[0], often=rs.constant(np.int32(0)))
            out = rs.loop(step, over=dict(key=keys), init=start)
            return out.last.table, out.last.best, out.estimate

        return sketch

    def jax(self, stream, rows, bits):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def sketch(keys, seeds):
            def mix(h):
                h = (h ^ (h >> jnp.uint32(16))) * jnp.uint32(0x85EBCA6B)
                h = (h ^ (h >> jnp.uint32(13))) * jnp.uint32(0xC2B2AE35)
                return h ^ (h >> jnp.uint32(16))

            def step(state, key):
                table, best, often = state
                places = mix(key ^ seeds) & jnp.uint32(2**bits - 1)
                row = jnp.arange(rows)
                estimate = jnp.min(table[row, places]) + 1
                table = table.at[row, places].max(estimate)
                best = jnp.where(estimate > often, key, best)
                return (table, best, jnp.maximum(often, estimate)), estimate

            start = jnp.zeros((rows, 2**bits), "int32"), keys[0], jnp.int32(0)
            (table, best, _), estimates = lax.scan(step, start, keys)
            return table, best, estimates

        return sketch


class LempelZivTrie(Model):
    """Lempel and Ziv's phrases of 1978: a trie in a table of children, which is walked down or gets a new leaf with each letter."""

    kind = "integers"
    dtype = "int64"
    size = dict(letters=2000, alphabet=4)
    small = dict(letters=6, alphabet=2)

    def make(self, random, letters, alphabet):
        chain = random.dirichlet(np.full(alphabet, 0.4), size=alphabet)
        text = [0]
        for u in random.random(letters - 1):
            text.append(min(int(np.searchsorted(np.cumsum(chain[text[-1]]), u)), alphabet - 1))
        return (np.array(text),)

    def rscan(self, letters, alphabet):
        @rs.compile
        def phrases(text):
            def step(c, child, node, free, depth):
                following = child[node, c]
                walk = [child, following, free, depth + 1, rs.constant(0)]
                leaf = [child.at[node, c].set(free), rs.constant(0), free + 1, rs.constant(0), depth + 1]
                child, node, free, depth, length = rs.ifelse(following > 0, walk, leaf)
                return dict(child=child, node=node, free=free, depth=depth, length=length)

            start = dict(child=rs.zeros((letters + 1, alphabet), dtype="int64"), node=0, free=1, depth=0)
            out = rs.loop(step, over=dict(c=text), init=start)
            return out.last.free - 1, out.length, out.last.child

        return phrases

    def jax(self, letters, alphabet):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def phrases(text):
            def step(state, c):
                child, node, free, depth = state
                following = child[node, c]
                walk = lambda: ((child, following, free, depth + 1), 0)
                leaf = lambda: ((child.at[node, c].set(free), 0, free + 1, 0), depth + 1)
                return lax.cond(following > 0, walk, leaf)

            start = jnp.zeros((letters + 1, alphabet), "int64"), 0, 1, 0
            (child, _, free, _), lengths = lax.scan(step, start, text)
            return free - 1, lengths, child

        return phrases


class MutualExcitement(Model):
    """A Hawkes process of several kinds of events that excite each other: log-likelihood of marked times, and the gradient by all rates."""

    kind = "scatter-adds"
    dtype = "float64"
    size = dict(events=2000, kinds=10)
    small = dict(events=6, kinds=3)

    def make(self, random, events, kinds):
        parameters = dict(base=0.5 + random.random(kinds), excite=random.random((kinds, kinds)) / kinds, decay=1 + 2 * random.random(kinds))
        times = np.cumsum(random.exponential(size=events) / kinds)
        return parameters, times, random.integers(0, kinds, size=events)

    def rscan(self, events, kinds):
        @rs.compile
        def nll(p, times, marks):
            def step(pause, mark, trace):
                trace = trace * rs.exp(-p["decay"] * pause)
                rate = p["base"][mark] + rs.dot(p["excite"][mark], trace)
                return dict(trace=trace.at[mark].add(1.0), log_rate=rs.log(rate))

            pauses = rs.diff(times, prepend=0.0)
            out = rs.loop(step, over=dict(pause=pauses, mark=marks), init=dict(trace=rs.zeros(kinds)))
            end = times[-1]
            decay = p["decay"][marks]
            spent = (1 - rs.exp(-decay * (end - times))) / decay
            return end * rs.sum(p["base"]) + rs.sum(rs.sum(p["excite"], axis=0)[marks] * spent) - rs.sum(out.log_rate)

        return rs.value_and_grad(nll)

    def jax(self, events, kinds):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def nll(p, times, marks):
            def step(trace, x):
                pause, mark = x
                trace = trace * jnp.exp(-p["decay"] * pause)
                rate = p["base"][mark] + jnp.dot(p["excite"][mark], trace)
                return trace.at[mark].add(1.0), jnp.log(rate)

            pauses = jnp.diff(times, prepend=0.0)
            _, log_rates = lax.scan(step, jnp.zeros(kinds), (pauses, marks))
            end = times[-1]
            decay = p["decay"][marks]
            spent = (1 - jnp.exp(-decay * (end - times))) / decay
            return end * jnp.sum(p["base"]) + jnp.sum(jnp.sum(p["excite"], axis=0)[marks] * spent) - jnp.sum(log_rates)

        return jax.jit(jax.value_and_grad(nll))


class OrderUpToPipeline(Model):
    """Stocks with lost sales and orders in lots on their way for some days, in a ring; costs of many order-up-to levels for one demand."""

    kind = "integers"
    dtype = "int64"
    size = dict(days=1500, levels=40, lead=7)
    small = dict(days=6, levels=3, lead=2)

    def make(self, random, days, levels, lead):
        return np.arange(levels) * 2 + 10, random.poisson(6, size=days)

    def rscan(self, days, levels, lead):
        def policy(level, demand):
            def step(d, t, stock, pipeline, sums):
                stock = stock + pipeline[t % lead]
                pipeline = pipeline.at[t % lead].set(0)
                sold = rs.minimum(stock, d)
                stock = stock - sold
                short = rs.maximum(level - stock - rs.sum(pipeline), 0)
                lots = (short + 3) // 4
                pipeline = pipeline.at[t % lead].set(4 * lots)
                sums = dict(
                    held=sums["held"] + stock,
                    lost=sums["lost"] + d - sold,
                    orders=sums["orders"] + rs.where(lots > 0, 1, 0),
                    worst=rs.maximum(sums["worst"], d - sold),
                )
                return dict(stock=stock, pipeline=pipeline, sums=sums)

            start = dict(stock=level, pipeline=rs.zeros(lead, dtype="int64"), sums=dict(held=0, lost=0, orders=0, worst=0))
            sums = rs.loop(step, over=dict(d=demand, t=rs.arange(days)), init=start).last.sums
            return dict(cost=sums["held"] + 9 * sums["lost"] + 32 * sums["orders"], **sums)

        return rs.compile(rs.vmap(policy, in_axes=(0, None)))

    def jax(self, days, levels, lead):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def policy(level, demand):
            def step(state, x):
                stock, pipeline, sums = state
                d, t = x
                stock = stock + pipeline[t % lead]
                pipeline = pipeline.at[t % lead].set(0)
                sold = jnp.minimum(stock, d)
                stock = stock - sold
                short = jnp.maximum(level - stock - jnp.sum(pipeline), 0)
                lots = (short + 3) // 4
                pipeline = pipeline.at[t % lead].set(4 * lots)
                sums = dict(
                    held=sums["held"] + stock,
                    lost=sums["lost"] + d - sold,
                    orders=sums["orders"] + jnp.where(lots > 0, 1, 0),
                    worst=jnp.maximum(sums["worst"], d - sold),
                )
                return (stock, pipeline, sums), None

            start = level, jnp.zeros(lead, "int64"), dict(held=0, lost=0, orders=0, worst=0)
            (_, _, sums), _ = lax.scan(step, start, (demand, jnp.arange(days)))
            return dict(cost=sums["held"] + 9 * sums["lost"] + 32 * sums["orders"], **sums)

        return jax.jit(jax.vmap(policy, in_axes=(0, None)))


class WavetableVoice(Model):
    """A synthesiser's voice: a table read between its points, a filter of second order, an echo from far back; gradient."""

    kind = "tables"
    dtype = "float32"
    size = dict(samples=3000, points=128, echo=441)
    small = dict(samples=6, points=8, echo=3)
    rtol = 2e-3

    def make(self, random, samples, points, echo):
        t = 2 * np.pi * np.arange(points) / points
        table = np.sin(t) + 0.3 * np.sin(3 * t) + 0.02 * random.normal(size=points)
        knobs = np.array([0.02, 0.15, 0.25, 0.9, 0.4])  # pitch, depth of the wobble, cutoff, damping, echo
        return table.astype("f"), knobs.astype("f"), random.normal(size=samples).astype("f")

    def rscan(self, samples, points, echo):
        @rs.compile
        def misfit(table, knobs, wanted):
            pitch, depth, cutoff, damping, feedback = (knobs[k] for k in range(5))
            w = 2 * rs.sin(0.5 * np.pi * cutoff)
            a1, a2 = 2 - w * w - damping * w, damping * w - 1
            b = w * w / 4

            def step(target, phase, lfo, raw, low, out):
                lfo = lfo + np.float32(0.002)
                phase = phase + pitch * (1 + depth * rs.sin(lfo))
                phase = phase - rs.floor(phase)
                place = phase * points
                k = rs.floor(place).astype("int32")
                f = place - k.astype("float32")
                p0, p1 = table[(k - 1) % points], table[k % points]
                p2, p3 = table[(k + 1) % points], table[(k + 2) % points]
                new = p1 + 0.5 * f * (p2 - p0 + f * (2 * p0 - 5 * p1 + 4 * p2 - p3 + f * (3 * (p1 - p2) + p3 - p0)))
                (raw2, raw1), (low2, low1), (far, near) = raw, low, out
                filtered = b * (new + 2 * raw1 + raw2) + a1 * low1 + a2 * low2
                heard = rs.tanh(filtered + feedback * far + 0.05 * near)
                return dict(phase=phase, lfo=lfo, raw=new, low=filtered, out=heard, e=(heard - target) ** 2)

            two, zero = rs.zeros(2, dtype="float32"), rs.constant(np.float32(0))
            silence = rs.zeros(echo, dtype="float32")
            start = dict(phase=zero, lfo=zero, raw=rs.taps(two, -2, -1), low=rs.taps(two, -2, -1), out=rs.taps(silence, -echo, -1))
            return rs.mean(rs.loop(step, over=dict(target=wanted), init=start).e)

        return rs.value_and_grad(misfit, wrt=(0, 1))

    def jax(self, samples, points, echo):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def misfit(table, knobs, wanted):
            pitch, depth, cutoff, damping, feedback = knobs
            w = 2 * jnp.sin(0.5 * np.pi * cutoff)
            a1, a2 = 2 - w * w - damping * w, damping * w - 1
            b = w * w / 4

            def step(state, x):
                phase, lfo, raw2, raw1, low2, low1, near, ring = state
                target, t = x
                lfo = lfo + jnp.float32(0.002)
                phase = phase + pitch * (1 + depth * jnp.sin(lfo))
                phase = phase - jnp.floor(phase)
                place = phase * points
                k = jnp.floor(place).astype("int32")
                f = place - k.astype("float32")
                p0, p1 = table[(k - 1) % points], table[k % points]
                p2, p3 = table[(k + 1) % points], table[(k + 2) % points]
                new = p1 + 0.5 * f * (p2 - p0 + f * (2 * p0 - 5 * p1 + 4 * p2 - p3 + f * (3 * (p1 - p2) + p3 - p0)))
                filtered = b * (new + 2 * raw1 + raw2) + a1 * low1 + a2 * low2
                heard = jnp.tanh(filtered + feedback * ring[t % echo] + 0.05 * near)
                ring = ring.at[t % echo].set(heard)
                return (phase, lfo, raw1, new, low1, filtered, heard, ring), (heard - target) ** 2

            zero = jnp.float32(0)
            start = zero, zero, zero, zero, zero, zero, zero, jnp.zeros(echo, "float32")
            return jnp.mean(lax.scan(step, start, (wanted, jnp.arange(samples)))[1])

        return jax.jit(jax.value_and_grad(misfit, argnums=(0, 1)))
