"""Optimisers, gradients through them, and learning by policy gradients."""

import numpy as np

import rscan as rs
from models import Model


class LearnedMomentum(Model):
    """Gradient through training: momentum descent on logistic regression, its schedule and decay learnt on held-out data."""

    kind = "optimisers and hyper-gradients"
    dtype = "float64"
    size = dict(steps=60, examples=80, features=15)
    small = dict(steps=3, examples=4, features=2)

    def make(self, random, steps, examples, features):
        X, Z = random.normal(size=(2, examples, features))
        w = random.normal(size=features)
        y, t = ((A @ w + random.normal(size=examples) > 0).astype(float) for A in (X, Z))
        return (np.full(steps, np.log(0.3)), 1.5, np.full(features, -4.0)), X, y, Z, t

    def rscan(self, steps, examples, features):
        @rs.compile
        def validation(hyper, X, y, Z, t):
            log_rates, momentum, log_decay = hyper
            mass = rs.sigmoid(momentum)

            def train(log_rate, w, velocity):
                p = rs.sigmoid(X @ w)
                gradient = X.T @ (p - y) / examples + rs.exp(log_decay) * w
                velocity = mass * velocity - rs.exp(log_rate) * gradient
                return dict(w=w + velocity, velocity=velocity)

            out = rs.loop(train, over=dict(log_rate=log_rates), init=dict(w=rs.zeros(features), velocity=rs.zeros(features)))
            z = Z @ out.w[-1]
            return rs.mean(rs.softplus(z) - t * z)

        return rs.value_and_grad(validation)

    def jax(self, steps, examples, features):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def validation(hyper, X, y, Z, t):
            log_rates, momentum, log_decay = hyper
            mass = jax.nn.sigmoid(momentum)

            def train(state, log_rate):
                w, velocity = state
                p = jax.nn.sigmoid(X @ w)
                gradient = X.T @ (p - y) / examples + jnp.exp(log_decay) * w
                velocity = mass * velocity - jnp.exp(log_rate) * gradient
                return (w + velocity, velocity), None

            (w, _), _ = lax.scan(train, (jnp.zeros(features), jnp.zeros(features)), log_rates)
            z = Z @ w
            return jnp.mean(jax.nn.softplus(z) - t * z)

        return jax.jit(jax.value_and_grad(validation))


class FastShrinkage(Model):
    """The lasso by accelerated proximal gradients (FISTA), until the coefficients stand still."""

    kind = "optimisers and hyper-gradients"
    dtype = "float64"
    size = dict(rows=100, columns=60)
    small = dict(rows=5, columns=3)
    rtol = 1e-7

    def make(self, random, rows, columns):
        X = random.normal(size=(rows, columns))
        w = random.normal(size=columns) * (random.random(columns) < 0.2)
        return X, X @ w + 0.1 * random.normal(size=rows), 0.1 * rows**0.5, 1 / np.linalg.norm(X, 2) ** 2

    def rscan(self, rows, columns):
        @rs.compile
        def lasso(X, y, penalty, rate):
            def step(w, z, t):
                u = z - rate * (X.T @ (X @ z - y))
                new = rs.sign(u) * rs.maximum(rs.abs(u) - rate * penalty, 0)
                t_new = (1 + rs.sqrt(1 + 4 * t**2)) / 2
                state = dict(w=new, z=new + (t - 1) / t_new * (new - w), t=t_new)
                return state, rs.until(rs.sqrt(rs.sum((new - w) ** 2)) < 1e-9)

            out = rs.loop(step, init=dict(w=rs.zeros(columns), z=rs.zeros(columns), t=1.0), n_steps=5000)
            w = out.w[-1]
            return w, 0.5 * rs.sum((X @ w - y) ** 2) + penalty * rs.sum(rs.abs(w)), rs.sum(rs.not_equal(w, 0))

        return lasso

    def jax(self, rows, columns):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def lasso(X, y, penalty, rate):
            def step(state):
                w, z, t, _, k = state
                u = z - rate * (X.T @ (X @ z - y))
                new = jnp.sign(u) * jnp.maximum(jnp.abs(u) - rate * penalty, 0)
                t_new = (1 + jnp.sqrt(1 + 4 * t**2)) / 2
                return new, new + (t - 1) / t_new * (new - w), t_new, jnp.linalg.norm(new - w), k + 1

            start = (jnp.zeros(columns), jnp.zeros(columns), 1.0, jnp.inf, 0)
            w, *_ = lax.while_loop(lambda s: (s[3] >= 1e-9) & (s[4] < 5000), step, start)
            return w, 0.5 * jnp.sum((X @ w - y) ** 2) + penalty * jnp.sum(jnp.abs(w)), jnp.sum(w != 0)

        return lasso


