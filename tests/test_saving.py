"""Functions through files: `rs.save`, `rs.load`, weights alone, and programs in Rust that go on."""

import contextlib
import io
import json
import os
import re
import runpy
import shutil
import struct
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest
from helpers import same

import rscan as rs
from rscan.cli import main
from rscan.function import Function

HERE = Path(__file__).parent
ROOT = HERE.parent


def model():
    """`train(x, y)`, which updates two weights, and `predict(x)`; with data."""
    rng = np.random.default_rng(7)
    w, b = rs.shared(rng.normal(size=(3, 3)) * 0.3, "w"), rs.shared(np.zeros(3), "b")
    x, y = rs.dmatrix("x"), rs.dvector("y")
    h, _ = rs.scan(lambda x, h: rs.tanh(h @ w + b + x), sequences=x, outputs_info=rs.zeros(3), name="cell")
    loss = rs.sum((h[-1] - y) ** 2)
    slopes = rs.grad(loss, [w, b])
    updates = [(v, v - 0.05 * g) for v, g in zip([w, b], slopes, strict=True)]
    train = rs.function([x, y], loss, updates=updates)
    return train, rs.function([x], h[-1]), rng.normal(size=(20, 3)), rng.normal(size=3)


def bits(value):
    return np.asarray(value).tobytes()


def test_training_goes_on(tmp_path):
    train, predict, x, y = model()
    for _ in range(50):
        train(x, y)
    path = tmp_path / "model.rscan"
    rs.save(path, train=train, predict=predict, docs={"train": "One step of descent."})
    m = rs.load(path)
    assert list(m) == ["train", "predict"] and sorted(m.shared) == ["b", "w"] and "train" in dir(m)
    for _ in range(20):
        assert bits(train(x, y)) == bits(m.train(x, y))
    assert bits(predict(x)) == bits(m["predict"](x))
    assert m.train.__doc__.startswith("One step of descent.") and m.train.text() == train.text().replace("fn f(", "fn train(")
    m.shared["w"].set_value(np.zeros((3, 3)))
    assert bits(predict(x)) != bits(m.predict(x))
    m.save(path)
    again = rs.load(path)
    assert bits(again.predict(x)) == bits(m.predict(x)) and again.train.doc == "One step of descent."
    with pytest.raises(AttributeError, match="no function 'evaluate'; it has train, predict"):
        m.evaluate
    # What was loaded is expressions again.
    slope = rs.function([slot.variable for slot in m.train.inputs], rs.grad(m.train.outputs[0], m.shared["b"]))
    assert slope(x, y).shape == (3,)


def test_everything_of_a_function(tmp_path):
    x, y, n = rs.dscalar("x"), rs.dvector("y"), rs.lscalar("n")
    stream = rs.RandomStream(5)
    rows, _ = rs.scan(lambda h: (h * 2, rs.until(h > 40)), outputs_info=rs.constant(1.0), n_steps=n)
    table = rs.constant(np.arange(100.0))
    inputs = [x, rs.In(y, value=np.ones(2)), rs.In(n, name="steps", strict=True)]
    f = rs.function(inputs, {"rows": rows, "noise": stream.normal(size=(2,)) + y * x, "sum": table.sum() + x}, name="f")
    f.save(tmp_path / "f.rscan")
    g = rs.load(tmp_path / "f.rscan").f
    for _ in range(2):
        first, second = f(0.5, steps=9), g(0.5, steps=9)
        assert list(first) == list(second) and all(bits(first[k]) == bits(second[k]) for k in first)
    with pytest.raises(rs.RscanTypeError, match="strict"):
        g(0.5, steps=np.int32(9))
    excluded = rs.function([x], rs.exp(x) + 0.0, excluding=["stabilise"])
    excluded.save(tmp_path / "f.rscan")
    assert rs.load(tmp_path / "f.rscan").f._passes == ("fast_run", ["stabilise"])
    for outputs in ([x + 1, x + 2], [x + 1], None):
        rs.function([x], outputs, on_unused_input="ignore").save(tmp_path / "f.rscan")
        same(rs.load(tmp_path / "f.rscan").f(1.0), rs.function([x], outputs, on_unused_input="ignore")(1.0))


def test_other_tools_see_the_weights(tmp_path):
    train, _, _, _ = model()
    path = tmp_path / "model.rscan"
    rs.save(path, train=train)
    raw = path.read_bytes()
    (n,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + n])
    start, end = header["w"]["data_offsets"]
    w = np.frombuffer(raw[8 + n + start : 8 + n + end]).reshape(header["w"]["shape"])
    weights = rs.load_params(path)
    assert bits(w) == bits(weights["w"]) and (8 + n) % 8 == 0
    signature = json.loads(header["__metadata__"]["rscan.signature"])["functions"][0]
    types = [(port["name"], port["dtype"], port["shape"]) for port in signature["inputs"]]
    assert types == [("x", "float64", ["n0", "n1"]), ("y", "float64", ["n2"])]
    assert signature["updates"] == ["w", "b"] and header["__metadata__"]["rscan.text"].startswith("fn train(")


