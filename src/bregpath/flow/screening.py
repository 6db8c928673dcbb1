"""Proof, without touching them, that most columns stay where they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from bregpath import _kernels
from bregpath._kernels import Steps, block_products
from bregpath._sums import dot
from bregpath._typing import Array, BoolArray, IntArray
from bregpath.problem import Problem
from bregpath.stores import AbstractBlock

__all__ = ["Certificate", "Dual", "FullDual", "LazyDual", "begin_dual"]

ROUNDING = 1e-13  # of squared lengths that are differences of others
MAX_REFERENCES = 16
MAX_SHARE = 0.7  # of all columns that are undecided, beyond which all are computed
MIN_ADDED, ADDED_NUMBERS = 16, 2**14  # columns, or numbers, that may be added to a small working set at once
# Columns that are fetched to be looked at: this share of all, or so many bytes. Of more, only products are asked for.
FETCH_SHARE, FETCH_BYTES = 0.02, 4 * 2**20
FAR_MORE = 8  # times as many numbers
NONE = np.zeros(0, dtype=int)
Bounds = tuple[float, float, float]  # see `_View.from_end`


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


class Points(NamedTuple):
    """Where a block of steps is looked at: ``R + ahead * residual`` of some of its knots."""

    knot: IntArray
    ahead: Array

    def of(self, products: Array) -> Array:
        """The dual variable there, from those of all R and then of all residuals: (points, ...)."""
        slopes = products[len(products) // 2 + self.knot]
        return products[self.knot] + self.ahead.reshape(-1, *[1] * (products.ndim - 1)) * slopes


class Undecided(NamedTuple):
    """Columns that may cross their thresholds, and how far each is from it."""

    columns: IntArray
    block: AbstractBlock | None  # None where they are many, or were read where they lie
    products: Array  # (2 knots, k, c) minus their products with all R and then all residuals
    distance: Array  # (points, k)


class Reference(NamedTuple):
    """A point of the path from which bounds are seen: R, and a unit vector u."""

    R: Array
    u: Array


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
        # Two points a step, and one to look ahead.
        points = Points(np.arange(1, 2 * count + 2) // 2, np.zeros(2 * count + 1))
        points.ahead[:-1:2], points.ahead[-1] = steps.reach[1:], 1.5 * (steps.t[-1] - steps.t[0])
        near = self.undecided(steps, points, inside)
        broken = np.flatnonzero((near.distance[:-1] < 0).any(axis=1)) // 2
        certain = steps.cut(int(broken[0])) if len(broken) else count
        most = max(MIN_ADDED, ADDED_NUMBERS // len(steps.R[0]), len(inside) // 4)
        crossing = self._crossing(near, 2 * certain, most)
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
    def undecided(self, steps: Steps, points: Points, inside: IntArray) -> Undecided:
        """Outside columns among which all crossings are, and how far each is from its threshold at each point."""


class FullDual(Dual):
    """All columns at all points: one pass a block of steps, and no column is read that will not work."""

    def undecided(self, steps: Steps, points: Points, inside: IntArray) -> Undecided:
        penalty = self.problem.penalty
        products = -self.problem.store.products(np.concatenate([steps.R, steps.residual]))
        self.products += products.shape[0] * products.shape[1]
        self.refreshes += 1
        # One point after the other: at all of them at once they would take as much memory as the products.
        dual = (products[k] + ahead * products[len(steps.R) + k] for k, ahead in zip(*points, strict=True))
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

    z: Array  # (p, c) of every column at its reference, and
    along: Array  # (p, c) minus its product with the direction there
    owner: IntArray  # (p,) the number of the reference

    def __init__(self, problem: Problem, R: Array, residual: Array, z: Array, slope: Array) -> None:
        """Begin at a point of a path where the dual variable of all columns and its slope are known."""
        super().__init__(problem)
        self.slack = problem.penalty.slack(problem.scan)[:, None]
        w = np.repeat(problem.w, residual.shape[1])
        self.weights = np.divide(1.0, w, out=np.zeros_like(w), where=w > 0)  # of inner products of R and residuals
        self.columns, self.kernels = _kernels.columns_of(problem.store), _kernels.passes()
        self.reads_sparse = self.columns is not None and self.columns.are_sparse
        self.products = 2 * len(slope)
        self._start_over(R, residual, z, slope)

    def undecided(self, steps: Steps, points: Points, inside: IntArray) -> Undecided:
        columns, block = self._candidates(steps, points, inside)
        if not len(columns):
            return Undecided(columns, None, np.zeros((2 * len(steps.R), 0, 1)), np.zeros((len(points.knot), 0)))
        block = self._fetch(columns) if block is None else block
        rows = [steps.R, steps.residual]
        # All at once, so that columns are read once, where they are far more than the rows, which are copied for it.
        if not self.reads_sparse and len(columns) * len(self.problem.w) > FAR_MORE * steps.R.size:
            rows = [np.concatenate(rows)]
        products = -np.concatenate([self._products(block, columns, some) for some in rows])
        distance = self.problem.penalty.take(columns).entry(points.of(products))
        return Undecided(columns, block, products, np.min(distance, axis=2))

    def _candidates(self, steps: Steps, points: Points, inside: IntArray) -> tuple[IntArray, AbstractBlock | None]:
        """Outside columns that bounds do not exclude, neither from what was known nor from the end of the block."""
        view = _View(_flat(steps.R), _flat(steps.residual), points, self.weights, self.kernels.lengths)
        columns = self._not_excluded(view, inside)
        if not len(columns):
            return columns, None
        block, z, along = self._compute(columns, steps.R[-1], steps.residual[-1])
        near = np.flatnonzero(self._may_cross(z, along, [view.from_end()], np.zeros_like(columns), columns))
        return columns[near], None if block is None else block.columns(near)

    def _not_excluded(self, view: _View, inside: IntArray) -> IntArray:
        """Outside columns that the bounds do not exclude from crossing their thresholds at a point."""
        bounds = [view.from_reference(reference) for reference in self.references]
        near = self._may_cross(self.z, self.along, bounds, self.owner)
        near[inside] = False
        return np.flatnonzero(near)

    def _may_cross(
        self, z: Array, along: Array, bounds: list[Bounds], owner: IntArray, columns: IntArray | None = None
    ) -> BoolArray:
        penalty, may_cross = self.problem.penalty, self.kernels.may_cross
        return may_cross(penalty, z, along, self.slack, np.array(bounds), owner, columns)  # type: ignore[no-any-return]

    def _compute(self, columns: IntArray, R: Array, residual: Array) -> tuple[AbstractBlock | None, Array, Array]:
        """Give some columns, or all if these are many, a new reference: as a block if they are few, z and x'u."""
        last = np.stack([R, residual])
        if len(columns) > MAX_SHARE * len(self.z) or len(self.references) >= MAX_REFERENCES:
            self._start_over(R, residual, *-self._products(None, None, last))
            self.refreshes += 1
            return None, self.z[columns], self.along[columns]
        block = self._fetch(columns) if self.columns is None else None
        z, slope = -self._products(block, columns, last)
        along = slope / self._refer(R, residual)
        # New arrays, not new entries: a copy of the working set may share the old ones.
        self.z, self.along, self.owner = self.z.copy(), self.along.copy(), self.owner.copy()
        self.z[columns], self.along[columns], self.owner[columns] = z, along, len(self.references) - 1
        return block, z, along

    def _start_over(self, R: Array, residual: Array, z: Array, slope: Array) -> None:
        """One reference for all columns."""
        self.references: list[Reference] = []
        self.z, self.along = z, slope / self._refer(R, residual)
        self.owner = np.zeros(len(z), dtype=np.int64)

    def _refer(self, R: Array, residual: Array) -> float:
        """Add a reference: R and the unit vector u. Returns the length of the residual."""
        r = residual.ravel()
        length = sqrt(dot(self.weights, r * r)) or 1.0
        self.references = [*self.references, Reference(R.flatten(), r / length)]
        return length

    def _fetch(self, columns: IntArray) -> AbstractBlock | None:
        """Some columns, if they are few, and not sparse ones that are read where they lie."""
        n, p = self.problem.store.shape
        is_few = not self.reads_sparse and len(columns) <= max(FETCH_SHARE * p, FETCH_BYTES / (8 * n))
        return self.problem.store.fetch(columns) if is_few else None

    def _products(self, block: AbstractBlock | None, columns: IntArray | None, rows: Array) -> Array:
        """Of some columns, or all of them, with vectors of all rows."""
        self.products += len(rows) * (len(self.z) if columns is None else len(columns))
        if block is not None:
            return block_products(block, rows)
        return (self.columns or self.problem.store).products(rows, columns)  # type: ignore[no-any-return]


