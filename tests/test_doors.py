"""Arrays of other libraries at every door of rscan: functions, compiled functions, shared variables and constants. A library that is
not installed is skipped by its name."""

import inspect
import subprocess
import sys

import numpy as np
import pytest

import rscan as rs
from rscan.doctor import OTHERS

NUMBERS = [1.0, 2.0, 4.0]


class OnlyArray:
    """Whatever has `__array__`."""

    def __init__(self, value):
        self.value = np.asarray(value)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.value, dtype)


class OnlyDLPack:
    """Whatever has `__dlpack__`."""

    def __init__(self, value):
        self.value = np.asarray(value)

    def __dlpack__(self, **options):
        return self.value.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.value.__dlpack_device__()


def library(name):
    return pytest.importorskip(name, reason=f"{name} is not installed")


SOURCES = {
    "list": lambda: NUMBERS,
    "memoryview": lambda: memoryview(np.asarray(NUMBERS)),
    "array": lambda: OnlyArray(NUMBERS),
    "dlpack": lambda: OnlyDLPack(NUMBERS),
    "pandas.Series": lambda: library("pandas").Series(NUMBERS, name="v"),
    "pandas nullable": lambda: library("pandas").Series(NUMBERS, dtype="Float64"),
    "pandas.Index": lambda: library("pandas").Index(NUMBERS),
    "polars.Series": lambda: library("polars").Series("v", NUMBERS),
    "pyarrow.Array": lambda: library("pyarrow").array(NUMBERS),
    "pyarrow.ChunkedArray": lambda: library("pyarrow").chunked_array([NUMBERS[:1], NUMBERS[1:]]),
    "xarray.DataArray": lambda: library("xarray").DataArray(NUMBERS, dims="t", name="v"),
    "jax": lambda: library("jax").numpy.asarray(np.asarray(NUMBERS, "float32")),
    "torch": lambda: library("torch").tensor(NUMBERS, dtype=library("torch").float64),
}

TABLES = {
    "pandas.DataFrame": lambda: library("pandas").DataFrame({"a": [1, 2], "b": [0.5, 1.5]}),
    "pandas nullable": lambda: library("pandas").DataFrame({"a": library("pandas").Series([1, 2], dtype="Int64"), "b": [0.5, 1.5]}),
    "polars.DataFrame": lambda: library("polars").DataFrame({"a": [1, 2], "b": [0.5, 1.5]}),
    "pyarrow.Table": lambda: library("pyarrow").table({"a": [1.0, 2.0], "b": [0.5, 1.5]}),
    "xarray.DataArray": lambda: library("xarray").DataArray([[1.0, 0.5], [2.0, 1.5]], dims=("t", "c")),
    "columns": lambda: [library("pandas").Series([1.0, 0.5]), library("pandas").Series([2.0, 1.5])],
    "columns by dlpack": lambda: [OnlyDLPack([1.0, 0.5]), OnlyDLPack([2.0, 1.5])],
}


def by_function(value, ndim):
    x = rs.tensor("float64", [None] * ndim, "x")
    return rs.function([x], x * 2)(value)


def by_compile(value, ndim):
    return rs.compile(lambda x: rs.stack(x) * 2 if isinstance(x, list) else x * 2)(value)


def by_shared(value, ndim):
    return rs.shared(value).get_value() * 2


def by_set_value(value, ndim):
    shared = rs.shared(np.zeros((1,) * ndim))
    shared.set_value(value)
    return shared.get_value() * 2


def by_constant(value, ndim):
    return (rs.constant(value) * 2).eval()


def by_operator(value, ndim):
    return (rs.constant(2.0) * value).eval()


DOORS = [by_function, by_compile, by_shared, by_set_value, by_constant, by_operator]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("source", SOURCES)
def test_vectors(source, door):
    value = SOURCES[source]()
    np.testing.assert_array_equal(door(value, 1), np.asarray(NUMBERS) * 2)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("source", TABLES)
