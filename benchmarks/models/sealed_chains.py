"""Markets, chains, texts and nets: lattices, matrix exponentials, alignments, stacks, experts, populations."""

import numpy as np

import rscan as rs
from models import Model


class RatingMigration(Model):
    """Counts of moves between credit ratings: each year's matrix is the exponential of a generator; gradient by intensities."""

    kind = "continuous-time chains"
    dtype = "float64"
    size = dict(years=40, ratings=8)
    small = dict(years=3, ratings=3)

    def make(self, random, years, ratings):
        distance = np.abs(np.arange(ratings)[:, None] - np.arange(ratings))
        p = dict(log_rate=-1.0 - 1.2 * distance[:-1] + 0.1 * random.normal(size=(ratings - 1, ratings)), up=-0.1, down=0.3)
        counts = random.poisson(200.0 * np.exp(-1.5 * distance), size=(years, ratings, ratings)).astype("d")
        return p, random.normal(size=years), counts

    def rscan(self, years, ratings):
        @rs.compile
        def nll(p, economy, counts):
            row, column = np.arange(ratings)[:, None], np.arange(ratings)
            off = rs.where(row[:-1] == column, 0.0, rs.exp(p["log_rate"]))
            off = rs.concatenate([off, rs.zeros((1, ratings))])  # the last rating is default

            def step(z, moved, book):
                stressed = off * rs.where(column > row, rs.exp(p["down"] * z), rs.exp(p["up"] * z))
                generator = stressed - rs.diag(rs.sum(stressed, axis=1))
                year = rs.linalg.expm(generator)
                book = book @ year
                new = 1.0 - book[-1]
                book = rs.concatenate([book[:-1] / new, rs.zeros(1)])  # who defaults is replaced
                return dict(book=book, ll=rs.sum(moved[:-1] * rs.log(year[:-1])), default=1.0 - new)

            even = rs.concatenate([rs.ones(ratings - 1) / (ratings - 1), rs.zeros(1)])
            out = rs.loop(step, over=dict(z=economy, moved=counts), init=dict(book=even))
            return -rs.sum(out.ll) / 1000 + 10 * rs.var(out.default), out.default

        return rs.value_and_grad(nll, has_aux=True)

    def jax(self, years, ratings):
        import jax
        import jax.numpy as jnp
        from jax import lax
        from jax.scipy.linalg import expm

        def nll(p, economy, counts):
            row, column = np.arange(ratings)[:, None], np.arange(ratings)
            off = jnp.where(row[:-1] == column, 0.0, jnp.exp(p["log_rate"]))
            off = jnp.concatenate([off, jnp.zeros((1, ratings))])

            def step(book, x):
                z, moved = x
                stressed = off * jnp.where(column > row, jnp.exp(p["down"] * z), jnp.exp(p["up"] * z))
                generator = stressed - jnp.diag(jnp.sum(stressed, axis=1))
                year = expm(generator)
                book = book @ year
                new = 1.0 - book[-1]
                book = jnp.concatenate([book[:-1] / new, jnp.zeros(1)])
                return book, (jnp.sum(moved[:-1] * jnp.log(year[:-1])), 1.0 - new)

            even = jnp.concatenate([jnp.ones(ratings - 1) / (ratings - 1), jnp.zeros(1)])
            _, (ll, default) = lax.scan(step, even, (economy, counts))
            return -jnp.sum(ll) / 1000 + 10 * jnp.var(default), default

        return jax.jit(jax.value_and_grad(nll, has_aux=True))


