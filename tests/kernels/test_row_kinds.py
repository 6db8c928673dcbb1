"""Rows that are alike in all that has moved, taken as one: fewer rows for the core, so the path must not know of it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import bregpath
from bregpath.losses import LOSSES
from tests.helpers import assert_same_path
from tests.kernels.indicators import OPTIONS, N, one_hot, reference, respond

LEVELS = (4, 3, 5, 2)  # of each categorical variable: 120 kinds of rows, of each response

pytestmark = pytest.mark.usefixtures("no_gram")


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_same_path_as_numpy_and_as_dense(loss, steppers):
    X = one_hot(LEVELS)
    y, weights = respond(loss, X), np.random.default_rng(2).integers(0, 3, N).astype(float)
    options = dict(loss=loss, sample_weight=weights, **OPTIONS)
    path = bregpath.trace_path(sp.csc_array(X), y, **options)
    has_few_responses = loss in {"logistic", "multinomial", "poisson"}
    at_work = steppers[-1].n_at_work
    assert at_work <= N / 2 if has_few_responses else at_work == N
    assert_same_path(path, reference(sp.csc_array(X), y, **options))
    assert_same_path(path, bregpath.trace_path(X, y, **options))


@pytest.mark.parametrize(
    "options",
    [
        {"penalty": "group", "groups": np.repeat(np.arange(len(LEVELS)), LEVELS)},
        {"lower": 0.0},
        {"fit_intercept": False},
        {"step": 0.02, "t_ratio": 10.0},
        {"kappa": 0.3},
    ],
    ids=str,
)
def test_options(options, steppers):
    X = one_hot(LEVELS)
    y = respond("logistic", X)
    options = {**OPTIONS, "loss": "logistic", **options}
    path = bregpath.trace_path(sp.csc_array(X), y, **options)
    assert steppers[0].n_at_work <= N / 4
    assert_same_path(path, reference(sp.csc_array(X), y, **options))


@pytest.mark.usefixtures("always_screen")
def test_working_sets(steppers):
    X = one_hot(LEVELS)
    y = respond("logistic", X)
    path = bregpath.trace_path(sp.csc_array(X), y, loss="logistic", **OPTIONS)
    assert min(stepper.n_at_work for stepper in steppers) <= N / 4
    assert_same_path(path, reference(sp.csc_array(X), y, loss="logistic", **OPTIONS))


def test_an_offset_tells_all_rows_apart(steppers):
    X = one_hot(LEVELS)
    y, offset = respond("logistic", X), np.random.default_rng(3).normal(size=N)
    options = dict(loss="logistic", offset=offset, **OPTIONS)
    path = bregpath.trace_path(sp.csc_array(X), y, **options)
    assert steppers[0].n_at_work == N
    assert_same_path(path, reference(sp.csc_array(X), y, **options))


@pytest.mark.parametrize("until", ["before", "after"])
def test_a_column_of_numbers_enters_late(until, steppers):
    """Then all rows are worked on, from there on."""
    X = one_hot(LEVELS)
    numbers = np.random.default_rng(4).normal(size=(N, 1))
    y = respond("logistic", np.hstack([X, 0.3 * numbers]))
    X = sp.csc_array(np.hstack([X, numbers]))
    entry = bregpath.trace_path(X, y, loss="logistic", **OPTIONS).entry_times
    assert np.sum(entry < entry[-1]) >= 4
    steppers.clear()
    t = entry[-1] * np.linspace(0.5, 0.95, 5) if until == "before" else entry[-1] * np.linspace(1.2, 2.5, 5)
    path = bregpath.trace_path(X, y, loss="logistic", t=t)
    assert steppers[0].n_at_work <= N / 4 if until == "before" else steppers[0].n_at_work == N
    assert_same_path(path, reference(X, y, loss="logistic", t=t))


def test_many_kinds_end_it(steppers):
    """Random indicators tell nearly all rows apart, one after the other."""
    rng = np.random.default_rng(5)
    X = (rng.random((N, 100)) < 0.2).astype(float)
    y = respond("logistic", X)
    path = bregpath.trace_path(sp.csc_array(X), y, loss="logistic", **OPTIONS)
    assert steppers[0].n_at_work == N
    assert_same_path(path, reference(sp.csc_array(X), y, loss="logistic", **OPTIONS))


def test_folds():
    X = one_hot(LEVELS)
    y = respond("logistic", X)
    options = dict(loss="logistic", cv=4, t_ratio=200.0)
    sparse = bregpath.cross_validate(sp.csc_array(X), y, **options)
    dense = bregpath.cross_validate(X, y, **options)
    np.testing.assert_allclose(sparse.mean, dense.mean, rtol=1e-9)
