"""Loops that decide: long branches, special functions, modes, thresholds, rare cases, stops and missing data in the step."""

import numpy as np
import rscan as rs
from models import Model


class TradeDurationsCensored(Model):
    """Waiting times between trades: gamma durations around an autoregressive mean; halts censor them, some are lost."""

    kind = "harbour"
    dtype = "float64"
    size = dict(steps=1500)
    small = dict(steps=25)

    def make(self, random, steps):
        x = random.gamma(1.4, 1.0, size=steps) * np.exp(0.4 * np.sin(np.arange(steps) / 40)) + 1e-3
        status = random.choice(3, p=[0.9, 0.06, 0.04], size=steps)
        x = np.where(status == 2, np.nan, x)
        return np.array([0.02, 0.12, 0.85, 0.3, -0.05]), x, status

    def rscan(self, steps):
        @rs.compile
        def nll(theta, x, status):
            omega, alpha, beta, shape, halt = theta[0], theta[1], theta[2], rs.exp(theta[3]), theta[4]

            def step(x, status, log_mean):
                known = rs.where(status == 2, 1.0, x)
                mean = rs.exp(log_mean)
                z = shape * known / mean
                density = shape * rs.log(z) - rs.log(known) - rs.special.gammaln(shape) - z
                ll = rs.ifelse(
                    status == 1,
                    rs.log(rs.maximum(rs.special.gammaincc(shape, z), 1e-280)),
                    rs.where(status == 2, 0.0, density),
                )
                surprise = rs.where(
                    status == 0,
                    rs.log(known / mean),
                    rs.where(status == 1, rs.log1p(known / mean) + halt, 0.0),
                )
                surprise = rs.where(surprise < -3.0, -3.0 + 0.1 * (surprise + 3.0), surprise)
                return dict(log_mean=omega + alpha * surprise + beta * log_mean, ll=ll)

            out = rs.loop(step, over=dict(x=x, status=status), init=dict(log_mean=omega / (1.0 - beta)))
            return -rs.sum(out.ll) / x.shape[0]

        return rs.value_and_grad(nll)

    def jax(self, steps):
        import jax
        import jax.numpy as jnp
        from jax.scipy.special import gammaincc, gammaln

        def nll(theta, x, status):
            omega, alpha, beta, log_shape, halt = theta
            shape = jnp.exp(log_shape)

            def step(log_mean, row):
                x, status = row
                known = jnp.where(status == 2, 1.0, x)
                mean = jnp.exp(log_mean)
                z = shape * known / mean
                density = shape * jnp.log(z) - jnp.log(known) - gammaln(shape) - z
                ll = jax.lax.cond(
                    status == 1,
                    lambda: jnp.log(jnp.maximum(gammaincc(shape, z), 1e-280)),
                    lambda: jnp.where(status == 2, 0.0, density),
                )
                surprise = jnp.where(
                    status == 0,
                    jnp.log(known / mean),
                    jnp.where(status == 1, jnp.log1p(known / mean) + halt, 0.0),
                )
                surprise = jnp.where(surprise < -3.0, -3.0 + 0.1 * (surprise + 3.0), surprise)
                return omega + alpha * surprise + beta * log_mean, ll

            _, ll = jax.lax.scan(step, omega / (1.0 - beta), (x, status))
            return -jnp.sum(ll) / x.shape[0]

        return jax.jit(jax.value_and_grad(nll))


class WindVaneHeadings(Model):
    """The direction of the wind as an angle that is followed: von Mises errors of a width that speed tells, calms, outliers."""

    kind = "harbour"
    dtype = "float64"
    size = dict(steps=1500)
    small = dict(steps=20)

    def make(self, random, steps):
        heading = np.cumsum(0.02 + 0.08 * random.normal(size=steps)) + 5.5
        speed = random.gamma(2.0, 2.0, size=steps)
        y = (heading + random.vonmises(0.0, 1.0 + 6.0 * speed / (speed + 3.0))) % (2 * np.pi)
        y = np.where(random.uniform(size=steps) < 0.03, random.uniform(0, 2 * np.pi, size=steps), y)
        return dict(peak=8.0, half=2.5, gain=0.7, veer=0.01, rogue=-3.0), y, speed

    def rscan(self, steps):
        turn = 2 * np.pi

        @rs.compile
        def nll(p, y, speed):
            rogue = rs.sigmoid(p["rogue"])

            def step(y, v, mu):
                error = (y - mu + np.pi) % turn - np.pi
                kappa = p["peak"] * v / (v + p["half"])
                log_density = kappa * (rs.cos(error) - 1.0) - rs.log(turn * rs.special.i0e(kappa))
                ll = rs.logaddexp(rs.log1p(-rogue) + log_density, rs.log(rogue / turn))
                resultant = rs.special.i1e(kappa) / rs.special.i0e(kappa)
                gain = p["gain"] * resultant / (resultant + 0.3)
                calm = v < 0.6
                moved = rs.where(calm, mu + p["veer"], mu + p["veer"] + gain * rs.sin(error))
                return dict(mu=moved % turn, ll=rs.where(calm, 0.0, ll))

            out = rs.loop(step, over=dict(y=y, v=speed), init=dict(mu=y[0]))
            return -rs.mean(out.ll)

        return rs.value_and_grad(nll)

    def jax(self, steps):
        import jax
        import jax.numpy as jnp
        from jax.scipy.special import i0e, i1e

        turn = 2 * np.pi

        def nll(p, y, speed):
            rogue = jax.nn.sigmoid(p["rogue"])

            def step(mu, row):
                y, v = row
                error = (y - mu + np.pi) % turn - np.pi
                kappa = p["peak"] * v / (v + p["half"])
                log_density = kappa * (jnp.cos(error) - 1.0) - jnp.log(turn * i0e(kappa))
                ll = jnp.logaddexp(jnp.log1p(-rogue) + log_density, jnp.log(rogue / turn))
                resultant = i1e(kappa) / i0e(kappa)
                gain = p["gain"] * resultant / (resultant + 0.3)
                calm = v < 0.6
                moved = jnp.where(calm, mu + p["veer"], mu + p["veer"] + gain * jnp.sin(error))
                return moved % turn, jnp.where(calm, 0.0, ll)

            return -jnp.mean(jax.lax.scan(step, y[0], (y, speed))[1])

        return jax.jit(jax.value_and_grad(nll))