def test_tables(source, door):
    np.testing.assert_array_equal(door(TABLES[source](), 2), [[2.0, 1.0], [4.0, 3.0]])


def test_a_structure_of_foreign_arrays():
    pandas = library("pandas")
    f = rs.compile(lambda p, xs: rs.sum(p["a"]) + sum(rs.sum(x) for x in xs))
    assert f({"a": pandas.Series([1.0, 2.0])}, [OnlyArray([3.0]), OnlyDLPack([4.0, 5.0])]) == 15


def test_loops_take_them():
    pandas = library("pandas")
    rows, _ = rs.scan(lambda x, h: x + h, pandas.Series(NUMBERS), pandas.Series([0.5]))
    np.testing.assert_array_equal(rows.eval(), [[1.5], [3.5], [7.5]])


def test_buffers_of_python():
    import array

    for value in (array.array("d", NUMBERS), memoryview(np.asarray(NUMBERS))):
        for door in DOORS:
            np.testing.assert_array_equal(door(value, 1), np.asarray(NUMBERS) * 2)
    assert rs.compile(lambda x: x + 1)(memoryview(b"\x01\x02")).tolist() == [2, 3]
    with pytest.raises(rs.RscanTypeError, match="text is no number"):
        rs.compile(lambda x: x)(memoryview(np.array(["a"])))


@pytest.mark.parametrize("door", DOORS)
def test_columns_of_dates_are_named(door):
    pandas = library("pandas")
    table = pandas.DataFrame({"day": pandas.date_range("2020", periods=2), "kind": pandas.Categorical([1, 2]), "v": [1.0, 2.0]})
    with pytest.raises(TypeError, match=r"column[s]? `day`"):
        try:
            door(table, 2)
        except ValueError as error:  # `set_value` says what NumPy would say
            raise TypeError(str(error)) from error


class Elsewhere:
    """An array that does not give its numbers, as one on another device."""

    name = "weights"

    def __array__(self, dtype=None, copy=None):
        raise TypeError("it lies on device 1")


@pytest.mark.parametrize(
    "door, text",
    [
        (lambda v: by_function(v, 1), r"input `x` takes float64\[\?\], got what is no array: test_doors.Elsewhere `weights` does not give"),
        (lambda v: rs.compile(lambda x: x)(v), "argument `x` is no array: .*`weights` does not give its numbers: it lies on device 1"),
        (rs.shared, "`weights` cannot become an array"),
        (rs.constant, "`weights` cannot become an array"),
    ],
)
def test_errors_name_what_does_not_fit(door, text):
    Elsewhere.__module__ = "test_doors"
    with pytest.raises(rs.errors.RscanTypeError, match=text):
        door(Elsewhere())


@pytest.mark.parametrize("door", [by_function, by_compile, by_shared, by_constant, by_operator])
@pytest.mark.parametrize(
    ("value", "help"),
    [
        (np.array(["a"]), "text is no number: np.asarray(x, dtype=float) reads it, np.unique(x, return_inverse=True)[1] numbers its kinds"),
        (np.array([None]), "it holds objects of Python, such as None: np.asarray(x, dtype=float) makes numbers of them, and NaN of None"),
        (np.array([1j]), "there are no complex dtypes: pass x.real and x.imag"),
        (np.array([1], "M8[D]"), "times are numbers by x.astype('int64'), or as differences: (x - x[0]) / np.timedelta64(1, 'D')"),
        (np.array([1], "m8[D]"), "durations are numbers by x / np.timedelta64(1, 'D')"),
    ],
    ids=lambda v: v.dtype.kind if isinstance(v, np.ndarray) else "",
)
def test_what_holds_no_numbers_is_told_how(door, value, help):
    with pytest.raises(rs.RscanError) as caught:
        door(value, 1)
    assert caught.value.helps == [help]


