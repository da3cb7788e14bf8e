"""Codes and texts: turbo codes, block sorting, formulas, many words sought at once, mixtures of contexts."""

import numpy as np

import rscan as rs
from models import Model


class TurboIterations(Model):
    """A turbo decoder: two max-log decoders (forwards and backwards over a trellis) exchange what they learn about each bit."""

    kind = "text, codes and parsing"
    dtype = "float32"
    size = dict(frames=4, bits=256, rounds=6)
    small = dict(frames=2, bits=9, rounds=2)
    rtol = 1e-4

    # the trellis of a recursive systematic code with memory 2, (1, 5/7)
    after = np.array([[0, 2], [2, 0], [3, 1], [1, 3]])  # state, bit -> state
    parity = np.array([[0, 1], [0, 1], [1, 0], [1, 0]])  # state, bit -> parity
    before = np.array([[0, 1], [2, 3], [0, 1], [2, 3]])  # state -> the two states before
    bit = np.array([[0, 1], [1, 0], [1, 0], [0, 1]])  # and the bits that lead here from them

    def make(self, random, frames, bits, rounds):
        order = random.permutation(bits)
        sent = random.integers(0, 2, size=(frames, bits))

        def encode(message):
            state, out = 0, []
            for b in message:
                out.append(self.parity[state, b])
                state = self.after[state, b]
            return np.array(out)

        streams = [sent, np.array([encode(m) for m in sent]), np.array([encode(m[order]) for m in sent])]
        noisy = [(2 * (2 * s - 1.0) + random.normal(size=s.shape, scale=1.8)).astype("f4") for s in streams]
        return (*noisy, order)

    def rscan(self, frames, bits, rounds):
        signs = 0.5 * np.array([-1.0, 1.0], "f4")
        parities = (self.parity - 0.5).astype("f4")
        after, before, bit = self.after, self.before, self.bit
        start = np.array([0.0, -1e4, -1e4, -1e4], "f4")

        def soft_bits(systematic, parity):
            branch = systematic[:, None, None] * signs + parity[:, None, None] * parities  # bits, states, 2

            def forwards(branch, alpha):
                new = rs.max(alpha[before] + branch[before, bit], axis=1)
                return dict(alpha=new - rs.max(new), seen=alpha)

            def backwards(branch, beta):
                new = rs.max(branch + beta[after], axis=1)
                return dict(beta=new - rs.max(new), seen=beta)

            alphas = rs.loop(forwards, over=dict(branch=branch), init=dict(alpha=start)).seen
            betas = rs.loop(backwards, over=dict(branch=branch), init=dict(beta=rs.zeros(4, dtype="float32")), reverse=True).seen
            total = alphas[:, :, None] + branch + betas[:, after]
            best = rs.max(total, axis=1)
            return best[:, 1] - best[:, 0]

        def decode(systematic, first, second, order):
            shuffled = systematic[order]
            inverse = rs.argsort(order)

            def exchange(prior):
                extrinsic = soft_bits(systematic + prior, first) - systematic - prior
                prior = extrinsic[order]
                extrinsic = soft_bits(shuffled + prior, second) - shuffled - prior
                return extrinsic[inverse]

            prior = rs.loop(exchange, init=rs.zeros_like(systematic), n_steps=rounds).last
            return soft_bits(systematic + prior, first)

        return rs.compile(rs.vmap(decode, in_axes=(0, 0, 0, None)))

    def jax(self, frames, bits, rounds):
        import jax, jax.numpy as jnp

        signs = 0.5 * jnp.array([-1.0, 1.0], "f4")
        parities = jnp.asarray((self.parity - 0.5).astype("f4"))
        after, before, bit = jnp.asarray(self.after), jnp.asarray(self.before), jnp.asarray(self.bit)
        start = jnp.array([0.0, -1e4, -1e4, -1e4], "f4")

        def soft_bits(systematic, parity):
            branch = systematic[:, None, None] * signs + parity[:, None, None] * parities

            def forwards(alpha, branch):
                new = jnp.max(alpha[before] + branch[before, bit], axis=1)
                return new - jnp.max(new), alpha

            def backwards(beta, branch):
                new = jnp.max(branch + beta[after], axis=1)
                return new - jnp.max(new), beta

            alphas = jax.lax.scan(forwards, start, branch)[1]
            betas = jax.lax.scan(backwards, jnp.zeros(4, "f4"), branch, reverse=True)[1]
            total = alphas[:, :, None] + branch + betas[:, after]
            best = jnp.max(total, axis=1)
            return best[:, 1] - best[:, 0]

        def decode(systematic, first, second, order):
            shuffled = systematic[order]
            inverse = jnp.argsort(order)

            def exchange(prior, _):
                extrinsic = soft_bits(systematic + prior, first) - systematic - prior
                prior = extrinsic[order]
                extrinsic = soft_bits(shuffled + prior, second) - shuffled - prior
                return extrinsic[inverse], None

            prior = jax.lax.scan(exchange, jnp.zeros_like(systematic), None, length=rounds)[0]
            return soft_bits(systematic + prior, first)

        return jax.jit(jax.vmap(decode, in_axes=(0, 0, 0, None)))


