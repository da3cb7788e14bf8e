"""Errors: classes, texts, pages; no panic reaches the user."""

import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import rscan as rs
from rscan import _native, errors
from rscan.variable import apply


def test_classes_are_also_pythons():
    for cls, also in [
        (errors.RscanTypeError, TypeError), (errors.ShapeError, ValueError), (errors.RscanIndexError, IndexError),
        (errors.ScanTypeError, TypeError), (errors.ScanTypeError, ValueError), (errors.NonScalarCostError, TypeError),
        (errors.LinAlgError, np.linalg.LinAlgError), (errors.RscanMemoryError, MemoryError), (errors.UnsupportedError, NotImplementedError),
        (errors.InternalError, RuntimeError), (errors.DisconnectedInputError, ValueError), (errors.AxisError, IndexError),
    ]:  # fmt: skip
        assert issubclass(cls, also) and issubclass(cls, rs.RscanError)


def test_an_error_of_the_core_says_where():
    x = rs.tensor("float64", (3,), "x")
    with pytest.raises(errors.ShapeError) as caught:
        x + rs.tensor("float64", (4,), "y")
    error = caught.value
    assert error.code == "E0201" and error.labels[0][0].endswith("test_errors.py")
    lines = str(error).splitlines()
    assert lines[0].startswith("[E0201] ") and "-->" in lines[1]
    assert 'x + rs.tensor("float64", (4,), "y")' in str(error)
    assert error.render().startswith("ShapeError[E0201]")


def test_errors_pickle():
    with pytest.raises(rs.RscanError) as caught:
        bool(rs.vector("x"))
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value) and type(copy) is type(caught.value) and copy.code == "E0801"


def test_a_runtime_error_names_the_line():
    x = rs.vector("x")
    y = x[5]
    with pytest.raises(IndexError) as caught:
        rs.function([x], y)([1.0])
    assert "y = x[5]" in str(caught.value)


def test_panics_become_internal_errors():
    with pytest.raises(rs.RscanError) as caught:
        _native.apply("no such op", {}, [])
    assert caught.value.code == "E0901"
    x = rs.vector("x")
    with pytest.raises(rs.RscanError):
        _native.apply("reduce", {"kind": "sum", "axes": [7], "keepdims": False}, [x._v])
    with pytest.raises(rs.RscanError):
        _native.apply("exp", {}, [])


SOURCES = sorted(Path(rs.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize("code", sorted({code for file in SOURCES for code in re.findall(r'"(E\d{4})"', file.read_text())}))
def test_every_code_has_a_page(code):
    page = rs.error_page(code)
    assert page is not None and page.startswith(f"# {code}: ") and len(page.splitlines()) >= 5


def test_unknown_codes():
    assert rs.error_page("E0000") is None


def test_user_ops():
    def infer(ins):
        return [(dtype, shape) for dtype, shape in ins]

    def vjp(inputs, outputs, cotangents):
        x = rs.as_variable(inputs[0])
        return [(rs.as_variable(cotangents[0]) * 2 * x)._v]

    op = _native.extern("square_in_python", True, infer, lambda ins: [ins[0] ** 2], vjp)
    x = rs.vector("x")
    y = apply(op, {}, x)
    assert rs.function([x], y)([3.0]) == 9
    (g,) = _native.grad(y.sum()._v, [x._v])
    assert rs.function([x], rs.as_variable(g))([3.0]) == 6


class Mine(Exception):
    pass


def test_exceptions_of_user_code_come_out_unchanged():
    def fail(*_):
        raise Mine("here")

    def infer(ins):
        return list(ins)

    x = rs.vector("x")
    y = apply(_native.extern("fails", True, infer, fail), {}, x)
    with pytest.raises(Mine, match="here"):
        rs.function([x], y)([1.0])
    with pytest.raises(Mine, match="here"):
        apply(_native.extern("fails early", True, fail, fail), {}, x)
    with pytest.raises(errors.GradientError, match="no gradient"):
        _native.grad(y.sum()._v, [x._v])
    bad = _native.extern("bad gradient", True, infer, lambda ins: ins, lambda *_: [])
    with pytest.raises(errors.GradientError, match="0 cotangents"):
        _native.grad(apply(bad, {}, x).sum()._v, [x._v])


def test_the_state_of_a_legacy_stream():
    state = _native.mt_state(42)
    kind, key, position, *_ = np.random.RandomState(42).get_state()
    assert kind == "MT19937" and state.dtype == "uint32" and state.shape == (628,)
    assert state[:624].tolist() == key.tolist() and state[624] == position
