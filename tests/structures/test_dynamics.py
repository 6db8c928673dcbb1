"""Split LBI through `trace_path`: the iteration it is, its limits, and what it finds."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from bregpath import trace_path
from bregpath.structures import fused, grid, trend
from tests.structures.cases import blocky_regression, plain_iteration, steps_signal


@pytest.mark.parametrize("loss", ["gaussian", "logistic"])
def test_it_is_the_plain_iteration(loss: str) -> None:
    X, y = blocky_regression(loss)
    D, kappa, nu = fused(12).toarray(), 3.0, 0.2
    options = {"loss": loss, "structure": D, "nu": nu, "kappa": kappa, "standardize": False}
    t0 = trace_path(X, y, **options, t_ratio=2.0, n_times=2).t[0]
    step, count = t0 / 200, 300
    end = t0 + count * step
    expected = plain_iteration(loss, X, y, D, nu, kappa, step, count)
    assert_allclose(t0, expected[0], rtol=1e-9)
    path = trace_path(X, y, **options, step=step, t=[end])
    assert np.count_nonzero(expected[3]) >= 2
    assert_allclose(path.split[-1], expected[3], atol=1e-9)
    _, intercept, coef = path.at(path.t[-1], "dense")
    assert_allclose(intercept, expected[1], atol=1e-9)
    assert_allclose(coef, expected[2], atol=1e-9)


@pytest.mark.parametrize("loss", ["gaussian", "logistic", "poisson", "huber", "multinomial"])
def test_adaptive_steps_follow_fine_ones(loss: str) -> None:
    X, y = blocky_regression("logistic" if loss in ("logistic", "multinomial") else "gaussian")
    y = np.round(np.exp(0.3 * y)) if loss == "poisson" else y
    options = {"loss": loss, "structure": "fused", "nu": 0.1}
    coarse = trace_path(X, y, **options, n_times=20, t_ratio=10.0)
    fine = trace_path(X, y, **options, t=coarse.t, tol=1e-4)
    assert np.count_nonzero(fine.split[-1]) > 0
    assert_allclose(coarse.dense, fine.dense, atol=0.02 * np.abs(fine.dense).max())


def test_the_start_is_the_best_smooth_model() -> None:
    _, y = steps_signal(0)
    D = fused(100).toarray()
    path = trace_path(None, y, structure="fused", nu=0.5, t_ratio=2.0, n_times=3)
    assert_allclose(path.dense[0], np.linalg.solve(np.eye(100) + D.T @ D / 0.5, y), atol=1e-8)
    assert_allclose(path.coef[0], np.full(100, y.mean()), atol=1e-9)


def test_the_start_with_many_coefficients() -> None:
    """More than are solved for at once: by conjugate gradients, in a metric in which they are few steps."""
    y = np.cumsum(np.random.default_rng(0).normal(size=3000))
    path = trace_path(None, y, structure="fused", nu=1e-3, t=[1e-9])
    D = fused(3000)
    expected = sp.linalg.spsolve((sp.eye_array(3000) + D.T @ D / 1e-3).tocsc(), y)
    assert_allclose(path.dense[0], expected, atol=1e-6 * np.abs(y).max())


def test_true_jumps_enter_first() -> None:
    found = 0
    for seed in range(20):
        _, y = steps_signal(seed)
        path = trace_path(None, y, structure="fused", nu=1.0, t_ratio=3.0, n_times=5)
        found += set(np.argsort(path.entry_times)[:2]) == {29, 69}
    assert found >= 18


def test_inverse_scale_space_is_the_limit() -> None:
    """Of infinite kappa; and it finds the levels exactly, since nothing is left of a jump that has been fitted."""
    _, y = steps_signal(0)
    options = {"structure": "fused", "nu": 0.1, "t_ratio": 5.0, "n_times": 20}
    limit = trace_path(None, y, flow="giss", **options)
    away = [np.mean(np.abs(trace_path(None, y, kappa=kappa, **options).dense - limit.dense)) for kappa in (10.0, 100.0)]
    assert away[1] < 0.3 * away[0] and away[1] < 0.01
    exact = 0
    for seed in range(20):
        path = trace_path(None, steps_signal(seed)[1], structure="fused", flow="giss", t_ratio=4.0, n_times=20)
        exact += any(path.support(t).tolist() == [29, 69] for t in path.t)
    assert exact >= 16


@pytest.mark.slow
def test_a_broken_line_is_found() -> None:
    """About as well as by least squares with known kinks, whose mean error is four parameters' share of the noise."""
    good, truth = 0, np.interp(np.arange(200), [0, 80, 130, 199], [0.0, 3.0, -1.0, 1.0])
    for seed in range(10):
        y = truth + 0.2 * np.random.default_rng(seed).normal(size=200)
        path = trace_path(None, y, structure="trend", t_ratio=30.0, n_times=4)
        good += np.mean((path.coef[-1] - truth) ** 2) < 4 * (0.2**2 * 4 / 200)
    assert good >= 9


