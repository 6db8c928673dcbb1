"""The lazy dual: proof, without touching them, that most columns stay where they are."""

from __future__ import annotations

import numpy as np

from bregpath._typing import Array, BoolArray, IntArray
from bregpath.flow.problem import Problem

__all__ = ["LazyDual"]

MARGIN = 1e-9  # of a threshold: closer than this a bound decides nothing
GEMM_SHARE = 0.3  # cost of a column in a product with many vectors, against a product with two


class LazyDual:
    r"""Bounds of the dual variable of all columns, from the last time it was computed in full.

    The dual is ``z = -X'R`` with one matrix ``R`` of the size of the predictor. With a reference ``R_ref``, a unit direction
    ``u`` and ``X'u`` known, and ``a = <R - R_ref, u>``,

    .. math:: |z_j + x_j'R_{ref} + a\, x_j'u| \le \lVert x_j \rVert\, \lVert R - R_{ref} - a u \rVert ,

    so a column whose threshold is farther away than this is where it was: at zero. Where the bound cannot decide, the
    column is computed. For groups the same holds with norms over the group.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.slack = problem.penalty.slack(problem.design.column_norms())[:, None]
        self.refreshes = 0
        self.products = 0  # with single columns
        self._debt = 0.0

    def start(self, t: float, residual: Array, slope: Array) -> None:
        """The reference at a time before which the residual was constant."""
        self._set(t * residual, residual, t * slope, slope)

    def refresh(self, R: Array, residual: Array) -> None:
        """Compute the dual of every column at ``R``, and along the residual."""
        q = R.shape[1]
        both = -self.problem.design.rmatvec(np.hstack([R, residual]))
        self._set(R, residual, both[:, :q], both[:, q:])

    def _set(self, R: Array, residual: Array, z: Array, slope: Array) -> None:
        length = float(np.linalg.norm(residual))
        length = length if length > 0 else 1.0
        self.R, self.u = R, residual / length
        self.z, self.along = z, slope / length
        self.refreshes += 1
        self.products += 2 * len(z)
        self._debt = 0.0

    def undecided(self, points: list[Array], among: BoolArray) -> IntArray:
        """Columns that may lie beyond their thresholds at one of the points ``R``; all others certainly do not."""
        moved = [R - self.R for R in points]
        along = [float(np.sum(d * self.u)) for d in moved]
        rest = max(float(np.linalg.norm(d - a * self.u)) for d, a in zip(moved, along, strict=True))
        # The distance to a threshold is concave along the direction: over an interval its ends are the worst.
        penalty = self.problem.penalty
        near = np.zeros(len(self.z), dtype=bool)
        for a in (min(along), max(along)):
            distance = penalty.entry(self.z + a * self.along) - self.slack * rest
            near |= np.any(distance < MARGIN * np.minimum(penalty.weights, 1.0), axis=1)
        return np.flatnonzero(penalty.close(near & among))

    def crossed(self, points: list[Array], among: BoolArray) -> tuple[IntArray, BoolArray]:
        """Columns among which all crossings are, and whether each lies beyond its threshold at each point."""
        columns = self.undecided(points, among)
        beyond = np.zeros((len(points), len(columns)), dtype=bool)
        if len(columns):
            q = points[0].shape[1]
            z = -self.problem.design.rmatvec(np.hstack(points), columns)
            penalty = self.problem.penalty.take(columns)
            for i in range(len(points)):
                beyond[i] = np.any(penalty.entry(z[:, i * q : (i + 1) * q]) < 0, axis=1)
            self.products += z.size // q
            self._debt += GEMM_SHARE * z.size / q
        return columns, beyond

    @property
    def is_stale(self) -> bool:
        """Whether undecided columns have cost as much as a refresh would."""
        return self._debt > 2 * len(self.z)
