"""Loops from the workshop: sampling, rendering, segmentation, hashing, decoding, survival, grids, shapes and early exercise."""

import numpy as np

import rscan as rs
from models import Model


class SteinParticles(Model):
    """Stein variational gradient descent on a Bayesian logistic regression, with AdaGrad steps and a kernel width from the particles."""

    kind = "foundry"
    dtype = "float64"
    size = dict(particles=48, features=6, rows=80, steps=40)
    small = dict(particles=5, features=2, rows=7, steps=3)

    def make(self, random, particles, features, rows, steps):
        x = random.normal(size=(rows, features))
        y = np.where(x @ random.normal(size=features) + 0.5 * random.normal(size=rows) > 0, 1.0, -1.0)
        return x, y, random.normal(size=(particles, features)), 0.05

    def rscan(self, particles, features, rows, steps):
        @rs.compile
        def run(x, y, theta, rate):
            def log_posterior(w):
                return rs.sum(rs.log_sigmoid(y * (x @ w))) - 0.5 * rs.sum(w**2)

            score = rs.vmap(rs.grad(log_posterior))

            def step(theta, seen):
                apart = theta[:, None, :] - theta[None, :, :]
                d2 = rs.sum(apart**2, axis=2)
                h = rs.mean(d2) / np.log(particles + 1.0)
                k = rs.exp(-d2 / h)
                pull = k @ score(theta)
                push = 2 / h * rs.sum(k[:, :, None] * apart, axis=1)
                phi = (pull + push) / particles
                seen = seen + phi**2
                return dict(theta=theta + rate * phi / (1e-6 + rs.sqrt(seen)), seen=seen)

            out = rs.loop(step, init=dict(theta=theta, seen=rs.zeros_like(theta)), n_steps=steps)
            final = out.last.theta
            return final, rs.mean(rs.sigmoid(x @ final.T), axis=1)

        return run

    def jax(self, particles, features, rows, steps):
        import jax
        import jax.numpy as jnp

        def run(x, y, theta, rate):
            def log_posterior(w):
                return jnp.sum(jax.nn.log_sigmoid(y * (x @ w))) - 0.5 * jnp.sum(w**2)

            score = jax.vmap(jax.grad(log_posterior))

            def step(carry, _):
                theta, seen = carry
                apart = theta[:, None, :] - theta[None, :, :]
                d2 = jnp.sum(apart**2, axis=2)
                h = jnp.mean(d2) / np.log(particles + 1.0)
                k = jnp.exp(-d2 / h)
                pull = k @ score(theta)
                push = 2 / h * jnp.sum(k[:, :, None] * apart, axis=1)
                phi = (pull + push) / particles
                seen = seen + phi**2
                return (theta + rate * phi / (1e-6 + jnp.sqrt(seen)), seen), None

            (final, _), _ = jax.lax.scan(step, (theta, jnp.zeros_like(theta)), None, length=steps)
            return final, jnp.mean(jax.nn.sigmoid(x @ final.T), axis=1)

        return jax.jit(run)


