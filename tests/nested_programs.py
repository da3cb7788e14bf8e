"""Random programs with loops of numbers in the steps of loops, two deep.

`python -m nested_programs [N [SEED]]` compares what each engine gives, or raises.
"""

import sys

import numpy as np

import rscan as rs

ENGINES = ("eval", "vm", "jit")


class Program:
    """A loop whose step runs loops that stop by values, run as often as a value says, or go through a table or a few numbers."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.own_table = self.chance(0.4)

    def arguments(self):
        random = np.random.default_rng(1)
        return random.normal(size=9), random.integers(0, 100, 9), random.normal(size=20), random.integers(-3, 9, 12), random.normal(size=3)

    def chance(self, share):
        return self.random.random() < share

    def index(self, i, size):
        """A place of an axis; seldom one behind its end."""
        return i % size if self.chance(0.95) else i % (size + 2)

    def number(self, values, depth=2):
        kind = self.random.integers(0, 8)
        if depth == 0 or kind == 0:
            return values[self.random.integers(len(values))]
        a, b = self.number(values, depth - 1), self.number(values, depth - 1)
        ways = [a + b, a - 0.5 * b, a * b, rs.tanh(a), rs.where(a < b, a, b * 0.5), rs.minimum(a, b), 0.3 * a + 0.1]
        return ways[kind - 1]

    def inner(self, values, count, arrays, depth):
        """A loop with a float and an integer, and what it ends with."""
        table, integers, few = arrays
        kind, bound = self.random.integers(0, 4), int(self.random.integers(1, 9))

        def body(h, k, *row):
            seen = [*values, h, *row, table[self.index(k + int(self.random.integers(0, 5)), 20)]]
            if self.chance(0.5):
                seen.append(few[self.index(k, 3)])
            new = rs.tanh(self.number(seen))
            k = rs.abs(k + (integers[self.index(k, 12)] if self.chance(0.5) else 1)) % 1000
            if depth and self.chance(0.35):
                new, k = self.inner(seen, k, arrays, depth - 1)
            out = dict(h=new, k=k)
            stops = kind in (0, 2) or self.chance(0.2)
            return (out, rs.until(new > float(self.random.normal()))) if stops else out

        init = dict(h=rs.tanh(self.number(values)), k=count % 50)
        if kind == 0:
            out = rs.loop(lambda h, k: body(h, k), init=init, n_steps=bound)
        elif kind == 1:
            out = rs.loop(lambda h, k: body(h, k), init=init, n_steps=rs.clip(count % 7, int(self.random.integers(0, 2)), bound))
        else:
            over, reverse = dict(row=table if kind == 2 else few), bool(self.random.integers(2))
            out = rs.loop(lambda row, h, k: body(h, k, row), over=over, init=init, reverse=reverse)
        return out.last.h, out.last.k + (out.steps if self.chance(0.3) else 0)

    def __call__(self, x, i, table, integers, few):
        def step(x, i, h, k, few, own):
            arrays = (own if self.own_table else table), integers, few
            new, k = self.inner([x, h, few[0]], rs.abs(i + k), arrays, 1)
            if self.chance(0.3):
                other, k = self.inner([x, new], rs.abs(k), arrays, 1)
                new = new + 0.5 * other
            few = rs.tanh(few.at[rs.abs(k) % 3].set(new))
            return dict(h=new, k=k % 1000, few=few, own=own.at[rs.abs(k) % 20].set(new) if self.own_table else own, y=new)

        init = dict(h=x[0], k=rs.constant(1), few=few, own=table)
        out = rs.loop(step, over=dict(x=x, i=i), init=init)
        return out.y, out.last.k, out.last.few, out.last.own


def differentiated(program):
    """A sum of what it gives, with its gradient by all floats."""

    def total(x, i, table, integers, few):
        y, _, *others = program(x, i, table, integers, few)
        return sum(map(rs.sum, others), rs.sum(y))

    f = rs.value_and_grad(total, argnums=(0, 2, 4))

    def call(*args):
        value, slopes = f(*args)
        return [value, *slopes]

    call.explain = f.explain
    return call


def results(seed, set_engine):
    """What each engine gives for a program, every second time with its gradient, or its error; and whether a kernel had loops."""
    found, within = [], False
    for engine in ENGINES:
        set_engine(engine)
        program = Program(seed)
        plain = rs.compile(lambda x, i, table, integers, few, program=program: program(x, i, table, integers, few))
        f = differentiated(program) if seed % 2 else plain
        try:
            found.append([(a.dtype, a.tobytes()) for a in map(np.asarray, f(*program.arguments()))])
        except rs.errors.RscanError as error:
            found.append(str(error))
            continue
        within |= "a loop of the kernel of the loop around" in str(f.explain())
    return found, within


def main(n=100, first=0):
    import os

    within = differ = failed = 0
    for seed in range(first, first + n):
        (law, *others), has_loops = results(seed, lambda engine: os.environ.update(RSCAN_ENGINE=engine))
        within, failed = within + has_loops, failed + isinstance(law, str)
        if any(other != law for other in others):
            differ += 1
            print(f"seed {seed}: the engines differ")
    print(f"{n} programs, {within} with loops of kernels, {failed} errors, {differ} differ")
    return bool(differ)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
