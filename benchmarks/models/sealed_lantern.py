"""Fields, signals and bytes: adjoint models, migration, morphology, codecs, split steps and quantised nets, written plainly."""

import numpy as np
import rscan as rs
from models import Model


class RotatingChannelAdjoint(Model):
    """Linear shallow water on a rotating C grid, periodic along the channel and with walls across: the misfit at gauges by first height and depth."""

    kind = "lantern"
    dtype = "float64"
    size = dict(ny=32, nx=48, steps=60)
    small = dict(ny=5, nx=6, steps=4)

    def make(self, random, ny, nx, steps):
        y, x = np.mgrid[0:ny, 0:nx]
        h = np.exp(-((y - ny / 2) ** 2 + (x - nx / 3) ** 2) / 10) + 0.01 * random.normal(size=(ny, nx))
        depth = 1.0 + 0.3 * np.sin(2 * np.pi * x / nx) * np.cos(np.pi * y / ny)
        return h, depth, 0.1 * random.normal(size=(steps, 3))

    def rscan(self, ny, nx, steps):
        dt, f0, beta, drag = 0.2, 0.3, 0.01, 0.01
        rows = np.array([1, ny // 2, ny - 2])
        columns = np.array([1, nx // 2, nx - 1])
        fu = (f0 + beta * np.arange(ny))[:, None]
        fv = (f0 + beta * (np.arange(1, ny) - 0.5))[:, None]

        @rs.compile
        def misfit(h, depth, observed):
            depth_u = 0.5 * (depth + rs.roll(depth, 1, axis=1))
            depth_v = 0.5 * (depth[1:] + depth[:-1])

            def step(seen, h, u, v):
                v_full = rs.pad(v, ((1, 1), (0, 0)))
                v_mid = 0.5 * (v_full[1:] + v_full[:-1])
                v_at_u = 0.5 * (v_mid + rs.roll(v_mid, 1, axis=1))
                u = u + dt * (fu * v_at_u - (h - rs.roll(h, 1, axis=1)) - drag * u)
                u_mid = 0.5 * (u + rs.roll(u, -1, axis=1))
                u_at_v = 0.5 * (u_mid[1:] + u_mid[:-1])
                v = v + dt * (-fv * u_at_v - (h[1:] - h[:-1]) - drag * v)
                flux_u = depth_u * u
                flux_v = rs.pad(depth_v * v, ((1, 1), (0, 0)))
                h = h - dt * (rs.roll(flux_u, -1, axis=1) - flux_u + flux_v[1:] - flux_v[:-1])
                return dict(h=h, u=u, v=v, cost=rs.sum((h[rows, columns] - seen) ** 2))

            out = rs.loop(
                step, over=dict(seen=observed), init=dict(h=h, u=rs.zeros_like(h), v=rs.zeros_like(h[1:]))
            )
            return rs.sum(out.cost) + 1e-3 * rs.sum(out.last.h**2)

        return rs.value_and_grad(misfit, argnums=(0, 1))

    def jax(self, ny, nx, steps):
        import jax
        import jax.numpy as jnp

        dt, f0, beta, drag = 0.2, 0.3, 0.01, 0.01
        rows = np.array([1, ny // 2, ny - 2])
        columns = np.array([1, nx // 2, nx - 1])
        fu = (f0 + beta * np.arange(ny))[:, None]
        fv = (f0 + beta * (np.arange(1, ny) - 0.5))[:, None]

        def misfit(h, depth, observed):
            depth_u = 0.5 * (depth + jnp.roll(depth, 1, axis=1))
            depth_v = 0.5 * (depth[1:] + depth[:-1])

            def step(carry, seen):
                h, u, v = carry
                v_full = jnp.pad(v, ((1, 1), (0, 0)))
                v_mid = 0.5 * (v_full[1:] + v_full[:-1])
                v_at_u = 0.5 * (v_mid + jnp.roll(v_mid, 1, axis=1))
                u = u + dt * (fu * v_at_u - (h - jnp.roll(h, 1, axis=1)) - drag * u)
                u_mid = 0.5 * (u + jnp.roll(u, -1, axis=1))
                u_at_v = 0.5 * (u_mid[1:] + u_mid[:-1])
                v = v + dt * (-fv * u_at_v - (h[1:] - h[:-1]) - drag * v)
                flux_u = depth_u * u
                flux_v = jnp.pad(depth_v * v, ((1, 1), (0, 0)))
                h = h - dt * (jnp.roll(flux_u, -1, axis=1) - flux_u + flux_v[1:] - flux_v[:-1])
                return (h, u, v), jnp.sum((h[rows, columns] - seen) ** 2)

            (h, _, _), costs = jax.lax.scan(step, (h, jnp.zeros_like(h), jnp.zeros_like(h[1:])), observed)
            return jnp.sum(costs) + 1e-3 * jnp.sum(h**2)

        return jax.jit(jax.value_and_grad(misfit, argnums=(0, 1)))


class SpinodalQuench(Model):
    """Cahn and Hilliard's equation with a mobility that depends on the phase, periodic: how far from a pattern, by first field and stiffness."""

    kind = "lantern"
    dtype = "float32"
    size = dict(n=64, steps=40)
    small = dict(n=6, steps=4)

    def make(self, random, n, steps):
        y, x = np.mgrid[0:n, 0:n]
        target = np.tanh(2 * np.sin(2 * np.pi * x / n) * np.sin(2 * np.pi * y / n))
        return (0.4 * random.normal(size=(n, n))).astype("f4"), np.float32(0.6), target.astype("f4")

    def rscan(self, n, steps):
        dt, slope = 0.02, 0.6

        def laplacian(c):
            return rs.roll(c, 1, 0) + rs.roll(c, -1, 0) + rs.roll(c, 1, 1) + rs.roll(c, -1, 1) - 4 * c

        @rs.compile
        def distance(c, kappa, target):
            def step(c):
                mu = c**3 - c - kappa * laplacian(c)
                mobility = 1 - slope * rs.clip(c * c, 0.0, 1.0)
                change = 0.0
                for axis in (0, 1):
                    face = 0.5 * (mobility + rs.roll(mobility, -1, axis)) * (rs.roll(mu, -1, axis) - mu)
                    change = change + face - rs.roll(face, 1, axis)
                return c + dt * change

            return rs.mean((rs.loop(step, init=c, n_steps=steps).last - target) ** 2)

        return rs.value_and_grad(distance, argnums=(0, 1))

    def jax(self, n, steps):
        import jax
        import jax.numpy as jnp

        dt, slope = 0.02, 0.6

        def laplacian(c):
            return jnp.roll(c, 1, 0) + jnp.roll(c, -1, 0) + jnp.roll(c, 1, 1) + jnp.roll(c, -1, 1) - 4 * c

        def distance(c, kappa, target):
            def step(c, _):
                mu = c**3 - c - kappa * laplacian(c)
                mobility = 1 - slope * jnp.clip(c * c, 0.0, 1.0)
                change = 0.0
                for axis in (0, 1):
                    face = 0.5 * (mobility + jnp.roll(mobility, -1, axis)) * (jnp.roll(mu, -1, axis) - mu)
                    change = change + face - jnp.roll(face, 1, axis)
                return c + dt * change, None

            return jnp.mean((jax.lax.scan(step, c, None, length=steps)[0] - target) ** 2)

        return jax.jit(jax.value_and_grad(distance, argnums=(0, 1)))


class GeodesicReconstruction(Model):
    """Domes of grey images: each image less a height is dilated under itself until nothing changes; many images, each with its own end."""

    kind = "lantern"
    dtype = "uint8"
    size = dict(images=6, n=64)
    small = dict(images=2, n=7)

    def make(self, random, images, n):
        field = random.normal(size=(images, n, n))
        for _ in range(6):
            field = (field + np.roll(field, 1, 1) + np.roll(field, -1, 1) + np.roll(field, 1, 2) + np.roll(field, -1, 2)) / 5
        field = (field - field.min()) / (field.max() - field.min())
        return (255 * field).astype("u1"), random.integers(15, 50, size=images).astype("u1")

    def rscan(self, images, n):
        def domes(mask, height):
            marker = mask - rs.minimum(mask, height)

            def step(marker):
                p = rs.pad(marker, ((0, 0), (1, 1)))
                wide = rs.maximum(rs.maximum(p[:, :-2], p[:, 1:-1]), p[:, 2:])
                p = rs.pad(wide, ((1, 1), (0, 0)))
                wide = rs.maximum(rs.maximum(p[:-2], p[1:-1]), p[2:])
                new = rs.minimum(wide, mask)
                return new, rs.until(rs.all(new == marker))

            out = rs.loop(step, init=marker, n_steps=4 * n * n)
            dome = mask - out.last
            return dome, rs.sum(dome.astype("int32"), dtype="int32"), out.steps

        return rs.compile(rs.vmap(domes))

    def jax(self, images, n):
        import jax
        import jax.numpy as jnp

        def domes(mask, height):
            marker = mask - jnp.minimum(mask, height)

            def step(carry):
                marker, _, t = carry
                p = jnp.pad(marker, ((0, 0), (1, 1)))
                wide = jnp.maximum(jnp.maximum(p[:, :-2], p[:, 1:-1]), p[:, 2:])
                p = jnp.pad(wide, ((1, 1), (0, 0)))
                wide = jnp.maximum(jnp.maximum(p[:-2], p[1:-1]), p[2:])
                new = jnp.minimum(wide, mask)
                return new, jnp.all(new == marker), t + 1

            last, _, t = jax.lax.while_loop(lambda c: ~c[1] & (c[2] < 4 * n * n), step, (marker, False, 0))
            dome = mask - last
            return dome, jnp.sum(dome, dtype=jnp.int32), t

        return jax.jit(jax.vmap(domes))


class KeywordSpotterInt8(Model):
    """A streaming keyword net in int8: three dilated depthwise causal convolutions with pointwise ones behind, int32 sums, requantised by shifts."""

    kind = "lantern"
    dtype = "int8"
    size = dict(frames=120, channels=32, words=12)
    small = dict(frames=6, channels=4, words=3)

    def make(self, random, frames, channels, words):
        weights = []
        for _ in range(3):
            weights += [
                random.integers(-127, 128, size=(3, channels)).astype("i1"),
                random.integers(-127, 128, size=(channels, channels)).astype("i1"),
                random.integers(-2000, 2000, size=channels).astype("i4"),
                random.integers(60, 120, size=channels).astype("i4"),
            ]
        x = random.integers(-128, 128, size=(frames, channels)).astype("i1")
        return x, random.integers(-127, 128, size=(channels, words)).astype("i1"), *weights

    def rscan(self, frames, channels, words):
        dilations = (1, 2, 4)

        def quantised(total, scale, shift, low):
            return rs.clip((total * scale + (1 << (shift - 1))) >> shift, low, 127).astype("int8")

        @rs.compile
        def spot(x, head, *weights):
            head = head.astype("int32")

            def step(x, buffers, total):
                kept = []
                for i, d in enumerate(dilations):
                    depth, point, bias, scale = weights[4 * i : 4 * i + 4]
                    line = rs.concatenate([buffers[i], x[None]])
                    kept.append(line[1:])
                    rows = line[::d].astype("int32")
                    y = quantised(rs.sum(rows * depth.astype("int32"), axis=0, dtype="int32"), scale, 13, -128)
                    y = quantised(y.astype("int32") @ point.astype("int32") + bias, scale, 15, 0)
                    x = rs.clip(y.astype("int32") + (x.astype("int32") >> 1), -128, 127).astype("int8")
                total = total + x.astype("int32") - (total >> 4)
                score = total @ head
                return dict(buffers=kept, total=total, best=rs.argmax(score), score=score)

            out = rs.loop(
                step,
                over=dict(x=x),
                init=dict(
                    buffers=[rs.zeros((2 * d, channels), dtype="int8") for d in dilations],
                    total=rs.zeros(channels, dtype="int32"),
                ),
            )
            return out.best, out.last.score

        return spot

    def jax(self, frames, channels, words):
        import jax
        import jax.numpy as jnp

        dilations = (1, 2, 4)

        def quantised(total, scale, shift, low):
            return jnp.clip((total * scale + (1 << (shift - 1))) >> shift, low, 127).astype(jnp.int8)

        def spot(x, head, *weights):
            head = head.astype(jnp.int32)

            def step(carry, x):
                buffers, total, _ = carry
                kept = []
                for i, d in enumerate(dilations):
                    depth, point, bias, scale = weights[4 * i : 4 * i + 4]
                    line = jnp.concatenate([buffers[i], x[None]])
                    kept.append(line[1:])
                    rows = line[::d].astype(jnp.int32)
                    y = quantised(jnp.sum(rows * depth.astype(jnp.int32), axis=0, dtype=jnp.int32), scale, 13, -128)
                    y = quantised(y.astype(jnp.int32) @ point.astype(jnp.int32) + bias, scale, 15, 0)
                    x = jnp.clip(y.astype(jnp.int32) + (x.astype(jnp.int32) >> 1), -128, 127).astype(jnp.int8)
                total = total + x.astype(jnp.int32) - (total >> 4)
                score = total @ head
                return (kept, total, score), jnp.argmax(score)

            start = [jnp.zeros((2 * d, channels), jnp.int8) for d in dilations]
            (_, _, score), best = jax.lax.scan(step, (start, jnp.zeros(channels, jnp.int32), jnp.zeros(words, jnp.int32)), x)
            return best, score

        return jax.jit(spot)


INDEX_CHANGE = np.array([-1, -1, -1, -1, 2, 4, 6, 8], dtype="i4")
STEP_SIZES = np.array([min(32767, int(7 * 1.1**k)) for k in range(89)], dtype="i4")


class ImaAdpcmCodec(Model):
    """Speech of 16 bits to 4 bits a sample and back, as IMA ADPCM does it, many channels at once; two codes to a byte."""

    kind = "lantern"
    dtype = "int16"
    size = dict(channels=16, samples=1000)
    small = dict(channels=2, samples=8)

    def make(self, random, channels, samples):
        t = np.arange(samples)
        x = 6000 * np.sin(t * random.uniform(0.02, 0.3, size=(channels, 1))) + 800 * random.normal(size=(channels, samples))
        return (x.astype("i2"),)

    def rscan(self, channels, samples):
        sizes, changes = rs.constant(STEP_SIZES), rs.constant(INDEX_CHANGE)

        def codec(x):
            def step(x, predicted, index):
                size = sizes[index]
                difference = x.astype("int32") - predicted
                negative = difference < 0
                rest = rs.abs(difference)
                code = rs.zeros_like(rest)
                change = size >> 3
                for bit in (4, 2, 1):
                    enough = rest >= size
                    code = rs.where(enough, code | bit, code)
                    rest = rs.where(enough, rest - size, rest)
                    change = rs.where(enough, change + size, change)
                    size = size >> 1
                predicted = rs.clip(rs.where(negative, predicted - change, predicted + change), -32768, 32767)
                index = rs.clip(index + changes[code], 0, 88)
                nibble = rs.where(negative, code | 8, code).astype("uint8")
                return dict(predicted=predicted, index=index, code=nibble)

            out = rs.loop(step, over=dict(x=x), init=dict(predicted=np.int32(0), index=np.int32(0)))
            packed = out.code[::2] | (out.code[1::2] << 4)
            return packed, out.predicted.astype("int16")

        return rs.compile(rs.vmap(codec))

    def jax(self, channels, samples):
        import jax
        import jax.numpy as jnp

        sizes, changes = jnp.asarray(STEP_SIZES), jnp.asarray(INDEX_CHANGE)

        def codec(x):
            def step(carry, x):
                predicted, index = carry
                size = sizes[index]
                difference = x.astype(jnp.int32) - predicted
                negative = difference < 0
                rest = jnp.abs(difference)
                code = jnp.zeros_like(rest)
                change = size >> 3
                for bit in (4, 2, 1):
                    enough = rest >= size
                    code = jnp.where(enough, code | bit, code)
                    rest = jnp.where(enough, rest - size, rest)
                    change = jnp.where(enough, change + size, change)
                    size = size >> 1
                predicted = jnp.clip(jnp.where(negative, predicted - change, predicted + change), -32768, 32767)
                index = jnp.clip(index + changes[code], 0, 88)
                nibble = jnp.where(negative, code | 8, code).astype(jnp.uint8)
                return (predicted, index), (nibble, predicted.astype(jnp.int16))

            _, (codes, decoded) = jax.lax.scan(step, (jnp.int32(0), jnp.int32(0)), x)
            return codes[::2] | (codes[1::2] << 4), decoded

        return jax.jit(jax.vmap(codec))


class FrameLpcVocoder(Model):
    """A linear predictive vocoder: per frame autocorrelation, Levinson and Durbin's recursion, then the all-pole filter, its memory kept between frames."""

    kind = "lantern"
    dtype = "float32"
    size = dict(frames=30, length=120, order=10)
    small = dict(frames=3, length=12, order=3)
    rtol = 1e-3

    def make(self, random, frames, length, order):
        n = frames * length
        x = np.convolve(random.normal(size=n), [1.0, 1.2, 0.7, 0.3, -0.2])[:n] + 0.3 * np.sin(0.2 * np.arange(n))
        pulses = 0.1 * random.normal(size=n) + (np.arange(n) % 57 == 0) * 7.0
        return x.reshape(frames, length).astype("f4"), pulses.reshape(frames, length).astype("f4"), np.hamming(length).astype("f4")

    def rscan(self, frames, length, order):
        lags = np.arange(order + 1)

        def predictor(frame):
            r = rs.stack([rs.sum(frame[: length - k] * frame[k:]) for k in range(order + 1)])
            r = r.at[0].multiply(1.001)

            def step(k, a, error):
                behind = rs.where(lags <= k, a[rs.maximum(k - lags, 0)], 0.0)
                reflection = -rs.sum(behind * r) / error
                return dict(a=a + reflection * behind, error=error * (1 - reflection**2), reflection=reflection)

            first = rs.zeros(order + 1, dtype="float32").at[0].set(1.0)
            out = rs.loop(step, over=dict(k=rs.arange(1, order + 1)), init=dict(a=first, error=r[0]))
            return out.last.a, out.last.error, out.reflection

        @rs.compile
        def vocoder(x, pulses, window):
            def frame(x, pulse, memory):
                a, error, reflection = predictor(x * window)
                gain = rs.sqrt(error / length)

                def sample(e, memory):
                    y = gain * e - rs.sum(a[1:] * memory)
                    return dict(memory=rs.concatenate([y[None], memory[:-1]]), y=y)

                out = rs.loop(sample, over=dict(e=pulse), init=dict(memory=memory))
                return dict(memory=out.last.memory, y=out.y, reflection=reflection)

            out = rs.loop(frame, over=dict(x=x, pulse=pulses), init=dict(memory=rs.zeros(order, dtype="float32")))
            return out.y, out.reflection

        return vocoder

    def jax(self, frames, length, order):
        import jax
        import jax.numpy as jnp

        lags = np.arange(order + 1)

        def predictor(frame):
            r = jnp.stack([jnp.sum(frame[: length - k] * frame[k:]) for k in range(order + 1)])
            r = r.at[0].multiply(1.001)

            def step(carry, k):
                a, error = carry
                behind = jnp.where(lags <= k, a[jnp.maximum(k - lags, 0)], 0.0)
                reflection = -jnp.sum(behind * r) / error
                return (a + reflection * behind, error * (1 - reflection**2)), reflection

            first = jnp.zeros(order + 1, jnp.float32).at[0].set(1.0)
            (a, error), reflections = jax.lax.scan(step, (first, r[0]), jnp.arange(1, order + 1))
            return a, error, reflections

        def vocoder(x, pulses, window):
            def frame(memory, row):
                x, pulse = row
                a, error, reflection = predictor(x * window)
                gain = jnp.sqrt(error / length)

                def sample(memory, e):
                    y = gain * e - jnp.sum(a[1:] * memory)
                    return jnp.concatenate([y[None], memory[:-1]]), y

                memory, y = jax.lax.scan(sample, memory, pulse)
                return memory, (y, reflection)

            return jax.lax.scan(frame, jnp.zeros(order, jnp.float32), (x, pulses))[1]

        return jax.jit(vocoder)


class FullWaveformShots(Model):
    """Full waveform inversion: acoustic waves of several shots in a slab with a sponge, and the gradient of the misfit by the slowness of each cell."""

    kind = "lantern"
    dtype = "float32"
    size = dict(nz=32, nx=48, steps=80, shots=3)
    small = dict(nz=6, nx=7, steps=5, shots=2)

    def make(self, random, nz, nx, steps, shots):
        speed = 0.16 + 0.08 * (np.arange(nz)[:, None] > nz // 2) + 0.01 * random.normal(size=(nz, nx))
        z, x = np.mgrid[0:nz, 0:nx]
        edge = np.minimum(np.minimum(x, nx - 1 - x), nz - 1 - z)
        sponge = np.exp(-0.003 * np.maximum(8 - edge, 0) ** 2)
        t = (np.arange(steps) - 12) / 4.0
        wavelet = (1 - 2 * t**2) * np.exp(-(t**2))
        sources = np.linspace(1, nx - 2, shots).astype("i4")
        observed = 0.05 * random.normal(size=(shots, steps, len(range(0, nx, 3))))
        return speed.astype("f4"), sponge.astype("f4"), wavelet.astype("f4"), sources, observed.astype("f4")

    def rscan(self, nz, nx, steps, shots):
        @rs.compile
        def misfit(speed, sponge, wavelet, sources, observed):
            def shot(source, observed):
                def step(w, seen, before, now):
                    p = rs.pad(now, 1)
                    laplacian = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * now
                    new = sponge * (2 * now - sponge * before + speed * laplacian)
                    new = new.at[1, source].add(w)
                    return dict(before=now, now=new, cost=rs.sum((new[2, ::3] - seen) ** 2))

                rest = rs.zeros_like(speed)
                out = rs.loop(step, over=dict(w=wavelet, seen=observed), init=dict(before=rest, now=rest))
                return rs.sum(out.cost)

            return rs.sum(rs.vmap(shot)(sources, observed))

        return rs.value_and_grad(misfit)

    def jax(self, nz, nx, steps, shots):
        import jax
        import jax.numpy as jnp

        def misfit(speed, sponge, wavelet, sources, observed):
            def shot(source, observed):
                def step(carry, row):
                    before, now = carry
                    w, seen = row
                    p = jnp.pad(now, 1)
                    laplacian = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * now
                    new = sponge * (2 * now - sponge * before + speed * laplacian)
                    new = new.at[1, source].add(w)
                    return (now, new), jnp.sum((new[2, ::3] - seen) ** 2)

                rest = jnp.zeros_like(speed)
                return jnp.sum(jax.lax.scan(step, (rest, rest), (wavelet, observed))[1])

            return jnp.sum(jax.vmap(shot)(sources, observed))

        return jax.jit(jax.value_and_grad(misfit))


class DropInVortex(Model):
    """A level set in a vortex, upwind, and made a distance again after every step by Godunov's scheme: its area's misfit by first field and strength."""

    kind = "lantern"
    dtype = "float64"
    size = dict(n=40, steps=15, inner=3)
    small = dict(n=7, steps=2, inner=2)

    def make(self, random, n, steps, inner):
        y, x = (np.mgrid[0:n, 0:n] + 0.5) / n
        phi = np.hypot(x - 0.487, y - 0.713) - 0.171 + 0.01 * random.normal(size=(n, n))
        target = np.hypot(x - 0.61, y - 0.66) - 0.18
        u = np.sin(np.pi * x) ** 2 * np.sin(2 * np.pi * y)
        v = -np.sin(np.pi * y) ** 2 * np.sin(2 * np.pi * x)
        return phi, 1.0, u, v, target

    def rscan(self, n, steps, inner):
        h = 1.0 / n
        dt, tau, width = 0.4 * h, 0.3 * h, 1.5 * h

        def slopes(phi):
            p = rs.pad(phi, 1, mode="edge")
            middle = p[1:-1, 1:-1]
            return (
                (middle - p[1:-1, :-2]) / h,
                (p[1:-1, 2:] - middle) / h,
                (middle - p[:-2, 1:-1]) / h,
                (p[2:, 1:-1] - middle) / h,
            )

        def up(a):
            return rs.maximum(a, 0.0) ** 2

        def down(a):
            return rs.minimum(a, 0.0) ** 2

        @rs.compile
        def misfit(phi, strength, u, v, target):
            u, v = strength * u, strength * v

            def step(phi):
                west, east, south, north = slopes(phi)
                phi = phi - dt * (
                    rs.maximum(u, 0.0) * west + rs.minimum(u, 0.0) * east + rs.maximum(v, 0.0) * south + rs.minimum(v, 0.0) * north
                )
                side = phi / rs.sqrt(phi**2 + h**2)

                def again(phi):
                    west, east, south, north = slopes(phi)
                    outside = rs.sqrt(rs.maximum(up(west), down(east)) + rs.maximum(up(south), down(north)) + 1e-10)
                    inside = rs.sqrt(rs.maximum(down(west), up(east)) + rs.maximum(down(south), up(north)) + 1e-10)
                    return phi - tau * side * (rs.where(side > 0, outside, inside) - 1)

                return rs.loop(again, init=phi, n_steps=inner).last

            phi = rs.loop(step, init=phi, n_steps=steps).last
            return rs.mean((rs.sigmoid(-phi / width) - rs.sigmoid(-target / width)) ** 2)

        return rs.value_and_grad(misfit, argnums=(0, 1))

    def jax(self, n, steps, inner):
        import jax
        import jax.numpy as jnp

        h = 1.0 / n
        dt, tau, width = 0.4 * h, 0.3 * h, 1.5 * h

        def slopes(phi):
            p = jnp.pad(phi, 1, mode="edge")
            middle = p[1:-1, 1:-1]
            return (
                (middle - p[1:-1, :-2]) / h,
                (p[1:-1, 2:] - middle) / h,
                (middle - p[:-2, 1:-1]) / h,
                (p[2:, 1:-1] - middle) / h,
            )

        def up(a):
            return jnp.maximum(a, 0.0) ** 2

        def down(a):
            return jnp.minimum(a, 0.0) ** 2

        def misfit(phi, strength, u, v, target):
            u, v = strength * u, strength * v

            def step(phi, _):
                west, east, south, north = slopes(phi)
                phi = phi - dt * (
                    jnp.maximum(u, 0.0) * west + jnp.minimum(u, 0.0) * east + jnp.maximum(v, 0.0) * south + jnp.minimum(v, 0.0) * north
                )
                side = phi / jnp.sqrt(phi**2 + h**2)

                def again(phi, _):
                    west, east, south, north = slopes(phi)
                    outside = jnp.sqrt(jnp.maximum(up(west), down(east)) + jnp.maximum(up(south), down(north)) + 1e-10)
                    inside = jnp.sqrt(jnp.maximum(down(west), up(east)) + jnp.maximum(down(south), up(north)) + 1e-10)
                    return phi - tau * side * (jnp.where(side > 0, outside, inside) - 1), None

                return jax.lax.scan(again, phi, None, length=inner)[0], None

            phi = jax.lax.scan(step, phi, None, length=steps)[0]
            return jnp.mean((jax.nn.sigmoid(-phi / width) - jax.nn.sigmoid(-target / width)) ** 2)

        return jax.jit(jax.value_and_grad(misfit, argnums=(0, 1)))


class SplitStepFibre(Model):
    """A pulse in a fibre by split steps of Fourier, and the Jacobian of what is measured of it by dispersion, nonlinearity, loss and chirp."""

    kind = "lantern"
    dtype = "float64"
    size = dict(n=256, steps=40)
    small = dict(n=16, steps=3)

    def make(self, random, n, steps):
        t = np.linspace(-12, 12, n, endpoint=False)
        noise = 0.01 * random.normal(size=(2, n))
        return np.array([-1.0, 0.05, 1.8, 0.1, 0.3]), t, noise[0], noise[1]

    def rscan(self, n, steps):
        dz = 0.02

        @rs.compile
        def measured(p, t, noise_re, noise_im):
            beta2, beta3, gamma, alpha, chirp = p[0], p[1], p[2], p[3], p[4]
            w = 2 * np.pi * rs.fft.fftfreq(n, 24.0 / n)
            pulse = 1 / rs.cosh(t)
            turn = -0.5 * chirp * t**2
            start = (pulse * rs.cos(turn) + noise_re, pulse * rs.sin(turn) + noise_im)
            angle = (0.5 * beta2 * w**2 + beta3 / 6 * w**3) * dz
            decay = rs.exp(-0.5 * alpha * dz)
            c, s = decay * rs.cos(angle), decay * rs.sin(angle)

            def step(a):
                re, im = a
                phase = gamma * dz * (re**2 + im**2)
                re, im = re * rs.cos(phase) - im * rs.sin(phase), re * rs.sin(phase) + im * rs.cos(phase)
                re, im = rs.fft.fft((re, im))
                return dict(a=rs.fft.ifft((re * c - im * s, re * s + im * c)))

            re, im = rs.loop(step, init=dict(a=start), n_steps=steps).last.a
            power = re**2 + im**2
            fre, fim = rs.fft.fft((re, im))
            spectrum = fre**2 + fim**2
            energy = rs.sum(power)
            centre = rs.sum(t * power) / energy
            return rs.stack(
                [
                    energy,
                    centre,
                    rs.sqrt(rs.sum((t - centre) ** 2 * power) / energy),
                    rs.sqrt(rs.sum(w**2 * spectrum) / rs.sum(spectrum)),
                    rs.sum(power**2) / energy,
                    re[n // 2],
                ]
            )

        return rs.jacobian(measured)

    def jax(self, n, steps):
        import jax
        import jax.numpy as jnp

        dz = 0.02

        def measured(p, t, noise_re, noise_im):
            beta2, beta3, gamma, alpha, chirp = p
            w = 2 * np.pi * jnp.fft.fftfreq(n, 24.0 / n)
            start = 1 / jnp.cosh(t) * jnp.exp(-0.5j * chirp * t**2) + noise_re + 1j * noise_im
            linear = jnp.exp((1j * (0.5 * beta2 * w**2 + beta3 / 6 * w**3) - 0.5 * alpha) * dz)

            def step(a, _):
                a = a * jnp.exp(1j * gamma * dz * (a.real**2 + a.imag**2))
                return jnp.fft.ifft(jnp.fft.fft(a) * linear), None

            a = jax.lax.scan(step, start, None, length=steps)[0]
            power = a.real**2 + a.imag**2
            f = jnp.fft.fft(a)
            spectrum = f.real**2 + f.imag**2
            energy = jnp.sum(power)
            centre = jnp.sum(t * power) / energy
            return jnp.stack(
                [
                    energy,
                    centre,
                    jnp.sqrt(jnp.sum((t - centre) ** 2 * power) / energy),
                    jnp.sqrt(jnp.sum(w**2 * spectrum) / jnp.sum(spectrum)),
                    jnp.sum(power**2) / energy,
                    a.real[n // 2],
                ]
            )

        return jax.jit(jax.jacfwd(measured))


def lz4_block(data):
    """A block in LZ4's format, by the greedy method."""
    out, seen, i, anchor = bytearray(), {}, 0, 0

    def length(n):
        while n >= 255:
            out.append(255)
            n -= 255
        out.append(n)

    while i + 4 <= len(data) - 5:
        key = data[i : i + 4]
        j = seen.get(key)
        seen[key] = i
        if j is None:
            i += 1
            continue
        n = 4
        while i + n < len(data) - 5 and data[j + n] == data[i + n]:
            n += 1
        literals = i - anchor
        out.append(min(literals, 15) << 4 | min(n - 4, 15))
        if literals >= 15:
            length(literals - 15)
        out += data[anchor:i]
        out += (i - j).to_bytes(2, "little")
        if n - 4 >= 15:
            length(n - 19)
        i += n
        anchor = i
    literals = len(data) - anchor
    out.append(min(literals, 15) << 4)
    if literals >= 15:
        length(literals - 15)
    return bytes(out + data[anchor:])


TOKEN, MORE_LITERALS, LITERAL, OFFSET_LOW, OFFSET_HIGH, MORE_MATCH, MATCH = range(7)


class Lz4BlockReader(Model):
    """Blocks of LZ4 unpacked by a machine that takes one byte a step, many blocks at once, and the Fletcher sum of what comes out."""

    kind = "lantern"
    dtype = "uint8"
    size = dict(blocks=8, length=400)
    small = dict(blocks=2, length=40)

    def make(self, random, blocks, length):
        words = [bytes(random.integers(97, 123, size=random.integers(2, 8)).astype("u1")) for _ in range(25)]
        packed = []
        for k in range(blocks):
            text = b" ".join(words[j] for j in random.integers(0, len(words), size=length))
            packed.append(lz4_block(text[: length - length // 10 * (k % 2)]))
        width = max(len(p) for p in packed)
        rows = np.zeros((blocks, width), dtype="u1")
        for row, p in zip(rows, packed):
            row[: len(p)] = np.frombuffer(p, dtype="u1")
        return rows, np.array([len(p) for p in packed], dtype="i4")

    def rscan(self, blocks, length):
        def unpack(source, size):
            def step(s):
                mode, i, o, literals, match, offset = s["mode"], s["i"], s["o"], s["literals"], s["match"], s["offset"]
                byte = source[rs.minimum(i, source.shape[0] - 1)]
                b = byte.astype("int32")
                copied = s["out"][rs.maximum(o - offset, 0)]
                writes = (mode == LITERAL) | (mode == MATCH)
                value = rs.where(mode == MATCH, copied, byte)
                at = rs.minimum(o, length - 1)
                out = s["out"].at[at].set(rs.where(writes, value, s["out"][at]))
                v = value.astype("int32")
                low = rs.where(writes, (s["low"] + v) % 255, s["low"])
                high = rs.where(writes, (s["high"] + low) % 255, s["high"])

                literals = rs.where(
                    mode == TOKEN,
                    b >> 4,
                    rs.where(mode == MORE_LITERALS, literals + b, rs.where(mode == LITERAL, literals - 1, literals)),
                )
                match = rs.where(
                    mode == TOKEN, (b & 15) + 4, rs.where(mode == MORE_MATCH, match + b, rs.where(mode == MATCH, match - 1, match))
                )
                offset = rs.where(mode == OFFSET_LOW, b, rs.where(mode == OFFSET_HIGH, offset | (b << 8), offset))
                after_literals = rs.where(literals > 0, LITERAL, OFFSET_LOW)
                new = rs.choose(
                    mode,
                    [
                        rs.where(literals == 15, MORE_LITERALS, after_literals),
                        rs.where(b == 255, MORE_LITERALS, after_literals),
                        after_literals,
                        rs.full((), OFFSET_HIGH),
                        rs.where(match == 19, MORE_MATCH, MATCH),
                        rs.where(b == 255, MORE_MATCH, MATCH),
                        rs.where(match > 0, MATCH, TOKEN),
                    ],
                ).astype("int32")
                i = rs.where(mode == MATCH, i, i + 1)
                state = dict(mode=new, i=i, o=rs.where(writes, o + 1, o), literals=literals, match=match, offset=offset)
                done = (i >= size) & (new != MATCH)
                return [dict(**state, out=out, low=low, high=high)], rs.until(done)

            zero = np.int32(0)
            start = dict(mode=zero, i=zero, o=zero, literals=zero, match=zero, offset=zero, low=zero, high=zero)
            start["out"] = rs.zeros(length, dtype="uint8")
            s = rs.loop(step, init=[start], n_steps=3 * length).last[0]
            return s["out"], s["o"], (s["high"] << 8) | s["low"]

        return rs.compile(rs.vmap(unpack))

    def jax(self, blocks, length):
        import jax
        import jax.numpy as jnp

        def unpack(source, size):
            def step(s):
                mode, i, o, literals, match, offset = s["mode"], s["i"], s["o"], s["literals"], s["match"], s["offset"]
                byte = source[jnp.minimum(i, source.shape[0] - 1)]
                b = byte.astype(jnp.int32)
                copied = s["out"][jnp.maximum(o - offset, 0)]
                writes = (mode == LITERAL) | (mode == MATCH)
                value = jnp.where(mode == MATCH, copied, byte)
                at = jnp.minimum(o, length - 1)
                out = s["out"].at[at].set(jnp.where(writes, value, s["out"][at]))
                v = value.astype(jnp.int32)
                low = jnp.where(writes, (s["low"] + v) % 255, s["low"])
                high = jnp.where(writes, (s["high"] + low) % 255, s["high"])

                literals = jnp.where(
                    mode == TOKEN,
                    b >> 4,
                    jnp.where(mode == MORE_LITERALS, literals + b, jnp.where(mode == LITERAL, literals - 1, literals)),
                )
                match = jnp.where(
                    mode == TOKEN, (b & 15) + 4, jnp.where(mode == MORE_MATCH, match + b, jnp.where(mode == MATCH, match - 1, match))
                )
                offset = jnp.where(mode == OFFSET_LOW, b, jnp.where(mode == OFFSET_HIGH, offset | (b << 8), offset))
                after_literals = jnp.where(literals > 0, LITERAL, OFFSET_LOW)
                new = jnp.choose(
                    mode,
                    [
                        jnp.where(literals == 15, MORE_LITERALS, after_literals),
                        jnp.where(b == 255, MORE_LITERALS, after_literals),
                        after_literals,
                        OFFSET_HIGH,
                        jnp.where(match == 19, MORE_MATCH, MATCH),
                        jnp.where(b == 255, MORE_MATCH, MATCH),
                        jnp.where(match > 0, MATCH, TOKEN),
                    ],
                    mode="clip",
                ).astype(jnp.int32)
                i = jnp.where(mode == MATCH, i, i + 1)
                done = (i >= size) & (new != MATCH)
                return dict(
                    mode=new, i=i, o=jnp.where(writes, o + 1, o), literals=literals, match=match, offset=offset,
                    out=out, low=low, high=high, done=done, t=s["t"] + 1,
                )  # fmt: skip

            zero = jnp.int32(0)
            names = ("mode", "i", "o", "literals", "match", "offset", "low", "high", "t")
            start = dict({k: zero for k in names}, out=jnp.zeros(length, jnp.uint8), done=False)
            s = jax.lax.while_loop(lambda s: ~s["done"] & (s["t"] < 3 * length), step, start)
            return s["out"], s["o"], (s["high"] << 8) | s["low"]

        return jax.jit(jax.vmap(unpack))
