"""What people in practice loop over: ten programs that have little in common but the loop."""

import numpy as np
import rscan as rs
from models import Model


class RingBufferAttention(Model):
    """A cell that attends, with rotary positions, to the last k of its own states, kept in a ring buffer; trained."""

    kind = "practice"
    dtype = "float32"
    size = dict(steps=48, batch=4, dim=32, slots=12)
    small = dict(steps=7, batch=2, dim=8, slots=3)

    def make(self, random, steps, batch, dim, slots):
        def weights():
            return (random.normal(size=(dim, dim)) / dim**0.5).astype("float32")

        x = random.normal(size=(steps, batch, dim)).astype("float32")
        target = np.tanh(random.normal(size=(steps, batch, dim))).astype("float32")
        freqs = (100.0 ** (-np.arange(dim // 2) / (dim // 2))).astype("float32")
        return weights(), weights(), weights(), weights(), x, target, freqs

    def rscan(self, steps, batch, dim, slots):
        half = dim // 2

        def rotate(v, cos, sin):
            a, b = v[..., :half], v[..., half:]
            return rs.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)

        @rs.compile
        def loss(wq, wk, wv, wo, x, target, freqs):
            def step(x, t, h, keys, values):
                u = x + h
                angle = rs.cast(t, "float32") * freqs
                cos, sin = rs.cos(angle), rs.sin(angle)
                q, k = rotate(u @ wq, cos, sin), rotate(u @ wk, cos, sin)
                keys = keys.at[:, t % slots].set(k)
                values = values.at[:, t % slots].set(u @ wv)
                score = rs.sum(keys * q[:, None, :], axis=-1) / dim**0.5
                score = rs.where(rs.arange(slots) <= t, score, -1e9)
                read = rs.sum(rs.softmax(score, axis=-1)[:, :, None] * values, axis=1)
                return dict(h=rs.tanh(x + read @ wo), keys=keys, values=values)

            empty = rs.zeros((batch, slots, dim), dtype="float32")
            out = rs.loop(
                step,
                over=dict(x=x, t=rs.arange(x.shape[0])),
                init=dict(h=rs.zeros((batch, dim), dtype="float32"), keys=empty, values=empty),
            )
            return rs.mean((out.h - target) ** 2)

        return rs.value_and_grad(loss, argnums=(0, 1, 2, 3))

    def jax(self, steps, batch, dim, slots):
        import jax
        import jax.numpy as jnp

        half = dim // 2

        def rotate(v, cos, sin):
            a, b = v[..., :half], v[..., half:]
            return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)

        def loss(wq, wk, wv, wo, x, target, freqs):
            def step(carry, row):
                h, keys, values = carry
                x, t = row
                u = x + h
                angle = t.astype(jnp.float32) * freqs
                cos, sin = jnp.cos(angle), jnp.sin(angle)
                q, k = rotate(u @ wq, cos, sin), rotate(u @ wk, cos, sin)
                keys = keys.at[:, t % slots].set(k)
                values = values.at[:, t % slots].set(u @ wv)
                score = jnp.einsum("bsd,bd->bs", keys, q) / dim**0.5
                score = jnp.where(jnp.arange(slots) <= t, score, -1e9)
                read = jnp.einsum("bs,bsd->bd", jax.nn.softmax(score, axis=-1), values)
                h = jnp.tanh(x + read @ wo)
                return (h, keys, values), h

            empty = jnp.zeros((batch, slots, dim), jnp.float32)
            start = (jnp.zeros((batch, dim), jnp.float32), empty, empty)
            _, h = jax.lax.scan(step, start, (x, jnp.arange(steps)))
            return jnp.mean((h - target) ** 2)

        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2, 3)))


