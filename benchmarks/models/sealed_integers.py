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
            return out.level[-1], rs.sum(out.frontier, axis=1)[:1]

        return levels

    def jax(self, nodes, degree):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def levels(A, source):
            start = jnp.arange(nodes) == source

            def expand(frontier, level):
                return jnp.any(A & frontier[None, :], axis=1) & (level < 0)

            def step(state):
                depth, frontier, level = state
                new = expand(frontier, level)
                return depth + 1, new, jnp.where(new, depth + 1, level)

            level = jnp.where(start, 0, -1)
            first = jnp.sum(expand(start, level))
            _, _, level = lax.while_loop(lambda s: jnp.any(s[1]), step, (0, start, level))
            return level, first[None]

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
