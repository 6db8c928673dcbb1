"""Blended models: what is averaged, with which weights, what becomes of limits, offsets and pickles, what cannot be."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import bregpath
from bregpath.losses import as_loss
from bregpath.selection.blending import NEGLIGIBLE
from tests.helpers import ALL_LOSSES, GROUPS, P, folds_of, make_data


def select(loss, n=120, **options):
    X, y = make_data(loss, n=n, seed=options.pop("seed", 0))
    return X, y, bregpath.cross_validate(X, y, loss=loss, **{"kappa": "cv", "n_times": 30, **options})


def model_of(part, X, y, loss, **options):
    """A part of a blend, traced anew on some rows; a path that ends before stays where it ended."""
    t = max(part.t, 1e-12)
    path = bregpath.trace_path(
        X, y, loss=loss, kappa=part.kappa, average=part.average, t=[t], saturation=0.999 if part.t else None, **options
    )
    return path.at(min(t, path.t[-1]))


def coded(loss, y, unit):
    loss, w = as_loss(loss), np.full(len(y), 1 / len(y))
    y = loss.encode(y, w)
    return loss, y / unit if loss.has_units else y, w


# --- what it is ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ALL_LOSSES)
def test_is_the_weighted_mean_of_paths_on_all_rows(loss):
    X, y, selection = select(loss)
    blend = selection.blend()
    weights = np.array([part.weight for part in blend.parts])
    assert_allclose(weights.sum(), 1.0)
    assert ((weights == 0) | (weights > NEGLIGIBLE)).all()
    counted = [part for part in blend.parts if part.weight]
    models = [model_of(part, X, y, loss) for part in counted]
    scale = np.abs(blend.coef).max()
    coef = sum(part.weight * model.coef for part, model in zip(counted, models, strict=True))
    intercept = sum(part.weight * np.asarray(model.intercept) for part, model in zip(counted, models, strict=True))
    assert_allclose(blend.coef, coef, atol=1e-6 * scale)
    assert_allclose(blend.intercept, intercept, atol=1e-6 * scale)
    assert [part.variables for part in counted] == [np.count_nonzero(m.coef.reshape(P, -1).any(1)) for m in models]
    assert_array_equal(blend.predict(X), as_loss(loss).predict(X @ blend.coef + blend.intercept))
    assert_array_equal(blend.support, np.flatnonzero(blend.coef.reshape(P, -1).any(axis=1)))


@pytest.mark.parametrize("loss", ALL_LOSSES)
@pytest.mark.parametrize("seed", range(3))
def test_weights_have_the_least_deviance_of_rows_held_out(loss, seed):
    """By the conditions of the optimum: no part has a steeper derivative than those that count."""
    X, y, selection = select(loss, seed=seed)
    blend, unit = selection.blend(), selection.path.units.y_unit
    eta = np.zeros((len(blend.parts), *np.shape(X @ selection.coef)))
    for k, part in enumerate(blend.parts):
        for train, test in selection.folds:
            model = model_of(part, X[train], y[train], loss)
            eta[k, test] = (X[test] @ model.coef + model.intercept) / unit
    loss_, y_, w = coded(loss, y, unit)
    weights = np.array([part.weight for part in blend.parts])
    mixed = np.tensordot(weights, eta, 1)
    slopes = eta.reshape(len(eta), -1) @ loss_.gradient(mixed, y_, w).ravel()
    alone = [loss_.value(one, y_, w) for one in eta]
    assert loss_.value(mixed, y_, w) <= min(alone) + 1e-9
    # The gap bounds what is left to gain: weights that are negligible are set to zero.
    assert weights @ slopes - slopes.min() <= 2 * NEGLIGIBLE * np.ptp(slopes) + 1e-4 * np.ptp(alone)


@pytest.mark.parametrize("loss", ["gaussian", "logistic", "multinomial"])
def test_scores_are_those_of_the_mixture_and_of_its_parts(loss):
    X, y, selection = select(loss, full=True, cv=4)
    blend = selection.blend()
    loss_, _, _ = coded(loss, y, 1.0)
    for k, (train, test) in enumerate(selection.folds):
        models = [model_of(part, X[train], y[train], loss) for part in blend.parts]
        eta = sum(part.weight * (X[test] @ m.coef + m.intercept) for part, m in zip(blend.parts, models, strict=True))
        held = loss_.encode(y, np.full(len(y), 1 / len(y)))[test]
        assert_allclose(blend.fold_scores[k], loss_.deviance(eta, held, np.full(len(test), 1 / len(test))), rtol=1e-5)
    assert_allclose(blend.mean, blend.fold_scores.mean())
    assert_allclose(blend.se, blend.fold_scores.std(ddof=1) / 2)
    means = {kappa: one["deviance"] for kappa, one in selection.mean_surface.items()}
    for part in blend.parts:
        if part.average == "linear":
            curve = means[part.kappa]
            assert_allclose([part.t, part.score], [curve.t_min, curve.mean[curve.best]], rtol=1e-9)


@pytest.mark.parametrize("options", [{}, {"average": "linear"}, {"flow": "giss"}, {"average": None, "kappa": [1, 10]}])
def test_one_kappa_or_others_are_blended_too(options):
    X, y, selection = select("gaussian", **{"kappa": 10.0, **options})
    kappas = options.get("kappa", [np.inf if "flow" in options else 10.0])
    assert {part.kappa for part in selection.blend().parts} == {*kappas}
    assert {part.average for part in selection.blend().parts} == {None, "uniform", "linear"}
    assert selection.blend().mean <= selection.mean.min() * 1.05


@pytest.mark.parametrize("make, most", [(dict(n=80, p=200, s=60, r=0.8), 0.99), (dict(n=120, p=60, s=5, r=0.2), 1.02)])
def test_predicts_better_where_many_matter_and_as_well_where_few_do(make, most):
    """On fresh rows of simulations: squared errors over those of the best single model."""
    ratios = []
    for seed in range(20):
        data = bregpath.datasets.make_linear(**make, seed=seed, n_test=1000)
        selection = bregpath.cross_validate(data.X, data.y, kappa="cv", seed=seed)
        one, both = (
            np.mean((data.y_test - f(data.X_test)) ** 2) for f in (selection.predict, selection.blend().predict)
        )
        ratios.append(both / one)
    assert np.exp(np.mean(np.log(ratios))) < most


# --- data of all kinds -----------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["gaussian", "logistic", "poisson"])
def test_a_weight_counts_copies_of_its_row(loss):
    X, y = make_data(loss, n=100)
    weight = np.random.default_rng(0).integers(1, 4, 100)
    rows = np.repeat(np.arange(100), weight)
    options = dict(loss=loss, kappa=[1, 10], full=True)
    one = bregpath.cross_validate(X, y, sample_weight=weight, cv=folds_of(np.arange(100)), **options).blend()
    two = bregpath.cross_validate(X[rows], y[rows], cv=folds_of(rows), **options).blend()
    assert_allclose(one.coef, two.coef, atol=1e-3 * np.abs(one.coef).max())


@pytest.mark.parametrize("loss", ["gaussian", "logistic"])
def test_sparse_columns_and_groups_and_limits(loss):
    X, y = make_data(loss, n=120)
    X[np.abs(X) < 0.4] = 0.0
    dense, sparse_ = (
        bregpath.cross_validate(one, y, loss=loss, kappa="cv").blend() for one in (X, sparse.csc_array(X))
    )
    assert_allclose(dense.coef, sparse_.coef, atol=1e-4 * np.abs(dense.coef).max())
    grouped = bregpath.cross_validate(X, y, loss=loss, kappa="cv", penalty="group", groups=GROUPS).blend()
    kept = np.unique(GROUPS[grouped.support])
    assert_array_equal(grouped.support, np.flatnonzero(np.isin(GROUPS, kept)))
    limited = bregpath.cross_validate(X, y, loss=loss, kappa="cv", lower=0, upper=0.3).blend()
    assert (limited.coef >= 0).all() and (limited.coef <= 0.3 + 1e-12).all() and limited.coef.any()


def test_offsets_and_free_columns_are_in_the_null_model():
    X, y, _ = select("gaussian")
    factor, offset = np.ones(P), np.linspace(0, 5, len(y))
    factor[6] = 0.0
    selection = bregpath.cross_validate(X, y + offset, offset=offset, penalty_factor=factor, kappa="cv")
    blend, null = selection.blend(), selection.blend().parts[0]
    assert null.t == 0.0 and 6 in blend.support
    design = np.column_stack([np.ones(len(y)), X[:, 6]])
    scores = []
    for train, test in selection.folds:
        theta = np.linalg.lstsq(design[train], y[train])[0]
        scores.append(np.mean((y[test] - design[test] @ theta) ** 2))
    assert_allclose(null.score, np.mean(scores), rtol=1e-6)
    assert_allclose(blend.predict(X, offset), X @ blend.coef + blend.intercept + offset)


def test_noise_is_left_to_the_null_model():
    shares = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(100, 20)), rng.normal(size=100)
        shares.append(bregpath.cross_validate(X, y, kappa="cv", seed=seed).blend().parts[0].weight)
    assert np.mean(shares) > 0.5


@pytest.mark.parametrize("scoring", ["misclassification", "auc"])
def test_other_measures_choose_times(scoring):
    _, _, selection = select("logistic", scoring=[scoring, "deviance"])
    blend = selection.blend()
    assert scoring in repr(blend) and 0 <= blend.mean <= 1
    linear = next(part for part in blend.parts if part.kappa == 0.1 and part.average == "linear")
    assert linear.t == selection.mean_surface[0.1][scoring].t_min
    assert "deviance" in repr(selection.by("deviance").blend())


def test_a_long_record_is_read_as_it_was_traced(monkeypatch):
    monkeypatch.setattr("bregpath.flow.trajectory.MOST_BYTES", -1)
    data = bregpath.datasets.make_logistic(200, 60, 20, seed=0)
    for wished, known in (("linear", "linear"), ("uniform", "uniform"), (None, None)):
        selection = bregpath.cross_validate(data.X, data.y, loss="logistic", average=wished)
        blend = selection.blend()
        assert {part.average for part in blend.parts} == {None, known}
        assert np.isfinite(blend.coef).all() and blend.mean < blend.parts[0].score


# --- in estimators, pickles, and where it cannot be ----------------------------------------------------------


def test_estimators_predict_by_it():
    X, y = make_data("logistic", n=120)
    model = bregpath.BregmanClassifier(kappa="cv", stop="cv-blend").fit(X, y)
    blend = bregpath.cross_validate(X, y, loss="logistic", kappa="cv").blend()
    assert_array_equal(model.coef_[0], blend.coef)
    assert_array_equal(model.predict_proba(X)[:, 1], blend.predict(X))
    assert repr(model.blend_) in model.summary() and model.pruned_ is None
    assert model.kappa_ == blend.selection.kappa_min
    assert model.set_params(stop="cv").fit(X, y).blend_ is None
    again = pickle.loads(pickle.dumps(bregpath.BregmanRegressor(stop="cv-blend").fit(X, X[:, 0])))
    assert_array_equal(again.predict(X), again.blend_.predict(X))


def test_pickles_keep_the_blend_but_no_rows_to_blend_by():
    X, _, selection = select("gaussian")
    blend = selection.blend()
    assert_array_equal(pickle.loads(pickle.dumps(blend)).predict(X), blend.predict(X))
    with pytest.raises(ValueError, match="unpickled.*cross_validate"):
        pickle.loads(pickle.dumps(selection)).blend()


def test_what_cannot_be_blended_is_named():
    X, y = make_data("gaussian", n=60)
    with pytest.raises(ValueError, match="without folds"):
        bregpath.information_criterion(bregpath.trace_path(X, y), "bic", 60).blend()
    with pytest.raises(TypeError, match="no `structure`"):
        bregpath.cross_validate(X, y, structure="fused", nu=10.0, n_times=5).blend()
    graph = bregpath.IsingGraph(stop="cv", n_times=10).fit(np.sign(X))
    with pytest.raises(TypeError, match="no graphs"):
        graph.selection_.blend()
