"""Long seasonal taps."""

import numpy as np

import rscan as rs
from models import Model


class HourlySarima(Model):
    """A multiplicative SARIMA(1,0,1)(1,0,1) of hourly data with a season of a day: sum of squares and gradient."""

    kind = "long seasonal taps"
    dtype = "float64"
    size = dict(steps=1500, season=24)
    small = dict(steps=9, season=4)

    def make(self, random, steps, season):
        t = np.arange(steps + season + 1)
        y = (
            np.sin(2 * np.pi * t / season)
            + 0.1 * np.cumsum(random.normal(size=len(t))) / np.sqrt(len(t))
            + 0.3 * random.normal(size=len(t))
        )
        return np.array([0.4, 0.3, 0.5, -0.3, 0.05]), y

    def rscan(self, steps, season):
        s = season

        @rs.compile
        def css(theta, y):
            phi, Phi, th, Th, c = (theta[k] for k in range(5))

            def step(y, e):
                y_s1, y_s, y_1, y_0 = y
                e_s1, e_s, e_1 = e
                e_0 = y_0 - c - phi * y_1 - Phi * y_s + phi * Phi * y_s1 - th * e_1 - Th * e_s - th * Th * e_s1
                return dict(e=e_0)

            over = dict(y=rs.taps(y, -s - 1, -s, -1, 0))
            out = rs.loop(step, over=over, init=dict(e=rs.taps(rs.zeros(s + 1), -s - 1, -s, -1)))
            return rs.sum(out.e**2)

        return rs.value_and_grad(css)

    def jax(self, steps, season):
        import jax
        import jax.numpy as jnp
        from jax import lax

        s = season

        def css(theta, y):
            phi, Phi, th, Th, c = theta
            # what does not depend on earlier residuals is computed for all steps at once
            ar = y[s + 1 :] - c - phi * y[s:-1] - Phi * y[1:-s] + phi * Phi * y[: -s - 1]

            def step(past, ar):
                e = ar - th * past[-1] - Th * past[1] - th * Th * past[0]
                return jnp.concatenate([past[1:], e[None]]), e

            _, e = lax.scan(step, jnp.zeros(s + 1), ar)
            return jnp.sum(e**2)

        return jax.jit(jax.value_and_grad(css))


class WeeklyHoltWinters(Model):
    """Holt and Winters' multiplicative smoothing of hourly load with a season of a week; one-step errors and gradient."""

    kind = "long seasonal taps"
    dtype = "float64"
    size = dict(steps=1000, season=168)
    small = dict(steps=8, season=5)

    def make(self, random, steps, season):
        t = np.arange(steps)
        y = (10 + 0.002 * t) * (1 + 0.3 * np.sin(2 * np.pi * t / season)) + 0.3 * random.normal(size=steps)
        return np.array([-1.0, -4.0, -1.5]), y, 1 + 0.25 * np.sin(2 * np.pi * np.arange(season) / season)

    def rscan(self, steps, season):
        @rs.compile
        def loss(theta, y, pattern):
            alpha, beta, gamma = (rs.sigmoid(theta[k]) for k in range(3))

            def step(y, level, trend, seasonal):
                forecast = (level + trend) * seasonal
                new = alpha * y / seasonal + (1 - alpha) * (level + trend)
                return dict(
                    level=new,
                    trend=beta * (new - level) + (1 - beta) * trend,
                    seasonal=gamma * y / new + (1 - gamma) * seasonal,
                    e=y - forecast,
                )

            init = dict(level=10.0, trend=0.0, seasonal=rs.taps(pattern, -season))
            return rs.mean(rs.loop(step, over=dict(y=y), init=init).e ** 2)

        return rs.value_and_grad(loss)

    def jax(self, steps, season):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def loss(theta, y, pattern):
            alpha, beta, gamma = jax.nn.sigmoid(theta)

            def step(state, ty):
                level, trend, ring = state
                t, y = ty
                seasonal = ring[t % season]
                e = y - (level + trend) * seasonal
                new = alpha * y / seasonal + (1 - alpha) * (level + trend)
                trend = beta * (new - level) + (1 - beta) * trend
                ring = ring.at[t % season].set(gamma * y / new + (1 - gamma) * seasonal)
                return (new, trend, ring), e

            _, e = lax.scan(step, (10.0, 0.0, pattern), (jnp.arange(steps), y))
            return jnp.mean(e**2)

        return jax.jit(jax.value_and_grad(loss))


