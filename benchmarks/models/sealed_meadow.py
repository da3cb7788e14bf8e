"""Programs of several trades: tokenisers, evolutionary trees, wind farms, slice sampling, guided diffusion, callable bonds, switches."""

import numpy as np
import rscan as rs
from models import Model


class UnigramPieceCounts(Model):
    """A text is cut into pieces of a vocabulary in all ways at once (a lattice over a trie of pieces): its log-likelihood, and as its gradient
    the expected counts of the pieces."""

    kind = "meadow"
    dtype = "float64"
    size = dict(length=300, pieces=300, longest=6)
    small = dict(length=9, pieces=12, longest=3)

    def make(self, random, length, pieces, longest):
        letters = 8
        vocabulary = [(c,) for c in range(letters)]
        while len(vocabulary) < pieces:
            piece = tuple(random.integers(0, letters, size=random.integers(2, longest + 1)))
            if piece not in vocabulary:
                vocabulary.append(piece)
        # Node 0 is the root, node 1 a dead end; letter 8 fills the end of the text up.
        follow, ends = [[1] * (letters + 1), [1] * (letters + 1)], [-1, -1]
        for k, piece in enumerate(vocabulary):
            node = 0
            for c in piece:
                if follow[node][c] == 1:
                    follow[node][c] = len(follow)
                    follow.append([1] * (letters + 1))
                    ends.append(-1)
                node = follow[node][c]
            ends[node] = k
        text = np.concatenate([random.integers(0, letters, size=length), np.full(longest, letters)]).astype(np.int32)
        return random.normal(-5.0, 1.0, size=pieces), text, np.array(follow, np.int32), np.array(ends, np.int32)

    def rscan(self, length, pieces, longest):
        never = -1e30

        @rs.compile
        def likelihood(scores, text, follow, ends):
            def place(t, window):
                def letter(c, node):
                    node = follow[node, c]
                    piece = ends[node]
                    return dict(node=node, score=rs.where(piece >= 0, scores[rs.maximum(piece, 0)], never))

                walk = rs.loop(letter, over=dict(c=text[t + rs.arange(longest)]), init=dict(node=np.int32(0)))
                arriving = rs.maximum(window[0] + walk.score, never)
                waiting = rs.concatenate([window[1:], rs.full(1, never)])
                return dict(window=rs.logaddexp(waiting, arriving))

            start = rs.full(longest, never).at[0].set(0.0)
            return rs.loop(place, over=dict(t=rs.arange(length)), init=dict(window=start)).last.window[0]

        return rs.value_and_grad(likelihood)

    def jax(self, length, pieces, longest):
        import jax
        import jax.numpy as jnp
        from jax import lax

        never = -1e30

        def likelihood(scores, text, follow, ends):
            def place(window, t):
                def letter(node, c):
                    node = follow[node, c]
                    piece = ends[node]
                    return node, jnp.where(piece >= 0, scores[jnp.maximum(piece, 0)], never)

                _, walk = lax.scan(letter, jnp.int32(0), lax.dynamic_slice(text, (t,), (longest,)))
                arriving = jnp.maximum(window[0] + walk, never)
                waiting = jnp.concatenate([window[1:], jnp.full(1, never)])
                return jnp.logaddexp(waiting, arriving), None

            start = jnp.full(longest, never).at[0].set(0.0)
            return lax.scan(place, start, jnp.arange(length))[0][0]

        return jax.jit(jax.value_and_grad(likelihood))


