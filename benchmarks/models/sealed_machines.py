"""Robots, signals, codes, genomes and learners: models as scientists of these fields write them from the equations."""

import numpy as np

import rscan as rs
from models import Model


class NewtonEulerArm(Model):
    """Torques of an arm by Newton and Euler's recursion, out along the links and back; gradient of the effort by the motion's coefficients."""

    kind = "robotics"
    dtype = "float64"
    size = dict(times=60, links=6, harmonics=4)
    small = dict(times=4, links=3, harmonics=2)

    def make(self, random, times, links, harmonics):
        twist = np.where(np.arange(links) % 2 == 0, np.pi / 2, -np.pi / 2)
        c, s, o, z = np.cos(twist), np.sin(twist), np.ones(links), np.zeros(links)
        frames = np.stack([np.stack([o, z, z], -1), np.stack([z, c, -s], -1), np.stack([z, s, c], -1)], axis=1)
        offset = 0.1 + 0.3 * random.random((links, 3))
        centre = 0.1 * random.normal(size=(links, 3))
        mass = np.linspace(8.0, 1.0, links)
        B = 0.1 * random.normal(size=(links, 3, 3))
        inertia = B @ B.transpose(0, 2, 1) + 0.02 * np.eye(3)
        return 0.3 * random.normal(size=(2, links, harmonics)), frames, offset, centre, mass, inertia

    def rscan(self, times, links, harmonics):
        axis = np.array([0.0, 0.0, 1.0])

        def torques(q, qd, qdd, frames, offset, centre, mass, inertia):
            def outwards(A, p, c, m, I, q, qd, qdd, w, dw, a):
                cos, sin = rs.cos(q), rs.sin(q)
                R = A @ rs.array([[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]])
                a = R.T @ (a + rs.cross(dw, p) + rs.cross(w, rs.cross(w, p)))
                w_in = R.T @ w
                dw = R.T @ dw + rs.cross(w_in, qd * axis) + qdd * axis
                w = w_in + qd * axis
                F = m * (a + rs.cross(dw, c) + rs.cross(w, rs.cross(w, c)))
                N = I @ dw + rs.cross(w, I @ w)
                return dict(w=w, dw=dw, a=a, F=F, N=N, R=R)

            over = dict(A=frames, p=offset, c=centre, m=mass, I=inertia, q=q, qd=qd, qdd=qdd)
            start = dict(w=rs.zeros(3), dw=rs.zeros(3), a=rs.constant([0.0, 0.0, 9.81]))
            out = rs.loop(outwards, over=over, init=start)

            def inwards(R, p, c, F, N, f, n):
                f = f + F
                n = n + N + rs.cross(c, F)
                torque = n[2]
                f_out = R @ f
                return dict(f=f_out, n=R @ n + rs.cross(p, f_out), torque=torque)

            over = dict(R=out.R, p=offset, c=centre, F=out.F, N=out.N)
            return rs.loop(inwards, over=over, init=dict(f=rs.zeros(3), n=rs.zeros(3)), reverse=True).torque

        def effort(coefficients, frames, offset, centre, mass, inertia):
            k = rs.arange(1, harmonics + 1)

            def moment(t):
                sin, cos = rs.sin(k * t), rs.cos(k * t)
                a, b = coefficients[0], coefficients[1]
                q = a @ sin + b @ cos
                qd = a @ (k * cos) - b @ (k * sin)
                qdd = -(a @ (k**2 * sin)) - b @ (k**2 * cos)
                return torques(q, qd, qdd, frames, offset, centre, mass, inertia)

            t = 2 * np.pi / times * rs.arange(times)
            torque = rs.vmap(moment)(t)
            return rs.mean(rs.sum(torque**2, axis=1)), torque

        return rs.compile(rs.value_and_grad(effort, has_aux=True))

    def jax(self, times, links, harmonics):
        import jax
        import jax.numpy as jnp
        from jax import lax

        axis = jnp.array([0.0, 0.0, 1.0])

        def torques(q, qd, qdd, frames, offset, centre, mass, inertia):
            def outwards(state, x):
                w, dw, a = state
                A, p, c, m, I, q, qd, qdd = x
                cos, sin = jnp.cos(q), jnp.sin(q)
                R = A @ jnp.array([[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]])
                a = R.T @ (a + jnp.cross(dw, p) + jnp.cross(w, jnp.cross(w, p)))
                w_in = R.T @ w
                dw = R.T @ dw + jnp.cross(w_in, qd * axis) + qdd * axis
                w = w_in + qd * axis
                F = m * (a + jnp.cross(dw, c) + jnp.cross(w, jnp.cross(w, c)))
                N = I @ dw + jnp.cross(w, I @ w)
                return (w, dw, a), (F, N, R)

            start = jnp.zeros(3), jnp.zeros(3), jnp.array([0.0, 0.0, 9.81])
            _, (F, N, R) = lax.scan(outwards, start, (frames, offset, centre, mass, inertia, q, qd, qdd))

            def inwards(state, x):
                f, n = state
                R, p, c, F, N = x
                f = f + F
                n = n + N + jnp.cross(c, F)
                f_out = R @ f
                return (f_out, R @ n + jnp.cross(p, f_out)), n[2]

            return lax.scan(inwards, (jnp.zeros(3), jnp.zeros(3)), (R, offset, centre, F, N), reverse=True)[1]

        def effort(coefficients, *arm):
            k = jnp.arange(1, harmonics + 1)

            def moment(t):
                sin, cos = jnp.sin(k * t), jnp.cos(k * t)
                a, b = coefficients
                q = a @ sin + b @ cos
                qd = a @ (k * cos) - b @ (k * sin)
                qdd = -(a @ (k**2 * sin)) - b @ (k**2 * cos)
                return torques(q, qd, qdd, *arm)

            torque = jax.vmap(moment)(2 * jnp.pi / times * jnp.arange(times))
            return jnp.mean(jnp.sum(torque**2, axis=1)), torque

        return jax.jit(jax.value_and_grad(effort, has_aux=True))