class TransducerLatticeLoss(Model):
    """The loss of a transducer (RNN-T) of a few utterances, with its joint network, and its gradient."""

    kind = "practice"
    dtype = "float32"
    size = dict(frames=40, labels=12, batch=4, hidden=24, vocabulary=20)
    small = dict(frames=5, labels=3, batch=2, hidden=4, vocabulary=5)

    def make(self, random, frames, labels, batch, hidden, vocabulary):
        encoded = random.normal(size=(batch, frames, hidden)).astype("float32")
        predicted = random.normal(size=(batch, labels + 1, hidden)).astype("float32")
        joint = (random.normal(size=(hidden, vocabulary)) / hidden**0.5).astype("float32")
        return encoded, predicted, joint, random.integers(1, vocabulary, size=(batch, labels)).astype("int32")

    def rscan(self, frames, labels, batch, hidden, vocabulary):
        def utterance(encoded, predicted, joint, text):
            def frame(e, arrive):
                logp = rs.log_softmax(rs.tanh(e + predicted) @ joint, axis=-1)  # labels + 1, vocabulary
                blank, emit = logp[:, 0], logp[rs.arange(labels), text]
                climb = rs.loop(
                    lambda arrive, emit, below: rs.logaddexp(arrive, below + emit),
                    over=[arrive[1:], emit],
                    init=arrive[0],
                )
                return rs.concatenate([arrive[:1], climb]) + blank

            start = rs.where(rs.arange(labels + 1) == 0, 0.0, -1e30)
            return -rs.loop(frame, over=encoded, init=rs.cast(start, "float32"))[-1][labels]

        @rs.compile
        def loss(encoded, predicted, joint, text):
            return rs.mean(rs.vmap(utterance, in_axes=(0, 0, None, 0))(encoded, predicted, joint, text))

        return rs.value_and_grad(loss, argnums=(0, 1, 2))

    def jax(self, frames, labels, batch, hidden, vocabulary):
        import jax
        import jax.numpy as jnp

        def utterance(encoded, predicted, joint, text):
            def frame(arrive, e):
                logp = jax.nn.log_softmax(jnp.tanh(e + predicted) @ joint, axis=-1)
                blank, emit = logp[:, 0], logp[jnp.arange(labels), text]

                def climb(below, row):
                    arrive, emit = row
                    now = jnp.logaddexp(arrive, below + emit)
                    return now, now

                _, rest = jax.lax.scan(climb, arrive[0], (arrive[1:], emit))
                return jnp.concatenate([arrive[:1], rest]) + blank, None

            start = jnp.where(jnp.arange(labels + 1) == 0, 0.0, -1e30).astype(jnp.float32)
            return -jax.lax.scan(frame, start, encoded)[0][labels]

        def loss(encoded, predicted, joint, text):
            return jnp.mean(jax.vmap(utterance, in_axes=(0, 0, None, 0))(encoded, predicted, joint, text))

        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2)))


class TandemQueueNetwork(Model):
    """Customers pass three stations of several servers each, leave where the wait is too long, and some skip the second."""

    kind = "practice"
    dtype = "float64"
    size = dict(customers=3000, servers=6)
    small = dict(customers=25, servers=2)

    def make(self, random, customers, servers):
        arrivals = np.cumsum(random.exponential(1.0, size=customers))
        services = random.gamma(2.0, 0.5, size=(customers, 3)) * servers * np.array([0.95, 1.1, 0.9])
        return arrivals, services, random.random(customers) < 0.2, np.array([2.0, 4.0, 3.0]) * servers / 2

    def rscan(self, customers, servers):
        @rs.compile
        def simulate(arrivals, services, skips, patience):
            def step(arrival, service, skip, free, balked):
                now, stays, rows = arrival, rs.constant(True), []
                for k in range(3):
                    begin = rs.maximum(now, free[k, 0])
                    stays = stays & (begin - now <= patience[k])
                    served = stays & ~skip if k == 1 else stays
                    done = begin + service[k]
                    rows.append(rs.where(served, rs.sort(free[k].at[0].set(done)), free[k]))
                    now = rs.where(served, done, now)
                return dict(free=rs.stack(rows), balked=balked + rs.where(stays, 0, 1), sojourn=now - arrival)

            out = rs.loop(
                step,
                over=dict(arrival=arrivals, service=services, skip=skips),
                init=dict(free=rs.zeros((3, servers)), balked=0),
            )
            return out.sojourn, out.last.balked, out.last.free

        return simulate

    def jax(self, customers, servers):
        import jax
        import jax.numpy as jnp

        def simulate(arrivals, services, skips, patience):
            def step(carry, row):
                free, balked = carry
                arrival, service, skip = row
                now, stays, rows = arrival, jnp.array(True), []
                for k in range(3):
                    begin = jnp.maximum(now, free[k, 0])
                    stays = stays & (begin - now <= patience[k])
                    served = stays & ~skip if k == 1 else stays
                    done = begin + service[k]
                    rows.append(jnp.where(served, jnp.sort(free[k].at[0].set(done)), free[k]))
                    now = jnp.where(served, done, now)
                return (jnp.stack(rows), balked + jnp.where(stays, 0, 1)), now - arrival

            start = (jnp.zeros((3, servers)), jnp.int64(0))
            (free, balked), sojourn = jax.lax.scan(step, start, (arrivals, services, skips))
            return sojourn, balked, free

        return jax.jit(simulate)