class BlockSortingDecoder(Model):
    """What bzip2 does at the end: places in a list that moves to the front become letters, and these the text before it was sorted."""

    kind = "text, codes and parsing"
    dtype = "int32"
    size = dict(length=2000, letters=64)
    small = dict(length=13, letters=5)

    def make(self, random, length, letters):
        words = random.integers(0, letters, size=(20, 6))
        text = words[random.integers(0, 20, size=length // 6 + 1)].ravel()[:length]
        rotations = sorted(range(length), key=lambda i: tuple(np.roll(text, -i)))
        last = [text[i - 1] for i in rotations]
        table, codes = list(range(letters)), []
        for letter in last:
            codes.append(table.index(letter))
            table.insert(0, table.pop(codes[-1]))
        return np.array(codes, "i4"), np.int32(rotations.index(0))

    def rscan(self, length, letters):
        @rs.compile
        def decode(codes, primary):
            places = rs.arange(letters, dtype="int32")

            def to_front(code, table):
                letter = table[code]
                moved = rs.where((places > 0) & (places <= code), rs.roll(table, 1), table)
                return dict(table=moved.at[0].set(letter), letter=letter)

            last = rs.loop(to_front, over=dict(code=codes), init=dict(table=places)).letter[:]
            counts = rs.zeros(letters, dtype="int32").at[last].add(1)
            first = rs.cumsum(counts) - counts

            def number(letter, used):
                return dict(used=used.at[letter].add(1), row=used[letter])

            rows = rs.loop(number, over=dict(letter=last), init=dict(used=first.astype("int32"))).row[:]

            def back(row):
                return dict(row=rows[row], letter=last[row])

            letters_backwards = rs.loop(back, init=dict(row=primary), n_steps=length).letter
            return letters_backwards[::-1]

        return decode

    def jax(self, length, letters):
        import jax, jax.numpy as jnp

        @jax.jit
        def decode(codes, primary):
            places = jnp.arange(letters, dtype=jnp.int32)

            def to_front(table, code):
                letter = table[code]
                moved = jnp.where((places > 0) & (places <= code), jnp.roll(table, 1), table)
                return moved.at[0].set(letter), letter

            last = jax.lax.scan(to_front, places, codes)[1]
            counts = jnp.zeros(letters, jnp.int32).at[last].add(1)
            first = (jnp.cumsum(counts) - counts).astype(jnp.int32)
            rows = jax.lax.scan(lambda used, letter: (used.at[letter].add(1), used[letter]), first, last)[1]
            backwards = jax.lax.scan(lambda row, _: (rows[row], last[row]), primary, None, length=length)[1]
            return backwards[::-1]

        return decode


class ShuntingYard(Model):
    """Dijkstra's shunting yard: formulas with brackets and two precedences are evaluated modulo a prime, with two stacks."""

    kind = "text, codes and parsing"
    dtype = "int64"
    size = dict(formulas=16, length=120)
    small = dict(formulas=3, length=12)

    plus, minus, times, opening, closing, end = -1, -2, -3, -4, -5, -6

    def make(self, random, formulas, length):
        def formula(budget):
            if budget < 3:
                return [random.integers(0, 100)]
            if random.random() < 0.4:
                return [self.opening, *formula(budget - 2), self.closing]
            left = random.integers(1, budget - 1)
            return [*formula(left), -random.integers(1, 4), *formula(budget - 1 - left)]

        rows = np.full((formulas, length), self.end)
        for row in rows:
            tokens = formula(length - 1)
            row[: len(tokens)] = tokens
        return (rows,)

    def rscan(self, formulas, length):
        prime = 10007

        def precedence(op):
            return rs.where(op == self.times, 2, rs.where((op == self.plus) | (op == self.minus), 1, 0))

        def evaluate(tokens):
            def step(token, values, n, ops, m):
                number = token >= 0
                opening = token == self.opening
                closing = token == self.closing

                def waits(ops, m):  # does the operator on top come before this token?
                    top = ops[rs.maximum(m - 1, 0)]
                    return (m > 0) & ~number & ~opening & (top != self.opening) & (precedence(top) >= precedence(token))

                def apply(values, n, ops, m):
                    op, a, b = ops[m - 1], values[n - 2], values[n - 1]
                    value = rs.where(op == self.plus, a + b, rs.where(op == self.minus, a - b, a * b)) % prime
                    values = values.at[n - 2].set(value)
                    return (values, n - 1, ops, m - 1), rs.until(~waits(ops, m - 1))

                most = rs.where(waits(ops, m), length, 0)
                values, n, ops, m = rs.loop(apply, init=(values, n, ops, m), n_steps=most).last
                values = values.at[n].set(rs.where(number, token, values[n]))
                n = n + number
                pushed = ~number & ~closing & (token != self.end)
                ops = ops.at[m].set(rs.where(pushed, token, ops[m]))
                m = m + pushed - closing  # what a closing bracket meets is the opening one
                return dict(values=values, n=n, ops=ops, m=m)

            stack = rs.zeros(length, dtype="int64")
            out = rs.loop(step, over=dict(token=tokens), init=dict(values=stack, n=0, ops=stack, m=0))
            return out.last.values[0], rs.max(out.n), rs.max(out.m)

        return rs.compile(rs.vmap(evaluate))

    def jax(self, formulas, length):
        import jax, jax.numpy as jnp

        prime = 10007

        def precedence(op):
            return jnp.where(op == self.times, 2, jnp.where((op == self.plus) | (op == self.minus), 1, 0))

        def evaluate(tokens):
            def step(carry, token):
                number = token >= 0
                opening = token == self.opening
                closing = token == self.closing

                def waits(carry):
                    _, _, ops, m = carry
                    top = ops[jnp.maximum(m - 1, 0)]
                    return (m > 0) & ~number & ~opening & (top != self.opening) & (precedence(top) >= precedence(token))

                def apply(carry):
                    values, n, ops, m = carry
                    op, a, b = ops[m - 1], values[n - 2], values[n - 1]
                    value = jnp.where(op == self.plus, a + b, jnp.where(op == self.minus, a - b, a * b)) % prime
                    return values.at[n - 2].set(value), n - 1, ops, m - 1

                values, n, ops, m = jax.lax.while_loop(waits, apply, carry)
                values = values.at[n].set(jnp.where(number, token, values[n]))
                n = n + number
                pushed = ~number & ~closing & (token != self.end)
                ops = ops.at[m].set(jnp.where(pushed, token, ops[m]))
                m = m + pushed - closing
                return (values, n, ops, m), (n, m)

            stack = jnp.zeros(length, jnp.int64)
            (values, *_), (ns, ms) = jax.lax.scan(step, (stack, jnp.int64(0), stack, jnp.int64(0)), tokens)
            return values[0], jnp.max(ns), jnp.max(ms)

        return jax.jit(jax.vmap(evaluate))


class AhoCorasickCounts(Model):
    """Aho and Corasick: the tree of many words, its links by a walk in breadth, and the number of words that end at each place of a text."""

    kind = "text, codes and parsing"
    dtype = "int64"
    size = dict(words=20, longest=6, letters=8, text=3000)
    small = dict(words=3, longest=3, letters=3, text=20)

    def make(self, random, words, longest, letters, text):
        lengths = random.integers(2, longest + 1, size=words)
        return random.integers(0, letters, size=(words, longest)), lengths, random.integers(0, letters, size=text)

    def rscan(self, words, longest, letters, text):
        most = words * longest + 1  # nodes; the last row of the tables is for nothing

        @rs.compile
        def count(patterns, lengths, text):
            def insert(word, length, child, ends, free):
                def letter(c, k, child, node, free):
                    inside = k < length
                    known = child[node, c] > 0
                    new = inside & ~known
                    child = child.at[node, c].set(rs.where(new, free, child[node, c]))
                    node = rs.where(inside, child[node, c], node)
                    return child, node, free + new

                child, node, free = rs.loop(letter, over=(word, rs.arange(longest)), init=(child, 0, free)).last
                return child, ends.at[node].add(1), free

            child = rs.zeros((most + 1, letters), dtype="int64")
            ends = rs.zeros(most + 1, dtype="int64")
            child, ends, free = rs.loop(insert, over=(patterns, lengths), init=(child, ends, 1)).last

            def visit(i, child, ends, fail, queue, tail):
                node = queue[i]
                children = child[node]
                there = children > 0
                fallback = rs.where(node == 0, 0, child[fail[node]])
                where = rs.where(there, children, most)
                fail = fail.at[where].set(rs.where(there, fallback, 0))
                ends = ends.at[where].add(rs.where(there, ends[fallback], 0))
                queue = queue.at[rs.where(there, tail + rs.cumsum(there) - 1, most)].set(where)
                child = child.at[node].set(rs.where(there, children, fallback))
                return child, ends, fail, queue, tail + rs.sum(there)

            queue = rs.zeros(most + 1, dtype="int64")
            fail = rs.zeros(most + 1, dtype="int64")
            child, ends, fail, queue, tail = rs.loop(visit, over=rs.arange(free), init=(child, ends, fail, queue, 1)).last

            def read(c, state):
                state = child[state, c]
                return dict(state=state, found=ends[state])

            out = rs.loop(read, over=dict(c=text), init=dict(state=0))
            return out.found, free

        return count

    def jax(self, words, longest, letters, text):
        import jax, jax.numpy as jnp

        most = words * longest + 1

        @jax.jit
        def count(patterns, lengths, text):
            def insert(carry, x):
                (child, ends, free), (word, length) = carry, x

                def letter(carry, x):
                    (child, node, free), (c, k) = carry, x
                    inside = k < length
                    known = child[node, c] > 0
                    new = inside & ~known
                    child = child.at[node, c].set(jnp.where(new, free, child[node, c]))
                    node = jnp.where(inside, child[node, c], node)
                    return (child, node, free + new), None

                (child, node, free), _ = jax.lax.scan(letter, (child, jnp.int64(0), free), (word, jnp.arange(longest)))
                return (child, ends.at[node].add(1), free), None

            child = jnp.zeros((most + 1, letters), jnp.int64)
            ends = jnp.zeros(most + 1, jnp.int64)
            (child, ends, free), _ = jax.lax.scan(insert, (child, ends, jnp.int64(1)), (patterns, lengths))

            def visit(i, carry):
                child, ends, fail, queue, tail = carry
                node = queue[i]
                children = child[node]
                there = children > 0
                fallback = jnp.where(node == 0, 0, child[fail[node]])
                where = jnp.where(there, children, most)
                fail = fail.at[where].set(jnp.where(there, fallback, 0))
                ends = ends.at[where].add(jnp.where(there, ends[fallback], 0))
                queue = queue.at[jnp.where(there, tail + jnp.cumsum(there) - 1, most)].set(where)
                child = child.at[node].set(jnp.where(there, children, fallback))
                return child, ends, fail, queue, tail + jnp.sum(there)

            queue = jnp.zeros(most + 1, jnp.int64)
            child, ends, *_ = jax.lax.fori_loop(0, free, visit, (child, ends, jnp.zeros_like(queue), queue, jnp.int64(1)))

            def read(state, c):
                state = child[state, c]
                return state, ends[state]

            return jax.lax.scan(read, jnp.int64(0), text)[1], free

        return count
