"""Several kappas on one clock, and the choice among them."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bregpath
from bregpath.flow.moments import Moments
from bregpath.selection import kappas as module
from bregpath.selection.cross_validation import cross_validate
from bregpath.selection.kappas import KAPPAS, check_kappas, choose_kappas
from bregpath.selection.result import ScoreCurve
from bregpath.stores import DenseStore
from tests.graphs.cases import data_of, graph_of
from tests.helpers import SIMULATORS

GRID = [0.3, 3.0, 20.0]


@pytest.fixture(scope="module", name="data")
def make_data():
    return bregpath.datasets.make_logistic(150, 30, 4, seed=1)


@pytest.fixture(scope="module", name="selection")
def make_selection(data):
    return cross_validate(data.X, data.y, loss="logistic", kappa=GRID, scoring=["deviance", "auc"])


# --- together = one by one -----------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", sorted(SIMULATORS))
def test_kappas_together_are_the_kappas_one_by_one(loss):
    data = SIMULATORS[loss](80, 25, 3, seed=3)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The best time is the last one")
        together = cross_validate(data.X, data.y, loss=loss, kappa=GRID)
        for kappa in GRID:
            curve = together.surface[kappa]["deviance"]
            alone = cross_validate(data.X, data.y, loss=loss, kappa=kappa, t=curve.times, full=True)
            k = len(alone.times)  # the path on all rows may end before those of the folds
            assert_allclose(curve.fold_scores[:, :k], alone.fold_scores, rtol=1e-8, atol=1e-8)
    assert len({len(together.surface[kappa]["deviance"].times) for kappa in GRID}) > 1


@pytest.mark.parametrize("case", ["ising-composite", "potts"])
def test_graphs_of_several_kappas_are_those_of_each(case):
    X = data_of(case)
    together = graph_of(case, stop="cv", kappa=[1.0, 10.0], n_times=20, t_ratio=30.0).fit(X)
    for kappa in (1.0, 10.0):
        curve = together.selection_.surface[kappa]["deviance"]
        alone = graph_of(case, stop="cv", kappa=kappa, t=curve.times).fit(X).selection_
        k = min(len(alone.times), len(curve.times))
        assert_allclose(curve.fold_scores[:, :k], alone.fold_scores[:, :k], rtol=1e-8)
    best = min((1.0, 10.0), key=lambda kappa: together.selection_.surface[kappa]["deviance"].mean.min())
    assert together.kappa_ == together.path_.kappa == best
    again = graph_of(case, stop=float(together.t_), kappa=best).fit(X)
    assert_allclose(together.weights_, again.weights_, atol=1e-8)
    assert together.stability(n_replicates=4, n_variables=2).path.kappa == best  # what is drawn again is the chosen one


@pytest.mark.parametrize("times", [[1.0, 2.0, 3.0], [0.5, 40.0], [40.0]], ids=str)
def test_own_times_beyond_the_end_of_a_path(times):
    X = np.random.default_rng(0).normal(size=(40, 5))
    for kappa in (10.0, 30.0):
        alone, listed = (cross_validate(X, X[:, 0], kappa=one, t=times) for one in (kappa, [kappa]))
        assert alone.times[-1] == alone.path.t[-1] <= times[-1]  # all is explained by then
        assert_array_equal(alone.times, listed.times)
        assert_allclose(alone.fold_scores, listed.fold_scores, rtol=1e-8, atol=1e-12)
        assert alone.t == listed.t


def test_threads_change_nothing(data, selection):
    other = cross_validate(
        data.X, data.y, loss="logistic", kappa=GRID, scoring=["deviance", "auc"], n_jobs=2
    )
    for kappa in GRID:
        for name, curve in selection.surface[kappa].items():
            assert_array_equal(other.surface[kappa][name].fold_scores, curve.fold_scores)
    assert (other.kappa_min, other.t_min, other.kappa_sparse) == (
        selection.kappa_min, selection.t_min, selection.kappa_sparse,
    )  # fmt: skip


def test_all_kappas_advance_in_one_call_of_the_loop(data, monkeypatch):
    from bregpath.selection import cross_validation

    together, integrate = [], cross_validation.integrate

    def counted(tracks, *args, **kwargs):
        together.append(len(tracks))
        return integrate(tracks, *args, **kwargs)

    monkeypatch.setattr(cross_validation, "integrate", counted)
    cross_validate(data.X, data.y, loss="logistic", kappa=GRID, cv=4)
    assert max(together) == 4 * len(GRID)


def test_rows_of_a_fold_are_read_once_for_all_kappas(data, monkeypatch):
    from bregpath.regression import Regression

    seen, on = [], Regression.on

    def counted(self, counts=None, copies=False):
        seen.append(counts is None)
        return on(self, counts, copies)

    monkeypatch.setattr(Regression, "on", counted)
    cross_validate(data.X, data.y, loss="logistic", kappa=GRID, cv=4, n_jobs=2)
    assert seen.count(False) == 4


def test_damped_paths_of_few_columns_work_on_all_of_them(monkeypatch):
    """Where data are so large that columns are screened; the curves are the same."""
    seen, columns = set(), Moments.columns

    def counted(self, problem):
        seen.add(problem.kappa)
        return columns(self, problem)

    for n, damped in ((200, {0.3, 3.0}), (50, set())):
        data = bregpath.datasets.make_logistic(n, 40, 4, seed=1)
        options = {"loss": "logistic", "kappa": [0.3, 3.0, 30.0], "full": True, "n_times": 30}
        small = cross_validate(data.X, data.y, **options)
        with monkeypatch.context() as patch:
            patch.setattr(DenseStore, "is_small", False)
            patch.setattr(Moments, "columns", counted)
            seen.clear()
            large = cross_validate(data.X, data.y, **options)
        assert seen == damped
        for kappa, curves in small.surface.items():
            assert_allclose(large.surface[kappa]["deviance"].mean, curves["deviance"].mean, rtol=1e-8)


def test_the_path_is_that_of_the_chosen_kappa(data, selection):
    path = bregpath.trace_path(data.X, data.y, loss="logistic", kappa=selection.kappa, t=selection.times)
    assert selection.path.kappa == selection.kappa == selection.kappa_min
    assert_allclose(selection.path.at(selection.t).coef, path.at(selection.t).coef, atol=1e-8)
    sparse = selection.sparse()
    assert sparse.path.kappa == sparse.kappa == selection.kappa_sparse and sparse.t == selection.t_sparse
    train, test = selection.folds[1]
    alone = bregpath.trace_path(
        data.X[train], data.y[train], loss="logistic", kappa=selection.kappa, t=selection.times
    )
    point, i = alone.at(selection.t), int(np.flatnonzero(selection.times == selection.t)[0])
    assert_allclose(selection.out_of_fold[i, test], point.intercept + data.X[test] @ point.coef, atol=1e-7)


# --- the choice ----------------------------------------------------------------------------------------------


def curve_of(*bests):
    """A curve whose best point has these scores in the folds."""
    scores = np.column_stack([np.array(bests) + 1.0, bests])
    return ScoreCurve("deviance", False, 2.0, 2.0, np.array([1.0, 2.0]), scores.mean(0), scores.std(0), scores)


def test_choice_of_kappa():
    equal = np.ones(4)
    # The folds differ by more than the kappas; of the differences only that of 30 is beyond its own error.
    curves = {1.0: curve_of(1, 2, 3, 4), 10.0: curve_of(1.1, 2.0, 3.3, 4.0), 30.0: curve_of(1.5, 2.6, 3.5, 4.5)}
    assert choose_kappas(curves, equal) == (1.0, 30.0)
    del curves[30.0]
    assert choose_kappas(curves, equal) == (1.0, 10.0)
    curves[30.0] = curve_of(4, 5, 6, 7)
    assert choose_kappas(curves, equal) == (1.0, 10.0)
    same = {1.0: curve_of(1, 2, 3, 4), 10.0: curve_of(4, 3, 2, 1)}
    assert choose_kappas(same, equal) == (10.0, 10.0)  # of equally good ones the sparser
    one_fold = {1.0: curve_of(1.0), 10.0: curve_of(1.1)}
    assert choose_kappas(one_fold, np.ones(1)) == (1.0, 1.0)


def test_choice_is_that_of_the_surface(selection):
    for measure, sign in (("deviance", 1.0), ("auc", -1.0)):
        chosen = selection.by(measure)
        best = {kappa: (sign * curves[measure].mean).min() for kappa, curves in selection.surface.items()}
        assert chosen.kappa == chosen.kappa_min == min(best, key=best.get)
        curve = selection.surface[chosen.kappa][measure]
        assert (chosen.t, chosen.t_1se) == (curve.t_min, curve.t_1se) and chosen.measure == measure
        assert_array_equal(chosen.mean, curve.mean)
        assert chosen.kappa_sparse >= chosen.kappa_min
        limit = best[chosen.kappa] + chosen.se[curve.best]
        assert best[chosen.kappa_sparse] <= limit
        assert all(value > limit for kappa, value in best.items() if kappa > chosen.kappa_sparse)
    assert selection.by("auc").by("deviance").kappa == selection.kappa
    assert selection.sparse().one_se().t == selection.surface[selection.kappa_sparse]["deviance"].t_1se


def test_sparse_choice_is_sparser_where_many_variables_share_what_matters():
    """Columns that repeat five hidden ones with noise: averaging predicts best, and far fewer do nearly as well."""
    sizes = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        hidden = rng.normal(size=(120, 5))
        X = np.repeat(hidden, 12, axis=1) + rng.normal(size=(120, 60))
        selection = cross_validate(X, hidden.sum(axis=1) + rng.normal(size=120), kappa="cv")
        sparse = selection.sparse()
        assert sparse.kappa >= selection.kappa
        sizes.append([len(one.path.support(one.t)) for one in (sparse, selection)])
    few, many = np.mean(sizes, axis=0)
    assert few < 0.8 * many


def test_windows_grow_as_kappa_falls(data):
    whole = cross_validate(data.X, data.y, loss="logistic", kappa=GRID, full=True, t_ratio=20, n_times=25)
    for kappa in GRID:
        times = whole.surface[kappa]["deviance"].times
        assert len(times) == 25
        assert_allclose(times[-1] / times[0], 20 * max(1, 10 / kappa))
    assert whole.given_up == ()
    with pytest.warns(UserWarning, match="chooses nothing"):  # these are times of the null model
        own = cross_validate(data.X, data.y, loss="logistic", kappa=GRID, t=[1.0, 2.0, 4.0])
    assert all(list(curves["deviance"].times) == [1.0, 2.0, 4.0] for curves in own.surface.values())


def test_who_is_left_behind_is_given_up_and_said():
    """Data with a few strong effects, on which a tiny kappa has no chance; its curve is the beginning of the whole."""
    data = bregpath.datasets.make_linear(150, 60, 3, snr=20.0, seed=0)
    options = dict(kappa=[0.01, 10.0], n_times=60)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The best time is the last one")
        some = cross_validate(data.X, data.y, **options)
        whole = cross_validate(data.X, data.y, full=True, **options)
    assert some.kappa == whole.kappa == 10.0
    short, long = (one.surface[0.01]["deviance"] for one in (some, whole))
    assert len(short.times) <= len(long.times)
    assert_allclose(short.mean, long.mean[: len(short.times)], rtol=1e-8)
    for kappa in some.given_up:
        assert "given up" in repr(some) and len(some.surface[kappa]["deviance"].times) < 60


def test_early_end_finds_the_kappa_of_the_whole():
    """At nearly the same score, over a range of data; errors are in units of the standard error."""
    loss = []
    for seed in range(4):
        data = bregpath.datasets.make_logistic(120, 40, 4, seed=seed)
        some, whole = (cross_validate(data.X, data.y, loss="logistic", kappa="cv", full=full) for full in (False, True))
        best = [one.mean.min() for one in (some, whole)]
        loss.append((best[0] - best[1]) / whole.se[np.argmin(whole.mean)])
    assert min(loss) >= -1e-8 and np.mean(loss) < 0.05


# --- estimators ----------------------------------------------------------------------------------------------


def test_estimators_take_several_kappas(data, selection):
    best = bregpath.BregmanClassifier(kappa=GRID).fit(data.X, data.y)
    assert best.kappa_ == selection.kappa_min and best.t_ == selection.t_min
    sparse = bregpath.BregmanClassifier(kappa=GRID, stop="cv-sparse").fit(data.X, data.y)
    assert sparse.kappa_ == selection.kappa_sparse and sparse.t_ == selection.t_sparse
    assert_allclose(sparse.coef_[0], selection.sparse().path.at(sparse.t_).coef)
    one_se = bregpath.BregmanClassifier(kappa=GRID, stop="cv-1se").fit(data.X, data.y)
    assert one_se.kappa_ == best.kappa_ and one_se.t_ == selection.t_1se
    assert bregpath.BregmanClassifier().fit(data.X, data.y).kappa_ == 10.0
    linear = bregpath.datasets.make_linear(80, 10, 3, seed=0)
    assert bregpath.BregmanRegressor(kappa="cv").fit(linear.X, linear.y).kappa_ in KAPPAS


def test_too_few_rows_for_folds():
    X, y = np.arange(12.0).reshape(3, 4) ** 2, np.array([0.0, 1.0, 5.0])
    with pytest.warns(UserWarning, match="BIC chooses"):
        assert bregpath.BregmanRegressor(kappa=[1.0, 5.0]).fit(X, y).kappa_ == 5.0
    for stop in ("cv", "cv-sparse"):
        with pytest.warns(UserWarning, match="BIC chooses"):
            model = bregpath.BregmanRegressor(kappa="cv", stop=stop).fit(X, y)
        assert model.kappa_ == KAPPAS[-1] and model.path_.average is None  # the sparsest


def test_selection_of_several_kappas_is_pickled_and_shown(selection):
    text = repr(selection.sparse())
    assert "of 3 kappas, sparse choice" in text and f"kappa = {selection.kappa_sparse:g}" in text
    assert ("*min, sparse" if selection.kappa_sparse == selection.kappa_min else "*sparse") in text
    again = pickle.loads(pickle.dumps(selection))
    assert again.kappa == selection.kappa and again.sparse().t == selection.t_sparse
    assert_array_equal(again.by("auc").mean, selection.by("auc").mean)


def test_rules_are_said_once_and_in_the_right_number(selection, data):
    assert selection.sparse().one_se().one_se().rule == selection.sparse().one_se().rule
    one = cross_validate(data.X, data.y, loss="logistic", kappa=[10.0])
    assert one.rule == "5-fold cross-validation of 1 kappa" and one.sparse().t == one.t


def test_figure_has_a_curve_a_kappa(selection):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    ax = selection.plot()
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert [f"κ = {kappa:g}" for kappa in GRID] == labels[:3]
    lines = {line.get_label(): line for line in ax.get_lines()}
    for kappa in GRID:
        assert_array_equal(lines[f"κ = {kappa:g}"].get_ydata(), selection.surface[kappa]["deviance"].mean)
    assert {name for text in ax.texts for name in text.get_text().split(", ")} == {"min", "sparse"}
    pyplot.close("all")


# --- bad input -----------------------------------------------------------------------------------------------


BAD = {
    "empty": ([], "`kappa` is an empty list"),
    "unsorted": ([10.0, 1.0], "`kappa` must be a list of numbers that increase strictly"),
    "twice": ([1.0, 1.0], "`kappa` must be a list of numbers that increase strictly"),
    "zero": ([0.0, 1.0], "`kappa` must be a finite number above 0"),
    "negative": ([-1.0, 1.0], "`kappa` must be a finite number above 0"),
    "nan": ([1.0, np.nan], "`kappa` must be a finite number above 0"),
    "matrix": ([[1.0, 2.0]], "`kappa` must be a list"),
}


@pytest.mark.parametrize(("kappa", "message"), BAD.values(), ids=BAD)
def test_bad_grids(kappa, message, data):
    with pytest.raises(ValueError, match=message):
        cross_validate(data.X, data.y, loss="logistic", kappa=kappa)
    with pytest.raises(ValueError, match=message):
        bregpath.BregmanClassifier(kappa=kappa).fit(data.X, data.y)
    with pytest.raises(ValueError, match=message):
        graph_of("ising-composite", kappa=kappa, stop="cv").fit(data_of("ising-composite"))


def test_what_does_not_go_with_several_kappas(data):
    with pytest.raises(ValueError, match="`step`=0.1 is fixed"):
        cross_validate(data.X, data.y, loss="logistic", kappa=GRID, step=0.1)
    with pytest.raises(ValueError, match="this `flow` has no kappa"):
        cross_validate(data.X, data.y, loss="logistic", kappa=GRID, flow="giss")
    for kappa in (["a"], "auto"):
        with pytest.raises(TypeError, match="`kappa` must be a number"):
            cross_validate(data.X, data.y, loss="logistic", kappa=kappa)
    for kappa in ("cv", GRID):
        with pytest.raises(TypeError, match="`kappa` must be a number.*cross_validate"):
            bregpath.trace_path(data.X, data.y, loss="logistic", kappa=kappa)
    for stop in ("bic", 2.0):
        with pytest.raises(ValueError, match="chosen from by cross-validation"):
            bregpath.BregmanClassifier(kappa="cv", stop=stop).fit(data.X, data.y)
        with pytest.raises(ValueError, match="chosen from by cross-validation"):
            graph_of("ising-composite", kappa="cv", stop=stop).fit(data_of("ising-composite"))
    with pytest.raises(ValueError, match='`stop`="cv-sparse" chooses among several'):
        bregpath.BregmanClassifier(stop="cv-sparse").fit(data.X, data.y)
    with pytest.raises(ValueError, match="There is one kappa only"):
        cross_validate(data.X, data.y, loss="logistic").sparse()


def test_grid_of_cv():
    assert check_kappas("cv") == KAPPAS and list(KAPPAS) == sorted(KAPPAS)
    assert check_kappas(3) is None and check_kappas((1, 2)) == (1.0, 2.0)
    assert module.window(100.0, 30.0) == 100.0 and module.window(100.0, 0.1) == 10_000.0