def begin_dual(problem: Problem, R: Array, residual: Array, known: tuple[Array, Array] | None = None) -> Dual:
    """The proofs from a point of a path on; ``known`` are z and its slope there, if they have been computed."""
    # A loss of the user's that ignores weights has residuals where they are zero, which no bound would see.
    ignores_weights = not problem.w.all() and residual[problem.w == 0].any()
    if ignores_weights or not problem.store.has_cheap_columns:
        return FullDual(problem)
    z, slope = -problem.store.products(np.stack([R, residual])) if known is None else known
    return LazyDual(problem, R, residual, z, slope)


def _flat(rows: Array) -> Array:
    return rows.reshape(len(rows), -1)


class _View:
    """The points of a block of steps, seen from its end and from references.

    Seen from the end, with u the direction of the last residual, points lie between ``low`` and ``high`` along u, and
    nowhere farther than ``rest`` besides.
    """

    def __init__(self, R: Array, residual: Array, points: Points, weights: Array, lengths: Any) -> None:
        self.end, self.last, self.weights, self.lengths = R[-1], residual[-1], weights, lengths
        (k, ahead), (dd, dr, rr, de, re) = points, self._lengths(R, residual)
        self.length = sqrt(rr[-1]) or 1.0
        squares = dd[k] + 2 * ahead * dr[k] + ahead**2 * rr[k]
        along = (de[k] + ahead * re[k]) / self.length
        rest = squares - along**2 + ROUNDING * squares
        self.low, self.high, self.rest = float(along.min()), float(along.max()), sqrt(max(float(rest.max()), 0.0))

    def _lengths(self, R: Array, residual: Array) -> Array:
        return self.lengths(R, residual, self.end, self.last, self.weights)  # type: ignore[no-any-return]

    def from_end(self) -> Bounds:
        """Least and largest way along the direction, and the largest length of what is left besides."""
        return self.low, self.high, self.rest

    def from_reference(self, reference: Reference) -> Bounds:
        """Bounds of the same, seen from R_ref and along its direction.

        A point is ``end + c u + v``, with v orthogonal to u and no longer than `rest`: both parts of its distance to
        R_ref, along the direction there and besides, are known but for those of v.
        """
        dd, du, _, de, ue = self._lengths(reference.R[None], reference.u[None])[:, 0].tolist()
        along, turn = -du, ue / self.length
        besides = dd - along**2 + ROUNDING * dd
        mixed, sine = -de / self.length - along * turn, max(1 - turn**2, 0.0) + ROUNDING
        ways = [along + c * turn for c in (self.low, self.high)]
        # A convex function of c.
        farthest = max(besides + 2 * c * mixed + c * c * sine for c in (self.low, self.high))
        spare, rest = sqrt(sine) * self.rest, sqrt(max(farthest, 0.0)) + self.rest
        return min(ways) - spare, max(ways) + spare, rest
