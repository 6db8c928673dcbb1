"""Pruned models: what is dropped, what is fitted again, how many variables are kept, and what cannot be pruned."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bregpath
from bregpath.losses import as_loss
from bregpath.selection.curves import choose
from bregpath.selection.pruning import DROPPED, MOST, RIDGES
from tests.elimination import damped_least_squares, eliminate, objective
from tests.helpers import ALL_LOSSES, GROUPS, P, folds_of, make_data


def select(loss, n=120, p=P, **options):
    X, y = make_data(loss, n=n, p=p, **{key: options.pop(key) for key in ("s", "seed") if key in options})
    return X, y, bregpath.cross_validate(X, y, loss=loss, **{"n_times": 40, "full": True, **options})


# --- squared loss, by hand -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_gaussian_is_backward_elimination_with_exact_refits(seed):
    X, y, selection = select("gaussian", p=15, s=5, seed=seed)
    pruned = selection.prune()
    support = selection.path.support(selection.t)
    assert pruned.sizes[0] == len(support) and pruned.sizes[-1] == 0
    for size, columns in zip(pruned.sizes, eliminate(X, y, support, pruned.ridge, pruned.sizes), strict=True):
        model = pruned.at(size)
        assert_array_equal(np.flatnonzero(model.coef), columns)
        intercept, coef = damped_least_squares(X, y, columns, pruned.ridge)
        assert_allclose(np.r_[model.intercept, model.coef[columns]], np.r_[intercept, coef], rtol=1e-7)


def test_scores_are_those_of_models_of_the_folds():
    X, y, selection = select("gaussian", p=15, s=5)
    pruned = selection.prune()
    folds = list(zip(selection._rows.folds, selection.fold_coef(), strict=True))

    def score(train, test, columns, ridge):
        intercept, coef = damped_least_squares(X[train], y[train], columns, ridge)
        return np.mean((y[test] - intercept - X[test][:, columns] @ coef) ** 2)

    def whole(fold, coef, ridge):
        # A model with more variables than that of all rows is brought down to as many.
        first = eliminate(X[fold.train], y[fold.train], np.flatnonzero(coef), ridge, pruned.sizes[:1])[0]
        return score(fold.train, fold.test, first, ridge)

    by_ridge = [[whole(fold, coef, ridge) for fold, coef in folds] for ridge in RIDGES]
    assert pruned.ridge == RIDGES[int(np.mean(by_ridge, axis=1).argmin())]
    for (fold, coef), scores in zip(folds, pruned.fold_scores, strict=True):
        left = eliminate(X[fold.train], y[fold.train], np.flatnonzero(coef), pruned.ridge, pruned.sizes)
        assert_allclose(scores, [score(fold.train, fold.test, columns, pruned.ridge) for columns in left], rtol=1e-7)
    assert_allclose(pruned.mean, pruned.fold_scores.mean(axis=0))
    assert_allclose(pruned.se, pruned.fold_scores.std(axis=0, ddof=1) / np.sqrt(5))


@pytest.mark.parametrize("margin", [0, 0.75, 3.0])
def test_the_smallest_size_within_the_margin_is_kept(margin):
    _, _, selection = select("gaussian", p=15, s=5)
    pruned = selection.prune(margin)
    best = pruned.fold_scores[:, [pruned.mean.argmin()]]
    error = (pruned.fold_scores - best).std(axis=0, ddof=1) / np.sqrt(5)
    assert pruned.size == pruned.sizes[pruned.mean <= pruned.mean.min() + margin * error].min()
    assert len(pruned.support) == pruned.size and selection.prune().size >= selection.prune(3.0).size


def test_choose_counts_standard_errors():
    sizes, mean, se = np.array([3, 2, 1]), np.array([1.0, 1.4, 1.8]), np.full(3, 0.5)
    kept = [int(sizes[choose(sizes, mean, se, margin=margin)[1]]) for margin in (0.0, 0.75, 1.0, 2.0)]
    assert kept == [3, 3, 2, 1]


# --- every loss ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ALL_LOSSES)
def test_the_gradient_of_what_is_left_vanishes(loss):
    X, y, selection = select(loss, n=200)
    pruned = selection.prune(0)
    path, loss_, (_, intercept, coef) = selection.path, as_loss(loss), pruned.model
    weights, unit = np.full(200, 1 / 200), selection.path.units.y_unit
    coded = loss_.encode(y, weights)
    eta = (X @ coef + intercept) / unit
    residual = loss_.gradient(eta, coded / unit if loss_.has_units else coded, weights).reshape(200, -1)
    inside = ((X - X.mean(axis=0)) / X.std(axis=0))[:, pruned.support]
    beta = coef.reshape(P, -1)[pruned.support] * X.std(axis=0)[pruned.support, None] / unit
    assert len(pruned.support)
    assert_allclose(inside.T @ residual + pruned.ridge * beta, 0, atol=1e-5)
    assert_allclose(residual.sum(axis=0), 0, atol=1e-5)
    assert_array_equal(pruned.predict(X), path.loss.predict(X @ coef + intercept))
    assert pruned.coef is not None and np.shape(pruned.intercept) == np.shape(path.at(path.t[0]).intercept)


@pytest.mark.parametrize("loss", ALL_LOSSES)
def test_strong_variables_are_kept_and_noise_goes(loss):
    """Over a range of data: nearly all of the truth, and fewer false positives than the model on the path."""
    hits, before, after = [], [], []
    for seed in range(8):
        _, _, selection = select(loss, n=400, p=20, seed=seed)
        support, pruned = set(selection.path.support(selection.t)), set(selection.prune().support.tolist())
        assert pruned <= support
        hits.append(len(pruned & {0, 1, 2}))
        before.append(len(support - {0, 1, 2}))
        after.append(len(pruned - {0, 1, 2}))
    assert np.mean(hits) > 2.8
    assert np.sum(after) <= 0.6 * np.sum(before)


def test_multinomial_sums_to_zero_over_classes():
    _, _, selection = select("multinomial", n=200)
    pruned = selection.prune()
    assert pruned.coef.shape == (P, 3)
    assert_allclose(pruned.coef.sum(axis=1), 0, atol=1e-10)
    assert "variable" in repr(pruned) and "a" in repr(pruned).splitlines()[1]


# --- groups, free columns, weights -----------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["gaussian", "logistic", "multinomial"])
def test_groups_go_as_a_whole(loss):
    X, y, selection = select(loss, n=200, penalty="group", groups=GROUPS)
    pruned = selection.prune()
    for size in pruned.sizes:
        columns = np.flatnonzero(pruned.at(size).coef.reshape(P, -1).any(axis=1))
        groups = np.unique(GROUPS[columns])
        assert len(groups) == size
        assert_array_equal(columns, np.flatnonzero(np.isin(GROUPS, groups)))


def test_a_group_of_which_the_loss_rises_least_goes_first():
    X, y, selection = select("gaussian", n=200, penalty="group", groups=GROUPS, penalty_factor=np.ones(P))
    pruned = selection.prune()
    groups = list(np.unique(GROUPS[np.flatnonzero(selection.coef)]))

    def without(one):  # the rise of the objective for each column, as groups differ in size
        whole = objective(X, y, np.flatnonzero(np.isin(GROUPS, groups)), pruned.ridge)
        rest = objective(X, y, np.flatnonzero(np.isin(GROUPS, [g for g in groups if g != one])), pruned.ridge)
        return (rest - whole) / np.count_nonzero(one == GROUPS)

    for size in pruned.sizes[1:]:
        groups.remove(min(groups, key=without))
        assert_array_equal(np.unique(GROUPS[np.flatnonzero(pruned.at(size).coef)]), groups)


@pytest.mark.parametrize("loss", ["gaussian", "logistic"])
def test_columns_that_are_never_penalised_stay(loss):
    factor = np.ones(P)
    factor[[6, 9]] = 0.0
    X, y, selection = select(loss, penalty_factor=factor)
    pruned = selection.prune(10.0)
    assert {6, 9} <= set(pruned.support.tolist()) and pruned.sizes[-1] == 2
    assert_array_equal(np.flatnonzero(pruned.at(2).coef), [6, 9])
    if loss == "gaussian":  # and are not damped
        design = np.column_stack([np.ones(len(y)), X[:, [6, 9]]])
        assert_allclose(pruned.at(2).coef[[6, 9]], np.linalg.lstsq(design, y)[0][1:], rtol=1e-7)


@pytest.mark.parametrize("loss", ["gaussian", "logistic", "poisson"])
def test_a_weight_counts_copies_of_its_row(loss):
    X, y = make_data(loss, n=100)
    weight = np.random.default_rng(0).integers(1, 4, 100)
    rows = np.repeat(np.arange(100), weight)
    options = dict(loss=loss, full=True)
    one = bregpath.cross_validate(X, y, sample_weight=weight, cv=folds_of(np.arange(100)), **options).prune()
    two = bregpath.cross_validate(X[rows], y[rows], cv=folds_of(rows), **options).prune()
    assert one.ridge == two.ridge and one.size == two.size
    assert_allclose(one.fold_scores, two.fold_scores, rtol=1e-5)
    assert_allclose(one.coef, two.coef, rtol=1e-5, atol=1e-8)


def test_no_intercept_and_sparse_and_scales():
    from scipy.sparse import csc_array

    X, y = make_data("gaussian", n=100)
    bare = bregpath.cross_validate(X, y, fit_intercept=False, standardize=False).prune()
    assert bare.intercept == 0
    gram = X[:, bare.support].T @ X[:, bare.support] / 100
    damped = gram + bare.ridge * np.diag(X[:, bare.support].var(axis=0))
    assert_allclose(bare.coef[bare.support], np.linalg.solve(damped, X[:, bare.support].T @ y / 100), rtol=1e-7)
    dense, sparse = (bregpath.cross_validate(A, y, full=True).prune() for A in (X, csc_array(X)))
    assert_allclose(sparse.coef, dense.coef, rtol=1e-6, atol=1e-10)
    scale = np.geomspace(1e-3, 1e3, P)
    scaled = bregpath.cross_validate(X * scale, 100 * y, full=True).prune()
    assert scaled.ridge == dense.ridge
    assert_allclose(scaled.coef * scale / 100, dense.coef, rtol=1e-6, atol=1e-10)


def test_large_models_begin_with_their_largest_effects(rng):
    X = rng.normal(size=(300, 150))
    y = X[:, :100] @ np.linspace(0.5, 1.5, 100) + rng.normal(size=300)
    selection = bregpath.cross_validate(X, y)
    assert np.count_nonzero(selection.coef) > MOST
    pruned = selection.prune()
    largest = np.argsort(-np.abs(selection.coef) * X.std(axis=0))[:MOST]
    assert_array_equal(np.flatnonzero(pruned.at(MOST).coef), np.sort(largest))
    steps = -np.diff(pruned.sizes)
    assert_array_equal(steps, np.maximum(1, (DROPPED * pruned.sizes[:-1]).astype(int)))


def test_nothing_is_left_of_nothing(rng):
    X, y = rng.normal(size=(60, 5)), rng.normal(size=60)
    selection = bregpath.cross_validate(X, y, t=[1e-3])
    assert not selection.coef.any()
    pruned = selection.prune()
    assert pruned.size == 0 and pruned.sizes.tolist() == [0] and pruned.intercept == pytest.approx(y.mean())
    assert "from 0 to 0 variables" in repr(pruned)


def test_separable_classes_are_damped(rng):
    X = rng.normal(size=(80, 6))
    y = np.where(X[:, 0] > 0, "yes", "no")
    pruned = bregpath.cross_validate(X, y, loss="logistic").prune()
    assert pruned.support.tolist() == [0] and np.isfinite(pruned.coef).all()


# --- measures and kappas ---------------------------------------------------------------------------------


def test_the_measure_of_the_selection_counts():
    X, y, both = select("logistic", n=200, scoring=["deviance", "auc"])
    by_auc = both.by("auc").prune()
    assert by_auc.mean[0] > by_auc.mean[-1] == pytest.approx(0.5)
    best = by_auc.fold_scores[:, [by_auc.mean.argmax()]]
    error = (by_auc.fold_scores - best).std(axis=0, ddof=1) / np.sqrt(5)
    assert by_auc.size == by_auc.sizes[by_auc.mean >= by_auc.mean.max() - 0.75 * error].min()
    assert both.prune().mean[-1] > both.prune().mean[0]


def test_the_choice_of_several_kappas_can_be_pruned():
    X, y, selection = select("logistic", n=150, p=30, kappa="cv")
    best, sparse = selection.prune(), selection.sparse().prune()
    assert best.sizes[0] == np.count_nonzero(selection.coef)
    assert set(sparse.support) <= set(np.flatnonzero(selection.sparse().coef))
    assert "mean of the path" not in repr(best.model)


# --- estimators ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kappa", [10.0, "cv"])
def test_estimators_hold_the_pruned_model(kappa):
    X, y = make_data("logistic", n=150, p=30)
    model = bregpath.BregmanClassifier(kappa=kappa, stop="cv-pruned").fit(X, y)
    selection = bregpath.cross_validate(X, y, loss="logistic", kappa=kappa)
    chosen = selection.sparse() if kappa == "cv" else selection
    pruned = chosen.prune()
    assert_array_equal(model.coef_.ravel(), pruned.coef)
    assert model.intercept_ == pruned.intercept and model.t_ == chosen.t and model.kappa_ == chosen.kappa
    assert_allclose(model.predict_proba(X)[:, 1], pruned.predict(X), rtol=1e-10)
    assert "Pruned from" in model.summary()
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.summary() == model.summary() and again.pruned_.size == model.pruned_.size
    assert bregpath.BregmanClassifier(kappa=kappa).fit(X, y).pruned_ is None


def test_estimators_without_folds_prune_nothing():
    X, y = make_data("gaussian", n=3, p=4)
    with pytest.warns(UserWarning, match="bic|BIC"):
        model = bregpath.BregmanRegressor(stop="cv-pruned").fit(X, y)
    assert model.pruned_ is None and model.selection_ is not None


# --- words -----------------------------------------------------------------------------------------------


def test_errors_name_the_argument():
    X, y, selection = select("gaussian", n=60)
    for margin, error in ((-1.0, ValueError), (np.nan, ValueError), (None, TypeError), ("1", TypeError)):
        with pytest.raises(error, match="`margin` must be a"):
            selection.prune(margin)
    pruned = selection.prune()
    with pytest.raises(ValueError, match=r"`size` must be one of \[.*0\], found 99"):
        pruned.at(99)
    with pytest.raises(ValueError, match="`X` has 3 columns"):
        pruned.predict(X[:, :3])
    with pytest.raises(ValueError, match=r"no rows to prune by; call cross_validate\(\)"):
        pickle.loads(pickle.dumps(selection)).prune()
    with pytest.raises(ValueError, match="without folds"):
        bregpath.information_criterion(selection.path, "bic", n=60).prune()
    with pytest.raises(ValueError, match="Models with limits"):
        bregpath.cross_validate(X, y, lower=0.0).prune()
    with pytest.raises(TypeError, match="no `structure`"):
        bregpath.cross_validate(X, y, structure="fused").prune()
    spins = np.where(X > np.median(X, axis=0), 1, -1)
    graph = bregpath.IsingGraph(stop="cv").fit(spins)
    with pytest.raises(TypeError, match="no graphs"):
        graph.selection_.prune()
