"""Paths that are read as their means over time."""

from __future__ import annotations

import pickle
from pathlib import Path as File
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bregpath
from bregpath import Path, Result, trace_path
from bregpath.flow.mean import AVERAGES
from bregpath.regression import Regression
from tests.helpers import SIMULATORS, make_data

MEANS = pytest.mark.parametrize("average", sorted(AVERAGES))


def quadrature(path: Path, t: float, power: float, n: int = 40_000) -> tuple[np.ndarray, np.ndarray]:
    """Intercepts (q,) and coefficients (p, q) of the mean at t, by many midpoints."""
    s = t * (np.arange(n) + 0.5) / n
    intercepts, columns, values = path.read(s)
    weights = (power + 1) * (s / t) ** power / n
    coef = np.zeros((path.n_features, path.n_outputs))
    coef[columns] = np.tensordot(weights, values, axes=1)
    return weights @ intercepts, coef


def assert_is_mean(mean: Path, path: Path, power: float, tol: float) -> None:
    for t in mean.t[[20, 60, -1]]:
        end = min(float(t), float(path.t[-1]))
        intercept, coef = quadrature(path, end, power)
        got = mean.at(end)
        assert_allclose(np.reshape(got.coef, coef.shape), coef, rtol=0, atol=tol * np.abs(coef).max())
        largest = max(np.abs(coef).max(), np.abs(intercept).max())
        assert_allclose(np.reshape(got.intercept, -1), intercept, rtol=0, atol=tol * largest)


# --- what it is ----------------------------------------------------------------------------------------------


@MEANS
@pytest.mark.parametrize("loss", sorted(SIMULATORS))
def test_the_mean_is_the_integral(loss: str, average: str) -> None:
    data = SIMULATORS[loss](80, 12, 3, seed=2)
    options: dict[str, Any] = {"loss": loss, "t_ratio": 30.0, "saturation": None}
    mean = trace_path(data.X, data.y, average=average, **options)
    assert mean.average == average
    assert_is_mean(mean, trace_path(data.X, data.y, **options), AVERAGES[average], 2e-3)


@MEANS
@pytest.mark.parametrize("options", [{"step": 0.01}, {"flow": "giss"}, {"kappa": 0.3}, {"penalty": "group"}], ids=str)
def test_of_any_flow(options: dict[str, Any], average: str) -> None:
    data = bregpath.datasets.make_linear(60, 8, 3, seed=0)
    options = {**options, "t_ratio": 20.0, "saturation": None}
    if "penalty" in options:
        options["groups"] = np.arange(8) // 2
    mean = trace_path(data.X, data.y, average=average, **options)
    assert_is_mean(mean, trace_path(data.X, data.y, **options), AVERAGES[average], 2e-3)


def test_thresholds() -> None:
    """Of orthogonal columns the path is a hard threshold, the linear mean a garrote and the uniform one the lasso."""
    rng = np.random.default_rng(0)
    X = np.linalg.qr(rng.normal(size=(50, 12)))[0] * np.sqrt(50)
    y = X @ rng.normal(size=12) + rng.normal(size=50)
    b = X.T @ y / 50
    options: dict[str, Any] = {"flow": "giss", "fit_intercept": False, "standardize": False, "saturation": None}
    for t in (1.5 / np.abs(b).max(), 2.0, 7.0):
        kept = np.abs(b) * t > 1
        hard, garrote, soft = (
            trace_path(X, y, t=[t], average=average, **options).at(t).coef for average in (None, "linear", "uniform")
        )
        assert_allclose(hard, np.where(kept, b, 0), atol=1e-10)
        assert_allclose(garrote, np.where(kept, b - 1 / (b * t**2), 0), atol=1e-10)
        assert_allclose(soft, np.where(kept, b - np.sign(b) / t, 0), atol=1e-10)


def test_the_uniform_mean_is_the_lasso() -> None:
    """Of any columns, as long as none leaves or changes its sign: ``z(t) / t`` is the gradient at the mean."""
    from sklearn.linear_model import Lasso

    data = bregpath.datasets.make_linear(300, 10, 4, seed=1)
    X, y = data.X - data.X.mean(axis=0), data.y - data.y.mean()
    options: dict[str, Any] = {"flow": "giss", "standardize": False, "saturation": None, "t_ratio": 8.0}
    path, mean = (trace_path(X, y, average=average, **options) for average in (None, "uniform"))
    assert path.events[2].all() and (np.abs(np.diff(np.sign(path.coef), axis=0)) < 2).all()  # as assumed
    assert len(path.event_times) >= 4
    for t in path.t[::25]:
        lasso = Lasso(alpha=1 / t, tol=1e-12, max_iter=100_000).fit(X, y)
        assert_allclose(mean.at(float(t)).coef, lasso.coef_, atol=1e-7)


def test_entries_are_those_of_the_path_and_nothing_leaves() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 30)) + 3 * rng.normal(size=(60, 1))
    y = X[:, :15] @ rng.normal(size=15) + rng.normal(size=60)
    options: dict[str, Any] = {"kappa": 0.3, "t_ratio": 1000.0, "saturation": None}
    path, mean = (trace_path(X, y, average=average, **options) for average in (None, "linear"))
    assert not path.events[2].all()  # some leave the path
    assert mean.events[2].all() and np.isinf(mean.exit_times).all()
    assert_array_equal(mean.entry_times, path.entry_times)
    for t in mean.t[1:]:
        assert_array_equal(np.flatnonzero(mean.entry_times < t), mean.support(float(t)))
    assert (np.diff(mean.df) >= 0).all()


