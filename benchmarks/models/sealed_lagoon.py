"""Models by a reader of the manual: two of each class, from chemistry, pharmacology, finance, ecology, genomics and signal processing."""

import numpy as np
import rscan as rs
from models import Model

# ---------------------------------------------------------------- matrix states


class HebbianSubspaceDrift(Model):
    """Sanger's generalised Hebbian rule follows the principal subspace; the gradient by its rate and its first weights."""

    kind = "matrix states"
    dtype = "float32"
    size = dict(steps=400, inputs=16, units=4)
    small = dict(steps=8, inputs=5, units=3)

    def make(self, random, steps, inputs, units):
        mix = random.normal(size=(inputs, inputs)) * 0.8 ** np.arange(inputs)
        x = (random.normal(size=(steps, inputs)) @ mix.T).astype("f4") * np.float32(0.3)
        return np.float32(0.02), (random.normal(size=(units, inputs)) / 4).astype("f4"), x

    def rscan(self, steps, inputs, units):
        def loss(rate, w0, x):
            def step(x, w):
                y = w @ x
                error = x - w.T @ y
                w = w + rate * (rs.outer(y, x) - rs.tril(rs.outer(y, y)) @ w)
                return dict(w=w, error=rs.sum(error**2))

            out = rs.loop(step, over=dict(x=x), init=dict(w=w0))
            return rs.mean(out.error)

        return rs.value_and_grad(rs.compile(loss), argnums=(0, 1))

    def jax(self, steps, inputs, units):
        import jax, jax.numpy as jnp

        def loss(rate, w0, x):
            def step(w, x):
                y = w @ x
                error = x - w.T @ y
                w = w + rate * (jnp.outer(y, x) - jnp.tril(jnp.outer(y, y)) @ w)
                return w, jnp.sum(error**2)

            return jnp.mean(jax.lax.scan(step, w0, x)[1])

        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))


class BroydenReactors(Model):
    """Tubular reactors with an Arrhenius term, discretised, solved by Broyden's method with the inverse as its state."""

    kind = "matrix states"
    dtype = "float64"
    size = dict(reactors=24, points=16)
    small = dict(reactors=3, points=5)
    rtol = 1e-7

    def make(self, random, reactors, points):
        return (random.uniform(0.5, 3.0, reactors),)

    def rscan(self, reactors, points):
        h = 1.0 / (points + 1)

        def solve(rate):
            def residual(u):
                wide = rs.pad(u, 1)
                return (wide[:-2] - 2 * u + wide[2:]) / h**2 + rate * rs.exp(u / (1 + 0.2 * u))

            def step(u, f, inverse):
                move = -inverse @ f
                u = u + move
                new = residual(u)
                change = inverse @ (new - f)
                inverse = inverse + rs.outer(move - change, move @ inverse) / (move @ change)
                return dict(u=u, f=new, inverse=inverse), rs.until(rs.sqrt(rs.sum(new**2)) < 1e-9)

            u = rs.zeros(points)
            inverse = rs.linalg.inv(rs.jacobian(residual)(u))
            return rs.loop(step, init=dict(u=u, f=residual(u), inverse=inverse), n_steps=60).last.u

        return rs.compile(rs.vmap(solve))

    def jax(self, reactors, points):
        import jax, jax.numpy as jnp

        h = 1.0 / (points + 1)

        def solve(rate):
            def residual(u):
                wide = jnp.pad(u, 1)
                return (wide[:-2] - 2 * u + wide[2:]) / h**2 + rate * jnp.exp(u / (1 + 0.2 * u))

            def body(state):
                u, f, inverse, n = state
                move = -inverse @ f
                u = u + move
                new = residual(u)
                change = inverse @ (new - f)
                inverse = inverse + jnp.outer(move - change, move @ inverse) / (move @ change)
                return u, new, inverse, n + 1

            def cond(state):
                return (state[3] < 60) & ((state[3] == 0) | ~(jnp.sqrt(jnp.sum(state[1] ** 2)) < 1e-9))

            u = jnp.zeros(points)
            return jax.lax.while_loop(cond, body, (u, residual(u), jnp.linalg.inv(jax.jacfwd(residual)(u)), 0))[0]

        return jax.jit(jax.vmap(solve))


# ---------------------------------------------------------------- stencils


class FlameFrontWrinkles(Model):
    """The Kuramoto-Sivashinsky equation by finite differences on a ring; the gradient of a misfit by the first front and the viscosity."""

    kind = "stencils"
    dtype = "float64"
    size = dict(steps=300, points=96)
    small = dict(steps=6, points=12)

    def make(self, random, steps, points):
        x = np.arange(points) * 2 * np.pi / points
        u = np.cos(x) + 0.3 * np.sin(3 * x + 1) + 0.1 * random.normal(size=points)
        return u, 1.0, random.normal(size=points)

    def rscan(self, steps, points):
        dt, dx = 0.02, 1.0

        def loss(u0, viscosity, seen):
            def step(u):
                left, right = rs.roll(u, 1), rs.roll(u, -1)
                second = (left - 2 * u + right) / dx**2
                fourth = (rs.roll(second, 1) - 2 * second + rs.roll(second, -1)) / dx**2
                flux = (right**2 - left**2) / (4 * dx)
                return u - dt * (flux + second + viscosity * fourth)

            u = rs.loop(step, init=u0, n_steps=steps).last
            return rs.mean((u - seen) ** 2)

        return rs.value_and_grad(rs.compile(loss), argnums=(0, 1))

    def jax(self, steps, points):
        import jax, jax.numpy as jnp

        dt, dx = 0.02, 1.0

        def loss(u0, viscosity, seen):
            def step(u, _):
                left, right = jnp.roll(u, 1), jnp.roll(u, -1)
                second = (left - 2 * u + right) / dx**2
                fourth = (jnp.roll(second, 1) - 2 * second + jnp.roll(second, -1)) / dx**2
                flux = (right**2 - left**2) / (4 * dx)
                return u - dt * (flux + second + viscosity * fourth), None

            u = jax.lax.scan(step, u0, None, length=steps)[0]
            return jnp.mean((u - seen) ** 2)

        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))


