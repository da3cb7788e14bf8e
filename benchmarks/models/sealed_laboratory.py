"""Loops of working researchers: one program from each of twelve desks."""

import numpy as np

import rscan as rs
from models import Model


class BekkHessian(Model):
    """The likelihood of a diagonal BEKK model of three assets, its gradient and its Hessian by twelve parameters."""

    kind = "laboratory"
    dtype = "float64"
    size = dict(steps=250)
    small = dict(steps=6)
    rtol, atol = 1e-8, 1e-10

    def make(self, random, steps):
        y = random.normal(size=(steps, 3)) @ np.array([[1.0, 0.3, 0.2], [0.0, 0.9, 0.4], [0.0, 0.0, 1.1]])
        theta = np.array([0.4, 0.1, 0.35, 0.08, 0.12, 0.45, 0.25, 0.3, 0.22, 0.9, 0.88, 0.92])
        return theta, y

    def rscan(self, steps):
        def nll(theta, y):
            c = rs.array([[theta[0], 0.0, 0.0], [theta[1], theta[2], 0.0], [theta[3], theta[4], theta[5]]])
            a, b = theta[6:9], theta[9:12]
            intercept, aa, bb = c @ c.T, rs.outer(a, a), rs.outer(b, b)

            def step(e, h):
                fit = rs.linalg.slogdet(h)[1] + e @ rs.linalg.solve(h, e)
                return dict(h=intercept + aa * rs.outer(e, e) + bb * h, fit=fit)

            out = rs.loop(step, over=dict(e=y), init=dict(h=y.T @ y / steps))
            return 0.5 * rs.sum(out.fit)

        @rs.compile
        def all_orders(theta, y):
            value, gradient = rs.value_and_grad(nll)(theta, y)
            return value, gradient, rs.hessian(nll)(theta, y)

        return all_orders

    def jax(self, steps):
        import jax
        import jax.numpy as jnp

        def nll(theta, y):
            c = jnp.zeros((3, 3)).at[jnp.tril_indices(3)].set(theta[:6])
            a, b = theta[6:9], theta[9:12]
            intercept, aa, bb = c @ c.T, jnp.outer(a, a), jnp.outer(b, b)

            def step(h, e):
                fit = jnp.linalg.slogdet(h)[1] + e @ jnp.linalg.solve(h, e)
                return intercept + aa * jnp.outer(e, e) + bb * h, fit

            return 0.5 * jnp.sum(jax.lax.scan(step, y.T @ y / steps, y)[1])

        @jax.jit
        def all_orders(theta, y):
            value, gradient = jax.value_and_grad(nll)(theta, y)
            return value, gradient, jax.hessian(nll)(theta, y)

        return all_orders


class BusEngineReplacement(Model):
    """Rust's nested fixed point: when are engines of buses replaced; the value function converges inside of the likelihood."""

    kind = "laboratory"
    dtype = "float64"
    size = dict(bins=90, months=3000)
    small = dict(bins=6, months=9)
    rtol, atol = 1e-6, 1e-8

    def make(self, random, bins, months):
        mileage = random.integers(0, bins, size=months)
        replaced = (random.uniform(size=months) < 0.02 + 0.2 * mileage / bins).astype(np.int64)
        return np.array([3.0, 9.0]), np.array([0.35, 0.6, 0.05]), mileage, replaced

    def rscan(self, bins, months):
        one, two = np.minimum(np.arange(bins) + 1, bins - 1), np.minimum(np.arange(bins) + 2, bins - 1)

        @rs.compile
        def nll(theta, p, mileage, replaced):
            cost = 0.02 * theta[0] * rs.arange(bins)

            def values(ev):
                later = p[0] * ev + p[1] * ev[one] + p[2] * ev[two]
                keep = -cost + 0.95 * later
                renew = -theta[1] + 0.95 * later[0]
                return keep, renew

            def bellman(ev):
                keep, renew = values(ev)
                new = rs.logaddexp(keep, renew)
                return new, rs.until(rs.max(rs.abs(new - ev)) < 1e-10)

            ev = rs.loop(bellman, init=rs.zeros(bins), n_steps=2000).last
            keep, renew = values(ev)
            gain = renew - keep[mileage]
            return rs.sum(rs.softplus(rs.where(replaced == 1, -gain, gain)))

        return rs.value_and_grad(nll)

    def jax(self, bins, months):
        import jax
        import jax.numpy as jnp

        one, two = jnp.minimum(jnp.arange(bins) + 1, bins - 1), jnp.minimum(jnp.arange(bins) + 2, bins - 1)

        def nll(theta, p, mileage, replaced):
            cost = 0.02 * theta[0] * jnp.arange(bins)

            def values(ev):
                later = p[0] * ev + p[1] * ev[one] + p[2] * ev[two]
                return -cost + 0.95 * later, -theta[1] + 0.95 * later[0]

            def bellman(carry):
                k, _, ev = carry
                new = jnp.logaddexp(*values(ev))
                return k + 1, jnp.max(jnp.abs(new - ev)), new

            ev = jax.lax.while_loop(lambda c: (c[0] < 2000) & (c[1] >= 1e-10), bellman, (0, jnp.inf, jnp.zeros(bins)))[2]
            keep, renew = values(ev)
            gain = renew - keep[mileage]
            value = jnp.sum(jax.nn.softplus(jnp.where(replaced == 1, -gain, gain)))
            return value, value

        @jax.jit
        def both(theta, p, mileage, replaced):  # forwards: two parameters, and reverse mode takes no while_loop
            gradient, value = jax.jacfwd(nll, has_aux=True)(theta, p, mileage, replaced)
            return value, gradient

        return both


