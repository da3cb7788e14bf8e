"""Pictures of graphs: `rs.show(f)`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ._spans import here
from .errors import RscanValueError
from .printing import graph_text

if TYPE_CHECKING:
    from ._graphs import Graph

__all__ = ["Picture", "show"]

FORMATS = ("svg", "dot", "mermaid", "text")

#: Names of files in which nobody looks for text.
PIXELS = (".png", ".pdf", ".jpg", ".jpeg", ".gif", ".webp")

#: Boxes of one picture; of what is larger those nearest to the outputs are shown.
LIMIT = 200


class Picture(str):
    """The text of a picture, which notebooks show as the picture."""

    #: 'svg', 'dot', 'mermaid' or 'text'.
    kind: str

    def __new__(cls, text: str, kind: str) -> Picture:
        self = super().__new__(cls, text)
        self.kind = kind
        return self

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return str(self), self.kind

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it to a file.

        errors: `RscanValueError` (E0809) for the name of a file of pixels, which this is not.
        """
        if os.fspath(path).lower().endswith(PIXELS):
            text = f"{os.fspath(path)!r} would hold the text of a picture, in the format {self.kind!r}"
            raise RscanValueError(text, code="E0809", labels=[(here(), "")], helps=['a name with .svg, or format="dot" and `dot -Tpng`'])
        with open(path, "w", encoding="utf-8") as file:
            file.write(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        kinds = {"svg": "image/svg+xml", "mermaid": "text/vnd.mermaid"}
        return {"text/plain": str(self), **({kinds[self.kind]: str(self)} if self.kind in kinds else {})}


def show(x: Any, format: str = "svg", *, optimised: bool | str = False, limit: int = LIMIT) -> Picture:
    """A picture of variables or of a compiled function: loops are boxes with their states, taps and the user's lines.

    format: 'svg' (which notebooks show, and `.save("f.svg")` writes), 'dot' for Graphviz, 'mermaid' for Markdown, or 'text'.
    optimised: the graph of a function as it runs, not as it was written; "both" beside each other.
    limit: at most so many boxes, those nearest to the outputs.

    errors: `RscanTypeError` (E0805) for what is no number or array; `RscanValueError` (E0809) for `format` out of range.

    >>> x = rs.dscalar("x")
    >>> print(rs.show(rs.exp(x), format="mermaid"))
    flowchart TD
      n0["x: f64"]
      n1["exp<br/>...:1"]
      n2["output"]
      n0 --> n1
      n1 --> n2
    """
    if format not in FORMATS:
        known = ", ".join(map(repr, FORMATS))
        raise RscanValueError(f"a picture's format is one of {known}, not {format!r}", code="E0809", labels=[(here(), "")])
    return Picture(drawn(x, format, optimised, limit), format)


def drawn(x: Any, format: str, optimised: bool | str = False, limit: int = LIMIT) -> str:
    """The text of a picture."""
    from . import _drawing, _graphs

    texts = {"as written": False, "as it runs": True} if optimised == "both" else {"": bool(optimised)}
    parts = {title: graph_text(x, how) for title, how in texts.items()}
    if format == "text":
        return "\n".join(f"# {title}\n{text}" if title else text for title, text in parts.items())
    named = [(title, graph) for title, text in parts.items() for graph in _graphs.read(text)]
    titles = [title or f"variant {i}" for i, (title, _) in enumerate(named)]
    graphs = [_graphs.shortened(graph, limit) for _, graph in named]
    joined = graphs[0] if len(graphs) == 1 else _side_by_side(graphs, titles)
    title = getattr(x, "name", None) or getattr(x, "__name__", None) or "graph"
    if format == "svg":
        return _drawing.svg(joined, str(title))
    return _drawing.dot(joined, str(title)) if format == "dot" else _drawing.mermaid(joined)


def _side_by_side(graphs: list[Graph], titles: list[str]) -> Graph:
    """Several functions as one picture: each in a box."""
    from ._graphs import Graph, Loop

    return Graph([Loop(f"part {i}", title, kind="loop", body=g) for i, (title, g) in enumerate(zip(titles, graphs, strict=True))])
