"""The columns that a block of steps works on."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from math import sqrt

import numpy as np

from bregpath._kernels import Knot, Steps
from bregpath._typing import IntArray
from bregpath.flow.gram import GramBlock, with_moments
from bregpath.flow.moments import Moments
from bregpath.flow.screening import Certificate, Dual
from bregpath.penalties import AbstractPenalty
from bregpath.problem import Problem
from bregpath.stores import AbstractBlock

__all__ = ["WorkingSet"]

MANY = 100  # columns, below which there are few to leave alone
WIDE = 2  # columns over rows, beyond which most of them never move
DAMPED = 10.0  # kappa, below which more of them do, the smaller it is ...
STAYING = 700  # ... unless there are more columns than so many: both times the root of how much smaller
FIRST_STEPS, MOST_STEPS = 4, 16  # of the first block where many columns move, and of any
GROUPED = 10.0  # times as many numbers make screening pay where columns move together


def _few_move(problem: Problem) -> bool:
    """Whether so few columns of a small store move that to prove it of the others is cheaper than to let them work."""
    (n, p), penalty = problem.store.shape, problem.penalty
    wide, narrow = problem.store.least_screened
    if p < MANY:
        return False
    damping = max(1.0, DAMPED / problem.kappa)
    least = wide if p > WIDE * n else narrow
    if p < max(WIDE * n, STAYING) * sqrt(damping):
        least *= damping
    return n * p >= least * (GROUPED if penalty.moves_together else 1.0)


class WorkingSet:
    """Working columns of a problem, as a block with its penalty.

    Columns are only ever added, at the end, so positions are stable. Growing replaces arrays and never writes into
    them, so that a shallow copy is a working set of its own. ``start`` tells the first ones, where not all work.
    """

    def __init__(
        self, problem: Problem, start: Callable[[], IntArray], screening: bool, can_gram: bool, asks_for_rows: bool
    ) -> None:
        self.problem = problem
        p = problem.store.shape[1]
        # With the Gram matrix of all columns the rows are not needed again.
        whole_gram = can_gram and GramBlock.pays_whole(problem)
        whole = whole_gram or not screening or (problem.store.is_small and not _few_move(problem))
        self.columns: IntArray = np.arange(p) if whole else start()
        self.is_whole = len(self.columns) == p
        self.block: AbstractBlock
        shared = problem.moments or Moments()
        if whole_gram:
            self.block = shared.of(problem, asks_for_rows)
        else:
            self.block = shared.columns(problem) if whole else problem.store.fetch(self.columns)
            self.block = with_moments(problem, self.block) if can_gram else self.block
        self.penalty: AbstractPenalty = problem.penalty if whole else problem.penalty.take(self.columns)
        self.block_steps = FIRST_STEPS if problem.kappa < DAMPED else MOST_STEPS
        self.dual: Dual | None = None  # set at the start of a path that screens

    def copy(self) -> WorkingSet:
        """An independent working set with the same columns; one that has all of them never grows."""
        if self.is_whole:
            return self
        twin = copy(self)
        twin.dual = copy(self.dual)
        return twin

    def certify(self, steps: Steps) -> Certificate:
        """How many of the steps no outside column takes part in, and columns that should work from there on.

        The next block is at most twice as long as what is certain of this one.
        """
        if self.dual is None or self.is_whole:
            return Certificate(len(steps))
        certificate = self.dual.certify(steps, self.columns)
        self.block_steps = min(max(2 * certificate.certain, 2), MOST_STEPS)
        return certificate

    def complete(self, knot: Knot) -> Certificate:
        """Add all columns that are outside, told with their dual variables at a knot; none is from then on."""
        outside = np.setdiff1d(np.arange(self.problem.store.shape[1]), self.columns)
        block = self.problem.store.fetch(outside)
        z, slope = -block.rmatvec_many(np.stack([knot.R, knot.residual]))
        rest = Certificate(0, outside, block, z, slope)
        self.grow(rest)
        self.is_whole = True  # the dual variables of others are asked for no more; what they cost is known
        return rest

    def grow(self, new: Certificate) -> None:
        """Add the columns of a certificate."""
        assert new.block is not None
        self.columns = np.concatenate([self.columns, new.columns])
        self.block = self.block.append(new.block)
        self.penalty = self.problem.penalty.take(self.columns)
