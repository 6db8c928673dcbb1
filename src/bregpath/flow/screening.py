"""The lazy dual: proof, without touching them, that most columns stay where they are."""

from __future__ import annotations

import numpy as np

from bregpath._kernels import Steps
from bregpath._typing import Array, BoolArray, IntArray
from bregpath.flow.problem import Problem

__all__ = ["LazyDual"]

MARGIN = 1e-9  # closer than this to a threshold a bound decides nothing
ROUNDING = 1e-13  # of squared lengths that are computed from inner products
MAX_REFERENCES = 12


class LazyDual:
    r"""Bounds of the dual variable of all columns, each from the last time it was computed.

    The dual is ``z = -X'R`` with one matrix ``R`` of the size of the predictor. With a reference ``R_ref``, a unit
    direction ``u`` and ``x_j'u`` known, and ``a = <R - R_ref, u>``,

    .. math:: |z_j + x_j'R_{ref} + a\, x_j'u| \le \lVert x_j \rVert\, \lVert R - R_{ref} - a u \rVert ,

    so a column whose threshold is farther away than this is where it was: at zero. Where the bound cannot decide, the
    column is computed. For groups the same holds with norms over the group.

    The points to be checked are combinations of the ``R`` and residuals of a block of steps. A column is computed at
    the end of the block (two products), which becomes its new reference. Seen from there the points are close, and only
    the few columns that are still undecided are computed at all of them.
    """

    def __init__(self, problem: Problem, t: float, residual: Array, slope: Array) -> None:
        """Begin at a time before which the residual was constant, with the slopes of all columns at it."""
        self._begin(problem, t * residual, residual, t * slope, slope)

    @classmethod
    def at(cls, problem: Problem, R: Array, residual: Array) -> LazyDual:
        """Begin at any point of a path."""
        dual = cls.__new__(cls)
        dual._begin(problem, R, residual, *-problem.design.rmatvec_many(np.stack([R, residual])))
        return dual

    def _begin(self, problem: Problem, R: Array, residual: Array, z: Array, slope: Array) -> None:
        self.problem = problem
        self.slack = problem.penalty.slack(problem.design)[:, None]
        self.products = 2 * len(slope)  # with single columns
        self.refreshes = 1  # of all columns at once
        self._start_over(R, residual, z, slope)

    def _start_over(self, R: Array, residual: Array, z: Array, slope: Array) -> None:
        """One reference for all columns."""
        length = _length(residual)
        self.references = [np.stack([R.ravel(), residual.ravel() / length])]  # R and u
        self.owner = np.zeros(len(z), dtype=int)
        self.z, self.along = z, slope / length

    def distances(self, steps: Steps, points: Array, among: BoolArray) -> tuple[IntArray, Array]:
        """Columns among which all crossings are, and how far each is from its threshold at each point.

        The basis of the points are the R and then the residuals of the knots of a block; each row of ``points`` holds
        the coefficients of a point in it.
        """
        R, residual = steps.R[-1].copy(), steps.residual[-1]
        basis = (steps.R.reshape(len(steps.R), -1), steps.residual.reshape(len(steps.R), -1))
        inner = np.block([[a @ b.T for b in basis] for a in basis])
        near = self._undecided(basis, inner, points, among, None)
        if len(near) > 0.7 * len(self.owner) or len(self.references) >= MAX_REFERENCES:
            self._compute(np.arange(len(self.owner)), R, residual)
            self.refreshes += 1
        else:
            self._compute(near, R, residual)
        near = self._undecided(basis, inner, points, among, near)
        if not len(near):
            return near, np.zeros((len(points), 0))
        design = self.problem.design
        products = -np.concatenate([design.rmatvec_many(rows, near) for rows in (steps.R, steps.residual)])
        z = np.einsum("bjc,kb->kjc", products, points)
        self.products += len(products) * len(near)
        return near, np.min(self.problem.penalty.take(near).entry(z), axis=2)

    def _undecided(
        self, basis: tuple[Array, Array], inner: Array, points: Array, among: BoolArray, columns: IntArray | None
    ) -> IntArray:
        """Those of some (whole groups; None: of all) columns that may lie beyond their thresholds at a point."""
        part: slice | IntArray = slice(None)
        if columns is None:
            penalty = self.problem.penalty
        elif not len(columns):
            return columns
        else:
            penalty, part = self.problem.penalty.take(columns), columns
        z, along, owner, slack = self.z[part], self.along[part], self.owner[part], self.slack[part]
        low, high, rest = np.zeros((3, len(self.references)))
        lengths = np.einsum("kb,bc,kc->k", points, inner, points)
        for i in np.flatnonzero(np.bincount(owner, minlength=len(self.references))):
            products = np.concatenate([vectors @ self.references[i].T for vectors in basis])
            mixed = points @ products  # of all points with R_ref and u
            own = self.references[i] @ self.references[i].T
            from_reference = mixed[:, 1] - own[0, 1]
            squares = lengths - 2 * mixed[:, 0] + own[0, 0]
            remainder = squares - from_reference**2 + ROUNDING * (lengths + own[0, 0])
            low[i], high[i] = from_reference.min(), from_reference.max()
            rest[i] = np.sqrt(max(float(remainder.max()), 0.0))
        # The distance to a threshold is concave along the direction: over an interval its ends are the worst.
        reach = slack * rest[owner, None] + MARGIN
        near = np.any(penalty.entry(z + low[owner, None] * along) < reach, axis=1)
        near |= np.any(penalty.entry(z + high[owner, None] * along) < reach, axis=1)
        near = np.flatnonzero(penalty.close(near & among[part]))
        return near if columns is None else columns[near]

    def _compute(self, columns: IntArray, R: Array, residual: Array) -> None:
        """Give some columns a new reference."""
        if not len(columns):
            return
        everything = len(columns) == len(self.owner)
        z, slope = -self.problem.design.rmatvec_many(np.stack([R, residual]), None if everything else columns)
        self.products += 2 * len(columns)
        if everything:
            self._start_over(R, residual, z, slope)
            return
        length = _length(residual)
        # New arrays, not new entries: a copy of the working set may share the old ones.
        self.references = [*self.references, np.stack([R.ravel(), residual.ravel() / length])]
        self.z, self.along, self.owner = self.z.copy(), self.along.copy(), self.owner.copy()
        self.z[columns], self.along[columns] = z, slope / length
        self.owner[columns] = len(self.references) - 1


def _length(residual: Array) -> float:
    length = float(np.linalg.norm(residual))
    return length if length > 0 else 1.0
