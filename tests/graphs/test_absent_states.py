"""Nodes with one label only, and states that some rows lack."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bregpath
from bregpath import IsingGraph, PottsGraph
from bregpath.graphs.data import RARE, StateCoder, add_absent_states, count_states
from tests.graphs.cases import DISCRETE, data_of, graph_of, ising_data, potts_data

SMALL = {"n_times": 6, "t_ratio": 10.0, "cv": 3, "n_subsamples": 3}
RULES = ["ebic", "cv", "cv-1se", "mdc", "stars", "stable", 2.0]
ONE_LABEL = "`X` has one label only in column"


def with_constant(X: np.ndarray, label: int | str) -> np.ndarray:
    """A constant node between the others."""
    return np.column_stack([X[:, :2], np.full(len(X), label), X[:, 2:]])


# --- nodes with one label only ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", DISCRETE)
@pytest.mark.parametrize("rule", ["ebic", 20.0])
def test_a_constant_node_is_isolated_and_changes_nothing(case, rule):
    X = data_of(case)
    with pytest.warns(UserWarning, match=rf"{ONE_LABEL}\(s\) 'x2': these nodes get no edges"):
        graph = graph_of(case, stop=rule, gamma=0.0).fit(with_constant(X, 1))
    alone = graph_of(case, stop=rule, gamma=0.0).fit(X)
    assert not graph.adjacency_[2].any()
    assert alone.adjacency_.any()
    others = np.delete(np.arange(X.shape[1] + 1), 2)
    weights = graph.weights_[np.ix_(others, others)]
    assert_allclose(weights, alone.weights_, atol=1e-8 * np.abs(alone.weights_).max())
    assert_allclose(graph.t_, alone.t_, rtol=1e-9)
    assert np.isinf(graph.path_.entry_times[2]).all()


def test_the_field_of_a_constant_spin_is_that_of_half_a_row():
    X = with_constant(ising_data(), 1)
    with pytest.warns(UserWarning, match=ONE_LABEL):
        graph = graph_of("ising-composite").fit(X)
    assert_allclose(graph.fields_[2], np.log(2 * len(X)), rtol=1e-9)
    assert_allclose(graph.path_.intercept[:, 2], np.log(2 * len(X)), rtol=1e-9)  # held
    assert graph.levels_[2].tolist() == [-1, 1]
    assert np.isfinite(graph.score(with_constant(ising_data(), -1)))
    assert np.mean(graph.sample(1000, seed=0)[:, 2] == 1) > 0.97


def test_labels_of_constant_nodes():
    answers = np.where(ising_data() > 0, "yes", "no")
    with pytest.warns(UserWarning, match=ONE_LABEL):
        graph = IsingGraph().fit(with_constant(answers, "yes"))
    assert graph.levels_[2].tolist() == ["no", "yes"]
    with pytest.warns(UserWarning, match=ONE_LABEL):
        graph = IsingGraph().fit(with_constant(answers, "of course"))
    assert graph.levels_[2].tolist() == ["of course", RARE]  # which takes labels never seen
    assert np.isfinite(graph.score(with_constant(answers, "hardly")))
    assert_array_equal(StateCoder(("a", "b"), (np.array([5]), np.array([4, 5]))).with_pairs().levels, [[4, 5]] * 2)


@pytest.mark.parametrize("kind", [IsingGraph, PottsGraph])
def test_constant_nodes_are_named(kind):
    pd = pytest.importorskip("pandas")
    X = ising_data(p=8)
    X[:, :7] = 1
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    with pytest.warns(UserWarning, match=r"column\(s\) 'a', 'b', 'c', 'd', 'e' and 2 more: .*Drop them"):
        graph = kind().fit(frame)
    assert not graph.adjacency_.any()
    with pytest.raises(ValueError, match="`X` has one label only in every column"):
        kind().fit(np.ones((5, 3)))


def test_without_its_weightless_rows_a_node_is_constant():
    X = ising_data()
    X[:, 2] = 1
    X[0, 2] = -1
    with pytest.warns(UserWarning, match=rf"{ONE_LABEL}\(s\) 'x2'"):
        graph = IsingGraph().fit(X, sample_weight=(np.arange(len(X)) > 0).astype(float))
    assert not graph.adjacency_[2].any()


def test_saved_and_loaded(tmp_path):
    with pytest.warns(UserWarning, match=ONE_LABEL):
        graph = graph_of("ising-composite").fit(with_constant(np.where(ising_data() > 0, "y", "n"), "z"))
    graph.save(tmp_path / "path.npz")
    path = bregpath.load_path(tmp_path / "path.npz")
    assert_array_equal(path.coef, graph.path_.coef)
    assert path.layout.levels[2].tolist() == ["z", RARE]


def check_grids(N: int, n: int) -> int:
    """Learn 20 grids of strong couplings, whose spins hardly ever turn; the number of those with at most one turn."""
    hard = 0
    for seed in range(20):
        X = bregpath.datasets.make_ising_grid(N, 1.25, n, seed).X
        up = np.sum(X > 0, axis=0)
        rarest = np.minimum(up, n - up)
        hard += rarest.min() <= 1
        for rule in ("ebic", "cv") if rarest.min() <= 1 else ("ebic",):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                graph = IsingGraph(stop=rule, max_sparsity=0.1, n_times=20).fit(X)
            assert [ONE_LABEL in str(warning.message) for warning in caught] == [True] * int(rarest.min() == 0)
            assert_array_equal(graph.adjacency_[rarest == 0], False)
            assert np.isfinite(graph.path_.deviance).all()
            assert np.isfinite(graph.selection_.mean).all()
    return hard


def test_grids_of_few_rows():
    assert check_grids(4, 60) > 0


@pytest.mark.slow
def test_grids_of_the_paper():
    assert check_grids(6, 500) > 0


# --- states that some rows lack ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("case", DISCRETE)
def test_one_row_with_a_state(case, rule):
    """Some folds and subsamples are without it."""
    X = data_of(case, n=60)
    rare = {"ising": 1, "potts": 2}[case.partition("-")[0]]
    X[:, 1] = X[:, 1] - (X[:, 1] == rare)
    X[X[:, 1] == 0, 1] = X[:, 1].min()
    X[5, 1] = rare
    graph = graph_of(case, stop=rule, **SMALL).fit(X)
    assert np.isfinite(graph.weights_).all()
    if graph.selection_ is not None:
        assert np.isfinite(graph.selection_.mean).all()


@pytest.mark.parametrize("min_count", [1, 3])
def test_rare_labels_in_folds(min_count):
    X = potts_data(90).astype("U9")
    X[[3, 30, 60], 0] = ["once", "twice", "twice"]
    graph = graph_of("potts", stop="cv", min_count=min_count, **SMALL).fit(X)
    assert (RARE in graph.levels_[0].tolist()) == (min_count == 3)
    assert np.isfinite(graph.selection_.fold_scores).all()


def test_a_fold_gives_half_a_row_to_a_state_it_lacks():
    X = potts_data(80)
    X[:, 0] = np.minimum(X[:, 0], 1)
    X[5, 0] = 2
    graph = graph_of("potts", stop="cv", cv=[(np.arange(40, 80), np.arange(40))]).fit(X)
    train = X[40:]
    ones = np.bincount(train[:, 0], minlength=3) / len(train)
    first = graph.selection_.fold_scores[0, 0]  # of independent nodes
    shares = [np.bincount(column, minlength=q) / len(train) for column, q in zip(train.T, (3, 2, 4, 3), strict=True)]
    shares[0] = np.append(ones[:2] * 40, 0.5) / 40.5
    by_hand = -2 * sum(np.log(share[column]).mean() for share, column in zip(shares, X[:40].T, strict=True))
    assert_allclose(first, by_hand, rtol=1e-9)


@pytest.mark.parametrize("rows", [1, 3, 10])
def test_half_a_row_a_state(rows):
    rng = np.random.default_rng(0)
    codes, w = rng.integers(0, 2, (rows, 4)), rng.integers(1, 4, rows).astype(float)
    codes[:, 3] = 1
    n_states = [2, 6, 3, 2]
    more, weights = add_absent_states(codes, w, n_states)
    assert_array_equal(more[:rows], codes)
    assert_array_equal(weights[:rows], w)
    for before, after in zip(count_states(codes, w, n_states), count_states(more, weights, n_states), strict=True):
        assert np.all(after > 0)
        assert np.all(after[before == 0] >= 0.1)
    full = np.vstack([codes, [0, 5, 2, 0], [1, 4, 0, 1], [0, 3, 1, 0], [0, 2, 1, 0], [0, 1, 1, 0], [0, 0, 1, 0]])
    assert add_absent_states(full, np.ones(len(full)), n_states)[0] is full


def test_absent_states_do_not_lean_on_others():
    codes = np.array([[0, 0], [0, 0], [0, 1], [0, 2]])
    more, w = add_absent_states(codes, np.ones(4), [2, 3])
    table = np.zeros((2, 3))
    np.add.at(table, tuple(more.T), w)
    assert_allclose(table, np.outer([4.0, 0.5], [0.5, 0.25, 0.25]))
