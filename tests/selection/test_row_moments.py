"""Moments of rows held out, and squared errors by them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import bregpath
from bregpath import _kernels
from bregpath.row_moments import RowMoments
from bregpath.stores import as_store

compiled = pytest.mark.skipif(not _kernels.has_compiled(), reason="moments are the compiled core's")


def _models(rng, p, size):
    columns = rng.permutation(p)[: p // 2]
    return rng.standard_normal(size), columns, rng.standard_normal((size, len(columns)))


@compiled
@pytest.mark.parametrize("far", [0.0, 1e3])
@pytest.mark.parametrize("order", ["C", "F"])
def test_moments_give_the_errors_of_predictions(far, order, rng):
    X = np.asarray(rng.standard_normal((300, 8)) * rng.uniform(0.1, 10, 8) + far, order=order)
    y, w, rows = rng.standard_normal(300) + far, rng.uniform(0.5, 2, 300), rng.permutation(300)[:200]
    intercept, columns, coef = _models(rng, 8, 5)
    moments = RowMoments(as_store(X), rows, y[rows], w[rows])
    eta = intercept[:, None] + coef @ X[rows][:, columns].T
    expected = (eta - y[rows]) ** 2 @ w[rows] / w[rows].sum()
    for _ in range(2):  # the rows are read once
        assert_allclose(moments.squared_error(intercept, columns, coef, X.mean(axis=0)), expected, rtol=1e-9)


@compiled
def test_an_error_that_would_be_rounding_is_not_told(rng):
    X = rng.standard_normal((50, 4))
    coef = np.array([[1.0, 2.0], [1.0, 2.0 + 1e-7]])
    moments = RowMoments(as_store(X), np.arange(50), X[:, 2] + 2 * X[:, 0], np.ones(50))
    assert moments.squared_error(np.zeros(2), np.array([2, 0]), coef, np.zeros(4)) is None
    coef[:, 0] += 0.1
    assert_allclose(
        moments.squared_error(np.zeros(2), np.array([2, 0]), coef, np.zeros(4)), 0.01 * np.mean(X[:, 2] ** 2), rtol=1e-4
    )


def test_sparse_columns_have_no_moments(rng):
    X = sparse.random(100, 5, 0.3, format="csc", random_state=0)
    moments = RowMoments(as_store(X), np.arange(50), rng.standard_normal(50), np.ones(50))
    assert moments.squared_error(np.zeros(1), np.arange(5), np.ones((1, 5)), np.zeros(5)) is None
    assert RowMoments.pays(as_store(np.zeros((100, 5))), np.arange(20))
    assert not RowMoments.pays(as_store(np.zeros((100, 5))), np.arange(19))


@compiled
@pytest.mark.parametrize("average", ["linear", None])
def test_choice_is_that_of_predictions(average, rng, monkeypatch):
    X = rng.standard_normal((400, 6)) + 5.0
    y, w, offset = X[:, 0] + rng.standard_normal(400), rng.uniform(0.5, 2, 400), rng.standard_normal(400)
    options = dict(kappa=[1.0, 10.0], average=average, sample_weight=w, offset=offset)
    told = []
    tell = RowMoments.squared_error
    monkeypatch.setattr(RowMoments, "squared_error", lambda self, *args: told.append(tell(self, *args)) or told[-1])
    ours = bregpath.cross_validate(X, y, **options)
    assert told and all(error is not None for error in told)
    n_told, others = len(told), {"scoring": ["deviance", "mae"]}  # these need predictions
    assert bregpath.cross_validate(X, y, **options, **others).t == ours.t and len(told) == n_told
    monkeypatch.setattr(RowMoments, "squared_error", lambda self, *args: None)
    theirs = bregpath.cross_validate(X, y, **options)
    assert (ours.kappa, ours.t, ours.sparse().t) == (theirs.kappa, theirs.t, theirs.sparse().t)
    for kappa, curves in ours.surface.items():
        for measure, curve in curves.items():
            assert_allclose(curve.fold_scores, theirs.surface[kappa][measure].fold_scores, rtol=1e-10)
    assert_array_equal(ours.out_of_fold, theirs.out_of_fold)


@compiled
def test_folds_of_all_kappas_share_the_moments(rng, monkeypatch):
    made = []
    monkeypatch.setattr("bregpath.regression.RowMoments", _counting(made))
    X = rng.standard_normal((400, 6))
    y = X[:, 0] + rng.standard_normal(400)
    selection = bregpath.cross_validate(X, y, kappa="cv")
    assert len(made) == 5
    for one in (selection, selection.sparse()):
        assert [fold.source for fold in one._rows.folds] == 5 * [None]  # which has the rows of a fold
    bregpath.cross_validate(X, y)  # few models: to predict is as cheap
    bregpath.cross_validate(X, y > 0, loss="logistic", kappa=[1.0, 10.0])
    assert len(made) == 5


def _counting(made):
    class Counted(RowMoments):
        def __init__(self, *args):
            super().__init__(*args)
            made.append(self)

    return Counted
