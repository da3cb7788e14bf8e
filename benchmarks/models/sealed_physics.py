"""Physics, chemistry and filters: small and middling matrices, implicit steps, lattices, stencils in space."""

import numpy as np

import rscan as rs
from models import Model


class QuaternionFilter(Model):
    """A multiplicative Kalman filter of attitude (a quaternion) and gyro bias; likelihood, gradient by noises and first bias."""

    kind = "rigid bodies"
    dtype = "float64"
    size = dict(steps=250)
    small = dict(steps=4)

    def make(self, random, steps):
        rates = 0.3 * np.sin(np.arange(steps)[:, None] / 20 + np.arange(3)) + 0.02 * random.normal(size=(steps, 3)) + 0.05
        sky = np.array([[0.0, 0.0, 1.0], [0.6, 0.0, -0.8]])
        seen = np.zeros((steps, 2, 3))
        body = np.eye(3)
        for t in range(steps):
            x, y, z = 0.1 * (rates[t] - 0.05)
            body = (np.eye(3) - np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])) @ body
            seen[t] = sky @ np.linalg.qr(body)[0].T * np.sign(np.diag(np.linalg.qr(body)[1]))
        return np.array([-3.0, -5.0, -1.5]), np.zeros(3), rates, sky, seen + 0.05 * random.normal(size=seen.shape)

    def rscan(self, steps):
        @rs.compile
        def nll(log_noise, bias0, rates, sky, seen):
            dt, eye = 0.1, rs.eye(3)
            gyro, drift, error = rs.exp(log_noise[0]), rs.exp(log_noise[1]), rs.exp(log_noise[2])

            def skew(v):
                return rs.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])

            def times(p, q):
                w = p[0] * q[0] - rs.dot(p[1:], q[1:])
                return rs.concatenate([rs.stack([w]), p[0] * q[1:] + q[0] * p[1:] + rs.cross(p[1:], q[1:])])

            def rotation(q):  # from the sky to the body
                w, v = q[0], q[1:]
                return (w * w - rs.dot(v, v)) * eye + 2 * rs.outer(v, v) - 2 * w * skew(v)

            def step(rate, z, q, bias, cov):
                turn = dt * (rate - bias)
                half = 0.5 * rs.sqrt(rs.dot(turn, turn) + 1e-16)
                q = times(q, rs.concatenate([rs.stack([rs.cos(half)]), 0.5 * turn * rs.sin(half) / half]))
                move = rs.block([[eye - skew(turn), -dt * eye], [rs.zeros((3, 3)), eye]])
                noise = rs.block([[dt * gyro**2 * eye, rs.zeros((3, 3))], [rs.zeros((3, 3)), dt * drift**2 * eye]])
                cov = move @ cov @ move.T + noise
                expected = sky @ rotation(q).T
                look = rs.block([[skew(expected[0]), rs.zeros((3, 3))], [skew(expected[1]), rs.zeros((3, 3))]])
                innovation = (z - expected).reshape((6,))
                s = look @ cov @ look.T + error**2 * rs.eye(6)
                factor = rs.linalg.cholesky(s)
                gain = rs.linalg.cho_solve((factor, True), look @ cov).T
                white = rs.linalg.solve_triangular(factor, innovation, lower=True)
                change = gain @ innovation
                q = times(q, rs.concatenate([rs.ones(1), 0.5 * change[:3]]))
                q = q / rs.sqrt(rs.dot(q, q))
                keep = rs.eye(6) - gain @ look
                cov = keep @ cov @ keep.T + error**2 * gain @ gain.T
                ll = 0.5 * rs.dot(white, white) + rs.sum(rs.log(rs.diag(factor)))
                return dict(q=q, bias=bias + change[3:], cov=cov, ll=ll)

            start = dict(q=np.array([1.0, 0.0, 0.0, 0.0]), bias=bias0, cov=0.1 * rs.eye(6))
            return rs.sum(rs.loop(step, over=dict(rate=rates, z=seen), init=start).ll)

        return rs.value_and_grad(nll, wrt=(0, 1))

    def jax(self, steps):
        import jax
        import jax.numpy as jnp
        from jax import lax
        from jax.scipy.linalg import cho_solve, solve_triangular

        def nll(log_noise, bias0, rates, sky, seen):
            dt, eye = 0.1, jnp.eye(3)
            gyro, drift, error = jnp.exp(log_noise)

            def skew(v):
                return jnp.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])

            def times(p, q):
                w = p[0] * q[0] - jnp.dot(p[1:], q[1:])
                return jnp.concatenate([w[None], p[0] * q[1:] + q[0] * p[1:] + jnp.cross(p[1:], q[1:])])

            def rotation(q):
                w, v = q[0], q[1:]
                return (w * w - jnp.dot(v, v)) * eye + 2 * jnp.outer(v, v) - 2 * w * skew(v)

            def step(state, x):
                q, bias, cov = state
                rate, z = x
                turn = dt * (rate - bias)
                half = 0.5 * jnp.sqrt(jnp.dot(turn, turn) + 1e-16)
                q = times(q, jnp.concatenate([jnp.cos(half)[None], 0.5 * turn * jnp.sin(half) / half]))
                move = jnp.block([[eye - skew(turn), -dt * eye], [jnp.zeros((3, 3)), eye]])
                noise = jnp.block([[dt * gyro**2 * eye, jnp.zeros((3, 3))], [jnp.zeros((3, 3)), dt * drift**2 * eye]])
                cov = move @ cov @ move.T + noise
                expected = sky @ rotation(q).T
                look = jnp.block([[skew(expected[0]), jnp.zeros((3, 3))], [skew(expected[1]), jnp.zeros((3, 3))]])
                innovation = (z - expected).reshape(6)
                s = look @ cov @ look.T + error**2 * jnp.eye(6)
                factor = jnp.linalg.cholesky(s)
                gain = cho_solve((factor, True), look @ cov).T
                white = solve_triangular(factor, innovation, lower=True)
                change = gain @ innovation
                q = times(q, jnp.concatenate([jnp.ones(1), 0.5 * change[:3]]))
                q = q / jnp.sqrt(jnp.dot(q, q))
                keep = jnp.eye(6) - gain @ look
                cov = keep @ cov @ keep.T + error**2 * gain @ gain.T
                ll = 0.5 * jnp.dot(white, white) + jnp.sum(jnp.log(jnp.diag(factor)))
                return (q, bias + change[3:], cov), ll

            start = jnp.array([1.0, 0.0, 0.0, 0.0]), bias0, 0.1 * jnp.eye(6)
            return jnp.sum(lax.scan(step, start, (rates, seen))[1])

        return jax.jit(jax.value_and_grad(nll, argnums=(0, 1)))


