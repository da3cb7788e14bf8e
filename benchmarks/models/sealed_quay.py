"""Programs of many trades: what a reader of the manual writes on the first day."""

import math

import numpy as np

import rscan as rs
from models import Model


class PairHmmOdds(Model):
    """The forward probability of a pair HMM of two sequences, with its gradient to gaps and emissions."""

    kind = "bioinformatics"
    dtype = "float64"
    size = dict(n=60, m=50)
    small = dict(n=5, m=4)

    def make(self, random, n, m):
        p = {"gap": np.array(-2.0), "extend": np.array(-0.5), "pairs": random.normal(size=(4, 4)) * 0.3 + 1.5 * np.eye(4), "single": random.normal(size=4) * 0.1}
        return p, random.integers(0, 4, n), random.integers(0, 4, m)

    def rscan(self, n, m):
        @rs.compile
        def nll(p, x, y):
            pairs = rs.reshape(rs.log_softmax(rs.reshape(p["pairs"], 16)), (4, 4))
            single = rs.log_softmax(p["single"])
            opened, extended = rs.log_sigmoid(p["gap"]) + math.log(0.5), rs.log_sigmoid(p["extend"])
            stay = rs.log(1 - rs.sigmoid(p["gap"]))
            back = rs.log(1 - rs.sigmoid(p["extend"]))
            far = rs.zeros(m + 1) - 1e9

            def row(c, match, above, beside):
                new_match = pairs[c][y] + rs.logaddexp(stay + match[:-1], back + rs.logaddexp(above[:-1], beside[:-1]))
                new_match = rs.concatenate([rs.constant([-1e9]), new_match])
                new_above = single[c] + rs.logaddexp(opened + match, extended + above)
                left = rs.loop(
                    lambda e, match, beside: dict(beside=e + rs.logaddexp(opened + match, extended + beside)),
                    over=dict(e=single[y], match=new_match[:-1]),
                    init=dict(beside=-1e9),
                ).beside
                return dict(match=new_match, above=new_above, beside=rs.concatenate([rs.constant([-1e9]), left]))

            out = rs.loop(row, over=dict(c=x), init=dict(match=far.at[0].set(0.0), above=far, beside=far))
            last = out.last
            return -rs.logsumexp(rs.stack([last.match[-1], last.above[-1], last.beside[-1]]))

        return rs.value_and_grad(nll)

    def jax(self, n, m):
        import jax, jax.numpy as jnp

        def nll(p, x, y):
            pairs = jax.nn.log_softmax(p["pairs"].reshape(16)).reshape(4, 4)
            single = jax.nn.log_softmax(p["single"])
            opened = jax.nn.log_sigmoid(p["gap"]) + math.log(0.5)
            extended = jax.nn.log_sigmoid(p["extend"])
            stay = jnp.log(1 - jax.nn.sigmoid(p["gap"]))
            back = jnp.log(1 - jax.nn.sigmoid(p["extend"]))
            far = jnp.full(m + 1, -1e9)
            ey = single[y]

            def row(carry, c):
                match, above, beside = carry
                new_match = pairs[c][y] + jnp.logaddexp(stay + match[:-1], back + jnp.logaddexp(above[:-1], beside[:-1]))
                new_match = jnp.concatenate([jnp.array([-1e9]), new_match])
                new_above = single[c] + jnp.logaddexp(opened + match, extended + above)

                def cell(b, em):
                    b = em[0] + jnp.logaddexp(opened + em[1], extended + b)
                    return b, b

                left = jax.lax.scan(cell, -1e9, (ey, new_match[:-1]))[1]
                return (new_match, new_above, jnp.concatenate([jnp.array([-1e9]), left])), None

            (a, b, c), _ = jax.lax.scan(row, (far.at[0].set(0.0), far, far), x)
            return -jax.nn.logsumexp(jnp.stack([a[-1], b[-1], c[-1]]))

        return jax.jit(jax.value_and_grad(nll))


class ChamferDistanceMap(Model):
    """The 3-4 chamfer distance of each pixel to the nearest one that is set, in two passes over the image."""

    kind = "images"
    dtype = "int64"
    size = dict(h=48, w=64)
    small = dict(h=5, w=6)

    def make(self, random, h, w):
        return (random.random((h, w)) < 0.02,)

    def rscan(self, h, w):
        @rs.compile
        def f(mask):
            start = rs.where(mask, 0, 9999)

            def sweep(reverse):
                def row(d, above):
                    pad = rs.pad(above, 1, constant_values=9999)
                    best = rs.minimum(rs.minimum(d, above + 3), rs.minimum(pad[:-2], pad[2:]) + 4)
                    return rs.loop(lambda c, left: rs.minimum(c, left + 3), over=best, init=9999, reverse=reverse)

                return row

            first = rs.loop(sweep(False), over=start, init=rs.full(w, 9999))
            second = rs.loop(sweep(True), over=first, init=rs.full(w, 9999), reverse=True)
            return second, rs.bincount(rs.reshape(rs.minimum(second, 63), h * w), length=64)

        return f

    def jax(self, h, w):
        import jax, jax.numpy as jnp

        def f(mask):
            start = jnp.where(mask, 0, 9999)

            def sweep(reverse):
                def row(above, d):
                    pad = jnp.pad(above, 1, constant_values=9999)
                    best = jnp.minimum(jnp.minimum(d, above + 3), jnp.minimum(pad[:-2], pad[2:]) + 4)

                    def cell(left, c):
                        v = jnp.minimum(c, left + 3)
                        return v, v

                    new = jax.lax.scan(cell, jnp.int64(9999), best, reverse=reverse)[1]
                    return new, new

                return row

            first = jax.lax.scan(sweep(False), jnp.full(w, 9999), start)[1]
            second = jax.lax.scan(sweep(True), jnp.full(w, 9999), first, reverse=True)[1]
            return second, jnp.bincount(jnp.minimum(second, 63).reshape(-1), length=64)

        return jax.jit(f)


