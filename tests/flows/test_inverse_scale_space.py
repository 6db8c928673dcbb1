"""Inverse scale space: coefficients that jump from optimum to optimum at exact times."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bregpath
from bregpath import Result, StopAtVariables, _kernels
from tests.fuzz.oracle import Oracle
from tests.helpers import ALL_LOSSES, golden, make_data
from tests.subgradient import assert_subgradient, knots

ISS = golden("libra_iss")


def giss(X: Any, y: Any, **options: Any) -> bregpath.Path:
    return bregpath.trace_path(X, y, **{"flow": "giss", "t_ratio": 30.0, "n_times": 40, **options})


# --- right -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(ISS["cases"]))
def test_golden(name):
    """Rows of Libra hold on [t_i, t_i+1)."""
    case = ISS["cases"][name]
    X, y = (np.array(ISS["data"][case["data"]][key]) for key in ("X", "y"))
    intercept, normalize = case["params"]["intercept"], case["params"]["normalize"]
    scale = np.ones(X.shape[1])
    if normalize and not intercept:  # by the norm, not by the deviation from the mean
        scale, normalize = np.sqrt(np.mean(X**2, axis=0)), False
    t = np.array(case["t"][1:])
    inside = np.append(np.sqrt(t[1:] * t[:-1]), 1.001 * t[-1])
    options = {"fit_intercept": intercept, "standardize": "X" if normalize else False}
    path = giss(X / scale, y, t=inside, saturation=None, **options)
    expected = np.array(case["path"][1:])
    assert_allclose(path.coef / scale, expected, atol=1e-8 * np.abs(expected).max())
    assert_allclose(path.intercept, case["a0"][1:], rtol=1e-8, atol=1e-8)
    assert_allclose(knots(path)[:-1], t, rtol=1e-8)


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "factors": {"penalty_factor": np.array([0, 0, 2, 0.5, np.inf, 1, 1, 1, 1, 1])},
    "box": {"lower": -0.1, "upper": 0.2},
    "nonnegative": {"lower": 0.0},
    "no intercept": {"fit_intercept": False},
    "weights and offset": {
        "sample_weight": np.arange(80) % 3,
        "offset": np.sin(np.arange(80.0)),
    },
}


@pytest.mark.parametrize("options", list(OPTIONS))
@pytest.mark.parametrize("loss", ALL_LOSSES)
def test_subgradient_rebuilt_from_the_coefficients(loss, options):
    X, y = make_data(loss, 80)
    wishes = OPTIONS[options]
    if loss == "multinomial" and "offset" in wishes:
        wishes = {**wishes, "offset": np.outer(wishes["offset"], [1.0, 0.0, -1.0])}
    for standardize in (True, False):
        path = giss(X, y, loss=loss, standardize=standardize, **wishes)
        assert_subgradient(path, Oracle(X, y, loss=loss, standardize=standardize, **wishes))
        assert np.count_nonzero(path.coef[-1]) >= 2


@pytest.mark.parametrize("loss", ALL_LOSSES)
def test_it_is_the_limit_of_large_kappa(loss):
    X, y = make_data(loss, 80)
    limit = giss(X, y, loss=loss)
    far = []
    for kappa in (1.0, 10.0, 100.0):
        path = bregpath.trace_path(X, y, loss=loss, kappa=kappa, tol=1e-4, t=limit.t)
        far.append(np.mean(np.abs(path.coef - limit.coef).reshape(40, -1).max(axis=1)) / np.abs(limit.coef).max())
    assert far[2] < 0.02 and far[2] < 0.3 * far[1] < 0.3 * far[0]


def test_infinite_kappa_is_the_flow(data):
    X, y = data
    path = bregpath.trace_path(X, y, kappa=np.inf)
    assert path.kappa == np.inf and bregpath.trace_path(X, y, flow="giss", kappa=3.0).kappa == np.inf
    assert_array_equal(path.coef, bregpath.trace_path(X, y, flow="giss").coef)
    assert "kappa=inf" in repr(path)


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray]:
    return make_data("gaussian", 80)


def test_between_two_events_it_is_least_squares_on_the_support(data):
    X, y = data
    path = giss(X, y, standardize=False, t_ratio=500.0, saturation=None)
    for t in np.sqrt(knots(path)[1:] * knots(path)[:-1]):
        point = path.at(t)
        support = np.flatnonzero(point.coef)
        A = np.column_stack([np.ones(len(y)), X[:, support]])
        best = np.linalg.lstsq(A, y, rcond=None)[0]
        if np.all(np.sign(best[1:]) == np.sign(point.coef[support])):
            assert_allclose(np.append(point.intercept, point.coef[support]), best, rtol=1e-9, atol=1e-12)
    assert len(support) == 10


def test_equal_columns_share(data):
    X, y = data
    single, double = giss(X, y), giss(np.hstack([X, X[:, :3]]), y)
    assert_allclose(double.coef[:, :3], double.coef[:, 10:], atol=1e-12)
    assert_allclose(double.coef[:, :3] + double.coef[:, 10:], single.coef[:, :3], atol=1e-9)
    assert_allclose(double.coef[:, 3:10], single.coef[:, 3:], atol=1e-9)


def test_two_classes_of_the_multinomial_loss_mirror_each_other():
    X, y = make_data("logistic", 80)
    path, logistic = giss(X, y, loss="multinomial"), giss(X, y, loss="logistic")
    assert_allclose(path.coef[..., 0], -path.coef[..., 1], atol=1e-8)
    assert_allclose(path.coef[..., 1] - path.coef[..., 0], logistic.coef, atol=1e-7)


@pytest.mark.parametrize(("share", "result"), [(1.0, Result.SATURATED), (0.3, Result.UNBOUNDED)])
def test_separable_classes_end_the_path(share, result):
    """The model that it would jump to has no finite coefficients: a column tells the class of all rows, or of some."""
    X, y = make_data("logistic", 80)
    telling = (y == np.unique(y)[1]) & (np.arange(80) < 80 * share)
    X = np.column_stack([X, 3.0 * telling])
    path = giss(X, y, loss="logistic", t_ratio=200.0)
    assert path.result is result and path.deviance_ratio[-1] < 0.999
    assert np.abs(path.coef).max() < 10


# --- every kernel, every store -------------------------------------------------------------------------------------


@pytest.mark.skipif(not _kernels.has_compiled(), reason="needs the compiled core")
@pytest.mark.parametrize("options", list(OPTIONS))
def test_the_compiled_core_is_the_reference(monkeypatch, options):
    from bregpath._kernels import compiled_events

    data = bregpath.datasets.make_linear(80, 10, 6, seed=3)
    options = {**OPTIONS[options], "t_ratio": 1000.0, "saturation": None}
    compiled, calls = giss(data.X, data.y, **options), []
    monkeypatch.setattr(compiled_events, "supports", lambda system: bool(calls.append(system)))
    reference = giss(data.X, data.y, **options)
    assert calls and len(path_events := reference.event_times) >= 2
    assert_allclose(compiled.event_times, path_events, rtol=1e-9)
    assert_allclose(knots(compiled), knots(reference), rtol=1e-9)
    assert_allclose(compiled.coef, reference.coef, rtol=1e-9, atol=1e-11)
    assert_allclose(compiled.intercept, reference.intercept, rtol=1e-9, atol=1e-11)
    assert_allclose(compiled.deviance, reference.deviance, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_columns_that_leave(seed):
    """Strongly correlated columns make many exits: the factor loses rows from its middle."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(60, 3))
    X = common @ rng.normal(size=(3, 25)) + 0.3 * rng.normal(size=(60, 25))
    y = X @ np.where(np.arange(25) < 6, rng.normal(size=25), 0.0) + 0.3 * rng.normal(size=60)
    path = giss(X, y, t_ratio=1e4, saturation=None)
    assert np.sum(~path.events[2]) >= 3
    for t in np.sqrt(knots(path)[1:] * knots(path)[:-1]):
        support = path.support(t)
        residual = y - path.predict(X, t)
        assert_allclose(X[:, support].T @ residual / 60, 0.0, atol=1e-9 * np.abs(X.T @ y).max())