class LiftedRoughVolatility(Model):
    """Rough Heston lifted to eight factors: option prices by given draws, their misfit to a market, and its gradient."""

    kind = "laboratory"
    dtype = "float32"
    size = dict(steps=60, paths=256)
    small = dict(steps=5, paths=4)
    rtol, atol = 2e-4, 1e-5

    def make(self, random, steps, paths):
        p = np.array([0.3, 0.25, -0.7, 0.04], dtype=np.float32)  # reversion, volatility of variance, correlation, variance
        draws = random.normal(size=(steps, 2, paths)).astype(np.float32)
        strikes = np.array([0.8, 0.9, 1.0, 1.1, 1.2], dtype=np.float32)
        market = np.array([0.22, 0.14, 0.08, 0.04, 0.015], dtype=np.float32)
        return p, draws, strikes, market

    def factors(self):
        speeds = np.geomspace(0.05, 400.0, 8)
        weights = speeds**0.4 / np.sum(speeds**0.4) * 3.0
        return speeds.astype(np.float32), weights.astype(np.float32)

    def rscan(self, steps, paths):
        speeds, weights = self.factors()
        dt = 1.0 / steps

        @rs.compile
        def misfit(p, draws, strikes, market):
            reversion, nu, rho, v0 = p[0], p[1], p[2], p[3]

            def step(z, u, s):
                v = rs.maximum(v0 + weights @ u, 1e-5)
                vol = rs.sqrt(v * dt)
                w = rho * z[0] + rs.sqrt(1 - rho * rho) * z[1]
                s = s - 0.5 * v * dt + vol * z[0]
                u = (u - reversion * v * dt + nu * vol * w) / (1 + speeds * dt)[:, None]
                return dict(u=u, s=s)

            u0 = rs.zeros((8, paths), dtype="float32")
            out = rs.loop(step, over=dict(z=draws), init=dict(u=u0, s=rs.zeros(paths, dtype="float32")))
            prices = rs.mean(rs.maximum(rs.exp(out.last.s)[None, :] - strikes[:, None], 0.0), axis=1)
            return rs.sum((prices - market) ** 2)

        return rs.value_and_grad(misfit)

    def jax(self, steps, paths):
        import jax
        import jax.numpy as jnp

        speeds, weights = self.factors()
        dt = 1.0 / steps

        def misfit(p, draws, strikes, market):
            reversion, nu, rho, v0 = p

            def step(carry, z):
                u, s = carry
                v = jnp.maximum(v0 + weights @ u, 1e-5)
                vol = jnp.sqrt(v * dt)
                w = rho * z[0] + jnp.sqrt(1 - rho * rho) * z[1]
                s = s - 0.5 * v * dt + vol * z[0]
                u = (u - reversion * v * dt + nu * vol * w) / (1 + speeds * dt)[:, None]
                return (u, s), None

            start = jnp.zeros((8, paths), jnp.float32), jnp.zeros(paths, jnp.float32)
            (_, s), _ = jax.lax.scan(step, start, draws)
            prices = jnp.mean(jnp.maximum(jnp.exp(s)[None, :] - strikes[:, None], 0.0), axis=1)
            return jnp.sum((prices - market) ** 2)

        return jax.jit(jax.value_and_grad(misfit))


