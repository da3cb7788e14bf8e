"""`theano.printing.pydotprint`: pictures of graphs."""

import struct
import sys
import zlib

import numpy as np
import pytest

import rscan.theano as theano
import rscan.theano.tensor as T
from rscan.theano.gof.graph import io_toposort
from rscan.theano.picture import picture_of


def program():
    x, w = T.dmatrix("x"), theano.shared(np.ones((3, 3)), "w")
    rows, _ = theano.scan(lambda v, h: T.tanh(T.dot(v, w) + h), sequences=x, outputs_info=T.zeros(3), name="rnn")
    return x, w, (rows[-1] ** 2).sum()


def size_of(png):
    """Width and height of a PNG file, whose pixels are unpacked to see that they are there."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, pixels, size = 8, b"", None
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at : at + 8])
        data = png[at + 8 : at + 8 + length]
        assert zlib.crc32(kind + data) == struct.unpack(">I", png[at + 8 + length : at + 12 + length])[0]
        if kind == b"IHDR":
            size = struct.unpack(">II", data[:8])
        pixels += data if kind == b"IDAT" else b""
        at += 12 + length
    assert size is not None and len(set(zlib.decompress(pixels))) > 10
    return size


def test_a_picture_is_a_png(tmp_path, capsys):
    x, _, cost = program()
    path = tmp_path / "graph.png"
    theano.printing.pydotprint(theano.function([x], cost), outfile=str(path), scan_graphs=True)
    assert str(path) in capsys.readouterr().out
    width, height = size_of(path.read_bytes())
    assert height > 300 < width
    assert sorted(p.name for p in tmp_path.iterdir()) == ["graph.png", "graph_rnn_0.png"]
    size_of((tmp_path / "graph_rnn_0.png").read_bytes())


def test_what_is_drawn_and_where_to(tmp_path, capsys):
    x, _, cost = program()
    theano.pydotprint([x * 2, x + 1], tmp_path / "two.svg", print_output_file=False)
    assert b"<svg" in (tmp_path / "two.svg").read_bytes() and capsys.readouterr().out == ""
    theano.pydotprint(cost, tmp_path / "without_ending", format="pdf")
    assert (tmp_path / "without_ending").read_bytes().startswith(b"%PDF")
    size_of(theano.pydotprint(cost, return_image=True))
    with pytest.raises(ValueError, match="gif"):
        theano.pydotprint(cost, tmp_path / "x", format="gif")
    with pytest.raises(OSError, match="nowhere"):
        theano.pydotprint(cost, tmp_path / "nowhere" / "x.png")


def test_boxes_and_lines():
    x, w, cost = program()
    nodes = io_toposort([], [cost])
    picture = picture_of(nodes, [cost], 70)
    assert picture.boxes[x] == ("x: TensorType(float64, matrix)", "input") and picture.boxes[w][1] == "shared"
    (loop,) = [node for node in nodes if node.op.__class__.__name__ == "Scan"]
    assert picture.boxes[loop] == ("for{cpu,rnn}", "loop") and picture.boxes["output", 0] == ("output 0", "output")
    assert {(v, node) for node in nodes for v in node.inputs if v.owner is None} <= set(picture.lines)
    level = {key: n for n, row in enumerate(picture.rows()) for key in row}
    assert level.keys() == picture.boxes.keys() and all(level[start] < level[end] for start, end in picture.lines)
    assert picture_of(nodes, [cost], 5).boxes[x][0] == "x: T…"


def test_without_matplotlib_the_error_names_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(NotImplementedError, match="matplotlib"):
        theano.pydotprint(T.dvector() * 2, tmp_path / "x.png")
    assert not list(tmp_path.iterdir())
