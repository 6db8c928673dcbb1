"""Data frames of several libraries become the same design."""

from __future__ import annotations

import json
from decimal import Decimal

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from bregpath._frames import ColumnEncoder, is_frame, series_to_numpy

pytest.importorskip("narwhals")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

MIXED_DESIGN = [[21.5, 0, 1, 0, 1, 0], [30.0, 0, 0, 1, 0, 2], [25.25, 1, 0, 0, 1, 1]]


# --- encoding ----------------------------------------------------------------------------------------


def test_mixed_frame(frame_of, mixed):
    frame = frame_of(mixed)
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


def test_columns_in_any_order(frame_of, mixed):
    encoder = ColumnEncoder.from_frame(frame_of(mixed))
    shuffled = frame_of(dict(reversed(mixed.items())))
    assert_array_equal(encoder.encode(shuffled), MIXED_DESIGN)
    numeric = ColumnEncoder.from_frame(frame_of({"a": [1.0], "b": [2.0], "c": [3.0]}))
    assert_array_equal(numeric.encode(frame_of({"c": [3.0], "a": [1.0], "b": [2.0]})), [[1.0, 2.0, 3.0]])


def test_one_library_reads_what_another_has_learned(frame_of, mixed):
    encoder = ColumnEncoder.from_frame(pd.DataFrame(mixed))
    assert_array_equal(encoder.encode(frame_of(mixed)), MIXED_DESIGN)


def test_fewer_levels_later(frame_of):
    encoder = ColumnEncoder.from_frame(frame_of({"c": ["u", "v", "w"]}))
    assert_array_equal(encoder.encode(frame_of({"c": ["w", "w"]})), [[0, 0, 1], [0, 0, 1]])


def test_no_rows(frame_of, mixed):
    encoder = ColumnEncoder.from_frame(frame_of(mixed))
    empty = frame_of({name: np.array(values)[:0] for name, values in mixed.items()})
    assert encoder.encode(empty).shape == (0, 6)


def test_booleans_next_to_huge_numbers_whose_sum_overflows(frame_of):
    frame = frame_of({"b": [True, False], "x": [1e308, 1e308]})
    assert_array_equal(ColumnEncoder.from_frame(frame).encode(frame), [[1, 1e308], [0, 1e308]])


@pytest.mark.parametrize("dtype", ["int8", "uint16", "float32", "Int64", "UInt8", "Float64", "boolean"])
def test_pandas_numeric_dtypes(dtype):
    frame = pd.DataFrame({"a": pd.array([1, 0, 1], dtype=dtype), "x": [0.5, 1.5, 2.5]})
    assert_array_equal(ColumnEncoder.from_frame(frame).encode(frame), [[1, 0.5], [0, 1.5], [1, 2.5]])


@pytest.mark.parametrize("dtype", ["int64[pyarrow]", "double[pyarrow]", "bool[pyarrow]"])
def test_pandas_backed_by_pyarrow(dtype):
    pytest.importorskip("pyarrow")
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


def test_json_round_trip(frame_of, mixed):
    encoder = ColumnEncoder.from_frame(frame_of(mixed))
    assert ColumnEncoder.from_dict(json.loads(json.dumps(encoder.to_dict()))) == encoder


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
