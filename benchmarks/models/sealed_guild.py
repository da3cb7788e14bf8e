"""Programs of seven trades, each as its own user writes it."""

import numpy as np

import rscan as rs
from models import Model


class TroughSubsteps(Model):
    """A Michaelis-Menten drug level between visits: as many Runge-Kutta steps as the gap between two visits takes; the fit's loss and slope."""

    kind = "guild"
    dtype = "float64"
    size = dict(visits=120, most=24)
    small = dict(visits=5, most=6)

    def make(self, random, visits, most):
        gaps = random.uniform(0.3, most * 0.25 - 0.01, size=visits)
        doses = random.uniform(2.0, 8.0, size=visits) * (random.uniform(size=visits) < 0.8)
        seen = np.log(random.uniform(0.5, 6.0, size=visits))
        return np.log(np.array([2.0, 3.0, 10.0, 0.4])), gaps, doses, seen

    def rscan(self, visits, most):
        @rs.compile
        def loss(theta, gaps, doses, seen):
            vmax, km, volume, leak = rs.exp(theta[0]), rs.exp(theta[1]), rs.exp(theta[2]), rs.exp(theta[3])

            def slope(level, depot):
                return leak * depot / volume - vmax * level / (km + level) / volume, -leak * depot

            def visit(gap, dose, y, level, depot):
                n = rs.clip(rs.cast(rs.ceil(gap / 0.25), "int64"), 1, most)
                h = gap / n

                def rk4(c, d):
                    c1, d1 = slope(c, d)
                    c2, d2 = slope(c + 0.5 * h * c1, d + 0.5 * h * d1)
                    c3, d3 = slope(c + 0.5 * h * c2, d + 0.5 * h * d2)
                    c4, d4 = slope(c + h * c3, d + h * d3)
                    return dict(c=c + h / 6 * (c1 + 2 * c2 + 2 * c3 + c4), d=d + h / 6 * (d1 + 2 * d2 + 2 * d3 + d4))

                out = rs.loop(rk4, init=dict(c=level, d=depot + dose), n_steps=n)
                c, d = out.last.c, out.last.d
                return dict(level=c, depot=d, miss=(rs.log(c + 0.1) - y) ** 2)

            out = rs.loop(visit, over=dict(gap=gaps, dose=doses, y=seen), init=dict(level=1.0, depot=20.0))
            return rs.mean(out.miss)

        return rs.value_and_grad(loss)

    def jax(self, visits, most):
        import jax, jax.numpy as jnp

        def loss(theta, gaps, doses, seen):
            vmax, km, volume, leak = jnp.exp(theta)

            def slope(level, depot):
                return leak * depot / volume - vmax * level / (km + level) / volume, -leak * depot

            def visit(carry, row):
                gap, dose, y = row
                n = jnp.clip(jnp.ceil(gap / 0.25).astype(jnp.int64), 1, most)
                h = gap / n

                def rk4(state, k):
                    c, d = state
                    c1, d1 = slope(c, d)
                    c2, d2 = slope(c + 0.5 * h * c1, d + 0.5 * h * d1)
                    c3, d3 = slope(c + 0.5 * h * c2, d + 0.5 * h * d2)
                    c4, d4 = slope(c + h * c3, d + h * d3)
                    on = k < n
                    return (
                        jnp.where(on, c + h / 6 * (c1 + 2 * c2 + 2 * c3 + c4), c),
                        jnp.where(on, d + h / 6 * (d1 + 2 * d2 + 2 * d3 + d4), d),
                    ), None

                level, depot = carry
                (c, d), _ = jax.lax.scan(rk4, (level, depot + dose), jnp.arange(most))
                return (c, d), (jnp.log(c + 0.1) - y) ** 2

            return jnp.mean(jax.lax.scan(visit, (jnp.asarray(1.0), jnp.asarray(20.0)), (gaps, doses, seen))[1])

        return jax.jit(jax.value_and_grad(loss))