class SerpentineErrorDiffusion(Model):
    """Floyd and Steinberg's dithering of an image to a few levels of grey, every other row from right to left."""

    kind = "practice"
    dtype = "float32"
    size = dict(height=64, width=96, levels=4)
    small = dict(height=5, width=6, levels=3)

    def make(self, random, height, width, levels):
        y, x = np.mgrid[:height, :width]
        picture = 0.5 + 0.3 * np.sin(x / 9.0) * np.cos(y / 7.0) + 0.05 * random.normal(size=(height, width))
        return (np.clip(picture, 0, 1).astype("float32"),)

    def rscan(self, height, width, levels):
        @rs.compile
        def dither(image):
            def line(pixels, y, above):
                def pixel(value, handed):
                    value = value + handed
                    level = rs.clip(rs.round(value * (levels - 1)), 0, levels - 1)
                    error = value - level / (levels - 1)
                    return dict(handed=error * (7 / 16), level=rs.cast(level, "uint8"), error=error)

                odd = y % 2 == 1
                wanted = pixels + above
                out = rs.loop(pixel, over=dict(value=rs.where(odd, wanted[::-1], wanted)), init=dict(handed=rs.zeros((), dtype="float32")))
                padded = rs.pad(out.error, 1)
                below = padded[2:] * (3 / 16) + padded[1:-1] * (5 / 16) + padded[:-2] * (1 / 16)
                return dict(above=rs.where(odd, below[::-1], below), row=rs.where(odd, out.level[::-1], out.level))

            out = rs.loop(
                line,
                over=dict(pixels=image, y=rs.arange(image.shape[0])),
                init=dict(above=rs.zeros_like(image[0])),
            )
            return out.row, out.last.above

        return dither

    def jax(self, height, width, levels):
        import jax
        import jax.numpy as jnp

        def dither(image):
            def line(above, row):
                pixels, y = row

                def pixel(handed, value):
                    value = value + handed
                    level = jnp.clip(jnp.round(value * (levels - 1)), 0, levels - 1)
                    error = value - level / (levels - 1)
                    return error * (7 / 16), (level.astype(jnp.uint8), error)

                odd = y % 2 == 1
                wanted = pixels + above
                _, (level, error) = jax.lax.scan(pixel, jnp.float32(0), jnp.where(odd, wanted[::-1], wanted))
                padded = jnp.pad(error, 1)
                below = padded[2:] * (3 / 16) + padded[1:-1] * (5 / 16) + padded[:-2] * (1 / 16)
                return jnp.where(odd, below[::-1], below), jnp.where(odd, level[::-1], level)

            above, rows = jax.lax.scan(line, jnp.zeros_like(image[0]), (image, jnp.arange(height)))
            return rows, above

        return jax.jit(dither)


