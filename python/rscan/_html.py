"""What notebooks show of variables, functions, loops, explanations and profiles: tables and pictures, without scripts."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._calling import Caller
    from .compile import Compiled
    from .explain import Explanation
    from .loop import Loop
    from .profile import Profile
    from .variable import Variable

#: Characters of a graph's text, and of a formula, that are shown.
TEXT, FORMULA = 20_000, 400


def _table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    cells = lambda row, tag: "".join(f"<{tag} style='text-align:left'>{escape(str(cell))}</{tag}>" for cell in row)
    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return f"<table><thead><tr>{cells(head, 'th')}</tr></thead><tbody>{body}</tbody></table>"


def _folded(title: str, content: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{content}</details>"


def _text(text: str) -> str:
    more = f"\n… {len(text) - TEXT:,} characters more" if len(text) > TEXT else ""
    return f"<pre>{escape(text[:TEXT] + more)}</pre>"


def _type(v: Variable) -> str:
    dims = ", ".join("?" if n is None else str(n) for n in v.static_shape)
    return f"{v.dtype}[{dims}]" if v.ndim else v.dtype


def _graph(x: Any) -> str:
    """The picture and the text of a graph, folded."""
    from .show import drawn

    out = ""
    for title, format in (("picture", "svg"), ("text", "text")):
        with contextlib.suppress(Exception):  # what cannot be drawn is left out: a notebook shows the rest
            made = drawn(x, format)
            out += _folded(title, made if format == "svg" else _text(made))
    return out


def variable(v: Variable) -> str:
    """A variable: what it is, its formula, its graph."""
    from .printing import pp

    formula = ""
    if v._v.kind == "apply":
        with contextlib.suppress(Exception):
            text = pp(v, 8)
            formula = f"<div><code>{escape(text if len(text) <= FORMULA else text[:FORMULA] + '…')}</code></div>{_graph(v)}"
    kind = {"apply": "expression", "const": "constant", "shared": "shared variable"}.get(v._v.kind, v._v.kind)
    return f"<div><b>{escape(v.name or kind)}</b>: <code>{escape(_type(v))}</code>{formula}</div>"


def function(f: Caller) -> str:
    """A compiled function: inputs, outputs, updates, its graph."""
    whole: Any = getattr(f, "function", f)
    rows = [("input", slot.name or "?", _type(slot.variable)) for slot in f.inputs]
    keys = whole._keys or [v.name or "" for v in whole.outputs]
    rows += [("output", key, _type(v)) for key, v in zip(keys, whole.outputs, strict=True)]
    rows += [("update", shared._describe(), _type(shared)) for shared, _ in whole.updates]
    return f"<div><b>{escape(f.name or 'function')}</b>{_table(('', 'name', 'type'), rows)}{_graph(whole)}</div>"


def compiled(f: Compiled[Any, Any]) -> str:
    """What `@rs.compile` made: for which types of arguments it was traced, and the graph of each."""
    traced = "".join(_folded(", ".join(_type(slot.variable) for slot in made.inputs), function(made)) for made, _ in f._variants.values())
    return f"<div><b>{escape(str(f._name))}</b><code>{escape(str(f._signature))}</code>{traced or '<div>not called yet</div>'}</div>"


def loop(made: Loop) -> str:
    """The outputs of a loop."""
    from .variable import Variable

    rows = [(name, _type(v) if isinstance(v, Variable) else repr(v)) for name, v in made._values.items()]
    rows += [(f"update of {shared._describe()}", _type(value)) for shared, value in made.updates.items()]
    first = next((v for v in made._values.values() if isinstance(v, Variable)), None)
    return f"<div><b>loop</b>{_table(('output', 'type'), rows)}{'' if first is None else _graph(first)}</div>"


def explanation(e: Explanation) -> str:
    """What became of a function's loops, and what its passes did."""
    rows = []
    for plan in e.loops:
        states = "; ".join(f"{s.name or '?'} ({s.kind}) keeps {'all' if s.keeps is None else s.keeps}" for s in plan.states)
        ran = "; ".join(str(v) for v in plan.variants) or "not called yet"
        place = f"{(plan.file or '').rpartition('/')[2]}:{plan.line}" if plan.file else ""
        rows.append(("\u00a0\u00a0" * plan.depth + (plan.name or "loop"), place, states, ran))
    passes = _table(("pass", "where", "what"), [(n.name, n.place, ("" if n.done else "not done: ") + n.text) for n in e.passes])
    rules = _table(("pass", "rule", "times"), e.rules)
    loops = _table(("loop", "line", "states", "how it runs"), rows) if rows else "<div>no loops</div>"
    more = (_folded("passes", passes) if e.passes else "") + (_folded("rules", rules) if e.rules else "")
    return f"<div><b>{escape(e.name or 'function')}</b>{loops}{more}</div>"


