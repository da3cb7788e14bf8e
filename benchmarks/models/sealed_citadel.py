"""Eighteen programs from nine fields of practice: stiff chemistry, physiology, tuning, seasons, filters, networks, draws, hidden states, games."""

import math

import numpy as np
import rscan as rs
from models import Model


class OregonatorRosenbrock(Model):
    """The stiff Oregonator by a Rosenbrock pair (ode23s) that chooses its steps, with the Jacobian by differentiation."""

    kind = "ODEs"
    dtype = "float64"
    size = dict(end=40)
    small = dict(end=1)
    rtol = 1e-6

    def make(self, random, end):
        return np.array([1.0, 2.0, 3.0]), np.array([77.27, 8.375e-6, 0.161]), float(end), 1e-4

    def rscan(self, end):
        d, e32 = 1 / (2 + math.sqrt(2)), 6 + math.sqrt(2)

        @rs.compile
        def solve(y0, p, end, rtol):
            def f(y):
                return rs.stack([p[0] * (y[1] + y[0] * (1 - p[1] * y[0] - y[1])), (y[2] - (1 + y[0]) * y[1]) / p[0], p[2] * (y[0] - y[2])])

            def step(t, h, y, taken, tried):
                h = rs.minimum(h, end - t)
                J = rs.jacobian(f)(y)
                W = rs.eye(3) - h * d * J
                f0 = f(y)
                k1 = rs.linalg.solve(W, f0)
                f1 = f(y + 0.5 * h * k1)
                k2 = rs.linalg.solve(W, f1 - k1) + k1
                new = y + h * k2
                f2 = f(new)
                k3 = rs.linalg.solve(W, f2 - e32 * (k2 - f1) - 2 * (k1 - f0))
                scale = 1e-6 + rtol * rs.maximum(rs.abs(y), rs.abs(new))
                error = rs.max(rs.abs(h / 6 * (k1 - 2 * k2 + k3)) / scale)
                good = error <= 1.0
                t = rs.where(good, t + h, t)
                state = dict(
                    t=t,
                    h=h * rs.clip(0.8 * (error + 1e-10) ** (-1 / 3), 0.2, 5.0),
                    y=rs.where(good, new, y),
                    taken=taken + rs.cast(good, "int64"),
                    tried=tried + 1,
                )
                return state, rs.until(t >= end * (1 - 1e-12))

            out = rs.loop(step, init=dict(t=0.0, h=1.0, y=y0, taken=0, tried=0), n_steps=100_000)
            return out.last.y, out.last.taken, out.last.tried

        return solve

    def jax(self, end):
        import jax
        import jax.numpy as jnp

        d, e32 = 1 / (2 + math.sqrt(2)), 6 + math.sqrt(2)

        @jax.jit
        def solve(y0, p, end, rtol):
            def f(y):
                return jnp.stack([p[0] * (y[1] + y[0] * (1 - p[1] * y[0] - y[1])), (y[2] - (1 + y[0]) * y[1]) / p[0], p[2] * (y[0] - y[2])])

            def step(state):
                t, h, y, taken, tried = state
                h = jnp.minimum(h, end - t)
                W = jnp.eye(3) - h * d * jax.jacfwd(f)(y)
                lu = jax.scipy.linalg.lu_factor(W)
                f0 = f(y)
                k1 = jax.scipy.linalg.lu_solve(lu, f0)
                f1 = f(y + 0.5 * h * k1)
                k2 = jax.scipy.linalg.lu_solve(lu, f1 - k1) + k1
                new = y + h * k2
                f2 = f(new)
                k3 = jax.scipy.linalg.lu_solve(lu, f2 - e32 * (k2 - f1) - 2 * (k1 - f0))
                scale = 1e-6 + rtol * jnp.maximum(jnp.abs(y), jnp.abs(new))
                error = jnp.max(jnp.abs(h / 6 * (k1 - 2 * k2 + k3)) / scale)
                good = error <= 1.0
                h_new = h * jnp.clip(0.8 * (error + 1e-10) ** (-1 / 3), 0.2, 5.0)
                return jnp.where(good, t + h, t), h_new, jnp.where(good, new, y), taken + good, tried + 1

            init = (jnp.zeros(()), jnp.full((), 1.0), y0, jnp.zeros((), "int64"), jnp.zeros((), "int64"))
            _, _, y, taken, tried = jax.lax.while_loop(lambda s: (s[0] < end * (1 - 1e-12)) & (s[4] < 100_000), step, init)
            return y, taken, tried

        return solve


class GlucoseHybridNet(Model):
    """Bergman's minimal model of glucose with a network for what it misses, by RK4, fitted to a ward of patients: the gradient of the weights."""

    kind = "ODEs"
    dtype = "float32"
    size = dict(steps=90, patients=16, hidden=24)
    small = dict(steps=5, patients=3, hidden=4)
    rtol = 1e-3

    def make(self, random, steps, patients, hidden):
        f = lambda *shape: random.normal(size=shape).astype("f4")
        p = dict(
            rates=np.log(np.array([0.03, 0.02, 0.05, 0.1, 0.05], "f4")),
            w1=0.5 * f(3, hidden),
            b1=0.1 * f(hidden),
            w2=0.05 * f(hidden, 1),
        )
        meals = np.maximum(f(steps, patients) - 1.0, 0) * np.float32(0.3)
        start = np.stack([1.2 + 0.1 * f(patients), 0.05 * f(patients), 0.6 + 0.1 * f(patients)], axis=1)
        return p, start, meals, 1.0 + 0.2 * f(steps, patients)

    def rscan(self, steps, patients, hidden):
        def loss(p, start, meals, observed):
            k = rs.exp(p["rates"])

            def slope(y, meal):
                G, X, I = y[:, 0], y[:, 1], y[:, 2]
                missing = (rs.tanh(y @ p["w1"] + p["b1"]) @ p["w2"])[:, 0]
                dG = -(k[0] + X) * G + k[0] * 0.9 + meal + missing
                dX = -k[1] * X + k[2] * (I - 0.5)
                dI = -k[3] * (I - 0.5) + k[4] * rs.maximum(G - 0.8, 0.0)
                return rs.stack([dG, dX, dI], axis=1)

            def step(meal, y):
                h = 0.5
                k1 = slope(y, meal)
                k2 = slope(y + 0.5 * h * k1, meal)
                k3 = slope(y + 0.5 * h * k2, meal)
                k4 = slope(y + h * k3, meal)
                return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

            rows = rs.loop(step, over=meals, init=start)
            return rs.mean((rows[:, :, 0] - observed) ** 2)

        return rs.compile(rs.value_and_grad(loss))

    def jax(self, steps, patients, hidden):
        import jax
        import jax.numpy as jnp

        def loss(p, start, meals, observed):
            k = jnp.exp(p["rates"])

            def slope(y, meal):
                G, X, I = y[:, 0], y[:, 1], y[:, 2]
                missing = (jnp.tanh(y @ p["w1"] + p["b1"]) @ p["w2"])[:, 0]
                dG = -(k[0] + X) * G + k[0] * 0.9 + meal + missing
                dX = -k[1] * X + k[2] * (I - 0.5)
                dI = -k[3] * (I - 0.5) + k[4] * jnp.maximum(G - 0.8, 0.0)
                return jnp.stack([dG, dX, dI], axis=1)

            def step(y, meal):
                h = 0.5
                k1 = slope(y, meal)
                k2 = slope(y + 0.5 * h * k1, meal)
                k3 = slope(y + 0.5 * h * k2, meal)
                k4 = slope(y + h * k3, meal)
                y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
                return y, y[:, 0]

            return jnp.mean((jax.lax.scan(step, start, meals)[1] - observed) ** 2)

        return jax.jit(jax.value_and_grad(loss))