class EdgePreservingVolume(Model):
    """Perona and Malik's diffusion of a scanned volume, edges repeated; the misfit to a clean volume by contrast and rate of each sweep."""

    kind = "guild"
    dtype = "float32"
    size = dict(n=20, sweeps=12)
    small = dict(n=4, sweeps=2)

    def make(self, random, n, sweeps):
        z, y, x = np.meshgrid(*[np.linspace(-1, 1, n)] * 3, indexing="ij")
        clean = ((x**2 + y**2 + z**2) < 0.5).astype("f4") + 0.5 * (x > 0.3).astype("f4")
        noisy = (clean + 0.2 * random.normal(size=clean.shape)).astype("f4")
        p = {"contrast": np.full(sweeps, 0.5, "f4"), "rate": np.full(sweeps, 0.1, "f4")}
        return p, noisy, clean.astype("f4")

    def rscan(self, n, sweeps):
        def sweep(contrast, rate, v):
            p = rs.pad(v, 1, mode="edge")
            flow = 0
            for other in (
                p[2:, 1:-1, 1:-1],
                p[:-2, 1:-1, 1:-1],
                p[1:-1, 2:, 1:-1],
                p[1:-1, :-2, 1:-1],
                p[1:-1, 1:-1, 2:],
                p[1:-1, 1:-1, :-2],
            ):
                d = other - v
                flow = flow + d / (1 + (d / contrast) ** 2)
            return dict(v=v + rate * flow)

        @rs.compile
        def loss(p, noisy, clean):
            out = rs.loop(sweep, over=dict(contrast=p["contrast"], rate=p["rate"]), init=dict(v=noisy))
            return rs.mean((out.last.v - clean) ** 2)

        return rs.value_and_grad(loss)

    def jax(self, n, sweeps):
        import jax, jax.numpy as jnp

        def sweep(v, row):
            contrast, rate = row
            p = jnp.pad(v, 1, mode="edge")
            flow = 0
            for other in (
                p[2:, 1:-1, 1:-1],
                p[:-2, 1:-1, 1:-1],
                p[1:-1, 2:, 1:-1],
                p[1:-1, :-2, 1:-1],
                p[1:-1, 1:-1, 2:],
                p[1:-1, 1:-1, :-2],
            ):
                d = other - v
                flow = flow + d / (1 + (d / contrast) ** 2)
            return v + rate * flow, None

        def loss(p, noisy, clean):
            return jnp.mean((jax.lax.scan(sweep, noisy, (p["contrast"], p["rate"]))[0] - clean) ** 2)

        return jax.jit(jax.value_and_grad(loss))


class GammaShapeScores(Model):
    """Waiting times whose gamma shape follows its own score; the likelihood of rounded times (differences of gammainc) and a check of the tail."""

    kind = "guild"
    dtype = "float64"
    size = dict(steps=250)
    small = dict(steps=6)
    rtol = 1e-7

    def make(self, random, steps):
        shape = np.exp(0.8 + 0.4 * np.sin(np.arange(steps) / 15))
        waits = np.maximum(np.round(random.gamma(shape, 1.5) * 4) / 4, 0.25)
        return np.array([0.05, 0.9, 0.15, 0.4]), waits

    def rscan(self, steps):
        @rs.compile
        def nll(theta, waits):
            omega, persistence, gain, scale = theta[0], theta[1], theta[2], rs.exp(theta[3])

            def step(y, f):
                shape = rs.exp(f)
                high = rs.special.gammainc(shape, (y + 0.125) / scale)
                low = rs.special.gammainc(shape, (y - 0.125) / scale)
                score = shape * (rs.log(y / scale) - rs.special.digamma(shape))
                information = shape**2 * rs.special.polygamma(1, shape)
                return dict(f=omega + persistence * f + gain * score / rs.sqrt(information), loss=-rs.log(high - low))

            out = rs.loop(step, over=dict(y=waits), init=dict(f=omega / (1 - persistence)))
            return rs.sum(out.loss)

        return rs.value_and_grad(nll)

    def jax(self, steps):
        import jax, jax.numpy as jnp
        from jax.scipy.special import digamma, gammainc, polygamma

        def nll(theta, waits):
            omega, persistence, gain, scale = theta[0], theta[1], theta[2], jnp.exp(theta[3])

            def step(f, y):
                shape = jnp.exp(f)
                high, low = gammainc(shape, (y + 0.125) / scale), gammainc(shape, (y - 0.125) / scale)
                score = shape * (jnp.log(y / scale) - digamma(shape))
                information = shape**2 * polygamma(1, shape)
                return omega + persistence * f + gain * score / jnp.sqrt(information), -jnp.log(high - low)

            return jnp.sum(jax.lax.scan(step, omega / (1 - persistence), waits)[1])

        return jax.jit(jax.value_and_grad(nll))


