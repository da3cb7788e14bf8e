"""Pictures of graphs, drawn with matplotlib: applications in rows, inputs above users."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from typing import Any

from .._spans import here
from ..errors import RscanValueError, UnsupportedError

#: Kinds of files that matplotlib writes without a screen.
FORMATS = ("png", "svg", "pdf")
_COLOURS = {"input": "#9ecae1", "shared": "#fdd0a2", "const": "#e0e0e0", "apply": "#ffffff", "loop": "#c7e9c0", "output": "#bcbddc"}


class Picture:
    """Boxes in rows, and lines between them."""

    def __init__(self) -> None:
        #: Per box: text and kind.
        self.boxes: dict[Any, tuple[str, str]] = {}
        self.lines: list[tuple[Any, Any]] = []

    def box(self, key: Any, text: str, kind: str) -> Any:
        """Adds a box where there is none of this key."""
        self.boxes.setdefault(key, (text, kind))
        return key

    def rows(self) -> list[list[Any]]:
        """The boxes in rows, each below all that it is computed from, and within a row near these."""
        level = dict.fromkeys(self.boxes, 0)
        sources: dict[Any, list[Any]] = {key: [] for key in self.boxes}
        uses: dict[Any, list[Any]] = {key: [] for key in self.boxes}
        for start, end in self.lines:
            level[end] = max(level[end], level[start] + 1)
            sources[end].append(start)
            uses[start].append(end)
        for key in self.boxes:
            if uses[key] and not sources[key]:
                level[key] = min(level[end] for end in uses[key]) - 1
        out: list[list[Any]] = [[] for _ in range(max(level.values(), default=0) + 1)]
        for key in self.boxes:
            out[level[key]].append(key)
        place: dict[Any, float] = {}
        for row in out:
            above = {key: [place[s] for s in sources[key]] for key in row}
            row.sort(key=lambda key: sum(above[key]) / len(above[key]) if above[key] else 0.5)
            place |= {key: (i + 0.5) / len(row) for i, key in enumerate(row)}
        return out

    def image(self, kind: str) -> bytes:
        """The picture as the bytes of a file."""
        try:
            from matplotlib.backends.backend_agg import FigureCanvasAgg
            from matplotlib.figure import Figure
        except ImportError as error:
            raise UnsupportedError(
                "pictures of graphs are drawn with matplotlib, which is not installed",
                code="E0813",
                labels=[(here(), "")],
                helps=["pip install matplotlib", "theano.printing.debugprint writes a graph as text"],
            ) from error
        rows = self.rows()
        figure = Figure(figsize=(max(4.0, 1.8 * max(map(len, rows), default=1)), max(2.0, 0.9 * len(rows))))
        FigureCanvasAgg(figure)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        at = {key: ((i + 0.5) / len(row), 1 - (n + 0.5) / len(rows)) for n, row in enumerate(rows) for i, key in enumerate(row)}
        for start, end in self.lines:
            axes.annotate("", at[end], at[start], arrowprops={"arrowstyle": "->", "color": "#555555", "shrinkA": 12, "shrinkB": 12})
        for key, (text, colour) in self.boxes.items():
            box = {"boxstyle": "round", "facecolor": _COLOURS[colour], "edgecolor": "#333333"}
            axes.text(*at[key], text, ha="center", va="center", fontsize=8, bbox=box)
        out = io.BytesIO()
        figure.savefig(out, format=kind)
        return out.getvalue()


def picture_of(nodes: Sequence[Any], outputs: Sequence[Any], longest: int) -> Picture:
    """The picture of applications, of what they are applied to, and of the outputs."""
    picture = Picture()
    made = {v: node for node in nodes for v in node.outputs}

    def text(value: Any) -> str:
        line = str(value)
        return line if len(line) <= longest else line[: longest - 1] + "…"

    def leaf(v: Any) -> Any:
        if v in made:
            return made[v]
        kind = {"const": "const", "shared": "shared"}.get(v._v.kind, "input")
        label = text(v) if v.name is None else text(f"{v.name}: {v.type}")
        return picture.box(v, label, kind)

    for node in nodes:
        loop = hasattr(node.op, "truncate_gradient")
        for v in node.inputs:
            leaf(v)
        picture.box(node, text(node.op), "loop" if loop else "apply")
        picture.lines += [(leaf(v), node) for v in node.inputs]
    for i, v in enumerate(outputs):
        key = picture.box(("output", i), text(v.name or f"output {i}"), "output")
        picture.lines.append((leaf(v), key))
    return picture


def kind_of(outfile: Any, kind: str) -> str:
    """The kind of a file: what its name ends with, or what was asked for."""
    ending = os.path.splitext(os.fspath(outfile))[1][1:].lower() if outfile is not None else ""
    found = ending if ending in FORMATS else kind
    if found not in FORMATS:
        raise RscanValueError(f"pictures are {', '.join(FORMATS)}, not {found!r}", code="E0809", labels=[(here(), "")])
    return found
