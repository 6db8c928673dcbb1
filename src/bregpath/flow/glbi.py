"""Generalised linearised Bregman iterations."""

from __future__ import annotations

from functools import cached_property

from bregpath import _kernels
from bregpath._kernels import Knot, Memory, Steps, System
from bregpath.flow.reading import CubicOfDual, LineOfDual
from bregpath.flow.screened import ScreenedFlow
from bregpath.problem import Problem

__all__ = ["GLBI"]


class GLBI(ScreenedFlow):
    """The dynamics of the paper from its exact first entry time on."""

    name = "glbi"

    def __init__(self, problem: Problem, step: float | None, tol: float, screening: bool = True) -> None:
        super().__init__(problem, step, tol, screening)
        self.reading = (CubicOfDual if step is None else LineOfDual)(problem.penalty, problem.kappa)

    def begin(self, system: System, knot: Knot) -> Memory:
        return _kernels.begin(system, knot)

    def steps_of(
        self, system: System, knot: Knot, memory: Memory, until: float, max_steps: int, keep_rows: bool
    ) -> Steps:
        return _kernels.advance(system, knot, memory, until, max_steps, keep_rows)

    def wants_all_columns(self, memory: Memory) -> bool:
        return memory.is_stiff

    def needs_rows(self, system: System) -> bool:
        return _kernels.needs_rows(system)

    @property
    def can_gram(self) -> bool:
        return super().can_gram or self.asks_for_rows

    @cached_property
    def asks_for_rows(self) -> bool:
        return _kernels.takes_moments(self.problem, self.step)

    @property
    def mirror_scale(self) -> float:
        return self.problem.kappa

    @property
    def step_tolerance(self) -> float:
        """Error that a single step may make so that all of them together stay within ``tol``.

        A step of length h errs by h^3, so there are tol^(-1/3) of them, and what they may err must fall with
        tol^(3/2). The factor is such that at 1 %, where few steps bend with the path, the two are equal.
        """
        # Exponential steps are exact between two events.
        share = 1.0 if self.asks_for_rows else self.problem.loss.step_share
        return min(share, self.problem.penalty.step_share) * self.tol * min(1.0, (self.tol / 0.01) ** 0.5)