class SipHashLanes(Model):
    """SipHash-2-4 of many messages of words of 64 bits, and how they fall into buckets."""

    kind = "hashing"
    dtype = "uint64"
    size = dict(lanes=64, words=32)
    small = dict(lanes=3, words=4)

    def make(self, random, lanes, words):
        return random.integers(0, 2**64, 2, dtype=np.uint64), random.integers(0, 2**64, (lanes, words), dtype=np.uint64)

    def rscan(self, lanes, words):
        def turn(v, b):
            return (v << b) | (v >> (64 - b))

        def sipround(v0, v1, v2, v3):
            v0, v2 = v0 + v1, v2 + v3
            v1, v3 = turn(v1, 13) ^ v0, turn(v3, 16) ^ v2
            v0 = turn(v0, 32)
            v2, v0 = v2 + v1, v0 + v3
            v1, v3 = turn(v1, 17) ^ v2, turn(v3, 21) ^ v0
            return v0, v1, turn(v2, 32), v3

        def digest(key, message):
            def step(m, v0, v1, v2, v3):
                v0, v1, v2, v3 = sipround(*sipround(v0, v1, v2, v3 ^ m))
                return v0 ^ m, v1, v2, v3

            start = (
                key[0] ^ np.uint64(0x736F6D6570736575),
                key[1] ^ np.uint64(0x646F72616E646F6D),
                key[0] ^ np.uint64(0x6C7967656E657261),
                key[1] ^ np.uint64(0x7465646279746573),
            )
            v0, v1, v2, v3 = rs.loop(step, over=message, init=start).last
            v2 = v2 ^ np.uint64(255)
            v0, v1, v2, v3 = rs.loop(sipround, init=(v0, v1, v2, v3), n_steps=4).last
            return v0 ^ v1 ^ v2 ^ v3

        @rs.compile
        def f(key, messages):
            hashes = rs.vmap(digest, (None, 0))(key, messages)
            return hashes, rs.bincount(rs.cast(hashes >> 59, "int64"), length=32)

        return f

    def jax(self, lanes, words):
        import jax, jax.numpy as jnp

        def turn(v, b):
            return (v << np.uint64(b)) | (v >> np.uint64(64 - b))

        def sipround(v):
            v0, v1, v2, v3 = v
            v0, v2 = v0 + v1, v2 + v3
            v1, v3 = turn(v1, 13) ^ v0, turn(v3, 16) ^ v2
            v0 = turn(v0, 32)
            v2, v0 = v2 + v1, v0 + v3
            v1, v3 = turn(v1, 17) ^ v2, turn(v3, 21) ^ v0
            return v0, v1, turn(v2, 32), v3

        def f(key, messages):
            def digest(message):
                def step(v, m):
                    v0, v1, v2, v3 = v
                    v0, v1, v2, v3 = sipround(sipround((v0, v1, v2, v3 ^ m)))
                    return (v0 ^ m, v1, v2, v3), None

                start = (
                    key[0] ^ np.uint64(0x736F6D6570736575),
                    key[1] ^ np.uint64(0x646F72616E646F6D),
                    key[0] ^ np.uint64(0x6C7967656E657261),
                    key[1] ^ np.uint64(0x7465646279746573),
                )
                (v0, v1, v2, v3), _ = jax.lax.scan(step, start, message)
                v = jax.lax.fori_loop(0, 4, lambda i, v: sipround(v), (v0, v1, v2 ^ np.uint64(255), v3))
                return v[0] ^ v[1] ^ v[2] ^ v[3]

            hashes = jax.vmap(digest)(messages)
            return hashes, jnp.bincount((hashes >> np.uint64(59)).astype(jnp.int64), length=32)

        return jax.jit(f)


class GrayCodeQuasiBasket(Model):
    """An Asian option by a digital sequence in Gray code order, with its Greeks."""

    kind = "finance"
    dtype = "float64"
    size = dict(points=1024, dates=8)
    small = dict(points=6, dates=3)

    def make(self, random, points, dates):
        bits = np.arange(32)
        directions = ((2 * random.integers(0, 2**31, (dates, 32)) + 1) % (2 ** (bits + 1))) << (31 - bits)
        return {"spot": np.array(100.0), "sigma": np.array(0.25), "rate": np.array(0.03)}, directions, random.integers(1, 2**32, dates)

    def rscan(self, points, dates):
        @rs.compile
        def price(p, directions, shift):
            def step(t, x):
                c = rs.argmin((t >> rs.arange(32)) & 1)
                return x ^ directions[:, c]

            x = rs.loop(step, over=rs.arange(points), init=shift)
            z = rs.special.ndtri((x + 0.5) / 2.0**32)
            dt = 1.0 / dates
            walk = rs.cumsum((p["rate"] - 0.5 * p["sigma"] ** 2) * dt + p["sigma"] * math.sqrt(dt) * z, axis=1)
            mean = rs.mean(p["spot"] * rs.exp(walk), axis=1)
            return rs.exp(-p["rate"]) * rs.mean(rs.maximum(mean - 101.0, 0.0))

        return rs.value_and_grad(price)

    def jax(self, points, dates):
        import jax, jax.numpy as jnp

        def price(p, directions, shift):
            def step(x, t):
                x = x ^ directions[:, jnp.argmin((t >> jnp.arange(32)) & 1)]
                return x, x

            x = jax.lax.scan(step, shift, jnp.arange(points))[1]
            z = jax.scipy.special.ndtri((x + 0.5) / 2.0**32)
            dt = 1.0 / dates
            walk = jnp.cumsum((p["rate"] - 0.5 * p["sigma"] ** 2) * dt + p["sigma"] * math.sqrt(dt) * z, axis=1)
            mean = jnp.mean(p["spot"] * jnp.exp(walk), axis=1)
            return jnp.exp(-p["rate"]) * jnp.mean(jnp.maximum(mean - 101.0, 0.0))

        return jax.jit(jax.value_and_grad(price))


class PoolAdjacentViolators(Model):
    """Isotonic regression with weights: blocks on a stack, merged while they violate the order."""

    kind = "statistics"
    dtype = "float64"
    size = dict(n=800)
    small = dict(n=9)

    def make(self, random, n):
        return np.linspace(-1, 1, n) ** 3 + 0.3 * random.normal(size=n), random.uniform(0.5, 2.0, n)

    def rscan(self, n):
        @rs.compile
        def f(y, w):
            def push(y, w, means, weights, counts, top):
                top = top + 1

                def violates(s):
                    means, weights, counts, top = s
                    return (top > 0) & (means[rs.maximum(top - 1, 0)] >= means[top])

                def merge(s):
                    means, weights, counts, top = s
                    a, b = weights[top - 1], weights[top]
                    mean = (a * means[top - 1] + b * means[top]) / (a + b)
                    return means.at[top - 1].set(mean), weights.at[top - 1].set(a + b), counts.at[top - 1].add(counts[top]), top - 1

                start = (means.at[top].set(y), weights.at[top].set(w), counts.at[top].set(1), top)
                return rs.while_loop(violates, merge, start)

            means, weights, counts, top = rs.loop(push, over=(y, w), init=(rs.zeros(n), rs.zeros(n), rs.zeros(n, dtype="int64"), -1)).last
            used = rs.arange(n) <= top
            ends = rs.cumsum(rs.where(used, counts, 0))
            block = rs.searchsorted(ends, rs.arange(n), side="right")
            return means[block], top + 1

        return f

    def jax(self, n):
        import jax, jax.numpy as jnp

        def f(y, w):
            def push(s, yw):
                means, weights, counts, top = s
                top = top + 1

                def violates(s):
                    means, weights, counts, top = s
                    return (top > 0) & (means[jnp.maximum(top - 1, 0)] >= means[top])

                def merge(s):
                    means, weights, counts, top = s
                    a, b = weights[top - 1], weights[top]
                    mean = (a * means[top - 1] + b * means[top]) / (a + b)
                    return means.at[top - 1].set(mean), weights.at[top - 1].set(a + b), counts.at[top - 1].add(counts[top]), top - 1

                s = (means.at[top].set(yw[0]), weights.at[top].set(yw[1]), counts.at[top].set(1), top)
                return jax.lax.while_loop(violates, merge, s), None

            start = (jnp.zeros(n), jnp.zeros(n), jnp.zeros(n, jnp.int64), jnp.int64(-1))
            (means, weights, counts, top), _ = jax.lax.scan(push, start, (y, w))
            ends = jnp.cumsum(jnp.where(jnp.arange(n) <= top, counts, 0))
            block = jnp.searchsorted(ends, jnp.arange(n), side="right")
            return means[block], top + 1

        return jax.jit(f)