class RandomTree(Model):
    """A rapidly exploring random tree among discs, each new node below its cheapest neighbour, until the goal is near; then the way back."""

    kind = "robotics"
    dtype = "float64"
    size = dict(samples=250, discs=10)
    small = dict(samples=12, discs=2)

    def make(self, random, samples, discs):
        points = random.random((samples, 2))
        points[::10] = 0.95
        centres = 0.15 + 0.7 * random.random((discs, 2))
        return points, np.array([0.05, 0.05]), np.array([0.95, 0.95]), centres, 0.04 + 0.05 * random.random(discs)

    def rscan(self, samples, discs):
        @rs.compile
        def plan(points, start, goal, centres, radii):
            def free(a, b):
                """Whether the segments from the rows of a to the point b keep clear of all discs."""
                d = b - a
                along = rs.sum((centres - a[:, None]) * d[:, None], axis=2) / (rs.sum(d * d, axis=1)[:, None] + 1e-12)
                nearest = a[:, None] + rs.clip(along, 0.0, 1.0)[:, :, None] * d[:, None]
                return rs.all(rs.sum((nearest - centres) ** 2, axis=2) > radii**2, axis=1)

            def grow(point, nodes, parent, cost, count):
                there = rs.arange(samples + 1) < count
                distance = rs.where(there, rs.sqrt(rs.sum((nodes - point) ** 2, axis=1)), np.inf)
                i = rs.argmin(distance)
                towards = point - nodes[i]
                new = nodes[i] + towards * rs.minimum(1.0, 0.08 / (distance[i] + 1e-12))
                way = rs.sqrt(rs.sum((nodes - new) ** 2, axis=1))
                usable = there & (way < 0.16) & free(nodes, new)
                total = rs.where(usable, cost + way, np.inf)
                best = rs.argmin(total)
                grows = usable[best]
                out = dict(
                    nodes=rs.where(grows, nodes.at[count].set(new), nodes),
                    parent=rs.where(grows, parent.at[count].set(best), parent),
                    cost=rs.where(grows, cost.at[count].set(total[best]), cost),
                    count=count + grows,
                )
                return out, rs.until(grows & (rs.sum((new - goal) ** 2) < 0.05**2))

            init = dict(
                nodes=rs.zeros((samples + 1, 2)).at[0].set(start), parent=rs.zeros(samples + 1, dtype="int64"),
                cost=rs.zeros(samples + 1), count=1,
            )  # fmt: skip
            tree = rs.loop(grow, over=dict(point=points), init=init)
            last = tree.last

            def back(node, on_way):
                return dict(node=last.parent[node], on_way=on_way.at[node].set(True)), rs.until(node == 0)

            way = rs.loop(back, init=dict(node=last.count - 1, on_way=rs.zeros(samples + 1, dtype="bool")), n_steps=samples + 1)
            return last.nodes, last.parent, last.cost, last.count, tree.steps, way.last.on_way, way.steps

        return plan

    def jax(self, samples, discs):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def plan(points, start, goal, centres, radii):
            def free(a, b):
                def one(a):
                    d = b - a
                    along = (centres - a) @ d / (d @ d + 1e-12)
                    nearest = a + jnp.clip(along, 0.0, 1.0)[:, None] * d
                    return jnp.all(jnp.sum((nearest - centres) ** 2, axis=1) > radii**2)

                return jax.vmap(one)(a)

            def grow(state):
                t, nodes, parent, cost, count, _ = state
                point = points[t]
                there = jnp.arange(samples + 1) < count
                distance = jnp.where(there, jnp.sqrt(jnp.sum((nodes - point) ** 2, axis=1)), jnp.inf)
                i = jnp.argmin(distance)
                new = nodes[i] + (point - nodes[i]) * jnp.minimum(1.0, 0.08 / (distance[i] + 1e-12))
                way = jnp.sqrt(jnp.sum((nodes - new) ** 2, axis=1))
                usable = there & (way < 0.16) & free(nodes, new)
                total = jnp.where(usable, cost + way, jnp.inf)
                best = jnp.argmin(total)
                grows = usable[best]
                place = jnp.where(grows, count, samples + 1)  # outside: dropped
                nodes = nodes.at[place].set(new, mode="drop")
                parent = parent.at[place].set(best, mode="drop")
                cost = cost.at[place].set(total[best], mode="drop")
                return t + 1, nodes, parent, cost, count + grows, grows & (jnp.sum((new - goal) ** 2) < 0.05**2)

            init = (
                0, jnp.zeros((samples + 1, 2)).at[0].set(start), jnp.zeros(samples + 1, int), jnp.zeros(samples + 1), 1, False
            )  # fmt: skip
            t, nodes, parent, cost, count, _ = lax.while_loop(lambda s: (s[0] < samples) & ~s[5], grow, init)

            def back(state):
                node, on_way, hops, _ = state
                return parent[node], on_way.at[node].set(True), hops + 1, node == 0

            begin = count - 1, jnp.zeros(samples + 1, bool), 0, False
            _, on_way, hops, _ = lax.while_loop(lambda s: ~s[3], back, begin)
            return nodes, parent, cost, count, t, on_way, hops

        return jax.jit(plan)