class EchoChamberCompressor(Model):
    """Two damped echoes, an allpass and a compressor with attack and release, whose settings are fitted to a recording."""

    kind = "practice"
    dtype = "float32"
    size = dict(samples=3000, first=113, second=149, allpass=37)
    small = dict(samples=40, first=5, second=7, allpass=3)

    def make(self, random, samples, first, second, allpass):
        burst = np.exp(-(np.arange(samples) % (samples // 4)) / 40.0)
        x = (random.normal(size=samples) * burst).astype("float32")
        target = np.convolve(x, np.exp(-np.arange(samples) / 60.0))[:samples].astype("float32") * np.float32(0.3)
        # feedback of both echoes, damping, gain of the allpass, threshold in dB, ratio, attack, release
        return np.array([0.7, 0.65, 0.3, 0.5, -18.0, 3.0, 0.6, 0.98], "float32"), x, target

    def rscan(self, samples, first, second, allpass):
        @rs.compile
        def loss(p, x, target):
            def step(x, target, one, two, low, chamber, envelope):
                low = (1 - p[2]) * (p[0] * one + p[1] * two) + p[2] * low
                wet = 0.5 * (x + low)
                inner = wet + p[3] * chamber
                out = chamber - p[3] * inner
                size = rs.abs(out)
                coefficient = rs.where(size > envelope, p[6], p[7])
                envelope = coefficient * envelope + (1 - coefficient) * size
                over = rs.maximum(20 * rs.log10(envelope + 1e-6) - p[4], 0)
                out = out * 10 ** (-over * (1 - 1 / p[5]) / 20)
                return dict(one=x + low, two=x - low, low=low, chamber=inner, envelope=envelope, error=(out - target) ** 2)

            silence = rs.zeros((), dtype="float32")
            out = rs.loop(
                step,
                over=dict(x=x, target=target),
                init=dict(
                    one=rs.taps(rs.zeros(first, dtype="float32"), -first),
                    two=rs.taps(rs.zeros(second, dtype="float32"), -second),
                    low=silence,
                    chamber=rs.taps(rs.zeros(allpass, dtype="float32"), -allpass),
                    envelope=silence,
                ),
            )
            return rs.mean(out.error)

        return rs.value_and_grad(loss)

    def jax(self, samples, first, second, allpass):
        import jax
        import jax.numpy as jnp

        def loss(p, x, target):
            def step(carry, row):
                ones, twos, low, chambers, envelope = carry
                x, target, t = row
                one, two, chamber = ones[t % first], twos[t % second], chambers[t % allpass]
                low = (1 - p[2]) * (p[0] * one + p[1] * two) + p[2] * low
                wet = 0.5 * (x + low)
                inner = wet + p[3] * chamber
                out = chamber - p[3] * inner
                size = jnp.abs(out)
                coefficient = jnp.where(size > envelope, p[6], p[7])
                envelope = coefficient * envelope + (1 - coefficient) * size
                over = jnp.maximum(20 * jnp.log10(envelope + 1e-6) - p[4], 0)
                out = out * 10 ** (-over * (1 - 1 / p[5]) / 20)
                ones = ones.at[t % first].set(x + low)
                twos = twos.at[t % second].set(x - low)
                chambers = chambers.at[t % allpass].set(inner)
                return (ones, twos, low, chambers, envelope), (out - target) ** 2

            def silence(n):
                return jnp.zeros(n, jnp.float32)

            start = (silence(first), silence(second), silence(()), silence(allpass), silence(()))
            return jnp.mean(jax.lax.scan(step, start, (x, target, jnp.arange(samples)))[1])

        return jax.jit(jax.value_and_grad(loss))


class LeadTimeInventory(Model):
    """Perishable stock of many items in many scenarios, orders that arrive days later: costs by levels of the policy."""

    kind = "practice"
    dtype = "float64"
    size = dict(days=250, scenarios=8, items=16, lead=5)
    small = dict(days=12, scenarios=2, items=3, lead=2)

    def make(self, random, days, scenarios, items, lead):
        demand = random.poisson(random.uniform(3, 12, size=items), size=(days, scenarios, items)).astype("float64")
        demand += random.uniform(0, 1, size=demand.shape)
        level, batch = random.uniform(40, 90, size=items), random.uniform(5, 20, size=items)
        return level, batch, demand, random.uniform(0.5, 1.5, size=items), random.uniform(8, 12, size=items)

    def rscan(self, days, scenarios, items, lead):
        @rs.compile
        def cost(level, batch, demand, holding, penalty):
            def step(demand, stock, pipeline, order):
                stock = 0.98 * stock + order  # what was ordered `lead` days ago
                pipeline = pipeline - order
                sold = rs.minimum(stock, demand)
                stock = stock - sold
                gap = level - stock - pipeline
                placed = 4 * rs.softplus((gap - batch) / 4)  # a soft threshold
                fixed = 20 * (1 - rs.exp(-placed))
                cost = holding * stock + penalty * (demand - sold) + fixed
                return dict(stock=stock, pipeline=pipeline + placed, order=placed, cost=rs.sum(cost))

            nothing = rs.zeros((scenarios, items))
            out = rs.loop(
                step,
                over=dict(demand=demand),
                init=dict(stock=nothing + level, pipeline=nothing, order=rs.taps(rs.zeros((lead, scenarios, items)), -lead)),
            )
            return rs.mean(out.cost)

        return rs.value_and_grad(cost, argnums=(0, 1))

    def jax(self, days, scenarios, items, lead):
        import jax
        import jax.numpy as jnp

        def cost(level, batch, demand, holding, penalty):
            def step(carry, row):
                stock, pipeline, orders = carry
                demand, t = row
                order = orders[t % lead]
                stock = 0.98 * stock + order
                pipeline = pipeline - order
                sold = jnp.minimum(stock, demand)
                stock = stock - sold
                gap = level - stock - pipeline
                placed = 4 * jax.nn.softplus((gap - batch) / 4)
                fixed = 20 * (1 - jnp.exp(-placed))
                cost = holding * stock + penalty * (demand - sold) + fixed
                return (stock, pipeline + placed, orders.at[t % lead].set(placed)), jnp.sum(cost)

            nothing = jnp.zeros((scenarios, items))
            start = (nothing + level, nothing, jnp.zeros((lead, scenarios, items)))
            return jnp.mean(jax.lax.scan(step, start, (demand, jnp.arange(days)))[1])

        return jax.jit(jax.value_and_grad(cost, argnums=(0, 1)))


class GatedMessageRounds(Model):
    """A graph network: messages along edges, gated and summed at nodes, for several rounds with the same weights; trained."""

    kind = "practice"
    dtype = "float32"
    size = dict(nodes=96, edges=384, dim=16, rounds=6)
    small = dict(nodes=7, edges=15, dim=4, rounds=3)

    def make(self, random, nodes, edges, dim, rounds):
        def weights(*shape):
            return (random.normal(size=shape) / shape[0] ** 0.5).astype("float32")

        source, sink = random.integers(0, nodes, size=(2, edges)).astype("int32")
        features = random.normal(size=(nodes, dim)).astype("float32")
        label = (random.random(nodes) < 0.5).astype("float32")
        kinds = random.normal(size=(edges, dim)).astype("float32")
        return (
            weights(2 * dim, 2 * dim),
            weights(2 * dim, 2 * dim),
            weights(2 * dim, dim),
            weights(dim),
            features,
            kinds,
            source,
            sink,
            label,
        )

    def rscan(self, nodes, edges, dim, rounds):
        @rs.compile
        def loss(w_message, w_gates, w_new, w_out, features, kinds, source, sink, label):
            degree = rs.segment_sum(rs.ones_like(kinds[:, 0]), sink, nodes)

            def step(h):
                both = rs.concatenate([h[source] + kinds, h[sink]], axis=1) @ w_message
                message = rs.sigmoid(both[:, :dim]) * rs.tanh(both[:, dim:])
                heard = rs.segment_sum(message, sink, nodes) / (1 + degree)[:, None]
                gates = rs.sigmoid(rs.concatenate([h, heard], axis=1) @ w_gates)
                reset, keep = gates[:, :dim], gates[:, dim:]
                new = rs.tanh(rs.concatenate([reset * h, heard], axis=1) @ w_new)
                return keep * h + (1 - keep) * new

            logit = rs.loop(step, init=features, n_steps=rounds)[-1] @ w_out
            return rs.mean(rs.softplus(logit) - label * logit)

        return rs.value_and_grad(loss, argnums=(0, 1, 2, 3))

    def jax(self, nodes, edges, dim, rounds):
        import jax
        import jax.numpy as jnp

        def loss(w_message, w_gates, w_new, w_out, features, kinds, source, sink, label):
            degree = jax.ops.segment_sum(jnp.ones_like(kinds[:, 0]), sink, nodes)

            def step(h, _):
                both = jnp.concatenate([h[source] + kinds, h[sink]], axis=1) @ w_message
                message = jax.nn.sigmoid(both[:, :dim]) * jnp.tanh(both[:, dim:])
                heard = jax.ops.segment_sum(message, sink, nodes) / (1 + degree)[:, None]
                gates = jax.nn.sigmoid(jnp.concatenate([h, heard], axis=1) @ w_gates)
                reset, keep = gates[:, :dim], gates[:, dim:]
                new = jnp.tanh(jnp.concatenate([reset * h, heard], axis=1) @ w_new)
                return keep * h + (1 - keep) * new, None

            logit = jax.lax.scan(step, features, None, length=rounds)[0] @ w_out
            return jnp.mean(jax.nn.softplus(logit) - label * logit)

        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2, 3)))


