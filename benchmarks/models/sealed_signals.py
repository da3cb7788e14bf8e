"""Signals, pictures, texts, nerves, molecules and agents: models as scientists of these fields write them from the equations."""

import numpy as np

import rscan as rs
from models import Model


def weights(random, *shape):
    """Normal numbers of 32 bits, scaled by the number of inputs."""
    return (random.normal(size=shape) / np.sqrt(shape[-2])).astype("f4")


class ReceptanceKeyValue(Model):
    """Two layers of RWKV: tokens shifted by one, weighted keys and values with a running maximum, a channel mix; loss and gradients."""

    kind = "learning"
    dtype = "float32"
    size = dict(steps=48, batch=6, width=32, hidden=64, words=40, layers=2)
    small = dict(steps=4, batch=2, width=4, hidden=5, words=6, layers=2)

    def make(self, random, steps, batch, width, hidden, words, layers):
        def layer():
            uniform = lambda: random.random(width).astype("f4")
            return dict(
                mix=[uniform() for _ in range(5)],
                decay=random.normal(size=width).astype("f4"),
                bonus=random.normal(size=width).astype("f4"),
                scale=np.ones((2, width), dtype="f4"),
                shift=np.zeros((2, width), dtype="f4"),
                R=weights(random, width, width),
                K=weights(random, width, width),
                V=weights(random, width, width),
                O=weights(random, width, width),
                R2=weights(random, width, width),
                K2=weights(random, width, hidden),
                V2=weights(random, hidden, width),
            )

        p = dict(embed=random.normal(size=(words, width)).astype("f4"), head=weights(random, width, words))
        p["layers"] = [layer() for _ in range(layers)]
        return p, random.integers(0, words, size=(steps + 1, batch))

    def rscan(self, steps, batch, width, hidden, words, layers):
        def normal(x, scale, shift):
            centred = x - rs.mean(x, axis=-1, keepdims=True)
            return centred / rs.sqrt(rs.mean(centred**2, axis=-1, keepdims=True) + 1e-5) * scale + shift

        def mixed(x, before, share):
            return share * x + (1 - share) * before

        def wkv(p, key, value):
            fade = -rs.exp(p["decay"])

            def step(k, v, a, b, top):
                new = rs.maximum(top, p["bonus"] + k)
                old, now = rs.exp(top - new), rs.exp(p["bonus"] + k - new)
                y = (old * a + now * v) / (old * b + now)
                new = rs.maximum(top + fade, k)
                old, now = rs.exp(top + fade - new), rs.exp(k - new)
                return dict(a=old * a + now * v, b=old * b + now, top=new, y=y)

            zero = rs.zeros((batch, width), dtype="float32")
            start = dict(a=zero, b=zero, top=rs.full((batch, width), -1e30, dtype="float32"))
            return rs.loop(step, over=dict(k=key, v=value), init=start).y

        @rs.compile
        def loss(p, tokens):
            x = p["embed"][tokens[:-1]]
            first = rs.zeros((1, batch, width), dtype="float32")
            for q in p["layers"]:
                n = normal(x, q["scale"][0], q["shift"][0])
                before = rs.concatenate([first, n[:-1]])
                r, k, v = (mixed(n, before, q["mix"][i]) @ q[name] for i, name in enumerate("RKV"))
                x = x + (rs.sigmoid(r) * wkv(q, k, v)) @ q["O"]
                n = normal(x, q["scale"][1], q["shift"][1])
                before = rs.concatenate([first, n[:-1]])
                r, k = mixed(n, before, q["mix"][3]) @ q["R2"], mixed(n, before, q["mix"][4]) @ q["K2"]
                x = x + rs.sigmoid(r) * (rs.maximum(k, 0) ** 2 @ q["V2"])
            logs = rs.log_softmax(x @ p["head"], axis=-1)
            return -rs.mean(rs.take_along_axis(logs, tokens[1:, :, None], axis=2))

        return rs.value_and_grad(loss)

    def jax(self, steps, batch, width, hidden, words, layers):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def normal(x, scale, shift):
            centred = x - jnp.mean(x, axis=-1, keepdims=True)
            return centred * lax.rsqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + 1e-5) * scale + shift

        def mixed(x, before, share):
            return share * x + (1 - share) * before

        def wkv(p, key, value):
            fade = -jnp.exp(p["decay"])

            def step(state, x):
                a, b, top = state
                k, v = x
                new = jnp.maximum(top, p["bonus"] + k)
                old, now = jnp.exp(top - new), jnp.exp(p["bonus"] + k - new)
                y = (old * a + now * v) / (old * b + now)
                new = jnp.maximum(top + fade, k)
                old, now = jnp.exp(top + fade - new), jnp.exp(k - new)
                return (old * a + now * v, old * b + now, new), y

            zero = jnp.zeros((batch, width), jnp.float32)
            return lax.scan(step, (zero, zero, jnp.full((batch, width), -1e30, jnp.float32)), (key, value))[1]

        def loss(p, tokens):
            x = p["embed"][tokens[:-1]]
            first = jnp.zeros((1, batch, width), jnp.float32)
            for q in p["layers"]:
                n = normal(x, q["scale"][0], q["shift"][0])
                before = jnp.concatenate([first, n[:-1]])
                r, k, v = (mixed(n, before, q["mix"][i]) @ q[name] for i, name in enumerate("RKV"))
                x = x + (jax.nn.sigmoid(r) * wkv(q, k, v)) @ q["O"]
                n = normal(x, q["scale"][1], q["shift"][1])
                before = jnp.concatenate([first, n[:-1]])
                r, k = mixed(n, before, q["mix"][3]) @ q["R2"], mixed(n, before, q["mix"][4]) @ q["K2"]
                x = x + jax.nn.sigmoid(r) * (jnp.maximum(k, 0) ** 2 @ q["V2"])
            logs = jax.nn.log_softmax(x @ p["head"])
            return -jnp.mean(jnp.take_along_axis(logs, tokens[1:, :, None], axis=2))

        return jax.jit(jax.value_and_grad(loss))


