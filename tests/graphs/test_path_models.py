"""Paths of graphs: what each model promises on its own."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bregpath
from tests.graphs.cases import (
    CASES,
    gaussian_data,
    ising_data,
    path_of,
)

EVERY = list(CASES)


# --- Ising ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("step", "atol"), [(0.02, 1e-8), ("adaptive", 0.01)])  # lengths of steps depend on signs
@pytest.mark.parametrize("case", [name for name in EVERY if name.startswith("ising")])
def test_flipping_a_node_flips_its_couplings(case, step, atol):
    X = ising_data()
    flip = np.array([1, -1, 1, 1, -1, 1])
    options = {"step": step, "tol": 1e-3, "t_ratio": 10.0}
    path, flipped = path_of(case, X, **options), path_of(case, X * flip, **options)
    sign = np.outer(flip, flip)
    assert_allclose(flipped.coef, path.coef * sign, rtol=0, atol=atol)
    assert_allclose(flipped.intercept, path.intercept * flip, rtol=0, atol=atol)


def test_without_fields_all_fields_are_zero():
    path = path_of("ising-composite", fit_fields=False)
    assert not path.intercept.any()
    X = ising_data()
    moments = np.abs(X.T @ X / len(X)) - np.eye(6)  # not centred: nothing else explains the means
    assert_allclose(path.t[0], 1 / moments.max(), rtol=1e-10)


def test_nodewise_is_a_logistic_regression_a_node():
    """Coefficients of p separate paths, read at the same times."""
    X = ising_data(200)
    p = X.shape[1]
    path = path_of("ising-nodewise-or", X, tol=1e-3, t_ratio=20.0)
    alone = []
    for j in range(p):
        others = np.delete(X, j, axis=1).astype(float)
        alone.append(bregpath.trace_path(others, X[:, j], loss="logistic", standardize=False, tol=1e-3, t=path.t))
    entered = np.full((p, p), np.inf)
    for j in range(p):
        entered[j, np.arange(p) != j] = alone[j].entry_times
    assert_allclose(path.entry_times, np.minimum(entered, entered.T), rtol=0.02)
    for t in path.t[2::4]:
        own = np.zeros((p, p))
        for j in range(p):
            own[j, np.arange(p) != j] = alone[j].at(t).coef
        fields = [alone[j].at(t).intercept for j in range(p)]
        scale = np.abs(own).max()
        assert_allclose(path.at(t).intercept, fields, atol=0.01 * max(scale, 1))
        assert_allclose(path.weights(t), (own + own.T) / 2, atol=0.01 * scale)


def test_rules_join_both_or_one():
    X = ising_data(80, seed=4)
    either, both = path_of("ising-nodewise-or", X), path_of("ising-nodewise-and", X)
    differ = 0
    for t in either.t:
        one, two = either.adjacency(t), both.adjacency(t)
        assert not np.any(two & ~one)
        assert_array_equal(either.weights(t)[two], both.weights(t)[two])
        differ += int(np.sum(one != two))
    assert differ > 0
    assert np.all(both.entry_times >= either.entry_times)


def test_potts_of_two_states_is_the_ising_model():
    """With data that are the same upside down no field moves, and a block is b / 2 times [[1, -1], [-1, 1]]."""
    X = ising_data(100)
    X = np.vstack([X, -X])
    ising = path_of("ising-composite", X, step=0.01, t_ratio=10.0)
    potts = bregpath.PottsGraph(step=0.01, t_ratio=10.0, n_times=20).fit(X).path_
    assert_allclose(potts.t, ising.t, rtol=1e-10)
    assert_allclose(potts.all_weights(), np.abs(ising.coef), atol=1e-9)
    assert_allclose(potts.entry_times, ising.entry_times, rtol=1e-8)
    t = float(ising.t[-1])
    b = ising.at(t).coef
    assert_allclose(potts.model(t).block(0, 1), b[0, 1] / 2 * np.array([[1, -1], [-1, 1]]), atol=1e-9)


def test_potts_of_two_states_orders_edges_as_the_ising_model_does():
    X = ising_data(400, seed=2)
    ising = path_of("ising-composite", X, tol=1e-3).entry_times[np.triu_indices(6, 1)]
    potts = bregpath.PottsGraph(tol=1e-3, t_ratio=30.0).fit(X).path_.entry_times[np.triu_indices(6, 1)]
    assert_array_equal(np.argsort(potts)[:8], np.argsort(ising)[:8])


# --- Gaussian ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [8, 200])
def test_likelihood_stays_positive_definite(n):
    """Between steps too, and with more nodes than rows."""
    path = path_of("gaussian-likelihood", gaussian_data(n, p=10 if n == 8 else 5))
    for t in np.geomspace(path.t[0], path.t[-1], 200):
        precision = path.at(t).coef
        assert_array_equal(precision, precision.T)
        np.linalg.cholesky(precision)  # raises if it is not
        assert np.abs(path.weights(t)).max() < 1


@pytest.mark.parametrize("loss", ["likelihood", "composite"])
def test_path_ends_at_the_inverse_covariance(loss):
    X = gaussian_data(2000, p=4)
    graph = bregpath.GaussianGraph(loss, t_ratio=1000.0).fit(X)
    end = graph.path_.at(graph.path_.t[-1]).coef
    inverse = np.linalg.inv(np.cov(X.T, bias=True))
    scale = np.sqrt(np.outer(np.diagonal(inverse), np.diagonal(inverse)))
    assert_allclose(end / scale, inverse / scale, atol=0.03)


@pytest.mark.parametrize("loss", ["likelihood", "composite"])
def test_units_of_gaussian_columns_do_not_matter(loss):
    X = gaussian_data()
    units = np.array([1e-3, 1.0, 50.0, 3.0, 1e4])
    path, scaled = (path_of(f"gaussian-{loss}", data) for data in (X, X * units + 7.0))
    assert_allclose(scaled.t, path.t, rtol=1e-8)
    assert_allclose(scaled.all_weights(), path.all_weights(), atol=1e-8)
    t = float(path.t[-1]) * 0.9
    assert_allclose(scaled.at(t).coef * np.outer(units, units), path.at(t).coef, rtol=1e-6, atol=1e-8)


def test_gaussian_diagonals_are_free():
    """They move from the start of the path on: they follow the edges, and only isolated nodes keep theirs."""
    X = gaussian_data(300)
    path = path_of("gaussian-likelihood", X)
    variance = X.var(axis=0)
    assert_allclose(path.coef[0], np.diag(1 / variance), rtol=1e-9)
    assert np.all(np.diagonal(path.coef[-1]) * variance > 1.0)
    assert_allclose(path.intercept, np.tile(X.mean(axis=0), (len(path.t), 1)), rtol=1e-12)


def test_weights_of_a_gaussian_graph_are_partial_correlations():
    path = path_of("gaussian-likelihood")
    t = float(path.t[-1])
    precision = path.at(t).coef
    expected = -precision / np.sqrt(np.outer(np.diagonal(precision), np.diagonal(precision)))
    np.fill_diagonal(expected, 0.0)
    assert_allclose(path.weights(t), expected, rtol=1e-12)
    assert_allclose(path.all_weights()[-1], expected, rtol=1e-12)
    assert_allclose(path.model(t).strengths, expected, rtol=1e-12)