class VolumeRays(Model):
    """Emission and absorption along rays through a voxel grid, and the gradient of the picture's error with respect to all voxels."""

    kind = "foundry"
    dtype = "float32"
    size = dict(rays=64, samples=40, side=16)
    small = dict(rays=3, samples=4, side=4)

    def make(self, random, rays, samples, side):
        grid = random.normal(size=(side, side, side, 4)).astype("float32")
        start = random.uniform(0.2, side - 1.2, size=(rays, 3))
        start[:, 2] = 0.1
        end = random.uniform(0.2, side - 1.2, size=(rays, 3))
        end[:, 2] = side - 1.1
        t = (np.arange(samples) + 0.5) / samples
        return grid, start.astype("float32"), (end - start).astype("float32"), t.astype("float32"), random.uniform(size=(rays, 3)).astype("float32")

    def rscan(self, rays, samples, side):
        def loss(grid, origin, direction, t, seen):
            def render(o, d):
                dt = rs.sqrt(rs.sum(d * d)) / samples

                def step(t, light, colour):
                    p = o + t * d
                    low = rs.clip(rs.floor(p).astype("int32"), 0, side - 2)
                    f = p - low.astype("float32")
                    i, j, k = low[0], low[1], low[2]
                    u, v, w = f[0], f[1], f[2]
                    value = sum(
                        (u if a else 1 - u) * (v if b else 1 - v) * (w if c else 1 - w) * grid[i + a, j + b, k + c]
                        for a in (0, 1)
                        for b in (0, 1)
                        for c in (0, 1)
                    )
                    passes = rs.exp(-rs.softplus(value[0]) * dt)
                    colour = colour + light * (1 - passes) * rs.sigmoid(value[1:])
                    return dict(light=light * passes, colour=colour)

                out = rs.loop(step, over=dict(t=t), init=dict(light=np.float32(1), colour=rs.zeros(3, dtype="float32")))
                return out.last.colour

            return rs.mean((rs.vmap(render)(origin, direction) - seen) ** 2)

        return rs.value_and_grad(rs.compile(loss))

    def jax(self, rays, samples, side):
        import jax
        import jax.numpy as jnp

        def loss(grid, origin, direction, t, seen):
            def render(o, d):
                dt = jnp.sqrt(jnp.sum(d * d)) / samples

                def step(carry, t):
                    light, colour = carry
                    p = o + t * d
                    low = jnp.clip(jnp.floor(p).astype(jnp.int32), 0, side - 2)
                    u, v, w = p - low.astype(jnp.float32)
                    i, j, k = low
                    value = sum(
                        (u if a else 1 - u) * (v if b else 1 - v) * (w if c else 1 - w) * grid[i + a, j + b, k + c]
                        for a in (0, 1)
                        for b in (0, 1)
                        for c in (0, 1)
                    )
                    passes = jnp.exp(-jax.nn.softplus(value[0]) * dt)
                    colour = colour + light * (1 - passes) * jax.nn.sigmoid(value[1:])
                    return (light * passes, colour), None

                return jax.lax.scan(step, (jnp.float32(1), jnp.zeros(3, jnp.float32)), t)[0][1]

            return jnp.mean((jax.vmap(render)(origin, direction) - seen) ** 2)

        return jax.jit(jax.value_and_grad(loss))


