"""Control, robots and signals: estimation over a window, control by sampled paths, several models at once, a crane."""

import numpy as np

import rscan as rs
from models import Model


class MovingHorizonTank(Model):
    """Two tanks, of which one level is measured: at each sample the states in a window are fitted by Gauss-Newton steps."""

    kind = "control, robotics, signals"
    dtype = "float64"
    size = dict(samples=60, window=8, iterations=3)
    small = dict(samples=4, window=3, iterations=2)
    rtol = 1e-8

    def make(self, random, samples, window, iterations):
        inflow = 0.5 + 0.2 * np.sign(np.sin(np.arange(samples + window) / 9))
        x, levels = np.array([1.0, 0.7]), []
        for u in inflow:
            levels.append(x[1] + 0.02 * random.normal())
            x = x + 0.2 * np.array([u - 0.5 * x[0] ** 0.5, 0.5 * x[0] ** 0.5 - 0.6 * x[1] ** 0.5]) + 0.01 * random.normal(size=2)
        return inflow, np.array(levels), np.array([0.8, 0.8])

    def rscan(self, samples, window, iterations):
        def flow(x, u):
            out = rs.sqrt(rs.maximum(x, 1e-3))
            return x + 0.2 * rs.stack([u - 0.5 * out[0], 0.5 * out[0] - 0.6 * out[1]])

        def residuals(z, us, ys, prior):  # z: the first state and the disturbances of the steps
            def step(u, y, w, x):
                return dict(x=flow(x, u) + w, misfit=(y - x[1]) / 0.02)

            w = rs.reshape(z[2:], (window, 2))
            out = rs.loop(step, over=dict(u=us, y=ys, w=w), init=dict(x=z[:2]))
            return rs.concatenate([(z[:2] - prior) / 0.1, z[2:] / 0.01, out.misfit]), out.last.x

        @rs.compile
        def estimate(inflow, levels, prior):
            def sample(t, prior):
                us, ys = inflow[t : t + window], levels[t : t + window]

                def newton(z):
                    r, _ = residuals(z, us, ys, prior)
                    j = rs.jacobian(lambda z: residuals(z, us, ys, prior)[0])(z)
                    return z - rs.linalg.solve(j.T @ j, j.T @ r)

                z = rs.loop(newton, init=rs.concatenate([prior, rs.zeros(2 * window)]), n_steps=iterations).last
                _, now = residuals(z, us, ys, prior)
                return dict(prior=flow(z[:2], us[0]) + z[2:4], now=now)

            return rs.loop(sample, over=dict(t=rs.arange(samples)), init=dict(prior=prior)).now

        return estimate

    def jax(self, samples, window, iterations):
        import jax, jax.numpy as jnp

        def flow(x, u):
            out = jnp.sqrt(jnp.maximum(x, 1e-3))
            return x + 0.2 * jnp.stack([u - 0.5 * out[0], 0.5 * out[0] - 0.6 * out[1]])

        def residuals(z, us, ys, prior):
            def step(x, uyw):
                u, y, w = uyw
                return flow(x, u) + w, (y - x[1]) / 0.02

            last, misfit = jax.lax.scan(step, z[:2], (us, ys, z[2:].reshape(window, 2)))
            return jnp.concatenate([(z[:2] - prior) / 0.1, z[2:] / 0.01, misfit]), last

        @jax.jit
        def estimate(inflow, levels, prior):
            def sample(prior, t):
                us = jax.lax.dynamic_slice(inflow, (t,), (window,))
                ys = jax.lax.dynamic_slice(levels, (t,), (window,))

                def newton(z, _):
                    r, _ = residuals(z, us, ys, prior)
                    j = jax.jacfwd(lambda z: residuals(z, us, ys, prior)[0])(z)
                    return z - jnp.linalg.solve(j.T @ j, j.T @ r), None

                z = jax.lax.scan(newton, jnp.concatenate([prior, jnp.zeros(2 * window)]), None, length=iterations)[0]
                _, now = residuals(z, us, ys, prior)
                return flow(z[:2], us[0]) + z[2:4], now

            return jax.lax.scan(sample, prior, jnp.arange(samples))[1]

        return estimate