class SwingContract(Model):
    """A gas contract with some rights on a trinomial lattice: take or wait for each number left; price, gradient, Hessian."""

    kind = "lattices"
    dtype = "float64"
    size = dict(steps=60, half=30, rights=8)
    small = dict(steps=4, half=3, rights=2)

    def make(self, random, steps, half, rights):
        forward = 20 + 3 * np.cos(np.arange(steps + 1) * 2 * np.pi / 30) + random.normal(size=steps + 1)
        return np.array([0.1, 0.7, 2.0]), forward, 19.5  # shift of the logs, volatility, reversion

    def rscan(self, steps, half, rights):
        def price(p, forward, strike):
            dt = 1 / 250
            dx = p[1] * rs.sqrt(3 * dt)
            j = rs.arange(-half, half + 1).astype("float64")
            drift = p[2] * j * dt
            up = 1 / 6 + (drift * drift - drift) / 2
            down = 1 / 6 + (drift * drift + drift) / 2
            spread = rs.exp(p[0] + j * dx)

            def step(level, v):
                above = rs.concatenate([v[1:], v[-1:]])
                below = rs.concatenate([v[:1], v[:-1]])
                wait = up[:, None] * above + down[:, None] * below + (1 - up - down)[:, None] * v
                gain = level * spread - strike
                take = gain[:, None] + wait[:, :-1]
                best = rs.maximum(wait[:, 1:], take)
                return rs.concatenate([wait[:, :1], best], axis=1) * np.exp(-0.03 * dt)

            v = rs.loop(step, over=forward, init=rs.zeros((2 * half + 1, rights + 1)), go_backwards=True)[-1]
            return v[half, rights]

        @rs.compile
        def greeks(p, forward, strike):
            return price(p, forward, strike), rs.grad(price)(p, forward, strike), rs.hessian(price)(p, forward, strike)

        return greeks

    def jax(self, steps, half, rights):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def price(p, forward, strike):
            dt = 1 / 250
            dx = p[1] * jnp.sqrt(3 * dt)
            j = jnp.arange(-half, half + 1).astype("float64")
            drift = p[2] * j * dt
            up = 1 / 6 + (drift * drift - drift) / 2
            down = 1 / 6 + (drift * drift + drift) / 2
            spread = jnp.exp(p[0] + j * dx)

            def step(v, level):
                above = jnp.concatenate([v[1:], v[-1:]])
                below = jnp.concatenate([v[:1], v[:-1]])
                wait = up[:, None] * above + down[:, None] * below + (1 - up - down)[:, None] * v
                gain = level * spread - strike
                take = gain[:, None] + wait[:, :-1]
                best = jnp.maximum(wait[:, 1:], take)
                return jnp.concatenate([wait[:, :1], best], axis=1) * np.exp(-0.03 * dt), None

            v, _ = lax.scan(step, jnp.zeros((2 * half + 1, rights + 1)), forward, reverse=True)
            return v[half, rights]

        @jax.jit
        def greeks(p, forward, strike):
            value, slope = jax.value_and_grad(price)(p, forward, strike)
            return value, slope, jax.hessian(price)(p, forward, strike)

        return greeks


