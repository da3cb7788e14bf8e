"""Programs of several trades: soil physics, assignment, quantum circuits, image files, splatting, quantum chemistry, word vectors."""

import numpy as np
import rscan as rs
from models import Model


class RichardsInfiltration(Model):
    """Rain soaks into a column of soil (Richards' equation, Celia's modified Picard iteration, van Genuchten's soil), and the gradient of the
    misfit to moisture sensors by the soil's three parameters."""

    kind = "kiln"
    dtype = "float64"
    size = dict(steps=48, cells=40, picard=4)
    small = dict(steps=3, cells=6, picard=2)
    rtol = 1e-7

    def make(self, random, steps, cells, picard):
        rain = 0.4 * random.uniform(size=steps) * (random.uniform(size=steps) < 0.6)
        h0 = -100.0 + 30.0 * np.linspace(0, 1, cells)
        sensors = np.linspace(1, cells - 2, 4).astype(np.int64)
        observed = 0.2 + 0.05 * random.normal(size=(steps, 4))
        p = np.log([1.0, 0.036, 0.56])
        return p, h0, rain, sensors, observed

    def rscan(self, steps, cells, picard):
        dt, dz, wet, dry = 0.25, 2.5, 0.43, 0.078

        @rs.compile
        def misfit(p, h0, rain, sensors, observed):
            ks, alpha, n = rs.exp(p[0]), rs.exp(p[1]), 1 + rs.exp(p[2])
            m = 1 - 1 / n

            def soil(h):
                s = -alpha * rs.minimum(h, -1e-3)
                se = (1 + s**n) ** -m
                theta = dry + (wet - dry) * se
                capacity = (wet - dry) * alpha * m * n * s ** (n - 1) * (1 + s**n) ** (-m - 1)
                k = ks * rs.sqrt(se) * (1 - (1 - se ** (1 / m)) ** m) ** 2
                return theta, capacity, k

            def thomas(lower, diagonal, upper, right):
                def down(a, b, c, d, cp, dp):
                    pivot = b - a * cp
                    return dict(cp=c / pivot, dp=(d - a * dp) / pivot)

                out = rs.loop(down, over=dict(a=lower, b=diagonal, c=upper, d=right), init=dict(cp=0.0, dp=0.0))
                return rs.loop(lambda c, d, x: d - c * x, over=[out.cp, out.dp], init=0.0, reverse=True)[:]

            def hour(rain, h):
                before, _, _ = soil(h)

                def iteration(h):
                    theta, capacity, k = soil(h)
                    face = 0.5 * (k[1:] + k[:-1])
                    flux = face * ((h[:-1] - h[1:]) / dz + 1)
                    into = rs.concatenate([rs.reshape(rain, (1,)), flux])
                    out = rs.concatenate([flux, k[-1:]])
                    right = (into - out) / dz - (theta - before) / dt
                    lower = rs.concatenate([rs.zeros(1), -face / dz**2])
                    upper = rs.concatenate([-face / dz**2, rs.zeros(1)])
                    return h + thomas(lower, capacity / dt - lower - upper, upper, right)

                h = rs.loop(iteration, init=h, n_steps=picard).last
                return dict(h=h, moisture=soil(h)[0][sensors])

            out = rs.loop(hour, over=dict(rain=rain), init=dict(h=h0))
            return rs.sum((out.moisture - observed) ** 2)

        return rs.value_and_grad(misfit)

    def jax(self, steps, cells, picard):
        import jax
        import jax.numpy as jnp
        from jax import lax

        dt, dz, wet, dry = 0.25, 2.5, 0.43, 0.078

        def misfit(p, h0, rain, sensors, observed):
            ks, alpha, n = jnp.exp(p[0]), jnp.exp(p[1]), 1 + jnp.exp(p[2])
            m = 1 - 1 / n

            def soil(h):
                s = -alpha * jnp.minimum(h, -1e-3)
                se = (1 + s**n) ** -m
                theta = dry + (wet - dry) * se
                capacity = (wet - dry) * alpha * m * n * s ** (n - 1) * (1 + s**n) ** (-m - 1)
                k = ks * jnp.sqrt(se) * (1 - (1 - se ** (1 / m)) ** m) ** 2
                return theta, capacity, k

            def thomas(lower, diagonal, upper, right):
                def down(carry, row):
                    cp, dp = carry
                    a, b, c, d = row
                    pivot = b - a * cp
                    new = c / pivot, (d - a * dp) / pivot
                    return new, new

                _, (cp, dp) = lax.scan(down, (0.0, 0.0), (lower, diagonal, upper, right))

                def up(x, row):
                    x = row[1] - row[0] * x
                    return x, x

                return lax.scan(up, 0.0, (cp, dp), reverse=True)[1]

            def hour(h, rain):
                before, _, _ = soil(h)

                def iteration(h, _):
                    theta, capacity, k = soil(h)
                    face = 0.5 * (k[1:] + k[:-1])
                    flux = face * ((h[:-1] - h[1:]) / dz + 1)
                    into = jnp.concatenate([rain[None], flux])
                    out = jnp.concatenate([flux, k[-1:]])
                    right = (into - out) / dz - (theta - before) / dt
                    lower = jnp.concatenate([jnp.zeros(1), -face / dz**2])
                    upper = jnp.concatenate([-face / dz**2, jnp.zeros(1)])
                    return h + thomas(lower, capacity / dt - lower - upper, upper, right), None

                h, _ = lax.scan(iteration, h, None, length=picard)
                return h, soil(h)[0][sensors]

            return jnp.sum((lax.scan(hour, h0, rain)[1] - observed) ** 2)

        return jax.jit(jax.value_and_grad(misfit))


