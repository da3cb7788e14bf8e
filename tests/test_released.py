"""Files of released formats: `tests/saved` has a folder for each, whose files never change, with what they gave."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from test_saving import model

import rscan as rs

RELEASED = Path(__file__).parent / "saved"
FOLDERS = sorted(p.name for p in RELEASED.iterdir())
SUMS = "SHA256SUMS"


def near(found, expected):
    """Equal dtype and shape, and values but for the last bits: they depend on whether the processor multiplies and adds in one step."""
    found = np.asarray(found)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-10 if expected.dtype == "float64" else 1e-5)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("folder", FOLDERS)
def test_files_are_those_that_were_released(folder):
    lines = (RELEASED / folder / SUMS).read_text().splitlines()
    sums = {name: digest for digest, name in (line.split("  ") for line in lines)}
    files = {path.name: path.read_bytes() for path in (RELEASED / folder).iterdir() if path.name != SUMS}
    assert {name: hashlib.sha256(data).hexdigest() for name, data in files.items()} == sums


@pytest.mark.parametrize("folder", FOLDERS)
def test_training_goes_on(folder):
    m, expected = rs.load(RELEASED / folder / "model.rscan"), rs.load_params(RELEASED / folder / "expected.safetensors")
    losses = np.array([m.train(expected["x"], expected["y"]) for _ in range(len(expected["losses"]))])
    near(losses, expected["losses"])
    near(m.predict(expected["x"]), expected["prediction"])


def values(results):
    """The arrays among results."""
    return results.values() if isinstance(results, dict) else results if isinstance(results, list) else [results]


@pytest.mark.parametrize("folder", FOLDERS)
def test_everything_gives_what_it_gave(folder, capsys):
    m, expected = rs.load(RELEASED / folder / "everything.rscan"), rs.load_params(RELEASED / folder / "calls.safetensors")
    assert len(m) >= 8 and {name.split(".")[0] for name in expected} == set(m)
    for name, f in m.items():
        of = {kind: [expected[k] for k in sorted(expected) if k.startswith(f"{name}.{kind}.")] for kind in ("argument", "result", "update")}
        found = list(values(f(*of["argument"])))
        for got, want in zip([*found, *(shared.get_value() for shared, _ in f.updates)], of["result"] + of["update"], strict=True):
            near(got, want)
    assert capsys.readouterr().out == "x is [1. 2.]\n"
    assert list(m.until(1.5)) == ["rows", "steps"] and m.until.doc == "Grows until it is large."
    assert m.until.docs == {"x": "where it begins", "rows": "one per step"} and "x: float64, where it begins" in m.until.__doc__
    assert m.default() == m.default([1.0, 1.0])
    with pytest.raises(rs.ShapeError, match=r"test_released\.py"):  # with the line of the program that made it
        m.nested(np.ones((2, 3)), np.ones(2))


def test_what_the_first_format_gave_is_right():
    expected = rs.load_params(RELEASED / "1" / "calls.safetensors")
    rows = [1.25]
    while len(rows) < 2 or rows[-2] <= 40:  # a step looks at the row that it is given
        rows.append(rows[-1] ** 2 + 0.5)
    near(expected["until.result.000"], np.array(rows[1:]))
    assert expected["until.result.001"] == len(rows) - 1
    assert expected["filter.result.000"].tolist() == [1.0, 1.5, 1.0]
    near(expected["constants.result.000"], np.array([9.0, 9801.0, 9801.0]) + np.pi)
    found = [expected[f"dtypes.result.{i:03}"] for i in range(6)]
    assert [a.tolist() for a in found[:5]] == [[16, 16, 49], 7, [2, -3], [65533, 1], [True, False, True]]
    assert [str(a.dtype) for a in found] == ["int8", "int64", "int32", "uint16", "bool", "float32"]
    assert expected["updates.update.000"].tolist() == [[1.5, 1.5], [1.5, 1.5]] and expected["updates.update.002"].all()
    m, v = expected["nested.argument.000"], expected["nested.argument.001"]
    sums, s = [], 0.25
    for row in m * v:
        for e in row:
            s = np.tanh(s + e)
        sums.append(s)
    near(expected["nested.result.000"], np.array(sums))


@pytest.mark.parametrize("folder", FOLDERS)
def test_sessions_go_on_or_are_refused(folder):
    """A snapshot lasts as long as its step stays what it was (docs/format.md); its states are tensors all the same."""
    path = RELEASED / folder / "filter.session"
    session = rs.load(RELEASED / folder / "everything.rscan").filter.session(h0=0.0)
    assert rs.load_params(path)["state.h0"].tolist() == [1.5]
    try:
        session.restore(path.read_bytes())
    except rs.RscanError as error:
        assert error.code == "E0534"
    else:
        assert len(session) == 2 and session.step(0.5) == 1.0


def everything() -> dict[str, rs.Function]:
    """Functions that use whatever a file can hold."""
    x, v, n, m = rs.dscalar("x"), rs.dvector("v"), rs.lscalar("n"), rs.dmatrix("m")
    rows, _ = rs.scan(lambda h: (h * h + 0.5, rs.until(h > 40)), outputs_info=x, n_steps=50)
    stream = rs.RandomStream(5)
    table = rs.constant(np.arange(100.0) ** 2)
    w = rs.shared(np.ones((2, 2), "f4"), "w", shape=(2, 2))
    count, seen = rs.shared(np.int64(0), "count"), rs.shared(np.zeros(3, bool), "seen", shape=(None,))
    places = rs.lvector("places")
    a, b, u = rs.bvector("a"), rs.ivector("b"), rs.tensor("uint16", [None], "u")

    def outer(row, s):
        return rs.loop(lambda e, t: rs.tanh(t + e), over=row, init=s).last

    sums = rs.loop(outer, over=m * v, init=rs.constant(0.25))
    h0 = rs.dscalar("h0")
    return {
        "until": rs.function([x], {"rows": rows, "steps": rows.shape[0]}),
        "random": rs.function([n], [stream.normal(size=(2,)) * n, stream.uniform(size=(n,))]),
        "default": rs.function([rs.In(v, value=np.ones(2))], rs.sum(v)),
        "constants": rs.function([places], table[places] + np.pi),
        "dtypes": rs.function([a, b, u], [a * a, rs.sum(a), b // 3, u - u * 2, a > 0, rs.cast(b, "float32") / 7]),
        "nested": rs.function([m, v], [sums, *rs.grad(rs.sum(sums), [m, v])]),
        "updates": rs.function([], [], updates={w: w * 0.5 + 1, count: count + 1, seen: rs.logical_not(seen)}),
        "filter": rs.function([v, h0], rs.loop(lambda e, h: (h + e) * 0.5, over=v, init=h0)),
        "prints": rs.function([v], rs.Print("x is")(v) * 2),
    }


ARGUMENTS = {
    "until": [1.25],
    "random": [3],
    "default": [np.array([1.5, 2.0])],
    "constants": [np.array([3, 99, -1])],
    "dtypes": [np.array([100, -100, 7], "i1"), np.array([7, -7], "i4"), np.array([3, 65535], "u2")],
    "nested": [np.arange(6.0).reshape(2, 3) / 8, np.array([0.5, -0.25, 1.0])],
    "updates": [],
    "filter": [np.array([1.0, 2.0, 0.5]), 1.0],
    "prints": [np.array([1.0, 2.0])],
}


def write_released(folder: Path) -> None:
    """Writes what a format's folder holds. Once per format, by hand: the files of a released format never change."""
    folder.mkdir(parents=True)
    train, predict, x, y = model()
    for _ in range(50):
        train(x, y)
    rs.save(folder / "model.rscan", train=train, predict=predict, docs={"train": "One step of descent."})
    losses = np.array([train(x, y) for _ in range(100)])
    rs.save_params(folder / "expected.safetensors", {"x": x, "y": y, "losses": losses, "prediction": predict(x)})
    write_everything(folder)


def write_everything(folder: Path) -> None:
    """Writes the second file of a folder, what its functions gave, a session, and the checksums of all."""
    functions = everything()
    docs = {"until": {"": "Grows until it is large.", "x": "where it begins", "rows": "one per step"}}
    rs.save(folder / "everything.rscan", functions, docs=docs)
    calls = {}
    for name, f in functions.items():
        found = list(values(f(*ARGUMENTS[name])))
        given = f._arguments(tuple(ARGUMENTS[name]), {})
        for kind, arrays in {"argument": given, "result": found, "update": [s.get_value() for s, _ in f.updates]}.items():
            calls |= {f"{name}.{kind}.{i:03}": np.asarray(a) for i, a in enumerate(arrays)}
    rs.save_params(folder / "calls.safetensors", calls)
    session = functions["filter"].session(h0=1.0)
    session.run([1.0, 2.0])
    (folder / "filter.session").write_bytes(session.snapshot())
    files = sorted(path for path in folder.iterdir() if path.name != SUMS)
    (folder / SUMS).write_text("".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files))
