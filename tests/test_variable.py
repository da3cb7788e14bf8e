"""Variables: identity, names, what they refuse."""

import gc
import operator

import numpy as np
import pytest
from helpers import DTYPES, like_numpy

import rscan as rs
import rscan.theano


def test_variables_are_keys_by_identity():
    x, y = rs.vector("x"), rs.vector("x")
    z = rs.exp(x)
    assert rs.function([x], z).outputs[0] is z
    assert len({x, y, x}) == 2 and {x: 1, y: 2}[y] == 2 and y not in {x: 1} and {x, y} == {y, x}
    assert x in [x, y] and (x,) == (x,) and {"x": x} == {"x": x}
    numbers = {n: n for n in range(-1000, 1000)} | {id(x): "id", "x": "name", None: "none", (1, x): "tuple"}
    mixed = {**numbers, x: "x", y: "y"}
    assert (mixed[x], mixed[y], mixed[id(x)], mixed[3], mixed[(1, x)]) == ("x", "y", "id", 3, "tuple")
    many = [rs.scalar() for _ in range(5000)]
    assert len({hash(v) for v in many}) == 5000 and len(set(many)) == 5000
    assert hash(x) == hash(rs.as_variable(x._v))
    shared = rs.shared(1.0)
    assert {shared: 1}[rs.as_variable(shared._v)] == 1


def test_one_object_per_output_of_a_loop():
    out = rs.loop(lambda x, h: h + x, over=rs.vector("x"), init=0.0)
    assert rs.as_variable(out._v) is out and {out: 1}[rs.as_variable(out._v)] == 1


#: Pairs of operands of every kind that `==` meets.
COMPARED = [
    *(
        (np.array([-1, 0, 1, 2]).astype(a), np.array([0, 0, 1, 3]).astype(b))
        for a in DTYPES
        for b in ("bool", "int8", "uint64", "float32", "float64")
    ),
    (np.array([np.nan, np.inf, -0.0, 0.0]), np.array([np.nan, np.inf, 0.0, 1.0])),
    (np.arange(6.0).reshape(2, 3), np.array([0.0, 4.0, 2.0])),
    (np.zeros((0, 3)), np.zeros(3)),
    (np.array(2.0), np.array([1.0, 2.0])),
]


@pytest.mark.parametrize("compare", [operator.eq, operator.ne], ids=["eq", "ne"])
def test_equality_is_elementwise_as_numpys(compare):
    for a, b in COMPARED:
        like_numpy(lambda _, x, y: compare(x, y), a, b)
    x = np.array([0.0, 1.0, np.nan, -2.0])
    numbers = (0, 1.0, -2, True, float("nan"), np.float64(1), np.int8(-2), np.array(0))
    for other in (*numbers, np.array([0.0, 2.0, np.nan, -2.0]), [0, 1, 2, -2], (0.0, 1.5, 2.0, 3.0)):
        for build in (lambda _, v, o=other: compare(v, o), lambda _, v, o=other: compare(o, v)):
            like_numpy(build, x)
    for other in (2, True, 0.5, np.int64(2)):
        like_numpy(lambda _, v, o=other: compare(o, v), np.array([0, 2, 127], np.int8))


def test_what_equality_does_not_compare():
    x = rs.vector("x")
    for other in (None, "x", b"x", object(), {}, {x}, int, print, ..., 1j):
        assert (x == other, other == x, x != other, other != x) == (False, False, True, True)
    # Theano's variables keep Theano's rule, on either side.
    t = rs.theano.tensor.dvector("t")
    assert (t == t, t == x, x == t, t != t, t != x, x != t) == (True, False, False, False, True, True)

    class Stranger:
        def __eq__(self, other):
            return "mine"

    assert (x == Stranger(), Stranger() == x) == ("mine", "mine")


def test_equality_has_no_truth_value():
    x, y = rs.scalar("x"), rs.scalar("y")
    for ask in (
        lambda: bool(x == y),
        lambda: x == y or None,
        lambda: y in [x],
        lambda: [x].index(y),
        lambda: bool(x != y),
        lambda: sorted([x == y, y == x]),
    ):
        with pytest.raises(rs.RscanTypeError, match="no truth value") as caught:
            ask()
        assert caught.value.code == "E0801" and caught.value.labels[0][0] == __file__
    with pytest.raises(rs.RscanTypeError, match="asked with `is`"):
        assert x == y
    with pytest.raises(rs.RscanTypeError) as caught:
        bool(x < y)
    assert "`is`" not in str(caught.value)
    with pytest.raises(rs.ShapeError):
        rs.equal(rs.vector(shape=(2,)), rs.vector(shape=(3,)))


def test_equality_in_steps_conditions_and_compiled_functions():
    xs = rs.lvector("xs")
    kept = rs.loop(lambda x, n: n + rs.where(x == 2, 10, 1) * (x != 3), over=xs, init=0)
    assert rs.function([xs], kept)([1, 2, 3, 2]).tolist() == [1, 11, 11, 21]
    rows, _ = rs.scan(lambda x: (x * 2, rs.until(x == 3)), sequences=xs)
    assert rs.function([xs], rows)([1, 3, 5]).tolist() == [2, 6]

    @rs.compile
    def chosen(x):
        return rs.where(x == 0, 100.0, x)

    assert chosen(np.array([0.0, 1.0, -0.0])).tolist() == [100, 1, 100]
    x = rs.vector("x")
    for flag in (x == 1, x != 1, x < 1):
        assert rs.grad(rs.sum(rs.cast(flag, "float64") * x), x).eval({x: [1.0, 2.0]}).tolist() == flag.eval({x: [1.0, 2.0]}).tolist()
    slope = rs.grad(rs.sum(rs.where(x == 1, 3 * x, x * x)), x)
    assert slope.eval({x: [1.0, 2.0]}).tolist() == [3, 4]


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
    for copy in (None, True, False):
        with pytest.raises(TypeError, match=r"get_value\(\) gives the value"):
            np.asarray(rs.shared(np.ones(2)), copy=copy)


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
