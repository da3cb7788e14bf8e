"""Arrays that a loop reads and writes in places: tables, tableaus, bands, stamps, queues, hashed weights."""

import numpy as np
import rscan as rs
from models import Model


class EisnerParser(Model):
    """The inside algorithm of Eisner for projective dependency trees: four tables by length and start; the gradient holds the arcs' marginals."""

    kind = "harvest"
    dtype = "float64"
    size = dict(words=18)
    small = dict(words=5)

    def make(self, random, words):
        head = np.array([0] + [int(random.integers(0, words)) for _ in range(words - 1)])
        return random.normal(size=(words, words)), head

    def rscan(self, words):
        n = words

        def nll(w, head):
            def span(i, k, t):
                j = i + k
                arc = rs.logsumexp(t["cr"][i] + rs.roll(t["cl"][:, j], -1))
                ir = t["ir"].at[i, j].set(arc + w[i, j])
                il = t["il"].at[i, j].set(arc + w[j, i])
                cr = t["cr"].at[i, j].set(rs.logsumexp(ir[i] + t["cr"][:, j]))
                cl = t["cl"].at[i, j].set(rs.logsumexp(t["cl"][i] + il[:, j]))
                return dict(ir=ir, il=il, cr=cr, cl=cl)

            never = rs.full((n, n), -1e30)
            alone = never.at[rs.arange(n), rs.arange(n)].set(0.0)
            tables = dict(ir=never, il=never, cr=alone, cl=alone)
            tables = rs.fori(1, n, lambda k, t: rs.fori(0, n - k, lambda i, t: span(i, k, t), t), tables)
            gold = rs.sum(w[head[1:], rs.arange(1, n)])
            return tables["cr"][0, n - 1] - gold

        return rs.value_and_grad(rs.compile(nll))

    def jax(self, words):
        import jax, jax.numpy as jnp

        n = words
        starts = np.array([i for k in range(1, n) for i in range(n - k)])
        ends = np.array([i + k for k in range(1, n) for i in range(n - k)])

        def nll(w, head):
            def span(tables, place):
                ir, il, cr, cl = tables
                i, j = place
                arc = jax.nn.logsumexp(cr[i] + jnp.roll(cl[:, j], -1))
                ir = ir.at[i, j].set(arc + w[i, j])
                il = il.at[i, j].set(arc + w[j, i])
                new_cr = jax.nn.logsumexp(ir[i] + cr[:, j])
                new_cl = jax.nn.logsumexp(cl[i] + il[:, j])
                return (ir, il, cr.at[i, j].set(new_cr), cl.at[i, j].set(new_cl)), None

            never = jnp.full((n, n), -1e30)
            alone = never.at[jnp.arange(n), jnp.arange(n)].set(0.0)
            tables, _ = jax.lax.scan(span, (never, never, alone, alone), (starts, ends))
            return tables[2][0, n - 1] - jnp.sum(w[head[1:], jnp.arange(1, n)])

        return jax.jit(jax.value_and_grad(nll))


BEAM = np.array([[12.0, 6.0, -12.0, 6.0], [6.0, 4.0, -6.0, 2.0], [-12.0, -6.0, 12.0, -6.0], [6.0, 2.0, -6.0, 4.0]])
BED = np.array([[156.0, 22.0, 54.0, -13.0], [22.0, 4.0, 13.0, -3.0], [54.0, 13.0, 156.0, -22.0], [-13.0, -3.0, -22.0, 4.0]]) / 420
LOWER = np.tril_indices(4)


