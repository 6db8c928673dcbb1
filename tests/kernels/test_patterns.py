"""Sparse indicators by the patterns of their rows: another way to multiply, so the path must not know of it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import bregpath
from bregpath.losses import LOSSES
from tests.helpers import assert_same_path
from tests.kernels.indicators import OPTIONS, N, one_hot, reference, respond

LEVELS = (5, 4, 3, 6, 2, 4, 3)  # of each categorical variable: in all far more patterns than one group holds


pytestmark = pytest.mark.usefixtures("no_gram")


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_same_path_as_numpy_and_as_dense(loss, steppers):
    X = one_hot(LEVELS)
    y, weights = respond(loss, X), np.random.default_rng(2).integers(0, 3, N).astype(float)
    options = dict(loss=loss, sample_weight=weights, **OPTIONS)
    path = bregpath.trace_path(sp.csc_array(X), y, **options)
    assert max(stepper.n_grouped for stepper in steppers) >= 10
    assert_same_path(path, reference(sp.csc_array(X), y, **options))
    assert_same_path(path, bregpath.trace_path(X, y, **options))


def test_columns_of_numbers_between_indicators(steppers):
    X = one_hot(LEVELS)
    X[:, 4::5] *= np.random.default_rng(3).normal(size=(N, 1))
    y = respond("logistic", X)
    path = bregpath.trace_path(sp.csc_array(X), y, loss="logistic", **OPTIONS)
    assert 0 < steppers[0].n_grouped <= X.shape[1] - len(range(4, X.shape[1], 5))
    assert_same_path(path, reference(sp.csc_array(X), y, loss="logistic", **OPTIONS))


@pytest.mark.usefixtures("always_screen")
def test_working_sets(steppers):
    X = one_hot(LEVELS)
    y = respond("logistic", X)
    path = bregpath.trace_path(sp.csc_array(X), y, loss="logistic", **OPTIONS)
    assert max(stepper.n_grouped for stepper in steppers) > 0
    assert_same_path(path, reference(sp.csc_array(X), y, loss="logistic", **OPTIONS))


def test_user_loss(steppers):
    class Pseudo:
        """Huber's loss, smoothed."""

        def value(self, eta, y, w):
            return float(np.dot(w, np.sqrt(1 + (eta - y) ** 2)))

        def gradient(self, eta, y, w):
            return w * (eta - y) / np.sqrt(1 + (eta - y) ** 2)

    X = one_hot(LEVELS)
    y = respond("huber", X)
    path = bregpath.trace_path(sp.csc_array(X), y, loss=Pseudo(), **OPTIONS)
    assert steppers[0].n_grouped > 0
    assert_same_path(path, reference(sp.csc_array(X), y, loss=Pseudo(), **OPTIONS))


@pytest.mark.parametrize("kind", ["numbers", "many patterns", "few places"])
def test_no_groups_where_they_do_not_pay(kind, steppers):
    rng = np.random.default_rng(4)
    X = one_hot(LEVELS)
    if kind == "numbers":
        X *= rng.normal(size=X.shape)
    elif kind == "many patterns":
        X = (rng.random((400, 80)) < 0.05).astype(float)
    else:
        X = X[:, :5]
    y = respond("logistic", X)
    path = bregpath.trace_path(sp.csc_array(X), y, loss="logistic", **OPTIONS)
    assert [stepper.n_grouped for stepper in steppers] == [0]
    assert_same_path(path, reference(sp.csc_array(X), y, loss="logistic", **OPTIONS))
