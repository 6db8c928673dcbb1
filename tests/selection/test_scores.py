"""What is measured on held-out rows."""

from __future__ import annotations

import json
from pathlib import Path as File

import numpy as np
import pytest
from numpy.testing import assert_allclose

import bregpath
from bregpath import _kernels
from bregpath.losses import LOSSES, as_loss
from bregpath.regression import HeldOut
from bregpath.selection import scores
from bregpath.selection.curves import aggregate
from bregpath.selection.scores import SCORES, make_scorers

GLMNET = json.loads((File(__file__).parents[1] / "golden" / "glmnet_cv_rule.json").read_text())


@pytest.mark.parametrize("family", sorted(GLMNET["scores"]))
def test_scores_of_glmnet(family):
    record = GLMNET["scores"][family]
    y, w, fold = (np.array(record[key]) for key in ("y", "weights", "foldid"))
    eta, loss = np.array(record["eta"]), as_loss({"binomial": "logistic"}.get(family, family))
    coded = loss.encode(y, w / w.sum())
    rows = [np.flatnonzero(fold == k) for k in np.unique(fold)]
    for measure, expected in record["measures"].items():
        score = SCORES[{"class": "misclassification"}.get(measure, measure)]
        scores = np.stack([score(loss, 1.0, eta[:, r], coded[r], w[r] / w[r].sum()) for r in rows])
        mean, se = aggregate(scores, np.array([w[r].sum() for r in rows]))
        assert_allclose(mean, expected["cvm"], rtol=1e-6)
        assert_allclose(se, expected["cvsd"], rtol=1e-5)


def response(loss, n, rng):
    if loss == "multinomial":
        return np.array(["a", "b", "c"])[rng.integers(3, size=n)]
    if loss == "logistic":
        return rng.integers(2, size=n)
    return rng.poisson(3.0, size=n) if loss == "poisson" else rng.normal(size=n)


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_deviance_is_that_of_the_loss(name):
    rng = np.random.default_rng(0)
    loss, w = as_loss(name), rng.uniform(size=30)
    w /= w.sum()
    y = loss.encode(response(name, 30, rng), w)
    eta = rng.normal(scale=2, size=(4, 30, loss.n_outputs))
    eta = eta[:, :, 0] if loss.n_outputs == 1 else eta
    eta[0] *= 400  # far beyond what exp can do
    eta[0] = np.clip(eta[0], -np.inf, 600) if name == "poisson" else eta[0]
    unit = 3.0 if loss.has_units else 1.0
    expected = [unit**2 * loss.deviance(e / unit, y / unit if loss.has_units else y, w) for e in eta]
    assert_allclose(SCORES["deviance"](loss, unit, eta, y, w), expected, rtol=1e-12)


@pytest.mark.skipif(not _kernels.has_compiled(), reason="built without the compiled core")
@pytest.mark.parametrize("name", ["gaussian", "logistic"])
@pytest.mark.parametrize("n", [1, 7, 3000])
def test_losses_of_the_core(name, n, monkeypatch):
    rng = np.random.default_rng(n)
    loss, w = as_loss(name), rng.uniform(size=n)
    y, eta = rng.choice([-1.0, 1.0], size=n), rng.normal(scale=10.0 ** rng.uniform(-3, 3, size=(n, 5)), size=(n, 5)).T
    fast = [SCORES["deviance"](loss, 1.0, some, y, w) for some in (eta, eta[:1], eta[:0])]
    assert _kernels.losses(loss, eta, y, w) is not None
    monkeypatch.setattr(scores._kernels, "losses", lambda *_: None)
    for ours, some in zip(fast, (eta, eta[:1], eta[:0]), strict=True):
        assert_allclose(ours, SCORES["deviance"](loss, 1.0, some, y, w), rtol=1e-13)


@pytest.mark.skipif(not _kernels.has_compiled(), reason="built without the compiled core")
def test_losses_that_the_core_does_not_have():
    class Own(bregpath.losses.GaussianLoss):
        """May have other formulas."""

    eta, y = np.zeros((2, 3)), np.ones(3)
    assert all(_kernels.losses(loss, eta, y, y) is None for loss in (as_loss("poisson"), as_loss("huber"), Own()))
    with pytest.raises(ValueError, match="`w` has a wrong shape"):
        _kernels.losses(as_loss("gaussian"), eta, y, y[:2])


