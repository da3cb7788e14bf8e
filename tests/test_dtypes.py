"""What users give as `dtype=`, and arrays whose meaning would be lost."""

import inspect
import operator
import subprocess
import sys
import types

import numpy as np
import pytest

import rscan as rs
import rscan.theano as theano
import rscan.theano.tensor as T
from rscan import inputs
from rscan.theano.sandbox.rng_mrg import MRG_RandomStreams

KEY = rs.random.key(1)

#: Arguments before `dtype` of every public function that has one.
ARGUMENTS = {
    "arange": (3,),
    "as_variable": (1,),
    "astype": (1.5,),
    "cast": (1.5,),
    "constant": (1,),
    "empty": (3,),
    "empty_like": ([1, 2],),
    "eye": (3,),
    "full": ((2,), 1),
    "full_like": ([1, 2], 3),
    "identity": (3,),
    "linspace": (0, 1),
    "mean": ([1.0, 2.0],),
    "one_hot": ([0, 1], 2),
    "ones": (3,),
    "ones_like": ([1, 2],),
    "prod": ([1, 2],),
    "shared": (1,),
    "std": ([1.0, 2.0],),
    "sum": ([1, 2],),
    "tensor": (),
    "tri": (3,),
    "var": ([1.0, 2.0],),
    "array": ([1, 2],),
    "asanyarray": ([1, 2],),
    "asarray": ([1, 2],),
    "cumulative_prod": ([1, 2],),
    "cumulative_sum": ([1, 2],),
    "einsum": ("i->", [1, 2]),
    "fromfunction": (lambda i: i, (3,)),
    "geomspace": (1, 8),
    "indices": ((2, 3),),
    "logspace": (0, 1),
    "nanmean": ([1.0, 2.0],),
    "nanprod": ([1.0, 2.0],),
    "nanstd": ([1.0, 2.0],),
    "nansum": ([1.0, 2.0],),
    "nanvar": ([1.0, 2.0],),
    "trace": ([[1, 2]],),
    "linalg.trace": ([[1, 2]],),
    "concat": ([[1], [2]],),
    "concatenate": ([[1], [2]],),
    "corrcoef": ([[1.0, 2.0], [2.0, 1.0]],),
    "cov": ([[1.0, 2.0], [2.0, 1.0]],),
    "cumprod": ([1, 2],),
    "cumsum": ([1, 2],),
    "hstack": ([[1], [2]],),
    "nancumprod": ([1, 2],),
    "nancumsum": ([1, 2],),
    "stack": ([[1], [2]],),
    "vstack": ([[1], [2]],),
    "zeros": (3,),
    "zeros_like": ([1, 2],),
    "random.bernoulli": (KEY,),
    "random.beta": (KEY, 1.0, 2.0),
    "random.binomial": (KEY, 5, 0.5),
    "random.cauchy": (KEY,),
    "random.chisquare": (KEY, 2.0),
    "random.dirichlet": (KEY, [1.0, 2.0]),
    "random.gamma": (KEY, 2.0),
    "random.geometric": (KEY, 0.5),
    "random.gumbel": (KEY,),
    "random.laplace": (KEY,),
    "random.logistic": (KEY,),
    "random.lognormal": (KEY,),
    "random.multinomial": (KEY, 5, [0.5, 0.5]),
    "random.pareto": (KEY, 2.0),
    "random.poisson": (KEY,),
    "random.student_t": (KEY, 3.0),
    "random.truncated_normal": (KEY, 0.0, 1.0),
    "random.weibull": (KEY, 2.0),
    "random.exponential": (KEY,),
    "random.integers": (KEY, 3),
    "random.normal": (KEY,),
    "random.uniform": (KEY,),
}