class AdaptiveLattice(Model):
    """Gradient adaptive lattice filters of several channels: prediction errors go forwards and backwards through the stages."""

    kind = "signal processing"
    dtype = "float32"
    size = dict(samples=1000, stages=10, channels=4)
    small = dict(samples=12, stages=3, channels=2)

    def make(self, random, samples, stages, channels):
        x = np.zeros((channels, samples + 2))
        for t in range(2, samples + 2):
            x[:, t] = 1.2 * x[:, t - 1] - np.linspace(0.4, 0.8, channels) * x[:, t - 2] + random.normal(size=channels)
        return np.float32(0.02), x[:, 2:].astype("f4")

    def rscan(self, samples, stages, channels):
        def channel(rate, x):
            def sample(x, k, power, late):
                def stage(k, power, before, f, b):
                    power = 0.97 * power + 0.03 * (f**2 + before**2)
                    f_new = f + k * before
                    b_new = before + k * f
                    k_new = k - rate * (f_new * before + b_new * f) / (power + 0.01)
                    return dict(f=f_new, b=b_new, k=rs.clip(k_new, -0.999, 0.999), power=power, entered=b)

                out = rs.loop(stage, over=dict(k=k, power=power, before=late), init=dict(f=x, b=x))
                return dict(k=out.k, power=out.power, late=out.entered, error=out.f[-1])

            zeros = rs.zeros(stages, dtype="float32")
            out = rs.loop(sample, over=dict(x=x), init=dict(k=zeros, power=rs.ones(stages, dtype="float32"), late=zeros))
            return out.error, out.k[::10], rs.mean(out.error**2)

        return rs.compile(rs.vmap(channel, in_axes=(None, 0)))

    def jax(self, samples, stages, channels):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def channel(rate, x):
            def sample(state, x):
                k, power, late = state

                def stage(state, e):
                    f, b = state
                    k, power, before = e
                    power = 0.97 * power + 0.03 * (f**2 + before**2)
                    f_new = f + k * before
                    b_new = before + k * f
                    k_new = k - rate * (f_new * before + b_new * f) / (power + 0.01)
                    return (f_new, b_new), (jnp.clip(k_new, -0.999, 0.999), power, b)

                (f, _), (k, power, late) = lax.scan(stage, (x, x), (k, power, late))
                return (k, power, late), (f, k)

            zeros = jnp.zeros(stages, dtype="float32")
            _, (error, k) = lax.scan(sample, (zeros, jnp.ones(stages, dtype="float32"), zeros), x)
            return error, k[::10], jnp.mean(error**2)

        return jax.jit(jax.vmap(channel, in_axes=(None, 0)))