class BandedBeamSizing(Model):
    """A beam on an elastic bed: elements are added into a band, which Cholesky's method factors by hand; the compliance, with its gradient."""

    kind = "harvest"
    dtype = "float64"
    size = dict(elements=60)
    small = dict(elements=5)

    def make(self, random, elements):
        thickness = 1.0 + 0.3 * random.uniform(size=elements)
        bed = 0.2 + 0.1 * random.uniform(size=elements)
        load = random.normal(size=2 * elements + 2) * np.tile([1.0, 0.0], elements + 1)
        return thickness, bed, load

    def rscan(self, elements):
        n = 2 * elements + 2

        @rs.compile
        def compliance(thickness, bed, load):
            def assemble(e, h, k, band):
                stiffness = h**3 * BEAM + k * BED
                return dict(band=band.at[2 * e + LOWER[0], LOWER[0] - LOWER[1]].add(stiffness[LOWER[0], LOWER[1]]))

            over = dict(e=rs.arange(elements), h=thickness, k=bed)
            band = rs.loop(assemble, over=over, init=dict(band=rs.zeros((n, 4)))).last.band

            # Three rows of an identity stand before the first one.
            m = np.arange(4)

            def factor(i, a, low):
                def entry(d, row):
                    other = low[i + 3 - d]
                    known = rs.sum(rs.where(m > d, row * other[rs.maximum(m - d, 0)], 0.0))
                    return row.at[d].set((a[d] - known) / other[0])

                row = rs.loop(entry, over=rs.constant(np.array([3, 2, 1])), init=rs.zeros(4)).last
                row = row.at[0].set(rs.sqrt(a[0] - rs.sum(row[1:] ** 2)))
                return dict(low=low.at[i + 3].set(row))

            start = rs.zeros((n + 3, 4)).at[:3, 0].set(1.0)
            low = rs.loop(factor, over=dict(i=rs.arange(n), a=band), init=dict(low=start)).last.low

            def forwards(i, f, y):
                row = low[i + 3]
                known = row[1] * y[i + 2] + row[2] * y[i + 1] + row[3] * y[i]
                return dict(y=y.at[i + 3].set((f - known) / row[0]))

            y = rs.loop(forwards, over=dict(i=rs.arange(n), f=load), init=dict(y=rs.zeros(n + 3))).last.y

            def backwards(i, u):
                u = u.at[i].set(u[i] / low[i, 0])
                return dict(u=u.at[i - rs.arange(1, 4)].add(-low[i, 1:] * u[i]))

            u = rs.loop(backwards, over=dict(i=rs.arange(n + 2, 2, -1)), init=dict(u=y)).last.u
            return rs.sum(load * u[3:])

        return rs.value_and_grad(compliance)

    def jax(self, elements):
        import jax, jax.numpy as jnp

        n = 2 * elements + 2

        def compliance(thickness, bed, load):
            def assemble(band, x):
                e, h, k = x
                stiffness = h**3 * BEAM + k * BED
                return band.at[2 * e + LOWER[0], LOWER[0] - LOWER[1]].add(stiffness[LOWER[0], LOWER[1]]), None

            band, _ = jax.lax.scan(assemble, jnp.zeros((n, 4)), (jnp.arange(elements), thickness, bed))
            m = jnp.arange(4)

            def factor(low, x):
                i, a = x

                def entry(row, d):
                    other = low[i + 3 - d]
                    known = jnp.sum(jnp.where(m > d, row * other[jnp.maximum(m - d, 0)], 0.0))
                    return row.at[d].set((a[d] - known) / other[0]), None

                row, _ = jax.lax.scan(entry, jnp.zeros(4), jnp.array([3, 2, 1]))
                row = row.at[0].set(jnp.sqrt(a[0] - jnp.sum(row[1:] ** 2)))
                return low.at[i + 3].set(row), None

            low, _ = jax.lax.scan(factor, jnp.zeros((n + 3, 4)).at[:3, 0].set(1.0), (jnp.arange(n), band))

            def forwards(y, x):
                i, f = x
                row = low[i + 3]
                known = row[1] * y[i + 2] + row[2] * y[i + 1] + row[3] * y[i]
                return y.at[i + 3].set((f - known) / row[0]), None

            y, _ = jax.lax.scan(forwards, jnp.zeros(n + 3), (jnp.arange(n), load))

            def backwards(u, i):
                u = u.at[i].set(u[i] / low[i, 0])
                return u.at[i - jnp.arange(1, 4)].add(-low[i, 1:] * u[i]), None

            u, _ = jax.lax.scan(backwards, y, jnp.arange(n + 2, 2, -1))
            return jnp.sum(load * u[3:])

        return jax.jit(jax.value_and_grad(compliance))


