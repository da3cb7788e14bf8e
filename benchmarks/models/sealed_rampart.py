"""Models of many fields, written from the manual by an author who knows no others."""

import math

import numpy as np
import rscan as rs
from models import Model


class GlucoseMinimalSubject(Model):
    """Bergman's minimal model of glucose and insulin, fitted to a day of readings: RK4 over the insulin that was measured, gradient of the misfit."""

    kind = "ODEs"
    dtype = "float64"
    size = dict(minutes=1440)
    small = dict(minutes=30)

    def make(self, random, minutes):
        t = np.arange(2 * minutes + 1) / 2.0
        insulin = 10.0 + 60.0 * np.exp(-(((t % 360.0) - 60.0) / 40.0) ** 2)
        meal = 3.0 * np.exp(-(((t % 360.0) - 45.0) / 25.0) ** 2)
        observed = 90.0 + 40.0 * np.exp(-(((np.arange(5, minutes + 1, 5) % 360.0) - 70.0) / 50.0) ** 2) + random.normal(size=minutes // 5) * 3.0
        p = dict(p1=np.log(0.03), p2=np.log(0.02), p3=np.log(1.3e-5), g0=np.log(95.0))
        return p, insulin, meal, observed

    def rscan(self, minutes):
        h = 1.0

        @rs.compile
        def misfit(p, insulin, meal, observed):
            p1, p2, p3 = rs.exp(p["p1"]), rs.exp(p["p2"]), rs.exp(p["p3"])

            def slope(g, x, i, m):
                return -p1 * (g - 90.0) - x * g + m, -p2 * x + p3 * (i - 10.0)

            def step(i, m, g, x):
                i0, i1, i2 = i
                m0, m1, m2 = m
                a, b = slope(g, x, i0, m0)
                c, d = slope(g + 0.5 * h * a, x + 0.5 * h * b, i1, m1)
                e, f = slope(g + 0.5 * h * c, x + 0.5 * h * d, i1, m1)
                k, l = slope(g + h * e, x + h * f, i2, m2)
                return dict(g=g + h / 6 * (a + 2 * c + 2 * e + k), x=x + h / 6 * (b + 2 * d + 2 * f + l))

            over = dict(i=(insulin[:-1:2], insulin[1::2], insulin[2::2]), m=(meal[:-1:2], meal[1::2], meal[2::2]))
            out = rs.loop(step, over=over, init=dict(g=rs.exp(p["g0"]), x=0.0))
            return rs.mean((out.g[4::5] - observed) ** 2)

        return rs.value_and_grad(misfit)

    def jax(self, minutes):
        import jax, jax.numpy as jnp

        h = 1.0

        def misfit(p, insulin, meal, observed):
            p1, p2, p3 = jnp.exp(p["p1"]), jnp.exp(p["p2"]), jnp.exp(p["p3"])

            def slope(g, x, i, m):
                return -p1 * (g - 90.0) - x * g + m, -p2 * x + p3 * (i - 10.0)

            def step(carry, rows):
                g, x = carry
                i0, i1, i2, m0, m1, m2 = rows
                a, b = slope(g, x, i0, m0)
                c, d = slope(g + 0.5 * h * a, x + 0.5 * h * b, i1, m1)
                e, f = slope(g + 0.5 * h * c, x + 0.5 * h * d, i1, m1)
                k, l = slope(g + h * e, x + h * f, i2, m2)
                g, x = g + h / 6 * (a + 2 * c + 2 * e + k), x + h / 6 * (b + 2 * d + 2 * f + l)
                return (g, x), g

            xs = (insulin[:-1:2], insulin[1::2], insulin[2::2], meal[:-1:2], meal[1::2], meal[2::2])
            _, g = jax.lax.scan(step, (jnp.exp(p["g0"]), 0.0), xs)
            return jnp.mean((g[4::5] - observed) ** 2)

        return jax.jit(jax.value_and_grad(misfit))


class BelousovRelaxation(Model):
    """The Oregonator by a Rosenbrock method of order 2 (ode23s) that chooses its steps: a system of three unknowns in each."""

    kind = "ODEs"
    dtype = "float64"
    size = dict(end=300)
    small = dict(end=2)
    rtol = 1e-4

    def make(self, random, end):
        return np.array([1.0, 2.0, 3.0]) * (1 + 0.01 * random.normal(size=3)), float(end), 1e-5

    def rscan(self, end):
        gamma, e32 = 1 / (2 + math.sqrt(2)), 6 + math.sqrt(2)

        def slope(y):
            a, b, c = y[0], y[1], y[2]
            return rs.stack([77.27 * (b + a * (1 - 8.375e-6 * a - b)), (c - (1 + a) * b) / 77.27, 0.161 * (a - c)])

        @rs.compile
        def solve(y, end, tol):
            def body(state):
                t, h, y = state
                h = rs.minimum(h, end - t)
                w = rs.eye(3) - h * gamma * rs.jacobian(slope)(y)
                f0 = slope(y)
                k1 = rs.linalg.solve(w, f0)
                f1 = slope(y + 0.5 * h * k1)
                k2 = rs.linalg.solve(w, f1 - k1) + k1
                new = y + h * k2
                f2 = slope(new)
                k3 = rs.linalg.solve(w, f2 - e32 * (k2 - f1) - 2 * (k1 - f0))
                error = h / 6 * (k1 - 2 * k2 + k3)
                ratio = rs.max(rs.abs(error) / (tol * rs.maximum(rs.maximum(rs.abs(y), rs.abs(new)), 1e-3)))
                good = ratio <= 1.0
                factor = rs.clip(0.8 * rs.maximum(ratio, 1e-10) ** (-1 / 3), 0.2, 5.0)
                return rs.where(good, t + h, t), h * factor, rs.where(good, new, y)

            t, _, y = rs.while_loop(lambda s: s[0] < end * (1 - 1e-12), body, (0.0, 1e-4, y))
            return t, y

        return solve

    def jax(self, end):
        import jax, jax.numpy as jnp

        gamma, e32 = 1 / (2 + math.sqrt(2)), 6 + math.sqrt(2)

        def slope(y):
            a, b, c = y
            return jnp.stack([77.27 * (b + a * (1 - 8.375e-6 * a - b)), (c - (1 + a) * b) / 77.27, 0.161 * (a - c)])

        def solve(y, end, tol):
            def body(state):
                t, h, y = state
                h = jnp.minimum(h, end - t)
                w = jnp.eye(3) - h * gamma * jax.jacfwd(slope)(y)
                f0 = slope(y)
                lu = jax.scipy.linalg.lu_factor(w)
                k1 = jax.scipy.linalg.lu_solve(lu, f0)
                f1 = slope(y + 0.5 * h * k1)
                k2 = jax.scipy.linalg.lu_solve(lu, f1 - k1) + k1
                new = y + h * k2
                f2 = slope(new)
                k3 = jax.scipy.linalg.lu_solve(lu, f2 - e32 * (k2 - f1) - 2 * (k1 - f0))
                error = h / 6 * (k1 - 2 * k2 + k3)
                ratio = jnp.max(jnp.abs(error) / (tol * jnp.maximum(jnp.maximum(jnp.abs(y), jnp.abs(new)), 1e-3)))
                good = ratio <= 1.0
                factor = jnp.clip(0.8 * jnp.maximum(ratio, 1e-10) ** (-1 / 3), 0.2, 5.0)
                return jnp.where(good, t + h, t), h * factor, jnp.where(good, new, y)

            t, _, y = jax.lax.while_loop(lambda s: s[0] < end * (1 - 1e-12), body, (0.0, 1e-4, y))
            return t, y

        return jax.jit(solve)


class SparseGroupsFista(Model):
    """FISTA for a lasso whose features are in groups, each with a penalty of its own: the gradient of the validation error by the penalties."""

    kind = "optimisers"
    dtype = "float64"
    size = dict(iterations=120, features=60)
    small = dict(iterations=5, features=8)

    def make(self, random, iterations, features):
        rows = 2 * features
        truth = random.normal(size=features) * (random.uniform(size=features) < 0.3)
        x, xv = random.normal(size=(rows, features)), random.normal(size=(rows // 2, features))
        y, yv = x @ truth + random.normal(size=rows), xv @ truth + random.normal(size=rows // 2)
        return np.full(4, -2.5) + 0.3 * random.normal(size=4), x, y, xv, yv, rows / np.linalg.norm(x, 2) ** 2

    def rscan(self, iterations, features):
        group = np.arange(features) % 4

        @rs.compile
        def validation(log_penalty, x, y, xv, yv, rate):
            rows = x.shape[0]
            gram, cross = x.T @ x / rows, x.T @ y / rows
            threshold = rate * rs.exp(log_penalty)[group]

            def step(w, z, t):
                v = z - rate * (gram @ z - cross)
                new = rs.sign(v) * rs.maximum(rs.abs(v) - threshold, 0.0)
                t_new = 0.5 * (1 + rs.sqrt(1 + 4 * t * t))
                return dict(w=new, z=new + (t - 1) / t_new * (new - w), t=t_new)

            start = rs.zeros(features)
            w = rs.loop(step, init=dict(w=start, z=start, t=1.0), n_steps=iterations).last.w
            return 0.5 * rs.mean((xv @ w - yv) ** 2)

        return rs.value_and_grad(validation)

    def jax(self, iterations, features):
        import jax, jax.numpy as jnp

        group = np.arange(features) % 4

        def validation(log_penalty, x, y, xv, yv, rate):
            rows = x.shape[0]
            gram, cross = x.T @ x / rows, x.T @ y / rows
            threshold = rate * jnp.exp(log_penalty)[group]

            def step(carry, _):
                w, z, t = carry
                v = z - rate * (gram @ z - cross)
                new = jnp.sign(v) * jnp.maximum(jnp.abs(v) - threshold, 0.0)
                t_new = 0.5 * (1 + jnp.sqrt(1 + 4 * t * t))
                return (new, new + (t - 1) / t_new * (new - w), t_new), None

            start = jnp.zeros(features)
            (w, _, _), _ = jax.lax.scan(step, (start, start, 1.0), None, length=iterations)
            return 0.5 * jnp.mean((xv @ w - yv) ** 2)

        return jax.jit(jax.value_and_grad(validation))


class DengueWeeksIngarch(Model):
    """Weekly cases of several districts: a negative binomial whose mean depends on last week, the same week of last year, and rain eight weeks ago."""

    kind = "seasonal taps"
    dtype = "float64"
    size = dict(weeks=780, districts=8)
    small = dict(weeks=60, districts=2)

    def make(self, random, weeks, districts):
        season = 1 + 0.8 * np.sin(2 * np.pi * np.arange(weeks) / 52)
        cases = random.poisson(12 * season[:, None] * random.gamma(4.0, 0.25, size=(weeks, districts))).astype("f8")
        rain = random.gamma(2.0, 0.5, size=(weeks, districts))
        p = dict(level=np.log(2.0), last=np.log(0.3), mean=np.log(0.25), year=np.log(0.15), mean_year=np.log(0.1), rain=0.2, size=np.log(4.0))
        return {k: v + 0.05 * random.normal(size=districts) for k, v in p.items()}, cases, rain

    def rscan(self, weeks, districts):
        @rs.compile
        def loss(p, cases, rain):
            def district(p, cases, rain):
                def step(y, rain, m):
                    y_year, y_last = y
                    m_year, m_last = m
                    drive = rs.exp(p["level"] + p["rain"] * (rain - 1.0))
                    ar = rs.exp(p["last"]) * y_last + rs.exp(p["year"]) * y_year
                    return drive + ar + rs.exp(p["mean"]) * m_last + rs.exp(p["mean_year"]) * m_year

                begin = rs.full(52, rs.mean(cases))
                over = dict(y=rs.taps(cases, -52, -1), rain=rain[44:-8])
                m = rs.loop(step, over=over, init=dict(m=rs.taps(begin, -52, -1))).m
                n = rs.exp(p["size"])
                return -rs.mean(rs.stats.nbinom.logpmf(cases[52:], n, n / (n + m)))

            return rs.sum(rs.vmap(district, (0, 1, 1))(p, cases, rain))

        return rs.value_and_grad(loss)

    def jax(self, weeks, districts):
        import jax, jax.numpy as jnp

        def loss(p, cases, rain):
            def district(p, cases, rain):
                def step(ring, rows):
                    y_year, y_last, rain = rows
                    drive = jnp.exp(p["level"] + p["rain"] * (rain - 1.0))
                    ar = jnp.exp(p["last"]) * y_last + jnp.exp(p["year"]) * y_year
                    m = drive + ar + jnp.exp(p["mean"]) * ring[-1] + jnp.exp(p["mean_year"]) * ring[0]
                    return jnp.concatenate([ring[1:], m[None]]), m

                _, m = jax.lax.scan(step, jnp.full(52, jnp.mean(cases)), (cases[:-52], cases[51:-1], rain[44:-8]))
                n = jnp.exp(p["size"])
                y = cases[52:]
                g = jax.scipy.special.gammaln
                return -jnp.mean(g(y + n) - g(n) - g(y + 1) + n * jnp.log(n / (n + m)) + y * jnp.log(m / (n + m)))

            return jnp.sum(jax.vmap(district, (0, 1, 1))(p, cases, rain))

        return jax.jit(jax.value_and_grad(loss))


class FractionalInflation(Model):
    """Long memory: ARFIMA(0, d, 1) in its moving-average form, cut at a hundred lags; the likelihood's gradient by d, theta, mean and deviation."""

    kind = "seasonal taps"
    dtype = "float64"
    size = dict(months=900, lags=100)
    small = dict(months=12, lags=4)

    def make(self, random, months, lags):
        y = 2.0 + np.convolve(random.normal(size=months + 50), 0.9 ** np.arange(51), mode="valid")
        return np.array([0.3, 0.2, 2.0, 0.1]), y[:months]

    def rscan(self, months, lags):
        @rs.compile
        def nll(p, y):
            d, theta, mean, sigma = p[0], p[1], p[2], rs.exp(p[3])
            k = rs.arange(1, lags + 1)
            psi = rs.concatenate([rs.ones(1), rs.cumprod((k - 1 + d) / k)])
            weights = psi[1:] + theta * psi[:-1]

            def step(y, window):
                e = y - mean - rs.dot(weights, window)
                return dict(window=rs.concatenate([rs.stack([e]), window[:-1]]), e=e)

            e = rs.loop(step, over=dict(y=y), init=dict(window=rs.zeros(lags))).e
            return -rs.mean(rs.stats.norm.logpdf(e, 0.0, sigma))

        return rs.value_and_grad(nll)

    def jax(self, months, lags):
        import jax, jax.numpy as jnp

        def nll(p, y):
            d, theta, mean, sigma = p[0], p[1], p[2], jnp.exp(p[3])
            k = jnp.arange(1, lags + 1)
            psi = jnp.concatenate([jnp.ones(1), jnp.cumprod((k - 1 + d) / k)])
            weights = psi[1:] + theta * psi[:-1]

            def step(window, y):
                e = y - mean - jnp.dot(weights, window)
                return jnp.concatenate([e[None], window[:-1]]), e

            _, e = jax.lax.scan(step, jnp.zeros(lags), y)
            return -jnp.mean(jax.scipy.stats.norm.logpdf(e, 0.0, sigma))

        return jax.jit(jax.value_and_grad(nll))


class CameraPosesFromPoints(Model):
    """Poses of many cameras from points that they see: Levenberg-Marquardt over six numbers each, the Jacobian by transforms, cameras by vmap."""

    kind = "small linear algebra"
    dtype = "float32"
    size = dict(cameras=16, points=24, iterations=12)
    small = dict(cameras=2, points=8, iterations=3)
    rtol = 1e-3

    def make(self, random, cameras, points, iterations):
        world = random.uniform(-1, 1, size=(points, 3))
        truth = np.concatenate([0.4 * random.normal(size=(cameras, 3)), 0.2 * random.normal(size=(cameras, 3)) + [0, 0, 5.0]], axis=1)
        seen = np.empty((cameras, points, 2))
        for c, p in enumerate(truth):
            a = np.linalg.norm(p[:3])
            k = p[:3] / a
            x = world * np.cos(a) + np.cross(k, world) * np.sin(a) + np.outer(world @ k, k) * (1 - np.cos(a)) + p[3:]
            seen[c] = x[:, :2] / x[:, 2:]
        seen += 0.005 * random.normal(size=seen.shape)
        start = truth + 0.15 * random.normal(size=truth.shape)
        return start.astype("f4"), seen.astype("f4"), world.astype("f4")

    def rscan(self, cameras, points, iterations):
        def one(start, seen, world):
            def residuals(p):
                w, t = p[:3], p[3:]
                angle = rs.sqrt(rs.sum(w * w) + 1e-12)
                axis = w / angle
                turned = world * rs.cos(angle) + rs.cross(axis, world) * rs.sin(angle) + rs.outer(world @ axis, axis) * (1 - rs.cos(angle))
                x = turned + t
                return rs.ravel(x[:, :2] / x[:, 2:] - seen)

            def step(p, damping, cost):
                r, j = residuals(p), rs.jacobian(residuals)(p)
                normal = j.T @ j
                new = p - rs.linalg.solve(normal + damping * rs.diag(rs.diag(normal)), j.T @ r)
                new_cost = rs.sum(residuals(new) ** 2)
                better = new_cost < cost
                return dict(
                    p=rs.where(better, new, p),
                    damping=rs.where(better, damping * 0.3, damping * 4.0),
                    cost=rs.where(better, new_cost, cost),
                )

            init = dict(p=start, damping=np.float32(0.01), cost=rs.sum(residuals(start) ** 2))
            out = rs.loop(step, init=init, n_steps=iterations).last
            return out.p, out.cost

        return rs.compile(rs.vmap(one, (0, 0, None)))

    def jax(self, cameras, points, iterations):
        import jax, jax.numpy as jnp

        def one(start, seen, world):
            def residuals(p):
                w, t = p[:3], p[3:]
                angle = jnp.sqrt(jnp.sum(w * w) + 1e-12)
                axis = w / angle
                turned = world * jnp.cos(angle) + jnp.cross(axis, world) * jnp.sin(angle) + jnp.outer(world @ axis, axis) * (1 - jnp.cos(angle))
                x = turned + t
                return jnp.ravel(x[:, :2] / x[:, 2:] - seen)

            def step(carry, _):
                p, damping, cost = carry
                r, j = residuals(p), jax.jacfwd(residuals)(p)
                normal = j.T @ j
                new = p - jnp.linalg.solve(normal + damping * jnp.diag(jnp.diag(normal)), j.T @ r)
                new_cost = jnp.sum(residuals(new) ** 2)
                better = new_cost < cost
                return (jnp.where(better, new, p), jnp.where(better, damping * 0.3, damping * 4.0), jnp.where(better, new_cost, cost)), None

            (p, _, cost), _ = jax.lax.scan(step, (start, jnp.float32(0.01), jnp.sum(residuals(start) ** 2)), None, length=iterations)
            return p, cost

        return jax.jit(jax.vmap(one, (0, 0, None)))


class RadarSmootherTuning(Model):
    """A Kalman filter and the smoother of Rauch, Tung and Striebel over a radar track; the noise levels get the gradient of likelihood and misfit."""

    kind = "small linear algebra"
    dtype = "float64"
    size = dict(scans=250)
    small = dict(scans=6)

    def make(self, random, scans):
        truth = np.cumsum(np.cumsum(0.02 * random.normal(size=(scans, 2)), axis=0), axis=0)
        seen = truth + 0.3 * random.normal(size=(scans, 2))
        return np.log(np.array([0.02, 0.05])), np.log(np.array([0.2, 0.3])), seen, truth

    def rscan(self, scans):
        dt = 0.5
        f = np.kron(np.array([[1, dt, dt * dt / 2], [0, 1, dt], [0, 0, 1]]), np.eye(2))
        g = np.kron(np.array([[dt**3 / 6], [dt * dt / 2], [dt]]), np.eye(2))
        h = np.eye(2, 6)

        @rs.compile
        def loss(log_q, log_r, seen, truth):
            q = (g * rs.exp(log_q)) @ g.T
            r = rs.diag(rs.exp(log_r))

            def forward(y, m, p):
                mp, pp = f @ m, f @ p @ f.T + q
                s, e = h @ pp @ h.T + r, y - h @ mp
                gain = rs.linalg.solve(s, h @ pp).T
                low = rs.linalg.cholesky(s)
                z = rs.linalg.solve_triangular(low, e, lower=True)
                nll = 0.5 * rs.sum(z * z) + rs.sum(rs.log(rs.diag(low)))
                return dict(m=mp + gain @ e, p=pp - gain @ s @ gain.T, mp=mp, pp=pp, nll=nll)

            out = rs.loop(forward, over=dict(y=seen), init=dict(m=rs.zeros(6), p=10.0 * rs.eye(6)))

            def backward(m, p, mp, pp, ms, ps):
                gain = rs.linalg.solve(pp, f @ p).T
                return dict(ms=m + gain @ (ms - mp), ps=p + gain @ (ps - pp) @ gain.T)

            over = dict(m=out.m[:-1], p=out.p[:-1], mp=out.mp[1:], pp=out.pp[1:])
            back = rs.loop(backward, over=over, init=dict(ms=out.m[-1], ps=out.p[-1]), reverse=True)
            misfit = rs.mean((back.ms[:, :2] - truth[:-1]) ** 2 / (0.01 + back.ps[:, [0, 1], [0, 1]]))
            return rs.mean(out.nll) + misfit

        return rs.value_and_grad(loss, argnums=(0, 1))

    def jax(self, scans):
        import jax, jax.numpy as jnp

        dt = 0.5
        f = jnp.kron(jnp.array([[1, dt, dt * dt / 2], [0, 1, dt], [0, 0, 1]]), jnp.eye(2))
        g = jnp.kron(jnp.array([[dt**3 / 6], [dt * dt / 2], [dt]]), jnp.eye(2))
        h = jnp.eye(2, 6)

        def loss(log_q, log_r, seen, truth):
            q = (g * jnp.exp(log_q)) @ g.T
            r = jnp.diag(jnp.exp(log_r))

            def forward(carry, y):
                m, p = carry
                mp, pp = f @ m, f @ p @ f.T + q
                s, e = h @ pp @ h.T + r, y - h @ mp
                gain = jnp.linalg.solve(s, h @ pp).T
                low = jnp.linalg.cholesky(s)
                z = jax.scipy.linalg.solve_triangular(low, e, lower=True)
                nll = 0.5 * jnp.sum(z * z) + jnp.sum(jnp.log(jnp.diag(low)))
                m, p = mp + gain @ e, pp - gain @ s @ gain.T
                return (m, p), (m, p, mp, pp, nll)

            _, (m, p, mp, pp, nll) = jax.lax.scan(forward, (jnp.zeros(6), 10.0 * jnp.eye(6)), seen)

            def backward(carry, rows):
                ms, ps = carry
                m, p, mp, pp = rows
                gain = jnp.linalg.solve(pp, f @ p).T
                ms, ps = m + gain @ (ms - mp), p + gain @ (ps - pp) @ gain.T
                return (ms, ps), (ms, ps)

            _, (ms, ps) = jax.lax.scan(backward, (m[-1], p[-1]), (m[:-1], p[:-1], mp[1:], pp[1:]), reverse=True)
            misfit = jnp.mean((ms[:, :2] - truth[:-1]) ** 2 / (0.01 + ps[:, jnp.array([0, 1]), jnp.array([0, 1])]))
            return jnp.mean(nll) + misfit

        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))


class PointerRoutesDecoder(Model):
    """A pointer network that is taught routes through cities: an LSTM that points by additive attention at cities not yet visited, all gradients."""

    kind = "networks"
    dtype = "float32"
    size = dict(batch=16, cities=12, hidden=48)
    small = dict(batch=2, cities=4, hidden=6)

    def make(self, random, batch, cities, hidden):
        def w(*shape):
            return (random.normal(size=shape) / np.sqrt(shape[0])).astype("f4")

        p = dict(
            embed=w(2, hidden), wx=w(hidden, 4 * hidden), wh=w(hidden, 4 * hidden), b=np.zeros(4 * hidden, "f4"),
            keys=w(hidden, hidden), query=w(hidden, hidden), v=w(hidden), start=w(hidden),
        )  # fmt: skip
        places = random.uniform(size=(batch, cities, 2)).astype("f4")
        routes = np.stack([random.permutation(cities) for _ in range(batch)], axis=1)
        return p, places, routes

    def rscan(self, batch, cities, hidden):
        @rs.compile
        def loss(p, places, routes):
            rows = rs.arange(batch)
            nodes = rs.tanh(places @ p["embed"])
            keys = nodes @ p["keys"]

            def step(target, x, h, c, visited):
                gates = x @ p["wx"] + h @ p["wh"] + p["b"]
                i, f, g, o = rs.split(gates, 4, axis=1)
                c = rs.sigmoid(f + 1.0) * c + rs.sigmoid(i) * rs.tanh(g)
                h = rs.sigmoid(o) * rs.tanh(c)
                scores = rs.tanh(keys + (h @ p["query"])[:, None, :]) @ p["v"]
                logp = rs.log_softmax(rs.where(visited, -1e9, scores), axis=-1)
                return dict(x=nodes[rows, target], h=h, c=c, visited=visited.at[rows, target].set(True), logp=logp[rows, target])

            zero = rs.zeros((batch, hidden), dtype="float32")
            init = dict(x=zero + p["start"], h=zero, c=zero, visited=rs.zeros((batch, cities), dtype=bool))
            return -rs.mean(rs.loop(step, over=dict(target=routes), init=init).logp)

        return rs.value_and_grad(loss)

    def jax(self, batch, cities, hidden):
        import jax, jax.numpy as jnp

        def loss(p, places, routes):
            rows = jnp.arange(batch)
            nodes = jnp.tanh(places @ p["embed"])
            keys = nodes @ p["keys"]

            def step(carry, target):
                x, h, c, visited = carry
                gates = x @ p["wx"] + h @ p["wh"] + p["b"]
                i, f, g, o = jnp.split(gates, 4, axis=1)
                c = jax.nn.sigmoid(f + 1.0) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
                h = jax.nn.sigmoid(o) * jnp.tanh(c)
                scores = jnp.tanh(keys + (h @ p["query"])[:, None, :]) @ p["v"]
                logp = jax.nn.log_softmax(jnp.where(visited, -1e9, scores), axis=-1)
                return (nodes[rows, target], h, c, visited.at[rows, target].set(True)), logp[rows, target]

            zero = jnp.zeros((batch, hidden), jnp.float32)
            _, logp = jax.lax.scan(step, (zero + p["start"], zero, zero, jnp.zeros((batch, cities), bool)), routes)
            return -jnp.mean(logp)

        return jax.jit(jax.value_and_grad(loss))


class SepsisDecayGru(Model):
    """GRU-D on bedside readings of which most are missing: inputs and states decay with the hours since the last one; training gradients."""

    kind = "networks"
    dtype = "float32"
    size = dict(hours=48, batch=24, readings=12, hidden=48)
    small = dict(hours=4, batch=2, readings=3, hidden=4)

    def make(self, random, hours, batch, readings, hidden):
        mask = (random.uniform(size=(hours, batch, readings)) < 0.3).astype("f4")
        x = (random.normal(size=mask.shape) * mask).astype("f4")
        since = np.ones_like(mask)
        for t in range(1, hours):
            since[t] = 1.0 + (1 - mask[t - 1]) * since[t - 1]

        def w(*shape):
            return (random.normal(size=shape) / np.sqrt(shape[0])).astype("f4")

        p = dict(
            decay_x=w(readings), bias_x=w(readings), decay_h=0.3 * w(readings, hidden), bias_h=0.1 * w(hidden),
            w=w(2 * readings, 3 * hidden), u=w(hidden, 2 * hidden), uc=w(hidden, hidden), b=0.1 * w(3 * hidden), out=w(hidden),
        )  # fmt: skip
        return p, x, mask, since, (random.uniform(size=batch) < 0.4).astype("f4")

    def rscan(self, hours, batch, readings, hidden):
        @rs.compile
        def loss(p, x, mask, since, label):
            def step(x, m, d, h, held):
                gx = rs.exp(-rs.relu(d * p["decay_x"] + p["bias_x"]))
                gh = rs.exp(-rs.relu(d @ p["decay_h"] + p["bias_h"]))
                filled = m * x + (1 - m) * gx * held
                h = gh * h
                pre = rs.concatenate([filled, m], axis=1) @ p["w"] + p["b"]
                gates = rs.sigmoid(pre[:, : 2 * hidden] + h @ p["u"])
                z, r = gates[:, :hidden], gates[:, hidden:]
                new = rs.tanh(pre[:, 2 * hidden :] + (r * h) @ p["uc"])
                return dict(h=(1 - z) * h + z * new, held=m * x + (1 - m) * held)

            init = dict(h=rs.zeros((batch, hidden), dtype="float32"), held=rs.zeros((batch, readings), dtype="float32"))
            h = rs.loop(step, over=dict(x=x, m=mask, d=since), init=init).last.h
            logit = h @ p["out"]
            return rs.mean(rs.softplus(logit) - label * logit)

        return rs.value_and_grad(loss)

    def jax(self, hours, batch, readings, hidden):
        import jax, jax.numpy as jnp

        def loss(p, x, mask, since, label):
            def step(carry, rows):
                h, last = carry
                x, m, d = rows
                gx = jnp.exp(-jax.nn.relu(d * p["decay_x"] + p["bias_x"]))
                gh = jnp.exp(-jax.nn.relu(d @ p["decay_h"] + p["bias_h"]))
                filled = m * x + (1 - m) * gx * last
                h = gh * h
                pre = jnp.concatenate([filled, m], axis=1) @ p["w"] + p["b"]
                gates = jax.nn.sigmoid(pre[:, : 2 * hidden] + h @ p["u"])
                z, r = gates[:, :hidden], gates[:, hidden:]
                new = jnp.tanh(pre[:, 2 * hidden :] + (r * h) @ p["uc"])
                return ((1 - z) * h + z * new, m * x + (1 - m) * last), None

            init = jnp.zeros((batch, hidden), jnp.float32), jnp.zeros((batch, readings), jnp.float32)
            (h, _), _ = jax.lax.scan(step, init, (x, mask, since))
            logit = h @ p["out"]
            return jnp.mean(jax.nn.softplus(logit) - label * logit)

        return jax.jit(jax.value_and_grad(loss))


class FretPhotonBursts(Model):
    """Molecules that change between two shapes while they diffuse through a laser's focus, and the photons counted in two colours: draws in each bin."""

    kind = "draws"
    dtype = "float64"
    size = dict(bins=200, molecules=128)
    small = dict(bins=10, molecules=128)

    def make(self, random, bins, molecules):
        return 5, 0.5 * random.normal(size=molecules)

    def rscan(self, bins, molecules):
        @rs.compile
        def bursts(seed, place):
            key = rs.random.key(seed)

            def step(t, x, shape):
                move, change, first, second = rs.random.split(rs.random.fold_in(key, t), 4)
                x = 0.95 * x + 0.3 * rs.random.normal(move, molecules)
                flip = rs.random.uniform(change, molecules) < rs.where(shape == 1, 0.08, 0.04)
                shape = rs.where(flip, 1 - shape, shape)
                rate = 6.0 * rs.exp(-2.0 * x * x) + 0.2
                share = rs.where(shape == 1, 0.8, 0.3)
                return dict(x=x, shape=shape, red=rs.random.poisson(first, rate * share), green=rs.random.poisson(second, rate * (1 - share)))

            out = rs.loop(step, over=dict(t=rs.arange(bins)), init=dict(x=place, shape=rs.zeros(molecules, dtype="int64")))
            red, green = rs.sum(out.red, axis=0), rs.sum(out.green, axis=0)
            return red / (red + green + 1.0), red + green, rs.mean(out.shape, axis=0)

        return bursts

    def jax(self, bins, molecules):
        import jax, jax.numpy as jnp

        def bursts(seed, place):
            key = jax.random.key(seed)

            def step(carry, t):
                x, shape = carry
                move, change, first, second = jax.random.split(jax.random.fold_in(key, t), 4)
                x = 0.95 * x + 0.3 * jax.random.normal(move, (molecules,))
                flip = jax.random.uniform(change, (molecules,)) < jnp.where(shape == 1, 0.08, 0.04)
                shape = jnp.where(flip, 1 - shape, shape)
                rate = 6.0 * jnp.exp(-2.0 * x * x) + 0.2
                share = jnp.where(shape == 1, 0.8, 0.3)
                return (x, shape), (jax.random.poisson(first, rate * share), jax.random.poisson(second, rate * (1 - share)), shape)

            _, (red, green, shapes) = jax.lax.scan(step, (place, jnp.zeros(molecules, jnp.int64)), jnp.arange(bins))
            red, green = jnp.sum(red, axis=0), jnp.sum(green, axis=0)
            return red / (red + green + 1.0), red + green, jnp.mean(shapes, axis=0)

        return jax.jit(bursts)

    def same(self, ours, theirs):
        assert len(ours) == len(theirs) == 3
        for a, b in zip(ours, theirs):
            assert a.shape == b.shape, (a.shape, b.shape)
            error = np.sqrt(a.var() / a.size + b.var() / b.size)
            assert abs(a.mean() - b.mean()) < 4.5 * error, (a.mean(), b.mean(), error)
            assert 0.6 < a.std() / b.std() < 1.7, (a.std(), b.std())


class CoxSliceOnEllipse(Model):
    """Elliptical slice sampling of a log-Gaussian Cox process on a line: brackets shrink in a loop within each sweep, draws are arguments."""

    kind = "particle filters and MCMC"
    dtype = "float64"
    size = dict(sweeps=300, cells=30)
    small = dict(sweeps=4, cells=5)

    def make(self, random, sweeps, cells):
        x = np.arange(cells) / 4.0
        low = np.linalg.cholesky(np.exp(-0.5 * (x[:, None] - x) ** 2) + 1e-6 * np.eye(cells))
        counts = random.poisson(4.0 * np.exp(low @ random.normal(size=cells))).astype("f8")
        normals = random.normal(size=(sweeps, cells))
        return np.zeros(cells), low, counts, normals, random.exponential(size=sweeps), random.uniform(size=(sweeps, 25))

    def rscan(self, sweeps, cells):
        @rs.compile
        def sample(f, low, counts, normals, exponentials, turns):
            def loglik(f):
                return rs.sum(counts * (f + math.log(4.0)) - 4.0 * rs.exp(f))

            def sweep(z, e, u, f, total):
                nu = low @ z
                level = loglik(f) - e
                theta = 2 * math.pi * u[0]

                def body(state):
                    k, theta, lower, upper = state
                    lower = rs.where(theta < 0, theta, lower)
                    upper = rs.where(theta < 0, upper, theta)
                    return k + 1, lower + (upper - lower) * u[k], lower, upper

                def unmet(state):
                    k, theta, _, _ = state
                    return (loglik(f * rs.cos(theta) + nu * rs.sin(theta)) < level) & (k < 25)

                k, theta, _, _ = rs.while_loop(unmet, body, (1, theta, theta - 2 * math.pi, theta))
                return dict(f=f * rs.cos(theta) + nu * rs.sin(theta), total=total + k)

            out = rs.loop(sweep, over=dict(z=normals, e=exponentials, u=turns), init=dict(f=f, total=0))
            return rs.mean(out.f, axis=0), rs.var(out.f, axis=0), out.last.f, out.last.total

        return sample

    def jax(self, sweeps, cells):
        import jax, jax.numpy as jnp

        def sample(f, low, counts, normals, exponentials, turns):
            def loglik(f):
                return jnp.sum(counts * (f + math.log(4.0)) - 4.0 * jnp.exp(f))

            def sweep(carry, rows):
                f, total = carry
                z, e, u = rows
                nu = low @ z
                level = loglik(f) - e
                theta = 2 * math.pi * u[0]

                def body(state):
                    k, theta, lower, upper = state
                    lower = jnp.where(theta < 0, theta, lower)
                    upper = jnp.where(theta < 0, upper, theta)
                    return k + 1, lower + (upper - lower) * u[k], lower, upper

                def unmet(state):
                    k, theta, _, _ = state
                    return (loglik(f * jnp.cos(theta) + nu * jnp.sin(theta)) < level) & (k < 25)

                k, theta, _, _ = jax.lax.while_loop(unmet, body, (1, theta, theta - 2 * math.pi, theta))
                f = f * jnp.cos(theta) + nu * jnp.sin(theta)
                return (f, total + k), f

            (f, total), fs = jax.lax.scan(sweep, (f, 0), (normals, exponentials, turns))
            return jnp.mean(fs, axis=0), jnp.var(fs, axis=0), f, total

        return jax.jit(sample)


class ApplianceDisaggregation(Model):
    """Which of five appliances run, from the power of the whole house: Viterbi over the joint states of a factorial chain, and its path."""

    kind = "hidden states"
    dtype = "float64"
    size = dict(minutes=600, appliances=5)
    small = dict(minutes=8, appliances=2)

    def make(self, random, minutes, appliances):
        watts = np.array([80.0, 150.0, 400.0, 900.0, 2000.0])[:appliances]
        on, off = random.uniform(0.01, 0.05, size=appliances), random.uniform(0.03, 0.1, size=appliances)
        state, rows = np.zeros(appliances, bool), []
        for _ in range(minutes):
            state = np.where(random.uniform(size=appliances) < np.where(state, off, on), ~state, state)
            rows.append(state @ watts)
        return np.array(rows) + 40.0 * random.normal(size=minutes), watts, on, off

    def rscan(self, minutes, appliances):
        states = 2**appliances
        bits = (np.arange(states)[:, None] >> np.arange(appliances)) & 1

        @rs.compile
        def decode(power, watts, on, off):
            before, after = bits[:, None, :], bits[None, :, :]
            change = rs.where(before == 1, off, on)
            move = rs.sum(rs.where(before != after, rs.log(change), rs.log(1 - change)), axis=-1)
            level = rs.array(bits) @ watts

            def emission(y):
                return -0.5 * ((y - level) / 40.0) ** 2

            def forward(y, score):
                through = score[:, None] + move
                return dict(score=rs.max(through, axis=0) + emission(y), back=rs.argmax(through, axis=0))

            start = emission(power[0]) - 3.0 * rs.sum(rs.array(bits), axis=1)
            out = rs.loop(forward, over=dict(y=power[1:]), init=dict(score=start))
            end = rs.argmax(out.last.score)
            earlier = rs.loop(lambda back, s: back[s], over=out.back, init=end, reverse=True)
            path = rs.concatenate([earlier, rs.stack([end])])
            return rs.array(bits)[path], rs.max(out.last.score)

        return decode

    def jax(self, minutes, appliances):
        import jax, jax.numpy as jnp

        states = 2**appliances
        bits = (np.arange(states)[:, None] >> np.arange(appliances)) & 1

        def decode(power, watts, on, off):
            before, after = bits[:, None, :], bits[None, :, :]
            change = jnp.where(before == 1, off, on)
            move = jnp.sum(jnp.where(before != after, jnp.log(change), jnp.log(1 - change)), axis=-1)
            level = jnp.asarray(bits) @ watts

            def emission(y):
                return -0.5 * ((y - level) / 40.0) ** 2

            def forward(score, y):
                through = score[:, None] + move
                return jnp.max(through, axis=0) + emission(y), jnp.argmax(through, axis=0)

            start = emission(power[0]) - 3.0 * jnp.sum(jnp.asarray(bits), axis=1)
            score, back = jax.lax.scan(forward, start, power[1:])
            end = jnp.argmax(score)

            def trace(s, back):
                s = back[s]
                return s, s

            _, earlier = jax.lax.scan(trace, end, back, reverse=True)
            return jnp.asarray(bits)[jnp.concatenate([earlier, end[None]])], jnp.max(score)

        return jax.jit(decode)


class MinorityBarStrategies(Model):
    """The minority game: agents with two strategies each on a public memory, virtual points for both, and the attendance of a thousand rounds."""

    kind = "agents and games"
    dtype = "int64"
    size = dict(rounds=1000, agents=101, memory=5)
    small = dict(rounds=12, agents=7, memory=2)

    def make(self, random, rounds, agents, memory):
        return random.choice(np.array([-1, 1]), size=(agents, 2, 2**memory)), int(random.integers(2**memory))

    def rscan(self, rounds, agents, memory):
        @rs.compile
        def play(strategies, history):
            everyone = rs.arange(agents)

            def step(points, wealth, history):
                chosen = rs.argmax(points, axis=1)
                votes = strategies[:, :, history]
                acts = votes[everyone, chosen]
                attendance = rs.sum(acts)
                winner = -rs.sign(attendance)
                return dict(
                    points=points + votes * winner,
                    wealth=wealth + acts * winner,
                    history=(2 * history + rs.where(winner > 0, 1, 0)) % 2**memory,
                    attendance=attendance,
                )

            init = dict(points=rs.zeros((agents, 2), dtype="int64"), wealth=rs.zeros(agents, dtype="int64"), history=history)
            out = rs.loop(step, init=init, n_steps=rounds)
            return out.attendance, out.last.wealth, out.last.points, out.last.history

        return play

    def jax(self, rounds, agents, memory):
        import jax, jax.numpy as jnp

        def play(strategies, history):
            everyone = jnp.arange(agents)

            def step(carry, _):
                points, wealth, history = carry
                chosen = jnp.argmax(points, axis=1)
                votes = strategies[:, :, history]
                acts = votes[everyone, chosen]
                attendance = jnp.sum(acts)
                winner = -jnp.sign(attendance)
                history = (2 * history + jnp.where(winner > 0, 1, 0)) % 2**memory
                return (points + votes * winner, wealth + acts * winner, history), attendance

            init = jnp.zeros((agents, 2), jnp.int64), jnp.zeros(agents, jnp.int64), history
            (points, wealth, history), attendance = jax.lax.scan(step, init, None, length=rounds)
            return attendance, wealth, points, history

        return jax.jit(play)


class JobShopActiveSchedules(Model):
    """Active schedules of a job shop by Giffler and Thompson's procedure, one for each of many tables of priorities, as a genetic search needs them."""

    kind = "agents and games"
    dtype = "int64"
    size = dict(jobs=10, machines=8, tables=24)
    small = dict(jobs=3, machines=2, tables=2)

    def make(self, random, jobs, machines, tables):
        route = np.stack([random.permutation(machines) for _ in range(jobs)])
        work = random.integers(5, 60, size=(jobs, machines))
        priority = np.stack([random.permutation(jobs * machines).reshape(jobs, machines) for _ in range(tables)])
        return priority, route, work

    def rscan(self, jobs, machines, tables):
        big = 10**9

        def schedule(priority, route, work):
            everyone = rs.arange(jobs)

            def step(done, free, idle, starts):
                k = rs.minimum(done, machines - 1)
                machine = route[everyone, k]
                earliest = rs.maximum(free, idle[machine])
                finish = rs.where(done < machines, earliest + work[everyone, k], big)
                first = rs.argmin(finish)
                rivals = (machine == machine[first]) & (earliest < finish[first]) & (done < machines)
                job = rs.argmin(rs.where(rivals, priority[everyone, k], big))
                begin, op = earliest[job], k[job]
                end = begin + work[job, op]
                return dict(
                    done=done.at[job].add(1),
                    free=free.at[job].set(end),
                    idle=idle.at[machine[job]].set(end),
                    starts=starts.at[job, op].set(begin),
                )

            def zeros(*shape):
                return rs.zeros(shape, dtype="int64")

            init = dict(done=zeros(jobs), free=zeros(jobs), idle=zeros(machines), starts=zeros(jobs, machines))
            out = rs.loop(step, init=init, n_steps=jobs * machines).last
            return out.starts, rs.max(out.free)

        return rs.compile(rs.vmap(schedule, (0, None, None)))

    def jax(self, jobs, machines, tables):
        import jax, jax.numpy as jnp

        big = 10**9

        def schedule(priority, route, work):
            everyone = jnp.arange(jobs)

            def step(carry, _):
                done, free, idle, starts = carry
                k = jnp.minimum(done, machines - 1)
                machine = route[everyone, k]
                earliest = jnp.maximum(free, idle[machine])
                finish = jnp.where(done < machines, earliest + work[everyone, k], big)
                first = jnp.argmin(finish)
                rivals = (machine == machine[first]) & (earliest < finish[first]) & (done < machines)
                job = jnp.argmin(jnp.where(rivals, priority[everyone, k], big))
                begin, op = earliest[job], k[job]
                end = begin + work[job, op]
                carry = done.at[job].add(1), free.at[job].set(end), idle.at[machine[job]].set(end), starts.at[job, op].set(begin)
                return carry, None

            def zeros(*shape):
                return jnp.zeros(shape, jnp.int64)

            init = zeros(jobs), zeros(jobs), zeros(machines), zeros(jobs, machines)
            (_, free, _, starts), _ = jax.lax.scan(step, init, None, length=jobs * machines)
            return starts, jnp.max(free)

        return jax.jit(jax.vmap(schedule, (0, None, None)))
