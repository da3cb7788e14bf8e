"""Economics, epidemics, queues and games: models as scientists of these fields write them from the equations."""

import numpy as np

import rscan as rs
from models import Model


class EndogenousGrid(Model):
    """A life cycle of saving by endogenous grid points, income in a Markov chain; then people who live by the policies."""

    kind = "econometrics"
    dtype = "float64"
    size = dict(ages=40, incomes=5, points=50, people=100)
    small = dict(ages=4, incomes=2, points=6, people=3)

    def make(self, random, ages, incomes, points, people):
        income = np.exp(np.linspace(-0.6, 0.6, incomes))
        distance = np.abs(np.arange(incomes)[:, None] - np.arange(incomes))
        P = np.exp(-2.0 * distance)
        P = P / P.sum(axis=1, keepdims=True)
        state = np.empty((ages, people), dtype="i8")
        state[0] = random.integers(0, incomes, size=people)
        for t in range(1, ages):
            state[t] = (np.cumsum(P[state[t - 1]], axis=1) < random.random((people, 1))).sum(axis=1).clip(0, incomes - 1)
        return 0.96, 2.0, 1.03, income, P, 20 * np.linspace(0, 1, points) ** 2, state

    def rscan(self, ages, incomes, points, people):
        interp = rs.vmap(lambda x, xp, fp: rs.interp(x, xp, fp))

        @rs.compile
        def life(beta, risk, R, income, P, a, state):
            tiny = rs.full((incomes, 1), 1e-6)
            cash = R * a + income[:, None]

            def younger(m, c):
                c_next = interp(cash, m, c)
                marginal = beta * R * (P @ c_next ** (-risk))
                c_now = marginal ** (-1 / risk)
                m_now = a + c_now
                return dict(m=rs.concatenate([tiny, m_now], axis=1), c=rs.concatenate([tiny, c_now], axis=1))

            m_last = rs.concatenate([tiny, a + income[:, None]], axis=1)
            policy = rs.loop(younger, init=dict(m=m_last, c=m_last), n_steps=ages)

            def year(m, c, s, saved):
                have = R * saved + income[s]
                eaten = rs.minimum(interp(have, m[s], c[s]), have)
                return dict(saved=have - eaten, eaten=rs.mean(eaten), poor=rs.sum(have - eaten < 1e-3))

            out = rs.loop(year, over=dict(m=policy.m[::-1], c=policy.c[::-1], s=state), init=dict(saved=rs.zeros(people)))
            return policy.last.c, out.eaten, out.poor, rs.mean(out.saved, axis=1)

        return life

    def jax(self, ages, incomes, points, people):
        import jax
        import jax.numpy as jnp
        from jax import lax

        interp = jax.vmap(jnp.interp)

        def life(beta, risk, R, income, P, a, state):
            tiny = jnp.full((incomes, 1), 1e-6)
            cash = R * a + income[:, None]

            def younger(policy, _):
                m, c = policy
                marginal = beta * R * (P @ interp(cash, m, c) ** (-risk))
                c_now = marginal ** (-1 / risk)
                new = jnp.concatenate([tiny, a + c_now], axis=1), jnp.concatenate([tiny, c_now], axis=1)
                return new, new

            m_last = jnp.concatenate([tiny, a + income[:, None]], axis=1)
            (_, c_first), (m, c) = lax.scan(younger, (m_last, m_last), None, length=ages)

            def year(saved, x):
                m, c, s = x
                have = R * saved + income[s]
                eaten = jnp.minimum(interp(have, m[s], c[s]), have)
                saved = have - eaten
                return saved, (jnp.mean(eaten), jnp.sum(saved < 1e-3), jnp.mean(saved))

            _, (eaten, poor, saved) = lax.scan(year, jnp.zeros(people), (m[::-1], c[::-1], state))
            return c_first, eaten, poor, saved

        return jax.jit(life)


