"""Training scripts and inverse problems: what is fitted or differentiated contains a loop."""

import numpy as np

import rscan as rs
from models import Model

KIND = "training and inversion"


class MetaSinusoids(Model):
    """Meta-learning: a small network is adapted to each task by inner steps of gradient descent whose rates are learnt."""

    kind = KIND
    dtype = "float32"
    size = dict(tasks=16, shots=10, hidden=32, inner=5)
    small = dict(tasks=3, shots=4, hidden=5, inner=2)

    def make(self, random, tasks, shots, hidden, inner):
        f32 = np.float32
        theta = {
            "w1": random.normal(size=(1, hidden)).astype(f32),
            "b1": random.normal(size=hidden).astype(f32),
            "w2": (random.normal(size=(hidden, hidden)) / hidden**0.5).astype(f32),
            "b2": np.zeros(hidden, f32),
            "w3": (random.normal(size=(hidden, 1)) / hidden**0.5).astype(f32),
            "b3": np.zeros(1, f32),
        }
        meta = {"theta": theta, "rates": np.full(inner, 0.02, f32)}
        amplitude, phase = random.uniform(0.5, 2.0, (tasks, 1, 1)), random.uniform(0, np.pi, (tasks, 1, 1))
        x = random.uniform(-3, 3, (tasks, 2 * shots, 1))
        y = amplitude * np.sin(x + phase)
        x, y = x.astype(f32), y.astype(f32)
        return meta, x[:, :shots], y[:, :shots], x[:, shots:], y[:, shots:]

    def rscan(self, tasks, shots, hidden, inner):
        def error(p, x, y):
            h = rs.tanh(x @ p["w1"] + p["b1"])
            h = rs.tanh(h @ p["w2"] + p["b2"])
            return rs.mean((h @ p["w3"] + p["b3"] - y) ** 2)

        @rs.compile
        def loss(meta, x_train, y_train, x_test, y_test):
            def task(x_train, y_train, x_test, y_test):
                def step(rate, p):
                    slope = rs.grad(error)(p, x_train, y_train)
                    return dict(p={k: p[k] - rate * slope[k] for k in p})

                adapted = rs.loop(step, over=dict(rate=meta["rates"]), init=dict(p=meta["theta"])).last.p
                return error(adapted, x_test, y_test)

            return rs.mean(rs.vmap(task)(x_train, y_train, x_test, y_test))

        return rs.value_and_grad(loss)

    def jax(self, tasks, shots, hidden, inner):
        import jax
        import jax.numpy as jnp

        def error(p, x, y):
            h = jnp.tanh(x @ p["w1"] + p["b1"])
            h = jnp.tanh(h @ p["w2"] + p["b2"])
            return jnp.mean((h @ p["w3"] + p["b3"] - y) ** 2)

        def loss(meta, x_train, y_train, x_test, y_test):
            def task(x_train, y_train, x_test, y_test):
                def step(p, rate):
                    slope = jax.grad(error)(p, x_train, y_train)
                    return jax.tree.map(lambda v, g: v - rate * g, p, slope), None

                adapted, _ = jax.lax.scan(step, meta["theta"], meta["rates"])
                return error(adapted, x_test, y_test)

            return jnp.mean(jax.vmap(task)(x_train, y_train, x_test, y_test))

        return jax.jit(jax.value_and_grad(loss))


