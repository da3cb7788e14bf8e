"""Loops in loops: over cells of a table, of a length that data or values decide, with gradients."""

import numpy as np

import rscan as rs
from models import Model


class SoftTimeWarping(Model):
    """Cuturi and Blondel's soft dynamic time warping of two series, with its gradient by both."""

    kind = "loops in loops"
    dtype = "float64"
    size = dict(m=60, n=50)
    small = dict(m=4, n=3)

    def make(self, random, m, n):
        return np.cumsum(random.normal(size=m)) / 5, np.cumsum(random.normal(size=n)) / 5, 0.5

    def rscan(self, m, n):
        @rs.compile
        def distance(x, y, gamma):
            def row(x_i, above, corner):
                def cell(y_j, diagonal, up, left):
                    soft = -gamma * rs.logsumexp(-rs.stack([diagonal, up, left]) / gamma)
                    return dict(left=(x_i - y_j) ** 2 + soft)

                diagonals = rs.concatenate([rs.stack([corner]), above[:-1]])
                out = rs.loop(cell, over=dict(y_j=y, diagonal=diagonals, up=above), init=dict(left=1e10))
                return dict(above=out.left, corner=rs.constant(1e10))

            out = rs.loop(row, over=dict(x_i=x), init=dict(above=rs.full((n,), 1e10), corner=0.0))
            return out.above[-1, -1]

        return rs.value_and_grad(distance, wrt=(0, 1))

    def jax(self, m, n):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def distance(x, y, gamma):
            def row(state, x_i):
                above, corner = state

                def cell(left, xs):
                    y_j, diagonal, up = xs
                    soft = -gamma * jax.nn.logsumexp(-jnp.stack([diagonal, up, left]) / gamma)
                    left = (x_i - y_j) ** 2 + soft
                    return left, left

                diagonals = jnp.concatenate([corner[None], above[:-1]])
                _, values = lax.scan(cell, 1e10, (y, diagonals, above))
                return (values, jnp.asarray(1e10)), None

            (above, _), _ = lax.scan(row, (jnp.full(n, 1e10), jnp.asarray(0.0)), x)
            return above[-1]

        return jax.jit(jax.value_and_grad(distance, argnums=(0, 1)))


class ImplicitVanDerPol(Model):
    """A stiff oscillator by the implicit trapezoidal rule, Newton's iteration in every step; gradient by the stiffness."""

    kind = "loops in loops"
    dtype = "float64"
    size = dict(steps=800, newton=5)
    small = dict(steps=5, newton=3)

    def make(self, random, steps, newton):
        return 5.0, 0.02, 2 + random.normal(size=steps)

    def rscan(self, steps, newton):
        @rs.compile
        def misfit(mu, dt, observed):
            def f(x, v):
                return v, mu * (1 - x * x) * v - x

            def step(y, x, v):
                a, b = f(x, v)
                x_half, v_half = x + 0.5 * dt * a, v + 0.5 * dt * b

                def iterate(p, q):
                    fp, fq = f(p, q)
                    r1, r2 = p - 0.5 * dt * fp - x_half, q - 0.5 * dt * fq - v_half
                    j21 = -0.5 * dt * (-2 * mu * p * q - 1)
                    j22 = 1 - 0.5 * dt * mu * (1 - p * p)
                    determinant = j22 + 0.5 * dt * j21
                    return dict(p=p - (j22 * r1 + 0.5 * dt * r2) / determinant, q=q - (r2 - j21 * r1) / determinant)

                out = rs.loop(iterate, init=dict(p=x, q=v), n_steps=newton)
                return dict(x=out.p[-1], v=out.q[-1], e=(out.p[-1] - y) ** 2)

            return rs.mean(rs.loop(step, over=dict(y=observed), init=dict(x=2.0, v=0.0)).e)

        return rs.value_and_grad(misfit, wrt=(0, 1))

    def jax(self, steps, newton):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def misfit(mu, dt, observed):
            def f(x, v):
                return v, mu * (1 - x * x) * v - x

            def step(state, y):
                x, v = state
                a, b = f(x, v)
                x_half, v_half = x + 0.5 * dt * a, v + 0.5 * dt * b

                def iterate(_, pq):
                    p, q = pq
                    fp, fq = f(p, q)
                    r1, r2 = p - 0.5 * dt * fp - x_half, q - 0.5 * dt * fq - v_half
                    j21 = -0.5 * dt * (-2 * mu * p * q - 1)
                    j22 = 1 - 0.5 * dt * mu * (1 - p * p)
                    determinant = j22 + 0.5 * dt * j21
                    return p - (j22 * r1 + 0.5 * dt * r2) / determinant, q - (r2 - j21 * r1) / determinant

                x, v = lax.fori_loop(0, newton, iterate, (x, v))
                return (x, v), (x - y) ** 2

            _, errors = lax.scan(step, (2.0, 0.0), observed)
            return jnp.mean(errors)

        return jax.jit(jax.value_and_grad(misfit, argnums=(0, 1)))


