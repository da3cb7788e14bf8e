"""`associative_scan`, `fori` and `while_loop` do what loops in Python do, and are differentiated and mapped like everything else."""

import itertools

import numpy as np
import pytest
from helpers import same

import rscan as rs

RNG = np.random.default_rng(5)
BLOCKS = [None, 2, 3, 8]


def in_order(op, rows):
    """What `associative_scan` is to give."""
    return np.array(list(itertools.accumulate(rows, op))).reshape(np.shape(rows))


def linear(f, g):
    return g[0] * f[0], g[0] * f[1] + g[1]


def recurrence(a, b):
    x, found = 0.0, []
    for factor, term in zip(a, b, strict=True):
        x = factor * x + term
        found.append(x)
    return np.array(found)


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 9, 17, 24, 25])
def test_lengths(n, blocks):
    if blocks is not None and n <= blocks:
        return
    a, b = RNG.uniform(0.5, 1.5, n), RNG.standard_normal(n)
    x, y = rs.dvectors("x y")
    states = rs.associative_scan(linear, (x, y), blocks=blocks)[1]
    f = rs.function([x, y], [states, *rs.grad(rs.sum(states**2), [x, y])])
    plain, _ = rs.scan(lambda u, v, h: u * h + v, sequences=[x, y], outputs_info=0.0)
    g = rs.function([x, y], rs.grad(rs.sum(plain**2), [x, y]))
    got = f(a, b)
    np.testing.assert_allclose(got[0], recurrence(a, b), rtol=1e-12)
    for mine, theirs in zip(got[1:], g(a, b), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)
    known = rs.associative_scan(linear, (rs.constant(a), rs.constant(b)), blocks=blocks)[1]
    np.testing.assert_allclose(known.eval(), recurrence(a, b), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "int64", "float32", "float64"])
@pytest.mark.parametrize("blocks", [None, 3])
def test_dtypes(dtype, blocks):
    x = RNG.integers(0, 5, 11).astype(dtype)
    for op, numpys in ((rs.maximum, np.maximum), (rs.logical_or, np.logical_or) if dtype == "bool" else (rs.add, np.add)):
        same(rs.associative_scan(op, x, blocks=blocks).eval(), in_order(numpys, x))


@pytest.mark.parametrize("blocks", [None, 2])
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("reverse", [False, True])
def test_axes_and_directions(axis, reverse, blocks):
    x = RNG.standard_normal((3, 4, 5))
    given = np.flip(x, axis) if reverse else x
    expected = np.cumsum(given, axis)
    got = rs.associative_scan(rs.add, x, reverse=reverse, axis=axis, blocks=blocks).eval()
    np.testing.assert_allclose(got, np.flip(expected, axis) if reverse else expected, rtol=1e-12)


@pytest.mark.parametrize("blocks", BLOCKS[:3])
def test_products_of_matrices_do_not_commute(blocks):
    m = RNG.standard_normal((7, 3, 3))
    x = rs.dtensor3("x")
    f = rs.function([x], [rs.associative_scan(rs.matmul, x, blocks=blocks), rs.associative_scan(rs.matmul, x, reverse=True, blocks=blocks)])
    forward, back = f(m)
    np.testing.assert_allclose(forward, in_order(np.matmul, m), rtol=1e-9)
    np.testing.assert_allclose(back[::-1], in_order(np.matmul, m[::-1]), rtol=1e-9)
    rs.verify_grad(lambda v: rs.sum(rs.associative_scan(rs.matmul, v, blocks=blocks) ** 2), [m[:4]])


def test_a_function_of_two_elements_by_vmap_and_structures():
    pairs = {"scale": np.array([2.0, 0.5, 3.0]), "shift": RNG.standard_normal((3, 2))}

    def one(f, g):
        return {"scale": g["scale"] * f["scale"], "shift": g["scale"] * f["shift"] + g["shift"]}

    got = rs.associative_scan(rs.vmap(one), pairs)
    shift = np.zeros(2)
    for t in range(3):
        shift = pairs["scale"][t] * shift + pairs["shift"][t]
        np.testing.assert_allclose(got["shift"].eval()[t], shift)
    same(got["scale"].eval(), np.cumprod(pairs["scale"]))


@pytest.mark.parametrize("blocks", [None, 2])
def test_rows_and_higher_derivatives(blocks):
    x = rs.dmatrix("x")
    v = RNG.uniform(0.5, 1.5, (3, 5))
    each = rs.vmap(lambda row: rs.associative_scan(rs.multiply, row, blocks=blocks))(x)
    np.testing.assert_allclose(rs.function([x], each)(v), np.cumprod(v, 1), rtol=1e-12)
    of_row = lambda row: rs.sum(rs.associative_scan(rs.multiply, row, blocks=blocks) ** 2)
    exact = rs.hessian(lambda row: rs.sum(rs.cumprod(row) ** 2))(v[0])
    np.testing.assert_allclose(rs.hessian(of_row)(v[0]), exact, rtol=1e-9)