@pytest.mark.parametrize("loss", ["gaussian", "logistic"])
def test_screened_is_unscreened(loss):
    make = bregpath.datasets.make_logistic if loss == "logistic" else bregpath.datasets.make_linear
    data = make(250, 20_000, 6, seed=4)
    options = {"loss": loss, "stop": StopAtVariables(25)}
    screened, whole = giss(data.X, data.y, **options), giss(data.X, data.y, screening=False, **options)
    assert screened.stats.working_columns < 500 and whole.stats.working_columns == 20_000
    assert_allclose(screened.t, whole.t, rtol=1e-9)
    assert_allclose(screened.coef, whole.coef, atol=1e-8)
    assert_allclose(screened.entry_times, whole.entry_times, rtol=1e-9)


def test_sparse_is_dense():
    from scipy.sparse import random as sparse_random

    X = sparse_random(200, 30, 0.15, format="csc", random_state=2)
    y = X @ np.where(np.arange(30) < 4, 2.0, 0.0) + 0.2 * np.random.default_rng(1).normal(size=200)
    for loss, response in (("gaussian", y), ("logistic", y > np.median(y))):
        sparse, dense = giss(X, response, loss=loss), giss(X.toarray(), response, loss=loss)
        assert_allclose(sparse.coef, dense.coef, atol=1e-8)


