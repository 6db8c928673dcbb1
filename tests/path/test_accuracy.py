"""Adaptive steps against the paper's iteration with a far finer fixed step."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.stats import kendalltau

import bregpath
from bregpath import Result, trace_path

KAPPA = 10.0
SLOW = pytest.param((1000, 200, 50), marks=pytest.mark.slow)


@cache
def data(loss: str, size: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    make = bregpath.datasets.make_logistic if loss == "logistic" else bregpath.datasets.make_linear
    simulation = make(*size, seed=11)
    return simulation.X, simulation.y


@cache
def stable_unit(loss: str, size: tuple[int, int, int]) -> tuple[float, float]:
    """Steps, in the path's own time, with kappa * step * Lambda = 1, and with kappa * step = 1."""
    X, y = data(loss, size)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    curvature = 0.25 if loss == "logistic" else 1.0
    largest = curvature * np.linalg.eigvalsh(Z.T @ Z / len(y))[-1]
    unit = 1.0 if loss == "logistic" else float(np.std(y))  # inside, time is t * y_unit
    return 1.0 / (KAPPA * largest * unit), 1.0 / (KAPPA * unit)


@cache
def adaptive(loss: str, size: tuple[int, int, int], tol: float = 0.01) -> bregpath.Path:
    return trace_path(*data(loss, size), loss=loss, kappa=KAPPA, tol=tol)


@cache
def fine(loss: str, size: tuple[int, int, int]) -> bregpath.Path:
    """The reference: a tenth of the step that is safe for all columns at once."""
    step, _ = stable_unit(loss, size)
    return trace_path(*data(loss, size), loss=loss, kappa=KAPPA, step=step / 10)


@cache
def exact(loss: str, size: tuple[int, int, int]) -> bregpath.Path:
    """The dynamics itself, to far below 1 %; the fixed steps converge to it (see the last test)."""
    return adaptive(loss, size, 1e-5)


def deviation(path: bregpath.Path, reference: bregpath.Path) -> float:
    """Largest error of a coefficient at any time, relative to the largest coefficient there is."""
    return float(np.abs(path.coef - reference.coef).max() / np.abs(reference.coef).max())


@pytest.mark.parametrize("size", [(400, 80, 20), SLOW], ids=str)
@pytest.mark.parametrize("loss", ["logistic", "gaussian"])
class TestAgainstFineSteps:
    def test_same_window(self, loss: str, size: tuple[int, int, int]) -> None:
        path, reference = adaptive(loss, size), fine(loss, size)
        assert path.result is reference.result is Result.COMPLETED
        np.testing.assert_allclose(path.t, reference.t, rtol=1e-12)

    def test_same_variables_in_the_same_order(self, loss: str, size: tuple[int, int, int]) -> None:
        path, reference = adaptive(loss, size), fine(loss, size)
        entered = np.isfinite(reference.entry_times)
        np.testing.assert_array_equal(np.isfinite(path.entry_times), entered)
        tau = kendalltau(path.entry_times[entered], reference.entry_times[entered]).statistic
        assert tau >= 0.995

    def test_coefficients_within_one_percent(self, loss: str, size: tuple[int, int, int]) -> None:
        """Of the dynamics, as are the fine steps: for the squared loss they are 0.65 % off themselves."""
        path, reference = adaptive(loss, size), exact(loss, size)
        assert deviation(path, reference) <= 0.01
        assert deviation(fine(loss, size), reference) <= 0.01
        assert np.abs(path.deviance_ratio - reference.deviance_ratio).max() <= 0.01

    def test_far_fewer_steps(self, loss: str, size: tuple[int, int, int]) -> None:
        path = adaptive(loss, size)
        by_curvature, by_kappa = stable_unit(loss, size)
        fixed = (path.t[-1] - path.t[0]) / (by_kappa if loss == "logistic" else by_curvature)
        assert path.stats.steps <= fixed / 5


@pytest.mark.parametrize("loss", ["logistic", "gaussian"])
def test_a_smaller_tolerance_is_closer(loss: str) -> None:
    size = (400, 80, 20)
    tols = (0.1, 0.01, 0.001, 0.0001)
    paths = [adaptive(loss, size, tol) for tol in tols]
    errors = [deviation(path, exact(loss, size)) for path in paths]
    assert errors == sorted(errors, reverse=True)
    assert errors[1] <= 0.01 and errors[2] <= 0.002
    steps = [path.stats.steps for path in paths]
    assert steps == sorted(steps)


@pytest.mark.parametrize("loss", ["logistic", "gaussian"])
def test_fixed_steps_converge_to_the_same_path(loss: str) -> None:
    """Their deviation falls in proportion to the step."""
    size = (400, 80, 20)
    X, y = data(loss, size)
    step, _ = stable_unit(loss, size)
    window = {"loss": loss, "t_ratio": 5.0, "n_times": 20}
    reference = trace_path(X, y, tol=1e-6, **window)
    errors = [deviation(trace_path(X, y, step=step / k, **window), reference) for k in (4, 8, 16, 32)]
    for coarse, finer in zip(errors[:-1], errors[1:], strict=True):
        assert 1.6 <= coarse / finer <= 2.6
    assert errors[-1] <= 0.005
