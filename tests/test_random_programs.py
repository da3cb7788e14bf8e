"""Random loops against plain NumPy loops: values, updates, and gradients against finite differences.

A program is data drawn from a seed. Its step is one list of instructions, which NumPy and rscan both carry out; the loop around
it is `rs.scan` or `rs.loop` on one side and a Python `for` on the other. RSCAN_RANDOM_PROGRAMS and RSCAN_RANDOM_SEED set how
many programs, and from which seed on.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import rscan as rs

PROGRAMS = int(os.environ.get("RSCAN_RANDOM_PROGRAMS", 150))
FIRST = int(os.environ.get("RSCAN_RANDOM_SEED", 0))
SEQUENCE_TAPS = [[0], [0], [0], [-1, 0], [-2, 0], [0, 1], [2, -1], [-1], [1], [-3, -1, 0], [1, 2]]
STATE_TAPS = [[-1], [-1], [-1], [-2, -1], [-1, -3], [-2], [-4, -1]]
WIDTH = 3


@dataclass
class Sequence:
    value: np.ndarray
    taps: list[int]

    def usable(self) -> int:
        """How many steps its rows serve."""
        return max(0, len(self.value) + min(0, *self.taps) - max(0, *self.taps)) if len(self.taps) > 1 else self._usable_one()

    def _usable_one(self) -> int:
        return max(0, len(self.value) - abs(self.taps[0]))


@dataclass
class Program:
    sequences: list[Sequence]
    states: list[tuple[np.ndarray, list[int]]]
    #: Per output: the state that it continues, or None, and its instruction.
    outputs: list[tuple[int | None, Any]]
    matrix: np.ndarray
    vector: np.ndarray
    shared: np.ndarray
    update: Any
    until: Any
    n_steps: int | None
    #: n_steps is an input of the function.
    symbolic_steps: bool
    backwards: bool
    #: By rs.loop, with names.
    named: bool
    features: set[str] = field(default_factory=set)

    def steps(self) -> int:
        return min(s.usable() for s in self.sequences) if self.n_steps is None else self.n_steps


# Instructions are tuples: a word and operands.


class Draw:
    """Draws a program."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.features: set[str] = set()

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def pick(self, items: list[Any]) -> Any:
        return items[int(self.rng.integers(len(items)))]

    def numbers(self, *shape: int, kind: str = "float64") -> np.ndarray:
        if kind == "int64":
            return self.rng.integers(0, 5, shape)
        return self.rng.uniform(-1, 1, shape).astype(kind)

    def row(self) -> tuple[int, ...]:
        return self.pick([(), (WIDTH,), (WIDTH,), (1,)])

    def program(self) -> Program:
        n = self.pick([0, 1, 2, 3, 4, 5])
        n_steps = None if self.chance(0.5) else n
        sequences = [self.sequence(n, exact=n_steps is None and k == 0) for k in range(self.rng.integers(n_steps is None, 4))]
        states = [self.state() for _ in range(self.rng.integers(0, 4))]
        self.slots = [s.value[0] if len(s.value) else np.zeros(s.value.shape[1:], s.value.dtype) for s in sequences for _ in s.taps]
        self.slots += [v if taps == [-1] else v[0] for v, taps in states for _ in taps]
        outputs: list[tuple[int | None, Any]] = [(k, self.next_row(k, v, taps)) for k, (v, taps) in enumerate(states)]
        outputs += [(None, self.free()) for _ in range(self.rng.integers(0 if outputs else 1, 3))]
        self.rng.shuffle(outputs)  # type: ignore[arg-type]
        until = None
        if self.chance(0.2):
            until = ("until", int(self.rng.integers(0, 4)), self.tree(1) if self.chance(0.5) else None)
        update = self.tree(2) if self.chance(0.3) else None
        flags = dict(symbolic_steps=n_steps is not None and self.chance(0.4), backwards=bool(sequences) and self.chance(0.3))
        unequal = len({s.usable() for s in sequences}) > 1
        words = dict(until=until, shared=update, backwards=flags["backwards"], zero=n == 0, unequal=unequal)
        self.features |= {word for word, used in words.items() if used}
        return Program(
            sequences, states, outputs, self.numbers(WIDTH, WIDTH) / 2, self.numbers(WIDTH), self.numbers(WIDTH), update, until, n_steps,
            named=self.chance(0.4), features=self.features, **flags,
        )  # fmt: skip

    def sequence(self, n: int, exact: bool) -> Sequence:
        taps = list(self.pick(SEQUENCE_TAPS))
        extra = 0 if exact else int(self.rng.integers(0, 4))
        kind = self.pick(["float64", "float64", "float64", "int64"])
        self.features |= {"taps"} if taps != [0] else set()
        self.features |= {"int"} if kind == "int64" else set()
        return Sequence(self.numbers(n + max(0, *taps, 0) - min(0, *taps, 0) + extra, *self.row(), kind=kind), taps)

    def state(self) -> tuple[np.ndarray, list[int]]:
        taps = list(self.pick(STATE_TAPS))
        kind = self.pick(["float64", "float64", "float64", "int64"])
        rows = () if taps == [-1] else (-min(taps) + int(self.rng.integers(0, 2)),)
        self.features |= {"state taps"} if taps != [-1] else set()
        return self.numbers(*rows, *self.row(), kind=kind), taps

    def next_row(self, k: int, value: np.ndarray, taps: list[int]) -> Any:
        at = sum(len(s) for s in (self.taps_before(k),))
        shape = value.shape if taps == [-1] else value.shape[1:]
        if self.chance(0.08):
            return ("slot", at)
        if value.dtype == np.int64:
            return ("count", ("slot", at), int(self.rng.integers(1, 4)))
        mixed = ("add", ("mul", ("slot", at), ("number", 0.6)), self.tree(2))
        return ("shaped", mixed if self.chance(0.7) else self.tree(2), shape)

    def taps_before(self, k: int) -> list[int]:
        """One number per slot before the first of state k."""
        ends = len(self.slots) - sum(len(taps) for _, taps in self._states[k:])
        return list(range(ends))

    @property
    def _states(self) -> list[tuple[np.ndarray, list[int]]]:
        return self._kept

    def free(self) -> Any:
        return self.pick([("vector",), ("slot", 0) if self.slots else ("vector",), self.tree(3), self.tree(3), self.tree(2)])

    def tree(self, depth: int) -> Any:
        if depth == 0 or self.chance(0.15):
            leaves: list[Any] = [("slot", int(self.rng.integers(len(self.slots))))] * 3 if self.slots else []
            return self.pick([*leaves, ("vector",), ("shared",), ("step",), ("number", float(self.rng.uniform(-1, 1))), ("captured",)])
        words = "tanh sin exp add mul sub div where dot softmax reverse row put inner sum"
        word = self.pick(words.split())
        self.features.add(word)
        operands = [self.tree(depth - 1) for _ in range({"add": 2, "mul": 2, "sub": 2, "div": 2, "where": 3, "put": 2}.get(word, 1))]
        return (word, *operands, int(self.rng.integers(0, WIDTH)))


