"""Hidden states: Viterbi, Baum and Welch, conditional random fields, CTC."""

import numpy as np

import rscan as rs
from models import Model


def log_normalised(random, *shape):
    a = random.normal(size=shape)
    return a - np.log(np.sum(np.exp(a), axis=-1, keepdims=True))


class ConnectionistLoss(Model):
    """The CTC loss of a batch of transcripts, by forward recursion over labels with blanks between; gradient by the logits."""

    kind = "Viterbi, HMM, CRF"
    dtype = "float64"
    size = dict(steps=60, batch=8, letters=20, labels=10)
    small = dict(steps=5, batch=2, letters=4, labels=2)

    def make(self, random, steps, batch, letters, labels):
        return random.normal(size=(steps, batch, letters)), random.integers(1, letters, size=(batch, labels))

    def rscan(self, steps, batch, letters, labels):
        S = 2 * labels + 1

        @rs.compile
        def loss(logits, text):
            extended = rs.set_subtensor(rs.zeros((batch, S), dtype="int64")[:, 1::2], text)
            # from two before: not onto a blank, and not between equal letters
            skips = (extended[:, 2:] != 0) & rs.not_equal(extended[:, 2:], extended[:, :-2])
            log_p = rs.log_softmax(logits, axis=-1)
            rows = rs.arange(batch)[:, None]

            def step(log_p, alpha):
                one = rs.concatenate([rs.full((batch, 1), -1e30), alpha[:, :-1]], axis=1)
                two = rs.concatenate([rs.full((batch, 2), -1e30), rs.where(skips, alpha[:, :-2], -1e30)], axis=1)
                return rs.logsumexp(rs.stack([alpha, one, two]), axis=0) + log_p[rows, extended]

            alpha0 = rs.where(rs.arange(S) < 2, log_p[0][rows, extended], -1e30)
            alpha = rs.loop(step, over=log_p[1:], init=alpha0)[-1]
            return -rs.mean(rs.logaddexp(alpha[:, -1], alpha[:, -2]))

        return rs.value_and_grad(loss)

    def jax(self, steps, batch, letters, labels):
        import jax
        import jax.numpy as jnp
        from jax import lax

        S = 2 * labels + 1

        def loss(logits, text):
            extended = jnp.zeros((batch, S), jnp.int64).at[:, 1::2].set(text)
            skips = (extended[:, 2:] != 0) & (extended[:, 2:] != extended[:, :-2])
            log_p = jax.nn.log_softmax(logits)
            emission = jnp.take_along_axis(log_p, jnp.broadcast_to(extended, (steps, batch, S)), axis=2)

            def step(alpha, emission):
                one = jnp.pad(alpha[:, :-1], ((0, 0), (1, 0)), constant_values=-1e30)
                two = jnp.pad(jnp.where(skips, alpha[:, :-2], -1e30), ((0, 0), (2, 0)), constant_values=-1e30)
                return jax.nn.logsumexp(jnp.stack([alpha, one, two]), axis=0) + emission, None

            alpha, _ = lax.scan(step, jnp.where(jnp.arange(S) < 2, emission[0], -1e30), emission[1:])
            return -jnp.mean(jnp.logaddexp(alpha[:, -1], alpha[:, -2]))

        return jax.jit(jax.value_and_grad(loss))


class ChainFieldTagger(Model):
    """A linear-chain conditional random field for sentences of unequal lengths: loss, and gradients by scores and transitions."""

    kind = "Viterbi, HMM, CRF"
    dtype = "float64"
    size = dict(steps=30, batch=16, tags=9)
    small = dict(steps=4, batch=2, tags=3)

    def make(self, random, steps, batch, tags):
        scores = random.normal(size=(steps, batch, tags))
        return (
            scores,
            random.normal(size=(tags, tags)),
            random.integers(0, tags, size=(steps, batch)),
            random.integers(2, steps + 1, size=batch),
        )

    def rscan(self, steps, batch, tags):
        @rs.compile
        def loss(scores, transitions, gold, lengths):
            inside = rs.arange(steps)[:, None] < lengths[None, :]

            def step(score, inside, alpha):
                paths = alpha[:, :, None] + transitions[None, :, :]
                top = rs.max(paths, axis=1)
                new = score + top + rs.log(rs.sum(rs.exp(paths - top[:, None, :]), axis=1))
                return rs.where(inside[:, None], new, alpha)

            alpha = rs.loop(step, over=[scores[1:], inside[1:]], init=scores[0])[-1]
            emitted = rs.take_along_axis(scores, gold[:, :, None], axis=2)[:, :, 0]
            moved = transitions[gold[:-1], gold[1:]]
            path = rs.sum(rs.where(inside, emitted, 0.0), axis=0) + rs.sum(rs.where(inside[1:], moved, 0.0), axis=0)
            return rs.mean(rs.logsumexp(alpha, axis=1) - path)

        return rs.value_and_grad(loss, wrt=(0, 1))

    def jax(self, steps, batch, tags):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def loss(scores, transitions, gold, lengths):
            inside = jnp.arange(steps)[:, None] < lengths

            def step(alpha, row):
                score, inside = row
                new = score + jax.nn.logsumexp(alpha[:, :, None] + transitions, axis=1)
                return jnp.where(inside[:, None], new, alpha), None

            alpha, _ = lax.scan(step, scores[0], (scores[1:], inside[1:]))
            emitted = jnp.take_along_axis(scores, gold[:, :, None], axis=2)[:, :, 0]
            path = jnp.sum(jnp.where(inside, emitted, 0), axis=0)
            path += jnp.sum(jnp.where(inside[1:], transitions[gold[:-1], gold[1:]], 0), axis=0)
            return jnp.mean(jax.nn.logsumexp(alpha, axis=1) - path)

        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))


