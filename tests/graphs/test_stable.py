"""``stop="stable"``: edges that most halves have and others cannot replace, by hand and on models with known edges."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bregpath.graphs import IsingModel, enumerate_states
from bregpath.graphs.edge_tests import edge_p_values
from bregpath.selection.discoveries import few_false
from tests.graphs.cases import CASES, ONE_OF_EACH, data_of, graph_of, ising_data


@pytest.mark.parametrize("case", CASES)
def test_the_stable_edges_are_kept(case):
    graph = graph_of(case, stop="stable", n_subsamples=5, stable_threshold=0.8).fit(data_of(case))
    stable = graph.stability_
    kept = np.zeros_like(graph.adjacency_)
    kept[tuple(stable.selected.T)] = True
    ebic = graph_of(case).fit(data_of(case))
    assert kept.any()
    assert_array_equal(np.triu(graph.adjacency_), kept & ebic.adjacency_)
    assert graph.t_ == ebic.t_
    assert_array_equal(graph.model().adjacency, graph.adjacency_)
    assert "its edges on at least 80% of 6 halves" in str(graph)


@pytest.mark.parametrize("case", [case for case in ONE_OF_EACH if case != "mixed"])  # a half has other units
def test_shares_are_those_of_graphs_of_the_halves(case):
    """Each half fitted for itself, at the same time."""
    X = data_of(case)
    graph = graph_of(case, stop="stable", n_subsamples=4).fit(X)
    drawn = []

    def spy(rows):
        drawn.append(rows)
        return ""

    from bregpath.selection.checks import make_generator
    from bregpath.selection.replicates import draw_halves

    draw_halves(np.arange(len(X)), 4, True, spy, make_generator(0))
    found = np.mean([graph_of(case, stop=graph.t_).fit(X[rows]).adjacency_ for rows in drawn], axis=0)
    j, k = graph.stability_.edges.T
    assert_allclose(graph.stability_.probabilities[0], found[j, k])


def test_weights_are_those_of_a_graph_with_these_edges_alone():
    X = ising_data()
    graph = graph_of("ising-composite", stop="stable").fit(X)
    alone = graph_of("ising-composite", mask=graph.adjacency_, stop=graph.t_).fit(X)
    assert_allclose(graph.weights_, alone.weights_, rtol=1e-8)
    assert_allclose(graph.fields_, alone.fields_, rtol=1e-8)


def test_free_edges_stay_and_forbidden_ones_do_not_enter():
    X = ising_data()
    weights = np.ones((6, 6))
    weights[0, 3] = weights[3, 0] = 0.0
    weights[0, 1] = weights[1, 0] = np.inf
    graph = graph_of("ising-composite", stop="stable", edge_weights=weights).fit(X)
    assert graph.adjacency_[0, 3]
    assert not graph.adjacency_[0, 1]
    assert graph.adjacency_.sum() > 2


def hard_model(seed, p=12):
    """Strong and weak couplings of a third of all pairs, mostly of one sign, as senators have."""
    rng = np.random.default_rng(seed)
    b = np.triu((rng.random((p, p)) < 0.33) * rng.normal(0.3, 0.35, (p, p)), 1)
    return IsingModel(rng.normal(0, 0.2, p), b + b.T)


def test_few_edges_are_false():
    shares, by_ebic, recall = [], [], []
    for seed in range(8):
        model = hard_model(seed)
        X = enumerate_states(model).sample(500, seed=seed)
        stable, ebic = (graph_of("ising-composite", stop=stop).fit(X).adjacency_ for stop in ("stable", "ebic"))
        shares.append(1 - (stable & model.adjacency).sum() / max(stable.sum(), 1))
        by_ebic.append(1 - (ebic & model.adjacency).sum() / max(ebic.sum(), 1))
        recall.append((stable & model.adjacency).sum() / model.adjacency.sum())
    assert np.mean(shares) <= 0.1
    assert np.mean(shares) < np.mean(by_ebic)
    assert np.mean(recall) > 0.3


def polarised_model(seed, p=16):
    """Strong couplings of one sign between a third of all pairs: nearly all nodes agree, edges stand for others."""
    rng = np.random.default_rng(seed)
    b = np.triu((rng.random((p, p)) < 0.33) * np.abs(rng.normal(1.0, 0.5, (p, p))), 1)
    return IsingModel(rng.normal(0, 0.2, p), b + b.T)


def test_edges_that_stand_for_others_are_left_out():
    """Halves alone do not find them out: these have the same ones."""
    counts = np.zeros((2, 2))  # stable edges, those kept of them; all, true ones
    for seed in range(8):
        model = polarised_model(seed)
        X = enumerate_states(model).sample(300, seed=seed)
        ebic, graph = (graph_of("ising-composite", stop=stop).fit(X) for stop in ("ebic", "stable"))
        stable = np.zeros_like(graph.adjacency_)
        stable[tuple(graph.stability_.selected.T)] = True
        stable &= ebic.adjacency_
        kept = np.zeros_like(stable)
        kept[stable] = few_false(edge_p_values(ebic._study, ebic.path_, ebic.t_)[stable], 0.1)
        assert_array_equal(np.triu(graph.adjacency_), kept)
        counts += [[found.sum(), (found & model.adjacency).sum()] for found in (stable, kept)]
    stable, kept = 1 - counts[:, 1] / counts[:, 0]
    assert stable > 0.3
    assert kept <= 0.1
    assert counts[1, 0] > 20


def test_noise_has_hardly_any_stable_edges():
    rng = np.random.default_rng(0)
    samples = [rng.choice([-1.0, 1.0], (120, 8)) for _ in range(20)]
    stable, ebic = (
        sum(int(graph_of("ising-composite", stop=stop).fit(X).adjacency_.sum()) // 2 for X in samples)
        for stop in ("stable", "ebic")
    )
    assert stable <= 2  # of 560 pairs
    assert stable < ebic


def test_the_end_of_a_path_traced_again_is_no_warning():
    graph = graph_of("ising-composite", stop="stable").fit(ising_data())
    assert graph.t_ < graph.selection_.path.t[-1]
    assert "last of the path" not in graph.summary() and "last of the path" not in graph.strongest(2).summary()