def test_weights_alone(tmp_path):
    path = tmp_path / "w.safetensors"
    w, k = rs.shared(np.arange(3.0), "w"), rs.shared(np.array([True, False]), "k")
    rs.save_params(path, [w, k])
    found = rs.load_params(path)
    assert sorted(found) == ["k", "w"]
    same(found["w"], np.arange(3.0)), same(found["k"], np.array([True, False]))
    every = {d: np.arange(3).astype(d) for d in ("bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")}
    rs.save_params(path, every)
    for name, array in rs.load_params(path).items():
        same(array, every[name])
    rs.save_params(path, {"x": 2, "empty": np.zeros((0, 3)), "turned": np.arange(6.0).reshape(2, 3).T})
    same(rs.load_params(path)["turned"], np.arange(6.0).reshape(2, 3).T)
    before = path.read_bytes()
    twice = [w, rs.shared(1.0, "w")]
    for bad, text in [([rs.shared(0.0)], "has no name"), (twice, "two arrays are called 'w'"), ({"__metadata__": 1.0}, "__metadata__")]:
        with pytest.raises(rs.RscanValueError, match=text):
            rs.save_params(path, bad)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_saved_or_read(tmp_path):
    x = rs.dscalar("x")
    f, path = rs.function([x], x + 1, name="f"), tmp_path / "f.rscan"
    with pytest.raises(rs.RscanValueError, match="no functions"):
        rs.save(path)
    with pytest.raises(rs.RscanTypeError, match="`f`: Bound cannot be saved"):
        rs.save(path, f=f.bind(1.0))
    with pytest.raises(rs.RscanValueError, match="speaks of 'g'"):
        rs.save(path, f=f, docs={"g": ""})
    with pytest.raises(rs.RscanValueError, match="no string"):
        rs.save(path, f=rs.function([x], {1: x + 1}))
    with pytest.raises(rs.FileError, match="cannot be written") as caught:
        rs.save(tmp_path / "no" / "folder", f=f)
    assert isinstance(caught.value, OSError) and caught.value.code == "E0921"
    with pytest.raises(FileNotFoundError):
        rs.load(path)
    for wrong in (lambda: rs.load(0), lambda: rs.save(path, [f]), lambda: rs.Module([])):
        with pytest.raises(rs.RscanTypeError):
            wrong()
    assert not list(tmp_path.iterdir())
    f.save(path)
    whole = path.read_bytes()
    for bad in (whole[:-1], whole[:100], b"", whole.replace(b"float64", b"float32", 1), whole + b"\0"):
        path.write_bytes(bad)
        with pytest.raises(rs.ParseError) as caught:
            rs.load(path)
        assert caught.value.code == "E0922"


def twice(a):
    """A user's op, as plain Python."""
    return 2 * a


def test_user_ops_are_given(tmp_path):
    import rscan.theano as theano
    import rscan.theano.tensor as tt
    from rscan.theano.compile.ops import as_op

    path = tmp_path / "f.rscan"
    op = as_op(itypes=[tt.dvector], otypes=[tt.dvector])(twice)
    v = tt.dvector("v")
    rs.save(path, f=theano.function([v], op(v) + 1))
    name = "FromFunctionOp{twice}"
    with pytest.raises(rs.ParseError, match=r"there is no user op `FromFunctionOp\{twice\}`") as caught:
        rs.load(path)
    assert caught.value.code == "E0905" and "rs.load(path, ops=[op])" in str(caught.value)
    for ops in ([op], (op,), op, {name: op}, {name: twice}, {name: lambda a: [a * 2]}, {name: op, "another": twice}):
        m = rs.load(path, ops=ops)
        same(m.f([1.0, 2.0]), np.array([3.0, 5.0]))
        same(m.f([]), np.zeros(0))
        same(m.f([4.0]), np.array([9.0]))
    m.save(path)  # and goes on
    same(rs.load(path, ops=[op]).f([1.0]), np.array([3.0]))
    with pytest.raises(rs.RscanError, match="promised"):
        rs.load(path, ops={name: lambda a: np.ones((2, 2))}).f([1.0])
    for bad in ([twice], twice, [3], {name: 3}, {3: twice}, {name: None}):
        with pytest.raises(rs.RscanTypeError, match="no op that a file can use by itself") as caught:
            rs.load(path, ops=bad)
        assert caught.value.code == "E0809" and "ops={'name': function}" in str(caught.value)


