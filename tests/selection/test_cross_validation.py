from __future__ import annotations

import json
import pickle
import warnings
from pathlib import Path as File

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import bregpath
from bregpath.losses import as_loss
from bregpath.selection.cross_validation import cross_validate
from bregpath.selection.curves import aggregate, choose
from bregpath.selection.folds import make_folds
from bregpath.selection.scores import SCORES
from tests.helpers import SIMULATORS

GLMNET = json.loads((File(__file__).parents[1] / "golden" / "glmnet_cv_rule.json").read_text())


def fixed_steps(loss, y):
    """Adaptive steps agree within their tolerance; fixed ones to rounding error, which these tests are about."""
    size = {"gaussian": 0.02 / np.std(y), "huber": 0.02 / np.std(y), "poisson": 0.002}.get(loss, 0.1)
    return dict(step=size, t_ratio=4.0 if loss == "poisson" else 20.0)


@pytest.fixture(scope="module")
def linear():
    return bregpath.datasets.make_linear(80, 8, 3, seed=4)


@pytest.fixture(scope="module")
def logistic():
    return bregpath.datasets.make_logistic(120, 8, 3, seed=4)


# --- the rule and the numbers, against glmnet ----------------------------------------------------------------


@pytest.mark.parametrize("case", sorted(GLMNET["rule"]))
def test_rule_of_glmnet(case):
    record = GLMNET["rule"][case]
    times = 1 / np.array(record["lambda"])
    larger = record["type_measure"] == "auc"
    found = choose(times, np.array(record["cvm"]), np.array(record["cvsd"]), larger_is_better=larger)
    assert found == (record["index_min"], record["index_1se"])
    assert_allclose(1 / times[list(found)], [record["lambda_min"], record["lambda_1se"]], rtol=1e-12)


def test_choose_at_the_edges():
    times = np.array([1.0, 2.0, 3.0])
    assert choose(times, np.array([5.0, 5.0, 5.0]), np.zeros(3)) == (0, 0)
    assert choose(times, np.array([np.inf, 4.0, np.nan]), np.full(3, np.nan)) == (1, 1)
    assert choose(times, np.full(3, np.inf), np.zeros(3)) == (0, 0)
    # Times in any order: the smallest time counts, not the smallest index.
    assert choose(times[::-1], np.array([1.0, 1.1, 3.0]), np.full(3, 0.2)) == (0, 1)


def test_rule_of_paired_differences():
    """Folds that differ from each other, but agree on which times are worse."""
    times, level = np.array([1.0, 2.0, 3.0, 4.0]), np.array([[0.0], [4.0], [8.0], [12.0]])
    wiggle = np.array([[0.0, 0.1, 0.0, 0.0], [0.0, -0.1, 0.0, 0.0], [0.0, 0.1, 0.0, 0.0], [0.0, -0.1, 0.0, 0.0]])
    scores = level + np.array([2.0, 0.05, 0.0, 0.5]) + wiggle
    mean, se = aggregate(scores, np.ones(4))
    assert choose(times, mean, se) == (2, 0)  # by the error of the scores even the first time would do
    assert choose(times, mean, se, folds=(scores, np.ones(4))) == (2, 1)
    assert choose(times, -mean, se, folds=(-scores, np.ones(4)), larger_is_better=True) == (2, 1)
    assert choose(times, mean, se, folds=(scores[:1], np.ones(1)))[1] == 2  # one fold has no error


def test_rules_of_one_standard_error(logistic):
    paired, glmnet = (cross_validate(logistic.X, logistic.y, loss="logistic", se_rule=r) for r in ("paired", "glmnet"))
    assert paired.t_min == glmnet.t_min and glmnet.t_1se <= paired.t_1se <= paired.t_min
    best = int(np.argmin(glmnet.mean))
    assert glmnet.t_1se == glmnet.times[glmnet.mean <= glmnet.mean[best] + glmnet.se[best]][0]
    with pytest.raises(ValueError, match="`se_rule` must be one of"):
        cross_validate(logistic.X, logistic.y, loss="logistic", se_rule="1se")


