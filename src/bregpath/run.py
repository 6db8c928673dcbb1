"""From an assembled problem to a Path."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from bregpath import _frames, _interrupts, _validation
from bregpath._kernels import Steps, UnstableStepError
from bregpath._progress import progress_bar
from bregpath._typing import Array
from bregpath.flow import FLOWS, AbstractFlow
from bregpath.flow.base import State
from bregpath.flow.integrate import Record, integrate
from bregpath.flow.problem import Problem, null_model
from bregpath.flow.stop import Progress, Result, as_stop
from bregpath.flow.trajectory import Trajectory
from bregpath.path import Path, Stats, Units
from bregpath.penalties import build_penalty

__all__ = ["SATURATION", "run_path"]

# Beyond this share of the deviance coefficients only grow; glmnet stops here as well.
SATURATION = 0.999
# Below it rounding hides the share of the error that is allowed to a step at the start, where coefficients are small.
MIN_TOL = 1e-7
# A path that stalls before t has grown by this share has not begun.
MIN_START = 1e-6


def run_path(
    problem: Problem,
    units: Units,
    encoder: _frames.ColumnEncoder | None = None,
    *,
    step: float | str = "adaptive",
    tol: float = 0.01,
    t: Any = None,
    t_ratio: float = 100.0,
    n_times: int = 100,
    stop: Any = None,
    saturation: float | None = SATURATION,
    screening: bool = True,
    progress: bool | None = False,
    flow: Any = "glbi",
) -> Path:
    """Trace an assembled problem; the arguments are those of `trace_path`."""
    if step != "adaptive":
        if isinstance(step, str):
            raise ValueError(f'`step` must be "adaptive" or a number, found {step!r}.')
        step = _validation.check_number("step", step) * units.y_unit
    tol = _validation.check_number("tol", tol)
    if tol < MIN_TOL and step == "adaptive":
        raise ValueError(f"`tol`={tol:g} is below what rounding allows; use {MIN_TOL:g} or more.")
    if not isinstance(n_times, int | np.integer) or n_times < 2:
        raise ValueError(f"`n_times` must be a whole number of at least 2, found {n_times!r}.")
    if saturation is not None:
        saturation = _validation.check_number("saturation", saturation, at_most=1.0)
    dynamics = _choose_flow(flow)(problem, None if step == "adaptive" else float(step), tol, bool(screening))
    start = dynamics.start()
    t0 = start.knot.t / units.y_unit if np.isfinite(start.knot.t) else 1.0
    if t is None:
        ratio = _validation.check_number("t_ratio", t_ratio, above=1.0)
        times = t0 * np.geomspace(1.0, ratio, n_times)
    else:
        times = _validation.check_times(t)
    null = _null_value(problem, start)
    run = _Run(dynamics, start.knot.t, null, units, encoder, as_stop(stop), saturation, progress)
    return run.trace(Record(start, run.new_trajectory(start)), times)


def _choose_flow(flow: Any) -> type[AbstractFlow]:
    if isinstance(flow, type) and issubclass(flow, AbstractFlow):
        return flow
    if not isinstance(flow, str) or flow not in FLOWS:
        raise ValueError(f"`flow` must be one of {sorted(FLOWS)} or a class of flows, found {flow!r}.")
    return FLOWS[flow]


def _null_value(problem: Problem, start: State) -> float:
    """Loss of the intercept alone, from which deviance is counted, as glmnet does."""
    if not problem.penalty.free.any():
        return start.knot.value
    nothing = build_penalty("l1", *problem.beta_shape)
    return problem.value(null_model(replace(problem, penalty=nothing)).eta)


@dataclass(frozen=True)
class _Run:
    """Traces a problem and, later, traces it on."""

    flow: AbstractFlow
    t0: float  # inside; infinite where nothing ever enters
    null: float  # loss of the null model
    units: Units
    encoder: _frames.ColumnEncoder | None
    stop: Callable[[Progress], bool] | None
    saturation: float | None
    progress: bool | None

    @property
    def problem(self) -> Problem:
        return self.flow.problem

    def new_trajectory(self, start: State) -> Trajectory:
        beta, free = np.zeros(self.problem.beta_shape), self.problem.penalty.free_among(start.columns)
        beta[start.columns[free]] = self.flow.reading.at_knots(start.columns, start.knot.z)[free]
        return Trajectory(self.flow.reading, start.knot.alpha, beta)

    def trace(self, record: Record, times: Array, earlier: Path | None = None) -> Path:
        """Advance to the last of ``times`` and make the Path up to there; ``earlier`` is what it continues."""
        began = time.perf_counter()
        result, end, record = self._integrate(record, times * self.units.y_unit)
        if record.trajectory.is_thinned:
            warnings.warn(
                "The record of this path grew beyond 512 MB and was thinned: it is exact at path.t, and interpolated "
                "at other times. Ask for fewer variables (stop=StopAtVariables(n)) or a shorter path (t_ratio).",
                stacklevel=3,
            )
        if end < times[-1] * self.units.y_unit * (1 - 1e-12):
            end /= self.units.y_unit
            times = np.append(times[times < end], end)
        try:
            return self._path(record, times, earlier, result, began)
        except KeyboardInterrupt:  # the path is there, only not yet put together; a second interrupt is not held back
            if not (_interrupts.keeps_parts() and record.trajectory.chunks):
                raise
            return self._path(record, times, earlier, Result.INTERRUPTED, began)

    def _integrate(self, record: Record, times: Array) -> tuple[Result, float, Record]:
        """How the path ended, when, and what it has become; all times are inside ones."""
        if np.isinf(self.t0):
            return Result.AT_REST, times[-1], record
        unit, start = self.units.y_unit, record.state.knot.t
        is_watched = self.stop is not None or self.progress is not False
        with progress_bar(self.progress, start, times[-1]) as report:
            try:
                verdict = _Verdict(self)
                result, end, record = integrate(self.flow, record, times, verdict, report, is_watched)
            except UnstableStepError as error:
                raise error.in_units(unit) from None
        if result is Result.STALLED and not record.state.knot.t > self.t0 * (1 + MIN_START):
            raise _no_start(self.flow, self.t0 / unit)
        return result, end, record

    def _path(self, record: Record, times: Array, earlier: Path | None, result: Result, began: float) -> Path:
        """The record as a Path at some times."""
        (state, trajectory), unit = record, self.units.y_unit
        stats = Stats(
            steps=trajectory.n_steps,
            **asdict(self.flow.costs(state)),
            seconds=time.perf_counter() - began + (earlier.stats.seconds if earlier else 0.0),
        )
        scale = self.problem.loss.deviance_factor * unit**2
        floor = self.problem.loss.saturated(self.problem.y, self.problem.w)
        known = len(earlier.t) if earlier else 0
        values = self.flow.values(state, *trajectory.read(times[known:] * unit))
        if np.isinf(self.t0) and not self.problem.penalty.free.any():
            # The share of a deviance that is mere rounding would be anything.
            values = np.full(len(times) - known, self.null)
        deviance = np.append(earlier.deviance if earlier else [], scale * (values - floor))

        def go_on(path: Path, t_max: float) -> Path:
            log_step = np.log(times[-1] / times[0]) / max(len(times) - 1, 1)
            more = max(1, int(np.ceil(np.log(t_max / times[-1]) / log_step))) if log_step > 0 else 1
            later = np.concatenate([times, np.geomspace(times[-1], t_max, more + 1)[1:]])
            run = replace(self, stop=None) if result is Result.STOPPED else self  # the rule has had its say
            return run.trace(record._replace(state=state.copy()), later, earlier=path)

        return Path(
            t=times,
            deviance=deviance,
            null_deviance=scale * (self.null - floor),
            result=result,
            stats=stats,
            loss=self.problem.loss,
            units=self.units,
            trajectory=trajectory,
            encoder=self.encoder,
            _continue=go_on,
        )


def _no_start(dynamics: AbstractFlow, t0: float) -> ValueError:
    if dynamics.step is not None:
        return ValueError(f"`step` is so short that t stays at t0={t0:g}; choose a longer one.")
    return ValueError(
        f"The path does not get away from t0={t0:g}: no step is accurate to `tol`={dynamics.tol:g} without a rise of "
        f"the loss. Use a larger `tol`, rescale `X`, or lower `kappa`={dynamics.problem.kappa:g}; with a loss of your "
        "own, check that `gradient` is the derivative of `value`."
    )


class _Verdict:
    """Ends a path by the user's rule, or when nothing is left to explain."""

    def __init__(self, run: _Run) -> None:
        self.run = run
        self.floor = run.problem.loss.saturated(run.problem.y, run.problem.w)
        self.span = run.null - self.floor

    def __call__(self, record: Record, steps: Steps, n_active: Array) -> tuple[Result, float] | None:
        ratio = 1.0 - (steps.value - self.floor) / self.span if self.span > 0 else np.zeros(len(steps) + 1)
        share = self.run.saturation
        limit = share if share is not None and self.run.problem.loss.can_saturate else np.inf
        saturated = np.flatnonzero(ratio[1:] >= limit) + 1
        last = int(saturated[0]) if len(saturated) else len(steps)
        stop, read = self.run.stop, partial(self._read, steps)
        for k in range(1, last + 1) if stop is not None else ():
            time_now = float(steps.t[k]) / self.run.units.y_unit
            progress = Progress(time_now, int(n_active[k]), float(ratio[k]), partial(read, k))
            if stop is not None and stop(progress):
                if getattr(stop, "overshoots", False):
                    low, high = float(steps.t[k - 1]), float(steps.t[k])
                    return Result.STOPPED, self._last_allowed(record.trajectory, stop, low, high, ratio[k])
                return Result.STOPPED, float(steps.t[k])
        return (Result.SATURATED, float(steps.t[last])) if len(saturated) else None

    def _last_allowed(
        self, trajectory: Trajectory, stop: Callable[[Progress], bool], low: float, high: float, ratio: float
    ) -> float:
        """The end of the time, inside a step, to which a rule does not object."""
        for _ in range(50):
            middle = 0.5 * (low + high)
            alpha, columns, beta = trajectory.read(np.array([middle]))
            n_active = int(np.count_nonzero(np.any(beta[0] != 0, axis=1)))
            read = partial(self._restore, alpha[0], columns, beta[0])
            if stop(Progress(middle / self.run.units.y_unit, n_active, float(ratio), read)):
                high = middle
            else:
                low = middle
        return low * (1 - 1e-13)  # on the safe side of what rounding does to times in other units

    def _read(self, steps: Steps, k: int) -> tuple[Array, Array]:
        """Intercept and coefficients at a knot, as the user knows them."""
        beta = self.run.flow.reading.at_knots(steps.columns, steps.z[k])
        return self._restore(steps.alpha[k], steps.columns, beta)

    def _restore(self, alpha: Array, columns: Array, beta: Array) -> tuple[Array, Array]:
        problem = self.run.problem
        intercept, values = self.run.units.restore(alpha, columns, beta)
        coef = np.zeros(problem.beta_shape)
        coef[columns] = values
        return (intercept[0], coef[:, 0]) if problem.n_alpha == 1 else (intercept, coef)