class LatentWorldModel(Model):
    """Dreamer's recurrent state-space model: a normalised GRU, prior and posterior with given noise, balanced divergences; gradients."""

    kind = "learning"
    dtype = "float32"
    size = dict(steps=24, batch=12, seen=16, actions=3, deter=48, stoch=12)
    small = dict(steps=3, batch=2, seen=3, actions=2, deter=4, stoch=2)

    def make(self, random, steps, batch, seen, actions, deter, stoch):
        p = dict(
            inp=weights(random, stoch + actions, deter),
            gates=weights(random, 2 * deter, 3 * deter),
            scale=np.ones(3 * deter, dtype="f4"),
            shift=(0.1 * random.normal(size=3 * deter)).astype("f4"),
            prior=weights(random, deter, 2 * stoch),
            post=weights(random, deter + seen, 2 * stoch),
            decode=weights(random, deter + stoch, seen),
            bias=np.zeros(seen, dtype="f4"),
        )
        draws = [random.normal(size=(steps, batch, n)).astype("f4") for n in (seen, actions, stoch)]
        return p, *draws

    def rscan(self, steps, batch, seen, actions, deter, stoch):
        def gaussian(a):
            return a[:, :stoch], rs.softplus(a[:, stoch:]) + 0.1

        def divergence(mean, dev, mean0, dev0):
            return rs.sum(rs.log(dev0 / dev) + (dev**2 + (mean - mean0) ** 2) / (2 * dev0**2) - 0.5, axis=1)

        @rs.compile
        def loss(p, observed, action, noise):
            def step(o, a, e, h, z):
                x = rs.tanh(rs.concatenate([z, a], axis=1) @ p["inp"])
                parts = rs.concatenate([x, h], axis=1) @ p["gates"]
                centred = parts - rs.mean(parts, axis=1, keepdims=True)
                parts = centred / rs.sqrt(rs.mean(centred**2, axis=1, keepdims=True) + 1e-3) * p["scale"] + p["shift"]
                reset, update = rs.sigmoid(parts[:, :deter]), rs.sigmoid(parts[:, 2 * deter :] - 1)
                h = update * rs.tanh(reset * parts[:, deter : 2 * deter]) + (1 - update) * h
                prior = gaussian(h @ p["prior"])
                post = gaussian(rs.concatenate([h, o], axis=1) @ p["post"])
                z = post[0] + post[1] * e
                error = o - rs.concatenate([h, z], axis=1) @ p["decode"] - p["bias"]
                fixed_prior, fixed_post = rs.stop_gradient(prior), rs.stop_gradient(post)
                kl = 0.8 * divergence(*fixed_post, *prior) + 0.2 * divergence(*post, *fixed_prior)
                return dict(h=h, z=z, cost=0.5 * rs.sum(error**2, axis=1) + rs.maximum(kl, 1.0))

            start = dict(h=rs.zeros((batch, deter), dtype="float32"), z=rs.zeros((batch, stoch), dtype="float32"))
            return rs.mean(rs.loop(step, over=dict(o=observed, a=action, e=noise), init=start).cost)

        return rs.value_and_grad(loss)

    def jax(self, steps, batch, seen, actions, deter, stoch):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def gaussian(a):
            return a[:, :stoch], jax.nn.softplus(a[:, stoch:]) + 0.1

        def divergence(mean, dev, mean0, dev0):
            return jnp.sum(jnp.log(dev0 / dev) + (dev**2 + (mean - mean0) ** 2) / (2 * dev0**2) - 0.5, axis=1)

        def loss(p, observed, action, noise):
            def step(state, xs):
                h, z = state
                o, a, e = xs
                x = jnp.tanh(jnp.concatenate([z, a], axis=1) @ p["inp"])
                parts = jnp.concatenate([x, h], axis=1) @ p["gates"]
                centred = parts - jnp.mean(parts, axis=1, keepdims=True)
                parts = centred * lax.rsqrt(jnp.mean(centred**2, axis=1, keepdims=True) + 1e-3) * p["scale"] + p["shift"]
                reset, candidate, update = jnp.split(parts, 3, axis=1)
                update = jax.nn.sigmoid(update - 1)
                h = update * jnp.tanh(jax.nn.sigmoid(reset) * candidate) + (1 - update) * h
                prior = gaussian(h @ p["prior"])
                post = gaussian(jnp.concatenate([h, o], axis=1) @ p["post"])
                z = post[0] + post[1] * e
                error = o - jnp.concatenate([h, z], axis=1) @ p["decode"] - p["bias"]
                fixed_prior, fixed_post = lax.stop_gradient(prior), lax.stop_gradient(post)
                kl = 0.8 * divergence(*fixed_post, *prior) + 0.2 * divergence(*post, *fixed_prior)
                return (h, z), 0.5 * jnp.sum(error**2, axis=1) + jnp.maximum(kl, 1.0)

            start = jnp.zeros((batch, deter), jnp.float32), jnp.zeros((batch, stoch), jnp.float32)
            return jnp.mean(lax.scan(step, start, (observed, action, noise))[1])

        return jax.jit(jax.value_and_grad(loss))


