"""`trace_path`: from data and wishes to a Path."""

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
from bregpath.designs import AbstractColumns, DenseDesign, SparseDesign, StandardizedDesign
from bregpath.flow.glbi import GLBI, State
from bregpath.flow.integrate import Record, integrate
from bregpath.flow.problem import Problem, null_model
from bregpath.flow.stop import Progress, Result, as_stop
from bregpath.flow.trajectory import Trajectory
from bregpath.losses import AbstractLoss, as_loss
from bregpath.path import Path, Stats, Units
from bregpath.penalties import AbstractPenalty, build_penalty

__all__ = ["run_path", "trace_path"]

PathType = TypeVar("PathType", bound=Path)

# Beyond this share of the deviance coefficients only grow; glmnet stops here as well.
SATURATION = 0.999
# Below it rounding hides the share of the error that is allowed to a step at the start, where coefficients are small.
MIN_TOL = 1e-7
# A path that stalls before t has grown by this share has not begun.
MIN_START = 1e-6


def trace_path(
    X: Any,
    y: Any = None,
    *,
    loss: Any = "gaussian",
    penalty: str = "l1",
    groups: Any = None,
    penalty_factor: Any = None,
    lower: Any = None,
    upper: Any = None,
    kappa: float = 10.0,
    step: float | str = "adaptive",
    tol: float = 0.01,
    t: Any = None,
    t_ratio: float = 100.0,
    n_times: int = 100,
    flow: str = "glbi",
    sample_weight: Any = None,
    offset: Any = None,
    fit_intercept: bool = True,
    standardize: bool | str = True,
    stop: Any = None,
    saturation: float | None = SATURATION,
    screening: bool = True,
    progress: bool | None = False,
) -> Path:
    r"""Trace a whole sparse regularisation path.

    Integrates, from the exact time ``t0`` at which the first variable enters,

    .. math:: \dot\alpha = -\kappa \nabla_\alpha \ell, \qquad \dot z = -\nabla_\beta \ell, \qquad
              \beta = \kappa\, \mathrm{shrink}(z).

    Parameters
    ----------
    X : array, scipy.sparse matrix, or data frame of shape (n, p)
        Dense X (float32 or float64, any order) is not copied. Categorical columns of a frame become indicators, one
        group each.
    y : array-like of shape (n,)
        Response: numbers, or labels of any kind for the logistic and multinomial losses.
    loss : str or object, default "gaussian"
        "gaussian", "logistic", "multinomial", "poisson", "huber", or any object with ``value(eta, y, w)`` and
        ``gradient(eta, y, w)``.
    penalty : {"l1", "group", "group-sqrt"}, default "l1"
        How coefficients are held at zero; "group-sqrt" weighs a group by the square root of its size. Without
        ``groups`` a group is one column over all classes.
    groups : array-like of shape (p,), optional
        Group label of each column.
    penalty_factor : array-like, optional
        Relative threshold of each column (or group): 0 is never penalised, ``inf`` never enters.
    lower, upper : float or array-like of shape (p,), optional
        Limits of the coefficients, ``lower <= 0 <= upper``; ``lower=0`` is non-negativity.
    kappa : float, default 10
        Damping. Larger is less biased and costs more; with ``standardize=True`` it is in standard deviations of y.
    step : "adaptive" or float, default "adaptive"
        Adaptive steps meet ``tol``; a number is the paper's iteration with that fixed step (in the path's own time).
    tol : float, default 0.01
        Error of the coefficients allowed to adaptive steps, relative to the largest coefficient.
    t : array-like, optional
        Times to report; by default ``n_times`` log-spaced times from ``t0`` to ``t_ratio * t0``.
    t_ratio : float, default 100
    n_times : int, default 100
    flow : {"glbi"}
        The dynamics.
    sample_weight : array-like of shape (n,), optional
        Weight k equals k copies of a row, weight 0 its absence.
    offset : array-like of shape (n,) or (n, q), optional
        Known part of the linear predictor.
    fit_intercept : bool, default True
    standardize : {True, "X", False}, default True
        True scales X, and y where the loss has its units; "X" scales X only; False uses the data as given. Results
        are always in the units of the data.
    stop : optional
        A time, a stop rule (`StopAtVariables`, `StopAtDevianceRatio`, `StopWhenWorse`, ...) or any callable of a
        `Progress`.
    saturation : float or None, default 0.999
        Share of the deviance at which the path ends, because coefficients only grow from there on; None goes on.
    screening : bool, default True
        Work on few columns where X is large. The path is the same.
    progress : bool or None, default False
        Show a progress bar (needs rich); None shows it on a terminal.

    Returns
    -------
    Path
        Interrupted by Ctrl-C, as far as it is valid (`Result.INTERRUPTED`); KeyboardInterrupt is raised only where no
        block of steps was done.

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_logistic(200, 20, 4, seed=1)
    >>> path = bregpath.trace_path(data.X, data.y, loss="logistic")
    >>> path.support(3 * path.t[0]).tolist()
    [0, 1, 2, 3]
    """
    if flow != "glbi":
        raise ValueError(f'`flow` must be "glbi", found {flow!r}.')
    problem, units, encoder = _build_problem(
        X, y, loss, penalty, groups, penalty_factor, lower, upper,
        kappa, sample_weight, offset, fit_intercept, standardize,
    )  # fmt: skip
    return run_path(
        problem, units, encoder, step=step, tol=tol, t=t, t_ratio=t_ratio, n_times=n_times, stop=stop,
        saturation=saturation, screening=screening, progress=progress,
    )  # fmt: skip


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