class ChanVeseContour(Model):
    """Active contours without edges: a level set moves by region means and curvature, and is made a distance again after each move."""

    kind = "foundry"
    dtype = "float32"
    size = dict(side=48, moves=12, repairs=4)
    small = dict(side=9, moves=2, repairs=2)
    rtol = 1e-3

    def make(self, random, side, moves, repairs):
        y, x = np.mgrid[:side, :side] / side
        image = 0.8 * (((x - 0.45) ** 2 + 1.5 * (y - 0.55) ** 2) < 0.06) + 0.1 + 0.05 * random.normal(size=(side, side))
        phi = side * (0.35 - np.sqrt((x - 0.5) ** 2 + (y - 0.5) ** 2))
        return image.astype("float32"), phi.astype("float32")

    def rscan(self, side, moves, repairs):
        @rs.compile
        def segment(image, phi):
            def sides(f):
                p = rs.pad(f, 1, mode="edge")
                return p[1:-1, :-2], p[1:-1, 2:], p[:-2, 1:-1], p[2:, 1:-1]

            def repair(f, sign):
                west, east, north, south = sides(f)
                a, b, c, d = f - west, east - f, f - north, south - f
                grow = rs.maximum(rs.maximum(a, 0) ** 2, rs.minimum(b, 0) ** 2) + rs.maximum(rs.maximum(c, 0) ** 2, rs.minimum(d, 0) ** 2)
                shrink = rs.maximum(rs.minimum(a, 0) ** 2, rs.maximum(b, 0) ** 2) + rs.maximum(rs.minimum(c, 0) ** 2, rs.maximum(d, 0) ** 2)
                slope = rs.sqrt(rs.where(sign > 0, grow, shrink))
                return f - 0.3 * sign * (slope - 1)

            def move(phi):
                inside = 0.5 + rs.arctan(phi) / np.pi
                one = rs.sum(image * inside) / rs.sum(inside)
                two = rs.sum(image * (1 - inside)) / rs.sum(1 - inside)
                west, east, north, south = sides(phi)
                gx, gy = 0.5 * (east - west), 0.5 * (south - north)
                size = rs.sqrt(gx**2 + gy**2 + 1e-6)
                nx, ny = gx / size, gy / size
                xw, xe, _, _ = sides(nx)
                _, _, yn, ys = sides(ny)
                curvature = 0.5 * (xe - xw + ys - yn)
                force = 0.1 * curvature - (image - one) ** 2 + (image - two) ** 2
                phi = phi + 2.0 * force / (1 + phi**2)
                sign = phi / rs.sqrt(phi**2 + 1)
                phi = rs.loop(lambda f: repair(f, sign), init=phi, n_steps=repairs).last
                return dict(phi=phi, one=one, two=two)

            out = rs.loop(move, init=dict(phi=phi), n_steps=moves)
            return out.last.phi, out.one, out.two

        return segment

    def jax(self, side, moves, repairs):
        import jax
        import jax.numpy as jnp

        def segment(image, phi):
            def sides(f):
                p = jnp.pad(f, 1, mode="edge")
                return p[1:-1, :-2], p[1:-1, 2:], p[:-2, 1:-1], p[2:, 1:-1]

            def repair(f, sign):
                west, east, north, south = sides(f)
                a, b, c, d = f - west, east - f, f - north, south - f
                grow = jnp.maximum(jnp.maximum(a, 0) ** 2, jnp.minimum(b, 0) ** 2) + jnp.maximum(jnp.maximum(c, 0) ** 2, jnp.minimum(d, 0) ** 2)
                shrink = jnp.maximum(jnp.minimum(a, 0) ** 2, jnp.maximum(b, 0) ** 2) + jnp.maximum(jnp.minimum(c, 0) ** 2, jnp.maximum(d, 0) ** 2)
                slope = jnp.sqrt(jnp.where(sign > 0, grow, shrink))
                return f - 0.3 * sign * (slope - 1)

            def move(phi, _):
                inside = 0.5 + jnp.arctan(phi) / np.pi
                one = jnp.sum(image * inside) / jnp.sum(inside)
                two = jnp.sum(image * (1 - inside)) / jnp.sum(1 - inside)
                west, east, north, south = sides(phi)
                gx, gy = 0.5 * (east - west), 0.5 * (south - north)
                size = jnp.sqrt(gx**2 + gy**2 + 1e-6)
                nx, ny = gx / size, gy / size
                xw, xe, _, _ = sides(nx)
                _, _, yn, ys = sides(ny)
                curvature = 0.5 * (xe - xw + ys - yn)
                force = 0.1 * curvature - (image - one) ** 2 + (image - two) ** 2
                phi = phi + 2.0 * force / (1 + phi**2)
                sign = phi / jnp.sqrt(phi**2 + 1)
                phi = jax.lax.fori_loop(0, repairs, lambda _, f: repair(f, sign), phi)
                return phi, (one, two)

            phi, (one, two) = jax.lax.scan(move, phi, None, length=moves)
            return phi, one, two

        return jax.jit(segment)


class CuckooInserter(Model):
    """Keys go into a cuckoo hash of two tables, each pushing out what lies in its nest; then other keys are looked up."""

    kind = "foundry"
    dtype = "int64"
    size = dict(keys=900, nests=1024, queries=600, kicks=60)
    small = dict(keys=6, nests=8, queries=5, kicks=5)

    def make(self, random, keys, nests, queries, kicks):
        pool = random.choice(2**31 - 1, size=2 * keys, replace=False).astype("int64")
        return pool[:keys], random.choice(pool, size=queries)

    def rscan(self, keys, nests, queries, kicks):
        def nest(key, side):
            mixed = key ^ (key >> 15)
            return rs.where(side == 0, mixed * 1103515245 >> 12, mixed * 668265263 >> 9) & (nests - 1)

        @rs.compile
        def fill(keys, queries):
            def insert(key, table):
                def kick(table, key, side):
                    place = nest(key, side)
                    out = table[side, place]
                    return dict(table=table.at[side, place].set(key), key=out, side=1 - side), rs.until(out < 0)

                tried = rs.loop(kick, init=dict(table=table, key=key, side=0), n_steps=kicks)
                return dict(table=tried.last.table, lost=tried.last.key, tries=tried.steps)

            out = rs.loop(insert, over=dict(key=keys), init=dict(table=rs.full((2, nests), -1, dtype="int64")))
            table = out.last.table
            found = (table[0, nest(queries, 0)] == queries) | (table[1, nest(queries, 1)] == queries)
            return table, out.lost, out.tries, found

        return fill

    def jax(self, keys, nests, queries, kicks):
        import jax
        import jax.numpy as jnp

        def nest(key, side):
            mixed = key ^ (key >> 15)
            return jnp.where(side == 0, mixed * 1103515245 >> 12, mixed * 668265263 >> 9) & (nests - 1)

        def fill(keys, queries):
            def insert(table, key):
                def kick(state):
                    table, key, side, n = state
                    place = side * nests + nest(key, side)
                    return table.at[place].set(key), table[place], 1 - side, n + 1

                table, lost, _, tries = jax.lax.while_loop(lambda s: (s[1] >= 0) & (s[3] < kicks), kick, (table, key, jnp.int64(0), jnp.int64(0)))
                return table, (lost, tries)

            table, (lost, tries) = jax.lax.scan(insert, jnp.full(2 * nests, -1, jnp.int64), keys)
            table = table.reshape(2, nests)
            found = (table[0, nest(queries, 0)] == queries) | (table[1, nest(queries, 1)] == queries)
            return table, lost, tries, found

        return jax.jit(fill)


