"""Choosing a time on a structured path."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.base import clone

from bregpath import (
    BregmanClassifier,
    BregmanRegressor,
    bootstrap_intervals,
    cross_validate,
    information_criterion,
    stability_selection,
    trace_path,
)
from tests.structures.cases import blocky_regression, steps_signal


def test_cross_validation_finds_the_signal() -> None:
    good = 0
    for seed in range(5):
        truth, y = steps_signal(seed)
        chosen = cross_validate(None, y, structure="fused", nu=1.0, t_ratio=20.0, n_times=40)
        error = np.mean((chosen.path.at(chosen.t).coef - truth) ** 2)
        best = np.mean((chosen.path.coef - truth) ** 2, axis=1).min()
        good += error < 2 * best + 0.005 and error < 0.3 * 0.25**2
    assert good >= 4


def test_folds_are_scored_by_what_predicts() -> None:
    X, y = blocky_regression("gaussian")
    rows = np.arange(len(y))
    folds = [(rows[rows % 4 != k], rows[rows % 4 == k]) for k in range(4)]
    chosen = cross_validate(X, y, cv=folds, structure="fused", nu=0.1, n_times=15, full=True)
    train, test = folds[1]
    path = trace_path(X[train], y[train], structure="fused", nu=0.1, t=chosen.times)
    expected = [np.mean((path.predict(X[test], t) - y[test]) ** 2) for t in chosen.times]
    assert_allclose(chosen.fold_scores[1], expected, rtol=1e-6)
    assert_allclose(chosen.fold_coef(chosen.t)[1], path.at(chosen.t).coef, atol=1e-7)
    assert chosen.out_of_fold.shape == (15, len(y))


def test_criteria_count_free_coefficients() -> None:
    _, y = steps_signal(2)
    path = trace_path(None, y, structure="fused", nu=0.1, t_ratio=6.0, n_times=20)
    chosen = information_criterion(path, "bic", n=100)
    assert_allclose(chosen.curves["parameters"], path.df)
    assert_allclose(chosen.curves["fit"], 100 * np.log(np.mean((path.coef - y) ** 2, axis=1)), rtol=1e-9)
    assert 3 <= path.df[np.searchsorted(path.t, chosen.t)] <= 6


@pytest.mark.parametrize("stop", ["cv", "cv-1se", "bic", 3.0])
def test_regressor(stop) -> None:
    X, y = blocky_regression("gaussian", n=150)
    model = BregmanRegressor(stop=stop, structure="fused", nu=0.1, n_times=30)
    assert clone(model).get_params()["nu"] == 0.1
    model.fit(X, y)
    assert model.path_.structure.shape == (11, 12)
    assert_allclose(model.coef_, model.path_.at(model.t_).coef)
    assert_allclose(model.predict(X), model.path_.predict(X, model.t_))
    assert model.score(X, y) > 0.4
    assert clone(model).set_params(structure=None, nu=None).fit(X, y).path_.n_features == 12


def test_regressor_of_a_signal() -> None:
    truth, y = steps_signal(0)
    model = BregmanRegressor(structure="fused", nu=1.0, t_ratio=20.0, n_times=40).fit(sp.eye_array(100).tocsr(), y)
    assert np.mean((model.predict(sp.eye_array(100).tocsr()) - truth) ** 2) < 0.3 * 0.25**2


def test_classifier() -> None:
    X, y = blocky_regression("logistic", n=300)
    model = BregmanClassifier(structure="fused", nu=0.1, n_times=30).fit(X, y)
    assert model.coef_.shape == (1, 12)
    assert_allclose(model.predict_proba(X)[:, 1], model.path_.predict(X, model.t_))
    assert np.all(model.coef_[0, :6] > 0) and np.all(model.coef_[0, 6:] < 0)


def test_resampling() -> None:
    X, y = blocky_regression("gaussian", n=150)
    options = {"structure": "fused", "nu": 0.1, "t_ratio": 10.0}
    stable = stability_selection(X, y, n_replicates=10, n_variables=2, threshold=0.7, max_false=None, **options)
    assert stable.selected.tolist() == [5]
    boot = bootstrap_intervals(X, y, t=20.0, n_replicates=5, structure="fused", nu=0.1)
    assert boot.lower.shape == (12,)