def test_columns_without_numbers_are_named():
    table = library("pandas").DataFrame({"a": [1.0, 2.0], "day": ["mo", "tu"], "who": ["x", "y"]})
    with pytest.raises(rs.RscanError) as caught:
        by_compile(table, 2)
    assert caught.value.helps == ["leave out what holds no numbers: columns `day`, `who`"]


def test_missing_values_and_texts_are_named():
    pandas = library("pandas")
    x = rs.dvector("x")
    f = rs.function([x], x)
    with pytest.raises(rs.errors.RscanTypeError, match=r"pandas\.Series `price`"):
        f(pandas.Series(["a"], name="price"))
    with pytest.raises(rs.errors.RscanTypeError, match=r"pandas\.Series `flag` holds .* missing values"):
        rs.constant(pandas.Series([True, None], dtype="boolean", name="flag"))


class TestFunctionsAreFunctions:
    def test_signature(self):
        x, y, z = rs.dvector("x"), rs.iscalar("y"), rs.dscalar("z")
        f = rs.function([x, y, rs.In(z, value=2.0)], x * y * z, name="scaled")
        assert str(inspect.signature(f)) == "(x: 'float64[?]', y: 'int32', z: 'float64' = 2.0)"
        assert f.__name__ == "scaled" and "x: float64[?]" in f.__doc__
        assert str(inspect.signature(f.bind(y=2))) == "(x: 'float64[?]', z: 'float64' = 2.0)"

    def test_inputs_without_a_name_are_positional(self):
        x, y = rs.dvector(), rs.dvector("y")
        assert str(inspect.signature(rs.function([x, y], x + y))) == "(_0: 'float64[?]', /, y: 'float64[?]')"
        assert rs.function([x], x).__name__ == "function"
        with pytest.raises(AttributeError, match="nothing_such"):
            rs.function([x], x).nothing_such

    def test_of_a_compiled_function(self):
        @rs.compile
        def total(x, power=2):
            """The sum of powers."""
            return rs.sum(x**power)

        assert str(inspect.signature(total)) == "(x, power=2)"
        assert (total.__name__, total.__doc__) == ("total", "The sum of powers.")


def test_pandas_applies_them_to_groups():
    pandas = library("pandas")
    table = pandas.DataFrame({"k": ["a", "a", "b"], "v": [1.0, 2.0, 4.0]})
    x = rs.dvector("x")
    for f in (rs.function([x], rs.sum(x), name="total"), rs.compile(lambda x: rs.sum(x))):
        assert table.groupby("k")["v"].apply(f).astype(float).to_dict() == {"a": 3.0, "b": 4.0}
        assert table["v"].rolling(2).apply(f).tolist()[1:] == [3.0, 6.0]


def test_pandas_leaves_operators_to_variables():
    pandas = library("pandas")
    x = rs.dvector("x")
    series = pandas.Series(NUMBERS)
    for y in (x * series, series * x):
        np.testing.assert_array_equal(rs.function([x], y)([1.0, 1.0, 2.0]), [1.0, 2.0, 8.0])


def test_polars_maps_them_over_columns():
    polars = library("polars")
    table = polars.DataFrame({"k": ["a", "a", "b"], "v": [1.0, 2.0, 4.0]})
    x = rs.dvector("x")
    for total in (rs.function([x], rs.sum(x)), rs.compile(lambda x: rs.sum(x))):
        v = polars.col("v").map_batches(total, return_dtype=polars.Float64, returns_scalar=True)
        assert sorted(table.group_by("k").agg(v)["v"].to_list()) == [3.0, 4.0]
    for doubled in (rs.function([x], x * 2), rs.compile(lambda x: x * 2)):
        assert table.select(polars.col("v").map_batches(doubled, return_dtype=polars.Float64))["v"].to_list() == [2.0, 4.0, 8.0]


def test_no_other_library_is_imported():
    program = "import sys, rscan; print([m for m in OTHERS if m in sys.modules])"
    program = program.replace("OTHERS", repr([*OTHERS, "sklearn", "pyarrow", "numpy.ma", "array", "IPython", "tqdm"]))
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.strip() == "[]"