class BootstrapKaplanMedian(Model):
    """Kaplan-Meier curves of bootstrap samples, with Greenwood's variance and the median where there is one."""

    kind = "survival"
    dtype = "float64"
    size = dict(samples=100, subjects=200, times=40)
    small = dict(samples=3, subjects=8, times=5)

    def make(self, random, samples, subjects, times):
        counts = random.multinomial(subjects, np.full(subjects, 1 / subjects), size=samples)
        return counts, random.integers(0, times, subjects), random.random(subjects) < 0.7

    def rscan(self, samples, subjects, times):
        def curve(w, time, event):
            deaths = rs.segment_sum(rs.where(event, w, 0), time, times)
            leaving = rs.segment_sum(w, time, times)

            def step(d, gone, t, risk, s, v, median):
                share = rs.where(risk > 0, d / rs.maximum(risk, 1), 0.0)
                s = s * (1 - share)
                v = v + rs.where(risk > d, d / rs.maximum(risk * (risk - d), 1), 0.0)
                median = rs.where((median < 0) & (s <= 0.5), t, median)
                return dict(risk=risk - gone, s=s, v=v, median=median, deviation=s * rs.sqrt(v))

            out = rs.loop(
                step, over=dict(d=deaths, gone=leaving, t=rs.arange(times)), init=dict(risk=rs.sum(w), s=1.0, v=0.0, median=-1)
            )
            return out.s, out.deviation, out.last.median

        @rs.compile
        def f(counts, time, event):
            s, deviation, median = rs.vmap(curve, (0, None, None))(counts, time, event)
            return s, deviation, median, rs.quantile(s, 0.9, axis=0)

        return f

    def jax(self, samples, subjects, times):
        import jax, jax.numpy as jnp

        def curve(w, time, event):
            deaths = jax.ops.segment_sum(jnp.where(event, w, 0), time, times)
            leaving = jax.ops.segment_sum(w, time, times)

            def step(carry, x):
                risk, s, v, median = carry
                d, gone, t = x
                s = s * (1 - jnp.where(risk > 0, d / jnp.maximum(risk, 1), 0.0))
                v = v + jnp.where(risk > d, d / jnp.maximum(risk * (risk - d), 1), 0.0)
                median = jnp.where((median < 0) & (s <= 0.5), t, median)
                return (risk - gone, s, v, median), (s, s * jnp.sqrt(v))

            (_, _, _, median), (s, deviation) = jax.lax.scan(step, (jnp.sum(w), 1.0, 0.0, jnp.int64(-1)), (deaths, leaving, jnp.arange(times)))
            return s, deviation, median

        def f(counts, time, event):
            s, deviation, median = jax.vmap(curve, (0, None, None))(counts, time, event)
            return s, deviation, median, jnp.quantile(s, 0.9, axis=0)

        return jax.jit(f)


