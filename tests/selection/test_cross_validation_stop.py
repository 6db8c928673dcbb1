"""Folds that advance together and stop when the curve has turned."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bregpath
from bregpath import study
from bregpath.selection import cross_validation
from bregpath.selection.cross_validation import cross_validate
from bregpath.selection.curves import aggregate, clear_turn, not_best, paired_turn
from tests.helpers import SIMULATORS


@pytest.fixture(scope="module")
def wide():
    """Data on which the curve turns early."""
    return bregpath.datasets.make_logistic(120, 60, 4, seed=1)


# --- the rule ------------------------------------------------------------------------------------------------


def test_turn_needs_patience():
    curve, se = np.array([9.0, 5.0, 7.0, 7.0, 5.5, 7.0, 7.0, 7.0, 7.0]), np.full(9, 0.5)
    assert clear_turn(curve, se, 2) == (3, 4)
    assert clear_turn(curve, se, 3) == (7, 4)  # the run of two was broken
    assert clear_turn(curve[:5], se[:5], 3) == (None, 0)
    assert clear_turn(-curve, se, 3, larger_is_better=True) == (7, 4)


def test_turn_needs_distance():
    falling, noise = np.linspace(9, 1, 20), np.tile([1.0, 1.6, 1.4, 1.9], 10)
    assert clear_turn(falling, np.full(20, 0.1), 1) == (None, 0)
    assert clear_turn(noise, np.full(40, 0.5), 1) == (None, 0)
    assert clear_turn(np.full(20, 3.0), np.zeros(20), 1) == (None, 0)
    # Twice a standard error apart counts for any curve, once for a smooth one only.
    rise = np.array([1.0, 2.0, 2.0, 2.0])
    assert clear_turn(rise, np.full(4, 0.6), 2) == (None, 0)
    assert clear_turn(rise, np.full(4, 0.6), 2, smooth=True) == (2, 3)


def test_turn_with_scores_that_are_not_finite():
    curve, se = np.array([np.inf, np.nan, 2.0, 1.0, np.inf, np.nan, np.inf]), np.full(7, np.nan)
    assert clear_turn(curve, se, 3) == (6, 3)
    assert clear_turn(curve[:4], se[:4], 1) == (None, 0)
    assert clear_turn(curve[:2], se[:2], 1) == (None, 0)


def test_turn_of_pairs_long_after_the_best_point():
    """Folds that differ much rise together: a turn of the differences, which may have to wait for twice the time."""
    rise = np.array([3.0, 1.0, 1.2, 1.3, 1.4, 1.5, 1.6])
    scores, weights, times = np.stack([rise, rise + 7.0]), np.ones(2), np.arange(3.0, 10.0)
    assert clear_turn(*aggregate(scores, weights), 2, smooth=True) == (None, 0)
    assert paired_turn(scores, weights, 2) == (3, 5)
    assert paired_turn(scores, weights, 2, times=times) == (6, 2)
    assert paired_turn(scores[:, :6], weights, 2, times=times[:6]) == (None, 1)
    assert paired_turn(-scores, weights, 2, larger_is_better=True, times=times) == (6, 2)


def test_a_curve_that_is_past_its_best():
    curve = np.array([9.0, 5.0, 6.0, 4.0, 3.0, 3.0, 2.0])
    assert [not_best(curve, start) for start in (0, 2, 3, 6)] == [2, 2, 5, None]
    assert not_best(-curve, 3, larger_is_better=True) == 5
    assert not_best(np.array([3.0, np.nan, np.inf]), 1) == 1


def test_paired_turn_tells_small_rises():
    """Folds that differ by far more than they change, all of them upwards; as the rule of error bars, with patience."""
    rise = np.array([3.0, 1.0, 1.1, 1.2, 1.3, 1.4])
    scores = np.arange(4.0)[:, None] * 5 + rise + 0.01 * np.random.default_rng(0).normal(size=(4, 6))
    mean, se = aggregate(scores, np.ones(4))
    assert clear_turn(mean, se, 2, smooth=True) == (None, 0)
    assert paired_turn(scores, np.ones(4), 2) == (3, 4)
    assert paired_turn(-scores, np.ones(4), 3, larger_is_better=True) == (4, 4)
    scores[:, 3] = np.inf
    assert paired_turn(scores, np.ones(4), 2) == (3, 4)


# --- stopped = the beginning of the whole --------------------------------------------------------------------


@pytest.mark.parametrize("loss", sorted(SIMULATORS))
def test_stopped_curve_is_the_beginning_of_the_whole(loss):
    data = SIMULATORS[loss](60, 40, 3, seed=3)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The best time is the last one")
        some = cross_validate(data.X, data.y, loss=loss, t_ratio=30)
        whole = cross_validate(data.X, data.y, loss=loss, t_ratio=30, full=True)
    k = len(some.times)
    assert not whole.stopped_early
    assert some.stopped_early == (k < len(whole.times))
    assert_allclose(some.times, whole.times[:k], rtol=1e-12)
    for name in ("mean", "se", "out_of_fold"):
        assert_allclose(getattr(some, name), getattr(whole, name)[:k], rtol=1e-8, atol=1e-8)
    assert_allclose(some.fold_coef(some.times[-1]), whole.fold_coef(some.times[-1]), atol=1e-8)
    m = len(some.path.t)
    assert_allclose(some.path.t, whole.path.t[:m], rtol=1e-10)
    assert_allclose(some.path.coef, whole.path.coef[:m], atol=1e-8)
    assert_allclose(some.path.deviance, whole.path.deviance[:m], atol=1e-8)


@pytest.mark.parametrize("loss", ["logistic", "gaussian"])
def test_it_does_stop_and_finds_the_same_minimum(loss):
    data = SIMULATORS[loss](120, 60, 4, seed=1)
    y = data.y if loss == "logistic" else data.y + 3 * np.random.default_rng(0).normal(size=120)
    some, whole = (cross_validate(data.X, y, loss=loss, full=full) for full in (False, True))
    assert some.stopped_early and len(some.times) < 70 and len(some.path.t) < 80
    assert_allclose([some.t_min, some.t_1se], [whole.t_min, whole.t_1se], rtol=1e-10)
    assert_array_equal(some.times, some.path.t[: len(some.times)])
    # The curve ends where the rule says, not where a stretch happened to end.
    turn, _ = clear_turn(whole.mean, whole.se, 5, smooth=True)
    assert len(some.times) == turn + 1
    assert "clearly turned" in repr(some) and "clearly turned" not in repr(whole)


def test_stretches_change_nothing(wide, monkeypatch):
    options = dict(loss="logistic", scoring=["deviance", "auc"])
    one = cross_validate(wide.X, wide.y, **options)
    monkeypatch.setattr(cross_validation, "FIRST", 0.1)
    monkeypatch.setattr(cross_validation, "STRETCH", 0.03)
    other = cross_validate(wide.X, wide.y, **options)
    assert_allclose(other.times, one.times, rtol=1e-12)
    assert_allclose(other.mean, one.mean, rtol=1e-8)
    assert_allclose(other.by("auc").mean, one.by("auc").mean, rtol=1e-8)


@pytest.mark.parametrize("loss", ["likelihood", "composite"])
def test_dear_steps_are_looked_at_sooner(loss, monkeypatch):
    """A Gaussian graph costs what its matrices cost, whatever the number of rows; the choice is the same."""
    p, selections = 12, []
    X = bregpath.datasets.make_gaussian_graph(n=60, p=p, graph="chain", seed=0).X
    for large in (16 * p**3 + 1, 16 * p**3):
        monkeypatch.setattr(cross_validation, "LARGE", large)
        selections.append(bregpath.GaussianGraph(loss, stop="cv").fit(X).selection_)
    late, soon = selections
    assert soon.stopped_early and len(soon.path.t) < len(late.path.t)
    assert_allclose(soon.times, late.times, rtol=1e-12)
    assert_allclose(soon.mean, late.mean, rtol=1e-8)
    assert soon.t_min == late.t_min


def test_screened_paths_in_stretches(wide, request):
    unscreened = cross_validate(wide.X, wide.y, loss="logistic")
    request.getfixturevalue("always_screen")
    some, whole = (cross_validate(wide.X, wide.y, loss="logistic", full=full) for full in (False, True))
    for path in (some.path, whole.path, *some.fold_paths, *whole.fold_paths):
        assert path.stats.refreshes > 0 and path.stats.working_columns < wide.X.shape[1]
    assert unscreened.path.stats.refreshes == 0
    assert some.stopped_early
    k = len(some.times)
    assert_allclose(some.mean, whole.mean[:k], rtol=1e-8)
    assert_allclose(some.mean, unscreened.mean, rtol=1e-8)
    assert_allclose(some.fold_coef(some.times[-1]), unscreened.fold_coef(some.times[-1]), atol=1e-8)


def test_patience_and_number_of_folds(wide):
    options = dict(loss="logistic", t_ratio=30)
    quick = cross_validate(wide.X, wide.y, patience=1, **options)
    slow = cross_validate(wide.X, wide.y, patience=12, **options)
    assert len(quick.times) < len(slow.times)
    # Three folds have no error bars to rely on.
    assert not cross_validate(wide.X, wide.y, cv=3, **options).stopped_early
    for patience in (0, -1, 2.5, True, None):
        with pytest.raises(ValueError, match="`patience` must be a whole number"):
            cross_validate(wide.X, wide.y, patience=patience, **options)


def test_own_times_and_stop_rules(wide):
    whole = cross_validate(wide.X, wide.y, loss="logistic", full=True)
    by_times = cross_validate(wide.X, wide.y, loss="logistic", t=whole.times)
    k = len(by_times.times)
    assert by_times.stopped_early and k < 80 and len(by_times.path.t) == 100
    assert_allclose(by_times.mean, whole.mean[:k], rtol=1e-8)
    by_rule = cross_validate(wide.X, wide.y, loss="logistic", stop=bregpath.StopAtVariables(1))
    assert by_rule.path.df.max() == 1 and not by_rule.stopped_early
    assert_array_equal(by_rule.times, by_rule.path.t)
    assert_allclose(by_rule.mean[:-1], whole.mean[: len(by_rule.times) - 1], rtol=1e-8)


def test_a_longer_window_is_looked_at_as_early(wide):
    """What a larger `t_ratio` adds is not traced, on all rows or on folds, if the curve turns before."""
    usual, long = (
        cross_validate(wide.X, wide.y, loss="logistic", t_ratio=ratio, n_times=n)
        for ratio, n in ((100.0, 101), (1e4, 201))
    )
    assert_allclose(long.times, usual.times, rtol=1e-9)
    assert_allclose(long.mean, usual.mean, rtol=1e-8)
    assert len(long.path.t) == len(usual.path.t)


def test_noise_ends_soon_with_the_null_model():
    rng = np.random.default_rng(1)
    selection = cross_validate(rng.normal(size=(100, 50)), rng.normal(size=100))
    assert selection.stopped_early and len(selection.times) < 20
    assert selection.t_min == selection.t_1se == selection.times[0]


@pytest.mark.parametrize("ratio", [100, 300, 3000, 1e5])
def test_separable_data(ratio):
    """All paths end by themselves, at different times: in the first stretch, or in one of the later."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    X[:, 0] += 2 * np.sign(X[:, 0])
    y = X[:, 0] > 0
    some, whole = (cross_validate(X, y, loss="logistic", t_ratio=ratio, full=full) for full in (False, True))
    assert some.path.result is whole.path.result is bregpath.Result.SATURATED
    k = len(whole.times) - 1  # the last time is where the path ended, beside the grid
    assert len(some.times) >= k and not some.stopped_early
    assert_allclose(some.path.t[-1], whole.path.t[-1], rtol=1e-8)
    assert_allclose(some.times[:k], whole.times[:k], rtol=1e-12)
    assert_allclose(some.out_of_fold[:k], whole.out_of_fold[:k], rtol=1e-8)