class LimitOrderBook(Model):
    """A matching engine: limit orders, market orders and cancellations walk the levels of a book of integers."""

    kind = "laboratory"
    dtype = "int64"
    size = dict(messages=3000, levels=100)
    small = dict(messages=25, levels=10)

    def make(self, random, messages, levels):
        kind = random.choice(3, size=messages, p=[0.6, 0.15, 0.25])  # limit, market, cancel
        side = random.integers(0, 2, size=messages)  # buy, sell
        away = random.geometric(0.15, size=messages) - 3
        middle = levels // 2 + np.round(levels / 10 * np.sin(np.arange(messages) / 300)).astype(np.int64)
        price = np.clip(np.where(side == 0, middle - away, middle + away), 0, levels - 1)
        return kind, side, price, random.integers(1, 60, size=messages)

    # depth[0] are offers, at their price; depth[1] are bids, at levels - 1 - price: the best level is the lowest of both.

    def rscan(self, messages, levels):
        top = levels - 1

        @rs.compile
        def run(kind, side, price, size):
            def message(kind, side, price, size, depth, best, cash):
                mine = rs.where(side == 0, price, top - price)
                limit = rs.where(kind == 1, top, mine)
                left = rs.where(kind == 2, 0, size)

                def take(book, level, left, paid):
                    some = rs.minimum(left, book[level])
                    book = book.at[level].add(-some)
                    left = left - some
                    paid = paid + some * rs.where(side == 0, level, top - level)
                    level = level + (left > 0)
                    return dict(book=book, level=level, left=left, paid=paid), rs.until((left == 0) | (level > limit))

                out = rs.loop(
                    take,
                    init=dict(book=depth[side], level=best[side], left=left, paid=0),
                    n_steps=rs.where((left > 0) & (best[side] <= limit), levels, 0),
                ).last
                rest = rs.where(kind == 0, out.left, 0)
                own = depth[1 - side, top - mine]
                gone = rs.where(kind == 2, rs.minimum(size, own), 0)
                depth = depth.at[side].set(out.book).at[1 - side, top - mine].add(rest - gone)
                other = rs.where(rest > 0, rs.minimum(best[1 - side], top - mine), best[1 - side])
                best = best.at[side].set(rs.minimum(out.level, top)).at[1 - side].set(other)
                return dict(depth=depth, best=best, cash=cash + out.paid, traded=left - out.left)

            out = rs.loop(
                message,
                over=dict(kind=kind, side=side, price=price, size=size),
                init=dict(depth=rs.zeros((2, levels), dtype="int64"), best=rs.full(2, top, dtype="int64"), cash=0),
            )
            return out.last.depth, out.best, out.cash, out.traded

        return run

    def jax(self, messages, levels):
        import jax
        import jax.numpy as jnp

        top = levels - 1

        def message(carry, row):
            depth, best, cash = carry
            kind, side, price, size = row
            mine = jnp.where(side == 0, price, top - price)
            limit = jnp.where(kind == 1, top, mine)
            wanted = jnp.where(kind == 2, 0, size)

            def take(state):
                book, level, left, paid = state
                some = jnp.minimum(left, book[level])
                left = left - some
                paid = paid + some * jnp.where(side == 0, level, top - level)
                return book.at[level].add(-some), level + (left > 0), left, paid

            book, level, left, paid = jax.lax.while_loop(
                lambda s: (s[2] > 0) & (s[1] <= limit), take, (depth[side], best[side], wanted, jnp.int64(0))
            )
            rest = jnp.where(kind == 0, left, 0)
            gone = jnp.where(kind == 2, jnp.minimum(size, depth[1 - side, top - mine]), 0)
            depth = depth.at[side].set(book).at[1 - side, top - mine].add(rest - gone)
            other = jnp.where(rest > 0, jnp.minimum(best[1 - side], top - mine), best[1 - side])
            best = best.at[side].set(jnp.minimum(level, top)).at[1 - side].set(other)
            cash = cash + paid
            return (depth, best, cash), (best, cash, wanted - left)

        @jax.jit
        def run(kind, side, price, size):
            start = jnp.zeros((2, levels), jnp.int64), jnp.full(2, top, jnp.int64), jnp.int64(0)
            (depth, _, _), rows = jax.lax.scan(message, start, (kind, side, price, size))
            return depth, *rows

        return run


class TestTimeTraining(Model):
    """A layer whose state is a small network, trained by a gradient step at each token; the outer loss has its gradient, too."""

    kind = "laboratory"
    dtype = "float32"
    size = dict(batch=4, tokens=64, width=16)
    small = dict(batch=2, tokens=4, width=3)
    rtol, atol = 1e-3, 1e-5
    __test__ = False  # no test of pytest's

    def make(self, random, batch, tokens, width):
        def normal(*shape):
            return (random.normal(size=shape) / np.sqrt(width)).astype(np.float32)

        p = {name: normal(width, width) for name in ("query", "key", "value", "out", "start")}
        p |= dict(bias=np.zeros(width, np.float32), scale=np.ones(width, np.float32), rate=normal(width))
        x = random.normal(size=(batch, tokens, width)).astype(np.float32)
        return p, x, np.tanh(np.roll(x, 1, axis=1))

    def rscan(self, batch, tokens, width):
        def normalised(z):
            z = z - rs.mean(z)
            return z / rs.sqrt(rs.mean(z * z) + 1e-5)

        def layer(p, x):
            def predict(inner, k):
                return k + p["scale"] * normalised(k @ inner["w"] + inner["b"])

            def reconstruction(inner, k, v):
                return 0.5 * rs.sum((predict(inner, k) - v) ** 2)

            def step(q, k, v, rate, inner):
                slope = rs.grad(reconstruction)(inner, k, v)
                inner = {name: inner[name] - rate * slope[name] for name in inner}
                return dict(inner=inner, z=predict(inner, q))

            rate = 0.2 * rs.sigmoid(x @ p["rate"])
            over = dict(q=x @ p["query"], k=x @ p["key"], v=x @ p["value"], rate=rate)
            out = rs.loop(step, over=over, init=dict(inner={"w": p["start"], "b": p["bias"]}))
            return out.z @ p["out"]

        @rs.compile
        def loss(p, x, y):
            return rs.mean((rs.vmap(layer, in_axes=(None, 0))(p, x) - y) ** 2)

        return rs.value_and_grad(loss)

    def jax(self, batch, tokens, width):
        import jax
        import jax.numpy as jnp

        def normalised(z):
            z = z - jnp.mean(z)
            return z / jnp.sqrt(jnp.mean(z * z) + 1e-5)

        def layer(p, x):
            def predict(inner, k):
                return k + p["scale"] * normalised(k @ inner["w"] + inner["b"])

            def reconstruction(inner, k, v):
                return 0.5 * jnp.sum((predict(inner, k) - v) ** 2)

            def step(inner, row):
                q, k, v, rate = row
                slope = jax.grad(reconstruction)(inner, k, v)
                inner = jax.tree.map(lambda w, g: w - rate * g, inner, slope)
                return inner, predict(inner, q)

            rate = 0.2 * jax.nn.sigmoid(x @ p["rate"])
            rows = x @ p["query"], x @ p["key"], x @ p["value"], rate
            return jax.lax.scan(step, {"w": p["start"], "b": p["bias"]}, rows)[1] @ p["out"]

        def loss(p, x, y):
            return jnp.mean((jax.vmap(layer, (None, 0))(p, x) - y) ** 2)

        return jax.jit(jax.value_and_grad(loss))


