"""Numerical methods: Krylov spaces, finite volumes, spectra, relaxation, finite elements, fits, particles, lattices, fractions, orbits."""

import numpy as np

import rscan as rs
from models import Model

KIND = "numerical methods"


class ArnoldiTwiceOrthogonal(Model):
    """GMRES without restart for convection and diffusion on a square, each new direction made orthogonal twice."""

    kind = KIND
    dtype = "float64"
    size = dict(side=24, krylov=24)
    small = dict(side=5, krylov=4)

    def make(self, random, side, krylov):
        return random.normal(size=side * side), random.normal(size=(2, side, side))

    def rscan(self, side, krylov):
        @rs.compile
        def gmres(b, wind):
            def apply(v):
                u = rs.reshape(v, (side, side))
                p = rs.pad(u, 1)
                laplace = 4.0 * u - p[:-2, 1:-1] - p[2:, 1:-1] - p[1:-1, :-2] - p[1:-1, 2:]
                drift = wind[0] * (p[2:, 1:-1] - p[:-2, 1:-1]) + wind[1] * (p[1:-1, 2:] - p[1:-1, :-2])
                return rs.reshape(laplace + 0.25 * drift, (side * side,))

            def step(j, basis):
                w = apply(basis[j])
                h = basis @ w
                w = w - h @ basis
                again = basis @ w
                w = w - again @ basis
                size = rs.sqrt(w @ w)
                return dict(basis=basis.at[j + 1].set(w / size), column=(h + again).at[j + 1].set(size))

            beta = rs.sqrt(b @ b)
            start = rs.zeros((krylov + 1, side * side)).at[0].set(b / beta)
            out = rs.loop(step, over=dict(j=rs.arange(krylov)), init=dict(basis=start))
            hessenberg = out.column.T
            y = rs.linalg.lstsq(hessenberg, rs.zeros(krylov + 1).at[0].set(beta))[0]
            x = y @ out.last.basis[:krylov]
            r = b - apply(x)
            return x, rs.sqrt(r @ r)

        return gmres

    def jax(self, side, krylov):
        import jax
        import jax.numpy as jnp

        def gmres(b, wind):
            def apply(v):
                u = v.reshape(side, side)
                p = jnp.pad(u, 1)
                laplace = 4.0 * u - p[:-2, 1:-1] - p[2:, 1:-1] - p[1:-1, :-2] - p[1:-1, 2:]
                drift = wind[0] * (p[2:, 1:-1] - p[:-2, 1:-1]) + wind[1] * (p[1:-1, 2:] - p[1:-1, :-2])
                return (laplace + 0.25 * drift).reshape(-1)

            def step(basis, j):
                w = apply(basis[j])
                h = basis @ w
                w = w - h @ basis
                again = basis @ w
                w = w - again @ basis
                size = jnp.sqrt(w @ w)
                return basis.at[j + 1].set(w / size), (h + again).at[j + 1].set(size)

            beta = jnp.sqrt(b @ b)
            start = jnp.zeros((krylov + 1, side * side)).at[0].set(b / beta)
            basis, columns = jax.lax.scan(step, start, jnp.arange(krylov))
            y = jnp.linalg.lstsq(columns.T, jnp.zeros(krylov + 1).at[0].set(beta))[0]
            x = y @ basis[:krylov]
            r = b - apply(x)
            return x, jnp.sqrt(r @ r)

        return jax.jit(gmres)


