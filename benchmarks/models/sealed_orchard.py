"""An orchard of many kinds: fields on grids, games, keys, strings, arms, notes, options and students, as outside users would write them."""

import numpy as np

import rscan as rs
from models import Model


class TideGaugeVariational(Model):
    """Shallow water in a closed basin on a C grid; the misfit at tide gauges, by the initial surface and the depth."""

    kind = "orchard"
    dtype = "float64"
    size = dict(ny=28, nx=36, steps=60, gauges=9)
    small = dict(ny=5, nx=6, steps=4, gauges=2)

    def make(self, random, ny, nx, steps, gauges):
        y, x = np.mgrid[0:ny, 0:nx]
        surface = 0.5 * np.exp(-((y - ny / 3) ** 2 + (x - nx / 2) ** 2) / (0.05 * ny * nx))
        depth = 10.0 + 2.0 * np.sin(x / 5.0) + random.normal(size=(ny, nx)) * 0.1
        rows, columns = random.integers(0, ny, gauges), random.integers(0, nx, gauges)
        return surface, depth, 0.003, rows, columns, 0.1 * random.normal(size=(steps, gauges))

    def rscan(self, ny, nx, steps, gauges):
        g, f, dx, dt = 9.81, 1e-2, 10.0, 0.4

        def misfit(surface, depth, friction, rows, columns, seen):
            def step(seen, eta, u, v):
                total = depth + eta
                hu = 0.5 * (total[:, 1:] + total[:, :-1]) * u[:, 1:-1]
                hv = 0.5 * (total[1:] + total[:-1]) * v[1:-1]
                hu, hv = rs.pad(hu, ((0, 0), (1, 1))), rs.pad(hv, ((1, 1), (0, 0)))
                eta = eta - dt / dx * (hu[:, 1:] - hu[:, :-1] + hv[1:] - hv[:-1])
                vc, uc = 0.5 * (v[1:] + v[:-1]), 0.5 * (u[:, 1:] + u[:, :-1])
                du = f * 0.5 * (vc[:, 1:] + vc[:, :-1]) - g / dx * (eta[:, 1:] - eta[:, :-1])
                dv = -f * 0.5 * (uc[1:] + uc[:-1]) - g / dx * (eta[1:] - eta[:-1])
                u = rs.pad((u[:, 1:-1] + dt * du) / (1 + dt * friction), ((0, 0), (1, 1)))
                v = rs.pad((v[1:-1] + dt * dv) / (1 + dt * friction), ((1, 1), (0, 0)))
                return dict(eta=eta, u=u, v=v, error=eta[rows, columns] - seen)

            start = dict(eta=surface, u=rs.zeros((ny, nx + 1)), v=rs.zeros((ny + 1, nx)))
            out = rs.loop(step, over=dict(seen=seen), init=start)
            return 0.5 * rs.sum(out.error**2) + 0.01 * rs.sum(surface**2)

        return rs.value_and_grad(rs.compile(misfit), argnums=(0, 1, 2))

    def jax(self, ny, nx, steps, gauges):
        import jax, jax.numpy as jnp

        g, f, dx, dt = 9.81, 1e-2, 10.0, 0.4

        def misfit(surface, depth, friction, rows, columns, seen):
            def step(carry, seen):
                eta, u, v = carry
                total = depth + eta
                hu = 0.5 * (total[:, 1:] + total[:, :-1]) * u[:, 1:-1]
                hv = 0.5 * (total[1:] + total[:-1]) * v[1:-1]
                hu, hv = jnp.pad(hu, ((0, 0), (1, 1))), jnp.pad(hv, ((1, 1), (0, 0)))
                eta = eta - dt / dx * (hu[:, 1:] - hu[:, :-1] + hv[1:] - hv[:-1])
                vc, uc = 0.5 * (v[1:] + v[:-1]), 0.5 * (u[:, 1:] + u[:, :-1])
                du = f * 0.5 * (vc[:, 1:] + vc[:, :-1]) - g / dx * (eta[:, 1:] - eta[:, :-1])
                dv = -f * 0.5 * (uc[1:] + uc[:-1]) - g / dx * (eta[1:] - eta[:-1])
                u = jnp.pad((u[:, 1:-1] + dt * du) / (1 + dt * friction), ((0, 0), (1, 1)))
                v = jnp.pad((v[1:-1] + dt * dv) / (1 + dt * friction), ((1, 1), (0, 0)))
                return (eta, u, v), eta[rows, columns] - seen

            start = surface, jnp.zeros((ny, nx + 1)), jnp.zeros((ny + 1, nx))
            errors = jax.lax.scan(step, start, seen)[1]
            return 0.5 * jnp.sum(errors**2) + 0.01 * jnp.sum(surface**2)

        return jax.jit(jax.value_and_grad(misfit, argnums=(0, 1, 2)))


