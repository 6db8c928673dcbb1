"""Several kappas whose paths are read as means over time: the best choice is a mean, the sparse one a path."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bregpath
from bregpath.selection.cross_validation import cross_validate
from bregpath.selection.kappas import KAPPAS, path_is_better
from tests.helpers import SIMULATORS
from tests.selection.test_kappas import GRID, curve_of


@pytest.fixture(scope="module", name="data")
def make_data():
    return bregpath.datasets.make_logistic(150, 30, 4, seed=1)


@pytest.fixture(scope="module", name="selection")
def make_selection(data):
    return cross_validate(data.X, data.y, loss="logistic", kappa=GRID)


@pytest.fixture(scope="module", name="means")
def make_means(data):
    return cross_validate(data.X, data.y, loss="logistic", kappa="cv", scoring=["deviance", "auc"])


def test_the_best_is_a_mean_and_the_sparse_choice_a_path(means):
    assert means.path.average == "linear" and means.sparse().path.average is None
    curves = {kappa: means.mean_surface[kappa]["deviance"] for kappa in KAPPAS}
    assert not path_is_better(curves, {k: means.surface[k]["deviance"] for k in KAPPAS}, means.fold_weights)
    assert means.kappa == min(KAPPAS, key=lambda kappa: curves[kappa].mean.min())
    best = curves[means.kappa]
    assert means.t == best.t_min and means.mean.min() == best.mean.min()
    limit = best.mean.min() + best.se[best.best]
    within = [kappa for kappa in KAPPAS if means.surface[kappa]["deviance"].mean.min() <= limit]
    assert means.kappa_sparse == means.sparse().kappa == max(within)
    assert means.sparse().t == means.t_sparse == means.surface[means.kappa_sparse]["deviance"].t_min
    assert_array_equal(means.sparse().fold_scores, means.surface[means.kappa_sparse]["deviance"].fold_scores)


def test_a_path_that_is_clearly_better_than_all_means_is_the_best():
    mean = {1.0: curve_of(1, 2, 3, 4)}  # half of its standard error is 0.32
    assert not path_is_better(mean, {1.0: curve_of(0.7, 1.7, 2.7, 3.7)}, np.ones(4))
    assert path_is_better(mean, {1.0: curve_of(0.65, 1.65, 2.65, 3.65)}, np.ones(4))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 40))
    for j in range(1, 40):
        X[:, j] = 0.7 * X[:, j - 1] + np.sqrt(1 - 0.7**2) * X[:, j]
    signal = X[:, [2, 9, 16, 23, 30, 37]] @ [2.0, -1.6, 1.2, 1.0, -0.8, 0.6]
    y = signal + 1.5 * rng.normal(size=120)
    few = cross_validate(X, y, kappa="cv")
    assert few.path.average is None and few.kappa_min == few.kappa
    assert few.mean.min() == min(few.surface[kappa]["deviance"].mean.min() for kappa in KAPPAS)
    assert few.mean.min() < min(few.mean_surface[kappa]["deviance"].mean.min() for kappa in KAPPAS)
    assert "*min" in few.summary(model=False) and pickle.loads(pickle.dumps(few)).by("deviance").t == few.t
    by_name = cross_validate(X, y, kappa="cv", average="linear")  # who asks for a mean gets one
    assert by_name.path.average == "linear" and by_name.mean.min() > few.mean.min()


def test_folds_end_where_paths_have_turned_and_means_no_longer_fall():
    """Sooner than means turn clearly, at no model that is missed; over a range of data."""
    shares, losses = [], []
    for seed in range(6):
        some = bregpath.datasets.make_logistic(150, 30, 4, seed=seed)
        options = dict(loss="logistic", kappa="cv")
        short, whole = (cross_validate(some.X, some.y, full=full, **options) for full in (False, True))
        for kappa in KAPPAS:
            curve, path = short.mean_surface[kappa]["deviance"], short.surface[kappa]["deviance"]
            assert len(curve.times) == len(path.times)
            if kappa not in short.given_up and len(curve.times) < len(whole.surface[kappa]["deviance"].times):
                assert path.mean[-1] > path.mean.min()
                assert curve.mean[-1] > curve.mean.min() or path.mean.min() < curve.mean.min()
            shares.append(len(curve.times) / len(whole.surface[kappa]["deviance"].times))
        losses.append((short.mean.min() - whole.mean.min()) / whole.se[np.argmin(whole.mean)])
    assert np.mean(shares) < 0.75
    assert max(losses) < 0.2


@pytest.mark.parametrize("loss", ["gaussian", "logistic"])
def test_means_of_several_kappas_are_those_of_each(loss):
    data = SIMULATORS[loss](80, 25, 3, seed=3)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The best time is the last one")
        together = cross_validate(data.X, data.y, loss=loss, kappa=GRID, average="linear", saturation=None)
        for kappa in GRID:
            for average, surface in (("linear", together.mean_surface), (None, together.surface)):
                curve = surface[kappa]["deviance"]
                alone = cross_validate(
                    data.X, data.y, loss=loss, kappa=kappa, average=average, t=curve.times, full=True, saturation=None
                )
                assert_allclose(curve.fold_scores, alone.fold_scores, rtol=1e-8, atol=1e-8)


def test_models_of_folds_are_means_too(data, means):
    train, test = means.folds[2]
    path = bregpath.trace_path(
        data.X[train], data.y[train], loss="logistic", kappa=means.kappa, t=[means.t], average="linear"
    )
    assert_allclose(means.fold_coef()[2], path.at(means.t).coef, atol=1e-8)
    i = int(np.flatnonzero(means.times == means.t)[0])
    assert_allclose(means.out_of_fold[i, test], path.decision_function(data.X[test], means.t), atol=1e-8)
    assert_allclose(means.predict(data.X), means.path.predict(data.X, means.t))


def test_by_another_measure(means):
    other = means.by("auc")
    assert other.measure == "auc" and other.path.average == "linear"
    assert other.by("deviance").t == means.t
    assert means.sparse().by("auc").sparse().kappa == other.kappa_sparse


def test_a_list_of_kappas_has_no_means_unless_asked_for(selection, data):
    assert selection.path.average is None and selection.mean_surface is selection.surface
    assert cross_validate(data.X, data.y, loss="logistic", kappa="cv", average=None).path.average is None
    assert cross_validate(data.X, data.y, loss="logistic", average="uniform").path.average == "uniform"


def test_no_means_of_structures_unless_asked_for():
    y = np.repeat([0.0, 2.0, 1.0], 20) + 0.3 * np.random.default_rng(0).normal(size=60)
    selection = cross_validate(None, y, structure="fused", kappa="cv")
    assert selection.surface and selection.mean_surface is selection.surface
    with pytest.raises(ValueError, match="`average` knows no `structure`"):
        cross_validate(None, y, structure="fused", kappa="cv", average="linear")


def test_means_are_told(means):
    text = means.summary(model=False)
    assert text.count("path itself") == 1 and text.count("*min") == 2
    assert "linear mean of the path" in text and "mean of" not in means.sparse().summary(model=False)
    assert "*sparse" in means.sparse().summary(model=False)
    again = pickle.loads(pickle.dumps(means))
    assert again.sparse().t == means.sparse().t and again.summary() == means.summary()


@pytest.mark.parametrize(("kappa", "expected"), [("cv", "linear"), ([1.0, 10.0], None), (10.0, None)])
def test_estimators_average_where_all_knobs_are_left_to_them(data, kappa, expected):
    model = bregpath.BregmanClassifier(kappa=kappa).fit(data.X, data.y)
    assert model.path_.average == expected
    assert bregpath.BregmanClassifier(kappa=kappa, average="uniform").fit(data.X, data.y).path_.average == "uniform"
    if expected:
        assert bregpath.BregmanClassifier(kappa=kappa, stop="cv-sparse").fit(data.X, data.y).path_.average is None


def test_the_picture_shows_the_sparse_path_too(means, selection):
    pytest.importorskip("matplotlib")
    for one, dashed in ((means, 1), (selection, 0)):
        ax = one.plot()
        lines = [line for line in ax.get_lines() if str(line.get_label()).startswith("κ")]
        assert sum(line.get_linestyle() == "--" for line in lines) == dashed
        assert len(lines) == len(one.surface) + dashed
        assert {name for text in ax.texts for name in text.get_text().split(", ")} == {"min", "sparse"}
