"""Graphs as pictures: an own layout in layers, with loops as boxes; SVG, DOT and Mermaid."""

from __future__ import annotations

import dataclasses
from html import escape

from ._graphs import Graph, Loop, Node, base, names_of

#: Pixels: the width of a character, the height of a line, what is around a text, and between boxes.
CHARACTER, LINE, PADDING, GAP, LAYER = 6.7, 15, 7, 14, 30

#: Frame and filling per kind of box, readable on light and on dark paper.
COLOURS = {
    "input": ("#2563eb", "#dbeafe"),
    "output": ("#15803d", "#dcfce7"),
    "sequence": ("#0e7490", "#cffafe"),
    "state": ("#b45309", "#fef3c7"),
    "next": ("#b45309", "#fef3c7"),
    "until": ("#be123c", "#ffe4e6"),
    "captured": ("#6b7280", "#f3f4f6"),
    "step": ("#6b7280", "#f3f4f6"),
    "more": ("#6b7280", "#ffffff"),
    "op": ("#374151", "#ffffff"),
    "loop": ("#7c3aed", "#f5f3ff"),
}

#: Boxes of a loop that read what stands around it.
ENTERING = ("sequence", "state", "captured")


@dataclasses.dataclass
class Box:
    """A node with its place; of a loop, with the boxes in it, whose places count from its corner."""

    node: Node
    width: float
    height: float
    inner: Drawing | None = None
    x: float = 0.0
    y: float = 0.0


@dataclasses.dataclass
class Drawing:
    """Boxes in layers."""

    boxes: list[Box]
    width: float
    height: float


def _texts(node: Node) -> list[str]:
    lines = node.label.split("\n")
    return [*lines, node.place] if node.place else lines


def _box(node: Node) -> Box:
    texts = _texts(node)
    width = max(len(t) for t in texts) * CHARACTER + 2 * PADDING
    height = len(texts) * LINE + 2 * PADDING
    if not isinstance(node, Loop) or node.body is None:
        return Box(node, width, height)
    inner = layout(node.body)
    return Box(node, max(width, inner.width + 2 * GAP), height + inner.height + GAP, inner)


def layout(graph: Graph) -> Drawing:
    """Places boxes: each below all that it reads, beside its readers and what it reads, nothing above another."""
    boxes = [_box(node) for node in graph.nodes]
    owner = {name: i for i, box in enumerate(boxes) for name in names_of(box.node)}
    reads = [sorted({owner[base(r)] for r in _reads(box.node) if base(r) in owner and owner[base(r)] != i}) for i, box in enumerate(boxes)]
    layers = _layers(boxes, reads)
    _order(layers, reads, len(boxes))
    width = max((sum(boxes[i].width for i in layer) + GAP * (len(layer) - 1) for layer in layers), default=0.0)
    y = 0.0
    for layer in layers:
        x = (width - sum(boxes[i].width for i in layer) - GAP * (len(layer) - 1)) / 2
        for i in layer:
            boxes[i].x, boxes[i].y = x, y
            x += boxes[i].width + GAP
        y += max(boxes[i].height for i in layer) + LAYER
    return Drawing(boxes, width, max(y - LAYER, 0.0))


def _reads(node: Node) -> list[str]:
    """What a node reads; a loop also what its body reads of outside."""
    if not isinstance(node, Loop) or node.body is None:
        return node.reads
    own = {name for inner in node.body.nodes for name in names_of(inner)}
    entering = [r for inner in node.body.nodes if inner.kind in ("sequence", "state", "captured") for r in inner.reads]
    return [*node.reads, *entering, *(r for inner in node.body.nodes for r in _reads(inner) if base(r) not in own and inner.kind == "op")]


def _layers(boxes: list[Box], reads: list[list[int]]) -> list[list[int]]:
    """Boxes by how many others stand above; what leaves a step is lowest."""
    depth = [0] * len(boxes)
    for i in range(len(boxes)):
        depth[i] = max((depth[j] + 1 for j in reads[i] if j < i), default=0)
    last = max(depth, default=0)
    low = [i for i, box in enumerate(boxes) if box.node.kind in ("next", "until", "output")]
    for i in low:
        depth[i] = max(last, 1)
    layers: dict[int, list[int]] = {}
    for i, d in enumerate(depth):
        layers.setdefault(d, []).append(i)
    return [layers[d] for d in sorted(layers)]


def _order(layers: list[list[int]], reads: list[list[int]], n: int) -> None:
    """Orders each layer by the middle of what it is joined to, down and up a few times, so that few lines cross."""
    readers: list[list[int]] = [[] for _ in range(n)]
    for i, sources in enumerate(reads):
        for j in sources:
            readers[j].append(i)
    place = {i: k / max(len(layer), 1) for layer in layers for k, i in enumerate(layer)}
    for neighbours, order in [(reads, layers), (readers, layers[::-1])] * 3:
        for layer in order:
            middle = {i: sum(place[j] for j in neighbours[i]) / len(neighbours[i]) if neighbours[i] else place[i] for i in layer}
            layer.sort(key=lambda i: middle[i])
            place.update({i: (k + 0.5) / len(layer) for k, i in enumerate(layer)})


# SVG.


def svg(graph: Graph, title: str) -> str:
    """A picture of its own: no script, no font, no file beside it."""
    drawing = layout(graph)
    width, height = drawing.width + 2 * GAP, drawing.height + 2 * GAP
    boxes: list[str] = []
    lines: list[str] = []
    _draw(drawing, GAP, GAP, {}, boxes, lines)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" '
        f'font-family="ui-monospace, monospace" font-size="11"><title>{escape(title)}</title>'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#6b7280"/></marker></defs>' + "".join(boxes) + "".join(lines) + "</svg>"
    )