class PathIntegralSwingUp(Model):
    """Model predictive path integrals: a pendulum on a cart swings up, each control a mean of noisy plans, weighted by their costs."""

    kind = "control, robotics, signals"
    dtype = "float32"
    size = dict(steps=30, plans=64, horizon=25)
    small = dict(steps=3, plans=4, horizon=4)
    rtol, atol = 2e-3, 1e-4

    def make(self, random, steps, plans, horizon):
        noise = random.normal(size=(steps, plans, horizon), scale=3.0).astype("f4")
        return np.array([0.0, 0.0, 3.0, 0.0], "f4"), noise

    def rscan(self, steps, plans, horizon):
        dt = 0.04

        def move(x, force):
            at, speed, angle, turn = x[0], x[1], x[2], x[3]
            s, c = rs.sin(angle), rs.cos(angle)
            push = (force + 0.1 * turn**2 * s) / 1.1
            spin = (9.8 * s - c * push) / (0.5 * (4 / 3 - 0.1 * c**2 / 1.1))
            pull = push - 0.05 * spin * c / 1.1
            return rs.stack([at + dt * speed, speed + dt * pull, angle + dt * turn, turn + dt * spin])

        def cost_of(x, u):
            return 5 * (1 - rs.cos(x[2])) + 0.1 * x[3] ** 2 + 0.5 * x[0] ** 2 + 0.001 * u**2

        @rs.compile
        def swing(x, noise):
            def control(noise, x, plan):
                def rollout(noise):
                    def ahead(u, y, cost):
                        y = move(y, u)
                        return y, cost + cost_of(y, u)

                    return rs.loop(ahead, over=plan + noise, init=(x, np.float32(0))).last[1]

                costs = rs.vmap(rollout)(noise)
                plan = plan + rs.softmax(-costs / 5.0) @ noise
                x = move(x, plan[0])
                plan = rs.concatenate([plan[1:], plan[-1:]])
                return dict(x=x, plan=plan, best=rs.min(costs))

            out = rs.loop(control, over=dict(noise=noise), init=dict(x=x, plan=rs.zeros(horizon, dtype="float32")))
            return out.x, out.best

        return swing

    def jax(self, steps, plans, horizon):
        import jax, jax.numpy as jnp

        dt = 0.04

        def move(x, force):
            at, speed, angle, turn = x
            s, c = jnp.sin(angle), jnp.cos(angle)
            push = (force + 0.1 * turn**2 * s) / 1.1
            spin = (9.8 * s - c * push) / (0.5 * (4 / 3 - 0.1 * c**2 / 1.1))
            pull = push - 0.05 * spin * c / 1.1
            return jnp.stack([at + dt * speed, speed + dt * pull, angle + dt * turn, turn + dt * spin])

        def cost_of(x, u):
            return 5 * (1 - jnp.cos(x[2])) + 0.1 * x[3] ** 2 + 0.5 * x[0] ** 2 + 0.001 * u**2

        @jax.jit
        def swing(x, noise):
            def control(carry, noise):
                x, plan = carry

                def rollout(noise):
                    def ahead(carry, u):
                        y, cost = carry
                        y = move(y, u)
                        return (y, cost + cost_of(y, u)), None

                    return jax.lax.scan(ahead, (x, jnp.float32(0)), plan + noise)[0][1]

                costs = jax.vmap(rollout)(noise)
                plan = plan + jax.nn.softmax(-costs / 5.0) @ noise
                x = move(x, plan[0])
                plan = jnp.concatenate([plan[1:], plan[-1:]])
                return (x, plan), (x, jnp.min(costs))

            return jax.lax.scan(control, (x, jnp.zeros(horizon, jnp.float32)), noise)[1]

        return swing