class PonderingNetwork(Model):
    """Adaptive computation time: for each token the network thinks until it halts, at most eight times."""

    kind = "laboratory"
    dtype = "float32"
    size = dict(batch=8, tokens=24, width=24)
    small = dict(batch=2, tokens=3, width=4)
    rtol, atol = 5e-4, 1e-5

    def make(self, random, batch, tokens, width):
        def normal(*shape):
            return (random.normal(size=shape) / np.sqrt(width)).astype(np.float32)

        p = dict(first=normal(width), x=normal(width, width), h=normal(width, width), b=normal(width), halt=normal(width))
        p |= dict(bias=np.float32(-0.5), out=normal(width))
        x = random.normal(size=(batch, tokens, width)).astype(np.float32)
        return p, x, np.cumsum(x[:, :, 0], axis=1).astype(np.float32) / np.float32(3)

    def rscan(self, batch, tokens, width):
        most = 8

        def network(p, x):
            def token(x, h):
                seen = x @ p["x"] + p["b"]

                def think(n, s, total, mean):
                    s = rs.tanh(seen + rs.where(n == 0, p["first"], 0.0) + s @ p["h"])
                    share = rs.sigmoid(s @ p["halt"] + p["bias"])
                    last = (total + share > 0.99) | (n == most - 1)
                    share = rs.where(last, 1 - total, share)
                    return dict(s=s, total=total + share, mean=mean + share * s, share=share), rs.until(last)

                out = rs.loop(
                    think,
                    over=dict(n=rs.arange(most)),
                    init=dict(s=h, total=np.float32(0), mean=rs.zeros_like(h)),
                )
                ponder = rs.cast(out.steps, "float32") + out.share[-1]
                return dict(h=out.last.mean, ponder=ponder)

            out = rs.loop(token, over=dict(x=x), init=dict(h=rs.zeros(width, dtype="float32")))
            return out.h @ p["out"], rs.mean(out.ponder)

        @rs.compile
        def loss(p, x, y):
            guess, ponder = rs.vmap(network, in_axes=(None, 0))(p, x)
            return rs.mean((guess - y) ** 2) + 0.01 * rs.mean(ponder)

        return rs.value_and_grad(loss)

    def jax(self, batch, tokens, width):
        import jax
        import jax.numpy as jnp

        most = 8

        def network(p, x):
            def token(h, x):
                seen = x @ p["x"] + p["b"]

                def think(carry, n):
                    s, total, mean, done, steps, share = carry
                    new = jnp.tanh(seen + jnp.where(n == 0, p["first"], 0.0) + s @ p["h"])
                    part = jax.nn.sigmoid(new @ p["halt"] + p["bias"])
                    last = (total + part > 0.99) | (n == most - 1)
                    part = jnp.where(last, 1 - total, part)
                    after = new, total + part, mean + part * new, last, steps + 1, part
                    return jax.tree.map(lambda a, b: jnp.where(done, a, b), carry, after), None

                zero = jnp.float32(0)
                start = h, zero, jnp.zeros_like(h), jnp.array(False), zero, zero
                (_, _, mean, _, steps, share), _ = jax.lax.scan(think, start, jnp.arange(most))
                return mean, (mean, steps + share)

            _, (h, ponder) = jax.lax.scan(token, jnp.zeros(width, jnp.float32), x)
            return h @ p["out"], jnp.mean(ponder)

        def loss(p, x, y):
            guess, ponder = jax.vmap(network, (None, 0))(p, x)
            return jnp.mean((guess - y) ** 2) + 0.01 * jnp.mean(ponder)

        return jax.jit(jax.value_and_grad(loss))