class VoltageMultiplierStamps(Model):
    """A cascade of diodes and capacitors: stamps by lists of nodes, five Newton steps in each step of backward Euler; the output's Jacobian by six components."""

    kind = "harvest"
    dtype = "float64"
    size = dict(steps=120)
    small = dict(steps=6)
    rtol = 1e-7

    # Node 5 is the ground; the source drives node 0 through a resistor.
    capacitors = np.array([[0, 1], [5, 2], [1, 3], [2, 4]])
    diodes = np.array([[5, 1], [1, 2], [2, 3], [3, 4]])
    resistors = np.array([[0, 5], [4, 5]])

    def make(self, random, steps):
        drive = 3.0 * np.sin(2 * np.pi * np.arange(1, steps + 1) / 40) + 0.05 * random.normal(size=steps)
        return np.log(np.array([1.0, 1.2, 0.9, 1.1, 20.0, 0.01])), drive

    def rscan(self, steps):
        dt, vt = 0.05, 0.1
        ca, cb = self.capacitors.T
        da, db = self.diodes.T
        ra, rb = self.resistors.T

        def stamp(matrix, a, b, g):
            return matrix.at[a, a].add(g).at[b, b].add(g).at[a, b].add(-g).at[b, a].add(-g)

        def output(logs, drive):
            p = rs.exp(logs)
            gc, gr, saturation = p[:4] / dt, rs.stack([10.0, 1 / p[4]]), p[5]
            fixed = stamp(stamp(rs.zeros((6, 6)), ca, cb, gc), ra, rb, gr)

            def step(source, v):
                flow = gc * (v[ca] - v[cb])
                known = rs.zeros(6).at[ca].add(flow).at[cb].add(-flow).at[0].add(10.0 * source)

                def newton(_, x):
                    across = x[da] - x[db]
                    e = rs.exp(rs.minimum(across / vt, 25.0))
                    g = saturation / vt * e + 1e-6
                    rest = saturation * (e - 1) - g * across
                    matrix = stamp(fixed, da, db, g)
                    right = known.at[da].add(-rest).at[db].add(rest)
                    return rs.concatenate([rs.linalg.solve(matrix[:5, :5], right[:5]), rs.zeros(1)])

                new = rs.fori(0, 5, newton, v)
                return dict(v=new, out=new[4])

            return rs.loop(step, over=dict(source=drive), init=dict(v=rs.zeros(6))).out[5::6]

        return rs.compile(rs.jacobian(output))

    def jax(self, steps):
        import jax, jax.numpy as jnp

        dt, vt = 0.05, 0.1
        ca, cb = self.capacitors.T
        da, db = self.diodes.T
        ra, rb = self.resistors.T

        def stamp(matrix, a, b, g):
            return matrix.at[a, a].add(g).at[b, b].add(g).at[a, b].add(-g).at[b, a].add(-g)

        def output(logs, drive):
            p = jnp.exp(logs)
            gc, gr, saturation = p[:4] / dt, jnp.stack([10.0, 1 / p[4]]), p[5]
            fixed = stamp(stamp(jnp.zeros((6, 6)), ca, cb, gc), ra, rb, gr)

            def step(v, source):
                flow = gc * (v[ca] - v[cb])
                known = jnp.zeros(6).at[ca].add(flow).at[cb].add(-flow).at[0].add(10.0 * source)

                def newton(_, x):
                    across = x[da] - x[db]
                    e = jnp.exp(jnp.minimum(across / vt, 25.0))
                    g = saturation / vt * e + 1e-6
                    rest = saturation * (e - 1) - g * across
                    matrix = stamp(fixed, da, db, g)
                    right = known.at[da].add(-rest).at[db].add(rest)
                    return jnp.concatenate([jnp.linalg.solve(matrix[:5, :5], right[:5]), jnp.zeros(1)])

                new = jax.lax.fori_loop(0, 5, newton, v)
                return new, new[4]

            return jax.lax.scan(step, jnp.zeros(6), drive)[1][5::6]

        return jax.jit(jax.jacfwd(output))


class OrnsteinContrasts(Model):
    """Traits that drift back to an optimum along a phylogeny: means and variances of all nodes, written from the tips up; the Hessian of the likelihood."""

    kind = "harvest"
    dtype = "float64"
    size = dict(tips=100, traits=4)
    small = dict(tips=6, traits=2)

    def make(self, random, tips, traits):
        alive, children = list(range(tips)), []
        for k in range(tips - 1):
            a, b = (alive.pop(int(random.integers(len(alive)))) for _ in range(2))
            children.append((a, b))
            alive.append(tips + k)
        lengths = 0.02 + random.exponential(0.15, size=2 * tips - 1)
        data = random.normal(size=(traits, tips)) * 0.8 + 0.3
        return np.array([0.1, 0.2, 0.3, -2.0]), np.array(children), lengths, data

    def rscan(self, tips, traits):
        nodes = 2 * tips - 1

        def loglik(theta, children, lengths, x):
            s2, alpha, mu, noise = rs.exp(theta[0]), rs.exp(theta[1]), theta[2], rs.exp(theta[3])

            def step(k, pair, mean, var, total):
                t = lengths[pair]
                grow = rs.exp(alpha * t)
                m = mu + (mean[pair] - mu) * grow
                v = (var[pair] + s2 / (2 * alpha) * (1 - rs.exp(-2 * alpha * t))) * grow**2
                both = v[0] + v[1]
                contrast = m[0] - m[1]
                total = total + rs.sum(alpha * t) - 0.5 * (rs.log(2 * np.pi * both) + contrast**2 / both)
                node = tips + k
                return dict(
                    mean=mean.at[node].set((m[0] * v[1] + m[1] * v[0]) / both), var=var.at[node].set(v[0] * v[1] / both), total=total
                )

            mean = rs.concatenate([x, rs.zeros(tips - 1)])
            var = rs.concatenate([noise * rs.ones(tips), rs.zeros(tips - 1)])
            over = dict(k=rs.arange(tips - 1), pair=children)
            last = rs.loop(step, over=over, init=dict(mean=mean, var=var, total=0.0)).last
            spread = last.var[nodes - 1] + s2 / (2 * alpha)
            return last.total - 0.5 * (rs.log(2 * np.pi * spread) + (last.mean[nodes - 1] - mu) ** 2 / spread)

        @rs.compile
        def total(theta, children, lengths, data):
            return rs.sum(rs.vmap(loglik, (None, None, None, 0))(theta, children, lengths, data))

        return rs.hessian(total)

    def jax(self, tips, traits):
        import jax, jax.numpy as jnp

        nodes = 2 * tips - 1

        def loglik(theta, children, lengths, x):
            s2, alpha, mu, noise = jnp.exp(theta[0]), jnp.exp(theta[1]), theta[2], jnp.exp(theta[3])

            def step(state, k_pair):
                mean, var, total = state
                k, pair = k_pair
                t = lengths[pair]
                grow = jnp.exp(alpha * t)
                m = mu + (mean[pair] - mu) * grow
                v = (var[pair] + s2 / (2 * alpha) * (1 - jnp.exp(-2 * alpha * t))) * grow**2
                both = v[0] + v[1]
                contrast = m[0] - m[1]
                total = total + jnp.sum(alpha * t) - 0.5 * (jnp.log(2 * np.pi * both) + contrast**2 / both)
                node = tips + k
                return (mean.at[node].set((m[0] * v[1] + m[1] * v[0]) / both), var.at[node].set(v[0] * v[1] / both), total), None

            mean = jnp.concatenate([x, jnp.zeros(tips - 1)])
            var = jnp.concatenate([noise * jnp.ones(tips), jnp.zeros(tips - 1)])
            (mean, var, total), _ = jax.lax.scan(step, (mean, var, 0.0), (jnp.arange(tips - 1), children))
            spread = var[nodes - 1] + s2 / (2 * alpha)
            return total - 0.5 * (jnp.log(2 * np.pi * spread) + (mean[nodes - 1] - mu) ** 2 / spread)

        def total(theta, children, lengths, data):
            return jnp.sum(jax.vmap(loglik, (None, None, None, 0))(theta, children, lengths, data))

        return jax.jit(jax.hessian(total))