def test_errors_of_values_and_probabilities():
    from sklearn import metrics

    rng = np.random.default_rng(1)
    w, eta = np.full(20, 0.05), rng.normal(size=(1, 20))
    y = rng.normal(size=20)
    assert_allclose(SCORES["mae"](as_loss("gaussian"), 1.0, eta, y, w), metrics.mean_absolute_error(y, eta[0]))
    loss = as_loss("multinomial")
    coded = loss.encode(np.arange(20) % 3, w)
    eta = rng.normal(size=(1, 20, 3))
    error = loss.predict(eta[0]) - np.eye(3)[coded]
    assert_allclose(SCORES["mae"](loss, 1.0, eta, coded, w), np.abs(error).sum(axis=1).mean())
    assert_allclose(SCORES["mse"](loss, 1.0, eta, coded, w), (error**2).sum(axis=1).mean())


def test_auc_counts_ties_half_and_weights():
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(2)
    y, w = np.where(rng.uniform(size=50) < 0.4, 1.0, -1.0), rng.uniform(size=50)
    eta = rng.integers(5, size=(2, 50)) / 2.0
    expected = [roc_auc_score(y, e, sample_weight=w) for e in eta]
    assert_allclose(SCORES["auc"](as_loss("logistic"), 1.0, eta, y, w / w.sum()), expected)


# --- which measures ------------------------------------------------------------------------------------------


def test_measures_by_name_function_list_and_dict():
    loss = as_loss("logistic")

    def hits(y, p):
        return np.mean((p > 0.5) == y)

    hits.larger_is_better = True
    assert [s.name for s in make_scorers(None, loss)] == ["deviance"]
    several = make_scorers(["auc", hits, "mse"], loss)
    assert [(s.name, s.larger_is_better) for s in several] == [("auc", True), ("hits", True), ("mse", False)]
    named = make_scorers({"right": hits, "brier": "mse"}, loss)
    assert [(s.name, s.larger_is_better) for s in named] == [("right", True), ("brier", False)]
    rows = loss, 1.0, np.array([0, 1]), np.array([-1.0, 1.0]), np.array([1.0, 3.0]), False
    assert_allclose(named[0].score(HeldOut(*rows, np.array([[-1.0, -1.0], [-1.0, 1.0]]))), [0.5, 1.0])
    assert_allclose(named[1].score(HeldOut(*rows, np.zeros((1, 2)))), 0.25)


@pytest.mark.parametrize("score", ["good", None, [0.1, 0.2], 1j], ids=str)
def test_a_score_is_one_number(score):
    data = bregpath.datasets.make_linear(40, 5, 2, seed=0)
    with pytest.raises(TypeError, match="functions that return one number; mine returned"):
        bregpath.cross_validate(data.X, data.y, scoring={"mine": lambda y, prediction: score}, n_times=5)


@pytest.mark.parametrize(
    ("scoring", "error", "message"),
    [
        ([], ValueError, "`scoring` is empty"),
        (["auc", "auc"], ValueError, "names a measure twice"),
        (["auc", "r2"], ValueError, "`scoring` must be one of .* found 'r2'"),
        (3, ValueError, "`scoring` must be one of"),
    ],
)
def test_errors_name_the_argument(scoring, error, message):
    with pytest.raises(error, match=message):
        make_scorers(scoring, as_loss("logistic"))


def test_auc_is_of_two_classes():
    loss = as_loss("multinomial")
    loss.encode(np.arange(6) % 3, np.full(6, 1 / 6))
    for other in (loss, as_loss("gaussian"), as_loss("poisson")):
        with pytest.raises(ValueError, match='`scoring`="auc" needs loss="logistic"'):
            make_scorers("auc", other)


def test_scorers_of_estimators_are_refused():
    from sklearn.metrics import get_scorer

    data = bregpath.datasets.make_logistic(40, 3, 1, seed=0)
    with pytest.raises(TypeError, match="pass the metric itself"):
        bregpath.cross_validate(data.X, data.y, loss="logistic", scoring=get_scorer("accuracy"), n_times=5)
