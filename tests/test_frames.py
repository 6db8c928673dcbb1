"""Data frames of several libraries become the same design, and bad ones are refused by name."""

from __future__ import annotations

import json
import sys
from decimal import Decimal

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

import bregpath
from bregpath._frames import ColumnEncoder, is_frame, series_to_numpy

pytest.importorskip("narwhals")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

CONSTRUCTORS = {"pandas": pd.DataFrame, "polars": pl.DataFrame}
try:
    import pyarrow as pa
except ImportError:
    pa = None
else:
    CONSTRUCTORS["pyarrow"] = pa.table


@pytest.fixture(params=CONSTRUCTORS)
def frame_of(request):
    return CONSTRUCTORS[request.param]


def mixed():
    return {
        "bmi": [21.5, 30.0, 25.25],
        "region": ["north", "south", "east"],
        "smoker": [True, False, True],
        "children": [0, 2, 1],
    }


MIXED_DESIGN = [[21.5, 0, 1, 0, 1, 0], [30.0, 0, 0, 1, 0, 2], [25.25, 1, 0, 0, 1, 1]]


# --- encoding ----------------------------------------------------------------------------------------


def test_mixed_frame(frame_of):
    frame = frame_of(mixed())
    encoder = ColumnEncoder.from_frame(frame)
    design = encoder.encode(frame)
    assert_array_equal(design, MIXED_DESIGN)
    assert design.dtype == np.float64
    assert design.flags.f_contiguous
    assert encoder.feature_names_in == ("bmi", "region", "smoker", "children")
    assert encoder.names == (
        "bmi", "region[east]", "region[north]", "region[south]", "smoker", "children"
    )  # fmt: skip
    assert_array_equal(encoder.groups, [0, 1, 1, 1, 2, 3])
    assert encoder.has_categories
    assert encoder.n_design_columns == 6


def test_numeric_frame(frame_of):
    values = np.arange(12.0).reshape(4, 3)
    frame = frame_of({name: values[:, j] for j, name in enumerate("abc")})
    encoder = ColumnEncoder.from_frame(frame)
    design = encoder.encode(frame)
    assert_array_equal(design, values)
    assert design.flags.f_contiguous
    assert design.flags.owndata
    assert design.flags.writeable
    assert not encoder.has_categories
    assert encoder.names == encoder.feature_names_in == ("a", "b", "c")
    assert_array_equal(encoder.groups, [0, 1, 2])


def test_the_design_is_a_copy():
    frame = pd.DataFrame(np.ones((3, 2), order="F"), columns=["a", "b"])
    ColumnEncoder.from_frame(frame).encode(frame)[:] = 7.0
    assert_array_equal(frame.to_numpy(), 1.0)


def test_columns_in_any_order(frame_of):
    encoder = ColumnEncoder.from_frame(frame_of(mixed()))
    shuffled = frame_of(dict(reversed(mixed().items())))
    assert_array_equal(encoder.encode(shuffled), MIXED_DESIGN)
    numeric = ColumnEncoder.from_frame(frame_of({"a": [1.0], "b": [2.0], "c": [3.0]}))
    assert_array_equal(numeric.encode(frame_of({"c": [3.0], "a": [1.0], "b": [2.0]})), [[1.0, 2.0, 3.0]])


def test_one_library_reads_what_another_has_learned(frame_of):
    encoder = ColumnEncoder.from_frame(pd.DataFrame(mixed()))
    assert_array_equal(encoder.encode(frame_of(mixed())), MIXED_DESIGN)


def test_fewer_levels_later(frame_of):
    encoder = ColumnEncoder.from_frame(frame_of({"c": ["u", "v", "w"]}))
    assert_array_equal(encoder.encode(frame_of({"c": ["w", "w"]})), [[0, 0, 1], [0, 0, 1]])


def test_no_rows(frame_of):
    encoder = ColumnEncoder.from_frame(frame_of(mixed()))
    empty = frame_of({name: np.array(values)[:0] for name, values in mixed().items()})
    assert encoder.encode(empty).shape == (0, 6)


def test_booleans_next_to_huge_numbers_whose_sum_overflows(frame_of):
    frame = frame_of({"b": [True, False], "x": [1e308, 1e308]})
    assert_array_equal(ColumnEncoder.from_frame(frame).encode(frame), [[1, 1e308], [0, 1e308]])


