from __future__ import annotations

import json
from pathlib import Path as File

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import bregpath
from bregpath.losses import as_loss
from bregpath.selection import cross_validation
from bregpath.selection._scores import SCORES
from bregpath.selection.cross_validation import aggregate, choose, cross_validate
from bregpath.selection.folds import make_folds

GLMNET = json.loads((File(__file__).parents[1] / "golden" / "glmnet_cv_rule.json").read_text())
SIMULATORS = {
    "gaussian": bregpath.datasets.make_linear,
    "huber": bregpath.datasets.make_linear,
    "logistic": bregpath.datasets.make_logistic,
    "poisson": bregpath.datasets.make_poisson,
    "multinomial": bregpath.datasets.make_multinomial,
}


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


def test_choose_at_the_edges():
    times = np.array([1.0, 2.0, 3.0])
    assert choose(times, np.array([5.0, 5.0, 5.0]), np.zeros(3)) == (0, 0)
    assert choose(times, np.array([np.inf, 4.0, np.nan]), np.full(3, np.nan)) == (1, 1)
    assert choose(times, np.full(3, np.inf), np.zeros(3)) == (0, 0)
    # Times in any order: the smallest time counts, not the smallest index.
    assert choose(times[::-1], np.array([1.0, 1.1, 3.0]), np.full(3, 0.2)) == (0, 1)


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


def test_threads_sparse_and_repetition_agree(logistic):
    options = dict(loss="logistic", n_times=15)
    one = cross_validate(logistic.X, logistic.y, **options)
    for other in (
        cross_validate(logistic.X, logistic.y, n_jobs=2, **options),
        cross_validate(logistic.X, logistic.y, n_jobs=-1, **options),
        cross_validate(sp.csc_array(logistic.X), logistic.y, **options),
    ):
        assert_allclose(other.mean, one.mean, rtol=1e-2)
    assert cross_validate(logistic.X, logistic.y, seed=1, **options).mean[5] != one.mean[5]


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
    assert_allclose(selection.mean, plain.mean, rtol=1e-2)


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


# --- folds ---------------------------------------------------------------------------------------------------


def test_splitters_iterables_masks_and_groups(linear):
    from sklearn.model_selection import KFold, RepeatedKFold

    folds = list(KFold(4).split(linear.X))
    by_splitter = cross_validate(linear.X, linear.y, cv=KFold(4), n_times=10)
    by_list = cross_validate(linear.X, linear.y, cv=iter(folds), n_times=10)
    masks = [(~np.isin(np.arange(80), te), np.isin(np.arange(80), te)) for _, te in folds]
    assert_array_equal(by_splitter.mean, by_list.mean)
    assert_array_equal(by_splitter.mean, cross_validate(linear.X, linear.y, cv=masks, n_times=10).mean)
    twice = cross_validate(linear.X, linear.y, cv=RepeatedKFold(n_splits=2, n_repeats=2, random_state=0), n_times=10)
    assert np.isfinite(twice.out_of_fold).all() and len(twice.fold_scores) == 4
    groups = np.repeat(np.arange(8), 10)
    for _, test in make_folds(4, None, linear.y, np.ones(80), groups):
        assert all(np.isin(test, np.flatnonzero(groups == g)).sum() in (0, 10) for g in range(8))


def test_folds_are_stratified(logistic):
    y = np.r_[np.zeros(100), np.ones(20)]
    for _, test in make_folds(5, None, y, np.ones(120), stratify=True):
        assert y[test].sum() == 4


def test_single_split_has_no_standard_error(linear):
    selection = cross_validate(linear.X, linear.y, cv=[(np.arange(60), np.arange(60, 80))], n_times=20)
    assert np.isnan(selection.se).all() and selection.t_1se == selection.t_min
    assert "1-fold" in repr(selection)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(cv=1), "`cv`=1 is not possible with 80 rows"),
        (dict(cv=81), "`cv`=81 is not possible with 80 rows"),
        (dict(cv=[]), "`cv` gives no folds"),
        (dict(cv=[([0, 1], [99])]), "`cv`: fold 0 is not a pair"),
        (dict(cv=[([0, 1], [])]), "`cv`: fold 0 has no test rows"),
        (dict(cv=5, cv_groups=[1, 2]), "`cv_groups` must have one label"),
        (dict(scoring="auc"), '`scoring`="auc" needs loss="logistic"'),
        (dict(scoring="misclassification"), '`scoring`="misclassification" needs a classifier'),
        (dict(scoring="r2"), "`scoring` must be one of"),
        (dict(n_jobs=0), "`n_jobs` must be"),
    ],
)
def test_errors_name_the_argument(linear, options, message):
    with pytest.raises(ValueError, match=message):
        cross_validate(linear.X, linear.y, n_times=5, **options)


def test_more_errors(linear, logistic):
    with pytest.raises(TypeError, match="`cv` must be a number of folds"):
        cross_validate(linear.X, linear.y, n_times=5, cv="five")
    with pytest.raises(TypeError, match="kapa"):
        cross_validate(linear.X, linear.y, kapa=5)
    y = np.array(["a"] * 50 + ["b"] * 69 + ["c"])
    with pytest.raises(ValueError, match="needs two rows of each class, found one of class 'c'"):
        cross_validate(logistic.X, y, loss="multinomial", n_times=5)
    with pytest.raises(ValueError, match="fold 0 have no row of class 'c'"):
        cross_validate(logistic.X, y, loss="multinomial", n_times=5, cv=[(np.arange(110), np.arange(110, 120))])
    with pytest.raises(ValueError, match="held-out rows of both classes"):
        cross_validate(logistic.X, logistic.y, loss="logistic", scoring="auc", n_times=5, cv=[(np.arange(100), [118])])


def test_short_path_is_told_and_flat_end_is_not(linear):
    with pytest.warns(UserWarning, match="larger `t_ratio`"):
        cross_validate(linear.X, linear.y, t_ratio=1.5, n_times=10)
    t0 = bregpath.trace_path(linear.X, linear.y, n_times=2).t[0]
    with pytest.warns(UserWarning, match="later times in `t`"):
        cross_validate(linear.X, linear.y, t=[t0, 1.5 * t0])
    dense = np.random.default_rng(0).normal(size=(200, 2))
    y = dense @ [1.0, 1.0] + np.random.default_rng(1).normal(size=200)
    cross_validate(dense, y, t_ratio=1000, n_times=30)


def test_interrupt_goes_on_to_the_caller(linear, monkeypatch):
    import dataclasses

    def interrupted(*args, **kwargs):
        return dataclasses.replace(bregpath.trace_path(*args, **kwargs), result=bregpath.Result.INTERRUPTED)

    monkeypatch.setattr(cross_validation, "trace_path", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cross_validate(linear.X, linear.y, n_times=5)


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
    assert_allclose(same.mean, selection.mean, rtol=1e-2)
