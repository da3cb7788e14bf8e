"""Models of many fields by a reader of the manual: networks with gates and caches, planning, solvers, events, tables."""

import numpy as np

import rscan as rs
from models import Model


def draw(random, *shape, dtype="f4"):
    return (random.normal(size=shape) / np.sqrt(shape[0])).astype(dtype)


class MinGruBlocks(Model):
    """Blocks of minimal gated recurrent units, each by an associative scan, with gated linear outputs; loss and all gradients."""

    kind = "learning"
    dtype = "float32"
    size = dict(steps=128, batch=4, width=32, layers=2)
    small = dict(steps=5, batch=2, width=3, layers=2)

    def make(self, random, steps, batch, width, layers):
        blocks = [
            dict(z=draw(random, width, width), h=draw(random, width, width), g=draw(random, width, width), o=draw(random, width, width))
            for _ in range(layers)
        ]
        x = random.normal(size=(steps, batch, width)).astype("f4")
        return blocks, x, random.normal(size=(steps, batch, width)).astype("f4")

    def rscan(self, steps, batch, width, layers):
        def combine(a, b):
            return b[0] * a[0], b[0] * a[1] + b[1]

        @rs.compile
        def loss(blocks, x, target):
            for p in blocks:
                z = rs.sigmoid(x @ p["z"])
                _, h = rs.associative_scan(combine, (1 - z, z * (x @ p["h"])))
                gate = x @ p["g"]
                x = x + (h * gate * rs.sigmoid(gate)) @ p["o"]
            return rs.mean((x - target) ** 2)

        return rs.value_and_grad(loss)

    def jax(self, steps, batch, width, layers):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def combine(a, b):
            return b[0] * a[0], b[0] * a[1] + b[1]

        def loss(blocks, x, target):
            for p in blocks:
                z = jax.nn.sigmoid(x @ p["z"])
                _, h = lax.associative_scan(combine, (1 - z, z * (x @ p["h"])))
                x = x + (h * jax.nn.silu(x @ p["g"])) @ p["o"]
            return jnp.mean((x - target) ** 2)

        return jax.jit(jax.value_and_grad(loss))


class StabilisedLstmHeads(Model):
    """The sLSTM of xLSTM: exponential gates with a running maximum, heads with recurrent matrices of their own; loss and gradients."""

    kind = "learning"
    dtype = "float32"
    size = dict(steps=48, batch=8, heads=4, width=12, inputs=16, classes=10)
    small = dict(steps=3, batch=2, heads=2, width=2, inputs=3, classes=3)

    def make(self, random, steps, batch, heads, width, inputs, classes):
        p = dict(
            W=draw(random, inputs, 4, heads, width),
            R=(random.normal(size=(heads, width, 4, width)) / np.sqrt(width)).astype("f4"),
            b=(0.1 * random.normal(size=(4, heads, width))).astype("f4"),
            V=draw(random, heads * width, classes),
        )
        return p, random.normal(size=(steps, batch, inputs)).astype("f4"), random.integers(0, classes, size=(steps, batch))

    def rscan(self, steps, batch, heads, width, inputs, classes):
        @rs.compile
        def loss(p, x, labels):
            def step(x, h, c, n, m):
                a = rs.einsum("bi,ighw->bghw", x, p["W"]) + rs.einsum("bhv,hvgw->bghw", h, p["R"]) + p["b"]
                z, i, f, o = rs.tanh(a[:, 0]), a[:, 1], rs.log_sigmoid(a[:, 2]), rs.sigmoid(a[:, 3])
                new = rs.maximum(f + m, i)
                i, f = rs.exp(i - new), rs.exp(f + m - new)
                c, n = f * c + i * z, f * n + i
                h = o * c / n
                return dict(h=h, c=c, n=n, m=new)

            zero = rs.zeros((batch, heads, width), dtype="float32")
            out = rs.loop(step, over=dict(x=x), init=dict(h=zero, c=zero, n=zero, m=zero))
            mean = rs.mean(out.h, axis=-1, keepdims=True)
            normal = (out.h - mean) / rs.sqrt(rs.var(out.h, axis=-1, keepdims=True) + 1e-5)
            logits = normal.reshape((steps, batch, heads * width)) @ p["V"]
            return -rs.mean(rs.take_along_axis(rs.log_softmax(logits, axis=-1), labels[:, :, None], axis=2))

        return rs.value_and_grad(loss)

    def jax(self, steps, batch, heads, width, inputs, classes):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def loss(p, x, labels):
            driven = jnp.einsum("tbi,ighw->tbghw", x, p["W"]) + p["b"]

            def step(state, a):
                h, c, n, m = state
                a = a + jnp.einsum("bhv,hvgw->bghw", h, p["R"])
                z, i, f, o = jnp.tanh(a[:, 0]), a[:, 1], jax.nn.log_sigmoid(a[:, 2]), jax.nn.sigmoid(a[:, 3])
                new = jnp.maximum(f + m, i)
                i, f = jnp.exp(i - new), jnp.exp(f + m - new)
                c, n = f * c + i * z, f * n + i
                h = o * c / n
                return (h, c, n, new), h

            zero = jnp.zeros((batch, heads, width), jnp.float32)
            _, h = lax.scan(step, (zero, zero, zero, zero), driven)
            normal = (h - h.mean(-1, keepdims=True)) / jnp.sqrt(h.var(-1, keepdims=True) + 1e-5)
            logits = normal.reshape(steps, batch, -1) @ p["V"]
            return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, :, None], axis=2))

        return jax.jit(jax.value_and_grad(loss))


