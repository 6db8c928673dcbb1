"""Paths that go on, are screened, and whose columns enter, leave and are limited: equal to what they must equal."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

import bregpath
from bregpath import Result, _kernels
from bregpath.flow.reading import Chunk, CubicOfDual
from bregpath.flow.screening import Certificate, LazyDual, Points
from bregpath.flow.working_set import WorkingSet
from bregpath.losses import as_loss
from bregpath.penalties import build_penalty
from bregpath.problem import Problem, first_entry
from bregpath.stores import DenseStore
from tests.helpers import (
    ALL_LOSSES,
    GROUPS,
    P,
    assert_same_path,
    encoded,
    make_data,
    penalty_options,
    rows,
    trace,
)

# --- going on -----------------------------------------------------------------------------------------------


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


# --- screening ----------------------------------------------------------------------------------------------


def assert_screened_equals_whole(monkeypatch: pytest.MonkeyPatch, X, y, **options) -> bregpath.Path:
    whole = trace(X, y, screening=False, **options)
    monkeypatch.setattr("bregpath.stores.base.WHOLE_BYTES", 0)
    monkeypatch.setattr("bregpath.flow.gram.MAX_WHOLE", 0)
    screened = trace(X, y, screening=True, **options)
    assert_same_path(screened, whole)
    assert whole.stats.working_columns == X.shape[1]
    return screened


def test_screened_equals_unscreened(loss: str, penalty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    p = 60
    X, y = make_data(loss, n=50, p=p)
    options = {} if penalty == "l1" else {"groups": np.arange(p) // 3}
    path = assert_screened_equals_whole(monkeypatch, X, y, loss=loss, penalty=penalty, t_ratio=4.0, **options)
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
    path = assert_screened_equals_whole(monkeypatch, X, y, loss=loss, penalty=penalty, t_ratio=8.0, **options)
    assert np.all(rows(path) >= lower[:, None]) and np.all(rows(path) <= upper[:, None])


def test_screened_with_more_columns_than_rows(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_data(loss, n=30, p=300)
    path = assert_screened_equals_whole(monkeypatch, X, y, loss=loss, t_ratio=6.0)
    assert path.stats.working_columns < 200


@pytest.mark.parametrize("kappa", [0.1, 1.0])
def test_screened_where_many_columns_move(loss: str, kappa: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of steps are about as long as proofs last: few steps are made in vain."""
    made, certain, real = [], [], WorkingSet.certify

    def certify(self: WorkingSet, steps: _kernels.Steps) -> Certificate:
        certificate = real(self, steps)
        if not self.is_whole:
            made.append(len(steps))
            certain.append(certificate.certain)
        return certificate

    monkeypatch.setattr(WorkingSet, "certify", certify)
    X, y = make_data(loss, n=30, p=400)
    path = assert_screened_equals_whole(monkeypatch, X, y, loss=loss, kappa=kappa, t_ratio=20.0)
    assert path.stats.working_columns < 400
    assert sum(certain) == path.stats.steps
    assert sum(made) < 2 * sum(certain)
    assert all(now <= max(2, 2 * before) for before, now in zip(certain, made[1:], strict=False))


@pytest.mark.parametrize(
    ("p", "kappa", "is_screened"),
    [
        *((600, 10.0, False), (1200, 10.0, True), (1200, 1.0, False)),
        *((4000, 1.0, True), (4000, 0.1, False), (9000, 0.1, True)),
    ],
)
def test_small_data_are_screened_where_few_columns_move(p: int, kappa: float, is_screened: bool) -> None:
    X, y = make_data("logistic", n=100, p=p)
    path = trace(X, y, loss="logistic", kappa=kappa, t_ratio=2.0)
    assert (path.stats.working_columns < p) == is_screened


