"""Time series, finance, biology and control: models as applied scientists have them, each of another structure."""

import numpy as np

import rscan as rs
from models import Model


class DynamicFactorGaps(Model):
    """A dynamic factor model of many series with gaps: the filter in information form, the smoother backwards."""

    kind = "statistics and time series"
    dtype = "float64"
    size = dict(steps=120, series=14, factors=3)
    small = dict(steps=5, series=4, factors=2)

    def make(self, random, steps, series, factors):
        loadings = random.normal(size=(series, factors))
        A = 0.7 * np.eye(factors) + 0.1 * random.normal(size=(factors, factors))
        Q = np.eye(factors) * 0.5 + 0.1
        R = 0.3 + random.random(series)
        f, rows = np.zeros(factors), []
        for _ in range(steps):
            f = A @ f + np.linalg.cholesky(Q) @ random.normal(size=factors)
            rows.append(loadings @ f + np.sqrt(R) * random.normal(size=series))
        y = np.array(rows)
        y[random.random(y.shape) < 0.25] = np.nan
        y[steps // 2] = np.nan  # nothing is seen at all
        return loadings, A, Q, R, y

    def rscan(self, steps, series, factors):
        @rs.compile
        def smooth(loadings, A, Q, R, y):
            def forwards(y, f, P):
                seen = ~rs.isnan(y)
                weight = rs.where(seen, 1 / R, 0.0)
                v = rs.where(seen, y - loadings @ f, 0.0)
                weighted = loadings.T * weight
                C = weighted @ loadings
                P_now = rs.linalg.inv(rs.linalg.inv(P) + C)
                score = weighted @ v
                f_now = f + P_now @ score
                logdet = rs.sum(rs.where(seen, rs.log(R), 0.0)) + rs.linalg.slogdet(rs.eye(factors) + P @ C)[1]
                squares = rs.sum(weight * v**2) - score @ P_now @ score
                ll = -0.5 * (rs.sum(seen) * np.log(2 * np.pi) + logdet + squares)
                return dict(f=A @ f_now, P=A @ P_now @ A.T + Q, f_now=f_now, P_now=P_now, ll=ll)

            out = rs.loop(forwards, over=dict(y=y), init=dict(f=rs.zeros(factors), P=rs.eye(factors)))

            def backwards(f_next, P_next, f_now, P_now, s, V):
                J = rs.linalg.solve(P_next, A @ P_now).T
                return dict(s=f_now + J @ (s - f_next), V=P_now + J @ (V - P_next) @ J.T)

            back = rs.loop(
                backwards,
                over=dict(f_next=out.f[:-1], P_next=out.P[:-1], f_now=out.f_now[:-1], P_now=out.P_now[:-1]),
                init=dict(s=out.f_now[-1], V=out.P_now[-1]),
                reverse=True,
            )
            return rs.sum(out.ll), back.s, rs.diagonal(back.V, axis1=1, axis2=2)

        return smooth

    def jax(self, steps, series, factors):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def smooth(loadings, A, Q, R, y):
            def forwards(state, y):
                f, P = state
                seen = ~jnp.isnan(y)
                weight = jnp.where(seen, 1 / R, 0.0)
                v = jnp.where(seen, y - loadings @ f, 0.0)
                weighted = loadings.T * weight
                C = weighted @ loadings
                P_now = jnp.linalg.inv(jnp.linalg.inv(P) + C)
                score = weighted @ v
                f_now = f + P_now @ score
                logdet = jnp.sum(jnp.where(seen, jnp.log(R), 0.0)) + jnp.linalg.slogdet(jnp.eye(factors) + P @ C)[1]
                squares = jnp.sum(weight * v**2) - score @ P_now @ score
                ll = -0.5 * (jnp.sum(seen) * jnp.log(2 * jnp.pi) + logdet + squares)
                new = A @ f_now, A @ P_now @ A.T + Q
                return new, (*new, f_now, P_now, ll)

            _, (f, P, f_now, P_now, ll) = lax.scan(forwards, (jnp.zeros(factors), jnp.eye(factors)), y)

            def backwards(state, x):
                s, V = state
                f_next, P_next, f_now, P_now = x
                J = jnp.linalg.solve(P_next, A @ P_now).T
                new = f_now + J @ (s - f_next), P_now + J @ (V - P_next) @ J.T
                return new, new

            xs = f[:-1], P[:-1], f_now[:-1], P_now[:-1]
            _, (s, V) = lax.scan(backwards, (f_now[-1], P_now[-1]), xs, reverse=True)
            return jnp.sum(ll), s, jnp.diagonal(V, axis1=1, axis2=2)

        return jax.jit(smooth)


class MixedFrequencyNowcast(Model):
    """Monthly indicators and quarterly output by one factor with five lags; series enter one after the other; gradient."""

    kind = "statistics and time series"
    dtype = "float64"
    size = dict(steps=120, series=6)
    small = dict(steps=7, series=3)

    def make(self, random, steps, series):
        f = np.zeros(steps + 4)
        for t in range(1, steps + 4):
            f[t] = 0.8 * f[t - 1] + random.normal()
        loadings = 0.5 + random.random(series)
        y = loadings * f[4:, None] + 0.7 * random.normal(size=(steps, series))
        growth = sum(w * f[4 - k : steps + 4 - k] for k, w in enumerate([1 / 3, 2 / 3, 1, 2 / 3, 1 / 3]))
        y[:, -1] = loadings[-1] * growth + 0.7 * random.normal(size=steps)
        seen = random.random((steps, series)) < 0.9
        seen[:, -1] = np.arange(steps) % 3 == 2
        return loadings, np.full(series, np.log(0.5)), 0.7, np.where(seen, y, 0.0), seen

    def rscan(self, steps, series):
        @rs.compile
        def nll(loadings, log_variances, phi, y, seen):
            weights = rs.constant([1 / 3, 2 / 3, 1, 2 / 3, 1 / 3])
            Z = rs.zeros((series, 5)).at[:, 0].set(loadings).at[-1].set(loadings[-1] * weights)
            T = rs.eye(5, k=-1).at[0, 0].set(phi)
            Q = rs.zeros((5, 5)).at[0, 0].set(1.0)
            H = rs.exp(log_variances)

            def month(y, seen, a, P):
                def one(z, h, y, seen, a, P, ll):
                    v = y - z @ a
                    M = P @ z
                    F = z @ M + h
                    K = rs.where(seen, M / F, 0.0)
                    return dict(a=a + K * v, P=P - rs.outer(K, M), ll=ll + rs.where(seen, rs.log(F) + v**2 / F, 0.0))

                last = rs.loop(
                    one, over=dict(z=Z, h=H, y=y, seen=seen), init=dict(a=T @ a, P=T @ P @ T.T + Q, ll=0.0)
                ).last
                return dict(a=last.a, P=last.P, ll=last.ll)

            return 0.5 * rs.sum(rs.loop(month, over=dict(y=y, seen=seen), init=dict(a=rs.zeros(5), P=2 * rs.eye(5))).ll)

        return rs.value_and_grad(nll, argnums=(0, 1, 2))

    def jax(self, steps, series):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def nll(loadings, log_variances, phi, y, seen):
            weights = jnp.array([1 / 3, 2 / 3, 1, 2 / 3, 1 / 3])
            Z = jnp.zeros((series, 5)).at[:, 0].set(loadings).at[-1].set(loadings[-1] * weights)
            T = jnp.eye(5, k=-1).at[0, 0].set(phi)
            Q = jnp.zeros((5, 5)).at[0, 0].set(1.0)
            H = jnp.exp(log_variances)

            def month(state, x):
                a, P = state

                def one(state, x):
                    a, P, ll = state
                    z, h, y, seen = x
                    v = y - z @ a
                    M = P @ z
                    F = z @ M + h
                    K = jnp.where(seen, M / F, 0.0)
                    return (a + K * v, P - jnp.outer(K, M), ll + jnp.where(seen, jnp.log(F) + v**2 / F, 0.0)), None

                (a, P, ll), _ = lax.scan(one, (T @ a, T @ P @ T.T + Q, 0.0), (Z, H, *x))
                return (a, P), ll

            return 0.5 * jnp.sum(lax.scan(month, (jnp.zeros(5), 2 * jnp.eye(5)), (y, seen))[1])

        return jax.jit(jax.value_and_grad(nll, argnums=(0, 1, 2)))


class CountsOfTheWeekHessian(Model):
    """Daily counts, negative binomial, with feedback of the mean and of yesterday's and last week's counts; the Hessian."""

    kind = "statistics and time series"
    dtype = "float64"
    size = dict(days=400, covariates=3)
    small = dict(days=12, covariates=2)

    def make(self, random, days, covariates):
        x = np.concatenate([np.ones((days, 1)), 0.3 * random.normal(size=(days, covariates - 1))], axis=1)
        y = random.negative_binomial(5, 0.4, size=days)
        beta = np.concatenate([[0.4], 0.1 * random.normal(size=covariates - 1)])
        return np.concatenate([beta, [0.3, 0.25, 0.2, 1.5]]), x, y

    def rscan(self, days, covariates):
        def nll(theta, x, y):
            beta, (a, b1, b7, log_size) = theta[:covariates], [theta[covariates + i] for i in range(4)]
            size = rs.exp(log_size)

            def day(x, y, eta):
                y7, y1, y0 = y
                eta = x @ beta + a * eta + b1 * rs.log1p(y1) + b7 * rs.log1p(y7)
                return dict(eta=eta, ll=rs.stats.nbinom.logpmf(y0, size, size / (size + rs.exp(eta))))

            return -rs.sum(rs.loop(day, over=dict(x=x[7:], y=rs.taps(y, -7, -1, 0)), init=dict(eta=1.0)).ll)

        return rs.compile(rs.hessian(nll))

    def jax(self, days, covariates):
        import jax
        import jax.numpy as jnp
        from jax import lax
        from jax.scipy.stats import nbinom

        def nll(theta, x, y):
            beta, (a, b1, b7, log_size) = theta[:covariates], theta[covariates:]
            size = jnp.exp(log_size)

            def day(eta, x):
                eta = x + a * eta
                return eta, eta

            known = x[7:] @ beta + b1 * jnp.log1p(y[6:-1]) + b7 * jnp.log1p(y[:-7])
            _, eta = lax.scan(day, 1.0, known)
            return -jnp.sum(nbinom.logpmf(y[7:], size, size / (size + jnp.exp(eta))))

        return jax.jit(jax.hessian(nll))


class CompetingRisks(Model):
    """Discrete-time competing risks with covariates that change: likelihood with gradient, and mean incidences beside it."""

    kind = "statistics and time series"
    dtype = "float64"
    size = dict(people=80, intervals=48, causes=3, covariates=4)
    small = dict(people=5, intervals=4, causes=2, covariates=2)

    def make(self, random, people, intervals, causes, covariates):
        baseline = -4 + 0.3 * random.normal(size=(intervals, causes))
        beta = 0.3 * random.normal(size=(covariates, causes))
        X = random.normal(size=(intervals, people, covariates))
        last = random.integers(0, intervals, size=people)
        cause = random.integers(0, causes + 1, size=people)  # 0: censored
        return baseline, beta, X, last, cause

    def rscan(self, people, intervals, causes, covariates):
        @rs.compile
        def nll(baseline, beta, X, last, cause):
            def interval(b, X, k, S):
                hazards = rs.exp(b + X @ beta)
                total = rs.sum(hazards, axis=1)
                S_new = S * rs.exp(-total)
                incidence = hazards * ((S - S_new) / total)[:, None]
                event = rs.log(incidence[rs.arange(people), rs.maximum(cause - 1, 0)])
                term = rs.where(last == k, rs.where(cause > 0, event, rs.log(S_new)), 0.0)
                return dict(S=S_new, ll=rs.sum(term), mean=rs.mean(incidence, axis=0))

            out = rs.loop(interval, over=dict(b=baseline, X=X, k=rs.arange(intervals)), init=dict(S=rs.ones(people)))
            return -rs.sum(out.ll), rs.cumsum(out.mean, axis=0)

        return rs.value_and_grad(nll, argnums=(0, 1), has_aux=True)

    def jax(self, people, intervals, causes, covariates):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def nll(baseline, beta, X, last, cause):
            def interval(S, x):
                b, X, k = x
                hazards = jnp.exp(b + X @ beta)
                total = jnp.sum(hazards, axis=1)
                S_new = S * jnp.exp(-total)
                incidence = hazards * ((S - S_new) / total)[:, None]
                event = jnp.log(incidence[jnp.arange(people), jnp.maximum(cause - 1, 0)])
                term = jnp.where(last == k, jnp.where(cause > 0, event, jnp.log(S_new)), 0.0)
                return S_new, (jnp.sum(term), jnp.mean(incidence, axis=0))

            _, (ll, mean) = lax.scan(interval, jnp.ones(people), (baseline, X, jnp.arange(intervals)))
            return -jnp.sum(ll), jnp.cumsum(mean, axis=0)

        return jax.jit(jax.value_and_grad(nll, argnums=(0, 1), has_aux=True))


class LeverageVolatilityGrid(Model):
    """Stochastic volatility with leverage on a grid of log-variances: the kernel follows each return; several parameters at once."""

    kind = "statistics and time series"
    dtype = "float32"
    size = dict(steps=150, grid=24, sets=6)
    small = dict(steps=5, grid=6, sets=2)

    def make(self, random, steps, grid, sets):
        mu, phi = random.normal(-0.2, 0.1, size=sets), random.uniform(0.9, 0.97, size=sets)
        sigma, rho = random.uniform(0.15, 0.3, size=sets), random.uniform(-0.6, -0.1, size=sets)
        return np.stack([mu, phi, sigma, rho], axis=1).astype("f4"), random.standard_t(6, size=steps).astype("f4")

    def rscan(self, steps, grid, sets):
        def filtered(theta, y):
            mu, phi, sigma, rho = theta[0], theta[1], theta[2], theta[3]
            points = mu + 3 * sigma / rs.sqrt(1 - phi**2) * rs.linspace(-1, 1, grid, dtype="float32")
            spread = sigma * rs.sqrt(1 - rho**2)

            def step(y, p):
                eps = y * rs.exp(-0.5 * points)
                joint = p * rs.exp(-0.5 * (float(np.log(2 * np.pi)) + points + eps**2))
                likelihood = rs.sum(joint)
                now = joint / likelihood
                centre = mu + phi * (points - mu) + sigma * rho * eps
                K = rs.special.softmax(-0.5 * ((points - centre[:, None]) / spread) ** 2, axis=1)
                return dict(p=now @ K, ll=rs.log(likelihood), volatility=rs.sum(now * rs.exp(0.5 * points)))

            out = rs.loop(step, over=dict(y=y), init=dict(p=rs.full(grid, 1 / grid, dtype="float32")))
            return rs.sum(out.ll), out.volatility

        return rs.compile(rs.vmap(filtered, in_axes=(0, None)))

    def jax(self, steps, grid, sets):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def filtered(theta, y):
            mu, phi, sigma, rho = theta
            points = mu + 3 * sigma / jnp.sqrt(1 - phi**2) * jnp.linspace(-1, 1, grid, dtype="float32")
            spread = sigma * jnp.sqrt(1 - rho**2)

            def step(p, y):
                eps = y * jnp.exp(-0.5 * points)
                joint = p * jnp.exp(-0.5 * (np.log(2 * np.pi).astype("f4") + points + eps**2))
                likelihood = jnp.sum(joint)
                now = joint / likelihood
                centre = mu + phi * (points - mu) + sigma * rho * eps
                K = jax.nn.softmax(-0.5 * ((points - centre[:, None]) / spread) ** 2, axis=1)
                return now @ K, (jnp.log(likelihood), jnp.sum(now * jnp.exp(0.5 * points)))

            _, (ll, volatility) = lax.scan(step, jnp.full(grid, 1 / grid, dtype="float32"), y)
            return jnp.sum(ll), volatility

        return jax.jit(jax.vmap(filtered, in_axes=(0, None)))


class CeleriteLightCurve(Model):
    """A Gaussian process with a semiseparable kernel (celerite) on uneven times: likelihood in linear time, with gradient."""

    kind = "statistics and time series"
    dtype = "float64"
    size = dict(points=600, terms=3)
    small = dict(points=6, terms=2)

    def make(self, random, points, terms):
        t = np.cumsum(random.exponential(0.3, size=points))
        theta = np.log([[1.0, 0.3, 2.0], [0.6, 0.8, 5.0], [0.4, 0.1, 0.7]])[:terms]
        error = 0.1 + 0.1 * random.random(points)
        return theta, t, np.sin(2 * t) + error * random.normal(size=points), error

    def rscan(self, points, terms):
        @rs.compile
        def nll(theta, t, y, error):
            a, c, d = rs.exp(theta[:, 0]), rs.exp(theta[:, 1]), rs.exp(theta[:, 2])
            b = 0.5 * a * c / d
            cos, sin = rs.cos(d * t[:, None]), rs.sin(d * t[:, None])
            U = rs.concatenate([a * cos + b * sin, a * sin - b * cos], axis=1)
            V = rs.concatenate([cos, sin], axis=1)
            decay = rs.exp(-rs.concatenate([c, c]) * rs.diff(t, prepend=t[0])[:, None])
            A = error**2 + rs.sum(a)

            def point(u, v, p, A, y, S, f):
                S = S * p[:, None] * p
                f = f * p
                Su = S @ u
                D = A - u @ Su
                W = (v - Su) / D
                z = y - u @ f
                return dict(S=S + D * rs.outer(W, W), f=f + W * z, term=z**2 / D + rs.log(D))

            start = dict(S=rs.zeros((2 * terms, 2 * terms)), f=rs.zeros(2 * terms))
            return 0.5 * rs.sum(rs.loop(point, over=dict(u=U, v=V, p=decay, A=A, y=y), init=start).term)

        return rs.value_and_grad(nll)

    def jax(self, points, terms):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def nll(theta, t, y, error):
            a, c, d = jnp.exp(theta.T)
            b = 0.5 * a * c / d
            cos, sin = jnp.cos(d * t[:, None]), jnp.sin(d * t[:, None])
            U = jnp.concatenate([a * cos + b * sin, a * sin - b * cos], axis=1)
            V = jnp.concatenate([cos, sin], axis=1)
            decay = jnp.exp(-jnp.concatenate([c, c]) * jnp.diff(t, prepend=t[0])[:, None])
            A = error**2 + jnp.sum(a)

            def point(state, x):
                S, f = state
                u, v, p, A, y = x
                S = S * p[:, None] * p
                f = f * p
                Su = S @ u
                D = A - u @ Su
                W = (v - Su) / D
                z = y - u @ f
                return (S + D * jnp.outer(W, W), f + W * z), z**2 / D + jnp.log(D)

            start = jnp.zeros((2 * terms, 2 * terms)), jnp.zeros(2 * terms)
            return 0.5 * jnp.sum(lax.scan(point, start, (U, V, decay, A, y))[1])

        return jax.jit(jax.value_and_grad(nll))


class KnockOutCapTree(Model):
    """A cap that dies at a barrier, on Hull and White's trinomial tree fitted to a curve forwards, rolled back; gradient."""

    kind = "finance"
    dtype = "float64"
    size = dict(steps=120, wings=24)
    small = dict(steps=6, wings=3)

    def make(self, random, steps, wings):
        t = np.arange(steps + 1) / 12
        zero = 0.03 + 0.01 * (1 - np.exp(-t / 3)) + 0.0005 * random.normal(size=steps + 1)
        reversion = 0.35 / wings * 12
        return np.array([reversion, 0.012]), zero, 0.0353, 0.0917

    def rscan(self, steps, wings):
        @rs.compile
        def price(theta, zero, strike, barrier):
            a, sigma, dt = theta[0], theta[1], 1 / 12
            dr = sigma * np.sqrt(3 * dt)
            j = rs.arange(-wings, wings + 1)
            m = a * dt * j
            inside = [1 / 6 + (m**2 - m) / 2, 2 / 3 - m**2, 1 / 6 + (m**2 + m) / 2]
            top = [7 / 6 + (m**2 - 3 * m) / 2, -1 / 3 - m**2 + 2 * m, 1 / 6 + (m**2 - m) / 2]
            bottom = [1 / 6 + (m**2 + m) / 2, -1 / 3 - m**2 - 2 * m, 7 / 6 + (m**2 + 3 * m) / 2]
            up, mid, down = [
                rs.where(j == wings, x, rs.where(j == -wings, y, z)) for x, y, z in zip(top, bottom, inside)
            ]
            to = rs.clip(rs.arange(2 * wings + 1), 1, 2 * wings - 1)
            log_discounts = -zero * rs.arange(steps + 1) * dt

            def forwards(log_P, Q):
                alpha = (rs.log(rs.sum(Q * rs.exp(-j * dr * dt))) - log_P) / dt
                paid = Q * rs.exp(-(alpha + j * dr) * dt)
                Q = rs.zeros(2 * wings + 1).at[to + 1].add(paid * up).at[to].add(paid * mid).at[to - 1].add(paid * down)
                return dict(Q=Q, alpha=alpha)

            start = rs.zeros(2 * wings + 1).at[wings].set(1.0)
            alpha = rs.loop(forwards, over=dict(log_P=log_discounts[1:]), init=dict(Q=start)).alpha

            def backwards(alpha, V):
                rate = alpha + j * dr
                expected = up * V[to + 1] + mid * V[to] + down * V[to - 1]
                alive = expected + rs.maximum(rate - strike, 0.0) * dt
                return rs.where(rate < barrier, alive * rs.exp(-rate * dt), 0.0)

            return 1e4 * rs.loop(backwards, over=alpha, init=rs.zeros(2 * wings + 1), go_backwards=True).last[wings]

        return rs.value_and_grad(price, argnums=(0, 1))

    def jax(self, steps, wings):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def price(theta, zero, strike, barrier):
            a, sigma, dt = theta[0], theta[1], 1 / 12
            dr = sigma * np.sqrt(3 * dt)
            j = jnp.arange(-wings, wings + 1)
            m = a * dt * j
            inside = [1 / 6 + (m**2 - m) / 2, 2 / 3 - m**2, 1 / 6 + (m**2 + m) / 2]
            top = [7 / 6 + (m**2 - 3 * m) / 2, -1 / 3 - m**2 + 2 * m, 1 / 6 + (m**2 - m) / 2]
            bottom = [1 / 6 + (m**2 + m) / 2, -1 / 3 - m**2 - 2 * m, 7 / 6 + (m**2 + 3 * m) / 2]
            up, mid, down = [
                jnp.where(j == wings, x, jnp.where(j == -wings, y, z)) for x, y, z in zip(top, bottom, inside)
            ]
            to = np.clip(np.arange(2 * wings + 1), 1, 2 * wings - 1)
            log_discounts = -zero * jnp.arange(steps + 1) * dt

            def forwards(Q, log_P):
                alpha = (jnp.log(jnp.sum(Q * jnp.exp(-j * dr * dt))) - log_P) / dt
                paid = Q * jnp.exp(-(alpha + j * dr) * dt)
                Q = jnp.zeros(2 * wings + 1).at[to + 1].add(paid * up).at[to].add(paid * mid).at[to - 1].add(paid * down)
                return Q, alpha

            _, alpha = lax.scan(forwards, jnp.zeros(2 * wings + 1).at[wings].set(1.0), log_discounts[1:])

            def backwards(V, alpha):
                rate = alpha + j * dr
                expected = up * V[to + 1] + mid * V[to] + down * V[to - 1]
                alive = expected + jnp.maximum(rate - strike, 0.0) * dt
                return jnp.where(rate < barrier, alive * jnp.exp(-rate * dt), 0.0), None

            return 1e4 * lax.scan(backwards, jnp.zeros(2 * wings + 1), alpha, reverse=True)[0][wings]

        return jax.jit(jax.value_and_grad(price, argnums=(0, 1)))


class SwapCurveBootstrap(Model):
    """A curve from par swap rates, a knot after the other by Newton's method with its own derivative; the curve's Jacobian."""

    kind = "finance"
    dtype = "float64"
    size = dict(knots=10)
    small = dict(knots=3)

    def make(self, random, knots):
        maturities = np.array([2, 4, 6, 8, 10, 14, 20, 30, 40, 60])[:knots]
        return 0.02 + 0.015 * (1 - np.exp(-maturities / 10)) + 0.0003 * random.normal(size=knots), maturities

    def rscan(self, knots):
        n = [2, 4, 6, 8, 10, 14, 20, 30, 40, 60][knots - 1]

        def curve(quotes, maturities):
            i = rs.arange(n + 1)

            def knot(quote, m, log_d, before):
                def with_forward(f):
                    return rs.where(i <= before, log_d, log_d[before] - 0.5 * f * (i - before))

                def mispriced(f):
                    d = rs.exp(with_forward(f))
                    return 0.5 * quote * rs.sum(rs.where((i > 0) & (i <= m), d, 0.0)) + d[m] - 1

                def newton(f):
                    value, slope = rs.value_and_grad(mispriced)(f)
                    return f - value / slope, rs.until(rs.abs(value) < 1e-12)

                f = rs.loop(newton, init=quote, n_steps=20).last
                return dict(log_d=with_forward(f), before=m)

            last = rs.loop(knot, over=dict(quote=quotes, m=maturities), init=dict(log_d=rs.zeros(n + 1), before=0)).last
            return rs.exp(last.log_d)

        @rs.compile
        def ladder(quotes, maturities):
            return curve(quotes, maturities), rs.jacobian(curve)(quotes, maturities)

        return ladder

    def jax(self, knots):
        import jax
        import jax.numpy as jnp
        from jax import lax

        n = [2, 4, 6, 8, 10, 14, 20, 30, 40, 60][knots - 1]

        def curve(quotes, maturities):
            i = jnp.arange(n + 1)

            def knot(state, x):
                log_d, before = state
                quote, m = x

                def with_forward(f):
                    return jnp.where(i <= before, log_d, log_d[before] - 0.5 * f * (i - before))

                def mispriced(f):
                    d = jnp.exp(with_forward(f))
                    return 0.5 * quote * jnp.sum(jnp.where((i > 0) & (i <= m), d, 0.0)) + d[m] - 1

                def newton(state):
                    f, k, _ = state
                    value, slope = jax.value_and_grad(mispriced)(f)
                    return f - value / slope, k + 1, jnp.abs(value) < 1e-12

                f, _, _ = lax.while_loop(lambda s: (s[1] < 20) & ~s[2], newton, (quote, 0, False))
                return (with_forward(f), m), None

            (log_d, _), _ = lax.scan(knot, (jnp.zeros(n + 1), 0), (quotes, maturities))
            return jnp.exp(log_d)

        return jax.jit(lambda q, m: (curve(q, m), jax.jacfwd(curve)(q, m)))


class DccGarch(Model):
    """Dynamic conditional correlations of GARCH residuals: two loops, a Cholesky factor per day; gradient by all parameters."""

    kind = "finance"
    dtype = "float64"
    size = dict(days=200, assets=5)
    small = dict(days=8, assets=2)

    def make(self, random, days, assets):
        mix = np.eye(assets) + 0.3 * random.normal(size=(assets, assets))
        garch = np.log([[0.05, 0.08, 0.85]] * assets) + 0.05 * random.normal(size=(assets, 3))
        return garch, np.array([0.04, 0.9]), random.standard_t(7, size=(days, assets)) @ mix

    def rscan(self, days, assets):
        @rs.compile
        def nll(garch, dcc, r):
            omega, alpha, beta = rs.exp(garch).T

            def variance(r, h):
                return omega + alpha * r**2 + beta * h

            h0 = rs.var(r, axis=0)
            h = rs.concatenate([h0[None], rs.loop(variance, over=r[:-1], init=h0)])
            e = r / rs.sqrt(h)
            average = e.T @ e / days

            def correlation(e, Q):
                scale = 1 / rs.sqrt(rs.diag(Q))
                L = rs.linalg.cholesky(Q * rs.outer(scale, scale))
                z = rs.linalg.solve_triangular(L, e, lower=True)
                term = 2 * rs.sum(rs.log(rs.diag(L))) + z @ z
                return dict(Q=(1 - dcc[0] - dcc[1]) * average + dcc[0] * rs.outer(e, e) + dcc[1] * Q, term=term)

            out = rs.loop(correlation, over=dict(e=e), init=dict(Q=average))
            return 0.5 * (rs.sum(out.term) + rs.sum(rs.log(h)))

        return rs.value_and_grad(nll, argnums=(0, 1))

    def jax(self, days, assets):
        import jax
        import jax.numpy as jnp
        from jax import lax
        from jax.scipy.linalg import solve_triangular

        def nll(garch, dcc, r):
            omega, alpha, beta = jnp.exp(garch).T

            def variance(h, r):
                return omega + alpha * r**2 + beta * h, h

            _, h = lax.scan(variance, jnp.var(r, axis=0), r)
            e = r / jnp.sqrt(h)
            average = e.T @ e / days

            def correlation(Q, e):
                scale = 1 / jnp.sqrt(jnp.diag(Q))
                L = jnp.linalg.cholesky(Q * jnp.outer(scale, scale))
                z = solve_triangular(L, e, lower=True)
                term = 2 * jnp.sum(jnp.log(jnp.diag(L))) + z @ z
                return (1 - dcc[0] - dcc[1]) * average + dcc[0] * jnp.outer(e, e) + dcc[1] * Q, term

            return 0.5 * (jnp.sum(lax.scan(correlation, average, e)[1]) + jnp.sum(jnp.log(h)))

        return jax.jit(jax.value_and_grad(nll, argnums=(0, 1)))


class BandRebalancing(Model):
    """A portfolio drifts and goes back to its targets where a band is left; what is left after costs is a fixed point; many paths."""

    kind = "finance"
    dtype = "float32"
    size = dict(paths=64, months=120, assets=5)
    small = dict(paths=3, months=6, assets=3)

    def make(self, random, paths, months, assets):
        returns = np.exp(0.005 + 0.05 * random.normal(size=(paths, months, assets)))
        target = random.dirichlet(np.full(assets, 8.0))
        return target.astype("f4"), np.float32(0.06), np.float32(0.004), returns.astype("f4")

    def rscan(self, paths, months, assets):
        def path(target, band, cost, returns):
            def month(growth, w, wealth, trades, turnover):
                value = w * growth
                total = rs.sum(value)
                w, wealth = value / total, wealth * total

                def rebalanced():
                    def left(x):
                        new = 1 - cost * rs.sum(rs.abs(x * target - w))
                        return new, rs.until(rs.abs(new - x) < 1e-6)

                    x = rs.loop(left, init=rs.ones_like(cost), n_steps=20).last
                    return target, wealth * x, trades + 1, turnover + rs.sum(rs.abs(x * target - w))

                leave = rs.any(rs.abs(w - target) > band)
                w, wealth, trades, turnover = rs.ifelse(leave, rebalanced(), (w, wealth, trades, turnover))
                return dict(w=w, wealth=wealth, trades=trades, turnover=turnover)

            one = rs.ones_like(cost)
            out = rs.loop(month, over=dict(growth=returns), init=dict(w=target, wealth=one, trades=0, turnover=0 * one))
            return out.last.wealth, out.last.trades, out.last.turnover, rs.min(out.wealth)

        return rs.compile(rs.vmap(path, in_axes=(None, None, None, 0)))

    def jax(self, paths, months, assets):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def path(target, band, cost, returns):
            def month(state, growth):
                w, wealth, trades, turnover = state
                value = w * growth
                total = jnp.sum(value)
                w, wealth = value / total, wealth * total

                def rebalanced():
                    def left(state):
                        x, k, _ = state
                        new = 1 - cost * jnp.sum(jnp.abs(x * target - w))
                        return new, k + 1, jnp.abs(new - x) < 1e-6

                    x, _, _ = lax.while_loop(lambda s: (s[1] < 20) & ~s[2], left, (jnp.ones_like(cost), 0, False))
                    return target, wealth * x, trades + 1, turnover + jnp.sum(jnp.abs(x * target - w))

                leave = jnp.any(jnp.abs(w - target) > band)
                new = lax.cond(leave, rebalanced, lambda: (w, wealth, trades, turnover))
                return new, new[1]

            one = jnp.ones_like(cost)
            (_, wealth, trades, turnover), rows = lax.scan(month, (target, one, 0, 0 * one), returns)
            return wealth, trades, turnover, jnp.min(rows)

        return jax.jit(jax.vmap(path, in_axes=(None, None, None, 0)))


class SeirAgeBands(Model):
    """SEIR by age bands with two latent and two infectious stages, school terms, deaths delayed by up to two weeks; gradient."""

    kind = "biology and medicine"
    dtype = "float64"
    size = dict(days=180, ages=6)
    small = dict(days=5, ages=2)

    def make(self, random, days, ages):
        contacts = random.random((2, ages, ages)) + np.eye(ages)
        contacts[1] *= 0.6
        contacts = (contacts + contacts.transpose(0, 2, 1)) / 4
        term = (np.arange(days) // 30) % 2
        delay = np.exp(-0.5 * ((np.arange(14) - 8) / 3.0) ** 2)
        fatality = np.geomspace(1e-3, 5e-2, ages)
        people = random.integers(50_000, 150_000, size=ages).astype("f8")
        deaths = random.poisson(3.0, size=(days, ages))
        return np.log([0.25, 0.4, 0.3]), 0.1 * random.normal(size=ages), contacts, term, delay / delay.sum(), fatality, people, deaths

    def rscan(self, days, ages):
        @rs.compile
        def nll(rates, susceptibility, contacts, term, delay, fatality, people, deaths):
            beta, sigma, gamma = rs.exp(rates)
            at_risk = beta * rs.exp(susceptibility)

            def day(term, dead, S, E, I, new):
                mixing = contacts[term]

                def quarter(_, state):
                    S, E, I, infected = state
                    force = at_risk * (mixing @ (rs.sum(I, axis=0) / people))
                    flow = 0.25 * force * S
                    E_out, I_out = 0.25 * 2 * sigma * E, 0.25 * 2 * gamma * I
                    E = E - E_out + rs.stack([flow, E_out[0]])
                    I = I - I_out + rs.stack([E_out[1], I_out[0]])
                    return S - flow, E, I, infected + flow

                S, E, I, infected = rs.fori(0, 4, quarter, (S, E, I, rs.zeros(ages)))
                expected = 0.01 + fatality * sum(delay[k] * new[-1 - k] for k in range(14))
                return dict(S=S, E=E, I=I, new=infected, term=rs.sum(expected - dead * rs.log(expected)))

            seed = rs.full((2, ages), 20.0)
            start = dict(S=people - 80, E=seed, I=seed, new=rs.taps(rs.zeros((14, ages)), *range(-14, 0)))
            return rs.sum(rs.loop(day, over=dict(term=term, dead=deaths), init=start).term)

        return rs.value_and_grad(nll, argnums=(0, 1))

    def jax(self, days, ages):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def nll(rates, susceptibility, contacts, term, delay, fatality, people, deaths):
            beta, sigma, gamma = jnp.exp(rates)
            at_risk = beta * jnp.exp(susceptibility)

            def day(state, x):
                S, E, I, new = state
                term, dead = x
                mixing = contacts[term]

                def quarter(state, _):
                    S, E, I, infected = state
                    force = at_risk * (mixing @ (jnp.sum(I, axis=0) / people))
                    flow = 0.25 * force * S
                    E_out, I_out = 0.25 * 2 * sigma * E, 0.25 * 2 * gamma * I
                    E = E - E_out + jnp.stack([flow, E_out[0]])
                    I = I - I_out + jnp.stack([E_out[1], I_out[0]])
                    return (S - flow, E, I, infected + flow), None

                (S, E, I, infected), _ = lax.scan(quarter, (S, E, I, jnp.zeros(ages)), None, length=4)
                expected = 0.01 + fatality * (delay[::-1] @ new)
                new = jnp.concatenate([new[1:], infected[None]])
                return (S, E, I, new), jnp.sum(expected - dead * jnp.log(expected))

            seed = jnp.full((2, ages), 20.0)
            return jnp.sum(lax.scan(day, (people - 80, seed, seed, jnp.zeros((14, ages))), (term, deaths))[1])

        return jax.jit(jax.value_and_grad(nll, argnums=(0, 1)))


class FelsensteinPruning(Model):
    """The likelihood of an alignment on a tree given by arrays, under the general reversible model; gradient by branches and rates."""

    kind = "biology and medicine"
    dtype = "float64"
    size = dict(tips=32, sites=150)
    small = dict(tips=4, sites=3)

    def make(self, random, tips, sites):
        open_, children = list(range(tips)), []
        for k in range(tips - 1):
            a, b = (open_.pop(int(random.integers(len(open_)))) for _ in range(2))
            children.append((a, b))
            open_.append(tips + k)
        letters = (random.integers(0, 4, size=sites) + (random.random((tips, sites)) < 0.3) * random.integers(1, 4, size=(tips, sites))) % 4
        lengths = np.log(0.1) + 0.3 * random.normal(size=2 * tips - 2)
        return lengths, 0.3 * random.normal(size=6), 0.2 * random.normal(size=4), letters, np.array(children)

    def rscan(self, tips, sites):
        rows, columns = np.triu_indices(4, 1)

        @rs.compile
        def nll(log_lengths, log_rates, logits, letters, children):
            pi = rs.special.softmax(logits)
            root = rs.sqrt(pi)
            upper = rs.zeros((4, 4)).at[rows, columns].set(rs.exp(log_rates))
            rates = (upper + upper.T) * rs.outer(root, root)
            leaving = rs.sum(rates * root, axis=1) / root
            symmetric = rates - rs.diag(leaving)
            symmetric = symmetric / rs.sum(pi * leaving)
            w, v = rs.linalg.eigh(symmetric)
            lengths = rs.exp(log_lengths)
            grown = rs.exp(lengths[:, None] * w)
            P = ((v / root[:, None]) * grown[:, None, :]) @ (v.T * root)

            def join(pair, node, partials, scales):
                a, b = pair[0], pair[1]
                both = (partials[a] @ P[a].T) * (partials[b] @ P[b].T)
                largest = rs.max(both, axis=1)
                return dict(partials=partials.at[node].set(both / largest[:, None]), scales=scales + rs.log(largest))

            seen = rs.eye(4)[letters]
            start = dict(partials=rs.concatenate([seen, rs.zeros((tips - 1, sites, 4))]), scales=rs.zeros(sites))
            last = rs.loop(join, over=dict(pair=children, node=rs.arange(tips, 2 * tips - 1)), init=start).last
            return -rs.sum(rs.log(last.partials[-1] @ pi) + last.scales)

        return rs.value_and_grad(nll, argnums=(0, 1, 2))

    def jax(self, tips, sites):
        import jax
        import jax.numpy as jnp
        from jax import lax

        rows, columns = np.triu_indices(4, 1)

        def nll(log_lengths, log_rates, logits, letters, children):
            pi = jax.nn.softmax(logits)
            root = jnp.sqrt(pi)
            upper = jnp.zeros((4, 4)).at[rows, columns].set(jnp.exp(log_rates))
            rates = (upper + upper.T) * jnp.outer(root, root)
            leaving = jnp.sum(rates * root, axis=1) / root
            symmetric = rates - jnp.diag(leaving)
            symmetric = symmetric / jnp.sum(pi * leaving)
            w, v = jnp.linalg.eigh(symmetric)
            lengths = jnp.exp(log_lengths)
            grown = jnp.exp(lengths[:, None] * w)
            P = ((v / root[:, None]) * grown[:, None, :]) @ (v.T * root)

            def join(state, x):
                partials, scales = state
                (a, b), node = x
                both = (partials[a] @ P[a].T) * (partials[b] @ P[b].T)
                largest = jnp.max(both, axis=1)
                return (partials.at[node].set(both / largest[:, None]), scales + jnp.log(largest)), None

            seen = jnp.eye(4)[letters]
            start = jnp.concatenate([seen, jnp.zeros((tips - 1, sites, 4))]), jnp.zeros(sites)
            (partials, scales), _ = lax.scan(join, start, (children, jnp.arange(tips, 2 * tips - 1)))
            return -jnp.sum(jnp.log(partials[-1] @ pi) + scales)

        return jax.jit(jax.value_and_grad(nll, argnums=(0, 1, 2)))


class DosingEvents(Model):
    """Two compartments and a depot for many patients: boluses, infusions, dialysis and looks at uneven times, exact between events."""

    kind = "biology and medicine"
    dtype = "float64"
    size = dict(patients=12, events=30)
    small = dict(patients=2, events=5)

    def make(self, random, patients, events):
        theta = np.log([1.2, 3.0, 20.0, 2.0, 40.0]) + 0.3 * random.normal(size=(patients, 5))
        kind = random.choice(4, p=[0.5, 0.3, 0.15, 0.05], size=(patients, events))
        amount = np.choose(kind, [0.0, 100.0, 10.0 * random.integers(0, 2, size=kind.shape), 0.4])
        return theta, random.exponential(3.0, size=(patients, events)), kind, amount

    def rscan(self, patients, events):
        def patient(theta, pause, kind, amount):
            ka, cl, v, q, v2 = rs.exp(theta)
            A = rs.array([
                [-ka, 0.0, 0.0, 0.0],
                [ka, -(cl + q) / v, q / v2, 1.0],
                [0.0, q / v, -q / v2, 0.0],
                [0.0, 0.0, 0.0, 0.0],
            ])

            def event(pause, kind, amount, x):
                x = rs.linalg.expm(A * pause) @ x
                x = rs.where(kind == 1, x.at[0].add(amount), x)
                x = rs.where(kind == 2, x.at[3].set(amount), x)
                x = rs.where(kind == 3, x.at[1:3].multiply(1 - amount), x)
                return dict(x=x, seen=rs.where(kind == 0, x[1] / v, 0.0))

            out = rs.loop(event, over=dict(pause=pause, kind=kind, amount=amount), init=dict(x=rs.zeros(4)))
            return out.seen, out.last.x

        return rs.compile(rs.vmap(patient))

    def jax(self, patients, events):
        import jax
        import jax.numpy as jnp
        from jax import lax
        from jax.scipy.linalg import expm

        def patient(theta, pause, kind, amount):
            ka, cl, v, q, v2 = jnp.exp(theta)
            A = jnp.array([
                [-ka, 0.0, 0.0, 0.0],
                [ka, -(cl + q) / v, q / v2, 1.0],
                [0.0, q / v, -q / v2, 0.0],
                [0.0, 0.0, 0.0, 0.0],
            ])

            def event(x, e):
                pause, kind, amount = e
                x = expm(A * pause) @ x
                x = jnp.where(kind == 1, x.at[0].add(amount), x)
                x = jnp.where(kind == 2, x.at[3].set(amount), x)
                x = jnp.where(kind == 3, x.at[1:3].multiply(1 - amount), x)
                return x, jnp.where(kind == 0, x[1] / v, 0.0)

            x, seen = lax.scan(event, jnp.zeros(4), (pause, kind, amount))
            return seen, x

        return jax.jit(jax.vmap(patient))


class WrightFisherSelection(Model):
    """Allele counts of samples through generations: the exact chain of Wright and Fisher as hidden states; value and Hessian."""

    kind = "biology and medicine"
    dtype = "float64"
    size = dict(copies=40, generations=80)
    small = dict(copies=5, generations=6)

    def make(self, random, copies, generations):
        n = np.where(np.arange(generations) % 8 == 0, 20, 0)
        k = random.binomial(n, np.linspace(0.2, 0.7, generations))
        return np.array([0.05, 0.5, np.log(0.01)]), n, k

    def rscan(self, copies, generations):
        def ll(theta, n, k):
            s, h, u = theta[0], theta[1], rs.exp(theta[2])
            j = rs.arange(copies + 1)
            f = j / copies
            fitness = 1 + 2 * s * h * f * (1 - f) + s * f**2
            p = (f * (1 + s * f + s * h * (1 - f))) / fitness
            p = u + (1 - 2 * u) * p
            T = rs.stats.binom.pmf(j, copies, p[:, None])
            seen = rs.stats.binom.pmf(k[:, None], n[:, None], 0.005 + 0.99 * f)

            def generation(seen, alpha):
                joint = (alpha @ T) * seen
                c = rs.sum(joint)
                return dict(alpha=joint / c, ll=rs.log(c))

            start = rs.full(copies + 1, 1 / (copies + 1))
            return rs.sum(rs.loop(generation, over=dict(seen=seen), init=dict(alpha=start)).ll)

        hessian = rs.hessian(ll)
        return rs.compile(lambda theta, n, k: (ll(theta, n, k), hessian(theta, n, k)))

    def jax(self, copies, generations):
        import jax
        import jax.numpy as jnp
        from jax import lax
        from jax.scipy.special import gammaln

        def pmf(k, n, p):
            return jnp.exp(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) + k * jnp.log(p) + (n - k) * jnp.log1p(-p))

        def ll(theta, n, k):
            s, h, u = theta[0], theta[1], jnp.exp(theta[2])
            j = jnp.arange(copies + 1)
            f = j / copies
            fitness = 1 + 2 * s * h * f * (1 - f) + s * f**2
            p = (f * (1 + s * f + s * h * (1 - f))) / fitness
            p = u + (1 - 2 * u) * p
            T = pmf(j * 1.0, 1.0 * copies, p[:, None])
            seen = pmf(1.0 * k[:, None], 1.0 * n[:, None], 0.005 + 0.99 * f)

            def generation(alpha, seen):
                joint = (alpha @ T) * seen
                c = jnp.sum(joint)
                return joint / c, jnp.log(c)

            return jnp.sum(lax.scan(generation, jnp.full(copies + 1, 1 / (copies + 1)), seen)[1])

        return jax.jit(lambda theta, n, k: (ll(theta, n, k), jax.hessian(ll)(theta, n, k)))


class ProfileHmmForward(Model):
    """A protein against a profile of matches, inserts and deletes; deletes are a chain along the profile; gradient by all logits."""

    kind = "biology and medicine"
    dtype = "float32"
    size = dict(letters=50, length=30)
    small = dict(letters=4, length=3)

    def make(self, random, letters, length):
        emissions = random.normal(size=(length, 20)).astype("f4")
        moves = np.array([3.0, 0.0, 0.0]) + 0.3 * random.normal(size=(length + 1, 3))
        stay = np.array([0.5, 0.0]) + 0.3 * random.normal(size=(2, length + 1, 2))
        return emissions, moves.astype("f4"), stay.astype("f4"), random.integers(0, 20, size=letters)

    def rscan(self, letters, length):
        @rs.compile
        def score(emissions, moves, stay, sequence):
            never = rs.constant(np.float32(-1e4))
            emit = rs.special.log_softmax(emissions, axis=1)
            from_match, stay = rs.special.log_softmax(moves, axis=1), rs.special.log_softmax(stay, axis=2)
            mm, mi, md = from_match[:, 0], from_match[:, 1], from_match[:, 2]
            im, ii = stay[0, :, 0], stay[0, :, 1]
            dm, dd = stay[1, :, 0], stay[1, :, 1]

            def deletes(M):
                chain = rs.loop(lambda a, t, d: rs.logaddexp(a, d + t), over=[(M + md)[:-1], dd[:-1]], init=never)
                return rs.concatenate([never[None], chain])

            def letter(x, M, I, D):
                best = rs.logaddexp(rs.logaddexp(M + mm, I + im), D + dm)
                M_new = rs.concatenate([never[None], emit[:, x] + best[:-1]])
                I_new = rs.logaddexp(M + mi, I + ii) - np.float32(np.log(20))
                return dict(M=M_new, I=I_new, D=deletes(M_new))

            start = rs.full(length + 1, never).at[0].set(0.0)
            init = dict(M=start, I=rs.full(length + 1, never), D=deletes(start))
            last = rs.loop(letter, over=dict(x=sequence), init=init).last
            return rs.logaddexp(rs.logaddexp(last.M[-1], last.I[-1]), last.D[-1])

        return rs.value_and_grad(score, argnums=(0, 1, 2))

    def jax(self, letters, length):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def score(emissions, moves, stay, sequence):
            never = jnp.float32(-1e4)
            emit = jax.nn.log_softmax(emissions, axis=1)
            from_match, stay = jax.nn.log_softmax(moves, axis=1), jax.nn.log_softmax(stay, axis=2)
            mm, mi, md = from_match.T
            (im, ii), (dm, dd) = stay[0].T, stay[1].T

            def deletes(M):
                def one(d, x):
                    d = jnp.logaddexp(x[0], d + x[1])
                    return d, d

                return jnp.concatenate([never[None], lax.scan(one, never, ((M + md)[:-1], dd[:-1]))[1]])

            def letter(state, x):
                M, I, D = state
                best = jnp.logaddexp(jnp.logaddexp(M + mm, I + im), D + dm)
                M_new = jnp.concatenate([never[None], emit[:, x] + best[:-1]])
                I_new = jnp.logaddexp(M + mi, I + ii) - np.float32(np.log(20))
                return (M_new, I_new, deletes(M_new)), None

            start = jnp.full(length + 1, never).at[0].set(0.0)
            (M, I, D), _ = lax.scan(letter, (start, jnp.full(length + 1, never), deletes(start)), sequence)
            return jnp.logaddexp(jnp.logaddexp(M[-1], I[-1]), D[-1])

        return jax.jit(jax.value_and_grad(score, argnums=(0, 1, 2)))


class PidPopulation(Model):
    """PID control of a tank with dead time, saturation, a limited rate and anti-windup; costs and gradients of many tunings."""

    kind = "engineering"
    dtype = "float64"
    size = dict(steps=600, tunings=16)
    small = dict(steps=12, tunings=2)

    def make(self, random, steps, tunings):
        gains = np.array([2.0, 0.3, 0.5, 0.2]) * np.exp(0.3 * random.normal(size=(tunings, 4)))
        target = np.repeat(1 + random.random(steps // 6 + 1), 6 * max(1, steps // 60))[:steps]
        return gains, target, 0.02 * random.normal(size=steps)

    def rscan(self, steps, tunings):
        dt = 0.1

        def cost(gains, target, noise):
            kp, ki, kd, back = gains[0], gains[1], gains[2], gains[3]

            def step(target, noise, level, flow, integral, slope, error, u):
                late, before = u
                e = target - (level + noise)
                slope = slope + 0.3 * ((e - error) / dt - slope)
                wanted = kp * e + integral + kd * slope
                allowed = rs.clip(rs.clip(wanted, 0.0, 3.0), before - 0.2, before + 0.2)
                integral = integral + dt * (ki * e + back * (allowed - wanted))
                flow = flow + dt * (late - flow)
                level = level + dt * (0.8 * flow - 0.6 * rs.sqrt(rs.maximum(level, 1e-6)))
                return dict(
                    level=level, flow=flow, integral=integral, slope=slope, error=e, u=allowed,
                    cost=e**2 + 0.05 * (allowed - before) ** 2,
                )  # fmt: skip

            start = dict(level=0.5, flow=0.3, integral=0.0, slope=0.0, error=0.0, u=rs.taps(rs.full(8, 0.3), -8, -1))
            return rs.sum(rs.loop(step, over=dict(target=target, noise=noise), init=start).cost)

        return rs.compile(rs.vmap(rs.value_and_grad(cost), in_axes=(0, None, None)))

    def jax(self, steps, tunings):
        import jax
        import jax.numpy as jnp
        from jax import lax

        dt = 0.1

        def cost(gains, target, noise):
            kp, ki, kd, back = gains

            def step(state, x):
                level, flow, integral, slope, error, u = state
                target, noise = x
                late, before = u[0], u[-1]
                e = target - (level + noise)
                slope = slope + 0.3 * ((e - error) / dt - slope)
                wanted = kp * e + integral + kd * slope
                allowed = jnp.clip(jnp.clip(wanted, 0.0, 3.0), before - 0.2, before + 0.2)
                integral = integral + dt * (ki * e + back * (allowed - wanted))
                flow = flow + dt * (late - flow)
                level = level + dt * (0.8 * flow - 0.6 * jnp.sqrt(jnp.maximum(level, 1e-6)))
                u = jnp.concatenate([u[1:], allowed[None]])
                return (level, flow, integral, slope, e, u), e**2 + 0.05 * (allowed - before) ** 2

            return jnp.sum(lax.scan(step, (0.5, 0.3, 0.0, 0.0, 0.0, jnp.full(8, 0.3)), (target, noise))[1])

        return jax.jit(jax.vmap(jax.value_and_grad(cost), in_axes=(0, None, None)))


class RecedingHorizon(Model):
    """Model predictive control: at each time some accelerated, projected gradient steps on the inputs ahead, from a warm start."""

    kind = "engineering"
    dtype = "float64"
    size = dict(times=25, iterations=8, horizon=10)
    small = dict(times=3, iterations=2, horizon=3)

    def make(self, random, times, iterations, horizon):
        A = np.array([[1, 0.2, 0, 0], [0, 0.95, 0.05, 0], [0, 0, 1, 0.2], [0.05, 0, 0, 0.95]])
        B = np.array([[0.02, 0], [0.2, 0], [0, 0.02], [0, 0.2]])
        target = np.sin(np.arange(times + horizon)[:, None] * [0.2, 0, 0.3, 0]) * [1, 0, 0.5, 0]
        return A, B, target, 0.02 * random.normal(size=(times, 4))

    def rscan(self, times, iterations, horizon):
        @rs.compile
        def drive(A, B, target, disturbance):
            def time(t, push, x, plan):
                ahead = target[t : t + horizon]

                def cost(plan):
                    def move(u, goal, x):
                        x = A @ x + B @ u
                        return dict(x=x, cost=rs.sum(rs.constant([5.0, 0.1, 5.0, 0.1]) * (x - goal) ** 2) + 0.05 * rs.sum(u**2))

                    return rs.sum(rs.loop(move, over=dict(u=plan, goal=ahead), init=dict(x=x)).cost)

                def improve(k, u, v):
                    new = rs.clip(v - 0.05 * rs.grad(cost)(v), -1.0, 1.0)
                    return dict(u=new, v=new + k / (k + 3) * (new - u))

                plan = rs.loop(improve, over=dict(k=rs.arange(iterations)), init=dict(u=plan, v=plan)).last.u
                x = A @ x + B @ plan[0] + push
                return dict(x=x, plan=rs.concatenate([plan[1:], plan[-1:]]), applied=plan[0])

            start = dict(x=rs.zeros(4), plan=rs.zeros((horizon, 2)))
            out = rs.loop(time, over=dict(t=rs.arange(times), push=disturbance), init=start)
            return out.x, out.applied

        return drive

    def jax(self, times, iterations, horizon):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def drive(A, B, target, disturbance):
            def time(state, e):
                x0, plan = state
                t, push = e
                ahead = lax.dynamic_slice_in_dim(target, t, horizon)

                def cost(plan):
                    def move(x, e):
                        u, goal = e
                        x = A @ x + B @ u
                        return x, jnp.sum(jnp.array([5.0, 0.1, 5.0, 0.1]) * (x - goal) ** 2) + 0.05 * jnp.sum(u**2)

                    return jnp.sum(lax.scan(move, x0, (plan, ahead))[1])

                def improve(k, state):
                    u, v = state
                    new = jnp.clip(v - 0.05 * jax.grad(cost)(v), -1.0, 1.0)
                    return new, new + k / (k + 3) * (new - u)

                plan, _ = lax.fori_loop(0, iterations, improve, (plan, plan))
                x = A @ x0 + B @ plan[0] + push
                return (x, jnp.concatenate([plan[1:], plan[-1:]])), (x, plan[0])

            return lax.scan(time, (jnp.zeros(4), jnp.zeros((horizon, 2))), (jnp.arange(times), disturbance))[1]

        return jax.jit(drive)


class FixedPointFilterBank(Model):
    """A bank of band-pass filters of fourth order in integers of 32 bits, rounded and saturated; envelopes, and how often it clips."""

    kind = "engineering"
    dtype = "int32"
    size = dict(samples=4000, bands=16)
    small = dict(samples=60, bands=3)

    def make(self, random, samples, bands):
        w = np.geomspace(0.05, 1.2, bands)
        alpha = np.sin(w) / 6
        b0, a1, a2 = 3 * alpha / (1 + alpha), -2 * np.cos(w) / (1 + alpha), (1 - alpha) / (1 + alpha)
        coefficients = np.round(4096 * np.stack([b0, a1, a2])).astype("i4")
        sound = 30000 * np.sin(0.002 * np.arange(samples) ** 1.5) + 6000 * random.normal(size=samples)
        return coefficients, np.clip(np.round(sound), -32768, 32767).astype("i4")

    def rscan(self, samples, bands):
        @rs.compile
        def bank(coefficients, sound):
            b0, a1, a2 = coefficients[0], coefficients[1], coefficients[2]

            def section(x, x2, y1, y2):
                acc = b0 * (x - x2) - a1 * y1 - a2 * y2
                full = (acc + 2048) >> 12
                kept = rs.clip(full, -32768, 32767)
                return kept, full != kept

            def sample(x, y, z, envelope, clips):
                (x2, x0), (y2, y1), (z2, z1) = x, y, z
                new, clip1 = section(x0, x2, y1, y2)
                out, clip2 = section(new, y2, z1, z2)
                envelope = envelope + ((rs.abs(out) - envelope) >> 5)
                return dict(y=new, z=out, envelope=envelope, clips=clips + clip1 + clip2)

            quiet = rs.zeros((2, bands), dtype="int32")
            start = dict(y=rs.taps(quiet, -2, -1), z=rs.taps(quiet, -2, -1), envelope=quiet[0], clips=quiet[0])
            out = rs.loop(sample, over=dict(x=rs.taps(sound, -2, 0)), init=start)
            return out.envelope[49::50], out.last.clips

        return bank

    def jax(self, samples, bands):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def bank(coefficients, sound):
            b0, a1, a2 = coefficients

            def section(x, x2, y1, y2):
                acc = b0 * (x - x2) - a1 * y1 - a2 * y2
                full = (acc + 2048) >> 12
                kept = jnp.clip(full, -32768, 32767)
                return kept, full != kept

            def sample(state, x):
                y2, y1, z2, z1, envelope, clips = state
                x2, x0 = x
                new, clip1 = section(x0, x2, y1, y2)
                out, clip2 = section(new, y2, z1, z2)
                envelope = envelope + ((jnp.abs(out) - envelope) >> 5)
                return (y1, new, z1, out, envelope, clips + clip1 + clip2), envelope

            quiet = jnp.zeros(bands, dtype="int32")
            last, envelope = lax.scan(sample, (quiet,) * 6, (sound[:-2], sound[2:]))
            return envelope[49::50], last[-1]

        return jax.jit(bank)


class FeedbackDelayNetwork(Model):
    """A reverberator: eight delay lines in rings, read between samples at places that wander, damped and mixed into each other."""

    kind = "engineering"
    dtype = "float32"
    size = dict(samples=2000, ring=512)
    small = dict(samples=20, ring=16)

    def make(self, random, samples, ring):
        lengths = np.linspace(0.3, 0.8, 8) * ring + random.random(8)
        speeds = 0.002 * (1 + random.random(8))
        sound = random.normal(size=samples) * np.exp(-np.arange(samples) / 200)
        return lengths.astype("f4"), speeds.astype("f4"), np.float32(0.03 * ring), np.float32(0.9), sound.astype("f4")

    def rscan(self, samples, ring):
        @rs.compile
        def reverb(lengths, speeds, depth, gain, sound):
            line = rs.arange(8)

            def sample(x, t, lines, low, phase):
                now = t % ring
                delay = lengths + depth * rs.sin(phase)
                place = rs.cast(now, "float32") - delay
                place = rs.where(place < 0, place + ring, place)
                i = rs.cast(rs.floor(place), "int64")
                share = place - rs.cast(i, "float32")
                read = (1 - share) * lines[line, i % ring] + share * lines[line, (i + 1) % ring]
                low = low + 0.6 * (read - low)
                mixed = low - rs.sum(low) / 4
                lines = lines.at[:, now].set(x + gain * mixed)
                return dict(lines=lines, low=low, phase=phase + speeds, heard=rs.sum(low) / 8)

            start = dict(
                lines=rs.zeros((8, ring), dtype="float32"), low=rs.zeros(8, dtype="float32"), phase=rs.zeros(8, dtype="float32")
            )
            return rs.loop(sample, over=dict(x=sound, t=rs.arange(samples)), init=start).heard

        return reverb

    def jax(self, samples, ring):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def reverb(lengths, speeds, depth, gain, sound):
            line = jnp.arange(8)

            def sample(state, e):
                lines, low, phase = state
                x, t = e
                now = t % ring
                delay = lengths + depth * jnp.sin(phase)
                place = now.astype("float32") - delay
                place = jnp.where(place < 0, place + ring, place)
                i = jnp.floor(place).astype("int64")
                share = place - i.astype("float32")
                read = (1 - share) * lines[line, i % ring] + share * lines[line, (i + 1) % ring]
                low = low + 0.6 * (read - low)
                mixed = low - jnp.sum(low) / 4
                lines = lines.at[:, now].set(x + gain * mixed)
                return (lines, low, phase + speeds), jnp.sum(low) / 8

            zeros = jnp.zeros(8, dtype="float32")
            return lax.scan(sample, (jnp.zeros((8, ring), dtype="float32"), zeros, zeros), (sound, jnp.arange(samples)))[1]

        return jax.jit(reverb)


class QuantisedMinSum(Model):
    """Normalised min-sum decoding of a low-density parity-check code in small integers, frame by frame until all checks hold."""

    kind = "engineering"
    dtype = "int32"
    size = dict(bits=96, frames=8)
    small = dict(bits=12, frames=2)

    def make(self, random, bits, frames):
        edges = np.concatenate([random.permutation(bits) for _ in range(3)]).reshape(bits // 2, 6)
        llr = np.round(2 * (2 + 1.5 * random.normal(size=(frames, bits))))
        return np.clip(llr, -31, 31).astype("i4"), edges

    def rscan(self, bits, frames):
        def decode(llr, edges):
            slots = rs.arange(6)

            def sweep(messages, total):
                q = rs.clip(total[edges] - messages, -31, 31)
                size = rs.abs(q)
                negative = q < 0
                ordered = rs.sort(size, axis=1)
                least = rs.argmin(size, axis=1)
                other = rs.where(slots == least[:, None], ordered[:, 1:2], ordered[:, 0:1])
                odd = (rs.sum(negative, axis=1, keepdims=True) - negative) % 2
                messages = rs.where(odd == 1, -1, 1) * ((3 * other) >> 2)
                messages = rs.cast(messages, "int32")
                total = llr.at[edges].add(messages)
                broken = rs.sum(total[edges] < 0, axis=1) % 2
                return dict(messages=messages, total=total), rs.until(rs.all(broken == 0))

            start = dict(messages=rs.zeros((bits // 2, 6), dtype="int32"), total=llr)
            out = rs.loop(sweep, init=start, n_steps=25)
            return out.last.total < 0, out.last.total, out.steps

        return rs.compile(rs.vmap(decode, in_axes=(0, None)))

    def jax(self, bits, frames):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def decode(llr, edges):
            slots = jnp.arange(6)

            def sweep(state):
                messages, total, steps, _ = state
                q = jnp.clip(total[edges] - messages, -31, 31)
                size = jnp.abs(q)
                negative = q < 0
                ordered = jnp.sort(size, axis=1)
                least = jnp.argmin(size, axis=1)
                other = jnp.where(slots == least[:, None], ordered[:, 1:2], ordered[:, 0:1])
                odd = (jnp.sum(negative, axis=1, keepdims=True) - negative) % 2
                messages = (jnp.where(odd == 1, -1, 1) * ((3 * other) >> 2)).astype("int32")
                total = llr.at[edges].add(messages)
                broken = jnp.sum(total[edges] < 0, axis=1) % 2
                return messages, total, steps + 1, jnp.all(broken == 0)

            start = jnp.zeros((bits // 2, 6), dtype="int32"), llr, 0, False
            _, total, steps, _ = lax.while_loop(lambda s: (s[2] < 25) & ~s[3], sweep, start)
            return total < 0, total, steps

        return jax.jit(jax.vmap(decode, in_axes=(0, None)))
