"""Export: every edge and node arrives, with its attributes, in networkx, tables, GraphML and CSV."""

from __future__ import annotations

import builtins
import csv

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal

from bregpath.graphs import adjacency, edge_table, sparsity, to_networkx, write_edges, write_graphml
from bregpath.graphs.export import check_graph

NAMES = ["ann", "bob", "cy", "dee, jr.", "ed"]
KEYS = ["source", "target", "weight", "sign", "strength"]


@pytest.fixture(name="weights")
def make_weights():
    """Four edges; `ed` has none."""
    out = np.zeros((5, 5))
    for j, k, weight in [(0, 1, 0.1 + 0.2), (0, 2, -1.5), (1, 2, 0.7), (2, 3, -1e-5)]:
        out[j, k] = out[k, j] = weight
    return out


@pytest.fixture(name="times")
def make_times(weights):
    out = np.full((5, 5), np.inf)
    for t, (j, k) in enumerate([(1, 2), (0, 1), (2, 3), (0, 2)], start=1):
        out[j, k] = out[k, j] = t
    return out


# --- networkx ------------------------------------------------------------------------------------------


def test_networkx_edges(weights):
    pytest.importorskip("networkx")
    graph = to_networkx(weights, NAMES)
    assert graph.number_of_edges() == 4 and not graph.is_directed()
    for a, b, data in graph.edges(data=True):
        weight = weights[NAMES.index(a), NAMES.index(b)]
        assert data == {"weight": weight, "sign": -1 if weight < 0 else 1, "strength": abs(weight)}
        assert [type(data[key]) for key in KEYS[2:]] == [float, int, float]


def test_networkx_nodes(weights):
    pytest.importorskip("networkx")
    extra = {"party": list("DRDRI"), "seats": np.arange(5)}
    graph = to_networkx(weights, NAMES, fields=np.linspace(-1, 1, 5), node_attributes=extra)
    assert list(graph.nodes) == NAMES
    assert graph.degree["ed"] == 0
    assert graph.nodes["bob"] == {"field": -0.5, "party": "R", "seats": 1}
    assert type(graph.nodes["bob"]["seats"]) is int


def test_default_names_and_no_edges():
    pytest.importorskip("networkx")
    graph = to_networkx(np.zeros((3, 3)))
    assert list(graph.nodes) == ["x0", "x1", "x2"] and graph.number_of_edges() == 0


def test_graphml_round_trip(weights, tmp_path):
    nx = pytest.importorskip("networkx")
    graph = to_networkx(weights, NAMES, fields=np.arange(5.0), node_attributes={"party": list("DRDRI")})
    write_graphml(graph, tmp_path / "graph.graphml")
    back = nx.read_graphml(tmp_path / "graph.graphml")
    assert dict(back.nodes(data=True)) == dict(graph.nodes(data=True))
    assert nx.utils.edges_equal(back.edges(data=True), graph.edges(data=True))


def test_without_networkx(weights, monkeypatch):
    absent(monkeypatch, "networkx")
    with pytest.raises(ImportError, match=r"pip install bregpath\[graph\]"):
        to_networkx(weights)


# --- tables --------------------------------------------------------------------------------------------


def test_table_by_strength(weights):
    pytest.importorskip("pandas")
    table = edge_table(weights, NAMES)
    assert list(table.columns) == KEYS
    assert list(table["strength"]) == [1.5, 0.7, 0.1 + 0.2, 1e-5]
    assert list(zip(table["source"], table["target"], strict=True))[0] == ("ann", "cy")
    assert list(table["sign"]) == [-1, 1, 1, -1]
    assert (table["sign"] * table["strength"] == table["weight"]).all()


def test_table_by_entry(weights, times):
    pytest.importorskip("pandas")
    table = edge_table(weights, NAMES, times)
    assert list(table.columns) == [*KEYS, "entry_time"]
    assert list(table["entry_time"]) == [1.0, 2.0, 3.0, 4.0]
    assert list(table["weight"]) == [0.7, 0.1 + 0.2, -1e-5, -1.5]


def test_equal_entries_by_strength(weights):
    pytest.importorskip("pandas")
    table = edge_table(weights, NAMES, np.ones((5, 5)))
    assert list(table["strength"]) == sorted(table["strength"], reverse=True)