class CallAuctionMarket(Model):
    """Agents with limit orders in a call auction: bids and asks are sorted and crossed at every period, cash and shares change hands."""

    kind = "econometrics"
    dtype = "float64"
    size = dict(periods=150, agents=64)
    small = dict(periods=5, agents=6)

    def make(self, random, periods, agents):
        fundamental = 100 * np.exp(np.cumsum(0.01 * random.normal(size=periods)))
        noise = 0.03 * random.normal(size=(periods, agents))
        active = random.random((periods, agents)) < 0.6
        trust = random.uniform(0.0, 0.4, size=agents)
        trend = random.uniform(-0.3, 0.5, size=agents)
        return fundamental, noise, active, trust, trend

    def rscan(self, periods, agents):
        @rs.compile
        def market(fundamental, noise, active, trust, trend):
            def period(fundamental, noise, active, price, cash, shares):
                before, now = price
                growth = trust * rs.log(fundamental / now) + trend * rs.log(now / before) + noise
                limit = now * rs.exp(growth)
                buys = active & (growth > 0) & (cash >= limit)
                sells = active & (growth < 0) & (shares >= 1)
                bids = rs.where(buys, limit, -np.inf)
                asks = rs.where(sells, limit, np.inf)
                queue_bids, queue_asks = -rs.sort(-bids), rs.sort(asks)
                k = rs.sum(queue_bids >= queue_asks)
                last = rs.maximum(k - 1, 0)
                # where nothing crosses, the price moves a little towards the middle of the orders
                drift = now * rs.exp(0.1 * rs.mean(growth))
                new = rs.where(k > 0, 0.5 * (queue_bids[last] + queue_asks[last]), drift)
                bought = buys & (rs.argsort(rs.argsort(-bids)) < k)
                sold = sells & (rs.argsort(rs.argsort(asks)) < k)
                change = rs.where(bought, 1.0, 0.0) - rs.where(sold, 1.0, 0.0)
                return dict(price=new, cash=cash - change * new, shares=shares + change, volume=k)

            start = dict(price=rs.taps(rs.full(2, 100.0), -2, -1), cash=rs.full(agents, 1000.0), shares=rs.full(agents, 10.0))
            out = rs.loop(period, over=dict(fundamental=fundamental, noise=noise, active=active), init=start)
            wealth = out.last.cash + out.last.shares * out.price[-1]
            return out.price, out.volume, rs.sort(wealth)

        return market

    def jax(self, periods, agents):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def market(fundamental, noise, active, trust, trend):
            def period(state, x):
                before, now, cash, shares = state
                fundamental, noise, active = x
                growth = trust * jnp.log(fundamental / now) + trend * jnp.log(now / before) + noise
                limit = now * jnp.exp(growth)
                buys = active & (growth > 0) & (cash >= limit)
                sells = active & (growth < 0) & (shares >= 1)
                bids = jnp.where(buys, limit, -jnp.inf)
                asks = jnp.where(sells, limit, jnp.inf)
                queue_bids, queue_asks = -jnp.sort(-bids), jnp.sort(asks)
                k = jnp.sum(queue_bids >= queue_asks)
                last = jnp.maximum(k - 1, 0)
                drift = now * jnp.exp(0.1 * jnp.mean(growth))
                new = jnp.where(k > 0, 0.5 * (queue_bids[last] + queue_asks[last]), drift)
                bought = buys & (jnp.argsort(jnp.argsort(-bids)) < k)
                sold = sells & (jnp.argsort(jnp.argsort(asks)) < k)
                change = jnp.where(bought, 1.0, 0.0) - jnp.where(sold, 1.0, 0.0)
                return (now, new, cash - change * new, shares + change), (new, k)

            start = 100.0, 100.0, jnp.full(agents, 1000.0), jnp.full(agents, 10.0)
            (_, price, cash, shares), (prices, volume) = lax.scan(period, start, (fundamental, noise, active))
            return prices, volume, jnp.sort(cash + shares * price)

        return jax.jit(market)


