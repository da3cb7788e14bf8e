"""Programs that people bring from their workshop on the first day: lattices, rivers, roads, coders, texts, decoders, maps, fractions, stocks, images."""

import numpy as np

import rscan as rs
from models import Model


class RainbowMaxLattice(Model):
    """An American call on the better of two shares, on the four-branch lattice of Boyle, Evnine and Gibbs, with all its sensitivities."""

    kind = "workshop"
    dtype = "float64"
    size = dict(steps=60)
    small = dict(steps=5)

    def make(self, random, steps):
        return (np.array([100.0, 95.0, 0.25, 0.35, 0.3, 0.04]),)  # both prices, both volatilities, correlation, rate

    def rscan(self, steps):
        n, strike, q, dt = steps, 98.0, 0.08, 1.0 / steps
        root = dt**0.5

        @rs.compile
        def price(p):
            s1, s2, v1, v2, rho, r = (p[i] for i in range(6))
            m1, m2 = (r - q - 0.5 * v1**2) / v1, (r - q - 0.5 * v2**2) / v2
            uu = 0.25 * (1 + rho + root * (m1 + m2))
            ud = 0.25 * (1 - rho + root * (m1 - m2))
            du = 0.25 * (1 - rho + root * (m2 - m1))
            dd = 0.25 * (1 + rho - root * (m1 + m2))
            discount = rs.exp(-r * dt)
            i = rs.arange(n + 1)

            def payoff(k):
                a = s1 * rs.exp((2 * i - k) * v1 * root)
                b = s2 * rs.exp((2 * i - k) * v2 * root)
                return rs.maximum(rs.maximum(a[:, None], b[None, :]) - strike, 0.0)

            def step(k, value):
                kept = discount * (uu * value[1:, 1:] + ud * value[1:, :-1] + du * value[:-1, 1:] + dd * value[:-1, :-1])
                return rs.maximum(rs.pad(kept, ((0, 1), (0, 1))), payoff(k))

            return rs.loop(step, over=rs.arange(n), init=payoff(n), reverse=True)[0][0, 0]

        return rs.value_and_grad(price)

    def jax(self, steps):
        import jax
        import jax.numpy as jnp

        n, strike, q, dt = steps, 98.0, 0.08, 1.0 / steps
        root = dt**0.5

        def price(p):
            s1, s2, v1, v2, rho, r = p
            m1, m2 = (r - q - 0.5 * v1**2) / v1, (r - q - 0.5 * v2**2) / v2
            uu = 0.25 * (1 + rho + root * (m1 + m2))
            ud = 0.25 * (1 - rho + root * (m1 - m2))
            du = 0.25 * (1 - rho + root * (m2 - m1))
            dd = 0.25 * (1 + rho - root * (m1 + m2))
            discount = jnp.exp(-r * dt)
            i = jnp.arange(n + 1)

            def payoff(k):
                a = s1 * jnp.exp((2 * i - k) * v1 * root)
                b = s2 * jnp.exp((2 * i - k) * v2 * root)
                return jnp.maximum(jnp.maximum(a[:, None], b[None, :]) - strike, 0.0)

            def step(value, k):
                kept = discount * (uu * value[1:, 1:] + ud * value[1:, :-1] + du * value[:-1, 1:] + dd * value[:-1, :-1])
                return jnp.maximum(jnp.pad(kept, ((0, 1), (0, 1))), payoff(k)), None

            return jax.lax.scan(step, payoff(n), jnp.arange(n), reverse=True)[0][0, 0]

        return jax.jit(jax.value_and_grad(price))


class RiverNetworkRouting(Model):
    """Muskingum's routing through a tree of reaches whose storage depends on the flow, calibrated at the outlet: a loop over reaches in one over days."""

    kind = "workshop"
    dtype = "float64"
    size = dict(days=180, reaches=24)
    small = dict(days=6, reaches=5)

    def make(self, random, days, reaches):
        down = np.array([random.integers(i + 1, min(i + 5, reaches)) if i + 1 < reaches else reaches for i in range(reaches)])
        rain = random.gamma(0.3, 2.0, size=(days, 1)) * random.uniform(0.5, 1.5, size=(days, reaches))
        lateral = 0.2 + rain
        observed = lateral.sum(axis=1) * random.lognormal(0.0, 0.1, size=days)
        return {"log_k": random.normal(0.0, 0.2, size=reaches), "x": 0.2, "power": 0.3}, lateral, down, observed

    def rscan(self, days, reaches):
        @rs.compile
        def misfit(p, lateral, down, observed):
            k0, x, power = rs.exp(p["log_k"]), p["x"], p["power"]

            def day(lateral, was_in, was_out):
                def reach(i, down, lateral, k0, was_in, was_out, arriving):
                    inflow = lateral + arriving[i]
                    k = k0 * (0.5 * (inflow + was_out) + 0.1) ** (-power)
                    d = k * (1 - x) + 0.5
                    outflow = ((0.5 - k * x) * inflow + (0.5 + k * x) * was_in + (k * (1 - x) - 0.5) * was_out) / d
                    outflow = rs.maximum(outflow, 0.01)
                    return dict(arriving=arriving.at[down].add(outflow), inflow=inflow, outflow=outflow)

                rows = dict(i=rs.arange(reaches), down=down, lateral=lateral, k0=k0, was_in=was_in, was_out=was_out)
                net = rs.loop(reach, over=rows, init=dict(arriving=rs.zeros(reaches + 1)))
                return dict(was_in=net.inflow, was_out=net.outflow)

            start = rs.full(reaches, 0.5)
            out = rs.loop(day, over=dict(lateral=lateral), init=dict(was_in=start, was_out=start))
            return rs.mean((rs.log(out.was_out[:, -1]) - rs.log(observed)) ** 2)

        return rs.value_and_grad(misfit)

    def jax(self, days, reaches):
        import jax
        import jax.numpy as jnp

        def misfit(p, lateral, down, observed):
            k0, x, power = jnp.exp(p["log_k"]), p["x"], p["power"]

            def day(before, lateral):
                def reach(arriving, row):
                    i, down, lateral, k0, was_in, was_out = row
                    inflow = lateral + arriving[i]
                    k = k0 * (0.5 * (inflow + was_out) + 0.1) ** (-power)
                    d = k * (1 - x) + 0.5
                    outflow = ((0.5 - k * x) * inflow + (0.5 + k * x) * was_in + (k * (1 - x) - 0.5) * was_out) / d
                    outflow = jnp.maximum(outflow, 0.01)
                    return arriving.at[down].add(outflow), (inflow, outflow)

                rows = (jnp.arange(reaches), down, lateral, k0, *before)
                now = jax.lax.scan(reach, jnp.zeros(reaches + 1), rows)[1]
                return now, now[1][-1]

            start = jnp.full(reaches, 0.5)
            outlet = jax.lax.scan(day, (start, start), lateral)[1]
            return jnp.mean((jnp.log(outlet) - jnp.log(observed)) ** 2)

        return jax.jit(jax.value_and_grad(misfit))