class BacktracedBeamSearch(Model):
    """Beam search with a small recurrent decoder, an end token, and hypotheses that are traced back from pointers."""

    kind = "practice"
    dtype = "float32"
    size = dict(steps=30, batch=3, beams=6, vocabulary=48, hidden=32)
    small = dict(steps=5, batch=2, beams=3, vocabulary=7, hidden=4)

    def make(self, random, steps, batch, beams, vocabulary, hidden):
        def normal(*shape, scale=1.0):
            return (scale * random.normal(size=shape)).astype("float32")

        return (
            normal(batch, hidden),
            normal(vocabulary, hidden),
            normal(hidden, hidden, scale=1.5 / hidden**0.5),
            normal(hidden, vocabulary, scale=2.0 / hidden**0.5),
        )

    def rscan(self, steps, batch, beams, vocabulary, hidden):
        def decode(h, embedding, w, out):
            def step(h, token, score, done):
                h = rs.tanh(embedding[token] + h @ w)
                logp = rs.log_softmax(h @ out, axis=-1)
                stay = rs.where(rs.arange(vocabulary) == 0, 0.0, -1e9)  # 0 is the end
                logp = rs.where(done[:, None], rs.cast(stay, "float32"), logp)
                score, place = rs.top_k((score[:, None] + logp).reshape((beams * vocabulary,)), beams)
                parent, token = place // vocabulary, place % vocabulary
                done = done[parent] | (token == 0)
                return dict(h=h[parent], token=token, score=score, done=done, parent=parent)

            rows = rs.loop(
                step,
                init=dict(
                    h=rs.zeros((beams, hidden), dtype="float32") + h,
                    token=rs.zeros(beams, dtype="int64"),
                    score=rs.cast(rs.where(rs.arange(beams) == 0, 0.0, -1e9), "float32"),
                    done=rs.zeros(beams, dtype="bool"),
                ),
                n_steps=steps,
            )
            back = rs.loop(
                lambda token, parent, beam: dict(beam=parent[beam], text=token[beam]),
                over=dict(token=rows.token, parent=rows.parent),
                init=dict(beam=rs.arange(beams)),
                reverse=True,
            )
            return back.text, rows.last.score

        return rs.compile(rs.vmap(decode, in_axes=(0, None, None, None)))

    def jax(self, steps, batch, beams, vocabulary, hidden):
        import jax
        import jax.numpy as jnp

        def decode(h, embedding, w, out):
            def step(carry, _):
                h, token, score, done = carry
                h = jnp.tanh(embedding[token] + h @ w)
                logp = jax.nn.log_softmax(h @ out, axis=-1)
                stay = jnp.where(jnp.arange(vocabulary) == 0, 0.0, -1e9).astype(jnp.float32)
                logp = jnp.where(done[:, None], stay, logp)
                score, place = jax.lax.top_k((score[:, None] + logp).reshape(-1), beams)
                parent, token = place // vocabulary, place % vocabulary
                done = done[parent] | (token == 0)
                return (h[parent], token, score, done), (token, parent)

            start = (
                jnp.broadcast_to(h, (beams, hidden)),
                jnp.zeros(beams, jnp.int32),
                jnp.where(jnp.arange(beams) == 0, 0.0, -1e9).astype(jnp.float32),
                jnp.zeros(beams, bool),
            )
            (_, _, score, _), (tokens, parents) = jax.lax.scan(step, start, None, length=steps)

            def back(beam, row):
                token, parent = row
                return parent[beam], token[beam]

            _, text = jax.lax.scan(back, jnp.arange(beams, dtype=jnp.int32), (tokens, parents), reverse=True)
            return text, score

        return jax.jit(jax.vmap(decode, in_axes=(0, None, None, None)))


