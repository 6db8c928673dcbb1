"""Relaxed refits: the unpenalised optimum, its information, and what can not be refitted."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bregpath
from tests.helpers import ALL_LOSSES, make_data, trace


def refit_of(loss, n=200, at=12, **options):
    X, y = make_data(loss, n=n)
    path = trace(X, y, loss=loss, **options)
    return X, y, path, bregpath.relaxed_refit(path, path.t[at], X, y)


def predictor(refit, X):
    return refit.decision_function(X)


# --- the optimum ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ALL_LOSSES)
def test_gradient_vanishes_on_the_support(loss):
    X, y, path, refit = refit_of(loss)
    assert_array_equal(refit.support, path.support(path.t[12]))
    coef = refit.coef.reshape(10, -1)
    assert not coef[np.setdiff1d(np.arange(10), refit.support)].any()
    unit = path.units.y_unit
    coded, eta = path.loss.encode(y, np.full(200, 1 / 200)), predictor(refit, X)
    if path.loss.has_units:
        coded, eta = coded / unit, eta / unit
    residual = path.loss.gradient(eta, coded, np.full(200, 1 / 200)).reshape(200, -1)
    design = np.column_stack([np.ones(200), X[:, refit.support]])
    assert_allclose(design.T @ residual, 0, atol=1e-7)
    # The path of squared loss may have arrived at its refit, up to rounding.
    assert refit.deviance <= path.deviance[12] * (1 + 1e-12)


def test_gaussian_is_least_squares():
    X, y, _, refit = refit_of("gaussian")
    design = np.column_stack([np.ones(200), X[:, refit.support]])
    theta, rss, *_ = np.linalg.lstsq(design, y)
    variance = rss[0] / (200 - design.shape[1])
    covariance = variance * np.linalg.inv(design.T @ design)
    assert_allclose(np.r_[refit.intercept, refit.coef[refit.support]], theta, rtol=1e-8)
    assert_allclose(refit.covariance, covariance, rtol=1e-6, atol=1e-12)
    assert refit.dispersion == pytest.approx(variance)
    assert_allclose(refit.standard_errors[refit.support], np.sqrt(np.diagonal(covariance))[1:], rtol=1e-6)
    assert np.isnan(np.delete(refit.standard_errors, refit.support)).all()
    low, high = refit.intervals(0.9)
    assert_allclose((high - low)[refit.support], 2 * 1.6448536 * refit.standard_errors[refit.support])


def numeric_information(negative_log_likelihood, theta, h=1e-4):
    """Second derivatives by central differences."""
    size = len(theta)
    eye = h * np.eye(size)
    out = np.empty((size, size))
    for j in range(size):
        for k in range(size):
            value = negative_log_likelihood
            out[j, k] = value(theta + eye[j] + eye[k]) - value(theta + eye[j] - eye[k])
            out[j, k] -= value(theta - eye[j] + eye[k]) - value(theta - eye[j] - eye[k])
    return out / (4 * h * h)


@pytest.mark.parametrize("loss", ["logistic", "poisson"])
def test_errors_are_the_inverse_information(loss):
    X, y, path, refit = refit_of(loss)
    weights = np.random.default_rng(0).integers(0, 3, 200).astype(float)
    offset = 0.1 * X[:, 0]
    refit = bregpath.relaxed_refit(path, path.t[12], X, y, sample_weight=weights, offset=offset)
    coded = path.loss.encode(y, np.full(200, 1 / 200))
    design = np.column_stack([np.ones(200), X[:, refit.support]])
    theta = np.r_[refit.intercept, refit.coef[refit.support]]
    information = numeric_information(lambda b: path.loss.value(design @ b + offset, coded, weights), theta)
    assert_allclose(refit.covariance, np.linalg.inv(information), rtol=1e-3, atol=1e-6)
    assert refit.n == weights.sum() and refit.dispersion == 1
    repeated = np.repeat(np.arange(200), weights.astype(int))
    twin = bregpath.relaxed_refit(path, path.t[12], X[repeated], y[repeated], offset=offset[repeated])
    assert_allclose(twin.covariance, refit.covariance, rtol=1e-6, atol=1e-12)


def test_multinomial_errors_are_those_of_contrasts():
    X, y, path, refit = refit_of("multinomial")
    k = len(refit.support)
    assert_allclose(refit.coef.sum(axis=1), 0, atol=1e-8)
    coded = path.loss.encode(y, np.full(200, 1 / 200))
    design = np.column_stack([np.ones(200), X[:, refit.support]])

    def value(theta):  # the last class as the reference
        eta = np.column_stack([design @ theta.reshape(-1, 2), np.zeros(200)])
        return path.loss.value(eta, coded, np.ones(200))

    full = np.vstack([refit.intercept, refit.coef[refit.support]])
    theta = full[:, :2] - full[:, 2:]
    covariance = np.linalg.inv(numeric_information(value, theta.ravel()))
    # Differences of classes do not depend on how the coefficients are pinned down.
    contrast = np.array([[1.0, 0.0, -1.0], [0.0, 1.0, -1.0]])
    to_difference = np.kron(np.eye(k + 1), contrast)
    assert_allclose(to_difference @ refit.covariance @ to_difference.T, covariance, rtol=1e-3, atol=1e-5)
    assert refit.standard_errors.shape == (10, 3) and refit.intercept_error.shape == (3,)


def test_sandwich_equals_fisher_where_the_model_is_true(rng):
    X = rng.normal(size=(20_000, 3))
    y = (rng.logistic(size=20_000) > -(X @ [1.0, -1.0, 0.5])).astype(int)
    path = bregpath.trace_path(X, y, loss="logistic", n_times=10)
    fisher = bregpath.relaxed_refit(path, path.t[-1], X, y)
    sandwich = bregpath.relaxed_refit(path, path.t[-1], X, y, errors="sandwich")
    assert_allclose(sandwich.standard_errors, fisher.standard_errors, rtol=0.05)
    assert fisher.errors == "fisher" and sandwich.errors == "sandwich"


def test_huber_gets_a_sandwich(rng):
    """Against the spread of the estimate over fresh samples."""
    coefs, errors = [], []
    for _ in range(60):
        X = rng.normal(size=(150, 2))
        y = X @ [1.0, 0.5] + rng.standard_t(3, 150)
        path = bregpath.trace_path(X, y, loss="huber", n_times=5)
        refit = bregpath.relaxed_refit(path, path.t[-1], X, y)
        coefs.append(refit.coef)
        errors.append(refit.standard_errors)
    assert refit.errors == "sandwich"
    assert_allclose(np.mean(errors, axis=0), np.std(coefs, axis=0), rtol=0.3)


# --- shapes --------------------------------------------------------------------------------------------


def test_no_intercept_and_empty_support():
    X, y = make_data("gaussian", n=50)
    path = trace(X, y, fit_intercept=False)
    refit = bregpath.relaxed_refit(path, path.t[5], X, y)
    assert refit.intercept == 0 and np.isnan(refit.intercept_error)
    assert_allclose(refit.coef[refit.support], np.linalg.lstsq(X[:, refit.support], y)[0])
    null = bregpath.relaxed_refit(path, path.t[0] / 2, X, y)
    assert len(null.support) == 0 and not null.coef.any() and null.covariance.shape == (0, 0)
    with_intercept = trace(X, y)
    null = bregpath.relaxed_refit(with_intercept, with_intercept.t[0] / 2, X, y)
    assert null.intercept == pytest.approx(y.mean())
    assert null.intercept_error == pytest.approx(y.std(ddof=1) / np.sqrt(50))


def test_units_do_not_matter():
    X, y, path, refit = refit_of("gaussian")
    scale = np.geomspace(1e-3, 1e3, 10)
    other = trace(X * scale, 100 * y)
    again = bregpath.relaxed_refit(other, other.t[12], X * scale, 100 * y)
    assert_array_equal(again.support, refit.support)
    assert_allclose(again.coef * scale / 100, refit.coef, rtol=1e-6)
    assert_allclose(again.standard_errors * scale / 100, refit.standard_errors, rtol=1e-6)


def test_sparse_and_frames_and_prediction():
    pd = pytest.importorskip("pandas")
    pytest.importorskip("narwhals")
    from scipy.sparse import csr_array

    X, y, path, refit = refit_of("logistic")
    sparse = trace(csr_array(X), y, loss="logistic")
    again = bregpath.relaxed_refit(sparse, sparse.t[12], csr_array(X), y)
    assert_allclose(again.standard_errors, refit.standard_errors, rtol=1e-5)
    frame = pd.DataFrame(X, columns=[f"gene{j}" for j in range(10)])
    framed = trace(frame, y, loss="logistic")
    named = bregpath.relaxed_refit(framed, framed.t[12], frame, y)
    assert f"gene{refit.support[0]}" in repr(named) and "ignore that the same data chose the support" in repr(named)
    assert_allclose(named.predict(frame), refit.predict(X), rtol=1e-6)
    assert_allclose(refit.decision_function(X, offset=np.ones(200)), refit.decision_function(X) + 1)
    with pytest.raises(ValueError, match="`X` has 3 columns"):
        refit.predict(X[:, :3])


def test_fresh_rows_give_honest_errors(rng):
    """Coverage of pure noise: below level on the rows that chose the columns, at level on others."""
    covered = {"same": [], "other": []}
    for _ in range(60):
        X, y = rng.normal(size=(200, 40)), rng.normal(size=200)
        path = bregpath.trace_path(X[:100], y[:100], n_times=20, t_ratio=2.0)
        for which, rows in (("same", slice(0, 100)), ("other", slice(100, 200))):
            refit = bregpath.relaxed_refit(path, path.t[8], X[rows], y[rows])
            low, high = refit.intervals(0.9)
            covered[which] += ((low < 0) & (high > 0))[refit.support].tolist()
    assert np.mean(covered["same"]) < 0.6
    assert abs(np.mean(covered["other"]) - 0.9) < 0.05


# --- categorical columns -------------------------------------------------------------------------------


@pytest.fixture
def frame(rng):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("narwhals")
    regions, kinds = rng.choice(["east", "north", "west"], 150), rng.choice(["a", "b"], 150)
    return pd.DataFrame({"age": rng.normal(size=150), "region": regions, "kind": kinds})


def dummies(frame):
    """The usual coding: every level but the first of a column."""
    coded = {"east": [0, 0], "north": [1, 0], "west": [0, 1]}
    levels = np.array([coded[region] for region in frame["region"]], dtype=float)
    return np.column_stack([np.ones(len(frame)), frame["age"], levels, frame["kind"] == "b"]).astype(float)


EFFECTS = {  # differences of levels, in terms of intercept, age, region[east, north, west], kind[a, b]
    "north - east": [0, 0, -1, 1, 0, 0, 0],
    "west - east": [0, 0, -1, 0, 1, 0, 0],
    "b - a": [0, 0, 0, 0, 0, -1, 1],
}


def test_levels_of_a_column_have_effects_that_sum_to_zero(frame, rng):
    y = 2 * frame["age"] + 1.5 * (frame["region"] == "west") - (frame["kind"] == "b") + rng.normal(size=150)
    path = bregpath.trace_path(frame, y)
    refit = bregpath.relaxed_refit(path, path.t[-1], frame, y)
    assert refit.names[1:4] == ["region[east]", "region[north]", "region[west]"] and len(refit.support) == 6
    assert_allclose([refit.coef[1:4].sum(), refit.coef[4:].sum()], 0, atol=1e-10)
    design = dummies(frame)
    theta, rss, *_ = np.linalg.lstsq(design, y.to_numpy())
    covariance = rss[0] / (150 - 5) * np.linalg.inv(design.T @ design)
    assert_allclose(refit.predict(frame), design @ theta, rtol=1e-7, atol=1e-8)
    differences = np.array(list(EFFECTS.values()), dtype=float)
    assert_allclose(differences @ np.r_[refit.intercept, refit.coef], theta[2:], rtol=1e-7)
    assert_allclose(differences @ refit.covariance @ differences.T, covariance[2:, 2:], rtol=1e-6, atol=1e-10)
    assert_allclose(refit.standard_errors[0], np.sqrt(covariance[1, 1]), rtol=1e-6)


@pytest.mark.parametrize("loss", ["logistic", "multinomial"])
def test_levels_and_classes(frame, rng, loss):
    signal = frame["age"] + (frame["region"] == "west") - (frame["kind"] == "b") + rng.logistic(size=150)
    y = np.digitize(signal, [0.0] if loss == "logistic" else [-1.0, 1.0])
    path = bregpath.trace_path(frame, y, loss=loss)
    refit = bregpath.relaxed_refit(path, path.t[-1], frame, y)
    assert_allclose(np.atleast_1d(refit.coef[1:4].sum(axis=0)), 0, atol=1e-8)
    labels = np.equal.outer(y, np.unique(y)) if loss == "multinomial" else y
    assert_allclose(dummies(frame).T @ (refit.predict(frame) - labels), 0, atol=1e-6)  # the gradient
    assert (refit.standard_errors > 0).all()


def test_levels_without_intercept_or_without_rows(frame, rng):
    y = 2 * frame["age"] + 1.5 * (frame["region"] == "west") - (frame["kind"] == "b") + rng.normal(size=150)
    path = bregpath.trace_path(frame, y, fit_intercept=False)
    refit = bregpath.relaxed_refit(path, path.t[-1], frame, y)
    expected = dummies(frame) @ np.linalg.lstsq(dummies(frame), y.to_numpy())[0]
    assert_allclose(refit.predict(frame), expected, atol=1e-7)
    path, other = bregpath.trace_path(frame, y), (frame["region"] != "north").to_numpy()
    refit = bregpath.relaxed_refit(path, path.t[-1], frame[other], y[other])
    assert refit.coef[2] == 0 and np.isnan(refit.standard_errors[2]) and "region[north]" in repr(refit)
    assert_allclose(refit.coef[1], -refit.coef[3])
    weighted = bregpath.relaxed_refit(path, path.t[-1], frame, y, sample_weight=other.astype(float))
    assert_allclose(weighted.coef, refit.coef, rtol=1e-6, atol=1e-10)


# --- words ---------------------------------------------------------------------------------------------


def test_separable_classes_are_refused(rng):
    X = rng.normal(size=(60, 4))
    y = np.where(X[:, 0] > 0, "yes", "no")
    path = bregpath.trace_path(X, y, loss="logistic")
    with pytest.raises(ValueError, match=r"separate classes of `y`.*choose an earlier t.*path.at\(t\)"):
        bregpath.relaxed_refit(path, path.t[5], X, y)


def test_one_separable_class_is_enough_to_refuse(rng):
    y = np.arange(90) % 3
    X = rng.normal(size=(90, 3)) + np.outer(y == 2, [20.0, 0.0, 0.0]) + np.outer(y == 1, [0.0, 1.0, 0.0])
    path = bregpath.trace_path(X, y, loss="multinomial")
    with pytest.raises(ValueError, match="separate classes of `y`"):
        bregpath.relaxed_refit(path, path.t[-1], X, y)


def test_a_solver_that_gives_up_is_a_refusal(monkeypatch):
    """Coefficients on their way to infinity may end in a matrix that LAPACK refuses."""
    X, y, path, _ = refit_of("logistic")

    def give_up(*args, **kwargs):
        raise np.linalg.LinAlgError("Eigenvalues did not converge")

    monkeypatch.setattr(np.linalg, "eigh", give_up)
    with pytest.raises(ValueError, match="no finite optimum"):
        bregpath.relaxed_refit(path, path.t[12], X, y)


def test_dependent_columns_are_refused(rng):
    X = rng.normal(size=(60, 3))
    X = np.column_stack([X, X[:, 0]])
    y = X[:, 0] + 0.1 * rng.normal(size=60)
    path = bregpath.trace_path(X, y)
    with pytest.raises(ValueError, match="depend on each other linearly.*drop such columns"):
        bregpath.relaxed_refit(path, path.t[20], X, y)


def test_errors_name_the_argument(rng):
    X, y, path, refit = refit_of("logistic", n=60)
    with pytest.raises(ValueError, match='`errors` must be "fisher" or "sandwich"'):
        bregpath.relaxed_refit(path, path.t[3], X, y, errors="hessian")
    with pytest.raises(ValueError, match="lies beyond the end of the path"):
        bregpath.relaxed_refit(path, 1e9, X, y)
    with pytest.raises(TypeError, match=r"`path` must be a Path.*found ndarray; the order is .*\(path, t, X, y\)"):
        bregpath.relaxed_refit(X, y, path, path.t[3])
    with pytest.raises(TypeError, match=r"`t` must be one time, found an array of shape \(60, "):
        bregpath.relaxed_refit(path, X, y, path.t[3])
    with pytest.raises(ValueError, match="differ in length: 60 rows and 59 responses"):
        bregpath.relaxed_refit(path, path.t[3], X, y[:-1])
    with pytest.raises(ValueError, match="`level` must be"):
        refit.intervals(1.0)
    with pytest.raises(ValueError, match="`y` must hold the classes of the path"):
        bregpath.relaxed_refit(path, path.t[3], X, np.where(y == 1, "a", "b"))
    many = bregpath.trace_path(rng.normal(size=(8, 30)), rng.normal(size=8))
    with pytest.raises(ValueError, match="too many to be fitted on 4 rows"):
        bregpath.relaxed_refit(many, many.t[-1], np.ones((4, 30)), np.arange(4.0))


@pytest.mark.parametrize("loss", ["gaussian", "logistic", "multinomial", "poisson"])
def test_a_ridge_is_where_its_gradient_vanishes(loss):
    X, y = make_data(loss, 80, 5)
    path = bregpath.trace_path(X, y, loss=loss)
    t, ridge = float(path.t[-1]), 0.05
    fit = bregpath.relaxed_refit(path, t, X, y, ridge=ridge)
    q, unit = path.n_outputs, path.units.y_unit
    loss_ = path.loss
    inside = (X - X.mean(axis=0)) / X.std(axis=0)
    beta = fit.coef.reshape(5, q) * X.std(axis=0)[:, None] / unit
    eta = fit.decision_function(X) / unit
    coded = loss_.encode(y, np.full(80, 1 / 80))
    residual = loss_.gradient(eta, coded / unit if loss_.has_units else coded, np.full(80, 1 / 80)).reshape(80, q)
    assert_allclose(inside[:, fit.support].T @ residual + ridge * beta[fit.support], 0, atol=1e-7)
    assert_allclose(residual.sum(axis=0), 0, atol=1e-7)
    free = bregpath.relaxed_refit(path, t, X, y)
    tiny = bregpath.relaxed_refit(path, t, X, y, ridge=1e-10)
    assert_allclose(tiny.coef, free.coef, rtol=1e-4, atol=1e-6)
    assert_allclose(tiny.standard_errors, free.standard_errors, rtol=1e-4)
    assert np.linalg.norm(beta) < np.linalg.norm(free.coef.reshape(5, q) * X.std(axis=0)[:, None] / unit)


def test_a_ridge_where_there_is_no_unpenalised_model(rng):
    X = rng.normal(size=(40, 6))
    X[:, 5] = X[:, 0]  # a copy
    y = X[:, 0] > 0  # separated
    path = bregpath.trace_path(X, y, loss="logistic", kappa=1.0)
    t = float(path.t[-1])
    with pytest.raises(ValueError, match="a small `ridge`"):
        bregpath.relaxed_refit(path, t, X, y)
    fit = bregpath.relaxed_refit(path, t, X, y, ridge=0.01)
    assert np.isfinite(fit.coef).all() and (fit.standard_errors[fit.support] > 0).all()
    assert_allclose(fit.coef[0], fit.coef[5], rtol=1e-6)
    assert np.mean((fit.decision_function(X) > 0) == y) > 0.95
    for ridge in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="`ridge` must be a finite number"):
            bregpath.relaxed_refit(path, t, X, y, ridge=ridge)