class TableauBlends(Model):
    """Linear programs, a batch of them: pivots in a tableau by the steepest cost until no cost is negative."""

    kind = "harvest"
    dtype = "float64"
    size = dict(programs=16, rows=12, columns=18)
    small = dict(programs=3, rows=3, columns=4)

    def make(self, random, programs, rows, columns):
        shape = (programs, rows, columns)
        return (
            random.uniform(0.1, 1.0, size=shape),
            random.uniform(1.0, 2.0, size=(programs, rows)),
            random.uniform(0.5, 1.5, size=(programs, columns)),
        )

    def rscan(self, programs, rows, columns):
        def solve(a, b, c):
            top = rs.concatenate([a, rs.eye(rows), b[:, None]], axis=1)
            bottom = rs.concatenate([-c, rs.zeros(rows + 1)])
            tableau = rs.concatenate([top, bottom[None, :]], axis=0)

            def pivot(tableau, basis):
                enters = rs.argmin(tableau[-1, :-1])
                column = tableau[:-1, enters]
                ratios = rs.where(column > 1e-9, tableau[:-1, -1] / rs.where(column > 1e-9, column, 1.0), np.inf)
                leaves = rs.argmin(ratios)
                row = tableau[leaves] / tableau[leaves, enters]
                tableau = (tableau - tableau[:, enters][:, None] * row).at[leaves].set(row)
                basis = basis.at[leaves].set(enters)
                return dict(tableau=tableau, basis=basis), rs.until(rs.min(tableau[-1, :-1]) >= -1e-9)

            out = rs.loop(pivot, init=dict(tableau=tableau, basis=columns + rs.arange(rows)), n_steps=200)
            x = rs.zeros(columns + rows).at[out.last.basis].set(out.last.tableau[:-1, -1])
            return out.last.tableau[-1, -1], x[:columns], out.steps

        return rs.compile(rs.vmap(solve))

    def jax(self, programs, rows, columns):
        import jax, jax.numpy as jnp

        def solve(a, b, c):
            top = jnp.concatenate([a, jnp.eye(rows), b[:, None]], axis=1)
            bottom = jnp.concatenate([-c, jnp.zeros(rows + 1)])
            tableau = jnp.concatenate([top, bottom[None, :]], axis=0)

            def pivot(state):
                tableau, basis, k = state
                enters = jnp.argmin(tableau[-1, :-1])
                column = tableau[:-1, enters]
                ratios = jnp.where(column > 1e-9, tableau[:-1, -1] / jnp.where(column > 1e-9, column, 1.0), jnp.inf)
                leaves = jnp.argmin(ratios)
                row = tableau[leaves] / tableau[leaves, enters]
                tableau = (tableau - tableau[:, enters][:, None] * row).at[leaves].set(row)
                return tableau, basis.at[leaves].set(enters), k + 1

            def going(state):
                return (state[2] < 200) & (jnp.min(state[0][-1, :-1]) < -1e-9)

            tableau, basis, k = jax.lax.while_loop(going, pivot, (tableau, columns + jnp.arange(rows), 0))
            x = jnp.zeros(columns + rows).at[basis].set(tableau[:-1, -1])
            return tableau[-1, -1], x[:columns], k

        return jax.jit(jax.vmap(solve))


