"""Differentiated loops as statisticians, machine-learning and control people write them."""

import numpy as np
import rscan as rs
from models import Model

KIND = "inference"


class FitzHughAdaptive(Model):
    """A FitzHugh-Nagumo neuron, integrated by Bogacki and Shampine's pair with chosen steps; the slope of a cost by its parameters."""

    kind = KIND
    dtype = "float64"
    size = dict(span=40.0)
    small = dict(span=2.0)
    rtol, atol = 1e-7, 1e-10

    def make(self, random, span):
        return (np.array([0.7, 0.8, 12.5, 0.5]) * random.uniform(0.95, 1.05, size=4),)

    def rscan(self, span):
        def field(y, p):
            v, w = y[0], y[1]
            return rs.stack([v - v**3 / 3 - w + p[3], (v + p[0] - p[1] * w) / p[2], 0.1 * (v - 0.5) ** 2])

        @rs.compile
        def cost(p):
            def step(t, h, y):
                k1 = field(y, p)
                k2 = field(y + h / 2 * k1, p)
                k3 = field(y + 3 * h / 4 * k2, p)
                new = y + h * (2 / 9 * k1 + 1 / 3 * k2 + 4 / 9 * k3)
                k4 = field(new, p)
                error = h * (-5 / 72 * k1 + 1 / 12 * k2 + 1 / 9 * k3 - 1 / 8 * k4)
                scale = 1e-7 + 1e-5 * rs.maximum(rs.abs(y), rs.abs(new))
                ratio = rs.sqrt(rs.mean((error / scale) ** 2))
                good = ratio <= 1.0
                t = rs.where(good, t + h, t)
                y = rs.where(good, new, y)
                h = rs.minimum(h * rs.clip(0.9 * ratio ** (-1 / 3), 0.2, 5.0), span - t)
                return dict(t=t, h=h, y=y), rs.until(t >= span - 1e-9)

            out = rs.loop(step, init=dict(t=0.0, h=0.01, y=np.array([-1.0, 1.0, 0.0])))
            return out.last.y[2] + out.last.y[0] ** 2

        return rs.value_and_grad(cost)

    def jax(self, span):
        import jax, jax.numpy as jnp

        def field(y, p):
            v, w = y[0], y[1]
            return jnp.stack([v - v**3 / 3 - w + p[3], (v + p[0] - p[1] * w) / p[2], 0.1 * (v - 0.5) ** 2])

        def cost(p):
            def step(state):
                t, h, y = state
                k1 = field(y, p)
                k2 = field(y + h / 2 * k1, p)
                k3 = field(y + 3 * h / 4 * k2, p)
                new = y + h * (2 / 9 * k1 + 1 / 3 * k2 + 4 / 9 * k3)
                k4 = field(new, p)
                error = h * (-5 / 72 * k1 + 1 / 12 * k2 + 1 / 9 * k3 - 1 / 8 * k4)
                scale = 1e-7 + 1e-5 * jnp.maximum(jnp.abs(y), jnp.abs(new))
                ratio = jnp.sqrt(jnp.mean((error / scale) ** 2))
                good = ratio <= 1.0
                t = jnp.where(good, t + h, t)
                y = jnp.where(good, new, y)
                h = jnp.minimum(h * jnp.clip(0.9 * ratio ** (-1 / 3), 0.2, 5.0), span - t)
                return t, h, y

            y = jax.lax.while_loop(lambda s: s[0] < span - 1e-9, step, (0.0, 0.01, jnp.array([-1.0, 1.0, 0.0])))[2]
            value = y[2] + y[0] ** 2
            return value, value

        @jax.jit
        def value_and_grad(p):  # forwards: there is no reverse mode of while_loop
            slope, value = jax.jacfwd(cost, has_aux=True)(p)
            return value, slope

        return value_and_grad


