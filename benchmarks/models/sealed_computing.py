"""Loops of programs that engineers run: compressors, schedulers, caches, interpreters, lexers, renderers, audio effects."""

import numpy as np

import rscan as rs
from models import Model

KIND = "computing"


class MatchFinder(Model):
    """The greedy match finder of an LZ4-like compressor: a hash table of last positions, matches compared byte by byte, tokens written out."""

    kind = KIND
    dtype = "uint8"
    size = dict(n=8192)
    small = dict(n=120)

    def make(self, random, n):
        words = [random.integers(97, 123, size=random.integers(2, 9)).astype("uint8") for _ in range(60)]
        text = np.concatenate([np.append(words[k], 32) for k in np.minimum(random.geometric(0.06, size=n) - 1, 59)])
        return (text[:n].astype("uint8"),)

    def rscan(self, n):
        @rs.compile
        def compress(data):
            wide = rs.cast(data, "int64")

            def step(pos, count, table, starts, lengths, offsets):
                word = wide[pos] | (wide[pos + 1] << 8) | (wide[pos + 2] << 16)
                h = ((word * 2654435761) >> 20) & 1023
                candidate = table[h]
                table = table.at[h].set(pos)
                limit = rs.minimum(n - 1 - pos, 255)

                def compare(length):
                    return length + 1, rs.until(data[candidate + length + 1] != data[pos + length + 1])

                usable = (candidate >= 0) & (data[candidate] == data[pos])
                length = rs.loop(compare, init=0, n_steps=rs.where(usable, limit, 0)).last
                match = length >= 4
                taken = rs.where(match, length, 1)
                new = dict(
                    pos=pos + taken,
                    count=count + 1,
                    table=table,
                    starts=starts.at[count].set(pos),
                    lengths=lengths.at[count].set(taken),
                    offsets=offsets.at[count].set(rs.where(match, pos - candidate, 0)),
                )
                return new, rs.until(new["pos"] >= n - 4)

            empty = rs.zeros(n, dtype="int64")
            init = dict(pos=0, count=0, table=rs.full(1024, -1, dtype="int64"), starts=empty, lengths=empty, offsets=empty)
            last = rs.loop(step, init=init).last
            return last.count, last.pos, last.starts, last.lengths, last.offsets

        return compress

    def jax(self, n):
        import jax
        import jax.numpy as jnp

        def compress(data):
            wide = data.astype(jnp.int64)

            def body(carry):
                pos, count, table, starts, lengths, offsets = carry
                word = wide[pos] | (wide[pos + 1] << 8) | (wide[pos + 2] << 16)
                h = ((word * 2654435761) >> 20) & 1023
                candidate = table[h]
                table = table.at[h].set(pos)
                limit = jnp.minimum(n - 1 - pos, 255)

                def same(length):
                    return (length < limit) & (data[candidate + length] == data[pos + length])

                length = jax.lax.while_loop(same, lambda length: length + 1, jnp.where(candidate >= 0, 0, limit))
                length = jnp.where(candidate >= 0, length, 0)
                match = length >= 4
                taken = jnp.where(match, length, 1)
                return (
                    pos + taken,
                    count + 1,
                    table,
                    starts.at[count].set(pos),
                    lengths.at[count].set(taken),
                    offsets.at[count].set(jnp.where(match, pos - candidate, 0)),
                )

            empty = jnp.zeros(n, jnp.int64)
            init = (jnp.int64(0), jnp.int64(0), jnp.full(1024, -1, jnp.int64), empty, empty, empty)
            pos, count, _, starts, lengths, offsets = jax.lax.while_loop(lambda c: c[0] < n - 4, body, init)
            return count, pos, starts, lengths, offsets

        return jax.jit(compress)