class SnowmeltRunoffCalibration(Model):
    """A hydrological model of many catchments (snow, soil, two stores, a threshold), calibrated to their runoff by gradient."""

    kind = "practice"
    dtype = "float32"
    size = dict(catchments=32, days=730)
    small = dict(catchments=3, days=20)

    def make(self, random, catchments, days):
        season = np.sin(2 * np.pi * np.arange(days) / 365)
        warmth = 6 - 10 * season + 3 * random.normal(size=(catchments, days))
        rain = random.gamma(0.4, 8.0, size=(catchments, days))
        demand = np.clip(2 - 1.5 * season, 0, None) + 0 * warmth
        observed = random.gamma(2.0, 1.2, size=(catchments, days))
        theta = random.normal(size=(catchments, 9)) * 0.5
        return tuple(v.astype("float32") for v in (theta, warmth, rain, demand, observed))

    def rscan(self, catchments, days):
        def misfit(theta, warmth, rain, demand, observed):
            s = rs.sigmoid(theta)
            melt_rate, freezes, capacity, shape = 1 + 5 * s[0], 2 * s[1] - 1, 100 + 300 * s[2], 1 + 3 * s[3]
            limit, fast, slow, base, percolation = 10 + 40 * s[4], 0.1 + 0.4 * s[5], 0.02 + 0.1 * s[6], 0.05 * s[7], 3 * s[8]

            def step(warm, rain, demand, observed, snow, soil, upper, lower, quick):
                before, yesterday = quick
                cold = warm < freezes
                snow = snow + rs.where(cold, rain, 0)
                melt = rs.minimum(snow, melt_rate * rs.maximum(warm - freezes, 0))
                water = rs.where(cold, 0, rain) + melt
                recharge = water * rs.minimum(soil / capacity, 1) ** shape
                soil = soil + water - recharge
                dried = rs.minimum(soil, demand * rs.minimum(soil / (0.6 * capacity), 1))
                upper = upper + recharge
                down = rs.minimum(upper, percolation)
                upper, lower = upper - down, lower + down
                runoff = fast * rs.maximum(upper - limit, 0) + slow * upper
                seep = base * lower
                routed = 0.5 * runoff + 0.3 * yesterday + 0.2 * before
                error = (routed + seep - observed) ** 2
                return dict(snow=snow - melt, soil=soil - dried, upper=upper - runoff, lower=lower - seep, quick=runoff, error=error)

            zero = rs.zeros((), dtype="float32")
            out = rs.loop(
                step,
                over=dict(warm=warmth, rain=rain, demand=demand, observed=observed),
                init=dict(snow=zero, soil=0.5 * capacity, upper=zero, lower=zero + 20, quick=rs.taps(rs.zeros(2, dtype="float32"), -2, -1)),
            )
            return rs.sum(out.error) / rs.sum((observed - rs.mean(observed)) ** 2)

        @rs.compile
        def loss(theta, warmth, rain, demand, observed):
            return rs.sum(rs.vmap(misfit)(theta, warmth, rain, demand, observed))

        return rs.value_and_grad(loss)

    def jax(self, catchments, days):
        import jax
        import jax.numpy as jnp

        def misfit(theta, warmth, rain, demand, observed):
            s = jax.nn.sigmoid(theta)
            melt_rate, freezes, capacity, shape = 1 + 5 * s[0], 2 * s[1] - 1, 100 + 300 * s[2], 1 + 3 * s[3]
            limit, fast, slow, base, percolation = 10 + 40 * s[4], 0.1 + 0.4 * s[5], 0.02 + 0.1 * s[6], 0.05 * s[7], 3 * s[8]

            def step(carry, row):
                snow, soil, upper, lower, before, yesterday = carry
                warm, rain, demand, observed = row
                cold = warm < freezes
                snow = snow + jnp.where(cold, rain, 0)
                melt = jnp.minimum(snow, melt_rate * jnp.maximum(warm - freezes, 0))
                water = jnp.where(cold, 0, rain) + melt
                recharge = water * jnp.minimum(soil / capacity, 1) ** shape
                soil = soil + water - recharge
                dried = jnp.minimum(soil, demand * jnp.minimum(soil / (0.6 * capacity), 1))
                upper = upper + recharge
                down = jnp.minimum(upper, percolation)
                upper, lower = upper - down, lower + down
                runoff = fast * jnp.maximum(upper - limit, 0) + slow * upper
                seep = base * lower
                routed = 0.5 * runoff + 0.3 * yesterday + 0.2 * before
                error = (routed + seep - observed) ** 2
                return (snow - melt, soil - dried, upper - runoff, lower - seep, yesterday, runoff), error

            zero = jnp.float32(0)
            start = (zero, 0.5 * capacity, zero, zero + 20, zero, zero)
            _, error = jax.lax.scan(step, start, (warmth, rain, demand, observed))
            return jnp.sum(error) / jnp.sum((observed - jnp.mean(observed)) ** 2)

        def loss(theta, warmth, rain, demand, observed):
            return jnp.sum(jax.vmap(misfit)(theta, warmth, rain, demand, observed))

        return jax.jit(jax.value_and_grad(loss))