class PolicyGradientBandit(Model):
    """REINFORCE with a baseline on a contextual bandit, actions drawn from given uniform numbers."""

    kind = "optimisers and hyper-gradients"
    dtype = "float64"
    size = dict(rounds=1500, contexts=6, arms=8)
    small = dict(rounds=6, contexts=2, arms=3)

    def make(self, random, rounds, contexts, arms):
        x = random.normal(size=(rounds, contexts))
        return x, random.random(rounds), random.normal(size=(rounds, arms)), random.normal(size=(contexts, arms)), 0.05

    def rscan(self, rounds, contexts, arms):
        @rs.compile
        def learn(x, u, noise, effects, rate):
            def play(x, u, noise, W, baseline):
                p = rs.softmax(x @ W)
                action = rs.minimum(rs.sum(rs.cumsum(p) < u), arms - 1)
                reward = rs.dot(x, effects[:, action]) + noise[action]
                score = rs.where(rs.arange(arms) == action, 1.0, 0.0) - p
                W = W + rate * (reward - baseline) * rs.outer(x, score)
                return dict(W=W, baseline=baseline + 0.01 * (reward - baseline), reward=reward, action=action)

            init = dict(W=rs.zeros((contexts, arms)), baseline=0.0)
            out = rs.loop(play, over=dict(x=x, u=u, noise=noise), init=init)
            return out.W[-1], out.reward, out.action

        return learn

    def jax(self, rounds, contexts, arms):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def learn(x, u, noise, effects, rate):
            def play(state, row):
                W, baseline = state
                x, u, noise = row
                p = jax.nn.softmax(x @ W)
                action = jnp.minimum(jnp.sum(jnp.cumsum(p) < u), arms - 1)
                reward = x @ effects[:, action] + noise[action]
                score = jax.nn.one_hot(action, arms) - p
                W = W + rate * (reward - baseline) * jnp.outer(x, score)
                return (W, baseline + 0.01 * (reward - baseline)), (reward, action)

            (W, _), (reward, action) = lax.scan(play, (jnp.zeros((contexts, arms)), 0.0), (x, u, noise))
            return W, reward, action

        return learn


class MamlSinusoids(Model):
    """Model-agnostic meta-learning: steps of training inside for each of several tasks, and the gradient through them."""

    kind = "optimisers and hyper-gradients"
    dtype = "float64"
    size = dict(tasks=8, shots=10, hidden=16, inner=4)
    small = dict(tasks=2, shots=3, hidden=2, inner=2)

    def make(self, random, tasks, shots, hidden, inner):
        W = random.normal(size=(1, hidden)), random.normal(size=hidden), random.normal(size=(hidden, 1)) / hidden
        x = random.uniform(-3, 3, size=(tasks, 2 * shots, 1))
        y = random.uniform(0.5, 2, size=(tasks, 1, 1)) * np.sin(x + random.uniform(0, 3, size=(tasks, 1, 1)))
        return W, x, y, 0.05

    def rscan(self, tasks, shots, hidden, inner):
        def error(w, x, y):
            return rs.mean((rs.tanh(x @ w[0] + w[1]) @ w[2] - y) ** 2)

        @rs.compile
        def meta(weights, x, y, rate):
            def task(x, y):
                def descend(w1, b1, w2):
                    g = rs.grad(error((w1, b1, w2), x[:shots], y[:shots]), [w1, b1, w2])
                    return dict(w1=w1 - rate * g[0], b1=b1 - rate * g[1], w2=w2 - rate * g[2])

                out = rs.loop(descend, init=dict(w1=weights[0], b1=weights[1], w2=weights[2]), n_steps=inner)
                return error((out.w1[-1], out.b1[-1], out.w2[-1]), x[shots:], y[shots:])

            return rs.mean(rs.loop(task, over=[x, y]))

        return rs.value_and_grad(meta)

    def jax(self, tasks, shots, hidden, inner):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def error(w, x, y):
            return jnp.mean((jnp.tanh(x @ w[0] + w[1]) @ w[2] - y) ** 2)

        def meta(weights, x, y, rate):
            def task(x, y):
                def descend(w, _):
                    g = jax.grad(error)(w, x[:shots], y[:shots])
                    return jax.tree.map(lambda a, b: a - rate * b, w, g), None

                w, _ = lax.scan(descend, weights, None, length=inner)
                return error(w, x[shots:], y[shots:])

            return jnp.mean(jax.vmap(task)(x, y))

        return jax.jit(jax.value_and_grad(meta))


