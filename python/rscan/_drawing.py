"""Graphs as pictures: an own layout in layers, with loops as boxes; SVG, DOT and Mermaid."""

from __future__ import annotations

import dataclasses
from html import escape

from ._graphs import Graph, Loop, Node, base, names_of

#: Pixels: the width of a character, the height of a line, what is around a text, and between boxes.
CHARACTER, LINE, PADDING, GAP, LAYER = 6.7, 15, 7, 14, 30

#: The width of a gap between boxes that a line passes.
LANE = 9.0

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


#: A line as the points that it goes through.
Route = list[tuple[float, float]]


@dataclasses.dataclass
class Drawing:
    """Boxes in layers, the lower edge of each box's layer, and what lines go through from a box to another: the gaps between boxes."""

    boxes: list[Box]
    width: float
    height: float
    floors: list[float]
    owner: dict[str, int]
    ways: dict[tuple[int, int], Route]

    def way(self, name: str, to: int) -> Route:
        """What the line from the owner of a name to a box goes through."""
        source = self.owner.get(base(name))
        return [] if source is None else self.ways.get((source, to), [])


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
    """Places boxes: each below all that it reads, beside its readers and what it reads, nothing above another; lines go between them."""
    boxes = [_box(node) for node in graph.nodes]
    owner = {name: i for i, box in enumerate(boxes) for name in names_of(box.node)}
    reads = [sorted({owner[base(r)] for r in _reads(box.node) if base(r) in owner and owner[base(r)] != i}) for i, box in enumerate(boxes)]
    layers = _layers(boxes, reads)
    steps, chains = _passed(layers, reads)
    _order(layers, steps)
    widths = [box.width for box in boxes] + [LANE] * (len(steps) - len(boxes))
    middles = _middles(layers, steps, widths)
    tops, floors = [0.0] * len(steps), [0.0] * len(steps)
    y = 0.0
    for layer in layers:
        floor = y + max((boxes[i].height for i in layer if i < len(boxes)), default=0.0)
        for i in layer:
            tops[i], floors[i] = y, floor
        y = floor + LAYER
    for i, box in enumerate(boxes):
        box.x, box.y = middles[i] - box.width / 2, tops[i]
    ways = {ends: [p for k in chain for p in ((middles[k], tops[k]), (middles[k], floors[k]))] for ends, chain in chains.items()}
    width = max((m + w / 2 for m, w in zip(middles, widths, strict=True)), default=0.0)
    return Drawing(boxes, width, max(y - LAYER, 0.0), floors[: len(boxes)], owner, ways)


def _reads(node: Node) -> list[str]:
    """What a node reads; a loop also what its body reads of outside."""
    if not isinstance(node, Loop) or node.body is None:
        return node.reads
    return [*node.reads, *(r for inner in node.body.nodes if inner.kind in ENTERING for r in inner.reads)]


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


def _passed(layers: list[list[int]], reads: list[list[int]]) -> tuple[list[list[int]], dict[tuple[int, int], list[int]]]:
    """Adds to the layers the gaps that lines pass, one for all lines of a box. Returns what stands directly above each box and gap, and the
    gaps between two boxes."""
    depth = {i: d for d, layer in enumerate(layers) for i in layer}
    above: list[list[int]] = [[] for _ in reads]
    gaps: dict[tuple[int, int], int] = {}
    chains: dict[tuple[int, int], list[int]] = {}
    for i, sources in enumerate(reads):
        for j in sources:
            chain, last = [], j
            for d in range(depth[j] + 1, depth[i]):
                if (j, d) not in gaps:
                    gaps[j, d] = len(above)
                    above.append([last])
                    layers[d].append(gaps[j, d])
                last = gaps[j, d]
                chain.append(last)
            above[i].append(last)
            chains[j, i] = chain
    return above, chains


def _order(layers: list[list[int]], above: list[list[int]]) -> None:
    """Orders each layer by the middle of what it is joined to, down and up a few times, so that few lines cross."""
    below = _readers(above)
    place = {i: k / max(len(layer), 1) for layer in layers for k, i in enumerate(layer)}
    for neighbours, order in [(above, layers), (below, layers[::-1])] * 4:
        for layer in order:
            middle = {i: sum(place[j] for j in neighbours[i]) / len(neighbours[i]) if neighbours[i] else place[i] for i in layer}
            layer.sort(key=lambda i: middle[i])
            place.update({i: (k + 0.5) / len(layer) for k, i in enumerate(layer)})


def _readers(above: list[list[int]]) -> list[list[int]]:
    below: list[list[int]] = [[] for _ in above]
    for i, sources in enumerate(above):
        for j in sources:
            below[j].append(i)
    return below


