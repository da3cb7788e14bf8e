"""Random loops for many rows at once, beside Python's loops over rows and steps, in bits.

PYTHONPATH=python:tests python -m mapped_loops 300
"""

import sys

import numpy as np

import rscan as rs

#: Elementwise alone: products and sums of rows may be rounded otherwise for many rows.
ONE = [
    rs.sin, rs.tanh, rs.exp, rs.abs, rs.square, rs.sigmoid, rs.cos, rs.floor, lambda v: rs.log1p(rs.abs(v)), lambda v: rs.sqrt(rs.abs(v)),
    lambda v: -v,
]  # fmt: skip
TWO = [
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / (1.5 + rs.abs(b)), rs.maximum, rs.minimum,
    lambda a, b: rs.where(a < b, a, b * 0.5), rs.arctan2,
]  # fmt: skip


class Program:
    """A step of one or two states and sequences, scalars or vectors, which runs a number of steps, or until something holds."""

    def __init__(self, seed):
        self.rng = rng = np.random.default_rng(seed)
        self.shape = [(), (3,), (2, 2)][rng.integers(3)]
        self.n_states, self.n_sequences = int(rng.integers(1, 3)), int(rng.integers(0, 3))
        self.ends = ["sequence", "steps", "until"][rng.integers(3)] if self.n_sequences else ["steps", "until"][rng.integers(2)]
        draw = lambda: (int(rng.integers(len(TWO))), int(rng.integers(len(ONE))), [int(k) for k in rng.integers(0, 1 << 30, 2)])
        self.plan = [draw() for _ in range(rng.integers(2, 7))]
        self.bound, self.steps, self.rows = float(rng.uniform(0.2, 2.0)), int(rng.integers(1, 9)), int(rng.choice([1, 2, 3, 4, 5, 9, 33]))
        self.fixed = bool(rng.integers(2))

    def step(self, given):
        """New states, a further output and the condition, of states, rows of sequences and what is fixed."""
        values = list(given)
        for two, one, picks in self.plan:
            a, b = (values[k % len(values)] for k in picks)
            values.append(rs.sin(ONE[one](rs.clip(TWO[two](a, b), -3.0, 3.0))))
        made = values[-1]
        states = [values[-1 - k % len(self.plan)] for k in range(self.n_states)]
        return states, made * 2.0 - states[0], rs.max(rs.abs(made)) > self.bound

    def loop(self, states, sequences, fixed, n):
        def step(*given):
            new, more, condition = self.step(given)
            out = {f"s{k}": v for k, v in enumerate(new)} | {"y": more}
            return (out, rs.until(condition)) if self.ends == "until" else out

        names = [f"x{k}" for k in range(self.n_sequences)] + [f"s{k}" for k in range(self.n_states)]
        by_name = lambda **named: step(*(named[k] for k in names), fixed)
        init = {f"s{k}": v for k, v in enumerate(states)}
        n_steps = n if self.ends == "steps" else None if self.n_sequences else 12
        out = rs.loop(by_name, over={f"x{k}": v for k, v in enumerate(sequences)}, init=init, n_steps=n_steps)
        return [*(out.last[k] for k in init), out.steps]

    def arguments(self):
        rows = self.rows
        draw = lambda *shape: self.rng.uniform(-1.5, 1.5, (rows, *shape))
        counts = self.rng.integers(0, self.steps + 1, rows) if self.ends == "steps" else np.zeros(rows, "int64")
        sequences = [draw(self.steps, *self.shape) for _ in range(self.n_sequences)]
        return [draw(*self.shape) for _ in range(self.n_states)], sequences, draw(*self.shape), counts

    def mapped(self, states, sequences, fixed, counts):
        """What vmap gives for all rows."""
        f = lambda states, sequences, fixed, n: self.loop(states, sequences, fixed, n)
        axes = (0, 0, None if self.fixed else 0, 0)
        return [np.asarray(v) for v in rs.compile(rs.vmap(f, in_axes=axes))(states, sequences, fixed[0] if self.fixed else fixed, counts)]

    def in_python(self, states, sequences, fixed, counts):
        """The same by loops over rows and steps, each step computed by itself."""
        one = rs.compile(lambda given: self.step(given.values()))
        found = []
        for r in range(self.rows):
            now, n = [s[r] for s in states], 0
            last = int(counts[r]) if self.ends == "steps" else self.steps if self.n_sequences else 12
            while n < last:
                rows = [x[r, n] for x in sequences]
                given = [*rows, *now, fixed[0] if self.fixed else fixed[r]]
                now, _, stop = one({str(k): v for k, v in enumerate(given)})
                n += 1
                if self.ends == "until" and stop:
                    break
            found.append([*now, n])
        return [np.array([row[k] for row in found]) for k in range(self.n_states + 1)]


def differs(seed):
    """True where a bit differs."""
    program = Program(seed)
    arguments = program.arguments()
    got, expected = program.mapped(*arguments), program.in_python(*arguments)
    return any(g.shape != e.shape or g.tobytes() != np.asarray(e, g.dtype).tobytes() for g, e in zip(got, expected, strict=True))


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    wrong = [seed for seed in range(n) if differs(seed)]
    print(f"{n} random loops for many rows: {len(wrong)} differ in a bit from Python's loops {wrong[:10]}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