class BoardMazeFlood(Model):
    """A maze of 64 columns whose rows are words of 64 bits: water from one corner spreads until it no longer does; how wet, and when each row got wet."""

    kind = "guild"
    dtype = "uint64"
    size = dict(rows=256)
    small = dict(rows=6)

    def make(self, random, rows):
        free = random.uniform(size=(rows, 64)) < 0.68
        free[0, 0] = True
        words = (free.astype(np.uint64) << np.arange(64, dtype=np.uint64)).sum(1, dtype=np.uint64)
        start = np.zeros(rows, np.uint64)
        start[0] = 1
        return words, start

    def rscan(self, rows):
        @rs.compile
        def flood(free, start):
            one = np.uint64(1)
            nothing = np.zeros(1, np.uint64)

            def spread(t, wet, first):
                up = rs.concatenate([wet[1:], nothing])
                down = rs.concatenate([nothing, wet[:-1]])
                new = (wet | (wet << one) | (wet >> one) | up | down) & free
                return dict(wet=new, first=rs.where((first < 0) & (new != 0), t, first)), rs.until(rs.all(new == wet))

            out = rs.loop(spread, over=dict(t=rs.arange(4000)), init=dict(wet=start, first=rs.full(start.shape, -1)))
            wet = out.last.wet
            bits = (wet[:, None] >> rs.arange(64, dtype="uint64")) & one
            return wet, out.last.first, out.steps, rs.sum(rs.cast(bits, "int64"), axis=1)

        return flood

    def jax(self, rows):
        import jax, jax.numpy as jnp

        def flood(free, start):
            one = jnp.uint64(1)
            nothing = jnp.zeros(1, jnp.uint64)

            def spread(carry):
                t, wet, first, _ = carry
                up = jnp.concatenate([wet[1:], nothing])
                down = jnp.concatenate([nothing, wet[:-1]])
                new = (wet | (wet << one) | (wet >> one) | up | down) & free
                return t + 1, new, jnp.where((first < 0) & (new != 0), t, first), jnp.all(new == wet)

            begin = (jnp.int64(0), start, jnp.full(start.shape, -1), jnp.bool_(False))
            steps, wet, first, _ = jax.lax.while_loop(lambda c: ~c[3] & (c[0] < 4000), spread, begin)
            return wet, first, steps, jnp.sum(((wet[:, None] >> jnp.arange(64, dtype=jnp.uint64)) & one).astype(jnp.int64), axis=1)

        return jax.jit(flood)


