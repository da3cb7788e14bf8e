"""Markets, insurers, animals and queues: demand, dispatch, reserves, learning in games, as their textbooks have the equations."""

import numpy as np

import rscan as rs
from models import Model


class RandomCoefficientsDemand(Model):
    """Demand with random coefficients: the contraction of each market, until it has converged; the GMM criterion and its slopes."""

    kind = "econometrics"
    dtype = "float64"
    size = dict(markets=12, products=8, consumers=30)
    small = dict(markets=3, products=3, consumers=4)

    def make(self, random, markets, products, consumers):
        X = random.normal(size=(markets, products, 3))
        X[..., 0] = 1.0
        nu = random.normal(size=(consumers, 3))
        xi = 0.3 * random.normal(size=(markets, products))
        delta = X @ np.array([-1.0, 0.8, -0.5]) + xi
        e = np.exp(delta[..., None] + (X * np.array([0.5, 0.7, 0.4])) @ nu.T)
        shares = (e / (1 + e.sum(axis=1, keepdims=True))).mean(axis=2)
        Z = np.concatenate([X, X[..., 1:] ** 2, X.sum(axis=1, keepdims=True)[..., 1:] - X[..., 1:]], axis=2)
        return np.log([0.4, 0.8, 0.5]), X, shares, nu, Z

    def rscan(self, markets, products, consumers):
        def criterion(log_sigma, X, shares, nu, Z):
            sigma = rs.exp(log_sigma)

            def invert(x, share):
                taste = (x * sigma) @ nu.T

                def contract(delta):
                    e = rs.exp(delta[:, None] + taste)
                    predicted = rs.mean(e / (1 + rs.sum(e, axis=0)), axis=1)
                    new = delta + rs.log(share) - rs.log(predicted)
                    return new, rs.until(rs.max(rs.abs(new - delta)) < 1e-9)

                start = rs.log(share) - rs.log(1 - rs.sum(share))
                return rs.loop(contract, init=start, n_steps=500).last

            delta = rs.vmap(invert)(X, shares).reshape((markets * products,))
            x = X.reshape((markets * products, 3))
            z = Z.reshape((markets * products, 7))
            xi = delta - x @ rs.linalg.solve(x.T @ x, x.T @ delta)
            moments = z.T @ xi / (markets * products)
            return rs.sum(moments**2)

        return rs.value_and_grad(rs.compile(criterion))

    def jax(self, markets, products, consumers):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def criterion(log_sigma, X, shares, nu, Z):
            sigma = jnp.exp(log_sigma)

            def invert(x, share):
                taste = (x * sigma) @ nu.T

                def contract(state):
                    t, delta, _ = state
                    e = jnp.exp(delta[:, None] + taste)
                    predicted = jnp.mean(e / (1 + jnp.sum(e, axis=0)), axis=1)
                    new = delta + jnp.log(share) - jnp.log(predicted)
                    return t + 1, new, jnp.max(jnp.abs(new - delta))

                start = jnp.log(share) - jnp.log(1 - jnp.sum(share))
                return lax.while_loop(lambda s: (s[0] < 500) & (s[2] >= 1e-9), contract, (0, start, jnp.inf))[1]

            delta = jax.vmap(invert)(X, shares).reshape(-1)
            x, z = X.reshape(-1, 3), Z.reshape(-1, 7)
            xi = delta - x @ jnp.linalg.solve(x.T @ x, x.T @ delta)
            moments = z.T @ xi / (markets * products)
            value = jnp.sum(moments**2)
            return value, value

        def value_and_slopes(*args):  # forwards, since while_loop has no reverse mode, and there are three parameters
            slopes, value = jax.jacfwd(criterion, has_aux=True)(*args)
            return value, slopes

        return jax.jit(value_and_slopes)