class StiffKinetics(Model):
    """A network of reactions by backward Euler, Newton's method with the Jacobian of the residual; gradient by all rates."""

    kind = "implicit steps"
    dtype = "float64"
    size = dict(steps=100, species=9, reactions=16, newton=4)
    small = dict(steps=4, species=4, reactions=5, newton=3)
    rtol = 1e-7

    def make(self, random, steps, species, reactions, newton):
        first = random.integers(0, species, size=reactions)
        second = np.where(random.random(reactions) < 0.5, species, random.integers(0, species, size=reactions))  # species: nothing
        change = np.zeros((species, reactions))
        for r in range(reactions):
            change[first[r], r] -= 1
            if second[r] < species:
                change[second[r], r] -= 1
            for _ in range(2 if second[r] < species else 1):
                change[random.integers(0, species), r] += 1
        y0 = random.random(species)
        dts = np.geomspace(1e-4, 0.5, steps)
        return random.uniform(-2, 5, size=reactions), y0, change, first, second, dts, random.random((steps, species))

    def rscan(self, steps, species, reactions, newton):
        @rs.compile
        def misfit(log_rates, y0, change, first, second, dts, data):
            rates = rs.exp(log_rates)

            def slope(y):
                c = rs.concatenate([y, rs.ones(1)])
                return change @ (rates * c[first] * c[second])

            def step(dt, wanted, y):
                def residual(new):
                    return new - y - dt * slope(new)

                def improve(new):
                    return new - rs.linalg.solve(rs.jacobian(residual)(new), residual(new))

                new = rs.loop(improve, init=y, n_steps=newton)[-1]
                return dict(y=new, e=rs.sum((new - wanted) ** 2))

            return rs.sum(rs.loop(step, over=dict(dt=dts, wanted=data), init=dict(y=y0)).e)

        return rs.value_and_grad(misfit, wrt=(0, 1))

    def jax(self, steps, species, reactions, newton):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def misfit(log_rates, y0, change, first, second, dts, data):
            rates = jnp.exp(log_rates)

            def slope(y):
                c = jnp.concatenate([y, jnp.ones(1)])
                return change @ (rates * c[first] * c[second])

            def step(y, x):
                dt, wanted = x

                def residual(new):
                    return new - y - dt * slope(new)

                def improve(_, new):
                    return new - jnp.linalg.solve(jax.jacfwd(residual)(new), residual(new))

                new = lax.fori_loop(0, newton, improve, y)
                return new, jnp.sum((new - wanted) ** 2)

            return jnp.sum(lax.scan(step, y0, (dts, data))[1])

        return jax.jit(jax.value_and_grad(misfit, argnums=(0, 1)))


