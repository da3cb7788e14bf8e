"""Graphs as data for pictures, read from their text form: nodes, and loops with what enters, what is kept and what leaves."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

_COMMENT = re.compile(r"\s+# (.*)$")
_HEAD = re.compile(r"fn (\S+?)\((.*)\) \{$")
_SCAN = re.compile(r'(.+) = scan(?: "(.*?)")? n_steps=(\S+)(.*?) \{$')
_NODE = re.compile(r"(.+?) = (\w+)(.*)$", re.S)
_STATE = re.compile(r"state (\S+?)(?:: (\S+))?(?: init=(.+?))? reads=\[(.*?)\] writes=\[(.*?)\] keep=(\S+)(.*)$")
#: A name: of a node, of what a loop gives (`%2.h`), of a row of a state (`h@1`).
_NAME = re.compile(r"%?[A-Za-z_\u0080-\uffff]?[\w\u0080-\uffff]*(?:\.[\w%]+)?(?:@\d+)?$")


@dataclasses.dataclass
class Node:
    """A box: what is computed, where the user wrote it, and the names of what it reads."""

    name: str
    label: str
    reads: list[str] = dataclasses.field(default_factory=list)
    place: str = ""
    #: 'input', 'op', 'output', 'sequence', 'state', 'captured', 'step', 'next', 'until', 'more' or 'loop'.
    kind: str = "op"


@dataclasses.dataclass
class Loop(Node):
    """A loop: a box with a graph in it."""

    body: Graph | None = None


@dataclasses.dataclass
class Graph:
    """Boxes in the order in which they are computed."""

    nodes: list[Node]

    def all_nodes(self) -> Iterator[Node]:
        """These and those of the loops in them."""
        for node in self.nodes:
            yield node
            if isinstance(node, Loop) and node.body is not None:
                yield from node.body.all_nodes()


def read(text: str) -> list[Graph]:
    """The graphs of a text, one per function."""
    graphs, lines = [], iter(text.splitlines())
    for line in lines:
        head = _HEAD.match(line)
        if head:
            inputs = [Node(name, f"{name}: {kind}", kind="input") for name, _, kind in (p.partition(": ") for p in _split(head[2]))]
            graphs.append(Graph(inputs + _body(lines)))
    return graphs


def _body(lines: Iterator[str], suffix: str = "") -> list[Node]:
    """The nodes up to the closing brace."""
    out: list[Node] = []
    for raw in lines:
        found = _COMMENT.search(raw)
        place, line = (found[1], raw[: found.start()].strip()) if found else ("", raw.strip())
        if line == "}":
            break
        if line.startswith("return"):
            values = _split(line[len("return") :].strip())
            labels = [f"output {i}" for i in range(len(values))] if len(values) > 1 else ["output"]
            out += [Node(f"return {label}", label, _names([v]), kind="output") for label, v in zip(labels, values, strict=True)]
        elif scan := _SCAN.match(line):
            steps, rest = scan[3], scan[4].strip()
            count = "" if steps.startswith("%") else f", {_plain(steps)} steps"
            title = f"loop {scan[2] or ''}".strip() + count + (f", {rest}" if rest else "")
            loop = Loop(scan[1], title, _names([steps]), place, "loop")
            loop.body = Graph(_body(lines))
            out.append(loop)
        else:
            out.append(_line(line, place))
    return out


def _line(line: str, place: str) -> Node:
    """A line of a body that is no loop."""
    word, _, rest = line.partition(" ")
    if word == "seq":
        name, _, source = rest.partition(" = ")
        source, _, reverse = source.partition(" ")
        return Node(name, f"sequence {name.lstrip('%')}{', from the last row' if reverse else ''}", _names([source]), "", "sequence")
    if word == "state" and (state := _STATE.match(line)):
        name, dtype, init, reads, writes, keep, more = state.groups()
        taps = f"{_taps(reads, writes)}, keeps {keep}"
        label = f"state {name.lstrip('%')}{f': {dtype}' if dtype else ''}\n{taps}{more.split('#')[0].rstrip()}"
        return Node(name, label, _names([init] if init else []), place, "state")
    if word == "const":
        name, _, source = rest.partition(" = ")
        return Node(name, "captured" if name.startswith("%") else f"captured {name}", _names([source]), "", "captured")
    if word == "step":
        return Node(rest, f"step {rest}", [], "", "step")
    if word == "next":
        name, _, value = rest.partition(" = ")
        constant = "" if _names([value]) else f" = {_plain(value)}"
        return Node(f"next {name}", f"next {name.lstrip('%')}{constant}", _names([value]), "", "next")
    if word == "until":
        return Node("until", "until", _names([rest]), "", "until")
    node = _NODE.match(line)
    if node is None:
        return Node(line, line, [], place)
    attributes, arguments = _attributes(node[3])
    constants = [_plain(a) for a in arguments if not _names([a])]
    shown = ", ".join([*constants, *([attributes] if attributes else [])])
    return Node(node[1], f"{node[2]}({shown})" if shown else node[2], _names(arguments), place)


def _taps(reads: str, writes: str) -> str:
    """The rows that a step reads of a state, as taps: counted from the row that it writes."""
    if not reads:
        return "not read"
    if "," in writes:
        return f"reads {reads}, writes {writes}"
    return "taps " + ", ".join(str(int(r) - int(writes)) for r in reads.split(","))


def _attributes(text: str) -> tuple[str, list[str]]:
    """`[axis=0](x, y)` as attributes and arguments."""
    attributes = ""
    if text.startswith("["):
        end = _closing(text)
        attributes, text = text[1:end], text[end + 1 :]
    return attributes, _split(text[1:-1]) if text.startswith("(") else []


def _closing(text: str) -> int:
    depth = 0
    for i, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if depth == 0:
            return i
    return len(text) - 1


def _split(text: str) -> list[str]:
    """The parts between the outermost commas."""
    parts, depth, part = [], 0, ""
    for c in text:
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += c
    return [*parts, part.strip()] if part.strip() else parts


def _names(values: list[str]) -> list[str]:
    """Those that are names, not constants."""
    return [v for v in values if _NAME.match(v) and v not in ("true", "false")]


def _plain(value: str) -> str:
    """A constant or a name as people write it."""
    value = re.sub(r"^(-?[\w.+-]+):\w+$", r"\1", value)
    return value.lstrip("%") if len(value) <= 24 else value[:23] + "…"


def shortened(graph: Graph, limit: int) -> Graph:
    """At most so many boxes, those nearest to the outputs; one box says how many are not shown."""
    total = sum(1 for _ in graph.all_nodes())
    if total <= limit:
        return graph
    by_name = {name: node for node in graph.nodes for name in names_of(node)}
    kept: dict[int, Node] = {}
    wave = [node for node in graph.nodes if node.kind in ("output", "next", "until")]
    size = 0
    while wave and size < limit:
        following: list[Node] = []
        for node in wave:
            if id(node) in kept or size >= limit:
                continue
            inside = list(node.body.all_nodes()) if isinstance(node, Loop) and node.body else []
            short = node
            if isinstance(node, Loop) and node.body:
                short = dataclasses.replace(node, body=shortened(node.body, max(10, (limit - size) // 2)))
            kept[id(node)] = short
            size += sum(1 for _ in Graph([short]).all_nodes())
            wanted = [*node.reads, *(r for n in inside for r in n.reads)]
            following += [by_name[key] for r in wanted if (key := base(r)) in by_name]
        wave = following
    shown = [kept[id(node)] for node in graph.nodes if id(node) in kept]
    rest = total - sum(1 for _ in Graph(shown).all_nodes())
    return Graph([Node("more", f"… {rest:,} more", kind="more"), *shown]) if rest > 0 else Graph(shown)


def names_of(node: Node) -> list[str]:
    """The names under which others read a node."""
    return [name.strip() for name in node.name.split(", ")] if node.kind == "op" else [node.name]


def base(name: str) -> str:
    """The node behind a name: `%2` of `%2.h`, `h` of `h@1`."""
    return name.partition(".")[0].partition("@")[0] if not name.startswith("next ") else name