class InteractingModelsLikelihood(Model):
    """Blom and Bar-Shalom's interacting filters: a target that flies straight or turns hard, its likelihood and gradient."""

    kind = "control, robotics, signals"
    dtype = "float64"
    size = dict(steps=200)
    small = dict(steps=5)
    rtol = 1e-7

    def make(self, random, steps):
        force = np.repeat(random.normal(size=steps // 20 + 1) * (random.random(steps // 20 + 1) < 0.4), 20)[:steps]
        at = np.cumsum(np.cumsum(force * 0.1)) + random.normal(size=steps)
        p = dict(q=np.array([-4.0, -2.0, 0.5]), r=0.0, switch=2.5 * np.eye(3))
        return p, at

    def rscan(self, steps):
        f = np.array([[1.0, 1.0], [0.0, 1.0]])
        shape = np.array([[0.25, 0.5], [0.5, 1.0]])

        @rs.compile
        def nll(p, at):
            q, r = rs.exp(p["q"]), rs.exp(p["r"])
            chain = rs.softmax(p["switch"], axis=1)

            def kalman(m, c, q, y):
                m = f @ m
                c = f @ c @ f.T + q * shape
                s = c[0, 0] + r
                gain = c[:, 0] / s
                error = y - m[0]
                logp = -0.5 * (rs.log(2 * np.pi * s) + error**2 / s)
                return m + gain * error, c - rs.outer(gain, c[0]), logp

            def step(y, m, c, mu):
                ahead = mu @ chain
                mix = chain * mu[:, None] / ahead  # from, to
                mixed = mix.T @ m
                apart = m[:, None] - mixed[None]  # from, to, 2
                spread = c[:, None] + apart[..., :, None] * apart[..., None, :]
                mixed_c = rs.einsum("ij,ijkl->jkl", mix, spread)
                m, c, logp = rs.vmap(kalman, in_axes=(0, 0, 0, None))(mixed, mixed_c, q, y)
                joint = logp + rs.log(ahead)
                total = rs.logsumexp(joint)
                return dict(m=m, c=c, mu=rs.exp(joint - total), total=total)

            init = dict(m=rs.zeros((3, 2)), c=rs.array([10.0 * np.eye(2)] * 3), mu=rs.full(3, 1 / 3))
            return -rs.sum(rs.loop(step, over=dict(y=at), init=init).total)

        return rs.value_and_grad(nll)

    def jax(self, steps):
        import jax, jax.numpy as jnp

        f = jnp.array([[1.0, 1.0], [0.0, 1.0]])
        shape = jnp.array([[0.25, 0.5], [0.5, 1.0]])

        def nll(p, at):
            q, r = jnp.exp(p["q"]), jnp.exp(p["r"])
            chain = jax.nn.softmax(p["switch"], axis=1)

            def kalman(m, c, q, y):
                m = f @ m
                c = f @ c @ f.T + q * shape
                s = c[0, 0] + r
                gain = c[:, 0] / s
                error = y - m[0]
                logp = -0.5 * (jnp.log(2 * np.pi * s) + error**2 / s)
                return m + gain * error, c - jnp.outer(gain, c[0]), logp

            def step(carry, y):
                m, c, mu = carry
                ahead = mu @ chain
                mix = chain * mu[:, None] / ahead
                mixed = mix.T @ m
                apart = m[:, None] - mixed[None]
                spread = c[:, None] + apart[..., :, None] * apart[..., None, :]
                mixed_c = jnp.einsum("ij,ijkl->jkl", mix, spread)
                m, c, logp = jax.vmap(kalman, in_axes=(0, 0, 0, None))(mixed, mixed_c, q, y)
                joint = logp + jnp.log(ahead)
                total = jax.nn.logsumexp(joint)
                return (m, c, jnp.exp(joint - total)), total

            init = (jnp.zeros((3, 2)), jnp.stack([10.0 * jnp.eye(2)] * 3), jnp.full(3, 1 / 3))
            return -jnp.sum(jax.lax.scan(step, init, at)[1])

        return jax.jit(jax.value_and_grad(nll))


class CraneShaperHessian(Model):
    """A load on a rope below a crane: cost, gradient and Hessian by the knots of the trolley's acceleration and the rope's speed."""

    kind = "control, robotics, signals"
    dtype = "float64"
    size = dict(steps=250, knots=6)
    small = dict(steps=8, knots=3)
    rtol = 1e-8

    def make(self, random, steps, knots):
        p = dict(push=random.normal(size=knots, scale=0.5), hoist=random.normal(size=knots, scale=0.1))
        return p, np.array([3.0, 5.0])

    def rscan(self, steps, knots):
        dt = 8.0 / steps
        times, nodes = np.linspace(0, 1, steps), np.linspace(0, 1, knots)
        hats = np.array([np.interp(times, nodes, row) for row in np.eye(knots)]).T

        def cost(p, goal):
            def step(push, hoist, at, speed, swing, turn, rope):
                spin = -(9.81 * rs.sin(swing) + push * rs.cos(swing) + 2 * hoist * turn) / rope
                speed = speed + dt * push
                turn = turn + dt * spin
                swing = swing + dt * turn
                running = dt * (swing**2 + 0.01 * push**2 + 0.1 * hoist**2)
                return dict(at=at + dt * speed, speed=speed, swing=swing, turn=turn, rope=rope + dt * hoist, running=running)

            over = dict(push=hats @ p["push"], hoist=hats @ p["hoist"])
            out = rs.loop(step, over=over, init=dict(at=0.0, speed=0.0, swing=0.0, turn=0.0, rope=4.0))
            end = out.last
            off = (end.at - goal[0]) ** 2 + (end.rope - goal[1]) ** 2 + end.speed**2
            return rs.sum(out.running) + off + 10 * ((end.rope * end.turn) ** 2 + 9.81 * (1 - rs.cos(end.swing)) * end.rope)

        return rs.compile(lambda p, goal: (*rs.value_and_grad(cost)(p, goal), rs.hessian(cost)(p, goal)))

    def jax(self, steps, knots):
        import jax, jax.numpy as jnp

        dt = 8.0 / steps
        times, nodes = np.linspace(0, 1, steps), np.linspace(0, 1, knots)
        hats = jnp.array([np.interp(times, nodes, row) for row in np.eye(knots)]).T

        def cost(p, goal):
            def step(carry, x):
                (at, speed, swing, turn, rope), (push, hoist) = carry, x
                spin = -(9.81 * jnp.sin(swing) + push * jnp.cos(swing) + 2 * hoist * turn) / rope
                speed = speed + dt * push
                turn = turn + dt * spin
                swing = swing + dt * turn
                running = dt * (swing**2 + 0.01 * push**2 + 0.1 * hoist**2)
                return (at + dt * speed, speed, swing, turn, rope + dt * hoist), running

            init = tuple(jnp.asarray(v) for v in (0.0, 0.0, 0.0, 0.0, 4.0))
            (at, speed, swing, turn, rope), running = jax.lax.scan(step, init, (hats @ p["push"], hats @ p["hoist"]))
            off = (at - goal[0]) ** 2 + (rope - goal[1]) ** 2 + speed**2
            return jnp.sum(running) + off + 10 * ((rope * turn) ** 2 + 9.81 * (1 - jnp.cos(swing)) * rope)

        return jax.jit(lambda p, goal: (*jax.value_and_grad(cost)(p, goal), jax.hessian(cost)(p, goal)))
