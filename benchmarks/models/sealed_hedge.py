"""Everyday programs of a field station: posteriors, censuses, jump processes, grids, and a few networks."""

import math

import numpy as np
import rscan as rs
from models import Model


class SeedlingCensus(Model):
    """Plots with a seed bank: negative binomial emergence, beta-binomial survival, a hierarchy, missing years."""

    kind = "hierarchies"
    dtype = "float64"
    size = dict(plots=30, years=40)
    small = dict(plots=3, years=6)

    def make(self, random, plots, years):
        p = dict(
            mu=1.0, log_tau=-0.7, z=random.normal(size=plots), log_phi=1.0, rho=0.4, gamma=0.1, delta=0.2,
            alpha=-0.3, beta=-0.05, log_kappa=2.0,
        )
        p = {k: np.asarray(v, dtype="f8") for k, v in p.items()}
        counts = random.negative_binomial(3, 0.3, size=(plots, years))
        survived = random.binomial(counts, 0.4)
        seen = random.random((plots, years)) < 0.85
        return p, counts, survived, seen, random.normal(size=years)

    def rscan(self, plots, years):
        @rs.compile
        def posterior(p, counts, survived, seen, rain):
            tau, phi, kappa = rs.exp(p["log_tau"]), rs.exp(p["log_phi"]), rs.exp(p["log_kappa"])
            rho = rs.sigmoid(p["rho"])

            def plot(z, counts, survived, seen):
                def year(k, s, seen, rain, bank):
                    mean = rs.exp(p["mu"] + tau * z + p["gamma"] * bank + p["delta"] * rain)
                    share = rs.sigmoid(p["alpha"] + p["beta"] * bank)
                    a, b = share * kappa, (1 - share) * kappa
                    emerged = rs.stats.nbinom.logpmf(k, phi, phi / (phi + mean))
                    lived = rs.special.betaln(s + a, k - s + b) - rs.special.betaln(a, b) + rs.log(rs.special.binom(k, s))
                    new = rho * bank + rs.log1p(rs.where(seen, rs.cast(k, "float64"), mean))
                    return dict(bank=new, lp=rs.where(seen, emerged + lived, 0.0))

                out = rs.loop(year, over=dict(k=counts, s=survived, seen=seen, rain=rain), init=dict(bank=1.0))
                return rs.sum(out.lp)

            lp = rs.sum(rs.vmap(plot)(p["z"], counts, survived, seen)) + rs.sum(rs.stats.norm.logpdf(p["z"]))
            lp = lp + rs.stats.halfcauchy.logpdf(tau) + p["log_tau"] + rs.stats.gamma.logpdf(phi, 2.0, scale=5.0) + p["log_phi"]
            lp = lp + rs.stats.t.logpdf(p["alpha"], 4.0, 0.0, 2.5) + rs.stats.skewnorm.logpdf(p["gamma"], 2.0, 0.0, 0.5)
            return lp + rs.stats.lognorm.logpdf(kappa, 1.0) + p["log_kappa"]

        return rs.value_and_grad(posterior)

    def jax(self, plots, years):
        import jax, jax.numpy as jnp
        from jax.scipy import stats
        from jax.scipy.special import gammaln

        def betaln(a, b):  # JAX's own has 6 digits where an argument is above 8
            return gammaln(a) + gammaln(b) - gammaln(a + b)

        def posterior(p, counts, survived, seen, rain):
            tau, phi, kappa = jnp.exp(p["log_tau"]), jnp.exp(p["log_phi"]), jnp.exp(p["log_kappa"])
            rho = jax.nn.sigmoid(p["rho"])

            def plot(z, counts, survived, seen):
                def year(bank, xs):
                    k, s, seen, rain = xs
                    mean = jnp.exp(p["mu"] + tau * z + p["gamma"] * bank + p["delta"] * rain)
                    new = rho * bank + jnp.log1p(jnp.where(seen, k.astype("float64"), mean))
                    return new, (bank, mean)

                _, (bank, mean) = jax.lax.scan(year, jnp.float64(1.0), (counts, survived, seen, rain))
                share = jax.nn.sigmoid(p["alpha"] + p["beta"] * bank)
                a, b = share * kappa, (1 - share) * kappa
                k, s = counts, survived
                emerged = stats.nbinom.logpmf(k, phi, phi / (phi + mean))
                choose = gammaln(k + 1.0) - gammaln(s + 1.0) - gammaln(k - s + 1.0)
                lived = betaln(s + a, k - s + b) - betaln(a, b) + choose
                return jnp.sum(jnp.where(seen, emerged + lived, 0.0))

            lp = jnp.sum(jax.vmap(plot)(p["z"], counts, survived, seen)) + jnp.sum(stats.norm.logpdf(p["z"]))
            lp += jnp.log(2 / jnp.pi) - jnp.log1p(tau**2) + p["log_tau"] + stats.gamma.logpdf(phi, 2.0, scale=5.0) + p["log_phi"]
            g = p["gamma"] / 0.5
            lp += stats.t.logpdf(p["alpha"], 4.0, 0.0, 2.5) + math.log(2) + stats.norm.logpdf(g) + stats.norm.logcdf(2.0 * g) - math.log(0.5)
            return lp - 0.5 * p["log_kappa"] ** 2 - 0.5 * math.log(2 * math.pi)

        return jax.jit(jax.value_and_grad(posterior))


class RingedTernsHessian(Model):
    """Cormack-Jolly-Seber: never seen again by a recursion from the end, of each bird; the Hessian for standard errors."""

    kind = "hierarchies"
    dtype = "float64"
    size = dict(birds=150, years=20)
    small = dict(birds=6, years=5)

    def make(self, random, birds, years):
        first = random.integers(0, years - 1, birds)
        seen = random.random((birds, years)) < 0.4
        seen &= np.arange(years) >= first[:, None]
        seen[np.arange(birds), first] = True
        last = years - 1 - np.argmax(seen[:, ::-1], axis=1)
        return np.array([0.8, 0.3, -0.2, 0.4, 0.1]), seen, first, last, random.normal(size=birds), random.normal(size=years), random.random(years)

    def rscan(self, birds, years):
        def loss(theta, seen, first, last, mass, winter, effort):
            def bird(seen, first, last, mass):
                phi = rs.sigmoid(theta[0] + theta[1] * winter + theta[4] * mass)
                p = rs.sigmoid(theta[2] + theta[3] * effort)
                step = lambda phi, p, chi: 1 - phi + phi * (1 - p) * chi
                chi = rs.loop(step, over=dict(phi=phi[:-1], p=p[1:]), init=dict(chi=1.0), reverse=True).chi
                chi = rs.concatenate([chi, rs.ones(1)])
                t = rs.arange(1, years)
                alive = (t > first) & (t <= last)
                terms = rs.log(phi[:-1]) + rs.where(seen[1:], rs.log(p[1:]), rs.log1p(-p[1:]))
                return rs.sum(rs.where(alive, terms, 0.0)) + rs.log(chi[last])

            return -rs.sum(rs.vmap(bird)(seen, first, last, mass)) + 0.05 * rs.sum(theta**2)

        return rs.compile(lambda *a: (loss(*a), rs.grad(loss)(*a), rs.hessian(loss)(*a)))

    def jax(self, birds, years):
        import jax, jax.numpy as jnp

        def loss(theta, seen, first, last, mass, winter, effort):
            def bird(seen, first, last, mass):
                phi = jax.nn.sigmoid(theta[0] + theta[1] * winter + theta[4] * mass)
                p = jax.nn.sigmoid(theta[2] + theta[3] * effort)

                def step(chi, x):
                    chi = 1 - x[0] + x[0] * (1 - x[1]) * chi
                    return chi, chi

                _, chi = jax.lax.scan(step, jnp.float64(1.0), (phi[:-1], p[1:]), reverse=True)
                chi = jnp.append(chi, 1.0)
                t = jnp.arange(1, years)
                alive = (t > first) & (t <= last)
                terms = jnp.log(phi[:-1]) + jnp.where(seen[1:], jnp.log(p[1:]), jnp.log1p(-p[1:]))
                return jnp.sum(jnp.where(alive, terms, 0.0)) + jnp.log(chi[last])

            return -jnp.sum(jax.vmap(bird)(seen, first, last, mass)) + 0.05 * jnp.sum(theta**2)

        return jax.jit(lambda *a: (*jax.value_and_grad(loss)(*a), jax.hessian(loss)(*a)))