class SoftLocalAlignment(Model):
    """Smith and Waterman's alignment with affine gaps, softened, a diagonal of the table per step; gradient by all scores."""

    kind = "dynamic programming"
    dtype = "float64"
    size = dict(m=90, n=110)
    small = dict(m=3, n=4)

    def make(self, random, m, n):
        return random.normal(size=(m, n)) - 0.3, 2.0, 0.5

    def rscan(self, m, n):
        @rs.compile
        def score(similar, open_gap, longer):
            i = rs.arange(m)
            diagonals = rs.arange(m + n - 1)
            j = diagonals[:, None] - i[None, :]
            inside = (j >= 0) & (j < n)
            turned = similar[i[None, :], rs.clip(j, 0, n - 1)]
            low = -1e6

            def down(v):
                return rs.concatenate([rs.full((1,), low), v[:-1]])

            def step(s, ok, match, right, under, total):
                (match2, match1), (right2, right1), (under2, under1) = match, right, under
                before = rs.stack([rs.zeros(m), down(match2), down(right2), down(under2)])
                new = rs.where(ok, s + rs.logsumexp(before, axis=0), low)
                rightwards = rs.where(ok, rs.logaddexp(match1 - open_gap, right1 - longer), low)
                from_above = rs.stack([down(match1) - open_gap, down(right1) - open_gap, down(under1) - longer])
                downwards = rs.where(ok, rs.logsumexp(from_above, axis=0), low)
                total = rs.logaddexp(total, rs.logsumexp(new))
                return dict(match=new, right=rightwards, under=downwards, total=total)

            none = rs.taps(rs.full((2, m), low), -2, -1)
            start = dict(match=none, right=none, under=none, total=low)
            return rs.loop(step, over=dict(s=turned, ok=inside), init=start).total[-1]

        return rs.value_and_grad(score, wrt=(0, 1, 2))

    def jax(self, m, n):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def score(similar, open_gap, longer):
            i = jnp.arange(m)
            diagonals = jnp.arange(m + n - 1)
            j = diagonals[:, None] - i[None, :]
            inside = (j >= 0) & (j < n)
            turned = similar[i[None, :], jnp.clip(j, 0, n - 1)]
            low = -1e6
            lse = jax.nn.logsumexp

            def down(v):
                return jnp.concatenate([jnp.full((1,), low), v[:-1]])

            def step(state, x):
                match2, match1, right2, right1, under2, under1, total = state
                s, ok = x
                before = jnp.stack([jnp.zeros(m), down(match2), down(right2), down(under2)])
                new = jnp.where(ok, s + lse(before, axis=0), low)
                rightwards = jnp.where(ok, jnp.logaddexp(match1 - open_gap, right1 - longer), low)
                from_above = jnp.stack([down(match1) - open_gap, down(right1) - open_gap, down(under1) - longer])
                downwards = jnp.where(ok, lse(from_above, axis=0), low)
                total = jnp.logaddexp(total, lse(new))
                return (match1, new, right1, rightwards, under1, downwards, total), None

            none = jnp.full(m, low)
            return lax.scan(step, (none, none, none, none, none, none, low), (turned, inside))[0][-1]

        return jax.jit(jax.value_and_grad(score, argnums=(0, 1, 2)))


class SoftStackMachine(Model):
    """A recurrent net with a stack that it pushes and pops a little of each, and predicts letters; loss and all gradients."""

    kind = "nets with memory"
    dtype = "float32"
    size = dict(steps=40, batch=8, hidden=32, depth=16, width=6)
    small = dict(steps=4, batch=2, hidden=3, depth=3, width=2)
    rtol = 1e-3

    def make(self, random, steps, batch, hidden, depth, width):
        letters = 7

        def dense(*shape):
            return (random.normal(size=shape) / np.sqrt(shape[0])).astype("f")

        p = dict(
            embed=dense(letters, hidden),
            loop=dense(hidden, hidden),
            read=dense(width, hidden),
            act=dense(hidden, 3),
            push=dense(hidden, width),
            out=dense(hidden, letters),
            bias=np.zeros(hidden, "f"),
        )
        return p, random.integers(0, letters, size=(steps + 1, batch))

    def rscan(self, steps, batch, hidden, depth, width):
        @rs.compile
        def loss(p, text):
            def step(now, following, h, stack):
                h = rs.tanh(p["embed"][now] + h @ p["loop"] + stack[:, 0] @ p["read"] + p["bias"])
                act = rs.softmax(h @ p["act"], axis=1)
                push, pop, keep = act[:, 0], act[:, 1], act[:, 2]
                top = rs.sigmoid(h @ p["push"])
                pushed = rs.concatenate([top[:, None, :], stack[:, :-1]], axis=1)
                popped = rs.concatenate([stack[:, 1:], rs.zeros((batch, 1, width), dtype="float32")], axis=1)
                stack = push[:, None, None] * pushed + pop[:, None, None] * popped + keep[:, None, None] * stack
                logits = rs.log_softmax(h @ p["out"], axis=1)
                return dict(h=h, stack=stack, e=-rs.mean(rs.take_along_axis(logits, following[:, None], axis=1)))

            start = dict(h=rs.zeros((batch, hidden), dtype="float32"), stack=rs.zeros((batch, depth, width), dtype="float32"))
            return rs.mean(rs.loop(step, over=dict(now=text[:-1], following=text[1:]), init=start).e)

        return rs.value_and_grad(loss)

    def jax(self, steps, batch, hidden, depth, width):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def loss(p, text):
            def step(state, x):
                h, stack = state
                now, following = x
                h = jnp.tanh(p["embed"][now] + h @ p["loop"] + stack[:, 0] @ p["read"] + p["bias"])
                act = jax.nn.softmax(h @ p["act"], axis=1)
                push, pop, keep = act.T
                top = jax.nn.sigmoid(h @ p["push"])
                pushed = jnp.concatenate([top[:, None, :], stack[:, :-1]], axis=1)
                popped = jnp.concatenate([stack[:, 1:], jnp.zeros((batch, 1, width), "float32")], axis=1)
                stack = push[:, None, None] * pushed + pop[:, None, None] * popped + keep[:, None, None] * stack
                logits = jax.nn.log_softmax(h @ p["out"], axis=1)
                return (h, stack), -jnp.mean(jnp.take_along_axis(logits, following[:, None], axis=1))

            start = jnp.zeros((batch, hidden), "float32"), jnp.zeros((batch, depth, width), "float32")
            return jnp.mean(lax.scan(step, start, (text[:-1], text[1:]))[1])

        return jax.jit(jax.value_and_grad(loss))


