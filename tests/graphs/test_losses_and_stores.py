"""Losses and stores of graphs: derivatives by finite differences, adjoints by inner products."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.sparse import csc_array

from bregpath.graphs import problems
from bregpath.graphs.problems import all_pairs, field_ends, field_problem, gaussian_problem, ising_problem
from bregpath.losses import GRAPH_LOSSES
from bregpath.stores.pairwise import PairwiseStore
from bregpath.stores.precision import PrecisionStore
from tests.graphs.cases import N_STATES, ising_data, potts_data

NAMES = sorted(GRAPH_LOSSES)


def loss_case(name, rng):
    """A loss, a predictor, its data and unequal weights."""
    if name.startswith("gaussian"):
        p = 4
        rows = rng.normal(size=(9, p))
        root = rng.normal(size=(p, p))
        omega = root @ root.T / p + 0.7 * np.eye(p)  # dense, and positive definite
        return GRAPH_LOSSES[name](p), omega, rows.T @ rows / 9, np.ones(1)
    n = 25
    w = rng.uniform(0.1, 2.0, n)
    if name.startswith("mixed"):
        loss = GRAPH_LOSSES[name](2, [0.7, 2.0], [0.5], [3, 4], [0.8, 1.1])
        labels = np.stack([rng.integers(q, size=n) for q in (3, 4)], axis=1)
        y = np.hstack([rng.normal(size=(n, 2)), rng.poisson(2.0, (n, 2)), rng.choice([-1.0, 1.0], (n, 1)), labels])
        eta = rng.normal(size=(n, loss.n_outputs))
        eta[:, 2:4] = np.exp(0.3 * eta[:, 2:4])  # precisions
        return loss, eta, y, w / w.sum()
    if name.startswith("field"):
        loss = GRAPH_LOSSES[name](N_STATES)
        y = np.stack([rng.integers(q, size=n) for q in N_STATES], axis=1)
    else:
        loss, y = GRAPH_LOSSES[name](4), rng.choice([-1.0, 1.0], (n, 4))
    return loss, rng.normal(size=(n, loss.n_outputs)), y, w / w.sum()


def direction_of(name, eta, rng):
    """A random direction; that of a precision matrix is symmetric."""
    d = rng.normal(size=eta.shape)
    return d + d.T if name.startswith("gaussian") else d


@pytest.mark.parametrize("name", NAMES)
def test_gradient_is_the_derivative_of_value(name, rng):
    loss, eta, y, w = loss_case(name, rng)
    gradient = loss.gradient(eta, y, w)
    assert gradient.shape == eta.shape
    for _ in range(5):
        d, h = direction_of(name, eta, rng), 1e-6
        slope = (loss.value(eta + h * d, y, w) - loss.value(eta - h * d, y, w)) / (2 * h)
        assert_allclose(np.sum(gradient * d), slope, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("gaussian")])
def test_every_entry_of_the_gradient(name, rng):
    """One predictor at a time: weights, states and nodes are not mixed up."""
    loss, eta, y, w = loss_case(name, rng)
    gradient, h = loss.gradient(eta, y, w), 1e-6
    for i, k in [(0, 0), (3, 1), (7, eta.shape[1] - 1), (24, 2)]:
        d = np.zeros_like(eta)
        d[i, k] = h
        assert_allclose(gradient[i, k], (loss.value(eta + d, y, w) - loss.value(eta - d, y, w)) / (2 * h), atol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_curvature_is_the_derivative_of_the_gradient(name, rng):
    loss, eta, y, w = loss_case(name, rng)
    for _ in range(3):
        d, h = direction_of(name, eta, rng), 1e-6
        bent = (loss.gradient(eta + h * d, y, w) - loss.gradient(eta - h * d, y, w)) / (2 * h)
        found = loss.curvature(eta, y, w, d)
        if name.startswith("gaussian"):  # a precision matrix moves symmetrically, so only the symmetric part counts
            bent, found = bent + bent.T, found + found.T
        assert_allclose(found, bent, rtol=1e-5, atol=1e-7)
        assert np.sum(d * found) >= -1e-12  # convex


@pytest.mark.parametrize("name", NAMES)
def test_null_is_the_optimum_of_the_unpenalised_parameters(name, rng):
    loss, _, y, w = loss_case(name, rng)
    null = loss.null(y, w)

    def value(alpha):
        eta = np.diag(alpha) if name.startswith("gaussian") else np.broadcast_to(alpha, (len(w), len(alpha)))
        return loss.value(np.array(eta), y, w)

    best = minimize(value, null + 0.1, method="BFGS", options={"gtol": 1e-8})
    assert_allclose(value(null), best.fun, rtol=1e-9)
    h = 1e-5
    for unit in np.eye(len(null)):
        assert_allclose(value(null + h * unit) - value(null - h * unit), 0.0, atol=1e-13 + 1e-8 * h)


def test_unequal_numbers_of_states_are_not_padded(rng):
    """The field loss is the sum of the losses of the nodes, each a softmax of its own."""
    loss, eta, y, w = loss_case("field-composite", rng)
    starts = np.concatenate([[0], np.cumsum(N_STATES)])
    total = 0.0
    for j, q in enumerate(N_STATES):
        own = np.exp(eta[:, starts[j] : starts[j] + q])
        total -= w @ np.log(own[np.arange(len(y)), y[:, j]] / own.sum(axis=1))
    assert_allclose(loss.value(eta, y, w), total, rtol=1e-12)
    shares = loss.predict(eta)
    assert_allclose(np.add.reduceat(shares, starts[:-1], axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("name", ["ising-composite", "field-composite"])
def test_large_predictors_do_not_overflow(name, rng):
    loss, eta, y, w = loss_case(name, rng)
    assert np.isfinite(loss.value(1e4 * eta, y, w))
    assert np.isfinite(loss.gradient(1e4 * eta, y, w)).all()


def test_precisions_of_numbers_are_positive(rng):
    loss, eta, y, w = loss_case("mixed-composite", rng)
    eta[3, 2] = 0.0
    assert loss.value(eta, y, w) == np.inf
    assert np.isnan(loss.gradient(eta, y, w)).any()


@pytest.mark.parametrize("name", ["gaussian-likelihood", "gaussian-composite"])
def test_outside_the_cone_the_loss_is_infinite(name):
    loss = GRAPH_LOSSES[name](2)
    outside = np.array([[-1.0, 0.0], [0.0, 1.0]])
    assert loss.value(outside, np.eye(2), np.ones(1)) == np.inf


def test_likelihood_of_an_indefinite_matrix_is_infinite():
    indefinite = np.array([[1.0, 2.0], [2.0, 1.0]])
    loss = GRAPH_LOSSES["gaussian-likelihood"](2)
    assert loss.value(indefinite, np.eye(2), np.ones(1)) == np.inf
    assert np.isnan(loss.gradient(indefinite, np.eye(2), np.ones(1))).all()


# --- stores -----------------------------------------------------------------------------------------------------------


def pairwise(kind, rng):
    """Spins or indicators, dense or sparse; coefficients with one or two places."""
    if kind in ("spins", "one place", "unequal features"):
        features = rng.choice([-1.0, 1.0], (12, 5))
        pairs = all_pairs(5)
        if kind == "one place":
            return PairwiseStore(np.asfortranarray(features), 5, pairs[:, :1], pairs[:, 1:])
        if kind == "unequal features":
            features = features * np.arange(1.0, 6.0)
        return PairwiseStore(np.asfortranarray(features), 5, pairs, np.ascontiguousarray(pairs[:, ::-1]))
    n_states = np.array(N_STATES)
    store = field_problem(
        potts_data(12, seed=3), n_states, np.full(12, 1 / 12), np.ones((4, 4)), 10.0, field_ends(n_states), "group"
    ).store
    if kind == "sparse":
        block, features = store.block, csc_array(np.asarray(store.block.features))
        return PairwiseStore(features, block.n_targets, block.source, block.target, has_indicators=True)
    return store


KINDS = ["spins", "one place", "unequal features", "indicators", "sparse"]


def everything(store):
    """All columns of a store as a block."""
    return store.fetch(np.arange(store.shape[1]))


def matrix_of(store):
    """The store as a matrix (size of eta, number of coefficients)."""
    units = np.eye(store.shape[1])[:, :, None]
    return np.stack([everything(store).matvec(unit).ravel() for unit in units], axis=1)


@pytest.mark.parametrize("kind", [*KINDS, "precision"])
def test_rmatvec_is_the_adjoint_of_matvec(kind, rng):
    store = PrecisionStore(5, all_pairs(5)) if kind == "precision" else pairwise(kind, rng)
    m = store.shape[1]
    for columns in (None, np.array([m - 1, 0, 3])):
        beta = rng.normal(size=(m if columns is None else 3, 1))
        block = everything(store) if columns is None else store.fetch(columns)
        eta = block.matvec(beta)
        residual = rng.normal(size=eta.shape)
        back = store.products(residual[None], columns)[0]
        assert_allclose(back, block.rmatvec(residual), rtol=1e-12, atol=1e-14)
        assert back.shape == beta.shape
        assert_allclose(np.sum(eta * residual), np.sum(beta * back), rtol=1e-12)


@pytest.mark.parametrize("kind", [*KINDS, "precision"])
def test_parts_of_a_store(kind, rng):
    store = PrecisionStore(5, all_pairs(5)) if kind == "precision" else pairwise(kind, rng)
    some, more = np.array([4, 0]), np.array([2, 5, 1])
    beta = rng.normal(size=(5, 1))
    both = store.fetch(some).append(store.fetch(more))
    eta = store.fetch(np.concatenate([some, more])).matvec(beta)
    assert both.shape[1] == 5
    assert_allclose(both.matvec(beta), eta, rtol=1e-12, atol=1e-14)
    residuals = rng.normal(size=(3, *eta.shape))
    many = store.products(residuals, more)
    assert_allclose(many, np.stack([store.fetch(more).rmatvec(r) for r in residuals]), rtol=1e-12, atol=1e-14)
    assert_allclose(both.rmatvec(residuals[0])[2:], many[0], rtol=1e-12, atol=1e-14)
    assert store.fetch(np.array([], dtype=int)).matvec(np.zeros((0, 1))).shape == eta.shape


@pytest.mark.parametrize("kind", [*KINDS, "precision"])
def test_collect_is_the_adjoint_of_spread(kind, rng):
    store = PrecisionStore(5, all_pairs(5)) if kind == "precision" else pairwise(kind, rng)
    eta = everything(store).matvec(rng.normal(size=(store.shape[1], 1)))
    alpha, residual = rng.normal(size=eta.shape[1]), rng.normal(size=eta.shape)
    added = store.spread(alpha, eta) - eta
    assert_allclose(np.sum(added * residual), alpha @ store.collect(residual), rtol=1e-12)


@pytest.mark.parametrize("kind", [*KINDS, "precision"])
def test_norms_of_columns_and_groups(kind, rng):
    store = PrecisionStore(5, all_pairs(5)) if kind == "precision" else pairwise(kind, rng)
    matrix, scan = matrix_of(store), store.scan(np.ones(store.shape[0]))  # weights of one: plain norms
    assert_allclose(scan.size, np.linalg.norm(matrix, axis=0), rtol=1e-12)
    if kind in ("indicators", "sparse"):
        ends = field_ends(np.array(N_STATES))
        groups = np.unique(ends[:, :2], axis=0, return_inverse=True)[1].ravel()
    else:
        groups = np.arange(store.shape[1]) // 3
    bounds = scan.group_size(groups)
    for g in np.unique(groups):
        true = np.linalg.norm(matrix[:, groups == g], ord=2)
        assert bounds[groups == g].min() >= true * (1 - 1e-12)
        assert bounds[groups == g].max() <= 3.0 * true  # a bound that would always hold screens nothing


def test_dense_and_sparse_indicators_are_the_same_store(rng, monkeypatch):
    states, n_states, w = potts_data(40), np.array(N_STATES), np.full(40, 1 / 40)
    made = {}
    for limit in (0, 100):
        monkeypatch.setattr(problems, "MAX_DENSE_STATES", limit)
        made[limit] = field_problem(states, n_states, w, np.ones((4, 4)), 10.0, field_ends(n_states), "group").store
    assert not isinstance(made[0].block.features, np.ndarray)
    assert isinstance(made[100].block.features, np.ndarray)
    assert made[0].has_indicators
    assert made[100].has_indicators
    beta = rng.normal(size=(made[0].shape[1], 1))
    assert_allclose(made[0].block.matvec(beta), made[100].block.matvec(beta), rtol=1e-12, atol=1e-14)
    assert_allclose(made[0].scan(w).size, made[100].scan(w).size, rtol=1e-12)


# --- problems: gradients of the parameters themselves -----------------------------------------------------------------


@pytest.mark.parametrize("loss", ["composite", "mpf", "nodewise"])
def test_a_coupling_acts_at_both_ends(loss, rng):
    """The predictor of node j is a_j + sum_k b_jk x_k, with one symmetric b or one b for each end."""
    spins = ising_data(30).astype(float)
    n, p = spins.shape
    problem = ising_problem(spins, np.full(n, 1 / n), np.ones((p, p)), 10.0, loss, True)
    beta = rng.normal(size=problem.beta_shape)
    b = np.zeros((p, p))
    j, k = all_pairs(p).T
    if loss == "nodewise":  # the first half is the regression of k on j
        b[k, j], b[j, k] = beta[: len(j), 0], beta[len(j) :, 0]
    else:
        b[j, k] = b[k, j] = beta[:, 0]
    alpha = rng.normal(size=p)
    eta = problem.predictor(problem.store.block, alpha, beta)
    assert_allclose(eta, alpha + spins @ b.T, rtol=1e-12, atol=1e-13)


def test_a_block_couples_states(rng):
    states, n_states = potts_data(30), np.array(N_STATES)
    ends = field_ends(n_states)
    assert len(ends) == sum(N_STATES[j] * N_STATES[k] for j, k in all_pairs(4))
    problem = field_problem(states, n_states, np.full(30, 1 / 30), np.ones((4, 4)), 10.0, ends, "group")
    beta = rng.normal(size=problem.beta_shape)
    starts = np.concatenate([[0], np.cumsum(n_states)])
    expected = np.zeros((30, starts[-1]))
    for (j, k, first, second), value in zip(ends, beta[:, 0], strict=True):
        expected[:, starts[j] + first] += value * (states[:, k] == second)
        expected[:, starts[k] + second] += value * (states[:, j] == first)
    eta = problem.predictor(problem.store.block, np.zeros(starts[-1]), beta)
    assert_allclose(eta, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("loss", ["likelihood", "composite"])
def test_one_parameter_a_pair_has_the_gradient_of_both_halves(loss, rng):
    S = np.cov(rng.normal(size=(20, 4)).T)
    problem = gaussian_problem(S, np.ones((4, 4)), 10.0, loss)
    beta, alpha, h = 0.05 * rng.normal(size=(6, 1)), np.full(4, 1.2), 1e-6
    gradient = problem.store.block.rmatvec(problem.residual(problem.predictor(problem.store.block, alpha, beta)))
    for i in range(6):
        d = np.zeros_like(beta)
        d[i] = h
        up, down = (problem.value(problem.predictor(problem.store.block, alpha, beta + s * d)) for s in (1, -1))
        assert_allclose(gradient[i, 0], (up - down) / (2 * h), rtol=1e-5, atol=1e-8)
