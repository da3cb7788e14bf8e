"""Fields on grids in one and two dimensions."""

import numpy as np

import rscan as rs
from models import Model


class GrayScottPatterns(Model):
    """Reaction and diffusion of two species on a torus."""

    kind = "stencils"
    dtype = "float32"
    size = dict(side=64, steps=60)
    small = dict(side=6, steps=3)

    def make(self, random, side, steps):
        u = np.ones((side, side)) + 0.02 * random.normal(size=(side, side))
        v = 0.02 * random.random((side, side))
        middle = slice(side // 3, 2 * side // 3)
        u[middle, middle], v[middle, middle] = 0.5, 0.25
        return u.astype("f4"), v.astype("f4"), np.float32(0.035), np.float32(0.065)

    def rscan(self, side, steps):
        def laplacian(a):
            return rs.roll(a, 1, axis=0) + rs.roll(a, -1, axis=0) + rs.roll(a, 1, axis=1) + rs.roll(a, -1, axis=1) - 4 * a

        @rs.compile
        def simulate(u0, v0, feed, kill):
            def step(u, v):
                uvv = u * v * v
                return dict(
                    u=u + np.float32(0.16) * laplacian(u) - uvv + feed * (1 - u),
                    v=v + np.float32(0.08) * laplacian(v) + uvv - (feed + kill) * v,
                )

            out = rs.loop(step, init=dict(u=u0, v=v0), n_steps=steps)
            return out.u[-1], out.v[-1]

        return simulate

    def jax(self, side, steps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def laplacian(a):
            return jnp.roll(a, 1, 0) + jnp.roll(a, -1, 0) + jnp.roll(a, 1, 1) + jnp.roll(a, -1, 1) - 4 * a

        @jax.jit
        def simulate(u, v, feed, kill):
            def step(_, state):
                u, v = state
                uvv = u * v * v
                return (
                    u + 0.16 * laplacian(u) - uvv + feed * (1 - u),
                    v + 0.08 * laplacian(v) + uvv - (feed + kill) * v,
                )

            return lax.fori_loop(0, steps, step, (u, v))

        return simulate


class MaxwellLine(Model):
    """Yee's scheme for a pulse on a line of dielectrics: the misfit at a receiver and its gradient by permittivity."""

    kind = "stencils"
    dtype = "float64"
    size = dict(cells=300, steps=400)
    small = dict(cells=12, steps=8)

    def make(self, random, cells, steps):
        permittivity = 1 + random.random(cells)
        t = np.arange(steps)
        source = np.exp(-(((t - 40.0) / 12) ** 2))
        return permittivity, source, 0.1 * random.normal(size=steps)

    def rscan(self, cells, steps):
        @rs.compile
        def misfit(permittivity, source, observed):
            courant = 0.5 / permittivity

            def step(pulse, E, H):
                H = H + 0.5 * (E[1:] - E[:-1])
                inside = E[1:-1] + courant[1:-1] * (H[1:] - H[:-1])
                E = rs.concatenate([rs.zeros(1), inside, rs.zeros(1)])
                E = E.at[cells // 4].add(pulse)
                return dict(E=E, H=H, seen=E[3 * cells // 4])

            out = rs.loop(step, over=dict(pulse=source), init=dict(E=rs.zeros(cells), H=rs.zeros(cells - 1)))
            return rs.sum((out.seen - observed) ** 2)

        return rs.value_and_grad(misfit)

    def jax(self, cells, steps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def misfit(permittivity, source, observed):
            courant = 0.5 / permittivity

            def step(state, pulse):
                E, H = state
                H = H + 0.5 * (E[1:] - E[:-1])
                E = E.at[1:-1].add(courant[1:-1] * (H[1:] - H[:-1]))
                E = E.at[cells // 4].add(pulse)
                return (E, H), E[3 * cells // 4]

            _, seen = lax.scan(step, (jnp.zeros(cells), jnp.zeros(cells - 1)), source)
            return jnp.sum((seen - observed) ** 2)

        return jax.jit(jax.value_and_grad(misfit))


class BurgersMinmod(Model):
    """Burgers' equation by a finite-volume scheme with limited slopes and Rusanov's flux; the step follows the fastest wave."""

    kind = "stencils"
    dtype = "float64"
    size = dict(cells=256, steps=300)
    small = dict(cells=10, steps=4)

    def make(self, random, cells, steps):
        x = np.arange(cells) / cells
        return (np.sin(2 * np.pi * x) + 0.5 + 0.05 * random.normal(size=cells),)

    def rscan(self, cells, steps):
        def minmod(a, b):
            return rs.where(a * b > 0, rs.where(rs.abs(a) < rs.abs(b), a, b), 0.0)

        @rs.compile
        def solve(u0):
            def step(u, time):
                slope = minmod(u - rs.roll(u, 1), rs.roll(u, -1) - u)
                left = u + 0.5 * slope
                right = rs.roll(u - 0.5 * slope, -1)
                speed = rs.maximum(rs.abs(left), rs.abs(right))
                flux = 0.25 * (left**2 + right**2) - 0.5 * speed * (right - left)
                dt = 0.4 / (cells * rs.max(rs.abs(u)))
                return dict(u=u - dt * cells * (flux - rs.roll(flux, 1)), time=time + dt)

            out = rs.loop(step, init=dict(u=u0, time=0.0), n_steps=steps)
            return out.u[-1], out.time

        return solve

    def jax(self, cells, steps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def minmod(a, b):
            return jnp.where(a * b > 0, jnp.where(jnp.abs(a) < jnp.abs(b), a, b), 0.0)

        @jax.jit
        def solve(u0):
            def step(state, _):
                u, time = state
                slope = minmod(u - jnp.roll(u, 1), jnp.roll(u, -1) - u)
                left = u + 0.5 * slope
                right = jnp.roll(u - 0.5 * slope, -1)
                speed = jnp.maximum(jnp.abs(left), jnp.abs(right))
                flux = 0.25 * (left**2 + right**2) - 0.5 * speed * (right - left)
                dt = 0.4 / (cells * jnp.max(jnp.abs(u)))
                time = time + dt
                return (u - dt * cells * (flux - jnp.roll(flux, 1)), time), time

            (u, _), times = lax.scan(step, (u0, 0.0), None, length=steps)
            return u, times

        return solve


class LatticeBoltzmann(Model):
    """A channel flow past an obstacle: nine populations that stream and collide, walls that bounce them back."""

    kind = "stencils"
    dtype = "float32"
    size = dict(rows=32, columns=64, steps=40)
    small = dict(rows=5, columns=6, steps=3)

    def make(self, random, rows, columns, steps):
        y, x = np.mgrid[:rows, :columns]
        wall = (x - columns // 4) ** 2 + (y - rows // 2) ** 2 < (rows / 6) ** 2
        weights = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)
        f = weights[:, None, None] * (1 + 0.01 * random.normal(size=(9, rows, columns)))
        return f.astype("f4"), wall, np.float32(1.2), np.float32(1e-4)

    directions = ((0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1))
    opposite = (0, 3, 4, 1, 2, 7, 8, 5, 6)

    def rscan(self, rows, columns, steps):
        cx = np.array([d[0] for d in self.directions], "f4")[:, None, None]
        cy = np.array([d[1] for d in self.directions], "f4")[:, None, None]
        weights = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4, "f4")[:, None, None]

        @rs.compile
        def flow(f, wall, omega, force):
            def step(f):
                f = rs.stack([rs.roll(rs.roll(f[k], dx, axis=1), dy, axis=0) for k, (dx, dy) in enumerate(self.directions)])
                bounced = f[list(self.opposite)]
                rho = rs.sum(f, axis=0)
                ux, uy = rs.sum(cx * f, axis=0) / rho, rs.sum(cy * f, axis=0) / rho
                cu = cx * ux + cy * uy
                equilibrium = weights * rho * (1 + 3 * cu + np.float32(4.5) * cu**2 - np.float32(1.5) * (ux**2 + uy**2))
                new = f + omega * (equilibrium - f) + 3 * weights * cx * force
                return dict(f=rs.where(wall, bounced, new), flux=rs.mean(ux))

            out = rs.loop(step, init=dict(f=f), n_steps=steps)
            return out.f[-1], out.flux

        return flow

    def jax(self, rows, columns, steps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        cx = np.array([d[0] for d in self.directions], "f4")
        cy = np.array([d[1] for d in self.directions], "f4")
        weights = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4, "f4")[:, None, None]
        opposite = np.array(self.opposite)

        @jax.jit
        def flow(f, wall, omega, force):
            def step(f, _):
                f = jnp.stack([jnp.roll(f[k], (dy, dx), (0, 1)) for k, (dx, dy) in enumerate(self.directions)])
                rho = jnp.sum(f, axis=0)
                ux, uy = jnp.tensordot(cx, f, 1) / rho, jnp.tensordot(cy, f, 1) / rho
                cu = cx[:, None, None] * ux + cy[:, None, None] * uy
                equilibrium = weights * rho * (1 + 3 * cu + 4.5 * cu**2 - 1.5 * (ux**2 + uy**2))
                new = f + omega * (equilibrium - f) + 3 * weights * cx[:, None, None] * force
                return jnp.where(wall, f[opposite], new), jnp.mean(ux)

            return lax.scan(step, f, None, length=steps)

        return flow


class ComponentLabels(Model):
    """Connected parts of a picture: every pixel takes the smallest label around it, until all labels stand still."""

    kind = "stencils"
    dtype = "int64"
    size = dict(side=48)
    small = dict(side=5)

    def make(self, random, side):
        return (random.random((side, side)) < 0.6,)

    def rscan(self, side):
        @rs.compile
        def label(picture):
            nothing = side * side
            start = rs.where(picture, rs.arange(side * side).reshape((side, side)), nothing)

            def step(a):
                row = rs.full((1, side), nothing)
                column = rs.full((side, 1), nothing)
                up = rs.concatenate([a[1:], row], axis=0)
                down = rs.concatenate([row, a[:-1]], axis=0)
                left = rs.concatenate([a[:, 1:], column], axis=1)
                right = rs.concatenate([column, a[:, :-1]], axis=1)
                around = rs.minimum(rs.minimum(up, down), rs.minimum(left, right))
                new = rs.where(picture, rs.minimum(a, around), nothing)
                return new, rs.until(rs.all(new == a))

            labels = rs.loop(step, init=start, n_steps=side * side)
            return labels[-1], rs.sum(rs.eq(labels[-1], rs.arange(side * side).reshape((side, side))))

        return label

    def jax(self, side):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def label(picture):
            nothing = side * side
            own = jnp.arange(side * side).reshape(side, side)

            def step(state):
                a, _ = state
                p = jnp.pad(a, 1, constant_values=nothing)
                around = jnp.minimum(jnp.minimum(p[2:, 1:-1], p[:-2, 1:-1]), jnp.minimum(p[1:-1, 2:], p[1:-1, :-2]))
                new = jnp.where(picture, jnp.minimum(a, around), nothing)
                return new, jnp.any(new != a)

            labels, _ = lax.while_loop(lambda s: s[1], step, (jnp.where(picture, own, nothing), True))
            return labels, jnp.sum(labels == own)

        return label