class ImuPreintegration(Model):
    """A gyroscope and an accelerometer between two key frames: the motion, its covariance, its Jacobian by the biases."""

    kind = "laboratory"
    dtype = "float64"
    size = dict(steps=400)
    small = dict(steps=5)
    rtol, atol = 1e-9, 1e-11

    def make(self, random, steps):
        t = np.arange(steps)[:, None] * 0.005
        gyro = np.sin(t * np.array([1.0, 2.0, 0.7])) + 0.02 * random.normal(size=(steps, 3))
        force = np.cos(t * np.array([1.5, 0.4, 0.9])) + np.array([0, 0, 9.81]) + 0.1 * random.normal(size=(steps, 3))
        return np.array([0.01, -0.02, 0.005, 0.1, 0.05, -0.08]), gyro, force

    def rscan(self, steps):
        dt = 0.005
        noise = np.diag(np.repeat([1e-6, 4e-4, 1e-8], 3))

        def skew(v):
            return rs.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])

        def rotation(v):
            angle = rs.sqrt(v @ v + 1e-20)
            k = skew(v / angle)
            return rs.eye(3) + rs.sin(angle) * k + (1 - rs.cos(angle)) * (k @ k)

        def motion(bias, gyro, force):
            def step(w, a, r, v, p, cov):
                turn, a = rotation((w - bias[:3]) * dt), a - bias[3:]
                ra = r @ skew(a)
                zero, one = rs.zeros((3, 3)), rs.eye(3)
                f = rs.block([[turn.T, zero, zero], [-ra * dt, one, zero], [-0.5 * ra * dt**2, one * dt, one]])
                pushed = r @ a
                p = p + v * dt + 0.5 * pushed * dt**2
                return dict(r=r @ turn, v=v + pushed * dt, p=p, cov=f @ cov @ f.T + noise)

            init = dict(r=rs.eye(3), v=rs.zeros(3), p=rs.zeros(3), cov=rs.zeros((9, 9)))
            end = rs.loop(step, over=dict(w=gyro, a=force), init=init).last
            moved = rs.concatenate([rs.ravel(end.r), end.v, end.p])
            return moved, (moved, end.cov)

        return rs.compile(rs.jacobian(motion, has_aux=True))

    def jax(self, steps):
        import jax
        import jax.numpy as jnp

        dt = 0.005
        noise = np.diag(np.repeat([1e-6, 4e-4, 1e-8], 3))

        def skew(v):
            return jnp.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])

        def rotation(v):
            angle = jnp.sqrt(v @ v + 1e-20)
            k = skew(v / angle)
            return jnp.eye(3) + jnp.sin(angle) * k + (1 - jnp.cos(angle)) * (k @ k)

        def motion(bias, gyro, force):
            def step(carry, row):
                r, v, p, cov = carry
                w, a = row
                turn, a = rotation((w - bias[:3]) * dt), a - bias[3:]
                ra = r @ skew(a)
                zero, one = jnp.zeros((3, 3)), jnp.eye(3)
                f = jnp.block([[turn.T, zero, zero], [-ra * dt, one, zero], [-0.5 * ra * dt**2, one * dt, one]])
                pushed = r @ a
                p = p + v * dt + 0.5 * pushed * dt**2
                return (r @ turn, v + pushed * dt, p, f @ cov @ f.T + noise), None

            start = jnp.eye(3), jnp.zeros(3), jnp.zeros(3), jnp.zeros((9, 9))
            (r, v, p, cov), _ = jax.lax.scan(step, start, (gyro, force))
            moved = jnp.concatenate([r.ravel(), v, p])
            return moved, (moved, cov)

        return jax.jit(jax.jacfwd(motion, has_aux=True))


class CostasGardnerReceiver(Model):
    """A receiver of QPSK: Gardner's loop finds the clock between the samples, Costas's the phase of the carrier."""

    kind = "laboratory"
    dtype = "float64"
    size = dict(symbols=3000)
    small = dict(symbols=12)
    rtol, atol = 1e-8, 1e-10

    def make(self, random, symbols):
        sent = (1 - 2 * random.integers(0, 2, size=(symbols + 20, 2))) / np.sqrt(2)
        t = np.arange(4 * symbols + 40) / (4.0 * (1 + 2e-5)) + 0.13  # a slow clock, in symbols
        shape = np.zeros((t.size, 2))
        for k in range(-6, 7):  # raised cosines
            n = np.round(t).astype(int) + k
            d = t - n
            pulse = np.sinc(d) * np.cos(np.pi * 0.35 * d) / (1 - (0.7 * d) ** 2 + 1e-9)
            shape += np.where(((n >= 0) & (n < len(sent)))[:, None], sent[np.clip(n, 0, len(sent) - 1)], 0.0) * pulse[:, None]
        turned = (shape[:, 0] + 1j * shape[:, 1]) * np.exp(1j * (0.4 + 0.002 * np.arange(t.size)))
        turned = turned + 0.03 * (random.normal(size=t.size) + 1j * random.normal(size=t.size))
        return turned.real.copy(), turned.imag.copy()

    def rscan(self, symbols):
        @rs.compile
        def receive(re, im):
            def at(t):
                i = rs.cast(rs.floor(t), "int64")
                f = t - i
                return (1 - f) * re[i] + f * re[i + 1], (1 - f) * im[i] + f * im[i + 1]

            def step(t, period, phase, speed, before):
                (yr, yi), (mr, mi) = at(t), at(t - 0.5 * period)
                timing = (before[0] - yr) * mr + (before[1] - yi) * mi
                c, s = rs.cos(phase), rs.sin(phase)
                zr, zi = c * yr + s * yi, c * yi - s * yr
                error = rs.sign(zr) * zi - rs.sign(zi) * zr
                speed = speed + 0.002 * error
                period = rs.clip(period + 0.0005 * timing, 3.98, 4.02)
                bits = (zr < 0) * 2 + (zi < 0)
                return dict(
                    t=t + period + 0.02 * timing,
                    period=period,
                    phase=phase + speed + 0.06 * error,
                    speed=speed,
                    before=(yr, yi),
                    zr=zr,
                    zi=zi,
                    bits=bits,
                )

            out = rs.loop(step, init=dict(t=8.0, period=4.0, phase=0.0, speed=0.0, before=(0.0, 0.0)), n_steps=symbols)
            return out.zr, out.zi, out.bits, out.last.period, out.last.speed

        return receive

    def jax(self, symbols):
        import jax
        import jax.numpy as jnp

        @jax.jit
        def receive(re, im):
            def at(t):
                i = jnp.floor(t).astype(jnp.int64)
                f = t - i
                return (1 - f) * re[i] + f * re[i + 1], (1 - f) * im[i] + f * im[i + 1]

            def step(carry, _):
                t, period, phase, speed, before = carry
                (yr, yi), (mr, mi) = at(t), at(t - 0.5 * period)
                timing = (before[0] - yr) * mr + (before[1] - yi) * mi
                c, s = jnp.cos(phase), jnp.sin(phase)
                zr, zi = c * yr + s * yi, c * yi - s * yr
                error = jnp.sign(zr) * zi - jnp.sign(zi) * zr
                speed = speed + 0.002 * error
                period = jnp.clip(period + 0.0005 * timing, 3.98, 4.02)
                after = t + period + 0.02 * timing, period, phase + speed + 0.06 * error, speed, (yr, yi)
                return after, (zr, zi, (zr < 0) * 2 + (zi < 0))

            start = 8.0, 4.0, 0.0, 0.0, (0.0, 0.0)
            (_, period, _, speed, _), (zr, zi, bits) = jax.lax.scan(step, start, None, length=symbols)
            return zr, zi, bits, period, speed

        return receive


