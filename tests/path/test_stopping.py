"""How paths end, and what is left of them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

import bregpath
from bregpath import Result, StopAtDevianceRatio, StopAtPlateau, StopAtTime, StopAtVariables, StopWhenWorse, trace_path
from tests.helpers import (
    LOSSES_WITH_UNITS,
    assert_same_path,
    encoded,
    make_data,
    rows,
    trace,
)

# --- stopping -----------------------------------------------------------------------------------------------


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


def test_stop_at_plateau(loss: str) -> None:
    X, y = make_data(loss)
    whole = trace(X, y, loss=loss, n_times=2000)
    rule = StopAtPlateau(gain=0.02, growth=2.0)
    path = trace(X, y, loss=loss, stop=rule)
    assert path.result is Result.STOPPED
    end = path.t[-1]
    assert 2.0 * whole.t[0] <= end < whole.t[-1]

    def gain(t: float) -> float:
        return 1 - np.interp(t / 2.0, whole.t, whole.deviance_ratio) / np.interp(t, whole.t, whole.deviance_ratio)

    assert gain(end) < 0.025  # the rule looks at the ends of steps
    assert all(gain(t) > 0.015 for t in whole.t if 2.0 * whole.t[0] <= t < 0.9 * end)
    assert_array_equal(trace(X, y, loss=loss, stop=rule).t, path.t)  # nothing is remembered from path to path


@pytest.mark.parametrize(("option", "value"), [("gain", -1.0), ("gain", np.nan), ("growth", 1.0), ("growth", "2")])
def test_plateau_refuses(option: str, value: object) -> None:
    with pytest.raises((TypeError, ValueError), match=f"`{option}`"):
        StopAtPlateau(**{option: value})


def test_stop_rule_sees_the_path_in_the_users_units(loss: str) -> None:
    X, y = make_data(loss)
    seen = []

    def look(progress: bregpath.Progress) -> bool:
        seen.append((progress.t, progress.n_active, progress.deviance_ratio, progress.intercept, progress.coef))
        return False

    path = trace(X, y, loss=loss, stop=look)
    n_knots = sum(len(chunk.t) - 1 for chunk in path.trajectory.chunks)  # of squared loss, several a step
    assert path.result is Result.COMPLETED and len(seen) == n_knots >= path.stats.steps
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


@pytest.mark.parametrize("every", [1.0, 1.3])
def test_stop_when_worse_by_hand(every: float) -> None:
    """The rule, applied to the errors after every step."""
    data = bregpath.datasets.make_linear(120, 60, 5, snr=1.0, seed=3)
    X, y = data.X[60:], data.y[60:]
    seen: list[tuple[float, float]] = []

    def look(now: bregpath.Progress) -> bool:
        seen.append((now.t, float(np.mean((y - X @ now.coef - now.intercept) ** 2))))
        return False

    trace_path(data.X[:60], data.y[:60], stop=look)
    best, waited, due, end = np.inf, 0, 0.0, 0.0
    for t, error in seen:
        if t >= due and waited < 3:
            due, end = t * every, t
            best, waited = (error, 0) if error < best else (best, waited + 1)
    assert waited == 3 and end < seen[-1][0]
    for score in (None, lambda y, eta: np.mean((y - eta) ** 2)):
        rule = StopWhenWorse(X, y, score=score, patience=3, every=every)
        assert_allclose(trace_path(data.X[:60], data.y[:60], stop=rule).t[-1], end, rtol=1e-9)


X, Y = make_data("gaussian", n=20, p=4)
NOT_RULES = {
    "no time": (lambda: StopAtTime(-1.0), ValueError, "`t` must be a finite number above 0, found -1"),
    "no columns": (lambda: StopAtVariables(-1), ValueError, "`n` must be at least 0, found -1"),
    "half a column": (lambda: StopAtVariables(2.5), TypeError, "`n` must be an integer, found 2.5"),
    "beyond all deviance": (lambda: StopAtDevianceRatio(80), ValueError, "`ratio` must be at most 1, found 80"),
    "fewer responses": (lambda: StopWhenWorse(X, Y[:5]), ValueError, "`X` and `y` differ in length: 20 rows and 5"),
    "NaN": (lambda: StopWhenWorse(X, np.where(Y > 0, np.nan, Y)), ValueError, "`y` of StopWhenWorse must hold finite"),
    "labels": (lambda: StopWhenWorse(X, np.where(Y > 0, "a", "b")), ValueError, "code labels as the loss does, or"),
}


@pytest.mark.parametrize(("make", "error", "text"), NOT_RULES.values(), ids=NOT_RULES)
def test_rules_that_could_never_hold_are_refused(make, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make()


def test_held_out_data_are_those_of_the_path() -> None:
    with pytest.raises(ValueError, match="`X` of StopWhenWorse has 3 columns, the path is traced on 4"):
        trace_path(X, Y, stop=StopWhenWorse(X[:, :3], Y))
    classes = np.arange(20) % 3
    with pytest.raises(ValueError, match="needs a `score` for models of 3 outputs"):
        trace_path(X, classes, loss="multinomial", stop=StopWhenWorse(X, classes))
    with pytest.raises(ValueError, match="`stop` must be a finite number above 0, found -2"):
        trace_path(X, Y, stop=-2.0)


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


def test_interrupt_before_anything_is_recorded_is_raised() -> None:
    X, y = make_data("gaussian")

    def press_ctrl_c(progress: bregpath.Progress) -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trace(X, y, stop=press_ctrl_c)


# --- ends and odds ------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("seed", range(10))
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


def test_a_time_between_the_window_and_its_last_step() -> None:
    """A rule that objects only beyond the last requested time has not ended the path."""
    X, y = make_data("gaussian")
    window = trace(X, y, t_ratio=20.0)
    last_knot = window.trajectory.end / window.units.y_unit
    assert last_knot > window.t[-1]
    path = trace(X, y, t_ratio=20.0, stop=0.5 * (window.t[-1] + last_knot))
    assert path.result is Result.COMPLETED
    assert path.t[-1] == window.t[-1]