def _public():
    """Every public function and method that takes `dtype`, by name."""
    for module, prefix in ((rs, ""), (rs.linalg, "linalg."), (rs.random, "random.")):
        for name in module.__all__:
            f = getattr(module, name)
            if not isinstance(f, types.FunctionType) or "dtype" not in inspect.signature(f).parameters:
                continue
            if name in inputs.CONSTRUCTORS and name not in (*inputs.PLURALS, *inputs.PLURALS.values(), "dmatrix", "ivectors"):
                continue  # made as these are
            given = (2,) if name in inputs.CONSTRUCTORS and name.endswith("s") else ARGUMENTS.get(prefix + name, ())
            yield prefix + name, lambda dtype, f=f, given=given: f(*given, dtype=dtype)
    x, stream = rs.tensor("float64", (2, 2), "x"), rs.RandomStream(1)
    for owner, label in ((x, "Variable."), (stream, "RandomStream.")):
        for name, f in inspect.getmembers(type(owner), inspect.isfunction):
            if not name.startswith("_") and "dtype" in inspect.signature(f).parameters:
                given = ARGUMENTS.get(f"random.{name}", ())[1:] if label == "RandomStream." else ()
                yield label + name, lambda dtype, f=f, owner=owner, given=given: f(owner, *given, dtype=dtype)


PUBLIC = dict(_public())

WRONG = [
    np.array([1, 2]), np.array(1.5), np.zeros((2, 2)), np.zeros(0), [], [1], ["float64"], (), ("f8", 3), {}, {"names": ["a"]},
    rs.vector("v"), rs.scalar("s"), rs.constant(1), rs.shared(1.0),
    "", "float128", "float16", "i9", "nonsense", "f8,i4", "complex64", "object", "U3",
    0, 1, -1, 3.5, True, np.float64(1), np.int8(1), object, complex, str, bytes, list, dict, rs.Variable, np.float16, np.complex128,
    np.dtype("O"), np.dtype("f4,f4"), object(), print, b"f8",
]  # fmt: skip


def test_every_function_with_a_dtype_is_here():
    assert {"zeros", "random.uniform", "Variable.astype", "RandomStream.normal", "vector", "matrices"} <= PUBLIC.keys()
    for name, call in PUBLIC.items():
        assert "." in name or hasattr(inputs, name) or name in ARGUMENTS
        call("float32")


@pytest.mark.parametrize("name", PUBLIC)
def test_what_is_no_dtype_is_refused_at_the_users_line(name):
    for wrong in WRONG:
        with pytest.raises(rs.RscanError) as caught:
            PUBLIC[name](wrong)
        error = caught.value
        assert error.code == "E0806" and error.labels[0][0] == __file__, (name, wrong, error)
        assert "is not a dtype" in str(error) or "float32 or float64" in str(error)
        assert "ambiguous" not in str(error) and len(error.title) < 120
    with pytest.raises(rs.RscanError, match=r"array\(\[1, 2\]\) is not a dtype"):
        PUBLIC[name](np.array([1, 2]))


@pytest.mark.parametrize("name", PUBLIC)
def test_dtypes_are_given_as_to_numpy(name):
    """By name, by short name, as a type of Python's or NumPy's, in any byte order; None stands for the default."""
    for right in ("float64", "f8", "<f8", ">f8", "d", "double", float, np.float64, np.dtype("float64"), np.dtype(">f8"), "floatX"):
        result = PUBLIC[name](right)
        assert {v.dtype for v in _listed(result)} == {"float64"}
    assert all(isinstance(v, rs.Variable) for v in _listed(PUBLIC[name](None)))
    with rs.config.override(floatX="float32"):
        assert {v.dtype for v in _listed(PUBLIC[name](float))} == {"float32"}


def _listed(result):
    return result if isinstance(result, list) else [result]


@pytest.mark.parametrize("wrong", [np.array([1, 2]), T.dvector("v"), [1], "nonsense", 3], ids=repr)
def test_theanos_functions_refuse_them_too(wrong):
    v = T.dvector("v")
    for build in (
        lambda: T.zeros((2,), dtype=wrong),
        lambda: T.ones((2,), dtype=wrong),
        lambda: T.zeros_like(v, dtype=wrong),
        lambda: T.eye(3, dtype=wrong),
        lambda: T.arange(3, dtype=wrong),
        lambda: T.cast(v, wrong),
        lambda: v.astype(wrong),
        lambda: T.sum(v, dtype=wrong),
        lambda: T.constant(1, dtype=wrong),
        lambda: T.tensor(wrong, (False,)),
        lambda: T.vector("w", dtype=wrong),
        lambda: T.to_one_hot(T.lvector(), 3, dtype=wrong),
        lambda: MRG_RandomStreams(1).uniform((2,), dtype=wrong),
        lambda: T.shared_randomstreams.RandomStreams(1).normal((2,), dtype=wrong),
    ):
        with pytest.raises(rs.RscanTypeError) as caught:
            build()
        assert caught.value.code == "E0806" and caught.value.labels[0][0] == __file__