class AdaptiveVariationWeights(Model):
    """Chambolle's dual iteration of total variation; how well the picture is restored, by the weight of each pixel."""

    kind = "orchard"
    dtype = "float32"
    size = dict(n=48, steps=40)
    small = dict(n=6, steps=3)
    rtol = 1e-3

    def make(self, random, n, steps):
        y, x = np.mgrid[0:n, 0:n]
        clean = ((y - n / 2) ** 2 + (x - n / 2) ** 2 < (n / 3) ** 2) + 0.3 * (x > n / 2)
        noisy = clean + 0.15 * random.normal(size=(n, n))
        weights = -2.0 + 0.1 * random.normal(size=(n, n))
        return weights.astype("f4"), noisy.astype("f4"), clean.astype("f4")

    def rscan(self, n, steps):
        def slopes(u):
            return rs.pad(u[1:] - u[:-1], ((0, 1), (0, 0))), rs.pad(u[:, 1:] - u[:, :-1], ((0, 0), (0, 1)))

        def divergence(p, q):
            down = rs.concatenate([p[:1], p[1:-1] - p[:-2], -p[-2:-1]], axis=0)
            right = rs.concatenate([q[:, :1], q[:, 1:-1] - q[:, :-2], -q[:, -2:-1]], axis=1)
            return down + right

        def loss(weights, noisy, clean):
            strength = rs.exp(weights)

            def step(p, q):
                gy, gx = slopes(divergence(p, q) - noisy / strength)
                scale = 1 + 0.24 * rs.sqrt(gy * gy + gx * gx + 1e-6)
                return dict(p=(p + 0.24 * gy) / scale, q=(q + 0.24 * gx) / scale)

            out = rs.loop(step, init=dict(p=rs.zeros_like(noisy), q=rs.zeros_like(noisy)), n_steps=steps)
            restored = noisy - strength * divergence(out.last.p, out.last.q)
            return rs.mean((restored - clean) ** 2)

        return rs.value_and_grad(rs.compile(loss))

    def jax(self, n, steps):
        import jax, jax.numpy as jnp

        def slopes(u):
            return jnp.pad(u[1:] - u[:-1], ((0, 1), (0, 0))), jnp.pad(u[:, 1:] - u[:, :-1], ((0, 0), (0, 1)))

        def divergence(p, q):
            down = jnp.concatenate([p[:1], p[1:-1] - p[:-2], -p[-2:-1]], axis=0)
            right = jnp.concatenate([q[:, :1], q[:, 1:-1] - q[:, :-2], -q[:, -2:-1]], axis=1)
            return down + right

        def loss(weights, noisy, clean):
            strength = jnp.exp(weights)

            def step(carry, _):
                p, q = carry
                gy, gx = slopes(divergence(p, q) - noisy / strength)
                scale = 1 + 0.24 * jnp.sqrt(gy * gy + gx * gx + 1e-6)
                return ((p + 0.24 * gy) / scale, (q + 0.24 * gx) / scale), None

            (p, q), _ = jax.lax.scan(step, (jnp.zeros_like(noisy), jnp.zeros_like(noisy)), None, length=steps)
            restored = noisy - strength * divergence(p, q)
            return jnp.mean((restored - clean) ** 2)

        return jax.jit(jax.value_and_grad(loss))


