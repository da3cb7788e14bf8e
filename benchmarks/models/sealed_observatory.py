"""Programs of ordinary practice: energy, ocean, medicine, marketing, audio, text, cryptography, robotics, translation, control."""

import numpy as np

import rscan as rs
from models import Model

KIND = "observatory"


class BatteryArbitrage(Model):
    """A battery is dispatched against known prices: dynamic programming over levels of charge, then the walk along the best decisions."""

    kind = KIND
    dtype = "float64"
    size = dict(hours=336, levels=61)
    small = dict(hours=9, levels=7)

    def make(self, random, hours, levels):
        t = np.arange(hours)
        prices = 60 + 25 * np.sin(2 * np.pi * (t - 9) / 24) + 12 * np.sin(2 * np.pi * t / 168) + 10 * random.normal(size=hours)
        return prices, levels // 3, 0.92, 1.5

    def rscan(self, hours, levels):
        rate = max(2, levels // 8)

        @rs.compile
        def plan(prices, start, efficiency, wear):
            level = rs.arange(levels)
            change = level[None, :] - level[:, None]
            allowed = rs.abs(change) <= rate
            energy = rs.where(change > 0, change / efficiency, change * efficiency)

            def backward(price, value):
                cash = -price * energy - wear * rs.abs(change)
                choices = rs.where(allowed, cash + value[None, :], -rs.inf)
                return dict(value=rs.max(choices, axis=1), best=rs.argmax(choices, axis=1))

            def forward(price, best, at):
                to = best[at]
                return dict(at=to, cash=-price * energy[at, to] - wear * rs.abs(to - at))

            back = rs.loop(backward, over=dict(price=prices), init=dict(value=30.0 * level), reverse=True)
            walk = rs.loop(forward, over=dict(price=prices, best=back.best), init=dict(at=start))
            return back.last.value[start], walk.at, walk.cash

        return plan

    def jax(self, hours, levels):
        import jax
        import jax.numpy as jnp

        rate = max(2, levels // 8)

        def plan(prices, start, efficiency, wear):
            level = jnp.arange(levels)
            change = level[None, :] - level[:, None]
            allowed = jnp.abs(change) <= rate
            energy = jnp.where(change > 0, change / efficiency, change * efficiency)

            def backward(value, price):
                cash = -price * energy - wear * jnp.abs(change)
                choices = jnp.where(allowed, cash + value[None, :], -jnp.inf)
                return jnp.max(choices, axis=1), jnp.argmax(choices, axis=1)

            def forward(at, row):
                price, best = row
                to = best[at]
                return to, (to, -price * energy[at, to] - wear * jnp.abs(to - at))

            value, best = jax.lax.scan(backward, 30.0 * level, prices, reverse=True)
            _, (path, cash) = jax.lax.scan(forward, start, (prices, best))
            return value[start], path, cash

        return jax.jit(plan)


class OceanMixedColumn(Model):
    """A column of ocean, mixed by wind and cooled from above (Pacanowski and Philander): sea surface temperatures are fitted."""

    kind = KIND
    dtype = "float64"
    size = dict(steps=96, depth=30)
    small = dict(steps=4, depth=5)
    rtol = 1e-8

    def make(self, random, steps, depth):
        t = np.arange(steps)
        sun = 700 * np.maximum(0, np.sin(2 * np.pi * (t - 6) / 24))
        loss = 150 + 20 * random.normal(size=steps)
        wind = 8e-5 * (1 + 0.5 * np.sin(t / 17.0)) + 1e-5 * random.uniform(size=steps)
        z = 2.5 + 5.0 * np.arange(depth)
        temperature = 20 - 0.04 * z - 4 / (1 + np.exp(-(z - 40) / 8))
        observed = 20 + 0.2 * np.sin(2 * np.pi * (t - 9) / 24) + 0.05 * random.normal(size=steps)
        params = dict(mixing=np.log(8e-3), background=np.log(2e-5), depth=np.log(12.0), drag=-11.0)
        return {k: np.float64(v) for k, v in params.items()}, temperature, sun, loss, wind, observed

    def rscan(self, steps, depth):
        h, dt = 5.0, 3600.0

        def solve(lower, diagonal, upper, right):  # Thomas: the right side has two columns
            def down(a, b, c, d, ratio, value):
                pivot = b - a * ratio
                return dict(ratio=c / pivot, value=(d - a * value) / pivot)

            def up(ratio, value, x):
                return dict(x=value - ratio * x)

            swept = rs.loop(down, over=dict(a=lower, b=diagonal, c=upper, d=right), init=dict(ratio=0.0, value=rs.zeros(2)))
            return rs.loop(up, over=dict(ratio=swept.ratio, value=swept.value), init=dict(x=rs.zeros(2)), reverse=True).x

        @rs.compile
        def misfit(p, temperature, sun, loss, wind, observed):
            edges = h * rs.arange(depth + 1)
            share = rs.exp(-edges / rs.exp(p["depth"]))
            absorbed = share[:-1] - share[1:]
            top = rs.arange(depth) == 0

            def step(sun, loss, wind, temp, speed):
                shear = ((speed[:-1] - speed[1:]) / h) ** 2 + 1e-8
                stability = 9.81 * 2e-4 * (temp[:-1] - temp[1:]) / h
                richardson = rs.maximum(stability / shear, 0.0)
                k = rs.exp(p["mixing"]) / (1 + 5 * richardson) ** 2 + rs.exp(p["background"])
                flow = dt * k / h**2
                zero = rs.zeros(1)
                lower, upper = rs.concatenate([zero, -flow]), rs.concatenate([-flow, zero])
                diagonal = 1 - lower - upper
                heat = (sun * absorbed - rs.where(top, loss, 0.0)) * dt / (4.1e6 * h)
                push = rs.where(top, wind, 0.0) * dt / h - rs.exp(p["drag"]) * dt * speed
                new = solve(lower, diagonal, upper, rs.stack([temp + heat, speed + push], axis=1))
                return dict(temp=new[:, 0], speed=new[:, 1], surface=new[0, 0])

            out = rs.loop(step, over=dict(sun=sun, loss=loss, wind=wind), init=dict(temp=temperature, speed=rs.zeros(depth)))
            return rs.mean((out.surface - observed) ** 2)

        return rs.value_and_grad(misfit)

    def jax(self, steps, depth):
        import jax
        import jax.numpy as jnp

        h, dt = 5.0, 3600.0

        def solve(lower, diagonal, upper, right):
            def down(carry, row):
                ratio, value = carry
                a, b, c, d = row
                pivot = b - a * ratio
                new = c / pivot, (d - a * value) / pivot
                return new, new

            def up(x, row):
                ratio, value = row
                x = value - ratio * x
                return x, x

            swept = jax.lax.scan(down, (0.0, jnp.zeros(2)), (lower, diagonal, upper, right))[1]
            return jax.lax.scan(up, jnp.zeros(2), swept, reverse=True)[1]

        def misfit(p, temperature, sun, loss, wind, observed):
            edges = h * jnp.arange(depth + 1)
            share = jnp.exp(-edges / jnp.exp(p["depth"]))
            absorbed = share[:-1] - share[1:]
            top = jnp.arange(depth) == 0

            def step(carry, row):
                temp, speed = carry
                sun, loss, wind = row
                shear = ((speed[:-1] - speed[1:]) / h) ** 2 + 1e-8
                stability = 9.81 * 2e-4 * (temp[:-1] - temp[1:]) / h
                richardson = jnp.maximum(stability / shear, 0.0)
                k = jnp.exp(p["mixing"]) / (1 + 5 * richardson) ** 2 + jnp.exp(p["background"])
                flow = dt * k / h**2
                zero = jnp.zeros(1)
                lower, upper = jnp.concatenate([zero, -flow]), jnp.concatenate([-flow, zero])
                diagonal = 1 - lower - upper
                heat = (sun * absorbed - jnp.where(top, loss, 0.0)) * dt / (4.1e6 * h)
                push = jnp.where(top, wind, 0.0) * dt / h - jnp.exp(p["drag"]) * dt * speed
                new = solve(lower, diagonal, upper, jnp.stack([temp + heat, speed + push], axis=1))
                return (new[:, 0], new[:, 1]), new[0, 0]

            surface = jax.lax.scan(step, (temperature, jnp.zeros(depth)), (sun, loss, wind))[1]
            return jnp.mean((surface - observed) ** 2)

        return jax.jit(jax.value_and_grad(misfit))


class WarfarinTitration(Model):
    """Patients take a daily dose that a nomogram adjusts each week by their INR; the nomogram is improved by its gradient."""

    kind = KIND
    dtype = "float64"
    size = dict(patients=48, weeks=8)
    small = dict(patients=3, weeks=2)

    def make(self, random, patients, weeks):
        clearance = 0.2 * np.exp(0.3 * random.normal(size=patients))
        sensitivity = 0.6 * np.exp(0.25 * random.normal(size=patients))
        return np.array([5.0, 0.12, 0.10]), clearance, sensitivity, 0.05 * random.normal(size=(patients, weeks))

    def rscan(self, patients, weeks):
        def patient(nomogram, clearance, sensitivity, noise):
            def hour(i, body):
                gut, plasma, factors = body
                absorbed = 0.7 * gut
                inhibition = plasma**1.2 / (sensitivity**1.2 + plasma**1.2)
                return (
                    gut - absorbed,
                    plasma + absorbed / 10 - clearance / 8 * plasma,
                    factors + 0.025 * ((1 - inhibition) - factors),
                )

            def day(dose, body, exposed):
                gut, plasma, factors = body
                body = rs.fori(0, 24, hour, (gut + dose, plasma, factors))
                inr = 1.0 / rs.maximum(body[2], 0.05) ** 0.8
                return body, exposed + rs.softplus(8 * (inr - 3.0)) / 8 + rs.softplus(8 * (2.0 - inr)) / 8

            def week(noise, dose, body, exposed):
                days = rs.loop(lambda body, exposed: day(dose, body, exposed), init=[body, exposed], n_steps=7)
                body, exposed = days.last[0], days.last[1]
                inr = 1.0 / rs.maximum(body[2], 0.05) ** 0.8 + noise
                factor = rs.where(inr < 2.0, 1 + nomogram[1], rs.where(inr > 3.0, 1 - nomogram[2], 1.0))
                factor = rs.where(inr > 4.5, 0.5 * factor, factor)
                return dict(dose=rs.clip(dose * factor, 0.5, 15.0), body=body, exposed=exposed)

            out = rs.loop(
                week,
                over=dict(noise=noise),
                init=dict(dose=nomogram[0], body=(0.0, 0.0, 1.0), exposed=0.0),
            )
            return out.last.exposed, out.dose

        @rs.compile
        def cost(nomogram, clearance, sensitivity, noise):
            exposed, doses = rs.vmap(patient, in_axes=(None, 0, 0, 0))(nomogram, clearance, sensitivity, noise)
            return rs.mean(exposed), doses

        return rs.value_and_grad(cost, has_aux=True)

    def jax(self, patients, weeks):
        import jax
        import jax.numpy as jnp

        def patient(nomogram, clearance, sensitivity, noise):
            def hour(i, body):
                gut, plasma, factors = body
                absorbed = 0.7 * gut
                inhibition = plasma**1.2 / (sensitivity**1.2 + plasma**1.2)
                return (
                    gut - absorbed,
                    plasma + absorbed / 10 - clearance / 8 * plasma,
                    factors + 0.025 * ((1 - inhibition) - factors),
                )

            def week(carry, noise):
                dose, body, exposed = carry

                def day(carry, _):
                    (gut, plasma, factors), exposed = carry
                    body = jax.lax.fori_loop(0, 24, hour, (gut + dose, plasma, factors))
                    inr = 1.0 / jnp.maximum(body[2], 0.05) ** 0.8
                    over = jax.nn.softplus(8 * (inr - 3.0)) / 8 + jax.nn.softplus(8 * (2.0 - inr)) / 8
                    return (body, exposed + over), None

                (body, exposed), _ = jax.lax.scan(day, (body, exposed), None, length=7)
                inr = 1.0 / jnp.maximum(body[2], 0.05) ** 0.8 + noise
                factor = jnp.where(inr < 2.0, 1 + nomogram[1], jnp.where(inr > 3.0, 1 - nomogram[2], 1.0))
                factor = jnp.where(inr > 4.5, 0.5 * factor, factor)
                dose = jnp.clip(dose * factor, 0.5, 15.0)
                return (dose, body, exposed), dose

            (_, _, exposed), doses = jax.lax.scan(week, (nomogram[0], (0.0, 0.0, 1.0), 0.0), noise)
            return exposed, doses

        def cost(nomogram, clearance, sensitivity, noise):
            exposed, doses = jax.vmap(patient, in_axes=(None, 0, 0, 0))(nomogram, clearance, sensitivity, noise)
            return jnp.mean(exposed), doses

        return jax.jit(jax.value_and_grad(cost, has_aux=True))


class DecayingAttribution(Model):
    """An event log of advertisements and purchases: each user's touches decay by channel; purchases are credited, the decay is learnt."""

    kind = KIND
    dtype = "float32"
    size = dict(events=2000, users=150, channels=6)
    small = dict(events=12, users=3, channels=2)

    def make(self, random, events, users, channels):
        time = np.cumsum(random.exponential(0.005, size=events)).astype(np.float32)
        user = random.integers(0, users, size=events).astype(np.int32)
        channel = random.integers(0, channels, size=events).astype(np.int32)
        bought = random.uniform(size=events) < 0.15
        params = dict(
            half_life=random.normal(size=channels).astype(np.float32),
            weight=random.uniform(0.1, 0.6, size=channels).astype(np.float32),
            bias=np.float32(-1.8),
        )
        return params, time, user, channel, bought

    def rscan(self, events, users, channels):
        @rs.compile
        def loss(p, time, user, channel, bought):
            rate = rs.exp(-p["half_life"])

            def step(time, user, channel, bought, scores, seen, credit):
                row = scores[user] * rs.exp(-rate * (time - seen[user]))
                pull = p["weight"] * row
                logit = p["bias"] + rs.sum(pull)
                entropy = rs.softplus(logit) - rs.where(bought, logit, 0.0)
                share = pull / (rs.sum(pull) + rs.exp(p["bias"]))
                row = rs.where(bought, 0.0, row.at[channel].add(1))
                return dict(
                    scores=scores.at[user].set(row),
                    seen=seen.at[user].set(time),
                    credit=rs.where(bought, credit + share, credit),
                    entropy=entropy,
                )

            out = rs.loop(
                step,
                over=dict(time=time, user=user, channel=channel, bought=bought),
                init=dict(
                    scores=rs.zeros((users, channels), dtype="float32"),
                    seen=rs.zeros(users, dtype="float32"),
                    credit=rs.zeros(channels, dtype="float32"),
                ),
            )
            return rs.mean(out.entropy), out.last.credit

        return rs.value_and_grad(loss, has_aux=True)

    def jax(self, events, users, channels):
        import jax
        import jax.numpy as jnp

        def loss(p, time, user, channel, bought):
            rate = jnp.exp(-p["half_life"])

            def step(carry, event):
                scores, seen, credit = carry
                time, user, channel, bought = event
                row = scores[user] * jnp.exp(-rate * (time - seen[user]))
                pull = p["weight"] * row
                logit = p["bias"] + jnp.sum(pull)
                entropy = jax.nn.softplus(logit) - jnp.where(bought, logit, 0.0)
                share = pull / (jnp.sum(pull) + jnp.exp(p["bias"]))
                row = jnp.where(bought, 0.0, row.at[channel].add(1))
                carry = scores.at[user].set(row), seen.at[user].set(time), jnp.where(bought, credit + share, credit)
                return carry, entropy

            init = jnp.zeros((users, channels), jnp.float32), jnp.zeros(users, jnp.float32), jnp.zeros(channels, jnp.float32)
            (_, _, credit), entropy = jax.lax.scan(step, init, (time, user, channel, bought))
            return jnp.mean(entropy), credit

        return jax.jit(jax.value_and_grad(loss, has_aux=True))


class SpectralDenoiser(Model):
    """Noise is taken out of a recording frame by frame: a tracked floor, Wiener gains (decision-directed), overlap and add."""

    kind = KIND
    dtype = "float32"
    size = dict(frames=150, hop=128)
    small = dict(frames=5, hop=8)
    rtol, atol = 1e-4, 1e-5

    def make(self, random, frames, hop):
        n = (frames + 1) * hop
        t = np.arange(n) / 8000
        voice = np.sin(2 * np.pi * 330 * t) * (np.sin(2 * np.pi * 3 * t) > 0) + 0.5 * np.sin(2 * np.pi * 990 * t)
        return ((voice + 0.2 * random.normal(size=n)).astype(np.float32),)

    def rscan(self, frames, hop):
        window = np.sin(np.pi * (np.arange(2 * hop) + 0.5) / (2 * hop)).astype(np.float32)

        @rs.compile
        def clean(sound):
            places = rs.arange(frames)[:, None] * hop + rs.arange(2 * hop)

            def step(frame, floor, before, tail):
                re, im = rs.fft.rfft(frame * window)
                power = re**2 + im**2
                floor = rs.where(power < floor, 0.7 * floor + 0.3 * power, 1.02 * floor)
                posterior = power / (floor + 1e-6)
                prior = 0.96 * before / (floor + 1e-6) + 0.04 * rs.maximum(posterior - 1, 0)
                gain = rs.maximum(prior / (1 + prior), 0.05)
                out = rs.fft.irfft((gain * re, gain * im), n=2 * hop) * window
                return dict(floor=floor, before=gain**2 * power, tail=out[hop:], sound=tail + out[:hop])

            silence = rs.zeros(hop + 1, dtype="float32")
            out = rs.loop(
                step,
                over=dict(frame=sound[places]),
                init=dict(floor=silence + 1, before=silence, tail=rs.zeros(hop, dtype="float32")),
            )
            return rs.reshape(out.sound, (frames * hop,)), out.last.floor

        return clean

    def jax(self, frames, hop):
        import jax
        import jax.numpy as jnp

        window = np.sin(np.pi * (np.arange(2 * hop) + 0.5) / (2 * hop)).astype(np.float32)

        def clean(sound):
            places = jnp.arange(frames)[:, None] * hop + jnp.arange(2 * hop)

            def step(carry, frame):
                floor, before, tail = carry
                spectrum = jnp.fft.rfft(frame * window)
                power = spectrum.real**2 + spectrum.imag**2
                floor = jnp.where(power < floor, 0.7 * floor + 0.3 * power, 1.02 * floor)
                posterior = power / (floor + 1e-6)
                prior = 0.96 * before / (floor + 1e-6) + 0.04 * jnp.maximum(posterior - 1, 0)
                gain = jnp.maximum(prior / (1 + prior), 0.05)
                out = jnp.fft.irfft(gain * spectrum, n=2 * hop) * window
                return (floor, gain**2 * power, out[hop:]), tail + out[:hop]

            silence = jnp.zeros(hop + 1, jnp.float32)
            (floor, _, _), rows = jax.lax.scan(step, (silence + 1, silence, jnp.zeros(hop, jnp.float32)), sound[places])
            return rows.reshape(-1), floor

        return jax.jit(clean)


class BytePairEncoder(Model):
    """A text becomes tokens: the adjacent pair with the lowest rank is merged until no pair is in the table."""

    kind = KIND
    dtype = "int32"
    size = dict(length=400, merges=60)
    small = dict(length=14, merges=5)
    letters = 12

    def make(self, random, length, merges):
        chain = random.dirichlet(np.full(self.letters, 0.25), size=self.letters)

        def write(n):
            text = [0]
            while len(text) < n:
                text.append(int(random.choice(self.letters, p=chain[text[-1]])))
            return text

        corpus, text = write(3 * length), write(length)
        pad = self.letters + merges
        table = np.full((pad + 1, pad + 1), merges, np.int32)  # a rank; `merges` where there is none
        for rank in range(merges):
            pairs, counts = np.unique(np.stack([corpus[:-1], corpus[1:]], 1), axis=0, return_counts=True)
            a, b = (int(v) for v in pairs[np.argmax(counts)])
            table[a, b] = rank
            merged, i = [], 0
            while i < len(corpus):
                both = i + 1 < len(corpus) and (corpus[i], corpus[i + 1]) == (a, b)
                merged.append(self.letters + rank if both else corpus[i])
                i += 2 if both else 1
            corpus = merged
        return np.array(text, np.int32), table

    def rscan(self, length, merges):
        letters = self.letters
        pad = np.int32(letters + merges)

        @rs.compile
        def encode(text, table):
            place = rs.arange(length)
            end = rs.constant(np.array([pad]))

            def step(tokens):
                after = rs.concatenate([tokens[1:], end])
                ranks = table[tokens, after]
                best = rs.argmin(ranks)
                rank = ranks[best]
                merged = rs.where(place < best, tokens, rs.where(place == best, rank + np.int32(letters), after))
                found = rank < merges
                return rs.where(found, merged, tokens), rs.until(~found)

            out = rs.loop(step, init=text, n_steps=length)
            return out.last, rs.sum(out.last != pad), out.steps

        return encode

    def jax(self, length, merges):
        import jax
        import jax.numpy as jnp

        letters = self.letters
        pad = np.int32(letters + merges)

        def encode(text, table):
            place = jnp.arange(length)
            end = jnp.array([pad])

            def step(carry):
                tokens, _, steps = carry
                after = jnp.concatenate([tokens[1:], end])
                ranks = table[tokens, after]
                best = jnp.argmin(ranks)
                rank = ranks[best]
                merged = jnp.where(place < best, tokens, jnp.where(place == best, rank + np.int32(letters), after))
                found = rank < merges
                return jnp.where(found, merged, tokens), found, steps + 1

            tokens, _, steps = jax.lax.while_loop(lambda c: c[1] & (c[2] < length), step, (text, True, 0))
            return tokens, jnp.sum(tokens != pad), steps

        return jax.jit(encode)


class EllipticKeyPairs(Model):
    """Public keys on an elliptic curve modulo 2^31 - 1: double and add, slopes by Fermat's inverse, many secret keys at once."""

    kind = KIND
    dtype = "int64"
    size = dict(keys=24, bits=31)
    small = dict(keys=3, bits=5)
    prime = 2**31 - 1

    def make(self, random, keys, bits):
        gx, gy, a = (int(v) for v in random.integers(2, self.prime, size=3))
        return random.integers(1, 2**bits, size=keys), gx, gy, a

    def rscan(self, keys, bits):
        p = self.prime

        def inverse(v):
            def body(i, state):
                result, base = state
                bit = ((p - 2) >> i) & 1
                return rs.where(bit == 1, result * base % p, result), base * base % p

            return rs.fori(0, 31, body, (1, v))[0]

        def public(secret, gx, gy, a):
            def step(i, x, y, infinite):
                # double
                slope = (3 * (x * x % p) + a) % p * inverse(2 * y % p) % p
                x2 = (slope * slope - 2 * x) % p
                y2 = (slope * (x - x2) - y) % p
                # add the generator
                slope = (gy - y2) % p * inverse((gx - x2) % p) % p
                x3 = (slope * slope - x2 - gx) % p
                y3 = (slope * (x2 - x3) - y2) % p
                x3, y3 = rs.where(infinite, gx, x3), rs.where(infinite, gy, y3)
                bit = (secret >> i) & 1 == 1
                return dict(x=rs.where(bit, x3, x2), y=rs.where(bit, y3, y2), infinite=infinite & ~bit)

            out = rs.loop(step, over=dict(i=rs.arange(bits)), init=dict(x=0, y=0, infinite=True), go_backwards=True)
            return out.last.x, out.last.y, out.last.infinite

        return rs.compile(rs.vmap(public, in_axes=(0, None, None, None)))

    def jax(self, keys, bits):
        import jax
        import jax.numpy as jnp

        p = self.prime

        def inverse(v):
            def body(i, state):
                result, base = state
                bit = ((p - 2) >> i) & 1
                return jnp.where(bit == 1, result * base % p, result), base * base % p

            return jax.lax.fori_loop(0, 31, body, (jnp.ones_like(v), v))[0]

        def public(secret, gx, gy, a):
            def step(carry, i):
                x, y, infinite = carry
                slope = (3 * (x * x % p) + a) % p * inverse(2 * y % p) % p
                x2 = (slope * slope - 2 * x) % p
                y2 = (slope * (x - x2) - y) % p
                slope = (gy - y2) % p * inverse((gx - x2) % p) % p
                x3 = (slope * slope - x2 - gx) % p
                y3 = (slope * (x2 - x3) - y2) % p
                x3, y3 = jnp.where(infinite, gx, x3), jnp.where(infinite, gy, y3)
                bit = (secret >> i) & 1 == 1
                return (jnp.where(bit, x3, x2), jnp.where(bit, y3, y2), infinite & ~bit), None

            init = jnp.zeros_like(secret), jnp.zeros_like(secret), jnp.array(True)
            return jax.lax.scan(step, init, jnp.arange(bits), reverse=True)[0]

        return jax.jit(jax.vmap(public, in_axes=(0, None, None, None)))


class LidarOccupancy(Model):
    """A robot drives with a lidar: each scan is scored by the map so far, then its beams free and fill cells of log-odds."""

    kind = KIND
    dtype = "float64"
    size = dict(scans=80, beams=40, cells=64)
    small = dict(scans=3, beams=5, cells=12)

    def make(self, random, scans, beams, cells):
        t = np.linspace(0, 2 * np.pi, scans)
        poses = np.stack([cells / 2 + cells / 5 * np.cos(t), cells / 2 + cells / 6 * np.sin(t), t + np.pi / 2], 1)
        poses += 0.05 * random.normal(size=poses.shape)
        angle = poses[:, 2:] + np.linspace(-2, 2, beams)
        with np.errstate(divide="ignore"):  # distance to the walls of a room
            dx = np.where(np.cos(angle) > 0, cells - 3 - poses[:, :1], poses[:, :1] - 3) / np.abs(np.cos(angle))
            dy = np.where(np.sin(angle) > 0, cells - 3 - poses[:, 1:2], poses[:, 1:2] - 3) / np.abs(np.sin(angle))
        return poses, np.minimum(dx, dy) + 0.3 * random.normal(size=angle.shape), np.linspace(-2, 2, beams)

    def rscan(self, scans, beams, cells):
        reach = int(0.75 * cells)

        @rs.compile
        def explore(poses, ranges, bearings):
            r = rs.arange(reach) + 0.5

            def step(pose, seen, grid):
                x, y, heading = pose[0], pose[1], pose[2]
                c, s = rs.cos(heading + bearings), rs.sin(heading + bearings)
                # how well does the scan fit?
                ex = rs.clip(rs.cast(rs.floor(x + seen * c), "int64"), 0, cells - 1)
                ey = rs.clip(rs.cast(rs.floor(y + seen * s), "int64"), 0, cells - 1)
                score = rs.mean(rs.sigmoid(grid[ex, ey]))
                # along each beam
                cx = rs.cast(rs.floor(x + r * c[:, None]), "int64")
                cy = rs.cast(rs.floor(y + r * s[:, None]), "int64")
                inside = (cx >= 0) & (cx < cells) & (cy >= 0) & (cy < cells)
                gap = r - seen[:, None]
                odds = rs.where(gap < -0.5, -0.4, rs.where(gap <= 0.5, 0.85, 0.0))
                odds = rs.where(inside, odds, 0.0)
                grid = grid.at[rs.clip(cx, 0, cells - 1), rs.clip(cy, 0, cells - 1)].add(odds)
                return dict(grid=rs.clip(grid, -6.0, 6.0), score=score)

            out = rs.loop(step, over=dict(pose=poses, seen=ranges), init=dict(grid=rs.zeros((cells, cells))))
            return out.last.grid, out.score

        return explore

    def jax(self, scans, beams, cells):
        import jax
        import jax.numpy as jnp

        reach = int(0.75 * cells)

        def explore(poses, ranges, bearings):
            r = jnp.arange(reach) + 0.5

            def step(grid, row):
                pose, seen = row
                x, y, heading = pose
                c, s = jnp.cos(heading + bearings), jnp.sin(heading + bearings)
                ex = jnp.clip(jnp.floor(x + seen * c).astype(int), 0, cells - 1)
                ey = jnp.clip(jnp.floor(y + seen * s).astype(int), 0, cells - 1)
                score = jnp.mean(jax.nn.sigmoid(grid[ex, ey]))
                cx = jnp.floor(x + r * c[:, None]).astype(int)
                cy = jnp.floor(y + r * s[:, None]).astype(int)
                inside = (cx >= 0) & (cx < cells) & (cy >= 0) & (cy < cells)
                gap = r - seen[:, None]
                odds = jnp.where(gap < -0.5, -0.4, jnp.where(gap <= 0.5, 0.85, 0.0))
                odds = jnp.where(inside, odds, 0.0)
                grid = grid.at[jnp.clip(cx, 0, cells - 1), jnp.clip(cy, 0, cells - 1)].add(odds)
                return jnp.clip(grid, -6.0, 6.0), score

            return jax.lax.scan(step, jnp.zeros((cells, cells)), (poses, ranges))

        return jax.jit(explore)


class AttentiveTranslator(Model):
    """Sequence to sequence: a GRU reads a padded batch, another writes with additive attention; teacher forcing, gradient of all weights."""

    kind = KIND
    dtype = "float32"
    size = dict(source=14, target=12, batch=8, hidden=24, words=30)
    small = dict(source=4, target=3, batch=2, hidden=3, words=5)
    rtol, atol = 1e-3, 1e-5

    def make(self, random, source, target, batch, hidden, words):
        def weights(*shape):
            return (random.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32)

        def cell(inputs):
            return dict(wx=weights(inputs, 3 * hidden), wh=weights(hidden, 3 * hidden), b=np.zeros(3 * hidden, np.float32))

        params = dict(
            embed=weights(words, hidden),
            encoder=cell(hidden),
            decoder=cell(2 * hidden),
            key=weights(hidden, hidden),
            query=weights(hidden, hidden),
            v=weights(hidden),
            out=weights(2 * hidden, words),
        )
        lengths = random.integers(2, source + 1, size=batch).astype(np.int32)
        text = random.integers(1, words, size=(source, batch)).astype(np.int32)
        goal = random.integers(1, words, size=(target + 1, batch)).astype(np.int32)
        return params, text, lengths, goal

    def rscan(self, source, target, batch, hidden, words):
        def gru(p, x, h):
            a, b = x @ p["wx"] + p["b"], h @ p["wh"]
            z = rs.sigmoid(a[:, :hidden] + b[:, :hidden])
            r = rs.sigmoid(a[:, hidden : 2 * hidden] + b[:, hidden : 2 * hidden])
            n = rs.tanh(a[:, 2 * hidden :] + r * b[:, 2 * hidden :])
            return (1 - z) * n + z * h

        @rs.compile
        def loss(p, text, lengths, goal):
            h0 = rs.zeros((batch, hidden), dtype="float32")
            read = rs.loop(lambda x, h: dict(h=gru(p["encoder"], x, h)), over=dict(x=p["embed"][text]), init=dict(h=h0), lengths=lengths)
            keys = read.h @ p["key"]
            valid = rs.arange(source)[:, None] < lengths

            def write(word, next, h):
                scores = rs.sum(p["v"] * rs.tanh(keys + h @ p["query"]), axis=2)
                attention = rs.softmax(rs.where(valid, scores, -rs.inf), axis=0)
                context = rs.sum(attention[:, :, None] * read.h, axis=0)
                h = gru(p["decoder"], rs.concatenate([p["embed"][word], context], axis=1), h)
                logits = rs.log_softmax(rs.concatenate([h, context], axis=1) @ p["out"], axis=1)
                return dict(h=h, cost=-rs.mean(logits[rs.arange(batch), next]))

            out = rs.loop(write, over=dict(word=goal[:-1], next=goal[1:]), init=dict(h=read.last.h))
            return rs.mean(out.cost)

        return rs.value_and_grad(loss)

    def jax(self, source, target, batch, hidden, words):
        import jax
        import jax.numpy as jnp

        def gru(p, x, h):
            a, b = x @ p["wx"] + p["b"], h @ p["wh"]
            z = jax.nn.sigmoid(a[:, :hidden] + b[:, :hidden])
            r = jax.nn.sigmoid(a[:, hidden : 2 * hidden] + b[:, hidden : 2 * hidden])
            n = jnp.tanh(a[:, 2 * hidden :] + r * b[:, 2 * hidden :])
            return (1 - z) * n + z * h

        def loss(p, text, lengths, goal):
            valid = jnp.arange(source)[:, None] < lengths

            def encode(h, row):
                x, valid = row
                h = jnp.where(valid[:, None], gru(p["encoder"], x, h), h)
                return h, h

            h, states = jax.lax.scan(encode, jnp.zeros((batch, hidden), jnp.float32), (p["embed"][text], valid))
            keys = states @ p["key"]

            def write(h, row):
                word, next = row
                scores = jnp.sum(p["v"] * jnp.tanh(keys + h @ p["query"]), axis=2)
                attention = jax.nn.softmax(jnp.where(valid, scores, -jnp.inf), axis=0)
                context = jnp.sum(attention[:, :, None] * states, axis=0)
                h = gru(p["decoder"], jnp.concatenate([p["embed"][word], context], axis=1), h)
                logits = jax.nn.log_softmax(jnp.concatenate([h, context], axis=1) @ p["out"], axis=1)
                return h, -jnp.mean(logits[jnp.arange(batch), next])

            return jnp.mean(jax.lax.scan(write, h, (goal[:-1], goal[1:]))[1])

        return jax.jit(jax.value_and_grad(loss))


class CartPoleReinforce(Model):
    """Poles are balanced on carts: rounds of rollouts, discounted returns with a baseline, and a step along the policy's gradient."""

    kind = KIND
    dtype = "float64"
    size = dict(rounds=4, steps=60, carts=16, hidden=8)
    small = dict(rounds=2, steps=5, carts=2, hidden=3)
    rtol = 1e-7

    def make(self, random, rounds, steps, carts, hidden):
        policy = dict(
            w1=0.5 * random.normal(size=(4, hidden)), b1=np.zeros(hidden), w2=0.3 * random.normal(size=hidden), b2=np.float64(0.0)
        )
        return policy, random.uniform(-0.05, 0.05, size=(rounds, carts, 4)), random.uniform(size=(rounds, steps, carts))

    def rscan(self, rounds, steps, carts, hidden):
        def logit(p, s):
            return rs.tanh(s @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]

        def move(s, right):
            x, v, angle, spin = s[:, 0], s[:, 1], s[:, 2], s[:, 3]
            force = rs.where(right, 10.0, -10.0)
            c, sn = rs.cos(angle), rs.sin(angle)
            push = (force + 0.05 * spin**2 * sn) / 1.1
            turn = (9.8 * sn - c * push) / (0.5 * (4 / 3 - 0.1 * c**2 / 1.1))
            go = push - 0.05 * turn * c / 1.1
            return rs.stack([x + 0.02 * v, v + 0.02 * go, angle + 0.02 * spin, spin + 0.02 * turn], axis=1)

        def rollout(p, start, draws):
            def step(u, s, alive):
                value = logit(p, s)
                right = u < rs.sigmoid(value)
                chance = rs.where(right, rs.log_sigmoid(value), rs.log_sigmoid(-value))
                s = move(s, right)
                new = alive & (rs.abs(s[:, 2]) < 0.21) & (rs.abs(s[:, 0]) < 2.4)
                return dict(s=s, alive=new, chance=chance, counted=rs.cast(alive, "float64"), reward=rs.cast(new, "float64"))

            return rs.loop(step, over=dict(u=draws), init=dict(s=start, alive=rs.ones(carts, dtype="bool")))

        def surrogate(p, start, draws):
            out = rollout(p, start, draws)
            returns = rs.loop(lambda r, total: r + 0.98 * total, over=out.reward, init=rs.zeros(carts), reverse=True)
            advantage = rs.stop_gradient(returns - rs.mean(returns, axis=1, keepdims=True))
            return -rs.mean(rs.sum(out.counted * out.chance * advantage, axis=0)), rs.mean(rs.sum(out.reward, axis=0))

        @rs.compile
        def train(policy, starts, draws):
            def improve(start, draws, p):
                (_, reward), slope = rs.value_and_grad(surrogate, has_aux=True)(p, start, draws)
                return dict(p={k: p[k] - 0.05 * slope[k] for k in p}, reward=reward)

            out = rs.loop(improve, over=dict(start=starts, draws=draws), init=dict(p=policy))
            return out.last.p, out.reward

        return train

    def jax(self, rounds, steps, carts, hidden):
        import jax
        import jax.numpy as jnp

        def logit(p, s):
            return jnp.tanh(s @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]

        def move(s, right):
            x, v, angle, spin = s[:, 0], s[:, 1], s[:, 2], s[:, 3]
            force = jnp.where(right, 10.0, -10.0)
            c, sn = jnp.cos(angle), jnp.sin(angle)
            push = (force + 0.05 * spin**2 * sn) / 1.1
            turn = (9.8 * sn - c * push) / (0.5 * (4 / 3 - 0.1 * c**2 / 1.1))
            go = push - 0.05 * turn * c / 1.1
            return jnp.stack([x + 0.02 * v, v + 0.02 * go, angle + 0.02 * spin, spin + 0.02 * turn], axis=1)

        def surrogate(p, start, draws):
            def step(carry, u):
                s, alive = carry
                value = logit(p, s)
                right = u < jax.nn.sigmoid(value)
                chance = jnp.where(right, jax.nn.log_sigmoid(value), jax.nn.log_sigmoid(-value))
                s = move(s, right)
                new = alive & (jnp.abs(s[:, 2]) < 0.21) & (jnp.abs(s[:, 0]) < 2.4)
                return (s, new), (chance, alive.astype(float), new.astype(float))

            _, (chance, counted, reward) = jax.lax.scan(step, (start, jnp.ones(carts, bool)), draws)

            def discount(total, r):
                total = r + 0.98 * total
                return total, total

            returns = jax.lax.scan(discount, jnp.zeros(carts), reward, reverse=True)[1]
            advantage = jax.lax.stop_gradient(returns - jnp.mean(returns, axis=1, keepdims=True))
            return -jnp.mean(jnp.sum(counted * chance * advantage, axis=0)), jnp.mean(jnp.sum(reward, axis=0))

        def train(policy, starts, draws):
            def improve(p, row):
                (_, reward), slope = jax.value_and_grad(surrogate, has_aux=True)(p, *row)
                return jax.tree.map(lambda v, g: v - 0.05 * g, p, slope), reward

            return jax.lax.scan(improve, policy, (starts, draws))

        return jax.jit(train)