# Arrays with a mask.

MASKED = [
    np.ma.masked_invalid([1.0, np.nan, 2.0]),
    np.ma.array([1.0, 2.0, 3.0]),
    np.ma.array([1.0, 2.0, 3.0], mask=[0, 0, 0]),
]
X, M = rs.vector("x"), rs.matrix("m")
DOUBLE = rs.function([X], 2 * X)
VALUE = rs.shared(np.zeros(3))
TX = T.dvector("x")
TDOUBLE = theano.function([TX], 2 * TX)
TVALUE = theano.shared(np.zeros(3))


@rs.compile
def compiled(x):
    return 2 * x


#: Every way in which numbers come in.
DOORS = {
    "argument": DOUBLE,
    "named argument": lambda m: DOUBLE(x=m),
    "bound": lambda m: DOUBLE.bind(m),
    "default": lambda m: rs.function([rs.In(X, value=m)], 2 * X)(),
    "out": lambda m: DOUBLE([1.0, 2.0, 3.0], out=m),
    "list of them": lambda m: rs.function([M], 2 * M)([m, m]),
    "compiled": compiled,
    "compiled structure": lambda m: rs.compile(lambda d: d["a"])({"a": m}),
    "lower": lambda m: compiled.lower(m),
    "value_and_grad": lambda m: rs.value_and_grad(lambda x: rs.sum(x))(m),
    "eval": lambda m: (2 * X).eval({X: m}),
    "rs.eval": lambda m: rs.eval(X, {"x": m}),
    "constant": rs.constant,
    "as_variable": rs.as_variable,
    "with dtype": lambda m: rs.constant(m, dtype="float32"),
    "nested": lambda m: rs.constant([[1.0, 2.0, 3.0], m]),
    "among numbers": lambda m: rs.constant([1.0, np.ma.masked, m[0]]),
    "beside variables": lambda m: rs.as_variable([X, m]),
    "operand": lambda m: X + m,
    "operand on the left": lambda m: m + X,
    "compared": lambda m: operator.eq(X, m),
    "compared on the left": lambda m: operator.eq(m, X),
    "ufunc": lambda m: np.add(X, m),
    "function": lambda m: rs.exp(m),
    "where": lambda m: rs.where(X > 0, m, X),
    "index": lambda m: X[np.ma.array([0, 1, 2], mask=m.mask)],
    "written": lambda m: X.at[:].set(m),
    "shape": lambda m: rs.zeros(np.ma.array([0, 1, 2], mask=m.mask)),
    "shared": rs.shared,
    "shared with dtype": lambda m: rs.shared(m, dtype="float32"),
    "set_value": VALUE.set_value,
    "update": lambda m: rs.function([], [], updates=[(VALUE, m)]),
    "given": lambda m: rs.function([], 2 * X, givens={X: m}),
    "output": lambda m: rs.function([], m),
    "sequence": lambda m: rs.scan(lambda x: x, sequences=m),
    "initial": lambda m: rs.scan(lambda x: x, outputs_info=m, n_steps=2),
    "initial rows": lambda m: rs.scan(lambda x, y: x, outputs_info=dict(initial=m, taps=[-2, -1]), n_steps=2),
    "non_sequence": lambda m: rs.scan(lambda x: x, non_sequences=m, n_steps=2),
    "captured": lambda m: rs.scan(lambda x: x + m, sequences=X),
    "returned": lambda m: rs.scan(lambda x: m, sequences=X),
    "until": lambda m: rs.scan(lambda x: (x, rs.until(m)), sequences=X),
    "over": lambda m: rs.loop(lambda x: x, over=m),
    "init": lambda m: rs.loop(lambda h: h, init=dict(h=m), n_steps=2),
    "init with taps": lambda m: rs.loop(lambda h: h[0], init=rs.taps(m, -2, -1), n_steps=2),
    "given to a loop": lambda m: rs.loop(lambda x, c: x, over=X, given=m),
    "cotangent": lambda m: rs.vjp(2 * X, X, m),
    "known gradient": lambda m: rs.grad(None, X, known_grads={X: m}),
    "verify_grad": lambda m: rs.verify_grad(lambda x: rs.sum(x * x), [m]),
    "numeric_grad": lambda m: rs.numeric_grad(lambda x: float(np.sum(x)), [m]),
    "probabilities": lambda m: rs.random.choice(KEY, 3, p=m),
    "theano: argument": TDOUBLE,
    "theano: shared": theano.shared,
    "theano: set_value": TVALUE.set_value,
    "theano: set_value, borrowed": lambda m: TVALUE.set_value(m, borrow=True),
    "theano: constant": T.constant,
    "theano: as_tensor_variable": T.as_tensor_variable,
    "theano: operand": lambda m: TX + m,
    "theano: given": lambda m: theano.function([], TX, givens={TX: m}),
    "theano: sequence": lambda m: theano.scan(lambda x: x, sequences=m),
    "theano: initial": lambda m: theano.scan(lambda x: x, outputs_info=m, n_steps=2),
    "theano: eval": lambda m: TX.eval({TX: m}),
    "theano: filter": lambda m: TX.type.filter(m),
    "theano: result of an op": lambda m: theano.function([TX], theano.as_op([T.dvector], [T.dvector])(lambda x: m)(TX))([1.0]),
    "theano: default": lambda m: theano.function([theano.In(TX, value=m)], TX)(),
    "theano: verify_grad": lambda m: T.verify_grad(lambda x: T.sum(x * x), [m]),
}


