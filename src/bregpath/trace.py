"""`trace_path`: from data and wishes to a Path."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from bregpath import _frames, _validation
from bregpath._typing import Array
from bregpath.flow.problem import Problem
from bregpath.losses import AbstractLoss, as_loss
from bregpath.path import Path, Units
from bregpath.penalties import AbstractPenalty, build_penalty
from bregpath.run import SATURATION, run_path
from bregpath.stores import AbstractStore, Scan, StandardizedStore, as_store

__all__ = ["trace_path"]


def trace_path(
    X: Any,
    y: Any = None,
    *,
    loss: Any = "gaussian",
    penalty: Any = "l1",
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
    flow: Any = "glbi",
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
    X : array, scipy.sparse matrix, data frame, or store of shape (n, p)
        Dense X (float32 or float64, any order) is not copied. Categorical columns of a frame become indicators, one
        group each. A `bregpath.stores.AbstractStore` of your own says where columns live that are not in memory.
    y : array-like of shape (n,)
        Response: numbers, or labels of any kind for the logistic and multinomial losses.
    loss : str or object, default "gaussian"
        "gaussian", "logistic", "multinomial", "poisson", "huber", or any object with ``value(eta, y, w)`` and
        ``gradient(eta, y, w)``.
    penalty : {"l1", "group", "group-sqrt"}, class or object, default "l1"
        How coefficients are held at zero; "group-sqrt" weighs a group by the square root of its size. Without
        ``groups`` a group is one column over all classes. An `AbstractPenalty` of your own is taken as well.
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
    flow : {"glbi"} or class, default "glbi"
        The dynamics; an `AbstractFlow` of your own is taken as well.
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
    problem, units, encoder = _build_problem(
        X, y, loss, penalty, groups, penalty_factor, lower, upper,
        kappa, sample_weight, offset, fit_intercept, standardize,
    )  # fmt: skip
    return run_path(
        problem, units, encoder, step=step, tol=tol, t=t, t_ratio=t_ratio, n_times=n_times, stop=stop,
        saturation=saturation, screening=screening, progress=progress, flow=flow,
    )  # fmt: skip


def _build_problem(
    X: Any, y: Any, loss: Any, penalty: Any, groups: Any, penalty_factor: Any, lower: Any, upper: Any,
    kappa: float, sample_weight: Any, offset: Any, fit_intercept: bool, standardize: bool | str,
) -> tuple[Problem, Units, _frames.ColumnEncoder | None]:  # fmt: skip
    """Check everything, standardise, and assemble store x loss x penalty."""
    encoder = None
    if _frames.is_frame(X):
        encoder = _frames.ColumnEncoder.from_frame(X)
        X = encoder.encode(X)
        if encoder.has_categories and groups is None:
            groups = encoder.groups
            penalty = "group" if penalty == "l1" else penalty
    base = as_store(X)
    n, p = base.shape
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
    store, scan, units = _standardize(base, w, mirror, bool(fit_intercept), standardize)
    if loss.has_units:
        unit = _validation.check_unit(loss.unit(y - offset[:, 0], w))
        units = replace(units, y_unit=unit if standardize is True else 1.0)
    if fit_intercept and store.has_intercepts:
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
    return Problem(store, loss, mirror, y, w, offset, kappa, bool(fit_intercept), scan), units, encoder


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
    base: AbstractStore, w: Array, penalty: AbstractPenalty, fit_intercept: bool, standardize: bool | str
) -> tuple[AbstractStore, Scan, Units]:
    """Centre and scale columns implicitly, and exclude those that are constant."""
    scan = base.scan(w)
    mean, deviation = scan.mean, scan.deviation
    _validation.check_finite_columns(np.isfinite(mean))
    fit_intercept = fit_intercept and base.has_intercepts
    # Constant up to the rounding of its mean.
    constant = deviation <= 1e-13 * np.abs(mean) if fit_intercept else (deviation == 0) & (mean == 0)
    if constant.any():
        whole = penalty.close(~constant)  # a group stays as long as one of its columns varies
        penalty.weights[constant & ~whole] = np.inf
        penalty.hold_at_zero(constant & whole)
    if standardize is False:
        _validation.check_sizes(scan.size)
        # A constant inside a group is as good as zero, since the intercept takes its place.
        center, scale = np.where(constant, mean, 0.0), np.ones_like(mean)
        if not constant.any():
            return base, scan, Units(center, scale, 1.0)
    else:
        center = mean if fit_intercept else np.zeros_like(mean)
        # Without an intercept a constant column takes its place, and is measured by what it is.
        size = np.abs(mean) if not fit_intercept else np.zeros_like(mean)
        scale = np.where(deviation <= 1e-13 * np.abs(mean), np.where(size > 0, size, 1.0), deviation)
    return StandardizedStore(base, center, scale), scan.standardized(center, scale), Units(center, scale, 1.0)
