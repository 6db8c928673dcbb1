"""Stiff paths by quadratic models of the loss: as accurate as stages, on either kernel, whoever looks when."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal

import bregpath
from bregpath import _kernels
from bregpath._kernels import quadratic
from bregpath._kernels.quadratic_model import Model
from bregpath.stores import base
from tests.helpers import assert_same_path

LOSSES = ("logistic", "poisson", "huber", "multinomial")
of_one_or_several_outputs = pytest.mark.parametrize("loss", ["logistic", "multinomial"])


@pytest.fixture
def eager(monkeypatch):
    """Models take over as soon as anybody looks."""
    monkeypatch.setattr(quadratic, "MARGIN", 0.02)
    monkeypatch.setattr(quadratic, "PATIENCE", 1e4)


def noisy(loss: str, n: int = 500, p: int = 40, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Data that explain little, some of them correlated."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 0.5 * rng.standard_normal((n, 1))
    eta = 0.15 * X[:, :8] @ rng.standard_normal(8)
    if loss == "multinomial":
        eta = 0.3 * X[:, :8] @ rng.standard_normal((8, 4)) + rng.gumbel(size=(n, 4))
        return X, eta.argmax(axis=1)
    if loss == "logistic":
        return X, (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(float)
    if loss == "poisson":
        return X, rng.poisson(np.exp(eta + 0.5)).astype(float)
    return X, eta + rng.standard_t(3, n)


def trace(X: Any, y: Any, **options: Any) -> bregpath.Path:
    return bregpath.trace_path(X, y, **{"t_ratio": 50.0, **options})


def deviation(path: bregpath.Path, exact: bregpath.Path) -> float:
    """Largest error of a coefficient over the largest coefficient, at any time."""
    size, error = (np.abs(x).reshape(len(exact.t), -1).max(axis=1) for x in (exact.coef, path.coef - exact.coef))
    return float((error / np.maximum(size, 1e-2 * size.max())).max())


class Exponential:
    """A loss of one's own, whose curvature differences tell: exp(-y eta)."""

    is_classifier = True

    def encode(self, y, w):
        return np.where(y > 0, 1.0, -1.0)

    def value(self, eta, y, w):
        return float(w @ np.exp(-y * eta))

    def gradient(self, eta, y, w):
        return -w * y * np.exp(-y * eta)


@pytest.mark.usefixtures("kernels", "eager")
@pytest.mark.parametrize("loss", LOSSES)
def test_models_err_no_more_than_stages(loss, monkeypatch):
    by_models, by_stages = [], []
    size = (300, 15) if loss == "multinomial" else (500, 40)
    for seed in range(4):
        X, y = noisy(loss, *size, seed=seed)
        with monkeypatch.context() as patch:
            path = trace(X, y, loss=loss, tol=0.01)
            patch.setattr(quadratic, "_estimate", lambda system: quadratic.NO_MODELS)
            stages, exact = (trace(X, y, loss=loss, tol=tol) for tol in (0.01, 1e-4))
        assert path.stats.models > 0 and stages.stats.models == exact.stats.models == 0
        assert path.result is exact.result
        by_models.append(deviation(path, exact))
        by_stages.append(deviation(stages, exact))
        assert_allclose(path.deviance, exact.deviance, rtol=2e-3)
    assert np.max(by_models) <= 0.015
    assert np.median(by_models) <= max(0.01, np.median(by_stages))


@pytest.mark.skipif(not _kernels.has_compiled(), reason="needs the compiled core")
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    "options",
    [{}, {"lower": 0.0}, {"fit_intercept": False}, {"penalty_factor": [0.0, 2.0] * 20}, {"standardize": False}],
    ids=str,
)
def test_compiled_equals_numpy(loss, options, monkeypatch):
    X, y = noisy(loss)
    compiled = trace(X, y, loss=loss, **options)
    monkeypatch.setattr(_kernels, "_compiled", None)
    reference = trace(X, y, loss=loss, **options)
    assert compiled.stats.models > 0
    assert compiled.stats.models == reference.stats.models
    assert_allclose(compiled.coef, reference.coef, rtol=0, atol=1e-8 * np.abs(reference.coef).max())
    assert_allclose(compiled.intercept, reference.intercept, rtol=0, atol=1e-8)