# --- everything else takes it --------------------------------------------------------------------------------------


def test_selection_and_estimators():
    data = bregpath.datasets.make_logistic(200, 20, 4, seed=1)
    options = {"loss": "logistic", "flow": "giss"}
    selection = bregpath.cross_validate(data.X, data.y, **options)
    assert set(selection.path.support(selection.t_min)) >= {0, 1, 2, 3}
    model = bregpath.BregmanClassifier(flow="giss").fit(data.X, data.y)
    assert_allclose(model.t_, selection.t_min)
    assert model.score(data.X, data.y) > 0.8
    path = bregpath.trace_path(data.X, data.y, **options)
    chosen = bregpath.information_criterion(path, "bic", n=200)
    assert set(path.support(chosen.t_min)) >= {0, 1, 2, 3}
    stable = bregpath.stability_selection(data.X, data.y, n_replicates=20, **options)
    assert set(stable.selected) <= {0, 1, 2, 3} and len(stable.selected) >= 3


def test_saved_extended_and_stopped(tmp_path, data):
    X, y = data
    path = giss(X, y, t_ratio=5.0)
    path.save(tmp_path / "path.npz")
    loaded = bregpath.load_path(tmp_path / "path.npz")
    times = np.linspace(0.5, 5.0, 37) * path.t[0]
    assert_array_equal([loaded.at(t).coef for t in times], [path.at(t).coef for t in times])
    assert loaded.kappa == np.inf
    stopped = giss(X, y, t_ratio=1000.0, stop=StopAtVariables(3))
    assert len(stopped.support(stopped.t[-1])) == 3
    assert stopped.t[-1] == pytest.approx(np.sort(giss(X, y, t_ratio=1000.0).entry_times)[3], rel=1e-9)


@pytest.mark.parametrize(("kind", "loss"), [("ising", "composite"), ("ising", "mpf"), ("gaussian", "composite")])
def test_graphs(kind, loss):
    if kind == "ising":
        X, graph = bregpath.datasets.make_ising_grid(3, 1.5, 500, seed=0).X, bregpath.IsingGraph
    else:
        X, graph = bregpath.datasets.make_gaussian_graph(p=8, n=300, seed=0).X, bregpath.GaussianGraph
    limit = graph(loss=loss, flow="giss", t_ratio=20.0, n_times=30).fit(X)
    near = graph(loss=loss, kappa=1000.0, t_ratio=20.0, n_times=30, tol=0.005).fit(X)
    a, b = (np.array([model.path_.weights(t) for t in limit.path_.t]) for model in (limit, near))
    assert np.median(np.abs(a - b).max(axis=(1, 2))) < 2e-3 * np.abs(a).max()
    assert limit.adjacency_.sum() > 0


# --- refused -------------------------------------------------------------------------------------------------------


def test_what_it_does_not_take(data):
    X, y = data
    with pytest.raises(ValueError, match=r'flow="giss" takes penalty="l1" only, found \'group\'.*flow="glbi"'):
        giss(X, y, penalty="group", groups=np.arange(10) // 2)
    for options in ({"flow": "giss"}, {"flow": "glbi", "kappa": np.inf}):
        with pytest.raises(ValueError, match=r'`step` must be "adaptive" with flow="giss".*finite `kappa`'):
            bregpath.trace_path(X, y, step=0.1, **options)
    with pytest.raises(ValueError, match="`kappa` must be a finite number above 0"):
        bregpath.trace_path(X, y, kappa=-np.inf)
    with pytest.raises(ValueError, match='takes penalty="l1" only'):
        bregpath.PottsGraph(flow="giss").fit(np.random.default_rng(0).integers(0, 3, size=(100, 4)))