class OpticalFlow(Model):
    """Horn and Schunck's flow between two frames by Jacobi's sweeps over eight neighbours; error and gradient by weight and frames."""

    kind = "stencils in space"
    dtype = "float32"
    size = dict(side=40, sweeps=50)
    small = dict(side=5, sweeps=3)

    def make(self, random, side, sweeps):
        y, x = np.mgrid[:side, :side] / side
        waves = [(random.normal(), random.uniform(2, 12, 2), random.uniform(0, 6)) for _ in range(6)]
        picture = lambda dx, dy: sum(a * np.sin(k[0] * (x - dx) + k[1] * (y - dy) + s) for a, k, s in waves)
        u, v = 0.8 * np.cos(2 * y), 0.5 * np.sin(3 * x)
        frames = picture(0, 0), picture(u / side, v / side)
        return np.float32(0.3), *(f.astype("f4") for f in (*frames, u, v))

    def rscan(self, side, sweeps):
        def around(x):
            x = rs.pad(x, 1, mode="edge")
            cross = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
            corners = x[:-2, :-2] + x[:-2, 2:] + x[2:, :-2] + x[2:, 2:]
            return cross / 6 + corners / 12

        def slopes(x):
            x = rs.pad(x, 1, mode="edge")
            return 0.5 * (x[1:-1, 2:] - x[1:-1, :-2]), 0.5 * (x[2:, 1:-1] - x[:-2, 1:-1])

        @rs.compile
        def error(alpha, first, second, u_true, v_true):
            ix, iy = slopes(0.5 * (first + second))
            it = second - first
            scale = 1 / (alpha**2 + ix**2 + iy**2)

            def sweep(u, v):
                u, v = around(u), around(v)
                step = (ix * u + iy * v + it) * scale
                return dict(u=u - ix * step, v=v - iy * step)

            zero = rs.zeros((side, side), dtype="float32")
            flow = rs.loop(sweep, init=dict(u=zero, v=zero), n_steps=sweeps).last
            return rs.mean((flow.u - u_true) ** 2 + (flow.v - v_true) ** 2)

        return rs.value_and_grad(error, argnums=(0, 1, 2))

    def jax(self, side, sweeps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def around(x):
            x = jnp.pad(x, 1, mode="edge")
            cross = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
            corners = x[:-2, :-2] + x[:-2, 2:] + x[2:, :-2] + x[2:, 2:]
            return cross / 6 + corners / 12

        def slopes(x):
            x = jnp.pad(x, 1, mode="edge")
            return 0.5 * (x[1:-1, 2:] - x[1:-1, :-2]), 0.5 * (x[2:, 1:-1] - x[:-2, 1:-1])

        def error(alpha, first, second, u_true, v_true):
            ix, iy = slopes(0.5 * (first + second))
            it = second - first
            scale = 1 / (alpha**2 + ix**2 + iy**2)

            def sweep(flow, _):
                u, v = around(flow[0]), around(flow[1])
                step = (ix * u + iy * v + it) * scale
                return (u - ix * step, v - iy * step), None

            zero = jnp.zeros((side, side), jnp.float32)
            (u, v), _ = lax.scan(sweep, (zero, zero), None, length=sweeps)
            return jnp.mean((u - u_true) ** 2 + (v - v_true) ** 2)

        return jax.jit(jax.value_and_grad(error, argnums=(0, 1, 2)))


class SeamCarving(Model):
    """A picture is narrowed: the seam of least energy by a table with back pointers, followed from below and cut out, again and again."""

    kind = "tables of dynamic programs"
    dtype = "int64"
    size = dict(rows=48, columns=72, seams=10)
    small = dict(rows=4, columns=7, seams=2)

    def make(self, random, rows, columns, seams):
        y, x = np.mgrid[:rows, :columns]
        picture = 120 + 60 * np.sin(x / 5 + y / 9) + 40 * ((x - 30) ** 2 + (y - 20) ** 2 < 150) + 8 * random.normal(size=(rows, columns))
        return (picture.clip(0, 255).astype("i8"),)

    def rscan(self, rows, columns, seams):
        @rs.compile
        def carve(picture):
            far = 10**9
            j = rs.arange(columns)
            line = rs.arange(rows)

            def cut(width, x, names):
                right, left = x[:, rs.minimum(j + 1, width - 1)], x[:, rs.maximum(j - 1, 0)]
                padded = rs.pad(x, ((1, 1), (0, 0)), mode="edge")
                energy = rs.where(j < width, rs.abs(right - left) + rs.abs(padded[2:] - padded[:-2]), far)

                def down(e, cost):
                    wide = rs.pad(cost, 1, constant_values=far)
                    above = rs.stack([wide[:-2], wide[1:-1], wide[2:]])
                    return dict(cost=e + rs.min(above, axis=0), back=rs.argmin(above, axis=0) - 1)

                table = rs.loop(down, over=dict(e=energy[1:]), init=dict(cost=energy[0]))
                end = rs.argmin(table.last.cost)
                up = rs.loop(lambda back, at: dict(at=at + back[at], here=at), over=dict(back=table.back), init=dict(at=end), reverse=True)
                seam = rs.concatenate([rs.reshape(up.last.at, (1,)), up.here])
                taken = rs.minimum(j + (j >= seam[:, None]), columns - 1)
                return dict(
                    x=rs.take_along_axis(x, taken, axis=1),
                    names=rs.take_along_axis(names, taken, axis=1),
                    cost=table.last.cost[end],
                    gone=names[line, seam],
                )

            start = dict(x=picture, names=rs.broadcast_to(j, (rows, columns)))
            out = rs.loop(cut, over=dict(width=columns - rs.arange(seams)), init=start)
            return out.last.x[:, : columns - seams], out.gone, out.cost

        return carve

    def jax(self, rows, columns, seams):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def carve(picture):
            far = 10**9
            j = jnp.arange(columns)
            line = jnp.arange(rows)

            def cut(state, width):
                x, names = state
                right, left = x[:, jnp.minimum(j + 1, width - 1)], x[:, jnp.maximum(j - 1, 0)]
                padded = jnp.pad(x, ((1, 1), (0, 0)), mode="edge")
                energy = jnp.where(j < width, jnp.abs(right - left) + jnp.abs(padded[2:] - padded[:-2]), far)

                def down(cost, e):
                    wide = jnp.pad(cost, 1, constant_values=far)
                    above = jnp.stack([wide[:-2], wide[1:-1], wide[2:]])
                    return e + jnp.min(above, axis=0), jnp.argmin(above, axis=0) - 1

                cost, backs = lax.scan(down, energy[0], energy[1:])
                end = jnp.argmin(cost)
                top, below = lax.scan(lambda at, back: (at + back[at], at), end, backs, reverse=True)
                seam = jnp.concatenate([top[None], below])
                taken = jnp.minimum(j + (j >= seam[:, None]), columns - 1)
                new = jnp.take_along_axis(x, taken, axis=1), jnp.take_along_axis(names, taken, axis=1)
                return new, (names[line, seam], cost[end])

            start = picture, jnp.broadcast_to(j, (rows, columns))
            (x, _), (gone, cost) = lax.scan(cut, start, columns - jnp.arange(seams))
            return x[:, : columns - seams], gone, cost

        return jax.jit(carve)


class PalindromeRadii(Model):
    """Manacher's algorithm: the radius of the palindrome around every place of a text, grown from that of its mirror image."""

    kind = "text algorithms"
    dtype = "int64"
    size = dict(letters=800)
    small = dict(letters=9)

    def make(self, random, letters):
        half = random.integers(0, 2, size=letters // 4)
        text = np.concatenate([half, half[::-1], half, random.integers(0, 2, size=letters - 3 * (letters // 4))])
        return (text + 1,)

    def rscan(self, letters):
        m = 2 * letters + 1

        @rs.compile
        def palindromes(text):
            s = rs.zeros(m + 2, dtype="int64").at[2:-1:2].set(text).at[0].set(-1).at[-1].set(-2)

            def place(i, radius, centre, right):
                def grow(k):
                    same = s[i + k + 1] == s[i - k - 1]
                    return k + same, rs.until(~same)

                mirrored = radius[rs.maximum(2 * centre - i, 0)]
                k = rs.loop(grow, init=rs.where(i < right, rs.minimum(right - i, mirrored), 0)).last
                further = i + k > right
                return dict(
                    radius=radius.at[i].set(k),
                    centre=rs.where(further, i, centre),
                    right=rs.where(further, i + k, right),
                )

            start = dict(radius=rs.zeros(m + 2, dtype="int64"), centre=0, right=0)
            radius = rs.loop(place, over=dict(i=rs.arange(1, m + 1)), init=start).last.radius
            longest = rs.argmax(radius)
            return radius[1:-1], (longest - radius[longest]) // 2, radius[longest], rs.sum((radius + 1) // 2)

        return palindromes

    def jax(self, letters):
        import jax
        import jax.numpy as jnp
        from jax import lax

        m = 2 * letters + 1

        def palindromes(text):
            s = jnp.zeros(m + 2, dtype="int64").at[2:-1:2].set(text).at[0].set(-1).at[-1].set(-2)

            def place(i, state):
                radius, centre, right = state
                k = jnp.where(i < right, jnp.minimum(right - i, radius[jnp.maximum(2 * centre - i, 0)]), 0)
                k = lax.while_loop(lambda k: s[i + k + 1] == s[i - k - 1], lambda k: k + 1, k)
                further = i + k > right
                return radius.at[i].set(k), jnp.where(further, i, centre), jnp.where(further, i + k, right)

            radius, _, _ = lax.fori_loop(1, m + 1, place, (jnp.zeros(m + 2, dtype="int64"), 0, 0))
            longest = jnp.argmax(radius)
            return radius[1:-1], (longest - radius[longest]) // 2, radius[longest], jnp.sum((radius + 1) // 2)

        return jax.jit(palindromes)


class HodgkinHuxleyFit(Model):
    """Nerve cells by Hodgkin and Huxley's equations, classical Runge-Kutta steps; misfit of the voltages, gradient by conductances."""

    kind = "ODE integrators"
    dtype = "float64"
    size = dict(steps=600, cells=8)
    small = dict(steps=6, cells=2)

    def make(self, random, steps, cells):
        p = dict(sodium=120.0, potassium=36.0, leak=0.3, capacity=1.0)
        drive = 8 + 4 * random.random((steps, cells)) + 3 * np.sin(np.arange(steps) / 60)[:, None]
        target = -60 + 10 * random.normal(size=(steps, cells))
        return p, drive, target, 0.025

    def rscan(self, steps, cells):
        def rates(p, V, m, h, n, current):
            am, bm = 0.1 * (V + 40) / (1 - rs.exp(-(V + 40) / 10)), 4 * rs.exp(-(V + 65) / 18)
            ah, bh = 0.07 * rs.exp(-(V + 65) / 20), 1 / (1 + rs.exp(-(V + 35) / 10))
            an, bn = 0.01 * (V + 55) / (1 - rs.exp(-(V + 55) / 10)), 0.125 * rs.exp(-(V + 65) / 80)
            ions = p["sodium"] * m**3 * h * (V - 50) + p["potassium"] * n**4 * (V + 77) + p["leak"] * (V + 54.4)
            return (current - ions) / p["capacity"], am * (1 - m) - bm * m, ah * (1 - h) - bh * h, an * (1 - n) - bn * n

        @rs.compile
        def misfit(p, drive, target, dt):
            def step(current, y):
                moved = lambda k, share: tuple(a + share * dt * b for a, b in zip(y, k))
                k1 = rates(p, *y, current)
                k2 = rates(p, *moved(k1, 0.5), current)
                k3 = rates(p, *moved(k2, 0.5), current)
                k4 = rates(p, *moved(k3, 1.0), current)
                return dict(y=tuple(a + dt / 6 * (b + 2 * c + 2 * d + e) for a, b, c, d, e in zip(y, k1, k2, k3, k4)))

            start = tuple(rs.full(cells, value) for value in (-65.0, 0.05, 0.6, 0.32))
            V = rs.loop(step, over=dict(current=drive), init=dict(y=start)).y[0]
            return rs.mean((V - target) ** 2)

        return rs.value_and_grad(misfit)

    def jax(self, steps, cells):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def rates(p, V, m, h, n, current):
            am, bm = 0.1 * (V + 40) / (1 - jnp.exp(-(V + 40) / 10)), 4 * jnp.exp(-(V + 65) / 18)
            ah, bh = 0.07 * jnp.exp(-(V + 65) / 20), 1 / (1 + jnp.exp(-(V + 35) / 10))
            an, bn = 0.01 * (V + 55) / (1 - jnp.exp(-(V + 55) / 10)), 0.125 * jnp.exp(-(V + 65) / 80)
            ions = p["sodium"] * m**3 * h * (V - 50) + p["potassium"] * n**4 * (V + 77) + p["leak"] * (V + 54.4)
            return (current - ions) / p["capacity"], am * (1 - m) - bm * m, ah * (1 - h) - bh * h, an * (1 - n) - bn * n

        def misfit(p, drive, target, dt):
            def step(y, current):
                moved = lambda k, share: tuple(a + share * dt * b for a, b in zip(y, k))
                k1 = rates(p, *y, current)
                k2 = rates(p, *moved(k1, 0.5), current)
                k3 = rates(p, *moved(k2, 0.5), current)
                k4 = rates(p, *moved(k3, 1.0), current)
                y = tuple(a + dt / 6 * (b + 2 * c + 2 * d + e) for a, b, c, d, e in zip(y, k1, k2, k3, k4))
                return y, y[0]

            start = tuple(jnp.full(cells, value) for value in (-65.0, 0.05, 0.6, 0.32))
            return jnp.mean((lax.scan(step, start, drive)[1] - target) ** 2)

        return jax.jit(jax.value_and_grad(misfit))


class DilatedGenerator(Model):
    """A WaveNet writes sound sample by sample: gated layers that look 1, 2, 4, 8 and 16 steps back, a mean and a deviation, given noise."""

    kind = "signal processing"
    dtype = "float32"
    size = dict(steps=300, voices=4, width=24, layers=5)
    small = dict(steps=9, voices=2, width=3, layers=3)

    def make(self, random, steps, voices, width, layers):
        p = dict(
            first=weights(random, 1, width),
            bias=(0.1 * random.normal(size=width)).astype("f4"),
            past=weights(random, layers, width, 2 * width),
            now=weights(random, layers, width, 2 * width),
            skip=weights(random, layers, width, width),
            rest=0.5 * weights(random, layers, width, width),
            hidden=weights(random, width, width),
            out=0.3 * weights(random, width, 2),
        )
        return p, random.normal(size=(steps, voices)).astype("f4")

    def rscan(self, steps, voices, width, layers):
        @rs.compile
        def generate(p, noise):
            def step(e, x, h):
                now, skip, new = x[:, None] @ p["first"] + p["bias"], 0, []
                for i in range(layers):
                    new.append(now)
                    a = h[i] @ p["past"][i] + now @ p["now"][i]
                    z = rs.tanh(a[:, :width]) * rs.sigmoid(a[:, width:])
                    skip = skip + z @ p["skip"][i]
                    now = now + z @ p["rest"][i]
                out = rs.tanh(rs.maximum(skip, 0) @ p["hidden"]) @ p["out"]
                return dict(x=out[:, 0] + 0.2 * rs.exp(out[:, 1]) * e, h=new)

            past = lambda n: rs.taps(rs.zeros((n, voices, width), dtype="float32"), -n)
            before = [rs.zeros((voices, width), dtype="float32")] + [past(2**i) for i in range(1, layers)]
            return rs.loop(step, over=dict(e=noise), init=dict(x=rs.zeros(voices, dtype="float32"), h=before)).x

        return generate

    def jax(self, steps, voices, width, layers):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def generate(p, noise):
            def step(state, xs):
                x, rings = state
                e, t = xs
                now, skip, new = x[:, None] @ p["first"] + p["bias"], 0, []
                for i, ring in enumerate(rings):
                    place = t % 2**i
                    a = ring[place] @ p["past"][i] + now @ p["now"][i]
                    new.append(ring.at[place].set(now))
                    z = jnp.tanh(a[:, :width]) * jax.nn.sigmoid(a[:, width:])
                    skip = skip + z @ p["skip"][i]
                    now = now + z @ p["rest"][i]
                out = jnp.tanh(jnp.maximum(skip, 0) @ p["hidden"]) @ p["out"]
                x = out[:, 0] + 0.2 * jnp.exp(out[:, 1]) * e
                return (x, new), x

            before = [jnp.zeros((2**i, voices, width), jnp.float32) for i in range(layers)]
            return lax.scan(step, (jnp.zeros(voices, jnp.float32), before), (noise, jnp.arange(steps)))[1]

        return jax.jit(generate)


class AsymmetricNumerals(Model):
    """Duda's range coder (rANS) with frequencies that depend on the last symbol: words of 16 bits are written backwards, then decoded."""

    kind = "coding theory"
    dtype = "uint32"
    size = dict(symbols=400, alphabet=16, streams=8)
    small = dict(symbols=8, alphabet=3, streams=2)

    def make(self, random, symbols, alphabet, streams):
        share = random.dirichlet(np.full(alphabet, 0.5), size=alphabet)
        frequency = 1 + np.floor(share * (1024 - alphabet)).astype("u4")
        frequency[:, 0] += 1024 - frequency.sum(axis=1).astype("u4")
        below = np.cumsum(frequency, axis=1).astype("u4") - frequency
        text = np.zeros((streams, symbols), dtype="i8")
        for t in range(1, symbols):
            at = random.integers(0, 1024, size=(streams, 1))
            text[:, t] = (below[text[:, t - 1]] <= at).sum(axis=1) - 1
        return text, frequency, below

    def rscan(self, symbols, alphabet, streams):
        def coded(text, frequency, below):
            context = rs.concatenate([rs.zeros(1, dtype="int64"), text[:-1]])

            def encode(s, c, x, words, n):
                f = frequency[c, s]
                full = (x >> 22) >= f
                words = words.at[n].set(rs.where(full, x & 0xFFFF, words[n]))
                x = rs.where(full, x >> 16, x)
                return dict(x=((x // f) << 10) + x % f + below[c, s], words=words, n=n + full)

            start = dict(x=rs.constant(np.uint32(1 << 16)), words=rs.zeros(symbols, dtype="uint32"), n=0)
            end = rs.loop(encode, over=dict(s=text, c=context), init=start, go_backwards=True).last

            def decode(x, n, c):
                low = x & 1023
                s = rs.sum(below[c] <= low) - 1
                x = frequency[c, s] * (x >> 10) + low - below[c, s]
                short = x < (1 << 16)
                word = end.words[rs.maximum(n - 1, 0)]
                return dict(x=rs.where(short, (x << 16) | word, x), n=n - short, c=s)

            back = rs.loop(decode, init=dict(x=end.x, n=end.n, c=0), n_steps=symbols)
            return end.x, end.words, end.n, back.c, back.last.x

        return rs.compile(rs.vmap(coded, in_axes=(0, None, None)))

    def jax(self, symbols, alphabet, streams):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def coded(text, frequency, below):
            context = jnp.concatenate([jnp.zeros(1, dtype="int64"), text[:-1]])

            def encode(state, sc):
                x, words, n = state
                s, c = sc
                f = frequency[c, s]
                full = (x >> 22) >= f
                words = words.at[n].set(jnp.where(full, x & 0xFFFF, words[n]))
                x = jnp.where(full, x >> 16, x)
                return (((x // f) << 10) + x % f + below[c, s], words, n + full), None

            start = jnp.uint32(1 << 16), jnp.zeros(symbols, dtype="uint32"), 0
            (x, words, n), _ = lax.scan(encode, start, (text, context), reverse=True)

            def decode(state, _):
                x, n, c = state
                low = x & 1023
                s = jnp.sum(below[c] <= low) - 1
                x = frequency[c, s] * (x >> 10) + low - below[c, s]
                short = x < (1 << 16)
                word = words[jnp.maximum(n - 1, 0)]
                return (jnp.where(short, (x << 16) | word, x), n - short, s), s

            (last, _, _), decoded = lax.scan(decode, (x, n, 0), None, length=symbols)
            return x, words, n, decoded, last

        return jax.jit(jax.vmap(coded, in_axes=(0, None, None)))


class AvoidedCrossing(Model):
    """Wave packets of several momenta on Tully's two coupled surfaces: split operators, rotations of pairs in space and in momentum."""

    kind = "chemistry"
    dtype = "float64"
    size = dict(steps=120, grid=256, packets=3)
    small = dict(steps=3, grid=16, packets=2)

    def make(self, random, steps, grid, packets):
        x = np.linspace(-16, 16, grid, endpoint=False)
        momentum = np.sort(random.uniform(8, 25, size=packets))
        return x, momentum, 2000.0, 10.0

    def rscan(self, steps, grid, packets):
        def rotated(re, im, cos, sin):
            """The product with cos - i sin."""
            return re * cos + im * sin, im * cos - re * sin

        @rs.compile
        def crossing(x, momentum, mass, dt):
            dx = x[1] - x[0]
            v = 0.01 * rs.sign(x) * (1 - rs.exp(-1.6 * rs.abs(x)))
            c = 0.005 * rs.exp(-(x**2))
            size = rs.sqrt(v**2 + c**2)
            cos, sin = rs.cos(0.5 * dt * size), rs.sin(0.5 * dt * size)
            k = 2 * np.pi * rs.fft.fftfreq(grid) / dx
            phase = 0.5 * dt * k**2 / mass

            def half_kick(re, im):
                # exp(-i V dt / 2) of V = ((v, c), (c, -v)) is cos - i sin V / size
                upper, lower = re[:, 0], re[:, 1]
                v_re = rs.stack([v * upper + c * lower, c * upper - v * lower], axis=1) / size
                upper, lower = im[:, 0], im[:, 1]
                v_im = rs.stack([v * upper + c * lower, c * upper - v * lower], axis=1) / size
                return cos * re + sin * v_im, cos * im - sin * v_re

            def step(re, im):
                re, im = rs.fft.fft(half_kick(re, im))
                re, im = rs.fft.ifft(rotated(re, im, rs.cos(phase), rs.sin(phase)))
                re, im = half_kick(re, im)
                density = re**2 + im**2
                weight = rs.sum(density, axis=-1) * dx
                return dict(re=re, im=im, weight=weight, place=rs.sum(density * x, axis=(1, 2)) * dx)

            bell = rs.exp(-((x + 8) ** 2) / 2) / np.pi**0.25
            angle = momentum[:, None] * (x + 8)
            none = rs.zeros((packets, grid))
            start = dict(re=rs.stack([bell * rs.cos(angle), none], axis=1), im=rs.stack([bell * rs.sin(angle), none], axis=1))
            out = rs.loop(step, init=start, n_steps=steps)
            return out.weight, out.place, out.last.re, out.last.im

        return crossing

    def jax(self, steps, grid, packets):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def crossing(x, momentum, mass, dt):
            dx = x[1] - x[0]
            v = 0.01 * jnp.sign(x) * (1 - jnp.exp(-1.6 * jnp.abs(x)))
            c = 0.005 * jnp.exp(-(x**2))
            size = jnp.sqrt(v**2 + c**2)
            cos, sin = jnp.cos(0.5 * dt * size), jnp.sin(0.5 * dt * size)
            unit = jnp.stack([jnp.stack([v, c]), jnp.stack([c, -v])]) / size
            kick = cos * jnp.eye(2)[:, :, None] - 1j * sin * unit
            k = 2 * jnp.pi * jnp.fft.fftfreq(grid) / dx
            drift = jnp.exp(-0.5j * dt * k**2 / mass)

            def half_kick(psi):
                return kick[:, 0] * psi[:, :1] + kick[:, 1] * psi[:, 1:]

            def step(psi, _):
                psi = half_kick(jnp.fft.ifft(drift * jnp.fft.fft(half_kick(psi))))
                density = psi.real**2 + psi.imag**2
                return psi, (jnp.sum(density, axis=-1) * dx, jnp.sum(density * x, axis=(1, 2)) * dx)

            bell = jnp.exp(-((x + 8) ** 2) / 2) / jnp.pi**0.25
            wave = bell * jnp.exp(1j * momentum[:, None] * (x + 8))
            psi, (weight, place) = lax.scan(step, jnp.stack([wave, jnp.zeros_like(wave)], axis=1), None, length=steps)
            return weight, place, psi.real, psi.imag

        return jax.jit(crossing)


class PrioritisedSweeping(Model):
    """Moore and Atkeson's learner in a maze: a model in tables, and after each move backups where the surprise is greatest."""

    kind = "reinforcement learning"
    dtype = "float64"
    size = dict(moves=600, side=8, backups=6)
    small = dict(moves=8, side=3, backups=2)

    def make(self, random, moves, side, backups):
        cells = side * side
        y, x = np.divmod(np.arange(cells), side)
        wall = random.random(cells) < 0.15
        wall[[0, 1, side, -1, -2, -side - 1]] = False
        to = np.stack(
            [np.clip(y + dy, 0, side - 1) * side + np.clip(x + dx, 0, side - 1) for dy, dx in ((0, 1), (1, 0), (0, -1), (-1, 0))], 1
        )
        world = np.where(wall[to], np.arange(cells)[:, None], to)
        reward = (world == cells - 1) - 0.01 * random.random((cells, 4))
        explores = np.where(random.random(moves) < 0.3, random.integers(0, 4, size=moves), -1)
        return world, reward, explores, 0.95, 1e-3

    def rscan(self, moves, side, backups):
        goal = side * side - 1

        @rs.compile
        def learn(world, reward, explores, discount, least):
            def surprise(q, r, to):
                return r + rs.where(to == goal, 0.0, discount * rs.max(q[to], axis=-1))

            def move(explore, s, q, known, to, r, urgency):
                a = rs.where(explore >= 0, explore, rs.argmax(q[s]))
                after = world[s, a]
                known, to, r = known.at[s, a].set(True), to.at[s, a].set(after), r.at[s, a].set(reward[s, a])
                urgency = urgency.at[s, a].set(rs.abs(surprise(q, reward[s, a], after) - q[s, a]))

                def backup(q, urgency, count):
                    most = rs.argmax(urgency)
                    state, action = most // 4, most % 4
                    go = urgency[state, action] > least
                    new = surprise(q, r[state, action], to[state, action])
                    q = q.at[state, action].set(rs.where(go, new, q[state, action]))
                    urgency = urgency.at[state, action].set(rs.where(go, 0.0, urgency[state, action]))
                    leads = known & (to == state) & go
                    change = rs.abs(surprise(q, r, to) - q)
                    urgency = rs.where(leads, rs.maximum(urgency, change), urgency)
                    return dict(q=q, urgency=urgency, count=count + go), rs.until(~go)

                end = rs.loop(backup, init=dict(q=q, urgency=urgency, count=0), n_steps=backups).last
                new = dict(s=rs.where(after == goal, 0, after), q=end.q, known=known, to=to, r=r, urgency=end.urgency)
                return dict(**new, count=end.count, arrived=after == goal, value=rs.max(end.q[0]))

            start = dict(
                s=0,
                q=rs.zeros((goal + 1, 4)),
                known=rs.zeros((goal + 1, 4), dtype="bool"),
                to=rs.zeros((goal + 1, 4), dtype="int64"),
                r=rs.zeros((goal + 1, 4)),
                urgency=rs.zeros((goal + 1, 4)),
            )
            out = rs.loop(move, over=dict(explore=explores), init=start)
            return out.last.q, out.s, out.count, out.value, rs.sum(out.arrived)

        return learn

    def jax(self, moves, side, backups):
        import jax
        import jax.numpy as jnp
        from jax import lax

        goal = side * side - 1

        def learn(world, reward, explores, discount, least):
            def surprise(q, r, to):
                return r + jnp.where(to == goal, 0.0, discount * jnp.max(q[to], axis=-1))

            def move(state, explore):
                s, q, known, to, r, urgency = state
                a = jnp.where(explore >= 0, explore, jnp.argmax(q[s]))
                after = world[s, a]
                known, to, r = known.at[s, a].set(True), to.at[s, a].set(after), r.at[s, a].set(reward[s, a])
                urgency = urgency.at[s, a].set(jnp.abs(surprise(q, reward[s, a], after) - q[s, a]))

                def going(state):
                    return (state[2] < backups) & (jnp.max(state[1]) > least)

                def backup(state):
                    q, urgency, count = state
                    at = jnp.unravel_index(jnp.argmax(urgency), urgency.shape)
                    q = q.at[at].set(surprise(q, r[at], to[at]))
                    change = jnp.abs(surprise(q, r, to) - q)
                    urgency = urgency.at[at].set(0.0)
                    return q, jnp.where(known & (to == at[0]), jnp.maximum(urgency, change), urgency), count + 1

                q, urgency, count = lax.while_loop(going, backup, (q, urgency, 0))
                s = jnp.where(after == goal, 0, after)
                return (s, q, known, to, r, urgency), (s, count, jnp.max(q[0]), after == goal)

            none = jnp.zeros((goal + 1, 4))
            start = 0, none, jnp.zeros((goal + 1, 4), bool), jnp.zeros((goal + 1, 4), int), none, none
            last, (s, count, value, arrived) = lax.scan(move, start, explores)
            return last[1], s, count, value, jnp.sum(arrived)

        return jax.jit(learn)