class WienerPassageTrials(Model):
    """Drift diffusion: densities of response times by the series of small times, with lapses, conditions by index."""

    kind = "psychometrics"
    dtype = "float64"
    size = dict(trials=500, terms=7, conditions=4)
    small = dict(trials=12, terms=3, conditions=2)

    def make(self, random, trials, terms, conditions):
        p = dict(v=random.normal(size=conditions), log_a=0.2 * np.ones(conditions), w=np.array(0.1), t0=np.array(-0.5), lapse=np.array(-3.0))
        return p, 0.35 + random.gamma(2.0, 0.2, trials), random.random(trials) < 0.6, random.integers(0, conditions, trials)

    def rscan(self, trials, terms, conditions):
        @rs.compile
        def nll(p, rt, upper, condition):
            t0 = rs.min(rt) * rs.sigmoid(p["t0"])
            lapse = rs.sigmoid(p["lapse"])
            longest = rs.max(rt)

            def trial(rt, upper, condition):
                v, a, w = p["v"][condition], rs.exp(p["log_a"][condition]), rs.sigmoid(p["w"])
                v, w = rs.where(upper, -v, v), rs.where(upper, 1 - w, w)
                t = rt - t0
                u = t / a**2

                def term(k, total):
                    at = w + 2 * k
                    return total + at * rs.exp(-(at**2) / (2 * u))

                series = rs.loop(term, over=rs.arange(-terms, terms + 1), init=0.0).last
                density = series / rs.sqrt(2 * math.pi * u**3) * rs.exp(-v * a * w - v**2 * t / 2) / a**2
                return rs.log((1 - lapse) * rs.maximum(density, 1e-12) + lapse * 0.5 / longest)

            return -rs.sum(rs.vmap(trial)(rt, upper, condition)) + 0.5 * rs.sum(p["v"] ** 2)

        return rs.value_and_grad(nll)

    def jax(self, trials, terms, conditions):
        import jax, jax.numpy as jnp

        def nll(p, rt, upper, condition):
            t0 = jnp.min(rt) * jax.nn.sigmoid(p["t0"])
            lapse = jax.nn.sigmoid(p["lapse"])
            longest = jnp.max(rt)
            v, a, w = p["v"][condition], jnp.exp(p["log_a"][condition]), jax.nn.sigmoid(p["w"])
            v, w = jnp.where(upper, -v, v), jnp.where(upper, 1 - w, w)
            t = rt - t0
            u = t / a**2
            at = w[:, None] + 2 * jnp.arange(-terms, terms + 1)
            series = jnp.sum(at * jnp.exp(-(at**2) / (2 * u[:, None])), axis=1)
            density = series / jnp.sqrt(2 * math.pi * u**3) * jnp.exp(-v * a * w - v**2 * t / 2) / a**2
            ll = jnp.log((1 - lapse) * jnp.maximum(density, 1e-12) + lapse * 0.5 / longest)
            return -jnp.sum(ll) + 0.5 * jnp.sum(p["v"] ** 2)

        return jax.jit(jax.value_and_grad(nll))


class AssociabilityReversals(Model):
    """Pearce and Hall: learning rates that follow surprise, choice traces, omitted trials; a gradient for each subject."""

    kind = "psychometrics"
    dtype = "float64"
    size = dict(subjects=24, trials=160, options=4)
    small = dict(subjects=3, trials=7, options=3)

    def make(self, random, subjects, trials, options):
        theta = 0.4 * random.normal(size=(subjects, 5))
        choice = random.integers(0, options, (subjects, trials))
        reward = (random.random((subjects, trials)) < 0.5).astype("f8")
        return theta, choice, reward, random.random((subjects, trials)) < 0.93

    def rscan(self, subjects, trials, options):
        def nll(theta, choice, reward, valid):
            kappa, eta, decay = rs.sigmoid(theta[0]), rs.sigmoid(theta[1]), rs.sigmoid(theta[2])
            beta, sticky = rs.exp(theta[3]), theta[4]

            def trial(c, r, valid, q, surprise, trace):
                lp = rs.log_softmax(beta * q + sticky * trace)[c]
                delta = r - q[c]
                q_new = q.at[c].add(kappa * surprise[c] * delta)
                surprise_new = surprise.at[c].set(eta * rs.abs(delta) + (1 - eta) * surprise[c])
                trace_new = (decay * trace).at[c].add(1 - decay)
                return dict(
                    q=rs.where(valid, q_new, q),
                    surprise=rs.where(valid, surprise_new, surprise),
                    trace=rs.where(valid, trace_new, decay * trace),
                    lp=rs.where(valid, lp, 0.0),
                )

            start = dict(q=0.5 * rs.ones(options), surprise=rs.ones(options), trace=rs.zeros(options))
            out = rs.loop(trial, over=dict(c=choice, r=reward, valid=valid), init=start)
            return -rs.sum(out.lp) + 0.5 * rs.sum(theta**2)

        return rs.compile(rs.vmap(rs.value_and_grad(nll)))

    def jax(self, subjects, trials, options):
        import jax, jax.numpy as jnp

        def nll(theta, choice, reward, valid):
            kappa, eta, decay = jax.nn.sigmoid(theta[0]), jax.nn.sigmoid(theta[1]), jax.nn.sigmoid(theta[2])
            beta, sticky = jnp.exp(theta[3]), theta[4]

            def trial(state, x):
                (q, surprise, trace), (c, r, valid) = state, x
                lp = jax.nn.log_softmax(beta * q + sticky * trace)[c]
                delta = r - q[c]
                new = (
                    q.at[c].add(kappa * surprise[c] * delta),
                    surprise.at[c].set(eta * jnp.abs(delta) + (1 - eta) * surprise[c]),
                    (decay * trace).at[c].add(1 - decay),
                )
                kept = (q, surprise, decay * trace)
                return jax.tree.map(lambda a, b: jnp.where(valid, a, b), new, kept), jnp.where(valid, lp, 0.0)

            start = (jnp.full(options, 0.5), jnp.ones(options), jnp.zeros(options))
            return -jnp.sum(jax.lax.scan(trial, start, (choice, reward, valid))[1]) + 0.5 * jnp.sum(theta**2)

        return jax.jit(jax.vmap(jax.value_and_grad(nll)))