class WildfireFuelBeds(Model):
    """A fire with wind over beds of fuel: cells gather heat from burning neighbours, ignite, and burn out; until no cell burns."""

    kind = "stencils"
    dtype = "int64"
    size = dict(side=48)
    small = dict(side=9)

    def make(self, random, side):
        fuel = random.integers(0, 6, (side, side))
        threshold = random.integers(2, 14, (side, side))
        fuel[side // 2, side // 2] = 5
        return fuel, threshold

    def rscan(self, side):
        wind = [[1, 2, 1], [2, 0, 3], [1, 3, 2]]

        @rs.compile
        def burn(fuel, threshold):
            centre = side // 2

            def step(t, fuel, burning, heat, arrival):
                wide = rs.pad(rs.cast(burning > 0, "int64"), 1)
                heat = heat + sum(wind[i][j] * wide[i : i + side, j : j + side] for i in range(3) for j in range(3) if wind[i][j])
                ignites = (heat >= threshold) & (fuel > 0) & (burning == 0)
                burning = rs.where(ignites, fuel, rs.maximum(burning - 1, 0))
                fuel = rs.where(ignites, 0, fuel)
                arrival = rs.where(ignites, t + 1, arrival)
                return dict(fuel=fuel, burning=burning, heat=heat, arrival=arrival, front=rs.sum(burning > 0)), rs.until(rs.all(burning == 0))

            burning = rs.zeros((side, side), dtype="int64").at[centre, centre].set(fuel[centre, centre])
            out = rs.loop(
                step,
                over=dict(t=rs.arange(10 * side)),
                init=dict(
                    fuel=fuel.at[centre, centre].set(0),
                    burning=burning,
                    heat=rs.zeros((side, side), dtype="int64"),
                    arrival=rs.full((side, side), -1),
                ),
            )
            return out.last.arrival, out.last.fuel, out.steps, rs.max(out.front)

        return burn

    def jax(self, side):
        import jax, jax.numpy as jnp

        wind = [[1, 2, 1], [2, 0, 3], [1, 3, 2]]

        def burn(fuel, threshold):
            centre = side // 2

            def body(state):
                t, fuel, burning, heat, arrival, front = state
                wide = jnp.pad((burning > 0).astype("int64"), 1)
                heat = heat + sum(wind[i][j] * wide[i : i + side, j : j + side] for i in range(3) for j in range(3) if wind[i][j])
                ignites = (heat >= threshold) & (fuel > 0) & (burning == 0)
                burning = jnp.where(ignites, fuel, jnp.maximum(burning - 1, 0))
                fuel = jnp.where(ignites, 0, fuel)
                arrival = jnp.where(ignites, t + 1, arrival)
                return t + 1, fuel, burning, heat, arrival, jnp.maximum(front, jnp.sum(burning > 0))

            def cond(state):
                return (state[0] < 10 * side) & ~jnp.all(state[2] == 0)

            zeros = jnp.zeros((side, side), dtype="int64")
            burning = zeros.at[centre, centre].set(fuel[centre, centre])
            start = (0, fuel.at[centre, centre].set(0), burning, zeros, jnp.full((side, side), -1), jnp.sum(zeros))
            t, fuel, burning, heat, arrival, front = jax.lax.while_loop(cond, body, start)
            return arrival, fuel, t, front

        return jax.jit(burn)


# ---------------------------------------------------------------- integers and until


class MillerRabinWitnesses(Model):
    """Which odd numbers pass Miller and Rabin's test, and to how many bases."""

    kind = "integers and until"
    dtype = "int64"
    size = dict(numbers=150)
    small = dict(numbers=5)

    def make(self, random, numbers):
        return 2 * random.integers(10**8, 10**9, numbers) + 1, np.array([2, 3, 5, 7])

    def rscan(self, numbers):
        def witness(n, base):
            d, s = rs.while_loop(lambda v: v[0] % 2 == 0, lambda v: (v[0] // 2, v[1] + 1), (n - 1, 0))

            def multiply(v):
                power, square, left = v
                return rs.where(left % 2 == 1, power * square % n, power), square * square % n, left // 2

            x, _, _ = rs.while_loop(lambda v: v[2] > 0, multiply, (rs.ones_like(n), base % n, d))
            x, k = rs.while_loop(lambda v: (v[0] != n - 1) & (v[1] < s - 1), lambda v: (v[0] * v[0] % n, v[1] + 1), (x, rs.where(x == 1, s, 0)))
            return (x == 1) & (k == s) | (x == n - 1)

        @rs.compile
        def test(numbers, bases):
            passed = rs.vmap(rs.vmap(witness, (None, 0)), (0, None))(numbers, bases)
            return rs.all(passed, axis=1), rs.sum(passed, axis=1)

        return test

    def jax(self, numbers):
        import jax, jax.numpy as jnp

        def witness(n, base):
            d, s = jax.lax.while_loop(lambda v: v[0] % 2 == 0, lambda v: (v[0] // 2, v[1] + 1), (n - 1, 0))

            def multiply(v):
                power, square, left = v
                return jnp.where(left % 2 == 1, power * square % n, power), square * square % n, left // 2

            x, _, _ = jax.lax.while_loop(lambda v: v[2] > 0, multiply, (jnp.ones_like(n), base % n, d))
            x, k = jax.lax.while_loop(
                lambda v: (v[0] != n - 1) & (v[1] < s - 1), lambda v: (v[0] * v[0] % n, v[1] + 1), (x, jnp.where(x == 1, s, 0))
            )
            return (x == 1) & (k == s) | (x == n - 1)

        def test(numbers, bases):
            passed = jax.vmap(jax.vmap(witness, (None, 0)), (0, None))(numbers, bases)
            return jnp.all(passed, axis=1), jnp.sum(passed, axis=1)

        return jax.jit(test)


class TurmiteLeavesBoard(Model):
    """An ant of several colours turns by a table, repaints its cell and walks until it leaves the board."""

    kind = "integers and until"
    dtype = "int64"
    size = dict(side=50, limit=60000)
    small = dict(side=7, limit=100)

    def make(self, random, side, limit):
        return np.array([1, 1, -1, 1]), np.zeros((side, side), dtype="i8"), np.array([[-1, 0], [0, 1], [1, 0], [0, -1]])

    def rscan(self, side, limit):
        @rs.compile
        def walk(turns, board, moves):
            def step(board, row, column, heading):
                colour = board[row, column]
                heading = (heading + turns[colour]) % 4
                board = board.at[row, column].set((colour + 1) % turns.shape[0])
                row, column = row + moves[heading, 0], column + moves[heading, 1]
                inside = (row >= 0) & (row < side) & (column >= 0) & (column < side)
                return dict(board=board, row=row, column=column, heading=heading), rs.until(~inside)

            out = rs.loop(step, init=dict(board=board, row=side // 2, column=side // 2, heading=0), n_steps=limit)
            return out.last.board, rs.stack([out.last.row, out.last.column, out.last.heading]), out.steps

        return walk

    def jax(self, side, limit):
        import jax, jax.numpy as jnp

        def walk(turns, board, moves):
            def body(state):
                board, row, column, heading, t = state
                colour = board[row, column]
                heading = (heading + turns[colour]) % 4
                board = board.at[row, column].set((colour + 1) % turns.shape[0])
                return board, row + moves[heading, 0], column + moves[heading, 1], heading, t + 1

            def cond(state):
                _, row, column, _, t = state
                return (t < limit) & (row >= 0) & (row < side) & (column >= 0) & (column < side)

            board, row, column, heading, t = jax.lax.while_loop(cond, body, (board, side // 2, side // 2, 0, 0))
            return board, jnp.stack([row, column, heading]), t

        return jax.jit(walk)


# ---------------------------------------------------------------- searches and sorts


class PatiencePiles(Model):
    """The longest rising subsequence by patience sorting: a binary search for each card, and pointers back to its left neighbour."""

    kind = "searches and sorts"
    dtype = "int64"
    size = dict(cards=500)
    small = dict(cards=9)

    def make(self, random, cards):
        return (random.permutation(10 * cards)[:cards] + 4 * np.arange(cards),)

    def rscan(self, cards):
        @rs.compile
        def longest(x):
            def deal(i, card, tops, holders):
                pile = rs.searchsorted(tops, card)
                before = rs.where(pile > 0, holders[rs.maximum(pile - 1, 0)], -1)
                return dict(tops=tops.at[pile].set(card), holders=holders.at[pile].set(i), before=before, pile=pile)

            out = rs.loop(
                deal,
                over=dict(i=rs.arange(cards), card=x),
                init=dict(tops=rs.full(cards, 2**60), holders=rs.full(cards, -1)),
            )
            count = rs.max(out.pile) + 1
            before = out.before[:]
            back = rs.loop(lambda k: rs.where(k >= 0, before[rs.maximum(k, 0)], -1), init=out.last.holders[count - 1], n_steps=cards)
            return count, out.last.holders[count - 1], back[:]

        return longest

    def jax(self, cards):
        import jax, jax.numpy as jnp

        def longest(x):
            def deal(carry, row):
                tops, holders = carry
                i, card = row
                pile = jnp.searchsorted(tops, card)
                before = jnp.where(pile > 0, holders[jnp.maximum(pile - 1, 0)], -1)
                return (tops.at[pile].set(card), holders.at[pile].set(i)), (before, pile)

            start = jnp.full(cards, 2**60), jnp.full(cards, -1)
            (_, holders), (before, pile) = jax.lax.scan(deal, start, (jnp.arange(cards), x))
            count = jnp.max(pile) + 1

            def back(k, _):
                k = jnp.where(k >= 0, before[jnp.maximum(k, 0)], -1)
                return k, k

            last = holders[count - 1]
            return count, last, jax.lax.scan(back, last, None, length=cards)[1]

        return jax.jit(longest)


class CoarseToFineRays(Model):
    """Hierarchical sampling along rays: coarse weights, their inverse distribution by searchsorted, a sorted union, and the rendered loss."""

    kind = "searches and sorts"
    dtype = "float64"
    size = dict(rays=48, coarse=24, fine=32, blobs=5)
    small = dict(rays=3, coarse=6, fine=5, blobs=2)

    def make(self, random, rays, coarse, fine, blobs):
        p = dict(
            amplitude=random.uniform(0.5, 2.0, blobs),
            centre=random.normal(size=(blobs, 3)) * 0.5,
            log_width=random.normal(size=blobs) * 0.2 - 1.0,
            shade=random.uniform(0, 1, blobs),
        )
        directions = random.normal(size=(rays, 3)) * 0.2 + [0, 0, 1.0]
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        origins = random.normal(size=(rays, 3)) * 0.1 + [0, 0, -2.0]
        return p, origins, directions, random.uniform(0, 1, rays)

    def rscan(self, rays, coarse, fine, blobs):
        def loss(p, origins, directions, seen):
            def field(places):
                apart = places[:, None, :] - p["centre"]
                each = p["amplitude"] * rs.exp(-0.5 * rs.sum(apart**2, axis=-1) / rs.exp(2 * p["log_width"]))
                density = rs.sum(each, axis=-1)
                return density, each @ p["shade"] / (density + 1e-6)

            def weights(density, z):
                gaps = rs.concatenate([z[1:] - z[:-1], rs.ones(1) * 0.1])
                optical = density * gaps
                through = rs.exp(-rs.concatenate([rs.zeros(1), rs.cumsum(optical)[:-1]]))
                return through * (1 - rs.exp(-optical))

            def pixel(origin, direction):
                z = rs.linspace(0.5, 3.5, coarse)
                density, _ = field(origin + z[:, None] * direction)
                middle = 0.5 * (z[1:] + z[:-1])
                w = rs.stop_gradient(weights(density, z))[1:-1] + 1e-5
                cdf = rs.concatenate([rs.zeros(1), rs.cumsum(w / rs.sum(w))])
                u = (rs.arange(fine) + 0.5) / fine
                right = rs.clip(rs.searchsorted(cdf, u, side="right"), 1, coarse - 2)
                low, high = cdf[right - 1], cdf[right]
                found = middle[right - 1] + (u - low) / (high - low) * (middle[right] - middle[right - 1])
                z = rs.sort(rs.concatenate([z, found]))
                density, shade = field(origin + z[:, None] * direction)
                return rs.sum(weights(density, z) * shade)

            return rs.mean((rs.vmap(pixel)(origins, directions) - seen) ** 2)

        return rs.value_and_grad(rs.compile(loss))

    def jax(self, rays, coarse, fine, blobs):
        import jax, jax.numpy as jnp

        def loss(p, origins, directions, seen):
            def field(places):
                apart = places[:, None, :] - p["centre"]
                each = p["amplitude"] * jnp.exp(-0.5 * jnp.sum(apart**2, axis=-1) / jnp.exp(2 * p["log_width"]))
                density = jnp.sum(each, axis=-1)
                return density, each @ p["shade"] / (density + 1e-6)

            def weights(density, z):
                gaps = jnp.concatenate([z[1:] - z[:-1], jnp.ones(1) * 0.1])
                optical = density * gaps
                through = jnp.exp(-jnp.concatenate([jnp.zeros(1), jnp.cumsum(optical)[:-1]]))
                return through * (1 - jnp.exp(-optical))

            def pixel(origin, direction):
                z = jnp.linspace(0.5, 3.5, coarse)
                density, _ = field(origin + z[:, None] * direction)
                middle = 0.5 * (z[1:] + z[:-1])
                w = jax.lax.stop_gradient(weights(density, z))[1:-1] + 1e-5
                cdf = jnp.concatenate([jnp.zeros(1), jnp.cumsum(w / jnp.sum(w))])
                u = (jnp.arange(fine) + 0.5) / fine
                right = jnp.clip(jnp.searchsorted(cdf, u, side="right"), 1, coarse - 2)
                low, high = cdf[right - 1], cdf[right]
                found = middle[right - 1] + (u - low) / (high - low) * (middle[right] - middle[right - 1])
                z = jnp.sort(jnp.concatenate([z, found]))
                density, shade = field(origin + z[:, None] * direction)
                return jnp.sum(weights(density, z) * shade)

            return jnp.mean((jax.vmap(pixel)(origins, directions) - seen) ** 2)

        return jax.jit(jax.value_and_grad(loss))


# ---------------------------------------------------------------- loops in loops


class FractionalRelaxation(Model):
    """A nonlinear Caputo equation of order alpha by the fractional Euler rule: each step sums over its whole past."""

    kind = "loops in loops"
    dtype = "float64"
    size = dict(steps=200)
    small = dict(steps=6)

    def make(self, random, steps):
        drive = np.sin(np.arange(steps) * 0.1) + 0.2 * random.normal(size=steps)
        return 0.7, 1.3, 0.5, drive, random.normal(size=steps) * 0.5

    def rscan(self, steps):
        h = 0.05

        def loss(alpha, stiffness, y0, drive, seen):
            j = rs.arange(steps)
            b = (j + 1.0) ** alpha - j**alpha
            scale = rs.exp(alpha * np.log(h) - rs.special.gammaln(alpha + 1))

            def step(n, drive, y, slopes):
                slopes = slopes.at[n].set(drive - stiffness * y - 0.1 * y**3)
                memory = rs.fori(0, n + 1, lambda j, total: total + b[n - j] * slopes[j], 0.0)
                return dict(y=y0 + scale * memory, slopes=slopes)

            out = rs.loop(step, over=dict(n=j, drive=drive), init=dict(y=y0, slopes=rs.zeros(steps)))
            return rs.mean((out.y - seen) ** 2)

        return rs.value_and_grad(rs.compile(loss), argnums=(0, 1, 2))

    def jax(self, steps):
        import jax, jax.numpy as jnp

        h = 0.05

        def loss(alpha, stiffness, y0, drive, seen):
            j = jnp.arange(steps)
            b = (j + 1.0) ** alpha - j**alpha
            scale = jnp.exp(alpha * np.log(h) - jax.scipy.special.gammaln(alpha + 1))

            def step(carry, row):
                y, slopes = carry
                n, drive = row
                slopes = slopes.at[n].set(drive - stiffness * y - 0.1 * y**3)
                memory = jnp.sum(jnp.where(j <= n, b[jnp.maximum(n - j, 0)] * slopes, 0.0))
                y = y0 + scale * memory
                return (y, slopes), y

            ys = jax.lax.scan(step, (y0, jnp.zeros(steps)), (j, drive))[1]
            return jnp.mean((ys - seen) ** 2)

        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2)))


class AnchorChaining(Model):
    """Seeds of a long read are chained: each anchor looks back over at most h earlier ones; the slope of the best score by the gap costs."""

    kind = "loops in loops"
    dtype = "float64"
    size = dict(anchors=300, window=30)
    small = dict(anchors=8, window=3)

    def make(self, random, anchors, window):
        x = np.cumsum(random.integers(1, 60, anchors)).astype("f8")
        y = x + np.cumsum(random.integers(-6, 7, anchors)) + random.choice([0, 0, 0, 400], anchors)
        return np.array([0.12, 0.5]), x, y

    def rscan(self, anchors, window):
        length = 15.0

        def best(costs, x, y):
            def step(i, f):
                def back(k, top):
                    j = i - 1 - k
                    dx, dy = x[i] - x[j], y[i] - y[j]
                    apart = rs.abs(dx - dy)
                    gain = rs.minimum(rs.minimum(dx, dy), length) - costs[0] * apart - costs[1] * rs.log2(apart + 1)
                    return rs.where(dy > 0, rs.maximum(top, f[j] + gain), top)

                score = rs.loop(back, over=dict(k=rs.arange(rs.minimum(i, window))), init=dict(top=length)).last.top
                return f.at[i].set(score)

            f = rs.loop(step, over=rs.arange(anchors), init=rs.zeros(anchors)).last
            return rs.max(f)

        return rs.value_and_grad(rs.compile(best))

    def jax(self, anchors, window):
        import jax, jax.numpy as jnp

        length = 15.0

        def best(costs, x, y):
            def step(f, i):
                j = i - 1 - jnp.arange(window)
                valid, j = j >= 0, jnp.maximum(j, 0)
                dx, dy = x[i] - x[j], y[i] - y[j]
                apart = jnp.abs(dx - dy)
                gain = jnp.minimum(jnp.minimum(dx, dy), length) - costs[0] * apart - costs[1] * jnp.log2(apart + 1)
                score = jnp.maximum(jnp.max(jnp.where(valid & (dy > 0), f[j] + gain, -jnp.inf)), length)
                return f.at[i].set(score), None

            return jnp.max(jax.lax.scan(step, jnp.zeros(anchors), jnp.arange(anchors))[0])

        return jax.jit(jax.value_and_grad(best))


# ---------------------------------------------------------------- sliced states


class NeutrophilNadir(Model):
    """Friberg's chain of maturing cells under chemotherapy, by Runge and Kutta; the gradient of a misfit by the logs of its parameters."""

    kind = "sliced states"
    dtype = "float64"
    size = dict(steps=400, transit=3)
    small = dict(steps=20, transit=3)

    def make(self, random, steps, transit):
        dose = np.zeros(steps)
        dose[[0, steps // 2]] = 8.0
        p = dict(rest=np.log(5.0), transit=np.log(90.0), power=np.log(0.17), kill=np.log(0.15), elimination=np.log(0.1))
        return p, dose, 5 + random.normal(size=steps // 10)

    def rscan(self, steps, transit):
        h = 1.5

        def loss(p, dose, seen):
            rest, mean_time, power, kill, out = (rs.exp(p[k]) for k in ("rest", "transit", "power", "kill", "elimination"))
            rate = (transit + 1) / mean_time

            def slope(a, dose):
                effect = kill * a[0]
                feedback = (rest / a[-1]) ** power
                made = rate * a[1] * ((1 - effect) * feedback - 1)
                chain = rate * (a[1:-1] - a[2:])
                return rs.concatenate([rs.stack([dose / h - out * a[0], made]), chain])

            def step(dose, a):
                k1 = slope(a, dose)
                k2 = slope(a + 0.5 * h * k1, dose)
                k3 = slope(a + 0.5 * h * k2, dose)
                k4 = slope(a + h * k3, dose)
                return a + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

            start = rs.concatenate([rs.zeros(1), rest * rs.ones(transit + 2)])
            rows = rs.loop(step, over=dose, init=start)
            return rs.sum((rs.log(rows[9::10, -1]) - rs.log(seen)) ** 2)

        return rs.value_and_grad(rs.compile(loss))

    def jax(self, steps, transit):
        import jax, jax.numpy as jnp

        h = 1.5

        def loss(p, dose, seen):
            rest, mean_time, power, kill, out = (jnp.exp(p[k]) for k in ("rest", "transit", "power", "kill", "elimination"))
            rate = (transit + 1) / mean_time

            def slope(a, dose):
                effect = kill * a[0]
                feedback = (rest / a[-1]) ** power
                made = rate * a[1] * ((1 - effect) * feedback - 1)
                chain = rate * (a[1:-1] - a[2:])
                return jnp.concatenate([jnp.stack([dose / h - out * a[0], made]), chain])

            def step(a, dose):
                k1 = slope(a, dose)
                k2 = slope(a + 0.5 * h * k1, dose)
                k3 = slope(a + 0.5 * h * k2, dose)
                k4 = slope(a + h * k3, dose)
                a = a + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
                return a, a[-1]

            start = jnp.concatenate([jnp.zeros(1), rest * jnp.ones(transit + 2)])
            rows = jax.lax.scan(step, start, dose)[1]
            return jnp.sum((jnp.log(rows[9::10]) - jnp.log(seen)) ** 2)

        return jax.jit(jax.value_and_grad(loss))


class MoveToFrontRanks(Model):
    """Move-to-front coding: a symbol is told by its place in a list, whose head it then becomes."""

    kind = "sliced states"
    dtype = "int64"
    size = dict(length=1500, alphabet=64)
    small = dict(length=12, alphabet=5)

    def make(self, random, length, alphabet):
        return (np.minimum(random.geometric(0.1, length) + np.arange(length) // 200, alphabet) - 1,)

    def rscan(self, length, alphabet):
        @rs.compile
        def ranks(text):
            def step(symbol, table):
                place = rs.argmax(table == symbol)
                table = rs.where(rs.arange(alphabet) <= place, rs.roll(table, 1), table).at[0].set(symbol)
                return dict(table=table, rank=place)

            out = rs.loop(step, over=dict(symbol=text), init=dict(table=rs.arange(alphabet)))
            return out.rank, out.last.table, rs.bincount(out.rank, length=alphabet)

        return ranks

    def jax(self, length, alphabet):
        import jax, jax.numpy as jnp

        def ranks(text):
            def step(table, symbol):
                place = jnp.argmax(table == symbol)
                table = jnp.where(jnp.arange(alphabet) <= place, jnp.roll(table, 1), table).at[0].set(symbol)
                return table, place

            table, rank = jax.lax.scan(step, jnp.arange(alphabet), text)
            return rank, table, jnp.bincount(rank, length=alphabet)

        return jax.jit(ranks)


# ---------------------------------------------------------------- reductions


class NeighbourEmbedding(Model):
    """t-SNE: places in the plane go down the slope of the divergence between two distributions over all pairs, with momentum."""

    kind = "reductions"
    dtype = "float64"
    size = dict(points=48, steps=25)
    small = dict(points=6, steps=3)

    def make(self, random, points, steps):
        x = random.normal(size=(points, 4)) + 3 * random.integers(0, 3, points)[:, None]
        p = np.exp(-0.5 * ((x[:, None] - x) ** 2).sum(-1))
        np.fill_diagonal(p, 0.0)
        return p, 0.1 * random.normal(size=(points, 2))

    def rscan(self, points, steps):
        @rs.compile
        def embed(affinity, y0):
            apart = 1 - rs.eye(points)
            joint = affinity / rs.sum(affinity, axis=1, keepdims=True)
            joint = (joint + joint.T) / (2 * points)
            joint = rs.maximum(joint, 1e-12)

            def divergence(y):
                squares = rs.sum((y[:, None, :] - y[None, :, :]) ** 2, axis=2)
                kernel = apart / (1 + squares)
                q = rs.maximum(kernel / rs.sum(kernel), 1e-12)
                return rs.sum(joint * (rs.log(joint) - rs.log(q)))

            def step(y, speed):
                value, slope = rs.value_and_grad(divergence)(y)
                speed = 0.5 * speed - 2.0 * slope
                y = y + speed
                return dict(y=y - rs.mean(y, axis=0), speed=speed, divergence=value)

            out = rs.loop(step, init=dict(y=y0, speed=rs.zeros_like(y0)), n_steps=steps)
            return out.last.y, out.divergence

        return embed

    def jax(self, points, steps):
        import jax, jax.numpy as jnp

        def embed(affinity, y0):
            apart = 1 - jnp.eye(points)
            joint = affinity / jnp.sum(affinity, axis=1, keepdims=True)
            joint = (joint + joint.T) / (2 * points)
            joint = jnp.maximum(joint, 1e-12)

            def divergence(y):
                squares = jnp.sum((y[:, None, :] - y[None, :, :]) ** 2, axis=2)
                kernel = apart / (1 + squares)
                q = jnp.maximum(kernel / jnp.sum(kernel), 1e-12)
                return jnp.sum(joint * (jnp.log(joint) - jnp.log(q)))

            def step(carry, _):
                y, speed = carry
                value, slope = jax.value_and_grad(divergence)(y)
                speed = 0.5 * speed - 2.0 * slope
                y = y + speed
                return (y - jnp.mean(y, axis=0), speed), value

            (y, _), values = jax.lax.scan(step, (y0, jnp.zeros_like(y0)), None, length=steps)
            return y, values

        return jax.jit(embed)


class TopicAspectsEm(Model):
    """Probabilistic latent semantic analysis: EM over documents, words and topics, and the likelihood at each step."""

    kind = "reductions"
    dtype = "float32"
    size = dict(documents=30, words=80, topics=6, steps=15)
    small = dict(documents=3, words=5, topics=2, steps=3)
    rtol = 1e-3

    def make(self, random, documents, words, topics, steps):
        truth = random.dirichlet(np.full(topics, 0.3), documents) @ random.dirichlet(np.full(words, 0.1), topics)
        counts = random.poisson(200 * truth).astype("f4")
        return counts, random.dirichlet(np.ones(topics), documents).astype("f4"), random.dirichlet(np.ones(words), topics).astype("f4")

    def rscan(self, documents, words, topics, steps):
        @rs.compile
        def fit(counts, mix, topic):
            def step(mix, topic):
                joint = mix[:, :, None] * topic[None, :, :]
                total = rs.sum(joint, axis=1, keepdims=True)
                expected = counts[:, None, :] * joint / (total + 1e-8)
                likelihood = rs.sum(counts * rs.log(total[:, 0, :] + 1e-8)) / rs.sum(counts)
                mix = rs.sum(expected, axis=2)
                topic = rs.sum(expected, axis=0)
                return dict(
                    mix=mix / rs.sum(mix, axis=1, keepdims=True), topic=topic / rs.sum(topic, axis=1, keepdims=True), likelihood=likelihood
                )

            out = rs.loop(step, init=dict(mix=mix, topic=topic), n_steps=steps)
            return out.last.mix, out.last.topic, out.likelihood

        return fit

    def jax(self, documents, words, topics, steps):
        import jax, jax.numpy as jnp

        def fit(counts, mix, topic):
            def step(carry, _):
                mix, topic = carry
                joint = mix[:, :, None] * topic[None, :, :]
                total = jnp.sum(joint, axis=1, keepdims=True)
                expected = counts[:, None, :] * joint / (total + 1e-8)
                likelihood = jnp.sum(counts * jnp.log(total[:, 0, :] + 1e-8)) / jnp.sum(counts)
                mix = jnp.sum(expected, axis=2)
                topic = jnp.sum(expected, axis=0)
                return (mix / jnp.sum(mix, axis=1, keepdims=True), topic / jnp.sum(topic, axis=1, keepdims=True)), likelihood

            (mix, topic), likelihood = jax.lax.scan(step, (mix, topic), None, length=steps)
            return mix, topic, likelihood

        return jax.jit(fit)


# ---------------------------------------------------------------- derivatives


class BatteryCircuitJacobian(Model):
    """A cell as two RC links behind its open voltage: the Jacobian of the voltage by six parameters, and one damped step of the fit."""

    kind = "derivatives"
    dtype = "float64"
    size = dict(steps=400)
    small = dict(steps=9)

    def make(self, random, steps):
        current = np.repeat(random.normal(size=(steps + 19) // 20), 20)[:steps] + 0.5
        return np.log([0.05, 0.02, 20.0, 0.03, 200.0, 2.0]), current, 3.7 + 0.05 * random.normal(size=steps)

    def rscan(self, steps):
        @rs.compile
        def fit(theta, current, seen):
            def voltage(theta):
                p = rs.exp(theta)
                ohm, r1, tau1, r2, tau2, capacity = p[0], p[1], p[2], p[3], p[4], p[5]
                keep1, keep2 = rs.exp(-1.0 / tau1), rs.exp(-1.0 / tau2)

                def step(i, charge, v1, v2):
                    charge = charge - i / (3600 * capacity)
                    v1 = keep1 * v1 + r1 * (1 - keep1) * i
                    v2 = keep2 * v2 + r2 * (1 - keep2) * i
                    open_voltage = 3.2 + 1.1 * charge - 0.4 * charge**2 + 0.1 * rs.log(charge)
                    return dict(charge=charge, v1=v1, v2=v2, volt=open_voltage - ohm * i - v1 - v2)

                return rs.loop(step, over=dict(i=current), init=dict(charge=0.9, v1=0.0, v2=0.0)).volt

            volts, slopes = voltage(theta), rs.jacobian(voltage)(theta)
            normal = slopes.T @ slopes + 1e-3 * rs.eye(6)
            return volts, slopes, theta - rs.linalg.solve(normal, slopes.T @ (volts - seen))

        return fit

    def jax(self, steps):
        import jax, jax.numpy as jnp

        def fit(theta, current, seen):
            def voltage(theta):
                ohm, r1, tau1, r2, tau2, capacity = jnp.exp(theta)
                keep1, keep2 = jnp.exp(-1.0 / tau1), jnp.exp(-1.0 / tau2)

                def step(carry, i):
                    charge, v1, v2 = carry
                    charge = charge - i / (3600 * capacity)
                    v1 = keep1 * v1 + r1 * (1 - keep1) * i
                    v2 = keep2 * v2 + r2 * (1 - keep2) * i
                    open_voltage = 3.2 + 1.1 * charge - 0.4 * charge**2 + 0.1 * jnp.log(charge)
                    return (charge, v1, v2), open_voltage - ohm * i - v1 - v2

                return jax.lax.scan(step, (0.9, 0.0, 0.0), current)[1]

            volts, slopes = voltage(theta), jax.jacfwd(voltage)(theta)
            normal = slopes.T @ slopes + 1e-3 * jnp.eye(6)
            return volts, slopes, theta - jnp.linalg.solve(normal, slopes.T @ (volts - seen))

        return jax.jit(fit)


class SabrSmileHessians(Model):
    """Hagan's formula for the smiles of many expiries: misfit, gradient and Hessian of each expiry by its four parameters."""

    kind = "derivatives"
    dtype = "float64"
    size = dict(expiries=24, strikes=12)
    small = dict(expiries=2, strikes=4)

    def make(self, random, expiries, strikes):
        theta = np.array([np.log(0.25), 0.3, -0.3, np.log(0.5)]) + 0.1 * random.normal(size=(expiries, 4))
        forward = 100 * np.exp(0.02 * np.arange(expiries))
        strike = forward[:, None] * np.linspace(0.71, 1.42, strikes)
        return theta, forward, np.linspace(0.1, 5.0, expiries), strike, 0.2 + 0.02 * random.normal(size=(expiries, strikes))

    def rscan(self, expiries, strikes):
        def misfit(theta, forward, time, strike, market):
            alpha, beta, rho, nu = rs.exp(theta[0]) * 4, rs.sigmoid(theta[1]), rs.tanh(theta[2]), rs.exp(theta[3])
            money = rs.log(forward / strike)
            middle = (forward * strike) ** (0.5 * (1 - beta))
            z = nu / alpha * middle * money
            x = rs.log((rs.sqrt(1 - 2 * rho * z + z * z) + z - rho) / (1 - rho))
            below = middle * (1 + (1 - beta) ** 2 / 24 * money**2 + (1 - beta) ** 4 / 1920 * money**4)
            drift = (1 - beta) ** 2 / 24 * alpha**2 / middle**2 + rho * beta * nu * alpha / (4 * middle) + (2 - 3 * rho**2) / 24 * nu**2
            return rs.sum((alpha / below * z / x * (1 + drift * time) - market) ** 2)

        @rs.compile
        def curvature(theta, *rest):
            value, slope = rs.vmap(rs.value_and_grad(misfit))(theta, *rest)
            return value, slope, rs.vmap(rs.hessian(misfit))(theta, *rest)

        return curvature

    def jax(self, expiries, strikes):
        import jax, jax.numpy as jnp

        def misfit(theta, forward, time, strike, market):
            alpha, beta, rho, nu = jnp.exp(theta[0]) * 4, jax.nn.sigmoid(theta[1]), jnp.tanh(theta[2]), jnp.exp(theta[3])
            money = jnp.log(forward / strike)
            middle = (forward * strike) ** (0.5 * (1 - beta))
            z = nu / alpha * middle * money
            x = jnp.log((jnp.sqrt(1 - 2 * rho * z + z * z) + z - rho) / (1 - rho))
            below = middle * (1 + (1 - beta) ** 2 / 24 * money**2 + (1 - beta) ** 4 / 1920 * money**4)
            drift = (1 - beta) ** 2 / 24 * alpha**2 / middle**2 + rho * beta * nu * alpha / (4 * middle) + (2 - 3 * rho**2) / 24 * nu**2
            return jnp.sum((alpha / below * z / x * (1 + drift * time) - market) ** 2)

        def curvature(theta, *rest):
            value, slope = jax.vmap(jax.value_and_grad(misfit))(theta, *rest)
            return value, slope, jax.vmap(jax.hessian(misfit))(theta, *rest)

        return jax.jit(curvature)


# ---------------------------------------------------------------- panels


class GlucoseMinimalCohort(Model):
    """Bergman's minimal model of glucose for a cohort after an injection: the misfit of all and the gradient by each patient's parameters."""

    kind = "panels"
    dtype = "float32"
    size = dict(patients=64, minutes=180)
    small = dict(patients=3, minutes=10)
    rtol = 1e-3

    def make(self, random, patients, minutes):
        p = np.log([0.03, 0.02, 1.3e-5]) + 0.2 * random.normal(size=(patients, 3))
        t = np.arange(minutes)[:, None]
        insulin = 90 * np.exp(-t / 25.0) * random.uniform(0.7, 1.3, patients)
        glucose = 90 + 180 * np.exp(-t / 40.0) + 5 * random.normal(size=(minutes, patients))
        return p.astype("f4"), insulin.astype("f4"), glucose.astype("f4")

    def rscan(self, patients, minutes):
        def loss(p, insulin, glucose):
            effectiveness, decay, gain = rs.exp(p[:, 0]), rs.exp(p[:, 1]), rs.exp(p[:, 2])

            def step(insulin, seen, g, x):
                error = rs.where(seen > 0, (seen - g) / 10, 0)
                new = g + effectiveness * (90 - g) - x * g
                return dict(g=rs.maximum(new, 20), x=x + gain * insulin - decay * x, error=rs.where(rs.abs(error) < 2, error**2, 4 * rs.abs(error) - 4))

            out = rs.loop(step, over=dict(insulin=insulin, seen=glucose), init=dict(g=glucose[0], x=rs.zeros_like(glucose[0])))
            return rs.sum(rs.mean(out.error, axis=0))

        return rs.value_and_grad(rs.compile(loss))

    def jax(self, patients, minutes):
        import jax, jax.numpy as jnp

        def loss(p, insulin, glucose):
            effectiveness, decay, gain = jnp.exp(p[:, 0]), jnp.exp(p[:, 1]), jnp.exp(p[:, 2])

            def step(carry, row):
                g, x = carry
                insulin, seen = row
                error = jnp.where(seen > 0, (seen - g) / 10, 0)
                new = g + effectiveness * (90 - g) - x * g
                cost = jnp.where(jnp.abs(error) < 2, error**2, 4 * jnp.abs(error) - 4)
                return (jnp.maximum(new, 20), x + gain * insulin - decay * x), cost

            errors = jax.lax.scan(step, (glucose[0], jnp.zeros_like(glucose[0])), (insulin, glucose))[1]
            return jnp.sum(jnp.mean(errors, axis=0))

        return jax.jit(jax.value_and_grad(loss))


class CusumChartPanel(Model):
    """Two-sided CUSUM charts of many machines: means are learnt in a first phase, alarms restart the chart half way up."""

    kind = "panels"
    dtype = "float32"
    size = dict(machines=128, steps=500, phase=60)
    small = dict(machines=3, steps=12, phase=4)

    def make(self, random, machines, steps, phase):
        x = random.normal(size=(steps, machines)) + 1.0 * (np.arange(steps)[:, None] > random.integers(phase, steps, machines))
        return (3.0 * x + random.normal(size=machines)).astype("f4"), np.float32(0.5), np.float32(5.0)

    def rscan(self, machines, steps, phase):
        def chart(x, slack, limit):
            def step(t, x, mean, spread, high, low, alarms, latest):
                learning = t < phase
                n = rs.cast(t + 1, "float32")
                change = x - mean
                mean = rs.where(learning, mean + change / n, mean)
                spread = rs.where(learning, spread + change * (x - mean), spread)
                z = (x - mean) / rs.sqrt(spread / rs.minimum(n, phase) + 1e-6)
                high = rs.where(learning, 0, rs.maximum(high + z - slack, 0))
                low = rs.where(learning, 0, rs.maximum(low - z - slack, 0))
                alarm = (high > limit) | (low > limit)
                return dict(
                    mean=mean,
                    spread=spread,
                    high=rs.where(alarm, limit / 2, high),
                    low=rs.where(alarm, limit / 2, low),
                    alarms=alarms + alarm,
                    latest=rs.where(alarm, t, latest),
                )

            init = dict(mean=np.float32(0), spread=np.float32(0), high=np.float32(0), low=np.float32(0), alarms=0, latest=-1)
            out = rs.loop(step, over=dict(t=rs.arange(steps), x=x), init=init).last
            return out.alarms, out.latest, out.high, out.low, out.mean

        return rs.compile(rs.vmap(chart, (1, None, None)))

    def jax(self, machines, steps, phase):
        import jax, jax.numpy as jnp

        def chart(x, slack, limit):
            def step(carry, row):
                mean, spread, high, low, alarms, last = carry
                t, x = row
                learning = t < phase
                n = (t + 1).astype("float32")
                change = x - mean
                mean = jnp.where(learning, mean + change / n, mean)
                spread = jnp.where(learning, spread + change * (x - mean), spread)
                z = (x - mean) / jnp.sqrt(spread / jnp.minimum(n, phase) + 1e-6)
                high = jnp.where(learning, 0, jnp.maximum(high + z - slack, 0))
                low = jnp.where(learning, 0, jnp.maximum(low - z - slack, 0))
                alarm = (high > limit) | (low > limit)
                high, low = jnp.where(alarm, limit / 2, high), jnp.where(alarm, limit / 2, low)
                return (mean, spread, high, low, alarms + alarm, jnp.where(alarm, t, last)), None

            zero = jnp.float32(0)
            (mean, _, high, low, alarms, last), _ = jax.lax.scan(step, (zero, zero, zero, zero, 0, -1), (jnp.arange(steps), x))
            return alarms, last, high, low, mean

        return jax.jit(jax.vmap(chart, (1, None, None)))
