"""The compiled core of graphs against the NumPy reference, with more rows than it takes at a time; Gaussian graphs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bregpath import _kernels
from bregpath.flow.glbi import GLBI
from bregpath.graphs import problems
from bregpath.graphs.problems import field_ends, field_problem, gaussian_problem, ising_problem
from bregpath.stores.pairwise import PairwiseStore, StateBlock

pytestmark = pytest.mark.skipif(not _kernels.has_compiled(), reason="built without the compiled core")

# Nodes with dense features are taken by blocks of 2**15 / p rows: of 5,456 with 6 nodes, of 2,336 with 14.
SIZES = [(2_500, 14), (6_000, 6)]


def spins(n, p):
    """A chain of spins, each like the one before with probability 0.7."""
    rng = np.random.default_rng([n, p])
    return np.cumprod(np.where(rng.random((n, p)) < 0.7, 1.0, -1.0), axis=1)


def states(n, p, q=3):
    """A chain of states."""
    rng = np.random.default_rng([n, p, q])
    return np.cumsum(np.where(rng.random((n, p)) < 0.6, 0, rng.integers(q, size=(n, p))), axis=1) % q


def run(problem, step, ratio=4):
    """The knots between blocks of steps, up to a multiple of the first entry's time."""
    flow = GLBI(problem, step, 0.01)
    state = flow.start()
    t0 = state.knot.t
    end = ratio * t0 if step is None else t0 + 30 * step
    knots = []
    while state.knot.t < end:
        state, _ = flow.advance(state, end)
        knots.append(state.knot)
    return knots


def assert_same_states(problem, step, ratio=4):
    """All rows are the problem's own: estimators would collapse those that repeat."""
    compiled = run(problem, step, ratio)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_kernels, "_compiled", None)
        reference = run(problem, step, ratio)
    assert len(compiled) == len(reference)
    assert np.count_nonzero(problem.penalty.primal(reference[-1].z, problem.kappa)) >= 3
    for one, two in zip(compiled, reference, strict=True):
        assert_allclose(one.t, two.t, rtol=1e-12)
        for name in ("alpha", "z", "slope", "R", "residual"):
            found, expected = getattr(one, name), getattr(two, name)
            if len(found) == 0:  # graphs of many states are traced without anything of the size of all predictors
                assert name in ("R", "residual") and isinstance(problem.store.block, StateBlock)
                continue
            if problem.loss.has_domain and name in ("R", "residual"):  # only the sum of both ends has a meaning
                found, expected = found + found.T, expected + expected.T
            assert_allclose(found, expected, rtol=0, atol=1e-9 * max(np.abs(expected).max(), 1e-3))
        assert_allclose(one.value, two.value, rtol=1e-10)


def weights(n):
    w = np.random.default_rng(n).uniform(0.5, 2.0, n)
    return w / w.sum()


@pytest.mark.parametrize("step", [None, 0.05])
@pytest.mark.parametrize(("n", "p"), SIZES)
@pytest.mark.parametrize("loss", ["composite", "mpf", "nodewise"])
def test_many_rows_of_spins(loss, n, p, step):
    assert_same_states(ising_problem(spins(n, p), weights(n), np.ones((p, p)), 10.0, loss, True), step)


# Spins are looked up by sixes, eight of which are added at a time, for eight nodes at a time; sixteen eights share a
# logarithm. These sizes fill all of them exactly, or go beyond by one.
@pytest.mark.parametrize("p", [1 + 6, 48, 49, 128, 129])
@pytest.mark.parametrize("loss", ["composite", "mpf"])
def test_many_spins(loss, p):
    assert_same_states(ising_problem(spins(70, p), weights(70), np.ones((p, p)), 10.0, loss, True), None)


def test_other_features_have_no_linear_stages():
    """Only spins do: the core looks their products up."""
    problem = ising_problem(spins(300, 5), weights(300), np.ones((5, 5)), 10.0, "composite", True)
    assert problem.store.has_cheap_curvature
    block = problem.store.block
    halves = PairwiseStore(0.5 * block.features, 5, block.source, block.target)
    assert not halves.has_cheap_curvature
    assert_same_states(replace(problem, store=halves), None)


@pytest.mark.parametrize("step", [None, 0.05])
@pytest.mark.parametrize("penalty", ["l1", "group"])
@pytest.mark.parametrize("features", ["dense", "sparse"])
@pytest.mark.parametrize(("n", "p"), [(2_500, 5), (6_000, 4)])
def test_many_rows_of_states(n, p, features, penalty, step, monkeypatch):
    monkeypatch.setattr(problems, "MAX_DENSE_STATES", 0 if features == "sparse" else 100)
    n_states = np.full(p, 3)
    problem = field_problem(states(n, p), n_states, weights(n), np.ones((p, p)), 10.0, field_ends(n_states), penalty)
    assert isinstance(problem.store.block.features, np.ndarray) == (features == "dense")
    assert_same_states(problem, step)


STATE_CASES = [("symmetric", "full", 0.15), ("reduced", "full", 0.15)]
STATE_CASES += [(one, other, None) for one in ("symmetric", "reduced") for other in ("full", "diagonal")]