class GeneViterbi(Model):
    """The most probable states of a hidden Markov model of sequences, by maxima, back pointers and a walk back."""

    kind = "Viterbi, HMM, CRF"
    dtype = "float64"
    size = dict(steps=600, states=12, letters=4)
    small = dict(steps=5, states=3, letters=2)

    def make(self, random, steps, states, letters):
        A = log_normalised(random, states, states) + np.where(np.eye(states) > 0, 2.0, 0.0)
        return A, log_normalised(random, states, letters), log_normalised(random, states), random.integers(0, letters, size=steps)

    def rscan(self, steps, states, letters):
        @rs.compile
        def decode(A, B, start, x):
            def step(x, delta):
                through = delta[:, None] + A
                return dict(delta=rs.max(through, axis=0) + B[:, x], back=rs.argmax(through, axis=0))

            out = rs.loop(step, over=dict(x=x[1:]), init=dict(delta=start + B[:, x[0]]))
            last = rs.argmax(out.delta[-1])
            path = rs.loop(lambda back, state: back[state], over=out.back, init=last, reverse=True)
            return rs.max(out.delta[-1]), rs.concatenate([path, rs.stack([last])])

        return decode

    def jax(self, steps, states, letters):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def decode(A, B, start, x):
            def step(delta, x):
                through = delta[:, None] + A
                return jnp.max(through, axis=0) + B[:, x], jnp.argmax(through, axis=0)

            delta, back = lax.scan(step, start + B[:, x[0]], x[1:])
            last = jnp.argmax(delta)

            def follow(state, back):
                return back[state], back[state]

            _, path = lax.scan(follow, last, back, reverse=True)
            return jnp.max(delta), jnp.append(path, last)

        return decode


class BaumWelch(Model):
    """Iterations of expectation and maximisation of a hidden Markov model with normal emissions: two loops inside of one."""

    kind = "Viterbi, HMM, CRF"
    dtype = "float64"
    size = dict(steps=200, states=4, iterations=10)
    small = dict(steps=6, states=2, iterations=2)

    def make(self, random, steps, states, iterations):
        y = random.normal(size=steps) + 2 * random.integers(0, states, size=steps)
        return y, np.full((states, states), 0.3 / states) + 0.7 * np.eye(states), 2.0 * np.arange(states) + 0.1, np.ones(states)

    def rscan(self, steps, states, iterations):
        @rs.compile
        def learn(y, A, mean, variance):
            def iterate(A, mean, variance):
                likelihood = rs.exp(-0.5 * (y[:, None] - mean) ** 2 / variance) / rs.sqrt(2 * np.pi * variance)

                def forward(b, alpha):
                    unnormalised = (alpha @ A) * b
                    c = rs.sum(unnormalised)
                    return dict(alpha=unnormalised / c, c=c)

                f = rs.loop(forward, over=dict(b=likelihood), init=dict(alpha=rs.full((states,), 1 / states)))

                def backward(b, c, beta):
                    return A @ (b * beta) / c

                beta = rs.loop(backward, over=[likelihood[1:], f.c[1:]], init=rs.ones(states), reverse=True)
                beta = rs.concatenate([beta, rs.ones((1, states))])
                gamma = f.alpha * beta
                weighted = likelihood[1:] * beta[1:] / f.c[1:][:, None]
                pairs = A * (f.alpha[:-1].T @ weighted)
                total = rs.sum(gamma, axis=0)
                new_mean = rs.sum(gamma * y[:, None], axis=0) / total
                new_variance = rs.sum(gamma * (y[:, None] - new_mean) ** 2, axis=0) / total + 1e-3
                state = dict(A=pairs / rs.sum(pairs, axis=1, keepdims=True), mean=new_mean, variance=new_variance)
                return dict(**state, ll=rs.sum(rs.log(f.c)))

            out = rs.loop(iterate, init=dict(A=A, mean=mean, variance=variance), n_steps=iterations)
            return out.ll, out.A[-1], out.mean[-1], out.variance[-1]

        return learn

    def jax(self, steps, states, iterations):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def learn(y, A, mean, variance):
            def iterate(state, _):
                A, mean, variance = state
                likelihood = jnp.exp(-0.5 * (y[:, None] - mean) ** 2 / variance) / jnp.sqrt(2 * jnp.pi * variance)

                def forward(alpha, b):
                    alpha = (alpha @ A) * b
                    c = jnp.sum(alpha)
                    return alpha / c, (alpha / c, c)

                _, (alpha, c) = lax.scan(forward, jnp.full(states, 1 / states), likelihood)

                def backward(beta, row):
                    b, c = row
                    beta = A @ (b * beta) / c
                    return beta, beta

                _, beta = lax.scan(backward, jnp.ones(states), (likelihood[1:], c[1:]), reverse=True)
                beta = jnp.concatenate([beta, jnp.ones((1, states))])
                gamma = alpha * beta
                pairs = A * (alpha[:-1].T @ (likelihood[1:] * beta[1:] / c[1:, None]))
                total = jnp.sum(gamma, axis=0)
                mean = y @ gamma / total
                variance = jnp.sum(gamma * (y[:, None] - mean) ** 2, axis=0) / total + 1e-3
                return (pairs / jnp.sum(pairs, axis=1, keepdims=True), mean, variance), jnp.sum(jnp.log(c))

            (A, mean, variance), ll = lax.scan(iterate, (A, mean, variance), None, length=iterations)
            return ll, A, mean, variance

        return learn