class SeasonalParasitoids(Model):
    """Hosts and parasitoids in patches: attacks by day within a season, reproduction and dispersal between; a fit, its slopes."""

    kind = "loops in loops"
    dtype = "float32"
    size = dict(years=40, days=30, patches=20)
    small = dict(years=3, days=4, patches=3)

    def make(self, random, years, days, patches):
        theta = np.array([0.6, np.log(0.9), np.log(0.05), -1.0, np.log(0.8)], dtype="f4")
        hosts = random.uniform(0.5, 1.0, size=patches).astype("f4")
        wasps = random.uniform(0.1, 0.4, size=patches).astype("f4")
        counts = np.exp(0.3 * random.normal(size=(years, patches)) - 0.3).astype("f4")
        return theta, hosts, wasps, counts

    def rscan(self, years, days, patches):
        @rs.compile
        def misfit(theta, hosts, wasps, counts):
            growth, attack, handling = theta[0], rs.exp(theta[1]), rs.exp(theta[2])
            stay, yielded = rs.sigmoid(theta[3]), rs.exp(theta[4])
            dt = 1.0 / days

            def year(count, hosts, wasps):
                def day(_, state):
                    healthy, parasitised, adult = state
                    found = dt * attack * healthy * adult / (1 + attack * handling * healthy)
                    return healthy - found, parasitised + found, adult * (1 - 0.5 * dt)

                healthy, parasitised, _ = rs.fori(0, days, day, (hosts, rs.zeros_like(hosts), wasps))
                hosts = healthy * rs.exp(growth * (1 - hosts))
                wasps = yielded * parasitised
                wasps = stay * wasps + (1 - stay) * rs.mean(wasps)
                return dict(hosts=hosts, wasps=wasps, error=rs.mean((rs.log(count) - rs.log(hosts)) ** 2))

            out = rs.loop(year, over=dict(count=counts), init=dict(hosts=hosts, wasps=wasps))
            return rs.mean(out.error)

        return rs.value_and_grad(misfit)

    def jax(self, years, days, patches):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def misfit(theta, hosts, wasps, counts):
            growth, attack, handling = theta[0], jnp.exp(theta[1]), jnp.exp(theta[2])
            stay, yielded = jax.nn.sigmoid(theta[3]), jnp.exp(theta[4])
            dt = 1.0 / days

            def year(state, count):
                hosts, wasps = state

                def day(_, state):
                    healthy, parasitised, adult = state
                    found = dt * attack * healthy * adult / (1 + attack * handling * healthy)
                    return healthy - found, parasitised + found, adult * (1 - 0.5 * dt)

                healthy, parasitised, _ = lax.fori_loop(0, days, day, (hosts, jnp.zeros_like(hosts), wasps))
                hosts = healthy * jnp.exp(growth * (1 - hosts))
                wasps = yielded * parasitised
                wasps = stay * wasps + (1 - stay) * jnp.mean(wasps)
                return (hosts, wasps), jnp.mean((jnp.log(count) - jnp.log(hosts)) ** 2)

            return jnp.mean(lax.scan(year, (hosts, wasps), counts)[1])

        return jax.jit(jax.value_and_grad(misfit))


class ThieleReserves(Model):
    """Thiele's equations of disability insurance, months within years from the end of the contract back: reserves and their Jacobian."""

    kind = "actuarial science"
    dtype = "float64"
    size = dict(years=35, months=12, policies=16)
    small = dict(years=3, months=2, policies=2)

    def make(self, random, years, months, policies):
        p = np.array([-9.5, 0.085, -8.0, 0.06, -1.5, 0.012])  # log hazard and slope: death, disability; log recovery; premium
        return p, 25.0 + 0.5 * np.arange(policies), 0.02 + 0.01 * random.random(years)

    def rscan(self, years, months, policies):
        def reserves(p, entry, rates):
            h = 1.0 / months

            def year(y, rate, active, disabled):
                def month(k, state):
                    active, disabled = state
                    age = entry + y + 1 - (k + 0.5) * h
                    death = rs.exp(p[0] + p[1] * age)
                    disablement = rs.exp(p[2] + p[3] * age)
                    recovery = rs.exp(p[4] - 0.03 * (age - 25))

                    def slope(a, d):  # backwards in time
                        from_active = -rate * a - p[5] + disablement * (d - a) + death * (1.0 - a)
                        from_disabled = -rate * d + 0.4 + recovery * (a - d) + 2 * death * (1.0 - d)
                        return from_active, from_disabled

                    da, dd = slope(active, disabled)
                    da, dd = slope(active + 0.5 * h * da, disabled + 0.5 * h * dd)
                    return active + h * da, disabled + h * dd

                active, disabled = rs.fori(0, months, month, (active, disabled))
                return dict(active=active, disabled=disabled)

            over = dict(y=rs.arange(years), rate=rates)
            start = dict(active=rs.zeros(policies), disabled=rs.zeros(policies))
            out = rs.loop(year, over=over, init=start, reverse=True)
            return out.active[0], out.disabled

        return rs.compile(rs.jacobian(reserves, has_aux=True))

    def jax(self, years, months, policies):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def reserves(p, entry, rates):
            h = 1.0 / months

            def year(state, x):
                y, rate = x

                def month(k, state):
                    active, disabled = state
                    age = entry + y + 1 - (k + 0.5) * h
                    death = jnp.exp(p[0] + p[1] * age)
                    disablement = jnp.exp(p[2] + p[3] * age)
                    recovery = jnp.exp(p[4] - 0.03 * (age - 25))

                    def slope(a, d):
                        from_active = -rate * a - p[5] + disablement * (d - a) + death * (1.0 - a)
                        from_disabled = -rate * d + 0.4 + recovery * (a - d) + 2 * death * (1.0 - d)
                        return from_active, from_disabled

                    da, dd = slope(active, disabled)
                    da, dd = slope(active + 0.5 * h * da, disabled + 0.5 * h * dd)
                    return active + h * da, disabled + h * dd

                state = lax.fori_loop(0, months, month, state)
                return state, state[1]

            start = jnp.zeros(policies), jnp.zeros(policies)
            (active, _), disabled = lax.scan(year, start, (jnp.arange(years), rates), reverse=True)
            return active, disabled

        return jax.jit(jax.jacfwd(reserves, has_aux=True))


