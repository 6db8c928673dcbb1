"""Paths of graphs, read: models, weights and events that agree with each other."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.graphs.cases import (
    CASES,
    data_of,
    gaussian_data,
    ising_data,
    path_of,
    potts_data,
)

EVERY = list(CASES)


@pytest.mark.parametrize("case", EVERY)
def test_matrices_are_symmetric_and_agree(case):
    path = path_of(case)
    p = path.layout.n_nodes
    n_parameters = 8 if case == "mixed" else len(path.loss.null(*null_arguments(case)))
    table = path.all_weights()
    assert table.shape == (len(path.t), p, p)
    assert path.intercept.shape == (len(path.t), n_parameters)
    assert path.coef.shape == (len(path.t), n_parameters, n_parameters)
    for matrix in (path.entry_times, path.exit_times, *table, *path.coef):
        assert_array_equal(matrix, matrix.T)
    assert np.isinf(np.diagonal(path.entry_times)).all()
    assert_array_equal(path.n_edges, [np.count_nonzero(weights) // 2 for weights in table])
    assert_allclose(path.sparsity, path.n_edges / (p * (p - 1) / 2))
    for i in (3, 10):
        t = float(path.t[i])
        assert_allclose(path.weights(t), table[i], rtol=1e-12)
        assert_array_equal(path.adjacency(t), table[i] != 0)
        assert_array_equal(path.support(t), np.argwhere(np.triu(table[i])))
        assert_array_equal(path.model(t).adjacency, path.adjacency(t))


@pytest.mark.parametrize("case", EVERY)
def test_tables_are_the_models_at_their_times(case):
    path = path_of(case)
    for i, t in enumerate(path.t):
        point = path.at(t)
        assert_array_equal(path.coef[i], point.coef)
        assert_array_equal(path.intercept[i], point.intercept)


@pytest.mark.parametrize("case", EVERY)
def test_many_graphs_are_read_at_once(case):
    path = path_of(case)
    times = np.geomspace(path.t[0], path.t[-1], 7)
    _, edges, weights = path.read(times)
    j, k = np.triu_indices(path.layout.n_nodes, 1)
    assert_array_equal(np.sort(edges), np.flatnonzero(np.isfinite(path.entry_times[j, k])))
    assert np.all(np.diff(path.entry_times[j, k][edges]) >= 0)
    assert_allclose(weights[:, :, 0], path.all_weights(times)[:, j[edges], k[edges]], rtol=1e-12)


def null_arguments(case):
    """Data as the loss of a case knows them."""
    X = data_of(case)
    return (np.cov(X.T) if case.startswith("gaussian") else X), np.full(len(X), 1 / len(X))


EVENTS = {  # data on which edges leave again, one of them to come back
    "ising-mpf": lambda: ising_data(31, seed=6),
    "ising-nodewise-and": lambda: ising_data(31, seed=7),
    "ising-nodewise-or": lambda: ising_data(31, seed=7),
    "potts-l1": lambda: potts_data(401, (3, 3, 3), seed=10, strength=3.0),
    "potts": lambda: potts_data(401, (3, 3, 3), seed=10, strength=3.0),
    "gaussian-likelihood": lambda: gaussian_data(31, seed=3),
}


@pytest.mark.parametrize("case", EVENTS)
def test_entry_and_exit_times_are_those_of_the_graph(case):
    """Against the graph itself on a fine grid."""
    path = path_of(case, EVENTS[case](), t_ratio=60.0)
    if case != "ising-nodewise-or":
        assert np.isfinite(path.exit_times).any()
    grid = np.geomspace(path.t[0], path.t[-1], 1000)
    joined = np.array([path.adjacency(t) for t in grid])
    entry, exit_ = np.full(path.entry_times.shape, np.inf), np.full(path.entry_times.shape, np.inf)
    for j, k in np.argwhere(joined.any(axis=0)):
        on = np.flatnonzero(joined[:, j, k])
        entry[j, k] = grid[on[0]]
        exit_[j, k] = grid[on[-1] + 1] if on[-1] + 1 < len(grid) else np.inf
    ratio = grid[1] / grid[0] * (1 + 1e-9)
    for exact, seen in ((path.entry_times, entry), (path.exit_times, exit_)):
        assert_array_equal(np.isfinite(exact), np.isfinite(seen))
        there = np.isfinite(exact)
        assert np.all(exact[there] <= seen[there] * (1 + 1e-9))
        assert np.all(exact[there] * ratio >= seen[there])


@pytest.mark.parametrize("case", [*EVENTS, "ising-composite", "gaussian-composite"])
def test_sparsity_is_met_exactly_and_never_exceeded(case):
    path = path_of(case, EVENTS[case]() if case in EVENTS else None, t_ratio=100.0)
    p = path.layout.n_nodes
    pairs = p * (p - 1) // 2
    largest = max(path.n_edges)
    for allowed in range(pairs + 1):
        level = allowed / pairs
        t = path.time_at_sparsity(level)
        n_edges = np.count_nonzero(path.adjacency(t)) // 2
        assert n_edges <= allowed
        assert np.count_nonzero(path.at_sparsity(level).coef[np.triu_indices(len(path.at(t).coef), 1)]) >= n_edges
        if allowed < largest:
            after = np.count_nonzero(path.adjacency(t * (1 + 1e-9))) // 2
            assert after > allowed  # the last such time
            assert n_edges == allowed or after > n_edges + 1  # edges may enter at the same time
        if t < path.t[-1]:
            earlier = np.geomspace(path.t[0], t, 50)
            assert max(np.count_nonzero(path.adjacency(s)) for s in earlier) // 2 <= allowed
    assert not path.adjacency(path.time_at_sparsity(0)).any()
    assert path.time_at_sparsity(1) == path.t[-1]


def test_a_path_ends_at_a_wanted_sparsity():
    path = path_of("ising-composite", max_sparsity=0.3, t_ratio=100.0)
    whole = path_of("ising-composite", t_ratio=100.0)
    assert path.n_edges[-1] == 4  # of 15
    assert path.n_edges.max() == 4
    assert_allclose(path.t[-1], whole.time_at_sparsity(0.3), rtol=1e-9)


def test_a_graph_has_no_response():
    path = path_of("ising-composite")
    with pytest.raises(TypeError, match="no response"):
        path.predict(ising_data(), 2.0)
    with pytest.raises(ValueError, match="beyond the end"):
        path.at(1e9)
    with pytest.raises(ValueError, match="`level`"):
        path.time_at_sparsity(1.5)


def test_paths_print_and_tabulate():
    pytest.importorskip("pandas")
    path = path_of("potts")
    text = repr(path)
    assert text.startswith("GraphPath of 4 nodes (field-composite, kappa=10), 20 times")
    assert "Edges" in text
    frame = path.to_frame()
    assert list(frame.columns[:3]) == ["t", "n_edges", "deviance_ratio"]
    ever = np.argwhere(np.triu(np.isfinite(path.entry_times)))
    assert list(frame.columns[3:]) == [f"x{j} -- x{k}" for j, k in ever]
    assert_allclose(frame[f"x{ever[0][0]} -- x{ever[0][1]}"], path.all_weights()[:, ever[0][0], ever[0][1]])
    assert path.feature_names[0] == "x0 -- x1"
    assert path.names == ["x0", "x1", "x2", "x3"]