# --- whole cross-validations ---------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", sorted(SIMULATORS))
def test_curves_are_those_of_refitting_by_hand(loss):
    data = SIMULATORS[loss](60, 5, 2, seed=2)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 60)
    steps = fixed_steps(loss, data.y)
    selection = cross_validate(data.X, data.y, loss=loss, cv=3, n_times=8, sample_weight=weight, **steps)
    w = weight / weight.sum()
    full = selection.path
    coded = as_loss(loss).encode(data.y, w)
    unit = full.units.y_unit
    folds = make_folds(3, data.X, data.y, weight, stratify=full.loss.is_classifier)
    for k, (train, test) in enumerate(folds):
        fold = bregpath.trace_path(
            data.X[train], data.y[train], loss=loss, t=full.t, sample_weight=weight[train], step=steps["step"]
        )
        end = fold.t[-1]
        for i, t in enumerate(full.t):
            eta = fold.decision_function(data.X[test], min(t, end))
            assert_allclose(selection.out_of_fold[i, test], eta, atol=1e-9)
            y = coded[test] / unit if full.loss.has_units else coded[test]
            score = unit**2 * full.loss.deviance(eta / unit, y, w[test] / w[test].sum())
            assert_allclose(selection.fold_scores[k, i], score, atol=1e-9)
    assert_allclose(selection.fold_weights / selection.fold_weights.sum(), [w[test].sum() for _, test in folds])
    assert selection.t_1se <= selection.t_min


def test_units_of_y_change_units_only(linear):
    one = cross_validate(linear.X, linear.y, n_times=20, **fixed_steps("gaussian", linear.y))
    other = cross_validate(linear.X, 1000 * linear.y, n_times=20, **fixed_steps("gaussian", 1000 * linear.y))
    assert_allclose(other.t * 1000, one.t, rtol=1e-6)
    assert_allclose(other.mean / 1e6, one.mean, rtol=1e-6)


@pytest.mark.parametrize("scoring", ["misclassification", "mse", "auc"])
def test_scorings(logistic, scoring):
    from sklearn import metrics

    selection = cross_validate(logistic.X, logistic.y, loss="logistic", scoring=scoring, n_times=20, cv=4)
    folds = make_folds(4, logistic.X, logistic.y, np.ones(120), stratify=True)
    i, positive = 10, logistic.y == np.unique(logistic.y)[1]
    for k, (_, test) in enumerate(folds):
        eta = selection.out_of_fold[i, test]
        probability = 1 / (1 + np.exp(-eta))
        expected = {
            "misclassification": np.mean((eta > 0) != positive[test]),
            "mse": np.mean((probability - positive[test]) ** 2),
            "auc": metrics.roc_auc_score(positive[test], eta),
        }[scoring]
        assert_allclose(selection.fold_scores[k, i], expected)
    best = max if scoring == "auc" else min
    assert selection.mean[np.searchsorted(selection.times, selection.t_min)] == best(selection.mean)


def test_callable_scoring_sees_labels_and_probabilities(logistic):
    from sklearn.metrics import log_loss

    labels = np.where(logistic.y > 0, "yes", "no")
    weight = np.linspace(1, 2, 120)
    options = dict(loss="logistic", n_times=15, sample_weight=weight)
    own = cross_validate(logistic.X, labels, scoring=log_loss, **options)
    assert_allclose(2 * own.mean, cross_validate(logistic.X, labels, **options).mean, rtol=1e-9)  # the same run
    assert own.measure == "log_loss"

    def hits(y, probability):
        return np.mean((probability > 0.5) == (y == "yes"))

    hits.larger_is_better = True
    options.pop("sample_weight")
    other = cross_validate(logistic.X, labels, scoring=hits, **options)
    error = cross_validate(logistic.X, labels, scoring="misclassification", **options)
    assert_allclose(1 - other.mean, error.mean)
    assert other.t == error.t


def test_sparse_and_dense_agree(logistic):
    options = dict(loss="logistic", n_times=15)
    dense = cross_validate(logistic.X, logistic.y, **options)
    sparse = cross_validate(sp.csc_array(logistic.X), logistic.y, **options)
    assert_allclose(sparse.mean, dense.mean, rtol=1e-8)
    assert_allclose(sparse.train_mean, dense.train_mean, rtol=1e-8)