class ChaChaStream(Model):
    """The stream cipher ChaCha20: ten double rounds for each block of 64 bytes, all blocks of a message at once."""

    kind = "orchard"
    dtype = "uint32"
    size = dict(blocks=400)
    small = dict(blocks=3)

    def make(self, random, blocks):
        words = lambda *shape: random.integers(0, 2**32, shape, dtype=np.uint32)
        return words(8), words(3), words(blocks, 16)

    def rscan(self, blocks):
        def turn(x, n):
            return (x << n) | (x >> (32 - n))

        def quarter(a, b, c, d):
            a = a + b
            d = turn(d ^ a, 16)
            c = c + d
            b = turn(b ^ c, 12)
            a = a + b
            d = turn(d ^ a, 8)
            c = c + d
            b = turn(b ^ c, 7)
            return a, b, c, d

        def double_round(a, b, c, d):
            a, b, c, d = quarter(a, b, c, d)
            b, c, d = rs.roll(b, -1), rs.roll(c, -2), rs.roll(d, -3)
            a, b, c, d = quarter(a, b, c, d)
            return a, rs.roll(b, 1), rs.roll(c, 2), rs.roll(d, 3)

        @rs.compile
        def encrypt(key, nonce, message):
            constants = rs.constant(np.array([0x61707865, 0x3320646E, 0x79622D32, 0x6B206574], np.uint32))

            def block(counter):
                start = (constants, key[:4], key[4:], rs.concatenate([rs.stack([counter]), nonce]))
                last = rs.loop(double_round, init=start, n_steps=10).last
                return rs.concatenate([x + y for x, y in zip(start, last)])

            return message ^ rs.vmap(block)(rs.arange(blocks, dtype="uint32"))

        return encrypt

    def jax(self, blocks):
        import jax, jax.numpy as jnp

        def turn(x, n):
            return (x << n) | (x >> (32 - n))

        def quarter(a, b, c, d):
            a = a + b
            d = turn(d ^ a, 16)
            c = c + d
            b = turn(b ^ c, 12)
            a = a + b
            d = turn(d ^ a, 8)
            c = c + d
            b = turn(b ^ c, 7)
            return a, b, c, d

        def double_round(_, rows):
            a, b, c, d = quarter(*rows)
            b, c, d = jnp.roll(b, -1), jnp.roll(c, -2), jnp.roll(d, -3)
            a, b, c, d = quarter(a, b, c, d)
            return a, jnp.roll(b, 1), jnp.roll(c, 2), jnp.roll(d, 3)

        @jax.jit
        def encrypt(key, nonce, message):
            constants = jnp.array([0x61707865, 0x3320646E, 0x79622D32, 0x6B206574], jnp.uint32)

            def block(counter):
                start = (constants, key[:4], key[4:], jnp.concatenate([counter[None], nonce]))
                last = jax.lax.fori_loop(0, 10, double_round, start)
                return jnp.concatenate([x + y for x, y in zip(start, last)])

            return message ^ jax.vmap(block)(jnp.arange(blocks, dtype=jnp.uint32))

        return encrypt


