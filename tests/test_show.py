"""Pictures of graphs, what notebooks show, and explanations that say each thing once."""

import itertools
import json
import pickle
import re
import shutil
import subprocess
import sys
import types
import xml.etree.ElementTree as ET
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import rscan as rs

SVG = "{http://www.w3.org/2000/svg}"


def model():
    """A loop with taps, a loop inside, a stop, an update."""
    u, x0, w = rs.dvector("u"), rs.dvector("x0"), rs.shared(1.0, "w")

    def step(u, x):
        (u_tm1, u_t), (x_tm2, x_tm1) = u, x
        inner, _ = rs.scan(lambda p: p * x_tm1, outputs_info=rs.constant(1.0), n_steps=3, name="inner")
        return {"x": 0.5 * x_tm1 + 0.25 * x_tm2 + u_t - u_tm1 * w + inner[-1]}, rs.until(u_t > 5)

    out = rs.loop(step, over={"u": rs.taps(u, -1, 0)}, init={"x": rs.taps(x0, -2, -1)}, name="outer")
    return rs.function([u, x0], {"x": out.x, "total": out.x.sum()}, updates=[(w, w + 1)], name="model"), out


def texts(svg):
    return [element.text for element in ET.fromstring(svg).iter(SVG + "text")]


def points_of(path):
    """Points of a path of straight lines down and curves."""
    points = []
    for command, numbers in re.findall(r"([MCV])([^MCVL]*)", path):
        values = [float(n) for n in numbers.split()]
        x, y = points[-1] if points else (0, 0)
        if command == "M":
            points.append((values[0], values[1]))
        elif command == "V":
            points += [(x, y + (values[0] - y) * k / 8) for k in range(1, 9)]
        else:
            ends = [(x, y), *zip(values[::2], values[1::2], strict=True)]
            weights = [((1 - s) ** 3, 3 * s * (1 - s) ** 2, 3 * s * s * (1 - s), s**3) for s in np.linspace(0, 1, 9)[1:]]
            points += [tuple(sum(w * p[i] for w, p in zip(ws, ends, strict=True)) for i in (0, 1)) for ws in weights]
    return points