class RollingNeweyWest(Model):
    """Regressions in a moving window with standard errors of Newey and West, and a position that follows the t values with hysteresis."""

    kind = "econometrics"
    dtype = "float64"
    size = dict(steps=300, window=60, regressors=3, lags=4)
    small = dict(steps=12, window=8, regressors=2, lags=2)

    def make(self, random, steps, window, regressors, lags):
        x = np.concatenate([np.ones((steps, 1)), random.normal(size=(steps, regressors - 1))], axis=1)
        slope = np.sin(np.arange(steps) / 40)[:, None] * np.linspace(0.2, 0.5, regressors)
        e = random.normal(size=steps + 1)
        return x, np.sum(x * slope, axis=1) + e[1:] + 0.4 * e[:-1]

    def rscan(self, steps, window, regressors, lags):
        @rs.compile
        def follow(x, y):
            def day(t, position, profit):
                X, Y = x[t : t + window], y[t : t + window]
                G = X.T @ X
                beta = rs.linalg.solve(G, X.T @ Y)
                u = X * (Y - X @ beta)[:, None]
                S = u.T @ u
                for lag in range(1, lags + 1):
                    gamma = u[lag:].T @ u[:-lag]
                    S = S + (1 - lag / (lags + 1)) * (gamma + gamma.T)
                inverse = rs.linalg.inv(G)
                V = inverse @ S @ inverse * window / (window - regressors)
                tvalue = beta / rs.sqrt(rs.diag(V))
                score = tvalue[-1]
                keep = rs.where((position > 0) & (score > 0.5) | (position < 0) & (score < -0.5), position, 0.0)
                profit = profit + position * y[t + window] * x[t + window, -1]
                position = rs.where(score > 2, 1.0, rs.where(score < -2, -1.0, keep))
                return dict(position=position, profit=profit, tvalue=tvalue, beta=beta)

            out = rs.loop(day, over=dict(t=rs.arange(steps - window)), init=dict(position=0.0, profit=0.0))
            return out.beta, out.tvalue, out.position, out.profit

        return follow

    def jax(self, steps, window, regressors, lags):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def follow(x, y):
            def fit(t):
                X = lax.dynamic_slice_in_dim(x, t, window)
                Y = lax.dynamic_slice_in_dim(y, t, window)
                G = X.T @ X
                beta = jnp.linalg.solve(G, X.T @ Y)
                u = X * (Y - X @ beta)[:, None]
                S = u.T @ u
                for lag in range(1, lags + 1):
                    gamma = u[lag:].T @ u[:-lag]
                    S = S + (1 - lag / (lags + 1)) * (gamma + gamma.T)
                inverse = jnp.linalg.inv(G)
                V = inverse @ S @ inverse * window / (window - regressors)
                return beta, beta / jnp.sqrt(jnp.diag(V))

            beta, tvalue = jax.vmap(fit)(jnp.arange(steps - window))

            def day(state, x):
                position, profit = state
                score, now = x
                keep = jnp.where((position > 0) & (score > 0.5) | (position < 0) & (score < -0.5), position, 0.0)
                profit = profit + position * now
                position = jnp.where(score > 2, 1.0, jnp.where(score < -2, -1.0, keep))
                return (position, profit), (position, profit)

            _, (position, profit) = lax.scan(day, (0.0, 0.0), (tvalue[:, -1], y[window:] * x[window:, -1]))
            return beta, tvalue, position, profit

        return jax.jit(follow)