class DoubleQCliffWalk(Model):
    """Double Q-learning of several agents that walk along a cliff."""

    kind = "reinforcement"
    dtype = "float64"
    size = dict(agents=8, steps=500)
    small = dict(agents=2, steps=9)

    def make(self, random, agents, steps):
        return random.uniform(0.1, 0.5, agents), random.normal(size=(agents, 2, 48, 4)) * 0.01, random.random((agents, steps, 3))

    def rscan(self, agents, steps):
        moves = np.array([[-1, 0], [0, 1], [1, 0], [0, -1]])

        def learn(rate, tables, u):
            def step(u, tables, at, total, falls):
                values = tables[0, at] + tables[1, at]
                action = rs.where(u[0] < 0.1, rs.cast(rs.floor(4 * u[1]), "int64"), rs.argmax(values))
                move = rs.constant(moves)[action]
                row, column = rs.clip(at // 12 + move[0], 0, 3), rs.clip(at % 12 + move[1], 0, 11)
                cliff = (row == 3) & (column > 0) & (column < 11)
                goal = (row == 3) & (column == 11)
                new = rs.where(cliff, 36, row * 12 + column)
                reward = rs.where(cliff, -100.0, -1.0)
                k = rs.cast(u[2] < 0.5, "int64")
                best = rs.argmax(tables[k, new])
                target = reward + rs.where(goal, 0.0, 0.95 * tables[1 - k, new, best])
                tables = tables.at[k, at, action].add(rate * (target - tables[k, at, action]))
                return dict(tables=tables, at=rs.where(goal, 36, new), total=total + reward, falls=falls + cliff)

            out = rs.loop(step, over=dict(u=u), init=dict(tables=tables, at=36, total=0.0, falls=0))
            return out.last.tables, out.at, out.last.total, out.last.falls

        return rs.compile(rs.vmap(learn))

    def jax(self, agents, steps):
        import jax, jax.numpy as jnp

        moves = jnp.array([[-1, 0], [0, 1], [1, 0], [0, -1]])

        def learn(rate, tables, u):
            def step(carry, u):
                tables, at, total, falls = carry
                values = tables[0, at] + tables[1, at]
                action = jnp.where(u[0] < 0.1, jnp.floor(4 * u[1]).astype(jnp.int64), jnp.argmax(values))
                move = moves[action]
                row, column = jnp.clip(at // 12 + move[0], 0, 3), jnp.clip(at % 12 + move[1], 0, 11)
                cliff = (row == 3) & (column > 0) & (column < 11)
                goal = (row == 3) & (column == 11)
                new = jnp.where(cliff, 36, row * 12 + column)
                reward = jnp.where(cliff, -100.0, -1.0)
                k = (u[2] < 0.5).astype(jnp.int64)
                best = jnp.argmax(tables[k, new])
                target = reward + jnp.where(goal, 0.0, 0.95 * tables[1 - k, new, best])
                tables = tables.at[k, at, action].add(rate * (target - tables[k, at, action]))
                at = jnp.where(goal, 36, new)
                return (tables, at, total + reward, falls + cliff), at

            (tables, _, total, falls), at = jax.lax.scan(step, (tables, jnp.int64(36), 0.0, jnp.int64(0)), u)
            return tables, at, total, falls

        return jax.jit(jax.vmap(learn))


class PhaseVocoderStretch(Model):
    """A phase vocoder that makes a sound longer: spectra, phases that add up, frames that overlap."""

    kind = "audio"
    dtype = "float64"
    size = dict(window=256, frames=40, steps=56)
    small = dict(window=16, frames=5, steps=6)

    def make(self, random, window, frames, steps):
        hop = window // 4
        n = hop * (frames - 1) + window
        return np.sin(np.arange(n) * 0.11) + 0.5 * np.sin(np.arange(n) * 0.37) + 0.1 * random.normal(size=n), (frames - 1.01) / steps

    def rscan(self, window, frames, steps):
        hop, bins = window // 4, window // 2 + 1
        shape = np.hanning(window)
        expected = 2 * np.pi * hop * np.arange(bins) / window

        @rs.compile
        def f(x, speed):
            cut = x[rs.arange(frames)[:, None] * hop + rs.arange(window)] * shape
            re, im = rs.fft.rfft(cut, axis=-1)
            size, angle = rs.sqrt(re**2 + im**2), rs.arctan2(im, re)

            def step(t, phase, out):
                place = t * speed
                i = rs.cast(rs.floor(place), "int64")
                part = place - i
                magnitude = (1 - part) * size[i] + part * size[i + 1]
                frame = rs.fft.irfft((magnitude * rs.cos(phase), magnitude * rs.sin(phase)), n=window) * shape
                turned = angle[i + 1] - angle[i] - expected
                turned = turned - 2 * np.pi * rs.round(turned / (2 * np.pi))
                return dict(phase=phase + expected + turned, out=out.at[t * hop + rs.arange(window)].add(frame))

            return rs.loop(step, over=dict(t=rs.arange(steps)), init=dict(phase=angle[0], out=rs.zeros(hop * (steps - 1) + window))).last.out

        return f

    def jax(self, window, frames, steps):
        import jax, jax.numpy as jnp

        hop, bins = window // 4, window // 2 + 1
        shape = jnp.asarray(np.hanning(window))
        expected = 2 * np.pi * hop * jnp.arange(bins) / window

        def f(x, speed):
            spectra = jnp.fft.rfft(x[jnp.arange(frames)[:, None] * hop + jnp.arange(window)] * shape, axis=-1)
            size, angle = jnp.abs(spectra), jnp.angle(spectra)

            def step(carry, t):
                phase, out = carry
                place = t * speed
                i = jnp.floor(place).astype(jnp.int64)
                part = place - i
                magnitude = (1 - part) * size[i] + part * size[i + 1]
                frame = jnp.fft.irfft(magnitude * jnp.exp(1j * phase), n=window) * shape
                turned = angle[i + 1] - angle[i] - expected
                turned = turned - 2 * np.pi * jnp.round(turned / (2 * np.pi))
                here = jax.lax.dynamic_slice(out, (t * hop,), (window,))
                return (phase + expected + turned, jax.lax.dynamic_update_slice(out, here + frame, (t * hop,))), None

            return jax.lax.scan(step, (angle[0], jnp.zeros(hop * (steps - 1) + window)), jnp.arange(steps))[0][1]

        return jax.jit(f)


class LadderFilterSolved(Model):
    """A ladder filter of a synthesiser without delay in its feedback: Newton's method for each sample, fitted to a sound."""

    kind = "audio"
    dtype = "float32"
    size = dict(samples=400, iterations=4)
    small = dict(samples=6, iterations=2)
    rtol = 1e-3

    def make(self, random, samples, iterations):
        p = {"cutoff": np.float32(0.15), "resonance": np.float32(2.0), "drive": np.float32(1.3)}
        x = random.normal(size=samples).astype("f4")
        return p, x, np.convolve(x, [0.1, 0.2, 0.3, 0.2, 0.1])[:samples].astype("f4")

    def rscan(self, samples, iterations):
        @rs.compile
        def loss(p, x, target):
            g = rs.tan(math.pi * p["cutoff"])
            share = g / (1 + g)
            k, drive = p["resonance"], p["drive"]

            def step(x, s):
                held = ((s[0] * share + s[1]) * share + s[2]) * share + s[3]
                held = held / (1 + g)

                def newton(y):
                    bent = rs.tanh(drive * (x - k * y))
                    error = y - share**4 * bent - held
                    return y - error / (1 + share**4 * k * drive * (1 - bent**2))

                y = rs.loop(newton, init=held, n_steps=iterations).last
                signal = rs.tanh(drive * (x - k * y))
                new = []
                for i in range(4):
                    v = share * (signal - s[i])
                    signal = v + s[i]
                    new.append(signal + v)
                return dict(s=rs.stack(new), y=signal)

            out = rs.loop(step, over=dict(x=x), init=dict(s=rs.zeros(4, dtype="float32")))
            return rs.mean((out.y - target) ** 2)

        return rs.value_and_grad(loss)

    def jax(self, samples, iterations):
        import jax, jax.numpy as jnp

        def loss(p, x, target):
            g = jnp.tan(math.pi * p["cutoff"])
            share = g / (1 + g)
            k, drive = p["resonance"], p["drive"]

            def step(s, x):
                held = (((s[0] * share + s[1]) * share + s[2]) * share + s[3]) / (1 + g)

                def newton(y, _):
                    bent = jnp.tanh(drive * (x - k * y))
                    error = y - share**4 * bent - held
                    return y - error / (1 + share**4 * k * drive * (1 - bent**2)), None

                y = jax.lax.scan(newton, held, None, length=iterations)[0]
                signal = jnp.tanh(drive * (x - k * y))
                new = []
                for i in range(4):
                    v = share * (signal - s[i])
                    signal = v + s[i]
                    new.append(signal + v)
                return jnp.stack(new), signal

            y = jax.lax.scan(step, jnp.zeros(4, jnp.float32), x)[1]
            return jnp.mean((y - target) ** 2)

        return jax.jit(jax.value_and_grad(loss))


class UnitCommitmentTrace(Model):
    """When power stations run, by a dynamic program over their hours on and off, and the schedule that it finds."""

    kind = "power systems"
    dtype = "float64"
    size = dict(units=20, hours=168, up=6, down=4)
    small = dict(units=2, hours=7, up=3, down=2)

    def make(self, random, units, hours, up, down):
        station = {
            "a": random.uniform(100, 400, units),
            "b": random.uniform(10, 30, units),
            "c": random.uniform(0.01, 0.1, units),
            "low": random.uniform(20, 50, units),
            "high": random.uniform(100, 300, units),
            "start": random.uniform(500, 3000, units),
        }
        return station, 35 + 15 * np.sin(np.arange(hours) * 2 * np.pi / 24) + 5 * random.normal(size=hours)

    def rscan(self, units, hours, up, down):
        # states: on for 1..up hours, then off for 1..down hours
        states = np.arange(up + down)
        stays = np.where(states < up, np.minimum(states + 1, up - 1), np.minimum(states + 1, up + down - 1))
        turns = np.where(states == up - 1, up, 0)
        may = (states == up - 1) | (states == up + down - 1)

        def one(station, price):
            output = rs.clip((price - station["b"]) / (2 * station["c"]), station["low"], station["high"])
            profit = price * output - station["a"] - station["b"] * output - station["c"] * output**2

            def back(profit, value):
                future = rs.where(states < up, profit, 0.0) + value
                stay = future[stays]
                turn = rs.where(may, future[turns] - rs.where(states < up, 0.0, station["start"]), -np.inf)
                return dict(value=rs.maximum(stay, turn), change=turn > stay)

            plan = rs.loop(back, over=dict(profit=profit), init=dict(value=rs.zeros(up + down)), reverse=True)

            def forth(change, state):
                return rs.where(change[state], rs.constant(turns)[state], rs.constant(stays)[state])

            path = rs.loop(forth, over=plan.change, init=up + down - 1)
            on = path < up
            return plan.value[0, -1], on, rs.where(on, output, 0.0)

        @rs.compile
        def f(stations, price):
            value, on, output = rs.vmap(one, (0, None))(stations, price)
            return value, on, rs.sum(output, axis=0)

        return f

    def jax(self, units, hours, up, down):
        import jax, jax.numpy as jnp

        states = np.arange(up + down)
        stays = jnp.asarray(np.where(states < up, np.minimum(states + 1, up - 1), np.minimum(states + 1, up + down - 1)))
        turns = jnp.asarray(np.where(states == up - 1, up, 0))
        may = jnp.asarray((states == up - 1) | (states == up + down - 1))
        on_state = jnp.asarray(states < up)

        def one(station, price):
            output = jnp.clip((price - station["b"]) / (2 * station["c"]), station["low"], station["high"])
            profit = price * output - station["a"] - station["b"] * output - station["c"] * output**2

            def back(value, profit):
                future = jnp.where(on_state, profit, 0.0) + value
                stay = future[stays]
                turn = jnp.where(may, future[turns] - jnp.where(on_state, 0.0, station["start"]), -jnp.inf)
                return jnp.maximum(stay, turn), turn > stay

            value, change = jax.lax.scan(back, jnp.zeros(up + down), profit, reverse=True)

            def forth(state, change):
                state = jnp.where(change[state], turns[state], stays[state])
                return state, state

            path = jax.lax.scan(forth, jnp.int64(up + down - 1), change)[1]
            on = path < up
            return value[-1], on, jnp.where(on, output, 0.0)

        def f(stations, price):
            value, on, output = jax.vmap(one, (0, None))(stations, price)
            return value, on, jnp.sum(output, axis=0)

        return jax.jit(f)


class BoucWenStoreys(Model):
    """An earthquake shakes a building of hysteretic storeys: Newmark's steps, Newton within, gradient to the stiffness."""

    kind = "structures"
    dtype = "float64"
    size = dict(storeys=4, steps=150)
    small = dict(storeys=2, steps=4)
    rtol = 1e-7

    def make(self, random, storeys, steps):
        p = {"k": np.linspace(300.0, 150.0, storeys), "alpha": np.array(0.2), "damping": np.array(0.5)}
        return p, 3.0 * np.sin(0.25 * np.arange(steps)) * np.exp(-np.arange(steps) / 80) + random.normal(size=steps)

    def rscan(self, storeys, steps):
        dt = 0.02

        @rs.compile
        def loss(p, ground):
            def drifts(u):
                return u - rs.concatenate([rs.zeros(1), u[:-1]])

            def forces(q):
                return q - rs.concatenate([q[1:], rs.zeros(1)])

            def step(ground, u, v, a, z):
                def motion(new):
                    acceleration = 4 / dt**2 * (new - u) - 4 / dt * v - a
                    return v + 0.5 * dt * (a + acceleration), acceleration

                def hysteresis(new):
                    d = drifts(new) - drifts(u)
                    return z + d - 20.0 * (0.5 * rs.abs(d) * rs.abs(z) * z + 0.5 * d * z**2)

                def residual(new):
                    speed, acceleration = motion(new)
                    q = p["k"] * (p["alpha"] * drifts(new) + (1 - p["alpha"]) * hysteresis(new)) + p["damping"] * drifts(speed)
                    return acceleration + forces(q) + ground

                def newton(new):
                    return new - rs.linalg.solve(rs.jacobian(residual)(new), residual(new))

                new = rs.loop(newton, init=u + dt * v, n_steps=3).last
                speed, acceleration = motion(new)
                return dict(u=new, v=speed, a=acceleration, z=hysteresis(new), drift=drifts(new))

            start = rs.zeros(storeys)
            out = rs.loop(step, over=dict(ground=ground), init=dict(u=start, v=start, a=start, z=start))
            return rs.sum(out.drift**8) ** 0.125

        return rs.value_and_grad(loss)

    def jax(self, storeys, steps):
        import jax, jax.numpy as jnp

        dt = 0.02

        def drifts(u):
            return u - jnp.concatenate([jnp.zeros(1), u[:-1]])

        def forces(q):
            return q - jnp.concatenate([q[1:], jnp.zeros(1)])

        def loss(p, ground):
            def step(carry, ground):
                u, v, a, z = carry

                def motion(new):
                    acceleration = 4 / dt**2 * (new - u) - 4 / dt * v - a
                    return v + 0.5 * dt * (a + acceleration), acceleration

                def hysteresis(new):
                    d = drifts(new) - drifts(u)
                    return z + d - 20.0 * (0.5 * jnp.abs(d) * jnp.abs(z) * z + 0.5 * d * z**2)

                def residual(new):
                    speed, acceleration = motion(new)
                    q = p["k"] * (p["alpha"] * drifts(new) + (1 - p["alpha"]) * hysteresis(new)) + p["damping"] * drifts(speed)
                    return acceleration + forces(q) + ground

                def newton(new, _):
                    return new - jnp.linalg.solve(jax.jacfwd(residual)(new), residual(new)), None

                new = jax.lax.scan(newton, u + dt * v, None, length=3)[0]
                speed, acceleration = motion(new)
                return (new, speed, acceleration, hysteresis(new)), drifts(new)

            start = jnp.zeros(storeys)
            drift = jax.lax.scan(step, (start, start, start, start), ground)[1]
            return jnp.sum(drift**8) ** 0.125

        return jax.jit(jax.value_and_grad(loss))


class TelegraphGeneBursts(Model):
    """Gillespie's runs of a gene that is on or off, until a time: counts of messengers and of events."""

    kind = "stochastic simulation"
    dtype = "float64"
    size = dict(runs=64)
    small = dict(runs=16)

    def make(self, random, runs):
        return 7, np.array([0.4, 0.8, 12.0, 1.0]), 5.0

    def rscan(self, runs):
        def one(key, rates, end):
            def step(i, time, on, count):
                k = rs.random.fold_in(key, i)
                hazards = rs.stack([rs.where(on, 0.0, rates[0]), rs.where(on, rates[1], 0.0), rs.where(on, rates[2], 0.0), rates[3] * count])
                total = rs.cumsum(hazards)
                u = rs.random.uniform(k, 2)
                new = time - rs.log1p(-u[0]) / total[3]
                which = rs.sum(u[1] * total[3] >= total)
                done = new > end
                on = rs.where(done, on, rs.where(which == 0, True, rs.where(which == 1, False, on)))
                count = rs.where(done, count, count + rs.where(which == 2, 1, 0) - rs.where(which == 3, 1, 0))
                return dict(time=new, on=on, count=count, i=i + 1), rs.until(done)

            out = rs.loop(step, init=dict(i=0, time=0.0, on=rs.constant(False), count=0))
            return out.last.count, out.last.i

        @rs.compile
        def f(seed, rates, end):
            key = rs.random.key(seed)
            keys = rs.vmap(lambda r: rs.random.fold_in(key, r))(rs.arange(runs))
            return rs.vmap(one, (0, None, None))(keys, rates, end)

        return f

    def jax(self, runs):
        import jax, jax.numpy as jnp

        def one(key, rates, end):
            def body(s):
                i, time, on, count, _ = s
                hazards = jnp.stack([jnp.where(on, 0.0, rates[0]), jnp.where(on, rates[1], 0.0), jnp.where(on, rates[2], 0.0), rates[3] * count])
                total = jnp.cumsum(hazards)
                u = jax.random.uniform(jax.random.fold_in(key, i), (2,))
                new = time - jnp.log1p(-u[0]) / total[3]
                which = jnp.sum(u[1] * total[3] >= total)
                done = new > end
                on = jnp.where(done, on, jnp.where(which == 0, True, jnp.where(which == 1, False, on)))
                count = jnp.where(done, count, count + jnp.where(which == 2, 1, 0) - jnp.where(which == 3, 1, 0))
                return i + 1, new, on, count, done

            s = jax.lax.while_loop(lambda s: ~s[-1], body, (jnp.int64(0), 0.0, jnp.array(False), jnp.int64(0), jnp.array(False)))
            return s[3], s[0]

        def f(seed, rates, end):
            keys = jax.random.split(jax.random.key(seed), runs)
            return jax.vmap(one, (0, None, None))(keys, rates, end)

        return jax.jit(f)

    def same(self, ours, theirs):
        assert len(ours) == len(theirs) == 2
        for a, b in zip(ours, theirs):
            assert a.shape == b.shape and a.dtype.kind == b.dtype.kind == "i"
            a, b = a.astype("f8"), b.astype("f8")
            assert abs(a.mean() - b.mean()) < 5 * math.sqrt((a.var() + b.var() + 1e-9) / len(a)), f"means {a.mean()} and {b.mean()}"


class ComplexDiagonalUnits(Model):
    """A linear recurrent unit with complex diagonal states, by an associative scan, trained."""

    kind = "sequence models"
    dtype = "float32"
    size = dict(steps=128, units=16, width=8)
    small = dict(steps=5, units=3, width=2)
    rtol = 1e-3

    def make(self, random, steps, units, width):
        r = lambda *shape: (0.4 * random.normal(size=shape)).astype("f4")
        p = {"nu": r(units) - 1, "theta": r(units), "b_re": r(width, units), "b_im": r(width, units), "c_re": r(units, width), "c_im": r(units, width), "d": r(width)}
        return p, r(steps, width), r(steps, width)

    def rscan(self, steps, units, width):
        @rs.compile
        def loss(p, x, y):
            size = rs.exp(-rs.exp(p["nu"]))
            re, im = size * rs.cos(p["theta"]), size * rs.sin(p["theta"])
            gain = rs.sqrt(1 - size**2)
            ones = rs.ones((steps, 1), dtype="float32")

            def combine(f, g):
                a, b, c, d = f
                k, l, m, n = g
                return k * a - l * b, k * b + l * a, k * c - l * d + m, k * d + l * c + n

            elements = (ones * re, ones * im, gain * (x @ p["b_re"]), gain * (x @ p["b_im"]))
            _, _, h_re, h_im = rs.associative_scan(combine, elements)
            out = h_re @ p["c_re"] - h_im @ p["c_im"] + p["d"] * x
            return rs.mean((rs.tanh(out) - y) ** 2)

        return rs.value_and_grad(loss)

    def jax(self, steps, units, width):
        import jax, jax.numpy as jnp

        def loss(p, x, y):
            size = jnp.exp(-jnp.exp(p["nu"]))
            lam = jax.lax.complex(size * jnp.cos(p["theta"]), size * jnp.sin(p["theta"]))
            gain = jnp.sqrt(1 - size**2)
            driven = jax.lax.complex(gain * (x @ p["b_re"]), gain * (x @ p["b_im"]))
            a = jnp.broadcast_to(lam, driven.shape)
            _, h = jax.lax.associative_scan(lambda f, g: (g[0] * f[0], g[0] * f[1] + g[1]), (a, driven))
            out = h.real @ p["c_re"] - h.imag @ p["c_im"] + p["d"] * x
            return jnp.mean((jnp.tanh(out) - y) ** 2)

        return jax.jit(jax.value_and_grad(loss))


class ImpulseResponseBands(Model):
    """A vector autoregression of two lags: impulse responses, and their deviations by the delta method."""

    kind = "econometrics"
    dtype = "float64"
    size = dict(quarters=200, series=3, horizon=12)
    small = dict(quarters=30, series=2, horizon=3)

    def make(self, random, quarters, series, horizon):
        y = np.zeros((quarters, series))
        for t in range(2, quarters):
            y[t] = 0.5 * y[t - 1] + 0.1 * y[t - 1].sum() - 0.1 * y[t - 2] + random.normal(size=series)
        return (y,)

    def rscan(self, quarters, series, horizon):
        @rs.compile
        def f(y):
            now, x = y[2:], rs.concatenate([y[1:-1], y[:-2]], axis=1)
            gram = x.T @ x
            b = rs.linalg.solve(gram, x.T @ now)
            left = now - x @ b
            sigma = left.T @ left / (quarters - 2 - 2 * series)
            root = rs.linalg.cholesky(sigma)

            def responses(b):
                a1, a2 = b[:series].T, b[series:].T

                def step(before, last):
                    return last, a1 @ last + a2 @ before

                rows = rs.loop(step, init=(rs.zeros((series, series)), root), n_steps=horizon)
                return rows[1]

            irf = responses(b)
            slopes = rs.reshape(rs.jacobian(responses)(b), (horizon * series * series, 2 * series * series))
            spread = rs.kron(rs.linalg.inv(gram), sigma)
            deviation = rs.sqrt(rs.sum((slopes @ spread) * slopes, axis=1))
            return irf, rs.reshape(deviation, (horizon, series, series))

        return f

    def jax(self, quarters, series, horizon):
        import jax, jax.numpy as jnp

        def f(y):
            now, x = y[2:], jnp.concatenate([y[1:-1], y[:-2]], axis=1)
            gram = x.T @ x
            b = jnp.linalg.solve(gram, x.T @ now)
            left = now - x @ b
            sigma = left.T @ left / (quarters - 2 - 2 * series)
            root = jnp.linalg.cholesky(sigma)

            def responses(b):
                a1, a2 = b[:series].T, b[series:].T

                def step(carry, _):
                    before, last = carry
                    new = a1 @ last + a2 @ before
                    return (last, new), new

                return jax.lax.scan(step, (jnp.zeros((series, series)), root), None, length=horizon)[1]

            slopes = jax.jacfwd(responses)(b).reshape(horizon * series * series, 2 * series * series)
            spread = jnp.kron(jnp.linalg.inv(gram), sigma)
            return responses(b), jnp.sqrt(jnp.sum((slopes @ spread) * slopes, axis=1)).reshape(horizon, series, series)

        return jax.jit(f)


class ModularitySweeps(Model):
    """Communities of a graph: each node moves to where modularity gains most, until a sweep moves none."""

    kind = "graphs"
    dtype = "int64"
    size = dict(nodes=60)
    small = dict(nodes=7)

    def make(self, random, nodes):
        group = np.arange(nodes) % 5
        links = random.random((nodes, nodes)) < np.where(group[:, None] == group, 0.5, 0.08)
        w = np.triu(links * random.integers(1, 4, (nodes, nodes)), 1)
        return (w + w.T,)

    def rscan(self, nodes):
        @rs.compile
        def f(w):
            strength = rs.sum(w, axis=1)
            whole = rs.sum(strength)

            def visit(i, labels, totals, moved):
                own = labels[i]
                totals = totals.at[own].add(-strength[i])
                links = rs.zeros(nodes, dtype="int64").at[labels].add(w[i])
                gains = links * whole - totals * strength[i]
                best = rs.argmax(gains)
                best = rs.where(gains[best] > gains[own], best, own)
                return dict(labels=labels.at[i].set(best), totals=totals.at[best].add(strength[i]), moved=moved + (best != own))

            def sweep(labels, totals):
                out = rs.loop(visit, over=dict(i=rs.arange(nodes)), init=dict(labels=labels, totals=totals, moved=0)).last
                return dict(labels=out.labels, totals=out.totals, moved=out.moved), rs.until(out.moved == 0)

            out = rs.loop(sweep, init=dict(labels=rs.arange(nodes), totals=strength), n_steps=20)
            labels = out.last.labels
            inside = rs.sum(rs.where(labels[:, None] == labels, w * whole - strength[:, None] * strength, 0))
            return labels, inside, out.steps, rs.max(out.moved)

        return f

    def jax(self, nodes):
        import jax, jax.numpy as jnp

        def f(w):
            strength = jnp.sum(w, axis=1)
            whole = jnp.sum(strength)

            def visit(i, s):
                labels, totals, moved = s
                own = labels[i]
                totals = totals.at[own].add(-strength[i])
                links = jnp.zeros(nodes, jnp.int64).at[labels].add(w[i])
                gains = links * whole - totals * strength[i]
                best = jnp.argmax(gains)
                best = jnp.where(gains[best] > gains[own], best, own)
                return labels.at[i].set(best), totals.at[best].add(strength[i]), moved + (best != own)

            def sweep(s):
                labels, totals, moved, steps, most = s
                labels, totals, moved = jax.lax.fori_loop(0, nodes, visit, (labels, totals, jnp.int64(0)))
                return labels, totals, moved, steps + 1, jnp.maximum(most, moved)

            start = (jnp.arange(nodes), strength, jnp.int64(1), jnp.int64(0), jnp.int64(0))
            labels, _, _, steps, most = jax.lax.while_loop(lambda s: (s[2] > 0) & (s[3] < 20), sweep, start)
            inside = jnp.sum(jnp.where(labels[:, None] == labels, w * whole - strength[:, None] * strength, 0))
            return labels, inside, steps, most

        return jax.jit(f)


class FloydWarshallRoutes(Model):
    """Shortest ways between all towns, and the ways that travellers take by the table of next towns."""

    kind = "graphs"
    dtype = "float64"
    size = dict(towns=40, travellers=50)
    small = dict(towns=5, travellers=4)

    def make(self, random, towns, travellers):
        roads = np.where(random.random((towns, towns)) < 0.12, random.uniform(1, 10, (towns, towns)), np.inf)
        ring = np.arange(towns)
        roads[ring, (ring + 1) % towns] = 8.0
        roads[ring, ring] = 0.0
        return roads, random.integers(0, towns, travellers), random.integers(0, towns, travellers)

    def rscan(self, towns, travellers):
        @rs.compile
        def f(roads, starts, ends):
            def relax(k, far, via):
                through = far[:, k][:, None] + far[k]
                better = through < far
                return dict(far=rs.where(better, through, far), via=rs.where(better, via[:, k][:, None], via))

            via = rs.where(rs.isfinite(roads), rs.arange(towns), -1)
            out = rs.loop(relax, over=dict(k=rs.arange(towns)), init=dict(far=roads, via=via)).last
            far, via = out.far, out.via

            def travel(start, end):
                def step(at, cost, longest):
                    new = via[at, end]
                    road = roads[at, new]
                    return dict(at=new, cost=cost + road, longest=rs.maximum(longest, road)), rs.until(new == end)

                way = rs.loop(step, init=dict(at=start, cost=0.0, longest=0.0), n_steps=rs.where(start == end, 0, towns))
                return way.last.at, way.last.cost, way.last.longest, way.steps

            return far, rs.vmap(travel)(starts, ends)

        return f

    def jax(self, towns, travellers):
        import jax, jax.numpy as jnp

        def f(roads, starts, ends):
            def relax(k, s):
                far, via = s
                through = far[:, k][:, None] + far[k]
                better = through < far
                return jnp.where(better, through, far), jnp.where(better, via[:, k][:, None], via)

            via = jnp.where(jnp.isfinite(roads), jnp.arange(towns), -1)
            far, via = jax.lax.fori_loop(0, towns, relax, (roads, via))

            def travel(start, end):
                def step(s):
                    at, cost, longest, steps = s
                    new = via[at, end]
                    road = roads[at, new]
                    return new, cost + road, jnp.maximum(longest, road), steps + 1

                return jax.lax.while_loop(lambda s: (s[0] != end) & (s[3] < towns), step, (start, 0.0, 0.0, jnp.int64(0)))

            return far, jax.vmap(travel)(starts, ends)

        return jax.jit(f)


class MedianEdgeContexts(Model):
    """How many bits a lossless coder of images needs: predictions at edges, biases and Golomb codes by context."""

    kind = "compression"
    dtype = "int64"
    size = dict(h=40, w=48)
    small = dict(h=4, w=5)

    def make(self, random, h, w):
        y, x = np.mgrid[:h, :w]
        return (np.clip(120 + 60 * np.sin(x / 9) + 40 * np.cos(y / 7) + random.normal(size=(h, w)) * 4, 0, 255).astype("int64"),)

    def rscan(self, h, w):
        def level(d):
            return rs.sign(d) * rs.where(rs.abs(d) > 12, 2, rs.where(rs.abs(d) > 3, 1, 0))

        @rs.compile
        def f(image):
            framed = rs.pad(image, ((1, 0), (1, 1)))
            a, b, c, d = framed[1:, :-2], framed[:-1, 1:-1], framed[:-1, :-2], framed[:-1, 2:]
            flat = lambda v: rs.reshape(v, h * w)

            def step(x, a, b, c, d, sizes, biases, shifts, counts):
                q = level(d - b) * 25 + level(b - c) * 5 + level(c - a) + 62
                n, size, bias, shift = counts[q], sizes[q], biases[q], shifts[q]
                guess = rs.where(c >= rs.maximum(a, b), rs.minimum(a, b), rs.where(c <= rs.minimum(a, b), rs.maximum(a, b), a + b - c))
                error = x - rs.clip(guess + shift, 0, 255)
                k = rs.sum((n << rs.arange(12)) < size)
                mapped = rs.where(error >= 0, 2 * error, -2 * error - 1)
                size, bias = size + rs.abs(error), bias + error
                half = n == 32
                size, bias, n = rs.where(half, size >> 1, size), rs.where(half, bias >> 1, bias), rs.where(half, n >> 1, n) + 1
                low, high = bias <= -n, bias > 0
                shift = rs.clip(shift - low + high, -128, 127)
                bias = rs.where(low, rs.maximum(bias + n, 1 - n), rs.where(high, rs.minimum(bias - n, 0), bias))
                return dict(
                    sizes=sizes.at[q].set(size),
                    biases=biases.at[q].set(bias),
                    shifts=shifts.at[q].set(shift),
                    counts=counts.at[q].set(n),
                    bits=(mapped >> k) + 1 + k,
                    error=error,
                )

            zero = rs.zeros(125, dtype="int64")
            out = rs.loop(
                step,
                over=dict(x=flat(image), a=flat(a), b=flat(b), c=flat(c), d=flat(d)),
                init=dict(sizes=zero + 4, biases=zero, shifts=zero, counts=zero + 1),
            )
            return rs.sum(out.bits), rs.reshape(out.error, (h, w)), out.last.shifts

        return f

    def jax(self, h, w):
        import jax, jax.numpy as jnp

        def level(d):
            return jnp.sign(d) * jnp.where(jnp.abs(d) > 12, 2, jnp.where(jnp.abs(d) > 3, 1, 0))

        def f(image):
            framed = jnp.pad(image, ((1, 0), (1, 1)))
            seen = (image, framed[1:, :-2], framed[:-1, 1:-1], framed[:-1, :-2], framed[:-1, 2:])

            def step(carry, pixel):
                sizes, biases, shifts, counts = carry
                x, a, b, c, d = pixel
                q = level(d - b) * 25 + level(b - c) * 5 + level(c - a) + 62
                n, size, bias, shift = counts[q], sizes[q], biases[q], shifts[q]
                guess = jnp.where(c >= jnp.maximum(a, b), jnp.minimum(a, b), jnp.where(c <= jnp.minimum(a, b), jnp.maximum(a, b), a + b - c))
                error = x - jnp.clip(guess + shift, 0, 255)
                k = jnp.sum((n << jnp.arange(12)) < size)
                mapped = jnp.where(error >= 0, 2 * error, -2 * error - 1)
                size, bias = size + jnp.abs(error), bias + error
                half = n == 32
                size, bias, n = jnp.where(half, size >> 1, size), jnp.where(half, bias >> 1, bias), jnp.where(half, n >> 1, n) + 1
                low, high = bias <= -n, bias > 0
                shift = jnp.clip(shift - low + high, -128, 127)
                bias = jnp.where(low, jnp.maximum(bias + n, 1 - n), jnp.where(high, jnp.minimum(bias - n, 0), bias))
                carry = (sizes.at[q].set(size), biases.at[q].set(bias), shifts.at[q].set(shift), counts.at[q].set(n))
                return carry, ((mapped >> k) + 1 + k, error)

            zero = jnp.zeros(125, jnp.int64)
            (_, _, shifts, _), (bits, error) = jax.lax.scan(step, (zero + 4, zero, zero, zero + 1), tuple(v.reshape(-1) for v in seen))
            return jnp.sum(bits), error.reshape(h, w), shifts

        return jax.jit(f)


class MagnetotelluricLayers(Model):
    """The resistivity of layers of the ground, from impedances at many periods: a recursion of complex numbers in Gauss-Newton steps."""

    kind = "geophysics"
    dtype = "float64"
    size = dict(layers=12, periods=24, iterations=4)
    small = dict(layers=3, periods=4, iterations=1)
    rtol = 1e-7

    def make(self, random, layers, periods, iterations):
        periods_ = np.logspace(-2, 3, periods)
        data = np.stack([2 + 0.4 * np.sin(np.log(periods_)), 0.8 + 0.1 * np.cos(np.log(periods_))], axis=1)
        return np.full(layers, 4.5), 100.0 * 1.4 ** np.arange(layers - 1), periods_, data + 0.01 * random.normal(size=data.shape)

    def rscan(self, layers, periods, iterations):
        def divided(a, b, c, d):
            size = c * c + d * d
            return (a * c + b * d) / size, (b * c - a * d) / size

        def sounding(m, thickness, period):
            omega = 2 * math.pi / period
            rho = rs.exp(m)
            k = rs.sqrt(omega * 4e-7 * math.pi / rho / 2)  # the wave number is k + ik
            own = rho * k  # and so is the impedance

            def step(own, k, h, re, im):
                up_re, up_im = divided(own - re, own - im, own + re, own + im)
                size, angle = rs.exp(-2 * k * h), -2 * k * h
                e_re, e_im = size * rs.cos(angle), size * rs.sin(angle)
                r_re, r_im = up_re * e_re - up_im * e_im, up_re * e_im + up_im * e_re
                t_re, t_im = divided(1 - r_re, -r_im, 1 + r_re, r_im)
                return dict(re=own * (t_re - t_im), im=own * (t_re + t_im))

            z = rs.loop(step, over=dict(own=own[:-1], k=k[:-1], h=thickness), init=dict(re=own[-1], im=own[-1]), go_backwards=True).last
            return rs.stack([rs.log10((z.re**2 + z.im**2) / (omega * 4e-7 * math.pi)), rs.arctan2(z.im, z.re)])

        @rs.compile
        def fit(m, thickness, periods, data):
            def predicted(m):
                return rs.ravel(rs.vmap(sounding, (None, None, 0))(m, thickness, periods))

            rough = np.diff(np.eye(layers), axis=0)

            def step(m):
                misfit, slopes = predicted(m) - rs.ravel(data), rs.jacobian(predicted)(m)
                matrix = slopes.T @ slopes + 0.05 * rough.T @ rough + 1e-3 * np.eye(layers)
                right = slopes.T @ misfit + 0.05 * (rough.T @ (rough @ m))
                return dict(m=m - rs.linalg.solve(matrix, right, assume="positive"), misfit=rs.sum(misfit**2))

            out = rs.loop(step, init=dict(m=m), n_steps=iterations)
            return out.last.m, out.misfit

        return fit

    def jax(self, layers, periods, iterations):
        import jax, jax.numpy as jnp

        def sounding(m, thickness, period):
            omega = 2 * math.pi / period
            rho = jnp.exp(m)
            k = jnp.sqrt(omega * 4e-7 * math.pi / rho / 2) * (1 + 1j)
            own = rho * k

            def step(z, x):
                own, k, h = x
                r = (own - z) / (own + z) * jnp.exp(-2 * k * h)
                return own * (1 - r) / (1 + r), None

            z = jax.lax.scan(step, own[-1], (own[:-1], k[:-1], thickness), reverse=True)[0]
            return jnp.stack([jnp.log10((z.real**2 + z.imag**2) / (omega * 4e-7 * math.pi)), jnp.arctan2(z.imag, z.real)])

        def fit(m, thickness, periods, data):
            def predicted(m):
                return jax.vmap(sounding, (None, None, 0))(m, thickness, periods).ravel()

            rough = np.diff(np.eye(layers), axis=0)

            def step(m, _):
                misfit, slopes = predicted(m) - data.ravel(), jax.jacfwd(predicted)(m)
                matrix = slopes.T @ slopes + 0.05 * rough.T @ rough + 1e-3 * jnp.eye(layers)
                right = slopes.T @ misfit + 0.05 * (rough.T @ (rough @ m))
                return m - jax.scipy.linalg.solve(matrix, right, assume_a="pos"), jnp.sum(misfit**2)

            return jax.lax.scan(step, m, None, length=iterations)

        return jax.jit(fit)