class SmoothedTrend(Model):
    """Rauch, Tung and Striebel's smoother of level, slope and a cycle with gaps in the data; gradient by variances."""

    kind = "forwards and backwards"
    dtype = "float64"
    size = dict(steps=400)
    small = dict(steps=5)

    def make(self, random, steps):
        t = np.arange(steps)
        truth = 0.01 * t + np.cos(t / 6) + np.cumsum(0.05 * random.normal(size=steps))
        seen = np.where(random.random(steps) < 0.25, np.nan, truth + 0.3 * random.normal(size=steps))
        return np.array([-5.0, -9.0, -4.0, -2.0, 1.0 / 6]), seen, truth

    def rscan(self, steps):
        @rs.compile
        def gap(p, seen, truth):
            c, s = 0.99 * rs.cos(p[4]), 0.99 * rs.sin(p[4])
            f = rs.array([[1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, c, s], [0.0, 0.0, -s, c]])
            q = rs.diag(rs.exp(rs.stack([p[0], p[1], p[2], p[2]])))
            h, r = np.array([1.0, 0.0, 1.0, 0.0]), rs.exp(p[3])

            def forwards(y, m, cov):
                before, spread = f @ m, f @ cov @ f.T + q
                missing = rs.isnan(y)
                gain = spread @ h / (rs.dot(h, spread @ h) + r)
                error = rs.where(missing, 0.0, rs.where(missing, 0.0, y) - rs.dot(h, before))
                gain = rs.where(missing, 0.0, gain)
                after = spread - rs.outer(gain, h @ spread)
                return dict(m=before + gain * error, cov=0.5 * (after + after.T), before=before, spread=spread)

            out = rs.loop(forwards, over=dict(y=seen), init=dict(m=rs.zeros(4), cov=rs.eye(4)))

            def backwards(m, cov, before, spread, ms, covs):
                j = rs.linalg.solve(spread, f @ cov).T
                ms = m + j @ (ms - before)
                covs = cov + j @ (covs - spread) @ j.T
                return dict(ms=ms, covs=covs)

            over = dict(m=out.m[:-1], cov=out.cov[:-1], before=out.before[1:], spread=out.spread[1:])
            smooth = rs.loop(backwards, over=over, init=dict(ms=out.m[-1], covs=out.cov[-1]), reverse=True)
            guess, variance = smooth.ms @ h, smooth.covs @ h @ h + r
            return 0.5 * rs.sum((guess - truth[:-1]) ** 2 / variance + rs.log(variance)), guess

        return rs.value_and_grad(gap, has_aux=True)

    def jax(self, steps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def gap(p, seen, truth):
            c, s = 0.99 * jnp.cos(p[4]), 0.99 * jnp.sin(p[4])
            f = jnp.array([[1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, c, s], [0.0, 0.0, -s, c]])
            q = jnp.diag(jnp.exp(jnp.stack([p[0], p[1], p[2], p[2]])))
            h, r = jnp.array([1.0, 0.0, 1.0, 0.0]), jnp.exp(p[3])

            def forwards(state, y):
                m, cov = state
                before, spread = f @ m, f @ cov @ f.T + q
                missing = jnp.isnan(y)
                gain = spread @ h / (jnp.dot(h, spread @ h) + r)
                error = jnp.where(missing, 0.0, jnp.where(missing, 0.0, y) - jnp.dot(h, before))
                gain = jnp.where(missing, 0.0, gain)
                after = spread - jnp.outer(gain, h @ spread)
                state = before + gain * error, 0.5 * (after + after.T)
                return state, (*state, before, spread)

            _, (m, cov, before, spread) = lax.scan(forwards, (jnp.zeros(4), jnp.eye(4)), seen)

            def backwards(state, x):
                ms, covs = state
                m, cov, before, spread = x
                j = jnp.linalg.solve(spread, f @ cov).T
                state = m + j @ (ms - before), cov + j @ (covs - spread) @ j.T
                return state, state

            rows = m[:-1], cov[:-1], before[1:], spread[1:]
            _, (ms, covs) = lax.scan(backwards, (m[-1], cov[-1]), rows, reverse=True)
            guess, variance = ms @ h, covs @ h @ h + r
            return 0.5 * jnp.sum((guess - truth[:-1]) ** 2 / variance + jnp.log(variance)), guess

        return jax.jit(jax.value_and_grad(gap, has_aux=True))


class CatchAtAge(Model):
    """A fish stock by ages under a fleet, recruits come of the spawners of two years ago; misfit, gradient by all efforts."""

    kind = "age structures"
    dtype = "float64"
    size = dict(years=120, ages=30)
    small = dict(years=5, ages=4)

    def make(self, random, years, ages):
        p = dict(
            effort=-1.5 + 0.2 * random.normal(size=years),
            recruits=0.3 * random.normal(size=years),
            biology=np.array([-1.6, 0.8, 2.0]),  # log natural mortality, slope of the gear, log productivity
            half=np.float64(ages / 4),
        )
        catches = np.exp(random.normal(size=(years, ages)) - 2)
        return p, catches, np.exp(0.3 * random.normal(size=years) + 2)

    def rscan(self, years, ages):
        @rs.compile
        def nll(p, catches, survey):
            age = rs.arange(float(ages))
            weight = (1 - rs.exp(-0.2 * (age + 0.5))) ** 3
            mature = rs.sigmoid(age - 3.0)
            mortality = rs.exp(p["biology"][0])
            gear = rs.sigmoid(p["biology"][1] * (age - p["half"]))
            first = rs.exp(-mortality * age)

            def step(effort, deviation, caught, index, n, spawners):
                fishing = gear * rs.exp(effort)
                z = fishing + mortality
                survive = rs.exp(-z)
                catch = n * fishing / z * (1 - survive)
                older = (n * survive)[:-2]
                rest = rs.sum((n * survive)[-2:], keepdims=True)
                recruits = rs.exp(p["biology"][2] + deviation) * spawners[0] / (1 + spawners[0])
                next_n = rs.concatenate([rs.stack([recruits]), older, rest])
                error = rs.sum((rs.log(caught) - rs.log(catch + 1e-9)) ** 2)
                seen = (rs.log(index) - rs.log(rs.sum(n * gear * weight))) ** 2
                return dict(n=next_n, spawners=rs.sum(next_n * weight * mature), e=error + 5 * seen)

            over = dict(effort=p["effort"], deviation=p["recruits"], caught=catches, index=survey)
            start = rs.sum(first * weight * mature)
            out = rs.loop(step, over=over, init=dict(n=first, spawners=rs.taps(rs.stack([start, start]), -2, -1)))
            return rs.sum(out.e) + 2 * rs.sum(p["recruits"] ** 2) + rs.sum(rs.diff(p["effort"]) ** 2)

        return rs.value_and_grad(nll)

    def jax(self, years, ages):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def nll(p, catches, survey):
            age = jnp.arange(float(ages))
            weight = (1 - jnp.exp(-0.2 * (age + 0.5))) ** 3
            mature = jax.nn.sigmoid(age - 3.0)
            mortality = jnp.exp(p["biology"][0])
            gear = jax.nn.sigmoid(p["biology"][1] * (age - p["half"]))
            first = jnp.exp(-mortality * age)

            def step(state, x):
                n, two, one = state
                effort, deviation, caught, index = x
                fishing = gear * jnp.exp(effort)
                z = fishing + mortality
                survive = jnp.exp(-z)
                catch = n * fishing / z * (1 - survive)
                older = (n * survive)[:-2]
                rest = jnp.sum((n * survive)[-2:], keepdims=True)
                recruits = jnp.exp(p["biology"][2] + deviation) * two / (1 + two)
                next_n = jnp.concatenate([recruits[None], older, rest])
                error = jnp.sum((jnp.log(caught) - jnp.log(catch + 1e-9)) ** 2)
                seen = (jnp.log(index) - jnp.log(jnp.sum(n * gear * weight))) ** 2
                return (next_n, one, jnp.sum(next_n * weight * mature)), error + 5 * seen

            start = jnp.sum(first * weight * mature)
            _, e = lax.scan(step, (first, start, start), (p["effort"], p["recruits"], catches, survey))
            return jnp.sum(e) + 2 * jnp.sum(p["recruits"] ** 2) + jnp.sum(jnp.diff(p["effort"]) ** 2)

        return jax.jit(jax.value_and_grad(nll))


class ChebyshevMoments(Model):
    """The density of states of a disordered lattice by Chebyshev moments of random vectors; gradient by energies of sites."""

    kind = "middling matrices"
    dtype = "float64"
    size = dict(moments=96, sites=120, vectors=4)
    small = dict(moments=5, sites=6, vectors=2)

    def make(self, random, moments, sites, vectors):
        hops = np.zeros((sites, sites))
        ring = np.arange(sites)
        hops[ring, (ring + 1) % sites] = hops[ring, (ring + 7) % sites] = 1.0
        wanted = 1 + 0.2 * np.cos(np.linspace(0, 7, 60))
        starts = random.choice([-1.0, 1.0], size=(sites, vectors))
        return random.uniform(-1, 1, size=sites), 0.9, hops + hops.T, starts, np.linspace(-0.95, 0.95, 60), wanted

    def rscan(self, moments, sites, vectors):
        @rs.compile
        def misfit(energies, hop, hops, starts, grid, wanted):
            h = (rs.diag(energies) - hop * hops) / 6.0

            def step(v):
                before, now = v
                new = 2 * h @ now - before
                return dict(v=new, moment=rs.sum(starts * new) / (sites * vectors))

            first = h @ starts
            out = rs.loop(step, init=dict(v=rs.taps(rs.stack([starts, first]), -2, -1)), n_steps=moments - 2)
            mu = rs.concatenate([rs.stack([1.0, rs.sum(starts * first) / (sites * vectors)]), out.moment])
            k = rs.arange(float(moments))
            a = np.pi / (moments + 1)
            jackson = ((moments - k + 1) * rs.cos(a * k) + rs.sin(a * k) / np.tan(a)) / (moments + 1)
            coefficients = rs.where(k > 0, 2.0, 1.0) * jackson * mu
            density = rs.cos(rs.outer(rs.arccos(grid), k)) @ coefficients / rs.sqrt(1 - grid**2)
            return rs.mean((density - wanted) ** 2)

        return rs.value_and_grad(misfit, wrt=(0, 1))

    def jax(self, moments, sites, vectors):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def misfit(energies, hop, hops, starts, grid, wanted):
            h = (jnp.diag(energies) - hop * hops) / 6.0

            def step(v, _):
                before, now = v
                new = 2 * h @ now - before
                return (now, new), jnp.sum(starts * new) / (sites * vectors)

            first = h @ starts
            _, rest = lax.scan(step, (starts, first), None, length=moments - 2)
            mu = jnp.concatenate([jnp.stack([1.0, jnp.sum(starts * first) / (sites * vectors)]), rest])
            k = jnp.arange(float(moments))
            a = np.pi / (moments + 1)
            jackson = ((moments - k + 1) * jnp.cos(a * k) + jnp.sin(a * k) / np.tan(a)) / (moments + 1)
            coefficients = jnp.where(k > 0, 2.0, 1.0) * jackson * mu
            density = jnp.cos(jnp.outer(jnp.arccos(grid), k)) @ coefficients / jnp.sqrt(1 - grid**2)
            return jnp.mean((density - wanted) ** 2)

        return jax.jit(jax.value_and_grad(misfit, argnums=(0, 1)))


class GaussianProcessBandit(Model):
    """Trials chosen by an upper bound of a Gaussian process whose factor grows by a row each; gradient by its scales."""

    kind = "growing matrices"
    dtype = "float64"
    size = dict(trials=60, places=250)
    small = dict(trials=4, places=8)

    def make(self, random, trials, places):
        x = random.random((places, 2))
        payoff = np.sin(6 * x[:, 0]) + np.cos(5 * x[:, 1]) + 0.1 * random.normal(size=places)
        return np.array([-1.2, -0.9, -3.0]), x, payoff, 0.1 * random.normal(size=trials)

    def rscan(self, trials, places):
        @rs.compile
        def nll(p, x, payoff, noise):
            scaled = x / rs.exp(p[:2])
            variance = rs.exp(p[2])

            def step(e, t, mean, spread, rows):
                chosen = rs.argmax(mean + 2.0 * rs.sqrt(rs.maximum(spread, 1e-10)))
                outcome = payoff[chosen] + e
                distance = rs.sum((scaled - scaled[chosen]) ** 2, axis=1)
                scale = rs.sqrt(spread[chosen] + variance)
                row = (rs.exp(-0.5 * distance) - rows[:, chosen] @ rows) / scale
                surprise = (outcome - mean[chosen]) / scale
                return dict(
                    mean=mean + row * surprise,
                    spread=spread - row * row,
                    rows=rows.at[t].set(row),
                    chosen=chosen,
                    e=0.5 * surprise**2 + rs.log(scale),
                )

            start = dict(mean=rs.zeros(places), spread=rs.ones(places), rows=rs.zeros((trials, places)))
            out = rs.loop(step, over=dict(e=noise, t=rs.arange(trials)), init=start)
            return rs.sum(out.e), (out.chosen, rs.max(out.last.mean))

        return rs.value_and_grad(nll, has_aux=True)

    def jax(self, trials, places):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def nll(p, x, payoff, noise):
            scaled = x / jnp.exp(p[:2])
            variance = jnp.exp(p[2])

            def step(state, xs):
                mean, spread, rows = state
                e, t = xs
                chosen = jnp.argmax(mean + 2.0 * jnp.sqrt(jnp.maximum(spread, 1e-10)))
                outcome = payoff[chosen] + e
                distance = jnp.sum((scaled - scaled[chosen]) ** 2, axis=1)
                scale = jnp.sqrt(spread[chosen] + variance)
                row = (jnp.exp(-0.5 * distance) - rows[:, chosen] @ rows) / scale
                surprise = (outcome - mean[chosen]) / scale
                state = mean + row * surprise, spread - row * row, rows.at[t].set(row)
                return state, (chosen, 0.5 * surprise**2 + jnp.log(scale))

            start = jnp.zeros(places), jnp.ones(places), jnp.zeros((trials, places))
            (mean, _, _), (chosen, e) = lax.scan(step, start, (noise, jnp.arange(trials)))
            return jnp.sum(e), (chosen, jnp.max(mean))

        return jax.jit(jax.value_and_grad(nll, has_aux=True))


class HangingRope(Model):
    """A rope by position-based dynamics: sweeps over its links pull two points at a time; gradient by numbers and start."""

    kind = "loops in loops"
    dtype = "float64"
    size = dict(steps=30, points=16, sweeps=4)
    small = dict(steps=3, points=3, sweeps=2)

    def make(self, random, steps, points, sweeps):
        start = np.stack([np.linspace(0, 1, points), 0.1 * np.sin(np.arange(points) / 2.0)], 1)
        return np.array([9.81, 0.002, 0.3]), start, np.array([0.2, -0.8])  # gravity, compliance, air

    def rscan(self, steps, points, sweeps):
        @rs.compile
        def miss(p, start, goal):
            dt, rest = 0.03, 1.0 / (points - 1)
            mass = rs.where(rs.arange(points) == 0, 0.0, 1.0)  # inverse; the first point is held
            softness = p[1] / (dt * dt)

            def step(x, v):
                v = mass[:, None] * (v * (1 - dt * p[2]) + dt * rs.stack([0.0, -p[0]]))
                moved = x + dt * v

                def sweep(y, pull):
                    def link(i, y, pull):
                        d = y[i + 1] - y[i]
                        length = rs.sqrt(rs.sum(d * d))
                        more = -(length - rest + softness * pull[i]) / (mass[i] + mass[i + 1] + softness)
                        push = more * d / length
                        y = y.at[i].add(-mass[i] * push).at[i + 1].add(mass[i + 1] * push)
                        return dict(y=y, pull=pull.at[i].add(more))

                    last = rs.loop(link, over=dict(i=rs.arange(points - 1)), init=dict(y=y, pull=pull)).last
                    return dict(y=last.y, pull=last.pull)

                y = rs.loop(sweep, init=dict(y=moved, pull=rs.zeros(points - 1)), n_steps=sweeps).last.y
                return dict(x=y, v=(y - x) / dt)

            out = rs.loop(step, init=dict(x=start, v=rs.zeros((points, 2))), n_steps=steps)
            return rs.sum((out.x[-1, -1] - goal) ** 2) + 0.01 * rs.mean(out.v**2)

        return rs.value_and_grad(miss, wrt=(0, 1))

    def jax(self, steps, points, sweeps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def miss(p, start, goal):
            dt, rest = 0.03, 1.0 / (points - 1)
            mass = jnp.where(jnp.arange(points) == 0, 0.0, 1.0)
            softness = p[1] / (dt * dt)

            def step(state, _):
                x, v = state
                v = mass[:, None] * (v * (1 - dt * p[2]) + dt * jnp.stack([0.0, -p[0]]))
                moved = x + dt * v

                def sweep(_, state):
                    def link(i, state):
                        y, pull = state
                        d = y[i + 1] - y[i]
                        length = jnp.sqrt(jnp.sum(d * d))
                        more = -(length - rest + softness * pull[i]) / (mass[i] + mass[i + 1] + softness)
                        push = more * d / length
                        y = y.at[i].add(-mass[i] * push).at[i + 1].add(mass[i + 1] * push)
                        return y, pull.at[i].add(more)

                    return lax.fori_loop(0, points - 1, link, state)

                y, _ = lax.fori_loop(0, sweeps, sweep, (moved, jnp.zeros(points - 1)))
                state = y, (y - x) / dt
                return state, state

            _, (x, v) = lax.scan(step, (start, jnp.zeros((points, 2))), None, length=steps)
            return jnp.sum((x[-1, -1] - goal) ** 2) + 0.01 * jnp.mean(v**2)

        return jax.jit(jax.value_and_grad(miss, argnums=(0, 1)))


class WisdomHolman(Model):
    """Planets by Wisdom and Holman's map: kicks, then Kepler's orbits with Newton's iteration; gradient by masses and places."""

    kind = "orbits"
    dtype = "float64"
    size = dict(steps=400, planets=5, newton=6)
    small = dict(steps=4, planets=2, newton=4)

    def make(self, random, steps, planets, newton):
        radius = 1.6 ** np.arange(planets)
        angle = random.uniform(0, 2 * np.pi, size=planets)
        place = radius[:, None] * np.stack([np.cos(angle), np.sin(angle), 0.05 * random.normal(size=planets)], 1)
        speed = np.stack([-np.sin(angle), np.cos(angle), 0.02 * random.normal(size=planets)], 1) / np.sqrt(radius)[:, None]
        speed = speed * (1 + 0.05 * random.normal(size=(planets, 1)))
        return random.uniform(-9, -6, size=planets), place, speed, 0.08

    def rscan(self, steps, planets, newton):
        @rs.compile
        def away(log_mass, place, speed, dt):
            mass = rs.exp(log_mass)

            def kick(x):
                d = x[None, :, :] - x[:, None, :]
                r2 = rs.sum(d * d, axis=2) + rs.eye(planets)
                direct = rs.sum((mass[None, :] * r2**-1.5)[:, :, None] * d, axis=1)
                pull = mass * rs.sum(x * x, axis=1) ** -1.5
                return direct - rs.sum(pull[:, None] * x, axis=0)

            def drift(x, v):
                r = rs.sqrt(rs.sum(x * x, axis=1))
                a = 1 / (2 / r - rs.sum(v * v, axis=1))
                n = a**-1.5
                ec, es = 1 - r / a, rs.sum(x * v, axis=1) / rs.sqrt(a)

                def improve(e):
                    error = e - ec * rs.sin(e) + es * (1 - rs.cos(e)) - n * dt
                    return e - error / (1 - ec * rs.cos(e) + es * rs.sin(e))

                e = rs.loop(improve, init=n * dt, n_steps=newton)[-1]
                f = 1 - a / r * (1 - rs.cos(e))
                g = dt - (e - rs.sin(e)) / n
                far = a * (1 - ec * rs.cos(e) + es * rs.sin(e))
                df = -rs.sqrt(a) / (far * r) * rs.sin(e)
                dg = 1 - a / far * (1 - rs.cos(e))
                return f[:, None] * x + g[:, None] * v, df[:, None] * x + dg[:, None] * v

            def step(x, v):
                v = v + 0.5 * dt * kick(x)
                x, v = drift(x, v)
                v = v + 0.5 * dt * kick(x)
                return dict(x=x, v=v, gap=rs.min(rs.sum((x[1:] - x[:-1]) ** 2, axis=1)))

            out = rs.loop(step, init=dict(x=place, v=speed), n_steps=steps)
            return rs.sum(out.x[-1] ** 2 * np.array([1.0, 2.0, 3.0])), rs.min(out.gap)

        return rs.value_and_grad(away, wrt=(0, 1), has_aux=True)

    def jax(self, steps, planets, newton):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def away(log_mass, place, speed, dt):
            mass = jnp.exp(log_mass)

            def kick(x):
                d = x[None, :, :] - x[:, None, :]
                r2 = jnp.sum(d * d, axis=2) + jnp.eye(planets)
                direct = jnp.sum((mass[None, :] * r2**-1.5)[:, :, None] * d, axis=1)
                pull = mass * jnp.sum(x * x, axis=1) ** -1.5
                return direct - jnp.sum(pull[:, None] * x, axis=0)

            def drift(x, v):
                r = jnp.sqrt(jnp.sum(x * x, axis=1))
                a = 1 / (2 / r - jnp.sum(v * v, axis=1))
                n = a**-1.5
                ec, es = 1 - r / a, jnp.sum(x * v, axis=1) / jnp.sqrt(a)

                def improve(_, e):
                    error = e - ec * jnp.sin(e) + es * (1 - jnp.cos(e)) - n * dt
                    return e - error / (1 - ec * jnp.cos(e) + es * jnp.sin(e))

                e = lax.fori_loop(0, newton, improve, n * dt)
                f = 1 - a / r * (1 - jnp.cos(e))
                g = dt - (e - jnp.sin(e)) / n
                far = a * (1 - ec * jnp.cos(e) + es * jnp.sin(e))
                df = -jnp.sqrt(a) / (far * r) * jnp.sin(e)
                dg = 1 - a / far * (1 - jnp.cos(e))
                return f[:, None] * x + g[:, None] * v, df[:, None] * x + dg[:, None] * v

            def step(state, _):
                x, v = state
                v = v + 0.5 * dt * kick(x)
                x, v = drift(x, v)
                v = v + 0.5 * dt * kick(x)
                return (x, v), jnp.min(jnp.sum((x[1:] - x[:-1]) ** 2, axis=1))

            (x, _), gap = lax.scan(step, (place, speed), None, length=steps)
            return jnp.sum(x**2 * jnp.array([1.0, 2.0, 3.0])), jnp.min(gap)

        return jax.jit(jax.value_and_grad(away, argnums=(0, 1), has_aux=True))


class LayeredMirror(Model):
    """The reflection of thin films at many wavelengths: small matrices are multiplied layer by layer; gradient by thicknesses."""

    kind = "batches of small matrices"
    dtype = "float32"
    size = dict(layers=120, waves=80)
    small = dict(layers=5, waves=3)
    rtol = 2e-3

    def make(self, random, layers, waves):
        thickness = np.where(np.arange(layers) % 2, 0.095, 0.06) * (1 + 0.1 * random.normal(size=layers))
        films = np.array([[1.45, 0.004], [2.2, 0.02], [1.65, 0.006]])  # Cauchy's coefficients of each material
        kinds = np.where(random.random(layers) < 0.1, 2, np.arange(layers) % 2)
        wavelength = np.linspace(0.4, 0.8, waves)
        wanted = (np.abs(wavelength - 0.55) < 0.06) * 1.0
        return tuple(a.astype("f") for a in (thickness, films)) + (kinds, wavelength.astype("f"), wanted.astype("f"))

    def rscan(self, layers, waves):
        @rs.compile
        def misfit(thickness, films, kinds, wavelength, wanted):
            def step(d, kind, m):
                n = films[kind, 0] + films[kind, 1] / wavelength**2
                phase = 2 * np.pi * n * d / wavelength
                c, s = rs.cos(phase), rs.sin(phase)
                layer = rs.stack([rs.stack([c, s / n], axis=1), rs.stack([-n * s, c], axis=1)], axis=1)
                return m @ layer

            start = rs.broadcast_to(rs.eye(2, dtype="float32"), (waves, 2, 2))
            m = rs.loop(step, over=[thickness, kinds], init=start)[-1]
            glass = 1.52
            a, b, c, d = m[:, 0, 0], m[:, 0, 1], -m[:, 1, 0], m[:, 1, 1]
            up = (a - glass * d) ** 2 + (glass * b - c) ** 2
            down = (a + glass * d) ** 2 + (glass * b + c) ** 2
            reflected = up / down
            return rs.mean((reflected - wanted) ** 2), reflected

        return rs.value_and_grad(misfit, wrt=(0, 1), has_aux=True)

    def jax(self, layers, waves):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def misfit(thickness, films, kinds, wavelength, wanted):
            def step(m, x):
                d, kind = x
                n = films[kind, 0] + films[kind, 1] / wavelength**2
                phase = 2 * np.pi * n * d / wavelength
                c, s = jnp.cos(phase), jnp.sin(phase)
                layer = jnp.stack([jnp.stack([c, s / n], axis=1), jnp.stack([-n * s, c], axis=1)], axis=1)
                return m @ layer, None

            start = jnp.broadcast_to(jnp.eye(2, dtype="float32"), (waves, 2, 2))
            m, _ = lax.scan(step, start, (thickness, kinds))
            glass = 1.52
            a, b, c, d = m[:, 0, 0], m[:, 0, 1], -m[:, 1, 0], m[:, 1, 1]
            up = (a - glass * d) ** 2 + (glass * b - c) ** 2
            down = (a + glass * d) ** 2 + (glass * b + c) ** 2
            reflected = up / down
            return jnp.mean((reflected - wanted) ** 2), reflected

        return jax.jit(jax.value_and_grad(misfit, argnums=(0, 1), has_aux=True))


class AcousticCube(Model):
    """Sound in a cube with damping walls: seven points in space and two steps back in time; gradient by all speeds."""

    kind = "stencils in space"
    dtype = "float32"
    size = dict(steps=60, side=20, receivers=12)
    small = dict(steps=6, side=4, receivers=3)
    rtol = 1e-3

    def make(self, random, steps, side, receivers):
        speed = 0.35 + 0.05 * random.random((side, side, side))
        edge = np.minimum(np.arange(side), np.arange(side)[::-1])
        depth = np.minimum(np.minimum(edge[:, None, None], edge[None, :, None]), edge[None, None, :])
        calm = 0.05 * np.maximum(3 - depth, 0)
        t = np.arange(steps) / 5 - 0.8
        wavelet = (1 - 2 * (np.pi * t) ** 2) * np.exp(-((np.pi * t) ** 2))
        seen = 0.05 * random.normal(size=(steps, receivers))
        places = random.integers(1, side - 1, size=(receivers, 3))
        return speed.astype("f"), calm.astype("f"), wavelet.astype("f"), places, seen.astype("f")

    def rscan(self, steps, side, receivers):
        @rs.compile
        def misfit(speed, calm, wavelet, places, seen):
            middle = side // 2
            i, j, k = places[:, 0], places[:, 1], places[:, 2]

            def step(force, heard, p):
                before, now = p
                q = rs.pad(now, 1)
                around = q[2:, 1:-1, 1:-1] + q[:-2, 1:-1, 1:-1] + q[1:-1, 2:, 1:-1] + q[1:-1, :-2, 1:-1]
                laplace = around + q[1:-1, 1:-1, 2:] + q[1:-1, 1:-1, :-2] - 6 * now
                new = ((2 - calm) * now - (1 - calm) * before) + speed**2 * laplace
                new = new.at[middle, middle, middle].add(force)
                return dict(p=new, e=rs.sum((new[i, j, k] - heard) ** 2))

            silence = rs.zeros((2, side, side, side), dtype="float32")
            out = rs.loop(step, over=dict(force=wavelet, heard=seen), init=dict(p=rs.taps(silence, -2, -1)))
            return rs.sum(out.e)

        return rs.value_and_grad(misfit)

    def jax(self, steps, side, receivers):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def misfit(speed, calm, wavelet, places, seen):
            middle = side // 2
            i, j, k = places.T

            def step(p, x):
                before, now = p
                force, heard = x
                q = jnp.pad(now, 1)
                around = q[2:, 1:-1, 1:-1] + q[:-2, 1:-1, 1:-1] + q[1:-1, 2:, 1:-1] + q[1:-1, :-2, 1:-1]
                laplace = around + q[1:-1, 1:-1, 2:] + q[1:-1, 1:-1, :-2] - 6 * now
                new = ((2 - calm) * now - (1 - calm) * before) + speed**2 * laplace
                new = new.at[middle, middle, middle].add(force)
                return (now, new), jnp.sum((new[i, j, k] - heard) ** 2)

            silence = jnp.zeros((side, side, side), "float32")
            return jnp.sum(lax.scan(step, (silence, silence), (wavelet, seen))[1])

        return jax.jit(jax.value_and_grad(misfit))