class BertsekasAuctionAssignment(Model):
    """Bertsekas' auction: persons without an object bid for the best one, one after the other, until everyone has one."""

    kind = "practice"
    dtype = "int64"
    size = dict(persons=24)
    small = dict(persons=5)

    def make(self, random, persons):
        return (random.integers(0, 60, size=(persons, persons)) * (persons + 1),)

    def rscan(self, persons):
        @rs.compile
        def auction(benefit):
            def bid(price, owned):
                person = rs.argmax(owned < 0)
                value = benefit[person] - price
                thing = rs.argmax(value)
                second = rs.max(value.at[thing].set(-(10**9)))
                price = price.at[thing].add(value[thing] - second + 1)
                owned = rs.where(owned == thing, -1, owned).at[person].set(thing)
                return dict(price=price, owned=owned), rs.until(rs.all(owned >= 0))

            out = rs.loop(bid, init=dict(price=rs.zeros(persons, dtype="int64"), owned=rs.full(persons, -1, dtype="int64")))
            owned = out.last.owned
            return owned, rs.sum(benefit[rs.arange(persons), owned]), out.steps

        return auction

    def jax(self, persons):
        import jax
        import jax.numpy as jnp

        def auction(benefit):
            def bid(state):
                price, owned, steps = state
                person = jnp.argmax(owned < 0)
                value = benefit[person] - price
                thing = jnp.argmax(value)
                second = jnp.max(value.at[thing].set(-(10**9)))
                price = price.at[thing].add(value[thing] - second + 1)
                owned = jnp.where(owned == thing, -1, owned).at[person].set(thing)
                return price, owned, steps + 1

            start = (jnp.zeros(persons, jnp.int64), jnp.full(persons, -1, jnp.int64), jnp.int64(0))
            _, owned, steps = jax.lax.while_loop(lambda state: jnp.any(state[1] < 0), bid, start)
            return owned, jnp.sum(benefit[jnp.arange(persons), owned]), steps

        return jax.jit(auction)