class HatchedBroodsHessian(Model):
    """Eggs hatched per nest, beta-binomial around a survival that follows its score; nests without chicks go unseen in some years."""

    kind = "harbour"
    dtype = "float64"
    size = dict(nests=300)
    small = dict(nests=15)

    def make(self, random, nests):
        eggs = random.integers(2, 15, size=nests)
        survival = 1 / (1 + np.exp(-(0.4 + 0.6 * np.sin(np.arange(nests) / 25))))
        hatched = random.binomial(eggs, random.beta(6 * survival, 6 * (1 - survival)))
        truncated = random.uniform(size=nests) < 0.3
        hatched = np.where(truncated, np.maximum(hatched, 1), hatched)
        hatched = np.where(random.uniform(size=nests) < 0.07, -1, hatched)
        return np.array([0.4, 0.9, 0.3, 1.8]), eggs.astype(float), hatched.astype(float), truncated

    def rscan(self, nests):
        sp = rs.special

        @rs.compile
        def nll(theta, eggs, hatched, truncated):
            centre, persistence, feedback, phi = theta[0], theta[1], theta[2], rs.exp(theta[3])

            def step(n, y, truncated, s):
                lost = y < 0
                y = rs.where(lost, 0.0, y)
                p = rs.sigmoid(s)
                a, b = p * phi, (1.0 - p) * phi
                ways = sp.gammaln(n + 1.0) - sp.gammaln(y + 1.0) - sp.gammaln(n - y + 1.0)
                ll = ways + sp.betaln(y + a, n - y + b) - sp.betaln(a, b)
                none = rs.exp(sp.betaln(a, n + b) - sp.betaln(a, b))
                ll = rs.where(truncated, ll - rs.log1p(-none), ll)
                score = phi * p * (1.0 - p) * (sp.digamma(y + a) - sp.digamma(n - y + b) - sp.digamma(a) + sp.digamma(b))
                score = rs.where(lost, 0.0, score * (phi + 1.0) / (phi + n))
                return dict(s=centre + persistence * (s - centre) + feedback * score, ll=rs.where(lost, 0.0, ll))

            out = rs.loop(step, over=dict(n=eggs, y=hatched, truncated=truncated), init=dict(s=centre))
            return -rs.sum(out.ll)

        return rs.compile(rs.hessian(nll))

    def jax(self, nests):
        import jax
        import jax.numpy as jnp
        from jax.scipy.special import digamma, gammaln

        def betaln(a, b):  # the derivatives of jax.scipy.special.betaln are wrong for a, b > 8 (its approximation is differentiated)
            return gammaln(a) + gammaln(b) - gammaln(a + b)

        def nll(theta, eggs, hatched, truncated):
            centre, persistence, feedback, log_phi = theta
            phi = jnp.exp(log_phi)

            def step(s, row):
                n, y, truncated = row
                lost = y < 0
                y = jnp.where(lost, 0.0, y)
                p = jax.nn.sigmoid(s)
                a, b = p * phi, (1.0 - p) * phi
                ways = gammaln(n + 1.0) - gammaln(y + 1.0) - gammaln(n - y + 1.0)
                ll = ways + betaln(y + a, n - y + b) - betaln(a, b)
                none = jnp.exp(betaln(a, n + b) - betaln(a, b))
                ll = jnp.where(truncated, ll - jnp.log1p(-none), ll)
                score = phi * p * (1.0 - p) * (digamma(y + a) - digamma(n - y + b) - digamma(a) + digamma(b))
                score = jnp.where(lost, 0.0, score * (phi + 1.0) / (phi + n))
                return centre + persistence * (s - centre) + feedback * score, jnp.where(lost, 0.0, ll)

            return -jnp.sum(jax.lax.scan(step, centre, (eggs, hatched, truncated))[1])

        return jax.jit(jax.hessian(nll))