@pytest.mark.parametrize("penalty", ["l1", "group"])
@pytest.mark.parametrize(("parameters", "couplings", "step"), STATE_CASES)
def test_unequal_numbers_of_states(parameters, couplings, penalty, step, monkeypatch):
    """One state only, few, as many as fill the lanes exactly, and more than are summed in registers at once."""
    monkeypatch.setattr(problems, "MAX_DENSE_STATES", 0)
    n_states = np.array([2, 1, 8, 27, 5])
    rng = np.random.default_rng(0)
    mood = rng.random(400)
    rows = np.stack([np.minimum((0.7 * mood + 0.3 * rng.random(400)) * q, q - 1).astype(int) for q in n_states], axis=1)
    for j, q in enumerate(n_states):
        rows[:q, j] = np.arange(q)  # every state occurs
    ends = field_ends(n_states, couplings, parameters)
    edge_weights = np.where((n_states > 1)[:, None] & (n_states > 1), 1.0, np.inf)
    problem = field_problem(rows, n_states, weights(400), edge_weights, 10.0, ends, penalty)
    assert isinstance(problem.store.block, StateBlock)
    assert_same_states(problem, step)
# --- Gaussian graphs -------------------------------------------------------------------------------------------


def gaussian(p, loss, shape="chain", kappa=10.0):
    """Correlations of a chain, whose precision matrix is sparse, or of one common factor, where it is full."""
    S = 0.5 ** np.abs(np.subtract.outer(np.arange(p), np.arange(p))) if shape == "chain" else 0.5 + 0.5 * np.eye(p)
    rows = np.random.default_rng(p).multivariate_normal(np.zeros(p), S, size=4 * p)
    edge_weights = np.ones((p, p))
    edge_weights[0, 1] = edge_weights[1, 0] = 0.0  # in from the start
    edge_weights[0, 2] = edge_weights[2, 0] = np.inf  # never
    return gaussian_problem(np.corrcoef(rows, rowvar=False), edge_weights, kappa, loss)


@pytest.mark.parametrize("step", [None, 0.005])
@pytest.mark.parametrize("shape", ["chain", "factor"])
@pytest.mark.parametrize("loss", ["likelihood", "composite"])
def test_gaussian_graphs(loss, shape, step):
    assert_same_states(gaussian(12, loss, shape), step)


@pytest.mark.parametrize(("loss", "shape"), [("likelihood", "chain"), ("composite", "chain"), ("likelihood", "factor")])
def test_many_nodes(loss, shape):
    """Chains are eliminated node by node; graphs of a factor are full, and swept."""
    assert_same_states(gaussian(70, loss, shape), None)


# Pivots are swept by 24, of rows that are padded to eight. These sizes fill both exactly, or go beyond by one.
@pytest.mark.parametrize("p", [5, 8, 9, 24, 25, 48, 49])
@pytest.mark.parametrize("loss", ["likelihood", "composite"])
def test_full_matrices(loss, p):
    """Composite paths would come to their boundary, the sooner the larger kappa is."""
    if loss == "likelihood":
        assert_same_states(gaussian(p, loss, "factor"), None)
    else:
        assert_same_states(gaussian(p, loss, "factor", kappa=0.3), None, ratio=2)


@pytest.mark.parametrize("p", [5, 8, 9, 24, 25, 48, 49])
def test_determinants_of_full_matrices(p):
    """Up to matrices whose least eigenvalue is a thousandth, and beyond."""
    problem = gaussian(p, "likelihood", "factor")
    flow, above = GLBI(problem, None, 0.01), np.triu_indices(p, 1)
    root = np.random.default_rng(p).normal(size=(p, 2 * p))
    matrix = root @ root.T / (2 * p)
    bottom = np.linalg.eigvalsh(matrix)[0]
    below = np.array([0.0, 0.999, 1.001]) * bottom
    alpha = np.diagonal(matrix) - below[:, None]
    beta = np.tile(matrix[above][:, None], (3, 1, 1))
    found = flow.values(flow.start(), alpha, np.arange(p * (p - 1) // 2), beta)
    for value, cut in zip(found[:2], below, strict=False):
        trace = np.sum(problem.y * (matrix - cut * np.eye(p)))
        assert_allclose(value, trace - np.linalg.slogdet(matrix - cut * np.eye(p))[1], rtol=1e-9)
    assert np.isinf(found[2])


@pytest.mark.parametrize("loss", ["likelihood", "composite"])
def test_gaussian_losses_at_given_points(loss):
    """Also outside of the domain, where they are infinite."""
    problem = gaussian(6, loss)
    flow = GLBI(problem, None, 0.01)
    state, columns = flow.start(), np.arange(15)
    alpha, beta = np.full((3, 6), 2.0), np.zeros((3, 15, 1))
    beta[1:, [0, 5]] = -0.5
    beta[2, 7] = 5.0
    found = flow.values(state, alpha, columns, beta)
    assert np.isinf(found[2]) and np.isfinite(found[:2]).all()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_kernels, "_compiled", None)
        assert_allclose(found, GLBI(problem, None, 0.01).values(state, alpha, columns, beta), rtol=1e-12)


def test_both_end_at_the_boundary():
    """A composite path of fewer rows than nodes ends where its matrix would not be positive definite."""
    S = np.corrcoef(np.random.default_rng(0).normal(size=(8, 12)), rowvar=False)
    ends = []
    for patched in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            if patched:
                patch.setattr(_kernels, "_compiled", None)
            flow = GLBI(gaussian_problem(S, np.ones((12, 12)), 10.0, "composite"), None, 0.01)
            state = flow.start()
            with pytest.raises(_kernels.BoundaryError):
                while True:
                    state, _ = flow.advance(state, 1e3)
            ends.append(state.knot.t)
    assert_allclose(*ends, rtol=1e-6)
