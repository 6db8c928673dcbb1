"""Properties that every path has, over all registered losses and penalties."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

import bregpath
from bregpath import Result, StopAtDevianceRatio, StopAtTime, StopAtVariables, StopWhenWorse, trace_path
from bregpath.flow import glbi, integrate
from bregpath.penalties import PENALTIES
from tests.helpers import ALL_LOSSES, LOSSES_WITH_UNITS, assert_same_path, encoded, make_data, rows

P = 10
GROUPS = np.array([0, 0, 1, 1, 1, 2, 3, 3, 4, 4])
PENALTY_OPTIONS = {name: {} if name == "l1" else {"groups": GROUPS} for name in PENALTIES}


def trace(X, y, **options):
    return trace_path(X, y, **{"n_times": 30, "t_ratio": 50.0, **options})


def penalty_options(penalty: str) -> dict:
    return {"penalty": penalty, **PENALTY_OPTIONS[penalty]}


@pytest.fixture(params=ALL_LOSSES)
def loss(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=sorted(PENALTIES))
def penalty(request: pytest.FixtureRequest) -> str:
    return request.param


# --- the loss along the path -----------------------------------------------------------------------------------


def test_loss_never_rises(loss: str, penalty: str) -> None:
    X, y = make_data(loss)
    ratios = []
    path = trace(
        X,
        y,
        loss=loss,
        n_times=300,
        stop=lambda now: bool(ratios.append(now.deviance_ratio)),
        **penalty_options(penalty),
    )
    assert np.diff(ratios).min() >= -1e-11  # after every step
    # In between the cubic may be off by the tolerance, in which the loss is quadratic.
    assert np.diff(path.deviance).max() <= 0.01**2 * path.null_deviance
    assert path.deviance[-1] < 0.95 * path.deviance[0]
    assert_allclose(path.deviance[0], path.null_deviance, rtol=1e-10)


def test_loss_never_rises_with_fixed_step(loss: str) -> None:
    X, y = make_data(loss)
    adaptive = trace(X, y, loss=loss, t_ratio=10)
    path = trace(X, y, loss=loss, t_ratio=10, step=adaptive.t[0] / 500)
    assert np.diff(path.deviance).max() <= 1e-12 * path.null_deviance


def test_deviance_and_df_agree_with_predictions(loss: str) -> None:
    X, y = make_data(loss)
    w = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    path = trace(X, y, loss=loss, sample_weight=w)
    _, codes, w = encoded(loss, y, w)
    unit = path.units.y_unit
    codes = codes / unit if path.loss.has_units else codes
    for i in (0, 7, 20, -1):
        eta = path.decision_function(X, path.t[i])
        assert_allclose(path.deviance[i], unit**2 * path.loss.deviance(eta / unit, codes, w), rtol=1e-9)
        assert_allclose(path.predict(X, path.t[i]), path.loss.predict(eta), rtol=1e-12)
        assert path.df[i] == np.count_nonzero(path.coef[i])
        support = np.flatnonzero(rows(path)[i].any(axis=1))
        assert_array_equal(path.support(path.t[i]), support)
    assert_allclose(path.deviance_ratio, 1 - path.deviance / path.null_deviance, rtol=1e-12)
    assert_allclose(path.deviance_ratio[0], 0, atol=1e-12)


def test_coef_sparse_is_coef(loss: str) -> None:
    X, y = make_data(loss)
    path = trace(X, y, loss=loss)
    sparse = path.coef_sparse
    assert sp.issparse(sparse)
    assert_array_equal(sparse.toarray(), path.coef.reshape(len(path.t), -1))
    assert sparse.nnz == path.df.sum()


def test_at_equals_the_table(loss: str) -> None:
    X, y = make_data(loss)
    path = trace(X, y, loss=loss)
    for i in (0, 3, 29):
        point = path.at(path.t[i])
        assert_array_equal(point.coef, path.coef[i])
        assert_array_equal(point.intercept, path.intercept[i])


# --- equivariance ------------------------------------------------------------------------------------------------


def test_permutation_of_rows_and_columns(loss: str, penalty: str, rng: np.random.Generator) -> None:
    X, y = make_data(loss)
    row, column = rng.permutation(len(y)), rng.permutation(P)
    options = penalty_options(penalty)
    a = trace(X, y, loss=loss, **options)
    if "groups" in options:
        options["groups"] = options["groups"][column]
    b = trace(X[row][:, column], y[row], loss=loss, **options)
    scale = np.abs(a.coef).max()
    assert_allclose(b.t, a.t, rtol=1e-10)
    assert_allclose(b.coef, a.coef[:, column], rtol=0, atol=1e-8 * scale)
    assert_allclose(b.entry_times, a.entry_times[column], rtol=1e-7)


@pytest.mark.parametrize("loss", LOSSES_WITH_UNITS)
def test_units_of_y_change_units_only(loss: str) -> None:
    X, y = make_data(loss)
    a = trace(X, y, loss=loss)
    for factor in (7.3e4, 1e-6):
        b = trace(X, factor * y, loss=loss)
        assert_allclose(b.t, a.t / abs(factor), rtol=1e-10)
        assert_allclose(b.coef, factor * a.coef, rtol=1e-8, atol=1e-9 * abs(factor))
        assert_allclose(b.intercept, factor * a.intercept, rtol=1e-8, atol=1e-9 * abs(factor))
        assert_allclose(b.entry_times, a.entry_times / abs(factor), rtol=1e-8)
        assert_allclose(b.deviance, factor**2 * a.deviance, rtol=1e-8)


@pytest.mark.parametrize("loss", LOSSES_WITH_UNITS)
def test_shift_of_y_moves_the_intercept_only(loss: str) -> None:
    X, y = make_data(loss)
    a, b = trace(X, y, loss=loss), trace(X, y + 100.0, loss=loss)
    assert_allclose(b.t, a.t, rtol=1e-10)
    assert_allclose(b.coef, a.coef, rtol=0, atol=1e-9)
    assert_allclose(b.intercept, a.intercept + 100.0, rtol=1e-10)
    assert_allclose(b.entry_times, a.entry_times, rtol=1e-8)


def test_units_and_origin_of_columns_change_units_only(loss: str, penalty: str, rng: np.random.Generator) -> None:
    X, y = make_data(loss)
    factor, shift = rng.choice([-1, 1], P) * 10 ** rng.uniform(-3, 3, P), rng.normal(size=P)
    a = trace(X, y, loss=loss, **penalty_options(penalty))
    b = trace((X + shift) * factor, y, loss=loss, **penalty_options(penalty))
    scaled = rows(b) * factor[:, None]
    assert_allclose(b.t, a.t, rtol=1e-10)
    assert_allclose(scaled, rows(a), rtol=0, atol=1e-8 * np.abs(a.coef).max())
    assert_allclose(b.entry_times, a.entry_times, rtol=1e-7)
    assert_allclose(b.predict((X + shift) * factor, b.t[20]), a.predict(X, a.t[20]), rtol=1e-7, atol=1e-9)


def test_weight_is_repetition_and_zero_is_absence(loss: str, penalty: str, rng: np.random.Generator) -> None:
    X, y = make_data(loss, n=40)
    counts = rng.integers(0, 4, len(y))
    weighted = trace(X, y, loss=loss, sample_weight=counts, **penalty_options(penalty))
    repeated = trace(np.repeat(X, counts, axis=0), np.repeat(y, counts), loss=loss, **penalty_options(penalty))
    assert_same_path(weighted, repeated)


def test_rows_of_weight_zero_may_hold_anything(loss: str) -> None:
    X, y = make_data(loss, n=40)
    weight = np.ones(len(y))
    weight[:3] = 0
    wild = X.copy()
    wild[:3] = 1e6
    a = trace(wild, y, loss=loss, sample_weight=weight)
    b = trace(X[3:], y[3:], loss=loss)
    assert_same_path(a, b, rtol=1e-7)


@pytest.mark.parametrize("loss", LOSSES_WITH_UNITS)
def test_offset_moves_into_y(loss: str, rng: np.random.Generator) -> None:
    X, y = make_data(loss)
    offset = rng.normal(size=len(y))
    a, b = trace(X, y, loss=loss, offset=offset), trace(X, y - offset, loss=loss)
    assert_same_path(a, b)


def test_constant_offset_moves_the_intercept_only(loss: str) -> None:
    X, y = make_data(loss)
    q = 3 if loss == "multinomial" else 1
    a = trace(X, y, loss=loss)
    b = trace(X, y, loss=loss, offset=np.full((len(y), q), 0.75))
    assert_allclose(b.t, a.t, rtol=1e-9)
    assert_allclose(b.coef, a.coef, rtol=0, atol=1e-8 * np.abs(a.coef).max())
    if q == 1:  # several classes: a common offset changes nothing at all
        assert_allclose(b.intercept, a.intercept - 0.75, rtol=0, atol=1e-8)
    else:
        assert_allclose(b.intercept, a.intercept, rtol=0, atol=1e-8)


def test_two_classes_of_multinomial_are_logistic_at_half_the_scale() -> None:
    """With eta = (-f, f) both coefficients share the work: coefficients sum to zero over classes."""
    X, y = make_data("multinomial")
    path = trace(X, y, loss="multinomial", penalty="group")
    assert_allclose(path.coef.sum(axis=2), 0, atol=1e-10)
    assert_allclose(path.intercept.sum(axis=1), 0, atol=1e-10)


def test_order_of_classes_does_not_matter() -> None:
    X, y = make_data("multinomial")
    a = trace(X, y, loss="multinomial")
    renamed = np.array([{"a": 2, "b": 0, "c": 1}[label] for label in y])
    b = trace(X, renamed, loss="multinomial")
    assert_allclose(b.coef, a.coef[:, :, [1, 2, 0]], rtol=0, atol=1e-9)


# --- forms of the data -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("standardize", [True, "X", False])
def test_every_form_of_x_gives_the_same_path(loss: str, standardize: bool | str) -> None:
    X, y = make_data(loss)
    X = np.where(X > 0.3, X, 0.0).astype(np.float32)  # representable in single precision, half of it zero
    dense = np.ascontiguousarray(X, dtype=np.float64)
    reference = trace(dense, y, loss=loss, standardize=standardize)
    forms = [np.asfortranarray(dense), X, np.asfortranarray(X), sp.csr_array(dense), sp.csc_matrix(dense)]
    forms += [sp.coo_array(dense), sp.csc_array(X), dense[:, ::-1][:, ::-1]]
    for form in forms:
        assert_same_path(trace(form, y, loss=loss, standardize=standardize), reference)


def test_lists_integers_and_frames(rng: np.random.Generator) -> None:
    pd = pytest.importorskip("pandas")
    X = rng.integers(-3, 4, size=(40, 4))
    y = X[:, 0] - 0.5 * X[:, 2] + rng.normal(size=40)
    reference = trace(X.astype(float), y)
    for form in (X, X.tolist(), pd.DataFrame(X, columns=list("abcd"))):
        assert_same_path(trace(form, y), reference)
    assert_same_path(trace(X, list(y)), reference)
    assert_same_path(trace(X, pd.Series(y)), reference)
    assert_same_path(trace(X, y[:, None]), reference)


def test_data_are_left_as_they_were(loss: str) -> None:
    X, y = make_data(loss)
    w, offset, factor, lower = np.ones(len(y)), np.zeros(len(y)), np.ones(P), np.full(P, -1.0)
    q = 3 if loss == "multinomial" else 1
    given = [X, y, w, np.zeros((len(y), q)), factor, lower]
    kept = [a.copy() for a in given]
    for array in given:
        array.setflags(write=False)
    trace(X, y, loss=loss, sample_weight=w, offset=given[3], penalty_factor=factor, lower=lower)
    for array, before in zip(given, kept, strict=True):
        assert_array_equal(array, before)
    del offset


# --- going on ----------------------------------------------------------------------------------------------------


def test_extended_equals_at_once(loss: str, penalty: str) -> None:
    X, y = make_data(loss)
    options = {"loss": loss, **penalty_options(penalty)}
    whole = trace(X, y, t_ratio=40.0, n_times=41, **options)
    part = trace(X, y, t=whole.t[:12], **options)
    longer = part.extend(whole.t[25]).extend(whole.t[-1])
    assert_allclose(longer.t[-1], whole.t[-1], rtol=1e-12)
    for i in range(len(whole.t)):
        assert_array_equal(longer.at(whole.t[i]).coef, whole.at(whole.t[i]).coef)
        assert_allclose(longer.at(whole.t[i]).intercept, whole.at(whole.t[i]).intercept, rtol=1e-13)
    assert_array_equal(longer.entry_times, whole.entry_times)
    assert_array_equal(longer.exit_times, whole.exit_times)
    assert_allclose(longer.intercept[0], whole.intercept[0], rtol=1e-12)
    # The shorter path is a record of its own, untouched by having been continued.
    assert part.t[-1] == whole.t[11]
    again = part.extend(whole.t[-1])
    assert_array_equal(again.at(whole.t[-1]).coef, longer.at(whole.t[-1]).coef)
    assert np.all((part.entry_times <= part.t[-1]) | np.isinf(part.entry_times))


def test_extended_equals_at_once_with_fixed_step(loss: str) -> None:
    X, y = make_data(loss)
    t0 = trace(X, y, loss=loss, t_ratio=2, n_times=2).t[0]
    times = np.linspace(t0, 8 * t0, 20)
    whole = trace(X, y, loss=loss, t=times, step=t0 / 300)
    part = trace(X, y, loss=loss, t=times[:5], step=t0 / 300).extend(times[-1])
    for t in times:
        assert_array_equal(part.at(t).coef, whole.at(t).coef)
    assert_array_equal(part.entry_times, whole.entry_times)


@pytest.mark.usefixtures("always_screen")
def test_extended_equals_at_once_on_a_working_set(loss: str) -> None:
    X, y = make_data(loss, p=40)
    whole = trace(X, y, loss=loss, t_ratio=10)
    part = trace(X, y, loss=loss, t=whole.t[:10]).extend(whole.t[-1])
    for t in whole.t:
        assert_allclose(part.at(t).coef, whole.at(t).coef, rtol=0, atol=1e-9 * np.abs(whole.coef).max())


def test_times_before_the_first_entry(loss: str) -> None:
    X, y = make_data(loss)
    whole = trace(X, y, loss=loss)
    path = trace(X, y, loss=loss, t=[0.1 * whole.t[0], 0.5 * whole.t[0]])
    assert path.result is Result.COMPLETED
    assert not path.coef.any() and np.isinf(path.entry_times).all()
    assert_array_equal(path.extend(whole.t[9]).at(whole.t[5]).coef, whole.coef[5])


# --- screening ---------------------------------------------------------------------------------------------------


def screened_equals_whole(monkeypatch: pytest.MonkeyPatch, X, y, **options) -> bregpath.Path:
    whole = trace(X, y, screening=False, **options)
    monkeypatch.setattr("bregpath.flow.working_set.WHOLE_BYTES", 0)
    screened = trace(X, y, screening=True, **options)
    assert_same_path(screened, whole)
    assert whole.stats.working_columns == X.shape[1]
    return screened


def test_screened_equals_unscreened(loss: str, penalty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    p = 60
    X, y = make_data(loss, n=50, p=p)
    options = {} if penalty == "l1" else {"groups": np.arange(p) // 3}
    path = screened_equals_whole(monkeypatch, X, y, loss=loss, penalty=penalty, t_ratio=4.0, **options)
    assert path.stats.working_columns < p
    assert path.stats.refreshes > 0


def test_screened_with_factors_and_limits(loss: str, penalty: str, monkeypatch: pytest.MonkeyPatch, rng) -> None:
    p = 40
    X, y = make_data(loss, n=80, p=p)
    factor = rng.choice([0.5, 1.0, 2.0, 3.0], p)
    factor[[5, 17]] = 0.0
    factor[[1, 30]] = np.inf
    lower, upper = rng.choice([-np.inf, 0.0, -0.05], p), np.full(p, 0.6)
    options: dict = {}
    if penalty != "l1":
        options["groups"] = np.arange(p) // 2
        factor = np.repeat(factor[::2], 2)  # one factor a group
        factor[[6, 7]] = 0.0
        lower[lower < 0], upper[:] = -np.inf, np.inf  # signs only
    lower[factor == 0], upper[factor == 0] = -np.inf, np.inf
    options |= {"penalty_factor": factor, "lower": lower, "upper": upper}
    path = screened_equals_whole(monkeypatch, X, y, loss=loss, penalty=penalty, t_ratio=8.0, **options)
    assert np.all(rows(path) >= lower[:, None]) and np.all(rows(path) <= upper[:, None])


def test_screened_with_more_columns_than_rows(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_data(loss, n=30, p=300)
    path = screened_equals_whole(monkeypatch, X, y, loss=loss, t_ratio=6.0)
    assert path.stats.working_columns < 200


def test_screened_with_correlated_columns(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_data(loss, n=60, p=80, correlation=0.95)
    screened_equals_whole(monkeypatch, X, y, loss=loss, t_ratio=10.0)


def test_screened_with_duplicated_columns_and_near_ties(loss: str, monkeypatch: pytest.MonkeyPatch, rng) -> None:
    X, y = make_data(loss, n=60, p=15)
    near = X + 1e-7 * rng.normal(size=X.shape)
    X = np.hstack([X, X[:, ::-1], -X, near])
    screened_equals_whole(monkeypatch, X, y, loss=loss, t_ratio=10.0)


def test_screened_with_a_fixed_step(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_data(loss, n=50, p=60)
    t0 = trace(X, y, loss=loss, t_ratio=2, n_times=2).t[0]
    screened_equals_whole(monkeypatch, X, y, loss=loss, t_ratio=5.0, step=t0 / 300)


def test_screened_on_sparse_x(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_data(loss, n=80, p=60)
    X = sp.csc_array(np.where(np.abs(X) > 1.0, X, 0.0))
    screened_equals_whole(monkeypatch, X, y, loss=loss, t_ratio=8.0)


# --- entry times -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["adaptive", "fixed"])
def test_entry_times_agree_with_the_coefficients(loss: str, penalty: str, step: str) -> None:
    X, y = make_data(loss)
    options = {"loss": loss, "t_ratio": 12.0, **penalty_options(penalty)}
    path = trace(X, y, **options)
    if step == "fixed":
        path = trace(X, y, step=path.t[0] / 300, **options)
    assert_allclose(path.entry_times.min(), path.t[0], rtol=1e-12)
    entered = np.flatnonzero(np.isfinite(path.entry_times))
    assert set(np.flatnonzero(rows(path).any(axis=(0, 2)))) <= set(entered)
    for j in entered:
        before, after = path.entry_times[j] * (1 - 1e-8), min(path.entry_times[j] * (1 + 1e-8), path.t[-1])
        assert not np.any(path.at(before).coef[j])
        assert np.any(path.at(after).coef[j]) or after == path.t[-1]
    for j in np.flatnonzero(np.isfinite(path.exit_times)):
        before, after = path.exit_times[j] * (1 - 1e-8), min(path.exit_times[j] * (1 + 1e-8), path.t[-1])
        assert np.any(path.at(before).coef[j])
        assert not np.any(path.at(after).coef[j])


@pytest.mark.parametrize("seed", range(30))
def test_the_first_column_enters_at_t0(seed: int) -> None:
    """Rounding at t0 may put it on either side of its threshold."""
    loss = ALL_LOSSES[seed % len(ALL_LOSSES)]
    X, y = make_data(loss, n=25, p=6, seed=seed)
    path = trace(X, y, loss=loss, t_ratio=1.3, n_times=3)
    assert_allclose(path.entry_times.min(), path.t[0], rtol=1e-12)
    assert not path.coef[0].any()


def test_groups_enter_together() -> None:
    X, y = make_data("gaussian")
    path = trace(X, y, penalty="group", groups=GROUPS)
    for g in np.unique(GROUPS):
        assert len(np.unique(path.entry_times[g == GROUPS])) == 1


# --- limits and factors ------------------------------------------------------------------------------------------


def test_limits_hold_at_all_times(loss: str, penalty: str) -> None:
    X, y = make_data(loss)
    lower = np.array([0, -np.inf, -0.1, -0.02, 0, -np.inf, 0, -1, -np.inf, -0.3])
    upper = np.array([np.inf, 0, 0.1, np.inf, 0.05, 0.02, 0, np.inf, 1, 0])
    if penalty != "l1":  # signs only
        lower[lower < 0], upper[upper > 0] = -np.inf, np.inf
    path = trace(X, y, loss=loss, lower=lower, upper=upper, n_times=60, **penalty_options(penalty))
    for t in np.geomspace(path.t[0], path.t[-1], 150):
        coef = path.at(t).coef.reshape(P, -1)
        assert np.all(coef >= lower[:, None]) and np.all(coef <= upper[:, None])
    assert not rows(path)[:, 6].any()
    assert np.diff(path.deviance).max() <= 0.01**2 * path.null_deviance


def test_infinite_factor_never_enters(loss: str) -> None:
    X, y = make_data(loss)
    factor = np.ones(P)
    factor[[0, 4]] = np.inf
    path = trace(X, y, loss=loss, penalty_factor=factor)
    assert not rows(path)[:, [0, 4]].any()
    assert np.isinf(path.entry_times[[0, 4]]).all()
    keep = [j for j in range(P) if j not in (0, 4)]
    assert_same_path_of_columns(path, trace(X[:, keep], y, loss=loss), keep)


def assert_same_path_of_columns(a: bregpath.Path, b: bregpath.Path, keep: list[int]) -> None:
    assert_allclose(a.t, b.t, rtol=1e-10)
    assert_allclose(a.coef[:, keep], b.coef, rtol=0, atol=1e-8 * np.abs(b.coef).max())
    assert_allclose(a.entry_times[keep], b.entry_times, rtol=1e-7)


@pytest.mark.parametrize("standardize", [True, False])
def test_factor_zero_is_free_from_the_start(loss: str, standardize: bool) -> None:
    X, y = make_data(loss)
    factor = np.ones(P)
    factor[[1, 6]] = 0.0
    path = trace(X, y, loss=loss, penalty_factor=factor, standardize=standardize)
    assert_array_equal(path.entry_times[[1, 6]], 0.0)
    point = path.at(0.3 * path.t[0])
    assert_array_equal(point.coef, path.coef[0])
    assert np.all(np.delete(point.coef, [1, 6], axis=0) == 0)
    # The unpenalised optimum of the intercept and both columns, by another optimiser.
    model, codes, w = encoded(loss, y)
    unit = path.units.y_unit
    codes = codes / unit if model.has_units else codes
    free, q = X[:, [1, 6]], model.n_outputs

    def objective(v: np.ndarray) -> tuple[float, np.ndarray]:
        v = v.reshape(3, q)
        eta = v[0] + free @ v[1:]
        r = model.gradient(eta[:, 0] if q == 1 else eta, codes, w).reshape(-1, q)
        value = model.value(eta[:, 0] if q == 1 else eta, codes, w)
        return value, np.vstack([r.sum(axis=0), free.T @ r]).ravel()

    best = minimize(objective, np.zeros(3 * q), jac=True, method="BFGS", options={"gtol": 1e-9})
    expected = best.x.reshape(3, q) * unit
    found = np.vstack([np.atleast_1d(point.intercept), point.coef[[1, 6]].reshape(2, q)])
    expected -= expected.mean(axis=1, keepdims=True) if q > 1 else 0.0
    found = found - (found.mean(axis=1, keepdims=True) if q > 1 else 0.0)
    assert_allclose(found, expected, rtol=0, atol=1e-5 * unit)


def test_penalty_factor_is_a_scale_of_time() -> None:
    """Twice the threshold for all: everything at twice the time, once kappa is halved."""
    X, y = make_data("logistic")
    a = trace(X, y, loss="logistic", kappa=10.0)
    b = trace(X, y, loss="logistic", kappa=5.0, penalty_factor=np.full(P, 2.0))
    assert_allclose(b.t, 2 * a.t, rtol=1e-10)
    assert_allclose(b.coef, a.coef, rtol=0, atol=1e-6)


def test_limits_on_free_columns() -> None:
    """A free column starts at its unpenalised optimum, which must lie inside its limits; then they hold."""
    X, y = make_data("gaussian")
    factor = [0.0] + [1.0] * (P - 1)
    best = trace(X, y, penalty_factor=factor).coef[0, 0]
    with pytest.raises(ValueError, match=r"column 0 .*outside its `lower` and `upper`"):
        trace(X, y, penalty_factor=factor, lower=-0.3 * abs(best), upper=0.3 * abs(best))
    path = trace(X, y, penalty_factor=factor, lower=-1.01 * abs(best), upper=1.01 * abs(best))
    assert np.abs(path.coef).max() <= 1.01 * abs(best)


# --- stopping ----------------------------------------------------------------------------------------------------


def test_stop_at_variables(loss: str) -> None:
    X, y = make_data(loss)
    whole = trace(X, y, loss=loss)
    path = trace(X, y, loss=loss, stop=StopAtVariables(4))
    assert path.result is Result.STOPPED
    active = rows(path).any(axis=2).sum(axis=1)
    assert active.max() <= 4
    assert path.t[-1] <= np.sort(whole.entry_times)[4]
    assert_array_equal(path.at(path.t[-1]).coef, whole.at(path.t[-1]).coef)


def test_stop_at_deviance_ratio_and_time(loss: str) -> None:
    X, y = make_data(loss)
    whole = trace(X, y, loss=loss)
    target = 0.5 * whole.deviance_ratio[-1]
    path = trace(X, y, loss=loss, stop=StopAtDevianceRatio(target))
    assert path.result is Result.STOPPED
    assert path.deviance_ratio[-1] >= target - 1e-12
    assert path.t[-1] < whole.t[-1]
    for rule in (StopAtTime(whole.t[10]), float(whole.t[10]), lambda progress: progress.t >= whole.t[10]):
        path = trace(X, y, loss=loss, stop=rule)
        assert path.result is Result.STOPPED
        assert whole.t[10] <= path.t[-1] < whole.t[-1]


def test_stop_rule_sees_the_path_in_the_users_units(loss: str) -> None:
    X, y = make_data(loss)
    seen = []

    def look(progress: bregpath.Progress) -> bool:
        seen.append((progress.t, progress.n_active, progress.deviance_ratio, progress.intercept, progress.coef))
        return False

    path = trace(X, y, loss=loss, stop=look)
    assert path.result is Result.COMPLETED and len(seen) == path.stats.steps
    for t, n_active, ratio, intercept, coef in seen[:: max(1, len(seen) // 10)]:
        if t > path.t[-1]:
            continue
        point = path.at(t)
        assert_allclose(coef, point.coef, rtol=0, atol=1e-12 * np.abs(path.coef).max())
        assert_allclose(intercept, point.intercept, rtol=1e-9, atol=1e-12)
        assert n_active == len(path.support(t))
        assert 0 <= ratio <= 1


def test_stop_when_worse() -> None:
    data = bregpath.datasets.make_linear(120, 60, 5, snr=1.0, seed=3)
    rule = StopWhenWorse(data.X[60:], data.y[60:], patience=3)
    path = trace_path(data.X[:60], data.y[:60], stop=rule)
    assert path.result is Result.STOPPED
    error = [np.mean((data.y[60:] - path.predict(data.X[60:], t)) ** 2) for t in path.t]
    assert np.argmin(error) < len(error) - 1


def test_stop_rule_is_not_used_up_by_a_path() -> None:
    data = bregpath.datasets.make_linear(120, 60, 5, snr=1.0, seed=3)
    rule = StopWhenWorse(data.X[60:], data.y[60:], patience=3)
    ends = [trace_path(data.X[:60], data.y[:60], stop=rule).t[-1] for _ in range(2)]
    assert ends[0] == ends[1]


def test_a_stopped_path_goes_on(loss: str) -> None:
    X, y = make_data(loss)
    whole = trace(X, y, loss=loss)
    stopped = trace(X, y, loss=loss, stop=StopAtVariables(3))
    path = stopped.extend(whole.t[-1])
    assert path.result is Result.COMPLETED
    assert_allclose(path.t[-1], whole.t[-1])
    assert_array_equal(path.at(whole.t[20]).coef, whole.coef[20])
    assert_array_equal(path.entry_times, whole.entry_times)


def test_interrupt_leaves_a_path_that_goes_on(loss: str) -> None:
    X, y = make_data(loss)
    whole = trace(X, y, loss=loss)
    pressed = []

    def press_ctrl_c(progress: bregpath.Progress) -> bool:
        if progress.t > whole.t[12] and not pressed:
            pressed.append(progress.t)
            raise KeyboardInterrupt
        return False

    path = trace(X, y, loss=loss, stop=press_ctrl_c)
    assert path.result is Result.INTERRUPTED
    assert whole.t[0] <= path.t[-1] < whole.t[-1]  # interrupts are honoured between blocks of steps
    for t in path.t:
        assert_array_equal(path.at(t).coef, whole.at(t).coef)
    longer = path.extend(whole.t[-1])
    assert longer.result is Result.COMPLETED
    assert_array_equal(longer.at(whole.t[25]).coef, whole.coef[25])
    assert_array_equal(longer.entry_times, whole.entry_times)


def test_interrupt_before_the_first_step() -> None:
    X, y = make_data("gaussian")

    def press_ctrl_c(progress: bregpath.Progress) -> bool:
        raise KeyboardInterrupt

    path = trace(X, y, stop=press_ctrl_c)
    assert path.result is Result.INTERRUPTED
    whole = trace(X, y)
    assert_array_equal(path.at(path.t[-1]).coef, whole.at(path.t[-1]).coef)
    assert repr(path)


# --- ends and odds -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0.0, 3.0, 0.1, -1e9])
@pytest.mark.parametrize("loss", LOSSES_WITH_UNITS)
def test_constant_y_is_at_rest(loss: str, value: float) -> None:
    X, _ = make_data(loss)
    path = trace(X, np.full(len(X), value), loss=loss)
    assert path.result is Result.AT_REST
    assert not path.coef.any() and np.isinf(path.entry_times).all() and not path.df.any()
    assert_allclose(path.intercept, value, rtol=1e-12)
    assert_allclose(path.predict(X, path.t[3]), value, rtol=1e-12)
    assert_array_equal(path.deviance_ratio, 0.0)
    assert repr(path)


def test_poisson_of_constant_counts_is_at_rest() -> None:
    X, _ = make_data("poisson")
    path = trace(X, np.full(len(X), 3), loss="poisson")
    assert path.result is Result.AT_REST
    assert_allclose(path.predict(X, path.t[0]), 3.0, rtol=1e-12)


def test_unrelated_columns_are_at_rest() -> None:
    X = np.array([[1.0], [1.0], [-1.0], [-1.0]])
    assert trace(X, [1.0, -1.0, 1.0, -1.0]).result is Result.AT_REST
    assert trace(X, [1, 0, 1, 0], loss="logistic").result is Result.AT_REST


@pytest.mark.parametrize("loss", ["logistic", "multinomial"])
def test_separable_data_saturate(loss: str) -> None:
    X, _ = make_data(loss)
    y = np.digitize(X[:, 0], np.quantile(X[:, 0], [0.5] if loss == "logistic" else [0.33, 0.67]))
    path = trace(X, y, loss=loss, t_ratio=1e5)
    assert path.result is Result.SATURATED
    assert 0.999 <= path.deviance_ratio[-1] < 0.9999
    assert np.isfinite(path.coef).all()
    assert "99.9 %" in str(path.result) and "99.9 %" in repr(path)


def test_interpolation_saturates() -> None:
    X, y = make_data("gaussian", n=12, p=40)
    path = trace(X, y, t_ratio=1e5)
    assert path.result is Result.SATURATED


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_intercept_of_rare_events(seed: int) -> None:
    """1 % positives: the null intercept is the log odds, and along the path the intercept keeps up."""
    rng = np.random.default_rng(seed)
    n = 4000
    X = rng.normal(size=(n, 8)) + rng.normal(size=8)
    score = X[:, :2] @ [1.0, -1.0] + rng.logistic(size=n)
    y = (score > np.quantile(score, 0.99)).astype(int)
    path = trace(X, y, loss="logistic", t_ratio=100.0)
    share = y.mean()
    assert_allclose(path.intercept[0], np.log(share / (1 - share)), rtol=1e-10)
    model, codes, w = encoded("logistic", y)
    for i in (15, 22, 29):
        eta = X @ path.coef[i]
        best = minimize(lambda a, eta=eta: model.value(a + eta, codes, w), path.intercept[i], tol=1e-12).x[0]
        assert_allclose(path.intercept[i], best, rtol=0.01)


class TwoMethods:
    """The logistic loss as a user would write it: value and gradient, nothing else."""

    def value(self, eta, y, w):
        return np.dot(w, np.logaddexp(0.0, -y * eta))

    def gradient(self, eta, y, w):
        return -w * y / (1.0 + np.exp(y * eta))


@pytest.mark.parametrize("step", ["adaptive", 0.05])
def test_a_users_loss_equals_the_built_in_one(step: float | str) -> None:
    X, y = make_data("logistic")
    signs = 2.0 * y - 1.0
    a = trace(X, signs, loss=TwoMethods(), step=step, t_ratio=20.0)
    b = trace(X, signs, loss="logistic", step=step, t_ratio=20.0)
    assert_allclose(a.t, b.t, rtol=1e-8)
    assert_allclose(a.coef, b.coef, rtol=0, atol=1e-6)
    assert_allclose(a.intercept, b.intercept, rtol=0, atol=1e-6)
    assert_allclose(a.entry_times, b.entry_times, rtol=1e-6)
    assert_allclose(a.deviance, b.deviance, rtol=1e-6)
    assert not hasattr(a.loss.loss, "classes")


def test_progress_bar_runs(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("rich")
    X, y = make_data("gaussian")
    assert_same_path(trace(X, y, progress=True), trace(X, y))
    assert trace(X, y, progress=None).result is Result.COMPLETED  # no terminal here: no bar
    t0 = trace(X, y).t[0]
    assert trace(X, y, progress=True, t=[0.5 * t0]).result is Result.COMPLETED
    capsys.readouterr()


def test_a_pickled_path_drops_the_data(loss: str) -> None:
    X, y = make_data(loss, n=3000, p=12)
    path = trace(X, y, loss=loss, n_times=10, t_ratio=5.0)
    packed = pickle.dumps(path)
    assert len(packed) < X.nbytes
    copy = pickle.loads(packed)
    assert_array_equal(copy.coef, path.coef)
    assert_array_equal(copy.entry_times, path.entry_times)
    assert_array_equal(copy.predict(X, path.t[5]), path.predict(X, path.t[5]))
    with pytest.raises(ValueError, match="cannot be extended"):
        copy.extend(2 * path.t[-1])
    assert path.extend(2 * path.t[-1]).t[-1] == 2 * path.t[-1]  # the original still can


def test_a_path_is_frozen() -> None:
    X, y = make_data("gaussian")
    path = trace(X, y)
    with pytest.raises(AttributeError):
        path.t = path.t[:2]


def test_stats_count_the_work(loss: str) -> None:
    X, y = make_data(loss)
    stats = trace(X, y, loss=loss).stats
    assert 0 < stats.steps <= stats.gradients
    assert stats.column_products > 0 and stats.refreshes == 0
    assert stats.seconds > 0


def test_to_frame(loss: str) -> None:
    pd = pytest.importorskip("pandas")
    X, y = make_data(loss)
    path = trace(X, y, loss=loss)
    frame = path.to_frame()
    assert isinstance(frame, pd.DataFrame) and len(frame) == len(path.t)
    assert_array_equal(frame["t"], path.t)
    assert_array_equal(frame["df"], path.df)
    if path.n_outputs == 1:
        assert_array_equal(frame["x0"], path.coef[:, 0])
    else:
        assert_array_equal(frame["x0[b]"], path.coef[:, 0, 1])


def test_thinned_record_is_exact_at_the_times_of_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    X, y = make_data("logistic", n=80, p=40)
    whole = trace(X, y, loss="logistic")
    monkeypatch.setattr(integrate, "MAX_RECORD", 0)
    monkeypatch.setattr(glbi, "BLOCK_NUMBERS", 0)  # several blocks
    with pytest.warns(UserWarning, match="thinned"):
        thin = trace(X, y, loss="logistic")
    assert thin.trajectory.size < whole.trajectory.size
    assert_array_equal(thin.coef, whole.coef)
    assert_allclose(thin.entry_times, whole.entry_times, rtol=1e-12)
    assert_allclose(thin.exit_times, whole.exit_times, rtol=1e-12)
    thin.save(tmp_path / "thin.npz")
    assert_allclose(bregpath.load_path(tmp_path / "thin.npz").entry_times, whole.entry_times, rtol=1e-12)
    with pytest.warns(UserWarning, match="thinned"):
        longer = thin.extend(2 * thin.t[-1])
    assert_array_equal(longer.coef[: len(thin.t)], whole.coef)