class ActuatedSignal(Model):
    """A traffic signal that vehicles and pedestrians actuate: green until a gap or its maximum, yellow, all red, walk; second by second."""

    kind = "queueing"
    dtype = "int64"
    size = dict(seconds=5400)
    small = dict(seconds=40)

    def make(self, random, seconds):
        main = random.poisson(0.15, size=seconds)
        side = (random.random(seconds) < 0.12).astype("i8")
        walker = (random.random(seconds) < 0.02).astype("i8")
        return main, side, walker, 40, 20, 4

    def rscan(self, seconds):
        MAIN, YELLOW, TO_SIDE, SIDE, ORANGE, WALK, TO_MAIN = range(7)

        @rs.compile
        def junction(main, side, walker, longest_main, longest_side, gap):
            def second(m, s, w, light, timer, since, q_main, q_side, people, waited, changes):
                q_main, q_side, people = q_main + m, q_side + s, people + w
                leaves = timer % 2 == 1
                go_main = (light == MAIN) & leaves & (q_main > 0)
                go_side = (light == SIDE) & leaves & (q_side > 0)
                q_main, q_side = q_main - go_main, q_side - go_side
                arrived = rs.where(light == MAIN, m, rs.where(light == SIDE, s, 0))
                since = rs.where(arrived > 0, 0, since + 1)
                called = (q_side > 0) | (people > 0)
                end_main = called & (timer >= 8) & ((since >= gap) | (timer >= longest_main))
                end_side = (timer >= 5) & ((since >= gap) & (q_side == 0) | (timer >= longest_side))
                after = rs.where(
                    light == MAIN, rs.where(end_main, YELLOW, MAIN),
                    rs.where(
                        light == YELLOW, rs.where(timer >= 3, TO_SIDE, YELLOW),
                        rs.where(
                            light == TO_SIDE, rs.where(timer >= 1, rs.where(people > 0, WALK, SIDE), TO_SIDE),
                            rs.where(
                                light == WALK, rs.where(timer >= 7, rs.where(q_side > 0, SIDE, TO_MAIN), WALK),
                                rs.where(
                                    light == SIDE, rs.where(end_side, ORANGE, SIDE),
                                    rs.where(light == ORANGE, rs.where(timer >= 3, TO_MAIN, ORANGE), rs.where(timer >= 2, MAIN, TO_MAIN)),
                                ),
                            ),
                        ),
                    ),
                )  # fmt: skip
                changed = after != light
                return dict(
                    light=after, timer=rs.where(changed, 0, timer + 1), since=rs.where(changed, 0, since), q_main=q_main, q_side=q_side,
                    people=rs.where(after == WALK, 0, people), waited=waited + q_main + q_side + people, changes=changes + changed,
                )  # fmt: skip

            start = dict(light=0, timer=0, since=0, q_main=0, q_side=0, people=0, waited=0, changes=0)
            out = rs.loop(second, over=dict(m=main, s=side, w=walker), init=start)
            return out.light, rs.max(out.q_main), rs.max(out.q_side), out.last.waited, out.last.changes

        return junction

    def jax(self, seconds):
        import jax
        import jax.numpy as jnp
        from jax import lax

        MAIN, YELLOW, TO_SIDE, SIDE, ORANGE, WALK, TO_MAIN = range(7)

        def junction(main, side, walker, longest_main, longest_side, gap):
            def second(state, x):
                light, timer, since, q_main, q_side, people, waited, changes = state
                m, s, w = x
                q_main, q_side, people = q_main + m, q_side + s, people + w
                leaves = timer % 2 == 1
                go_main = (light == MAIN) & leaves & (q_main > 0)
                go_side = (light == SIDE) & leaves & (q_side > 0)
                q_main, q_side = q_main - go_main, q_side - go_side
                arrived = jnp.where(light == MAIN, m, jnp.where(light == SIDE, s, 0))
                since = jnp.where(arrived > 0, 0, since + 1)
                called = (q_side > 0) | (people > 0)
                end_main = called & (timer >= 8) & ((since >= gap) | (timer >= longest_main))
                end_side = (timer >= 5) & ((since >= gap) & (q_side == 0) | (timer >= longest_side))
                after = jnp.select(
                    [light == k for k in (MAIN, YELLOW, TO_SIDE, WALK, SIDE, ORANGE)],
                    [
                        jnp.where(end_main, YELLOW, MAIN),
                        jnp.where(timer >= 3, TO_SIDE, YELLOW),
                        jnp.where(timer >= 1, jnp.where(people > 0, WALK, SIDE), TO_SIDE),
                        jnp.where(timer >= 7, jnp.where(q_side > 0, SIDE, TO_MAIN), WALK),
                        jnp.where(end_side, ORANGE, SIDE),
                        jnp.where(timer >= 3, TO_MAIN, ORANGE),
                    ],
                    jnp.where(timer >= 2, MAIN, TO_MAIN),
                )
                changed = after != light
                waited = waited + q_main + q_side + people
                timer, since = jnp.where(changed, 0, timer + 1), jnp.where(changed, 0, since)
                people = jnp.where(after == WALK, 0, people)
                return (after, timer, since, q_main, q_side, people, waited, changes + changed), (after, q_main, q_side)

            start = tuple(jnp.zeros(8, dtype="int64"))
            last, (light, q_main, q_side) = lax.scan(second, start, (main, side, walker))
            return light, jnp.max(q_main), jnp.max(q_side), last[6], last[7]

        return jax.jit(junction)