class ConvolutionalLstm(Model):
    """Rain ahead by a convolutional long short-term memory: three by three convolutions of fields in each step; loss and all gradients."""

    kind = "convolutions in steps"
    dtype = "float32"
    size = dict(steps=10, batch=2, side=14, channels=8)
    small = dict(steps=3, batch=1, side=4, channels=2)
    rtol = 1e-3

    def make(self, random, steps, batch, side, channels):
        def kernel(i, o):
            return (random.normal(size=(3, 3, i, o)) / np.sqrt(9 * i)).astype("f")

        p = dict(x=kernel(1, 4 * channels), h=kernel(channels, 4 * channels), out=kernel(channels, 1), b=np.zeros(4 * channels, "f"))
        return p, random.random((steps + 1, batch, side, side, 1)).astype("f")

    def rscan(self, steps, batch, side, channels):
        def convolve(x, kernel):
            q = rs.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
            windows = [q[:, a : a + side, b : b + side] @ kernel[a, b] for a in range(3) for b in range(3)]
            return sum(windows[1:], windows[0])

        @rs.compile
        def loss(p, films):
            def step(x, following, h, c):
                gates = convolve(x, p["x"]) + convolve(h, p["h"]) + p["b"]
                i, f, o, g = rs.split(gates, 4, axis=-1)
                c = rs.sigmoid(f + 1) * c + rs.sigmoid(i) * rs.tanh(g)
                h = rs.sigmoid(o) * rs.tanh(c)
                guess = rs.sigmoid(convolve(h, p["out"]))
                return dict(h=h, c=c, e=rs.mean((guess - following) ** 2))

            zero = rs.zeros((batch, side, side, channels), dtype="float32")
            return rs.mean(rs.loop(step, over=dict(x=films[:-1], following=films[1:]), init=dict(h=zero, c=zero)).e)

        return rs.value_and_grad(loss)

    def jax(self, steps, batch, side, channels):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def convolve(x, kernel):
            return lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

        def loss(p, films):
            def step(state, xs):
                h, c = state
                x, following = xs
                gates = convolve(x, p["x"]) + convolve(h, p["h"]) + p["b"]
                i, f, o, g = jnp.split(gates, 4, axis=-1)
                c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
                h = jax.nn.sigmoid(o) * jnp.tanh(c)
                guess = jax.nn.sigmoid(convolve(h, p["out"]))
                return (h, c), jnp.mean((guess - following) ** 2)

            zero = jnp.zeros((batch, side, side, channels), "float32")
            return jnp.mean(lax.scan(step, (zero, zero), (films[:-1], films[1:]))[1])

        return jax.jit(jax.value_and_grad(loss))