class ReedSolomonKey(Model):
    """Reed and Solomon's code over 256 elements: syndromes, the key equation by Berlekamp and Massey, a search of all places; many words."""

    kind = "signal processing"
    dtype = "int32"
    size = dict(length=100, errors=6, words=16)
    small = dict(length=12, errors=2, words=2)

    def make(self, random, length, errors, words):
        exp, log = np.zeros(510, dtype="i4"), np.zeros(256, dtype="i4")
        v = 1
        for i in range(255):
            exp[i] = exp[i + 255] = v
            log[v] = i
            v = v << 1 ^ (0x11D if v & 128 else 0)
        received = np.zeros((words, length), dtype="i4")  # the word of zeros, with errors
        for row in received:
            row[random.choice(length, size=random.integers(0, errors + 1), replace=False)] = random.integers(1, 256)
        return exp, log, received

    def rscan(self, length, errors, words):
        parity = 2 * errors

        def decode(exp, log, received):
            def times(a, b):
                return rs.where((a == 0) | (b == 0), 0, exp[log[a] + log[b]])

            roots = exp[rs.arange(parity)]
            S = rs.loop(lambda r, s: times(s, roots) ^ r, over=received, init=rs.zeros(parity, dtype="int32")).last

            def update(n, C, B, L, b):
                i = rs.arange(parity + 1)
                seen = S[rs.maximum(n - i, 0)]
                products = rs.where((i <= L) & (i <= n), times(C, seen), 0)
                d = rs.loop(lambda p, d: d ^ p, over=products, init=rs.zeros((), dtype="int32")).last
                B = rs.concatenate([rs.zeros(1, dtype="int32"), B[:-1]])
                ratio = rs.where(d == 0, 0, exp[(log[d] - log[b]) % 255])
                grows = (d != 0) & (2 * L <= n)
                return dict(C=C ^ times(ratio, B), B=rs.where(grows, C, B), L=rs.where(grows, n + 1 - L, L), b=rs.where(grows, d, b))

            one = rs.zeros(parity + 1, dtype="int32").at[0].set(1)
            start = dict(C=one, B=one, L=rs.zeros((), dtype="int64"), b=rs.ones((), dtype="int32"))
            key = rs.loop(update, over=dict(n=rs.arange(parity)), init=start).last

            places = exp[(255 - rs.arange(length)[::-1]) % 255]
            value = rs.loop(lambda c, v: times(v, places) ^ c, over=key.C[::-1], init=rs.zeros(length, dtype="int32")).last
            return S, key.C, key.L, value == 0

        return rs.compile(rs.vmap(decode, in_axes=(None, None, 0)))

    def jax(self, length, errors, words):
        import jax
        import jax.numpy as jnp
        from jax import lax

        parity = 2 * errors

        def decode(exp, log, received):
            def times(a, b):
                return jnp.where((a == 0) | (b == 0), 0, exp[log[a] + log[b]])

            roots = exp[jnp.arange(parity)]
            S, _ = lax.scan(lambda s, r: (times(s, roots) ^ r, None), jnp.zeros(parity, dtype="int32"), received)

            def update(n, state):
                C, B, L, b = state
                i = jnp.arange(parity + 1)
                products = jnp.where((i <= L) & (i <= n), times(C, S[jnp.maximum(n - i, 0)]), 0)
                d = lax.reduce(products, np.int32(0), lax.bitwise_xor, (0,))
                B = jnp.concatenate([jnp.zeros(1, dtype="int32"), B[:-1]])
                ratio = jnp.where(d == 0, 0, exp[(log[d] - log[b]) % 255])
                grows = (d != 0) & (2 * L <= n)
                new = C ^ times(ratio, B)
                return new, jnp.where(grows, C, B), jnp.where(grows, n + 1 - L, L), jnp.where(grows, d, b)

            one = jnp.zeros(parity + 1, dtype="int32").at[0].set(1)
            C, _, L, _ = lax.fori_loop(0, parity, update, (one, one, jnp.int64(0), jnp.int32(1)))
            places = exp[(255 - jnp.arange(length)[::-1]) % 255]
            value, _ = lax.scan(lambda v, c: (times(v, places) ^ c, None), jnp.zeros(length, dtype="int32"), C[::-1])
            return S, C, L, value == 0

        return jax.jit(jax.vmap(decode, in_axes=(None, None, 0)))


