"""Stability and intervals of edges: what the methods of a graph compute, by hand, and where they are refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bregpath.selection import replicate_intervals, replicate_stability
from tests.graphs.cases import CASES, ONE_OF_EACH, data_of, gaussian_data, gaussian_model, graph_of, ising_data

SMALL = {"n_times": 8, "t_ratio": 10.0}
EVERY = list(CASES)


@pytest.mark.parametrize("case", EVERY)
def test_intervals_are_those_of_the_weights(case):
    graph = graph_of(case, **SMALL).fit(data_of(case))
    found = graph.intervals(n_replicates=4, level=0.5)
    assert found.t == graph.t_
    assert_array_equal(found.estimate, graph.weights_)
    p = len(graph.weights_)
    assert found.samples.shape == (4, p, p)
    assert np.all(found.lower <= found.upper)
    assert_allclose(found.lower, np.quantile(found.samples, 0.25, axis=0))
    assert_array_equal(found.frequency, np.mean(found.samples != 0, axis=0))
    assert found.names == graph.path_.names
    assert_array_equal(graph.intervals(n_replicates=4, level=0.5, n_jobs=2).samples, found.samples)


@pytest.mark.parametrize("case", ["ising-composite", "ising-nodewise-or"])
def test_intervals_by_hand(case):
    """Each draw of rows fitted for itself, with as many copies as were drawn."""
    X, t = ising_data(), 6.0

    def trace(rows):
        return graph_of(case, stop=t, **SMALL).fit(X[rows]).path_

    by_hand = replicate_intervals(trace, len(X), t, n_replicates=3)
    found = graph_of(case, **SMALL).fit(X).intervals(t, n_replicates=3)
    assert_allclose(found.samples, by_hand.samples, atol=1e-8)


def test_intervals_are_in_the_coding_of_the_graph():
    X = ising_data()
    spin, binary = (graph_of("ising-composite", coding=coding, **SMALL).fit(X) for coding in ("spin", "binary"))
    one, two = (graph.intervals(n_replicates=3) for graph in (spin, binary))
    assert_array_equal(two.estimate, binary.weights_)
    assert_allclose(two.samples, 2 * one.samples)


@pytest.mark.parametrize("count", ["entered", "active"])
@pytest.mark.parametrize("case", EVERY)
def test_stability_is_the_share_of_halves_with_an_edge(case, count):
    X = data_of(case)
    graph = graph_of(case, **SMALL).fit(X)
    found = graph.stability(n_replicates=4, max_false=None, count=count)
    pairs = len(graph.weights_) * (len(graph.weights_) - 1) // 2
    assert found.probabilities.shape == (len(found.times), pairs)
    assert set(np.unique(found.probabilities)) <= {0.0, 0.25, 0.5, 0.75, 1.0}
    assert found.path is graph.path_
    assert found.item_names[0] == "x0 - x1"
    if count == "entered":
        assert np.all(np.diff(found.probabilities, axis=0) >= 0)


@pytest.mark.parametrize("case", ["ising-mpf", "potts"])
def test_stability_by_hand(case):
    """Each half fitted for itself."""
    X = data_of(case)
    graph = graph_of(case, **SMALL).fit(X)

    def trace(rows):
        return graph_of(case, t=graph.path_.t).fit(X[rows]).path_

    by_hand = replicate_stability(trace, len(X), graph.path_.t, n_replicates=6, n_variables=4, seed=3)
    found = graph.stability(n_replicates=6, n_variables=4, seed=3)
    assert_allclose(found.probabilities, by_hand.probabilities)
    assert_array_equal(found.selected, by_hand.selected)


@pytest.mark.parametrize("case", ONE_OF_EACH)
def test_forbidden_and_free_edges_are_no_candidates(case):
    X = data_of(case)
    weights = np.ones((X.shape[1],) * 2)
    weights[0, 1] = weights[1, 0] = 0.0
    weights[0, 2] = weights[2, 0] = np.inf
    found = graph_of(case, edge_weights=weights, **SMALL).fit(X).stability(n_replicates=2, max_false=None)
    assert found.candidates.tolist()[:3] == [False, False, True]
    assert found.candidates[2:].all()


def test_true_edges_are_stable():
    graph = graph_of("gaussian-likelihood").fit(gaussian_data(600, seed=2))
    stable = graph.stability(n_replicates=20, max_false=1.0).selected
    assert gaussian_model().adjacency[tuple(stable.T)].all()
    assert len(stable) == 4


def test_rows_of_weight_zero_are_not_drawn():
    X = ising_data()
    weights = (np.arange(len(X)) >= 30).astype(float)
    noisy = np.where(weights[:, None] == 0, -X, X)
    one, two = (graph_of("ising-composite", **SMALL).fit(data, sample_weight=weights) for data in (X, noisy))
    assert_array_equal(one.intervals(n_replicates=3).samples, two.intervals(n_replicates=3).samples)


def test_other_times_have_the_same_data():
    graph = graph_of("ising-composite", **SMALL).fit(ising_data())
    other = graph.at(float(graph.path_.t[3]))
    assert_array_equal(other.intervals(n_replicates=2).samples, graph.intervals(other.t_, n_replicates=2).samples)


def test_there_must_be_rows():
    graph = graph_of("ising-composite", **SMALL).fit(ising_data())
    for call in (pickle.loads(pickle.dumps(graph)).stability, pickle.loads(pickle.dumps(graph)).intervals):
        with pytest.raises(ValueError, match="unpickled has no data"):
            call()
    S = np.cov(gaussian_data().T)
    matrix = graph_of("gaussian-likelihood", input="covariance", n_samples=100).fit(S)
    with pytest.raises(ValueError, match="covariance matrix has no rows"):
        matrix.stability()


def test_numbers_that_are_constant_in_a_draw():
    X = gaussian_data(40)
    X[:, 1] = np.arange(40) == 7
    graph = graph_of("gaussian-likelihood", **SMALL).fit(X)
    with pytest.raises(ValueError, match="mostly have one value only of node 'x1'"):
        graph.stability(n_replicates=2, max_false=None)