def test_unit_matrix_and_tight_coupling_are_the_plain_path() -> None:
    """Two variables tied together are half as fast as one: with half of kappa it is the plain path, to the slack nu."""
    X, y = blocky_regression("gaussian", n=60, p=6)
    X, y = X - X.mean(axis=0), y - y.mean()
    options = {"standardize": False, "tol": 1e-4, "t_ratio": 20.0, "n_times": 20}
    plain = trace_path(X, y, kappa=2.0, **options)
    errors = []
    for nu in (1e-1, 1e-2, 1e-3):
        path = trace_path(X, y, structure=np.eye(6), nu=nu, kappa=4.0, **{**options, "t_ratio": 25.0})
        split = np.array([path.split_at(t) for t in plain.t])
        errors.append(np.abs(split - plain.coef).max())
    assert errors[2] < 4e-3 * np.abs(plain.coef).max()
    assert errors[0] > 5 * errors[1] > 25 * errors[2]


def test_weights_are_copies() -> None:
    X, y = blocky_regression("gaussian")
    counts = np.random.default_rng(1).integers(0, 4, size=len(y))
    options = {"structure": "fused", "nu": 0.1, "t_ratio": 10.0, "n_times": 10}
    weighted = trace_path(X, y, sample_weight=counts, **options)
    rows = np.repeat(np.arange(len(y)), counts)
    copied = trace_path(X[rows], y[rows], **options)
    for name in ("t", "coef", "dense", "split", "intercept", "deviance"):
        assert_allclose(getattr(weighted, name), getattr(copied, name), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_dense_and_sparse_are_the_same(fit_intercept: bool) -> None:
    X, y = blocky_regression("gaussian")
    X[X < 0.3] = 0.0
    D = trend(12)
    options = {"nu": 0.01, "t_ratio": 10.0, "n_times": 10, "fit_intercept": fit_intercept}
    path = trace_path(X, y, structure=D.toarray(), **options)
    assert np.count_nonzero(path.split[-1]) > 0
    for data, structure in ((sp.csr_array(X), sp.coo_array(D)), (X, D)):
        other = trace_path(data, y, structure=structure, **options)
        assert_allclose(other.coef, path.coef, atol=1e-8)
        assert_allclose(other.intercept, path.intercept, atol=1e-8)


def test_a_signal_is_a_regression_on_the_unit_matrix() -> None:
    _, y = steps_signal(3)
    options = {"structure": "fused", "t_ratio": 5.0, "n_times": 8}
    signal = trace_path(None, y, **options)
    regression = trace_path(sp.eye_array(100), y, fit_intercept=False, **options)
    assert_allclose(regression.coef, signal.coef, atol=1e-9)
    with_intercept = trace_path(sp.eye_array(100), y, tol=1e-3, **options)
    eta = with_intercept.coef + with_intercept.intercept[:, None]
    assert_allclose(eta[-1], signal.coef[-1], atol=0.1)


def test_units_change_nothing_else() -> None:
    X, y = blocky_regression("gaussian")
    options = {"structure": "fused", "nu": 0.1, "t_ratio": 10.0, "n_times": 10}
    path, other = trace_path(X, y, **options), trace_path(10 * X, 1000 * y - 7, **options)
    assert_allclose(other.coef, 100 * path.coef, rtol=1e-7, atol=1e-9)
    assert_allclose(other.split, 100 * path.split, rtol=1e-7, atol=1e-9)
    assert_allclose(other.intercept, 1000 * path.intercept - 7, rtol=1e-7)


def test_an_offset_is_taken_off() -> None:
    X, y = blocky_regression("gaussian")
    shift = np.linspace(0, 5, len(y))
    options = {"structure": "fused", "nu": 0.1, "t_ratio": 10.0, "n_times": 10}
    assert_allclose(trace_path(X, y + shift, offset=shift, **options).coef, trace_path(X, y, **options).coef, atol=1e-8)


def test_penalties_act_on_the_rows_of_the_map() -> None:
    _, y = steps_signal(5)
    rising = trace_path(None, y, structure="fused", lower=0.0, t_ratio=20.0, n_times=10)
    assert np.all(rising.split >= 0) and np.any(rising.split > 0)
    assert np.any(trace_path(None, y, structure="fused", t_ratio=20.0, n_times=10).split < 0)
    factor = np.ones(99)
    factor[29] = np.inf
    without = trace_path(None, y, structure="fused", penalty_factor=factor, t_ratio=20.0, n_times=10)
    assert np.isinf(without.entry_times[29])
    image = np.kron([[0.0, 2.0], [2.0, 0.0]], np.ones((6, 6))).ravel() + 0.1 * np.random.default_rng(0).normal(size=144)
    D = sp.vstack([grid((12, 12)), grid((12, 12))])
    pairs = np.tile(np.arange(264), 2)  # each difference twice: they enter together
    grouped = trace_path(None, image, structure=D, penalty="group", groups=pairs, t_ratio=3.0, n_times=5)
    assert_allclose(grouped.entry_times[:264], grouped.entry_times[264:])
    assert np.isfinite(grouped.entry_times).sum() >= 2 * 24