class OperonGillespie(Model):
    """Gillespie's exact simulation of a gene that switches: integer states, events until a time, draws given."""

    kind = "jump processes"
    dtype = "int64"
    size = dict(cells=32, events=1200)
    small = dict(cells=4, events=20)

    def make(self, random, cells, events):
        rates = np.array([0.3, 0.25, 4.0, 0.6, 1.5, 0.12, 0.02])
        return rates, 0.06 * events, 1 - random.random((cells, events)), random.random((cells, events))

    def rscan(self, cells, events):
        changes = np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1], [-1, 0, -1]])

        @rs.compile
        def simulate(rates, end, waits, picks):
            table = rs.constant(changes)

            def cell(waits, picks):
                def event(wait, pick, t, x, exposure, fired):
                    on, m, p = x[0], x[1], x[2]
                    a = rates * rs.stack([1 - on, on, on, m, m, p, on * p])
                    total = rs.sum(a)
                    dt = -rs.log(wait) / total
                    done = t + dt > end
                    which = rs.sum(rs.cumsum(a) < pick * total)
                    which = rs.minimum(which, 6)
                    exposure = exposure + rs.where(done, end - t, dt) * x
                    new = dict(
                        t=rs.where(done, end, t + dt),
                        x=rs.where(done, x, x + table[which]),
                        exposure=exposure,
                        fired=rs.where(done, fired, fired.at[which].add(1)),
                    )
                    return new, rs.until(done)

                init = dict(t=0.0, x=np.array([0, 2, 5]), exposure=rs.zeros(3), fired=rs.zeros(7, dtype="int64"))
                last = rs.loop(event, over=dict(wait=waits, pick=picks), init=init).last
                return last.x, last.exposure / end, last.fired

            return rs.vmap(cell)(waits, picks)

        return simulate

    def jax(self, cells, events):
        import jax, jax.numpy as jnp

        changes = jnp.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1], [-1, 0, -1]])

        def simulate(rates, end, waits, picks):
            def cell(waits, picks):
                def event(s):
                    i, t, x, exposure, fired, done = s
                    on, m, p = x
                    a = rates * jnp.stack([1 - on, on, on, m, m, p, on * p])
                    total = jnp.sum(a)
                    dt = -jnp.log(waits[i]) / total
                    done = t + dt > end
                    which = jnp.minimum(jnp.sum(jnp.cumsum(a) < picks[i] * total), 6)
                    exposure = exposure + jnp.where(done, end - t, dt) * x
                    x = jnp.where(done, x, x + changes[which])
                    fired = fired.at[which].add(jnp.where(done, 0, 1))
                    return i + 1, jnp.where(done, end, t + dt), x, exposure, fired, done

                init = (0, jnp.float64(0.0), jnp.array([0, 2, 5]), jnp.zeros(3), jnp.zeros(7, "int64"), False)
                s = jax.lax.while_loop(lambda s: (s[0] < events) & ~s[5], event, init)
                return s[2], s[3] / end, s[4]

            return jax.vmap(cell)(waits, picks)

        return jax.jit(simulate)


class CoalescentSpectrum(Model):
    """Kingman's coalescent with growth: lineages in a table merge by given draws; the site frequency spectrum of each tree."""

    kind = "jump processes"
    dtype = "float64"
    size = dict(trees=200, sample=25)
    small = dict(trees=3, sample=5)

    def make(self, random, trees, sample):
        return 1.5, random.exponential(size=(trees, sample - 1)), random.random((trees, sample - 1)), random.random((trees, sample - 1))

    def rscan(self, trees, sample):
        @rs.compile
        def spectra(growth, e, u, v):
            def tree(e, u, v):
                def merge(k, e, u, v, sizes, time, spectrum):
                    pairs = k * (k - 1) / 2
                    later = rs.log(rs.exp(growth * time) + growth * e / pairs) / growth
                    spectrum = spectrum.at[sizes].add(rs.where(rs.arange(sample) < k, later - time, 0.0))
                    i = rs.cast(rs.floor(u * k), "int64")
                    j = rs.cast(rs.floor(v * (k - 1)), "int64")
                    j = rs.where(j >= i, j + 1, j)
                    sizes = sizes.at[i].add(sizes[j])
                    sizes = sizes.at[j].set(sizes[k - 1])
                    sizes = sizes.at[k - 1].set(0)
                    return dict(sizes=sizes, time=later, spectrum=spectrum)

                init = dict(sizes=rs.ones(sample, dtype="int64"), time=0.0, spectrum=rs.zeros(sample))
                out = rs.loop(merge, over=dict(k=rs.arange(sample, 1, -1), e=e, u=u, v=v), init=init)
                return out.last.spectrum[1:], out.time, out.last.sizes

            spectrum, times, sizes = rs.vmap(tree)(e, u, v)
            return rs.mean(spectrum, axis=0), spectrum, times, rs.max(sizes, axis=1)

        return spectra

    def jax(self, trees, sample):
        import jax, jax.numpy as jnp

        def spectra(growth, e, u, v):
            def tree(e, u, v):
                def merge(s, xs):
                    (sizes, time, spectrum), (k, e, u, v) = s, xs
                    later = jnp.log(jnp.exp(growth * time) + growth * e / (k * (k - 1) / 2)) / growth
                    spectrum = spectrum.at[sizes].add(jnp.where(jnp.arange(sample) < k, later - time, 0.0))
                    i, j = jnp.floor(u * k).astype("int64"), jnp.floor(v * (k - 1)).astype("int64")
                    j = jnp.where(j >= i, j + 1, j)
                    sizes = sizes.at[i].add(sizes[j])
                    sizes = sizes.at[j].set(sizes[k - 1])
                    sizes = sizes.at[k - 1].set(0)
                    return (sizes, later, spectrum), later

                init = (jnp.ones(sample, "int64"), jnp.float64(0.0), jnp.zeros(sample))
                (sizes, _, spectrum), times = jax.lax.scan(merge, init, (jnp.arange(sample, 1, -1), e, u, v))
                return spectrum[1:], times, sizes

            spectrum, times, sizes = jax.vmap(tree)(e, u, v)
            return jnp.mean(spectrum, axis=0), spectrum, times, jnp.max(sizes, axis=1)

        return jax.jit(spectra)