class HaplotypeCopying(Model):
    """Li and Stephens' model: chromosomes as mosaics of a panel, forwards and backwards over the sites; what was not typed is imputed."""

    kind = "computational biology"
    dtype = "float32"
    size = dict(sites=300, panel=80, targets=4)
    small = dict(sites=8, panel=5, targets=2)

    def make(self, random, sites, panel, targets):
        panel_alleles = (random.random((sites, panel)) < random.uniform(0.1, 0.6, size=(sites, 1))).astype("i4")
        source = np.cumsum(random.random((targets, sites)) < 0.03, axis=1) * 7 % panel
        truth = np.take_along_axis(panel_alleles, source.T, axis=1).T
        truth = np.where(random.random(truth.shape) < 0.01, 1 - truth, truth)
        typed = np.where(random.random(truth.shape) < 0.5, truth, -1).astype("i4")
        return (0.02 + 0.05 * random.random(sites)).astype("f4"), np.float32(0.01), panel_alleles, typed

    def rscan(self, sites, panel, targets):
        def impute(jump, error, alleles, typed):
            def forwards(r, row, seen, f):
                emission = rs.where(seen < 0, 1.0, rs.where(row == seen, 1 - error, error))
                new = emission * ((1 - r) * f + r / panel)
                total = rs.sum(new)
                return dict(f=new / total, e=emission, ll=rs.log(total))

            out = rs.loop(forwards, over=dict(r=jump, row=alleles, seen=typed), init=dict(f=rs.full(panel, 1 / panel, dtype="float32")))

            def backwards(r, e, b):
                weighted = e * b
                new = (1 - r) * weighted + r * rs.mean(weighted)
                return dict(b=new / rs.sum(new))

            over = dict(r=jump[1:], e=out.e[1:])
            back = rs.loop(backwards, over=over, init=dict(b=rs.full(panel, 1 / panel, dtype="float32")), reverse=True)
            b = rs.concatenate([back.b, rs.full((1, panel), 1 / panel, dtype="float32")])
            posterior = out.f * b
            posterior = posterior / rs.sum(posterior, axis=1, keepdims=True)
            dosage = rs.sum(posterior * alleles, axis=1)
            return rs.sum(out.ll), rs.cast(dosage, "float32"), rs.cast(rs.max(posterior, axis=1), "float32")

        return rs.compile(rs.vmap(impute, in_axes=(None, None, None, 0)))

    def jax(self, sites, panel, targets):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def impute(jump, error, alleles, typed):
            e = jnp.where(typed[:, None] < 0, jnp.float32(1), jnp.where(alleles == typed[:, None], 1 - error, error))
            flat = jnp.full(panel, 1 / panel, dtype="float32")

            def forwards(f, x):
                r, e = x
                new = e * ((1 - r) * f + r / panel)
                total = jnp.sum(new)
                return new / total, (new / total, jnp.log(total))

            _, (f, ll) = lax.scan(forwards, flat, (jump, e))

            def backwards(b, x):
                r, e = x
                new = (1 - r) * e * b + r * jnp.mean(e * b)
                new = new / jnp.sum(new)
                return new, new

            _, b = lax.scan(backwards, flat, (jump[1:], e[1:]), reverse=True)
            posterior = f * jnp.concatenate([b, flat[None]])
            posterior = posterior / jnp.sum(posterior, axis=1, keepdims=True)
            dosage = jnp.sum(posterior * alleles.astype("float32"), axis=1)
            return jnp.sum(ll), dosage, jnp.max(posterior, axis=1)

        return jax.jit(jax.vmap(impute, in_axes=(None, None, None, 0)))