def _middles(layers: list[list[int]], above: list[list[int]], widths: list[float]) -> list[float]:
    """Where the middle of each box and gap is: near what it is joined to, in the order of its layer, without overlaps."""
    below = _readers(above)
    middles = [0.0] * len(above)
    for neighbours, order in [(above, layers), (below, layers[::-1])] * 3 + [(above, layers)]:
        for layer in order:
            wanted = [sum(middles[j] for j in neighbours[i]) / len(neighbours[i]) if neighbours[i] else middles[i] for i in layer]
            for i, middle in zip(layer, _apart(wanted, [widths[i] for i in layer]), strict=True):
                middles[i] = middle
    left = min((m - w / 2 for m, w in zip(middles, widths, strict=True)), default=0.0)
    return [m - left for m in middles]


def _apart(wanted: list[float], widths: list[float]) -> list[float]:
    """The places nearest to those that are wanted, in this order, that leave room for what has these widths: least squares, by pooling
    neighbours that would overlap."""
    offsets, pools = [], []
    at = 0.0
    for k, width in enumerate(widths):
        at += (width + widths[k - 1]) / 2 + (GAP if max(width, widths[k - 1]) > LANE else 0) if k else 0.0
        offsets.append(at)
        pools.append([wanted[k] - at, 1])
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (value, n), (more, m) = pools[-2:]
            pools[-2:] = [[(value * n + more * m) / (n + m), n + m]]
    values = [value for value, n in pools for _ in range(int(n))]
    return [value + offset for value, offset in zip(values, offsets, strict=True)]


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


Places = dict[str, Route]


def _draw(drawing: Drawing, x0: float, y0: float, outer: Places, boxes: list[str], lines: list[str]) -> Places:
    """Adds boxes and lines; returns how the lines of each name begin."""
    places: Places = {}
    for i, box in enumerate(drawing.boxes):
        middle = x0 + box.x + box.width / 2
        for name in names_of(box.node):
            places[name] = [(middle, y0 + box.y + box.height), (middle, y0 + drawing.floors[i])]
    for i, box in enumerate(drawing.boxes):
        x, y = x0 + box.x, y0 + box.y
        frame, filling = COLOURS[box.node.kind]
        boxes.append(
            f'<g><title>{escape(box.node.name)}</title><rect x="{x:.1f}" y="{y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" '
            f'rx="5" fill="{filling}" stroke="{frame}"/>{_text(box, x, y)}</g>'
        )
        routes = {name: [*begin, *((x0 + u, y0 + v) for u, v in drawing.way(name, i))] for name, begin in places.items()}
        if box.inner is not None:
            top = y + len(_texts(box.node)) * LINE + 2 * PADDING
            inner = _draw(box.inner, x + (box.width - box.inner.width) / 2, top, routes, boxes, lines)
            for name, route in inner.items():
                if name.startswith("next "):
                    out = (route[0][0], y0 + drawing.floors[i])
                    places[f"{box.node.name}.{name[5:].partition('@')[0]}"] = [route[0], out]
        known = outer if box.node.kind in ENTERING else routes
        for k, read in enumerate(box.node.reads):
            start = known.get(read) or known.get(base(read))
            if start is not None:
                end = (x + box.width * (k + 1) / (len(box.node.reads) + 1), y)
                lines.append(_line([*start, end], box.node.kind == "next"))
    return places


def _text(box: Box, x: float, y: float) -> str:
    # Lines enter a loop from above: its title stands at the side.
    middle, anchor = (x + PADDING, "start") if box.inner is not None else (x + box.width / 2, "middle")
    out = []
    for i, text in enumerate(_texts(box.node)):
        colour = "#6b7280" if box.node.place and i == len(_texts(box.node)) - 1 else "#111827"
        below = y + PADDING + LINE * i + 11
        out.append(f'<text x="{middle:.1f}" y="{below:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>')
    return "".join(out)


def _line(route: Route, dashed: bool) -> str:
    (x1, y1), *rest = route
    path = f"M{x1:.1f} {y1:.1f}"
    for x2, y2 in rest:
        bend = max(abs(y2 - y1) / 2, 10)
        curve = f"C{x1:.1f} {y1 + bend:.1f} {x2:.1f} {y2 - bend:.1f} {x2:.1f} {y2:.1f}"
        path += curve if x1 != x2 else f"V{y2:.1f}" if y1 != y2 else ""
        x1, y1 = x2, y2
    style = ' stroke-dasharray="4 3"' if dashed else ""
    return f'<path d="{path}" fill="none" stroke="#6b7280"{style} marker-end="url(#tip)"/>'


# Text for other programs.


def dot(graph: Graph, title: str) -> str:
    """The graph for Graphviz: `dot -Tsvg`."""
    out = [f"digraph {_quoted(title)} {{", '  node [shape=box, style="rounded,filled", fontname="monospace", fontsize=10];']
    edges: list[str] = []
    _write_dot(graph, {}, "n", "  ", out, edges)
    return "\n".join([*out, *edges, "}"])


def _write_dot(graph: Graph, outer: dict[str, str], prefix: str, indent: str, out: list[str], edges: list[str]) -> dict[str, str]:
    ids: dict[str, str] = {}
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
