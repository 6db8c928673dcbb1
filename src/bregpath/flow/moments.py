"""Who shares all columns, or their Gram matrix: problems of the same rows, and those that leave out a few of them."""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple

import numpy as np

from bregpath._kernels import columns_of, passes
from bregpath._typing import Array, IntArray
from bregpath.flow.gram import (
    LARGE_MEAN,
    CentralMoments,
    GramBlock,
    GramOnDemand,
    as_dense,
    central_moments,
    products_with,
)
from bregpath.problem import Problem
from bregpath.stores import AbstractBlock, AbstractStore, Scan
from bregpath.stores.base import beyond_squares

__all__ = ["Moments", "Rest", "moments_at_once", "moments_of_most"]

MAX_AT_ONCE = 256  # columns up to which a matrix is made at once
MIN_LEFT = 0.03  # of the deviation of a column, below which a difference of moments is too coarse


class Moments:
    """Room for the Gram matrix of all columns, or for these, made once for problems that differ in kappa only.

    Where most rows of another problem are left, it is made from the matrix of that one, ``whole``; ``units`` are those
    of the columns there over those here. Or the matrix is known.
    """

    def __init__(
        self, whole: GramBlock | None = None, units: Array | float = 1.0, matrix: Array | None = None
    ) -> None:
        self._whole, self._units, self._matrix = whole, units, matrix
        self._made: dict[bool, GramBlock] = {}
        self._columns: AbstractBlock | None = None
        self._lock = Lock()

    @property
    def gram(self) -> GramBlock | None:
        """The matrix, if somebody works with it."""
        return next(iter(self._made.values()), None)

    def of(self, problem: Problem, asks_for_rows: bool) -> GramBlock:
        """The matrix that stands for the store; at once where kernels do not ask for its rows, or these are few."""
        on_demand = asks_for_rows and problem.store.shape[1] > MAX_AT_ONCE
        with self._lock:
            if on_demand not in self._made:
                # It must not refer to this room again, else data would not be forgotten as soon as nobody needs them.
                self._made[on_demand] = self._make(problem.without_moments(), on_demand)
        return self._made[on_demand]

    def columns(self, problem: Problem) -> AbstractBlock:
        """All columns, where it is they that work and not their matrix."""
        with self._lock:
            if self._columns is None:
                self._columns = problem.store.fetch(np.arange(problem.store.shape[1]))
        return self._columns

    def _make(self, problem: Problem, on_demand: bool) -> GramBlock:
        whole = self._whole
        if self._matrix is not None:
            return GramBlock(problem, None, self._matrix)
        rest = None if whole is None else Rest(problem, whole, self._units)
        if rest is None or not rest.is_precise:
            return GramOnDemand(problem) if on_demand else GramBlock(problem, None)
        if not on_demand:
            return GramBlock(problem, None, rest.matrix())
        gram = GramOnDemand(problem, rest.rows_of)
        if isinstance(whole, GramOnDemand):  # columns that have moved on all rows will move on most of them
            gram.make(np.where(whole.has_moved, 0.0, np.inf))
        return gram