class SegregatedTowns(Model):
    """Schelling's towns: agents in a shuffled order move to vacant places where too few neighbours are alike."""

    kind = "agents"
    dtype = "int64"
    size = dict(side=20, sweeps=6)
    small = dict(side=5, sweeps=2)

    def make(self, random, side, sweeps):
        places = side * side
        agents = int(0.8 * places)
        order = random.permutation(places)
        homes, vacant = order[:agents], order[agents:]
        town = np.zeros(places, dtype="i8")
        town[homes] = 1 + random.integers(0, 2, agents)
        r, c = np.divmod(np.arange(places), side)
        around = [((r + i) % side) * side + (c + j) % side for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
        turns = np.stack([random.permutation(agents) for _ in range(sweeps)])
        return town, homes, vacant, np.stack(around, axis=1), turns, random.integers(0, len(vacant), (sweeps, agents))

    def rscan(self, side, sweeps):
        @rs.compile
        def simulate(town, homes, vacant, around, turns, offers):
            def sweep(turns, offers, town, homes, vacant):
                def turn(agent, offer, town, homes, vacant, moves):
                    home, other = homes[agent], vacant[offer]
                    kind = town[home]
                    near = town[around[home]]
                    alike, people = rs.sum(near == kind), rs.sum(near > 0)
                    moving = 2 * alike < people
                    there = rs.where(moving, other, home)
                    town = town.at[home].set(0).at[there].set(kind)
                    homes = homes.at[agent].set(there)
                    vacant = vacant.at[offer].set(rs.where(moving, home, other))
                    return dict(town=town, homes=homes, vacant=vacant, moves=moves + rs.cast(moving, "int64"))

                out = rs.loop(turn, over=dict(agent=turns, offer=offers), init=dict(town=town, homes=homes, vacant=vacant, moves=0)).last
                near = out.town[around]
                alike = rs.sum((near == out.town[:, None]) & (near > 0))
                return dict(town=out.town, homes=out.homes, vacant=out.vacant, moves=out.moves, alike=alike)

            out = rs.loop(sweep, over=dict(turns=turns, offers=offers), init=dict(town=town, homes=homes, vacant=vacant))
            return out.moves, out.alike, out.last.town

        return simulate

    def jax(self, side, sweeps):
        import jax, jax.numpy as jnp

        def simulate(town, homes, vacant, around, turns, offers):
            def turn(s, x):
                (town, homes, vacant, moves), (agent, offer) = s, x
                home, other = homes[agent], vacant[offer]
                kind = town[home]
                near = town[around[home]]
                moving = 2 * jnp.sum(near == kind) < jnp.sum(near > 0)
                there = jnp.where(moving, other, home)
                town = town.at[home].set(0).at[there].set(kind)
                vacant = vacant.at[offer].set(jnp.where(moving, home, other))
                return (town, homes.at[agent].set(there), vacant, moves + moving), None

            def sweep(s, x):
                (town, homes, vacant, moves), _ = jax.lax.scan(turn, (*s, 0), x)
                near = town[around]
                return (town, homes, vacant), (moves, jnp.sum((near == town[:, None]) & (near > 0)))

            (town, _, _), (moves, alike) = jax.lax.scan(sweep, (town, homes, vacant), (turns, offers))
            return moves, alike, town

        return jax.jit(simulate)


class PooledViolators(Model):
    """Isotonic regression: a stack of blocks, the last two of which are pooled while they are in the wrong order."""

    kind = "dynamic programs"
    dtype = "float64"
    size = dict(n=600)
    small = dict(n=9)

    def make(self, random, n):
        return np.log1p(np.arange(n) / n * 5) + random.normal(scale=0.6, size=n), random.gamma(3.0, 1.0, n)

    def rscan(self, n):
        @rs.compile
        def fit(y, weight):
            def add(y, weight, means, weights, counts, top):
                means, weights, counts = means.at[top].set(y), weights.at[top].set(weight), counts.at[top].set(1)

                def violated(s):
                    means, weights, counts, top = s
                    return (top >= 1) & (means[rs.maximum(top - 1, 0)] > means[top])

                def pool(s):
                    means, weights, counts, top = s
                    total = weights[top - 1] + weights[top]
                    mean = (weights[top - 1] * means[top - 1] + weights[top] * means[top]) / total
                    means = means.at[top - 1].set(mean)
                    weights = weights.at[top - 1].set(total)
                    counts = counts.at[top - 1].add(counts[top]).at[top].set(0)
                    return means, weights, counts, top - 1

                means, weights, counts, top = rs.while_loop(violated, pool, (means, weights, counts, top))
                return dict(means=means, weights=weights, counts=counts, top=top + 1)

            init = dict(means=rs.zeros(n), weights=rs.zeros(n), counts=rs.zeros(n, dtype="int64"), top=0)
            out = rs.loop(add, over=dict(y=y, weight=weight), init=init).last
            block = rs.searchsorted(rs.cumsum(out.counts), rs.arange(n), side="right")
            fitted = out.means[block]
            return fitted, out.counts, out.top, rs.sum(weight * (y - fitted) ** 2)

        return fit

    def jax(self, n):
        import jax, jax.numpy as jnp

        def fit(y, weight):
            def add(s, x):
                means, weights, counts, top = s
                means, weights, counts = means.at[top].set(x[0]), weights.at[top].set(x[1]), counts.at[top].set(1)

                def violated(s):
                    means, _, _, top = s
                    return (top >= 1) & (means[jnp.maximum(top - 1, 0)] > means[top])

                def pool(s):
                    means, weights, counts, top = s
                    total = weights[top - 1] + weights[top]
                    mean = (weights[top - 1] * means[top - 1] + weights[top] * means[top]) / total
                    counts = counts.at[top - 1].add(counts[top]).at[top].set(0)
                    return means.at[top - 1].set(mean), weights.at[top - 1].set(total), counts, top - 1

                means, weights, counts, top = jax.lax.while_loop(violated, pool, (means, weights, counts, top))
                return (means, weights, counts, top + 1), None

            init = (jnp.zeros(n), jnp.zeros(n), jnp.zeros(n, "int64"), 0)
            (means, _, counts, top), _ = jax.lax.scan(add, init, (y, weight))
            fitted = means[jnp.searchsorted(jnp.cumsum(counts), jnp.arange(n), side="right")]
            return fitted, counts, top, jnp.sum(weight * (y - fitted) ** 2)

        return jax.jit(fit)


class LiftedShrinkage(Model):
    """Deblurring by thresholds of a wavelet by lifting; the steps of the lifting and the thresholds are learnt."""

    kind = "signals"
    dtype = "float32"
    size = dict(n=512, levels=4, rounds=12)
    small = dict(n=16, levels=2, rounds=2)

    def make(self, random, n, levels, rounds):
        f = np.float32
        clean = np.repeat(random.normal(size=n // 8), 8).astype(f)
        blurred = 0.25 * np.roll(clean, 1) + 0.5 * clean + 0.25 * np.roll(clean, -1)
        p = dict(predict=f(0.5) * np.ones(levels, f), update=f(0.25) * np.ones(levels, f), log_threshold=np.linspace(-3, -2, levels).astype(f))
        return p, (blurred + 0.1 * random.normal(size=n)).astype(f), clean

    def rscan(self, n, levels, rounds):
        def shrunk(p, x):
            details = []
            for k in range(levels):
                even, odd = x[0::2], x[1::2]
                d = odd - p["predict"][k] * (even + rs.roll(even, -1))
                x = even + p["update"][k] * (d + rs.roll(d, 1))
                details.append(rs.sign(d) * rs.maximum(rs.abs(d) - rs.exp(p["log_threshold"][k]), 0.0))
            for k in reversed(range(levels)):
                d = details[k]
                even = x - p["update"][k] * (d + rs.roll(d, 1))
                odd = d + p["predict"][k] * (even + rs.roll(even, -1))
                x = rs.reshape(rs.stack([even, odd], axis=1), -1)
            return x

        @rs.compile
        def loss(p, y, clean):
            blur = lambda x: 0.25 * rs.roll(x, 1) + 0.5 * x + 0.25 * rs.roll(x, -1)
            x = rs.loop(lambda x: shrunk(p, x + blur(y - blur(x))), init=rs.zeros_like(y), n_steps=rounds).last
            return rs.mean((x - clean) ** 2)

        return rs.value_and_grad(loss)

    def jax(self, n, levels, rounds):
        import jax, jax.numpy as jnp

        def shrunk(p, x):
            details = []
            for k in range(levels):
                even, odd = x[0::2], x[1::2]
                d = odd - p["predict"][k] * (even + jnp.roll(even, -1))
                x = even + p["update"][k] * (d + jnp.roll(d, 1))
                details.append(jnp.sign(d) * jnp.maximum(jnp.abs(d) - jnp.exp(p["log_threshold"][k]), 0.0))
            for k in reversed(range(levels)):
                d = details[k]
                even = x - p["update"][k] * (d + jnp.roll(d, 1))
                odd = d + p["predict"][k] * (even + jnp.roll(even, -1))
                x = jnp.stack([even, odd], axis=1).reshape(-1)
            return x

        def loss(p, y, clean):
            blur = lambda x: 0.25 * jnp.roll(x, 1) + 0.5 * x + 0.25 * jnp.roll(x, -1)
            x, _ = jax.lax.scan(lambda x, _: (shrunk(p, x + blur(y - blur(x))), None), jnp.zeros_like(y), None, length=rounds)
            return jnp.mean((x - clean) ** 2)

        return jax.jit(jax.value_and_grad(loss))


class LidDrivenVortices(Model):
    """A cavity with a lid: vorticity is carried and diffused, the stream function relaxed by some sweeps in each step."""

    kind = "fields"
    dtype = "float32"
    size = dict(n=40, steps=50, sweeps=10)
    small = dict(n=7, steps=3, sweeps=2)

    def make(self, random, n, steps, sweeps):
        psi = np.zeros((n, n), np.float32)
        omega = (0.1 * random.normal(size=(n, n))).astype("f4")
        return omega, psi, np.linspace(0.2, 1.0, steps).astype("f4")

    def rscan(self, n, steps, sweeps):
        h, dt, nu = 1.0 / (n - 1), 0.1 / (n - 1), 0.01

        @rs.compile
        def run(omega, psi, lid):
            def relax(i, psi, omega):
                inner = 0.25 * (psi[2:, 1:-1] + psi[:-2, 1:-1] + psi[1:-1, 2:] + psi[1:-1, :-2] + h * h * omega[1:-1, 1:-1])
                return psi.at[1:-1, 1:-1].set(inner)

            def step(lid, omega, psi):
                psi = rs.fori(0, sweeps, lambda i, psi: relax(i, psi, omega), psi)
                w = omega.at[:, 0].set(-2 * psi[:, 1] / h**2).at[:, -1].set(-2 * psi[:, -2] / h**2)
                w = w.at[0, :].set(-2 * psi[1, :] / h**2).at[-1, :].set(-2 * psi[-2, :] / h**2 - 2 * lid / h)
                u = (psi[2:, 1:-1] - psi[:-2, 1:-1]) / (2 * h)
                v = -(psi[1:-1, 2:] - psi[1:-1, :-2]) / (2 * h)
                middle = w[1:-1, 1:-1]
                left, right = (middle - w[1:-1, :-2]) / h, (w[1:-1, 2:] - middle) / h
                below, above = (middle - w[:-2, 1:-1]) / h, (w[2:, 1:-1] - middle) / h
                carried = rs.where(u > 0, u * left, u * right) + rs.where(v > 0, v * below, v * above)
                spread = (right - left + above - below) / h
                w = w.at[1:-1, 1:-1].set(middle + dt * (nu * spread - carried))
                return dict(omega=w, psi=psi, energy=0.5 * rs.mean(u**2 + v**2))

            out = rs.loop(step, over=dict(lid=lid), init=dict(omega=omega, psi=psi))
            return out.last.omega, out.last.psi, out.energy

        return run

    def jax(self, n, steps, sweeps):
        import jax, jax.numpy as jnp

        h, dt, nu = 1.0 / (n - 1), 0.1 / (n - 1), 0.01

        def step(s, lid):
            omega, psi = s

            def relax(i, psi):
                inner = 0.25 * (psi[2:, 1:-1] + psi[:-2, 1:-1] + psi[1:-1, 2:] + psi[1:-1, :-2] + h * h * omega[1:-1, 1:-1])
                return psi.at[1:-1, 1:-1].set(inner)

            psi = jax.lax.fori_loop(0, sweeps, relax, psi)
            w = omega.at[:, 0].set(-2 * psi[:, 1] / h**2).at[:, -1].set(-2 * psi[:, -2] / h**2)
            w = w.at[0, :].set(-2 * psi[1, :] / h**2).at[-1, :].set(-2 * psi[-2, :] / h**2 - 2 * lid / h)
            u = (psi[2:, 1:-1] - psi[:-2, 1:-1]) / (2 * h)
            v = -(psi[1:-1, 2:] - psi[1:-1, :-2]) / (2 * h)
            middle = w[1:-1, 1:-1]
            left, right = (middle - w[1:-1, :-2]) / h, (w[1:-1, 2:] - middle) / h
            below, above = (middle - w[:-2, 1:-1]) / h, (w[2:, 1:-1] - middle) / h
            carried = jnp.where(u > 0, u * left, u * right) + jnp.where(v > 0, v * below, v * above)
            spread = (right - left + above - below) / h
            w = w.at[1:-1, 1:-1].set(middle + dt * (nu * spread - carried))
            return (w, psi), 0.5 * jnp.mean(u**2 + v**2)

        def run(omega, psi, lid):
            (omega, psi), energy = jax.lax.scan(step, (omega, psi), lid)
            return omega, psi, energy

        return jax.jit(run)


class TunnellingPacket(Model):
    """A wave packet meets a barrier that shakes: Crank and Nicolson, a complex tridiagonal system in each step."""

    kind = "fields"
    dtype = "float64"
    size = dict(n=160, steps=40)
    small = dict(n=12, steps=3)

    def make(self, random, n, steps):
        x = np.linspace(-10, 10, n)
        psi = np.exp(-((x + 4) ** 2) / 2 + 2j * x)
        psi /= np.linalg.norm(psi)
        return psi.real.copy(), psi.imag.copy(), 2.0 * np.exp(-(x**2)), 1 + 0.3 * random.normal(size=steps)

    def rscan(self, n, steps):
        dx, dt = 20 / (n - 1), 0.05
        off = -dt / (4 * dx * dx)  # of i

        @rs.compile
        def run(re, im, barrier, shake):
            def divide(ar, ai, br, bi):
                size = br * br + bi * bi
                return (ar * br + ai * bi) / size, (ai * br - ar * bi) / size

            def step(shake, re, im):
                h = dt / 2 * (1 / dx**2 + shake * barrier)

                def neighbours(v):
                    return rs.concatenate([v[1:], rs.zeros(1)]) + rs.concatenate([rs.zeros(1), v[:-1]])

                # (1 - i H dt / 2) psi
                rhs_re = re + h * im + off * neighbours(im)
                rhs_im = im - h * re - off * neighbours(re)

                def eliminate(h, dr, di, cr, ci, yr, yi):
                    # denominator = 1 + i h - i off * c
                    br, bi = 1 + off * ci, h - off * cr
                    new_cr, new_ci = divide(0.0, off, br, bi)
                    # d - i off * y
                    new_yr, new_yi = divide(dr + off * yi, di - off * yr, br, bi)
                    return dict(cr=new_cr, ci=new_ci, yr=new_yr, yi=new_yi)

                down = rs.loop(eliminate, over=dict(h=h, dr=rhs_re, di=rhs_im), init=dict(cr=0.0, ci=0.0, yr=0.0, yi=0.0))

                def back(cr, ci, yr, yi, re, im):
                    return dict(re=yr - cr * re + ci * im, im=yi - cr * im - ci * re)

                up = rs.loop(back, over=dict(cr=down.cr, ci=down.ci, yr=down.yr, yi=down.yi), init=dict(re=0.0, im=0.0), reverse=True)
                density = up.re[:] ** 2 + up.im[:] ** 2
                return dict(re=up.re[:], im=up.im[:], through=rs.sum(density[n // 2 :]), norm=rs.sum(density))

            out = rs.loop(step, over=dict(shake=shake), init=dict(re=re, im=im))
            return out.last.re, out.last.im, out.through, out.norm

        return run

    def jax(self, n, steps):
        import jax, jax.numpy as jnp

        dx, dt = 20 / (n - 1), 0.05
        off = -1j * dt / (4 * dx * dx)

        def run(re, im, barrier, shake):
            def step(psi, shake):
                h = 0.5j * dt * (1 / dx**2 + shake * barrier)
                rhs = (1 - h) * psi - off * (jnp.append(psi[1:], 0) + jnp.concatenate([jnp.zeros(1, psi.dtype), psi[:-1]]))

                def eliminate(s, x):
                    c, y = s
                    b = 1 + x[0] - off * c
                    s = (off / b, (x[1] - off * y) / b)
                    return s, s

                zero = jnp.zeros((), psi.dtype)
                _, (c, y) = jax.lax.scan(eliminate, (zero, zero), (h, rhs))

                def back(psi, x):
                    psi = x[1] - x[0] * psi
                    return psi, psi

                _, psi = jax.lax.scan(back, zero, (c, y), reverse=True)
                density = psi.real**2 + psi.imag**2
                return psi, (jnp.sum(density[n // 2 :]), jnp.sum(density))

            psi, (through, norm) = jax.lax.scan(step, re + 1j * im, shake)
            return psi.real, psi.imag, through, norm

        return jax.jit(run)


class CountSegments(Model):
    """Optimal segments of Poisson counts by a dynamic program with a shortest length, traced back to a mask of changes."""

    kind = "dynamic programs"
    dtype = "float64"
    size = dict(n=400)
    small = dict(n=14)

    def make(self, random, n):
        return random.poisson(np.repeat(random.gamma(2.0, 3.0, -(-n // 40)), 40)[:n]), 1.5 * math.log(n)

    def rscan(self, n):
        shortest = 4

        @rs.compile
        def segments(y, penalty):
            sums = rs.concatenate([rs.zeros(1, dtype="int64"), rs.cumsum(y)])
            starts = rs.arange(n + 1)

            def end(t, best, origin):
                # totals of starts behind t are below 0: they are left out below
                count, total = rs.maximum(t - starts, 1), rs.maximum(sums[t] - sums, 0)
                cost = total - rs.special.xlogy(total, total / count)
                value = rs.where(starts <= t - shortest, best + cost + penalty, np.inf)
                at = rs.argmin(value)
                return dict(best=best.at[t].set(value[at]), origin=origin.at[t].set(at))

            init = dict(best=rs.full(n + 1, np.inf).at[0].set(0.0), origin=rs.zeros(n + 1, dtype="int64"))
            out = rs.loop(end, over=dict(t=rs.arange(1, n + 1)), init=init).last

            def trace(s):
                t, marks, number = s
                start = out.origin[t]
                return start, marks.at[start].set(True), number + 1

            _, marks, number = rs.while_loop(lambda s: s[0] > 0, trace, (rs.constant(n), rs.zeros(n + 1, dtype="bool"), 0))
            return out.best[shortest:], marks, number

        return segments

    def jax(self, n):
        import jax, jax.numpy as jnp

        shortest = 4

        def segments(y, penalty):
            sums = jnp.concatenate([jnp.zeros(1, "int64"), jnp.cumsum(y)])
            starts = jnp.arange(n + 1)

            def end(s, t):
                best, origin = s
                count, total = jnp.maximum(t - starts, 1), jnp.maximum(sums[t] - sums, 0)
                cost = total - jax.scipy.special.xlogy(total, total / count)
                value = jnp.where(starts <= t - shortest, best + cost + penalty, jnp.inf)
                at = jnp.argmin(value)
                return (best.at[t].set(value[at]), origin.at[t].set(at)), None

            init = (jnp.full(n + 1, jnp.inf).at[0].set(0.0), jnp.zeros(n + 1, "int64"))
            (best, origin), _ = jax.lax.scan(end, init, jnp.arange(1, n + 1))

            def trace(s):
                t, marks, number = s
                start = origin[t]
                return start, marks.at[start].set(True), number + 1

            _, marks, number = jax.lax.while_loop(lambda s: s[0] > 0, trace, (n, jnp.zeros(n + 1, bool), 0))
            return best[shortest:], marks, number

        return jax.jit(segments)


class BisquareGroves(Model):
    """Robust regressions of many groves: Tukey's bisquare by reweighting until it rests, scales by medians, sandwiches."""

    kind = "robust"
    dtype = "float64"
    size = dict(groves=20, trees=45)
    small = dict(groves=3, trees=12)
    rtol = 1e-7

    def make(self, random, groves, trees):
        x = np.concatenate([np.ones((groves, trees, 1)), random.normal(size=(groves, trees, 2))], axis=2)
        return x, x @ np.array([1.0, 2.0, -1.0]) + random.standard_t(2.0, size=(groves, trees)), 4.685

    def rscan(self, groves, trees):
        @rs.compile
        def fit(x, y, tuning):
            def grove(x, y):
                def scale_of(r):
                    return 1.4826 * rs.median(rs.abs(r - rs.median(r)))

                def reweight(b):
                    r = y - x @ b
                    u = r / (tuning * scale_of(r))
                    w = rs.where(rs.abs(u) < 1, (1 - u**2) ** 2, 0.0)
                    new = rs.linalg.solve((x * w[:, None]).T @ x, x.T @ (w * y))
                    return new, rs.until(rs.max(rs.abs(new - b)) < 1e-8)

                start = rs.linalg.solve(x.T @ x, x.T @ y)
                out = rs.loop(reweight, init=start, n_steps=60)
                b = out.last
                r = y - x @ b
                s = scale_of(r)
                u = r / (tuning * s)
                inside = rs.abs(u) < 1
                psi = rs.where(inside, r * (1 - u**2) ** 2, 0.0)
                slope = rs.where(inside, (1 - u**2) * (1 - 5 * u**2), 0.0)
                bread = rs.linalg.inv((x * slope[:, None]).T @ x)
                return b, s, bread @ ((x * (psi**2)[:, None]).T @ x) @ bread, rs.sum(~inside)

            return rs.vmap(grove)(x, y)

        return fit

    def jax(self, groves, trees):
        import jax, jax.numpy as jnp

        def fit(x, y, tuning):
            def grove(x, y):
                def scale_of(r):
                    return 1.4826 * jnp.median(jnp.abs(r - jnp.median(r)))

                def reweight(s):
                    i, b, _ = s
                    r = y - x @ b
                    u = r / (tuning * scale_of(r))
                    w = jnp.where(jnp.abs(u) < 1, (1 - u**2) ** 2, 0.0)
                    new = jnp.linalg.solve((x * w[:, None]).T @ x, x.T @ (w * y))
                    return i + 1, new, jnp.max(jnp.abs(new - b)) < 1e-8

                start = (0, jnp.linalg.solve(x.T @ x, x.T @ y), False)
                _, b, _ = jax.lax.while_loop(lambda s: (s[0] < 60) & ~s[2], reweight, start)
                r = y - x @ b
                s = scale_of(r)
                u = r / (tuning * s)
                inside = jnp.abs(u) < 1
                psi = jnp.where(inside, r * (1 - u**2) ** 2, 0.0)
                slope = jnp.where(inside, (1 - u**2) * (1 - 5 * u**2), 0.0)
                bread = jnp.linalg.inv((x * slope[:, None]).T @ x)
                return b, s, bread @ ((x * (psi**2)[:, None]).T @ x) @ bread, jnp.sum(~inside)

            return jax.vmap(grove)(x, y)

        return jax.jit(fit)


class BlowflyDelays(Model):
    """Nicholson's blowflies: adults of now come of eggs of fourteen days ago, with noise that is fitted, counts with gaps."""

    kind = "state spaces"
    dtype = "float64"
    size = dict(days=360, delay=14)
    small = dict(days=9, delay=3)

    def make(self, random, days, delay):
        p = dict(log_p=1.9, log_n0=6.0, death=-1.6, log_phi=1.5, log_sigma=np.array([-1.5, -2.0]))
        p = {k: np.asarray(v, dtype="f8") for k, v in p.items()}
        p["eggs"], p["deaths"] = random.normal(size=days), random.normal(size=days)
        return p, random.poisson(300, delay).astype("f8"), random.negative_binomial(4, 0.004, days), random.random(days) < 0.8

    def rscan(self, days, delay):
        @rs.compile
        def nlp(p, before, counts, seen):
            n0, phi, sigma = rs.exp(p["log_n0"]), rs.exp(p["log_phi"]), rs.exp(p["log_sigma"])
            rate = rs.log1p(rs.exp(p["death"]))

            def day(e, d, count, seen, n):
                long_ago, now = n
                born = rs.exp(p["log_p"] - long_ago / n0 + sigma[0] * e) * long_ago * 0.2
                new = born + now * rs.exp(-rate * rs.exp(sigma[1] * d))
                lp = rs.where(seen, rs.stats.nbinom.logpmf(count, phi, phi / (phi + new)), 0.0)
                return dict(n=new, lp=lp)

            over = dict(e=p["eggs"], d=p["deaths"], count=counts, seen=seen)
            out = rs.loop(day, over=over, init=dict(n=rs.taps(before, -delay, -1)))
            prior = rs.sum(rs.stats.norm.logpdf(p["eggs"])) + rs.sum(rs.stats.norm.logpdf(p["deaths"]))
            return -rs.sum(out.lp) - prior - rs.stats.invgamma.logpdf(sigma[0], 3.0, scale=1.0)

        return rs.value_and_grad(nlp)

    def jax(self, days, delay):
        import jax, jax.numpy as jnp
        from jax.scipy import stats
        from jax.scipy.special import gammaln

        def nlp(p, before, counts, seen):
            n0, phi, sigma = jnp.exp(p["log_n0"]), jnp.exp(p["log_phi"]), jnp.exp(p["log_sigma"])
            rate = jax.nn.softplus(p["death"])

            def day(n, x):
                e, d = x
                born = jnp.exp(p["log_p"] - n[0] / n0 + sigma[0] * e) * n[0] * 0.2
                new = born + n[-1] * jnp.exp(-rate * jnp.exp(sigma[1] * d))
                return jnp.append(n[1:], new), new

            _, mean = jax.lax.scan(day, before, (p["eggs"], p["deaths"]))
            lp = jnp.sum(jnp.where(seen, stats.nbinom.logpmf(counts, phi, phi / (phi + mean)), 0.0))
            prior = jnp.sum(stats.norm.logpdf(p["eggs"])) + jnp.sum(stats.norm.logpdf(p["deaths"]))
            prior += -4.0 * jnp.log(sigma[0]) - 1.0 / sigma[0] - gammaln(3.0)
            return -lp - prior

        return jax.jit(jax.value_and_grad(nlp))


class FruitSetGibbs(Model):
    """A Gibbs sampler of a mixture of Poisson counts: categorical labels, gamma rates, Dirichlet weights."""

    kind = "samplers"
    dtype = "float64"
    size = dict(n=120, rounds=300)
    small = dict(n=60, rounds=200)

    def make(self, random, n, rounds):
        return (random.poisson(np.array([1.0, 8.0, 30.0])[np.arange(n) % 3]),)

    def same(self, ours, theirs):
        assert [a.shape for a in ours] == [b.shape for b in theirs]
        for a, b in zip(ours, theirs):
            spread = np.sqrt((np.var(a, axis=0) + np.var(b, axis=0)) / 25)  # draws of a chain depend on each other
            assert np.all(np.abs(a.mean(axis=0) - b.mean(axis=0)) < 5 * spread), (a.mean(axis=0), b.mean(axis=0))

    def rscan(self, n, rounds):
        random = rs.random.Stream(seed=11)

        @rs.compile
        def chain(y):
            def sweep(rates, weights):
                logits = rs.log(weights) + y[:, None] * rs.log(rates) - rates
                label = random.categorical(logits)
                members = rs.one_hot(label, 3)
                number, total = rs.sum(members, axis=0), rs.sum(members * y[:, None], axis=0)
                rates = rs.sort(random.gamma(1.0 + total) / (0.05 + number))
                weights = random.dirichlet(2.0 + number)
                return dict(rates=rates, weights=weights)

            out = rs.loop(sweep, init=dict(rates=np.array([1.0, 8.0, 30.0]), weights=np.ones(3) / 3), n_steps=rounds)
            return out.rates, out.weights

        return chain

    def jax(self, n, rounds):
        import jax, jax.numpy as jnp

        def chain(y):
            def sweep(s, key):
                rates, weights = s
                k1, k2, k3 = jax.random.split(key, 3)
                label = jax.random.categorical(k1, jnp.log(weights) + y[:, None] * jnp.log(rates) - rates)
                members = jax.nn.one_hot(label, 3)
                number, total = jnp.sum(members, axis=0), jnp.sum(members * y[:, None], axis=0)
                rates = jnp.sort(jax.random.gamma(k2, 1.0 + total) / (0.05 + number))
                s = (rates, jax.random.dirichlet(k3, 2.0 + number))
                return s, s

            keys = jax.random.split(jax.random.key(11), rounds)
            return jax.lax.scan(sweep, (jnp.array([1.0, 8.0, 30.0]), jnp.ones(3) / 3), keys)[1]

        return jax.jit(chain)


class TwoParameterLeapfrog(Model):
    """Item response theory by Hamiltonian Monte Carlo: states that are dicts, leapfrogs in proposals, draws given."""

    kind = "samplers"
    dtype = "float64"
    size = dict(people=40, items=15, rounds=12, leaps=8)
    small = dict(people=4, items=3, rounds=2, leaps=2)

    def make(self, random, people, items, rounds, leaps):
        shapes = dict(ability=(people,), log_slope=(items,), difficulty=(items,))
        start = {k: 0.3 * random.normal(size=s) for k, s in shapes.items()}
        momenta = {k: random.normal(size=(rounds, *s)) for k, s in shapes.items()}
        return start, momenta, random.random(rounds), random.random((people, items)) < 0.6, random.random((people, items)) < 0.9, 0.12

    def rscan(self, people, items, rounds, leaps):
        @rs.compile
        def chain(start, momenta, uniforms, right, answered, dt):
            def energy(q):
                eta = rs.exp(q["log_slope"]) * (q["ability"][:, None] - q["difficulty"])
                ll = rs.where(right, rs.log_sigmoid(eta), rs.log_sigmoid(-eta))
                prior = rs.sum(q["ability"] ** 2) + 4 * rs.sum(q["log_slope"] ** 2) + 0.5 * rs.sum(q["difficulty"] ** 2)
                return 0.5 * prior - rs.sum(rs.where(answered, ll, 0.0))

            def kinetic(m):
                return 0.5 * sum(rs.sum(m[k] ** 2) for k in m)

            def propose(m, u, q):
                slope = rs.grad(energy)

                def leap(q, m, g):
                    m = {k: m[k] - dt / 2 * g[k] for k in m}
                    q = {k: q[k] + dt * m[k] for k in q}
                    g = slope(q)
                    return q, {k: m[k] - dt / 2 * g[k] for k in m}, g

                q_new, m_new, _ = rs.loop(leap, init=(q, m, slope(q)), n_steps=leaps).last
                before, after = energy(q) + kinetic(m), energy(q_new) + kinetic(m_new)
                accept = rs.log(u) < before - after
                return dict(q={k: rs.where(accept, q_new[k], q[k]) for k in q}, accept=accept, error=after - before)

            out = rs.loop(propose, over=dict(m=momenta, u=uniforms), init=dict(q=start))
            return out.last.q, out.accept, out.error

        return chain

    def jax(self, people, items, rounds, leaps):
        import jax, jax.numpy as jnp

        def chain(start, momenta, uniforms, right, answered, dt):
            def energy(q):
                eta = jnp.exp(q["log_slope"]) * (q["ability"][:, None] - q["difficulty"])
                ll = jax.nn.log_sigmoid(jnp.where(right, eta, -eta))
                prior = jnp.sum(q["ability"] ** 2) + 4 * jnp.sum(q["log_slope"] ** 2) + 0.5 * jnp.sum(q["difficulty"] ** 2)
                return 0.5 * prior - jnp.sum(jnp.where(answered, ll, 0.0))

            def kinetic(m):
                return 0.5 * sum(jnp.sum(v**2) for v in jax.tree.leaves(m))

            def propose(q, x):
                m, u = x

                def leap(s, _):
                    q, m, g = s
                    m = jax.tree.map(lambda m, g: m - dt / 2 * g, m, g)
                    q = jax.tree.map(lambda q, m: q + dt * m, q, m)
                    g = jax.grad(energy)(q)
                    return (q, jax.tree.map(lambda m, g: m - dt / 2 * g, m, g), g), None

                (q_new, m_new, _), _ = jax.lax.scan(leap, (q, m, jax.grad(energy)(q)), None, length=leaps)
                before, after = energy(q) + kinetic(m), energy(q_new) + kinetic(m_new)
                accept = jnp.log(u) < before - after
                return jax.tree.map(lambda a, b: jnp.where(accept, a, b), q_new, q), (accept, after - before)

            q, (accept, error) = jax.lax.scan(propose, start, (momenta, uniforms))
            return q, accept, error

        return jax.jit(chain)


class PeepholeRecaller(Model):
    """An LSTM with peepholes and layer norms whose cells attend to what they held before; trained on labels at the end."""

    kind = "networks"
    dtype = "float32"
    size = dict(steps=24, batch=8, inputs=6, hidden=16, labels=5)
    small = dict(steps=4, batch=2, inputs=2, hidden=3, labels=2)

    def make(self, random, steps, batch, inputs, hidden, labels):
        def normal(*shape):
            return (random.normal(size=shape) / np.sqrt(shape[0])).astype("f4")

        p = dict(
            w=normal(inputs, 4 * hidden), u=normal(hidden, 4 * hidden), r=normal(hidden, 4 * hidden), gain=np.ones((4, hidden), "f4"),
            bias=np.zeros((4, hidden), "f4"), peep=0.1 * normal(3, hidden), query=normal(hidden, hidden), out=normal(2 * hidden, labels),
        )
        lengths = random.integers(max(1, steps // 2), steps + 1, batch)
        return p, normal(steps, batch, inputs) * 3, lengths, random.integers(0, labels, batch)

    def rscan(self, steps, batch, inputs, hidden, labels):
        def norm(x):
            mean = rs.mean(x, axis=-1, keepdims=True)
            return (x - mean) / rs.sqrt(rs.mean((x - mean) ** 2, axis=-1, keepdims=True) + 1e-5)

        @rs.compile
        def loss(p, x, lengths, label):
            def step(x, t, h, c, read, memory):
                z = rs.reshape(x @ p["w"] + h @ p["u"] + read @ p["r"], (batch, 4, hidden))
                z = norm(z) * p["gain"] + p["bias"]
                i = rs.sigmoid(z[:, 0] + p["peep"][0] * c)
                f = rs.sigmoid(z[:, 1] + p["peep"][1] * c + 1)
                new_c = f * c + i * rs.tanh(z[:, 2])
                o = rs.sigmoid(z[:, 3] + p["peep"][2] * new_c)
                new_h = o * rs.tanh(norm(new_c))
                new_memory = memory.at[:, t].set(new_h)
                scores = rs.einsum("bh,bth->bt", new_h @ p["query"], new_memory) / math.sqrt(hidden)
                scores = rs.where(rs.arange(steps) <= t, scores, -1e9)
                new_read = rs.einsum("bt,bth->bh", rs.softmax(scores, axis=1), new_memory)
                going = (t < lengths)[:, None]
                return dict(
                    h=rs.where(going, new_h, h), c=rs.where(going, new_c, c), read=rs.where(going, new_read, read),
                    memory=rs.where(going[:, :, None], new_memory, memory),
                )

            zeros = rs.zeros((batch, hidden), dtype="float32")
            init = dict(h=zeros, c=zeros, read=zeros, memory=rs.zeros((batch, steps, hidden), dtype="float32"))
            last = rs.loop(step, over=dict(x=x, t=rs.arange(steps)), init=init).last
            logits = rs.concatenate([last.h, last.read], axis=1) @ p["out"]
            return -rs.mean(rs.log_softmax(logits, axis=1)[rs.arange(batch), label])

        return rs.value_and_grad(loss)

    def jax(self, steps, batch, inputs, hidden, labels):
        import jax, jax.numpy as jnp

        def norm(x):
            mean = jnp.mean(x, axis=-1, keepdims=True)
            return (x - mean) * jax.lax.rsqrt(jnp.mean((x - mean) ** 2, axis=-1, keepdims=True) + 1e-5)

        def loss(p, x, lengths, label):
            def step(s, xs):
                (h, c, read, memory), (xw, t) = s, xs
                z = (xw + h @ p["u"] + read @ p["r"]).reshape(batch, 4, hidden)
                z = norm(z) * p["gain"] + p["bias"]
                i = jax.nn.sigmoid(z[:, 0] + p["peep"][0] * c)
                f = jax.nn.sigmoid(z[:, 1] + p["peep"][1] * c + 1)
                new_c = f * c + i * jnp.tanh(z[:, 2])
                o = jax.nn.sigmoid(z[:, 3] + p["peep"][2] * new_c)
                new_h = o * jnp.tanh(norm(new_c))
                new_memory = memory.at[:, t].set(new_h)
                scores = jnp.einsum("bh,bth->bt", new_h @ p["query"], new_memory) / math.sqrt(hidden)
                scores = jnp.where(jnp.arange(steps) <= t, scores, -1e9)
                new_read = jnp.einsum("bt,bth->bh", jax.nn.softmax(scores, axis=1), new_memory)
                going = (t < lengths)[:, None]
                new = (new_h, new_c, new_read)
                kept = tuple(jnp.where(going, a, b) for a, b in zip(new, (h, c, read)))
                return (*kept, jnp.where(going[:, :, None], new_memory, memory)), None

            zeros = jnp.zeros((batch, hidden), "float32")
            init = (zeros, zeros, zeros, jnp.zeros((batch, steps, hidden), "float32"))
            (h, _, read, _), _ = jax.lax.scan(step, init, (x @ p["w"], jnp.arange(steps)))
            logits = jnp.concatenate([h, read], axis=1) @ p["out"]
            return -jnp.mean(jax.nn.log_softmax(logits, axis=1)[jnp.arange(batch), label])

        return jax.jit(jax.value_and_grad(loss))


class FineGraySubhazard(Model):
    """Fine and Gray's hazards of a subdistribution: sums from the end of those at risk, weights by censoring from the front."""

    kind = "survival"
    dtype = "float64"
    size = dict(n=400, covariates=4)
    small = dict(n=15, covariates=2)

    def make(self, random, n, covariates):
        return 0.3 * random.normal(size=covariates), random.normal(size=(n, covariates)), random.choice(3, n, p=[0.3, 0.45, 0.25])

    def rscan(self, n, covariates):
        def loss(beta, x, cause):  # sorted by time, no ties
            eta = x @ beta
            risk = rs.exp(eta)
            at_risk = rs.arange(n, 0, -1)

            def censor(cause, at_risk, g):
                return dict(g=rs.where(cause == 0, g * (1 - 1 / (at_risk + 1.0)), g))

            g = rs.loop(censor, over=dict(cause=cause, at_risk=at_risk), init=dict(g=1.0)).g
            later = rs.loop(lambda r, total: total + r, over=risk, init=0.0, reverse=True)

            def earlier(r, g, cause, total):
                new = total + rs.where(cause == 2, r / g, 0.0)
                return dict(total=new, before=total)

            competing = rs.loop(earlier, over=dict(r=risk, g=g, cause=cause), init=dict(total=0.0)).before
            terms = rs.where(cause == 1, eta - rs.log(later + g * competing), 0.0)
            return -rs.sum(terms) + 0.5 * rs.sum(beta**2)

        def newton(beta, x, cause):
            value, slope = rs.value_and_grad(loss)(beta, x, cause)
            curvature = rs.hessian(loss)(beta, x, cause)
            return value, slope, curvature, beta - rs.linalg.solve(curvature, slope)

        return rs.compile(newton)

    def jax(self, n, covariates):
        import jax, jax.numpy as jnp

        def loss(beta, x, cause):
            eta = x @ beta
            risk = jnp.exp(eta)
            at_risk = jnp.arange(n, 0, -1)
            g = jnp.cumprod(jnp.where(cause == 0, 1 - 1 / (at_risk + 1.0), 1.0))
            later = jnp.cumsum(risk[::-1])[::-1]
            share = jnp.where(cause == 2, risk / g, 0.0)
            competing = jnp.cumsum(share) - share
            terms = jnp.where(cause == 1, eta - jnp.log(later + g * competing), 0.0)
            return -jnp.sum(terms) + 0.5 * jnp.sum(beta**2)

        def newton(beta, x, cause):
            value, slope = jax.value_and_grad(loss)(beta, x, cause)
            curvature = jax.hessian(loss)(beta, x, cause)
            return value, slope, curvature, beta - jnp.linalg.solve(curvature, slope)

        return jax.jit(newton)