def test_ops_that_are_classes_are_given(tmp_path):
    import rscan.theano as theano
    import rscan.theano.tensor as tt
    from rscan.theano.gof import Apply, Op

    class Halves(Op):
        """Two results: x / 2, and its sum."""

        def make_node(self, x):
            x = tt.as_tensor_variable(x)
            return Apply(self, [x], [x.type(), tt.scalar(dtype=x.dtype)])

        def perform(self, node, inputs, outputs):
            outputs[0][0], outputs[1][0] = inputs[0] / 2, np.asarray(inputs[0].sum() / 2)

        def grad(self, inputs, cotangents):
            return [cotangents[0] / 2 + cotangents[1] / 2]

    x = tt.dmatrix("x")
    halves, total = Halves()(x)
    f = theano.function([x], [halves, total, theano.grad(total, x)])
    f.save(tmp_path / "f.rscan")
    g = rs.load(tmp_path / "f.rscan", ops=[Halves()]).f
    for array in (np.ones((2, 3)), np.ones((1, 1)), np.ones((0, 3))):
        same(g(array), f(array))
    z = tt.dvector("z")
    squared = theano.OpFromGraph([z], [z**2], grad_overrides=lambda ins, cts: [cts[0] * 3], name="squared")
    theano.function([z], squared(z)).save(tmp_path / "f.rscan")
    same(rs.load(tmp_path / "f.rscan", ops=[squared]).f([3.0]), np.array([9.0]))


def test_prints_print_again(tmp_path, capsys):
    x, path = rs.dvector("x"), tmp_path / "f.rscan"
    first = rs.Print('the "x"', ["shape", "dtype"])(rs.Print("x is")(x))
    rs.function([x], [first * 2, rs.grad(rs.sum(first**2), x)]).save(path)
    same(rs.load(path).f([1.0, 2.0]), [np.array([2.0, 4.0]), np.array([2.0, 4.0])])
    assert capsys.readouterr().out == 'x is [1. 2.]\nthe "x" shape = (2,)\nthe "x" dtype = float64\n'
    seen = []
    key = 'print["x is"]'
    rs.load(path, ops={key: lambda a: seen.append(a) or a}).f([1.0])
    assert [a.tolist() for a in seen] == [[1.0]]
    # A file that somebody has made up prints nothing that arrays do not have.
    made_up = re.sub(rb"dtype(\W+\])", rb"dtyqe\1", path.read_bytes())
    assert b"dtyqe" in made_up
    path.write_bytes(repaired(made_up))
    same(rs.load(path).f([3.0])[0], np.array([6.0]))
    assert "dtyqe" not in capsys.readouterr().out


def repaired(data):
    """A file with the checksum set right."""
    at = data.index(b'"rscan.checksum":"') + len(b'"rscan.checksum":"')
    data = data[:at] + b"00000000" + data[at + 8 :]
    return data[:at] + b"%08x" % zlib.crc32(data) + data[at + 8 :]


def test_docs_come_along(tmp_path):
    x, y = rs.dvector("x"), rs.dscalar("y")
    f, path = rs.function([x, y], {"sum": rs.sum(x) * y, "largest": rs.max(x)}), tmp_path / "f.rscan"
    docs = {"f": {"": "Two numbers.", "x": "lengths\nin metres", "sum": "times y"}, "g": "One."}
    rs.save(path, f=f, g=rs.function([x], x[0]), h=rs.function([x], x[1]), docs={**docs, "h": {"return": "the second"}})
    m = rs.load(path)
    assert (m.f.doc, dict(m.f.docs), m.g.doc, dict(m.g.docs)) == ("Two numbers.", {"x": "lengths\nin metres", "sum": "times y"}, "One.", {})
    assert m.h.doc is None and m.h.docs == {"return": "the second"}
    assert m.f.__doc__.startswith(
        "Two numbers.\n\nA compiled function of 2 inputs:\n\n    x: float64[?], lengths\nin metres\n    y: float64\n"
    )
    assert "It returns:\n\n    sum: times y\n" in m.f.__doc__
    m.save(path)
    again = rs.load(path)
    assert again.f.docs == m.f.docs and again.f.doc == "Two numbers." and again.h.docs == m.h.docs
    rs.save(path, f=again.f, docs={"f": {"y": "a factor", "x": ""}})
    assert rs.load(path).f.docs["y"] == "a factor" and rs.load(path).f.doc == "Two numbers."
    with pytest.raises(rs.RscanValueError, match="'z', which `f` does not have; it has x, y, sum, largest") as caught:
        rs.save(path, f=f, docs={"f": {"z": "nothing"}})
    assert caught.value.code == "E0925"

    @rs.compile
    def ema(xs, start):
        """An average that forgets."""
        return rs.loop(lambda x, m: m + 0.5 * (x - m), over=xs, init=start)

    rs.save(path, ema=ema.lower(np.ones(3), 0.0))
    loaded = rs.load(path).ema
    assert loaded.doc == "An average that forgets."
    same(loaded(np.ones(2), 0.0), [ema(np.ones(2), 0.0)])
    for wrong, text in [
        (ema, r"ema=ema.lower(x, …)"),
        (rs.value_and_grad(lambda w: rs.sum(w * w)), ".lower(x, …)"),
        (lambda x: x, "rs.compile(f).lower"),
    ]:
        with pytest.raises(rs.RscanTypeError, match="cannot be saved") as caught:
            rs.save(path, ema=wrong)
        assert text in str(caught.value)