class SquareRootTracker(Model):
    """A square-root Kalman filter of a target in the plane, by QR of the array before each measurement; likelihood and slope by the logs of the noises."""

    kind = "guild"
    dtype = "float64"
    size = dict(steps=150)
    small = dict(steps=5)
    rtol = 1e-7

    def make(self, random, steps):
        path = np.cumsum(np.cumsum(0.1 * random.normal(size=(steps, 2)), 0), 0)
        return np.log(np.array([0.2, 0.7])), path + 0.5 * random.normal(size=(steps, 2))

    def rscan(self, steps):
        dt = 0.5
        F = np.kron(np.array([[1, dt], [0, 1]]), np.eye(2))
        G = np.kron(np.array([[dt**2 / 2], [dt]]), np.eye(2))
        H = np.kron(np.array([[1.0, 0.0]]), np.eye(2))

        @rs.compile
        def nll(theta, seen):
            q, r = rs.exp(theta[0]), rs.exp(theta[1])

            def step(z, x, S):
                S = rs.linalg.qr(rs.concatenate([S.T @ F.T, q * G.T]), mode="r").T
                x = F @ x
                before = rs.block([[r * rs.eye(2), rs.zeros((2, 4))], [S.T @ H.T, S.T]])
                after = rs.linalg.qr(before, mode="r").T
                root, gain = after[:2, :2], after[2:, :2]
                e = rs.linalg.solve_triangular(root, z - H @ x, lower=True)
                loss = 0.5 * rs.sum(e**2) + rs.sum(rs.log(rs.abs(rs.diag(root))))
                return dict(x=x + gain @ e, S=after[2:, 2:], loss=loss)

            out = rs.loop(step, over=dict(z=seen), init=dict(x=rs.zeros(4), S=3.0 * rs.eye(4)))
            return rs.sum(out.loss)

        return rs.value_and_grad(nll)

    def jax(self, steps):
        import jax, jax.numpy as jnp

        dt = 0.5
        F = np.kron(np.array([[1, dt], [0, 1]]), np.eye(2))
        G = np.kron(np.array([[dt**2 / 2], [dt]]), np.eye(2))
        H = np.kron(np.array([[1.0, 0.0]]), np.eye(2))

        def nll(theta, seen):
            q, r = jnp.exp(theta)

            def step(carry, z):
                x, S = carry
                S = jnp.linalg.qr(jnp.concatenate([S.T @ F.T, q * G.T]))[1].T
                x = F @ x
                before = jnp.block([[r * jnp.eye(2), jnp.zeros((2, 4))], [S.T @ H.T, S.T]])
                after = jnp.linalg.qr(before)[1].T
                root, gain = after[:2, :2], after[2:, :2]
                e = jax.scipy.linalg.solve_triangular(root, z - H @ x, lower=True)
                loss = 0.5 * jnp.sum(e**2) + jnp.sum(jnp.log(jnp.abs(jnp.diag(root))))
                return (x + gain @ e, after[2:, 2:]), loss

            return jnp.sum(jax.lax.scan(step, (jnp.zeros(4), 3.0 * jnp.eye(4)), seen)[1])

        return jax.jit(jax.value_and_grad(nll))


class ParagraphBreaks(Model):
    """Knuth's paragraph: the cheapest breaks of words into lines, each word's best line start kept, and the breaks read back from the end."""

    kind = "guild"
    dtype = "int64"
    size = dict(words=1500, most=24)
    small = dict(words=12, most=4)

    def make(self, random, words, most):
        return random.integers(1, 12, size=words), 66 if words > 100 else 20

    def rscan(self, words, most):
        @rs.compile
        def breaks(widths, line):
            ends = rs.concatenate([np.zeros(1, np.int64), rs.cumsum(widths + 1)])
            big = 10**12
            k = rs.arange(most)

            def word(j, best):
                start = j - most + k  # the line holds words start .. j - 1; best[start + most] is what comes before
                ok = start >= 0
                length = ends[j] - rs.where(ok, ends[rs.maximum(start, 0)], 0) - 1
                slack = line - length
                cost = rs.where(ok & (slack >= 0), rs.where(j == words, 0, slack**3), big)
                total = best[j + k] + cost
                i = rs.argmin(total)
                return dict(best=best.at[j + most].set(total[i]), back=start[i])

            begin = rs.full(words + most + 1, big).at[most].set(0)
            out = rs.loop(word, over=dict(j=rs.arange(1, words + 1)), init=dict(best=begin))
            back = out.back

            def read(at, marks):
                at = back[at - 1]
                return dict(at=at, marks=marks.at[at].set(1)), rs.until(at == 0)

            traced = rs.loop(read, init=dict(at=rs.constant(words), marks=rs.zeros(words, dtype="int64")), n_steps=words)
            return out.last.best[words + most], traced.last.marks, traced.steps

        return breaks

    def jax(self, words, most):
        import jax, jax.numpy as jnp

        def breaks(widths, line):
            ends = jnp.concatenate([jnp.zeros(1, jnp.int64), jnp.cumsum(widths + 1)])
            big = 10**12
            k = jnp.arange(most)

            def word(best, j):
                start = j - most + k
                ok = start >= 0
                length = ends[j] - jnp.where(ok, ends[jnp.maximum(start, 0)], 0) - 1
                slack = line - length
                cost = jnp.where(ok & (slack >= 0), jnp.where(j == words, 0, slack**3), big)
                total = jax.lax.dynamic_slice(best, (j,), (most,)) + cost
                i = jnp.argmin(total)
                return best.at[j + most].set(total[i]), start[i]

            begin = jnp.full(words + most + 1, big).at[most].set(0)
            best, back = jax.lax.scan(word, begin, jnp.arange(1, words + 1))

            def read(carry):
                at, marks, n = carry
                at = back[at - 1]
                return at, marks.at[at].set(1), n + 1

            _, marks, n = jax.lax.while_loop(lambda c: c[0] > 0, read, (jnp.int64(words), jnp.zeros(words, jnp.int64), jnp.int64(0)))
            return best[words + most], marks, n

        return jax.jit(breaks)


