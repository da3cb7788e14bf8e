"""Parameters in files: structures of arrays and shared variables, by names with dots."""

import dataclasses
import typing

import numpy as np
import pytest

import rscan as rs


@dataclasses.dataclass
class Layer:
    w: typing.Any
    b: typing.Any


class Pair(typing.NamedTuple):
    first: typing.Any
    second: typing.Any


def model(fill=0.0):
    """Arrays in everything that is a structure."""
    return {
        "layers": [Layer(np.full((2, 3), fill), np.full(3, fill + 1, "float32")), Layer(np.full((3, 1), fill + 2), np.zeros(1))],
        "pair": Pair(np.arange(3), (True, np.float32(fill))),
        "rate": fill,
    }


NAMES = ["layers.0.b", "layers.0.w", "layers.1.b", "layers.1.w", "pair.first", "pair.second.0", "pair.second.1", "rate"]


def shared_model():
    return {"w": rs.shared(np.zeros((2, 2)), "weights"), "inner": [rs.shared(0.0), Layer(rs.shared(np.zeros(2, "float32")), np.zeros(1))]}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "w.safetensors"


def test_what_was_saved_comes_back(path):
    rs.save_params(path, model(0.5))
    assert sorted(rs.load_params(path)) == NAMES
    found = rs.load_params(path, like=model())
    assert isinstance(found["layers"][1], Layer) and isinstance(found["pair"], Pair) and isinstance(found["pair"].second, tuple)
    np.testing.assert_array_equal(found["layers"][0].w, np.full((2, 3), 0.5))
    assert found["layers"][0].b.dtype == np.float32 and found["pair"].second[0].dtype == bool and found["rate"] == 0.5
    again = path.with_name("again")
    rs.save_params(again, found)
    assert again.read_bytes() == path.read_bytes()


def test_shared_variables_get_their_values(path):
    one, other = shared_model(), shared_model()
    one["w"].set_value(np.eye(2))
    one["inner"][1].w.set_value(np.array([3.0, 4.0], "float32"))
    one["inner"][1].b[:] = 7.0
    rs.save_params(path, one)
    assert sorted(rs.load_params(path)) == ["inner.0", "inner.1.b", "inner.1.w", "w"]
    f = rs.function([], rs.sum(other["w"]))
    found = rs.load_params(path, like=other)
    assert found["w"] is other["w"] and f() == 2.0 and found["inner"][1].w.get_value().tolist() == [3.0, 4.0]
    assert found["inner"][1].b.tolist() == [7.0] and other["inner"][1].b.tolist() == [0.0]


def test_lists_of_shared_variables_go_by_their_own_names(path):
    w, b = rs.shared(np.eye(2), "w"), rs.shared(0.5, "b")
    rs.save_params(path, [w, b])
    b.set_value(0.0)
    assert sorted(rs.load_params(path)) == ["b", "w"]
    assert rs.load_params(path, like=[b, w])[0] is b and b.get_value() == 0.5


def test_names_that_are_missing_or_too_many_are_listed(path):
    rs.save_params(path, {"w": 1.0, "extra": {"a": 2.0}})
    with pytest.raises(rs.RscanValueError) as caught:
        rs.load_params(path, like={"w": 0.0, "b": [0.0]})
    assert caught.value.code == "E0925" and caught.value.notes == ["the file lacks: b.0", "only the file has: extra.a"]


def test_other_shapes_are_named(path):
    rs.save_params(path, {"a": np.ones(2), "b": np.ones(3)})
    mine = {"a": rs.shared(np.zeros(2)), "b": rs.shared(np.zeros(4))}
    with pytest.raises(rs.ShapeError, match=r"`b` has the shape \(3,\) in the file, and \(4,\) in `like`"):
        rs.load_params(path, like=mine)
    assert mine["a"].get_value().tolist() == [0.0, 0.0]


def test_all_values_are_set_or_none(path):
    rs.save_params(path, {"a": np.ones(2), "b": np.ones(2) / 3})
    mine = {"a": rs.shared(np.zeros(2)), "b": rs.shared(np.zeros(2, "float32"))}
    with pytest.raises(rs.RscanTypeError) as caught:
        rs.load_params(path, like=mine)
    assert caught.value.code == "E0506" and mine["a"].get_value().tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("params", "kind", "words"),
    [
        ({"a": {"b": 1.0}, "a.b": 2.0}, rs.RscanValueError, "two arrays are called 'a.b'"),
        ({"a": {1: 2.0}}, rs.RscanValueError, "number 0 of what is to be saved has no name"),
        ({"a": [None]}, rs.RscanTypeError, "`a.0` is no array of numbers: None"),
        ({"a": rs.dscalar("x") + 1}, rs.RscanTypeError, "`a` is an expression, which has no value"),
        (np.ones(2), rs.RscanValueError, "has no name"),
    ],
)
def test_what_cannot_be_saved(params, kind, words, path):
    with pytest.raises(kind, match=words):
        rs.save_params(path, params)
    assert not path.exists()


def test_the_package_safetensors_reads_and_writes_the_same(path):
    safetensors = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")
    rs.save_params(path, model(0.5))
    theirs = safetensors.load_file(path)
    assert sorted(theirs) == NAMES and theirs["layers.0.b"].dtype == np.float32
    safetensors.save_file({name: np.array(array) for name, array in theirs.items()}, path)
    np.testing.assert_array_equal(rs.load_params(path, like=model())["layers"][1].w, np.full((3, 1), 2.5))
