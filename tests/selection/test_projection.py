"""Pruned blends: fits to what the blend predicts, scores of rows held out, how many variables are kept."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bregpath
from bregpath.losses import as_loss
from bregpath.losses.tilted import TiltedLoss
from tests.elimination import damped_least_squares, eliminate
from tests.helpers import ALL_LOSSES, GROUPS, P, make_data


def blended(loss, n=120, p=15, s=5, seed=0, **options):
    X, y = make_data(loss, n=n, p=p, s=s, seed=seed)
    return X, y, bregpath.cross_validate(X, y, loss=loss, kappa="cv", n_times=30, **options).blend()


@pytest.mark.parametrize("loss", ALL_LOSSES)
def test_a_tilted_loss_is_least_at_what_it_aims_at(loss, rng):
    _, y = make_data(loss, n=50)
    loss_, w = as_loss(loss), np.full(50, 1 / 50)
    y = loss_.encode(y, w)
    shape = (50,) if loss_.n_outputs == 1 else (50, loss_.n_outputs)
    wanted, eta, direction = rng.normal(size=(3, *shape))
    tilted = TiltedLoss(loss_, loss_.gradient(wanted, y, w))
    assert_allclose(tilted.gradient(wanted, y, w), 0.0, atol=1e-15)
    assert tilted.value(wanted, y, w) <= tilted.value(eta, y, w)
    eps = 1e-6
    change = (tilted.value(eta + eps * direction, y, w) - tilted.value(eta - eps * direction, y, w)) / (2 * eps)
    assert_allclose(np.sum(tilted.gradient(eta, y, w) * direction), change, rtol=1e-6, atol=1e-8)
    assert_array_equal(tilted.curvature(eta, y, w, direction), loss_.curvature(eta, y, w, direction))


# --- squared loss, by hand -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_gaussian_is_elimination_with_the_blend_in_place_of_the_response(seed):
    X, _, blend = blended("gaussian", seed=seed)
    pruned = blend.prune()
    assert pruned.sizes[0] == len(blend.support) and pruned.sizes[-1] == 0
    wanted = blend.predict(X)
    for size, columns in zip(
        pruned.sizes, eliminate(X, wanted, blend.support, pruned.ridge, pruned.sizes), strict=True
    ):
        model = pruned.at(size)
        assert_array_equal(np.flatnonzero(model.coef), columns)
        intercept, coef = damped_least_squares(X, wanted, columns, pruned.ridge)
        assert_allclose(np.r_[model.intercept, model.coef[columns]], np.r_[intercept, coef], rtol=1e-7)


def test_scores_are_of_rows_that_neither_blend_nor_elimination_has_seen():
    X, y, blend = blended("gaussian")
    pruned = blend.prune()
    folds = zip(blend.selection.folds, blend.fold_models(), pruned.fold_scores, strict=True)
    for (train, test), (intercept, coef), scores in folds:
        wanted = X[train] @ coef[:, 0] + intercept[0]
        left = eliminate(X[train], wanted, np.flatnonzero(coef), pruned.ridge, pruned.sizes)
        for columns, score in zip(left, scores, strict=True):
            a, b = damped_least_squares(X[train], wanted, columns, pruned.ridge)
            assert_allclose(score, np.mean((y[test] - a - X[test][:, columns] @ b) ** 2), rtol=1e-7)


# --- every loss ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ALL_LOSSES)
def test_predictions_match_those_of_the_blend_on_the_columns_that_are_left(loss):
    """Residuals of the blend's predictions are orthogonal to the columns, up to the ridge."""
    X, y, blend = blended(loss, n=200)
    pruned = blend.prune()
    unit, loss_, w = blend.selection.path.units.y_unit, as_loss(loss), np.full(200, 1 / 200)
    y = loss_.encode(y, w) / unit if loss_.has_units else loss_.encode(y, w)
    _, intercept, coef = pruned.model
    slopes = [
        loss_.gradient((X @ b + a) / unit, y, w).reshape(200, -1)
        for a, b in ((intercept, coef), (blend.intercept, blend.coef))
    ]
    inside = ((X - X.mean(axis=0)) / X.std(axis=0))[:, pruned.support]
    beta = coef.reshape(15, -1)[pruned.support] * X.std(axis=0)[pruned.support, None] / unit
    assert len(pruned.support)
    assert_allclose(inside.T @ (slopes[0] - slopes[1]) + pruned.ridge * beta, 0, atol=1e-5)


@pytest.mark.parametrize("loss", ALL_LOSSES)
def test_strong_variables_are_kept_and_noise_goes(loss):
    hits, before, after = [], [], []
    for seed in range(6):
        _, _, blend = blended(loss, n=400, p=20, s=3, seed=seed)
        support = set(blend.prune(1.5).support.tolist())
        assert support <= set(blend.support.tolist())
        hits.append(len(support & {0, 1, 2}))
        before.append(len(set(blend.support.tolist()) - {0, 1, 2}))
        after.append(len(support - {0, 1, 2}))
    assert np.mean(hits) > 2.8
    assert np.sum(after) <= 0.3 * np.sum(before)


@pytest.mark.parametrize("loss", ["gaussian", "logistic", "multinomial"])
def test_groups_go_as_a_whole_and_free_columns_stay(loss):
    X, y = make_data(loss, n=150)
    blend = bregpath.cross_validate(X, y, loss=loss, kappa="cv", penalty="group", groups=GROUPS).blend()
    pruned = blend.prune()
    for size in pruned.sizes:
        columns = np.flatnonzero(pruned.at(size).coef.reshape(P, -1).any(axis=1))
        assert_array_equal(columns, np.flatnonzero(np.isin(GROUPS, GROUPS[columns])))
        assert len(np.unique(GROUPS[columns])) == size
    factor = np.where(np.arange(P) == 6, 0.0, 1.0)
    free = bregpath.cross_validate(X, y, loss=loss, kappa="cv", penalty_factor=factor).blend().prune(10.0)
    assert 6 in free.support


def test_offsets_and_weights_are_those_of_the_blend():
    X, y = make_data("gaussian", n=100)
    offset, weight = np.linspace(0, 3, 100), np.random.default_rng(0).integers(0, 3, 100)
    options = dict(kappa="cv", sample_weight=weight)
    one = bregpath.cross_validate(X, y, **options).blend().prune()
    two = bregpath.cross_validate(X, y + offset, offset=offset, **options).blend().prune()
    assert_array_equal(one.sizes, two.sizes)
    assert_allclose(one.coef, two.coef, atol=1e-6)
    assert_allclose(one.predict(X) + offset, two.predict(X, offset), atol=1e-6)


def test_margins_pickles_and_refusals():
    X, y, blend = blended("logistic")
    assert blend.prune(0).size >= blend.prune().size >= blend.prune(5.0).size
    assert "Pruned from" in repr(blend.prune())
    assert_array_equal(pickle.loads(pickle.dumps(blend.prune())).predict(X), blend.prune().predict(X))
    with pytest.raises(ValueError, match="`margin`"):
        blend.prune(-1.0)
    with pytest.raises(ValueError, match="unpickled"):
        pickle.loads(pickle.dumps(blend)).prune()
    with pytest.raises(ValueError, match="limits"):
        bregpath.cross_validate(X, y, loss="logistic", kappa="cv", lower=0).blend().prune()