class LimitedMemoryDescent(Model):
    """L-BFGS with a ring of recent steps and its two inner loops, on a regularised logistic regression, without a line search."""

    kind = "optimisers and hyper-gradients"
    dtype = "float64"
    size = dict(rows=100, features=20, memory=6)
    small = dict(rows=8, features=3, memory=2)
    rtol = 1e-6

    def make(self, random, rows, features, memory):
        X = random.normal(size=(rows, features))
        return X, np.where(X @ random.normal(size=features) + random.normal(size=rows) > 0, 1.0, -1.0), 0.1

    def rscan(self, rows, features, memory):
        @rs.compile
        def minimise(X, y, ridge):
            def slope(w):
                cost = rs.mean(rs.softplus(-y * (X @ w))) + 0.5 * ridge * rs.sum(w**2)
                return cost, rs.grad(cost, w)

            def step(w, g, S, Y):
                rho = 1 / rs.sum(S * Y, axis=1)
                rho = rs.where(rs.sum(S * Y, axis=1) > 0, rho, 0.0)

                def first(s, y, rho, q):
                    a = rho * rs.dot(s, q)
                    return dict(q=q - a * y, a=a)

                down = rs.loop(first, over=dict(s=S, y=Y, rho=rho), init=dict(q=g), reverse=True)
                yy = rs.sum(Y[-1] ** 2)
                scale = rs.where(yy > 0, rs.sum(S[-1] * Y[-1]) / rs.maximum(yy, 1e-300), 1.0)

                def second(s, y, rho, a, r):
                    return dict(r=r + s * (a - rho * rs.dot(y, r)))

                r = rs.loop(second, over=dict(s=S, y=Y, rho=rho, a=down.a), init=dict(r=scale * down.q[0])).r[-1]
                new = w - r
                cost, new_g = slope(new)
                state = dict(
                    w=new,
                    g=new_g,
                    S=rs.concatenate([S[1:], (new - w)[None, :]]),
                    Y=rs.concatenate([Y[1:], (new_g - g)[None, :]]),
                )
                return dict(**state, cost=cost), rs.until(rs.max(rs.abs(new_g)) < 1e-7)

            w0 = rs.zeros(features)
            none = rs.zeros((memory, features))
            out = rs.loop(step, init=dict(w=w0, g=slope(w0)[1], S=none, Y=none), n_steps=200)
            return out.w[-1], out.cost[-1], rs.shape(out.cost)[0]

        return minimise

    def jax(self, rows, features, memory):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def minimise(X, y, ridge):
            @jax.value_and_grad
            def slope(w):
                return jnp.mean(jax.nn.softplus(-y * (X @ w))) + 0.5 * ridge * jnp.sum(w**2)

            def step(state):
                w, g, S, Y, _, count = state
                sy = jnp.sum(S * Y, axis=1)
                rho = jnp.where(sy > 0, 1 / sy, 0.0)

                def first(q, row):
                    s, y, rho = row
                    a = rho * (s @ q)
                    return q - a * y, a

                q, a = lax.scan(first, g, (S, Y, rho), reverse=True)
                yy = jnp.sum(Y[-1] ** 2)
                scale = jnp.where(yy > 0, S[-1] @ Y[-1] / jnp.maximum(yy, 1e-300), 1.0)

                def second(r, row):
                    s, y, rho, a = row
                    return r + s * (a - rho * (y @ r)), None

                r, _ = lax.scan(second, scale * q, (S, Y, rho, a))
                new = w - r
                cost, new_g = slope(new)
                S = jnp.roll(S, -1, axis=0).at[-1].set(new - w)
                Y = jnp.roll(Y, -1, axis=0).at[-1].set(new_g - g)
                return new, new_g, S, Y, cost, count + 1

            w0, none = jnp.zeros(features), jnp.zeros((memory, features))
            start = (w0, slope(w0)[1], none, none, jnp.inf, 0)
            going = lambda s: ((jnp.max(jnp.abs(s[1])) >= 1e-7) | (s[5] == 0)) & (s[5] < 200)  # noqa: E731
            w, _, _, _, cost, count = lax.while_loop(going, step, start)
            return w, cost, count

        return minimise