def draw(seed: int) -> Program:
    source = Draw(seed)
    kept: list[Any] = []
    original = source.state

    def state() -> Any:
        kept.append(original())
        return kept[-1]

    source.state, source._kept = state, kept  # type: ignore[method-assign, attr-defined]
    return source.program()


class Step:
    """Carries instructions out, with NumPy (`xp` is np) or rscan."""

    def __init__(self, xp: Any, program: Program, slots: list[Any], matrix: Any, vector: Any, shared: Any, step: Any) -> None:
        self.xp, self.p, self.slots, self.step = xp, program, slots, step
        self.matrix, self.vector, self.shared = matrix, vector, shared

    def wide(self, x: Any) -> Any:
        return x + self.xp.zeros(WIDTH)

    def run(self, code: Any) -> Any:
        return getattr(self, "do_" + code[0])(*code[1:])

    def do_slot(self, k: int) -> Any:
        return self.slots[k]

    def do_vector(self) -> Any:
        return self.vector

    def do_captured(self) -> Any:
        return self.xp.tanh(self.matrix).sum(axis=0)

    def do_shared(self) -> Any:
        return self.shared

    def do_step(self) -> Any:
        return self.step * 0.1

    def do_number(self, x: float) -> Any:
        return x

    def do_count(self, a: Any, by: int) -> Any:
        return (self.run(a) * 2 + by) % 7

    def do_shaped(self, a: Any, shape: tuple[int, ...]) -> Any:
        x = self.xp.tanh(self.wide(self.run(a)))
        return {(): lambda: x.mean(), (1,): lambda: x[:1] * 0.9, (WIDTH,): lambda: x}[shape]()

    def do_tanh(self, a: Any, _: int) -> Any:
        return self.xp.tanh(self.wide(self.run(a)))

    def do_sin(self, a: Any, _: int) -> Any:
        return self.xp.sin(self.wide(self.run(a)))

    def do_exp(self, a: Any, _: int) -> Any:
        return self.xp.exp(self.xp.sin(self.wide(self.run(a))))

    def do_add(self, a: Any, b: Any, _: int = 0) -> Any:
        return self.run(a) + self.run(b)

    def do_sub(self, a: Any, b: Any, _: int = 0) -> Any:
        return self.run(a) - self.run(b)

    def do_mul(self, a: Any, b: Any, _: int = 0) -> Any:
        return self.run(a) * self.run(b)

    def do_div(self, a: Any, b: Any, _: int) -> Any:
        return self.run(a) / (1.5 + self.run(b) ** 2)

    def do_where(self, c: Any, a: Any, b: Any, k: int) -> Any:
        condition = self.xp.equal((self.step + k) % 2, 0)
        return self.xp.where(condition, self.wide(self.run(a)), self.wide(self.run(b)) * self.run(c))

    def do_dot(self, a: Any, k: int) -> Any:
        x = self.wide(self.run(a))
        return x @ self.matrix if k else self.matrix @ x

    def do_softmax(self, a: Any, _: int) -> Any:
        e = self.xp.exp(self.xp.tanh(self.wide(self.run(a))))
        return e / e.sum()

    def do_reverse(self, a: Any, _: int) -> Any:
        return self.wide(self.run(a))[::-1]

    def do_row(self, a: Any, k: int) -> Any:
        return self.wide(self.run(a))[k - 1]

    def do_sum(self, a: Any, _: int) -> Any:
        return self.wide(self.run(a)).sum() * 0.5

    def do_put(self, a: Any, b: Any, k: int) -> Any:
        x, y = self.wide(self.run(a)) * 1.0, self.wide(self.run(b))
        if self.xp is rs:
            return x.at[(self.step + k) % WIDTH].set(y[k])
        x[(self.step + k) % WIDTH] = y[k]
        return x

    def do_inner(self, a: Any, k: int) -> Any:
        x = self.xp.tanh(self.wide(self.run(a)))
        if self.xp is rs:
            rows, _ = rs.scan(lambda row, h, m: rs.tanh(h * 0.5 + row @ m + x), self.matrix, rs.zeros(WIDTH), self.matrix, n_steps=k)
            return rows.sum(axis=0)
        total, h = np.zeros(WIDTH), np.zeros(WIDTH)
        for t in range(k):
            h = np.tanh(h * 0.5 + self.matrix[t] @ self.matrix + x)
            total = total + h
        return total

    def do_until(self, k: int, a: Any) -> Any:
        reached = self.step >= k
        return reached if a is None else reached & (self.wide(self.run(a)).sum() > 0.05)