class TestPictures:
    def test_svg_shows_loops_states_taps_and_lines(self):
        f, _ = model()
        found = texts(rs.show(f))
        for part in ("loop outer", "loop inner, 3 steps", "state x", "taps -2, -1, keeps all"):
            assert part in found, found
        assert {"until", "next x", "sequence u", "captured w"} <= set(found)
        assert any(re.fullmatch(r"test_show\.py:\d+", text) for text in found)

    def test_boxes_lie_in_their_loop_and_do_not_overlap(self):
        f, _ = model()
        rects = [{k: float(r.get(k)) for k in ("x", "y", "width", "height")} for r in ET.fromstring(rs.show(f)).iter(SVG + "rect")]
        corners = [(r["x"], r["y"], r["x"] + r["width"], r["y"] + r["height"]) for r in rects]
        for i, (a, b, c, d) in enumerate(corners):
            for e, g, h, k in corners[i + 1 :]:
                apart = c <= e or h <= a or d <= g or k <= b
                inside = (a <= e and b <= g and h <= c and k <= d) or (e <= a and g <= b and c <= h and d <= k)
                assert apart or inside

    def test_lines_go_down_and_between_boxes(self):
        f, _ = model()
        x = rs.dvector("x")
        loops = rs.function([x], rs.grad(rs.sum(rs.scan(lambda x, h: rs.tanh(x * h) + x, sequences=x, outputs_info=x[0])[0]), x))
        for picture in (rs.show(f), rs.show(loops), rs.show(loops, optimised=True)):
            rects = [[float(r.get(k)) for k in ("x", "y", "width", "height")] for r in ET.fromstring(picture).iter(SVG + "rect")]
            plain = [r for r in rects if not any(0 < s[0] - r[0] < r[2] and 0 < s[1] - r[1] < r[3] for s in rects)]  # no loops
            for line in ET.fromstring(picture).iter(SVG + "path"):
                points = points_of(line.get("d"))
                if "Z" not in line.get("d").upper():
                    assert all(b >= a for (_, a), (_, b) in itertools.pairwise(points)), line.get("d")
                    crossed = [r for r in plain if any(r[0] < u < r[0] + r[2] and r[1] < v < r[1] + r[3] for u, v in points)]
                    assert not crossed, (line.get("d"), crossed)

    def test_every_line_of_mermaid_joins_two_boxes(self):
        f, _ = model()
        text = str(rs.show(f, "mermaid"))
        boxes = set(re.findall(r"^\s*(?:subgraph )?(\w+)\[", text, re.M))
        joined = re.findall(r"(\w+) -\.?->? (\w+)|(\w+) --> (\w+)", text)
        ends = {e for pair in joined for e in pair if e}
        assert ends <= boxes and len(joined) > 20
        assert not [pair for pair in joined if (pair[0] and pair[0] == pair[1]) or (pair[2] and pair[2] == pair[3])]
        assert text.count("subgraph") == text.count("end\n") == 2

    def test_dot_is_what_graphviz_reads(self):
        f, _ = model()
        text = str(rs.show(f, "dot"))
        assert text.startswith('digraph "model" {') and text.count("{") == text.count("}")
        program = shutil.which("dot")
        if program is None:
            pytest.skip("graphviz is not installed")
        assert subprocess.run([program, "-Tsvg"], input=text, text=True, capture_output=True).returncode == 0

    def test_text_and_optimised(self):
        f, _ = model()
        assert rs.show(f, "text") == f.text()
        assert rs.show(f, "text", optimised=True) == f.text(True)
        assert "fma" in rs.show(f, optimised=True) and "fma" not in rs.show(f)

    def test_large_graphs_are_cut_with_a_count(self):
        y = x = rs.dscalar("x")
        for i in range(5000):
            y = rs.sin(y) + i
        svg = rs.show(y)
        assert len(svg) < 200_000 and "… 9,802 more" in texts(svg)
        assert len(y._repr_html_()) < 200_000 and x is not y

    def test_a_large_loop_is_cut_inside(self):
        def step(h):
            for i in range(300):
                h = rs.sin(h) + i
            return h

        rows, _ = rs.scan(step, outputs_info=rs.dscalar("h0"), n_steps=3, name="long")
        found = texts(rs.show(rows[-1]))
        assert "loop long, 3 steps" in found and any("more" in text for text in found) and len(found) < 500

    def test_of_expressions_lists_and_compiled_functions(self):
        x = rs.dvector("x")
        assert "tanh" in texts(rs.show(rs.tanh(x)))
        assert {"output 0", "output 1"} <= set(texts(rs.show([x + 1, x * 2])))
        f = rs.compile(lambda x: rs.sum(x**2))
        f(np.ones(2)), f(np.ones((2, 2)))
        assert {"variant 0", "variant 1"} <= set(texts(rs.show(f)))
        g = rs.compile(lambda x, y: x * y + 1.0)
        g(1.0, 2.0)
        assert "fma" in rs.show(g, optimised=True) and "fma" not in rs.show(g)

    def test_multiple_results_of_one_op(self):
        sign, logdet = rs.linalg.slogdet(rs.dmatrix("m"))
        assert "slogdet" in texts(rs.show(sign * logdet))

    def test_names_are_escaped(self):
        x = rs.dvector("x")
        f = rs.function([x], x, name="<b>&")
        assert ET.fromstring(rs.show(f)).find(SVG + "title").text == "<b>&"

    def test_of_itself(self, tmp_path):
        f, _ = model()
        picture = rs.show(f)
        picture.save(tmp_path / "f.svg")
        assert (tmp_path / "f.svg").read_text(encoding="utf-8") == picture
        assert picture._repr_mimebundle_()["image/svg+xml"] == picture
        assert rs.show(f, "mermaid")._repr_mimebundle_()["text/vnd.mermaid"].startswith("flowchart")
        again = pickle.loads(pickle.dumps(picture))
        assert again == picture and again.kind == "svg"

    def test_unknown_formats_are_named(self):
        with pytest.raises(rs.RscanError, match="one of 'svg', 'dot', 'mermaid', 'text', not 'png'"):
            rs.show(rs.dvector("x") + 1, "png")