class LoopyDenoising(Model):
    """Loopy belief propagation of a binary picture: four messages per pixel, sum-product in logs, marginals at the end."""

    kind = "Viterbi, HMM, CRF"
    dtype = "float64"
    size = dict(side=24, rounds=30)
    small = dict(side=4, rounds=3)

    def make(self, random, side, rounds):
        picture = np.where(np.add.outer(np.arange(side), np.arange(side)) // 6 % 2 == 0, 1.0, -1.0)
        return 0.7 * (picture + random.normal(size=(side, side))), 0.6

    def rscan(self, side, rounds):
        @rs.compile
        def denoise(field, coupling):
            row, column = rs.zeros((1, side)), rs.zeros((side, 1))

            def through(h):
                # the log odds that cross an edge: log of a sum over the two values of a pixel
                return rs.logaddexp(coupling + h, -coupling - h) - rs.logaddexp(h - coupling, coupling - h)

            def step(up, down, left, right):
                total = field + 0.5 * (up + down + left + right)
                to_up = through(total - 0.5 * up)
                to_down = through(total - 0.5 * down)
                to_left = through(total - 0.5 * left)
                to_right = through(total - 0.5 * right)
                return dict(
                    up=rs.concatenate([row, to_down[:-1]], axis=0),
                    down=rs.concatenate([to_up[1:], row], axis=0),
                    left=rs.concatenate([column, to_right[:, :-1]], axis=1),
                    right=rs.concatenate([to_left[:, 1:], column], axis=1),
                    total=total,
                )

            none = rs.zeros((side, side))
            out = rs.loop(step, init=dict(up=none, down=none, left=none, right=none), n_steps=rounds)
            change = rs.max(rs.abs(out.total[1:] - out.total[:-1]), axis=(1, 2))
            return rs.sigmoid(2 * out.total[-1]), change

        return denoise

    def jax(self, side, rounds):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def denoise(field, coupling):
            def through(h):
                return jnp.logaddexp(coupling + h, -coupling - h) - jnp.logaddexp(h - coupling, coupling - h)

            def step(messages, _):
                total = field + 0.5 * jnp.sum(messages, axis=0)
                up, down, left, right = through(total - 0.5 * messages)
                new = jnp.stack([
                    jnp.pad(down[:-1], ((1, 0), (0, 0))),
                    jnp.pad(up[1:], ((0, 1), (0, 0))),
                    jnp.pad(right[:, :-1], ((0, 0), (1, 0))),
                    jnp.pad(left[:, 1:], ((0, 0), (0, 1))),
                ])  # fmt: skip
                return new, total

            _, total = lax.scan(step, jnp.zeros((4, side, side)), None, length=rounds)
            return jax.nn.sigmoid(2 * total[-1]), jnp.max(jnp.abs(jnp.diff(total, axis=0)), axis=(1, 2))

        return denoise
