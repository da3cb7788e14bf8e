"""Breadth: one loop of each of ten kinds, from ten fields."""

import math

import numpy as np

import rscan as rs
from models import Model

KIND = "breadth"


class AquiferDrawdown(Model):
    """A pumped aquifer on a grid: heads by explicit finite volumes, and the gradient of the misfit at the wells by the log-transmissivity of each cell.

    The left side has a fixed head, the right one leaks to a river, top and bottom let nothing through.
    """

    kind = KIND
    dtype = "float64"
    size = dict(rows=32, columns=40, steps=80)
    small = dict(rows=5, columns=7, steps=4)

    def make(self, random, rows, columns, steps):
        log_t = np.clip(0.5 * random.normal(size=(rows, columns)), -1.0, 1.0)
        wells = np.stack([random.integers(0, rows, 4), random.integers(1, columns, 4)])
        pumping = random.uniform(0.0, 2.0, (steps, 4))
        observed = 1.0 - 0.01 * np.cumsum(pumping, axis=0) / np.arange(1, steps + 1)[:, None]
        return log_t, wells, pumping, observed

    def rscan(self, rows, columns, steps):
        dt, river = 0.02, 0.8

        @rs.compile
        def loss(log_t, wells, pumping, observed):
            t = rs.exp(log_t)
            across = 2 * t[:, 1:] * t[:, :-1] / (t[:, 1:] + t[:, :-1])
            down = 2 * t[1:] * t[:-1] / (t[1:] + t[:-1])

            def step(pump, seen, h):
                qx = across * (h[:, 1:] - h[:, :-1])
                qy = down * (h[1:] - h[:-1])
                leak = t[:, -1:] * (river - h[:, -1:])
                change = rs.diff(rs.concatenate([rs.zeros((rows, 1)), qx, leak], axis=1), axis=1)
                change = change + rs.diff(rs.pad(qy, ((1, 1), (0, 0))), axis=0)
                h = h + dt * change
                h = h.at[wells[0], wells[1]].add(-dt * pump)
                h = h.at[:, 0].set(1.0)
                return dict(h=h, error=h[wells[0], wells[1]] - seen)

            out = rs.loop(step, over=dict(pump=pumping, seen=observed), init=dict(h=rs.ones((rows, columns))))
            return rs.mean(out.error**2) + 1e-3 * rs.mean(log_t**2)

        return rs.value_and_grad(loss)

    def jax(self, rows, columns, steps):
        import jax
        import jax.numpy as jnp

        dt, river = 0.02, 0.8

        def loss(log_t, wells, pumping, observed):
            t = jnp.exp(log_t)
            across = 2 * t[:, 1:] * t[:, :-1] / (t[:, 1:] + t[:, :-1])
            down = 2 * t[1:] * t[:-1] / (t[1:] + t[:-1])

            def step(h, x):
                pump, seen = x
                qx = across * (h[:, 1:] - h[:, :-1])
                qy = down * (h[1:] - h[:-1])
                leak = t[:, -1:] * (river - h[:, -1:])
                change = jnp.diff(jnp.concatenate([jnp.zeros((rows, 1)), qx, leak], axis=1), axis=1)
                change = change + jnp.diff(jnp.pad(qy, ((1, 1), (0, 0))), axis=0)
                h = h + dt * change
                h = h.at[wells[0], wells[1]].add(-dt * pump)
                h = h.at[:, 0].set(1.0)
                return h, h[wells[0], wells[1]] - seen

            _, error = jax.lax.scan(step, jnp.ones((rows, columns)), (pumping, observed))
            return jnp.mean(error**2) + 1e-3 * jnp.mean(log_t**2)

        return jax.jit(jax.value_and_grad(loss))