class FrankWolfeAssignment(Model):
    """Traffic in equilibrium by Frank and Wolfe: shortest paths of each origin until nothing improves, loads carried back along the trees, a bisection."""

    kind = "workshop"
    dtype = "float64"
    size = dict(side=6, origins=6, rounds=10)
    small = dict(side=3, origins=2, rounds=3)

    def make(self, random, side, origins, rounds):
        nodes = side * side
        links = []
        for v in range(nodes):
            row, column = divmod(v, side)
            for r, c in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)):
                if 0 <= r < side and 0 <= c < side:
                    links.append((v, r * side + c))
        count = len(links)
        tail = np.array([a for a, _ in links] + [0])  # one link more stands for "none"
        into = np.full((nodes, 4), count)
        for v in range(nodes):
            found = [k for k, (_, head) in enumerate(links) if head == v]
            into[v, : len(found)] = found
        free, capacity = random.uniform(1.0, 3.0, size=count), random.uniform(5.0, 20.0, size=count)
        starts = random.choice(nodes, size=origins, replace=False)
        demand = random.gamma(2.0, 0.4, size=(origins, nodes))
        return free, capacity, tail, into, starts, demand

    def rscan(self, side, origins, rounds):
        nodes = side * side

        @rs.compile
        def assign(free, capacity, tail, into, starts, demand):
            links = free.shape[0]

            def cost_of(flow):
                return free * (1 + 0.15 * (flow / capacity) ** 4)

            def load_all(cost):
                padded = rs.append(cost, np.inf)

                def one_origin(origin, demand):
                    def relax(dist, pred):
                        via = dist[tail[into]] + padded[into]
                        best = rs.argmin(via, axis=1)
                        value = rs.min(via, axis=1)
                        better = value < dist
                        dist = rs.where(better, value, dist)
                        pred = rs.where(better, into[rs.arange(nodes), best], pred)
                        return dict(dist=dist, pred=pred), rs.until(~rs.any(better))

                    start = dict(dist=rs.full(nodes, np.inf).at[origin].set(0.0), pred=rs.full(nodes, links))
                    tree = rs.loop(relax, init=start, n_steps=nodes).last
                    dist, pred = tree.dist, tree.pred

                    def carry_back(v, load, flow):
                        link = pred[v]
                        here = rs.where(v == origin, 0.0, load[v])
                        return dict(load=load.at[tail[link]].add(here), flow=flow.at[link].add(here))

                    begin = dict(load=demand, flow=rs.zeros(links + 1))
                    return rs.loop(carry_back, over=dict(v=rs.argsort(-dist)), init=begin).last.flow[:-1]

                return rs.sum(rs.vmap(one_origin)(starts, demand), axis=0)

            def improve(flow):
                cost = cost_of(flow)
                target = load_all(cost)
                direction = target - flow

                def halve(_, bounds):
                    low, high = bounds
                    middle = 0.5 * (low + high)
                    uphill = rs.sum(direction * cost_of(flow + middle * direction)) > 0
                    return rs.where(uphill, low, middle), rs.where(uphill, middle, high)

                low, high = rs.fori(0, 20, halve, (0.0, 1.0))
                gap = -rs.sum(direction * cost) / rs.sum(flow * cost)
                return dict(flow=flow + 0.5 * (low + high) * direction, gap=gap)

            out = rs.loop(improve, init=dict(flow=load_all(free)), n_steps=rounds)
            return out.last.flow, out.gap

        return assign

    def jax(self, side, origins, rounds):
        import jax
        import jax.numpy as jnp

        nodes = side * side

        def assign(free, capacity, tail, into, starts, demand):
            links = free.shape[0]

            def cost_of(flow):
                return free * (1 + 0.15 * (flow / capacity) ** 4)

            def load_all(cost):
                padded = jnp.append(cost, jnp.inf)

                def one_origin(origin, demand):
                    def relax(state):
                        dist, pred, _ = state
                        via = dist[tail[into]] + padded[into]
                        best = jnp.argmin(via, axis=1)
                        value = jnp.min(via, axis=1)
                        better = value < dist
                        return jnp.where(better, value, dist), jnp.where(better, into[jnp.arange(nodes), best], pred), jnp.any(better)

                    start = (jnp.full(nodes, jnp.inf).at[origin].set(0.0), jnp.full(nodes, links), True)
                    dist, pred, _ = jax.lax.while_loop(lambda state: state[2], relax, start)

                    def carry_back(state, v):
                        load, flow = state
                        link = pred[v]
                        here = jnp.where(v == origin, 0.0, load[v])
                        return (load.at[tail[link]].add(here), flow.at[link].add(here)), None

                    return jax.lax.scan(carry_back, (demand, jnp.zeros(links + 1)), jnp.argsort(-dist))[0][1][:-1]

                return jnp.sum(jax.vmap(one_origin)(starts, demand), axis=0)

            def improve(flow, _):
                cost = cost_of(flow)
                target = load_all(cost)
                direction = target - flow

                def halve(_, bounds):
                    low, high = bounds
                    middle = 0.5 * (low + high)
                    uphill = jnp.sum(direction * cost_of(flow + middle * direction)) > 0
                    return jnp.where(uphill, low, middle), jnp.where(uphill, middle, high)

                low, high = jax.lax.fori_loop(0, 20, halve, (0.0, 1.0))
                gap = -jnp.sum(direction * cost) / jnp.sum(flow * cost)
                return flow + 0.5 * (low + high) * direction, gap

            return jax.lax.scan(improve, load_all(free), length=rounds)

        return jax.jit(assign)


