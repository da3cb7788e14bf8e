"""Random Theano programs, drawn from a seed: `draw(seed)` describes one.

`facade.program_source` writes it in Python, `facade.reference` computes what it should give, `facade.run_programs` compares.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from facade.reference import (
    Clone,
    E,
    Gradient,
    Let,
    Loop,
    Program,
    RandomDraw,
    Reference,
    Run,
    Slot,
    name,
    number,
    statements,
)  # fmt: skip
from facade.words import WORDS, Unfit

SEQUENCE_TAPS = [None, None, [0], [-1, 0], [0, -2], [1, 0], [2, -1], [-1], [1], [-3, 0, -1], [1, 2]]
STATE_TAPS = [None, None, None, [-1], [-2, -1], [-1, -3], [-2], [-4, -1]]
SHAPES = [(), (), (3,), (3,), (3,), (2,), (2, 3), (3, 3), (1, 3)]
#: How often each operation is tried; those that are not named, once.
OFTEN = {"add": 6, "sub": 4, "mul": 6, "tanh": 3, "dot": 3, "switch": 3, "ifelse": 2, "set_at": 2, "inc_at": 2, "sum": 2, "at": 2, "max": 2}
MADE = ("zeros", "ones", "arange", "eye", "constant", "python")
DRAWN = [w for w in WORDS if w not in MADE for _ in range(OFTEN.get(w, 1))]
KEYS = {
    1: ["0", "-1", "1", "::-1", "1:", ":-1", "[1, 0]", "np.array([0, 1, 1])", "::2"],
    2: ["0", "-1", ":, 1", "::-1", ":, ::-1", "1, 0", ":, 1:", "[0, 1, 0]", "[0, 1], [1, 0]", ":, [1, 0]", "..., 0"],
}
SYMBOLIC_KEYS = {1: ["i"], 2: ["i", ":, i", "i, 0", "0, i", "i, ::-1"]}


@dataclasses.dataclass
class Entry:
    """A variable that expressions may use."""

    name: str
    #: A value that it may have.
    value: np.ndarray
    #: The shared variables and draws that it is computed from.
    behind: frozenset[str] = frozenset()
    #: It belongs to this list of statements: derivatives may be taken with respect to it.
    own: bool = True
    #: Rows of a loop: at least how many there are. None: no rows of a loop.
    least: int | None = None


class Scope:
    """What a list of statements sees."""

    def __init__(self, outer: Scope | None, visible: list[Entry]) -> None:
        self.entries = [dataclasses.replace(e, own=False) for e in visible]
        self.env: dict[str, Any] = dict(outer.env) if outer is not None else {}
        self.body: list[Any] = []
        self.level: int = 0 if outer is None else outer.level + 1
        self.strict = outer is not None and outer.strict

    def add(self, entry: Entry) -> Entry:
        self.entries.append(entry)
        self.env[entry.name] = entry.value
        return entry

    def find(self, n: str) -> Entry:
        return next(e for e in self.entries if e.name == n)

    def behind(self, e: E) -> frozenset[str]:
        known = {x.name: x.behind for x in self.entries}
        return frozenset().union(*(known.get(n, frozenset({n})) for n in e.names()))


class Draw:
    """Draws one program."""

    def __init__(self, seed: int, attempt: int) -> None:
        self.rng = np.random.default_rng([seed, attempt])
        style = self.rng.random()
        self.double = style < 0.6
        floatX = "float64" if style < 0.85 else "float32"
        self.floats = ["float64"] if self.double else ["float32"] if floatX == "float32" else ["float32", "float64"]
        self.p = Program(seed, floatX, [], [], [], [], [], [], [], None, [], None, self.double)
        self.run = Run(self.p)
        self.counter = 0
        self.taken: set[str] = set()
        #: Updates of loops that move generators on: always passed on.
        self.moving: set[str] = set()
        self.sample: dict[str, Any] = {"rng0": np.random.RandomState(0)}
        self.grow = int(self.pick([0, 0, 1, 2]))
        self.n_values = [int(self.pick([0, 1, 2, 3, 4])), int(self.pick([0, 1, 2, 3, 5]))]

    # Numbers and names.

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def pick(self, items: Any) -> Any:
        return items[int(self.rng.integers(len(items)))]

    def fresh(self, prefix: str) -> str:
        self.counter += 1
        return f"{prefix}{self.counter}"

    def dtype(self) -> str:
        return self.pick([*self.floats * 4, *self.floats * 4, "int64", "int32", "int8"])

    def numbers(self, shape: Any, dtype: str) -> np.ndarray:
        if np.dtype(dtype).kind == "f":
            return np.round(self.rng.uniform(-1.5, 1.5, shape), int(self.pick([1, 3]))).astype(dtype)
        return self.rng.integers(-2, 5, shape).astype(dtype)

    def python_number(self) -> Any:
        singles = [0.5, 2.0, -1.0, 1.5, 1.1, 0.3, -0.7]
        return self.pick([1, 2, 3, -1, 100, 300, True, *singles, *singles])

    def new_input(self, scope: Scope, shape: tuple[int, ...], dtype: str, long: bool = False) -> Entry:
        n = self.fresh("x")
        values = [self.numbers((shape[0] + g, *shape[1:]) if long else shape, dtype) for g in (0, self.grow)]
        self.p.inputs.append((n, values))
        return scope.add(Entry(n, values[0], own=not long))

    def new_shared(self, shape: tuple[int, ...], dtype: str) -> str:
        # Its pattern of broadcastable axes does not come from its value.
        if {0, 1} & set(shape):
            raise Unfit
        n = self.fresh("s")
        value = self.numbers(shape, dtype)
        self.p.shared.append((n, value))
        self.sample[n] = value
        return n

    # Expressions.

    def value(self, scope: Scope, e: E) -> np.ndarray:
        return self.run.value(e, scope.env, self.sample)

    def leaf(self, scope: Scope) -> E:
        if self.chance(0.12):
            return self.fixed()
        rows = [x for x in scope.entries if x.least is not None]
        if rows and self.chance(0.3):
            return self.over_time(self.pick(rows))
        plain = [x for x in scope.entries if x.least is None and x.value.ndim <= 2 and x.value.size < 28 and not self.is_long(x)]
        weighted = plain + [x for x in plain if x.own] * 3 + plain[-2:] * 3
        shared = [n for n, v in self.p.shared if not {0, 1} & set(v.shape)]
        if shared and not scope.strict and self.chance(0.15):
            return name(self.pick(shared))
        return name(self.pick(weighted).name) if weighted else self.fixed()

    def is_long(self, x: Entry) -> bool:
        return any(n == x.name and len({v.shape for v in values}) + (not x.own) > 1 and x.value.ndim > 0 for n, values in self.p.inputs)

    def fixed(self) -> E:
        word = self.pick(["zeros", "ones", "arange", "eye", "constant", "array", "array"])
        if word == "array":
            dtype = self.dtype()
            a = self.numbers(self.pick([(3,), (2,), (2, 3)]), dtype)
            return E("array", (), (a.tolist(), dtype))
        return E(word, (), (self.pick([(3,), (2, 3)]) if word in ("zeros", "ones") else 3 if word != "constant" else self.python_number(),))

    def over_time(self, x: Entry) -> E:
        """What is known of the rows of a loop, whatever their number."""
        e = name(x.name)
        if x.value.ndim == 0:
            return e
        words = ["sum", "sum", "length", "any"]
        if x.least:
            words += ["last", "last", "first", "last", "max" if x.value.dtype != bool else "any"]
        word = self.pick(words)
        if word in ("last", "first"):
            return E("at", (e,), ("-1" if word == "last" else "0",))
        return E(word, (e,)) if word == "length" else E(word, (e,), (0, False))

    def tree(self, scope: Scope, depth: int) -> E:
        if depth == 0 or self.chance(0.15):
            return self.leaf(scope)
        for _ in range(12):
            made = self.attempt(scope, self.pick(DRAWN), depth)
            try:
                v = self.value(scope, made)
            except (Unfit, ValueError, IndexError, TypeError):
                continue
            if v.ndim <= 2 and v.size < 28 and (v.dtype.kind != "f" or np.all(np.abs(v) < 1e4)) and (self.no_single(v)):
                return made
        return self.leaf(scope)

    def no_single(self, v: np.ndarray) -> bool:
        return not self.double or v.dtype != np.float32

    def attempt(self, scope: Scope, word: str, depth: int) -> E:
        w = WORDS[word]
        args = [self.tree(scope, depth - 1) for _ in range(w.operands)]
        made = getattr(self, f"make_{word}", None)
        if made is not None:
            return made(scope, args)
        if w.operands == 2 and w.written[0].startswith("("):
            return self.binary(scope, word, args)
        first = self.value(scope, args[0])
        if word.endswith("_at"):
            return E(word, tuple(args), (self.pick(KEYS.get(first.ndim, ["0"])),))
        if word.endswith("_symbolic"):
            key = self.pick(SYMBOLIC_KEYS.get(first.ndim, ["i"]))
            return E(word, (*args[:-1], self.index(scope, first)), (key,))
        if word in ("sum", "prod", "max", "min", "mean", "var", "any", "all", "argmax"):
            return E(word, tuple(args), (self.pick([None, 0, -1, 1]), word != "argmax" and self.chance(0.15) and first.ndim == 2))
        return E(word, tuple(args))

    def binary(self, scope: Scope, word: str, args: list[E]) -> E:
        """With a Python number on one side now and then."""
        if word in ("and", "or", "xor") and self.chance(0.6):
            return E(word, (self.condition(scope, args[0], None), self.condition(scope, args[1], None)))
        if word in ("truediv", "floordiv", "mod"):
            divisor = number(self.pick([2, 3, 5, 2.0, 1.5]))
            if word == "truediv" and self.chance(0.4):
                divisor = E("add", (E("sqr", (args[1],)), number(1.5)))
            return E(word, (args[0], divisor))
        if word == "pow":
            positive = E("add", (E("sqr", (args[0],)), number(0.5)))
            return E(word, (args[0], number(self.pick([2, 3, 2.0, 2])))) if self.chance(0.6) else E(word, (positive, number(1.5)))
        if self.chance(0.35):
            x = number(int(self.pick([1, 2, 3, 7])) if word in ("and", "or", "xor") else self.python_number())
            return E(word, (x, args[0]) if self.chance(0.25) else (args[0], x))
        return E(word, tuple(args))

    def index(self, scope: Scope, x: np.ndarray) -> E:
        """An integer in the range of the first axes of x."""
        least = min(x.shape, default=1)
        whole = [e for e in scope.entries if e.least is None and e.value.dtype.kind == "i" and e.value.ndim < 2 and not self.is_long(e)]
        scalar = [e for e in whole if e.value.ndim == 0]
        start = self.pick(scalar * 3 + whole).name if whole else None
        return E("mod", (name(start), number(least))) if start is not None else E("constant", (), (int(self.rng.integers(least)),))

    def square(self, e: E) -> E:
        """e², in floats: integers would wrap."""
        return E("sqr", (E("mul", (e, number(1.0))),))

    def make_exp(self, scope: Scope, args: list[E]) -> E:
        return E("exp", (E("tanh", tuple(args)) if self.chance(0.5) else E("neg", (self.square(args[0]),)),))

    def make_log(self, scope: Scope, args: list[E]) -> E:
        return E("log", (E("add", (self.square(args[0]), number(self.pick([1, 0.5])))),))

    def make_log1p(self, scope: Scope, args: list[E]) -> E:
        return E("log1p", (self.square(args[0]),))

    def make_sqrt(self, scope: Scope, args: list[E]) -> E:
        return E("sqrt", (E("add", (self.square(args[0]), number(0.5))),))

    def make_inv(self, scope: Scope, args: list[E]) -> E:
        return E("inv", (E("add", (self.square(args[0]), number(1.5))),))

    def make_cast(self, scope: Scope, args: list[E]) -> E:
        dtype = self.pick([*self.floats, "int64", "int32", "int8", "bool", "floatX"])
        bounded = E("clip", tuple(args), (-9, 9)) if dtype.startswith("int") else args[0]
        return E("cast", (bounded,), (dtype,))

    def make_clip(self, scope: Scope, args: list[E]) -> E:
        return E("clip", tuple(args), self.pick([(-1, 1), (-0.5, 0.5), (0, 2), (-0.25, 1)]))

    def make_switch(self, scope: Scope, args: list[E]) -> E:
        condition = self.condition(scope, args[0], None)
        return E("switch", (condition, args[1], number(self.pick([0, 1.0, -1])) if self.chance(0.2) else args[2]))

    def make_ifelse(self, scope: Scope, args: list[E]) -> E:
        v = self.value(scope, args[1])
        return E("ifelse", (self.condition(scope, args[0], ()), args[1], self.fit(scope, args[2], v.dtype.name, v.shape)))

    def condition(self, scope: Scope, e: E, shape: Any) -> E:
        if shape == ():
            e = self.fit(scope, e, self.value(scope, e).dtype.name, ())
        v = self.value(scope, e)
        # A number stands for whether it is not 0.
        if v.dtype == bool or self.chance(0.15):
            return e
        return E(self.pick(["lt", "le", "gt", "ge", "gt"]), (e, number(self.pick([0, 1, 0.5, -0.5, 0.0]))))

    def make_at(self, scope: Scope, args: list[E]) -> E:
        return E("at", tuple(args), (self.pick(KEYS.get(self.value(scope, args[0]).ndim, ["0"])),))

    def make_at_symbolic(self, scope: Scope, args: list[E]) -> E:
        v = self.value(scope, args[0])
        return E("at_symbolic", (args[0], self.index(scope, v)), (self.pick(SYMBOLIC_KEYS.get(v.ndim, ["i"])),))

    def make_take(self, scope: Scope, args: list[E]) -> E:
        return E("take", (args[0], self.index(scope, self.value(scope, args[0]))))

    def make_masked(self, scope: Scope, args: list[E]) -> E:
        return E("masked", tuple(args), (self.pick([0, 0.5]),))

    def make_cumsum(self, scope: Scope, args: list[E]) -> E:
        return E("cumsum", tuple(args), (0,))

    def make_alloc(self, scope: Scope, args: list[E]) -> E:
        return E("alloc", tuple(args), (self.pick([(3,), (2, 3)]),))

    def fit(self, scope: Scope, e: E, dtype: str, shape: tuple[int, ...]) -> E:
        """e with this dtype and shape."""
        e = self.shaped(scope, e, shape)
        v = self.value(scope, e)
        if v.dtype.name == dtype:
            return e
        if dtype == "bool":
            return E("gt", (e, number(0)))
        if v.dtype.kind == "f" and dtype.startswith("int"):
            e = E("clip", (E("mul", (e, number(3))),), (-9, 9))
        return E("cast", (e,), (dtype,))

    def shaped(self, scope: Scope, e: E, shape: tuple[int, ...]) -> E:
        v = self.value(scope, e)
        if v.shape == shape:
            return e
        if len(shape) == 2 and shape[0] == 1:
            return E("row", (self.shaped(scope, e, shape[1:]),))
        if v.shape[:1] == (1,) and v.ndim == 2:
            e = E("unrow", (e,))
            v = self.value(scope, e)
        if v.ndim > len(shape):
            e = E("sum", (e,), (self.pick([0, -1]) if shape else None, False))
            return self.shaped(scope, e, shape)
        if v.ndim and v.shape != shape[len(shape) - v.ndim :]:
            return self.shaped(scope, E("sum", (e,), (None, False)), shape)
        return E("alloc", (e,), (shape,)) if v.shape != shape else e

    def tame(self, scope: Scope, e: E, dtype: str, shape: tuple[int, ...]) -> E:
        """e with this dtype and shape, and bounded."""
        e = self.fit(scope, e, dtype, shape)
        if np.dtype(dtype).kind == "f":
            return E("tanh", (e,)) if self.chance(0.8) else E("clip", (e,), (-2, 2))
        if dtype != "bool" and self.chance(0.6):
            return self.fit(scope, E("mod", (e, number(7))), dtype, shape)
        return e

    # Statements.

    def fill(self, scope: Scope, n: int, draws: bool = True) -> None:
        """Adds n statements."""
        for _ in range(n):
            kind = self.pick(["let"] * 6 + ["loop"] * (3 if scope.level < 3 else 0) + ["draw"] * draws + ["clone", "gradient"])
            try:
                getattr(self, f"add_{kind}")(scope)
            except (Unfit, IndexError, ValueError, StopIteration):
                continue

    def add_let(self, scope: Scope) -> None:
        e = self.tree(scope, int(self.pick([1, 2, 2, 3])))
        if e.word in ("name", "array", *MADE):
            return
        n = self.fresh("v")
        scope.body.append(Let(n, e))
        scope.add(Entry(n, self.value(scope, e), scope.behind(e)))

    def add_draw(self, scope: Scope) -> None:
        if scope.strict:
            return
        dist = self.pick(["uniform", "normal", "binomial", "random_integers", "permutation"])
        size = self.pick([(), (3,), (2, 3)])
        parameters = {
            "uniform": [(0.0, 1.0), (-1.0, 0.5), (-1, 1)],
            "normal": [(0.0, 1.0), (0.5, 0.1)],
            "binomial": [(1, 0.5), (4, 0.3)],
            "random_integers": [(0, 3), (-2, 2)],
            "permutation": [(3,)],
        }[dist]
        s = RandomDraw(self.fresh("r"), dist, () if dist == "permutation" else size, self.pick(parameters))
        _, value = self.run.draw(s, self.sample)
        if not self.no_single(value):
            return
        scope.body.append(s)
        scope.add(Entry(s.name, value, frozenset({"rng"}), own=False))

    def add_clone(self, scope: Scope) -> None:
        targets = [s for s in scope.body if isinstance(s, Let)]
        target = self.pick(targets).name
        reached = self.reaches(scope, target)
        olds = [x for x in scope.entries if x.name in reached and x.own and x.least is None and not self.is_long(x)]
        # In what the step captures, a clone replaces the shared variable, too: the reference does not compute that again.
        captured = [x for x in scope.entries if scope.level and x.name in reached and not x.own]
        shared = [n for n, _ in self.p.shared if n in reached and not any(n in x.behind for x in captured)]
        old = self.pick([x.name for x in olds] + shared * 3)
        value = self.value(scope, name(old))
        new = self.tame(scope, self.tree(scope, 2), value.dtype.name, value.shape)
        if scope.behind(new) & {"rng"}:
            return
        n = self.fresh("c")
        scope.body.append(Clone(n, target, old, new))
        scope.add(Entry(n, scope.find(target).value, scope.behind(new) | scope.find(target).behind, own=False))

    def reaches(self, scope: Scope, target: str) -> set[str]:
        """Everything that a variable of these statements is computed from, by expressions and loops."""
        made = {s.name: s.value.names() for s in scope.body if isinstance(s, Let)}
        made |= {n: used_names(s) for s in scope.body if isinstance(s, Loop) for n in s.names}
        found, stack = set(), [target]
        while stack:
            n = stack.pop()
            if n not in found:
                found.add(n)
                stack += made.get(n, [])
        return found - {target}

    def add_gradient(self, scope: Scope) -> None:
        if not self.double or scope.level > 2:
            return
        wrt = self.smooth(scope, 3)
        if not wrt:
            return
        chosen = sorted({self.pick(wrt).name for _ in range(2)})
        cost = self.fit(scope, self.tree(scope, 2), "float64", ())
        if not cost.names() & {x.name for x in scope.entries if x.own}:
            return
        names = [self.fresh("g") for _ in chosen]
        scope.body.append(Gradient(names, cost, chosen))
        for n, w in zip(names, chosen, strict=True):
            behind = scope.behind(cost) | {"gradient"}
            scope.add(Entry(n, np.full(scope.find(w).value.shape, 0.3), behind, own=False))

    def smooth(self, scope: Scope, size: int) -> list[Entry]:
        """Variables of these statements that derivatives may be taken with respect to."""
        special = any(isinstance(s, (Clone, Gradient)) for s in scope.body)
        made = {s.name for s in statements(scope.body) if isinstance(s, Let)}
        return [
            x
            for x in scope.entries
            if x.own and x.value.dtype == np.float64 and x.value.size <= size and x.least is None
            and not (special and x.name in made)
        ]  # fmt: skip

    # Loops.

    def add_loop(self, scope: Scope) -> None:
        saved = (self.counter, set(self.taken), len(self.p.inputs), len(self.p.shared), len(scope.entries), set(self.moving))
        try:
            LoopDraw(self, scope).draw()
        except (Unfit, IndexError, ValueError):
            _, self.taken, inputs, shared, entries, self.moving = saved
            for n in [x.name for x in scope.entries[entries:]]:
                scope.env.pop(n, None)
            del self.p.inputs[inputs:], self.p.shared[shared:], scope.entries[entries:]

    # The whole program.

    def program(self) -> Program:
        p, scope = self.p, Scope(None, [])
        scope.env["n"] = np.asarray(self.n_values[0], "int32")
        for _ in range(self.rng.integers(1, 4)):
            self.new_input(scope, self.pick(SHAPES), self.dtype())
        for _ in range(self.rng.integers(0, 3)):
            self.new_shared(self.pick(SHAPES[:-1]), self.dtype())
        self.fill(scope, int(self.rng.integers(0, 3)))
        for _ in range(self.rng.integers(1, 3)):
            self.add_loop(scope)
            self.fill(scope, int(self.rng.integers(0, 3)))
        if not any(isinstance(s, Loop) for s in scope.body):
            raise Unfit
        p.body = scope.body
        if any(isinstance(s, Loop) and s.n_steps == name("n") for s in statements(p.body)):
            p.inputs.append(("n", [np.asarray(v, "int32") for v in self.n_values]))
        for k, s in enumerate(s for s in statements(p.body) if isinstance(s, RandomDraw)):
            s.stream = k
        self.finish(scope)
        return p

    def finish(self, scope: Scope) -> None:
        p = self.p
        results = [n for s in scope.body if isinstance(s, Loop) for n in s.names]
        p.outputs = [name(n) for n in results]
        p.outputs += [name(s.name) for s in scope.body if isinstance(s, (Let, Clone, RandomDraw)) and self.chance(0.5)]
        p.outputs += [name(n) for s in scope.body if isinstance(s, Gradient) for n in s.names]
        if self.chance(0.5):
            p.outputs.append(self.tree(scope, 2))
        p.outputs = [e for e in p.outputs if e.word != "python"]
        self.rng.shuffle(p.outputs)  # type: ignore[arg-type]
        p.outputs = p.outputs[:8] or [E("constant", (), (1,))]
        p.passed_on = [s.updates for s in scope.body if isinstance(s, Loop) and (s.updates in self.moving or self.chance(0.9))]
        for n, value in p.shared:
            if n not in self.taken and self.chance(0.3):
                p.own_updates.append((n, self.fit(scope, self.tree(scope, 2), value.dtype.name, value.shape)))
        self.give(scope)
        p.mode = self.pick([None, None, None, "FAST_COMPILE", "FAST_RUN"])
        moves = any(isinstance(s, RandomDraw) for s in scope.body)
        p.default_updates = not moves or self.chance(0.8)
        if self.chance(0.75):
            self.cost(scope)

    def give(self, scope: Scope) -> None:
        """An input or a shared variable that the function gets from an expression of other inputs."""
        if len(p := self.p.inputs) < 2 or not self.chance(0.25):
            return
        free = [x for x in scope.entries if any(n == x.name for n, _ in p) and not self.is_long(x) and x.value.ndim < 2]
        shared = [Entry(n, v) for n, v in self.p.shared if n not in self.taken and not any(n == k for k, _ in self.p.own_updates)]
        target = self.pick(free + shared)
        others = Scope(None, [x for x in free if x.name != target.name])
        others.env, others.strict = {x.name: x.value for x in others.entries}, True
        if not others.entries:
            return
        e = self.tame(others, self.tree(others, 2), target.value.dtype.name, target.value.shape)
        self.p.givens.append((target.name, e))

    def cost(self, scope: Scope) -> None:
        """A scalar of everything, and variables to differentiate it by."""
        p = self.p
        terms = []
        for x in [x for x in scope.entries if x.value.dtype.kind == "f" and not any(n == x.name for n, _ in p.inputs)][-6:]:
            e = name(x.name)
            summed = E("sum", (E("sqr", (e,)) if self.chance(0.4) else e,), (None, False)) if x.value.ndim else e
            terms.append(summed)
        if not terms:
            return
        total = terms[0]
        for e in terms[1:]:
            total = E("add", (total, E("mul", (e, number(self.pick([0.5, 2.0, -1.5]))))))
        inputs = {n for n, _ in p.inputs}
        wrt = [x.name for x in self.smooth(scope, 100)]
        if not self.double:
            wrt = [x.name for x in scope.entries if x.name in inputs and x.value.dtype.kind == "f"]
        wrt += [x.name for x in scope.entries if x.name in inputs and x.value.dtype.kind == "f"]
        wrt += [n for n, v in p.shared if v.dtype.kind == "f"]
        given = {n for n, _ in p.givens}
        p.wrt = sorted({w for w in wrt if w not in given})[:6]
        p.cost = self.fit(scope, total, "float64" if self.double else self.value(scope, total).dtype.name, ()) if p.wrt else None


class LoopDraw:
    """Draws one loop in a scope."""

    def __init__(self, draw: Draw, scope: Scope) -> None:
        self.d, self.scope = draw, scope
        self.kind = draw.pick(["scan"] * 8 + ["map", "reduce", "foldl", "foldr"])
        self.inner: Scope
        #: At least how many steps there are, and how many rows sequences must serve.
        self.wanted = 0
        self.least: int | None = None
        self.backwards = False
        self.id = 0

    def draw(self) -> None:
        d = self.d
        d.counter += 1
        self.id = d.counter
        strict = self.kind == "scan" and d.chance(0.15)
        n_steps = self.steps()
        self.backwards = self.kind != "foldl" and (self.kind == "foldr" or (self.kind in ("scan", "map", "reduce") and d.chance(0.3)))
        lowest = 1 if n_steps is None else 0
        sequences = [self.sequence(n_steps) for _ in range(d.rng.integers(lowest, 4))]
        folds = self.kind in ("reduce", "foldl", "foldr")
        if self.least is None or (folds and self.least < 1) or self.one_step_ahead(n_steps, sequences):
            raise Unfit
        states = [] if self.kind == "map" else [self.state() for _ in range(d.rng.integers(folds, 4))]
        passed = self.passed()
        visible = [x for x in self.scope.entries if "rng" not in x.behind]
        if strict:
            visible = []
        self.inner = Scope(self.scope, visible)
        self.inner.strict = self.inner.strict or strict
        self.non_sequences = passed
        self.parameters(sequences, states, passed)
        d.fill(self.inner, int(d.pick([0, 1, 2, 3, 4])), draws=not self.inner.strict)
        infos: list[Slot | None] = list(states) + [None] * int(d.rng.integers(0 if states else 1, 1 if folds else 3))
        d.rng.shuffle(infos)  # type: ignore[arg-type]
        own, passed_on = self.updates()
        if own and not states and d.chance(0.2):
            infos = []
        outputs = [self.output(x) for x in infos]
        until = self.until() if self.kind == "scan" and d.chance(0.2) else None
        self.check_updates(own, passed_on, [*outputs, *([] if until is None else [until])])
        truncate = int(d.pick([1, 2, 3])) if self.kind in ("scan", "map") and d.chance(0.12) else -1
        s = Loop(self.kind, self.id, sequences, infos, passed, n_steps, self.inner.body, outputs, own, passed_on, until,
                 [d.fresh("y") for _ in infos], f"up{self.id}", self.backwards, truncate, strict,
                 self.kind == "scan" and d.chance(0.1), int(d.rng.integers(1000)))  # fmt: skip
        self.bind(s)

    # Arguments.

    def steps(self) -> E | None:
        d, nested = self.d, self.scope.level > 0
        kinds = ["rows"] * 3 + ["number"] * 3 + ["symbolic"] * 2 if self.kind == "scan" else ["rows"]
        kind = d.pick(kinds)
        if kind == "rows":
            self.wanted = int(d.pick([1, 2, 3]) if nested else d.pick([0, 1, 2, 3, 4, 5]))
            return None
        if kind == "number":
            self.wanted = self.least = int(d.pick([0, 1, 2, 2, 3]) if nested else d.pick([0, 1, 1, 2, 3, 4, 5]))
            return E(d.pick(["python", "python", "constant"]), (), (self.wanted,))
        self.wanted, self.least = max(d.n_values), min(d.n_values)
        return name("n")

    def one_step_ahead(self, n_steps: E | None, sequences: list[Slot]) -> bool:
        """One step by a constant, of sequences with positive taps: Theano makes no loop of it, in a way of its own."""
        return n_steps is not None and n_steps.word != "name" and self.wanted == 1 and any(max(q.listed(0)) > 0 for q in sequences)

    def sequence(self, n_steps: E | None) -> Slot:
        d, scope = self.d, self.scope
        taps = None if self.kind != "scan" and d.chance(0.7) else d.pick(SEQUENCE_TAPS)
        listed = taps or [0]
        span = max(0, *listed, 0) - min(0, *listed, 0)
        kinds = ["rows", "fixed", "entry", "entry"] if scope.level or scope.strict else ["input"] * 5 + ["rows", "fixed", "entry", "shared"]
        kind = d.pick(kinds)
        extra = int(d.pick([0, 0, 1, 3]))
        dtype = d.dtype()
        shape = (self.wanted + span + extra, *d.pick([(), (), (3,), (2,), (3, 3)]))
        if kind == "input":
            x = d.new_input(scope, shape, dtype, long=True)
            value, rows = name(x.name), shape[0]
        elif kind == "shared":
            value, rows = name(d.new_shared(shape, dtype)), shape[0]
        elif kind == "fixed":
            bare = E("arange", (), (shape[0],)) if d.chance(0.5) else None
            value, rows = bare or E("array", (), (d.numbers(shape[:2], dtype).tolist(), dtype)), shape[0]
            if not shape[0]:
                raise Unfit
        else:
            wanted = [x for x in scope.entries if x.value.ndim and ((x.least is not None) == (kind == "rows"))]
            wanted = [x for x in wanted if x.value.shape[0] != 1 or kind == "rows"]
            x = d.pick(wanted)
            value, rows = name(x.name), x.value.shape[0] if x.least is None else x.least
        usable = max(0, rows - span)
        if n_steps is not None and usable < self.wanted:
            raise Unfit
        if n_steps is None:
            self.least = usable if self.least is None else min(self.least, usable)
        return Slot(value, taps, [d.fresh("a") for _ in listed])

    def state(self) -> Slot:
        d, scope = self.d, self.scope
        taps = None if self.kind != "scan" else d.pick(STATE_TAPS)
        listed = taps or [-1]
        dtype, shape = d.dtype(), d.pick(SHAPES)
        kind = d.pick(["input", "array", "entry", "entry", "zeros", "python", "shared"])
        params = [d.fresh("h") for _ in listed]
        if listed != [-1]:
            rows = (-min(listed) + int(d.pick([0, 0, 1])), *(shape if len(shape) < 2 else (3,)))
            if kind == "input" and scope.level == 0:
                return Slot(name(d.new_input(scope, rows, dtype).name), taps, params)
            if kind == "entry":
                plain = [x for x in scope.entries if x.least is None and x.value.ndim and not d.is_long(x)]
                fitting = [x for x in plain if x.value.shape[0] >= -min(listed)]
                return Slot(name(d.pick(fitting).name), taps, params)
            return Slot(E("array", (), (d.numbers(rows, dtype).tolist(), dtype)), taps, params)
        if kind == "python":
            return Slot(E("python", (), (d.pick([0, 1, 0.5 if not d.double else 0, 3]),)), taps, params)
        if kind == "input" and scope.level == 0:
            return Slot(name(d.new_input(scope, shape, dtype).name), taps, params)
        if kind == "array" and 1 not in shape:
            return Slot(E("array", (), (d.numbers(shape, dtype).tolist(), dtype)), taps, params)
        if kind == "shared" and not scope.level and 1 not in shape:
            return Slot(name(d.new_shared(shape, dtype)), taps, params)
        if kind == "zeros":
            return Slot(E("zeros", (), (d.pick([(3,), (2, 3)]),)), taps, params)
        e = d.tree(scope, 1)
        if d.value(scope, e).dtype == bool:
            raise Unfit
        return Slot(e, taps, params)

    def passed(self) -> list[tuple[str, E]]:
        """non_sequences: variables, expressions, shared variables and expressions of these, numbers, arrays."""
        d, found = self.d, []
        for _ in range(d.pick([0, 0, 1, 2, 3])):
            kind = d.pick(["tree", "tree", "leaf", "shared", "of shared", "python"])
            if kind in ("shared", "of shared") and d.p.shared and not self.scope.strict:
                e = name(d.pick(d.p.shared)[0])
                e = E("mul", (e, number(2))) if kind == "of shared" else e
            elif kind == "python":
                e = E("python", (), (d.pick([2, 0.5, -1]),))
            else:
                e = d.tree(self.scope, 1 if kind == "tree" else 0)
            if "rng" in self.scope.behind(e):
                continue
            found.append((d.fresh("w"), e))
        return found

    def parameters(self, sequences: list[Slot], states: list[Slot], passed: list[tuple[str, E]]) -> None:
        """What the step sees, with values that it may have."""
        d, inner = self.d, self.inner
        for q in sequences:
            x = d.value(self.scope, q.value)
            row = x[0] if len(x) else np.zeros(x.shape[1:], x.dtype)
            for k in q.params:
                inner.add(Entry(k, np.asarray(row)))
        for q in states:
            past = d.run.initial(q, self.scope.env, d.sample)
            for k, tap in zip(q.params, q.listed(-1), strict=True):
                inner.add(Entry(k, np.asarray(past[tap])))
        for k, e in passed:
            is_shared = e.word == "name" and e.given[0] in d.sample
            inner.add(Entry(k, d.value(self.scope, e), self.scope.behind(e), own=False))
            if is_shared:
                inner.env[k] = e.given[0]

    # Results of the step.

    def output(self, info: Slot | None) -> E:
        d, inner = self.d, self.inner
        if info is None:
            e = d.tree(inner, int(d.pick([1, 2])))
            if e.word == "name" and e.given[0] in d.sample and d.chance(0.5):
                return E("mul", (e, number(2)))
            return d.leaf(inner) if e.word == "python" else e
        before = inner.find(info.params[0]).value
        dtype, shape = before.dtype.name, before.shape
        if dtype.startswith("int") and d.chance(0.3):
            return d.fit(inner, E("add", (name(info.params[0]), number(int(d.pick([1, 2, 100]))))), dtype, shape)
        e = d.tree(inner, 2)
        if d.chance(0.7):
            mixed = E("add", (E("mul", (name(d.pick(info.params)), number(0.6))), d.fit(inner, e, dtype, shape)))
            e = mixed if dtype.startswith("float") else e
        return d.tame(inner, e, dtype, shape)

    def updates(self) -> tuple[list[tuple[str, E]], list[str]]:
        """Of shared variables on which nothing depends that the step captures."""
        d, own = self.d, []
        loops = [s for s in self.inner.body if isinstance(s, Loop)]
        passed_on = [s.updates for s in loops if s.updates in d.moving or d.chance(0.75)]
        # What is passed to this loop keeps its value; a loop inside captures it.
        passed = {k for k, _ in self.non_sequences}
        captured = [x for x in self.inner.entries if not x.own and x.name not in passed and not isinstance(self.inner.env.get(x.name), str)]
        behind = {n for x in captured for n in x.behind}
        fresh = any(isinstance(s, RandomDraw) for s in self.inner.body)
        for n, value in d.p.shared:
            if n in d.taken or n in behind or self.inner.strict or not d.chance(0.4):
                continue
            d.taken.add(n)
            step = E("add", (name(n), number(1))) if value.dtype.kind == "i" else d.tree(self.inner, 2)
            own.append((n, d.tame(self.inner, step, value.dtype.name, value.shape)))
        if fresh or any(s.updates in d.moving for s in loops):
            d.moving.add(f"up{self.id}")
        return own, passed_on

    def check_updates(self, own: list[tuple[str, E]], passed_on: list[str], outputs: list[E]) -> None:
        """Theano refuses updates that need an input from outside which neither was passed nor is needed for the outputs."""
        uses: dict[str, set[str]] = {}
        for s in self.inner.body:
            if isinstance(s, Loop):
                uses |= {n: used_names(s) for n in (*s.names, s.updates)}
            elif isinstance(s, Gradient):
                uses |= {n: {*s.wrt, *s.cost.names()} for n in s.names}
            elif isinstance(s, Clone):
                uses[s.name] = {s.target, s.old, *s.new.names()}
            elif isinstance(s, Let):
                uses[s.name] = s.value.names()
        passed = {k for k, _ in self.non_sequences}
        captured = {x.name for x in self.inner.entries if not x.own and x.name not in passed} | {"n"}

        def free(names: set[str]) -> set[str]:
            found, fresh = set(), names
            while fresh:
                found |= fresh
                fresh = set().union(*(uses.get(n, set()) for n in fresh)) - found
            return found & captured

        by_updates = set(passed_on).union(*(e.names() for _, e in own))
        if free(by_updates) - free(set().union(*(e.names() for e in outputs))):
            raise Unfit

    def until(self) -> E:
        d = self.d
        return d.condition(self.inner, d.tree(self.inner, 1), ())

    def bind(self, s: Loop) -> None:
        """Adds the loop and its results to the scope."""
        d, scope = self.d, self.scope
        d.run.loop(s, scope.env, d.sample)
        known = {x.name: x.behind for x in scope.entries} | {n: frozenset({n}) for n, _ in d.p.shared}
        behind = frozenset({"rng"} if s.updates in d.moving else ()).union(*(known.get(n, frozenset()) for n in used_names(s)))
        folds = s.kind in ("reduce", "foldl", "foldr")
        for n in s.names:
            value = scope.env[n]
            least = None if folds else min(self.least or 0, 1) if s.until is not None else self.least or 0
            literal = s.n_steps is not None and s.n_steps.word != "name" and s.until is None and (self.least or 0) >= 2
            if literal and value.ndim <= 2 and d.chance(0.5):
                least = None
            if not d.no_single(value):
                raise Unfit
            scope.entries.append(Entry(n, value, behind, own=False, least=least))
        scope.body.append(s)


def used_names(s: Loop) -> set[str]:
    """Every name in a loop."""
    found: set[str] = set()
    for loop in [x for x in statements([s]) if isinstance(x, Loop)]:
        slots = [q.value for q in (*loop.sequences, *loop.infos) if q is not None]
        found |= {n for e in (*slots, *loop.outputs, loop.until, loop.n_steps) if e is not None for n in e.names()}
        found |= {n for k, e in (*loop.non_sequences, *loop.own_updates) for n in (k, *e.names())}
    for x in statements([s]):
        if isinstance(x, Let):
            found |= x.value.names()
        elif isinstance(x, Clone):
            found |= {x.target, x.old, *x.new.names()}
        elif isinstance(x, Gradient):
            found |= {*x.wrt, *x.cost.names()}
    return found


@np.errstate(all="ignore")
def draw(seed: int) -> Program:
    """The program of a seed: the first attempt that Theano's rules allow."""
    for attempt in range(50):
        try:
            p = Draw(seed, attempt).program()
            reference = Reference(p)
            for call in range(2):
                reference.call(call)
            return p
        except (Unfit, ValueError, IndexError):
            continue
    raise RuntimeError(f"no program of seed {seed}")