def test_screened_with_correlated_columns(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_data(loss, n=60, p=80, correlation=0.95)
    assert_screened_equals_whole(monkeypatch, X, y, loss=loss, t_ratio=10.0)


def test_screened_with_duplicated_columns_and_near_ties(loss: str, monkeypatch: pytest.MonkeyPatch, rng) -> None:
    X, y = make_data(loss, n=60, p=15)
    near = X + 1e-7 * rng.normal(size=X.shape)
    X = np.hstack([X, X[:, ::-1], -X, near])
    assert_screened_equals_whole(monkeypatch, X, y, loss=loss, t_ratio=10.0)


def test_screened_with_a_fixed_step(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_data(loss, n=50, p=60)
    t0 = trace(X, y, loss=loss, t_ratio=2, n_times=2).t[0]
    assert_screened_equals_whole(monkeypatch, X, y, loss=loss, t_ratio=5.0, step=t0 / 300)


def test_screened_on_sparse_x(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_data(loss, n=80, p=60)
    X = sp.csc_array(np.where(np.abs(X) > 1.0, X, 0.0))
    assert_screened_equals_whole(monkeypatch, X, y, loss=loss, t_ratio=8.0)


@pytest.mark.parametrize("flow", ["glbi", "giss"])
def test_screened_on_few_of_many_sparse_columns(flow: str, monkeypatch: pytest.MonkeyPatch, rng) -> None:
    """Columns begin with their Gram matrix, and go on without it once they are many."""
    n, p = 400, 500
    X = sp.random(n, p, 0.02, format="csc", random_state=3, data_rvs=rng.standard_normal)
    y = X[:, :60] @ rng.normal(size=60) + 0.1 * rng.normal(size=n)
    kinds = set()
    real = WorkingSet.grow
    monkeypatch.setattr(WorkingSet, "grow", lambda self, new: (real(self, new), kinds.add(type(self.block).__name__)))
    assert_screened_equals_whole(monkeypatch, X, y, t_ratio=15.0, flow=flow, sample_weight=rng.uniform(0.5, 2.0, n))
    assert kinds == ({"SparseGram", "SparseBlock"} if _kernels.has_compiled() else {"SparseBlock"})


@pytest.mark.parametrize("seed", range(20))
def test_undecided_columns_hold_all_crossings(penalty: str, seed: int) -> None:
    """Whatever way R goes from its reference, forwards or backwards: no column beyond its threshold is missed."""
    rng = np.random.default_rng(seed)
    n, p, K = 30, 60, 4
    X, y = make_data("gaussian", n=n, p=p, seed=seed)
    options = {} if penalty == "l1" else {"groups": np.arange(p) // 3}
    mirror = build_penalty(penalty, p, 1, **options)
    problem = Problem(DenseStore(X), as_loss("gaussian"), mirror, y, np.full(n, 1 / n), np.zeros((n, 1)), 10.0, True)
    residual = problem.residual(np.full((n, 1), y.mean()))
    t = 0.5 * first_entry(problem, -X.T @ residual)
    slope = -X.T @ residual
    dual = LazyDual(problem, t * residual, residual, t * slope, slope)
    away = np.array([-6.0, *rng.uniform(-6, 2, K - 1)]) * t  # the first point lies beyond some thresholds
    noise = 0.02 * np.abs(residual).max() * rng.normal(size=(2, K, n, 1))
    steps = SimpleNamespace(R=(t + away)[:, None, None] * residual + t * noise[0], residual=residual + noise[1])
    points = Points(np.arange(K), rng.uniform(0, 0.1 * t, K))
    near, block, products, distances = dual.undecided(steps, points, np.zeros(0, dtype=int))  # type: ignore[arg-type]
    R = steps.R + points.ahead[:, None, None] * steps.residual
    exact = mirror.entry(-np.einsum("ij,kic->kjc", X, R))[:, :, 0]
    crossing = (exact < 0).any(axis=0)
    assert crossing.any() and not crossing.all()
    assert crossing[near].sum() == crossing.sum()
    assert_allclose(distances, exact[:, near], atol=1e-9 * np.abs(exact).max())
    # What was read of them is handed on.
    assert block is not None
    assert_array_equal(block.matvec(np.eye(len(near))), X[:, near])
    assert_allclose(products[:K, :, 0], -steps.R[:, :, 0] @ X[:, near], atol=1e-12 * np.abs(exact).max())


# --- entry times --------------------------------------------------------------------------------------------


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


def test_what_is_zero_at_two_knots_is_zero_between_them() -> None:
    """A cubic may bulge beyond the threshold; but no column enters there, and a screened path has no cubic of it."""
    z, slope = np.array([[0.99, 1.2], [0.99, 1.3]])[..., None], np.array([[0.2, 0.1], [-0.2, 0.1]])[..., None]
    chunk = Chunk(np.array([1.0, 2.0]), np.zeros((2, 1)), np.zeros((2, 1)), z, slope, np.array([1.0, 0.9]))
    coef = CubicOfDual(build_penalty("l1", 2, 1), kappa=1.0).between(chunk, np.arange(2), np.array([1.5]))[1][0, :, 0]
    assert_allclose(coef, [0.0, 0.25], atol=1e-12)


# --- limits and factors -------------------------------------------------------------------------------------


def test_limits_hold_at_all_times(loss: str, penalty: str) -> None:
    X, y = make_data(loss)
    lower = np.array([0, -np.inf, -0.1, -0.02, 0, -np.inf, 0, -1, -np.inf, -0.3])
    upper = np.array([np.inf, 0, 0.1, np.inf, 0.05, 0.02, 0, np.inf, 1, 0])
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