@pytest.mark.parametrize("dtype", ["int8", "uint16", "float32", "Int64", "UInt8", "Float64", "boolean"])
def test_pandas_numeric_dtypes(dtype):
    frame = pd.DataFrame({"a": pd.array([1, 0, 1], dtype=dtype), "x": [0.5, 1.5, 2.5]})
    assert_array_equal(ColumnEncoder.from_frame(frame).encode(frame), [[1, 0.5], [0, 1.5], [1, 2.5]])


@pytest.mark.skipif(pa is None, reason="pyarrow is not installed")
@pytest.mark.parametrize("dtype", ["int64[pyarrow]", "double[pyarrow]", "bool[pyarrow]"])
def test_pandas_backed_by_pyarrow(dtype):
    frame = pd.DataFrame(
        {"a": pd.array([1, 0, 1], dtype=dtype), "s": pd.array(["u", "v", "u"], dtype="string[pyarrow]")}
    )
    assert_array_equal(ColumnEncoder.from_frame(frame).encode(frame), [[1, 1, 0], [0, 0, 1], [1, 1, 0]])


def test_decimals():
    frame = pl.DataFrame({"a": [Decimal("1.50"), Decimal("2.25")], "b": [1, 2]})
    assert_array_equal(ColumnEncoder.from_frame(frame).encode(frame), [[1.5, 1], [2.25, 2]])


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"c": pd.Categorical(["lo", "hi"], categories=["lo", "mid", "hi"], ordered=True)}),
        pl.DataFrame({"c": pl.Series(["lo", "hi"], dtype=pl.Enum(["lo", "mid", "hi"]))}),
    ],
    ids=["pandas", "polars"],
)
def test_enumerations_keep_their_declared_levels(frame):
    encoder = ColumnEncoder.from_frame(frame)
    assert encoder.columns[0].levels == ("lo", "mid", "hi")
    assert_array_equal(encoder.encode(frame), [[1, 0, 0], [0, 0, 1]])


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"c": pd.Categorical(["v", "u"], categories=["v", "unused", "u"])}),
        pd.DataFrame({"c": pd.Series(["v", "u"], dtype="string")}),
        pd.DataFrame({"c": pd.Series(["v", "u"], dtype=object)}),
        pl.DataFrame({"c": pl.Series(["v", "u"], dtype=pl.Categorical)}),
    ],
    ids=["pandas-categorical", "pandas-string", "pandas-object", "polars-categorical"],
)
def test_other_categories_are_the_levels_found(frame):
    encoder = ColumnEncoder.from_frame(frame)
    assert encoder.columns[0].levels == ("u", "v")
    assert_array_equal(encoder.encode(frame), [[0, 1], [1, 0]])


def test_numbers_as_categories_are_sorted_by_size():
    frame = pd.DataFrame({"year": pd.Categorical([10, 2, 10])})
    encoder = ColumnEncoder.from_frame(frame)
    assert encoder.names == ("year[2]", "year[10]")
    assert_array_equal(encoder.encode(frame), [[0, 1], [1, 0], [0, 1]])
    several_types = pd.DataFrame({"c": pd.Categorical([10, "x"])})
    assert ColumnEncoder.from_frame(several_types).columns[0].levels == ("10", "x")


def test_names_that_are_not_strings():
    frame = pd.DataFrame([[1.0, "u"], [2.0, "v"]]).astype({0: float})
    encoder = ColumnEncoder.from_frame(frame)
    assert encoder.feature_names_in == ("0", "1")
    assert_array_equal(encoder.encode(frame[[1, 0]]), [[1, 1, 0], [2, 0, 1]])


def test_json_round_trip(frame_of):
    encoder = ColumnEncoder.from_frame(frame_of(mixed()))
    assert ColumnEncoder.from_dict(json.loads(json.dumps(encoder.to_dict()))) == encoder


# --- refusals ----------------------------------------------------------------------------------------