def test_lines_of_the_program_come_along(tmp_path):
    source = tmp_path / "program_that_goes.py"
    source.write_text("import rscan as rs\nx, y = rs.dvectors('x y')\nz = x + y\nf = rs.function([x, y], z)\n")
    f = runpy.run_path(str(source))["f"]
    f.save(tmp_path / "f.rscan")
    source.unlink()
    with pytest.raises(rs.ShapeError) as caught:
        rs.load(tmp_path / "f.rscan").f([1.0], [1.0, 2.0, 3.0]), rs.load(tmp_path / "f.rscan").f([1.0, 2.0], [1.0, 2.0, 3.0])
    assert "program_that_goes.py:3" in str(caught.value) and "3 | z = x + y" in str(caught.value)


def test_inspect(tmp_path, capsys):
    train, predict, _, _ = model()
    path = tmp_path / "model.rscan"
    rs.save(path, train=train, predict=predict)
    assert main(["inspect", str(path)]) == 0
    out = capsys.readouterr().out
    assert "train(x: float64[n0, n1], y: float64[n2]) -> (float64)" in out and "updates w, b" in out
    assert "loop cell (test_saving.py:" in out and "w: float64 (3, 3), 72 bytes" in out
    assert out.startswith(f"format 1, written by rscan {rs.__version__}, {path.stat().st_size} bytes\n")
    x = rs.lscalar("x")
    rs.save(path, f=rs.function([x], rs.constant(np.arange(1000.0))[x]), docs={"f": {"x": "which one"}})
    assert main(["inspect", str(path)]) == 0
    out = capsys.readouterr().out
    assert "  x: which one\n" in out and "constants\n  float64 (1000,), 8000 bytes\n" in out
    assert out.endswith("1 functions, 0 bytes in shared variables, 8000 bytes in constants\n")
    assert main(["inspect", str(tmp_path / "nothing")]) == 1 and main(["inspect", __file__]) == 1
    assert "E0922" in capsys.readouterr().err


def test_functions_of_programs_come_back_as_they_were(tmp_path, monkeypatch):
    made, old = [], Function._complete

    def noted(self):
        old(self)
        made.append(self)

    monkeypatch.setattr(Function, "_complete", noted)
    for program in sorted((HERE / "seeds").glob("*.py")):
        with contextlib.redirect_stdout(io.StringIO()):
            runpy.run_path(str(program))
    monkeypatch.setattr(Function, "_complete", old)
    assert len(made) >= 10
    for f in made:
        rs.save(tmp_path / "f.rscan", f=f)
        assert rs.load(tmp_path / "f.rscan").f._native.text() == f._native.text().replace(f"fn {f.name}(", "fn f(")


@pytest.mark.timeout(900)
@pytest.mark.skipif(shutil.which("cargo") is None, reason="no cargo")
def test_rust_goes_on_without_python(tmp_path):
    train, predict, x, y = model()
    for _ in range(50):
        train(x, y)
    rs.save(tmp_path / "model.rscan", train=train, predict=predict)
    rs.save_params(tmp_path / "data.safetensors", {"x": x, "y": y})
    losses = np.array([train(x, y) for _ in range(100)])
    # With the features of the whole workspace, under which the Rust tests have built it before.
    build = ["cargo", "build", "--quiet", "--workspace", "--all-features", "--example", "serve"]
    subprocess.run(build, cwd=ROOT, check=True)
    program = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "examples" / "serve"
    files = [tmp_path / name for name in ("model.rscan", "data.safetensors", "results.safetensors")]
    done = subprocess.run([program, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    results = rs.load_params(tmp_path / "results.safetensors")
    assert bits(results["losses"]) == bits(losses) and bits(results["prediction"]) == bits(predict(x))
    assert bits(rs.load(tmp_path / "model.rscan").predict(x)) == bits(predict(x))