class CyclicSteelCoupon(Model):
    """A steel bar pulled and pushed: elastic, or a return mapping by Newton's method that stops; bars buckle after some yielding."""

    kind = "harbour"
    dtype = "float64"
    size = dict(steps=1200)
    small = dict(steps=30)

    def make(self, random, steps):
        t = np.arange(steps)
        strain = 0.012 * (0.2 + t / steps) * np.sin(2 * np.pi * t / max(steps / 12, 12))
        stress = 380.0 * np.tanh(strain / 0.002) + 10.0 * random.normal(size=steps)
        p = dict(modulus=200e3, yielding=300.0, saturation=80.0, rate=12.0, kinematic=30e3, recall=250.0)
        return p, strain, stress

    def rscan(self, steps):
        @rs.compile
        def misfit(p, strain, stress):
            def step(strain, observed, plastic, back, slipped):
                trial = p["modulus"] * (strain - plastic)
                side = rs.where(trial - back >= 0.0, 1.0, -1.0)
                strength = p["yielding"] + p["saturation"] * (1.0 - rs.exp(-p["rate"] * slipped))
                overshoot = rs.abs(trial - back) - strength

                def newton(slip):
                    fade = 1.0 + p["recall"] * slip
                    moved = (back + p["kinematic"] * slip * side) / fade
                    drag = p["saturation"] * rs.exp(-p["rate"] * (slipped + slip))
                    residual = side * (trial - moved) - p["modulus"] * slip - (p["yielding"] + p["saturation"] - drag)
                    slope = -p["modulus"] - side * (p["kinematic"] * side - p["recall"] * moved) / fade - p["rate"] * drag
                    new = rs.maximum(slip - residual / slope, 0.0)
                    return new, rs.until(rs.abs(new - slip) < 1e-13)

                slip = rs.ifelse(
                    overshoot > 0.0,
                    rs.loop(newton, init=overshoot / (p["modulus"] + p["kinematic"]), n_steps=12).last,
                    0.0 * overshoot,
                )
                plastic = plastic + side * slip
                back = (back + p["kinematic"] * slip * side) / (1.0 + p["recall"] * slip)
                slipped = slipped + slip
                stress = p["modulus"] * (strain - plastic)
                stress = rs.where((stress < 0.0) & (slipped > 0.05), stress / (1.0 + 2.0 * (slipped - 0.05)), stress)
                return dict(plastic=plastic, back=back, slipped=slipped, error=(stress - observed) / 100.0)

            out = rs.loop(step, over=dict(strain=strain, observed=stress), init=dict(plastic=0.0, back=0.0, slipped=0.0))
            return rs.mean(out.error**2)

        return rs.value_and_grad(misfit)

    def jax(self, steps):
        import jax
        import jax.numpy as jnp

        def misfit(p, strain, stress):
            def step(carry, row):
                plastic, back, slipped = carry
                strain, observed = row
                trial = p["modulus"] * (strain - plastic)
                side = jnp.where(trial - back >= 0.0, 1.0, -1.0)
                strength = p["yielding"] + p["saturation"] * (1.0 - jnp.exp(-p["rate"] * slipped))
                overshoot = jnp.abs(trial - back) - strength

                def newton(carry, _):
                    slip, done = carry
                    fade = 1.0 + p["recall"] * slip
                    moved = (back + p["kinematic"] * slip * side) / fade
                    drag = p["saturation"] * jnp.exp(-p["rate"] * (slipped + slip))
                    residual = side * (trial - moved) - p["modulus"] * slip - (p["yielding"] + p["saturation"] - drag)
                    slope = -p["modulus"] - side * (p["kinematic"] * side - p["recall"] * moved) / fade - p["rate"] * drag
                    new = jnp.where(done, slip, jnp.maximum(slip - residual / slope, 0.0))
                    return (new, done | (jnp.abs(new - slip) < 1e-13)), None

                slip = jax.lax.cond(
                    overshoot > 0.0,
                    lambda: jax.lax.scan(newton, (overshoot / (p["modulus"] + p["kinematic"]), False), length=12)[0][0],
                    lambda: 0.0 * overshoot,
                )
                plastic = plastic + side * slip
                back = (back + p["kinematic"] * slip * side) / (1.0 + p["recall"] * slip)
                slipped = slipped + slip
                stress = p["modulus"] * (strain - plastic)
                stress = jnp.where((stress < 0.0) & (slipped > 0.05), stress / (1.0 + 2.0 * (slipped - 0.05)), stress)
                return (plastic, back, slipped), (stress - observed) / 100.0

            _, error = jax.lax.scan(step, (0.0, 0.0, 0.0), (strain, stress))
            return jnp.mean(error**2)

        return jax.jit(jax.value_and_grad(misfit))


