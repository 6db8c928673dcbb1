"""From an assembled problem to a Path."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from bregpath import _frames, _interrupts, _validation
from bregpath._kernels import Steps, UnstableStepError
from bregpath._progress import progress_bar
from bregpath._typing import Array
from bregpath.flow.glbi import GLBI, State
from bregpath.flow.integrate import Record, integrate
from bregpath.flow.problem import Problem, null_model
from bregpath.flow.stop import Progress, Result, as_stop
from bregpath.flow.trajectory import Trajectory
from bregpath.path import Path, Stats
from bregpath.penalties import build_penalty

__all__ = ["SATURATION", "run_path"]

PathType = TypeVar("PathType", bound=Path)

# Beyond this share of the deviance coefficients only grow; glmnet stops here as well.
SATURATION = 0.999
# Below it rounding hides the share of the error that is allowed to a step at the start, where coefficients are small.
MIN_TOL = 1e-7
# A path that stalls before t has grown by this share has not begun.
MIN_START = 1e-6


def run_path(
    problem: Problem,
    units: Any,
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
    path_type: type[PathType] = Path,  # type: ignore[assignment]
) -> PathType:
    """Trace an assembled problem; the arguments are those of `trace_path`.

    ``units`` restores coefficients to the user's scale: `bregpath.path.Units`, or the layout of a graph.
    """
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
    dynamics = GLBI(problem, None if step == "adaptive" else float(step), tol, bool(screening))
    start = dynamics.start()
    if t is None:
        ratio = _validation.check_number("t_ratio", t_ratio, above=1.0)
        times = start.knot.t / units.y_unit * np.geomspace(1.0, ratio, n_times)
    else:
        times = _validation.check_times(t)
    run = _Run(problem, units, encoder, as_stop(stop), saturation, progress, path_type)
    return run.trace(dynamics, Record(start, run.new_trajectory(dynamics, start)), times)  # type: ignore[return-value]


@dataclass(frozen=True)
class _Run:
    """Traces a problem and, later, traces it on."""

    problem: Problem
    units: Any  # Units, or the layout of a graph
    encoder: _frames.ColumnEncoder | None
    stop: Callable[[Progress], bool] | None
    saturation: float | None
    progress: bool | None
    path_type: type[Path] = Path

    def new_trajectory(self, dynamics: GLBI, start: State) -> Trajectory:
        beta = np.zeros(self.problem.beta_shape)
        beta[start.working.columns] = start.working.penalty.primal(start.knot.z, self.problem.kappa)
        beta[~self.problem.penalty.free] = 0.0
        return Trajectory(self.problem.penalty, self.problem.kappa, dynamics.degree, start.knot.alpha, beta)

    def trace(self, dynamics: GLBI, record: Record, times: Array, earlier: Path | None = None) -> Path:
        """Advance to the last of ``times`` and make the Path up to there; ``earlier`` is what it continues."""
        began = time.perf_counter()
        null = self._null_value(dynamics)
        result, end, record = self._integrate(dynamics, record, times * self.units.y_unit, null)
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
            return self._path(dynamics, record, times, earlier, result, null, began)
        except KeyboardInterrupt:  # the path is there, only not yet put together; a second interrupt is not held back
            if not (_interrupts.keeps_parts() and record.trajectory.chunks):
                raise
            return self._path(dynamics, record, times, earlier, Result.INTERRUPTED, null, began)

    def _integrate(self, dynamics: GLBI, record: Record, times: Array, null: float) -> tuple[Result, float, Record]:
        """How the path ended, when, and what it has become; all times are inside ones."""
        if dynamics.at_rest:
            return Result.AT_REST, times[-1], record
        unit, start = self.units.y_unit, record.state.knot.t
        is_watched = self.stop is not None or self.progress is not False
        with progress_bar(self.progress, start, times[-1]) as report:
            try:
                verdict = _Verdict(self, null)
                result, end, record = integrate(dynamics, record, times, verdict, report, is_watched)
            except UnstableStepError as error:
                raise error.in_units(unit) from None
        if result is Result.STALLED and not record.state.knot.t > dynamics.t0 * (1 + MIN_START):
            raise _no_start(dynamics, dynamics.t0 / unit)
        return result, end, record

    def _path(
        self, dynamics: GLBI, record: Record, times: Array, earlier: Path | None, result: Result, null: float,
        began: float,
    ) -> Path:  # fmt: skip
        """The record as a Path at some times."""
        (state, trajectory), unit = record, self.units.y_unit
        knot, dual = state.knot, state.working.dual
        stats = Stats(
            steps=trajectory.n_steps,
            gradients=int(knot.gradients),
            column_products=int(knot.products) + (dual.products if dual else 0),
            refreshes=dual.refreshes if dual else 0,
            working_columns=len(state.working.columns),
            seconds=time.perf_counter() - began + (earlier.stats.seconds if earlier else 0.0),
        )
        scale = self.problem.loss.deviance_factor * unit**2
        floor = self.problem.loss.saturated(self.problem.y, self.problem.w)
        known = len(earlier.t) if earlier else 0
        values = dynamics.values(state, *trajectory.read(times[known:] * unit))
        if dynamics.at_rest and not self.problem.penalty.free.any():
            # The share of a deviance that is mere rounding would be anything.
            values = np.full(len(times) - known, null)
        deviance = np.append(earlier.deviance if earlier else [], scale * (values - floor))

        def go_on(path: Path, t_max: float) -> Path:
            log_step = np.log(times[-1] / times[0]) / max(len(times) - 1, 1)
            more = max(1, int(np.ceil(np.log(t_max / times[-1]) / log_step))) if log_step > 0 else 1
            later = np.concatenate([times, np.geomspace(times[-1], t_max, more + 1)[1:]])
            run = replace(self, stop=None) if result is Result.STOPPED else self  # the rule has had its say
            return run.trace(dynamics, record._replace(state=state.copy()), later, earlier=path)

        return self.path_type(
            t=times,
            deviance=deviance,
            null_deviance=scale * (null - floor),
            result=result,
            stats=stats,
            loss=self.problem.loss,
            units=self.units,
            trajectory=trajectory,
            encoder=self.encoder,
            _continue=go_on,
        )

    def _null_value(self, dynamics: GLBI) -> float:
        """Loss of the intercept alone, from which deviance is counted, as glmnet does."""
        problem = self.problem
        if not problem.penalty.free.any():
            return dynamics.null_value
        nothing = build_penalty("l1", *problem.beta_shape)
        return problem.value(problem.predictor(problem.design, *null_model(replace(problem, penalty=nothing))))


def _no_start(dynamics: GLBI, t0: float) -> ValueError:
    if dynamics.step is not None:
        return ValueError(f"`step` is so short that t stays at t0={t0:g}; choose a longer one.")
    return ValueError(
        f"The path does not get away from t0={t0:g}: no step is accurate to `tol`={dynamics.tol:g} without a rise of "
        f"the loss. Use a larger `tol`, rescale `X`, or lower `kappa`={dynamics.problem.kappa:g}; with a loss of your "
        "own, check that `gradient` is the derivative of `value`."
    )


class _Verdict:
    """Ends a path by the user's rule, or when nothing is left to explain."""

    def __init__(self, run: _Run, null: float) -> None:
        self.run = run
        self.floor = run.problem.loss.saturated(run.problem.y, run.problem.w)
        self.span = null - self.floor

    def __call__(self, record: Record, steps: Steps, n_active: Array) -> tuple[Result, float] | None:
        ratio = 1.0 - (steps.value - self.floor) / self.span if self.span > 0 else np.zeros(len(steps) + 1)
        share = self.run.saturation
        limit = share if share is not None and self.run.problem.loss.can_saturate else np.inf
        saturated = np.flatnonzero(ratio[1:] >= limit) + 1
        last = int(saturated[0]) if len(saturated) else len(steps)
        stop, read = self.run.stop, partial(self._read, record.state.working.columns, steps)
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

    def _read(self, columns: Array, steps: Steps, k: int) -> tuple[Array, Array]:
        """Intercept and coefficients at a knot, as the user knows them."""
        problem, columns = self.run.problem, columns[: steps.z.shape[1]]  # those after them are new
        beta = problem.penalty.take(columns).primal(steps.z[k], problem.kappa)
        return self._restore(steps.alpha[k], columns, beta)

    def _restore(self, alpha: Array, columns: Array, beta: Array) -> tuple[Array, Array]:
        problem = self.run.problem
        intercept, values = self.run.units.restore(alpha, columns, beta)
        coef = np.zeros(problem.beta_shape)
        coef[columns] = values
        return (intercept[0], coef[:, 0]) if problem.n_alpha == 1 else (intercept, coef)
