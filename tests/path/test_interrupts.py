"""Ctrl-C leaves a path that is valid and goes on, or is raised; steps that fail end a path, and do not hang."""

from __future__ import annotations

import signal
import threading
import time

import numpy as np
import pytest

import bregpath
from bregpath import Result, _interrupts, _kernels, trace_path
from bregpath._threads import threads
from bregpath.flow import screened
from tests.graphs.cases import data_of, graph_of
from tests.helpers import make_data
from tests.interrupts import (
    assert_beginning_of,
    assert_extends_to,
    ctrl_c_after,
    ctrl_c_at_line,
    interrupt_and_extend,
    result_of,
)

CASES = ["gaussian", "gaussian-screened", "multinomial-screened", "fixed", "own-loss", "ising", "gaussian-graph"]
needs_timer = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")


class Squares:
    """Squared loss as a user would write it."""

    def value(self, eta, y, w):
        return 0.5 * float(np.dot(w, (eta - y) ** 2))

    def gradient(self, eta, y, w):
        return w * (eta - y)


def never(progress: bregpath.Progress) -> bool:
    return False


def tracer(case: str, **options):
    """A function that traces a small path."""
    if case in ("ising", "gaussian-graph"):
        name = "ising-composite" if case == "ising" else "gaussian-likelihood"
        graph = graph_of(name, n_times=6, **options)
        study = graph._prepare(data_of(name), None)
        return lambda: study.trace(stop=never)
    loss = case.partition("-")[0]
    loss = loss if loss in ("gaussian", "multinomial") else "gaussian"
    X, y = make_data(loss, 40, 12)
    own = {"step": 0.02} if case == "fixed" else {"loss": Squares()} if case == "own-loss" else {"loss": loss}
    return lambda: trace_path(X, y, stop=never, **{"n_times": 6, **own, **options})


@pytest.fixture(params=CASES)
def case(request, monkeypatch):
    """Short blocks, so that a small path has many."""
    monkeypatch.setattr(screened, "BLOCK_STEPS", 4)
    if request.param.endswith("screened"):
        request.getfixturevalue("always_screen")
    return request.param


MODULES = ("bregpath.flow", "bregpath.run", "bregpath.trace", "bregpath._kernels")


