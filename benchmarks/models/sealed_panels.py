"""Many series at once, each with parameters of its own."""

import numpy as np

import rscan as rs
from models import Model


class AsymmetricGarchPanel(Model):
    """GJR-GARCH(1,1) for a panel of assets, each with four parameters; the gradient of the sum of the likelihoods."""

    kind = "panels of series"
    dtype = "float64"
    size = dict(steps=500, series=50)
    small = dict(steps=5, series=3)

    def make(self, random, steps, series):
        theta = np.tile(np.log([0.05, 0.05, 0.05, 0.8])[:, None], (1, series)) + 0.1 * random.normal(size=(4, series))
        return theta, random.standard_t(6, size=(steps, series))

    def rscan(self, steps, series):
        @rs.compile
        def nll(theta, r):
            p = rs.exp(theta)
            omega, alpha, gamma, beta = p[0], p[1], p[2], rs.exp(theta[3])

            def step(r_tm1, s):
                return omega + (alpha + rs.where(r_tm1 < 0, gamma, 0.0)) * r_tm1**2 + beta * s

            s = rs.loop(step, over=r[:-1], init=rs.mean(r**2, axis=0))
            return 0.5 * rs.sum(np.log(2 * np.pi) + rs.log(s) + r[1:] ** 2 / s)

        return rs.value_and_grad(nll)

    def jax(self, steps, series):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def nll(theta, r):
            omega, alpha, gamma, beta = jnp.exp(theta)

            def step(s, r_tm1):
                s = omega + (alpha + jnp.where(r_tm1 < 0, gamma, 0.0)) * r_tm1**2 + beta * s
                return s, s

            _, s = lax.scan(step, jnp.mean(r**2, axis=0), r[:-1])
            return 0.5 * jnp.sum(jnp.log(2 * jnp.pi) + jnp.log(s) + r[1:] ** 2 / s)

        return jax.jit(jax.value_and_grad(nll))


class HawkesPanel(Model):
    """Hawkes processes with exponential kernels, one per series, of padded event times: likelihood by the usual recursion."""

    kind = "panels of series"
    dtype = "float64"
    size = dict(events=300, series=24)
    small = dict(events=6, series=2)

    def make(self, random, events, series):
        times = np.cumsum(random.exponential(size=(events, series)), axis=0)
        seen = np.arange(events)[:, None] < random.integers(events // 2, events + 1, size=series)
        return np.log([[0.5], [0.4], [1.5]]) + 0.2 * random.normal(size=(3, series)), times, seen

    def rscan(self, events, series):
        @rs.compile
        def nll(theta, times, seen):
            mu, alpha, beta = rs.exp(theta[0]), rs.exp(theta[1]), rs.exp(theta[2])

            def event(t, seen, A):
                before, now = t
                A = rs.exp(-beta * (now - before)) * (1 + A)
                return dict(A=A, log_rate=rs.where(seen, rs.log(mu + alpha * beta * A), 0.0))

            over = dict(t=rs.taps(times, -1, 0), seen=seen[1:])
            out = rs.loop(event, over=over, init=dict(A=rs.zeros(series)))
            end = rs.max(rs.where(seen, times, 0.0), axis=0)
            since = rs.where(seen, end - times, 0.0)
            compensator = mu * end + alpha * rs.sum(rs.where(seen, 1 - rs.exp(-beta * since), 0.0), axis=0)
            return rs.sum(compensator) - rs.sum(rs.log(mu)) - rs.sum(out.log_rate)

        return rs.value_and_grad(nll)

    def jax(self, events, series):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def nll(theta, times, seen):
            mu, alpha, beta = jnp.exp(theta)

            def event(A, row):
                before, now, seen = row
                A = jnp.exp(-beta * (now - before)) * (1 + A)
                return A, jnp.where(seen, jnp.log(mu + alpha * beta * A), 0.0)

            _, log_rate = lax.scan(event, jnp.zeros(series), (times[:-1], times[1:], seen[1:]))
            end = jnp.max(jnp.where(seen, times, 0.0), axis=0)
            # times beyond the end are masked inside of the exponential, too, so that it cannot overflow
            since = jnp.where(seen, end - times, 0.0)
            compensator = mu * end + alpha * jnp.sum(jnp.where(seen, 1 - jnp.exp(-beta * since), 0.0), axis=0)
            return jnp.sum(compensator) - jnp.sum(jnp.log(mu)) - jnp.sum(log_rate)

        return jax.jit(jax.value_and_grad(nll))


class HabitPanel(Model):
    """Random-effects logit with state dependence: households choose among brands, habits fade; likelihood and gradient."""

    kind = "panels of series"
    dtype = "float64"
    size = dict(weeks=52, households=100, brands=4)
    small = dict(weeks=4, households=3, brands=2)

    def make(self, random, weeks, households, brands):
        prices = 1 + 0.2 * random.normal(size=(weeks, brands))
        choices = random.integers(0, brands, size=(weeks, households))
        return np.concatenate([[-1.0, 0.5, 0.3], 0.1 * random.normal(size=brands)]), prices, choices

    def rscan(self, weeks, households, brands):
        @rs.compile
        def nll(theta, prices, choices):
            sensitivity, strength, memory, taste = theta[0], theta[1], rs.sigmoid(theta[2]), theta[3:]

            def week(price, choice, habit):
                utility = taste + sensitivity * price + strength * habit
                chosen = rs.arange(brands)[None, :] == choice[:, None]
                p = rs.exp(utility) / rs.sum(rs.exp(utility), axis=1, keepdims=True)
                log_p = rs.log(rs.sum(rs.where(chosen, p, 0.0), axis=1))
                return dict(habit=memory * habit + (1 - memory) * rs.cast(chosen, "float64"), log_p=log_p)

            init = dict(habit=rs.full((households, brands), 1 / brands))
            return -rs.mean(rs.loop(week, over=dict(price=prices, choice=choices), init=init).log_p)

        return rs.value_and_grad(nll)

    def jax(self, weeks, households, brands):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def nll(theta, prices, choices):
            sensitivity, strength, memory, taste = theta[0], theta[1], jax.nn.sigmoid(theta[2]), theta[3:]

            def week(habit, row):
                price, choice = row
                log_p = jax.nn.log_softmax(taste + sensitivity * price + strength * habit, axis=1)
                chosen = jax.nn.one_hot(choice, brands)
                return memory * habit + (1 - memory) * chosen, jnp.sum(chosen * log_p, axis=1)

            _, log_p = lax.scan(week, jnp.full((households, brands), 1 / brands), (prices, choices))
            return -jnp.mean(log_p)

        return jax.jit(jax.value_and_grad(nll))