class BilateralExchange(Model):
    """Agents with two goods and Cobb-Douglas tastes who meet in random pairs and trade at the price that clears the pair."""

    kind = "agent-based models"
    dtype = "float32"
    size = dict(rounds=300, agents=300, pairs=100)
    small = dict(rounds=4, agents=7, pairs=2)

    def make(self, random, rounds, agents, pairs):
        met = np.stack([random.permutation(agents)[: 2 * pairs] for _ in range(rounds)]).astype("i4")
        taste = random.uniform(0.2, 0.8, size=agents).astype("f4")
        goods = random.exponential(1.0, size=(2, agents)).astype("f4") + np.float32(0.1)
        return met[:, :pairs], met[:, pairs:], taste, goods[0], goods[1], np.float32(0.8), np.float32(0.03)

    def rscan(self, rounds, agents, pairs):
        @rs.compile
        def economy(first, second, taste, own_x, own_y, speed, eaten):
            def meet(i, j, x, y, trades):
                a, b = taste[i], taste[j]
                x, y = x + eaten * (own_x - x), y + eaten * (own_y - y)
                xi, xj, yi, yj = x[i], x[j], y[i], y[j]
                price = (a * yi + b * yj) / ((1 - a) * xi + (1 - b) * xj)
                bought = speed * (a * (xi + yi / price) - xi)  # what i buys of x, and j sells
                paid = price * bought
                x = x.at[i].set(xi + bought).at[j].set(xj - bought)
                y = y.at[i].set(yi - paid).at[j].set(yj + paid)
                trades = trades.at[i].add(1).at[j].add(1)
                return dict(
                    x=x, y=y, trades=trades, price=rs.mean(rs.log(price)), spread=rs.std(rs.log(price)), volume=rs.sum(rs.abs(paid))
                )

            start = dict(x=own_x, y=own_y, trades=rs.zeros(agents, dtype="int32"))
            out = rs.loop(meet, over=dict(i=first, j=second), init=start)
            return out.last.x, out.last.y, out.last.trades, out.price, out.spread, out.volume

        return economy

    def jax(self, rounds, agents, pairs):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def economy(first, second, taste, own_x, own_y, speed, eaten):
            def meet(state, met):
                x, y, trades = state
                i, j = met
                a, b = taste[i], taste[j]
                x, y = x + eaten * (own_x - x), y + eaten * (own_y - y)
                xi, xj, yi, yj = x[i], x[j], y[i], y[j]
                price = (a * yi + b * yj) / ((1 - a) * xi + (1 - b) * xj)
                bought = speed * (a * (xi + yi / price) - xi)
                paid = price * bought
                x = x.at[i].set(xi + bought, unique_indices=True).at[j].set(xj - bought, unique_indices=True)
                y = y.at[i].set(yi - paid, unique_indices=True).at[j].set(yj + paid, unique_indices=True)
                trades = trades.at[i].add(1, unique_indices=True).at[j].add(1, unique_indices=True)
                return (x, y, trades), (jnp.mean(jnp.log(price)), jnp.std(jnp.log(price)), jnp.sum(jnp.abs(paid)))

            last, rows = lax.scan(meet, (own_x, own_y, jnp.zeros(agents, dtype=jnp.int32)), (first, second))
            return *last, *rows

        return jax.jit(economy)