class HungarianShortestPaths(Model):
    """The cheapest assignment of workers to jobs by shortest augmenting paths and potentials: a search and a walk back for each worker."""

    kind = "kiln"
    dtype = "int64"
    size = dict(n=40)
    small = dict(n=5)

    def make(self, random, n):
        return (random.integers(1, 1000, size=(n, n)),)

    def rscan(self, n):
        big = 10**12

        @rs.compile
        def assigned(cost):
            def worker(i, u, v, owner):
                owner = owner.at[0].set(i)

                def search(u, v, least, way, used, j0):
                    used = used.at[j0].set(True)
                    i0 = owner[j0]
                    reduced = cost[i0 - 1] - u[i0] - v[1:]
                    reduced = rs.concatenate([rs.full(1, big), reduced])
                    better = ~used & (reduced < least)
                    least = rs.where(better, reduced, least)
                    way = rs.where(better, j0, way)
                    open_ = rs.where(used, big, least)
                    j1 = rs.argmin(open_)
                    delta = open_[j1]
                    u = u.at[owner].add(rs.where(used, delta, 0))
                    v = v - rs.where(used, delta, 0)
                    least = rs.where(used, least, least - delta)
                    return dict(u=u, v=v, least=least, way=way, used=used, j0=j1), rs.until(owner[j1] == 0)

                start = dict(
                    u=u, v=v, least=rs.full(n + 1, big), way=rs.zeros(n + 1, dtype="int64"), used=rs.zeros(n + 1, dtype=bool), j0=0
                )
                found = rs.loop(search, init=start).last

                def back(owner, j0):
                    j1 = found.way[j0]
                    return dict(owner=owner.at[j0].set(owner[j1]), j0=j1), rs.until(j1 == 0)

                owner = rs.loop(back, init=dict(owner=owner, j0=found.j0)).last.owner
                return dict(u=found.u, v=found.v, owner=owner)

            zeros = rs.zeros(n + 1, dtype="int64")
            last = rs.loop(worker, over=dict(i=rs.arange(1, n + 1)), init=dict(u=zeros, v=zeros, owner=zeros)).last
            return last.owner[1:], -last.v[0]

        return assigned

    def jax(self, n):
        import jax
        import jax.numpy as jnp
        from jax import lax

        big = 10**12

        def assigned(cost):
            def worker(carry, i):
                u, v, owner = carry
                owner = owner.at[0].set(i)

                def search(s):
                    u, v, least, way, used, j0 = s
                    used = used.at[j0].set(True)
                    i0 = owner[j0]
                    reduced = jnp.concatenate([jnp.full(1, big), cost[i0 - 1] - u[i0] - v[1:]])
                    better = ~used & (reduced < least)
                    least = jnp.where(better, reduced, least)
                    way = jnp.where(better, j0, way)
                    open_ = jnp.where(used, big, least)
                    j1 = jnp.argmin(open_)
                    delta = open_[j1]
                    u = u.at[owner].add(jnp.where(used, delta, 0))
                    v = v - jnp.where(used, delta, 0)
                    least = jnp.where(used, least, least - delta)
                    return u, v, least, way, used, j1

                # The dummy column 0 is owned by the worker himself: the search begins there.
                start = u, v, jnp.full(n + 1, big), jnp.zeros(n + 1, jnp.int64), jnp.zeros(n + 1, bool), jnp.int64(0)
                u, v, _, way, _, j0 = lax.while_loop(lambda s: owner[s[5]] != 0, search, start)

                def back(s):
                    owner, j0 = s
                    j1 = way[j0]
                    return owner.at[j0].set(owner[j1]), j1

                owner, _ = lax.while_loop(lambda s: s[1] != 0, back, (owner, j0))
                return (u, v, owner), None

            zeros = jnp.zeros(n + 1, jnp.int64)
            (_, v, owner), _ = lax.scan(worker, (zeros, zeros, zeros), jnp.arange(1, n + 1))
            return owner[1:], -v[0]

        return jax.jit(assigned)