@pytest.mark.parametrize("options", [{}, {"kappa": "cv"}], ids=str)
def test_folds_go_on_where_all_rows_are_explained(options):
    """Hardly any noise: the end of the path comes right after its last entry, which some folds have not seen."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, truth = rng.normal(size=(50, 10)), np.array([3.0, 2.0, 1.0])
        y = X[:, :3] @ truth + 0.003 * rng.normal(size=50)
        selection = cross_validate(X, y, **options)
        assert_allclose(selection.coef[:3], truth, atol=0.2)
        assert selection.mean.min() < 0.01 * y.var()
        assert selection.t <= selection.path.t[-1] == selection.times[-1]
        longer = selection.path.extend(2 * selection.path.t[-1])  # explains what is left, and ends again
        assert longer.deviance_ratio[-1] >= selection.path.deviance_ratio[-1] - 1e-9


@pytest.mark.parametrize("n_times", [5, 20, 100])
def test_few_times_of_data_with_hardly_any_noise(n_times):
    X = np.random.default_rng(0).normal(size=(60, 8))
    for kappa in (10.0, [1.0, 10.0], "cv"):
        selection = cross_validate(X, X[:, 0] - 2 * X[:, 1], kappa=kappa, n_times=n_times)
        assert set(np.flatnonzero(selection.coef)) >= {0, 1}


# --- together = one by one -----------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", sorted(SIMULATORS))
def test_folds_together_are_the_folds_one_by_one(loss):
    data = SIMULATORS[loss](60, 15, 3, seed=3)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The best time is the last one")
        selection = cross_validate(data.X, data.y, loss=loss, t_ratio=20, n_times=40)
    for k, (train, test) in enumerate(selection.folds):
        assert_array_equal(np.sort(np.r_[train, test]), np.arange(60))
        alone = bregpath.trace_path(data.X[train], data.y[train], loss=loss, t=selection.times)
        for i, t in enumerate(alone.t):
            point = selection.fold_points(t)[k]
            assert_allclose(point.coef, alone.coef[i], atol=1e-8)
            assert_allclose(point.intercept, alone.intercept[i], atol=1e-8)


@pytest.mark.parametrize("loss", ["logistic", "gaussian"])
def test_threads_change_nothing(loss):
    data = SIMULATORS[loss](150, 30, 4, seed=5)
    options = dict(loss=loss, n_times=40, scoring=["deviance", "mse"])
    one = cross_validate(data.X, data.y, **options)
    for n_jobs in (1, 2, -1):
        other = cross_validate(data.X, data.y, n_jobs=n_jobs, **options)
        for name in ("times", "mean", "se", "fold_scores", "out_of_fold", "train_scores"):
            assert_array_equal(getattr(other, name), getattr(one, name))
        assert_array_equal(other.fold_coef(), one.fold_coef())
        assert_array_equal(other.path.coef, one.path.coef)
        assert (other.t_min, other.t_1se, other.stopped_early) == (one.t_min, one.t_1se, one.stopped_early)
    assert cross_validate(data.X, data.y, seed=1, **options).mean[5] != one.mean[5]


class Quartic:
    """A loss of a user: a value and a gradient, in Python."""

    def value(self, eta, y, w):
        return float(np.dot(w, (eta - y) ** 2 / 2 + (eta - y) ** 4 / 4))

    def gradient(self, eta, y, w):
        return w * ((eta - y) + (eta - y) ** 3)


@pytest.mark.parametrize("cv", [5, 10])
def test_threads_change_nothing_with_a_users_loss(cv):
    """Which is called back from the compiled core, in several threads at once."""
    data = bregpath.datasets.make_linear(150, 30, 4, seed=5)
    y = data.y / np.std(data.y)
    one, two = (cross_validate(data.X, y, loss=Quartic(), n_times=40, cv=cv, n_jobs=n_jobs) for n_jobs in (1, 2))
    for name in ("times", "mean", "se", "fold_scores", "out_of_fold"):
        assert_array_equal(getattr(two, name), getattr(one, name))
    assert_array_equal(two.fold_coef(), one.fold_coef())
    assert (two.t_min, two.t_1se) == (one.t_min, one.t_1se)
    # The curve means something: the chosen model predicts better than none.
    assert one.mean.min() < 0.8 * one.mean[0]


def test_errors_of_a_users_loss_in_threads_reach_the_user():
    class Broken(Quartic):
        def gradient(self, eta, y, w):
            if len(y) < 150 and np.ptp(eta) > 0:  # in a fold, once a variable has entered
                raise RuntimeError("no more")
            return super().gradient(eta, y, w)

    data = bregpath.datasets.make_linear(150, 30, 4, seed=5)
    with pytest.raises(RuntimeError, match="no more"):
        cross_validate(data.X, data.y / np.std(data.y), loss=Broken(), n_times=10, n_jobs=2)


def test_large_data_are_shared_by_the_folds(monkeypatch):
    data = bregpath.datasets.make_logistic(80, 6, 3, seed=4)
    steps = dict(loss="logistic", step=0.1, t_ratio=20.0, sample_weight=np.linspace(1, 2, 80))
    cv = [(np.r_[0:60, 0:10], np.arange(60, 80)), (np.arange(20, 80), np.arange(20))]  # some rows count twice
    copied = cross_validate(data.X, data.y, cv=cv, **steps)
    monkeypatch.setattr(study, "COPY_BYTES", 0)
    shared = cross_validate(data.X, data.y, cv=cv, **steps)
    assert_allclose(shared.mean, copied.mean, rtol=1e-8)
    assert_allclose(shared.fold_coef(), copied.fold_coef(), atol=1e-8)
    assert_allclose(shared.train_mean, copied.train_mean, rtol=1e-8)


def test_long_records_end_and_choose_as_whole_ones(wide, monkeypatch):
    monkeypatch.setattr("bregpath.flow.screened.BLOCK_NUMBERS", 0)  # several blocks
    exact = cross_validate(wide.X, wide.y, loss="logistic")
    monkeypatch.setattr("bregpath.flow.trajectory.MOST_BYTES", -1)
    long = cross_validate(wide.X, wide.y, loss="logistic")
    assert long.path.trajectory.closed().eras and not exact.path.trajectory.closed().eras
    assert_allclose((long.t_min, long.t_1se), (exact.t_min, exact.t_1se), rtol=1e-12)
    assert_allclose(long.times, exact.times, rtol=1e-12)
    assert_allclose(long.mean, exact.mean, rtol=1e-3)  # a tenth of `tol` in the coefficients


def test_progress_is_reported_for_all_folds(wide, monkeypatch):
    from contextlib import contextmanager

    seen = []

    @contextmanager
    def bar(show, start, end):
        seen.append((show, start, end))
        yield seen.append

    monkeypatch.setattr(cross_validation, "progress_bar", bar)
    selection = cross_validate(wide.X, wide.y, loss="logistic", progress=True)
    assert seen[0][0] is True and seen[0][1] == selection.times[0]
    assert seen[1:] == sorted(seen[1:]) and seen[-1] >= selection.times[-1]
