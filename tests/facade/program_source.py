"""Random programs as Python, in the way in which programs for Theano are written."""

from __future__ import annotations

from typing import Any

import numpy as np
from facade.reference import Clone, E, Gradient, Let, Loop, Program, RandomDraw, Slot, statements
from facade.words import WORDS

HEAD = """\
from collections import OrderedDict
import numpy as np
import rscan.theano as theano
import rscan.theano.tensor as T
from rscan.theano.ifelse import ifelse
from rscan.theano.tensor.shared_randomstreams import RandomStreams
"""
RANKS = ["scalar", "vector", "matrix", "tensor3", "tensor4"]
LETTERS = {"int8": "b", "int16": "w", "int32": "i", "int64": "l", "float32": "f", "float64": "d"}


class Writer:
    """Writes one program."""

    def __init__(self, program: Program) -> None:
        self.p = program
        self.rng = np.random.default_rng(program.seed)
        self.lines: list[str] = []

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    # Expressions.

    def e(self, e: E, operand: bool = True) -> str:
        """An expression. operand: False where Theano makes a variable of what is given."""
        if e.word == "name":
            return str(e.given[0])
        if e.word == "number":
            return repr(e.given[0]) if e.given[0] is True or e.given[0] >= 0 else f"({e.given[0]!r})"
        if e.word == "array":
            code = f"np.array({e.given[0]}, {e.given[1]!r})"
            return f"T.constant({code})" if operand else code
        word = WORDS[e.word]
        template = word.written[int(self.rng.integers(len(word.written)))]
        args = [self.e(a) for a in e.args]
        given = dict(zip("pq", e.given, strict=False))
        if e.word.endswith("_symbolic"):
            k = len(args) - 1
            return template.replace(f"{{i:{k}}}", e.given[0].replace("i", args[k])).format(*args)
        return template.format(*args, **given)

    # Statements.

    def body(self, statements: list[Any], depth: int) -> None:
        for s in statements:
            if isinstance(s, Let):
                self.line(depth, f"{s.name} = {self.e(s.value)}")
            elif isinstance(s, RandomDraw):
                size = "" if s.dist == "permutation" else f"{s.size!r}, "
                words = f"n={s.parameters[0]}" if s.dist == "permutation" else ", ".join(map(repr, s.parameters))
                self.line(depth, f"{s.name} = srng.{s.dist}({size}{words})")
            elif isinstance(s, Clone):
                self.line(depth, f"{s.name} = theano.clone({s.target}, replace={{{s.old}: {self.e(s.new)}}})")
            elif isinstance(s, Gradient):
                wrt = ", ".join(s.wrt)
                self.line(depth, f"{', '.join(s.names)}, = T.grad({self.e(s.cost)}, [{wrt}], disconnected_inputs='ignore')")
            else:
                self.loop(s, depth)

    def slot(self, s: Slot | None, key: str, style: int) -> str:
        if s is None:
            return ["None", "None", "{}", "dict(initial=None)"][style % 4]
        value = self.e(s.value, operand=False)
        if s.taps is None:
            return f"dict({key}={value})" if style % 5 == 0 else value
        taps = s.taps[0] if len(s.taps) == 1 and style % 2 else s.taps
        return f"dict({key}={value}, taps={taps})"

    def listed(self, items: list[str], style: int) -> str:
        """One item is given bare now and then."""
        if len(items) == 1 and style % 3 == 0:
            return items[0]
        return f"({', '.join(items)},)" if style % 7 == 0 and items else f"[{', '.join(items)}]"

    def loop(self, s: Loop, depth: int) -> None:
        params = [p for q in (*s.sequences, *s.infos) if q is not None for p in q.params]
        params += [p for p, _ in s.non_sequences]
        self.line(depth, f"def step{s.id}({', '.join(params)}):")
        self.body(s.body, depth + 1)
        self.line(depth + 1, f"return {self.returned(s)}")
        words = [f"step{s.id}"]
        if s.sequences or s.kind != "scan":
            words.append("sequences=" + self.listed([self.slot(q, "input", s.style) for q in s.sequences], s.style))
        if any(q is not None for q in s.infos) and s.kind != "map":
            words.append("outputs_info=" + self.listed([self.slot(q, "initial", s.style + k) for k, q in enumerate(s.infos)], s.style))
        elif s.kind == "scan" and s.style % 2:
            words.append("outputs_info=" + ["None", "[]", f"[{', '.join('None' for _ in s.infos)}]"][s.style % 3])
        if s.non_sequences:
            words.append("non_sequences=" + self.listed([self.e(e, operand=False) for _, e in s.non_sequences], s.style // 3))
        if s.n_steps is not None:
            words.append(f"n_steps={self.e(s.n_steps)}")
        words += [f"go_backwards={s.backwards}"] * (s.backwards and s.kind not in ("foldl", "foldr"))
        words += [f"truncate_gradient={s.truncate}"] * (s.truncate > 0)
        words += ["strict=True"] * s.strict + ["return_list=True"] * s.return_list
        several = len(s.names) > 1 or s.return_list
        left = f"[{', '.join(s.names)}]" if several else s.names[0] if s.names else "_"
        self.line(depth, f"{left}, {s.updates} = theano.{s.kind}({', '.join(words)})")

    def returned(self, s: Loop) -> str:
        outputs = [self.e(e) for e in s.outputs]
        single = len(outputs) == 1 and s.style % 2 == 0
        parts = [outputs[0] if single else f"[{', '.join(outputs)}]"] if outputs else []
        if s.own_updates or s.passed_on:
            parts.append(self.updates(s.own_updates, s.passed_on, s.style))
        elif not outputs:
            parts.append("[]")
        if s.until is not None:
            parts.append(f"theano.scan_module.until({self.e(s.until)})")
        return ", ".join(parts)

    def updates(self, own: list[tuple[str, E]], passed_on: list[str], style: int) -> str:
        if not own and len(passed_on) == 1:
            return passed_on[0]
        pairs = [f"({n}, {self.e(e)})" for n, e in own]
        if not passed_on and style % 3:
            return f"[{', '.join(pairs)}]" if style % 3 == 1 else f"OrderedDict([{', '.join(pairs)}])"
        return "{" + ", ".join([f"**{u}" for u in passed_on] + [f"{n}: {self.e(e)}" for n, e in own]) + "}"

    # The program.

    def variable(self, n: str, value: np.ndarray) -> str:
        kind = "row" if value.ndim == 2 and value.shape[0] == 1 and n not in self.growing else RANKS[value.ndim]
        return f"{n} = T.{LETTERS[value.dtype.name]}{kind}({n!r})"

    @property
    def growing(self) -> set[str]:
        """The inputs that are sequences or initial rows: their first extent is not part of their type."""
        slots = [q for s in statements(self.p.body) if isinstance(s, Loop) for q in (*s.sequences, *s.infos) if q is not None]
        return {q.value.given[0] for q in slots if q.value.word == "name" and (q.params[0].startswith("a") or q.taps not in (None, [-1]))}

    def program(self) -> str:
        p = self.p
        self.lines = [f"# Program {p.seed} of tests/facade/random_programs.py", *HEAD.splitlines()]
        if p.floatX != "float64":
            self.line(0, f"theano.config.floatX = {p.floatX!r}")
        for n, values in p.inputs:
            self.line(0, self.variable(n, values[0]))
        for n, v in p.shared:
            self.line(0, f"{n} = theano.shared({array(v)}, {n!r})")
        if any(isinstance(s, RandomDraw) for s in statements(p.body)):
            self.line(0, f"srng = RandomStreams({p.seed})")
        self.body(p.body, 0)
        self.line(0, f"outputs = [{', '.join(self.e(e) for e in p.outputs)}]")
        if p.cost is not None:
            self.line(0, f"cost = {self.e(p.cost)}")
            self.line(0, f"gradients = T.grad(cost, [{', '.join(p.wrt)}], disconnected_inputs='ignore')")
        self.function()
        return "\n".join(self.lines) + "\n"

    def function(self) -> None:
        p = self.p
        given = {n for n, _ in p.givens}
        words = [f"[{', '.join(n for n, _ in p.inputs if n not in given)}]", "outputs + gradients" if p.cost is not None else "outputs"]
        if p.own_updates or p.passed_on:
            words.append("updates=" + self.updates(p.own_updates, p.passed_on, p.seed))
        if p.givens:
            words.append(f"givens={{{', '.join(f'{n}: {self.e(e)}' for n, e in p.givens)}}}")
        words += [f"mode={p.mode!r}"] * (p.mode is not None) + ["no_default_updates=True"] * (not p.default_updates)
        words.append("on_unused_input='ignore'")
        self.line(0, f"f = theano.function({', '.join(words)})")
        self.line(0, "results = []")
        self.line(0, "for args in [")
        for call in range(2):
            self.line(1, f"[{', '.join(array(v[call]) for n, v in p.inputs if n not in given)}],")
        self.line(0, "]:")
        shared = ", ".join(n for n, _ in p.shared)
        self.line(1, f"results.append((f(*args), [v.get_value() for v in [{shared}]]))")


def array(v: np.ndarray) -> str:
    """An array in Python."""
    if not v.size:
        return f"np.zeros({v.shape}, {v.dtype.name!r})"
    return f"np.array({v.tolist()}, {v.dtype.name!r})"


def source(program: Program) -> str:
    """The program in Python. Run, it leaves per call the outputs and the values of the shared variables in `results`."""
    return Writer(program).program()
