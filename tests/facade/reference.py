"""Descriptions of Theano programs, and what they compute: plain NumPy, one step after the other, without any graph.

A program is a list of statements; a loop is a statement with a list of its own. `Words` says per operation what it computes and how
it is written. Values are arrays, also the scalars, so that dtypes follow Theano's rules: those of arrays alone.

Derivatives are differences of the reference itself (`slope`). Where it is not smooth they say so (`NotSmooth`).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from facade.words import WORDS, Unfit, constant

#: The distance of the points of difference quotients.
H = 1e-3
#: Statements of one run: differences of differences take many.
MOST = 20_000
#: How much results of so many bytes are changed where rounding is at random: a few units in the last place.
EPSILON = {4: 2.0**-21, 8: 2.0**-50}


class NotSmooth(Unfit):
    """Differences at two distances do not agree."""


@dataclasses.dataclass(frozen=True)
class E:
    """An expression: a word, expressions as operands, and parameters that are plain Python."""

    word: str
    args: tuple[E, ...] = ()
    given: tuple[Any, ...] = ()

    def names(self) -> set[str]:
        """The variables in it."""
        found = {self.given[0]} if self.word == "name" else set()
        return found.union(*(a.names() for a in self.args))

    @functools.cached_property
    def meaning(self) -> Any:
        return WORDS[self.word]


def name(n: str) -> E:
    return E("name", (), (n,))


def number(x: Any) -> E:
    return E("number", (), (x,))


# Statements.


@dataclasses.dataclass
class Let:
    name: str
    value: E


@dataclasses.dataclass
class RandomDraw:
    """A draw of a random stream. `stream`: how many draws the program made before."""

    name: str
    dist: str
    size: tuple[int, ...]
    parameters: tuple[Any, ...]
    stream: int = 0


@dataclasses.dataclass
class Clone:
    """`name = clone(target, {old: new})`."""

    name: str
    target: str
    old: str
    new: E


@dataclasses.dataclass
class Gradient:
    """`names = grad(cost, wrt)`, with respect to variables of the same list of statements."""

    names: list[str]
    cost: E
    wrt: list[str]


@dataclasses.dataclass
class Slot:
    """A sequence or an initial state. taps None: it is given bare."""

    value: E
    taps: list[int] | None
    params: list[str]

    def listed(self, default: int) -> list[int]:
        return [default] if self.taps is None else self.taps


@dataclasses.dataclass
class Loop:
    kind: str
    id: int
    sequences: list[Slot]
    #: Per output: its initial state, or None.
    infos: list[Slot | None]
    non_sequences: list[tuple[str, E]]
    n_steps: E | None
    body: list[Any]
    outputs: list[E]
    #: Of shared variables, by the step itself; and the names of the updates of inner loops that it passes on.
    own_updates: list[tuple[str, E]]
    passed_on: list[str]
    until: E | None
    names: list[str]
    updates: str
    backwards: bool = False
    truncate: int = -1
    strict: bool = False
    return_list: bool = False
    #: How infos, updates and outputs are written.
    style: int = 0


@dataclasses.dataclass
class Program:
    seed: int
    floatX: str
    #: (name, dtype, values of each call); arrays.
    inputs: list[tuple[str, list[np.ndarray]]]
    shared: list[tuple[str, np.ndarray]]
    body: list[Any]
    outputs: list[E]
    own_updates: list[tuple[str, E]]
    passed_on: list[str]
    givens: list[tuple[str, E]]
    #: Of the gradient: the cost and the names of variables.
    cost: E | None
    wrt: list[str]
    mode: str | None
    #: No expression has a float32: gradients can be compared closely.
    double: bool = True
    default_updates: bool = True


class Loops:
    """What gradients that are cut off need to know of a run: the rows of loops with `truncate_gradient`, by their place."""

    def __init__(self) -> None:
        self.rows: dict[Any, list[tuple[list[np.ndarray], dict[str, Any]]]] = {}


class Run:
    """One evaluation.

    noise: rounds at random, so that two runs tell which results depend on rounding. wide: float32 is float64, for differences.
    """

    def __init__(self, program: Program, noise: np.random.Generator | None = None, wide: bool = False) -> None:
        self.program, self.noise, self.wide = program, noise, wide
        self.single = np.dtype("float64" if wide else "float32")
        self.floatX = np.dtype("float64" if wide else program.floatX)
        self.path: tuple[Any, ...] = ()
        self.constants: dict[Any, np.ndarray] = {}
        #: Theano's gradient is no derivative: a maximum was reached by several elements, which all have it in full; a norm was 0.
        self.tied = False
        self.record, self.replay = Loops(), None
        #: The loops that made no step, and how many statements ran.
        #: How many differences are being taken, one of the other.
        self.moving = 0
        self.work = 0

    # Expressions.

    def dtype(self, word: str) -> np.dtype:
        """The dtype of a word of Theano's."""
        return self.floatX if word == "floatX" else self.single if word == "float32" else np.dtype(word)

    def number(self, x: Any) -> np.ndarray:
        key = type(x), x
        if key not in self.constants:
            self.constants[key] = constant(x, self.floatX, self.single)
        return self.constants[key]

    def array(self, x: Any, dtype: str | None = None) -> np.ndarray:
        a = np.asarray(x, dtype)
        return a.astype(self.single) if a.dtype == np.float32 else a

    def value(self, e: E, env: dict[str, Any], shared: dict[str, Any]) -> np.ndarray:
        if e.word == "name":
            n = e.given[0]
            found = env.get(n, n)
            return shared[found] if found.__class__ is str else found
        if e.word == "number":
            return self.number(e.given[0])
        if e.word == "array":
            return self.array(*e.given)
        meaning = e.meaning
        if meaning.lazy:
            return self.chosen(e, env, shared)
        args = [self.value(a, env, shared) for a in e.args]
        if self.noise is None:
            return np.asarray(meaning.value(self, *args, *e.given))
        if meaning.sums:
            args = [self.rounded(a) for a in args]
        out = np.asarray(meaning.value(self, *args, *e.given))
        return self.rounded(out) if meaning.inexact else out

    def chosen(self, e: E, env: dict[str, Any], shared: dict[str, Any]) -> np.ndarray:
        """One of two branches, which must be alike."""
        first, second = (self.value(a, env, shared) for a in e.args[1:])
        if first.shape != second.shape or first.dtype != second.dtype:
            raise Unfit
        return first if self.value(e.args[0], env, shared) != 0 else second

    def rounded(self, x: np.ndarray) -> np.ndarray:
        if x.dtype.kind != "f" or self.noise is None:
            return x
        return np.asarray(x * (1 + EPSILON[x.dtype.itemsize] * self.noise.standard_normal(x.shape)), x.dtype)

    # Statements.

    def block(self, body: list[Any], env: dict[str, Any], shared: dict[str, Any], moved: dict[str, Any] | None = None) -> dict[str, Any]:
        """Carries statements out in `env`. Returns the states of the generators that they moved on. moved: values that are given."""
        moved, after = moved or {}, {}
        start = dict(env)
        self.work += 1 + len(body)
        if self.work > MOST:
            raise Unfit
        for i, s in enumerate(body):
            if isinstance(s, Let):
                env[s.name] = self.value(s.value, env, shared)
            elif isinstance(s, RandomDraw):
                generator, env[s.name] = self.draw(s, shared)
                after[f"rng{s.stream}"] = generator
            elif isinstance(s, Clone):
                other = {s.old: self.value(s.new, env, shared)}
                env[s.name] = self.again(body[:i], start, shared, other)(name(s.target))
            elif isinstance(s, Gradient):
                env.update(zip(s.names, self.gradient(s, body[:i], start, env, shared), strict=True))
            else:
                self.loop(s, env, shared)
            env.update({k: v for k, v in moved.items() if k in env})
        return after

    def again(self, body: list[Any], start: dict[str, Any], shared: dict[str, Any], moved: dict[str, Any]) -> Callable[[E], np.ndarray]:
        """The statements once more, with other values of some variables."""
        shared = {k: moved.get(k, v) for k, v in shared.items()}
        env = {**start, **{k: v for k, v in moved.items() if k in start and not isinstance(start[k], str)}}
        self.block(body, env, shared, {k: v for k, v in moved.items() if k not in shared})
        return lambda e: self.value(e, env, shared)

    def draw(self, s: RandomDraw, shared: dict[str, Any]) -> tuple[Any, np.ndarray]:
        generator = np.random.RandomState()
        generator.set_state(shared[f"rng{s.stream}"].get_state())
        p, size = s.parameters, s.size
        out = {
            "uniform": lambda: generator.uniform(p[0], p[1], size),
            "normal": lambda: generator.normal(p[0], p[1], size),
            "binomial": lambda: generator.binomial(p[0], p[1], size),
            "random_integers": lambda: generator.randint(p[0], p[1] + 1, size),
            "permutation": lambda: generator.permutation(p[0]),
        }[s.dist]()
        return generator, np.asarray(out, self.floatX if s.dist in ("uniform", "normal") else np.int64)

    def loop(self, s: Loop, env: dict[str, Any], shared: dict[str, Any]) -> None:
        sequences = [self.value(q.value, env, shared) for q in s.sequences]
        taps = [q.listed(0) for q in s.sequences]
        # Tap 0 counts also where it is not listed.
        ahead = [max(0, *t) if len(t) > 1 else max(0, t[0]) for t in taps]
        behind = [-min([0, *t]) for t in taps]
        lengths = [max(0, len(x) - a - b) for x, a, b in zip(sequences, ahead, behind, strict=True)]
        steps = min(lengths) if s.n_steps is None else int(self.value(s.n_steps, env, shared))
        if steps < 0 or any(n < steps for n in lengths):
            raise Unfit
        past = [[] if q is None else self.initial(q, env, shared) for q in s.infos]
        inner = dict(env)
        for param, e in s.non_sequences:
            is_shared = e.word == "name" and isinstance(env.get(e.given[0], ""), str)
            inner[param] = env.get(e.given[0], e.given[0]) if is_shared else self.value(e, env, shared)
        now = dict(shared)
        made: list[list[np.ndarray]] = [[] for _ in s.outputs]
        known = self.replay.rows.get((self.path, s.id)) if self.replay is not None and s.truncate != -1 else None
        rows: list[Any] = []
        carried = updated(s)
        if steps == 0:
            self.no_step(s, inner, sequences, past, made, now)
        for t in range(steps):
            if known is not None and t < len(known) - s.truncate:
                outputs, moved = known[t]
                stop = False
            else:
                step_env = dict(inner)
                for q, x, n, b, k in zip(s.sequences, sequences, lengths, behind, taps, strict=True):
                    time = n - 1 - t if s.backwards else t
                    step_env.update({p: x[time + tap + b] for p, tap in zip(q.params, k, strict=True)})
                for q, values in zip(s.infos, past, strict=True):
                    if q is not None:
                        step_env.update({p: values[tap] for p, tap in zip(q.params, q.listed(-1), strict=True)})
                outputs, after, stop = self.step(s, t, step_env, now)
                moved = {k: v for k, v in after.items() if v is not now[k] or k in carried}
            now = now | moved
            rows.append((outputs, moved))
            for values, all_rows, x in zip(past, made, outputs, strict=True):
                values.append(x)
                all_rows.append(x)
            if stop:
                break
        if s.truncate != -1:
            self.record.rows[self.path, s.id] = rows
        self.finish(s, env, shared, now, made, steps)

    def initial(self, q: Slot, env: dict[str, Any], shared: dict[str, Any]) -> list[np.ndarray]:
        value, taps = self.value(q.value, env, shared), q.listed(-1)
        return [value] if taps == [-1] else [value[i] for i in range(-min(taps))]

    def step(self, s: Loop, t: int, env: dict[str, Any], shared: dict[str, Any]) -> tuple[list[np.ndarray], dict[str, Any], bool]:
        before, self.path = self.path, (*self.path, s.id, t)
        after = dict(shared) | self.block(s.body, env, shared)
        outputs = [np.asarray(self.value(e, env, shared)) for e in s.outputs]
        for u in s.passed_on:
            after |= env[u]
        after |= {k: self.value(e, env, shared) for k, e in s.own_updates}
        stop = s.until is not None and bool(self.value(s.until, env, shared))
        self.path = before
        return outputs, after, stop

    def no_step(self, s: Loop, env: dict[str, Any], sequences: Any, past: Any, made: Any, now: Any) -> None:
        """Results of no rows, with the shapes and dtypes that rows would have."""
        env = dict(env)
        for q, x in zip(s.sequences, sequences, strict=True):
            env.update({p: np.zeros(x.shape[1:], x.dtype) for p in q.params})
        for q, values in zip(s.infos, past, strict=True):
            if q is not None:
                env.update({p: values[tap] for p, tap in zip(q.params, q.listed(-1), strict=True)})
        outputs, _, _ = self.step(s, 0, env, now)
        for rows, x in zip(made, outputs, strict=True):
            rows.append(x)

    def finish(self, s: Loop, env: dict[str, Any], shared: dict[str, Any], now: Any, made: Any, steps: int) -> None:
        """Binds the results."""
        for n, rows in zip(s.names, made, strict=True):
            if s.kind in ("reduce", "foldl", "foldr"):
                if steps == 0:
                    raise Unfit
                env[n] = rows[-1]
            else:
                env[n] = np.stack(rows)[: min(steps, len(rows))]
        env[s.updates] = {k: v for k, v in now.items() if v is not shared.get(k)}

    # Derivatives.

    def gradient(self, s: Gradient, body: list[Any], start: Any, env: Any, shared: Any) -> list[np.ndarray]:
        found = []
        for n in s.wrt:
            at = self.value(name(n), env, shared)
            g = np.empty(at.shape)
            for i in np.ndindex(at.shape):
                unit = np.zeros(at.shape)
                unit[i] = 1
                g[i] = self.slope(lambda moved: self.again(body, start, shared, moved)(s.cost), {n: (at, unit)})
            # So that what is whole is compared as what it is; differences of differences need all digits.
            found.append(g if self.moving else np.round(g, 9))
        return found

    def slope(self, cost: Callable[[dict[str, Any]], np.ndarray], moves: dict[str, tuple[np.ndarray, np.ndarray]]) -> float:
        """The derivative of `cost` as variables move from a place along a direction: differences at four points, if smooth.

        Of what is smooth, quotients of half the distance differ by a quarter; where the second derivative jumps, as that of a square
        of relu at 0, by a half.
        """

        def at(step: float) -> float:
            return float(cost({n: x + step * direction for n, (x, direction) in moves.items()}))

        record, replay, tied = self.record, self.replay, self.tied
        self.record, self.tied, self.moving = Loops(), False, self.moving + 1
        try:
            middle = float(cost({}))
            if self.tied:
                raise NotSmooth
            if replay is None:
                self.replay = self.record
            nearest, near, far = ([at(k * d * H) for k in (1, -1)] for d in (0.5, 1, 2))
        finally:
            self.record, self.replay, self.tied, self.moving = record, replay, tied, self.moving - 1
        half, first, second = ((a - b) / (2 * d * H) for (a, b), d in ((nearest, 0.5), (near, 1), (far, 2)))
        bend, wide_bend = sum(near) - 2 * middle, sum(far) - 2 * middle
        size = max(1.0, abs(first), abs(middle))
        shrinks = abs(second - first - 4 * (first - half)) < 1e-5 * size
        if not (shrinks and abs(first - second) < 1e-3 * size and abs(wide_bend - 4 * bend) < 1e-5 * H * size):
            raise NotSmooth
        return (4 * first - second) / 3


