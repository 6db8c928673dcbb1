"""Paths of graphs: what must hold for every model."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

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
    graph_of,
    kinds_at,
    path_of,
    potts_data,
)

EVERY = list(CASES)


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
    monkeypatch.setattr("bregpath.stores.pairwise.MAX_SMALL", 0)
    screened = path_of(case, tol=0.01)
    assert screened.stats.refreshes > 0
    assert whole.stats.refreshes == 0
    assert_same_graphs(screened, whole)
    assert_same_graphs(path_of(case, tol=0.01, screening=False), whole)


@pytest.mark.parametrize("case", EVERY)
def test_loss_never_rises(case):
    problem = graph_of(case)._prepare(data_of(case), None).on().problem
    flow = GLBI(problem, None, 0.05)
    state = flow.start()
    t0 = state.knot.t
    values = [state.knot.value]
    while state.knot.t < 30 * t0:
        state, steps = flow.advance(state, 30 * t0)
        values += steps.value[1:].tolist()
    assert len(values) > 10
    assert np.all(np.diff(values) <= 1e-12)
    assert values[-1] < values[0]


@pytest.mark.parametrize("case", EVERY)
def test_permuting_nodes_permutes_the_graph(case):
    X = data_of(case)
    order = np.array([2, 0, 3, 1, 5, 4][: X.shape[1]]) if X.shape[1] != 5 else np.array([2, 0, 4, 1, 3])
    path, moved = path_of(case, X), path_of(case, X[:, order], **kinds_at(case, order))
    weights, grid = path.all_weights(), np.ix_(range(len(path.t)), order, order)
    assert_allclose(moved.t, path.t, rtol=1e-9)
    assert_allclose(moved.all_weights(), weights[grid], rtol=0, atol=1e-8 * np.abs(weights).max())
    assert_allclose(moved.entry_times, path.entry_times[np.ix_(order, order)], rtol=1e-7)


def tied_data(case):
    """Rows, and the same with the nodes in reverse order: an edge and its mirror image tie at every time."""
    X = potts_data(50, (3, 2, 2, 3)) if case.startswith("potts") else data_of(case, n=50)
    return np.vstack([X, X[:, ::-1]])


def independent_data(case):
    """The last node is exactly independent of all others: slopes of its edges are zero, up to rounding."""
    X = data_of(case, n=50)
    return np.vstack([np.column_stack([X[:, :-1], np.full(50, state)]) for state in np.unique(X[:, -1])])


@pytest.mark.parametrize("case", EVERY)
def test_edges_that_tie_enter_together(case):
    path = path_of(case, tied_data(case))
    weights = path.all_weights()
    scale = np.abs(weights).max()
    assert scale > 0
    assert_allclose(weights[:, ::-1, ::-1], weights, rtol=0, atol=1e-9 * scale)
    assert_allclose(path.entry_times[::-1, ::-1], path.entry_times, rtol=1e-9)
    assert_allclose(path.exit_times[::-1, ::-1], path.exit_times, rtol=1e-9)


@pytest.mark.parametrize("data", [tied_data, independent_data])
@pytest.mark.parametrize("case", DISCRETE)
def test_ties_and_independence_change_nothing_by_rounding(case, data, monkeypatch):
    """Neither the order of rows, nor screening, nor the kernels."""
    X = data(case)
    path = path_of(case, X)
    assert_same_graphs(path_of(case, X[np.random.default_rng(0).permutation(len(X))]), path)
    assert_same_graphs(path_of(case, X, sample_weight=np.full(len(X), 3.0)), path)
    with monkeypatch.context() as patch:
        patch.setattr("bregpath.stores.pairwise.MAX_SMALL", 0)
        assert_same_graphs(path_of(case, X), path)
    monkeypatch.setattr(_kernels, "_compiled", None)
    assert_same_graphs(path_of(case, X), path)


@pytest.mark.parametrize("case", EVERY)
def test_weight_k_is_k_copies(case):
    X = data_of(case, n=60)
    counts = np.arange(60) % 3 + (np.arange(60) < 7)
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
    step = 0.002 if case.startswith(("gaussian", "mixed")) else 0.01
    fixed = path_of(case, step=step, t_ratio=10.0)
    adaptive = path_of(case, tol=1e-3, t_ratio=10.0)
    end = min(len(fixed.t), len(adaptive.t)) - 1
    exact, found = fixed.all_weights(), adaptive.all_weights()
    assert_allclose(found[:end], exact[:end], rtol=0, atol=0.02 * np.abs(exact).max())
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
        first = np.isclose(path.entry_times, path.t[0], rtol=1e-9)  # several edges, where they tie
        assert_array_equal(first, np.isclose(gradient, gradient.max(), rtol=1e-9))


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
    if case == "mixed":
        seen = [np.eye(3)[X[:, 1].astype(int)] if j == 1 else X[:, [j]] for j in range(p)]
        seen = [(columns - columns.mean(axis=0)) / np.sqrt(columns.var(axis=0).sum()) for columns in seen]
        return np.array([[2 * np.linalg.norm(one.T @ two) / len(X) for two in seen] for one in seen])
    for j in range(p):
        for k in range(p):
            one, two = np.eye(N_STATES[j])[X[:, j]], np.eye(N_STATES[k])[X[:, k]]
            block = 2 * (one.T @ two / len(X) - np.outer(one.mean(axis=0), two.mean(axis=0)))
            block = block[1:, 1:] if "reduced" in case else block
            block = np.diagonal(block) if "diagonal" in case else block
            out[j, k] = np.abs(block).max() if "l1" in case else np.linalg.norm(block)
            out[j, k] /= np.sqrt(block.size) if "sqrt" in case else 1.0
    return out