class NeighbourJoiningTree(Model):
    """Saitou and Nei's neighbour joining: the two nearest by the corrected distances become one node, until two are left."""

    kind = "meadow"
    dtype = "float64"
    size = dict(taxa=40)
    small = dict(taxa=5)

    def make(self, random, taxa):
        points = np.cumsum(random.normal(size=(taxa, 6)) * random.exponential(size=(taxa, 1)), axis=0)
        distance = np.sqrt(np.sum((points[:, None] - points) ** 2, axis=-1)) + 0.1 * np.abs(random.normal(size=(taxa, taxa)))
        distance = distance + distance.T
        np.fill_diagonal(distance, 0)
        return (distance,)

    def rscan(self, taxa):
        @rs.compile
        def tree(distance):
            places = rs.arange(taxa)
            upper = places[:, None] < places

            def join(t, distance, alive, name):
                left = rs.cast(taxa - t, "float64")
                both = alive[:, None] & alive
                total = rs.sum(rs.where(both, distance, 0.0), axis=1)
                q = rs.where(both & upper, (left - 2) * distance - total[:, None] - total, np.inf)
                i, j = rs.unravel_index(rs.argmin(q), (taxa, taxa))
                apart = distance[i, j]
                to_i = apart / 2 + (total[i] - total[j]) / (2 * (left - 2))
                row = rs.where(places == i, 0.0, (distance[i] + distance[j] - apart) / 2)
                return dict(
                    distance=distance.at[i].set(row).at[:, i].set(row),
                    alive=alive.at[j].set(False),
                    name=name.at[i].set(taxa + t),
                    joined=rs.stack([name[i], name[j]]),
                    lengths=rs.stack([to_i, apart - to_i]),
                )

            init = dict(distance=distance, alive=rs.ones(taxa, dtype=bool), name=places)
            out = rs.loop(join, over=dict(t=rs.arange(taxa - 2)), init=init)
            return out.joined, out.lengths, out.last.alive

        return tree

    def jax(self, taxa):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def tree(distance):
            places = jnp.arange(taxa)
            upper = places[:, None] < places

            def join(carry, t):
                distance, alive, name = carry
                left = (taxa - t).astype(jnp.float64)
                both = alive[:, None] & alive
                total = jnp.sum(jnp.where(both, distance, 0.0), axis=1)
                q = jnp.where(both & upper, (left - 2) * distance - total[:, None] - total, jnp.inf)
                i, j = jnp.unravel_index(jnp.argmin(q), (taxa, taxa))
                apart = distance[i, j]
                to_i = apart / 2 + (total[i] - total[j]) / (2 * (left - 2))
                row = jnp.where(places == i, 0.0, (distance[i] + distance[j] - apart) / 2)
                carry = distance.at[i].set(row).at[:, i].set(row), alive.at[j].set(False), name.at[i].set(taxa + t)
                return carry, (jnp.stack([name[i], name[j]]), jnp.stack([to_i, apart - to_i]))

            (_, alive, _), (joined, lengths) = lax.scan(join, (distance, jnp.ones(taxa, bool), places), jnp.arange(taxa - 2))
            return joined, lengths, alive

        return jax.jit(tree)