class AdmmBoxControl(Model):
    """Control of an unstable plant by quadratic programs in a box: alternating multipliers until both residuals are small, from a warm start."""

    kind = "control"
    dtype = "float64"
    size = dict(times=40, horizon=12)
    small = dict(times=3, horizon=3)

    def make(self, random, times, horizon):
        A = np.array([[1.0, 0.1, 0.0], [0.2, 1.05, 0.1], [0.0, -0.1, 0.9]])
        B = np.array([0.0, 0.1, 0.3])
        powers = [np.linalg.matrix_power(A, k) for k in range(horizon + 1)]
        G = np.zeros((3 * horizon, horizon))
        for i in range(horizon):
            for j in range(i + 1):
                G[3 * i : 3 * i + 3, j] = powers[i - j] @ B
        Phi = np.concatenate(powers[1:])
        Q = np.kron(np.eye(horizon), np.diag([10.0, 1.0, 0.1]))
        push = 0.05 * random.normal(size=(times, 3))
        push[times // 3] += [0.6, 0.0, 0.0]
        return A, B, G.T @ Q @ G + 0.1 * np.eye(horizon), G.T @ Q @ Phi, 2.0, push

    def rscan(self, times, horizon):
        @rs.compile
        def drive(A, B, H, F, rho, push):
            K = rs.linalg.inv(H + rho * rs.eye(horizon))

            def time(push, x, z, y):
                g = F @ x

                def iterate(z, y):
                    u = K @ (rho * (z - y) - g)
                    z_new = rs.clip(1.6 * u + (1 - 1.6) * z + y, -1.0, 1.0)
                    y_new = y + 1.6 * u + (1 - 1.6) * z - z_new
                    primal = rs.max(rs.abs(u - z_new))
                    dual = rho * rs.max(rs.abs(z_new - z))
                    return dict(z=z_new, y=y_new), rs.until((primal < 1e-5) & (dual < 1e-5))

                solved = rs.loop(iterate, init=dict(z=z, y=y), n_steps=300)
                z, y = solved.last.z, solved.last.y
                u = z[0]
                x = A @ x + B * u + push
                later = rs.concatenate([z[1:], z[-1:]])
                return dict(x=x, z=later, y=rs.roll(y, -1).at[-1].set(0.0), u=u, iterations=solved.steps)

            start = dict(x=rs.constant([1.0, 0.0, 0.0]), z=rs.zeros(horizon), y=rs.zeros(horizon))
            out = rs.loop(time, over=dict(push=push), init=start)
            return out.x, out.u, out.iterations

        return drive

    def jax(self, times, horizon):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def drive(A, B, H, F, rho, push):
            K = jnp.linalg.inv(H + rho * jnp.eye(horizon))

            def time(state, push):
                x, z, y = state
                g = F @ x

                def iterate(state):
                    z, y, k, _ = state
                    u = K @ (rho * (z - y) - g)
                    relaxed = 1.6 * u + (1 - 1.6) * z + y
                    z_new = jnp.clip(relaxed, -1.0, 1.0)
                    done = (jnp.max(jnp.abs(u - z_new)) < 1e-5) & (rho * jnp.max(jnp.abs(z_new - z)) < 1e-5)
                    return z_new, relaxed - z_new, k + 1, done

                z, y, k, _ = lax.while_loop(lambda s: (s[2] < 300) & ~s[3], iterate, (z, y, 0, False))
                u = z[0]
                x = A @ x + B * u + push
                later = jnp.concatenate([z[1:], z[-1:]])
                return (x, later, jnp.roll(y, -1).at[-1].set(0.0)), (x, u, k)

            start = jnp.array([1.0, 0.0, 0.0]), jnp.zeros(horizon), jnp.zeros(horizon)
            return lax.scan(time, start, push)[1]

        return jax.jit(drive)


class TsetlinMachine(Model):
    """A Tsetlin machine learns clauses of bits by teams of automata that are rewarded and punished, example after example; draws are given."""

    kind = "machine learning"
    dtype = "int32"
    size = dict(examples=200, features=10, clauses=16)
    small = dict(examples=6, features=3, clauses=4)

    def make(self, random, examples, features, clauses):
        x = random.random((examples, features)) < 0.5
        y = x[:, 0] ^ x[:, 1]
        draws = random.random((examples, clauses, 2 * features)).astype("f4")
        chosen = random.random((examples, clauses)).astype("f4")
        start = random.integers(99, 101, size=(clauses, 2 * features)).astype("i4")
        return start, x, y, draws, chosen

    def rscan(self, examples, features, clauses):
        states, target, s = 100, 5, 3.0

        @rs.compile
        def learn(start, x, y, draws, chosen):
            sign = rs.where(rs.arange(clauses) % 2 == 0, 1, -1)

            def example(x, y, draws, chosen, automata):
                literals = rs.concatenate([x, ~x])
                included = automata >= states
                fires = rs.all(~included | literals, axis=1)
                votes = rs.clip(rs.sum(rs.where(fires, sign, 0)), -target, target)
                chance = rs.where(y, target - votes, target + votes) / (2 * target)
                taught = chosen < chance
                first = (taught & ((sign > 0) == y))[:, None]
                second = (taught & ((sign > 0) != y))[:, None]
                strong = fires[:, None] & literals
                up = first & strong & (draws < (s - 1) / s)
                down = first & ~strong & (draws < 1 / s)
                excluded = second & fires[:, None] & ~literals & ~included
                moved = automata + rs.cast(up | excluded, "int32") - rs.cast(down, "int32")
                return dict(automata=rs.clip(moved, 0, 2 * states - 1), right=(votes >= 0) == y, votes=votes)

            out = rs.loop(example, over=dict(x=x, y=y, draws=draws, chosen=chosen), init=dict(automata=start))
            return out.last.automata, out.votes, rs.cumsum(out.right)

        return learn

    def jax(self, examples, features, clauses):
        import jax
        import jax.numpy as jnp
        from jax import lax

        states, target, s = 100, 5, 3.0

        def learn(start, x, y, draws, chosen):
            sign = jnp.where(jnp.arange(clauses) % 2 == 0, 1, -1)

            def example(automata, e):
                x, y, draws, chosen = e
                literals = jnp.concatenate([x, ~x])
                included = automata >= states
                fires = jnp.all(~included | literals, axis=1)
                votes = jnp.clip(jnp.sum(jnp.where(fires, sign, 0)), -target, target)
                taught = chosen < jnp.where(y, target - votes, target + votes) / (2 * target)
                first = (taught & ((sign > 0) == y))[:, None]
                second = (taught & ((sign > 0) != y))[:, None]
                strong = fires[:, None] & literals
                up = first & strong & (draws < (s - 1) / s)
                down = first & ~strong & (draws < 1 / s)
                excluded = second & fires[:, None] & ~literals & ~included
                moved = automata + (up | excluded).astype("int32") - down.astype("int32")
                return jnp.clip(moved, 0, 2 * states - 1), (votes, (votes >= 0) == y)

            automata, (votes, right) = lax.scan(example, start, (x, y, draws, chosen))
            return automata, votes, jnp.cumsum(right)

        return jax.jit(learn)


class FoldingPartition(Model):
    """McCaskill's sum over the foldings of a molecule, by lengths of the part; its gradient by the energies are the pairs' probabilities."""

    kind = "computational biology"
    dtype = "float64"
    size = dict(bases=40)
    small = dict(bases=8)

    def make(self, random, bases):
        pairs = np.array([[0, 0, 0, 2.0], [0, 0, 3.0, 0], [0, 3.0, 0, 1.0], [2.0, 0, 1.0, 0]])
        sequence = random.integers(0, 4, size=bases)
        bonus = pairs[sequence[:, None], sequence]
        return np.where(bonus > 0, bonus, -10.0) + 0.05 * random.normal(size=(bases, bases)), 0.8

    def rscan(self, bases):
        def log_sum(bonus, temperature):
            weight = rs.exp(bonus / temperature)
            i = rs.arange(bases)
            m = rs.arange(bases)[:, None]

            def length(d, Q):
                # Q[d, i] is the sum for the bases i, ..., i + d - 1; the last of them is unpaired, or paired with i + m
                right = rs.minimum(i + d - 1, bases - 1)
                k = rs.minimum(i + m, bases - 1)
                inner = Q[rs.maximum(d - m - 2, 0), rs.minimum(i + m + 1, bases - 1)]
                paired = Q[m, i] * weight[k, right] * inner
                new = Q[d - 1] + rs.sum(rs.where(m <= d - 5, paired, 0.0), axis=0)
                return dict(Q=Q.at[d].set(rs.where(i + d <= bases, new, 1.0)))

            start = dict(Q=rs.ones((bases + 1, bases)))
            Q = rs.loop(length, over=dict(d=rs.arange(1, bases + 1)), init=start).last.Q
            return rs.log(Q[bases, 0])

        return rs.compile(rs.value_and_grad(log_sum, argnums=(0, 1)))

    def jax(self, bases):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def log_sum(bonus, temperature):
            weight = jnp.exp(bonus / temperature)
            i = jnp.arange(bases)
            m = jnp.arange(bases)[:, None]

            def length(Q, d):
                right = jnp.minimum(i + d - 1, bases - 1)
                k = jnp.minimum(i + m, bases - 1)
                inner = Q[jnp.maximum(d - m - 2, 0), jnp.minimum(i + m + 1, bases - 1)]
                paired = Q[:bases] * weight[k, right] * inner
                new = Q[d - 1] + jnp.sum(jnp.where(m <= d - 5, paired, 0.0), axis=0)
                return Q.at[d].set(jnp.where(i + d <= bases, new, 1.0)), None

            Q, _ = lax.scan(length, jnp.ones((bases + 1, bases)), jnp.arange(1, bases + 1))
            return jnp.log(Q[bases, 0])

        return jax.jit(jax.value_and_grad(log_sum, argnums=(0, 1)))