def plain(p: Program, values: list[np.ndarray]) -> list[np.ndarray]:
    """Outputs, then the shared variable, by a Python loop."""
    sequences, states = values[: len(p.sequences)], values[len(p.sequences) : -3]
    matrix, vector, shared = values[-3:]
    history = [[v] if taps == [-1] else [v[i] for i in range(-min(taps))] for v, (_, taps) in zip(states, p.states, strict=True)]
    rows: list[list[np.ndarray]] = [[] for _ in p.outputs]
    for t in range(p.steps()):
        slots = [row_of(x, s, t, p.backwards, k) for x, s in zip(sequences, p.sequences, strict=True) for k in s.taps]
        slots += [past[k] for past, (_, taps) in zip(history, p.states, strict=True) for k in taps]
        step = Step(np, p, slots, matrix, vector, shared, t)
        made = [np.asarray(step.run(code)) for _, code in p.outputs]
        after = shared if p.update is None else np.tanh(step.wide(step.run(p.update)) + shared)
        stop = p.until is not None and bool(step.run(p.until))
        for (state, _), row, all_rows in zip(p.outputs, made, rows, strict=True):
            all_rows.append(row)
            if state is not None:
                history[state].append(row)
        shared = after
        if stop:
            break
    return [np.array(r) for r in rows] + [shared]