class RobertsonNewton(Model):
    """Robertson's stiff reaction by implicit Euler, each step solved by Newton's method; fitted to measurements by its rate constants."""

    kind = KIND
    dtype = "float64"
    size = dict(steps=120)
    small = dict(steps=5)
    rtol, atol = 1e-7, 1e-9

    def make(self, random, steps):
        times = np.concatenate([[0.0], np.logspace(-5, 3, steps)])
        seen = np.stack([1.0 / (1 + 0.05 * times[1:] ** 0.5), 1 - 1.0 / (1 + 0.05 * times[1:] ** 0.5)], axis=1)
        return np.log([0.04, 3e7, 1e4]) + 0.05 * random.normal(size=3), np.diff(times), seen

    def rscan(self, steps):
        def rates(y, k):
            one, two, three = k[0] * y[0], k[1] * y[1] ** 2, k[2] * y[1] * y[2]
            return rs.stack([-one + three, one - two - three, two])

        @rs.compile
        def loss(log_k, gaps, seen):
            k = rs.exp(log_k)

            def step(gap, y):
                def newton(i, new):
                    residual = lambda z: z - y - gap * rates(z, k)
                    return new - rs.linalg.solve(rs.jacobian(residual)(new), residual(new))

                return rs.fori(0, 5, newton, y)

            rows = rs.loop(step, over=gaps, init=np.array([1.0, 0.0, 0.0]))
            return rs.sum((rs.stack([rows[:, 0], rows[:, 2]], axis=1) - seen) ** 2)

        return rs.value_and_grad(loss)

    def jax(self, steps):
        import jax, jax.numpy as jnp

        def rates(y, k):
            one, two, three = k[0] * y[0], k[1] * y[1] ** 2, k[2] * y[1] * y[2]
            return jnp.stack([-one + three, one - two - three, two])

        def loss(log_k, gaps, seen):
            k = jnp.exp(log_k)

            def step(y, gap):
                def newton(i, new):
                    residual = lambda z: z - y - gap * rates(z, k)
                    return new - jnp.linalg.solve(jax.jacfwd(residual)(new), residual(new))

                y = jax.lax.fori_loop(0, 5, newton, y)
                return y, y

            rows = jax.lax.scan(step, jnp.array([1.0, 0.0, 0.0]), gaps)[1]
            return jnp.sum((rows[:, jnp.array([0, 2])] - seen) ** 2)

        return jax.jit(jax.value_and_grad(loss))


class HawkesHessian(Model):
    """The likelihood of a self-exciting process of two kinds of events: its value, gradient and Hessian, for one step of Newton's method."""

    kind = KIND
    dtype = "float64"
    size = dict(events=800)
    small = dict(events=6)
    rtol, atol = 1e-8, 1e-9

    def make(self, random, events):
        theta = np.log([0.5, 0.3, 0.4, 0.2, 0.1, 0.3, 1.5])
        return theta, random.exponential(0.7, size=events), random.integers(0, 2, size=events)

    def rscan(self, events):
        def nll(theta, gaps, marks):
            p = rs.exp(theta)
            mu, alpha, beta = p[:2], rs.reshape(p[2:6], (2, 2)), p[6]

            def step(gap, mark, excited, total):
                excited = excited * rs.exp(-beta * gap)
                rate = mu[mark] + beta * rs.sum(alpha[mark] * excited)
                return dict(excited=excited.at[mark].add(1.0), total=total + rs.log(rate))

            out = rs.loop(step, over=dict(gap=gaps, mark=marks), init=dict(excited=rs.zeros(2), total=0.0))
            times = rs.cumsum(gaps)
            kicks = rs.sum(alpha, axis=0)[marks] * (1 - rs.exp(-beta * (times[-1] - times)))
            return rs.sum(mu) * times[-1] + rs.sum(kicks) - out.last.total

        @rs.compile
        def newton(theta, gaps, marks):
            value, slope = rs.value_and_grad(nll)(theta, gaps, marks)
            curvature = rs.hessian(nll)(theta, gaps, marks)
            return value, slope, curvature, rs.linalg.solve(curvature + 10.0 * rs.eye(7), slope)

        return newton

    def jax(self, events):
        import jax, jax.numpy as jnp

        def nll(theta, gaps, marks):
            p = jnp.exp(theta)
            mu, alpha, beta = p[:2], jnp.reshape(p[2:6], (2, 2)), p[6]

            def step(carry, x):
                excited, total = carry
                gap, mark = x
                excited = excited * jnp.exp(-beta * gap)
                rate = mu[mark] + beta * jnp.sum(alpha[mark] * excited)
                return (excited.at[mark].add(1.0), total + jnp.log(rate)), None

            (_, total), _ = jax.lax.scan(step, (jnp.zeros(2), 0.0), (gaps, marks))
            times = jnp.cumsum(gaps)
            kicks = jnp.sum(alpha, axis=0)[marks] * (1 - jnp.exp(-beta * (times[-1] - times)))
            return jnp.sum(mu) * times[-1] + jnp.sum(kicks) - total

        @jax.jit
        def newton(theta, gaps, marks):
            value, slope = jax.value_and_grad(nll)(theta, gaps, marks)
            curvature = jax.hessian(nll)(theta, gaps, marks)
            return value, slope, curvature, jnp.linalg.solve(curvature + 10.0 * jnp.eye(7), slope)

        return newton