def moments_at_once(store: AbstractStore, w: Array, y: Array) -> CentralMoments | None:
    """Moments of all columns, and their products with a centred ``y``, in one pass over the rows.

    None where columns must be read for their means first, because those of a few rows are far from them, or where their
    matrix is not made at once. Weights are positive, and sum to one.
    """
    (n, p), columns = store.shape, columns_of(store)
    if columns is None or store.row_blocks() is None or p > min(n, MAX_AT_ONCE):
        return None
    # The median of some rows: near the mean unless rows are sorted, and exact for a column that is constant.
    few = as_dense(store.rows(np.arange(5) * (n - 1) // 4).fetch(np.arange(p))).X
    shift = np.sort(few, axis=0)[2]
    if not np.isfinite(shift).all():
        return None
    with np.errstate(over="ignore", invalid="ignore"):  # data that are not finite are found by who reads them next
        moments = central_moments(store, w, y, shift, columns)
        variance = moments.matrix.diagonal()
        is_precise = ((moments.mean - shift) ** 2 <= LARGE_MEAN * variance).all()
    return moments if is_precise and not len(beyond_squares(moments.mean, variance)) else None


class Left(NamedTuple):
    """`CentralMoments` of the rows that are left, whose matrix is written once it is known in which units."""

    scan: Scan
    target: Array
    whole: Array  # matrix of all rows
    lost: Array
    share: float
    moved: Array  # means
    unit: Array | float = 1.0  # of the columns in whole, lost and moved

    def restored(self, center: Array, scale: Array, y_unit: float) -> Left:
        """The same of ``center + scale X`` and ``y_unit y``."""
        mean, deviation = self.scan.mean, self.scan.deviation
        scan = Scan(center + scale * mean, scale * deviation)
        return self._replace(scan=scan, target=self.target * scale * y_unit, unit=scale)

    def scaled(self, scale: Array) -> tuple[Array, Array]:
        """Matrix and products with y, of the columns over a scale."""
        matrix = passes().lessen(self.whole, self.lost, self.share, self.moved, scale / self.unit)
        return matrix, self.target / scale


def moments_of_most(gram: GramBlock, w: Array) -> Left | None:
    r"""Moments of most rows in the units of those of all, in one pass over the few that are left out.

    With W the share of the rows that are left, and S and m sums over the others, about the means of all,

    .. math:: W G = G_{all} - S - m m' / W .

    None where the matrix of all is not made at once, or a column varies mostly in the rows left out, so that little
    would be left of it.
    """
    if type(gram) is not GramBlock or len(gram.mean) > MAX_AT_ONCE or gram.in_core is None:
        return None
    of_all, whole = gram.problem.w, gram.matrix
    out = ((w == 0) & (of_all > 0)).nonzero()[0]
    v, y = of_all[out], gram.y[out]
    sums, share = gram.in_core.moments(v, y, gram.mean, out), 1.0 - float(v.sum())
    lost, moved = sums[:-2, :-2], sums[:-2, -2] / -share  # by which means move
    before = whole.diagonal()
    variance = (before - lost.diagonal()) / share - moved * moved
    if not (variance > MIN_LEFT**2 * before).all():
        return None
    target = (gram.target - sums[:-2, -1] + moved * float(v @ y)) / share
    return Left(Scan(gram.mean + moved, np.sqrt(variance)), target, whole, lost, share, moved)


class Rest:
    r"""Rows that are left when a few are left out: their moments are those of all rows less those of the few.

    With weights that sum to one over all rows, W the share of those that are left, C the central moments of those left
    out, as sums, and d the difference of the means of both,

    .. math:: W G = G_{all} - C - W (1 - W)\, d d' .
    """

    def __init__(self, problem: Problem, whole: GramBlock, units: Array | float) -> None:
        of_all = whole.problem
        self.problem, self.whole, self.units = problem, whole, np.full(problem.store.shape[1], units)
        out = np.flatnonzero((problem.w == 0) & (of_all.w > 0))
        self.w, self.share = of_all.w[out], float(of_all.w[problem.w > 0].sum())
        self.store = problem.store.rows(out)
        self.mean = self.store.products(self.w[None, :, None] / self.w.sum())[0, :, 0]

    @property
    def is_precise(self) -> bool:
        """Whether no column that can move varies mostly in the rows left out, so that little would be left of it."""
        penalty = self.problem.penalty
        moves = np.isfinite(penalty.weights) & ((penalty.lower < 0) | (penalty.upper > 0))
        left = self.problem.scan.deviation >= MIN_LEFT * self.units * self.whole.problem.scan.deviation
        return bool(np.all(left | ~moves.any(axis=1)))

    def rows_of(self, columns: IntArray, wait: Array) -> Array:
        """Some rows of the Gram matrix."""
        return self._without(products_with(self.store, columns, self.mean, self.w), columns, wait)

    def matrix(self) -> Array:
        """The whole Gram matrix."""
        columns = np.arange(len(self.mean))
        lost = central_moments(self.store, self.w, np.zeros_like(self.w), self.mean).matrix
        return self._without(lost, columns, np.zeros(len(columns)))

    def _without(self, lost: Array, columns: IntArray, wait: Array) -> Array:
        apart = np.sqrt(self.w.sum() * self.share) * (self.mean - self.problem.scan.mean)
        rows = self.whole.rows_of(columns, wait)  # a copy
        rows *= self.units
        rows *= self.units[columns, None]
        rows -= lost
        rows -= np.multiply(apart[columns, None], apart, out=lost)  # nobody else has it: no new memory
        rows /= self.share
        return rows
