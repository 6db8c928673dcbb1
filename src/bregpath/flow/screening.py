"""Proof, without touching them, that most columns stay where they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from bregpath._kernels import Steps
from bregpath._typing import Array, BoolArray, IntArray
from bregpath.penalties import AbstractPenalty
from bregpath.problem import Problem
from bregpath.stores import AbstractBlock

__all__ = ["Certificate", "Dual", "FullDual", "LazyDual", "begin_dual"]

MARGIN = 1e-9  # closer than this to a threshold a bound decides nothing
ROUNDING = 1e-13  # of squared lengths that are computed from inner products
MAX_REFERENCES = 12
MAX_SHARE = 0.7  # of all columns that are undecided, beyond which all are computed
MIN_ADDED = 16  # columns that may be added to a small working set at once
# Columns that are fetched to be looked at: this share of all, or so many bytes. Of more, only products are asked for.
FETCH_SHARE, FETCH_BYTES = 0.02, 4 * 2**20
NONE = np.zeros(0, dtype=int)


class Certificate(NamedTuple):
    """How many steps of a block no outside column takes part in, and columns that should work from there on.

    The columns come with what was read of them for the proof: they themselves, and their dual variable and its slope
    at the last knot that is certain.
    """

    certain: int
    columns: IntArray = NONE
    block: AbstractBlock | None = None
    z: Array = NONE
    slope: Array = NONE


class Undecided(NamedTuple):
    """Columns that may cross their thresholds, and how far each is from it."""

    columns: IntArray
    block: AbstractBlock | None  # None where they are many
    products: Array  # (b, k, c) minus their products with the basis of the points
    distance: Array  # (points, k)


class Reference(NamedTuple):
    """A point of the path from which bounds are seen: R, and a unit vector u, as rows with their inner products."""

    rows: Array
    products: Array


class Recent(NamedTuple):
    """Columns with a reference of their own, later than that of all others."""

    columns: IntArray
    z: Array
    along: Array
    owner: IntArray  # number of the reference


class Dual(ABC):
    """Proves that outside columns took no part in steps, or tells which did.

    Nothing that is kept is ever written into, so that a shallow copy goes on independently.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.products = 0  # with single columns
        self.refreshes = 1  # products with all columns at once

    def certify(self, steps: Steps, inside: IntArray) -> Certificate:
        """The certificate of a block of steps of the columns ``inside``.

        Outside columns take no part in a step when they lie below their thresholds at its end, and would do so had
        they kept their speed for the longest step that was tried. All steps are checked by one matrix product, with
        the few columns for which the bounds cannot decide.
        """
        count = len(steps)
        # Two points a step, and one to look ahead, as combinations of R_0 .. R_d and residuals r_0 .. r_d.
        points = np.zeros((2 * count + 1, 2 * (count + 1)))
        k = np.arange(count)
        points[2 * k, k], points[2 * k, count + 1 + k] = 1.0, steps.reach[1:]
        points[2 * k + 1, k + 1] = 1.0
        points[-1, count], points[-1, -1] = 1.0, 1.5 * (steps.t[-1] - steps.t[0])
        near = self.undecided(steps, points, inside)
        broken = np.flatnonzero((near.distance[:-1] < 0).any(axis=1)) // 2
        certain = steps.cut(int(broken[0])) if len(broken) else count
        crossing = self._crossing(near, 2 * certain, max(MIN_ADDED, len(inside) // 4))
        if not len(crossing):
            return Certificate(certain)
        columns = near.columns[crossing]
        block = self.problem.store.fetch(columns) if near.block is None else near.block.columns(crossing)
        z, slope = near.products[[certain, count + 1 + certain]][:, crossing]
        return Certificate(certain, columns, block, z, slope)

    def _crossing(self, near: Undecided, first_point: int, most: int) -> IntArray:
        """Positions of columns that cross first, or soon will: not too many, since a long step can look far ahead."""
        distance = near.distance[first_point:]
        crossing = np.flatnonzero((distance < 0).any(axis=0))
        if not len(crossing):
            return crossing
        first = np.argmax(distance[:, crossing] < 0, axis=0)
        soonest = np.lexsort((distance[first, crossing], first))[:most]
        chosen = np.zeros(len(near.columns), dtype=bool)
        chosen[crossing[soonest]] = True
        return np.flatnonzero(self.problem.penalty.take(near.columns).close(chosen))

    @abstractmethod
    def undecided(self, steps: Steps, points: Array, inside: IntArray) -> Undecided:
        """Outside columns among which all crossings are, and how far each is from its threshold at each point.

        The basis of the points are the R and then the residuals of the knots of a block; each row of ``points`` holds
        the coefficients of a point in it.
        """


class FullDual(Dual):
    """All columns at all points: one pass a block of steps, and no column is read that will not work."""

    def undecided(self, steps: Steps, points: Array, inside: IntArray) -> Undecided:
        penalty = self.problem.penalty
        products = -self.problem.store.products(np.concatenate([steps.R, steps.residual]))
        self.products += products.shape[0] * products.shape[1]
        self.refreshes += 1
        # One point after the other: at all of them at once they would take as much memory as the products.
        dual = (np.tensordot(point, products, axes=1) for point in points)
        distance = np.stack([np.min(penalty.entry(z), axis=1) for z in dual])
        near = penalty.close(np.any(distance < 0, axis=0))
        near[inside] = False
        columns = np.flatnonzero(near)
        return Undecided(columns, None, products[:, columns], distance[:, columns])


class LazyDual(Dual):
    r"""Bounds of the dual variable of all columns, each from the last time it was computed.

    The dual is ``z = -X'R`` with one matrix ``R`` of the size of the predictor. With a reference ``R_ref``, a unit
    direction ``u`` and ``x_j'u`` known, and ``a = <R - R_ref, u>``,

    .. math:: |z_j + x_j'R_{ref} + a\, x_j'u| \le \lVert x_j \rVert\, \lVert R - R_{ref} - a u \rVert ,

    so a column whose threshold is farther away than this is where it was: at zero. Where the bound cannot decide, the
    column is computed. For groups the same holds with norms over the group. Norms of columns are weighted by ``w``, as
    a `Scan` tells them, hence those of R, which is zero where ``w`` is, by ``1 / w``.

    The points to be checked are combinations of the ``R`` and residuals of a block of steps. A column is computed at
    the end of the block (two products), which becomes its new reference. Seen from there the points are close, and only
    the few columns that are still undecided are computed at all of them. A column is read once for all of this.
    """

    def __init__(self, problem: Problem, R: Array, residual: Array, z: Array, slope: Array) -> None:
        """Begin at a point of a path where the dual variable of all columns and its slope are known."""
        super().__init__(problem)
        self.slack = problem.penalty.slack(problem.scan)[:, None]
        root = np.sqrt(problem.w)[:, None]
        self.row_scale = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
        self.is_even = bool(root.min() == root.max())  # then rows need not be scaled, but their inner products
        self.products = 2 * len(slope)
        self.recent: Recent
        self._start_over(R, residual, z, slope)

    def undecided(self, steps: Steps, points: Array, inside: IntArray) -> Undecided:
        columns, block = self._candidates(steps, points, inside)
        if not len(columns):
            return Undecided(columns, None, np.zeros((points.shape[1], 0, 1)), np.zeros((len(points), 0)))
        block = self._fetch(columns) if block is None else block
        products = -self._products(block, columns, np.concatenate([steps.R, steps.residual]))
        z = np.einsum("bjc,kb->kjc", products, points)
        return Undecided(columns, block, products, np.min(self.problem.penalty.take(columns).entry(z), axis=2))

    def _candidates(self, steps: Steps, points: Array, inside: IntArray) -> tuple[IntArray, AbstractBlock | None]:
        """Outside columns that bounds do not exclude, neither from what was known nor from the end of the block."""
        view = _View((self._flat(steps.R), self._flat(steps.residual)), points, self._unit)
        columns = self._not_excluded(view, inside)
        if not len(columns):
            return columns, None
        block, z, along = self._compute(columns, steps.R[-1], steps.residual[-1])
        penalty = self.problem.penalty.take(columns)
        near = np.flatnonzero(_may_cross(penalty, z, along, self.slack[columns], view.from_end()))
        return columns[near], None if block is None else block.columns(near)

    def _not_excluded(self, view: _View, inside: IntArray) -> IntArray:
        """Outside columns that the bounds do not exclude from crossing their thresholds at a point."""
        bounds = view.from_each(self.references)
        recent, penalty = self.recent, self.problem.penalty
        near = _may_cross(penalty, self.z, self.along, self.slack, bounds[0])
        near[recent.columns] = False  # they know better
        if len(recent.columns):
            own = bounds[recent.owner].T[..., None]
            penalty = penalty.take(recent.columns)
            near[recent.columns] = _may_cross(penalty, recent.z, recent.along, self.slack[recent.columns], own)
        near[inside] = False
        return np.flatnonzero(near)

    def _compute(self, columns: IntArray, R: Array, residual: Array) -> tuple[AbstractBlock | None, Array, Array]:
        """Give some columns, or all if these are many, a new reference: as a block if they are few, z and x'u."""
        last = np.stack([R, residual])
        if len(columns) > MAX_SHARE * len(self.z) or len(self.references) >= MAX_REFERENCES:
            self._start_over(R, residual, *-self.problem.store.products(last))
            self.products += 2 * len(self.z)
            self.refreshes += 1
            return None, self.z[columns], self.along[columns]
        block = self._fetch(columns)
        z, slope = -self._products(block, columns, last)
        along = slope / self._refer(R, residual)
        # New arrays, not new entries: a copy of the working set may share the old ones.
        old = self.recent
        kept = ~np.isin(old.columns, columns)
        self.recent = Recent(
            np.concatenate([old.columns[kept], columns]),
            np.concatenate([old.z[kept], z]),
            np.concatenate([old.along[kept], along]),
            np.concatenate([old.owner[kept], np.full(len(columns), len(self.references) - 1)]),
        )
        return block, z, along

    def _start_over(self, R: Array, residual: Array, z: Array, slope: Array) -> None:
        """One reference for all columns."""
        self.references: list[Reference] = []
        self.z, self.along = z, slope / self._refer(R, residual)
        self.recent = Recent(NONE, z[:0], z[:0], NONE)

    def _refer(self, R: Array, residual: Array) -> float:
        """Add a reference: R and the unit vector u. Returns the length of the residual."""
        rows = self._flat(np.stack([R, residual]))
        products = self._unit * (rows @ rows.T)
        length = float(np.sqrt(products[1, 1])) or 1.0
        rows[1] /= length
        self.references = [*self.references, Reference(rows, products / np.outer([1.0, length], [1.0, length]))]
        return length

    def _flat(self, rows: Array) -> Array:
        """Row vectors whose inner products, times `_unit`, are those of the bounds."""
        return (rows if self.is_even else rows * self.row_scale).reshape(len(rows), -1)

    @property
    def _unit(self) -> float:
        return float(self.row_scale[0, 0]) ** 2 if self.is_even else 1.0

    def _fetch(self, columns: IntArray) -> AbstractBlock | None:
        """Some columns, if they are few."""
        n, p = self.problem.store.shape
        is_few = len(columns) <= max(FETCH_SHARE * p, FETCH_BYTES / (8 * n))
        return self.problem.store.fetch(columns) if is_few else None

    def _products(self, block: AbstractBlock | None, columns: IntArray, rows: Array) -> Array:
        self.products += len(rows) * len(columns)
        return self.problem.store.products(rows, columns) if block is None else block.rmatvec_many(rows)


def begin_dual(problem: Problem, R: Array, residual: Array, known: tuple[Array, Array] | None = None) -> Dual:
    """The proofs from a point of a path on; ``known`` are z and its slope there, if they have been computed."""
    # A loss of the user's that ignores weights has residuals where they are zero, which no bound would see.
    ignores_weights = not problem.w.all() and residual[problem.w == 0].any()
    if ignores_weights or not problem.store.has_cheap_columns:
        return FullDual(problem)
    z, slope = -problem.store.products(np.stack([R, residual])) if known is None else known
    return LazyDual(problem, R, residual, z, slope)


class _View:
    """Points, as combinations of some vectors (R and then residuals of a block of steps), seen from references.

    Inner products count ``unit`` times what they are. They are all that is computed from the vectors, which are large.
    """

    def __init__(self, basis: tuple[Array, Array], points: Array, unit: float) -> None:
        self.basis, self.points, self.unit = basis, points, unit
        R, residuals = basis
        mixed = R @ residuals.T
        self.products = unit * np.block([[R @ R.T, mixed], [mixed.T, residuals @ residuals.T]])
        self.squares = np.einsum("kb,kb->k", points @ self.products, points)

    def from_each(self, references: list[Reference]) -> Array:
        """Bounds of the points (see `_bounds`) seen from each of some references."""
        rows = np.concatenate([reference.rows for reference in references])
        seen = self.unit * (self.points @ np.concatenate([part @ rows.T for part in self.basis]))
        return np.stack([self._bounds(seen[:, 2 * k : 2 * k + 2], one.products) for k, one in enumerate(references)])

    def from_end(self) -> Array:
        """Bounds seen from the last R, and along the last residual."""
        last = np.array([len(self.basis[0]) - 1, len(self.products) - 1])
        scale = np.array([1.0, np.sqrt(self.products[-1, -1]) or 1.0])
        return self._bounds(
            self.points @ self.products[:, last] / scale, self.products[np.ix_(last, last)] / np.outer(scale, scale)
        )

    def _bounds(self, mixed: Array, own: Array) -> Array:
        """Least and largest ``a`` of all points, and the largest length of what is left besides.

        ``mixed`` are the inner products of all points with a reference, R_ref and u, and ``own`` those of the latter.
        """
        along = mixed[:, 1] - own[0, 1]
        rest = self.squares - 2 * mixed[:, 0] + own[0, 0] - along**2 + ROUNDING * (self.squares + own[0, 0])
        return np.array([along.min(), along.max(), np.sqrt(max(rest.max(), 0.0))])


def _may_cross(penalty: AbstractPenalty, z: Array, along: Array, slack: Array, bounds: Array) -> BoolArray:
    """Columns, in whole groups, that bounds do not exclude from crossing their thresholds."""
    low, high, rest = bounds
    # The distance to a threshold is concave along the direction: over an interval its ends are the worst.
    reach = slack * rest + MARGIN
    near = np.any(penalty.entry(z + low * along) < reach, axis=1)
    near |= np.any(penalty.entry(z + high * along) < reach, axis=1)
    return penalty.close(near)
