"""Paths and their limits: steps to zero is the flow, kappa to infinity is inverse scale space, both with order one."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import nnls

import bregpath
from bregpath.datasets import make_linear, make_logistic
from bregpath.theory import sign_intervals

MAKE = {"gaussian": make_linear, "logistic": make_logistic}


def inverse_scale_space(X, y, t_max):
    """Knots and coefficients of the inverse scale space path of squared loss without intercept, by its definition.

    Between two knots beta is the least squares fit with the signs of those subgradients that are at +-1, and the
    subgradient moves in a straight line.
    """
    n, p = X.shape
    t, rho, knots, coefs = 0.0, np.zeros(p), [], []
    while t < t_max:
        full = np.flatnonzero(np.abs(rho) > 1 - 1e-10)
        rho[full] = np.sign(rho[full])
        beta = np.zeros(p)
        if len(full):
            beta[full] = rho[full] * nnls(X[:, full] * rho[full], y)[0]
        slope = X.T @ (y - X @ beta) / n
        slope[beta != 0] = 0.0  # but for rounding
        knots.append(t)
        coefs.append(beta)
        moving = np.flatnonzero(np.abs(slope) > 1e-10)
        waits = (np.sign(slope[moving]) - rho[moving]) / slope[moving]
        waits = waits[waits > 1e-10]
        if not len(waits):
            break
        t += waits.min()
        rho = rho + waits.min() * slope
    return np.array(knots), np.array(coefs)


def coefficients(path, times):
    _, columns, values = path.read(times)
    out = np.zeros((len(times), path.n_features))
    out[:, columns] = values[:, :, 0]
    return out


def order(sizes, errors):
    """The power of the size with which errors fall."""
    return np.polyfit(np.log(sizes), np.log(errors), 1)[0]


@pytest.mark.parametrize("seed", range(3))
def test_inverse_scale_space_is_what_its_definition_says(seed):
    data = make_linear(80, 12, 4, r=0.5, seed=seed)
    X, y = data.X - data.X.mean(axis=0), data.y - data.y.mean()
    knots, coefs = inverse_scale_space(X, y, 1e3)
    path = bregpath.trace_path(X, y, flow="giss", standardize=False, fit_intercept=False, t=[1e3], saturation=None)
    middle = (knots[1:-1] + knots[2:]) / 2
    assert len(middle) > 5
    assert_allclose(coefficients(path, middle), coefs[1:-1], atol=1e-8)
    assert_allclose(path.at(1e3).coef, coefs[-1], atol=1e-8)


@pytest.mark.parametrize("loss", MAKE)
@pytest.mark.parametrize("seed", range(2))
def test_finite_kappa_converges_to_inverse_scale_space_with_order_one(loss, seed):
    data = MAKE[loss](120, 10, 3, seed=seed)
    options = {"loss": loss, "standardize": False, "t_ratio": 30.0, "saturation": None}
    limit = bregpath.trace_path(data.X, data.y, flow="giss", **options)
    times = np.linspace(limit.t[0], limit.t[-1], 20_000)
    exact = coefficients(limit, times)
    kappas, errors = 25.0 * 4.0 ** np.arange(4), []
    for kappa in kappas:
        path = bregpath.trace_path(data.X, data.y, kappa=kappa, tol=1e-5, **options)
        errors.append(np.abs(coefficients(path, times) - exact).sum() / np.abs(exact).sum())
    assert 0.8 < order(1 / kappas, errors) < 1.2
    assert errors[-1] < 2e-3
    entered = np.isfinite(limit.entry_times)
    assert_allclose(path.entry_times[entered], limit.entry_times[entered], rtol=0.01)


@pytest.mark.parametrize("loss", MAKE)
@pytest.mark.parametrize("seed", range(2))
def test_steps_converge_to_the_flow_with_order_one(loss, seed):
    data = MAKE[loss](120, 10, 3, seed=seed)
    options = {"loss": loss, "standardize": False, "t_ratio": 20.0, "saturation": None}
    flow = bregpath.trace_path(data.X, data.y, tol=1e-7, **options)
    times = np.geomspace(flow.t[0], flow.t[-1], 100)
    exact = coefficients(flow, times)

    def errors(name, values):
        paths = (bregpath.trace_path(data.X, data.y, **{name: value}, **options) for value in values)
        return [np.abs(coefficients(path, times) - exact).max() / np.abs(exact).max() for path in paths]

    steps, tols = 0.02 * flow.t[0] / 2.0 ** np.arange(4), np.array([1e-2, 1e-3, 1e-4, 1e-5])
    assert 0.9 < order(steps, errors("step", steps)) < 1.1
    found = errors("tol", tols)
    assert 0.8 < order(tols, found) < (1.8 if loss == "gaussian" else 1.3)  # exponential steps are exact but for modes
    assert np.all(found <= tols)


def test_times_of_right_signs():
    data = make_linear(200, 15, 3, seed=0)
    path = bregpath.trace_path(data.X, data.y)
    found = sign_intervals(path, data.coef)
    assert len(found) >= 1 and np.all(found[:, 0] < found[:, 1]) and np.all(np.diff(found.ravel()) > 0)
    times = np.geomspace(path.t[0], path.t[-1], 2000)
    right = np.all(np.sign(coefficients(path, times)) == np.sign(data.coef), axis=1)
    inside = np.any((times[:, None] > found[:, 0]) & (times[:, None] <= found[:, 1]), axis=1)
    assert np.array_equal(right, inside) and right.any() and not right.all()
    assert len(sign_intervals(path, -data.coef)) == 0
    null = sign_intervals(path, np.zeros(15))
    assert_allclose(null, [[0.0, path.t[0]]])
    short = bregpath.trace_path(data.X, data.y, t_ratio=3.0)
    never = np.isinf(short.entry_times)
    assert never.any() and len(sign_intervals(short, data.coef)) == 1
    assert len(sign_intervals(short, data.coef + never)) == 0
    with pytest.raises(ValueError, match="`coef` must have one number a coefficient"):
        sign_intervals(path, np.ones(4))
