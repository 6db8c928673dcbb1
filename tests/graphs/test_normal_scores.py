"""Normal scores: only the order of values counts, ties and weights as copies, new rows between known values."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm, rankdata

from bregpath import GaussianGraph
from bregpath.graphs.normal_scores import NormalScores
from tests.graphs.cases import gaussian_data, gaussian_model

SMALL = {"n_times": 20, "t_ratio": 20.0}


def test_scores_are_quantiles_of_mid_ranks():
    X = np.random.default_rng(0).integers(0, 20, (50, 3)).astype(float)
    scores = NormalScores.learn(X, np.ones(50)).apply(X)
    assert_allclose(scores, norm.ppf((rankdata(X, axis=0) - 0.5) / 50))


def test_weights_are_copies():
    X, w = gaussian_data(20), np.random.default_rng(0).integers(0, 3, 20)
    one, two = NormalScores.learn(X, w.astype(float)), NormalScores.learn(np.repeat(X, w, axis=0), np.ones(w.sum()))
    assert_allclose(one.apply(X), two.apply(X))


def test_only_the_order_counts():
    X = gaussian_data(300, seed=1)
    bent = np.column_stack([np.exp(X[:, 0]), X[:, 1] ** 3, *X[:, 2:].T])
    one, two = (GaussianGraph(transform="rank", **SMALL).fit(table) for table in (X, bent))
    assert_allclose(two.weights_, one.weights_)
    assert_allclose(two.score(bent), one.score(X))
    assert_array_equal(one.adjacency_, gaussian_model().adjacency)


def test_outliers_hide_edges_and_ranks_find_them():
    X = gaussian_data(300, seed=2)
    X[::50] *= np.random.default_rng(0).choice([-200.0, 200.0], X[::50].shape)
    truth = gaussian_model().adjacency
    plain, ranks = (GaussianGraph(transform=transform).fit(X).adjacency_ for transform in (None, "rank"))
    assert (plain != truth).any()
    assert_array_equal(ranks, truth)


def test_new_rows_lie_between_known_ones():
    X = gaussian_data(100)
    graph = GaussianGraph(transform="rank", **SMALL).fit(X)
    assert graph.score(X + 1e-12) == pytest.approx(graph.score(X))
    assert np.isfinite(graph.score(1e6 * X))
    assert pickle.loads(pickle.dumps(graph)).score(X) == graph.score(X)


def test_gaps_are_no_values():
    X = gaussian_data(100)
    X[::9, 1] = np.nan
    graph = GaussianGraph(transform="rank", **SMALL).fit(X)
    assert graph.n_missing_ == 12
    assert np.isfinite(graph.weights_).all()


def test_a_covariance_has_no_ranks():
    with pytest.raises(ValueError, match="`transform` needs rows"):
        GaussianGraph(transform="rank", input="covariance", n_samples=50).fit(np.cov(gaussian_data().T))
    with pytest.raises(ValueError, match="`transform` must be one of"):
        GaussianGraph(transform="log").fit(gaussian_data())
