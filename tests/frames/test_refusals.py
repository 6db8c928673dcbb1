"""Data frames that cannot become a design are refused, and what is wrong is named."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import bregpath
from bregpath._frames import ColumnEncoder, series_to_numpy

pytest.importorskip("narwhals")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")


def test_missing_and_extra_columns(frame_of):
    encoder = ColumnEncoder.from_frame(frame_of({"a": [1.0], "b": [1.0], "c": [1.0]}))
    with pytest.raises(ValueError, match=r"X does not have the 3 columns seen before: it lacks 'b', 'c'\. Pass"):
        encoder.encode(frame_of({"a": [1.0]}))
    with pytest.raises(ValueError, match=r"it also has 'd'\. Pass the same column names \(their order"):
        encoder.encode(frame_of({name: [1.0] for name in "abcd"}))
    with pytest.raises(ValueError, match="it lacks 'c' and also has 'x'"):
        encoder.encode(frame_of({"a": [1.0], "b": [1.0], "x": [1.0]}))


def test_long_lists_are_cut(frame_of):
    encoder = ColumnEncoder.from_frame(frame_of({f"x{j}": [1.0] for j in range(30)}))
    with pytest.raises(ValueError, match=r"'x10', \.\.\. \(29 in all\)"):
        encoder.encode(frame_of({"x0": [1.0]}))


def test_unseen_levels(frame_of):
    encoder = ColumnEncoder.from_frame(frame_of({"c": ["u", "v"]}))
    with pytest.raises(ValueError, match="unknown levels in column 'c': 'w', 'z'. Known levels are 'u', 'v'; recode"):
        encoder.encode(frame_of({"c": ["u", "z", "w", "z"]}))


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("bmi", [21.5, None, 25.0]),
        ("bmi", [21.5, np.nan, 25.0]),
        ("region", ["north", None, "south"]),
        ("smoker", [True, None, False]),
        ("children", [0, None, 1]),
        ("region", [None, None, None]),
        ("children", [None, None, None]),
    ],
)
def test_missing_values(frame_of, column, values, mixed):
    encoder = ColumnEncoder.from_frame(frame_of(mixed))
    holes = frame_of(mixed | {column: values})
    if frame_of is pd.DataFrame and column == "smoker":
        holes = pd.DataFrame(mixed | {"smoker": pd.array(values, dtype="boolean")})
    text = f"X has missing values in '{column}'; impute them, or drop these rows or columns"
    with pytest.raises(ValueError, match=text):
        encoder.encode(holes)
    with pytest.raises(ValueError, match=text):
        ColumnEncoder.from_frame(holes).encode(holes)


def test_all_columns_with_missing_values_are_named(frame_of):
    holes = frame_of({"a": [1.0, None], "b": [1.0, 2.0], "c": ["u", None], "d": [None, 1]})
    with pytest.raises(ValueError, match="missing values in 'a', 'c', 'd'; impute"):
        ColumnEncoder.from_frame(holes).encode(holes)


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "boolean"])
def test_missing_values_of_nullable_dtypes(dtype):
    frame = pd.DataFrame({"a": pd.array([1, None], dtype=dtype), "b": [1.0, 2.0]})
    with pytest.raises(ValueError, match="missing values in 'a'; impute"):
        ColumnEncoder.from_frame(frame).encode(frame)


def test_infinite_values(frame_of):
    frame = frame_of({"a": [1.0, np.inf, -np.inf], "b": [1e308, 1e308, 1e308], "c": [-np.inf, 0.0, 0.0]})
    with pytest.raises(ValueError, match="X has infinite values in 'a', 'c'; replace them by finite numbers"):
        ColumnEncoder.from_frame(frame).encode(frame)


def test_sparse_columns_have_a_remedy():
    frame = pd.DataFrame({"a": pd.arrays.SparseArray([0.0, 1.0])})
    with pytest.raises(TypeError, match=r"dtype Sparse\[float64, .*\] in column 'a'.*pass X.sparse.to_coo\(\)"):
        ColumnEncoder.from_frame(frame)


@pytest.mark.parametrize("what", ["path", "potts", "mixed"])
def test_labels_of_which_none_occurs_twice_are_told(frame_of, what):
    """Identifiers, and numbers that are text."""
    rng = np.random.default_rng(0)
    x, label = rng.normal(size=30), np.array(["u", "v"])[rng.integers(0, 2, 30)]
    frame = frame_of({"id": [f"row {i}" for i in range(30)], "label": label.tolist(), "other": label[::-1].tolist()})
    call = {
        "path": lambda: bregpath.trace_path(frame, x, n_times=3),
        "potts": lambda: bregpath.PottsGraph(n_times=3).fit(frame),
        "mixed": lambda: bregpath.MixedGraph(n_times=3).fit(frame),
    }[what]
    with pytest.warns(UserWarning, match=r"a label of its own in nearly every row of column\(s\) 'id': nothing"):
        call()


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_dates_are_refused(name):
    days = pd.to_datetime(["2020-01-01", "2020-01-02"])
    frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame}[name](
        {"a": [1.0, 2.0], "day": days if name == "pandas" else list(days.to_pydatetime())}
    )
    with pytest.raises(TypeError, match=r"X has dtype Datetime.* in column 'day', where numbers, booleans, str"):
        ColumnEncoder.from_frame(frame)


def test_objects_are_refused():
    frame = pd.DataFrame({"a": pd.Series([1, [2]], dtype=object)})
    with pytest.raises(TypeError, match="X has dtype Object in column 'a'.*convert or drop it"):
        ColumnEncoder.from_frame(frame)


def test_another_kind_than_before(frame_of):
    encoder = ColumnEncoder.from_frame(frame_of({"x": [1.0], "c": ["u"]}))
    with pytest.raises(TypeError, match="dtype String in column 'x', where a numeric column, as it was before"):
        encoder.encode(frame_of({"x": ["1"], "c": ["u"]}))
    with pytest.raises(TypeError, match="dtype Int64 in column 'c', where a categorical column"):
        encoder.encode(frame_of({"x": [1.0], "c": [1]}))


def test_repeated_names():
    frame = pd.DataFrame(np.ones((2, 3)), columns=["a", "a", "b"])
    with pytest.raises(ValueError, match="X has more than one column named 'a'; rename"):
        ColumnEncoder.from_frame(frame)
    with pytest.raises(ValueError, match="X has more than one column named '1'; rename"):
        ColumnEncoder.from_frame(pd.DataFrame(np.ones((2, 2)), columns=[1, "1"]))


def test_no_columns():
    with pytest.raises(ValueError, match="X is a data frame without columns"):
        ColumnEncoder.from_frame(pd.DataFrame(index=[0, 1]))


def test_lazy_frames():
    with pytest.raises(TypeError, match="X is a polars.LazyFrame, which cannot be read.*collect a lazy frame"):
        ColumnEncoder.from_frame(pl.DataFrame({"a": [1]}).lazy())


def test_narwhals_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "narwhals.stable.v2", None)
    with pytest.raises(ImportError, match=r"X is a pandas.DataFrame.*pip install bregpath\[frames\]"):
        ColumnEncoder.from_frame(pd.DataFrame({"a": [1.0]}))


# --- targets -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [[1, None], [0.5, np.nan], [True, None], ["u", None]], ids=str)
def test_missing_targets(frame_of, values):
    if frame_of is not pd.DataFrame and values[0] == 0.5:
        values = [0.5, None]
    with pytest.raises(ValueError, match="y has 1 missing value; drop these rows from X and y"):
        series_to_numpy(frame_of({"y": values})["y"])


@pytest.mark.parametrize("dtype", ["Int64", "string", "boolean", "category"])
def test_missing_targets_of_nullable_dtypes(dtype):
    with pytest.raises(ValueError, match="y has 2 missing values"):
        series_to_numpy(pd.Series([None, 1 if dtype != "string" else "1", None], dtype=dtype))


def test_bad_targets():
    with pytest.raises(ValueError, match="y is a frame with 2 columns; pass one column"):
        series_to_numpy(pd.DataFrame({"a": [1], "b": [2]}))
    with pytest.raises(ValueError, match=r"y must be one-dimensional, but has shape \(2, 2\)"):
        series_to_numpy(np.eye(2))
    with pytest.raises(TypeError, match="y has dtype datetime64.*convert it to numbers or to labels"):
        series_to_numpy(pd.Series(pd.to_datetime(["2020-01-01"])))