class WeightedAttraction(Model):
    """Learning in a repeated game by experience-weighted attraction: the observed information of all subjects' choices, and the score."""

    kind = "Jacobians, Hessians, gradients per example"
    dtype = "float64"
    size = dict(rounds=50, subjects=16, actions=3)
    small = dict(rounds=4, subjects=2, actions=2)

    def make(self, random, rounds, subjects, actions):
        theta = np.array([0.9, 0.4, 0.3, np.log(0.8)])  # decay, weight of forgone payoffs, growth of attractions, log sensitivity
        payoffs = random.uniform(0.0, 2.0, size=(actions, actions))
        return theta, payoffs, random.integers(0, actions, size=(subjects, rounds)), random.integers(0, actions, size=(subjects, rounds))

    def rscan(self, rounds, subjects, actions):
        def nll(theta, payoffs, own, other):
            phi, forgone, kappa, sensitivity = theta[0], theta[1], theta[2], rs.exp(theta[3])

            def subject(own, other):
                def play(s, o, attraction, experience):
                    logits = sensitivity * attraction
                    ll = logits[s] - rs.logsumexp(logits)
                    weight = rs.where(rs.arange(actions) == s, 1.0, forgone)
                    new = phi * (1 - kappa) * experience + 1
                    attraction = (phi * experience * attraction + weight * payoffs[:, o]) / new
                    return dict(attraction=attraction, experience=new, ll=ll)

                start = dict(attraction=rs.zeros(actions), experience=1.0)
                return rs.sum(rs.loop(play, over=dict(s=own, o=other), init=start).ll)

            return -rs.sum(rs.vmap(subject)(own, other))

        @rs.compile
        def information(theta, payoffs, own, other):
            return rs.hessian(nll)(theta, payoffs, own, other), rs.grad(nll)(theta, payoffs, own, other)

        return information

    def jax(self, rounds, subjects, actions):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def nll(theta, payoffs, own, other):
            phi, forgone, kappa, sensitivity = theta[0], theta[1], theta[2], jnp.exp(theta[3])

            def subject(own, other):
                def play(state, x):
                    attraction, experience = state
                    s, o = x
                    logits = sensitivity * attraction
                    ll = logits[s] - jax.nn.logsumexp(logits)
                    weight = jnp.where(jnp.arange(actions) == s, 1.0, forgone)
                    new = phi * (1 - kappa) * experience + 1
                    attraction = (phi * experience * attraction + weight * payoffs[:, o]) / new
                    return (attraction, new), ll

                return jnp.sum(lax.scan(play, (jnp.zeros(actions), jnp.ones(())), (own, other))[1])

            return -jnp.sum(jax.vmap(subject)(own, other))

        return jax.jit(lambda *args: (jax.hessian(nll)(*args), jax.grad(nll)(*args)))