class BanditSubjects(Model):
    """Subjects who learn a bandit of three arms, each with parameters and a number of trials of its own: likelihood and slope of each."""

    kind = KIND
    dtype = "float64"
    size = dict(subjects=60, trials=200)
    small = dict(subjects=3, trials=6)
    rtol, atol = 1e-8, 1e-10

    def make(self, random, subjects, trials):
        p = random.normal(scale=0.5, size=(subjects, 4)) + np.array([0.0, -0.5, 0.7, 0.2])
        choices = random.integers(0, 3, size=(subjects, trials))
        rewards = (random.uniform(size=(subjects, trials)) < 0.2 + 0.25 * choices).astype(float)
        return p, choices, rewards, random.integers(trials // 2, trials + 1, size=subjects)

    def rscan(self, subjects, trials):
        def nll(p, choices, rewards, count):
            gain, loss, beta, stick = rs.sigmoid(p[0]), rs.sigmoid(p[1]), rs.exp(p[2]), p[3]

            def step(choice, reward, q, before, total):
                logits = beta * q + stick * before
                surprise = reward - q[choice]
                rate = rs.where(surprise > 0, gain, loss)
                return dict(
                    q=q.at[choice].add(rate * surprise),
                    before=rs.zeros(3).at[choice].set(1.0),
                    total=total + rs.logsumexp(logits) - logits[choice],
                )

            out = rs.loop(
                step,
                over=dict(choice=choices, reward=rewards),
                n_steps=count,
                init=dict(q=rs.zeros(3) + 0.5, before=rs.zeros(3), total=0.0),
            )
            return out.last.total

        return rs.compile(rs.vmap(rs.value_and_grad(nll)))

    def jax(self, subjects, trials):
        import jax, jax.numpy as jnp

        def nll(p, choices, rewards, count):
            gain, loss, beta, stick = jax.nn.sigmoid(p[0]), jax.nn.sigmoid(p[1]), jnp.exp(p[2]), p[3]

            def step(carry, x):
                q, before, total = carry
                choice, reward, t = x
                logits = beta * q + stick * before
                surprise = reward - q[choice]
                rate = jnp.where(surprise > 0, gain, loss)
                total = total + jnp.where(t < count, jax.nn.logsumexp(logits) - logits[choice], 0.0)
                return (q.at[choice].add(rate * surprise), jnp.zeros(3).at[choice].set(1.0), total), None

            start = (jnp.full(3, 0.5), jnp.zeros(3), 0.0)
            return jax.lax.scan(step, start, (choices, rewards, jnp.arange(trials)))[0][2]

        return jax.jit(jax.vmap(jax.value_and_grad(nll)))


class PenaltyTuning(Model):
    """A softmax regression trained by momentum; the slope of its validation loss by rate, momentum and a penalty for each feature."""

    kind = KIND
    dtype = "float32"
    size = dict(rows=80, features=16, classes=3, steps=40)
    small = dict(rows=6, features=3, classes=2, steps=4)
    rtol, atol = 1e-3, 1e-5

    def make(self, random, rows, features, classes, steps):
        truth = random.normal(size=(features, classes))
        x = random.normal(size=(2, rows, features)).astype("float32")
        y = np.argmax(x @ truth + random.gumbel(size=(2, rows, classes)), axis=2)
        hyper = dict(rate=np.float32(-1.0), momentum=np.float32(1.0), penalty=np.full(features, -3.0, "float32"))
        return hyper, x[0], y[0], x[1], y[1]

    def rscan(self, rows, features, classes, steps):
        def cross_entropy(w, x, y):
            logits = x @ w
            return rs.mean(rs.logsumexp(logits, axis=1) - logits[rs.arange(rows), y])

        @rs.compile
        def validation(hyper, x, y, x_new, y_new):
            rate, momentum, penalty = rs.exp(hyper["rate"]), rs.sigmoid(hyper["momentum"]), rs.exp(hyper["penalty"])

            def training(w):
                return cross_entropy(w, x, y) + rs.sum(penalty[:, None] * w**2)

            def step(w, v):
                v = momentum * v - rate * rs.grad(training)(w)
                return dict(w=w + v, v=v)

            zeros = rs.zeros((features, classes), dtype="float32")
            w = rs.loop(step, init=dict(w=zeros, v=zeros), n_steps=steps).last.w
            return cross_entropy(w, x_new, y_new)

        return rs.value_and_grad(validation)

    def jax(self, rows, features, classes, steps):
        import jax, jax.numpy as jnp

        def cross_entropy(w, x, y):
            logits = x @ w
            return jnp.mean(jax.nn.logsumexp(logits, axis=1) - logits[jnp.arange(rows), y])

        def validation(hyper, x, y, x_new, y_new):
            rate, momentum, penalty = jnp.exp(hyper["rate"]), jax.nn.sigmoid(hyper["momentum"]), jnp.exp(hyper["penalty"])

            def training(w):
                return cross_entropy(w, x, y) + jnp.sum(penalty[:, None] * w**2)

            def step(carry, _):
                w, v = carry
                v = momentum * v - rate * jax.grad(training)(w)
                return (w + v, v), None

            zeros = jnp.zeros((features, classes), dtype="float32")
            (w, _), _ = jax.lax.scan(step, (zeros, zeros), None, length=steps)
            return cross_entropy(w, x_new, y_new)

        return jax.jit(jax.value_and_grad(validation))


class StackNetwork(Model):
    """A recurrent network with a stack that is pushed and popped by degrees, trained to foretell symbols of sequences of unlike lengths."""

    kind = KIND
    dtype = "float32"
    size = dict(steps=30, batch=12, symbols=6, hidden=20, depth=8, width=5)
    small = dict(steps=4, batch=2, symbols=3, hidden=4, depth=3, width=2)
    rtol, atol = 1e-3, 1e-5

    def make(self, random, steps, batch, symbols, hidden, depth, width):
        def weight(*shape):
            return random.normal(scale=shape[0] ** -0.5, size=shape).astype("float32")

        p = dict(
            embed=weight(symbols, hidden),
            recur=weight(hidden, hidden),
            top=weight(width, hidden),
            bias=weight(hidden),
            act=weight(hidden, 3),
            value=weight(hidden, width),
            out=weight(hidden, symbols),
        )
        lengths = random.integers(steps // 2, steps + 1, size=batch)
        mask = (np.arange(steps)[:, None] < lengths).astype("float32")
        return p, random.integers(0, symbols, size=(steps + 1, batch)), mask

    def rscan(self, steps, batch, symbols, hidden, depth, width):
        @rs.compile
        def loss(p, text, mask):
            bottom = rs.zeros((batch, 1, width), dtype="float32")

            def step(now, later, weight, h, stack):
                h = rs.tanh(p["embed"][now] + h @ p["recur"] + stack[:, 0] @ p["top"] + p["bias"])
                act = rs.softmax(h @ p["act"], axis=1)
                value = rs.sigmoid(h @ p["value"])
                pushed = rs.concatenate([value[:, None, :], stack[:, :-1]], axis=1)
                popped = rs.concatenate([stack[:, 1:], bottom], axis=1)
                stack = act[:, 0, None, None] * pushed + act[:, 1, None, None] * popped + act[:, 2, None, None] * stack
                logits = h @ p["out"]
                miss = rs.logsumexp(logits, axis=1) - logits[rs.arange(batch), later]
                return dict(h=h, stack=stack, miss=rs.sum(weight * miss))

            out = rs.loop(
                step,
                over=dict(now=text[:-1], later=text[1:], weight=mask),
                init=dict(h=rs.zeros((batch, hidden), dtype="float32"), stack=rs.zeros((batch, depth, width), dtype="float32")),
            )
            return rs.sum(out.miss) / rs.sum(mask)

        return rs.value_and_grad(loss)

    def jax(self, steps, batch, symbols, hidden, depth, width):
        import jax, jax.numpy as jnp

        def loss(p, text, mask):
            bottom = jnp.zeros((batch, 1, width), dtype="float32")

            def step(carry, x):
                h, stack = carry
                now, later, weight = x
                h = jnp.tanh(p["embed"][now] + h @ p["recur"] + stack[:, 0] @ p["top"] + p["bias"])
                act = jax.nn.softmax(h @ p["act"], axis=1)
                value = jax.nn.sigmoid(h @ p["value"])
                pushed = jnp.concatenate([value[:, None, :], stack[:, :-1]], axis=1)
                popped = jnp.concatenate([stack[:, 1:], bottom], axis=1)
                stack = act[:, 0, None, None] * pushed + act[:, 1, None, None] * popped + act[:, 2, None, None] * stack
                logits = h @ p["out"]
                miss = jax.nn.logsumexp(logits, axis=1) - logits[jnp.arange(batch), later]
                return (h, stack), jnp.sum(weight * miss)

            start = (jnp.zeros((batch, hidden), dtype="float32"), jnp.zeros((batch, depth, width), dtype="float32"))
            return jnp.sum(jax.lax.scan(step, start, (text[:-1], text[1:], mask))[1]) / jnp.sum(mask)

        return jax.jit(jax.value_and_grad(loss))


class ParkingPlanner(Model):
    """Iterative LQR parks a car beside a round obstacle: linearised by Jacobians and Hessians in the step, the best of four steps taken."""

    kind = KIND
    dtype = "float64"
    size = dict(horizon=30, rounds=8)
    small = dict(horizon=4, rounds=2)
    rtol, atol = 1e-6, 1e-8

    def make(self, random, horizon, rounds):
        return (
            np.array([0.0, 0.0, 0.2, 0.5]) + 0.05 * random.normal(size=4),
            np.array([3.0, 1.0, 0.0, 0.0]),
            0.05 * random.normal(size=(horizon, 2)),
        )

    def rscan(self, horizon, rounds):
        def move(x, u):
            return x + 0.15 * rs.stack([x[3] * rs.cos(x[2]), x[3] * rs.sin(x[2]), x[3] * u[1], u[0]])

        def cost(x, u, goal):
            near = (x[0] - 1.5) ** 2 + (x[1] - 0.3) ** 2
            return 0.05 * rs.sum((x - goal) ** 2) + 0.1 * rs.sum(u**2) + 0.5 * rs.exp(-4 * near)

        def last_cost(x, goal):
            return 5.0 * rs.sum((x - goal) ** 2)

        @rs.compile
        def plan(x0, goal, us):
            def backward(x, u, vx, vxx):
                a, b = rs.jacobian(move, argnums=(0, 1))(x, u)
                lx, lu = rs.grad(cost, argnums=(0, 1))(x, u, goal)
                (lxx, _), (lux, luu) = rs.hessian(cost, argnums=(0, 1))(x, u, goal)
                qx, qu = lx + a.T @ vx, lu + b.T @ vx
                qxx, quu, qux = lxx + a.T @ vxx @ a, luu + b.T @ vxx @ b + 0.05 * rs.eye(2), lux + b.T @ vxx @ a
                k, gain = -rs.linalg.solve(quu, qu), -rs.linalg.solve(quu, qux)
                vxx = qxx + gain.T @ quu @ gain + gain.T @ qux + qux.T @ gain
                return dict(vx=qx + gain.T @ quu @ k + gain.T @ qu + qux.T @ k, vxx=0.5 * (vxx + vxx.T), k=k, gain=gain)

            def rollout(size, xs, us, k, gain):
                def forward(x_old, u_old, k, gain, x, total):
                    u = u_old + size * k + gain @ (x - x_old)
                    return dict(x=move(x, u), total=total + cost(x, u, goal), u=u, at=x)

                out = rs.loop(forward, over=dict(x_old=xs, u_old=us, k=k, gain=gain), init=dict(x=x0, total=0.0))
                return out.at, out.u, out.last.total + last_cost(out.last.x, goal)

            def improve(xs, us, end):
                vx = rs.grad(last_cost)(end, goal)
                vxx = rs.hessian(last_cost)(end, goal)
                back = rs.loop(backward, over=dict(x=xs, u=us), init=dict(vx=vx, vxx=vxx), reverse=True)
                sizes = np.array([1.0, 0.5, 0.25, 0.1])
                all_xs, all_us, totals = rs.vmap(rollout, (0, None, None, None, None))(sizes, xs, us, back.k, back.gain)
                best = rs.argmin(totals)
                xs, us = all_xs[best], all_us[best]
                return dict(xs=xs, us=us, end=move(xs[-1], us[-1]), total=totals[best])

            start = rs.loop(lambda u, x: dict(x=move(x, u), at=x), over=dict(u=us), init=dict(x=x0))
            out = rs.loop(improve, init=dict(xs=start.at, us=us, end=start.last.x), n_steps=rounds)
            return out.last.us, out.last.end, out.total

        return plan

    def jax(self, horizon, rounds):
        import jax, jax.numpy as jnp

        def move(x, u):
            return x + 0.15 * jnp.stack([x[3] * jnp.cos(x[2]), x[3] * jnp.sin(x[2]), x[3] * u[1], u[0]])

        def cost(x, u, goal):
            near = (x[0] - 1.5) ** 2 + (x[1] - 0.3) ** 2
            return 0.05 * jnp.sum((x - goal) ** 2) + 0.1 * jnp.sum(u**2) + 0.5 * jnp.exp(-4 * near)

        def last_cost(x, goal):
            return 5.0 * jnp.sum((x - goal) ** 2)

        @jax.jit
        def plan(x0, goal, us):
            def backward(carry, xu):
                vx, vxx = carry
                x, u = xu
                a, b = jax.jacfwd(move, argnums=(0, 1))(x, u)
                lx, lu = jax.grad(cost, argnums=(0, 1))(x, u, goal)
                (lxx, _), (lux, luu) = jax.hessian(cost, argnums=(0, 1))(x, u, goal)
                qx, qu = lx + a.T @ vx, lu + b.T @ vx
                qxx, quu, qux = lxx + a.T @ vxx @ a, luu + b.T @ vxx @ b + 0.05 * jnp.eye(2), lux + b.T @ vxx @ a
                k, gain = -jnp.linalg.solve(quu, qu), -jnp.linalg.solve(quu, qux)
                vxx = qxx + gain.T @ quu @ gain + gain.T @ qux + qux.T @ gain
                return (qx + gain.T @ quu @ k + gain.T @ qu + qux.T @ k, 0.5 * (vxx + vxx.T)), (k, gain)

            def rollout(size, xs, us, k, gain):
                def forward(carry, row):
                    x, total = carry
                    x_old, u_old, k, gain = row
                    u = u_old + size * k + gain @ (x - x_old)
                    return (move(x, u), total + cost(x, u, goal)), (x, u)

                (end, total), (xs, us) = jax.lax.scan(forward, (x0, 0.0), (xs, us, k, gain))
                return xs, us, total + last_cost(end, goal)

            def improve(carry, _):
                xs, us, end = carry
                vx = jax.grad(last_cost)(end, goal)
                vxx = jax.hessian(last_cost)(end, goal)
                _, (k, gain) = jax.lax.scan(backward, (vx, vxx), (xs, us), reverse=True)
                sizes = jnp.array([1.0, 0.5, 0.25, 0.1])
                all_xs, all_us, totals = jax.vmap(rollout, (0, None, None, None, None))(sizes, xs, us, k, gain)
                best = jnp.argmin(totals)
                xs, us = all_xs[best], all_us[best]
                return (xs, us, move(xs[-1], us[-1])), totals[best]

            end, xs = jax.lax.scan(lambda x, u: (move(x, u), x), x0, us)
            (_, us, end), totals = jax.lax.scan(improve, (xs, us, end), None, length=rounds)
            return us, end, totals

        return plan


class PoissonVariational(Model):
    """Variational inference of counts in groups, by drawn gradients of the bound and Adam; the noise is given."""

    kind = KIND
    dtype = "float64"
    size = dict(steps=150, draws=4, groups=8, rows=60)
    small = dict(steps=5, draws=2, groups=2, rows=6)
    rtol, atol = 1e-7, 1e-9

    def make(self, random, steps, draws, groups, rows):
        group = random.integers(0, groups, size=rows)
        x = random.normal(size=rows)
        counts = random.poisson(np.exp(0.5 + 0.3 * np.sin(group) + 0.4 * x)).astype(float)
        return group, x, counts, random.normal(size=(steps, draws, groups + 3))

    def rscan(self, steps, draws, groups, rows):
        @rs.compile
        def fit(group, x, counts, noise):
            def log_joint(z):
                mean, log_tau, slope, effects = z[0], z[1], z[2], z[3:]
                eta = mean + rs.exp(log_tau) * effects[group] + slope * x
                prior = rs.sum(rs.stats.norm.logpdf(z[:3], 0.0, 2.0)) + rs.sum(rs.stats.norm.logpdf(effects))
                return prior + rs.sum(counts * eta - rs.exp(eta))

            def bound(p, e):
                z = p["mean"] + rs.exp(p["log_scale"]) * e
                return -rs.mean(rs.vmap(log_joint)(z)) - rs.sum(p["log_scale"])

            adam = rs.optim.adam(0.05)

            def step(e, p, state):
                value, slope = rs.value_and_grad(bound)(p, e)
                p, state = adam.step(slope, state, p)
                return dict(p=p, state=state, value=value)

            p = dict(mean=rs.zeros(groups + 3), log_scale=rs.zeros(groups + 3) - 1.0)
            out = rs.loop(step, over=dict(e=noise), init=dict(p=p, state=adam.init(p)))
            return out.last.p, out.value

        return fit

    def jax(self, steps, draws, groups, rows):
        import jax, jax.numpy as jnp

        @jax.jit
        def fit(group, x, counts, noise):
            def log_joint(z):
                mean, log_tau, slope, effects = z[0], z[1], z[2], z[3:]
                eta = mean + jnp.exp(log_tau) * effects[group] + slope * x
                prior = jnp.sum(jax.scipy.stats.norm.logpdf(z[:3], 0.0, 2.0)) + jnp.sum(jax.scipy.stats.norm.logpdf(effects))
                return prior + jnp.sum(counts * eta - jnp.exp(eta))

            def bound(p, e):
                z = p["mean"] + jnp.exp(p["log_scale"]) * e
                return -jnp.mean(jax.vmap(log_joint)(z)) - jnp.sum(p["log_scale"])

            def step(carry, e):
                p, m, v, t = carry
                value, slope = jax.value_and_grad(bound)(p, e)
                t = t + 1
                m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, slope)
                v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, slope)
                p = jax.tree.map(lambda p, m, v: p - 0.05 * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8), p, m, v)
                return (p, m, v, t), value

            p = dict(mean=jnp.zeros(groups + 3), log_scale=jnp.zeros(groups + 3) - 1.0)
            zeros = jax.tree.map(jnp.zeros_like, p)
            (p, _, _, _), values = jax.lax.scan(step, (p, zeros, zeros, 0), noise)
            return p, values

        return fit


