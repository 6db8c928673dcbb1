"""What a fitted graph tells of itself: summaries, tables of nodes and groups, comparisons, its strongest edges."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bregpath.graphs import compare_graphs, group_table, node_table
from tests.graphs.cases import CASES, ONE_OF_EACH, data_of, gaussian_data, graph_of, ising_data

SMALL = {"n_times": 8, "t_ratio": 10.0}
W = np.array([[0.0, 1.0, -2.0, 0.0], [1.0, 0.0, 0.0, 0.0], [-2.0, 0.0, 0.0, 0.5], [0.0, 0.0, 0.5, 0.0]])


def named(case, **options):
    X = data_of(case)
    frame = pd.DataFrame(X, columns=[f"node {j}" for j in range(X.shape[1])])
    return graph_of(case, **SMALL, **options).fit(frame)


# --- nodes and groups --------------------------------------------------------------------------------------------


def test_nodes_by_hand():
    table = node_table(W, list("abcd"), node_groups=["u", "u", "v", "v"])
    assert table.node.tolist() == ["a", "c", "b", "d"]
    assert table.degree.tolist() == [2, 2, 1, 1]
    assert table.positive.tolist() == [1, 1, 1, 1]
    assert table.negative.tolist() == [1, 1, 0, 0]
    assert table.strength.tolist() == [3.0, 2.5, 1.0, 0.5]
    assert table.within.tolist() == [1, 1, 1, 1]


def test_groups_by_hand():
    table = group_table(W, {"a": "u", "b": "u", "c": "v", "d": "v"}, list("abcd")).set_index(["group", "other"])
    assert table.loc[("u", "u"), ["pairs", "edges", "positive", "negative"]].tolist() == [1, 1, 1, 0]
    assert table.loc[("u", "v"), ["pairs", "edges", "positive", "negative"]].tolist() == [4, 1, 0, 1]
    assert table.loc[("u", "v"), "share"] == 0.25
    assert table.loc[("u", "v"), "strength"] == 2.0
    assert table.loc[("v", "v"), "strength"] == 0.5


@pytest.mark.parametrize("case", ONE_OF_EACH)
def test_tables_of_a_graph_add_up(case):
    graph = named(case)
    groups = [j % 2 for j in range(graph.n_features_in_)]
    nodes, between = graph.node_table(node_groups=groups), graph.group_table(groups)
    n_edges = graph.adjacency_.sum() // 2
    assert nodes.degree.sum() == 2 * n_edges
    assert_allclose(nodes.strength.sum(), np.abs(graph.weights_).sum())
    assert between.edges.sum() == n_edges
    assert between.pairs.sum() == graph.n_features_in_ * (graph.n_features_in_ - 1) // 2
    assert set(nodes.node) == set(graph.path_.names)
    early = graph.node_table(float(graph.path_.t[0]))
    assert early.degree.sum() == 2 * graph.path_.n_edges[0]


@pytest.mark.parametrize(
    ("groups", "error", "text"),
    [
        (["u"], ValueError, "`node_groups` must have one label for each of the 4 nodes, found 1"),
        ({"a": "u"}, ValueError, "`node_groups` has no label for the node 'b'"),
        ("uuvv", TypeError, "`node_groups` must have a label for each node"),
    ],
)
def test_groups_of_the_wrong_size(groups, error, text):
    with pytest.raises(error, match=text):
        group_table(W, groups, list("abcd"))


# --- the strongest edges -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_the_strongest_edges_of_the_chosen_graph(case):
    graph = named(case)
    few = graph.strongest(2)
    weights = np.abs(np.triu(graph.weights_))
    expected = weights >= np.sort(weights.ravel())[-2]
    assert_array_equal(np.triu(few.adjacency_), expected)
    assert few.path_.n_edges.max() == 2
    assert few.t_ == pytest.approx(graph.t_)
    assert graph.adjacency_.sum() // 2 > 2, "the graph itself is as it was"
    assert_array_equal(few.model().adjacency, few.adjacency_)


def test_all_edges_are_the_graph_itself():
    graph = named("ising-composite")
    same = graph.strongest(int(graph.adjacency_.sum()) // 2)
    assert_array_equal(same.adjacency_, graph.adjacency_)
    assert not graph.strongest(0).adjacency_.any()


def test_more_edges_than_there_are():
    graph = named("ising-composite")
    with pytest.raises(ValueError, match="`k` is 16, but the chosen graph has"):
        graph.strongest(16)


# --- comparison --------------------------------------------------------------------------------------------------


def test_comparison_by_hand():
    other = np.zeros((4, 4))
    other[0, 1] = other[1, 0] = -3.0
    other[2, 3] = other[3, 2] = 1.0
    other[1, 3] = other[3, 1] = 0.25
    both = compare_graphs(W, other, list("abcd"))
    assert both.common.tolist() == [[0, 1], [2, 3]]
    assert both.only_here.tolist() == [[0, 2]]
    assert both.only_there.tolist() == [[1, 3]]
    assert both.overlap == 0.5
    assert both.sign_agreement == 0.5
    table = both.to_frame()
    assert table.difference.tolist() == [-4.0, 2.0, 0.5, 0.25]
    assert table.found.tolist() == ["both", "here", "both", "there"]
    assert table.source.tolist() == ["a", "a", "c", "b"]
    assert "2 edges in common; 50% of them with the same sign" in repr(both)


def test_nodes_are_matched_by_name():
    X = ising_data()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    one, two = (graph_of("ising-composite").fit(frame[list(order)]) for order in ("abcdef", "cafbed"))
    both = one.compare(two)
    assert both.overlap == 1.0
    assert_allclose(both.differences, 0.0, atol=1e-8)


def test_graphs_of_other_nodes():
    one = graph_of("ising-composite").fit(pd.DataFrame(ising_data(), columns=list("abcdef")))
    two = graph_of("ising-composite").fit(pd.DataFrame(ising_data(), columns=list("abcdeg")))
    with pytest.raises(ValueError, match="`other` has no node 'f'"):
        one.compare(two)
    with pytest.raises(ValueError, match="`other` has 4 nodes, the graph 6"):
        one.compare(W)
    assert one.compare(one.weights_).overlap == 1.0


# --- summaries ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ONE_OF_EACH)
def test_print_is_a_summary(case):
    graph = named(case)
    text = str(graph)
    assert f"{graph.n_features_in_} nodes, {graph.adjacency_.sum() // 2} of" in text
    assert graph.selection_.rule in text
    j, k = np.unravel_index(np.argmax(np.abs(np.triu(graph.weights_))), graph.weights_.shape)
    assert f"node {j} - node {k}" in text
    assert f"{graph.weights_[j, k]:+.3f}" in text
    assert "not known yet; see stability()" in text
    found = graph.stability(n_replicates=4, max_false=None)
    assert "on halves" in graph.summary()
    assert f"{len(found.selected)} edges were found on at least 90% of 4 halves" in graph.summary()
    assert graph.stability_ is found


def test_summary_names_the_chosen_kappa_and_stands_in_columns():
    graph = graph_of("ising-composite", stop="cv", kappa=[1.0, 10.0]).fit(ising_data())
    lines = graph.summary().splitlines()
    assert f"kappa = {graph.kappa_:g}, t = {graph.t_:.4g}" in lines[1]
    assert lines[2].endswith("weight") and len(lines[2]) == len(lines[3])
    assert "kappa" not in graph_of("ising-composite").fit(ising_data()).summary()


def test_the_shares_are_those_of_their_edges():
    graph = named("gaussian-likelihood")
    found = graph.stability(n_replicates=4, max_false=None).to_frame()
    lines = graph.summary(n_edges=3).splitlines()
    for line in lines[3:6]:
        name, share = line.rsplit(maxsplit=2)[0].strip(), float(line.rsplit(maxsplit=1)[1].rstrip("%")) / 100
        row = found[(found.source + " - " + found.target) == name]
        assert row.probability.item() == share


def test_before_fit_it_prints_as_estimators_do():
    graph = graph_of("ising-composite")
    assert str(graph) == repr(graph)
    fitted = graph_of("ising-composite", stop=2.0).fit(ising_data())
    assert "the time given by `stop`=2" in str(fitted)
    assert repr(fitted) == repr(graph_of("ising-composite", stop=2.0))


def test_a_graph_without_edges():
    rng = np.random.default_rng(0)
    graph = graph_of("gaussian-likelihood").fit(rng.standard_normal((60, 5)))
    empty = graph.at(float(graph.path_.t[0]) * 0.5)
    assert "No edges." in str(empty)


def test_stability_as_a_table():
    graph = named("gaussian-likelihood")
    stable = graph.stability(n_replicates=4, max_false=None)
    table = stable.to_frame()
    assert len(table) == graph.n_features_in_ * (graph.n_features_in_ - 1) // 2
    assert table.probability.is_monotonic_decreasing
    assert table.stable.sum() == len(stable.selected)
    pairs = {(f"node {j}", f"node {k}") for j, k in stable.selected}
    assert set(zip(table.source[table.stable], table.target[table.stable], strict=True)) == pairs


def test_numbers_need_no_names():
    graph = graph_of("gaussian-likelihood", **SMALL).fit(gaussian_data())
    assert "x0" in graph.node_table().node.tolist()
