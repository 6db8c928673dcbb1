"""Whatever is traced on other rows goes through the one loop over time, and is the same study."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bregpath
from bregpath import selection, trace_path
from bregpath.flow import integrate as loop
from bregpath.regression import Regression
from bregpath.run import run
from tests.graphs.cases import data_of, graph_of
from tests.helpers import make_data

X, Y = make_data("gaussian", 60, 6)
SMALL = {"n_times": 8, "t_ratio": 20.0}


def rows_path(rows):
    return trace_path(X[rows], Y[rows], **SMALL)


def graph(rule, **options):
    return graph_of("ising-composite", stop=rule, **SMALL, **options).fit(data_of("ising-composite"))


# What is traced, and how many paths on other rows that takes.
CALLS = {
    "cross-validation": (lambda: bregpath.cross_validate(X, Y, cv=5, **SMALL), 5),
    "stability": (lambda: bregpath.stability_selection(X, Y, n_replicates=6, **SMALL), 6),
    "own stability": (lambda: selection.replicate_stability(rows_path, 60, [1.0, 3.0], n_replicates=6), 6),
    "bootstrap": (lambda: bregpath.bootstrap_intervals(X, Y, 2.0, n_replicates=7), 7),
    "own bootstrap": (lambda: selection.replicate_intervals(rows_path, 60, 2.0, n_replicates=7), 7),
    "graph cross-validation": (lambda: graph("cv", cv=5), 5),
    "graph mdc": (lambda: graph("mdc", cv=3), 3),
    "stars": (lambda: graph("stars", n_subsamples=4), 4),
    "stable": (lambda: graph("stable", n_subsamples=4), 4),
}


@pytest.mark.parametrize(("call", "n_paths"), CALLS.values(), ids=CALLS)
def test_all_paths_advance_in_the_one_loop(call, n_paths, monkeypatch):
    """Every track that reaches a time was asked to by `integrate`, and all replicates in one call of it."""
    asked, together = [], []
    integrate = loop.integrate

    def counted(tracks, ticks, *args, **kwargs):
        together.append(len(tracks))
        return integrate([Watched(track) for track in tracks], ticks, *args, **kwargs)

    class Watched:
        def __init__(self, track):
            self.track = track

        def reach(self, until):
            asked.append(until)
            self.track.reach(until)

    for module in ("run", "selection.replicates", "selection.cross_validation"):
        monkeypatch.setattr(f"bregpath.{module}.integrate", counted)
    call()
    assert max(together) >= n_paths
    assert len(asked) >= sum(together)


def test_a_verdict_ends_all_tracks_together():
    class Counter:
        def __init__(self):
            self.seen = []

        def reach(self, until):
            self.seen.append(until)

    tracks = [Counter(), Counter()]
    loop.integrate(tracks, [1.0, 2.0, 3.0, 4.0], lambda tick: tick >= 2.0)
    assert [track.seen for track in tracks] == [[1.0, 2.0]] * 2
    loop.integrate(tracks, [5.0])
    assert tracks[0].seen == [1.0, 2.0, 5.0]


# --- the same study on other rows ----------------------------------------------------------------------------


@pytest.mark.parametrize("copies", [True, False])
@pytest.mark.parametrize("loss", ["gaussian", "logistic", "multinomial", "huber"])
def test_a_study_on_some_rows_is_the_path_on_these_rows(loss, copies, monkeypatch):
    monkeypatch.setattr("bregpath.study.COPY_BYTES", 2**30 if copies else 0)
    X, y = make_data(loss, 60, 6)
    X[:, 2] = np.arange(60) < 8  # constant on most of the rows
    rows = np.r_[10:60, 12, 12, 30]
    study = Regression.read(X, y, loss=loss, lower=-0.5)
    times = run(study.track()).t
    (track,) = study.tracks([rows], times)
    together = run(track)
    assert track.problem.store.shape[0] == (50 if copies else 60)
    alone = trace_path(X[rows], y[rows], loss=loss, lower=-0.5, t=times)
    assert_allclose(together.t, alone.t, rtol=1e-9)
    assert_allclose(together.coef, alone.coef, atol=1e-6)
    assert_array_equal(run(study.track()).t, times)  # no replicate has changed the study


def test_a_track_goes_on_as_if_it_had_not_stopped():
    study = Regression.read(X, Y)
    one, two = study.track(), study.track()
    one.start()
    two.reach(float(one.times[-1]))
    for time in one.times[::10]:
        one.reach(float(time))
    one.reach(float(one.times[-1]))
    assert_array_equal(one.path(one.times).coef, two.path(two.times).coef)
    longer = one.path(one.times).extend(2 * one.times[-1])
    assert_allclose(longer.at(one.times[50]).coef, two.path(two.times).coef[50], atol=1e-12)


def test_unknown_options_are_refused():
    with pytest.raises(TypeError, match="kapa"):
        Regression.read(X, Y, kapa=3)


# --- graphs as regressions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["ising-composite", "ising-nodewise-and", "potts", "gaussian-likelihood"])
def test_information_criterion_of_a_graph_is_that_of_its_estimator(case):
    X = data_of(case)
    for kind, gamma in (("bic", 0.0), ("ebic", 0.5)):
        fitted = graph_of(case, stop=kind, gamma=gamma).fit(X)
        chosen = selection.information_criterion(fitted.path_, kind, n=len(X), gamma=gamma)
        assert chosen.t == fitted.t_ and chosen.rule == fitted.selection_.rule
        assert_allclose(np.diff(chosen.mean), np.diff(fitted.selection_.mean), atol=1e-7)


def test_flow_has_no_likelihood_without_rows():
    fitted = graph_of("ising-mpf").fit(data_of("ising-mpf"))
    with pytest.raises(ValueError, match='is no likelihood.* stop="bic"'):
        selection.information_criterion(fitted.path_, "bic", n=100)


def test_graphs_are_cross_validated_as_regressions_are():
    """With early stop, models of folds, training scores, and predictors of rows by models that have not seen them."""
    X = bregpath.datasets.make_ising_grid(4, T=2.5, n=120, seed=1).X
    few = bregpath.IsingGraph(stop="cv", n_times=60).fit(X)
    chosen = few.selection_
    assert chosen.stopped_early and len(chosen.times) < 60
    assert_array_equal(chosen.times, few.path_.t[: len(chosen.times)])
    assert chosen.fold_coef().shape == (5, 16, 16)
    assert chosen.train_mean[-1] < chosen.mean[-1]
    train, test = chosen.folds[2]
    alone = bregpath.IsingGraph(stop=float(chosen.t)).fit(X[train])
    point = alone.path_.at(chosen.t)
    i = int(np.flatnonzero(chosen.times == chosen.t)[0])
    assert_allclose(chosen.out_of_fold[i, test], point.intercept + X[test] @ point.coef, atol=1e-6)


@pytest.mark.parametrize("case", ["ising-composite", "ising-nodewise-and", "potts", "gaussian-likelihood"])
def test_stability_of_a_graph(case):
    """Is that of the same estimator on the halves, one by one."""
    X = data_of(case)
    fitted = graph_of(case, **SMALL).fit(X)
    found = fitted.stability(n_replicates=6, n_variables=3, seed=3)
    t = fitted.path_.t
    # Beside the data themselves, a half knows nothing of the others: the levels of states, the scale of numbers.
    study = fitted._study
    one_by_one = selection.replicate_stability(
        lambda rows: study.report(*traced(study, rows, t)), len(X), t, n_replicates=6, n_variables=3, seed=3
    )
    assert_allclose(found.probabilities, one_by_one.probabilities)
    assert found.item_names == one_by_one.item_names and len(found.edges) == len(found.candidates)
    assert_array_equal(fitted.stability(n_replicates=6, n_variables=3, seed=3, n_jobs=2).size, found.size)


def traced(study, rows, times):
    (track,) = study.tracks([rows], times)
    return run(track), track


@pytest.mark.parametrize("case", ["ising-composite", "potts", "gaussian-likelihood"])
def test_intervals_of_a_graph(case):
    fitted = graph_of(case, **SMALL).fit(data_of(case))
    found = fitted.intervals(n_replicates=5)
    assert found.t == fitted.t_ and found.samples.shape == (5, *found.estimate.shape)
    assert_array_equal(found.estimate, fitted.weights_)
    assert_array_equal(fitted.intervals(n_replicates=5, n_jobs=2).samples, found.samples)
    early = fitted.intervals(1.1 * fitted.path_.t[0], n_replicates=3)
    assert np.count_nonzero(early.estimate) < np.count_nonzero(found.estimate)


def test_forbidden_edges_are_no_candidates():
    mask = np.ones((6, 6), dtype=bool)
    mask[0, 1] = mask[1, 0] = False
    found = graph("ebic", mask=mask).stability(n_replicates=4, n_variables=3)
    assert found.candidates.tolist() == [False] + [True] * 14


def test_graphs_without_rows():
    fitted = graph("ebic")
    with pytest.raises(ValueError, match="unpickled has no data"):
        pickle.loads(pickle.dumps(fitted)).stability()
    S = np.cov(data_of("gaussian-likelihood").T)
    with pytest.raises(ValueError, match="has no rows to draw from"):
        bregpath.GaussianGraph(input="covariance", n_samples=90).fit(S).intervals()