def row_of(x: np.ndarray, s: Sequence, t: int, backwards: bool, tap: int) -> np.ndarray:
    time = s.usable() - 1 - t if backwards else t
    return x[time + tap - min(0, *s.taps, 0)]


class Symbolic:
    """The program as a function of rscan."""

    def __init__(self, p: Program) -> None:
        self.p = p
        known = p.n_steps is None
        spec = [s.value for s in p.sequences] + [v for v, _ in p.states] + [p.matrix, p.vector]
        self.inputs = [rs.tensor(v.dtype, v.shape if known else (None,) * v.ndim) for v in spec]
        self.shared = rs.shared(p.shared.copy(), name="shared")
        self.count = rs.iscalar("n") if p.symbolic_steps else None
        self.outputs, self.updates = self.build()
        after = self.updates.get(self.shared, self.shared)
        self.values = [*self.outputs, after]
        self.arguments = [*self.inputs, *([self.count] if self.count is not None else [])]

    def build(self) -> tuple[list[Any], Any]:
        p, n = self.p, len(self.p.sequences)
        sequences, states = self.inputs[:n], self.inputs[n : n + len(p.states)]
        self.matrix, self.vector = self.inputs[-2:]
        n_steps = self.count if self.count is not None else p.n_steps
        if p.named:
            return self.by_name(sequences, states, n_steps)
        seqs = [dict(input=x, taps=s.taps) for x, s in zip(sequences, p.sequences, strict=True)]
        infos: list[Any] = []
        order = [state for state, _ in p.outputs]
        for state in order:
            infos.append(None if state is None else dict(initial=states[state], taps=p.states[state][1]))
        # The step index travels as a state: go_backwards would turn a sequence round.
        infos.append(dict(initial=rs.constant(np.int64(-1)), taps=[-1]))

        def step(*args: Any) -> Any:
            slices, past = list(args[: sum(len(s.taps) for s in p.sequences)]), list(args[sum(len(s.taps) for s in p.sequences) :])
            t = past.pop() + 1
            by_state: dict[int, list[Any]] = {}
            for state in order:
                if state is not None:
                    by_state[state] = [past.pop(0) for _ in p.states[state][1]]
            slots = slices + [x for k in sorted(by_state) for x in by_state[k]]
            outputs, updates, until = self.step(slots, t)
            result: list[Any] = [[*outputs, t]]
            if updates:
                result.append(updates)
            if until is not None:
                result.append(until)
            return tuple(result) if len(result) > 1 else result[0]

        outputs, updates = rs.scan(step, seqs, infos, n_steps=n_steps, go_backwards=p.backwards, return_list=True)
        return outputs[:-1], updates

    def step(self, slots: list[Any], t: Any) -> tuple[list[Any], dict[Any, Any], Any]:
        p = self.p
        step = Step(rs, p, slots, self.matrix, self.vector, self.shared, t)
        outputs = [step.run(code) for _, code in p.outputs]
        updates = {} if p.update is None else {self.shared: rs.tanh(step.wide(step.run(p.update)) + self.shared)}
        return outputs, updates, None if p.until is None else rs.until(step.run(p.until))

    def by_name(self, sequences: list[Any], states: list[Any], n_steps: Any) -> tuple[list[Any], Any]:
        p = self.p
        over = {f"x{k}": rs.taps(x, *s.taps) for k, (x, s) in enumerate(zip(sequences, p.sequences, strict=True))}
        init = {
            f"h{k}": h if list(taps) == [-1] else rs.taps(h, *taps) for k, (h, (_, taps)) in enumerate(zip(states, p.states, strict=True))
        }
        init["t"] = rs.constant(np.int64(-1))

        def step(**given: Any) -> Any:
            t = given.pop("t") + 1
            slots = [x for k in [*over, *list(init)[:-1]] for x in (given[k] if isinstance(given[k], tuple) else (given[k],))]
            outputs, updates, until = self.step(slots, t)
            named = {f"y{k}" if state is None else f"h{state}": v for k, ((state, _), v) in enumerate(zip(p.outputs, outputs, strict=True))}
            result: list[Any] = [{**named, "t": t}]
            if updates:
                result.append(updates)
            if until is not None:
                result.append(until)
            return tuple(result) if len(result) > 1 else result[0]

        names = list(over) + list(init)
        scope: dict[str, Any] = {"inner": step}
        exec(f"def step({', '.join(names)}):\n    return inner({', '.join(f'{n}={n}' for n in names)})", scope)  # parameters are the names
        out = rs.loop(scope["step"], over=over, init=init, n_steps=n_steps, go_backwards=p.backwards)
        return [out[f"y{k}" if state is None else f"h{state}"] for k, (state, _) in enumerate(p.outputs)], out.updates

    def call(self, f: Any, values: list[np.ndarray]) -> list[np.ndarray]:
        self.shared.set_value(values[-1].copy())
        got = f(*values[:-1], *([self.p.n_steps] if self.count is not None else []))
        return [np.asarray(g) for g in got]