class DamBreakLimiter(Model):
    """Shallow water behind a breaking dam: slopes limited by van Leer, Rusanov's flux, steps by the CFL number; the gradient by the heights."""

    kind = KIND
    dtype = "float64"
    size = dict(cells=200, steps=120)
    small = dict(cells=12, steps=4)

    def make(self, random, cells, steps):
        height = np.where(np.arange(cells) < cells // 2, 2.0, 1.0) + 0.05 * random.normal(size=cells)
        return height, 0.1 * random.normal(size=cells), 1.4 + 0.1 * random.normal(size=cells)

    def rscan(self, cells, steps):
        g, dx = 9.81, 1.0 / cells

        def limited(q):
            d = q[1:] - q[:-1]
            a, b = d[:-1], d[1:]
            return rs.where(a * b > 0, 2 * a * b / rs.where(a * b > 0, a + b, 1.0), 0.0)

        def ghosts(q, sign):
            return rs.concatenate([sign * q[1:2], sign * q[:1], q, sign * q[-1:], sign * q[-2:-1]])

        def step(h, m):
            u = m / h
            dt = 0.4 * dx / rs.max(rs.abs(u) + rs.sqrt(g * h))
            hg, mg = ghosts(h, 1.0), ghosts(m, -1.0)
            sh, sm = limited(hg), limited(mg)
            hl, hr = hg[1:-2] + 0.5 * sh[:-1], hg[2:-1] - 0.5 * sh[1:]
            ml, mr = mg[1:-2] + 0.5 * sm[:-1], mg[2:-1] - 0.5 * sm[1:]
            ul, ur = ml / hl, mr / hr
            speed = rs.maximum(rs.abs(ul) + rs.sqrt(g * hl), rs.abs(ur) + rs.sqrt(g * hr))
            fh = 0.5 * (ml + mr) - 0.5 * speed * (hr - hl)
            fm = 0.5 * (ml * ul + 0.5 * g * hl**2 + mr * ur + 0.5 * g * hr**2) - 0.5 * speed * (mr - ml)
            return dict(h=h - dt / dx * (fh[1:] - fh[:-1]), m=m - dt / dx * (fm[1:] - fm[:-1]))

        @rs.compile
        def misfit(height, momentum, seen):
            out = rs.loop(step, init=dict(h=height, m=momentum), n_steps=steps)
            return rs.sum((out.last.h - seen) ** 2)

        return rs.value_and_grad(misfit)

    def jax(self, cells, steps):
        import jax
        import jax.numpy as jnp

        g, dx = 9.81, 1.0 / cells

        def limited(q):
            d = q[1:] - q[:-1]
            a, b = d[:-1], d[1:]
            return jnp.where(a * b > 0, 2 * a * b / jnp.where(a * b > 0, a + b, 1.0), 0.0)

        def ghosts(q, sign):
            return jnp.concatenate([sign * q[1:2], sign * q[:1], q, sign * q[-1:], sign * q[-2:-1]])

        def step(state, _):
            h, m = state
            u = m / h
            dt = 0.4 * dx / jnp.max(jnp.abs(u) + jnp.sqrt(g * h))
            hg, mg = ghosts(h, 1.0), ghosts(m, -1.0)
            sh, sm = limited(hg), limited(mg)
            hl, hr = hg[1:-2] + 0.5 * sh[:-1], hg[2:-1] - 0.5 * sh[1:]
            ml, mr = mg[1:-2] + 0.5 * sm[:-1], mg[2:-1] - 0.5 * sm[1:]
            ul, ur = ml / hl, mr / hr
            speed = jnp.maximum(jnp.abs(ul) + jnp.sqrt(g * hl), jnp.abs(ur) + jnp.sqrt(g * hr))
            fh = 0.5 * (ml + mr) - 0.5 * speed * (hr - hl)
            fm = 0.5 * (ml * ul + 0.5 * g * hl**2 + mr * ur + 0.5 * g * hr**2) - 0.5 * speed * (mr - ml)
            return (h - dt / dx * (fh[1:] - fh[:-1]), m - dt / dx * (fm[1:] - fm[:-1])), None

        def misfit(height, momentum, seen):
            (h, _), _ = jax.lax.scan(step, (height, momentum), None, length=steps)
            return jnp.sum((h - seen) ** 2)

        return jax.jit(jax.value_and_grad(misfit))


class KuramotoSpectralSteps(Model):
    """The Kuramoto-Sivashinsky equation by Fourier modes: Crank-Nicolson of what is linear, Adams-Bashforth of the rest, dealiased."""

    kind = KIND
    dtype = "float64"
    size = dict(points=128, steps=200)
    small = dict(points=16, steps=5)

    def make(self, random, points, steps):
        x = 2 * np.pi * np.arange(points) / points
        return np.cos(x) + 0.1 * np.sin(2 * x) + 0.01 * random.normal(size=points), 0.05

    def rscan(self, points, steps):
        modes = np.arange(points // 2 + 1)
        k = modes * (2 * np.pi / 32.0)
        keep = (modes < points / 3).astype("float64")
        linear = k**2 - k**4

        @rs.compile
        def run(u, dt):
            def advection(u):
                re, im = rs.fft.rfft(u * u)
                return 0.5 * k * keep * im, -0.5 * k * keep * re  # -i k / 2 times the transform of u²

            def step(re, im, nre, nim):
                u = rs.fft.irfft((re, im), n=points)
                new_re, new_im = advection(u)
                up, down = 1 + 0.5 * dt * linear, 1 - 0.5 * dt * linear
                return dict(
                    re=(up * re + dt * (1.5 * new_re - 0.5 * nre)) / down,
                    im=(up * im + dt * (1.5 * new_im - 0.5 * nim)) / down,
                    nre=new_re,
                    nim=new_im,
                    energy=rs.mean(u * u),
                )

            re, im = rs.fft.rfft(u)
            nre, nim = advection(u)
            out = rs.loop(step, init=dict(re=re, im=im, nre=nre, nim=nim), n_steps=steps)
            return rs.fft.irfft((out.last.re, out.last.im), n=points), out.energy

        return run

    def jax(self, points, steps):
        import jax
        import jax.numpy as jnp

        modes = np.arange(points // 2 + 1)
        k = modes * (2 * np.pi / 32.0)
        keep = (modes < points / 3).astype("float64")
        linear = k**2 - k**4

        def run(u, dt):
            def advection(u):
                return -0.5j * k * keep * jnp.fft.rfft(u * u)

            def step(state, _):
                v, old = state
                u = jnp.fft.irfft(v, n=points)
                new = advection(u)
                v = ((1 + 0.5 * dt * linear) * v + dt * (1.5 * new - 0.5 * old)) / (1 - 0.5 * dt * linear)
                return (v, new), jnp.mean(u * u)

            (v, _), energy = jax.lax.scan(step, (jnp.fft.rfft(u), advection(u)), None, length=steps)
            return jnp.fft.irfft(v, n=points), energy

        return jax.jit(run)


class ObstacleRedBlack(Model):
    """A membrane over an obstacle: projected over-relaxation of red and of black nodes in turn, until nothing moves."""

    kind = KIND
    dtype = "float64"
    size = dict(side=48, limit=400)
    small = dict(side=6, limit=20)

    def make(self, random, side, limit):
        x = np.linspace(-1, 1, side + 2)[1:-1]
        bump = 0.4 - 2.0 * ((x[:, None] - 0.2) ** 2 + (x[None, :] + 0.1) ** 2)
        return bump + 0.01 * random.normal(size=(side, side)), 1.0 + random.uniform(size=(side, side)), 1.85

    def rscan(self, side, limit):
        red = np.indices((side, side)).sum(axis=0) % 2 == 0
        spacing = 2.0 / (side + 1)

        @rs.compile
        def membrane(obstacle, load, omega):
            def sweep(u, colour):
                p = rs.pad(u, 1)
                middle = 0.25 * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - spacing**2 * load)
                return rs.where(colour, rs.maximum(obstacle, u + omega * (middle - u)), u)

            def step(u):
                new = sweep(sweep(u, red), ~red)
                return dict(u=new), rs.until(rs.max(rs.abs(new - u)) < 1e-7)

            out = rs.loop(step, init=dict(u=rs.maximum(obstacle, 0.0)), n_steps=limit)
            return out.last.u, out.steps, rs.sum(out.last.u <= obstacle)

        return membrane

    def jax(self, side, limit):
        import jax
        import jax.numpy as jnp

        red = np.indices((side, side)).sum(axis=0) % 2 == 0
        spacing = 2.0 / (side + 1)

        def membrane(obstacle, load, omega):
            def sweep(u, colour):
                p = jnp.pad(u, 1)
                middle = 0.25 * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - spacing**2 * load)
                return jnp.where(colour, jnp.maximum(obstacle, u + omega * (middle - u)), u)

            def more(state):
                _, moved, n = state
                return (moved >= 1e-7) & (n < limit)

            def step(state):
                u, _, n = state
                new = sweep(sweep(u, red), ~red)
                return new, jnp.max(jnp.abs(new - u)), n + 1

            u, _, n = jax.lax.while_loop(more, step, (jnp.maximum(obstacle, 0.0), jnp.inf, 0))
            return u, n, jnp.sum(u <= obstacle)

        return jax.jit(membrane)


class BarAssemblyNewton(Model):
    """A bar that stiffens, in finite elements assembled by indices: Newton's method under growing loads, Thomas's sweeps; the gradient by the moduli."""

    kind = KIND
    dtype = "float64"
    size = dict(elements=40, loads=8, newton=4)
    small = dict(elements=5, loads=2, newton=3)

    def make(self, random, elements, loads, newton):
        ends = np.stack([np.arange(elements), np.arange(elements) + 1], axis=1)
        return 1.0 + random.uniform(size=elements), ends, np.linspace(0.1, 1.0, loads), 0.3 * np.linspace(0.1, 1.0, loads)

    def rscan(self, elements, loads, newton):
        length = 1.0 / elements

        def thomas(lower, diag, upper, rhs):
            def forward(a, b, c, d, above, right):
                pivot = b - a * above
                return dict(above=c / pivot, right=(d - a * right) / pivot)

            down = rs.loop(forward, over=dict(a=lower, b=diag, c=upper, d=rhs), init=dict(above=0.0, right=0.0))
            return rs.loop(lambda c, d, x: d - c * x, over=[down.above, down.right], init=0.0, reverse=True)

        @rs.compile
        def misfit(moduli, ends, forces, seen):
            i, j = ends[:, 0], ends[:, 1]

            def newton_step(u, force):
                strain = (u[j] - u[i]) / length
                stress = moduli * (strain + 0.5 * strain**3)
                stiff = moduli * (1.0 + 1.5 * strain**2) / length
                residual = rs.zeros(elements + 1).at[i].add(-stress).at[j].add(stress)
                residual = residual.at[elements].add(-force)
                diag = rs.zeros(elements + 1).at[i].add(stiff).at[j].add(stiff)
                lower = rs.zeros(elements + 1).at[j].set(-stiff)
                upper = rs.zeros(elements + 1).at[i].set(-stiff)
                # the first node is held
                diag, upper, lower = diag.at[0].set(1.0), upper.at[0].set(0.0), lower.at[1].set(0.0)
                return u - thomas(lower, diag, upper, residual.at[0].set(0.0))

            def load_step(force, u):
                u = rs.loop(lambda u: newton_step(u, force), init=u, n_steps=newton).last
                return dict(u=u, tip=u[elements])

            out = rs.loop(load_step, over=dict(force=forces), init=dict(u=rs.zeros(elements + 1)))
            return rs.sum((out.tip - seen) ** 2)

        return rs.value_and_grad(misfit)

    def jax(self, elements, loads, newton):
        import jax
        import jax.numpy as jnp

        length = 1.0 / elements

        def thomas(lower, diag, upper, rhs):
            def forward(carry, row):
                above, right = carry
                a, b, c, d = row
                pivot = b - a * above
                new = c / pivot, (d - a * right) / pivot
                return new, new

            _, (above, right) = jax.lax.scan(forward, (0.0, 0.0), (lower, diag, upper, rhs))

            def back(x, row):
                c, d = row
                x = d - c * x
                return x, x

            return jax.lax.scan(back, 0.0, (above, right), reverse=True)[1]

        def misfit(moduli, ends, forces, seen):
            i, j = ends[:, 0], ends[:, 1]

            def newton_step(u, force):
                strain = (u[j] - u[i]) / length
                stress = moduli * (strain + 0.5 * strain**3)
                stiff = moduli * (1.0 + 1.5 * strain**2) / length
                residual = jnp.zeros(elements + 1).at[i].add(-stress).at[j].add(stress)
                residual = residual.at[elements].add(-force)
                diag = jnp.zeros(elements + 1).at[i].add(stiff).at[j].add(stiff)
                lower = jnp.zeros(elements + 1).at[j].set(-stiff)
                upper = jnp.zeros(elements + 1).at[i].set(-stiff)
                diag, upper, lower = diag.at[0].set(1.0), upper.at[0].set(0.0), lower.at[1].set(0.0)
                return u - thomas(lower, diag, upper, residual.at[0].set(0.0))

            def load_step(u, force):
                u, _ = jax.lax.scan(lambda u, _: (newton_step(u, force), None), u, None, length=newton)
                return u, u[elements]

            _, tips = jax.lax.scan(load_step, jnp.zeros(elements + 1), forces)
            return jnp.sum((tips - seen) ** 2)

        return jax.jit(jax.value_and_grad(misfit))


class LevenbergDecayCurves(Model):
    """Levenberg-Marquardt for the sum of two decays, many curves at once, each until its own step is small; Jacobians in the step."""

    kind = KIND
    dtype = "float64"
    size = dict(curves=48, points=40, limit=40)
    small = dict(curves=3, points=9, limit=15)
    rtol = 1e-6

    def make(self, random, curves, points, limit):
        t = np.linspace(0.0, 4.0, points)
        p = np.array([2.0, 0.7, 1.0, -1.0]) + 0.1 * random.normal(size=(curves, 4))
        y = p[:, :1] * np.exp(-np.exp(p[:, 1:2]) * t) + p[:, 2:3] * np.exp(-np.exp(p[:, 3:]) * t)
        return t, y + 0.003 * random.normal(size=y.shape), np.array([1.5, 0.5, 1.3, -0.7])

    def rscan(self, curves, points, limit):
        def fit(t, y, p0):
            def residual(p):
                return p[0] * rs.exp(-rs.exp(p[1]) * t) + p[2] * rs.exp(-rs.exp(p[3]) * t) - y

            def step(p, damping, cost):
                r, j = residual(p), rs.jacobian(residual)(p)
                normal = j.T @ j
                move = rs.linalg.solve(normal + damping * rs.diag(rs.diag(normal)), j.T @ r)
                trial = p - move
                new = rs.sum(residual(trial) ** 2)
                better = new < cost
                states = dict(
                    p=rs.where(better, trial, p),
                    damping=rs.where(better, damping / 3.0, damping * 4.0),
                    cost=rs.where(better, new, cost),
                )
                return states, rs.until((rs.max(rs.abs(move)) < 1e-8) | (damping > 1e10))

            start = dict(p=p0, damping=1e-2, cost=rs.sum(residual(p0) ** 2))
            out = rs.loop(step, init=start, n_steps=limit).last
            return out.p, out.cost

        return rs.compile(rs.vmap(fit, in_axes=(None, 0, None)))

    def jax(self, curves, points, limit):
        import jax
        import jax.numpy as jnp

        def fit(t, y, p0):
            def residual(p):
                return p[0] * jnp.exp(-jnp.exp(p[1]) * t) + p[2] * jnp.exp(-jnp.exp(p[3]) * t) - y

            def step(state):
                p, damping, cost, n, _ = state
                r, j = residual(p), jax.jacfwd(residual)(p)
                normal = j.T @ j
                move = jnp.linalg.solve(normal + damping * jnp.diag(jnp.diag(normal)), j.T @ r)
                trial = p - move
                new = jnp.sum(residual(trial) ** 2)
                better = new < cost
                done = (jnp.max(jnp.abs(move)) < 1e-8) | (damping > 1e10)
                return (
                    jnp.where(better, trial, p),
                    jnp.where(better, damping / 3.0, damping * 4.0),
                    jnp.where(better, new, cost),
                    n + 1,
                    done,
                )

            start = p0, 1e-2, jnp.sum(residual(p0) ** 2), 0, False
            p, _, cost, _, _ = jax.lax.while_loop(lambda s: (s[3] < limit) & ~s[4], step, start)
            return p, cost

        return jax.jit(jax.vmap(fit, in_axes=(None, 0, None)))


class PlasmaCloudCells(Model):
    """Two streams of electrons, particle in cell: charges are added to the cells by index, the field is read back between them."""

    kind = KIND
    dtype = "float32"
    size = dict(particles=2048, cells=64, steps=60)
    small = dict(particles=20, cells=8, steps=4)

    def make(self, random, particles, cells, steps):
        x = random.uniform(0, cells, size=particles)
        v = np.where(np.arange(particles) % 2 == 0, 0.8, -0.8) + 0.05 * random.normal(size=particles)
        return x.astype("float32"), v.astype("float32"), np.float32(0.1)

    def rscan(self, particles, cells, steps):
        charge = cells / particles

        @rs.compile
        def run(x, v, dt):
            def step(x, v):
                left = rs.floor(x)
                share = x - left
                i = rs.cast(left, "int32") % cells
                j = (i + 1) % cells
                density = rs.zeros(cells, dtype="float32").at[i].add(charge * (1.0 - share)).at[j].add(charge * share)
                field = rs.cumsum(1.0 - density)
                field = field - rs.mean(field)
                v = v - dt * (field[i] * (1.0 - share) + field[j] * share)
                x = (x + dt * v) % cells
                return dict(x=x, v=v, electric=0.5 * rs.sum(field**2), kinetic=0.5 * charge * rs.sum(v**2))

            out = rs.loop(step, init=dict(x=x, v=v), n_steps=steps)
            return out.last.v, out.electric, out.kinetic

        return run

    def jax(self, particles, cells, steps):
        import jax
        import jax.numpy as jnp

        charge = cells / particles

        def run(x, v, dt):
            def step(state, _):
                x, v = state
                left = jnp.floor(x)
                share = x - left
                i = left.astype("int32") % cells
                j = (i + 1) % cells
                density = jnp.zeros(cells, dtype="float32").at[i].add(charge * (1.0 - share)).at[j].add(charge * share)
                field = jnp.cumsum(1.0 - density)
                field = field - jnp.mean(field)
                v = v - dt * (field[i] * (1.0 - share) + field[j] * share)
                x = (x + dt * v) % cells
                return (x, v), (0.5 * jnp.sum(field**2), 0.5 * charge * jnp.sum(v**2))

            (_, v), (electric, kinetic) = jax.lax.scan(step, (x, v), None, length=steps)
            return v, electric, kinetic

        return jax.jit(run)


class LatticeSpongeFlow(Model):
    """Lattice Boltzmann in a channel with a sponge (partial bounce-back): the flow through it, and its gradient by every cell's solidity."""

    kind = KIND
    dtype = "float32"
    size = dict(side=20, steps=40)
    small = dict(side=5, steps=3)

    def make(self, random, side, steps):
        solid = 0.2 * random.uniform(size=(side, side))
        solid[0] = solid[-1] = 1.0
        return solid.astype("float32"), np.float32(1.2), np.float32(1e-3)

    def rscan(self, side, steps):
        cx = [0, 1, 0, -1, 0, 1, -1, -1, 1]
        cy = [0, 0, 1, 0, -1, 1, 1, -1, -1]
        opposite = [0, 3, 4, 1, 2, 7, 8, 5, 6]
        weights = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4, dtype="float32").reshape(9, 1, 1)
        ex = np.array(cx, dtype="float32").reshape(9, 1, 1)
        ey = np.array(cy, dtype="float32").reshape(9, 1, 1)

        @rs.compile
        def flow(solid, omega, push):
            def step(f):
                rho = rs.sum(f, axis=0)
                ux = rs.sum(ex * f, axis=0) / rho
                uy = rs.sum(ey * f, axis=0) / rho
                along = ex * ux + ey * uy
                equilibrium = weights * rho * (1.0 + 3.0 * along + 4.5 * along**2 - 1.5 * (ux**2 + uy**2))
                hit = f + omega * (equilibrium - f) + 3.0 * push * weights * ex
                out = (1.0 - solid) * hit + solid * f[opposite]
                f = rs.stack([rs.roll(out[k], (cy[k], cx[k]), axis=(0, 1)) for k in range(9)])
                return dict(f=f, flux=rs.mean((1.0 - solid) * ux))

            rest = weights * rs.ones((9, side, side), dtype="float32")
            out = rs.loop(step, init=dict(f=rest), n_steps=steps)
            return 1000.0 * rs.mean(out.flux)

        return rs.value_and_grad(flow)

    def jax(self, side, steps):
        import jax
        import jax.numpy as jnp

        cx = [0, 1, 0, -1, 0, 1, -1, -1, 1]
        cy = [0, 0, 1, 0, -1, 1, 1, -1, -1]
        opposite = np.array([0, 3, 4, 1, 2, 7, 8, 5, 6])
        weights = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4, dtype="float32").reshape(9, 1, 1)
        ex = np.array(cx, dtype="float32").reshape(9, 1, 1)
        ey = np.array(cy, dtype="float32").reshape(9, 1, 1)

        def flow(solid, omega, push):
            def step(f, _):
                rho = jnp.sum(f, axis=0)
                ux = jnp.sum(ex * f, axis=0) / rho
                uy = jnp.sum(ey * f, axis=0) / rho
                along = ex * ux + ey * uy
                equilibrium = weights * rho * (1.0 + 3.0 * along + 4.5 * along**2 - 1.5 * (ux**2 + uy**2))
                hit = f + omega * (equilibrium - f) + 3.0 * push * weights * ex
                out = (1.0 - solid) * hit + solid * f[opposite]
                f = jnp.stack([jnp.roll(out[k], (cy[k], cx[k]), axis=(0, 1)) for k in range(9)])
                return f, jnp.mean((1.0 - solid) * ux)

            rest = weights * jnp.ones((9, side, side), dtype="float32")
            _, flux = jax.lax.scan(step, rest, None, length=steps)
            return 1000.0 * jnp.mean(flux)

        return jax.jit(jax.value_and_grad(flow))


