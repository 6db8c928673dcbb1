from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import bregpath
from bregpath.selection.criteria import CRITERIA, information_criterion
from tests.helpers import SIMULATORS


@pytest.fixture(scope="module", params=sorted(SIMULATORS))
def path(request):
    data = SIMULATORS[request.param](120, 10, 3, seed=3)
    return bregpath.trace_path(data.X, data.y, loss=request.param, n_times=30)


def test_formulas(path):
    n, p = 120, 10 * path.n_outputs
    intercepts = 2 if path.n_outputs == 3 else 1
    d, k = path.df, path.df + intercepts
    fit = n * np.log(path.deviance) if path.loss.has_units else n * path.deviance
    expected = {
        "aic": fit + 2 * k,
        "aicc": fit + 2 * k + 2 * k * (k + 1) / (n - k - 1),
        "bic": fit + k * np.log(n),
        "ebic": fit + k * np.log(n) + 2 * 0.7 * d * np.log(p),
        "gic": fit + k * np.log(np.log(n)) * np.log(p),
    }
    for kind in CRITERIA:
        selection = information_criterion(path, kind, n, gamma=0.7)
        assert_allclose(selection.mean, expected[kind])
        assert selection.t == selection.t_min == path.t[np.argmin(expected[kind])]
        assert selection.se is None and selection.t_1se is None
        assert_allclose(selection.curves["parameters"], k)


def test_likelihood_is_that_of_scipy():
    from scipy.stats import poisson

    data = bregpath.datasets.make_poisson(100, 6, 2, seed=0)
    path = bregpath.trace_path(data.X, data.y, loss="poisson", n_times=10)
    aic = information_criterion(path, "aic", 100).mean
    own = [
        -2 * poisson.logpmf(data.y, path.predict(data.X, t)).sum() + 2 * (df + 1)
        for t, df in zip(path.t, path.df, strict=True)
    ]
    assert_allclose(np.diff(aic), np.diff(own), atol=1e-8)


def test_stronger_criteria_are_sparser():
    data = bregpath.datasets.make_linear(200, 40, 5, seed=1)
    path = bregpath.trace_path(data.X, data.y)
    times = [information_criterion(path, kind, 200).t for kind in ("ebic", "bic", "aic")]
    assert times == sorted(times)
    assert path.support(times[0]).tolist() == [0, 1, 2, 3, 4]


def test_zero_weight_rows_are_absent():
    data = bregpath.datasets.make_logistic(80, 6, 2, seed=2)
    weight = np.r_[np.ones(60), np.zeros(20)]
    full = bregpath.trace_path(data.X, data.y, loss="logistic", sample_weight=weight, n_times=20)
    part = bregpath.trace_path(data.X[:60], data.y[:60], loss="logistic", n_times=20)
    assert_allclose(information_criterion(full, "bic", 60).mean, information_criterion(part, "bic", 60).mean, rtol=1e-8)


def test_interpolation_and_constant_response_do_not_win():
    X = np.random.default_rng(0).normal(size=(10, 30))
    path = bregpath.trace_path(X, X[:, 0] + X[:, 1], t_ratio=1000)
    selection = information_criterion(path, "bic", 10)
    assert np.isinf(selection.mean[path.df + 1 >= 10]).all()
    assert np.isfinite(selection.mean[np.searchsorted(selection.times, selection.t)])
    flat = bregpath.trace_path(X, np.full(10, 3.0))
    for kind in CRITERIA:
        assert information_criterion(flat, kind, 10).t == flat.t[0]


def test_ends_of_paths_with_more_columns_than_rows_are_warned_of():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 300))
    noise = bregpath.trace_path(X, rng.normal(size=40), t_ratio=5, kappa=0.5)
    with pytest.warns(UserWarning, match=r"chooses the null model.*300 columns and 40 rows.*cross_validate\(\)"):
        assert information_criterion(noise, "ebic", 40).t == noise.t[0]
    X[:, 0] += np.sign(X[:, 0])
    apart = bregpath.trace_path(X, X[:, 0] > 0, loss="logistic")
    with pytest.warns(UserWarning, match="a perfect fit pays any price"):
        information_criterion(apart, "aic", 40)
    few = bregpath.trace_path(X[:, :20], X[:, 0] + 0.3 * rng.normal(size=40))
    assert len(few.support(information_criterion(few, "ebic", 40).t)) == 1  # fewer columns than rows: no warning


def test_models_with_as_many_parameters_as_rows_are_refused():
    X = np.random.default_rng(1).normal(size=(15, 60))
    path = bregpath.trace_path(X, X[:, 0] + X[:, 1] > 0, loss="logistic", kappa=0.5, saturation=None, t_ratio=3000)
    with pytest.warns(UserWarning):
        selection = information_criterion(path, "aic", 15)
    assert path.df.max() >= 15 and np.isinf(selection.mean[path.df + 1 >= 15]).all()
    assert len(path.support(selection.t)) < 14


def test_no_intercept_is_not_counted():
    data = bregpath.datasets.make_linear(50, 5, 2, seed=0)
    path = bregpath.trace_path(data.X, data.y, fit_intercept=False, n_times=10)
    assert_allclose(information_criterion(path, "bic", 50).curves["parameters"], path.df)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(kind="cic", n=10), "`kind` must be one of"),
        (dict(kind="bic"), "`n` must be the number of rows"),
        (dict(kind="bic", n=-2.5), "`n` must be the number of rows"),
        (dict(kind="ebic", n=10, gamma=2), "`gamma` must be"),
        (dict(kind="gic", n=2), "`n` must be at least 3"),
    ],
)
def test_errors_name_the_argument(arguments, message):
    path = bregpath.trace_path(np.eye(5), np.arange(5.0), n_times=5)
    with pytest.raises(ValueError, match=message):
        information_criterion(path, **arguments)


def test_repr_and_one_se():
    path = bregpath.trace_path(np.eye(5), np.arange(5.0), n_times=5)
    selection = information_criterion(path, "ebic", 5)
    assert "EBIC (gamma=0.5)" in repr(selection) and "*min" in repr(selection)
    with pytest.raises(ValueError, match="no standard error"):
        selection.one_se()