def assert_any_line_may_be_interrupted(case: str, count: int | None) -> None:
    """Interrupt a short path before some of its lines (None: all); each time a beginning of it is left, and goes on."""
    trace = tracer(case, t_ratio=3.0)
    trace()  # what is done for the first time only
    with ctrl_c_at_line(None, *MODULES) as lines:
        whole = trace()
    assert whole.result is Result.COMPLETED
    total, raised, kept = lines.count, [], []
    for k in range(total, 0, -1 if count is None else -(total // count)):
        with ctrl_c_at_line(k, *MODULES) as lines:
            path = result_of(trace)
        assert lines.place
        (raised if path is None else kept).append(k)
        if path is not None:
            assert path.result is Result.INTERRUPTED, lines.place
            assert_beginning_of(path, whole)
            assert_extends_to(path, whole)
    assert len(kept) > 5
    # Raised: before the first block is recorded, and when the path is all but in the hands of the caller.
    assert np.sum(np.array(raised) > 0.75 * total) <= (12 if count is None else 2)


def test_interrupt_at_some_lines(case):
    assert_any_line_may_be_interrupted(case, 60)


@pytest.mark.slow
def test_interrupt_at_every_line(case):
    assert_any_line_may_be_interrupted(case, None)


def assert_any_moment_may_be_interrupted(case: str, count: int) -> None:
    rng = np.random.default_rng([count, *case.encode()])
    trace = tracer(case, t_ratio=20.0)
    trace()  # what is done for the first time only
    # Moments are drawn from the time that it took: not from one in which the machine did something else.
    whole = min((trace() for _ in range(5)), key=lambda path: path.stats.seconds)
    ends = [interrupt_and_extend(trace, whole, rng) for _ in range(count)]
    assert ends.count("extended") > 0


@needs_timer
def test_interrupt_at_a_random_moment(case):
    assert_any_moment_may_be_interrupted(case, 20)


@needs_timer
@pytest.mark.slow
def test_interrupt_at_many_random_moments(case):
    assert_any_moment_may_be_interrupted(case, 500)


@needs_timer
def test_a_block_is_left_in_the_middle(monkeypatch, rng):
    """Far from its end: what was done of it is kept."""
    X = rng.standard_normal((200_000, 8))
    y = (X[:, 0] + X[:, 1] + rng.standard_normal(len(X)) > 0).astype(int)
    advance = _kernels.advance

    def press_in_the_second_block(system, knot, memory, until, max_steps, keep_rows):
        if not memory.gradients:
            return advance(system, knot, memory, until, 2, keep_rows)
        with ctrl_c_after(0.2):
            return advance(system, knot, memory, until, max_steps, keep_rows)

    def trace(steps, **options):
        return trace_path(X, y, loss="logistic", step=1e-4, t=[t0 + 1e-4 * steps], standardize="X")

    t0 = trace_path(X, y, loss="logistic", standardize="X", t_ratio=1.001, n_times=2).t[0]
    with monkeypatch.context() as patch:
        patch.setattr(_kernels, "advance", press_in_the_second_block)
        path = trace(600)
    assert path.result is Result.INTERRUPTED
    assert 2 < path.stats.steps < 514
    assert_extends_to(path, trace(path.stats.steps + 9.5))


@pytest.mark.parametrize("calls", [40, 41, 42, 60, 99])
def test_interrupt_inside_a_users_loss(calls):
    class Pressed(Squares):
        left = calls

        def gradient(self, eta, y, w):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
            return super().gradient(eta, y, w)

    X, y = make_data("gaussian", 40, 12)
    whole = trace_path(X, y, loss=Squares())
    path = trace_path(X, y, loss=Pressed())
    assert path.result is Result.INTERRUPTED and 0 < path.stats.steps < whole.stats.steps
    assert_beginning_of(path, whole)
    assert_extends_to(path, whole)


def test_another_error_of_a_signal_is_not_held_back():
    class TooLateError(Exception):
        pass

    class Late(Squares):
        left = 60

        def gradient(self, eta, y, w):
            self.left -= 1
            if self.left == 0:
                raise TooLateError
            return super().gradient(eta, y, w)

    X, y = make_data("gaussian")
    with pytest.raises(TooLateError):
        trace_path(X, y, loss=Late())


def test_a_stop_rule_has_its_say_after_an_interrupt():
    """The rule was not asked about the block in which it was interrupted, so that block is done again."""
    X, y = make_data("gaussian", 40, 12)
    pressed = []

    def three(progress: bregpath.Progress) -> bool:
        if progress.n_active > 3 and not pressed:
            pressed.append(progress.t)
            raise KeyboardInterrupt
        return progress.n_active > 3

    path = trace_path(X, y, stop=three)
    assert path.result is Result.INTERRUPTED and path.t[-1] < pressed[0]
    longer = path.extend(100 * path.t[0])
    assert longer.result is Result.STOPPED
    np.testing.assert_allclose(longer.t[-1], pressed[0], rtol=1e-12)


def test_an_interrupted_extension_loses_nothing():
    X, y = make_data("gaussian", 40, 12)
    path, whole = trace_path(X, y, t_ratio=3.0), trace_path(X, y, t_ratio=20.0)
    with ctrl_c_at_line(8, "bregpath.flow.integrate") as lines:
        same = path.extend(20 * path.t[0])
    assert lines.place and same.result is Result.INTERRUPTED
    assert same.t[-1] >= path.t[-1]
    assert_extends_to(same, whole)


# --- threads ----------------------------------------------------------------------------------------------------


@needs_timer
def test_threads_end_when_nobody_waits_for_them():
    X, y = make_data("logistic", 400, 10)
    began = time.perf_counter()

    def trace(seed: int) -> bregpath.Path:
        return trace_path(X, y, loss="logistic", step=1e-6, t_ratio=1e4)  # for hours

    with pytest.raises(KeyboardInterrupt), ctrl_c_after(0.5), threads(3) as each:
        each(trace, range(6))
    assert time.perf_counter() - began < 60
    assert not [t for t in threading.enumerate() if t.name.startswith("ThreadPoolExecutor")]


def test_an_error_ends_the_other_threads():
    def work(item: int) -> None:
        if item == 1:
            raise RuntimeError("no more")
        while True:
            _interrupts.check()
            time.sleep(0.01)

    with pytest.raises(RuntimeError, match="no more"), threads(3) as each:
        each(work, range(3))


def test_all_or_nothing_ends_with_its_block():
    with _interrupts.all_or_nothing():
        assert not _interrupts.keeps_parts()
        _interrupts.check()
    assert _interrupts.keeps_parts()


# --- steps that fail -------------------------------------------------------------------------------------------


def test_tol_below_rounding_is_refused():
    X, y = make_data("gaussian")
    with pytest.raises(ValueError, match="`tol`=1e-15 is below what rounding allows; use 1e-07 or more"):
        trace_path(X, y, tol=1e-15)


@pytest.mark.parametrize("kappa", [1.0, 10.0, 1000.0])
def test_the_smallest_tol_is_reached(loss, kappa):
    X, y = make_data(loss)
    path = trace_path(X, y, loss=loss, tol=1e-7, kappa=kappa, t_ratio=1.2)
    assert path.result is Result.COMPLETED


def test_a_path_that_cannot_begin_is_an_error():
    class Uphill(Squares):
        def gradient(self, eta, y, w):
            return -super().gradient(eta, y, w)

    X, y = make_data("gaussian")
    with pytest.raises(ValueError, match="larger `tol`, rescale `X`, or lower `kappa`=10.*`gradient`"):
        trace_path(X, y - y.mean(), loss=Uphill(), fit_intercept=False)


def test_a_fixed_step_below_rounding_is_an_error():
    X, y = make_data("gaussian")
    with pytest.raises(ValueError, match="`step` is so short"):
        trace_path(X, y, step=1e-18)


def test_a_later_stall_ends_the_path():
    """No step leads beyond a wall of infinite loss, and the path ends before it."""

    class Walled(Squares):
        def value(self, eta, y, w):
            return np.inf if np.abs(eta).max() > 3.0 else super().value(eta, y, w)

    X, y = make_data("gaussian")
    options = dict(t_ratio=100.0, fit_intercept=False, standardize="X")
    path, free = (trace_path(X, y, loss=loss, **options) for loss in (Walled(), Squares()))
    assert path.result is Result.STALLED
    assert "larger tol" in str(path.result)
    assert path.t[0] < path.t[-1] < free.t[-1] and len(path.t) > 2
    for t in path.t:
        np.testing.assert_allclose(path.at(t).coef, free.at(t).coef, atol=0.05 * np.abs(free.at(t).coef).max())
    again = path.extend(2 * path.t[-1])
    assert again.result is Result.STALLED
    np.testing.assert_allclose(again.t[-1], path.t[-1], rtol=1e-9)