def test_zero_weights_are_absent_rows(linear):
    weight = np.r_[np.ones(60), np.zeros(20)]
    steps = fixed_steps("gaussian", linear.y)
    some = cross_validate(linear.X, linear.y, sample_weight=weight, n_times=15, **steps)
    part = cross_validate(linear.X[:60], linear.y[:60], n_times=15, **steps)
    assert_allclose(some.mean, part.mean, rtol=1e-6)
    assert np.isnan(some.out_of_fold[:, 60:]).all() and np.isfinite(some.out_of_fold[:, :60]).all()


def test_offset_moves_held_out_predictions(linear):
    offset = np.linspace(-3, 3, 80)
    steps = fixed_steps("gaussian", linear.y)
    plain = cross_validate(linear.X, linear.y, n_times=15, **steps)
    moved = cross_validate(linear.X, linear.y + offset, offset=offset, n_times=15, **steps)
    assert_allclose(moved.out_of_fold, plain.out_of_fold + offset, rtol=1e-6, atol=1e-6)
    assert_allclose(moved.mean, plain.mean, rtol=1e-6)


def test_multinomial_offset_and_out_of_fold_shape():
    data = bregpath.datasets.make_multinomial(60, 5, 2, seed=2)
    q = data.coef.shape[1]
    selection = cross_validate(data.X, data.y, loss="multinomial", offset=np.zeros((60, q)), n_times=10, cv=3)
    assert selection.out_of_fold.shape == (len(selection.times), 60, q)
    plain = cross_validate(data.X, data.y, loss="multinomial", n_times=10, cv=3)
    assert_allclose(selection.mean, plain.mean, rtol=1e-8)
    # One number for each class is taken up by the intercepts: predictions stay, as far as classes are told apart.
    shift = np.tile(np.linspace(-1, 1, q), (60, 1))
    moved = cross_validate(data.X, data.y, loss="multinomial", offset=shift, n_times=10, cv=3)
    assert_allclose(moved.mean, plain.mean, rtol=1e-7)
    apart = [s.out_of_fold - s.out_of_fold.mean(axis=2, keepdims=True) for s in (moved, plain)]
    assert_allclose(*apart, atol=1e-7)


def test_fold_that_ends_early_keeps_its_last_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4))
    y = (X[:, 0] > 0).astype(int)
    y[0] = 1 - y[0]  # separable in the fold without row 0 only
    X[:, 0] += np.sign(X[:, 0])
    cv = [(np.arange(1, 40), np.array([0, 1])), (np.arange(38), np.array([38, 39]))]
    selection = cross_validate(X, y, loss="logistic", cv=cv, n_times=40, t_ratio=1000)
    ends = bregpath.trace_path(X[1:], y[1:], loss="logistic", t=selection.times)
    assert ends.result is bregpath.Result.SATURATED and ends.t[-1] < selection.times[-2]
    late = selection.times > ends.t[-1]
    assert (np.ptp(selection.out_of_fold[late, 0]), np.ptp(selection.out_of_fold[late, 38]) > 0) == (0, True)


# --- what the folds know -------------------------------------------------------------------------------------


def test_training_scores(logistic):
    weight = np.linspace(1, 2, 120)
    selection = cross_validate(
        logistic.X, logistic.y, loss="logistic", cv=4, n_times=20, sample_weight=weight, scoring=["deviance", "auc"]
    )
    coded = as_loss("logistic").encode(logistic.y, weight / weight.sum())
    i = 8
    for k, (train, _) in enumerate(selection.folds):
        w = weight[train] / weight[train].sum()
        path = bregpath.trace_path(
            logistic.X[train], logistic.y[train], loss="logistic", sample_weight=w, t=selection.times
        )
        assert_allclose(selection.train_scores[k, i], path.deviance[i], rtol=1e-8)
        eta = path.decision_function(logistic.X[train], selection.times[i])
        auc = SCORES["auc"](path.loss, 1.0, eta[None], coded[train], w)
        assert_allclose(selection.by("auc").train_scores[k, i], auc[0], rtol=1e-8)
    share = selection.fold_weights / selection.fold_weights.sum()
    assert_allclose(selection.train_mean, share @ selection.train_scores)
    assert selection.train_mean[-1] < selection.mean[-1]