class BeggarMyNeighbour(Model):
    """Games of cards that decide nothing: two hands in rings, a pile, debts of honours; a batch of shuffled packs."""

    kind = "harvest"
    dtype = "int64"
    size = dict(games=32, limit=1500)
    small = dict(games=3, limit=60)

    def make(self, random, games, limit):
        pack = np.repeat([1, 2, 3, 4, 0], [4, 4, 4, 4, 36])
        return (np.stack([random.permutation(pack) for _ in range(games)]),)

    def rscan(self, games, limit):
        places = np.arange(52)

        def play(pack):
            hands = rs.zeros((2, 64), dtype="int64").at[:, :26].set(rs.reshape(pack, (2, 26)))
            counts, heads = rs.constant(np.array([26, 26])), rs.constant(np.array([0, 0]))

            def step(hands, heads, counts, pile, lying, turn, debt, tricks):
                card = hands[turn, heads[turn]]
                heads = heads.at[turn].set((heads[turn] + 1) % 64)
                counts = counts.at[turn].add(-1)
                pile = pile.at[lying].set(card)
                lying = lying + 1
                honour = card > 0
                paid = (debt == 1) & ~honour
                other = 1 - turn
                taken = rs.where(paid, lying, 0)
                bottom = (heads[other] + counts[other] + places) % 64
                hands = hands.at[other, bottom].set(rs.where(places < taken, pile, hands[other, bottom]))
                counts = counts.at[other].add(taken)
                stays = ~honour & (debt > 1)
                turn = rs.where(stays, turn, other)
                new = dict(
                    hands=hands,
                    heads=heads,
                    counts=counts,
                    pile=pile,
                    lying=lying - taken,
                    turn=turn,
                    debt=rs.where(honour, card, rs.maximum(debt - 1, 0)),
                    tricks=tricks + paid,
                )
                return new, rs.until(counts[turn] == 0)

            init = dict(
                hands=hands, heads=heads, counts=counts, pile=rs.zeros(52, dtype="int64"), lying=0, turn=0, debt=0, tricks=0
            )
            out = rs.loop(step, init=init, n_steps=limit)
            return out.steps, out.last.tricks, out.last.counts, out.last.hands

        return rs.compile(rs.vmap(play))

    def jax(self, games, limit):
        import jax, jax.numpy as jnp

        places = np.arange(52)

        def play(pack):
            hands = jnp.zeros((2, 64), dtype="int64").at[:, :26].set(jnp.reshape(pack, (2, 26)))

            def step(state):
                hands, heads, counts, pile, lying, turn, debt, tricks, k = state
                card = hands[turn, heads[turn]]
                heads = heads.at[turn].set((heads[turn] + 1) % 64)
                counts = counts.at[turn].add(-1)
                pile = pile.at[lying].set(card)
                lying = lying + 1
                honour = card > 0
                paid = (debt == 1) & ~honour
                other = 1 - turn
                taken = jnp.where(paid, lying, 0)
                bottom = (heads[other] + counts[other] + places) % 64
                hands = hands.at[other, bottom].set(jnp.where(places < taken, pile, hands[other, bottom]))
                counts = counts.at[other].add(taken)
                stays = ~honour & (debt > 1)
                turn = jnp.where(stays, turn, other)
                debt = jnp.where(honour, card, jnp.maximum(debt - 1, 0))
                return hands, heads, counts, pile, lying - taken, turn, debt, tricks + paid, k + 1

            def going(state):
                return (state[8] < limit) & (state[2][state[5]] > 0)

            start = (hands, jnp.array([0, 0]), jnp.array([26, 26]), jnp.zeros(52, dtype="int64"), 0, 0, 0, 0, 0)
            end = jax.lax.while_loop(going, step, start)
            return end[8], end[7], end[2], end[0]

        return jax.jit(jax.vmap(play))


