"""Data far from the origin, rounding, and losses that are not what they seem: right, or ended, but never endless."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import bregpath
from tests.helpers import make_data, trace


@pytest.mark.parametrize("mean", [30.0, 1e3, 1e6])
@pytest.mark.parametrize("rows", [40, 100])
def test_mean_of_y_moves_the_intercept_alone(mean: float, rows: int) -> None:
    rng = np.random.default_rng(11)
    X = rng.normal(size=(rows, 60 if rows == 40 else 5))
    y = 2 * X[:, 0] - X[:, 1] + rng.normal(size=rows)
    near, far = trace(X, y), trace(X, y + mean)
    assert far.stats.steps == near.stats.steps
    assert_allclose(far.coef, near.coef, atol=1e-13 * mean)
    assert_allclose(far.intercept, near.intercept + mean, rtol=1e-12, atol=1e-12 * mean)


@pytest.mark.parametrize("sample", ["years", "pressure", "mains"])
def test_quantities_that_hardly_vary(sample: str) -> None:
    middle, spread = {"years": (1998, 11), "pressure": (1013, 10), "mains": (50, 0.02)}[sample]
    X, y = make_data("gaussian")
    y = middle + spread * (y - y.mean()) / y.std()
    path = trace(X, y)
    assert path.result is bregpath.Result.COMPLETED
    least_squares = np.linalg.lstsq(np.column_stack([np.ones(len(y)), X]), y, rcond=None)[0]
    assert_allclose(trace(X, y, t_ratio=1e4).coef[-1], least_squares[1:], rtol=1e-3, atol=1e-3 * spread)


@pytest.mark.parametrize("loss", ["gaussian", "logistic"])
@pytest.mark.parametrize("mean", [10.0, 100.0])
@pytest.mark.parametrize("options", [{"fit_intercept": False}, {"standardize": False}])
def test_columns_with_a_large_mean_that_is_not_removed(loss: str, mean: float, options: dict) -> None:
    X, y = make_data(loss)
    path = trace(X + mean, y, loss=loss, t_ratio=5.0, **options)
    fine = trace(X + mean, y, loss=loss, t_ratio=5.0, tol=1e-4, **options)
    assert path.result is bregpath.Result.COMPLETED
    assert np.abs(path.coef - fine.coef).max() <= 0.01 * np.abs(fine.coef).max()


def test_a_path_that_curvature_makes_hopeless_ends() -> None:
    X, y = make_data("gaussian")
    path = trace(X + 2e4, y, standardize=False)
    assert path.result is bregpath.Result.STALLED
    assert path.t[0] < path.t[-1] < 50 * path.t[0]
    with pytest.raises(ValueError, match="rescale `X`"):
        trace(X + 1e7, y, standardize=False)


class Scratchpad:
    """Squared loss that uses its argument as room for its result."""

    has_units = True

    def value(self, eta: np.ndarray, y: np.ndarray, w: np.ndarray) -> float:
        eta -= y
        eta **= 2
        return 0.5 * float(w @ eta)

    def gradient(self, eta: np.ndarray, y: np.ndarray, w: np.ndarray) -> np.ndarray:
        eta -= y
        eta *= w
        return eta

    def curvature(self, eta: np.ndarray, y: np.ndarray, w: np.ndarray, direction: np.ndarray) -> np.ndarray:
        direction *= w
        return direction


def test_a_loss_may_write_into_its_argument() -> None:
    class Plain(Scratchpad):
        def value(self, eta: np.ndarray, y: np.ndarray, w: np.ndarray) -> float:
            return super().value(eta.copy(), y, w)

        def gradient(self, eta: np.ndarray, y: np.ndarray, w: np.ndarray) -> np.ndarray:
            return super().gradient(eta.copy(), y, w)

        def curvature(self, eta: np.ndarray, y: np.ndarray, w: np.ndarray, direction: np.ndarray) -> np.ndarray:
            return super().curvature(eta, y, w, direction.copy())

    X, y = make_data("gaussian")
    expected = trace(X, y, loss=Plain(), standardize="X")
    path = trace(X, y, loss=Scratchpad(), standardize="X")
    assert_allclose(path.coef, expected.coef, atol=1e-8)


def test_a_loss_must_not_write_into_the_data() -> None:
    class Vandal(Scratchpad):
        def gradient(self, eta: np.ndarray, y: np.ndarray, w: np.ndarray) -> np.ndarray:
            y -= eta
            return -w * y

    X, y = make_data("gaussian")
    before = y.copy()
    with pytest.raises(ValueError, match="read-only"):
        trace(X, y, loss=Vandal(), standardize="X")
    assert_allclose(y, before, rtol=0)


def test_a_loss_in_single_precision_ends() -> None:
    class Coarse:
        has_units = True

        def value(self, eta: np.ndarray, y: np.ndarray, w: np.ndarray) -> float:
            return float(np.sum((w * (eta - y) ** 2 / 2).astype(np.float32)))

        def gradient(self, eta: np.ndarray, y: np.ndarray, w: np.ndarray) -> np.ndarray:
            return w * (eta - y)

    X, y = make_data("gaussian")
    path = trace(X, y, loss=Coarse(), standardize="X")
    assert path.result is bregpath.Result.COMPLETED
    exact = trace(X, y, standardize="X")
    assert np.abs(path.coef - exact.coef).max() <= 0.01 * np.abs(exact.coef).max()