class LocalAlignment(Model):
    """Smith and Waterman's local alignment of two sequences of nucleotides, a row at a time, and the way back along the pointers."""

    kind = KIND
    dtype = "int32"
    size = dict(query=150, target=260)
    small = dict(query=9, target=14)

    def make(self, random, query, target):
        b = random.integers(0, 4, target).astype("int32")
        start = (target - query) // 2
        a = b[start : start + query].copy()
        changed = random.random(query) < 0.12
        a[changed] = random.integers(0, 4, int(changed.sum()))
        keep = np.delete(a, query // 3)
        a = np.insert(keep, query // 2, 3).astype("int32")
        scores = np.full((4, 4), -3, "int32") + np.eye(4, dtype="int32") * 8 + random.integers(0, 2, (4, 4)).astype("int32")
        return a, b, scores

    def rscan(self, query, target):
        gap = 4
        longest = query + target

        @rs.compile
        def align(a, b, scores):
            j = gap * rs.arange(target, dtype="int32")

            def row(letter, h):
                diagonal = rs.roll(h, 1).at[0].set(0) + scores[letter, b]
                best = rs.maximum(rs.maximum(diagonal, h - gap), 0)
                new = rs.cummax(best + j) - j
                pointer = rs.where(new == 0, 0, rs.where(new == diagonal, 1, rs.where(new == h - gap, 2, 3)))
                return dict(h=new, pointer=rs.cast(pointer, "int32"))

            out = rs.loop(row, over=dict(letter=a), init=dict(h=rs.zeros(target, dtype="int32")))
            table, pointers = out.h, out.pointer
            end = rs.argmax(table)

            def back(i, j, k, path):
                path = path.at[k].set(i * target + j)
                p = pointers[i, j]
                i, j = i - rs.where(p == 3, 0, 1), j - rs.where(p == 2, 0, 1)
                done = (i < 0) | (j < 0) | (pointers[rs.maximum(i, 0), rs.maximum(j, 0)] == 0)
                return dict(i=i, j=j, k=k + 1, path=path), rs.until(done)

            walk = rs.loop(
                back,
                init=dict(i=end // target, j=end % target, k=0, path=rs.full(longest, -1, dtype="int64")),
                n_steps=longest,
            ).last
            return rs.max(table), walk.k, walk.path

        return align

    def jax(self, query, target):
        import jax
        import jax.numpy as jnp

        gap = 4
        longest = query + target

        def align(a, b, scores):
            j = gap * jnp.arange(target, dtype=jnp.int32)

            def row(above, letter):
                diagonal = jnp.roll(above, 1).at[0].set(0) + scores[letter, b]
                best = jnp.maximum(jnp.maximum(diagonal, above - gap), 0)
                h = jax.lax.cummax(best + j) - j
                pointer = jnp.where(h == 0, 0, jnp.where(h == diagonal, 1, jnp.where(h == above - gap, 2, 3)))
                return h, (h, pointer.astype(jnp.int32))

            _, (table, pointers) = jax.lax.scan(row, jnp.zeros(target, jnp.int32), a)
            end = jnp.argmax(table)

            def more(state):
                i, j, k, path = state
                return (i >= 0) & (j >= 0) & (pointers[jnp.maximum(i, 0), jnp.maximum(j, 0)] != 0) & (k < longest)

            def back(state):
                i, j, k, path = state
                path = path.at[k].set(i * target + j)
                p = pointers[i, j]
                return i - jnp.where(p == 3, 0, 1), j - jnp.where(p == 2, 0, 1), k + 1, path

            start = end // target, end % target, jnp.int64(0), jnp.full(longest, -1, jnp.int64)
            _, _, k, path = jax.lax.while_loop(more, back, start)
            return jnp.max(table), k, path

        return jax.jit(align)


class TerrainNavigation(Model):
    """An aircraft finds its way over a known terrain by its altimeter: a particle filter with systematic resampling at every step."""

    kind = KIND
    dtype = "float32"
    size = dict(steps=80, particles=800, cells=200)
    small = dict(steps=12, particles=400, cells=40)

    def make(self, random, steps, particles, cells):
        terrain = np.cumsum(random.normal(size=cells)).astype("f4")
        moves = random.uniform(0.3, 0.7, steps) * cells / (1.5 * steps)
        truth = cells / 4 + np.cumsum(moves + 0.05 * random.normal(size=steps))
        seen = np.interp(truth, np.arange(cells), terrain) + 0.3 * random.normal(size=steps)
        return 7, terrain, moves.astype("f4"), seen.astype("f4")

    def rscan(self, steps, particles, cells):
        @rs.compile
        def track(seed, terrain, moves, seen):
            key = rs.random.fold_in(rs.random.key(0), seed)
            grid = rs.arange(cells, dtype="float32")
            places = rs.arange(particles, dtype="float32")

            def step(t, move, z, x):
                here = rs.random.fold_in(key, t)
                walk, draw = rs.random.split(here)
                x = x + move + 0.1 * rs.random.normal(walk, particles, dtype="float32")
                logw = -0.5 * ((z - rs.interp(x, grid, terrain)) / 0.3) ** 2
                evidence = rs.logsumexp(logw)
                w = rs.exp(logw - evidence)
                estimate = rs.sum(w * x)
                u = (places + rs.random.uniform(draw, dtype="float32")) / particles
                chosen = rs.minimum(rs.searchsorted(rs.cumsum(w), u), particles - 1)
                return dict(x=x[chosen], estimate=estimate, evidence=evidence - math.log(particles))

            start = rs.linspace(cells / 4 - 3, cells / 4 + 3, particles, dtype="float32")
            out = rs.loop(step, over=dict(t=rs.arange(steps), move=moves, z=seen), init=dict(x=start))
            return out.estimate, rs.sum(out.evidence)

        return track

    def jax(self, steps, particles, cells):
        import jax
        import jax.numpy as jnp

        def track(seed, terrain, moves, seen):
            key = jax.random.key(seed)
            grid = jnp.arange(cells, dtype=jnp.float32)
            places = jnp.arange(particles, dtype=jnp.float32)

            def step(x, row):
                t, move, z = row
                walk, draw = jax.random.split(jax.random.fold_in(key, t))
                x = x + move + 0.1 * jax.random.normal(walk, (particles,), jnp.float32)
                logw = -0.5 * ((z - jnp.interp(x, grid, terrain)) / 0.3) ** 2
                evidence = jax.scipy.special.logsumexp(logw)
                w = jnp.exp(logw - evidence)
                estimate = jnp.sum(w * x)
                u = (places + jax.random.uniform(draw, dtype=jnp.float32)) / particles
                chosen = jnp.minimum(jnp.searchsorted(jnp.cumsum(w), u), particles - 1)
                return x[chosen], (estimate, evidence - math.log(particles))

            start = jnp.linspace(cells / 4 - 3, cells / 4 + 3, particles, dtype=jnp.float32)
            _, (estimate, evidence) = jax.lax.scan(step, start, (jnp.arange(steps), moves, seen))
            return estimate, jnp.sum(evidence)

        return jax.jit(track)

    def same(self, ours, theirs):
        assert [a.shape for a in ours] == [b.shape for b in theirs]
        assert [a.dtype for a in ours] == [b.dtype for b in theirs], f"{[a.dtype for a in ours]} and {[b.dtype for b in theirs]}"
        assert np.all(np.isfinite(ours[0])) and np.isfinite(ours[1])
        assert np.mean(np.abs(ours[0] - theirs[0])) < 0.15, np.mean(np.abs(ours[0] - theirs[0]))
        assert abs(ours[1] - theirs[1]) < 0.1 * abs(theirs[1]) + 1.0, (ours[1], theirs[1])


class SnowRunoff(Model):
    """A conceptual model of snow, soil and two reservoirs for each of many catchments, and the gradient of each one's misfit by its parameters."""

    kind = KIND
    dtype = "float32"
    size = dict(catchments=48, days=365)
    small = dict(catchments=3, days=12)
    rtol = 1e-3

    def make(self, random, catchments, days):
        def among(low, high):
            return random.uniform(low, high, catchments).astype("f4")

        p = dict(
            melt=among(2, 5),
            threshold=among(-1, 1),
            field=among(100, 300),
            beta=among(1, 3),
            drain=among(0.5, 2),
            quick=among(0.1, 0.4),
            slow=among(0.01, 0.05),
        )
        season = 8.0 + 12.0 * np.sin(2 * np.pi * (np.arange(days) - 100) / 365)
        temperature = (season - random.uniform(0, 6, (catchments, 1)) + 3 * random.normal(size=(catchments, days))).astype("f4")
        rain = (random.exponential(8.0, (catchments, days)) * (random.random((catchments, days)) < 0.4)).astype("f4")
        demand = np.maximum(0.15 * temperature, 0.1).astype("f4")
        flow = random.gamma(2.0, 1.0, (catchments, days)).astype("f4")
        return p, temperature, rain, demand, flow

    def rscan(self, catchments, days):
        def loss(p, temperature, rain, demand, flow):
            def step(t, fall, pet, q, snow, soil, upper, lower):
                warm = t > p["threshold"]
                liquid = rs.where(warm, fall, 0.0)
                snow = snow + fall - liquid
                melt = rs.minimum(snow, p["melt"] * rs.maximum(t - p["threshold"], 0))
                snow = snow - melt
                inflow = liquid + melt
                recharge = inflow * (soil / p["field"]) ** p["beta"]
                soil = soil + inflow - recharge
                excess = rs.maximum(soil - p["field"], 0)
                soil = soil - excess
                soil = rs.maximum(soil - pet * rs.minimum(soil / (0.7 * p["field"]), 1), 0.1)
                upper = upper + recharge + excess
                down = rs.minimum(upper, p["drain"])
                upper = upper - down
                quick = p["quick"] * upper
                lower = lower + down
                slow = p["slow"] * lower
                error = rs.sqrt(quick + slow + 0.01) - rs.sqrt(q + 0.01)
                return dict(snow=snow, soil=soil, upper=upper - quick, lower=lower - slow, error=error)

            out = rs.loop(
                step,
                over=dict(t=temperature, fall=rain, pet=demand, q=flow),
                init=dict(
                    snow=rs.zeros_like(p["field"]),
                    soil=0.5 * p["field"],
                    upper=rs.zeros_like(p["field"]),
                    lower=20 * rs.ones_like(p["field"]),
                ),
            )
            return rs.mean(out.error**2)

        return rs.compile(rs.vmap(rs.value_and_grad(loss)))

    def jax(self, catchments, days):
        import jax
        import jax.numpy as jnp

        def loss(p, temperature, rain, demand, flow):
            def step(state, row):
                snow, soil, upper, lower = state
                t, fall, pet, q = row
                warm = t > p["threshold"]
                liquid = jnp.where(warm, fall, 0.0)
                snow = snow + fall - liquid
                melt = jnp.minimum(snow, p["melt"] * jnp.maximum(t - p["threshold"], 0))
                snow = snow - melt
                inflow = liquid + melt
                recharge = inflow * (soil / p["field"]) ** p["beta"]
                soil = soil + inflow - recharge
                excess = jnp.maximum(soil - p["field"], 0)
                soil = soil - excess
                soil = jnp.maximum(soil - pet * jnp.minimum(soil / (0.7 * p["field"]), 1), 0.1)
                upper = upper + recharge + excess
                down = jnp.minimum(upper, p["drain"])
                upper = upper - down
                quick = p["quick"] * upper
                lower = lower + down
                slow = p["slow"] * lower
                error = jnp.sqrt(quick + slow + 0.01) - jnp.sqrt(q + 0.01)
                return (snow, soil, upper - quick, lower - slow), error

            zero = jnp.zeros_like(p["field"])
            start = zero, 0.5 * p["field"], zero, 20 * jnp.ones_like(p["field"])
            _, error = jax.lax.scan(step, start, (temperature, rain, demand, flow))
            return jnp.mean(error**2)

        return jax.jit(jax.vmap(jax.value_and_grad(loss)))


class RingRoadTraffic(Model):
    """Nagel and Schreckenberg's cars on a ring road with a traffic light: integers and booleans alone, all cars at once."""

    kind = KIND
    dtype = "int32"
    size = dict(cars=250, cells=1200, steps=400)
    small = dict(cars=6, cells=30, steps=15)

    def make(self, random, cars, cells, steps):
        position = np.sort(random.choice(cells, cars, replace=False)).astype("int32")
        slow = random.random((steps, cars)) < 0.2
        red = np.arange(steps) % 40 < 15
        return position, slow, red, 5

    def rscan(self, cars, cells, steps):
        light = cells // 2

        @rs.compile
        def drive(position, slow, red, fastest):
            def step(brake, stop, x, v):
                gap = (rs.roll(x, -1) - x - 1) % cells
                before = (light - x - 1) % cells
                gap = rs.where(stop, rs.minimum(gap, before), gap)
                v = rs.minimum(rs.minimum(v + 1, fastest), gap)
                v = rs.where(brake & (v > 0), v - 1, v)
                v = rs.cast(v, "int32")
                passed = rs.sum(before < v, dtype="int32")
                x = (x + v) % cells
                jammed = rs.any((v == 0) & (rs.roll(v, 1) == 0))
                return dict(x=x, v=v, passed=passed, standing=rs.sum(v == 0, dtype="int32"), jammed=jammed)

            out = rs.loop(step, over=dict(brake=slow, stop=red), init=dict(x=position, v=rs.zeros(cars, dtype="int32")))
            return out.passed, out.standing, out.jammed, out.last.x, out.last.v

        return drive

    def jax(self, cars, cells, steps):
        import jax
        import jax.numpy as jnp

        light = cells // 2

        def drive(position, slow, red, fastest):
            def step(state, row):
                x, v = state
                brake, stop = row
                gap = (jnp.roll(x, -1) - x - 1) % cells
                before = (light - x - 1) % cells
                gap = jnp.where(stop, jnp.minimum(gap, before), gap)
                v = jnp.minimum(jnp.minimum(v + 1, fastest), gap)
                v = jnp.where(brake & (v > 0), v - 1, v)
                v = v.astype(jnp.int32)
                passed = jnp.sum(before < v, dtype=jnp.int32)
                x = (x + v) % cells
                jammed = jnp.any((v == 0) & (jnp.roll(v, 1) == 0))
                return (x, v), (passed, jnp.sum(v == 0, dtype=jnp.int32), jammed)

            (x, v), (passed, standing, jammed) = jax.lax.scan(step, (position, jnp.zeros(cars, jnp.int32)), (slow, red))
            return passed, standing, jammed, x, v

        return jax.jit(drive)


class TangentFrameLorenz(Model):
    """The leading Lyapunov exponents of Lorenz's model of 1996: the state and a frame of tangents by Runge and Kutta, the frame made orthonormal by QR at each step."""

    kind = KIND
    dtype = "float64"
    size = dict(n=20, k=8, steps=150)
    small = dict(n=6, k=3, steps=5)
    rtol = 1e-6

    def make(self, random, n, k, steps):
        x = 8.0 + random.normal(size=n)
        frame, _ = np.linalg.qr(random.normal(size=(n, k)))
        return x, frame, 8.0, 0.02

    def rscan(self, n, k, steps):
        @rs.compile
        def spectrum(x, frame, force, dt):
            def field(x, q):
                up, back, far = rs.roll(x, -1), rs.roll(x, 1), rs.roll(x, 2)
                dx = (up - far) * back - x + force
                dq = (rs.roll(q, -1, axis=0) - rs.roll(q, 2, axis=0)) * back[:, None] + (up - far)[:, None] * rs.roll(q, 1, axis=0) - q
                return dx, dq

            def step(x, q):
                a, b = field(x, q)
                c, d = field(x + dt / 2 * a, q + dt / 2 * b)
                e, f = field(x + dt / 2 * c, q + dt / 2 * d)
                g, h = field(x + dt * e, q + dt * f)
                x = x + dt / 6 * (a + 2 * c + 2 * e + g)
                q, r = rs.linalg.qr(q + dt / 6 * (b + 2 * d + 2 * f + h))
                return dict(x=x, q=q, growth=rs.log(rs.abs(rs.diagonal(r))))

            out = rs.loop(step, init=dict(x=x, q=frame), n_steps=steps)
            return rs.sum(out.growth, axis=0) / (steps * dt), out.last.x

        return spectrum

    def jax(self, n, k, steps):
        import jax
        import jax.numpy as jnp

        def spectrum(x, frame, force, dt):
            def field(x, q):
                up, back, far = jnp.roll(x, -1), jnp.roll(x, 1), jnp.roll(x, 2)
                dx = (up - far) * back - x + force
                dq = (jnp.roll(q, -1, axis=0) - jnp.roll(q, 2, axis=0)) * back[:, None] + (up - far)[:, None] * jnp.roll(q, 1, axis=0) - q
                return dx, dq

            def step(state, _):
                x, q = state
                a, b = field(x, q)
                c, d = field(x + dt / 2 * a, q + dt / 2 * b)
                e, f = field(x + dt / 2 * c, q + dt / 2 * d)
                g, h = field(x + dt * e, q + dt * f)
                x = x + dt / 6 * (a + 2 * c + 2 * e + g)
                q, r = jnp.linalg.qr(q + dt / 6 * (b + 2 * d + 2 * f + h))
                return (x, q), jnp.log(jnp.abs(jnp.diagonal(r)))

            (x, _), growth = jax.lax.scan(step, (x, frame), None, length=steps)
            return jnp.sum(growth, axis=0) / (steps * dt), x

        return jax.jit(spectrum)


class SparseGaussSeidel(Model):
    """Gauss and Seidel's iteration for a sparse system in compressed rows: sweeps until it rests, rows in a sweep, and the elements of a row."""

    kind = KIND
    dtype = "float64"
    size = dict(n=250)
    small = dict(n=8)
    atol = 1e-12  # the last change is about 1e-10

    def make(self, random, n):
        counts = random.integers(0, min(9, n), n)
        start = np.concatenate([[0], np.cumsum(counts)])
        column = np.concatenate([random.choice(np.delete(np.arange(n), i), c, replace=False) for i, c in enumerate(counts)]).astype("int64")
        value = random.normal(size=len(column))
        row = np.repeat(np.arange(n), counts)
        diagonal = 1.0 + 1.5 * np.bincount(row, np.abs(value), n)
        return start, column, value, diagonal, random.normal(size=n), 1e-9

    def rscan(self, n):
        @rs.compile
        def solve(start, column, value, diagonal, b, tolerance):
            def sweep(x, change):
                def row(i, x):
                    rest = rs.fori(start[i], start[i + 1], lambda k, rest: rest - value[k] * x[column[k]], b[i])
                    return x.at[i].set(rest / diagonal[i])

                new = rs.fori(0, n, row, x)
                change = rs.max(rs.abs(new - x))
                return dict(x=new, change=change), rs.until(change < tolerance)

            out = rs.loop(sweep, init=dict(x=rs.zeros(n), change=rs.inf), n_steps=100)
            return out.last.x, out.last.change, out.steps

        return solve

    def jax(self, n):
        import jax
        import jax.numpy as jnp

        def solve(start, column, value, diagonal, b, tolerance):
            def sweep(state):
                x, _, steps = state

                def row(i, x):
                    rest = jax.lax.fori_loop(start[i], start[i + 1], lambda k, rest: rest - value[k] * x[column[k]], b[i])
                    return x.at[i].set(rest / diagonal[i])

                new = jax.lax.fori_loop(0, n, row, x)
                return new, jnp.max(jnp.abs(new - x)), steps + 1

            return jax.lax.while_loop(
                lambda state: (state[1] >= tolerance) & (state[2] < 100), sweep, (jnp.zeros(n), jnp.inf, jnp.int64(0))
            )

        return jax.jit(solve)


class DelayLineString(Model):
    """Karplus and Strong's string with an allpass filter for its tuning and a short filter for its body: the gradient of the misfit to a recording.

    The delay line is written where it is read, the memory of the body is rolled.
    """

    kind = KIND
    dtype = "float32"
    size = dict(samples=2500, delay=90, taps=12)
    small = dict(samples=25, delay=7, taps=3)
    rtol = 1e-3

    def make(self, random, samples, delay, taps):
        p = np.array([0.995, 0.4, 0.2], "f4")
        body = (np.exp(-np.arange(taps) / 4) * random.normal(size=taps)).astype("f4")
        pluck = random.uniform(-1, 1, delay).astype("f4")
        recording = (np.sin(2 * np.pi * np.arange(samples) / (delay + 0.6)) * np.exp(-np.arange(samples) / 800)).astype("f4")
        return p, body, pluck, recording

    def rscan(self, samples, delay, taps):
        @rs.compile
        def misfit(p, body, pluck, recording):
            def step(t, heard, line, memory, before, tuned):
                i = t % delay
                out, following = line[i], line[(i + 1) % delay]
                soft = p[0] * ((1 - p[1]) * out + p[1] * following)
                tuned = p[2] * soft + before - p[2] * tuned
                line = line.at[i].set(tuned)
                memory = rs.roll(memory, 1).at[0].set(out)
                return dict(line=line, memory=memory, before=soft, tuned=tuned, error=rs.sum(body * memory) - heard)

            zero = rs.zeros((), dtype="float32")
            out = rs.loop(
                step,
                over=dict(t=rs.arange(samples), heard=recording),
                init=dict(line=pluck, memory=rs.zeros(taps, dtype="float32"), before=zero, tuned=zero),
            )
            return rs.mean(out.error**2)

        return rs.value_and_grad(misfit, argnums=(0, 1, 2))

    def jax(self, samples, delay, taps):
        import jax
        import jax.numpy as jnp

        def misfit(p, body, pluck, recording):
            def step(state, row):
                line, memory, before, tuned = state
                t, heard = row
                i = t % delay
                out, following = line[i], line[(i + 1) % delay]
                soft = p[0] * ((1 - p[1]) * out + p[1] * following)
                tuned = p[2] * soft + before - p[2] * tuned
                line = line.at[i].set(tuned)
                memory = jnp.roll(memory, 1).at[0].set(out)
                return (line, memory, soft, tuned), jnp.sum(body * memory) - heard

            zero = jnp.float32(0)
            _, error = jax.lax.scan(step, (pluck, jnp.zeros(taps, jnp.float32), zero, zero), (jnp.arange(samples), recording))
            return jnp.mean(error**2)

        return jax.jit(jax.value_and_grad(misfit, argnums=(0, 1, 2)))


class ManyServersQueue(Model):
    """Kiefer and Wolfowitz's workloads of a queue with several servers, sorted at each arrival: the cost of waiting and its slopes by speed and traffic."""

    kind = KIND
    dtype = "float64"
    size = dict(customers=1500, servers=6)
    small = dict(customers=12, servers=3)

    def make(self, random, customers, servers):
        gaps = random.exponential(1.0, customers)
        services = random.gamma(2.0, 0.5, customers) * servers
        return np.array([0.9, 1.0]), gaps, services

    def rscan(self, customers, servers):
        @rs.compile
        def cost(theta, gaps, services):
            def step(gap, service, work):
                wait = work[0]
                work = rs.sort(work.at[0].add(theta[0] * service))
                late = rs.maximum(wait - 2.0, 0.0) ** 2
                return dict(work=rs.maximum(work - theta[1] * gap, 0.0), wait=wait, late=late)

            out = rs.loop(step, over=dict(gap=gaps, service=services), init=dict(work=rs.zeros(servers)))
            return rs.mean(out.wait) + 0.1 * rs.mean(out.late) + 0.2 / theta[0]

        return rs.value_and_grad(cost)

    def jax(self, customers, servers):
        import jax
        import jax.numpy as jnp

        def cost(theta, gaps, services):
            def step(work, row):
                gap, service = row
                wait = work[0]
                work = jnp.sort(work.at[0].add(theta[0] * service))
                late = jnp.maximum(wait - 2.0, 0.0) ** 2
                return jnp.maximum(work - theta[1] * gap, 0.0), (wait, late)

            _, (wait, late) = jax.lax.scan(step, jnp.zeros(servers), (gaps, services))
            return jnp.mean(wait) + 0.1 * jnp.mean(late) + 0.2 / theta[0]

        return jax.jit(jax.value_and_grad(cost))


class OptimalDesign(Model):
    """A D-optimal design of an experiment: projected gradients on the simplex of the weights, with a line search by halving in each step."""

    kind = KIND
    dtype = "float64"
    size = dict(points=40, terms=5, iterations=25)
    small = dict(points=8, terms=2, iterations=3)

    def make(self, random, points, terms, iterations):
        x = np.sort(random.uniform(-1, 1, points))
        features = np.stack([x**i for i in range(terms)], axis=1) * random.uniform(0.8, 1.2, (points, 1))
        return np.full(points, 1 / points), features

    def rscan(self, points, terms, iterations):
        def project(v):
            u = rs.sort(v, descending=True)
            excess = rs.cumsum(u) - 1
            count = rs.sum(u * rs.arange(1, points + 1) > excess)
            return rs.maximum(v - excess[count - 1] / count, 0)

        @rs.compile
        def design(w, features):
            def objective(w):
                return -rs.linalg.slogdet(features.T @ (w[:, None] * features))[1]

            def iterate(w, rate):
                value, slope = rs.value_and_grad(objective)(w)

                def halve(rate, new):
                    rate = rate / 2
                    new = project(w - rate * slope)
                    moved = new - w
                    bound = value + rs.dot(slope, moved) + rs.dot(moved, moved) / (2 * rate)
                    return dict(rate=rate, new=new), rs.until(objective(new) <= bound)

                found = rs.loop(halve, init=dict(rate=4 * rate, new=w), n_steps=30).last
                return dict(w=found.new, rate=found.rate, value=value)

            out = rs.loop(iterate, init=dict(w=w, rate=0.1), n_steps=iterations)
            return out.last.w, out.value

        return design

    def jax(self, points, terms, iterations):
        import jax
        import jax.numpy as jnp

        def project(v):
            u = jnp.sort(v, descending=True)
            excess = jnp.cumsum(u) - 1
            count = jnp.sum(u * jnp.arange(1, points + 1) > excess)
            return jnp.maximum(v - excess[count - 1] / count, 0)

        def design(w, features):
            def objective(w):
                return -jnp.linalg.slogdet(features.T @ (w[:, None] * features))[1]

            def iterate(state, _):
                w, rate = state
                value, slope = jax.value_and_grad(objective)(w)

                def halve(state):
                    rate, new, done, k = state
                    rate = rate / 2
                    new = project(w - rate * slope)
                    moved = new - w
                    bound = value + jnp.dot(slope, moved) + jnp.dot(moved, moved) / (2 * rate)
                    return rate, new, objective(new) <= bound, k + 1

                rate, new, _, _ = jax.lax.while_loop(lambda s: ~s[2] & (s[3] < 30), halve, (4 * rate, w, jnp.array(False), 0))
                return (new, rate), value

            (w, _), value = jax.lax.scan(iterate, (w, jnp.float64(0.1)), None, length=iterations)
            return w, value

        return jax.jit(design)