class RenewalEpidemic(Model):
    """Infections by the renewal equation in regions that mix, reported late and by weekdays; gradient of the negative log posterior."""

    kind = "epidemiology"
    dtype = "float64"
    size = dict(days=140, regions=4, generation=14, delay=12)
    small = dict(days=15, regions=2, generation=4, delay=3)

    def make(self, random, days, regions, generation, delay):
        z = random.normal(size=(days, regions))
        weekday = 0.1 * random.normal(size=7)
        seeds = np.full(regions, np.log(20.0))
        mixing = 0.9 * np.eye(regions) + 0.1 / regions
        w = np.arange(1, generation + 1) * np.exp(-np.arange(1, generation + 1) / 2.5)
        late = np.exp(-0.5 * ((np.arange(delay) - 4) / 2) ** 2)
        cases = random.negative_binomial(8, 0.2, size=(days, regions))
        return z, weekday, seeds, 2.0, mixing, w / w.sum(), late / late.sum(), cases

    def rscan(self, days, regions, generation, delay):
        @rs.compile
        def nlp(z, weekday, seeds, log_size, mixing, w, late, cases):
            R = rs.exp(0.08 * rs.cumsum(z, axis=0))

            def day(R, window):
                pressure = rs.sum(w[:, None] * window[::-1], axis=0)
                new = R * (mixing @ pressure)
                return dict(window=rs.concatenate([window[1:], new[None]]), new=new)

            start = rs.exp(seeds) * rs.ones((generation, 1))
            infected = rs.loop(day, over=dict(R=R), init=dict(window=start)).new
            padded = rs.concatenate([rs.exp(seeds) * rs.ones((delay - 1, 1)), infected])
            expected = sum(late[k] * padded[delay - 1 - k : delay - 1 - k + days] for k in range(delay))
            expected = expected * rs.exp(weekday[rs.arange(days) % 7])[:, None]
            size = rs.exp(log_size)
            ll = rs.sum(rs.stats.nbinom.logpmf(cases, size, size / (size + expected)))
            prior = -0.5 * (rs.sum(z**2) + rs.sum((weekday / 0.3) ** 2) + rs.sum((seeds - 3) ** 2))
            return -(ll + prior)

        return rs.value_and_grad(nlp, argnums=(0, 1, 2, 3))

    def jax(self, days, regions, generation, delay):
        import jax
        import jax.numpy as jnp
        from jax import lax
        from jax.scipy.stats import nbinom

        def nlp(z, weekday, seeds, log_size, mixing, w, late, cases):
            R = jnp.exp(0.08 * jnp.cumsum(z, axis=0))
            backwards = w[::-1]

            def day(window, R):
                new = R * (mixing @ (backwards @ window))
                return jnp.concatenate([window[1:], new[None]]), new

            start = jnp.exp(seeds) * jnp.ones((generation, 1))
            _, infected = lax.scan(day, start, R)
            padded = jnp.concatenate([jnp.exp(seeds) * jnp.ones((delay - 1, 1)), infected])
            expected = sum(late[k] * padded[delay - 1 - k : delay - 1 - k + days] for k in range(delay))
            expected = expected * jnp.exp(weekday[jnp.arange(days) % 7])[:, None]
            size = jnp.exp(log_size)
            ll = jnp.sum(nbinom.logpmf(cases, size, size / (size + expected)))
            prior = -0.5 * (jnp.sum(z**2) + jnp.sum((weekday / 0.3) ** 2) + jnp.sum((seeds - 3) ** 2))
            return -(ll + prior)

        return jax.jit(jax.value_and_grad(nlp, argnums=(0, 1, 2, 3)))