@pytest.mark.usefixtures("kernels", "eager")
def test_limits_and_factors_hold(monkeypatch):
    X, y = noisy("logistic")
    factors = np.ones(40)
    factors[:2], factors[2:4] = 0.0, np.inf
    options = {"loss": "logistic", "penalty_factor": factors, "lower": np.where(factors == 0, -np.inf, 0.0)}
    path = trace(X, y, **options)
    assert path.stats.models > 0
    assert (path.coef[:, 2:4] == 0).all() and (path.coef[:, 4:] >= 0).all() and (path.coef[-1, :2] != 0).all()
    monkeypatch.setattr(quadratic, "_estimate", lambda system: quadratic.NO_MODELS)
    exact = trace(X, y, **options, tol=1e-4)
    assert deviation(path, exact) <= 0.015


@pytest.mark.usefixtures("kernels", "eager")
@of_one_or_several_outputs
def test_sparse_columns_are_the_dense_ones(loss):
    X, y = noisy(loss, n=400)  # so few rows that a dense X stays as it is
    X = np.where(np.random.default_rng(3).random(X.shape) < 0.3, X, 0.0)
    dense, sparse = (trace(A, y, loss=loss) for A in (X, scipy.sparse.csc_array(X)))
    assert dense.stats.models == sparse.stats.models > 0
    assert_same_path(dense, sparse)


@pytest.mark.usefixtures("eager")
def test_one_hot_data_are_left_to_stages():
    rng = np.random.default_rng(0)
    X = np.concatenate([np.eye(5)[rng.integers(0, 5, 400)] for _ in range(12)], axis=1)
    y = (rng.random(400) < 0.5).astype(int)
    assert all(trace(A, y, loss="logistic").stats.models == 0 for A in (X, scipy.sparse.csc_array(X)))


class Pair:
    """A loss of two outputs, which are to be y and its square, and like each other: their mean counts, too."""

    n_outputs = 2

    def value(self, eta, y, w):
        u = eta - np.stack([y, y**2], axis=1)
        return float(w @ (np.logaddexp(u, -u).sum(axis=1) + 0.1 * (eta[:, 0] - eta[:, 1]) ** 2))

    def gradient(self, eta, y, w):
        u = eta - np.stack([y, y**2], axis=1)
        return w[:, None] * (np.tanh(u) + 0.2 * (eta[:, 0] - eta[:, 1])[:, None] * np.array([1.0, -1.0]))


@pytest.mark.usefixtures("kernels", "eager")
@pytest.mark.parametrize("loss", [Exponential, Pair])
def test_a_loss_of_ones_own(loss, monkeypatch):
    X, y = noisy("logistic" if loss is Exponential else "huber")
    path = trace(X, y, loss=loss())
    assert path.stats.models > 0
    monkeypatch.setattr(quadratic, "_estimate", lambda system: quadratic.NO_MODELS)
    assert deviation(path, trace(X, y, loss=loss(), tol=1e-4)) <= 0.015


@pytest.mark.usefixtures("kernels", "eager")
@of_one_or_several_outputs
def test_weights_are_repeated_rows(loss):
    X, y = noisy(loss, n=500)
    weights = np.random.default_rng(1).integers(0, 3, len(y))
    few = trace(X, y, loss=loss, sample_weight=weights)
    many = trace(np.repeat(X, weights, axis=0), np.repeat(y, weights), loss=loss)
    assert few.stats.models > 0
    assert_same_path(few, many, rtol=1e-6)


@pytest.mark.usefixtures("kernels", "eager")
def test_an_offset_is_a_column_that_is_known():
    X, y = noisy("logistic")
    offset = np.linspace(-1.0, 1.0, len(y))
    path = trace(X, y, loss="logistic", offset=offset)
    assert path.stats.models > 0
    eta = X @ path.coef[-1] + path.intercept[-1] + offset
    assert_allclose(path.deviance[-1], 2 * np.mean(np.logaddexp(0, eta) - y * eta), rtol=1e-9)


@pytest.mark.usefixtures("kernels", "eager")
@of_one_or_several_outputs
def test_when_who_looks_does_not_matter(loss):
    """Path in pieces, with somebody watching, and at once."""
    X, y = noisy(loss)
    once = trace(X, y, loss=loss)
    pieces = trace(X, y, loss=loss, t_ratio=3.0)
    for t in (5.0, 5.01, 17.0, 50.0):
        pieces = pieces.extend(t * once.t[0])
    assert once.stats.models == pieces.stats.models > 0
    watched = trace(X, y, loss=loss, stop=lambda model: False)
    for other in (pieces, watched):
        at = [other.at(t) for t in once.t]
        coef = np.array([model.coef for model in at])
        assert_allclose(coef, once.coef, rtol=0, atol=1e-10 * np.abs(once.coef).max())


