"""Models from more trades: automata, sketches, seasons of an epidemic, colourings, images, lenses, pipes."""

import numpy as np
import rscan as rs
from models import Model


class AutomatonPartition(Model):
    """Moore's minimisation of a finite automaton: blocks are split until their number stays; a sort and a search in each step."""

    kind = "delta"
    dtype = "int64"
    size = dict(half=40)
    small = dict(half=4)

    def make(self, random, half):
        i = np.arange(half)
        one = np.stack([np.minimum(i + 1, half - 1), i // 2, np.maximum(i - 1, 0)], axis=1)
        names = random.permutation(2 * half)
        both = np.concatenate([one + half, one])  # two copies, which go over into each other
        table = np.empty((2 * half, 3), "int64")
        table[names] = names[both]
        accept = np.zeros(2 * half, bool)
        accept[names[[half - 1, 2 * half - 1]]] = True
        return table, accept

    def rscan(self, half):
        n = 2 * half

        @rs.compile
        def minimise(table, accept):
            def step(block, blocks):
                after = block[table]
                signature = ((block * n + after[:, 0]) * n + after[:, 1]) * n + after[:, 2]
                kinds = rs.unique(signature, size=n, fill_value=n**4)
                new = rs.searchsorted(kinds, signature)
                count = rs.max(new) + 1
                return (new, count), rs.until(count == blocks)

            out = rs.loop(step, init=(rs.cast(accept, "int64"), 2), n_steps=n)
            block, blocks = out.last
            return block, blocks, out.steps

        return minimise

    def jax(self, half):
        import jax, jax.numpy as jnp
        from jax import lax

        n = 2 * half

        def minimise(table, accept):
            def body(v):
                block, blocks, before, steps = v
                after = block[table]
                signature = ((block * n + after[:, 0]) * n + after[:, 1]) * n + after[:, 2]
                kinds = jnp.unique(signature, size=n, fill_value=n**4)
                new = jnp.searchsorted(kinds, signature).astype(jnp.int64)
                return new, jnp.max(new) + 1, blocks, steps + 1

            init = (accept.astype(jnp.int64), jnp.int64(2), jnp.int64(0), jnp.int64(0))
            block, blocks, _, steps = lax.while_loop(lambda v: (v[1] != v[2]) & (v[3] < n), body, init)
            return block, blocks, steps

        return jax.jit(minimise)


class FrequentDirectionsSketch(Model):
    """Liberty's sketch of a stream of rows: a singular value decomposition and a shrinkage per block."""

    kind = "delta"
    dtype = "float64"
    size = dict(blocks=40, kept=8, columns=24)
    small = dict(blocks=3, kept=2, columns=5)
    rtol = 1e-7

    def make(self, random, blocks, kept, columns):
        scales = 0.8 ** np.arange(columns)
        return (random.normal(size=(blocks, kept, columns)) * scales,)

    def rscan(self, blocks, kept, columns):
        @rs.compile
        def sketched(rows):
            def step(block, sketch, shrunk, seen):
                u, s, v = rs.linalg.svd(rs.concatenate([sketch, block], axis=0))
                floor = s[kept] ** 2
                sketch = rs.sqrt(rs.maximum(s[:kept] ** 2 - floor, 0.0))[:, None] * v[:kept]
                return dict(sketch=sketch, shrunk=shrunk + floor, seen=seen + rs.sum(block**2), rank=rs.sum(s > 0.5))

            init = dict(sketch=rs.zeros((kept, columns)), shrunk=0.0, seen=0.0)
            out = rs.loop(step, over=dict(block=rows), init=init)
            b = out.last.sketch
            return b.T @ b, out.shrunk, out.last.seen, out.rank

        return sketched

    def jax(self, blocks, kept, columns):
        import jax, jax.numpy as jnp
        from jax import lax

        def sketched(rows):
            def step(carry, block):
                sketch, shrunk, seen = carry
                u, s, v = jnp.linalg.svd(jnp.concatenate([sketch, block], axis=0), full_matrices=False)
                floor = s[kept] ** 2
                sketch = jnp.sqrt(jnp.maximum(s[:kept] ** 2 - floor, 0.0))[:, None] * v[:kept]
                carry = sketch, shrunk + floor, seen + jnp.sum(block**2)
                return carry, (carry[1], jnp.sum(s > 0.5))

            init = (jnp.zeros((kept, columns)), jnp.float64(0), jnp.float64(0))
            (b, _, seen), (shrunk, rank) = lax.scan(step, init, rows)
            return b.T @ b, shrunk, seen, rank

        return jax.jit(sketched)


class VaccineSeasons(Model):
    """Seasons of weeks of fixed-point iterations (implicit Euler): loops three deep, the innermost until it converges, for many parameters at once."""

    kind = "delta"
    dtype = "float64"
    size = dict(draws=32, seasons=8, weeks=25)
    small = dict(draws=3, seasons=2, weeks=4)

    def make(self, random, draws, seasons, weeks):
        return random.uniform(1.2, 2.5, draws), random.uniform(0.1, 0.5, draws), random.uniform(0.0, 0.4, seasons)

    def rscan(self, draws, seasons, weeks):
        def history(beta, waning, doses):
            def season(dose, s, i):
                def week(t, s, i):
                    forced = beta * (1 + 0.2 * rs.cos(2 * np.pi * t / weeks))

                    def again(new):
                        susceptible = s / (1 + 0.5 * forced * new)
                        better = (i + 0.5 * forced * susceptible * new) / 1.5
                        return better, rs.until(rs.abs(better - new) < 1e-10)

                    found = rs.loop(again, init=i, n_steps=60)
                    new = found.last
                    return dict(s=s / (1 + 0.5 * forced * new), i=new, rounds=found.steps)

                out = rs.loop(week, over=dict(t=rs.arange(weeks)), init=dict(s=s, i=i))
                s, i = out.last.s, out.last.i
                immune = 1 - s - i
                s = (s + waning * immune) * (1 - dose)
                return dict(s=s, i=i + 1e-4, peak=rs.max(out.i), week=rs.argmax(out.i), rounds=rs.sum(out.rounds))

            out = rs.loop(season, over=dict(dose=doses), init=dict(s=0.99, i=0.01))
            return out.peak, out.week, out.s, rs.sum(out.rounds)

        return rs.compile(rs.vmap(history, (0, 0, None)))

    def jax(self, draws, seasons, weeks):
        import jax, jax.numpy as jnp
        from jax import lax

        def history(beta, waning, doses):
            def season(carry, dose):
                def week(carry, t):
                    s, i = carry
                    forced = beta * (1 + 0.2 * jnp.cos(2 * np.pi * t / weeks))

                    def body(v):
                        new, _, n = v
                        susceptible = s / (1 + 0.5 * forced * new)
                        better = (i + 0.5 * forced * susceptible * new) / 1.5
                        return better, jnp.abs(better - new), n + 1

                    new, _, n = lax.while_loop(lambda v: (v[1] >= 1e-10) & (v[2] < 60), body, (i, jnp.inf, 0))
                    return (s / (1 + 0.5 * forced * new), new), (new, n)

                (s, i), (rows, rounds) = lax.scan(week, carry, jnp.arange(weeks))
                immune = 1 - s - i
                s = (s + waning * immune) * (1 - dose)
                return (s, i + 1e-4), (jnp.max(rows), jnp.argmax(rows), s, jnp.sum(rounds))

            _, (peak, week, s, rounds) = lax.scan(season, (0.99, 0.01), doses)
            return peak, week, s, jnp.sum(rounds)

        return jax.jit(jax.vmap(history, (0, 0, None)))


class SaturationColouring(Model):
    """Brélaz's colouring of a graph (register allocation): a boolean matrix of vertices and colours, reduced over either axis in each step."""

    kind = "delta"
    dtype = "int32"
    size = dict(vertices=120, colours=40)
    small = dict(vertices=8, colours=8)

    def make(self, random, vertices, colours):
        a = np.triu(random.uniform(size=(vertices, vertices)) < 0.25, 1)
        return (a | a.T,)

    def rscan(self, vertices, colours):
        @rs.compile
        def coloured(adjacent):
            degree = rs.sum(adjacent, axis=1)

            def step(colour, taken):
                saturation = rs.sum(taken, axis=1)
                v = rs.argmax(rs.where(colour < 0, saturation * vertices + degree, -1))
                c = rs.argmin(taken[v])
                colour = colour.at[v].set(rs.cast(c, "int32"))
                taken = taken.at[:, c].set(taken[:, c] | adjacent[v])
                return dict(
                    colour=colour,
                    taken=taken,
                    used=rs.sum(rs.any(taken, axis=0)),
                    blocked=rs.sum(rs.all(taken[:, :3], axis=1)),
                    order=v,
                )

            init = dict(colour=rs.full(vertices, -1, dtype="int32"), taken=rs.zeros((vertices, colours), dtype="bool"))
            out = rs.loop(step, init=init, n_steps=vertices)
            return out.last.colour, out.used, out.blocked, out.order

        return coloured

    def jax(self, vertices, colours):
        import jax, jax.numpy as jnp
        from jax import lax

        def coloured(adjacent):
            degree = jnp.sum(adjacent, axis=1)

            def step(carry, _):
                colour, taken = carry
                saturation = jnp.sum(taken, axis=1)
                v = jnp.argmax(jnp.where(colour < 0, saturation * vertices + degree, -1))
                c = jnp.argmin(taken[v])
                colour = colour.at[v].set(c.astype(jnp.int32))
                taken = taken.at[:, c].set(taken[:, c] | adjacent[v])
                used = jnp.sum(jnp.any(taken, axis=0))
                blocked = jnp.sum(jnp.all(taken[:, :3], axis=1))
                return (colour, taken), (used, blocked, v)

            init = (jnp.full(vertices, -1, jnp.int32), jnp.zeros((vertices, colours), bool))
            (colour, _), (used, blocked, order) = lax.scan(step, init, None, length=vertices)
            return colour, used, blocked, order

        return jax.jit(coloured)


class PrimalDualWeights(Model):
    """Chambolle and Pock's denoising by total variation, unrolled: the gradient of its error by weights of rows and columns and the step lengths."""

    kind = "delta"
    dtype = "float32"
    size = dict(side=40, steps=40)
    small = dict(side=6, steps=3)

    def make(self, random, side, steps):
        clean = np.zeros((side, side), "float32")
        clean[side // 4 : side // 2, side // 3 :] = 1
        noisy = (clean + 0.2 * random.normal(size=clean.shape)).astype("float32")
        p = dict(
            across=np.full(side, -2.0, "float32"), down=np.full(side, -2.2, "float32"), lengths=np.array([-1.2, -1.1], "float32")
        )
        return p, noisy, clean

    def rscan(self, side, steps):
        @rs.compile
        def loss(p, noisy, clean):
            tau, sigma = rs.exp(p["lengths"][0]), rs.exp(p["lengths"][1])
            limit = rs.exp(p["down"])[:, None] + rs.exp(p["across"])[None, :]

            def step(x, bar, px, py):
                px = px + sigma * rs.pad(bar[1:, :] - bar[:-1, :], ((0, 1), (0, 0)))
                py = py + sigma * rs.pad(bar[:, 1:] - bar[:, :-1], ((0, 0), (0, 1)))
                shrink = rs.maximum(1.0, rs.sqrt(px**2 + py**2 + 1e-6) / limit)
                px, py = px / shrink, py / shrink
                div = px - rs.pad(px[:-1, :], ((1, 0), (0, 0))) + py - rs.pad(py[:, :-1], ((0, 0), (1, 0)))
                new = (x + tau * div + tau * noisy) / (1.0 + tau)
                return new, 2 * new - x, px, py

            zero = rs.zeros_like(noisy)
            x = rs.loop(step, init=(noisy, noisy, zero, zero), n_steps=steps).last[0]
            return rs.mean((x - clean) ** 2)

        return rs.value_and_grad(loss)

    def jax(self, side, steps):
        import jax, jax.numpy as jnp
        from jax import lax

        def loss(p, noisy, clean):
            tau, sigma = jnp.exp(p["lengths"][0]), jnp.exp(p["lengths"][1])
            limit = jnp.exp(p["down"])[:, None] + jnp.exp(p["across"])[None, :]

            def step(carry, _):
                x, bar, px, py = carry
                px = px + sigma * jnp.pad(bar[1:, :] - bar[:-1, :], ((0, 1), (0, 0)))
                py = py + sigma * jnp.pad(bar[:, 1:] - bar[:, :-1], ((0, 0), (0, 1)))
                shrink = jnp.maximum(1.0, jnp.sqrt(px**2 + py**2 + 1e-6) / limit)
                px, py = px / shrink, py / shrink
                div = px - jnp.pad(px[:-1, :], ((1, 0), (0, 0))) + py - jnp.pad(py[:, :-1], ((0, 0), (1, 0)))
                new = (x + tau * div + tau * noisy) / (1.0 + tau)
                return (new, 2 * new - x, px, py), None

            zero = jnp.zeros_like(noisy)
            x = lax.scan(step, (noisy, noisy, zero, zero), None, length=steps)[0][0]
            return jnp.mean((x - clean) ** 2)

        return jax.jit(jax.value_and_grad(loss))


class LensStackSpot(Model):
    """Rays through a stack of aspheric surfaces, met by Newton's method, at three wavelengths: the gradient of the spot by the prescription."""

    kind = "delta"
    dtype = "float64"
    size = dict(surfaces=8, rays=64)
    small = dict(surfaces=2, rays=4)
    rtol = 1e-7

    def make(self, random, surfaces, rays):
        p = dict(
            curve=np.where(np.arange(surfaces) % 2 == 0, 0.02, -0.015) * random.uniform(0.8, 1.2, surfaces),
            conic=random.normal(size=surfaces) * 0.1,
            fourth=random.normal(size=surfaces) * 1e-6,
            gap=np.where(np.arange(surfaces) % 2 == 0, 4.0, 2.0),
        )
        glass = np.where(np.arange(surfaces) % 2 == 0, 1.52, 1.0)
        index = np.stack([np.where(glass > 1, glass + d, 1.0) for d in (-0.008, 0.0, 0.01)])
        return p, index, np.linspace(-6.0, 6.0, rays)

    def rscan(self, surfaces, rays):
        def spot(p, index, heights):
            def step(n, curve, conic, fourth, gap, y, z, dy, dz, before):
                def sag(y):
                    root = rs.sqrt(1 - (1 + conic) * curve**2 * y**2)
                    return curve * y**2 / (1 + root) + fourth * y**4, curve * y / root + 4 * fourth * y**3

                def newton(i, t):
                    height, slope = sag(y + t * dy)
                    return t - (z + t * dz - height) / (dz - slope * dy)

                t = rs.fori(0, 5, newton, -z / dz)
                y, z = y + t * dy, z + t * dz
                _, slope = sag(y)
                size = rs.sqrt(1 + slope**2)
                ny, nz = -slope / size, 1 / size
                ratio = before / n
                cosine = dy * ny + dz * nz
                bend = rs.sqrt(1 - ratio**2 * (1 - cosine**2)) - ratio * cosine
                return dict(y=y, z=z - gap, dy=ratio * dy + bend * ny, dz=ratio * dz + bend * nz, before=n)

            init = dict(y=heights, z=rs.full(rays, -1.0), dy=rs.full(rays, 0.02), dz=rs.full(rays, (1 - 0.02**2) ** 0.5), before=1.0)
            end = rs.loop(step, over=dict(n=index, **{k: p[k] for k in ("curve", "conic", "fourth", "gap")}), init=init).last
            return end.y + (60.0 - end.z) * end.dy / end.dz

        @rs.compile
        def loss(p, index, heights):
            y = rs.vmap(spot, (None, 0, None))(p, index, heights)
            return rs.mean((y - rs.mean(y)) ** 2)

        return rs.value_and_grad(loss)

    def jax(self, surfaces, rays):
        import jax, jax.numpy as jnp
        from jax import lax

        def spot(p, index, heights):
            def step(carry, row):
                y, z, dy, dz, before = carry
                n, curve, conic, fourth, gap = row

                def sag(y):
                    root = jnp.sqrt(1 - (1 + conic) * curve**2 * y**2)
                    return curve * y**2 / (1 + root) + fourth * y**4, curve * y / root + 4 * fourth * y**3

                def newton(i, t):
                    height, slope = sag(y + t * dy)
                    return t - (z + t * dz - height) / (dz - slope * dy)

                t = lax.fori_loop(0, 5, newton, -z / dz)
                y, z = y + t * dy, z + t * dz
                _, slope = sag(y)
                size = jnp.sqrt(1 + slope**2)
                ny, nz = -slope / size, 1 / size
                ratio = before / n
                cosine = dy * ny + dz * nz
                bend = jnp.sqrt(1 - ratio**2 * (1 - cosine**2)) - ratio * cosine
                return (y, z - gap, ratio * dy + bend * ny, ratio * dz + bend * nz, n), None

            init = (heights, jnp.full(rays, -1.0), jnp.full(rays, 0.02), jnp.full(rays, (1 - 0.02**2) ** 0.5), jnp.float64(1.0))
            (y, z, dy, dz, _), _ = lax.scan(step, init, (index, p["curve"], p["conic"], p["fourth"], p["gap"]))
            return y + (60.0 - z) * dy / dz

        def loss(p, index, heights):
            y = jax.vmap(spot, (None, 0, None))(p, index, heights)
            return jnp.mean((y - jnp.mean(y)) ** 2)

        return jax.jit(jax.value_and_grad(loss))


class PipeSurgeValve(Model):
    """Water hammer by the method of characteristics, with friction and a valve at the end: the gradient of the overpressure by the closing schedule."""

    kind = "delta"
    dtype = "float64"
    size = dict(nodes=80, steps=400)
    small = dict(nodes=6, steps=10)

    def make(self, random, nodes, steps):
        opening = np.maximum(1.0 - np.arange(steps) / (0.6 * steps), 0.02) + 0.005 * random.uniform(size=steps)
        return opening, 40.0, 0.5, 0.02

    def rscan(self, nodes, steps):
        @rs.compile
        def loss(opening, reservoir, start, friction):
            impedance, loss_of_reach = 120.0, 4.0 * friction

            def step(opening, head, flow):
                plus = head[:-1] + flow[:-1] * (impedance - loss_of_reach * rs.abs(flow[:-1]))
                minus = head[1:] - flow[1:] * (impedance - loss_of_reach * rs.abs(flow[1:]))
                inside = 0.5 * (plus[:-1] + minus[1:])
                moved = (plus[:-1] - minus[1:]) / (2 * impedance)
                first = (reservoir - minus[0]) / impedance
                c = (start * opening) ** 2 / (2 * reservoir)
                last = -impedance * c + rs.sqrt((impedance * c) ** 2 + 2 * c * rs.maximum(plus[-1], 0.0))
                head = rs.concatenate([rs.stack([reservoir]), inside, rs.stack([plus[-1] - impedance * last])])
                flow = rs.concatenate([rs.stack([first]), moved, rs.stack([last])])
                return dict(head=head, flow=flow, over=rs.sum(rs.maximum(head - 1.3 * reservoir, 0.0) ** 2))

            init = dict(head=rs.full(nodes, 1.0) * reservoir, flow=rs.full(nodes, 1.0) * start)
            out = rs.loop(step, over=dict(opening=opening), init=init)
            return rs.mean(out.over) + rs.max(out.head) + rs.sum(out.last.flow**2)

        return rs.value_and_grad(loss)

    def jax(self, nodes, steps):
        import jax, jax.numpy as jnp
        from jax import lax

        def loss(opening, reservoir, start, friction):
            impedance, loss_of_reach = 120.0, 4.0 * friction

            def step(carry, opening):
                head, flow = carry
                plus = head[:-1] + flow[:-1] * (impedance - loss_of_reach * jnp.abs(flow[:-1]))
                minus = head[1:] - flow[1:] * (impedance - loss_of_reach * jnp.abs(flow[1:]))
                inside = 0.5 * (plus[:-1] + minus[1:])
                moved = (plus[:-1] - minus[1:]) / (2 * impedance)
                first = (reservoir - minus[0]) / impedance
                c = (start * opening) ** 2 / (2 * reservoir)
                last = -impedance * c + jnp.sqrt((impedance * c) ** 2 + 2 * c * jnp.maximum(plus[-1], 0.0))
                head = jnp.concatenate([jnp.stack([reservoir]), inside, jnp.stack([plus[-1] - impedance * last])])
                flow = jnp.concatenate([jnp.stack([first]), moved, jnp.stack([last])])
                return (head, flow), (head, jnp.sum(jnp.maximum(head - 1.3 * reservoir, 0.0) ** 2))

            init = (jnp.full(nodes, 1.0) * reservoir, jnp.full(nodes, 1.0) * start)
            (_, flow), (heads, over) = lax.scan(step, init, opening)
            return jnp.mean(over) + jnp.max(heads) + jnp.sum(flow**2)

        return jax.jit(jax.value_and_grad(loss))
