"""Integrators of differential equations, with and without networks in them."""

import numpy as np

import rscan as rs
from models import Model


class KuramotoNetwork(Model):
    """Phase oscillators coupled by a network, by Heun's method; the order parameter over time."""

    kind = "ODE integrators"
    dtype = "float64"
    size = dict(oscillators=64, steps=150)
    small = dict(oscillators=4, steps=4)

    def make(self, random, oscillators, steps):
        A = np.triu(random.random((oscillators, oscillators)) < 0.3, 1).astype(float)
        return 2 * np.pi * random.random(oscillators), random.normal(size=oscillators), A + A.T, 3.0, 0.02

    def rscan(self, oscillators, steps):
        @rs.compile
        def run(theta, omega, A, coupling, dt):
            def velocity(theta):
                return omega + coupling / oscillators * rs.sum(A * rs.sin(theta[None, :] - theta[:, None]), axis=1)

            def step(theta):
                k1 = velocity(theta)
                new = theta + 0.5 * dt * (k1 + velocity(theta + dt * k1))
                r = rs.sqrt(rs.mean(rs.cos(new)) ** 2 + rs.mean(rs.sin(new)) ** 2)
                return dict(theta=new, r=r)

            out = rs.loop(step, init=dict(theta=theta), n_steps=steps)
            return out.theta[-1], out.r

        return run

    def jax(self, oscillators, steps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def run(theta, omega, A, coupling, dt):
            def velocity(theta):
                return omega + coupling / oscillators * jnp.sum(A * jnp.sin(theta[None, :] - theta[:, None]), axis=1)

            def step(theta, _):
                k1 = velocity(theta)
                new = theta + 0.5 * dt * (k1 + velocity(theta + dt * k1))
                return new, jnp.hypot(jnp.mean(jnp.cos(new)), jnp.mean(jnp.sin(new)))

            return lax.scan(step, theta, None, length=steps)

        return run


class UniversalPredatorPrey(Model):
    """A universal differential equation: known growth and death, a small net for the interaction; gradient of the misfit."""

    kind = "ODE integrators"
    dtype = "float64"
    size = dict(steps=120, hidden=12)
    small = dict(steps=3, hidden=2)

    def make(self, random, steps, hidden):
        W1, W2 = 0.3 * random.normal(size=(hidden, 2)), 0.3 * random.normal(size=(2, hidden))
        t = 0.05 * np.arange(steps)
        data = np.stack([1 + 0.4 * np.cos(t), 1 + 0.4 * np.sin(t)], axis=1) + 0.05 * random.normal(size=(steps, 2))
        return (np.log([1.1, 0.7]), W1, np.zeros(hidden), W2), data

    def rscan(self, steps, hidden):
        @rs.compile
        def loss(parameters, data):
            log_rates, W1, b1, W2 = parameters
            rates = rs.exp(log_rates) * np.array([1.0, -1.0])

            def f(y):
                return rates * y + W2 @ rs.tanh(W1 @ y + b1)

            def step(target, y):
                h = 0.05
                k1 = f(y)
                k2 = f(y + h / 2 * k1)
                k3 = f(y + h / 2 * k2)
                k4 = f(y + h * k3)
                y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
                return dict(y=y, e=rs.sum((y - target) ** 2))

            return rs.mean(rs.loop(step, over=dict(target=data), init=dict(y=rs.ones(2))).e)

        return rs.value_and_grad(loss)

    def jax(self, steps, hidden):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def loss(parameters, data):
            log_rates, W1, b1, W2 = parameters
            rates = jnp.exp(log_rates) * jnp.array([1.0, -1.0])

            def f(y):
                return rates * y + W2 @ jnp.tanh(W1 @ y + b1)

            def step(y, target):
                h = 0.05
                k1 = f(y)
                k2 = f(y + h / 2 * k1)
                k3 = f(y + h / 2 * k2)
                k4 = f(y + h * k3)
                y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
                return y, jnp.sum((y - target) ** 2)

            return jnp.mean(lax.scan(step, jnp.ones(2), data)[1])

        return jax.jit(jax.value_and_grad(loss))


class SoftenedGravity(Model):
    """Bodies under softened gravity by the leapfrog scheme, and their energy at every step."""

    kind = "ODE integrators"
    dtype = "float64"
    size = dict(bodies=16, steps=300)
    small = dict(bodies=3, steps=4)

    def make(self, random, bodies, steps):
        return random.normal(size=(bodies, 3)), 0.3 * random.normal(size=(bodies, 3)), random.exponential(size=bodies) / bodies

    def rscan(self, bodies, steps):
        @rs.compile
        def simulate(x, v, m):
            def distances(x):
                d = x[None, :, :] - x[:, None, :]
                return d, rs.sum(d**2, axis=2) + 0.01

            def acceleration(x):
                d, r2 = distances(x)
                return rs.sum(d * (m[None, :] * r2**-1.5)[:, :, None], axis=1)

            def step(x, v, a):
                v = v + 0.005 * a
                x = x + 0.01 * v
                a = acceleration(x)
                v = v + 0.005 * a
                _, r2 = distances(x)
                pairs = rs.outer(m, m) / rs.sqrt(r2) * (1 - rs.eye(bodies))
                return dict(x=x, v=v, a=a, energy=0.5 * rs.sum(m * rs.sum(v**2, axis=1)) - 0.5 * rs.sum(pairs))

            out = rs.loop(step, init=dict(x=x, v=v, a=acceleration(x)), n_steps=steps)
            return out.x[-1], out.v[-1], out.energy

        return simulate

    def jax(self, bodies, steps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def simulate(x, v, m):
            others = 1 - jnp.eye(bodies)

            def forces(x):
                d = x[None, :, :] - x[:, None, :]
                r2 = jnp.sum(d**2, axis=2) + 0.01
                potential = 0.5 * jnp.sum(jnp.outer(m, m) * others / jnp.sqrt(r2))
                return jnp.einsum("ijk,ij->ik", d, m * r2**-1.5), potential

            def step(state, _):
                x, v, a = state
                v = v + 0.005 * a
                x = x + 0.01 * v
                a, potential = forces(x)
                v = v + 0.005 * a
                return (x, v, a), 0.5 * jnp.sum(m * jnp.sum(v**2, axis=1)) - potential

            (x, v, _), energy = lax.scan(step, (x, v, forces(x)[0]), None, length=steps)
            return x, v, energy

        return simulate


class AdaptiveArenstorf(Model):
    """Bogacki and Shampine's pair with steps as long as the error permits, until the end of the interval."""

    kind = "ODE integrators"
    dtype = "float64"
    size = dict(most=5000)
    small = dict(most=60)

    def make(self, random, most):
        return np.array([0.994, 0.0, 0.0, -2.00158510637908]), 0.012277471, 6.0 if most > 100 else 0.02, 1e-6

    def rscan(self, most):
        @rs.compile
        def orbit(y0, mu, end, tolerance):
            def f(y):
                x, z, u, v = y[0], y[1], y[2], y[3]
                d1 = ((x + mu) ** 2 + z**2) ** 1.5
                d2 = ((x - 1 + mu) ** 2 + z**2) ** 1.5
                du = x + 2 * v - (1 - mu) * (x + mu) / d1 - mu * (x - 1 + mu) / d2
                dv = z - 2 * u - (1 - mu) * z / d1 - mu * z / d2
                return rs.stack([u, v, du, dv])

            def step(t, y, h, accepted):
                h = rs.minimum(h, end - t)
                k1 = f(y)
                k2 = f(y + h * k1 / 2)
                k3 = f(y + h * 3 * k2 / 4)
                new = y + h * (2 * k1 + 3 * k2 + 4 * k3) / 9
                k4 = f(new)
                error = h * (-5 * k1 / 72 + k2 / 12 + k3 / 9 - k4 / 8)
                norm = rs.sqrt(rs.mean((error / (tolerance + tolerance * rs.maximum(rs.abs(y), rs.abs(new)))) ** 2))
                ok = norm <= 1
                t = rs.where(ok, t + h, t)
                y = rs.where(ok, new, y)
                longer = h * rs.clip(0.9 * norm ** (-1 / 3), 0.2, 5.0)
                return dict(t=t, y=y, h=longer, accepted=accepted + rs.where(ok, 1, 0)), rs.until(t >= end)

            out = rs.loop(step, init=dict(t=0.0, y=y0, h=1e-4, accepted=0), n_steps=most)
            return out.t[-1], out.y[-1], out.accepted[-1], rs.shape(out.t)[0]

        return orbit

    def jax(self, most):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def orbit(y0, mu, end, tolerance):
            def f(y):
                x, z, u, v = y
                d1 = ((x + mu) ** 2 + z**2) ** 1.5
                d2 = ((x - 1 + mu) ** 2 + z**2) ** 1.5
                du = x + 2 * v - (1 - mu) * (x + mu) / d1 - mu * (x - 1 + mu) / d2
                dv = z - 2 * u - (1 - mu) * z / d1 - mu * z / d2
                return jnp.stack([u, v, du, dv])

            def step(state):
                t, y, h, accepted, tried = state
                h = jnp.minimum(h, end - t)
                k1 = f(y)
                k2 = f(y + h * k1 / 2)
                k3 = f(y + h * 3 * k2 / 4)
                new = y + h * (2 * k1 + 3 * k2 + 4 * k3) / 9
                k4 = f(new)
                error = h * (-5 * k1 / 72 + k2 / 12 + k3 / 9 - k4 / 8)
                norm = jnp.sqrt(jnp.mean((error / (tolerance + tolerance * jnp.maximum(jnp.abs(y), jnp.abs(new)))) ** 2))
                ok = norm <= 1
                longer = h * jnp.clip(0.9 * norm ** (-1 / 3), 0.2, 5.0)
                return jnp.where(ok, t + h, t), jnp.where(ok, new, y), longer, accepted + ok, tried + 1

            def unfinished(state):
                return (state[0] < end) & (state[4] < most)

            t, y, _, accepted, tried = lax.while_loop(unfinished, step, (0.0, y0, 1e-4, 0, 0))
            return t, y, accepted, tried

        return orbit


class IterativeRegulator(Model):
    """Iterative LQR for a pendulum: linearisation along a path, gains backwards, a new path forwards, several times."""

    kind = "ODE integrators"
    dtype = "float64"
    size = dict(horizon=50, iterations=8)
    small = dict(horizon=4, iterations=2)

    def make(self, random, horizon, iterations):
        return np.array([2.0, 0.0]) + 0.1 * random.normal(size=2), 0.1 * random.normal(size=horizon), 0.05, 0.1

    def rscan(self, horizon, iterations):
        @rs.compile
        def plan(x0, controls, dt, price):
            def move(x, u):
                speed = x[1] + dt * (rs.sin(x[0]) + u - 0.1 * x[1])
                return rs.stack([x[0] + dt * speed, speed])

            def roll_out(u, x):
                new = move(x, u)
                return dict(x=new, before=x)

            def improve(u):
                path = rs.loop(roll_out, over=dict(u=u), init=dict(x=x0))

                def linearise(x, u):
                    new = move(x, u)
                    return dict(A=rs.jacobian(new, x), B=rs.jacobian(new, u))

                local = rs.loop(linearise, over=dict(x=path.before, u=u))

                def back(A, B, x, u, V, v):
                    Qx, Qu = dt * x + A.T @ v, dt * price * u + rs.dot(B, v)
                    Qxx = dt * rs.eye(2) + A.T @ V @ A
                    Quu = dt * price + rs.dot(B, V @ B)
                    Qux = B @ V @ A
                    k, K = -Qu / Quu, -Qux / Quu
                    return dict(V=Qxx - rs.outer(Qux, Qux) / Quu, v=Qx + Qu * K, k=k, K=K)

                end = path.x[-1]
                over = dict(A=local.A, B=local.B, x=path.before, u=u)
                gains = rs.loop(back, over=over, init=dict(V=10.0 * rs.eye(2), v=10.0 * end), reverse=True)

                def forward(u, k, K, old, x):
                    u = u + k + rs.dot(K, x - old)
                    return dict(x=move(x, u), u=u)

                new = rs.loop(forward, over=dict(u=u, k=gains.k, K=gains.K, old=path.before), init=dict(x=x0))
                cost = 0.5 * dt * (rs.sum(path.before**2) + price * rs.sum(u**2)) + 5 * rs.sum(end**2)
                return dict(u=new.u, cost=cost)

            out = rs.loop(improve, init=dict(u=controls), n_steps=iterations)
            return out.u[-1], out.cost

        return plan

    def jax(self, horizon, iterations):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def plan(x0, controls, dt, price):
            def move(x, u):
                speed = x[1] + dt * (jnp.sin(x[0]) + u - 0.1 * x[1])
                return jnp.stack([x[0] + dt * speed, speed])

            def improve(u, _):
                end, xs = lax.scan(lambda x, u: (move(x, u), x), x0, u)
                A, B = jax.vmap(jax.jacfwd(move, argnums=(0, 1)))(xs, u)

                def back(state, row):
                    V, v = state
                    A, B, x, u = row
                    Qx, Qu = dt * x + A.T @ v, dt * price * u + B @ v
                    Qxx = dt * jnp.eye(2) + A.T @ V @ A
                    Quu = dt * price + B @ V @ B
                    Qux = B @ V @ A
                    k, K = -Qu / Quu, -Qux / Quu
                    return (Qxx - jnp.outer(Qux, Qux) / Quu, Qx + Qu * K), (k, K)

                _, (k, K) = lax.scan(back, (10.0 * jnp.eye(2), 10.0 * end), (A, B, xs, u), reverse=True)

                def forward(x, row):
                    u, k, K, old = row
                    u = u + k + K @ (x - old)
                    return move(x, u), u

                _, new = lax.scan(forward, x0, (u, k, K, xs))
                cost = 0.5 * dt * (jnp.sum(xs**2) + price * jnp.sum(u**2)) + 5 * jnp.sum(end**2)
                return new, cost

            return lax.scan(improve, controls, None, length=iterations)

        return plan