@MEANS
def test_with_the_path_itself_behind(average: str) -> None:
    X, y = make_data("gaussian")
    track = Regression.read(X, y, average=average).track()
    track.start()
    times = track.times[:50]
    track.reach(float(times[-1]))
    both, mean, plain = (some.read(times) for some in (track.with_plain(), track, track.read_as(None)))
    for part in (0, 2):
        assert_array_equal(both[part], np.concatenate([mean[part], plain[part]]))


def test_before_the_first_entry() -> None:
    X, y = make_data("logistic")
    path, mean = (trace_path(X, y, loss="logistic", average=average) for average in (None, "linear"))
    t = float(path.t[0])
    assert_allclose(mean.at(0.5 * t).intercept, path.at(0.5 * t).intercept)
    assert not mean.at(t).coef.any()
    assert_allclose(mean.deviance[0], path.deviance[0])


# --- what holds for every path -------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["gaussian", "logistic"])
def test_screened_extended_weighted(loss: str) -> None:
    data = SIMULATORS[loss](60, 200, 4, seed=5)
    options: dict[str, Any] = {"loss": loss, "average": "linear", "saturation": None}
    path = trace_path(data.X, data.y, **options)
    assert_allclose(trace_path(data.X, data.y, screening=False, **options).coef, path.coef, atol=1e-7)
    longer = trace_path(data.X, data.y, t=path.t[:50], **options).extend(float(path.t[-1]))
    assert_allclose(longer.at(float(path.t[-1])).coef, path.coef[-1], atol=1e-8)
    counts = np.random.default_rng(0).integers(0, 3, size=60)
    copies = np.repeat(np.arange(60), counts)
    weighted = trace_path(data.X, data.y, sample_weight=counts, **options)
    repeated = trace_path(data.X[copies], data.y[copies], **options)
    assert_allclose(weighted.coef, repeated.coef, atol=1e-6)


def test_deviance_is_that_of_the_mean() -> None:
    X, y = make_data("gaussian")
    mean = trace_path(X, y, average="linear")
    for i in (10, 50, len(mean.t) - 1):
        assert_allclose(mean.deviance[i], np.mean((y - mean.predict(X, float(mean.t[i]))) ** 2), rtol=1e-8)
    assert "linear mean" in repr(mean) and "mean" not in repr(trace_path(X, y))


def test_files_and_pickles(tmp_path: File) -> None:
    X, y = make_data("logistic")
    mean = trace_path(X, y, loss="logistic", average="uniform")
    mean.save(tmp_path / "mean.npz")
    for again in (bregpath.load_path(tmp_path / "mean.npz"), pickle.loads(pickle.dumps(mean))):
        assert again.average == "uniform"
        assert_array_equal(again.coef, mean.coef)
        assert_array_equal(again.entry_times, mean.entry_times)


def test_limits_hold() -> None:
    data = bregpath.datasets.make_linear(80, 10, 4, seed=2)
    mean = trace_path(data.X, data.y, average="linear", lower=0.0, upper=0.5)
    assert (mean.coef >= 0).all() and (mean.coef <= 0.5).all()


def test_rules_see_the_mean() -> None:
    X, y = make_data("gaussian")
    path = trace_path(X, y, average="linear", stop=bregpath.StopAtVariables(3))
    assert path.result is Result.STOPPED and path.df[-1] == 3
    seen: list[np.ndarray] = []

    def watch(progress: bregpath.Progress) -> bool:
        seen.append(progress.coef)
        return len(seen) > 5

    path = trace_path(X, y, average="linear", stop=watch)
    assert_allclose(path.coef[-1], seen[-1], atol=1e-12)


def test_it_goes_on_where_the_path_is_saturated() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 60))
    y = X[:, 0] + X[:, 1]
    path, mean = (trace_path(X, y, average=average, t_ratio=1e4) for average in (None, "linear"))
    assert path.result is mean.result is Result.SATURATED
    assert mean.t[-1] > path.t[-1]


# --- refusals ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("average", ["cubic", 1, True, ["linear"]], ids=repr)
def test_an_unknown_mean(average: Any) -> None:
    with pytest.raises(ValueError, match=r"`average` must be one of \['linear', 'uniform'\] or None"):
        trace_path(*make_data("gaussian"), average=average)


def test_no_mean_of_structures() -> None:
    with pytest.raises(ValueError, match="`average` knows no `structure`"):
        trace_path(None, np.arange(10.0), structure="fused", average="linear")


def test_models_say_that_they_are_means() -> None:
    data = bregpath.datasets.make_linear(60, 8, 3, seed=1)
    path = bregpath.trace_path(data.X, data.y, average="uniform")
    assert repr(path.at(3.0)).startswith("Model at t = 3, uniform mean of the path: ")
    model = bregpath.BregmanRegressor(stop=3.0, average="uniform").fit(data.X, data.y)
    assert model.summary() == repr(path.at(3.0))
    assert repr(bregpath.trace_path(data.X, data.y).at(3.0)).startswith("Model at t = 3: ")