def test_models_and_predictions_of_folds(logistic):
    selection = cross_validate(logistic.X, logistic.y, loss="logistic", n_times=20, cv=4)
    i = int(np.argmin(np.abs(selection.times - selection.t)))
    coef = selection.fold_coef()
    assert coef.shape == (4, 8)
    for k, (_, test) in enumerate(selection.folds):
        point = selection.fold_points()[k]
        assert_array_equal(point.coef, coef[k])
        assert_allclose(logistic.X[test] @ point.coef + point.intercept, selection.out_of_fold[i, test], atol=1e-12)
        with pytest.raises(ValueError, match="cannot be extended"):
            selection.fold_paths[k].extend(1e9)  # it does not keep a copy of the data
    assert_allclose(selection.predict_out_of_fold(), 1 / (1 + np.exp(-selection.out_of_fold[i])))


def test_selections_without_folds():
    data = bregpath.datasets.make_linear(60, 5, 2, seed=0)
    chosen = bregpath.information_criterion(bregpath.trace_path(data.X, data.y, n_times=20), "bic", n=60)
    for ask in (chosen.fold_coef, chosen.predict_out_of_fold, lambda: chosen.train_scores):
        with pytest.raises(ValueError, match="cross_validate"):
            ask()
    with pytest.raises(ValueError, match="`measure` must be one that was measured"):
        chosen.by("auc")


def test_pickled_selection(linear):
    one = cross_validate(linear.X, linear.y, n_times=20, scoring=["deviance", "mae"])
    asked = one.by("mae")
    asked.train_scores  # noqa: B018  # what was asked for is kept
    again = pickle.loads(pickle.dumps(one))
    assert_array_equal(again.mean, one.mean)
    assert_array_equal(again.fold_coef(), one.fold_coef())
    assert_array_equal(again.out_of_fold, one.out_of_fold)
    assert_array_equal(again.predict_out_of_fold(), one.predict_out_of_fold())
    assert_array_equal(pickle.loads(pickle.dumps(asked)).train_scores, asked.train_scores)
    with pytest.raises(ValueError, match="unpickled"):
        again.train_scores  # noqa: B018


# --- several measures ----------------------------------------------------------------------------------------


def test_several_measures_at_once(logistic):
    names = ["deviance", "misclassification", "mse", "auc"]
    options = dict(loss="logistic", full=True, n_times=30)
    several = cross_validate(logistic.X, logistic.y, scoring=names, **options)
    assert list(several.scores) == names and several.measure == "deviance"
    for name in names:
        alone = cross_validate(logistic.X, logistic.y, scoring=name, **options)
        chosen = several.by(name)
        for part in ("mean", "se", "fold_scores"):
            assert_array_equal(getattr(chosen, part), getattr(alone, part))
        assert (chosen.t, chosen.t_min, chosen.t_1se) == (alone.t, alone.t_min, alone.t_1se)
        assert chosen.measure == name and chosen.larger_is_better == (name == "auc")
    assert "by(): misclassification, mse, auc" in repr(several)


def test_all_measures_have_turned():
    data = bregpath.datasets.make_logistic(120, 60, 4, seed=1)
    both = cross_validate(data.X, data.y, loss="logistic", scoring=["deviance", "mse"])
    each = [cross_validate(data.X, data.y, loss="logistic", scoring=name) for name in ("deviance", "mse")]
    assert len(both.times) == max(len(one.times) for one in each) > min(len(one.times) for one in each)


# --- what is told --------------------------------------------------------------------------------------------