class AdaptiveRangeCoder(Model):
    """Subbotin's range coder with frequencies that adapt and are halved: bytes leave in an inner loop that often takes no step."""

    kind = "workshop"
    dtype = "int64"
    size = dict(symbols=4000, letters=16)
    small = dict(symbols=60, letters=5)

    def make(self, random, symbols, letters):
        shares = random.dirichlet(np.full(letters, 0.5))
        return (random.choice(letters, size=symbols, p=shares),)

    def rscan(self, symbols, letters):
        full, top, bottom = 0xFFFFFFFF, 1 << 24, 1 << 16

        @rs.compile
        def encode(text):
            letter = rs.arange(letters)

            def settled(low, width):
                return (low ^ ((low + width) & full)) < top

            def unfinished(low, width):
                return settled(low, width) | (width < bottom)

            def emit(low, width, out, used):
                width = rs.where(settled(low, width), width, -low & (bottom - 1))
                out = out.at[used].set(low >> 24)
                low, width = (low << 8) & full, (width << 8) & full
                return dict(low=low, width=width, out=out, used=used + 1), rs.until(~unfinished(low, width))

            def step(symbol, low, width, out, used, counts):
                share = width // rs.sum(counts)
                low = (low + share * rs.sum(rs.where(letter < symbol, counts, 0))) & full
                width = share * counts[symbol]
                sent = rs.loop(
                    emit,
                    init=dict(low=low, width=width, out=out, used=used),
                    n_steps=rs.where(unfinished(low, width), 8, 0),
                ).last
                counts = counts.at[symbol].add(24)
                counts = rs.where(rs.sum(counts) > 4096, (counts + 1) // 2, counts)
                return dict(low=sent.low, width=sent.width, out=sent.out, used=sent.used, counts=counts)

            start = dict(low=0, width=full, out=rs.zeros(symbols + 8, dtype="int64"), used=0, counts=rs.ones(letters, dtype="int64"))
            end = rs.loop(step, over=dict(symbol=text), init=start).last
            return end.out, end.used, end.low, end.counts

        return encode

    def jax(self, symbols, letters):
        import jax
        import jax.numpy as jnp

        full, top, bottom = 0xFFFFFFFF, 1 << 24, 1 << 16

        def encode(text):
            letter = jnp.arange(letters)

            def settled(low, width):
                return (low ^ ((low + width) & full)) < top

            def unfinished(state):
                low, width, _, _ = state
                return settled(low, width) | (width < bottom)

            def emit(state):
                low, width, out, used = state
                width = jnp.where(settled(low, width), width, -low & (bottom - 1))
                return (low << 8) & full, (width << 8) & full, out.at[used].set(low >> 24), used + 1

            def step(state, symbol):
                (low, width, out, used), counts = state
                share = width // jnp.sum(counts)
                low = (low + share * jnp.sum(jnp.where(letter < symbol, counts, 0))) & full
                width = share * counts[symbol]
                sent = jax.lax.while_loop(unfinished, emit, (low, width, out, used))
                counts = counts.at[symbol].add(24)
                counts = jnp.where(jnp.sum(counts) > 4096, (counts + 1) // 2, counts)
                return (sent, counts), None

            start = ((0, full, jnp.zeros(symbols + 8, dtype=jnp.int64), 0), jnp.ones(letters, dtype=jnp.int64))
            (low, _, out, used), counts = jax.lax.scan(step, start, text)[0]
            return out, used, low, counts

        return jax.jit(encode)


class SuffixAutomatonCounts(Model):
    """The automaton of all substrings of a text, built letter by letter; then how many there are, and how often the most frequent of each length occurs."""

    kind = "workshop"
    dtype = "int64"
    size = dict(letters=800, lengths=12)
    small = dict(letters=20, lengths=4)

    def make(self, random, letters, lengths):
        text, word = [], random.integers(0, 4, size=9)
        while len(text) < letters:
            text.extend(word if random.uniform() < 0.3 else random.integers(0, 4, size=5))
        return (np.array(text[:letters]),)

    def rscan(self, letters, lengths):
        room = 2 * letters

        @rs.compile
        def count(text):
            def extend(c, to, link, length, often, size, final):
                new = size
                length = length.at[new].set(length[final] + 1)
                often = often.at[new].set(1)

                def climb(p, to):
                    to = to.at[p, c].set(new)
                    p = link[p]
                    return dict(p=p, to=to), rs.until((p == -1) | (to[p, c] != -1))

                climbed = rs.loop(climb, init=dict(p=final, to=to)).last
                p, to = climbed.p, climbed.to
                q = to[p, c]

                def straight():
                    return to, link.at[new].set(rs.where(p == -1, 0, q)), length, size + 1

                def cloned():
                    twin = size + 1

                    def redirect(p, to):
                        to = to.at[p, c].set(twin)
                        p = link[p]
                        return dict(p=p, to=to), rs.until((p == -1) | (to[p, c] != q))

                    turned = rs.loop(redirect, init=dict(p=p, to=to.at[twin].set(to[q]))).last.to
                    links = link.at[twin].set(link[q]).at[q].set(twin).at[new].set(twin)
                    return turned, links, length.at[twin].set(length[p] + 1), size + 2

                to, link, length, size = rs.ifelse((p == -1) | (length[p] + 1 == length[q]), straight(), cloned())
                return dict(to=to, link=link, length=length, often=often, size=size, final=new)

            start = dict(
                to=rs.full((room, 4), -1),
                link=rs.full(room, -1),
                length=rs.zeros(room, dtype="int64"),
                often=rs.zeros(room, dtype="int64"),
                size=1,
                final=0,
            )
            built = rs.loop(extend, over=dict(c=text), init=start).last
            parent, length = rs.maximum(built.link, 0), built.length

            def hand_on(v, often):
                return often.at[parent[v]].add(rs.where(length[v] > 0, often[v], 0))

            often = rs.loop(hand_on, over=rs.argsort(-length), init=built.often).last
            shortest = length[parent]
            wanted = rs.arange(1, lengths + 1)[:, None]
            top = rs.max(rs.where((shortest < wanted) & (wanted <= length), often, 0), axis=1)
            return built.size, rs.sum(length - shortest), top

        return count

    def jax(self, letters, lengths):
        import jax
        import jax.numpy as jnp

        room = 2 * letters

        def count(text):
            def extend(state, c):
                to, link, length, often, size, final = state
                new = size
                length = length.at[new].set(length[final] + 1)
                often = often.at[new].set(1)

                def climbing(state):
                    p, to = state
                    return (p != -1) & (to[p, c] == -1)

                p, to = jax.lax.while_loop(climbing, lambda s: (link[s[0]], s[1].at[s[0], c].set(new)), (final, to))
                q = to[p, c]

                def straight(to, link, length):
                    return to, link.at[new].set(jnp.where(p == -1, 0, q)), length, size + 1

                def cloned(to, link, length):
                    twin = size + 1

                    def redirecting(state):
                        p, to = state
                        return (p != -1) & (to[p, c] == q)

                    begin = (p, to.at[twin].set(to[q]))
                    turned = jax.lax.while_loop(redirecting, lambda s: (link[s[0]], s[1].at[s[0], c].set(twin)), begin)[1]
                    links = link.at[twin].set(link[q]).at[q].set(twin).at[new].set(twin)
                    return turned, links, length.at[twin].set(length[p] + 1), size + 2

                to, link, length, size = jax.lax.cond((p == -1) | (length[p] + 1 == length[q]), straight, cloned, to, link, length)
                return (to, link, length, often, size, new), None

            start = (
                jnp.full((room, 4), -1),
                jnp.full(room, -1),
                jnp.zeros(room, dtype=jnp.int64),
                jnp.zeros(room, dtype=jnp.int64),
                jnp.int64(1),
                jnp.int64(0),
            )
            _, link, length, often, size, _ = jax.lax.scan(extend, start, text)[0]
            parent = jnp.maximum(link, 0)

            def hand_on(often, v):
                return often.at[parent[v]].add(jnp.where(length[v] > 0, often[v], 0)), None

            often = jax.lax.scan(hand_on, often, jnp.argsort(-length))[0]
            shortest = length[parent]
            wanted = jnp.arange(1, lengths + 1)[:, None]
            top = jnp.max(jnp.where((shortest < wanted) & (wanted <= length), often, 0), axis=1)
            return size, jnp.sum(length - shortest), top

        return jax.jit(count)


class GroupedQueryExperts(Model):
    """Greedy decoding: layers of grouped-query attention with rotated keys in a cache, and the two best of several experts for each token."""

    kind = "workshop"
    dtype = "float32"
    size = dict(tokens=48, prompt=16, layers=2, wide=32, heads=4, shared=2, experts=6, hidden=48, words=80)
    small = dict(tokens=5, prompt=2, layers=2, wide=8, heads=4, shared=2, experts=3, hidden=6, words=11)
    rtol = 1e-3

    def make(self, random, tokens, prompt, layers, wide, heads, shared, experts, hidden, words):
        head = wide // heads

        def normal(*shape):
            return (random.normal(size=shape) / np.sqrt(shape[-2])).astype("float32")

        p = {
            "embed": random.normal(size=(words, wide)).astype("float32"),
            "out": normal(wide, words),
            "wq": normal(layers, wide, heads * head),
            "wk": normal(layers, wide, shared * head),
            "wv": normal(layers, wide, shared * head),
            "wo": normal(layers, heads * head, wide),
            "router": normal(layers, wide, experts),
            "up": normal(layers, experts, wide, hidden),
            "down": normal(layers, experts, hidden, wide),
            "scale": (1 + 0.1 * random.normal(size=(2 * layers + 1, wide))).astype("float32"),
            "shift": (0.1 * random.normal(size=(2 * layers + 1, wide))).astype("float32"),
        }
        return p, random.integers(0, words, size=prompt)

    def rscan(self, tokens, prompt, layers, wide, heads, shared, experts, hidden, words):
        head, group = wide // heads, heads // shared
        pace = (10000.0 ** (-np.arange(head // 2) / (head // 2))).astype("float32")

        @rs.compile
        def decode(p, begin):
            def norm(x, k):
                centred = x - rs.mean(x)
                return centred / rs.sqrt(rs.mean(centred**2) + 1e-5) * p["scale"][k] + p["shift"][k]

            def rotate(x, t):
                angle = rs.cast(t, "float32") * pace
                a, b = x[..., : head // 2], x[..., head // 2 :]
                return rs.concatenate([a * rs.cos(angle) - b * rs.sin(angle), a * rs.sin(angle) + b * rs.cos(angle)], axis=-1)

            def step(t, token, keys, values):
                x = p["embed"][token]
                for l in range(layers):
                    h = norm(x, 2 * l)
                    q = rotate(rs.reshape(h @ p["wq"][l], (shared, group, head)), t)
                    keys = keys.at[l, t].set(rotate(rs.reshape(h @ p["wk"][l], (shared, head)), t))
                    values = values.at[l, t].set(rs.reshape(h @ p["wv"][l], (shared, head)))
                    score = rs.einsum("sgd,tsd->sgt", q, keys[l]) / head**0.5
                    weight = rs.softmax(rs.where(rs.arange(tokens) <= t, score, -np.inf), axis=-1)
                    seen = rs.einsum("sgt,tsd->sgd", weight, values[l])
                    x = x + rs.reshape(seen, (heads * head,)) @ p["wo"][l]
                    h = norm(x, 2 * l + 1)
                    best, which = rs.top_k(h @ p["router"][l], 2)
                    inner = rs.silu(rs.einsum("d,edf->ef", h, p["up"][l][which]))
                    x = x + rs.softmax(best) @ rs.einsum("ef,efd->ed", inner, p["down"][l][which])
                logits = norm(x, 2 * layers) @ p["out"]
                given = begin[rs.minimum(t + 1, prompt - 1)]
                token = rs.where(t + 1 < prompt, given, rs.argmax(logits))
                return dict(token=token, keys=keys, values=values, logits=logits)

            cache = rs.zeros((layers, tokens, shared, head), dtype="float32")
            out = rs.loop(step, over=dict(t=rs.arange(tokens)), init=dict(token=begin[0], keys=cache, values=cache))
            return out.token, out.logits

        return decode

    def jax(self, tokens, prompt, layers, wide, heads, shared, experts, hidden, words):
        import jax
        import jax.numpy as jnp

        head, group = wide // heads, heads // shared
        pace = (10000.0 ** (-np.arange(head // 2) / (head // 2))).astype("float32")

        def decode(p, begin):
            def norm(x, k):
                centred = x - jnp.mean(x)
                return centred * jax.lax.rsqrt(jnp.mean(centred**2) + 1e-5) * p["scale"][k] + p["shift"][k]

            def rotate(x, t):
                angle = t.astype(jnp.float32) * pace
                a, b = jnp.split(x, 2, axis=-1)
                return jnp.concatenate([a * jnp.cos(angle) - b * jnp.sin(angle), a * jnp.sin(angle) + b * jnp.cos(angle)], axis=-1)

            def step(state, t):
                token, keys, values = state
                x = p["embed"][token]
                for l in range(layers):
                    h = norm(x, 2 * l)
                    q = rotate((h @ p["wq"][l]).reshape(shared, group, head), t)
                    keys = keys.at[l, t].set(rotate((h @ p["wk"][l]).reshape(shared, head), t))
                    values = values.at[l, t].set((h @ p["wv"][l]).reshape(shared, head))
                    score = jnp.einsum("sgd,tsd->sgt", q, keys[l]) / head**0.5
                    weight = jax.nn.softmax(jnp.where(jnp.arange(tokens) <= t, score, -jnp.inf), axis=-1)
                    seen = jnp.einsum("sgt,tsd->sgd", weight, values[l])
                    x = x + seen.reshape(heads * head) @ p["wo"][l]
                    h = norm(x, 2 * l + 1)
                    best, which = jax.lax.top_k(h @ p["router"][l], 2)
                    inner = jax.nn.silu(jnp.einsum("d,edf->ef", h, p["up"][l][which]))
                    x = x + jax.nn.softmax(best) @ jnp.einsum("ef,efd->ed", inner, p["down"][l][which])
                logits = norm(x, 2 * layers) @ p["out"]
                given = begin[jnp.minimum(t + 1, prompt - 1)]
                token = jnp.where(t + 1 < prompt, given, jnp.argmax(logits))
                return (token, keys, values), (token, logits)

            cache = jnp.zeros((layers, tokens, shared, head), dtype=jnp.float32)
            return jax.lax.scan(step, (begin[0], cache, cache), jnp.arange(tokens))[1]

        return jax.jit(decode)


class LandmarkSlam(Model):
    """An extended filter of a robot's pose and a map of landmarks, several bearings and ranges a step one after the other; slopes of its likelihood by the noises."""

    kind = "workshop"
    dtype = "float64"
    size = dict(steps=60, sights=3, landmarks=10)
    small = dict(steps=4, sights=2, landmarks=3)

    def make(self, random, steps, sights, landmarks):
        places = random.uniform(-10.0, 10.0, size=(landmarks, 2))
        pose = np.zeros(3)
        controls = np.stack([random.normal(1.0, 0.1, size=steps), random.normal(0.2, 0.05, size=steps)], axis=1)
        which = np.array([random.choice(landmarks, size=sights, replace=False) for _ in range(steps)])
        seen = np.empty((steps, sights, 2))
        for t in range(steps):
            speed, turn = controls[t]
            pose = pose + np.array([speed * np.cos(pose[2]), speed * np.sin(pose[2]), turn]) + random.normal(size=3) * [0.05, 0.05, 0.01]
            for k in range(sights):
                dx, dy = places[which[t, k]] - pose[:2]
                seen[t, k] = np.hypot(dx, dy) + 0.1 * random.normal(), np.arctan2(dy, dx) - pose[2] + 0.03 * random.normal()
        guess = places + random.normal(scale=0.5, size=places.shape)
        return np.log([0.05, 0.02, 0.1, 0.03]), controls, which, seen, guess

    def rscan(self, steps, sights, landmarks):
        n = 3 + 2 * landmarks

        @rs.compile
        def nll(logs, controls, which, seen, guess):
            noise = rs.exp(2 * logs)
            q = rs.diag(rs.concatenate([rs.stack([noise[0], noise[0], noise[1]]), rs.zeros(n - 3)]))
            r = rs.diag(noise[2:])

            def step(control, which, seen, mean, cov):
                speed, turn, heading = control[0], control[1], mean[2]
                mean = mean.at[:3].add(rs.stack([speed * rs.cos(heading), speed * rs.sin(heading), turn]))
                f = rs.eye(n).at[0, 2].set(-speed * rs.sin(heading)).at[1, 2].set(speed * rs.cos(heading))
                cov = f @ cov @ f.T + q

                def sight(j, z, mean, cov):
                    place = 3 + 2 * j
                    dx, dy = mean[place] - mean[0], mean[place + 1] - mean[1]
                    square = dx**2 + dy**2
                    far = rs.sqrt(square)
                    to_place = rs.array([[dx / far, dy / far], [-dy / square, dx / square]])
                    h = rs.zeros((2, n)).at[:, :2].set(-to_place).at[1, 2].set(-1.0).at[:, place + rs.arange(2)].set(to_place)
                    angle = z[1] - (rs.arctan2(dy, dx) - mean[2])
                    error = rs.stack([z[0] - far, rs.arctan2(rs.sin(angle), rs.cos(angle))])
                    ph = cov @ h.T
                    s = h @ ph + r
                    det = s[0, 0] * s[1, 1] - s[0, 1] * s[1, 0]
                    inverse = rs.array([[s[1, 1], -s[0, 1]], [-s[1, 0], s[0, 0]]]) / det
                    gain = ph @ inverse
                    cost = 0.5 * (error @ inverse @ error + rs.log(det))
                    cov = cov - gain @ ph.T
                    return dict(mean=mean + gain @ error, cov=0.5 * (cov + cov.T), cost=cost)

                out = rs.loop(sight, over=dict(j=which, z=seen), init=dict(mean=mean, cov=cov))
                return dict(mean=out.last.mean, cov=out.last.cov, cost=rs.sum(out.cost))

            mean = rs.concatenate([rs.zeros(3), rs.ravel(guess)])
            cov = rs.diag(rs.concatenate([rs.full(3, 1e-6), rs.full(n - 3, 0.25)]))
            rows = dict(control=controls, which=which, seen=seen)
            return rs.sum(rs.loop(step, over=rows, init=dict(mean=mean, cov=cov)).cost)

        return rs.value_and_grad(nll)

    def jax(self, steps, sights, landmarks):
        import jax
        import jax.numpy as jnp

        n = 3 + 2 * landmarks

        def nll(logs, controls, which, seen, guess):
            noise = jnp.exp(2 * logs)
            q = jnp.diag(jnp.concatenate([jnp.stack([noise[0], noise[0], noise[1]]), jnp.zeros(n - 3)]))
            r = jnp.diag(noise[2:])

            def step(state, row):
                mean, cov = state
                control, which, seen = row
                speed, turn, heading = control[0], control[1], mean[2]
                mean = mean.at[:3].add(jnp.stack([speed * jnp.cos(heading), speed * jnp.sin(heading), turn]))
                f = jnp.eye(n).at[0, 2].set(-speed * jnp.sin(heading)).at[1, 2].set(speed * jnp.cos(heading))
                cov = f @ cov @ f.T + q

                def sight(state, row):
                    mean, cov = state
                    j, z = row
                    place = 3 + 2 * j
                    dx, dy = mean[place] - mean[0], mean[place + 1] - mean[1]
                    square = dx**2 + dy**2
                    far = jnp.sqrt(square)
                    to_place = jnp.array([[dx / far, dy / far], [-dy / square, dx / square]])
                    h = jnp.zeros((2, n)).at[:, :2].set(-to_place).at[1, 2].set(-1.0)
                    h = jax.lax.dynamic_update_slice(h, to_place, (0, place))
                    angle = z[1] - (jnp.arctan2(dy, dx) - mean[2])
                    error = jnp.stack([z[0] - far, jnp.arctan2(jnp.sin(angle), jnp.cos(angle))])
                    ph = cov @ h.T
                    s = h @ ph + r
                    det = s[0, 0] * s[1, 1] - s[0, 1] * s[1, 0]
                    inverse = jnp.array([[s[1, 1], -s[0, 1]], [-s[1, 0], s[0, 0]]]) / det
                    gain = ph @ inverse
                    cost = 0.5 * (error @ inverse @ error + jnp.log(det))
                    cov = cov - gain @ ph.T
                    return (mean + gain @ error, 0.5 * (cov + cov.T)), cost

                state, costs = jax.lax.scan(sight, (mean, cov), (which, seen))
                return state, jnp.sum(costs)

            mean = jnp.concatenate([jnp.zeros(3), guess.ravel()])
            cov = jnp.diag(jnp.concatenate([jnp.full(3, 1e-6), jnp.full(n - 3, 0.25)]))
            return jnp.sum(jax.lax.scan(step, (mean, cov), (controls, which, seen))[1])

        return jax.jit(jax.value_and_grad(nll))


class LentzGammaFractions(Model):
    """The upper incomplete gamma function of many pairs by Lentz's continued fraction, each until it stands, with its slopes by both arguments."""

    kind = "workshop"
    dtype = "float64"
    size = dict(pairs=2000)
    small = dict(pairs=6)

    def make(self, random, pairs):
        a = random.uniform(0.5, 20.0, size=pairs)
        return a, a + random.uniform(1.5, 15.0, size=pairs)

    def rscan(self, pairs):
        tiny = 1e-30

        def upper(a, x):
            def step(i, b, c, d, h):
                term = -i * (i - a)
                b = b + 2
                d = term * d + b
                d = 1 / rs.where(rs.abs(d) < tiny, tiny, d)
                c = b + term / c
                c = rs.where(rs.abs(c) < tiny, tiny, c)
                return dict(i=i + 1, b=b, c=c, d=d, h=h * c * d), rs.until(rs.abs(c * d - 1) < 1e-14)

            b = x + 1 - a
            fraction = rs.loop(step, init=dict(i=1.0, b=b, c=1 / tiny, d=1 / b, h=1 / b), n_steps=1000).last.h
            return fraction * rs.exp(a * rs.log(x) - x - rs.gammaln(a))

        return rs.compile(rs.vmap(rs.value_and_grad(upper, argnums=(0, 1))))

    def jax(self, pairs):
        import jax
        import jax.numpy as jnp

        tiny = 1e-30

        def upper(a, x):
            def step(state):
                i, b, c, d, h, _ = state
                term = -i * (i - a)
                b = b + 2
                d = term * d + b
                d = 1 / jnp.where(jnp.abs(d) < tiny, tiny, d)
                c = b + term / c
                c = jnp.where(jnp.abs(c) < tiny, tiny, c)
                return i + 1, b, c, d, h * c * d, jnp.abs(c * d - 1)

            b = x + 1 - a
            start = (1.0, b, jnp.full_like(b, 1 / tiny), 1 / b, 1 / b, jnp.full_like(b, jnp.inf))
            fraction = jax.lax.while_loop(lambda s: (s[5] >= 1e-14) & (s[0] <= 1000), step, start)[4]
            value = fraction * jnp.exp(a * jnp.log(x) - x - jax.scipy.special.gammaln(a))
            return value, value

        slopes = jax.jacfwd(upper, argnums=(0, 1), has_aux=True)  # while_loop has no reverse mode

        def both(a, x):
            gradient, value = slopes(a, x)
            return value, gradient

        return jax.jit(jax.vmap(both))


class TwoEchelonHessian(Model):
    """A shop and its warehouse with lead times, smoothed order-up-to rules and backlogs: the Hessian of the mean cost over many paths of demand."""

    kind = "workshop"
    dtype = "float64"
    size = dict(paths=48, periods=80)
    small = dict(paths=3, periods=7)

    def make(self, random, paths, periods):
        return np.array([32.0, 55.0, 0.6, 0.5]), random.gamma(4.0, 2.5, size=(paths, periods))

    def rscan(self, paths, periods):
        def plus(x):
            return rs.softplus(2.0 * x) / 2.0

        def least(a, b):
            return a - plus(a - b)

        def cost(p, demand):
            def step(demand, stock, backlog, coming, store, owed, ordered, ship, order):
                stock, store = stock + ship, store + order
                need = backlog + demand
                sold = least(need, stock)
                stock, backlog = stock - sold, need - sold
                coming = coming - ship
                wish = plus(p[2] * (p[0] - (stock - backlog + coming)))
                coming, owed = coming + wish, owed + wish
                sent = least(owed, store)
                store, owed = store - sent, owed - sent
                ordered = ordered - order
                more = plus(p[3] * (p[1] - (store - owed + ordered)))
                paid = stock + 9.0 * backlog + 0.5 * store
                return dict(
                    stock=stock,
                    backlog=backlog,
                    coming=coming,
                    store=store,
                    owed=owed,
                    ordered=ordered + more,
                    ship=sent,
                    order=more,
                    paid=paid,
                )

            start = dict(
                stock=20.0,
                backlog=0.0,
                coming=0.0,
                store=30.0,
                owed=0.0,
                ordered=0.0,
                ship=rs.taps(np.zeros(2), -2),
                order=rs.taps(np.zeros(3), -3),
            )
            return rs.mean(rs.loop(step, over=dict(demand=demand), init=start).paid)

        @rs.compile
        def mean_cost(p, demands):
            return rs.mean(rs.vmap(cost, in_axes=(None, 0))(p, demands))

        return rs.hessian(mean_cost)

    def jax(self, paths, periods):
        import jax
        import jax.numpy as jnp

        def plus(x):
            return jax.nn.softplus(2.0 * x) / 2.0

        def least(a, b):
            return a - plus(a - b)

        def cost(p, demand):
            def step(state, demand):
                stock, backlog, coming, store, owed, ordered, ships, orders = state
                ship, order = ships[0], orders[0]
                stock, store = stock + ship, store + order
                need = backlog + demand
                sold = least(need, stock)
                stock, backlog = stock - sold, need - sold
                coming = coming - ship
                wish = plus(p[2] * (p[0] - (stock - backlog + coming)))
                coming, owed = coming + wish, owed + wish
                sent = least(owed, store)
                store, owed = store - sent, owed - sent
                ordered = ordered - order
                more = plus(p[3] * (p[1] - (store - owed + ordered)))
                paid = stock + 9.0 * backlog + 0.5 * store
                return (stock, backlog, coming, store, owed, ordered + more, (ships[1], sent), (orders[1], orders[2], more)), paid

            start = (20.0, 0.0, 0.0, 30.0, 0.0, 0.0, (0.0, 0.0), (0.0, 0.0, 0.0))
            return jnp.mean(jax.lax.scan(step, start, demand)[1])

        def mean_cost(p, demands):
            return jnp.mean(jax.vmap(cost, in_axes=(None, 0))(p, demands))

        return jax.jit(jax.hessian(mean_cost))


class RichardsonLucyBlur(Model):
    """An image sharpened by Richardson and Lucy's iteration, and the slopes of its misfit by width, height and angle of the blur."""

    kind = "workshop"
    dtype = "float32"
    size = dict(side=48, rounds=8)
    small = dict(side=9, rounds=2)
    rtol = 2e-3

    def make(self, random, side, rounds):
        y, x = np.mgrid[:side, :side] / side
        truth = np.full((side, side), 0.1)
        for _ in range(6):
            cx, cy, width, height = random.uniform(0.1, 0.9), random.uniform(0.1, 0.9), random.uniform(0.03, 0.1), random.uniform(0.5, 2.0)
            truth += height * np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / (2 * width**2))
        padded = np.pad(truth, 1, mode="edge")
        blurred = sum(padded[i : i + side, j : j + side] for i in range(3) for j in range(3)) / 9
        observed = blurred * random.lognormal(0.0, 0.02, size=truth.shape)
        return np.array([0.1, 0.3, 0.4], dtype="float32"), observed.astype("float32"), truth.astype("float32")

    def rscan(self, side, rounds):
        places = np.arange(-2, 3, dtype="float32")

        @rs.compile
        def misfit(p, observed, truth):
            y, x = places[:, None], places[None, :]
            along = (x * rs.cos(p[2]) + y * rs.sin(p[2])) / rs.exp(p[0])
            across = (y * rs.cos(p[2]) - x * rs.sin(p[2])) / rs.exp(p[1])
            kernel = rs.exp(-0.5 * (along**2 + across**2))
            kernel = kernel / rs.sum(kernel)

            def blur(image, kernel):
                padded = rs.pad(image, 2)
                return sum(kernel[i, j] * padded[i : i + side, j : j + side] for i in range(5) for j in range(5))

            def step(image):
                return image * blur(observed / (blur(image, kernel) + 1e-3), kernel[::-1, ::-1])

            return rs.mean((rs.loop(step, init=observed, n_steps=rounds).last - truth) ** 2)

        return rs.value_and_grad(misfit)

    def jax(self, side, rounds):
        import jax
        import jax.numpy as jnp

        places = np.arange(-2, 3, dtype="float32")

        def misfit(p, observed, truth):
            y, x = places[:, None], places[None, :]
            along = (x * jnp.cos(p[2]) + y * jnp.sin(p[2])) / jnp.exp(p[0])
            across = (y * jnp.cos(p[2]) - x * jnp.sin(p[2])) / jnp.exp(p[1])
            kernel = jnp.exp(-0.5 * (along**2 + across**2))
            kernel = kernel / jnp.sum(kernel)

            def blur(image, kernel):
                return jax.lax.conv(image[None, None], kernel[None, None], (1, 1), "SAME")[0, 0]

            def step(image, _):
                return image * blur(observed / (blur(image, kernel) + 1e-3), kernel[::-1, ::-1]), None

            return jnp.mean((jax.lax.scan(step, observed, length=rounds)[0] - truth) ** 2)

        return jax.jit(jax.value_and_grad(misfit))