class UnevenObservations(Model):
    """A two-compartment drug model observed at uneven times: as many Euler steps between two observations as the data say."""

    kind = "loops in loops"
    dtype = "float64"
    size = dict(observations=60, most=20)
    small = dict(observations=4, most=3)

    def make(self, random, observations, most):
        gaps = random.integers(1, most + 1, size=observations)
        doses = (random.random(observations) < 0.2) * 10.0
        return np.log([0.3, 0.2, 0.1]), gaps, doses, 2 + random.normal(size=observations)

    def rscan(self, observations, most):
        @rs.compile
        def loss(theta, gaps, doses, concentration):
            k = rs.exp(theta)
            elimination, there, back = k[0], k[1], k[2]

            def observe(gap, dose, c, central, peripheral):
                def euler(a, b):
                    flow = there * a - back * b
                    return dict(a=a - 0.1 * (elimination * a + flow), b=b + 0.1 * flow)

                out = rs.loop(euler, init=dict(a=central + dose, b=peripheral), n_steps=gap)
                return dict(central=out.a[-1], peripheral=out.b[-1], e=(out.a[-1] - c) ** 2)

            out = rs.loop(observe, over=dict(gap=gaps, dose=doses, c=concentration), init=dict(central=10.0, peripheral=0.0))
            return rs.sum(out.e)

        return rs.value_and_grad(loss)

    def jax(self, observations, most):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def loss(theta, gaps, doses, concentration):
            elimination, there, back = jnp.exp(theta)

            def observe(state, row):
                gap, dose, c = row
                central, peripheral = state

                def euler(i, ab):
                    a, b = ab
                    flow = there * a - back * b
                    new = a - 0.1 * (elimination * a + flow), b + 0.1 * flow
                    return jax.tree.map(lambda n, o: jnp.where(i < gap, n, o), new, ab)

                # reverse mode wants a bound: steps beyond the gap change nothing
                a, b = lax.fori_loop(0, most, euler, (central + dose, peripheral))
                return (a, b), (a - c) ** 2

            _, errors = lax.scan(observe, (10.0, 0.0), (gaps, doses, concentration))
            return jnp.sum(errors)

        return jax.jit(jax.value_and_grad(loss))