class SparePartsPanel(Model):
    """Intermittent demand of many parts with weeks not counted (NaN): chance and size of a demand are smoothed apart; loss summed in double, slope for each part."""

    kind = "guild"
    dtype = "float32"
    size = dict(parts=200, weeks=156)
    small = dict(parts=3, weeks=7)
    rtol = 2e-4  # the sum is double, its terms are not

    def make(self, random, parts, weeks):
        sold = random.poisson(3.0, size=(parts, weeks)) * (random.uniform(size=(parts, weeks)) < 0.3)
        sold = np.where(random.uniform(size=sold.shape) < 0.1, np.nan, sold).astype("f4")
        start = {"chance": np.full(parts, -2.0, "f4"), "size": np.full(parts, -1.5, "f4"), "season": np.zeros((parts, 2), "f4")}
        return start, sold

    def rscan(self, parts, weeks):
        def loss(p, sold):
            alpha, beta = rs.sigmoid(p["chance"]), rs.sigmoid(p["size"])

            def week(y, t, chance, size, total):
                counted = ~rs.isnan(y)
                y = rs.where(counted, y, 0)
                angle = rs.cast(2 * np.pi * t / 52, "float32")
                factor = rs.exp(p["season"][0] * rs.sin(angle) + p["season"][1] * rs.cos(angle))
                mean = chance * size * factor + 0.01
                term = rs.where(counted, mean - y * rs.log(mean), 0)
                some = rs.cast(y > 0, "float32")
                new_chance = rs.where(counted, chance + alpha * (some - chance), chance)
                new_size = rs.where(counted & (y > 0), size + beta * (y / factor - size), size)
                return dict(chance=new_chance, size=new_size, total=total + rs.cast(term, "float64"))

            begin = dict(chance=np.float32(0.3), size=np.float32(3.0), total=0.0)
            return rs.loop(week, over=dict(y=sold, t=rs.arange(weeks)), init=begin).last.total / weeks

        return rs.compile(rs.vmap(rs.value_and_grad(loss)))

    def jax(self, parts, weeks):
        import jax, jax.numpy as jnp

        def loss(p, sold):
            alpha, beta = jax.nn.sigmoid(p["chance"]), jax.nn.sigmoid(p["size"])

            def week(carry, row):
                chance, size, total = carry
                y, t = row
                counted = ~jnp.isnan(y)
                y = jnp.where(counted, y, 0)
                angle = (2 * np.pi * t / 52).astype(jnp.float32)
                factor = jnp.exp(p["season"][0] * jnp.sin(angle) + p["season"][1] * jnp.cos(angle))
                mean = chance * size * factor + 0.01
                term = jnp.where(counted, mean - y * jnp.log(mean), 0)
                some = (y > 0).astype(jnp.float32)
                new_chance = jnp.where(counted, chance + alpha * (some - chance), chance)
                new_size = jnp.where(counted & (y > 0), size + beta * (y / factor - size), size)
                return (new_chance, new_size, total + term.astype(jnp.float64)), None

            begin = (jnp.float32(0.3), jnp.float32(3.0), jnp.float64(0.0))
            return jax.lax.scan(week, begin, (sold, jnp.arange(weeks)))[0][2] / weeks

        return jax.jit(jax.vmap(jax.value_and_grad(loss)))