@pytest.mark.parametrize("loss", LOSSES)
def test_models_take_over_where_they_are_cheaper(loss, monkeypatch):
    X, y = noisy(loss, n=3000, p=100)
    path = trace(X, y, loss=loss)
    monkeypatch.setattr(quadratic, "_estimate", lambda system: quadratic.NO_MODELS)
    stages = trace(X, y, loss=loss)
    assert path.stats.models > 0
    assert path.stats.column_products < 0.5 * stages.stats.column_products


@pytest.mark.usefixtures("kernels", "eager")
@pytest.mark.parametrize("loss", LOSSES)
def test_a_stretch_far_too_long_is_shortened(loss, monkeypatch):
    """Where a model leads to losses that are no numbers, too."""
    X, y = noisy(loss)
    y = 100 * y if loss == "poisson" else y
    usual = trace(X, y, loss=loss)
    monkeypatch.setattr(quadratic, "FIRST_LENGTH", 20.0)
    monkeypatch.setattr(quadratic, "LONGER", 50.0)
    path = trace(X, y, loss=loss)
    assert path.stats.models > 0 and path.result is usual.result
    assert deviation(path, usual) <= 0.02


@pytest.mark.parametrize("n", [300, 1000])
def test_data_that_say_much_are_left_to_stages(n):
    data = bregpath.datasets.make_logistic(n, 60, 10, seed=0)
    assert bregpath.trace_path(data.X, data.y, loss="logistic").stats.models == 0


@pytest.mark.usefixtures("kernels", "eager")
def test_stages_go_on_where_models_are_no_good(monkeypatch):
    X, y = noisy("logistic")
    by_models = trace(X, y, loss="logistic")
    monkeypatch.setattr(quadratic, "PATIENCE", 0.0)
    path = trace(X, y, loss="logistic")
    assert 0 < path.stats.models < by_models.stats.models
    monkeypatch.setattr(quadratic, "_estimate", lambda system: quadratic.NO_MODELS)
    exact = trace(X, y, loss="logistic", tol=1e-4)
    assert deviation(path, exact) <= 0.01 and path.result is exact.result


@pytest.mark.usefixtures("kernels", "eager")
@of_one_or_several_outputs
def test_a_screened_path_takes_the_same_stretches(loss, monkeypatch):
    X, y = noisy(loss, p=60)
    monkeypatch.setattr(base, "WHOLE_BYTES", 0)
    screened, whole = (trace(X, y, loss=loss, screening=screening) for screening in (True, False))
    assert screened.stats.refreshes > 0 and screened.stats.models == whole.stats.models > 0
    assert screened.stats.working_columns == 60
    assert_allclose(screened.coef, whole.coef, rtol=0, atol=1e-8 * np.abs(whole.coef).max())
    assert_allclose(screened.entry_times, whole.entry_times, rtol=1e-7)


@pytest.mark.usefixtures("kernels", "eager")
def test_an_interrupt_leaves_what_was_there(monkeypatch):
    X, y = noisy("logistic")
    whole, calls, follow = trace(X, y, loss="logistic"), [], Model.follow

    def interrupted(*args):
        calls.append(None)
        if len(calls) == 12:
            raise KeyboardInterrupt
        return follow(*args)

    monkeypatch.setattr(Model, "follow", interrupted)
    path = trace(X, y, loss="logistic")
    assert path.result.name == "INTERRUPTED" and 1.0 < path.t[-1] / path.t[0] < 50.0
    assert_array_equal(path.coef[:-1], whole.coef[: len(path.t) - 1])


@pytest.mark.usefixtures("kernels", "eager")
def test_cross_validation_goes_through_models(monkeypatch):
    X, y = noisy("logistic", n=1000)
    chosen = bregpath.cross_validate(X, y, loss="logistic", full=True)
    assert chosen.path.stats.models > 0 and all(path.stats.models > 0 for path in chosen.fold_paths)
    monkeypatch.setattr(quadratic, "_estimate", lambda system: quadratic.NO_MODELS)
    exact = bregpath.cross_validate(X, y, loss="logistic", full=True)
    assert_allclose(chosen.mean, exact.mean, rtol=2e-3)
