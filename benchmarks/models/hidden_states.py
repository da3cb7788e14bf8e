"""Hidden Markov models, conditional random fields and their relatives."""

import numpy as np
import rscan as rs
from models import Model

KIND = "hidden states"


class ConditionalField(Model):
    """The log-likelihood of a conditional random field of tags; the gradient by transitions and scores."""

    kind, dtype = KIND, "float64"
    size, small = dict(tags=20, steps=100), dict(tags=3, steps=4)

    def make(self, random, tags, steps):
        return random.normal(size=(tags, tags)), random.normal(size=(steps, tags)), random.integers(tags, size=steps)

    def rscan(self, tags, steps):
        def loss(T, scores, given):
            alpha = rs.loop(lambda s, a: s + rs.logsumexp(a[:, None] + T, axis=0), over=scores[1:], init=scores[0])[-1]
            path = rs.sum(scores[rs.arange(steps), given]) + rs.sum(T[given[:-1], given[1:]])
            return rs.logsumexp(alpha) - path

        return rs.value_and_grad(loss, wrt=(0, 1))

    def jax(self, tags, steps):
        import jax, jax.numpy as jnp

        def loss(T, scores, given):
            step = lambda a, s: (s + jax.nn.logsumexp(a[:, None] + T, axis=0), None)
            path = jnp.sum(scores[jnp.arange(steps), given]) + jnp.sum(T[given[:-1], given[1:]])
            return jax.nn.logsumexp(jax.lax.scan(step, scores[0], scores[1:])[0]) - path

        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))


class BatchedField(Model):
    """The same for a batch of sentences of different lengths, whose ends are masked."""

    kind, dtype = KIND, "float32"
    size, small = dict(batch=16, tags=12, steps=50), dict(batch=2, tags=3, steps=4)

    def make(self, random, batch, tags, steps):
        lengths = random.integers(steps // 2, steps + 1, size=batch)
        scores = random.normal(size=(steps, batch, tags)).astype("f4")
        return random.normal(size=(tags, tags)).astype("f4"), scores, np.arange(steps)[:, None] < lengths[None, :]

    def rscan(self, batch, tags, steps):
        def normaliser(T, scores, mask):
            def step(s, m, a):
                new = s + rs.logsumexp(a[:, :, None] + T[None], axis=1)
                return rs.where(m[:, None], new, a)

            return rs.sum(rs.logsumexp(rs.loop(step, over=[scores[1:], mask[1:]], init=scores[0])[-1], axis=1))

        return rs.value_and_grad(normaliser, wrt=(0, 1))

    def jax(self, batch, tags, steps):
        import jax, jax.numpy as jnp

        def normaliser(T, scores, mask):
            def step(a, given):
                s, m = given
                new = s + jax.nn.logsumexp(a[:, :, None] + T[None], axis=1)
                return jnp.where(m[:, None], new, a), None

            return jnp.sum(jax.nn.logsumexp(jax.lax.scan(step, scores[0], (scores[1:], mask[1:]))[0], axis=1))

        return jax.jit(jax.value_and_grad(normaliser, argnums=(0, 1)))


class ScaledForward(Model):
    """The forward algorithm with probabilities that are scaled at each step; the gradient by logits of transitions and emissions."""

    kind, dtype = KIND, "float64"
    size, small = dict(states=32, letters=10, steps=500), dict(states=3, letters=2, steps=5)

    def make(self, random, states, letters, steps):
        return random.normal(size=(states, states)), random.normal(size=(states, letters)), random.integers(letters, size=steps)

    def rscan(self, states, letters, steps):
        def loss(A, B, letters):
            A, B = rs.softmax(A, axis=1), rs.softmax(B, axis=1)

            def step(letter, p):
                p = (p @ A) * B[:, letter]
                total = rs.sum(p)
                return dict(p=p / total, ll=rs.log(total))

            return -rs.sum(rs.loop(step, over=dict(letter=letters), init=dict(p=rs.full(states, 1 / states))).ll)

        return rs.value_and_grad(loss, wrt=(0, 1))

    def jax(self, states, letters, steps):
        import jax, jax.numpy as jnp

        def loss(A, B, letters):
            A, B = jax.nn.softmax(A, axis=1), jax.nn.softmax(B, axis=1)

            def step(p, letter):
                p = (p @ A) * B[:, letter]
                total = jnp.sum(p)
                return p / total, jnp.log(total)

            return -jnp.sum(jax.lax.scan(step, jnp.full(states, 1 / states), letters)[1])

        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))


class ForwardBackward(Model):
    """What the hidden states probably were: a loop forwards, a loop backwards, and their product."""

    kind, dtype = KIND, "float64"
    size, small = dict(states=16, steps=500), dict(states=3, steps=5)

    def make(self, random, states, steps):
        return random.dirichlet(np.ones(states), size=states), random.uniform(0.1, 1, size=(steps, states))

    def rscan(self, states, steps):
        @rs.compile
        def f(A, lik):
            def forward(l, p):
                p = (p @ A) * l
                return p / rs.sum(p)

            def backward(l, b):
                b = A @ (b * l)
                return b / rs.sum(b)

            p = rs.loop(forward, over=lik, init=rs.full(states, 1 / states))
            b = rs.loop(backward, over=lik[1:], init=rs.full(states, 1 / states), reverse=True)
            both = p[:-1] * b
            return both / rs.sum(both, axis=1, keepdims=True)

        return f

    def jax(self, states, steps):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(A, lik):
            def forward(p, l):
                p = (p @ A) * l
                p = p / jnp.sum(p)
                return p, p

            def backward(b, l):
                b = A @ (b * l)
                b = b / jnp.sum(b)
                return b, b

            p = jax.lax.scan(forward, jnp.full(states, 1 / states), lik)[1]
            b = jax.lax.scan(backward, jnp.full(states, 1 / states), lik[1:], reverse=True)[1]
            both = p[:-1] * b
            return both / jnp.sum(both, axis=1, keepdims=True)

        return f


class MaxSumTree(Model):
    """The best score and path length of jumps through a grid: max over three neighbours, and how often the middle was taken."""

    kind, dtype = KIND, "float64"
    size, small = dict(n=500, steps=300), dict(n=5, steps=4)

    def make(self, random, n, steps):
        return (random.normal(size=(steps, n)),)

    def rscan(self, n, steps):
        @rs.compile
        def f(cost):
            wall = rs.full(1, -np.inf)

            def step(row, best, straight):
                left, right = rs.concatenate([wall, best[:-1]]), rs.concatenate([best[1:], wall])
                every = rs.stack([best, left, right])
                middle = rs.argmax(every, axis=0) == 0
                return dict(best=row + rs.max(every, axis=0), straight=rs.where(middle, straight + 1, 0))

            out = rs.loop(step, over=dict(row=cost), init=dict(best=rs.zeros(n), straight=rs.zeros(n, dtype="int64")))
            return out.best[-1], out.straight[-1]

        return f

    def jax(self, n, steps):
        import jax, jax.numpy as jnp

        @jax.jit
        def f(cost):
            wall = jnp.full(1, -jnp.inf)

            def step(state, row):
                best, straight = state
                left, right = jnp.concatenate([wall, best[:-1]]), jnp.concatenate([best[1:], wall])
                every = jnp.stack([best, left, right])
                middle = jnp.argmax(every, axis=0) == 0
                return (row + jnp.max(every, axis=0), jnp.where(middle, straight + 1, 0)), None

            return jax.lax.scan(step, (jnp.zeros(n), jnp.zeros(n, "int64")), cost)[0]

        return f