class BestRationalConvergents(Model):
    """The last convergent p / q of each number's continued fraction with a denominator up to a limit, in integers."""

    kind = KIND
    dtype = "int64"
    size = dict(numbers=1024, limit=40)
    small = dict(numbers=5, limit=40)

    def make(self, random, numbers, limit):
        x = random.uniform(0, 10, size=numbers)
        x[::7] = np.round(x[::7] * 64) / 64 + 1 / 128  # some end early
        return x, 1_000_000

    def rscan(self, numbers, limit):
        def convergent(x, largest):
            def step(p, q, p_before, q_before, rest):
                inverse = 1.0 / rest
                a = rs.cast(rs.floor(inverse), "int64")
                p_new, q_new = a * p + p_before, a * q + q_before
                fits = q_new <= largest
                left = inverse - rs.floor(inverse)
                states = dict(
                    p=rs.where(fits, p_new, p),
                    q=rs.where(fits, q_new, q),
                    p_before=rs.where(fits, p, p_before),
                    q_before=rs.where(fits, q, q_before),
                    rest=left,
                )
                return states, rs.until(~fits | (left < 1e-9))

            whole = rs.floor(x)
            start = dict(p=rs.cast(whole, "int64"), q=1, p_before=1, q_before=0, rest=x - whole)
            out = rs.loop(step, init=start, n_steps=limit)
            return out.last.p, out.last.q, out.steps

        return rs.compile(rs.vmap(convergent, in_axes=(0, None)))

    def jax(self, numbers, limit):
        import jax
        import jax.numpy as jnp

        def convergent(x, largest):
            def step(state):
                p, q, p_before, q_before, rest, n, _ = state
                inverse = 1.0 / rest
                a = jnp.floor(inverse).astype("int64")
                p_new, q_new = a * p + p_before, a * q + q_before
                fits = q_new <= largest
                left = inverse - jnp.floor(inverse)
                return (
                    jnp.where(fits, p_new, p),
                    jnp.where(fits, q_new, q),
                    jnp.where(fits, p, p_before),
                    jnp.where(fits, q, q_before),
                    left,
                    n + 1,
                    ~fits | (left < 1e-9),
                )

            whole = jnp.floor(x)
            start = whole.astype("int64"), jnp.int64(1), jnp.int64(1), jnp.int64(0), x - whole, jnp.int64(0), False
            p, q, _, _, _, n, _ = jax.lax.while_loop(lambda s: (s[5] < limit) & ~s[6], step, start)
            return p, q, n

        return jax.jit(jax.vmap(convergent, in_axes=(0, None)))