def profile(p: Profile) -> str:
    """Where the time of the calls went."""
    rows: list[tuple[str, str, str, str]] = []
    for one in p.loops:
        stores = f", {one.stored:,} bytes per step" if one.stored else ""
        rows.append((one.name, f"{one.calls:,} runs, {one.steps:,} steps{stores}", f"{one.seconds:.6f} s", _share(one.seconds, p)))
        rows += [("\u00a0\u00a0work", rate, "", "") for rate in one.rates()]
        ops = sorted(one.ops.items(), key=lambda item: -item[1][1])
        rows += [(f"\u00a0\u00a0{op}", f"{count:,} times", f"{spent:.6f} s", _share(spent, p)) for op, (count, spent) in ops]
    table = _table(("", "", "time", "share"), rows)
    return f"<div><b>{escape(p.name or 'function')}</b>: {p.calls:,} calls, arrays of {p.peak:,} bytes at most{_flames(p)}{table}</div>"


#: Pixels of a bar: the width of the whole, a height; and the width of a character.
_WIDTH, _BAR, _CHARACTER = 760, 20, 6.2


@dataclasses.dataclass
class _Bar:
    """A stretch of time: what it was, and what it was spent on."""

    name: str
    seconds: float
    parts: list[_Bar]


def _bars(p: Profile) -> _Bar:
    """The time of all calls: loops lie in the ops that run them, in their order, each in the first that has room."""
    whole, *loops = [_Bar(one.name, one.seconds, [_Bar(op, spent, []) for op, (_, spent) in one.ops.items()]) for one in p.loops]
    running = [op for op in whole.parts if op.name == "scan"]
    for loop in loops:
        room = (op for op in running if sum(part.seconds for part in op.parts) + loop.seconds <= op.seconds * 1.02)
        holder = next(room, None)
        if holder is not None:
            holder.parts.append(loop)
            running += [op for op in loop.parts if op.name == "scan"]
    whole.name = p.name or "function"
    return whole


def _flames(p: Profile) -> str:
    """The time as bars under bars, each as wide as its share; what is narrower than a pixel is left out."""
    if not p.loops or not p.loops[0].seconds:
        return ""
    whole, drawn, deepest = _bars(p), [], 0

    def draw(bar: _Bar, x: float, depth: int) -> None:
        nonlocal deepest
        width = bar.seconds / whole.seconds * _WIDTH
        if width < 1:
            return
        deepest = max(deepest, depth)
        text = bar.name if len(bar.name) * _CHARACTER < width - 4 else ""
        colour = "#fde68a" if bar.parts else "#fca5a5"
        drawn.append(
            f"<g><title>{escape(bar.name)}: {bar.seconds:.6f} s, {_share(bar.seconds, p)}</title>"
            f'<rect x="{x:.1f}" y="{depth * _BAR}" width="{width:.1f}" height="{_BAR - 1}" fill="{colour}" stroke="#ffffff"/>'
            f'<text x="{x + 3:.1f}" y="{depth * _BAR + 14}" fill="#111827">{escape(text)}</text></g>'
        )
        for part in sorted(bar.parts, key=lambda part: -part.seconds):
            draw(part, x, depth + 1)
            x += part.seconds / whole.seconds * _WIDTH

    draw(whole, 0.0, 0)
    height = (deepest + 1) * _BAR
    box = f'viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" font-family="ui-monospace, monospace" font-size="10"'
    return f'<div><svg xmlns="http://www.w3.org/2000/svg" {box}>{"".join(drawn)}</svg></div>'


def _share(seconds: float, p: Profile) -> str:
    whole = p.loops[0].seconds if p.loops else 0.0
    return f"{seconds / whole:.0%}" if whole else ""
