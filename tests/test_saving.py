"""Functions through files: `rs.save`, `rs.load`, weights alone, and programs in Rust that go on."""

import contextlib
import io
import json
import os
import runpy
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from helpers import same

import rscan as rs
from rscan.cli import main
from rscan.function import Function

HERE = Path(__file__).parent
ROOT = HERE.parent
RELEASED = HERE / "saved"


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
    shout = rs.function([x], rs.Print("x")(x))
    shout.save(path)
    with pytest.raises(rs.ParseError, match="there is no user op `print`"):
        rs.load(path)


def test_user_ops_are_given(tmp_path):
    from rscan import _native
    from rscan.variable import wrap

    op = _native.extern("double", True, lambda types: types, lambda arrays: [2 * arrays[0]])
    x = rs.dvector("x")
    (y,) = _native.apply(op, {}, [x._v])
    rs.function([x], wrap(y)).save(tmp_path / "f.rscan")
    same(rs.load(tmp_path / "f.rscan", ops=[op]).f([1.0, 2.0]), np.array([2.0, 4.0]))


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


# Released formats: `tests/saved` has a file of each, with what it gave.


@pytest.mark.parametrize("folder", sorted(p.name for p in RELEASED.iterdir()))
def test_files_of_released_formats(folder, tmp_path):
    m, expected = rs.load(RELEASED / folder / "model.rscan"), rs.load_params(RELEASED / folder / "expected.safetensors")
    losses = np.array([m.train(expected["x"], expected["y"]) for _ in range(len(expected["losses"]))])
    # The last bits depend on whether the processor multiplies and adds in one step.
    np.testing.assert_allclose(losses, expected["losses"], rtol=1e-10)
    np.testing.assert_allclose(m.predict(expected["x"]), expected["prediction"], rtol=1e-9)


def write_released(folder: Path) -> None:
    """Writes what a format's folder holds. Once per format, by hand: the files of a released format never change."""
    folder.mkdir(parents=True)
    train, predict, x, y = model()
    for _ in range(50):
        train(x, y)
    rs.save(folder / "model.rscan", train=train, predict=predict, docs={"train": "One step of descent."})
    losses = np.array([train(x, y) for _ in range(100)])
    rs.save_params(folder / "expected.safetensors", {"x": x, "y": y, "losses": losses, "prediction": predict(x)})


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
