"""Integers and booleans, and loops over vectors that run until all are done."""

import numpy as np
import rscan as rs
from models import Model

KIND = "integers, booleans, until"


class CollatzLanes(Model):
    """Halve or triple-and-one, in 5,000 lanes, until all are 1; how long each takes."""

    kind, dtype = KIND, "int64"
    size, small = dict(lanes=5000), dict(lanes=9)

    def make(self, random, lanes):
        return (np.arange(1, lanes + 1),)

    def rscan(self, lanes):
        @rs.compile
        def f(start):
            def step(n, count):
                going = n != 1
                new = rs.where(going, rs.where(n % 2 == 0, n // 2, 3 * n + 1), n)
                return dict(n=new, count=count + going), rs.until(rs.all(new == 1))

            out = rs.loop(step, init=dict(n=start, count=rs.zeros_like(start)), n_steps=1000)
            return out.count[-1], out.steps

        return f

    def jax(self, lanes):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(start):
            def step(state):
                n, count, steps = state
                going = n != 1
                return jnp.where(going, jnp.where(n % 2 == 0, n // 2, 3 * n + 1), n), count + going, steps + 1

            n, count, steps = jax.lax.while_loop(lambda s: jnp.any(s[0] != 1) & (s[2] < 1000), step, (start, jnp.zeros_like(start), 0))
            return count, steps

        return f


class NewtonLanes(Model):
    """Kepler's equation by Newton's method, in lanes, until all have converged."""

    kind, dtype = KIND, "float64"
    size, small = dict(lanes=4000), dict(lanes=5)

    def make(self, random, lanes):
        return random.uniform(0, 2 * np.pi, size=lanes), random.uniform(0, 0.8, size=lanes)

    def rscan(self, lanes):
        @rs.compile
        def f(mean, e):
            def step(x):
                change = (x - e * rs.sin(x) - mean) / (1 - e * rs.cos(x))
                return x - change, rs.until(rs.max(rs.abs(change)) < 1e-10)

            return rs.loop(step, init=rs.full_like(mean, np.pi), n_steps=50)[-1]

        return f

    def jax(self, lanes):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(mean, e):
            def step(state):
                x, _, n = state
                change = (x - e * jnp.sin(x) - mean) / (1 - e * jnp.cos(x))
                return x - change, jnp.max(jnp.abs(change)), n + 1

            return jax.lax.while_loop(lambda s: (s[1] >= 1e-10) & (s[2] < 50), step, (jnp.full_like(mean, jnp.pi), jnp.inf, 0))[0]

        return f


class Sieve(Model):
    """The sieve of Eratosthenes: multiples of what is still prime are crossed out."""

    kind, dtype = KIND, "bool"
    size, small = dict(n=10_000), dict(n=40)

    def make(self, random, n):
        return (np.arange(2, int(n**0.5) + 1),)

    def rscan(self, n):
        @rs.compile
        def f(candidates):
            numbers = rs.arange(n)

            def step(p, prime):
                return rs.where(prime[p] & (numbers > p) & (numbers % p == 0), False, prime)

            prime = rs.loop(step, over=candidates, init=numbers > 1)[-1]
            return prime, rs.sum(prime)

        return f

    def jax(self, n):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(candidates):
            numbers = jnp.arange(n)

            def step(prime, p):
                return jnp.where(prime[p] & (numbers > p) & (numbers % p == 0), False, prime), None

            prime = jax.lax.scan(step, numbers > 1, candidates)[0]
            return prime, jnp.sum(prime)

        return f


class CongruentialGenerator(Model):
    """A linear congruential generator, and how many of its points lie in the quarter circle."""

    kind, dtype = KIND, "int64"
    size, small = dict(steps=20_000), dict(steps=20)

    def make(self, random, steps):
        return (np.int64(12345),)

    def rscan(self, steps):
        @rs.compile
        def f(seed):
            def step(x, inside):
                y = (1103515245 * x + 12345) % 2**31
                x = (1103515245 * y + 12345) % 2**31
                hit = (x / 2**31) ** 2 + (y / 2**31) ** 2 < 1
                return dict(x=x, inside=inside + hit)

            out = rs.loop(step, init=dict(x=seed, inside=rs.constant(0)), n_steps=steps)
            return out.x[-1], out.inside[-1]

        return f

    def jax(self, steps):
        import jax

        @jax.jit
        def f(seed):
            def step(_, state):
                x, inside = state
                y = (1103515245 * x + 12345) % 2**31
                x = (1103515245 * y + 12345) % 2**31
                return x, inside + ((x / 2**31) ** 2 + (y / 2**31) ** 2 < 1)

            return jax.lax.fori_loop(0, steps, step, (seed, 0))

        return f


class EuclidLanes(Model):
    """The greatest common divisors of many pairs, until all remainders are 0."""

    kind, dtype = KIND, "int64"
    size, small = dict(lanes=3000), dict(lanes=6)

    def make(self, random, lanes):
        return random.integers(1, 10**9, size=lanes), random.integers(1, 10**9, size=lanes)

    def rscan(self, lanes):
        @rs.compile
        def f(a, b):
            def step(a, b):
                rest = rs.where(b == 0, 0, a % rs.maximum(b, 1))
                return dict(a=rs.where(b == 0, a, b), b=rest), rs.until(rs.all(rest == 0))

            return rs.loop(step, init=dict(a=a, b=b), n_steps=100).a[-1]

        return f

    def jax(self, lanes):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(a, b):
            def step(state):
                a, b = state
                return jnp.where(b == 0, a, b), jnp.where(b == 0, 0, a % jnp.maximum(b, 1))

            return jax.lax.while_loop(lambda s: jnp.any(s[1] != 0), step, (a, b))[0]

        return f


class XorShift(Model):
    """Marsaglia's xorshift in 256 lanes of 64 unsigned bits; parities of the numbers are counted."""

    kind, dtype = KIND, "uint64"
    size, small = dict(lanes=256, steps=1000), dict(lanes=3, steps=5)

    def make(self, random, lanes, steps):
        return (random.integers(1, 2**63, size=lanes).astype("u8"),)

    def rscan(self, lanes, steps):
        @rs.compile
        def f(x):
            def step(x, odd):
                x = x ^ (x << 13)
                x = x ^ (x >> 7)
                x = x ^ (x << 17)
                return dict(x=x, odd=odd + ((x & 1) == 1))

            out = rs.loop(step, init=dict(x=x, odd=rs.zeros(lanes, dtype="int64")), n_steps=steps)
            return out.x[-1], out.odd[-1]

        return f

    def jax(self, lanes, steps):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(x):
            def step(_, state):
                x, odd = state
                x = x ^ (x << 13)
                x = x ^ (x >> 7)
                x = x ^ (x << 17)
                return x, odd + ((x & 1) == 1)

            return jax.lax.fori_loop(0, steps, step, (x, jnp.zeros(lanes, "int64")))

        return f


class BisectionLanes(Model):
    """Implied volatilities of many options by bisection, until all intervals are short."""

    kind, dtype = KIND, "float64"
    size, small = dict(lanes=2000), dict(lanes=4)

    def make(self, random, lanes):
        strike = random.uniform(0.8, 1.2, size=lanes)
        return strike, np.maximum(1 - strike, 0) + random.uniform(0.02, 0.1, size=lanes)

    def rscan(self, lanes):
        @rs.compile
        def f(strike, price):
            cdf = lambda x: 0.5 * (1 + rs.erf(x / 2**0.5))

            def step(low, high):
                s = 0.5 * (low + high)
                d = (0.5 * s**2 - rs.log(strike)) / s
                dear = cdf(d) - strike * cdf(d - s) > price
                new = dict(low=rs.where(dear, low, s), high=rs.where(dear, s, high))
                return new, rs.until(rs.max(new["high"] - new["low"]) < 1e-8)

            out = rs.loop(step, init=dict(low=rs.full(lanes, 1e-4), high=rs.full(lanes, 3.0)), n_steps=100)
            return 0.5 * (out.low[-1] + out.high[-1])

        return f

    def jax(self, lanes):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(strike, price):
            cdf = lambda x: 0.5 * (1 + jax.lax.erf(x / 2**0.5))

            def step(state):
                low, high = state
                s = 0.5 * (low + high)
                d = (0.5 * s**2 - jnp.log(strike)) / s
                dear = cdf(d) - strike * cdf(d - s) > price
                return jnp.where(dear, low, s), jnp.where(dear, s, high)

            start = (jnp.full(lanes, 1e-4), jnp.full(lanes, 3.0))
            low, high = jax.lax.while_loop(lambda s: jnp.max(s[1] - s[0]) >= 1e-8, step, start)
            return 0.5 * (low + high)

        return f