class Parsed(HTMLParser):
    """HTML, with tags that are opened and closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.words, self.tags = [], [], Counter()
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags[tag] += 1

    def handle_startendtag(self, tag, attrs):
        self.tags[tag] += 1

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def test_errors_in_notebooks_name_the_cell(monkeypatch):
    shell = types.SimpleNamespace(compile=types.SimpleNamespace(_filename_map={"/tmp/ipykernel_7/296.py": 3}))
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    error = rs.RscanError("text", labels=[("/tmp/ipykernel_7/296.py", 2, "here"), ("/home/me/other.py", 1, "there")])
    assert "--> cell [3]:2" in str(error) and "(other.py)" in str(error)
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: None))
    assert "--> 296.py:2" in str(error)


class TestNotebooks:
    def test_variables(self):
        x = rs.dvector("x")
        parsed = Parsed((rs.tanh(x) + 1)._repr_html_())
        assert "tanh(x) + 1.0" in parsed.words and parsed.tags["svg"] == 1 and parsed.tags["script"] == 0
        assert "float64[?]" in Parsed(x._repr_html_()).words
        assert "shared variable" in "".join(Parsed(rs.shared(1.0)._repr_html_()).words)
        rs.dvector("<i>")._repr_html_()
        assert "<i>" in Parsed(rs.dvector("<i>")._repr_html_()).words

    def test_functions(self):
        f, _ = model()
        words = Parsed(f._repr_html_()).words
        assert {"model", "input", "u", "float64[?]", "total", "update", "w"} <= set(words)
        assert "x0" in Parsed(f.bind(u=[1.0, 2.0])._repr_html_()).words

    def test_compiled_functions(self):
        f = rs.compile(lambda x: rs.sum(x**2), name="squares")
        assert "not called yet" in Parsed(f._repr_html_()).words
        f(np.ones(2)), f(np.ones((2, 2)))
        parsed = Parsed(f._repr_html_())
        assert {"squares", "float64[?]", "float64[?, ?]"} <= set(parsed.words) and parsed.tags["svg"] == 2

    def test_loops(self):
        _, out = model()
        words = Parsed(out._repr_html_()).words
        assert {"x", "float64[?]"} <= set(words)

    def test_explanations_and_profiles(self):
        x = rs.dscalar("x")
        rows, _ = rs.scan(lambda h: 2 * rs.sin(h), outputs_info=x, n_steps=100, name="waves", profile="waves")
        f = rs.function([x], rows[-1])
        f(0.3)
        assert "waves" in Parsed(f.explain()._repr_html_()).words
        words = Parsed(f.profile._repr_html_()).words
        assert "waves" in words and "1 runs, 100 steps" in words
        assert json.loads(json.dumps(f.profile.as_dict()))["loops"][1]["steps"] == 100

    def test_flames_of_a_profile(self):
        x = rs.dvector("x")
        deep = lambda h: rs.sum(rs.scan(lambda v, s: rs.sin(s) + v, sequences=x, outputs_info=h, name="<in>")[0])
        f = rs.function([x], rs.scan(deep, outputs_info=rs.constant(0.0), n_steps=200, name="out")[0][-1], name="both", profile=True)
        f(np.ones(500))
        svg = re.search(r"<svg.*</svg>", f.profile._repr_html_())[0]
        bars = [(g.find(SVG + "title").text.partition(":")[0], g.find(SVG + "rect")) for g in ET.fromstring(svg).iter(SVG + "g")]
        assert [name for name, _ in bars[:3]] == ["both", "scan", "out"]
        for (_, above), (_, below) in itertools.pairwise(bars[:3]):
            assert float(below.get("y")) > float(above.get("y")) and 0 < float(below.get("width")) <= 1.02 * float(above.get("width"))

    @pytest.mark.parametrize(("name", "wanted"), [("tutorial", {"image/svg+xml": 1, "text/html": 3}), ("gallery", {"image/png": 20})])
    def test_those_of_the_manual_run(self, name, wanted, tmp_path):
        for package in ("nbformat", "nbconvert", "ipykernel", "matplotlib", "pandas", "scipy"):
            pytest.importorskip(package, reason=f"{package} is not installed")
        import nbformat
        from nbconvert.preprocessors import ExecutePreprocessor

        notebook = nbformat.read(Path(__file__).parent.parent / "docs" / f"{name}.ipynb", as_version=4)
        ExecutePreprocessor(timeout=120).preprocess(notebook, {"metadata": {"path": str(tmp_path)}})
        kinds = Counter(key for cell in notebook.cells for out in cell.get("outputs", []) for key in out.get("data", {}))
        assert all(kinds[kind] >= n for kind, n in wanted.items()), kinds
        assert not [out for cell in notebook.cells for out in cell.get("outputs", []) if out.output_type == "error"]


def test_explanations_say_each_thing_once():
    f, _ = model()
    f([1.0, 2.0, 3.0], [1.0, 2.0])
    lines = [line for line in str(f.explain()).splitlines() if not line.startswith(" ")]
    assert [line for line, n in Counter(lines).items() if n > 1] == []
    assert lines[0] == "function model: 1 loop"  # the loop inside is unrolled
    notes = f.explain().passes
    undone = {(n.name, n.place) for n in notes if not n.done}
    assert len(undone) == sum(not n.done for n in notes)


def test_before_and_after_beside_each_other():
    x = rs.dvector("x")
    f = rs.function([x], rs.sum(rs.exp(x) * 1.0) + rs.sum(rs.exp(x) * 1.0))
    texts = "".join(ET.fromstring(rs.show(f, optimised="both")).itertext())
    assert "as written" in texts and "as it runs" in texts
    written, runs = (rs.show(f, "text", optimised=how) for how in (False, True))
    assert written != runs and rs.show(f, "text", optimised="both") == f"# as written\n{written}\n# as it runs\n{runs}"
    for form in ("dot", "mermaid"):
        both = rs.show(f, form, optimised="both")
        assert len(both) > max(len(rs.show(f, form, optimised=how)) for how in (False, True))
        assert both.count("as written") == both.count("as it runs") == 1


def test_a_pass_that_is_left_out_says_nothing():
    x, w = rs.dmatrix("x"), rs.dmatrix("w")
    rows = rs.loop(lambda x, h: rs.tanh(x @ w + h * rs.exp(w[0])), over=x, init=rs.zeros(3))
    cost = rs.sum(rows[-1] ** 2)
    outputs = [cost, rs.grad(cost, w)]
    explained = rs.function([x, w], outputs).explain()
    ran = {note.name for note in explained.passes if note.done}
    assert len(ran) >= 4
    for name in ran:
        other = rs.function([x, w], outputs, excluding=[name]).explain()
        assert name not in {note.name for note in other.passes} and f"\n{name}:" not in str(other)
    assert repr(explained) == str(explained), "a console shows what print shows"


def test_files_of_pixels_are_refused(tmp_path):
    picture = rs.show(rs.exp(rs.dscalar("x")))
    with pytest.raises(rs.errors.RscanValueError, match="the text of a picture, in the format 'svg'"):
        picture.save(tmp_path / "f.PNG")
    assert not list(tmp_path.iterdir())
    picture.save(tmp_path / "f.svg")
    assert (tmp_path / "f.svg").read_text(encoding="utf-8") == picture
