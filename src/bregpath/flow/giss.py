"""Inverse scale space: the limit of infinite kappa."""

from __future__ import annotations

import numpy as np

from bregpath import _kernels
from bregpath._kernels import Knot, Position, Steps, System
from bregpath.flow.reading import StepOfPrimal
from bregpath.flow.screened import ScreenedFlow
from bregpath.penalties import L1Penalty
from bregpath.problem import Problem

__all__ = ["GISS"]

HORIZON = 1.15  # of t, to which a block of steps on some of the columns goes


class GISS(ScreenedFlow):
    """The generalised inverse scale space path: coefficients jump from optimum to optimum, at exact times."""

    name = "giss"
    takes_kappa = False

    def __init__(self, problem: Problem, step: float | None, tol: float, screening: bool = True) -> None:
        if step is not None:
            raise ValueError(
                '`step` must be "adaptive" with flow="giss" (or kappa=inf): the path jumps from event to event. Use '
                'flow="glbi" with a finite `kappa` for a fixed step.'
            )
        if not isinstance(problem.penalty, L1Penalty):
            raise ValueError(
                f'flow="giss" takes penalty="l1" only, found {problem.penalty.name!r}: groups turn between two events, '
                'so their path is not a step function. Use flow="glbi" with a large `kappa`, or penalty="l1".'
            )
        super().__init__(problem, step, tol, screening)
        self.reading = StepOfPrimal(problem.penalty, np.inf)

    def begin(self, system: System, knot: Knot) -> Position:
        largest = float(np.max(np.abs(np.where(system.penalty.weights > 0, knot.slope, 0.0))))
        return _kernels.begin_events(system, knot, largest)

    def steps_of(
        self, system: System, knot: Knot, memory: Position, until: float, max_steps: int, keep_rows: bool
    ) -> Steps:
        # Not far ahead on few columns only: others would have entered, and nothing could be proved of most.
        limit = HORIZON * knot.t if keep_rows else np.inf
        return _kernels.next_events(system, knot, memory, until, limit, max_steps)

    @property
    def mirror_scale(self) -> float:
        return 1.0
