"""The columns that a block of steps works on, and the proof that no other column mattered."""

from __future__ import annotations

import numpy as np

from bregpath._kernels import Steps
from bregpath._typing import Array, BoolArray, IntArray
from bregpath.flow.problem import Problem

__all__ = ["WorkingSet"]

# A design up to this size is gathered whole: then every column works and nothing needs to be proved.
WHOLE_BYTES = 32 * 2**20


class WorkingSet:
    """Working columns of a problem, as a compact design with its penalty.

    Columns are only ever added, at the end, so positions are stable.
    """

    def __init__(self, problem: Problem, start: IntArray, screening: bool) -> None:
        self.problem = problem
        n, p = problem.design.shape
        small = 8 * n * p <= WHOLE_BYTES
        self.columns: IntArray = np.arange(p) if small or not screening else np.sort(start)
        self._gather()

    def _gather(self) -> None:
        p = self.problem.design.shape[1]
        self.block = self.problem.design.columns(self.columns)
        self.penalty = self.problem.penalty.take(self.columns)
        outside = np.ones(p, dtype=bool)
        outside[self.columns] = False
        self.outside: IntArray = np.flatnonzero(outside)
        self.outside_penalty = self.problem.penalty.take(self.outside)

    def grow(self, new: IntArray) -> None:
        """Add columns."""
        self.columns = np.concatenate([self.columns, new])
        self._gather()

    def certify(self, steps: Steps) -> tuple[int, IntArray]:
        """How many of the steps no outside column takes part in, and columns to add.

        Outside columns take no part in a step when they lie below their thresholds at its end, and would do so had
        they kept their speed for the longest step that was tried. All steps are checked by one matrix product.
        """
        if not len(self.outside):
            return len(steps), self.outside
        points: list[Array] = []
        for k in range(len(steps)):
            points += [steps.R[k] + steps.reach[k + 1] * steps.residual[k], steps.R[k + 1]]
        ahead = 1.5 * (steps.t[-1] - steps.t[0])
        points.append(steps.R[-1] + ahead * steps.residual[-1])
        q = self.problem.n_outputs
        z = -self.problem.design.rmatvec(np.hstack(points), self.outside)
        crossed = [self._crossed(z[:, i * q : (i + 1) * q]) for i in range(len(points))]
        for k in range(len(steps)):
            violators = crossed[2 * k] | crossed[2 * k + 1]
            if violators.any():
                return k, self.outside[self.outside_penalty.close(violators)]
        return len(steps), self.outside[self.outside_penalty.close(crossed[-1])]

    def _crossed(self, z: Array) -> BoolArray:
        return np.any(self.outside_penalty.entry(z) < 0, axis=1)