class RaggedDosing(Model):
    """Pharmacokinetics of a population: two compartments, saturable elimination, records of different lengths; a penalised fit."""

    kind = KIND
    dtype = "float64"
    size = dict(subjects=32, steps=120)
    small = dict(subjects=3, steps=9)

    def make(self, random, subjects, steps):
        lengths = random.integers(steps // 3, steps + 1, subjects)
        doses = np.where(np.arange(steps)[:, None] % 24 == 0, random.uniform(50, 150, subjects), 0.0)
        seen = random.uniform(size=(steps, subjects)) < 0.3
        observed = random.normal(0.5, 0.7, (steps, subjects))
        p = {
            "population": np.log([0.8, 12.0, 0.3, 0.2, 6.0, 3.0]),
            "eta": 0.2 * random.normal(size=(subjects, 4)),
            "log_sigma": np.float64(-0.7),
        }
        return p, doses, observed, seen, lengths

    def rscan(self, subjects, steps):
        dt = 0.5

        def flow(gut, central, deep, ka, volume, k12, k21, vmax, km):
            absorbed = ka * gut
            out = vmax * (central / volume) / (km + central / volume)
            return -absorbed, absorbed - out - k12 * central + k21 * deep, k12 * central - k21 * deep

        @rs.compile
        def loss(p, doses, observed, seen, lengths):
            pop, eta = rs.exp(p["population"]), rs.exp(p["eta"])
            ka, volume, k12, vmax = pop[0] * eta[:, 0], pop[1] * eta[:, 1], pop[2] * eta[:, 2], pop[4] * eta[:, 3]
            k21, km, sigma = pop[3], pop[5], rs.exp(p["log_sigma"])

            def step(dose, y, s, gut, central, deep):
                def f(a, b, c):
                    return flow(a, b, c, ka, volume, k12, k21, vmax, km)

                gut = gut + dose
                a1, b1, c1 = f(gut, central, deep)
                a2, b2, c2 = f(gut + dt / 2 * a1, central + dt / 2 * b1, deep + dt / 2 * c1)
                a3, b3, c3 = f(gut + dt / 2 * a2, central + dt / 2 * b2, deep + dt / 2 * c2)
                a4, b4, c4 = f(gut + dt * a3, central + dt * b3, deep + dt * c3)
                gut = gut + dt / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
                central = central + dt / 6 * (b1 + 2 * b2 + 2 * b3 + b4)
                deep = deep + dt / 6 * (c1 + 2 * c2 + 2 * c3 + c4)
                z = (y - rs.log(central / volume + 1e-3)) / sigma
                return dict(gut=gut, central=central, deep=deep, nll=rs.where(s, 0.5 * z**2 + rs.log(sigma), 0.0))

            zero = rs.zeros(subjects)
            out = rs.loop(step, over=dict(dose=doses, y=observed, s=seen), init=dict(gut=zero, central=zero, deep=zero), lengths=lengths)
            return rs.sum(out.nll) + rs.sum(p["eta"] ** 2) / (2 * 0.3**2)

        return rs.value_and_grad(loss)

    def jax(self, subjects, steps):
        import jax
        import jax.numpy as jnp

        dt = 0.5

        def loss(p, doses, observed, seen, lengths):
            pop, eta = jnp.exp(p["population"]), jnp.exp(p["eta"])
            ka, volume, k12, vmax = pop[0] * eta[:, 0], pop[1] * eta[:, 1], pop[2] * eta[:, 2], pop[4] * eta[:, 3]
            k21, km, sigma = pop[3], pop[5], jnp.exp(p["log_sigma"])

            def flow(s):
                gut, central, deep = s
                absorbed = ka * gut
                out = vmax * (central / volume) / (km + central / volume)
                return jnp.stack([-absorbed, absorbed - out - k12 * central + k21 * deep, k12 * central - k21 * deep])

            def step(state, row):
                t, dose, y, s = row
                start = state.at[0].add(dose)
                k1 = flow(start)
                k2 = flow(start + dt / 2 * k1)
                k3 = flow(start + dt / 2 * k2)
                k4 = flow(start + dt * k3)
                new = start + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
                z = (y - jnp.log(new[1] / volume + 1e-3)) / sigma
                active = t < lengths
                return jnp.where(active, new, state), jnp.where(active & s, 0.5 * z**2 + jnp.log(sigma), 0.0)

            rows = jnp.arange(steps), doses, observed, seen
            _, nll = jax.lax.scan(step, jnp.zeros((3, subjects)), rows)
            return jnp.sum(nll) + jnp.sum(p["eta"] ** 2) / (2 * 0.3**2)

        return jax.jit(jax.value_and_grad(loss))


class TrafficGaussNewton(Model):
    """Calibration of a cell transmission model of a motorway by damped Gauss-Newton steps, with the Jacobian of all detector counts."""

    kind = KIND
    dtype = "float64"
    size = dict(cells=48, steps=240, iterations=5)
    small = dict(cells=12, steps=20, iterations=2)
    rtol, atol = 1e-7, 1e-10

    def make(self, random, cells, steps, iterations):
        demand = 0.35 + 0.25 * np.sin(np.arange(steps) * 2 * np.pi / steps) + 0.05 * random.uniform(size=steps)
        rho0 = 0.15 + 0.1 * random.uniform(size=cells)
        narrow = np.where(np.arange(cells) >= 3 * cells // 4, 1.0, 0.0)
        free, back, most, jam, cut = 0.8, 0.35, 0.5, 1.6, 0.25
        rho, counts = rho0, []
        for t in range(steps):
            capacity = most * (1 - cut * narrow)
            send, take = np.minimum(free * rho, capacity), np.minimum(back * (jam - rho), capacity)
            flux = np.concatenate([[min(demand[t], take[0])], np.minimum(send[:-1], take[1:]), send[-1:]])
            rho = rho + flux[:-1] - flux[1:]
            counts.append(flux[[cells // 4, cells // 2, 3 * cells // 4, cells - 1]])
        counts = np.array(counts) + 0.01 * random.normal(size=(steps, 4))
        start = np.log([0.7, 0.3, 0.55, 1.5, 0.2])
        return start, rho0, demand, narrow, counts

    def rscan(self, cells, steps, iterations):
        @rs.compile
        def fit(start, rho0, demand, narrow, counts):
            def residuals(theta):
                p = rs.exp(theta)
                free, back, most, jam, cut = p[0], p[1], p[2], p[3], p[4]
                capacity = most * (1 - cut * narrow)

                def step(inflow, rho):
                    send = rs.minimum(free * rho, capacity)
                    take = rs.minimum(back * (jam - rho), capacity)
                    first = rs.minimum(inflow, take[0])
                    flux = rs.concatenate([first[None], rs.minimum(send[:-1], take[1:]), send[-1:]])
                    seen = rs.stack([flux[cells // 4], flux[cells // 2], flux[3 * cells // 4], flux[cells - 1]])
                    return dict(rho=rho + flux[:-1] - flux[1:], seen=seen)

                out = rs.loop(step, over=dict(inflow=demand), init=dict(rho=rho0))
                return (out.seen - counts).ravel()

            def iterate(theta):
                r, J = residuals(theta), rs.jacobian(residuals)(theta)
                H = J.T @ J
                move = rs.linalg.solve(H + 0.01 * rs.diag(rs.diag(H)) + 1e-6 * rs.eye(5), J.T @ r)
                return dict(theta=theta - move, cost=rs.sum(r**2))

            out = rs.loop(iterate, init=dict(theta=start), n_steps=iterations)
            return out.theta, out.cost

        return fit

    def jax(self, cells, steps, iterations):
        import jax
        import jax.numpy as jnp

        detectors = np.array([cells // 4, cells // 2, 3 * cells // 4, cells - 1])

        def fit(start, rho0, demand, narrow, counts):
            def residuals(theta):
                free, back, most, jam, cut = jnp.exp(theta)
                capacity = most * (1 - cut * narrow)

                def step(rho, inflow):
                    send = jnp.minimum(free * rho, capacity)
                    take = jnp.minimum(back * (jam - rho), capacity)
                    first = jnp.minimum(inflow, take[0])
                    flux = jnp.concatenate([first[None], jnp.minimum(send[:-1], take[1:]), send[-1:]])
                    return rho + flux[:-1] - flux[1:], flux[detectors]

                _, seen = jax.lax.scan(step, rho0, demand)
                return (seen - counts).ravel()

            def iterate(theta, _):
                r, J = residuals(theta), jax.jacfwd(residuals)(theta)
                H = J.T @ J
                move = jnp.linalg.solve(H + 0.01 * jnp.diag(jnp.diag(H)) + 1e-6 * jnp.eye(5), J.T @ r)
                theta = theta - move
                return theta, (theta, jnp.sum(r**2))

            return jax.lax.scan(iterate, start, None, length=iterations)[1]

        return jax.jit(fit)


class ClimateHessian(Model):
    """An energy-balance climate by latitude over a deep ocean: misfit, slope and Hessian (the uncertainty) by six parameters."""

    kind = KIND
    dtype = "float64"
    size = dict(bands=20, months=360)
    small = dict(bands=5, months=14)
    rtol, atol = 1e-8, 1e-11

    def make(self, random, bands, months):
        edges = np.linspace(-1, 1, bands + 1)
        x = (edges[1:] + edges[:-1]) / 2
        season = np.cos(2 * np.pi * np.arange(12) / 12)[:, None]
        sun = 342 * (1 - 0.24 * (3 * x**2 - 1)) + 90 * season * x
        forcing = 3.7 * np.arange(months) / months
        T0 = 28 - 45 * x**2
        observed = T0.mean() + 0.01 * np.arange(months) / 12 + 0.2 * random.normal(size=months)
        profile = T0 + random.normal(size=bands)
        theta = np.array([203.3, 2.09, 0.6, 0.15, 0.7, 20.0])
        return theta, T0, edges, sun, forcing, observed, profile

    def rscan(self, bands, months):
        def loss(theta, T0, edges, sun, forcing, observed, profile):
            A, B, D, contrast, exchange, capacity = [theta[i] for i in range(6)]
            slope = (1 - edges[1:-1] ** 2) * bands / 2
            x = (edges[1:] + edges[:-1]) / 2

            def step(month, extra, T, ocean):
                albedo = 0.3 + 0.08 * x**2 + 0.5 * contrast * (1 - rs.tanh((T + 5.0) / 4.0))
                through = D * slope * (T[1:] - T[:-1])
                divergence = (rs.pad(through, (0, 1)) - rs.pad(through, (1, 0))) * bands / 2
                down = exchange * (T - ocean)
                T = T + (sun[month] * (1 - albedo) - A - B * T + divergence - down + extra) / (capacity * 12)
                ocean = ocean + down / (100.0 * 12)
                return dict(T=T, ocean=ocean, globe=rs.mean(T))

            out = rs.loop(step, over=dict(month=rs.arange(months) % 12, extra=forcing), init=dict(T=T0, ocean=T0 - 2.0))
            return rs.sum((out.globe - observed) ** 2) / 0.04 + rs.sum((out.last.T - profile) ** 2)

        @rs.compile
        def laplace(theta, T0, edges, sun, forcing, observed, profile):
            args = theta, T0, edges, sun, forcing, observed, profile
            return *rs.value_and_grad(loss)(*args), rs.hessian(loss)(*args)

        return laplace

    def jax(self, bands, months):
        import jax
        import jax.numpy as jnp

        def loss(theta, T0, edges, sun, forcing, observed, profile):
            A, B, D, contrast, exchange, capacity = theta
            slope = (1 - edges[1:-1] ** 2) * bands / 2
            x = (edges[1:] + edges[:-1]) / 2

            def step(state, row):
                T, ocean = state
                month, extra = row
                albedo = 0.3 + 0.08 * x**2 + 0.5 * contrast * (1 - jnp.tanh((T + 5.0) / 4.0))
                through = D * slope * (T[1:] - T[:-1])
                divergence = (jnp.pad(through, (0, 1)) - jnp.pad(through, (1, 0))) * bands / 2
                down = exchange * (T - ocean)
                T = T + (sun[month] * (1 - albedo) - A - B * T + divergence - down + extra) / (capacity * 12)
                ocean = ocean + down / (100.0 * 12)
                return (T, ocean), jnp.mean(T)

            (T, _), globe = jax.lax.scan(step, (T0, T0 - 2.0), (jnp.arange(months) % 12, forcing))
            return jnp.sum((globe - observed) ** 2) / 0.04 + jnp.sum((T - profile) ** 2)

        def laplace(*args):
            return *jax.value_and_grad(loss)(*args), jax.hessian(loss)(*args)

        return jax.jit(laplace)


class PlasticController(Model):
    """Policy gradient for a network with Hebbian traces, that is to find out in each episode how its actuators are wired."""

    kind = KIND
    dtype = "float32"
    size = dict(episodes=16, neurons=20, steps=40)
    small = dict(episodes=3, neurons=4, steps=6)

    def make(self, random, episodes, neurons, steps):
        f32 = np.float32
        n = neurons
        p = {
            "win": (0.5 * random.normal(size=(5, n))).astype(f32),
            "w": (0.5 * random.normal(size=(n, n)) / n**0.5).astype(f32),
            "alpha": (0.2 * random.normal(size=(n, n))).astype(f32),
            "mod": random.normal(size=n).astype(f32),
            "out": (random.normal(size=(n, 2)) / n**0.5).astype(f32),
            "log_sigma": np.full(2, -0.5, f32),
        }
        wiring = (np.eye(2) + 0.5 * random.normal(size=(episodes, 2, 2))).astype(f32)
        position = random.normal(size=(episodes, 2)).astype(f32)
        noise = random.normal(size=(steps, episodes, 2)).astype(f32)
        return p, wiring, position, noise

    def rscan(self, episodes, neurons, steps):
        @rs.compile
        def loss(p, wiring, position, noise):
            sigma = rs.exp(p["log_sigma"])

            def step(eps, position, velocity, reward, h, trace):
                seen = rs.concatenate([position, velocity, reward[:, None]], axis=1)
                drive = rs.einsum("bi,bij->bj", h, p["w"] + p["alpha"] * trace)
                new = rs.tanh(seen @ p["win"] + drive)
                modulation = rs.tanh(new @ p["mod"])[:, None, None]
                trace = 0.9 * trace + 0.1 * modulation * h[:, :, None] * new[:, None, :]
                mu = new @ p["out"]
                action = rs.stop_gradient(mu + sigma * eps)
                logp = rs.sum(-0.5 * ((action - mu) / sigma) ** 2 - p["log_sigma"], axis=1)
                velocity = 0.9 * velocity + 0.1 * rs.einsum("bij,bj->bi", wiring, action)
                position = position + 0.1 * velocity
                reward = -rs.sum(position**2, axis=1) - 0.01 * rs.sum(action**2, axis=1)
                return dict(position=position, velocity=velocity, reward=reward, h=new, trace=trace, logp=logp)

            init = dict(
                position=position,
                velocity=rs.zeros_like(position),
                reward=rs.zeros(episodes, dtype="float32"),
                h=rs.zeros((episodes, neurons), dtype="float32"),
                trace=rs.zeros((episodes, neurons, neurons), dtype="float32"),
            )
            out = rs.loop(step, over=dict(eps=noise), init=init)
            returns = rs.loop(lambda r, total: r + 0.95 * total, over=out.reward, init=rs.zeros(episodes, dtype="float32"), reverse=True)
            advantage = rs.stop_gradient(returns - rs.mean(returns, axis=1, keepdims=True))
            return -rs.mean(rs.sum(out.logp * advantage, axis=0)), rs.mean(returns[0])

        return rs.value_and_grad(loss, has_aux=True)

    def jax(self, episodes, neurons, steps):
        import jax
        import jax.numpy as jnp

        def loss(p, wiring, position, noise):
            sigma = jnp.exp(p["log_sigma"])

            def step(state, eps):
                position, velocity, reward, h, trace = state
                seen = jnp.concatenate([position, velocity, reward[:, None]], axis=1)
                drive = jnp.einsum("bi,bij->bj", h, p["w"] + p["alpha"] * trace)
                new = jnp.tanh(seen @ p["win"] + drive)
                modulation = jnp.tanh(new @ p["mod"])[:, None, None]
                trace = 0.9 * trace + 0.1 * modulation * h[:, :, None] * new[:, None, :]
                mu = new @ p["out"]
                action = jax.lax.stop_gradient(mu + sigma * eps)
                logp = jnp.sum(-0.5 * ((action - mu) / sigma) ** 2 - p["log_sigma"], axis=1)
                velocity = 0.9 * velocity + 0.1 * jnp.einsum("bij,bj->bi", wiring, action)
                position = position + 0.1 * velocity
                reward = -jnp.sum(position**2, axis=1) - 0.01 * jnp.sum(action**2, axis=1)
                return (position, velocity, reward, new, trace), (reward, logp)

            start = (
                position,
                jnp.zeros_like(position),
                jnp.zeros(episodes, jnp.float32),
                jnp.zeros((episodes, neurons), jnp.float32),
                jnp.zeros((episodes, neurons, neurons), jnp.float32),
            )
            _, (reward, logp) = jax.lax.scan(step, start, noise)

            def back(total, r):
                total = r + 0.95 * total
                return total, total

            _, returns = jax.lax.scan(back, jnp.zeros(episodes, jnp.float32), reward, reverse=True)
            advantage = jax.lax.stop_gradient(returns - jnp.mean(returns, axis=1, keepdims=True))
            return -jnp.mean(jnp.sum(logp * advantage, axis=0)), jnp.mean(returns[0])

        return jax.jit(jax.value_and_grad(loss, has_aux=True))


class WindowedMemoryCell(Model):
    """A recurrent cell that attends to what it wrote in the last steps, with gates that are normalised; trained to label each step."""

    kind = KIND
    dtype = "float32"
    size = dict(batch=16, width=32, window=8, steps=48, classes=10)
    small = dict(batch=2, width=4, window=3, steps=6, classes=3)

    def make(self, random, batch, width, window, steps, classes):
        f32 = np.float32
        n = width
        p = {
            name: (random.normal(size=shape) / shape[0] ** 0.5).astype(f32)
            for name, shape in dict(query=(2 * n, n), key=(n, n), value=(n, n), gates=(3 * n, 2 * n), out=(n, classes)).items()
        }
        p["scale"], p["shift"] = np.ones(2 * n, f32), np.zeros(2 * n, f32)
        x = random.normal(size=(steps, batch, n)).astype(f32)
        return p, x, random.integers(0, classes, (steps, batch))

    def rscan(self, batch, width, window, steps, classes):
        n = width

        @rs.compile
        def loss(p, x, labels):
            def step(x, h, k, v):
                keys, values = rs.stack(k), rs.stack(v)
                query = rs.concatenate([x, h], axis=1) @ p["query"]
                weights = rs.softmax(rs.sum(keys * query, axis=2) / n**0.5, axis=0)
                context = rs.sum(weights[:, :, None] * values, axis=0)
                a = rs.concatenate([x, h, context], axis=1) @ p["gates"]
                a = (a - rs.mean(a, axis=1, keepdims=True)) / rs.sqrt(rs.var(a, axis=1, keepdims=True) + 1e-5)
                a = p["scale"] * a + p["shift"]
                gate, candidate = rs.sigmoid(a[:, :n]), rs.tanh(a[:, n:])
                h = (1 - gate) * h + gate * candidate
                return dict(h=h, k=h @ p["key"], v=h @ p["value"])

            taps = range(-window, 0)
            empty = rs.zeros((window, batch, n), dtype="float32")
            out = rs.loop(
                step,
                over=dict(x=x),
                init=dict(h=rs.zeros((batch, n), dtype="float32"), k=rs.taps(empty, *taps), v=rs.taps(empty, *taps)),
            )
            logp = rs.log_softmax(out.h @ p["out"], axis=2)
            return -rs.mean(rs.take_along_axis(logp, labels[:, :, None], axis=2))

        return rs.value_and_grad(loss)

    def jax(self, batch, width, window, steps, classes):
        import jax
        import jax.numpy as jnp

        n = width

        def loss(p, x, labels):
            def step(state, x):
                h, keys, values = state
                query = jnp.concatenate([x, h], axis=1) @ p["query"]
                weights = jax.nn.softmax(jnp.sum(keys * query, axis=2) / n**0.5, axis=0)
                context = jnp.sum(weights[:, :, None] * values, axis=0)
                a = jnp.concatenate([x, h, context], axis=1) @ p["gates"]
                a = (a - jnp.mean(a, axis=1, keepdims=True)) / jnp.sqrt(jnp.var(a, axis=1, keepdims=True) + 1e-5)
                a = p["scale"] * a + p["shift"]
                gate, candidate = jax.nn.sigmoid(a[:, :n]), jnp.tanh(a[:, n:])
                h = (1 - gate) * h + gate * candidate
                keys = jnp.concatenate([keys[1:], (h @ p["key"])[None]])
                values = jnp.concatenate([values[1:], (h @ p["value"])[None]])
                return (h, keys, values), h

            empty = jnp.zeros((window, batch, n), jnp.float32)
            _, h = jax.lax.scan(step, (jnp.zeros((batch, n), jnp.float32), empty, empty), x)
            logp = jax.nn.log_softmax(h @ p["out"], axis=2)
            return -jnp.mean(jnp.take_along_axis(logp, labels[:, :, None], axis=2))

        return jax.jit(jax.value_and_grad(loss))


class SpikingSurrogate(Model):
    """Adaptive spiking neurons with a refractory time, trained through a surrogate of the slope of the spike."""

    kind = KIND
    dtype = "float64"
    size = dict(batch=16, inputs=24, neurons=48, steps=60, classes=5)
    small = dict(batch=2, inputs=4, neurons=5, steps=8, classes=3)

    def make(self, random, batch, inputs, neurons, steps, classes):
        p = {
            "win": random.normal(size=(inputs, neurons)) * (2.0 / inputs) ** 0.5,
            "w": 0.7 * random.normal(size=(neurons, neurons)) / neurons**0.5,
            "out": random.normal(size=(neurons, classes)) / neurons**0.5,
            "leak": np.full(neurons, 2.0),
        }
        spikes = (random.uniform(size=(steps, batch, inputs)) < 0.15).astype(np.float64)
        return p, spikes, random.integers(0, classes, batch)

    def rscan(self, batch, inputs, neurons, steps, classes):
        def spike(u):
            hard, soft = rs.cast(u > 0, "float64"), u / (1 + 10 * rs.abs(u))
            return hard + (soft - rs.stop_gradient(soft))

        @rs.compile
        def loss(p, spikes, labels):
            leak = rs.sigmoid(p["leak"])

            def step(x, v, z, tired, rest, y):
                v = leak * v * (1 - rs.stop_gradient(z)) + x @ p["win"] + z @ p["w"]
                z = rs.where(rest > 0, 0.0, spike(v - (1 + 0.2 * tired)))
                rest = rs.where(z > 0.5, 2, rs.maximum(rest - 1, 0))
                tired = 0.95 * tired + z
                y = 0.9 * y + z @ p["out"]
                return dict(v=v, z=z, tired=tired, rest=rest, y=y)

            quiet = rs.zeros((batch, neurons))
            out = rs.loop(
                step,
                over=dict(x=spikes),
                init=dict(v=quiet, z=quiet, tired=quiet, rest=rs.zeros((batch, neurons), dtype="int64"), y=rs.zeros((batch, classes))),
            )
            logp = rs.log_softmax(rs.mean(out.y, axis=0), axis=1)
            rates = rs.mean(out.z, axis=(0, 1))
            return -rs.mean(logp[rs.arange(batch), labels]) + rs.sum((rates - 0.1) ** 2)

        return rs.value_and_grad(loss)

    def jax(self, batch, inputs, neurons, steps, classes):
        import jax
        import jax.numpy as jnp

        @jax.custom_jvp
        def spike(u):
            return (u > 0).astype(u.dtype)

        @spike.defjvp
        def spike_jvp(primals, tangents):
            (u,), (du,) = primals, tangents
            return spike(u), du / (1 + 10 * jnp.abs(u)) ** 2

        def loss(p, spikes, labels):
            leak = jax.nn.sigmoid(p["leak"])

            def step(state, x):
                v, z, tired, rest, y = state
                v = leak * v * (1 - jax.lax.stop_gradient(z)) + x @ p["win"] + z @ p["w"]
                z = jnp.where(rest > 0, 0.0, spike(v - (1 + 0.2 * tired)))
                rest = jnp.where(z > 0.5, 2, jnp.maximum(rest - 1, 0))
                tired = 0.95 * tired + z
                y = 0.9 * y + z @ p["out"]
                return (v, z, tired, rest, y), (z, y)

            quiet = jnp.zeros((batch, neurons))
            start = quiet, quiet, quiet, jnp.zeros((batch, neurons), int), jnp.zeros((batch, classes))
            _, (z, y) = jax.lax.scan(step, start, spikes)
            logp = jax.nn.log_softmax(jnp.mean(y, axis=0), axis=1)
            rates = jnp.mean(z, axis=(0, 1))
            return -jnp.mean(logp[jnp.arange(batch), labels]) + jnp.sum((rates - 0.1) ** 2)

        return jax.jit(jax.value_and_grad(loss))


class SoftAlignment(Model):
    """Scores of amino acids and gap costs learnt from pairs of proteins, by the sum over all global alignments with affine gaps."""

    kind = KIND
    dtype = "float64"
    size = dict(pairs=8, left=40, right=48)
    small = dict(pairs=2, left=4, right=5)

    def make(self, random, pairs, left, right):
        scores = random.normal(size=(20, 20)) + 3 * np.eye(20)
        p = {"scores": (scores + scores.T) / 2, "open": np.float64(3.0), "extend": np.float64(0.5), "bias": np.float64(0.1)}
        a, b = random.integers(0, 20, (pairs, left)), random.integers(0, 20, (pairs, right))
        related = np.arange(pairs) % 2 == 0
        b[related, : min(left, right)] = a[related, : min(left, right)]
        return p, a, b, np.where(related, 1.0, -1.0)

    def rscan(self, pairs, left, right):
        never = -1e6

        @rs.compile
        def loss(p, a, b, related):
            def score(a, b):
                similar = p["scores"][a][:, b]

                def row(s, match, up, along):
                    before = rs.logaddexp(rs.logaddexp(match, up), along)
                    new_match = rs.concatenate([[never], before[:-1] + s])
                    new_up = rs.logaddexp(match - p["open"], up - p["extend"])
                    new_along = rs.loop(
                        lambda m, y: rs.logaddexp(m - p["open"], y - p["extend"]), over=new_match[:-1], init=rs.constant(never)
                    )
                    return dict(match=new_match, up=new_up, along=rs.concatenate([[never], new_along]))

                j = rs.arange(right)
                first = dict(
                    match=rs.concatenate([[0.0], rs.full(right, never)]),
                    up=rs.full(right + 1, never),
                    along=rs.concatenate([[never], -p["open"] - p["extend"] * j]),
                )
                last = rs.loop(row, over=dict(s=similar), init=first).last
                return rs.logaddexp(rs.logaddexp(last.match[-1], last.up[-1]), last.along[-1]) / left

            found = rs.vmap(score)(a, b)
            return rs.mean(rs.softplus(-related * (found - p["bias"])))

        return rs.value_and_grad(loss)

    def jax(self, pairs, left, right):
        import jax
        import jax.numpy as jnp

        never = -1e6

        def loss(p, a, b, related):
            def score(a, b):
                similar = p["scores"][a][:, b]

                def row(state, s):
                    match, up, along = state
                    before = jnp.logaddexp(jnp.logaddexp(match, up), along)
                    new_match = jnp.concatenate([jnp.array([never]), before[:-1] + s])
                    new_up = jnp.logaddexp(match - p["open"], up - p["extend"])

                    def cell(y, m):
                        y = jnp.logaddexp(m - p["open"], y - p["extend"])
                        return y, y

                    _, new_along = jax.lax.scan(cell, jnp.array(never), new_match[:-1])
                    return (new_match, new_up, jnp.concatenate([jnp.array([never]), new_along])), None

                match = jnp.full(right + 1, never).at[0].set(0.0)
                along = jnp.concatenate([jnp.array([never]), -p["open"] - p["extend"] * jnp.arange(right)])
                (match, up, along), _ = jax.lax.scan(row, (match, jnp.full(right + 1, never), along), similar)
                return jnp.logaddexp(jnp.logaddexp(match[-1], up[-1]), along[-1]) / left

            found = jax.vmap(score)(a, b)
            return jnp.mean(jax.nn.softplus(-related * (found - p["bias"])))

        return jax.jit(jax.value_and_grad(loss))


class QuadrotorILQR(Model):
    """Iterated LQR for a planar quadrotor that flies around an obstacle: expansion along the path, Riccati sweep, line search."""

    kind = KIND
    dtype = "float64"
    size = dict(horizon=40, iterations=5)
    small = dict(horizon=6, iterations=2)
    rtol, atol = 1e-7, 1e-10

    def make(self, random, horizon, iterations):
        start = np.array([-2.0, 0.3, 0.0, 0.0, 0.0, 0.0]) + 0.1 * random.normal(size=6)
        goal = np.array([2.0, 0.0, 0.0, 0.0, 0.0, 0.0])
        controls = 4.905 + 0.01 * random.normal(size=(horizon, 2))
        return start, goal, controls, np.array([1.0, 0.5, 0.25, 0.1])

    def rscan(self, horizon, iterations):
        dt = 0.08

        def move(x, u):
            thrust, torque = u[0] + u[1], u[1] - u[0]
            vx, vz, w = x[3], x[4], x[5]
            ax = -thrust * rs.sin(x[2]) - 0.1 * vx * rs.abs(vx)
            az = thrust * rs.cos(x[2]) - 9.81 - 0.1 * vz * rs.abs(vz)
            return x + dt * rs.stack([vx, vz, w, ax, az, 2.0 * torque - 0.2 * w])

        @rs.compile
        def plan(start, goal, controls, sizes):
            def cost(z):
                x, u = z[:6], z[6:]
                near = 2.0 * rs.exp(-2.0 * (x[0] ** 2 + x[1] ** 2))
                return 0.05 * rs.sum((x - goal) ** 2) + near + 0.01 * rs.sum((u - 4.905) ** 2)

            def end(x):
                return 10.0 * rs.sum((x - goal) ** 2)

            def iterate(us):
                path = rs.loop(lambda u, x: move(x, u), over=us, init=start)
                xs = rs.concatenate([start[None], path[:-1]])
                Fx, Fu = rs.vmap(rs.jacobian(move, argnums=(0, 1)))(xs, us)
                zs = rs.concatenate([xs, us], axis=1)
                slope = rs.vmap(rs.grad(cost))(zs)
                w, E = rs.linalg.eigh(rs.vmap(rs.hessian(cost))(zs))
                curve = (E * rs.maximum(w, 1e-3)[:, None, :]) @ rs.swapaxes(E, 1, 2)

                def riccati(A, B, g, H, v, V):
                    Qx, Qu = g[:6] + A.T @ v, g[6:] + B.T @ v
                    Qxx, Qux = H[:6, :6] + A.T @ V @ A, H[6:, :6] + B.T @ V @ A
                    Quu = H[6:, 6:] + B.T @ V @ B + 0.01 * rs.eye(2)
                    k, K = -rs.linalg.solve(Quu, Qu), -rs.linalg.solve(Quu, Qux)
                    V = Qxx + Qux.T @ K
                    return dict(v=Qx + Qux.T @ k, V=(V + V.T) / 2, k=k, K=K)

                back = rs.loop(
                    riccati,
                    over=dict(A=Fx, B=Fu, g=slope, H=curve),
                    init=dict(v=rs.grad(end)(path[-1]), V=rs.hessian(end)(path[-1])),
                    reverse=True,
                )

                def roll(size):
                    def step(x0, u0, k, K, x):
                        u = u0 + size * k + K @ (x - x0)
                        return dict(x=move(x, u), u=u, cost=cost(rs.concatenate([x, u])))

                    out = rs.loop(step, over=dict(x0=xs, u0=us, k=back.k, K=back.K), init=dict(x=start))
                    return out.u, rs.sum(out.cost) + end(out.last.x)

                tried, costs = rs.vmap(roll)(sizes)
                best = rs.argmin(costs)
                return dict(us=tried[best], cost=costs[best])

            out = rs.loop(iterate, init=dict(us=controls), n_steps=iterations)
            return out.last.us, out.cost

        return plan

    def jax(self, horizon, iterations):
        import jax
        import jax.numpy as jnp

        dt = 0.08

        def move(x, u):
            thrust, torque = u[0] + u[1], u[1] - u[0]
            vx, vz, w = x[3], x[4], x[5]
            ax = -thrust * jnp.sin(x[2]) - 0.1 * vx * jnp.abs(vx)
            az = thrust * jnp.cos(x[2]) - 9.81 - 0.1 * vz * jnp.abs(vz)
            return x + dt * jnp.stack([vx, vz, w, ax, az, 2.0 * torque - 0.2 * w])

        def plan(start, goal, controls, sizes):
            def cost(z):
                x, u = z[:6], z[6:]
                near = 2.0 * jnp.exp(-2.0 * (x[0] ** 2 + x[1] ** 2))
                return 0.05 * jnp.sum((x - goal) ** 2) + near + 0.01 * jnp.sum((u - 4.905) ** 2)

            def end(x):
                return 10.0 * jnp.sum((x - goal) ** 2)

            def iterate(us, _):
                final, xs = jax.lax.scan(lambda x, u: (move(x, u), x), start, us)
                Fx, Fu = jax.vmap(jax.jacfwd(move, argnums=(0, 1)))(xs, us)
                zs = jnp.concatenate([xs, us], axis=1)
                slope = jax.vmap(jax.grad(cost))(zs)
                w, E = jnp.linalg.eigh(jax.vmap(jax.hessian(cost))(zs))
                curve = (E * jnp.maximum(w, 1e-3)[:, None, :]) @ jnp.swapaxes(E, 1, 2)

                def riccati(state, row):
                    v, V = state
                    A, B, g, H = row
                    Qx, Qu = g[:6] + A.T @ v, g[6:] + B.T @ v
                    Qxx, Qux = H[:6, :6] + A.T @ V @ A, H[6:, :6] + B.T @ V @ A
                    Quu = H[6:, 6:] + B.T @ V @ B + 0.01 * jnp.eye(2)
                    k, K = -jnp.linalg.solve(Quu, Qu), -jnp.linalg.solve(Quu, Qux)
                    V = Qxx + Qux.T @ K
                    return (Qx + Qux.T @ k, (V + V.T) / 2), (k, K)

                state = jax.grad(end)(final), jax.hessian(end)(final)
                _, (k, K) = jax.lax.scan(riccati, state, (Fx, Fu, slope, curve), reverse=True)

                def roll(size):
                    def step(x, row):
                        x0, u0, k, K = row
                        u = u0 + size * k + K @ (x - x0)
                        return move(x, u), (u, cost(jnp.concatenate([x, u])))

                    last, (u, costs) = jax.lax.scan(step, start, (xs, us, k, K))
                    return u, jnp.sum(costs) + end(last)

                tried, costs = jax.vmap(roll)(sizes)
                best = jnp.argmin(costs)
                return tried[best], costs[best]

            return jax.lax.scan(iterate, controls, None, length=iterations)

        return jax.jit(plan)


class RopeContactInversion(Model):
    """Ensemble Kalman inversion, without gradients: stiffness, damping and friction of a rope that falls on a slope."""

    kind = KIND
    dtype = "float64"
    size = dict(members=64, beads=12, steps=100, iterations=4)
    small = dict(members=8, beads=3, steps=10, iterations=2)
    rtol, atol = 1e-7, 1e-10

    def make(self, random, members, beads, steps, iterations):
        theta = random.normal(size=(members, 4))
        position = np.stack([0.1 * np.arange(beads), 0.1 + 0.04 * np.arange(beads)], axis=1)
        low, high = np.array([50.0, 0.2, 100.0, 0.1]), np.array([400.0, 3.0, 600.0, 0.9])
        stiff, damp, ground, friction = low + (high - low) * np.array([0.6, 0.3, 0.4, 0.7])  # the truth
        q, v, dt, seen = position, np.zeros((beads, 2)), 0.01, []
        for t in range(steps):
            along = q[1:] - q[:-1]
            length = np.sqrt(np.sum(along**2, axis=1, keepdims=True))
            unit = along / length
            pull = (stiff * (length - 0.1) + damp * np.sum((v[1:] - v[:-1]) * unit, axis=1, keepdims=True)) * unit
            force = np.pad(pull, ((0, 1), (0, 0))) - np.pad(pull, ((1, 0), (0, 0)))
            normal = ground * np.maximum(0.1 * q[:, 0] - q[:, 1], 0.0)
            drag = -friction * normal * np.tanh(v[:, 0] / 0.5)
            ay = normal * (1 - 0.02 * np.clip(v[:, 1], -5.0, 5.0)) - 9.81
            v = v + dt * (force + np.stack([drag - 0.1 * normal, ay], axis=1))
            q = q + dt * v
            if (t + 1) % (steps // 5) == 0:
                seen.append([q[0], q[-1]])
        observed = np.array(seen).ravel() + 0.05 * random.normal(size=20)
        noise = 0.05 * random.normal(size=(iterations, members, 20))
        return theta, position, observed, noise, low, high

    def rscan(self, members, beads, steps, iterations):
        dt, rest = 0.01, 0.1

        @rs.compile
        def invert(theta, position, observed, noise, low, high):
            def simulate(theta):
                p = low + (high - low) * rs.sigmoid(theta)
                stiff, damp, ground, friction = p[0], p[1], p[2], p[3]

                def step(q, v):
                    along = q[1:] - q[:-1]
                    length = rs.sqrt(rs.sum(along**2, axis=1, keepdims=True))
                    unit = along / length
                    rate = rs.sum((v[1:] - v[:-1]) * unit, axis=1, keepdims=True)
                    pull = (stiff * (length - rest) + damp * rate) * unit
                    force = rs.zeros((beads, 2)).at[:-1].add(pull).at[1:].add(-pull)
                    depth = rs.maximum(0.1 * q[:, 0] - q[:, 1], 0.0)
                    normal = ground * depth
                    drag = -friction * normal * rs.tanh(v[:, 0] / 0.5)
                    ay = normal * (1 - 0.02 * rs.clip(v[:, 1], -5.0, 5.0)) - 9.81
                    v = v + dt * (force + rs.stack([drag - 0.1 * normal, ay], axis=1))
                    q = q + dt * v
                    return dict(q=q, v=v)

                out = rs.loop(step, init=dict(q=position, v=rs.zeros((beads, 2))), n_steps=steps)
                seen = out.q[steps // 5 - 1 :: steps // 5]
                return rs.stack([seen[:, 0], seen[:, -1]], axis=1).ravel()

            def update(eps, theta):
                G = rs.vmap(simulate)(theta)
                dT, dG = theta - rs.mean(theta, axis=0), G - rs.mean(G, axis=0)
                cross, own = dT.T @ dG / (members - 1), dG.T @ dG / (members - 1)
                innovation = observed + eps - G
                gain = rs.linalg.solve(own + 0.05**2 * rs.eye(20), innovation.T)
                return dict(theta=theta + (cross @ gain).T, misfit=rs.mean(innovation**2))

            out = rs.loop(update, over=dict(eps=noise), init=dict(theta=theta))
            return out.last.theta, out.misfit

        return invert

    def jax(self, members, beads, steps, iterations):
        import jax
        import jax.numpy as jnp

        dt, rest = 0.01, 0.1

        def invert(theta, position, observed, noise, low, high):
            def simulate(theta):
                stiff, damp, ground, friction = low + (high - low) * jax.nn.sigmoid(theta)

                def step(state, _):
                    q, v = state
                    along = q[1:] - q[:-1]
                    length = jnp.sqrt(jnp.sum(along**2, axis=1, keepdims=True))
                    unit = along / length
                    rate = jnp.sum((v[1:] - v[:-1]) * unit, axis=1, keepdims=True)
                    pull = (stiff * (length - rest) + damp * rate) * unit
                    force = jnp.pad(pull, ((0, 1), (0, 0))) - jnp.pad(pull, ((1, 0), (0, 0)))
                    depth = jnp.maximum(0.1 * q[:, 0] - q[:, 1], 0.0)
                    normal = ground * depth
                    drag = -friction * normal * jnp.tanh(v[:, 0] / 0.5)
                    ay = normal * (1 - 0.02 * jnp.clip(v[:, 1], -5.0, 5.0)) - 9.81
                    v = v + dt * (force + jnp.stack([drag - 0.1 * normal, ay], axis=1))
                    q = q + dt * v
                    return (q, v), q

                _, q = jax.lax.scan(step, (position, jnp.zeros((beads, 2))), None, length=steps)
                seen = q[steps // 5 - 1 :: steps // 5]
                return jnp.stack([seen[:, 0], seen[:, -1]], axis=1).ravel()

            def update(theta, eps):
                G = jax.vmap(simulate)(theta)
                dT, dG = theta - jnp.mean(theta, axis=0), G - jnp.mean(G, axis=0)
                cross, own = dT.T @ dG / (members - 1), dG.T @ dG / (members - 1)
                innovation = observed + eps - G
                gain = jnp.linalg.solve(own + 0.05**2 * jnp.eye(20), innovation.T)
                return theta + (cross @ gain).T, jnp.mean(innovation**2)

            return jax.lax.scan(update, theta, noise)

        return jax.jit(invert)