class KruskalTree(Model):
    """The minimum spanning tree of a cable network by Kruskal: union-find with union by size and compressed paths."""

    kind = KIND
    dtype = "int32"
    size = dict(nodes=600, edges=3000)
    small = dict(nodes=12, edges=30)

    def make(self, random, nodes, edges):
        u = random.integers(0, nodes, size=edges).astype("int32")
        v = ((u + random.integers(1, nodes, size=edges)) % nodes).astype("int32")
        return u, v, random.gamma(2.0, size=edges)

    def rscan(self, nodes, edges):
        @rs.compile
        def tree(u, v, weight):
            order = rs.argsort(weight)

            def find(parent, x):
                return rs.loop(lambda x: (parent[x], rs.until(parent[parent[x]] == parent[x])), init=x).last

            def step(u, v, w, parent, members, total):
                a, b = find(parent, u), find(parent, v)
                parent = parent.at[u].set(a).at[v].set(b)
                joined = a != b
                swap = members[a] < members[b]
                big, little = rs.where(swap, b, a), rs.where(swap, a, b)
                return dict(
                    parent=parent.at[little].set(big),
                    members=members.at[big].add(rs.where(joined, members[little], 0)),
                    total=total + rs.where(joined, w, 0.0),
                    joined=joined,
                )

            out = rs.loop(
                step,
                over=dict(u=u[order], v=v[order], w=weight[order]),
                init=dict(parent=rs.arange(nodes, dtype="int32"), members=rs.ones(nodes, dtype="int32"), total=0.0),
            )
            return out.last.total, out.joined, out.last.parent

        return tree

    def jax(self, nodes, edges):
        import jax
        import jax.numpy as jnp

        def tree(u, v, weight):
            order = jnp.argsort(weight)

            def find(parent, x):
                return jax.lax.while_loop(lambda x: parent[x] != x, lambda x: parent[x], x)

            def step(carry, edge):
                parent, members, total = carry
                u, v, w = edge
                a, b = find(parent, u), find(parent, v)
                parent = parent.at[u].set(a).at[v].set(b)
                joined = a != b
                swap = members[a] < members[b]
                big, little = jnp.where(swap, b, a), jnp.where(swap, a, b)
                members = members.at[big].add(jnp.where(joined, members[little], 0))
                return (parent.at[little].set(big), members, total + jnp.where(joined, w, 0.0)), joined

            init = (jnp.arange(nodes, dtype=jnp.int32), jnp.ones(nodes, jnp.int32), 0.0)
            (parent, _, total), joined = jax.lax.scan(step, init, (u[order], v[order], weight[order]))
            return total, joined, parent

        return jax.jit(tree)


class AgentHeap(Model):
    """A call centre: each call goes to the agent who is free first, found in a binary heap of the agents' times."""

    kind = KIND
    dtype = "float64"
    size = dict(calls=3000, agents=100)
    small = dict(calls=40, agents=6)

    def make(self, random, calls, agents):
        arrival = np.cumsum(random.exponential(1.0, size=calls))
        return arrival, random.lognormal(np.log(0.85 * agents), 0.5, size=calls)

    def rscan(self, calls, agents):
        @rs.compile
        def simulate(arrival, service):
            def step(arrival, service, heap):
                begin = rs.maximum(arrival, heap[0])
                finish = begin + service

                def sift(hole, heap):
                    left, right = 2 * hole + 1, 2 * hole + 2
                    smaller = (right < agents) & (heap[rs.minimum(right, agents - 1)] < heap[rs.minimum(left, agents - 1)])
                    child = rs.minimum(rs.where(smaller, right, left), agents - 1)
                    down = (left < agents) & (heap[child] < finish)
                    heap = heap.at[hole].set(rs.where(down, heap[child], finish))
                    return dict(hole=rs.where(down, child, hole), heap=heap), rs.until(~down)

                return dict(heap=rs.loop(sift, init=dict(hole=0, heap=heap)).last.heap, wait=begin - arrival)

            out = rs.loop(step, over=dict(arrival=arrival, service=service), init=dict(heap=rs.zeros(agents)))
            return out.wait, rs.mean(out.wait > 1.0), out.last.heap

        return simulate

    def jax(self, calls, agents):
        import jax
        import jax.numpy as jnp

        def simulate(arrival, service):
            def step(heap, call):
                arrival, service = call
                begin = jnp.maximum(arrival, heap[0])
                finish = begin + service

                def child_of(hole, heap):
                    left, right = 2 * hole + 1, 2 * hole + 2
                    smaller = (right < agents) & (heap[right] < heap[left])
                    child = jnp.where(smaller, right, left)
                    return child, (left < agents) & (heap[child] < finish)

                def body(carry):
                    hole, heap, child, _ = carry
                    heap = heap.at[hole].set(heap[child])
                    return (child, heap, *child_of(child, heap))

                hole, heap, _, _ = jax.lax.while_loop(lambda c: c[3], body, (jnp.int64(0), heap, *child_of(jnp.int64(0), heap)))
                return heap.at[hole].set(finish), begin - arrival

            heap, wait = jax.lax.scan(step, jnp.zeros(agents), (arrival, service))
            return wait, jnp.mean(wait > 1.0), heap

        return jax.jit(simulate)