class VariationalCircuit(Model):
    """The energy of an Ising chain after a circuit of rotations and CNOTs, gate by gate on the vector of amplitudes, and its gradient by
    all angles."""

    kind = "kiln"
    dtype = "float64"
    size = dict(qubits=9, layers=4)
    small = dict(qubits=3, layers=1)

    def make(self, random, qubits, layers):
        gate, target, control = [], [], []
        for _ in range(layers):
            for kind in (0, 1):
                gate += [kind] * qubits
                target += list(range(qubits))
                control += [0] * qubits
            gate += [2] * qubits
            control += list(range(qubits))
            target += [(q + 1) % qubits for q in range(qubits)]
        angles = random.normal(size=len(gate))
        z = 1 - 2 * ((np.arange(2**qubits)[:, None] >> np.arange(qubits)) & 1)
        diagonal = -np.sum(z * np.roll(z, 1, axis=1), axis=1).astype(float)
        return angles, np.array(gate), np.array(target), np.array(control), diagonal, 0.8

    def rscan(self, qubits, layers):
        n = 2**qubits

        @rs.compile
        def energy(angles, gate, target, control, diagonal, field):
            places = rs.arange(n)

            def apply(angle, gate, target, control, re, im):
                partner = places ^ (1 << target)
                bit = (places >> target) & 1
                c, s = rs.cos(angle / 2), rs.sin(angle / 2)
                sign = rs.where(bit == 1, 1.0, -1.0)
                flip = ((places >> control) & 1) == 1
                new_re = rs.choose(gate, [c * re + sign * s * re[partner], c * re - sign * s * im, rs.where(flip, re[partner], re)])
                new_im = rs.choose(gate, [c * im + sign * s * im[partner], c * im + sign * s * re, rs.where(flip, im[partner], im)])
                return dict(re=new_re, im=new_im)

            over = dict(angle=angles, gate=gate, target=target, control=control)
            last = rs.loop(apply, over=over, init=dict(re=rs.zeros(n).at[0].set(1.0), im=rs.zeros(n))).last

            def transverse(q):
                partner = places ^ (1 << q)
                return rs.sum(last.re * last.re[partner] + last.im * last.im[partner])

            return rs.sum(diagonal * (last.re**2 + last.im**2)) - field * rs.sum(rs.vmap(transverse)(rs.arange(qubits)))

        return rs.value_and_grad(energy)

    def jax(self, qubits, layers):
        import jax
        import jax.numpy as jnp
        from jax import lax

        n = 2**qubits

        def energy(angles, gate, target, control, diagonal, field):
            places = jnp.arange(n)

            def apply(state, row):
                angle, gate, target, control = row
                partner = places ^ (1 << target)
                c, s = jnp.cos(angle / 2), jnp.sin(angle / 2)
                sign = jnp.where((places >> target) & 1 == 1, 1.0, -1.0)

                def ry(re, im):
                    return c * re + sign * s * re[partner], c * im + sign * s * im[partner]

                def rz(re, im):
                    return c * re - sign * s * im, c * im + sign * s * re

                def cnot(re, im):
                    flip = (places >> control) & 1 == 1
                    return jnp.where(flip, re[partner], re), jnp.where(flip, im[partner], im)

                return lax.switch(gate, [ry, rz, cnot], *state), None

            start = jnp.zeros(n).at[0].set(1.0), jnp.zeros(n)
            (re, im), _ = lax.scan(apply, start, (angles, gate, target, control))

            def transverse(q):
                partner = places ^ (1 << q)
                return jnp.sum(re * re[partner] + im * im[partner])

            return jnp.sum(diagonal * (re**2 + im**2)) - field * jnp.sum(jax.vmap(transverse)(jnp.arange(qubits)))

        return jax.jit(jax.value_and_grad(energy))