class Sha256Message(Model):
    """SHA-256 of one long message: a schedule of words and 64 rounds for each block, in 32 bits."""

    kind = "laboratory"
    dtype = "uint32"
    size = dict(blocks=40)
    small = dict(blocks=2)

    def constants(self):
        primes = [n for n in range(2, 312) if all(n % k for k in range(2, n))]
        roots = [int((n ** (1 / 3) % 1) * 2**32) for n in primes[:64]]
        start = [int((n**0.5 % 1) * 2**32) for n in primes[:8]]
        return np.array(roots, dtype=np.uint32), np.array(start, dtype=np.uint32)

    def make(self, random, blocks):
        return (random.integers(0, 2**32, size=(blocks, 16), dtype=np.uint32),)

    def rscan(self, blocks):
        keys, start = self.constants()

        def turn(x, n):
            return (x >> n) | (x << (32 - n))

        def schedule(before):
            a, b, c, d = before
            s0 = turn(b, 7) ^ turn(b, 18) ^ (b >> 3)
            s1 = turn(d, 17) ^ turn(d, 19) ^ (d >> 10)
            return a + s0 + c + s1

        def rounds(w, key, s):
            a, b, c, d, e, f, g, h = s
            s1 = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)
            t1 = h + s1 + ((e & f) ^ (~e & g)) + key + w
            s0 = turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)
            t2 = s0 + ((a & b) ^ (a & c) ^ (b & c))
            return dict(s=(t1 + t2, a, b, c, d + t1, e, f, g))

        @rs.compile
        def digest(message):
            def block(words, h):
                more = rs.loop(schedule, init=rs.taps(words, -16, -15, -7, -2), n_steps=48)
                w = rs.concatenate([words, more])
                s = rs.loop(rounds, over=dict(w=w, key=keys), init=dict(s=tuple(h[i] for i in range(8)))).last.s
                return h + rs.stack(s)

            return rs.loop(block, over=message, init=start)[-1]

        return digest

    def jax(self, blocks):
        import jax
        import jax.numpy as jnp

        keys, start = self.constants()

        def turn(x, n):
            return (x >> n) | (x << (32 - n))

        def schedule(w, _):
            b, d = w[1], w[14]
            s0 = turn(b, 7) ^ turn(b, 18) ^ (b >> 3)
            s1 = turn(d, 17) ^ turn(d, 19) ^ (d >> 10)
            new = w[0] + s0 + w[9] + s1
            return jnp.concatenate([w[1:], new[None]]), new

        def rounds(s, row):
            w, key = row
            a, b, c, d, e, f, g, h = s
            s1 = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)
            t1 = h + s1 + ((e & f) ^ (~e & g)) + key + w
            s0 = turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)
            t2 = s0 + ((a & b) ^ (a & c) ^ (b & c))
            return (t1 + t2, a, b, c, d + t1, e, f, g), None

        def block(h, words):
            w = jnp.concatenate([words, jax.lax.scan(schedule, words, None, length=48)[1]])
            s, _ = jax.lax.scan(rounds, tuple(h), (w, jnp.array(keys)))
            return h + jnp.stack(s), None

        return jax.jit(lambda message: jax.lax.scan(block, jnp.array(start), message)[0])