def values_of(p: Program) -> list[np.ndarray]:
    return [s.value for s in p.sequences] + [v for v, _ in p.states] + [p.matrix, p.vector, p.shared]


def close(got: np.ndarray, want: np.ndarray, tolerance: float, what: str) -> None:
    if want.shape[:1] == (0,):
        assert got.shape[:1] == (0,), f"{what}: shape {got.shape} after no steps"
        return
    assert got.shape == want.shape, f"{what}: shape {got.shape}, expected {want.shape}"
    scale = max(1.0, float(np.abs(want).max(initial=0)))
    assert np.abs(got.astype(float) - want).max(initial=0) <= tolerance * scale, f"{what}\n{got}\nexpected\n{want}"


@pytest.mark.parametrize("part", range(10))
def test_random_programs_agree_with_plain_loops(part: int) -> None:
    for seed in range(FIRST + part, FIRST + PROGRAMS, 10):
        check(seed)


def check(seed: int) -> None:
    """Values, updates and gradients of the program of a seed."""
    p = draw(seed)
    made = Symbolic(p)
    f = rs.function(made.arguments, made.outputs, updates=made.updates, on_unused_input="ignore")
    values = values_of(p)
    want = plain(p, values)
    got = [*made.call(f, values), made.shared.get_value()]
    for k, (g, w) in enumerate(zip(got, want, strict=True)):
        close(g, w, 1e-10, f"seed {seed}, output {k}")
    gradients(seed, p, made, values, want)