class CachedDecoder(Model):
    """A Transformer writes greedily until it says stop: keys and values of each layer are put into a cache at the position."""

    kind = "learning"
    dtype = "float32"
    size = dict(layers=2, heads=4, width=64, words=100, prompt=6, longest=48)
    small = dict(layers=2, heads=2, width=4, words=7, prompt=2, longest=6)

    def make(self, random, layers, heads, width, words, prompt, longest):
        p = dict(
            embed=random.normal(size=(words, width)).astype("f4"),
            places=(0.5 * random.normal(size=(longest, width))).astype("f4"),
            qkv=np.stack([draw(random, width, 3 * width) for _ in range(layers)]),
            out=np.stack([draw(random, width, width) for _ in range(layers)]),
            up=np.stack([draw(random, width, 2 * width) for _ in range(layers)]),
            down=np.stack([draw(random, 2 * width, width) for _ in range(layers)]),
            unembed=draw(random, width, words),
        )
        return p, random.integers(0, words, size=prompt), 83 % words

    def rscan(self, layers, heads, width, words, prompt, longest):
        d = width // heads

        def normalise(x):
            return x / rs.sqrt(rs.mean(x**2) + 1e-6)

        @rs.compile
        def decode(p, text, stop):
            def step(place, tokens, keys, values, score):
                x = p["embed"][tokens[place]] + p["places"][place]
                for k in range(layers):
                    q, key, value = rs.split(normalise(x) @ p["qkv"][k], 3)
                    keys = keys.at[k, place].set(key.reshape((heads, d)))
                    values = values.at[k, place].set(value.reshape((heads, d)))
                    scores = rs.einsum("hd,lhd->hl", q.reshape((heads, d)), keys[k]) / d**0.5
                    weights = rs.softmax(rs.where(rs.arange(longest) <= place, scores, -1e9), axis=-1)
                    x = x + rs.einsum("hl,lhd->hd", weights, values[k]).reshape((width,)) @ p["out"][k]
                    x = x + rs.relu(normalise(x) @ p["up"][k]) @ p["down"][k]
                log_p = rs.log_softmax(normalise(x) @ p["unembed"])
                given = place + 1 < prompt
                word = rs.where(given, text[rs.minimum(place + 1, prompt - 1)], rs.argmax(log_p))
                tokens = tokens.at[place + 1].set(word)
                score = score + rs.where(given, 0, log_p[word])
                return dict(place=place + 1, tokens=tokens, keys=keys, values=values, score=score), rs.until(word == stop)

            empty = rs.zeros((layers, longest, heads, d), dtype="float32")
            tokens = rs.zeros(longest, dtype="int64").at[0].set(text[0])
            init = dict(place=0, tokens=tokens, keys=empty, values=empty, score=np.float32(0))
            out = rs.loop(step, init=init, n_steps=longest - 1)
            return out.last.tokens, out.last.place, out.last.score

        return decode

    def jax(self, layers, heads, width, words, prompt, longest):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def normalise(x):
            return x / jnp.sqrt(jnp.mean(x**2) + 1e-6)

        @jax.jit
        def decode(p, text, stop):
            def step(state):
                place, tokens, keys, values, score, _ = state
                x = p["embed"][tokens[place]] + p["places"][place]
                for k in range(layers):
                    q, key, value = (normalise(x) @ p["qkv"][k]).reshape(3, heads, -1)
                    keys, values = keys.at[k, place].set(key), values.at[k, place].set(value)
                    scores = jnp.einsum("hd,lhd->hl", q, keys[k]) / (width // heads) ** 0.5
                    weights = jax.nn.softmax(jnp.where(jnp.arange(longest) <= place, scores, -1e9))
                    x = x + jnp.einsum("hl,lhd->hd", weights, values[k]).ravel() @ p["out"][k]
                    x = x + jax.nn.relu(normalise(x) @ p["up"][k]) @ p["down"][k]
                log_p = jax.nn.log_softmax(normalise(x) @ p["unembed"])
                given = place + 1 < prompt
                word = jnp.where(given, text[jnp.minimum(place + 1, prompt - 1)], jnp.argmax(log_p))
                score = score + jnp.where(given, 0, log_p[word])
                return place + 1, tokens.at[place + 1].set(word), keys, values, score, word == stop

            empty = jnp.zeros((layers, longest, heads, width // heads), jnp.float32)
            tokens = jnp.zeros(longest, jnp.int64).at[0].set(text[0])
            init = (0, tokens, empty, empty, jnp.float32(0), False)
            place, tokens, _, _, score, _ = lax.while_loop(lambda s: ~s[5] & (s[0] < longest - 1), step, init)
            return tokens, place, score

        return decode


class CausalConvMamba(Model):
    """A Mamba block: a causal depthwise convolution of four taps feeds a selective recurrence, gated at the end; loss, gradients."""

    kind = "learning"
    dtype = "float32"
    size = dict(steps=100, width=24, inner=48, states=8)
    small = dict(steps=6, width=2, inner=3, states=2)

    def make(self, random, steps, width, inner, states):
        p = dict(
            into=draw(random, width, 2 * inner), conv=(0.5 * random.normal(size=(4, inner))).astype("f4"), bias=np.zeros(inner, "f4"),
            dt=draw(random, inner, inner), dt_bias=np.full(inner, -1, "f4"), B=draw(random, inner, states), C=draw(random, inner, states),
            A=np.log(np.tile(np.arange(1, states + 1), (inner, 1))).astype("f4"), D=np.ones(inner, "f4"), out=draw(random, inner, width),
        )  # fmt: skip
        return p, random.normal(size=(steps, width)).astype("f4")

    def rscan(self, steps, width, inner, states):
        @rs.compile
        def loss(p, x):
            both = x @ p["into"]
            u, z = both[:, :inner], both[:, inner:]
            padded = rs.concatenate([rs.zeros((3, inner), dtype="float32"), u])

            def step(u, h):
                a = p["bias"] + sum(p["conv"][k] * u[k] for k in range(4))
                v = a * rs.sigmoid(a)
                dt = rs.softplus(v @ p["dt"] + p["dt_bias"])
                h = rs.exp(-dt[:, None] * rs.exp(p["A"])) * h + (dt * v)[:, None] * (v @ p["B"])
                return dict(h=h, y=h @ (v @ p["C"]) + p["D"] * v)

            start = rs.zeros((inner, states), dtype="float32")
            out = rs.loop(step, over=dict(u=dict(input=padded, taps=[-3, -2, -1, 0])), init=dict(h=start))
            y = (out.y * z * rs.sigmoid(z)) @ p["out"]
            return rs.mean((y[:-1] - x[1:]) ** 2)

        return rs.value_and_grad(loss)

    def jax(self, steps, width, inner, states):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def loss(p, x):
            u, z = jnp.split(x @ p["into"], 2, axis=1)
            padded = jnp.pad(u, ((3, 0), (0, 0)))
            v = jax.nn.silu(p["bias"] + sum(p["conv"][k] * padded[k : k + steps] for k in range(4)))
            dt = jax.nn.softplus(v @ p["dt"] + p["dt_bias"])
            A = -jnp.exp(p["A"])

            def step(h, row):
                dt, dv, B, C = row
                h = jnp.exp(dt[:, None] * A) * h + dv[:, None] * B
                return h, h @ C

            _, y = lax.scan(step, jnp.zeros((inner, states), jnp.float32), (dt, dt * v, v @ p["B"], v @ p["C"]))
            y = ((y + p["D"] * v) * jax.nn.silu(z)) @ p["out"]
            return jnp.mean((y[:-1] - x[1:]) ** 2)

        return jax.jit(jax.value_and_grad(loss))


class CouplingFlow(Model):
    """A normalising flow: affine couplings with alternating masks as rows of a loop, and its inverse backwards; loss, gradients, samples."""

    kind = "learning"
    dtype = "float64"
    size = dict(layers=8, rows=64, width=6, hidden=16)
    small = dict(layers=3, rows=3, width=2, hidden=2)

    def make(self, random, layers, rows, width, hidden):
        p = dict(
            shift=0.1 * random.normal(size=(layers, width)), scale=0.1 * random.normal(size=(layers, width)),
            W=random.normal(size=(layers, width, hidden)) / np.sqrt(width), b=0.1 * random.normal(size=(layers, hidden)),
            S=0.3 * random.normal(size=(layers, hidden, width)), T=0.3 * random.normal(size=(layers, hidden, width)),
        )  # fmt: skip
        return p, random.normal(size=(rows, width)) ** 3, random.normal(size=(rows, width))

    def rscan(self, layers, rows, width, hidden):
        masks = (np.add.outer(np.arange(layers), np.arange(width)) % 2).astype(float)

        @rs.compile
        def loss(p, x, noise):
            def nets(kept, W, b, S, T, mask):
                a = rs.tanh(kept @ W + b)
                return (1 - mask) * rs.tanh(a @ S), (1 - mask) * (a @ T)

            def forward(shift, scale, W, b, S, T, mask, x, log_det):
                x = (x + shift) * rs.exp(scale)
                s, t = nets(mask * x, W, b, S, T, mask)
                return dict(x=x * rs.exp(s) + t, log_det=log_det + rs.sum(s, axis=1) + rs.sum(scale))

            def inverse(shift, scale, W, b, S, T, mask, x):
                s, t = nets(mask * x, W, b, S, T, mask)
                return dict(x=(x - t) * rs.exp(-s) * rs.exp(-scale) - shift)

            out = rs.loop(forward, over=dict(mask=masks, **p), init=dict(x=x, log_det=rs.zeros(rows)))
            log_p = rs.sum(rs.stats.logistic.logpdf(out.last.x), axis=1) + out.last.log_det
            samples = rs.loop(inverse, over=dict(mask=masks, **p), init=dict(x=noise), reverse=True)
            return -rs.mean(log_p), samples.last.x

        return rs.value_and_grad(loss, has_aux=True)

    def jax(self, layers, rows, width, hidden):
        import jax
        import jax.numpy as jnp
        from jax import lax

        masks = (np.add.outer(np.arange(layers), np.arange(width)) % 2).astype(float)

        def nets(kept, p, mask):
            a = jnp.tanh(kept @ p["W"] + p["b"])
            return (1 - mask) * jnp.tanh(a @ p["S"]), (1 - mask) * (a @ p["T"])

        def loss(p, x, noise):
            def forward(state, row):
                x, log_det = state
                p, mask = row
                x = (x + p["shift"]) * jnp.exp(p["scale"])
                s, t = nets(mask * x, p, mask)
                return (x * jnp.exp(s) + t, log_det + jnp.sum(s, axis=1) + jnp.sum(p["scale"])), None

            def inverse(x, row):
                p, mask = row
                s, t = nets(mask * x, p, mask)
                return (x - t) * jnp.exp(-s) * jnp.exp(-p["scale"]) - p["shift"], None

            (z, log_det), _ = lax.scan(forward, (x, jnp.zeros(rows)), (p, masks))
            log_p = jnp.sum(jax.scipy.stats.logistic.logpdf(z), axis=1) + log_det
            samples, _ = lax.scan(inverse, noise, (p, masks), reverse=True)
            return -jnp.mean(log_p), samples

        return jax.jit(jax.value_and_grad(loss, has_aux=True))


class ClippedPolicyGae(Model):
    """Carts with poles driven by an old policy, advantages backwards over resets (GAE), the clipped loss of a new policy, gradients."""

    kind = "learning"
    dtype = "float32"
    size = dict(steps=64, carts=16, hidden=16)
    small = dict(steps=5, carts=2, hidden=3)

    def make(self, random, steps, carts, hidden):
        old = dict(W=draw(random, 4, hidden), a=draw(random, hidden), v=draw(random, hidden), log_std=np.float32(-0.5))
        new = {k: (v + 0.05 * random.normal(size=np.shape(v))).astype("f4") for k, v in old.items()}
        old["log_std"], new["log_std"] = old["log_std"].reshape(()), new["log_std"].reshape(())
        starts = (0.05 * random.normal(size=(steps + 1, carts, 4))).astype("f4")
        return new, old, starts, random.normal(size=(steps, carts)).astype("f4")

    def rscan(self, steps, carts, hidden):
        def policy(p, s):
            h = rs.tanh(s @ p["W"])
            return h @ p["a"], h @ p["v"]

        def log_density(p, mean, action):
            return -0.5 * ((action - mean) / rs.exp(p["log_std"])) ** 2 - p["log_std"]

        @rs.compile
        def loss(new, old, starts, noise):
            def act(e, start, s):
                mean, value = policy(old, s)
                action = mean + rs.exp(old["log_std"]) * e
                x, v, angle, w = s[:, 0], s[:, 1], s[:, 2], s[:, 3]
                force = 10 * rs.tanh(action)
                push = (force + 0.05 * w**2 * rs.sin(angle)) / 1.1
                turn = (9.8 * rs.sin(angle) - rs.cos(angle) * push) / (0.5 * (4 / 3 - 0.1 * rs.cos(angle) ** 2 / 1.1))
                speed = push - 0.05 * turn * rs.cos(angle) / 1.1
                moved = rs.stack([x + 0.02 * v, v + 0.02 * speed, angle + 0.02 * w, w + 0.02 * turn], axis=1)
                done = (rs.abs(moved[:, 0]) > 2.4) | (rs.abs(moved[:, 2]) > 0.2)
                reward = 1 - rs.abs(moved[:, 2]) - 0.1 * action**2
                following = rs.where(done[:, None], start, moved)
                return dict(s=following, seen=s, action=action, log_p=log_density(old, mean, action), value=value, reward=reward, done=done)

            out = rs.loop(act, over=dict(e=noise, start=starts[1:]), init=dict(s=starts[0]))
            _, last_value = policy(old, out.last.s)
            after = rs.concatenate([out.value[1:], last_value[None]])

            def back(value, after, reward, done, gae):
                return reward + 0.99 * rs.where(done, 0, after) - value + 0.99 * 0.95 * rs.where(done, 0, gae)

            over = dict(value=out.value, after=after, reward=out.reward, done=out.done)
            gae = rs.loop(back, over=over, init=dict(gae=rs.zeros(carts, dtype="float32")), reverse=True).gae
            gae, seen, action, log_p = rs.stop_gradient([gae, out.seen, out.action, out.log_p])
            returns = gae + rs.stop_gradient(out.value)
            gae = (gae - rs.mean(gae)) / (rs.std(gae) + 1e-6)
            mean, value = policy(new, seen)
            ratio = rs.exp(log_density(new, mean, action) - log_p)
            gain = rs.minimum(ratio * gae, rs.clip(ratio, 0.8, 1.2) * gae)
            return -rs.mean(gain) + 0.5 * rs.mean((value - returns) ** 2) - 0.01 * new["log_std"]

        return rs.value_and_grad(loss)

    def jax(self, steps, carts, hidden):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def policy(p, s):
            h = jnp.tanh(s @ p["W"])
            return h @ p["a"], h @ p["v"]

        def log_density(p, mean, action):
            return -0.5 * ((action - mean) / jnp.exp(p["log_std"])) ** 2 - p["log_std"]

        def loss(new, old, starts, noise):
            def act(s, row):
                e, start = row
                mean, value = policy(old, s)
                action = mean + jnp.exp(old["log_std"]) * e
                x, v, angle, w = s.T
                force = 10 * jnp.tanh(action)
                push = (force + 0.05 * w**2 * jnp.sin(angle)) / 1.1
                turn = (9.8 * jnp.sin(angle) - jnp.cos(angle) * push) / (0.5 * (4 / 3 - 0.1 * jnp.cos(angle) ** 2 / 1.1))
                speed = push - 0.05 * turn * jnp.cos(angle) / 1.1
                moved = jnp.stack([x + 0.02 * v, v + 0.02 * speed, angle + 0.02 * w, w + 0.02 * turn], axis=1)
                done = (jnp.abs(moved[:, 0]) > 2.4) | (jnp.abs(moved[:, 2]) > 0.2)
                reward = 1 - jnp.abs(moved[:, 2]) - 0.1 * action**2
                return jnp.where(done[:, None], start, moved), (s, action, log_density(old, mean, action), value, reward, done)

            last, (seen, action, log_p, values, reward, done) = lax.scan(act, starts[0], (noise, starts[1:]))
            after = jnp.concatenate([values[1:], policy(old, last)[1][None]])
            going = jnp.where(done, 0, 1).astype(jnp.float32)

            def back(gae, row):
                delta, going = row
                gae = delta + 0.99 * 0.95 * going * gae
                return gae, gae

            _, gae = lax.scan(back, jnp.zeros(carts, jnp.float32), (reward + 0.99 * going * after - values, going), reverse=True)
            returns = gae + values
            gae = (gae - gae.mean()) / (gae.std() + 1e-6)
            mean, value = policy(new, seen)
            ratio = jnp.exp(log_density(new, mean, action) - log_p)
            gain = jnp.minimum(ratio * gae, jnp.clip(ratio, 0.8, 1.2) * gae)
            return -gain.mean() + 0.5 * jnp.mean((value - returns) ** 2) - 0.01 * new["log_std"]

        return jax.jit(jax.value_and_grad(loss))


class TileTraces(Model):
    """Sarsa with eligibility traces on the mountain car: tilings index the weights, traces are replaced and fade, goals start anew."""

    kind = "learning"
    dtype = "float64"
    size = dict(steps=2000, tilings=8, tiles=6)
    small = dict(steps=8, tilings=2, tiles=3)

    def make(self, random, steps, tilings, tiles):
        return random.random((tilings, 2)), random.random(steps), random.integers(0, 3, size=steps), 0.1, 0.9

    def rscan(self, steps, tilings, tiles):
        side = tiles + 1
        count = 3 * tilings * side * side

        @rs.compile
        def learn(offsets, coins, actions, rate, fade):
            def places(x, v, action):
                i = rs.cast(rs.floor((x + 1.2) / 1.8 * tiles + offsets[:, 0]), "int64")
                j = rs.cast(rs.floor((v + 0.07) / 0.14 * tiles + offsets[:, 1]), "int64")
                return ((action * tilings + rs.arange(tilings)) * side + rs.clip(i, 0, tiles)) * side + rs.clip(j, 0, tiles)

            def step(coin, explored, x, v, action, w, e, goals):
                here = places(x, v, action)
                e = e.at[here].set(1.0)
                v_new = rs.clip(v + 0.001 * (action - 1) - 0.0025 * rs.cos(3 * x), -0.07, 0.07)
                x_new = rs.clip(x + v_new, -1.2, 0.6)
                v_new = rs.where(x_new <= -1.2, 0.0, v_new)
                done = x_new >= 0.5
                worth = rs.stack([rs.sum(w[places(x_new, v_new, a)]) for a in range(3)])
                following = rs.where(coin < 0.1, explored, rs.argmax(worth))
                delta = -1 + rs.where(done, 0.0, worth[following]) - rs.sum(w[here])
                w = w + rate / tilings * delta * e
                e = rs.where(done, 0.0, fade * e)
                x_new, v_new = rs.where(done, -0.5, x_new), rs.where(done, 0.0, v_new)
                return dict(x=x_new, v=v_new, action=following, w=w, e=e, goals=goals + done)

            init = dict(x=-0.5, v=0.0, action=2, w=rs.zeros(count), e=rs.zeros(count), goals=0)
            out = rs.loop(step, over=dict(coin=coins, explored=actions), init=init)
            return out.last.w, out.x, out.last.goals

        return learn

    def jax(self, steps, tilings, tiles):
        import jax
        import jax.numpy as jnp
        from jax import lax

        side = tiles + 1
        count = 3 * tilings * side * side

        @jax.jit
        def learn(offsets, coins, actions, rate, fade):
            def places(x, v, action):
                i = jnp.floor((x + 1.2) / 1.8 * tiles + offsets[:, 0]).astype(int)
                j = jnp.floor((v + 0.07) / 0.14 * tiles + offsets[:, 1]).astype(int)
                return ((action * tilings + jnp.arange(tilings)) * side + jnp.clip(i, 0, tiles)) * side + jnp.clip(j, 0, tiles)

            def step(state, row):
                x, v, action, w, e, goals = state
                coin, explored = row
                here = places(x, v, action)
                e = e.at[here].set(1.0)
                v_new = jnp.clip(v + 0.001 * (action - 1) - 0.0025 * jnp.cos(3 * x), -0.07, 0.07)
                x_new = jnp.clip(x + v_new, -1.2, 0.6)
                v_new = jnp.where(x_new <= -1.2, 0.0, v_new)
                done = x_new >= 0.5
                worth = jnp.sum(w[places(x_new, v_new, jnp.arange(3)[:, None])], axis=1)
                following = jnp.where(coin < 0.1, explored, jnp.argmax(worth))
                delta = -1 + jnp.where(done, 0.0, worth[following]) - jnp.sum(w[here])
                w = w + rate / tilings * delta * e
                e = jnp.where(done, 0.0, fade * e)
                x_new, v_new = jnp.where(done, -0.5, x_new), jnp.where(done, 0.0, v_new)
                return (x_new, v_new, following, w, e, goals + done), x_new

            init = (-0.5, 0.0, jnp.int64(2), jnp.zeros(count), jnp.zeros(count), jnp.int64(0))
            (_, _, _, w, _, goals), x = lax.scan(step, init, (coins, actions))
            return w, x, goals

        return learn


class TreeSearchPlanner(Model):
    """MuZero's search: each simulation walks down a tree of learnt states by PUCT, adds a node and carries its value back up."""

    kind = "learning"
    dtype = "float32"
    size = dict(simulations=40, actions=4, width=16)
    small = dict(simulations=5, actions=2, width=3)

    def make(self, random, simulations, actions, width):
        p = dict(
            move=draw(random, width + actions, width), reward=draw(random, width + actions),
            value=draw(random, width), policy=draw(random, width, actions),
        )  # fmt: skip
        return p, random.normal(size=width).astype("f4")

    def rscan(self, simulations, actions, width):
        @rs.compile
        def search(p, root):
            def softmax_policy(h):
                return rs.softmax(2 * (h @ p["policy"]))

            def simulate(i, latent, prior, visits, total, reward, child, parent, via):
                def down(node, action):
                    n = visits[node]
                    mean = total[node] / rs.maximum(n, 1)
                    bonus = 1.25 * prior[node] * rs.sqrt(rs.sum(n) + 1) / (1 + n)
                    action = rs.argmax(reward[node] * (n > 0) + 0.95 * mean + bonus)
                    following = child[node, action]
                    return dict(node=rs.where(following < 0, node, following), action=action), rs.until(following < 0)

                found = rs.loop(down, init=dict(node=0, action=0))
                node, action = found.last.node, found.last.action
                seen = rs.concatenate([latent[node], rs.cast(rs.arange(actions) == action, "float32")])
                h = rs.tanh(seen @ p["move"])
                gained, value = rs.tanh(seen @ p["reward"]), rs.tanh(h @ p["value"])
                latent, prior = latent.at[i].set(h), prior.at[i].set(softmax_policy(h))
                reward, child = reward.at[node, action].set(gained), child.at[node, action].set(i)
                parent, via = parent.at[i].set(node), via.at[i].set(action)

                def up(at, value, visits, total):
                    node, action = parent[at], via[at]
                    visits, total = visits.at[node, action].add(1), total.at[node, action].add(value)
                    return dict(at=node, value=reward[node, action] + 0.95 * value, visits=visits, total=total), rs.until(node == 0)

                back = rs.loop(up, init=dict(at=i, value=value, visits=visits, total=total))
                return dict(
                    latent=latent, prior=prior, visits=back.last.visits, total=back.last.total,
                    reward=reward, child=child, parent=parent, via=via, node=node,
                )  # fmt: skip

            n = simulations + 1
            edges = rs.zeros((n, actions), dtype="float32")
            init = dict(
                latent=rs.zeros((n, width), dtype="float32").at[0].set(root),
                prior=edges.at[0].set(softmax_policy(root)),
                visits=edges, total=edges, reward=edges,
                child=rs.full((n, actions), -1), parent=rs.zeros(n, dtype="int64"), via=rs.zeros(n, dtype="int64"),
            )  # fmt: skip
            out = rs.loop(simulate, over=dict(i=rs.arange(1, n)), init=init)
            return out.last.visits[0], out.last.total[0], out.last.parent, out.last.via

        return search

    def jax(self, simulations, actions, width):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def search(p, root):
            def softmax_policy(h):
                return jax.nn.softmax(2 * (h @ p["policy"]))

            def simulate(i, state):
                latent, prior, visits, total, reward, child, parent, via = state

                def choose(node):
                    n = visits[node]
                    mean = total[node] / jnp.maximum(n, 1)
                    bonus = 1.25 * prior[node] * jnp.sqrt(jnp.sum(n) + 1) / (1 + n)
                    return jnp.argmax(reward[node] * (n > 0) + 0.95 * mean + bonus)

                def down(state):
                    node, action = state
                    node = child[node, action]
                    return node, choose(node)

                node, action = lax.while_loop(lambda s: child[s[0], s[1]] >= 0, down, (jnp.int64(0), choose(0)))
                seen = jnp.concatenate([latent[node], jax.nn.one_hot(action, actions, dtype=jnp.float32)])
                h = jnp.tanh(seen @ p["move"])
                gained, value = jnp.tanh(seen @ p["reward"]), jnp.tanh(h @ p["value"])
                latent, prior = latent.at[i].set(h), prior.at[i].set(softmax_policy(h))
                reward, child = reward.at[node, action].set(gained), child.at[node, action].set(i)
                parent, via = parent.at[i].set(node), via.at[i].set(action)

                def up(state):
                    at, value, visits, total = state
                    node, action = parent[at], via[at]
                    visits, total = visits.at[node, action].add(1), total.at[node, action].add(value)
                    return node, reward[node, action] + 0.95 * value, visits, total

                _, _, visits, total = lax.while_loop(lambda s: s[0] != 0, up, (i, value, visits, total))
                return latent, prior, visits, total, reward, child, parent, via

            n = simulations + 1
            edges = jnp.zeros((n, actions), jnp.float32)
            numbers = jnp.zeros(n, jnp.int64)
            init = (
                jnp.zeros((n, width), jnp.float32).at[0].set(root), edges.at[0].set(softmax_policy(root)),
                edges, edges, edges, jnp.full((n, actions), -1, jnp.int64), numbers, numbers,
            )  # fmt: skip
            _, _, visits, total, _, _, parent, via = lax.fori_loop(jnp.int64(1), jnp.int64(n), simulate, init)
            return visits[0], total[0], parent, via

        return search


class NeuralControlled(Model):
    """A neural controlled differential equation: classical Runge-Kutta along a cubic path of each series, mapped over series; gradients."""

    kind = "learning"
    dtype = "float64"
    size = dict(rows=8, points=25, channels=3, hidden=6, width=12)
    small = dict(rows=2, points=4, channels=2, hidden=2, width=3)

    def make(self, random, rows, points, channels, hidden, width):
        def d(*shape):
            return draw(random, *shape, dtype="f8")

        p = dict(start=d(channels, hidden), W=d(hidden, width), b=0.1 * d(width), V=0.3 * d(width, hidden * channels), out=d(hidden))
        x = np.cumsum(0.3 * random.normal(size=(rows, points, channels)), axis=1)
        x[:, :, 0] = np.cumsum(random.exponential(size=(rows, points)) + 0.2, axis=1) / points
        return p, x, random.integers(0, 2, size=rows)

    def rscan(self, rows, points, channels, hidden, width):
        def logit(p, x):
            rises = x[1:] - x[:-1]
            before = rs.concatenate([rises[:1], rises[:-1]])

            def step(rise, before, z):
                def rate(z, s):
                    # the Hermite cubic with backward differences as slopes
                    slope = before + s * (4 - 3 * s) * (rise - before)
                    f = rs.tanh(rs.tanh(z @ p["W"] + p["b"]) @ p["V"]).reshape((hidden, channels))
                    return f @ slope

                a = rate(z, 0.0)
                b = rate(z + 0.5 * a, 0.5)
                c = rate(z + 0.5 * b, 0.5)
                d = rate(z + c, 1.0)
                return z + (a + 2 * b + 2 * c + d) / 6

            z = rs.loop(step, over=dict(rise=rises, before=before), init=dict(z=x[0] @ p["start"]))
            return z.last.z @ p["out"]

        @rs.compile
        def loss(p, x, label):
            logits = rs.vmap(logit, in_axes=(None, 0))(p, x)
            return rs.mean(rs.softplus(logits) - label * logits)

        return rs.value_and_grad(loss)

    def jax(self, rows, points, channels, hidden, width):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def logit(p, x):
            rises = x[1:] - x[:-1]
            before = jnp.concatenate([rises[:1], rises[:-1]])

            def step(z, row):
                rise, before = row

                def rate(z, s):
                    slope = before + s * (4 - 3 * s) * (rise - before)
                    return jnp.tanh(jnp.tanh(z @ p["W"] + p["b"]) @ p["V"]).reshape(hidden, channels) @ slope

                a = rate(z, 0.0)
                b = rate(z + 0.5 * a, 0.5)
                c = rate(z + 0.5 * b, 0.5)
                d = rate(z + c, 1.0)
                return z + (a + 2 * b + 2 * c + d) / 6, None

            z, _ = lax.scan(step, x[0] @ p["start"], (rises, before))
            return z @ p["out"]

        def loss(p, x, label):
            logits = jax.vmap(logit, in_axes=(None, 0))(p, x)
            return jnp.mean(jax.nn.softplus(logits) - label * logits)

        return jax.jit(jax.value_and_grad(loss))


class VerletNeighbours(Model):
    """Lennard-Jones particles in a periodic box by velocity Verlet; lists of neighbours are made anew every so many steps."""

    kind = "physics and numerics"
    dtype = "float64"
    size = dict(side=7, neighbours=24, steps=100, every=10)
    small = dict(side=3, neighbours=8, steps=5, every=2)

    def make(self, random, side, neighbours, steps, every):
        grid = np.stack(np.meshgrid(np.arange(side), np.arange(side)), axis=-1).reshape(-1, 2) * 1.2
        v = random.normal(size=grid.shape)
        return grid + 0.05 * random.normal(size=grid.shape), v - v.mean(axis=0), 1.2 * side, 0.004

    def rscan(self, side, neighbours, steps, every):
        n = side * side

        @rs.compile
        def simulate(x, v, box, dt):
            def rebuilt(x):
                apart = x[:, None, :] - x[None, :, :]
                apart = apart - box * rs.round(apart / box)
                squares = rs.fill_diagonal(rs.sum(apart**2, axis=2), rs.inf)
                return rs.argsort(squares, axis=1)[:, :neighbours]

            def forces(x, near):
                apart = x[:, None, :] - x[near]
                apart = apart - box * rs.round(apart / box)
                squares = rs.sum(apart**2, axis=2)
                inside = squares < 2.5**2
                sixth = 1 / squares**3
                pull = rs.where(inside, 24 * (2 * sixth**2 - sixth) / squares, 0.0)
                energy = 0.5 * rs.sum(rs.where(inside, 4 * (sixth**2 - sixth), 0.0))
                return rs.sum(pull[:, :, None] * apart, axis=1), energy

            def step(t, x, v, f, near):
                v = v + 0.5 * dt * f
                x = (x + dt * v) % box
                near = rs.ifelse(t % every == 0, rebuilt(x), near)
                f, energy = forces(x, near)
                v = v + 0.5 * dt * f
                return dict(x=x, v=v, f=f, near=near, potential=energy, kinetic=0.5 * rs.sum(v**2))

            near = rebuilt(x)
            f, _ = forces(x, near)
            out = rs.loop(step, over=dict(t=rs.arange(steps)), init=dict(x=x, v=v, f=f, near=near))
            return out.last.x, out.last.v, out.potential, out.kinetic

        return simulate

    def jax(self, side, neighbours, steps, every):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def simulate(x, v, box, dt):
            def rebuilt(x):
                apart = x[:, None, :] - x[None, :, :]
                apart = apart - box * jnp.round(apart / box)
                squares = jnp.where(jnp.eye(side * side, dtype=bool), jnp.inf, jnp.sum(apart**2, axis=2))
                return lax.top_k(-squares, neighbours)[1]

            def forces(x, near):
                apart = x[:, None, :] - x[near]
                apart = apart - box * jnp.round(apart / box)
                squares = jnp.sum(apart**2, axis=2)
                inside = squares < 2.5**2
                sixth = 1 / squares**3
                pull = jnp.where(inside, 24 * (2 * sixth**2 - sixth) / squares, 0.0)
                energy = 0.5 * jnp.sum(jnp.where(inside, 4 * (sixth**2 - sixth), 0.0))
                return jnp.sum(pull[:, :, None] * apart, axis=1), energy

            def step(state, t):
                x, v, f, near = state
                v = v + 0.5 * dt * f
                x = (x + dt * v) % box
                near = lax.cond(t % every == 0, rebuilt, lambda x: near, x)
                f, energy = forces(x, near)
                v = v + 0.5 * dt * f
                return (x, v, f, near), (energy, 0.5 * jnp.sum(v**2))

            near = rebuilt(x)
            (x, v, _, _), (potential, kinetic) = lax.scan(step, (x, v, forces(x, near)[0], near), jnp.arange(steps))
            return x, v, potential, kinetic

        return simulate


class MultigridCycles(Model):
    """Poisson's equation by V-cycles: red-black sweeps on each grid, residuals to the coarser one, until the residual is small."""

    kind = "physics and numerics"
    dtype = "float64"
    size = dict(n=63, sweeps=2, cycles=15)
    small = dict(n=7, sweeps=1, cycles=4)

    def make(self, random, n, sweeps, cycles):
        return (random.normal(size=(n, n)), 1e-8)

    def rscan(self, n, sweeps, cycles):
        def around(u):
            p = rs.pad(u, 1)
            return p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]

        def residual(u, f, h):
            return f - (4 * u - around(u)) / h**2

        def smooth(u, f, h, size):
            red = np.add.outer(np.arange(size), np.arange(size)) % 2 == 0

            def sweep(_, u):
                u = rs.where(red, (around(u) + h**2 * f) / 4, u)
                return rs.where(red, u, (around(u) + h**2 * f) / 4)

            return rs.fori(0, sweeps, sweep, u)

        def cycle(u, f, h, size):
            if size == 1:
                return h**2 * f / 4
            u = smooth(u, f, h, size)
            r = residual(u, f, h)
            # full weighting
            r = (r[:-2:2] + 2 * r[1:-1:2] + r[2::2]) / 4
            r = (r[:, :-2:2] + 2 * r[:, 1:-1:2] + r[:, 2::2]) / 4
            half = (size - 1) // 2
            e = cycle(rs.zeros((half, half)), r, 2 * h, half)
            # bilinear interpolation
            wide = rs.pad(e, ((0, 0), (1, 1)))
            e = rs.zeros((half, size)).at[:, 1::2].set(e).at[:, ::2].set((wide[:, :-1] + wide[:, 1:]) / 2)
            high = rs.pad(e, ((1, 1), (0, 0)))
            e = rs.zeros((size, size)).at[1::2].set(e).at[::2].set((high[:-1] + high[1:]) / 2)
            return smooth(u + e, f, h, size)

        @rs.compile
        def solve(f, tolerance):
            h = 1 / (n + 1)
            enough = tolerance * rs.linalg.norm(f)

            def step(u):
                u = cycle(u, f, h, n)
                return dict(u=u), rs.until(rs.linalg.norm(residual(u, f, h)) < enough)

            out = rs.loop(step, init=dict(u=rs.zeros((n, n))), n_steps=cycles)
            return out.last.u, out.steps

        return solve

    def jax(self, n, sweeps, cycles):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def around(u):
            p = jnp.pad(u, 1)
            return p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]

        def residual(u, f, h):
            return f - (4 * u - around(u)) / h**2

        def smooth(u, f, h, size):
            red = np.add.outer(np.arange(size), np.arange(size)) % 2 == 0

            def sweep(_, u):
                u = jnp.where(red, (around(u) + h**2 * f) / 4, u)
                return jnp.where(red, u, (around(u) + h**2 * f) / 4)

            return lax.fori_loop(0, sweeps, sweep, u)

        def cycle(u, f, h, size):
            if size == 1:
                return h**2 * f / 4
            u = smooth(u, f, h, size)
            r = residual(u, f, h)
            r = (r[:-2:2] + 2 * r[1:-1:2] + r[2::2]) / 4
            r = (r[:, :-2:2] + 2 * r[:, 1:-1:2] + r[:, 2::2]) / 4
            half = (size - 1) // 2
            e = cycle(jnp.zeros((half, half)), r, 2 * h, half)
            wide = jnp.pad(e, ((0, 0), (1, 1)))
            e = jnp.zeros((half, size)).at[:, 1::2].set(e).at[:, ::2].set((wide[:, :-1] + wide[:, 1:]) / 2)
            high = jnp.pad(e, ((1, 1), (0, 0)))
            e = jnp.zeros((size, size)).at[1::2].set(e).at[::2].set((high[:-1] + high[1:]) / 2)
            return smooth(u + e, f, h, size)

        @jax.jit
        def solve(f, tolerance):
            h = 1 / (n + 1)
            enough = tolerance * jnp.linalg.norm(f)

            def step(state):
                u, k, _ = state
                u = cycle(u, f, h, n)
                return u, k + 1, jnp.linalg.norm(residual(u, f, h)) < enough

            u, k, _ = lax.while_loop(lambda s: (s[1] < cycles) & ~s[2], step, (jnp.zeros((n, n)), jnp.int64(0), False))
            return u, k

        return solve


class AlternatingDirections(Model):
    """Heat in a plate of varying conductivity by Peaceman and Rachford's scheme: tridiagonal systems along rows, then along columns;
    the misfit of the last field and its gradient by all conductivities."""

    kind = "physics and numerics"
    dtype = "float64"
    size = dict(n=20, steps=10)
    small = dict(n=4, steps=2)

    def make(self, random, n, steps):
        u = np.outer(np.sin(np.linspace(0, 3, n)), np.cos(np.linspace(0, 2, n)))
        return 0.3 * random.normal(size=(n, n)), u, u * 0.5 + 0.05 * random.normal(size=(n, n)), 0.4

    def rscan(self, n, steps):
        def tridiagonal(lower, diagonal, upper, right):
            """Systems along axis 0, one for each column."""

            def forward(lower, diagonal, upper, right, c, d):
                below = diagonal - lower * c
                return dict(c=upper / below, d=(right - lower * d) / below)

            zero = rs.zeros(n)
            over = dict(lower=lower, diagonal=diagonal, upper=upper, right=right)
            out = rs.loop(forward, over=over, init=dict(c=zero, d=zero))
            return rs.loop(lambda c, d, x: d - c * x, over=dict(c=out.c, d=out.d), init=dict(x=zero), reverse=True).x

        @rs.compile
        def misfit(log_k, u, seen, dt):
            k = rs.exp(log_k)
            zero = rs.zeros((1, n))

            def faces(k):
                between = 0.5 * (k[1:] + k[:-1])
                return rs.concatenate([zero, between]), rs.concatenate([between, zero])

            up, down = faces(k)  # towards the row before and the row after
            left, right = faces(k.T)

            def along(u, before, after):
                p = rs.pad(u, ((1, 1), (0, 0)))
                return after * (p[2:] - u) - before * (u - p[:-2])

            def step(u):
                explicit = u + dt / 2 * along(u.T, left, right).T
                u = tridiagonal(-dt / 2 * up, 1 + dt / 2 * (up + down), -dt / 2 * down, explicit)
                explicit = u + dt / 2 * along(u, up, down)
                return tridiagonal(-dt / 2 * left, 1 + dt / 2 * (left + right), -dt / 2 * right, explicit.T).T

            last = rs.loop(step, init=u, n_steps=steps)[-1]
            return rs.sum((last - seen) ** 2)

        return rs.value_and_grad(misfit)

    def jax(self, n, steps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def tridiagonal(lower, diagonal, upper, right):
            def forward(state, row):
                c, d = state
                lower, diagonal, upper, right = row
                below = diagonal - lower * c
                state = upper / below, (right - lower * d) / below
                return state, state

            def backward(x, row):
                c, d = row
                x = d - c * x
                return x, x

            zero = jnp.zeros(n)
            _, rows = lax.scan(forward, (zero, zero), (lower, diagonal, upper, right))
            return lax.scan(backward, zero, rows, reverse=True)[1]

        def misfit(log_k, u, seen, dt):
            k = jnp.exp(log_k)
            zero = jnp.zeros((1, n))

            def faces(k):
                between = 0.5 * (k[1:] + k[:-1])
                return jnp.concatenate([zero, between]), jnp.concatenate([between, zero])

            up, down = faces(k)
            left, right = faces(k.T)

            def along(u, before, after):
                p = jnp.pad(u, ((1, 1), (0, 0)))
                return after * (p[2:] - u) - before * (u - p[:-2])

            def step(u, _):
                explicit = u + dt / 2 * along(u.T, left, right).T
                u = tridiagonal(-dt / 2 * up, 1 + dt / 2 * (up + down), -dt / 2 * down, explicit)
                explicit = u + dt / 2 * along(u, up, down)
                return tridiagonal(-dt / 2 * left, 1 + dt / 2 * (left + right), -dt / 2 * right, explicit.T).T, None

            last, _ = lax.scan(step, u, None, length=steps)
            return jnp.sum((last - seen) ** 2)

        return jax.jit(jax.value_and_grad(misfit))


class RestartedGmres(Model):
    """GMRES with restarts: Arnoldi's process by modified Gram-Schmidt, Givens' rotations, a triangular system, until the residual is small."""

    kind = "physics and numerics"
    dtype = "float64"
    size = dict(n=80, m=10, restarts=12)
    small = dict(n=6, m=3, restarts=4)

    def make(self, random, n, m, restarts):
        a = np.diag(np.linspace(2, 5, n)) + np.diag(np.full(n - 1, -1.5), 1) + np.diag(np.full(n - 1, -0.5), -1)
        return a + 0.3 * random.normal(size=(n, n)) / np.sqrt(n), random.normal(size=n), 1e-9

    def rscan(self, n, m, restarts):
        @rs.compile
        def solve(a, b, tolerance):
            def restart(x):
                r = b - a @ x
                norm = rs.linalg.norm(r)
                basis = rs.zeros((m + 1, n)).at[0].set(r / norm)

                def arnoldi(k, basis, h, cosines, sines, g):
                    def orthogonalise(v, w):
                        along = v @ w
                        return dict(w=w - along * v, along=along)

                    out = rs.loop(orthogonalise, over=dict(v=basis), init=dict(w=a @ basis[k]))
                    w, column = out.last.w, out.along
                    size = rs.linalg.norm(w)
                    basis = basis.at[k + 1].set(w / size)
                    column = column.at[k + 1].set(size)

                    def rotate(j, column):
                        p, q = column[j], column[j + 1]
                        return column.at[j].set(cosines[j] * p + sines[j] * q).at[j + 1].set(cosines[j] * q - sines[j] * p)

                    column = rs.fori(0, k, rotate, column)
                    p, q = column[k], column[k + 1]
                    length = rs.hypot(p, q)
                    c, s = p / length, q / length
                    column = column.at[k].set(length).at[k + 1].set(0.0)
                    g = g.at[k + 1].set(-s * g[k]).at[k].set(c * g[k])
                    return dict(basis=basis, h=h.at[:, k].set(column), cosines=cosines.at[k].set(c), sines=sines.at[k].set(s), g=g)

                init = dict(basis=basis, h=rs.zeros((m + 1, m)), cosines=rs.zeros(m), sines=rs.zeros(m), g=rs.zeros(m + 1).at[0].set(norm))
                out = rs.loop(arnoldi, over=dict(k=rs.arange(m)), init=init).last
                y = rs.linalg.solve_triangular(out.h[:m], out.g[:m])
                return x + y @ out.basis[:m], rs.until(rs.abs(out.g[m]) < tolerance)

            x = rs.loop(restart, init=rs.zeros(n), n_steps=restarts)
            return x.last, x.steps

        return solve

    def jax(self, n, m, restarts):
        import jax
        import jax.numpy as jnp
        from jax import lax
        from jax.scipy.linalg import solve_triangular

        @jax.jit
        def solve(a, b, tolerance):
            def restart(state):
                x, count, _ = state
                r = b - a @ x
                norm = jnp.linalg.norm(r)

                def arnoldi(k, state):
                    basis, h, cosines, sines, g = state

                    def orthogonalise(w, v):
                        along = v @ w
                        return w - along * v, along

                    w, column = lax.scan(orthogonalise, a @ basis[k], basis)
                    size = jnp.linalg.norm(w)
                    basis, column = basis.at[k + 1].set(w / size), column.at[k + 1].set(size)

                    def rotate(j, column):
                        p, q = column[j], column[j + 1]
                        return column.at[j].set(cosines[j] * p + sines[j] * q).at[j + 1].set(cosines[j] * q - sines[j] * p)

                    column = lax.fori_loop(0, k, rotate, column)
                    p, q = column[k], column[k + 1]
                    length = jnp.hypot(p, q)
                    c, s = p / length, q / length
                    column = column.at[k].set(length).at[k + 1].set(0.0)
                    g = g.at[k + 1].set(-s * g[k]).at[k].set(c * g[k])
                    return basis, h.at[:, k].set(column), cosines.at[k].set(c), sines.at[k].set(s), g

                basis = jnp.zeros((m + 1, n)).at[0].set(r / norm)
                init = (basis, jnp.zeros((m + 1, m)), jnp.zeros(m), jnp.zeros(m), jnp.zeros(m + 1).at[0].set(norm))
                basis, h, _, _, g = lax.fori_loop(0, m, arnoldi, init)
                x = x + solve_triangular(h[:m], g[:m]) @ basis[:m]
                return x, count + 1, jnp.abs(g[m]) < tolerance

            x, count, _ = lax.while_loop(lambda s: (s[1] < restarts) & ~s[2], restart, (jnp.zeros(n), jnp.int64(0), False))
            return x, count

        return solve


class ShootingConvection(Model):
    """Natural convection at a hot wall by shooting: Newton's iteration for two unknown slopes, each with the Jacobian of a Runge-Kutta
    path, until the far ends fit; many fluids at once, and how the slopes change with the fluid."""

    kind = "physics and numerics"
    dtype = "float64"
    size = dict(fluids=8, steps=40)
    small = dict(fluids=2, steps=10)
    rtol = 1e-7

    def make(self, random, fluids, steps):
        return (np.sort(0.5 + 1.5 * random.random(fluids)),)

    def rscan(self, fluids, steps):
        step_size = 4.0 / steps

        def far(slopes, prandtl):
            def rate(y):
                f, f1, f2, heat, heat1 = y[0], y[1], y[2], y[3], y[4]
                return rs.stack([f1, f2, -3 * f * f2 + 2 * f1**2 - heat, heat1, -3 * prandtl * f * heat1])

            def step(y):
                a = rate(y)
                b = rate(y + step_size / 2 * a)
                c = rate(y + step_size / 2 * b)
                d = rate(y + step_size * c)
                return y + step_size / 6 * (a + 2 * b + 2 * c + d)

            y = rs.loop(step, init=rs.array([0.0, 0.0, slopes[0], 1.0, slopes[1]]), n_steps=steps).last
            return rs.stack([y[1], y[3]])

        def shoot(prandtl):
            def newton(slopes):
                miss = far(slopes, prandtl)
                new = slopes - rs.linalg.solve(rs.jacobian(far)(slopes, prandtl), miss)
                return new, rs.until(rs.max(rs.abs(new - slopes)) < 1e-9)

            return rs.loop(newton, init=rs.constant([0.65, -0.5]), n_steps=20).last

        @rs.compile
        def solve(prandtl):
            return rs.vmap(lambda p: rs.jvp(shoot, (p,), (1.0,)))(prandtl)

        return solve

    def jax(self, fluids, steps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        step_size = 4.0 / steps

        def far(slopes, prandtl):
            def rate(y):
                f, f1, f2, heat, heat1 = y
                return jnp.stack([f1, f2, -3 * f * f2 + 2 * f1**2 - heat, heat1, -3 * prandtl * f * heat1])

            def step(_, y):
                a = rate(y)
                b = rate(y + step_size / 2 * a)
                c = rate(y + step_size / 2 * b)
                d = rate(y + step_size * c)
                return y + step_size / 6 * (a + 2 * b + 2 * c + d)

            y = lax.fori_loop(0, steps, step, jnp.array([0.0, 0.0, slopes[0], 1.0, slopes[1]]))
            return jnp.stack([y[1], y[3]])

        def shoot(prandtl):
            def newton(state):
                slopes, count, _ = state
                new = slopes - jnp.linalg.solve(jax.jacfwd(far)(slopes, prandtl), far(slopes, prandtl))
                return new, count + 1, jnp.max(jnp.abs(new - slopes)) < 1e-9

            return lax.while_loop(lambda s: (s[1] < 20) & ~s[2], newton, (jnp.array([0.65, -0.5]), 0, False))[0]

        return jax.jit(jax.vmap(lambda p: jax.jvp(shoot, (p,), (1.0,))))


class BouncingTerrain(Model):
    """Balls that bounce over hills: flight until below the ground, the instant of contact by Newton's method, a reflection with loss;
    where each is after some bounces, and the Jacobian of that by its first velocity."""

    kind = "physics and numerics"
    dtype = "float64"
    size = dict(balls=24, bounces=4)
    small = dict(balls=3, bounces=2)
    rtol = 1e-6

    def make(self, random, balls, bounces):
        place = np.stack([3 * random.normal(size=balls), 1.5 + random.random(balls)], axis=1)
        return place, 0.7 * random.normal(size=(balls, 2)), 0.3

    def rscan(self, balls, bounces):
        def fly(velocity, place, height):
            def ground(x):
                return height * rs.sin(x) + 0.1 * height * rs.cos(3 * x)

            def at(p, v, t):
                return p + v * t + rs.stack([0.0 * t, -0.5 * 9.81 * t**2])

            def above(p, v, t):
                q = at(p, v, t)
                return q[1] - ground(q[0])

            def bounce(p, v):
                coarse = rs.loop(lambda t: (t + 0.02, rs.until(above(p, v, t + 0.02) < 0)), init=0.02).last

                def newton(t):
                    gap, slope = rs.jvp(lambda t: above(p, v, t), (t,), (1.0,))
                    new = t - gap / slope
                    return new, rs.until(rs.abs(new - t) < 1e-12)

                t = rs.loop(newton, init=coarse, n_steps=30).last
                p = at(p, v, t)
                v = v - rs.stack([0.0, 9.81]) * t
                tilt = rs.grad(ground)(p[0])
                normal = rs.stack([-tilt, 1.0]) / rs.sqrt(1 + tilt**2)
                v = v - 1.8 * rs.dot(v, normal) * normal
                return dict(p=p, v=v)

            out = rs.loop(bounce, init=dict(p=place, v=velocity), n_steps=bounces)
            return rs.concatenate([out.last.p, out.last.v])

        @rs.compile
        def all_balls(place, velocity, height):
            ends = rs.vmap(fly, (0, 0, None))(velocity, place, height)
            slopes = rs.vmap(rs.jacobian(fly), (0, 0, None))(velocity, place, height)
            return ends, slopes

        return all_balls

    def jax(self, balls, bounces):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def fly(velocity, place, height):
            def ground(x):
                return height * jnp.sin(x) + 0.1 * height * jnp.cos(3 * x)

            def at(p, v, t):
                return p + v * t + jnp.stack([0.0 * t, -0.5 * 9.81 * t**2])

            def above(p, v, t):
                q = at(p, v, t)
                return q[1] - ground(q[0])

            def bounce(state, _):
                p, v = state
                coarse = lax.while_loop(lambda t: above(p, v, t) >= 0, lambda t: t + 0.02, 0.04)

                def newton(state):
                    t, count, _ = state
                    gap, slope = jax.jvp(lambda t: above(p, v, t), (t,), (1.0,))
                    new = t - gap / slope
                    return new, count + 1, jnp.abs(new - t) < 1e-12

                t, _, _ = lax.while_loop(lambda s: (s[1] < 30) & ~s[2], newton, (coarse, 0, False))
                p = at(p, v, t)
                v = v - jnp.array([0.0, 9.81]) * t
                tilt = jax.grad(ground)(p[0])
                normal = jnp.stack([-tilt, 1.0]) / jnp.sqrt(1 + tilt**2)
                return (p, v - 1.8 * jnp.dot(v, normal) * normal), None

            (p, v), _ = lax.scan(bounce, (place, velocity), None, length=bounces)
            end = jnp.concatenate([p, v])
            return end, end

        def all_balls(place, velocity, height):
            slopes, ends = jax.vmap(jax.jacfwd(fly, has_aux=True), (0, 0, None))(velocity, place, height)
            return ends, slopes

        return jax.jit(all_balls)


class SpinGlassResponse(Model):
    """The equations of Thouless, Anderson and Palmer for a spin glass, damped: magnetisations, their responses to all fields (a Jacobian),
    and the Hessian of the free energy by temperature, ferromagnetic bias and field."""

    kind = "physics and numerics"
    dtype = "float64"
    size = dict(spins=24, sweeps=40)
    small = dict(spins=4, sweeps=5)

    def make(self, random, spins, sweeps):
        j = np.triu(random.normal(size=(spins, spins)) / np.sqrt(spins), 1)
        return np.array([0.6, 0.1, 0.2]), 0.3 * random.normal(size=spins), j + j.T

    def rscan(self, spins, sweeps):
        def magnetisations(field, theta, j):
            beta, bias, h = theta[0], theta[1], theta[2]
            coupled = j + bias / spins

            def sweep(m):
                onsager = beta * m * ((coupled**2) @ (1 - m**2))
                return 0.5 * m + 0.5 * rs.tanh(beta * (h + field + coupled @ m - onsager))

            return rs.loop(sweep, init=rs.zeros(spins), n_steps=sweeps)[-1]

        def energy(theta, field, j):
            beta, bias, h = theta[0], theta[1], theta[2]
            m = magnetisations(field, theta, j)
            coupled = j + bias / spins
            entropy = -rs.sum((1 + m) / 2 * rs.log((1 + m) / 2) + (1 - m) / 2 * rs.log((1 - m) / 2))
            q = 1 - m**2
            return -m @ coupled @ m / 2 - m @ (h + field) - beta / 4 * (q @ (coupled**2) @ q) - entropy / beta

        @rs.compile
        def responses(theta, field, j):
            return magnetisations(field, theta, j), rs.jacobian(magnetisations)(field, theta, j), rs.hessian(energy)(theta, field, j)

        return responses

    def jax(self, spins, sweeps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def magnetisations(field, theta, j):
            beta, bias, h = theta
            coupled = j + bias / spins
            squares = coupled**2

            def sweep(m, _):
                onsager = beta * m * (squares @ (1 - m**2))
                return 0.5 * m + 0.5 * jnp.tanh(beta * (h + field + coupled @ m - onsager)), None

            m, _ = lax.scan(sweep, jnp.zeros(spins), None, length=sweeps)
            return m

        def energy(theta, field, j):
            beta, bias, h = theta
            m = magnetisations(field, theta, j)
            coupled = j + bias / spins
            entropy = -jnp.sum((1 + m) / 2 * jnp.log((1 + m) / 2) + (1 - m) / 2 * jnp.log((1 - m) / 2))
            q = 1 - m**2
            return -m @ coupled @ m / 2 - m @ (h + field) - beta / 4 * (q @ (coupled**2) @ q) - entropy / beta

        @jax.jit
        def responses(theta, field, j):
            m = magnetisations(field, theta, j)
            return m, jax.jacfwd(magnetisations)(field, theta, j), jax.hessian(energy)(theta, field, j)

        return responses


class CkyInside(Model):
    """The inside algorithm of a context-free grammar over spans of growing length in a table, in logarithms; its gradients are the
    expected numbers of uses of all rules."""

    kind = "tables of dynamic programs"
    dtype = "float64"
    size = dict(length=12, symbols=6, words=20)
    small = dict(length=4, symbols=2, words=3)

    def make(self, random, length, symbols, words):
        rules = np.log(random.dirichlet(np.ones(symbols * symbols + words), size=symbols))
        return (
            dict(binary=rules[:, words:].reshape(symbols, symbols, symbols), lexical=rules[:, :words]),
            random.integers(0, words, size=length),
        )

    def rscan(self, length, symbols, words):
        @rs.compile
        def log_probability(rules, text):
            starts, splits = np.arange(length), np.arange(1, length)[:, None]

            def grow(size, table):
                # table[l, i] is the span of l words from place i
                left = table[splits, starts]
                right = table[rs.maximum(size - splits, 0), rs.minimum(starts + splits, length - 1)]
                fits = (splits < size) & (starts + size <= length)
                both = rs.where(fits[:, :, None, None], left[:, :, :, None] + right[:, :, None, :], -1e30)
                pairs = rs.logsumexp(both, axis=0)
                spans = rs.logsumexp(rules["binary"] + pairs[:, None], axis=(2, 3))
                return table.at[size].set(spans)

            table = rs.full((length + 1, length, symbols), -1e30).at[1].set(rules["lexical"].T[text])
            table = rs.loop(grow, over=dict(size=rs.arange(2, length + 1)), init=dict(table=table)).last.table
            return table[length, 0, 0]

        return rs.value_and_grad(log_probability)

    def jax(self, length, symbols, words):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def log_probability(rules, text):
            starts, splits = jnp.arange(length), jnp.arange(1, length)[:, None]

            def grow(table, size):
                left = table[splits, starts]
                right = table[jnp.maximum(size - splits, 0), jnp.minimum(starts + splits, length - 1)]
                fits = (splits < size) & (starts + size <= length)
                both = jnp.where(fits[:, :, None, None], left[:, :, :, None] + right[:, :, None, :], -1e30)
                pairs = jax.nn.logsumexp(both, axis=0)
                spans = jax.nn.logsumexp(rules["binary"] + pairs[:, None], axis=(2, 3))
                return table.at[size].set(spans), None

            table = jnp.full((length + 1, length, symbols), -1e30).at[1].set(rules["lexical"].T[text])
            table, _ = lax.scan(grow, table, jnp.arange(2, length + 1))
            return table[length, 0, 0]

        return jax.jit(jax.value_and_grad(log_probability))


class GotohTrace(Model):
    """Global alignment with affine gaps in whole numbers: a row of three tables per letter, gaps along the row by a running maximum,
    then the way back through the tables, letter by letter, until both sequences are used up."""

    kind = "tables of dynamic programs"
    dtype = "int32"
    size = dict(m=150, n=140)
    small = dict(m=5, n=4)

    def make(self, random, m, n):
        scores = random.integers(-4, 2, size=(20, 20))
        scores = np.minimum(scores, scores.T) + np.diag(random.integers(4, 9, size=20))
        a = random.integers(0, 20, size=m)
        b = np.where(random.random(n) < 0.7, np.resize(np.delete(a, slice(m // 3, m // 3 + m // 10)), n), random.integers(0, 20, size=n))
        return a.astype("i4"), b.astype("i4"), scores.astype("i4"), np.int32(11), np.int32(1)

    def rscan(self, m, n):
        @rs.compile
        def align(a, b, scores, opened, longer):
            k = rs.arange(n + 1, dtype="int32")
            first = rs.where(k == 0, 0, -opened - longer * k)
            low = rs.full(n + 1, -(10**6), dtype="int32")

            def row(letter, i, best, down):
                down = rs.maximum(down, best - opened) - longer
                diagonal = rs.concatenate([low[:1], best[:-1] + scores[letter][b]])
                either = rs.maximum(diagonal, down)
                # a gap that ends at k began at the place before which `either + longer * place` is largest
                along = rs.concatenate([low[:1], (rs.cummax(either + longer * k) - opened)[:-1]]) - longer * k
                best = rs.maximum(either, along)
                return dict(best=best, down=down, along=along)

            i = rs.arange(1, m + 1, dtype="int32")
            out = rs.loop(row, over=dict(letter=a, i=i), init=dict(best=first, down=low))
            best, down = rs.concatenate([first[None], out.best]), rs.concatenate([low[None], out.down])
            along = rs.concatenate([first[None], out.along])

            def back(i, j, mode, matched, gaps):
                # mode: 0 in `best`, 1 in a gap of b (down), 2 in a gap of a (along)
                here = best[i, j]
                mode = rs.where(mode > 0, mode, rs.where(here == down[i, j], 1, rs.where(here == along[i, j], 2, 0)))
                up, left = mode == 1, mode == 2
                i_new, j_new = rs.where(left, i, i - 1), rs.where(up, j, j - 1)
                opens = rs.where(
                    up, down[i, j] == best[i_new, j_new] - opened - longer, left & (along[i, j] == best[i_new, j_new] - opened - longer)
                )
                matched = matched + (~up & ~left & (a[i - 1] == b[j - 1]))
                state = dict(i=i_new, j=j_new, mode=rs.where(opens, 0, mode), matched=matched, gaps=gaps + opens)
                return state, rs.until((i_new == 0) & (j_new == 0))

            path = rs.loop(back, init=dict(i=m, j=n, mode=0, matched=0, gaps=0), n_steps=m + n)
            return best[m, n], path.steps, path.last.matched, path.last.gaps

        return align

    def jax(self, m, n):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def align(a, b, scores, opened, longer):
            k = jnp.arange(n + 1, dtype=jnp.int32)
            first = jnp.where(k == 0, 0, -opened - longer * k)
            low = jnp.full(n + 1, -(10**6), jnp.int32)

            def row(state, letter):
                best, down = state
                down = jnp.maximum(down, best - opened) - longer
                diagonal = jnp.concatenate([low[:1], best[:-1] + scores[letter][b]])
                either = jnp.maximum(diagonal, down)
                along = jnp.concatenate([low[:1], (lax.cummax(either + longer * k) - opened)[:-1]]) - longer * k
                best = jnp.maximum(either, along)
                return (best, down), (best, down, along)

            _, (best, down, along) = lax.scan(row, (first, low), a)
            best, down = jnp.concatenate([first[None], best]), jnp.concatenate([low[None], down])
            along = jnp.concatenate([first[None], along])

            def back(state):
                i, j, mode, matched, gaps, count = state
                here = best[i, j]
                mode = jnp.where(mode > 0, mode, jnp.where(here == down[i, j], 1, jnp.where(here == along[i, j], 2, 0)))
                up, left = mode == 1, mode == 2
                i_new, j_new = jnp.where(left, i, i - 1), jnp.where(up, j, j - 1)
                cost = best[i_new, j_new] - opened - longer
                opens = jnp.where(up, down[i, j] == cost, left & (along[i, j] == cost))
                matched = matched + (~up & ~left & (a[i - 1] == b[j - 1]))
                return i_new, j_new, jnp.where(opens, 0, mode), matched, gaps + opens, count + 1

            zero = jnp.int64(0)
            init = (jnp.int64(m), jnp.int64(n), zero, zero, zero, zero)
            out = lax.while_loop(lambda s: ((s[0] > 0) | (s[1] > 0)) & (s[5] < m + n), back, init)
            return best[m, n], out[5], out[3], out[4]

        return align


class ChunkStore(Model):
    """Deduplication of a file: a rolling gear hash cuts it into chunks, Adler's checksum names them, and a table with open addressing
    tells which were seen before."""

    kind = "tables of dynamic programs"
    dtype = "int64"
    size = dict(length=3000, slots=256)
    small = dict(length=60, slots=16)

    def make(self, random, length, slots):
        blocks = random.integers(0, 256, size=(4, length // 8))
        text = blocks[random.integers(0, 4, size=12)].ravel()[:length].astype("u1")
        return text, random.integers(0, 1 << 32, size=256), 0b11111 << 20

    def rscan(self, length, slots):
        @rs.compile
        def store(text, gear, mask):
            def step(byte, roll, size, low, high, table, known):
                roll = ((roll << 1) + gear[byte]) & 0xFFFFFFFF
                size = size + 1
                low = (low + byte) % 65521
                high = (high + low) % 65521
                cut = ((size >= 8) & (roll & mask == 0)) | (size >= 64)
                name = (high << 16) | low

                def probe(slot):
                    new = (slot + 1) % slots
                    return new, rs.until((table[new] == 0) | (table[new] == name))

                slot = rs.ifelse(cut, rs.loop(probe, init=(name * 2654435761) % slots).last, 0)
                known = known + (cut & (table[slot] == name))
                table = rs.ifelse(cut, table.at[slot].set(name), table)
                return dict(
                    roll=rs.where(cut, 0, roll), size=rs.where(cut, 0, size), low=rs.where(cut, 1, low), high=rs.where(cut, 0, high),
                    table=table, known=known, cut=cut,
                )  # fmt: skip

            init = dict(roll=0, size=0, low=1, high=0, table=rs.zeros(slots, dtype="int64"), known=0)
            out = rs.loop(step, over=dict(byte=text), init=init)
            return out.cut, out.last.table, out.last.known

        return store

    def jax(self, length, slots):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def store(text, gear, mask):
            def step(state, byte):
                roll, size, low, high, table, known = state
                roll = ((roll << 1) + gear[byte]) & 0xFFFFFFFF
                size = size + 1
                low = (low + byte) % 65521
                high = (high + low) % 65521
                cut = ((size >= 8) & (roll & mask == 0)) | (size >= 64)
                name = (high << 16) | low

                def insert(table, known):
                    start = (name * 2654435761 + 1) % slots
                    slot = lax.while_loop(lambda s: (table[s] != 0) & (table[s] != name), lambda s: (s + 1) % slots, start)
                    return table.at[slot].set(name), known + (table[slot] == name)

                table, known = lax.cond(cut, insert, lambda table, known: (table, known), table, known)
                new = (jnp.where(cut, 0, roll), jnp.where(cut, 0, size), jnp.where(cut, 1, low), jnp.where(cut, 0, high), table, known)
                return new, cut

            zero = jnp.int64(0)
            init = (zero, zero, jnp.int64(1), zero, jnp.zeros(slots, jnp.int64), zero)
            (_, _, _, _, table, known), cut = lax.scan(step, init, text)
            return cut, table, known

        return store


class KnapsackChosen(Model):
    """A knapsack: the best values for all weights, an item per step by a row shifted by its weight, and the items chosen, backwards."""

    kind = "tables of dynamic programs"
    dtype = "int64"
    size = dict(items=80, capacity=1000, heaviest=60)
    small = dict(items=5, capacity=12, heaviest=6)

    def make(self, random, items, capacity, heaviest):
        weights = random.integers(1, heaviest, size=items)
        return weights, weights * 10 + random.integers(0, 50, size=items)

    def rscan(self, items, capacity, heaviest):
        @rs.compile
        def pack(weights, values):
            def consider(weight, value, best):
                padded = rs.concatenate([rs.full(heaviest, -(1 << 40)), best])
                taken = padded[heaviest - weight : heaviest - weight + capacity + 1] + value
                return dict(best=rs.maximum(best, taken), take=taken > best)

            out = rs.loop(consider, over=dict(weight=weights, value=values), init=dict(best=rs.zeros(capacity + 1, dtype="int64")))

            def back(take, weight, left):
                chosen = take[left]
                return dict(left=left - rs.where(chosen, weight, 0), chosen=chosen)

            path = rs.loop(back, over=dict(take=out.take, weight=weights), init=dict(left=capacity), reverse=True)
            return out.best[-1], path.chosen

        return pack

    def jax(self, items, capacity, heaviest):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def pack(weights, values):
            def consider(best, item):
                weight, value = item
                padded = jnp.concatenate([jnp.full(heaviest, -(1 << 40)), best])
                taken = lax.dynamic_slice(padded, (heaviest - weight,), (capacity + 1,)) + value
                return jnp.maximum(best, taken), taken > best

            best, take = lax.scan(consider, jnp.zeros(capacity + 1, jnp.int64), (weights, values))

            def back(left, row):
                take, weight = row
                chosen = take[left]
                return left - jnp.where(chosen, weight, 0), chosen

            _, chosen = lax.scan(back, jnp.int64(capacity), (take, weights), reverse=True)
            return best, chosen

        return pack