class ReinsuredSurplus(Model):
    """The surplus of an insurer: claims drawn each month, catastrophes, an excess of loss cover, dividends above a barrier, ruin."""

    kind = "random draws"
    dtype = "float64"
    size = dict(months=60, paths=200)
    small = dict(months=4, paths=30)

    def make(self, random, months, paths):
        season = 4.0 + np.cos(2 * np.pi * np.arange(months) / 12)
        return 9.0, season, 7.0, 12.0, 30.0, 20.0

    def rscan(self, months, paths):
        stream = rs.random.Stream(seed=5)

        @rs.compile
        def insurer(premium, season, retention, cover, barrier, capital):
            def month(frequency, surplus, paid, life):
                n = stream.poisson(frequency, size=paths)
                small = rs.where(n > 0, stream.gamma(1.5 * rs.maximum(n, 1), size=paths), 0.0)
                storm = stream.bernoulli(0.04, size=paths)
                large = rs.where(storm, 5.0 * rs.exp(stream.exponential(size=paths) / 2.2), 0.0)
                claims = small + large
                net = claims - rs.clip(claims - retention, 0.0, cover)
                alive = surplus > 0
                new = 1.002 * surplus + premium - net
                dividend = rs.where(alive, rs.maximum(new - barrier, 0.0), 0.0)
                return dict(surplus=rs.where(alive, new - dividend, surplus), paid=paid + dividend, life=life + alive)

            start = dict(surplus=capital * rs.ones(paths), paid=rs.zeros(paths), life=rs.zeros(paths, dtype="int64"))
            last = rs.loop(month, over=dict(frequency=season), init=start).last
            return last.surplus, last.paid, last.life

        return insurer

    def jax(self, months, paths):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def insurer(premium, season, retention, cover, barrier, capital):
            def month(state, x):
                surplus, paid, life = state
                frequency, key = x
                counts, sizes, storms, tails = jax.random.split(key, 4)
                n = jax.random.poisson(counts, frequency, (paths,))
                small = jnp.where(n > 0, jax.random.gamma(sizes, 1.5 * jnp.maximum(n, 1)), 0.0)
                storm = jax.random.bernoulli(storms, 0.04, (paths,))
                large = jnp.where(storm, 5.0 * jnp.exp(jax.random.exponential(tails, (paths,)) / 2.2), 0.0)
                claims = small + large
                net = claims - jnp.clip(claims - retention, 0.0, cover)
                alive = surplus > 0
                new = 1.002 * surplus + premium - net
                dividend = jnp.where(alive, jnp.maximum(new - barrier, 0.0), 0.0)
                return (jnp.where(alive, new - dividend, surplus), paid + dividend, life + alive), None

            start = capital * jnp.ones(paths), jnp.zeros(paths), jnp.zeros(paths, dtype="int64")
            return lax.scan(month, start, (season, jax.random.split(jax.random.key(5), months)))[0]

        return jax.jit(insurer)

    def same(self, ours, theirs):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs):
            assert a.shape == b.shape and a.dtype == b.dtype
            error = np.hypot(a.std(), b.std()) / np.sqrt(a.size)
            assert abs(a.mean() - b.mean()) <= 5 * error + 1e-9, f"means {a.mean()} and {b.mean()} differ by more than 5 times {error}"


