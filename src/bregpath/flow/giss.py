"""Inverse scale space: the limit of infinite kappa."""

from __future__ import annotations

import numpy as np

from bregpath._kernels import Knot, Steps, System, inverse_scale_space
from bregpath._kernels.inverse_scale_space import Position
from bregpath.flow.reading import StepOfPrimal
from bregpath.flow.screened import ScreenedFlow
from bregpath.penalties import L1Penalty
from bregpath.problem import Problem

__all__ = ["GISS"]


class GISS(ScreenedFlow):
    """The generalised inverse scale space path: coefficients jump from optimum to optimum, at exact times."""

    name = "giss"
    takes_kappa = False
    may_gram = False

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
        return inverse_scale_space.begin(system, knot, largest)

    def steps_of(
        self, system: System, knot: Knot, memory: Position, until: float, max_steps: int, keep_rows: bool
    ) -> Steps:
        return inverse_scale_space.advance(system, knot, memory, until, max_steps)

    @property
    def mirror_scale(self) -> float:
        return 1.0