class FistaElasticTuning(Model):
    """The elastic net by accelerated proximal steps, and the gradient of its error on other data by both penalties, through all steps."""

    kind = "optimisers"
    dtype = "float64"
    size = dict(steps=120, rows=60, columns=40)
    small = dict(steps=6, rows=8, columns=4)

    def make(self, random, steps, rows, columns):
        w = random.normal(size=columns) * (random.uniform(size=columns) < 0.3)
        X, Z = random.normal(size=(rows, columns)), random.normal(size=(rows, columns))
        y, z = X @ w + 0.5 * random.normal(size=rows), Z @ w + 0.5 * random.normal(size=rows)
        return np.array([-2.0, -3.0]), X, y, Z, z, float(np.linalg.norm(X, 2) ** 2 / rows) + 0.5

    def rscan(self, steps, rows, columns):
        @rs.compile
        def error(penalties, X, y, Z, z, lipschitz):
            l1, l2 = rs.exp(penalties[0]), rs.exp(penalties[1])
            n = X.shape[0]

            def step(w, v, t):
                slope = X.T @ (X @ v - y) / n + l2 * v
                u = v - slope / lipschitz
                new = rs.sign(u) * rs.maximum(rs.abs(u) - l1 / lipschitz, 0.0)
                t_new = (1 + rs.sqrt(1 + 4 * t * t)) / 2
                return dict(w=new, v=new + (t - 1) / t_new * (new - w), t=t_new)

            zero = rs.zeros(X.shape[1])
            w = rs.loop(step, init=dict(w=zero, v=zero, t=1.0), n_steps=steps).last.w
            return rs.mean((Z @ w - z) ** 2)

        return rs.value_and_grad(error)

    def jax(self, steps, rows, columns):
        import jax
        import jax.numpy as jnp

        def error(penalties, X, y, Z, z, lipschitz):
            l1, l2 = jnp.exp(penalties)
            n = X.shape[0]

            def step(state, _):
                w, v, t = state
                slope = X.T @ (X @ v - y) / n + l2 * v
                u = v - slope / lipschitz
                new = jnp.sign(u) * jnp.maximum(jnp.abs(u) - l1 / lipschitz, 0.0)
                t_new = (1 + jnp.sqrt(1 + 4 * t * t)) / 2
                return (new, new + (t - 1) / t_new * (new - w), t_new), None

            zero = jnp.zeros(X.shape[1])
            w = jax.lax.scan(step, (zero, zero, jnp.ones(())), None, length=steps)[0][0]
            return jnp.mean((Z @ w - z) ** 2)

        return jax.jit(jax.value_and_grad(error))


class DoglegDoseCurves(Model):
    """Logistic curves of four parameters fitted to many assays, each by Gauss-Newton in a trust region (Powell's dogleg) until it has converged."""

    kind = "optimisers"
    dtype = "float64"
    size = dict(curves=48, doses=12)
    small = dict(curves=3, doses=8)
    rtol = 1e-5

    def make(self, random, curves, doses):
        x = np.linspace(-4, 4, doses)
        p = np.array([0.2, 2.0, 0.3, 1.2]) + np.array([0.1, 0.3, 1.0, 0.3]) * random.normal(size=(curves, 4))
        y = p[:, :1] + (p[:, 1:2] - p[:, :1]) / (1 + np.exp(-p[:, 3:] * (x - p[:, 2:3])))
        return x, y + 0.03 * random.normal(size=y.shape), np.array([0.0, 1.5, 0.0, 1.0])

    def rscan(self, curves, doses):
        def fit(x, y, start):
            def misfit(p):
                return p[0] + (p[1] - p[0]) * rs.sigmoid(p[3] * (x - p[2])) - y

            def step(p, radius):
                r, J = misfit(p), rs.jacobian(misfit)(p)
                g, B = J.T @ r, J.T @ J + 1e-9 * rs.eye(4)
                newton = -rs.linalg.solve(B, g)
                cauchy = -(g @ g) / (g @ (B @ g)) * g
                n_newton, n_cauchy = rs.sqrt(newton @ newton), rs.sqrt(cauchy @ cauchy)
                across = newton - cauchy
                a, b, c = across @ across, 2 * (cauchy @ across), cauchy @ cauchy - radius**2
                tau = (-b + rs.sqrt(rs.maximum(b * b - 4 * a * c, 0.0))) / (2 * a + 1e-300)
                move = rs.where(
                    n_newton <= radius,
                    newton,
                    rs.where(n_cauchy >= radius, radius / n_cauchy * cauchy, cauchy + tau * across),
                )
                r_new = misfit(p + move)
                predicted = -(g @ move) - 0.5 * (move @ (B @ move))
                ratio = 0.5 * (r @ r - r_new @ r_new) / predicted
                size = rs.sqrt(move @ move)
                radius = rs.where(ratio < 0.25, 0.25 * size, rs.where((ratio > 0.75) & (size > 0.99 * radius), 2 * radius, radius))
                return dict(p=rs.where(ratio > 1e-4, p + move, p), radius=radius), rs.until(rs.max(rs.abs(g)) < 1e-6)

            last = rs.loop(step, init=dict(p=start, radius=1.0), n_steps=60).last
            r = misfit(last.p)
            return last.p, 0.5 * (r @ r)

        return rs.compile(rs.vmap(fit, (None, 0, None)))

    def jax(self, curves, doses):
        import jax
        import jax.numpy as jnp

        def fit(x, y, start):
            def misfit(p):
                return p[0] + (p[1] - p[0]) * jax.nn.sigmoid(p[3] * (x - p[2])) - y

            def step(state):
                p, radius, n, _ = state
                r, J = misfit(p), jax.jacfwd(misfit)(p)
                g, B = J.T @ r, J.T @ J + 1e-9 * jnp.eye(4)
                newton = -jnp.linalg.solve(B, g)
                cauchy = -(g @ g) / (g @ (B @ g)) * g
                n_newton, n_cauchy = jnp.sqrt(newton @ newton), jnp.sqrt(cauchy @ cauchy)
                across = newton - cauchy
                a, b, c = across @ across, 2 * (cauchy @ across), cauchy @ cauchy - radius**2
                tau = (-b + jnp.sqrt(jnp.maximum(b * b - 4 * a * c, 0.0))) / (2 * a + 1e-300)
                move = jnp.where(
                    n_newton <= radius,
                    newton,
                    jnp.where(n_cauchy >= radius, radius / n_cauchy * cauchy, cauchy + tau * across),
                )
                r_new = misfit(p + move)
                predicted = -(g @ move) - 0.5 * (move @ (B @ move))
                ratio = 0.5 * (r @ r - r_new @ r_new) / predicted
                size = jnp.sqrt(move @ move)
                radius = jnp.where(ratio < 0.25, 0.25 * size, jnp.where((ratio > 0.75) & (size > 0.99 * radius), 2 * radius, radius))
                return jnp.where(ratio > 1e-4, p + move, p), radius, n + 1, jnp.max(jnp.abs(g)) < 1e-6

            p = jax.lax.while_loop(lambda s: ~s[3] & (s[2] < 60), step, (start, jnp.ones(()), 0, False))[0]
            r = misfit(p)
            return p, 0.5 * (r @ r)

        return jax.jit(jax.vmap(fit, (None, 0, None)))