class ModifiedPolicyIteration(Model):
    """A Markov decision process: improvement of the policy and some sweeps of its evaluation, until values stand still."""

    kind = "loops in loops"
    dtype = "float64"
    size = dict(states=60, actions=5, sweeps=15)
    small = dict(states=4, actions=2, sweeps=3)

    def make(self, random, states, actions, sweeps):
        P = random.dirichlet(np.full(states, 0.2), size=(actions, states))
        return P, random.normal(size=(actions, states)), 0.95

    def rscan(self, states, actions, sweeps):
        @rs.compile
        def solve(P, R, discount):
            def improve(v):
                q = R + discount * (P @ v)
                policy = rs.argmax(q, axis=0)
                everywhere = rs.arange(states)
                P_policy, R_policy = P[policy, everywhere], R[policy, everywhere]
                new = rs.loop(lambda u: R_policy + discount * (P_policy @ u), init=rs.max(q, axis=0), n_steps=sweeps)[-1]
                return dict(v=new, policy=policy), rs.until(rs.max(rs.abs(new - v)) < 1e-10)

            out = rs.loop(improve, init=dict(v=rs.zeros(states)), n_steps=1000)
            return out.v[-1], out.policy[-1]

        return solve

    def jax(self, states, actions, sweeps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def solve(P, R, discount):
            everywhere = jnp.arange(states)

            def improve(state):
                v, _, _ = state
                q = R + discount * (P @ v)
                policy = jnp.argmax(q, axis=0)
                P_policy, R_policy = P[policy, everywhere], R[policy, everywhere]
                new = lax.fori_loop(0, sweeps, lambda _, u: R_policy + discount * (P_policy @ u), jnp.max(q, axis=0))
                return new, policy, jnp.max(jnp.abs(new - v))

            start = (jnp.zeros(states), jnp.zeros(states, jnp.int64), jnp.inf)
            v, policy, _ = lax.while_loop(lambda s: s[2] >= 1e-10, improve, start)
            return v, policy

        return solve


class HamiltonianTrajectories(Model):
    """Hamiltonian Monte Carlo for a logistic regression: leapfrog steps by gradients inside, accepted by given draws."""

    kind = "loops in loops"
    dtype = "float64"
    size = dict(samples=30, leapfrog=10, rows=60, features=6)
    small = dict(samples=3, leapfrog=2, rows=4, features=2)

    def make(self, random, samples, leapfrog, rows, features):
        X = random.normal(size=(rows, features))
        y = (X @ random.normal(size=features) + random.logistic(size=rows) > 0).astype(float)
        return X, y, random.normal(size=(samples, features)), np.log(random.random(samples)), 0.1

    def rscan(self, samples, leapfrog, rows, features):
        @rs.compile
        def sample(X, y, momenta, log_u, rate):
            def log_density(w):
                z = X @ w
                return rs.sum(y * z - rs.softplus(z)) - 0.5 * rs.sum(w**2)

            def transition(p0, log_u, w):
                def leap(q, p):
                    p = p + 0.5 * rate * rs.grad(log_density(q), q)
                    q = q + rate * p
                    p = p + 0.5 * rate * rs.grad(log_density(q), q)
                    return dict(q=q, p=p)

                out = rs.loop(leap, init=dict(q=w, p=p0), n_steps=leapfrog)
                q, p = out.q[-1], out.p[-1]
                gain = log_density(q) - 0.5 * rs.sum(p**2) - log_density(w) + 0.5 * rs.sum(p0**2)
                return dict(w=rs.where(log_u < gain, q, w), gain=gain)

            out = rs.loop(transition, over=dict(p0=momenta, log_u=log_u), init=dict(w=rs.zeros(features)))
            return out.w, out.gain

        return sample

    def jax(self, samples, leapfrog, rows, features):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def sample(X, y, momenta, log_u, rate):
            def log_density(w):
                z = X @ w
                return jnp.sum(y * z - jax.nn.softplus(z)) - 0.5 * jnp.sum(w**2)

            def transition(w, row):
                p0, log_u = row

                def leap(_, state):
                    q, p = state
                    p = p + 0.5 * rate * jax.grad(log_density)(q)
                    q = q + rate * p
                    return q, p + 0.5 * rate * jax.grad(log_density)(q)

                q, p = lax.fori_loop(0, leapfrog, leap, (w, p0))
                gain = log_density(q) - 0.5 * jnp.sum(p**2) - log_density(w) + 0.5 * jnp.sum(p0**2)
                w = jnp.where(log_u < gain, q, w)
                return w, (w, gain)

            return lax.scan(transition, jnp.zeros(features), (momenta, log_u))[1]

        return sample


class ProjectedRelaxation(Model):
    """An American put by implicit finite differences; each step is solved by Jacobi's projected iteration, as long as it takes."""

    kind = "loops in loops"
    dtype = "float64"
    size = dict(prices=80, times=20)
    small = dict(prices=6, times=2)

    def make(self, random, prices, times):
        return 100.0 + random.normal(), 0.3, 0.05

    def rscan(self, prices, times):
        @rs.compile
        def solve(strike, sigma, rate):
            i = rs.arange(prices + 1)
            ds = 2 * strike / prices
            dt = 0.5 / times
            payoff = rs.maximum(strike - i * ds, 0)
            k = 1.0 * i[1:-1]
            a = 0.5 * dt * (rate * k - sigma**2 * k**2)
            b = 1 + dt * (sigma**2 * k**2 + rate)
            c = -0.5 * dt * (rate * k + sigma**2 * k**2)

            def back(v, inner):
                def relax(u):
                    inside = rs.maximum((v[1:-1] - a * u[:-2] - c * u[2:]) / b, payoff[1:-1])
                    new = rs.concatenate([payoff[:1], inside, payoff[-1:]])
                    return new, rs.until(rs.all(rs.abs(new - u) < 1e-7))

                u = rs.loop(relax, init=v, n_steps=500)
                return dict(v=u[-1], inner=rs.shape(u)[0])

            out = rs.loop(back, init=dict(v=payoff, inner=0), n_steps=times)
            return out.v[-1], out.inner

        return solve

    def jax(self, prices, times):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def solve(strike, sigma, rate):
            i = jnp.arange(prices + 1)
            ds = 2 * strike / prices
            dt = 0.5 / times
            payoff = jnp.maximum(strike - i * ds, 0)
            k = 1.0 * i[1:-1]
            a = 0.5 * dt * (rate * k - sigma**2 * k**2)
            b = 1 + dt * (sigma**2 * k**2 + rate)
            c = -0.5 * dt * (rate * k + sigma**2 * k**2)

            def back(v, _):
                def relax(state):
                    u, _, count = state
                    inside = jnp.maximum((v[1:-1] - a * u[:-2] - c * u[2:]) / b, payoff[1:-1])
                    new = u.at[1:-1].set(inside)
                    return new, jnp.any(jnp.abs(new - u) >= 1e-7), count + 1

                start = (v.at[0].set(payoff[0]).at[-1].set(payoff[-1]), True, 0)
                u, _, count = lax.while_loop(lambda s: s[1] & (s[2] < 500), relax, start)
                return u, count

            return lax.scan(back, payoff, None, length=times)

        return solve


class RadialVelocities(Model):
    """Radial velocities of a planet: Kepler's equation is solved at every time until it holds; misfit and gradient by the orbit."""

    kind = "loops in loops"
    dtype = "float64"
    size = dict(times=300)
    small = dict(times=5)

    def make(self, random, times):
        t = np.sort(10 * random.random(times))
        return np.array([3.1, 0.6, 0.4, 1.0]), t, np.cos(2 * t) + 0.1 * random.normal(size=times)

    def rscan(self, times):
        @rs.compile
        def misfit(theta, t, v):
            period, eccentricity, phase, size = (theta[k] for k in range(4))

            def observe(t, v):
                mean = 2 * np.pi * t / period + phase

                def newton(E):
                    new = E - (E - eccentricity * rs.sin(E) - mean) / (1 - eccentricity * rs.cos(E))
                    return new, rs.until(rs.abs(new - E) < 1e-10)

                E = rs.loop(newton, init=mean, n_steps=30)[-1]
                root = rs.sqrt(1 - eccentricity**2)
                angle = rs.arctan2(root * rs.sin(E), rs.cos(E) - eccentricity)
                return (v - size * (rs.cos(angle) + eccentricity)) ** 2

            return rs.mean(rs.loop(observe, over=[t, v]))

        return rs.value_and_grad(misfit)

    def jax(self, times):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def misfit(theta, t, v):
            period, eccentricity, phase, size = theta

            def observe(t, v):
                mean = 2 * jnp.pi * t / period + phase

                def newton(_, state):
                    # reverse mode wants a bound: what has converged stays
                    E, done = state
                    new = E - (E - eccentricity * jnp.sin(E) - mean) / (1 - eccentricity * jnp.cos(E))
                    return jnp.where(done, E, new), done | (jnp.abs(new - E) < 1e-10)

                E, _ = lax.fori_loop(0, 30, newton, (mean, False))
                root = jnp.sqrt(1 - eccentricity**2)
                angle = jnp.arctan2(root * jnp.sin(E), jnp.cos(E) - eccentricity)
                return (v - size * (jnp.cos(angle) + eccentricity)) ** 2

            return jnp.mean(jax.vmap(observe)(t, v))

        return jax.jit(jax.value_and_grad(misfit))


class BonusMalusClaims(Model):
    """Drivers' premiums go up with every claim and down with time: as many inner steps as a month has claims, often none."""

    kind = "loops in loops"
    dtype = "float64"
    size = dict(months=200, most=5)
    small = dict(months=6, most=2)

    def make(self, random, months, most):
        counts = np.minimum(random.poisson(0.7, size=months), most)
        sizes = random.exponential(size=(months, most))
        return np.array([0.3, 0.05, 1.2]), counts, sizes

    def rscan(self, months, most):
        @rs.compile
        def loss(theta, counts, sizes):
            malus, bonus, level = theta[0], theta[1], theta[2]

            def month(count, sizes, premium):
                def claim(k, premium, paid):
                    paid = paid + sizes[k] / premium
                    return dict(premium=premium + malus * rs.log1p(sizes[k] * premium), paid=paid)

                out = rs.loop(claim, over=dict(k=rs.arange(most)), init=dict(premium=premium, paid=0.0), n_steps=count)
                # a month without claims has no rows: the value before stands in front
                after = rs.concatenate([rs.stack([premium]), out.premium])[-1]
                paid = rs.concatenate([rs.zeros(1), out.paid])[-1]
                new = level + (after - level) * rs.exp(-bonus)
                return dict(premium=new, loss=(paid - new) ** 2)

            out = rs.loop(month, over=dict(count=counts, sizes=sizes), init=dict(premium=1.0))
            return rs.mean(out.loss)

        return rs.value_and_grad(loss)

    def jax(self, months, most):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def loss(theta, counts, sizes):
            malus, bonus, level = theta

            def month(premium, row):
                count, sizes = row

                def claim(k, state):
                    premium, paid = state
                    new = premium + malus * jnp.log1p(sizes[k] * premium), paid + sizes[k] / premium
                    return jax.tree.map(lambda n, o: jnp.where(k < count, n, o), new, state)

                after, paid = lax.fori_loop(0, most, claim, (premium, 0.0))
                new = level + (after - level) * jnp.exp(-bonus)
                return new, (paid - new) ** 2

            return jnp.mean(lax.scan(month, 1.0, (counts, sizes))[1])

        return jax.jit(jax.value_and_grad(loss))