class FmIndexSeeds(Model):
    """Reads are searched backwards in an FM index as far as they match, and located by walking to a sampled suffix."""

    kind = "laboratory"
    dtype = "int32"
    size = dict(genome=4000, reads=256, length=40)
    small = dict(genome=60, reads=3, length=8)

    def make(self, random, genome, reads, length):
        text = np.append(random.integers(1, 5, size=genome), 0)  # 0 ends the text
        suffixes = np.array(sorted(range(genome + 1), key=lambda i: bytes(text[i:].astype(np.uint8))))
        last = text[suffixes - 1]
        ranks = np.vstack([np.zeros((1, 5), dtype=int), np.cumsum(last[:, None] == np.arange(5), axis=0)])
        first = np.concatenate([[0], np.cumsum(np.bincount(text, minlength=5))[:-1]])
        places = random.integers(0, genome - length, size=reads)
        found = text[places[:, None] + np.arange(length)]
        found = np.where(random.uniform(size=found.shape) < 0.03, random.integers(1, 5, size=found.shape), found)
        sampled = np.where(suffixes % 8 == 0, suffixes, -1)
        return tuple(v.astype(np.int32) for v in (found, last, ranks, first, sampled))

    def rscan(self, genome, reads, length):
        def seed(read, last, ranks, first, sampled):
            def extend(low, high, place):
                c = read[place]
                a, b = first[c] + ranks[low, c], first[c] + ranks[high, c]
                found = a < b
                place = rs.where(found, place - 1, place)
                state = dict(low=rs.where(found, a, low), high=rs.where(found, b, high), place=place)
                return state, rs.until(~found | (place < 0))

            init = dict(low=np.int32(0), high=np.int32(genome + 1), place=np.int32(length - 1))
            hit = rs.loop(extend, init=init, n_steps=length).last

            def walk(row, steps):
                c = last[row]
                row = first[c] + ranks[row, c]
                return dict(row=row, steps=steps + 1), rs.until(sampled[row] >= 0)

            n = rs.where(sampled[hit.low] >= 0, 0, 8)
            end = rs.loop(walk, init=dict(row=hit.low, steps=np.int32(0)), n_steps=n).last
            return hit.high - hit.low, hit.place + 1, sampled[end.row] + end.steps

        return rs.compile(rs.vmap(seed, in_axes=(0, None, None, None, None)))

    def jax(self, genome, reads, length):
        import jax
        import jax.numpy as jnp

        def seed(read, last, ranks, first, sampled):
            def extend(state):
                low, high, place, _ = state
                c = read[place]
                a, b = first[c] + ranks[low, c], first[c] + ranks[high, c]
                found = a < b
                return jnp.where(found, a, low), jnp.where(found, b, high), jnp.where(found, place - 1, place), found

            start = jnp.int32(0), jnp.int32(genome + 1), jnp.int32(length - 1), jnp.array(True)
            low, high, place, _ = jax.lax.while_loop(lambda s: s[3] & (s[2] >= 0), extend, start)

            def walk(state):
                row, steps = state
                c = last[row]
                return first[c] + ranks[row, c], steps + 1

            row, steps = jax.lax.while_loop(lambda s: sampled[s[0]] < 0, walk, (low, jnp.int32(0)))
            return high - low, place + 1, sampled[row] + steps

        return jax.jit(jax.vmap(seed, (0, None, None, None, None)))