class YoshidaMonodromyBodies(Model):
    """Bodies that attract each other, by Yoshida's symplectic steps of fourth order: where they end, and the Jacobian of it by where they began."""

    kind = KIND
    dtype = "float64"
    size = dict(bodies=5, steps=100)
    small = dict(bodies=2, steps=3)

    def make(self, random, bodies, steps):
        angle = 2 * np.pi * np.arange(bodies) / bodies
        q = np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.1 * random.normal(size=(bodies, 2))
        v = 0.6 * np.stack([-np.sin(angle), np.cos(angle)], axis=1) + 0.05 * random.normal(size=(bodies, 2))
        return np.stack([q, v]).reshape(-1), random.uniform(0.2, 0.6, size=bodies), 0.01

    def rscan(self, bodies, steps):
        w1 = 1.0 / (2.0 - 2.0 ** (1.0 / 3.0))
        w0 = 1.0 - 2.0 * w1

        def ends(z, mass, dt):
            def pull(q):
                d = q[None, :, :] - q[:, None, :]
                r2 = rs.sum(d**2, axis=2) + 0.01
                return rs.sum(mass[None, :, None] * d / (r2**1.5)[:, :, None], axis=1)

            def step(q, v):
                for w in (w1, w0, w1):
                    q = q + 0.5 * w * dt * v
                    v = v + w * dt * pull(q)
                    q = q + 0.5 * w * dt * v
                return dict(q=q, v=v)

            start = rs.reshape(z, (2, bodies, 2))
            out = rs.loop(step, init=dict(q=start[0], v=start[1]), n_steps=steps).last
            return rs.reshape(rs.stack([out.q, out.v]), (4 * bodies,))

        @rs.compile
        def monodromy(z, mass, dt):
            return ends(z, mass, dt), rs.jacobian(ends)(z, mass, dt)

        return monodromy

    def jax(self, bodies, steps):
        import jax
        import jax.numpy as jnp

        w1 = 1.0 / (2.0 - 2.0 ** (1.0 / 3.0))
        w0 = 1.0 - 2.0 * w1

        def ends(z, mass, dt):
            def pull(q):
                d = q[None, :, :] - q[:, None, :]
                r2 = jnp.sum(d**2, axis=2) + 0.01
                return jnp.sum(mass[None, :, None] * d / (r2**1.5)[:, :, None], axis=1)

            def step(state, _):
                q, v = state
                for w in (w1, w0, w1):
                    q = q + 0.5 * w * dt * v
                    v = v + w * dt * pull(q)
                    q = q + 0.5 * w * dt * v
                return (q, v), None

            start = z.reshape(2, bodies, 2)
            (q, v), _ = jax.lax.scan(step, (start[0], start[1]), None, length=steps)
            return jnp.stack([q, v]).reshape(-1)

        return jax.jit(lambda z, mass, dt: (ends(z, mass, dt), jax.jacfwd(ends)(z, mass, dt)))
