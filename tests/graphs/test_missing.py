"""Missing values: drawn from the right distribution, whatever they look like, and edges that are found all the same."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bregpath
from bregpath.graphs import enumerate_states
from bregpath.graphs.missing import draw_from_margins, draw_missing
from tests.graphs.cases import CASES, ONE_OF_EACH, data_of, gaussian_model, graph_of, ising_model, potts_model

SMALL = {"n_times": 20, "t_ratio": 20.0}


def holed(X, share, seed=0):
    """The same table with some cells lost, as floats."""
    gone = np.random.default_rng(seed).random(X.shape) < share
    return np.where(gone, np.nan, X)


# --- draws -------------------------------------------------------------------------------------------------------


def test_draws_from_margins_have_values_of_their_columns():
    rows = np.array([[0, 5], [0, 6], [9, 9], [1, 6]])
    missing = np.array([[False, False], [False, False], [True, True], [False, False]])
    drawn = np.array([draw_from_margins(rows, missing, np.random.default_rng(seed)) for seed in range(600)])
    assert_array_equal(drawn[:, ~missing], np.broadcast_to(rows[~missing], (600, 6)))
    assert_allclose([np.mean(drawn[:, 2, 0] == 0), np.mean(drawn[:, 2, 1] == 6)], [2 / 3, 2 / 3], atol=0.08)


@pytest.mark.parametrize("model", [ising_model(4), potts_model()], ids=["ising", "potts"])
def test_states_are_drawn_given_the_others(model):
    """Two cells of each row are lost; their joint distribution given the rest, by looking at all states."""
    n, exact = 4000, enumerate_states(model)
    codes = np.tile(model.encode(exact.sample(1, seed=1)), (n, 1))
    missing = np.zeros(codes.shape, dtype=bool)
    missing[:, :2] = True
    drawn = draw_missing(model, codes, missing, np.random.default_rng(0))
    assert_array_equal(drawn[:, 2:], codes[:, 2:])
    states = model.encode(exact.states)
    given = exact.probabilities * np.all(states[:, 2:] == codes[0, 2:], axis=1)
    for first in range(model.counts[0]):
        for second in range(model.counts[1]):
            expected = given[(states[:, 0] == first) & (states[:, 1] == second)].sum() / given.sum()
            found = np.mean((drawn[:, 0] == first) & (drawn[:, 1] == second))
            assert found == pytest.approx(expected, abs=5 * np.sqrt(0.25 / n))


def test_numbers_are_drawn_given_the_others():
    model, n = gaussian_model(), 20_000
    row, missing = np.array([0.3, -1.0, 2.0, 0.5, -0.2]), np.array([True, False, True, True, False])
    drawn = draw_missing(model, np.tile(row, (n, 1)), np.tile(missing, (n, 1)), np.random.default_rng(0))
    S, known = model.covariance, ~missing
    gain = S[np.ix_(missing, known)] @ np.linalg.inv(S[np.ix_(known, known)])
    assert_array_equal(drawn[:, known], np.tile(row[known], (n, 1)))
    expected = model.mean[missing] + gain @ (row - model.mean)[known]
    left = S[np.ix_(missing, missing)] - gain @ S[np.ix_(known, missing)]
    deviation = np.sqrt(np.diagonal(left))
    noise = 5 / np.sqrt(n)  # of means, in standard deviations; of covariances it is sqrt(2) of that
    assert_allclose(drawn[:, missing].mean(axis=0) / deviation, expected / deviation, atol=noise)
    scale = np.outer(deviation, deviation)
    assert_allclose(np.cov(drawn[:, missing].T) / scale, left / scale, atol=np.sqrt(2) * noise)


# --- tables with gaps --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_known_cells_stay(case):
    X = holed(data_of(case), 0.1)
    graph = graph_of(case, **SMALL).fit(X)
    assert graph.n_missing_ == np.isnan(X).sum() > 0
    rows = graph._study.rows
    known = ~np.isnan(X)
    if "gaussian" not in case and case != "mixed":
        rows = np.column_stack([graph.levels_[j][rows[:, j]] for j in range(X.shape[1])])
    assert_array_equal(rows[known], X[known])
    assert f"{graph.n_missing_} missing values were drawn" in str(graph)
    again = graph_of(case, **SMALL).fit(X)
    assert_array_equal(again.weights_, graph.weights_)
    assert graph.stability(n_replicates=2, max_false=None).n_replicates == 2


@pytest.mark.parametrize("case", ONE_OF_EACH)
def test_nothing_changes_where_nothing_is_missing(case):
    X = data_of(case)
    one, two = (graph_of(case, missing=missing, **SMALL).fit(X) for missing in ("impute", "refuse"))
    assert_array_equal(one.weights_, two.weights_)
    assert one.n_missing_ == 0
    assert "missing" not in str(one)


def test_all_kinds_of_missing_values():
    X = data_of("ising-composite")
    gaps = holed(X, 0.1)
    words = pd.DataFrame(np.where(gaps > 0, "yes", "no"), columns=list("abcdef")).where(~np.isnan(gaps), None)
    tables = [gaps, pd.DataFrame(gaps).astype("Int64"), np.where(np.isnan(gaps), None, gaps), words]
    found = [graph_of("ising-composite", **SMALL).fit(table).weights_ for table in tables]
    for weights in found[1:]:
        assert_array_equal(weights, found[0])


def test_a_column_of_gaps():
    X = data_of("ising-composite").astype(float)
    X[:, 2] = np.nan
    with pytest.raises(ValueError, match="`X` has nothing but missing values in column 2; drop it"):
        graph_of("ising-composite").fit(X)


def test_a_node_with_one_label_and_gaps_keeps_it():
    X = data_of("ising-composite").astype(float)
    X[:, 2] = 1.0
    X[::7, 2] = np.nan
    with pytest.warns(UserWarning, match="one label only"):
        graph = graph_of("ising-composite", **SMALL).fit(X)
    assert not graph.adjacency_[2].any()
    assert len(np.unique(graph._study.rows[:, 2])) == 1


def test_other_words_for_missing():
    with pytest.raises(ValueError, match="`missing` must be one of"):
        graph_of("ising-composite", missing="drop").fit(data_of("ising-composite"))


# --- edges all the same ------------------------------------------------------------------------------------------


def f1(found, truth):
    return 2 * (found & truth).sum() / (found.sum() + truth.sum())


@pytest.mark.parametrize("kind", ["ising", "potts", pytest.param("gaussian", marks=pytest.mark.slow)])
def test_edges_are_found_all_the_same(kind):
    datasets = {
        "ising": lambda seed: bregpath.datasets.make_ising_grid(3, T=1.5, n=500, seed=seed),
        "potts": lambda seed: bregpath.datasets.make_potts(n=1000, p=6, q=3, graph="chain", strength=0.7, seed=seed),
        "gaussian": lambda seed: bregpath.datasets.make_gaussian_graph(n=250, p=10, graph="chain", seed=seed),
    }
    estimator = {"ising": bregpath.IsingGraph, "potts": bregpath.PottsGraph, "gaussian": bregpath.GaussianGraph}[kind]
    marks = []
    for seed in range(4):
        data = datasets[kind](seed)
        tables = (data.X, holed(data.X, 0.05, seed), holed(data.X, 0.2, seed))
        marks.append([f1(estimator(n_times=40, t_ratio=20.0).fit(X).adjacency_, data.adjacency) for X in tables])
    complete, few, many = np.mean(marks, axis=0)
    assert few > complete - 0.03
    assert many > complete - 0.12