class MackeyGlassEnsemble(Model):
    """Mackey and Glass's delay equation for several strengths at once, by Euler's method with a delay of 170 steps."""

    kind = "long seasonal taps"
    dtype = "float64"
    size = dict(steps=3000, delay=170, members=8)
    small = dict(steps=9, delay=4, members=2)

    def make(self, random, steps, delay, members):
        return 0.5 + random.random((delay + 1, members)), np.linspace(0.15, 0.25, members), 0.1

    def rscan(self, steps, delay, members):
        @rs.compile
        def run(history, strength, decay):
            def step(x):
                delayed, now = x
                return dict(x=now + 0.1 * (strength * delayed / (1 + delayed**10) - decay * now))

            return rs.loop(step, init=dict(x=rs.taps(history, -delay - 1, -1)), n_steps=steps).x

        return run

    def jax(self, steps, delay, members):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def run(history, strength, decay):
            def step(state, t):
                ring, now = state
                slot = t % (delay + 1)
                delayed = ring[slot]
                new = now + 0.1 * (strength * delayed / (1 + delayed**10) - decay * now)
                return (ring.at[slot].set(new), new), new

            return lax.scan(step, (history, history[-1]), jnp.arange(steps))[1]

        return run


class TwoSeasonPanel(Model):
    """Additive smoothing of several hourly series with seasons of a day and of a week, errors that are autocorrelated; gradient."""

    kind = "long seasonal taps"
    dtype = "float64"
    size = dict(steps=600, day=24, week=168, series=8)
    small = dict(steps=7, day=2, week=4, series=2)

    def make(self, random, steps, day, week, series):
        t = np.arange(steps)[:, None]
        y = np.sin(2 * np.pi * t / day) + 0.5 * np.cos(2 * np.pi * t / week) + 0.3 * random.normal(size=(steps, series))
        theta = np.array([-2.0, -1.5, -1.5, 0.2])[:, None] + 0.1 * random.normal(size=(4, series))
        return theta, y, 0.1 * random.normal(size=(day, series)), 0.1 * random.normal(size=(week, series))

    def rscan(self, steps, day, week, series):
        @rs.compile
        def loss(theta, y, daily, weekly):
            alpha, gamma, delta, phi = rs.sigmoid(theta[0]), rs.sigmoid(theta[1]), rs.sigmoid(theta[2]), rs.tanh(theta[3])

            def step(y, level, d, w, e):
                new = y - level - d - w
                surprise = new - phi * e
                return dict(
                    level=level + alpha * surprise,
                    d=d + gamma * surprise,
                    w=w + delta * surprise,
                    e=new,
                    surprise=surprise,
                )

            init = dict(level=rs.zeros(series), d=rs.taps(daily, -day), w=rs.taps(weekly, -week), e=rs.zeros(series))
            out = rs.loop(step, over=dict(y=y), init=init)
            return rs.sum(rs.log(rs.mean(out.surprise**2, axis=0)))

        return rs.value_and_grad(loss, wrt=(0, 2, 3))

    def jax(self, steps, day, week, series):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def loss(theta, y, daily, weekly):
            alpha, gamma, delta = jax.nn.sigmoid(theta[:3])
            phi = jnp.tanh(theta[3])

            def step(state, row):
                level, daily, weekly, e = state
                t, y = row
                d, w = daily[t % day], weekly[t % week]
                new = y - level - d - w
                surprise = new - phi * e
                daily = daily.at[t % day].set(d + gamma * surprise)
                weekly = weekly.at[t % week].set(w + delta * surprise)
                return (level + alpha * surprise, daily, weekly, new), surprise

            start = (jnp.zeros(series), daily, weekly, jnp.zeros(series))
            _, surprise = lax.scan(step, start, (jnp.arange(steps), y))
            return jnp.sum(jnp.log(jnp.mean(surprise**2, axis=0)))

        return jax.jit(jax.value_and_grad(loss, argnums=(0, 2, 3)))