class ExpertRouting(Model):
    """A recurrent net whose steps go through the two best of several experts, with biases that even out loads; gradients."""

    kind = "sorting and routing"
    dtype = "float32"
    size = dict(steps=30, batch=8, width=24, inner=32, experts=6)
    small = dict(steps=3, batch=2, width=3, inner=4, experts=3)
    rtol = 1e-3

    def make(self, random, steps, batch, width, inner, experts):
        def dense(*shape):
            return (random.normal(size=shape) / np.sqrt(shape[-2])).astype("f")

        p = dict(route=dense(width, experts), up=dense(experts, width, inner), down=dense(experts, inner, width), x=dense(2, width))
        x = random.normal(size=(steps, batch, 2)).astype("f")
        return p, x, np.sin(np.cumsum(x[..., 0], axis=0)).astype("f")

    def rscan(self, steps, batch, width, inner, experts):
        @rs.compile
        def loss(p, x, wanted):
            def step(x, y, h, bias):
                h = h + x @ p["x"]
                norm = h / rs.sqrt(rs.mean(h * h, axis=1, keepdims=True) + 1e-5)
                scores = rs.sigmoid(norm @ p["route"])
                _, chosen = rs.top_k(scores + bias, 2)
                gates = rs.take_along_axis(scores, chosen, axis=1)
                gates = gates / rs.sum(gates, axis=1, keepdims=True)
                inside = rs.silu(rs.einsum("bw,bkwi->bki", norm, p["up"][chosen]))
                outside = rs.einsum("bki,bkiw->bkw", inside, p["down"][chosen])
                h = 0.9 * h + rs.sum(gates[:, :, None] * outside, axis=1)
                load = rs.zeros(experts, dtype="float32").at[chosen.reshape((2 * batch,))].add(np.float32(1.0))
                bias = bias + np.float32(0.01) * rs.sign(rs.mean(load) - load)
                return dict(h=h, bias=bias, e=rs.mean((rs.tanh(h[:, 0]) - y) ** 2), load=load)

            start = dict(h=rs.zeros((batch, width), dtype="float32"), bias=rs.zeros(experts, dtype="float32"))
            out = rs.loop(step, over=dict(x=x, y=wanted), init=start)
            return rs.mean(out.e), rs.sum(out.load, axis=0)

        return rs.value_and_grad(loss, has_aux=True)

    def jax(self, steps, batch, width, inner, experts):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def loss(p, x, wanted):
            def step(state, xs):
                h, bias = state
                x, y = xs
                h = h + x @ p["x"]
                norm = h / jnp.sqrt(jnp.mean(h * h, axis=1, keepdims=True) + 1e-5)
                scores = jax.nn.sigmoid(norm @ p["route"])
                _, chosen = lax.top_k(scores + bias, 2)
                gates = jnp.take_along_axis(scores, chosen, axis=1)
                gates = gates / jnp.sum(gates, axis=1, keepdims=True)
                inside = jax.nn.silu(jnp.einsum("bw,bkwi->bki", norm, p["up"][chosen]))
                outside = jnp.einsum("bki,bkiw->bkw", inside, p["down"][chosen])
                h = 0.9 * h + jnp.sum(gates[:, :, None] * outside, axis=1)
                load = jnp.zeros(experts, "float32").at[chosen.reshape(-1)].add(1.0)
                bias = bias + jnp.float32(0.01) * jnp.sign(jnp.mean(load) - load)
                return (h, bias), (jnp.mean((jnp.tanh(h[:, 0]) - y) ** 2), load)

            start = jnp.zeros((batch, width), "float32"), jnp.zeros(experts, "float32")
            _, (e, load) = lax.scan(step, start, (x, wanted))
            return jnp.mean(e), jnp.sum(load, axis=0)

        return jax.jit(jax.value_and_grad(loss, has_aux=True))