CLASSES = np.zeros(256, "int32")
for low, high, name in [
    (0x80, 0x8F, 1), (0x90, 0x9F, 9), (0xA0, 0xBF, 7), (0xC0, 0xC1, 8), (0xC2, 0xDF, 2), (0xE0, 0xE0, 10), (0xE1, 0xEC, 3),
    (0xED, 0xED, 4), (0xEE, 0xEF, 3), (0xF0, 0xF0, 11), (0xF1, 0xF3, 6), (0xF4, 0xF4, 5), (0xF5, 0xFF, 8),
]:  # fmt: skip
    CLASSES[low : high + 1] = name
MOVES = np.array(
    [0, 12, 24, 36, 60, 96, 84, 12, 12, 12, 48, 72, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12,
     12, 0, 12, 12, 12, 12, 12, 0, 12, 0, 12, 12, 12, 24, 12, 12, 12, 12, 12, 24, 12, 24, 12, 12,
     12, 12, 12, 12, 12, 12, 12, 24, 12, 12, 12, 12, 12, 24, 12, 12, 12, 12, 12, 12, 12, 24, 12, 12,
     12, 12, 12, 12, 12, 12, 12, 36, 12, 36, 12, 12, 12, 36, 12, 12, 12, 12, 12, 36, 12, 36, 12, 12,
     12, 36, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12], "int32")  # fmt: skip