@pytest.mark.parametrize("door", DOORS)
def test_masked_arrays_are_refused_everywhere(door):
    for masked in MASKED:
        with pytest.raises(rs.RscanTypeError) as caught:
            DOORS[door](masked)
        # NumPy's own `+` and `==` of masked arrays ask the variable for its numbers before anything comes here.
        expected = {"out": "E0515", "operand on the left": "E0802", "compared on the left": "E0802"}.get(door, "E0814")
        assert caught.value.code == expected and ("mask" in str(caught.value) or expected == "E0802")
        assert caught.value.labels[0][0] == __file__


def test_what_takes_a_masked_array_apart_is_taken():
    masked = MASKED[0]
    assert DOUBLE(masked.filled(0)).tolist() == [2, 0, 4] and DOUBLE(masked.compressed()).tolist() == [2, 4]
    assert DOUBLE(masked.data).tolist()[::2] == [2, 4]
    # Other arrays of NumPy's are what they were.
    kept = np.zeros(3).view(np.recarray)
    assert DOUBLE(kept).tolist() == [0, 0, 0]
    out = np.memmap.__new__(np.memmap, _file(), dtype="f8", mode="w+", shape=(3,))
    assert DOUBLE([1, 2, 3], out=out) is out and out.tolist() == [2, 4, 6]
    assert DOUBLE(out).tolist() == [4, 8, 12]


def _file():
    import tempfile

    return tempfile.NamedTemporaryFile()


def test_masks_are_not_imported_by_programs_that_have_none():
    """NumPy loads its masked arrays when somebody asks for them, which takes longer than most first calls."""
    program = """
import sys, rscan as rs
x = rs.dvector()
rs.function([x], rs.ones_like(x) + rs.constant([1.0]))([2.0])
print('numpy.ma' in sys.modules)
"""
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert out.stdout == "False\n"


@pytest.mark.parametrize("meets", [lambda x: 1j * x, lambda x: x * 1j, lambda x: x**1j, lambda x: x + np.complex128(1), lambda x: x @ 1j])
def test_complex_numbers_have_an_error_of_ours(meets):
    with pytest.raises(rs.RscanTypeError, match="its dtype is complex128") as caught:
        meets(rs.dvector("x"))
    assert caught.value.code == "E0805" and "pass x.real and x.imag" in str(caught.value)
