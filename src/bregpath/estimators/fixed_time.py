"""Estimators at a time that the user gives: no rule chooses it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from bregpath import _validation
from bregpath.flow.stop import Result
from bregpath.run import run
from bregpath.study import AbstractStudy

__all__ = ["trace_to"]


def trace_to(study: AbstractStudy, t: Any) -> Any:
    """The path of a study as far as a time: its times before that, also beyond the default window, and t itself."""
    t = _validation.check_number("stop", t)
    study = study.with_options(stop=None)
    track, options = study.track(), study.options
    track.start()
    t0, before = float(track.times[0]), options.t
    if before is None and track.record.result is not Result.AT_REST and t > t0:
        log_step = np.log(options.t_ratio) / (options.n_times - 1)
        before = t0 * np.exp(log_step * np.arange(np.ceil(np.log(t / t0) / log_step) + 1))
    track.times = np.array([t]) if before is None else np.append(before[before < t * (1 - 1e-9)], t)
    path = study.report(run(track), track)
    if path.t[-1] < t * (1 - 1e-9):
        warnings.warn(
            f"`stop`={t:g} lies beyond the end of the path, t={path.t[-1]:.4g}, whose model is used. {path.result}",
            UserWarning,
            stacklevel=4,
        )
    return path