class NelderMeadSimplex(Model):
    """Nelder and Mead's simplex on a valley in several dimensions: sorted states, and four moves chosen by comparison."""

    kind = "optimisers and hyper-gradients"
    dtype = "float64"
    size = dict(n=4, steps=300)
    small = dict(n=2, steps=6)

    def make(self, random, n, steps):
        x = -1 + 0.3 * random.normal(size=n)
        return (np.concatenate([x[None], x + 0.5 * np.eye(n)]),)

    def rscan(self, n, steps):
        def f(x):
            return rs.sum(10 * (x[..., 1:] - x[..., :-1] ** 2) ** 2 + (1 - x[..., :-1]) ** 2, axis=-1)

        @rs.compile
        def minimise(simplex):
            def step(x, fx):
                order = rs.argsort(fx)
                x, fx = x[order], fx[order]
                centre = rs.mean(x[:-1], axis=0)
                away = centre - x[-1]
                reflected, expanded, contracted = centre + away, centre + 2 * away, centre - 0.5 * away
                fr, fe, fc = f(reflected), f(expanded), f(contracted)
                expand = fr < fx[0]
                reflect = fr < fx[-2]
                contract = fc < fx[-1]
                last = rs.where(expand & (fe < fr), expanded, rs.where(reflect, reflected, contracted))
                f_last = rs.where(expand & (fe < fr), fe, rs.where(reflect, fr, fc))
                shrunk = x[0] + 0.5 * (x - x[0])
                ok = reflect | contract
                return dict(
                    x=rs.where(ok, rs.concatenate([x[:-1], last[None, :]]), shrunk),
                    fx=rs.where(ok, rs.concatenate([fx[:-1], f_last[None]]), f(shrunk)),
                    best=fx[0],
                )

            out = rs.loop(step, init=dict(x=simplex, fx=f(simplex)), n_steps=steps)
            return out.x[-1], out.best

        return minimise

    def jax(self, n, steps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def f(x):
            return jnp.sum(10 * (x[..., 1:] - x[..., :-1] ** 2) ** 2 + (1 - x[..., :-1]) ** 2, axis=-1)

        @jax.jit
        def minimise(simplex):
            def step(state, _):
                x, fx = state
                order = jnp.argsort(fx)
                x, fx = x[order], fx[order]
                centre = jnp.mean(x[:-1], axis=0)
                away = centre - x[-1]
                reflected, expanded, contracted = centre + away, centre + 2 * away, centre - 0.5 * away
                fr, fe, fc = f(reflected), f(expanded), f(contracted)
                expand = (fr < fx[0]) & (fe < fr)
                reflect = fr < fx[-2]
                last = jnp.where(expand, expanded, jnp.where(reflect, reflected, contracted))
                f_last = jnp.where(expand, fe, jnp.where(reflect, fr, fc))
                shrunk = x[0] + 0.5 * (x - x[0])
                ok = reflect | (fc < fx[-1])
                new = jnp.where(ok, x.at[-1].set(last), shrunk), jnp.where(ok, fx.at[-1].set(f_last), f(shrunk))
                return new, fx[0]

            (x, _), best = lax.scan(step, (simplex, f(simplex)), None, length=steps)
            return x, best

        return minimise