class ScoreDrivenCounts(Model):
    """Panels of counts of different lengths: a negative binomial whose mean and size follow their scores; gradient of each."""

    kind = "panels of different lengths"
    dtype = "float64"
    size = dict(series=24, steps=200)
    small = dict(series=3, steps=6)

    def make(self, random, series, steps):
        p = np.array([0.1, 0.95, 0.15, 0.9, 0.1]) * (1 + 0.03 * random.normal(size=(series, 5)))
        lengths = random.integers(steps // 2, steps + 1, size=series)
        return p, random.negative_binomial(3, 0.4, size=(series, steps)), lengths

    def rscan(self, series, steps):
        gammaln, digamma = rs.special.gammaln, rs.special.digamma

        def nll(p, y, length):
            def step(y, f, g, total):
                mean, r = rs.exp(f), rs.exp(g)
                q = r / (r + mean)
                ll = gammaln(y + r) - gammaln(r) - gammaln(y + 1.0) + r * rs.log(q) + y * rs.log(1 - q)
                of_mean = (y - mean) * q / rs.sqrt(mean * q)
                of_size = r * (digamma(y + r) - digamma(r) + rs.log(q) + 1 - (y + r) / (r + mean))
                f = p[0] * (1 - p[1]) * 10 + p[1] * f + p[2] * of_mean
                return dict(f=f, g=p[3] * g + p[4] * rs.tanh(of_size), total=total - ll)

            return rs.loop(step, over=dict(y=y), init=dict(f=1.0, g=0.5, total=0.0), n_steps=length).last.total

        return rs.compile(rs.vmap(rs.value_and_grad(nll)))

    def jax(self, series, steps):
        import jax
        import jax.numpy as jnp
        from jax import lax
        from jax.scipy.special import digamma, gammaln

        def nll(p, y, length):
            def step(state, x):
                f, g, total = state
                y, t = x
                mean, r = jnp.exp(f), jnp.exp(g)
                q = r / (r + mean)
                ll = gammaln(y + r) - gammaln(r) - gammaln(y + 1.0) + r * jnp.log(q) + y * jnp.log(1 - q)
                of_mean = (y - mean) * q / jnp.sqrt(mean * q)
                of_size = r * (digamma(y + r) - digamma(r) + jnp.log(q) + 1 - (y + r) / (r + mean))
                f = p[0] * (1 - p[1]) * 10 + p[1] * f + p[2] * of_mean
                new = f, p[3] * g + p[4] * jnp.tanh(of_size), total - ll
                return tuple(jnp.where(t < length, a, b) for a, b in zip(new, state)), None

            return lax.scan(step, (1.0, 0.5, 0.0), (y, jnp.arange(steps)))[0][2]

        return jax.jit(jax.vmap(jax.value_and_grad(nll)))


class UniformisedChain(Model):
    """A hidden chain in continuous time: between looks as many powers of its jump matrix as the pause needs; gradient by rates."""

    kind = "continuous-time chains"
    dtype = "float64"
    size = dict(looks=80, states=12, most=48)
    small = dict(looks=4, states=3, most=12)

    def make(self, random, looks, states, most):
        pauses = np.minimum(random.exponential(size=looks) * 0.6, 1.5)
        load = pauses * 2.5 * (most / 12)  # of the fastest state
        counts = np.minimum(np.ceil(load + 4 * np.sqrt(load) + 3), most).astype("int64")
        log_rate = random.normal(size=(states, states)) - np.log(states)
        return log_rate, random.normal(size=(states, 5)), pauses * most / 12, counts, random.integers(0, 5, size=looks)

    def rscan(self, looks, states, most):
        @rs.compile
        def nll(log_rate, emit, pauses, counts, seen):
            rates = rs.exp(log_rate) * (1 - rs.eye(states))
            out_of = rs.sum(rates, axis=1)
            fastest = rs.max(out_of)
            jump = rs.eye(states) + (rates - rs.diag(out_of)) / fastest
            signs = rs.softmax(emit, axis=1)

            def look(pause, n, sign, belief):
                def term(k, v, weight, total):
                    v = v @ jump
                    weight = weight * fastest * pause / k
                    return dict(v=v, weight=weight, total=total + weight * v)

                first = rs.exp(-fastest * pause)
                start = dict(v=belief, weight=first, total=first * belief)
                moved = rs.loop(term, over=dict(k=rs.arange(1.0, most + 1)), init=start, n_steps=n).last.total
                joint = moved * signs[:, sign]
                evidence = rs.sum(joint)
                return dict(belief=joint / evidence, ll=rs.log(evidence))

            start = rs.full((states,), 1 / states)
            out = rs.loop(look, over=dict(pause=pauses, n=counts, sign=seen), init=dict(belief=start))
            return -rs.sum(out.ll)

        return rs.value_and_grad(nll, wrt=(0, 1))

    def jax(self, looks, states, most):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def nll(log_rate, emit, pauses, counts, seen):
            rates = jnp.exp(log_rate) * (1 - jnp.eye(states))
            out_of = jnp.sum(rates, axis=1)
            fastest = jnp.max(out_of)
            jump = jnp.eye(states) + (rates - jnp.diag(out_of)) / fastest
            signs = jax.nn.softmax(emit, axis=1)

            def look(belief, x):
                pause, n, sign = x

                def term(state, k):
                    v, weight, total = state
                    v = v @ jump
                    weight = weight * fastest * pause / k
                    return (v, weight, total + jnp.where(k <= n, weight, 0.0) * v), None

                first = jnp.exp(-fastest * pause)
                (_, _, moved), _ = lax.scan(term, (belief, first, first * belief), jnp.arange(1.0, most + 1))
                joint = moved * signs[:, sign]
                evidence = jnp.sum(joint)
                return joint / evidence, jnp.log(evidence)

            return -jnp.sum(lax.scan(look, jnp.full(states, 1 / states), (pauses, counts, seen))[1])

        return jax.jit(jax.value_and_grad(nll, argnums=(0, 1)))


class EvolvedControllers(Model):
    """An evolution strategy for a pole on a cart: tiny nets, each driven until its pole falls, ranked, averaged by rank."""

    kind = "populations"
    dtype = "float64"
    size = dict(generations=6, pairs=12, hidden=6, steps=80)
    small = dict(generations=2, pairs=2, hidden=2, steps=5)

    def make(self, random, generations, pairs, hidden, steps):
        weights = 6 * hidden
        noise, starts = random.normal(size=(generations, pairs, weights)), 0.05 * random.normal(size=(generations, 4))
        return 0.3 * random.normal(size=weights), noise, starts

    def rscan(self, generations, pairs, hidden, steps):
        @rs.compile
        def evolve(weights, noise, starts):
            def reward(w, start):
                first, bias, last = w[: 4 * hidden].reshape((4, hidden)), w[4 * hidden : 5 * hidden], w[5 * hidden :]

                def step(x, v, angle, spin, gained):
                    seen = rs.stack([x, v, angle, spin])
                    force = 10 * rs.tanh(rs.dot(rs.tanh(seen @ first + bias), last))
                    c, s = rs.cos(angle), rs.sin(angle)
                    push = (force + 0.05 * spin * spin * s) / 1.1
                    turn = (9.8 * s - c * push) / (0.5 * (4 / 3 - 0.1 * c * c / 1.1))
                    v, spin = v + 0.02 * (push - 0.05 * turn * c / 1.1), spin + 0.02 * turn
                    x, angle = x + 0.02 * v, angle + 0.02 * spin
                    gained = gained + 1 - 0.1 * x * x - angle * angle
                    fallen = (rs.abs(angle) > 0.21) | (rs.abs(x) > 2.4)
                    return dict(x=x, v=v, angle=angle, spin=spin, gained=gained), rs.until(fallen)

                init = dict(x=start[0], v=start[1], angle=start[2], spin=start[3], gained=0.0)
                return rs.loop(step, init=init, n_steps=steps).last.gained

            def generation(noise, start, w):
                all_noise = rs.concatenate([noise, -noise])
                rewards = rs.vmap(reward, in_axes=(0, None))(w + 0.3 * all_noise, start)
                ranks = rs.argsort(rs.argsort(rewards))
                share = ranks / (2 * pairs - 1) - 0.5
                return dict(w=w + 0.3 * (share @ all_noise) / np.sqrt(pairs), best=rs.max(rewards), mean=rs.mean(rewards))

            out = rs.loop(generation, over=dict(noise=noise, start=starts), init=dict(w=weights))
            return out.last.w, out.best, out.mean

        return evolve

    def jax(self, generations, pairs, hidden, steps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def evolve(weights, noise, starts):
            def reward(w, start):
                first, bias, last = w[: 4 * hidden].reshape((4, hidden)), w[4 * hidden : 5 * hidden], w[5 * hidden :]

                def step(state):
                    t, x, v, angle, spin, gained = state
                    seen = jnp.stack([x, v, angle, spin])
                    force = 10 * jnp.tanh(jnp.dot(jnp.tanh(seen @ first + bias), last))
                    c, s = jnp.cos(angle), jnp.sin(angle)
                    push = (force + 0.05 * spin * spin * s) / 1.1
                    turn = (9.8 * s - c * push) / (0.5 * (4 / 3 - 0.1 * c * c / 1.1))
                    v, spin = v + 0.02 * (push - 0.05 * turn * c / 1.1), spin + 0.02 * turn
                    x, angle = x + 0.02 * v, angle + 0.02 * spin
                    return t + 1, x, v, angle, spin, gained + 1 - 0.1 * x * x - angle * angle

                stands = lambda state: (state[0] < steps) & (jnp.abs(state[3]) <= 0.21) & (jnp.abs(state[1]) <= 2.4)
                init = 0, start[0], start[1], start[2], start[3], 0.0
                return lax.while_loop(stands, step, init)[5]

            def generation(w, x):
                noise, start = x
                all_noise = jnp.concatenate([noise, -noise])
                rewards = jax.vmap(reward, in_axes=(0, None))(w + 0.3 * all_noise, start)
                ranks = jnp.argsort(jnp.argsort(rewards))
                share = ranks / (2 * pairs - 1) - 0.5
                return w + 0.3 * (share @ all_noise) / np.sqrt(pairs), (jnp.max(rewards), jnp.mean(rewards))

            w, (best, mean) = lax.scan(generation, weights, (noise, starts))
            return w, best, mean

        return evolve


class TauLeapReactions(Model):
    """Hunters and hunted by tau leaps: in each step Poisson numbers of reactions are drawn in many copies; means and spreads over time."""

    kind = "random draws"
    dtype = "float64"
    size = dict(steps=100, copies=200)
    small = dict(steps=6, copies=60)

    def make(self, random, steps, copies):
        return np.array([1.0, 0.005, 0.6]), np.array([120.0, 100.0]), 0.05

    def rscan(self, steps, copies):
        stream = rs.random.Stream(seed=5)

        @rs.compile
        def simulate(rates, start, tau):
            change = np.array([[1.0, 0.0], [-1.0, 1.0], [0.0, -1.0]])

            def step(n):
                born, met, died = rates[0] * n[:, 0], rates[1] * n[:, 0] * n[:, 1], rates[2] * n[:, 1]
                events = stream.poisson(tau * rs.stack([born, met, died], axis=1))
                n = rs.maximum(n + events @ change, 0.0)
                return dict(n=n, mean=rs.mean(n, axis=0), spread=rs.std(n, axis=0))

            out = rs.loop(step, init=dict(n=rs.broadcast_to(start, (copies, 2))), n_steps=steps)
            return out.mean, out.spread

        return simulate

    def jax(self, steps, copies):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def simulate(rates, start, tau):
            change = jnp.array([[1.0, 0.0], [-1.0, 1.0], [0.0, -1.0]])

            def step(n, key):
                born, met, died = rates[0] * n[:, 0], rates[1] * n[:, 0] * n[:, 1], rates[2] * n[:, 1]
                events = jax.random.poisson(key, tau * jnp.stack([born, met, died], axis=1))
                n = jnp.maximum(n + events @ change, 0.0)
                return n, (jnp.mean(n, axis=0), jnp.std(n, axis=0))

            keys = jax.random.split(jax.random.key(0), steps)
            return lax.scan(step, jnp.broadcast_to(start, (copies, 2)), keys)[1]

        return simulate

    def same(self, ours, theirs):
        (mean, spread), (their_mean, their_spread) = ours, theirs
        assert mean.shape == their_mean.shape and spread.shape == their_spread.shape
        copies = 60  # at least
        error = np.sqrt((spread**2 + their_spread**2) / copies)
        assert np.all(np.abs(mean - their_mean) < 6 * error), "means differ"
        assert np.all(np.abs(spread - their_spread) < 0.8 * (spread + their_spread) / 2), "spreads differ"