class FirstArrivalTomography(Model):
    """Travel times by fast sweeping over a grid of slowness, their misfit at the surface, and its gradient by all cells."""

    kind = "laboratory"
    dtype = "float64"
    size = dict(cells=32)
    small = dict(cells=5)
    rtol, atol = 1e-8, 1e-10

    def make(self, random, cells):
        slowness = 1.0 + 0.3 * random.uniform(size=(cells, cells)) + 0.5 * np.linspace(1, 0, cells)[:, None]
        seen = 1.25 * np.hypot(np.arange(cells) - cells // 3, cells - 2)
        return slowness, seen

    def rscan(self, cells):
        far = 1e5

        def sweep(t, slowness):
            def row(below, cost, old, above):
                def cell(down, up, now, right, s, left):
                    a, b = rs.minimum(down, up), rs.minimum(left, right)
                    apart = rs.abs(a - b)
                    near = apart < s
                    root = rs.sqrt(2 * s * s - rs.where(near, apart, 0.0) ** 2)
                    new = rs.where(near, 0.5 * (a + b + root), rs.minimum(a, b) + s)
                    return dict(left=rs.minimum(now, new))

                right = rs.append(old[1:], far)
                over = dict(down=above, up=below, now=old, right=right, s=cost)
                return dict(above=rs.loop(cell, over=over, init=dict(left=far)).left)

            below = rs.concatenate([t[1:], rs.full((1, cells), far)])
            over = dict(below=below, cost=slowness, old=t)
            return rs.loop(row, over=over, init=dict(above=rs.full(cells, far))).above

        @rs.compile
        def misfit(slowness, seen):
            def round_(t):
                for axes in ((), (1,), (0, 1), (0,)):
                    t = rs.flip(sweep(rs.flip(t, axes), rs.flip(slowness, axes)), axes)
                return t

            start = rs.full((cells, cells), far).at[cells - 2, cells // 3].set(0.0)
            t = rs.loop(round_, init=start, n_steps=2)[-1]
            return 0.5 * rs.sum((t[0] - seen) ** 2)

        return rs.value_and_grad(misfit)

    def jax(self, cells):
        import jax
        import jax.numpy as jnp

        far = 1e5

        def sweep(t, slowness):
            def row(above, rows):
                below, cost, old = rows

                def cell(left, row):
                    down, up, now, right, s = row
                    a, b = jnp.minimum(down, up), jnp.minimum(left, right)
                    apart = jnp.abs(a - b)
                    near = apart < s
                    root = jnp.sqrt(2 * s * s - jnp.where(near, apart, 0.0) ** 2)
                    new = jnp.minimum(now, jnp.where(near, 0.5 * (a + b + root), jnp.minimum(a, b) + s))
                    return new, new

                new = jax.lax.scan(cell, far, (above, below, old, jnp.append(old[1:], far), cost))[1]
                return new, new

            below = jnp.concatenate([t[1:], jnp.full((1, cells), far)])
            return jax.lax.scan(row, jnp.full(cells, far), (below, slowness, t))[1]

        def misfit(slowness, seen):
            def round_(t, _):
                for axes in ((), (1,), (0, 1), (0,)):
                    t = jnp.flip(sweep(jnp.flip(t, axes), jnp.flip(slowness, axes)), axes)
                return t, None

            start = jnp.full((cells, cells), far).at[cells - 2, cells // 3].set(0.0)
            t = jax.lax.scan(round_, start, None, length=2)[0]
            return 0.5 * jnp.sum((t[0] - seen) ** 2)

        return jax.jit(jax.value_and_grad(misfit))


class ImaginaryTimeMps(Model):
    """The ground state of an infinite chain of spins in a field, as a matrix product state: gates and truncated SVDs."""

    kind = "laboratory"
    dtype = "float64"
    size = dict(steps=60, bond=8)
    small = dict(steps=4, bond=2)
    rtol, atol = 1e-7, 1e-9

    def make(self, random, steps, bond):
        x, z, one = np.array([[0.0, 1], [1, 0]]), np.diag([1.0, -1]), np.eye(2)
        energy = -np.kron(z, z) - 0.5 * 1.2 * (np.kron(x, one) + np.kron(one, x))
        a, b = random.normal(size=(2, bond, 2, bond))
        start = np.exp(-np.arange(bond) / 1.0)
        return energy, a, b, start / np.linalg.norm(start)

    def rscan(self, steps, bond):
        @rs.compile
        def cool(energy, a, b, start):
            gate = rs.reshape(rs.linalg.expm(-0.05 * energy), (2, 2, 2, 2))
            h = rs.reshape(energy, (2, 2, 2, 2))

            def update(left, a, b):  # Hastings' form: nothing is divided by a Schmidt value
                pair = rs.einsum("ijkl,xkm,mly->xijy", gate, a, b)
                theta = left[:, None, None, None] * pair
                u, s, v = rs.linalg.svd(rs.reshape(theta, (2 * bond, 2 * bond)))
                s = s[:bond] / rs.sqrt(rs.sum(s[:bond] ** 2))
                b = rs.reshape(v[:bond], (bond, 2, bond))
                a = rs.einsum("xijy,zjy->xiz", pair, b)
                theta = theta / rs.sqrt(rs.sum(theta**2))
                e = rs.einsum("xijy,ijkl,xkly->", theta, h, theta)
                return a / rs.sqrt(rs.sum(a**2) / bond), b, s, e

            def step(a, b, first, second):
                a, b, second, e1 = update(first, a, b)
                b, a, first, e2 = update(second, b, a)
                entropy = -rs.sum(first**2 * rs.log(first**2 + 1e-30))
                return dict(a=a, b=b, first=first, second=second, e=0.5 * (e1 + e2), entropy=entropy)

            out = rs.loop(step, init=dict(a=a, b=b, first=start, second=start), n_steps=steps)
            return out.e, out.entropy, out.last.first

        return cool

    def jax(self, steps, bond):
        import jax
        import jax.numpy as jnp

        @jax.jit
        def cool(energy, a, b, start):
            gate = jax.scipy.linalg.expm(-0.05 * energy).reshape(2, 2, 2, 2)
            h = energy.reshape(2, 2, 2, 2)

            def update(left, a, b):
                pair = jnp.einsum("ijkl,xkm,mly->xijy", gate, a, b)
                theta = left[:, None, None, None] * pair
                _, s, v = jnp.linalg.svd(theta.reshape(2 * bond, 2 * bond), full_matrices=False)
                s = s[:bond] / jnp.sqrt(jnp.sum(s[:bond] ** 2))
                b = v[:bond].reshape(bond, 2, bond)
                a = jnp.einsum("xijy,zjy->xiz", pair, b)
                theta = theta / jnp.sqrt(jnp.sum(theta**2))
                e = jnp.einsum("xijy,ijkl,xkly->", theta, h, theta)
                return a / jnp.sqrt(jnp.sum(a**2) / bond), b, s, e

            def step(carry, _):
                a, b, first, second = carry
                a, b, second, e1 = update(first, a, b)
                b, a, first, e2 = update(second, b, a)
                entropy = -jnp.sum(first**2 * jnp.log(first**2 + 1e-30))
                return (a, b, first, second), (0.5 * (e1 + e2), entropy)

            (_, _, first, _), (e, entropy) = jax.lax.scan(step, (a, b, start, start), None, length=steps)
            return e, entropy, first

        return cool
