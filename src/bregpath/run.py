"""From an assembled problem to a Path."""

from __future__ import annotations

import numbers
import time
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bregpath import _frames, _interrupts, _validation
from bregpath._kernels import Steps
from bregpath._progress import progress_bar
from bregpath._records import changed
from bregpath._typing import Array, IntArray
from bregpath.flow import FLOWS, GISS, GLBI, AbstractFlow
from bregpath.flow.gram import GramBlock
from bregpath.flow.integrate import AbstractTrack, Record, integrate
from bregpath.flow.mean import AVERAGES, MeanTrajectory
from bregpath.flow.stop import Progress, Result, as_stop
from bregpath.flow.trajectory import Trajectory
from bregpath.path import Path, Stats
from bregpath.penalties import build_penalty
from bregpath.problem import Problem, null_model
from bregpath.units import Units

__all__ = ["SATURATION", "Assembled", "Track", "TraceOptions", "run"]

# Beyond this share of the deviance coefficients only grow; glmnet stops here as well.
SATURATION = 0.999
# A mean over time lags behind: it is followed to where the path itself leaves this share of that unexplained.
LAG = 0.1
# Below it rounding hides the share of the error that is allowed to a step at the start, where coefficients are small.
MIN_TOL = 1e-7
# Share of t after which a jump is seen.
JUST_AFTER = 1e-9
# A path that stalls before t has grown by this share has not begun.
MIN_START = 1e-6


@dataclass(frozen=True, eq=False)
class TraceOptions:
    """How paths are traced, whatever the problem: arguments of `trace_path`, checked."""

    step: float | str = "adaptive"
    tol: float = 0.01
    t: Any = None
    t_ratio: float = 100.0
    n_times: int = 100
    stop: Any = None
    saturation: float | None = SATURATION
    screening: bool = True
    progress: bool | None = False
    flow: Any = "glbi"
    average: str | None = None

    def __post_init__(self) -> None:
        if self.step != "adaptive":
            if isinstance(self.step, str):
                raise ValueError(f'`step` must be "adaptive" or a number, found {self.step!r}.')
            _validation.check_number("step", self.step)
        tol = _validation.check_number("tol", self.tol)
        if tol < MIN_TOL and self.step == "adaptive":
            raise ValueError(f"`tol`={tol:g} is below what rounding allows; use {MIN_TOL:g} or more.")
        if not isinstance(self.n_times, int | np.integer) or self.n_times < 2:
            raise ValueError(f"`n_times` must be a whole number of at least 2, found {self.n_times!r}.")
        if self.saturation is not None:
            _validation.check_number("saturation", self.saturation, at_most=1.0)
        if self.t is None:
            _validation.check_number("t_ratio", self.t_ratio, above=1.0)
        else:
            object.__setattr__(self, "t", _validation.check_times(self.t))
        if self.average is not None and not (isinstance(self.average, str) and self.average in AVERAGES):
            raise ValueError(f"`average` must be one of {sorted(AVERAGES)} or None, found {self.average!r}.")
        object.__setattr__(self, "stop", as_stop(self.stop))
        if not (isinstance(self.flow, type) and issubclass(self.flow, AbstractFlow)):
            if not isinstance(self.flow, str) or self.flow not in FLOWS:
                raise ValueError(f"`flow` must be one of {sorted(FLOWS)} or a class of flows, found {self.flow!r}.")
            object.__setattr__(self, "flow", FLOWS[self.flow])

    def with_kappa(self, kappa: Any) -> tuple[TraceOptions, float]:
        """The flow that goes with a kappa, and the kappa that goes with the flow: inverse scale space has none."""
        if isinstance(kappa, numbers.Real) and np.isposinf(float(kappa)) and self.flow is GLBI:
            return replace(self, flow=GISS), np.inf
        kappa = np.inf if not self.flow.takes_kappa else _validation.check_number("kappa", kappa)
        return self, kappa

    def times(self, t0: float) -> Array:
        """The times to report, of a path that begins at ``t0``."""
        return t0 * float(self.t_ratio) ** np.linspace(0.0, 1.0, self.n_times) if self.t is None else self.t