class FunnelSlice(Model):
    """Neal's funnel, sampled coordinate by coordinate by slices that step out and shrink; uniform numbers are taken from a table."""

    kind = KIND
    dtype = "float64"
    size = dict(samples=300, extents=4)
    small = dict(samples=3, extents=2)
    rtol, atol = 1e-8, 1e-10

    def make(self, random, samples, extents):
        return 0.5 * random.normal(size=extents), random.uniform(size=40 * samples * extents)

    def rscan(self, samples, extents):
        def log_density(x):
            return -(x[0] ** 2) / 18 - 0.5 * (extents - 1) * x[0] - 0.5 * rs.sum(x[1:] ** 2) * rs.exp(-x[0])

        @rs.compile
        def sample(x0, table):
            size, width, most = table.shape[0], 2.0, 20

            def coordinate(i, state):
                x, used = state
                u = lambda k: table[(used + k) % size]
                along = lambda value: log_density(x.at[i].set(value))
                level = log_density(x) + rs.log(u(0))
                left = x[i] - width * u(1)
                right = left + width

                def out(sign):
                    return lambda end: (end + sign * width, rs.until(along(end + sign * width) <= level))

                left = rs.loop(out(-1.0), init=left, n_steps=rs.where(along(left) > level, most, 0)).last
                right = rs.loop(out(1.0), init=right, n_steps=rs.where(along(right) > level, most, 0)).last

                def shrink(left, right, value, used):
                    value = left + table[used % size] * (right - left)
                    below = value < x[i]
                    inside = along(value) > level
                    return dict(
                        left=rs.where(below, value, left), right=rs.where(below, right, value), value=value, used=used + 1
                    ), rs.until(inside)

                found = rs.loop(shrink, init=dict(left=left, right=right, value=x[i], used=used + 2), n_steps=100).last
                return x.at[i].set(found.value), found.used

            def sweep(x, used):
                x, used = rs.fori(0, extents, coordinate, (x, used))
                return dict(x=x, used=used)

            out = rs.loop(sweep, init=dict(x=x0, used=0), n_steps=samples)
            return out.x, out.last.used

        return sample

    def jax(self, samples, extents):
        import jax, jax.numpy as jnp

        def log_density(x):
            return -(x[0] ** 2) / 18 - 0.5 * (extents - 1) * x[0] - 0.5 * jnp.sum(x[1:] ** 2) * jnp.exp(-x[0])

        @jax.jit
        def sample(x0, table):
            size, width, most = table.shape[0], 2.0, 20

            def coordinate(i, state):
                x, used = state
                u = lambda k: table[(used + k) % size]
                along = lambda value: log_density(x.at[i].set(value))
                level = log_density(x) + jnp.log(u(0))
                left = x[i] - width * u(1)
                right = left + width

                def out(sign, end):
                    go = lambda s: (along(s[0]) > level) & (s[1] < most)
                    return jax.lax.while_loop(go, lambda s: (s[0] + sign * width, s[1] + 1), (end, 0))[0]

                left, right = out(-1.0, left), out(1.0, right)

                def shrink(s):
                    left, right, _, used, tries, _ = s
                    value = left + table[used % size] * (right - left)
                    below = value < x[i]
                    return jnp.where(below, value, left), jnp.where(below, right, value), value, used + 1, tries + 1, along(value) > level

                found = jax.lax.while_loop(lambda s: ~s[5] & (s[4] < 100), shrink, (left, right, x[i], used + 2, 0, False))
                return x.at[i].set(found[2]), found[3]

            def sweep(carry, _):
                carry = jax.lax.fori_loop(0, extents, coordinate, carry)
                return carry, carry[0]

            (_, used), xs = jax.lax.scan(sweep, (x0, 0), None, length=samples)
            return xs, used

        return sample


