"""The columns that a block of steps works on, and the proof that no other column mattered."""

from __future__ import annotations

import numpy as np

from bregpath._kernels import Knot
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

    def certify(self, knots: list[Knot]) -> tuple[int, IntArray]:
        """How many of the steps between ``knots`` no outside column takes part in, and columns to add.

        Outside columns take no part in a step when they lie below their thresholds at its end, and would do so had
        they kept their speed for the longest step that was tried. All steps are checked by one matrix product.
        """
        if not len(self.outside):
            return len(knots) - 1, self.outside
        points: list[Array] = []
        for k in range(len(knots) - 1):
            before, after = knots[k], knots[k + 1]
            points += [before.R + after.reach * before.residual, after.R]
        ahead = 1.5 * (knots[-1].t - knots[0].t)
        points.append(knots[-1].R + ahead * knots[-1].residual)
        q = self.problem.n_outputs
        z = -self.problem.design.rmatvec(np.hstack(points), self.outside)
        crossed = [self._crossed(z[:, i * q : (i + 1) * q]) for i in range(len(points))]
        for k in range(len(knots) - 1):
            violators = crossed[2 * k] | crossed[2 * k + 1]
            if violators.any():
                return k, self.outside[self.outside_penalty.close(violators)]
        return len(knots) - 1, self.outside[self.outside_penalty.close(crossed[-1])]

    def _crossed(self, z: Array) -> BoolArray:
        return np.any(self.outside_penalty.entry(z) < 0, axis=1)