class HeavyTailedSeasonScores(Model):
    """Hourly demand with level, day and week driven by scores of Student's t, which outliers hardly move: the likelihood of a panel, and its gradient."""

    kind = "seasonal taps"
    dtype = "float64"
    size = dict(steps=1000, series=4)
    small = dict(steps=8, series=2)

    def make(self, random, steps, series):
        t = np.arange(steps)[:, None]
        y = 5 + np.sin(t * 2 * np.pi / 24) + 0.5 * np.sin(t * 2 * np.pi / 168) + 0.2 * random.standard_t(4, size=(steps, series))
        p = dict(gains=np.array([-2.0, -3.0, -3.5]), log_scale=np.log(np.full(series, 0.25)), log_df=1.5)
        return p, y, np.full(series, 5.0), 0.2 * random.normal(size=(24, series)), 0.1 * random.normal(size=(168, series))

    def rscan(self, steps, series):
        def nll(p, y, level0, day0, week0):
            gain, scale, df = rs.sigmoid(p["gains"]), rs.exp(p["log_scale"]), 2 + rs.exp(p["log_df"])

            def step(y, level, day, week):
                error = y - level - day - week
                score = (df + 1) * error / (df + (error / scale) ** 2)
                density = rs.stats.t.logpdf(error, df, 0.0, scale)
                return dict(level=level + gain[0] * score, day=day + gain[1] * score, week=week + gain[2] * score, density=rs.sum(density))

            init = dict(level=level0, day=rs.taps(day0, -24), week=rs.taps(week0, -168))
            return -rs.sum(rs.loop(step, over=dict(y=y), init=init).density)

        return rs.compile(rs.value_and_grad(nll))

    def jax(self, steps, series):
        import jax
        import jax.numpy as jnp

        def nll(p, y, level0, day0, week0):
            gain, scale, df = jax.nn.sigmoid(p["gains"]), jnp.exp(p["log_scale"]), 2 + jnp.exp(p["log_df"])

            def step(carry, now):
                level, day, week = carry
                t, y = now
                i, j = t % 24, t % 168
                error = y - level - day[i] - week[j]
                score = (df + 1) * error / (df + (error / scale) ** 2)
                density = jax.scipy.stats.t.logpdf(error, df, 0.0, scale)
                carry = level + gain[0] * score, day.at[i].add(gain[1] * score), week.at[j].add(gain[2] * score)
                return carry, jnp.sum(density)

            return -jnp.sum(jax.lax.scan(step, (level0, day0, week0), (jnp.arange(y.shape[0]), y))[1])

        return jax.jit(jax.value_and_grad(nll))


