"""Variables: identity, names, what they refuse."""

import gc

import numpy as np
import pytest

import rscan as rs


def test_identity_and_hash():
    x, y = rs.vector("x"), rs.vector("x")
    assert x == x and x != y and len({x, y, x}) == 2 and x in [y, x] and {x: 1}[x] == 1
    z = rs.exp(x)
    assert rs.function([x], z).outputs[0] is z
    assert rs.equal(x, y).dtype == "bool" and rs.not_equal(x, y).dtype == "bool"


def test_the_same_expression_is_the_same_object():
    x = rs.vector("x")
    x.tag.test_value = 3
    y = rs.exp(x)
    leaf = rs.function([x], y).inputs[0].variable
    assert leaf is x and leaf.tag.test_value == 3
    key = y._v
    del y
    gc.collect()
    assert rs.as_variable(key)._v == key


def test_names():
    x = rs.vector("x")
    assert (x.name, x.ndim, x.dtype, x.static_shape) == ("x", 1, "float64", (None,))
    x.name = "y"
    assert repr(x) == "y: float64[?]"
    x.name = None
    assert x.name is None
    assert "exp" in repr(rs.exp(x))
    assert repr(rs.constant(3)) == "3: int64"


CONSTRUCTORS = [
    ("scalar", "float64", 0), ("vector", "float64", 1), ("matrix", "float64", 2), ("tensor3", "float64", 3), ("tensor4", "float64", 4),
    ("fscalar", "float32", 0), ("dvector", "float64", 1), ("imatrix", "int32", 2), ("lscalar", "int64", 0), ("bvector", "int8", 1),
    ("wvector", "int16", 1), ("ftensor4", "float32", 4), ("row", "float64", 2), ("dcol", "float64", 2), ("ubvector", "uint8", 1),
]  # fmt: skip


@pytest.mark.parametrize(("name", "dtype", "ndim"), CONSTRUCTORS)
def test_constructors(name, dtype, ndim):
    v = getattr(rs, name)("v")
    assert (v.dtype, v.ndim, v.name) == (dtype, ndim, "v")
    assert getattr(rs, name)().name is None


def test_rows_and_columns_and_plurals():
    assert rs.row().static_shape == (1, None) and rs.col().static_shape == (None, 1)
    assert [v.name for v in rs.vectors("a b")] == ["a", "b"] == [v.name for v in rs.dvectors("a", "b")]
    assert len(rs.imatrices(3)) == 3 and rs.imatrices(3)[0].dtype == "int32"
    assert [v.dtype for v in rs.scalars("a, b", dtype="int8")] == ["int8", "int8"]
    assert rs.vector(shape=(3,)).static_shape == (3,)
    assert rs.tensor("int8", (2, None)).static_shape == (2, None)
    for bad in (
        lambda: rs.tensor("complex64"),
        lambda: rs.vector(3),
        lambda: rs.vector(shape=(2, 3)),
        lambda: rs.tensor("int8", (-1,)),
    ):
        with pytest.raises(TypeError):
            bad()


def test_conversions_that_need_a_value():
    x = rs.vector("x")
    for use in (
        bool,
        float,
        int,
        len,
        iter,
        np.asarray,
        np.array,
        lambda v: [1, 2][v],
        lambda v: 3 in v,
        lambda v: v > 0 and v < 1,
    ):
        with pytest.raises(TypeError, match=r"x: |gt\("):
            use(x)
    with pytest.raises(TypeError, match=r"rs\.where"):
        bool(x > 0)
    with pytest.raises(TypeError, match=r"test_variable\.py"):
        float(x)


def test_known_extents_iterate():
    x = rs.tensor("float64", (2, None))
    a, b = x
    assert len(x) == 2 and a.ndim == 1 and b.ndim == 1
    with pytest.raises(TypeError, match="scalar"):
        iter(rs.scalar())


def test_conversions_to_variables():
    x = rs.scalar("x")
    assert rs.as_variable(x) is x
    assert rs.as_variable([x, 1.0, 2]).static_shape == (3,)
    assert rs.as_variable([[x, 1.0], [2, x]]).eval({x: 5}).tolist() == [[5, 1], [2, 5]]
    assert rs.as_variable([1, 2]).dtype == "int64" and rs.as_variable([]).dtype == "float64"
    assert rs.constant(3, dtype="int8", name="three").name == "three"
    for bad in ("text", None, object(), 1j, np.zeros(2, complex), [[1], [1, 2]], {"a": 1}):
        with pytest.raises(TypeError):
            rs.as_variable(bad)
    with pytest.raises(TypeError):
        rs.constant(300, dtype="int8")
    with pytest.raises(TypeError):
        rs.constant(x)


def test_operators_leave_strangers_alone():
    class Stranger:
        def __radd__(self, other):
            return "mine"

    assert rs.scalar() + Stranger() == "mine"
    with pytest.raises(TypeError):
        rs.scalar() + "text"


def test_constants_have_values():
    a = np.arange(3)
    c = rs.constant(a)
    a[0] = 9
    assert c._v.kind == "const" and c._v.value.tolist() == [0, 1, 2]


def test_the_core_knows_lines():
    x = rs.vector("x")
    y = rs.exp(x)
    file, line, function = rs._native.span_place(y._v.span)
    assert file.endswith("test_variable.py") and function == "test_the_core_knows_lines" and line > 100


def test_long_chains():
    y = x = rs.scalar("x")
    for _ in range(20_000):
        y = y + 1
    assert rs.function([x], y)(0) == 20_000
    del y
    gc.collect()