class GivensForgetting(Model):
    """Least squares that forget, in float32: each observation is rotated into a triangle, row by row; the rotated residuals with their gradient."""

    kind = "harvest"
    dtype = "float32"
    size = dict(steps=250, width=6)
    small = dict(steps=8, width=3)
    rtol = 1e-3

    def make(self, random, steps, width):
        x = random.normal(size=(steps, width)).astype("f4")
        w = np.cumsum(0.05 * random.normal(size=(steps, width)), axis=0) + 1
        y = (np.sum(x * w, axis=1) + 0.1 * random.normal(size=steps)).astype("f4")
        return np.array([2.0, 0.1, -0.5], dtype="f4"), x, y

    def rscan(self, steps, width):
        @rs.compile
        def loss(theta, x, y):
            keep, lean, ridge = rs.sqrt(rs.sigmoid(theta[0])), theta[1], rs.exp(theta[2])
            columns = rs.concatenate([x, (y - lean)[:, None]], axis=1)

            def step(row, triangle):
                def rotate(k, state):
                    triangle, row = state
                    above = triangle[k]
                    length = rs.sqrt(above[k] ** 2 + row[k] ** 2)
                    c, s = above[k] / length, row[k] / length
                    return triangle.at[k].set(c * above + s * row), c * row - s * above

                triangle, row = rs.fori(0, width, rotate, (keep * triangle, row))
                return dict(triangle=triangle, residual=row[width])

            start = ridge * rs.eye(width, width + 1, dtype="float32")
            out = rs.loop(step, over=dict(row=columns), init=dict(triangle=start))
            return rs.mean(out.residual**2)

        return rs.value_and_grad(loss)

    def jax(self, steps, width):
        import jax, jax.numpy as jnp

        def loss(theta, x, y):
            keep, lean, ridge = jnp.sqrt(jax.nn.sigmoid(theta[0])), theta[1], jnp.exp(theta[2])
            columns = jnp.concatenate([x, (y - lean)[:, None]], axis=1)

            def step(triangle, row):
                def rotate(state, k):
                    triangle, row = state
                    above = triangle[k]
                    length = jnp.sqrt(above[k] ** 2 + row[k] ** 2)
                    c, s = above[k] / length, row[k] / length
                    return (triangle.at[k].set(c * above + s * row), c * row - s * above), None

                (triangle, row), _ = jax.lax.scan(rotate, (keep * triangle, row), jnp.arange(width))
                return triangle, row[width]

            _, residual = jax.lax.scan(step, ridge * jnp.eye(width, width + 1, dtype="float32"), columns)
            return jnp.mean(residual**2)

        return jax.jit(jax.value_and_grad(loss))