class WriteBackCache(Model):
    """A set-associative write-back cache with LRU replacement, driven by a trace of addresses."""

    kind = KIND
    dtype = "int64"
    size = dict(accesses=5000, sets=64, ways=8)
    small = dict(accesses=60, sets=4, ways=2)

    def make(self, random, accesses, sets, ways):
        hot = random.integers(0, 2 * sets * ways, size=accesses) * 64
        stream = np.arange(accesses) * 16 + (1 << 20)
        address = np.where(random.random(accesses) < 0.7, hot, stream).astype("int64")
        return address, random.random(accesses) < 0.3

    def rscan(self, accesses, sets, ways):
        @rs.compile
        def simulate(address, write):
            def step(address, write, now, tags, used, dirty, writebacks):
                line = address >> 6
                row = line % sets
                same = tags[row] == line
                hit = rs.any(same)
                way = rs.where(hit, rs.argmax(same), rs.argmin(used[row]))
                evicted = ~hit & dirty[row, way]
                return dict(
                    tags=tags.at[row, way].set(line),
                    used=used.at[row, way].set(now),
                    dirty=dirty.at[row, way].set(write | (hit & dirty[row, way])),
                    writebacks=writebacks + evicted,
                    hit=hit,
                )

            out = rs.loop(
                step,
                over=dict(address=address, write=write, now=rs.arange(1, accesses + 1)),
                init=dict(
                    tags=rs.full((sets, ways), -1, dtype="int64"),
                    used=rs.zeros((sets, ways), dtype="int64"),
                    dirty=rs.zeros((sets, ways), dtype="bool"),
                    writebacks=0,
                ),
            )
            return out.hit, out.last.writebacks, out.last.tags, out.last.dirty

        return simulate

    def jax(self, accesses, sets, ways):
        import jax
        import jax.numpy as jnp

        def simulate(address, write):
            def step(carry, access):
                tags, used, dirty, writebacks = carry
                address, write, now = access
                line = address >> 6
                row = line % sets
                same = tags[row] == line
                hit = jnp.any(same)
                way = jnp.where(hit, jnp.argmax(same), jnp.argmin(used[row]))
                evicted = ~hit & dirty[row, way]
                new = (
                    tags.at[row, way].set(line),
                    used.at[row, way].set(now),
                    dirty.at[row, way].set(write | (hit & dirty[row, way])),
                    writebacks + evicted,
                )
                return new, hit

            init = (
                jnp.full((sets, ways), -1, jnp.int64),
                jnp.zeros((sets, ways), jnp.int64),
                jnp.zeros((sets, ways), bool),
                jnp.int64(0),
            )
            (tags, _, dirty, writebacks), hit = jax.lax.scan(step, init, (address, write, jnp.arange(1, accesses + 1)))
            return hit, writebacks, tags, dirty

        return jax.jit(simulate)


PUSH, LOAD, STORE, ADD, SUB, MUL, DIV, MOD, LESS, JUMP_IF_ZERO, JUMP, HALT = range(12)