class PaethUnfilter(Model):
    """The rows of a PNG of three bytes a pixel are freed of their filters: none, left, up, average, Paeth."""

    kind = "kiln"
    dtype = "uint8"
    size = dict(height=48, width=64)
    small = dict(height=6, width=4)

    def make(self, random, height, width):
        filters = random.integers(0, 5, size=height).astype(np.uint8)
        return filters, random.integers(0, 256, size=(height, width, 3)).astype(np.uint8)

    def rscan(self, height, width):
        @rs.compile
        def unfiltered(filters, rows):
            def line(kind, row, above):
                beyond = rs.concatenate([rs.zeros((1, 3), dtype="uint8"), above[:-1]])

                def pixel(x, up, corner, left):
                    a, b, c = rs.cast(left, "int32"), rs.cast(up, "int32"), rs.cast(corner, "int32")
                    p = a + b - c
                    pa, pb, pc = rs.abs(p - a), rs.abs(p - b), rs.abs(p - c)
                    paeth = rs.where((pa <= pb) & (pa <= pc), a, rs.where(pb <= pc, b, c))
                    guess = rs.choose(kind, [rs.zeros_like(a), a, b, (a + b) // 2, paeth])
                    return dict(left=x + rs.cast(guess, "uint8"))

                out = rs.loop(pixel, over=dict(x=row, up=above, corner=beyond), init=dict(left=rs.zeros(3, dtype="uint8")))
                return dict(above=out.left)

            return rs.loop(line, over=dict(kind=filters, row=rows), init=dict(above=rs.zeros((width, 3), dtype="uint8"))).above

        return unfiltered

    def jax(self, height, width):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def unfiltered(filters, rows):
            def line(above, row):
                kind, row = row
                beyond = jnp.concatenate([jnp.zeros((1, 3), jnp.uint8), above[:-1]])

                def pixel(left, row):
                    x, up, corner = row
                    a, b, c = left.astype(jnp.int32), up.astype(jnp.int32), corner.astype(jnp.int32)
                    p = a + b - c
                    pa, pb, pc = jnp.abs(p - a), jnp.abs(p - b), jnp.abs(p - c)
                    paeth = jnp.where((pa <= pb) & (pa <= pc), a, jnp.where(pb <= pc, b, c))
                    guess = jnp.choose(kind, [jnp.zeros_like(a), a, b, (a + b) // 2, paeth], mode="clip")
                    left = x + guess.astype(jnp.uint8)
                    return left, left

                _, line = lax.scan(pixel, jnp.zeros(3, jnp.uint8), (row, above, beyond))
                return line, line

            return lax.scan(line, jnp.zeros((width, 3), jnp.uint8), (filters, rows))[1]

        return jax.jit(unfiltered)


class SplattedTile(Model):
    """A tile of an image is blended of Gaussians, nearest first, until nothing shines through; the gradient of the misfit by all that
    describes them."""

    kind = "kiln"
    dtype = "float32"
    size = dict(splats=60, side=16)
    small = dict(splats=5, side=3)

    def make(self, random, splats, side):
        f = np.float32
        mean = random.uniform(0, side, size=(splats, 2)).astype(f)
        scale = random.normal(1.0, 0.3, size=(splats, 2)).astype(f)
        angle = random.uniform(0, 3, size=splats).astype(f)
        colour = random.normal(size=(splats, 3)).astype(f)
        opacity = random.normal(0.0, 1.0, size=splats).astype(f)
        depth = random.uniform(1, 10, size=splats).astype(f)
        target = random.uniform(size=(side * side, 3)).astype(f)
        return mean, scale, angle, colour, opacity, depth, target

    def rscan(self, splats, side):
        y, x = np.mgrid[:side, :side].astype(np.float32)
        px, py = x.ravel() + np.float32(0.5), y.ravel() + np.float32(0.5)

        @rs.compile
        def misfit(mean, scale, angle, colour, opacity, depth, target):
            order = rs.argsort(depth)

            def splat(i, light, image):
                dx, dy = px - mean[i, 0], py - mean[i, 1]
                c, s = rs.cos(angle[i]), rs.sin(angle[i])
                u = (c * dx + s * dy) * rs.exp(-scale[i, 0])
                v = (c * dy - s * dx) * rs.exp(-scale[i, 1])
                alpha = rs.minimum(0.99, rs.sigmoid(opacity[i]) * rs.exp(-0.5 * (u**2 + v**2)))
                alpha = rs.where(alpha < 1 / 255, 0.0, alpha)
                left = light * (1 - alpha)
                seen = left > 1e-4
                weight = rs.where(seen, alpha * light, 0.0)
                return dict(light=rs.where(seen, left, light), image=image + weight[:, None] * rs.sigmoid(colour[i]))

            n = side * side
            init = dict(light=rs.ones(n, dtype="float32"), image=rs.zeros((n, 3), dtype="float32"))
            last = rs.loop(splat, over=dict(i=order), init=init).last
            return rs.mean((last.image + 0.2 * last.light[:, None] - target) ** 2)

        return rs.value_and_grad(misfit, argnums=(0, 1, 2, 3, 4))

    def jax(self, splats, side):
        import jax
        import jax.numpy as jnp
        from jax import lax

        y, x = np.mgrid[:side, :side].astype(np.float32)
        px, py = x.ravel() + np.float32(0.5), y.ravel() + np.float32(0.5)

        def misfit(mean, scale, angle, colour, opacity, depth, target):
            order = jnp.argsort(depth)

            def splat(carry, row):
                light, image = carry
                mean, scale, angle, colour, opacity = row
                dx, dy = px - mean[0], py - mean[1]
                c, s = jnp.cos(angle), jnp.sin(angle)
                u = (c * dx + s * dy) * jnp.exp(-scale[0])
                v = (c * dy - s * dx) * jnp.exp(-scale[1])
                alpha = jnp.minimum(0.99, jax.nn.sigmoid(opacity) * jnp.exp(-0.5 * (u**2 + v**2)))
                alpha = jnp.where(alpha < 1 / 255, 0.0, alpha)
                left = light * (1 - alpha)
                seen = left > 1e-4
                weight = jnp.where(seen, alpha * light, 0.0)
                return (jnp.where(seen, left, light), image + weight[:, None] * jax.nn.sigmoid(colour)), None

            n = side * side
            start = jnp.ones(n, jnp.float32), jnp.zeros((n, 3), jnp.float32)
            sorted_ = mean[order], scale[order], angle[order], colour[order], opacity[order]
            (light, image), _ = lax.scan(splat, start, sorted_)
            return jnp.mean((image + 0.2 * light[:, None] - target) ** 2)

        return jax.jit(jax.value_and_grad(misfit, argnums=(0, 1, 2, 3, 4)))


class RestrictedHartreeFock(Model):
    """The self-consistent field of a ring of hydrogen atoms, two Gaussians each, damped, until the energy stays."""

    kind = "kiln"
    dtype = "float64"
    size = dict(atoms=6)
    small = dict(atoms=2)

    def make(self, random, atoms):
        from scipy.special import erf

        turn = 2 * np.pi * np.arange(atoms) / atoms
        radius = 1.8 / (2 * np.sin(np.pi / atoms))
        nuclei = radius * np.stack([np.cos(turn), np.sin(turn), 0 * turn], axis=1) + 0.05 * random.normal(size=(atoms, 3))
        place = np.repeat(nuclei, 2, axis=0)
        a = np.tile([0.25, 1.2], atoms)

        def boys(t):
            t = np.maximum(t, 1e-12)
            return 0.5 * np.sqrt(np.pi / t) * erf(np.sqrt(t))

        norm = (2 * a / np.pi) ** 0.75
        p = a[:, None] + a
        mu = a[:, None] * a / p
        r2 = np.sum((place[:, None] - place) ** 2, axis=-1)
        k = norm[:, None] * norm * np.exp(-mu * r2)
        centre = (a[:, None, None] * place[:, None] + a[None, :, None] * place[None]) / p[..., None]
        overlap = k * (np.pi / p) ** 1.5
        kinetic = mu * (3 - 2 * mu * r2) * overlap
        away = np.sum((centre[:, :, None] - nuclei) ** 2, axis=-1)
        attraction = -np.sum(2 * np.pi / p[..., None] * k[..., None] * boys(p[..., None] * away), axis=-1)
        q = p[:, :, None, None]
        s = p[None, None]
        apart = np.sum((centre[:, :, None, None] - centre[None, None]) ** 2, axis=-1)
        repulsion = 2 * np.pi**2.5 / (q * s * np.sqrt(q + s)) * k[:, :, None, None] * k[None, None] * boys(q * s / (q + s) * apart)
        return overlap, kinetic + attraction, repulsion

    def rscan(self, atoms):
        occupied = atoms // 2

        @rs.compile
        def field(overlap, core, repulsion):
            w, v = rs.linalg.eigh(overlap)
            x = (v / rs.sqrt(w)) @ v.T

            def iteration(density, energy):
                coulomb = rs.einsum("pqrs,rs->pq", repulsion, density)
                exchange = rs.einsum("prqs,rs->pq", repulsion, density)
                fock = core + coulomb - 0.5 * exchange
                new_energy = 0.5 * rs.sum(density * (core + fock))
                levels, c = rs.linalg.eigh(x @ fock @ x)
                filled = (x @ c)[:, :occupied]
                new = 0.7 * 2 * filled @ filled.T + 0.3 * density
                return dict(density=new, energy=new_energy, levels=levels), rs.until(rs.abs(new_energy - energy) < 1e-9)

            n = core.shape[0]
            out = rs.loop(iteration, init=dict(density=rs.zeros((n, n)), energy=np.inf), n_steps=100)
            return out.last.energy, out.last.density, out.levels[-1], out.steps

        return field

    def jax(self, atoms):
        import jax
        import jax.numpy as jnp
        from jax import lax

        occupied = atoms // 2

        def field(overlap, core, repulsion):
            w, v = jnp.linalg.eigh(overlap)
            x = (v / jnp.sqrt(w)) @ v.T

            def iteration(s):
                density, energy, _, _, step = s
                coulomb = jnp.einsum("pqrs,rs->pq", repulsion, density)
                exchange = jnp.einsum("prqs,rs->pq", repulsion, density)
                fock = core + coulomb - 0.5 * exchange
                new_energy = 0.5 * jnp.sum(density * (core + fock))
                levels, c = jnp.linalg.eigh(x @ fock @ x)
                filled = (x @ c)[:, :occupied]
                new = 0.7 * 2 * filled @ filled.T + 0.3 * density
                return new, new_energy, levels, jnp.abs(new_energy - energy) < 1e-9, step + 1

            n = core.shape[0]
            start = jnp.zeros((n, n)), jnp.inf, jnp.zeros(n), False, 0
            density, energy, levels, _, steps = lax.while_loop(lambda s: ~s[3] & (s[4] < 100), iteration, start)
            return energy, density, levels, steps

        return jax.jit(field)


class SkipGramNegatives(Model):
    """An epoch of word2vec over pairs of words, one after the other, with negative samples and a falling rate."""

    kind = "kiln"
    dtype = "float32"
    size = dict(pairs=2000, words=400, width=32, negatives=5)
    small = dict(pairs=6, words=5, width=3, negatives=2)

    def make(self, random, pairs, words, width, negatives):
        rank = 1 / (1 + np.arange(words))
        draw = lambda shape: random.choice(words, size=shape, p=rank / rank.sum()).astype(np.int32)
        tables = random.uniform(-0.5, 0.5, size=(2, words, width)).astype(np.float32) / width**0.5
        return tables[0], tables[1], draw(pairs), draw(pairs), draw((pairs, negatives))

    def rscan(self, pairs, words, width, negatives):
        @rs.compile
        def epoch(inner, outer, centre, context, others):
            label = rs.zeros(1 + negatives, dtype="float32").at[0].set(1.0)
            rates = rs.linspace(0.1, 0.001, pairs, dtype="float32")

            def pair(centre, context, others, rate, inner, outer):
                rows = rs.concatenate([rs.reshape(context, (1,)), others])
                v, u = inner[centre], outer[rows]
                score = u @ v
                loss = -rs.sum(rs.log_sigmoid(rs.where(label == 1, score, -score)))
                g = rate * (rs.sigmoid(score) - label)
                return dict(inner=inner.at[centre].add(-(g @ u)), outer=outer.at[rows].add(-g[:, None] * v), loss=loss)

            over = dict(centre=centre, context=context, others=others, rate=rates)
            out = rs.loop(pair, over=over, init=dict(inner=inner, outer=outer))
            return out.last.inner, out.last.outer, rs.mean(out.loss)

        return epoch

    def jax(self, pairs, words, width, negatives):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def epoch(inner, outer, centre, context, others):
            label = jnp.zeros(1 + negatives, jnp.float32).at[0].set(1.0)
            rates = jnp.linspace(0.1, 0.001, pairs, dtype=jnp.float32)

            def pair(carry, row):
                inner, outer = carry
                centre, context, others, rate = row
                rows = jnp.concatenate([context[None], others])
                v, u = inner[centre], outer[rows]
                score = u @ v
                loss = -jnp.sum(jax.nn.log_sigmoid(jnp.where(label == 1, score, -score)))
                g = rate * (jax.nn.sigmoid(score) - label)
                return (inner.at[centre].add(-(g @ u)), outer.at[rows].add(-g[:, None] * v)), loss

            (inner, outer), loss = lax.scan(pair, (inner, outer), (centre, context, others, rates))
            return inner, outer, jnp.mean(loss)

        return jax.jit(epoch)
