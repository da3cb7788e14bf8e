"""Columns and tables through functions of rscan, judged by pandas.testing and pandas' own functions."""

import dataclasses

import numpy as np
import pytest

import rscan as rs

pd = pytest.importorskip("pandas", reason="pandas is not installed")
from pandas.testing import assert_frame_equal, assert_series_equal  # noqa: E402

from rscan.interop.pandas import wrap  # noqa: E402

DAYS = pd.date_range("2020-01-01", periods=4, name="day")


def smooth(x, a=0.5):
    """Exponentially weighted means."""
    return rs.loop(lambda x, h: a * x + (1 - a) * h, over=x, init=x[0])[:]


def series(values, **options):
    return pd.Series(values, **{"index": DAYS[: len(values)], "name": "price", **options})


@pytest.mark.parametrize("made", [smooth, rs.compile(smooth)])
def test_a_column_keeps_index_and_name(made):
    x = series([1.0, 2.0, 4.0, 3.0])
    assert_series_equal(wrap(made)(x), x.ewm(alpha=0.5, adjust=False).mean(), check_freq=False)
    assert_series_equal(wrap(made)(x, a=0.25), x.ewm(alpha=0.25, adjust=False).mean(), check_freq=False)


def test_a_table_keeps_index_and_columns():
    x = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [0.5, 0.0, 1.0]}, index=pd.MultiIndex.from_product([["u"], [1, 2, 3]]))
    assert_frame_equal(wrap(smooth)(x), x.ewm(alpha=0.5, adjust=False).mean())
    more = wrap(lambda x: rs.concatenate([x, x], axis=1))(x)
    assert more.index.equals(x.index) and more.columns.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("dtype", ["float32", "int64", "Float64", "Int32", "bool", "uint8"])
def test_dtypes(dtype):
    x = series([1, 0, 1]).astype(dtype)
    assert_series_equal(wrap(lambda x: x)(x), x.astype(dtype.lower()))


def test_structures_are_named_by_their_keys():
    @dataclasses.dataclass
    class Pair:
        low: object
        high: object

    x = series([1.0, 3.0])
    found = wrap(lambda d: {"twice": 2 * d["x"], "total": rs.sum(d["x"]), "pair": Pair(d["x"] - 1, d["x"] + 1)})({"x": x})
    assert_series_equal(found["twice"], (2 * x).rename("twice"))
    assert_series_equal(found["pair"].high, (x + 1).rename("high"))
    assert type(found["total"]) is np.float64 and found["total"] == 4
    out = wrap(lambda x: rs.loop(lambda x, h: {"h": h + x}, over={"x": x}, init={"h": 0.0}))(x)
    assert_series_equal(out.h, x.cumsum().rename("h"))


def test_other_results_are_as_they_are():
    x = series([1.0, 3.0])
    assert type(wrap(lambda x: x[:1])(x)) is np.ndarray
    assert type(wrap(lambda x: rs.outer(x, x)[None])(x)) is np.ndarray
    assert wrap(lambda x: rs.sum(x))(x) == 4
    assert type(wrap(smooth)(x.to_numpy())) is np.ndarray


def test_functions_of_inputs_and_gradients():
    x, a = rs.dvector("x"), rs.dscalar("a")
    price = series([1.0, 3.0, 2.0])
    assert_series_equal(wrap(rs.function([x, a], a * x))(price, a=2.0), 2 * price)
    assert_series_equal(wrap(rs.grad(lambda x: rs.sum(x**2)))(price), 2 * price)


@pytest.mark.parametrize("values", [[], [2.5]])
def test_small_ones(values):
    x = series(np.array(values, "float64"))
    assert_series_equal(wrap(lambda x: rs.cumsum(x))(x), x.cumsum())


def test_labels_that_differ_are_refused():
    x, y = series([1.0, 2.0]), series([1.0, 2.0], index=[7, 8])
    with pytest.raises(rs.RscanValueError, match="different labels") as caught:
        wrap(lambda x, y: x + y)(x, y)
    assert caught.value.code == "E0809" and "align" in caught.value.helps[0]
    assert all(file == __file__ for file, _, _ in caught.value.labels)
    assert_series_equal(wrap(lambda x, y: x + rs.sum(y))(x, series([1.0, 2.0, 3.0], index=[7, 8, 9])), x + 6)


def test_within_pandas():
    table = pd.DataFrame({"key": ["a", "a", "b"], "v": [1.0, 2.0, 5.0]})
    found = table.groupby("key")["v"].transform(wrap(lambda x: rs.cumsum(x)))
    assert_series_equal(found, table.groupby("key")["v"].cumsum())


def test_the_wrapper_is_called_as_the_function():
    assert wrap(smooth).__name__ == "smooth" and wrap(smooth).__doc__ == "Exponentially weighted means."