class StackMachine(Model):
    """A bytecode interpreter with a stack and a memory; its program adds up the lengths of Collatz sequences."""

    kind = KIND
    dtype = "int64"
    size = dict(limit=40)
    small = dict(limit=4)

    def make(self, random, limit):
        i, total, x, last = range(4)
        code = [
            (PUSH, 1), (STORE, i),
            (LOAD, last), (LOAD, i), (LESS, 0), (JUMP_IF_ZERO, 7), (HALT, 0),  # 2: while not last < i
            (LOAD, i), (STORE, x),  # 7
            (LOAD, x), (PUSH, 1), (SUB, 0), (JUMP_IF_ZERO, 34),  # 9: while x != 1
            (LOAD, total), (PUSH, 1), (ADD, 0), (STORE, total),
            (LOAD, x), (PUSH, 2), (MOD, 0), (JUMP_IF_ZERO, 29),
            (LOAD, x), (PUSH, 3), (MUL, 0), (PUSH, 1), (ADD, 0), (STORE, x), (JUMP, 9), (HALT, 0),  # 21: x = 3 x + 1
            (LOAD, x), (PUSH, 2), (DIV, 0), (STORE, x), (JUMP, 9),  # 29: x = x / 2
            (LOAD, i), (PUSH, 1), (ADD, 0), (STORE, i), (JUMP, 2),  # 34
        ]  # fmt: skip
        memory = np.zeros(8, dtype="int64")
        memory[last] = limit
        return np.array(code, dtype="int64"), memory

    def rscan(self, limit):
        @rs.compile
        def run(code, memory):
            def step(pc, sp, stack, memory, cycles):
                op, arg = code[pc, 0], code[pc, 1]
                top, second = stack[sp - 1], stack[sp - 2]
                pushes = op <= LOAD
                binary = (op >= ADD) & (op <= LESS)
                value = rs.choose(
                    rs.minimum(op, LESS),
                    [
                        arg,
                        memory[rs.where(op == LOAD, arg, 0)],
                        top,
                        second + top,
                        second - top,
                        second * top,
                        second // rs.where(top == 0, 1, top),
                        second % rs.where(top == 0, 1, top),
                        rs.cast(second < top, "int64"),
                    ],
                )
                slot = rs.where(pushes, sp, sp - 2)
                stack = stack.at[slot].set(rs.where(pushes | binary, value, stack[slot]))
                cell = rs.where(op == STORE, arg, 0)
                memory = memory.at[cell].set(rs.where(op == STORE, top, memory[cell]))
                jumps = (op == JUMP) | ((op == JUMP_IF_ZERO) & (top == 0))
                delta = rs.where(pushes, 1, rs.where(op <= JUMP_IF_ZERO, -1, 0))
                state = dict(pc=rs.where(jumps, arg, pc + 1), sp=sp + delta, stack=stack, memory=memory, cycles=cycles + 1)
                return state, rs.until(op == HALT)

            init = dict(pc=0, sp=0, stack=rs.zeros(16, dtype="int64"), memory=memory, cycles=0)
            last = rs.loop(step, init=init).last
            return last.memory, last.cycles

        return run

    def jax(self, limit):
        import jax
        import jax.numpy as jnp

        def run(code, memory):
            def body(carry):
                pc, sp, stack, memory, cycles, _ = carry
                op, arg = code[pc, 0], code[pc, 1]
                top, second = stack[sp - 1], stack[sp - 2]
                pushes = op <= LOAD
                binary = (op >= ADD) & (op <= LESS)
                value = jax.lax.switch(
                    jnp.minimum(op, LESS),
                    [
                        lambda: arg,
                        lambda: memory[arg],
                        lambda: top,
                        lambda: second + top,
                        lambda: second - top,
                        lambda: second * top,
                        lambda: second // jnp.where(top == 0, 1, top),
                        lambda: second % jnp.where(top == 0, 1, top),
                        lambda: (second < top).astype(jnp.int64),
                    ],
                )
                slot = jnp.where(pushes, sp, sp - 2)
                stack = stack.at[slot].set(jnp.where(pushes | binary, value, stack[slot]))
                cell = jnp.where(op == STORE, arg, 0)
                memory = memory.at[cell].set(jnp.where(op == STORE, top, memory[cell]))
                jumps = (op == JUMP) | ((op == JUMP_IF_ZERO) & (top == 0))
                delta = jnp.where(pushes, 1, jnp.where(op <= JUMP_IF_ZERO, -1, 0))
                return jnp.where(jumps, arg, pc + 1), sp + delta, stack, memory, cycles + 1, op == HALT

            zero = jnp.int64(0)
            init = (zero, zero, jnp.zeros(16, jnp.int64), memory, zero, jnp.bool_(False))
            last = jax.lax.while_loop(lambda c: ~c[5], body, init)
            return last[3], last[4]

        return jax.jit(run)


SPACE, NAME, NUMBER, STRING, STRING_END, COMMENT, SIGN = range(7)