class MeshedGridVoltages(Model):
    """Power flow by Gauss and Seidel: sweeps over the buses of a meshed grid, lists of neighbours, generators that hold their voltage; a batch of loads."""

    kind = "harvest"
    dtype = "float64"
    size = dict(buses=20, loads=12)
    small = dict(buses=5, loads=2)

    def make(self, random, buses, loads):
        lines = [(i, i + 1) for i in range(buses - 1)] + [(i, (i + buses // 3) % buses) for i in range(0, buses, 2)]
        near = [[] for _ in range(buses)]
        own = np.zeros((buses, 2))
        for a, b in lines:
            r, x = random.uniform(0.01, 0.03), random.uniform(0.05, 0.1)
            y = np.array([r, -x]) / (r * r + x * x)
            own[a] += y
            own[b] += y
            near[a].append((b, *y))
            near[b].append((a, *y))
        degree = max(map(len, near))
        who, g, b = np.zeros((buses, degree), dtype="i8"), np.zeros((buses, degree)), np.zeros((buses, degree))
        for i, those in enumerate(near):
            for k, (j, gij, bij) in enumerate(those):
                who[i, k], g[i, k], b[i, k] = j, gij, bij
        holds = np.arange(buses) % 7 == 3
        p = np.where(holds, 0.3, -random.uniform(0.02, 0.15, size=(loads, buses)))
        q = -random.uniform(0.0, 0.06, size=(loads, buses))
        return who, g, b, own, holds, p, q

    def rscan(self, buses, loads):
        def flow(who, g, b, own, holds, p, q):
            def bus(i, state):
                re, im = state
                a, c = re[who[i]], im[who[i]]
                ir, ii = rs.sum(g[i] * a - b[i] * c), rs.sum(g[i] * c + b[i] * a)
                # What flows out of the bus is V conj(Y V - sum): its imaginary part is what a generator gives.
                out_r = own[i, 0] * re[i] - own[i, 1] * im[i] - ir
                out_i = own[i, 0] * im[i] + own[i, 1] * re[i] - ii
                qi = rs.where(holds[i], im[i] * out_r - re[i] * out_i, q[i])
                size = re[i] ** 2 + im[i] ** 2
                nr = (p[i] * re[i] + qi * im[i]) / size + ir
                ni = (p[i] * im[i] - qi * re[i]) / size + ii
                y2 = own[i, 0] ** 2 + own[i, 1] ** 2
                vr = (nr * own[i, 0] + ni * own[i, 1]) / y2
                vi = (ni * own[i, 0] - nr * own[i, 1]) / y2
                scale = rs.where(holds[i], 1.02 / rs.sqrt(vr**2 + vi**2), 1.0)
                return re.at[i].set(scale * vr), im.at[i].set(scale * vi)

            def sweep(re, im):
                new_re, new_im = rs.fori(1, buses, bus, (re, im))
                change = rs.max(rs.abs(new_re - re) + rs.abs(new_im - im))
                return dict(re=new_re, im=new_im), rs.until(change < 1e-7)

            out = rs.loop(sweep, init=dict(re=rs.ones(buses), im=rs.zeros(buses)), n_steps=400)
            return out.last.re, out.last.im, out.steps

        return rs.compile(rs.vmap(flow, in_axes=(None, None, None, None, None, 0, 0)))

    def jax(self, buses, loads):
        import jax, jax.numpy as jnp

        def flow(who, g, b, own, holds, p, q):
            def bus(i, state):
                re, im = state
                a, c = re[who[i]], im[who[i]]
                ir, ii = jnp.sum(g[i] * a - b[i] * c), jnp.sum(g[i] * c + b[i] * a)
                out_r = own[i, 0] * re[i] - own[i, 1] * im[i] - ir
                out_i = own[i, 0] * im[i] + own[i, 1] * re[i] - ii
                qi = jnp.where(holds[i], im[i] * out_r - re[i] * out_i, q[i])
                size = re[i] ** 2 + im[i] ** 2
                nr = (p[i] * re[i] + qi * im[i]) / size + ir
                ni = (p[i] * im[i] - qi * re[i]) / size + ii
                y2 = own[i, 0] ** 2 + own[i, 1] ** 2
                vr = (nr * own[i, 0] + ni * own[i, 1]) / y2
                vi = (ni * own[i, 0] - nr * own[i, 1]) / y2
                scale = jnp.where(holds[i], 1.02 / jnp.sqrt(vr**2 + vi**2), 1.0)
                return re.at[i].set(scale * vr), im.at[i].set(scale * vi)

            def sweep(state):
                re, im, _, k = state
                new_re, new_im = jax.lax.fori_loop(1, buses, bus, (re, im))
                return new_re, new_im, jnp.max(jnp.abs(new_re - re) + jnp.abs(new_im - im)), k + 1

            def going(state):
                return (state[3] < 400) & (state[2] >= 1e-7)

            re, im, _, k = jax.lax.while_loop(going, sweep, (jnp.ones(buses), jnp.zeros(buses), jnp.inf, 0))
            return re, im, k

        return jax.jit(jax.vmap(flow, in_axes=(None, None, None, None, None, 0, 0)))


class HashedClicksFtrl(Model):
    """FTRL-proximal on hashed features, in float32: ten places of two tables are read and written for each click; its loss by three settings."""

    kind = "harvest"
    dtype = "float32"
    size = dict(clicks=400, bins=512, features=10)
    small = dict(clicks=6, bins=16, features=3)
    rtol = 1e-3

    def make(self, random, clicks, bins, features):
        places = np.minimum(random.geometric(0.02, size=(clicks, features)), bins - 1) - 1
        weights = random.normal(size=bins)
        y = (random.uniform(size=clicks) < 1 / (1 + np.exp(-weights[places].sum(1)))).astype("f4")
        return np.log(np.array([0.2, 0.1, 0.5], dtype="f4")), places.astype("i4"), y

    def rscan(self, clicks, bins, features):
        @rs.compile
        def loss(logs, places, y):
            alpha, l1, l2 = rs.exp(logs[0]), rs.exp(logs[1]), rs.exp(logs[2])

            def step(at, y, z, n):
                zi, ni = z[at], n[at]
                w = rs.where(rs.abs(zi) <= l1, 0.0, (rs.sign(zi) * l1 - zi) / ((1 + rs.sqrt(ni)) / alpha + l2))
                logit = rs.sum(w)
                g = rs.sigmoid(logit) - y
                sigma = (rs.sqrt(ni + g**2) - rs.sqrt(ni)) / alpha
                return dict(z=z.at[at].add(g - sigma * w), n=n.at[at].add(g**2), cost=rs.softplus(logit) - y * logit)

            init = dict(z=rs.zeros(bins, dtype="float32"), n=rs.full(bins, 0.1, dtype="float32"))
            return rs.mean(rs.loop(step, over=dict(at=places, y=y), init=init).cost)

        return rs.value_and_grad(loss)

    def jax(self, clicks, bins, features):
        import jax, jax.numpy as jnp

        def loss(logs, places, y):
            alpha, l1, l2 = jnp.exp(logs)

            def step(state, x):
                z, n = state
                at, y = x
                zi, ni = z[at], n[at]
                w = jnp.where(jnp.abs(zi) <= l1, 0.0, (jnp.sign(zi) * l1 - zi) / ((1 + jnp.sqrt(ni)) / alpha + l2))
                logit = jnp.sum(w)
                g = jax.nn.sigmoid(logit) - y
                sigma = (jnp.sqrt(ni + g**2) - jnp.sqrt(ni)) / alpha
                return (z.at[at].add(g - sigma * w), n.at[at].add(g**2)), jax.nn.softplus(logit) - y * logit

            start = jnp.zeros(bins, dtype="float32"), jnp.full(bins, 0.1, dtype="float32")
            return jnp.mean(jax.lax.scan(step, start, (places, y))[1])

        return jax.jit(jax.value_and_grad(loss))


class HuffmanTwoQueues(Model):
    """Canonical Huffman codes of a batch of histograms: merges by two queues in one array, depths from the root down, codes by length."""

    kind = "harvest"
    dtype = "int64"
    size = dict(histograms=24, symbols=64)
    small = dict(histograms=2, symbols=5)

    def make(self, random, histograms, symbols):
        return (random.geometric(0.01, size=(histograms, symbols)) ** 2 // 50 + 1,)

    def rscan(self, histograms, symbols):
        n = symbols

        def codes(counts):
            order = rs.argsort(counts)
            start = rs.concatenate([counts[order], rs.zeros(n - 1, dtype="int64")])

            def merge(end, weight, parent, leaf, inner):
                def pick(leaf, inner):
                    of_leaves = (leaf < n) & ((inner >= end) | (weight[rs.minimum(leaf, n - 1)] <= weight[rs.minimum(inner, 2 * n - 2)]))
                    return rs.where(of_leaves, leaf, inner), leaf + of_leaves, inner + ~of_leaves

                a, leaf, inner = pick(leaf, inner)
                b, leaf, inner = pick(leaf, inner)
                parent = parent.at[a].set(end).at[b].set(end)
                return dict(weight=weight.at[end].set(weight[a] + weight[b]), parent=parent, leaf=leaf, inner=inner)

            init = dict(weight=start, parent=rs.zeros(2 * n - 1, dtype="int64"), leaf=0, inner=n)
            parent = rs.loop(merge, over=dict(end=rs.arange(n, 2 * n - 1)), init=init).last.parent
            none = rs.zeros(2 * n - 1, dtype="int64")
            depth = rs.fori(0, 2 * n - 2, lambda k, d: d.at[2 * n - 3 - k].set(d[parent[2 * n - 3 - k]] + 1), none)
            lengths = rs.zeros(n, dtype="int64").at[order].set(depth[:n])

            def assign(symbol, code, before, table):
                code = rs.where(before == 0, 0, (code + 1) << (lengths[symbol] - before))
                return dict(code=code, before=lengths[symbol], table=table.at[symbol].set(code))

            over = dict(symbol=rs.argsort(lengths * n + rs.arange(n)))
            init = dict(code=0, before=0, table=rs.zeros(n, dtype="int64"))
            return lengths, rs.loop(assign, over=over, init=init).last.table, rs.sum(counts * lengths)

        return rs.compile(rs.vmap(codes))

    def jax(self, histograms, symbols):
        import jax, jax.numpy as jnp

        n = symbols

        def codes(counts):
            order = jnp.argsort(counts)
            start = jnp.concatenate([counts[order], jnp.zeros(n - 1, dtype="int64")])

            def merge(state, end):
                weight, parent, leaf, inner = state

                def pick(leaf, inner):
                    of_leaves = (leaf < n) & (
                        (inner >= end) | (weight[jnp.minimum(leaf, n - 1)] <= weight[jnp.minimum(inner, 2 * n - 2)])
                    )
                    return jnp.where(of_leaves, leaf, inner), leaf + of_leaves, inner + ~of_leaves

                a, leaf, inner = pick(leaf, inner)
                b, leaf, inner = pick(leaf, inner)
                parent = parent.at[a].set(end).at[b].set(end)
                return (weight.at[end].set(weight[a] + weight[b]), parent, leaf, inner), None

            init = start, jnp.zeros(2 * n - 1, dtype="int64"), 0, n
            parent = jax.lax.scan(merge, init, jnp.arange(n, 2 * n - 1))[0][1]
            none = jnp.zeros(2 * n - 1, dtype="int64")
            depth = jax.lax.fori_loop(0, 2 * n - 2, lambda k, d: d.at[2 * n - 3 - k].set(d[parent[2 * n - 3 - k]] + 1), none)
            lengths = jnp.zeros(n, dtype="int64").at[order].set(depth[:n])

            def assign(state, symbol):
                code, before, table = state
                code = jnp.where(before == 0, 0, (code + 1) << (lengths[symbol] - before))
                return (code, lengths[symbol], table.at[symbol].set(code)), None

            init = jnp.int64(0), jnp.int64(0), jnp.zeros(n, dtype="int64")
            (_, _, table), _ = jax.lax.scan(assign, init, jnp.argsort(lengths * n + jnp.arange(n)))
            return lengths, table, jnp.sum(counts * lengths)

        return jax.jit(jax.vmap(codes))