class NetworkOutbreak(Model):
    """Outbreaks among persons of a contact network with detection and quarantine of contacts, each until nobody carries the disease."""

    kind = "epidemiology"
    dtype = "int64"
    size = dict(days=80, people=250, contacts=8, outbreaks=8)
    small = dict(days=6, people=12, contacts=3, outbreaks=2)

    def make(self, random, days, people, contacts, outbreaks):
        neighbours = (np.arange(people)[:, None] + random.integers(1, people // 2, size=(people, contacts))) % people
        first = random.random((outbreaks, people)) < 0.02
        first[:, 0] = True
        chance = random.random((outbreaks, days, people))
        found = random.random((outbreaks, days, people)) < 0.15
        return neighbours, first, np.linspace(0.02, 0.08, outbreaks), chance, found

    def rscan(self, days, people, contacts, outbreaks):
        def outbreak(neighbours, first, beta, chance, found):
            def day(u, f, left, immune, isolated, size, peak):
                # left: days a person still carries the disease; the first two of seven are latent
                spreads = (left > 0) & (left <= 5) & (isolated == 0)
                exposures = rs.sum(spreads[neighbours], axis=1)
                risk = 1 - (1 - beta) ** exposures
                caught = ~immune & (left == 0) & (isolated == 0) & (u < risk)
                detected = (left > 0) & (left <= 5) & f & (isolated == 0)
                warned = rs.any(detected[neighbours], axis=1)
                isolated = rs.where(detected, 10, rs.where(warned, rs.maximum(isolated, 5), rs.maximum(isolated - 1, 0)))
                recovered = left == 1
                left = rs.where(caught, 7, rs.maximum(left - 1, 0))
                carriers = rs.sum(left > 0)
                new = dict(
                    left=left, immune=immune | recovered, isolated=isolated,
                    size=size + rs.sum(caught), peak=rs.maximum(peak, carriers),
                )  # fmt: skip
                return new, rs.until(carriers == 0)

            start = dict(
                left=rs.where(first, 7, 0), immune=rs.zeros(people, dtype="bool"), isolated=rs.zeros(people, dtype="int64"),
                size=rs.sum(first), peak=rs.sum(first),
            )  # fmt: skip
            out = rs.loop(day, over=dict(u=chance, f=found), init=start)
            return out.steps, out.last.size, out.last.peak, out.last.immune, rs.sum(out.last.isolated > 0)

        return rs.compile(rs.vmap(outbreak, in_axes=(None, 0, 0, 0, 0)))

    def jax(self, days, people, contacts, outbreaks):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def outbreak(neighbours, first, beta, chance, found):
            def day(state):
                t, left, immune, isolated, size, peak = state
                spreads = (left > 0) & (left <= 5) & (isolated == 0)
                exposures = jnp.sum(spreads[neighbours], axis=1)
                risk = 1 - (1 - beta) ** exposures
                caught = ~immune & (left == 0) & (isolated == 0) & (chance[t] < risk)
                detected = (left > 0) & (left <= 5) & found[t] & (isolated == 0)
                warned = jnp.any(detected[neighbours], axis=1)
                isolated = jnp.where(detected, 10, jnp.where(warned, jnp.maximum(isolated, 5), jnp.maximum(isolated - 1, 0)))
                immune = immune | (left == 1)
                left = jnp.where(caught, 7, jnp.maximum(left - 1, 0))
                return t + 1, left, immune, isolated, size + jnp.sum(caught), jnp.maximum(peak, jnp.sum(left > 0))

            start = 0, jnp.where(first, 7, 0), jnp.zeros(people, bool), jnp.zeros(people, int), jnp.sum(first), jnp.sum(first)
            going = lambda s: (s[0] < days) & jnp.any(s[1] > 0)  # noqa: E731
            t, _, immune, isolated, size, peak = lax.while_loop(going, day, start)
            return t, size, peak, immune, jnp.sum(isolated > 0)

        return jax.jit(jax.vmap(outbreak, in_axes=(None, 0, 0, 0, 0)))


class BlockedTandem(Model):
    """Queues in a row with small buffers and blocking: times of departure, mean time in the system, and its gradient by the mean services."""

    kind = "queueing"
    dtype = "float64"
    size = dict(customers=400, stations=5, buffer=3, replications=8)
    small = dict(customers=9, stations=3, buffer=1, replications=2)

    def make(self, random, customers, stations, buffer, replications):
        means = 0.7 + 0.25 * random.random(stations)
        arrivals = np.cumsum(random.exponential(1.0, size=(replications, customers)), axis=1)
        return means, arrivals, random.exponential(1.0, size=(replications, customers, stations))

    def rscan(self, customers, stations, buffer, replications):
        def mean_time(means, arrivals, work):
            def customer(arrival, work, left):
                old, one_ago = left
                room = rs.concatenate([old[1:], rs.full(1, -1.0)])  # when a place at the next station became free

                def station(service, before, free, t):
                    return rs.maximum(rs.maximum(t, before) + service, free)

                over = dict(service=means * work, before=one_ago, free=room)
                return dict(left=rs.loop(station, over=over, init=dict(t=arrival)).t)

            start = dict(left=rs.taps(rs.full((buffer + 1, stations), -1.0), -buffer - 1, -1))
            out = rs.loop(customer, over=dict(arrival=arrivals, work=work), init=start)
            return rs.mean(out.left[:, -1] - arrivals)

        return rs.compile(rs.vmap(rs.value_and_grad(mean_time), in_axes=(None, 0, 0)))

    def jax(self, customers, stations, buffer, replications):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def mean_time(means, arrivals, work):
            def customer(history, x):
                arrival, service = x
                room = jnp.concatenate([history[0, 1:], jnp.full(1, -1.0)])

                def station(t, x):
                    service, before, free = x
                    t = jnp.maximum(jnp.maximum(t, before) + service, free)
                    return t, t

                t, left = lax.scan(station, arrival, (service, history[-1], room))
                return jnp.concatenate([history[1:], left[None]]), t

            _, leaving = lax.scan(customer, jnp.full((buffer + 1, stations), -1.0), (arrivals, means * work))
            return jnp.mean(leaving - arrivals)

        return jax.jit(jax.vmap(jax.value_and_grad(mean_time), in_axes=(None, 0, 0)))


class DeficitRoundRobin(Model):
    """A packet scheduler: flows with ring buffers, deficits in bytes, rounds that begin at another flow each time, a link with a budget."""

    kind = "queueing"
    dtype = "int64"
    size = dict(slots=250, flows=6, ring=16)
    small = dict(slots=6, flows=3, ring=4)

    def make(self, random, slots, flows, ring):
        rate = np.linspace(0.3, 0.9, flows)
        sizes = np.where(random.random((slots, flows)) < rate, random.integers(40, 1500, size=(slots, flows)), 0)
        return sizes, np.full(flows, 500) + 100 * np.arange(flows), 2500

    def rscan(self, slots, flows, ring):
        @rs.compile
        def schedule(sizes, quantum, capacity):
            every = rs.arange(flows)

            def slot(size, now, packets, head, count, deficit, lost, sent):
                fits = (size > 0) & (count < ring)
                place = (head + count) % ring
                packets = packets.at[every, place].set(rs.where(fits, size, packets[every, place]))
                lost = lost + ((size > 0) & ~fits)
                count = count + fits

                def visit(i, head, count, deficit, budget, sent):
                    f = (now + i) % flows
                    queue = packets[f]

                    def send(h, n, d, b, bytes_sent):
                        p = queue[h]
                        go = (n > 0) & (p <= d) & (p <= b)
                        new = dict(
                            h=rs.where(go, (h + 1) % ring, h), n=n - go, d=rs.where(go, d - p, d),
                            b=rs.where(go, b - p, b), bytes_sent=bytes_sent + rs.where(go, p, 0),
                        )  # fmt: skip
                        return new, rs.until(~go)

                    d = rs.where(count[f] > 0, deficit[f] + quantum[f], 0)
                    start = dict(h=head[f], n=count[f], d=d, b=budget, bytes_sent=0)
                    end = rs.loop(send, init=start, n_steps=ring + 1).last
                    return dict(
                        head=head.at[f].set(end.h), count=count.at[f].set(end.n), budget=end.b,
                        deficit=deficit.at[f].set(rs.where(end.n > 0, end.d, 0)), sent=sent.at[f].add(end.bytes_sent),
                    )  # fmt: skip

                start = dict(head=head, count=count, deficit=deficit, budget=capacity, sent=sent)
                end = rs.loop(visit, over=dict(i=every), init=start).last
                return dict(
                    packets=packets, head=end.head, count=end.count, deficit=end.deficit, lost=lost, sent=end.sent,
                    idle=end.budget, waiting=end.count,
                )  # fmt: skip

            none = rs.zeros(flows, dtype="int64")
            start = dict(packets=rs.zeros((flows, ring), dtype="int64"), head=none, count=none, deficit=none, lost=none, sent=none)
            out = rs.loop(slot, over=dict(size=sizes, now=rs.arange(slots)), init=start)
            return out.last.sent, out.last.lost, out.waiting, out.idle

        return schedule

    def jax(self, slots, flows, ring):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def schedule(sizes, quantum, capacity):
            every = jnp.arange(flows)

            def slot(state, x):
                packets, head, count, deficit, lost, sent = state
                size, now = x
                fits = (size > 0) & (count < ring)
                place = (head + count) % ring
                packets = packets.at[every, place].set(jnp.where(fits, size, packets[every, place]))
                lost = lost + ((size > 0) & ~fits)
                count = count + fits

                def visit(i, state):
                    head, count, deficit, budget, sent = state
                    f = (now + i) % flows
                    queue = packets[f]

                    def going(state):
                        h, n, d, b = state
                        return (n > 0) & (queue[h] <= d) & (queue[h] <= b)

                    def send(state):
                        h, n, d, b = state
                        return (h + 1) % ring, n - 1, d - queue[h], b - queue[h]

                    d = jnp.where(count[f] > 0, deficit[f] + quantum[f], 0)
                    h, n, d, b = lax.while_loop(going, send, (head[f], count[f], d, budget))
                    deficit = deficit.at[f].set(jnp.where(n > 0, d, 0))
                    return head.at[f].set(h), count.at[f].set(n), deficit, b, sent.at[f].add(budget - b)

                head, count, deficit, budget, sent = lax.fori_loop(0, flows, visit, (head, count, deficit, capacity, sent))
                return (packets, head, count, deficit, lost, sent), (count, budget)

            none = jnp.zeros(flows, dtype="int64")
            start = jnp.zeros((flows, ring), dtype="int64"), none, none, none, none, none
            last, (waiting, idle) = lax.scan(slot, start, (sizes, jnp.arange(slots)))
            return last[5], last[4], waiting, idle

        return jax.jit(schedule)


class GrundyValues(Model):
    """Sprague and Grundy's values of octal games: heaps that shrink or split, the least number that no move reaches; games at once."""

    kind = "games"
    dtype = "int64"
    size = dict(heaps=120, games=4)
    small = dict(heaps=12, games=2)

    def make(self, random, heaps, games):
        known = np.array([[0, 7, 0], [7, 7, 0], [0, 0, 7], [3, 3, 3], [4, 5, 6], [6, 0, 4]])  # Dawson's Kayles, Kayles, ...
        return (known[:games],)

    def rscan(self, heaps, games):
        def values(octal):
            a = rs.arange(heaps + 1)

            def heap(n, g):
                reached = rs.zeros(129, dtype="bool")  # the last place is for what is no move
                for take in (1, 2, 3):
                    rules, rest = octal[take - 1], n - take
                    reached = reached.at[rs.where((rules & 1 > 0) & (rest == 0), 0, 128)].set(True)
                    whole = (rules & 2 > 0) & (rest > 0)
                    reached = reached.at[rs.where(whole, g[rs.maximum(rest, 0)], 128)].set(True)
                    b = rest - a
                    splits = (rules & 4 > 0) & (a > 0) & (b > 0)
                    both = g ^ g[rs.maximum(b, 0)]
                    reached = reached.at[rs.where(splits, both, 128)].set(True)
                return dict(g=g.at[n].set(rs.argmin(reached)))

            g = rs.loop(heap, over=dict(n=rs.arange(1, heaps + 1)), init=dict(g=rs.zeros(heaps + 1, dtype="int64"))).last.g
            lost = g == 0
            return g, rs.sum(lost), rs.max(rs.where(lost, a, 0)), rs.max(g)

        return rs.compile(rs.vmap(values))

    def jax(self, heaps, games):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def values(octal):
            a = jnp.arange(heaps + 1)

            def heap(n, g):
                reached = jnp.zeros(129, dtype=bool)
                for take in (1, 2, 3):
                    rules, rest = octal[take - 1], n - take
                    reached = reached.at[jnp.where((rules & 1 > 0) & (rest == 0), 0, 128)].set(True)
                    whole = (rules & 2 > 0) & (rest > 0)
                    reached = reached.at[jnp.where(whole, g[jnp.maximum(rest, 0)], 128)].set(True)
                    b = rest - a
                    splits = (rules & 4 > 0) & (a > 0) & (b > 0)
                    both = g ^ g[jnp.maximum(b, 0)]
                    reached = reached.at[jnp.where(splits, both, 128)].set(True)
                return g.at[n].set(jnp.argmin(reached))

            g = lax.fori_loop(1, heaps + 1, heap, jnp.zeros(heaps + 1, dtype="int64"))
            lost = g == 0
            return g, jnp.sum(lost), jnp.max(jnp.where(lost, a, 0)), jnp.max(g)

        return jax.jit(jax.vmap(values))
