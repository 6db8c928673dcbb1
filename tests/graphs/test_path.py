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
    path, moved = path_of(case, X), path_of(case, X[:, order])
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
    step = 0.002 if case.startswith("gaussian") else 0.01
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


# --- reading ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", EVERY)
def test_matrices_are_symmetric_and_agree(case):
    path = path_of(case)
    p, n_parameters = path.layout.n_nodes, len(path.loss.null(*null_arguments(case)))
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
