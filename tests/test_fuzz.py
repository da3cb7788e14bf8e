"""Wrong calls of the public API, by the thousand: each ends in a result or in an error that a user can read.

Arguments are drawn from a pool of values that fit and values that do not. Nothing may panic, crash, or report a fault of rscan
itself. RSCAN_FUZZ_CALLS and RSCAN_FUZZ_SEED set how many calls, and from which seed on.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import signal
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rscan as rs
from rscan.inputs import CONSTRUCTORS

CALLS = int(os.environ.get("RSCAN_FUZZ_CALLS", 10_000))
FIRST = int(os.environ.get("RSCAN_FUZZ_SEED", 0))
PARTS = 10

DTYPES = ["float64", "float64", "float32", "int64", "int8", "uint64", "bool", "complex128", "object", "U3", "datetime64[s]", "float16"]
OPERATORS = [
    "add", "rsub", "mul", "truediv", "floordiv", "mod", "pow", "rpow", "matmul", "rmatmul", "neg", "and", "or", "xor", "invert", "lt", "ge",
    "abs", "iter", "len", "bool", "contains", "float", "int", "index", "array", "hash", "repr",
]  # fmt: skip
#: What a wrong call may raise: rscan's own errors (but for InternalError) and what Python itself raises for such arguments.
ALLOWED = (rs.RscanError, TypeError, ValueError, IndexError, OverflowError, ZeroDivisionError, NotImplementedError)
#: Names that are no functions of values, or that work on files and processes.
MODULES = {"typing", "config", "errors", "linalg", "random", "special", "stats", "ode", "optim"}
FILES = {"save", "load", "save_params", "load_params"}
SKIPPED = MODULES | FILES | {"e", "pi", "inf", "nan", "newaxis", "DISCONNECTED", "RscanError"}
FUNCTIONS = [n for n in rs.__all__ if n not in SKIPPED and n not in CONSTRUCTORS and not n.endswith(("Error", "Warning"))]


class Late(Exception):
    """A call that takes long: it was stopped."""


class Odd:
    """An object that is nothing in particular."""


def leaves() -> list[rs.Variable]:
    """Inputs of many types."""
    known = [rs.tensor("float64", (3,), "k3"), rs.tensor("float32", (2, 3), "k23"), rs.tensor("int32", (0,), "k0")]
    return [
        rs.dscalar("a"), rs.dvector("v"), rs.dmatrix("m"), rs.tensor("float64", (None, 2, None), "t3"), rs.fvector("f"), rs.iscalar("i"),
        rs.lscalar("l"), rs.ivector("iv"), rs.tensor("bool", (None,), "b"), rs.tensor("uint8", (None, None), "u"), *known,
    ]  # fmt: skip


LEAVES = leaves()
SHARED = [rs.shared(np.ones(3), name="s3"), rs.shared(2, name="count"), rs.shared(np.zeros((2, 2), np.float32))]
STEPS: list[Callable[..., Any]] = [
    lambda *a: a[0] if a else 1.0,
    lambda *a: sum(a) if a else rs.dscalar(),
    lambda x: x * 2,
    lambda x, h: (x + h, rs.until(h > 3)),
    lambda h: rs.tanh(h),
    lambda *a: None,
    lambda *a: list(a),
    lambda *a: {SHARED[0]: SHARED[0] + 1},
    lambda *a: (a[0], {SHARED[1]: SHARED[1] + 1}) if a else {},
    lambda *a: rs.until(True),
    lambda *a: "text",
    lambda *a: {"h": 1.0, "y": a},
    lambda h: dict(h=h + 1),
    lambda x, h: dict(h=h + x, y=x),
    lambda: 1.0,
    lambda *a: rs.grad(rs.sum(a[0] ** 2), a[0]),
    lambda *a: rs.scan(lambda z: z, sequences=a[0])[0],
]


class Fuzz:
    """Draws calls."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.mostly_right = self.chance(0.6)

    def pick(self, items: Any) -> Any:
        return items[int(self.rng.integers(len(items)))]

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def number(self) -> Any:
        return self.pick([0, 1, -1, 2, 3, 7, -5, 2**62, -(2**63), 2**64, 0.0, 1.5, -2.5, float("nan"), float("inf"), True, False, 1 + 2j])

    def array(self) -> np.ndarray:
        shape = tuple(int(n) for n in self.rng.integers(0, 4, int(self.rng.integers(0, 4))))
        dtype = self.pick(DTYPES)
        return np.zeros(shape, dtype) if self.chance(0.5) else np.ones(shape).astype(dtype)

    def junk(self) -> Any:
        return self.pick([
            None, "text", "", "float64", "float65", b"bytes", Odd(), Odd, {}, {"a": 1}, set(), [], (), [None], [[1], [2, 3]],
            [1, "x"], ..., slice(None), slice(1, None, 0), slice("a"), np.newaxis, lambda: 0, (x for x in "ab"), range(3), range(0),
            iter([1]), np.float32(2), np.int8(3), object(), type, int, np.dtype("f4"), ["float64"], {1: 2, None: 3}, [np.ones(2), 3],
            np.array(None), float, print,
        ])  # fmt: skip

    def variable(self) -> Any:
        x = self.pick([*LEAVES, *LEAVES, *SHARED, rs.constant(2.0), rs.constant([[1, 2]]), rs.arange(4), rs.zeros((2, 2))])
        if self.chance(0.3):
            changes = [rs.tanh, rs.sum, lambda y: y * 2, lambda y: y + 1.5, lambda y: rs.expand_dims(y, 0), lambda y: y.astype("f4")]
            x = self.pick(changes)(x)
        return x

    def value(self) -> Any:
        kind = self.rng.random() * (0.9 if self.mostly_right else 1.0) - (0.2 if self.mostly_right else 0.0)
        if kind < 0.5:
            return self.variable()
        if kind < 0.65:
            return self.pick([0, 1, 2, -1, 1.5]) if self.mostly_right else self.number()
        if kind < 0.7:
            return self.array()
        if kind < 0.85:
            return [self.variable() if self.chance(0.6) else self.number() for _ in range(self.rng.integers(0, 4))]
        return self.junk()

    def index(self) -> Any:
        slices = [slice(None), slice(1, None), slice(None, None, -1), slice(2, 0, -2)]
        one = [0, -1, 5, *slices, None, ..., True, [0, 1], np.array([[0], [1]]), self.value()]
        return tuple(self.pick(one) for _ in range(self.rng.integers(0, 4))) if self.chance(0.5) else self.pick(one)

    def arguments(self, function: Any) -> tuple[list[Any], dict[str, Any]]:
        try:
            parameters = [p for p in inspect.signature(function).parameters.values() if p.name != "self"]
        except (TypeError, ValueError):
            return [self.value() for _ in range(self.rng.integers(0, 4))], {}
        plain = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        least = sum(p.default is p.empty for p in plain)
        most = len(plain) + (2 if any(p.kind is p.VAR_POSITIONAL for p in parameters) else 0)
        count = int(self.rng.integers(least, max(least, min(most, least + 2)) + 1)) if self.chance(0.9) else int(self.rng.integers(0, 5))
        rest = [p.name for p in parameters[count:] if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
        named = {name: self.value() for name in rest if self.chance(0.05 if self.mostly_right else 0.25)}
        if self.chance(0.03):
            named["no_such_argument"] = 1
        return [self.value() for _ in range(count)], named

    # Cases: each returns a call without arguments and a description.

    def by_name(self, module: Any, names: list[str]) -> Any:
        name = self.pick(names)
        function = getattr(module, name)
        if not callable(function):
            return name, lambda: None
        args, named = self.arguments(function)
        return f"{name}{show(args, named)}", lambda: function(*args, **named)

    def function_call(self) -> Any:
        return self.by_name(rs, FUNCTIONS if self.chance(0.95) else list(CONSTRUCTORS))

    def random_call(self) -> Any:
        module = self.pick([rs.random, rs.linalg, rs.special, rs.optim, rs.ode])
        return self.by_name(module, module.__all__)

    def method(self) -> Any:
        x = self.variable()
        names = [n for n in dir(type(x)) if not n.startswith("_")]
        names += [f"__{n}__" for n in OPERATORS]
        name = self.pick(names)
        found = getattr(type(x), name, None)
        if not callable(found):
            return f"{x}.{name}", lambda: getattr(x, name)
        args, named = self.arguments(getattr(x, name))
        return f"{x}.{name}{show(args, named)}", lambda: getattr(x, name)(*args, **named)

    def indexing(self) -> Any:
        x, i, y = self.variable(), self.index(), self.value()
        way = self.pick(["get", "get", "set", "add", "max", "inc"])
        if way == "get":
            return f"{x}[{i!r}]", lambda: x[i]
        return f"{x}.at[{i!r}].{way}({y!r})", lambda: getattr(x.at[i], way, x.at[i].set)(y)

    def sequence(self) -> Any:
        taps = self.pick([[0], [-1, 0], [], [1.5], "a", -2, [2**62], None, [0, 0]])
        return self.value() if self.chance(0.6) else {"input": self.value(), "taps": taps}

    def info(self) -> Any:
        taps = self.pick([[-1], [-2, -1], [0], [1], [], "x", None, [-(2**62)], [-1, -1]])
        rows = {"initial": self.value(), "taps": taps}
        return self.value() if self.chance(0.6) else self.pick([None, {}, rows, {"taps": taps}, {"junk": 1}])

    def many(self, draw: Callable[[], Any]) -> Any:
        return draw() if self.chance(0.4) else [draw() for _ in range(self.rng.integers(0, 3))]

    def scan(self) -> Any:
        fn = self.pick(STEPS) if self.chance(0.95) else self.junk()
        named: dict[str, Any] = {}
        if self.chance(0.7):
            named["sequences"] = self.many(self.sequence)
        if self.chance(0.6):
            named["outputs_info"] = self.many(self.info)
        if self.chance(0.3):
            named["non_sequences"] = self.many(self.value)
        if self.chance(0.6):
            named["n_steps"] = self.pick([3, 0, 1, LEAVES[5], LEAVES[6], self.value()])
        options = dict(truncate_gradient=2, go_backwards=True, strict=True, return_list=True, name="n", profile=False, mode=None)
        for name, right in options.items():
            if self.chance(0.1):
                named[name] = right if self.mostly_right else self.value()
        which = self.pick([rs.scan, rs.scan, rs.scan, rs.map, rs.reduce, rs.foldl, rs.foldr, rs.scan_checkpoints])
        if which not in (rs.scan, rs.scan_checkpoints):
            args, named = self.arguments(which)
            args = [fn, *args[1:]]
            return f"{which.__name__}{show(args, named)}", lambda: which(*args, **named)
        return f"{which.__name__}{show([fn], named)}", lambda: which(fn, **named)

    def loop(self) -> Any:
        fn = self.pick(STEPS)

        def structure() -> Any:
            x, y = self.value(), self.value()
            return self.pick([x, [x], {"x": x}, {"h": x}, {"x": x, "h": y}, {}])

        named: dict[str, Any] = {k: structure() for k in ("over", "init", "given") if self.chance(0.6)}
        for name in ("n_steps", "truncate", "window", "reverse", "strict", "name"):
            if self.chance(0.2):
                named[name] = self.pick([3, 1, 0, self.value()])
        return f"loop{show([fn], named)}", lambda: rs.loop(fn, **named)

    def gradient(self) -> Any:
        x = self.pick(LEAVES)
        squares = lambda: rs.sum(rs.scan(lambda a: a**2, x)[0])
        cost = self.pick([lambda: rs.sum(rs.tanh(x)), squares, squares, self.variable, self.value])
        function = self.pick([rs.grad, rs.jacobian, rs.hessian, rs.vjp, rs.jvp, rs.Lop, rs.Rop, rs.verify_grad, rs.value_and_grad])
        wrt = self.pick([x, [x], [x, x], self.value()])
        args, named = self.arguments(function)

        def call() -> Any:
            return function(cost(), wrt, *args[2:], **{k: v for k, v in named.items() if k not in ("cost", "wrt")})

        return f"{function.__name__}(cost, {wrt!r}, {show(args[2:], named)}", call

    def compile(self) -> Any:
        inputs, outputs = self.many(self.variable if self.chance(0.8) else self.value), self.many(self.value)
        named: dict[str, Any] = {"on_unused_input": "ignore"}
        for name in ("updates", "givens"):
            if self.chance(0.2):
                named[name] = self.pick([[(self.pick(SHARED), self.value())], {self.pick(SHARED): self.value()}, self.value()])
        for name in ("name", "mode", "allow_input_downcast", "profile", "on_unused_input"):
            if self.chance(0.1):
                named[name] = self.value()
        args = [self.value() for _ in range(self.rng.integers(0, 3))]
        return f"function({inputs!r}, {outputs!r}, {named!r})(*{args!r})", lambda: rs.function(inputs, outputs, **named)(*args)

    def compiled(self) -> Any:
        f = self.pick(functions())
        args = [self.value() if self.chance(0.5) else self.array() for _ in range(self.rng.integers(0, 4))]
        named = {self.pick(["v", "n", "m", "junk"]): self.value()} if self.chance(0.3) else {}
        return f"f{show(args, named)}", lambda: f(*args, **named)

    def call(self) -> Any:
        cases = [self.function_call] * 5 + [self.method] * 3 + [self.indexing] * 2 + [self.scan] * 4 + [self.loop] * 2
        cases += [self.gradient] * 2 + [self.compile] * 2 + [self.compiled] * 2 + [self.random_call] * 2
        return self.pick(cases)()


_functions: list[Any] = []


def functions() -> list[Any]:
    """Compiled functions to call wrongly."""
    if not _functions:
        v, n, m = rs.dvector("v"), rs.iscalar("n"), rs.dmatrix("m")
        powers, _ = rs.scan(lambda h, x: rs.tanh(h * x), outputs_info=rs.ones_like(v), non_sequences=v, n_steps=n)
        rows, _ = rs.scan(lambda a, h: a @ m + h, sequences=m, outputs_info=v)
        _functions.extend([
            rs.function([v, n], powers), rs.function([v, n], powers[-1]), rs.function([m, v], rows), rs.function([v, n], v[n]),
            rs.function([m, v], rs.grad(rs.sum(rows), [m, v])), rs.function([v], v[2:] + v[:-2]), rs.function([m], rs.linalg.inv(m)),
            rs.function([m, v], m * v), rs.compile(lambda v: rs.sum(v**2)), rs.value_and_grad(lambda v: rs.sum(rs.tanh(v))),
        ])  # fmt: skip
    return _functions


def show(args: list[Any], named: dict[str, Any]) -> str:
    text = ", ".join([*map(repr, args), *(f"{k}={v!r}" for k, v in named.items())])
    return f"({text})"


def evaluate(result: Any, fuzz: Fuzz) -> None:
    """Runs what a call built, with arrays that fit the inputs in dtype and rank, mostly."""
    found = result if isinstance(result, (list, tuple)) else [result]
    outputs = [x for x in found if isinstance(x, rs.Variable)]
    if outputs:
        extents = [3, 3, 3, 3, 3, 0, 1, 2] if fuzz.chance(0.5) else [3]
        values = [np.ones([fuzz.pick(extents) if n is None else n for n in x.static_shape], x.dtype) for x in LEAVES]
        rs.function(LEAVES, outputs, on_unused_input="ignore")(*values)


@contextlib.contextmanager
def limited(seconds: float) -> Any:
    """Interrupts what takes longer."""

    def stop(*_: Any) -> None:
        raise Late

    old = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def attempt(seed: int) -> tuple[str, str | None]:
    """What came of the call of a seed, and, where that may not be, the whole story."""
    fuzz = Fuzz(seed)
    text = "?"
    try:
        with limited(3), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            text, call = fuzz.call()
            result = call()
            if fuzz.mostly_right or fuzz.chance(0.3):
                evaluate(result, fuzz)
        return "result", None
    except Late:
        return "late", None
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        internal = isinstance(error, rs.errors.InternalError)
        fault = internal or not isinstance(error, ALLOWED)
        story = f"seed {seed}: {text[:400]}\n{''.join(traceback.format_exception(error))[-1500:]}" if fault else None
        return type(error).__name__, story


@pytest.mark.parametrize("part", range(PARTS))
def test_wrong_calls_end_in_a_result_or_a_readable_error(part: int) -> None:
    outcomes: Counter[str] = Counter()
    stories = []
    for seed in range(FIRST + part, FIRST + CALLS, PARTS):
        outcome, story = attempt(seed)
        outcomes[outcome] += 1
        stories += [story] if story else []
    print(dict(outcomes))
    assert not stories, f"{len(stories)} faults\n\n" + "\n\n".join(stories[:10])
    assert outcomes["late"] <= CALLS / PARTS / 100, outcomes
    assert sum(outcomes[name] for name in ("result",)) >= CALLS / PARTS / 20, outcomes