class BermudanByRegression(Model):
    """Longstaff and Schwartz: paths forwards, then exercise decided backwards by a regression; the price and its Greeks."""

    kind = "orchard"
    dtype = "float64"
    size = dict(paths=1500, dates=30)
    small = dict(paths=40, dates=4)

    def make(self, random, paths, dates):
        z = random.normal(size=(dates, paths // 2))
        return 36.0, 0.25, 0.06, 40.0, np.concatenate([z, -z], axis=1)

    def rscan(self, paths, dates):
        dt = 1.0 / dates

        def price(s0, sigma, rate, strike, z):
            discount = rs.exp(-rate * dt)

            def forwards(z, s):
                return s * rs.exp((rate - 0.5 * sigma**2) * dt + sigma * dt**0.5 * z)

            s = rs.loop(forwards, over=z, init=s0 * rs.ones(paths))[:]

            def backwards(s, cash):
                cash = discount * cash
                payoff = rs.maximum(strike - s, 0.0)
                inside = payoff > 0
                x = s / strike
                basis = rs.stack([rs.ones_like(x), x, x**2, x**3], axis=1)
                weighted = basis * inside[:, None]
                beta = rs.linalg.solve(weighted.T @ basis + 1e-6 * rs.eye(4), weighted.T @ cash)
                exercise = inside & (payoff > basis @ beta)
                return dict(cash=rs.where(exercise, payoff, cash), exercised=rs.sum(exercise))

            init = dict(cash=rs.maximum(strike - s[-1], 0.0))
            out = rs.loop(backwards, over=dict(s=s[:-1]), init=init, reverse=True)
            return discount * rs.mean(out.last.cash), out.exercised

        return rs.value_and_grad(rs.compile(price), argnums=(0, 1, 2), has_aux=True)

    def jax(self, paths, dates):
        import jax, jax.numpy as jnp

        dt = 1.0 / dates

        def price(s0, sigma, rate, strike, z):
            discount = jnp.exp(-rate * dt)

            def forwards(s, z):
                s = s * jnp.exp((rate - 0.5 * sigma**2) * dt + sigma * dt**0.5 * z)
                return s, s

            s = jax.lax.scan(forwards, s0 * jnp.ones(paths), z)[1]

            def backwards(cash, s):
                cash = discount * cash
                payoff = jnp.maximum(strike - s, 0.0)
                inside = payoff > 0
                x = s / strike
                basis = jnp.stack([jnp.ones_like(x), x, x**2, x**3], axis=1)
                weighted = basis * inside[:, None]
                beta = jnp.linalg.solve(weighted.T @ basis + 1e-6 * jnp.eye(4), weighted.T @ cash)
                exercise = inside & (payoff > basis @ beta)
                return jnp.where(exercise, payoff, cash), jnp.sum(exercise)

            cash, exercised = jax.lax.scan(backwards, jnp.maximum(strike - s[-1], 0.0), s[:-1], reverse=True)
            return discount * jnp.mean(cash), exercised

        return jax.jit(jax.value_and_grad(price, argnums=(0, 1, 2), has_aux=True))


class PigDiceGame(Model):
    """The dice game Pig, solved: the chance to win from every score, swept until it stands still, and where to hold."""

    kind = "orchard"
    dtype = "float64"
    size = dict(goal=20)
    small = dict(goal=5)

    def make(self, random, goal):
        return 1e-7, random.uniform(0.4, 0.6, size=(goal, goal, goal))

    def rscan(self, goal):
        i, j, k = np.indices((goal, goal, goal))
        won, reached = i + k >= goal, np.minimum(i + k, goal - 1)

        def choices(p):
            fresh = p[:, :, 0]
            longer = rs.pad(p, ((0, 0), (0, 0), (0, 6)), constant_values=1.0)
            rolled = (1 - fresh.T)[:, :, None] + sum(longer[:, :, r : r + goal] for r in range(2, 7))
            return rolled / 6, 1 - fresh[j, reached]

        @rs.compile
        def solve(tolerance, p):
            p = rs.where(won, 1.0, p)

            def sweep(p):
                roll, hold = choices(p)
                new = rs.where(won, 1.0, rs.maximum(roll, hold))
                return new, rs.until(rs.max(rs.abs(new - p)) < tolerance)

            out = rs.loop(sweep, init=p, n_steps=1000)
            roll, hold = choices(out.last)
            return out.last, rs.argmax(won | (hold > roll), axis=2), out.steps

        return solve

    def jax(self, goal):
        import jax, jax.numpy as jnp

        i, j, k = np.indices((goal, goal, goal))
        won, reached = i + k >= goal, np.minimum(i + k, goal - 1)

        def choices(p):
            fresh = p[:, :, 0]
            longer = jnp.pad(p, ((0, 0), (0, 0), (0, 6)), constant_values=1.0)
            rolled = (1 - fresh.T)[:, :, None] + sum(longer[:, :, r : r + goal] for r in range(2, 7))
            return rolled / 6, 1 - fresh[j, reached]

        @jax.jit
        def solve(tolerance, p):
            p = jnp.where(won, 1.0, p)

            def sweep(carry):
                p, _, n = carry
                roll, hold = choices(p)
                new = jnp.where(won, 1.0, jnp.maximum(roll, hold))
                return new, jnp.max(jnp.abs(new - p)), n + 1

            going = lambda carry: (carry[1] >= tolerance) & (carry[2] < 1000)
            p, _, steps = jax.lax.while_loop(going, sweep, (p, jnp.inf, 0))
            roll, hold = choices(p)
            return p, jnp.argmax(won | (hold > roll), axis=2), steps

        return solve


class CyclicDescentArm(Model):
    """Inverse kinematics of a planar arm: joint after joint turns the hand to its target, sweep after sweep, for many targets."""

    kind = "orchard"
    dtype = "float64"
    size = dict(joints=7, targets=64, sweeps=30)
    small = dict(joints=3, targets=3, sweeps=4)
    rtol = 1e-7

    def make(self, random, joints, targets, sweeps):
        lengths = 1.0 + 0.3 * random.uniform(size=joints)
        angle, radius = random.uniform(-np.pi, np.pi, targets), random.uniform(0.3, 0.8, targets) * lengths.sum()
        goals = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
        return lengths, goals, np.full(joints, 0.2)

    def rscan(self, joints, targets, sweeps):
        def points(theta, lengths):
            a = rs.cumsum(theta)
            x, y = rs.cumsum(lengths * rs.cos(a)), rs.cumsum(lengths * rs.sin(a))
            return rs.concatenate([rs.zeros(1), x]), rs.concatenate([rs.zeros(1), y])

        def reach(lengths, goal, theta):
            def turn(j, theta):
                x, y = points(theta, lengths)
                wanted = rs.arctan2(goal[1] - y[j], goal[0] - x[j])
                found = rs.arctan2(y[-1] - y[j], x[-1] - x[j])
                new = theta[j] + wanted - found
                new = rs.arctan2(rs.sin(new), rs.cos(new))
                return theta.at[j].set(rs.clip(new, -2.2, 2.2))

            def sweep(theta):
                theta = rs.loop(turn, over=rs.arange(joints - 1, -1, -1), init=theta).last
                x, y = points(theta, lengths)
                miss = rs.hypot(x[-1] - goal[0], y[-1] - goal[1])
                return dict(theta=theta, miss=miss), rs.until(miss < 1e-3)

            out = rs.loop(sweep, init=dict(theta=theta), n_steps=sweeps)
            return out.last.theta, out.miss[-1], out.steps

        return rs.compile(rs.vmap(reach, in_axes=(None, 0, None)))

    def jax(self, joints, targets, sweeps):
        import jax, jax.numpy as jnp

        def points(theta, lengths):
            a = jnp.cumsum(theta)
            x, y = jnp.cumsum(lengths * jnp.cos(a)), jnp.cumsum(lengths * jnp.sin(a))
            return jnp.concatenate([jnp.zeros(1), x]), jnp.concatenate([jnp.zeros(1), y])

        def reach(lengths, goal, theta):
            def turn(theta, j):
                x, y = points(theta, lengths)
                wanted = jnp.arctan2(goal[1] - y[j], goal[0] - x[j])
                found = jnp.arctan2(y[-1] - y[j], x[-1] - x[j])
                new = theta[j] + wanted - found
                new = jnp.arctan2(jnp.sin(new), jnp.cos(new))
                return theta.at[j].set(jnp.clip(new, -2.2, 2.2)), None

            def sweep(carry):
                theta, _, n = carry
                theta, _ = jax.lax.scan(turn, theta, jnp.arange(joints - 1, -1, -1))
                x, y = points(theta, lengths)
                return theta, jnp.hypot(x[-1] - goal[0], y[-1] - goal[1]), n + 1

            going = lambda carry: (carry[1] >= 1e-3) & (carry[2] < sweeps)
            return jax.lax.while_loop(going, sweep, (theta, jnp.inf, 0))

        return jax.jit(jax.vmap(reach, in_axes=(None, 0, None)))


class KnowledgeTracing(Model):
    """Bayesian knowledge tracing: pupils of different lengths with skipped questions; likelihood, score and Hessian."""

    kind = "orchard"
    dtype = "float64"
    size = dict(pupils=50, longest=60)
    small = dict(pupils=3, longest=5)

    def make(self, random, pupils, longest):
        lengths = random.integers(longest // 3, longest + 1, pupils)
        answers = random.choice(np.array([-1, 0, 1]), size=(pupils, longest), p=[0.15, 0.3, 0.55])
        return np.array([-0.5, -1.5, -1.2, -2.0, -3.0]), answers, lengths

    def rscan(self, pupils, longest):
        def pupil(p, answers, length):
            learn, guess, slip, forget = p[1], p[2], p[3], p[4]

            def step(answer, know):
                right = answer == 1
                known = rs.where(right, 1 - slip, slip)
                unknown = rs.where(right, guess, 1 - guess)
                evidence = know * known + (1 - know) * unknown
                seen = answer >= 0
                after = rs.where(seen, know * known / evidence, know)
                return dict(know=after * (1 - forget) + (1 - after) * learn, score=rs.where(seen, rs.log(evidence), 0.0))

            return rs.sum(rs.loop(step, over=dict(answer=answers), init=dict(know=p[0]), n_steps=length).score)

        def loss(p, answers, lengths):
            each = rs.vmap(pupil, in_axes=(None, 0, 0))(rs.sigmoid(p), answers, lengths)
            return -rs.sum(each)

        @rs.compile
        def everything(p, answers, lengths):
            value, score = rs.value_and_grad(loss)(p, answers, lengths)
            return value, score, rs.hessian(loss)(p, answers, lengths)

        return everything

    def jax(self, pupils, longest):
        import jax, jax.numpy as jnp

        def pupil(p, answers, length):
            learn, guess, slip, forget = p[1], p[2], p[3], p[4]

            def step(know, row):
                answer, t = row
                right = answer == 1
                known = jnp.where(right, 1 - slip, slip)
                unknown = jnp.where(right, guess, 1 - guess)
                evidence = know * known + (1 - know) * unknown
                seen = (answer >= 0) & (t < length)
                after = jnp.where(seen, know * known / evidence, know)
                return after * (1 - forget) + (1 - after) * learn, jnp.where(seen, jnp.log(evidence), 0.0)

            return jnp.sum(jax.lax.scan(step, p[0], (answers, jnp.arange(longest)))[1])

        def loss(p, answers, lengths):
            each = jax.vmap(pupil, in_axes=(None, 0, 0))(jax.nn.sigmoid(p), answers, lengths)
            return -jnp.sum(each)

        @jax.jit
        def everything(p, answers, lengths):
            value, score = jax.value_and_grad(loss)(p, answers, lengths)
            return value, score, jax.hessian(loss)(p, answers, lengths)

        return everything


class OperatorFeedbackNotes(Model):
    """Frequency modulation with a feedback operator: the notes of a chord with their envelopes, mixed."""

    kind = "orchard"
    dtype = "float32"
    size = dict(notes=12, samples=3000)
    small = dict(notes=2, samples=9)
    rtol = 1e-3

    def make(self, random, notes, samples):
        pitch = 440.0 * 2.0 ** (random.integers(-24, 24, notes) / 12) / 44100.0
        loud = random.uniform(0.2, 1.0, notes)
        gate = random.integers(samples // 2, samples, notes)
        return pitch.astype("f4"), loud.astype("f4"), gate, np.float32(0.7), np.array([1.0, 3.0, 2.0, 7.0], "f4"), np.array([1.0, 0.6, 0.4, 0.3], "f4")

    def rscan(self, notes, samples):
        def note(pitch, loud, gate, feedback, ratios, depths):
            def step(t, phase, envelope, top):
                before, last = top
                phase = phase + pitch * ratios
                phase = phase - rs.floor(phase)
                aim = rs.where(t < gate, depths, 0.0)
                envelope = envelope + 0.004 * (aim - envelope)
                angle = 6.2831853 * phase
                top = envelope[3] * rs.sin(angle[3] + feedback * (before + last))
                second = envelope[2] * rs.sin(angle[2] + 4.0 * top)
                third = envelope[1] * rs.sin(angle[1] + 3.0 * second)
                return dict(phase=phase, envelope=envelope, top=top, sound=envelope[0] * rs.sin(angle[0] + 3.0 * third + top))

            start = dict(phase=rs.zeros_like(ratios), envelope=rs.zeros_like(depths), top=rs.taps(rs.zeros(2, dtype="float32"), -2, -1))
            return loud * rs.loop(step, over=dict(t=rs.arange(samples)), init=start).sound

        @rs.compile
        def chord(pitch, loud, gate, feedback, ratios, depths):
            return rs.tanh(rs.sum(rs.vmap(note, in_axes=(0, 0, 0, None, None, None))(pitch, loud, gate, feedback, ratios, depths), axis=0))

        return chord

    def jax(self, notes, samples):
        import jax, jax.numpy as jnp

        def note(pitch, loud, gate, feedback, ratios, depths):
            def step(carry, t):
                phase, envelope, before, last = carry
                phase = phase + pitch * ratios
                phase = phase - jnp.floor(phase)
                aim = jnp.where(t < gate, depths, 0.0)
                envelope = envelope + 0.004 * (aim - envelope)
                angle = 6.2831853 * phase
                top = envelope[3] * jnp.sin(angle[3] + feedback * (before + last))
                second = envelope[2] * jnp.sin(angle[2] + 4.0 * top)
                third = envelope[1] * jnp.sin(angle[1] + 3.0 * second)
                return (phase, envelope, last, top), envelope[0] * jnp.sin(angle[0] + 3.0 * third + top)

            zero = jnp.zeros((), "float32")
            start = jnp.zeros_like(ratios), jnp.zeros_like(depths), zero, zero
            return loud * jax.lax.scan(step, start, jnp.arange(samples))[1]

        @jax.jit
        def chord(pitch, loud, gate, feedback, ratios, depths):
            return jnp.tanh(jnp.sum(jax.vmap(note, in_axes=(0, 0, 0, None, None, None))(pitch, loud, gate, feedback, ratios, depths), axis=0))

        return chord


class BorderTableSearch(Model):
    """Knuth, Morris and Pratt: the table of borders of a pattern, falling back in a loop of its own, and all places in a text."""

    kind = "orchard"
    dtype = "int64"
    size = dict(pattern=60, text=12000)
    small = dict(pattern=4, text=30)

    def make(self, random, pattern, text):
        word = np.resize(random.integers(0, 2, 5), pattern)
        word[-2] = 1 - word[-2]
        pieces = [word[: random.integers(1, pattern + 1)] for _ in range(2 + 4 * text // pattern)]
        return word, np.resize(np.concatenate([word, *pieces]), text)

    def rscan(self, pattern, text):
        @rs.compile
        def search(word, letters):
            def fall(borders, c, k):
                apart = lambda k: (k > 0) & (word[k] != c)

                def shorter(k):
                    k = borders[k - 1]
                    return k, rs.until(~apart(k))

                k = rs.loop(shorter, init=k, n_steps=rs.where(apart(k), pattern, 0)).last
                return rs.where(word[k] == c, k + 1, k)

            def build(i, borders, k):
                k = fall(borders, word[i], k)
                return dict(borders=borders.at[i].set(k), k=k)

            start = dict(borders=rs.zeros(pattern, dtype="int64"), k=0)
            borders = rs.loop(build, over=dict(i=rs.arange(1, pattern)), init=start).last.borders

            def read(c, k):
                k = fall(borders, c, k)
                found = k == pattern
                return dict(k=rs.where(found, borders[-1], k), found=found)

            out = rs.loop(read, over=dict(c=letters), init=dict(k=0))
            return borders, out.found, rs.sum(out.k)

        return search

    def jax(self, pattern, text):
        import jax, jax.numpy as jnp

        @jax.jit
        def search(word, letters):
            def fall(borders, c, k):
                k = jax.lax.while_loop(lambda k: (k > 0) & (word[k] != c), lambda k: borders[k - 1], k)
                return jnp.where(word[k] == c, k + 1, k)

            def build(carry, i):
                borders, k = carry
                k = fall(borders, word[i], k)
                return (borders.at[i].set(k), k), None

            (borders, _), _ = jax.lax.scan(build, (jnp.zeros(pattern, "int64"), jnp.int64(0)), jnp.arange(1, pattern))

            def read(k, c):
                k = fall(borders, c, k)
                found = k == pattern
                k = jnp.where(found, borders[-1], k)
                return k, (k, found)

            _, (states, found) = jax.lax.scan(read, jnp.int64(0), letters)
            return borders, found, jnp.sum(states)

        return search