class WindFarmYaw(Model):
    """The power of a wind farm whose turbines turn a little away from the wind, from upstream to downstream and over all winds of a rose,
    and its gradient by the angles."""

    kind = "meadow"
    dtype = "float64"
    size = dict(turbines=16, winds=24)
    small = dict(turbines=3, winds=2)

    def make(self, random, turbines, winds):
        x, y = random.uniform(0, 30 * 80.0, size=(2, turbines))
        direction = 2 * np.pi * np.arange(winds) / winds + 0.01
        share = random.dirichlet(np.ones(winds))
        return 0.1 * random.normal(size=turbines), x, y, direction, random.uniform(7, 11, size=winds), share

    def rscan(self, turbines, winds):
        d, spread = 80.0, 0.04

        @rs.compile
        def power(yaw, x, y, direction, speed, share):
            def farm(direction, speed):
                along = rs.cos(direction) * x + rs.sin(direction) * y
                across = rs.cos(direction) * y - rs.sin(direction) * x

                def turbine(i, wind):
                    away = along[i] - along
                    upstream = away > 0
                    away = rs.where(upstream, away, d)
                    thrust = rs.clip(0.85 - 0.02 * (wind - 8.0), 0.1, 0.9) * rs.cos(yaw)
                    width = spread * away + d / 8**0.5
                    bent = 0.3 * thrust * yaw * away / (1 + 0.05 * away / d)
                    deficit = (1 - rs.sqrt(1 - thrust / (8 * (width / d) ** 2))) * rs.exp(-0.5 * ((across[i] - across - bent) / width) ** 2)
                    total = rs.sqrt(rs.sum(rs.where(upstream, deficit**2, 0.0)) + 1e-9)
                    return wind.at[i].set(speed * (1 - total))

                wind = rs.loop(turbine, over=rs.argsort(along), init=rs.full(turbines, speed)).last
                return rs.sum(0.25 * wind**3 * rs.cos(yaw) ** 1.88)

            return rs.sum(share * rs.vmap(farm)(direction, speed))

        return rs.value_and_grad(power)

    def jax(self, turbines, winds):
        import jax
        import jax.numpy as jnp
        from jax import lax

        d, spread = 80.0, 0.04

        def power(yaw, x, y, direction, speed, share):
            def farm(direction, speed):
                along = jnp.cos(direction) * x + jnp.sin(direction) * y
                across = jnp.cos(direction) * y - jnp.sin(direction) * x

                def turbine(wind, i):
                    away = along[i] - along
                    upstream = away > 0
                    away = jnp.where(upstream, away, d)
                    thrust = jnp.clip(0.85 - 0.02 * (wind - 8.0), 0.1, 0.9) * jnp.cos(yaw)
                    width = spread * away + d / 8**0.5
                    bent = 0.3 * thrust * yaw * away / (1 + 0.05 * away / d)
                    deficit = (1 - jnp.sqrt(1 - thrust / (8 * (width / d) ** 2))) * jnp.exp(-0.5 * ((across[i] - across - bent) / width) ** 2)
                    total = jnp.sqrt(jnp.sum(jnp.where(upstream, deficit**2, 0.0)) + 1e-9)
                    return wind.at[i].set(speed * (1 - total)), None

                wind, _ = lax.scan(turbine, jnp.full(turbines, speed), jnp.argsort(along))
                return jnp.sum(0.25 * wind**3 * jnp.cos(yaw) ** 1.88)

            return jnp.sum(share * jax.vmap(farm)(direction, speed))

        return jax.jit(jax.value_and_grad(power))