def gradients(seed: int, p: Program, made: Symbolic, values: list[np.ndarray], want: list[np.ndarray]) -> None:
    """Directional derivatives and those by single elements, against central differences of the plain loop."""
    rng = np.random.default_rng(seed)
    weights = [rng.uniform(0.5, 1.5, w.shape) for w in want]
    floats = [k for k, y in enumerate(made.values) if y.dtype == "float64"]
    cost = sum((made.values[k] * weights[k]).sum() for k in floats if weights[k].size)
    wrt = [k for k, v in enumerate(values) if v.dtype == np.float64]
    if isinstance(cost, int):
        return
    variables = [*made.inputs, made.shared]
    found = rs.grad(cost, [variables[k] for k in wrt], disconnected_inputs="ignore")
    got = made.call(rs.function(made.arguments, list(found), on_unused_input="ignore", no_default_updates=True), values)

    def at(moved: list[np.ndarray]) -> float:
        rows = plain(p, moved)
        return float(sum((rows[k] * weights[k]).sum() for k in floats if weights[k].size))

    for g, k in zip(got, wrt, strict=True):
        assert g.shape == values[k].shape
        elements = [tuple(int(rng.integers(n)) for n in values[k].shape) for _ in range(2)] if values[k].size else []
        for directions in [rng.uniform(-1, 1, values[k].shape), *map(lambda i, k=k: unit(values[k].shape, i), elements)]:
            up, down = ([v + s * 1e-5 * directions if i == k else v for i, v in enumerate(values)] for s in (1, -1))
            slope = (at(up) - at(down)) / 2e-5
            what = f"seed {seed}, input {k}: {g} along {directions}, {slope}"
            assert abs(slope - (g * directions).sum()) <= 1e-5 * max(1, abs(slope)), what


def unit(shape: tuple[int, ...], at: tuple[int, ...]) -> np.ndarray:
    e = np.zeros(shape)
    e[at] = 1
    return e


def test_programs_use_everything() -> None:
    used = [draw(seed).features for seed in range(FIRST, FIRST + max(PROGRAMS, 100))]
    for feature in ["until", "shared", "backwards", "zero", "unequal", "taps", "state taps", "int", "inner", "put", "dot", "where"]:
        assert sum(feature in u for u in used) >= 10, feature


@pytest.mark.parametrize("seed", range(20))
def test_draws_in_loops_are_those_of_their_step(seed: int) -> None:
    """Step t of a loop draws from the key folded with t, whatever else the loop does; nested loops fold once per level."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    key = rs.random.key(seed)

    def outer(t: Any) -> Any:
        mine = rs.random.fold_in(key, t)
        inner, _ = rs.scan(lambda j: rs.random.normal(rs.random.fold_in(mine, j), (2,)), rs.arange(m))
        return rs.random.uniform(mine, (3,)), inner

    (flat, nested), _ = rs.scan(outer, rs.arange(n))
    got_flat, got_nested = rs.function([], [flat, nested])()
    for t in range(n):
        mine = rs.random.fold_in(key, t)
        np.testing.assert_array_equal(got_flat[t], rs.eval(rs.random.uniform(mine, (3,))))
        for j in range(m):
            np.testing.assert_array_equal(got_nested[t, j], rs.eval(rs.random.normal(rs.random.fold_in(mine, j), (2,))))


@pytest.mark.parametrize("seed", range(10))
def test_streams_give_the_same_numbers_again(seed: int) -> None:
    def numbers(extra: bool) -> list[np.ndarray]:
        stream = rs.random.RandomStream(seed)
        draws, updates = rs.scan(lambda x: x + stream.normal((2,)), rs.arange(4) * 1.0)
        outputs = [draws, draws.sum() * 2] if extra else [draws]
        f = rs.function([], outputs, updates=updates)
        return [f()[0] for _ in range(3)]

    first, second = numbers(False), numbers(True)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(first[0], first[1])
    assert len(np.unique(first[0] - np.arange(4.0)[:, None])) == 8