class Utf8Validator(Model):
    """An automaton decodes UTF-8 in a batch of texts of different lengths, stops at a text's first fault, and hashes what it decoded."""

    kind = "foundry"
    dtype = "int32"
    size = dict(texts=64, length=400)
    small = dict(texts=4, length=9)

    def make(self, random, texts, length):
        rows, lengths = np.zeros((texts, length), "uint8"), np.zeros(texts, "int64")
        for i in range(1, texts):  # the first text is empty
            points = random.choice([0x41, 0x7A, 0xE9, 0x3B1, 0x20AC, 0x4E2D, 0x1F600], size=length)
            raw = np.frombuffer("".join(map(chr, points)).encode(), "uint8")[: random.integers(length // 2, length + 1)].copy()
            if i % 3 == 0:
                raw[random.integers(len(raw))] = 0xFF
            rows[i, : len(raw)], lengths[i] = raw, len(raw)
        return rows, lengths

    def rscan(self, texts, length):
        classes, moves = rs.constant(CLASSES), rs.constant(MOVES)

        def decode(text, n):
            def step(byte, state, point, count, digest):
                wide = byte.astype("int32")
                kind = classes[wide]
                point = rs.where(state == 0, (0xFF >> kind) & wide, (wide & 0x3F) | (point << 6))
                state = moves[state + kind]
                done = state == 0
                digest = rs.where(done, (digest ^ point.astype("uint32")) * np.uint32(16777619), digest)
                return dict(state=state, point=point, count=count + done, digest=digest), rs.until(state == 12)

            zero = np.int32(0)
            init = dict(state=zero, point=zero, count=0, digest=np.uint32(2166136261))
            out = rs.loop(step, over=dict(byte=text), init=init, n_steps=n)
            return rs.where(out.last.state == 12, out.steps - 1, -1), out.last.state == 0, out.last.count, out.last.digest

        return rs.compile(rs.vmap(decode))

    def jax(self, texts, length):
        import jax
        import jax.numpy as jnp

        classes, moves = jnp.asarray(CLASSES), jnp.asarray(MOVES)

        def decode(text, n):
            def step(carry, row):
                state, point, count, digest, fault = carry
                byte, t = row
                wide = byte.astype(jnp.int32)
                kind = classes[wide]
                p = jnp.where(state == 0, (0xFF >> kind) & wide, (wide & 0x3F) | (point << 6))
                s = moves[state + kind]
                alive = (t < n) & (state != 12)
                done = alive & (s == 0)
                digest = jnp.where(done, (digest ^ p.astype(jnp.uint32)) * jnp.uint32(16777619), digest)
                fault = jnp.where(alive & (s == 12), t, fault)
                return (jnp.where(alive, s, state), jnp.where(alive, p, point), count + done, digest, fault), None

            init = jnp.int32(0), jnp.int32(0), jnp.int64(0), jnp.uint32(2166136261), jnp.int64(-1)
            state, _, count, digest, fault = jax.lax.scan(step, init, (text, jnp.arange(length)))[0]
            return fault, state == 0, count, digest

        return jax.jit(jax.vmap(decode))


class StratifiedCoxHessian(Model):
    """Cox's partial likelihood with strata, risk sets summed backwards in time in logarithms; value, gradient and Hessian."""

    kind = "foundry"
    dtype = "float64"
    size = dict(subjects=600, features=6, strata=4)
    small = dict(subjects=9, features=2, strata=2)

    def make(self, random, subjects, features, strata):
        x = random.normal(size=(subjects, features))
        stratum = np.sort(random.integers(strata, size=subjects))
        last = np.append(stratum[1:] != stratum[:-1], True)  # subjects lie by stratum, then by time
        return 0.2 * random.normal(size=features), x, random.uniform(size=subjects) < 0.7, last

    def rscan(self, subjects, features, strata):
        def nll(beta, x, event, last):
            eta = x @ beta

            def step(eta, event, last, risk):
                risk = rs.where(last, eta, rs.logaddexp(risk, eta))
                return dict(risk=risk, part=rs.where(event, risk - eta, 0.0))

            out = rs.loop(step, over=dict(eta=eta, event=event, last=last), init=dict(risk=0.0), reverse=True)
            return rs.sum(out.part) + 0.5 * rs.sum(beta**2)

        @rs.compile
        def newton(beta, x, event, last):
            value, slope = rs.value_and_grad(nll)(beta, x, event, last)
            return value, slope, rs.hessian(nll)(beta, x, event, last)

        return newton

    def jax(self, subjects, features, strata):
        import jax
        import jax.numpy as jnp

        def nll(beta, x, event, last):
            eta = x @ beta

            def step(risk, row):
                eta, event, last = row
                risk = jnp.where(last, eta, jnp.logaddexp(risk, eta))
                return risk, jnp.where(event, risk - eta, 0.0)

            _, part = jax.lax.scan(step, 0.0, (eta, event, last), reverse=True)
            return jnp.sum(part) + 0.5 * jnp.sum(beta**2)

        def newton(beta, x, event, last):
            value, slope = jax.value_and_grad(nll)(beta, x, event, last)
            return value, slope, jax.hessian(nll)(beta, x, event, last)

        return jax.jit(newton)


class RadialFeederJacobian(Model):
    """Power flow in a radial feeder by backward and forward sweeps until it stands; how voltages answer to reactive power."""

    kind = "foundry"
    dtype = "float64"
    size = dict(buses=33)
    small = dict(buses=4)
    rtol = 1e-7

    def make(self, random, buses):
        parent = np.array([0] + [random.integers(max(0, i - 3), i) for i in range(1, buses)])
        r, x = random.uniform(0.002, 0.006, size=(2, buses))
        return random.uniform(0.005, 0.03, size=buses), random.uniform(0.002, 0.02, size=buses), r, x, parent

    def rscan(self, buses):
        def magnitudes(q, p, r, x, parent):
            n = rs.arange(1, buses)

            def sweep(re, im):
                size = re**2 + im**2
                jr, ji = (p * re + q * im) / size, (p * im - q * re) / size

                def up(i, up, jr, ji):
                    return dict(jr=jr.at[up].add(jr[i]), ji=ji.at[up].add(ji[i]))

                flow = rs.loop(up, over=dict(i=n, up=parent[1:]), init=dict(jr=jr, ji=ji), go_backwards=True).last

                def down(i, up, r, x, a, b, re, im):
                    return dict(re=re.at[i].set(re[up] - (r * a - x * b)), im=im.at[i].set(im[up] - (r * b + x * a)))

                over = dict(i=n, up=parent[1:], r=r[1:], x=x[1:], a=flow.jr[1:], b=flow.ji[1:])
                new = rs.loop(down, over=over, init=dict(re=re, im=im)).last
                moved = rs.max(rs.abs(new.re - re) + rs.abs(new.im - im))
                return dict(re=new.re, im=new.im), rs.until(moved < 1e-11)

            out = rs.loop(sweep, init=dict(re=rs.ones(buses), im=rs.zeros(buses)), n_steps=50)
            return rs.sqrt(out.last.re**2 + out.last.im**2)

        @rs.compile
        def sensitivity(p, q, r, x, parent):
            return magnitudes(q, p, r, x, parent), rs.jacobian(magnitudes)(q, p, r, x, parent)

        return sensitivity

    def jax(self, buses):
        import jax
        import jax.numpy as jnp

        def magnitudes(q, p, r, x, parent):
            n = jnp.arange(1, buses)

            def sweep(state):
                re, im, _, count = state
                size = re**2 + im**2
                jr, ji = (p * re + q * im) / size, (p * im - q * re) / size

                def up(carry, row):
                    (jr, ji), (i, up) = carry, row
                    return (jr.at[up].add(jr[i]), ji.at[up].add(ji[i])), None

                (jr, ji), _ = jax.lax.scan(up, (jr, ji), (n, parent[1:]), reverse=True)

                def down(carry, row):
                    (re, im), (i, up, r, x, a, b) = carry, row
                    return (re.at[i].set(re[up] - (r * a - x * b)), im.at[i].set(im[up] - (r * b + x * a))), None

                (new, turned), _ = jax.lax.scan(down, (re, im), (n, parent[1:], r[1:], x[1:], jr[1:], ji[1:]))
                return new, turned, jnp.max(jnp.abs(new - re) + jnp.abs(turned - im)), count + 1

            start = jnp.ones(buses), jnp.zeros(buses), jnp.inf, 0
            re, im, _, _ = jax.lax.while_loop(lambda s: (s[2] >= 1e-11) & (s[3] < 50), sweep, start)
            return jnp.sqrt(re**2 + im**2)

        def sensitivity(p, q, r, x, parent):
            return magnitudes(q, p, r, x, parent), jax.jacfwd(magnitudes)(q, p, r, x, parent)

        return jax.jit(sensitivity)


class LandmarkShooting(Model):
    """Diffeomorphic matching of landmarks: Hamilton's equations of a kernel metric, shot by midpoint steps, and the gradient by momenta."""

    kind = "foundry"
    dtype = "float64"
    size = dict(landmarks=24, steps=15)
    small = dict(landmarks=3, steps=3)

    def make(self, random, landmarks, steps):
        a = np.linspace(0, 2 * np.pi, landmarks, endpoint=False)
        q = np.stack([np.cos(a), np.sin(a)], axis=1)
        target = np.stack([1.3 * np.cos(a + 0.1), 0.8 * np.sin(a + 0.1)], axis=1) + 0.02 * random.normal(size=(landmarks, 2))
        return 0.1 * random.normal(size=(landmarks, 2)), q, target, 0.5

    def rscan(self, landmarks, steps):
        def energy(q, p, width):
            d2 = rs.sum((q[:, None, :] - q[None, :, :]) ** 2, axis=2)
            return 0.5 * rs.sum(rs.exp(-d2 / (2 * width**2)) * (p @ p.T))

        slopes = rs.grad(energy, argnums=(0, 1))

        def loss(p0, q0, target, width):
            dt = 1.0 / steps

            def step(q, p):
                by_q, by_p = slopes(q, p, width)
                by_q, by_p = slopes(q + 0.5 * dt * by_p, p - 0.5 * dt * by_q, width)
                return dict(q=q + dt * by_p, p=p - dt * by_q)

            out = rs.loop(step, init=dict(q=q0, p=p0), n_steps=steps)
            return energy(q0, p0, width) + 10.0 * rs.sum((out.last.q - target) ** 2)

        return rs.value_and_grad(rs.compile(loss))

    def jax(self, landmarks, steps):
        import jax
        import jax.numpy as jnp

        def energy(q, p, width):
            d2 = jnp.sum((q[:, None, :] - q[None, :, :]) ** 2, axis=2)
            return 0.5 * jnp.sum(jnp.exp(-d2 / (2 * width**2)) * (p @ p.T))

        slopes = jax.grad(energy, argnums=(0, 1))

        def loss(p0, q0, target, width):
            dt = 1.0 / steps

            def step(carry, _):
                q, p = carry
                by_q, by_p = slopes(q, p, width)
                by_q, by_p = slopes(q + 0.5 * dt * by_p, p - 0.5 * dt * by_q, width)
                return (q + dt * by_p, p - dt * by_q), None

            (q, _), _ = jax.lax.scan(step, (q0, p0), None, length=steps)
            return energy(q0, p0, width) + 10.0 * jnp.sum((q - target) ** 2)

        return jax.jit(jax.value_and_grad(loss))


class LongstaffSchwartzPut(Model):
    """A put exercised early: simulated paths, a regression on those in the money at each date backwards, and its pathwise Greeks."""

    kind = "foundry"
    dtype = "float64"
    size = dict(paths=400, dates=24)
    small = dict(paths=20, dates=3)

    def make(self, random, paths, dates):
        return np.array([36.0, 0.2, 0.06]), 40.0, 1.0, random.normal(size=(dates, paths))

    def rscan(self, paths, dates):
        def price(theta, strike, maturity, z):
            spot, vol, rate = theta[0], theta[1], theta[2]
            dt = maturity / dates
            discount = rs.exp(-rate * dt)
            drift = (rate - 0.5 * vol**2) * dt

            walk = rs.loop(lambda z, s: s * rs.exp(drift + vol * rs.sqrt(dt) * z), over=z, init=spot * rs.ones(paths))

            def back(s, cash):
                cash = discount * cash
                u = s / strike
                basis = rs.stack([rs.ones_like(u), u, u**2, u**3], axis=1)
                gain = strike - s
                weighted = rs.where(gain > 0, 1.0, 0.0)[:, None] * basis
                fit = rs.linalg.solve(weighted.T @ basis + 1e-6 * rs.eye(4), weighted.T @ cash)
                return rs.where((gain > 0) & (gain > basis @ fit), gain, cash)

            cash = rs.loop(back, over=walk[:-1], init=rs.maximum(strike - walk[-1], 0.0), reverse=True).last
            return rs.mean(discount * cash)

        return rs.value_and_grad(rs.compile(price))

    def jax(self, paths, dates):
        import jax
        import jax.numpy as jnp

        def price(theta, strike, maturity, z):
            spot, vol, rate = theta
            dt = maturity / dates
            discount = jnp.exp(-rate * dt)
            drift = (rate - 0.5 * vol**2) * dt

            def forth(s, z):
                s = s * jnp.exp(drift + vol * jnp.sqrt(dt) * z)
                return s, s

            last, walk = jax.lax.scan(forth, spot * jnp.ones(paths), z)

            def back(cash, s):
                cash = discount * cash
                u = s / strike
                basis = jnp.stack([jnp.ones_like(u), u, u**2, u**3], axis=1)
                gain = strike - s
                weighted = jnp.where(gain > 0, 1.0, 0.0)[:, None] * basis
                fit = jnp.linalg.solve(weighted.T @ basis + 1e-6 * jnp.eye(4), weighted.T @ cash)
                return jnp.where((gain > 0) & (gain > basis @ fit), gain, cash), None

            cash, _ = jax.lax.scan(back, jnp.maximum(strike - last, 0.0), walk[:-1], reverse=True)
            return jnp.mean(discount * cash)

        return jax.jit(jax.value_and_grad(price))