def test_missing_and_extra_columns(frame_of):
    encoder = ColumnEncoder.from_frame(frame_of({"a": [1.0], "b": [1.0], "c": [1.0]}))
    with pytest.raises(
        ValueError, match=r"X does not have the 3 columns seen before: it lacks 'b', 'c'\. Pass"
    ):
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
    with pytest.raises(
        ValueError, match="unknown levels in column 'c': 'w', 'z'. Known levels are 'u', 'v'; recode"
    ):
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
def test_missing_values(frame_of, column, values):
    encoder = ColumnEncoder.from_frame(frame_of(mixed()))
    holes = frame_of(mixed() | {column: values})
    if frame_of is pd.DataFrame and column == "smoker":
        holes = pd.DataFrame(mixed() | {"smoker": pd.array(values, dtype="boolean")})
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
    frame = CONSTRUCTORS[name](
        {"a": [1.0, 2.0], "day": days if name == "pandas" else list(days.to_pydatetime())}
    )
    with pytest.raises(
        TypeError, match=r"X has dtype Datetime.* in column 'day', where numbers, booleans, str"
    ):
        ColumnEncoder.from_frame(frame)


def test_objects_are_refused():
    frame = pd.DataFrame({"a": pd.Series([1, [2]], dtype=object)})
    with pytest.raises(TypeError, match="X has dtype Object in column 'a'.*convert or drop it"):
        ColumnEncoder.from_frame(frame)


def test_another_kind_than_before(frame_of):
    encoder = ColumnEncoder.from_frame(frame_of({"x": [1.0], "c": ["u"]}))
    with pytest.raises(
        TypeError, match="dtype String in column 'x', where a numeric column, as it was before"
    ):
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
    with pytest.raises(
        TypeError, match="X is a polars.LazyFrame, which cannot be read.*collect a lazy frame"
    ):
        ColumnEncoder.from_frame(pl.DataFrame({"a": [1]}).lazy())


def test_narwhals_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "narwhals.stable.v2", None)
    with pytest.raises(ImportError, match=r"X is a pandas.DataFrame.*pip install bregpath\[frames\]"):
        ColumnEncoder.from_frame(pd.DataFrame({"a": [1.0]}))


# --- what is a frame ---------------------------------------------------------------------------------


def test_is_frame(frame_of):
    assert is_frame(frame_of({"a": [1.0]}))
    assert is_frame(pl.DataFrame({"a": [1.0]}).lazy())
    column = frame_of({"a": [1.0]})["a"]
    for other in (
        np.ones((2, 2)),
        sp.csc_array(np.eye(2)),
        sp.csr_matrix(np.eye(2)),
        [[1.0]],
        None,
        "a",
        column,
    ):
        assert not is_frame(other)


# --- targets -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "kind"), [([1, 2], "i"), ([0.5, 1.5], "f"), ([True, False], "b"), (["u", "v"], "O")]
)
def test_targets(frame_of, values, kind):
    frame = frame_of({"y": values})
    for y in (frame["y"], frame):
        array = series_to_numpy(y)
        assert array.dtype.kind == kind
        assert array.tolist() == values


@pytest.mark.parametrize(
    ("y", "kind"),
    [
        (pd.Series([1, 2], dtype="Int64"), "i"),
        (pd.Series([0.5, 2], dtype="Float64"), "f"),
        (pd.Series([True, False], dtype="boolean"), "b"),
        (pd.Series([1, 2], dtype=object), "i"),
        (pd.Series(["u", "v"], dtype="category"), "O"),
        (pd.Series(["u", "v"], dtype="string"), "O"),
        (pd.Series([3, 1], dtype="category"), "i"),
        (pl.Series(["u", "v"], dtype=pl.Categorical), "O"),
        (pl.Series(["u", "v"], dtype=pl.Enum(["v", "u"])), "O"),
        (pl.Series([Decimal("1.5"), Decimal("2.0")]), "f"),
        (pd.Series([], dtype=object), "O"),
        (np.array([1.0, 2.0]), "f"),
        ([1, 2], "i"),
        (["u", "v"], "O"),
        (np.array(["u", "v"]), "O"),
    ],
    ids=repr,
)
def test_kinds_of_targets(y, kind):
    array = series_to_numpy(y)
    assert array.dtype.kind == kind
    assert array.tolist() == [float(v) if isinstance(v, Decimal) else v for v in y]


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