class RanluxSubtractBorrow(Model):
    """Lüscher's generator: subtraction with borrow over lags of 10 and 24, of which 24 numbers in 223 are kept, and how they are distributed."""

    kind = "seasonal taps"
    dtype = "int64"
    size = dict(blocks=60)
    small = dict(blocks=2)

    def make(self, random, blocks):
        return (random.integers(0, 2**24, 24),)

    def rscan(self, blocks):
        @rs.compile
        def draw(seeds):
            def step(x, carry):
                far, near = x
                delta = near - far - carry
                borrow = rs.cast(delta < 0, "int64")
                return dict(x=delta + borrow * 2**24, carry=borrow)

            rows = rs.loop(step, init=dict(x=rs.taps(seeds, -24, -10), carry=0), n_steps=223 * blocks).x
            kept = rows.reshape((blocks, 223))[:, :24]
            return kept, rs.bincount(kept.ravel() // 2**20, length=16)

        return draw

    def jax(self, blocks):
        import jax
        import jax.numpy as jnp

        @jax.jit
        def draw(seeds):
            def step(state, t):
                ring, carry = state
                i = t % 24
                delta = ring[(t + 14) % 24] - ring[i] - carry
                borrow = (delta < 0).astype("int64")
                x = delta + borrow * 2**24
                return (ring.at[i].set(x), borrow), x

            rows = jax.lax.scan(step, (seeds, jnp.zeros((), "int64")), jnp.arange(223 * blocks))[1]
            kept = rows.reshape(blocks, 223)[:, :24]
            return kept, jnp.bincount(kept.ravel() // 2**20, length=16)

        return draw


class NelsonSiegelFilter(Model):
    """A yield curve of level, slope and curvature that are autoregressions, by the Kalman filter over eight maturities: likelihood and gradient."""

    kind = "small linear algebra"
    dtype = "float64"
    size = dict(steps=150)
    small = dict(steps=4)

    def make(self, random, steps):
        p = dict(mean=np.array([4.0, -1.0, 0.5]), phi=np.array([3.0, 2.5, 2.0]), log_q=np.log([0.1, 0.2, 0.3]), log_r=np.log(0.1), log_decay=np.log(0.6))
        maturities = np.array([0.25, 0.5, 1, 2, 3, 5, 7, 10])
        curve = 4 - 1.0 * np.exp(-maturities / 2)
        return p, curve + np.cumsum(0.05 * random.normal(size=(steps, 1)), axis=0) + 0.1 * random.normal(size=(steps, 8)), maturities

    def rscan(self, steps):
        def nll(p, yields, maturities):
            x = rs.exp(p["log_decay"]) * maturities
            slope = (1 - rs.exp(-x)) / x
            H = rs.stack([rs.ones_like(x), slope, slope - rs.exp(-x)], axis=1)
            phi = rs.tanh(p["phi"] / 2)
            Q, R = rs.diag(rs.exp(2 * p["log_q"])), rs.exp(2 * p["log_r"]) * rs.eye(8)

            def step(y, m, P):
                m = p["mean"] + phi * (m - p["mean"])
                P = phi[:, None] * P * phi[None, :] + Q
                v = y - H @ m
                L = rs.linalg.cholesky(H @ P @ H.T + R)
                K = rs.linalg.cho_solve((L, True), H @ P).T
                white = rs.linalg.solve_triangular(L, v, lower=True)
                ll = -0.5 * rs.sum(white**2) - rs.sum(rs.log(rs.diag(L))) - 4 * math.log(2 * math.pi)
                return dict(m=m + K @ v, P=P - K @ H @ P, ll=ll)

            out = rs.loop(step, over=dict(y=yields), init=dict(m=p["mean"], P=rs.eye(3)))
            return -rs.sum(out.ll)

        return rs.compile(rs.value_and_grad(nll))

    def jax(self, steps):
        import jax
        import jax.numpy as jnp
        from jax.scipy.linalg import cho_solve, solve_triangular

        def nll(p, yields, maturities):
            x = jnp.exp(p["log_decay"]) * maturities
            slope = (1 - jnp.exp(-x)) / x
            H = jnp.stack([jnp.ones_like(x), slope, slope - jnp.exp(-x)], axis=1)
            phi = jnp.tanh(p["phi"] / 2)
            Q, R = jnp.diag(jnp.exp(2 * p["log_q"])), jnp.exp(2 * p["log_r"]) * jnp.eye(8)

            def step(state, y):
                m, P = state
                m = p["mean"] + phi * (m - p["mean"])
                P = phi[:, None] * P * phi[None, :] + Q
                v = y - H @ m
                L = jnp.linalg.cholesky(H @ P @ H.T + R)
                K = cho_solve((L, True), H @ P).T
                white = solve_triangular(L, v, lower=True)
                ll = -0.5 * jnp.sum(white**2) - jnp.sum(jnp.log(jnp.diag(L))) - 4 * math.log(2 * math.pi)
                return (m + K @ v, P - K @ H @ P), ll

            return -jnp.sum(jax.lax.scan(step, (p["mean"], jnp.eye(3)), yields)[1])

        return jax.jit(jax.value_and_grad(nll))


class SatellitePseudorangeFix(Model):
    """A receiver's place and clock from ranges to nine satellites, by weighted Gauss-Newton from the fix before, and how well it is determined."""

    kind = "small linear algebra"
    dtype = "float64"
    size = dict(epochs=200, satellites=9)
    small = dict(epochs=3, satellites=6)

    def make(self, random, epochs, satellites):
        u = random.normal(size=(satellites, 3))
        u[:, 2] = np.abs(u[:, 2]) + 0.3
        u /= np.linalg.norm(u, axis=1, keepdims=True)
        where = 26.6 * u + 1e-3 * np.arange(epochs)[:, None, None] * random.normal(size=(satellites, 3))
        own = np.array([0.0, 0.0, 6.37]) + np.cumsum(1e-4 * random.normal(size=(epochs, 3)), axis=0)
        clock = 0.01 + 1e-5 * np.arange(epochs)
        ranges = np.linalg.norm(where - own[:, None], axis=2) + clock[:, None] + 5e-6 * random.normal(size=(epochs, satellites))
        return where, ranges, np.array([0.0, 0.0, 6.0, 0.0])

    def rscan(self, epochs, satellites):
        @rs.compile
        def fixes(where, ranges, start):
            def epoch(where, measured, x):
                def newton(x):
                    apart = x[:3] - where
                    distance = rs.sqrt(rs.sum(apart**2, axis=1))
                    J = rs.concatenate([apart / distance[:, None], rs.ones((satellites, 1))], axis=1)
                    weight = 0.1 + rs.maximum(-(apart @ x[:3]) / (distance * rs.linalg.norm(x[:3])), 0.0) ** 2
                    A = J.T @ (weight[:, None] * J)
                    return x + rs.linalg.solve(A, J.T @ (weight * (measured - distance - x[3]))), A

                x = rs.fori(0, 4, lambda i, x: newton(x)[0], x)
                x, A = newton(x)
                return dict(x=x, dilution=rs.sqrt(rs.trace(rs.linalg.inv(A))))

            out = rs.loop(epoch, over=dict(where=where, measured=ranges), init=dict(x=start))
            return out.x, out.dilution

        return fixes

    def jax(self, epochs, satellites):
        import jax
        import jax.numpy as jnp

        @jax.jit
        def fixes(where, ranges, start):
            def epoch(x, now):
                where, measured = now

                def newton(x):
                    apart = x[:3] - where
                    distance = jnp.sqrt(jnp.sum(apart**2, axis=1))
                    J = jnp.concatenate([apart / distance[:, None], jnp.ones((satellites, 1))], axis=1)
                    weight = 0.1 + jnp.maximum(-(apart @ x[:3]) / (distance * jnp.linalg.norm(x[:3])), 0.0) ** 2
                    A = J.T @ (weight[:, None] * J)
                    return x + jnp.linalg.solve(A, J.T @ (weight * (measured - distance - x[3]))), A

                x = jax.lax.fori_loop(0, 4, lambda i, x: newton(x)[0], x)
                x, A = newton(x)
                return x, (x, jnp.sqrt(jnp.trace(jnp.linalg.inv(A))))

            return jax.lax.scan(epoch, start, (where, ranges))[1]

        return fixes


class CoupledOscillatorNet(Model):
    """A recurrent network of damped, driven oscillators (coRNN) that tells activities by sensors: cross entropy and its gradient."""

    kind = "networks"
    dtype = "float32"
    size = dict(steps=50, batch=32, units=64)
    small = dict(steps=4, batch=3, units=5)
    rtol = 1e-3

    def make(self, random, steps, batch, units):
        f = lambda *shape: random.normal(size=shape).astype("f4")
        p = dict(
            wy=f(units, units) / np.float32(units**0.5),
            wz=f(units, units) / np.float32(units**0.5),
            v=f(6, units) * np.float32(0.4),
            b=0 * f(units),
            out=f(units, 5) / np.float32(units**0.5),
            gamma=1 + 0.1 * f(units),
            epsilon=1 + 0.1 * f(units),
        )
        return p, f(steps, batch, 6), random.integers(0, 5, batch)

    def rscan(self, steps, batch, units):
        def loss(p, x, labels):
            dt = 0.2

            def step(u, y, z):
                force = rs.tanh(y @ p["wy"] + z @ p["wz"] + u @ p["v"] + p["b"])
                z = z + dt * (force - p["gamma"] * y - p["epsilon"] * z)
                return dict(y=y + dt * z, z=z)

            zero = rs.zeros((x.shape[1], units), dtype="float32")
            y = rs.loop(step, over=dict(u=x), init=dict(y=zero, z=zero)).last.y
            scores = rs.log_softmax(y @ p["out"], axis=-1)
            return -rs.mean(scores[rs.arange(x.shape[1]), labels])

        return rs.compile(rs.value_and_grad(loss))

    def jax(self, steps, batch, units):
        import jax
        import jax.numpy as jnp

        def loss(p, x, labels):
            dt = 0.2
            driven = x @ p["v"] + p["b"]

            def step(state, u):
                y, z = state
                force = jnp.tanh(y @ p["wy"] + z @ p["wz"] + u)
                z = z + dt * (force - p["gamma"] * y - p["epsilon"] * z)
                return (y + dt * z, z), None

            zero = jnp.zeros((x.shape[1], units), "float32")
            (y, _), _ = jax.lax.scan(step, (zero, zero), driven)
            scores = jax.nn.log_softmax(y @ p["out"], axis=-1)
            return -jnp.mean(scores[jnp.arange(x.shape[1]), labels])

        return jax.jit(jax.value_and_grad(loss))


class PerceiverStream(Model):
    """Latents that attend to one chunk of a recording after the other, with heads, normalisation and a feed-forward part: no gradient."""

    kind = "networks"
    dtype = "float32"
    size = dict(steps=16, latents=16, width=64, chunk=32)
    small = dict(steps=2, latents=3, width=8, chunk=4)
    rtol = 1e-3

    def make(self, random, steps, latents, width, chunk):
        f = lambda *shape: (random.normal(size=shape) / shape[0] ** 0.5).astype("f4")
        p = dict(q=f(width, width), k=f(width, width), v=f(width, width), o=f(width, width), up=f(width, 2 * width), down=f(2 * width, width))
        p |= dict(g1=np.ones(width, "f4"), c1=0.1 * f(width), g2=np.ones(width, "f4"), c2=0.1 * f(width))
        return p, random.normal(size=(latents, width)).astype("f4"), random.normal(size=(steps, chunk, width)).astype("f4")

    def rscan(self, steps, latents, width, chunk):
        heads = 4

        @rs.compile
        def run(p, start, chunks):
            def norm(x, gain, shift):
                centred = x - rs.mean(x, axis=-1, keepdims=True)
                return gain * centred / rs.sqrt(rs.mean(centred**2, axis=-1, keepdims=True) + 1e-5) + shift

            def split(x):
                return x.reshape((x.shape[0], heads, width // heads))

            def step(x, z):
                q, k, v = split(norm(z, p["g1"], p["c1"]) @ p["q"]), split(x @ p["k"]), split(x @ p["v"])
                weights = rs.softmax(rs.einsum("ihd,jhd->hij", q, k) / math.sqrt(width // heads), axis=-1)
                z = z + rs.einsum("hij,jhd->ihd", weights, v).reshape((latents, width)) @ p["o"]
                u = norm(z, p["g2"], p["c2"]) @ p["up"]
                gelu = 0.5 * u * (1 + rs.tanh(math.sqrt(2 / math.pi) * (u + 0.044715 * u**3)))
                z = z + gelu @ p["down"]
                return dict(z=z, pooled=rs.mean(z, axis=0))

            out = rs.loop(step, over=dict(x=chunks), init=dict(z=start))
            return out.last.z, out.pooled

        return run

    def jax(self, steps, latents, width, chunk):
        import jax
        import jax.numpy as jnp

        heads = 4

        @jax.jit
        def run(p, start, chunks):
            def norm(x, gain, shift):
                centred = x - jnp.mean(x, axis=-1, keepdims=True)
                return gain * centred / jnp.sqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + 1e-5) + shift

            def split(x):
                return x.reshape(*x.shape[:-1], heads, width // heads)

            keys, values = split(chunks @ p["k"]), split(chunks @ p["v"])

            def step(z, now):
                k, v = now
                q = split(norm(z, p["g1"], p["c1"]) @ p["q"])
                weights = jax.nn.softmax(jnp.einsum("ihd,jhd->hij", q, k) / math.sqrt(width // heads), axis=-1)
                z = z + jnp.einsum("hij,jhd->ihd", weights, v).reshape(latents, width) @ p["o"]
                z = z + jax.nn.gelu(norm(z, p["g2"], p["c2"]) @ p["up"], approximate=True) @ p["down"]
                return z, jnp.mean(z, axis=0)

            return jax.lax.scan(step, start, (keys, values))

        return run


class BranchingNeutrons(Model):
    """Neutrons in a subcritical assembly with a source: generations of Poisson numbers in many replicas, drawn in the step."""

    kind = "draws"
    dtype = "int64"
    size = dict(generations=30, replicas=1000)
    small = dict(generations=10, replicas=500)

    def make(self, random, generations, replicas):
        return 3, 0.9, 0.6

    def rscan(self, generations, replicas):
        @rs.compile
        def run(seed, multiplication, source):
            key = rs.random.key(seed)

            def step(t, n):
                first, second = rs.random.split(rs.random.fold_in(key, t))
                born = rs.random.poisson(first, multiplication * n, replicas)
                new = born + rs.random.poisson(second, source, replicas)
                return dict(n=new, absorbed=n, empty=rs.mean(new == 0))

            out = rs.loop(step, over=dict(t=rs.arange(generations)), init=dict(n=rs.full(replicas, 4)))
            return out.last.n, rs.sum(out.absorbed, axis=0), out.empty

        return run

    def jax(self, generations, replicas):
        import jax
        import jax.numpy as jnp

        @jax.jit
        def run(seed, multiplication, source):
            def step(n, key):
                first, second = jax.random.split(key)
                new = jax.random.poisson(first, multiplication * n, dtype="int64") + jax.random.poisson(second, source, (replicas,), dtype="int64")
                return new, (n, jnp.mean(new == 0))

            n, (absorbed, empty) = jax.lax.scan(step, jnp.full(replicas, 4), jax.random.split(jax.random.key(seed), generations))
            return n, jnp.sum(absorbed, axis=0), empty

        return run

    def same(self, ours, theirs):
        for a, b in zip(ours[:2], theirs[:2]):
            assert a.shape == b.shape and a.dtype.kind == b.dtype.kind == "i", (a.dtype, b.dtype, a.shape, b.shape)
            error = np.sqrt((a.var() + b.var()) / a.size)
            assert abs(a.mean() - b.mean()) < 5 * error, f"means {a.mean()} and {b.mean()} differ by more than {5 * error}"
            assert 0.6 < a.var() / b.var() < 1.6, f"variances {a.var()} and {b.var()}"
        assert ours[2].shape == theirs[2].shape
        assert np.all(np.abs(ours[2] - theirs[2]) < 5 * np.sqrt(0.5 / ours[0].size)), "other shares of empty assemblies"


class MertonAsianGreeks(Model):
    """An Asian call on a price that jumps (Merton), with normal and Poisson draws in the step: its value and its slopes by four parameters."""

    kind = "draws"
    dtype = "float64"
    size = dict(paths=1000, steps=24)
    small = dict(paths=2000, steps=4)

    def make(self, random, paths, steps):
        return np.array([100.0, 0.25, -0.1, 0.15]), 11, 100.0

    def rscan(self, paths, steps):
        stream = rs.random.Stream(seed=5)

        def price(p, rate, strike):
            s0, sigma, jump_mean, jump_deviation = p[0], p[1], p[2], p[3]
            dt, often = 1 / steps, 1.5
            drift = 0.03 - 0.5 * sigma**2 - often * (rs.exp(jump_mean + 0.5 * jump_deviation**2) - 1)

            def step(x, total):
                jumps = stream.poisson(often * dt, size=paths)
                jump = jump_mean * jumps + jump_deviation * rs.sqrt(jumps) * stream.normal(size=paths)
                x = x + drift * dt + sigma * math.sqrt(dt) * stream.normal(size=paths) + jump
                return dict(x=x, total=total + rs.exp(x))

            out = rs.loop(step, init=dict(x=rs.log(s0) * rs.ones(paths), total=rs.zeros(paths)), n_steps=steps)
            return math.exp(-0.03) * rs.mean(rs.maximum(out.last.total / steps - strike, 0.0))

        return rs.compile(rs.value_and_grad(price))

    def jax(self, paths, steps):
        import jax
        import jax.numpy as jnp

        def price(p, seed, strike):
            s0, sigma, jump_mean, jump_deviation = p
            dt, often = 1 / steps, 1.5
            drift = 0.03 - 0.5 * sigma**2 - often * (jnp.exp(jump_mean + 0.5 * jump_deviation**2) - 1)

            def step(state, key):
                x, total = state
                k1, k2, k3 = jax.random.split(key, 3)
                jumps = jax.random.poisson(k1, often * dt, (paths,))
                jump = jump_mean * jumps + jump_deviation * jnp.sqrt(jumps.astype(float)) * jax.random.normal(k2, (paths,))
                x = x + drift * dt + sigma * math.sqrt(dt) * jax.random.normal(k3, (paths,)) + jump
                return (x, total + jnp.exp(x)), None

            init = (jnp.log(s0) * jnp.ones(paths), jnp.zeros(paths))
            (_, total), _ = jax.lax.scan(step, init, jax.random.split(jax.random.key(seed), steps))
            return math.exp(-0.03) * jnp.mean(jnp.maximum(total / steps - strike, 0.0))

        return jax.jit(jax.value_and_grad(price))

    def same(self, ours, theirs):
        for a, b, error in zip(ours, theirs, (2.5, np.array([0.12, 8.0, 15.0, 15.0]))):
            assert a.shape == b.shape and a.dtype == b.dtype and np.all(np.isfinite(a)), (a, b)
            assert np.all(np.abs(a - b) < error), f"{a} and {b}"


class AuxiliaryVolatilityParticles(Model):
    """Stochastic volatility by the auxiliary particle filter of Pitt and Shephard, with systematic resampling and the draws given."""

    kind = "particle filters and MCMC"
    dtype = "float64"
    size = dict(steps=120, particles=256)
    small = dict(steps=4, particles=16)

    def make(self, random, steps, particles):
        h = np.zeros(steps + 1)
        for t in range(steps):
            h[t + 1] = 0.95 * h[t] + 0.3 * random.normal()
        y = np.exp(h[1:] / 2 - 0.5) * random.normal(size=steps)
        return np.array([-1.0, 0.95, 0.3]), y, random.normal(size=particles), random.normal(size=(steps, particles)), random.uniform(size=steps)

    def rscan(self, steps, particles):
        @rs.compile
        def run(p, y, start, noise, u):
            mu, phi, sigma = p[0], p[1], p[2]

            def density(y, h):
                return rs.stats.norm.logpdf(y, 0.0, rs.exp(h / 2))

            def step(y, noise, u, h, weight):
                ahead = mu + phi * (h - mu)
                guess = density(y, ahead)
                first = weight + guess
                top = rs.max(first)
                share = rs.exp(first - top)
                steps_up = rs.cumsum(share)
                places = (u + rs.arange(particles)) / particles * steps_up[-1]
                parents = rs.minimum(rs.searchsorted(steps_up, places), particles - 1)
                new = ahead[parents] + sigma * noise
                second = density(y, new) - guess[parents]
                level = rs.logsumexp(second)
                weight = second - level
                ll = rs.logsumexp(first) + level - math.log(particles)
                return dict(h=new, weight=weight, ll=ll, mean=rs.sum(rs.exp(weight) * new), size=1 / rs.sum(rs.exp(2 * weight)))

            init = dict(h=mu + sigma / rs.sqrt(1 - phi**2) * start, weight=rs.full(particles, -math.log(particles)))
            out = rs.loop(step, over=dict(y=y, noise=noise, u=u), init=init)
            return rs.sum(out.ll), out.mean, out.size

        return run

    def jax(self, steps, particles):
        import jax
        import jax.numpy as jnp
        from jax.scipy.special import logsumexp

        @jax.jit
        def run(p, y, start, noise, u):
            mu, phi, sigma = p

            def density(y, h):
                return jax.scipy.stats.norm.logpdf(y, 0.0, jnp.exp(h / 2))

            def step(state, now):
                (h, weight), (y, noise, u) = state, now
                ahead = mu + phi * (h - mu)
                guess = density(y, ahead)
                first = weight + guess
                share = jnp.exp(first - jnp.max(first))
                steps_up = jnp.cumsum(share)
                places = (u + jnp.arange(particles)) / particles * steps_up[-1]
                parents = jnp.minimum(jnp.searchsorted(steps_up, places), particles - 1)
                new = ahead[parents] + sigma * noise
                second = density(y, new) - guess[parents]
                level = logsumexp(second)
                weight = second - level
                ll = logsumexp(first) + level - math.log(particles)
                return (new, weight), (ll, jnp.sum(jnp.exp(weight) * new), 1 / jnp.sum(jnp.exp(2 * weight)))

            init = (mu + sigma / jnp.sqrt(1 - phi**2) * start, jnp.full(particles, -math.log(particles)))
            ll, mean, size = jax.lax.scan(step, init, (y, noise, u))[1]
            return jnp.sum(ll), mean, size

        return run


class LangevinLogitChains(Model):
    """Logistic regression by Metropolis-adjusted Langevin steps, some chains side by side, with the draws given and the gradient in the step."""

    kind = "particle filters and MCMC"
    dtype = "float64"
    size = dict(steps=150, chains=6, rows=80, columns=10)
    small = dict(steps=4, chains=2, rows=8, columns=3)

    def make(self, random, steps, chains, rows, columns):
        X = random.normal(size=(rows, columns))
        y = (random.uniform(size=rows) < 1 / (1 + np.exp(-X @ random.normal(size=columns)))).astype(float)
        return X, y, random.normal(size=(chains, columns)), random.normal(size=(chains, steps, columns)), random.uniform(size=(chains, steps)), 0.08

    def rscan(self, steps, chains, rows, columns):
        def chain(X, y, start, noise, u, size):
            def logp(w):
                z = X @ w
                return rs.sum(y * z - rs.softplus(z)) - 0.5 * rs.sum(w**2) / 4.0

            value_and_slope = rs.value_and_grad(logp)

            def step(noise, u, w, value, slope):
                new = w + size * slope + rs.sqrt(2 * size) * noise
                value_new, slope_new = value_and_slope(new)
                back = -rs.sum((w - new - size * slope_new) ** 2) / (4 * size)
                there = -rs.sum((new - w - size * slope) ** 2) / (4 * size)
                take = rs.log(u) < value_new - value + back - there
                return dict(w=rs.where(take, new, w), value=rs.where(take, value_new, value), slope=rs.where(take, slope_new, slope), taken=take)

            value, slope = value_and_slope(start)
            out = rs.loop(step, over=dict(noise=noise, u=u), init=dict(w=start, value=value, slope=slope))
            return rs.mean(out.w, axis=0), out.value, rs.sum(out.taken)

        return rs.compile(rs.vmap(chain, (None, None, 0, 0, 0, None)))

    def jax(self, steps, chains, rows, columns):
        import jax
        import jax.numpy as jnp

        def chain(X, y, start, noise, u, size):
            def logp(w):
                z = X @ w
                return jnp.sum(y * z - jax.nn.softplus(z)) - 0.5 * jnp.sum(w**2) / 4.0

            value_and_slope = jax.value_and_grad(logp)

            def step(state, now):
                (w, value, slope), (noise, u) = state, now
                new = w + size * slope + jnp.sqrt(2 * size) * noise
                value_new, slope_new = value_and_slope(new)
                back = -jnp.sum((w - new - size * slope_new) ** 2) / (4 * size)
                there = -jnp.sum((new - w - size * slope) ** 2) / (4 * size)
                take = jnp.log(u) < value_new - value + back - there
                state = jnp.where(take, new, w), jnp.where(take, value_new, value), jnp.where(take, slope_new, slope)
                return state, (state[0], state[1], take)

            w, value, taken = jax.lax.scan(step, (start, *value_and_slope(start)), (noise, u))[1]
            return jnp.mean(w, axis=0), value, jnp.sum(taken)

        return jax.jit(jax.vmap(chain, (None, None, 0, 0, 0, None)))


class BirdSongInputHmm(Model):
    """Syllables of several birds as hidden states whose transitions depend on what the bird hears: the likelihood and its gradient."""

    kind = "hidden states"
    dtype = "float32"
    size = dict(steps=120, songs=6, states=6)
    small = dict(steps=4, songs=2, states=3)
    rtol = 1e-3

    def make(self, random, steps, songs, states):
        f = lambda *shape: random.normal(size=shape).astype("f4")
        p = dict(base=f(states, states) + 2 * np.eye(states, dtype="f4"), heard=0.3 * f(4, states, states), start=f(states), mean=f(states, 8), log_scale=0.2 * f(states, 8))
        return p, f(songs, steps, 8), f(songs, steps, 4)

    def rscan(self, steps, songs, states):
        def loglik(p, y, x):
            def emission(y):
                return rs.sum(rs.stats.norm.logpdf(y, p["mean"], rs.exp(p["log_scale"])), axis=1)

            def step(y, x, alpha):
                logits = p["base"] + rs.tensordot(x, p["heard"], axes=1)
                transition = rs.log_softmax(logits, axis=1)
                return dict(alpha=rs.logsumexp(alpha[:, None] + transition, axis=0) + emission(y))

            first = rs.log_softmax(p["start"]) + emission(y[0])
            return rs.logsumexp(rs.loop(step, over=dict(y=y[1:], x=x[1:]), init=dict(alpha=first)).last.alpha)

        def loss(p, y, x):
            return -rs.mean(rs.vmap(loglik, (None, 0, 0))(p, y, x))

        return rs.compile(rs.value_and_grad(loss))

    def jax(self, steps, songs, states):
        import jax
        import jax.numpy as jnp
        from jax.scipy.special import logsumexp

        def loglik(p, y, x):
            emission = jnp.sum(jax.scipy.stats.norm.logpdf(y[:, None], p["mean"], jnp.exp(p["log_scale"])), axis=2)
            transitions = jax.nn.log_softmax(p["base"] + jnp.tensordot(x, p["heard"], axes=1), axis=2)

            def step(alpha, now):
                emission, transition = now
                return logsumexp(alpha[:, None] + transition, axis=0) + emission, None

            first = jax.nn.log_softmax(p["start"]) + emission[0]
            return logsumexp(jax.lax.scan(step, first, (emission[1:], transitions[1:]))[0])

        def loss(p, y, x):
            return -jnp.mean(jax.vmap(loglik, (None, 0, 0))(p, y, x))

        return jax.jit(jax.value_and_grad(loss))


class ConvolutionalCodeDecoder(Model):
    """The code of Voyager (constraint length 7, rate one half): Viterbi's decoder with hard decisions, and its way back."""

    kind = "hidden states"
    dtype = "int64"
    size = dict(steps=600)
    small = dict(steps=9)

    @staticmethod
    def outputs():
        """The two bits that are sent when a bit comes into a state of six bits."""
        parity = lambda v: bin(v).count("1") & 1
        return np.array([[[parity((b << 6 | s) & g) for g in (0o171, 0o133)] for b in (0, 1)] for s in range(64)])

    def make(self, random, steps):
        sent, state, rows = random.integers(0, 2, steps), 0, []
        sent[-6:] = 0
        table = self.outputs()
        for b in sent:
            rows.append(table[state, b])
            state = int(b) << 5 | state >> 1
        return ((np.array(rows) ^ (random.uniform(size=(steps, 2)) < 0.05)).astype("int64"),)

    def rscan(self, steps):
        table = self.outputs()
        new = np.arange(64)
        bit = new >> 5
        before = np.stack([(new & 31) << 1, (new & 31) << 1 | 1])
        expected = table[before, bit]  # which of two, state, which bit

        @rs.compile
        def decode(received):
            def forward(bits, metric):
                ways = rs.stack([metric[before[k]] + rs.sum(bits ^ expected[k], axis=1) for k in (0, 1)])
                odd = ways[1] < ways[0]
                return dict(metric=rs.where(odd, ways[1], ways[0]), odd=odd)

            start = rs.where(rs.arange(64) == 0, 0, 1000)
            out = rs.loop(forward, over=dict(bits=received), init=dict(metric=start))

            def back(odd, state):
                return dict(state=((state & 31) << 1) + rs.cast(odd[state], "int64"), bit=state >> 5)

            found = rs.loop(back, over=dict(odd=out.odd), init=dict(state=rs.argmin(out.last.metric)), reverse=True)
            return found.bit, rs.min(out.last.metric)

        return decode

    def jax(self, steps):
        import jax
        import jax.numpy as jnp

        table = self.outputs()
        new = np.arange(64)
        bit = new >> 5
        before = np.stack([(new & 31) << 1, (new & 31) << 1 | 1])
        expected = jnp.asarray(table[before, bit])

        @jax.jit
        def decode(received):
            def forward(metric, bits):
                ways = metric[before] + jnp.sum(bits ^ expected, axis=2)
                odd = ways[1] < ways[0]
                return jnp.where(odd, ways[1], ways[0]), odd

            metric, odd = jax.lax.scan(forward, jnp.where(jnp.arange(64) == 0, 0, 1000), received)

            def back(state, odd):
                return ((state & 31) << 1) + odd[state], state >> 5

            return jax.lax.scan(back, jnp.argmin(metric), odd, reverse=True)[1], jnp.min(metric)

        return decode


class LolaDilemma(Model):
    """Two learners of the repeated prisoner's dilemma, each of which looks ahead to how the other one learns (LOLA), in many starts."""

    kind = "agents and games"
    dtype = "float64"
    size = dict(steps=40, pairs=8)
    small = dict(steps=2, pairs=2)
    rtol = 1e-6

    def make(self, random, steps, pairs):
        return random.normal(size=(pairs, 2, 5)), 0.9, 0.3, 0.5

    def rscan(self, steps, pairs):
        def play(start, discount, rate, ahead):
            rewards = rs.constant([-1.0, -3.0, 0.0, -2.0]), rs.constant([-1.0, 0.0, -3.0, -2.0])

            def value(one, two, reward):
                a, b = rs.sigmoid(one), rs.sigmoid(two)[np.array([0, 1, 3, 2, 4])]
                chances = rs.stack([a * b, a * (1 - b), (1 - a) * b, (1 - a) * (1 - b)], axis=1)
                return chances[0] @ rs.linalg.solve(rs.eye(4) - discount * chances[1:], reward) * (1 - discount)

            def first(one, two):
                return value(one, two, rewards[0])

            def second(one, two):
                return value(one, two, rewards[1])

            def first_ahead(one, two):
                return first(one, two + ahead * rs.grad(second, argnums=1)(one, two))

            def second_ahead(one, two):
                return second(one + ahead * rs.grad(first)(one, two), two)

            def step(one, two):
                return dict(
                    one=one + rate * rs.grad(first_ahead)(one, two),
                    two=two + rate * rs.grad(second_ahead, argnums=1)(one, two),
                    gains=rs.stack([first(one, two), second(one, two)]),
                )

            out = rs.loop(step, init=dict(one=start[0], two=start[1]), n_steps=steps)
            return out.gains, rs.sigmoid(out.last.one), rs.sigmoid(out.last.two)

        return rs.compile(rs.vmap(play, (0, None, None, None)))

    def jax(self, steps, pairs):
        import jax
        import jax.numpy as jnp

        def play(start, discount, rate, ahead):
            rewards = jnp.array([-1.0, -3.0, 0.0, -2.0]), jnp.array([-1.0, 0.0, -3.0, -2.0])

            def value(one, two, reward):
                a, b = jax.nn.sigmoid(one), jax.nn.sigmoid(two)[np.array([0, 1, 3, 2, 4])]
                chances = jnp.stack([a * b, a * (1 - b), (1 - a) * b, (1 - a) * (1 - b)], axis=1)
                return chances[0] @ jnp.linalg.solve(jnp.eye(4) - discount * chances[1:], reward) * (1 - discount)

            first = lambda one, two: value(one, two, rewards[0])
            second = lambda one, two: value(one, two, rewards[1])
            first_ahead = lambda one, two: first(one, two + ahead * jax.grad(second, 1)(one, two))
            second_ahead = lambda one, two: second(one + ahead * jax.grad(first)(one, two), two)

            def step(state, _):
                one, two = state
                new = one + rate * jax.grad(first_ahead)(one, two), two + rate * jax.grad(second_ahead, 1)(one, two)
                return new, jnp.stack([first(one, two), second(one, two)])

            (one, two), gains = jax.lax.scan(step, (start[0], start[1]), None, length=steps)
            return gains, jax.nn.sigmoid(one), jax.nn.sigmoid(two)

        return jax.jit(jax.vmap(play, (0, None, None, None)))


class NamingGameConsensus(Model):
    """Agents who meet in pairs and agree on a word for a thing (Baronchelli's naming game), until all know one alone."""

    kind = "agents and games"
    dtype = "int64"
    size = dict(meetings=4000, agents=40)
    small = dict(meetings=12, agents=4)

    def make(self, random, meetings, agents):
        speaker = random.integers(0, agents, meetings)
        hearer = (speaker + random.integers(1, agents, meetings)) % agents
        return speaker, hearer, random.uniform(size=meetings)

    def rscan(self, meetings, agents):
        @rs.compile
        def play(speaker, hearer, u):
            words = rs.arange(agents)

            def meet(s, h, u, known, total):
                own = known[s]
                count = rs.sum(own)
                own = rs.where(count == 0, words == s, own)  # who knows none makes one up
                wanted = rs.cast(rs.floor(u * rs.maximum(count, 1)), "int64")
                word = rs.argmax(rs.cumsum(own) > wanted)
                success = known[h, word]
                alone = words == word
                heard = rs.where(success, alone, known[h] | alone)
                said = rs.where(success, alone, own)
                new = total + rs.sum(said) + rs.sum(heard) - count - rs.sum(known[h])
                known = known.at[s].set(said).at[h].set(heard)
                over = (new == agents) & rs.all(known[:, word])
                return dict(known=known, total=new, success=rs.cast(success, "int64")), rs.until(over)

            init = dict(known=rs.zeros((agents, agents), dtype="bool"), total=0)
            out = rs.loop(meet, over=dict(s=speaker, h=hearer, u=u), init=init)
            return out.steps, out.last.total, rs.max(out.total), rs.sum(out.success), rs.sum(out.last.known, axis=0)

        return play

    def jax(self, meetings, agents):
        import jax
        import jax.numpy as jnp

        @jax.jit
        def play(speaker, hearer, u):
            words = jnp.arange(agents)

            def meet(state):
                t, known, total, most, successes, _ = state
                s, h = speaker[t], hearer[t]
                own = known[s]
                count = jnp.sum(own)
                own = jnp.where(count == 0, words == s, own)
                wanted = jnp.floor(u[t] * jnp.maximum(count, 1)).astype("int64")
                word = jnp.argmax(jnp.cumsum(own) > wanted)
                success = known[h, word]
                alone = words == word
                heard = jnp.where(success, alone, known[h] | alone)
                said = jnp.where(success, alone, own)
                total = total + jnp.sum(said) + jnp.sum(heard) - count - jnp.sum(known[h])
                known = known.at[s].set(said).at[h].set(heard)
                over = (total == agents) & jnp.all(known[:, word])
                return t + 1, known, total, jnp.maximum(most, total), successes + success, over

            zero = jnp.zeros((), "int64")
            init = (zero, jnp.zeros((agents, agents), bool), zero, zero, zero, jnp.zeros((), bool))
            t, known, total, most, successes, _ = jax.lax.while_loop(lambda s: (s[0] < meetings) & ~s[5], meet, init)
            return t, total, most, successes, jnp.sum(known, axis=0)

        return play
