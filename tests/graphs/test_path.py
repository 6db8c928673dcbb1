"""Paths of graphs: what must hold for every model, and what each model promises on its own."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bregpath
from bregpath import _kernels
from bregpath.flow.glbi import GLBI
from bregpath.graphs import problems
from tests.graphs.cases import (
    CASES,
    DISCRETE,
    N_STATES,
    ONE_OF_EACH,
    assert_same_graphs,
    data_of,
    gaussian_data,
    graph_of,
    ising_data,
    path_of,
    potts_data,
)

EVERY = list(CASES)


# --- what holds for all -----------------------------------------------------------------------------------------------


@pytest.mark.skipif(not _kernels.has_compiled(), reason="built without the compiled core")
@pytest.mark.parametrize("step", ["adaptive", 0.05])
@pytest.mark.parametrize("case", DISCRETE)
def test_compiled_equals_reference(case, step, monkeypatch):
    options = {"step": step, "t_ratio": 10.0}
    compiled = path_of(case, **options)
    monkeypatch.setattr(_kernels, "_compiled", None)
    assert_same_graphs(compiled, path_of(case, **options))


@pytest.mark.skipif(not _kernels.has_compiled(), reason="built without the compiled core")
def test_compiled_equals_reference_for_sparse_indicators(monkeypatch):
    dense = path_of("potts", t_ratio=10.0)
    monkeypatch.setattr(problems, "MAX_DENSE_STATES", 0)
    compiled = path_of("potts", t_ratio=10.0)
    assert_same_graphs(compiled, dense)
    monkeypatch.setattr(_kernels, "_compiled", None)
    assert_same_graphs(compiled, path_of("potts", t_ratio=10.0))


@pytest.mark.parametrize("case", DISCRETE)
def test_screened_equals_unscreened(case, monkeypatch):
    whole = path_of(case, tol=0.01)
    monkeypatch.setattr("bregpath.designs.pairwise.MAX_SMALL", 0)
    screened = path_of(case, tol=0.01)
    assert screened.stats.refreshes > 0
    assert whole.stats.refreshes == 0
    assert_same_graphs(screened, whole)
    assert_same_graphs(path_of(case, tol=0.01, screening=False), whole)


@pytest.mark.parametrize("case", EVERY)
def test_loss_never_rises(case):
    graph = graph_of(case)
    layout, rows, w = graph._prepare(data_of(case), None)
    problem = layout.problem(*graph._distinct(rows, w), np.ones((layout.n_nodes,) * 2), 10.0)
    flow = GLBI(problem, None, 0.05)
    flow.start()
    values = [flow.knot.value]
    while flow.knot.t < 30 * flow.t0:
        values += flow.advance(30 * flow.t0).value[1:].tolist()
    assert len(values) > 10
    assert np.all(np.diff(values) <= 1e-12)
    assert values[-1] < values[0]


@pytest.mark.parametrize("case", EVERY)
def test_permuting_nodes_permutes_the_graph(case):
    X = data_of(case)
    order = np.array([2, 0, 3, 1, 5, 4][: X.shape[1]]) if X.shape[1] != 5 else np.array([2, 0, 4, 1, 3])
    path, moved = path_of(case, X), path_of(case, X[:, order])
    grid = np.ix_(range(len(path.t)), order, order)
    assert_allclose(moved.t, path.t, rtol=1e-9)
    assert_allclose(moved.coef, path.coef[grid], rtol=0, atol=1e-8 * np.abs(path.coef).max())
    assert_allclose(moved.entry_times, path.entry_times[np.ix_(order, order)], rtol=1e-7)


@pytest.mark.parametrize("case", EVERY)
def test_weight_k_is_k_copies(case):
    X = data_of(case, n=60)
    counts = np.arange(60) % 3 + (np.arange(60) < 7)  # 67 rows: a prime, see N_ROWS
    weighted = graph_of(case).fit(X, sample_weight=counts)
    repeated = graph_of(case).fit(np.repeat(X, counts, axis=0))
    assert_same_graphs(weighted.path_, repeated.path_)
    assert_allclose(weighted.t_, repeated.t_, rtol=1e-9)  # the criterion counts rows by their weights, too
    assert_allclose(weighted.selection_.mean, repeated.selection_.mean, rtol=1e-8)
    assert_allclose(weighted.score(X, sample_weight=counts), repeated.score(np.repeat(X, counts, axis=0)), rtol=1e-8)


@pytest.mark.parametrize("step", ["adaptive", 0.02])
@pytest.mark.parametrize("case", ONE_OF_EACH)
def test_extended_equals_at_once(case, step):
    short = path_of(case, t_ratio=4.0, step=step)
    whole = path_of(case, t_ratio=12.0, step=step)
    end = float(whole.t[-1])
    extended = short.extend(end)
    assert type(extended) is type(whole)
    assert_allclose(extended.t[-1], end)
    for t in np.geomspace(whole.t[0], end * (1 - 1e-9), 12):
        assert_allclose(extended.weights(t), whole.weights(t), rtol=0, atol=1e-10)
        assert_allclose(extended.at(t).intercept, whole.at(t).intercept, rtol=0, atol=1e-10)
    assert_allclose(extended.entry_times, whole.entry_times, rtol=1e-9)


@pytest.mark.parametrize("case", EVERY)
def test_adaptive_steps_follow_small_fixed_ones(case):
    step = 0.002 if case.startswith("gaussian") else 0.01
    fixed = path_of(case, step=step, t_ratio=10.0)
    adaptive = path_of(case, tol=1e-3, t_ratio=10.0)
    scale = np.abs(fixed.coef).max()
    end = min(len(fixed.t), len(adaptive.t)) - 1
    assert_allclose(adaptive.coef[:end], fixed.coef[:end], rtol=0, atol=0.02 * scale)
    assert adaptive.stats.steps < fixed.stats.steps


@pytest.mark.parametrize("case", EVERY)
def test_first_entry_time_by_hand(case):
    """``1 / max |g0|``, g0 from centred data alone."""
    X = data_of(case)
    path = path_of(case, X, t_ratio=2.0)
    gradient = null_gradient(case, X)
    np.fill_diagonal(gradient, 0.0)
    assert_allclose(path.t[0], 1.0 / gradient.max(), rtol=1e-10)
    assert path.n_edges[0] == 0
    if case != "ising-nodewise-and":  # an edge needs its second coefficient, too
        assert_allclose(path.entry_times.min(), path.t[0], rtol=1e-9)
        first = np.unravel_index(path.entry_times.argmin(), path.entry_times.shape)
        assert gradient[first] == gradient.max()


def null_gradient(case, X):
    """Size of the gradient of every pair of nodes at the model without edges, in units of its threshold."""
    if case.startswith("gaussian"):
        return 2 * np.abs(np.corrcoef(X.T))
    if case.startswith("ising"):
        covariance, deviation = np.cov(X.T, bias=True), X.std(axis=0)
        if "mpf" in case:
            return np.abs(covariance) * np.add.outer(1 / deviation, 1 / deviation) / 2
        return np.abs(covariance) / (2 if "nodewise" in case else 1)
    p = X.shape[1]
    out = np.zeros((p, p))
    for j in range(p):
        for k in range(p):
            one, two = np.eye(N_STATES[j])[X[:, j]], np.eye(N_STATES[k])[X[:, k]]
            block = 2 * (one.T @ two / len(X) - np.outer(one.mean(axis=0), two.mean(axis=0)))
            block = block[1:, 1:] if "reduced" in case else block
            block = np.diagonal(block) if "diagonal" in case else block
            out[j, k] = np.abs(block).max() if "l1" in case else np.linalg.norm(block)
            out[j, k] /= np.sqrt(block.size) if "sqrt" in case else 1.0
    return out


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
    assert_allclose(potts.coef, np.abs(ising.coef), atol=1e-9)
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
    assert_allclose(scaled.coef, path.coef, atol=1e-8)
    t = float(path.t[-1]) * 0.9
    assert_allclose(scaled.at(t).coef * np.outer(units, units), path.at(t).coef, rtol=1e-6, atol=1e-8)


def test_gaussian_diagonals_are_free():
    """They move from the start of the path on: they follow the edges, and only isolated nodes keep theirs."""
    X = gaussian_data(300)
    path = path_of("gaussian-likelihood", X)
    variance = X.var(axis=0)
    assert_allclose(path.intercept[0], 1 / variance, rtol=1e-9)
    end = path.at(path.t[-1]).coef
    assert np.all(np.diagonal(end) * variance > 1.0)
    assert_allclose(np.diagonal(end), path.intercept[-1])


def test_weights_of_a_gaussian_graph_are_partial_correlations():
    path = path_of("gaussian-likelihood")
    t = float(path.t[-1])
    precision = path.at(t).coef
    expected = -precision / np.sqrt(np.outer(np.diagonal(precision), np.diagonal(precision)))
    np.fill_diagonal(expected, 0.0)
    assert_allclose(path.weights(t), expected, rtol=1e-12)
    assert_allclose(path.coef[-1], expected, rtol=1e-12)
    assert_allclose(path.model(t).strengths, expected, rtol=1e-12)