class Assembled(NamedTuple):
    """A problem, and what its coefficients mean."""

    problem: Problem
    units: Units
    layout: Any = None  # of a graph


class Track(AbstractTrack):
    """The path of a problem in the making; `run` makes a Path of it, `integrate` advances several.

    Parameters
    ----------
    assemble : callable
        Returns what is traced. Called when the track starts, so that data are copied, and threads work, no sooner.
    options : TraceOptions
    encoder : ColumnEncoder, optional
        Of the data frame, for the Path.
    """

    problem: Problem
    units: Units
    layout: Any
    times: Array  # to report, of the clock
    t0: float  # inside; infinite where nothing ever enters
    stop: Callable[[Progress], bool] | None
    null: float  # loss of the intercept alone, from which deviance is counted, as glmnet does

    def __init__(
        self,
        assemble: Callable[[], Assembled],
        options: TraceOptions,
        encoder: _frames.ColumnEncoder | None = None,
    ) -> None:
        self.assemble = assemble
        self.options = options
        self.encoder = encoder
        self.stop = as_stop(options.stop)
        self.is_watched = options.stop is not None or options.progress is not False

    def start(self) -> None:
        problem, self.units, self.layout = self.assemble()
        self.unit = unit = self.units.y_unit
        self.problem, options = problem, self.options
        step = None if isinstance(options.step, str) else float(options.step) * unit
        flow: AbstractFlow = options.flow(problem, step, float(options.tol), bool(options.screening))
        state = flow.start()
        self.t0, self.null, self.began = state.knot.t, state.knot.value, time.perf_counter()
        at_rest = np.isinf(self.t0)
        self.times = options.times(1.0 if at_rest else self.t0 / unit)
        beta, free = np.zeros(problem.beta_shape), problem.penalty.free_among(state.columns)
        if free.any():
            beta[state.columns[free]] = flow.reading.at_knots(state.columns, state.knot.z)[free]
        trajectory = Trajectory(flow.reading, state.knot.alpha, beta, tol=float(options.tol))
        if options.average is not None:
            trajectory = MeanTrajectory.of(trajectory, AVERAGES[options.average])
        self.record = Record(state, trajectory, Result.AT_REST if at_rest else None)
        if problem.penalty.free.any():
            nothing = build_penalty("l1", *problem.beta_shape)
            self.null = problem.value(null_model(replace(problem, penalty=nothing)).eta)
        self.flow = flow

    def reach(self, until: float) -> None:
        super().reach(until)
        flow, record = self.flow, self.record
        if flow is not None and record.result is Result.STALLED and not record.end > self.t0 * (1 + MIN_START):
            raise _no_start(flow, self.t0 / self.unit)

    @property
    def can_go_on(self) -> bool:
        """Whether it has ended because all is explained, but is on its way to a fit: separable classes have none."""
        return self.record.result is Result.SATURATED and not self.problem.loss.is_classifier

    def reach_past_saturation(self, until: float) -> None:
        """Go on to a time that others ask for, which is its end then."""
        if not self.can_go_on or self.record.end >= until * self.unit:
            return
        options, self.options = self.options, replace(self.options, saturation=None)
        self.record = self.record._replace(result=None, end=np.inf)
        self.reach(until)
        self.options = options
        if self.record.result is None:
            self.record = self.record._replace(result=Result.SATURATED, end=until * self.unit)

    @property
    def gram(self) -> GramBlock | None:
        """The Gram matrix that the path works on instead of the data, if it does."""
        return None if self.problem.moments is None else self.problem.moments.gram  # type: ignore[no-any-return]

    # --- when it ends ----------------------------------------------------------------------------------------

    def judge(self, record: Record, steps: Steps, count: Callable[[], Array]) -> tuple[Result, float] | None:
        """End by the user's rule, or when nothing is left to explain."""
        floor, share = self.problem.floor, self.options.saturation
        span = self.null - floor
        left = 1.0 - share if share is not None and self.problem.loss.can_saturate and span > 0 else -np.inf
        if record.trajectory.average is not None:
            left *= LAG
        saturated = (steps.value[1:] <= floor + left * span).nonzero()[0] + 1
        last = int(saturated[0]) if len(saturated) else len(steps)
        if self.stop is not None:
            value = steps.value[: last + 1]
            ratio = 1.0 - (value - floor) / span if span > 0 else np.zeros_like(value)
            end = self._stopped(self.stop, record.trajectory, steps, ratio, count())
            if end is not None:
                return Result.STOPPED, end
        # A model that jumps to an unpenalised fit of everything is not part of the path.
        return (Result.SATURATED, float(record.trajectory.reading.onset(steps.t)[last])) if len(saturated) else None

    def _stopped(
        self, stop: Callable[[Progress], bool], trajectory: Trajectory, steps: Steps, ratio: Array, n_active: Array
    ) -> float | None:
        """When the user's rule ends the path, if it does at one of the knots that have a ``ratio``."""
        onset = trajectory.reading.onset(steps.t)
        for k in range(1, len(ratio)):
            read = partial(self._read_knot, trajectory, steps, k)
            if stop(Progress(float(onset[k]) / self.unit, int(n_active[k]), float(ratio[k]), read)):
                if getattr(stop, "overshoots", False):
                    return self._last_allowed(trajectory, stop, float(steps.t[k - 1]), float(steps.t[k]), ratio[k])
                return float(min(steps.t[k], onset[k] * (1 + JUST_AFTER)))
        return None

    def _last_allowed(
        self, trajectory: Trajectory, stop: Callable[[Progress], bool], low: float, high: float, ratio: float
    ) -> float:
        """The end of the time, inside a step, to which a rule does not object."""
        for _ in range(50):
            middle = 0.5 * (low + high)
            alpha, columns, beta = trajectory.read(np.array([middle]))
            n_active = int(np.count_nonzero(np.any(beta[0] != 0, axis=1)))
            read = partial(self._restore, alpha[0], columns, beta[0])
            objects = stop(Progress(middle / self.unit, n_active, float(ratio), read))
            low, high = (low, middle) if objects else (middle, high)
        return low * (1 - 1e-13)  # on the safe side of what rounding does to times in other units

    def _read_knot(self, trajectory: Trajectory, steps: Steps, k: int) -> tuple[Array, Array]:
        """Intercept and coefficients at a knot, as the user knows them."""
        if trajectory.average is not None:
            alpha, columns, mean = trajectory.read(steps.t[k : k + 1])
            return self._restore(alpha[0], columns, mean[0])
        beta = trajectory.reading.at_knots(steps.columns, steps.z[k])
        return self._restore(steps.alpha[k], steps.columns, beta)

    def _restore(self, alpha: Array, columns: Array, beta: Array) -> tuple[Array, Array]:
        intercept, values = self.units.restore(alpha, columns, beta)
        coef = np.zeros(self.problem.beta_shape)
        coef[columns] = values
        return (intercept[0], coef[:, 0]) if self.problem.n_alpha == 1 else (intercept, coef)

    # --- reading ---------------------------------------------------------------------------------------------

    def read(self, times: Array) -> tuple[Array, IntArray, Array]:
        """As of `bregpath.flow.trajectory.Trajectory`; a path that ended before stays where it ended."""
        return self.record.trajectory.read(np.minimum(times * self.unit, self.record.end))

    def models(self, times: Array) -> tuple[Array, IntArray, Array]:
        """The same in the user's units: intercepts, columns and their coefficients."""
        alpha, columns, beta = self.read(times)
        intercept, coef = self.units.restore(alpha, columns, beta)
        return intercept, columns, coef

    def read_as(self, average: str | None) -> Track:
        """The same track, read as a mean over time, or as it is."""
        trajectory = self.record.trajectory
        if average == trajectory.average:
            return self
        plain = trajectory.plain
        return self._with(plain if average is None else MeanTrajectory.of(plain, AVERAGES[average]))

    def _with(self, trajectory: Trajectory) -> Track:
        return changed(self, record=self.record._replace(trajectory=trajectory))

    def with_plain(self) -> Track:
        """The same track, read as a mean and, behind these models, without an average."""
        return self._with(changed(self.record.trajectory, has_plain=True))

    def reached(self, times: Array, end: float = np.inf) -> Array:
        """Some times up to the end of the path, which is the last of them where it comes before."""
        end = min(end, self.record.end)
        if not end < times[-1] * self.unit * (1 - 1e-12):
            return times
        end /= self.unit
        before = times[times < end * (1 - 1e-12)]
        following = times[len(before)]  # the end itself, before it was rounded, if that was one of them
        return np.append(before, end if end < following * (1 - 1e-12) else following)

    def release(self) -> None:
        """Forget the data, of which there may be a copy: what was traced can be read, but does not go on."""
        self.record = self.record._replace(state=None)  # type: ignore[arg-type]
        for name in ("flow", "problem", "assemble"):
            vars(self).pop(name, None)

    def path(self, times: Array, earlier: Path | None = None, interrupted: bool = False) -> Path:
        """What has been traced, up to the last of some times, as a Path; ``earlier`` is what it continues."""
        assert self.flow is not None
        record, flow, problem = self.record, self.flow, self.problem
        result = Result.INTERRUPTED if interrupted else record.result or Result.COMPLETED
        times = self.reached(times, record.trajectory.end if interrupted else np.inf)
        return Path(
            t=times,
            null_deviance=self._deviance_of(self.null),
            result=result,
            stats=Stats(
                steps=record.trajectory.n_steps,
                **vars(flow.costs(record.state)),
                seconds=time.perf_counter() - self.began + (earlier.stats.seconds if earlier else 0.0),
            ),
            loss=problem.loss,
            units=self.units,
            trajectory=record.trajectory,
            encoder=self.encoder,
            _deviance=partial(self._deviance_at, record),
            _continue=partial(self._go_on, record),
        )

    def _deviance_at(self, record: Record, path: Path) -> Array:
        """Deviance at the times of a path that was made of a record."""
        assert self.flow is not None
        times, trajectory = path.t * self.unit, record.trajectory
        if np.isinf(self.t0) and not self.problem.penalty.free.any():
            # The share of a deviance that is mere rounding would be anything.
            return np.full(len(times), self._deviance_of(self.null))
        values = trajectory.losses(times)
        return self._deviance_of(self.flow.values(record.state, *path.models) if values is None else values)

    def _deviance_of(self, loss: Any) -> Any:
        """That of a loss of the flow."""
        return self.problem.loss.deviance_factor * self.unit**2 * (loss - self.problem.floor)

    def _go_on(self, record: Record, path: Path, t_max: float) -> Path:
        """Trace a path on, from the record that was made into it."""
        times, track = path.t, copy(self)
        log_step = np.log(times[-1] / times[0]) / max(len(times) - 1, 1)
        more = max(1, int(np.ceil(np.log(t_max / times[-1]) / log_step))) if log_step > 0 else 1
        track.times = np.concatenate([times, np.geomspace(times[-1], t_max, more + 1)[1:]])
        track.began = time.perf_counter()
        if record.result is Result.STOPPED:  # the rule has had its say
            track.stop = None
        if record.result is not Result.AT_REST:
            record = record._replace(result=None, end=np.inf)
        track.record = record._replace(state=record.state.copy())
        return run(track, path)


def run(track: Track, earlier: Path | None = None) -> Path:
    """Trace a track to the last of its times; Ctrl-C leaves a Path as far as it is valid."""
    if track.flow is None:
        track.start()
    end = float(track.times[-1])
    last = end * track.unit
    try:
        with progress_bar(track.options.progress, min(track.record.state.knot.t, last), last) as track.report:
            integrate([track], [end])
        return track.path(track.times, earlier)
    except KeyboardInterrupt:  # a second interrupt is not held back
        if not (_interrupts.keeps_parts() and track.record.trajectory.chunks):
            raise
        return track.path(track.times, earlier, interrupted=True)


def _no_start(flow: AbstractFlow, t0: float) -> ValueError:
    if flow.step is not None:
        return ValueError(f"`step` is so short that t stays at t0={t0:g}; choose a longer one.")
    return ValueError(
        f"The path does not get away from t0={t0:g}: no step is accurate to `tol`={flow.tol:g} without a rise of "
        f"the loss. Use a larger `tol`, rescale `X`, or lower `kappa`={flow.problem.kappa:g}; with a loss of your "
        "own, check that `gradient` is the derivative of `value`."
    )
