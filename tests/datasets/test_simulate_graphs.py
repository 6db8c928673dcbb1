"""Simulated graphs: the structure of the truth, and data that follow it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bregpath.datasets import make_gaussian_graph, make_ising_grid, make_potts
from bregpath.graphs import enumerate_states

GRAPHS = ["chain", "grid", "hub", "random", "scale-free"]


def edges_of(simulation):
    return {tuple(edge) for edge in np.argwhere(np.triu(simulation.adjacency)).tolist()}


def test_ising_grid_is_the_one_of_the_paper():
    N, T = 5, 1.25
    sim = make_ising_grid(N=N, T=T, n=20, seed=0)
    for j in range(N * N):
        for k in range(N * N):
            distance = abs(j // N - k // N) + abs(j % N - k % N)
            assert sim.adjacency[j, k] == (distance == 1)
    values = np.concatenate([sim.fields, sim.couplings[np.triu(sim.adjacency)]])
    assert np.all((np.abs(values) >= 1 / T) & (np.abs(values) <= 2 / T))
    assert 0.3 < np.mean(values > 0) < 0.7
    assert_array_equal(sim.couplings, sim.couplings.T)
    assert sim.X.shape == (20, 25)
    assert sim.X.dtype == np.int8
    assert_array_equal(np.unique(sim.X), [-1, 1])


def test_ising_rows_follow_the_model():
    sim = make_ising_grid(N=3, T=1.5, n=3000, seed=1)
    exact = enumerate_states(sim.model)
    assert_allclose(sim.X.mean(axis=0), exact.mean, atol=0.08)
    X = sim.X.astype(float)
    assert_allclose(X.T @ X / 3000, exact.second_moments, atol=0.08)
    # Independent rows: no correlation between one and the next.
    centred = X - exact.mean
    assert np.abs(np.mean(centred[1:] * centred[:-1], axis=0)).max() < 0.08


@pytest.mark.parametrize(
    "make",
    [
        lambda n, seed: make_ising_grid(3, 1.5, n, seed),
        lambda n, seed: make_potts(n, 6, 3, "random", seed=seed),
        lambda n, seed: make_gaussian_graph(n, 12, "scale-free", seed=seed),
    ],
    ids=["ising", "potts", "gaussian"],
)
def test_same_seed_same_truth(make):
    sim, again, longer, other = make(20, 4), make(20, 4), make(30, 4), make(20, 5)
    assert_array_equal(sim.X, again.X)
    assert_array_equal(sim.model.strengths, longer.model.strengths)
    assert longer.X.shape[0] == 30
    assert not np.array_equal(sim.model.strengths, other.model.strengths)
    rng = np.random.default_rng(4)
    assert_array_equal(make(20, rng).X, sim.X)
    assert not np.array_equal(make(20, rng).X, sim.X)


@pytest.mark.parametrize(
    "make",
    [
        lambda n, m: make_ising_grid(3, 1.5, n, 4, n_test=m),
        lambda n, m: make_potts(n, 6, 3, "random", seed=4, n_test=m),
        lambda n, m: make_gaussian_graph(n, 12, "scale-free", seed=4, n_test=m),
    ],
    ids=["ising", "potts", "gaussian"],
)
def test_a_fresh_sample_of_the_same_model(make):
    bare, small, large = make(20, None), make(20, 30), make(25, 30)
    assert bare.X_test is None
    assert_array_equal(bare.X, small.X)  # the sample itself is the same with it and without it
    assert_array_equal(small.X_test, large.X_test)  # and it is the same, whatever n
    assert small.X_test.shape == (30, small.X.shape[1]) and small.X_test.dtype == small.X.dtype
    assert not np.array_equal(small.X_test[:20], small.X)
    assert repr(small).endswith(", n_test=30)")


def test_a_fresh_sample_follows_the_model():
    sim = make_gaussian_graph(n=5, p=6, graph="grid", seed=0, n_test=50_000)
    assert_allclose(np.cov(sim.X_test, rowvar=False), sim.model.covariance, atol=0.05)


def test_potts_truth():
    s, q = 0.5, 4
    sim = make_potts(n=30, p=7, q=q, graph="chain", strength=s, seed=0)
    assert edges_of(sim) == {(j, j + 1) for j in range(6)}
    assert sim.couplings.shape == (28, 28)
    assert_array_equal(np.unique(sim.X), np.arange(q))
    assert_allclose(sim.fields.reshape(7, q).sum(axis=1), 0, atol=1e-12)
    block = sim.model.block(2, 3)
    assert_allclose(block.sum(axis=0), 0, atol=1e-12)
    assert_allclose(block.sum(axis=1), 0, atol=1e-12)
    assert s / 4 < np.abs(block).mean() < 2 * s
    assert_allclose(sim.model.to_zero_sum().couplings, sim.couplings, atol=1e-12)


def test_potts_rows_follow_the_model():
    sim = make_potts(n=3000, p=5, q=3, graph="chain", seed=2)
    exact = enumerate_states(sim.model)
    z = sim.model.features(sim.X)
    assert_allclose(z.mean(axis=0), exact.mean, atol=0.04)
    assert_allclose(z.T @ z / 3000, exact.second_moments, atol=0.04)


@pytest.mark.parametrize("graph", GRAPHS)
def test_gaussian_truth(graph):
    strength = 0.7
    sim = make_gaussian_graph(n=40, p=25, graph=graph, strength=strength, seed=0)
    assert sim.X.shape == (40, 25)
    assert_array_equal(np.diagonal(sim.precision), 1)
    assert_allclose(np.linalg.eigvalsh(sim.precision)[0], 1 - strength)
    values = np.abs(sim.precision[np.triu(sim.adjacency)])
    assert values.max() <= 2 * values.min() + 1e-12
    assert_allclose(sim.model.strengths[0], -(sim.precision - np.eye(25))[0], atol=1e-15)


def test_gaussian_rows_follow_the_model():
    sim = make_gaussian_graph(n=50_000, p=6, graph="grid", seed=0)
    assert_allclose(np.cov(sim.X, rowvar=False), sim.model.covariance, atol=0.05)


def test_shapes_of_graphs():
    def joined(graph, p, seed=0):
        return edges_of(make_gaussian_graph(2, p, graph, seed=seed))

    assert joined("chain", 4) == {(0, 1), (1, 2), (2, 3)}
    # Two full rows of three nodes and one node below them.
    assert joined("grid", 7) == {(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5), (3, 6)}
    assert joined("hub", 13) == {(0, k) for k in range(1, 10)} | {(10, 11), (10, 12)}
    tree = joined("scale-free", 60)
    assert len(tree) == 59
    assert sorted(max(edge) for edge in tree) == list(range(1, 60))  # each node joins exactly one before it
    degree = np.bincount(np.array(sorted(tree)).ravel())
    assert degree.max() >= 6
    assert 2.3 < 2 * len(joined("random", 200)) / 200 < 3.7
    assert len(joined("random", 3)) == 3


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("p", [1, 2])
def test_smallest_graphs(graph, p):
    assert make_gaussian_graph(3, p, graph, seed=0).X.shape == (3, p)
    assert make_potts(3, p, 2, graph, seed=0).X.shape == (3, p)


def test_one_node_grid():
    assert make_ising_grid(1, n=2, seed=0).X.shape == (2, 1)


def test_repr_and_parts():
    sim = make_gaussian_graph(10, 5, seed=0)
    assert repr(sim) == "GraphSimulation(GaussianModel, n=10, p=5, edges=4)"
    with pytest.raises(AttributeError, match="couplings"):
        sim.couplings  # noqa: B018
    with pytest.raises(AttributeError, match="cannot assign"):
        sim.X = None


@pytest.mark.parametrize(
    ("make", "wrong", "error", "text"),
    [
        (make_ising_grid, {"N": 0}, ValueError, r"`N` must be at least \d, found 0"),
        (make_ising_grid, {"T": 0.0}, ValueError, "T=0.0 is out of range; it must be a positive finite number"),
        (make_ising_grid, {"n": 1.5}, TypeError, "`n` must be an integer"),
        (make_ising_grid, {"seed": "a"}, TypeError, "`seed` must be an integer"),
        (make_ising_grid, {"n_test": 0}, ValueError, r"`n_test` must be at least \d, found 0"),
        (make_potts, {"n_test": 1.5}, TypeError, "`n_test` must be an integer or None"),
        (make_gaussian_graph, {"n_test": -1}, ValueError, r"`n_test` must be at least \d, found -1"),
        (make_potts, {"q": 1}, ValueError, "`q` must be at least 2, found 1"),
        (make_potts, {"graph": "star"}, ValueError, "graph='star' is not known; use one of 'chain', 'grid'"),
        (make_potts, {"strength": -1.0}, ValueError, "strength=-1.0 is out of range"),
        (make_gaussian_graph, {"strength": 1.0}, ValueError, "strength=1.0 is out of range; .* between 0 and 1"),
        (make_gaussian_graph, {"graph": ""}, ValueError, "graph='' is not known"),
        (make_gaussian_graph, {"p": 0}, ValueError, r"`p` must be at least \d, found 0"),
    ],
)
def test_bad_arguments_are_named(make, wrong, error, text):
    with pytest.raises(error, match=text):
        make(**wrong)
