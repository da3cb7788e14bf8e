"""Steps that repeat something until it is done, or as often as a value says: roots, line searches, queues, tables, machines, games."""

import numpy as np

import rscan as rs
from models import Model

KIND = "steps that repeat until done"


class KeplerTrack(Model):
    """The Hessian of a fit of radial velocities of a star with a planet: Kepler's equation is solved at each observation."""

    kind = KIND
    dtype = "float64"
    size = dict(steps=300)
    small = dict(steps=8)

    def make(self, random, steps):
        t = np.sort(random.uniform(0.0, 120.0, steps))
        p = np.array([np.log(17.3), 0.3, 0.8, 0.4, 52.0, -3.0])  # log of the period, eccentricity, omega, anomaly at 0, amplitude, mean
        v = 50.0 * np.cos(2 * np.pi * t / 17.0 + 1.2) + random.normal(size=steps) * 2.0
        return p, t, v

    def rscan(self, steps):
        @rs.compile
        def loss(p, t, v):
            n, e, omega, m0, k, gamma = 2 * np.pi / rs.exp(p[0]), p[1], p[2], p[3], p[4], p[5]

            def step(t, v, E, M):
                now = m0 + n * t

                def newton(x):
                    change = (x - e * rs.sin(x) - now) / (1 - e * rs.cos(x))
                    return x - change, rs.until(rs.abs(change) < 1e-10)

                E = rs.loop(newton, init=E + (now - M), n_steps=50).last
                below = 1 - e * rs.cos(E)
                c, s = (rs.cos(E) - e) / below, rs.sqrt(1 - e * e) * rs.sin(E) / below
                model = gamma + k * (c * rs.cos(omega) - s * rs.sin(omega) + e * rs.cos(omega))
                return dict(E=E, M=now, r=(v - model) ** 2)

            out = rs.loop(step, over=dict(t=t, v=v), init=dict(E=m0, M=m0))
            return 0.5 * rs.sum(out.r)

        return rs.hessian(loss)

    def jax(self, steps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def loss(p, t, v):
            n, e, omega, m0, k, gamma = 2 * np.pi / jnp.exp(p[0]), p[1], p[2], p[3], p[4], p[5]

            def solve(f, x0):
                slope = jax.grad(f)

                def body(c):
                    x, _, i = c
                    change = f(x) / slope(x)
                    return x - change, jnp.abs(change), i + 1

                return lax.while_loop(lambda c: (c[1] >= 1e-10) & (c[2] < 50), body, (x0, jnp.inf, 0))[0]

            def step(c, tv):
                E, M = c
                t, v = tv
                now = m0 + n * t
                E = lax.custom_root(lambda x: x - e * jnp.sin(x) - now, E + (now - M), solve, lambda g, y: y / g(1.0))
                below = 1 - e * jnp.cos(E)
                cosine, sine = (jnp.cos(E) - e) / below, jnp.sqrt(1 - e * e) * jnp.sin(E) / below
                model = gamma + k * (cosine * jnp.cos(omega) - sine * jnp.sin(omega) + e * jnp.cos(omega))
                return (E, now), (v - model) ** 2

            return 0.5 * jnp.sum(lax.scan(step, (m0, m0), (t, v))[1])

        return jax.jit(jax.hessian(loss))


class ArmijoRidge(Model):
    """The loss on held-out data after gradient descent with backtracking, and its slope by the weight of the penalty."""

    kind = KIND
    dtype = "float64"
    size = dict(iterations=20, rows=200, columns=6)
    small = dict(iterations=4, rows=12, columns=3)

    def make(self, random, iterations, rows, columns):
        w = random.normal(size=columns)
        scales = np.geomspace(1.0, 0.03, columns)  # badly scaled, so that the descent is slow
        x, held = random.normal(size=(rows, columns)) * scales, random.normal(size=(rows, columns)) * scales
        y = np.sign(x @ (w / scales) + random.normal(size=rows))
        z = np.sign(held @ (w / scales) + random.normal(size=rows))
        return -7.0, x, y, held, z

    def rscan(self, iterations, rows, columns):
        @rs.compile
        def outer(log_lam, x, y, held, z):
            lam = rs.exp(log_lam)

            def loss(w):
                return rs.mean(rs.log1p(rs.exp(-y * (x @ w)))) + 0.5 * lam * rs.sum(w * w)

            def step(w):
                value, g = rs.value_and_grad(loss)(w)
                gg = rs.sum(g * g)

                def halve(t):
                    t = 0.5 * t
                    return t, rs.until(loss(w - t * g) <= value - 0.3 * t * gg)

                t = rs.loop(halve, init=32.0, n_steps=40).last
                return w - t * g

            w = rs.loop(step, init=rs.zeros(columns), n_steps=iterations).last
            return rs.mean(rs.log1p(rs.exp(-z * (held @ w))))

        return rs.value_and_grad(outer)

    def jax(self, iterations, rows, columns):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def outer(log_lam, x, y, held, z):
            lam = jnp.exp(log_lam)

            def loss(w, lam):
                return jnp.mean(jnp.log1p(jnp.exp(-y * (x @ w)))) + 0.5 * lam * jnp.sum(w * w)

            def search(w, lam, value, g):
                gg = jnp.sum(g * g)
                bad = lambda t: loss(w - t * g, lam) > value - 0.3 * t * gg
                return lax.while_loop(lambda c: bad(c[0]) & (c[1] < 39), lambda c: (0.5 * c[0], c[1] + 1), (16.0, 0))[0]

            def step(w, _):
                value, g = jax.value_and_grad(loss)(w, lam)
                t = lax.stop_gradient(search(*lax.stop_gradient((w, lam, value, g))))
                return w - t * g, None

            w, _ = lax.scan(step, jnp.zeros(columns), None, length=iterations)
            return jnp.mean(jnp.log1p(jnp.exp(-z * (held @ w))))

        return jax.jit(jax.value_and_grad(outer))


class CallCentreHeap(Model):
    """Waiting times of callers in a queue of many agents; the times at which agents are free lie in a binary heap."""

    kind = KIND
    dtype = "float32"
    size = dict(steps=5000, agents=60)
    small = dict(steps=30, agents=5)

    def make(self, random, steps, agents):
        arrivals = np.cumsum(random.exponential(1.0, steps)).astype("float32")
        services = random.exponential(0.98 * agents, steps).astype("float32")
        return arrivals, services

    def rscan(self, steps, agents):
        @rs.compile
        def waits(arrivals, services):
            def step(arrival, service, heap):
                start = rs.maximum(arrival, heap[0])
                free = start + service

                def sift(i, heap):
                    left, right = rs.minimum(2 * i + 1, agents - 1), rs.minimum(2 * i + 2, agents - 1)
                    child = rs.where(heap[right] < heap[left], right, left)
                    down = (2 * i + 1 < agents) & (heap[child] < free)
                    heap = heap.at[i].set(rs.where(down, heap[child], heap[i]))
                    return dict(i=rs.where(down, child, i), heap=heap), rs.until(~down)

                found = rs.loop(sift, init=dict(i=0, heap=heap)).last
                return dict(heap=found.heap.at[found.i].set(free), wait=start - arrival)

            out = rs.loop(step, over=dict(arrival=arrivals, service=services), init=dict(heap=rs.zeros(agents, dtype="float32")))
            return out.wait, out.last.heap

        return waits

    def jax(self, steps, agents):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def waits(arrivals, services):
            def step(heap, x):
                arrival, service = x
                start = jnp.maximum(arrival, heap[0])
                free = start + service

                def smaller(i, heap):
                    left, right = jnp.minimum(2 * i + 1, agents - 1), jnp.minimum(2 * i + 2, agents - 1)
                    return jnp.where(heap[right] < heap[left], right, left)

                def lower(c):
                    i, heap = c
                    return (2 * i + 1 < agents) & (heap[smaller(i, heap)] < free)

                def sift(c):
                    i, heap = c
                    child = smaller(i, heap)
                    return child, heap.at[i].set(heap[child])

                i, heap = lax.while_loop(lower, sift, (0, heap))
                return heap.at[i].set(free), start - arrival

            heap, wait = lax.scan(step, jnp.zeros(agents, "float32"), (arrivals, services))
            return wait, heap

        return jax.jit(waits)


class ProbingCounter(Model):
    """How often each word occurs: a hash table with linear probing."""

    kind = KIND
    dtype = "int64"
    size = dict(steps=10000, slots=1024, words=800)
    small = dict(steps=40, slots=16, words=10)

    def make(self, random, steps, slots, words):
        vocabulary = random.choice(1_000_000, words, replace=False) + 1
        return (vocabulary[np.minimum(random.zipf(1.3, steps) - 1, words - 1)],)

    def rscan(self, steps, slots, words):
        @rs.compile
        def count(keys):
            def step(key, table, counts, probes):
                def probe(slot):
                    slot = (slot + 1) & (slots - 1)
                    return slot, rs.until((table[slot] == key) | (table[slot] == 0))

                search = rs.loop(probe, init=dict(slot=((key * 2654435761) >> 16 & (slots - 1)) - 1))
                slot = search.last.slot
                return dict(table=table.at[slot].set(key), counts=counts.at[slot].add(1), probes=probes + search.steps)

            init = dict(table=rs.zeros(slots, dtype="int64"), counts=rs.zeros(slots, dtype="int64"), probes=0)
            out = rs.loop(step, over=dict(key=keys), init=init).last
            return out.table, out.counts, out.probes

        return count

    def jax(self, steps, slots, words):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def count(keys):
            def step(c, key):
                table, counts, probes = c
                first = (key * 2654435761) >> 16 & (slots - 1)
                other = lambda slot: (table[slot] != key) & (table[slot] != 0)
                slot, n = lax.while_loop(lambda c: other(c[0]), lambda c: ((c[0] + 1) & (slots - 1), c[1] + 1), (first, 1))
                return (table.at[slot].set(key), counts.at[slot].add(1), probes + n), None

            return lax.scan(step, (jnp.zeros(slots, "int64"), jnp.zeros(slots, "int64"), 0), keys)[0]

        return jax.jit(count)


class AscentInTable(Model):
    """The height of a rocket after its ascent, and its slopes; the density of air is hunted for in a table from where it was found last."""

    kind = KIND
    dtype = "float32"
    size = dict(steps=1500, levels=60)
    small = dict(steps=12, levels=9)

    def make(self, random, steps, levels):
        z = np.concatenate([[0.0], np.cumsum(random.uniform(0.3, 1.7, levels - 1))])
        z = (z / z[-1] * 90_000.0).astype("float32")
        log_rho = (np.log(1.225) - z / 8000.0 + 0.05 * random.normal(size=levels)).astype("float32")
        throttle = np.where(np.arange(steps) < 0.4 * steps, 1.0, 0.0) * random.uniform(0.9, 1.0, steps)
        p = np.array([0.4, 1.0, 1.0], "float32")  # drag, thrust and rate of burning
        return p, z, log_rho, throttle.astype("float32")

    def rscan(self, steps, levels):
        dt = 100.0 / steps

        @rs.compile
        def height(p, z, log_rho, throttle):
            def step(throttle, h, v, m, k):
                at = rs.clip(h, z[0], 0.999 * z[-1])

                def hunt(k):
                    k = rs.where(at >= z[k + 1], k + 1, rs.where(at < z[k], k - 1, k))
                    return k, rs.until((z[k] <= at) & (at < z[k + 1]))

                k = rs.loop(hunt, init=k, n_steps=levels).last
                share = (at - z[k]) / (z[k + 1] - z[k])
                rho = rs.exp(log_rho[k] + share * (log_rho[k + 1] - log_rho[k]))
                drag = 0.5 * rho * p[0] * v * rs.abs(v)
                a = (p[1] * 30_000.0 * throttle - drag) / m - 9.81
                return dict(h=h + dt * v, v=v + dt * a, m=m - dt * 15.0 * p[2] * throttle, k=k)

            return rs.loop(step, over=dict(throttle=throttle), init=dict(h=0.0, v=0.0, m=1500.0, k=0)).last.h / 1000.0

        return rs.value_and_grad(height)

    def jax(self, steps, levels):
        import jax
        import jax.numpy as jnp
        from jax import lax

        dt = 100.0 / steps

        def height(p, z, log_rho, throttle):
            def step(c, throttle):
                h, v, m, k = c
                at = jnp.clip(h, z[0], 0.999 * z[-1])
                here = lax.stop_gradient(at)
                out = lambda k: (here < z[k]) | (here >= z[k + 1])
                k = lax.while_loop(out, lambda k: jnp.where(here >= z[k + 1], k + 1, k - 1), k)
                share = (at - z[k]) / (z[k + 1] - z[k])
                rho = jnp.exp(log_rho[k] + share * (log_rho[k + 1] - log_rho[k]))
                drag = 0.5 * rho * p[0] * v * jnp.abs(v)
                a = (p[1] * 30_000.0 * throttle - drag) / m - 9.81
                return (h + dt * v, v + dt * a, m - dt * 15.0 * p[2] * throttle, k), None

            init = (jnp.float32(0.0), jnp.float32(0.0), jnp.float32(1500.0), 0)
            return lax.scan(step, init, throttle)[0][0] / 1000.0

        return jax.jit(jax.value_and_grad(height))


class PollardFactors(Model):
    """A factor of each of many numbers by Pollard's rho, which begins again with another polynomial where it fails."""

    kind = KIND
    dtype = "int64"
    size = dict(numbers=60)
    small = dict(numbers=4)

    def make(self, random, numbers):
        sieve = np.ones(30_000, bool)
        for i in range(2, 174):
            sieve[i * i :: i] = False
        primes = np.flatnonzero(sieve)
        primes = primes[primes > 1000]
        return (random.choice(primes, numbers) * random.choice(primes, numbers),)

    def rscan(self, numbers):
        @rs.compile
        def factors(numbers):
            def one(n):
                def step(x, y, c):
                    f = lambda x: (x * x + c) % n
                    x, y = f(x), f(f(y))
                    d = rs.gcd(rs.abs(x - y), n)
                    again = d == n
                    new = dict(x=rs.where(again, 2, x), y=rs.where(again, 2, y), c=rs.where(again, c + 1, c), d=d)
                    return new, rs.until((d > 1) & ~again)

                out = rs.loop(step, init=dict(x=2, y=2, c=1))
                return dict(d=out.d[-1], steps=out.steps)

            return rs.loop(one, over=dict(n=numbers))

        return rs.compile(lambda numbers: [(out := factors(numbers)).d, out.steps])

    def jax(self, numbers):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def one(n):
            def step(s):
                x, y, c, _, k = s
                f = lambda x: (x * x + c) % n
                x, y = f(x), f(f(y))
                d = jnp.gcd(jnp.abs(x - y), n)
                again = d == n
                return jnp.where(again, 2, x), jnp.where(again, 2, y), jnp.where(again, c + 1, c), d, k + 1

            s = lax.while_loop(lambda s: (s[3] == 1) | (s[3] == n), step, (n * 0 + 2, n * 0 + 2, n * 0 + 1, n * 0 + 1, 0))
            return s[3], s[4]

        return jax.jit(lambda numbers: lax.map(one, numbers))


class BrusselatorAdaptive(Model):
    """Sensitivities of an oscillating reaction, seen at given times, by Bogacki and Shampine's method with steps that it chooses."""

    kind = KIND
    dtype = "float64"
    size = dict(times=40)
    small = dict(times=4)

    def make(self, random, times):
        return np.array([1.0, 2.5, 1.2, 2.8]), np.sort(random.uniform(0.1, 15.0, times))

    def rscan(self, times):
        @rs.compile
        def seen(p, times):
            def slope(y):
                flow = y[0] * y[0] * y[1]
                return rs.stack([p[0] + flow - (p[1] + 1) * y[0], p[1] * y[0] - flow])

            def interval(time, t, y, h):
                def attempt(rest, y, h):
                    h = rs.minimum(h, rest)
                    k1 = slope(y)
                    k2 = slope(y + 0.5 * h * k1)
                    k3 = slope(y + 0.75 * h * k2)
                    new = y + h * (2 * k1 + 3 * k2 + 4 * k3) / 9
                    k4 = slope(new)
                    e = h * (-5 * k1 / 72 + k2 / 12 + k3 / 9 - k4 / 8) / (1e-7 + 1e-5 * rs.abs(y))
                    error = rs.sqrt(rs.mean(e * e))
                    good = error <= 1
                    rest = rs.where(good, rest - h, rest)
                    factor = rs.clip(0.9 * error ** (-1 / 3), 0.2, 5.0)
                    return dict(rest=rest, y=rs.where(good, new, y), h=h * factor), rs.until(rest <= 0)

                end = rs.loop(attempt, init=dict(rest=time - t, y=y, h=h), n_steps=300).last
                return dict(t=time, y=end.y, h=end.h)

            return rs.loop(interval, over=dict(time=times), init=dict(t=0.0, y=p[2:], h=0.05)).y

        return rs.jacobian(seen)

    def jax(self, times):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def seen(p, times):
            def slope(y):
                flow = y[0] * y[0] * y[1]
                return jnp.stack([p[0] + flow - (p[1] + 1) * y[0], p[1] * y[0] - flow])

            def attempt(c):
                rest, y, h = c
                h = jnp.minimum(h, rest)
                k1 = slope(y)
                k2 = slope(y + 0.5 * h * k1)
                k3 = slope(y + 0.75 * h * k2)
                new = y + h * (2 * k1 + 3 * k2 + 4 * k3) / 9
                k4 = slope(new)
                e = h * (-5 * k1 / 72 + k2 / 12 + k3 / 9 - k4 / 8) / (1e-7 + 1e-5 * jnp.abs(y))
                error = jnp.sqrt(jnp.mean(e * e))
                good = error <= 1
                factor = jnp.clip(0.9 * error ** (-1 / 3), 0.2, 5.0)
                return jnp.where(good, rest - h, rest), jnp.where(good, new, y), h * factor

            def interval(c, time):
                t, y, h = c
                _, y, h = lax.while_loop(lambda c: c[0] > 0, attempt, (time - t, y, h))
                return (time, y, h), y

            return lax.scan(interval, (0.0, p[2:], 0.05), times)[1]

        return jax.jit(jax.jacfwd(seen))


class VibratingTable(Model):
    """Flight times of a ball on a shaken table against measured ones: each impact is looked for and then found by Newton's method."""

    kind = KIND
    dtype = "float64"
    size = dict(bounces=300)
    small = dict(bounces=5)

    def make(self, random, bounces):
        p = np.array([0.01243, 31.4, 0.5, 0.981])  # amplitude, angular velocity, restitution, first velocity
        return p, 1 + 0.02 * random.normal(size=bounces), 0.2 + 0.005 * random.normal(size=bounces)

    def rscan(self, bounces):
        @rs.compile
        def loss(p, noise, measured):
            a, w, e, v0 = p[0], p[1], p[2], p[3]

            def step(noise, measured, t, v):
                def gap(s):
                    return a * rs.sin(w * t) + v * s - 0.5 * 9.81 * s * s - a * rs.sin(w * (t + s))

                def march(s):
                    s = s + 0.01
                    return s, rs.until(gap(s) < 0)

                def newton(s):
                    change = gap(s) / (v - 9.81 * s - a * w * rs.cos(w * (t + s)))
                    return s - change, rs.until(rs.abs(change) < 1e-11)

                s = rs.loop(march, init=0.03, n_steps=1000).last
                s = rs.loop(newton, init=s, n_steps=50).last
                t = t + s
                table = a * w * rs.cos(w * t)
                return dict(t=t, v=table + e * noise * (table - (v - 9.81 * s)), r=(s - measured) ** 2)

            return rs.sum(rs.loop(step, over=dict(noise=noise, measured=measured), init=dict(t=0.577 / 31.4, v=v0)).r)

        return rs.value_and_grad(loss)

    def jax(self, bounces):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def gap(s, a, w, t, v):
            return a * jnp.sin(w * t) + v * s - 0.5 * 9.81 * s * s - a * jnp.sin(w * (t + s))

        def change(s, a, w, t, v):
            return gap(s, a, w, t, v) / (v - 9.81 * s - a * w * jnp.cos(w * (t + s)))

        def impact(*args):
            def newton(c):
                d = change(c[0], *args)
                return c[0] - d, jnp.abs(d)

            s = lax.while_loop(lambda s: gap(s, *args) >= 0, lambda s: s + 0.01, 0.04)
            return lax.while_loop(lambda c: c[1] >= 1e-11, newton, (s, jnp.inf))[0]

        def loss(p, noise, measured):
            a, w, e, v0 = p[0], p[1], p[2], p[3]

            def step(c, x):
                t, v = c
                noise, measured = x
                s = lax.stop_gradient(impact(*lax.stop_gradient((a, w, t, v))))
                s = s - change(s, a, w, t, v)  # the slope of the root is that of a last step of Newton's
                t = t + s
                table = a * w * jnp.cos(w * t)
                return (t, table + e * noise * (table - (v - 9.81 * s))), (s - measured) ** 2

            return jnp.sum(lax.scan(step, (0.577 / 31.4, v0), (noise, measured))[1])

        return jax.jit(jax.value_and_grad(loss))


HALT, LOADI, ADD, SUB, LOAD, STORE, BLT = range(7)


class RegisterMachine(Model):
    """A machine with eight registers interprets a program until it halts; the program sorts the memory by insertion."""

    kind = KIND
    dtype = "int64"
    size = dict(words=64)
    small = dict(words=5)

    def make(self, random, words):
        program = [
            (LOADI, 0, 0, 0),
            (LOADI, 5, 1, 0),
            (LOADI, 1, 1, 0),
            (LOADI, 7, words, 0),
            (BLT, 1, 7, 6),
            (HALT, 0, 0, 0),
            (LOAD, 3, 1, 0),
            (SUB, 2, 1, 5),
            (BLT, 2, 0, 15),
            (LOAD, 4, 2, 0),
            (BLT, 4, 3, 15),
            (ADD, 6, 2, 5),
            (STORE, 4, 6, 0),
            (SUB, 2, 2, 5),
            (BLT, 0, 5, 8),
            (ADD, 6, 2, 5),
            (STORE, 3, 6, 0),
            (ADD, 1, 1, 5),
            (BLT, 0, 5, 4),
        ]
        return np.array(program), random.integers(0, 1000, words)

    def rscan(self, words):
        @rs.compile
        def run(program, memory):
            def step(pc, registers, memory):
                op, a, b, c = program[pc, 0], program[pc, 1], program[pc, 2], program[pc, 3]
                ra, rb, rc = registers[a], registers[b % 8], registers[c % 8]
                address = rs.clip(rb, 0, words - 1)
                word = memory[address]
                value = rs.select([op == LOADI, op == ADD, op == SUB, op == LOAD], [b, rb + rc, rb - rc, word], ra)
                new = dict(
                    pc=rs.where((op == BLT) & (ra < rb), c, pc + 1),
                    registers=registers.at[a].set(value),
                    memory=memory.at[address].set(rs.where(op == STORE, ra, word)),
                )
                return new, rs.until(op == HALT)

            out = rs.loop(step, init=dict(pc=0, registers=rs.zeros(8, dtype="int64"), memory=memory))
            return out.last.registers, out.last.memory, out.steps

        return run

    def jax(self, words):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def run(program, memory):
            def step(s):
                pc, registers, memory, _, n = s
                op, a, b, c = program[pc]
                ra, rb, rc = registers[a], registers[b % 8], registers[c % 8]
                address = jnp.clip(rb, 0, words - 1)
                word = memory[address]
                value = jnp.select([op == LOADI, op == ADD, op == SUB, op == LOAD], [b, rb + rc, rb - rc, word], ra)
                pc = jnp.where((op == BLT) & (ra < rb), c, pc + 1)
                memory = memory.at[address].set(jnp.where(op == STORE, ra, word))
                return pc, registers.at[a].set(value), memory, op != HALT, n + 1

            init = (jnp.int64(0), jnp.zeros(8, "int64"), memory, True, 0)
            _, registers, memory, _, n = lax.while_loop(lambda s: s[3], step, init)
            return registers, memory, n

        return jax.jit(run)


class KalahPlayouts(Model):
    """Random games of Kalah: stones are sown one by one, the last one may capture or give another turn."""

    kind = KIND
    dtype = "int32"
    size = dict(moves=3000)
    small = dict(moves=60)

    def make(self, random, moves):
        return (random.integers(0, 6, moves).astype("int32"),)

    def rscan(self, moves):
        start = np.array([4, 4, 4, 4, 4, 4, 0] * 2, "int32")

        @rs.compile
        def play(choices):
            def step(choice, board, player, margin, games):
                base, other = 7 * player, 7 * (1 - player)
                store, skipped = base + 6, other + 6

                def look(k):  # the first pit from the chosen one on that holds stones
                    k = (k + 1) % 6
                    return k, rs.until(board[base + k] > 0)

                pit = base + rs.loop(look, init=choice + 5, n_steps=6).last
                stones = board[pit]

                def sow(at, board):
                    at = (at + 1) % 14
                    at = rs.where(at == skipped, (at + 1) % 14, at)
                    return dict(at=at, board=board.at[at].add(1))

                sown = rs.loop(sow, init=dict(at=pit, board=board.at[pit].set(0)), n_steps=stones).last
                at, board = sown.at, sown.board
                mine = (at >= base) & (at < store)
                across = rs.where(at < 13, 12 - at, 0)
                across = rs.where(across >= 0, across, 0)
                capture = (stones > 0) & mine & (board[at] == 1) & (board[across] > 0)
                won = rs.where(capture, board[across] + 1, 0)
                board = board.at[at].set(rs.where(capture, 0, board[at]))
                board = board.at[across].set(rs.where(capture, 0, board[across]))
                board = board.at[store].add(won)
                over = stones == 0
                left, right = rs.sum(board[:7], dtype="int32"), rs.sum(board[7:], dtype="int32")
                return dict(
                    board=rs.where(over, start, board),
                    player=rs.where(at == store, player, 1 - player),
                    margin=margin + rs.where(over, left - right, 0),
                    games=games + over,
                )

            zero = rs.constant(np.int32(0))
            out = rs.loop(step, over=dict(choice=choices), init=dict(board=start, player=zero, margin=zero, games=0))
            return out.last.board, out.margin, out.last.games

        return play

    def jax(self, moves):
        import jax
        import jax.numpy as jnp
        from jax import lax

        start = np.array([4, 4, 4, 4, 4, 4, 0] * 2, "int32")

        def play(choices):
            def step(s, choice):
                board, player, margin, games = s
                base, other = 7 * player, 7 * (1 - player)
                store, skipped = base + 6, other + 6
                empty = lambda c: (board[base + c[0]] == 0) & (c[1] < 5)
                pit = base + lax.while_loop(empty, lambda c: ((c[0] + 1) % 6, c[1] + 1), (choice, 0))[0]
                stones = board[pit]

                def sow(_, c):
                    at, board = c
                    at = (at + 1) % 14
                    at = jnp.where(at == skipped, (at + 1) % 14, at)
                    return at, board.at[at].add(1)

                at, board = lax.fori_loop(0, stones, sow, (pit, board.at[pit].set(0)))
                mine = (at >= base) & (at < store)
                across = jnp.clip(12 - at, 0)
                capture = (stones > 0) & mine & (board[at] == 1) & (board[across] > 0)
                won = jnp.where(capture, board[across] + 1, 0)
                board = board.at[at].set(jnp.where(capture, 0, board[at]))
                board = board.at[across].set(jnp.where(capture, 0, board[across]))
                board = board.at[store].add(won)
                over = stones == 0
                left, right = jnp.sum(board[:7], dtype="int32"), jnp.sum(board[7:], dtype="int32")
                margin = margin + jnp.where(over, left - right, 0)
                state = (jnp.where(over, start, board), jnp.where(at == store, player, 1 - player), margin, games + over)
                return state, margin

            (board, _, _, games), margins = lax.scan(step, (jnp.asarray(start), jnp.int32(0), jnp.int32(0), 0), choices)
            return board, margins, games

        return jax.jit(play)
