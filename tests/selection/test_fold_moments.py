"""Folds of squared loss: their Gram matrices are that of all rows less those of the rows held out."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import bregpath
from bregpath import regression
from bregpath._kernels import has_compiled
from bregpath.flow import moments
from bregpath.flow.gram import GramBlock
from bregpath.flow.moments import Rest
from bregpath.regression import Regression
from bregpath.selection import cross_validate
from bregpath.stores import sparse
from tests.helpers import make_data

N, P = 100, 30
OUT = np.arange(0, N, 5)
TRAIN = np.setdiff1d(np.arange(N), OUT)
X, Y = make_data("gaussian", N, P, correlation=0.5)

OPTIONS = {
    "plain": {},
    "weights": {"sample_weight": np.arange(N) % 4},
    "no intercept": {"fit_intercept": False},
    "as they are": {"standardize": False},
    "offset": {"offset": np.linspace(-1.0, 1.0, N)},
}


@pytest.fixture
def on_demand(monkeypatch):
    """Rows of the matrix are made when they are needed, although there are few."""
    monkeypatch.setattr(moments, "MAX_AT_ONCE", 5)


def rest_of(X, y, **options):
    """What is left of all rows when some are left out, and the problem on a copy of the rows that are left."""
    study = Regression.read(X, y, **options)
    counts = np.zeros(N)
    counts[TRAIN] = study.w[TRAIN]
    whole, part = study.on(), study.on(counts)
    rest = Rest(part.problem, GramBlock(whole.problem, None), whole.units.scale / part.units.scale)
    return rest, study.on(counts, copies=True).problem


@pytest.mark.parametrize("shift", [0.0, 1e4], ids=["near zero", "far from zero"])
@pytest.mark.parametrize("name", OPTIONS)
def test_moments_of_a_fold(name, shift):
    rest, alone = rest_of(X + shift, Y, **OPTIONS[name])
    gram = GramBlock(alone, None)
    expected, size = gram._room, np.sqrt(np.outer(np.diagonal(gram._room), np.diagonal(gram._room)))
    digits = 1e-13 * max(1.0, shift)  # as many as the columns have
    assert rest.is_precise
    assert np.max(np.abs(rest.matrix() - expected) / size) < digits
    some = np.array([3, 17, 4])
    assert np.max(np.abs(rest.rows_of(some, np.zeros(P)) - expected[some]) / size[some]) < digits


@pytest.mark.parametrize("shift", [0.0, 1e4], ids=["near zero", "far from zero"])
@pytest.mark.parametrize("name", OPTIONS)
def test_a_fold_begins_as_its_rows_do(name, shift):
    study = Regression.read(np.asfortranarray(X + shift), Y, **OPTIONS[name])
    whole = study.track()
    whole.start()
    counts = np.zeros(N)
    counts[TRAIN] = study.w[TRAIN]
    part, alone = study.sources([TRAIN], whole=whole)[0].at(study.kappa)(), study.on(counts, copies=True)
    digits = 1e-13 * max(1.0, shift)
    for here, there in zip(vars(part.units).values(), vars(alone.units).values(), strict=True):
        assert_allclose(here, there, rtol=digits, atol=digits)
    for read in ("slope", "alpha", "value", "t0"):
        begun, other = getattr(part.problem.beginning, read), getattr(alone.problem.beginning, read)
        assert_allclose(begun, other, rtol=digits, atol=digits)
    matrices = [made.problem.moments.of(made.problem, False)._room for made in (part, alone)]
    size = np.sqrt(np.outer(*2 * [np.diagonal(matrices[1])]))
    assert np.max(np.abs(matrices[0] - matrices[1]) / size) < digits


def test_rows_held_out_of_which_little_is_stored(monkeypatch):
    """Where dense rows are cheap to sum up of all rows, and not of those."""
    data = np.where(np.abs(X) > 1, X, 0.0)
    data[OUT, 2:] = 0.0
    monkeypatch.setattr(sparse, "MAX_DENSE", 1.1 * P * data.size / np.count_nonzero(data))
    rest, alone = rest_of(sp.csc_array(data), Y)
    assert rest.store.row_blocks() is None
    assert_allclose(rest.matrix(), GramBlock(alone, None)._room, atol=1e-12)


def test_rows_of_a_fold_are_not_copied():
    """Only those left out are, and only where the path on all rows has a Gram matrix."""
    for loss, shares in (("gaussian", True), ("huber", False)):
        study = Regression.read(X, Y, loss=loss)
        whole = study.track()
        whole.start()
        (source,) = study.sources([TRAIN], whole=whole)
        problem = source.at(10.0)().problem
        assert (problem.store.base is study.store) == shares
        assert problem.store.shape[0] == (N if shares else len(TRAIN))


def assert_folds_are_paths_of_their_rows(selection, X, y, atol=1e-8, **options):
    for k, (train, _) in enumerate(selection.folds):
        kept = {key: value[train] if np.ndim(value) == 1 else value for key, value in options.items()}
        alone = bregpath.trace_path(X[train], y[train], t=selection.times, **kept)
        for t in alone.t[:: max(1, len(alone.t) // 10)]:
            point, other = selection.fold_points(t)[k], alone.at(t)
            assert_allclose(point.coef, other.coef, atol=atol)
            assert_allclose(point.intercept, other.intercept, atol=atol * max(1.0, np.abs(X).max()))


@pytest.mark.usefixtures("on_demand")
@pytest.mark.parametrize("name", OPTIONS)
def test_folds_with_rows_on_demand(name):
    # With a fine `tol`: rounding may decide how many modes are kept, and what is left out is a share of it.
    options = {"tol": 1e-5, **OPTIONS[name]}
    selection = cross_validate(X, Y, n_times=20, **options)
    assert_folds_are_paths_of_their_rows(selection, X, Y, **options)


@pytest.mark.parametrize("kind", ["sparse", "repeated", "overlapping", "halves"])
def test_folds_of_all_kinds(kind):
    rows = np.arange(N)
    folds = {
        "sparse": 4,
        "repeated": [(np.r_[TRAIN, TRAIN[:9]], OUT), (np.setdiff1d(rows, OUT + 1), OUT + 1)],
        "overlapping": [(rows[20:], rows[:20]), (np.setdiff1d(rows, rows[10:40]), rows[10:40])],
        "halves": [(rows[:40], rows[40:]), (rows[40:], rows[:40])],
    }[kind]
    data = np.where(np.abs(X) > 1, X, 0.0) if kind == "sparse" else X
    given = sp.csc_array(data) if kind == "sparse" else data
    selection = cross_validate(given, Y, cv=folds, n_times=20, full=True, tol=1e-5)
    assert_folds_are_paths_of_their_rows(selection, data, Y, tol=1e-5)


@pytest.mark.parametrize("left", [0.0, 1e-3, 0.5])
def test_a_column_that_varies_in_held_out_rows_only(left):
    """A difference of its moments would be rounding; it is summed up anew, unless it is constant and never moves."""
    data = X.copy()
    data[:, 2] = left * data[:, 2]
    data[OUT[:5], 2] += 1e3 * np.arange(1, 6)
    rest, _ = rest_of(data, Y)
    assert rest.is_precise == (left == 0)
    selection = cross_validate(data, Y, cv=[(TRAIN, OUT)], n_times=20, full=True, tol=1e-5)
    assert_folds_are_paths_of_their_rows(selection, data, Y, tol=1e-5)


@pytest.mark.parametrize("kernels", ["on_demand", "at_once"])
def test_threads_change_nothing(kernels, request):
    if kernels == "on_demand":
        request.getfixturevalue("on_demand")
    data = bregpath.datasets.make_linear(220, 150, 20, seed=5)
    one, *others = (cross_validate(data.X, data.y, n_times=40, n_jobs=n_jobs) for n_jobs in (1, 2, 4, 4))
    for other in others:
        for name in ("mean", "se", "fold_scores", "out_of_fold"):
            assert_array_equal(getattr(other, name), getattr(one, name))
        assert_array_equal(other.fold_coef(), one.fold_coef())
        assert_array_equal(other.path.coef, one.path.coef)


@pytest.mark.parametrize("kernels", ["on_demand", "at_once"])
def test_kappas_share_the_moments(kernels, monkeypatch, request):
    if kernels == "on_demand":
        request.getfixturevalue("on_demand")
    made, make, found, find = [], moments.Moments._make, [], regression.moments_of_most

    def counted(self, *args):
        made.append(self._whole is not None)
        return make(self, *args)

    def counted_at_once(*args):
        found.append(find(*args))
        return found[-1]

    monkeypatch.setattr(moments.Moments, "_make", counted)
    monkeypatch.setattr(regression, "moments_of_most", counted_at_once)
    selection = cross_validate(np.asfortranarray(X), Y, kappa=[1.0, 10.0, 100.0], n_jobs=2)
    is_known = kernels == "at_once" and has_compiled()
    assert [one is not None for one in found] == 5 * [is_known]
    assert sorted(made) == [False] + 5 * [not is_known]
    for kappa in (1.0, 10.0):
        alone = cross_validate(X, Y, kappa=[kappa], full=True)
        curve, other = selection.surface[kappa]["deviance"], alone.surface[kappa]["deviance"]
        assert_allclose(curve.mean, other.mean[: len(curve.mean)], rtol=1e-8)
