"""The columns that a block of steps works on, and the proof that no other column mattered."""

from __future__ import annotations

from copy import copy

import numpy as np

from bregpath import _kernels
from bregpath._kernels import Steps
from bregpath._typing import Array, IntArray
from bregpath.designs import AbstractDesign
from bregpath.flow.gram import GramMatrix
from bregpath.flow.problem import Problem
from bregpath.flow.screening import LazyDual
from bregpath.penalties import AbstractPenalty

__all__ = ["WorkingSet"]

MIN_ADDED = 16  # columns that may be added to a small working set at once


class WorkingSet:
    """Working columns of a problem, as a compact design with its penalty.

    Columns are only ever added, at the end, so positions are stable. Growing and refreshing replace arrays and never
    write into them, so that a shallow copy is a working set of its own.
    """

    def __init__(self, problem: Problem, start: IntArray, screening: bool) -> None:
        self.problem = problem
        p = problem.design.shape[1]
        can_gram = _kernels.has_compiled()  # the reference does without
        # With the Gram matrix of all columns the rows are not needed again.
        whole_gram = can_gram and GramMatrix.pays_whole(problem)
        self.gram = GramMatrix(problem, problem.design) if whole_gram else None
        whole = whole_gram or not screening or problem.design.is_small
        self.columns: IntArray = np.arange(p) if whole else start
        self.is_outside = np.ones(p, dtype=bool)
        self.is_outside[self.columns] = False
        self.is_whole = not self.is_outside.any()
        self.block: AbstractDesign = problem.design if whole_gram else problem.design.columns(self.columns)
        if can_gram and not whole_gram and GramMatrix.pays(problem, self.block):
            self.gram = GramMatrix(problem, self.block)
        self.penalty: AbstractPenalty = problem.penalty.take(self.columns)
        self.dual: LazyDual | None = None  # set at the start of a path that screens

    def copy(self) -> WorkingSet:
        """An independent working set with the same columns."""
        twin = copy(self)
        twin.dual = copy(self.dual)
        return twin

    def grow(self, new: IntArray) -> None:
        """Add columns."""
        self.columns = np.concatenate([self.columns, new])
        self.is_outside = self.is_outside.copy()
        self.is_outside[new] = False
        self.block = self.block.append(self.problem.design.columns(new))
        self.penalty = self.problem.penalty.take(self.columns)
        if self.gram is not None:
            pays = GramMatrix.pays(self.problem, self.block)
            self.gram = self.gram.grow(self.block) if pays else None

    def certify(self, steps: Steps) -> tuple[int, IntArray]:
        """How many of the steps no outside column takes part in, and columns to add.

        Outside columns take no part in a step when they lie below their thresholds at its end, and would do so had
        they kept their speed for the longest step that was tried. All steps are checked by one matrix product, with
        the few columns for which the lazy dual cannot decide.
        """
        if self.is_whole:
            return len(steps), np.zeros(0, dtype=int)
        assert self.dual is not None
        count = len(steps)
        # Two points a step, and one to look ahead, as combinations of R_0 .. R_d and residuals r_0 .. r_d.
        points = np.zeros((2 * count + 1, 2 * (count + 1)))
        k = np.arange(count)
        points[2 * k, k], points[2 * k, count + 1 + k] = 1.0, steps.reach[1:]
        points[2 * k + 1, k + 1] = 1.0
        points[-1, count], points[-1, -1] = 1.0, 1.5 * (steps.t[-1] - steps.t[0])
        columns, distance = self.dual.distances(steps, points, self.is_outside)
        broken = np.flatnonzero((distance[:-1] < 0).any(axis=1)) // 2
        certain = int(broken[0]) if len(broken) else count
        return certain, self._next_to_work(columns, distance[2 * certain :])

    def _next_to_work(self, columns: IntArray, distance: Array) -> IntArray:
        """Columns that cross first, or soon will: a limited number, since a long step can look far ahead."""
        crossing = np.flatnonzero((distance < 0).any(axis=0))
        if not len(crossing):
            return crossing
        first = np.argmax(distance[:, crossing] < 0, axis=0)
        depth = distance[first, crossing]
        soonest = np.lexsort((depth, first))[: max(MIN_ADDED, len(self.columns) // 4)]
        chosen = np.zeros(len(self.is_outside), dtype=bool)
        chosen[columns[crossing[soonest]]] = True
        return np.flatnonzero(self.problem.penalty.close(chosen))