class HouseholdTaxLedger(Model):
    """Forty years of taxes of many households: brackets, allowances that taper, losses carried forward, benefits, debts."""

    kind = "harbour"
    dtype = "float32"
    size = dict(households=800, years=40)
    small = dict(households=5, years=6)

    def make(self, random, households, years):
        wage = random.lognormal(10.6, 0.7, size=(households, 1)) * np.exp(
            0.02 * np.arange(years) + 0.1 * random.normal(size=(households, years))
        )
        wage = np.where(random.uniform(size=(households, years)) < 0.05, 0.0, wage)
        gain = 6000 * random.standard_t(3, size=(households, years))
        children = random.integers(0, 4, size=(households, years))
        start = 30000 * random.normal(size=households) + 20000
        return wage.astype("f4"), gain.astype("f4"), children.astype("i4"), start.astype("f4")

    def rscan(self, households, years):
        def household(wage, gain, children, start):
            def step(wage, gain, children, wealth, losses, pot):
                rate = rs.where(wealth < 0.0, 0.08, rs.where(wealth < 10000.0, 0.01, 0.03))
                interest = rs.cast(rate, "float32") * wealth
                paid_in = rs.where(wage > 10000.0, 0.05 * rs.minimum(wage - 6000.0, 44000.0), 0.0)
                income = wage + rs.maximum(interest, 0.0) - paid_in
                allowance = rs.clip(12570.0 - 0.5 * rs.maximum(income - 100000.0, 0.0), 0.0, 12570.0)
                taxable = rs.maximum(income - allowance, 0.0)
                tax = rs.where(
                    taxable <= 37700.0,
                    0.2 * taxable,
                    rs.where(taxable <= 125140.0, 7540.0 + 0.4 * (taxable - 37700.0), 42516.0 + 0.45 * (taxable - 125140.0)),
                )
                insured = rs.where(wage < 12570.0, 0.0, rs.where(wage < 50270.0, 0.08 * (wage - 12570.0), 3016.0 + 0.02 * (wage - 50270.0)))
                net = gain - losses
                losses = rs.maximum(-net, 0.0)
                chargeable = rs.maximum(net - 3000.0, 0.0)
                basic_left = rs.maximum(37700.0 - taxable, 0.0)
                on_gain = 0.18 * rs.minimum(chargeable, basic_left) + 0.24 * rs.maximum(chargeable - basic_left, 0.0)
                heads = rs.cast(children, "float32")
                benefit = rs.where(children == 0, 0.0, 1331.0 + 881.0 * (heads - 1.0))
                kept = 1.0 - rs.clip((income - 60000.0) / 20000.0, 0.0, 1.0)
                estate = rs.where(wealth > 500000.0, 0.01 * (wealth - 500000.0), 0.0)
                total = tax + insured + on_gain + estate - benefit * kept
                spent = 9000.0 + 3000.0 * heads + 0.7 * rs.maximum(income - total - 9000.0, 0.0)
                wealth = rs.maximum(wealth + income + gain + rs.minimum(interest, 0.0) - total - spent, -60000.0)
                effective = rs.where(income > 1.0, total / rs.maximum(income, 1.0), 0.0)
                return dict(wealth=wealth, losses=losses, pot=1.04 * pot + 1.6 * paid_in, effective=rs.clip(effective, -1.0, 1.0))

            zero = np.float32(0.0)
            out = rs.loop(step, over=dict(wage=wage, gain=gain, children=children), init=dict(wealth=start, losses=zero, pot=zero))
            return out.last.wealth, out.last.pot, rs.mean(out.effective)

        return rs.compile(rs.vmap(household))

    def jax(self, households, years):
        import jax
        import jax.numpy as jnp

        def household(wage, gain, children, start):
            def step(carry, row):
                wealth, losses, pot = carry
                wage, gain, children = row
                rate = jnp.where(wealth < 0.0, 0.08, jnp.where(wealth < 10000.0, 0.01, 0.03)).astype(jnp.float32)
                interest = rate * wealth
                paid_in = jnp.where(wage > 10000.0, 0.05 * jnp.minimum(wage - 6000.0, 44000.0), 0.0)
                income = wage + jnp.maximum(interest, 0.0) - paid_in
                allowance = jnp.clip(12570.0 - 0.5 * jnp.maximum(income - 100000.0, 0.0), 0.0, 12570.0)
                taxable = jnp.maximum(income - allowance, 0.0)
                tax = jnp.where(
                    taxable <= 37700.0,
                    0.2 * taxable,
                    jnp.where(taxable <= 125140.0, 7540.0 + 0.4 * (taxable - 37700.0), 42516.0 + 0.45 * (taxable - 125140.0)),
                )
                insured = jnp.where(
                    wage < 12570.0, 0.0, jnp.where(wage < 50270.0, 0.08 * (wage - 12570.0), 3016.0 + 0.02 * (wage - 50270.0))
                )
                net = gain - losses
                losses = jnp.maximum(-net, 0.0)
                chargeable = jnp.maximum(net - 3000.0, 0.0)
                basic_left = jnp.maximum(37700.0 - taxable, 0.0)
                on_gain = 0.18 * jnp.minimum(chargeable, basic_left) + 0.24 * jnp.maximum(chargeable - basic_left, 0.0)
                heads = children.astype(jnp.float32)
                benefit = jnp.where(children == 0, 0.0, 1331.0 + 881.0 * (heads - 1.0))
                kept = 1.0 - jnp.clip((income - 60000.0) / 20000.0, 0.0, 1.0)
                estate = jnp.where(wealth > 500000.0, 0.01 * (wealth - 500000.0), 0.0)
                total = tax + insured + on_gain + estate - benefit * kept
                spent = 9000.0 + 3000.0 * heads + 0.7 * jnp.maximum(income - total - 9000.0, 0.0)
                wealth = jnp.maximum(wealth + income + gain + jnp.minimum(interest, 0.0) - total - spent, -60000.0)
                effective = jnp.where(income > 1.0, total / jnp.maximum(income, 1.0), 0.0)
                return (wealth, losses, 1.04 * pot + 1.6 * paid_in), jnp.clip(effective, -1.0, 1.0)

            zero = jnp.float32(0.0)
            (wealth, _, pot), effective = jax.lax.scan(step, (start, zero, zero), (wage, gain, children))
            return wealth, pot, jnp.mean(effective)

        return jax.jit(jax.vmap(household))


class WardPatientsJourney(Model):
    """Patients with an infection go from ward to intensive care and ventilator until they go home or die; doses come by the hour."""

    kind = "harbour"
    dtype = "int32"
    size = dict(patients=400, hours=300)
    small = dict(patients=6, hours=60)
    rtol = 1e-8

    def make(self, random, patients, hours):
        load = random.lognormal(1.0, 1.0, size=patients)
        frailty = random.beta(2, 3, size=patients)
        return load, frailty, random.normal(size=(patients, hours))

    def rscan(self, patients, hours):
        home, dead = 3, 4

        def patient(load, frailty, noise):
            def step(noise, hour, load, fire, drug, lactate, mode, since, cost):
                # a dose every 8 hours on the ward, every 6 in intensive care, every 4 at the ventilator
                every = rs.choose(mode, [8, 6, 4, 8, 8])
                drug = drug + rs.where(hour % every == 0, 4.0, 0.0)
                drug = drug - 1.2 * drug / (2.0 + drug)
                effect = drug**2 / (drug**2 + 2.25)
                load = load + load * (0.14 * (1.0 - load / 40.0) - 0.33 * effect - 0.05 * fire / (1.0 + fire)) + 0.03 * load * noise
                load = rs.maximum(load, 0.0)
                fire = fire + 0.25 * load / (3.0 + load) - 0.09 * fire
                support = rs.choose(mode, [0.0, 0.03, 0.06, 0.0, 0.0])
                lactate = rs.maximum(
                    lactate + 0.35 * fire * (0.5 + frailty) / (1.0 + fire) - (0.05 + support) * lactate + 0.05 * noise, 0.05
                )
                risk = (fire + lactate * (0.7 + frailty)) / (1.0 + 0.2 * support * since)
                after = rs.choose(
                    mode,
                    [
                        rs.where(risk > 2.0, 1, rs.where((load < 0.1) & (since > 12), home, 0)),
                        rs.where(risk > 3.2, 2, rs.where((risk < 1.2) & (since > 6), 0, 1)),
                        rs.where(risk > 4.0, dead, rs.where((risk < 1.6) & (since > 24), 1, 2)),
                        home,
                        dead,
                    ],
                )
                since = rs.where(after == mode, since + 1, 0)
                cost = cost + rs.choose(mode, [20.0, 90.0, 160.0, 0.0, 0.0]) + rs.where(after != mode, 35.0, 0.0)
                states = dict(
                    load=load, fire=fire, drug=drug, lactate=lactate, mode=rs.cast(after, "int32"), since=rs.cast(since, "int32"), cost=cost
                )
                return states, rs.until(after >= home)

            out = rs.loop(
                step,
                over=dict(noise=noise, hour=rs.arange(noise.shape[0])),
                init=dict(load=load, fire=0.2, drug=0.0, lactate=1.0, mode=np.int32(0), since=np.int32(0), cost=0.0),
            )
            return dict(mode=out.last.mode, hours=out.steps, cost=out.last.cost, lactate=out.last.lactate)

        return rs.compile(rs.vmap(patient))

    def jax(self, patients, hours):
        import jax
        import jax.numpy as jnp

        home, dead = 3, 4

        def patient(load, frailty, noise):
            def going(carry):
                hour, states = carry
                return (hour < noise.shape[0]) & (states[4] < home)

            def step(carry):
                hour, (load, fire, drug, lactate, mode, since, cost) = carry
                e = noise[hour]
                every = jnp.array([8, 6, 4, 8, 8])[mode]
                drug = drug + jnp.where(hour % every == 0, 4.0, 0.0)
                drug = drug - 1.2 * drug / (2.0 + drug)
                effect = drug**2 / (drug**2 + 2.25)
                load = load + load * (0.14 * (1.0 - load / 40.0) - 0.33 * effect - 0.05 * fire / (1.0 + fire)) + 0.03 * load * e
                load = jnp.maximum(load, 0.0)
                fire = fire + 0.25 * load / (3.0 + load) - 0.09 * fire
                support = jnp.array([0.0, 0.03, 0.06, 0.0, 0.0])[mode]
                lactate = jnp.maximum(lactate + 0.35 * fire * (0.5 + frailty) / (1.0 + fire) - (0.05 + support) * lactate + 0.05 * e, 0.05)
                risk = (fire + lactate * (0.7 + frailty)) / (1.0 + 0.2 * support * since)
                after = jnp.select(
                    [mode == 0, mode == 1, mode == 2],
                    [
                        jnp.where(risk > 2.0, 1, jnp.where((load < 0.1) & (since > 12), home, 0)),
                        jnp.where(risk > 3.2, 2, jnp.where((risk < 1.2) & (since > 6), 0, 1)),
                        jnp.where(risk > 4.0, dead, jnp.where((risk < 1.6) & (since > 24), 1, 2)),
                    ],
                    mode,
                ).astype(jnp.int32)
                since = jnp.where(after == mode, since + 1, 0)
                cost = cost + jnp.array([20.0, 90.0, 160.0, 0.0, 0.0])[mode] + jnp.where(after != mode, 35.0, 0.0)
                return hour + 1, (load, fire, drug, lactate, after, since, cost)

            start = (load, 0.2, 0.0, 1.0, jnp.int32(0), jnp.int32(0), 0.0)
            hour, (_, _, _, lactate, mode, _, cost) = jax.lax.while_loop(going, step, (0, start))
            return dict(mode=mode, hours=hour, cost=cost, lactate=lactate)

        return jax.jit(jax.vmap(patient))