def test_short_path_is_told_and_flat_end_is_not(linear):
    with pytest.warns(UserWarning, match="larger `t_ratio`"):
        cross_validate(linear.X, linear.y, t_ratio=1.5, n_times=10)
    t0 = bregpath.trace_path(linear.X, linear.y, n_times=2).t[0]
    with pytest.warns(UserWarning, match="later times in `t`"):
        cross_validate(linear.X, linear.y, t=[t0, 1.5 * t0])
    dense = np.random.default_rng(0).normal(size=(200, 2))
    y = dense @ [1.0, 1.0] + np.random.default_rng(1).normal(size=200)
    cross_validate(dense, y, t_ratio=1000, n_times=30)


def test_constant_score_is_told(logistic):
    def no_idea(y, prediction):
        return 0.25

    with pytest.warns(UserWarning, match="'no_idea' is 0.25 at every time"):
        selection = cross_validate(logistic.X, logistic.y, loss="logistic", scoring=no_idea, n_times=10)
    assert selection.t == selection.t_1se == selection.times[0]


def test_constant_deviance_has_a_remedy_of_its_own():
    data = bregpath.datasets.make_linear(60, 8, 3, seed=1)
    t0 = bregpath.trace_path(data.X, data.y).t[0]
    with pytest.warns(UserWarning, match="ask for later ones"):
        cross_validate(data.X, data.y, t=[0.2 * t0, 0.4 * t0])


def test_score_that_is_finite_at_some_times(logistic):
    def from_the_second_on(y, prediction):
        return np.mean((y - prediction) ** 2) if np.ptp(prediction) > 0 else np.nan

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        times = dict(t=[1.0, 20.0, 25.0, 30.0, 60.0], full=True)
        selection = cross_validate(logistic.X, logistic.y, loss="logistic", scoring=from_the_second_on, **times)
    assert np.isnan(selection.mean[0]) and selection.t > 1.0


def test_score_that_is_never_finite(logistic):
    def lost(y, prediction):
        return np.nan

    with pytest.raises(ValueError, match="`scoring`: 'lost' is not finite at any time"):
        cross_validate(logistic.X, logistic.y, loss="logistic", scoring=lost, n_times=10)


def test_nothing_to_choose_is_no_reason_to_warn():
    X = np.random.default_rng(0).normal(size=(40, 3))
    selection = cross_validate(X, np.ones(40), n_times=30)
    assert selection.path.result is bregpath.Result.AT_REST


# --- frames --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_with_rare_levels(library):
    frames = pytest.importorskip(library)
    rng = np.random.default_rng(5)
    region = np.array(["north", "south", "west"])[rng.integers(3, size=60)]
    region[0] = "rare"  # in one fold the level is not in the training rows
    bmi = rng.normal(size=60)
    y = bmi + 2.0 * (region == "south") + 0.3 * rng.normal(size=60)
    frame = frames.DataFrame({"bmi": bmi, "region": region})
    selection = cross_validate(frame, frames.Series(y), n_times=20)
    assert selection.path.feature_names[:2] == ["bmi", "region[north]"]
    assert np.isfinite(selection.mean).all() and selection.mean.min() < 0.3 * np.var(y)
    encoder = selection.path.encoder
    same = cross_validate(encoder.encode(frame), y, groups=encoder.groups, penalty="group", n_times=20)
    assert_allclose(same.mean, selection.mean, rtol=1e-8)


def test_the_chosen_model_is_at_hand(logistic):
    pytest.importorskip("pandas")
    selection = cross_validate(logistic.X, logistic.y, loss="logistic").one_se()
    point = selection.path.at(selection.t_1se)
    assert selection.model == point and selection.intercept == point.intercept
    assert_array_equal(selection.coef, point.coef)
    assert_array_equal(selection.predict(logistic.X), selection.path.predict(logistic.X, selection.t_1se))
    frame = selection.to_frame()
    assert len(frame) == np.count_nonzero(point.coef)
    share = (selection.fold_coef() != 0).mean(axis=0)
    assert_allclose(frame["share_of_folds"], [share[int(name[1:])] for name in frame.index])
    assert repr(point) in repr(selection) and repr(point) not in selection.summary(model=False)
    fitted = bregpath.BregmanClassifier(stop="cv-1se").fit(logistic.X, logistic.y)
    assert repr(point) in fitted.summary() and "one-standard-error rule" in fitted.summary()