def test_empty_table():
    pytest.importorskip("pandas")
    table = edge_table(np.zeros((4, 4)))
    assert len(table) == 0 and list(table.columns) == KEYS


def test_csv_round_trip(weights, times, tmp_path):
    write_edges(weights, tmp_path / "edges.csv", NAMES, times)
    with open(tmp_path / "edges.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [*KEYS, "entry_time"]
    back = np.zeros((5, 5))
    for row in rows:
        j, k = NAMES.index(row["source"]), NAMES.index(row["target"])
        back[j, k] = back[k, j] = float(row["weight"])
        assert row["sign"] == ("1" if back[j, k] > 0 else "-1") and float(row["entry_time"]) == times[j, k]
    assert_array_equal(back, weights)  # every digit


def test_csv_needs_no_pandas(weights, tmp_path, monkeypatch):
    absent(monkeypatch, "pandas")
    write_edges(weights, tmp_path / "edges.csv")
    assert (tmp_path / "edges.csv").read_text().startswith("source,target,weight,sign,strength\nx0,x2,-1.5,-1,1.5\n")
    with pytest.raises(ImportError, match="pip install pandas"):
        edge_table(weights)


# --- adjacency, sparsity -------------------------------------------------------------------------------


def test_adjacency(weights):
    joined = adjacency(weights)
    assert joined.dtype == bool and joined.sum() == 8 and not joined.diagonal().any()
    assert_array_equal(joined, joined.T)
    assert_array_equal(adjacency(scipy.sparse.csr_array(weights)), joined)


def test_sparsity(weights):
    assert sparsity(weights) == 4 / 10
    assert sparsity(np.ones((6, 6)) - np.eye(6)) == 1.0
    assert sparsity(np.zeros((1, 1))) == 0.0


# --- bad input -----------------------------------------------------------------------------------------


def test_rounding_is_no_asymmetry(weights):
    rounded = weights * (1 + 1e-12 * np.triu(np.ones((5, 5))))
    matrix, _ = check_graph(rounded)
    assert_array_equal(matrix, matrix.T)
    before = weights.copy()
    check_graph(weights)
    assert_array_equal(weights, before)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w[:3], r"`weights` must be a square matrix.*\(3, 5\)"),
        (lambda w: w[:0, :0], "`weights` is empty"),
        (lambda w: w + np.eye(5), r"zero diagonal, found weights\[0, 0\] = 1.*fill_diagonal"),
        (lambda w: np.triu(w), r"symmetric, found weights\[0, 2\] = -1.5 but weights\[2, 0\] = 0"),
        (lambda w: np.where(w == 0.7, np.nan, w), "`weights` contains NaN"),
        (lambda w: w.astype(str).tolist()[:4] + [["a"] * 5], "`weights` must hold real numbers"),
    ],
)
def test_bad_weights(weights, change, message):
    for function in (adjacency, sparsity, to_networkx, edge_table):
        with pytest.raises(ValueError, match=message):
            function(change(weights))


def test_bad_names_and_attributes(weights, times):
    with pytest.raises(ValueError, match="`names` must have one entry for each of the 5 nodes, found 4"):
        edge_table(weights, NAMES[:4])
    with pytest.raises(ValueError, match="`names` must differ, found 'ann'"):
        edge_table(weights, ["ann", *NAMES[:4]])
    with pytest.raises(TypeError, match="found the text 'abcde'"):
        edge_table(weights, "abcde")
    with pytest.raises(ValueError, match=r"`fields` must .* 5 nodes, found shape \(5, 2\)"):
        to_networkx(weights, fields=np.ones((5, 2)))
    with pytest.raises(ValueError, match="`node_attributes`\\['party'\\] .* found 2"):
        to_networkx(weights, node_attributes={"party": "DR"})
    with pytest.raises(ValueError, match="`node_attributes` has 'field'"):
        to_networkx(weights, fields=np.ones(5), node_attributes={"field": [1] * 5})
    with pytest.raises(ValueError, match="`entry_times` must have the shape"):
        edge_table(weights, entry_times=times[:3])
    with pytest.raises(ValueError, match="`entry_times` must be symmetric"):
        edge_table(weights, entry_times=np.triu(times))


def absent(monkeypatch, missing):
    """Make one package impossible to import."""
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.split(".")[0] == missing:
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