def _build_problem(
    X: Any, y: Any, loss: Any, penalty: str, groups: Any, penalty_factor: Any, lower: Any, upper: Any,
    kappa: float, sample_weight: Any, offset: Any, fit_intercept: bool, standardize: bool | str,
) -> tuple[Problem, Units, _frames.ColumnEncoder | None]:  # fmt: skip
    """Check everything, standardise, and assemble design x loss x penalty."""
    encoder = None
    if _frames.is_frame(X):
        encoder = _frames.ColumnEncoder.from_frame(X)
        X = encoder.encode(X)
        if encoder.has_categories and groups is None:
            groups = encoder.groups
            penalty = "group" if penalty == "l1" else penalty
    X = _validation.check_design(X)
    n, p = X.shape
    if y is None:
        raise ValueError("`y` is missing; a regression path needs a response.")
    y = _frames.series_to_numpy(y)
    if len(y) != n:
        raise ValueError(f"`X` and `y` differ in length: {n} rows and {len(y)} responses.")
    w = _validation.check_weights(sample_weight, n)
    loss = as_loss(loss)
    y = loss.encode(y, w)
    offset = _validation.check_offset(offset, n, loss.n_outputs)
    kappa = _validation.check_number("kappa", kappa)
    if not (standardize is True or standardize is False or standardize == "X"):
        raise ValueError(f'`standardize` must be True, "X" or False, found {standardize!r}.')
    mirror = build_penalty(
        penalty, p, loss.n_outputs, groups=groups, penalty_factor=penalty_factor, lower=lower, upper=upper
    )
    base: AbstractColumns = SparseDesign(X) if _validation.is_sparse(X) else DenseDesign(X)
    design, units = _standardize(base, w, mirror, bool(fit_intercept), standardize)
    if loss.has_units:
        unit = _validation.check_unit(loss.unit(y - offset[:, 0], w))
        units = replace(units, y_unit=unit if standardize is True else 1.0)
    if fit_intercept:
        y, offset, shift = _without_constants(y, offset, loss, w)
        units = replace(units, shift=shift)
    if units.y_unit != 1.0:
        y, offset = y / units.y_unit, offset / units.y_unit
    _validation.check_scales(units.scale, units.y_unit)
    if mirror.has_limits:
        # A little tighter, so that rounding on the way back to the user's units cannot break them.
        inside = (1 - 1e-15) * (units.scale / units.y_unit)[:, None]
        mirror.lower *= inside
        mirror.upper *= inside
    return Problem(design, loss, mirror, y, w, offset, kappa, bool(fit_intercept)), units, encoder


def _without_constants(y: Array, offset: Array, loss: AbstractLoss, w: Array) -> tuple[Array, Array, Array]:
    """``y`` and offset without what an intercept absorbs (next to which all else would round away), and that."""
    shift = np.zeros(loss.n_outputs)
    if offset.any():
        level = loss.offset_level(offset, w)
        offset, shift = offset - level, shift - level
    if vars(type(loss)).get("is_location", False):  # of this very class: a subclass may have changed the formulas
        counted = y[w > 0]
        level = loss.null(y, w) if np.ptp(counted) > 0 else counted[:1]  # a constant y leaves nothing, not rounding
        y, shift = y - level[0], shift + level
    return y, offset, shift


def _standardize(
    base: AbstractColumns, w: Array, penalty: AbstractPenalty, fit_intercept: bool, standardize: bool | str
) -> tuple[AbstractColumns, Units]:
    """Centre and scale columns implicitly, and exclude those that are constant."""
    p = base.shape[1]
    mean, deviation = base.moments(w)
    # Constant up to the rounding of its mean.
    constant = deviation <= 1e-13 * np.abs(mean) if fit_intercept else (deviation == 0) & (mean == 0)
    if constant.any():
        whole = penalty.close(~constant)  # a group stays as long as one of its columns varies
        penalty.weights[constant & ~whole] = np.inf
        penalty.hold_at_zero(constant & whole)
    if standardize is False:
        _validation.check_sizes(np.hypot(mean, deviation))
        if constant.any():  # a constant inside a group: as good as zero, since the intercept takes its place
            return StandardizedDesign(base, np.where(constant, mean, 0.0), np.ones(p)), Units(
                np.where(constant, mean, 0.0), np.ones(p), 1.0
            )
        return base, Units(np.zeros(p), np.ones(p), 1.0)
    center = mean if fit_intercept else np.zeros(p)
    # Without an intercept a constant column takes its place, and is measured by what it is.
    size = np.abs(mean) if not fit_intercept else np.zeros(p)
    scale = np.where(deviation <= 1e-13 * np.abs(mean), np.where(size > 0, size, 1.0), deviation)
    return StandardizedDesign(base, center, scale), Units(center, scale, 1.0)


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
