"""The lazy dual: proof, without touching them, that most columns stay where they are."""

from __future__ import annotations

import numpy as np

from bregpath._typing import Array, BoolArray, IntArray
from bregpath.flow.problem import Problem

__all__ = ["LazyDual"]

MARGIN = 1e-9  # of a threshold: closer than this a bound decides nothing
MAX_REFERENCES = 24


class LazyDual:
    r"""Bounds of the dual variable of all columns, each from the last time it was computed.

    The dual is ``z = -X'R`` with one matrix ``R`` of the size of the predictor. With a reference ``R_ref``, a unit
    direction ``u`` and ``x_j'u`` known, and ``a = <R - R_ref, u>``,

    .. math:: |z_j + x_j'R_{ref} + a\, x_j'u| \le \lVert x_j \rVert\, \lVert R - R_{ref} - a u \rVert ,

    so a column whose threshold is farther away than this is where it was: at zero. Where the bound cannot decide, the
    column is computed. For groups the same holds with norms over the group.

    A column is computed at the end of the block of steps in question (two products), which becomes its new reference.
    Seen from there the points inside the block are close, and only for the few columns that are still undecided all
    points are computed.
    """

    def __init__(self, problem: Problem, t: float, residual: Array, slope: Array) -> None:
        """Begin at a time before which the residual was constant, with the slopes of all columns at it."""
        self.problem = problem
        self.slack = problem.penalty.slack(problem.design.column_norms())[:, None]
        self.products = 2 * len(slope)  # with single columns
        self.refreshes = 1  # of all columns at once
        self._start_over(t * residual, residual, t * slope, slope)

    def _start_over(self, R: Array, residual: Array, z: Array, slope: Array) -> None:
        """One reference for all columns."""
        length = _length(residual)
        self.references = [(R, residual / length)]
        self.owner = np.zeros(len(z), dtype=int)
        self.z, self.along = z, slope / length

    def crossed(self, points: list[Array], R: Array, residual: Array, among: BoolArray) -> tuple[IntArray, BoolArray]:
        """Columns among which all crossings at ``points`` are, and whether each lies beyond its threshold at each.

        ``R`` and ``residual`` are those at the end of the block.
        """
        near = self._undecided(points, among, np.arange(len(self.owner)))
        if len(near) > 0.7 * len(self.owner) or len(self.references) >= MAX_REFERENCES:
            self._compute(np.arange(len(self.owner)), R, residual)
            self.refreshes += 1
        else:
            self._compute(near, R, residual)
        near = self._undecided(points, among, near)
        beyond = np.zeros((len(points), len(near)), dtype=bool)
        if len(near):
            q = R.shape[1]
            z = -self.problem.design.rmatvec(np.hstack(points), near)
            penalty = self.problem.penalty.take(near)
            for i in range(len(points)):
                beyond[i] = np.any(penalty.entry(z[:, i * q : (i + 1) * q]) < 0, axis=1)
            self.products += len(points) * len(near)
        return near, beyond

    def _undecided(self, points: list[Array], among: BoolArray, columns: IntArray) -> IntArray:
        """Those of some columns (whole groups) that may lie beyond their thresholds at one of the points."""
        if not len(columns):
            return columns
        low, high, rest = np.zeros((3, len(self.references)))
        for i in np.unique(self.owner[columns]):
            R, u = self.references[i]
            moved = np.stack([point - R for point in points])
            along = np.einsum("kij,ij->k", moved, u)
            # Pythagoras would lose the small remainder to rounding: subtract first.
            moved -= along[:, None, None] * u
            low[i], high[i] = along.min(), along.max()
            rest[i] = np.sqrt(np.max(np.einsum("kij,kij->k", moved, moved)))
        # The distance to a threshold is concave along the direction: over an interval its ends are the worst.
        penalty = self.problem.penalty if len(columns) == len(self.owner) else self.problem.penalty.take(columns)
        z, along, owner = self.z[columns], self.along[columns], self.owner[columns]
        near = np.zeros(len(columns), dtype=bool)
        for a in (low, high):
            distance = penalty.entry(z + a[owner, None] * along) - self.slack[columns] * rest[owner, None]
            near |= np.any(distance < MARGIN * np.minimum(penalty.weights, 1.0), axis=1)
        return columns[penalty.close(near & among[columns])]

    def _compute(self, columns: IntArray, R: Array, residual: Array) -> None:
        """Give some columns a new reference."""
        if not len(columns):
            return
        q = R.shape[1]
        everything = len(columns) == len(self.owner)
        both = -self.problem.design.rmatvec(np.hstack([R, residual]), None if everything else columns)
        self.products += 2 * len(columns)
        if everything:
            self._start_over(R, residual, both[:, :q], both[:, q:])
            return
        length = _length(residual)
        # New arrays, not new entries: a fork of a path may share the old ones.
        self.references = [*self.references, (R, residual / length)]
        self.z, self.along, self.owner = self.z.copy(), self.along.copy(), self.owner.copy()
        self.z[columns], self.along[columns] = both[:, :q], both[:, q:] / length
        self.owner[columns] = len(self.references) - 1


def _length(residual: Array) -> float:
    length = float(np.linalg.norm(residual))
    return length if length > 0 else 1.0