def lexer_tables():
    """The class of each byte, and the state after each state and class."""
    classes = np.full(256, 5, dtype="uint8")  # 0 blank, 1 letter, 2 digit, 3 quote, 4 hash, 5 sign, 6 newline
    classes[[9, 32]] = 0
    classes[10] = 6
    classes[[*range(65, 91), *range(97, 123), 95]] = 1
    classes[48:58] = 2
    classes[34] = 3
    classes[35] = 4
    fresh = [SPACE, NAME, NUMBER, STRING, COMMENT, SIGN, SPACE]
    table = np.array([fresh] * 7, dtype="int32")
    table[NAME, 2] = NAME
    table[STRING] = [STRING, STRING, STRING, STRING_END, STRING, STRING, SPACE]
    table[COMMENT] = [COMMENT] * 6 + [SPACE]
    return classes, table


class SourceLexer(Model):
    """A lexer: a state machine over the bytes of a source text, with FNV-1a hashes of its tokens and counts of their kinds."""

    kind = KIND
    dtype = "uint32"
    size = dict(n=20000)
    small = dict(n=100)

    def make(self, random, n):
        line = b'total_1 = rate*42 + f("a b 7", x2) # note: 3 "q"\n\tif a<10: return  b\n'
        text = np.frombuffer((line * (n // len(line) + 1))[:n], dtype="uint8").copy()
        noise = random.random(n) < 0.05
        text[noise] = random.integers(32, 127, size=noise.sum())
        return (text, *lexer_tables())

    def rscan(self, n):
        @rs.compile
        def lex(text, classes, table):
            def step(byte, state, hashed, counts, bracket):
                new = table[state, classes[byte]]
                begins = ((new != state) & (new != STRING_END)) | (new == SIGN)
                hashed = (rs.where(begins, np.uint32(2166136261), hashed) ^ byte) * np.uint32(16777619)
                counts = counts.at[new].add(rs.cast(begins, "int32"))
                bracket = bracket + rs.where(new == SIGN, rs.cast(byte == 40, "int32") - rs.cast(byte == 41, "int32"), np.int32(0))
                return dict(state=new, hashed=hashed, counts=counts, bracket=bracket, begins=begins)

            init = dict(state=np.int32(SPACE), hashed=np.uint32(2166136261), counts=rs.zeros(7, dtype="int32"), bracket=np.int32(0))
            out = rs.loop(step, over=dict(byte=text), init=init)
            return out.state, out.hashed, out.begins, out.last.counts, rs.max(out.bracket)

        return lex

    def jax(self, n):
        import jax
        import jax.numpy as jnp

        def lex(text, classes, table):
            def step(carry, byte):
                state, hashed, counts, bracket = carry
                new = table[state, classes[byte]]
                begins = ((new != state) & (new != STRING_END)) | (new == SIGN)
                hashed = (jnp.where(begins, jnp.uint32(2166136261), hashed) ^ byte) * jnp.uint32(16777619)
                counts = counts.at[new].add(begins.astype(jnp.int32))
                change = (byte == 40).astype(jnp.int32) - (byte == 41).astype(jnp.int32)
                bracket = bracket + jnp.where(new == SIGN, change, 0)
                return (new, hashed, counts, bracket), (new, hashed, begins, bracket)

            init = (jnp.int32(SPACE), jnp.uint32(2166136261), jnp.zeros(7, jnp.int32), jnp.int32(0))
            (_, _, counts, _), (states, hashes, begins, brackets) = jax.lax.scan(step, init, text)
            return states, hashes, begins, counts, jnp.max(brackets)

        return jax.jit(lex)


class FlangerFit(Model):
    """A flanger with feedback and a damped delay line whose length an oscillator moves, fitted to a recording: loss and gradient."""

    kind = KIND
    dtype = "float32"
    size = dict(samples=2000, line=256)
    small = dict(samples=40, line=16)
    rtol = 5e-4

    def make(self, random, samples, line):
        t = np.arange(samples)
        dry = (np.sin(0.07 * t) + 0.3 * random.normal(size=samples)).astype("float32")
        wet = (dry + 0.5 * np.roll(dry, line // 3)).astype("float32")
        params = {"feedback": 0.6, "damping": 0.3, "depth": 0.4 * line, "mix": 0.5}
        return {k: np.float32(v) for k, v in params.items()}, dry, wet

    def rscan(self, samples, line):
        @rs.compile
        def loss(p, dry, wet):
            t = rs.arange(samples)
            sweep = rs.sin(rs.cast(t, "float32") * np.float32(0.01))

            def step(x, t, sweep, buffer, low):
                delay = 2.5 + p["depth"] * (0.5 + 0.5 * sweep)
                whole = rs.floor(delay)
                part = delay - whole
                k = t - rs.cast(whole, "int64")
                tap = (1 - part) * buffer[k % line] + part * buffer[(k - 1) % line]
                low = low + p["damping"] * (tap - low)
                buffer = buffer.at[t % line].set(x + p["feedback"] * rs.tanh(low))
                return dict(buffer=buffer, low=low, y=(1 - p["mix"]) * x + p["mix"] * tap)

            out = rs.loop(
                step,
                over=dict(x=dry, t=t, sweep=sweep),
                init=dict(buffer=rs.zeros(line, dtype="float32"), low=np.float32(0)),
            )
            return rs.mean((out.y - wet) ** 2)

        return rs.value_and_grad(loss)

    def jax(self, samples, line):
        import jax
        import jax.numpy as jnp

        def loss(p, dry, wet):
            t = jnp.arange(samples)
            sweep = jnp.sin(t.astype(jnp.float32) * jnp.float32(0.01))

            def step(carry, row):
                buffer, low = carry
                x, t, sweep = row
                delay = 2.5 + p["depth"] * (0.5 + 0.5 * sweep)
                whole = jnp.floor(delay)
                part = delay - whole
                k = t - whole.astype(jnp.int64)
                tap = (1 - part) * buffer[k % line] + part * buffer[(k - 1) % line]
                low = low + p["damping"] * (tap - low)
                buffer = buffer.at[t % line].set(x + p["feedback"] * jnp.tanh(low))
                return (buffer, low), (1 - p["mix"]) * x + p["mix"] * tap

            _, y = jax.lax.scan(step, (jnp.zeros(line, jnp.float32), jnp.float32(0)), (dry, t, sweep))
            return jnp.mean((y - wet) ** 2)

        return jax.jit(jax.value_and_grad(loss))


class SphereTracing(Model):
    """Inverse rendering: rays march through a smooth union of spheres above a floor, each until it hits; the gradient of the depths' error."""

    kind = KIND
    dtype = "float64"
    size = dict(side=20, spheres=4)
    small = dict(side=3, spheres=2)

    def make(self, random, side, spheres):
        v, u = np.meshgrid(np.linspace(0.6, -0.6, side), np.linspace(-0.7, 0.7, side), indexing="ij")
        rays = np.stack([u, v, np.ones_like(u)], axis=-1).reshape(-1, 3)
        rays = rays / np.linalg.norm(rays, axis=1, keepdims=True)
        scene = {
            "centre": random.uniform([-1.2, -0.5, 3.0], [1.2, 0.8, 5.0], size=(spheres, 3)),
            "radius": random.uniform(0.4, 0.8, size=spheres),
        }
        return scene, rays, random.uniform(2.5, 6.0, size=side * side)

    def rscan(self, side, spheres):
        def distance(scene, point):
            balls = rs.sqrt(rs.sum((scene["centre"] - point) ** 2, axis=1)) - scene["radius"]
            return rs.minimum(-0.1 * rs.logsumexp(-balls / 0.1), point[1] + 1.0)

        def depth(scene, ray):
            def step(t):
                d = distance(scene, t * ray)
                return t + d, rs.until((d < 1e-3) | (t + d > 10.0))

            return rs.loop(step, init=0.0, n_steps=80).last

        @rs.compile
        def loss(scene, rays, seen):
            depths = rs.vmap(depth, in_axes=(None, 0))(scene, rays)
            return rs.mean(rs.log1p((rs.minimum(depths, 10.0) - seen) ** 2))

        return rs.value_and_grad(loss)

    def jax(self, side, spheres):
        import jax
        import jax.numpy as jnp

        def distance(scene, point):
            balls = jnp.sqrt(jnp.sum((scene["centre"] - point) ** 2, axis=1)) - scene["radius"]
            return jnp.minimum(-0.1 * jax.nn.logsumexp(-balls / 0.1), point[1] + 1.0)

        def depth(scene, ray):
            def step(carry, _):
                t, done = carry
                d = distance(scene, t * ray)
                new = jnp.where(done, t, t + d)
                return (new, done | (d < 1e-3) | (t + d > 10.0)), None

            return jax.lax.scan(step, (0.0, False), None, length=80)[0][0]

        def loss(scene, rays, seen):
            depths = jax.vmap(depth, in_axes=(None, 0))(scene, rays)
            return jnp.mean(jnp.log1p((jnp.minimum(depths, 10.0) - seen) ** 2))

        return jax.jit(jax.value_and_grad(loss))


class PageRankFit(Model):
    """PageRank over a list of links whose weights and damping are fitted to observed visits: the gradient of the likelihood."""

    kind = KIND
    dtype = "float64"
    size = dict(pages=300, links=2000, steps=30)
    small = dict(pages=6, links=15, steps=4)

    def make(self, random, pages, links, steps):
        source = np.concatenate([np.arange(pages), random.integers(0, pages, size=links - pages)]).astype("int32")
        target = np.minimum(random.geometric(5.0 / pages, size=links) - 1, pages - 1).astype("int32")
        order = np.argsort(source, kind="stable")
        params = {"weight": random.normal(size=links), "damping": 1.5}
        return params, source[order], target[order], random.poisson(20, size=pages).astype("float64")

    def rscan(self, pages, links, steps):
        @rs.compile
        def loss(p, source, target, visits):
            strength = rs.exp(p["weight"])
            out = rs.zeros(pages).at[source].add(strength)
            share = strength / out[source]
            damping = rs.sigmoid(p["damping"])

            def step(rank):
                return (1 - damping) / pages + damping * rs.zeros(pages).at[target].add(rank[source] * share)

            rank = rs.loop(step, init=rs.full(pages, 1.0 / pages), n_steps=steps).last
            return -rs.sum(visits * rs.log(rank / rs.sum(rank)))

        return rs.value_and_grad(loss)

    def jax(self, pages, links, steps):
        import jax
        import jax.numpy as jnp

        def loss(p, source, target, visits):
            strength = jnp.exp(p["weight"])
            out = jax.ops.segment_sum(strength, source, pages, indices_are_sorted=True)
            share = strength / out[source]
            damping = jax.nn.sigmoid(p["damping"])

            def step(_, rank):
                return (1 - damping) / pages + damping * jax.ops.segment_sum(rank[source] * share, target, pages)

            rank = jax.lax.fori_loop(0, steps, step, jnp.full(pages, 1.0 / pages))
            return -jnp.sum(visits * jnp.log(rank / jnp.sum(rank)))

        return jax.jit(jax.value_and_grad(loss))


class PollardRho(Model):
    """Factors of many numbers at once by Pollard's rho: a tortoise and a hare modulo n until a common divisor shows."""

    kind = KIND
    dtype = "int64"
    size = dict(numbers=24, bound=20000)
    small = dict(numbers=4, bound=200)

    def make(self, random, numbers, bound):
        sieve = np.ones(bound, dtype=bool)
        sieve[:2] = False
        for k in range(2, int(bound**0.5) + 1):
            if sieve[k]:
                sieve[k * k :: k] = False
        primes = np.flatnonzero(sieve)
        primes = primes[primes > bound // 10]
        return (random.choice(primes, size=numbers) * random.choice(primes, size=numbers)).astype("int64"), np.int64(1)

    def rscan(self, numbers, bound):
        def factor(n, c):
            def step(slow, fast, divisor):
                slow = (slow * slow + c) % n
                fast = (fast * fast + c) % n
                fast = (fast * fast + c) % n
                divisor = rs.gcd(rs.abs(slow - fast), n)
                return dict(slow=slow, fast=fast, divisor=divisor), rs.until(divisor > 1)

            out = rs.loop(step, init=dict(slow=2, fast=2, divisor=1))
            return out.last.divisor, out.steps

        return rs.compile(rs.vmap(factor, in_axes=(0, None)))

    def jax(self, numbers, bound):
        import jax
        import jax.numpy as jnp

        def factor(n, c):
            def body(carry):
                slow, fast, _, steps = carry
                slow = (slow * slow + c) % n
                fast = (fast * fast + c) % n
                fast = (fast * fast + c) % n
                return slow, fast, jnp.gcd(jnp.abs(slow - fast), n), steps + 1

            two = jnp.int64(2)
            _, _, divisor, steps = jax.lax.while_loop(lambda s: s[2] <= 1, body, (two, two, jnp.int64(1), jnp.int64(0)))
            return divisor, steps

        return jax.jit(jax.vmap(factor, in_axes=(0, None)))
