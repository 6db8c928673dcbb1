"""Tables as codes: labels of all kinds, rare ones, missing ones, and rows that repeat."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from bregpath.graphs.data import RARE, StateCoder, check_nodes, collapse_rows, read_columns, read_numbers

TABLE = np.array([["b", "x"], ["a", "y"], ["b", "x"], ["c", "z"]])


def test_labels_are_sorted_and_coded():
    coder, codes = StateCoder.learn(TABLE)
    assert coder.names == ("x0", "x1")
    assert [levels.tolist() for levels in coder.levels] == [["a", "b", "c"], ["x", "y", "z"]]
    assert_array_equal(codes, [[1, 0], [0, 1], [1, 0], [2, 2]])
    assert_array_equal(coder.encode(TABLE[[3, 0]]), codes[[3, 0]])
    assert_array_equal(coder.encode(TABLE[:1]), codes[:1])  # one row is enough for new data


def test_equal_labels_of_other_types_are_the_same():
    coder, codes = StateCoder.learn(np.array([[0, 1], [1, 0], [1, 1]]))
    for other in (np.array([[0.0, 1.0]]), np.array([[False, True]]), np.array([[0, 1]], dtype=np.int8)):
        assert_array_equal(coder.encode(other), codes[:1])


def test_rare_labels_share_the_last_level():
    coder, codes = StateCoder.learn(TABLE, min_count=2)
    assert [levels.tolist() for levels in coder.levels] == [["b", RARE], ["x", RARE]]
    assert_array_equal(codes, [[0, 0], [1, 1], [0, 0], [1, 1]])
    assert_array_equal(coder.encode([["new", "x"]]), [[1, 0]])
    weighted, _ = StateCoder.learn(TABLE, min_count=2, w=[1.0, 2.0, 1.0, 1.0])
    assert [levels.tolist() for levels in weighted.levels] == [["a", "b", RARE], ["x", "y", RARE]]


def test_nothing_is_pooled_where_nothing_is_rare():
    coder, _ = StateCoder.learn(np.repeat(TABLE, 3, axis=0), min_count=2)
    assert all(RARE not in levels for levels in coder.levels)
    with pytest.raises(ValueError, match=r"labels \['q'\] in column 'x0'"):
        coder.encode([["q", "x"]])


@pytest.mark.parametrize("make", ["list", "object", "categorical", "nullable", "strings", "polars", "polars enum"])
def test_tables_of_every_kind_have_the_same_codes(make):
    rows = [[2, 0], [1, 1], [2, 1], [2, 0]]
    if make == "list":
        X = rows
    elif make == "object":
        X = np.array(rows, dtype=object)
    elif make.startswith("polars"):
        pl = pytest.importorskip("polars")
        X = pl.DataFrame({"u": [r[0] for r in rows], "v": [r[1] for r in rows]})
        if make == "polars enum":
            X = X.with_columns(pl.col("u").cast(pl.String).cast(pl.Enum(["1", "2"])))
    else:
        pd = pytest.importorskip("pandas")
        X = pd.DataFrame(rows, columns=["u", "v"])
        X = X.astype({"categorical": "category", "nullable": "Int64", "strings": "string"}[make])
    coder, codes = StateCoder.learn(X)
    assert_array_equal(codes, [[1, 0], [0, 1], [1, 1], [1, 0]])
    assert coder.names == (("x0", "x1") if make in ("list", "object") else ("u", "v"))
    assert_array_equal(coder.encode(X), codes)


def test_sparse_tables_are_read():
    sparse = pytest.importorskip("scipy.sparse")
    X = np.array([[0, 1], [1, 0], [0, 0]])
    assert_array_equal(StateCoder.learn(sparse.csr_array(X))[1], X)


@pytest.mark.parametrize(
    "column",
    [[1.0, np.nan, 2.0], ["a", None, "b"], [1, None, 0], [True, None, False], ["a", np.nan, "b"]],
)
def test_missing_values_are_named(column):
    array = np.empty((3, 2), dtype=object)
    array[:, 0], array[:, 1] = [0, 1, 1], column
    with pytest.raises(ValueError, match=r"`X` has 1 missing value\(s\) in column 1 \(first: row 1\)"):
        read_columns(array)
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    frames = [pd.DataFrame({"u": [0, 1, 1], "v": column})]
    if not any(isinstance(value, float) and value != value for value in column):
        frames.append(pl.DataFrame({"u": [0, 1, 1], "v": column}))
        frames.append(pd.DataFrame({"u": [0, 1, 1], "v": column}).convert_dtypes())
    for frame in frames:
        with pytest.raises(ValueError, match=r"`X` has 1 missing value\(s\) in column 'v' \(first: row 1\)"):
            read_columns(frame)


def test_labels_of_two_types_are_refused():
    mixed = np.array([["a", 0], [1, 1], ["b", 0]], dtype=object)
    with pytest.raises(TypeError, match="`X` mixes int and str in column 'x0'"):
        StateCoder.learn(mixed)
    coder, _ = StateCoder.learn(np.array([[0, 0], [1, 1]]))
    with pytest.raises(TypeError, match="mixes"):
        coder.encode(mixed)


def test_shapes():
    with pytest.raises(ValueError, match="two-dimensional"):
        read_columns([1, 2, 3])
    with pytest.raises(ValueError, match="at least 2 nodes"):
        read_columns([[1], [2]])
    with pytest.raises(ValueError, match="0 row"):
        read_columns(np.zeros((0, 3)))
    with pytest.raises(ValueError, match="1 row"):
        StateCoder.learn([[1, 2]])


# --- numbers ----------------------------------------------------------------------------------------------------------


def test_numbers_of_every_kind():
    expected = np.array([[1.0, 2.0], [0.0, 4.5]])
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    columns = {"u": [1, 0], "v": [2.0, 4.5]}
    frames = [pd.DataFrame(columns), pd.DataFrame(columns).convert_dtypes(), pl.DataFrame(columns)]
    for frame in frames:
        values, names = read_numbers(frame)
        assert_array_equal(values, expected)
        assert names == ("u", "v")
    for table in (expected, expected.tolist(), expected.astype(np.float32), expected.astype(object)):
        values, names = read_numbers(table)
        assert_array_equal(values, expected)
        assert values.dtype == float
        assert names is None
    assert_array_equal(read_numbers([[Decimal("1"), 2], [Decimal("0"), 4.5]])[0], expected)
    assert_array_equal(read_numbers([[True, False], [False, True]])[0], np.eye(2))


@pytest.mark.parametrize("wrong", ["a", "1.5", 1 + 2j])
def test_text_is_no_number(wrong):
    table = np.array([[1.0, 2.0], [3.0, wrong]], dtype=object)
    with pytest.raises(TypeError, match="`X` must hold numbers, found .* in column 1; use PottsGraph"):
        read_numbers(table)


def test_infinity_is_refused():
    with pytest.raises(ValueError, match="`X` contains infinity in column 1"):
        read_numbers([[1.0, np.inf], [2.0, 3.0]])


def test_new_data_has_the_same_nodes():
    check_nodes(2, None, ("a", "b"))
    check_nodes(2, ("a", "b"), ("a", "b"))
    with pytest.raises(ValueError, match="`X` has 3 columns, the graph has 2 nodes"):
        check_nodes(3, None, ("a", "b"))
    with pytest.raises(ValueError, match="`X` has other columns .* column 1 is 'c', the node 'b'"):
        check_nodes(2, ("a", "c"), ("a", "b"))


# --- rows that repeat -------------------------------------------------------------------------------------------------


def test_rows_are_collapsed_and_keep_their_weight(rng):
    codes = rng.integers(2, size=(50, 3))
    w = rng.uniform(size=50)
    w[::7] = 0.0
    rows, total = collapse_rows(codes, w)
    assert len(np.unique(rows, axis=0)) == len(rows) <= 8
    for row, weight in zip(rows, total, strict=True):
        np.testing.assert_allclose(weight, w[(codes == row).all(axis=1)].sum())
    np.testing.assert_allclose(total.sum(), w.sum())


def test_distinct_rows_stay_in_their_order():
    codes = np.array([[1, 1], [0, 0], [1, 0]])
    rows, w = collapse_rows(codes, np.array([0.2, 0.3, 0.5]))
    assert_array_equal(rows, codes)
    assert_array_equal(w, [0.2, 0.3, 0.5])