WRONG = {
    "lengths": (lambda: rs.associative_scan(linear, (np.ones(3), np.ones(4))), rs.ShapeError, "E0201"),
    "nothing": (lambda: rs.associative_scan(rs.add, []), rs.ScanError, "E0121"),
    "scalar": (lambda: rs.associative_scan(rs.add, 1.0), rs.ScanError, "E0118"),
    "text": (lambda: rs.associative_scan(rs.add, "abc"), rs.RscanTypeError, "E0121"),
    "axis": (lambda: rs.associative_scan(rs.add, np.ones(3), axis=1), rs.AxisError, "E0810"),
    "blocks": (lambda: rs.associative_scan(rs.add, np.ones(3), blocks=0), rs.RscanValueError, "E0121"),
    "function": (lambda: rs.associative_scan(3, np.ones(3)), rs.ScanError, "E0121"),
    "structure": (lambda: rs.associative_scan(lambda a, b: a[0], (np.ones(3), np.ones(3))), rs.ScanError, "E0105"),
    "rank": (lambda: rs.associative_scan(lambda a, b: rs.sum(a + b), np.ones(3)), rs.ScanTypeError, "E0101"),
    "dtype": (lambda: rs.associative_scan(lambda a, b: (a + b) / 2, np.arange(3)), rs.ScanTypeError, "E0103"),
    "extent": (lambda: rs.associative_scan(lambda a, b: rs.concatenate([a, b]), np.ones(3)), rs.ScanTypeError, "E0102"),
    "bounds": (lambda: rs.fori(0.5, 3, lambda i, v: v, 1.0), rs.ScanError, "E0117"),
    "body": (lambda: rs.fori(0, 3, lambda i: i, 1.0), rs.ScanError, "E0122"),
    "value": (lambda: rs.fori(0, 3, lambda i, v: (v, v), 1.0), rs.ScanError, "E0105"),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes(name):
    make, kind, code = WRONG[name]
    with pytest.raises(kind) as caught:
        make()
    assert caught.value.code == code


@pytest.mark.parametrize("sizes", [(3, 4), (4, 3)])
def test_lengths_that_differ_when_the_function_runs(sizes):
    x, y = rs.dvectors("x y")
    f = rs.function([x, y], list(rs.associative_scan(linear, (x, y))))
    with pytest.raises(rs.errors.AssertionFailedError, match="one length"):
        f(*(np.ones(n) for n in sizes))
    few = rs.function([x], rs.associative_scan(rs.add, x, blocks=4))
    with pytest.raises(rs.errors.AssertionFailedError, match="more than 4 elements"):
        few(np.ones(4))


@pytest.mark.parametrize(("lower", "upper"), [(0, 5), (2, 3), (4, 4), (5, 2), (-3, 2)])
def test_counted_loops(lower, upper):
    value = (0, 1.5)
    for i in range(lower, upper):
        value = (value[0] + i, value[1] * 2)
    first, end = rs.lscalars("first end")
    body = lambda i, v: (v[0] + i, v[1] * 2)
    f = rs.function([first, end], list(rs.fori(first, end, body, (0, 1.5))))
    assert tuple(f(lower, upper)) == value
    assert tuple(v.eval() for v in rs.fori(lower, upper, body, (0, 1.5))) == value


def test_counted_loops_keep_structures_and_have_gradients():
    out = rs.fori(0, 3, lambda i, v: {"a": [v["a"][0] * 2]}, {"a": [rs.constant(1.0)]})
    assert out["a"][0].eval() == 8.0
    assert rs.grad(lambda z: rs.fori(0, 4, lambda i, v: v * z, 1.0))(3.0) == 108.0
    x = rs.dvector("x")
    rows = rs.vmap(lambda v: rs.fori(0, 3, lambda i, h: h * v + i, 0.0))(x)
    same(rs.function([x], rows)([2.0, 3.0]), np.array([4.0, 5.0]))


def halvings(x, at_most=1.0):
    return rs.while_loop(lambda v: v["x"] > at_most, lambda v: {"x": v["x"] / 2, "n": v["n"] + 1}, {"x": x, "n": 0})


@pytest.mark.parametrize(("x", "n"), [(100.0, 7), (1.0, 0), (-3.0, 0), (1.5, 1)])
def test_while_loop_looks_first(x, n):
    found = rs.compile(halvings)(x)
    assert (found["x"], found["n"]) == (x / 2**n, n)
    assert rs.grad(lambda x: halvings(x)["x"])(x) == 0.5**n


def test_while_loop_for_rows_in_loops_and_by_integers():
    x, n = np.array([100.0, 0.5, 3.0]), np.array([7, 0, 2])
    found = rs.compile(rs.vmap(halvings))(x)
    np.testing.assert_array_equal(found["x"], x / 2**n)
    np.testing.assert_array_equal(found["n"], n)
    total = rs.compile(lambda x: rs.loop(lambda x, s: s + halvings(x)["x"], over=x, init=0.0).last)
    assert total(x) == np.sum(x / 2**n)
    np.testing.assert_array_equal(rs.grad(lambda x: rs.sum(rs.vmap(halvings)(x)["x"]))(x), 0.5**n)
    gcd = rs.compile(lambda a, b: rs.while_loop(lambda v: v[1] != 0, lambda v: (v[1], v[0] % v[1]), (a, b))[0])
    assert [int(gcd(a, b)) for a, b in [(48, 18), (7, 21), (5, 0)]] == [6, 7, 5]


WRONG_WHILE = {
    "scalar": (lambda: rs.while_loop(lambda v: v > 0, lambda v: v, np.ones(3)), "E0108"),
    "structure": (lambda: rs.while_loop(lambda v: v > 0, lambda v: (v, v), 1.0), "E0105"),
    "nothing": (lambda: rs.while_loop(lambda v: True, lambda v: v, ()), "E0121"),
    "body": (lambda: rs.while_loop(lambda v: v > 0, lambda v, w: v, 1.0), "E0122"),
    "condition": (lambda: rs.while_loop(lambda v, w: v > 0, lambda v: v, 1.0), "E0122"),
    "function": (lambda: rs.while_loop(True, lambda v: v, 1.0), "E0121"),
}


@pytest.mark.parametrize(("wrong", "code"), WRONG_WHILE.values(), ids=WRONG_WHILE)
def test_while_loop_refuses(wrong, code):
    with pytest.raises(rs.ScanError, match=code):
        wrong()