class MeritOrderDispatch(Model):
    """A power market: plants sorted by their bids every hour, capacity added up to demand, start-up costs, a store."""

    kind = "searches, gathers, sorts"
    dtype = "float64"
    size = dict(hours=336, plants=50)
    small = dict(hours=6, plants=5)
    rtol, atol = 1e-8, 1e-9  # what is not served is mostly zero, and a difference of sums

    def make(self, random, hours, plants):
        heat = np.sort(random.uniform(1.5, 3.5, size=plants))
        capacity = random.uniform(0.5, 2.0, size=plants)
        available = capacity * (random.random((hours, plants)) < 0.93)
        fuel = 20 * np.exp(0.02 * np.cumsum(random.normal(size=hours)))
        demand = capacity.sum() * (0.75 + 0.2 * np.sin(2 * np.pi * np.arange(hours) / 24) + 0.05 * random.normal(size=hours))
        return heat, random.uniform(2.0, 15.0, size=plants), available, fuel, demand, 0.1 * capacity.sum()

    def rscan(self, hours, plants):
        @rs.compile
        def market(heat, startup, available, fuel, demand, storage):
            def hour(cap, gas, load, output, level, usual, profit):
                bid = gas * heat + rs.where(output > 1e-6, 0.0, startup)
                order = rs.argsort(bid)
                ladder, steps = bid[order], cap[order]
                cum = rs.cumsum(steps)
                expected = ladder[rs.minimum(rs.searchsorted(cum, load), plants - 1)]
                rate = storage / 5
                charge = rs.where(
                    expected < 0.97 * usual,
                    rs.minimum(rate, (storage - level) / 0.9),
                    rs.where(expected > 1.03 * usual, -rs.minimum(rate, level), 0.0),
                )
                residual = rs.maximum(load + charge, 0.0)
                price = ladder[rs.minimum(rs.searchsorted(cum, residual), plants - 1)]
                run = rs.clip(residual - (cum - steps), 0.0, steps)
                output = rs.zeros(plants).at[order].set(run)
                level = level + rs.where(charge > 0, 0.9 * charge, charge)
                usual = 0.95 * usual + 0.05 * price
                earned = output * (price - gas * heat)
                return dict(output=output, level=level, usual=usual, profit=profit + earned, price=price, unserved=residual - rs.sum(run))

            start = dict(output=rs.zeros(plants), level=0.5 * storage, usual=fuel[0] * heat[plants // 2], profit=rs.zeros(plants))
            out = rs.loop(hour, over=dict(cap=available, gas=fuel, load=demand), init=start)
            return out.price, out.level, out.unserved, out.last.profit

        return market

    def jax(self, hours, plants):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def market(heat, startup, available, fuel, demand, storage):
            def hour(state, x):
                output, level, usual, profit = state
                cap, gas, load = x
                bid = gas * heat + jnp.where(output > 1e-6, 0.0, startup)
                order = jnp.argsort(bid)
                ladder, steps = bid[order], cap[order]
                cum = jnp.cumsum(steps)
                expected = ladder[jnp.minimum(jnp.searchsorted(cum, load), plants - 1)]
                rate = storage / 5
                charge = jnp.where(
                    expected < 0.97 * usual,
                    jnp.minimum(rate, (storage - level) / 0.9),
                    jnp.where(expected > 1.03 * usual, -jnp.minimum(rate, level), 0.0),
                )
                residual = jnp.maximum(load + charge, 0.0)
                price = ladder[jnp.minimum(jnp.searchsorted(cum, residual), plants - 1)]
                run = jnp.clip(residual - (cum - steps), 0.0, steps)
                output = jnp.zeros(plants).at[order].set(run, unique_indices=True)
                level = level + jnp.where(charge > 0, 0.9 * charge, charge)
                usual = 0.95 * usual + 0.05 * price
                profit = profit + output * (price - gas * heat)
                return (output, level, usual, profit), (price, level, residual - jnp.sum(run))

            start = jnp.zeros(plants), 0.5 * storage, fuel[0] * heat[plants // 2], jnp.zeros(plants)
            last, (price, level, unserved) = lax.scan(hour, start, (available, fuel, demand))
            return price, level, unserved, last[3]

        return jax.jit(market)


class MultistateRecapture(Model):
    """Marked animals that move between sites, each followed from its first capture on: the likelihood of the histories, and its slopes."""

    kind = "ecology"
    dtype = "float64"
    size = dict(animals=100, occasions=24, sites=3)
    small = dict(animals=4, occasions=5, sites=2)

    def make(self, random, animals, occasions, sites):
        first = random.integers(0, occasions - 1, size=animals)
        history = np.where(random.random((animals, occasions)) < 0.35, random.integers(1, sites + 1, size=(animals, occasions)), 0)
        history[np.arange(occasions) < first[:, None]] = 0
        history[np.arange(animals), first] = random.integers(1, sites + 1, size=animals)
        p = dict(
            survival=np.linspace(1.0, 2.0, sites), detection=np.linspace(-1.0, 0.0, sites), effort=0.4,
            movement=0.5 * random.normal(size=(sites, sites)) + 2 * np.eye(sites),
        )  # fmt: skip
        return p, history, first, random.normal(size=occasions)

    def rscan(self, animals, occasions, sites):
        @rs.compile
        def nll(p, history, first, effort):
            phi = rs.sigmoid(p["survival"])
            moves = phi[:, None] * rs.special.softmax(p["movement"], axis=1)
            detected = rs.sigmoid(p["detection"] + p["effort"] * effort[:, None])

            def animal(seen, first):
                def occasion(k, alive, dead, ll):
                    t = first + 1 + k
                    y, q = seen[t], detected[t]
                    dead = dead + alive @ (1 - phi)
                    alive = alive @ moves
                    here = rs.arange(1, sites + 1) == y
                    alive = rs.where(y == 0, alive * (1 - q), rs.where(here, alive * q, 0.0))
                    dead = rs.where(y == 0, dead, 0.0)
                    total = rs.sum(alive) + dead
                    return dict(alive=alive / total, dead=dead / total, ll=ll + rs.log(total))

                start = dict(alive=rs.where(rs.arange(1, sites + 1) == seen[first], 1.0, 0.0), dead=0.0, ll=0.0)
                return rs.loop(occasion, over=dict(k=rs.arange(occasions)), init=start, n_steps=occasions - 1 - first).last.ll

            return -rs.sum(rs.vmap(animal)(history, first))

        return rs.value_and_grad(nll)

    def jax(self, animals, occasions, sites):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def nll(p, history, first, effort):
            phi = jax.nn.sigmoid(p["survival"])
            moves = phi[:, None] * jax.nn.softmax(p["movement"], axis=1)
            detected = jax.nn.sigmoid(p["detection"] + p["effort"] * effort[:, None])

            def animal(seen, first):
                def occasion(state, x):
                    alive, dead, ll = state
                    t, y, q = x
                    dead = dead + alive @ (1 - phi)
                    alive = alive @ moves
                    here = jnp.arange(1, sites + 1) == y
                    alive = jnp.where(y == 0, alive * (1 - q), jnp.where(here, alive * q, 0.0))
                    dead = jnp.where(y == 0, dead, 0.0)
                    total = jnp.sum(alive) + dead
                    new = alive / total, dead / total, ll + jnp.log(total)
                    return jax.tree.map(lambda a, b: jnp.where(t > first, a, b), new, state), None

                start = jnp.where(jnp.arange(1, sites + 1) == seen[first], 1.0, 0.0), 0.0, 0.0
                return lax.scan(occasion, start, (jnp.arange(1, occasions), seen[1:], detected[1:]))[0][2]

            return -jnp.sum(jax.vmap(animal)(history, first))

        return jax.jit(jax.value_and_grad(nll))


class BlackLittermanBacktest(Model):
    """Portfolios by Black and Litterman every day, with a covariance that forgets and costs of trading; slopes of the utility of growth."""

    kind = "finance"
    dtype = "float64"
    size = dict(days=250, assets=6, views=2)
    small = dict(days=4, assets=3, views=1)

    def make(self, random, days, assets, views):
        theta = np.array([np.log(4.0), np.log(0.5), 3.0, np.log(0.002)])  # log risk aversion, log tau, logit of decay, log cost
        root = 0.01 * (np.eye(assets) + 0.5 / assets)
        returns = random.normal(size=(days, assets)) @ root + 3e-4
        P = random.normal(size=(views, assets))
        q = returns @ P.T * 0.1 + 2e-4 * random.normal(size=(days, views))
        return theta, returns, P, q, np.full(assets, 1.0 / assets), root @ root.T

    def rscan(self, days, assets, views):
        @rs.compile
        def disutility(theta, returns, P, q, market, start):
            risk, tau, decay, cost = rs.exp(theta[0]), rs.exp(theta[1]), rs.sigmoid(theta[2]), rs.exp(theta[3])
            omega = 1e-5 * rs.eye(views)

            def day(r, view, S, w):
                prior = risk * S @ market
                spread = tau * S @ P.T
                mean = prior + spread @ rs.linalg.solve(P @ spread + omega, view - P @ prior)
                new = rs.linalg.solve(risk * S + 1e-5 * rs.eye(assets), mean)
                new = new / rs.sqrt(1 + rs.sum(new**2))
                traded = rs.sum(rs.sqrt((new - w) ** 2 + 1e-8))
                growth = rs.log1p(new @ r) - cost * traded
                return dict(S=decay * S + (1 - decay) * rs.outer(r, r), w=new, growth=growth)

            growth = rs.loop(day, over=dict(r=returns, view=q), init=dict(S=start, w=market)).growth
            return -rs.mean(growth) + 2 * rs.var(growth)

        return rs.value_and_grad(disutility)

    def jax(self, days, assets, views):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def disutility(theta, returns, P, q, market, start):
            risk, tau, decay, cost = jnp.exp(theta[0]), jnp.exp(theta[1]), jax.nn.sigmoid(theta[2]), jnp.exp(theta[3])
            omega = 1e-5 * jnp.eye(views)

            def day(state, x):
                S, w = state
                r, view = x
                prior = risk * S @ market
                spread = tau * S @ P.T
                mean = prior + spread @ jnp.linalg.solve(P @ spread + omega, view - P @ prior)
                new = jnp.linalg.solve(risk * S + 1e-5 * jnp.eye(assets), mean)
                new = new / jnp.sqrt(1 + jnp.sum(new**2))
                traded = jnp.sum(jnp.sqrt((new - w) ** 2 + 1e-8))
                growth = jnp.log1p(new @ r) - cost * traded
                return (decay * S + (1 - decay) * jnp.outer(r, r), new), growth

            _, growth = lax.scan(day, (start, market), (returns, q))
            return -jnp.mean(growth) + 2 * jnp.var(growth)

        return jax.jit(jax.value_and_grad(disutility))