class Reference:
    """A program's calls, one after the other: the shared variables keep what a call made of them."""

    def __init__(self, program: Program, noise: int | None = None, wide: bool = False) -> None:
        self.program = program
        self.run = Run(program, None if noise is None else np.random.default_rng(noise), wide)
        self.shared: dict[str, Any] = {n: self.run.array(v) for n, v in program.shared}
        seeds = np.random.RandomState(program.seed)
        for s in statements(program.body):
            if isinstance(s, RandomDraw):
                self.shared[f"rng{s.stream}"] = np.random.RandomState(int(seeds.randint(2**30)))

    def start(self, call: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """The variables at the beginning of a call."""
        given = {n for n, _ in self.program.givens}
        env = {n: self.run.array(values[call]) for n, values in self.program.inputs if n not in given}
        moved = {n: self.run.value(e, env, self.shared) for n, e in self.program.givens}
        shared = {n: moved.get(n, v) for n, v in self.shared.items()}
        return env | {n: v for n, v in moved.items() if n not in shared}, shared

    def call(self, call: int) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
        """The outputs of a call, and the shared variables after it."""
        p = self.program
        self.run.work = 0
        env, shared = self.start(call)
        after = self.run.block(p.body, env, shared)
        outputs = [self.run.value(e, env, shared) for e in p.outputs]
        news = dict(after) if p.default_updates else {}
        for u in p.passed_on:
            news |= env[u]
        news |= {k: self.run.value(e, env, shared) for k, e in p.own_updates}
        self.shared |= news
        return outputs, {n: self.shared[n] for n, _ in p.shared}

    def cost_slope(self, call: int, directions: dict[str, np.ndarray]) -> float:
        """The derivative of the cost, as variables of the program move along these directions."""
        p = self.program
        self.run.work = 0
        env, shared = self.start(call)
        full = dict(env)
        self.run.block(p.body, full, shared)

        def cost(moved: dict[str, Any]) -> np.ndarray:
            return self.run.again(p.body, env, shared, moved)(p.cost)  # type: ignore[arg-type]

        return self.run.slope(cost, {n: (self.run.value(name(n), full, shared), d) for n, d in directions.items()})


def statements(body: list[Any]) -> Iterator[Any]:
    """All statements in the order in which Python carries them out."""
    for s in body:
        if isinstance(s, Loop):
            yield from statements(s.body)
        yield s


def updated(s: Loop) -> set[str]:
    """The shared variables that a loop carries from step to step, whether or not a step changes them."""
    inner = [updated(x) for x in s.body if isinstance(x, Loop) and x.updates in s.passed_on]
    return {n for n, _ in s.own_updates}.union(*inner)


def parts(value: Any) -> Iterator[Any]:
    """A description and everything in it."""
    yield value
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from parts(item)
    elif isinstance(value, E):
        yield from parts(value.args)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from parts(getattr(value, field.name))