Places = dict[str, tuple[float, float]]


def _draw(drawing: Drawing, x0: float, y0: float, outer: Places, boxes: list[str], lines: list[str]) -> Places:
    """Adds boxes and lines; returns where the lines of each name begin."""
    places: Places = dict(outer)
    for box in drawing.boxes:
        x, y = x0 + box.x, y0 + box.y
        for name in names_of(box.node):
            places[name] = (x + box.width / 2, y + box.height)
    for box in drawing.boxes:
        x, y = x0 + box.x, y0 + box.y
        frame, filling = COLOURS[box.node.kind]
        boxes.append(
            f'<g><title>{escape(box.node.name)}</title><rect x="{x:.1f}" y="{y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" '
            f'rx="5" fill="{filling}" stroke="{frame}"/>{_text(box, x, y)}</g>'
        )
        if box.inner is not None:
            top = y + len(_texts(box.node)) * LINE + 2 * PADDING
            inner = _draw(box.inner, x + (box.width - box.inner.width) / 2, top, places, boxes, lines)
            for name, place in inner.items():
                if name.startswith("next "):
                    places[f"{box.node.name}.{name[5:].partition('@')[0]}"] = place
        for i, read in enumerate(box.node.reads):
            known = outer if box.node.kind in ENTERING else places
            start = known.get(read) or known.get(base(read))
            if start is not None:
                end = (x + box.width * (i + 1) / (len(box.node.reads) + 1), y)
                lines.append(_line(start, end, box.node.kind == "next"))
    return places


def _text(box: Box, x: float, y: float) -> str:
    middle = x + box.width / 2
    out = []
    for i, text in enumerate(_texts(box.node)):
        colour = "#6b7280" if box.node.place and i == len(_texts(box.node)) - 1 else "#111827"
        below = y + PADDING + LINE * i + 11
        out.append(f'<text x="{middle:.1f}" y="{below:.1f}" text-anchor="middle" fill="{colour}">{escape(text)}</text>')
    return "".join(out)


def _line(start: tuple[float, float], end: tuple[float, float], dashed: bool) -> str:
    (x1, y1), (x2, y2) = start, end
    bend = max(abs(y2 - y1) / 2, 10)
    style = ' stroke-dasharray="4 3"' if dashed else ""
    path = f"M{x1:.1f} {y1:.1f}C{x1:.1f} {y1 + bend:.1f} {x2:.1f} {y2 - bend:.1f} {x2:.1f} {y2:.1f}"
    return f'<path d="{path}" fill="none" stroke="#6b7280"{style} marker-end="url(#tip)"/>'


# Text for other programs.


def dot(graph: Graph, title: str) -> str:
    """The graph for Graphviz: `dot -Tsvg`."""
    out = [f"digraph {_quoted(title)} {{", '  node [shape=box, style="rounded,filled", fontname="monospace", fontsize=10];']
    edges: list[str] = []
    _write_dot(graph, {}, "n", "  ", out, edges)
    return "\n".join([*out, *edges, "}"])


def _write_dot(graph: Graph, outer: dict[str, str], prefix: str, indent: str, out: list[str], edges: list[str]) -> dict[str, str]:
    ids = dict(outer)
    for i, node in enumerate(graph.nodes):
        key = f"{prefix}{i}"
        frame, filling = COLOURS[node.kind]
        if isinstance(node, Loop) and node.body is not None:
            out.append(f"{indent}subgraph cluster_{key} {{")
            text = "\n".join(_texts(node))
            out.append(f'{indent}  label={_quoted(text)}; color="{frame}"; bgcolor="{filling}"; fontname="monospace"; fontsize=10;')
            inner = _write_dot(node.body, ids, key + "_", indent + "  ", out, edges)
            out.append(f"{indent}}}")
            ids.update({f"{node.name}.{name[5:].partition('@')[0]}": at for name, at in inner.items() if name.startswith("next ")})
            ids[node.name] = next(iter(reversed(inner.values())), key)
        else:
            out.append(f'{indent}{key} [label={_quoted(chr(10).join(_texts(node)))}, color="{frame}", fillcolor="{filling}"];')
            known = outer if node.kind in ENTERING else ids
            for read in node.reads:
                source = known.get(read) or known.get(base(read))
                if source is not None:
                    edges.append(f"  {source} -> {key}{' [style=dashed]' if node.kind == 'next' else ''};")
            ids.update(dict.fromkeys(names_of(node), key))
    return ids


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def mermaid(graph: Graph) -> str:
    """The graph for Markdown and notebooks."""
    out, edges = ["flowchart TD"], []
    for line in dot(graph, "").splitlines()[2:-1]:
        text = line.strip()
        indent = line[: len(line) - len(line.lstrip())]
        if text.startswith("subgraph"):
            key = text.split()[1]
            label = ""
        elif text.startswith("label="):
            label = text[len("label=") : text.index("; color=")]
            out.append(f"{indent[2:]}subgraph {key}[{_mermaid_text(label)}]")
        elif text == "}":
            out.append(f"{indent}end")
        elif " -> " in text:
            source, _, rest = text.rstrip(";").partition(" -> ")
            target, _, style = rest.partition(" ")
            edges.append(f"  {source} {'-.->' if style else '-->'} {target}")
        else:
            name, _, rest = text.partition(" [label=")
            out.append(f"{indent}{name}[{_mermaid_text(rest[: rest.index(', color=')])}]")
    return "\n".join([*out, *edges])


def _mermaid_text(quoted: str) -> str:
    text = quoted[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    for character, entity in (("&", "&amp;"), ('"', "#quot;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(character, entity)
    return '"' + text.replace("\\n", "<br/>") + '"'