class ParaffinHeatStore(Model):
    """A slab of paraffin that melts and freezes behind a wall with water: enthalpies, a mushy zone, sensors that drop out."""

    kind = "harbour"
    dtype = "float32"
    size = dict(steps=500, cells=32)
    small = dict(steps=15, cells=6)

    def make(self, random, steps, cells):
        t = np.arange(steps)
        water = 25.0 * np.sign(np.sin(2 * np.pi * t / max(steps / 3, 8))) + 2.0 * random.normal(size=steps)
        sensors = 5.0 * np.sin(t / 60)[:, None] + random.normal(size=(steps, 2))
        sensors[random.uniform(size=(steps, 2)) < 0.15] = np.nan
        theta = np.array([0.24, 0.15, 4.0, 0.5])
        return theta.astype("f4"), water.astype("f4"), sensors.astype("f4"), (-0.2 + 0.05 * random.normal(size=cells)).astype("f4")

    def rscan(self, steps, cells):
        @rs.compile
        def misfit(theta, water, sensors, start):
            solid, liquid, latent, film = theta[0], theta[1], theta[2], theta[3]

            def temperature(h):
                return rs.where(h < 0.0, h / 0.1, rs.where(h <= latent, 0.5 * h / latent, 0.5 + (h - latent) / 0.12))

            def step(water, observed, h):
                temp = temperature(h)
                melted = rs.clip(h / latent, 0.0, 1.0)
                k = 1.0 / ((1.0 - melted) / solid + melted / liquid)
                face = 2.0 * k[1:] * k[:-1] / (k[1:] + k[:-1])
                flux = face * (temp[:-1] - temp[1:])
                # free convection where the first cell is molten and the water warmer, conduction through the wall otherwise
                drop = water - temp[0]
                stirred = (melted[0] > 0.99) & (drop > 0.0)
                boost = rs.where(stirred, 1.0 + 0.6 * rs.where(stirred, drop, 1.0) ** 0.25, 1.0)
                wall = drop / (1.0 / (film * boost) + 0.5 / k[0])
                wall = rs.where(rs.abs(drop) < 0.05, 0.0, wall)
                h = h + 0.05 * (rs.concatenate([wall[None], flux]) - rs.concatenate([flux, 0.0 * flux[:1]]))
                seen = temperature(h)
                seen = rs.stack([seen[1], seen[cells // 2]])
                error = rs.where(rs.isnan(observed), 0.0, seen - rs.where(rs.isnan(observed), 0.0, observed))
                return dict(h=h, cost=rs.sum(rs.where(rs.abs(error) < 3.0, 0.5 * error**2, 3.0 * rs.abs(error) - 4.5)))

            out = rs.loop(step, over=dict(water=water, observed=sensors), init=dict(h=start))
            return rs.mean(out.cost)

        return rs.value_and_grad(misfit)

    def jax(self, steps, cells):
        import jax
        import jax.numpy as jnp

        def misfit(theta, water, sensors, start):
            solid, liquid, latent, film = theta

            def temperature(h):
                return jnp.where(h < 0.0, h / 0.1, jnp.where(h <= latent, 0.5 * h / latent, 0.5 + (h - latent) / 0.12))

            def step(h, row):
                water, observed = row
                temp = temperature(h)
                melted = jnp.clip(h / latent, 0.0, 1.0)
                k = 1.0 / ((1.0 - melted) / solid + melted / liquid)
                face = 2.0 * k[1:] * k[:-1] / (k[1:] + k[:-1])
                flux = face * (temp[:-1] - temp[1:])
                drop = water - temp[0]
                stirred = (melted[0] > 0.99) & (drop > 0.0)
                boost = jnp.where(stirred, 1.0 + 0.6 * jnp.where(stirred, drop, 1.0) ** 0.25, 1.0)
                wall = drop / (1.0 / (film * boost) + 0.5 / k[0])
                wall = jnp.where(jnp.abs(drop) < 0.05, 0.0, wall)
                h = h + 0.05 * (jnp.concatenate([wall[None], flux]) - jnp.concatenate([flux, jnp.zeros(1, flux.dtype)]))
                seen = temperature(h)
                seen = jnp.stack([seen[1], seen[cells // 2]])
                error = jnp.where(jnp.isnan(observed), 0.0, seen - jnp.where(jnp.isnan(observed), 0.0, observed))
                return h, jnp.sum(jnp.where(jnp.abs(error) < 3.0, 0.5 * error**2, 3.0 * jnp.abs(error) - 4.5))

            return jnp.mean(jax.lax.scan(step, start, (water, sensors))[1])

        return jax.jit(jax.value_and_grad(misfit))


class DiscsOnTable(Model):
    """Hard discs in a box from one collision to the next: the earliest of all pairs and walls is found and carried out."""

    kind = "harbour"
    dtype = "float64"
    size = dict(side=4, events=80)
    small = dict(side=2, events=12)
    rtol = 1e-5

    def make(self, random, side, events):
        grid = (np.arange(side) + 0.5) / side
        position = np.stack(np.meshgrid(grid, grid), -1).reshape(-1, 2) + random.uniform(-0.02, 0.02, size=(side * side, 2))
        return position, random.normal(size=(side * side, 2)), 0.25 / side

    def rscan(self, side, events):
        n = side * side

        @rs.compile
        def run(position, velocity, radius):
            def step(x, v, time, hits):
                room = rs.where(v > 0.0, 1.0 - radius - x, radius - x)
                to_wall = rs.where(v == 0.0, np.inf, rs.maximum(room / rs.where(v == 0.0, 1.0, v), 0.0))
                dx, dv = x[:, None, :] - x[None, :, :], v[:, None, :] - v[None, :, :]
                b, speed = rs.sum(dx * dv, axis=-1), rs.sum(dv * dv, axis=-1)
                gap = rs.sum(dx * dx, axis=-1) - 4.0 * radius**2
                root = b * b - speed * gap
                meets = (b < 0.0) & (root > 0.0) & (speed > 0.0)
                to_pair = rs.where(meets, (-b - rs.sqrt(rs.where(meets, root, 1.0))) / rs.where(meets, speed, 1.0), np.inf)
                to_pair = rs.maximum(to_pair, 0.0)
                at_wall, at_pair = rs.argmin(to_wall.reshape((2 * n,))), rs.argmin(to_pair.reshape((n * n,)))
                wait_wall, wait_pair = rs.min(to_wall), rs.min(to_pair)
                wait = rs.minimum(wait_wall, wait_pair)
                x = x + wait * v
                i, j = at_pair // n, at_pair % n
                line = x[i] - x[j]
                line = line / rs.sqrt(rs.sum(line * line))
                kick = 0.5 * (1.0 + 0.95) * rs.sum((v[i] - v[j]) * line) * line
                disc, axis = at_wall // 2, at_wall % 2
                v = rs.ifelse(wait_pair < wait_wall, v.at[i].add(-kick).at[j].add(kick), v.at[disc, axis].multiply(-0.98))
                return dict(x=x, v=v, time=time + wait, hits=hits + (wait_pair < wait_wall)), rs.until(time + wait > 0.6)

            out = rs.loop(step, init=dict(x=position, v=velocity, time=0.0, hits=0), n_steps=events)
            return out.last.x, out.last.v, out.last.time, out.last.hits

        return run

    def jax(self, side, events):
        import jax
        import jax.numpy as jnp

        n = side * side

        def run(position, velocity, radius):
            def step(carry):
                count, x, v, time, hits = carry
                room = jnp.where(v > 0.0, 1.0 - radius - x, radius - x)
                to_wall = jnp.where(v == 0.0, jnp.inf, jnp.maximum(room / jnp.where(v == 0.0, 1.0, v), 0.0))
                dx, dv = x[:, None, :] - x[None, :, :], v[:, None, :] - v[None, :, :]
                b, speed = jnp.sum(dx * dv, axis=-1), jnp.sum(dv * dv, axis=-1)
                gap = jnp.sum(dx * dx, axis=-1) - 4.0 * radius**2
                root = b * b - speed * gap
                meets = (b < 0.0) & (root > 0.0) & (speed > 0.0)
                to_pair = jnp.where(meets, (-b - jnp.sqrt(jnp.where(meets, root, 1.0))) / jnp.where(meets, speed, 1.0), jnp.inf)
                to_pair = jnp.maximum(to_pair, 0.0)
                at_wall, at_pair = jnp.argmin(to_wall), jnp.argmin(to_pair)
                wait_wall, wait_pair = jnp.min(to_wall), jnp.min(to_pair)
                wait = jnp.minimum(wait_wall, wait_pair)
                x = x + wait * v

                def pair(v):
                    i, j = at_pair // n, at_pair % n
                    line = x[i] - x[j]
                    line = line / jnp.sqrt(jnp.sum(line * line))
                    kick = 0.5 * (1.0 + 0.95) * jnp.sum((v[i] - v[j]) * line) * line
                    return v.at[i].add(-kick).at[j].add(kick)

                v = jax.lax.cond(wait_pair < wait_wall, pair, lambda v: v.at[at_wall // 2, at_wall % 2].multiply(-0.98), v)
                return count + 1, x, v, time + wait, hits + (wait_pair < wait_wall)

            start = 0, position, velocity, 0.0, 0
            _, x, v, time, hits = jax.lax.while_loop(lambda c: (c[0] < events) & (c[3] <= 0.6), step, start)
            return x, v, time, hits

        return jax.jit(run)


class GearboxShiftLogic(Model):
    """A car with an automatic gearbox: locked or slipping clutch, gears that change with hysteresis, fuel by the work done."""

    kind = "harbour"
    dtype = "float64"
    size = dict(steps=2000)
    small = dict(steps=40)

    def make(self, random, steps):
        t = np.arange(steps) * 0.05
        target = 18.0 + 10.0 * np.sin(t / 9) + 4.0 * np.sin(t / 3.3)
        slope = 0.03 * np.sin(t / 14) + 0.005 * random.normal(size=steps)
        p = dict(mass=1400.0, drag=0.7, clutch=420.0, torque=210.0, friction=6.0)
        return p, target, slope

    def rscan(self, steps):
        ratios = np.array([13.0, 8.0, 5.3, 4.0, 3.1])
        dt, wheel, inertia = 0.05, 0.31, 0.25

        @rs.compile
        def cost(p, target, slope):
            def step(target, slope, speed, engine, gear, slipping, timer):
                ratio = rs.constant(ratios)[gear] / wheel
                pedal = rs.clip(0.25 * (target - speed), -1.0, 1.0)
                x = engine / 350.0
                full = p["torque"] * 2.0 * x / (1.0 + x * x)
                brake = rs.where(pedal < 0.0, 3500.0 * -pedal, 0.0)
                push = rs.where(pedal > 0.0, pedal * full, 0.0) - p["friction"] * (1.0 + 0.5 * x)
                push = rs.where(engine > 620.0, -p["friction"] * 3.0, push)
                load = p["drag"] * speed**2 + p["mass"] * 9.81 * (0.011 + slope) + brake
                shaft = speed * ratio

                def locked():
                    force = push * ratio - load
                    accel = force / (p["mass"] + inertia * ratio**2)
                    new = rs.maximum(speed + dt * accel, 0.3)
                    return new, new * ratio, rs.maximum(push, 0.0) * engine

                def sliding():
                    grip = p["clutch"] * (engine - shaft) / (rs.abs(engine - shaft) + 15.0) * rs.minimum(1.0, 0.3 + timer)
                    new = rs.maximum(speed + dt * (grip * ratio - load) / p["mass"], 0.3)
                    turned = rs.clip(engine + dt * (push - grip) / inertia, 80.0, 650.0)
                    return new, turned, 1.1 * rs.maximum(push, 0.0) * engine + 0.2 * rs.abs(grip * (engine - shaft))

                moved, turned, power = rs.ifelse(slipping, sliding(), locked())
                # the gearbox looks only while the clutch is locked and some time has passed
                ready = ~slipping & (timer > 0.8)
                up = ready & (turned > 330.0 + 150.0 * rs.maximum(pedal, 0.0)) & (gear < 4)
                down = ready & (turned < 130.0) & (gear > 0)
                gear = gear + rs.where(up, 1, rs.where(down, -1, 0))
                shifted = up | down
                off = rs.abs(turned - moved * rs.constant(ratios)[gear] / wheel)
                grips = slipping & (off < 8.0)
                new_slipping = shifted | (slipping & ~grips)
                new_timer = rs.where(shifted | grips, 0.0, timer + dt)
                fuel = power / (0.36 - 0.1 * (pedal - 0.7) ** 2)
                return dict(
                    speed=moved, engine=turned, gear=gear, slipping=new_slipping, timer=new_timer, fuel=fuel, miss=(moved - target) ** 2
                )

            start = dict(speed=2.0, engine=2.0 * ratios[0] / wheel, gear=0, slipping=False, timer=0.0)
            out = rs.loop(step, over=dict(target=target, slope=slope), init=start)
            return rs.mean(out.miss) + 1e-5 * rs.sum(out.fuel) / rs.sum(out.speed), rs.sum(rs.abs(rs.diff(out.gear)))

        return rs.value_and_grad(cost, has_aux=True)

    def jax(self, steps):
        import jax
        import jax.numpy as jnp

        ratios = jnp.array([13.0, 8.0, 5.3, 4.0, 3.1])
        dt, wheel, inertia = 0.05, 0.31, 0.25

        def cost(p, target, slope):
            def step(carry, row):
                speed, engine, gear, slipping, timer = carry
                target, slope = row
                ratio = ratios[gear] / wheel
                pedal = jnp.clip(0.25 * (target - speed), -1.0, 1.0)
                x = engine / 350.0
                full = p["torque"] * 2.0 * x / (1.0 + x * x)
                brake = jnp.where(pedal < 0.0, 3500.0 * -pedal, 0.0)
                push = jnp.where(pedal > 0.0, pedal * full, 0.0) - p["friction"] * (1.0 + 0.5 * x)
                push = jnp.where(engine > 620.0, -p["friction"] * 3.0, push)
                load = p["drag"] * speed**2 + p["mass"] * 9.81 * (0.011 + slope) + brake
                shaft = speed * ratio

                def locked():
                    force = push * ratio - load
                    accel = force / (p["mass"] + inertia * ratio**2)
                    new = jnp.maximum(speed + dt * accel, 0.3)
                    return new, new * ratio, jnp.maximum(push, 0.0) * engine

                def sliding():
                    grip = p["clutch"] * (engine - shaft) / (jnp.abs(engine - shaft) + 15.0) * jnp.minimum(1.0, 0.3 + timer)
                    new = jnp.maximum(speed + dt * (grip * ratio - load) / p["mass"], 0.3)
                    turned = jnp.clip(engine + dt * (push - grip) / inertia, 80.0, 650.0)
                    return new, turned, 1.1 * jnp.maximum(push, 0.0) * engine + 0.2 * jnp.abs(grip * (engine - shaft))

                moved, turned, power = jax.lax.cond(slipping, sliding, locked)
                ready = ~slipping & (timer > 0.8)
                up = ready & (turned > 330.0 + 150.0 * jnp.maximum(pedal, 0.0)) & (gear < 4)
                down = ready & (turned < 130.0) & (gear > 0)
                gear = gear + jnp.where(up, 1, jnp.where(down, -1, 0))
                shifted = up | down
                off = jnp.abs(turned - moved * ratios[gear] / wheel)
                grips = slipping & (off < 8.0)
                new_slipping = shifted | (slipping & ~grips)
                new_timer = jnp.where(shifted | grips, 0.0, timer + dt)
                fuel = power / (0.36 - 0.1 * (pedal - 0.7) ** 2)
                return (moved, turned, gear, new_slipping, new_timer), (moved, gear, fuel, (moved - target) ** 2)

            start = 2.0, 2.0 * ratios[0] / wheel, 0, False, 0.0
            _, (speed, gear, fuel, miss) = jax.lax.scan(step, start, (target, slope))
            return jnp.mean(miss) + 1e-5 * jnp.sum(fuel) / jnp.sum(speed), jnp.sum(jnp.abs(jnp.diff(gear)))

        return jax.jit(jax.value_and_grad(cost, has_aux=True))


class TidalBerthLedger(Model):
    """Ships come to a tidal harbour: which berth, when there is water enough, night shifts, tiers of dues and of demurrage."""

    kind = "harbour"
    dtype = "int64"
    size = dict(ships=4000)
    small = dict(ships=30)

    def make(self, random, ships):
        arrival = np.cumsum(random.exponential(85, size=ships)).astype("i8")
        draught = random.integers(500, 1500, size=ships)
        boxes = random.negative_binomial(2, 0.004, size=ships)
        kept_away = random.uniform(size=ships) < 0.02  # quarantine
        return arrival, draught, boxes, kept_away, np.array([900, 1100, 1100, 1300, 1500, 1600])

    def rscan(self, ships):
        tide, far = 745, 10**12

        @rs.compile
        def ledger(arrival, draught, boxes, kept_away, depth):
            def step(arrival, draught, boxes, kept_away, free, dues, lost):
                arrival = arrival + rs.where(kept_away, 2880, 0)
                fits = depth >= draught
                berth = rs.argmin(rs.where(fits, rs.maximum(free, arrival) + (depth - draught) // 20, far))
                ready = rs.maximum(free[berth], arrival)
                # deep ships pass the bar within 200 minutes of high water only
                phase = ready % tide
                spare = depth[berth] - draught
                wait_tide = rs.where(draught <= 1150, 0, rs.where(phase < 200, 0, tide - phase))
                start = ready + wait_tide
                cranes = rs.where(boxes > 900, 4, rs.where(boxes > 400, 3, rs.where(boxes > 100, 2, 1)))
                work = 45 + boxes * 60 // (cranes * 28)
                minute = (start + work) % 1440
                work = work + rs.where((minute > 60) & (minute < 300), 300 - minute, 0)
                waited = start - arrival
                demurrage = rs.where(waited < 360, 0, rs.where(waited < 1440, (waited - 360) * 5, 5400 + (waited - 1440) * 11))
                due = 2000 + rs.where(
                    boxes <= 250, boxes * 12, rs.where(boxes <= 1000, 3000 + (boxes - 250) * 9, 9750 + (boxes - 1000) * 7)
                )
                due = due * rs.where(spare < 50, 115, 100) // 100
                refused = waited > 4320
                end = rs.where(refused, free[berth], start + work)
                return dict(
                    free=free.at[berth].set(end),
                    dues=dues + rs.where(refused, 0, due - demurrage),
                    lost=lost + rs.where(refused, 1, 0),
                    berth=rs.where(refused, -1, berth),
                    start=rs.where(refused, 0, start),
                )

            out = rs.loop(
                step,
                over=dict(arrival=arrival, draught=draught, boxes=boxes, kept_away=kept_away),
                init=dict(free=rs.zeros_like(depth), dues=0, lost=0),
            )
            return out.berth, out.start, out.last.dues, out.last.lost

        return ledger

    def jax(self, ships):
        import jax
        import jax.numpy as jnp

        tide, far = 745, 10**12

        def ledger(arrival, draught, boxes, kept_away, depth):
            def step(carry, row):
                free, dues, lost = carry
                arrival, draught, boxes, kept_away = row
                arrival = arrival + jnp.where(kept_away, 2880, 0)
                fits = depth >= draught
                berth = jnp.argmin(jnp.where(fits, jnp.maximum(free, arrival) + (depth - draught) // 20, far))
                ready = jnp.maximum(free[berth], arrival)
                phase = ready % tide
                spare = depth[berth] - draught
                wait_tide = jnp.where(draught <= 1150, 0, jnp.where(phase < 200, 0, tide - phase))
                start = ready + wait_tide
                cranes = jnp.where(boxes > 900, 4, jnp.where(boxes > 400, 3, jnp.where(boxes > 100, 2, 1)))
                work = 45 + boxes * 60 // (cranes * 28)
                minute = (start + work) % 1440
                work = work + jnp.where((minute > 60) & (minute < 300), 300 - minute, 0)
                waited = start - arrival
                demurrage = jnp.where(waited < 360, 0, jnp.where(waited < 1440, (waited - 360) * 5, 5400 + (waited - 1440) * 11))
                due = 2000 + jnp.where(
                    boxes <= 250, boxes * 12, jnp.where(boxes <= 1000, 3000 + (boxes - 250) * 9, 9750 + (boxes - 1000) * 7)
                )
                due = due * jnp.where(spare < 50, 115, 100) // 100
                refused = waited > 4320
                end = jnp.where(refused, free[berth], start + work)
                carry = free.at[berth].set(end), dues + jnp.where(refused, 0, due - demurrage), lost + jnp.where(refused, 1, 0)
                return carry, (jnp.where(refused, -1, berth), jnp.where(refused, 0, start))

            (_, dues, lost), (berth, start) = jax.lax.scan(step, (jnp.zeros_like(depth), 0, 0), (arrival, draught, boxes, kept_away))
            return berth, start, dues, lost

        return jax.jit(ledger)