class SliceSampledSchools(Model):
    """Neal's slice sampling, stepping out and shrinking, of the mean and the log-deviation of the effects of eight schools, a coordinate at
    a time; all draws are made in the steps."""

    kind = "meadow"
    dtype = "float64"
    size = dict(sweeps=2000)
    small = dict(sweeps=40)

    def make(self, random, sweeps):
        return 7, np.array([28.0, 8, -3, 7, -1, 1, 18, 12]), np.array([15.0, 10, 16, 11, 9, 11, 10, 18])

    def same(self, ours, theirs):
        (a,), (b,) = ours, theirs
        assert a.shape == b.shape and a.dtype == b.dtype
        assert np.all(np.isfinite(a))
        assert np.mean(np.diff(a[:, 0]) == 0) < 0.01, "the sampler does not move"
        slack = 10 / np.sqrt(len(a))  # draws depend on each other
        for k, scale in enumerate((5.5, 1.3)):
            assert abs(a[:, k].mean() - b[:, k].mean()) < slack * scale, f"means of {k}: {a[:, k].mean()}, {b[:, k].mean()}"
            assert abs(a[:, k].std() - b[:, k].std()) < slack * scale, f"deviations of {k}: {a[:, k].std()}, {b[:, k].std()}"

    def rscan(self, sweeps):
        @rs.compile
        def chain(seed, effect, error):
            key = rs.random.key(seed)

            def log_density(z):
                variance = error**2 + rs.exp(2 * z[1])
                fit = -0.5 * rs.sum((effect - z[0]) ** 2 / variance + rs.log(variance))
                return fit - 0.5 * (z[0] / 20) ** 2 - 0.5 * ((z[1] - 1) / 1.5) ** 2

            def coordinate(k, z, key):
                at = lambda v: log_density(z.at[k].set(v))
                level = log_density(z) + rs.log(rs.random.uniform(rs.random.fold_in(key, 0)))
                width = rs.where(k == 0, 5.0, 1.5)
                low = z[k] - width * rs.random.uniform(rs.random.fold_in(key, 1))
                low, high = (
                    rs.while_loop(lambda v: (at(v[0]) > level) & (v[1] < 20), lambda v: (v[0] + move, v[1] + 1), (end, 0))[0]
                    for move, end in ((-width, low), (width, low + width))
                )

                def shrink(low, high, v, i):
                    v = low + (high - low) * rs.random.uniform(rs.random.fold_in(key, i))
                    below = v < z[k]
                    return dict(low=rs.where(below, v, low), high=rs.where(below, high, v), v=v, i=i + 1), rs.until(at(v) > level)

                new = rs.loop(shrink, init=dict(low=low, high=high, v=z[k], i=2)).last.v
                return z.at[k].set(new)

            def sweep(t, z):
                mine = rs.random.fold_in(key, t)
                return rs.loop(lambda k, z: coordinate(k, z, rs.random.fold_in(mine, k)), over=rs.arange(2), init=z).last

            return rs.loop(sweep, over=rs.arange(sweeps), init=rs.constant([5.0, 1.0]))[:]

        return chain

    def jax(self, sweeps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def chain(seed, effect, error):
            key = jax.random.key(seed)

            def log_density(z):
                variance = error**2 + jnp.exp(2 * z[1])
                fit = -0.5 * jnp.sum((effect - z[0]) ** 2 / variance + jnp.log(variance))
                return fit - 0.5 * (z[0] / 20) ** 2 - 0.5 * ((z[1] - 1) / 1.5) ** 2

            def coordinate(k, z, key):
                at = lambda v: log_density(z.at[k].set(v))
                level = log_density(z) + jnp.log(jax.random.uniform(jax.random.fold_in(key, 0)))
                width = jnp.where(k == 0, 5.0, 1.5)
                low = z[k] - width * jax.random.uniform(jax.random.fold_in(key, 1))
                low, high = (
                    lax.while_loop(lambda v: (at(v[0]) > level) & (v[1] < 20), lambda v: (v[0] + move, v[1] + 1), (end, 0))[0]
                    for move, end in ((-width, low), (width, low + width))
                )

                def shrink(s):
                    low, high, _, i, _ = s
                    v = low + (high - low) * jax.random.uniform(jax.random.fold_in(key, i))
                    below = v < z[k]
                    return jnp.where(below, v, low), jnp.where(below, high, v), v, i + 1, at(v) > level

                new = lax.while_loop(lambda s: ~s[4], shrink, (low, high, z[k], 2, False))[2]
                return z.at[k].set(new)

            def sweep(z, t):
                mine = jax.random.fold_in(key, t)
                z, _ = lax.scan(lambda z, k: (coordinate(k, z, jax.random.fold_in(mine, k)), None), z, jnp.arange(2))
                return z, z

            return lax.scan(sweep, jnp.array([5.0, 1.0]), jnp.arange(sweeps))[1]

        return jax.jit(chain)


class GuidedDiffusionSampler(Model):
    """Deterministic diffusion sampling that the gradient of a classifier guides at each step, and the gradient of a loss of the samples by
    the noise they come from, back through all of it."""

    kind = "meadow"
    dtype = "float32"
    size = dict(batch=16, width=12, hidden=48, steps=30)
    small = dict(batch=2, width=3, hidden=4, steps=3)
    rtol = 1e-3

    def make(self, random, batch, width, hidden, steps):
        f = lambda *shape: (random.normal(size=shape) / shape[0] ** 0.5).astype(np.float32)
        denoiser = f(width, hidden), f(8, hidden), f(hidden, hidden), f(hidden, width)
        classifier = f(width, hidden), f(hidden, 4)
        label = random.integers(0, 4, size=batch)
        wanted = random.normal(size=(batch, width)).astype(np.float32)
        return random.normal(size=(batch, width)).astype(np.float32), *denoiser, *classifier, label, wanted

    def rscan(self, batch, width, hidden, steps):
        kept = (np.cos(np.linspace(0.02, 1.5, steps + 1)) ** 2).astype(np.float32)
        times = np.stack([g(np.linspace(0, 1, steps) * 2**k) for k in range(4) for g in (np.sin, np.cos)], axis=1).astype(np.float32)

        @rs.compile
        def loss(noise, win, wtime, wmid, wout, cin, cout, label, wanted):
            def epsilon(x, time):
                h = rs.tanh(x @ win + time @ wtime)
                h = h + rs.tanh(h @ wmid)
                return h @ wout

            def log_share(x, time, now):
                clean = (x - rs.sqrt(1 - now) * epsilon(x, time)) / rs.sqrt(now)
                logits = rs.log_softmax(rs.tanh(clean @ cin) @ cout, axis=-1)
                return rs.sum(logits[rs.arange(batch), label])

            def step(now, after, time, x):
                guide = rs.grad(log_share)(x, time, now)
                e = epsilon(x, time) - 0.5 * rs.sqrt(1 - now) * guide
                clean = rs.clip((x - rs.sqrt(1 - now) * e) / rs.sqrt(now), -3, 3)
                return dict(x=rs.sqrt(after) * clean + rs.sqrt(1 - after) * e)

            over = dict(now=kept[1:][::-1], after=kept[:-1][::-1], time=times[::-1])
            x = rs.loop(step, over=over, init=dict(x=noise)).last.x
            return rs.mean((x - wanted) ** 2)

        return rs.value_and_grad(loss)

    def jax(self, batch, width, hidden, steps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        kept = (np.cos(np.linspace(0.02, 1.5, steps + 1)) ** 2).astype(np.float32)
        times = np.stack([g(np.linspace(0, 1, steps) * 2**k) for k in range(4) for g in (np.sin, np.cos)], axis=1).astype(np.float32)

        def loss(noise, win, wtime, wmid, wout, cin, cout, label, wanted):
            def epsilon(x, time):
                h = jnp.tanh(x @ win + time @ wtime)
                h = h + jnp.tanh(h @ wmid)
                return h @ wout

            def log_share(x, time, now):
                clean = (x - jnp.sqrt(1 - now) * epsilon(x, time)) / jnp.sqrt(now)
                logits = jax.nn.log_softmax(jnp.tanh(clean @ cin) @ cout, axis=-1)
                return jnp.sum(logits[jnp.arange(batch), label])

            def step(x, row):
                now, after, time = row
                guide = jax.grad(log_share)(x, time, now)
                e = epsilon(x, time) - 0.5 * jnp.sqrt(1 - now) * guide
                clean = jnp.clip((x - jnp.sqrt(1 - now) * e) / jnp.sqrt(now), -3, 3)
                return jnp.sqrt(after) * clean + jnp.sqrt(1 - after) * e, None

            rows = jnp.array(kept[1:][::-1]), jnp.array(kept[:-1][::-1]), jnp.array(times[::-1])
            x, _ = lax.scan(step, noise, rows)
            return jnp.mean((x - wanted) ** 2)

        return jax.jit(jax.value_and_grad(loss))


class BlackKarasinskiCallable(Model):
    """A callable bond in a trinomial tree of lognormal short rates: each date's level is found by Newton's method such that the tree has the
    market's discount, then the bond is rolled back; the gradient by volatility, reversion and the whole curve."""

    kind = "meadow"
    dtype = "float64"
    size = dict(steps=120, edge=23)
    small = dict(steps=26, edge=2)
    atol = 1e-13

    def make(self, random, steps, edge):
        dt = 1 / 12
        t = dt * np.arange(1, steps + 1)
        rate = 0.03 + 0.01 * (1 - np.exp(-t)) + 0.00001 * random.normal(size=steps)
        coupon = np.where(np.arange(1, steps + 1) % 6 == 0, 0.02, 0.0)
        callable_ = (np.arange(1, steps + 1) % 12 == 0) & (np.arange(steps) < steps - 1)
        return np.array([0.2, 0.1]), np.exp(-rate * t), coupon, callable_

    def rscan(self, steps, edge):
        dt = 1 / 12

        @rs.compile
        def price(p, discount, coupon, callable_):
            sigma, reversion = p[0], p[1]
            j = np.arange(-edge, edge + 1)
            x = j * sigma * rs.sqrt(3 * dt)
            # At the edges all three branches lead inwards.
            middle = np.clip(j, 1 - edge, edge - 1)
            drift = j * (1 - reversion * dt) - middle
            up, down = 0.5 * (1 / 3 + drift**2 + drift), 0.5 * (1 / 3 + drift**2 - drift)
            stay = 2 / 3 - drift**2
            to = middle + edge

            def forward(market, q, level):
                def newton(level):
                    rate = rs.exp(level + x)
                    worth = q * rs.exp(-rate * dt)
                    return level + (rs.sum(worth) - market) / rs.sum(worth * rate * dt)

                level = rs.loop(newton, init=level, n_steps=5).last
                factor = rs.exp(-rs.exp(level + x) * dt)
                worth = q * factor
                new = rs.zeros(2 * edge + 1).at[to + 1].add(up * worth).at[to].add(stay * worth).at[to - 1].add(down * worth)
                return dict(q=new, level=level, factor=factor)

            start = dict(q=rs.zeros(2 * edge + 1).at[edge].set(1.0), level=np.log(0.03))
            tree = rs.loop(forward, over=dict(market=discount), init=start)

            def backward(factor, coupon, may, v):
                v = rs.where(may, rs.minimum(v, 1.0), v) + coupon
                return dict(v=factor * (up * v[to + 1] + stay * v[to] + down * v[to - 1]))

            over = dict(factor=tree.factor, coupon=coupon, may=callable_)
            return rs.loop(backward, over=over, init=dict(v=rs.ones(2 * edge + 1)), reverse=True).last.v[edge]

        return rs.value_and_grad(price, argnums=(0, 1))

    def jax(self, steps, edge):
        import jax
        import jax.numpy as jnp
        from jax import lax

        dt = 1 / 12

        def price(p, discount, coupon, callable_):
            sigma, reversion = p
            j = np.arange(-edge, edge + 1)
            x = j * sigma * jnp.sqrt(3 * dt)
            middle = np.clip(j, 1 - edge, edge - 1)
            drift = j * (1 - reversion * dt) - middle
            up, down = 0.5 * (1 / 3 + drift**2 + drift), 0.5 * (1 / 3 + drift**2 - drift)
            stay = 2 / 3 - drift**2
            to = middle + edge

            def forward(carry, market):
                q, level = carry

                def newton(level, _):
                    rate = jnp.exp(level + x)
                    worth = q * jnp.exp(-rate * dt)
                    return level + (jnp.sum(worth) - market) / jnp.sum(worth * rate * dt), None

                level, _ = lax.scan(newton, level, None, length=5)
                factor = jnp.exp(-jnp.exp(level + x) * dt)
                worth = q * factor
                new = jnp.zeros(2 * edge + 1).at[to + 1].add(up * worth).at[to].add(stay * worth).at[to - 1].add(down * worth)
                return (new, level), factor

            start = jnp.zeros(2 * edge + 1).at[edge].set(1.0), jnp.log(0.03)
            _, factors = lax.scan(forward, start, discount)

            def backward(v, row):
                factor, coupon, may = row
                v = jnp.where(may, jnp.minimum(v, 1.0), v) + coupon
                return factor * (up * v[to + 1] + stay * v[to] + down * v[to - 1]), None

            return lax.scan(backward, jnp.ones(2 * edge + 1), (factors, coupon, callable_), reverse=True)[0][edge]

        return jax.jit(jax.value_and_grad(price, argnums=(0, 1)))


class IslipCrossbar(Model):
    """A crossbar switch with virtual output queues: three rounds of request, grant and accept by round-robin pointers in each slot (iSLIP)."""

    kind = "meadow"
    dtype = "int32"
    size = dict(ports=16, slots=300, rounds=3)
    small = dict(ports=3, slots=5, rounds=2)

    def make(self, random, ports, slots, rounds):
        to = random.integers(0, ports, size=(slots, ports))
        busy = random.uniform(size=(slots, ports)) < 0.9
        return (np.where(busy, to, -1).astype(np.int32),)

    def rscan(self, ports, slots, rounds):
        @rs.compile
        def switched(arrivals):
            places = rs.arange(ports, dtype="int32")

            def slot(arriving, queue, grant, accept):
                queue = queue + rs.cast(arriving[:, None] == places, "int32")

                def round_(r, match, taken, grant, accept):
                    asks = (queue > 0) & (match < 0)[:, None] & ~taken
                    turn = (places[:, None] - grant) % ports
                    granted_to = rs.argmin(rs.where(asks, turn, ports), axis=0)
                    grants = asks & (places[:, None] == granted_to)
                    turn = (places - accept[:, None]) % ports
                    chosen = rs.cast(rs.argmin(rs.where(grants, turn, ports), axis=1), "int32")
                    accepted = rs.any(grants, axis=1)
                    pair = accepted[:, None] & (chosen[:, None] == places)
                    first = r == 0
                    out = rs.any(pair, axis=0)
                    input_ = rs.cast(rs.argmax(pair, axis=0), "int32")
                    return dict(
                        match=rs.where(accepted, chosen, match),
                        taken=taken | out,
                        grant=rs.where(first & out, (input_ + 1) % ports, grant),
                        accept=rs.where(first & accepted, (chosen + 1) % ports, accept),
                    )

                init = dict(match=rs.full(ports, -1, dtype="int32"), taken=rs.zeros(ports, dtype=bool), grant=grant, accept=accept)
                last = rs.loop(round_, over=dict(r=rs.arange(rounds)), init=init).last
                queue = queue - rs.cast(last.match[:, None] == places, "int32")
                return dict(
                    queue=queue,
                    grant=last.grant,
                    accept=last.accept,
                    sent=rs.sum(last.match >= 0, dtype="int32"),
                    waiting=rs.sum(queue, dtype="int32"),
                    longest=rs.max(queue),
                )

            zeros = rs.zeros(ports, dtype="int32")
            init = dict(queue=rs.zeros((ports, ports), dtype="int32"), grant=zeros, accept=zeros)
            out = rs.loop(slot, over=dict(arriving=arrivals), init=init)
            return out.sent, out.waiting, out.longest, out.last.queue, out.last.grant, out.last.accept

        return switched

    def jax(self, ports, slots, rounds):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def switched(arrivals):
            places = jnp.arange(ports, dtype=jnp.int32)

            def slot(carry, arriving):
                queue, grant, accept = carry
                queue = queue + (arriving[:, None] == places).astype(jnp.int32)

                def round_(carry, r):
                    match, taken, grant, accept = carry
                    asks = (queue > 0) & (match < 0)[:, None] & ~taken
                    turn = (places[:, None] - grant) % ports
                    granted_to = jnp.argmin(jnp.where(asks, turn, ports), axis=0)
                    grants = asks & (places[:, None] == granted_to)
                    turn = (places - accept[:, None]) % ports
                    chosen = jnp.argmin(jnp.where(grants, turn, ports), axis=1).astype(jnp.int32)
                    accepted = jnp.any(grants, axis=1)
                    pair = accepted[:, None] & (chosen[:, None] == places)
                    first = r == 0
                    out = jnp.any(pair, axis=0)
                    input_ = jnp.argmax(pair, axis=0).astype(jnp.int32)
                    match = jnp.where(accepted, chosen, match)
                    grant = jnp.where(first & out, (input_ + 1) % ports, grant)
                    accept = jnp.where(first & accepted, (chosen + 1) % ports, accept)
                    return (match, taken | out, grant, accept), None

                start = jnp.full(ports, -1, jnp.int32), jnp.zeros(ports, bool), grant, accept
                (match, _, grant, accept), _ = lax.scan(round_, start, jnp.arange(rounds))
                queue = queue - (match[:, None] == places).astype(jnp.int32)
                sent = jnp.sum(match >= 0, dtype=jnp.int32)
                return (queue, grant, accept), (sent, jnp.sum(queue, dtype=jnp.int32), jnp.max(queue))

            zeros = jnp.zeros(ports, jnp.int32)
            carry, rows = lax.scan(slot, (jnp.zeros((ports, ports), jnp.int32), zeros, zeros), arrivals)
            return *rows, *carry

        return jax.jit(switched)