class TsetlinClauses(Model):
    """A Tsetlin machine: clauses of literals learn to vote for a class by rewards to their automata, in integers alone."""

    kind = KIND
    dtype = "int32"
    size = dict(rows=250, features=10, clauses=20)
    small = dict(rows=5, features=3, clauses=4)

    def make(self, random, rows, features, clauses):
        x = random.integers(0, 2, size=(rows, features)).astype("int32")
        y = (x[:, 0] ^ x[:, 1]).astype("int32")
        chosen = random.integers(0, 16, size=(rows, clauses)).astype("int32")
        luck = random.integers(0, 4, size=(rows, clauses, 2 * features)).astype("int32")
        return random.integers(45, 56, size=(clauses, 2 * features)).astype("int32"), x, y, chosen, luck

    def rscan(self, rows, features, clauses):
        polarity = np.where(np.arange(clauses) % 2 == 0, 1, -1).astype("int32")

        @rs.compile
        def train(states, x, y, chosen, luck):
            def step(x, y, chosen, luck, states, right):
                literals = rs.concatenate([x, 1 - x])
                included = states > 50
                fires = rs.all((literals == 1) | ~included, axis=1)
                votes = rs.clip(rs.sum(rs.where(fires, polarity, 0), dtype="int32"), -8, 8)
                taught = chosen < rs.where(y == 1, 8 - votes, 8 + votes)
                first = (taught & (polarity == 2 * y - 1))[:, None]
                second = (taught & (polarity != 2 * y - 1))[:, None]
                matches = fires[:, None] & (literals == 1)
                up = (first & matches & (luck > 0)) | (second & fires[:, None] & (literals == 0) & ~included)
                down = first & ~matches & (luck == 0)
                states = rs.clip(states + rs.cast(up, "int32") - rs.cast(down, "int32"), 1, 100)
                right = right + rs.cast((votes >= 0) == (y == 1), "int32")
                return dict(states=states, right=right, votes=votes)

            out = rs.loop(step, over=dict(x=x, y=y, chosen=chosen, luck=luck), init=dict(states=states, right=0))
            return out.last.states, out.last.right, out.votes

        return train

    def jax(self, rows, features, clauses):
        import jax, jax.numpy as jnp

        polarity = jnp.where(jnp.arange(clauses) % 2 == 0, 1, -1).astype("int32")

        @jax.jit
        def train(states, x, y, chosen, luck):
            def step(carry, row):
                states, right = carry
                x, y, chosen, luck = row
                literals = jnp.concatenate([x, 1 - x])
                included = states > 50
                fires = jnp.all((literals == 1) | ~included, axis=1)
                votes = jnp.clip(jnp.sum(jnp.where(fires, polarity, 0), dtype="int32"), -8, 8)
                taught = chosen < jnp.where(y == 1, 8 - votes, 8 + votes)
                first = (taught & (polarity == 2 * y - 1))[:, None]
                second = (taught & (polarity != 2 * y - 1))[:, None]
                matches = fires[:, None] & (literals == 1)
                up = (first & matches & (luck > 0)) | (second & fires[:, None] & (literals == 0) & ~included)
                down = first & ~matches & (luck == 0)
                states = jnp.clip(states + up.astype("int32") - down.astype("int32"), 1, 100)
                right = right + ((votes >= 0) == (y == 1)).astype("int32")
                return (states, right), votes

            (states, right), votes = jax.lax.scan(step, (states, jnp.int32(0)), (x, y, chosen, luck))
            return states, right, votes

        return train
