"""Integers and truth values; loops that stop when a whole vector is done."""

import numpy as np

import rscan as rs
from models import Model


class ElementaryAutomaton(Model):
    """Wolfram's elementary automata: the rule is a number, and all generations are returned."""

    kind = "integers and booleans"
    dtype = "int64"
    size = dict(cells=512, steps=300)
    small = dict(cells=9, steps=5)

    def make(self, random, cells, steps):
        return random.integers(0, 2, size=cells), 110

    def rscan(self, cells, steps):
        @rs.compile
        def run(cells, rule):
            def step(c):
                neighbours = 4 * rs.roll(c, 1) + 2 * c + rs.roll(c, -1)
                return (rule >> neighbours) & 1

            rows = rs.loop(step, init=cells, n_steps=steps)
            return rows, rs.sum(rows, axis=1)

        return run

    def jax(self, cells, steps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def run(cells, rule):
            def step(c, _):
                neighbours = 4 * jnp.roll(c, 1) + 2 * c + jnp.roll(c, -1)
                new = (rule >> neighbours) & 1
                return new, new

            _, rows = lax.scan(step, cells, None, length=steps)
            return rows, jnp.sum(rows, axis=1)

        return run


class CollatzStops(Model):
    """How long the Collatz sequences of many numbers are, and how high they go; stops when all have come to 1."""

    kind = "integers and booleans"
    dtype = "int64"
    size = dict(numbers=1000)
    small = dict(numbers=8)

    def make(self, random, numbers):
        return (random.integers(1, 50_000 if numbers > 10 else 30, size=numbers),)

    def rscan(self, numbers):
        @rs.compile
        def lengths(start):
            def step(n, count, highest):
                done = n == 1
                new = rs.where(done, n, rs.where(n % 2 == 0, n // 2, 3 * n + 1))
                state = dict(n=new, count=count + rs.where(done, 0, 1), highest=rs.maximum(highest, new))
                return state, rs.until(rs.all(new == 1))

            init = dict(n=start, count=rs.zeros_like(start), highest=start)
            out = rs.loop(step, init=init, n_steps=1000)
            return out.count[-1], out.highest[-1]

        return lengths

    def jax(self, numbers):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def lengths(start):
            def step(state):
                n, count, highest = state
                done = n == 1
                new = jnp.where(done, n, jnp.where(n % 2 == 0, n // 2, 3 * n + 1))
                return new, count + jnp.where(done, 0, 1), jnp.maximum(highest, new)

            _, count, highest = lax.while_loop(lambda s: jnp.any(s[0] != 1), step, (start, jnp.zeros_like(start), start))
            return count, highest

        return lengths


class BreadthFirstLevels(Model):
    """Levels of a breadth-first search in a graph given as a matrix of truth values; stops when nothing new is found."""

    kind = "integers and booleans"
    dtype = "int64"
    size = dict(nodes=300, degree=2)
    small = dict(nodes=8, degree=2)

    def make(self, random, nodes, degree):
        A = random.random((nodes, nodes)) < degree / nodes
        ring = np.arange(nodes - 1)
        A[ring, ring + 1] |= random.random(nodes - 1) < 0.7
        return A | A.T, 0

    def rscan(self, nodes, degree):
        @rs.compile
        def levels(A, source):
            start = rs.eq(rs.arange(nodes), source)

            def step(depth, frontier, level):
                reached = rs.any(A & frontier[None, :], axis=1)
                new = reached & (level < 0)
                return dict(frontier=new, level=rs.where(new, depth + 1, level)), rs.until(~rs.any(new))

            init = dict(frontier=start, level=rs.where(start, 0, -1))
            out = rs.loop(step, over=dict(depth=rs.arange(nodes)), init=init)
            return out.level[-1], rs.max(out.level[-1])

        return levels

    def jax(self, nodes, degree):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def levels(A, source):
            start = jnp.arange(nodes) == source

            def step(state):
                depth, frontier, level = state
                new = jnp.any(A & frontier[None, :], axis=1) & (level < 0)
                return depth + 1, new, jnp.where(new, depth + 1, level)

            _, _, level = lax.while_loop(lambda s: jnp.any(s[1]), step, (0, start, jnp.where(start, 0, -1)))
            return level, jnp.max(level)

        return levels


class AbelianSandpile(Model):
    """Topples piles on a table until all are below four grains; counts how often each toppled."""

    kind = "integers and booleans"
    dtype = "int64"
    size = dict(side=32, grains=6)
    small = dict(side=4, grains=6)

    def make(self, random, side, grains):
        return (random.integers(0, grains, size=(side, side)),)

    def rscan(self, side, grains):
        @rs.compile
        def stabilise(piles):
            def step(z, topplings):
                over = z // 4
                padded = rs.zeros((side + 2, side + 2), dtype="int64").at[1:-1, 1:-1].set(over)
                received = padded[2:, 1:-1] + padded[:-2, 1:-1] + padded[1:-1, 2:] + padded[1:-1, :-2]
                z = z - 4 * over + received
                return dict(z=z, topplings=topplings + over), rs.until(rs.all(z < 4))

            out = rs.loop(step, init=dict(z=piles, topplings=rs.zeros_like(piles)), n_steps=100_000)
            return out.z[-1], out.topplings[-1]

        return stabilise

    def jax(self, side, grains):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def stabilise(piles):
            def step(state):
                z, topplings = state
                over = z // 4
                p = jnp.pad(over, 1)
                received = p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2]
                return z - 4 * over + received, topplings + over

            return lax.while_loop(lambda s: jnp.any(s[0] >= 4), step, (piles, jnp.zeros_like(piles)))

        return stabilise


class MyersDistance(Model):
    """Edit distances of many short patterns to all prefixes of a text by Myers' bit vectors, 64 rows in one word."""

    kind = "integers and booleans"
    dtype = "uint64"
    size = dict(patterns=100, length=60, text=400)
    small = dict(patterns=3, length=5, text=6)

    def make(self, random, patterns, length, text):
        P = random.integers(0, 4, size=(patterns, length))
        bits = np.uint64(1) << np.arange(length, dtype="u8")
        masks = np.stack([np.sum(np.where(P == c, bits, np.uint64(0)), axis=1) for c in range(4)]).astype("u8")
        return masks, random.integers(0, 4, size=text)

    def rscan(self, patterns, length, text):
        one = np.uint64(1)
        top = np.uint64(length - 1)

        @rs.compile
        def distances(masks, text):
            def step(c, pv, mv, score):
                eq = masks[c]
                xv = eq | mv
                xh = (((eq & pv) + pv) ^ pv) | eq
                ph = mv | ~(xh | pv)
                mh = pv & xh
                score = score + rs.cast((ph >> top) & one, "int64") - rs.cast((mh >> top) & one, "int64")
                ph = (ph << one) | one
                mh = mh << one
                return dict(pv=mh | ~(xv | ph), mv=ph & xv, score=score)

            zero = rs.zeros(patterns, dtype="uint64")
            init = dict(pv=~zero, mv=zero, score=rs.full((patterns,), length))
            return rs.loop(step, over=dict(c=text), init=init).score

        return distances

    def jax(self, patterns, length, text):
        import jax
        import jax.numpy as jnp
        from jax import lax

        one = np.uint64(1)
        top = np.uint64(length - 1)

        @jax.jit
        def distances(masks, text):
            def step(state, c):
                pv, mv, score = state
                eq = masks[c]
                xv = eq | mv
                xh = (((eq & pv) + pv) ^ pv) | eq
                ph = mv | ~(xh | pv)
                mh = pv & xh
                score = score + ((ph >> top) & one).astype(jnp.int64) - ((mh >> top) & one).astype(jnp.int64)
                ph = (ph << one) | one
                mh = mh << one
                return (mh | ~(xv | ph), ph & xv, score), score

            zero = jnp.zeros(patterns, jnp.uint64)
            return lax.scan(step, (~zero, zero, jnp.full(patterns, length)), text)[1]

        return distances


class RadixSort(Model):
    """A stable radix sort by single bits: places from running counts, and a scatter per bit."""

    kind = "integers and booleans"
    dtype = "int64"
    size = dict(numbers=2000, bits=16)
    small = dict(numbers=7, bits=4)

    def make(self, random, numbers, bits):
        return (random.integers(0, 2**bits, size=numbers),)

    def rscan(self, numbers, bits):
        @rs.compile
        def sort(x):
            def by_bit(k, x, order):
                bit = (x >> k) & 1
                zeros = rs.cumsum(1 - bit)
                place = rs.where(bit == 0, zeros - 1, zeros[-1] + rs.cumsum(bit) - 1)
                return dict(x=rs.zeros_like(x).at[place].set(x), order=rs.zeros_like(order).at[place].set(order))

            out = rs.loop(by_bit, over=dict(k=rs.arange(bits)), init=dict(x=x, order=rs.arange(numbers)))
            return out.x[-1], out.order[-1]

        return sort

    def jax(self, numbers, bits):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def sort(x):
            def by_bit(k, state):
                x, order = state
                bit = (x >> k) & 1
                zeros = jnp.cumsum(1 - bit)
                place = jnp.where(bit == 0, zeros - 1, zeros[-1] + jnp.cumsum(bit) - 1)
                write = dict(unique_indices=True)
                return jnp.zeros_like(x).at[place].set(x, **write), jnp.zeros_like(order).at[place].set(order, **write)

            return lax.fori_loop(0, bits, by_bit, (x, jnp.arange(numbers)))

        return sort
