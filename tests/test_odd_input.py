"""Data that leave little to learn, or are made in an odd way, and work all the same."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from bregpath import Result, trace_path
from tests.helpers import ALL_LOSSES, LOSSES_WITH_UNITS, make_data

X, Y = make_data("gaussian", n=20, p=4)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("standardize", [True, "X", False])
@pytest.mark.parametrize("loss", ALL_LOSSES)
def test_constant_columns(loss: str, standardize: bool | str, fit_intercept: bool) -> None:
    data, y = make_data(loss, n=40, p=5)
    constant = data.copy()
    constant[:, 2] = 0.0
    if fit_intercept:
        constant[:, 4] = 7.3
    options = {"loss": loss, "standardize": standardize, "fit_intercept": fit_intercept, "t_ratio": 10.0, "n_times": 20}
    path = trace_path(constant, y, **options)
    out = [2, 4] if fit_intercept else [2]
    assert not path.coef[:, out].any()
    assert np.isinf(path.entry_times[out]).all()
    rest = np.delete(np.arange(5), out)
    without = trace_path(constant[:, rest], y, **options)
    assert_allclose(path.coef[:, rest], without.coef, atol=1e-9 * np.abs(without.coef).max())
    sparse = trace_path(sp.csc_array(constant), y, **options)
    assert_allclose(sparse.coef, path.coef, atol=1e-9 * np.abs(path.coef).max())


@pytest.mark.parametrize("standardize", [True, "X", False])
def test_constant_column_inside_a_group(standardize: bool | str) -> None:
    data, y = make_data("gaussian", n=40, p=4)
    data[:, 1] = 5.0
    options = {"penalty": "group", "standardize": standardize, "t_ratio": 10.0, "step": 0.005}
    path = trace_path(data, y, groups=[0, 0, 1, 1], **options)
    without = trace_path(data[:, [0, 2, 3]], y, groups=[0, 1, 1], **options)
    assert_allclose(path.coef[:, [0, 2, 3]], without.coef, atol=1e-9)
    assert_allclose(path.coef[:, 1], 0, atol=1e-14)  # rounding of its mean, inside an active group


def test_a_constant_with_rounding_is_constant() -> None:
    data, y = make_data("gaussian", n=40, p=3)
    data[:, 1] = 0.1 + 0.2
    data[::2, 1] = 0.3
    path = trace_path(data, y, t_ratio=10.0)
    assert not path.coef[:, 1].any()


def test_all_columns_constant() -> None:
    path = trace_path(np.ones((10, 2)), np.arange(10.0))
    assert path.result is Result.AT_REST
    assert_allclose(path.intercept, 4.5)


@pytest.mark.parametrize("loss", ALL_LOSSES)
def test_more_columns_than_rows(loss: str) -> None:
    data, y = make_data(loss, n=15, p=60)
    path = trace_path(data, y, loss=loss, t_ratio=20.0, n_times=20)
    assert np.isfinite(path.coef).all() and path.df[-1] > 0
    assert path.result in (Result.COMPLETED, Result.SATURATED)


@pytest.mark.parametrize("loss", ALL_LOSSES)
def test_duplicated_columns_share(loss: str) -> None:
    data, y = make_data(loss, n=40, p=4)
    path = trace_path(np.hstack([data, data]), y, loss=loss, t_ratio=10.0, n_times=20)
    scale = np.abs(path.coef).max()
    assert_allclose(path.coef[:, :4], path.coef[:, 4:], atol=1e-9 * scale)
    assert_allclose(path.entry_times[:4], path.entry_times[4:], rtol=1e-9)
    opposite = trace_path(np.hstack([data, -data]), y, loss=loss, t_ratio=10.0, n_times=20)
    assert_allclose(opposite.coef[:, :4], -opposite.coef[:, 4:], atol=1e-9 * scale)


@pytest.mark.parametrize("loss", [*LOSSES_WITH_UNITS, "poisson"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_one_row(loss: str, fit_intercept: bool) -> None:
    path = trace_path([[1.0, 2.0]], [3.0], loss=loss, fit_intercept=fit_intercept)
    assert np.isfinite(path.coef).all() and np.isfinite(path.deviance).all()
    if fit_intercept:
        assert path.result is Result.AT_REST
        assert_allclose(path.predict([[1.0, 2.0]], path.t[-1]), 3.0, rtol=1e-9)


def test_one_row_without_intercept_still_learns() -> None:
    path = trace_path([[1.0, 2.0]], [3.0], fit_intercept=False, standardize=False)
    assert path.coef[-1].any()


def test_two_rows() -> None:
    path = trace_path([[0.0], [1.0]], [0, 1], loss="logistic", t_ratio=1e4)
    assert path.result in (Result.SATURATED, Result.COMPLETED)
    assert np.isfinite(path.coef).all()


@pytest.mark.parametrize("size", [1e-150, 1e-30, 1e30, 1e100])
def test_extreme_units(size: float) -> None:
    reference = trace_path(X, Y, t_ratio=10.0)
    scaled = trace_path(X * size, Y, t_ratio=10.0)
    assert_allclose(scaled.coef * size, reference.coef, rtol=1e-6, atol=1e-8)
    scaled = trace_path(X, Y * size, t_ratio=10.0)
    assert_allclose(scaled.coef / size, reference.coef, rtol=1e-6, atol=1e-8)


def test_objects_that_are_numbers_and_booleans() -> None:
    reference = trace_path(X, Y, t_ratio=5.0)
    assert_array_equal(trace_path(X.astype(object), Y.astype(object), t_ratio=5.0).coef, reference.coef)
    binary = X > 0
    assert_array_equal(trace_path(binary, Y, t_ratio=5.0).coef, trace_path(binary.astype(float), Y, t_ratio=5.0).coef)


@pytest.mark.parametrize("kappa", [0.1, 1.0, 1e3, 1e5])
def test_any_kappa(kappa: float) -> None:
    path = trace_path(X, Y, kappa=kappa, t_ratio=20.0, n_times=20)
    assert path.result in (Result.COMPLETED, Result.SATURATED)
    assert np.isfinite(path.coef).all()


def test_a_wrong_gradient_does_not_hang() -> None:
    """A user's loss whose gradient has the wrong sign: the path stalls, and says so."""

    class Wrong:
        def value(self, eta, y, w):
            return 0.5 * np.dot(w, (eta - y) ** 2)

        def gradient(self, eta, y, w):
            return -w * (eta - y)

    asked = []

    def lose_patience(progress) -> bool:
        asked.append(progress.t)
        return len(asked) > 3000

    try:
        path = trace_path(X, Y, loss=Wrong(), stop=lose_patience)
    except ValueError as error:
        assert "gradient" in str(error) or "optimum" in str(error)
    else:
        assert path.result is Result.STALLED and len(asked) < 3000
